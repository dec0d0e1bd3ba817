"""Forbidding an operator in a context by taking it apart.

The idea: "not while c1, c2 and c3 hold" is the same as "while c1 does not hold, or c1 holds but c2 does not, or c1 and
c2 hold but c3 does not". These cases exclude each other, and in each of them the conditions are values of variables
again. So the operator is replaced by copies, one for each case and each other value that the variable may have. No
axiom is needed, which the heuristics of optimal search do not take.

The price is the number of copies, all the values of the context's variables in the worst case. What the operator needs
anyway saves most of them: a value that excludes one of its conditions makes no copy.

Invariants: the copies together can be applied exactly where the operator could and the context does not hold, at most
one of them in any state; they do what the operator did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tmkit._support.time_limits import check_time
from tmkit.task_planning.sas import Pair, SasOperator, SasVariable

_NONE: frozenset[int] = frozenset()


def split(
    operator: SasOperator, context: Iterable[Pair], *, variables: Sequence[SasVariable],
    excluding: Mapping[Pair, frozenset[int]],
) -> tuple[SasOperator, ...]:  # fmt: skip
    """Return the copies of an operator that do what it does where not all of a context holds.

    Args:
        operator: the operator.
        context: values, at most one of a variable.
        variables: the variables of the task.
        excluding: for each value the groups of which only one value can hold at a time.

    Returns:
        The copies; the operator itself where the context contradicts its conditions; none where they imply it.
    """
    needs = dict(operator.needs)
    open_pairs = []
    for variable, value in sorted(context):
        if variable not in needs:
            open_pairs.append((variable, value))
        elif needs[variable] != value:
            return (operator,)
    if any(_excluded(pair, needs, excluding) for pair in open_pairs):
        return (operator,)
    return tuple(_cases(operator, open_pairs, needs, variables, excluding))


def _cases(
    operator: SasOperator, context: list[Pair], needs: dict[int, int], variables: Sequence[SasVariable],
    excluding: Mapping[Pair, frozenset[int]],
) -> Iterator[SasOperator]:  # fmt: skip
    for variable, value in context:
        check_time()
        for other in range(len(variables[variable].values)):
            if other != value and not _excluded((variable, other), needs, excluding):
                yield _with_need(operator, (variable, other))
        needs = {**needs, variable: value}
        operator = _with_need(operator, (variable, value))


def _excluded(pair: Pair, needs: Mapping[int, int], excluding: Mapping[Pair, frozenset[int]]) -> bool:
    """Return whether a value cannot hold together with what is needed."""
    groups = excluding.get(pair, _NONE)
    return any(need != pair and groups & excluding.get(need, _NONE) for need in needs.items())


def _with_need(operator: SasOperator, pair: Pair) -> SasOperator:
    """Return the operator with one more condition, kept with the effect where it changes that variable anyway."""
    variable, value = pair
    changed = [n for n, e in enumerate(operator.effects) if e.variable == variable and not e.conditions]
    if not changed:
        return replace(operator, prevail=(*operator.prevail, pair))
    effects = list(operator.effects)
    effects[changed[0]] = replace(effects[changed[0]], before=value)
    return replace(operator, effects=tuple(effects))
