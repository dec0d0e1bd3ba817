"""Built-in and installed physics engines by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit.plug_ins import MakerGroup, PlugIn
from tmkit.simulation.engines.mujoco.registration import MUJOCO
from tmkit.simulation.engines.pybullet.registration import PYBULLET

if TYPE_CHECKING:
    from tmkit.simulation.engines.pybullet.world import Simulation


def _built_in_engines() -> tuple[PlugIn[Simulation], ...]:
    """Return the plug-ins of the built-in engines."""
    return (PYBULLET, MUJOCO)


ENGINES: MakerGroup[Simulation] = MakerGroup(
    "tmkit.engines",
    "physics engine",
    PlugIn,
    _built_in_engines,
    methods=("step", "command", "command_fingers", "pose"),
)
"""Physics engines by name."""
