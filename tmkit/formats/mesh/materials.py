"""Colours of the materials in mesh files.

A colour is four bytes (red, green, blue, alpha) in one number; 0 stands for a colour that the file
leaves open. A material with a texture leaves its colour open, since textures are not read. Broken
materials leave it open as well: looks never keep a mesh from loading. A file that names another, as
OBJ does, reads it from its own folder or below.
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

OPEN = 0
MOST_COLORS = 6  # of a file; colours of fewer triangles become the nearest of these

Colors = npt.NDArray[np.uint32]  # of faces


def packed(color: Sequence[Any], *, linear: bool = False) -> int:
    """Return a colour (0 to 1, sRGB or, if ``linear``, amounts of light) as an sRGB number, ``OPEN`` for none."""
    try:
        values = [float(value) for value in (*color, 1.0)[:4]]
    except (TypeError, ValueError):
        return OPEN
    if len(values) != 4 or not all(
        math.isfinite(value) and 0.0 <= value <= 1.0 for value in values
    ):
        return OPEN
    if linear:
        values[:3] = [
            12.92 * v if v <= 0.0031308 else 1.055 * v ** (1.0 / 2.4) - 0.055 for v in values[:3]
        ]
    red, green, blue, alpha = (round(255.0 * value) for value in values)
    return OPEN if alpha == 0 else red | green << 8 | blue << 16 | alpha << 24


def unpacked(color: int) -> tuple[float, float, float, float]:
    """Return red, green, blue and alpha of a colour, from 0 to 1."""
    red, green, blue, alpha = (round((color >> shift & 255) / 255.0, 4) for shift in (0, 8, 16, 24))
    return red, green, blue, alpha


def reduced(colors: Colors) -> Colors:
    """Return the colours of faces (m,) with at most :data:`MOST_COLORS` different ones, those of most faces."""
    found, counts = np.unique(colors, return_counts=True)
    if len(found) <= MOST_COLORS:
        return colors
    kept = found[np.argsort(-counts, kind="stable")[:MOST_COLORS]]
    near = {
        int(c): min(kept, key=lambda k: math.dist(unpacked(int(c)), unpacked(int(k))))
        for c in found
    }
    return np.array([near[int(color)] for color in colors], dtype=np.uint32)


class MtlFile:
    """The materials of an OBJ file, without textures, as a resolver of trimesh that gives it no other file."""

    def __init__(self, obj: Path, limits: ReadingLimits) -> None:
        self._folder, self._limits = real_path(obj).parent, limits
        self.colors: dict[str | None, int] = {}

    def __getitem__(self, name: str) -> bytes:
        """Return the names of the materials in a file; their colours are kept in ``colors``."""
        path = real_path(self._folder / name)
        if path_below(path, self._folder) is None or path.suffix.lower() != ".mtl":
            raise OSError(name)
        text = read_bytes(
            path, limit=self._limits.text_bytes, error=lambda reason: MeshError.at(path, reason)
        )
        textured, material = set(), ""
        text = as_utf8(text, partial(MeshError.at, path))
        for line in text.decode("utf-8", errors="replace").splitlines():
            word, *rest = line.split() or [""]
            if word == "newmtl":
                material = " ".join(rest)
                self.colors.setdefault(material, OPEN)
            elif word == "Kd":
                self.colors[material] = packed(rest[:3])
            elif word == "map_Kd":
                textured.add(material)
        self.colors |= dict.fromkeys((*textured, ""), OPEN)
        return "".join(f"newmtl {name}\nKd 1 1 1\n" for name in self.colors if name).encode()


def keep_plain_effects(root: Any) -> None:
    """Remove all but plain diffuse colours from the materials of a COLLADA document (its root), in place."""
    plain = set()
    for effect in root.iter("{*}effect"):
        diffuse = next(
            (color.text or "" for color in effect.iterfind(".//{*}diffuse/{*}color")), ""
        )
        if packed(diffuse.split()) != OPEN:
            plain.add("#" + effect.get("id", ""))
            for other in list(effect.iterfind(".//{*}technique/*/*")):
                if not str(other.tag).endswith("}diffuse"):
                    _remove(other)
    known = set()
    for material in list(root.iter("{*}material")):
        effect = next(material.iter("{*}instance_effect"), None)
        if effect is not None and effect.get("url") in plain:
            known.add("#" + material.get("id", ""))
        else:
            _remove(material)
    for effect in list(root.iter("{*}effect")):
        if "#" + effect.get("id", "") not in plain:
            _remove(effect)
    for use in list(root.iter("{*}instance_material")):
        if use.get("target") not in known:
            _remove(use)


def _remove(element: Any) -> None:
    if element.getparent() is not None:
        element.getparent().remove(element)
