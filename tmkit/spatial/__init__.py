"""Rigid transforms: mathematics without names.

A :class:`Pose` is a translation in metres and a unit quaternion; what it relates to what is the business of the rooms
above. Six-vectors have the linear part first.
"""

from tmkit._core import Pose

__all__ = ["Pose"]
