"""Semantics of the uncertain blocks domain, in a scene with covariances.

The facts of the domain ``blocks`` follow from the means of the scene. Further facts are
probabilistic and follow from its covariances:

* a block is *located* if the hand can grasp it at its estimated pose. Along both axes of the block,
  its error relative to the base of the arm must be within the clearance of the open fingers. Its
  turn must be within a bound;
* a block is *surely on* another if its centre is above it, and *surely at* a location if its centre
  is in the cell;
* a block is *matched* with another if it would be surely on it after a place. Errors that both
  share are removed, and the slips of the coming actions are added.

A *look* measures a block through a camera of the scene (:class:`tmkit.plans.CameraModel`). The
block is then *sharp*: its covariance is at most that of a measurement. Picking and placing add
independent slips.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import SceneGraph, joint_gaussian
from tmkit.manipulation import ActionContext, ApplyEffects, Candidate, DeadEnd, Look, Pick, Place
from tmkit.pddl import Fact, GroundAction
from tmkit.plans import CameraModel, PlannedObservation, covariance_rows
from tmkit.robots import movable_frames
from tmkit.spatial.elementary import atan2, cos, product, sin
from tmkit.tamp import (
    Infeasibility,
    ObjectToMove,
    Probability,
    inside_box,
    parts,
    point_inside,
    pose_probability,
    stands_on,
)
from tmkit.tamp.domains import pddl_names, shape_bounds

MIN_PROBABILITY = 0.95
"""Smallest probability at which an uncertain fact holds."""

GRASP_SLIP = np.diag([1e-6, 1e-6, 0.0, 0.0, 0.0, 1e-4])
"""(6, 6) covariance that a grasp adds, ordered [rho, theta], in the axes of the block.

