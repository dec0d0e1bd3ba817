"""A server that holds a world: it answers requests of clients over a transport, and executes their edits in turn.

Requests are answered by the thread that the transport calls with; a thread of its own answers those who follow the
world. Versions are immutable, so queries wait for nothing. An edit is all or nothing and makes one version; versions
are numbered from 0. The last edit of each session is remembered, so an edit that arrives twice is executed once, also
across a restart from a log.

With a log, the transport is wrapped (:mod:`~tmkit.world.service.recording`), the record of each version is kept before
anyone is told of it, and now and then the whole scene, with which the log begins anew; the next time, the shapes that
only older records name are removed.

Invariants: whatever bytes come in, they are answered or refused with a reason and counted; no request runs code of its
sender, and none reads or writes a file but the log and its folder of shapes.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
import time as clock
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec
from pyrsistent import thaw

from tmkit.errors import (
    FileFormatError,
    MergeConflictError,
    MissingFileError,
    ServiceError,
    StoreDamageError,
    TmkitError,
)
from tmkit.graph import SceneDifference, SceneGraph, Shape, diff
from tmkit.store import merge_scenes
from tmkit.store.blobs import BlobFolder, blob_of_shape, shape_of_blob
from tmkit.store.encoding import DifferenceWriter, decode_difference
from tmkit.world.live_scene import LiveScene
from tmkit.world.service import messages as m
from tmkit.world.service.recording import RecordingTransport
from tmkit.world.service.transports import Reply, Transport

_logger = logging.getLogger(__name__)
_SESSIONS = 10_000  # whose last edit is remembered
_WRONG = (TmkitError, ValueError, TypeError, LookupError, OverflowError, RecursionError, MemoryError)

LOOKS: Mapping[str, Callable[[SceneGraph, str], Any]] = {
    "exists": lambda scene, name: name in scene,
    "frames": lambda scene, _: scene.frame_names,
    "roots": lambda scene, _: scene.root_names,
    "joints": lambda scene, _: scene.joint_names,
    "parent": lambda scene, name: scene.parent(name),
    "children": lambda scene, name: scene.children(name),
    "ancestors": lambda scene, name: scene.ancestors(name),
    "root": lambda scene, name: scene.root(name),
    "subtree": lambda scene, name: scene.subtree(name),
    "body": lambda scene, name: scene.body(name),
    "classes": lambda scene, name: scene.classes(name),
    "class": lambda scene, name: scene.frames_of_class(name),
    "groups": lambda scene, name: scene.groups_of(name),
    "attributes": lambda scene, name: thaw(scene.attributes(name)),
}
"""What a client may ask of a frame or the tree."""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """How much a server takes and gives.

    Attributes:
        message_bytes: size of a request.
        operations: edits or queries in one request.
        frames: frames of the world.
        requests_per_second: of one token, or of one session where there are no tokens.
        bytes_per_second: of their requests and answers.
        followers: requests that wait for changes.
        kept_versions: versions that can be fetched and edited from.
        upload_bytes: size of the shapes that were sent and are in no frame yet.
        log_bytes: size of the versions after which a log begins anew with the whole scene; eight times the size of
            this if that is more.
    """

    message_bytes: int = 16_000_000
    operations: int = 1_000
    frames: int = 100_000
    requests_per_second: float = 20_000.0
    bytes_per_second: float = 500_000_000.0
    followers: int = 1_000
    kept_versions: int = 1_000
    upload_bytes: int = 256_000_000
    log_bytes: int = 16_000_000


class _Version(msgspec.Struct, array_like=True, tag="version", gc=False):
    """A record of the log: a version as its difference to the one before, or to the empty scene."""

    number: int
    session: bytes
    request: int
    is_whole: bool
    record: bytes


class _Snapshot(msgspec.Struct, array_like=True, tag="snapshot", gc=False):
    """A record of the log from which a server starts: sessions with their last request and its version."""

    world: bytes
    number: int
    sessions: list[tuple[bytes, int, int]]
    record: bytes


_log_records: msgspec.msgpack.Decoder[_Version | _Snapshot] = msgspec.msgpack.Decoder(_Version | _Snapshot)
_prefixes = msgspec.msgpack.Decoder(m.Prefix)
_requests = msgspec.msgpack.Decoder(m.Request)
_bodies: msgspec.msgpack.Decoder[m.Body] = msgspec.msgpack.Decoder(m.Body)


class _Waiter:
    """A client that waits for changes."""

    def __init__(self, number: int, body: m.Follow, reply: Reply) -> None:
        self.number, self.body, self.reply, self.since = number, body, reply, body.since
        now = clock.monotonic()
        self.ready, self.end = now + body.delay, now + max(body.wait, body.delay)


class WorldServer:
    """Holds a world for clients in other threads, processes and machines (:class:`~tmkit.world.Client`).

    Args:
        transport: how clients reach it, such as a :class:`~tmkit.world.ZenohTransport`; closed with the server.
        scene: the first version, or a live scene that others in this process change, too; an empty scene if omitted.
            A log that holds a world takes its place.
        log: a file that records all versions; shapes with arrays lie in the folder of this name with ``.blobs``.
        tokens: roles, ``read`` or ``write``, by the token that a client has to send; anyone may write if omitted.
        limits: how much it takes and gives.

    Attributes:
        live: the world; whoever changes it here changes it for all clients.
        world: 16 bytes, the identity of the world.

    Raises:
        ServiceError: the transport cannot listen, or the log cannot be used.
        LogDamageError: a record in the log is damaged.
    """

    def __init__(
        self, transport: Transport, scene: SceneGraph | LiveScene | None = None, *,
        log: str | os.PathLike[str] | None = None, tokens: Mapping[str, str] | None = None,
        limits: ServiceLimits | None = None,
    ) -> None:  # fmt: skip
        self.limits = limits or ServiceLimits()
        self.world, self._number, self._failure = os.urandom(16), 0, ""
        self._roles = None if tokens is None else {_hashed(token): role for token, role in tokens.items()}
        self._keys = m.SourceKeys()
        self._uploads: OrderedDict[str, tuple[Shape, int]] = OrderedDict()  # and their sizes
        self._sessions: OrderedDict[bytes, tuple[int, m.Done | m.Refused]] = OrderedDict()
        self._editing = (b"", 0)
        self._counts: Counter[str] = Counter()
        self._buckets: OrderedDict[bytes, list[float]] = OrderedDict()
        self._lock = threading.Lock()  # of counts, buckets and uploads
        self._records: dict[tuple[int, int], bytes] = {}  # encoded last
        self._waiters: list[_Waiter] = []
        self._news = threading.Condition()
        self._has_news = self._is_closed = False
        self._blobs: BlobFolder | None = None
        self._named, self._snapshots = set[str](), 0  # digests since the last snapshot; how many were kept
        self._storing = threading.Lock()
        if log is not None:
            transport = RecordingTransport(transport, log)
        self._transport = transport
        self._log_room = 0
        self.live = scene if isinstance(scene, LiveScene) else LiveScene(scene)
        try:
            if log is not None:
                self._blobs = BlobFolder(Path(f"{os.fspath(log)}.blobs"), largest=self.limits.message_bytes)
            recovered = self._recovered()
            if recovered is not None:
                self.live.update(lambda _: recovered)
            self._now = self._number, self.live.scene
            self._versions = OrderedDict([self._now])
            if self._is_recording and recovered is None:
                self._keep_snapshot(*self._now)
        except _WRONG as error:
            transport.close()
            raise ServiceError(f"the log {log} cannot be used: {error}", kind="log") from error
        self._remove_listener = self.live.on_change(self._changed)
        self._thread = threading.Thread(target=self._answer_followers, name="tmkit followers", daemon=True)
        self._thread.start()
        transport.serve(self._receive)

    @property
    def failure(self) -> str | None:
        """Why nothing can be recorded any more; None while all is well. Nothing is acknowledged after it."""
        return self._failure or getattr(self._transport, "failure", None)

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
        """Answer those who wait, end serving, and close the log."""
        self._remove_listener()
        with self._news:
            self._is_closed = True
            self._news.notify()
        self._thread.join()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- requests -----------------------------------------------------------------------------------------------------

    def _receive(self, message: bytes, reply: Reply) -> None:
        """Answer a request, now or, of one that follows, later; never raise."""
        number, principal = -1, b""
        try:
            if len(message) > self.limits.message_bytes:
                reason = f"the message has {len(message)} bytes; this server takes {self.limits.message_bytes}"
                raise _refusal("size", reason)
            try:
                received = _prefixes.decode(message).format
                request = _requests.decode(message) if received == m.FORMAT else None
            except (msgspec.MsgspecError, RecursionError) as error:
                raise _refusal("format", f"no request: {error}") from None
            if request is None:
                raise _refusal("version", f"the message has format {received}; this server reads format {m.FORMAT}")
            number = request.number
            principal, role = self._principal(request)
            self._charge(principal, 1, len(message))
            try:
                body = _bodies.decode(request.body)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise _refusal("format", f"no request: {error}") from None
            if role != "write" and isinstance(body, m.Edit | m.PutBlob):
                raise _refusal("role", "this token may read; edits need one that may write")
            answer = self._answer(request, body, reply)
        except Exception as error:
            answer = self._refused(error)
        with self._lock:
            self._counts["messages"] += 1
        if answer is not None:
            data = m.encode((m.FORMAT, number, answer))
            if principal:
                self._charge(principal, 0, len(data))
            reply(data)

    def _answer(self, request: m.Request, body: m.Body, reply: Reply) -> m.Reply | None:
        number, scene = self._now
        match body:
            case m.Edit():
                return self._edit(request, body)
            case m.Poses():
                self._check_count(len(body.queries))
                return m.Value([_pose(scene, query) for query in body.queries])
            case m.Follow():
                return self._follow(_Waiter(request.number, body, reply))
            case m.Look():
                if body.what not in LOOKS:
                    raise _refusal("format", f"there is no question '{body.what}'; there are {', '.join(LOOKS)}")
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

    def _principal(self, request: m.Request) -> tuple[bytes, str]:
        """Return whose limits count, and the role."""
        if self._roles is None:
            return request.session, "write"
        known = _hashed(request.token)
        if known not in self._roles:
            raise _refusal("token", "this token is not known here" if request.token else "a token is needed here")
        return known, self._roles[known]

    def _charge(self, principal: bytes, requests: int, size: int) -> None:
        """Count a request, or the bytes of an answer, and refuse what comes too fast."""
        limits, now = self.limits, clock.monotonic()
        with self._lock:
            bucket = self._buckets.setdefault(principal, [limits.requests_per_second, limits.bytes_per_second, now])
            self._buckets.move_to_end(principal)
            if len(self._buckets) > _SESSIONS:
                self._buckets.popitem(last=False)
            passed, bucket[2] = now - bucket[2], now
            for place, rate in enumerate((limits.requests_per_second, limits.bytes_per_second)):
                bucket[place] = min(rate, bucket[place] + passed * rate)
            if requests and (bucket[0] < 1.0 or bucket[1] <= 0.0):
                raise _refusal("rate", "too many requests or bytes a second; this server takes less")
            bucket[0] -= requests
            bucket[1] -= size

    def _check_count(self, count: int) -> None:
        if count > self.limits.operations:
            raise _refusal("size", f"{count} operations in one request; this server takes {self.limits.operations}")

    def _refused(self, error: BaseException) -> m.Refused:
        """Return the refusal of a request that failed, counted by its kind."""
        kind = "conflict" if isinstance(error, MergeConflictError) else "edit"
        if isinstance(error, ServiceError):
            kind = error.data["kind"]
        elif isinstance(error, MissingFileError | KeyError):
            kind = "unknown"
        elif not isinstance(error, _WRONG):
            kind = "internal"
            _logger.error("a request failed", exc_info=error)
        with self._lock:
            self._counts[f"refused: {kind}"] += 1
        return m.Refused(kind, str(error)[:10_000])

    # --- edits --------------------------------------------------------------------------------------------------------

    def _edit(self, request: m.Request, body: m.Edit) -> m.Done | m.Refused:
        self._check_count(len(body.operations))
        if self.failure is not None:
            raise _refusal("internal", "the log cannot be written")
        session, outcome = request.session, list[m.Done | m.Refused]()

        def edit(scene: SceneGraph) -> SceneGraph:
            known = self._sessions.get(session)
            if known is not None and request.number <= known[0]:
                if request.number < known[0]:
                    raise _refusal("repeated", f"request {request.number} comes after request {known[0]}")
                outcome.append(known[1])
                return scene
            made = scene
            try:
                made = self._edited(scene, body)
                if made is not scene:
                    self._editing = session, request.number
                outcome.append(m.Done(self.world, self._number + (made is not scene)))
            except _WRONG as error:
                made = scene
                outcome.append(self._refused(error))
            self._sessions[session] = request.number, outcome[0]
            self._sessions.move_to_end(session)
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
            return made

        self.live.update(edit)
        if self.failure is not None:
            raise _refusal("internal", "the log cannot be written")
        with self._lock:
            self._counts["edits"] += 1
        return outcome[0]

    def _edited(self, scene: SceneGraph, body: m.Edit) -> SceneGraph:
        is_here = body.world in (b"", self.world)
        if body.version is not None and not (is_here and body.version == self._number):
            world = "" if is_here else ", of another world"
            reason = f"the edit was made for version {body.version}{world}; the world is at version {self._number}"
            raise _refusal("conflict", reason)
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
            raise _refusal("size", f"the world would have {len(scene)} frames; at most {self.limits.frames}")
        return scene

    def _merged(self, scene: SceneGraph, change: m.Change, world: bytes) -> SceneGraph:
        """Return a scene with the changes that a client made to a version: a merge when it is not that of now."""
        base = m.EMPTY if change.base == -1 else self._version(change.base, world)
        difference = decode_difference(change.record, base, shape=self._shape, source=self._keys.source)
        if change.base == -1 or base is scene:
            return scene.apply(difference)
        both = _changed_frames(difference) & _changed_frames(diff(base, scene))  # alike, too: each may be one more
        if both:
            raise _refusal(
                "conflict", f"others have changed {', '.join(sorted(both))[:200]} since version {change.base}"
            )
        return merge_scenes(base, scene, base.apply(difference))

    def _version(self, number: int, world: bytes) -> SceneGraph:
        if world != self.world:
            raise _refusal("gone", "the version is of another world: the server has begun anew")
        if number not in self._versions:
            raise _refusal("gone", f"version {number} is not kept; the world is at version {self._number}")
        return self._versions[number]

    def _upload(self, shape: Shape, size: int) -> m.Done:
        self._store(shape)
        with self._lock:
            self._uploads[shape.digest] = shape, size
            while sum(size for _, size in self._uploads.values()) > self.limits.upload_bytes:
                self._uploads.popitem(last=False)
        return m.Done(self.world, self._number)

    def _shape(self, digest: str, source: str) -> Shape:
        uploaded = self._uploads.get(digest)
        shape = uploaded[0] if uploaded else m.shape_named(self._now[1], digest)
        if shape is None and self._blobs is not None:
            with contextlib.suppress(StoreDamageError):  # it is sent again, and then compared
                shape = self._blobs.get(digest, source)
        if shape is None:
            raise _refusal("unknown", f"no shape of digest {digest[:80]!r} is here; it is sent before the change")
        return shape

    # --- versions -----------------------------------------------------------------------------------------------------

    def _changed(self, scene: SceneGraph) -> None:
        """Number a new version, record it, and only then let others see it; the world's lock is held."""
        (session, request), self._editing = self._editing, (b"", 0)
        number, before = self._number + 1, self._now[1]
        if self._is_recording and self.failure is None:
            try:
                record = self._record(number - 1, number, before, scene)
                is_whole = record is None
                if record is None:
                    record = self._whole(number, scene).record
                data = m.encode(_Version(number, session, request, is_whole, record))
                self._transport.keep(data)
                self._log_room -= len(data)
                if self._log_room < 0:
                    self._keep_snapshot(number, scene)
            except (TmkitError, OSError) as error:  # a shape that cannot be stored
                self._failure = f"version {number} cannot be recorded: {error}"
                _logger.error("%s", self._failure)
        self._versions[number] = scene
        self._number, self._now = number, (number, scene)
        if len(self._versions) > self.limits.kept_versions:
            self._versions.popitem(last=False)
        self._keys.forget(scene)
        with self._news:
            if self._waiters:  # else the thread need not wake up
                self._has_news = True
                self._news.notify()

    @property
    def _is_recording(self) -> bool:
        return self._blobs is not None

    def _record(self, since: int, number: int, before: SceneGraph, after: SceneGraph) -> bytes | None:
        """Return the difference between two versions; None where there is none that edits could make."""
        known = self._records.get((since, number))
        if known is None and (known := self._encoded(before, after)) is not None:
            self._records = {**dict(list(self._records.items())[-15:]), (since, number): known}
        return known

    def _encoded(self, before: SceneGraph, after: SceneGraph) -> bytes | None:
        writer = DifferenceWriter(self._keys.key)
        record = writer.encode(diff(before, after), after)
        for shape in writer.blobs():
            self._store(shape)
        return record

    def _store(self, shape: Shape) -> None:
        if self._blobs is not None:
            with self._storing:
                self._blobs.put(shape)
                self._named.add(shape.digest)

    def _whole(self, number: int, scene: SceneGraph) -> m.Whole:
        return m.Whole(self.world, number, self._encoded(m.EMPTY, scene) or b"")

    def _keep_snapshot(self, number: int, scene: SceneGraph) -> None:
        before, self._named = self._named, set()
        done = [(s, r, d.version) for s, (r, d) in self._sessions.items() if isinstance(d, m.Done)]
        data = m.encode(_Snapshot(self.world, number, done, self._whole(number, scene).record))
        self._transport.keep(data, is_restart=True)
        if self._blobs is not None and number and getattr(self._transport, "restarts", -1) == self._snapshots:
            with self._storing:  # what is on disk begins with the last snapshot
                self._blobs.remove_all_but(before | self._named)
        self._snapshots += 1
        self._log_room = max(self.limits.log_bytes, 8 * len(data))

    def _recovered(self) -> SceneGraph | None:
        """Return the scene of the log, with all else that it holds put in its place; None if it is new."""
        scene = None
        for data in self._transport.recorded():
            record = _log_records.decode(data)
            base = m.EMPTY
            if isinstance(record, _Snapshot):
                self.world = record.world
                for session, request, version in record.sessions:
                    self._sessions[session] = request, m.Done(record.world, version)
                self._log_room = max(self.limits.log_bytes, 8 * len(data))
            elif scene is None or record.number != self._number + 1:
                raise ValueError(f"version {record.number} comes after version {self._number}")
            else:
                base = base if record.is_whole else scene
                self._sessions[record.session] = record.request, m.Done(self.world, record.number)
                self._log_room -= len(data)
            shape = partial(self._kept_shape, scene)
            scene = base.apply(decode_difference(record.record, base, shape=shape, source=self._keys.source))
            self._number = record.number
            self._keys.forget(scene)
        self._sessions.pop(b"", None)
        while len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return scene

    def _kept_shape(self, scene: SceneGraph | None, digest: str, source: str) -> Shape:
        if self._blobs is None:
            raise _refusal("log", "a log names a shape, and there is no folder of shapes")
        self._named.add(digest)
        known = None if scene is None else m.shape_named(scene, digest)
        return known or self._blobs.get(digest, source)

    # --- followers ----------------------------------------------------------------------------------------------------

    def _follow(self, waiter: _Waiter) -> m.Reply | None:
        if waiter.body.delay <= 0.0 and (news := self._news_for(waiter)) is not None:
            return news
        with self._news:
            if len(self._waiters) >= self.limits.followers:
                raise _refusal("busy", f"{len(self._waiters)} requests wait for changes; at most as many may")
            self._waiters.append(waiter)
            self._has_news = True
            self._news.notify()
        return None

    def _answer_followers(self) -> None:
        while True:
            with self._news:
                now = clock.monotonic()
                due = min((w.end if w.ready <= now else w.ready for w in self._waiters), default=now + 3600.0)
                if not self._has_news and not self._is_closed:
                    self._news.wait(max(0.0, due - now))
                self._has_news = False
                waiters, is_last = list(self._waiters), self._is_closed
            now, answered = clock.monotonic(), set[int]()
            for waiter in waiters:
                try:
                    answer = self._news_for(waiter) if now >= waiter.ready else None
                    if answer is None and (now >= waiter.end or is_last):
                        answer = self._nothing_for(waiter)
                except Exception as error:
                    answer = self._refused(error)
                if answer is not None:
                    answered.add(id(waiter))
                    waiter.reply(m.encode((m.FORMAT, waiter.number, answer)))
            with self._news:
                self._waiters = [waiter for waiter in self._waiters if id(waiter) not in answered]
            if is_last:
                return

    def _news_for(self, waiter: _Waiter) -> m.Reply | None:
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

    def _nothing_for(self, waiter: _Waiter) -> m.Reply:
        if waiter.body.filter is not None:
            return m.View(self.world, waiter.since, waiter.since, [], b"")
        number, scene = self._now
        return m.Changes(waiter.since, b"", scene.fingerprint if waiter.since == number else "")

    def _view(self, waiter: _Waiter, before: SceneGraph | None, after: SceneGraph, number: int) -> m.View | None:
        asked = waiter.body.filter
        assert asked is not None
        old, new = set[str]() if before is None else _matching(before, asked), _matching(after, asked)
        names = new - old
        if before is not None:
            names.update(f.after.name for f in diff(before, after).frames if f.after and f.after.name in new)
        if before is not None and not names and old <= new:
            waiter.since = number
            return None
        frames = [after.specification(name) for name in after.frame_names if name in names]
        record = m.record_of_frames(frames, after, DifferenceWriter(self._keys.key)) if frames else b""
        return m.View(self.world, -1 if before is None else waiter.body.since, number, sorted(old - new), record)


