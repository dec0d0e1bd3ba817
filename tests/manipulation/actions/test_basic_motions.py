"""Basic motions: free motions, lines, touches and hand motions, alone and in sequence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from support.blocks import blocks_scene, with_box
from support.effort import scaled_examples
from support.gantry import BLOCK, GANTRY

from tmkit.errors import ArgumentError, ConfigurationError, RobotError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    ActionMotion,
    ArmMotionPlanner,
    Candidate,
    CloseHand,
    MoveStraight,
    MoveTo,
    OpenHand,
    Sequence,
    Touch,
)
from tmkit.motion import PathQuery, PathResult, RrtConnect
from tmkit.plans import FailureKind, MotionFailure, SegmentKind
from tmkit.robots.hands import pair_distance
from tmkit.spatial import Pose

FINGERS = ("left_finger", "right_finger")
"""Contact links of the gantry."""

DOWN = Pose.from_rpy([0.0, 0.0, 0.0], [np.pi, 0.0, 0.0]).quat_xyzw
"""Orientation of the gantry's tool, whose z axis points down."""


class _CountingPlanner:
    """Path planner that counts its searches."""

    def __init__(self) -> None:
        self.count = 0

    def search(self, query: PathQuery) -> PathResult:
        """Search with RRT-Connect."""
        self.count += 1
        return RrtConnect().search(query)


def pedestal_scene(top: float, x: float = 0.0, y: float = 0.0) -> SceneGraph:
    """Return the gantry over a pedestal with its top at a height [m]."""
    return with_box(
        blocks_scene({}), "pedestal", (x - 0.03, y - 0.03, 0.0), (x + 0.03, y + 0.03, top)
    )


def closed(scene: SceneGraph) -> tuple[ArmMotionPlanner, NDArray[np.float64]]:
    """Return the gantry's planner and its ready configuration with closed fingers."""
    arm = ArmMotionPlanner(GANTRY)
    (motion,) = arm.close(scene, np.array(GANTRY.ready_configuration(scene)))
    assert isinstance(motion, ActionMotion)
    return arm, motion.q


def only(attempts: Iterator[ActionMotion | MotionFailure]) -> ActionMotion:
    """Return the only motion."""
    (motion,) = attempts
    assert isinstance(motion, ActionMotion), motion
    return motion


def failure(attempts: Iterator[ActionMotion | MotionFailure]) -> MotionFailure:
    """Return the only failure."""
    (attempt,) = attempts
    assert isinstance(attempt, MotionFailure), attempt
    return attempt


def refine(
    candidate: Candidate, scene: SceneGraph, arm: ArmMotionPlanner | None = None
) -> list[ActionMotion | MotionFailure]:
    """Return all attempts of a candidate from the ready configuration."""
    arm = ArmMotionPlanner(GANTRY) if arm is None else arm
    q = np.array(GANTRY.ready_configuration(scene))
    context = ActionContext(scene, q, np.random.default_rng(0), arms={GANTRY.name: arm})
    return list(candidate.refine(arm, context, seed=0))


# --- free motions


def test_a_configuration_is_a_goal_like_its_values_by_joint() -> None:
    """The arm's joints of a configuration count; fingers keep their values."""
    scene = blocks_scene({})
    arm, q = ArmMotionPlanner(GANTRY), np.array(GANTRY.ready_configuration(scene))
    values = {"x": 0.1, "y": 0.2, "z": 0.4, "turn": 1.0}
    goal = scene.configuration({**values, "finger": 0.01}, base=q)
    by_joint = only(arm.move(scene, q, to=values, seed=0))
    by_configuration = only(arm.move(scene, q, to=goal, seed=0))
    assert np.array_equal(by_joint.segments[0].path, by_configuration.segments[0].path)
    assert by_configuration.segments[0].gripper == pytest.approx({"finger": 0.04})
    assert MoveTo(goal) == MoveTo(tuple(goal.tolist()))


def test_a_pose_is_a_goal_of_the_tool_or_of_a_held_object() -> None:
    """The tool reaches its pose; with ``frame`` the object in the hand does."""
    scene = blocks_scene({"a": (0, 0)})
    arm, q = ArmMotionPlanner(GANTRY), np.array(GANTRY.ready_configuration(scene))
    goal = Pose([0.1, -0.1, 0.3], DOWN)
    reached = next(arm.move(scene, q, to=goal, seed=0))
    assert isinstance(reached, ActionMotion)
    assert scene.pose("tool", q=reached.q).distance(goal) == pytest.approx((0.0, 0.0), abs=1e-4)
    held = scene.reparent("a", "hand", pose=Pose([0.0, 0.0, -0.12]))
    above = Pose([0.1, -0.1, 0.3])
    reached = next(arm.move(held, q, to=above, frame="a", seed=0))
    assert isinstance(reached, ActionMotion)
    assert held.pose("a", q=reached.q).distance(above) == pytest.approx((0.0, 0.0), abs=1e-4)
    with pytest.raises(
        ConfigurationError, match="'a' does not move with the hand 'hand', which holds nothing"
    ):
        list(arm.move(scene, q, to=above, frame="a", seed=0))


