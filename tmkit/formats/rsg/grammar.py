"""The syntax of the robot scene graph language (RSG-DSL): from a text to declarations.

A table says what may follow each keyword, a descent reads it. Time stamps, matrices and poses are
one token each, whose numbers regular expressions find. So a file of 1,000 transforms parses in 0.05
s. The generated parsers that were tried take 0.2 s (lark, made for each process in 0.2 s more) and
1.2 s (textX), too long for an editor that waits for what is wrong.

The language is that of Blumenthal and Bruyninckx, "Towards a Domain Specific Language for a Scene
Graph based Robotic World Model", 2014, whose text shows it by examples; docs/reference/rsg.md lists
what is added to it.

Invariant: reading ends, in time linear in the text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.errors import FileFormatError
from tmkit.formats.robray.grammar import SourceText

_DEEPEST = 100  # lists in lists

# possessive: no time is lost in going back
_BLANK = r"(?:\s+|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_TOKEN = re.compile(
    _BLANK + r"(?:(?P<sign>[{}()\[\],:*])"
    r"|(?P<value>(?:HomogeneousTransformationMatrix|Pose|TimeStamp)\s*\((?=\s*[-+.\d\[/])(?:[^)/]|//[^\n]*+)*+\))"
    r"|(?P<word>\^?[^\W\d]\w*)"
    r"|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r'|(?P<text>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<end>\Z))"
)
_SHOWN = {
    "word": "a name",
    "number": "a number",
    "text": "a quoted text",
    "value": "a value in parentheses",
}

# What follows a keyword: "name", "text", "unit" (a number and its unit), "json", a block of
# keywords in braces, ...
RIGID = {"stamp": "value", "value": "value", "covariance": "json"}
OPTIONS = dict.fromkeys(
    ("pose", "color", "visual", "collision", "level", "friction", "stamp", "lod"), "json"
)
_NODE = {
    "Attribute": "attribute",
    "child": "name",
    "member": "name",
    "cardinality": "range",
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
_TYPE = {"type": "text", "sharedPtr": "text", "library": "text"}
SIZES: Mapping[str, tuple[str, ...]] = {
    "Box": ("sizeX", "sizeY", "sizeZ"),
    "Sphere": ("radius",),
    "Cylinder": ("radius", "height"),
    "Cone": ("radius", "height"),
    "Capsule": ("radius", "height"),
}
_BLOCK = {
    "Attribute": "attribute",
    "inputStructure": "name",
    "inputHook": "name",
    "outputStructure": "name",
    "outputHook": "name",
    "trigger": "trigger",
}
NODES = ("Group", "Transform", "GeometricNode", "Node")
BLOCKS: Mapping[str, Mapping[str, str]] = {  # declarations with a block of members
    **dict.fromkeys(NODES, _NODE),
    **{kind: dict.fromkeys(sizes, "unit") for kind, sizes in SIZES.items()},
    **dict.fromkeys(("PointCloudType", "MeshType"), _TYPE),
    "FunctionBlock": _BLOCK,
}
LINES: Mapping[str, Mapping[str, str]] = {  # declarations without
    **{
        kind: {"type": "name", "file": "text", "data": "json"}
        for kind in ("PointCloud", "Mesh", "Shape")
    },
    "Instance": {"of": "name"},
}
_STATEMENTS = {
    "root": "name",
    "import": "import",
    "AllowCollision": "allowed",
    "Relation": "relation",
    "Body": "text",
    "NoiseSources": "json",
}
KEYWORDS = (*BLOCKS, *LINES, *_STATEMENTS)


class Name(NamedTuple):
    """A name, and where it begins in the text."""

    text: str
    at: int


class Member(NamedTuple):
    """A keyword with its values, and where it stands."""

    keyword: str
    values: tuple[Any, ...]
    at: int


class Quantity(NamedTuple):
    """A number with its unit."""

    value: float
    unit: Name


class Rigid(NamedTuple):
    """A rigid transform with its parts."""

    name: Name
    parts: list[Member]


class RsgText:
    """The text of a file, and the places in it."""

    def __init__(self, source: SourceText, text: str) -> None:
        self.source, self.text = source, text
        self._begins = [0, *(match.end() for match in re.finditer("\n", text))]  # of lines

    def place(self, at: int) -> SourceLocation:
        """Return the place of an offset."""
        line = bisect_right(self._begins, at)
        return self.source.place((line, at - self._begins[line - 1] + 1))


@dataclass(slots=True)
class Declaration:
    """Something with a kind, a name and members, such as a node or a type; ``text`` is its file."""

    kind: str
    name: Name
    text: RsgText
    members: list[Member] = field(default_factory=list)

    def get(self, keyword: str) -> list[Member]:
        """Return the members of a keyword, in order."""
        return [member for member in self.members if member.keyword == keyword]


class Parser:
    """Reads declarations and statements; ``on_error`` takes errors, and reading goes on with the next."""

    def __init__(self, text: RsgText, *, on_error: Callable[[FileFormatError], None]) -> None:
        self._text = text
        self._on_error = on_error
        self._tokens: list[tuple[str, str, int]] = []
        self._next = 0
        self._readers: dict[str, Callable[[], tuple[Any, ...]]] = {
            "": tuple,
            "name": lambda: (self._name(),),
            "text": lambda: (self._string(),),
            "value": lambda: (Name(*self._take("value")),),
            "json": lambda: (self._json(_DEEPEST),),
            "unit": lambda: (self._quantity(),),
            "attribute": self._attribute,
            "range": self._range,
            "transforms": self._transforms,
            "geometry": self._geometry,
            "trigger": self._trigger,
            "import": self._import,
            "allowed": lambda: (self._name(), self._name(), self._optional("text")),
            "relation": self._relation,
        }

    def read(self) -> tuple[list[Declaration], list[Member]]:
        """Return the declarations and the statements, each in the order of the text."""
        declarations: list[Declaration] = []
        statements: list[Member] = []
        self._tokenize()
        while self._tokens[self._next][0] != "end":
            begin = self._next
            try:
                _, word, at = self._keyword(KEYWORDS)
                if word in _STATEMENTS:
                    statements.append(Member(word, self._readers[_STATEMENTS[word]](), at))
                else:
                    declarations.append(self._declaration(word))
            except FileFormatError as error:
                self._on_error(error)
                self._recover(begin)
        return declarations, statements

    def _tokenize(self) -> None:
        text, at, tokens = self._text.text, 0, self._tokens
        for match in _TOKEN.finditer(text):
            if match.start() != at:
                break
            kind = str(match.lastgroup)
            at = match.end()
            word = match[kind]
            tokens.append((kind, word, at - len(word)))
            if kind == "end":
                return
        at = re.compile(_BLANK).match(text, at).end()  # type: ignore[union-attr]
        shown = text[at] if text[at].isprintable() else f"U+{ord(text[at]):04X}"
        reason = (
            "this quoted text is not closed on its line"
            if text[at] == '"'
            else f"unexpected character '{shown}'"
        )
        error = self._text.place(at).error(
            "this comment is never closed" if text.startswith("/*", at) else reason
        )
        self._on_error(error)
        tokens.append(("end", "", at))

    def _recover(self, begin: int) -> None:
        """Go on with the next word at the beginning of a line that begins a statement."""
        self._next = max(self._next, begin + 1)
        while self._tokens[self._next][0] != "end":
            _, word, at = self._tokens[self._next]
            if word in KEYWORDS and (at == 0 or self._text.text[at - 1] == "\n"):
                return
            self._next += 1

    def _refuse(self, expected: str, words: tuple[str, ...] = ()) -> NoReturn:
        kind, word, at = self._tokens[self._next]
        if kind == "end":
            end = len(self._text.text.rstrip())
            raise self._text.place(end).error(f"the file ends too early: expected {expected}")
        shown = word if len(word) < 40 else f"{word[:36]} ..."
        raise self._text.place(at).error(
            f"unexpected '{shown}', expected {expected}{did_you_mean(word, words)}"
        )

    def _take(self, kind: str) -> tuple[str, int]:
        found, word, at = self._tokens[self._next]
        if found != kind:
            self._refuse(_SHOWN[kind])
        self._next += 1
        return word, at

    def _sign(self, sign: str) -> int:
        _, word, at = self._tokens[self._next]
        if word != sign:
            self._refuse(f"'{sign}'")
        self._next += 1
        return at

    def _is(self, word: str) -> bool:
        """Return whether a word or sign comes next, and if so, take it."""
        found = self._tokens[self._next][1] == word
        self._next += found
        return found

    def _optional(self, kind: str) -> str | None:
        return self._string() if self._tokens[self._next][0] == kind else None

    def _keyword(self, words: Any) -> tuple[str, str, int]:
        token = self._tokens[self._next]
        if token[0] != "word" or token[1] not in words:
            self._refuse(" or ".join(f"'{word}'" for word in sorted(words)), tuple(words))
        self._next += 1
        return token

    def _name(self) -> Name:
        kind, _, at = self._tokens[self._next]
        if kind == "text":
            return Name(self._string(), at)
        if kind == "value":  # a name before a parenthesis that is none of its own
            self._refuse("a name")
        return Name(self._take("word")[0].removeprefix("^"), at)

    def _string(self) -> str:
        word, at = self._take("text")
        if "\\" not in word:
            return word[1:-1]
        try:
            return str(json.loads(word))
        except ValueError:
            raise self._text.place(at).error(
                "this text has a backslash that begins no escape of JSON"
            ) from None

    def _number(self) -> float | int:
        word, _ = self._take("number")
        return int(word) if len(word) < 400 and word.lstrip("+-").isdigit() else float(word)

    def _quantity(self) -> Quantity:
        value = float(self._number())
        if self._tokens[self._next][0] != "word":
            self._refuse("a unit such as 'm'")
        return Quantity(value, self._name())

    def _json(self, depth: int) -> Any:
        kind, word, at = self._tokens[self._next]
        if kind == "text":
            return self._string()
        if kind == "number":
            return self._number()
        if word in ("true", "false", "null"):
            self._next += 1
            return {"true": True, "false": False, "null": None}[word]
        if depth == 0:
            raise self._text.place(at).error("lists are nested too deeply")
        if self._is("["):
            return self._listed("]", lambda: self._json(depth - 1))
        if self._is("{"):
            return dict(self._listed("}", lambda: self._pair(depth)))
        return self._refuse(
            "a value: a number, a quoted text, true, false, null, a list or an object"
        )

    def _pair(self, depth: int) -> tuple[str, Any]:
        key = self._string()
        self._sign(":")
        return key, self._json(depth - 1)

    def _listed(self, end: str, read: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        while not self._is(end):
            if found:
                self._sign(",")
            found.append(read())
        return found

    def _declaration(self, kind: str) -> Declaration:
        name = self._name()
        members: list[Member] = []
        if kind in BLOCKS:
            members = self._block(BLOCKS[kind])
        else:
            known = LINES[kind]
            while self._tokens[self._next][1] in known:
                members.append(self._member(known))
        return Declaration(kind, name, self._text, members)

    def _block(self, known: Mapping[str, str]) -> list[Member]:
        self._sign("{")
        found = []
        while not self._is("}"):
            found.append(self._member(known))
        return found

    def _member(self, known: Mapping[str, str]) -> Member:
        _, word, at = self._tokens[self._next]
        if word not in known:
            self._refuse(" or ".join([*(f"'{one}'" for one in sorted(known)), "'}'"]), tuple(known))
        self._next += 1
        return Member(word, self._readers[known[word]](), at)

    def _attribute(self) -> tuple[Any, ...]:
        self._sign("(")
        key = self._string()
        self._sign(",")
        value = self._json(_DEEPEST)
        stamp = Name(*self._take("value")) if self._is(",") else None
        self._sign(")")
        return key, value, stamp

    def _range(self) -> tuple[str]:
        if self._is("*"):
            return ("*",)
        low, _ = self._take("number")
        if not low.isdigit():
            self._next -= 1
            self._refuse("'*' or a whole number")
        return (low,)

    def _transforms(self) -> tuple[Any, ...]:
        self._sign("{")
        found = []
        while not self._is("}"):
            self._keyword(("RigidTransform",))
            found.append(Rigid(self._name(), self._block(RIGID)))
        return tuple(found)

    def _geometry(self) -> tuple[Any, ...]:
        name = self._name()
        has_options = self._tokens[self._next][1] == "{"
        return name, self._block(OPTIONS) if has_options else []

    def _trigger(self) -> tuple[Any, ...]:
        _, word, _ = self._keyword(("after", "every", "onChange"))
        return word, self._quantity() if word == "every" else self._name()

    def _import(self) -> tuple[Any, ...]:
        at = self._tokens[self._next][2]
        file = Name(self._string(), at)
        prefix = self._name() if self._is("as") else None
        return file, prefix, self._name() if self._is("at") else None

    def _relation(self) -> tuple[Any, ...]:
        _, word, _ = self._keyword(("Orientation", "Pose", "Position", "Twist"))
        self._sign("(")
        return word, self._listed(")", self._string), self._json(1)


def numbers_in(text: str) -> list[tuple[float, str]]:
    """Return the numbers of a value in brackets or parentheses with the units behind them."""
    plain = re.sub(r"//[^\n]*", "", text)
    return [(float(number), unit or "") for number, unit in _NUMBERS.findall(plain)]


_NUMBERS = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\W\d]\w*)?")
