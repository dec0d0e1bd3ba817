"""What a user writes, for the type checker: this file is checked by mypy and never run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.graph import SceneHistory, add_pose, find_structure, gaussian_twist, relate, tree_text
from tmkit.graph.patterns import ChildOf, Part, Pattern
from tmkit.pddl import And, Fact, GroundAction, Problem, State, make_domain, make_predicate
from tmkit.relations import Frame, FramedPose, PoseCoord, SemanticPose, SemanticTwist, TwistCoord
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanResult, TaskPlanStatus, Z3Planner
from tmkit.task_planning.translated_task import TranslatedTask
from tmkit.task_planning.z3.planner import SmtTask


def scenes() -> None:
    """Edits return scenes, queries return poses and arrays; lists and tuples are accepted."""
    scene = tk.SceneGraph()
    scene = scene.add_frame(
        "cup", parent="world", pose=tk.Pose([0.4, 0.1, 0.05]), classes=["movable"]
    )
    scene = scene.add_frame("lid", "cup", joint=tk.Revolute((0, 1, 0), lower=0.0, upper=1.5))
    assert_type(scene, tk.SceneGraph)
    assert_type(scene.frame_names, tuple[str, ...])
    assert_type(scene.parent("cup"), str | None)
    q = scene.configuration({"lid": 0.3})
    assert_type(q, NDArray[np.float64])
    assert_type(scene.pose("lid", relative_to="world", q=q), tk.Pose)
    assert_type(scene.at([0.3]).jacobian("lid"), NDArray[np.float64])
    with scene.edit() as edit:
        edit.reparent("cup", "world", pose=tk.Pose())
    assert_type(edit.finish(), tk.SceneGraph)


def relations() -> None:
    """What is asked by coordinates has the class that belongs to them, and is added as it comes."""
    scene = tk.SceneGraph()
    pose = relate(scene, PoseCoord("{cup}|cup", "{world}|world", "[world]"))
    assert_type(pose, SemanticPose)
    assert_type(relate(scene.at([]), TwistCoord("cup|cup", "world", "[world]")), SemanticTwist)
    assert_type(
        gaussian_twist(scene, TwistCoord("cup|cup", "world", "[world]")), tk.spatial.GaussianTwist
    )
    assert_type(add_pose(scene, pose, on_conflict="invert"), tk.SceneGraph)


class Hand(Frame):
    """A frame as a type."""


class Table(Frame):
    """Another."""


class World(Frame, name="world"):
    """One more."""


def frames_as_types() -> None:
    """A product of poses is one where the inner frames meet."""
    grasp, place = FramedPose(Hand, Table, tk.Pose()), FramedPose(Table, World, tk.Pose())
    assert_type(grasp, FramedPose[Hand, Table])
    assert_type(grasp @ place, FramedPose[Hand, World])
    assert_type((grasp @ place).inverse(), FramedPose[World, Hand])
    assert_type(grasp.pose, tk.Pose)
    place @ grasp  # type: ignore[operator]  # the hand is not the world
    grasp @ grasp  # type: ignore[operator]
    wrong: FramedPose[Table, Hand] = grasp  # type: ignore[assignment]
    del wrong
    pose = SemanticPose(PoseCoord("{cup}|cup", "{hand}|hand", "[hand]"), tk.Pose())
    assert_type(pose @ pose, SemanticPose)
    assert_type(pose.pose, tk.Pose)


def looking() -> None:
    """A history has the edits of a scene, with their arguments; matches map roles to frames."""
    log = (
        SceneHistory(tk.SceneGraph())
        .add_frame("cup", "world", pose=tk.Pose())
        .set_classes("cup", ["movable"])
    )
    assert_type(log.undo(), SceneHistory)
    assert_type(log.scene, tk.SceneGraph)
    assert_type(tree_text(log.scene, depth=3), str)
    pattern = Pattern([Part("thing", ["movable"]), Part("place")], [ChildOf("thing", "place")])
    for match in find_structure(log.scene, pattern):
        assert_type(match["thing"], str)


def control() -> None:
    """Arrays are edited in place and give poses and scenes."""
    arrays = tk.SceneArrays(tk.SceneGraph(), capacity={"frames": 256, "shapes": 10})
    arrays.add_frame("cup", "world", pose=tk.Pose([0.4, 0.1, 0.05]))
    arrays.forward([])
    assert_type(arrays.poses, NDArray[np.float64])
    assert_type(arrays.pose("cup", relative_to="world"), tk.Pose)
    assert_type(arrays.write_poses(np.zeros((256, 7))), int)
    assert_type(arrays.capacities, dict[str, int])
    assert_type(arrays.freeze(), tk.SceneGraph)


def planning() -> None:
    """A result may have no plan, and the type says so."""
    scene = tk.load_scene("panda_table", "blocks3")
    result = tk.plan(
        scene,
        domain="blocks",
        goal="(on a b)",
        robot="panda",
        seed=0,
        options=tk.PlanningOptions(time_limit=30.0),
    )
    assert_type(result.status, tk.PlanStatus)
    assert_type(result.plan, tk.Plan | None)
    problem = tk.PlanningProblem(
        scene, goal=[tk.plans.ObjectAt("a", tk.Pose(), relative_to="table"), "(on a b)"]
    )
    assert_type(tk.solve(problem, tk.PlanningOptions(seed=1, improve=None)), tk.PlanResult)
    assert_type(
        tk.plan(scene, q=[0.0], goal=scene, options=tk.PlanningOptions(workers=2)), tk.PlanResult
    )
    tk.plan(scene)  # type: ignore[call-arg]  # a goal is needed
    tk.plan(scene, goal="(on a b)", seed="1")  # type: ignore[arg-type]  # a number is needed
    tk.plan(scene, goal="(on a b)", sed=1)  # type: ignore[call-arg]  # no such argument
    tk.plan(problem, goal="(on a b)")  # type: ignore[arg-type]  # a scene is needed
    tk.solve(scene)  # type: ignore[arg-type]  # a problem is needed
    if result.plan is not None:
        assert_type(tk.validate_plan(result.plan).is_valid, bool)
        report = tk.simulate(result.plan)
        assert_type(report.is_successful, bool)
        assert_type(report.status, tk.simulation.SimulationStatus)


@dataclass(frozen=True)
class Nothing:
    """A prepared task that need not derive from anything."""

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> Nothing:
        """Forbid nothing."""
        del action, context
        return self


class Idle:
    """A task planner that has the methods of the protocol without deriving from it."""

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> Nothing:
        """Do nothing."""
        del problem, time_limit
        return Nothing()

    def search(self, task: Nothing, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Give up."""
        del task, time_limit
        return TaskPlanResult(TaskPlanStatus.LIMIT)

    def solve(self, problem: Problem, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Give up."""
        return self.search(self.prepare(problem), time_limit=time_limit)


def task_planning() -> None:
    """Planners of tasks differ in what they prepare; any of them may be given."""
    planners: tuple[TaskPlanner[Any], ...] = (
        Idle(),
        FastDownward(),
        FastDownward.optimal(),
        Z3Planner(),
    )
    tk.plan(
        tk.load_scene("panda_table", "blocks3"),
        goal="(on a b)",
        options=tk.PlanningOptions(task_planner=planners[0]),
    )
    domain = make_domain("d", predicates=[make_predicate("p")], actions=[])
    problem = Problem("p", domain, objects={}, init=State(), goal=And())
    assert_type(FastDownward().prepare(problem), TranslatedTask)
    assert_type(Z3Planner().prepare(problem).forbid(GroundAction("a"), []), SmtTask)
    assert_type(Idle().prepare(problem), Nothing)
