"""The names that `tmkit.spatial` exports."""

from tmkit._core import (
    GaussianPose as GaussianPose,
    Pose as Pose,
    Retraction as Retraction,
    adjoint as adjoint,
    compose as compose,
)
from tmkit.spatial.conditioning import (
    BearingMeasurement as BearingMeasurement,
    PoseMeasurement as PoseMeasurement,
    PositionMeasurement as PositionMeasurement,
    RangeMeasurement as RangeMeasurement,
    condition as condition,
)
from tmkit.spatial.consistency import (
    chi_square_quantile as chi_square_quantile,
    fuse as fuse,
    gate as gate,
    nees as nees,
    nees_of_errors as nees_of_errors,
    position_covariance as position_covariance,
    position_ellipsoid as position_ellipsoid,
)
from tmkit.spatial.converters import to_ros_pose as to_ros_pose
from tmkit.spatial.covariances import (
    GaussianTwist as GaussianTwist,
    covariance_root as covariance_root,
)
from tmkit.spatial.joint_gaussian import (
    JointGaussianPose as JointGaussianPose,
    fit_gaussian as fit_gaussian,
    sample as sample,
)
