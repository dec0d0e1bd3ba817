"""Laws of the algebra of uncertain poses, for covariances of every rank."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from support.gaussian_poses import (
    covariances,
    gaussian_poses,
    poses,
    random_chain,
    relative_difference,
)

from tmkit.errors import SceneError
from tmkit.spatial import GaussianPose, JointGaussianPose, Pose, adjoint, compose, covariance_root
from tmkit.spatial.covariances import check_covariance, swap_linear_angular

Array = NDArray[np.float64]


def assert_same(a: GaussianPose, b: GaussianPose, tolerance: float = 1e-10) -> None:
    """Both have one mean and one covariance, up to rounding."""
    assert a.mean.is_close(b.mean, translation_tolerance=1e-10, rotation_tolerance=1e-10)
    size = max(float(np.abs(a.covariance).max()), float(np.abs(b.covariance).max()))
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=0, atol=tolerance * size + 1e-30)


def assert_covariance(matrix: Array) -> None:
    """The matrix is symmetric, and positive semi-definite up to rounding."""
    assert np.array_equal(matrix, matrix.T)
    values = np.linalg.eigvalsh(matrix)
    assert values[0] >= -1e-12 * max(values[-1], 0.0) - 1e-30


@given(gaussian_poses, gaussian_poses, gaussian_poses)
def test_composition_is_associative(a: GaussianPose, b: GaussianPose, c: GaussianPose) -> None:
    """(a b) c is a (b c)."""
    assert_same((a @ b) @ c, a @ (b @ c))
    assert_same(compose([a, b, c]), a @ b @ c)


@given(gaussian_poses, gaussian_poses)
def test_composition_is_the_formula_with_adjoints(a: GaussianPose, b: GaussianPose) -> None:
    """The covariance of a product is the transformed first one plus the second one."""
    carried = adjoint(b.mean.inverse())
    expected = carried @ a.covariance @ carried.T + b.covariance
    assert_same(a @ b, GaussianPose(a.mean @ b.mean, 0.5 * (expected + expected.T)))
    assert_covariance((a @ b).covariance)


@given(gaussian_poses)
def test_the_inverse_of_the_inverse_is_the_pose(a: GaussianPose) -> None:
    """Inverting twice changes nothing; the covariance of the inverse is the left one."""
    assert_same(a.inverse().inverse(), a)
    np.testing.assert_allclose(a.inverse().covariance, a.left_covariance, rtol=0, atol=0)
    carried = adjoint(a.mean)
    size = float(np.abs(a.left_covariance).max())
    np.testing.assert_allclose(
        carried @ a.covariance @ carried.T, a.left_covariance, atol=1e-13 * size
    )


@given(gaussian_poses, gaussian_poses)
def test_the_inverse_of_a_product_is_the_product_of_inverses(
    a: GaussianPose, b: GaussianPose
) -> None:
    """(a b)^-1 is b^-1 a^-1."""
    assert_same((a @ b).inverse(), b.inverse() @ a.inverse())


@given(gaussian_poses)
def test_left_and_right_errors_are_one(a: GaussianPose) -> None:
    """Made of its left covariance a pose is the same; changing the order of parts twice, too."""
    assert_same(GaussianPose.from_left(a.mean, a.left_covariance), a)
    assert np.array_equal(swap_linear_angular(swap_linear_angular(a.covariance)), a.covariance)
    assert np.array_equal(swap_linear_angular(a.covariance)[:3, :3], a.covariance[3:, 3:])


@given(gaussian_poses, poses)
def test_exact_poses_add_nothing(a: GaussianPose, b: Pose) -> None:
    """An exact right factor transforms errors, an exact left factor preserves them."""
    exact = GaussianPose(b)
    assert exact.covariance.any() == False  # noqa: E712  # numpy's bool
    assert (b @ a) == (exact @ a)
    assert np.array_equal((exact @ a).covariance, a.covariance)
    assert (a @ b) == (a @ exact)
    assert a.compose(exact, order=4) == a @ exact
    assert exact.compose(a, order=4) == exact @ a


@given(gaussian_poses, gaussian_poses)
def test_fourth_order_keeps_covariances_positive(a: GaussianPose, b: GaussianPose) -> None:
    """Fourth order preserves the mean and positive semi-definiteness, at all ranks and sizes."""
    fourth = a.compose(b, order=4)
    assert fourth.mean == (a @ b).mean
    assert_covariance(fourth.covariance)


@given(st.integers(0, 10_000), st.floats(0.01, 0.2))
def test_fourth_order_tends_to_first(seed: int, size: float) -> None:
    """With errors ten times smaller, fourth-order terms shrink by 1e4 and covariances by 1e2."""
    a, b = random_chain(2, linear=size, angular=size, seed=seed)
    first = a @ b
    added = a.compose(b, order=4).covariance - first.covariance
    small = [GaussianPose(pose.mean, 0.01 * pose.covariance) for pose in (a, b)]
    added_small = small[0].compose(small[1], order=4).covariance - (small[0] @ small[1]).covariance
    atol = 1e-13 * float(np.abs(first.covariance).max())
    np.testing.assert_allclose(added_small, 1e-4 * added, atol=atol)


@given(gaussian_poses, gaussian_poses, poses)
def test_fourth_order_is_one_on_both_sides(a: GaussianPose, b: GaussianPose, c: Pose) -> None:
    """An exact pose before or behind a product does not change what fourth order says of it."""
    assert_same(
        (c @ a).compose(b, order=4), GaussianPose(c) @ a.compose(b, order=4), tolerance=1e-9
    )
    assert_same(a.compose(b @ c, order=4), a.compose(b, order=4) @ c, tolerance=1e-9)


# --------------------------------------------------------------------------------- joint covariance


@given(gaussian_poses, gaussian_poses, gaussian_poses)
def test_what_leaves_share_cancels(common: GaussianPose, a: GaussianPose, b: GaussianPose) -> None:
    """The pose of one leaf relative to the other has the errors of their own branches only."""
    joint = JointGaussianPose.of_branches(common, [a, b])
    assert_covariance(np.array(joint.covariance))
    found, expected = joint.relative(1, relative_to=0), a.inverse() @ b
    assert found.mean.is_close(expected.mean, translation_tolerance=1e-10, rotation_tolerance=1e-10)
    # cancellation leaves what is small beside what was added
    size = float(np.abs(joint.covariance).max())
    np.testing.assert_allclose(
        found.covariance, expected.covariance, rtol=0, atol=1e-12 * (1.0 + 100.0 * size)
    )
    assert_same(joint.marginal(0), common @ a)
    assert_same(joint.marginals()[1], common @ b)


@given(gaussian_poses, gaussian_poses)
def test_independent_poses_compose_alike_in_a_joint(a: GaussianPose, b: GaussianPose) -> None:
    """Without correlation the joint answers are those of single poses."""
    joint = JointGaussianPose.independent([a, b])
    assert_same(joint.compose(), a @ b)
    assert_same(joint.relative(1, relative_to=0), a.inverse() @ b)
    assert_same(joint.relative(0, relative_to=-1), b.inverse() @ a)
    assert not joint.cross(0, 1).any()


def test_fully_correlated_poses_are_exact_to_each_other() -> None:
    """Two exactly placed objects on an uncertain table have an exact relative pose."""
    table = random_chain(1, linear=0.1, angular=0.2)[0]
    things = [
        GaussianPose(Pose([0.1, 0.2, 0.0])),
        GaussianPose(Pose.from_rpy([0.3, -0.2, 0.0], [0, 0, 1])),
    ]
    relative = JointGaussianPose.of_branches(table, things).relative(1, relative_to=0)
    assert np.abs(relative.covariance).max() < 1e-16
    independent = (table @ things[0]).inverse() @ (table @ things[1])
    assert np.abs(independent.covariance).max() > 1e-3


def test_joint_poses_are_values() -> None:
    """Equality is exact and by content; they pickle; positions beyond the end are rejected."""
    joint = JointGaussianPose.independent(random_chain(3, linear=0.1, angular=0.1))
    other = pickle.loads(pickle.dumps(joint))
    assert other == joint
    assert hash(other) == hash(joint)
    assert joint != JointGaussianPose.independent(random_chain(3, linear=0.1, angular=0.1, seed=1))
    assert joint != "joint"
    assert repr(joint) == "JointGaussianPose(3 poses)"
    assert not joint.covariance.flags.writeable
    with pytest.raises(SceneError, match="0 to 2, not 3"):
        joint.marginal(3)
    with pytest.raises(SceneError, match=r"\(18, 18\), not \(6, 6\)"):
        JointGaussianPose(joint.means, np.eye(6))


# ------------------------------------------------------------------------------ values and refusals


@given(gaussian_poses)
def test_gaussian_poses_are_values(a: GaussianPose) -> None:
    """Copies and pickles are equal, arrays are read-only, and other types are unequal."""
    for other in (copy.copy(a), copy.deepcopy(a), GaussianPose(a.mean, a.covariance)):
        assert other == a
        assert hash(other) == hash(a)
    assert pickle.loads(pickle.dumps(a)) == a
    assert a != a.mean
    assert a != GaussianPose(a.mean, a.covariance + np.eye(6))
    assert not a.covariance.flags.writeable
    assert not a.left_covariance.flags.writeable


def test_defaults_are_exact() -> None:
    """A pose without a covariance is exact, and without anything it is the identity."""
    assert GaussianPose() == GaussianPose(Pose(), np.zeros((6, 6)))
    assert repr(GaussianPose(Pose([1, 2, 3]), 0.01 * np.eye(6))).startswith("GaussianPose(")
    assert compose([]) == GaussianPose()


@given(covariances)
def test_a_root_has_as_many_columns_as_the_rank(covariance: Array) -> None:
    """The root times its transpose is the covariance, exact ones have no columns."""
    root = covariance_root(covariance)
    size = float(np.abs(covariance).max())
    np.testing.assert_allclose(root @ root.T, covariance, atol=1e-12 * size + 1e-40)
    assert root.shape[1] == np.linalg.matrix_rank(covariance, tol=1e-12 * size + 1e-300)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (
            np.diag([1, 1, 1, 1, 1, -0.5]),
            r"not positive semi-definite: its eigenvalues are \[-0\.5, 1",
        ),
        (np.eye(6) + np.eye(6, k=1), "not symmetric"),
        (np.eye(5), r"\(6, 6\)|\(m, 6\)"),
        (np.full((6, 6), np.nan), "finite"),
        (np.ones((6, 7)), r"\(6, 6\)|\(m, 6\)"),
    ],
)
def test_what_is_no_covariance_is_rejected(matrix: Array, message: str) -> None:
    """The message names the shape, the asymmetry, or all eigenvalues; in the core as in Python."""
    with pytest.raises(SceneError, match=message):
        GaussianPose(Pose(), matrix)
    with pytest.raises(ValueError, match=message):
        check_covariance(matrix, 6)
    with pytest.raises(SceneError, match=message):
        GaussianPose.from_left(Pose(), matrix)


def test_eigenvalues_are_an_attribute_too() -> None:
    """A program need not parse the message."""
    with pytest.raises(SceneError) as caught:
        check_covariance(np.diag([2.0, -1.0]))
    assert caught.value.data["eigenvalues"] == (-1.0, 2.0)


def test_orders_other_than_first_and_fourth_are_rejected() -> None:
    """There is no second or third order of errors of mean zero."""
    with pytest.raises(SceneError, match="order is 1 or 4, not 2"):
        GaussianPose().compose(GaussianPose(), order=2)


def test_fourth_order_matters_when_errors_are_large() -> None:
    """The relative difference of both orders grows with the square of the errors."""
    differences = []
    for size in (0.01, 0.1):
        links = random_chain(8, linear=size, angular=size, seed=5)
        first, fourth = compose(links), compose(links, order=4)
        differences.append(relative_difference(first.covariance, fourth.covariance))
    assert differences[1] / differences[0] == pytest.approx(100.0, rel=0.1)


def test_exact_poses_are_links_of_a_chain_too() -> None:
    """A pose among uncertain poses is exact; the error names the position of a non-pose."""
    a, b = random_chain(2, linear=0.01, angular=0.02)
    turn = Pose.from_rpy([1, 2, 3], [0.1, 0.2, 0.3])
    assert compose([a, turn, b]) == a @ turn @ b
    assert compose([turn, b], order=4).mean == turn @ b.mean
    with pytest.raises(SceneError, match="uncertain and exact poses; number 1 is a int"):
        compose([a, 7])
