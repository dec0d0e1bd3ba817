"""Scene that changes: its present version, edits that replace it, and waiting for changes."""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tmkit._core import SceneGraph
from tmkit._support.closing import Closing
from tmkit.errors import ArgumentError, ListenerError


class VersionRecorder(Protocol):
    """Recorder of the versions of a live scene; see :meth:`LiveScene.record_by`."""

    def record(self, scene: SceneGraph) -> None:
        """Record a new version before it is published, or raise an error, which rejects it.

        Args:
            scene: new version.
        """

    def discard(self) -> None:
        """Undo the last :meth:`record`, since another recorder rejected the version."""


class Subscription(Closing):
    """Registration of a recorder or listener. Closing it removes the recorder or listener.

    Args:
        remove: function that removes the registration.
    """

    def __init__(self, remove: Callable[[], None]) -> None:
        self._remove = remove

    def close(self) -> None:
        """Remove the recorder or listener."""
        self._remove()


class LiveScene:
    """Present version of a world, shared by threads.

    A version is an immutable value, so reading :attr:`scene` returns it whole, without waiting.
    Edits are made one after the other. A follower waits for a version other than its own
    (:meth:`wait`) and computes the difference (:func:`tmkit.graph.diff`). Versions between may be
    skipped.

    Args:
        scene: first version. Empty by default.
    """

    def __init__(self, scene: SceneGraph | None = None) -> None:
        self._scene = SceneGraph() if scene is None else scene
        self._lock = threading.RLock()  # of writers
        self._changed = threading.Condition(self._lock)
        self._recorders: tuple[VersionRecorder, ...] = ()
        self._listeners: tuple[Callable[[SceneGraph], None], ...] = ()

    @property
    def scene(self) -> SceneGraph:
        """Present version."""
        return self._scene

    def update(self, edit: Callable[[SceneGraph], SceneGraph]) -> SceneGraph:
        """Replace the present version by the result of an edit, and return it.

        No other edit is made between.

        Args:
            edit: function of the present version, such as ``lambda scene: scene.add_frame("cup",
                "table")``.

        Raises:
            ArgumentError: if the function returns no scene, or changes the live scene itself.
            ListenerError: if listeners raise. The new version is published nevertheless.
            Exception: if a recorder raises it. The live scene is unchanged.
        """
        with self._lock:
            before = self._scene
            version = edit(before)
            if not isinstance(version, SceneGraph):
                raise ArgumentError(
                    f"expected a SceneGraph from an edit, got {type(version).__name__}"
                )
            if self._scene is not before:
                raise ArgumentError("an edit must not change the live scene itself")
            if version is not before:
                self._record(version)
                self._publish(version)
        return version

    def wait(self, version: SceneGraph, timeout: float | None = None) -> SceneGraph | None:
        """Return the present version as soon as it differs from another; None after the timeout.

        Args:
            version: version of the caller.
            timeout: longest time to wait [s]. Infinite if None.
        """
        end = None if timeout is None else clock.monotonic() + timeout
        with self._changed:
            while self._scene is version:
                remaining = None if end is None else end - clock.monotonic()
                if remaining is not None and remaining <= 0.0:
                    return None
                self._changed.wait(remaining)
            return self._scene

    def record_by(self, recorder: VersionRecorder) -> Subscription:
        """Record each new version before it is published, and return the subscription.

        The thread of the edit calls the recorder before any other version is made. If the recorder
        raises, the version is discarded, and the edit raises that error.

        Args:
            recorder: recorder of new versions. If a later recorder raises, the recorders before it
                discard the version.
        """
        with self._lock:
            self._recorders = (*self._recorders, recorder)

        return Subscription(partial(self._remove_recorder, recorder))

    def on_change(self, listener: Callable[[SceneGraph], None]) -> Subscription:
        """Call a function with each new version, and return the subscription.

        The thread of the edit calls it before any other version is made. The function must be short
        and make no version itself. It may, for example, wake an event loop. If it raises, the other
        listeners are called nevertheless, and the edit raises a ``ListenerError`` that names it.

        Args:
            listener: function of the new version.
        """
        with self._lock:
            self._listeners = (*self._listeners, listener)

        return Subscription(partial(self._remove_listener, listener))

    def _remove_recorder(self, recorder: VersionRecorder) -> None:
        with self._lock:
            self._recorders = tuple(other for other in self._recorders if other is not recorder)

    def _remove_listener(self, listener: Callable[[SceneGraph], None]) -> None:
        with self._lock:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

    def _record(self, scene: SceneGraph) -> None:
        """Record a new version with all recorders. The caller holds the lock."""
        recorded: list[VersionRecorder] = []
        try:
            for recorder in self._recorders:
                recorder.record(scene)
                recorded.append(recorder)
        except BaseException:
            for recorder in reversed(recorded):
                recorder.discard()
            raise

    def _publish(self, scene: SceneGraph) -> None:
        """Make a recorded version the present one, and call all listeners; the lock is held."""
        self._scene = scene
        self._changed.notify_all()
        names: list[str] = []
        errors: list[BaseException] = []
        for listener in self._listeners:
            try:
                listener(scene)
            except BaseException as error:  # also Ctrl-C: a later listener may belong to a server
                names.append(getattr(listener, "__qualname__", repr(listener)))
                errors.append(error)
        for raised in errors:
            if not isinstance(raised, Exception):
                raise raised
        if errors:
            reasons = "; ".join(
                f"listener {name} raised {type(raised).__name__}: {raised}"
                for name, raised in zip(names, errors, strict=True)
            )
            message = f"the new version was made, and {reasons}"
            raise ListenerError(message, listeners=tuple(names)) from errors[0]
