"""Limits of mimicked joints, against exact rational arithmetic on random trees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.graph import (
    FrameSpecification,
    Joint,
    Mimic,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneGraph,
)

UNLIMITED = math.inf


@dataclass(frozen=True)
class Rule:
    """A joint as the oracle has it: its limits, and how it follows another."""

    lower: float
    upper: float
    leader: int | None
    multiplier: Fraction
    offset: Fraction
    velocity: float

    def joint(self, name: str) -> Joint:
        """Return the joint of a scene."""
        mimic = None
        if self.leader is not None:
            mimic = Mimic(
                f"j{self.leader}", multiplier=float(self.multiplier), offset=float(self.offset)
            )
        return Prismatic(
            [0, 0, 1],
            lower=self.lower,
            upper=self.upper,
            velocity=self.velocity,
            name=name,
            mimic=mimic,
        )


Rules = dict[int, Rule]


def whole_rule(rules: Rules, number: int) -> tuple[int, Fraction, Fraction]:
    """Return the leader that a joint follows in the end, with multiplier and offset."""
    multiplier, offset = Fraction(1), Fraction(0)
    while (rule := rules[number]).leader is not None:
        offset += multiplier * rule.offset
        multiplier *= rule.multiplier
        number = rule.leader
    return number, multiplier, offset


def expected_limits(rules: Rules) -> dict[int, tuple[float, float, float]] | None:
    """Return lower, upper and velocity by leader; none if a leader has no value."""
    found: dict[int, tuple[float, float, float]] = {}
    for leader in (number for number, rule in rules.items() if rule.leader is None):
        low, high, speed = -UNLIMITED, UNLIMITED, UNLIMITED
        for number, rule in rules.items():
            root, multiplier, offset = whole_rule(rules, number)
            if root != leader:
                continue
            if multiplier == 0:
                if not rule.lower <= offset <= rule.upper:
                    return None
                continue
            ends = sorted(
                (
                    float((Fraction(end) - offset) / multiplier)
                    if math.isfinite(end)
                    else end * float(multiplier)
                )
                for end in (rule.lower, rule.upper)
            )
            low, high = max(low, ends[0]), min(high, ends[1])
            speed = min(speed, rule.velocity / float(abs(multiplier)))
        if low > high + 1e-9:
            return None
        found[leader] = (low, high, speed)
    return found


quarters = st.integers(-8, 8).map(lambda number: number / 4)


@st.composite
def rules_of(draw: st.DrawFn, earlier: int) -> Rule:
    """Draw a joint that may mimic an ``earlier`` one; its numbers are multiples of 1/4."""
    ends = sorted([draw(quarters | st.just(-UNLIMITED)), draw(quarters | st.just(UNLIMITED))])
    leader = draw(st.none() | st.integers(0, earlier - 1)) if earlier else None
    lower, upper = (
        (ends[0], ends[1])
        if leader is None or draw(st.booleans())
        else (-3.0 + ends[0], 3.0 + ends[1])
    )
    multiplier = Fraction(draw(st.sampled_from([-2, -1, 0, 1, 2]))) / draw(st.sampled_from([1, 2]))
    velocity = draw(st.sampled_from([0.5, 1.0, UNLIMITED]))
    return Rule(lower, upper, leader, multiplier, Fraction(draw(quarters)), velocity)


@st.composite
def trees(draw: st.DrawFn) -> Rules:
    """Draw joints, each of which may mimic one before it, which may mimic in turn."""
    return {number: draw(rules_of(number)) for number in range(draw(st.integers(1, 6)))}


def assert_limits(scene: SceneGraph, rules: Rules) -> None:
    """A scene has the limits that the oracle computes, and each joint its own."""
    expected = expected_limits(rules)
    assert expected is not None
    rows = zip(
        scene.joint_names, scene.joint_limits.tolist(), scene.velocity_limits.tolist(), strict=True
    )
    limits = {name: [*pair, speed] for name, pair, speed in rows}
    assert limits == {
        f"j{leader}": pytest.approx(list(values)) for leader, values in expected.items()
    }
    for number, rule in rules.items():
        joint = scene.joint(f"f{number}")
        assert (joint.lower, joint.upper, joint.velocity) == (rule.lower, rule.upper, rule.velocity)


@given(trees(), st.randoms(use_true_random=False))
@settings(max_examples=scaled_examples(1.0), deadline=None)
def test_leaders_are_limited_by_all_that_follow(rules: Rules, random: object) -> None:
    """All ways of construction, in any order, give equal limits or an error."""
    order = [*rules]
    random.shuffle(order)  # type: ignore[attr-defined]
    world = FrameSpecification("world", None)
    frames = [
        FrameSpecification(f"f{number}", "world", joint=rules[number].joint(f"j{number}"))
        for number in order
    ]
    if expected_limits(rules) is None:
        with pytest.raises(SceneError, match=r"no value of joint 'j\d'"):
            SceneGraph.from_frames([world, *frames])
        with pytest.raises(SceneError, match=r"no value of joint 'j\d'"):
            one_by_one(rules)
        with pytest.raises(SceneError, match=r"no value of joint 'j\d'"):
            in_arrays(rules)
        return
    scene = SceneGraph.from_frames([world, *frames])
    for made in (scene, one_by_one(rules), by_one_edit(rules), in_arrays(rules)):
        assert_limits(made, rules)
    back = tk.formats.scene_from_dict(tk.formats.scene_to_dict(scene))
    assert back == scene
    assert_limits(back, rules)


def one_by_one(rules: Rules) -> SceneGraph:
    """Return the scene that single edits make."""
    scene = SceneGraph()
    for number, rule in rules.items():
        scene = scene.add_frame(f"f{number}", "world", joint=rule.joint(f"j{number}"))
    return scene


def by_one_edit(rules: Rules) -> SceneGraph:
    """Return the scene of an edit that adds all joints first and sets the mimic rules later."""
    with SceneGraph().edit() as edit:
        for number in rules:
            edit.add_frame(f"f{number}", "world", joint=Revolute([1, 0, 0], name=f"j{number}"))
        for number, rule in reversed(rules.items()):
            edit.set_joint(f"f{number}", rule.joint(f"j{number}"))
    return edit.finish()


def in_arrays(rules: Rules) -> SceneGraph:
    """Return the scene of arrays to which the joints were added."""
    arrays = SceneArrays(SceneGraph(), capacity=10)
    for number, rule in rules.items():
        arrays.add_frame(f"f{number}", "world", joint=rule.joint(f"j{number}"))
    return arrays.freeze()


@given(st.data())
@settings(max_examples=scaled_examples(0.5), deadline=None)
def test_edits_keep_a_value_for_every_leader(data: st.DataObject) -> None:
    """Scenes, edits and arrays reject a changed joint with equal messages."""
    rules = data.draw(trees().filter(lambda drawn: expected_limits(drawn) is not None))
    scene, arrays = one_by_one(rules), in_arrays_of(one_by_one(rules))
    edit = scene.edit()
    for _ in range(data.draw(st.integers(1, 6))):
        number = data.draw(st.sampled_from([*rules]))
        rule = data.draw(rules_of(number))
        after = {**rules, number: rule}
        frame, joint = f"f{number}", rule.joint(f"j{number}")
        if expected_limits(after) is None:
            texts = set()
            for edited in (scene, edit, arrays):
                with pytest.raises(SceneError, match=r"no value of joint 'j\d'") as caught:
                    edited.set_joint(frame, joint)
                texts.add(str(caught.value))
            assert len(texts) == 1
        else:
            rules, scene = after, scene.set_joint(frame, joint)
            edit.set_joint(frame, joint)
            arrays.set_joint(frame, joint)
        for made in (scene, edit.scene, arrays.freeze()):
            assert made == scene
            assert_limits(made, rules)


def in_arrays_of(scene: SceneGraph) -> SceneArrays:
    """Return arrays of a scene."""
    return SceneArrays(scene, capacity=10)


def test_both_limits_may_change_in_one_difference() -> None:
    """A step between two versions that neither joint alone may take."""
    scene = SceneGraph().add_frame("a", "world", joint=Revolute([0, 0, 1], lower=0, upper=1))
    scene = scene.add_frame("b", "a", joint=Revolute([0, 0, 1], lower=0, upper=1, mimic=Mimic("a")))
    with pytest.raises(SceneError, match="'a' needs at least 2, joint 'b' at most 1"):
        scene.set_joint("a", Revolute([0, 0, 1], lower=2, upper=3))
    other = SceneGraph().add_frame("a", "world", joint=Revolute([0, 0, 1], lower=2, upper=3))
    other = other.add_frame("b", "a", joint=Revolute([0, 0, 1], lower=2, upper=3, mimic=Mimic("a")))
    moved = scene.apply(tk.graph.diff(scene, other))
    assert moved == other
    np.testing.assert_array_equal(moved.joint_limits, [[2, 3]])


def test_ends_that_rounding_has_turned_are_one_value() -> None:
    """0.3 / 3 is below 0.1 in floating point, and no contradiction."""
    scene = SceneGraph().add_frame("a", "world", joint=Revolute([0, 0, 1], lower=0.1, upper=0.1))
    rule = Mimic("a", multiplier=3.0)
    scene = scene.add_frame("b", "a", joint=Revolute([0, 0, 1], lower=0.3, upper=0.3, mimic=rule))
    lower, upper = scene.joint_limits[0]
    assert lower == upper == pytest.approx(0.1, abs=1e-15)


def test_many_followers_take_no_time() -> None:
    """20,000 joints that mimic one; with quadratic time these take minutes."""
    world = FrameSpecification("world", None)
    lead = FrameSpecification(
        "f", "world", joint=Prismatic([0, 0, 1], name="lead", lower=-1, upper=1)
    )
    many = [
        FrameSpecification(
            f"f{i}", "world", joint=Prismatic([0, 0, 1], lower=-1, upper=1, mimic=Mimic("lead"))
        )
        for i in range(20_000)
    ]
    scene = SceneGraph.from_frames([world, lead, *many])
    np.testing.assert_array_equal(scene.joint_limits, [[-1, 1]])


@pytest.mark.parametrize("order", [1, -1])
def test_long_rows_of_mimics_are_rejected(order: int) -> None:
    """100 mimic rules in a row are accepted, more are rejected, in any order."""
    for count in (100, 101, 5_000):
        frames = [FrameSpecification("c0", "world", joint=Prismatic([0, 0, 1], lower=-1, upper=1))]
        for i in range(1, count + 1):
            joint = Prismatic([0, 0, 1], lower=-1, upper=1, mimic=Mimic(f"c{i - 1}"))
            frames.append(FrameSpecification(f"c{i}", "world", joint=joint))
        made = [FrameSpecification("world", None), *frames[::order]]
        if count == 100:
            np.testing.assert_array_equal(SceneGraph.from_frames(made).joint_limits, [[-1, 1]])
            continue
        with pytest.raises(
            SceneError, match=r"a row of 101 joints that mimic one another; expected at most 100"
        ):
            SceneGraph.from_frames(made)
