"""Asking pddlpy's lexer and grammar whether a list of PDDL is well formed.

The idea: pddlpy's generated ANTLR grammar decides what is well formed, but four things stand
between it and real files. It reserves words such as ``start`` or ``within`` that may be names. It
accepts fewer characters in names, and no negative numbers. It requires one order of sections. It
takes some hundred microseconds for each short list. So a list is handed to it *respelled*: every
name becomes ``name``, every variable ``?v``, every number ``0``, and a list inside a list, which is
judged on its own, ``(name)``. All that is left is the list's shape, of which even a file of a
million characters has a few dozen: each is parsed once, and what the grammar said of it is
remembered. Where the grammar lets something stand as often as one likes, a long run is handed over
as a short one.

Beside the respelled words stand the original ones, for the line and column of an error. What a list
that was accepted *says* is read from the list itself (:mod:`tmkit.pddl.parsing.trees`).

``DomainProblem`` of pddlpy is never used: it swallows errors and flattens goals.
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

# A rule of pddlpy's grammar as an unbound method, such as pddlParser.goalDesc
Rule = Callable[[Any], Any]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\Z")
_COMPARISONS = frozenset({"=", "<", ">", "<=", ">="})
_SIGNS = _COMPARISONS | frozenset("(-)+*/")

ASSIGNMENTS = frozenset({"assign", "increase", "decrease", "scale-up", "scale-down"})
"""The words at the head of a numeric effect."""

LOGIC = frozenset({"and", "or", "not", "imply", "exists", "forall", "either"}) | (
    _SIGNS - {"(", ")"}
)
"""The words that are keywords at the head of a list in conditions."""

# the words that are keywords at the head of a list in actions
EFFECTS = LOGIC | ASSIGNMENTS | {"when"}
_TRAJECTORY = (
    "always sometime within at-most-once sometime-after sometime-before always-within hold-during"
    " hold-after"
)
_FEATURES = {
    **dict.fromkeys(_TRAJECTORY.split(), "trajectory constraints are"),
    "preference": "a preference outside of a goal is",
    "oneof": "'oneof' outside of an effect without duration is",
    "probabilistic": "'probabilistic' outside of an effect without duration is",
    "unknown": "an unknown fact is",
    "?duration": "'?duration' in a condition or effect is",
}
# how many equal parts in a row are handed to the grammar: more than any rule counts
LONGEST_RUN = 3
_NO_TERMS = _SIGNS | {"?"}
_CALCULATING = _SIGNS - {"(", ")", "="}
_LONGEST_REMEMBERED = 100  # words of a shape


def is_name(word: str) -> bool:
    """Return whether a word that is not at the head of a list is a name; what looks like a number is one, too."""
    return word[0] not in "?:" and word not in _SIGNS


def is_term(word: str) -> bool:
    """Return whether a word that is not at the head of a list is a name or a variable."""
    return word[0] != ":" and word not in _NO_TERMS


def is_number(word: str) -> bool:
    """Return whether a word is a number where one may stand."""
    return _NUMBER.match(word) is not None


class Spelling:
    """Builds the shape of a list, and matches it with the grammar.

    Args:
        keywords: words that keep their meaning at the head of a list; all other reserved words
            become names.
        functions: names of functions that may be written without parentheses.
        predicates: names of predicates, which name no feature of PDDL that is lacking.

    What looks like a number may be a name, such as the object ``1``. It is a number only directly
    in a list that compares, calculates or assigns; ``(= a 1)`` does so if an argument is a list or
    a function.
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

    def verbatim(self, spelling: str, original: Token) -> None:
        """Append a word unchanged; errors about it refer to the original token."""
        self._words.append(spelling)
        self._originals.append(original)

    def word(self, token: Token, *, head: bool = False, numeric: bool = False) -> None:
        """Append a word, spelled as what it is: a variable, a keyword (``head``), a number (``numeric``), a name."""
        spelling = self._spell(token.text, head)
        if numeric and spelling == "name" and is_number(token.text):
            if not math.isfinite(float(token.text)):
                raise self._source.error(token, "this number is too large")
            spelling = "0"
        if self._words[-LONGEST_RUN:] != [spelling] * LONGEST_RUN:
            self.verbatim(spelling, token)

    def _spell(self, word: str, head: bool) -> str:
        if word in _SIGNS or (head and word in self._keywords) or word[0] == ":":
            return word
        if word[0] == "?":
            return "?v" if len(word) > 1 else word
        return "name"

    def group(self, group: Group) -> None:
        """Append a list with everything in it."""
        self.verbatim("(", group.opening)
        numeric = self.calculates(group)
        for position, part in enumerate(group.parts):
            if isinstance(part, Group):
                self.group(part)
            else:
                self.word(part, head=position == 0, numeric=numeric)
        self.verbatim(")", group.closing)

    def outline(self, group: Group) -> None:
        """Append a list, with ``(name)`` in the place of each list in it; these are judged by themselves."""
        self.verbatim("(", group.opening)
        self.outlined(group.parts)
        self.verbatim(")", group.closing)

    def outlined(self, parts: Iterable[Token | Group]) -> None:
        """Append the parts of a list that :meth:`outline` would give."""
        run = 0
        for position, part in enumerate(parts):
            if isinstance(part, Token):
                self.word(part, head=position == 0)
                run = 0
            elif run < LONGEST_RUN:
                run += 1
                for spelling, original in (
                    ("(", part.opening),
                    ("name", part.first),
                    (")", part.closing),
                ):
                    self.verbatim(spelling, original)

    def typed(self, parts: Iterable[Token | Group]) -> None:
        """Append the parts of a typed list: several names before one type as one, several such groups as one."""
        start, previous, before = len(self._words), [""], ""
        for part in parts:
            is_type = before == "-"
            before = "" if isinstance(part, Group) else part.text
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
                if entry == previous:
                    del self._words[start:], self._originals[start:]
                start, previous = len(self._words), entry

    def calculates(self, group: Group) -> bool:
        """Return whether numbers directly in the list are meant as such."""
        if group.head == "=":
            return any(
                isinstance(part, Group) or part.text in self._functions for part in group.parts[1:]
            )
        return group.head in _CALCULATING or (
            group.head in ASSIGNMENTS and group.head in self._keywords
        )

    def require(self, rule: Rule) -> None:
        """Check that the words follow a rule of the grammar, from the first to the last."""
        ask = _fault if len(self._words) <= _LONGEST_REMEMBERED else _fault.__wrapped__
        if fault := ask(rule, tuple(self._words)):
            index, expected = fault
            original = self._originals[index]
            for word, before in zip(
                self._originals[index::-1], self._words[index - 1 :: -1], strict=False
            ):
                is_feature = word.text in _FEATURES and word.text not in self._predicates
                if is_feature and (before == "(" or word.text[0] == "?"):
                    raise self._source.error(word, f"{_FEATURES[word.text]} not supported")
            raise self._source.error(original, f"unexpected '{original.text}'{expected}")


