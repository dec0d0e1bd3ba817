"""From specifications to a scene.

Frames are added in the order of the files, except that the ancestors of a frame are added just
before it. So the order of the joints in a configuration is the order in which the files declare
them.

A frame may be named by an alias where no frame is called so. A link may be named by the joint above
it, as the original TMKit names it. In allowed pairs it may also be named by ``LINK-visual``,
``LINK-collision`` and ``LINK-inertial``, the original's names of the parts of a link.

Names are checked here, where both places are known; everything else is checked by the core, and its
errors are reported at the location of the specification. ``world`` is special: it is the root that
exists without being declared, and several files may put shapes on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import product
from tmkit._support.source_location import Note, SourceLocation, did_you_mean, reported
from tmkit.errors import DuplicateNameError, SceneError, ShapeError
from tmkit.formats.mesh.materials import UNSPECIFIED, unpack_color
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.mesh.solids import frustum, united_inertia
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, GroupSpec, SceneSpecification
from tmkit.formats.spec.parts import (
    JOINTS_WITHOUT_VALUE,
    PIECES,
    GeometrySpec,
    MeshSpec,
    PoseSpec,
    PrimitiveSpec,
    Quadruple,
)
from tmkit.formats.spec.values import joint_of, pose_of, primitive, zero_pose_of
from tmkit.graph import AttachedShape, Inertia, Mimic, SceneEdit, SceneGraph, Shape, add_fact
from tmkit.graph.traversal import stamped_attributes
from tmkit.spatial import Pose

WORLD = "world"

# frames of a link's parts in the original TMKit, here the link itself
_PARTS = ("-visual", "-collision", "-inertial")


def build_scene(specs: Sequence[SceneSpecification], *, loader: MeshLoader) -> SceneGraph:
    """Build one scene from everything that was read; what is wrong is an error at its place in its file."""
    is_whole = bool(specs) and all(spec.is_whole for spec in specs)
    frames = frames_by_name((spec for scene in specs for spec in scene.frames), is_whole=is_whole)
    if frames:
        loader.packages.limits.refuse_frames(
            len(frames), next(reversed(frames.values())).place.error
        )
    _check_joint_names(frames.values())
    _check_parents(frames)
    with SceneGraph(root=None).edit() as edit:
        if (
            not is_whole
            and WORLD not in frames
            and (not frames or any(spec.parent == WORLD for spec in frames.values()))
        ):
            edit.add_root(WORLD)
        for body in dict.fromkeys(body for spec in specs for body in spec.bodies_without_frames):
            edit.add_body(body)
        for name in parents_first(
            frames, lambda name: frames[name].parent if frames[name].parent in frames else None
        ):
            add_specified_frame(edit, frames[name], loader)
        _add_edges(edit, frames.values())  # when the bodies are there that twists refer to
        _add_mimics(edit, frames)
        add_allowed(edit, specs)
        _add_groups(edit, specs)
    scene = edit.finish()
    if is_whole:
        scene = _in_order(scene, list(frames))
    return _with_facts(scene, specs)


def _in_order(scene: SceneGraph, names: Sequence[str]) -> SceneGraph:
    """Return the scene with its frames in this order, in which a child may come before its parent."""
    if scene.frame_names == tuple(names):
        return scene
    frames = [scene.specification(name) for name in names]
    made = SceneGraph.from_frames(
        frames, allowed=scene.allowed_pairs, bodies_without_frames=scene.bodies_without_frames
    )
    with made.edit() as edit:
        for name in scene.group_names:
            edit.set_group(name)
        for group in map(scene.group, scene.group_names):
            members = {"frames": group.frames, "groups": group.groups, "parents": group.parents}
            edit.set_group(group.name, **members, attributes=stamped_attributes(group))
    return edit.finish()


def _with_facts(scene: SceneGraph, specs: Iterable[SceneSpecification]) -> SceneGraph:
    """Return the scene in which the relations of files hold too."""
    from tmkit import relations

    for fact in (fact for spec in specs for fact in spec.facts):
        with reported(fact.place):
            coord = getattr(relations, f"{fact.kind}Coord")(*fact.notation)
            values = Pose.from_array(fact.numbers) if fact.kind == "Pose" else fact.numbers
            scene = add_fact(scene, getattr(relations, f"Semantic{fact.kind}")(coord, values))
    return scene


def frames_by_name(specs: Iterable[FrameSpec], *, is_whole: bool = False) -> dict[str, FrameSpec]:
    """Return the frames by name in the order of declaration; shapes that several files put on ``world`` are united."""
    frames: dict[str, FrameSpec] = {}
    for spec in specs:
        earlier = frames.get(spec.name)
        if spec.name == WORLD and spec.parent is not None and not is_whole:
            raise spec.place.error(f"'{WORLD}' is the root of every scene and has no parent")
        if earlier is not None and spec.name != WORLD:
            raise spec.place.error(
                f"the frame '{spec.name}' is already declared at {earlier.place}"
            )
        if spec.parent is None and (spec.pose != PoseSpec() or spec.joint.type != "fixed"):
            raise spec.place.error(f"'{spec.name}' is a root, so it has neither a pose nor a joint")
        frames[spec.name] = spec if earlier is None else _united(earlier, spec)
    aliases = _aliases(frames)
    for name, spec in frames.items():
        if spec.parent in aliases:
            frames[name] = replace(spec, parent=aliases[spec.parent])
    return frames


def _aliases(frames: Mapping[str, FrameSpec]) -> dict[str, str]:
    """Return the alternative names that are no frame's own name, with their frames; the first of two frames has it."""
    found: dict[str, str] = {}
    for spec in frames.values():
        for alias in spec.aliases:
            if alias not in frames and alias != WORLD:
                found.setdefault(alias, spec.name)
    return found


