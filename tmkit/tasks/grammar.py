"""Reading one section of PDDL with pddlpy's lexer, grammar and tree walker, strictly.

The idea: pddlpy's generated ANTLR grammar decides what is well formed, but four things stand between it and real
files. It reserves words such as ``start`` or ``within`` that may be names; it knows fewer characters in names, and no
negative numbers; it wants sections in one order; and it prints syntax errors and goes on. So a section is handed to
it *respelled*: the same tokens, one after another, with a harmless word in place of each name that the lexer could
not read. A table from the offset of a respelled token to the original one gives everything back: the name as it was
written, its line and its column. Since one grammar rule is run per section, the order of sections is free, and ANTLR
never has to look ahead over a whole file.

:class:`Origins` is that table; the listeners and builders ask it for the text of every name they read.

``DomainProblem`` of pddlpy is never used: it swallows errors and flattens goals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from antlr4 import CommonTokenStream, InputStream, ParseTreeWalker, PredictionMode, Token  # type: ignore[import-untyped]  # has no stubs
from antlr4.error.ErrorListener import ErrorListener  # type: ignore[import-untyped]  # has no stubs
from antlr4.error.Errors import NoViableAltException  # type: ignore[import-untyped]  # has no stubs
from pddlpy.pddlLexer import pddlLexer  # type: ignore[import-untyped]  # has no stubs
from pddlpy.pddlListener import pddlListener  # type: ignore[import-untyped]  # has no stubs
from pddlpy.pddlParser import pddlParser  # type: ignore[import-untyped]  # has no stubs

from tmkit.errors import TaskError
from tmkit.tasks import source as text
from tmkit.tasks.source import Group, Source

__all__ = ["Origins", "Respelling", "is_name", "is_number", "parse", "walk"]

_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_-]*\Z")
_PLAIN_VARIABLE = re.compile(r"\?[a-z][a-z0-9_-]*\Z")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\Z")
_RESERVED = frozenset(literal.strip("'") for literal in pddlLexer.literalNames if literal.startswith("'"))
_SIGNS = frozenset("(-)") | {"=", "<", ">", "<=", ">=", "+", "*", "/"}

LOGIC = frozenset({"and", "or", "not", "imply", "exists", "forall", "either"}) | (_SIGNS - {"(", ")"})
"""The words that are keywords at the head of a list in conditions."""

EFFECTS = LOGIC | {"when", "assign", "increase", "decrease", "scale-up", "scale-down"}
"""The words that are keywords at the head of a list in actions."""

_NUMERIC = (_SIGNS - {"(", ")", "="}) | {"assign", "increase", "decrease", "scale-up", "scale-down"}


def is_name(word: str) -> bool:
    """Tell whether a word that is not at the head of a list is a name; what looks like a number is one, too."""
    return word[0] not in "?:" and word not in _SIGNS


def is_number(word: str) -> bool:
    """Tell whether a word is a number where one may stand."""
    return _NUMBER.match(word) is not None


class Origins:
    """Which original token each respelled token stands for."""

    def __init__(self, source: Source, tokens: Iterable[tuple[int, text.Token]]) -> None:
        self.source = source
        self._tokens = dict(tokens)

    def token(self, context: Any) -> text.Token:
        """Return the original of the first token of a grammar context, terminal node or ANTLR token."""
        if hasattr(context, "getSymbol"):
            context = context.getSymbol()
        start = context.start if isinstance(context, Token) else context.start.start
        return self._tokens[start]

    def at(self, offset: int) -> text.Token:
        """Return the original of the token that stands at ``offset`` of the respelled text, or of the last before."""
        return self._tokens[max((start for start in self._tokens if start <= offset), default=min(self._tokens))]

    def name(self, context: Any) -> str:
        """Return the name that a context of one token had in the file."""
        return self.token(context).text


class Respelling:
    """Builds the text that pddlpy's lexer can read.

    Args:
        source: the text that the tokens come from.
        keywords: words that keep their meaning at the head of a list; all other reserved words become names.
        functions: names of functions that may be written without parentheses.

    What looks like a number may be a name, such as the object ``1``. It is a number only directly in a list that
    compares, calculates or assigns; ``(= a 1)`` does so if an argument is a list or a function.
    """

    def __init__(
        self, source: Source, *, keywords: frozenset[str], functions: frozenset[str] = frozenset({"total-cost"})
    ) -> None:
        self._source = source
        self._keywords = keywords
        self._functions = functions
        self._pieces: list[str] = []
        self._length = 0
        self._origins: list[tuple[int, text.Token]] = []

    def verbatim(self, spelling: str, origin: text.Token) -> None:
        """Append ``spelling`` as it is; whatever is said about it concerns ``origin``."""
        self._origins.append((self._length, origin))
        self._pieces.append(spelling)
        self._length += len(spelling) + 1

    def word(self, token: text.Token, *, head: bool = False, numeric: bool = False) -> None:
        """Append a word, in a spelling that the lexer takes for what it is: a variable, a keyword, a name.

        Args:
            token: the word.
            head: it is the first of its list.
            numeric: what looks like a number is one.

        Raises:
            TaskError: a number that is too large.
        """
        if numeric and _NUMBER.match(token.text):
            if not math.isfinite(float(token.text)):
                raise self._source.error(token, "this number is too large")
            self.verbatim("0", token)
        else:
            self.verbatim(self._spell(token.text, head), token)

    def _spell(self, word: str, head: bool) -> str:
        if word in _SIGNS or (head and word in self._keywords):
            return word
        if word.startswith("?"):
            plain = _PLAIN_VARIABLE.match(word) and word not in _RESERVED
            return word if plain or word == "?" else "?v"
        if word.startswith(":"):
            return word
        return word if _PLAIN_NAME.match(word) and word not in _RESERVED else "name"

    def group(self, group: Group) -> None:
        """Append a parenthesised list with everything in it."""
        self.verbatim("(", group.opening)
        self.parts(group)
        self.verbatim(")", group.closing)

    def parts(self, group: Group, *, start: int = 0) -> None:
        """Append the parts of a list from the one numbered ``start`` on, without the parentheses."""
        numeric = self._calculates(group)
        for position, part in enumerate(group.parts[start:], start=start):
            if isinstance(part, Group):
                self.group(part)
            else:
                self.word(part, head=position == 0, numeric=numeric)

    def _calculates(self, group: Group) -> bool:
        """Tell whether numbers directly in the list are meant as such."""
        if group.head != "=":
            return group.head in _NUMERIC and (group.head in _SIGNS or group.head in self._keywords)
        return any(isinstance(part, Group) or part.text in self._functions for part in group.parts[1:])

    def finish(self) -> tuple[str, Origins]:
        """Return the respelled text and the way back."""
        return " ".join(self._pieces), Origins(self._source, self._origins)


class _Refusal(ErrorListener):  # type: ignore[misc]  # antlr4 has no type information
    """Raises on the first error, at the original of the offending token."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def syntaxError(self, recognizer: Any, symbol: Any, _: int, column: int, *others: Any) -> NoReturn:  # noqa: N802
        """Refuse the token; ANTLR calls this by position, with line, column, message and exception."""
        offset = column if symbol is None else symbol.start
        origin = self._origins.at(offset)
        reason = f"unexpected '{origin.text}'"
        wide = isinstance(others[-1], NoViableAltException)  # then what was expected concerns an earlier token
        expected = _expected(recognizer) if isinstance(recognizer, pddlParser) and not wide else []
        if 0 < len(expected) <= 6:
            reason += f"; expected {', '.join(expected[:-1])}{' or ' if expected[:-1] else ''}{expected[-1]}"
        raise self._origins.source.error(origin, reason)


