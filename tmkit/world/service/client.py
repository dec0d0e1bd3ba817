"""Clients of a served world, and replicas that follow it.

A client repeats a request until it is answered or its time is up. The server executes an edit once,
so a lost reply does no harm. One thread at a time edits by one client; queries may run in
parallel.
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
from tmkit.world.service.edits import EditCollector, Mirror, WorldEdits, configuration_values
from tmkit.world.service.transport_registry import load_transport
from tmkit.world.service.transports import DEFAULT_ADDRESS, Transport
from tmkit.world.service.zenoh.registration import ZENOH

with importing("msgspec", "world", "a served world needs"):
    import msgspec

_answer_decoder = msgspec.msgpack.Decoder(m.Answer)

_FOLLOW_WAIT = 10.0
"""Time that a request for changes waits at the server [s]."""

_MAX_EDIT_ATTEMPTS = 20
"""Number of attempts at an edit that conflicts with edits of others."""

_RECONNECTION_INTERVAL = 0.02
"""Time between requests while no server is reachable [s]."""


class WorldChange(NamedTuple):
    """Change of the frames that a client follows.

    Attributes:
        version: number of the version.
        is_reset: whether all earlier changes are void: at the first change, or after a restart of
            the server.
        removed: names of frames that are removed, renamed or outside of the filter.
        frames: new or changed frames.
    """

    version: int
    is_reset: bool
    removed: tuple[str, ...]
    frames: tuple[FrameSpecification, ...]


class Client(WorldEdits, Closing):
    """Client that reads and edits a served world.

    Args:
        transport: transport to the server, closed with the client.
        token: token of the client, if the server requires one.
        timeout: time after which an unanswered request is an error [s].
        retry: time after which an unanswered request is sent again [s].
    """

    def __init__(
        self, transport: Transport, *, token: str = "", timeout: float = 10.0, retry: float = 1.0
    ) -> None:
        self._transport = transport
        self._token = token
        self._timeout = timeout
        self._retry = retry
        self._session, self._numbers = os.urandom(16), itertools.count()
        self._editing = threading.RLock()
        self._sent: set[str] = set()  # digests of shapes that the server has
        self._mirror = Mirror(self._request)

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
            frame: frame.
            relative_to: reference frame. Defaults to its root.
            q: configuration, needed with joints on the path.
            stamp: time at which edges with stamped poses are interpolated [s].

        Raises:
            ServiceError: if the frame is unknown, or :meth:`~tmkit.graph.SceneGraph.pose` raises.
        """
        query = m.PoseQuery(
            frame, relative_to, covariance=False, q=configuration_values(q), stamp=stamp
        )
        return _pose(self._request(m.Poses([query]), m.Value).value[0][0])

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
            frame: frame.
            relative_to: reference frame. Defaults to its root.
            q: configuration, needed with joints on the path.
            stamp: time, as for :func:`tmkit.graph.gaussian_pose`.
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
            queries: frames, each with its reference frame, None for its root.
            q: configuration, needed with joints on a path.
            stamp: time, as for :func:`tmkit.graph.gaussian_pose`.
        """
        values = configuration_values(q)
        body = m.Poses([m.PoseQuery(*query, q=values, stamp=stamp) for query in queries])
        poses = self._request(body, m.Value).value
        return [
            GaussianPose(_pose(mean), m.covariance_matrix(covariance)) for mean, covariance in poses
        ]

    def look(self, what: str, frame: str = "") -> Any:
        """Return a property of the tree or of a frame.

        Args:
            what: ``exists``, ``frames``, ``roots``, ``joints``, ``parent``, ``children``,
                ``ancestors``, ``root``, ``subtree``, ``body``, ``classes``, ``class`` (the frames
                of a class), ``groups`` or ``attributes``.
            frame: the frame, or the class.
        """
        return self._request(m.Look(what, frame), m.Value).value

    def specification(self, frame: str) -> FrameSpecification:
        """Return the specification of a frame."""
        return self._mirror.frames(self._request(m.Frames([frame]), m.View).record)[0]

    def server_status(self) -> m.ServiceStatus:
        """Return the version, fingerprint and counts of the server."""
        status: m.ServiceStatus = self._request(m.GetStatus(), m.ServiceStatus)
        return status

    def scene(self, version: int | None = None) -> SceneGraph:
        """Return a version of the world as a scene.

        For the present version, only the changes since the last one are sent.

        Args:
            version: number of a version that the server stores. Defaults to the present one.
        """
        if version is not None:
            whole = self._request(m.Fetch(version), m.Whole)
            return self._mirror.apply_record(whole.record, m.EMPTY)
        with self._editing:
            return self._mirror.refresh()

    def _operate(self, *operations: m.Operation, shapes: Sequence[Shape] = ()) -> None:
        self._send(list(operations), shapes)

    @contextlib.contextmanager
    def edit(self, *, version: int | None = None) -> Iterator[WorldEdits]:
        """Collect edits that make one version when the block ends. An exception discards them.

        Args:
            version: version number. The edits are rejected if another version is present (``kind``
                is ``conflict``).
        """
        edits = EditCollector()
        yield edits
        self._send(edits.operations, edits.shapes, version=version)

    def update(
        self, edit: Callable[[SceneGraph], SceneGraph], *, is_exact: bool = False
    ) -> SceneGraph:
        """Make any edit of a scene, as :meth:`~tmkit.world.LiveScene.update` does.

        The difference that the function makes is sent, and merged frame by frame with the changes
        of others. If both changed the same frame, the function is called again with the new
        version, 20 times at most.

        Args:
            edit: function of the present version, such as ``lambda scene: scene.set_shapes("cup",
                [shape])``.
            is_exact: whether any change of others leads to another call.

        Returns:
            The scene that the function returned.

        Raises:
            ServiceError: if the server rejects the edit, or all attempts conflict with other edits.
        """
        with self._editing:
            for attempt in itertools.count(1):
                before = self._mirror.refresh()
                after = edit(before)
                writer = DifferenceWriter(self._mirror.keys.key)
                record = writer.encode(diff(before, after), after)
                if record is None:
                    reason = (
                        "a frame takes the name of another frame that stays: split this into two"
                        " edits"
                    )
                    raise ServiceError(reason, kind="edit")
                if after is before:
                    return after
                base = self._mirror.version
                version = base if is_exact else None
                try:
                    self._send([m.Change(base, record)], writer.blobs(), version=version)
                except ServiceError as error:
                    if attempt == _MAX_EDIT_ATTEMPTS or error.data["kind"] not in (
                        "conflict",
                        "gone",
                    ):
                        raise
                    continue
                return after
        raise AssertionError

    def _send(
        self, operations: list[m.Operation], shapes: Sequence[Shape], *, version: int | None = None
    ) -> int:
        """Send an edit, after the shapes that it needs, and return its version."""
        with self._editing:
            for attempt in range(2):
                for shape in shapes:
                    if shape.digest not in self._sent:
                        self._request(m.PutBlob(blob_of_shape(shape)), m.Done)
                        self._sent.add(shape.digest)
                try:
                    done: m.Done = self._request(
                        m.Edit(operations, self._mirror.world, version), m.Done
                    )
                    return done.version
                except ServiceError as error:
                    self._sent.clear()
                    # After the error "unknown", the shapes are sent again once.
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
        """Yield the changes of selected frames, first all of them.

        Versions between may be skipped, but not the last. A frame is followed while it meets all
        conditions.

        Args:
            subtree: root of the subtree of the frames.
            classes: classes, one of which each frame has.
            near: center frame, and largest distance between the origins [m].
            q: configuration of that distance. Zero by default.
            rate: largest rate of changes [1/s].
            timeout: time without a change after which the iteration ends [s]. Infinite if omitted.
        """
        condition = m.Filter(subtree, list(classes), near, configuration_values(q))
        world, since, ready = b"", -1, 0.0
        end = None if timeout is None else clock.monotonic() + timeout
        while True:
            clock.sleep(max(0.0, ready - clock.monotonic()))
            wait = (
                _FOLLOW_WAIT
                if end is None
                else min(_FOLLOW_WAIT, max(0.0, end - clock.monotonic()))
            )
            body = m.Follow(world, since, wait, filter=condition)
            view = self._request(body, m.View, wait=wait)
            if view.since != since or view.version != since or view.world != world:
                world, since = view.world, view.version
                ready = clock.monotonic() + (1.0 / rate if rate else 0.0)
                end = None if timeout is None else clock.monotonic() + timeout
                frames = self._mirror.frames(view.record) if view.record else ()
                yield WorldChange(since, view.since == -1, tuple(view.gone), tuple(frames))
            elif end is not None and clock.monotonic() >= end:
                return

    def replica(self, *, rate: float | None = None) -> Replica:
        """Return a copy of the world that follows it.

        Args:
            rate: largest rate of versions [1/s]. By default, each version is received at once.
        """
        return Replica(self, rate=rate)

    def _request(self, body: m.Body, kind: Any, *, wait: float = 0.0) -> Any:
        """Send a request until it is answered, and return the reply.

        Args:
            body: body of the request.
            kind: type of the reply.
            wait: time that the request waits at the server [s].

        Raises:
            ArgumentError: if the request cannot be encoded.
            ServiceError: if the server rejects the request, or its reply is invalid.
            TimeLimitError: if the time is up.
        """
        number = next(self._numbers)
        try:
            message = m.encode((m.FORMAT, self._token, self._session, number, body))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ArgumentError(f"this cannot be sent: {error}") from None
        end = clock.monotonic() + self._timeout + wait
        while (remaining := end - clock.monotonic()) > 0.0:
            start = clock.monotonic()
            data = self._transport.request(message, timeout=min(remaining, self._retry + wait))
            if data is None:
                # The server may not be reachable yet.
                pause = _RECONNECTION_INTERVAL - (clock.monotonic() - start)
                clock.sleep(max(0.0, min(remaining, pause)))
                continue
            try:
                answer = _answer_decoder.decode(data)
                reply = m.replies.decode(answer.body) if answer.number in (number, -1) else None
            except (msgspec.MsgspecError, RecursionError) as error:
                raise ServiceError(f"the answer is invalid: {error}", kind="format") from None
            if isinstance(reply, m.Rejected):
                raise ServiceError(reply.reason, kind=reply.kind)
            if isinstance(reply, kind):
                return reply
        raise TimeLimitError(f"the server has not answered for {self._timeout:g} s")


class Replica(LiveScene, Closing):
    """Copy of a served world: a live scene whose versions are those of the server, some skipped.

    An edit (:meth:`update`) is sent to the server, and is in the replica after the call. While the
    server is unreachable, the last version stays, and :attr:`failure` has the reason.

    Args:
        client: client of the server. It is not closed with the replica.
        rate: largest rate of versions [1/s]. By default, each version is received at once.

    Attributes:
        failure: reason of the failure of the last request, or errors of listeners of the present
            version. None without failures.

    Raises:
        ServiceError: if the server rejects the request.
        TimeLimitError: if the server does not reply.
    """

    def __init__(self, client: Client, *, rate: float | None = None) -> None:
        self._client, self._interval = client, 1.0 / rate if rate else 0.0
        self._mirror = Mirror(client._request)
        super().__init__(self._mirror.refresh())
        self.failure: str | None = None
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="tmkit replica", daemon=True)
        self._thread.start()

    @property
    def version(self) -> int:
        """Number of the version on the server."""
        return self._mirror.version

    def update(self, edit: Callable[[SceneGraph], SceneGraph]) -> SceneGraph:
        """Make an edit at the server, as :meth:`Client.update`, and return the version with it."""
        self._client.update(edit)
        return self.wait_for(self._client.server_status().version)

    def wait_for(self, version: int, timeout: float = 10.0) -> SceneGraph:
        """Return the scene as soon as it has reached a version.

        Args:
            version: number of the version on the server.
            timeout: longest time to wait [s].

        Raises:
            TimeLimitError: if the version is not reached before the timeout.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self.version >= version, timeout):
                raise TimeLimitError(f"version {version} was not received within {timeout:g} s")
            return self.scene

    def close(self) -> None:
        """End following. The last version stays."""
        self._is_closed.set()
        self._thread.join()

    def _follow(self) -> None:
        ready, listener_error = 0.0, None
        while not self._is_closed.wait(max(0.0, ready - clock.monotonic())):
            try:
                scene = self._mirror.refresh(wait=0.5)
            except (ServiceError, TimeLimitError) as error:
                self.failure = str(error)
                self._is_closed.wait(0.1)
                continue
            with self._lock:
                if scene is not self.scene:
                    ready, listener_error = clock.monotonic() + self._interval, None
                    try:
                        self._record(scene)
                        self._publish(scene)
                    except TmkitError as error:  # of a recorder or of listeners
                        listener_error = str(error)
                self.failure = listener_error


def connect(
    address: str = DEFAULT_ADDRESS,
    *,
    token: str = "",
    world: str = "world",
    transport: str = ZENOH.name,
    timeout: float = 10.0,
    settings: Mapping[str, Any] | None = None,
) -> Client:
    """Return a client of a world that ``tmkit serve`` serves.

    Args:
        address: address of the server.
        token: token of the client, if the server requires one.
        world: name of the world.
        transport: name of the transport, of the entry points ``tmkit.transports``.
        timeout: time after which an unanswered request is an error [s].
        settings: settings of the transport, such as the certificates of
            :class:`~tmkit.world.service.zenoh.transport.ZenohTransport`.

    Raises:
        UnknownNameError: if the transport is unknown.
        MissingExtraError: if the transport needs an extra.
    """
    carrier = load_transport(transport, address, listen=False, world=world, settings=settings)
    return Client(carrier, token=token, timeout=timeout)


def _pose(data: bytes) -> Pose:
    return Pose.from_array(np.frombuffer(data, "<f8"))
