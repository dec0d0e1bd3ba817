"""Implication between patterns: whether a structure that one describes contains one of another.

This decides whether the output of a function block is an input of the next, before either runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tmkit.graph.patterns.pattern import Condition, Part, Pattern


def satisfies(output: Pattern, need: Pattern) -> bool:
    """Return whether each match of an output pattern contains a match of a needed pattern.

    The parts of the output must be no wider than those needed, with the same relations, and at
    least as many. A part of any number is one part.
    """
    options = {
        role: tuple(
            index
            for index, output_name in enumerate(output.roles)
            if _implies(output.part_of(output_name), need.part_of(name))
        )
        for role, name in enumerate(need.roles)
    }
    return _Assignment(output, need).exists(options)


class _Assignment:
    """Search for distinct roles of an output pattern for the roles of a needed pattern.

    Of assignments that differ by a symmetry of the needed pattern, only the one in order is tried.
    """

    def __init__(self, output: Pattern, need: Pattern) -> None:
        self._relations = {
            condition.key(range(len(output.roles))) for condition in output.conditions
        }
        self._order = frozenset(need.order_conditions)
        self._conditions: dict[tuple[int, int], list[Condition]] = {}
        for condition in need.conditions:
            roles = min(condition.a, condition.b), max(condition.a, condition.b)
            self._conditions.setdefault(roles, []).append(condition)

    def exists(self, options: Mapping[int, tuple[int, ...]]) -> bool:
        """Return whether the remaining roles can have distinct options.

        Args:
            options: possible roles of the output for each remaining role of the need.
        """
        counts = Counter(options.values())
        if any(count > len(indices) for indices, count in counts.items()):
            return False
        if not options:
            return True
        role = min(options, key=lambda role: (len(options[role]), role))
        return any(self.exists(self._narrow(options, role, index)) for index in options[role])

    def _narrow(
        self, options: Mapping[int, tuple[int, ...]], role: int, index: int
    ) -> dict[int, tuple[int, ...]]:
        """Return the options of the other roles once a role has one."""
        return {
            other: tuple(
                candidate
                for candidate in options[other]
                if candidate != index and self._is_consistent({role: index, other: candidate})
            )
            for other in options
            if other != role
        }

    def _is_consistent(self, pair: Mapping[int, int]) -> bool:
        """Return whether two roles may have these options."""
        a, b = sorted(pair)
        if (a, b) in self._order and pair[a] > pair[b]:
            return False
        conditions = self._conditions.get((a, b), ())
        return all(condition.key(pair) in self._relations for condition in conditions)


def _implies(part: Part, need: Part) -> bool:
    """Return whether each frame that matches a part also matches a needed part."""
    ranges = zip(part.dimensions, need.dimensions, strict=False)
    return (
        set(need.classes) <= set(part.classes)
        and need.shape in (None, part.shape)
        and (not need.dimensions or bool(part.dimensions))
        and all(low <= least and most <= high for (least, most), (low, high) in ranges)
        and set(need.attributes) <= set(part.attributes)
        and need.test in (None, part.test)
    )
