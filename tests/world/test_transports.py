"""Laws of all transports, and of the recording one: its log has all acknowledged records."""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.effort import scaled_examples
from support.processes import Process, run_process
from support.served_worlds import certificate_of_this_machine, free_address

from tmkit.errors import (
    ArgumentError,
    LogDamageError,
    MissingExtraError,
    OutputError,
    ServiceError,
    UnknownNameError,
)
from tmkit.world import InProcessTransport
from tmkit.world.service.recording import RecordingTransport
from tmkit.world.service.transport_registry import load_transport
from tmkit.world.service.transports import Transport
from tmkit.world.service.zenoh.transport import ZenohTransport

Pair = tuple[Transport, Callable[[], Transport]]


def pair_of(kind: str, folder: Path) -> Pair:
    """Return the transport of a server, and what makes those of its clients."""
    if kind.startswith("recording "):
        server, client = pair_of(kind.removeprefix("recording "), folder)
        return RecordingTransport(server, folder / "log"), client
    if kind == "zenoh":
        pytest.importorskip("zenoh")
        address = free_address()
        return ZenohTransport(address, listen=True), lambda: load_transport(
            "zenoh", address, listen=False
        )
    shared = InProcessTransport()
    return shared, lambda: shared


@pytest.fixture(params=["in-process", "zenoh", "recording in-process", "recording zenoh"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """Yield a server's transport and a maker of clients'; all are closed."""
    server, client = pair_of(request.param, tmp_path)
    with ExitStack() as stack:
        stack.callback(server.close)

        def made() -> Transport:
            transport = client()
            stack.callback(transport.close)
            return transport

        yield server, made


def test_requests_are_answered(pair: Pair) -> None:
    """Empty, large and arbitrary bytes arrive unchanged; each reply belongs to its request."""
    server, client = pair
    server.serve(lambda message, reply: reply(message[::-1]))
    asking = client()
    for message in (b"", b"a", bytes(range(256)), os.urandom(3_000_000)):
        assert asking.request(message, timeout=300.0) == message[::-1]
    others, wrong = [client() for _ in range(3)], []

    def ask(transport: Transport, number: int) -> None:
        for k in range(20):
            message = f"{number} {k}".encode()
            if transport.request(message, timeout=300.0) != message[::-1]:
                wrong.append(message)

    threads = [
        threading.Thread(target=ask, args=(one, k)) for k, one in enumerate([*others, *others])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_answers_may_come_later_in_any_order(pair: Pair) -> None:
    """A server may keep the function that answers, and use it from another thread after others."""
    server, client = pair
    waiting: dict[bytes, Callable[[bytes], None]] = {}
    came = threading.Semaphore(0)

    def handle(message: bytes, reply: Callable[[bytes], None]) -> None:
        waiting[message] = reply
        came.release()

    server.serve(handle)
    answers: dict[bytes, bytes | None] = {}
    transport = client()

    def ask(message: bytes) -> None:
        answers[message] = transport.request(message, timeout=60.0)

    threads = [threading.Thread(target=ask, args=(name,)) for name in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert came.acquire(timeout=60.0)
    for name in (b"c", b"a", b"b"):
        waiting[name](name * 2)
    for thread in threads:
        thread.join()
    assert answers == {b"a": b"aa", b"b": b"bb", b"c": b"cc"}


def test_no_answer_is_none(pair: Pair) -> None:
    """Without a server or a reply, a request is None; a later server is reached."""
    server, client = pair
    asking = client()
    assert asking.request(b"a", timeout=0.01) is None
    server.serve(lambda message, reply: None if message == b"silent" else reply(b"ok"))
    assert asking.request(b"silent", timeout=0.01) is None
    assert any(asking.request(b"a", timeout=1.0) == b"ok" for _ in range(100))


def test_a_closed_transport_serves_no_more(pair: Pair) -> None:
    """After it is closed, requests have no reply."""
    server, client = pair
    server.serve(lambda _, reply: reply(b"ok"))
    asking = client()
    assert asking.request(b"a", timeout=300.0) == b"ok"
    if isinstance(server, RecordingTransport):
        server.append(b"record")
        server._transport.close()
    else:
        server.close()
    assert asking.request(b"a", timeout=0.05) is None


def test_transports_are_loaded_by_name() -> None:
    """Entry points are searched; an unknown name, world or setting is an error."""
    with pytest.raises(UnknownNameError, match="unknown transport 'zeno'; did you mean 'zenoh'"):
        load_transport("zeno", "tcp/127.0.0.1:1", listen=True)
    pytest.importorskip("zenoh")
    with pytest.raises(ArgumentError, match=r"'a/\*\*' is not a name of a world"):
        load_transport("zenoh", "tcp/127.0.0.1:1", listen=True, world="a/**")
    with pytest.raises(ArgumentError, match="zenoh rejects the setting 'no/such'"):
        load_transport("zenoh", "tcp/127.0.0.1:1", listen=True, settings={"no/such": 1})
    address = free_address()
    first = ZenohTransport(address, listen=True)
    first.serve(lambda message, reply: reply(message))
    with pytest.raises(ServiceError, match=f"cannot listen at {address}"):
        ZenohTransport(address, listen=True).serve(lambda message, reply: reply(message))
    with pytest.raises(
        ServiceError, match=r"'tls/localhost:99999': expected .* with a port from 0 to 65535"
    ):
        ZenohTransport("tls/localhost:99999", listen=True)
    for address in ("tls/a..b:1", "tcp/no.such.host.invalid:1"):
        with pytest.raises(ServiceError, match=f"cannot listen at {address}: "):
            ZenohTransport(address, listen=True).serve(print)
    with pytest.raises(ServiceError, match="cannot listen at nowhere/1"):
        ZenohTransport("nowhere/1", listen=True).serve(lambda message, reply: reply(message))
    with pytest.raises(
        ArgumentError, match=r"'listen/endpoints': Endpoints must be of the form .*: no address$"
    ):
        ZenohTransport("no address", listen=True)
    first.close()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without zenoh, the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "zenoh", None)
    with pytest.raises(
        MissingExtraError, match="the transport 'zenoh' needs the extra 'world': pip install"
    ):
        load_transport("zenoh", "tcp/127.0.0.1:1", listen=False)


def test_clients_of_zenoh_cannot_answer_for_the_server() -> None:
    """A client that declares the queryable of a world receives no queries and no tokens."""
    zenoh = pytest.importorskip("zenoh")
    address = free_address()
    server = ZenohTransport(address, listen=True)
    server.serve(lambda _, reply: reply(b"true"))
    config = zenoh.Config()
    for path, value in [("mode", '"client"'), ("connect/endpoints", f'["{address}"]')]:
        config.insert_json5(path, value)
    seen = []
    with zenoh.open(config) as intruder:
        intruder.declare_queryable("tmkit/world", lambda query: seen.append(query), complete=True)
        intruder.declare_subscriber("tmkit/**", lambda sample: seen.append(sample))
        client = ZenohTransport(address, listen=False)
        assert [client.request(b"secret", timeout=300.0) for _ in range(5)] == [b"true"] * 5
        client.close()
    server.close()
    assert seen == []


# --- certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two authorities, ``ours`` and ``other``, and their certificates."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("ours", "other"):
        certificate_of_this_machine(folder, name)
    return folder


def tls(folder: Path, **files: object) -> dict[str, object]:
    """Return settings of TLS; files are in a folder."""
    return {
        f"transport/link/tls/{name}": str(folder / value) if isinstance(value, str) else value
        for name, value in files.items()
    }


def test_certificates_are_checked_by_both_sides(certificates: Path) -> None:
    """Valid certificates connect; an invalid one is rejected at once without harm to others."""
    key = {"listen_private_key": "ours.key", "listen_certificate": "ours.pem"}
    mine = {
        "connect_private_key": "ours.key",
        "connect_certificate": "ours.pem",
        "enable_mtls": True,
    }
    theirs = {**mine, "connect_private_key": "other.key", "connect_certificate": "other.pem"}
    ours = {"root_ca_certificate": "ours.ca.pem"}
    cases: list[tuple[dict[str, object], dict[str, object], str]] = [
        ({}, ours, ""),
        (
            {},
            {"root_ca_certificate": "other.ca.pem"},
            "the certificate of the server is rejected: unable to get",
        ),
        ({}, {}, "the certificate of the server is rejected"),
        (
            {},
            {"root_ca_certificate": "none.pem"},
            "a certificate or key cannot be read: No such file",
        ),
        ({**ours, "enable_mtls": True}, {**ours, **mine}, ""),
        ({**ours, "enable_mtls": True}, {**ours, **theirs}, "TLS fails: .*unknown ca"),
        ({**ours, "enable_mtls": True}, ours, "TLS fails: .*certificate required"),
    ]
    for server_files, client_files, refusal in cases:
        address = free_address("tls").replace("127.0.0.1", "localhost")
        server = ZenohTransport(
            address, listen=True, settings=tls(certificates, **key, **server_files)
        )
        server.serve(lambda message, reply: reply(message))
        clients = [
            ZenohTransport(address, listen=False, settings=tls(certificates, **files))
            for files in (client_files, {**ours, **mine})
        ]
        if refusal:
            with pytest.raises(ServiceError, match=f"no connection to {address}: {refusal}"):
                clients[0].request(b"a", timeout=300.0)
        else:
            assert clients[0].request(b"a", timeout=300.0) == b"a"
        assert clients[1].request(b"b", timeout=300.0) == b"b"
        for transport in (*clients, server):
            transport.close()
    for files, reason in [
        ({}, "Missing TLS private key"),
        ({**key, "listen_private_key": "none.key"}, "Invalid TLS private key file"),
        ({**key, "listen_private_key": "other.key"}, "KeyMismatch"),
    ]:
        with pytest.raises(ServiceError, match=f"cannot listen at {address}: .*{reason}"):
            ZenohTransport(address, listen=True, settings=tls(certificates, **files)).serve(print)


def test_a_server_without_tls_is_not_reached_by_it() -> None:
    """A client that speaks TLS to a plain server gets no answer, and no other error."""
    address = free_address()
    server = ZenohTransport(address, listen=True)
    server.serve(lambda message, reply: reply(message))
    client = ZenohTransport(address.replace("tcp/", "tls/"), listen=False)
    assert client.request(b"a", timeout=1.0) is None
    client.close()
    server.close()


# --- the log


def recorded(path: Path, *records: bytes, restart: int = -1) -> list[bytes]:
    """Append records to a log, and return those that were there from the last restart on."""
    transport = RecordingTransport(InProcessTransport(), path)
    known = [*transport.read_records()]
    for number, record in enumerate(records):
        transport.append(record, is_restart=number == restart)
    transport.close()
    return known


def test_what_is_kept_is_there_again(tmp_path: Path) -> None:
    """Records come back in order, from the last restart on, whatever bytes they are."""
    path = tmp_path / "log"
    assert recorded(path, b"one", b"", bytes(range(256)) * 100) == []
    assert recorded(path, b"tmkr" * 50) == [b"one", b"", bytes(range(256)) * 100]
    assert recorded(path, b"new", b"more", restart=0) == [
        b"one",
        b"",
        bytes(range(256)) * 100,
        b"tmkr" * 50,
    ]
    assert recorded(path) == [b"new", b"more"]


def test_a_restart_begins_the_file_anew(tmp_path: Path) -> None:
    """A restart removes earlier records, keeps mode and link, and damage is detected."""
    path, link, left = tmp_path / "log", tmp_path / "link", tmp_path / "log~tmkr"
    recorded(path, bytes(100_000))
    path.chmod(0o640)
    link.symlink_to(path)
    left.write_bytes(b"of a process that was killed")
    recorded(link, b"old", b"restart", b"more", restart=1)
    data, new = path.read_bytes(), 3 * 21 + len(b"restart" + b"more")
    assert (len(data), path.stat().st_mode & 0o777, link.is_symlink(), left.exists()) == (
        new,
        0o640,
        True,
        False,
    )
    for at in range(4, 21 + len(b"restart")):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        with pytest.raises(LogDamageError, match="the record at offset 0 is damaged"):
            RecordingTransport(InProcessTransport(), path)
    path.write_bytes(data)
    assert recorded(path) == [b"restart", b"more"]
    transport = RecordingTransport(InProcessTransport(), path)
    transport.append(b"again", is_restart=True)
    transport.close()
    assert transport.restarts == 1


def test_a_file_that_cannot_be_begun_anew_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for a second file, the restart is appended, and nothing is lost."""
    path = tmp_path / "log"
    transport = RecordingTransport(InProcessTransport(), path)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", refuse)
    transport.append(b"one")
    transport.append(b"restart", is_restart=True)
    transport.append(b"more")
    transport.close()
    assert (transport.failure, transport.restarts, [*tmp_path.iterdir()]) == (None, 0, [path])
    assert recorded(path) == [b"restart", b"more"]


def test_answers_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No reply is sent before earlier records are synchronised; many share one."""
    allowed, synchronised = threading.Semaphore(0), list[int]()
    real = os.fdatasync

    def held(file: int) -> None:
        assert allowed.acquire(timeout=60.0)
        real(file)
        synchronised.append(1)

    inner = InProcessTransport()
    transport = RecordingTransport(inner, tmp_path / "log")
    monkeypatch.setattr(os, "fdatasync", held)
    order = list[str]()

    def handle(message: bytes, reply: Callable[[bytes], None]) -> None:
        if message != b"read":
            transport.append(message)
        reply(message)

    transport.serve(handle)
    assert inner.request(b"read", timeout=60.0) == b"read"  # nothing waits: at once
    for name in (b"a", b"b", b"read"):
        inner._handler(
            name, lambda answer: order.append(f"{answer.decode()} after {len(synchronised)}")
        )  # type: ignore[misc]
    assert order == []
    allowed.release(2)
    transport.close()
    assert [entry.split()[0] for entry in order] == ["a", "b", "read"]
    assert order[0] == "a after 1" and len(synchronised) <= 2  # noqa: PT018


def test_a_full_disk_rejects_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that cannot be fully written raises and leaves no trace."""
    path = tmp_path / "log"
    recorded(path, b"before")
    transport = RecordingTransport(InProcessTransport(), path)
    for room in (0, 1, 20, 25):  # bytes of the record that the disk still takes
        begin = transport.size

        def write(file: int, data: bytes, begin: int = begin, room: int = room) -> int:
            left = begin + room - os.fstat(file).st_size
            if left <= 0:
                raise OSError(28, "No space left on device")
            return os.pwrite(file, data[:left], 0)  # the file is open for appending

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            with pytest.raises(
                OutputError, match="the log cannot be written: No space left on device"
            ):
                transport.append(b"rejected")
        assert path.stat().st_size == begin
        transport.append(b"after %d" % room)
    transport.close()
    assert transport.failure is None
    assert recorded(path) == [b"before", *(b"after %d" % room for room in (0, 1, 20, 25))]


def test_a_record_can_be_withdrawn(tmp_path: Path) -> None:
    """A truncated record is gone, on disk or not; those before and after it stay."""
    path, inner = tmp_path / "log", InProcessTransport()
    transport = RecordingTransport(inner, path)
    transport.serve(lambda _, reply: reply(b""))
    for number in range(6):
        transport.append(b"kept %d" % number)
        size = transport.size
        transport.append(b"withdrawn %d" % number)
        if number % 2:
            assert inner.request(b"", timeout=60.0) == b""  # it is on disk
        transport.truncate(size)
        transport.truncate(size)
    transport.close()
    assert recorded(path) == [b"kept %d" % number for number in range(6)]


def test_records_beyond_the_limit_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that could not be read again is not written."""
    monkeypatch.setattr("tmkit.world.service.recording._MAX_RECORD_SIZE", 100)
    transport = RecordingTransport(InProcessTransport(), tmp_path / "log")
    with pytest.raises(OutputError, match="a record of 101 bytes; expected at most 100"):
        transport.append(bytes(101))
    transport.append(bytes(100))
    transport.close()
    with pytest.raises(OutputError, match="the log cannot be written: it is closed"):
        transport.append(b"")
    assert recorded(tmp_path / "log") == [bytes(100)]


def test_a_disk_that_fails_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed synchronisation no reply is sent, and records are rejected."""
    path = tmp_path / "log"
    recorded(path, b"before")
    inner = InProcessTransport()
    transport = RecordingTransport(inner, path)

    def fail(file: int) -> None:
        raise OSError(5, "Input/output error")

    def handle(message: bytes, reply: Callable[[bytes], None]) -> None:
        transport.append(message)
        reply(message)

    transport.serve(handle)
    monkeypatch.setattr(os, "fdatasync", fail)
    assert inner.request(b"a", timeout=0.1) is None
    transport._thread.join()
    assert transport.failure == f"{path}: Input/output error"
    for is_restart in (False, True):
        with pytest.raises(OutputError, match=r"the log cannot be written: .*Input/output error"):
            transport.append(b"b", is_restart=is_restart)
    transport.close()
    monkeypatch.undo()
    assert recorded(path)[0] == b"before"


def test_a_torn_tail_is_cut_with_a_note(tmp_path: Path) -> None:
    """If the last record is incomplete or damaged, the others and later ones are valid."""
    path = tmp_path / "log"
    recorded(path, b"one")
    whole = path.read_bytes()
    recorded(path, b"the second one")
    both = path.read_bytes()
    for end in range(len(whole) + 1, len(both)):
        path.write_bytes(both[:end])
        transport = RecordingTransport(InProcessTransport(), path)
        assert transport.notes == (
            (
                f"{path}: {end - len(whole)} bytes at offset {len(whole)} were never acknowledged"
                " and are cut"
            ),
        )
        transport.close()
        assert recorded(path, b"next") == [b"one"]
        assert recorded(path) == [b"one", b"next"]
    for at in range(len(whole), len(both)):
        path.write_bytes(both[:at] + bytes([both[at] ^ 0xFF]) + both[at + 1 :])
        assert recorded(path) == [b"one"]


def test_damage_of_what_was_acknowledged_is_an_error(tmp_path: Path) -> None:
    """A damaged byte before the last record is named by its offset; nothing is cut."""
    path = tmp_path / "log"
    ends = [0]
    for record in (b"one", b"second", b"third"):
        recorded(path, record)
        ends.append(path.stat().st_size)
    data = path.read_bytes()
    for at in range(4, ends[2]):  # without the first four bytes it is no log
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        begin = max(end for end in ends if end <= at)
        with pytest.raises(
            LogDamageError, match=f"the record at offset {begin} is damaged"
        ) as caught:
            RecordingTransport(InProcessTransport(), path)
        assert (caught.value.offset, caught.value.kind) == (begin, "log")  # type: ignore[attr-defined]
        assert path.stat().st_size == len(data)


def test_records_of_one_batch_may_be_torn_in_any_order(tmp_path: Path) -> None:
    """After a power cut, a later part of an unacknowledged batch may be on disk alone."""
    path = tmp_path / "log"
    recorded(path, b"one")
    size = path.stat().st_size

    def framed(record: bytes) -> bytes:
        checked = struct.pack("<QB", size, 0) + record
        return struct.pack("<4sII", b"tmkr", len(record), zlib.crc32(checked)) + checked

    with path.open("ab") as file:
        file.write(bytes(len(framed(b"two"))) + framed(b"three"))
    assert recorded(path) == [b"one"]


@given(st.data())
@settings(
    max_examples=scaled_examples(0.5), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_bytes_are_a_log_or_an_error(tmp_path: Path, data: st.DataObject) -> None:
    """A random or damaged file gives records of the log or an error with an offset."""
    path = tmp_path / "log"
    path.unlink(missing_ok=True)
    records = data.draw(st.lists(st.binary(max_size=20), max_size=6))
    for record in records:
        recorded(path, record)
    content = bytearray(path.read_bytes() if path.exists() else b"")
    for _ in range(data.draw(st.integers(0, 3))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content) + data.draw(st.binary(max_size=40)))
    before = path.read_bytes()
    try:
        found = recorded(path)
    except ServiceError as error:
        is_named = "not a log" in str(error) or 0 <= error.data["offset"] < len(content)
        assert is_named
        assert path.read_bytes() == before
    else:
        assert found == records[: len(found)]


def test_files_that_are_no_log_are_rejected(tmp_path: Path) -> None:
    """A folder, a pipe, a missing folder, and a log in use are errors that name it."""
    with pytest.raises(OutputError, match=f"{tmp_path}: Is a directory"):
        RecordingTransport(InProcessTransport(), tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ServiceError, match="pipe: expected a regular file"):
        RecordingTransport(InProcessTransport(), tmp_path / "pipe")
    with pytest.raises(OutputError, match="No such file"):
        RecordingTransport(InProcessTransport(), tmp_path / "none" / "log")
    used = RecordingTransport(InProcessTransport(), tmp_path / "log")
    with pytest.raises(ServiceError, match="log: another process uses the log"):
        RecordingTransport(InProcessTransport(), tmp_path / "log")
    used.close()


JOB = """
import sys, os
from tmkit.world import InProcessTransport
from tmkit.world.service.recording import RecordingTransport
inner = InProcessTransport()
transport = RecordingTransport(inner, sys.argv[1])
transport.serve(lambda message, reply: (transport.append(message), reply(b"")))
first = len([*transport.read_records()])
for number in range(first, 100_000):
    inner.request(b"%d" % number, timeout=60.0)
    os.write(1, b"%d\\n" % number)
"""


EACH_CALL = """
import os, sys
from pathlib import Path
from tmkit.world import InProcessTransport
from tmkit.world.service.recording import RecordingTransport

CALLS = ("open", "write", "fdatasync", "fsync", "fchmod", "rename", "unlink", "close")

def count(path, report, last):
    calls = 0
    def killed_at(name, call):
        def counted(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == last:
                if name == "write":
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os._exit(9)
            return call(*arguments, **options)
        return counted
    tell = os.write
    for name in CALLS:
        setattr(os, name, killed_at(name, getattr(os, name)))
    inner = InProcessTransport()
    transport = RecordingTransport(inner, path)
    known = [int(record) for record in transport.read_records()]
    def handle(message, reply):
        transport.append(message, is_restart=int(message) % 3 == 0)
        reply(b"")
    transport.serve(handle)
    for number in range(known[-1] + 1, known[-1] + 8):
        inner.request(b"%d" % number, timeout=60.0)
        tell(report, b"%d " % number)
    transport.close()

for last in range(1, 1000):
    path = Path(sys.argv[1], str(last))
    first = RecordingTransport(InProcessTransport(), path)
    first.append(b"1")
    first.close()
    reader, report = os.pipe()
    if not (child := os.fork()):
        count(path, report, last)
        os._exit(0)
    os.close(report)
    end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told = int((b"1 " + os.read(reader, 1000)).split()[-1])
    os.close(reader)
    transport = RecordingTransport(InProcessTransport(), path)
    found = [int(record) for record in transport.read_records()]
    transport.close()
    assert found == [*range(found[0], found[-1] + 1)], (last, told, found)
    assert told <= found[-1] <= told + 1, (last, told, found)
    assert found[0] == 1 or found[0] % 3 == 0, (last, found)
    if end == 0:
        print(last)
        break
"""


def test_a_kill_at_any_call_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """A process that restarts its log often is killed at each of its system calls."""
    job = run_process(
        [sys.executable, "-c", EACH_CALL, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert job.returncode == 0, job.stderr
    assert int(job.stdout) > 25


def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """A process is killed repeatedly while it writes; all printed numbers are recorded."""
    path, acknowledged = tmp_path / "log", -1
    for count in (1, 7, 40):
        job = Process([sys.executable, "-c", JOB, str(path)], stdout=subprocess.PIPE)
        assert job.stdout is not None
        lines = [*itertools.islice(job.stdout, count)]
        job.kill()
        lines += [
            line for line in job.communicate()[0].splitlines(keepends=True) if line.endswith(b"\n")
        ]
        acknowledged = int(lines[-1])
        numbers = [int(record) for record in recorded(path)]
        assert numbers == [*range(len(numbers))]
        assert len(numbers) > acknowledged
