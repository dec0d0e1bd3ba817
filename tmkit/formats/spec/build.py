"""Builder of scenes from specifications.

Frames keep the order of the files, except that the ancestors of a frame precede it. So the order of
joints in a configuration is that of their declarations.

Where no frame has this name, a frame may be named by an alias. Such a name is that of the joint
above a link, as in the original TMKit. In allowed pairs, ``LINK-visual``, ``LINK-collision`` and
``LINK-inertial`` also name the link, as the original names parts of links.

The builder checks names, because it has both locations of a conflict. The core checks all other
values, and its errors are reported at the location of the specification. The root ``world`` exists
without a declaration, and several files may add shapes to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import product
from tmkit._support.source_location import Note, SourceLocation, did_you_mean, locate_errors
from tmkit.errors import DuplicateNameError, SceneError, ShapeError
from tmkit.formats.mesh.materials import UNSPECIFIED, unpack_color
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.mesh.solids import combine_inertias, frustum
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
"""Name of the root that exists without a declaration."""

_PART_SUFFIXES = ("-visual", "-collision", "-inertial")
"""Suffixes of the frames of a link's parts in the original TMKit."""


def build_scene(specs: Sequence[SceneSpecification], *, loader: MeshLoader) -> SceneGraph:
    """Build one scene from specifications.

    Args:
        specs: specifications in the order of the files.
        loader: loader of meshes, with the limits of the load.

    Raises:
        FileFormatError: if a specification is invalid or conflicts with another, at its location.
    """
    is_whole = bool(specs) and all(spec.is_whole for spec in specs)
    frames = frames_by_name((spec for scene in specs for spec in scene.frames), is_whole=is_whole)
    if frames:
        last = next(reversed(frames.values()))
        loader.packages.limits.check_frame_count(len(frames), last.place.error)
    _check_joint_names(frames.values())
    _check_parents(frames)

    def parent(name: str) -> str | None:
        return frames[name].parent if frames[name].parent in frames else None

    needs_world = not frames or any(spec.parent == WORLD for spec in frames.values())
    with SceneGraph(root=None).edit() as edit:
        if needs_world and not is_whole and WORLD not in frames:
            edit.add_root(WORLD)
        for body in dict.fromkeys(body for spec in specs for body in spec.bodies_without_frames):
            edit.add_body(body)
        for name in parents_first(frames, parent):
            add_specified_frame(edit, frames[name], loader)
        _add_edges(edit, frames.values())  # after all bodies, to which twists refer
        _add_mimics(edit, frames)
        add_allowed(edit, specs)
        _add_groups(edit, specs)
    scene = edit.finish()
    if is_whole:
        scene = _reorder_frames(scene, list(frames))
    return _add_facts(scene, specs)


def _reorder_frames(scene: SceneGraph, names: Sequence[str]) -> SceneGraph:
    """Return the scene with its frames in the given order, in which a child may precede a parent.

    Args:
        scene: the scene.
        names: all frames, in the new order.
    """
    if scene.frame_names == tuple(names):
        return scene
    frames = [scene.specification(name) for name in names]
    reordered = SceneGraph.from_frames(
        frames, allowed=scene.allowed_pairs, bodies_without_frames=scene.bodies_without_frames
    )
    with reordered.edit() as edit:
        for name in scene.group_names:
            edit.set_group(name)
        for group in map(scene.group, scene.group_names):
            members = {"frames": group.frames, "groups": group.groups, "parents": group.parents}
            edit.set_group(group.name, **members, attributes=stamped_attributes(group))
    return edit.finish()


def _add_facts(scene: SceneGraph, specs: Iterable[SceneSpecification]) -> SceneGraph:
    """Return the scene with the relations of the specifications."""
    from tmkit import relations

    for fact in (fact for spec in specs for fact in spec.facts):
        with locate_errors(fact.place):
            coord = getattr(relations, f"{fact.kind}Coord")(*fact.notation)
            values = Pose.from_array(fact.numbers) if fact.kind == "Pose" else fact.numbers
            scene = add_fact(scene, getattr(relations, f"Semantic{fact.kind}")(coord, values))
    return scene


