"""Registration of USD."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.spec.model import SceneSpecification
    from tmkit.graph import SceneGraph


def _read(path: Path, reading: Reading) -> SceneSpecification:
    from tmkit.formats.usd.reader import read_usd

    return read_usd(path, packages=reading.loader.packages, note=reading.note)


def _write(scene: SceneGraph, name: str) -> Mapping[str, str | bytes]:
    from tmkit.formats.usd.writer import usd_from_scene

    return {name: usd_from_scene(scene)}


USD = Format(
    "USD",
    (".usd", ".usda", ".usdc", ".usdz"),
    _read,
    _write,
    written=(".usda", ".usd"),
    comparison="rounded",
    description="Stages with rigid bodies and joints of UsdPhysics; written as text.",
    extra="formats",
    module="pxr",
)
"""The format USD."""
