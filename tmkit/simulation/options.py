"""Options of executing a plan in a simulation, and of filming it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tmkit.errors import SimulationError
from tmkit.simulation.camera import Camera
from tmkit.simulation.engines.pybullet.registration import PYBULLET
from tmkit.simulation.rendering.studio import Renderer
from tmkit.simulation.settings import PhysicsSettings

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph

_GRASPS = ("contact", "constraint")


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """How to execute a plan in a simulation, and which outcome is a success.

    Args:
        engine: the physics: ``pybullet``, ``mujoco`` with the extra ``engines``, or that of a
            plug-in.
        settings: the numbers of the physics; the defaults if omitted.
        grasp: ``contact`` holds objects by friction between the fingers; ``constraint`` fixes them
            to the hand. What ``contact`` is for fingers, the vacuum is for a suction cup.
        position_tolerance: largest distance of each object from its planned place at the end [m].
        rotation_tolerance: largest rotation of each object from its planned place at the end [rad].
        world: the true scene at the start, with the same frames, such as one that was drawn from an
            uncertain scene; the plan's first scene by default. The outcome is compared with the
            plan in any case.
        gui: open pybullet's window and run in real time.

    Raises:
        SimulationError: if ``grasp`` is unknown or a tolerance is negative.
    """

    engine: str = PYBULLET.name
    settings: PhysicsSettings | None = None
    grasp: Literal["contact", "constraint"] = "contact"
    position_tolerance: float = 0.015
    rotation_tolerance: float = math.radians(5.0)
    world: SceneGraph | None = None
    gui: bool = False

    def __post_init__(self) -> None:
        if self.grasp not in _GRASPS:
            raise SimulationError(f"grasp must be 'contact' or 'constraint', not {self.grasp!r}")
        for name in ("position_tolerance", "rotation_tolerance"):
            if not getattr(self, name) >= 0.0:
                raise SimulationError(f"{name} must not be negative, but is {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class Recording:
    """How the film and the picture of a simulation are drawn.

    Args:
        camera: the view; one that shows the plan by default.
        renderer: ``filament``, ``tiny``, or the better of those that are installed.
        captions: whether the film names the action that is executed.
    """

    camera: Camera | None = None
    renderer: Renderer = "auto"
    captions: bool = False
