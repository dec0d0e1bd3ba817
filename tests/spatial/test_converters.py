"""Conversion of uncertain poses to ROS, gtsam, manif, pytransform3d and tf2, and back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from support.gaussian_poses import covariances, gaussian_poses, random_gaussian_pose

from tmkit._core import compose_each, log_each
from tmkit.errors import SceneError
from tmkit.spatial import GaussianPose, GaussianTwist, Pose, fit_gaussian, sample, to_ros_pose
from tmkit.spatial.converters import (
    from_gtsam,
    from_manif,
    from_pytransform3d,
    from_ros_pose,
    from_ros_twist,
    from_tf2,
    to_gtsam,
    to_manif,
    to_pytransform3d,
    to_ros_twist,
    to_tf2,
)

Array = NDArray[np.float64]


def _as_message(fields: Any) -> Any:
    """Return nested dictionaries as objects with attributes, as messages are."""
    if isinstance(fields, dict):
        return SimpleNamespace(**{name: _as_message(value) for name, value in fields.items()})
    return fields


def _same(a: GaussianPose, b: GaussianPose) -> bool:
    size = float(np.abs(a.covariance).max())
    close = bool(np.allclose(a.covariance, b.covariance, rtol=0, atol=1e-11 * size + 1e-30))
    return close and a.mean.is_close(b.mean, translation_tolerance=1e-12, rotation_tolerance=1e-12)


@given(gaussian_poses)
def test_there_and_back(pose: GaussianPose) -> None:
    """Each conversion has an exact reverse, for dictionaries and for messages with attributes."""
    assert _same(from_ros_pose(to_ros_pose(pose)), pose)
    assert _same(from_ros_pose(_as_message(to_ros_pose(pose))), pose)
    assert _same(from_gtsam(*to_gtsam(pose)), pose)
    assert from_manif(*to_manif(pose)) == pose
    assert _same(from_pytransform3d(*to_pytransform3d(pose)), pose)
    assert from_tf2(to_tf2(pose.mean)) == pose.mean
    assert from_tf2(_as_message(to_tf2(pose.mean))) == pose.mean


@given(covariances)
def test_twists_there_and_back(covariance: Array) -> None:
    """The six numbers and their covariance stand in a message as they are."""
    twist = GaussianTwist([1, 2, 3, 4, 5, 6], covariance)
    assert from_ros_twist(to_ros_twist(twist)) == twist
    assert from_ros_twist(_as_message(to_ros_twist(twist))) == twist
    assert to_ros_twist(twist)["twist"]["angular"] == {"x": 4.0, "y": 5.0, "z": 6.0}


def test_ros_has_fixed_axes_of_the_parent() -> None:
    """A deviation along the child's x, parallel to the parent's y, is ROS's second number."""
    turned = Pose.from_rpy([1, 2, 3], [0, 0, np.pi / 2])
    fields = to_ros_pose(GaussianPose(turned, np.diag([4.0, 0, 0, 9.0, 0, 0])))
    covariance = np.array(fields["covariance"]).reshape(6, 6)
    np.testing.assert_allclose(np.diag(covariance), [0, 4, 0, 0, 9, 0], atol=1e-12)
    assert len(fields["covariance"]) == 36
    assert fields["pose"]["position"] == {"x": 1.0, "y": 2.0, "z": 3.0}
    assert fields["pose"]["orientation"]["w"] == pytest.approx(np.sqrt(0.5))


def test_ros_has_the_moments_of_shift_and_turn() -> None:
    """The 36 numbers are sample moments of position and rotation in the parent's axes."""
    pose = random_gaussian_pose(np.random.default_rng(1), linear=0.01, angular=0.01)
    drawn = sample(pose, 20_000, seed=2)
    shifts = drawn[:, :3] - pose.mean.translation
    turns = log_each(  # R R_mean^-1
        compose_each(
            np.hstack([np.zeros((len(drawn), 3)), drawn[:, 3:]]),
            Pose([0, 0, 0], pose.mean.quat_xyzw).inverse().as_array()[None],
        )
    )[:, 3:]
    both = np.hstack([shifts, turns])
    found = np.array(to_ros_pose(pose)["covariance"]).reshape(6, 6)
    np.testing.assert_allclose(
        found, both.T @ both / len(both), atol=0.05 * float(np.abs(found).max())
    )


