"""Uncertain poses and twists as other libraries have them, and back; rotations mended that files have to a few digits.

Ours: ``T = mean @ exp(xi)``, ``xi = [rho, theta]``: error on the right, in the child's axes, linear
    part first.

* ROS ``geometry_msgs/PoseWithCovariance``: shift and turn apart, in the parent's *fixed* axes,
  about the child's origin; x, y, z, rotX, rotY, rotZ; 36 numbers row by row.
* ROS ``geometry_msgs/TwistWithCovariance``: the six numbers [v, omega]; 36 numbers row by row.
* gtsam ``Pose3``: on the right, like ours, but [theta, rho].
* manif ``SE3d``: as ours; coefficients x, y, z, quaternion xyzw.
* pytransform3d ``uncertainty``: on the left (global, about the parent's origin), [theta, rho].
* tf2 ``Transform``: no covariance.

In ROS, p = p_mean + dp and R = Exp(dphi) R_mean, with dp and dphi in the parent's axes. To first
order dp = R rho and dphi = R theta: both parts are turned by R, and none is shifted. This is *not*
the left tangent. The map is linear and is undone exactly. What is made is a dictionary with the
message's fields, as `rosbridge` takes it.

Matrices of files and of other programs are rotations to a few digits. Nothing here corrects one in
passing: the library refuses it, and :func:`nearest_rotation` is for whoever decides that the
distance is small enough. Source: the orthogonal Procrustes problem; Horn, Hilden, Negahdaripour,
"Closed-form solution of absolute orientation using orthonormal matrices", JOSA A, 1988.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose
from tmkit.errors import SceneError
from tmkit.spatial.covariances import GaussianTwist, checked_covariance, even, swap_linear_angular
from tmkit.spatial.plain import plain_numbers, read_only

Array = NDArray[np.float64]


def from_ros_pose(message: object) -> GaussianPose:
    """Return the uncertain pose of a ``geometry_msgs/PoseWithCovariance``: attributes or nested dictionaries.

    It has ``pose.position``, ``pose.orientation`` and ``covariance``, as the ``pose`` of a stamped
    message.

    Raises:
        SceneError: a field that is missing, a zero quaternion, or 36 numbers that are no
            covariance.
    """
    at = "PoseWithCovariance"
    inner = _field(message, "pose", at)
    position = _numbers(_field(inner, "position", at), "xyz", at)
    mean = Pose(position, _numbers(_field(inner, "orientation", at), "xyzw", at))
    turn = _both(mean.rotation)
    return GaussianPose(mean, even(turn.T @ _covariance(message, at) @ turn))


def to_ros_pose(pose: GaussianPose) -> dict[str, Any]:
    """Return an uncertain pose as the fields of a ``geometry_msgs/PoseWithCovariance``."""
    turn = _both(pose.mean.rotation)
    return {
        "pose": {
            "position": _named(pose.mean.translation, "xyz"),
            "orientation": _named(pose.mean.quat_xyzw, "xyzw"),
        },
        "covariance": even(turn @ pose.covariance @ turn.T).ravel().tolist(),
    }


def from_ros_twist(message: object) -> GaussianTwist:
    """Return the uncertain twist of a ``geometry_msgs/TwistWithCovariance``: the six numbers as they stand.

    It has ``twist.linear``, ``twist.angular`` and ``covariance``: attributes or nested
    dictionaries. In ``nav_msgs/Odometry`` they are in the axes of the child frame, which is a body
    twist.

    Raises:
        SceneError: a field that is missing, or 36 numbers that are no covariance.
    """
    at = "TwistWithCovariance"
    inner = _field(message, "twist", at)
    parts = [_numbers(_field(inner, name, at), "xyz", at) for name in ("linear", "angular")]
    return GaussianTwist(np.concatenate(parts), _covariance(message, at))


def to_ros_twist(twist: GaussianTwist) -> dict[str, Any]:
    """Return an uncertain twist as the fields of a ``geometry_msgs/TwistWithCovariance``."""
    return {
        "twist": {
            "linear": _named(twist.mean[:3], "xyz"),
            "angular": _named(twist.mean[3:], "xyz"),
        },
        "covariance": twist.covariance.ravel().tolist(),
    }


def from_tf2(message: object) -> Pose:
    """Return the pose of a tf2 ``geometry_msgs/Transform``, which carries no covariance.

    It is header.frame_id_from_child_frame_id, with ``translation`` and ``rotation``: attributes or
    dictionaries.

    Raises:
        SceneError: a field that is missing, or a zero quaternion.
    """
    at = "Transform"
    translation = _numbers(_field(message, "translation", at), "xyz", at)
    return Pose(translation, _numbers(_field(message, "rotation", at), "xyzw", at))


def to_tf2(pose: Pose) -> dict[str, Any]:
    """Return a pose as the fields of a tf2 ``geometry_msgs/Transform``."""
    return {
        "translation": _named(pose.translation, "xyz"),
        "rotation": _named(pose.quat_xyzw, "xyzw"),
    }


def from_gtsam(pose: object, covariance: ArrayLike) -> GaussianPose:
    """Return an uncertain pose of gtsam.

    Args:
        pose: a ``gtsam.Pose3``, or its (4, 4) matrix.
        covariance: (6, 6) of the error on the right, [theta, rho]: a marginal, or that of a noise
            model.

    Raises:
        SceneError: a matrix that is no rigid transform, or no covariance.
    """
    matrix = pose.matrix() if hasattr(pose, "matrix") else pose
    return GaussianPose(Pose.from_matrix(np.asarray(matrix, dtype=float)), _swapped(covariance))


def to_gtsam(pose: GaussianPose) -> tuple[Array, Array]:
    """Return matrix (4, 4) and covariance (6, 6), [theta, rho], as ``Pose3`` and its noise models take them."""
    return pose.mean.as_matrix(), swap_linear_angular(pose.covariance)


def from_manif(coefficients: ArrayLike, covariance: ArrayLike) -> GaussianPose:
    """Return an uncertain pose of manif.

    Args:
        coefficients: (7,), ``SE3d.coeffs()``: x, y, z, quaternion xyzw.
        covariance: (6, 6) of the error on the right, [rho, theta].

    Raises:
        SceneError: a zero quaternion, or a matrix that is no covariance.
    """
    return GaussianPose(Pose.from_array(coefficients), covariance)


def to_manif(pose: GaussianPose) -> tuple[Array, Array]:
    """Return coefficients (7,) and covariance (6, 6), [rho, theta], as manif has them."""
    return pose.mean.as_array(), pose.covariance


def from_pytransform3d(matrix: ArrayLike, covariance: ArrayLike) -> GaussianPose:
    """Return an uncertain pose of pytransform3d.

    Args:
        matrix: (4, 4), ``A2B``: what pytransform3d calls the transform from A to B is our b_from_a.
        covariance: (6, 6) of the *global* error, on the left, [theta, rho]; as in
            ``concat_globally_uncertain_transforms`` and ``pose_fusion``.

    Raises:
        SceneError: a matrix that is no rigid transform, or no covariance.
    """
    return GaussianPose.from_left(Pose.from_matrix(matrix), _swapped(covariance))


def to_pytransform3d(pose: GaussianPose) -> tuple[Array, Array]:
    """Return matrix (4, 4) and covariance (6, 6) of the global error, on the left, [theta, rho]."""
    return pose.mean.as_matrix(), swap_linear_angular(pose.left_covariance)


def _swapped(covariance: ArrayLike) -> Array:
    return swap_linear_angular(checked_covariance(covariance, 6))


def _both(rotation: Array) -> Array:
    """Return the matrix (6, 6) that turns both parts."""
    turn = np.zeros((6, 6))
    turn[:3, :3] = turn[3:, 3:] = rotation
    return turn


def _field(message: object, name: str, at: str) -> Any:
    """Return a field of a message, be it an attribute or a key."""
    if isinstance(message, Mapping) and name in message:
        return message[name]
    if not isinstance(message, Mapping) and hasattr(message, name):
        return getattr(message, name)
    raise SceneError(f"{at}: a {type(message).__name__} without the field '{name}'")


def _numbers(message: object, names: str, at: str) -> list[float]:
    return [float(_field(message, name, at)) for name in names]


def _named(values: Array, names: str) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def _covariance(message: object, at: str) -> Array:
    numbers = np.asarray(_field(message, "covariance", at), dtype=float)
    if numbers.size != 36:
        raise SceneError(f"{at}: covariance has 36 numbers, row by row, not {numbers.size}")
    return checked_covariance(numbers.reshape(6, 6), 6, what=f"{at}: covariance")


class NearestRotation(NamedTuple):
    """A rotation and how far it is from the matrix.

    Attributes:
        rotation: (3, 3), read-only.
        distance: Frobenius norm of the difference of the two.
    """

    rotation: NDArray[np.float64]
    distance: float


def nearest_rotation(matrix: ArrayLike, *, tolerance: float = 0.1) -> NearestRotation:
    """Return the rotation nearest to a matrix, by the Frobenius norm.

    Args:
        matrix: (3, 3).
        tolerance: the greatest distance that is accepted. A reflection is at least 2 away from
            every rotation.

    Raises:
        SceneError: another shape, numbers that are not finite, or a matrix farther away, which the
            message says.
    """
    given = plain_numbers(matrix, "a rotation matrix")
    if given.shape != (3, 3) or not np.isfinite(given).all():
        raise SceneError(
            f"a rotation matrix has shape (3, 3) and finite numbers, not shape {given.shape}:"
            f" {given}"
        )
    left, _, right = np.linalg.svd(given)
    side = np.array([1.0, 1.0, np.linalg.det(left @ right)])
    rotation = (left * side) @ right
    distance = float(np.linalg.norm(given - rotation))
    if not distance <= tolerance:
        kind = "a reflection" if np.linalg.det(given) < 0.0 else "no rotation"
        raise SceneError(
            f"the matrix is {kind}: the nearest rotation is {distance:.3g} away, beyond"
            f" {tolerance:g}"
        )
    return NearestRotation(read_only(rotation), distance)