@functools.lru_cache(maxsize=4096)
def _fault(rule: Rule, words: tuple[str, ...]) -> tuple[int, str] | None:
    """Return which of the words breaks a rule of the grammar, and what was expected there; ``None`` when none does."""
    try:
        _run(rule, words, PredictionMode.SLL)
    except _UnexpectedError:
        # the fast mode may refuse what the full one accepts, never the other way round
        try:
            _run(rule, words, PredictionMode.LL)
        except _UnexpectedError as error:
            starts = list(accumulate((len(word) + 1 for word in words[:-1]), initial=0))
            return bisect_right(starts, error.offset) - 1, error.expected
    return None


def _run(rule: Rule, words: tuple[str, ...], mode: Any) -> None:
    refusal = _Refusal()
    lexer = pddlLexer(InputStream(" ".join(words)))
    parser = pddlParser(CommonTokenStream(lexer))
    for recognizer in (lexer, parser):
        recognizer.removeErrorListeners()
        recognizer.addErrorListener(refusal)
    parser._interp.predictionMode = mode
    rule(parser)
    rest = parser.getCurrentToken()
    if rest.type != rest.EOF:
        raise _UnexpectedError(rest.start)


class _UnexpectedError(Exception):
    """The text breaks the rule at an offset."""

    def __init__(self, offset: int, expected: str = "") -> None:
        super().__init__()
        self.offset, self.expected = offset, expected


class _Refusal(ErrorListener):  # type: ignore[misc]  # antlr4 has no type information
    """Raises on the first error."""

    def syntaxError(  # noqa: N802
        self, recognizer: Any, symbol: Any, _: int, column: int, *others: Any
    ) -> NoReturn:
        """Refuse the token; ANTLR calls this by position, with line, column, message and exception."""
        # then what was expected concerns an earlier token
        wide = isinstance(others[-1], NoViableAltException)
        expected = _expected(recognizer) if isinstance(recognizer, pddlParser) and not wide else []
        hint = ""
        if 0 < len(expected) <= 6:
            hint = (
                "; expected"
                f" {', '.join(expected[:-1])}{' or ' if expected[:-1] else ''}{expected[-1]}"
            )
        raise _UnexpectedError(column if symbol is None else symbol.start, hint)


_KIND_NAMES = {
    "NAME": "a name",
    "VARIABLE": "a variable",
    "NUMBER": "a number",
    "REQUIRE_KEY": "a requirement",
}


def _expected(parser: Any) -> list[str]:
    """Return what the parser could read next, in words; names that are also keywords are omitted."""
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
