"""Private pybullet connection with settings for repeatable simulations.

Overlapping pairs are processed in a fixed order, and files of earlier worlds are not cached. The
solver iterates to a small residual. With pybullet's default, resting objects creep and turn.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from tmkit.errors import SimulationError
from tmkit.simulation.engines.pybullet.quiet import load_pybullet, quiet_output
from tmkit.simulation.settings import PhysicsSettings

_SOLVER_RESIDUAL = 1e-12
"""Residual at which the solver stops. pybullet's default is 1e-7."""


class Engine:
    """Private connection to pybullet, with its constants and functions as attributes.

    Functions are bound to the connection.

    Args:
        settings: physical parameters.
        gui: whether to open pybullet's window.

    Raises:
        SimulationError: if ``gui`` is true without a screen, or there are too many connections.
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
            solverResidualThreshold=_SOLVER_RESIDUAL,
            numSubSteps=0,
            deterministicOverlappingPairs=1,
            enableFileCaching=0,
        )

    @property
    def client(self) -> int:
        """Number of the connection.

        Raises:
            SimulationError: if the connection is closed.
        """
        if self._client is None:
            raise SimulationError("this simulation is closed")
        return self._client

    @property
    def is_closed(self) -> bool:
        """Return whether the connection is closed."""
        return self._client is None

    def close(self) -> None:
        """Close the connection. A second call has no effect."""
        if self._client is not None:
            with quiet_output():
                self.disconnect()
            self._client = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"an {type(self).__name__} has no '{name}'")
        attribute = getattr(self.bullet, name)
        if not callable(attribute) or name == "error":
            return attribute
        return partial(attribute, physicsClientId=self.client)
