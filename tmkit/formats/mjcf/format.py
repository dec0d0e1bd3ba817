"""Registration of MJCF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.spec.model import SceneSpecification


def _read(path: Path, reading: Reading) -> SceneSpecification:
    from tmkit.formats.mjcf.reader import read_mjcf
    from tmkit.formats.visual_only import note_visual_only

    model = read_mjcf(path, packages=reading.loader.packages, note=reading.note)
    note_visual_only(model, reading.note)
    return model


MJCF = Format(
    "MJCF", (".xml",), _read, description="Models of MuJoCo.", extra="formats", module="mujoco"
)
"""The format MJCF."""
