"""Gate in front of a port: limits connections by address, and drops failed handshakes early.

```text
clients ── tls/cell.example:7447 ── ConnectionGate ── 127.x.y.z:PORT ── zenoh
                                    reads the first message, then relays bytes; holds no key
```

zenoh accepts no connection for 0.1 s after each failed TLS handshake. A few hundred connections
that open and close would therefore block all others for a minute. Like a reverse proxy, the gate
waits for the first message of a client (ClientHello of TLS, or the first batch of zenoh) before it
connects to zenoh. It drops connections that close or stay silent.

The gate opens a bounded number of connections a second for one address. Of those that wait, the
newest is opened first, so new clients are served while an older flood waits. An address is a host
by IPv4, and a network of 64 bits by IPv6.

The gate delays a relayed message by 0.1 ms.
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
"""Time limit of the first message of a client [s], which a client sends at once."""

TURN_SECONDS = 10.0
"""Time limit of waiting for a turn [s], equal to the timeout of a client."""

BURST = 10
"""Number of connections of one address that are opened at once. Each failed one costs 0.1 s."""

OPENED_PER_SECOND = 3.0
"""Rate of further connections of one address [1/s]."""

WAITING_PER_ADDRESS = 64
"""Number of waiting connections of one address. A further connection replaces the oldest."""

WAITING = 512
"""Number of waiting connections of all addresses. A further connection replaces the oldest."""

OPEN_PER_ADDRESS = 256
"""Number of open connections of one address. Another one is closed."""

_TURN_INTERVAL = 0.1
"""Time between checks of a connection's turn [s]."""

_MAX_HELLO_SIZE = 16_384
"""Largest size of a ClientHello [bytes]."""

_BUFFER_SIZE = 65_536
"""Size of the buffers of a connection [bytes]."""

_TLS_HANDSHAKE = 0x16
"""Content type of a TLS handshake record."""


@dataclass
class _Address:
    """Connections and allowance of an address.

    Attributes:
        waiting: connections that are not yet opened, oldest first.
        turns: numbers of those that sent their first message, oldest first.
        opened: number of open connections.
        allowance: number of connections that may be opened at once.
        time: time of the last change of the allowance [s].
    """

    waiting: OrderedDict[int, asyncio.StreamWriter] = field(default_factory=OrderedDict)
    turns: list[int] = field(default_factory=list)
    opened: int = 0
    allowance: float = BURST
    time: float = 0.0

    def wait(self, number: int, writer: asyncio.StreamWriter) -> None:
        """Add a connection that is not yet opened."""
        self.waiting[number] = writer

    def queue(self, number: int) -> None:
        """Add a waiting connection to the turns."""
        self.turns.append(number)

    def leave(self, number: int) -> None:
        """Remove a connection that no longer waits."""
        self.waiting.pop(number, None)
        if number in self.turns:
            self.turns.remove(number)

    def abort_oldest(self) -> None:
        """Close the connection with the longest waiting time."""
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
        """Return whether a waiting connection may be opened now, and reduce the allowance.

        The newest connection is opened first.
        """
        self.allowance = min(BURST, self.allowance + OPENED_PER_SECOND * (now - self.time))
        self.time = now
        if self.turns[-1] != number or self.allowance < 1.0:
            return False
        self.allowance -= 1.0
        return True


