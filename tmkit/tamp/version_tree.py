r"""Tree of the scene versions that a search has reached.

::

    root --(pick a)--> version --(place a shelf)--> version
      \                   \--(place a shelf)--> version
       \--(pick b)--> version

The :class:`Expansion` of a :class:`SceneVersion` for an action holds the child versions that
motions of the action lead to, and the failures. Expansions are lazy: each call continues the
previous one. Task plans with a common prefix share the versions of that prefix, and later
iterations continue the samplers of earlier ones. Versions returned by :meth:`VersionTree.follow`
have a parent and belong to no expansion.

Invariants: the results of an expansion depend only on its version, its action and the seed of the
tree, not on the order of calls. Each expansion has its own random numbers, seeded by the path from
the root. After each action, the state derived from the new scene equals the state predicted by
PDDL, or :class:`SemanticsMismatchError` names the facts that differ. Facts that a domain declares
probabilistic may hold beyond the prediction. Versions live as long as the tree: each costs about a
kilobyte.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.random import default_rng  # early: an interrupt during this import is lost
from numpy.typing import NDArray

from tmkit._support.argument_errors import callable_name
from tmkit._support.elementary import atan2, dot
from tmkit.errors import SemanticsMismatchError, TaskError
from tmkit.graph import SceneGraph, diff
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Pick, Place
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.actions.timing_breakdown import PlanningStage, StageClock
from tmkit.manipulation.grasps.values import Grasp
from tmkit.manipulation.placements.sampling import Placement
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.pddl import GroundAction, Problem, State
from tmkit.plans.class_changes import apply_effects
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.values import Configuration, PlanStep
from tmkit.robots import movable_frames
from tmkit.robots.robot_files import carrying_joints
from tmkit.spatial import Pose
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.resting import placement_fault
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.state_derivation import DerivedState, StateDeriver
from tmkit.tamp.streams.semantics import StreamCandidate
from tmkit.tamp.validation.candidate_check import CandidateCheck, outside_names

_logger = logging.getLogger(__name__)

_MAX_EXAMPLES = 40
"""Number of failures recorded for each action and cause."""

_SAME_SIDE_COSINE = 0.7
"""Cosine of the angle between two approach axes above which both grasps use the same side."""


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """Failure of an action and the scene in which it occurred.

    Attributes:
        action: the action that failed.
        failure: the failure.
        frames: frames that the failure depends on: those that the action handles and the obstacles.
            None if the dependencies are unknown.
        scene: scene before the action.
        q: (n_joints,) configuration before the action.
        object: frame of the handled object, or of the handle.
        arm: name of the arm; None for the first.
        choice: description of the attempted grasp or placement; empty if none.
    """

    action: GroundAction
    failure: MotionFailure
    frames: frozenset[str] | None
    scene: SceneGraph
    q: Configuration
    object: str | None = None
    arm: str | None = None
    choice: str = ""


@dataclass
class FailureLog:
    """Failures of a run by action and cause, for the explanation.

    Attributes:
        counts: number of failures by (action, cause).
        records: first failures by (action, cause), one for each choice.
        pairs: number of failures by (action, cause) and colliding pairs of frames.
        excesses: smallest distance by which a pose was out of reach, by (action, cause) [m].
        attempts: number of attempted motions.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    records: dict[tuple[str, str], list[FailureRecord]] = field(default_factory=dict)
    pairs: dict[tuple[str, str], Counter[tuple[tuple[str, str], ...]]] = field(default_factory=dict)
    excesses: dict[tuple[str, str], float] = field(default_factory=dict)
    attempts: int = 0

    def count_attempts(self, count: int = 1) -> None:
        """Count attempted motions."""
        self.attempts += count

    def count_failure(self, record: FailureRecord) -> None:
        """Count one failure and store the first of each choice."""
        key = str(record.action), str(record.failure)
        self.counts[key] += 1
        records = self.records.setdefault(key, [])
        is_new_choice = all(record.choice != previous.choice for previous in records)
        if len(records) < _MAX_EXAMPLES and is_new_choice:
            records.append(record)
        self.pairs.setdefault(key, Counter())[record.failure.pairs] += 1
        excess = record.failure.excess
        self.excesses[key] = min(excess, self.excesses.get(key, excess))

    def most_common(self) -> tuple[tuple[str, str, int], ...]:
        """Return (action, cause, count), most frequent first, ties in order of name."""
        items = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return tuple((action, cause, count) for (action, cause), count in items)


