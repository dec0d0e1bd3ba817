"""Plans in the plan file format of the original library: writing, and reading for a scene."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.blocks import SUSSMAN, blocks_scene
from support.gantry import GANTRY
from support.unsure_blocks import ON_B, unsure_blocks

import tmkit as tk
from tmkit.errors import PlanFileError
from tmkit.graph import AttachedShape, Box
from tmkit.plans import Plan
from tmkit.tamp import load_tmp_plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A plan of six actions of the gantry."""
    result = tk.plan(
        blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"}), goal=SUSSMAN, robot=GANTRY
    )
    assert result.plan is not None
    return result.plan


def test_what_is_written_reads_back_and_holds(plan: Plan, tmp_path: Path) -> None:
    """A written plan reads back with equal contents, is valid, and is written again as it was."""
    path = tmp_path / "plan.tmp"
    tk.save_plan(plan, path)
    read = load_tmp_plan(path, plan.scene, robot=GANTRY, goal=plan.goal)
    assert read.actions == plan.actions
    np.testing.assert_array_equal(read.q, plan.q)
    for step, wanted in zip(read.steps, plan.steps, strict=True):
        for segment, other in zip(step.segments, wanted.segments, strict=True):
            np.testing.assert_array_equal(segment.path, other.path)
            assert (segment.kind, segment.held, segment.allowed_contacts) == (
                other.kind,
                other.held,
                other.allowed_contacts,
            )
            assert dict(segment.gripper) == dict(other.gripper)
            if other.reparenting is not None:
                assert segment.reparenting is not None
                assert segment.reparenting.parent == other.reparenting.parent
                assert max(segment.reparenting.pose.distance(other.reparenting.pose)) < 1e-4
    assert tk.validate_plan(read).problems == ()
    tk.save_plan(read, tmp_path / "again.tmp")
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert [
        line
        for line in (tmp_path / "again.tmp").read_text().splitlines()
        if not line.startswith("#")
    ] == lines


def test_overlaps_at_the_start_are_those_of_planning(tmp_path: Path) -> None:
    """A plan from a start with overlaps is valid when read: a door in its post, a sunken block."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"})
    box = AttachedShape(Box([0.1, 0.1, 0.1]))
    for name, x, joint in (("post", 2.0, tk.Fixed()), ("door", 2.05, tk.Revolute([0, 0, 1]))):
        pose = tk.Pose([x, 0.0, 0.0])
        scene = scene.add_frame(name, "table", pose=pose, joint=joint, shapes=[box])
    pose = scene.local_pose("b")
    scene = scene.set_pose("b", tk.Pose(pose.translation - [0.0, 0.0, 0.003], pose.quat_xyzw))
    result = tk.plan(scene, goal=SUSSMAN, robot=GANTRY)
    assert result.plan is not None, result.explanation
    contacts = {str(contact) for contact in result.plan.steps[0].segments[0].allowed_contacts}
    assert any(text.startswith("door and post") for text in contacts), contacts
    assert any(text.startswith("b and table: up to 3.01 mm") for text in contacts), contacts
    tk.save_plan(result.plan, tmp_path / "plan.tmp")
    read = load_tmp_plan(tmp_path / "plan.tmp", scene, robot=GANTRY)
    assert tk.validate_plan(read).problems == ()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("a unstack", "a unstuck", "unknown action 'unstuck'; did you mean 'unstack'"),
        ("a unstack c a", "a unstack c", "the action 'unstack' takes 2 objects, received 1"),
        ("a unstack c a", "a unstack c q", "the scene has no object 'q'"),
        ("r c hand", "r c hant", "'hant' is not a frame of the scene; did you mean 'hand'"),
        ("r c hand", "r table hand", "'table' is not a movable frame of the scene"),
        (
            "m x y z turn finger\n",
            "m x y z trun finger\n",
            "the scene has no joint 'trun'; did you mean 'turn'",
        ),
    ],
)
def test_names_that_are_not_there_are_refused(
    plan: Plan, tmp_path: Path, old: str, new: str, reason: str
) -> None:
    """An unknown joint, frame, action or object is reported with file, line and nearest name."""
    path = tmp_path / "plan.tmp"
    tk.save_plan(plan, path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(PlanFileError, match=rf"plan.tmp:\d+:\d+: {reason}"):
        load_tmp_plan(path, plan.scene, robot=GANTRY)


def test_a_plan_that_is_cut_off_anywhere_is_refused(plan: Plan, tmp_path: Path) -> None:
    """A file without its last lines is rejected, and so is an empty one."""
    path = tmp_path / "plan.tmp"
    tk.save_plan(plan, path)
    lines = path.read_text().splitlines(keepends=True)
    for count in range(len(lines)):
        for text in (
            "".join(lines[:count]),
            "".join(lines[:count]) + lines[count][: len(lines[count]) // 2],
        ):
            path.write_text(text)
            with pytest.raises(
                PlanFileError, match=r"plan.tmp.*(is truncated|has no actions|:\d+:)"
            ):
                load_tmp_plan(path, plan.scene, robot=GANTRY)
    path.write_text("".join(lines))
    assert load_tmp_plan(path, plan.scene, robot=GANTRY).goal == " ".join(plan.goal.split())


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# only a comment\n", "m x y z turn finger\np 0 0 0 0 0\n"]
)
def test_a_file_without_actions_is_no_plan(plan: Plan, tmp_path: Path, text: str) -> None:
    """A file of another program without actions is rejected."""
    (tmp_path / "plan.tmp").write_text(text)
    with pytest.raises(PlanFileError, match=r"plan.tmp: has no actions, so it is not a plan"):
        load_tmp_plan(tmp_path / "plan.tmp", plan.scene, robot=GANTRY)


def test_the_header_of_a_file_names_domain_arm_and_goal(tmp_path: Path) -> None:
    """A plan of another domain and arm needs only its scene; a path in the header is ignored."""
    scene = tk.load_scene("iiwa_table", "blocks2")
    result = tk.plan(
        scene,
        domain="kitchen",
        goal="(holding a)",
        robot="iiwa",
        options=tk.PlanningOptions(max_iterations=4),
    )
    assert result.plan is not None
    path = tmp_path / "plan.tmp"
    tk.save_plan(result.plan, path)
    read = load_tmp_plan(path, scene)
    assert (read.domain, read.robots[0].name, read.goal) == ("kitchen", "iiwa", "(holding a)")
    assert tk.validate_plan(read).is_valid
    path.write_text(path.read_text().replace("Task Domain: kitchen", f"Task Domain: {tmp_path}"))
    with pytest.raises(PlanFileError, match="unknown action 'pick'"):  # of the domain blocks
        load_tmp_plan(path, scene)


def test_observations_are_not_written(tmp_path: Path) -> None:
    """A plan with observations has no form in this format, and nothing is written."""
    plan = tk.plan(
        unsure_blocks(),
        domain="blocks_uncertain",
        goal=ON_B,
        options=tk.PlanningOptions(max_iterations=4),
    ).plan
    assert plan is not None
    with pytest.raises(
        PlanFileError, match=r"step 1 \(look a\) observes frames, which the format cannot express"
    ):
        tk.save_plan(plan, tmp_path / "plan.tmp")
    assert list(tmp_path.iterdir()) == []
