"""Source text of a checkout: its modules, functions, docstrings and the sentences of these.

Like a linter, it reads text and imports nothing of tmkit.

Invariants: equal checkouts have equal values, in the order of the paths and lines; only the
standard library is needed.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
"""The nodes of functions."""

_ITEM = re.compile(r"[*-] |\d+\. |\|")
_FIELD = re.compile(r"\w[\w., ]{0,40}: ")
_SECTION = re.compile(r"[A-Z]\w+:")
_TOOL_COMMENTS = ("fmt:", "noqa", "pragma", "type:")
_NO_PROSE = (">>>", "..", "==", "--")
_MARKUP = re.compile(r":\w+:`[^`]*`|``[^`]*``")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|et al|Sec|Eq|eq|vs|cf|Fig|no|Vol)\.")
_SENTENCE_END = re.compile(r"""(?<=[.!?])[)"']*\s+(?=[A-Z("'`:])""")


class Place(NamedTuple):
    """Counted place: a path within the checkout, a line from 1 (0 for a whole file), its text."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.text}" if self.line else f"{self.path} {self.text}"


@dataclass(frozen=True)
class Module:
    """Python file with its syntax tree; the path is within the checkout, with forward slashes."""

    path: str
    text: str
    tree: ast.Module

    def place(self, node: ast.AST, text: str) -> Place:
        """Return the place of a node."""
        return Place(self.path, node.lineno, text)  # type: ignore[attr-defined]  # statements and expressions have it

    @property
    def is_private(self) -> bool:
        """Return whether the module or one of its packages begins with an underscore."""
        return any(part.startswith("_") and part != "__init__.py" for part in self.path.split("/"))

    @property
    def package(self) -> str:
        """The folder below tmkit, such as ``tamp``; of a file directly there, its name."""
        return self.path.split("/")[1]


@dataclass(frozen=True)
class Checkout:
    """The files of a checkout.

    Args:
        root: its folder.
    """

    root: Path

    @cached_property
    def modules(self) -> list[Module]:
        """The modules of tmkit, in the order of their paths."""
        return [self.parse(path) for path in sorted((self.root / "tmkit").rglob("*.py"))]

    def parse(self, path: Path) -> Module:
        """Return a file, parsed."""
        text = path.read_text(encoding="utf-8")
        return Module(path.relative_to(self.root).as_posix(), text, ast.parse(text, str(path)))

    @cached_property
    def project(self) -> dict[str, object]:
        """The table ``project`` of pyproject.toml."""
        table: dict[str, object] = tomllib.loads(
            (self.root / "pyproject.toml").read_text(encoding="utf-8")
        )["project"]
        return table


class Measure(NamedTuple):
    """A figure: its description, and the function that yields its places."""

    description: str
    find: Callable[[Checkout], Iterator[Place]]


class Function(NamedTuple):
    """A function, with the name of the class that it is a method of, if any."""

    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str | None

    @property
    def place(self) -> Place:
        """Its place, with its class, its name and its parameters."""
        name = f"{self.owner}.{self.node.name}" if self.owner else self.node.name
        return self.module.place(self.node, f"{name}({', '.join(self.parameters)})")

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, without that of the instance or class."""
        arguments = self.node.args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        names = names[1:] if self.owner and not is_static(self.node) else names
        names += [argument.arg for argument in arguments.kwonlyargs]
        names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
        return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])

    @property
    def is_public(self) -> bool:
        """Return whether the name, its class or its module begins with an underscore."""
        return not (
            self.module.is_private
            or self.node.name.startswith("_")
            or (self.owner or "").startswith("_")
        )


def is_static(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a method is static."""
    return any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)


def functions_of(module: Module) -> Iterator[Function]:
    """Yield all functions of a module, also those in others."""

    def visit(node: ast.AST, owner: str | None) -> Iterator[Function]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from visit(child, child.name)
            elif isinstance(child, FUNCTIONS):
                yield Function(module, child, owner)
                yield from visit(child, None)
            else:
                yield from visit(child, owner)

    return visit(module.tree, None)


def functions_in(checkout: Checkout) -> Iterator[Function]:
    """Yield all functions of a checkout."""
    return (function for module in checkout.modules for function in functions_of(module))


class Prose(NamedTuple):
    """A docstring or comment, with its module and the line on which it begins, from 1."""

    module: Module
    line: int
    text: str

    def place(self, text: str) -> Place:
        """Return the place of a part of it, at its first line."""
        return Place(self.module.path, self.line, text)


def docstrings_in(checkout: Checkout) -> Iterator[Prose]:
    """Yield the docstrings of modules, classes and functions of a checkout."""
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)):
                text = ast.get_docstring(node)
                if text:
                    yield Prose(module, node.body[0].lineno, text)


def prose_in(checkout: Checkout) -> Iterator[Prose]:
    """Yield all docstrings, those of constants included, and the comments of a checkout."""
    yield from docstrings_in(checkout)
    for module in checkout.modules:
        yield from _docstrings_of_assignments(module)
        yield from _comments(module)


def _docstrings_of_assignments(module: Module) -> Iterator[Prose]:
    """Yield the strings that follow assignments in modules and classes."""
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Module, ast.ClassDef)):
            for earlier, later in pairwise(node.body):
                if isinstance(earlier, (ast.Assign, ast.AnnAssign)) and isinstance(later, ast.Expr):
                    value = later.value
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        yield Prose(module, later.lineno, value.value)


def _comments(module: Module) -> Iterator[Prose]:
    """Yield the comments that are none of a tool's."""
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        text = token.string.removeprefix("#").strip()
        if token.type == tokenize.COMMENT and not text.startswith(_TOOL_COMMENTS):
            yield Prose(module, token.start[0], text)


def sentences_of(docstring: str) -> Iterator[str]:
    """Yield the sentences of a docstring, without examples and tables; markup is one word."""
    for paragraph in _paragraphs(docstring):
        plain = _ABBREVIATION.sub(r"\1", _MARKUP.sub("X", paragraph))
        yield from filter(None, _SENTENCE_END.split(plain))


def _paragraphs(docstring: str) -> Iterator[str]:
    """Yield paragraphs, items of lists and arguments, each in one line."""
    words: list[str] = []
    example_indent: int | None = None
    for line in docstring.splitlines():
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if example_indent is not None and (not text or indent > example_indent):
            continue
        example_indent = indent if text.endswith("::") else None
        is_table = "   " in text or text.startswith("|")
        is_item = bool(
            _ITEM.match(text) or (indent and _FIELD.match(text)) or _SECTION.fullmatch(text)
        )
        if not text or is_table or is_item or text.startswith(_NO_PROSE):
            yield " ".join(words)
            words = []
        if text and not is_table and not text.startswith(_NO_PROSE):
            words.append(text)
    yield " ".join(words)
