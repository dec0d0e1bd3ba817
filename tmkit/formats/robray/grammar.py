"""Grammar of the robray scene language, and the syntax tree of a file.

The LALR parser of lark builds the nodes below during its reductions, without a second walk over a
generic tree. Nodes store only line and column. :class:`SourceText` converts these into a
:class:`~tmkit._support.source_location.SourceLocation` for error messages. This module contains
only the syntax. The semantics (constants, classes, frames) is in
:mod:`tmkit.formats.robray.reader`.

Four points of the language are unusual:

- Names may contain dashes, so ``a-b`` is one name. A difference is written ``a - b``.
- A minus sign binds tighter than a power, so ``-2^2`` is 4.
- The exponent of a number follows ``e``, ``d`` or ``s``, without a plus sign. Numbers are read as
  64-bit floats.
- Extra commas in an array are ignored.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from tmkit._support.limits import ReadingLimits, as_utf8, read_bytes
from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.errors import FileFormatError
from tmkit.formats.mesh.package_uris import real_path
from tmkit.formats.robray.hints import character_hint, syntax_hint

if TYPE_CHECKING:
    import lark

GRAMMAR = r"""
start: statement*
?statement: include | definition | class_block | frame_block | allow_collision
include: "include" STRING ";"?
definition: "def" ID expression ";"
class_block: "class" name "{" attribute* "}"
frame_block: "frame" name "{" (attribute | frame_block | geometry_block)* "}"
geometry_block: GEOMETRY "{" attribute* "}"
allow_collision: ALLOW name name ";"
attribute: ID value ";"
?value: expression | array | STRING -> quoted_name
array: LSQB ","* [expression (","+ expression)* ","*] "]"
name: ID | STRING

?expression: term | expression (PLUS | MINUS) term -> binary
?term: power | term (TIMES | DIVIDE) power -> binary
?power: unary | unary (CARET | STARS) power -> binary
?unary: atom | MINUS unary -> negation
?atom: NUMBER -> number | ID -> plain_name | "(" expression ")"

GEOMETRY: "geometry"
LSQB: "["
ALLOW: "allow_collision"
PLUS: "+"
MINUS: "-"
TIMES: "*"
DIVIDE: "/"
CARET: "^"
STARS: "**"
NUMBER: /([0-9]+\.?[0-9]*|\.[0-9]+)([eEdDsS]-?[0-9]+)?/
ID: /[^\W\d]\w*(-+\w+)*/
STRING: /"[^"\n]*"/
COMMENT: /\/\/[^\n]*/ | /#[^\n]*/ | /\/\*(.|\n)*?\*\//
WHITESPACE: /\s+/
%ignore COMMENT
%ignore WHITESPACE
"""

TERMINAL_NAMES = {
    "ALLOW": "'allow_collision'",
    "CARET": "an operator",
    "CLASS": "'class'",
    "COMMA": "','",
    "DEF": "'def'",
    "DIVIDE": "an operator",
    "FRAME": "'frame'",
    "GEOMETRY": "'geometry'",
    "ID": "a name",
    "INCLUDE": "'include'",
    "LBRACE": "'{'",
    "LPAR": "'('",
    "LSQB": "'['",
    "MINUS": "an operator",
    "NUMBER": "a number",
    "PLUS": "an operator",
    "RBRACE": "'}'",
    "RPAR": "')'",
    "RSQB": "']'",
    "SEMICOLON": "';'",
    "STARS": "an operator",
    "STRING": "a quoted text",
    "TIMES": "an operator",
    "$END": "the end of the file",
}
"""Names of the terminals in error messages."""

KEYWORDS = {
    "ALLOW": "allow_collision",
    "CLASS": "class",
    "DEF": "def",
    "FRAME": "frame",
    "INCLUDE": "include",
}
"""Keywords that begin a statement, by terminal."""

Position = tuple[int, int]
"""Line and column in a text, both counted from 1."""


@dataclass(frozen=True, slots=True)
class Number:
    """A literal number."""

    value: float
    position: Position


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a constant, frame, class or file, depending on the context.

    A quoted name never refers to a constant.
    """

    text: str
    position: Position
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Negation:
    """A minus sign before a value."""

    operand: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class Binary:
    """Two values and one of ``+ - * / ^``, whose position is that of the operator."""

    operator: str
    left: Expression
    right: Expression
    position: Position


