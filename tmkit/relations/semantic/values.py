"""Arithmetic of relations on vectors (3,), six-vectors (6,), poses, and batches of them.

A batch is an array with one more dimension: vectors (N, 3), six-vectors (N, 6), or poses (N, 7) as
x, y, z and quaternion x, y, z, w. An orientation is a pose without translation. A single value
applies to all rows of a batch.

The *Jacobians* of an operation map errors of its operands to the error of its result; None is the
identity. Errors of poses and orientations are in the axes of the frame itself. See
``docs/concepts/relations.md``.

Source: the adjoint of a rigid transform, Murray, Li, Sastry, "A mathematical introduction to
    robotic manipulation".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmkit._core import _moved_six, _turned_six, compose_each  # type: ignore[attr-defined]
from tmkit.relations.representation import Numbers, Vector, rotation_class, skew
from tmkit.spatial import Pose, adjoint
from tmkit.spatial.plain import read_only

Value = Any
Jacobians = tuple[Vector | None, Vector | None]
_INVERSION_SIGNS = np.array([-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 1.0])
"""Factors of a row (7,) for the opposite translation and the inverse rotation."""

_ROTATION_MASK = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
"""Mask of the quaternion in a row (7,)."""

_IDENTITY_ROW = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
"""Identity pose as a row (7,)."""


def rows(value: Value) -> Vector:
    """Return poses as rows (N, 7); a single pose is one row."""
    array: Vector = value.as_array()[None] if type(value) is Pose else value
    return array


def product(a: Value, b: Value) -> Value:
    """Return the products ``a @ b`` of poses."""
    return a @ b if type(a) is type(b) is Pose else compose_each(rows(a), rows(b))


def left_product(a: Value, b: Value) -> Value:
    """Return the products ``b @ a`` of poses."""
    return b @ a if type(a) is type(b) is Pose else compose_each(rows(b), rows(a))


def inverse(a: Value) -> Value:
    """Return the inverses of poses."""
    if type(a) is Pose:
        return a.inverse()
    return compose_each(
        a * (_INVERSION_SIGNS * _ROTATION_MASK),
        a * (_INVERSION_SIGNS * (1.0 - _ROTATION_MASK)) + _IDENTITY_ROW,
    )


def inverse_in_axes(a: Value) -> Value:
    """Return poses with opposite translation and inverse rotation, both in the same axes."""
    return (
        Pose.from_array(_INVERSION_SIGNS * a.as_array())
        if type(a) is Pose
        else _INVERSION_SIGNS * a
    )


def translate(a: Value, step: Vector) -> Value:
    """Return poses translated by a step (3,) or steps (N, 3) in the axes of expression."""
    if type(a) is Pose and step.ndim == 1:
        return Pose(step) @ a
    poses = np.array(np.broadcast_to(rows(a), (max(len(rows(a)), len(np.atleast_2d(step))), 7)))
    poses[:, :3] += step
    return poses


def rotate_pose_axes(a: Value, turn: Value) -> Value:
    """Return poses expressed in other axes; ``turn`` is new_from_old."""
    return product(product(turn, a), inverse(turn))


def rotate_axes(vectors: Vector, turn: Value) -> Vector:
    """Return vectors or six-vectors expressed in other axes; ``turn`` is new_from_old."""
    if type(turn) is Pose:
        if vectors.ndim == 1:
            return turn.rotate(vectors) if len(vectors) == 3 else _turned_six(vectors, turn)
        return turn.rotate(vectors.reshape(-1, 3)).reshape(vectors.shape)
    halves = vectors.reshape(-1, vectors.shape[-1] // 3, 3, 1)
    return (pose_numbers(turn)[1][:, None] @ halves).reshape(len(turn), -1)


def cross(a: Vector, b: Vector) -> Vector:
    """Return cross products, ten times faster than numpy for one vector and twice for many."""
    if a.ndim == b.ndim == 1:
        a0, a1, a2 = a.tolist()
        b0, b1, b2 = b.tolist()
        return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])
    (a0, a1, a2), (b0, b1, b2) = a.T, b.T
    columns = np.empty((3, max(a.size, b.size) // 3))
    columns[0] = a1 * b2 - a2 * b1
    columns[1] = a2 * b0 - a0 * b2
    columns[2] = a0 * b1 - a1 * b0
    return columns.T


def shift_twist(twist: Vector, step: Vector) -> Vector:
    """Return twists at points ``step`` away: ``v + w x step``."""
    if twist.ndim == step.ndim == 1:
        shifted: Vector = _moved_six(twist, step, False)
        return shifted
    return _add_to_half(twist, cross(twist[..., 3:], step), 0)


def shift_wrench(wrench: Vector, step: Vector) -> Vector:
    """Return wrenches about points ``step`` away: ``t - step x f``."""
    if wrench.ndim == step.ndim == 1:
        shifted: Vector = _moved_six(wrench, step, True)
        return shifted
    return _add_to_half(wrench, cross(wrench[..., :3], step), 3)


def _add_to_half(six: Vector, part: Vector, start: int) -> Vector:
    """Return six-vectors with vectors added to one half, column by column for speed."""
    total: Vector = six.copy() if six.ndim == part.ndim else np.repeat(six[None], len(part), axis=0)
    for i in range(3):
        total[:, start + i] += part[:, i]
    return total


def pose_numbers(value: Value) -> Numbers:
    """Return translations and rotation matrices of poses."""
    if type(value) is Pose:
        return value.translation, value.rotation
    return read_only(value[:, :3].copy()), read_only(
        rotation_class().from_quat(value[:, 3:]).as_matrix()
    )


def pose_value(p: Vector, matrix: Vector) -> Value:
    """Return a pose, or a batch, from translations and valid rotation matrices."""
    if matrix.ndim == 2 and np.abs(matrix @ matrix.T - np.eye(3)).max() < 1e-9:
        return Pose.from_rotation_matrix(p, matrix)
    quat = rotation_class().from_matrix(np.array(matrix)).as_quat()
    return Pose(p, quat) if matrix.ndim == 2 else read_only(np.hstack([p, quat]))


def propagate_covariance(dimension: int, *terms: tuple[Vector | None, Vector | None]) -> Vector:
    """Return the covariance (d, d) of a sum of independent errors.

    Args:
        dimension: dimension d of the result.
        terms: Jacobian (None: identity) and covariance (None: exact) of each error.
    """
    total = np.zeros((dimension, dimension))
    for jacobian, covariance in terms:
        if covariance is not None and jacobian is not None:
            jacobian = jacobian[-dimension:, -len(covariance) :]
            total += jacobian @ covariance @ jacobian.T
        elif covariance is not None:
            total += covariance
    return read_only(0.5 * (total + total.T))


def sum_jacobians(_a: Value, _b: Value = None) -> Jacobians:
    """Return the Jacobians of a sum."""
    return None, None


def left_product_jacobians(a: Pose, _b: Pose) -> Jacobians:
    """Return the Jacobians of ``b @ a``."""
    return None, adjoint(a.inverse())


def inverse_jacobians(a: Pose, _: Value = None) -> Jacobians:
    """Return the Jacobian of the inverse, up to its sign."""
    return adjoint(a), None


def moved_frame_jacobians(a: Pose, step: Vector) -> Jacobians:
    """Return the Jacobians of a change of a frame's point by a step constant in its body."""
    frame_from_reference = a.rotation.T
    shift = Pose(-(frame_from_reference @ step))
    return adjoint(shift), _stack_zeros(frame_from_reference)