def read_tokens(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a file of tokens: on each line ``read`` or ``write`` and a token of at least 16 characters; ``#`` comments.

    Args:
        path: the file.

    Returns:
        The roles by token.

    Raises:
        MissingFileError: it is not there.
        FileFormatError: a line says something else, or there is no token at all.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise MissingFileError(f"{path}: {error.strerror}", path=str(path), nearest=None) from None
    except UnicodeDecodeError:
        raise FileFormatError.at(path, "expected a text in UTF-8") from None
    tokens = {}
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if words and (len(words) != 2 or words[0] not in ("read", "write") or not 16 <= len(words[1]) <= 1000):
            reason = "expected 'read' or 'write' and a token of 16 to 1,000 characters"
            raise FileFormatError.at(path, reason, line=number)
        if words:
            tokens[words[1]] = words[0]
    if not tokens:
        raise FileFormatError.at(path, "there is no token in it")
    return tokens


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()  # found by its digest, so that time says nothing of it


def _refusal(kind: str, reason: str) -> ServiceError:
    return ServiceError(reason, kind=kind)


def _changed_frames(difference: SceneDifference) -> set[str]:
    return {one.name for frame in difference.frames for one in (frame.before, frame.after) if one is not None}


def _pose(scene: SceneGraph, query: m.PoseQuery) -> tuple[bytes, bytes | None]:
    if query.stamp is not None:
        pose = scene.pose(query.frame, relative_to=query.relative_to, q=query.q, stamp=query.stamp)
    elif query.covariance:
        found = scene.gaussian_pose(query.frame, relative_to=query.relative_to, q=query.q)
        return found.mean.as_array().tobytes(), found.covariance.tobytes()
    else:
        pose = scene.pose(query.frame, relative_to=query.relative_to, q=query.q)
    return pose.as_array().tobytes(), None


def _matching(scene: SceneGraph, asked: m.Filter) -> set[str]:
    """Return the frames that a client follows. O(n) where it is given a distance."""
    names = set(scene.frame_names)
    if asked.subtree is not None:
        names = set(scene.subtree(asked.subtree)) if asked.subtree in scene else set()
    if asked.classes:
        names.intersection_update(*[{f for name in asked.classes for f in scene.frames_of_class(name)}])
    if asked.near is not None and names:
        center, distance = asked.near
        if center not in scene:
            return set()
        at = scene.at(scene.zero_configuration() if asked.q is None else asked.q)
        here, root = at.pose(center).translation, scene.root(center)
        names = {
            name for name in names
            if scene.root(name) == root and float(((at.pose(name).translation - here) ** 2).sum()) <= distance**2
        }  # fmt: skip
    return names
