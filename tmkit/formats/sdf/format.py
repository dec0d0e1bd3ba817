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
    from tmkit.formats.urdf.always_colliding import allow_always_colliding
    from tmkit.formats.urdf.meshes import check_meshes

    scene = read_sdf(path, packages=reading.loader.packages, note=reading.note)
    scene = check_meshes(scene, reading)

    # Search for pairs that always collide only in a file with one robot.
    parents = {frame.parent for frame in scene.frames}
    n_trees = sum(
        frame.parent == WORLD and (frame.name in parents or bool(frame.geometry))
        for frame in scene.frames
    )
    if n_trees != 1:
        return scene
    return allow_always_colliding(scene, loader=reading.loader, note=reading.note)


SDF = Format("SDF", (".sdf", ".world"), _read, description="Models and worlds of Gazebo.")
"""The format SDF."""
