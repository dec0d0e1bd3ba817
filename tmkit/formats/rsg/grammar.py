"""Parser of the robot scene graph language (RSG-DSL), from a text to declarations.

A table lists the values after each keyword, and a recursive descent reads them. Time stamps,
matrices and poses are one token each, whose numbers a regular expression extracts. A file of 1,000
transforms parses in 0.05 s. Generated parsers take 0.2 s (lark, and 0.2 s to build it in each
process) or 1.2 s (textX). Both are too slow for the error messages of an editor.

The source is Blumenthal and Bruyninckx, "Towards a Domain Specific Language for a Scene Graph based
Robotic World Model", 2014. The paper defines the language by examples. docs/reference/rsg.md lists
the extensions.

Invariant: reading ends, in time linear in the length of the text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.errors import FileFormatError
from tmkit.formats.robray.grammar import SourceText

_MAX_LIST_DEPTH = 100
"""Largest depth of nested lists and objects."""

_MAX_CARDINALITY = 999_999
"""Largest cardinality of a node that is not any number."""

# Possessive quantifiers prevent backtracking.
# Patterns repeat no group possessively: Python before 3.11.5 (Debian 12 has 3.11.2) then matches
# texts that do not match (https://github.com/python/cpython/issues/106052).
_BLANK = r"(?:\s|//[^\n]*(?:\n|\Z)|/\*[^*]*\*+(?:[^*/][^*]*\*+)*/)*"
_TOKEN = re.compile(
    _BLANK + r"(?:(?P<sign>[{}()\[\],:*])"
    r"|(?P<value>(?:HomogeneousTransformationMatrix|Pose|TimeStamp)\s*\((?=\s*[-+.\d\[/])(?:[^)/]|//[^\n]*\n)*\))"
    r"|(?P<word>\^?[^\W\d]\w*)"
    r"|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r'|(?P<text>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<end>\Z))"
)
_TOKEN_NAMES = {
    "word": "a name",
    "number": "a number",
    "text": "a quoted text",
    "value": "a value in parentheses",
}
"""Names of the tokens in error messages."""

# Each table maps a keyword to the kind of its value: "name", "text", "unit" (a number and its
# unit), "json", a block of keywords in braces, ...
RIGID = {"stamp": "value", "value": "value", "covariance": "json"}
"""Parts of a rigid transform."""

OPTIONS = dict.fromkeys(
    ("pose", "color", "visual", "collision", "level", "friction", "stamp", "lod"), "json"
)
"""Options of a shape on a node."""

_NODE = {
    "Attribute": "attribute",
    "child": "name",
    "member": "name",
    "cardinality": "cardinality",
    "transforms": "transforms",
    "geometry": "geometry",
    "unplaced": "",
    "called": "text",
    "isa": "text",
    "body": "text",
    "joint": "json",
    "inertia": "json",
    "twist": "json",
    "history": "json",
    "noise": "json",
}
"""Members of a node."""

_TYPE = {"type": "text", "sharedPtr": "text", "library": "text"}
"""Members of a type of meshes or point clouds."""

SIZES: Mapping[str, tuple[str, ...]] = {
    "Box": ("sizeX", "sizeY", "sizeZ"),
    "Sphere": ("radius",),
    "Cylinder": ("radius", "height"),
    "Cone": ("radius", "height"),
    "Capsule": ("radius", "height"),
}
"""Required sizes of a primitive shape, by kind."""

_BLOCK = {
    "Attribute": "attribute",
    "inputStructure": "name",
    "inputHook": "name",
    "outputStructure": "name",
    "outputHook": "name",
    "trigger": "trigger",
}
"""Members of a function block."""

NODES = ("Group", "Transform", "GeometricNode", "Node")
"""Kinds of nodes."""

BLOCKS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(NODES, _NODE),
    **{kind: dict.fromkeys(sizes, "unit") for kind, sizes in SIZES.items()},
    **dict.fromkeys(("PointCloudType", "MeshType"), _TYPE),
    "FunctionBlock": _BLOCK,
}
"""Members of the declarations with a block."""

LINES: Mapping[str, Mapping[str, str]] = {
    **{
        kind: {"type": "name", "file": "text", "data": "json"}
        for kind in ("PointCloud", "Mesh", "Shape")
    },
    "Instance": {"of": "name"},
}
"""Members of the declarations without a block."""

_STATEMENTS = {
    "root": "name",
    "import": "import",
    "AllowCollision": "allowed",
    "Relation": "relation",
    "Body": "text",
    "NoiseSources": "json",
}
"""Statements that are not declarations."""

KEYWORDS = (*BLOCKS, *LINES, *_STATEMENTS)
"""Keywords that begin a declaration or statement."""


class Name(NamedTuple):
    """A name, and the offset of its start in the text."""

    text: str
    offset: int


class Member(NamedTuple):
    """A keyword with its values, and its offset in the text."""

    keyword: str
    values: tuple[Any, ...]
    offset: int


class Quantity(NamedTuple):
    """A number with its unit."""

    value: float
    unit: Name


class Rigid(NamedTuple):
    """A rigid transform: its name and its parts."""

    name: Name
    parts: list[Member]


class RsgText:
    """Text of a file, with conversion of offsets into source locations."""

    def __init__(self, source: SourceText, text: str) -> None:
        self.source, self.text = source, text
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> SourceLocation:
        """Return the source location of an offset."""
        line = bisect_right(self._line_starts, offset)
        return self.source.place((line, offset - self._line_starts[line - 1] + 1))


@dataclass(slots=True)
class Declaration:
    """A node, type or other declaration, with its members and the text of its file."""

    kind: str
    name: Name
    text: RsgText
    members: list[Member] = field(default_factory=list)

    def get(self, keyword: str) -> list[Member]:
        """Return the members of a keyword, in order."""
        return [member for member in self.members if member.keyword == keyword]


class Parser:
    """Parser of declarations and statements.

    Args:
        text: text of the file.
        on_error: receives each syntax error. Reading continues with the next statement.
    """

    def __init__(self, text: RsgText, *, on_error: Callable[[FileFormatError], None]) -> None:
        self._text = text
        self._on_error = on_error
        self._tokens: list[tuple[str, str, int]] = []
        self._index = 0
        self._readers: dict[str, Callable[[], tuple[Any, ...]]] = {
            "": tuple,
            "name": lambda: (self._take_name(),),
            "text": lambda: (self._take_text(),),
            "value": lambda: (Name(*self._take("value")),),
            "json": lambda: (self._read_json(_MAX_LIST_DEPTH),),
            "unit": lambda: (self._read_quantity(),),
            "attribute": self._read_attribute,
            "cardinality": self._read_cardinality,
            "transforms": self._read_transforms,
            "geometry": self._read_geometry,
            "trigger": self._read_trigger,
            "import": self._read_import,
            "allowed": lambda: (
                self._take_name(),
                self._take_name(),
                self._take_optional_text("text"),
            ),
            "relation": self._read_relation,
        }

    def read(self) -> tuple[list[Declaration], list[Member]]:
        """Return the declarations and the statements, each in the order of the text."""
        declarations: list[Declaration] = []
        statements: list[Member] = []
        self._tokenize()
        while self._tokens[self._index][0] != "end":
            start = self._index
            try:
                _, word, offset = self._take_keyword(KEYWORDS)
                if word in _STATEMENTS:
                    statements.append(Member(word, self._readers[_STATEMENTS[word]](), offset))
                else:
                    declarations.append(self._read_declaration(word))
            except FileFormatError as error:
                self._on_error(error)
                self._recover(start)
        return declarations, statements

    def _tokenize(self) -> None:
        text, offset, tokens = self._text.text, 0, self._tokens
        while match := _TOKEN.match(text, offset):
            kind = str(match.lastgroup)
            offset = match.end()
            word = match[kind]
            tokens.append((kind, word, offset - len(word)))
            if kind == "end":
                return
        offset = re.compile(_BLANK).match(text, offset).end()  # type: ignore[union-attr]
        excerpt = text[offset] if text[offset].isprintable() else f"U+{ord(text[offset]):04X}"
        reason = (
            "this quoted text is not closed on its line"
            if text[offset] == '"'
            else f"unexpected character '{excerpt}'"
        )
        error = self._text.place(offset).error(
            "this comment is never closed" if text.startswith("/*", offset) else reason
        )
        self._on_error(error)
        tokens.append(("end", "", offset))

    def _recover(self, start: int) -> None:
        """Skip to the next keyword of a statement at the beginning of a line."""
        self._index = max(self._index, start + 1)
        while self._tokens[self._index][0] != "end":
            _, word, offset = self._tokens[self._index]
            if word in KEYWORDS and (offset == 0 or self._text.text[offset - 1] == "\n"):
                return
            self._index += 1

    def _raise_unexpected(self, expected: str, words: tuple[str, ...] = ()) -> NoReturn:
        kind, word, offset = self._tokens[self._index]
        if kind == "end":
            end = len(self._text.text.rstrip())
            raise self._text.place(end).error(f"the file ends too early: expected {expected}")
        excerpt = word if len(word) < 40 else f"{word[:36]} ..."
        raise self._text.place(offset).error(
            f"unexpected '{excerpt}', expected {expected}{did_you_mean(word, words)}"
        )

    def _take(self, kind: str) -> tuple[str, int]:
        items, word, offset = self._tokens[self._index]
        if items != kind:
            self._raise_unexpected(_TOKEN_NAMES[kind])
        self._index += 1
        return word, offset

    def _take_sign(self, sign: str) -> int:
        _, word, offset = self._tokens[self._index]
        if word != sign:
            self._raise_unexpected(f"'{sign}'")
        self._index += 1
        return offset

    def _skip(self, word: str) -> bool:
        """Skip the next word or sign if it is the given one, and return whether it is."""
        items = self._tokens[self._index][1] == word
        self._index += items
        return items

    def _take_optional_text(self, kind: str) -> str | None:
        return self._take_text() if self._tokens[self._index][0] == kind else None

    def _take_keyword(self, words: Collection[str]) -> tuple[str, str, int]:
        token = self._tokens[self._index]
        if token[0] != "word" or token[1] not in words:
            self._raise_unexpected(" or ".join(f"'{word}'" for word in sorted(words)), tuple(words))
        self._index += 1
        return token

    def _take_name(self) -> Name:
        kind, _, offset = self._tokens[self._index]
        if kind == "text":
            return Name(self._take_text(), offset)
        if kind == "value":  # such as Pose before a parenthesis
            self._raise_unexpected("a name")
        return Name(self._take("word")[0].removeprefix("^"), offset)

    def _take_text(self) -> str:
        word, offset = self._take("text")
        if "\\" not in word:
            return word[1:-1]
        try:
            text = str(json.loads(word))
        except ValueError:
            raise self._text.place(offset).error(
                "this text has a backslash that begins no escape of JSON"
            ) from None
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise self._text.place(offset).error("this text has half of a surrogate pair")
        return text

    def _take_number(self) -> float | int:
        word, _ = self._take("number")
        return int(word) if len(word) < 400 and word.lstrip("+-").isdigit() else float(word)

    def _read_quantity(self) -> Quantity:
        value = float(self._take_number())
        if self._tokens[self._index][0] != "word":
            self._raise_unexpected("a unit such as 'm'")
        return Quantity(value, self._take_name())

    def _read_json(self, depth: int) -> Any:
        kind, word, offset = self._tokens[self._index]
        if kind == "text":
            return self._take_text()
        if kind == "number":
            return self._take_number()
        if word in ("true", "false", "null"):
            self._index += 1
            return {"true": True, "false": False, "null": None}[word]
        if depth == 0:
            raise self._text.place(offset).error("lists are nested too deeply")
        if self._skip("["):
            return self._read_list("]", lambda: self._read_json(depth - 1))
        if self._skip("{"):
            return dict(self._read_list("}", lambda: self._read_pair(depth)))
        return self._raise_unexpected(
            "a value: a number, a quoted text, true, false, null, a list or an object"
        )

    def _read_pair(self, depth: int) -> tuple[str, Any]:
        key = self._take_text()
        self._take_sign(":")
        return key, self._read_json(depth - 1)

    def _read_list(self, end: str, read: Callable[[], Any]) -> list[Any]:
        items: list[Any] = []
        while not self._skip(end):
            if items:
                self._take_sign(",")
            items.append(read())
        return items

    def _read_declaration(self, kind: str) -> Declaration:
        name = self._take_name()
        members: list[Member] = []
        if kind in BLOCKS:
            members = self._read_block(BLOCKS[kind])
        else:
            members_by_keyword = LINES[kind]
            while self._tokens[self._index][1] in members_by_keyword:
                members.append(self._read_member(members_by_keyword))
        return Declaration(kind, name, self._text, members)

    def _read_block(self, members_by_keyword: Mapping[str, str]) -> list[Member]:
        self._take_sign("{")
        items = []
        while not self._skip("}"):
            items.append(self._read_member(members_by_keyword))
        return items

    def _read_member(self, members_by_keyword: Mapping[str, str]) -> Member:
        _, word, offset = self._tokens[self._index]
        if word not in members_by_keyword:
            self._raise_unexpected(
                " or ".join([*(f"'{keyword}'" for keyword in sorted(members_by_keyword)), "'}'"]),
                tuple(members_by_keyword),
            )
        self._index += 1
        return Member(word, self._readers[members_by_keyword[word]](), offset)

    def _read_attribute(self) -> tuple[Any, ...]:
        self._take_sign("(")
        key = self._take_text()
        self._take_sign(",")
        value = self._read_json(_MAX_LIST_DEPTH)
        stamp = Name(*self._take("value")) if self._skip(",") else None
        self._take_sign(")")
        return key, value, stamp

    def _read_cardinality(self) -> tuple[int | None]:
        if self._skip("*"):
            return (None,)
        expected = f"'*' or a whole number from 1 to {_MAX_CARDINALITY}"
        _, word, _ = self._tokens[self._index]
        if re.fullmatch(r"0*[1-9][0-9]{0,5}", word) is None:
            self._raise_unexpected(expected)
        self._index += 1
        return (int(word),)

    def _read_transforms(self) -> tuple[Any, ...]:
        self._take_sign("{")
        items = []
        while not self._skip("}"):
            self._take_keyword(("RigidTransform",))
            items.append(Rigid(self._take_name(), self._read_block(RIGID)))
        return tuple(items)

    def _read_geometry(self) -> tuple[Any, ...]:
        name = self._take_name()
        has_options = self._tokens[self._index][1] == "{"
        return name, self._read_block(OPTIONS) if has_options else []

    def _read_trigger(self) -> tuple[Any, ...]:
        _, word, _ = self._take_keyword(("after", "every", "onChange"))
        return word, self._read_quantity() if word == "every" else self._take_name()

    def _read_import(self) -> tuple[Any, ...]:
        offset = self._tokens[self._index][2]
        file = Name(self._take_text(), offset)
        prefix = self._take_name() if self._skip("as") else None
        return file, prefix, self._take_name() if self._skip("at") else None

    def _read_relation(self) -> tuple[Any, ...]:
        _, word, _ = self._take_keyword(("Orientation", "Pose", "Position", "Twist"))
        self._take_sign("(")
        return word, self._read_list(")", self._take_text), self._read_json(1)


def numbers_in(text: str) -> list[tuple[float, str]]:
    """Return the numbers of a value in brackets or parentheses, with their units."""
    without_comments = re.sub(r"//[^\n]*", "", text)
    return [(float(number), unit or "") for number, unit in _NUMBERS.findall(without_comments)]


_NUMBERS = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\W\d]\w*)?")
