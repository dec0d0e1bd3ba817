"""Tokens and nested lists of PDDL text, with their positions in the text.

Every token keeps its offset in the original text. :meth:`Source.error` converts it to an error with
line, column and a caret, also in a later step of the parser. This module only reads nested lists;
the grammar checks their content.

Words are lower-cased, because PDDL does not distinguish case. Comments are dropped. A ``?`` begins
a new word, so ``(aircraft?a)`` equals ``(aircraft ?a)``.

The text may be malicious. Lists deeper than :data:`MAX_DEPTH`, words longer than
:data:`MAX_WORD_LENGTH` and texts of more than :data:`MAX_WORD_COUNT` words are rejected here. All
later steps may therefore recurse without a limit. Reading takes O(length) time and memory.

A function with an object as its value, as ``(:functions (position ?x - block) - place)``, is read
as a predicate with the value as its last argument. ``(= (position a) table)`` is ``(position a
table)``, and ``(assign (position a) table)`` deletes all other values. The value ``undefined`` is
the absence of a value.
"""

from __future__ import annotations

import functools
import itertools
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from tmkit.errors import TaskError
from tmkit.pddl.formulas import Parameter
from tmkit.pddl.vocabulary import Predicate, Types

MAX_DEPTH = 100
"""Largest depth of nested lists; published domains stay below 20."""

MAX_WORD_LENGTH = 1000
"""Largest number of characters of a word."""

MAX_WORD_COUNT = 3_000_000
"""Largest number of words and parentheses of a text."""

UNDEFINED = "undefined"
"""Value of an object function that has no value."""

_BLANKS = str.maketrans("\t\n\r\f\v", "     ")
_KEYS_IN_SECTIONS = frozenset({":parameters", ":precondition", ":effect"})
_NESTING_HEADS = frozenset(
    {
        *("and", "or", "not", "imply", "when", "forall", "exists", "define"),
        *("=", "<", ">", "<=", ">=", "+", "-", "*", "/", "minimize", "maximize"),
        *("increase", "decrease", "assign", "scale-up", "scale-down"),
    }
)
"""First words of lists that may contain lists."""

_LEXEME = re.compile(r"[()]|\??[^ \t\n\r\f\v();?]+|\?")
_DASHED_NAME = re.compile(
    r"(?<![^ \t\n\r\f\v()])-(?!(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![^ \t\n\r\f\v();?]))[^"
    r" \t\n\r\f\v();?]+"
)
"""A dash and a name without a blank between them."""

_COMMENT = re.compile(r";[^\n\r]*")


class Token(NamedTuple):  # its construction is faster than that of a dataclass
    """Parenthesis or word, in lower case, and its offset in the original text."""

    text: str
    offset: int

    @property
    def first(self) -> Token:
        """The token itself, as the counterpart of :attr:`Group.first`."""
        return self


_make_token = functools.partial(tuple.__new__, Token)
"""Equivalent of ``Token(*pair)`` that takes half of the time."""


