"""Sources of scenes that a viewer can follow: a running simulation, a robot, a file that changes."""

from __future__ import annotations

import threading
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import SceneGraph

SceneState = tuple[SceneGraph, NDArray[np.float64]]
"""A version of a scene and its configuration (n_joints,), radians and metres."""


@runtime_checkable
class SceneSource(Protocol):
    """Anything that has a scene which changes; see :meth:`tmkit.visualization.Viewer.follow`."""

    def current(self) -> SceneState | None:
        """Return the scene as it is now with its configuration; None once there will be no more."""
        ...


class LatestScene:
    """A source for programs that push: the newest scene that was put is the current one.

    :meth:`put` fits the argument ``on_state`` of :func:`tmkit.simulate`. Any thread may put.

    Args:
        scene: the scene at the start.
        q: (n_joints,) its configuration.
    """

    def __init__(self, scene: SceneGraph, q: NDArray[np.float64]) -> None:
        self._lock = threading.Lock()
        self._state: SceneState | None = (scene, q)

    def put(self, scene: SceneGraph, q: NDArray[np.float64]) -> None:
        """Make a scene the current one.

        Args:
            scene: the scene.
            q: (n_joints,) its configuration.
        """
        with self._lock:
            self._state = (scene, q)

    def end(self) -> None:
        """End the source."""
        with self._lock:
            self._state = None

    def current(self) -> SceneState | None:
        """Return the scene that was put last; None after the end."""
        with self._lock:
            return self._state
