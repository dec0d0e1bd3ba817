"""From drafts to a scene.

All drafts of a load go into one scene. Frames are added in the order of the files, except that a frame waits for its
parent: its ancestors are added just before it. So the order of the joints in a configuration is the order in which the
files declare them, and a parent may be declared later, or by another file.

A frame may be named by an alias where no frame is called so: a link by the joint above it, as the original TMKit names
it, and in allowed pairs also by ``LINK-visual``, ``LINK-collision`` and ``LINK-inertial``, the original's names of the
parts of a link.

Names are checked here, where both places are known, so that a duplicate names both; everything else (sizes, limits,
bodies) is the core's business, and what it refuses is reported at the place of the draft. ``world`` is special: it is
the root that exists without being declared, and several files may put shapes on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from tmkit.errors import FileFormatError, ShapeError, TmkitError
from tmkit.files.places import Place, did_you_mean
from tmkit.formats.drafts import (
    AllowedDraft,
    FrameDraft,
    GeometryDraft,
    GroupDraft,
    InertiaDraft,
    JointDraft,
    MeshDraft,
    PoseDraft,
    PrimitiveDraft,
    SceneDraft,
)
from tmkit.formats.inertias import united_inertia
from tmkit.formats.meshes import MeshLoader
from tmkit.formats.solids import frustum
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Continuous,
    Cylinder,
    Fixed,
    Free,
    Inertia,
    Joint,
    Mimic,
    Prismatic,
    Revolute,
    SceneEdit,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.spatial import Pose

__all__ = [
    "WORLD",
    "add_allowed",
    "add_drafted_frame",
    "build_scene",
    "frames_by_name",
    "pose_of",
    "whole_name",
    "zero_pose_of",
]

WORLD = "world"

_PARTS = ("-visual", "-collision", "-inertial")  # frames of a link's parts in the original TMKit, here the link itself


def build_scene(drafts: Sequence[SceneDraft], *, loader: MeshLoader) -> SceneGraph:
    """Build one scene from everything that was read.

    Args:
        drafts: what the files say, in order.
        loader: loads the meshes.

    Raises:
        FileFormatError: names that are missing or declared twice, cycles, and whatever the core refuses, each at its
            place in its file.
    """
    frames = frames_by_name(draft for scene in drafts for draft in scene.frames)
    if frames:
        loader.packages.limits.refuse_frames(len(frames), next(reversed(frames.values())).place.error)
    _check_joint_names(frames.values())
    _check_parents(frames)
    with SceneGraph(root=None).edit() as edit:
        if WORLD not in frames and (not frames or any(draft.parent == WORLD for draft in frames.values())):
            edit.add_root(WORLD)
        for body in dict.fromkeys(body for draft in drafts for body in draft.bare_bodies):
            edit.add_body(body)
        for draft in _parents_first(frames):
            add_drafted_frame(edit, draft, loader)
        _add_noises(edit, frames.values())
        _add_twists(edit, frames.values())  # when the bodies are there that they refer to
        _add_stamps(edit, frames.values())
        _add_mimics(edit, frames)
        add_allowed(edit, drafts)
        _add_groups(edit, drafts)
    return edit.finish()


@contextmanager
def _reported(place: Place) -> Iterator[None]:
    """Report whatever the core refuses at a place."""
    try:
        yield
    except FileFormatError:
        raise
    except TmkitError as error:
        raise place.error(str(error)) from error


def frames_by_name(drafts: Iterable[FrameDraft]) -> dict[str, FrameDraft]:
    """Return the frames by name in the order of declaration; shapes that several files put on ``world`` are united."""
    frames: dict[str, FrameDraft] = {}
    for draft in drafts:
        earlier = frames.get(draft.name)
        if draft.name == WORLD and draft.parent is not None:
            raise draft.place.error(f"'{WORLD}' is the root of every scene and has no parent")
        if earlier is not None and draft.name != WORLD:
            raise draft.place.error(f"the frame '{draft.name}' is already declared at {earlier.place}")
        if draft.parent is None and (draft.pose != PoseDraft() or draft.joint.type != "fixed"):
            raise draft.place.error(f"'{draft.name}' is a root, so it has neither a pose nor a joint")
        frames[draft.name] = draft if earlier is None else _united(earlier, draft)
    aliases = _aliases(frames)
    for name, draft in frames.items():
        if draft.parent in aliases:
            frames[name] = replace(draft, parent=aliases[draft.parent])
    return frames


def _aliases(frames: Mapping[str, FrameDraft]) -> dict[str, str]:
    """Return the frames' other names that are nobody's own, and whose they are; of two frames the first has it."""
    found: dict[str, str] = {}
    for draft in frames.values():
        for alias in draft.aliases:
            if alias not in frames and alias != WORLD:
                found.setdefault(alias, draft.name)
    return found


def _united(first: FrameDraft, second: FrameDraft) -> FrameDraft:
    """Return the ``world`` of two files as one."""
    return FrameDraft(
        name=first.name,
        parent=None,
        place=first.place,
        classes=tuple(dict.fromkeys((*first.classes, *second.classes))),
        geometry=(*first.geometry, *second.geometry),
        inertia=first.inertia or second.inertia,
        attributes={**second.attributes, **first.attributes},
        twist=first.twist or second.twist,
    )


def _check_joint_names(frames: Iterable[FrameDraft]) -> None:
    """Refuse two joints of one name."""
    places: dict[str, Place] = {}
    for draft in frames:
        if draft.joint.type in ("fixed", "free"):
            continue
        name, place = draft.joint.name or draft.name, draft.joint.place or draft.place
        if name in places:
            raise place.error(f"the joint '{name}' is already declared at {places[name]}")
        places[name] = place


def _check_parents(frames: dict[str, FrameDraft]) -> None:
    """Refuse parents that nobody declares and frames that are their own ancestors."""
    safe = {WORLD}
    for draft in frames.values():
        path: dict[str, FrameDraft] = {}
        current = draft
        while current.name not in safe:
            if current.name in path:
                raise _cycle(list(path), current)
            path[current.name] = current
            if current.parent is None or current.parent == WORLD:
                break
            if current.parent not in frames:
                hint = did_you_mean(current.parent, [*frames, WORLD])
                reason = f"the frame '{current.name}' has the parent '{current.parent}', which no file declares{hint}"
                raise (current.parent_place or current.place).error(reason)
            current = frames[current.parent]
        safe.update(path)


def _cycle(path: list[str], first: FrameDraft) -> FileFormatError:
    """Return the error for frames that are each other's ancestors."""
    around = [*path[path.index(first.name) :], first.name]
    return (first.parent_place or first.place).error(f"the parents go round in a circle: {' -> '.join(around)}")


