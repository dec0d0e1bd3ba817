"""Simulation: a scene under physics, a plan executed in it, pictures of it.

:func:`simulate` executes a plan with real fingers on real contacts and says how far each object ended from where the
plan puts it. :class:`Simulation` is the world that this happens in, for experiments of one's own. pybullet does the
physics; it is imported when the first simulation is made.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.simulation.camera import Camera as Camera, fit_camera as fit_camera
    from tmkit.simulation.execution import simulate as simulate
    from tmkit.simulation.executor import SimulatedExecutor as SimulatedExecutor
    from tmkit.simulation.failure_picture import draw_failure as draw_failure, draw_marked as draw_marked
    from tmkit.simulation.playback import fit_camera_to_plan as fit_camera_to_plan, record_plan as record_plan
    from tmkit.simulation.recording import Film as Film, write_picture as write_picture
    from tmkit.simulation.rendering import (
        StillScene as StillScene,
        chosen_renderer as chosen_renderer,
        open_studio as open_studio,
        render as render,
    )
    from tmkit.simulation.report import (
        JointError as JointError,
        ObjectError as ObjectError,
        SimulationNote as SimulationNote,
        SimulationProgress as SimulationProgress,
        SimulationReport as SimulationReport,
        SimulationStatus as SimulationStatus,
        Slip as Slip,
    )
    from tmkit.simulation.sensing import (
        Detection as Detection,
        SimulatedCamera as SimulatedCamera,
        depth_points as depth_points,
        visible_shares as visible_shares,
    )
    from tmkit.simulation.settings import PhysicsSettings as PhysicsSettings
    from tmkit.simulation.swept_picture import draw_swept_volume as draw_swept_volume
    from tmkit.simulation.world import Simulation as Simulation
else:
    __getattr__, __dir__ = lazy_names(__name__)
