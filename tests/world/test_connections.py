"""Connections that say nothing, or nonsense, keep no client out: real sockets on this machine."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.served_worlds import certificate_of_this_machine, free_address, serving

from tmkit.world import connect
from tmkit.world.service.zenoh import connection_gate
from tmkit.world.service.zenoh.connection_gate import ConnectionGate

CLIENT_HELLO = bytes.fromhex("1603010005") + b"\1\0\0\1\0"  # a whole record, and no TLS after it


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Let this process open as many files as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 8_000:
        pytest.skip("this process may open too few files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def opened(port: int, source: str = "127.0.0.1") -> socket.socket:
    """Return a connection to a port of this machine, from one of its addresses."""
    return socket.create_connection(("127.0.0.1", port), timeout=300.0, source_address=(source, 0))


@contextmanager
def silent_connections(port: int, count: int) -> Iterator[None]:
    """Keep a number of silent connections open, and reopen those that the server closes."""
    known, is_over = [opened(port) for _ in range(count)], threading.Event()

    def renew() -> None:
        while not is_over.is_set():
            for number, one in enumerate(known):
                one.setblocking(False)
                try:
                    is_closed = one.recv(1) == b""
                except BlockingIOError:
                    is_closed = False
                except OSError:
                    is_closed = True
                if is_closed and not is_over.is_set():
                    one.close()
                    known[number] = opened(port)
            is_over.wait(0.01)

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        for one in known:
            one.close()


@pytest.mark.parametrize("address", ["tcp/127.0.0.1", "tcp/0.0.0.0"])
def test_silent_connections_keep_no_client_out(address: str, tmp_path: Path) -> None:
    """While 3,000 silent connections are open, new clients are served."""
    pytest.importorskip("zenoh")
    tokens = tmp_path / "tokens"
    tokens.write_text("write " + "w" * 16)
    port = int(free_address().rpartition(":")[2])
    with serving("--listen", f"{address}:{port}", "--tokens", tokens) as (_, line):
        assert line.endswith("version 0")
        with silent_connections(port, 3_000):
            for number in range(3):
                with connect(f"tcp/127.0.0.1:{port}", token="w" * 16, timeout=300.0) as world:
                    world.set_attribute("world", "k", number)


def open_and_close(port: int) -> None:
    """Open a connection and close it."""
    opened(port).close()


def send_garbage(port: int) -> None:
    """Send what is no TLS."""
    with opened(port) as one:
        one.sendall(b"GET / HTTP/1.1\r\n\r\n")


def begin_handshake(port: int) -> None:
    """Send the first message of a handshake, and no more."""
    with opened(port) as one:
        one.sendall(CLIENT_HELLO)


@pytest.mark.parametrize("attack", [open_and_close, send_garbage, begin_handshake])
def test_failed_handshakes_keep_no_client_out(
    attack: Callable[[int], None], tmp_path: Path
) -> None:
    """After 600 failed TLS handshakes, a client is served long before 60 s have passed."""
    pytest.importorskip("zenoh")
    files = certificate_of_this_machine(tmp_path)
    port = int(free_address().rpartition(":")[2])
    settings = [
        f"transport/link/tls/listen_{name}={files[name]}" for name in ("private_key", "certificate")
    ]
    options = [word for setting in settings for word in ("--setting", setting)]
    with serving("--listen", f"tls/localhost:{port}", *options) as (_, line):
        assert line.endswith("version 0")
        for _ in range(600):
            attack(port)
        authority = {"transport/link/tls/root_ca_certificate": str(files["authority"])}
        with connect(f"tls/localhost:{port}", timeout=300.0, settings=authority) as world:
            world.set_attribute("world", "k", 1)
        with ExitStack() as stack:
            for _ in range(600):
                stack.enter_context(opened(port))  # and says nothing
            with connect(f"tls/localhost:{port}", timeout=300.0, settings=authority) as world:
                assert world.look("attributes", "world") == {"k": 1}


# --- the gate alone, before a server that sends back what it receives
# -------------------------------------------------


@pytest.fixture
def gate() -> Iterator[tuple[int, list[int]]]:
    """Yield the port of a gate for TLS, and a list with the number of relayed connections."""
    port = int(free_address().rpartition(":")[2])
    gate, count = ConnectionGate("127.0.0.1", port, is_tls=True), [0]
    server = socket.create_server(gate.target)

    def echo(one: socket.socket) -> None:
        with one:
            while data := one.recv(65_536):
                one.sendall(data)

    def serve() -> None:
        while True:
            try:
                one, _ = server.accept()
            except OSError:
                return
            count[0] += 1
            threading.Thread(target=echo, args=(one,), daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    yield port, count
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()
    gate.close()


def answered(one: socket.socket, data: bytes) -> bool:
    """Return whether bytes come back."""
    one.sendall(data)
    received = b""
    while len(received) < len(data):
        part = one.recv(65_536)
        if not part:
            return False
        received += part
    return received == data


def is_closed(one: socket.socket) -> bool:
    """Wait until the peer closes a connection or sends bytes; return whether it was closed."""
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_gate_relays_bytes_both_ways(gate: tuple[int, list[int]]) -> None:
    """Bytes after the first message, of any size, arrive complete and in order."""
    port, count = gate
    with opened(port) as one, opened(port) as other:
        for data in (CLIENT_HELLO, b"a", bytes(range(256)) * 5_000):
            assert answered(one, data)
        assert answered(other, CLIENT_HELLO)
        one.shutdown(socket.SHUT_WR)
        assert is_closed(one)
        assert answered(other, b"more")
    assert count == [2]


@pytest.mark.parametrize(
    "data",
    [b"", b"\x16", b"\x16\3\1\0\5\1", b"\x16\3\1\xff\xff", b"\x15\3\1\0\5", b"GET / HTTP/1.1"],
)
def test_a_gate_opens_nothing_without_a_first_message(
    gate: tuple[int, list[int]], data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that send nothing, half of a message or another one are closed."""
    port, count = gate
    monkeypatch.setattr(connection_gate, "FIRST_SECONDS", 0.1)
    with opened(port) as one:
        one.sendall(data)
        assert is_closed(one)
    assert count == [0]


