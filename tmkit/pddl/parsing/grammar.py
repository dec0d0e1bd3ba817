"""Syntax check of PDDL lists with pddlpy's lexer and grammar.

The generated ANTLR grammar of pddlpy defines the syntax, with four limitations for real files. It
reserves words such as ``start`` or ``within`` that may be names. It accepts fewer characters in
names, and no negative numbers. It requires one order of sections. It takes a few hundred
microseconds for each short list.

Each list is therefore *respelled* for the grammar. Every name becomes ``name``, every variable
``?v`` and every number ``0``. A nested list, which is checked separately, becomes ``(name)``. The
result is the shape of the list. Even a file of a million characters has a few dozen shapes; each is
parsed once and the result is cached. A long run of repeatable parts is shortened.

The original words are kept with the respelled ones, for the line and column of an error. The
content of an accepted list is read from the list itself (:mod:`tmkit.pddl.parsing.trees`).

``DomainProblem`` of pddlpy is not used, because it suppresses errors and flattens goals.
"""

from __future__ import annotations

import functools
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, NoReturn

from antlr4 import CommonTokenStream, InputStream, PredictionMode  # type: ignore[import-untyped]  # has no stubs
from antlr4.error.ErrorListener import ErrorListener  # type: ignore[import-untyped]  # has no stubs
from antlr4.error.Errors import NoViableAltException  # type: ignore[import-untyped]  # has no stubs
from pddlpy.pddlLexer import pddlLexer  # type: ignore[import-untyped]  # has no stubs
from pddlpy.pddlParser import pddlParser  # type: ignore[import-untyped]  # has no stubs

from tmkit.pddl.parsing.source import Group, Source, Token

