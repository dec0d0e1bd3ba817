"""Server of a world that replies to requests of clients and executes their edits.

The thread of the transport replies to requests, a separate thread to followers. Versions are
immutable, so queries never wait. Edits are executed one after the other. Each is all or nothing and
makes one version; versions are numbered from 0. The last edit of each session is stored, so an edit
that arrives twice is executed once, also across a restart from a log.

With a log, the transport is wrapped (:mod:`~tmkit.world.service.recording`). The record of each
version is written before any client receives the version. From time to time the log restarts with
the whole scene. At the restart after that, shapes that only older records name are removed.

Invariants:
    - All received bytes are answered, or rejected with a reason, and counted.
    - No request runs code of its sender.
    - No request accesses a file but the log and its folder of shapes.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tmkit._core import SceneDifference
from tmkit._support.closing import Closing
from tmkit._support.extras import importing
from tmkit.errors import (
    ListenerError,
    MergeConflictError,
    MissingFileError,
    ServiceError,
    TmkitError,
)
from tmkit.graph import SceneGraph, Shape, diff, gaussian_pose
from tmkit.graph.attributes import plain_attributes
from tmkit.store import merge_scenes
from tmkit.store.blobs import blob_of_shape, shape_of_blob
from tmkit.store.encoding import DifferenceWriter, decode_difference
from tmkit.world.live_scene import LiveScene
from tmkit.world.service import messages as m
from tmkit.world.service.access import (
    Access,
    Followers,
    ServiceLimits,
    Waiter,
    find_followed_frames,
)
from tmkit.world.service.recording import RecordingTransport, WorldLog
from tmkit.world.service.transports import Reply, Transport

with importing("msgspec", "world", "a served world needs"):
    import msgspec

_logger = logging.getLogger(__name__)
_MAX_STORED_SESSIONS = 10_000
"""Number of sessions whose last edit is stored."""

_MAX_RECORDS = 16
"""Number of encoded differences that are stored."""

_MAX_REASON_LENGTH = 10_000
"""Length of the reason of a rejection [characters]."""

_REQUEST_ERRORS = (
    TmkitError,
    ValueError,
    TypeError,
    LookupError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""Errors of requests that are rejected without an entry in the log of the program."""

LOOKS: Mapping[str, Callable[[SceneGraph, str], Any]] = {
    "exists": SceneGraph.__contains__,
    "frames": lambda scene, _: scene.frame_names,
    "roots": lambda scene, _: scene.root_names,
    "joints": lambda scene, _: scene.joint_names,
    "parent": SceneGraph.parent,
    "children": SceneGraph.children,
    "ancestors": SceneGraph.ancestors,
    "root": SceneGraph.root,
    "subtree": SceneGraph.subtree,
    "body": SceneGraph.body,
    "classes": SceneGraph.classes,
    "class": SceneGraph._frames_of_class,
    "groups": SceneGraph.groups_of,
    "attributes": lambda scene, name: m.encode_attribute(plain_attributes(scene.attributes(name))),
}
"""Queries of the tree or of a frame by name."""

_prefixes = msgspec.msgpack.Decoder(m.Prefix)
_requests = msgspec.msgpack.Decoder(m.Request)


