"""The bindings keep the limits of the Python code: short functions, lines that fit a screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

_BINDINGS = Path(__file__).parent.parent / "tmkit" / "core" / "bindings"
MAX_FUNCTION_LINES = 71
"""Limit of the lines of a function, docstrings included."""

MAX_COLUMNS = 100
"""Limit of the columns of a line."""

MAX_FILE_LINES = 546
"""Limit of the lines of a file."""


def _long_functions(source: str) -> Iterator[str]:
    """Yield the heads of functions that are too long, up to their brace at the margin."""
    head, start, opened = "", 0, False
    for number, line in enumerate(source.splitlines()):
        if not head and line[:1].isalpha() and "(" in line:
            head, start, opened = line, number, False
        if head and not opened:
            opened = line.endswith("{")
            if line.endswith((";", "}")):  # a declaration, or a function of one line
                head = ""
        elif head and line == "}":
            if number - start + 1 > MAX_FUNCTION_LINES:
                yield f"{head} ({number - start + 1} lines)"
            head = ""


@pytest.mark.parametrize("path", sorted(_BINDINGS.glob("*.[ch]pp")), ids=lambda path: path.name)
def test_bindings_are_short(path: Path) -> None:
    """Functions, lines and files keep their limits."""
    source = path.read_text(encoding="utf-8")
    assert list(_long_functions(source)) == []
    assert [line for line in source.splitlines() if len(line) > MAX_COLUMNS] == []
    assert len(source.splitlines()) <= MAX_FILE_LINES


def test_a_long_function_is_found() -> None:
    """A function of 72 lines is reported by its head, and one of 71 lines is not."""
    function = "void bind_it(nb::module_& m) {\n%s}\n"
    assert list(_long_functions(function % ("    m.attr(0);\n" * 69))) == []
    heads = list(_long_functions("// why\n" + function % ("    m.attr(0);\n" * 70)))
    assert heads == ["void bind_it(nb::module_& m) { (72 lines)"]
