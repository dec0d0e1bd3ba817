"""Timed motions: limits, collisions, and rests only at contacts."""

from __future__ import annotations

import json
import math
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from support.golden_plans import PLANS
from support.motion_limits import MotionLog, motions_of, plan_torque_shares, run_shares, with_mass

import tmkit as tk
from tmkit.errors import ConfigurationError, PlanFileError
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules
from tmkit.plans import Plan, SegmentKind, plan_motions
from tmkit.plans.execution import TimedMotion
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict

NAMES = ("blocks-panda", "drawer", "handover", "kitchen", "pour")
# row of a path at which the tool is in contact
CONTACT = {"approach": -1, "lower": -1, "lift": 0, "retreat": 0}


@cache
def plan_of(name: str) -> Plan:
    """Return a plan for a built-in problem."""
    plan = PLANS[name]().plan
    assert plan is not None
    return plan


@cache
def log_of(name: str) -> MotionLog:
    """Return its motions at 1 kHz."""
    return motions_of(plan_of(name))


def motion_states(
    name: str, *, every: int = 1
) -> Iterator[tuple[TimedMotion, SceneGraph, np.ndarray[Any, Any]]]:
    """Yield each motion with its scene and full configurations (m, n_joints)."""
    plan, motions = plan_of(name), iter(log_of(name).motions)
    scene, q = plan.scene, plan.q
    for step in plan.steps:
        for segment in step.segments:
            if segment.kind not in ("grasp", "release"):
                motion = next(motions)
                assert motion.segment is segment
                rows = motion.timed.positions[:: min(every, len(motion.timed.positions))]
                full = np.repeat(
                    scene.configuration(dict(segment.gripper), base=q)[None], len(rows), axis=0
                )
                full[:, [scene.joint_names.index(joint) for joint in motion.joint_names]] = rows
                yield motion, scene, full
            scene, q = segment.end(scene, q)
        scene, q = step.scene, step.q


@pytest.mark.parametrize("name", NAMES)
def test_no_sample_exceeds_a_limit(name: str) -> None:
    """Differences at 1 kHz are within the limits of speed, acceleration and jerk."""
    for run in log_of(name).runs():
        assert max(run_shares(plan_of(name), run)) <= 1.0 + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_no_sample_exceeds_an_effort_limit(name: str) -> None:
    """Torques by pinocchio, from differences of positions at 1 kHz."""
    assert 0.05 < max(plan_torque_shares(log_of(name))) < 0.8


def test_a_heavy_object_slows_the_motions_that_carry_it() -> None:
    """Only motions that reach out with the block become slower."""
    light, heavy = (with_mass(plan_of("blocks-panda"), mass, effort=46.0) for mass in (0.1, 3.0))
    logs = motions_of(light), motions_of(heavy)
    assert max(map(max, map(plan_torque_shares, logs))) <= 1.0
    before, after = (
        [sum(part.timed.duration for part in run) for run in log.runs()] for log in logs
    )
    is_slower = [later > 1.02 * earlier for earlier, later in zip(before, after, strict=True)]
    assert is_slower == [False, True, False, False, False]
    assert before[2:] == after[2:]
    assert max(plan_torque_shares(logs[1])) > 0.97


def test_an_object_that_is_too_heavy_is_named() -> None:
    """The message has joint, torque, limit and the object with its mass."""
    wanted = (
        r"step 1, lift: gravity requires 44\.\d N m of joint 'panda_joint2', whose effort limit is"
        r" 44 N m, "
        r"with 'b' \(3 kg\) in the hand"
    )
    with pytest.raises(ConfigurationError, match=wanted):
        motions_of(with_mass(plan_of("blocks-panda"), 3.0, effort=44.0))


