"""What the ``:init`` section of a PDDL file states.

The idea: an initial state may have many thousands of facts, nearly all of them lists of plain names, for which a
grammar has nothing to decide. :class:`InitReader` takes these, and values ``(= (FUNCTION NAME...) NUMBER)``, at once;
pddlpy's grammar parses the rest.
"""

from __future__ import annotations

import math

from pddlpy.pddlParser import pddlParser  # type: ignore[import-untyped]  # has no stubs

from tmkit.pddl.formulas import Fact
from tmkit.pddl.parsing.grammar import Spelling, is_name, is_number
from tmkit.pddl.parsing.source import Group, Source, Token
from tmkit.pddl.vocabulary import TOTAL_COST, Vocabulary, derived_fault

_KEYWORDS = frozenset({"not", "="})


class InitReader:
    """Collects facts and values; ``(not FACT)`` only says that the fact is not there.

    Args:
        source: the file.
        words: the names that may be used.
        derived: predicates that must not be stated.
    """

    def __init__(self, source: Source, words: Vocabulary, *, derived: frozenset[str]) -> None:
        self._source = source
        self._words = words
        self._derived = derived
        self._denied: dict[Fact, Group] = {}
        self.facts: set[Fact] = set()
        self.values: dict[Fact, float] = {}

    def read(self, group: Group) -> None:
        """Read the section.

        Raises:
            TaskError: it is not well formed, names something wrongly, or contradicts itself.
        """
        for part in group.parts[1:]:
            if isinstance(part, Token):
                self._spelling(group).require(pddlParser.init)
            elif part.head == "=":
                self._take_value(part)
            else:
                self._take_fact(part)
        for fact, where in self._denied.items():
            if fact in self.facts:
                raise self._source.error(where.opening, f"{fact} is both stated and denied")

    def _spelling(self, group: Group) -> Spelling:
        spelling = Spelling(self._source, keywords=_KEYWORDS, functions={*self._words.functions, TOTAL_COST})
        (spelling.outline if group.head == ":init" else spelling.group)(group)
        return spelling

    def _take_fact(self, group: Group) -> None:
        is_denied = group.head == "not"
        fact = None if is_denied else _plain_call(group)
        if fact is None:
            if _is_timed(group):
                raise self._source.error(group.first, "timed initial literals are not supported")
            self._spelling(group).require(pddlParser.initEl)
        atom = group.parts[1] if is_denied else group
        assert isinstance(atom, Group)  # says the grammar
        fact = fact or Fact(atom.head, tuple(part.first.text for part in atom.parts[1:]))
        if fault := self._words.atom_fault(*fact, {}) or derived_fault(fact.predicate, self._derived):
            raise self._source.error(_word(atom, fault.word), fault.reason)
        if is_denied:
            self._denied.setdefault(fact, atom)
        else:
            self.facts.add(fact)

    def _take_value(self, group: Group) -> None:
        plain = None
        if len(group.parts) == 3 and isinstance(group.parts[1], Group) and isinstance(group.parts[2], Token):
            plain = _plain_call(group.parts[1]) if is_number(group.parts[2].text) else None
        if plain is None or not math.isfinite(float(group.parts[2].first.text)):
            self._spelling(group).require(pddlParser.initEl)
        term, number = group.parts[1], float(group.parts[2].first.text)
        call = plain or Fact(term.first.text)
        if fault := self._words.function_fault(*call, {}):
            raise self._source.error(_word(term, fault.word), fault.reason)
        if self.values.setdefault(call, number) != number:
            where = term.opening if isinstance(term, Group) else term
            raise self._source.error(where, f"{call} is given a second value")


def _plain_call(group: Group) -> Fact | None:
    """Return the list as a name applied to names, ``None`` when it is anything else."""
    names = [part.text for part in group.parts if isinstance(part, Token) and is_name(part.text)]
    return Fact(names[0], tuple(names[1:])) if names and len(names) == len(group.parts) else None


def _is_timed(group: Group) -> bool:
    """Tell ``(at 5 (p))`` from ``(at a b)``."""
    return group.head == "at" and len(group.parts) == 3 and isinstance(group.parts[2], Group)


def _word(part: Token | Group, index: int) -> Token:
    """Return the word of a plain list at which to complain, at most the last one."""
    return part.parts[min(index, len(part.parts) - 1)].first if isinstance(part, Group) else part
