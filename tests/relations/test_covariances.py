"""Covariances of relations against samples and against uncertain poses of the core."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import tmkit as tk
from tmkit.graph import add_fact, add_pose, add_twist, gaussian_twist, update_pose
from tmkit.relations import (
    AngularVelocityCoord,
    ForceCoord,
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
    VectorAndMatrix,
    VectorAndRotationVector,
)
from tmkit.relations.semantic.base import SemanticRelation

Matrix = NDArray[np.float64]
RANDOM = np.random.default_rng(7)
SCALE, SAMPLES = 1e-3, 20_000


def spread(size: int) -> Matrix:
    """Return a covariance of small errors."""
    root = RANDOM.normal(size=(size, size)) * SCALE
    return root @ root.T


def turn() -> Matrix:
    """Return a rotation matrix."""
    return Rotation.from_rotvec(RANDOM.normal(size=3)).as_matrix()


def matrix() -> Matrix:
    """Return a homogeneous matrix."""
    made = np.eye(4)
    made[:3, :3], made[:3, 3] = turn(), RANDOM.normal(size=3)
    return made


POSE = SemanticPose(PoseCoord("{a}|A", "{b}|B", "[b]"), matrix(), covariance=spread(6))
ABOVE = SemanticPose(PoseCoord("{b}|B", "{c}|C", "[c]"), matrix(), covariance=spread(6))
LOOSE = POSE.with_representation(VectorAndMatrix)
POSITION = SemanticPosition(
    PositionCoord("a|A", "b|B", "[b]"), RANDOM.normal(size=3), covariance=spread(3)
)
STEP = SemanticPosition(
    PositionCoord("p|A", "a|A", "[b]"), RANDOM.normal(size=3), covariance=spread(3)
)
BEHIND = SemanticPosition(
    PositionCoord("b|B", "r|B", "[b]"), RANDOM.normal(size=3), covariance=spread(3)
)
AXES = SemanticOrientation(OrientationCoord("[b]|B", "[s]|B", "[s]"), turn(), covariance=spread(3))
OWN = SemanticOrientation(OrientationCoord("[q]|A", "[a]|A", "[a]"), turn(), covariance=spread(3))
ORIENTATION = SemanticOrientation(
    OrientationCoord("[a]|A", "[b]|B", "[b]"), turn(), covariance=spread(3)
)
TWIST = SemanticTwist(TwistCoord("a|A", "B", "[b]"), RANDOM.normal(size=6), covariance=spread(6))
FIXED = SemanticTwist(TwistCoord("b|A", "B", "[b]"), RANDOM.normal(size=6), covariance=spread(6))
BELOW = SemanticTwist(TwistCoord("a|B", "C", "[b]"), RANDOM.normal(size=6), covariance=spread(6))
WRENCH = SemanticWrench(WrenchCoord("a|A", "B", "[b]"), RANDOM.normal(size=6), covariance=spread(6))
LINEAR = SemanticLinearVelocity(
    LinearVelocityCoord("a|A", "B", "[b]"), RANDOM.normal(size=3), covariance=spread(3)
)
ANGULAR = SemanticAngularVelocity(
    AngularVelocityCoord("A", "B", "[b]"), RANDOM.normal(size=3), covariance=spread(3)
)
TORQUE = SemanticTorque(TorqueCoord("a|A", "B", "[b]"), RANDOM.normal(size=3), covariance=spread(3))
FORCE = SemanticForce(ForceCoord("A", "B", "[b]"), RANDOM.normal(size=3), covariance=spread(3))


def drawn(relation: SemanticRelation, count: int) -> SemanticRelation:
    """Return samples of an uncertain relation as a batch, without the library's Jacobians."""
    assert relation.covariance is not None
    errors = RANDOM.multivariate_normal(
        np.zeros(len(relation.covariance)), relation.covariance, size=count
    )
    numbers = relation.numbers
    if isinstance(relation, SemanticOrientation):
        return SemanticOrientation(
            relation.coord, numbers[0] @ Rotation.from_rotvec(errors).as_matrix()
        )
    if isinstance(relation, SemanticPose):
        p, rotations = (
            numbers[0] + errors[:, :3] @ numbers[1].T,
            numbers[1] @ Rotation.from_rotvec(errors[:, 3:]).as_matrix(),
        )
        # Exp(xi) to first order in xi
        return SemanticPose(relation.coord, VectorAndMatrix(p, rotations))
    return type(relation)(relation.coord, np.concatenate(numbers) + errors)


