"""Shapes and colours of robot descriptions.

A visual and a collision shape with equal geometry and pose become one shape with both purposes.

* Two extensions of Bullet are read: ``capsule``, and ``plane``, the half space below the plane.
* A collision shape of size 0 is rejected.
* A collision mesh that is missing or broken is rejected, unless the load only uses available
  meshes or none. A mesh without thickness gets a hull
  (:func:`tmkit.formats.mesh.solids.thicken_flat_mesh`).
* A visual shape of size 0, a visual mesh that is missing or broken, and Bullet's ``cdf`` are
  omitted, each with a note. An undefined material or invalid colour leaves the colour undefined,
  with a note. Errors of visuals never prevent a robot from loading.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tmkit._support.limits import is_system_error
from tmkit._support.source_location import Note, SourceLocation, did_you_mean
from tmkit._support.xml import XmlElement
from tmkit.errors import FileFormatError, MeshError
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.mesh.package_uris import VISUAL_AS_COLLISION, PackageResolver, real_path
from tmkit.formats.mesh.solids import THICKNESS, thicken_flat_mesh
from tmkit.formats.spec.model import SceneSpecification
from tmkit.formats.spec.parts import GeometrySpec, MeshSpec, PoseSpec, PrimitiveSpec, Quadruple
from tmkit.formats.spec.values import pose_of, spec_of_pose
from tmkit.graph import Plane
from tmkit.spatial import Pose

Materials = Mapping[str, Quadruple | None]
"""Colour by name of the material, None where it is undefined."""

_MIN_NORMAL_LENGTH = 1e-9
"""Length below which a normal has no direction."""

MIN_COS_SHORT_ROTATION = -1.0 + 1e-12
"""Cosine of an angle below which the shortest rotation between two directions is undefined."""


def origin_of(element: XmlElement) -> PoseSpec:
    """Return the pose in the ``<origin>`` of an element, by default the identity."""
    origin = element.child("origin")
    if origin is None:
        return PoseSpec()
    zero = (0.0, 0.0, 0.0)
    rpy = origin.triple("rpy", zero)
    return PoseSpec(origin.triple("xyz", zero), rpy=rpy if rpy != zero else None)


def materials_of(robot: XmlElement) -> dict[str, Quadruple | None]:
    """Return the colour of each material in the file. The first definition of a name counts."""
    materials: dict[str, Quadruple | None] = {}
    for material in robot.all("material"):
        name = material.get("name")
        if name and (material.child("color") is not None or material.child("texture") is not None):
            materials.setdefault(name, _color(material))
    return materials


def geometry_of(
    link: XmlElement, *, materials: Materials, packages: PackageResolver
) -> tuple[GeometrySpec, ...]:
    """Return the visual shapes of a link, merged with equal collision shapes, then the others."""
    return merge_shapes(
        link,
        packages=packages,
        shape=lambda purpose: _shape(purpose, packages),
        color=lambda visual: _visual_color(visual, materials),
    )


def merge_shapes(
    link: XmlElement,
    *,
    packages: PackageResolver,
    shape: Callable[[XmlElement], GeometrySpec | None],
    color: Callable[[XmlElement], Quadruple | None],
) -> tuple[GeometrySpec, ...]:
    """Return the visual shapes of a link, merged with equal collision shapes, then the others.

    Args:
        link: the link, with ``<visual>`` and ``<collision>`` children.
        packages: which meshes the load needs.
        shape: function that reads the shape of a ``<visual>`` or ``<collision>``.
        color: function that reads the colour of a ``<visual>``.
    """
    shapes: list[GeometrySpec] = []
    collisions = link.children("collision")
    is_solid = packages.meshes == VISUAL_AS_COLLISION and not collisions
    for visual in link.children("visual"):
        part = _read_shape(visual, shape, is_needed=is_solid)
        if part is not None:
            shapes.append(replace(part, color=color(visual), visual=True, collision=is_solid))
    for collision in collisions:
        solid = _read_shape(collision, shape, is_needed=packages.meshes != "available")
        if solid is None:
            continue
        for index, part in enumerate(shapes):
            is_equal = part.shape == solid.shape and part.pose == solid.pose
            if is_equal and part.visual and not part.collision:
                shapes[index] = replace(
                    part, collision=True, friction=solid.friction, mass=solid.mass
                )
                break
        else:
            shapes.append(replace(solid, visual=False, collision=True))
    return tuple(shapes)


def _color(material: XmlElement) -> Quadruple | None:
    """Return the colour of a material, or None if it has no valid colour."""
    color = material.child("color")
    if color is None:
        return None
    try:
        values = (*color.numbers("rgba", (3, 4)), 1.0)
        red, green, blue, alpha = values[:4]
    except FileFormatError as error:
        color.note(f"{error.data['reason']}; the colour is ignored")
        return None
    if not all(0.0 <= value <= 1.0 for value in (red, green, blue, alpha)):
        expected = f"expected numbers from 0 to 1, received '{color.get('rgba')}'"
        color.note(f"'rgba' of <color>: {expected}; the colour is ignored")
        return None
    return red, green, blue, alpha


def _visual_color(visual: XmlElement, materials: Materials) -> Quadruple | None:
    """Return the colour of a visual, either its own or the colour of a named material."""
    material = visual.child("material")
    if material is None:
        return None
    if material.child("color") is not None or material.child("texture") is not None:
        return _color(material)
    name = material.get("name")
    if not name:
        return None
    if name not in materials:
        material.note(f"the material '{name}' is undefined; the visual has no colour")
    return materials.get(name)


def _read_shape(
    purpose: XmlElement, shape: Callable[[XmlElement], GeometrySpec | None], *, is_needed: bool
) -> GeometrySpec | None:
    """Return the shape of a ``<visual>`` or ``<collision>``.

    Returns:
        None for an omitted shape, and with a note for a broken mesh that the load does not need.

    Raises:
        MeshError: if a needed mesh is missing or broken.
    """
    try:
        return shape(purpose)
    except MeshError as error:
        mesh = next(iter(purpose.all("mesh")), purpose)
        if is_needed:
            raise _add_advice(error, mesh.place) from None
        mesh.note(f"{error.data['reason']}; this {purpose.tag} shape is ignored")
        return None


def _add_advice(error: MeshError, place: SourceLocation) -> MeshError:
    """Return the error of a collision mesh with the option that loads the robot without it."""
    advice = (
        "to load the robot without it: --meshes available (ReadingOptions(meshes='available') in"
        " Python)"
    )
    reason = f"{error.data['reason']}; {advice}"
    return place.mesh_error(reason, mesh=str(error.data.get("mesh", "")))


def _shape(purpose: XmlElement, packages: PackageResolver) -> GeometrySpec | None:
    """Return the shape of a ``<visual>`` or ``<collision>`` with its pose, or None to omit it."""
    accepted = (*_READERS, "mesh")
    element = single_shape(purpose.required_child("geometry"), accepted, unlisted=("plane", "cdf"))
    origin = origin_of(purpose)
    if element.tag == "plane":
        element.note("<plane> is not URDF; it becomes the half space below it, as in Bullet")
        return GeometrySpec(Plane(), element.place, half_space(element, origin))
    if element.tag == "cdf":
        element.note(f"<cdf> is not URDF; this {purpose.tag} shape is ignored")
        return None
    return simple_shape(element, purpose.tag, origin, packages=packages)


def single_shape(
    geometry: XmlElement, accepted: Sequence[str], *, unlisted: Sequence[str] = ()
) -> XmlElement:
    """Return the only shape element of a ``<geometry>``.

    Args:
        geometry: the element.
        accepted: tags of shapes.
        unlisted: tags that are accepted too, but not listed in messages.

    Raises:
        FileFormatError: if there is no shape or more than one.
    """
    elements = [element for tag in (*accepted, *unlisted) for element in geometry.children(tag)]
    if len(elements) != 1:
        tags = [str(child.tag) for child in geometry.element if isinstance(child.tag, str)]
        received = f"received <{'>, <'.join(tags)}>" if tags else "it is empty"
        hint = did_you_mean(tags[0], accepted) if tags and not elements else ""
        raise geometry.place.error(
            f"<geometry>: expected one of {', '.join(sorted(accepted))}, {received}{hint}"
        )
    return elements[0]


def simple_shape(
    element: XmlElement, purpose: str, origin: PoseSpec, *, packages: PackageResolver
) -> GeometrySpec | None:
    """Return a box, cylinder, capsule, sphere or mesh with its pose.

    Args:
        element: element of the shape.
        purpose: "visual" or "collision".
        origin: frame_from_shape.
        packages: resolver of mesh URIs.

    Returns:
        None for a mesh that the load skips, and with a note for a visual shape of size 0.

    Raises:
        FileFormatError: if a collision shape has the size 0, or a number is invalid.
    """
    if element.tag == "mesh" and packages.meshes == "skip":
        return None
    shape = _mesh(element, packages) if element.tag == "mesh" else _READERS[element.tag](element)
    if shape is None and purpose == "collision":
        raise element.place.error(
            f"a {element.tag} of {_zero_size(element)} is not a collision shape"
        )
    if shape is None:
        element.note(f"<{element.tag}> has a size of 0; this {purpose} shape is ignored")
        return None
    return GeometrySpec(shape, element.place, origin)


def _zero_size(element: XmlElement) -> str:
    """Return the text of the attribute that makes the size of a shape 0."""
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


def _cylinder_or_capsule(element: XmlElement) -> PrimitiveSpec | None:
    """Return a cylinder or a capsule, centred as in URDF. A capsule of length 0 is a sphere."""
    radius, length = _size(element, "radius"), _size(element, "length")
    if radius > 0.0 and length == 0.0 and element.tag == "capsule":
        return PrimitiveSpec("sphere", (radius,))
    return PrimitiveSpec(element.tag, (radius, length)) if min(radius, length) > 0.0 else None


def _size(element: XmlElement, name: str) -> float:
    """Return a radius or a length, which is not negative [m]."""
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
    "cylinder": _cylinder_or_capsule,
    "capsule": _cylinder_or_capsule,
    "sphere": _sphere,
}
"""Reader of each primitive shape by tag; it returns None for a size of 0."""


def half_space(element: XmlElement, origin: PoseSpec) -> PoseSpec:
    """Return the pose of the half space below the plane of a ``<plane>`` through the origin."""
    normal = element.triple("normal", (0.0, 0.0, 1.0))
    length = math.hypot(*normal)
    if length < _MIN_NORMAL_LENGTH:
        raise element.place.error("'normal' of <plane>: expected a direction, received zeros")
    a, b, c = (value / length for value in normal)
    # This is the shortest rotation from z to the normal, or the half turn about x.
    is_defined = c > MIN_COS_SHORT_ROTATION
    quat_xyzw = (-b, a, 0.0, 1.0 + c) if is_defined else (1.0, 0.0, 0.0, 0.0)
    return spec_of_pose(pose_of(origin) @ Pose((0.0, 0.0, 0.0), quat_xyzw))


def keep_readable_meshes(
    robot: SceneSpecification, *, loader: MeshLoader, note: Note
) -> SceneSpecification:
    """Return the robot without unreadable meshes, and with a hull for each flat collision mesh.

    Args:
        robot: specification of the robot.
        loader: loader of the meshes.
        note: receiver of a note on each mesh that is omitted or gets a hull.

    Raises:
        MeshError: if a needed collision mesh is unreadable.
    """
    frames = []
    for frame in robot.frames:
        geometry = [solid for part in frame.geometry for solid in _load_shape(part, loader, note)]
        frames.append(replace(frame, geometry=tuple(geometry)))
    return replace(robot, frames=tuple(frames))


def _load_shape(part: GeometrySpec, loader: MeshLoader, note: Note) -> Iterator[GeometrySpec]:
    """Yield the readable specifications that replace a shape."""
    if not isinstance(part.shape, MeshSpec):
        yield part
        return
    try:
        mesh = loader.load(part.shape, place=part.place)
    except MeshError as error:
        # The file may be valid, so the robot must not load without this shape.
        if is_system_error(error):
            raise
        if part.collision and loader.packages.meshes != "available":
            raise _add_advice(error, part.place) from error
        purposes = (("visual", part.visual), ("collision", part.collision))
        kind = " and ".join(purpose for purpose, is_used in purposes if is_used)
        note(part.place, f"{error.data['reason']}; this {kind} shape is ignored")
        return
    solid = thicken_flat_mesh(mesh) if part.collision else None
    if solid is None:
        yield part
        return
    thickness = f"{1000.0 * THICKNESS:g} mm"
    reason = f"the mesh {part.shape.path.name} is flat"
    note(part.place, f"{reason}; in collisions it has a thickness of {thickness}")
    if part.visual:
        yield replace(part, collision=False)
    yield replace(part, shape=solid, visual=False)
