"""What the environments share: where their problems come from, and facts and scenes as arrays and graphs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tmkit.batch import FixedProblem, GeneratorSource, ProblemSource
from tmkit.errors import ConfigurationError, MissingExtraError
from tmkit.pddl import And, Atom, Fact, Formula, Problem, State
from tmkit.tamp.context import PlanningContext
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.solve import planning_context

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise MissingExtraError.of("environments need", "envs", "gymnasium") from error

__all__ = ["SEEDS", "FactTable", "ObservationKind", "context_of", "goal_facts", "gymnasium", "source_of", "spaces"]

ObservationKind: TypeAlias = Literal["array", "graph", "picture"]
"""How an environment shows its state."""

SEEDS = 2**31 - 1
"""Problems of a source: seeds below this."""


def source_of(source: ProblemSource | PlanningProblem | str, parameters: Mapping[str, Any] | None) -> ProblemSource:
    """Return where problems come from.

    Args:
        source: the source, one problem, or the name of a generator.
        parameters: of the generator.
    """
    if isinstance(source, str):
        return GeneratorSource(source, dict(parameters or {}))
    if parameters:
        raise ConfigurationError("parameters are those of a generator, which is named by a text")
    return FixedProblem(source) if isinstance(source, PlanningProblem) else source


def context_of(source: ProblemSource, seed: int, options: Mapping[str, Any] | None) -> tuple[PlanningContext, int]:
    """Return the problem of a seed, or of the seed in the options of a reset (``problem``), and that seed."""
    seed = int((options or {}).get("problem", seed))
    return planning_context(*source.problem(seed)), seed


class FactTable:
    """All facts that a problem can have, in order, by which states are arrays and graphs.

    Args:
        problem: the problem; others with the same objects and predicates have the same table.

    Attributes:
        facts: the facts.
    """

    def __init__(self, problem: Problem) -> None:
        self.objects = tuple(sorted(problem.all_objects))
        self.facts = tuple(
            Fact(predicate.name, arguments)
            for predicate in sorted(problem.domain.predicates, key=lambda each: each.name)
            for arguments in itertools.product(*(sorted(problem.objects_of(p.types)) for p in predicate.parameters))
        )
        self._number = {fact: number for number, fact in enumerate(self.facts)}
        self._names = sorted({fact.predicate for fact in self.facts})
        self._types = sorted({name for types in problem.all_objects.values() for name in types})
        self._kinds = {name: problem.all_objects[name] for name in self.objects}

    def array(self, facts: Iterable[Fact]) -> NDArray[np.int8]:
        """Return 1 for each fact that holds, in the order of the table."""
        values = np.zeros(len(self.facts), dtype=np.int8)
        values[[self._number[fact] for fact in facts if fact in self._number]] = 1
        return values

    def graph_space(self) -> spaces.Graph:
        """Return the space of :meth:`graph`."""
        width = len(self._types) + 2 * len(self._names)
        return spaces.Graph(spaces.Box(0.0, 1.0, (width,), np.float32), spaces.Discrete(2 * len(self._names)))

    def graph(self, state: State, goal: Iterable[Fact]) -> spaces.GraphInstance:
        """Return objects as nodes, with types and facts of one object as features, and facts of two as edges.

        Features and edges of the goal stand behind those of the state. Facts of three objects have no place.
        """
        node = {name: number for number, name in enumerate(self.objects)}
        nodes = np.zeros((len(node), len(self._types) + 2 * len(self._names)), dtype=np.float32)
        for name, types in self._kinds.items():
            nodes[node[name], [self._types.index(each) for each in types]] = 1.0
        edges: list[int] = []
        links: list[tuple[int, int]] = []
        for shift, facts in ((0, state), (len(self._names), goal)):
            for fact in facts:
                kind = shift + self._names.index(fact.predicate)
                if len(fact.arguments) == 1:
                    nodes[node[fact.arguments[0]], len(self._types) + kind] = 1.0
                elif len(fact.arguments) == 2:
                    edges.append(kind)
                    links.append((node[fact.arguments[0]], node[fact.arguments[1]]))
        return spaces.GraphInstance(nodes, np.array(edges, np.int64), np.array(links, np.int64).reshape(-1, 2))

    def require_same(self, problem: Problem, seed: int) -> None:
        """Refuse a problem with other objects, whose states would not fit the spaces."""
        if tuple(sorted(problem.all_objects)) != self.objects:
            extra = sorted({*problem.all_objects} ^ {*self.objects})
            raise ConfigurationError(
                f"the problem of seed {seed} has other objects than the first ({', '.join(extra[:5])}); an environment "
                "needs a source whose problems have the same"
            )


def goal_facts(goal: Formula) -> tuple[Fact, ...]:
    """Return the facts of a goal that is a conjunction of them; what else it wants is left out."""
    parts = goal.parts if isinstance(goal, And) else (goal,)
    return tuple(Fact(part.predicate, part.terms) for part in parts if isinstance(part, Atom))
