"""From joints between links, in any order and direction, to frames with one parent each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tmkit._support.source_location import SourceLocation
from tmkit.formats.spec.model import FrameSpec, JointSpec
from tmkit.formats.spec.values import spec_of_pose
from tmkit.spatial import Pose

_CLOSE = 1e-12  # metres


@dataclass(slots=True, eq=False)
class JointEdge:
    """A joint between two links, of which the tree has ``above`` above: ``None`` for one that would close a loop."""

    top: Any = field(init=False)
    bottom: Any = field(init=False)
    above: Any = field(init=False, default=None)

    @property
    def is_turned(self) -> bool:
        """Whether its child is above its parent."""
        return self.above is not None and self.above is not self.top


def grow(world: Any, links: Sequence[Any], static: Collection[Any], joints: Sequence[JointEdge]) -> set[Any]:
    """Make joints a forest, of which each has its link above; return the links that no joint moves.

    In their order, each joint that does not close a loop is part of it. A tree hangs on the world, a static link, or
    the first link that is no joint's child.
    """
    tree = {link: link for link in (world, *links)}
    around: dict[Any, list[JointEdge]] = {link: [] for link in tree}
    for joint in joints:
        one, other = _representative(tree, joint.top), _representative(tree, joint.bottom)
        if one is not other:
            tree[other] = one
            around[joint.top].append(joint)
            around[joint.bottom].append(joint)
    children = {joint.bottom for joint in joints}
    roots, reached = set[Any](), set[Any]()
    for root in (world, *sorted(links, key=lambda link: (link not in static, link in children))):
        waiting = [] if root in reached else [root]
        roots.update(waiting)
        while waiting:
            link = waiting.pop()
            reached.add(link)
            for joint in (joint for joint in around[link] if joint.above is None):
                joint.above = link
                waiting.append(joint.top if joint.is_turned else joint.bottom)
    return roots


def _representative(tree: dict[Any, Any], link: Any) -> Any:
    while tree[link] is not link:
        tree[link] = tree[tree[link]]
        link = tree[link]
    return link


def hung(
    frame: FrameSpec, above: str, pose: Pose, rest: Pose, steps: Sequence[tuple[str, JointSpec]], *,
    is_turned: bool, place: SourceLocation,
) -> list[FrameSpec]:  # fmt: skip
    """Return a frame on the joints that move it, after the frames ``FRAME/JOINT`` between that these need.

    Args:
        above: name of the frame above; ``pose``: of the joint in it; ``rest``: of the frame in the joint's.
        steps: the joints of one degree of freedom, from the joint's parent on, with their names in frames; axes are in
            the frame of the joint.
        is_turned: whether ``above`` is the joint's child.
    """
    if is_turned:
        steps = [
            (name, replace(step, axis=(-step.axis[0], -step.axis[1], -step.axis[2]))) for name, step in steps[::-1]
        ]
    is_centred = max(map(abs, rest.translation)) < _CLOSE
    frames = list[FrameSpec]()
    for number, (name, step) in enumerate(steps, start=1):
        if number == len(steps) and (is_centred or step.type in ("fixed", "prismatic")):
            x, y, z = rest.inverse().rotate(step.axis).tolist()
            moved = replace(frame, joint=replace(step, axis=(x, y, z)))
            pose = pose @ rest
        else:
            moved = FrameSpec(f"{frame.name}/{name}", None, place, joint=step)
        frames.append(replace(moved, parent=above, pose=spec_of_pose(pose), parent_place=place))
        above, pose = moved.name, Pose.identity()
    if above != frame.name:
        frames.append(replace(frame, parent=above, pose=spec_of_pose(rest), parent_place=place))
    return frames