class WorldServer(Closing):
    """Server of a world for clients in other threads, processes and machines.

    Clients are :class:`~tmkit.world.Client`.

    Args:
        transport: transport of the clients, such as a
            :class:`~tmkit.world.service.zenoh.transport.ZenohTransport`, closed with the server.
        scene: first version, or a live scene that others in this process change too. Empty by
            default. A log with a world replaces it.
        log: file that records all versions. Shapes with arrays are in the folder of its name with
            ``.blobs``.
        tokens: role of each token, ``read`` or ``write``. If omitted, all clients may write.
        limits: limits of requests and memory.

    Attributes:
        live: the world. Changes to it reach all clients.
        world: 16 bytes, the identity of the world.

    Raises:
        ServiceError: if the transport cannot listen, or the log cannot be used.
        LogDamageError: if a record in the log is damaged.
    """

    def __init__(
        self,
        transport: Transport,
        scene: SceneGraph | LiveScene | None = None,
        *,
        log: str | os.PathLike[str] | None = None,
        tokens: Mapping[str, str] | None = None,
        limits: ServiceLimits | None = None,
    ) -> None:
        self.limits = limits or ServiceLimits()
        self.world, self._number = os.urandom(16), 0
        self._access = Access(tokens, self.limits)
        self._keys = m.SourceKeys()
        self._uploads: OrderedDict[str, tuple[Shape, int]] = OrderedDict()  # with sizes [bytes]
        self._sessions: OrderedDict[bytes, tuple[int, m.Done | m.Rejected]] = OrderedDict()
        self._editing = (b"", 0)  # session and request of the present edit
        self._pending_version: _PendingVersion | None = None  # recorded, but not published
        self._is_closed = False
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()  # of counts and uploads
        self._records: dict[tuple[int, int], bytes] = {}  # by the versions before and after
        self.live = scene if isinstance(scene, LiveScene) else LiveScene(scene)
        self._transport = transport
        self._log: WorldLog | None = None
        if log is not None:
            self._recover(RecordingTransport(transport, log), log)
        self._now = self._number, self.live.scene
        self._versions = OrderedDict([self._now])
        self._followers = Followers(
            self.limits,
            changes=self._changes_for,
            no_changes=self._no_changes_for,
            reject=self._reject,
        )
        self._recording = self.live.record_by(self)
        self._listening = self.live.on_change(self._publish)
        self._transport.serve(self._receive)

    def _recover(self, transport: RecordingTransport, path: str | os.PathLike[str]) -> None:
        """Restore the world of a log. A new log begins with the present world."""
        self._transport = transport
        try:
            self._log = log = WorldLog(transport, path, self.limits, self._keys)
            if (state := log.recover()) is not None:
                self.world, self._number = state.world, state.number
                self._sessions = state.sessions
                self.live.update(lambda _: state.scene)
            else:
                self._append_snapshot(log, 0, self.live.scene)
        except _REQUEST_ERRORS as error:
            transport.close()
            raise ServiceError(f"the log {path} cannot be used: {error}", kind="log") from error

    @property
    def failure(self) -> str | None:
        """Reason for which nothing can be recorded or acknowledged any more.

        None without a failure.
        """
        return getattr(self._transport, "failure", None)

    @property
    def version(self) -> int:
        """Number of the present version."""
        return self._number

    def server_status(self) -> m.ServiceStatus:
        """Return the present version and the counts of messages, edits and rejections by kind."""
        number, scene = self._now
        with self._lock:
            counts = dict(sorted(self._counts.items()))
        return m.ServiceStatus(self.world, number, len(scene), scene.fingerprint, counts)

    def close(self) -> None:
        """Answer waiting clients, end serving, and close the log."""
        self._is_closed = True  # the recorder is removed after the present edit
        self._recording.close()
        self._listening.close()
        self._followers.close()
        self._transport.close()

    def _receive(self, message: bytes, reply: Reply) -> None:
        """Answer a request, at once or, for followers, later. Never raises."""
        number, principal = -1, b""
        try:
            if len(message) > self.limits.message_bytes:
                limit = self.limits.message_bytes
                reason = f"the message has {len(message)} bytes, more than the limit of {limit}"
                raise ServiceError(reason, kind="size")
            try:
                message_format = _prefixes.decode(message).format
                request = _requests.decode(message) if message_format == m.FORMAT else None
            except (msgspec.MsgspecError, RecursionError) as error:
                raise ServiceError(f"no request: {error}", kind="format") from None
            if request is None:
                reason = f"the message has format {message_format}; expected format {m.FORMAT}"
                raise ServiceError(reason, kind="version")
            number = request.number
            principal, role = self._access.principal(request)
            self._access.charge(principal, 1, len(message))
            try:
                body = m.bodies.decode(request.body)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise ServiceError(f"no request: {error}", kind="format") from None
            if role != "write" and isinstance(body, m.Edit | m.PutBlob):
                raise ServiceError(
                    "this token has the role read; edits need the role write", kind="role"
                )
            answer = self._answer(request, body, reply, principal)
        except Exception as error:
            answer = self._reject(error)
        with self._lock:
            self._counts["messages"] += 1
        if answer is not None:
            data = self._encode_reply(number, answer)
            if principal:
                self._access.charge(principal, 0, len(data))
            reply(data)

    def _encode_reply(self, number: int, answer: m.Reply) -> bytes:
        """Return the bytes of a reply, or of a rejection if it cannot be encoded."""
        try:
            return m.encode((m.FORMAT, number, answer))
        except Exception as error:
            return m.encode((m.FORMAT, number, self._reject(error)))

    def _answer(
        self, request: m.Request, body: m.Body, reply: Reply, principal: bytes
    ) -> m.Reply | None:
        """Return the reply to a request; None if a follower has to wait."""
        number, scene = self._now
        match body:
            case m.Edit():
                return self._edit(request, body)
            case m.Poses():
                self._check_count(len(body.queries))
                return m.Value([_pose(scene, query) for query in body.queries])
            case m.Follow():
                return self._follow(Waiter(request.number, body, reply, principal))
            case m.Look():
                if body.what not in LOOKS:
                    reason = f"unknown query '{body.what}'; expected one of {', '.join(LOOKS)}"
                    raise ServiceError(reason, kind="format")
                return m.Value(LOOKS[body.what](scene, body.name))
            case m.Frames():
                self._check_count(len(body.names))
                frames = [scene.specification(name) for name in body.names]
                record = m.encode_frames(frames, scene, DifferenceWriter(self._keys.key))
                return m.View(self.world, -1, number, [], record)
            case m.Fetch():
                if body.version is not None:
                    number, scene = body.version, self._version(body.version, self.world)
                return self._whole(number, scene)
            case m.PutBlob():
                return self._upload(shape_of_blob(body.data, ""), len(body.data))
            case m.GetBlob():
                return m.Blob(blob_of_shape(self._shape(body.digest, "")))
            case m.GetStatus():
                return self.server_status()

    def _check_count(self, count: int) -> None:
        if count > self.limits.operations:
            limit = self.limits.operations
            reason = f"{count} operations in one request, more than the limit of {limit}"
            raise ServiceError(reason, kind="size")

    def _reject(self, error: BaseException) -> m.Rejected:
        """Return the rejection of a failed request, counted by its kind."""
        rejection = _rejection_of(error)
        if rejection.kind == "internal":
            _logger.error("a request failed", exc_info=error)
        with self._lock:
            self._counts[f"refused: {rejection.kind}"] += 1
        return rejection

    def _edit(self, request: m.Request, body: m.Edit) -> m.Done | m.Rejected:
        """Execute an edit, or return the stored reply if it arrives again."""
        self._check_count(len(body.operations))
        session, outcome = request.session, list[m.Done | m.Rejected]()

        def edit(scene: SceneGraph) -> SceneGraph:
            last_request, last_answer = self._sessions.get(session, (-1, None))
            if last_answer is not None and request.number <= last_request:
                if request.number < last_request:
                    raise ServiceError(
                        f"request {request.number} comes after request {last_request}",
                        kind="repeated",
                    )
                outcome.append(last_answer)
                return scene
            version = scene
            try:
                if self._is_closed:
                    raise ServiceError("the server ends", kind="internal")
                version = self._apply_edit(scene, body)
                number = self._number + (version is not scene)
                answer: m.Done | m.Rejected = m.Done(self.world, number)
            except Exception as error:
                answer = self._reject(error)
            if version is scene:
                self._store_answer(session, request.number, answer)
            else:  # the reply is stored when the version is recorded or discarded
                self._editing = session, request.number
            outcome.append(answer)
            return version

        try:
            self.live.update(edit)
        except ListenerError as error:  # of listeners in this process: the edit is done
            _logger.error("%s", error)
        with self._lock:
            self._counts["edits"] += 1
        return outcome[0]

    def _store_answer(self, session: bytes, request: int, answer: m.Done | m.Rejected) -> None:
        """Store the reply to a session's last edit for its repetition; the lock is held."""
        self._sessions[session] = request, answer
        self._sessions.move_to_end(session)
        while len(self._sessions) > _MAX_STORED_SESSIONS:
            self._sessions.popitem(last=False)

    def _apply_edit(self, scene: SceneGraph, body: m.Edit) -> SceneGraph:
        """Return the scene after the operations of an edit.

        Raises:
            ServiceError: if the edit is for another version, or the world would have too many
                frames.
        """
        is_this_world = body.world in (b"", self.world)
        is_present = is_this_world and body.version == self._number
        if body.version is not None and not is_present:
            world = "" if is_this_world else ", of another world"
            raise ServiceError(
                f"the edit was made for version {body.version}{world}; the world is at version"
                f" {self._number}",
                kind="conflict",
            )
        edit = None
        for operation in body.operations:
            if isinstance(operation, m.Change):
                scene = scene if edit is None else edit.finish()
                scene, edit = self._apply_change(scene, operation, body.world), None
            else:
                edit = scene.edit() if edit is None else edit
                m.apply(operation, edit)
        scene = scene if edit is None else edit.finish()
        if len(scene) > self.limits.frames:
            raise ServiceError(
                f"the world would have {len(scene)} frames; at most {self.limits.frames}",
                kind="size",
            )
        return scene

    def _apply_change(self, scene: SceneGraph, change: m.Change, world: bytes) -> SceneGraph:
        """Return a scene with the changes of a client to a version, merged with later changes."""
        base = m.EMPTY if change.base == -1 else self._version(change.base, world)
        difference = decode_difference(
            change.record, base, shape=self._shape, source=self._keys.source
        )
        if change.base == -1 or base is scene:
            return scene.apply(difference)
        # Equal changes conflict too, since each may increment a value.
        conflicts = _frame_names(difference) & _frame_names(diff(base, scene))
        if conflicts:
            raise ServiceError(
                f"others have changed {', '.join(sorted(conflicts))[:200]} since version"
                f" {change.base}",
                kind="conflict",
            )
        return merge_scenes(base, scene, base.apply(difference))

    def _version(self, number: int, world: bytes) -> SceneGraph:
        if world != self.world:
            raise ServiceError(
                "the version is of another world: the server has restarted", kind="gone"
            )
        if number not in self._versions:
            raise ServiceError(
                f"version {number} is not stored; the world is at version {self._number}",
                kind="gone",
            )
        return self._versions[number]

    def _upload(self, shape: Shape, size: int) -> m.Done:
        if self._log is not None:
            self._log.store_shape(shape)
        with self._lock:
            self._uploads[shape.digest] = shape, size
            while sum(size for _, size in self._uploads.values()) > self.limits.upload_bytes:
                self._uploads.popitem(last=False)
        return m.Done(self.world, self._number)

    def _shape(self, digest: str, source: str) -> Shape:
        uploaded = self._uploads.get(digest)
        shape = uploaded[0] if uploaded else m.find_shape(self._now[1], digest)
        if shape is None and self._log is not None:
            shape = self._log.find_shape(digest, source)
        if shape is None:
            reason = f"unknown shape of digest {digest[:80]!r}; send it before the change"
            raise ServiceError(reason, kind="unknown")
        return shape

    def record(self, scene: SceneGraph) -> None:
        """Encode a new version and write it to the log; the world's lock is held.

        Args:
            scene: new version.

        Raises:
            ServiceError: if the version cannot be encoded or written. Nothing is changed.
        """
        if self._pending_version is not None:
            self.discard()  # an interrupt prevented its publication
        (session, request), self._editing = self._editing, (b"", 0)
        number = self._number + 1
        try:
            # A decoded edit of a client can be encoded. Without a log, it is encoded for followers.
            is_needed = self._log is not None or not session
            record = self._encode_difference(self._now[1], scene) if is_needed else None
            self._pending_version = _PendingVersion(
                session, request, record, 0 if self._log is None else self._log.size
            )
            if self._log is not None:
                data = self._whole(number, scene).record if record is None else record
                self._log.append_version(number, session, request, data, is_whole=record is None)
        except Exception as error:
            self._pending_version = None
            rejection = ServiceError(
                f"version {number} cannot be recorded: {error or type(error).__name__}",
                kind=_rejection_kind(error),
            )
            if session:
                self._store_answer(session, request, _rejection_of(rejection))
            raise rejection from error

    def discard(self) -> None:
        """Remove a recorded, unpublished version from the log; the world's lock is held."""
        if self._pending_version is None:
            return
        version, self._pending_version = self._pending_version, None
        if self._log is not None:
            self._log.truncate(version.size)
        if version.session:
            rejection = m.Rejected("edit", "another recorder of the world rejected the edit")
            self._store_answer(version.session, version.request, rejection)

    def _publish(self, scene: SceneGraph) -> None:
        """Number a recorded version, and publish it to clients; the world's lock is held."""
        assert self._pending_version is not None
        version, self._pending_version = self._pending_version, None
        number = self._number + 1
        if version.session:
            self._store_answer(version.session, version.request, m.Done(self.world, number))
        if version.record is not None:
            self._store_record(number - 1, number, version.record)
        self._versions[number] = scene
        self._number, self._now = number, (number, scene)
        if len(self._versions) > self.limits.kept_versions:
            self._versions.popitem(last=False)
        if self._log is not None and self._log.is_snapshot_due:
            try:
                self._append_snapshot(self._log, number, scene)
            except (TmkitError, OSError) as error:
                _logger.warning("the log does not restart at version %d: %s", number, error)
        self._keys.prune(scene)
        self._followers.wake()

    def _append_snapshot(self, log: WorldLog, number: int, scene: SceneGraph) -> None:
        log.append_snapshot(
            self.world, number, self._sessions, lambda: self._whole(number, scene).record
        )

    def _encode_changes(
        self, since: int, number: int, before: SceneGraph, after: SceneGraph
    ) -> bytes | None:
        """Return the difference between two versions; None if no edit can express it."""
        record = self._records.get((since, number))
        if record is None:
            record = self._encode_difference(before, after)
            if record is not None:
                self._store_record(since, number, record)
        return record

    def _store_record(self, since: int, number: int, record: bytes) -> None:
        """Store the difference between two versions, without the oldest of too many."""
        latest = list(self._records.items())[1 - _MAX_RECORDS :]
        self._records = {**dict(latest), (since, number): record}

    def _encode_difference(self, before: SceneGraph, after: SceneGraph) -> bytes | None:
        writer = DifferenceWriter(self._keys.key)
        record = writer.encode(diff(before, after), after)
        if self._log is not None:
            for shape in writer.blobs():
                self._log.store_shape(shape)
        return record

    def _whole(self, number: int, scene: SceneGraph) -> m.Whole:
        return m.Whole(self.world, number, self._encode_difference(m.EMPTY, scene) or b"")

    def _follow(self, waiter: Waiter) -> m.Reply | None:
        changes = self._changes_for(waiter)
        if changes is None:
            self._followers.add(waiter)
        return changes

    def _changes_for(self, waiter: Waiter) -> m.Reply | None:
        """Return the changes since the version of a client; None without changes."""
        body, (number, after), since = waiter.body, self._now, waiter.since
        before = self._versions.get(since)
        if body.world != self.world:
            before, since = None, -1
        if body.filter is not None:
            return self._view(waiter, before, after, number)
        if number == since:
            return None
        record = None if before is None else self._encode_changes(since, number, before, after)
        return self._whole(number, after) if record is None else m.Changes(number, record)

    def _no_changes_for(self, waiter: Waiter) -> m.Reply:
        if waiter.body.filter is not None:
            return m.View(self.world, waiter.since, waiter.since, [], b"")
        number, scene = self._now
        return m.Changes(waiter.since, b"", scene.fingerprint if waiter.since == number else "")

    def _view(
        self, waiter: Waiter, before: SceneGraph | None, after: SceneGraph, number: int
    ) -> m.View | None:
        """Return the changes of the frames of a filter; None without changes."""
        condition = waiter.body.filter
        assert condition is not None
        old = set[str]() if before is None else find_followed_frames(before, condition)
        new = find_followed_frames(after, condition)
        names = new - old
        if before is not None:
            changes = diff(before, after).frames
            names |= new & {change.after.name for change in changes if change.after}
        if before is not None and not names and old <= new:
            waiter.advance(number)
            return None
        frames = [after.specification(name) for name in after.frame_names if name in names]
        record = m.encode_frames(frames, after, DifferenceWriter(self._keys.key)) if frames else b""
        since = -1 if before is None else waiter.body.since
        return m.View(self.world, since, number, sorted(old - new), record)


