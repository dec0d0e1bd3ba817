"""Registration of the physics engine pybullet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmkit.plug_ins import PlugIn

if TYPE_CHECKING:
    from tmkit.simulation.engines.pybullet.world import Simulation


def _open(*arguments: Any, **keywords: Any) -> Simulation:
    """Open a pybullet simulation, and import pybullet only then."""
    from tmkit.simulation.engines.pybullet.world import Simulation

    return Simulation.from_scene(*arguments, **keywords)


PYBULLET: PlugIn[Simulation] = PlugIn(
    "pybullet", _open, "Bullet's rigid bodies; the default.", module="pybullet"
)
"""The physics engine pybullet."""