def errors_of(samples: SemanticRelation, mean: SemanticRelation) -> Matrix:
    """Return the errors (N, d) of samples."""
    if isinstance(mean, SemanticOrientation):
        return Rotation.from_matrix(mean.numbers[0].T @ samples.numbers[0]).as_rotvec()
    if isinstance(mean, SemanticPose):
        rho = (samples.numbers[0] - mean.numbers[0]) @ mean.numbers[1]
        return np.hstack(
            [rho, Rotation.from_matrix(mean.numbers[1].T @ samples.numbers[1]).as_rotvec()]
        )
    return np.hstack(samples.numbers) - np.concatenate(mean.numbers)


OPERATIONS: list[tuple[str, list[Any]]] = [
    ("compose", [POSE, ABOVE]),
    ("compose", [ABOVE, POSE]),
    ("inverse2", [POSE]),
    ("change_reference_point", [LOOSE, BEHIND]),
    ("change_orientation_frame", [LOOSE, OWN]),
    ("change_reference_orientation_frame", [LOOSE, AXES]),
    ("inverse2", [ORIENTATION]),
    ("change_orientation_frame", [ORIENTATION, OWN]),
    ("change_reference_orientation_frame", [ORIENTATION, AXES]),
    ("change_point", [POSITION, STEP]),
    ("inverse", [POSITION]),
    ("change_coordinate_frame", [POSITION, AXES]),
    ("compose", [TWIST, BELOW]),
    ("change_point", [TWIST, STEP]),
    ("change_coordinate_frame", [TWIST, AXES]),
    ("change_reference_body", [TWIST, BELOW]),
    ("change_point", [WRENCH, STEP]),
    ("change_coordinate_frame", [WRENCH, AXES]),
    ("compose", [WRENCH, WRENCH]),
    ("change_point", [LINEAR, STEP, ANGULAR]),
    ("change_point", [TORQUE, STEP, FORCE]),
]


@pytest.mark.parametrize(
    ("name", "operands"), OPERATIONS, ids=lambda v: v if isinstance(v, str) else v[0].coord.relation
)
def test_operations_carry_covariances_as_samples_do(name: str, operands: list[Any]) -> None:
    """The covariance of the results of samples, with errors in any of the operands and in all."""
    for uncertain in {
        (True,) * len(operands),
        *(tuple(i == j for j in range(len(operands))) for i in range(len(operands))),
    }:
        chosen = [
            x if keep else x.with_covariance(None)
            for x, keep in zip(operands, uncertain, strict=True)
        ]
        result = getattr(chosen[0], name)(*chosen[1:])
        batches = [drawn(x, SAMPLES) if x.covariance is not None else x for x in chosen]
        samples = errors_of(getattr(batches[0], name)(*batches[1:]), result)
        np.testing.assert_allclose(
            result.covariance, np.cov(samples.T), atol=0.08 * np.abs(result.covariance).max()
        )


def test_poses_carry_covariances_as_the_core_does() -> None:
    """``tk.GaussianPose`` has the same convention, and gives the same numbers."""
    assert POSE.covariance is not None
    assert ABOVE.covariance is not None
    below, above = (
        tk.GaussianPose(POSE.pose, POSE.covariance),
        tk.GaussianPose(ABOVE.pose, ABOVE.covariance),
    )
    for composed in (POSE.compose(ABOVE), ABOVE.compose(POSE), POSE @ ABOVE):
        np.testing.assert_allclose(composed.covariance, (above @ below).covariance, atol=1e-18)
        assert composed.pose.is_close((above @ below).mean)
    turned = POSE.inverse2()
    np.testing.assert_allclose(turned.covariance, below.inverse().covariance, atol=1e-18)
    assert turned.gaussian_pose.mean.is_close(below.inverse().mean)
    assert SemanticPose(POSE.coord, below).gaussian_pose == below
    # the new point moves with the body, as a frame there does
    offset = tk.Pose(POSE.numbers[1].T @ STEP.numbers[0])
    moved = LOOSE.change_point(STEP.with_covariance(None))
    np.testing.assert_allclose(moved.covariance, (below @ offset).covariance, atol=1e-18)


def test_motions_and_parts_carry_covariances() -> None:
    """A twist that is integrated, the parts of poses and twists, and a pose of two parts."""
    for relation in (FIXED, ANGULAR, LINEAR):
        moved, many = relation.integrate(0.5), drawn(relation, SAMPLES).integrate(0.5)  # type: ignore[attr-defined]
        np.testing.assert_allclose(
            moved.covariance,
            np.cov(errors_of(many, moved).T),
            atol=0.08 * np.abs(moved.covariance).max(),
        )
    many = drawn(POSE, SAMPLES)
    assert isinstance(many, SemanticPose)
    for part, samples in ((POSE.position, many.position), (POSE.orientation, many.orientation)):
        np.testing.assert_allclose(
            part.covariance, np.cov(errors_of(samples, part).T), atol=0.08 * SCALE**2 * 6
        )
    again = SemanticPose.of(POSITION, ORIENTATION)
    np.testing.assert_allclose(again.position.covariance, POSITION.covariance, atol=1e-18)
    np.testing.assert_allclose(again.orientation.covariance, ORIENTATION.covariance, atol=1e-18)
    assert TWIST.covariance is not None
    np.testing.assert_array_equal(TWIST.angular.covariance, TWIST.covariance[3:, 3:])


