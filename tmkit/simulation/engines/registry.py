"""The physics engines, built in and installed, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit.plug_ins import MakerGroup, PlugIn
from tmkit.simulation.engines.mujoco.registration import MUJOCO
from tmkit.simulation.engines.pybullet.registration import PYBULLET

if TYPE_CHECKING:
    from tmkit.simulation.engines.pybullet.world import Simulation


def _built_in() -> tuple[PlugIn[Simulation], ...]:
    return (PYBULLET, MUJOCO)


ENGINES: MakerGroup[Simulation] = MakerGroup(
    "tmkit.engines",
    "physics engine",
    PlugIn,
    _built_in,
    methods=("step", "command", "command_fingers", "pose"),
)
"""The physics engines."""
