"""The live world: transforms that come in from outside, versions of the scene that they make, and the closed loop.

:class:`Buffer` has the interface of ROS's ``tf2_ros.Buffer``, and holds a
:class:`~tmkit.graph.SceneGraph`. Messages are shaped like those of ``geometry_msgs``; ROS's own
messages, times and durations are taken as well. ROS is not needed. :func:`execute_closed_loop`
executes a plan and looks after each step.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
