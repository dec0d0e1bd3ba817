"""A wrong header or body loses its own message on the input of the server, never the next one."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest
from hypothesis import given, strategies as st

pytest.importorskip("pygls")

from support.processes import run_process

from tmkit.lsp.framing import MessageInput

FAULTS = {
    "huge": b"Content-Length: 99999999999999999999\r\n\r\n",
    "huge, with a body": b'Content-Length: 64000001\r\n\r\n{"a": 1}',
    "no header": b'{"jsonrpc": "2.0", "id": 7, "method": "shutdown"}',
    "another header": b'Content-Type: application/json\r\n\r\n{"a": 1}',
    "negative": b"Content-Length: -5\r\n\r\nabcde",
    "a word": b"Content-Length: abc\r\n\r\n{}",
    "more digits than an integer may have": b"Content-Length: " + b"9" * 6000 + b"\r\n\r\n{}",
    "longer than the body": b'Content-Length: 200\r\n\r\n{"a": 4}',
    "no empty line": b'Content-Length: 8\r\n{"a": 4}',
    "a header without end": b"Content-Length: 8\r\n" + b"x: y\r\n" * 2000,
    "noise": bytes(range(256)) * 20,
    "a long line": b"a" * 200_000,
}
GOOD = [b'{"a": 1}', b'{"text": "Content-Length: 5\\r\\n\\r\\n"}', b"[" * 70_000, b"\xff" * 100]


class Pieces(io.BufferedIOBase):
    """An input that yields at most so many bytes a read."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = io.BytesIO(data), size

    def read1(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        return self._data.read(min(size, self._size))


def framed(body: bytes) -> bytes:
    """Return a message with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def messages(source: io.BufferedIOBase) -> list[bytes]:
    """Return the bodies of the messages in an input, read as the server reads it."""
    reader, bodies = MessageInput(source), []
    while header := reader.readline():
        assert reader.readline() == b"\r\n"
        bodies.append(reader.read(int(header.removeprefix(b"Content-Length: "))))
    return bodies


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_fault_costs_no_other_message(
    fault: str, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages before and after a fault arrive, and the log has the fault on one short line."""
    data = framed(GOOD[0]) + FAULTS[fault] + b"".join(map(framed, GOOD))
    with caplog.at_level(logging.ERROR):
        assert messages(Pieces(data, size)) == [GOOD[0], *GOOD]
    assert caplog.records
    assert all(
        "skipped" in record.getMessage() and len(record.getMessage()) < 500
        for record in caplog.records
    )


# A message that is too short takes the bytes of a fault that follows, which is right: nothing tells
# them apart.
PLAIN_FAULTS = sorted(set(FAULTS) - {"longer than the body"})


@given(
    st.lists(st.one_of(st.integers(0, len(GOOD) - 1), st.sampled_from(PLAIN_FAULTS)), max_size=8),
    st.integers(100, 70_000),
)
def test_any_sequence_of_messages_and_faults(parts: list[int | str], size: int) -> None:
    """Exactly the well-framed messages arrive, in order, for input in pieces of any size."""
    data = b"".join(FAULTS[part] if isinstance(part, str) else framed(GOOD[part]) for part in parts)
    assert messages(Pieces(data, size)) == [
        GOOD[part] for part in parts if not isinstance(part, str)
    ]


def test_other_spellings_of_a_header(caplog: pytest.LogCaptureFixture) -> None:
    """Other fields, lower case and bare line feeds are accepted; an empty message is no message."""
    heads = (
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nContent-Type: a\r\n\r\n",
        b"content-length:2\n\n",
    )
    with caplog.at_level(logging.ERROR):
        assert (
            messages(Pieces(b"".join(head + b"{}" for head in heads) + framed(b""), 7))
            == [b"{}"] * 3
        )
    assert not caplog.records


def test_an_input_that_ends_in_a_message() -> None:
    """Neither half a header nor half a body is a message."""
    for end in (b"Content-Le", b"Content-Length: 5\r\n", b"Content-Length: 5\r\n\r\n{}"):
        assert messages(Pieces(framed(b"{}") + end, 1000)) == [b"{}"]


BODIES = {
    "no JSON": b"{{{",
    "no object": b"[]",
    "no UTF-8": b"\xff\xff",
    "no request": b"{}",
    "deep": b"[" * 100_000,
}


def test_the_command_responds_after_all_faults() -> None:
    """``tmkit lsp`` responds to each request after a fault, and logs without a traceback."""

    def request(method: str, **fields: object) -> bytes:
        return framed(json.dumps({"jsonrpc": "2.0", "method": method, **fields}).encode())

    about: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
    place = {"textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}}
    data = request("initialize", id=1, params=about) + request("initialized", params={})
    for number, fault in enumerate([*FAULTS.values(), *map(framed, BODIES.values())]):
        data += fault + request("textDocument/hover", id=100 + number, params=place)
    data += request("shutdown", id=2) + request("exit")
    done = run_process(
        [sys.executable, "-m", "tmkit.cli", "lsp"],
        input=data,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    answers = [json.loads(body) for body in messages(Pieces(done.stdout, 1000))]
    expected = [1, *range(100, 100 + len(FAULTS) + len(BODIES)), 2]
    assert [answer["id"] for answer in answers if answer.get("id") is not None] == expected
    assert b"skipped" in done.stderr
    assert b"Traceback" not in done.stderr