class ConnectionGate:
    """Listener that relays the connections to a host and port to a port of this machine.

    Args:
        host: host for clients.
        port: port for clients.
        is_tls: whether clients use TLS. If false, they send batches of zenoh with their length.

    Attributes:
        target: free host and port at which the server behind the gate must listen.

    Raises:
        OSError: if the port is in use or cannot be listened at.
    """

    def __init__(self, host: str, port: int, *, is_tls: bool) -> None:
        self._read_first = _read_client_hello if is_tls else _read_batch
        self.target = _free_loopback_port()
        self._addresses: dict[str, _Address] = {}
        self._count = 0
        self._tasks = set[asyncio.Task[None]]()
        self._loop = asyncio.new_event_loop()
        try:
            start = asyncio.start_server(self._accept, host, port, backlog=1024, limit=_BUFFER_SIZE)
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
        name = _address_of(peer)
        address = self._addresses.setdefault(name, _Address(time=self._loop.time()))
        self._count += 1
        number = self._count
        address.wait(number, writer)
        try:
            self._evict(address)
            first = await asyncio.wait_for(self._read_first(reader), FIRST_SECONDS)
            address.queue(number)
            await asyncio.wait_for(self._await_turn(address, number, reader), TURN_SECONDS)
        finally:
            address.leave(number)
            self._loop.call_later(BURST / OPENED_PER_SECOND, self._remove_idle_address, name)
        if address.opened < OPEN_PER_ADDRESS:
            try:
                with address.open():
                    await self._relay(first, reader, writer)
            finally:
                self._loop.call_later(BURST / OPENED_PER_SECOND, self._remove_idle_address, name)

    def _evict(self, address: _Address) -> None:
        """Close the oldest waiting connections, if there are too many."""
        if len(address.waiting) > WAITING_PER_ADDRESS:
            address.abort_oldest()
        if sum(len(address.waiting) for address in self._addresses.values()) > WAITING:
            max(self._addresses.values(), key=lambda address: len(address.waiting)).abort_oldest()

    async def _await_turn(
        self, address: _Address, number: int, reader: asyncio.StreamReader
    ) -> None:
        """Wait until a connection may be opened. A connection that closes before has no cost.

        Raises:
            ConnectionResetError: if the client closes the connection.
        """
        await asyncio.sleep(0.0)  # receive the end of a connection that is closed at once
        while not reader.at_eof():
            if address.take_turn(number, self._loop.time()):
                return
            await asyncio.sleep(_TURN_INTERVAL)
        raise ConnectionResetError("closed before it was opened")

    def _remove_idle_address(self, name: str) -> None:
        """Remove an address without connections, whose allowance is full again."""
        address = self._addresses.get(name)
        if address is not None and not address.waiting and not address.opened:
            del self._addresses[name]

    async def _relay(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Relay bytes between a client and the server until either closes the connection."""
        server_reader, server_writer = await asyncio.open_connection(
            *self.target, limit=_BUFFER_SIZE
        )
        try:
            server_writer.write(first)
            tasks = [
                asyncio.create_task(_pump(reader, server_writer)),
                asyncio.create_task(_pump(server_reader, writer)),
            ]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if tasks[1].done():
                    await writer.drain()  # send the alert with the reason of the server
                    writer.write_eof()
                    await asyncio.sleep(_TURN_INTERVAL)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            server_writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes from a reader to a writer until the reader ends."""
    while part := await reader.read(_BUFFER_SIZE):
        writer.write(part)
        await writer.drain()


async def _read_client_hello(reader: asyncio.StreamReader) -> bytes:
    """Return the first record of a TLS connection.

    Raises:
        ConnectionResetError: if it is not a ClientHello.
    """
    head = await reader.readexactly(5)
    length = int.from_bytes(head[3:5], "big")
    if head[0] != _TLS_HANDSHAKE or head[1] != 3 or not 4 <= length <= _MAX_HELLO_SIZE:
        raise ConnectionResetError("no TLS")
    body = await reader.readexactly(length)
    if body[0] != 1:
        raise ConnectionResetError("no ClientHello")
    return head + body


async def _read_batch(reader: asyncio.StreamReader) -> bytes:
    """Return the first batch of zenoh of a connection, with its length before it."""
    head = await reader.readexactly(2)
    return head + await reader.readexactly(int.from_bytes(head, "little"))


def _address_of(peer: tuple[str, int]) -> str:
    """Return the host of a connection, or its network of 64 bits by IPv6."""
    address = ipaddress.ip_address(peer[0].partition("%")[0])
    if address.version == 6 and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return str(address)


def _free_loopback_port() -> tuple[str, int]:
    """Return a random host of 127.0.0.0/8 and a free port of it."""
    generator = random.SystemRandom()
    host = f"127.{generator.randrange(1, 255)}.{generator.randrange(1, 255)}.1"
    with socket.socket() as listener:
        listener.bind((host, 0))
        return host, int(listener.getsockname()[1])
