"""Gate in front of a port: limits connections by address, and keeps failed handshakes from the server behind it.

```text
clients ── tls/cell.example:7447 ── ConnectionGate ── 127.x.y.z:PORT ── zenoh
                                    reads the first message, then relays bytes; holds no key
```

zenoh accepts no connection for 0.1 s after each failed TLS handshake, so a few hundred connections
that open and close would keep all others out for a minute. Like a reverse proxy, the gate waits for
the first message of a client (ClientHello of TLS, or the first batch of zenoh) before it connects
to zenoh. It drops those that close or stay silent. It opens a bounded number of connections a
second for one address; of those that wait, the newest goes first, so new clients are served while
an older flood waits. An address is a host by IPv4, and a network of 64 bits by IPv6.

A relayed message takes 0.1 ms longer.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
import socket
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_logger = logging.getLogger(__name__)

FIRST_SECONDS = 2.0
"""Time for the first message of a client [s], which sends it at once."""

TURN_SECONDS = 10.0
"""Time that a connection waits for its turn [s], as long as a client waits for a server."""

BURST = 10
"""Connections of one address that are opened without waiting; each that fails costs the others 0.1 s."""

OPENED_PER_SECOND = 3.0
"""Further connections of one address that are opened [1/s]."""

WAITING_PER_ADDRESS = 64
"""Connections of one address that are not yet opened; another one replaces the oldest."""

WAITING = 512
"""The same of all addresses."""

OPEN_PER_ADDRESS = 256
"""Open connections of one address; another one is closed."""

_TURN_STEP = 0.1
"""Time between checks whether it is a connection's turn [s]."""

_LARGEST_HELLO = 16_384
_PART = 65_536
_HANDSHAKE = 0x16