def frames_by_name(specs: Iterable[FrameSpec], *, is_whole: bool = False) -> dict[str, FrameSpec]:
    """Return the frames by name in the order of declaration.

    Several declarations of ``world`` are merged.

    Args:
        specs: the frames.
        is_whole: whether the specifications determine the whole scene.

    Raises:
        FileFormatError: if ``world`` has a parent, two frames have the same name, or a root has a
            pose or a joint.
    """
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
        frames[spec.name] = spec if earlier is None else _merge_worlds(earlier, spec)
    aliases = _aliases(frames)
    for name, spec in frames.items():
        if spec.parent in aliases:
            frames[name] = replace(spec, parent=aliases[spec.parent])
    return frames


def _aliases(frames: Mapping[str, FrameSpec]) -> dict[str, str]:
    """Return the frame of each alias that is not the name of a frame.

    If two frames have the same alias, it names the first.
    """
    aliases: dict[str, str] = {}
    for spec in frames.values():
        for alias in spec.aliases:
            if alias not in frames and alias != WORLD:
                aliases.setdefault(alias, spec.name)
    return aliases


def _merge_worlds(first: FrameSpec, second: FrameSpec) -> FrameSpec:
    """Return the union of two declarations of ``world``, with single values from the first."""
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
    """Check that joint names are unique.

    Raises:
        FileFormatError: if two joints have the same name.
    """
    places: dict[str, SourceLocation] = {}
    for spec in frames:
        if spec.joint.type in JOINTS_WITHOUT_VALUE:
            continue
        name, place = spec.joint.name or spec.name, spec.joint.place or spec.place
        if name in places:
            raise place.error(f"the joint '{name}' is already declared at {places[name]}")
        places[name] = place


def _check_parents(frames: dict[str, FrameSpec]) -> None:
    """Check that all parents are declared and form no cycle.

    Raises:
        FileFormatError: if a parent is unknown or a frame is its own ancestor.
    """
    valid = {WORLD} if WORLD not in frames or frames[WORLD].parent is None else set()
    for spec in frames.values():
        path: dict[str, FrameSpec] = {}
        frame = spec
        while frame.name not in valid:
            place = frame.parent_place or frame.place
            if frame.name in path:
                names = list(path)
                cycle = " -> ".join([*names[names.index(frame.name) :], frame.name])
                raise place.error(f"the parents form a cycle: {cycle}")
            path[frame.name] = frame
            if frame.parent is None or (frame.parent == WORLD and WORLD in valid):
                break
            if frame.parent not in frames:
                reason = f"the frame '{frame.name}' has the parent '{frame.parent}'"
                hint = did_you_mean(frame.parent, [*frames, WORLD])
                hint = hint or f"; load a file that declares '{frame.parent}', too"
                raise place.error(f"{reason}, which no file declares{hint}")
            frame = frames[frame.parent]
        valid.update(path)


def parents_first(frames: Iterable[str], parent: Callable[[str], str | None]) -> list[str]:
    """Return frames and their ancestors, each once and after its parent.

    Args:
        frames: names of frames, whose order is kept otherwise.
        parent: function that returns the parent of a frame, or None for a root.
    """
    ordered: dict[str, None] = {}
    for frame in frames:
        chain: list[str] = []
        ancestor: str | None = frame
        while ancestor is not None and ancestor not in ordered:
            chain.append(ancestor)
            ancestor = parent(ancestor)
        ordered.update(dict.fromkeys(reversed(chain)))
    return list(ordered)