def _united(first: FrameSpec, second: FrameSpec) -> FrameSpec:
    return FrameSpec(
        name=first.name,
        parent=None,
        place=first.place,
        classes=tuple(dict.fromkeys((*first.classes, *second.classes))),
        geometry=(*first.geometry, *second.geometry),
        inertia=first.inertia or second.inertia,
        attributes={**second.attributes, **first.attributes},
        twist=first.twist or second.twist,
        twist_noise=first.twist_noise if first.twist else second.twist_noise,
    )


def _check_joint_names(frames: Iterable[FrameSpec]) -> None:
    """Refuse two joints of one name."""
    places: dict[str, SourceLocation] = {}
    for spec in frames:
        if spec.joint.type in JOINTS_WITHOUT_VALUE:
            continue
        name, place = spec.joint.name or spec.name, spec.joint.place or spec.place
        if name in places:
            raise place.error(f"the joint '{name}' is already declared at {places[name]}")
        places[name] = place


def _check_parents(frames: dict[str, FrameSpec]) -> None:
    """Refuse undeclared parents and frames that are their own ancestors."""
    safe = {WORLD} if WORLD not in frames or frames[WORLD].parent is None else set()
    for spec in frames.values():
        path: dict[str, FrameSpec] = {}
        current = spec
        while current.name not in safe:
            if current.name in path:
                around = " -> ".join([*list(path)[list(path).index(current.name) :], current.name])
                raise (current.parent_place or current.place).error(
                    f"the parents form a cycle: {around}"
                )
            path[current.name] = current
            if current.parent is None or (current.parent == WORLD and WORLD in safe):
                break
            if current.parent not in frames:
                hint = did_you_mean(current.parent, [*frames, WORLD])
                reason = (
                    f"the frame '{current.name}' has the parent '{current.parent}', which no file"
                    f" declares{hint}"
                )
                reason += "" if hint else f"; load a file that declares '{current.parent}', too"
                raise (current.parent_place or current.place).error(reason)
            current = frames[current.parent]
        safe.update(path)


def parents_first(frames: Iterable[str], parent: Callable[[str], str | None]) -> list[str]:
    """Return frames, each once and after its ancestors, as ``parent`` gives them, otherwise in the given order."""
    ordered: dict[str, None] = {}
    for frame in frames:
        chain: list[str] = []
        above: str | None = frame
        while above is not None and above not in ordered:
            chain.append(above)
            above = parent(above)
        ordered.update(dict.fromkeys(reversed(chain)))
    return list(ordered)


def add_specified_frame(edit: SceneEdit, spec: FrameSpec, loader: MeshLoader) -> None:
    """Add a frame with its shapes and mass; a mimic joint is added as an independent joint first."""
    solids = [_attached_of(geometry, loader, spec.friction) for geometry in spec.geometry]
    shapes = [
        piece
        for one, solid in zip(spec.geometry, solids, strict=True)
        for part in _in_colors(one, solid, loader)
        for piece in _pieces_of(one, part)
    ]
    with reported(spec.place):
        if spec.body is not None:
            with suppress(DuplicateNameError):  # of its first frame
                edit.add_body(spec.body)
        if spec.parent is None:
            edit.add_root(spec.name, body=spec.body)
            edit.set_classes(spec.name, spec.classes)
            edit.set_shapes(spec.name, shapes)
        else:
            with reported(spec.joint.place or spec.place):
                joint = joint_of(spec.joint)
            edit.add_frame(
                spec.name,
                spec.parent,
                pose=zero_pose_of(spec),
                joint=joint,
                body=spec.body,
                classes=spec.classes,
                shapes=shapes,
            )
        if spec.attributes:
            edit.set_attributes(spec.name, spec.attributes)
    if spec.inertia is not None:
        with reported(spec.inertia.place):
            edit.set_inertia(spec.name, _inertia_of(spec, solids, loader.note))


