"""MoveIt configuration packages: the robot, groups, limits and controllers in one folder."""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
