"""Frames that move as one: what is rigidly joined in a version of a scene, and folding it into fewer frames.

Two frames move as one where the path of poses between them has only fixed edges over which no twist
edge leads. An edge without a stated motion (``Unstated()``, as ``add_pose`` makes it) is none of
these. So the fixed links of a robot are one rigid group, with the tool in its hand and what it
holds.

``collapse_fixed_frames(scene, keep=...)`` gives a smaller scene that says the same of every frame
it still has. The poses at every configuration (to rounding), the joints and the answers to
collision queries stay. So do the mass properties of what moves together, covariances, correlations
and contributions. Errors of the edges of a chain are carried down to the frame that stays at its
end, and summed there source by source.

Roots and the frames to ``keep`` always stay. So do frames under a joint, a free edge, one without a
stated motion or one that twists lead over. Frames that mean something to others stay: they have a
class or an attribute, or are in a group. Frames stay whose allowed pairs differ from those of the
frame they would be folded into, since a pair is said of whole frames. Frames with an error, their
own or from folded frames above, stay where it cannot be carried further. These have shapes, or a
child whose edge moves (by a joint, freely, in time or by a twist), in whose axes the error would
change with the motion.

Shapes of a folded frame are attached to the frame above, and the mass of a body without frames
joins the one above.

Source of folding: Sewtz, Burkhard, Luo, Dorscht and Triebel, "Representing Uncertain Spatial
Transformations in Robotic Applications in a Structured Framework Leveraging Lie Algebra", fold
chains of static transformations for speed. What must stay for collision, mass and meaning is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import (
    AttachedShape,
    EdgeNoise,
    Fixed,
    FrameSpecification,
    Inertia,
    SceneGraph,
    StampedPoses,
    path_noise,
)
from tmkit.errors import UnknownNameError
from tmkit.graph.traversal import stamped_attributes
from tmkit.spatial import Pose


def rigid_frames(scene: SceneGraph, frame: str) -> tuple[str, ...]:
    """Return the frames that move as one with a frame, itself among them, in insertion order.

    O(r log n) for r such frames and their children, and O(t depth) for t twist edges.

    Args:
        scene: the scene.
        frame: the frame.

    Raises:
        UnknownNameError: no such frame.
    """
    moving = edges_of_twists(scene, frame)
    top = frame
    while (parent := scene.parent(top)) is not None and _is_still(scene, top, moving):
        top = parent
    found, waiting = [top], [top]
    while waiting:
        below = [
            child for child in scene.children(waiting.pop()) if _is_still(scene, child, moving)
        ]
        found += below
        waiting += below
    return tuple(sorted(found, key=scene.frame_id))


def is_rigid(scene: SceneGraph, frame: str, other: str) -> bool:
    """Return whether it is stated that two frames move as one. O(depth log n), and O(t depth) for t twist edges.

    Args:
        scene: the scene.
        frame: the one frame.
        other: the other.

    Raises:
        UnknownNameError: no such frame.
    """
    return loose_edge(scene, frame, other) is None


def loose_edge(scene: SceneGraph, frame: str, other: str) -> str | None:
    """Return the frame below the first edge between two frames that is not rigid; None where they move as one.

    Where no poses join them, it is ``frame``.
    """
    if scene.root(frame) != scene.root(other):
        return frame
    moving = edges_of_twists(scene, frame)
    up, down = ([end, *scene.ancestors(end)] for end in (frame, other))
    common = set(up).intersection(down)
    between = [at for at in (*up, *reversed(down)) if at not in common]
    return next((at for at in between if not _is_still(scene, at, moving)), None)


def rigid_inertia(scene: SceneGraph, frame: str) -> Inertia | None:
    """Return the mass properties of all bodies that move as one with a frame, in its axes; None where none has any.

    What a hand holds counts: of a gripper with an object this is the payload at the wrist.

    Args:
        scene: the scene; masses in kg.
        frame: the frame.

    Raises:
        UnknownNameError: no such frame.
    """
    firsts = {scene.body(name): name for name in reversed(rigid_frames(scene, frame))}
    found = [(scene.pose(name, relative_to=frame), scene.inertia(name)) for name in firsts.values()]
    return joined_inertia([(at, own) for at, own in found if own is not None])


def joined_inertia(masses: Sequence[tuple[Pose, Inertia]]) -> Inertia | None:
    """Return the mass properties of rigidly joined bodies, from here_from_there of each (parallel axis theorem)."""
    if len(masses) < 2:
        return _in_axes(*masses[0]) if masses else None
    parts = [_in_axes(*part) for part in masses]
    mass = sum(part.mass for part in parts)
    center = sum((part.mass * part.center for part in parts), start=np.zeros(3)) / mass
    matrix: NDArray[np.float64] = np.zeros((3, 3))
    for part in parts:
        offset = part.center - center
        matrix += part.matrix + part.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return Inertia(mass, center, matrix=(matrix + matrix.T) / 2)


def _in_axes(here_from_there: Pose, inertia: Inertia) -> Inertia:
    if here_from_there == Pose():
        return inertia
    rotation = here_from_there.rotation
    matrix = rotation @ inertia.matrix @ rotation.T
    return Inertia(
        inertia.mass, here_from_there.apply(inertia.center), matrix=(matrix + matrix.T) / 2
    )


def edges_of_twists(scene: SceneGraph, frame: str) -> set[str]:
    """Return the frames below edges of poses in the tree of a frame over which twist edges lead. O(t depth)."""
    core: Any = scene
    return set(core._edges_of_twists(frame))


def moving_edges(scene: SceneGraph) -> set[str]:
    """Return the same of all trees."""
    return set[str]().union(
        *(edges_of_twists(scene, root) for root in scene.root_names if scene.twist_frames)
    )


def joint_values(scene: SceneGraph, values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return one number a joint; what they are is named where they are not that."""
    core: Any = scene
    return np.asarray(core._joint_values(values, what))


