"""Index of an unfinished text: its words with their block and keyword, and its names.

The scan goes from left to right and accepts every text. It treats each word that is a keyword of
the enclosing block as a keyword. Tables define the keywords that declare names, and the kinds of
names after others. The readers of the formats, not this scan, check whether a text is valid. The
scan of a file of 1,000 frames (330 kB) takes 0.03 s.
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
    """Tables of a language.

    Attributes:
        token: pattern of words, quoted texts and signs. A match without a group is skipped.
        blocks: keywords that a block may contain, by the keyword that opens it; "" is the file.
        declares: kind of the name that follows a keyword.
        names: kinds of names that may follow a keyword; "" is for all other keywords.
        words: other words that may follow a keyword.
    """

    token: re.Pattern[str]
    blocks: Mapping[str, tuple[str, ...]]
    declares: Mapping[str, str]
    names: Mapping[str, tuple[str, ...]]
    words: Mapping[str, tuple[str, ...]]


_FRAME_KEYWORDS = ("isa", *FRAME_RULES, "frame", "geometry")
_CLASS_KEYWORDS = ("isa", *CLASS_RULES)
_GEOMETRY_KEYWORDS = ("isa", *GEOMETRY_RULES)
_ROBRAY = Language(
    re.compile(
        r"//[^\n]*+|#[^\n]*+|/\*(?s:.*?)(?:\*/|\Z)|\d[\w.]*+"
        r'|(?P<text>"[^"\n]*+"?)|(?P<word>[^\W\d]\w*(?:-+\w+)*)|(?P<sign>[{};])'
    ),
    blocks={
        "": _ROBRAY_TOP,
        "frame": _FRAME_KEYWORDS,
        "class": _CLASS_KEYWORDS,
        "geometry": _GEOMETRY_KEYWORDS,
    },
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
        r"|(?P<number>\*|\d[\w.]*+|(?:HomogeneousTransformationMatrix|Pose|TimeStamp)\s*\((?:[^)/{}]|//[^\n]*\n)*\))"
        r'|(?P<text>"(?:[^"\\\n]|\\.)*"?)|(?P<word>\^?[^\W\d]\w*+)|(?P<sign>[{}])'
    ),
    blocks={
        "": KEYWORDS,
        **{kind: tuple(keywords) for kind, keywords in BLOCKS.items()},
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
    """Declared name.

    Attributes:
        name: the name.
        kind: its kind, such as frame, node or class.
        offset: offset of the name.
        begin: offset of the declaration.
        end: end of the declaration.
        keyword: keyword of the declaration.
        parent: name of its parent, empty if the text has none.
    """

    name: str
    kind: str
    offset: int
    begin: int
    end: int
    keyword: str
    parent: str = ""

    def end_at(self, end: int) -> None:
        """Set the end of the declaration."""
        self.end = end

    def set_parent(self, parent: str) -> None:
        """Set the name of the parent."""
        self.parent = parent


@dataclass(eq=False, slots=True)
class Block:
    """Open brace with the keyword before it, or open parenthesis with its first word."""

    keyword: str
    symbol: Symbol | None = None
    word: str = ""  # PDDL: the last keyword in the list, such as :effect

    def begin(self, word: str) -> None:
        """Set the keyword of a list to its first word."""
        self.keyword = word
        self.enter(word)

    def enter(self, word: str) -> None:
        """Enter the section of a keyword such as ``:effect``; other words have no effect."""
        if word.startswith(":"):
            self.word = word

    def declare(self, symbol: Symbol) -> None:
        """Set the symbol that the list declares."""
        self.symbol = symbol


class Token(NamedTuple):
    """Word, quoted text or sign, with its block and keyword.

    Attributes:
        offset: offset of its first character.
        text: its text.
        kinds: kinds of the names that it may be.
        block: innermost open block.
        keyword: keyword of its statement.
        values: count of the values of the keyword, up to this token.
    """

    offset: int
    text: str
    kinds: tuple[str, ...]
    block: Block
    keyword: str
    values: int


@dataclass(slots=True)
class Scan:
    """Words and names of a text.

    Attributes:
        tokens: words, quoted texts and signs.
        symbols: declared names.
        files: included files.
        defines: for PDDL, ``domain``, or ``:domain`` for a problem.
        domain: for PDDL, the name of the domain.
    """

    tokens: list[Token] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    defines: str = ""
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
        """Set the name of the domain or problem; the last call counts."""
        self.defines = keyword
        self.domain = name


class TextIndex:
    """Words and names of the text of a file.

    Args:
        path: the file, with the suffix of one of the languages.
        text: its text, with line feeds as line ends.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.language = LANGUAGES[path.suffix.lower()]

    @cached_property
    def scan(self) -> Scan:
        """Words and names of the text."""
        scan = _scan_lists if self.language is _PDDL else _scan_braces
        return scan(self.language, self.text)

    @cached_property
    def _token_offsets(self) -> list[int]:
        return [token.offset for token in self.scan.tokens]

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.split("\n")

    @cached_property
    def _line_begins(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column, from 0, of an offset."""
        line = bisect_right(self._line_begins, offset) - 1
        return line, offset - self._line_begins[line]

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, from 0."""
        begin = self._line_begins[min(line, len(self._line_begins) - 1)]
        return min(begin + column, len(self.text))

    def token_before(self, offset: int) -> Token | None:
        """Return the last token that ends before an offset, or None."""
        tokens = self.scan.tokens
        index = bisect_right(self._token_offsets, offset - 1)
        while index and tokens[index - 1].offset + len(tokens[index - 1].text) >= offset:
            if tokens[index - 1].text in "{}();" and tokens[index - 1].offset < offset:
                break  # a sign is complete
            index -= 1
        return tokens[index - 1] if index else None

    def token_at(self, offset: int) -> Token | None:
        """Return the token at an offset, or None."""
        index = bisect_right(self._token_offsets, offset)
        candidates = self.scan.tokens[max(index - 2, 0) : index]
        for token in reversed(candidates):
            if token.offset <= offset <= token.offset + len(token.text):
                return token
        return None


def _scan_braces(language: Language, text: str) -> Scan:
    """Return the words and names of a text in robray or RSG-DSL."""
    scan = Scan()
    is_rsg = language is _RSG
    top = Block("")
    stack = [top]
    keywords = language.blocks[""]
    keyword = ""
    count = begin = end = 0
    symbol: Symbol | None = None
    parents: dict[str, str] = {}
    for match in language.token.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        word, offset = match[0], match.start()
        kinds: tuple[str, ...] = ()
        if kind == "sign":
            if word == "{":
                stack.append(Block(keyword, symbol))
            elif word == "}":
                block = stack.pop() if len(stack) > 1 else top
                if block.symbol is not None:
                    block.symbol.end_at(match.end())
            keywords = language.blocks.get(stack[-1].keyword, ())
            keyword, count, symbol = "", 0, None
        elif (
            kind == "word"
            and word in keywords
            # A line end also ends an incomplete statement.
            and (not keyword or (is_rsg and count) or "\n" in text[end:offset])
        ):
            keyword, begin, symbol = word, offset, None
            count = int(word == "unplaced")
        elif not keyword:
            keyword, count, begin = word, 0, offset
        elif kind == "number":
            count += 1
        else:
            name = word.strip('"').lstrip("^")
            block = stack[-1]
            if not count and keyword in language.declares and block.keyword != "class":
                parent = ""
                if block.symbol is not None and keyword == "frame":
                    parent = block.symbol.name
                kinds = (language.declares[keyword],)
                stop = text.find("\n", offset)
                stop = stop if stop >= 0 else len(text)
                symbol = scan.add_symbol(
                    Symbol(name, kinds[0], offset, begin, stop, keyword, parent)
                )
            elif (
                is_rsg
                and word in language.names
                and word in ("after", "onChange", "of", "at", "type")
            ):
                keyword, count = word, -1  # a keyword within a statement
            else:
                kinds = language.names.get(keyword, language.names[""])
                if keyword == "child" and block.symbol is not None:
                    parents.setdefault(name, block.symbol.name)
                elif keyword == "parent" and block.symbol is not None:
                    block.symbol.set_parent(name)
                elif keyword in ("include", "import") and not count:
                    scan.add_file(name)
            count += 1
            if keyword == "include":
                keyword, count = "", 0
        end = match.end()
        scan.add_token(Token(offset, word, kinds, stack[-1], keyword, count))
    for symbol in scan.symbols:
        symbol.set_parent(symbol.parent or parents.get(symbol.name, ""))
    return scan


def _scan_lists(language: Language, text: str) -> Scan:
    """Return the words and names of a text in PDDL."""
    scan = Scan()
    stack = [Block("")]
    begins = [0]
    previous = ""
    for match in language.token.finditer(text):
        if match.lastgroup is None:
            continue
        word, offset = match[0].lower(), match.start()
        kinds: tuple[str, ...] = ()
        block = stack[-1]
        if word == "(":
            stack.append(Block("", word=block.word or block.keyword))
            begins.append(offset)
        elif word == ")":
            if len(stack) > 1:
                begins.pop()
                symbol = stack.pop().symbol
                if symbol is not None:
                    symbol.end_at(match.end())
        elif previous == "(":
            block.begin(word)
            section = stack[-2].keyword if len(stack) > 1 else ""
            kinds = language.names["("]
            if section in (":predicates", ":functions"):
                block.declare(
                    _declare(
                        scan, match[0], language.declares[section], offset, begins[-1], section
                    )
                )
        elif block.keyword in (":domain", "domain", "problem"):
            scan.define(block.keyword, word)  # of a problem, ":domain" is the last
        elif previous == "-":
            kinds = ("type",)
        elif block.keyword == ":action" and previous == ":action":
            kinds = ("action",)
            block.declare(_declare(scan, match[0], "action", offset, begins[-1], ":action"))
        elif block.keyword in (":types", ":constants", ":objects") and word != "-":
            kinds = (language.declares[block.keyword],)
            stop = re.compile(r"[^()\n;]*").match(text, offset)
            symbol = _declare(scan, match[0], kinds[0], offset, offset, block.keyword)
            symbol.end_at(stop.end() if stop else offset)
        elif word.startswith(":"):
            block.enter(word)
        else:
            kinds = ("object", "type")
        keyword = block.word or block.keyword if word == "(" else word
        scan.add_token(Token(offset, match[0], kinds, stack[-1], keyword, 1))
        previous = word
    return scan


def _declare(scan: Scan, name: str, kind: str, offset: int, begin: int, keyword: str) -> Symbol:
    """Add a symbol, whose declaration ends with its name, and return it."""
    return scan.add_symbol(Symbol(name.lower(), kind, offset, begin, offset + len(name), keyword))
