"""Rigid transforms and their uncertainty: mathematics without names.

A :class:`Pose` is a translation in metres and a unit quaternion; a :class:`GaussianPose` is a pose with a covariance of
its error in the child's own axes, a :class:`GaussianTwist` a velocity with one, a :class:`JointGaussianPose` several
poses whose errors belong together. Six-vectors have the linear part first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._core import (
        GaussianPose as GaussianPose,
        Pose as Pose,
        Retraction as Retraction,
        adjoint as adjoint,
        compose as compose,
        compose_each as compose_each,
        exp_each as exp_each,
        inverse_left_jacobian as inverse_left_jacobian,
        inverse_right_jacobian as inverse_right_jacobian,
        left_jacobian as left_jacobian,
        log_each as log_each,
        right_jacobian as right_jacobian,
    )
    from tmkit._support.results import ConvergenceStatus as ConvergenceStatus, GateStatus as GateStatus
    from tmkit.spatial.conditioning import (
        BearingMeasurement as BearingMeasurement,
        ConditionedChain as ConditionedChain,
        MeasurementModel as MeasurementModel,
        PoseMeasurement as PoseMeasurement,
        PositionMeasurement as PositionMeasurement,
        RangeMeasurement as RangeMeasurement,
        condition as condition,
    )
    from tmkit.spatial.consistency import (
        ConfidenceEllipsoid as ConfidenceEllipsoid,
        Fusion as Fusion,
        Gate as Gate,
        Nees as Nees,
        NeesStatus as NeesStatus,
        chi_square_quantile as chi_square_quantile,
        fuse as fuse,
        gate as gate,
        mahalanobis_distance as mahalanobis_distance,
        nees as nees,
        nees_of_errors as nees_of_errors,
        orientation_ellipsoid as orientation_ellipsoid,
        pose_distance as pose_distance,
        position_covariance as position_covariance,
        position_ellipsoid as position_ellipsoid,
    )
    from tmkit.spatial.converters import (
        NearestRotation as NearestRotation,
        from_gtsam as from_gtsam,
        from_manif as from_manif,
        from_pytransform3d as from_pytransform3d,
        from_ros_pose as from_ros_pose,
        from_ros_twist as from_ros_twist,
        from_tf2 as from_tf2,
        nearest_rotation as nearest_rotation,
        to_gtsam as to_gtsam,
        to_manif as to_manif,
        to_pytransform3d as to_pytransform3d,
        to_ros_pose as to_ros_pose,
        to_ros_twist as to_ros_twist,
        to_tf2 as to_tf2,
    )
    from tmkit.spatial.covariances import (
        checked_covariance as checked_covariance,
        covariance_root as covariance_root,
        swap_linear_angular as swap_linear_angular,
    )
    from tmkit.spatial.joint_gaussian import (
        JointGaussianPose as JointGaussianPose,
        fit_gaussian as fit_gaussian,
        sample as sample,
        sample_chain as sample_chain,
        sample_jointly as sample_jointly,
        sampling_floor as sampling_floor,
    )
    from tmkit.spatial.covariances import GaussianTwist as GaussianTwist
else:
    __getattr__, __dir__ = lazy_names(__name__)
