"""Options of the simulation and filming of a plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tmkit._support.argument_errors import with_keyword_hints
from tmkit.errors import SimulationError
from tmkit.simulation.camera import Camera
from tmkit.simulation.engines.pybullet.registration import PYBULLET
from tmkit.simulation.rendering.studio import Renderer
from tmkit.simulation.settings import PhysicsSettings

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph

_GRASPS = ("contact", "constraint")
"""Names of the grasp models."""


@with_keyword_hints
@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """Options of the execution of a plan in a simulation, and tolerances of its success.

    Args:
        engine: physics engine: ``pybullet``, ``mujoco`` with the extra ``engines``, or the name of
            a plug-in.
        settings: physical parameters.
        grasp: ``contact`` holds objects by friction between the fingers, or by the vacuum of a
            suction cup. ``constraint`` fixes them to the hand.
        position_tolerance: largest distance of each object from its planned pose at the end [m].
        rotation_tolerance: largest rotation of each object from its planned pose at the end [rad].
        world: true scene at the start with the same frames, such as a sample of an uncertain scene.
            Defaults to the plan's first scene. The outcome is always compared with the plan.
        gui: whether to open pybullet's window and run in real time.

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
            raise SimulationError(f"grasp must be 'contact' or 'constraint', got {self.grasp!r}")
        for name in ("position_tolerance", "rotation_tolerance"):
            if not getattr(self, name) >= 0.0:
                raise SimulationError(f"{name} must not be negative, got {getattr(self, name)}")


@with_keyword_hints
@dataclass(frozen=True, kw_only=True)
class Recording:
    """Options of the film and the picture of a simulation.

    Args:
        camera: view. Defaults to one that shows the whole plan.
        renderer: ``filament``, ``tiny``, or ``auto`` for the better one that is installed.
        captions: whether the film shows the current action.
    """

    camera: Camera | None = None
    renderer: Renderer = "auto"
    captions: bool = False