def test_goals_that_do_not_fit_are_errors() -> None:
    """Another number of values, a finger joint and an unknown joint are named."""
    scene = blocks_scene({})
    arm, q = ArmMotionPlanner(GANTRY), np.array(GANTRY.ready_configuration(scene))
    with pytest.raises(ConfigurationError, match=r"shape \(4,\), expected \(5,\)"):
        list(arm.move(scene, q, to=[0.0, 0.0, 0.0, 0.0], seed=0))
    with pytest.raises(ConfigurationError, match="joint 'finger' belongs to the hand of 'gantry'"):
        list(arm.move(scene, q, to={"finger": 0.0}, seed=0))
    with pytest.raises(UnknownNameError, match="did you mean 'turn'"):
        list(arm.move(scene, q, to={"turm": 0.0}, seed=0))


# --- touches and lines


@settings(max_examples=scaled_examples(0.15), deadline=None)
@given(
    top=st.floats(0.02, 0.3),
    height=st.floats(0.002, 0.2),
    x=st.floats(-0.3, 0.3),
    tilt=st.floats(-0.5, 0.5),
    depth=st.sampled_from([0.0, 0.001]),
)
def test_a_touch_ends_in_contact(
    top: float, height: float, x: float, tilt: float, depth: float
) -> None:
    """From any height and at any angle the fingers end at most 0.1 mm above the surface."""
    scene = with_box(blocks_scene({}), "plate", (-0.5, -0.5, 0.0), (0.5, 0.5, top))
    arm, q = closed(scene)
    z = 0.8 - 0.125 - top - height  # the fingertips are 125 mm below the hand
    q = np.array(scene.configuration({"x": x, "y": 0.0, "z": z}, base=q))
    by = [0.3 * tilt, 0.0, -0.3]
    motion = only(arm.touch(scene, q, frame="plate", by=by, depth=depth))
    gaps = [pair_distance(scene, motion.q, frame_a=finger, frame_b="plate") for finger in FINGERS]
    scale = 0.3 / float(np.linalg.norm(by))
    assert -depth * scale <= min(gaps) <= 1e-4 - depth * scale + 1e-5
    (segment,) = motion.segments
    assert (segment.kind, segment.touching, segment.held) == (SegmentKind.LINE, ("plate",), None)
    assert segment.reparenting is None
    points = [scene.pose("tool", q=row).translation for row in (q, motion.q)]
    assert np.cross(points[1] - points[0], by) == pytest.approx(np.zeros(3), abs=1e-4)


def test_touches_that_do_not_meet_are_failures() -> None:
    """Too short, beside the frame, in contact already, and without a shape."""
    scene = pedestal_scene(0.1).add_frame("mark", "pedestal")
    arm, q = closed(scene)
    q = np.array(scene.configuration({"x": 0.0, "y": 0.0, "z": 0.5}, base=q))
    cause = failure(arm.touch(scene, q, frame="pedestal", by=[0.0, 0.0, -0.05])).cause
    assert cause == "'left_finger' or 'right_finger' does not meet 'pedestal' within 50 mm"
    beside = np.array(scene.configuration({"x": 0.2}, base=q))
    cause = failure(arm.touch(scene, beside, frame="pedestal", by=[0.0, 0.0, -0.1])).cause
    assert "does not meet 'pedestal' within 100 mm" in cause
    touched = only(arm.touch(scene, q, frame="pedestal", by=[0.0, 0.0, -0.1]))
    again = failure(arm.touch(scene, touched.q, frame="pedestal", by=[0.0, 0.0, -0.1]))
    assert "starts in contact with 'pedestal'" in again.cause
    cause = failure(arm.touch(scene, q, frame="mark", by=[0.0, 0.0, -0.1])).cause
    assert cause == "'mark' has no collision shape to touch; its ancestor 'pedestal' has one"
    cause = failure(arm.touch(scene, q, frame="carriage", by=[0.0, 0.0, -0.1])).cause
    assert cause == "'carriage' is a frame of an arm"


