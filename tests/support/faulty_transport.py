"""A transport that loses, delays, repeats and reorders messages, from a seed."""

from __future__ import annotations

import random
import threading

from tmkit.world.service.transports import Handler, Transport


class FaultyTransport(Transport):
    """Client transport that loses requests and replies and repeats old requests late.

    Nothing waits: a message that is delayed is sent at some later request, in any order.
    """

    def __init__(self, transport: Transport, seed: int, rate: float = 0.3) -> None:
        self._transport, self._chance, self._rate = transport, random.Random(seed), rate
        self._held: list[bytes] = []
        self._lock = threading.Lock()
        self.counts = {"lost": 0, "delayed": 0, "repeated": 0, "answers lost": 0}

    def _happens(self, what: str) -> bool:
        if self._chance.random() < self._rate / len(self.counts):
            self.counts[what] += 1
            return True
        return False

    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Send a request or lose it; None if it or its reply is lost."""
        with self._lock:
            late = (
                [self._held.pop(self._chance.randrange(len(self._held)))]
                if len(self._held) > 3
                else []
            )
            lost, delayed = self._happens("lost"), self._happens("delayed")
            repeated, deaf = self._happens("repeated"), self._happens("answers lost")
            if delayed:
                self._held.append(message)
        for item in [*late, *[message] * repeated]:
            self._transport.request(item, timeout=0.0)  # without waiting for the reply
        if lost or delayed:
            return None
        answer = self._transport.request(message, timeout=timeout)
        return None if deaf else answer

    def serve(self, handler: Handler) -> None:
        """Serve by the transport within, without faults."""
        self._transport.serve(handler)

    def close(self) -> None:
        """Close the transport within."""
        self._transport.close()
