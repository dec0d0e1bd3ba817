"""Registration of scenes in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph


def _read(path: Path, reading: Reading) -> SceneGraph:
    from tmkit.formats.json.scene import read_json_scene

    return read_json_scene(path, loader=reading.loader, read_other=reading.read_other)


def _write(scene: SceneGraph, name: str) -> Mapping[str, str | bytes]:
    from tmkit.formats.json.scene import json_text, scene_to_dict

    return {name: json_text(scene_to_dict(scene))}


JSON = Format(
    "JSON",
    (".json",),
    _read,
    _write,
    comparison="none",
    description="Scenes of tmkit without any loss.",
)
"""The JSON format, which can store every scene."""