Expression = Number | Name | Negation | Binary


@dataclass(frozen=True, slots=True)
class Array:
    """Values in brackets, whose position is that of the opening bracket."""

    items: tuple[Expression, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Attribute:
    """``NAME VALUE;`` in a block."""

    name: Name
    value: Expression | Array


@dataclass(frozen=True, slots=True)
class GeometryBlock:
    """A shape of the enclosing frame, whose position is that of the keyword ``geometry``."""

    attributes: tuple[Attribute, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """A frame with its attributes, shapes and child frames, in the order of the file."""

    name: Name
    members: tuple[Attribute | GeometryBlock | FrameBlock, ...]


@dataclass(frozen=True, slots=True)
class ClassBlock:
    """A named set of attributes."""

    name: Name
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """A named number."""

    name: Name
    value: Expression


@dataclass(frozen=True, slots=True)
class Include:
    """Another file, whose statements replace the include."""

    file: Name


@dataclass(frozen=True, slots=True)
class AllowCollision:
    """Two frames that may be in contact."""

    first: Name
    second: Name
    position: Position


Statement = Include | Definition | ClassBlock | FrameBlock | AllowCollision


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text of one file, for error messages.

    Attributes:
        path: path of the file.
        lines: lines of the text, without line breaks.
        folders: folders of the files that include this one, innermost first.
    """

    path: Path
    lines: tuple[str, ...]
    folders: tuple[Path, ...] = ()

    @classmethod
    def read(
        cls,
        path: Path,
        *,
        folders: tuple[Path, ...] = (),
        limit: int | None = None,
        n_bytes_before: int = 0,
        unsaved: Mapping[Path, str] | None = None,
    ) -> tuple[SourceText, str]:
        """Read a file and return its source text and the whole text.

        Args:
            path: path of the file.
            folders: folders of the files that include this one, innermost first.
            limit: largest size together with the preceding files [byte].
            n_bytes_before: size of the files read before [byte].
            unsaved: texts that replace the contents of files, by real path.

        Raises:
            FileFormatError: if the file is unreadable, too large or not UTF-8.
        """
        try:
            max_bytes = limit if limit is not None else ReadingLimits().robray_bytes
            text = unsaved.get(real_path(path)) if unsaved else None
            data = (
                read_bytes(path, limit=max_bytes)
                if text is None
                else text.encode("utf-8", "replace")
            )
            data = as_utf8(data, partial(FileFormatError.at, path))
            if len(data) + n_bytes_before > max_bytes:
                reason = (
                    "with the files read before it, it has more than"
                    f" {max_bytes / 1e6:.6g} MB, expected at most that"
                )
                raise FileFormatError.at(path, reason)
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            whole = data[: error.start].decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
            line, column = whole.count("\n") + 1, len(whole) - whole.rfind("\n")
            reason = f"not UTF-8 text: the byte 0x{data[error.start]:02x} is not valid here"
            raise FileFormatError.at(path, reason, line=line, column=column) from error
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return cls(path, tuple(text.split("\n")), folders), text

    def place(self, position: Position) -> SourceLocation:
        """Return the source location of a node."""
        line, column = position
        line_text = self.lines[line - 1] if line <= len(self.lines) else ""
        return SourceLocation(str(self.path), line, column, line_text)


def _position_of(token: lark.Token) -> Position:
    return token.line or 1, token.column or 1


def _name(token: lark.Token) -> Name:
    """Return the name of an ID or STRING token."""
    if token.type == "STRING":
        return Name(token[1:-1], _position_of(token), is_quoted=True)
    return Name(str(token), _position_of(token))


def _number(token: lark.Token) -> Number:
    """Return a number, whose exponent may also follow ``d`` or ``s``."""
    return Number(float(re.sub("[dDsS]", "e", token)), _position_of(token))


def _binary(left: Expression, operator: lark.Token, right: Expression) -> Binary:
    return Binary("^" if operator == "**" else str(operator), left, right, _position_of(operator))


_NODE_BUILDERS = SimpleNamespace(
    start=tuple,
    include=lambda parts: Include(_name(parts[0])),
    definition=lambda parts: Definition(_name(parts[0]), parts[1]),
    class_block=lambda parts: ClassBlock(parts[0], tuple(parts[1:])),
    frame_block=lambda parts: FrameBlock(parts[0], tuple(parts[1:])),
    geometry_block=lambda parts: GeometryBlock(tuple(parts[1:]), _position_of(parts[0])),
    allow_collision=lambda parts: AllowCollision(parts[1], parts[2], _position_of(parts[0])),
    attribute=lambda parts: Attribute(_name(parts[0]), parts[1]),
    array=lambda parts: Array(tuple(parts[1:]), _position_of(parts[0])),
    name=lambda parts: _name(parts[0]),
    quoted_name=lambda parts: _name(parts[0]),
    plain_name=lambda parts: _name(parts[0]),
    number=lambda parts: _number(parts[0]),
    negation=lambda parts: Negation(parts[1], _position_of(parts[0])),
    binary=lambda parts: _binary(*parts),
)
"""Functions that build a node from the children of a grammar rule, by rule."""


@functools.cache
def _parser() -> lark.Lark:
    """Return the parser, which is stateless between files and takes about 20 ms to build."""
    import lark

    return lark.Lark(
        GRAMMAR, parser="lalr", transformer=cast(Any, _NODE_BUILDERS), maybe_placeholders=False
    )


def parse_robray(source: SourceText, text: str) -> tuple[Statement, ...]:
    """Parse the text of a robray file.

    Raises:
        FileFormatError: if the syntax is wrong, with the position, the token and the alternatives.
    """
    import lark

    try:
        return cast(tuple[Statement, ...], _parser().parse(text))
    except lark.exceptions.UnexpectedCharacters as error:
        place = source.place((error.line, error.column))
        if text.startswith('"', error.pos_in_stream or 0):
            raise place.error("this quoted text is not closed on its line") from None
        character = error.char if error.char.isprintable() else f"U+{ord(error.char):04X}"
        hint = character_hint(error.char)
        raise place.error(f"unexpected character '{character}'{hint}") from None
    except lark.exceptions.UnexpectedToken as error:
        raise _syntax_error(source, text, error) from None


def _syntax_error(
    source: SourceText, text: str, error: lark.exceptions.UnexpectedToken
) -> FileFormatError:
    """Return the error for a token that the grammar does not accept at its position."""
    token = error.token
    line, column = _position_of(token)
    if text.startswith("/*", token.start_pos or 0):
        return source.place((line, column)).error("this comment is never closed")
    if token == "*" and text.startswith("/*", (token.start_pos or 0) - 1):
        return source.place((line, column - 1)).error("this comment is never closed")
    accepted = error.accepts or error.expected
    expected = sorted({TERMINAL_NAMES.get(name, name) for name in accepted})
    if "NUMBER" in accepted:  # a value may begin here, so the only operator is a sign
        expected = sorted({"'-'" if word == "an operator" else word for word in expected})
    expectation = f"expected {' or '.join(expected)}"
    if token.type == "$END":
        stripped = text.rstrip()
        line = stripped.count("\n") + 1
        column = len(stripped) - (stripped.rfind("\n") + 1) + 1
        return source.place((line, column)).error(f"the file ends too early: {expectation}")
    hint = (
        did_you_mean(token, [word for name, word in KEYWORDS.items() if name in accepted])
        if token.type == "ID"
        else ""
    )
    reason = f"unexpected '{token}', {expectation}{hint}"
    block = re.search(
        r"\b(class|frame)\s+[^\s{};]+\s*$|\bgeometry\s*$", text[: token.start_pos or 0]
    )
    if token == "{" and block is not None:
        return source.place((line, column)).error(f"a {block[1] or 'geometry'} cannot stand here")
    start = token.start_pos or 0
    mantissa = re.search(r"[0-9.]+$", text[:start])
    exponent = re.match(r"([eEdDsS])\+([0-9]+)", text[start:])
    if mantissa is not None and exponent is not None:
        number = f"{mantissa[0]}{exponent[1]}{exponent[2]}"
        return source.place((line, column)).error(
            f"the exponent of a number has no plus sign; write '{number}'"
        )
    reason += syntax_hint(source.lines[line - 1][: column - 1], token)
    words = text[:start].split()
    if words and "-" in words[-1][1:] and words[-1][:1].isalpha():
        reason += "; names may contain dashes, write spaces around a minus sign"
    return source.place((line, column)).error(reason)
