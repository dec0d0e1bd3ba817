"""Registration of RSG-DSL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.spec.model import SceneSpecification
    from tmkit.graph import SceneGraph


def _read(path: Path, reading: Reading) -> SceneSpecification:
    from tmkit.formats.rsg.reader import read_rsg

    return read_rsg(path, loader=reading.loader, read_other=reading.read_other, note=reading.note)


def _write(scene: SceneGraph, name: str) -> Mapping[str, str | bytes]:
    from tmkit.formats.rsg.writer import rsg_from_scene

    return {name: rsg_from_scene(scene)}


RSG = Format(
    "RSG-DSL",
    (".rsg",),
    _read,
    _write,
    description="Scenes of the Robot Scene Graph, with function blocks.",
)
"""The format RSG-DSL."""
