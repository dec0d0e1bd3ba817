"""Exports of `tmkit`."""

from tmkit._support.data import data_path as data_path
from tmkit._support.version import __version__ as __version__
from tmkit.errors import TmkitError as TmkitError
from tmkit.formats import ReadingOptions as ReadingOptions, load_scene as load_scene
from tmkit.graph import (
    AttachedShape as AttachedShape,
    Box as Box,
    Capsule as Capsule,
    Cone as Cone,
    Continuous as Continuous,
    Cylinder as Cylinder,
    Fixed as Fixed,
    Free as Free,
    HeightField as HeightField,
    Inertia as Inertia,
    Joint as Joint,
    Kinematics as Kinematics,
    Measurement as Measurement,
    Mesh as Mesh,
    Mimic as Mimic,
    NoiseSource as NoiseSource,
    Plane as Plane,
    PointCloud as PointCloud,
    Prismatic as Prismatic,
    Revolute as Revolute,
    SceneArrays as SceneArrays,
    SceneEdit as SceneEdit,
    SceneGraph as SceneGraph,
    Shape as Shape,
    Sphere as Sphere,
)
from tmkit.manipulation import Samplers as Samplers
from tmkit.plans import Plan as Plan, load_plan as load_plan, save_plan as save_plan
from tmkit.robots import Manipulator as Manipulator, load_manipulator as load_manipulator
from tmkit.simulation import SimulationOptions as SimulationOptions, simulate as simulate
from tmkit.spatial import GaussianPose as GaussianPose, Pose as Pose
from tmkit.tamp import (
    PlanningOptions as PlanningOptions,
    PlanningProblem as PlanningProblem,
    PlanResult as PlanResult,
    PlanStatus as PlanStatus,
    load_planning_problem as load_planning_problem,
    plan as plan,
    refine as refine,
    solve as solve,
    successors as successors,
    validate_plan as validate_plan,
)
from tmkit.visualization import save_html as save_html, show as show
from tmkit.simulation.options import Recording as Recording
