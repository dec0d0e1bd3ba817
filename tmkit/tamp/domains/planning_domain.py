"""A domain that is ready for planning: its PDDL, and its semantics, whose errors name their file and line."""

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

_Value = TypeVar("_Value")


def functions_of(semantics: type) -> list[FunctionType]:
    """Return the functions of a class and of those it inherits from."""
    members = (member for part in semantics.__mro__ for member in vars(part).values())
    return [member for member in members if isinstance(member, FunctionType)]


@dataclass(frozen=True, eq=False)
class PlanningDomain:
    """A domain ready for planning: its words and their meaning.

    Attributes:
        name: the folder's name, or that of the PDDL file.
        domain: the PDDL domain.
        pddl: its text.
        digest: 64 hexadecimal digits over the text and the semantics' source.
        semantics: the meaning, for the arms that it was loaded for.
        semantics_name: where the meaning comes from when it was named apart, without folders; else
            empty.
        stored_predicates: predicates whose facts are kept in the scene, not derived.
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

        All of them are derived; :class:`tmkit.tamp.StateDeriver` derives those of versions from one
        another.

        Args:
            scene: the scene.
            objects: the PDDL objects with their types.
            q: the configuration.
            view: the scene with values kept from other versions, for a semantics that can be
                traced.

        Raises:
            SceneError: the scene cannot be told in the domain's predicates.
            TaskError: the semantics raises an error that is none of tmkit's; the message names its
                file and line.
        """
        # Without a view nothing is known from elsewhere: each kept function is called once for its
        # arguments.
        traced = cast(SceneGraph, TracedScene(scene, {}) if view is None else view)
        with self.blamed("the state of a scene"):
            found = self.semantics.state(
                traced if self.semantics.is_incremental else scene, objects, q
            )
            plain = self.returned("state", found, State)
        stored = self._stored(plain, scene)
        added = self._added(plain, scene, objects, q)
        return plain.change(add=[*stored, *added]) if stored or added else plain

    def _stored(self, plain: State, scene: SceneGraph) -> list[Fact]:
        """Return the facts that the scene keeps, in order; a predicate is derived or stored, never both."""
        if self.stored_predicates:
            for fact in plain:
                if fact.predicate in self.stored_predicates:
                    raise TaskError.at(
                        self._meaning, f"derives {fact}, but facts of '{fact.predicate}' are stored"
                    )
        if not (kept := task_facts(scene)):
            return []
        declared = {predicate.name for predicate in self.domain.predicates}
        facts = [Fact(*fact) for fact in sorted(kept) if fact[0] in declared]
        for fact in facts:
            if fact.predicate not in self.stored_predicates:
                raise TaskError.at(
                    "scene",
                    f"stores {fact}, but {self._meaning} derives facts of '{fact.predicate}'",
                )
        return facts

    @property
    def _meaning(self) -> str:
        return f"semantics of domain '{self.semantics_name or self.name}'"

    def fact_changes(self, scene: SceneGraph, predicted: State) -> tuple[FactEffect, ...]:
        """Return the change, if any, after which a scene stores the facts of a state.

        Args:
            scene: the scene.
            predicted: the state.
        """
        if not self.stored_predicates:
            return ()
        wanted: set[TaskFact] = {
            (*fact,) for fact in predicted if fact.predicate in self.stored_predicates
        }
        held = {fact for fact in task_facts(scene) if fact[0] in self.stored_predicates}
        return (
            (FactEffect(tuple(sorted(wanted - held)), tuple(sorted(held - wanted))),)
            if wanted != held
            else ()
        )

    def is_moving(self, action: GroundAction) -> bool:
        """Return whether an action has effects on other than stored facts and numbers, or moves nevertheless."""
        outcomes = self.domain.outcomes(action.name)
        parts = [part for outcome in outcomes for part in simple_effects(outcome.effect)]
        changed = {part.atom.predicate for part in parts if isinstance(part, Add | Delete)}
        is_still = changed <= self.stored_predicates and (
            changed or any(isinstance(p, ChangeNumber) for p in parts)
        )
        return (
            not is_still or (outcomes[0].outcome_of or action.name) in self.semantics.moving_actions
        )

    def _added(
        self, plain: State, scene: SceneGraph, objects: Mapping[str, str], q: Configuration
    ) -> list[Fact]:
        """Return the facts that hold besides, in a domain that was extended for planning."""
        del self, plain, scene, objects, q
        return []

    @contextmanager
    def blamed(self, what: str, *, if_traced: bool = False) -> Iterator[None]:
        """Name the semantics in an error that its code raises and that is none of tmkit's.

        Args:
            what: what was wanted of it.
            if_traced: whether the error must have passed through a method of the semantics, since
                the block runs much else.

        Raises:
            TaskError: in the place of that error; the message has its file and line.
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
            path, line = innermost(error, files) or (self.semantics_name or self.name, None)
            reason = (
                f"{what}: {type(error).__name__}: {error}; a semantics defines every action and"
                f" predicate of its domain '{self.name}'"
            )
            raise TaskError.at(path, reason, line=line) from error

    def returned(self, method: str, value: _Value, kind: type | tuple[type, ...]) -> _Value:
        """Return what a method of the semantics returned, which must be of a type.

        Args:
            method: the method.
            value: what it returned.
            kind: the type or types.

        Raises:
            TaskError: it is of another type; the message has the file and line of the method.
        """
        if isinstance(value, kind):
            return value
        kinds = " or ".join(
            part.__name__ for part in (kind if isinstance(kind, tuple) else (kind,))
        )
        code = getattr(getattr(type(self.semantics), method), "__code__", None)
        path, line = (self.name, None) if code is None else (code.co_filename, code.co_firstlineno)
        raise TaskError.at(
            path, f"'{method}' returns {repr(value)[:60]}, which is no {kinds}", line=line
        )

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates of an action, best first.

        Args:
            action: the ground action.
            context: scene and configuration before the action, samplers and arms.

        Raises:
            TaskError: the semantics raises an error that is none of tmkit's; the message names its
                file and line.
        """
        return self._candidates(action, context)

    def _candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        if not self.is_moving(action):
            yield ApplyEffects((), "without motion")
            return
        stated = GroundAction(
            self.domain.outcomes(action.name)[0].outcome_of or action.name, action.arguments
        )
        with self.blamed(f"candidates of {action}"):
            for candidate in self.returned(
                "candidates", self.semantics.candidates(stated, context), Iterable
            ):
                if not callable(getattr(candidate, "refine", None)):
                    self.returned("candidates", candidate, Candidate)
                yield candidate

    def stated(self, action: GroundAction) -> GroundAction:
        """Return an action as the domain states it, for a domain that was extended for planning by others."""
        del self  # here all are stated
        return action

    def is_goal_action(self, action: GroundAction) -> bool:
        """Return whether an action is carried out only as a goal of a pose or region wants it.

        Args:
            action: the action.
        """
        del self, action
        return False

    def candidates_elsewhere(
        self, action: GroundAction, context: ActionContext
    ) -> Iterator[Candidate]:
        """Yield candidates of an action that achieves a goal, as if there were no such goal.

        Args:
            action: the action.
            context: scene and configuration before the action, samplers and arms.
        """
        return self._candidates(action, context)

    @property
    def open_predicates(self) -> frozenset[str]:
        """Predicates of facts that an action may fail to achieve, when it is carried out for another purpose."""
        return frozenset()

    def places(self, names: Iterable[str], state: State) -> tuple[Fact, ...]:
        """Return facts, added for planning, that describe where objects are; none in this class.

        Args:
            names: PDDL names of objects.
            state: the state.
        """
        del self, names, state
        return ()

    @property
    def probabilistic_predicates(self) -> frozenset[str]:
        """The predicates whose facts hold when something is probable enough; see :class:`DomainSemantics`."""
        return self.semantics.probabilistic_predicates

    def explain_false_fact(self, facts: Iterable[Fact], scene: SceneGraph, q: Configuration) -> str:
        """Return why probabilistic facts do not hold.

        Args:
            facts: the facts.
            scene: the scene.
            q: (n_joints,) configuration.
        """
        return "; ".join(self.semantics.explain_false_fact(fact, scene, q) for fact in facts)


def innermost(error: Exception, files: Collection[str]) -> tuple[str, int | None] | None:
    """Return the file and line in which an error arose, the innermost in some files; None for none."""
    places = [
        (at.filename, at.lineno)
        for at in traceback.extract_tb(error.__traceback__)
        if at.filename in files
    ]
    return places[-1] if places else None
