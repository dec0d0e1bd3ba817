"""Motion: collision rules, inverse kinematics, path search, straight lines, timing, regions.

All functions work on one version of a scene and do not depend on tasks. The C++ core searches and
checks paths, and releases the global interpreter lock. :class:`CollisionRules` defines the allowed
contacts of an arm that picks and places. :class:`MotionPlanner` is the protocol of path planners.
``regions`` contains the level surfaces of a scene. :mod:`tmkit.robots` describes arms.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