def test_touches_that_cannot_be_meant_are_errors() -> None:
    """A depth beyond the tolerance, no length, an unknown frame, and a name in place of a tuple."""
    scene = pedestal_scene(0.1)
    arm, q = closed(scene)
    with pytest.raises(ConfigurationError, match=r"depth of 0\.003 m: expected 0 to 0\.002 m"):
        list(arm.touch(scene, q, frame="pedestal", by=[0.0, 0.0, -0.1], depth=0.003))
    with pytest.raises(ConfigurationError, match="its pose rotates the tool"):
        list(arm.touch(scene, q, frame="pedestal", by=Pose.from_rpy([0, 0, 0.1], [0, 0, 0.1])))
    with pytest.raises(ConfigurationError, match="the motion has no length"):
        list(arm.touch(scene, q, frame="pedestal", by=[0.0, 0.0, 0.0]))
    with pytest.raises(UnknownNameError, match="did you mean 'pedestal'"):
        list(arm.touch(scene, q, frame="pedestl", by=[0.0, 0.0, -0.1]))
    with pytest.raises(ConfigurationError, match="either 'by' or 'to'"):
        list(arm.move_straight(scene, q))
    with pytest.raises(ArgumentError, match="touching"):
        MoveStraight([0.0, 0.0, 0.1], touching="pedestal")  # type: ignore[arg-type]


def test_a_line_touches_only_what_it_names() -> None:
    """Contact is refused unless it is declared, and a declared one is required."""
    scene = pedestal_scene(0.1)
    arm, q = closed(scene)
    q = np.array(scene.configuration({"x": 0.0, "y": 0.0, "z": 0.5}, base=q))
    contact = only(arm.touch(scene, q, frame="pedestal", by=[0.0, 0.0, -0.1]))
    down = {"by": [0.0, 0.0, float(contact.q[2] - q[2]) * -1.0]}
    refused = failure(arm.move_straight(scene, q, **down))
    assert refused.kind is FailureKind.COLLISION
    assert set(refused.pairs[0]) & set(FINGERS)
    assert "pedestal" in refused.pairs[0]
    only(arm.move_straight(scene, q, **down, touching=["pedestal"]))
    # sliding and leaving are contact, too
    for by in ([0.02, 0.0, 0.0], [0.0, 0.0, 0.05]):
        assert failure(arm.move_straight(scene, contact.q, by=by)).pairs
        only(arm.move_straight(scene, contact.q, by=by, touching=["pedestal"]))
    absent = failure(arm.move_straight(scene, q, by=[0.0, 0.0, 0.05], touching=["pedestal"]))
    assert "mm from 'pedestal', which the line should touch at its start or end" in absent.cause


@settings(max_examples=scaled_examples(0.1), deadline=None)
@given(offset=st.tuples(*[st.floats(-0.1, 0.1)] * 3), turn=st.floats(-1.0, 1.0))
def test_lines_by_vector_pose_and_goal_agree(
    offset: tuple[float, float, float], turn: float
) -> None:
    """A translation in root axes, the relative pose and the goal pose give the same line."""
    scene = blocks_scene({})
    arm = ArmMotionPlanner(GANTRY)
    base = np.array(GANTRY.ready_configuration(scene))
    q = np.array(scene.configuration({"x": 0.0, "y": 0.0, "z": 0.3, "turn": turn}, base=base))
    start = scene.pose("tool", q=q)
    goal = Pose(start.translation + np.array(offset), start.quat_xyzw)
    lines = [
        only(arm.move_straight(scene, q, by=offset)),
        only(arm.move_straight(scene, q, by=start.inverse() @ goal)),
        only(arm.move_straight(scene, q, to=goal)),
    ]
    for line in lines:
        assert scene.pose("tool", q=line.q).distance(goal)[0] < 1e-4
        assert line.q == pytest.approx(lines[0].q, abs=1e-4)


# --- the hand


def test_the_hand_closes_and_opens_at_rest() -> None:
    """Only the fingers move, to the given width; a second motion is none."""
    scene = blocks_scene({})
    arm, q = ArmMotionPlanner(GANTRY), np.array(GANTRY.ready_configuration(scene))
    motion = only(arm.close(scene, q))
    assert motion.segments[0].gripper == {"finger": 0.0}
    assert motion.segments[0].path.shape == (1, 4)
    assert only(arm.close(scene, motion.q)).segments == ()
    opened = only(arm.open(scene, motion.q, width=0.03))
    assert opened.segments[0].gripper == pytest.approx({"finger": 0.015})
    assert only(arm.open(scene, opened.q)).q == pytest.approx(q)
    with pytest.raises(RobotError, match=r"cannot be 0\.2000 m apart"):
        list(arm.open(scene, q, width=0.2))


