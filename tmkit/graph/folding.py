"""Folding: chains of frames that never move relative to each other become one frame.

``collapse_fixed_frames(scene, keep=...)`` gives a smaller scene that says the same of every frame it still has: the
same poses at every configuration (to rounding), the same joints, the same answer to every collision query, the same
mass properties of what moves together, the same covariances, correlations and contributions: errors of the edges of a
chain are carried down to the frame that stays at its end, and summed there source by source.

What stays, always: roots; frames under a joint, a free edge or one that twists lead over; frames that mean something to
others (they have a class or an attribute, or are in a group); the frames to ``keep``; frames whose allowed pairs differ
from those of the frame they would be folded into, since a pair is said of whole frames; and frames with an error of
their own or from folded frames above, where it cannot be carried further: they have shapes, or a child whose edge moves
(by a joint, freely, in time or by a twist), in whose axes the error would change with the motion.

Shapes of a folded frame are attached to the frame above, where they stood. Its body goes when all frames of it went;
then its mass joins that of the body above.

Complexity O(n log n) for n frames. Source: Sewtz, Burkhard, Luo, Dorscht and Triebel, "Representing Uncertain Spatial
Transformations in Robotic Applications in a Structured Framework Leveraging Lie Algebra", fold chains of static
transformations for speed; what must stay for collision, mass and meaning is ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tmkit._core import AttachedShape, EdgeNoise, FrameSpecification, Inertia, SceneGraph, StampedPoses, path_noise
from tmkit.errors import UnknownNameError
from tmkit.graph.rigid import joined_inertia, moving_edges
from tmkit.graph.stamps import stamped_attributes
from tmkit.spatial import Pose


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
    masses: list[tuple[Pose, Inertia]] = field(default_factory=list)  # of bodies that go: here_from_there, inertia


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
    place: dict[str, tuple[str, Pose]] = {}  # by frame: the frame that holds it now, and holder_from_frame
    uncertain: set[str] = set()  # frames with an error relative to the frame that holds their parent
    for root in scene.root_names:
        for name in scene.subtree(root):
            frame = scene.specification(name)
            collides = any(part.collision for part in frame.shapes)
            above, above_from_frame = _above(frame, place)
            if frame.noise is not None or (frame.parent in uncertain and frame.parent not in kept):
                uncertain.add(name)
            holds_error = name in uncertain and _must_hold_error(scene, frame)
            is_meant = name in meant or name in moving or _moves_by_itself(frame) or holds_error
            is_meant = is_meant or frame.body in references
            if frame.parent is None or _stays(frame, is_meant, kept.get(above), partners[name], collides):
                parent = None if frame.parent is None else above
                stamps = _stamps(frame, place)
                noise = _noise(scene, frame, parent)
                kept[name] = _Kept(
                    frame, parent, above_from_frame, list(frame.shapes), partners[name], collides, stamps, noise
                )
                place[name] = (name, Pose())
                continue
            holder = kept[above]
            place[name] = (above, above_from_frame)
            holder.shapes += [_moved(part, above_from_frame) for part in frame.shapes]
            if collides and not holder.collides:
                holder.partners, holder.collides = partners[name], True
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
            edit.set_group(group.name, frames=group.frames, parents=group.parents, attributes=stamped_attributes(group))
        for group in groups:
            edit.set_group(group.name, frames=group.frames, groups=group.groups)
    return edit.finish()


def _partners(scene: SceneGraph) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {name: set() for name in scene.frame_names}
    for a, b, _ in scene.allowed_pairs:
        found[a].add(b)
        found[b].add(a)
    return {name: frozenset(names) for name, names in found.items()}


def _above(frame: FrameSpecification, place: dict[str, tuple[str, Pose]]) -> tuple[str, Pose]:
    """Return the kept frame above one, and above_from_frame at joint value 0."""
    if frame.parent is None:
        return "", Pose()
    holder, holder_from_parent = place[frame.parent]
    return holder, frame.pose if holder == frame.parent else holder_from_parent @ frame.pose


def _stamps(frame: FrameSpecification, place: dict[str, tuple[str, Pose]]) -> StampedPoses | None:
    """Return the stamped poses of a frame that stays, relative to the kept frame above it."""
    if frame.parent is None or frame.stamps is None:
        return None
    holder, holder_from_parent = place[frame.parent]
    return frame.stamps if holder == frame.parent else frame.stamps.moved(holder_from_parent)


def _stays(
    frame: FrameSpecification, is_meant: bool, above: _Kept | None, partners: frozenset[str], collides: bool
) -> bool:
    if is_meant or frame.joint.type != "fixed" or frame.classes or frame.attributes or above is None:
        return True
    if not collides or not above.collides:
        return False
    return partners - {above.specification.name} != above.partners - {frame.name}


def _must_hold_error(scene: SceneGraph, frame: FrameSpecification) -> bool:
    """Return whether an error of a frame's pose cannot be carried down to the frames below it.

    Shapes would have an exact pose in the frame above. A child whose edge moves has an error that is constant in its
    own axes, and this one would not be.
    """
    if frame.shapes:
        return True
    children = map(scene.specification, scene.children(frame.name))
    return any(child.joint.type != "fixed" or _moves_by_itself(child) for child in children)


def _moves_by_itself(frame: FrameSpecification) -> bool:
    """Return whether the pose of a frame's edge changes in time."""
    return frame.twist is not None or frame.stamps is not None


