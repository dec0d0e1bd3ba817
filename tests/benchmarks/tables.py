"""The frame of the scripts that print tables: command line, clocks, Markdown, and writing a page.

A script makes its parser by :func:`table_parser`, which has ``--out``. It ends with
:func:`deliver`, or prints rows as they come by :class:`LiveTable`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path


def table_parser(doc: str | None, **options: object) -> argparse.ArgumentParser:
    """Return a parser with ``--out``, described by the first line of a script's docstring."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n", 1)[0], **options)  # type: ignore[arg-type]
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    return parser


def deliver(text: str, file: Path | None) -> None:
    """Write a page, or print it where no file is given."""
    if file is None:
        print(text)
    else:
        file.write_text(text, encoding="utf-8")


def markdown_row(cells: Iterable[object]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def markdown_head(titles: str) -> list[str]:
    """Return the first two lines of a table, of titles that are separated by bars."""
    return [f"| {titles} |", "|" + "---|" * (titles.count(" | ") + 1)]


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table."""
    return [*markdown_head(" | ".join(titles)), *map(markdown_row, rows)]


class LiveTable:
    """Lines that are printed as they come, and written at the end.

    Args:
        lines: the first lines.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._lines: list[str] = []
        self.add(*lines)

    def add(self, *lines: str) -> None:
        """Print further lines."""
        self._lines += lines
        if lines:
            print("\n".join(lines), flush=True)

    def write(self, file: Path | None) -> None:
        """Write all lines to a file, where one is given."""
        if file is not None:
            file.write_text("\n".join(self._lines) + "\n", encoding="utf-8")


def processor_time(work: Callable[[], object]) -> float:
    """Return the processor time of a call in this process [s]; its result is dropped."""
    began = time.process_time()
    work()
    return time.process_time() - began


def least_times(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Return the least processor time of each call [s].

    They take turns, and each round begins with another one, since the first finds cold caches.
    """
    least = [math.inf] * len(works)
    for first in range(rounds):
        for turn in range(len(works)):
            number = (first + turn) % len(works)
            least[number] = min(least[number], processor_time(works[number]))
    return least
