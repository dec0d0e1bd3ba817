"""Shapes and masses of SDF's links, read as URDF's are where both are the same."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tmkit._support.limits import is_file
from tmkit._support.xml import XmlElement
from tmkit.formats.mesh.frustum import ellipsoid
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.sdf.frames import Node, is_true, pose_of
from tmkit.formats.spec.model import GeometrySpec, InertiaSpec, MeshSpec, PoseSpec, PrimitiveSpec, Quadruple
from tmkit.formats.spec.values import primitive, spec_of_pose
from tmkit.formats.urdf.reader import inertia_of
from tmkit.formats.urdf.shapes import half_space, joined, one_of, simple_shape
from tmkit.graph import Plane

_DENSITY = 1000.0  # kg/m^3, of SDF
_ACCEPTED = ("box", "cylinder", "capsule", "sphere", "mesh", "cone", "ellipsoid", "plane")
_OTHERS = ("empty", "heightmap", "image", "polyline")


def content_of(link: Node, packages: PackageResolver) -> tuple[tuple[GeometrySpec, ...], InertiaSpec | None]:
    """Return the shapes of a link and its mass, ``None`` when it has none; that of ``auto`` is of its shapes."""
    shapes = joined(link.element, packages=packages, shape=partial(_shape, link, packages), color=_color)
    inertial = link.element.child("inertial")
    if inertial is None:
        return shapes, None
    if not is_true(inertial, "auto"):
        inertia = inertia_of(inertial)
        return shapes, None if inertia is None else replace(inertia, origin=_origin(inertial, link))
    density = inertial.not_negative("density", _DENSITY)
    masses = [density * primitive(part.shape.kind, part.shape.dimensions).volume
              if part.collision and isinstance(part.shape, PrimitiveSpec) else 0.0 for part in shapes]  # fmt: skip
    inertial.note("the mass is that of the boxes, cylinders and other simple shapes, of one density")
    weighed = tuple(replace(part, mass=mass or None) for part, mass in zip(shapes, masses, strict=True))
    return weighed, InertiaSpec(sum(masses), inertial.place) if any(masses) else None


def _origin(part: XmlElement, link: Node) -> PoseSpec:
    """Return the pose of a part of a link relative to the link."""
    pose, relative_to = pose_of(part)
    if relative_to:
        pose = link.in_world().inverse() @ link.inner.find(relative_to, part).in_world() @ pose
    return spec_of_pose(pose)


def _shape(link: Node, packages: PackageResolver, part: XmlElement) -> GeometrySpec | None:
    """Return the shape of a ``<visual>`` or ``<collision>``, ``None`` for one that is left out."""
    element = one_of(part.needed("geometry"), _ACCEPTED, others=_OTHERS)
    origin, spec = _origin(part, link), None
    if element.tag == "plane":
        spec = GeometrySpec(Plane(), element.place, half_space(element, origin))
    elif element.tag == "cone":
        sizes = element.positive("radius"), element.positive("length")
        spec = GeometrySpec(PrimitiveSpec("cone", sizes), element.place, origin)
    elif element.tag == "ellipsoid":
        radii = element.triple("radii")
        if min(radii) <= 0.0:
            raise element.place.error(f"'radii' of <ellipsoid>: expected numbers above 0, received '{radii}'")
        element.note("the ellipsoid is read as a mesh of 320 triangles")
        spec = GeometrySpec(ellipsoid(radii), element.place, origin)
    elif element.tag not in _OTHERS:
        if element.tag == "mesh":
            uri = element.needed("uri").text("value").replace("model://", "package://")
            if uri.startswith("/") and not is_file(Path(uri)):  # as Bullet reads it
                uri = uri.lstrip("/")
            element.element.set("filename", uri)
        spec = simple_shape(element, part.tag, origin, packages=packages)
        submesh = element.child("submesh")
        if submesh is not None and spec is not None and isinstance(spec.shape, MeshSpec):
            name, is_centred = submesh.text("name"), is_true(submesh, "center")
            spec = replace(spec, shape=replace(spec.shape, submesh=name, is_centred=is_centred))
    ode = part.element.find("surface/friction/ode")
    if spec is None or part.tag == "visual" or ode is None or ode.get("mu") is None:
        return spec
    return replace(spec, friction=part.around(ode).not_negative("mu", 0.0))


def _color(visual: XmlElement) -> Quadruple | None:
    """Return the colour of a visual: the diffuse one of its material, as transparent as the visual is."""
    material = visual.child("material")
    name = next((name for name in ("diffuse", "ambient") if material is not None and material.get(name)), None)
    if material is None or name is None:
        return None
    red, green, blue, alpha = (*material.numbers(name, (3, 4)), 1.0)[:4]
    alpha *= 1.0 - visual.number("transparency", 0.0)
    if not all(0.0 <= part <= 1.0 for part in (red, green, blue, alpha)):
        material.note(f"the colour of <{name}> is not of numbers from 0 to 1; it is left open")
        return None
    return red, green, blue, alpha
