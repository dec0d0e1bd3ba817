"""Writer of scenes in the robray language.

The language expresses less than a scene. For example, a joint has no velocity limit, and a mass is
distributed over the shapes. This module writes the expressible part, frame by frame, each number
with the shortest digits that give the same bits. :func:`tmkit.formats.convert_scene` reads the text
back, and raises an error if the scene differs.

Meshes become OBJ files in the folder of the text, one for each content.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tmkit.errors import SceneError
from tmkit.formats.robray.reader import KNOWN_CLASSES
from tmkit.formats.urdf.writer import obj_text
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.spatial import Pose


def robray_from_scene(scene: SceneGraph) -> tuple[str, Mapping[str, str]]:
    """Return the expressible part of a scene as text, and the texts of its OBJ files by name."""
    meshes: dict[str, str] = {}
    classes = dict.fromkeys(word for name in scene.frame_names for word in scene.classes(name))
    lines = [f"class {_quote(word)} {{}}" for word in classes if word not in KNOWN_CLASSES]
    for name in scene.frame_names:
        body = list(_frame_lines(scene, name, meshes))
        if body or scene.parent(name) is not None or name != "world":
            lines += [f"frame {_quote(name)} {{", *(f"    {line}" for line in body), "}"]
    lines += [
        f"allow_collision {_quote(first)} {_quote(second)};"
        for first, second, _ in scene.allowed_pairs
    ]
    return "".join(f"{line}\n" for line in lines), meshes


def _frame_lines(scene: SceneGraph, name: str, meshes: dict[str, str]) -> Iterable[str]:
    parent, joint = scene.parent(name), scene.joint(name)
    pose, inertia = scene.local_pose(name), scene.inertia(name)
    if parent not in (None, "world"):
        yield f"parent {_quote(str(parent))};"
    yield from _pose_statements(pose)
    if joint.is_actuated:
        yield f"type {joint.type};"
        yield f"axis {_array_text(joint.axis)};"
        if joint.name != name:
            yield f"variable {_quote(joint.name)};"
        for word, value in (("lower", joint.lower), ("upper", joint.upper)):
            if math.isfinite(value):
                yield f"{word} {_number_text(value)};"
    for word in scene.classes(name):
        yield f"isa {_quote(word)};"
    if inertia is not None:
        yield f"mass {_number_text(inertia.mass)};"
    frictions = {part.friction for part in scene.shapes(name) if part.friction is not None}
    if len(frictions) == 1:
        yield f"friction {_number_text(frictions.pop())};"
    for part in scene.shapes(name):
        yield f"geometry {{ {' '.join(_geometry_statements(part, meshes))} }}"


def _geometry_statements(part: AttachedShape, meshes: dict[str, str]) -> Iterable[str]:
    shape = part.shape
    if shape.kind == "mesh":
        file = f"mesh_{shape.digest}.obj"
        meshes[file] = obj_text(shape)
        yield f'mesh "{file}";'
    else:
        yield f"shape {shape.kind};"
        sizes = [_number_text(value) for value in shape.dimensions]
        if shape.kind == "box":
            yield f"dimension [{', '.join(sizes)}];"
        elif shape.kind == "cone":
            yield f"start_radius {sizes[0]}; height {sizes[1]};"
        else:
            yield from (
                f"{word} {size};" for word, size in zip(("radius", "height"), sizes, strict=False)
            )
    # Other shapes have their origin at the base. Their pose may lose its last digit.
    if shape.kind in ("box", "sphere", "mesh"):
        yield from _pose_statements(part.pose)
    if part.color is not None:
        *color, alpha = (float(value) for value in part.color)
        yield f"color {_array_text(color)}; alpha {_number_text(alpha)};"
    if part.level is not None:
        yield f"level {part.level};"
    yield f"visual {int(part.visual)}; collision {int(part.collision)};"


def _pose_statements(pose: Pose) -> Iterable[str]:
    """Yield the statements of a pose, of which the identity has none."""
    if any(pose.translation):
        yield f"translation {_array_text(pose.translation)};"
    if tuple(pose.quat_xyzw) != tuple(Pose.identity().quat_xyzw):
        yield f"quaternion {_array_text(pose.quat_xyzw)};"


def _array_text(values: Iterable[float]) -> str:
    return f"[{', '.join(_number_text(value) for value in values)}]"


def _number_text(value: float) -> str:
    """Return the shortest digits with the same bits, without a plus sign in the exponent."""
    return repr(float(value)).replace("e+", "e")


def _quote(name: str) -> str:
    """Return a name in quotes.

    Raises:
        SceneError: if the name is empty or contains a quote or a line break.
    """
    if '"' in name or "\n" in name or not name:
        raise SceneError(
            f"the name {name!r} cannot be written in a robray file: it is empty, or contains a"
            " quote or a line break"
        )
    return f'"{name}"'
