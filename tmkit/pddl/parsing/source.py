"""PDDL text as tokens and nested lists that remember where they stand.

The idea: whatever is found wrong, even long after the text was taken apart, must be shown at its
line and column. So every token keeps its offset in the original text, and :meth:`Source.error`
turns any token into an error with the line and a caret under it. The text is read as the nested
lists that PDDL is; their meaning is left to the grammar.

Words are lower-cased, because PDDL does not distinguish case, comments disappear, and a ``?``
begins a new word, so that ``(aircraft?a)`` is read as it is meant.

Text may be hostile. Lists nested deeper than :data:`DEEPEST`, words longer than
:data:`LONGEST_WORD` and more words than :data:`MOST_WORDS` are refused here: all later steps may
recurse without counting. Taking a text apart needs O(length) time and memory.

Functions whose values are objects, as ``(:functions (position ?x - block) - place)``. They are read
as predicates whose last argument is the value: ``(= (position a) table)`` is ``(position a
table)``, and ``(assign (position a) table)`` deletes all other values. The value ``undefined`` is
that there is none.
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

DEEPEST = 100  # how deep lists may be nested; published domains stay below 20
LONGEST_WORD = 1000  # how many characters a word may have
MOST_WORDS = 3_000_000  # how many words and parentheses a text may have
_BLANKS = str.maketrans("\t\n\r\f\v", "     ")
_KEYS_IN_SECTIONS = frozenset({":parameters", ":precondition", ":effect"})
_HOLDERS = frozenset({"and", "or", "not", "imply", "when", "forall", "exists", "define"})
_HOLDERS |= {"=", "<", ">", "<=", ">=", "+", "-", "*", "/", "minimize", "maximize"}
# lists that begin so may hold lists
_HOLDERS |= {"increase", "decrease", "assign", "scale-up", "scale-down"}
_LEXEME = re.compile(r"[()]|\??[^ \t\n\r\f\v();?]+|\?")
_DASHED_NAME = re.compile(
    r"(?<![^ \t\n\r\f\v()])-(?!(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![^ \t\n\r\f\v();?]))[^"
    r" \t\n\r\f\v();?]+"
)
"""A dash and a name without a blank between."""
_COMMENT = re.compile(r";[^\n\r]*")


class Token(NamedTuple):  # quicker to make than a dataclass, and a text has many
    """A parenthesis or a word, in lower case, and its offset in the original text."""

    text: str
    offset: int

    @property
    def first(self) -> Token:
        """The token itself: errors treat lists and words alike."""
        return self


_token = functools.partial(tuple.__new__, Token)  # what Token(*pair) does, in half of the time


class Group(NamedTuple):
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
    """A text and what to call it in messages, the name of its file or another."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]

    def line_of(self, token: Token) -> int:
        """Return the line, from 1, on which a token stands."""
        return bisect_right(self._line_starts, token.offset)

    def column_of(self, token: Token) -> int:
        """Return the column, from 1, in which a token stands."""
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
        """Return parentheses and words in order; words of other characters, too long or too many are refused."""
        text = (
            _COMMENT.sub(lambda comment: " " * len(comment[0]), self.text)
            if ";" in self.text
            else self.text
        )
        is_plain = text.isascii() and text.translate(_BLANKS).isprintable()
        matches = itertools.islice(
            _LEXEME.finditer(text.lower() if is_plain else text), MOST_WORDS + 1
        )
        tokens = [_token((match[0], match.start())) for match in matches]
        if (dashed := _DASHED_NAME.search(text)) is not None:
            reason = (
                f"'{dashed[0][:LONGEST_WORD]}' is no name; a type is written '-"
                f" {dashed[0][1:LONGEST_WORD]}'"
            )
            raise self.error(Token(dashed[0], dashed.start()), reason)
        if len(tokens) > MOST_WORDS:
            raise self.error(
                tokens[-1], f"the text has more than {MOST_WORDS:,} words; that is too much to read"
            )
        if not is_plain or max(map(len, map(itemgetter(0), tokens)), default=0) > LONGEST_WORD:
            for token in tokens:
                self._check_word(token.text, token.offset)
            tokens = [Token(token.text.lower(), token.offset) for token in tokens]
        return tokens

    def _check_word(self, word: str, offset: int) -> None:
        if len(word) > LONGEST_WORD:
            reason = (
                f"a word of {len(word):,} characters, where at most {LONGEST_WORD:,} are allowed"
            )
            raise self.error(Token(word, offset), reason)
        if not word.isprintable():
            place = next(i for i, character in enumerate(word) if not character.isprintable())
            reason = f"the character U+{ord(word[place]):04X} is neither printable nor a blank"
            raise self.error(Token(word[place], offset + place), reason)

    @property
    def end(self) -> Token:
        """A token just after the last one of the text."""
        return Token("", len(self.text.rstrip()))

    def groups(self) -> list[Group]:
        """Return the parenthesised lists of which the text consists."""
        # each list with what there is around it
        opened: list[tuple[Token, list[Token | Group]]] = []
        whole: list[Group] = []
        parts: list[Token | Group] = []
        for token in self.tokens():
            text = token[0]
            if text == "(":
                if len(opened) == DEEPEST:
                    raise self._unbalanced() or self.error(
                        token, f"lists are nested deeper than {DEEPEST}"
                    )
                opened.append((token, parts))
                parts = []
            elif not opened:
                if text == ")":
                    raise self._unbalanced() or self.error(
                        token, "this closing parenthesis has no opening one"
                    )
                raise self._unbalanced() or self.error(token, f"stray '{text}'; expected '('")
            elif text == ")":
                opening, around = opened.pop()
                group = Group(opening, tuple(parts), token)
                parts = around
                if opened:
                    parts.append(group)
                else:
                    whole.append(group)
            else:
                parts.append(token)
        if opened:
            raise self._unbalanced() or self._never_closed([opening for opening, _ in opened])
        return whole

    def _never_closed(self, opened: list[Token]) -> TaskError:
        """Return the error for a text that ends before its lists do."""
        reason = "this parenthesis is never closed"
        if len(opened) < 3:  # or else it is plain where the text breaks off
            lacking = "a ')' is" if len(opened) == 1 else f"{len(opened)} ')' are"
            reason += f": {lacking} missing up to the end in line {self.line_of(self.end)}"
            return self._atom_not_closed(opened[0], self.end) or self.error(opened[-1], reason)
        return self.error(opened[-1], reason)

    def _atom_not_closed(self, first: Token, last: Token) -> TaskError | None:
        """Return the error that an atom holds a list, as ``(on a b (clear c)``, if one between two tokens does."""
        # each list as its parenthesis and, when it was read, its first word
        opened: list[list[Token]] = []
        for token, following in itertools.pairwise(self.tokens()):
            if not first.offset <= token.offset < last.offset:
                continue
            if token.text == "(":
                # A list that begins with a plain word is an atom or the like, which holds no lists.
                head = opened[-1][1].text if opened and opened[-1][1:] else ":"
                if following.text != "either" and head not in _HOLDERS and head[0] not in ":?":
                    reason = (
                        "this parenthesis is not closed before the one in line"
                        f" {self.line_of(token)}"
                    )
                    return self.error(opened[-1][0], f"{reason}, column {self.column_of(token)}")
                opened.append([token])
                if following.text not in "()":
                    opened[-1].append(following)
            elif token.text == ")" and opened:
                opened.pop()
        return None

    def _unbalanced(self) -> TaskError | None:
        """Return the error where parentheses first go wrong, as far as the keywords tell; ``None`` when they do not.

        A keyword such as ``:effect`` stands directly in a section, and a section directly in the
        definition. One that stands deeper shows that the list around it was not closed. One that
        stands outside shows that the section before it was closed too early. A section's keyword
        directly in the definition lacks a parenthesis before it.
        """
        opened: list[Token] = []
        closing: Token | None = None
        before: Token | None = None
        for token in self.tokens():
            if token.text == "(":
                opened.append(token)
            elif token.text == ")":
                closing = token if len(opened) <= 2 else closing
                if opened:
                    opened.pop()
            elif token.text[0] == ":" and len(token.text) > 1:
                is_head = before is not None and before.text == "("
                depth = len(opened) - is_head
                line = self.line_of(token)
                if depth > 2 or (depth == 2 and is_head):
                    around = opened[-1 - is_head]
                    reason = f"this parenthesis is not closed before '{token.text}' in line {line}"
                    return self._atom_not_closed(around, token) or self.error(around, reason)
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
            before = token
        return None


