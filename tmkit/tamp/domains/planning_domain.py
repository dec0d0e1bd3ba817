"""Domain for planning: its PDDL and its semantics, and the PDDL problems of scenes.

A :class:`PlanningDomain` relates scenes to PDDL: the objects of a scene, the facts that hold in it,
and the problem with a goal. Errors of the semantics name their file and line.

Invariants: the facts are never stored beside the scene. Equal scenes give equal problems.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import TypeVar, cast

import numpy as np

from tmkit._support.argument_errors import check_argument
from tmkit.errors import SceneError, TaskError, TmkitError, UnknownNameError
from tmkit.graph import SceneGraph, task_facts
from tmkit.graph.task_facts import TaskFact
from tmkit.manipulation.actions.candidates import ActionContext, ApplyEffects, Candidate
from tmkit.manipulation.actions.pick_place import arm_motion_planners
from tmkit.manipulation.actions.primitives import MotionSettings
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.motion import CollisionRules, MotionPlanner
from tmkit.pddl import Domain, Fact, GroundAction, Problem, State, parse_goal
from tmkit.pddl.formulas import Add, ChangeNumber, Delete, Formula, simple_effects
from tmkit.pddl.model import Metric
from tmkit.plans.class_changes import FactEffect
from tmkit.plans.values import Configuration, Plan, PlanStep
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import MOVABLE_CLASSES
from tmkit.spatial.plain import read_only
from tmkit.tamp.domains.action_costs import with_costs
from tmkit.tamp.domains.semantics import DomainSemantics, find_renamed_frames, pddl_name
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
        semantics: semantics for the arms.
        robots: arms that it was loaded for.
        semantics_name: source of the semantics if it was given separately, without folders; else
            empty.
        stored_predicates: predicates whose facts are stored in the scene, not derived.
        run_data: samples of the domain's streams, shared by the calls of :meth:`context`,
            :func:`tmkit.refine` and :func:`tmkit.successors` with equal seeds. They live as long as
            the domain. :func:`tmkit.plan` has its own.
    """

    name: str
    domain: Domain
    pddl: str
    digest: str
    semantics: DomainSemantics
    robots: tuple[Manipulator, ...]
    semantics_name: str = ""
    stored_predicates: frozenset[str] = frozenset()
    run_data: dict[object, object] = field(default_factory=dict, repr=False)

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the PDDL objects of a scene with their types, as ``{name: type}``.

        Args:
            scene: the scene.

        Raises:
            TaskError: if the domain does not declare a type, or has a constant of the same name.
            SceneError: if the domain's predicates cannot describe the scene.
        """
        objects = self.require_type("objects", self.semantics.objects(scene), Mapping)
        types = ["object", *(declared.name for declared in self.domain.types)]
        for kind in objects.values():
            if kind not in types:
                reason = UnknownNameError.of("type", kind, types).message
                raise TaskError.at(f"semantics of domain '{self.name}'", reason)
        for constant in self.domain.constants:
            if constant.name in objects:
                raise self._error(
                    f"constant '{constant.name}' is an object of the scene; expected a parameter in"
                    " its place"
                )
        return objects

    def state(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        objects: Mapping[str, str] | None = None,
        view: TracedScene | None = None,
    ) -> State:
        """Return the basic facts that hold in a scene at a configuration.

        All of them are derived anew. :class:`.state_derivation.StateDeriver` derives those of a
        version from those of another.

        Args:
            scene: the scene.
            q: (n_joints,) configuration [rad or m].
            objects: PDDL objects with their types. Defaults to those of the scene.
            view: the scene with cached values of other versions, for a semantics that can be
                traced.

        Raises:
            SceneError: if the domain's predicates cannot describe the scene.
            TaskError: if the semantics raise an error that does not come from tmkit; the message
                names its file and line.
        """
        if objects is None:
            objects = self.objects(scene)
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

    def problem(
        self,
        scene: SceneGraph,
        q: Configuration,
        goal: str | Formula = "(and)",
        *,
        metric: Metric | None = None,
        values: Mapping[Fact, float] | None = None,
    ) -> Problem:
        """Return the PDDL problem of a scene, as :func:`tmkit.plan` derives it.

        Objects and initial facts are those of the scene.

        Args:
            scene: scene at the start.
            q: (n_joints,) configuration at the start [rad or m].
            goal: goal in PDDL, or parsed. Defaults to a goal that always holds.
            metric: quantity that plans minimise. Defaults to that of the domain.
            values: values of numeric functions, by ground term.

        Raises:
            TaskError: if the goal or a value is wrong, or a predicate has no semantics.
            SceneError: if the domain's predicates cannot describe the scene.
        """
        self.require_meaning(scene)
        objects = self.objects(scene)
        formula = self.parse_goal(goal, scene, objects) if isinstance(goal, str) else goal
        return Problem(
            "from-scene",
            self.domain,
            objects=objects,
            init=self.state(scene, q, objects=objects),
            goal=formula,
            metric=metric or self.metric,
            values=values,
        )

    @property
    def metric(self) -> Metric:
        """Quantity that plans minimise if no problem defines it.

        It is the cost if the actions of the domain have costs, else the length of the plan. Costs
        that depend on functions need a problem with their values.
        """
        names = {function.name for function in self.domain.functions}
        return Metric.TOTAL_COST if names == {"total-cost"} else Metric.PLAN_LENGTH

    def parse_goal(self, text: str, scene: SceneGraph, objects: Mapping[str, str]) -> Formula:
        """Return a PDDL goal over the objects of a scene.

        Args:
            text: PDDL goal.
            scene: scene at the start.
            objects: PDDL objects of the scene with their types.

        Raises:
            TaskError: if the text is not a goal over these objects; for a frame that lacks a class,
                the message names the class.
        """
        try:
            return parse_goal(text, self.domain, objects=objects)
        except TaskError as error:
            for name in re.findall(r"[^\s()]+", text):
                if f"unknown object '{name.lower()}'" not in str(error):
                    continue
                reason = self.object_fault(name, scene)
                if not reason:
                    continue
                locations = [object for object in objects if object.startswith(f"{name.lower()}__")]
                if locations:
                    location = min(locations, key=len)
                    reason += f"; did you mean one of its locations, such as '{location}'?"
                raise TaskError.at("goal", reason) from error
            renamed = find_renamed_frames(scene.frame_names, objects).items()
            hints = [
                f"'{frame}' is '{name}'"
                for frame, name in renamed
                if name != frame.lower() and frame.lower() in text.lower()
            ]
            if not hints:
                raise
            hint = f"; in PDDL, {', '.join(hints)}"
            heading, *quotation = str(error).split("\n")
            data = {**error.data, "reason": f"{error.data['reason']}{hint}"}
            raise TaskError("\n".join((f"{heading}{hint}", *quotation)), **data) from None

    def object_fault(self, name: str, scene: SceneGraph) -> str | None:
        """Return the reason why a frame is not an object of the domain; None without such a frame.

        Args:
            name: PDDL name of the frame.
            scene: the scene.
        """
        frame = next(
            (frame for frame in scene.frame_names if pddl_name(frame) == name.lower()), None
        )
        if frame is None:
            return None
        scene_classes = (kind for other in scene.frame_names for kind in scene.classes(other))
        classes = [
            kind
            for kind in sorted({*MOVABLE_CLASSES, *scene_classes})
            if self._is_object(name, scene.set_classes(frame, (kind,)))
        ]
        reason = "no class makes it one"
        if classes:
            reason = f"it lacks the class {' or '.join(map(repr, classes))}"
        return f"frame '{frame}' is not an object of domain '{self.name}': {reason}"

    def _is_object(self, name: str, scene: SceneGraph) -> bool:
        try:
            return name.lower() in self.semantics.objects(scene)
        except SceneError:  # the domain cannot use such a frame
            return False

    def require_meaning(self, scene: SceneGraph) -> None:
        """Reject a predicate that nothing derives, stores or changes.

        Args:
            scene: scene at the start.

        Raises:
            TaskError: if there is such a predicate; the message has its file and line.
        """
        if not self.stored_predicates:
            return
        for name in sorted(self.stored_predicates - {name for name, _ in task_facts(scene)}):
            actions = (*self.domain.actions, *self.domain.uncontrollable_actions)
            effects = (str(action.effect).replace(")", " ") for action in actions)
            if any(f"({name} " in effect for effect in effects):
                continue
            rows = enumerate(self.pddl.lower().splitlines(), start=1)
            pattern = rf"\({re.escape(name)}[\s)]"
            line = next((number for number, row in rows if re.search(pattern, row)), None)
            raise self._error(
                f"predicate '{name}' has no semantics: none derives it, no action changes it, no"
                " scene stores it",
                line=line,
            )

    def context(
        self,
        scene: SceneGraph,
        q: Configuration,
        seed: int = 0,
        *,
        samplers: Samplers | None = None,
        settings: MotionSettings | None = None,
        motion_planner: MotionPlanner | None = None,
    ) -> ActionContext:
        """Return the context of an action: samplers, and a motion planner for each arm.

        :meth:`candidates` and :meth:`tmkit.manipulation.Candidate.refine` take it. The random
        generator is seeded anew, so equal arguments give equal candidates and motions.

        Args:
            scene: scene before the action.
            q: (n_joints,) configuration before the action [rad or m].
            seed: seed of the samplers and of the random generator, at least 0.
            samplers: samplers of grasps and placements. Defaults to the built-in ones.
            settings: search limits and default line lengths of motions.
            motion_planner: planner of paths. Defaults to :class:`tmkit.motion.RrtConnect`.

        Raises:
            ConfigurationError: if ``q`` has the wrong length.
        """
        first, *others = self.robots
        rules = CollisionRules.from_start(first, scene, q=q, other_arms=tuple(others))
        arms = arm_motion_planners(
            self.robots,
            budget=settings or MotionSettings(),
            rules=rules,
            motion_planner=motion_planner,
        )
        sampling = SeededSamplers(
            samplers or Samplers(), first, seed, start=scene, run_data=self.run_data
        )
        return ActionContext(scene, q, np.random.default_rng(seed), sampling, arms)

    def plan(
        self,
        scene: SceneGraph,
        q: Configuration,
        steps: Sequence[PlanStep],
        goal: str | Formula,
        *,
        seed: int = 0,
    ) -> Plan:
        """Return a plan of steps that another planner computed.

        The costs of the steps become those of the problem's metric. The steps are not checked;
        :func:`tmkit.validate_plan` does that.

        Args:
            scene: scene at the start.
            q: (n_joints,) configuration at the start [rad or m].
            steps: actions with motions, such as ``motion.step(action)`` of an
                :class:`~tmkit.manipulation.ActionMotion`.
            goal: goal in PDDL, or parsed.
            seed: seed of the planner, for the record.

        Raises:
            TaskError: if the goal is wrong.
            SceneError: if the domain's predicates cannot describe the scene.
        """
        problem = self.problem(scene, q, goal)
        return Plan(
            scene=scene,
            q=read_only(np.array(q, dtype=float)),
            robots=self.robots,
            domain=self.name,
            domain_pddl=self.pddl,
            domain_digest=self.digest,
            semantics=self.semantics_name,
            goal=str(problem.goal),
            seed=seed,
            steps=with_costs(problem, steps),
        )

    def action_of(
        self, before: tuple[SceneGraph, Configuration], after: tuple[SceneGraph, Configuration]
    ) -> GroundAction:
        """Return the action whose effects turn the state of one version into that of another.

        It names an edit, such as a :meth:`~tmkit.graph.SceneGraph.reparent`, by an action of the
        domain. Facts of :attr:`probabilistic_predicates` are ignored.

        Args:
            before: scene and (n_joints,) configuration before the action.
            after: scene and (n_joints,) configuration after it.

        Raises:
            TaskError: if no applicable action has these effects, or several have; the message has
                the changed facts and the actions.
            SceneError: if the domain's predicates cannot describe a scene.
        """
        problem = self.problem(*before)
        objects = {name: types[0] for name, types in problem.objects.items()}
        state = self._certain(problem.init)
        new_state = self._certain(self.state(*after, objects=objects))
        change = state.difference(new_state)
        if not change:
            raise self._error("no action turns a state into an equal one")
        actions = [
            action
            for action in problem.applicable_actions(problem.init)
            if self._certain(problem.apply(problem.init, action)) == new_state
        ]
        if len(actions) == 1:
            return actions[0]
        facts = ", ".join([*map(str, change.unexpected), *(f"(not {f})" for f in change.missing)])
        if actions:
            names = ", ".join(map(str, actions))
            raise self._error(f"{len(actions)} actions have the effects {facts}: {names}")
        raise self._error(f"no applicable action has the effects {facts}")

    def _certain(self, state: State) -> State:
        """Return the state without facts of probabilistic predicates."""
        names = self.probabilistic_predicates
        return state.change(delete=[fact for fact in state if fact.predicate in names])

    def _error(self, reason: str, *, line: int | None = None) -> TaskError:
        """Return an error at the PDDL of the domain."""
        return TaskError.at(self.domain.source or f"domain '{self.name}'", reason, line=line)

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
            path, f"'{method}' returns {repr(value)[:60]}, expected {expected}", line=line
        )

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates of an action, best first.

        Args:
            action: ground action.
            context: scene and configuration before the action, samplers and arms.

        Raises:
            ArgumentError: if an argument has another type.
            UnknownNameError: if the domain has no such action, or the scene no such object.
            TaskError: if the arguments do not fit the parameters of the action. Also if the
                semantics raise an error that does not come from tmkit; the message
                names its file and line.
        """
        check_argument(action, GroundAction, "action", function="candidates")
        check_argument(context, ActionContext, "context", function="candidates")
        return self._candidates(action, context)

    def _candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        if not self.is_moving(action):
            yield ApplyEffects((), "without motion")
            return
        schema_action = GroundAction(
            self.domain.outcomes(action.name)[0].outcome_of or action.name, action.arguments
        )
        try:
            with self.attribute_errors(f"candidates of {action}"):
                for candidate in self.require_type(
                    "candidates", self.semantics.candidates(schema_action, context), Iterable
                ):
                    if not callable(getattr(candidate, "refine", None)):
                        self.require_type("candidates", candidate, Candidate)
                    yield candidate
        except TmkitError:
            self._require_arguments(action, context.scene)
            raise

    def _require_arguments(self, action: GroundAction, scene: SceneGraph) -> None:
        """Reject an action whose arguments do not fit its parameters.

        Raises:
            UnknownNameError: if an argument is neither an object nor a constant.
            TaskError: if the number or a type of the arguments differs from the parameters.
        """
        objects = self.semantics.objects(scene)
        vocabulary = self.domain.vocabulary_with({name: (objects[name],) for name in objects})
        for name in action.arguments:
            if name not in vocabulary.objects:
                raise UnknownNameError.of("object", name, vocabulary.objects, where=f"{action}")
        schema = self.domain.outcomes(action.name)[0]
        if (fault := vocabulary.call_fault("action", schema, action.arguments, {})) is not None:
            parameters = " ".join(parameter.name for parameter in schema.parameters)
            raise self._error(f"{action}: {fault.reason}; expected ({action.name} {parameters})")

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
