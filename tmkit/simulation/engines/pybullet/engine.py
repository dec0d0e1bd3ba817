"""A private connection to the physics engine, and the settings that make it repeatable.

Pairs that overlap are worked through in a fixed order, no file is remembered from an earlier world.
The solver stops at a residual so small that what stands stays: with the engine's own, resting
objects creep and turn.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from tmkit.errors import SimulationError
from tmkit.simulation.engines.pybullet.quiet import load_pybullet, quiet_output
from tmkit.simulation.settings import PhysicsSettings

_RESIDUAL = 1e-12  # of the solver, below which it stops; the engine's own is 1e-7


class Engine:
    """A connection of its own to pybullet: its constants, and its functions with the connection as their argument.

    Raises:
        SimulationError: a window is wanted where there is no screen, or there are too many
            connections.
    """

    def __init__(self, settings: PhysicsSettings, *, gui: bool = False) -> None:
        self.bullet = load_pybullet()
        if gui and not os.environ.get("DISPLAY"):
            raise SimulationError(
                "a simulation window needs a screen: DISPLAY is not set; leave gui out, or record"
                " a GIF"
            )
        self._client: int | None = int(
            self.bullet.connect(self.bullet.GUI if gui else self.bullet.DIRECT)
        )
        if self._client < 0:
            raise SimulationError(
                "pybullet gave no connection: there is no screen, or too many simulations are open"
            )
        self.setGravity(0.0, 0.0, -settings.gravity)
        self.setPhysicsEngineParameter(
            fixedTimeStep=settings.time_step,
            numSolverIterations=settings.solver_iterations,
            solverResidualThreshold=_RESIDUAL,
            numSubSteps=0,
            deterministicOverlappingPairs=1,
            enableFileCaching=0,
        )

    @property
    def client(self) -> int:
        """The number of the connection.

        Raises:
            SimulationError: the connection is closed.
        """
        if self._client is None:
            raise SimulationError("this simulation is closed")
        return self._client

    @property
    def is_closed(self) -> bool:
        """Whether the connection was closed."""
        return self._client is None

    def close(self) -> None:
        """Close the connection; once is enough, twice does no harm."""
        if self._client is not None:
            with quiet_output():
                self.disconnect()
            self._client = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"an {type(self).__name__} has no '{name}'")
        found = getattr(self.bullet, name)
        return (
            partial(found, physicsClientId=self.client)
            if callable(found) and name != "error"
            else found
        )
