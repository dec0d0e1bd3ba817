"""A server that holds a world: it answers requests of clients over a transport, and executes their edits in turn.

Requests are answered by the thread that the transport calls with; a thread of its own answers
followers. Versions are immutable, so queries wait for nothing. An edit is all or nothing and makes
one version; versions are numbered from 0. The last edit of each session is remembered, so an edit
that arrives twice is executed once, also across a restart from a log.

With a log, the transport is wrapped (:mod:`~tmkit.world.service.recording`), the record of each
version is kept before any client receives it, and now and then the whole scene, with which the log
begins anew. The next time, the shapes that only older records name are removed.

Invariants: whatever bytes come in, they are answered or refused with a reason and counted. No
request runs code of its sender, and none reads or writes a file but the log and its folder of
shapes.
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
from tmkit.world.service.access import Access, Followers, ServiceLimits, Waiter, matching
from tmkit.world.service.recording import RecordingTransport, WorldLog
from tmkit.world.service.transports import Reply, Transport

with importing("msgspec", "world", "a served world needs"):
    import msgspec

_logger = logging.getLogger(__name__)
_REMEMBERED_SESSIONS = 10_000  # whose last edit is remembered
_WRONG = (
    TmkitError,
    ValueError,
    TypeError,
    LookupError,
    OverflowError,
    RecursionError,
    MemoryError,
)

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
    "class": SceneGraph.frames_of_class,
    "groups": SceneGraph.groups_of,
    "attributes": lambda scene, name: m.sent(plain_attributes(scene.attributes(name))),
}
"""What a client may ask of a frame or the tree."""


_prefixes = msgspec.msgpack.Decoder(m.Prefix)
_requests = msgspec.msgpack.Decoder(m.Request)


class WorldServer(Closing):
    """Holds a world for clients in other threads, processes and machines (:class:`~tmkit.world.Client`).

    Args:
        transport: how clients reach it, such as a
            :class:`~tmkit.world.service.zenoh.transport.ZenohTransport`; closed with the server.
        scene: the first version, or a live scene that others in this process change, too; an empty
            scene if omitted. A log that holds a world takes its place.
        log: a file that records all versions; shapes with arrays lie in the folder of this name
            with ``.blobs``.
        tokens: roles, ``read`` or ``write``, by the token that a client has to send; anyone may
            write if omitted.
        limits: how much it takes and gives.

    Attributes:
        live: the world; whoever changes it here changes it for all clients.
        world: 16 bytes, the identity of the world.

    Raises:
        ServiceError: the transport cannot listen, or the log cannot be used.
        LogDamageError: a record in the log is damaged.
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
        self._uploads: OrderedDict[str, tuple[Shape, int]] = OrderedDict()  # and their sizes
        self._sessions: OrderedDict[bytes, tuple[int, m.Done | m.Refused]] = OrderedDict()
        self._editing = (b"", 0)  # session and request of the edit under way
        self._recorded: _Recorded | None = None  # the version under way
        self._is_closed = False
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()  # of counts and uploads
        self._records: dict[tuple[int, int], bytes] = {}  # encoded last
        self.live = scene if isinstance(scene, LiveScene) else LiveScene(scene)
        self._transport = transport
        self._log: WorldLog | None = None
        if log is not None:
            self._recover(RecordingTransport(transport, log), log)
        self._now = self._number, self.live.scene
        self._versions = OrderedDict([self._now])
        self._followers = Followers(
            self.limits, news=self._news_for, nothing=self._nothing_for, refused=self._refused
        )
        self._remove_recorder = self.live.record_by(self)
        self._remove_listener = self.live.on_change(self._changed)
        self._transport.serve(self._receive)

    def _recover(self, transport: RecordingTransport, path: str | os.PathLike[str]) -> None:
        """Put what a log holds in the place of the world; a new one begins with the world."""
        self._transport = transport
        try:
            self._log = log = WorldLog(transport, path, self.limits, self._keys)
            if (recovered := log.recovered()) is not None:
                self.world, self._number, scene, self._sessions = recovered
                self.live.update(lambda _: scene)
            else:
                self._keep_snapshot(log, 0, self.live.scene)
        except _WRONG as error:
            transport.close()
            raise ServiceError(f"the log {path} cannot be used: {error}", kind="log") from error

    @property
    def failure(self) -> str | None:
        """Why nothing can be recorded any more; None while all is well. Nothing is acknowledged after it."""
        return getattr(self._transport, "failure", None)

    @property
    def version(self) -> int:
        """Number of the version of now."""
        return self._number

    def server_status(self) -> m.ServiceStatus:
        """Return the version of now and the counts of messages, edits and refusals by kind."""
        number, scene = self._now
        with self._lock:
            counts = dict(sorted(self._counts.items()))
        return m.ServiceStatus(self.world, number, len(scene), scene.fingerprint, counts)

    def close(self) -> None:
        """Answer waiting clients, end serving, and close the log."""
        self._is_closed = True  # the recorder is removed after the edit under way
        self._remove_recorder()
        self._remove_listener()
        self._followers.close()
        self._transport.close()

    def _receive(self, message: bytes, reply: Reply) -> None:
        """Answer a request, now or, of one that follows, later; never raise."""
        number, principal = -1, b""
        try:
            if len(message) > self.limits.message_bytes:
                reason = (
                    f"the message has {len(message)} bytes; this server takes"
                    f" {self.limits.message_bytes}"
                )
                raise ServiceError(reason, kind="size")
            try:
                received = _prefixes.decode(message).format
                request = _requests.decode(message) if received == m.FORMAT else None
            except (msgspec.MsgspecError, RecursionError) as error:
                raise ServiceError(f"no request: {error}", kind="format") from None
            if request is None:
                reason = f"the message has format {received}; this server reads format {m.FORMAT}"
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
                    "this token may read; edits need one that may write", kind="role"
                )
            answer = self._answer(request, body, reply, principal)
        except Exception as error:
            answer = self._refused(error)
        with self._lock:
            self._counts["messages"] += 1
        if answer is not None:
            data = self._encoded_answer(number, answer)
            if principal:
                self._access.charge(principal, 0, len(data))
            reply(data)

    def _encoded_answer(self, number: int, answer: m.Reply) -> bytes:
        """Return an answer as it is sent; one that cannot be encoded is a refusal."""
        try:
            return m.encode((m.FORMAT, number, answer))
        except Exception as error:
            return m.encode((m.FORMAT, number, self._refused(error)))

    def _answer(
        self, request: m.Request, body: m.Body, reply: Reply, principal: bytes
    ) -> m.Reply | None:
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
                    reason = f"there is no question '{body.what}'; there are {', '.join(LOOKS)}"
                    raise ServiceError(reason, kind="format")
                return m.Value(LOOKS[body.what](scene, body.name))
            case m.Frames():
                self._check_count(len(body.names))
                frames = [scene.specification(name) for name in body.names]
                record = m.record_of_frames(frames, scene, DifferenceWriter(self._keys.key))
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
            reason = (
                f"{count} operations in one request; this server takes {self.limits.operations}"
            )
            raise ServiceError(reason, kind="size")

    def _refused(self, error: BaseException) -> m.Refused:
        """Return the refusal of a request that failed, counted by its kind."""
        refusal = _refusal(error)
        if refusal.kind == "internal":
            _logger.error("a request failed", exc_info=error)
        with self._lock:
            self._counts[f"refused: {refusal.kind}"] += 1
        return refusal

    def _edit(self, request: m.Request, body: m.Edit) -> m.Done | m.Refused:
        self._check_count(len(body.operations))
        session, outcome = request.session, list[m.Done | m.Refused]()

        def edit(scene: SceneGraph) -> SceneGraph:
            known = self._sessions.get(session)
            if known is not None and request.number <= known[0]:
                if request.number < known[0]:
                    raise ServiceError(
                        f"request {request.number} comes after request {known[0]}", kind="repeated"
                    )
                outcome.append(known[1])
                return scene
            made = scene
            try:
                if self._is_closed:
                    raise ServiceError("the server ends", kind="internal")
                made = self._edited(scene, body)
                answer: m.Done | m.Refused = m.Done(self.world, self._number + (made is not scene))
            except Exception as error:
                answer = self._refused(error)
            if made is scene:
                self._remember(session, request.number, answer)
            else:
                # remembered when the version is recorded, or is not
                self._editing = session, request.number
            outcome.append(answer)
            return made

        try:
            self.live.update(edit)
        except ListenerError as error:  # of others in this process: the edit is done
            _logger.error("%s", error)
        with self._lock:
            self._counts["edits"] += 1
        return outcome[0]

    def _remember(self, session: bytes, request: int, answer: m.Done | m.Refused) -> None:
        """Remember the answer of a session's last edit, for when it arrives again; the world's lock is held."""
        self._sessions[session] = request, answer
        self._sessions.move_to_end(session)
        while len(self._sessions) > _REMEMBERED_SESSIONS:
            self._sessions.popitem(last=False)

    def _edited(self, scene: SceneGraph, body: m.Edit) -> SceneGraph:
        is_here = body.world in (b"", self.world)
        if body.version is not None and not (is_here and body.version == self._number):
            world = "" if is_here else ", of another world"
            reason = (
                f"the edit was made for version {body.version}{world}; the world is at version"
                f" {self._number}"
            )
            raise ServiceError(reason, kind="conflict")
        edit = None
        for operation in body.operations:
            if isinstance(operation, m.Change):
                scene = scene if edit is None else edit.finish()
                scene, edit = self._merged(scene, operation, body.world), None
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

    def _merged(self, scene: SceneGraph, change: m.Change, world: bytes) -> SceneGraph:
        """Return a scene with the changes that a client made to a version: a merge when it is not that of now."""
        base = m.EMPTY if change.base == -1 else self._version(change.base, world)
        difference = decode_difference(
            change.record, base, shape=self._shape, source=self._keys.source
        )
        if change.base == -1 or base is scene:
            return scene.apply(difference)
        # alike, too: each may be one more
        both = _changed_frames(difference) & _changed_frames(diff(base, scene))
        if both:
            reason = (
                f"others have changed {', '.join(sorted(both))[:200]} since version {change.base}"
            )
            raise ServiceError(reason, kind="conflict")
        return merge_scenes(base, scene, base.apply(difference))

    def _version(self, number: int, world: bytes) -> SceneGraph:
        if world != self.world:
            raise ServiceError(
                "the version is of another world: the server has begun anew", kind="gone"
            )
        if number not in self._versions:
            raise ServiceError(
                f"version {number} is not kept; the world is at version {self._number}", kind="gone"
            )
        return self._versions[number]

    def _upload(self, shape: Shape, size: int) -> m.Done:
        if self._log is not None:
            self._log.store(shape)
        with self._lock:
            self._uploads[shape.digest] = shape, size
            while sum(size for _, size in self._uploads.values()) > self.limits.upload_bytes:
                self._uploads.popitem(last=False)
        return m.Done(self.world, self._number)

    def _shape(self, digest: str, source: str) -> Shape:
        uploaded = self._uploads.get(digest)
        shape = uploaded[0] if uploaded else m.shape_named(self._now[1], digest)
        if shape is None and self._log is not None:
            shape = self._log.stored(digest, source)
        if shape is None:
            reason = f"no shape of digest {digest[:80]!r} is here; it is sent before the change"
            raise ServiceError(reason, kind="unknown")
        return shape

    def record(self, scene: SceneGraph) -> None:
        """Encode a new version and write it to the log, before it is one; the world's lock is held.

        Args:
            scene: the version.

        Raises:
            ServiceError: if it cannot be encoded or written; nothing has changed.
        """
        if self._recorded is not None:
            self.discard()  # it was interrupted before it became a version
        (session, request), self._editing = self._editing, (b"", 0)
        number = self._number + 1
        try:
            # An edit of a client was decoded, so it can be encoded: without a log, it is when a
            # follower receives it.
            is_needed = self._log is not None or not session
            record = self._encoded(self._now[1], scene) if is_needed else None
            self._recorded = _Recorded(
                session, request, record, 0 if self._log is None else self._log.size
            )
            if self._log is not None:
                data = self._whole(number, scene).record if record is None else record
                self._log.keep_version(number, session, request, data, is_whole=record is None)
        except Exception as error:
            self._recorded = None
            refused = ServiceError(
                f"version {number} cannot be recorded: {error or type(error).__name__}",
                kind=_kind(error),
            )
            if session:
                self._remember(session, request, _refusal(refused))
            raise refused from error

    def discard(self) -> None:
        """Remove a recorded version from the log: it has not become one; the world's lock is held."""
        if self._recorded is None:
            return
        (session, request, _, size), self._recorded = self._recorded, None
        if self._log is not None:
            self._log.withdraw(size)
        if session:
            self._remember(
                session,
                request,
                m.Refused("edit", "another recorder of the world rejected the edit"),
            )

    def _changed(self, scene: SceneGraph) -> None:
        """Number a new version that was recorded, and let others see it; the world's lock is held."""
        assert self._recorded is not None
        (session, request, record, _), self._recorded = self._recorded, None
        number = self._number + 1
        if session:
            self._remember(session, request, m.Done(self.world, number))
        if record is not None:
            self._records = {
                **dict(list(self._records.items())[-15:]),
                (number - 1, number): record,
            }
        self._versions[number] = scene
        self._number, self._now = number, (number, scene)
        if len(self._versions) > self.limits.kept_versions:
            self._versions.popitem(last=False)
        if self._log is not None and self._log.is_snapshot_due:
            try:
                self._keep_snapshot(self._log, number, scene)
            except (TmkitError, OSError) as error:
                _logger.warning("the log is not begun anew at version %d: %s", number, error)
        self._keys.forget(scene)
        self._followers.wake()

    def _keep_snapshot(self, log: WorldLog, number: int, scene: SceneGraph) -> None:
        log.keep_snapshot(
            self.world, number, self._sessions, lambda: self._whole(number, scene).record
        )

    def _record(
        self, since: int, number: int, before: SceneGraph, after: SceneGraph
    ) -> bytes | None:
        """Return the difference between two versions; None where there is none that edits could make."""
        known = self._records.get((since, number))
        if known is None and (known := self._encoded(before, after)) is not None:
            self._records = {**dict(list(self._records.items())[-15:]), (since, number): known}
        return known

    def _encoded(self, before: SceneGraph, after: SceneGraph) -> bytes | None:
        writer = DifferenceWriter(self._keys.key)
        record = writer.encode(diff(before, after), after)
        if self._log is not None:
            for shape in writer.blobs():
                self._log.store(shape)
        return record

    def _whole(self, number: int, scene: SceneGraph) -> m.Whole:
        return m.Whole(self.world, number, self._encoded(m.EMPTY, scene) or b"")

    def _follow(self, waiter: Waiter) -> m.Reply | None:
        if (news := self._news_for(waiter)) is not None:
            return news
        self._followers.add(waiter)
        return None

    def _news_for(self, waiter: Waiter) -> m.Reply | None:
        """Return what a client has not seen; None when there is nothing."""
        body, (number, after), since = waiter.body, self._now, waiter.since
        before = self._versions.get(since)
        if body.world != self.world:
            before, since = None, -1
        if body.filter is not None:
            return self._view(waiter, before, after, number)
        if number == since:
            return None
        record = None if before is None else self._record(since, number, before, after)
        return self._whole(number, after) if record is None else m.Changes(number, record)

    def _nothing_for(self, waiter: Waiter) -> m.Reply:
        if waiter.body.filter is not None:
            return m.View(self.world, waiter.since, waiter.since, [], b"")
        number, scene = self._now
        return m.Changes(waiter.since, b"", scene.fingerprint if waiter.since == number else "")

    def _view(
        self, waiter: Waiter, before: SceneGraph | None, after: SceneGraph, number: int
    ) -> m.View | None:
        asked = waiter.body.filter
        assert asked is not None
        old, new = set[str]() if before is None else matching(before, asked), matching(after, asked)
        names = new - old
        if before is not None:
            names.update(
                f.after.name for f in diff(before, after).frames if f.after and f.after.name in new
            )
        if before is not None and not names and old <= new:
            waiter.advance(number)
            return None
        frames = [after.specification(name) for name in after.frame_names if name in names]
        record = (
            m.record_of_frames(frames, after, DifferenceWriter(self._keys.key)) if frames else b""
        )
        return m.View(
            self.world,
            -1 if before is None else waiter.body.since,
            number,
            sorted(old - new),
            record,
        )


