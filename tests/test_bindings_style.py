"""The bindings keep the limits of the Python code: short functions, lines that fit a screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

_BINDINGS = Path(__file__).parent.parent / "tmkit" / "core" / "bindings"
_LONGEST_FUNCTION = 60  # lines, docstrings included
_LONGEST_LINE = 120
_LONGEST_FILE = 470


def _long_functions(source: str) -> Iterator[str]:
    """Yield the heads of functions that are too long: from a head at the margin to a brace there."""
    head, start, opened = "", 0, False
    for number, line in enumerate(source.splitlines()):
        if not head and line[:1].isalpha() and "(" in line:
            head, start, opened = line, number, False
        if head and not opened:
            opened = line.endswith("{")
            if line.endswith((";", "}")):  # a declaration, or a function of one line
                head = ""
        elif head and line == "}":
            if number - start + 1 > _LONGEST_FUNCTION:
                yield f"{head} ({number - start + 1} lines)"
            head = ""


@pytest.mark.parametrize("path", sorted(_BINDINGS.glob("*.[ch]pp")), ids=lambda path: path.name)
def test_bindings_are_short(path: Path) -> None:
    """No function has more than 60 lines, no line more than 120 columns, no file more than 470 lines."""
    source = path.read_text(encoding="utf-8")
    assert list(_long_functions(source)) == []
    assert [line for line in source.splitlines() if len(line) > _LONGEST_LINE] == []
    assert len(source.splitlines()) <= _LONGEST_FILE


def test_a_long_function_is_found() -> None:
    """One of 61 lines is reported by its head, one of 60 is not."""
    function = "void bind_it(nb::module_& m) {\n%s}\n"
    assert list(_long_functions(function % ("    m.attr(0);\n" * 58))) == []
    found = list(_long_functions("// why\n" + function % ("    m.attr(0);\n" * 59)))
    assert found == ["void bind_it(nb::module_& m) { (61 lines)"]
