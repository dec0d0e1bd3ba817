"""Semantics of a domain by a script of the original TMKit.

The states of a scene and of a goal scene are those of the script's functions. An action is refined
by the function that the script binds to its name, and has no motion without one. Facts of
predicates that the script does not name are stored in the scene, and change by the effects in PDDL.

A failed action is excluded in the state of its scene. If the script binds a collision constraint,
it is excluded while the facts of the constraint hold for the frames that collided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from tmkit._support.source_location import did_you_mean
from tmkit.errors import SceneError, TaskError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.candidates import ActionContext, ApplyEffects, Candidate
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.pddl import Domain, Fact, GroundAction, State
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.tamp.domains.semantics import DomainSemantics, pddl_name
from tmkit.tamp.domains.tmsmt_scripts.aminopy import SceneView
from tmkit.tamp.domains.tmsmt_scripts.script import Script, run_script
from tmkit.tamp.domains.tmsmt_scripts.tmsmtpy import (
    Operator,
    PlanningFailureError,
    op_nop,
    plan,
    refinement,
)

_ATTEMPTS_PER_VISIT = 4
"""Number of attempts at an action in a visit of a scene version, each with its own seed."""

OperatorWords = list[str | int]
"""Name of an action in capital letters, and the parts of its arguments."""


class ScriptSemantics(DomainSemantics):
    """Semantics by a script; :func:`script_semantics` derives a class for each script."""

    script: ClassVar[Script]
    domain: ClassVar[Domain]

    def __init__(self, *robots: Manipulator) -> None:
        super().__init__(robots[0])
        self._words_by_frames: dict[frozenset[str], OperatorWords] = {}

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the objects of the script's function; see the base class."""
        return {name: kind for name, (kind, _) in self._objects(scene).items()}

    def _objects(self, scene: SceneGraph) -> dict[str, tuple[str, str]]:
        """Return the type of each object and its name in the script, by its name in PDDL.

        Raises:
            SceneError: if two objects have the same name in PDDL.
        """
        objects: dict[str, tuple[str, str]] = {}
        for kind, *names in self._call("scene_objects", SceneView(scene)):
            for name in map(str, names):
                entry = objects.setdefault(pddl_name(name), (kind.lower(), name))
                if entry[1] != name:
                    raise SceneError(
                        f"objects '{entry[1]}' and '{name}' have the PDDL name '{pddl_name(name)}'"
                    )
        return objects

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the facts of the script's function; see the base class."""
        del objects
        view = SceneView(scene)
        return State(self._facts(self._call("scene_state", view, view.joint_values(q))))

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterable[Fact]:
        """Return the facts of the script's function for a goal scene; see the base class.

        Movable frames that the goal does not state are hidden from the script.
        """
        del objects
        unstated = {*movable_frames(scene)}.difference(goal_frames)
        view = SceneView(scene, SceneView.hidden | unstated)
        values = view.joint_values(scene.zero_configuration())
        return [*self._facts(self._call("goal_state", view, values))]

    def _call(self, role: str, *arguments: Any) -> Any:
        return self.script.call(self.script.functions[role], *arguments)

    def _facts(self, expressions: Iterable[Any]) -> Iterator[Fact]:
        """Yield the facts of expressions, without negated ones.

        Raises:
            TaskError: if an expression is not a fact, or the domain lacks its predicate.
        """
        predicates = {predicate.name for predicate in self.domain.predicates}
        for expression in expressions:
            if isinstance(expression, str) or not expression or not isinstance(expression[0], str):
                reason = f"expected a fact such as ['ON', 'a', 'b'], received {expression!r:.60}"
                raise TaskError.at(self.script.path, reason)
            name, arguments = expression[0].lower(), expression[1:]
            if name == "and":
                yield from self._facts(arguments)
                continue
            if name == "not":
                continue
            if name == "=":
                (function, *inputs), value = arguments
                name, arguments = function.lower(), [*inputs, value]
            if name not in predicates:
                message = UnknownNameError.of("predicate", name, predicates).message
                raise TaskError.at(self.script.path, f"the fact {expression!r:.60}: {message}")
            yield Fact(name, tuple(pddl_name(str(argument)) for argument in arguments))

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield attempts at an action by the script's function; see the base class."""
        function = self.script.refinements.get(action.name.upper())
        if function is None:
            yield ApplyEffects((), "without motion")
            return
        objects = self._objects(context.scene)
        words: OperatorWords = [action.name.upper()]
        for name in action.arguments:
            words += _unmangle(objects[name][1] if name in objects else name)
        for _ in range(_ATTEMPTS_PER_VISIT):
            yield ScriptCandidate(self, function, words)

    def conflict_facts(
        self, frames: frozenset[str], state: State, scene: SceneGraph
    ) -> Iterable[Fact]:
        """Return the facts of the script's collision constraint, or the whole state."""
        words = self._words_by_frames.get(frames)
        if words is None:
            return state
        arguments = SceneView(scene), [*words], sorted(frames)
        return [*self._facts(self._call("collision_constraint", *arguments))]

    def dependencies(
        self, failures: Sequence[MotionFailure], words: OperatorWords
    ) -> frozenset[str] | None:
        """Return the frames on which failures depend by the collision constraint, or None.

        Args:
            failures: failures of an attempt.
            words: the action.
        """
        are_collisions = {failure.kind for failure in failures} == {FailureKind.COLLISION}
        if "collision_constraint" not in self.script.functions or not are_collisions:
            return None
        pairs = [pair for failure in failures for pair in failure.pairs]
        frames = frozenset(frame for pair in pairs for frame in pair)
        self._words_by_frames[frames] = words
        return frames


