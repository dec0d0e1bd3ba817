"""A scene that changes: its present version, edits that replace it, and waiting for the next one."""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Callable
from typing import Protocol

from tmkit._core import SceneGraph
from tmkit.errors import ArgumentError, ListenerError


class VersionRecorder(Protocol):
    """Records the versions of a live scene; see :meth:`LiveScene.record_by`."""

    def record(self, scene: SceneGraph) -> None:
        """Record a version that is to be made, or raise an error, which rejects it.

        Args:
            scene: the version.
        """

    def discard(self) -> None:
        """Undo the last :meth:`record`: another recorder has rejected the version."""


class LiveScene:
    """The present version of a world, shared by threads.

    A version is an immutable value: reading :attr:`scene` returns it whole, without waiting. Edits
    are made one after the other. A follower waits for a version other than its own (:meth:`wait`)
    and computes the difference (:func:`tmkit.graph.diff`); versions between may be skipped.

    Args:
        scene: the version to begin with; an empty one if omitted.
    """

    def __init__(self, scene: SceneGraph | None = None) -> None:
        self._scene = SceneGraph() if scene is None else scene
        self._lock = threading.RLock()  # of writers
        self._changed = threading.Condition(self._lock)
        self._recorders: tuple[VersionRecorder, ...] = ()
        self._listeners: tuple[Callable[[SceneGraph], None], ...] = ()

    @property
    def scene(self) -> SceneGraph:
        """The version of now."""
        return self._scene

    def update(self, edit: Callable[[SceneGraph], SceneGraph]) -> SceneGraph:
        """Put the result of an edit in the place of the present version, with no other edit between, and return it.

        Args:
            edit: a function of the present version, such as ``lambda scene: scene.add_frame("cup",
                "table")``.

        Raises:
            ArgumentError: the function returns no scene, or changed the world itself.
            ListenerError: listeners raised; the version stands all the same.
            Exception: if a recorder raised it; the world is as it was.
        """
        with self._lock:
            before = self._scene
            made = edit(before)
            if not isinstance(made, SceneGraph):
                raise ArgumentError(f"an edit returns a SceneGraph, not {type(made).__name__}")
            if self._scene is not before:
                raise ArgumentError(
                    "an edit returns a scene and leaves the live scene itself alone"
                )
            if made is not before:
                self._record(made)
                self._put(made)
        return made

    def wait(self, seen: SceneGraph, timeout: float | None = None) -> SceneGraph | None:
        """Return the present version as soon as it is another than the one seen; None if none comes in time.

        Args:
            seen: the version that the caller has.
            timeout: seconds to wait at most; for ever if None.
        """
        end = None if timeout is None else clock.monotonic() + timeout
        with self._changed:
            while self._scene is seen:
                left = None if end is None else end - clock.monotonic()
                if left is not None and left <= 0.0:
                    return None
                self._changed.wait(left)
            return self._scene

    def record_by(self, recorder: VersionRecorder) -> Callable[[], None]:
        """Record each new version before it replaces the present one, and return a function that ends this.

        The thread that makes an edit calls the recorder before any other version is made. If the
        recorder raises, the version is discarded, and the edit raises that error.

        Args:
            recorder: of new versions; those that recorded a version discard it if a later one
                raises.
        """
        with self._lock:
            self._recorders = (*self._recorders, recorder)

        def remove() -> None:
            with self._lock:
                self._recorders = tuple(known for known in self._recorders if known is not recorder)

        return remove

    def on_change(self, listener: Callable[[SceneGraph], None]) -> Callable[[], None]:
        """Call a function with each new version, and return a function that ends this.

        It is called by the thread that made the version, before any other is made: so it is short
        and makes no version itself, such as one that wakes an event loop. If it raises, the other
        listeners are called all the same, and the edit raises a ``ListenerError`` that names it.

        Args:
            listener: takes the new version.
        """
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def remove() -> None:
            with self._lock:
                self._listeners = tuple(known for known in self._listeners if known is not listener)

        return remove

    def _record(self, scene: SceneGraph) -> None:
        """Have all recorders record a scene that is to become the present version. The lock is held."""
        recorded: list[VersionRecorder] = []
        try:
            for recorder in self._recorders:
                recorder.record(scene)
                recorded.append(recorder)
        except BaseException:
            for recorder in reversed(recorded):
                recorder.discard()
            raise

    def _put(self, scene: SceneGraph) -> None:
        """Make a recorded scene the present version and call all listeners. The lock is held."""
        self._scene = scene
        self._changed.notify_all()
        failed: list[tuple[str, BaseException]] = []
        for listener in self._listeners:
            try:
                listener(scene)
            except BaseException as error:  # of Ctrl-C, too: a listener after it may be a server's
                failed.append((getattr(listener, "__qualname__", repr(listener)), error))
        for _, raised in failed:
            if not isinstance(raised, Exception):
                raise raised
        if failed:
            reasons = "; ".join(
                f"listener {name} raised {type(raised).__name__}: {raised}"
                for name, raised in failed
            )
            message = f"the new version was made, and {reasons}"
            raise ListenerError(message, listeners=tuple(name for name, _ in failed)) from failed[
                0
            ][1]