def _noise(scene: SceneGraph, frame: FrameSpecification, parent: str | None) -> EdgeNoise | None:
    """Return the errors of all edges between a frame and its new parent, source by source."""
    if parent is None or parent == frame.parent or frame.joint.type != "fixed":
        return frame.noise  # above an edge that moves no uncertain frame was folded
    return path_noise(scene, frame.name, relative_to=parent)


def _moved(part: AttachedShape, here_from_frame: Pose) -> AttachedShape:
    return part.moved(here_from_frame @ part.pose)


def _place_inertia(scene: SceneGraph, kept: dict[str, _Kept], place: dict[str, tuple[str, Pose]]) -> None:
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
            kept[there].masses.append((scene.pose(name, relative_to=there), inertia))
        else:
            kept[holder].masses.append((holder_from_frame, inertia))


def _specification(frame: _Kept) -> FrameSpecification:
    said = frame.specification
    masses = frame.masses if said.inertia is None else [(Pose(), said.inertia), *frame.masses]
    return FrameSpecification(
        said.name, frame.parent, pose=frame.pose, joint=said.joint, body=said.body, classes=said.classes,
        shapes=frame.shapes, inertia=joined_inertia(masses), attributes=stamped_attributes(said), twist=said.twist,
        twist_noise=said.twist_noise, stamps=frame.stamps, noise=frame.noise,
    )  # fmt: skip


def _allowed(
    scene: SceneGraph, kept: dict[str, _Kept], place: dict[str, tuple[str, Pose]]
) -> list[tuple[str, str, str]]:
    pairs: dict[frozenset[str], tuple[str, str, str]] = {}
    for a, b, reason in scene.allowed_pairs:
        holders = [place[name][0] for name in (a, b)]
        said = [_speaks(scene, name, kept) for name in (a, b)]
        if holders[0] != holders[1] and all(said):
            pairs.setdefault(frozenset(holders), (holders[0], holders[1], reason))
    return list(pairs.values())


def _speaks(scene: SceneGraph, name: str, kept: dict[str, _Kept]) -> bool:
    """Return whether a pair that names a frame may be said of the frame that holds it now.

    A frame without shapes may have touched anything; once the shapes of others were folded into it, it may not.
    """
    return any(part.collision for part in scene.shapes(name)) or (name in kept and not kept[name].collides)
