"""Rigid transforms and their uncertainty: mathematics without names.

A :class:`Pose` is a translation in metres and a unit quaternion; a :class:`GaussianPose` is a pose with a covariance of
its error in the child's own axes, a :class:`GaussianTwist` a velocity with one, a :class:`JointGaussianPose` several
poses whose errors belong together. What they relate to what is the business of the rooms above. Six-vectors have the
linear part first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._core import (
    GaussianPose,
    Pose,
    adjoint,
    compose,
    compose_each,
    exp_each,
    inverse_left_jacobian,
    inverse_right_jacobian,
    left_jacobian,
    log_each,
    right_jacobian,
)
from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ConvergenceStatus, GateStatus
    from tmkit.spatial.conditioning import ConditionedChain, condition
    from tmkit.spatial.consistency import (
        ConfidenceEllipsoid,
        Gate,
        Nees,
        NeesStatus,
        chi_square_quantile,
        gate,
        mahalanobis_distance,
        nees,
        nees_of_errors,
        orientation_ellipsoid,
        pose_distance,
        position_covariance,
        position_ellipsoid,
    )
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
        to_ros_pose,
        to_ros_twist,
        to_tf2,
    )
    from tmkit.spatial.covariances import checked_covariance, covariance_root, swap_linear_angular
    from tmkit.spatial.fusion import Fusion, fuse
    from tmkit.spatial.joint_gaussian import JointGaussianPose
    from tmkit.spatial.measurement import (
        BearingMeasurement,
        MeasurementModel,
        PoseMeasurement,
        PositionMeasurement,
        RangeMeasurement,
    )
    from tmkit.spatial.sampling import fit_gaussian, sample, sample_chain, sample_jointly, sampling_floor
    from tmkit.spatial.twists import GaussianTwist
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BearingMeasurement",
    "ConditionedChain",
    "ConfidenceEllipsoid",
    "ConvergenceStatus",
    "Fusion",
    "Gate",
    "GateStatus",
    "GaussianPose",
    "GaussianTwist",
    "JointGaussianPose",
    "MeasurementModel",
    "Nees",
    "NeesStatus",
    "Pose",
    "PoseMeasurement",
    "PositionMeasurement",
    "RangeMeasurement",
    "adjoint",
    "checked_covariance",
    "chi_square_quantile",
    "compose",
    "compose_each",
    "condition",
    "covariance_root",
    "exp_each",
    "fit_gaussian",
    "from_gtsam",
    "from_manif",
    "from_pytransform3d",
    "from_ros_pose",
    "from_ros_twist",
    "from_tf2",
    "fuse",
    "gate",
    "inverse_left_jacobian",
    "inverse_right_jacobian",
    "left_jacobian",
    "log_each",
    "mahalanobis_distance",
    "nees",
    "nees_of_errors",
    "orientation_ellipsoid",
    "pose_distance",
    "position_covariance",
    "position_ellipsoid",
    "right_jacobian",
    "sample",
    "sample_chain",
    "sample_jointly",
    "sampling_floor",
    "swap_linear_angular",
    "to_gtsam",
    "to_manif",
    "to_pytransform3d",
    "to_ros_pose",
    "to_ros_twist",
    "to_tf2",
]