def moved_reference_jacobians(a: Pose, _step: Vector) -> Jacobians:
    """Return the Jacobians of a change of the reference point."""
    return None, _stack_zeros(a.rotation.T)


def rotated_frame_jacobians(_a: Pose, turn: Pose) -> Jacobians:
    """Return the Jacobians of ``a @ turn``."""
    return adjoint(turn.inverse()), np.eye(6)[:, 3:]


def rotated_reference_jacobians(a: Pose, _turn: Pose) -> Jacobians:
    """Return the Jacobians of ``turn @ a``."""
    return None, adjoint(a.inverse())[:, 3:]


def rotated_axes_jacobians(vectors: Vector, turn: Pose) -> Jacobians:
    """Return the Jacobians of vectors expressed in other axes."""
    matrix = turn.rotation
    parts = [-matrix @ skew(part) for part in vectors.reshape(-1, 3)]
    return np.kron(np.eye(len(parts)), matrix).astype(float), np.vstack(parts)


def shifted_twist_jacobians(twist: Vector, step: Vector) -> Jacobians:
    """Return the Jacobians of a twist at another point."""
    jacobian = np.eye(6)
    jacobian[:3, 3:] = -skew(step)
    return jacobian, _stack_zeros(skew(twist[3:]))


def shifted_wrench_jacobians(wrench: Vector, step: Vector) -> Jacobians:
    """Return the Jacobians of a wrench about another point."""
    jacobian = np.eye(6)
    jacobian[3:, :3] = -skew(step)
    return jacobian, np.vstack([np.zeros((3, 3)), skew(wrench[:3])])


def _stack_zeros(matrix: Vector) -> Vector:
    return np.vstack([matrix, np.zeros((3, 3))])
