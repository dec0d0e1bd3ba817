"""Checks of the meshes of robot descriptions."""

from __future__ import annotations

from tmkit.formats.format import Reading
from tmkit.formats.spec.model import SceneSpecification
from tmkit.formats.urdf.shapes import keep_readable_meshes
from tmkit.formats.visual_only import note_visual_only


def check_meshes(robot: SceneSpecification, reading: Reading) -> SceneSpecification:
    """Return the robot without unreadable meshes, and note links that only have visual shapes."""
    robot = keep_readable_meshes(robot, loader=reading.loader, note=reading.note)
    if reading.loader.packages.meshes != "skip":
        note_visual_only(robot, reading.note)
    return robot
