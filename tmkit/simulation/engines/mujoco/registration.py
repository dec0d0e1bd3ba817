"""Registration of the physics engine MuJoCo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmkit.plug_ins import PlugIn

if TYPE_CHECKING:
    from tmkit.simulation.engines.pybullet.world import Simulation


def _open(*arguments: Any, **keywords: Any) -> Simulation:
    """Open a MuJoCo simulation, and import MuJoCo only then."""
    from tmkit.simulation.engines.mujoco.world import MujocoSimulation

    return MujocoSimulation.from_scene(*arguments, **keywords)


MUJOCO: PlugIn[Simulation] = PlugIn(
    "mujoco", _open, "MuJoCo's soft contacts; without a window.", extra="engines", module="mujoco"
)
"""The physics engine MuJoCo."""
