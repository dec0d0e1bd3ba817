"""Transport of requests and replies: the protocol, and the transport within one process.

A transport carries bytes and does not read them. It may lose, delay, repeat and reorder messages:
clients send a request again until it is answered, and a server executes an edit once. So a
transport needs neither sessions nor acknowledgements. Others are registered by name
(:mod:`.transport_registry`) and made with an address, ``listen``, ``world`` and ``settings``, as
:class:`~tmkit.world.service.zenoh.transport.ZenohTransport`.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from tmkit._support.limits import GREATEST_PORT
from tmkit.errors import ServiceError

DEFAULT_ADDRESS = "tcp/127.0.0.1:7447"
_PROTOCOLS = ("tcp", "tls", "udp", "quic", "ws")
"""Protocols of zenoh whose addresses have a host and a port."""
Reply = Callable[[bytes], None]
Handler = Callable[[bytes, Reply], None]


class Transport(ABC):
    """Carries requests to a server and its answers back; see the module for what it may do to them."""

    @abstractmethod
    def serve(self, handler: Handler) -> None:
        """Begin to hand requests to a server.

        Args:
            handler: takes the bytes of a request, and a function that sends the answer, from any
                thread.

        Raises:
            ServiceError: the transport cannot listen.
        """

    @abstractmethod
    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Send a request, and return its answer, or None when none came in time or no server listens.

        Args:
            message: the request.
            timeout: seconds to wait.
        """

    @abstractmethod
    def close(self) -> None:
        """End serving and requests."""


class InProcessTransport(Transport):
    """Carries messages between threads of one process: a server and any number of clients share the object."""

    def __init__(self) -> None:
        self._handler: Handler | None = None

    def serve(self, handler: Handler) -> None:
        """Begin to hand requests to a server; a later server takes the place of an earlier one."""
        self._handler = handler

    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Hand a request to the server and return its answer."""
        handler, answered, answers = self._handler, threading.Event(), list[bytes]()

        def reply(answer: bytes) -> None:
            answers.append(answer)
            answered.set()

        if handler is None:
            return None
        handler(message, reply)
        return answers[0] if answered.wait(timeout) else None

    def close(self) -> None:
        """Hand on no more requests."""
        self._handler = None


def require_port(address: str) -> None:
    """Check the port of an address.

    Args:
        address: an endpoint of zenoh, such as ``tcp/127.0.0.1:7447``. Those of other protocols are
            left to zenoh.

    Raises:
        ServiceError: if a protocol with ports has no port, or one outside 0 to 65535.
    """
    protocol, slash, rest = address.partition("/")
    if not slash or protocol not in _PROTOCOLS:
        return
    port = re.split("[?#]", rest)[0].rpartition(":")[2] if ":" in rest else ""
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= GREATEST_PORT):
        reason = f"'{address}': expected PROTOCOL/HOST:PORT, such as {DEFAULT_ADDRESS}"
        raise ServiceError(f"{reason}, with a port from 0 to {GREATEST_PORT}", kind="transport")
