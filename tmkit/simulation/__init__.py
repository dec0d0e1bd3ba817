"""Simulation: a scene under physics, a plan executed in it, pictures of it.

:func:`simulate` executes a plan with real fingers on real contacts and says how far each object ended from where the
plan puts it. :class:`Simulation` is the world that this happens in, for experiments of one's own. pybullet does the
physics; it is imported when the first simulation is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.simulation.camera import Camera, fit_camera, render
    from tmkit.simulation.execution import simulate
    from tmkit.simulation.failure_picture import draw_failure
    from tmkit.simulation.progress import SimulationProgress
    from tmkit.simulation.recording import Film, write_picture
    from tmkit.simulation.report import (
        JointError,
        ObjectError,
        SimulationNote,
        SimulationReport,
        SimulationStatus,
        Slip,
    )
    from tmkit.simulation.settings import PhysicsSettings
    from tmkit.simulation.swept_picture import draw_swept_volume
    from tmkit.simulation.world import Simulation
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Camera",
    "Film",
    "JointError",
    "ObjectError",
    "PhysicsSettings",
    "Simulation",
    "SimulationNote",
    "SimulationProgress",
    "SimulationReport",
    "SimulationStatus",
    "Slip",
    "draw_failure",
    "draw_swept_volume",
    "fit_camera",
    "render",
    "simulate",
    "write_picture",
]
