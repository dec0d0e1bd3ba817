"""Motion: collision rules, inverse kinematics, path search, straight lines, timing, regions.

All functions work on one version of a scene and do not depend on tasks. The compiled core searches
and checks, and releases the interpreter. :class:`CollisionRules` defines which contacts are allowed
while an arm picks and places, :class:`MotionPlanner` is the protocol of path planners, ``regions``
has the level surfaces of a scene. Arms are described in :mod:`tmkit.robots`.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
