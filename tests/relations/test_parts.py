"""Poses, twists and wrenches made of two relations: laws, covariances, batches and rejections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

from tmkit.relations import (
    AngularVelocityCoord,
    ForceCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PositionCoord,
    SemanticAngularVelocity,
    SemanticError,
    SemanticForce,
    SemanticLinearVelocity,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTorque,
    SemanticTwist,
    SemanticWrench,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
    apply,
)
from tmkit.relations.representations import AngularFirstTwist

NUMBER = st.integers(-3_000_000, 3_000_000).map(lambda number: number / 1e6)
SIX = st.lists(NUMBER, min_size=6, max_size=6).map(np.array)
TURN = st.lists(st.integers(-10, 10).map(lambda n: n / 10), min_size=3, max_size=3).map(np.array)
KINDS = ["pose", "twist", "wrench"]
BY_KIND = pytest.mark.parametrize("kind", KINDS)
CLASS: dict[str, Any] = {"pose": SemanticPose, "twist": SemanticTwist, "wrench": SemanticWrench}
NAMES = {
    "pose": ("position", "orientation"),
    "twist": ("linear", "angular"),
    "wrench": ("force", "torque"),
}
COVARIANCE = np.diag([1.0, 2.0, 3.0]) + 0.1


def pair(kind: str, six: Any, bodies: str = "CD", covariance: Any = None) -> list[Any]:
    """Return the two relations of six numbers, of one body relative to another."""
    c, d = bodies
    first, second = six[..., :3], six[..., 3:]
    if kind == "pose":
        orientation = OrientationCoord(f"[{c}]|{c}", f"[{d}]|{d}", f"[{d}]")
        matrix = Rotation.from_rotvec(second).as_matrix()
        return [
            SemanticPosition(
                PositionCoord(f"{c}|{c}", f"{d}|{d}", f"[{d}]"), first, covariance=covariance
            ),
            SemanticOrientation(orientation, matrix, covariance=covariance),
        ]
    if kind == "twist":
        return [
            SemanticLinearVelocity(
                LinearVelocityCoord(f"e|{c}", d, "[r]"), first, covariance=covariance
            ),
            SemanticAngularVelocity(
                AngularVelocityCoord(c, d, "[r]"), second, covariance=covariance
            ),
        ]
    return [
        SemanticForce(ForceCoord(c, d, "[r]"), first, covariance=covariance),
        SemanticTorque(TorqueCoord(f"e|{c}", d, "[r]"), second, covariance=covariance),
    ]


def near(ours: Any, theirs: Any) -> None:
    """Assert that two relations agree in names, and to rounding in numbers."""
    assert ours.coord == theirs.coord
    for a, b in zip(ours.numbers, theirs.numbers, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@BY_KIND
@given(six=SIX)
def test_the_parts_of_a_whole_are_those_of_which_it_is_made(kind: str, six: Any) -> None:
    """A relation of two parts has these, and is made of its own."""
    given_parts = pair(kind, six)
    whole = CLASS[kind].of(*given_parts)
    for name, part in zip(NAMES[kind], given_parts, strict=True):
        near(getattr(whole, name), part)
    again = CLASS[kind].of(*(getattr(whole, name) for name in NAMES[kind]))
    assert again == whole
    assert apply(kind, *given_parts) == whole
    assert apply(kind, *(part.coord for part in given_parts)) == whole.coord
    near(whole.inverse2().inverse2() if kind == "pose" else whole.inverse().inverse(), whole)


@BY_KIND
@given(one=SIX, other=SIX, third=SIX)
def test_composition_of_wholes_is_associative(kind: str, one: Any, other: Any, third: Any) -> None:
    """Of three in a chain; and twists and wrenches are composed part by part."""
    bodies = ["CD", "CD", "CD"] if kind == "wrench" else ["CD", "DE", "EF"]
    parts = [pair(kind, six, names) for six, names in zip((one, other, third), bodies, strict=True)]
    a, b, c = (CLASS[kind].of(*each) for each in parts)
    near(a.compose(b).compose(c), a.compose(b.compose(c)))
    if kind == "pose":
        return
    near(a.compose(b), CLASS[kind].of(*(x.compose(y) for x, y in zip(*parts[:2], strict=True))))
    near(a.inverse(), CLASS[kind].of(*(part.inverse() for part in parts[0])))


@pytest.mark.parametrize("kind", ["twist", "wrench"])
@given(six=SIX, turn=TURN, step=TURN)
def test_a_whole_changes_as_its_parts_do(kind: str, six: Any, turn: Any, step: Any) -> None:
    """Into other axes, and to another point."""
    parts = pair(kind, six)
    whole = CLASS[kind].of(*parts)
    matrix = SemanticOrientation(
        OrientationCoord("[r]|C", "[s]|D", "[s]"), Rotation.from_rotvec(turn).as_matrix()
    )
    turned = [part.change_coordinate_frame(matrix) for part in parts]
    near(whole.change_coordinate_frame(matrix), CLASS[kind].of(*turned))
    by = SemanticPosition(PositionCoord("f|C", "e|C", "[r]"), step)
    vector, free = parts if kind == "twist" else parts[::-1]
    changed = [vector.change_point(by, free), free]
    near(whole.change_point(by), CLASS[kind].of(*(changed if kind == "twist" else changed[::-1])))


@BY_KIND
def test_the_errors_of_both_parts_are_those_of_the_whole(kind: str) -> None:
    """They are independent; an exact part adds none."""
    six = np.array([0.1, 0.2, 0.3, 0.4, -0.5, 0.6])
    uncertain, exact = pair(kind, six, covariance=COVARIANCE), pair(kind, six)
    whole = CLASS[kind].of(*uncertain)
    for name, part in zip(NAMES[kind], uncertain, strict=True):
        np.testing.assert_allclose(getattr(whole, name).covariance, part.covariance, atol=1e-12)
    np.testing.assert_array_equal(whole.covariance[:3, 3:], 0.0)
    half = CLASS[kind].of(uncertain[0], exact[1])
    np.testing.assert_allclose(half.covariance[:3, :3], whole.covariance[:3, :3])
    np.testing.assert_array_equal(half.covariance[3:, 3:], 0.0)
    assert CLASS[kind].of(*exact).covariance is None


@BY_KIND
def test_batches_of_parts(kind: str) -> None:
    """A part that is one relation belongs to all of the batch of the other."""
    rng = np.random.default_rng(3)
    many, one = pair(kind, rng.uniform(-1, 1, (4, 6))), pair(kind, rng.uniform(-1, 1, 6))
    for parts in (many, [many[0], one[1]], [one[0], many[1]]):
        whole = CLASS[kind].of(*parts)
        assert whole.size == 4
        for i in range(4):
            near(
                whole[i],
                CLASS[kind].of(*(part if part.size is None else part[i] for part in parts)),
            )
    with pytest.raises(SemanticError, match=r"batches have the same length.*lengths 4 and 2"):
        CLASS[kind].of(many[0], many[1][:2])
    uncertain = pair(kind, rng.uniform(-1, 1, 6), covariance=COVARIANCE)
    for parts in ([many[0], uncertain[1]], [uncertain[0], many[1]]):
        with pytest.raises(SemanticError, match=r"a covariance is that of one relation .a batch"):
            CLASS[kind].of(*parts)


LINEAR, ANGULAR = pair("twist", np.ones(6))
FORCE, TORQUE = pair("wrench", np.ones(6))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SemanticTwist.of(LINEAR, pair("twist", np.ones(6), "CE")[1]),
            r"relative to one body .reference body of the linear velocity D and reference body of"
            r" the angular velocity E",
        ),
        (
            lambda: SemanticTwist.of(LINEAR, pair("twist", np.ones(6), "DC")[1]),
            r"2 rules are broken: .1. both are of one body .body of the linear velocity C and body"
            r" of the angular velocity D",
        ),
        (
            lambda: SemanticTwist.of(
                LINEAR, SemanticAngularVelocity(AngularVelocityCoord("C", "D", "[s]"), np.ones(3))
            ),
            r"coordinate frame of the linear velocity r and coordinate frame of the angular"
            r" velocity s.; express both in one frame with change_coordinate_frame",
        ),
        (
            lambda: SemanticWrench.of(pair("wrench", np.ones(6), "ED")[0], TORQUE),
            r"both are of one body .body of the force E and body of the torque C",
        ),
        (
            lambda: SemanticWrench.of(
                FORCE, SemanticTorque(TorqueCoord("e|C", "D", "[s]"), np.ones(3))
            ),
            r"coordinate frame of the force r and coordinate frame of the torque s",
        ),
        (
            lambda: SemanticTwist.of(ANGULAR, LINEAR),
            "there is no twist for these relations .AngularVelocity and LinearVelocity",
        ),
        (
            lambda: SemanticWrench.of(LINEAR, ANGULAR),
            "there is no wrench for these relations .LinearVelocity and AngularVelocity",
        ),
        (lambda: SemanticTwist.of(LINEAR, [0, 0, 1]), "an operand is a relation with numbers"),
        (lambda: SemanticTwist.of(LINEAR.coord, ANGULAR), "add numbers: SemanticLinearVelocity"),
        (lambda: apply("twist", LINEAR), "there is no twist of these operands .a LinearVelocity"),
        (lambda: apply("wrench", FORCE, TORQUE, LINEAR), "there is no wrench of these operands"),
    ],
)
def test_parts_that_do_not_match(make: Callable[[], Any], message: str) -> None:
    """The error names both parts and what differs."""
    with pytest.raises(SemanticError, match=message):
        make()


def test_a_part_in_any_representation() -> None:
    """The parts of a twist with the angular half first, or of an axis, make the same twist."""
    twist = SemanticTwist(TwistCoord("e|C", "D", "[r]"), [0, 0, 0.2, 0, 0, 1.5])
    other = twist.with_representation(AngularFirstTwist)
    assert SemanticTwist.of(other.linear, other.angular) == twist
    wrench = SemanticWrench(WrenchCoord("e|C", "D", "[r]"), [1, 2, 3, 4, 5, 6])
    assert SemanticWrench.of(wrench.force, wrench.torque) == wrench
    point = SemanticPosition(PositionCoord("f|C", "e|C", "[r]"), [1, 0, 0])
    assert twist.power(wrench) == pytest.approx(
        SemanticTwist.of(twist.linear.change_point(point, twist.angular), twist.angular).power(
            wrench.change_point(point)
        )
    )