@dataclass(eq=False)
class SceneVersion:
    """A scene and configuration reached by refined actions.

    Attributes:
        scene: the scene.
        q: (n_joints,) configuration.
        state: PDDL state.
        step: last action with its motion; None at the root.
        changed_frames: frames whose edge the last step changed, and children of joints it moved.
        key: 16-byte hash of the path from the root.
        scene_key: 16-byte hash of the actions, grasps and placements from the root. Versions with
            equal keys have the same scene, except for rounding, and may differ in the arm's
            configuration.
        derived: derived state, from which the states of child versions are computed. None at the
            root.
        expansions: expansions by action and number of the arranged place.
        number: number of versions created before this one.
        candidate: candidate of the last action. None at the root and for motions of an earlier
            plan.
        parent: previous version; None at the root.
    """

    scene: SceneGraph
    q: Configuration
    state: State
    step: PlanStep | None
    changed_frames: frozenset[str]
    key: bytes
    scene_key: bytes
    derived: DerivedState | None = None
    expansions: dict[tuple[GroundAction, int], Expansion] = field(default_factory=dict)
    number: int = 0
    candidate: Candidate | None = None
    parent: SceneVersion | None = None


class Expansion:
    """Motions and failures of one action in one version, computed on demand.

    Attributes:
        node: version before the action.
        action: the action.
        children: versions after the motions, in the order in which they were computed.
        failures: failures, in the same order.
        predicted_state: state after the action according to PDDL.
        attempts: number of motions and failures.
        is_path_dependent: whether a failure depends, or may depend, on the arm's configuration.
        is_exhausted: whether no candidate is left.
        restarts: number of restarts of the candidates.
        arrangement: number of the arranged place that replaces those of the samplers; 0 for none.
    """

    def __init__(
        self, tree: VersionTree, node: SceneVersion, action: GroundAction, arrangement: int
    ) -> None:
        self.node, self.action, self.arrangement = node, action, arrangement
        self.children: list[SceneVersion] = []
        self.failures: list[FailureRecord] = []
        self.is_path_dependent = False
        self.attempts = self.restarts = 0
        self.is_exhausted = False
        self._tree = tree
        self.predicted_state = tree.problem.apply(node.state, action)
        self._requested_placements: list[tuple[str, str]] = []
        self._results = tree.attempts(self, self._requested_placements)

    @property
    def is_impossible(self) -> bool:
        """True if every candidate failed with a proof that no state allows the action.

        Failures of a single arranged place prove nothing.
        """
        is_complete = self.is_exhausted and not self.arrangement
        return (
            is_complete
            and not self.children
            and all(record.failure.is_proved for record in self.failures)
        )

    @property
    def suffix(self) -> str:
        """The arranged place as part of a key; empty for none."""
        return f" {self.arrangement}" if self.arrangement else ""

    def restart(self) -> None:
        """Restart the candidates with new random numbers, and keep all children and failures."""
        self.restarts += 1
        self.is_exhausted = False
        self._results = self._tree.attempts(self, self._requested_placements)

    def advance(self) -> SceneVersion | MotionFailure | None:
        """Make one attempt; return the child version, the failure, or None if exhausted."""
        result = next(self._results, None)
        if result is None:
            self.is_exhausted = True
            if not self.attempts:
                self._record_failure(None, self._no_candidate_failure())
            return None
        candidate, attempt = result
        self.attempts += 1
        if isinstance(attempt, MotionFailure):
            _logger.debug("%s fails: %s", self.action, attempt)
            self._record_failure(candidate, attempt)
            return attempt
        _logger.debug("%s refined: %s", self.action, attempt.choice)
        child = self._tree.child(self, candidate, attempt)
        if isinstance(child, MotionFailure):
            self._record_failure(candidate, child)
        else:
            self.children.append(child)
        return child

    def _no_candidate_failure(self) -> MotionFailure:
        """Return the failure without any candidate: no room, if placements were requested."""
        if not self._requested_placements:
            cause = "the domain's semantics has no candidate for it"
            return MotionFailure("choosing", cause, kind=FailureKind.NO_CHOICE)
        scene, (object, support) = self.node.scene, self._requested_placements[-1]
        supports = {name: scene.parent(name) for name in movable_frames(scene) if name != object}
        neighbours = [name for name in supports if supports[name] == support]
        if not neighbours:
            # Objects in a marked area are children of the frame that the area belongs to.
            neighbours = [name for name in supports if supports[name] == scene.parent(support)]
        cause = f"no room was found for '{object}' on '{support}'"
        pairs = tuple((object, name) for name in neighbours)
        return MotionFailure("choosing", cause, pairs, kind=FailureKind.NO_ROOM)

    def _record_failure(self, candidate: Candidate | None, failure: MotionFailure) -> None:
        candidate = _author_candidate(candidate)
        frames = _find_failure_frames(candidate, failure)
        object = getattr(candidate, "object", None)
        handle = getattr(candidate, "handle", None)
        arm = getattr(candidate, "arm", None)
        object = handle if object is None else object
        if candidate is None and self._requested_placements:
            # A lack of room depends on the neighbours, not on the grasp of the object.
            object, support = self._requested_placements[-1]
            frames = frozenset([support, *(neighbour for _, neighbour in failure.pairs)])
        frames = None if frames is None else frames | self._tree.carriers
        choice = ", then ".join(_describe_choices(candidate))
        node = self.node
        record = FailureRecord(
            self.action, failure, frames, node.scene, node.q, object, arm, choice
        )
        self.failures.append(record)
        is_of_scene = (
            type(candidate) in _SCENE_CANDIDATES
            or failure.kind is FailureKind.NO_ROOM
            or failure.frames is not None
        )
        self.is_path_dependent |= failure.is_path_dependent or not is_of_scene
        self._tree.log.count_failure(
            replace(record, action=self._tree.domain.original_action(self.action))
        )