It is horizontal because blocks stand upright.
"""

PLACE_SLIP = np.diag([1e-6, 1e-6, 0.0, 0.0, 0.0, 1e-4])
"""(6, 6) covariance that a place adds, ordered [rho, theta], in the axes of the block."""

_FINGER_CLEARANCE = 0.002
"""Clearance between each open finger and a block [m]."""

_MIN_OVERLAP = 0.01
"""Smallest overlap of fingers and block, along the axis across which the fingers close [m]."""

_MAX_TURN = 0.25
"""Largest turn of a block between the fingers [rad]."""

_LEVEL_DIRECTIONS = np.eye(6)[[0, 1, 5]]
"""(3, 6) directions x, y and the turn about z."""


class Uncertain(parts.Stacking, parts.Cells):
    """Blocks that are handled if their poses are known well enough, and measured by looks."""

    is_incremental = False
    probabilistic_predicates = frozenset({"sharp", "located", "matched", "surely-on", "surely-at"})
    pddl: ClassVar[str] = """
    (:requirements :adl)
    (:predicates
      (sharp ?x - item)
      (located ?x - item)
      (matched ?x - item ?y - item)
      (surely-on ?x - item ?y - item)
      (surely-at ?x - item ?r - region))
    (:action look
      :parameters (?x - item)
      :precondition (and (clear ?x) (handempty))
      :effect (and (sharp ?x) (located ?x)))
    (:action judge
      :parameters (?x - item ?y - item)
      :precondition (and (sharp ?x) (sharp ?y))
      :effect (matched ?x ?y))
    (:extend (pick unstack)
      :precondition (located ?x)
      :effect (and (not (located ?x)) (not (sharp ?x))))
    (:extend (pick) :effect (not (surely-at ?x ?r)))
    (:extend (unstack) :effect (not (surely-on ?x ?y)))
    (:extend (stack) :precondition (matched ?x ?y) :effect (surely-on ?x ?y))
    (:extend (place) :effect (surely-at ?x ?r))
    (:extend (place stack)
      :effect (forall (?z - item) (and (not (matched ?x ?z)) (not (matched ?z ?x)))))
    """

    def facts_sharp(self, scene: SceneGraph, q: NDArray[np.float64]) -> Iterator[tuple[str, ...]]:
        """Yield the blocks whose covariance is at most that of a look."""
        yield from ((block,) for block in movable_frames(scene) if self._is_sharp(scene, block, q))

    def facts_located(self, scene: SceneGraph, q: NDArray[np.float64]) -> Iterator[tuple[str, ...]]:
        """Yield the blocks that the hand can grasp at their estimated poses."""
        yield from self._probable(
            "located", scene, q, ((block,) for block in movable_frames(scene))
        )

    def facts_matched(self, scene: SceneGraph, q: NDArray[np.float64]) -> Iterator[tuple[str, ...]]:
        """Yield pairs of a block and another on which it would stand."""
        yield from self._probable(
            "matched", scene, q, itertools.permutations(movable_frames(scene), 2)
        )

    def facts_surely_on(
        self, scene: SceneGraph, q: NDArray[np.float64]
    ) -> Iterator[tuple[str, ...]]:
        """Yield the blocks with the blocks on which they stand."""
        yield from self._probable("surely-on", scene, q, self._arguments("stacked", scene))

    def facts_surely_at(
        self, scene: SceneGraph, q: NDArray[np.float64]
    ) -> Iterator[tuple[str, ...]]:
        """Yield the blocks with the locations at which they stand."""
        yield from self._probable("surely-at", scene, q, self._arguments("on", scene))

    def _arguments(self, predicate: str, scene: SceneGraph) -> Iterator[tuple[str, ...]]:
        """Yield the arguments of the place facts of a predicate, as frames."""
        frames = self.frames(scene)
        facts = itertools.chain.from_iterable(
            self.place_facts(scene, block) for block in movable_frames(scene)
        )
        yield from (
            tuple(frames[name] for name in f.arguments)
            for f in facts
            if self.fragment_predicate(f) == predicate
        )

    def _probable(
        self,
        predicate: str,
        scene: SceneGraph,
        q: NDArray[np.float64],
        argument_lists: Iterable[tuple[str, ...]],
    ) -> Iterator[tuple[str, ...]]:
        """Yield the arguments of which the facts are probable enough."""
        for arguments in argument_lists:
            if self.probability(self.fact(predicate, *arguments), scene, q).is_at_least(
                MIN_PROBABILITY
            ):
                yield arguments

    def probability(self, fact: Fact, scene: SceneGraph, q: NDArray[np.float64]) -> Probability:
        """Return the probability of an uncertain fact.

        The mean poses must already satisfy the corresponding certain fact.

        Args:
            fact: the fact.
            scene: scene with covariances.
            q: (n_joints,) configuration.
        """
        block = _blocks(scene)[fact.arguments[0]]
        if fact.predicate == "located":
            tolerances = self._tolerances(scene, block)
            return pose_probability(
                scene,
                block,
                relative_to=self.robot.base,
                directions=_LEVEL_DIRECTIONS,
                tolerances=tolerances,
                q=q,
                seed=0,
            )
        if fact.predicate == "matched":
            return self._match_probability(scene, block, _blocks(scene)[fact.arguments[1]], q)
        support = str(scene.parent(block))
        if fact.predicate == "surely-on":
            return stands_on(scene, block, support, q=q)
        i, j = (int(part) for part in fact.arguments[1].rsplit("__", 2)[1:])
        centre = self.resolution * np.array([i, j, 0.0])
        half = np.array([self.resolution / 2, self.resolution / 2, np.inf])
        return point_inside(
            scene, block, relative_to=support, lower=centre - half, upper=centre + half, q=q
        )

    def explain_false_fact(self, fact: Fact, scene: SceneGraph, q: NDArray[np.float64]) -> str:
        """Return the probability that is reached, and the required one."""
        if fact.predicate == "sharp":
            return f"the covariance of {fact.arguments[0]} exceeds that of a look"
        probability = self.probability(fact, scene, q)
        return f"P({_describe(fact)}) is {probability}, and {MIN_PROBABILITY} is required"

    def do_look(self, context: ActionContext, block: str) -> Iterator[Candidate]:
        """Yield looks through the cameras whose measurements suffice."""
        yield from self._look_candidates(block, context)

    def do_judge(self, context: ActionContext, block: str, below: str) -> Iterator[Candidate]:
        """Yield a step without motion, if a block would probably stand on another after looks."""
        fact = self.fact("matched", block, below)
        probability = self.probability(fact, context.scene, context.q)
        if probability.is_at_least(MIN_PROBABILITY):
            yield ApplyEffects(())
        else:
            reason = self.explain_false_fact(fact, context.scene, context.q)
            yield DeadEnd(f"after looks {reason}")

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates of an action; picks and places include their slips."""
        for candidate in super().candidates(action, context):
            if isinstance(candidate, Pick):
                yield replace(candidate, grasp_covariance=covariance_rows(GRASP_SLIP))
            elif isinstance(candidate, Place):
                yield replace(candidate, grasp_covariance=covariance_rows(PLACE_SLIP))
            else:
                yield candidate

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[ObjectToMove]:
        """Yield nothing: the poses of blocks are too uncertain for proofs about contact."""
        del goal_facts, scene
        yield from ()

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[Infeasibility]:
        """Yield proofs that blocks cannot stand on others with enough probability.

        The slips of the hand alone are too large.
        """
        facts, frames = tuple(goal_facts), _blocks(scene)
        for fact in facts:
            if fact.predicate not in ("on", "surely-on"):
                continue
            block, below = (frames[name] for name in fact.arguments)
            probability = self._bound_by_slips(scene, below)
            if scene.parent(block) != below and not probability.is_at_least(MIN_PROBABILITY):
                event = _describe(Fact("surely-on", fact.arguments))
                cause = (
                    f"with no errors but the slips of the hand P({event}) is {probability}, and"
                    f" {MIN_PROBABILITY} is required"
                )
                yield Infeasibility(cause, (fact,), (block, below))
        yield from super().infeasibilities(facts, scene)

    def _view_fault(
        self, scene: SceneGraph, block: str, camera: str, q: NDArray[np.float64]
    ) -> str | None:
        """Return the reason why a static camera cannot observe a block, or None."""
        if self.robot.tip in scene.ancestors(camera):
            return None
        return CameraModel.of(scene, camera).fault(scene, block, q=q)

    def _is_sharp(self, scene: SceneGraph, block: str, q: NDArray[np.float64]) -> bool:
        """Return whether the covariance of a block is at most that of a camera, in x, y and yaw."""
        for camera in scene.frames_of_class("camera"):
            variances = np.diag(scene.gaussian_pose(block, relative_to=camera, q=q).covariance)
            measured = np.diag(CameraModel.of(scene, camera).covariance)
            if np.all(variances[[0, 1, 5]] <= measured[[0, 1, 5]] * (1.0 + 1e-9)):
                return True
        return False

    def _match_probability(
        self, scene: SceneGraph, block: str, below: str, q: NDArray[np.float64]
    ) -> Probability:
        """Return the probability that a block would stand on another after a place.

        The place uses the nearest quarter turn.
        """
        base = self.robot.base
        _, joint = joint_gaussian(scene, [(block, base), (below, base)], q=q)
        x, y, _ = scene.pose(block, relative_to=below, q=q).rotate([1.0, 0.0, 0.0])
        turn = math.pi / 2 * round(atan2(y, x) / (math.pi / 2))
        rotation = np.array([[cos(turn), -sin(turn)], [sin(turn), cos(turn)]])
        relative = np.zeros((2, 12))
        relative[:, :2], relative[:, 6:8] = rotation, -np.eye(2)
        slips = PLACE_SLIP if scene.parent(block) == self.robot.tip else PLACE_SLIP + GRASP_SLIP
        spread = product(relative, joint, relative.T) + product(rotation, slips[:2, :2], rotation.T)
        lower, upper = (bound[:2] for bound in shape_bounds(scene, below))
        return inside_box(np.zeros(2), spread, lower=lower, upper=upper)

    def _bound_by_slips(self, scene: SceneGraph, below: str) -> Probability:
        """Return the probability that a block stands on another with slips of the hand only."""
        lower, upper = (bound[:2] for bound in shape_bounds(scene, below))
        spread = (GRASP_SLIP + PLACE_SLIP)[:2, :2]
        return inside_box(np.zeros(2), spread, lower=lower, upper=upper)

    def _look_candidates(self, block: str, context: ActionContext) -> Iterator[Candidate]:
        """Yield looks through all cameras, or the reason why no camera suffices."""
        scene, q, fact = context.scene, context.q, self.fact("located", block)
        cameras = scene.frames_of_class("camera")
        if not cameras:
            yield DeadEnd(
                f"{self.explain_false_fact(fact, scene, q)}; the scene has no camera",
                is_proved=True,
            )
            return
        faults = {camera: self._view_fault(scene, block, camera, q) for camera in cameras}
        if all(faults.values()):
            reason = self.explain_false_fact(fact, scene, q)
            yield DeadEnd(f"{reason}; {'; '.join(map(str, faults.values()))}")
            return
        cameras = tuple(camera for camera in cameras if faults[camera] is None)
        scenes = {camera: PlannedObservation(block, camera).apply(scene, q=q) for camera in cameras}
        probabilities = {camera: self.probability(fact, scenes[camera], q) for camera in cameras}
        sufficient = [
            camera for camera in cameras if probabilities[camera].is_at_least(MIN_PROBABILITY)
        ]
        if not sufficient:
            best = max(cameras, key=lambda camera: probabilities[camera].value)
            before, after = self.probability(fact, scene, q), probabilities[best]
            comparison = f"P({_describe(fact)}) is {before}, and after a look from '{best}' {after}"
            # The covariance of a measurement does not depend on the place of the block.
            yield DeadEnd(f"{comparison}; {MIN_PROBABILITY} is required", is_proved=True)
        for camera in sufficient:
            yield Look(block, camera)

    def _tolerances(self, scene: SceneGraph, block: str) -> NDArray[np.float64]:
        """Return (3,) largest errors of a block along its x and y [m] and in its turn [rad]."""
        lower, upper = shape_bounds(scene, block)
        size = (upper - lower)[:2]
        room = (self.robot.width_open - size) / 2 - _FINGER_CLEARANCE
        return np.append(np.where(room > 0.0, room, size / 2 - _MIN_OVERLAP), _MAX_TURN)


def _blocks(scene: SceneGraph) -> dict[str, str]:
    return pddl_names(movable_frames(scene))


def _describe(fact: Fact) -> str:
    """Return the event of an uncertain fact, for messages."""
    first, *further = fact.arguments
    if fact.predicate == "located":
        return f"the hand finds {first}"
    if fact.predicate == "matched":
        return f"{first} would be on {further[0]}"
    return f"{first} is {'on' if fact.predicate == 'surely-on' else 'at'} {further[0]}"


WORDS = {
    "item": "block",
    "region": "location",
    "on": "ontable",
    "stacked": "on",
    "free": "clear",
    "pick": "pick-up",
    "place": "put-down",
}

Semantics = parts.compose_domain("blocks-uncertain", [Uncertain], words=WORDS).semantics
