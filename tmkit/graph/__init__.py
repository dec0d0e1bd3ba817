"""Scene graph: frames, joints, bodies and shapes as an immutable value.

A :class:`SceneGraph` is one consistent version of the world. An edit returns a new version that
shares most of its data with the old one. The old version stays valid and can be read from every
thread. ``scene.at(q)`` returns a :class:`Kinematics`: the scene at a configuration, with all poses
computed. :class:`SceneArrays` stores the same world in preallocated arrays, edited in place, for
control loops.

The compiled core implements these values.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