def add_specified_frame(edit: SceneEdit, spec: FrameSpec, loader: MeshLoader) -> None:
    """Add a frame with its shapes and mass.

    A mimic joint is added as an independent joint.
    """
    solids = [_attach_shape(geometry, loader, spec.friction) for geometry in spec.geometry]
    shapes = [
        piece
        for geometry, solid in zip(spec.geometry, solids, strict=True)
        for part in _split_by_color(geometry, solid, loader)
        for piece in _pieces(geometry, part)
    ]
    with locate_errors(spec.place):
        if spec.body is not None:
            with suppress(DuplicateNameError):  # the body of several frames is added once
                edit.add_body(spec.body)
        if spec.parent is None:
            edit.add_root(spec.name, body=spec.body)
            edit.set_classes(spec.name, spec.classes)
            edit.set_shapes(spec.name, shapes)
        else:
            with locate_errors(spec.joint.place or spec.place):
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
        with locate_errors(spec.inertia.place):
            edit.set_inertia(spec.name, _inertia_of(spec, solids, loader.note))


def _attach_shape(
    spec: GeometrySpec, loader: MeshLoader, frame_friction: float | None
) -> AttachedShape:
    """Build a shape with its pose relative to the frame.

    Args:
        spec: the shape.
        loader: loader of meshes.
        frame_friction: coefficient of friction of a collision shape without its own.
    """
    friction = spec.friction
    if friction is None and spec.collision:
        friction = frame_friction
    with locate_errors(spec.place):
        return AttachedShape(
            _shape(spec, loader),
            pose_of(spec.pose),
            color=spec.color,
            visual=spec.visual,
            collision=spec.collision,
            friction=friction,
            level=None if spec.level == PIECES else spec.level,
        ).replace(stamp=spec.stamp)


def _pieces(spec: GeometrySpec, part: AttachedShape) -> Sequence[AttachedShape]:
    """Return a shape as its collision level requires."""
    if spec.level != PIECES:
        return (part,)
    with locate_errors(spec.place):
        return split_mesh(part)


def split_mesh(part: AttachedShape) -> Sequence[AttachedShape]:
    """Return a collision mesh as convex pieces, and its visual mesh; return other shapes as is."""
    if not part.collision or part.shape.kind != "mesh":
        return (part,)
    from tmkit.formats.convex_pieces import in_pieces

    return in_pieces(part)


