"""The names that `tmkit.simulation` exports."""

from tmkit.simulation.camera import Camera as Camera, fit_camera as fit_camera
from tmkit.simulation.execution import simulate as simulate
from tmkit.simulation.executor import SimulatedExecutor as SimulatedExecutor
from tmkit.simulation.options import SimulationOptions as SimulationOptions
from tmkit.simulation.pictures.failure import draw_failure as draw_failure
from tmkit.simulation.pictures.playback import record_plan as record_plan
from tmkit.simulation.pictures.recording import Film as Film, write_picture as write_picture
from tmkit.simulation.rendering.studio import open_studio as open_studio, render as render
from tmkit.simulation.report import (
    SimulationReport as SimulationReport,
    SimulationStatus as SimulationStatus,
)
from tmkit.simulation.sensing import (
    Detection as Detection,
    SensorNoise as SensorNoise,
    SimulatedCamera as SimulatedCamera,
    depth_points as depth_points,
)
from tmkit.simulation.settings import PhysicsSettings as PhysicsSettings
from tmkit.simulation.engines.pybullet.world import Simulation as Simulation
