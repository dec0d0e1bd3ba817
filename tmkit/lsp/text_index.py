"""Index of a text that may be half-written: words with the block and the keyword they belong to, and names.

A scan from left to right, which no text breaks. It takes what looks like a keyword for one, and
knows from tables which keywords declare names, and of which kind the names after others are. It
does not ask whether the text is right; the readers of the formats do. A file of 1,000 frames (330
kB) is scanned in 0.03 s.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tmkit.formats.robray.format import ROBRAY
from tmkit.formats.robray.reader import KNOWN_CLASSES
from tmkit.formats.robray.values import CLASS_RULES, FRAME_RULES, GEOMETRY_RULES
from tmkit.formats.rsg.format import RSG
from tmkit.formats.rsg.grammar import BLOCKS, KEYWORDS, LINES, NODES, OPTIONS, RIGID, SIZES
from tmkit.formats.rsg.values import UNITS
from tmkit.pddl.parsing.parser import DOMAIN_SECTIONS, PROBLEM_SECTIONS, REQUIREMENTS

_ROBRAY_TOP = ("allow_collision", "class", "def", "frame", "include")
_LOGIC = ("and", "exists", "forall", "imply", "not", "or", "when", "=", "increase")


@dataclass(frozen=True, slots=True)
class Language:
    """The tables of a language."""

    # finds words, quoted texts and signs; what it matches without a group is skipped
    token: re.Pattern[str]
    # the keywords that may stand in a block, by the keyword that opens it; "" is the file
    blocks: Mapping[str, tuple[str, ...]]
    declares: Mapping[str, str]  # the kind of the name that follows a keyword
    # the kinds of names that may follow a keyword; "" is for all others
    names: Mapping[str, tuple[str, ...]]
    words: Mapping[str, tuple[str, ...]]  # what else may follow


_FRAME, _CLASS, _GEOMETRY = (
    ("isa", *rules, *more)
    for rules, more in (
        (FRAME_RULES, ("frame", "geometry")),
        (CLASS_RULES, ()),
        (GEOMETRY_RULES, ()),
    )
)
_ROBRAY = Language(
    re.compile(
        r"//[^\n]*+|#[^\n]*+|/\*(?s:.*?)(?:\*/|\Z)|\d[\w.]*+"
        r'|(?P<text>"[^"\n]*+"?)|(?P<word>[^\W\d]\w*+(?:-++\w++)*+)|(?P<sign>[{};])'
    ),
    blocks={"": _ROBRAY_TOP, "frame": _FRAME, "class": _CLASS, "geometry": _GEOMETRY},
    declares={"frame": "frame", "class": "class", "def": "constant"},
    names={
        "parent": ("frame",),
        "allow_collision": ("frame",),
        "isa": ("class",),
        "include": (),
        "mesh": (),
        **{key: () for key, rule in CLASS_RULES.items() if rule.choices or rule.kind == "text"},
        "variable": (),
        "": ("constant",),
    },
    words={
        **{
            key: rule.choices or ("true", "false")
            for key, rule in CLASS_RULES.items()
            if rule.choices or rule.kind == "switch"
        },
        "isa": KNOWN_CLASSES,
    },
)
_LENGTHS = tuple(UNITS["length"])
_RSG = Language(
    re.compile(
        r"//[^\n]*+|/\*(?s:.*?)(?:\*/|\Z)"
        r"|(?P<number>\*|\d[\w.]*+|(?:HomogeneousTransformationMatrix|Pose|TimeStamp)\s*\((?:[^)/{}]|//[^\n]*+)*+\))"
        r'|(?P<text>"(?:[^"\\\n]|\\.)*+"?)|(?P<word>\^?[^\W\d]\w*+)|(?P<sign>[{}])'
    ),
    blocks={
        "": KEYWORDS,
        **{kind: tuple(known) for kind, known in BLOCKS.items()},
        "transforms": ("RigidTransform",),
        "RigidTransform": tuple(RIGID),
        "geometry": tuple(OPTIONS),
    },
    declares={
        **dict.fromkeys((*NODES, "Instance"), "node"),
        **dict.fromkeys((*SIZES, *LINES), "shape"),
        "Instance": "node",
        "PointCloudType": "type",
        "MeshType": "type",
        "FunctionBlock": "function block",
    },
    names={
        **dict.fromkeys(
            (
                "child",
                "member",
                "root",
                "of",
                "at",
                "AllowCollision",
                "inputStructure",
                "inputHook",
                "outputStructure",
                "outputHook",
                "onChange",
            ),
            ("node",),
        ),
        "geometry": ("shape",),
        "type": ("type",),
        "after": ("function block",),
        "": (),
    },
    words={
        **dict.fromkeys(("sizeX", "sizeY", "sizeZ", "radius", "height"), _LENGTHS),
        "trigger": ("after", "every", "onChange"),
        "Relation": ("Orientation", "Pose", "Position", "Twist"),
        "value": ("HomogeneousTransformationMatrix", "Pose"),
        "stamp": ("TimeStamp",),
        **{kind: tuple(line) for kind, line in LINES.items()},
        "import": ("as", "at"),
    },
)
_PDDL = Language(
    re.compile(r";[^\n]*+|(?P<sign>[()])|(?P<word>[^\s();]++)"),
    blocks={
        "": (),
        "define": (*DOMAIN_SECTIONS, *PROBLEM_SECTIONS, "domain", "problem"),
        ":action": (":effect", ":parameters", ":precondition"),
        **dict.fromkeys(_LOGIC, _LOGIC),
        ":durative-action": (":condition", ":duration", ":effect", ":parameters"),
        **dict.fromkeys((":goal", ":derived", ":precondition", ":condition", ":effect"), _LOGIC),
        ":init": ("=", "not"),
        ":metric": ("minimize",),
    },
    declares={
        ":types": "type",
        ":constants": "object",
        ":objects": "object",
        ":predicates": "predicate",
        ":functions": "function",
        ":action": "action",
        ":durative-action": "action",
    },
    names={"-": ("type",), "(": ("predicate", "function"), "": ("object",)},
    words={":requirements": tuple(sorted(REQUIREMENTS))},
)
LANGUAGES: Mapping[str, Language] = {
    **dict.fromkeys(ROBRAY.suffixes, _ROBRAY),
    **dict.fromkeys(RSG.suffixes, _RSG),
    ".pddl": _PDDL,
}


@dataclass(eq=False, slots=True)
class Symbol:
    """A name that a text declares."""

    name: str
    kind: str  # frame, node, class,
    at: int  # where the name begins; begin, end: what is shown of the declaration
    begin: int
    end: int
    keyword: str  # the word that declares it
    parent: str = ""  # what it is below, empty if the text does not say

    def end_at(self, end: int) -> None:
        """End the declaration at an offset."""
        self.end = end

    def put_below(self, parent: str) -> None:
        """Set the name of what it is below."""
        self.parent = parent


@dataclass(eq=False, slots=True)
class Block:
    """An open brace or parenthesis: the keyword before it, or the first word in it."""

    keyword: str
    symbol: Symbol | None = None
    word: str = ""  # PDDL: the last keyword in the list, such as :effect

    def begin(self, word: str) -> None:
        """Take the first word of a list as its keyword."""
        self.keyword = word
        self.enter(word)

    def enter(self, word: str) -> None:
        """Enter the section of a keyword such as ``:effect``; other words change nothing."""
        if word.startswith(":"):
            self.word = word

    def declare(self, symbol: Symbol) -> None:
        """Take a symbol as the one that the list declares."""
        self.symbol = symbol


class Token(NamedTuple):
    """A word, quoted text or sign, with what may follow it: in which block, as which value of which keyword."""

    at: int
    text: str
    kinds: tuple[str, ...]  # of names that it may be
    block: Block
    keyword: str
    values: int  # of the keyword, up to here


@dataclass(slots=True)
class Scan:
    """The words and names of a text."""

    tokens: list[Token] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    files: list[str] = field(default_factory=list)  # that it includes
    defines: str = ""  # of PDDL: domain or, in a problem, :domain, and its name
    domain: str = ""

    def add_token(self, token: Token) -> None:
        """Add a token."""
        self.tokens.append(token)

    def add_symbol(self, symbol: Symbol) -> Symbol:
        """Add a symbol, and return it."""
        self.symbols.append(symbol)
        return symbol

    def add_file(self, name: str) -> None:
        """Add the name of a file that the text includes."""
        self.files.append(name)

    def define(self, keyword: str, name: str) -> None:
        """Set the name of the domain or problem; the last one counts."""
        self.defines, self.domain = keyword, name


class TextIndex:
    """The words and names of a text of a file; ends of its lines are line feeds."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text, self.language = path, text, LANGUAGES[path.suffix.lower()]

    @cached_property
    def scan(self) -> Scan:
        """What a scan of the text finds."""
        return (_scan_lists if self.language is _PDDL else _scan_braces)(self.language, self.text)

    @cached_property
    def _begins(self) -> list[int]:
        return [token.at for token in self.scan.tokens]

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.split("\n")

    @cached_property
    def _line_begins(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def place(self, at: int) -> tuple[int, int]:
        """Return line and column, from 0, of an offset."""
        line = bisect_right(self._line_begins, at) - 1
        return line, at - self._line_begins[line]

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, from 0."""
        begin = self._line_begins[min(line, len(self._line_begins) - 1)]
        return min(begin + column, len(self.text))

    def before(self, at: int) -> Token | None:
        """Return the last token that ends before an offset: what may stand there is told by it."""
        index = bisect_right(self._begins, at - 1)
        while (
            index and self.scan.tokens[index - 1].at + len(self.scan.tokens[index - 1].text) >= at
        ):
            if self.scan.tokens[index - 1].text in "{}();" and self.scan.tokens[index - 1].at < at:
                break  # a sign ends at once
            index -= 1
        return self.scan.tokens[index - 1] if index else None

    def on(self, at: int) -> Token | None:
        """Return the token on which an offset lies."""
        index = bisect_right(self._begins, at)
        near = self.scan.tokens[max(index - 2, 0) : index]
        return next((one for one in reversed(near) if one.at <= at <= one.at + len(one.text)), None)


def _scan_braces(language: Language, text: str) -> Scan:
    found, is_rsg = Scan(), language is _RSG
    top = Block("")
    stack, known = [top], language.blocks[""]
    keyword, count, begin, end = "", 0, 0, 0
    made: Symbol | None = None
    holders: dict[str, str] = {}
    for match in language.token.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        word, at = match[0], match.start()
        kinds: tuple[str, ...] = ()
        if kind == "sign":
            if word == "{":
                stack.append(Block(keyword, made))
            elif word == "}":
                closed = stack.pop() if len(stack) > 1 else top
                if closed.symbol is not None:
                    closed.symbol.end_at(match.end())
            known = language.blocks.get(stack[-1].keyword, ())
            keyword, count, made = "", 0, None
        elif (
            kind == "word"
            and word in known
            and (
                # a line before is not complete
                not keyword or (is_rsg and count) or "\n" in text[end:at]
            )
        ):
            keyword, count, begin, made = word, int(word == "unplaced"), at, None
        elif not keyword:
            keyword, count, begin = word, 0, at
        elif kind == "number":
            count += 1
        else:
            name = word.strip('"').lstrip("^")
            block = stack[-1]
            if not count and keyword in language.declares and block.keyword != "class":
                above = block.symbol.name if block.symbol is not None and keyword == "frame" else ""
                kinds = (language.declares[keyword],)
                stop = text.find("\n", at)
                stop = stop if stop >= 0 else len(text)
                made = found.add_symbol(Symbol(name, kinds[0], at, begin, stop, keyword, above))
            elif (
                is_rsg
                and word in language.names
                and word in ("after", "onChange", "of", "at", "type")
            ):
                keyword, count = word, -1  # a keyword within a statement
            else:
                kinds = language.names.get(keyword, language.names[""])
                if keyword == "child" and block.symbol is not None:
                    holders.setdefault(name, block.symbol.name)
                elif keyword == "parent" and block.symbol is not None:
                    block.symbol.put_below(name)
                elif keyword in ("include", "import") and not count:
                    found.add_file(name)
            count += 1
            if keyword == "include":
                keyword, count = "", 0
        end = match.end()
        found.add_token(Token(at, word, kinds, stack[-1], keyword, count))
    for symbol in found.symbols:
        symbol.put_below(symbol.parent or holders.get(symbol.name, ""))
    return found


def _scan_lists(language: Language, text: str) -> Scan:
    found = Scan()
    stack, opened, before = [Block("")], [0], ""
    for match in language.token.finditer(text):
        if match.lastgroup is None:
            continue
        word, at = match[0].lower(), match.start()
        kinds: tuple[str, ...] = ()
        block = stack[-1]
        if word == "(":
            stack.append(Block("", word=block.word or block.keyword))
            opened.append(at)
        elif word == ")":
            if len(stack) > 1:
                opened.pop()
                symbol = stack.pop().symbol
                if symbol is not None:
                    symbol.end_at(match.end())
        elif before == "(":
            block.begin(word)
            section = stack[-2].keyword if len(stack) > 1 else ""
            kinds = language.names["("]
            if section in (":predicates", ":functions"):
                block.declare(
                    _declared(found, match[0], language.declares[section], at, opened[-1], section)
                )
        elif block.keyword in (":domain", "domain", "problem"):
            found.define(block.keyword, word)  # of a problem, ":domain" is the last
        elif before == "-":
            kinds = ("type",)
        elif block.keyword == ":action" and before == ":action":
            kinds = ("action",)
            block.declare(_declared(found, match[0], "action", at, opened[-1], ":action"))
        elif block.keyword in (":types", ":constants", ":objects") and word != "-":
            kinds = (language.declares[block.keyword],)
            stop = re.compile(r"[^()\n;]*").match(text, at)
            _declared(found, match[0], kinds[0], at, at, block.keyword).end_at(
                stop.end() if stop else at
            )
        elif word.startswith(":"):
            block.enter(word)
        else:
            kinds = ("object", "type")
        found.add_token(
            Token(
                at,
                match[0],
                kinds,
                stack[-1],
                block.word or block.keyword if word == "(" else word,
                1,
            )
        )
        before = word
    return found


def _declared(found: Scan, name: str, kind: str, at: int, begin: int, keyword: str) -> Symbol:
    return found.add_symbol(Symbol(name.lower(), kind, at, begin, at + len(name), keyword))
