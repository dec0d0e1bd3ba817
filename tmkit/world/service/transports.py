"""How requests reach a server and answers a client: the protocol, and the transport within one process.

A transport carries bytes and does not read them. It may lose, delay, repeat and reorder messages: clients send a
request again until it is answered, and a server executes an edit once. So a transport needs neither sessions nor
acknowledgements. Others are loaded by name from the entry points ``tmkit.transports``, each a class whose constructor
takes an address, ``listen``, ``world`` and ``settings``, as
:class:`~tmkit.world.service.zenoh.transport.ZenohTransport`.
"""

from __future__ import annotations

import importlib.metadata
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from tmkit.errors import ServiceError, UnknownNameError

DEFAULT_ADDRESS = "tcp/127.0.0.1:7447"
_PROTOCOLS = ("tcp", "tls", "udp", "quic", "ws")
"""Protocols of zenoh whose addresses have a host and a port."""
_GREATEST_PORT = 65535
"""Greatest number of a port."""
Reply = Callable[[bytes], None]
Handler = Callable[[bytes, Reply], None]


class Transport(ABC):
    """Carries requests to a server and its answers back; see the module for what it may do to them."""

    @abstractmethod
    def serve(self, handler: Handler) -> None:
        """Begin to hand requests to a server.

        Args:
            handler: takes the bytes of a request, and a function that sends the answer, from any thread.

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
        address: an endpoint of zenoh, such as ``tcp/127.0.0.1:7447``. Those of other protocols are left to zenoh.

    Raises:
        ServiceError: if a protocol with ports has no port, or one outside 0 to 65535.
    """
    protocol, slash, rest = address.partition("/")
    if not slash or protocol not in _PROTOCOLS:
        return
    port = re.split("[?#]", rest)[0].rpartition(":")[2] if ":" in rest else ""
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= _GREATEST_PORT):
        reason = f"'{address}': expected PROTOCOL/HOST:PORT, such as {DEFAULT_ADDRESS}"
        raise ServiceError(f"{reason}, with a port from 0 to {_GREATEST_PORT}", kind="transport")


def load_transport(
    name: str, address: str, *, listen: bool, world: str = "world", settings: Mapping[str, Any] | None = None
) -> Transport:
    """Return a transport by its name among the entry points ``tmkit.transports``.

    Args:
        name: such as ``zenoh``.
        address: where a server listens, such as ``tcp/127.0.0.1:7447``.
        listen: for a server; else for a client.
        world: name of the world, of which one address may serve several.
        settings: of the transport's own.

    Raises:
        UnknownNameError: there is no such transport.
        ServiceError: its package cannot be loaded.
        MissingExtraError: it needs an extra.
    """
    found = {point.name: point for point in importlib.metadata.entry_points(group="tmkit.transports")}
    if name not in found:
        raise UnknownNameError.of("transport", name, found)
    try:
        make: Any = found[name].load()
    except (ImportError, AttributeError) as error:
        raise ServiceError(f"transport '{name}' cannot be loaded: {error}", kind="transport") from error
    made: Transport = make(address, listen=listen, world=world, settings=settings)
    return made
