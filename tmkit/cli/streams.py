"""Standard streams that fail without ending the command: a full disk, a closed pipe, a descriptor that is closed.

What cannot be printed is dropped, the command goes on, and :class:`StandardStreams` tells at the
end what failed. A pipe whose reader has gone (``| head -1``) is no failure. A descriptor that is
closed when the program starts is opened, or the first file that is opened would get its number and
whatever libraries print would land in that file.

Invariant: outside the block ``sys.stdout`` and ``sys.stderr`` are what they were before.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from types import TracebackType
from typing import TextIO


class DroppingFile(io.FileIO):
    """A file that drops what is written to it after the first ``failure``."""

    failure: OSError | None = None

    def write(self, data: object, /) -> int:
        """Write bytes, or drop them; return how many."""
        if self.failure is None:
            try:
                written = super().write(data)  # type: ignore[arg-type]  # whatever holds bytes
            except OSError as error:
                self.failure = error
            else:
                return written
        return len(data)  # type: ignore[arg-type]


def text_file(raw: DroppingFile, *, like: TextIO | None = None) -> TextIO:
    """Return a text file on top of a binary one, with encoding and buffering of another; UTF-8 by default."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=like.encoding if like is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=raw.isatty() or like is None or bool(getattr(like, "line_buffering", False)),
        write_through=bool(getattr(like, "write_through", False)),
    )


class StandardStreams:
    """A block in which printing never fails; streams that a caller has put in their place are left alone."""

    def __init__(self) -> None:
        self._before: dict[str, TextIO | None] = {}
        self._output: DroppingFile | None = None

    @property
    def failure(self) -> str | None:
        """Why the standard output is not complete, ``None`` when it is, or when its reader has gone."""
        error = self._output.failure if self._output is not None else None
        return (
            None
            if error is None or isinstance(error, BrokenPipeError)
            else error.strerror or str(error)
        )

    def flush(self) -> None:
        """Hand over what was printed, as far as it can be."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # of a caller's streams
                stream.flush()

    def __enter__(self) -> StandardStreams:
        # What is written to a descriptor that is open for reading fails, as it would with a closed
        # one.
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
                self._before[name] = stream
                self._output = raw if name == "stdout" else self._output
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.flush()
        for name, stream in self._before.items():
            setattr(sys, name, stream)
        self._before.clear()
