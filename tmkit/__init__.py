"""tmkit: a scene graph for task-and-motion planning.

A scene is an immutable value: every edit gives a new version, and the old one goes on to answer. From a robot, a scene
and a PDDL goal, ``tmkit.plan`` makes a checked plan; ``tmkit.simulate`` executes it in a physics simulator.

    import tmkit as tk

    scene = tk.load_scene("panda_table", "blocks3")
    result = tk.plan(scene, domain="blocks", goal="(and (on a b) (on b c))", robot="panda", seed=0)
    report = tk.simulate(result.plan)
"""

from __future__ import annotations

try:
    _DISTRIBUTION = "tmkit-robotics"  # which the package of another project has not; see tmkit._support
    from tmkit import _core
except ImportError as error:
    from pathlib import Path as _Path

    if (_Path(__file__).resolve().parent.parent / "pyproject.toml").is_file() and "_core" in str(error):
        raise ImportError(
            "this is tmkit's source folder, whose compiled core is not installed: run 'pip install -e .' in it first, "
            "or import from another folder"
        ) from None
    from tmkit._support.other_distribution import explain_other_distribution as _explain_other

    if _other := _explain_other():
        raise ImportError(f"{error}{_other}") from None
    raise

import logging
from typing import TYPE_CHECKING

from tmkit import errors as _errors
from tmkit._support.argument_errors import argument_error as _argument_error
from tmkit._support.data import data_path
from tmkit._support.lazy_imports import lazy_names
from tmkit._support.results import Result as _Result
from tmkit.errors import TmkitError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Continuous,
    Cylinder,
    Fixed,
    Free,
    HeightField,
    Inertia,
    Joint,
    Kinematics,
    Measurement,
    Mesh,
    Mimic,
    NoiseSource,
    Plane,
    PointCloud,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneEdit,
    SceneGraph,
    Shape,
    Sphere,
)

if TYPE_CHECKING:
    from tmkit._support.version import __version__
    from tmkit.formats import load_scene
    from tmkit.manipulation import Samplers
    from tmkit.plans import Plan, load_plan, save_plan
    from tmkit.robots import Manipulator, load_manipulator
    from tmkit.simulation import simulate
    from tmkit.spatial import GaussianPose, Pose
    from tmkit.tamp import (
        PlanningOptions,
        PlanningProblem,
        PlanResult,
        PlanStatus,
        load_planning_problem,
        plan,
        validate_plan,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

_core._register(errors=vars(_errors), argument_error=_argument_error, result=_Result)  # the core uses these
logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the user configures logging

__all__ = [
    "AttachedShape",
    "Box",
    "Capsule",
    "Cone",
    "Continuous",
    "Cylinder",
    "Fixed",
    "Free",
    "GaussianPose",
    "HeightField",
    "Inertia",
    "Joint",
    "Kinematics",
    "Manipulator",
    "Measurement",
    "Mesh",
    "Mimic",
    "NoiseSource",
    "Plan",
    "PlanResult",
    "PlanStatus",
    "Plane",
    "PlanningOptions",
    "PlanningProblem",
    "PointCloud",
    "Pose",
    "Prismatic",
    "Revolute",
    "Samplers",
    "SceneArrays",
    "SceneEdit",
    "SceneGraph",
    "Shape",
    "Sphere",
    "TmkitError",
    "__version__",
    "data_path",
    "load_manipulator",
    "load_plan",
    "load_planning_problem",
    "load_scene",
    "plan",
    "save_plan",
    "simulate",
    "validate_plan",
]
