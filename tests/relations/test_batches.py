"""Batches: one operation on many numbers is the operation on each of them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tmkit.relations import (
    AngularVelocityCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
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
    differentiate,
    from_dict,
    to_dict,
)
from tmkit.relations.representations import (
    HomogeneousMatrix,
    RotationVector,
    VectorAndMatrix,
    VectorAndQuaternion,
)
from tmkit.relations.semantic.base import SemanticRelation
from tmkit.relations.semantics import ForceCoord

RANDOM = np.random.default_rng(3)
N = 5


def numbers(columns: int) -> Any:
    """Return rows of numbers."""
    return RANDOM.normal(size=(N, columns))


def rows() -> Any:
    """Return poses in rows."""
    return np.hstack([numbers(3), Rotation.random(N, random_state=4).as_quat()])


def matrices() -> Any:
    """Return homogeneous matrices."""
    made = np.tile(np.eye(4), (N, 1, 1))
    made[:, :3, :3], made[:, :3, 3] = Rotation.random(N, random_state=5).as_matrix(), numbers(3)
    return made


POSE = SemanticPose(PoseCoord("{a}|A", "{b}|B", "[b]"), matrices())
ABOVE = SemanticPose(PoseCoord("{b}|B", "{c}|C", "[c]"), rows())
LOOSE = POSE.with_representation(VectorAndMatrix)
POSITION = SemanticPosition(PositionCoord("a|A", "b|B", "[b]"), numbers(3))
FURTHER = SemanticPosition(PositionCoord("b|B", "c|C", "[b]"), numbers(3))
STEP = SemanticPosition(PositionCoord("p|A", "a|A", "[b]"), numbers(3))
BEHIND = SemanticPosition(PositionCoord("b|B", "r|B", "[b]"), numbers(3))
TURN = SemanticOrientation(OrientationCoord("[b]|B", "[s]|S", "[s]"), matrices()[:, :3, :3])
OWN = SemanticOrientation(
    OrientationCoord("[q]|A", "[a]|A", "[a]"), Rotation.random(N, random_state=6).as_quat()
)
WITHIN = SemanticOrientation(OrientationCoord("[b]|B", "[s]|B", "[s]"), matrices()[:, :3, :3])
ORIENTATION = SemanticOrientation(OrientationCoord("[a]|A", "[b]|B", "[b]"), matrices()[:, :3, :3])
TWIST = SemanticTwist(TwistCoord("a|A", "B", "[b]"), numbers(6))
BELOW = SemanticTwist(TwistCoord("a|B", "C", "[b]"), numbers(6))
FIXED = SemanticTwist(TwistCoord("b|A", "B", "[b]"), numbers(6))
WRENCH = SemanticWrench(WrenchCoord("a|A", "B", "[b]"), numbers(6))
LINEAR = SemanticLinearVelocity(LinearVelocityCoord("a|A", "B", "[b]"), numbers(3))
ANGULAR = SemanticAngularVelocity(AngularVelocityCoord("A", "B", "[b]"), numbers(3))
TORQUE = SemanticTorque(TorqueCoord("a|A", "B", "[b]"), numbers(3))
FORCE = SemanticForce(ForceCoord("A", "B", "[b]"), numbers(3))
SCREW = SemanticPose(PoseCoord("{a}|A", "{b}|B", "[b]"), rows())

OPERATIONS: list[tuple[str, list[Any]]] = [
    ("compose", [POSE, ABOVE]),
    ("compose", [ABOVE, POSE]),
    ("__matmul__", [POSE, ABOVE]),
    ("inverse2", [POSE]),
    ("change_point", [LOOSE, STEP]),
    ("change_reference_point", [LOOSE, BEHIND]),
    ("change_orientation_frame", [LOOSE, OWN]),
    ("change_reference_orientation_frame", [LOOSE, WITHIN]),
    ("compose", [POSITION, FURTHER]),
    ("inverse", [POSITION]),
    ("change_point", [POSITION, STEP]),
    ("change_coordinate_frame", [POSITION, TURN]),
    ("change_orientation_frame", [ORIENTATION, OWN]),
    ("change_reference_orientation_frame", [ORIENTATION, WITHIN]),
    ("inverse2", [ORIENTATION]),
    ("compose", [TWIST, BELOW]),
    ("change_point", [TWIST, STEP]),
    ("change_point_body", [TWIST, STEP]),
    ("change_coordinate_frame", [TWIST, TURN]),
    ("change_reference_body", [TWIST, BELOW]),
    ("inverse", [TWIST]),
    ("change_point", [WRENCH, STEP]),
    ("change_coordinate_frame", [WRENCH, TURN]),
    ("compose", [WRENCH, WRENCH]),
    ("change_point", [LINEAR, STEP, ANGULAR]),
    ("change_point", [TORQUE, STEP, FORCE]),
]


def same(a: SemanticRelation, b: SemanticRelation) -> None:
    """Assert that two relations agree to rounding."""
    assert a.coord == b.coord
    assert type(a.representation) is type(b.representation)
    for x, y in zip(a.numbers, b.numbers, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "operands"), OPERATIONS, ids=lambda v: v if isinstance(v, str) else v[0].coord.relation
)
def test_an_operation_on_a_batch_is_that_on_each(name: str, operands: list[Any]) -> None:
    """Any of the operands may be one relation, which belongs to all."""
    first, *others = operands
    for single in range(2 ** len(operands) - 1):
        chosen = [x[0] if single >> i & 1 else x for i, x in enumerate(operands)]
        many = getattr(chosen[0], name)(*chosen[1:])
        assert many.size == N
        for i in range(N):
            one = [x if x.size is None else x[i] for x in chosen]
            same(many[i], getattr(one[0], name)(*one[1:]))
    assert getattr(first[0], name)(*(x[0] for x in others)).size is None


def test_batches_are_integrated_differentiated_and_multiplied() -> None:
    """Each of a batch as it would be alone; the parts of a batch are batches."""
    moved = FIXED.integrate(0.1)
    turned, gone = ANGULAR.integrate(0.1), LINEAR.integrate(0.1)
    later = POSE.compose(SemanticPose(PoseCoord("{b}|B", "{b}|B", "[b]"), rows()))
    velocity = differentiate(POSE, later, 0.1)
    for i in range(N):
        same(moved[i], FIXED[i].integrate(0.1))
        same(turned[i], ANGULAR[i].integrate(0.1))
        same(gone[i], LINEAR[i].integrate(0.1))
        same(velocity[i], differentiate(POSE[i], later[i], 0.1))
        same(TWIST.linear[i], TWIST[i].linear)
        same(WRENCH.torque[i], WRENCH[i].torque)
        same(POSE.position[i], POSE[i].position)
        same(POSE.orientation[i], POSE[i].orientation)
        same(
            SemanticPose.of(POSE.position, POSE.orientation)[i],
            POSE[i].with_representation(VectorAndMatrix),
        )
        assert WRENCH.dot(TWIST)[i] == pytest.approx(WRENCH[i].dot(TWIST[i]))  # type: ignore[index]
    same(FIXED.integrate(0.1), FIXED.integrate(0.1)[:])


def test_a_batch_is_a_value() -> None:
    """It is shown by its length, pickled, written, sliced and taken apart."""
    assert repr(TWIST) == "SemanticTwist('a|A', 'B', '[b]'; 5 of TwistVector)"
    assert pickle.loads(pickle.dumps(POSE)) == POSE
    assert from_dict(to_dict(ABOVE)) == ABOVE
    assert [x.size for x in TWIST] == [None] * N
    assert TWIST[1:3].size == 2
    assert TWIST[1:3].compose(BELOW[1:3]) == TWIST.compose(BELOW)[1:3]
    np.testing.assert_allclose(
        ABOVE.in_representation(HomogeneousMatrix).matrix[2], ABOVE[2].pose.as_matrix(), atol=1e-12
    )
    assert SemanticPose(ABOVE.coord, np.empty((0, 7))).inverse2().size == 0
    vectors = SemanticOrientation(ORIENTATION.coord, RotationVector(numbers(3)))
    same(vectors.inverse()[3], vectors[3].inverse())
    with pytest.raises(ValueError, match="read-only"):
        TWIST.compose(BELOW).representation.vector[0, 0] = 1.0


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (
            lambda: TWIST.compose(BELOW[:3]),
            "batches have the same length, or one operand is not a batch .lengths 5 and 3",
        ),
        (lambda: POSE[:2].compose(ABOVE), "lengths 2 and 5"),
        (lambda: SemanticTwist(TWIST.coord, np.zeros((2, 5))), r"shapes \(6,\) \(shape \(2, 5\)\)"),
        (
            lambda: SemanticPose(POSE.coord, np.zeros((2, 4, 5))),
            r"shapes \(4, 4\), \(N, 7\) \(shape \(2, 4, 5\)\)",
        ),
        (lambda: SemanticPose(POSE.coord, np.zeros((2, 7))), "its norm is 1"),
        (lambda: SemanticPose(POSE.coord, np.ones((2, 4, 4))), "orthonormal"),
        (
            lambda: VectorAndMatrix(np.zeros(3), np.tile(np.eye(3), (2, 1, 1))),
            r"shapes \(3,\) and \(2, 3\)",
        ),
        (
            lambda: VectorAndQuaternion(np.zeros((2, 3)), [0, 0, 0, 1]),
            r"shapes \(2, 3\) and \(4,\)",
        ),
        (lambda: ABOVE.pose, "a batch of 5"),
        (
            lambda: SemanticTwist(TWIST.coord, numbers(6), covariance=np.eye(6)),
            "covariance is that of one relation",
        ),
    ],
)
def test_shapes_are_named(mistake: Any, message: str) -> None:
    """Batches of unequal length or shape are rejected with their lengths."""
    with pytest.raises(SemanticError, match=message):
        mistake()
    with pytest.raises(TypeError, match="this SemanticTwist is one, not a batch"):
        TWIST[0][0]
