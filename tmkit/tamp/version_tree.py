"""The version tree: every scene version that planning has reached, and how it was reached.

The :class:`Expansion` of a :class:`SceneVersion` for an action holds the motions that were found
for it there, each leading to a child node, and the failures. Expansions are lazy: each call
continues the last one. Task plans that begin with the same actions share the nodes of that
beginning, and a later iteration continues the samplers of an earlier one. Nodes that transfers lead
to (:meth:`VersionTree.follow`) have a parent and are in no expansion.

Invariants: what an expansion finds depends on its node, its action and the seed of the tree alone,
not on what else was asked of the tree, nor when. Each has random numbers of its own, seeded by the
way from the root. After each action the state derived from the new scene equals what PDDL predicts,
or :class:`SemanticsMismatchError` names the facts that differ. Facts of which a domain says that
they are a matter of probability may hold beyond that. Nodes are kept as long as the tree: a further
scene version costs about a kilobyte.
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

import numpy as np
from numpy.random import default_rng  # here, since an interrupt while it is imported is lost
from numpy.typing import NDArray

from tmkit._support.argument_errors import callable_name
from tmkit._support.elementary import atan2, dot
from tmkit.errors import SemanticsMismatchError, TaskError
from tmkit.graph import SceneGraph, diff
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Pick, Place
from tmkit.manipulation.actions.pick_place import ActionMotion, ArmMotionPlanner
from tmkit.manipulation.actions.timing_breakdown import PlanningStage, StageClock
from tmkit.manipulation.grasps.values import Grasp
from tmkit.manipulation.placements.sampling import Placement
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.pddl import GroundAction, Problem, State
from tmkit.plans.class_changes import with_class_changes
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.values import Configuration, PlanStep
from tmkit.robots import movable_frames
from tmkit.robots.robot_files import carrying_joints
from tmkit.spatial import Pose
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.state_derivation import DerivedState, StateDeriver

_logger = logging.getLogger(__name__)

_MOST_EXAMPLES = 40  # of an action and a cause
# cosine of the angle between the approaches of grasps, above which they are by the same side
_SAME_SIDE = 0.7


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """One failure, where it happened.

    Attributes:
        frames: frames that the failure speaks of: those that the action handles and those that were
            in the way; None when it is not known on what it depends.
        choice: the grasp or placement that was tried, in words; empty if none.
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
    """What failed, how often: for the explanation.

    Attributes:
        counts: by (action, cause).
        records: the first failures of each action and cause, of each choice one.
        pairs: for each, how often which pairs of frames were in each other's way.
        excesses: for each, the fewest metres by which a pose was out of reach.
        attempts: motions tried.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    records: dict[tuple[str, str], list[FailureRecord]] = field(default_factory=dict)
    pairs: dict[tuple[str, str], Counter[tuple[tuple[str, str], ...]]] = field(default_factory=dict)
    excesses: dict[tuple[str, str], float] = field(default_factory=dict)
    attempts: int = 0

    def count_attempts(self, count: int = 1) -> None:
        """Count motions that were tried."""
        self.attempts += count

    def count_failure(self, record: FailureRecord) -> None:
        """Count one failure, and keep the first of each choice."""
        key = str(record.action), str(record.failure)
        self.counts[key] += 1
        records = self.records.setdefault(key, [])
        if len(records) < _MOST_EXAMPLES and all(
            record.choice != other.choice for other in records
        ):
            records.append(record)
        self.pairs.setdefault(key, Counter())[record.failure.pairs] += 1
        self.excesses[key] = min(
            record.failure.excess, self.excesses.get(key, record.failure.excess)
        )

    def most_common(self) -> tuple[tuple[str, str, int], ...]:
        """Return (action, cause, count), most frequent first, ties in order of name."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return tuple((action, cause, count) for (action, cause), count in ordered)


@dataclass(eq=False)
class SceneVersion:
    """A scene at a configuration, reached by refined actions.

    Attributes:
        step: the action that led here with its motion; None at the root.
        changed: frames whose edge this step changed, or that are children of a joint which it
            moved.
        key: 16 bytes that say how it was reached.
        scene_key: 16 bytes that are the same where the same actions with the same grasps and places
            led here: such nodes have one scene, but for rounding, and differ in where the arm is.
        derived: the state as it was derived, from which those of the next nodes are; None at the
            root.
        number: how many nodes the tree had before.
        candidate: the candidate of the action that led here; None at the root and for motions of an
            earlier plan.
        parent: the version before; None at the root.
    """

    scene: SceneGraph
    q: Configuration
    state: State
    step: PlanStep | None
    changed: frozenset[str]
    key: bytes
    scene_key: bytes
    derived: DerivedState | None = None
    expansions: dict[tuple[GroundAction, int], Expansion] = field(default_factory=dict)
    number: int = 0
    candidate: Candidate | None = None
    parent: SceneVersion | None = None