@dataclass(frozen=True, eq=False)
class RefinementTask:
    """Task whose actions are refined.

    Attributes:
        scene: scene at the start.
        q: (n_joints,) configuration at the start.
        problem: PDDL problem, whose initial state is derived from ``scene``.
        domain: domain with its semantics.
    """

    scene: SceneGraph
    q: Configuration
    problem: Problem
    domain: PlanningDomain


class VersionTree:
    """All versions reached by refining actions of one task.

    Args:
        task: the task.
        arms: motion planners by name of the arm. The first one is the default of candidates
            without an arm.
        seed: seed of all random numbers.
        log: log of failures.
        clock: accumulates planning time by stage.
        sampling: samplers of grasps and placements. Defaults to the built-in samplers.

    Attributes:
        carriers: frames on the joints of a mobile base that carries an arm. The arm's reach
            depends on their poses.
        propose: function that returns a motion of an action from a version, or None. It precedes
            the candidates of the domain.
    """

    def __init__(
        self,
        task: RefinementTask,
        *,
        arms: Mapping[str, ArmMotionPlanner],
        seed: int,
        log: FailureLog,
        clock: StageClock,
        sampling: SeededSamplers | None = None,
    ) -> None:
        first = next(iter(arms.values())).robot
        sampling = sampling or SeededSamplers(Samplers(), first, seed)
        self._sampling = replace(sampling, start=task.scene)
        self.problem, self.domain = task.problem, task.domain
        self.arms, self.log, self.clock = arms, log, clock
        key = hashlib.blake2b(f"seed {seed}".encode(), digest_size=16).digest()
        initial_state = task.problem.init
        self.root = SceneVersion(task.scene, task.q, initial_state, None, frozenset(), key, key)
        self._numbers = itertools.count(1)
        self.propose: Callable[[SceneVersion, GroundAction], ActionMotion | None] = lambda *_: None
        self.carriers = carrying_joints(task.scene, [arm.robot for arm in arms.values()])
        self._dead_ends: dict[tuple[bytes, GroundAction, int], Expansion] = {}
        self._arrangements: dict[tuple[str, str], int] = {}
        self._arrangement_numbers: dict[tuple[str, str, Placement], int] = {}
        object_types = {name: types[0] for name, types in task.problem.objects.items()}
        self._deriver = StateDeriver(task.domain, object_types)

    def try_first(
        self, propose: Callable[[SceneVersion, GroundAction], ActionMotion | None]
    ) -> None:
        """Try the motion that a function returns before the domain's candidates."""
        self.propose = propose

    def use_arms(self, arms: Mapping[str, ArmMotionPlanner]) -> None:
        """Replace the motion planners, for example by those with larger budgets."""
        self.arms = arms

    def expansion(self, node: SceneVersion, action: GroundAction) -> Expansion:
        """Return the expansion of a version by an action; it is created at the first call."""
        key = action, self._find_arrangement(action)
        expansion = node.expansions.get(key)
        if expansion is None:
            expansion = node.expansions[key] = Expansion(self, node, *key)
        return expansion

    def arrange(self, places: Mapping[tuple[str, str], Placement]) -> None:
        """Restrict the placements of objects to one each, instead of those of the samplers.

        Args:
            places: placements, by frame of the object and of the support.
        """
        self._sampling = replace(self._sampling, arranged=places)
        numbers, self._arrangements = self._arrangement_numbers, {}
        for (object, support), place in places.items():
            number = numbers.setdefault((object, support, place), len(numbers) + 1)
            self._arrangements[pddl_name(object), pddl_name(support)] = number

    def _find_arrangement(self, action: GroundAction) -> int:
        """Return the number of the place that :meth:`arrange` gave to an action; 0 for none."""
        if not self._arrangements:
            return 0
        pairs = itertools.permutations(action.arguments, 2)
        return max((self._arrangements.get(pair, 0) for pair in pairs), default=0)

    def note_dead_end(self, expansion: Expansion) -> None:
        """Store an action that fails in a scene for any configuration of the arm."""
        if not expansion.children and expansion.failures and not expansion.is_path_dependent:
            key = expansion.node.scene_key, expansion.action, expansion.arrangement
            previous = self._dead_ends.get(key)
            if previous is None or previous.attempts < expansion.attempts:
                self._dead_ends[key] = expansion

    def dead_end(self, expansion: Expansion, *, attempts: int) -> Expansion | None:
        """Return a failed expansion of the same action in the same scene, or None.

        Args:
            expansion: expansion without attempts.
            attempts: minimum number of attempts of an expansion that is not exhausted.
        """
        key = expansion.node.scene_key, expansion.action, expansion.arrangement
        dead_end = self._dead_ends.get(key)
        if dead_end is None or dead_end is expansion or expansion.attempts:
            return None
        return dead_end if dead_end.is_exhausted or dead_end.attempts >= attempts else None

    def follow(
        self,
        node: SceneVersion,
        action: GroundAction,
        candidate: Candidate,
        *,
        seed: int,
        attempts: int,
    ) -> SceneVersion | MotionFailure | None:
        """Return the version after one candidate of an action, its last failure, or None.

        The result belongs to no expansion. The log counts the attempts.
        """
        context, expansion = self.context(node, seed=seed), self.expansion(node, action)
        result: SceneVersion | MotionFailure | None = None
        motions = candidate.refine(next(iter(self.arms.values())), context, seed=seed)
        for attempt in itertools.islice(motions, attempts):
            self.log.count_attempts()
            if isinstance(attempt, MotionFailure):
                result = attempt
                continue
            result = self.child(expansion, candidate, attempt)
            if not isinstance(result, MotionFailure):
                return result
        return result

    def context(
        self,
        node: SceneVersion,
        *,
        scene: SceneGraph | None = None,
        seed: int,
        is_random: bool = False,
    ) -> ActionContext:
        """Return the context in which a domain proposes candidates in a version.

        Args:
            node: the version.
            scene: scene that replaces that of the version.
            seed: seed of the random numbers.
            is_random: whether samplers draw at random instead of best first.
        """
        rng, sampling = default_rng(seed), replace(self._sampling, is_random=is_random)
        return ActionContext(scene or node.scene, node.q, rng, sampling, self.arms)

    def attempts(
        self, expansion: Expansion, requested_placements: list[tuple[str, str]]
    ) -> Iterator[tuple[Candidate | None, ActionMotion | MotionFailure]]:
        """Yield the results of all candidates of an action, with the random numbers of a restart.

        Args:
            expansion: version and action.
            requested_placements: list that receives the requested placements (object, support).
        """
        node, action = expansion.node, expansion.action
        key = _hash_key(node.key, f"{action} {expansion.restarts}{expansion.suffix}")
        rng = default_rng(int.from_bytes(key, "little"))
        context = ActionContext(
            node.scene, node.q, rng, self._sampling, self.arms, requested_placements
        )
        if not expansion.restarts:
            motion = self.propose(node, action)
            if motion is not None:
                yield None, motion
        candidates = self.domain.candidates(action, context)
        number, is_alternating, refined_candidate = 0, False, None
        while True:
            with self.clock.phase(PlanningStage.SEMANTICS):
                candidate = next(candidates, None)
            if candidate is None:
                return
            seed = int.from_bytes(_hash_key(key, str(number))[:4], "little")
            # Errors of candidates from outside the package name their domain.
            is_built_in = type(_author_candidate(candidate)).__module__.startswith("tmkit.")
            with (
                nullcontext()
                if is_built_in
                else self.domain.attribute_errors(f"{callable_name(candidate)} of {action}")
            ):
                for attempt in candidate.refine(next(iter(self.arms.values())), context, seed=seed):
                    if not isinstance(attempt, ActionMotion | MotionFailure):
                        raise _wrong_attempt_error(action, candidate, attempt)
                    yield candidate, attempt
                    if isinstance(attempt, ActionMotion):
                        refined_candidate = candidate
            if refined_candidate is candidate and not is_alternating:
                candidates, is_alternating = _alternate_sides(candidates, candidate), True
            number += 1

    def child(
        self, expansion: Expansion, candidate: Candidate | None, motion: ActionMotion
    ) -> SceneVersion | MotionFailure:
        """Return the version after a motion, or the failure of a check or of a prediction.

        A motion of a candidate from outside the package is validated, and any motion while bodies
        overlap as at the start of the plan; see
        :mod:`~tmkit.tamp.validation.candidate_check`.

        Raises:
            SemanticsMismatchError: if the derived state differs from the predicted one.
            TaskError: if a motion from outside the package has parts of other types.
        """
        parent, predicted_state = expansion.node, expansion.predicted_state
        author_candidate = _author_candidate(candidate)
        if author_candidate is not None and (
            outside_names(author_candidate)
            or self._candidate_check.overlaps_since_start(parent.scene, parent.q)
        ):
            checked = self._validate(expansion, author_candidate, motion)
            if isinstance(checked, MotionFailure):
                return checked
            motion = checked
        fault = placement_fault(self.domain.semantics, motion.segments, motion.scene)
        if fault is not None:
            return MotionFailure("placing", fault, kind=FailureKind.NO_CHOICE)
        if facts := self.domain.fact_changes(motion.scene, predicted_state):
            scene = apply_effects(motion.scene, facts)
            changes = (*motion.changes, *facts)
            choice = f"{motion.choice}: {facts[0]}" if motion.choice else str(facts[0])
            motion = replace(motion, scene=scene, changes=changes, choice=choice)
        derived = self._check_state(expansion, motion)
        if isinstance(derived, MotionFailure):
            return derived
        text = f"{expansion.action} child {len(expansion.children)}{expansion.suffix}"
        key = scene_key = _hash_key(parent.key, text)
        if type(author_candidate) in _SCENE_CANDIDATES:
            scene_key = _hash_key(parent.scene_key, f"{expansion.action} {author_candidate!r}")
        changed_frames = frozenset(diff(parent.scene, motion.scene).changed)
        changed_frames |= self._find_operated_frames(parent, motion)
        number = next(self._numbers)
        open_predicates = self.domain.open_predicates
        if predicted_state != derived.state and open_predicates:
            missing = predicted_state.difference(derived.state).missing
            predicted_state = predicted_state.change(
                delete=[fact for fact in missing if fact.predicate in open_predicates]
            )
        return SceneVersion(
            motion.scene,
            motion.q,
            predicted_state,
            motion.step(expansion.action),
            changed_frames,
            key,
            scene_key,
            derived,
            number=number,
            candidate=candidate,
            parent=parent,
        )

    @cached_property
    def _candidate_check(self) -> CandidateCheck:
        """Check of the motions of candidates from outside the package."""
        return CandidateCheck(next(iter(self.arms.values())).primitives.rules)

    def _validate(
        self, expansion: Expansion, candidate: Candidate, motion: ActionMotion
    ) -> ActionMotion | MotionFailure:
        """Return a motion from outside the package, or the failure if it is invalid.

        Raises:
            TaskError: if a part of the motion has another type.
        """
        node, action = expansion.node, self.domain.original_action(expansion.action)
        with (
            self.clock.phase(PlanningStage.COLLISION),
            self.domain.attribute_errors(f"{callable_name(candidate)} of {action}"),
        ):
            return self._candidate_check.verify(
                motion, action, candidate, scene=node.scene, q=node.q
            )

    def _find_operated_frames(self, parent: SceneVersion, motion: ActionMotion) -> frozenset[str]:
        """Return the frames on moved joints of mechanisms and of bases that carry an arm."""
        scene = motion.scene
        frames = {scene.joint_frames[i] for i in np.flatnonzero(parent.q != motion.q).tolist()}
        arm_joints = {
            joint
            for arm in self.arms.values()
            for joint in (*arm.robot.joints, *arm.robot.gripper_joints)
        }
        return frozenset(
            frame
            for frame in frames
            if scene.joint(frame).name not in arm_joints or frame in self.carriers
        )

    def _check_state(
        self, expansion: Expansion, motion: ActionMotion
    ) -> DerivedState | MotionFailure:
        """Return the derived state, or the failure of a fact whose probability is too low.

        Raises:
            SemanticsMismatchError: if the derived state differs from the predicted one.
        """
        action = expansion.action
        with self.clock.phase(PlanningStage.SEMANTICS):
            derived = self._deriver.derive(motion.scene, motion.q, expansion.node.derived)
        difference = expansion.predicted_state.difference(derived.state)
        if not difference:
            return derived
        probabilistic = self.domain.probabilistic_predicates
        open_predicates = self.domain.open_predicates
        if open_predicates:
            missing = tuple(
                fact for fact in difference.missing if fact.predicate not in open_predicates
            )
            difference = replace(difference, missing=missing)
        differing_facts = (*difference.missing, *difference.unexpected)
        if any(fact.predicate not in probabilistic for fact in differing_facts):
            raise SemanticsMismatchError(
                f"after {action} the state derived from the scene differs from the prediction of"
                f" domain '{self.domain.name}': {difference}",
                action=str(action),
                missing=tuple(str(fact) for fact in difference.missing),
                unexpected=tuple(str(fact) for fact in difference.unexpected),
            )
        if difference.missing:
            cause = self.domain.explain_false_fact(difference.missing, motion.scene, motion.q)
            return MotionFailure("probability", cause, kind=FailureKind.UNCERTAIN)
        return derived


