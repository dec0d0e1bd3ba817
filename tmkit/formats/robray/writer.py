"""Scenes in the robray language.

The language says less than a scene does: a joint has no largest speed, a mass is spread over the
shapes. So the text is only half of the work; :func:`tmkit.formats.convert_scene` proves that it
reads back to the same scene, and refuses to write what does not. This module writes what can be
said, frame by frame, every number with the shortest digits that give the same bits.

Meshes become OBJ files beside the text, one for each content.
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
    """Return what the robray language can say of a scene, and the texts of the OBJ files beside it by their names."""
    meshes: dict[str, str] = {}
    classes = dict.fromkeys(word for name in scene.frame_names for word in scene.classes(name))
    lines = [f"class {_quoted(word)} {{}}" for word in classes if word not in KNOWN_CLASSES]
    for name in scene.frame_names:
        body = list(_frame(scene, name, meshes))
        if body or scene.parent(name) is not None or name != "world":
            lines += [f"frame {_quoted(name)} {{", *(f"    {line}" for line in body), "}"]
    lines += [
        f"allow_collision {_quoted(first)} {_quoted(second)};"
        for first, second, _ in scene.allowed_pairs
    ]
    return "".join(f"{line}\n" for line in lines), meshes


def _frame(scene: SceneGraph, name: str, meshes: dict[str, str]) -> Iterable[str]:
    parent, joint, pose, inertia = (
        scene.parent(name),
        scene.joint(name),
        scene.local_pose(name),
        scene.inertia(name),
    )
    if parent not in (None, "world"):
        yield f"parent {_quoted(str(parent))};"
    yield from _pose(pose)
    if joint.is_actuated:
        yield f"type {joint.type};"
        yield f"axis {_array(joint.axis)};"
        if joint.name != name:
            yield f"variable {_quoted(joint.name)};"
        for word, value in (("lower", joint.lower), ("upper", joint.upper)):
            if math.isfinite(value):
                yield f"{word} {_number(value)};"
    for word in scene.classes(name):
        yield f"isa {_quoted(word)};"
    if inertia is not None:
        yield f"mass {_number(inertia.mass)};"
    frictions = {part.friction for part in scene.shapes(name) if part.friction is not None}
    if len(frictions) == 1:
        yield f"friction {_number(frictions.pop())};"
    for part in scene.shapes(name):
        yield f"geometry {{ {' '.join(_geometry(part, meshes))} }}"


def _geometry(part: AttachedShape, meshes: dict[str, str]) -> Iterable[str]:
    shape = part.shape
    if shape.kind == "mesh":
        file = f"mesh_{shape.digest}.obj"
        meshes[file] = obj_text(shape)
        yield f'mesh "{file}";'
    else:
        yield f"shape {shape.kind};"
        sizes = [_number(value) for value in shape.dimensions]
        if shape.kind == "box":
            yield f"dimension [{', '.join(sizes)}];"
        elif shape.kind == "cone":
            yield f"start_radius {sizes[0]}; height {sizes[1]};"
        else:
            yield from (
                f"{word} {size};" for word, size in zip(("radius", "height"), sizes, strict=False)
            )
    # others have their origin at the base, which may cost a last digit
    if shape.kind in ("box", "sphere", "mesh"):
        yield from _pose(part.pose)
    if part.color is not None:
        *color, alpha = (float(value) for value in part.color)
        yield f"color {_array(color)}; alpha {_number(alpha)};"
    if part.level is not None:
        yield f"level {part.level};"
    yield f"visual {int(part.visual)}; collision {int(part.collision)};"


def _pose(pose: Pose) -> Iterable[str]:
    """Yield the statements of a pose; none for the identity."""
    if any(pose.translation):
        yield f"translation {_array(pose.translation)};"
    if tuple(pose.quat_xyzw) != tuple(Pose.identity().quat_xyzw):
        yield f"quaternion {_array(pose.quat_xyzw)};"


def _array(values: Iterable[float]) -> str:
    return f"[{', '.join(_number(value) for value in values)}]"


def _number(value: float) -> str:
    """Return the shortest digits that read back to the same bits, without the plus sign that the language lacks."""
    return repr(float(value)).replace("e+", "e")


def _quoted(name: str) -> str:
    if '"' in name or "\n" in name or not name:
        raise SceneError(
            f"the name {name!r} cannot be written in a robray file, whose quotes it would end"
        )
    return f'"{name}"'
