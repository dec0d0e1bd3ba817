"""``apply`` accepts coordinates without numbers only if it accepts them with numbers."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import numpy as np
import pytest

from tmkit import relations
from tmkit.relations import (
    AngularVelocityCoord,
    ForceCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    SemanticPose,
    SemanticPosition,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
    apply,
)
from tmkit.relations.by_name import OPERATIONS
from tmkit.relations.representations import RotationVector, VectorAndMatrix, VectorAndRotationVector

KINDS: list[Any] = [
    PositionCoord,
    OrientationCoord,
    PoseCoord,
    LinearVelocityCoord,
    AngularVelocityCoord,
    TwistCoord,
    ForceCoord,
    TorqueCoord,
    WrenchCoord,
]
NAMES = {
    "point": "gh",
    "ori": "gh",
    "body": "CD",
    "ref_point": "gh",
    "ref_ori": "gh",
    "ref_body": "CD",
    "coord": "gh",
}


def with_numbers(coord: Any, *, matrix: bool = True) -> Any:
    """Return a relation with coordinates, in vectors and, where these can say it, in matrices."""
    made: Any = getattr(relations, f"Semantic{coord.relation}")
    own = matrix and getattr(coord, "ref_ori", None) == coord.coord
    if coord.relation == "Pose":
        kind = VectorAndMatrix if own else VectorAndRotationVector
        return made(coord, kind(np.ones(3), np.eye(3) if own else np.zeros(3)))
    if coord.relation == "Orientation":
        return made(coord, np.eye(3) if own else RotationVector(np.zeros(3)))
    return made(coord, np.ones(6 if coord.relation in ("Twist", "Wrench") else 3))


def test_what_is_accepted_without_numbers_is_accepted_with_them() -> None:
    """Each operation on operands of each kind, with names from so few that many fit."""
    random = Random(1)
    accepted: set[tuple[str, ...]] = set()
    refused = 0

    def coord(kind: Any) -> Any:
        return kind.from_names(**{name: random.choice(NAMES[name]) for name in kind.fields})

    def attempt(op: str, operands: tuple[Any, ...]) -> bool:
        try:
            apply(op, *operands)
        except SemanticError:
            return False
        return True

    for op, kind, _ in itertools.product(OPERATIONS, KINDS, range(600)):
        first, like = coord(kind), random.choice(KINDS)
        alike = like.from_names(
            **{name: getattr(first, name, random.choice(NAMES[name])) for name in like.fields}
        )
        kinds = (PositionCoord, OrientationCoord, random.choice(KINDS))
        others = random.choice([(), ("D",), (alike,), *((coord(k),) for k in kinds)])
        if random.random() < 0.2:
            others = (
                coord(PositionCoord),
                coord(random.choice([AngularVelocityCoord, ForceCoord])),
            )
        operands = (first, *others)
        if not attempt(op, operands):
            refused += 1
            continue
        given = (operands[0], *operands[:1]) if op == "differentiate" else operands
        time = (0.5,) if op in ("integrate", "differentiate") else ()
        forms = [
            [o if isinstance(o, str) else with_numbers(o, matrix=m) for o in given]
            for m in (True, False)
        ]
        assert any(attempt(op, (*form, *time)) for form in forms), (op, operands)
        accepted.add((op, *(getattr(o, "relation", "body") for o in operands)))
    assert refused > 10_000
    assert {op for op, *_ in accepted} == set(OPERATIONS)


@pytest.mark.parametrize(
    ("op", "coord"),
    [
        ("changePointBody", WrenchCoord("g|C", "D", "[h]")),
        ("changePointBody", PoseCoord("{g}|C", "{h}|D", "[h]")),
        ("changeReferencePointBody", PoseCoord("{g}|C", "{h}|D", "[h]")),
    ],
)
def test_points_of_other_bodies_are_for_positions_and_twists(op: str, coord: Any) -> None:
    """Undefined changes of wrenches and poses are rejected with and without numbers."""
    way = (
        PositionCoord("e|C2", "g|C", "[h]")
        if op == "changePointBody"
        else PositionCoord("h|D", "e|D2", "[h]")
    )
    for operands in ((coord, way), (with_numbers(coord), with_numbers(way))):
        with pytest.raises(SemanticError, match="there is no change_"):
            apply(op, *operands)


def test_the_repair_of_a_matrix_at_another_point_is_no_circle() -> None:
    """A homogeneous matrix rejects another point; the suggested repair is accepted."""
    pose = SemanticPose(PoseCoord("{g}|C", "{h}|D", "[h]"), np.eye(4))
    way = SemanticPosition(PositionCoord("e|C", "g|C", "[h]"), [0.1, 0, 0])
    with pytest.raises(SemanticError, match=r"with_representation\(VectorAndMatrix\)") as caught:
        pose.change_point(way)
    assert "with change_point" not in str(caught.value)
    assert pose.with_representation(VectorAndMatrix).change_point(way).coord.point == "e"
    back = SemanticPosition(PositionCoord("h|D", "e|D", "[h]"), [0.1, 0, 0])
    with pytest.raises(
        SemanticError, match=r"allow any reference point: with_representation\(VectorAndMatrix\)"
    ):
        pose.change_reference_point(back)
    assert (
        pose.with_representation(VectorAndMatrix).change_reference_point(back).coord.ref_point
        == "e"
    )
