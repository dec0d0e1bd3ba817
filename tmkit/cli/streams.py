"""Standard streams that survive a full disk, a closed pipe or a closed descriptor.

Output that cannot be written is dropped, and the command continues. :attr:`StandardStreams.failure`
is the reason of the loss. A pipe whose reader has gone (``| head -1``) is not a failure. Standard
descriptors that are closed when the program starts are opened: the first opened file would
otherwise get such a number and receive the output of libraries.

Invariant: outside the block ``sys.stdout`` and ``sys.stderr`` are the original streams.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from types import TracebackType
from typing import TextIO


class DroppingFile(io.FileIO):
    """A file that drops all output after the first ``failure``."""

    failure: OSError | None = None

    def write(self, data: object, /) -> int:
        """Write or drop bytes, and return their number."""
        if self.failure is None:
            try:
                written = super().write(data)  # type: ignore[arg-type]  # any buffer of bytes
            except OSError as error:
                self.failure = error
            else:
                return written
        return len(data)  # type: ignore[arg-type]


def text_file(raw: DroppingFile, *, like: TextIO | None = None) -> TextIO:
    """Return a text file on top of a binary file.

    Args:
        raw: binary file.
        like: file with the encoding and buffering to use. Defaults to UTF-8 and lines.
    """
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=like.encoding if like is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=raw.isatty() or like is None or bool(getattr(like, "line_buffering", False)),
        write_through=bool(getattr(like, "write_through", False)),
    )


class StandardStreams:
    """A block in which printing never fails; streams that a caller has replaced stay unchanged."""

    def __init__(self) -> None:
        self._original_streams: dict[str, TextIO | None] = {}
        self._output: DroppingFile | None = None

    @property
    def failure(self) -> str | None:
        """Reason why the standard output is incomplete; None if complete or its reader has gone."""
        error = self._output.failure if self._output is not None else None
        if error is None or isinstance(error, BrokenPipeError):
            return None
        return error.strerror or str(error)

    def flush(self) -> None:
        """Write buffered output, as far as possible."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # a caller may replace streams
                stream.flush()

    def __enter__(self) -> StandardStreams:
        # Writing to a descriptor that is open for reading fails, as to a closed one.
        for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
            try:
                os.fstat(number)
            except OSError:
                os.set_inheritable(os.open(os.devnull, flags), True)
        self.flush()
        for number, name in ((1, "stdout"), (2, "stderr")):
            stream: TextIO | None = getattr(sys, name)
            if stream is not getattr(sys, f"__{name}__"):
                continue
            with suppress(OSError):
                raw = DroppingFile(number, "w", closefd=False)
                setattr(sys, name, text_file(raw, like=stream))
                self._original_streams[name] = stream
                self._output = raw if name == "stdout" else self._output
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.flush()
        for name, stream in self._original_streams.items():
            setattr(sys, name, stream)
        self._original_streams.clear()
