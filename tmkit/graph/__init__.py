"""The scene graph: frames, joints, bodies and shapes as an immutable value.

Holding a :class:`SceneGraph` means holding one consistent version of the world. An edit returns a
new version that shares nearly everything with the old one; the old version stays valid and can be
read from every thread. ``scene.at(q)`` is a :class:`Kinematics`: the scene at a configuration, with
all poses computed. :class:`SceneArrays` is the same world in preallocated arrays, edited in place:
for control loops.

The compiled core implements these values.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
