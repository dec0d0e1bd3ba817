"""Starts at which bodies overlap slightly."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.blocks import blocks_scene, with_box
from support.effort import scaled_examples
from support.gantry import BLOCK, GANTRY
from support.processes import run_process

import tmkit as tk
from tmkit.errors import CollisionError, ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules, StartTolerances
from tmkit.motion.path_constraints import interpolate_path
from tmkit.plans import Plan, Segment
from tmkit.spatial.plain import read_only
from tmkit.tamp import PlanningOptions

HAND_Z = 0.8 - 0.3
"""Height of the hand at the ready configuration [m]."""


def scene_with_post(depth: float, side: int = 1) -> SceneGraph:
    """Return two blocks, and a post beside the ready hand that the hand overlaps by ``depth``."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    inner, outer = side * (0.03 - depth), side * 0.05
    low, high = sorted((inner, outer))
    return with_box(scene, "post", (low, -0.4, HAND_Z - 0.02), (high, -0.2, HAND_Z + 0.02))


def solve(
    scene: SceneGraph, goal: str = "(on a b)", domain: str = "blocks", **tolerances: float
) -> Plan:
    """Return the plan of the gantry, which must exist."""
    options = PlanningOptions(time_limit=60.0, **tolerances)
    result = tk.plan(scene, goal=goal, domain=domain, robot=GANTRY, options=options)
    assert result.plan is not None, result.explanation
    return result.plan


def distances(plan: Plan, first: str, second: str) -> np.ndarray:
    """Return the distances of two frames along the whole motion, at steps of 0.5 mm."""
    scene, q, result = plan.scene, np.array(plan.q), []
    for step in plan.steps:
        for segment in step.segments:
            rows = np.repeat(q[None], len(segment.path), axis=0)
            rows[:, [scene.joint_names.index(name) for name in segment.joint_names]] = segment.path
            world = CollisionRules(GANTRY).check_world(scene, ())
            path = interpolate_path(np.vstack([q[None], rows]), 0.0005)
            result += [world.distance(first, second, row).distance for row in path]
            scene, q = segment.end(scene, q)
    return np.array(result)


@given(st.floats(0.0001, 0.00099), st.sampled_from([-1, 1]))
@settings(max_examples=scaled_examples(0.02), deadline=None)
def test_the_arm_leaves_an_overlap_and_never_deepens_it(depth: float, side: int) -> None:
    """The overlap is at most that at the start, and ends once; the plan is valid."""
    plan = solve(scene_with_post(depth, side))
    report = tk.validate_plan(plan)
    assert report.is_valid, report.problems
    along = distances(plan, "hand", "post")
    assert along[0] == pytest.approx(-depth, abs=1e-6)
    assert along.min() >= -depth - 2e-5
    is_overlapping = along < -2e-5
    assert np.count_nonzero(np.diff(is_overlapping.astype(int))) == 1
    assert not is_overlapping[-1]


def test_a_deep_overlap_is_rejected_by_planner_and_validator() -> None:
    """The message has the option; the validator needs the same tolerance."""
    scene = scene_with_post(0.002)
    with pytest.raises(
        CollisionError,
        match=r"'hand' and 'post' by 2.0 mm; move them apart, or allow the pair in the scene"
        r" \(start_penetration = 0.001 m is accepted",
    ):
        solve(scene)
    plan = solve(scene, start_penetration=0.003)
    assert "at the start: 'hand' and 'post' collide" in tk.validate_plan(plan).problems
    report = tk.validate_plan(plan, start_tolerances=StartTolerances(penetration=0.003))
    assert report.is_valid, report.problems


def test_the_validator_rejects_a_motion_that_returns(caplog: pytest.LogCaptureFixture) -> None:
    """A path back into the overlap is a fault, even if it is no deeper than the start."""
    plan = solve(scene_with_post(0.0005))
    assert any("'hand'" in text or "hand and post" in text for text in caplog.messages)
    first, *others = plan.steps[0].segments
    path = np.vstack([first.path[:2], first.path[:1], first.path[1:]])
    returning: Segment = replace(first, path=read_only(path))
    step = replace(plan.steps[0], segments=(returning, *others))
    report = tk.validate_plan(replace(plan, steps=(step, *plan.steps[1:])))
    assert any("overlap again after they have separated" in text for text in report.problems)


def test_a_motion_without_the_contact_of_the_start_collides() -> None:
    """A plan that does not list the contact is invalid where the bodies overlap."""
    plan = solve(scene_with_post(0.0005))
    first, *others = plan.steps[0].segments
    contacts = tuple(c for c in first.allowed_contacts if "post" not in (c.frame_a, c.frame_b))
    assert len(contacts) == len(first.allowed_contacts) - 1
    stripped = replace(first, allowed_contacts=contacts)
    step = replace(plan.steps[0], segments=(stripped, *others))
    report = tk.validate_plan(replace(plan, steps=(step, *plan.steps[1:])))
    assert any("'hand' and 'post' collide" in text for text in report.problems)


def test_later_steps_may_not_overlap() -> None:
    """Only the step that begins in the overlap allows it."""
    plan = solve(scene_with_post(0.0005))
    for step in plan.steps[1:]:
        for segment in step.segments:
            assert all("post" not in (c.frame_a, c.frame_b) for c in segment.allowed_contacts)


@pytest.mark.parametrize("moved", ["a", "b"])
def test_blocks_that_overlap_are_taken_apart(moved: str) -> None:
    """Either of two blocks that overlap by half a millimetre is picked."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    pose = scene.local_pose("a")
    x, y, z = pose.translation
    scene = scene.set_pose("b", tk.Pose([x + BLOCK - 0.0005, y, z], pose.quat_xyzw))
    plan = solve(scene, goal=f"(holding {moved})", domain="kitchen")
    report = tk.validate_plan(plan)
    assert report.is_valid, report.problems
    assert distances(plan, "a", "b").min() >= -0.0005 - 2e-5


def test_an_invalid_tolerance_is_rejected() -> None:
    """Negative numbers and other types are errors with the name."""
    with pytest.raises(ConfigurationError, match="StartTolerances: sinking must be at least 0 m"):
        StartTolerances(sinking=-0.1)
    with pytest.raises(ConfigurationError, match="start_penetration must be at least 0 m"):
        PlanningOptions(start_penetration=-1.0)


def test_the_command_line_has_the_tolerances(tmp_path: Path) -> None:
    """``tmkit check`` validates with the tolerances of its flags."""
    plan, path = solve(scene_with_post(0.002), start_penetration=0.003), tmp_path / "plan.json"
    tk.save_plan(plan, path)
    command = [sys.executable, "-m", "tmkit.cli", "check", str(path)]
    strict = run_process(command, capture_output=True, text=True)
    assert (strict.returncode, "'hand' and 'post' collide" in strict.stdout) == (1, True)
    loose = run_process([*command, "--start-penetration", "0.003"], capture_output=True)
    assert loose.returncode == 0
    wrong = run_process([*command, "--start-sinking", "-1"], capture_output=True)
    assert (wrong.returncode, b"start_sinking must be at least 0 m" in wrong.stderr) == (2, True)
