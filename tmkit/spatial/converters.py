"""Conversion of uncertain poses and twists from and to other libraries; nearest rotation.

A tmkit pose is ``T = mean @ exp(xi)``, ``xi = [rho, theta]``: the error is on the right, in the
child's axes, linear part first. Other libraries differ:

* ROS ``geometry_msgs/PoseWithCovariance``: separate translation and rotation errors in the
  parent's *fixed* axes, about the child's origin; x, y, z, rotX, rotY, rotZ; 36 numbers by row.
* ROS ``geometry_msgs/TwistWithCovariance``: six numbers [v, omega]; 36 numbers by row.
* gtsam ``Pose3``: error on the right, but [theta, rho].
* manif ``SE3d``: as in tmkit; coefficients x, y, z, quaternion xyzw.
* pytransform3d ``uncertainty``: error on the left (about the parent's origin), [theta, rho].
* tf2 ``Transform``: no covariance.

In ROS, p = p_mean + dp and R = Exp(dphi) R_mean, with dp and dphi in the parent's axes. To first
order dp = R rho and dphi = R theta: R rotates both parts and translates neither. This is *not* the
left tangent. The map is linear and has an exact inverse. A message is returned as a dictionary with
its fields, as `rosbridge` accepts it.

Rotation matrices from files and other programs are accurate to a few digits only. The library
rejects them and never corrects one implicitly. :func:`nearest_rotation` corrects one explicitly,
within a tolerance. Source: the orthogonal Procrustes problem; Horn, Hilden, Negahdaripour,
"Closed-form solution of absolute orientation using orthonormal matrices", JOSA A, 1988.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import GaussianPose, Pose
from tmkit.errors import SceneError
from tmkit.spatial.covariances import (
    GaussianTwist,
    check_covariance,
    swap_linear_angular,
    symmetric_part,
)
from tmkit.spatial.plain import plain_numbers, read_only

Array = NDArray[np.float64]


def from_ros_pose(message: object) -> GaussianPose:
    """Return the uncertain pose of a ``geometry_msgs/PoseWithCovariance``.

    The message has ``pose.position``, ``pose.orientation`` and ``covariance``, as the ``pose`` of
    a stamped message. Fields are attributes or nested dictionaries.

    Raises:
        SceneError: if a field is missing, the quaternion is zero, or the 36 numbers are not a
            covariance.
    """
    message_type = "PoseWithCovariance"
    inner = _get_field(message, "pose", message_type)
    position = _read_numbers(_get_field(inner, "position", message_type), "xyz", message_type)
    quaternion = _read_numbers(_get_field(inner, "orientation", message_type), "xyzw", message_type)
    mean = Pose(position, quaternion)
    rotation = _block_rotation(mean.rotation)
    covariance = _read_covariance(message, message_type)
    return GaussianPose(mean, symmetric_part(rotation.T @ covariance @ rotation))


def to_ros_pose(pose: GaussianPose) -> dict[str, Any]:
    """Return an uncertain pose as the fields of a ``geometry_msgs/PoseWithCovariance``."""
    rotation = _block_rotation(pose.mean.rotation)
    return {
        "pose": {
            "position": _name_values(pose.mean.translation, "xyz"),
            "orientation": _name_values(pose.mean.quat_xyzw, "xyzw"),
        },
        "covariance": symmetric_part(rotation @ pose.covariance @ rotation.T).ravel().tolist(),
    }


def from_ros_twist(message: object) -> GaussianTwist:
    """Return the uncertain twist of a ``geometry_msgs/TwistWithCovariance``.

    The numbers are unchanged. The message has ``twist.linear``, ``twist.angular`` and
    ``covariance``, as attributes or nested dictionaries. In ``nav_msgs/Odometry`` they are in the
    axes of the child frame: a body twist.

    Raises:
        SceneError: if a field is missing, or the 36 numbers are not a covariance.
    """
    message_type = "TwistWithCovariance"
    inner = _get_field(message, "twist", message_type)
    linear = _read_numbers(_get_field(inner, "linear", message_type), "xyz", message_type)
    angular = _read_numbers(_get_field(inner, "angular", message_type), "xyz", message_type)
    return GaussianTwist([*linear, *angular], _read_covariance(message, message_type))


def to_ros_twist(twist: GaussianTwist) -> dict[str, Any]:
    """Return an uncertain twist as the fields of a ``geometry_msgs/TwistWithCovariance``."""
    return {
        "twist": {
            "linear": _name_values(twist.mean[:3], "xyz"),
            "angular": _name_values(twist.mean[3:], "xyz"),
        },
        "covariance": twist.covariance.ravel().tolist(),
    }


def from_tf2(message: object) -> Pose:
    """Return the pose of a tf2 ``geometry_msgs/Transform``, which has no covariance.

    The pose is header.frame_id_from_child_frame_id. The message has ``translation`` and
    ``rotation``, as attributes or dictionaries.

    Raises:
        SceneError: if a field is missing, or the quaternion is zero.
    """
    message_type = "Transform"
    translation = _read_numbers(
        _get_field(message, "translation", message_type), "xyz", message_type
    )
    quaternion = _read_numbers(_get_field(message, "rotation", message_type), "xyzw", message_type)
    return Pose(translation, quaternion)


def to_tf2(pose: Pose) -> dict[str, Any]:
    """Return a pose as the fields of a tf2 ``geometry_msgs/Transform``."""
    return {
        "translation": _name_values(pose.translation, "xyz"),
        "rotation": _name_values(pose.quat_xyzw, "xyzw"),
    }


def from_gtsam(pose: object, covariance: ArrayLike) -> GaussianPose:
    """Return an uncertain pose of gtsam.

    Args:
        pose: a ``gtsam.Pose3``, or its (4, 4) matrix.
        covariance: (6, 6) of the error on the right, [theta, rho], as of a marginal or a noise
            model.

    Raises:
        SceneError: if the matrix is not a rigid transform or the covariance is invalid.
    """
    matrix = pose.matrix() if hasattr(pose, "matrix") else pose
    return GaussianPose(Pose.from_matrix(np.asarray(matrix, dtype=float)), _swap_parts(covariance))


def to_gtsam(pose: GaussianPose) -> tuple[Array, Array]:
    """Return the matrix (4, 4) of ``Pose3`` and the covariance (6, 6), [theta, rho]."""
    return pose.mean.as_matrix(), swap_linear_angular(pose.covariance)


def from_manif(coefficients: ArrayLike, covariance: ArrayLike) -> GaussianPose:
    """Return an uncertain pose of manif.

    Args:
        coefficients: (7,) ``SE3d.coeffs()``: x, y, z, quaternion xyzw.
        covariance: (6, 6) of the error on the right, [rho, theta].

    Raises:
        SceneError: if the quaternion is zero or the covariance is invalid.
    """
    return GaussianPose(Pose.from_array(coefficients), covariance)


def to_manif(pose: GaussianPose) -> tuple[Array, Array]:
    """Return the coefficients (7,) and covariance (6, 6) of manif, [rho, theta]."""
    return pose.mean.as_array(), pose.covariance


def from_pytransform3d(matrix: ArrayLike, covariance: ArrayLike) -> GaussianPose:
    """Return an uncertain pose of pytransform3d.

    Args:
        matrix: (4, 4) ``A2B``. The transform from A to B of pytransform3d is b_from_a of tmkit.
        covariance: (6, 6) of the *global* error, on the left, [theta, rho], as in
            ``concat_globally_uncertain_transforms`` and ``pose_fusion``.

    Raises:
        SceneError: if the matrix is not a rigid transform or the covariance is invalid.
    """
    return GaussianPose.from_left(Pose.from_matrix(matrix), _swap_parts(covariance))


def to_pytransform3d(pose: GaussianPose) -> tuple[Array, Array]:
    """Return matrix (4, 4) and covariance (6, 6) of the global error, on the left, [theta, rho]."""
    return pose.mean.as_matrix(), swap_linear_angular(pose.left_covariance)


def _swap_parts(covariance: ArrayLike) -> Array:
    """Check a covariance (6, 6) and swap its linear and angular parts."""
    return swap_linear_angular(check_covariance(covariance, 6))


def _block_rotation(rotation: Array) -> Array:
    """Return the matrix (6, 6) that rotates the linear and the angular part."""
    block = np.zeros((6, 6))
    block[:3, :3] = block[3:, 3:] = rotation
    return block


def _get_field(message: object, name: str, message_type: str) -> Any:
    """Return a field of a message, stored as an attribute or a key."""
    if isinstance(message, Mapping) and name in message:
        return message[name]
    if not isinstance(message, Mapping) and hasattr(message, name):
        return getattr(message, name)
    raise SceneError(f"{message_type}: a {type(message).__name__} without the field '{name}'")


def _read_numbers(message: object, names: str, message_type: str) -> list[float]:
    return [float(_get_field(message, name, message_type)) for name in names]


def _name_values(values: Array, names: str) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def _read_covariance(message: object, message_type: str) -> Array:
    numbers = np.asarray(_get_field(message, "covariance", message_type), dtype=float)
    if numbers.size != 36:
        raise SceneError(
            f"{message_type}: covariance must have 36 numbers, row by row, not {numbers.size}"
        )
    return check_covariance(numbers.reshape(6, 6), 6, what=f"{message_type}: covariance")


class NearestRotation(NamedTuple):
    """Rotation nearest to a matrix, and their distance.

    Attributes:
        rotation: (3, 3) rotation matrix, read-only.
        distance: Frobenius norm of the difference between the rotation and the matrix.
    """

    rotation: NDArray[np.float64]
    distance: float


def nearest_rotation(matrix: ArrayLike, *, tolerance: float = 0.1) -> NearestRotation:
    """Return the rotation nearest to a matrix, by the Frobenius norm.

    Args:
        matrix: (3, 3) matrix.
        tolerance: largest accepted distance. A reflection is at least 2 away from every rotation.

    Raises:
        SceneError: if the shape differs, a number is not finite, or the distance is above the
            tolerance.
    """
    values = plain_numbers(matrix, "a rotation matrix", "1")
    if values.shape != (3, 3) or not np.isfinite(values).all():
        raise SceneError(
            f"a rotation matrix has shape (3, 3) and finite numbers, not shape {values.shape}:"
            f" {values}"
        )
    left, _, right = np.linalg.svd(values)
    signs = np.array([1.0, 1.0, np.linalg.det(left @ right)])
    rotation = (left * signs) @ right
    distance = float(np.linalg.norm(values - rotation))
    if not distance <= tolerance:
        kind = "a reflection" if np.linalg.det(values) < 0.0 else "no rotation"
        raise SceneError(
            f"the matrix is {kind}: the nearest rotation is {distance:.3g} away, beyond"
            f" {tolerance:g}"
        )
    return NearestRotation(read_only(rotation), distance)
