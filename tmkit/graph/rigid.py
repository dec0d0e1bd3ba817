"""Rigid groups of frames: queries, mass properties, and removal of redundant fixed frames.

A rigid group is the set of frames joined by fixed edges that no twist edge drives. An edge without
a stated motion (``Unstated()``, as ``add_pose`` makes it) does not join frames. The fixed links of
a robot form one rigid group, with the tool in its hand and the held object.

``collapse_fixed_frames(scene, keep=...)`` returns a smaller scene that is equivalent for every
frame that remains. It preserves joints, collision results and, to rounding, the poses at every
configuration. It also preserves the mass properties of rigid groups, covariances, correlations and
contributions. The errors of a chain's edges are summed, source by source, in the last frame of the
chain.

These frames are kept:

* roots, and the frames in ``keep``;
* frames below a joint, a free edge, an edge without a stated motion, or an edge driven by twists;
* frames with a class or an attribute, and members of groups;
* frames whose allowed pairs differ from those of the frame above, since a pair holds for whole
  frames;
* frames with an error, their own or from collapsed frames above, that cannot be moved further down.
  Such a frame has shapes, or a child whose edge moves by a joint, freely, in time or by a twist. In
  the axes of that child the error would change with the motion.

The shapes of a collapsed frame are attached to the frame above. The mass of a body without frames
is added to the body above.

Source: Sewtz, Burkhard, Luo, Dorscht and Triebel, "Representing Uncertain Spatial Transformations
in Robotic Applications in a Structured Framework Leveraging Lie Algebra", collapse chains of static
transformations for speed. The conditions for collision, mass, classes and attributes are additions.
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
    """Return the frames of the rigid group of a frame, including the frame, in insertion order.

    O(r log n) for r frames of the group and their children, and O(t depth) for t twist edges.

    Args:
        scene: the scene.
        frame: the frame.

    Raises:
        UnknownNameError: if a frame is unknown.
    """
    driven_edges = twist_driven_edges(scene, frame)
    top = frame
    while (parent := scene.parent(top)) is not None and _is_rigid_edge(scene, top, driven_edges):
        top = parent
    group, stack = [top], [top]
    while stack:
        parent = stack.pop()
        children = [c for c in scene.children(parent) if _is_rigid_edge(scene, c, driven_edges)]
        group += children
        stack += children
    return tuple(sorted(group, key=scene.frame_id))


def is_rigid(scene: SceneGraph, frame: str, other: str) -> bool:
    """Return whether two frames belong to the same rigid group.

    O(depth log n), and O(t depth) for t twist edges.

    Args:
        scene: the scene.
        frame: one frame.
        other: the other frame.

    Raises:
        UnknownNameError: if a frame is unknown.
    """
    return loose_edge(scene, frame, other) is None


def loose_edge(scene: SceneGraph, frame: str, other: str) -> str | None:
    """Return the frame below the first edge between two frames that is not rigid.

    It is None for frames of one rigid group, and ``frame`` for frames of different trees.
    """
    if scene.root(frame) != scene.root(other):
        return frame
    driven_edges = twist_driven_edges(scene, frame)
    up, down = ([end, *scene.ancestors(end)] for end in (frame, other))
    common = set(up).intersection(down)
    edges = [edge for edge in (*up, *reversed(down)) if edge not in common]
    return next((edge for edge in edges if not _is_rigid_edge(scene, edge, driven_edges)), None)


def rigid_inertia(scene: SceneGraph, frame: str) -> Inertia | None:
    """Return the mass properties of the rigid group of a frame, in its axes [kg, kg m^2].

    Held objects are included: for a gripper with an object, the result is the payload at the wrist.

    Args:
        scene: the scene.
        frame: the frame.

    Returns:
        Sum over all bodies of the group; None if no body has an inertia.

    Raises:
        UnknownNameError: if a frame is unknown.
    """
    first_frames = {scene.body(name): name for name in reversed(rigid_frames(scene, frame))}
    parts = [
        (scene.pose(name, relative_to=frame), scene.inertia(name)) for name in first_frames.values()
    ]
    return combine_inertia([(pose, inertia) for pose, inertia in parts if inertia is not None])


def combine_inertia(masses: Sequence[tuple[Pose, Inertia]]) -> Inertia | None:
    """Return the mass properties of rigidly joined bodies, by the parallel axis theorem.

    Args:
        masses: reference_from_body and the inertia of each body.
    """
    if len(masses) < 2:
        return _change_axes(*masses[0]) if masses else None
    parts = [_change_axes(*part) for part in masses]
    mass = sum(part.mass for part in parts)
    center = sum((part.mass * part.center for part in parts), start=np.zeros(3)) / mass
    matrix: NDArray[np.float64] = np.zeros((3, 3))
    for part in parts:
        offset = part.center - center
        matrix += part.matrix + part.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return Inertia(mass, center, matrix=(matrix + matrix.T) / 2)


def _change_axes(reference_from_body: Pose, inertia: Inertia) -> Inertia:
    """Return an inertia in the axes of the reference frame."""
    if reference_from_body == Pose():
        return inertia
    rotation = reference_from_body.rotation
    matrix = rotation @ inertia.matrix @ rotation.T
    center = reference_from_body.apply(inertia.center)
    return Inertia(inertia.mass, center, matrix=(matrix + matrix.T) / 2)


def twist_driven_edges(scene: SceneGraph, frame: str) -> set[str]:
    """Return the frames below pose edges of a frame's tree that twists drive. O(t depth)."""
    core: Any = scene
    return set(core._edges_of_twists(frame))


