"""Registration of glTF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph

_TEXT = ".gltf"
_BINARY = ".glb"


def _read(path: Path, reading: Reading) -> SceneGraph:
    from tmkit.formats.gltf.scene import read_gltf_scene

    return read_gltf_scene(path, loader=reading.loader, note=reading.note)


def _write(scene: SceneGraph, name: str) -> Mapping[str, str | bytes]:
    from tmkit.formats.gltf.scene import gltf_from_scene

    return {name: gltf_from_scene(scene, is_binary=name.lower().endswith(_BINARY))}


GLTF = Format(
    "glTF",
    (_TEXT, _BINARY),
    _read,
    _write,
    description="Meshes in a tree of frames, as text or binary.",
)
"""The format glTF."""
