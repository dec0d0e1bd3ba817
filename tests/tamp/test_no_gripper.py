"""Robots without a gripper: a point among obstacles, an arm that moves, and rejected picks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.robots import example_robot

import tmkit as tk
from tmkit.errors import RobotError
from tmkit.manipulation import (
    ActionContext,
    ArmMotionPlanner,
    Candidate,
    CloseHand,
    Grasp,
    MotionSettings,
    MoveTo,
    OpenHand,
    Pick,
    Samplers,
    SeededSamplers,
    grasps_of,
)
from tmkit.motion import CollisionWorld
from tmkit.motion.collision_rules import CollisionRules
from tmkit.pddl import GroundAction, State, make_action, make_domain, make_predicate
from tmkit.plans import MotionFailure, Plan
from tmkit.plans.values import Configuration, SegmentKind
from tmkit.robots import infer_arm
from tmkit.robots.robot_files import write_manipulator
from tmkit.tamp import DomainSemantics, PythonDomain
from tmkit.tamp.domains import no_grasp
from tmkit.tamp.trial_pick import TrialPickStatus, trial_pick
from tmkit.tamp.validation.segment_rules import segment_faults

AT = make_predicate("at", "?p - place")
GO = make_action(
    "go", "?from ?to - place", needs=[AT("?from")], adds=[AT("?to")], deletes=[AT("?from")]
)
PLACES: Mapping[str, tuple[float, float]] = {
    "start": (0.05, 0.05),
    "green": (0.9, 0.9),
    "red": (0.1, 0.9),
}


def point_scene() -> tk.SceneGraph:
    """Return a ball on two slides, among three boxes and a wall with a gap."""
    x, y = (
        tk.Prismatic(axis, lower=0.0, upper=1.0, velocity=0.5) for axis in ([1, 0, 0], [0, 1, 0])
    )
    scene = tk.SceneGraph().add_frame("x", "world", joint=x).add_frame("y", "x", joint=y)
    scene = scene.add_frame("ball", "y", shapes=[tk.Sphere(0.02)])
    scene = scene.set_inertia("ball", tk.Inertia(1.0, [0, 0, 0], matrix=1e-3 * np.eye(3)))
    boxes = {"a": (0.3, 0.3), "b": (0.6, 0.6), "c": (0.6, 0.2)}
    for name, (column, row) in boxes.items():
        pose = tk.Pose([column, row, 0.0])
        scene = scene.add_frame(name, "world", pose=pose, shapes=[tk.Box([0.15, 0.15, 0.1])])
    return scene.add_frame(
        "wall", "world", pose=tk.Pose([0.4, 0.75, 0.0]), shapes=[tk.Box([0.8, 0.02, 0.1])]
    )


POINT = tk.Manipulator(
    "point",
    base="world",
    tip="ball",
    tool="ball",
    joints=("x", "y"),
    ready={"x": 0.05, "y": 0.05},
    gripper_kind="none",
)


class PointSemantics(DomainSemantics):
    """Places of a point robot: it is at the place that it stands on."""

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the places."""
        del scene
        return dict.fromkeys(PLACES, "place")

    def state(self, scene: tk.SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the place at which the robot is."""
        del objects
        position = scene.pose("ball", relative_to="world", q=q).translation[:2]
        distances = {name: np.abs(position - point).max() for name, point in PLACES.items()}
        return State([AT.fact(name) for name, distance in distances.items() if distance < 1e-6])

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield the only motion to a place."""
        del context
        goal = action.arguments[1]
        yield MoveTo(dict(zip(("x", "y"), PLACES[goal], strict=True)), goal)


POINT_DOMAIN = PythonDomain(
    make_domain("points", types="place", predicates=[AT], actions=[GO]), PointSemantics
)


def stored(plan: Plan, path: Path) -> Plan:
    """Return a plan that was written to a file and read back."""
    tk.save_plan(plan, path)
    return tk.load_plan(path)


def test_a_point_robot_moves_among_obstacles(tmp_path: Path) -> None:
    """The plan leads through the gap beside the wall; it is valid, stored and executed."""
    scene = point_scene()
    result = tk.plan(scene, domain=POINT_DOMAIN, goal="(at green)", robot=POINT, seed=0)
    assert result.plan is not None, result.explanation
    assert [str(step.action) for step in result.plan.steps] == ["(go start green)"]
    path = result.plan.steps[0].segments[0].path
    assert float(path[:, 0].max()) > 0.8, "the gap is beyond x = 0.8 m"
    world = CollisionWorld(scene)
    edges = itertools.pairwise(path)
    assert all(world.is_edge_free(first, second, resolution=0.001) for first, second in edges)
    plan = stored(result.plan, tmp_path / "plan.json")
    assert plan.robots == (POINT,)
    assert tk.validate_plan(plan, domain=POINT_DOMAIN).is_valid
    report = tk.simulate(plan)
    assert report.is_successful, report.errors
    again = tk.plan(scene, domain=POINT_DOMAIN, goal="(at green)", robot=POINT, seed=0).plan
    assert again is not None
    assert again.steps[0].segments[0].path.tobytes() == path.tobytes()


def test_an_enclosed_point_robot_has_no_plan() -> None:
    """A wall without a gap: the explanation names the wall, and infeasibility is not proven."""
    scene = point_scene().set_shapes("wall", [tk.AttachedShape(tk.Box([3.0, 0.02, 0.1]))])
    options = tk.PlanningOptions(seed=0, max_iterations=1)
    result = tk.plan(scene, domain=POINT_DOMAIN, goal="(at red)", robot=POINT, options=options)
    assert result.plan is None
    assert "'wall'" in result.explanation
    assert "(go start red) failed" in result.explanation


class Postures(DomainSemantics):
    """Postures of an arm: fractions of the way between two configurations."""

    def values(self, name: str) -> Mapping[str, float]:
        """Return the joint values of a posture [rad]."""
        shift = {"start": 0.0, "green": 0.4, "red": -0.4}[name]
        return {joint: value + shift for joint, value in self.robot.ready.items()}

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the places."""
        del scene
        return dict.fromkeys(PLACES, "place")

    def state(self, scene: tk.SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the place at which the robot is."""
        del objects
        return State(
            AT.fact(name)
            for name in PLACES
            if np.abs(scene.configuration(self.values(name), base=q) - q).max() < 1e-6
        )

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield the only motion to a place."""
        del context
        yield MoveTo(self.values(action.arguments[1]), action.arguments[1])


POSTURES = PythonDomain(
    make_domain("postures", types="place", predicates=[AT], actions=[GO]), Postures
)


def bare_arm() -> tuple[tk.SceneGraph, tk.Manipulator]:
    """Return a UR10 without a hand, from its URDF, and its description."""
    scene = tk.load_scene(example_robot("ur_description/urdf/ur10_robot.urdf"))
    inferred = infer_arm(scene, name="ur10").without_gripper()
    ready = (0.0, -1.7, 1.7, -1.57, -1.57, 0.0)
    arm = replace(inferred.robot, ready=dict(zip(inferred.robot.joints, ready, strict=True)))
    return inferred.scene, arm


def test_an_arm_without_a_hand_moves(tmp_path: Path) -> None:
    """A UR10 without a hand plans, is stored with its description, and is executed."""
    scene, arm = bare_arm()
    assert arm.gripper_kind == "none"
    assert repr(arm).startswith("Manipulator('ur10', 6 joints, no gripper, tool ")
    write_manipulator(arm, tmp_path / "ur10.toml")
    assert tk.load_manipulator(tmp_path / "ur10.toml") == arm
    goal = "(at red)"
    result = tk.plan(scene, domain=POSTURES, goal=goal, robot=tmp_path / "ur10.toml", seed=0)
    assert result.plan is not None, result.explanation
    plan = stored(result.plan, tmp_path / "plan.json")
    assert tk.validate_plan(plan, domain=POSTURES).is_valid
    report = tk.simulate(plan)
    assert report.is_successful, report.errors


BLOCK_SCENE = tk.load_scene("ur5_table", "blocks3")
HANDLESS = replace(tk.load_manipulator("ur5"), gripper_kind="none")


def failures(candidate: Candidate) -> list[MotionFailure]:
    """Return the failures of a candidate of the arm without a gripper."""
    q = HANDLESS.ready_configuration(BLOCK_SCENE)
    arm = ArmMotionPlanner(HANDLESS, budget=MotionSettings())
    context = ActionContext(
        BLOCK_SCENE,
        q,
        np.random.default_rng(0),
        SeededSamplers(Samplers(), HANDLESS, 0),
        {HANDLESS.name: arm},
    )
    results = list(itertools.islice(candidate.refine(arm, context, seed=0), 3))
    assert all(isinstance(result, MotionFailure) for result in results)
    return [result for result in results if isinstance(result, MotionFailure)]


def test_grasps_and_picks_fail_with_the_reason() -> None:
    """There is no grasp, which is proved; a pick fails, a push lacks links to push with."""
    assert grasps_of(BLOCK_SCENE, "a", robot=HANDLESS) == ()
    dead_end = no_grasp(BLOCK_SCENE, "a", robot=HANDLESS)
    assert (dead_end.cause, dead_end.is_proved) == ("the arm 'ur5' has no gripper", True)
    grasp = Grasp(tk.Pose([0.0, 0.0, 0.025]), 0.0, "top")
    for candidate in (Pick("a", grasp), CloseHand("a"), OpenHand()):
        (failure,) = failures(candidate)
        assert (failure.phase, failure.cause) == ("grasp", "the arm 'ur5' has no gripper")
    with pytest.raises(RobotError, match="'none' has no gripper joints, received 'wrist_3_joint'"):
        replace(
            HANDLESS,
            joints=HANDLESS.joints[:-1],
            ready={joint: HANDLESS.ready[joint] for joint in HANDLESS.joints[:-1]},
            velocity={},
            acceleration={},
            gripper_joints=("wrist_3_joint",),
            gripper_open={"wrist_3_joint": 0.0},
            gripper_closed={"wrist_3_joint": 0.0},
        )
    trial = trial_pick(BLOCK_SCENE, HANDLESS)
    assert (trial.status, trial.reason) == (
        TrialPickStatus.NO_GRIPPER,
        "the arm 'ur5' has no gripper",
    )


@pytest.mark.parametrize("domain", ["blocks", "kitchen", "sorting", "push", "pour", "drawer"])
def test_built_in_domains_reject_the_robot(domain: str) -> None:
    """Domains that pick reject the arm before planning begins, with the reason."""
    message = "robot 'ur5': has no gripper .gripper kind 'none'., and the domain picks objects"
    with pytest.raises(RobotError, match=message):
        tk.plan(BLOCK_SCENE, domain=domain, goal="(on a b)", robot=HANDLESS)


def test_the_validator_rejects_grasps_without_a_gripper() -> None:
    """The grasp of a suction cup is invalid for the same arm without it."""
    plan = tk.plan(BLOCK_SCENE, domain="blocks", goal="(on a b)", robot="ur5", seed=0).plan
    assert plan is not None
    rules = CollisionRules.from_start(HANDLESS, plan.scene, q=plan.q)
    message = "the arm 'ur5' has no gripper"
    for segment in plan.steps[0].segments:
        faults = segment_faults(segment, plan.scene, plan.q, rules=rules, before=None, after=None)
        assert (message in [*faults]) == (segment.kind is SegmentKind.GRASP)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_moves_of_a_point_robot_end_at_the_goal(x: float, y: float) -> None:
    """A move ends at its goal where that is free, else it fails."""
    scene = point_scene()
    q = scene.configuration({"x": 0.05, "y": 0.05})
    arm = ArmMotionPlanner(POINT, budget=MotionSettings())
    (result,) = arm.move(scene, q, to={"x": x, "y": y}, name="goal", seed=0)
    if isinstance(result, MotionFailure):
        assert CollisionWorld(scene, margin=0.003).is_in_collision([x, y])
    else:
        assert np.allclose(result.q, [x, y])
