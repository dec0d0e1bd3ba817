"""What the ``:init`` section of a PDDL file states.

The idea: an initial state may have many thousands of facts, nearly all of them lists of plain names, for which a
grammar has nothing to decide. :class:`PlainInit` takes these, and values ``(= (FUNCTION NAME...) NUMBER)``, at once;
whatever is left goes through pddlpy's grammar, whose walker shows it to an :class:`InitListener`. Both apply the same
checks, so it makes no difference which of them reads a fact.
"""

from __future__ import annotations

import math
from typing import Any

from pddlpy.pddlListener import pddlListener  # type: ignore[import-untyped]  # has no stubs

from tmkit.tasks.formulas import Fact
from tmkit.tasks.grammar import is_name, is_number
from tmkit.tasks.source import Group, Source, Token
from tmkit.tasks.trees import TreeBuilder
from tmkit.tasks.vocabulary import Vocabulary, derived_fault

__all__ = ["InitListener", "PlainInit"]


class PlainInit:
    """Collects facts and values that consist of plain names.

    Args:
        source: the file.
        words: the names that may be used.
        derived: predicates that must not be stated.
    """

    def __init__(self, source: Source, words: Vocabulary, *, derived: frozenset[str]) -> None:
        self._source = source
        self._words = words
        self._derived = derived
        self.facts: set[Fact] = set()
        self.values: dict[Fact, float] = {}

    def take(self, group: Group) -> bool:
        """Take a part of the section, and tell whether it was plain.

        Raises:
            TaskError: it is plain but wrong.
        """
        if group.head == "=":
            return self._take_value(group)
        call = _plain_call(group) if group.head != "not" else None
        if call is not None:
            fault = self._words.atom_fault(*call, {}) or derived_fault(call.predicate, self._derived)
            if fault is not None:
                raise self._source.error(_word(group, fault.word), fault.reason)
            self.facts.add(call)
        return call is not None

    def _take_value(self, group: Group) -> bool:
        if len(group.parts) != 3 or not isinstance(group.parts[1], Group) or not isinstance(group.parts[2], Token):
            return False
        term, number = group.parts[1], group.parts[2].text
        call = _plain_call(term)
        if call is None or not is_number(number) or not math.isfinite(float(number)):
            return False
        if fault := self._words.function_fault(*call, {}):
            raise self._source.error(_word(term, fault.word), fault.reason)
        if self.values.setdefault(call, float(number)) != float(number):
            raise self._source.error(term.opening, f"{call} is given a second value")
        return True


class InitListener(pddlListener):  # type: ignore[misc]  # pddlpy has no type information
    """Collects what is not plain; ``(not FACT)`` only says that the fact is not there.

    Args:
        builder: turns contexts into values.
        found: where to put facts and values; has those that are plain.
    """

    def __init__(self, builder: TreeBuilder, found: PlainInit) -> None:
        self._builder = builder
        self._found = found
        self._denied: set[Fact] = set()

    def enterInitEl(self, ctx: Any) -> None:  # noqa: N802  # named by the grammar
        """Take a value; ANTLR calls this for every part of the section."""
        if ctx.fHead() is not None:
            term = self._builder.function_term(ctx.fHead(), {})
            key = Fact(term.name, term.terms)
            value = float(self._builder.name(ctx.NUMBER()))
            if self._found.values.setdefault(key, value) != value:
                raise self._builder.error(ctx.fHead(), f"{key} is given a second value")

    def enterNameLiteral(self, ctx: Any) -> None:  # noqa: N802  # named by the grammar
        """Take a fact, stated or denied; ANTLR calls this for every fact."""
        positive = ctx.getChildCount() == 1
        fact = self._builder.fact(ctx.atomicNameFormula())
        (self._found.facts if positive else self._denied).add(fact)
        if fact in self._found.facts and fact in self._denied:
            raise self._builder.error(ctx.atomicNameFormula(), f"{fact} is both stated and denied")


def _plain_call(group: Group) -> Fact | None:
    """Return the list as a name applied to names, ``None`` when it is anything else."""
    names = [part.text for part in group.parts if isinstance(part, Token) and is_name(part.text)]
    return Fact(names[0], tuple(names[1:])) if names and len(names) == len(group.parts) else None


def _word(group: Group, index: int) -> Token:
    """Return the word of a plain list at which to complain, at most the last one."""
    part = group.parts[min(index, len(group.parts) - 1)]
    return part if isinstance(part, Token) else part.first
