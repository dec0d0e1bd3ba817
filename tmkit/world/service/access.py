"""Access to a server: limits, tokens, requests and bytes a second, and requests that wait."""

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

_REMEMBERED = 10_000  # tokens or sessions whose requests are counted


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
        followers_per_token: those of one token, or of one session where there are no tokens.
        kept_versions: versions that can be fetched and edited from.
        upload_bytes: size of the shapes that were sent and are in no frame yet.
        log_bytes: size of the versions after which a log begins anew with the whole scene; at least
            eight times it.
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
    """Knows the roles of tokens, or lets anyone write if there are none, and counts what each takes."""

    def __init__(self, tokens: Mapping[str, str] | None, limits: ServiceLimits) -> None:
        self._roles = (
            None if tokens is None else {_hashed(token): role for token, role in tokens.items()}
        )
        self._limits = limits
        self._buckets: OrderedDict[bytes, list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def principal(self, request: m.Request) -> tuple[bytes, str]:
        """Return whose limits count, and the role."""
        if self._roles is None:
            return request.session, "write"
        known = _hashed(request.token)
        if known not in self._roles:
            reason = "this token is not known here" if request.token else "a token is needed here"
            raise ServiceError(reason, kind="token")
        return known, self._roles[known]

    def charge(self, principal: bytes, requests: int, size: int) -> None:
        """Count a request, or the bytes of an answer, and refuse what comes too fast."""
        limits, now = self._limits, clock.monotonic()
        with self._lock:
            bucket = self._buckets.setdefault(
                principal, [limits.requests_per_second, limits.bytes_per_second, now]
            )
            self._buckets.move_to_end(principal)
            if len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)
            passed, bucket[2] = now - bucket[2], now
            for place, rate in enumerate((limits.requests_per_second, limits.bytes_per_second)):
                bucket[place] = min(rate, bucket[place] + passed * rate)
            if requests and (bucket[0] < 1.0 or bucket[1] <= 0.0):
                raise ServiceError(
                    "too many requests or bytes a second; this server takes less", kind="rate"
                )
            bucket[0] -= requests
            bucket[1] -= size


def read_tokens(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a file of tokens: on each line ``read`` or ``write`` and a token of at least 16 characters; ``#`` comments.

    Returns:
        The roles by token.

    Raises:
        MissingFileError: it is not there.
        FileFormatError: a line says something else, or there is no token at all.
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
        raise FileFormatError.at(path, "there is no token in it")
    return tokens


def _hashed(token: str) -> bytes:
    # found by its digest, so timing reveals nothing of it
    return hashlib.sha256(token.encode()).digest()


class Waiter:
    """A request that waits for changes, of a token or session (``principal``)."""

    def __init__(self, number: int, body: m.Follow, reply: Reply, principal: bytes = b"") -> None:
        self.number, self.body, self.reply, self.since = number, body, reply, body.since
        self.principal = principal
        self.end = clock.monotonic() + body.wait

    def advance(self, number: int) -> None:
        """Record that the version with this number is no news."""
        self.since = number


class Followers:
    """Bounded waiters, answered by a thread of their own at the first news: ``news`` is None where there are none."""

    def __init__(
        self,
        limits: ServiceLimits,
        *,
        news: Callable[[Waiter], m.Reply | None],
        nothing: Callable[[Waiter], m.Reply],
        refused: Callable[[BaseException], m.Reply],
    ) -> None:
        self._limits = limits
        self._news_for, self._nothing_for, self._refused = news, nothing, refused
        self._waiters: list[Waiter] = []
        self._news = threading.Condition()
        self._has_news = self._is_closed = False
        self._thread = threading.Thread(
            target=self._answer_followers, name="tmkit followers", daemon=True
        )
        self._thread.start()

    def add(self, waiter: Waiter) -> None:
        """Let a request wait; ServiceError where too many do, of all or of its token."""
        with self._news:
            of_one = sum(other.principal == waiter.principal for other in self._waiters)
            if of_one >= self._limits.followers_per_token:
                reason = (
                    f"{of_one} requests of this token or session wait for changes; at most as"
                    " many may"
                )
                raise ServiceError(reason, kind="busy")
            if len(self._waiters) >= self._limits.followers:
                reason = f"{len(self._waiters)} requests wait for changes; at most as many may"
                raise ServiceError(reason, kind="busy")
            self._waiters.append(waiter)
            self._has_news = True
            self._news.notify()

    def wake(self) -> None:
        """Answer those for whom there is something new; without any, the thread need not wake up."""
        with self._news:
            if self._waiters:
                self._has_news = True
                self._news.notify()

    def close(self) -> None:
        """Answer all, and end the thread."""
        with self._news:
            self._is_closed = True
            self._news.notify()
        self._thread.join()

    def _answer_followers(self) -> None:
        while True:
            with self._news:
                now = clock.monotonic()
                due = min((waiter.end for waiter in self._waiters), default=now + 3600.0)
                if not self._has_news and not self._is_closed:
                    self._news.wait(max(0.0, due - now))
                self._has_news = False
                waiters, is_last = list(self._waiters), self._is_closed
            now, answered = clock.monotonic(), set[int]()
            for waiter in waiters:
                try:
                    answer = self._news_for(waiter)
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


def matching(scene: SceneGraph, asked: m.Filter) -> set[str]:
    """Return the frames that a client follows. O(n) where it is given a distance."""
    names = set(scene.frame_names)
    if asked.subtree is not None:
        names = set(scene.subtree(asked.subtree)) if asked.subtree in scene else set()
    if asked.classes:
        names.intersection_update(
            *[{f for name in asked.classes for f in scene.frames_of_class(name)}]
        )
    if asked.near is not None and names:
        center, distance = asked.near
        if center not in scene:
            return set()
        at = scene.at(scene.zero_configuration() if asked.q is None else asked.q)
        here, root = at.pose(center).translation, scene.root(center)
        names = {name for name in names if scene.root(name) == root}
        names = {
            name
            for name in names
            if float(((at.pose(name).translation - here) ** 2).sum()) <= distance**2
        }
    return names