class Expansion:
    """The motions of one action in one node: those found so far, and more when asked.

    Attributes:
        attempts: motions and failures together.
        depends_on_way: whether a failure depends on where the arm was before, or may do so.
        is_exhausted: whether the candidates have come to an end.
        restarts: how often they have begun anew.
        arrangement: number of the arranged place that replaces those of the samplers; 0 for none.
    """

    def __init__(
        self, tree: VersionTree, node: SceneVersion, action: GroundAction, arrangement: int
    ) -> None:
        self.node, self.action, self.arrangement = node, action, arrangement
        self.children: list[SceneVersion] = []
        self.failures: list[FailureRecord] = []
        self.depends_on_way = False
        self.attempts = self.restarts = 0
        self.is_exhausted = False
        self._tree = tree
        self.predicted = tree.problem.apply(node.state, action)
        self._asked: list[tuple[str, str]] = []
        self._attempts = tree.attempts(self, self._asked)

    @property
    def is_impossible(self) -> bool:
        """Whether every candidate failed for good: no state allows the action. One arranged place proves nothing."""
        is_tried = self.is_exhausted and not self.arrangement
        return (
            is_tried
            and not self.children
            and all(record.failure.is_proved for record in self.failures)
        )

    @property
    def suffix(self) -> str:
        """The arranged place as part of a key; empty for none."""
        return f" {self.arrangement}" if self.arrangement else ""

    def restart(self) -> None:
        """Begin with the candidates anew, with other random numbers; what was found stays."""
        self.restarts += 1
        self.is_exhausted = False
        self._attempts = self._tree.attempts(self, self._asked)

    def advance(self) -> SceneVersion | MotionFailure | None:
        """Make one more attempt; return the child it leads to, why it failed, or None at the end."""
        found = next(self._attempts, None)
        if found is None:
            self.is_exhausted = True
            if not self.attempts:
                self._record(None, self._nothing_to_try())
            return None
        candidate, attempt = found
        self.attempts += 1
        if isinstance(attempt, MotionFailure):
            _logger.debug("%s fails: %s", self.action, attempt)
            self._record(candidate, attempt)
            return attempt
        _logger.debug("%s refined: %s", self.action, attempt.choice)
        child = self._tree.child(self, candidate, attempt)
        if isinstance(child, MotionFailure):
            self._record(candidate, child)
        else:
            self.children.append(child)
        return child

    def _nothing_to_try(self) -> MotionFailure:
        """Return why there was no candidate: no room, where places were looked for."""
        if not self._asked:
            cause = "the domain's semantics has no candidate for it"
            return MotionFailure("choosing", cause, kind=FailureKind.NO_CHOICE)
        scene, (object, support) = self.node.scene, self._asked[-1]
        below = {other: scene.parent(other) for other in movable_frames(scene) if other != object}
        beside = [other for other in below if below[other] == support]
        if not beside:  # a marked area: what stands there is a child of what it is marked on
            beside = [other for other in below if below[other] == scene.parent(support)]
        cause = f"no room was found for '{object}' on '{support}'"
        return MotionFailure(
            "choosing", cause, tuple((object, other) for other in beside), kind=FailureKind.NO_ROOM
        )

    def _record(self, candidate: Candidate | None, failure: MotionFailure) -> None:
        frames = _frames_of(candidate, failure)
        object, handle, arm = (
            getattr(candidate, name, None) for name in ("object", "handle", "arm")
        )
        object = handle if object is None else object
        # no room: for what stands there, however the object is held
        if candidate is None and self._asked:
            object, support = self._asked[-1]
            frames = frozenset([support, *(other for _, other in failure.pairs)])
        frames = None if frames is None else frames | self._tree.carriers
        choice = ", then ".join(_choices_of(candidate))
        record = FailureRecord(
            self.action, failure, frames, self.node.scene, self.node.q, object, arm, choice
        )
        self.failures.append(record)
        is_of_scene = type(candidate) in _OF_SCENE or failure.kind is FailureKind.NO_ROOM
        self.depends_on_way |= failure.is_path_dependent or not is_of_scene
        self._tree.log.count_failure(
            replace(record, action=self._tree.domain.original_action(self.action))
        )