class _Recorded(NamedTuple):
    """A version that is recorded and not yet made: its edit, its record, and the size of the log before it."""

    session: bytes
    request: int
    record: bytes | None
    size: int


def _kind(error: BaseException) -> str:
    """Return the kind of refusal of a request that failed."""
    if isinstance(error, ServiceError):
        return str(error.data["kind"])
    if isinstance(error, OSError) and not isinstance(error, MissingFileError):
        return "internal"
    if isinstance(error, MergeConflictError):
        return "conflict"
    if isinstance(error, MissingFileError | KeyError):
        return "unknown"
    return "edit" if isinstance(error, _WRONG) else "internal"


def _refusal(error: BaseException) -> m.Refused:
    text = str(error) or type(error).__name__
    return m.Refused(_kind(error), text[:10_000].encode(errors="backslashreplace").decode())


def _changed_frames(difference: SceneDifference) -> set[str]:
    return {
        one.name
        for frame in difference.frames
        for one in (frame.before, frame.after)
        if one is not None
    }


def _pose(scene: SceneGraph, query: m.PoseQuery) -> tuple[bytes, bytes | None]:
    frame, to, q, stamp = query.frame, query.relative_to, query.q, query.stamp
    if not query.covariance:
        at = {} if stamp is None else {"stamp": stamp}
        return scene.pose(frame, relative_to=to, q=q, **at).as_array().tobytes(), None
    if stamp is None:
        found = scene.gaussian_pose(frame, relative_to=to, q=q)
    else:
        found = gaussian_pose(scene, frame, relative_to=to, q=q, stamp=stamp)
    return found.mean.as_array().tobytes(), found.covariance.tobytes()