def _attached_of(spec: GeometrySpec, loader: MeshLoader, friction: float | None) -> AttachedShape:
    """Return a shape with its pose on the frame, whose friction counts if the shape has none."""
    with reported(spec.place):
        shape = _shape(spec, loader)
        return AttachedShape(
            shape,
            pose_of(spec.pose),
            color=spec.color,
            visual=spec.visual,
            collision=spec.collision,
            friction=(
                spec.friction if spec.friction is not None else friction if spec.collision else None
            ),
            level=None if spec.level == PIECES else spec.level,
        ).replace(stamp=spec.stamp)


def _pieces_of(spec: GeometrySpec, part: AttachedShape) -> Sequence[AttachedShape]:
    if spec.level != PIECES:
        return (part,)
    with reported(spec.place):
        return mesh_in_pieces(part)


def mesh_in_pieces(part: AttachedShape) -> Sequence[AttachedShape]:
    """Return a mesh that collides in its convex pieces, beside itself as it is drawn; any other shape as it is."""
    if not part.collision or part.shape.kind != "mesh":
        return (part,)
    from tmkit.formats.convex_pieces import in_pieces

    return in_pieces(part)


def _in_colors(
    spec: GeometrySpec, solid: AttachedShape, loader: MeshLoader
) -> Iterator[AttachedShape]:
    """Yield a shape as it is, or one that is only drawn for each colour of its mesh file, and one that collides.

    Several colours of a file count more than the one colour of a description, which counts more
    than one of a file.
    """
    mesh = spec.shape if spec.visual and isinstance(spec.shape, MeshSpec) else None
    colors = [] if mesh is None else loader.colors(mesh)
    if mesh is None or len(colors) < 2:
        one = next((unpack_color(color) for color in colors if color != UNSPECIFIED), None)
        yield solid if one is None or spec.color is not None else _variant(solid, color=one)
        return
    for number, color in enumerate(colors):
        shape = loader.load(replace(mesh, part=number), place=spec.place)
        yield _variant(
            solid,
            shape=shape,
            color=spec.color if color == UNSPECIFIED else unpack_color(color),
            collision=False,
        )
    if solid.collision:
        yield _variant(solid, visual=False)


def _variant(
    part: AttachedShape,
    *,
    shape: Shape | None = None,
    color: Quadruple | None = None,
    visual: bool = True,
    collision: bool | None = None,
) -> AttachedShape:
    """Return a shape with some of its properties changed; the colour is always."""
    return AttachedShape(
        part.shape if shape is None else shape,
        part.pose,
        color=color,
        visual=visual,
        collision=part.collision if collision is None else collision,
        friction=part.friction,
        level=part.level,
    ).replace(stamp=part.stamp)


def _shape(spec: GeometrySpec, loader: MeshLoader) -> Shape:
    if isinstance(spec.shape, MeshSpec):
        return loader.load(spec.shape, place=spec.place)
    if not isinstance(spec.shape, PrimitiveSpec):
        return spec.shape
    kind, sizes = spec.shape.kind, spec.shape.dimensions
    return frustum(*sizes) if kind == "frustum" else primitive(kind, sizes)


def inertia_or_point_mass(
    mass: float,
    center: npt.ArrayLike,
    matrix: npt.NDArray[np.float64],
    *,
    frame: str,
    place: SourceLocation,
    note: Note,
) -> Inertia:
    """Return an inertia, with a note that of a point mass where no solid has such a matrix.

    Raises:
        SceneError: if the mass is not positive, or a number is not finite.
    """
    point = Inertia(mass, center)
    if not np.isfinite(matrix).all():
        raise SceneError("inertia matrix must be finite")
    try:
        return Inertia(mass, center, matrix=matrix)
    except SceneError as error:
        note(place, f"'{frame}': {error}; it is taken as that of a point mass")
        return point


