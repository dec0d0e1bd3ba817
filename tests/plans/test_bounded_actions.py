"""Bounded actions: they follow the paths within the tolerance and the limits, also with errors."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray
from support.gantry import GANTRY, JOINTS, stacking_plan

import tmkit as tk
from tmkit.errors import ArgumentError, UnknownNameError
from tmkit.plans import Plan, SegmentKind, bounded_actions

GROUPS = {"rails": ["x", "y", "z"], "wrist": ["turn"]}


def plan_along(path: NDArray[np.float64]) -> Plan:
    """Return a plan of one transit of the gantry along a path (k, 4)."""
    plan = stacking_plan()
    step = plan.steps[0]
    transit = replace(step.segments[0], path=path)
    q = plan.scene.configuration(dict(zip(JOINTS, path[0], strict=True)), base=plan.q)
    return replace(plan, q=q, steps=(replace(step, segments=(transit,)),))


def joint_values(plan: Plan, group: str) -> NDArray[np.float64]:
    """Return the joint values of a group at the start of a plan."""
    return plan.q[[plan.scene.joint_names.index(name) for name in GROUPS[group]]]


def deviation(point: NDArray[np.float64], corners: NDArray[np.float64]) -> float:
    """Return the distance of a point from a polyline, by the joint that differs most."""
    nearest = float(np.max(np.abs(corners - point), axis=1).min())
    for first, last in pairwise(corners):
        change = last - first
        squared = float(change @ change)
        if squared > 0.0:
            share = min(1.0, max(0.0, float((point - first) @ change) / squared))
            nearest = min(nearest, float(np.max(np.abs(first + share * change - point))))
    return nearest


PATHS = st.integers(1, 9).flatmap(
    lambda count: npst.arrays(np.float64, (count, 4), elements=st.floats(-3.0, 3.0, width=32))
)


@given(path=PATHS, limits=st.tuples(*[st.floats(0.05, 1.0)] * 4), tolerance=st.floats(1e-6, 0.5))
def test_actions_follow_a_path_within_the_tolerance_and_the_limits(
    path: NDArray[np.float64], limits: tuple[float, ...], tolerance: float
) -> None:
    """Deltas add up to the path, are within the limits, and both lines are near each other."""
    plan = plan_along(path)
    actions = bounded_actions(
        plan, groups=GROUPS, limits={"rails": limits[:3], "wrist": limits[3]}, tolerance=tolerance
    )
    deltas = np.array(
        [np.concatenate([action.deltas[name] for name in GROUPS]) for action in actions]
    ).reshape(-1, 4)
    targets = np.array(
        [np.concatenate([action.targets[name] for name in GROUPS]) for action in actions]
    ).reshape(-1, 4)
    assert np.all(np.abs(deltas) <= np.array(limits))
    assert np.allclose(path[0] + np.cumsum(deltas, axis=0), targets, atol=1e-9)
    assert np.allclose(path[0] + deltas.sum(axis=0), path[-1], atol=1e-9)
    line = np.vstack([path[:1], targets])
    assert max(deviation(row, line) for row in path) <= tolerance + 1e-9
    assert max(deviation(target, path) for target in line) <= 2.0 * tolerance + 1e-9


@given(path=PATHS, turns=st.integers(-3, 3), data=st.data())
def test_a_robot_that_slips_reaches_the_end(
    path: NDArray[np.float64], turns: int, data: st.DataObject
) -> None:
    """Commands from the observed values correct each error, and never exceed the limits."""
    plan = plan_along(path)
    scene = plan.scene.set_joint("hand", tk.Continuous([0, 0, 1], name="turn"))
    plan = replace(plan, scene=scene, steps=(replace(plan.steps[0], scene=scene),))
    limits = {"rails": 0.3, "wrist": 0.4}
    observed = {name: joint_values(plan, name).copy() for name in GROUPS}
    observed["wrist"] += math.tau * turns  # an encoder that counts turns from elsewhere
    shares = data.draw(st.lists(st.floats(0.3, 1.0), min_size=1, max_size=5))
    for count, action in enumerate(bounded_actions(plan, groups=GROUPS, limits=limits)):
        for attempt in range(200):
            deltas = action.delta_from(observed)
            for name, delta in deltas.items():
                assert np.all(np.abs(delta) <= limits[name] * (1.0 + 1e-12))
                observed[name] += shares[(count + attempt) % len(shares)] * delta
            if max(float(np.abs(delta).max()) for delta in deltas.values()) < 1e-9:
                break
        else:
            pytest.fail("the target is not reached")
    assert np.allclose(observed["rails"], path[-1, :3], atol=1e-8)
    error = math.remainder(float(observed["wrist"][0] - path[-1, 3]), math.tau)
    assert abs(error) < 1e-8


def test_a_joint_with_less_than_a_turn_takes_its_only_way() -> None:
    """The turn of the gantry is limited, so its change is not shortened by a full turn."""
    plan = plan_along(np.array([[0.0, 0.0, 0.0, -2.9], [0.0, 0.0, 0.0, 2.9]]))
    last = bounded_actions(plan, groups=GROUPS, limits={"rails": 9.0, "wrist": 9.0})[-1]
    delta = last.delta_from({"rails": np.zeros(3), "wrist": [-2.9]})
    assert delta["wrist"] == pytest.approx([5.8])


@pytest.mark.parametrize("gap", [0.0, 0.0015, 0.01, 0.04, 0.5])
def test_events_come_in_order_and_objects_are_released_above_their_support(gap: float) -> None:
    """Grasp and release are between the motions of their segments; the rest is as without a gap."""
    plan = stacking_plan()
    actions = bounded_actions(
        plan, groups={"arm": JOINTS}, limits={"arm": 0.05}, tolerance=1e-4, place_gap=gap
    )
    places = [(action.step, action.index) for action in actions]
    assert places == sorted(places)
    segments = plan.steps[0].segments
    assert all(action.segment is segments[action.index - 1] for action in actions)
    events = [action.segment.kind for action in actions if action.is_event]
    assert events == [SegmentKind.GRASP, SegmentKind.RELEASE]

    # At the release, the tool is above the contact by the gap, or at the start of the lowering.
    at_release = next(
        number
        for number, action in enumerate(actions)
        if action.is_event and action.segment.kind is SegmentKind.RELEASE
    )
    lowering = next(segment for segment in segments if segment.kind is SegmentKind.LOWER)
    depth = lowering.path[:, JOINTS.index("z")]
    commanded = actions[at_release - 1].targets["arm"][JOINTS.index("z")]
    assert depth[-1] - commanded == pytest.approx(min(gap, depth[-1] - depth[0]), abs=2e-6)
    # The hand never goes back below the gap, and ends where the retreat ends.
    retreat = segments[-1].path[:, JOINTS.index("z")]
    after = [action.targets["arm"][JOINTS.index("z")] for action in actions[at_release + 1 :]]
    if gap <= retreat[0] - retreat[-1]:
        assert all(value <= commanded + 1e-9 for value in after)
    last = [action for action in actions if not action.is_event][-1]
    assert np.allclose(last.targets["arm"], segments[-1].path[-1], atol=2e-6)


@cache
def fetching_plan() -> Plan:
    """Return a plan of an arm on a mobile base."""
    scene = tk.load_scene("mobile_panda", "three_tables")
    goal = "(on b south)"
    plan = tk.plan(
        scene, domain="mobile_manipulation", goal=goal, robot=("panda", "panda_base")
    ).plan
    assert plan is not None
    return plan


def test_the_actions_of_a_mobile_manipulator_move_one_part_at_a_time() -> None:
    """Each action is of the arm or of the base, and both end in the state of the plan."""
    plan = fetching_plan()
    arm, base = plan.robots
    groups = {"arm": arm.joints, "base": base.joints}
    actions = bounded_actions(plan, groups=groups, limits={"arm": 0.2, "base": [0.2, 0.2, 0.4]})
    commanded = {
        name: plan.q[[plan.scene.joint_names.index(joint) for joint in joints]]
        for name, joints in groups.items()
    }
    for action in actions:
        assert len(action.targets) == (0 if action.is_event else 1)
        for name, delta in action.deltas.items():
            commanded[name] = commanded[name] + delta
            assert np.allclose(commanded[name], action.targets[name], atol=1e-9)
    for name, joints in groups.items():
        places = [plan.scene.joint_names.index(joint) for joint in joints]
        assert np.allclose(commanded[name], plan.final_q[places], atol=1e-9)


def test_the_same_plan_has_the_same_actions() -> None:
    """Actions depend on the plan alone."""
    plan = fetching_plan()
    groups = {robot.name: robot.joints for robot in plan.robots}
    limits = dict.fromkeys(groups, 0.1)
    first, second = (bounded_actions(plan, groups=groups, limits=limits) for _ in range(2))
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert (one.step, one.index, one.is_event) == (other.step, other.index, other.is_event)
        assert all(np.array_equal(one.targets[name], other.targets[name]) for name in one.targets)


def test_bad_arguments_are_named() -> None:
    """Joints, groups and limits that do not fit are errors with their names."""
    plan = stacking_plan()
    with pytest.raises(UnknownNameError, match=r"joint 'tur'.*'turn'"):
        bounded_actions(plan, groups={"arm": ["x", "tur"]}, limits={"arm": 0.1})
    with pytest.raises(UnknownNameError, match=r"group 'amr'.*'arm'"):
        bounded_actions(plan, groups={"arm": JOINTS}, limits={"amr": 0.1})
    with pytest.raises(ArgumentError, match="group 'arm' has no largest change"):
        bounded_actions(plan, groups={"arm": JOINTS}, limits={})
    with pytest.raises(ArgumentError, match="joint 'y' of arm 'gantry' moves in step 1"):
        bounded_actions(plan, groups={"arm": ["x", "z", "turn"]}, limits={"arm": 0.1})
    with pytest.raises(ArgumentError, match="joint 'x' is in 'arm' and in 'base'"):
        bounded_actions(
            plan, groups={"arm": JOINTS, "base": ["x"]}, limits={"arm": 0.1, "base": 0.1}
        )
    with pytest.raises(ArgumentError, match=r"largest change of 'z' is positive, not 0.0"):
        bounded_actions(plan, groups={"arm": JOINTS}, limits={"arm": [0.1, 0.1, 0.0, 0.1]})
    with pytest.raises(ArgumentError, match=r"4 numbers, for .*shape \(2,\)"):
        bounded_actions(plan, groups={"arm": JOINTS}, limits={"arm": [0.1, 0.1]})
    with pytest.raises(ArgumentError, match="is a list of joints, not 'turn'"):
        bounded_actions(plan, groups={"arm": "turn"}, limits={"arm": 0.1})
    for tolerance in (0.0, math.inf, math.nan):
        with pytest.raises(ArgumentError, match="tolerance is positive"):
            bounded_actions(plan, groups={"arm": JOINTS}, limits={"arm": 0.1}, tolerance=tolerance)
    with pytest.raises(ArgumentError, match="place_gap is a length of at least 0 m"):
        bounded_actions(plan, groups={"arm": JOINTS}, limits={"arm": 0.1}, place_gap=-0.001)
    action = bounded_actions(plan, groups={"arm": GANTRY.joints}, limits={"arm": 0.1})[0]
    with pytest.raises(UnknownNameError, match="observed group 'arm'"):
        action.delta_from({"rail": np.zeros(4)})
    with pytest.raises(ArgumentError, match="value of 'turn' is finite, not nan"):
        action.delta_from({"arm": [0.0, 0.0, 0.0, math.nan]})