def test_a_gate_limits_each_address(
    gate: tuple[int, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address with too many waiting connections leaves room for others and its newest."""
    port, count = gate
    monkeypatch.setattr(connection_gate, "OPEN_PER_ADDRESS", 5)
    monkeypatch.setattr(connection_gate, "OPENED_PER_SECOND", 1e-6)
    with ExitStack() as stack:
        flood = [stack.enter_context(opened(port, "127.0.0.2")) for _ in range(5)]
        assert all(answered(one, CLIENT_HELLO) for one in flood)
        sixth = stack.enter_context(opened(port, "127.0.0.2"))
        sixth.sendall(CLIENT_HELLO)
        assert is_closed(sixth)  # five are open
        waiting = [
            stack.enter_context(opened(port, "127.0.0.4"))
            for _ in range(3 * connection_gate.WAITING_PER_ADDRESS)
        ]
        newest = stack.enter_context(opened(port, "127.0.0.4"))
        assert answered(newest, CLIENT_HELLO)
        assert is_closed(waiting[0])  # it has made room
        other = stack.enter_context(opened(port, "127.0.0.3"))
        assert answered(other, CLIENT_HELLO)
        assert count == [7]


def test_a_gate_delays_addresses_that_connect_again_and_again(
    gate: tuple[int, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond its burst an address waits; a connection that closes before is never opened."""
    port, count = gate
    monkeypatch.setattr(connection_gate, "OPENED_PER_SECOND", 1e-6)
    monkeypatch.setattr(connection_gate, "TURN_SECONDS", 1.0)
    for _ in range(connection_gate.BURST):
        with opened(port, "127.0.0.2") as one:
            assert answered(one, CLIENT_HELLO)
    for is_impatient in (True, False):
        with opened(port, "127.0.0.2") as late, opened(port, "127.0.0.3") as other:
            late.sendall(CLIENT_HELLO)
            if is_impatient:
                late.close()
            else:
                assert is_closed(late)
            assert answered(other, CLIENT_HELLO)
    assert count == [connection_gate.BURST + 2]