def test_gtsam_has_the_error_on_the_right_angles_first() -> None:
    """Samples drawn by gtsam's own exponential have the covariance that was converted."""
    gtsam = pytest.importorskip("gtsam")
    pose = random_gaussian_pose(np.random.default_rng(3), linear=0.05, angular=0.1)
    matrix, covariance = to_gtsam(pose)
    mean, rng = gtsam.Pose3(matrix), np.random.default_rng(4)
    assert from_gtsam(mean, covariance).mean.is_close(
        pose.mean, translation_tolerance=1e-12, rotation_tolerance=1e-12
    )
    drawn = [
        Pose.from_matrix(mean.compose(gtsam.Pose3.Expmap(xi)).matrix()).as_array()
        for xi in rng.multivariate_normal(np.zeros(6), covariance, size=8000)
    ]
    fitted = fit_gaussian(drawn, mean=pose.mean)
    np.testing.assert_allclose(
        fitted.covariance, pose.covariance, atol=0.06 * float(np.abs(pose.covariance).max())
    )
    xi = np.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.6])
    ours = Pose.exp(xi[[3, 4, 5, 0, 1, 2]]).as_matrix()
    np.testing.assert_allclose(gtsam.Pose3.Expmap(xi).matrix(), ours, atol=1e-14)


def test_pytransform3d_has_the_error_on_the_left_angles_first() -> None:
    """Samples drawn by its own function have the covariance that was converted."""
    transformations = pytest.importorskip("pytransform3d.transformations")
    pose = random_gaussian_pose(np.random.default_rng(5), linear=0.05, angular=0.1)
    matrix, covariance = to_pytransform3d(pose)
    rng = np.random.default_rng(6)
    drawn = [
        Pose.from_matrix(transformations.random_transform(rng, matrix, covariance)).as_array()
        for _ in range(8000)
    ]
    fitted = fit_gaussian(drawn, mean=pose.mean)
    np.testing.assert_allclose(
        fitted.covariance, pose.covariance, atol=0.06 * float(np.abs(pose.covariance).max())
    )


def test_manif_is_as_ours() -> None:
    """Coefficients are position and quaternion xyzw, the covariance is the same matrix."""
    pose = random_gaussian_pose(np.random.default_rng(7), linear=0.05, angular=0.1)
    coefficients, covariance = to_manif(pose)
    assert coefficients.tolist() == pose.mean.as_array().tolist()
    assert np.array_equal(covariance, pose.covariance)


def test_messages_that_are_none_are_rejected() -> None:
    """Missing fields, wrong numbers and what is no covariance are named."""
    fields = to_ros_pose(GaussianPose())
    with pytest.raises(SceneError, match="PoseWithCovariance: a dict without the field 'position'"):
        from_ros_pose({**fields, "pose": {}})
    with pytest.raises(SceneError, match="SimpleNamespace without the field 'pose'"):
        from_ros_pose(SimpleNamespace(covariance=[0.0] * 36))
    with pytest.raises(SceneError, match="36 numbers, row by row, not 6"):
        from_ros_pose({**fields, "covariance": [0.0] * 6})
    with pytest.raises(
        SceneError, match=r"PoseWithCovariance: covariance is not positive semi-definite: .*\[-1"
    ):
        from_ros_pose({**fields, "covariance": [-1.0] + [0.0] * 35})
    with pytest.raises(SceneError, match="Transform: a int without the field 'translation'"):
        from_tf2(3)
    with pytest.raises(SceneError, match="quat_xyzw is zero"):
        from_tf2({"translation": dict.fromkeys("xyz", 0.0), "rotation": dict.fromkeys("xyzw", 0.0)})
