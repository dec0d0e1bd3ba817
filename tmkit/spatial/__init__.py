"""Rigid transforms and how sure we are of them: mathematics without names.

A :class:`Pose` is a translation in metres and a unit quaternion; a :class:`GaussianPose` is a pose with a covariance of
its error in the child's own axes. What they relate to what is the business of the rooms above. Six-vectors have the
linear part first.
"""

from tmkit._core import (
    GaussianPose,
    Pose,
    adjoint,
    compose_each,
    exp_each,
    inverse_left_jacobian,
    inverse_right_jacobian,
    left_jacobian,
    log_each,
    right_jacobian,
)

__all__ = [
    "GaussianPose",
    "Pose",
    "adjoint",
    "compose_each",
    "exp_each",
    "inverse_left_jacobian",
    "inverse_right_jacobian",
    "left_jacobian",
    "log_each",
    "right_jacobian",
]