class _PendingVersion(NamedTuple):
    """Version that is recorded and not yet published.

    Attributes:
        session: session of its edit, empty without one.
        request: number of the request of its edit.
        record: difference to the version before.
        size: size of the log before it [bytes].
    """

    session: bytes
    request: int
    record: bytes | None
    size: int


def _rejection_kind(error: BaseException) -> str:
    """Return the kind of the rejection of a failed request."""
    if isinstance(error, ServiceError):
        return str(error.data["kind"])
    if isinstance(error, OSError) and not isinstance(error, MissingFileError):
        return "internal"
    if isinstance(error, MergeConflictError):
        return "conflict"
    if isinstance(error, MissingFileError | KeyError):
        return "unknown"
    return "edit" if isinstance(error, _REQUEST_ERRORS) else "internal"


def _rejection_of(error: BaseException) -> m.Rejected:
    """Return the rejection of a failed request."""
    text = (str(error) or type(error).__name__)[:_MAX_REASON_LENGTH]
    reason = text.encode(errors="backslashreplace").decode()
    return m.Rejected(_rejection_kind(error), reason)


def _frame_names(difference: SceneDifference) -> set[str]:
    return {
        side.name
        for frame in difference.frames
        for side in (frame.before, frame.after)
        if side is not None
    }


def _pose(scene: SceneGraph, query: m.PoseQuery) -> tuple[bytes, bytes | None]:
    """Return the bytes of the pose and of the covariance of a query."""
    frame, relative_to, q = query.frame, query.relative_to, query.q
    stamp = query.stamp
    if not query.covariance:
        time = {} if stamp is None else {"stamp": stamp}
        mean = scene.pose(frame, relative_to=relative_to, q=q, **time)
        return mean.as_array().tobytes(), None
    if stamp is None:
        pose = scene.gaussian_pose(frame, relative_to=relative_to, q=q)
    else:
        pose = gaussian_pose(scene, frame, relative_to=relative_to, q=q, stamp=stamp)
    return pose.mean.as_array().tobytes(), pose.covariance.tobytes()
