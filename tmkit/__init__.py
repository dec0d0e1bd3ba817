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
    from tmkit._early_interrupt import end_command_on_interrupt as _end_command_on_interrupt

    _end_command_on_interrupt()  # before the core, whose import takes time
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
from collections.abc import Callable as _Callable
from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any as _Any

from tmkit import errors as _errors
from tmkit._support.argument_errors import argument_error as _argument_error
from tmkit._support.lazy_imports import lazy_names
from tmkit._support.results import Result as _Result

if TYPE_CHECKING:
    from tmkit._support.data import data_path as data_path
    from tmkit._support.version import __version__ as __version__
    from tmkit.errors import TmkitError as TmkitError
    from tmkit.formats import load_scene as load_scene
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
    from tmkit.simulation import simulate as simulate
    from tmkit.spatial import GaussianPose as GaussianPose, Pose as Pose
    from tmkit.tamp import (
        PlanningOptions as PlanningOptions,
        PlanningProblem as PlanningProblem,
        PlanResult as PlanResult,
        PlanStatus as PlanStatus,
        load_planning_problem as load_planning_problem,
        plan as plan,
        validate_plan as validate_plan,
    )
    from tmkit.visualization import save_html as save_html, show as show
else:
    __getattr__, __dir__ = lazy_names(__name__)


def _imported_when_called(module: str, name: str) -> _Callable[..., _Any]:
    def call(*arguments: _Any, **keywords: _Any) -> _Any:
        function = getattr(_import_module(module), name)
        _core._register(**{name: function})  # the next call goes there directly
        return function(*arguments, **keywords)

    return call


# What the core uses: errors, results, and functions for its methods of these names.
_core._register(
    errors=vars(_errors),
    argument_error=_argument_error,
    result=_Result,
    tree_html=_imported_when_called("tmkit.graph.display.html", "tree_html"),
    attribute_map=_imported_when_called("tmkit.graph.attributes", "attribute_map"),
    attribute_text=_imported_when_called("tmkit.graph.attributes", "attribute_text"),
)
logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the user configures logging