class VersionTree:
    """All that was refined of one task.

    Args:
        problem: the task, with the state derived from ``scene``.
        arms: compute single actions, the first unless a candidate names another; may be replaced by
            others with larger budgets.
        sampling: samplers of grasps and placements; those of this package by default.

    Attributes:
        carriers: the frames on joints of a mobile base under an arm: what the arm reaches depends
            on where they are.
        known: returns a motion of an action from a node that comes before the domain's candidates,
            or None.
    """

    def __init__(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        problem: Problem,
        domain: PlanningDomain,
        arms: Mapping[str, ArmMotionPlanner],
        seed: int,
        log: FailureLog,
        clock: StageClock,
        sampling: SeededSamplers | None = None,
    ) -> None:
        first = next(iter(arms.values())).manipulator
        self._sampling = replace(sampling or SeededSamplers(Samplers(), first, seed), start=scene)
        self.problem, self.domain, self.arms, self.log, self.clock = (
            problem,
            domain,
            arms,
            log,
            clock,
        )
        key = hashlib.blake2b(f"seed {seed}".encode(), digest_size=16).digest()
        self.root = SceneVersion(scene, q, problem.init, None, frozenset(), key, key)
        self._numbers = itertools.count(1)
        self.known: Callable[[SceneVersion, GroundAction], ActionMotion | None] = lambda *_: None
        self.carriers = carrying_joints(scene, [arm.manipulator for arm in arms.values()])
        self._dead_ends: dict[tuple[bytes, GroundAction, int], Expansion] = {}
        self._arrangements: dict[tuple[str, str], int] = {}
        self._arrangement_numbers: dict[tuple[str, str, Placement], int] = {}
        self._deriver = StateDeriver(
            domain, {name: types[0] for name, types in problem.objects.items()}
        )

    def try_first(self, known: Callable[[SceneVersion, GroundAction], ActionMotion | None]) -> None:
        """Try a motion of an action before the domain's candidates, where the function returns one."""
        self.known = known

    def use_arms(self, arms: Mapping[str, ArmMotionPlanner]) -> None:
        """Compute actions with these arms from now on, as with larger budgets."""
        self.arms = arms

    def expansion(self, node: SceneVersion, action: GroundAction) -> Expansion:
        """Return the expansion of a node by an action; it is created at the first call."""
        key = action, self._arrangement(action)
        found = node.expansions.get(key)
        if found is None:
            found = node.expansions[key] = Expansion(self, node, *key)
        return found

    def arrange(self, places: Mapping[tuple[str, str], Placement]) -> None:
        """Put objects at these places alone, from now on, instead of those of the samplers.

        Args:
            places: placements, by frame of the object and of the support.
        """
        self._sampling = replace(self._sampling, arranged=places)
        known, self._arrangements = self._arrangement_numbers, {}
        for (object, support), place in places.items():
            number = known.setdefault((object, support, place), len(known) + 1)
            self._arrangements[pddl_name(object), pddl_name(support)] = number

    def _arrangement(self, action: GroundAction) -> int:
        """Return the number of the place that :meth:`arrange` gave to an action; 0 for none."""
        if not self._arrangements:
            return 0
        pairs = itertools.permutations(action.arguments, 2)
        return max((self._arrangements.get(pair, 0) for pair in pairs), default=0)

    def note_dead_end(self, expansion: Expansion) -> None:
        """Remember that an action failed in a scene, for any configuration of the arm; it is not tried again."""
        if not expansion.children and expansion.failures and not expansion.depends_on_way:
            key = expansion.node.scene_key, expansion.action, expansion.arrangement
            known = self._dead_ends.get(key)
            if known is None or known.attempts < expansion.attempts:
                self._dead_ends[key] = expansion

    def dead_end(self, expansion: Expansion, *, attempts: int) -> Expansion | None:
        """Return a failed expansion, of so many attempts at least, of the same action in the same scene, or None."""
        known = self._dead_ends.get(
            (expansion.node.scene_key, expansion.action, expansion.arrangement)
        )
        if known is None or known is expansion or expansion.attempts:
            return None
        return known if known.is_exhausted or known.attempts >= attempts else None

    def follow(
        self,
        node: SceneVersion,
        action: GroundAction,
        candidate: Candidate,
        *,
        seed: int,
        attempts: int,
    ) -> SceneVersion | MotionFailure | None:
        """Return the node that one candidate of an action leads to, or its last failure; None for no motion.

        Nothing is kept of it but what the log counts.
        """
        context, expansion, last = self.context(node, seed=seed), self.expansion(node, action), None
        for attempt in itertools.islice(
            candidate.refine(next(iter(self.arms.values())), context, seed=seed), attempts
        ):
            self.log.count_attempts()
            last = (
                attempt
                if isinstance(attempt, MotionFailure)
                else self.child(expansion, candidate, attempt)
            )
            if not isinstance(last, MotionFailure):
                return last
        return last

    def context(
        self,
        node: SceneVersion,
        *,
        scene: SceneGraph | None = None,
        seed: int,
        is_random: bool = False,
    ) -> ActionContext:
        """Return the context in which a domain proposes candidates in a node, or in a version in its place."""
        rng, sampling = default_rng(seed), replace(self._sampling, is_random=is_random)
        return ActionContext(scene or node.scene, node.q, rng, sampling, self.arms)

    def attempts(
        self, expansion: Expansion, asked: list[tuple[str, str]]
    ) -> Iterator[tuple[Candidate | None, ActionMotion | MotionFailure]]:
        """Yield the result of each candidate of an action in a node, with random numbers of this restart.

        Args:
            asked: list to which the requested placements, (object, support), are added.
        """
        node, action = expansion.node, expansion.action
        key = _key(node.key, f"{action} {expansion.restarts}{expansion.suffix}")
        context = ActionContext(
            node.scene,
            node.q,
            default_rng(int.from_bytes(key, "little")),
            self._sampling,
            self.arms,
            asked,
        )
        if not expansion.restarts and (known := self.known(node, action)) is not None:
            yield None, known
        candidates = self.domain.candidates(action, context)
        number, is_varied, refined = 0, False, None
        while True:
            with self.clock.phase(PlanningStage.SEMANTICS):
                candidate = next(candidates, None)
            if candidate is None:
                return
            seed = int.from_bytes(_key(key, str(number))[:4], "little")
            # errors of others name their domain
            is_ours = type(candidate).__module__.startswith("tmkit.")
            with (
                nullcontext()
                if is_ours
                else self.domain.attribute_errors(f"{callable_name(candidate)} of {action}")
            ):
                for attempt in candidate.refine(next(iter(self.arms.values())), context, seed=seed):
                    if not isinstance(attempt, ActionMotion | MotionFailure):
                        what = f"candidate '{callable_name(candidate)}' gives {repr(attempt)[:60]}"
                        raise TaskError.at(
                            str(action),
                            f"{what}, which is neither an ActionMotion nor a MotionFailure",
                        )
                    yield candidate, attempt
                    refined = candidate if isinstance(attempt, ActionMotion) else refined
            if refined is candidate and not is_varied:
                candidates, is_varied = _varied(candidates, candidate), True
            number += 1

    def child(
        self, expansion: Expansion, candidate: Candidate | None, refinement: ActionMotion
    ) -> SceneVersion | MotionFailure:
        """Return the node after a motion, after checking its derived state against the predicted one.

        Where that is a matter of probability and not probable enough, the motion has failed.
        """
        parent, predicted = expansion.node, expansion.predicted
        if facts := self.domain.fact_changes(refinement.scene, predicted):
            scene, changes = (
                with_class_changes(refinement.scene, facts),
                (*refinement.changes, *facts),
            )
            choice = f"{refinement.choice}: {facts[0]}" if refinement.choice else str(facts[0])
            refinement = replace(refinement, scene=scene, changes=changes, choice=choice)
        derived = self._compare(expansion, refinement)
        if isinstance(derived, MotionFailure):
            return derived
        step = refinement.step(expansion.action)
        key = _key(
            parent.key, f"{expansion.action} child {len(expansion.children)}{expansion.suffix}"
        )
        changed = frozenset(diff(parent.scene, refinement.scene).changed) | self._operated(
            parent, refinement
        )
        is_known = type(candidate) in _OF_SCENE
        scene_key = _key(parent.scene_key, f"{expansion.action} {candidate!r}") if is_known else key
        number = next(self._numbers)
        if predicted != derived.state and self.domain.open_predicates:
            unmet = predicted.difference(derived.state).missing
            predicted = predicted.change(
                delete=[f for f in unmet if f.predicate in self.domain.open_predicates]
            )
        return SceneVersion(
            refinement.scene,
            refinement.q,
            predicted,
            step,
            changed,
            key,
            scene_key,
            derived,
            number=number,
            candidate=candidate,
            parent=parent,
        )

    def _operated(self, parent: SceneVersion, refinement: ActionMotion) -> frozenset[str]:
        """Return the frames whose joint, of neither arm nor hand, or of a base that carries an arm, has moved."""
        scene = refinement.scene
        moved = np.flatnonzero(parent.q != refinement.q)
        frames = {scene.joint_frames[i] for i in moved.tolist()}
        arms = {
            joint
            for arm in self.arms.values()
            for joint in (*arm.manipulator.joints, *arm.manipulator.gripper_joints)
        }
        return frozenset(
            frame
            for frame in frames
            if scene.joint(frame).name not in arms or frame in self.carriers
        )

    def _compare(
        self, expansion: Expansion, refinement: ActionMotion
    ) -> DerivedState | MotionFailure:
        """Return the state that is derived, or why a predicted fact is not probable enough."""
        action = expansion.action
        with self.clock.phase(PlanningStage.SEMANTICS):
            derived = self._deriver.derive(refinement.scene, refinement.q, expansion.node.derived)
        difference = expansion.predicted.difference(derived.state)
        if not difference:
            return derived
        probabilistic = self.domain.probabilistic_predicates
        open_predicates = self.domain.open_predicates
        if open_predicates:
            missing = tuple(
                fact for fact in difference.missing if fact.predicate not in open_predicates
            )
            difference = replace(difference, missing=missing)
        if any(
            fact.predicate not in probabilistic
            for fact in (*difference.missing, *difference.unexpected)
        ):
            raise SemanticsMismatchError(
                f"after {action} the scene does not say what domain '{self.domain.name}' predicts:"
                f" {difference}",
                action=str(action),
                missing=tuple(str(fact) for fact in difference.missing),
                unexpected=tuple(str(fact) for fact in difference.unexpected),
            )
        if difference.missing:
            cause = self.domain.explain_false_fact(
                difference.missing, refinement.scene, refinement.q
            )
            return MotionFailure("probability", cause, kind=FailureKind.UNCERTAIN)
        return derived


