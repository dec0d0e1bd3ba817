"""Rigid transforms and their uncertainty, without frame names.

* :class:`Pose`: translation [m] and unit quaternion.
* :class:`GaussianPose`: pose with the covariance of its error in the child's axes.
* :class:`GaussianTwist`: velocity with a covariance.
* :class:`JointGaussianPose`: several poses with correlated errors.

Six-vectors have the linear part first.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