def _inertia_of(frame: FrameSpec, shapes: Sequence[AttachedShape], note: Note) -> Inertia:
    """Return the inertia of a frame: as specified, or of its solids with uniform density."""
    spec, geometry = frame.inertia, frame.geometry
    assert spec is not None
    if spec.matrix is not None:
        origin = pose_of(spec.origin)
        ixx, ixy, ixz, iyy, iyz, izz = spec.matrix
        matrix = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
        if spec.origin.quat_xyzw is not None or spec.origin.rpy not in (None, (0.0, 0.0, 0.0)):
            matrix = product(origin.rotation, matrix, origin.rotation.T)
            matrix = 0.5 * (matrix + matrix.T)
        return inertia_or_point_mass(
            spec.mass, origin.translation, matrix, frame=frame.name, place=spec.place, note=note
        )
    own = [
        (shape, part.mass)
        for part, shape in zip(geometry, shapes, strict=True)
        if part.mass is not None
    ]
    if own:
        return united_inertia([(shape.shape, shape.pose, mass) for shape, mass in own])
    solids = [shape for shape in shapes if shape.collision] or list(shapes)
    volume = sum(shape.shape.volume for shape in solids)
    if solids and not volume:
        raise ShapeError(
            "the shapes enclose no volume, or one too small for a number, that the mass could be"
            " spread over"
        )
    return united_inertia(
        [(shape.shape, shape.pose, spec.mass * shape.shape.volume / volume) for shape in solids]
    )


def _add_edges(edit: SceneEdit, specs: Iterable[FrameSpec]) -> None:
    """Set the covariances of frames, their twists relative to bodies, and where they were."""
    for spec in specs:
        with reported(spec.place):
            if spec.noise is not None:
                edit.set_noise(spec.name, spec.noise)
            if spec.twist is not None:
                body, vector = spec.twist
                edit.set_twist(spec.name, vector, relative_to_body=body)
                edit.set_twist_noise(spec.name, spec.twist_noise)
            if spec.stamps is not None:
                edit.set_stamped_poses(spec.name, spec.stamps)


def _add_mimics(edit: SceneEdit, frames: dict[str, FrameSpec]) -> None:
    """Tie every mimic joint to its leader, now that all joints are there."""
    leaders = {
        spec.joint.name or spec.name: spec
        for spec in frames.values()
        if spec.joint.type not in JOINTS_WITHOUT_VALUE
    }
    for spec in frames.values():
        mimic = spec.joint.mimic
        if mimic is None:
            continue
        if mimic.joint not in leaders:
            hint = did_you_mean(mimic.joint, leaders)
            raise mimic.place.error(
                f"the joint to mimic, '{mimic.joint}', is not a joint that moves{hint}"
            )
        with reported(mimic.place):
            rule = Mimic(mimic.joint, multiplier=mimic.multiplier, offset=mimic.offset)
            edit.set_joint(spec.name, joint_of(spec.joint, mimic=rule))


def add_allowed(edit: SceneEdit, specs: Iterable[SceneSpecification]) -> None:
    """Add the allowed collision pairs of files."""
    specs = tuple(specs)
    aliases = _aliases({frame.name: frame for spec in specs for frame in spec.frames})
    for spec in specs:
        for pair in spec.allowed:
            _allow(edit, pair, aliases)


def _allow(edit: SceneEdit, pair: AllowedPairSpec, aliases: Mapping[str, str]) -> None:
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
    with reported(pair.place):
        if not edit.scene.is_allowed(first, second):
            edit.allow_collision(first, second, reason=pair.reason)


def _add_groups(edit: SceneEdit, specs: Iterable[SceneSpecification]) -> None:
    """Make the groups that files name; those of one name are united. They may hold each other in any order."""
    united: dict[str, GroupSpec] = {}
    for group in (group for spec in specs for group in spec.groups):
        known = united.get(group.name, replace(group, frames=(), groups=(), parents=()))
        united[group.name] = replace(
            known,
            frames=(*known.frames, *group.frames),
            groups=(*known.groups, *group.groups),
            parents=(*known.parents, *group.parents),
            attributes={**group.attributes, **known.attributes},
        )
    for name in united:
        edit.set_group(name)
    for group in united.values():
        with reported(group.place):
            members = {"frames": group.frames, "groups": group.groups, "parents": group.parents}
            edit.set_group(group.name, **members, attributes=group.attributes)


def whole_name(name: str) -> str:
    """Return the link of which this is a part in the original's names, else the name."""
    return next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), name)
