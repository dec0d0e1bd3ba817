"""Transport of requests and replies: the protocol, and the transport within one process.

A transport carries bytes without reading them. It may lose, delay, repeat and reorder messages.
Clients repeat a request until it is answered, and a server executes an edit once. So a transport
needs neither sessions nor acknowledgements.

Further transports are registered by name (:mod:`.transport_registry`). They are created with an
address, ``listen``, ``world`` and ``settings``, as
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
"""Default address of a server."""

_PROTOCOLS = ("tcp", "tls", "udp", "quic", "ws")
"""Protocols of zenoh whose addresses have a host and a port."""

Reply = Callable[[bytes], None]
"""Function that sends the reply to a request."""

Handler = Callable[[bytes, Reply], None]
"""Function of a server that handles a request."""


class Transport(ABC):
    """Carrier of requests to a server and of its replies, with the guarantees of the module."""

    @abstractmethod
    def serve(self, handler: Handler) -> None:
        """Begin to pass requests to a server.

        Args:
            handler: function of the bytes of a request and a function that sends the reply,
                callable from any thread.

        Raises:
            ServiceError: if the transport cannot listen.
        """

    @abstractmethod
    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Send a request, and return its reply.

        None after the timeout or without a server.

        Args:
            message: request.
            timeout: longest time to wait [s].
        """

    @abstractmethod
    def close(self) -> None:
        """End serving and requests."""


class InProcessTransport(Transport):
    """Transport between threads of one process.

    A server and any number of clients share the object.
    """

    def __init__(self) -> None:
        self._handler: Handler | None = None

    def serve(self, handler: Handler) -> None:
        """Begin to pass requests to a server, which replaces an earlier one."""
        self._handler = handler

    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Pass a request to the server and return its reply."""
        handler, is_answered, answers = self._handler, threading.Event(), list[bytes]()

        def reply(answer: bytes) -> None:
            answers.append(answer)
            is_answered.set()

        if handler is None:
            return None
        handler(message, reply)
        return answers[0] if is_answered.wait(timeout) else None

    def close(self) -> None:
        """End passing requests."""
        self._handler = None


def require_port(address: str) -> None:
    """Check the port of an address.

    Args:
        address: endpoint of zenoh, such as ``tcp/127.0.0.1:7447``. Addresses of other protocols are
            not checked.

    Raises:
        ServiceError: if a protocol with ports has no port, or one outside 0 to 65535.
    """
    protocol, slash, endpoint = address.partition("/")
    if not slash or protocol not in _PROTOCOLS:
        return
    port = re.split("[?#]", endpoint)[0].rpartition(":")[2] if ":" in endpoint else ""
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= GREATEST_PORT):
        reason = f"'{address}': expected PROTOCOL/HOST:PORT, such as {DEFAULT_ADDRESS}"
        raise ServiceError(f"{reason}, with a port from 0 to {GREATEST_PORT}", kind="transport")