def pick_and_release(width: float = BLOCK, parent: str = "table", up: float = 0.1) -> Sequence:
    """Return the pick of block `a` by basic motions, and its release at the same place."""
    grasp = Pose([0.0, 0.0, BLOCK / 2], DOWN)
    lines = (
        OpenHand(),
        MoveTo(Pose([0.0, 0.0, 0.1]) @ grasp, "above a"),
        MoveStraight(to=grasp),
        CloseHand("a", width=width),
        MoveStraight(by=[0.0, 0.0, up], touching=("table",)),
        Touch("table", by=[0.0, 0.0, -0.1]),
        OpenHand(parent=parent),
        MoveStraight(by=Pose([0.0, 0.0, -0.1])),
    )
    return Sequence(lines, object="a")


def test_a_pick_and_a_release_are_composed_of_basic_motions() -> None:
    """The object changes its parent at the grasp and at the release, and stays where it was."""
    scene = blocks_scene({"a": (0, 0)})
    motion = refine(pick_and_release(), scene)[0]
    assert isinstance(motion, ActionMotion), motion
    kinds = [segment.kind.value for segment in motion.segments]
    assert kinds == ["transit", "line", "grasp", "line", "line", "release", "line"]
    assert [s.held for s in motion.segments] == [None, None, *["a"] * 4, None]
    assert motion.scene.parent("a") == "table"
    assert motion.scene.pose("a").distance(scene.pose("a"))[0] < 2e-4


@pytest.mark.parametrize(
    ("candidate", "cause"),
    [
        (pick_and_release(width=0.03), "the fingers cannot move"),
        (pick_and_release(parent="rail"), "'rail' has no collision shape"),
        (Sequence((OpenHand(parent="table"),)), "the hand is empty"),
        (Sequence((CloseHand("table", width=0.03),)), "'table' is not a movable object"),
    ],
)
def test_hand_motions_fail_with_their_cause(candidate: Candidate, cause: str) -> None:
    """Each infeasible motion of the hand is a failure."""
    scene = blocks_scene({"a": (0, 0)})
    attempts = refine(candidate, scene)
    assert all(isinstance(attempt, MotionFailure) for attempt in attempts)
    assert any(cause in str(attempt) for attempt in attempts), [*map(str, attempts)]


def test_a_hand_that_holds_opens_only_on_a_frame() -> None:
    """Without a parent the release is a failure, and so is a second grasp."""
    scene = blocks_scene({"a": (0, 0), "b": (2, 2)}).reparent("a", "hand", pose=Pose([0, 0, -0.12]))
    arm, q = ArmMotionPlanner(GANTRY), np.array(GANTRY.ready_configuration(scene))
    assert "the hand holds 'a': name the frame" in failure(arm.open(scene, q)).cause
    cause = failure(arm.close(scene, q, object="b", width=BLOCK)).cause
    assert cause == "'b' needs an empty hand, but that of 'gantry' holds 'a'"
    far = failure(arm.open(scene, q, parent="table"))
    assert "mm off 'table'" in far.cause


# --- sequences


def test_no_path_is_searched_to_a_line_that_fails() -> None:
    """Straight parts come first: with an obstacle under the goal no path search runs."""
    planner = _CountingPlanner()
    arm = ArmMotionPlanner(GANTRY, motion_planner=planner)
    scene = with_box(pedestal_scene(0.1), "lid", (-0.05, -0.05, 0.2), (0.05, 0.05, 0.22))
    parts = (
        CloseHand(),
        MoveTo(Pose([0.0, 0.0, 0.4], DOWN), "above the lid"),
        Touch("pedestal", by=[0.0, 0.0, -0.3]),
    )
    attempts = refine(Sequence(parts), scene, arm)
    assert planner.count == 0
    failed = attempts[0]
    assert isinstance(failed, MotionFailure)
    assert failed.phase == "touching pedestal"
    assert "lid" in failed.pairs[0]
    free = refine(Sequence(parts), pedestal_scene(0.1), arm)
    assert any(isinstance(attempt, ActionMotion) for attempt in free)
    assert planner.count > 0


def test_a_sequence_equals_its_parts_one_after_the_other() -> None:
    """The segments of a sequence join: each starts where the previous one ends."""
    scene = blocks_scene({"a": (0, 0)})
    motion = refine(pick_and_release(), scene)[0]
    assert isinstance(motion, ActionMotion)
    row, version = np.array(GANTRY.ready_configuration(scene)), scene
    for segment in motion.segments:
        entries = [version.joint_names.index(name) for name in segment.joint_names]
        assert row[entries] == pytest.approx(segment.path[0], abs=1e-9)
        version, row = segment.end(version, row)
    assert version == motion.scene
    assert row == pytest.approx(motion.q, abs=1e-9)


def test_a_sequence_is_deterministic() -> None:
    """The same sequence gives the same segments, bit by bit."""
    scene = blocks_scene({"a": (0, 0)})
    first, second = (refine(pick_and_release(), scene)[0] for _ in range(2))
    assert isinstance(first, ActionMotion)
    assert isinstance(second, ActionMotion)
    assert first.segments == second.segments
