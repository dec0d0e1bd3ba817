"""Partial orders: which actions of a plan may change places, and plans in which agents take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from tmkit.pddl.formulas import Add, Atom, ChangeNumber, Delete, Fact, FunctionTerm, GroundAction, When, is_variable
from tmkit.pddl.model import Domain, Problem
from tmkit.pddl.state import State
from tmkit.pddl.substitution import subtrees


def interference(domain: Domain, actions: Sequence[GroundAction]) -> list[frozenset[int]]:
    """Return for each action the indices of those before it with which it must not change places.

    One changes a fact that the other needs, or both change one. Derived predicates count as all predicates that they
    follow from, quantified variables as all objects.

    Args:
        domain: the domain.
        actions: ground actions in order.
    """
    below = {axiom.predicate: {a.predicate for a in _atoms(axiom.condition)} for axiom in domain.axioms}
    facts = [_touched(domain, action, below) for action in actions]
    return [frozenset(i for i in range(j) if _interferes(facts[i], facts[j])) for j in range(len(actions))]


_Touched: TypeAlias = tuple[list[Atom], list[tuple[Atom, bool]]]  # what is needed; what is changed, and whether added


def _atoms(tree: object) -> Iterator[Atom]:
    yield from (part for part in subtrees(tree) if isinstance(part, Atom))  # type: ignore[arg-type]


def _touched(domain: Domain, action: GroundAction, below: dict[str, set[str]]) -> _Touched:
    schema = domain.action(action.name)
    binding = dict(zip((p.name for p in schema.parameters), action.arguments, strict=True))

    def ground(atom: Atom) -> Atom:
        return Atom(atom.predicate, tuple(binding.get(term, term) for term in atom.terms))

    timing = schema.timing
    needs, effects = [schema.precondition], [schema.effect]
    if timing is not None:
        needs, effects = [timing.at_start, timing.over_all, timing.at_end], [timing.start, timing.end]
    parts = [part for effect in effects for part in subtrees(effect)]
    conditions = [*needs, *(part.condition for part in parts if isinstance(part, When))]
    needed = [ground(atom) for condition in conditions for atom in _atoms(condition)]
    numbers = [*conditions, *(part for part in parts if isinstance(part, ChangeNumber))]
    needed += [Atom(f"={t.name}") for tree in numbers for t in subtrees(tree) if isinstance(t, FunctionTerm)]
    for atom in needed:
        needed += [Atom(name) for name in sorted(below.get(atom.predicate, ())) if Atom(name) not in needed]
    changed = [(ground(part.atom), isinstance(part, Add)) for part in parts if isinstance(part, Add | Delete)]
    changed += [
        (Atom(f"={p.term.name}"), is_more) for p in parts if isinstance(p, ChangeNumber) for is_more in (False, True)
    ]
    return needed, changed


def _interferes(first: _Touched, second: _Touched) -> bool:
    (needed, changed), (other_needed, other_changed) = first, second
    return (
        any(_same(atom, other) for atom in needed for other, _ in other_changed)
        or any(_same(atom, other) for atom, _ in changed for other in other_needed)
        or any(_same(a, b) and x != y for a, x in changed for b, y in other_changed)
    )


def _same(first: Atom, second: Atom) -> bool:
    """Return whether two atoms may be about one fact: a variable, or no terms of a predicate that has some, is any."""
    if first.predicate != second.predicate:
        return False
    pairs = zip(first.terms, second.terms, strict=False)
    return all(a == b or is_variable(a) or is_variable(b) for a, b in pairs)


def by_turns(
    problem: Problem, actions: Sequence[GroundAction], agents: Sequence[str], *,
    is_allowed: Callable[[GroundAction, State], bool] = lambda *_: True, ranks: Sequence[int] | None = None,
) -> tuple[GroundAction, ...]:  # fmt: skip
    """Return a plan with its actions in an order in which agents take turns; the plan itself if there is none.

    An agent goes on as long as the facts about it are others than at the start: an arm, while it holds something.

    Args:
        problem: the task.
        actions: a plan.
        agents: objects that act, as arms.
        is_allowed: whether an action may be done in a state; all by default.
        ranks: of the actions that an agent may go on with, the one of the least rank is next; by default the first.
    """
    ranks = ranks or range(len(actions))
    before = interference(problem.domain, actions)
    own = [[agent for agent in agents if agent in action.arguments] for action in actions]

    def facts_of(agent: str, state: State) -> frozenset[Fact]:
        return frozenset(fact for fact in state if agent in fact.arguments)

    done: list[int] = []
    state, busy = problem.init, dict.fromkeys(agents, 0)
    while len(done) < len(actions):
        working = {agent for agent in agents if facts_of(agent, state) != facts_of(agent, problem.init)}
        ready = [
            (not working.intersection(own[i]), max((busy[agent] for agent in own[i]), default=0), ranks[i], i)
            for i in range(len(actions))
            if i not in done and before[i] <= set(done) and is_allowed(actions[i], state)
        ]
        if not ready:
            return tuple(actions)
        chosen = min(ready)[-1]
        state = problem.apply(state, actions[chosen])
        busy.update({agent: busy[agent] + 1 for agent in own[chosen]})
        done.append(chosen)
    return tuple(actions[i] for i in done)