def _is_still(scene: SceneGraph, frame: str, moving: set[str]) -> bool:
    parent = scene.parent(frame)
    on_one_body = parent is not None and scene.body(parent) == scene.body(frame)
    return scene.joint(frame) == Fixed() and (on_one_body or frame not in moving)


@dataclass
class _Kept:
    """A frame that stays, and what it takes over."""

    specification: FrameSpecification
    parent: str | None
    pose: Pose
    shapes: list[AttachedShape]
    partners: frozenset[str]  # frames it may touch
    collides: bool
    stamps: StampedPoses | None
    noise: EdgeNoise | None  # of its pose relative to the parent that it will have
    # of bodies that go: here_from_there, inertia
    masses: list[tuple[Pose, Inertia]] = field(default_factory=list)

    def take_shapes(self, shapes: Iterable[AttachedShape], partners: frozenset[str] | None) -> None:
        """Take over shapes of a frame, and its partners if it is the first that collides (None if it does not)."""
        self.shapes.extend(shapes)
        if partners is not None and not self.collides:
            self.partners, self.collides = partners, True

    def take_mass(self, here_from_there: Pose, inertia: Inertia) -> None:
        """Take over the inertia of a body."""
        self.masses.append((here_from_there, inertia))


def collapse_fixed_frames(scene: SceneGraph, *, keep: Iterable[str] = ()) -> SceneGraph:
    """Return the scene without the frames that a fixed edge ties to another and that mean nothing by themselves.

    Frames keep their order. It is the same scene when there is nothing to fold.

    Args:
        scene: the scene.
        keep: names of frames that stay in any case.

    Raises:
        UnknownNameError: no such frame to keep.
    """
    kept_names = frozenset(keep)
    for name in sorted(kept_names):
        if name not in scene:
            raise UnknownNameError.of("frame", name, scene.frame_names)
    partners = _partners(scene)
    groups = [scene.group(name) for name in scene.group_names]
    meant = {frame for group in groups for frame in (*group.frames, *group.parents)} | kept_names
    edges = [edge for frame in scene.twist_frames if (edge := scene.twist_edge(frame)) is not None]
    references = {reference for reference, _ in edges}  # bodies that may not go with their frames
    moving = moving_edges(scene)
    kept: dict[str, _Kept] = {}
    # by frame: the frame that holds it now, and holder_from_frame
    place: dict[str, tuple[str, Pose]] = {}
    # frames with an error relative to the frame that holds their parent
    uncertain: set[str] = set()
    for root in scene.root_names:
        for name in scene.subtree(root):
            frame = scene.specification(name)
            collides = any(part.collision for part in frame.shapes)
            above, above_from_frame, stamps = _above(frame, place)
            if frame.noise is not None or (frame.parent in uncertain and frame.parent not in kept):
                uncertain.add(name)
            holds_error = name in uncertain and _must_hold_error(scene, frame)
            is_meant = name in meant or name in moving or _moves_by_itself(frame) or holds_error
            is_meant = is_meant or frame.body in references
            if frame.parent is None or _stays(
                frame, is_meant, kept.get(above), partners[name], collides
            ):
                parent = None if frame.parent is None else above
                noise = frame.noise  # above an edge that moves no uncertain frame was folded
                if parent not in (None, frame.parent) and frame.joint == Fixed():
                    # of all edges between, source by source
                    noise = path_noise(scene, name, relative_to=parent)
                own = list(frame.shapes)
                kept[name] = _Kept(
                    frame, parent, above_from_frame, own, partners[name], collides, stamps, noise
                )
                place[name] = (name, Pose())
                continue
            place[name] = (above, above_from_frame)
            moved = [part.replace(pose=above_from_frame @ part.pose) for part in frame.shapes]
            kept[above].take_shapes(moved, partners[name] if collides else None)
    if len(kept) == len(scene):
        return scene
    _place_inertia(scene, kept, place)
    order = [name for name in scene.frame_names if name in kept]
    folded = SceneGraph.from_frames(
        [_specification(kept[name]) for name in order],
        allowed=_allowed(scene, kept, place),
        bodies_without_frames=scene.bodies_without_frames,
    )
    with folded.edit() as edit:
        for group in groups:
            edit.set_group(
                group.name,
                frames=group.frames,
                parents=group.parents,
                attributes=stamped_attributes(group),
            )
        for group in groups:
            edit.set_group(group.name, frames=group.frames, groups=group.groups)
    return edit.finish()


