"""Rigid transforms and their uncertainty: mathematics without names.

A :class:`Pose` is a translation in metres and a unit quaternion. A :class:`GaussianPose` is a pose
with a covariance of its error in the child's own axes, a :class:`GaussianTwist` a velocity with
one, a :class:`JointGaussianPose` several poses whose errors belong together. Six-vectors have the
linear part first.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
