"""Twists and wrenches as axes: the point of the relation lies on the axis.

The laws are over random numbers. A point is on the axis exactly if the part that depends on it (the
velocity of the point, the moment about it) is parallel to the other part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from numpy.typing import NDArray

from tmkit.relations import (
    PositionCoord,
    SemanticError,
    SemanticPosition,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    WrenchCoord,
    checks_off,
)
from tmkit.relations.representations import InstantaneousScrewAxis, WrenchAxis

Array = NDArray[np.float64]
NUMBER = st.integers(-3_000_000, 3_000_000).map(lambda number: number / 1e6)
VECTORS = st.lists(NUMBER, min_size=3, max_size=3).map(np.array)
KINDS = ["twist", "wrench"]
BY_KIND = pytest.mark.parametrize("kind", KINDS)
AXIS: dict[str, Any] = {"twist": InstantaneousScrewAxis, "wrench": WrenchAxis}


def relation(kind: str, free: Any, bound: Any) -> Any:
    """Return a twist of a velocity and an angular velocity, or a wrench of a moment and a force."""
    if kind == "twist":
        return SemanticTwist(TwistCoord("e|C", "D", "[r]"), np.concatenate([free, bound]))
    return SemanticWrench(WrenchCoord("e|C", "D", "[r]"), np.concatenate([bound, free]))


def parts(relation: Any) -> tuple[Array, Array]:
    """Return the part that depends on the point, and the other."""
    numbers = relation.numbers
    return numbers if isinstance(relation, SemanticTwist) else numbers[::-1]


def moved(relation: Any, step: Any, point: str = "s") -> Any:
    """Return a relation at another point."""
    coord = PositionCoord(f"{point}|C", f"{relation.coord.point}|C", "[r]")
    return relation.change_point(SemanticPosition(coord, step))


def near(ours: Any, theirs: Any, tolerance: float = 1e-6) -> None:
    """Assert that numbers agree."""
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@BY_KIND
@given(free=VECTORS, bound=VECTORS, along=NUMBER)
def test_every_point_of_the_axis_is_accepted(
    kind: str, free: Array, bound: Array, along: float
) -> None:
    """The numbers at it are those of the six-vector, and both parts are parallel."""
    size = np.linalg.norm(bound)
    assume(size > 1e-2)
    start = relation(kind, free, bound)
    line = AXIS[kind].of(start.numbers)
    near(np.cross(line.point, bound), free - bound * (free @ bound) / size**2)
    there = moved(start, line.point + along * line.direction)
    held = there.with_representation(AXIS[kind])
    near(np.concatenate(held.numbers), np.concatenate(there.numbers), 1e-4)
    near(np.cross(*parts(held)), np.zeros(3), 1e-3)
    again = moved(held, 2.0 * line.direction, "t")
    assert type(again.representation) is AXIS[kind]
    assert again.inverse().inverse() == again


@BY_KIND
@given(free=VECTORS, bound=VECTORS, across=st.sampled_from([0.0, 1e-8, 1e-7, 1e-4, 1.0]))
def test_a_point_beside_the_axis_is_rejected(
    kind: str, free: Array, bound: Array, across: float
) -> None:
    """Beyond a micrometre, or a millionth of the pitch; the error has the step to the axis."""
    size = np.linalg.norm(bound)
    assume(size > 1e-2)
    pitch = abs(free @ bound) / size**2
    line = AXIS[kind].of(relation(kind, free, bound).numbers)
    sideways = np.cross(line.direction, np.eye(3)[np.argmin(np.abs(line.direction))])
    beside = moved(
        relation(kind, free, bound), line.point + across * sideways / np.linalg.norm(sideways)
    )
    if across < 0.9e-6 * (1.0 + pitch):
        assert type(beside.with_representation(AXIS[kind]).representation) is AXIS[kind]
        return
    assume(across > 1.1e-6 * (1.0 + pitch))
    rule = f"passes through the point of the {kind} .point s and the axis"
    with pytest.raises(SemanticError, match=rule) as caught:
        beside.with_representation(AXIS[kind])
    words = caught.value.violations[0].repair.split("[")[1].split("]")[0]
    on_axis = moved(beside, [float(word) for word in words.split(",")], "t")
    residual = np.linalg.norm(np.cross(*parts(on_axis))) / size**2  # distance from the axis
    assert residual < 1e-5 * across + 1e-9 * (1.0 + pitch)


@BY_KIND
def test_an_operation_keeps_the_point_on_the_axis(kind: str) -> None:
    """A change of point away from the axis is rejected, unless checks are off."""
    held = relation(kind, [0, 0, 0.3], [0, 0, 2.0]).with_representation(AXIS[kind])
    assert moved(held, [0, 0, 4.0]).coord.point == "s"
    rule = "passes through the point of the (twist|wrench) .point s and the axis 0.5 m away"
    with pytest.raises(SemanticError, match=rule) as caught:
        moved(held, [0.5, 0, 0])
    assert r"[-0.5, 0, 0] m from s in the axes of r" in str(caught.value)
    with checks_off():
        far = moved(held, [0.5, 0, 0])
    near(np.linalg.norm(far.representation.moment), 0.5)
    with pytest.raises(SemanticError, match="passes through the point"):
        type(held)(held.coord, AXIS[kind]([0, 0, 1], [0, 0.1, 0], about=1.0, along=1.0))


@BY_KIND
def test_a_pure_translation_or_moment_has_any_point(kind: str) -> None:
    """Its axis has a direction and no place."""
    held = relation(kind, [1, 2, 2], [0, 0, 0]).with_representation(AXIS[kind])
    near(held.representation.direction, np.array([1, 2, 2]) / 3)
    near(np.concatenate(moved(held, [5, -3, 2]).numbers), np.concatenate(held.numbers))
    nothing = relation(kind, [0, 0, 0], [0, 0, 0]).with_representation(AXIS[kind])
    near(np.concatenate(moved(nothing, [5, -3, 2]).numbers), np.zeros(6))
