"""PDDL text as tokens and nested lists that remember where they stand.

The idea: whatever is found wrong, even long after the text was taken apart, must be shown at its line and column. So
every token keeps its offset in the original text, and :meth:`Source.error` turns any token into an error with the line
and a caret under it. The text is read as the nested lists that PDDL is; their meaning is left to the grammar.

Words are lower-cased, because PDDL does not distinguish case, comments disappear, and a ``?`` begins a new word, so
that ``(aircraft?a)`` is read as it is meant.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from tmkit.errors import TaskError

__all__ = ["Group", "Source", "Token", "task_error"]


def task_error(
    where: str, reason: str, *, line: int | None = None, column: int | None = None, source_line: str | None = None
) -> TaskError:
    """Return the error that the text, file or value ``where`` is wrong for that reason."""
    return cast(TaskError, TaskError.at(where, reason, line=line, column=column, source_line=source_line))


_LEXEME = re.compile(r"(?P<comment>;[^\n\r]*)|(?P<space>\s+)|(?P<paren>[()])|(?P<word>\??[^\s();?]+|\?)")


@dataclass(frozen=True, slots=True)
class Token:
    """A parenthesis or a word, in lower case, and its offset in the original text."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class Group:
    """A parenthesised list: its parentheses and what stands between them."""

    opening: Token
    parts: tuple[Token | Group, ...]
    closing: Token

    @property
    def head(self) -> str:
        """The first word, or an empty string when the list is empty or begins with a list."""
        return self.parts[0].text if self.parts and isinstance(self.parts[0], Token) else ""

    @property
    def first(self) -> Token:
        """The token at which to complain about the list: its first word, or else its parenthesis."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], Token) else self.opening


@dataclass(frozen=True)
class Source:
    """A text and where it came from.

    Args:
        name: the file, or what else to call the text in messages.
        text: the whole text.
    """

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]

    def error(self, token: Token, reason: str) -> TaskError:
        """Return the error that ``token`` is wrong for that reason, with its line, column and a caret."""
        number = bisect_right(self._line_starts, token.offset)
        start = self._line_starts[number - 1]
        line = re.split(r"[\r\n]", self.text[start:], maxsplit=1)[0]
        column = token.offset - start + 1
        return task_error(self.name, reason, line=number, column=column, source_line=line)

    def tokens(self) -> Iterator[Token]:
        """Yield parentheses and words in order."""
        for match in _LEXEME.finditer(self.text):
            if match.lastgroup in ("paren", "word"):
                yield from _split_dash(Token(match.group().lower(), match.start()))

    @property
    def end(self) -> Token:
        """A token just after the last one of the text."""
        return Token("", len(self.text.rstrip()))

    def groups(self) -> list[Group]:
        """Return the parenthesised lists of which the text consists.

        Raises:
            TaskError: a parenthesis without its partner, or a word outside all parentheses.
        """
        opened: list[tuple[Token, list[Token | Group]]] = []
        whole: list[Group] = []
        for token in self.tokens():
            if token.text == "(":
                opened.append((token, []))
            elif not opened:
                what = "this closing parenthesis has no opening one" if token.text == ")" else f"stray '{token.text}'"
                raise self.error(token, f"{what}; expected '('" if token.text != ")" else what)
            elif token.text == ")":
                opening, parts = opened.pop()
                group = Group(opening, tuple(parts), token)
                (opened[-1][1] if opened else whole).append(group)
            else:
                opened[-1][1].append(token)
        if opened:
            raise self.error(opened[-1][0], "this parenthesis is never closed")
        return whole


def _split_dash(token: Token) -> Iterator[Token]:
    """Read ``-block`` as ``- block``, but leave negative numbers alone."""
    if len(token.text) > 1 and token.text[0] == "-" and token.text[1].isalpha():
        yield Token("-", token.offset)
        yield Token(token.text[1:], token.offset + 1)
    else:
        yield token