def _hash_key(previous_key: bytes, text: str) -> bytes:
    return hashlib.blake2b(previous_key + text.encode(), digest_size=16).digest()


_SCENE_CANDIDATES = (Pick, Place)
"""Candidates that depend on the scene alone, except for the searched path to them."""

_DEPENDS_ON_OBJECT = frozenset(
    {
        FailureKind.COLLISION,
        FailureKind.OUT_OF_REACH,
        FailureKind.NO_CONFIGURATION,
        FailureKind.JOINT_LIMIT,
        FailureKind.STRAIGHT_LINE,
        FailureKind.GRIP,
    }
)
"""Kinds of failures that depend only on the poses of the handled object and of the obstacles."""


def _wrong_attempt_error(action: GroundAction, candidate: Candidate, attempt: object) -> TaskError:
    return TaskError.at(
        str(action),
        f"candidate '{callable_name(candidate)}' gives {repr(attempt)[:60]}, which is neither an"
        " ActionMotion nor a MotionFailure",
    )


def _alternate_sides(candidates: Iterator[Candidate], previous: Candidate) -> Iterator[Candidate]:
    """Yield picks by other sides of the object than the previous one, in turn with all candidates.

    A rotation about the approach axis does not help, for example if a hand above the object has to
    place it under a roof or upside down.
    """
    axes = list(_approach_axes(previous))
    remaining_candidates = list(candidates) if axes else []
    other_side_candidates = [
        candidate
        for candidate in remaining_candidates
        for axis in _approach_axes(candidate)
        if dot(axis, axes[0]) < _SAME_SIDE_COSINE
    ]
    pairs = itertools.zip_longest(other_side_candidates, remaining_candidates)
    alternating_candidates = (
        candidate for pair in pairs for candidate in pair if candidate is not None
    )
    yield from {id(candidate): candidate for candidate in alternating_candidates}.values()
    yield from candidates