def test_a_covariance_is_part_of_the_value() -> None:
    """A covariance survives comparison, pickling, JSON and other representations."""
    assert POSE.covariance_axes == "a"
    assert TWIST.covariance_axes == "b"
    assert POSE.with_covariance(None) != POSE
    assert pickle.loads(pickle.dumps(POSE)) == POSE
    assert from_dict(to_dict(POSE)) == POSE
    assert to_dict(TWIST)["covariance"]["axes"] == "b"
    assert "; standard deviations [" in repr(POSE)
    assert repr(POSE).endswith("] in [a])")
    np.testing.assert_array_equal(LOOSE.covariance, POSE.covariance)
    np.testing.assert_array_equal(POSE.change_reference_body("E").covariance, POSE.covariance)
    assert POSE.with_covariance(None).covariance is None
    with pytest.raises(ValueError, match="read-only"):
        POSE.compose(ABOVE).covariance[0, 0] = 1.0  # type: ignore[index]


FREE = SemanticPose(
    PoseCoord("{a}|A", "{b}|B", "[r]"), VectorAndRotationVector([1, 2, 3], [0, 0, 1])
)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (
            lambda: LOOSE.change_coordinate_frame(AXES),
            "change_coordinate_frame propagates a covariance",
        ),
        (
            lambda: POSE.with_representation(VectorAndRotationVector).inverse(),
            "inverse propagates a covariance .*use inverse2",
        ),
        (
            lambda: FREE.with_covariance(np.eye(6)),
            "expressed in its reference orientation frame .coordinate frame r",
        ),
        (lambda: POSE.with_covariance(-np.eye(6)), "not positive semi-definite"),
        (lambda: POSE.with_covariance(np.eye(3)), r"must have shape \(6, 6\), not \(3, 3\)"),
        (lambda: POSITION.with_covariance(np.eye(6)), r"must have shape \(3, 3\), not \(6, 6\)"),
        (
            lambda: differentiate(POSE, POSE, 0.1),
            r"at two times is unknown .*with_covariance\(None\)",
        ),
        (
            lambda: from_dict({**to_dict(POSE), "covariance": {"axes": "b"}}),
            "a covariance has a matrix and the axes a",
        ),
        (lambda: FREE.pose, "a homogeneous matrix is expressed in its reference orientation frame"),
    ],
)
def test_where_a_covariance_is_not_defined_it_is_rejected(mistake: Any, message: str) -> None:
    """It is never dropped."""
    with pytest.raises(SemanticError, match=message):
        mistake()
    assert POSE.with_covariance(None).in_representation(HomogeneousMatrix) is POSE.representation


def test_a_scene_takes_the_covariance_of_what_is_added() -> None:
    """A covariance of a pose argument equals the ``covariance`` argument."""
    scene = tk.SceneGraph(root=None)
    for frame in "abc":
        scene = scene.add_body(frame.upper()).add_root(frame, body=frame.upper())
    added = add_pose(scene, POSE)
    np.testing.assert_allclose(
        added.gaussian_pose("a", relative_to="b").covariance, POSE.covariance, atol=1e-18
    )
    np.testing.assert_allclose(
        add_fact(scene, POSE).gaussian_pose("a", relative_to="b").covariance,
        POSE.covariance,
        atol=1e-18,
    )
    update = update_pose(add_pose(scene, POSE.with_covariance(None)), POSE)
    np.testing.assert_allclose(
        update.gaussian_pose("a", relative_to="b").covariance, POSE.covariance, atol=1e-18
    )
    moving = add_twist(add_pose(scene, POSE.with_covariance(None)), TWIST)
    coord = TwistCoord("a|A", "B", "[b]")
    np.testing.assert_allclose(
        gaussian_twist(moving, coord).covariance, TWIST.covariance, atol=1e-16
    )
    batch = SemanticPose(POSE.coord, np.tile(POSE.pose.as_array(), (2, 1)))
    for add in (add_pose, add_fact, update_pose):
        with pytest.raises(
            SemanticError, match=f"{add.__name__}: it takes one relation .a batch of 2"
        ):
            add(scene, batch)