def all_twist_driven_edges(scene: SceneGraph) -> set[str]:
    """Return the frames below pose edges of all trees that twists drive."""
    return set[str]().union(
        *(twist_driven_edges(scene, root) for root in scene.root_names if scene.twist_frames)
    )


def joint_values(scene: SceneGraph, values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return (n_joints,) numbers, or raise an error that names the quantity ``what``."""
    core: Any = scene
    return np.asarray(core._joint_values(values, what))


def _is_rigid_edge(scene: SceneGraph, frame: str, driven_edges: set[str]) -> bool:
    """Return whether the edge above a frame is fixed, and inside a body or not driven by twists."""
    parent = scene.parent(frame)
    on_one_body = parent is not None and scene.body(parent) == scene.body(frame)
    return scene.joint(frame) == Fixed() and (on_one_body or frame not in driven_edges)


@dataclass
class _KeptFrame:
    """Frame that remains, with the shapes and masses of the frames collapsed into it.

    Attributes:
        parent: parent in the collapsed scene.
        partners: frames that it may touch.
        noise: error of its pose relative to the new parent.
        masses: frame_from_body and inertia of each removed body.
    """

    specification: FrameSpecification
    parent: str | None
    pose: Pose
    shapes: list[AttachedShape]
    partners: frozenset[str]
    collides: bool
    stamps: StampedPoses | None
    noise: EdgeNoise | None
    masses: list[tuple[Pose, Inertia]] = field(default_factory=list)

    def take_shapes(self, shapes: Iterable[AttachedShape], partners: frozenset[str] | None) -> None:
        """Add the shapes of a frame, and its partners if it is the first frame with collisions.

        Args:
            shapes: shapes, with poses relative to this frame.
            partners: frames that the other frame may touch; None if it has no collision shapes.
        """
        self.shapes.extend(shapes)
        if partners is not None and not self.collides:
            self.partners, self.collides = partners, True

    def take_mass(self, frame_from_body: Pose, inertia: Inertia) -> None:
        """Add the inertia of a body."""
        self.masses.append((frame_from_body, inertia))


def collapse_fixed_frames(scene: SceneGraph, *, keep: Iterable[str] = ()) -> SceneGraph:
    """Return the scene without redundant fixed frames.

    Frames keep their order. The scene itself is returned if no frame is redundant.

    Args:
        scene: the scene.
        keep: names of frames to keep in any case.

    Raises:
        UnknownNameError: if a frame to keep is unknown.
    """
    kept_names = frozenset(keep)
    for name in sorted(kept_names):
        if name not in scene:
            raise UnknownNameError.of("frame", name, scene.frame_names)
    partners = _collision_partners(scene)
    groups = [scene.group(name) for name in scene.group_names]
    members = {frame for group in groups for frame in (*group.frames, *group.parents)}
    edges = [edge for frame in scene.twist_frames if (edge := scene.twist_edge(frame)) is not None]
    references = {reference for reference, _ in edges}  # bodies that twist edges require
    driven_edges = all_twist_driven_edges(scene)
    kept_frames: dict[str, _KeptFrame] = {}
    # by frame: the kept frame that replaces it, and holder_from_frame
    holders: dict[str, tuple[str, Pose]] = {}
    # frames with an error relative to the frame that replaces their parent
    uncertain_frames: set[str] = set()
    for root in scene.root_names:
        for name in scene.subtree(root):
            frame = scene.specification(name)
            collides = any(part.collision for part in frame.shapes)
            holder, holder_from_frame, stamps = _holder_pose(frame, holders)
            has_folded_parent = frame.parent not in kept_frames
            if frame.noise is not None or (frame.parent in uncertain_frames and has_folded_parent):
                uncertain_frames.add(name)
            is_required = name in members or name in kept_names or name in driven_edges
            is_required = is_required or _moves_in_time(frame) or frame.body in references
            if name in uncertain_frames and _must_hold_error(scene, frame):
                is_required = True
            above = kept_frames.get(holder)
            if frame.parent is None or _must_keep(
                frame, is_required, above, partners[name], collides
            ):
                parent = None if frame.parent is None else holder
                noise = frame.noise  # no uncertain frame is collapsed above a moving edge
                if parent not in (None, frame.parent) and frame.joint == Fixed():
                    # the sum over all edges to the new parent, source by source
                    noise = path_noise(scene, name, relative_to=parent)
                kept_frames[name] = _KeptFrame(
                    frame,
                    parent,
                    holder_from_frame,
                    list(frame.shapes),
                    partners[name],
                    collides,
                    stamps,
                    noise,
                )
                holders[name] = (name, Pose())
                continue
            holders[name] = (holder, holder_from_frame)
            shapes = [part.replace(pose=holder_from_frame @ part.pose) for part in frame.shapes]
            kept_frames[holder].take_shapes(shapes, partners[name] if collides else None)
    if len(kept_frames) == len(scene):
        return scene
    _move_inertia(scene, kept_frames, holders)
    order = [name for name in scene.frame_names if name in kept_frames]
    collapsed_scene = SceneGraph.from_frames(
        [_specification(kept_frames[name]) for name in order],
        allowed=_pairs_after_collapse(scene, kept_frames, holders),
        bodies_without_frames=scene.bodies_without_frames,
    )
    with collapsed_scene.edit() as edit:
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


def _collision_partners(scene: SceneGraph) -> dict[str, frozenset[str]]:
    """Return the frames that each frame may touch."""
    partners: dict[str, set[str]] = {name: set() for name in scene.frame_names}
    for a, b, _ in scene.allowed_pairs:
        partners[a].add(b)
        partners[b].add(a)
    return {name: frozenset(names) for name, names in partners.items()}


def _holder_pose(
    frame: FrameSpecification, holders: dict[str, tuple[str, Pose]]
) -> tuple[str, Pose, StampedPoses | None]:
    """Return the kept frame above, holder_from_frame at joint value 0, and stamped poses."""
    if frame.parent is None:
        return "", Pose(), None
    holder, holder_from_parent = holders[frame.parent]
    if holder == frame.parent:
        return holder, frame.pose, frame.stamps
    stamps = None if frame.stamps is None else frame.stamps.moved(holder_from_parent)
    return holder, holder_from_parent @ frame.pose, stamps


def _must_keep(
    frame: FrameSpecification,
    is_required: bool,
    above: _KeptFrame | None,
    partners: frozenset[str],
    collides: bool,
) -> bool:
    """Return whether a frame cannot be collapsed into the kept frame above it."""
    if is_required or frame.joint != Fixed() or frame.classes or frame.attributes or above is None:
        return True
    if not collides or not above.collides:
        return False
    return partners - {above.specification.name} != above.partners - {frame.name}


def _must_hold_error(scene: SceneGraph, frame: FrameSpecification) -> bool:
    """Return whether the error of a frame's pose cannot be moved down to its children."""
    if frame.shapes:  # their poses in the frame above would be exact
        return True
    # An error is constant in the axes of a child with a fixed edge only.
    children = map(scene.specification, scene.children(frame.name))
    return any(child.joint != Fixed() or _moves_in_time(child) for child in children)


def _moves_in_time(frame: FrameSpecification) -> bool:
    """Return whether the pose of a frame's edge changes in time."""
    return frame.twist is not None or frame.stamps is not None


def _move_inertia(
    scene: SceneGraph, kept_frames: dict[str, _KeptFrame], holders: dict[str, tuple[str, Pose]]
) -> None:
    """Move the inertia of each collapsed frame to a kept frame of its body, or to its holder."""
    first_kept: dict[str, str] = {}  # by body: its first kept frame
    for name in scene.frame_names:
        if name in kept_frames:
            first_kept.setdefault(kept_frames[name].specification.body, name)
    for name in scene.frame_names:
        inertia = scene.specification(name).inertia
        if inertia is None or name in kept_frames:
            continue
        holder, holder_from_frame = holders[name]
        first = first_kept.get(scene.body(name))
        if first is not None and scene.root(first) == scene.root(name):
            kept_frames[first].take_mass(scene.pose(name, relative_to=first), inertia)
        else:
            kept_frames[holder].take_mass(holder_from_frame, inertia)


def _specification(frame: _KeptFrame) -> FrameSpecification:
    """Return the specification of a kept frame, with its new parent, shapes and inertia."""
    specification, masses = frame.specification, frame.masses
    if specification.inertia is not None:
        masses = [(Pose(), specification.inertia), *masses]
    return specification.replace(
        parent=frame.parent,
        pose=frame.pose,
        shapes=frame.shapes,
        inertia=combine_inertia(masses),
        stamps=frame.stamps,
        noise=frame.noise,
    )


def _pairs_after_collapse(
    scene: SceneGraph, kept_frames: dict[str, _KeptFrame], holders: dict[str, tuple[str, Pose]]
) -> list[tuple[str, str, str]]:
    """Return the allowed pairs of the collapsed scene, with their reasons."""
    pairs: dict[frozenset[str], tuple[str, str, str]] = {}
    for a, b, reason in scene.allowed_pairs:
        first, second = holders[a][0], holders[b][0]
        # The pair of a frame without shapes must not extend to shapes that it received.
        is_valid = all(
            any(part.collision for part in scene.shapes(name))
            or (name in kept_frames and not kept_frames[name].collides)
            for name in (a, b)
        )
        if first != second and is_valid:
            pairs.setdefault(frozenset((first, second)), (first, second, reason))
    return list(pairs.values())