@pytest.mark.parametrize("name", NAMES)
def test_arms_stop_at_contacts(name: str) -> None:
    """A motion ends at rest before a hand acts, at contacts, at the end and at few corners."""
    log = log_of(name)
    resting = {number for number, motion in enumerate(log.motions, start=1) if motion.is_stopping}
    assert {*log.hands} <= resting
    assert len(log.motions) in resting
    apart = {SegmentKind.PUSH, SegmentKind.OPERATE, SegmentKind.POUR}
    for number in resting - {*log.hands, len(log.motions)}:
        before, after = log.motions[number - 1], log.motions[number]
        is_narrow = name == "pour" and before.segment.kind == "transfer"
        assert (
            is_narrow
            or before.arm is not after.arm
            or {before.segment.kind, after.segment.kind} & apart
        )
    for number in range(1, len(log.motions)):
        for kind in ("positions", "velocities", "accelerations"):
            before, after = log.motions[number - 1].timed, log.motions[number].timed
            if (
                log.motions[number - 1].joint_names == log.motions[number].joint_names
                and number not in resting
            ):
                assert np.array_equal(getattr(before, kind)[-1], getattr(after, kind)[0])


@pytest.mark.parametrize("name", NAMES)
def test_motions_are_free_of_collisions(name: str) -> None:
    """Samples every 10 ms are free, and satisfy the path constraints."""
    for motion, scene, rows in motion_states(name, every=10):
        segment = motion.segment
        world = CollisionRules(motion.arm).check_world(scene, segment.allowed_contacts)
        assert not any(world.contacts_batch(rows)), segment
        for constraint in segment.constraints:
            assert np.max(constraint.values(scene, rows)) <= constraint.tolerance + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_the_tool_moves_straight_near_contacts(name: str) -> None:
    """Within 2 cm of a contact the tool is within 1 mm of its line, without rotation."""
    for motion, scene, rows in motion_states(name):
        if motion.segment.kind.value not in CONTACT:
            continue
        columns = [scene.joint_names.index(joint) for joint in motion.segment.joint_names]
        ends = np.repeat(rows[:1], 2, axis=0)
        ends[:, columns] = motion.segment.path[[0, -1]]
        tool = motion.arm.tool
        end, contact = (
            scene.pose(tool, q=q)
            for q in (ends if CONTACT[motion.segment.kind.value] else ends[::-1])
        )
        line = (end.translation - contact.translation) / np.linalg.norm(
            end.translation - contact.translation
        )
        for q in rows[::5]:
            pose = scene.pose(tool, q=q)
            offset = pose.translation - contact.translation
            if np.linalg.norm(offset) <= 0.02:
                assert np.linalg.norm(offset - (offset @ line) * line) <= 1.1e-3
                assert pose.distance(contact)[1] <= 0.021