class Group(NamedTuple):
    """Parenthesised list: its parentheses and its parts."""

    opening: Token
    parts: tuple[Token | Group, ...]
    closing: Token

    @property
    def head(self) -> str:
        """The first word, or an empty string if the list is empty or begins with a list."""
        return self.parts[0].text if self.parts and isinstance(self.parts[0], Token) else ""

    @property
    def first(self) -> Token:
        """The token for errors of the list: its first word, or else its opening parenthesis."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], Token) else self.opening


@dataclass(frozen=True)
class Source:
    """Text and its name in messages, as that of its file."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]

    def line_of(self, token: Token) -> int:
        """Return the line of a token, from 1."""
        return bisect_right(self._line_starts, token.offset)

    def column_of(self, token: Token) -> int:
        """Return the column of a token, from 1."""
        return token.offset - self._line_starts[self.line_of(token) - 1] + 1

    def error(self, token: Token, reason: str) -> TaskError:
        """Return an error at a token, with its line, column and a caret."""
        number = self.line_of(token)
        start = self._line_starts[number - 1]
        end = self._line_starts[number] if number < len(self._line_starts) else len(self.text)
        line = self.text[start:end].rstrip("\r\n")
        return TaskError.at(
            self.name, reason, line=number, column=token.offset - start + 1, source_line=line
        )

    def tokens(self) -> list[Token]:
        """Return parentheses and words in order.

        Raises:
            TaskError: if a word is too long or has an unprintable character, or the text has too
                many words.
        """
        text = self.text
        if ";" in text:
            text = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)
        is_plain = text.isascii() and text.translate(_BLANKS).isprintable()
        matches = itertools.islice(
            _LEXEME.finditer(text.lower() if is_plain else text), MAX_WORD_COUNT + 1
        )
        tokens = [_make_token((match[0], match.start())) for match in matches]
        if (match := _DASHED_NAME.search(text)) is not None:
            reason = (
                f"'{match[0][:MAX_WORD_LENGTH]}' is not a name; a type is written '-"
                f" {match[0][1:MAX_WORD_LENGTH]}'"
            )
            raise self.error(Token(match[0], match.start()), reason)
        if len(tokens) > MAX_WORD_COUNT:
            raise self.error(
                tokens[-1],
                f"the text has more than {MAX_WORD_COUNT:,} words, the largest number allowed",
            )
        if not is_plain or max(map(len, map(itemgetter(0), tokens)), default=0) > MAX_WORD_LENGTH:
            for token in tokens:
                self._check_word(token.text, token.offset)
            tokens = [Token(token.text.lower(), token.offset) for token in tokens]
        return tokens

    def _check_word(self, word: str, offset: int) -> None:
        if len(word) > MAX_WORD_LENGTH:
            reason = f"a word of {len(word):,} characters; at most {MAX_WORD_LENGTH:,} are allowed"
            raise self.error(Token(word, offset), reason)
        if not word.isprintable():
            place = next(i for i, character in enumerate(word) if not character.isprintable())
            reason = f"the character U+{ord(word[place]):04X} is neither printable nor a blank"
            raise self.error(Token(word[place], offset + place), reason)

    @property
    def end(self) -> Token:
        """Empty token after the last one of the text."""
        return Token("", len(self.text.rstrip()))

    def groups(self) -> list[Group]:
        """Return the parenthesised lists of the text.

        Raises:
            TaskError: if parentheses are not balanced or nested too deep.
        """
        # opening parentheses, each with the previous parts of the outer list
        open_lists: list[tuple[Token, list[Token | Group]]] = []
        groups: list[Group] = []
        parts: list[Token | Group] = []
        for token in self.tokens():
            text = token[0]
            if text == "(":
                if len(open_lists) == MAX_DEPTH:
                    raise self._find_imbalance() or self.error(
                        token, f"lists are nested deeper than {MAX_DEPTH}"
                    )
                open_lists.append((token, parts))
                parts = []
            elif not open_lists:
                if text == ")":
                    raise self._find_imbalance() or self.error(
                        token, "this closing parenthesis has no opening one"
                    )
                raise self._find_imbalance() or self.error(token, f"stray '{text}'; expected '('")
            elif text == ")":
                opening, outer = open_lists.pop()
                group = Group(opening, tuple(parts), token)
                parts = outer
                if open_lists:
                    parts.append(group)
                else:
                    groups.append(group)
            else:
                parts.append(token)
        if open_lists:
            raise self._find_imbalance() or self._make_unclosed_error(
                [opening for opening, _ in open_lists]
            )
        return groups

    def _make_unclosed_error(self, open_lists: list[Token]) -> TaskError:
        """Return the error of a text that ends inside a list."""
        reason = "this parenthesis is never closed"
        if len(open_lists) < 3:  # more open lists mean a truncated text
            number = "a ')' is" if len(open_lists) == 1 else f"{len(open_lists)} ')' are"
            reason += f": {number} missing up to the end in line {self.line_of(self.end)}"
            return self._find_unclosed_atom(open_lists[0], self.end) or self.error(
                open_lists[-1], reason
            )
        return self.error(open_lists[-1], reason)

    def _find_unclosed_atom(self, first: Token, last: Token) -> TaskError | None:
        """Return the error of an atom that contains a list, as ``(on a b (clear c)``, if any.

        Args:
            first: first token of the searched part of the text.
            last: token after that part.
        """
        # each open list as its parenthesis and, once it is read, its first word
        open_lists: list[list[Token]] = []
        for token, following in itertools.pairwise(self.tokens()):
            if not first.offset <= token.offset < last.offset:
                continue
            if token.text == "(":
                # A list that begins with a name is an atom or a term, which contains no lists.
                head = open_lists[-1][1].text if open_lists and open_lists[-1][1:] else ":"
                if (
                    following.text != "either"
                    and head not in _NESTING_HEADS
                    and head[0] not in ":?"
                ):
                    reason = (
                        "this parenthesis is not closed before the one in line"
                        f" {self.line_of(token)}"
                    )
                    return self.error(
                        open_lists[-1][0], f"{reason}, column {self.column_of(token)}"
                    )
                open_lists.append([token])
                if following.text not in "()":
                    open_lists[-1].append(following)
            elif token.text == ")" and open_lists:
                open_lists.pop()
        return None

    def _find_imbalance(self) -> TaskError | None:
        """Return the error at the first misplaced parenthesis that keywords show, if any.

        A keyword such as ``:effect`` belongs directly in a section, and a section directly in the
        definition. A deeper keyword shows that the list around it is not closed. A keyword outside
        shows that the section before it is closed too early. The keyword of a section directly in
        the definition lacks a parenthesis before it.
        """
        open_lists: list[Token] = []
        closing: Token | None = None
        previous: Token | None = None
        for token in self.tokens():
            if token.text == "(":
                open_lists.append(token)
            elif token.text == ")":
                closing = token if len(open_lists) <= 2 else closing
                if open_lists:
                    open_lists.pop()
            elif token.text[0] == ":" and len(token.text) > 1:
                is_head = previous is not None and previous.text == "("
                depth = len(open_lists) - is_head
                line = self.line_of(token)
                if depth > 2 or (depth == 2 and is_head):
                    outer = open_lists[-1 - is_head]
                    reason = f"this parenthesis is not closed before '{token.text}' in line {line}"
                    return self._find_unclosed_atom(outer, token) or self.error(outer, reason)
                if depth <= 1 and not is_head and token.text not in _KEYS_IN_SECTIONS:
                    return (
                        None
                        if depth < 1
                        else self.error(token, f"expected '(' before '{token.text}'")
                    )
                if closing is not None and (depth < 1 or (depth == 1 and not is_head)):
                    reason = (
                        f"this parenthesis closes too much: '{token.text}' in line {line} is"
                        " outside of its list"
                    )
                    return self.error(closing, reason)
            previous = token
        return None


