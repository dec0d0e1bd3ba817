"""Domain for planning: its PDDL and its semantics, whose errors name their file and line."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import TypeVar, cast

from tmkit.errors import TaskError, TmkitError
from tmkit.graph import SceneGraph, task_facts
from tmkit.graph.task_facts import TaskFact
from tmkit.manipulation.actions.candidates import ActionContext, ApplyEffects, Candidate
from tmkit.pddl import Domain, Fact, GroundAction, State
from tmkit.pddl.formulas import Add, ChangeNumber, Delete, simple_effects
from tmkit.plans.class_changes import FactEffect
from tmkit.plans.values import Configuration
from tmkit.tamp.domains.semantics import DomainSemantics
from tmkit.tamp.domains.traced_scene import TracedScene

_T = TypeVar("_T")


def functions_of(semantics: type) -> list[FunctionType]:
    """Return the functions of a class and of those it inherits from."""
    members = (member for part in semantics.__mro__ for member in vars(part).values())
    return [member for member in members if isinstance(member, FunctionType)]


@dataclass(frozen=True, eq=False)
class PlanningDomain:
    """A domain for planning: PDDL and semantics.

    Attributes:
        name: name of the folder or of the PDDL file.
        domain: PDDL domain.
        pddl: text of the PDDL domain.
        digest: 64 hexadecimal digits over the text and the source of the semantics.
        semantics: semantics for the arms that it was loaded for.
        semantics_name: source of the semantics if it was given separately, without folders; else
            empty.
        stored_predicates: predicates whose facts are stored in the scene, not derived.
    """

    name: str
    domain: Domain
    pddl: str
    digest: str
    semantics: DomainSemantics
    semantics_name: str = ""
    stored_predicates: frozenset[str] = frozenset()

    def state(
        self,
        scene: SceneGraph,
        objects: Mapping[str, str],
        q: Configuration,
        *,
        view: TracedScene | None = None,
    ) -> State:
        """Return the basic facts that hold in a scene at a configuration (n_joints,).

        All of them are derived anew. :class:`tmkit.tamp.StateDeriver` derives those of a version
        from those of another.

        Args:
            scene: the scene.
            objects: PDDL objects with their types.
            q: (n_joints,) configuration.
            view: the scene with cached values of other versions, for a semantics that can be
                traced.

        Raises:
            SceneError: if the domain's predicates cannot describe the scene.
            TaskError: if the semantics raise an error that does not come from tmkit; the message
                names its file and line.
        """
        # Without a view no value is cached: each function is called once for its arguments.
        traced = cast(SceneGraph, TracedScene(scene, {}) if view is None else view)
        with self.attribute_errors("the state of a scene"):
            source = traced if self.semantics.is_incremental else scene
            state = self.semantics.state(source, objects, q)
            derived = self.require_type("state", state, State)
        stored = self._facts_in_scene(derived, scene)
        extra = self._extra_facts(derived, scene, objects, q)
        return derived.change(add=[*stored, *extra]) if stored or extra else derived

    def _facts_in_scene(self, derived: State, scene: SceneGraph) -> list[Fact]:
        """Return the facts that are stored in the scene, in order.

        Raises:
            TaskError: if a predicate is both derived and stored.
        """
        if self.stored_predicates:
            for fact in derived:
                if fact.predicate in self.stored_predicates:
                    raise TaskError.at(
                        self._semantics_label,
                        f"derives {fact}, but facts of '{fact.predicate}' are stored",
                    )
        if not (stored := task_facts(scene)):
            return []
        declared = {predicate.name for predicate in self.domain.predicates}
        facts = [Fact(*fact) for fact in sorted(stored) if fact[0] in declared]
        for fact in facts:
            if fact.predicate not in self.stored_predicates:
                label = self._semantics_label
                reason = f"stores {fact}, but {label} derives facts of '{fact.predicate}'"
                raise TaskError.at("scene", reason)
        return facts

    @property
    def _semantics_label(self) -> str:
        return f"semantics of domain '{self.semantics_name or self.name}'"

    def fact_changes(self, scene: SceneGraph, predicted: State) -> tuple[FactEffect, ...]:
        """Return the change, if any, after which a scene stores the facts of a state.

        Args:
            scene: scene before the change.
            predicted: state after the change.
        """
        if not self.stored_predicates:
            return ()
        predicates = self.stored_predicates
        after: set[TaskFact] = {(*fact,) for fact in predicted if fact.predicate in predicates}
        before = {fact for fact in task_facts(scene) if fact[0] in predicates}
        if after == before:
            return ()
        return (FactEffect(tuple(sorted(after - before)), tuple(sorted(before - after))),)

    def is_moving(self, action: GroundAction) -> bool:
        """Return whether an action has a motion.

        It has one if it affects more than stored facts and numbers, or is declared to move.
        """
        outcomes = self.domain.outcomes(action.name)
        parts = [part for outcome in outcomes for part in simple_effects(outcome.effect)]
        predicates = {part.atom.predicate for part in parts if isinstance(part, Add | Delete)}
        has_effect = bool(predicates) or any(isinstance(part, ChangeNumber) for part in parts)
        if not has_effect or not predicates <= self.stored_predicates:
            return True
        return (outcomes[0].outcome_of or action.name) in self.semantics.moving_actions

    def _extra_facts(
        self, derived: State, scene: SceneGraph, objects: Mapping[str, str], q: Configuration
    ) -> list[Fact]:
        """Return further facts that hold, in a domain that was extended for planning."""
        del self, derived, scene, objects, q
        return []

    @contextmanager
    def attribute_errors(self, what: str, *, if_traced: bool = False) -> Iterator[None]:
        """Name the semantics in errors of its code that do not come from tmkit.

        Args:
            what: result that was computed, for the message.
            if_traced: whether the error must have passed through a method of the semantics, because
                the block also runs other code.

        Raises:
            TaskError: if the block raises such an error; the message has its file and line.
        """
        try:
            yield
        except (TmkitError, ImportError, MemoryError):
            raise
        except Exception as error:
            codes = {function.__code__ for function in functions_of(type(self.semantics))}
            if if_traced and not any(
                frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__)
            ):
                raise
            files = {code.co_filename for code in codes}
            path, line = innermost_location(error, files) or (
                self.semantics_name or self.name,
                None,
            )
            reason = (
                f"{what}: {type(error).__name__}: {error}; a semantics defines every action and"
                f" predicate of its domain '{self.name}'"
            )
            raise TaskError.at(path, reason, line=line) from error

    def require_type(self, method: str, value: _T, kind: type | tuple[type, ...]) -> _T:
        """Return a result of a method of the semantics, or raise an error if it has another type.

        Args:
            method: name of the method.
            value: result of the method.
            kind: expected type or types.

        Raises:
            TaskError: if the result has another type; the message has the file and line of the
                method.
        """
        if isinstance(value, kind):
            return value
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(part.__name__ for part in kinds)
        code = getattr(getattr(type(self.semantics), method), "__code__", None)
        path, line = (self.name, None) if code is None else (code.co_filename, code.co_firstlineno)
        raise TaskError.at(
            path, f"'{method}' returns {repr(value)[:60]}, which is no {expected}", line=line
        )

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates of an action, best first.

        Args:
            action: ground action.
            context: scene and configuration before the action, samplers and arms.

        Raises:
            TaskError: if the semantics raise an error that does not come from tmkit; the message
                names its file and line.
        """
        return self._candidates(action, context)

    def _candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        if not self.is_moving(action):
            yield ApplyEffects((), "without motion")
            return
        schema_action = GroundAction(
            self.domain.outcomes(action.name)[0].outcome_of or action.name, action.arguments
        )
        with self.attribute_errors(f"candidates of {action}"):
            for candidate in self.require_type(
                "candidates", self.semantics.candidates(schema_action, context), Iterable
            ):
                if not callable(getattr(candidate, "refine", None)):
                    self.require_type("candidates", candidate, Candidate)
                yield candidate

    def original_action(self, action: GroundAction) -> GroundAction:
        """Return the action of the domain before it was extended for planning."""
        del self  # this domain is not extended
        return action

    def is_goal_action(self, action: GroundAction) -> bool:
        """Return whether an action must achieve a goal with a pose or region.

        Args:
            action: ground action.
        """
        del self, action
        return False

    def candidates_elsewhere(
        self, action: GroundAction, context: ActionContext
    ) -> Iterator[Candidate]:
        """Yield candidates of an action that achieves a goal, as if there were no such goal.

        Args:
            action: ground action.
            context: scene and configuration before the action, samplers and arms.
        """
        return self._candidates(action, context)

    @property
    def open_predicates(self) -> frozenset[str]:
        """Predicates of facts that an action with another purpose may fail to achieve."""
        return frozenset()

    def places(self, names: Iterable[str], state: State) -> tuple[Fact, ...]:
        """Return facts, added for planning, about the places of objects; none in this class.

        Args:
            names: PDDL names of the objects.
            state: state that contains the facts.
        """
        del self, names, state
        return ()

    @property
    def probabilistic_predicates(self) -> frozenset[str]:
        """Predicates whose facts hold when something is probable enough.

        See :class:`DomainSemantics`.
        """
        return self.semantics.probabilistic_predicates

    def explain_false_fact(self, facts: Iterable[Fact], scene: SceneGraph, q: Configuration) -> str:
        """Return the reason why probabilistic facts do not hold.

        Args:
            facts: facts that do not hold.
            scene: scene version.
            q: (n_joints,) configuration.
        """
        return "; ".join(self.semantics.explain_false_fact(fact, scene, q) for fact in facts)


def innermost_location(error: Exception, files: Collection[str]) -> tuple[str, int | None] | None:
    """Return the file and line of the innermost frame of an error in given files, or None."""
    locations = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in files
    ]
    return locations[-1] if locations else None
