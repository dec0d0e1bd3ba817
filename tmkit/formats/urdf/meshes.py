"""Meshes of robot descriptions: those that can be read, and links that are drawn but cannot collide."""

from __future__ import annotations

from tmkit.formats.format import Reading
from tmkit.formats.spec.model import SceneSpecification
from tmkit.formats.urdf.shapes import with_readable_meshes
from tmkit.formats.visual_only import note_visual_only


def read_meshes(robot: SceneSpecification, reading: Reading) -> SceneSpecification:
    """Return a description without the meshes that the load leaves out; links that cannot collide are noted."""
    robot = with_readable_meshes(robot, loader=reading.loader, note=reading.note)
    if reading.loader.packages.meshes != "skip":
        note_visual_only(robot, reading.note)
    return robot
