"""Registration of robray."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.spec.model import SceneSpecification
    from tmkit.graph import SceneGraph


def _read(path: Path, reading: Reading) -> SceneSpecification:
    from tmkit.formats.robray.reader import read_robray

    return read_robray(path, packages=reading.loader.packages, read_other=reading.read_other)


def _write(scene: SceneGraph, name: str) -> Mapping[str, str | bytes]:
    from tmkit.formats.robray.writer import robray_from_scene

    text, meshes = robray_from_scene(scene)
    return {name: text, **meshes}


ROBRAY = Format(
    "robray",
    (".robray",),
    _read,
    _write,
    description="Scenes of the original TMKit, written by hand.",
)
"""The format robray."""