Rule = Callable[[Any], Any]
"""Rule of pddlpy's grammar as an unbound method, such as ``pddlParser.goalDesc``."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\Z")
_COMPARISONS = frozenset({"=", "<", ">", "<=", ">="})
_SIGNS = _COMPARISONS | frozenset("(-)+*/")

ASSIGNMENTS = frozenset({"assign", "increase", "decrease", "scale-up", "scale-down"})
"""First words of numeric effects."""

LOGIC = frozenset({"and", "or", "not", "imply", "exists", "forall", "either"}) | (
    _SIGNS - {"(", ")"}
)
"""Keywords at the head of a list in conditions."""

EFFECTS = LOGIC | ASSIGNMENTS | {"when"}
"""Keywords at the head of a list in actions."""

_TRAJECTORY = (
    "always sometime within at-most-once sometime-after sometime-before always-within hold-during"
    " hold-after"
)
_UNSUPPORTED_FEATURES = {
    **dict.fromkeys(_TRAJECTORY.split(), "trajectory constraints are"),
    "preference": "a preference outside of a goal is",
    "oneof": "'oneof' outside of an effect without duration is",
    "probabilistic": "'probabilistic' outside of an effect without duration is",
    "unknown": "an unknown fact is",
    "?duration": "'?duration' in a condition or effect is",
}
MAX_RUN = 3
"""Largest number of equal consecutive parts in a shape, more than any grammar rule counts."""

_NON_TERMS = _SIGNS | {"?"}
_NUMERIC_SIGNS = _SIGNS - {"(", ")", "="}

_MAX_CACHED_LENGTH = 100
"""Largest number of words of a cached shape."""


def is_name(word: str) -> bool:
    """Return whether a word after the head of a list is a name, which may look like a number."""
    return word[0] not in "?:" and word not in _SIGNS


def is_term(word: str) -> bool:
    """Return whether a word after the head of a list is a name or a variable."""
    return word[0] != ":" and word not in _NON_TERMS


def is_number(word: str) -> bool:
    """Return whether a word is a number in a numeric context."""
    return _NUMBER.match(word) is not None


class Spelling:
    """Shape of a list, and its check by the grammar.

    Args:
        source: PDDL text.
        keywords: words that keep their meaning at the head of a list; all other reserved words
            become names.
        functions: names of functions that may be written without parentheses.
        predicates: names of predicates, which are not reported as unsupported features.

    A word that looks like a number may be a name, such as the object ``1``. It is a number only
    directly in a comparison, calculation or assignment. ``(= a 1)`` is a numeric comparison if an
    argument is a list or a function.
    """

    def __init__(
        self,
        source: Source,
        *,
        keywords: frozenset[str],
        functions: Iterable[str] = (),
        predicates: Iterable[str] = (),
    ) -> None:
        self._source = source
        self._keywords = keywords
        self._functions, self._predicates = functions, predicates
        self._words: list[str] = []
        self._originals: list[Token] = []

    def add_verbatim(self, spelling: str, original: Token) -> None:
        """Append a word unchanged; errors about it refer to the original token."""
        self._words.append(spelling)
        self._originals.append(original)

    def word(self, token: Token, *, head: bool = False, numeric: bool = False) -> None:
        """Append a respelled word.

        Args:
            token: word of the text.
            head: whether the word is at the head of a list, and may be a keyword.
            numeric: whether the context is numeric, and the word may be a number.
        """
        spelling = self._spell(token.text, head)
        if numeric and spelling == "name" and is_number(token.text):
            if not math.isfinite(float(token.text)):
                raise self._source.error(token, "this number is too large")
            spelling = "0"
        if self._words[-MAX_RUN:] != [spelling] * MAX_RUN:
            self.add_verbatim(spelling, token)

    def _spell(self, word: str, head: bool) -> str:
        if word in _SIGNS or (head and word in self._keywords) or word[0] == ":":
            return word
        if word[0] == "?":
            return "?v" if len(word) > 1 else word
        return "name"

    def group(self, group: Group) -> None:
        """Append a list with all nested lists."""
        self.add_verbatim("(", group.opening)
        numeric = self.calculates(group)
        for position, part in enumerate(group.parts):
            if isinstance(part, Group):
                self.group(part)
            else:
                self.word(part, head=position == 0, numeric=numeric)
        self.add_verbatim(")", group.closing)

    def add_outline(self, group: Group) -> None:
        """Append a list with ``(name)`` for each nested list, which is checked separately."""
        self.add_verbatim("(", group.opening)
        self.add_outline_parts(group.parts)
        self.add_verbatim(")", group.closing)

    def add_outline_parts(self, parts: Iterable[Token | Group]) -> None:
        """Append the parts of a list as :meth:`add_outline` does."""
        run = 0
        for position, part in enumerate(parts):
            if isinstance(part, Token):
                self.word(part, head=position == 0)
                run = 0
            elif run < MAX_RUN:
                run += 1
                for spelling, original in (
                    ("(", part.opening),
                    ("name", part.first),
                    (")", part.closing),
                ):
                    self.add_verbatim(spelling, original)

    def add_typed_list(self, parts: Iterable[Token | Group]) -> None:
        """Append the parts of a typed list, without repetitions.

        Several names of one type become a single name, and equal entries a single entry.
        """
        start, previous_entry = len(self._words), [""]
        previous = ""
        for part in parts:
            is_type = previous == "-"
            previous = "" if isinstance(part, Group) else part.text
            if isinstance(part, Group):
                self.group(part)
            elif (
                len(self._words) == start
                or is_type
                or self._words[-1] != self._spell(part.text, head=False)
            ):
                self.word(part)
            if is_type:
                entry = self._words[start:]
                if entry == previous_entry:
                    del self._words[start:], self._originals[start:]
                start, previous_entry = len(self._words), entry

    def calculates(self, group: Group) -> bool:
        """Return whether words directly in the list that look like numbers are numbers."""
        if group.head == "=":
            return any(
                isinstance(part, Group) or part.text in self._functions for part in group.parts[1:]
            )
        return group.head in _NUMERIC_SIGNS or (
            group.head in ASSIGNMENTS and group.head in self._keywords
        )

    def require(self, rule: Rule) -> None:
        """Check that all words together match a rule of the grammar."""
        check = _fault if len(self._words) <= _MAX_CACHED_LENGTH else _fault.__wrapped__
        if fault := check(rule, tuple(self._words)):
            index, expected = fault
            original = self._originals[index]
            for word, previous in zip(
                self._originals[index::-1], self._words[index - 1 :: -1], strict=False
            ):
                is_feature = (
                    word.text in _UNSUPPORTED_FEATURES and word.text not in self._predicates
                )
                if is_feature and (previous == "(" or word.text[0] == "?"):
                    raise self._source.error(
                        word, f"{_UNSUPPORTED_FEATURES[word.text]} not supported"
                    )
            raise self._source.error(original, f"unexpected '{original.text}'{expected}")


@functools.lru_cache(maxsize=4096)
def _fault(rule: Rule, words: tuple[str, ...]) -> tuple[int, str] | None:
    """Return the index of the first word that violates a rule, and the expected words, if any."""
    try:
        _parse(rule, words, PredictionMode.SLL)
    except _UnexpectedError:
        # the fast mode may reject words that the full mode accepts, but not vice versa
        try:
            _parse(rule, words, PredictionMode.LL)
        except _UnexpectedError as error:
            starts = list(accumulate((len(word) + 1 for word in words[:-1]), initial=0))
            return bisect_right(starts, error.offset) - 1, error.expected
    return None


def _parse(rule: Rule, words: tuple[str, ...], mode: Any) -> None:
    listener = _SyntaxErrorListener()
    lexer = pddlLexer(InputStream(" ".join(words)))
    parser = pddlParser(CommonTokenStream(lexer))
    for recognizer in (lexer, parser):
        recognizer.removeErrorListeners()
        recognizer.addErrorListener(listener)
    parser._interp.predictionMode = mode
    rule(parser)
    token = parser.getCurrentToken()
    if token.type != token.EOF:
        raise _UnexpectedError(token.start)


class _UnexpectedError(Exception):
    """Violation of a grammar rule at an offset."""

    def __init__(self, offset: int, expected: str = "") -> None:
        super().__init__()
        self.offset, self.expected = offset, expected


class _SyntaxErrorListener(ErrorListener):  # type: ignore[misc]  # antlr4 has no type information
    """Listener that raises on the first error."""

    def syntaxError(  # noqa: N802
        self, recognizer: Any, symbol: Any, _: int, column: int, *arguments: Any
    ) -> NoReturn:
        """Reject the token.

        ANTLR calls this by position, with line, column, message and exception.
        """
        # after this exception, the expected words concern an earlier token
        is_ambiguous = isinstance(arguments[-1], NoViableAltException)
        expected = []
        if isinstance(recognizer, pddlParser) and not is_ambiguous:
            expected = _list_expected(recognizer)
        hint = ""
        if 0 < len(expected) <= 6:
            separator = " or " if len(expected) > 1 else ""
            hint = f"; expected {', '.join(expected[:-1])}{separator}{expected[-1]}"
        raise _UnexpectedError(column if symbol is None else symbol.start, hint)


_KIND_NAMES = {
    "NAME": "a name",
    "VARIABLE": "a variable",
    "NUMBER": "a number",
    "REQUIRE_KEY": "a requirement",
}


def _list_expected(parser: Any) -> list[str]:
    """Return descriptions of the next tokens that the parser accepts.

    Names that are also keywords are omitted.
    """
    words: list[str] = []
    for interval in parser.getExpectedTokens().intervals or ():
        for kind in interval:
            if 0 < kind < len(parser.literalNames) and parser.literalNames[kind] not in (
                "<INVALID>",
                "'at'",
                "'over'",
            ):
                words.append(parser.literalNames[kind])
            elif 0 < kind < len(parser.symbolicNames):
                words.append(_KIND_NAMES.get(parser.symbolicNames[kind], ""))
    return sorted(word for word in words if word)
