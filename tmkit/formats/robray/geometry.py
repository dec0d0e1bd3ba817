"""Shapes of the robray language.

The language puts the origin of a cylinder or cone at the centre of its *base*, where tmkit's shapes are centred, so
those are moved up by half their height. A cone runs from ``start_radius`` at the base to ``end_radius`` (0 when left
out) at the top; two equal radii make a cylinder, two different ones a frustum. Of a negative height, either points down
from its base, towards -z. A ``grid`` is a floor pattern for the eye: it becomes a thin box in the x-y plane that does
not collide unless ``collision 1`` is written. ``scale`` multiplies the coordinates of a mesh, which is looked for
beside the file that names it and beside those that include that one.

A shape takes the sizes that concern it and leaves the others alone, since classes are combined freely; a shape beats a
mesh. That is how the original does it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tmkit._support.limits import is_file
from tmkit._support.source_location import SourceLocation
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.robray.values import Value
from tmkit.formats.spec.model import GeometrySpec, MeshSpec, PoseSpec, PrimitiveSpec

GRID_THICKNESS = 0.001  # metres, when none is written
DEFAULT_GREY = (0.7, 0.7, 0.7)  # of a shape that has an alpha and no colour


def geometry_of(values: Mapping[str, Value], *, place: SourceLocation, packages: PackageResolver) -> GeometrySpec:
    """Return the shape that a geometry block, completed by its classes, describes."""
    kind = _kind(values, place)
    pose = PoseSpec()
    shape: PrimitiveSpec | MeshSpec
    if kind == "mesh":
        shape = _mesh(values, packages)
    elif kind in ("cylinder", "cone"):
        shape, pose = _standing(kind, values, place)
    else:
        shape = _centred(kind, values, place)
    mass = values.get("mass")
    return GeometrySpec(
        shape=shape, place=place, pose=pose, color=_color(values), visual=_switch(values, "visual", otherwise=True),
        collision=_switch(values, "collision", otherwise=kind != "grid"),
        mass=mass.number if mass is not None else None,
    )  # fmt: skip


def _kind(values: Mapping[str, Value], place: SourceLocation) -> str:
    """Return the shape, ``"mesh"`` for a mesh; a shape beats a mesh."""
    if "shape" in values:
        return values["shape"].text
    if "mesh" not in values:
        raise place.error("a geometry needs a shape or a mesh, of its own or of a class")
    return "mesh"


def _number(kind: str, name: str, values: Mapping[str, Value], place: SourceLocation) -> float:
    """Return a size that the shape cannot do without."""
    if name not in values:
        raise place.error(f"a {kind} needs '{name}'")
    return values[name].number


def _centred(kind: str, values: Mapping[str, Value], place: SourceLocation) -> PrimitiveSpec:
    """Return a box, a sphere or a grid."""
    if kind == "sphere":
        return PrimitiveSpec("sphere", (_number(kind, "radius", values, place),))
    if "dimension" not in values:
        raise place.error(f"a {kind} needs 'dimension'")
    size = values["dimension"].numbers
    wanted = 3 if kind == "box" else 2
    if len(size) != wanted:
        raise values["dimension"].place.error(f"a {kind} has {wanted} dimensions, received {len(size)}")
    if kind == "grid":
        thickness = values["thickness"].number if "thickness" in values else GRID_THICKNESS
        size = (*size, thickness)
    return PrimitiveSpec("box", size)


def _standing(kind: str, values: Mapping[str, Value], place: SourceLocation) -> tuple[PrimitiveSpec, PoseSpec]:
    """Return a cylinder or cone, and the pose that puts its base at the origin."""
    height = _number(kind, "height", values, place)
    pose = PoseSpec((0.0, 0.0, 0.5 * height))
    if kind == "cylinder":
        return PrimitiveSpec("cylinder", (_number(kind, "radius", values, place), abs(height))), pose
    start = _number(kind, "start_radius", values, place)
    end = values["end_radius"].number if "end_radius" in values else 0.0
    if start == end == 0.0:
        raise values["start_radius"].place.error("a cone needs a radius above 0 at one end")
    if height < 0.0:
        start, end, height = end, start, -height
    if start == end:
        return PrimitiveSpec("cylinder", (start, height)), pose
    if end == 0.0:
        return PrimitiveSpec("cone", (start, height)), pose
    if start == 0.0:
        upside_down = PoseSpec(pose.translation, quat_xyzw=(1.0, 0.0, 0.0, 0.0))
        return PrimitiveSpec("cone", (end, height)), upside_down
    return PrimitiveSpec("frustum", (start, end, height)), pose


def _mesh(values: Mapping[str, Value], packages: PackageResolver) -> MeshSpec:
    """Return the mesh file and its scale."""
    mesh = values["mesh"]
    beside = [folder for folder in mesh.folders if mesh.text and is_file(folder / mesh.text)]
    path = packages.resolve_mesh(mesh.text, folder=(beside or mesh.folders)[0], place=mesh.place)
    factors = values["scale"].numbers if "scale" in values else (1.0,)
    x, y, z = factors * 3 if len(factors) == 1 else factors
    return MeshSpec(path, (x, y, z))


def _color(values: Mapping[str, Value]) -> tuple[float, float, float, float] | None:
    """Return the colour with its alpha, ``None`` when neither is written."""
    if "color" not in values and "alpha" not in values:
        return None
    red, green, blue = values["color"].numbers if "color" in values else DEFAULT_GREY
    return red, green, blue, values["alpha"].number if "alpha" in values else 1.0


def _switch(values: Mapping[str, Value], name: str, *, otherwise: bool) -> bool:
    """Return a truth value, ``otherwise`` when it is not written."""
    return bool(values[name].content) if name in values else otherwise
