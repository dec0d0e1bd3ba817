"""Requests that wait for changes of a world, and which frames they are of."""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Callable

from tmkit.errors import ServiceError
from tmkit.graph import SceneGraph
from tmkit.world.service import messages as m
from tmkit.world.service.transports import Reply


class Waiter:
    """A client that waits for changes."""

    def __init__(self, number: int, body: m.Follow, reply: Reply) -> None:
        self.number, self.body, self.reply, self.since = number, body, reply, body.since
        now = clock.monotonic()
        self.ready, self.end = now + body.delay, now + max(body.wait, body.delay)


class Followers:
    """At most so many waiters, answered by a thread of their own: ``news`` is None where nothing is new for one."""

    def __init__(
        self, most: int, *, news: Callable[[Waiter], m.Reply | None], nothing: Callable[[Waiter], m.Reply],
        refused: Callable[[BaseException], m.Reply],
    ) -> None:  # fmt: skip
        self._most, self._news_for, self._nothing_for, self._refused = most, news, nothing, refused
        self._waiters: list[Waiter] = []
        self._news = threading.Condition()
        self._has_news = self._is_closed = False
        self._thread = threading.Thread(target=self._answer_followers, name="tmkit followers", daemon=True)
        self._thread.start()

    def add(self, waiter: Waiter) -> None:
        """Let a request wait; ServiceError where too many do."""
        with self._news:
            if len(self._waiters) >= self._most:
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


def matching(scene: SceneGraph, asked: m.Filter) -> set[str]:
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
