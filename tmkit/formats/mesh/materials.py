"""Colours of the materials in mesh files.

A colour is an integer of four bytes (red, green, blue, alpha); 0 is an unspecified colour. The
colour of a material with a texture is unspecified, since textures are not read. The colour of an
invalid material is unspecified too, so that materials never prevent a mesh from loading. The
material file of an OBJ file is read only from the same folder or below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tmkit._support.limits import ReadingLimits, as_utf8, read_bytes
from tmkit.errors import MeshError
from tmkit.formats.mesh.package_uris import path_below, real_path

UNSPECIFIED = 0
"""Colour that the file does not specify."""

MAX_COLORS = 6
"""Largest number of colours of a mesh; the colours of few faces become the nearest of these."""

Colors = npt.NDArray[np.uint32]
"""Colours of faces, (m,)."""


def pack_color(color: Sequence[Any], *, is_linear: bool = False) -> int:
    """Return a colour as an sRGB integer, ``UNSPECIFIED`` if it is invalid.

    Args:
        color: red, green, blue and optionally alpha, from 0 to 1.
        is_linear: whether red, green and blue are linear light instead of sRGB.
    """
    try:
        values = [float(value) for value in (*color, 1.0)[:4]]
    except (TypeError, ValueError):
        return UNSPECIFIED
    if len(values) != 4 or not all(
        math.isfinite(value) and 0.0 <= value <= 1.0 for value in values
    ):
        return UNSPECIFIED
    if is_linear:
        values[:3] = [
            12.92 * v if v <= 0.0031308 else 1.055 * v ** (1.0 / 2.4) - 0.055 for v in values[:3]
        ]
    red, green, blue, alpha = (round(255.0 * value) for value in values)
    return UNSPECIFIED if alpha == 0 else red | green << 8 | blue << 16 | alpha << 24


def unpack_color(color: int) -> tuple[float, float, float, float]:
    """Return red, green, blue and alpha of a colour, from 0 to 1."""
    channels = [round((color >> shift & 255) / 255.0, 4) for shift in (0, 8, 16, 24)]
    return channels[0], channels[1], channels[2], channels[3]


def reduce_colors(colors: Colors) -> Colors:
    """Return colours of faces (m,) reduced to the :data:`MAX_COLORS` most frequent ones."""
    distinct_colors, counts = np.unique(colors, return_counts=True)
    if len(distinct_colors) <= MAX_COLORS:
        return colors
    palette = distinct_colors[np.argsort(-counts, kind="stable")[:MAX_COLORS]]
    nearest = {
        int(c): min(palette, key=lambda p: math.dist(unpack_color(int(c)), unpack_color(int(p))))
        for c in distinct_colors
    }
    return np.array([nearest[int(color)] for color in colors], dtype=np.uint32)


class MtlFile:
    """Materials of an OBJ file, without textures.

    The class is a resolver of trimesh that gives access to no other file.

    Attributes:
        colors: colour of each material by name, filled by reading.
    """

    def __init__(self, obj: Path, limits: ReadingLimits) -> None:
        self._folder, self._limits = real_path(obj).parent, limits
        self.colors: dict[str | None, int] = {}

    def __getitem__(self, name: str) -> bytes:
        """Read the materials of a file into ``colors``, and return their names as an MTL text."""
        path = real_path(self._folder / name)
        if path_below(path, self._folder) is None or path.suffix.lower() != ".mtl":
            raise OSError(name)
        text = read_bytes(
            path, limit=self._limits.text_bytes, error=lambda reason: MeshError.at(path, reason)
        )
        textured_materials, material = set(), ""
        text = as_utf8(text, partial(MeshError.at, path))
        for line in text.decode("utf-8", errors="replace").splitlines():
            word, *rest = line.split() or [""]
            if word == "newmtl":
                material = " ".join(rest)
                self.colors.setdefault(material, UNSPECIFIED)
            elif word == "Kd":
                self.colors[material] = pack_color(rest[:3])
            elif word == "map_Kd":
                textured_materials.add(material)
        self.colors |= dict.fromkeys((*textured_materials, ""), UNSPECIFIED)
        return "".join(f"newmtl {name}\nKd 1 1 1\n" for name in self.colors if name).encode()


def keep_plain_effects(root: Any) -> None:
    """Remove everything but plain diffuse colours from the materials of a COLLADA document.

    Args:
        root: root element, modified in place.
    """
    plain_effects = set()
    for effect in root.iter("{*}effect"):
        diffuse = next(
            (color.text or "" for color in effect.iterfind(".//{*}diffuse/{*}color")), ""
        )
        if pack_color(diffuse.split()) != UNSPECIFIED:
            plain_effects.add("#" + effect.get("id", ""))
            for element in list(effect.iterfind(".//{*}technique/*/*")):
                if not str(element.tag).endswith("}diffuse"):
                    _remove(element)
    plain_materials = set()
    for material in list(root.iter("{*}material")):
        effect = next(material.iter("{*}instance_effect"), None)
        if effect is not None and effect.get("url") in plain_effects:
            plain_materials.add("#" + material.get("id", ""))
        else:
            _remove(material)
    for effect in list(root.iter("{*}effect")):
        if "#" + effect.get("id", "") not in plain_effects:
            _remove(effect)
    for instance in list(root.iter("{*}instance_material")):
        if instance.get("target") not in plain_materials:
            _remove(instance)


def _remove(element: Any) -> None:
    if element.getparent() is not None:
        element.getparent().remove(element)