def _parents_first(frames: dict[str, FrameDraft]) -> Iterator[FrameDraft]:
    """Yield the frames in order of declaration, each after its ancestors."""
    done = {WORLD} if WORLD not in frames else set()
    for draft in frames.values():
        waiting: list[FrameDraft] = []
        current: FrameDraft | None = draft
        while current is not None and current.name not in done:
            waiting.append(current)
            current = frames.get(current.parent) if current.parent is not None else None
        for ready in reversed(waiting):
            done.add(ready.name)
            yield ready


def add_drafted_frame(edit: SceneEdit, draft: FrameDraft, loader: MeshLoader) -> None:
    """Add a frame with its shapes and mass; a mimic joint moves by itself until its leader is there."""
    shapes = [_attached(geometry, loader, draft.friction) for geometry in draft.geometry]
    with _reported(draft.place):
        if draft.parent is None:
            edit.add_root(draft.name, body=draft.body)
            edit.set_classes(draft.name, draft.classes)
            edit.set_shapes(draft.name, shapes)
        else:
            with _reported(draft.joint.place or draft.place):
                joint = _joint(draft.joint)
            pose = _moved_by_offset(pose_of(draft.pose), joint, draft.joint.offset)
            edit.add_frame(
                draft.name,
                draft.parent,
                pose=pose,
                joint=joint,
                body=draft.body,
                classes=draft.classes,
                shapes=shapes,
            )
        if draft.attributes:
            edit.set_attributes(draft.name, draft.attributes)
    if draft.inertia is not None:
        with _reported(draft.inertia.place):
            edit.set_inertia(draft.name, _inertia(draft.inertia, draft.geometry, shapes))