@dataclass(frozen=True, eq=False)
class ScriptCandidate:
    """Attempt at an action by a function of a script.

    Attributes:
        semantics: semantics with the script.
        function: refinement function.
        words: the action.
    """

    semantics: ScriptSemantics
    function: Callable[..., Any]
    words: OperatorWords

    def __repr__(self) -> str:
        return f"the script's function for {self.words[0]}"

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield the motion of the script's function, or its failures; see the protocol.

        Raises:
            TaskError: if the function raises an error, or returns no operator.
        """
        del arm
        script, view = self.semantics.script, SceneView(context.scene)
        start = op_nop(view, view.joint_values(context.q))
        try:
            with refinement(context.arms, seed):
                arguments = view, start.final_config, [*self.words]
                result = script.call(self.function, *arguments)
        except PlanningFailureError as error:
            frames = self.semantics.dependencies(error.failures, self.words)
            yield from (replace(failure, frames=frames) for failure in error.failures)
            return
        if not isinstance(result, Operator):
            name = getattr(self.function, "__name__", "function")
            reason = f"{name} returns {result!r:.60}, expected an operator of tmsmtpy"
            raise TaskError.at(script.path, reason)
        yield plan(start, result).end


def _unmangle(name: str) -> OperatorWords:
    """Return the names and numbers that ``tmsmtpy.mangle`` joined."""
    parts = name.split("__")
    return [int(part) if part.lstrip("-").isdecimal() else part for part in parts]


def script_semantics(path: Path, source: bytes, domain: Domain) -> type[ScriptSemantics]:
    """Return the semantics class of a script for a domain.

    Args:
        path: file of the script, which is executed.
        source: text of the file.
        domain: PDDL domain.

    Raises:
        FileFormatError: if the script cannot be executed or lacks a binding.
        TaskError: if it refines an action that the domain lacks.
    """
    script = run_script(path, source)
    actions = {action.name.upper(): action.name for action in domain.actions}
    for name in script.refinements:
        if name not in actions:
            hint = did_you_mean(name, actions)
            reason = f"bind_refine_operator: domain '{domain.name}' has no action '{name}'{hint}"
            raise TaskError.at(path, reason)
    texts = {text.lower() for text in script.texts}
    predicates = {predicate.name for predicate in domain.predicates} - domain.derived_predicates
    attributes = {
        "script": script,
        "domain": domain,
        "stored_predicates": frozenset(predicates - texts),
        "moving_actions": frozenset(actions[name] for name in script.refinements),
        "__module__": __name__,
    }
    return type("Semantics", (ScriptSemantics,), attributes)