def _split_by_color(
    spec: GeometrySpec, solid: AttachedShape, loader: MeshLoader
) -> Iterator[AttachedShape]:
    """Yield a visual shape for each colour of a mesh file, and the collision shape.

    A shape with at most one colour in its file is not split. The colour of the specification
    takes precedence over a single colour of the file, but not over several.
    """
    mesh = spec.shape if spec.visual and isinstance(spec.shape, MeshSpec) else None
    colors = [] if mesh is None else loader.colors(mesh)
    if mesh is None or len(colors) < 2:
        file_color = next((unpack_color(color) for color in colors if color != UNSPECIFIED), None)
        is_recolored = file_color is not None and spec.color is None
        yield _variant(solid, color=file_color) if is_recolored else solid
        return
    for number, color in enumerate(colors):
        shape = loader.load(replace(mesh, part=number), place=spec.place)
        part_color = spec.color if color == UNSPECIFIED else unpack_color(color)
        yield _variant(solid, shape=shape, color=part_color, collision=False)
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
    """Return a shape with another colour, and with other properties where given."""
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
    """Return an inertia, or with a note that of a point mass if no solid has such a matrix.

    Args:
        mass: mass [kg].
        center: (3,) centre of mass in the axes of the frame [m].
        matrix: (3, 3) inertia about the centre of mass in the axes of the frame [kg m^2].
        frame: name of the frame, for messages.
        place: location of the inertia.
        note: receiver of the note.

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
    """Return the inertia of a frame, either as specified or of its shapes with uniform density.

    Args:
        frame: the frame.
        shapes: built shapes of ``frame.geometry``.
        note: receiver of a note on an impossible inertia.

    Raises:
        SceneError: if the inertia is invalid.
        ShapeError: if the shapes have no volume.
    """
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
    masses = [
        (shape.shape, shape.pose, part.mass)
        for part, shape in zip(geometry, shapes, strict=True)
        if part.mass is not None
    ]
    if masses:
        return combine_inertias(masses)
    solids = [shape for shape in shapes if shape.collision] or list(shapes)
    volume = sum(shape.shape.volume for shape in solids)
    if solids and not volume:
        raise ShapeError("the mass cannot be spread over shapes without a representable volume")
    return combine_inertias(
        [(shape.shape, shape.pose, spec.mass * shape.shape.volume / volume) for shape in solids]
    )


def _add_edges(edit: SceneEdit, specs: Iterable[FrameSpec]) -> None:
    """Set the covariances of frames, their twists relative to bodies, and their stamped poses."""
    for spec in specs:
        with locate_errors(spec.place):
            if spec.noise is not None:
                edit.set_noise(spec.name, spec.noise)
            if spec.twist is not None:
                body, vector = spec.twist
                edit.set_twist(spec.name, vector, relative_to_body=body)
                edit.set_twist_noise(spec.name, spec.twist_noise)
            if spec.stamps is not None:
                edit.set_stamped_poses(spec.name, spec.stamps)


def _add_mimics(edit: SceneEdit, frames: dict[str, FrameSpec]) -> None:
    """Set the mimic rules, after all joints have been added.

    Raises:
        FileFormatError: if a leader is unknown or does not move.
    """
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
        with locate_errors(mimic.place):
            rule = Mimic(mimic.joint, multiplier=mimic.multiplier, offset=mimic.offset)
            edit.set_joint(spec.name, joint_of(spec.joint, mimic=rule))


def add_allowed(edit: SceneEdit, specs: Iterable[SceneSpecification]) -> None:
    """Add the allowed collision pairs of specifications.

    Raises:
        FileFormatError: if a frame is unknown.
    """
    specs = tuple(specs)
    aliases = _aliases({frame.name: frame for spec in specs for frame in spec.frames})
    for spec in specs:
        for pair in spec.allowed:
            _allow(edit, pair, aliases)


def _allow(edit: SceneEdit, pair: AllowedPairSpec, aliases: Mapping[str, str]) -> None:
    """Allow the contact of two frames. The first reason of a pair counts."""
    names = []
    for name, place in ((pair.first, pair.place), (pair.second, pair.second_place or pair.place)):
        candidates = (name, aliases.get(name, name), link_of_part(name))
        frame = next((candidate for candidate in candidates if candidate in edit.scene), None)
        if frame is None:
            hint = did_you_mean(name, edit.scene.frame_names)
            raise place.error(f"allow_collision names the unknown frame '{name}'{hint}")
        names.append(frame)
    first, second = names
    if first == second and pair.first != pair.second:
        return  # two parts of one link
    with locate_errors(pair.place):
        if not edit.scene.is_allowed(first, second):
            edit.allow_collision(first, second, reason=pair.reason)


def _add_groups(edit: SceneEdit, specs: Iterable[SceneSpecification]) -> None:
    """Add the groups of specifications, which may contain each other in any order.

    Groups of the same name are merged.
    """
    groups: dict[str, GroupSpec] = {}
    for group in (group for spec in specs for group in spec.groups):
        merged = groups.get(group.name, replace(group, frames=(), groups=(), parents=()))
        groups[group.name] = replace(
            merged,
            frames=(*merged.frames, *group.frames),
            groups=(*merged.groups, *group.groups),
            parents=(*merged.parents, *group.parents),
            attributes={**group.attributes, **merged.attributes},
        )
    for name in groups:
        edit.set_group(name)
    for group in groups.values():
        with locate_errors(group.place):
            members = {"frames": group.frames, "groups": group.groups, "parents": group.parents}
            edit.set_group(group.name, **members, attributes=group.attributes)


def find_frame(scene: SceneGraph, name: str) -> str | None:
    """Return the frame of a name in files of the original TMKit, or None.

    Args:
        scene: the scene.
        name: a frame, a joint that moves, or a part of a link such as ``wrist-collision``.
    """
    if name in scene.joint_names and name not in scene:
        return scene.joint_frame(name)
    return next((frame for frame in (name, link_of_part(name)) if frame in scene), None)


def link_of_part(name: str) -> str:
    """Return the link of a part of a link in the original TMKit, or the name of another frame."""
    suffix = next((suffix for suffix in _PART_SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(suffix)