def _add_stamps(edit: SceneEdit, drafts: Iterable[FrameDraft]) -> None:
    """Say where frames were."""
    for draft in drafts:
        if draft.stamps is not None:
            with _reported(draft.place):
                edit.set_stamped_poses(draft.name, draft.stamps)


def _add_noises(edit: SceneEdit, drafts: Iterable[FrameDraft]) -> None:
    """Say how sure the poses of frames are."""
    for draft in drafts:
        if draft.noise is not None:
            with _reported(draft.place):
                edit.set_noise(draft.name, draft.noise)


def _add_twists(edit: SceneEdit, drafts: Iterable[FrameDraft]) -> None:
    """Say how frames move relative to bodies."""
    for draft in drafts:
        if draft.twist is not None:
            with _reported(draft.place):
                edit.set_twist(draft.name, *draft.twist)


def _add_mimics(edit: SceneEdit, frames: dict[str, FrameDraft]) -> None:
    """Tie every mimic joint to its leader, now that all joints are there."""
    leaders = {
        draft.joint.name or draft.name: draft for draft in frames.values() if draft.joint.type not in ("fixed", "free")
    }
    for draft in frames.values():
        mimic = draft.joint.mimic
        if mimic is None:
            continue
        if mimic.joint not in leaders:
            hint = did_you_mean(mimic.joint, leaders)
            raise mimic.place.error(f"the joint to mimic, '{mimic.joint}', is not a joint that moves{hint}")
        with _reported(mimic.place):
            rule = Mimic(mimic.joint, multiplier=mimic.multiplier, offset=mimic.offset)
            edit.set_joint(draft.name, _joint(draft.joint, mimic=rule))


def add_allowed(edit: SceneEdit, drafts: Iterable[SceneDraft]) -> None:
    """Let the pairs of frames touch that files allow.

    Raises:
        FileFormatError: there is no such frame.
    """
    drafts = tuple(drafts)
    aliases = _aliases({frame.name: frame for draft in drafts for frame in draft.frames})
    for draft in drafts:
        for pair in draft.allowed:
            _allow(edit, pair, aliases)


def _allow(edit: SceneEdit, pair: AllowedDraft, aliases: Mapping[str, str]) -> None:
    """Let two frames touch; the first reason given counts."""
    names = []
    for name, place in ((pair.first, pair.place), (pair.second, pair.second_place or pair.place)):
        tries = (name, aliases.get(name, name), whole_name(name))
        meant = next((found for found in tries if found in edit.scene), None)
        if meant is None:
            hint = did_you_mean(name, edit.scene.frame_names)
            raise place.error(f"allow_collision names the unknown frame '{name}'{hint}")
        names.append(meant)
    first, second = names
    if first == second and pair.first != pair.second:
        return  # two parts of one link
    with _reported(pair.place):
        if not edit.scene.is_allowed(first, second):
            edit.allow_collision(first, second, reason=pair.reason)


def _add_groups(edit: SceneEdit, drafts: Iterable[SceneDraft]) -> None:
    """Make the groups that files name; those of one name are united. They may hold each other in any order."""
    united: dict[str, GroupDraft] = {}
    for group in (group for draft in drafts for group in draft.groups):
        known = united.get(group.name, replace(group, frames=(), groups=()))
        frames, groups = (*known.frames, *group.frames), (*known.groups, *group.groups)
        united[group.name] = replace(known, frames=frames, groups=groups)
    for name in united:
        edit.set_group(name)
    for group in united.values():
        with _reported(group.place):
            edit.set_group(group.name, frames=group.frames, groups=group.groups)


def whole_name(name: str) -> str:
    """Return the link of which this is a part in the original's names, else the name."""
    return next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), name)


