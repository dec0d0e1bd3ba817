"""Registration of SDF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.spec.model import SceneSpecification


def _read(path: Path, reading: Reading) -> SceneSpecification:
    from tmkit.formats.sdf.reader import read_sdf
    from tmkit.formats.spec.build import WORLD
    from tmkit.formats.urdf.always_colliding import with_always_colliding
    from tmkit.formats.urdf.meshes import read_meshes

    scene = read_meshes(
        read_sdf(path, packages=reading.loader.packages, note=reading.note), reading
    )
    used = {frame.parent for frame in scene.frames} | {
        frame.name for frame in scene.frames if frame.geometry
    }
    trees = sum(frame.parent == WORLD and frame.name in used for frame in scene.frames)
    return (
        with_always_colliding(scene, loader=reading.loader, note=reading.note)
        if trees == 1
        else scene
    )


SDF = Format("SDF", (".sdf", ".world"), _read, description="Models and worlds of Gazebo.")
"""The format SDF."""
