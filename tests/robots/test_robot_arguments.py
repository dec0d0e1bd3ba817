"""Robot arguments of public functions: a name, a file or a description."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.grasp_files import graspnet_row
from support.public_names import public

import tmkit as tk
from tmkit.errors import ArgumentError, MissingFileError, RobotError
from tmkit.manipulation import (
    ActionContext,
    ArmMotionPlanner,
    GraspRequest,
    PlacementRequest,
    SeededSamplers,
    grasps_of,
    load_grasps,
    placements_in_region,
    placements_on_surface,
)
from tmkit.motion import CollisionRules, TorqueLimits, reachable_region
from tmkit.pddl import Fact
from tmkit.robots import check_robot, mount_on_base
from tmkit.robots.robot_files import find_manipulator
from tmkit.simulation import Simulation
from tmkit.tamp import load_planning_domain, load_tmp_plan
from tmkit.tamp.domains import no_grasp, pick_candidates
from tmkit.tamp.domains.infeasibility import prove_too_high, prove_ungraspable
from tmkit.tamp.parts import Driving, Regions, TwoArms

DESCRIPTION_ONLY = {
    "write_manipulator.robot": "writes the description",
    "PlanningDomain.__init__.robots": "made by load_planning_domain, which accepts names",
    "Simulation.__init__.robots": "called by Simulation.from_scene, which accepts names",
    **dict.fromkeys(("grasp.arm", "release.arm"), "called by execute_plan with the plan's arms"),
}
"""Parameters of public functions that are descriptions, with the reason."""

PLANNER_CALLS = re.compile(r"(do_\w+|places|filter_placements|arm_name)\.(arm|giver|taker)")
"""Methods of domain parts, which the planner calls with the arms of the domain."""


@cache
def scene() -> tk.SceneGraph:
    """Return a Panda with two blocks on a table, and a region."""
    blocks = tk.load_scene("panda_table", "blocks2")
    (table,) = (name for name in blocks.frame_names if "surface" in blocks.classes(name))
    top = blocks.shapes(table)[0]
    half = top.shape.dimensions[2] / 2
    pose = top.pose @ tk.Pose([0.1, 0.3, half + 0.001])
    return blocks.add_frame(
        "mat", table, pose=pose, shapes=[tk.Box([0.3, 0.3, 0.002])], classes=["region"]
    )


@cache
def ready() -> np.ndarray:
    """Return the ready configuration of the Panda."""
    return tk.load_manipulator("panda").ready_configuration(scene())


def rng() -> np.random.Generator:
    """Return a random generator with a fixed seed."""
    return np.random.default_rng(0)


def samplers(robot: Any = "panda") -> SeededSamplers:
    """Return the built-in samplers of a robot."""
    return SeededSamplers(tk.Samplers(), robot)


def context() -> ActionContext:
    """Return a context whose only arm is the Panda."""
    arms = {"panda": ArmMotionPlanner("panda")}
    return ActionContext(scene(), ready(), rng(), samplers(), arms)


@cache
def plan() -> tk.Plan:
    """Return a plan without steps."""
    result = tk.plan(scene(), ready(), goal="(handempty)")
    assert result.plan is not None
    return result.plan


def placements(function: Callable[..., Iterator[Any]], support: str, robot: Any) -> list[Any]:
    """Return the first placements of block ``a``."""
    found = function(scene(), "a", support, q=ready(), rng=rng(), robot=robot)
    return [next(found) for _ in range(3)]


def made_plan(robots: Any) -> tk.Plan:
    """Return a plan without steps that is constructed with given arms."""
    p = plan()
    return tk.Plan(
        p.scene, p.q, robots, p.domain, p.domain_pddl, p.domain_digest, "", p.goal, 0, ()
    )


def tmp_plan(robot: Any, folder: Path) -> tk.Plan:
    """Return a plan from a file without steps."""
    path = folder / "plan.tmp"
    tk.save_plan(plan(), path)
    return load_tmp_plan(path, scene(), q=ready(), robot=robot)


def mounted(robot: Any) -> Any:
    """Return the Panda on a mobile base of one box."""
    chassis = tk.SceneGraph().add_frame(
        "body", "world", shapes=[tk.AttachedShape(tk.Box([0.6, 0.5, 0.36]))]
    )
    alone = tk.load_scene("panda_alone")
    return mount_on_base(alone, robot, chassis, pose=tk.Pose(), area=[[-1, -1], [1, 1]])


def grasp_check(robot: Any, folder: Path) -> Any:
    """Return the check of a file with one grasp of block ``a``."""
    path = folder / "grasps.npy"
    np.save(path, [graspnet_row(tk.Pose.from_rpy([0.0, 0.0, 0.005], [np.pi, 0.0, 0.0]))])
    return load_grasps(path, scene(), "a").check(scene(), robot=robot)


CALLS: dict[str, Callable[[Any, Path], object]] = {
    "plan.robot": lambda r, _: tk.plan(scene(), ready(), goal="(handempty)", robot=r).plan,
    "validate_plan.robot": lambda r, _: tk.validate_plan(plan(), robot=r).is_valid,
    "load_tmp_plan.robot": tmp_plan,
    "PlanningProblem.__init__.robots": lambda r, _: (
        tk.solve(tk.PlanningProblem(scene(), ready(), goal="(handempty)", robots=r)).plan
    ),
    "Plan.__init__.robots": lambda r, _: made_plan((r,)),
    "BasicMotions.__init__.robot": lambda r, _: ArmMotionPlanner(r).robot,
    "GraspRequest.__init__.robot": lambda r, _: GraspRequest(scene(), "a", r, rng()).robot,
    "PlacementRequest.__init__.robot": lambda r, _: (
        PlacementRequest(scene(), ready(), "a", "mat", r, rng()).robot
    ),
    "SeededSamplers.__init__.robot": lambda r, _: samplers(r).robot,
    "SeededSamplers.grasps.robot": lambda r, _: repr(samplers().grasps(scene(), "a", robot=r)),
    "SeededSamplers.placements.robot": lambda r, _: repr(
        placements(samplers().placements, "mat", r)
    ),
    "GraspFile.check.robot": lambda r, folder: repr(grasp_check(r, folder)),
    "grasps_of.robot": lambda r, _: repr(grasps_of(scene(), "a", robot=r)),
    "placements_in_region.robot": lambda r, _: repr(placements(placements_in_region, "mat", r)),
    "placements_on_surface.robot": lambda r, _: repr(placements(placements_on_surface, "b", r)),
    "CollisionRules.__init__.robot": lambda r, _: CollisionRules(r),
    "CollisionRules.__init__.other_arms": lambda r, _: CollisionRules("iiwa", other_arms=(r,)),
    "CollisionRules.from_start.robot": lambda r, _: CollisionRules.from_start(
        r, scene(), q=ready()
    ),
    "CollisionRules.from_start.other_arms": lambda r, _: CollisionRules.from_start(
        "panda", scene(), q=ready(), other_arms=(r,)
    ),
    "TorqueLimits.__init__.robot": lambda r, _: TorqueLimits(scene(), r, ready()).limits.tolist(),
    "reachable_region.robot": lambda r, _: repr(reachable_region(scene(), r, samples=20)),
    "mount_on_base.robot": lambda r, _: mounted(r),
    "check_robot.robot": lambda r, _: check_robot(scene(), r, samples=20).reach,
    "find_manipulator.robot": lambda r, _: find_manipulator(r, scene()),
    "Simulation.from_scene.robot": lambda r, _: simulated(r),
    "load_planning_domain.robot": lambda r, _: (
        load_planning_domain("kitchen", robot=r).semantics.robot
    ),
    "DomainSemantics.__init__.robot": lambda r, _: semantics_class()(r).robot,
    "DomainPart.__init__.robot": lambda r, _: Regions(r).robot,
    "Regions.__init__.robot": lambda r, _: Regions(r).robot,
    "Driving.__init__.robot": lambda r, _: Driving(r, "panda").robot,
    "Driving.__init__.base": lambda r, _: Driving("panda", r).base,
    "TwoArms.__init__.robots": lambda r, _: TwoArms("iiwa", r).arms["panda"],
    "no_grasp.robot": lambda r, _: no_grasp(scene(), "a", robot=r),
    "pick_candidates.robot": lambda r, _: repr(next(pick_candidates(context(), "a", robot=r))),
    "prove_too_high.robot": lambda r, _: prove_too_high(
        scene(), "a", bottom=9.0, fact=Fact.of("on", "a", "b"), robot=r
    ),
    "prove_ungraspable.robot": lambda r, _: prove_ungraspable(
        scene(), "a", fact=Fact.of("on", "a", "b"), robot=r
    ),
}
"""Calls of all exported functions and constructors with a robot argument, and of others."""


def simulated(robot: Any) -> tuple[Any, ...]:
    """Return the arms of a simulation."""
    pytest.importorskip("pybullet")
    with Simulation.from_scene(scene(), ready(), robot=robot) as simulation:
        return tuple(simulation._robots)


def semantics_class() -> type[Any]:
    """Return a semantics that does not override the constructor."""
    semantics = load_planning_domain("blocks", robot="panda").semantics
    return type(semantics)


def parameters() -> Iterator[str]:
    """Yield ``function.parameter`` for each parameter of a public function that is a robot."""
    for _, _, value in public():
        functions = [value] if inspect.isfunction(value) else []
        if inspect.isclass(value):
            members = [
                getattr(member, "__func__", member)
                for name, member in vars(value).items()
                if not name.startswith("_")
            ]
            functions = [value.__init__, *filter(inspect.isfunction, members)]
        for function in functions:
            for name, parameter in getattr(function, "__annotations__", {}).items():
                if name != "return" and re.search(r"\b(Manipulator|Robots?)\b", str(parameter)):
                    yield f"{function.__qualname__}.{name}"


def test_every_robot_argument_is_in_the_table() -> None:
    """A public function with a robot argument accepts a name, or states why it does not."""
    found = {
        name
        for name in parameters()
        if not PLANNER_CALLS.search(name)
        and name not in DESCRIPTION_ONLY
        and name.partition(".")[2] not in DESCRIPTION_ONLY
    }
    assert not found - set(CALLS)


def test_a_robot_argument_is_named_robot() -> None:
    """The parameter is ``robot`` or ``robots``, unless it has another role."""
    names = {name.rsplit(".", 1)[1] for name in CALLS}
    assert names == {"robot", "robots", "other_arms", "base"}


@pytest.mark.parametrize("call", CALLS)
def test_a_name_is_its_description(call: str, tmp_path: Path) -> None:
    """A call with a robot's name returns the result of the call with its description."""
    by_name = CALLS[call]("panda", tmp_path)
    assert by_name == CALLS[call](tk.load_manipulator("panda"), tmp_path)


@pytest.mark.parametrize("call", CALLS)
def test_an_unknown_name_has_the_nearest_one(call: str, tmp_path: Path) -> None:
    """The error for an unknown robot names the nearest one."""
    with pytest.raises((MissingFileError, RobotError), match=r"'pnada'.*did you mean 'panda'"):
        CALLS[call]("pnada", tmp_path)


@pytest.mark.parametrize("call", CALLS)
def test_another_type_is_an_argument_error(call: str, tmp_path: Path) -> None:
    """The error for another type states what is expected."""
    with pytest.raises(ArgumentError, match=r"must be .*Manipulator.*not an int \(3\)"):
        CALLS[call](3, tmp_path)