def _author_candidate(candidate: Candidate | None) -> Candidate | None:
    """Return the candidate of a domain's author, without the values of streams around it."""
    return candidate.candidate if isinstance(candidate, StreamCandidate) else candidate


def _approach_axes(candidate: Candidate) -> Iterator[NDArray[np.float64]]:
    """Yield the tool's z axis (3,) at each pick of a candidate, in the object's frame."""
    author_candidate = _author_candidate(candidate)
    for part in getattr(author_candidate, "candidates", (author_candidate,)):
        if isinstance(part, Pick):
            yield part.grasp.object_from_tool.rotate([0.0, 0.0, 1.0])


def _describe_choices(candidate: Candidate | None) -> Iterator[str]:
    """Yield descriptions of the grasps and placements of a candidate."""
    for part in getattr(candidate, "candidates", (candidate,)):
        grasp, pose, support = (getattr(part, name, None) for name in ("grasp", "pose", "support"))
        if isinstance(grasp, Grasp):
            yield f"grasp {grasp.name}"
        if isinstance(pose, Pose) and support is not None:
            position = ", ".join(f"{number:.3f}" for number in pose.translation)
            yaw = math.degrees(atan2(pose.rotation[1, 0], pose.rotation[0, 0]))
            yield f"on {support} at ({position}), yaw {yaw:.0f} degrees"


def _find_failure_frames(
    candidate: Candidate | None, failure: MotionFailure
) -> frozenset[str] | None:
    """Return the frames that a failure depends on; None if the dependencies are unknown."""
    handled_frames = [
        name
        for field in ("object", "support", "handle")
        if isinstance(name := getattr(candidate, field, None), str)
    ]
    if failure.frames is not None:
        return failure.frames.union(handled_frames)
    if failure.kind not in _DEPENDS_ON_OBJECT or not handled_frames:
        return None
    return frozenset([*handled_frames, *(frame for pair in failure.pairs for frame in pair)])
