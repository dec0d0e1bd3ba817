"""A domain without its geometry: actions are those of the PDDL, states its facts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.batch import ProblemSource
from tmkit.envs.common import SEEDS, FactTable, ObservationKind, context_of, goal_facts, gymnasium, source_of, spaces
from tmkit.errors import ConfigurationError
from tmkit.pddl import GroundAction, State
from tmkit.pddl.evaluation import Interpretation
from tmkit.pddl.formulas import Atom, Formula, Not
from tmkit.pddl.substitution import conjuncts_of
from tmkit.tamp.problem import PlanningProblem


class SymbolicEnv(gymnasium.Env[Any, Any]):
    """States are sets of facts; an action changes them as the domain says, whether or not an arm could do it.

    The reward is 1 when the goal is reached, which ends an episode, and 0 else. An action that is not applicable
    changes nothing; ``info["is_applicable"]`` says so, and ``info["action_mask"]`` which ones are. A processor does
    some thousand steps a second.

    Args:
        source: where problems come from, one problem, or the name of a generator (:func:`tmkit.batch.generate`).
            All must have the same objects.
        parameters: of the generator.
        observation: ``array``: a dictionary of ``state`` and ``goal``, each 0 or 1 for each fact; ``graph``: objects
            as nodes, facts of two objects as edges.
        max_steps: steps after which an episode is truncated.
        render_mode: ``ansi`` for :meth:`render`.

    Attributes:
        actions: the ground actions, by the number of the action space.
        facts: the facts, by the index of the observation.

    Raises:
        ConfigurationError: an observation that there is not.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012  # as Gymnasium wants it

    def __init__(
        self, source: ProblemSource | PlanningProblem | str = "towers", *,
        parameters: Mapping[str, Any] | None = None, observation: ObservationKind = "array", max_steps: int = 200,
        render_mode: str | None = None,
    ) -> None:  # fmt: skip
        if observation not in ("array", "graph"):
            raise ConfigurationError(f"observation must be 'array' or 'graph', not {observation!r}")
        self.source, self.max_steps, self.render_mode = source_of(source, parameters), max_steps, render_mode
        self._observation = observation
        self._problem = context_of(self.source, 0, None)[0].problem
        self._table = FactTable(self._problem)
        self.facts = self._table.facts
        self.actions = tuple(
            GroundAction(schema.name, arguments)
            for schema in sorted(self._problem.domain.actions, key=lambda each: each.name)
            for arguments in itertools.product(*(sorted(self._problem.objects_of(p.types)) for p in schema.parameters))
        )
        self._numbers = {action: number for number, action in enumerate(self.actions)}
        self._searched = [schema for schema in self._problem.domain.actions if not self._is_plain(schema.precondition)]
        self._needed = self._literals()
        self.action_space = spaces.Discrete(len(self.actions))
        facts = spaces.MultiBinary(len(self.facts))
        self.observation_space = (
            self._table.graph_space() if observation == "graph" else spaces.Dict({"state": facts, "goal": facts})
        )
        self.state = State()
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the next problem, or with that of the seed ``options["problem"]``.

        Args:
            seed: of the sequence of problems.
            options: may have ``problem``.
        """
        super().reset(seed=seed)
        context, number = context_of(self.source, int(self.np_random.integers(SEEDS)), options)
        self._table.require_same(context.problem, number)
        self._problem, self.state, self._steps = context.problem, context.problem.init, 0
        self._goal = goal_facts(self._problem.goal)
        return self._observed(), {"problem": number, "action_mask": self.action_masks()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Apply an action by its number."""
        ground = self.actions[int(action)]
        schema, binding = self._problem.binding_of(ground)
        now = Interpretation(self._problem, self.state)
        is_applicable = now.holds(schema.precondition, binding)
        if is_applicable:
            change = now.change(schema.effect, binding)
            self.state = change.applied(self.state)
        self._steps += 1
        is_done = self._problem.holds(self.state, self._problem.goal)
        return self._observed(), float(is_done), is_done, self._steps >= self.max_steps, {
            "is_applicable": is_applicable, "action": str(ground), "action_mask": self.action_masks(),
        }  # fmt: skip

    def action_masks(self) -> NDArray[np.bool_]:
        """Return for each action whether it is applicable, as sb3-contrib's maskable algorithms ask for it."""
        state = self._table.array(self.state).astype(bool)
        literals = np.concatenate([state, ~state, [True, False]])
        mask: NDArray[np.bool_] = np.logical_and.reduce(literals[self._needed], axis=1)
        now = Interpretation(self._problem, self.state)
        for schema in self._searched:
            for binding in now.solutions(schema.precondition, schema.parameters):
                arguments = tuple(binding[parameter.name] for parameter in schema.parameters)
                mask[self._numbers[GroundAction(schema.name, arguments)]] = True
        return mask

    def _is_plain(self, precondition: Formula) -> bool:
        """Whether it is a conjunction of facts, denied or not, that actions change."""
        atoms = [part.part if isinstance(part, Not) else part for part in conjuncts_of([precondition])]
        derived = self._problem.domain.derived_predicates
        return all(isinstance(atom, Atom) and atom.predicate not in derived for atom in atoms)

    def _literals(self) -> NDArray[np.intp]:
        """Return for each action the places of its precondition among the facts, their denials, true and false."""
        count = len(self.facts)
        places = {fact: number for number, fact in enumerate(self.facts)}
        rows = []
        for action in self.actions:
            schema, binding = self._problem.binding_of(action)
            row = [2 * count + 1] if schema in self._searched else []
            for part in () if row else conjuncts_of([schema.precondition]):
                denied = isinstance(part, Not)
                atom: Any = part.part if isinstance(part, Not) else part
                place = places.get(atom.ground(binding))
                row.append(2 * count + 1 - denied if place is None else place + denied * count)
            rows.append(row)
        width = max(map(len, rows), default=0)
        return np.array([row + [2 * count] * (width - len(row)) for row in rows], dtype=np.intp).reshape(-1, width)

    def render(self) -> str | None:
        """Return the facts that hold, one a line, in the mode ``ansi``."""
        return "\n".join(map(str, self.state)) if self.render_mode == "ansi" else None

    def _observed(self) -> Any:
        if self._observation == "graph":
            return self._table.graph(self.state, self._goal)
        return {"state": self._table.array(self.state), "goal": self._table.array(self._goal)}
