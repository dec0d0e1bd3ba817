"""Gymnasium environment of a PDDL domain without geometry, and parts shared by environments."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing
from tmkit.batch import ProblemSource
from tmkit.batch.generators import GeneratorSource
from tmkit.batch.problems import FixedProblem
from tmkit.errors import ConfigurationError
from tmkit.pddl import And, Fact, GroundAction, Problem, State
from tmkit.pddl.evaluation import Interpretation
from tmkit.pddl.formulas import Atom, Formula, Not
from tmkit.pddl.substitution import conjuncts_of
from tmkit.tamp.context import PlanningContext
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.seed_run import planning_context

with importing("gymnasium", "learning", "environments need"):
    import gymnasium
    from gymnasium import spaces

__all__ = [
    "SEEDS",
    "FactTable",
    "ObservationKind",
    "context_of",
    "goal_facts",
    "gymnasium",
    "source_of",
    "spaces",
]

ObservationKind: TypeAlias = Literal["array", "graph", "picture"]
"""Kind of observation of an environment."""

SEEDS = 2**31 - 1
"""Upper bound of the seeds of problems, exclusive."""


def source_of(
    source: ProblemSource | PlanningProblem | str, parameters: Mapping[str, Any] | None
) -> ProblemSource:
    """Return the source of problems for a source, a problem, or the name of a generator.

    Raises:
        ConfigurationError: if there are parameters, but no name of a generator.
    """
    if isinstance(source, str):
        return GeneratorSource(source, dict(parameters or {}))
    if parameters:
        raise ConfigurationError("parameters need the name of a generator as source")
    return FixedProblem(source) if isinstance(source, PlanningProblem) else source


def context_of(
    source: ProblemSource, seed: int, options: Mapping[str, Any] | None
) -> tuple[PlanningContext, int]:
    """Return the problem of a seed, and that seed; the option ``problem`` overrides the seed."""
    seed = int((options or {}).get("problem", seed))
    return planning_context(*source.problem(seed)), seed


class FactTable:
    """Numbered facts of problems with the same objects and predicates.

    The table converts states to arrays and graphs.
    """

    def __init__(self, problem: Problem) -> None:
        self.objects = tuple(sorted(problem.all_objects))
        self.facts = tuple(
            Fact(predicate.name, arguments)
            for predicate in sorted(problem.domain.predicates, key=lambda predicate: predicate.name)
            for arguments in itertools.product(
                *(sorted(problem.objects_of(p.types)) for p in predicate.parameters)
            )
        )
        self._number = {fact: number for number, fact in enumerate(self.facts)}
        self._names = sorted({fact.predicate for fact in self.facts})
        self._types = sorted({name for types in problem.all_objects.values() for name in types})
        self._kinds = {name: problem.all_objects[name] for name in self.objects}

    def array(self, facts: Iterable[Fact]) -> NDArray[np.int8]:
        """Return 1 for each true fact and 0 for each other, in the order of the table."""
        values = np.zeros(len(self.facts), dtype=np.int8)
        values[[self._number[fact] for fact in facts if fact in self._number]] = 1
        return values

    def graph_space(self) -> spaces.Graph:
        """Return the space of :meth:`graph`."""
        width = len(self._types) + 2 * len(self._names)
        return spaces.Graph(
            spaces.Box(0.0, 1.0, (width,), np.float32), spaces.Discrete(2 * len(self._names))
        )

    def graph(self, state: State, goal: Iterable[Fact]) -> spaces.GraphInstance:
        """Return the graph of a state and a goal.

        Objects are nodes, facts of one object are features, and facts of two objects are edges.
        Kinds of facts of the goal follow those of the state.
        """
        node = {name: number for number, name in enumerate(self.objects)}
        nodes = np.zeros((len(node), len(self._types) + 2 * len(self._names)), dtype=np.float32)
        for name, types in self._kinds.items():
            nodes[node[name], [self._types.index(type_name) for type_name in types]] = 1.0
        edges: list[int] = []
        links: list[tuple[int, int]] = []
        for offset, facts in ((0, state), (len(self._names), goal)):
            for fact in facts:
                kind = offset + self._names.index(fact.predicate)
                if len(fact.arguments) == 1:
                    nodes[node[fact.arguments[0]], len(self._types) + kind] = 1.0
                elif len(fact.arguments) == 2:
                    edges.append(kind)
                    links.append((node[fact.arguments[0]], node[fact.arguments[1]]))
        return spaces.GraphInstance(
            nodes, np.array(edges, np.int64), np.array(links, np.int64).reshape(-1, 2)
        )

    def require_same(self, problem: Problem, seed: int) -> None:
        """Raise an error if a problem has other objects, so that its states do not fit the spaces.

        Raises:
            ConfigurationError: if the objects differ.
        """
        if tuple(sorted(problem.all_objects)) != self.objects:
            extra = sorted({*problem.all_objects} ^ {*self.objects})
            raise ConfigurationError(
                f"the problem of seed {seed} has other objects than the first"
                f" ({', '.join(extra[:5])}); an environment needs a source whose problems have the"
                " same"
            )


def goal_facts(goal: Formula) -> tuple[Fact, ...]:
    """Return the facts in the conjunction of a goal, without its other conditions."""
    parts = goal.parts if isinstance(goal, And) else (goal,)
    return tuple(Fact(part.predicate, part.terms) for part in parts if isinstance(part, Atom))


class SymbolicEnv(gymnasium.Env[Any, Any]):
    """Environment whose states are sets of PDDL facts, without geometric feasibility.

    The reward is 1 when the goal holds, which ends an episode, and 0 otherwise. An action that is
    not applicable leaves the state unchanged. ``info["is_applicable"]`` is whether the last action
    was applicable, and ``info["action_mask"]`` marks the applicable actions. One processor core
    executes some thousand steps a second.

    Args:
        source: a source of problems, one problem, or the name of a generator
            (:func:`tmkit.batch.generators.generate`). All problems must have the same objects.
        parameters: parameters of the generator.
        observation: ``array``: a dictionary of ``state`` and ``goal``, with 0 or 1 for each fact.
            ``graph``: objects as nodes, facts of two objects as edges.
        max_steps: steps after which an episode is truncated.
        render_mode: ``ansi`` for :meth:`render`.

    Attributes:
        actions: the ground actions, by the number of the action space.
        facts: the facts, by the index of the observation.

    Raises:
        ConfigurationError: if the kind of observation is unknown, or parameters come without the
            name of a generator.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        source: ProblemSource | PlanningProblem | str = "towers",
        *,
        parameters: Mapping[str, Any] | None = None,
        observation: ObservationKind = "array",
        max_steps: int = 200,
        render_mode: str | None = None,
    ) -> None:
        if observation not in ("array", "graph"):
            raise ConfigurationError(f"observation must be 'array' or 'graph', not {observation!r}")
        self.source = source_of(source, parameters)
        self.max_steps = max_steps
        self.render_mode = render_mode
        self._observation = observation
        self._problem = context_of(self.source, 0, None)[0].problem
        self._table = FactTable(self._problem)
        self.facts = self._table.facts
        self.actions = tuple(
            GroundAction(schema.name, arguments)
            for schema in sorted(self._problem.domain.actions, key=lambda schema: schema.name)
            for arguments in itertools.product(
                *(sorted(self._problem.objects_of(p.types)) for p in schema.parameters)
            )
        )
        self._numbers = {action: number for number, action in enumerate(self.actions)}
        self._complex_schemas = [
            schema
            for schema in self._problem.domain.actions
            if not self._is_plain(schema.precondition)
        ]
        self._precondition_literals = self._literals()
        self.action_space = spaces.Discrete(len(self.actions))
        facts = spaces.MultiBinary(len(self.facts))
        self.observation_space = (
            self._table.graph_space()
            if observation == "graph"
            else spaces.Dict({"state": facts, "goal": facts})
        )
        self.state = State()
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the next problem, or with that of the seed ``options["problem"]``.

        Args:
            seed: seed of the sequence of problems.
            options: ``problem``, if given, is the seed of the problem.
        """
        super().reset(seed=seed)
        context, number = context_of(self.source, int(self.np_random.integers(SEEDS)), options)
        self._table.require_same(context.problem, number)
        self._problem = context.problem
        self.state = context.problem.init
        self._steps = 0
        self._goal = goal_facts(self._problem.goal)
        return self._observe(), {"problem": number, "action_mask": self.action_masks()}

    def step(self, action: int | np.integer) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Apply an action by its number."""
        ground = self.actions[int(action)]
        schema, binding = self._problem.binding_of(ground)
        interpretation = Interpretation(self._problem, self.state)
        is_applicable = interpretation.holds(schema.precondition, binding)
        if is_applicable:
            change = interpretation.change(schema.effect, binding)
            self.state = change.apply_to(self.state)
        self._steps += 1
        is_done = self._problem.holds(self.state, self._problem.goal)
        return (
            self._observe(),
            float(is_done),
            is_done,
            self._steps >= self.max_steps,
            {
                "is_applicable": is_applicable,
                "action": str(ground),
                "action_mask": self.action_masks(),
            },
        )

    def action_masks(self) -> NDArray[np.bool_]:
        """Return for each action whether it is applicable.

        The maskable algorithms of sb3-contrib call this method.
        """
        state = self._table.array(self.state).astype(bool)
        literals = np.concatenate([state, ~state, [True, False]])
        mask: NDArray[np.bool_] = np.logical_and.reduce(
            literals[self._precondition_literals], axis=1
        )
        interpretation = Interpretation(self._problem, self.state)
        for schema in self._complex_schemas:
            for binding in interpretation.solutions(schema.precondition, schema.parameters):
                arguments = tuple(binding[parameter.name] for parameter in schema.parameters)
                mask[self._numbers[GroundAction(schema.name, arguments)]] = True
        return mask

    def _is_plain(self, precondition: Formula) -> bool:
        """Return whether a precondition is a conjunction of literals without derived predicates."""
        atoms = [
            part.part if isinstance(part, Not) else part for part in conjuncts_of([precondition])
        ]
        derived = self._problem.domain.derived_predicates
        return all(isinstance(atom, Atom) and atom.predicate not in derived for atom in atoms)

    def _literals(self) -> NDArray[np.intp]:
        """Return the literals (n_actions, width) of preconditions.

        A literal is an index into the concatenation of the facts, their negations, true and false.
        """
        count = len(self.facts)
        places = {fact: number for number, fact in enumerate(self.facts)}
        rows = []
        for action in self.actions:
            schema, binding = self._problem.binding_of(action)
            row = [2 * count + 1] if schema in self._complex_schemas else []
            for part in () if row else conjuncts_of([schema.precondition]):
                is_negated = isinstance(part, Not)
                atom: Any = part.part if isinstance(part, Not) else part
                place = places.get(atom.ground(binding))
                row.append(
                    2 * count + 1 - is_negated if place is None else place + is_negated * count
                )
            rows.append(row)
        width = max(map(len, rows), default=0)
        return np.array(
            [row + [2 * count] * (width - len(row)) for row in rows], dtype=np.intp
        ).reshape(-1, width)

    def render(self) -> str | None:
        """Return the true facts, one a line, in the mode ``ansi``, else None."""
        return "\n".join(map(str, self.state)) if self.render_mode == "ansi" else None

    def _observe(self) -> Any:
        if self._observation == "graph":
            return self._table.graph(self.state, self._goal)
        return {"state": self._table.array(self.state), "goal": self._table.array(self._goal)}