def split_functions(section: Group) -> tuple[Group, list[Group]]:
    """Split the section of functions into numeric ones and declarations of predicates.

    Args:
        section: the ``(:functions ...)`` section.

    Returns:
        The section of the numeric functions, and a declaration of a predicate for each function
        with an object as its value.
    """
    entries: list[Token | Group] = [section.parts[0]]
    predicates: list[Group] = []
    declarations: list[Token | Group] = []
    parts = iter(section.parts[1:])
    for part in parts:
        if not (isinstance(part, Token) and part.text == "-"):
            declarations.append(part)
            continue
        kind = next(parts, None)
        are_lists = all(isinstance(item, Group) and item.parts for item in declarations)
        if kind is None or (isinstance(kind, Token) and kind.text == "number") or not are_lists:
            entries += [*declarations, part, *([] if kind is None else [kind])]
        else:
            value = part._replace(text="?value")
            predicates += [
                item._replace(parts=(*item.parts, value, part, kind))
                for item in declarations
                if isinstance(item, Group)
            ]
        declarations = []
    return section._replace(parts=(*entries, *declarations)), predicates


def mark_functions(
    predicates: tuple[Predicate, ...], names: frozenset[str]
) -> tuple[Predicate, ...]:
    """Return predicates, with those of some names marked as functions."""
    return tuple(
        replace(item, is_function=True) if item.name in names else item for item in predicates
    )


def is_call(part: Token | Group, predicates: Mapping[str, Predicate]) -> bool:
    """Return whether a part is a call of a function with an object as its value."""
    return isinstance(part, Group) and part.head in predicates and predicates[part.head].is_function


def move_function_first(group: Group, predicates: Mapping[str, Predicate]) -> Group:
    """Return ``(= VALUE (FUNCTION TERM...))`` with the function first; others are unchanged."""
    parts = group.parts
    if (
        group.head == "="
        and len(parts) == 3
        and isinstance(parts[1], Token)
        and is_call(parts[2], predicates)
    ):
        return group._replace(parts=(parts[0], parts[2], parts[1]))
    return group


def make_value_atom(call: Group, value: Token) -> Group:
    """Return the atom of the predicate that replaces a function.

    Args:
        call: function with its arguments.
        value: value of the function.
    """
    return call._replace(parts=(*call.parts, value))


def fresh_variable(types: Types, scope: Mapping[str, Types]) -> Parameter:
    """Return a variable of some types whose name is not in a scope."""
    name = "?value"
    while name in scope:
        name += "-"
    return Parameter(name, types)
