"""Claims of the page ``docs/reference/papers.md``, and faults of the tests and commands on it."""

from __future__ import annotations

import ast
import difflib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from papers.rows import ROOT
from support.commands import parse_command

__all__ = ["Claim", "claims_of", "fault_of"]


@dataclass(frozen=True)
class Claim:
    """A row of a table of the page.

    Attributes:
        line: line of the page.
        paper: heading above the table.
        cells: claim with its place in the paper, and the code of the test or command.
    """

    line: int
    paper: str
    cells: tuple[str, ...]


def claims_of(text: str) -> Iterator[Claim]:
    """Yield the rows of the tables of a page."""
    heading = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| ") and not line.startswith("| Claim "):
            cells = tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            yield Claim(number, heading, cells)


def fault_of(claim: Claim) -> str:
    """Return the fault of a row, or an empty text."""
    if len(claim.cells) != 2 or not re.fullmatch(r"\S.* \([^)]+\)", claim.cells[0]):
        return f"{len(claim.cells)} cells, expected a claim with its place, and what shows it"
    shown = re.fullmatch(r"`([^`]+)`", claim.cells[1])
    if shown is None:
        return f"expected one test or command in backticks, not {claim.cells[1]}"
    code = shown.group(1)
    if code.startswith("tests/"):
        return _fault_of_test(code)
    if code.startswith("tmkit "):
        try:
            parse_command(code)
        except ValueError as error:
            return str(error)
        return ""
    return _fault_of_program(code)


def _fault_of_test(code: str) -> str:
    """Return the fault of the name of a test, or an empty text."""
    file, _, name = code.partition("::")
    if not (ROOT / file).is_file():
        return f"no file {file}"
    names = _tests_of(ROOT / file)
    if name in names:
        return ""
    nearest = difflib.get_close_matches(name, names, n=1)
    return f"no test {name!r} in {file}" + (f"; did you mean {nearest[0]!r}?" if nearest else "")


@cache
def _tests_of(file: Path) -> frozenset[str]:
    """Return the names of the test functions and classes of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, kinds) and node.name.startswith(("test_", "Test"))
    )


def _fault_of_program(code: str) -> str:
    """Return the fault of the call of a program of the clone, or an empty text."""
    words = shlex.split(code)
    if words[:2] == ["python", "-m"]:
        file, options = ROOT / words[2].replace(".", "/") / "__main__.py", words[3:]
    elif words[0] == "python":
        file, options = ROOT / words[1], words[2:]
    else:
        file, options = ROOT / words[0], words[1:]
    if not file.is_file():
        return f"no program {file.relative_to(ROOT)}"
    unknown = [word for word in options if word.startswith("-") and word not in file.read_text()]
    return f"{file.name} has no option {unknown[0]}" if unknown else ""
