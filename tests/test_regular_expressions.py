"""Regular expressions of the package match alike in every supported version of Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tmkit

PACKAGE = Path(tmkit.__file__).parent
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")


def _possessive_groups(source: str) -> list[int]:
    """Return the lines of string constants with a group that is repeated possessively."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and POSSESSIVE_GROUP.search(node.value)
    ]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (r"""P = r"(?:a|b)*+c" """, [1]),
        (r"""P = r"(?>a|b)" """, [1]),
        (r"""P = r"(?:a|b){2,}+" """, [1]),
        (r"""P = r"[^a]*+(?:b)*" """, []),
    ],
)
def test_the_check_finds_possessive_groups(source: str, lines: list[int]) -> None:
    """Single characters may be repeated possessively."""
    assert _possessive_groups(source) == lines


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 matches texts that such patterns do not match (cpython 106052)."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in _possessive_groups(path.read_text(encoding="utf-8"))
    ]
    assert not found
