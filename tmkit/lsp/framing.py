"""Framing of the messages to the language server, with recovery from wrong headers.

A message is ``Content-Length: N``, an empty line and N bytes of JSON. :class:`MessageInput` lies
between the standard input and the server, and passes on well-framed messages only:

::

    editor  ──▶  Content-Length: 120 ...        ──▶  server
            ──▶  {"jsonrpc": ...                skipped, logged
            ──▶  Content-Length: 99999999 ...   skipped, logged
            ──▶  Content-Length: 80 ...         ──▶  server

A JSON string contains no unescaped line end, so no part of a message looks like a header line.
After a fault, reading continues at the next header line.

Invariant: at most one message of 64 MB and one block of input are in memory.
"""

from __future__ import annotations

import io
import logging
import re

_MAX_BYTES = 64_000_000
"""Size of the largest message, twice that of the largest text that is read [bytes]."""
_MAX_HEADER_BYTES = 4096
"""Size of the largest header [bytes]."""
_BLOCK_BYTES = 65_536
"""Size of one read of the input [bytes]."""
_LENGTH = re.compile(rb"Content-Length:[ \t]*(\d{1,100})[ \t]*\r?\n", re.IGNORECASE)
_OTHER_FIELDS = re.compile(rb"(?:(?!Content-Length:)[\w-]+:[^\n]*\n)*", re.IGNORECASE)
_EMPTY_LINE = re.compile(rb"\r?\n")
_UNFINISHED_FIELD = re.compile(rb"(?:(?!Content-Length:)[\w-]+(?::[^\n]*)?|\r)?", re.IGNORECASE)
_logger = logging.getLogger(__name__)


class MessageInput(io.RawIOBase):
    """Binary input of the well-framed messages of another input.

    Args:
        source: the other input, such as ``sys.stdin.buffer``.
    """

    def __init__(self, source: io.BufferedIOBase) -> None:
        super().__init__()
        self._source = source
        self._buffer = bytearray()
        self._message = io.BytesIO()

    def readable(self) -> bool:
        """Return true."""
        return True

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line of a header, or no bytes at the end of the input."""
        if not (line := self._message.readline(size)):
            self._message = io.BytesIO(self._next_message())
            line = self._message.readline(size)
        return line

    def read(self, size: int = -1, /) -> bytes:
        """Return bytes of the message whose header was read."""
        return self._message.read(size)

    def _next_message(self) -> bytes:
        """Return the next message with its header, or no bytes at the end of the input."""
        while (length := self._take_length()) is not None:
            if not self._take_rest_of_header():
                _logger.error("a message is skipped: no empty line ends its header")
            elif length > _MAX_BYTES:
                _logger.error(
                    "a message of %d bytes is skipped, expected at most %d", length, _MAX_BYTES
                )
            elif (body := self._take_body(length)) is None:
                _logger.error(
                    "a message is skipped: it is shorter than the %d bytes of its header", length
                )
            elif length:
                return b"Content-Length: %d\r\n\r\n%b" % (length, body)
        return b""

    def _take_length(self) -> int | None:
        """Drop bytes up to the next header line, and return its length.

        Returns:
            the length, or None at the end of the input.
        """
        dropped = bytearray()  # the first of the dropped bytes
        while (line := _LENGTH.search(self._buffer)) is None:
            excess = max(len(self._buffer) - _MAX_HEADER_BYTES, 0)
            dropped += self._buffer[: min(excess, _MAX_HEADER_BYTES)]
            del self._buffer[:excess], dropped[_MAX_HEADER_BYTES:]
            if not self._read_block():
                break
        dropped += self._buffer[: line.start() if line is not None else None]
        if dropped.strip() and not _OTHER_FIELDS.fullmatch(dropped):
            _logger.error(
                "input without the header Content-Length is skipped: %r", bytes(dropped[:80])
            )
        length = int(line[1]) if line is not None else None
        del self._buffer[: line.end() if line is not None else None]
        return length

    def _take_rest_of_header(self) -> bool:
        """Remove the other fields of a header and its empty line; return whether it had one."""
        while True:
            fields = _OTHER_FIELDS.match(self._buffer)
            end = fields.end() if fields is not None else 0
            if end > _MAX_HEADER_BYTES:
                return False
            if (empty := _EMPTY_LINE.match(self._buffer, end)) is not None:
                del self._buffer[: empty.end()]
                return True
            may_go_on = len(self._buffer) <= _MAX_HEADER_BYTES and _UNFINISHED_FIELD.fullmatch(
                self._buffer, end
            )
            if not may_go_on or not self._read_block():
                return False

    def _take_body(self, length: int) -> bytes | None:
        """Remove and return a body.

        Returns:
            the body, or None if the input has fewer bytes; then the next header remains.
        """
        searched = 0
        while True:
            if (line := _LENGTH.search(self._buffer, searched, length)) is not None:
                del self._buffer[: line.start()]
                return None
            if len(self._buffer) >= length:
                body = bytes(self._buffer[:length])
                del self._buffer[:length]
                return body
            searched = max(len(self._buffer) - _MAX_HEADER_BYTES, 0)
            if not self._read_block():
                self._buffer.clear()
                return None

    def _read_block(self) -> bool:
        """Append available bytes of the input; return whether there were any before its end."""
        block = self._source.read1(_BLOCK_BYTES)
        self._buffer += block
        return bool(block)