@pytest.mark.parametrize("name", NAMES)
def test_the_file_of_a_plan_has_its_motions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded plan has the same samples bit by bit at any rate, and is valid."""
    plan = plan_of(name)
    loaded = plan_from_dict(json.loads(json.dumps(plan_to_dict(plan))))
    monkeypatch.setattr("tmkit.plans.motion_timing.blend_run", None)
    for motion, restored in zip(
        motions_of(plan, rate=123.0).motions, motions_of(loaded, rate=123.0).motions, strict=True
    ):
        for kind in ("positions", "velocities", "accelerations"):
            assert getattr(motion.timed, kind).tobytes() == getattr(restored.timed, kind).tobytes()
    assert [motion.straight for motion in plan_motions(plan)] == [
        motion.straight for motion in plan_motions(loaded)
    ]
    assert tk.validate_plan(loaded).problems == ()


def test_straight_intervals_are_at_contacts() -> None:
    """There is an interval before and after each hand acts, and no other."""
    plan = plan_of("blocks-panda")
    for motion in plan_motions(plan):
        for (step, index), end, bounds in zip(
            motion.segments, motion.ends, motion.straight, strict=True
        ):
            kind = plan.steps[step - 1].segments[index - 1].kind.value
            assert (bounds is None) == (kind not in CONTACT)
            if bounds is not None:
                assert bounds[1] - bounds[0] > 0.1
                assert (bounds[1] == end) == (CONTACT[kind] == -1)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda motion: _speed_up(motion),
            r"joint 'panda_joint\d' reaches 1\.\d+ times its speed limit",
        ),
        (lambda motion: _scale(motion, "widths", 40.0), "does not fit the plan: it ends at 1"),
        (
            lambda motion: motion["straight"].__setitem__(-1, None),
            "near a contact at other times than those in the plan",
        ),
        (
            lambda motion: motion["ends"].__setitem__(0, 0.5 * motion["ends"][0]),
            "segments end at other points than on its path",
        ),
        (
            lambda motion: motion["ends"].append(9.0),
            r"timing\[0\]\.ends: expected 2 rising numbers",
        ),
        (
            lambda motion: motion["straight"].pop(),
            r"timing\[0\]\.straight: expected 2 items, received 1",
        ),
        (
            lambda motion: motion["segments"][0].append(2),
            "segments: expected pairs of a step and a segment",
        ),
        (
            lambda motion: motion["segments"].reverse(),
            "does not fit the plan: it has other motions from rest",
        ),
        (
            lambda motion: motion["parts"][0]["speeds"].pop(),
            r"plan: expected \d+ speeds, 0 at both ends and never twice in a row",
        ),
        (
            lambda motion: motion["parts"][0]["widths"].pop(),
            "plan: from point 0 on, expected a positive width",
        ),
        (lambda motion: motion["parts"][0].update(mean=0.0), "plan: .* and a positive mean"),
        (
            lambda motion: motion["parts"][0].update(point=1),
            "plan: its motion does not begin where",
        ),
        (lambda motion: _scale(motion, "speeds", 1e-9), "plan: its motion takes"),
        (
            lambda motion: motion["ends"].__setitem__(1, 99.0),
            "plan: it ends at 99.0 s, its speeds lead to 1",
        ),
        (lambda motion: motion.update(rows=1), "unknown key 'rows'"),
    ],
)
def test_an_invalid_timing_is_detected(edit: Callable[[Any], object], message: str) -> None:
    """Malformed values are rejected, other paths ignored, and violated limits problems."""
    document = json.loads(json.dumps(plan_to_dict(plan_of("blocks-panda"))))
    edit(document["timing"][0])
    try:
        report = tk.validate_plan(plan_from_dict(document))
        text = " ".join((*report.problems, *report.assumptions))
        assert report.is_valid == ("does not fit the plan" in text)
    except PlanFileError as error:
        text = str(error)
    assert re.search(message, text)


def _scale(motion: dict[str, Any], key: str, factor: float) -> None:
    """Multiply the values of all parts by a factor."""
    for part in motion["parts"]:
        part[key] = [factor * value for value in part[key]]


def _speed_up(motion: dict[str, Any]) -> None:
    """Follow the path faster by the square root of 2."""
    mean = motion["parts"][0]["mean"]
    _scale(motion, "speeds", math.sqrt(2.0))
    motion["ends"] = [mean + (end - mean) / math.sqrt(2.0) for end in motion["ends"]]


def test_a_timing_for_another_load_is_detected() -> None:
    """The motion of a light block with a heavy one exceeds an effort limit."""
    document = plan_to_dict(with_mass(plan_of("blocks-panda"), 0.1, effort=46.0))
    heavy = plan_to_dict(with_mass(plan_of("blocks-panda"), 3.0, effort=46.0), with_timing=False)
    problems = tk.validate_plan(
        plan_from_dict({**heavy, "timing": document["timing"], "version": 4})
    ).problems
    assert len(problems) == 1
    assert re.search(
        r"step 1, lift, on: joint 'panda_joint2' reaches 1\.0\d+ times its effort limit",
        problems[0],
    )


def test_timing_opens_no_socket_and_is_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timing is local, and the same plan has the same motions bit by bit."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(socket, "create_connection", fail)
    first, second = log_of("blocks-panda"), motions_of(replace(plan_of("blocks-panda")))
    for motion, loaded in zip(first.motions, second.motions, strict=True):
        assert motion.timed.positions.tobytes() == loaded.timed.positions.tobytes()
        assert motion.timed.accelerations.tobytes() == loaded.timed.accelerations.tobytes()
