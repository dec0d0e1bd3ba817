"""Access to a server: limits, tokens, request rates and waiting requests."""

from __future__ import annotations

import hashlib
import os
import threading
import time as clock
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tmkit.errors import FileFormatError, MissingFileError, ServiceError
from tmkit.graph import SceneGraph
from tmkit.spatial.plain import convert_fields
from tmkit.world.service import messages as m
from tmkit.world.service.transports import Reply

_MAX_BUCKETS = 10_000
"""Number of tokens or sessions whose requests are counted."""

_IDLE_WAIT = 3600.0
"""Longest time that the thread of the followers waits [s]."""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Limits of a server.

    Attributes:
        message_bytes: size of a request.
        operations: number of edits or queries in one request.
        frames: number of frames of the world.
        requests_per_second: request rate of one token, or of one session without tokens.
        bytes_per_second: rate of the bytes of their requests and replies.
        followers: number of requests that wait for changes.
        followers_per_token: those of one token, or of one session without tokens.
        kept_versions: number of versions that can be fetched and edited from.
        upload_bytes: size of the received shapes that are in no frame yet.
        log_bytes: size of the versions after which a log restarts with the whole scene. At least
            eight times the size of the scene.
    """

    message_bytes: int = 16_000_000
    operations: int = 1_000
    frames: int = 100_000
    requests_per_second: float = 20_000.0
    bytes_per_second: float = 500_000_000.0
    followers: int = 1_000
    followers_per_token: int = 200
    kept_versions: int = 1_000
    upload_bytes: int = 256_000_000
    log_bytes: int = 16_000_000

    def __post_init__(self) -> None:
        convert_fields(self)


class Access:
    """Roles of tokens, and request rates of tokens or sessions. Without tokens, all may write."""

    def __init__(self, tokens: Mapping[str, str] | None, limits: ServiceLimits) -> None:
        self._roles: dict[bytes, str] | None = None
        if tokens is not None:
            self._roles = {_hash_token(token): role for token, role in tokens.items()}
        self._limits = limits
        self._buckets: OrderedDict[bytes, list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def principal(self, request: m.Request) -> tuple[bytes, str]:
        """Return the identity whose limits apply to a request, and its role."""
        if self._roles is None:
            return request.session, "write"
        digest = _hash_token(request.token)
        if digest not in self._roles:
            reason = "this token is unknown" if request.token else "a token is required"
            raise ServiceError(reason, kind="token")
        return digest, self._roles[digest]

    def charge(self, principal: bytes, requests: int, size: int) -> None:
        """Count requests and bytes of a principal.

        Raises:
            ServiceError: if they exceed its rates.
        """
        limits, now = self._limits, clock.monotonic()
        with self._lock:
            bucket = self._buckets.setdefault(
                principal, [limits.requests_per_second, limits.bytes_per_second, now]
            )
            self._buckets.move_to_end(principal)
            if len(self._buckets) > _MAX_BUCKETS:
                self._buckets.popitem(last=False)
            elapsed, bucket[2] = now - bucket[2], now
            for index, rate in enumerate((limits.requests_per_second, limits.bytes_per_second)):
                bucket[index] = min(rate, bucket[index] + elapsed * rate)
            if requests and (bucket[0] < 1.0 or bucket[1] <= 0.0):
                raise ServiceError(
                    "too many requests or bytes a second for this server", kind="rate"
                )
            bucket[0] -= requests
            bucket[1] -= size


def read_tokens(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the roles of a token file by token.

    Each line has ``read`` or ``write`` and a token of at least 16 characters. Comments begin with
    ``#``.

    Raises:
        MissingFileError: if the file is missing.
        FileFormatError: if a line has another format, or there is no token.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise MissingFileError(f"{path}: {error.strerror}", path=str(path), nearest=None) from None
    except UnicodeDecodeError:
        raise FileFormatError.at(path, "expected a text in UTF-8") from None
    tokens = {}
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if words and (
            len(words) != 2 or words[0] not in ("read", "write") or not 16 <= len(words[1]) <= 1000
        ):
            reason = "expected 'read' or 'write' and a token of 16 to 1,000 characters"
            raise FileFormatError.at(path, reason, line=number)
        if words:
            tokens[words[1]] = words[0]
    if not tokens:
        raise FileFormatError.at(path, "contains no token")
    return tokens


def _hash_token(token: str) -> bytes:
    """Return the digest of a token. A lookup by digest reveals nothing of it by timing."""
    return hashlib.sha256(token.encode()).digest()


class Waiter:
    """Request that waits for changes.

    Args:
        number: number of the request.
        body: body of the request.
        reply: function that sends the reply.
        principal: token or session of the request.
    """

    def __init__(self, number: int, body: m.Follow, reply: Reply, principal: bytes = b"") -> None:
        self.number = number
        self.body = body
        self.reply = reply
        self.principal = principal
        self.since = body.since
        self.end = clock.monotonic() + body.wait

    def advance(self, number: int) -> None:
        """Record that the version of a number has no changes for the request."""
        self.since = number


class Followers:
    """Waiting requests, answered by a separate thread after the first change.

    Args:
        limits: limits of the number of waiting requests.
        changes: function that returns the reply with changes, None without changes.
        no_changes: function that returns the reply after the waiting time.
        reject: function that returns the reply of an error.
    """

    def __init__(
        self,
        limits: ServiceLimits,
        *,
        changes: Callable[[Waiter], m.Reply | None],
        no_changes: Callable[[Waiter], m.Reply],
        reject: Callable[[BaseException], m.Reply],
    ) -> None:
        self._limits = limits
        self._changes, self._no_changes, self._reject = changes, no_changes, reject
        self._waiters: list[Waiter] = []
        self._news = threading.Condition()
        self._has_news = self._is_closed = False
        self._thread = threading.Thread(
            target=self._answer_followers, name="tmkit followers", daemon=True
        )
        self._thread.start()

    def add(self, waiter: Waiter) -> None:
        """Add a waiting request.

        Raises:
            ServiceError: if too many requests wait, in total or of its token.
        """
        with self._news:
            count = sum(other.principal == waiter.principal for other in self._waiters)
            if count >= self._limits.followers_per_token:
                reason = f"{count} requests of this token or session wait for changes, the limit"
                raise ServiceError(reason, kind="busy")
            if len(self._waiters) >= self._limits.followers:
                reason = f"{len(self._waiters)} requests wait for changes, the limit"
                raise ServiceError(reason, kind="busy")
            self._waiters.append(waiter)
            self._has_news = True
            self._news.notify()

    def wake(self) -> None:
        """Answer the requests that have changes."""
        with self._news:  # without waiting requests, the thread need not wake up
            if self._waiters:
                self._has_news = True
                self._news.notify()

    def close(self) -> None:
        """Answer all requests, and end the thread."""
        with self._news:
            self._is_closed = True
            self._news.notify()
        self._thread.join()

    def _answer_followers(self) -> None:
        while True:
            with self._news:
                now = clock.monotonic()
                due = min((waiter.end for waiter in self._waiters), default=now + _IDLE_WAIT)
                if not self._has_news and not self._is_closed:
                    self._news.wait(max(0.0, due - now))
                self._has_news = False
                waiters, is_last = list(self._waiters), self._is_closed
            now, answered = clock.monotonic(), set[int]()
            for waiter in waiters:
                try:
                    answer = self._changes(waiter)
                    if answer is None and (now >= waiter.end or is_last):
                        answer = self._no_changes(waiter)
                except Exception as error:
                    answer = self._reject(error)
                if answer is not None:
                    answered.add(id(waiter))
                    waiter.reply(m.encode((m.FORMAT, waiter.number, answer)))
            with self._news:
                self._waiters = [waiter for waiter in self._waiters if id(waiter) not in answered]
            if is_last:
                return


def find_followed_frames(scene: SceneGraph, condition: m.Filter) -> set[str]:
    """Return the frames of a scene that meet the conditions of a client. O(n) with a distance."""
    names = set(scene.frame_names)
    if condition.subtree is not None:
        names = set(scene.subtree(condition.subtree)) if condition.subtree in scene else set()
    if condition.classes:
        names &= {frame for name in condition.classes for frame in scene._frames_of_class(name)}
    if condition.near is not None and names:
        center, distance = condition.near
        if center not in scene:
            return set()
        kinematics = scene.at(scene.zero_configuration() if condition.q is None else condition.q)
        origin, root = kinematics.pose(center).translation, scene.root(center)

        def is_in_range(name: str) -> bool:
            offset = kinematics.pose(name).translation - origin
            return float((offset**2).sum()) <= distance**2

        names = {name for name in names if scene.root(name) == root}
        names = {name for name in names if is_in_range(name)}
    return names
