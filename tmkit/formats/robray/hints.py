"""Hints for words of other scene formats in robray files.

A newcomer writes the words of URDF, SDF, MJCF or YAML: ``size``, ``xyz``, ``shape mesh``, ``type
hinge``. Each function returns the end of an error message, with the robray form of the word, or an
empty string for an unknown word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from tmkit._support.data import data_path

STANDARD_CLASSES_URI = "package://tmkit/scenes/classes.robray"
"""File with the classes and constants of the built-in scenes."""

_SHAPE_BLOCK = "write it in a block 'geometry { ... }'"

_ATTRIBUTE_FORMS: Mapping[str, str] = {
    "box": "write 'shape box; dimension [x, y, z];'",
    "capsule": "write 'shape cylinder; radius ...; height ...;'",
    "class": "write 'isa NAME;'",
    "classes": "write 'isa NAME;' once for each class",
    "cylinder": "write 'shape cylinder; radius ...; height ...;'",
    "euler": "write 'rpy [roll, pitch, yaw];' in radians",
    "extents": "write 'dimension [x, y, z];'",
    "file": "write 'mesh \"FILE\";'",
    "filename": "write 'mesh \"FILE\";'",
    "joint": "write 'type revolute;' or 'type prismatic;'",
    "length": "write 'height'",
    "material": "write 'color [red, green, blue];'",
    "orientation": "write 'quaternion [x, y, z, w];' or 'rpy [roll, pitch, yaw];'",
    "origin": "write 'translation [x, y, z];' and 'rpy [roll, pitch, yaw];'",
    "pos": "write 'translation [x, y, z];'",
    "pose": "write 'translation [x, y, z];' and 'rpy [roll, pitch, yaw];'",
    "position": "write 'translation [x, y, z];'",
    "quat": "write 'quaternion [x, y, z, w];'",
    "rgba": "write 'color [red, green, blue]; alpha ...;'",
    "rotation": "write 'quaternion [x, y, z, w];' or 'rpy [roll, pitch, yaw];'",
    "size": "write 'dimension [x, y, z];'",
    "sphere": "write 'shape sphere; radius ...;'",
    "uri": "write 'mesh \"FILE\";'",
    "xyz": "write 'translation [x, y, z];'",
}
"""Robray form of attributes of other formats."""

_CHOICE_FORMS: Mapping[str, str] = {
    "capsule": "write 'shape cylinder;', or include a .json or .urdf file with the capsule",
    "continuous": "write 'type revolute;' without limits",
    "cube": "write 'shape box; dimension [x, y, z];'",
    "floating": "an object that is moved has the class 'movable', and no joint",
    "free": "an object that is moved has the class 'movable', and no joint",
    "hinge": "write 'type revolute;'",
    "linear": "write 'type prismatic;'",
    "mesh": "a mesh has no 'shape': write 'mesh \"FILE\";'",
    "plane": "write 'shape box; dimension [x, y, z];' for a floor",
    "slide": "write 'type prismatic;'",
    "slider": "write 'type prismatic;'",
}
"""Robray form of shapes and joint types of other formats."""


def attribute_hint(name: str, *, is_shape_attribute: bool) -> str:
    """Return the robray form of an unknown attribute, or an empty string.

    Args:
        name: unknown attribute.
        is_shape_attribute: whether a geometry block would accept the attribute.
    """
    form = _SHAPE_BLOCK if is_shape_attribute else _ATTRIBUTE_FORMS.get(name.lower())
    return f"; {form}" if form is not None else ""


def choice_hint(word: str) -> str:
    """Return the robray form of an unknown shape or joint type, or an empty string."""
    form = _CHOICE_FORMS.get(word.lower())
    return f"; {form}" if form is not None else ""


def standard_definition_hint(kind: str, name: str) -> str:
    """Return the include of a class or constant of the built-in scenes, or an empty string.

    Args:
        kind: ``"class"`` or ``"def"``.
        name: unknown name.
    """
    if name not in _standard_definitions(kind):
        return ""
    return f', or include "{STANDARD_CLASSES_URI}"'


def word_for_numbers_hint(word: str) -> str:
    """Return the robray form of a word in place of an array of numbers, or an empty string."""
    if word in ("x", "y", "z"):
        return f"; the axis {word} is {[int(axis == word) for axis in 'xyz']}"
    if word in _standard_definitions("class"):
        return f"; write 'isa {word};' for the colour, with include \"{STANDARD_CLASSES_URI}\""
    return ""


def syntax_hint(before: str, token: str) -> str:
    """Return the robray form of a syntax with an unexpected token, or an empty string.

    Args:
        before: text of the line before the token.
        token: the token.
    """
    if re.search(r"\b(frame|class)\s+[^\s{};\"]+\s+$", before):
        return "; a name with blanks needs quotes"
    if re.search(r"\bisa\s+[^\s;]+\s*$", before):
        return "; write 'isa' once for each class"
    if re.search(r"[\d.]\s*$", before) and re.fullmatch(r"[A-Za-z]\w*", token):
        return f"; a number with a unit is a product, as in '10*{token}'"
    if re.search(r"[\w.]+\s+[\d.-]+\s+$", before) and re.fullmatch(r"[\d.]+|-", token):
        return "; several numbers need brackets, as in '[x, y, z]'"
    if re.search(r"\binclude\s+$", before):
        return "; a file name needs quotes, as in 'include \"robot.urdf\"'"
    return ""


def character_hint(character: str) -> str:
    """Return the robray form of a syntax with an unexpected character, or an empty string."""
    if character in "=:":
        return "; a value follows its name, as in 'radius 0.1;'"
    if character in "./":
        return "; a file name needs quotes, as in 'mesh \"cup.obj\";'"
    if character == "<":
        return "; a robray file is not XML; URDF and SDF files end in .urdf and .sdf"
    return ""


@cache
def _standard_definitions(kind: str) -> frozenset[str]:
    """Return the names of the classes or constants of the built-in scenes."""
    text = data_path("scenes/classes.robray").read_text(encoding="utf-8")
    return frozenset(re.findall(rf"^{kind}\s+([\w-]+)", text, flags=re.MULTILINE))