UNDEFINED = "undefined"


def split_functions(section: Group) -> tuple[Group, list[Group]]:
    """Return the section of functions without those of objects, and these as declarations of predicates."""
    kept: list[Token | Group] = [section.parts[0]]
    moved: list[Group] = []
    waiting: list[Token | Group] = []
    parts = iter(section.parts[1:])
    for part in parts:
        if not (isinstance(part, Token) and part.text == "-"):
            waiting.append(part)
            continue
        kind = next(parts, None)
        lists = all(isinstance(one, Group) and one.parts for one in waiting)
        if kind is None or (isinstance(kind, Token) and kind.text == "number") or not lists:
            kept += [*waiting, part, *([] if kind is None else [kind])]
        else:
            value = part._replace(text="?value")
            moved += [
                one._replace(parts=(*one.parts, value, part, kind))
                for one in waiting
                if isinstance(one, Group)
            ]
        waiting = []
    return section._replace(parts=(*kept, *waiting)), moved


def as_functions(predicates: tuple[Predicate, ...], names: frozenset[str]) -> tuple[Predicate, ...]:
    """Return predicates, of which those of these names are functions."""
    return tuple(replace(one, is_function=True) if one.name in names else one for one in predicates)


def is_call(part: Token | Group, predicates: Mapping[str, Predicate]) -> bool:
    """Return whether a part applies a function of objects."""
    return isinstance(part, Group) and part.head in predicates and predicates[part.head].is_function


def function_first(group: Group, predicates: Mapping[str, Predicate]) -> Group:
    """Return ``(= VALUE (FUNCTION TERM...))`` with the function before its value; other lists as they are."""
    parts = group.parts
    if (
        group.head == "="
        and len(parts) == 3
        and isinstance(parts[1], Token)
        and is_call(parts[2], predicates)
    ):
        return group._replace(parts=(parts[0], parts[2], parts[1]))
    return group


def with_value(call: Group, value: Token) -> Group:
    """Return the atom that a function has a value.

    Args:
        call: the function with its arguments.
        value: the value.
    """
    return call._replace(parts=(*call.parts, value))


def fresh(types: Types, scope: Mapping[str, Types]) -> Parameter:
    """Return a variable of some types that a scope lacks."""
    name = "?value"
    while name in scope:
        name += "-"
    return Parameter(name, types)