def _partners(scene: SceneGraph) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {name: set() for name in scene.frame_names}
    for a, b, _ in scene.allowed_pairs:
        found[a].add(b)
        found[b].add(a)
    return {name: frozenset(names) for name, names in found.items()}


def _above(
    frame: FrameSpecification, place: dict[str, tuple[str, Pose]]
) -> tuple[str, Pose, StampedPoses | None]:
    """Return the kept frame above one, and above_from_frame: at joint value 0, and stamped."""
    if frame.parent is None:
        return "", Pose(), None
    holder, holder_from_parent = place[frame.parent]
    if holder == frame.parent:
        return holder, frame.pose, frame.stamps
    stamps = None if frame.stamps is None else frame.stamps.moved(holder_from_parent)
    return holder, holder_from_parent @ frame.pose, stamps


def _stays(
    frame: FrameSpecification,
    is_meant: bool,
    above: _Kept | None,
    partners: frozenset[str],
    collides: bool,
) -> bool:
    if is_meant or frame.joint != Fixed() or frame.classes or frame.attributes or above is None:
        return True
    if not collides or not above.collides:
        return False
    return partners - {above.specification.name} != above.partners - {frame.name}


def _must_hold_error(scene: SceneGraph, frame: FrameSpecification) -> bool:
    """Return whether an error of a frame's pose cannot be carried down to the frames below it."""
    if frame.shapes:  # which would have an exact pose in the frame above
        return True
    # errors are constant in the axes of each
    children = map(scene.specification, scene.children(frame.name))
    return any(child.joint != Fixed() or _moves_by_itself(child) for child in children)


def _moves_by_itself(frame: FrameSpecification) -> bool:
    """Return whether the pose of a frame's edge changes in time."""
    return frame.twist is not None or frame.stamps is not None


def _place_inertia(
    scene: SceneGraph, kept: dict[str, _Kept], place: dict[str, tuple[str, Pose]]
) -> None:
    """Give the inertia of every body to a frame of it that stays, or to the frame that its frames were folded into."""
    staying: dict[str, str] = {}  # by body: its first frame that stays
    for name in scene.frame_names:
        if name in kept:
            staying.setdefault(kept[name].specification.body, name)
    for name in scene.frame_names:
        inertia = scene.specification(name).inertia
        if inertia is None or name in kept:
            continue
        holder, holder_from_frame = place[name]
        body = scene.body(name)
        if body in staying and scene.root(staying[body]) == scene.root(name):
            there = staying[body]
            kept[there].take_mass(scene.pose(name, relative_to=there), inertia)
        else:
            kept[holder].take_mass(holder_from_frame, inertia)


def _specification(frame: _Kept) -> FrameSpecification:
    said, masses = frame.specification, frame.masses
    masses = masses if said.inertia is None else [(Pose(), said.inertia), *masses]
    return said.replace(
        parent=frame.parent,
        pose=frame.pose,
        shapes=frame.shapes,
        inertia=joined_inertia(masses),
        stamps=frame.stamps,
        noise=frame.noise,
    )


def _allowed(
    scene: SceneGraph, kept: dict[str, _Kept], place: dict[str, tuple[str, Pose]]
) -> list[tuple[str, str, str]]:
    pairs: dict[frozenset[str], tuple[str, str, str]] = {}
    for a, b, reason in scene.allowed_pairs:
        first, second = place[a][0], place[b][0]
        # A frame without shapes may have touched anything; once the shapes of others were folded
        # into it, it may not.
        is_said = all(
            any(part.collision for part in scene.shapes(name))
            or (name in kept and not kept[name].collides)
            for name in (a, b)
        )
        if first != second and is_said:
            pairs.setdefault(frozenset((first, second)), (first, second, reason))
    return list(pairs.values())