_KIND_NAMES = {"NAME": "a name", "VARIABLE": "a variable", "NUMBER": "a number", "REQUIRE_KEY": "a requirement"}


def _expected(parser: Any) -> list[str]:
    """Return what the parser could read next, in words; names that are also keywords are left out."""
    words: list[str] = []
    for interval in parser.getExpectedTokens().intervals or ():
        for kind in interval:
            if 0 < kind < len(parser.literalNames) and parser.literalNames[kind] not in ("<INVALID>", "'at'", "'over'"):
                words.append(parser.literalNames[kind])
            elif 0 < kind < len(parser.symbolicNames):
                words.append(_KIND_NAMES.get(parser.symbolicNames[kind], ""))
    return sorted(word for word in words if word)


def parse(respelling: Respelling, rule: Callable[[pddlParser], Any]) -> tuple[Any, Origins]:
    """Run one rule of pddlpy's grammar over a respelled section, which it must use up.

    Args:
        respelling: the section.
        rule: the rule as an unbound method, such as ``pddlParser.actionDef``.

    Returns:
        The parse tree and the originals of its tokens.

    Raises:
        TaskError: the section does not follow the rule.
    """
    spelled, origins = respelling.finish()
    try:
        return _run(rule, spelled, origins, PredictionMode.SLL), origins
    except TaskError:  # the fast mode may refuse what the full one accepts, never the other way round
        return _run(rule, spelled, origins, PredictionMode.LL), origins


def _run(rule: Callable[[pddlParser], Any], spelled: str, origins: Origins, mode: Any) -> Any:
    refusal = _Refusal(origins)
    lexer = pddlLexer(InputStream(spelled))
    parser = pddlParser(CommonTokenStream(lexer))
    for recognizer in (lexer, parser):
        recognizer.removeErrorListeners()
        recognizer.addErrorListener(refusal)
    parser._interp.predictionMode = mode
    tree = rule(parser)
    rest = parser.getCurrentToken()
    if rest.type != Token.EOF:
        origin = origins.token(rest)
        raise origins.source.error(origin, f"unexpected '{origin.text}'")
    return tree


def walk(listener: pddlListener, tree: Any) -> None:
    """Let a pddlpy listener see every context of a parse tree."""
    ParseTreeWalker.DEFAULT.walk(listener, tree)
