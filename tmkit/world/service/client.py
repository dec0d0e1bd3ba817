"""Clients of a served world, and replicas that follow it.

A client sends a request again until it is answered or its time is up; the server executes an edit
once, so a lost answer does no harm. One thread at a time edits by one client; queries may run
beside each other.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tmkit._support.closing import Closing
from tmkit._support.extras import importing
from tmkit.errors import ArgumentError, ServiceError, TimeLimitError, TmkitError
from tmkit.graph import FrameSpecification, SceneGraph, Shape, diff
from tmkit.spatial import GaussianPose, Pose
from tmkit.store.blobs import blob_of_shape
from tmkit.store.encoding import DifferenceWriter
from tmkit.world.live_scene import LiveScene
from tmkit.world.service import messages as m
from tmkit.world.service.edits import CollectedEdits, Mirror, WorldEdits, numbers
from tmkit.world.service.transport_registry import load_transport
from tmkit.world.service.transports import DEFAULT_ADDRESS, Transport
from tmkit.world.service.zenoh.registration import ZENOH

with importing("msgspec", "world", "a served world needs"):
    import msgspec

_answers = msgspec.msgpack.Decoder(m.Answer)
_FOLLOW = 10.0  # seconds that a request for changes waits
_ATTEMPTS = 20  # of an edit that others were faster than


class WorldChange(NamedTuple):
    """What is new of the frames that a client follows.

    Attributes:
        version: number of the version.
        is_anew: all that was known before is void: it is the first, or the server has begun anew.
        gone: names of frames that were removed or renamed, or that the filter holds for no more.
        frames: those that are new or changed.
    """

    version: int
    is_anew: bool
    gone: tuple[str, ...]
    frames: tuple[FrameSpecification, ...]


class Client(WorldEdits, Closing):
    """Reads and edits a served world.

    Args:
        transport: to the server; closed with the client.
        token: what the server knows the client by, where it wants one.
        timeout: seconds until a request that is not answered is an error.
        retry: seconds until a request that is not answered is sent again.
    """

    def __init__(
        self, transport: Transport, *, token: str = "", timeout: float = 10.0, retry: float = 1.0
    ) -> None:
        self._transport, self._token, self._timeout, self._retry = transport, token, timeout, retry
        self._session, self._numbers = os.urandom(16), itertools.count()
        self._editing = threading.RLock()
        self._sent: set[str] = set()  # digests of shapes that the server has
        self._mirror = Mirror(self._ask)

    def close(self) -> None:
        """Close the transport."""
        self._transport.close()

    def pose(
        self,
        frame: str,
        *,
        relative_to: str | None = None,
        q: npt.ArrayLike | None = None,
        stamp: float | None = None,
    ) -> Pose:
        """Return the pose of a frame.

        Args:
            frame: the frame.
            relative_to: of which frame; its root if omitted.
            q: the configuration; needed with joints on the path.
            stamp: a time, for edges that have stamped poses: the pose then, interpolated.

        Raises:
            ServiceError: an unknown frame, or whatever :meth:`~tmkit.graph.SceneGraph.pose`
                refuses.
        """
        query = m.PoseQuery(frame, relative_to, covariance=False, q=numbers(q), stamp=stamp)
        return _pose(self._ask(m.Poses([query]), m.Value).value[0][0])

    def gaussian_pose(
        self,
        frame: str,
        *,
        relative_to: str | None = None,
        q: npt.ArrayLike | None = None,
        stamp: float | None = None,
    ) -> GaussianPose:
        """Return the pose of a frame with its covariance; see :meth:`gaussian_poses`.

        Args:
            frame: the frame.
            relative_to: of which frame; its root if omitted.
            q: the configuration; needed with joints on the path.
            stamp: a time, as for :func:`tmkit.graph.gaussian_pose`.
        """
        return self.gaussian_poses([(frame, relative_to)], q=q, stamp=stamp)[0]

    def gaussian_poses(
        self,
        queries: Sequence[tuple[str, str | None]],
        *,
        q: npt.ArrayLike | None = None,
        stamp: float | None = None,
    ) -> list[GaussianPose]:
        """Return poses of frames relative to others, with covariance, all in one version.

        Args:
            queries: frames, each with the one that it is relative to, None for its root.
            q: the configuration; needed with joints on a path.
            stamp: a time, as for :func:`tmkit.graph.gaussian_pose`.
        """
        asked = [
            m.PoseQuery(frame, relative_to, q=numbers(q), stamp=stamp)
            for frame, relative_to in queries
        ]
        found = self._ask(m.Poses(asked), m.Value).value
        return [GaussianPose(_pose(mean), m.matrix(covariance)) for mean, covariance in found]

    def look(self, what: str, frame: str = "") -> Any:
        """Return a fact about the tree or a frame.

        Args:
            what: ``exists``, ``frames``, ``roots``, ``joints``, ``parent``, ``children``,
                ``ancestors``, ``root``, ``subtree``, ``body``, ``classes``, ``class`` (the frames
                of a class), ``groups`` or ``attributes``.
            frame: the frame, or the class, that it is about.
        """
        return self._ask(m.Look(what, frame), m.Value).value

    def specification(self, frame: str) -> FrameSpecification:
        """Return all that the world says of a frame."""
        return self._mirror.frames(self._ask(m.Frames([frame]), m.View).record)[0]

    def server_status(self) -> m.ServiceStatus:
        """Return what the server says of itself: version, fingerprint, counts."""
        found: m.ServiceStatus = self._ask(m.GetStatus(), m.ServiceStatus)
        return found

    def scene(self, version: int | None = None) -> SceneGraph:
        """Return a version of the world as a scene. Of that of now only what has changed since the last is sent.

        Args:
            version: its number, of those that the server still keeps; that of now if omitted.
        """
        if version is not None:
            whole = self._ask(m.Fetch(version), m.Whole)
            return self._mirror.applied(whole.record, m.EMPTY)
        with self._editing:
            return self._mirror.refreshed()

    def _operate(self, *operations: m.Operation, shapes: Sequence[Shape] = ()) -> None:
        self._send(list(operations), shapes)

    @contextlib.contextmanager
    def edit(self, *, version: int | None = None) -> Iterator[WorldEdits]:
        """Collect edits that make one version when the block ends; an exception discards them.

        Args:
            version: refuse them unless this is the version of now (``kind`` is ``conflict``).
        """
        edits = CollectedEdits()
        yield edits
        self._send(edits.operations, edits.shapes, version=version)

    def update(
        self, edit: Callable[[SceneGraph], SceneGraph], *, is_exact: bool = False
    ) -> SceneGraph:
        """Make any edit of a scene, as :meth:`~tmkit.world.LiveScene.update` does.

        The function takes the version of now; what it changes is sent, and merged frame by frame
        with what others have changed meanwhile. Where both changed the same, it is called again
        with the new version, 20 times at most.

        Args:
            edit: a function of the present version, such as ``lambda scene: scene.set_shapes("cup",
                [shape])``.
            is_exact: call it again whatever others have changed.

        Returns:
            The scene that the function made.

        Raises:
            ServiceError: the server refuses the edit, or others were always faster.
        """
        with self._editing:
            for attempt in itertools.count(1):
                before = self._mirror.refreshed()
                made = edit(before)
                writer = DifferenceWriter(self._mirror.keys.key)
                record = writer.encode(diff(before, made), made)
                if record is None:
                    reason = (
                        "a name comes to mean another frame, and its old one goes on: make two"
                        " edits of it"
                    )
                    raise ServiceError(reason, kind="edit")
                if made is before:
                    return made
                base = self._mirror.version
                try:
                    self._send(
                        [m.Change(base, record)], writer.blobs(), version=base if is_exact else None
                    )
                except ServiceError as error:
                    if attempt == _ATTEMPTS or error.data["kind"] not in ("conflict", "gone"):
                        raise
                    continue
                return made
        raise AssertionError

    def _send(
        self, operations: list[m.Operation], shapes: Sequence[Shape], *, version: int | None = None
    ) -> int:
        """Send an edit, after the shapes that it needs, and return its version."""
        with self._editing:
            for attempt in range(2):
                for shape in shapes:
                    if shape.digest not in self._sent:
                        self._ask(m.PutBlob(blob_of_shape(shape)), m.Done)
                        self._sent.add(shape.digest)
                try:
                    done: m.Done = self._ask(
                        m.Edit(operations, self._mirror.world, version), m.Done
                    )
                    return done.version
                except ServiceError as error:
                    self._sent.clear()
                    # else the server has forgotten one
                    if attempt or not shapes or error.data["kind"] != "unknown":
                        raise
        raise AssertionError

    def follow(
        self,
        *,
        subtree: str | None = None,
        classes: Sequence[str] = (),
        near: tuple[str, float] | None = None,
        q: npt.ArrayLike | None = None,
        rate: float | None = None,
        timeout: float | None = None,
    ) -> Iterator[WorldChange]:
        """Yield changes of some frames: first all of them, then what changes, enters or leaves.

        Versions between may be skipped, the last is always told. A frame is followed while all that
        is given holds.

        Args:
            subtree: it is this frame, or below it.
            classes: it has one of these.
            near: its origin lies within a distance (m) of that of a frame: (frame, distance).
            q: the configuration at which; zero if omitted.
            rate: changes a second at most.
            timeout: end when nothing has changed for so many seconds; never if omitted.
        """
        asked = m.Filter(subtree, list(classes), near, numbers(q))
        world, since, ready = b"", -1, 0.0
        end = None if timeout is None else clock.monotonic() + timeout
        while True:
            clock.sleep(max(0.0, ready - clock.monotonic()))
            wait = _FOLLOW if end is None else min(_FOLLOW, max(0.0, end - clock.monotonic()))
            view = self._ask(m.Follow(world, since, wait, filter=asked), m.View, wait=wait)
            if view.since != since or view.version != since or view.world != world:
                world, since = view.world, view.version
                ready = clock.monotonic() + (1.0 / rate if rate else 0.0)
                end = None if timeout is None else clock.monotonic() + timeout
                frames = self._mirror.frames(view.record) if view.record else ()
                yield WorldChange(since, view.since == -1, tuple(view.gone), tuple(frames))
            elif end is not None and clock.monotonic() >= end:
                return

    def replica(self, *, rate: float | None = None) -> Replica:
        """Return a copy of the world that follows it, by ``rate`` versions a second at most, or each as it comes."""
        return Replica(self, rate=rate)

    def _ask(self, body: m.Body, kind: Any, *, wait: float = 0.0) -> Any:
        """Send a request until it is answered or time is up, and return the answer; refusals are a ServiceError."""
        number = next(self._numbers)
        try:
            message = m.encode((m.FORMAT, self._token, self._session, number, body))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ArgumentError(f"this cannot be sent: {error}") from None
        end = clock.monotonic() + self._timeout + wait
        while (left := end - clock.monotonic()) > 0.0:
            begun = clock.monotonic()
            data = self._transport.request(message, timeout=min(left, self._retry + wait))
            if data is None:
                # no server is there yet
                clock.sleep(max(0.0, min(left, 0.02 - (clock.monotonic() - begun))))
                continue
            try:
                answer = _answers.decode(data)
                reply = m.replies.decode(answer.body) if answer.number in (number, -1) else None
            except (msgspec.MsgspecError, RecursionError) as error:
                raise ServiceError(f"the answer is none: {error}", kind="format") from None
            if isinstance(reply, m.Refused):
                raise ServiceError(reply.reason, kind=reply.kind)
            if isinstance(reply, kind):
                return reply
        raise TimeLimitError(f"the server has not answered for {self._timeout:g} s")


class Replica(LiveScene, Closing):
    """A copy of a served world: a live scene whose versions are those of the server, some skipped.

    An edit (:meth:`update`) goes to the server, and is in the replica when it returns. While the
    server cannot be reached, the last version stays, and :attr:`failure` says why.

    Args:
        client: of the server; it is not closed with the replica.
        rate: versions a second that it takes at most; each as soon as it comes if omitted.

    Attributes:
        failure: why the last request failed, or what listeners raised of this version; None while
            all is well.

    Raises:
        ServiceError: the server refuses to be followed.
        TimeLimitError: it does not answer.
    """

    def __init__(self, client: Client, *, rate: float | None = None) -> None:
        self._client, self._interval = client, 1.0 / rate if rate else 0.0
        self._mirror = Mirror(client._ask)
        super().__init__(self._mirror.refreshed())
        self.failure: str | None = None
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="tmkit replica", daemon=True)
        self._thread.start()

    @property
    def version(self) -> int:
        """Number of the version on the server."""
        return self._mirror.version

    def update(self, edit: Callable[[SceneGraph], SceneGraph]) -> SceneGraph:
        """Make an edit at the server, see :meth:`Client.update`, and return the version here that has it."""
        self._client.update(edit)
        return self.wait_for(self._client.server_status().version)

    def wait_for(self, version: int, timeout: float = 10.0) -> SceneGraph:
        """Return the scene as soon as it has a version.

        Args:
            version: number on the server.
            timeout: seconds to wait.

        Raises:
            TimeLimitError: it does not come.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self.version >= version, timeout):
                raise TimeLimitError(f"version {version} has not come within {timeout:g} s")
            return self.scene

    def close(self) -> None:
        """Follow no more; the last version stays."""
        self._is_closed.set()
        self._thread.join()

    def _follow(self) -> None:
        ready, told = 0.0, None  # what listeners raised of the version here
        while not self._is_closed.wait(max(0.0, ready - clock.monotonic())):
            try:
                scene = self._mirror.refreshed(wait=0.5)
            except (ServiceError, TimeLimitError) as error:
                self.failure = str(error)
                self._is_closed.wait(0.1)
                continue
            with self._lock:
                if scene is not self.scene:
                    ready, told = clock.monotonic() + self._interval, None
                    try:
                        self._record(scene)
                        self._put(scene)
                    except TmkitError as error:  # of a recorder, or listeners
                        told = str(error)
                self.failure = told


def connect(
    address: str = DEFAULT_ADDRESS,
    *,
    token: str = "",
    world: str = "world",
    transport: str = ZENOH.name,
    timeout: float = 10.0,
    settings: Mapping[str, Any] | None = None,
) -> Client:
    """Return a client of a world that ``tmkit serve`` holds.

    Args:
        address: where the server listens.
        token: what it knows the client by, where it wants one.
        world: name of the world.
        transport: name of the transport, of the entry points ``tmkit.transports``.
        timeout: seconds until a request that is not answered is an error.
        settings: of the transport, such as the certificates of
            :class:`~tmkit.world.service.zenoh.transport.ZenohTransport`.

    Raises:
        UnknownNameError: there is no such transport.
        MissingExtraError: it needs an extra.
    """
    carrier = load_transport(transport, address, listen=False, world=world, settings=settings)
    return Client(carrier, token=token, timeout=timeout)


def _pose(data: bytes) -> Pose:
    return Pose.from_array(np.frombuffer(data, "<f8"))
