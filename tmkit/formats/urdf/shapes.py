"""Shapes and looks of robot descriptions.

A visual and a collision shape that are the same thing in the same place become one shape with both
purposes. Two extensions of Bullet are read: a ``capsule``, and a ``plane``, the half space below
it. A collision shape of size 0 is refused. With a note each, a visual shape of size 0 and Bullet's
``cdf`` are omitted. A material that is defined nowhere, or whose colour is none, leaves the colour
open. A visual mesh that is missing or broken is omitted. Looks never keep a robot from loading. A
collision mesh that is missing or broken is refused, unless the user wants only those that are
available, or none; one without any thickness gets a hull
(:func:`tmkit.formats.mesh.solids.thickened`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tmkit._support.limits import is_refused_by_system
from tmkit._support.source_location import Note, SourceLocation, did_you_mean
from tmkit._support.xml import XmlElement
from tmkit.errors import FileFormatError, MeshError
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.mesh.package_uris import VISUAL_AS_COLLISION, PackageResolver, real_path
from tmkit.formats.mesh.solids import THICKNESS, thickened
from tmkit.formats.spec.model import SceneSpecification
from tmkit.formats.spec.parts import GeometrySpec, MeshSpec, PoseSpec, PrimitiveSpec, Quadruple
from tmkit.formats.spec.values import pose_of, spec_of_pose
from tmkit.graph import Plane
from tmkit.spatial import Pose

Materials = Mapping[str, Quadruple | None]


def origin_of(element: XmlElement) -> PoseSpec:
    """Return the pose in the ``<origin>`` of an element, the identity when there is none."""
    origin = element.child("origin")
    if origin is None:
        return PoseSpec()
    zero = (0.0, 0.0, 0.0)
    rpy = origin.triple("rpy", zero)
    return PoseSpec(origin.triple("xyz", zero), rpy=rpy if rpy != zero else None)


def materials_of(robot: XmlElement) -> dict[str, Quadruple | None]:
    """Return the colours of all materials, wherever they are defined; the first definition of a name counts."""
    materials: dict[str, Quadruple | None] = {}
    for material in robot.all("material"):
        name = material.get("name")
        if name and (material.child("color") is not None or material.child("texture") is not None):
            materials.setdefault(name, _color(material))
    return materials


def geometry_of(
    link: XmlElement, *, materials: Materials, packages: PackageResolver
) -> tuple[GeometrySpec, ...]:
    """Return the shapes of a link: its visuals, joined with equal collisions, then the other collisions."""
    return joined(
        link,
        packages=packages,
        shape=lambda purpose: _shape(purpose, packages),
        color=lambda visual: _visual_color(visual, materials),
    )


def joined(
    link: XmlElement,
    *,
    packages: PackageResolver,
    shape: Callable[[XmlElement], GeometrySpec | None],
    color: Callable[[XmlElement], Quadruple | None],
) -> tuple[GeometrySpec, ...]:
    """Return visual shapes, joined with equal collisions, then the others, by readers of a shape and of a colour."""
    found = []
    collisions = link.children("collision")
    collides = packages.meshes == VISUAL_AS_COLLISION and not collisions
    for visual in link.children("visual"):
        drawn = _readable(visual, shape, is_needed=collides)
        if drawn is not None:
            found.append(replace(drawn, color=color(visual), visual=True, collision=collides))
    for collision in collisions:
        solid = _readable(collision, shape, is_needed=packages.meshes != "available")
        if solid is None:
            continue
        for index, drawn in enumerate(found):
            same = drawn.shape == solid.shape and drawn.pose == solid.pose
            if same and drawn.visual and not drawn.collision:
                found[index] = replace(
                    drawn, collision=True, friction=solid.friction, mass=solid.mass
                )
                break
        else:
            found.append(replace(solid, visual=False, collision=True))
    return tuple(found)


def _color(material: XmlElement) -> Quadruple | None:
    """Return the colour of a material, ``None`` when it says none or none that can be."""
    color = material.child("color")
    if color is None:
        return None
    try:
        red, green, blue, alpha = (*color.numbers("rgba", (3, 4)), 1.0)[:4]
    except FileFormatError as error:
        color.note(f"{error.data['reason']}; the colour is left open")
        return None
    if not all(0.0 <= part <= 1.0 for part in (red, green, blue, alpha)):
        received = f"received '{color.get('rgba')}'"
        color.note(
            f"'rgba' of <color>: expected numbers from 0 to 1, {received}; the colour is left open"
        )
        return None
    return red, green, blue, alpha


def _visual_color(visual: XmlElement, materials: Materials) -> Quadruple | None:
    """Return the colour of a visual, its own or that of the material it names."""
    material = visual.child("material")
    if material is None:
        return None
    if material.child("color") is not None or material.child("texture") is not None:
        return _color(material)
    name = material.get("name")
    if not name:
        return None
    if name not in materials:
        material.note(f"the material '{name}' is defined nowhere; the colour is left open")
    return materials.get(name)


def _readable(
    purpose: XmlElement, shape: Callable[[XmlElement], GeometrySpec | None], *, is_needed: bool
) -> GeometrySpec | None:
    """Return a shape in its place, ``None`` with a note for a mesh that the robot can do without."""
    try:
        return shape(purpose)
    except MeshError as error:
        mesh = next(iter(purpose.all("mesh")), purpose)
        if is_needed:
            raise _with_advice(error, mesh.place) from None
        mesh.note(f"{error.data['reason']}; this {purpose.tag} shape is ignored")
        return None


def _with_advice(error: MeshError, place: SourceLocation) -> MeshError:
    """Return the error of a collision mesh, extended by how to load the robot without it."""
    advice = (
        "to load the robot without it: --meshes available (ReadingOptions(meshes='available') in"
        " Python)"
    )
    return place.mesh_error(
        f"{error.data['reason']}; {advice}", mesh=str(error.data.get("mesh", ""))
    )


def _shape(purpose: XmlElement, packages: PackageResolver) -> GeometrySpec | None:
    """Return the shape of a ``<visual>`` or ``<collision>`` in its place, ``None`` for one that is omitted."""
    element = one_of(purpose.needed("geometry"), (*_READERS, "mesh"), others=("plane", "cdf"))
    origin = origin_of(purpose)
    if element.tag == "plane":
        element.note("<plane> is not URDF; it becomes the half space below it, as in Bullet")
        return GeometrySpec(Plane(), element.place, half_space(element, origin))
    if element.tag == "cdf":
        element.note(f"<cdf> is not URDF; this {purpose.tag} shape is ignored")
        return None
    return simple_shape(element, purpose.tag, origin, packages=packages)


def one_of(
    geometry: XmlElement, accepted: Sequence[str], *, others: Sequence[str] = ()
) -> XmlElement:
    """Return the one shape that a ``<geometry>`` has, of the accepted ones or of others that messages do not name."""
    found = [element for tag in (*accepted, *others) for element in geometry.children(tag)]
    if len(found) != 1:
        inside = [str(child.tag) for child in geometry.element if isinstance(child.tag, str)]
        received = f"received <{'>, <'.join(inside)}>" if inside else "it is empty"
        hint = did_you_mean(inside[0], accepted) if inside and not found else ""
        raise geometry.place.error(
            f"<geometry>: expected one of {', '.join(sorted(accepted))}, {received}{hint}"
        )
    return found[0]


def simple_shape(
    element: XmlElement, purpose: str, origin: PoseSpec, *, packages: PackageResolver
) -> GeometrySpec | None:
    """Return a box, cylinder, capsule, sphere or mesh in its place, ``None`` for one that is omitted."""
    if element.tag == "mesh" and packages.meshes == "skip":
        return None
    shape = _mesh(element, packages) if element.tag == "mesh" else _READERS[element.tag](element)
    if shape is None and purpose == "collision":
        raise element.place.error(f"a {element.tag} of {_zero_size(element)} is no collision shape")
    if shape is None:
        element.note(f"<{element.tag}> has a size of 0; this {purpose} shape is ignored")
        return None
    return GeometrySpec(shape, element.place, origin)


def _zero_size(element: XmlElement) -> str:
    """Return the attribute by which a shape has a size of 0, as written."""
    if element.tag in ("box", "mesh"):
        name = "size" if element.tag == "box" else "scale"
        return f"{name} '{element.get(name)}'"
    return "radius 0" if element.number("radius") == 0.0 else "length 0"


def _box(element: XmlElement) -> PrimitiveSpec | None:
    size = element.triple("size")
    if min(size) < 0.0:
        raise element.place.error(
            f"'size' of <box>: expected numbers above 0, received '{element.get('size')}'"
        )
    return PrimitiveSpec("box", size) if min(size) > 0.0 else None


def _sphere(element: XmlElement) -> PrimitiveSpec | None:
    radius = _size(element, "radius")
    return PrimitiveSpec("sphere", (radius,)) if radius > 0.0 else None


def _round(element: XmlElement) -> PrimitiveSpec | None:
    """Return a cylinder or a capsule, centred as in URDF; a capsule of length 0 is a sphere."""
    radius, length = _size(element, "radius"), _size(element, "length")
    if radius > 0.0 and length == 0.0 and element.tag == "capsule":
        return PrimitiveSpec("sphere", (radius,))
    return PrimitiveSpec(element.tag, (radius, length)) if min(radius, length) > 0.0 else None


def _size(element: XmlElement, name: str) -> float:
    """Return a radius or a length, which may be 0 but not below."""
    return element.positive(name) if element.number(name) != 0.0 else 0.0


def _mesh(element: XmlElement, packages: PackageResolver) -> MeshSpec | None:
    name = element.text("filename")
    factors = element.numbers("scale", (1, 3)) if element.get("scale") is not None else (1.0,)
    x, y, z = factors * 3 if len(factors) == 1 else factors
    path = packages.resolve_mesh(
        name, folder=element.path.parent, place=element.place, note=element.file.note
    )
    return MeshSpec(real_path(path), (x, y, z)) if x or y or z else None


_READERS: Mapping[str, Callable[[XmlElement], PrimitiveSpec | None]] = {
    "box": _box,
    "cylinder": _round,
    "capsule": _round,
    "sphere": _sphere,
}


def half_space(element: XmlElement, origin: PoseSpec) -> PoseSpec:
    """Return the pose of the half space below the plane of a ``<plane>`` through the origin."""
    normal = element.triple("normal", (0.0, 0.0, 1.0))
    length = math.hypot(*normal)
    if length < 1e-9:
        raise element.place.error("'normal' of <plane>: expected a direction, received zeros")
    a, b, c = (part / length for part in normal)
    # takes z to the normal, the short way
    turn = (-b, a, 0.0, 1.0 + c) if c > -1.0 + 1e-12 else (1.0, 0.0, 0.0, 0.0)
    return spec_of_pose(pose_of(origin) @ Pose((0.0, 0.0, 0.0), turn))


def with_readable_meshes(
    robot: SceneSpecification, *, loader: MeshLoader, note: Note
) -> SceneSpecification:
    """Return the specification of a robot whose meshes can all be read, and whose collision meshes all have a hull."""
    frames = [
        replace(
            frame,
            geometry=tuple(
                kept for part in frame.geometry for kept in _loadable(part, loader, note)
            ),
        )
        for frame in robot.frames
    ]
    return replace(robot, frames=tuple(frames))


def _loadable(part: GeometrySpec, loader: MeshLoader, note: Note) -> Iterator[GeometrySpec]:
    if not isinstance(part.shape, MeshSpec):
        yield part
        return
    try:
        mesh = loader.load(part.shape, place=part.place)
    except MeshError as error:
        if is_refused_by_system(error):  # a robot without its shapes would be another one
            raise
        if part.collision and loader.packages.meshes != "available":
            raise _with_advice(error, part.place) from error
        kind = " and ".join(
            word
            for word, there in (("visual", part.visual), ("collision", part.collision))
            if there
        )
        note(part.place, f"{error.data['reason']}; this {kind} shape is ignored")
        return
    solid = thickened(mesh) if part.collision else None
    if solid is None:
        yield part
        return
    note(
        part.place,
        f"the mesh {part.shape.path.name} is flat; in collisions it has a thickness of"
        f" {1000.0 * THICKNESS:g} mm",
    )
    if part.visual:
        yield replace(part, collision=False)
    yield replace(part, shape=solid, visual=False)