@dataclass
class _Address:
    """Connections of an address: those not yet opened, oldest first, those open, and its allowance."""

    waiting: OrderedDict[int, asyncio.StreamWriter] = field(default_factory=OrderedDict)
    turns: list[int] = field(default_factory=list)
    opened: int = 0
    allowance: float = BURST
    time: float = 0.0

    def wait(self, number: int, writer: asyncio.StreamWriter) -> None:
        """Add a connection that is not yet opened."""
        self.waiting[number] = writer

    def queue(self, number: int) -> None:
        """Let a waiting connection take turns."""
        self.turns.append(number)

    def leave(self, number: int) -> None:
        """Remove a connection that no longer waits."""
        self.waiting.pop(number, None)
        if number in self.turns:
            self.turns.remove(number)

    def abort_oldest(self) -> None:
        """Close the connection that waits longest."""
        self.waiting.popitem(last=False)[1].transport.abort()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Count a connection as open within the context."""
        self.opened += 1
        try:
            yield
        finally:
            self.opened -= 1

    def take_turn(self, number: int, now: float) -> bool:
        """Return whether a waiting connection may be opened now, which uses the allowance: the newest, if any may."""
        self.allowance = min(BURST, self.allowance + OPENED_PER_SECOND * (now - self.time))
        self.time = now
        if self.turns[-1] != number or self.allowance < 1.0:
            return False
        self.allowance -= 1.0
        return True


class ConnectionGate:
    """Listens at a host and port, and relays connections to a port of this machine; see the module.

    Args:
        host, port: where clients connect.
        is_tls: whether they speak TLS; else they send batches of zenoh, each with its length.

    Attributes:
        target: host and port, free at the moment, that the server behind the gate is to listen at.

    Raises:
        OSError: if the port is in use or cannot be listened at.
    """

    def __init__(self, host: str, port: int, *, is_tls: bool) -> None:
        self._read_first = _client_hello if is_tls else _batch
        self.target = _free_loopback_port()
        self._addresses: dict[str, _Address] = {}
        self._count = 0
        self._tasks = set[asyncio.Task[None]]()
        self._loop = asyncio.new_event_loop()
        try:
            start = asyncio.start_server(self._accept, host, port, backlog=1024, limit=_PART)
            self._server = self._loop.run_until_complete(start)
        except BaseException:
            self._loop.close()
            raise
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="tmkit gate", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Close the port and all connections."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (
            OSError,
            TimeoutError,
            asyncio.IncompleteReadError,
            asyncio.CancelledError,
        ) as error:
            _logger.debug("a connection ended: %r", error)
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        if peer is None:
            return  # it is closed already
        name = _network(peer)
        address = self._addresses.setdefault(name, _Address(time=self._loop.time()))
        self._count += 1
        number = self._count
        address.wait(number, writer)
        try:
            self._evict(address)
            first = await asyncio.wait_for(self._read_first(reader), FIRST_SECONDS)
            address.queue(number)
            await asyncio.wait_for(self._turn(address, number, reader), TURN_SECONDS)
        finally:
            address.leave(number)
            self._loop.call_later(BURST / OPENED_PER_SECOND, self._forget, name)
        if address.opened < OPEN_PER_ADDRESS:
            try:
                with address.open():
                    await self._relay(first, reader, writer)
            finally:
                self._loop.call_later(BURST / OPENED_PER_SECOND, self._forget, name)

    def _evict(self, address: _Address) -> None:
        """Close the oldest connections that are not yet opened, where there are too many."""
        if len(address.waiting) > WAITING_PER_ADDRESS:
            address.abort_oldest()
        if sum(len(other.waiting) for other in self._addresses.values()) > WAITING:
            max(self._addresses.values(), key=lambda other: len(other.waiting)).abort_oldest()

    async def _turn(self, address: _Address, number: int, reader: asyncio.StreamReader) -> None:
        """Wait until a connection may be opened; one that the client closes meanwhile costs nothing."""
        await asyncio.sleep(0.0)  # in which the end of a connection that is closed at once arrives
        while not reader.at_eof():
            if address.take_turn(number, self._loop.time()):
                return
            await asyncio.sleep(_TURN_STEP)
        raise ConnectionResetError("closed before it was opened")

    def _forget(self, name: str) -> None:
        """Forget an address without connections, whose allowance is full again."""
        address = self._addresses.get(name)
        if address is not None and not address.waiting and not address.opened:
            del self._addresses[name]

    async def _relay(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry bytes between a client and the server until either closes the connection."""
        there, back = await asyncio.open_connection(*self.target, limit=_PART)
        try:
            back.write(first)
            tasks = [
                asyncio.create_task(_pump(reader, back)),
                asyncio.create_task(_pump(there, writer)),
            ]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if tasks[1].done():
                    await writer.drain()  # the alert that explains why the server closes
                    writer.write_eof()
                    await asyncio.sleep(_TURN_STEP)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            back.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(_PART):
        writer.write(part)
        await writer.drain()


async def _client_hello(reader: asyncio.StreamReader) -> bytes:
    """Return the first record of a TLS connection, whole; ConnectionResetError for other bytes."""
    head = await reader.readexactly(5)
    length = int.from_bytes(head[3:5], "big")
    if head[0] != _HANDSHAKE or head[1] != 3 or not 4 <= length <= _LARGEST_HELLO:
        raise ConnectionResetError("no TLS")
    body = await reader.readexactly(length)
    if body[0] != 1:
        raise ConnectionResetError("no ClientHello")
    return head + body


async def _batch(reader: asyncio.StreamReader) -> bytes:
    """Return the first batch of zenoh of a connection, whole, with its length before it."""
    head = await reader.readexactly(2)
    return head + await reader.readexactly(int.from_bytes(head, "little"))


def _network(peer: tuple[str, int]) -> str:
    """Return the host of a connection, or its network of 64 bits by IPv6."""
    address = ipaddress.ip_address(peer[0].partition("%")[0])
    if address.version == 6 and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return str(address)


def _free_loopback_port() -> tuple[str, int]:
    """Return a host of 127.0.0.0/8, by chance, and a port of it that is free."""
    host = (
        f"127.{random.SystemRandom().randrange(1, 255)}.{random.SystemRandom().randrange(1, 255)}.1"
    )
    with socket.socket() as found:
        found.bind((host, 0))
        return host, int(found.getsockname()[1])