def _key(before: bytes, what: str) -> bytes:
    return hashlib.blake2b(before + what.encode(), digest_size=16).digest()


_OF_SCENE = (Pick, Place)  # candidates of which all but the way to them depends on the scene alone

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
"""Kinds of failures that depend on where the handled object and what was in the way stand, and on nothing else."""


def _varied(candidates: Iterator[Candidate], held: Candidate) -> Iterator[Candidate]:
    """Yield picks by other sides of the object than one that led to nothing, in turn with all.

    A hand above an object puts it neither under a roof nor upside down, however it is turned.
    """
    directions = list(_directions(held))
    left = list(candidates) if directions else []
    others = [one for one in left for z in _directions(one) if dot(z, directions[0]) < _SAME_SIDE]
    turns = (one for pair in itertools.zip_longest(others, left) for one in pair if one is not None)
    yield from {id(one): one for one in turns}.values()
    yield from candidates


def _directions(candidate: Candidate) -> Iterator[NDArray[np.float64]]:
    """Yield the tool's z axis (3,) in the object's frame of a pick, also of one after other actions."""
    for part in getattr(candidate, "candidates", (candidate,)):
        if isinstance(part, Pick):
            yield part.grasp.object_from_tool.rotate([0.0, 0.0, 1.0])


def _choices_of(candidate: Candidate | None) -> Iterator[str]:
    """Yield the grasps and placements of a candidate in words."""
    for part in getattr(candidate, "candidates", (candidate,)):
        grasp, pose, support = (getattr(part, name, None) for name in ("grasp", "pose", "support"))
        if isinstance(grasp, Grasp):
            yield f"grasp {grasp.name}"
        if isinstance(pose, Pose) and support is not None:
            place = ", ".join(f"{number:.3f}" for number in pose.translation)
            yaw = math.degrees(atan2(pose.rotation[1, 0], pose.rotation[0, 0]))
            yield f"on {support} at ({place}), yaw {yaw:.0f} degrees"


def _frames_of(candidate: Candidate | None, failure: MotionFailure) -> frozenset[str] | None:
    """Return the frames that a failure depends on; None when that is not known."""
    handled = [
        name
        for field in ("object", "support", "handle")
        if isinstance(name := getattr(candidate, field, None), str)
    ]
    if failure.kind not in _DEPENDS_ON_OBJECT or not handled:
        return None
    return frozenset([*handled, *(frame for pair in failure.pairs for frame in pair)])
