"""A private connection to the physics engine, and the settings that make it repeatable.

pybullet can hold many worlds at once, told apart by the number of a connection. A simulation opens one of its own and
never uses the default one, so nothing is shared.

The engine is set up such that equal calls give equal numbers: pairs that overlap are worked through in a fixed order,
no file is remembered from an earlier world, and the solver stops at a residual so small that what stands stays: with
the engine's own, resting objects creep and turn.
"""

from __future__ import annotations

import os
from typing import Any

from tmkit.errors import SimulationError
from tmkit.simulation.settings import PhysicsSettings

_RESIDUAL = 1e-12  # of the solver, below which it stops; the engine's own is 1e-7


def connect(bullet: Any, *, gui: bool) -> int:
    """Open a connection and return its number.

    Args:
        bullet: the pybullet module.
        gui: open its window.

    Raises:
        SimulationError: a window is wanted where there is no screen, or there are too many connections.
    """
    if gui and not os.environ.get("DISPLAY"):
        raise SimulationError("a simulation window needs a screen: DISPLAY is not set; leave gui out, or record a GIF")
    client = int(bullet.connect(bullet.GUI if gui else bullet.DIRECT))
    if client < 0:
        raise SimulationError("pybullet gave no connection: there is no screen, or too many simulations are open")
    return client


def set_up(bullet: Any, client: int, *, settings: PhysicsSettings) -> None:
    """Set gravity, time step and solver of a connection.

    Args:
        bullet: the module ``pybullet``.
        client: index of the connection.
        settings: the settings.
    """
    bullet.setGravity(0.0, 0.0, -settings.gravity, physicsClientId=client)
    bullet.setPhysicsEngineParameter(
        fixedTimeStep=settings.time_step, numSolverIterations=settings.solver_iterations,
        solverResidualThreshold=_RESIDUAL, numSubSteps=0, deterministicOverlappingPairs=1, enableFileCaching=0,
        physicsClientId=client,
    )  # fmt: skip
