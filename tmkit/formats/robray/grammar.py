"""The grammar of the robray scene language, and the tree of a parsed file.

The idea: lark's LALR parser reads the text and builds the nodes below while it reduces, without a
second walk over a generic tree. Nodes know only line and column; :class:`SourceText` turns those
into a :class:`~tmkit._support.source_location.SourceLocation` for errors about them. The semantics
(constants, classes, frames) is in :mod:`tmkit.formats.robray.reader`; this module has only the
syntax.

Some points of the language deserve a warning. Names may contain dashes, so ``a-b`` is one name and
a difference is written ``a - b``; and a minus sign binds tighter than a power, so ``-2^2`` is 4.
Numbers take an exponent after ``e``, ``d`` or ``s``, without a plus sign, and are read as 64-bit
floats. Commas too many in an array are no matter.
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

# What a terminal is called in a message.
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
KEYWORDS = {
    "ALLOW": "allow_collision",
    "CLASS": "class",
    "DEF": "def",
    "FRAME": "frame",
    "INCLUDE": "include",
}

Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Number:
    """A literal number."""

    value: float
    at: Position


@dataclass(frozen=True, slots=True)
class Name:
    """A name, of a constant or of a frame, class or file as the context says; a quoted one is never a constant."""

    text: str
    at: Position
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Negation:
    """A minus sign before a value."""

    operand: Expression
    at: Position


@dataclass(frozen=True, slots=True)
class Binary:
    """Two values and one of ``+ - * / ^``; ``at`` is the operator."""

    operator: str
    left: Expression
    right: Expression
    at: Position


Expression = Number | Name | Negation | Binary


@dataclass(frozen=True, slots=True)
class Array:
    """Values in brackets; ``at`` is the opening bracket."""

    items: tuple[Expression, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class Attribute:
    """``NAME VALUE;`` in a block."""

    name: Name
    value: Expression | Array


@dataclass(frozen=True, slots=True)
class GeometryBlock:
    """A shape of the frame around it; ``at`` is the word ``geometry``."""

    attributes: tuple[Attribute, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """A frame with its attributes, shapes and child frames in the order of writing."""

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
    """Another file, to be read here."""

    file: Name


@dataclass(frozen=True, slots=True)
class AllowCollision:
    """Two frames that may touch."""

    first: Name
    second: Name
    at: Position


Statement = Include | Definition | ClassBlock | FrameBlock | AllowCollision


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of one file, for messages; ``folders`` are those of the files that include it, the nearest first."""

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
        before: int = 0,
        unsaved: Mapping[Path, str] | None = None,
    ) -> tuple[SourceText, str]:
        """Return a file as a source of places and as one text, of at most ``limit`` bytes with those ``before``."""
        try:
            most = limit if limit is not None else ReadingLimits().robray_bytes
            text = unsaved.get(real_path(path)) if unsaved else None
            data = read_bytes(path, limit=most) if text is None else text.encode("utf-8", "replace")
            data = as_utf8(data, partial(FileFormatError.at, path))
            if len(data) + before > most:
                reason = (
                    f"with the files read before it, it has more than {most / 1e6:.6g} MB, expected"
                    " at most that"
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

    def place(self, at: Position) -> SourceLocation:
        """Return the place of a node."""
        line, column = at
        return SourceLocation(
            str(self.path), line, column, self.lines[line - 1] if line <= len(self.lines) else ""
        )


def _at(token: lark.Token) -> Position:
    return token.line or 1, token.column or 1


def _name(token: lark.Token) -> Name:
    """Return the name that an ID or a STRING token stands for."""
    if token.type == "STRING":
        return Name(token[1:-1], _at(token), quoted=True)
    return Name(str(token), _at(token))


def _number(token: lark.Token) -> Number:
    """Return a number, whose exponent may be written by other letters."""
    return Number(float(re.sub("[dDsS]", "e", token)), _at(token))


def _binary(left: Expression, operator: lark.Token, right: Expression) -> Binary:
    return Binary("^" if operator == "**" else str(operator), left, right, _at(operator))


# Makes the nodes while the parser reduces: for each rule a function of the rule's children.
_NODES = SimpleNamespace(
    start=tuple,
    include=lambda parts: Include(_name(parts[0])),
    definition=lambda parts: Definition(_name(parts[0]), parts[1]),
    class_block=lambda parts: ClassBlock(parts[0], tuple(parts[1:])),
    frame_block=lambda parts: FrameBlock(parts[0], tuple(parts[1:])),
    geometry_block=lambda parts: GeometryBlock(tuple(parts[1:]), _at(parts[0])),
    allow_collision=lambda parts: AllowCollision(parts[1], parts[2], _at(parts[0])),
    attribute=lambda parts: Attribute(_name(parts[0]), parts[1]),
    array=lambda parts: Array(tuple(parts[1:]), _at(parts[0])),
    name=lambda parts: _name(parts[0]),
    quoted_name=lambda parts: _name(parts[0]),
    plain_name=lambda parts: _name(parts[0]),
    number=lambda parts: _number(parts[0]),
    negation=lambda parts: Negation(parts[1], _at(parts[0])),
    binary=lambda parts: _binary(*parts),
)


@functools.cache
def _parser() -> lark.Lark:
    """Return the parser, which holds no state between files; making it takes some 20 ms."""
    import lark

    return lark.Lark(
        GRAMMAR, parser="lalr", transformer=cast(Any, _NODES), maybe_placeholders=False
    )


def parse_robray(source: SourceText, text: str) -> tuple[Statement, ...]:
    """Parse the text of a robray file; an error shows where, what stands there and what may stand there."""
    import lark

    try:
        return cast(tuple[Statement, ...], _parser().parse(text))
    except lark.exceptions.UnexpectedCharacters as error:
        place = source.place((error.line, error.column))
        if text.startswith('"', error.pos_in_stream or 0):
            raise place.error("this quoted text is not closed on its line") from None
        shown = error.char if error.char.isprintable() else f"U+{ord(error.char):04X}"
        raise place.error(f"unexpected character '{shown}'") from None
    except lark.exceptions.UnexpectedToken as error:
        raise _unexpected(source, text, error) from None


def _unexpected(
    source: SourceText, text: str, error: lark.exceptions.UnexpectedToken
) -> FileFormatError:
    token = error.token
    line, column = _at(token)
    if text.startswith("/*", token.start_pos or 0):
        return source.place((line, column)).error("this comment is never closed")
    if token == "*" and text.startswith("/*", (token.start_pos or 0) - 1):
        return source.place((line, column - 1)).error("this comment is never closed")
    accepted = error.accepts or error.expected
    expected = sorted({TERMINAL_NAMES.get(name, name) for name in accepted})
    if "NUMBER" in accepted:  # a value may begin here, so the only operator is a sign
        expected = sorted({"'-'" if word == "an operator" else word for word in expected})
    wanted = f"expected {' or '.join(expected)}"
    if token.type == "$END":
        stripped = text.rstrip()
        line = stripped.count("\n") + 1
        column = len(stripped) - (stripped.rfind("\n") + 1) + 1
        return source.place((line, column)).error(f"the file ends too early: {wanted}")
    near = (
        did_you_mean(token, [word for name, word in KEYWORDS.items() if name in accepted])
        if token.type == "ID"
        else ""
    )
    reason = f"unexpected '{token}', {wanted}{near}"
    block = re.search(
        r"\b(class|frame)\s+[^\s{};]+\s*$|\bgeometry\s*$", text[: token.start_pos or 0]
    )
    if token == "{" and block is not None:
        return source.place((line, column)).error(f"a {block[1] or 'geometry'} cannot stand here")
    start = token.start_pos or 0
    mantissa, exponent = (
        re.search(r"[0-9.]+$", text[:start]),
        re.match(r"([eEdDsS])\+([0-9]+)", text[start:]),
    )
    if mantissa is not None and exponent is not None:
        wanted = f"{mantissa[0]}{exponent[1]}{exponent[2]}"
        return source.place((line, column)).error(
            f"the exponent of a number has no plus sign; write '{wanted}'"
        )
    before = text[:start].split()
    if before and "-" in before[-1][1:] and before[-1][:1].isalpha():
        reason += "; names may contain dashes, write spaces around a minus sign"
    return source.place((line, column)).error(reason)