def pose_of(draft: PoseDraft) -> Pose:
    """Return the core's pose."""
    if draft.quat_xyzw is not None:
        return Pose(draft.translation, draft.quat_xyzw)
    return Pose.from_rpy(draft.translation, draft.rpy) if draft.rpy is not None else Pose(draft.translation)


def _joint(draft: JointDraft, *, mimic: Mimic | None = None) -> Joint:
    """Return the core's joint."""
    if draft.type == "fixed":
        return Fixed()
    if draft.type == "free":
        return Free()
    if draft.type == "continuous":
        return Continuous(
            draft.axis,
            velocity=draft.velocity,
            effort=draft.effort,
            damping=draft.damping,
            friction=draft.friction,
            name=draft.name,
            mimic=mimic,
        )
    make = Revolute if draft.type == "revolute" else Prismatic
    return make(
        draft.axis,
        lower=draft.lower,
        upper=draft.upper,
        velocity=draft.velocity,
        effort=draft.effort,
        damping=draft.damping,
        friction=draft.friction,
        name=draft.name,
        mimic=mimic,
    )


def zero_pose_of(draft: FrameDraft) -> Pose:
    """Return a frame's pose relative to its parent with its joint at zero."""
    return _moved_by_offset(pose_of(draft.pose), _joint(draft.joint), draft.joint.offset)


def _moved_by_offset(pose: Pose, joint: Joint, offset: float) -> Pose:
    """Return the pose of a frame whose joint value is counted from ``offset``."""
    if offset == 0.0:
        return pose
    motion = offset * np.asarray(joint.axis)
    zero = np.zeros(3)
    return pose @ Pose.exp(np.concatenate([motion, zero] if joint.type == "prismatic" else [zero, motion]))


def _attached(draft: GeometryDraft, loader: MeshLoader, friction: float | None) -> AttachedShape:
    """Return a shape on its frame."""
    with _reported(draft.place):
        shape = _shape(draft, loader)
        return AttachedShape(
            shape,
            pose_of(draft.pose),
            color=draft.color,
            visual=draft.visual,
            collision=draft.collision,
            friction=draft.friction if draft.friction is not None else friction if draft.collision else None,
            level=draft.level,
        )


def _shape(draft: GeometryDraft, loader: MeshLoader) -> Shape:
    """Return the core's shape."""
    if isinstance(draft.shape, MeshDraft):
        return loader.load(draft.shape, place=draft.place)
    if not isinstance(draft.shape, PrimitiveDraft):
        return draft.shape
    kind, sizes = draft.shape.kind, draft.shape.dimensions
    if kind == "box":
        return Box(sizes)
    if kind == "frustum":
        return frustum(*sizes)
    makers: dict[str, Callable[..., Shape]] = {
        "sphere": Sphere,
        "cylinder": Cylinder,
        "cone": Cone,
        "capsule": Capsule,
    }
    return makers[kind](*sizes)


def _inertia(draft: InertiaDraft, geometry: Sequence[GeometryDraft], shapes: Sequence[AttachedShape]) -> Inertia:
    """Return the core's inertia: as written, or spread evenly over the solids of the frame."""
    if draft.matrix is not None:
        origin = pose_of(draft.origin)
        ixx, ixy, ixz, iyy, iyz, izz = draft.matrix
        matrix = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
        if draft.origin.quat_xyzw is not None or draft.origin.rpy not in (None, (0.0, 0.0, 0.0)):
            matrix = origin.rotation @ matrix @ origin.rotation.T
            matrix = 0.5 * (matrix + matrix.T)
        return Inertia(draft.mass, origin.translation, matrix=matrix)
    own = [(shape, part.mass) for part, shape in zip(geometry, shapes, strict=True) if part.mass is not None]
    if own:
        return united_inertia([(shape.shape, shape.pose, mass) for shape, mass in own])
    solids = [shape for shape in shapes if shape.collision] or list(shapes)
    volume = sum(shape.shape.volume for shape in solids)
    if solids and not volume:
        raise ShapeError(
            "the shapes enclose no volume, or one too small for a number, that the mass could be spread over"
        )
    return united_inertia([(shape.shape, shape.pose, draft.mass * shape.shape.volume / volume) for shape in solids])
