"""Semantics of the uncertain blocks domain, in a scene with covariances.

Where blocks stand, as far as is known, is said as in the domain ``blocks``, by the scene's means.
Three words more are a matter of probability, which the scene's covariances decide:

* a block is *located* when the hand finds it where it reaches for it: its error relative to the
  arm's base is within what the open fingers leave on either side, along both axes of the block, and
  within a turn;
* a block is *surely on* another when its middle is above it, and *surely at* a location when its
  middle is in the cell;
* a block is *matched* with another when it would be surely on it, should it be put there: with the
  errors of both, what they share taken out, and the slips that are still to come.

A *look* measures a block through a camera of the scene (:class:`tmkit.plans.CameraModel`); then it
is *sharp*: known at least as well as the camera tells. Picking and placing add slips, independent
of all else.
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

ASKED = 0.95
"""The probability from which on an uncertain fact holds."""

GRASP_SLIP = np.diag([1e-6, 1e-6, 0.0, 0.0, 0.0, 1e-4])
PLACE_SLIP = np.diag([1e-6, 1e-6, 0.0, 0.0, 0.0, 1e-4])
"""Covariances that handling adds, [rho, theta] in the axes of the block: level, since a block stands."""

_FINGERS = 0.002  # metres on either side that the open fingers keep from a block
# metres of a block that the fingers must have between them, along the axis across which they close
_EDGE = 0.01
_TURN = 0.25  # radians that a block may be turned between the fingers
_LEVEL = np.eye(6)[[0, 1, 5]]  # x, y and the turn about z


class Uncertain(parts.Stacking, parts.Cells):
    """Blocks are handled as far as they are known well enough, and looks make them known better."""

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
    (:extend (pick unstack) :precondition (located ?x) :effect (and (not (located ?x)) (not (sharp ?x))))
    (:extend (pick) :effect (not (surely-at ?x ?r)))
    (:extend (unstack) :effect (not (surely-on ?x ?y)))
    (:extend (stack) :precondition (matched ?x ?y) :effect (surely-on ?x ?y))
    (:extend (place) :effect (surely-at ?x ?r))
    (:extend (place stack) :effect (forall (?z - item) (and (not (matched ?x ?z)) (not (matched ?z ?x)))))
    """

    def facts_sharp(self, scene: SceneGraph, q: NDArray[np.float64]) -> Iterator[tuple[str, ...]]:
        """Yield the blocks that are known at least as well as a look tells."""
        yield from ((block,) for block in movable_frames(scene) if self._is_sharp(scene, block, q))

    def facts_located(self, scene: SceneGraph, q: NDArray[np.float64]) -> Iterator[tuple[str, ...]]:
        """Yield the blocks that the hand finds where it reaches for them."""
        yield from self._probable(
            "located", scene, q, ((block,) for block in movable_frames(scene))
        )

    def facts_matched(self, scene: SceneGraph, q: NDArray[np.float64]) -> Iterator[tuple[str, ...]]:
        """Yield the blocks with those on which they would stand."""
        yield from self._probable(
            "matched", scene, q, itertools.permutations(movable_frames(scene), 2)
        )

    def facts_surely_on(
        self, scene: SceneGraph, q: NDArray[np.float64]
    ) -> Iterator[tuple[str, ...]]:
        """Yield the blocks with those on which they stand."""
        yield from self._probable("surely-on", scene, q, self._standing("stacked", scene))

    def facts_surely_at(
        self, scene: SceneGraph, q: NDArray[np.float64]
    ) -> Iterator[tuple[str, ...]]:
        """Yield the blocks with the locations at which they stand."""
        yield from self._probable("surely-at", scene, q, self._standing("on", scene))

    def _standing(self, predicate: str, scene: SceneGraph) -> Iterator[tuple[str, ...]]:
        """Yield the arguments of the facts of a predicate about where blocks are."""
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
        asked: Iterable[tuple[str, ...]],
    ) -> Iterator[tuple[str, ...]]:
        for arguments in asked:
            if self.probability(self.fact(predicate, *arguments), scene, q).is_at_least(ASKED):
                yield arguments

    def probability(self, fact: Fact, scene: SceneGraph, q: NDArray[np.float64]) -> Probability:
        """Return the probability of an uncertain fact, given that its block is there by the mean pose."""
        block = _blocks(scene)[fact.arguments[0]]
        if fact.predicate == "located":
            tolerances = self._tolerances(scene, block)
            return pose_probability(
                scene,
                block,
                relative_to=self.manipulator.base,
                directions=_LEVEL,
                tolerances=tolerances,
                q=q,
                seed=0,
            )
        if fact.predicate == "matched":
            return self._matched(scene, block, _blocks(scene)[fact.arguments[1]], q)
        support = str(scene.parent(block))
        if fact.predicate == "surely-on":
            return stands_on(scene, block, support, q=q)
        i, j = (int(part) for part in fact.arguments[1].rsplit("__", 2)[1:])
        middle = self.resolution * np.array([i, j, 0.0])
        half = np.array([self.resolution / 2, self.resolution / 2, np.inf])
        return point_inside(
            scene, block, relative_to=support, lower=middle - half, upper=middle + half, q=q
        )

    def explain_false_fact(self, fact: Fact, scene: SceneGraph, q: NDArray[np.float64]) -> str:
        """Return the probability that is reached, and the one asked."""
        if fact.predicate == "sharp":
            return f"{fact.arguments[0]} is not known as well as a look tells"
        return f"P({_in_words(fact)}) is {self.probability(fact, scene, q)}, and {ASKED} is asked"

    def do_look(self, context: ActionContext, block: str) -> Iterator[Candidate]:
        """Yield looks through the cameras that tell enough."""
        yield from self._looks(block, context)

    def do_judge(self, context: ActionContext, block: str, below: str) -> Iterator[Candidate]:
        """Yield a step without motion, if looks at both blocks are enough to put one on the other."""
        fact = self.fact("matched", block, below)
        enough = self.probability(fact, context.scene, context.q).is_at_least(ASKED)
        yield (
            ApplyEffects(())
            if enough
            else DeadEnd(f"after looks {self.explain_false_fact(fact, context.scene, context.q)}")
        )

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to carry out an action, picks and places with their slips."""
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
        """Yield nothing: where blocks are is not known well enough for proofs about touching them."""
        del goal_facts, scene
        yield from ()

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[Infeasibility]:
        """Yield why blocks cannot be put surely on others: the slips of the hand alone are too much."""
        facts, frames = tuple(goal_facts), _blocks(scene)
        for fact in facts:
            if fact.predicate not in ("on", "surely-on"):
                continue
            block, below = (frames[name] for name in fact.arguments)
            slipped = self._slipped(scene, below)
            if scene.parent(block) != below and not slipped.is_at_least(ASKED):
                said = _in_words(Fact("surely-on", fact.arguments))
                cause = (
                    f"with no errors but the slips of the hand P({said}) is {slipped}, and {ASKED}"
                    " is asked"
                )
                yield Infeasibility(cause, (fact,), (block, below))
        yield from super().infeasibilities(facts, scene)

    def _unseen(
        self, scene: SceneGraph, block: str, camera: str, q: NDArray[np.float64]
    ) -> str | None:
        """Return why a camera that no arm carries does not see a block."""
        if self.manipulator.tip in scene.ancestors(camera):
            return None
        return CameraModel.of(scene, camera).fault(scene, block, q=q)

    def _is_sharp(self, scene: SceneGraph, block: str, q: NDArray[np.float64]) -> bool:
        """Whether a block is known, in the level and in its turn about z, at least as well as any camera tells."""
        for camera in scene.frames_of_class("camera"):
            variances = np.diag(scene.gaussian_pose(block, relative_to=camera, q=q).covariance)
            told = np.diag(CameraModel.of(scene, camera).covariance)
            if np.all(variances[[0, 1, 5]] <= told[[0, 1, 5]] * (1.0 + 1e-9)):
                return True
        return False

    def _matched(
        self, scene: SceneGraph, block: str, below: str, q: NDArray[np.float64]
    ) -> Probability:
        """Return how probably a block would stand on another, put there with the least quarter turn."""
        base = self.manipulator.base
        _, joint = joint_gaussian(scene, [(block, base), (below, base)], q=q)
        x, y, _ = scene.pose(block, relative_to=below, q=q).rotate([1.0, 0.0, 0.0])
        turn = math.pi / 2 * round(atan2(y, x) / (math.pi / 2))
        turned = np.array([[cos(turn), -sin(turn)], [sin(turn), cos(turn)]])
        relative = np.zeros((2, 12))
        relative[:, :2], relative[:, 6:8] = turned, -np.eye(2)
        slips = (
            PLACE_SLIP if scene.parent(block) == self.manipulator.tip else PLACE_SLIP + GRASP_SLIP
        )
        spread = product(relative, joint, relative.T) + product(turned, slips[:2, :2], turned.T)
        lower, upper = (bound[:2] for bound in shape_bounds(scene, below))
        return inside_box(np.zeros(2), spread, lower=lower, upper=upper)

    def _slipped(self, scene: SceneGraph, below: str) -> Probability:
        """Return the probability of standing on a block when all is known but the slips of the hand."""
        lower, upper = (bound[:2] for bound in shape_bounds(scene, below))
        spread = (GRASP_SLIP + PLACE_SLIP)[:2, :2]
        return inside_box(np.zeros(2), spread, lower=lower, upper=upper)

    def _looks(self, block: str, context: ActionContext) -> Iterator[Candidate]:
        """Yield looks through all cameras; when none tells enough, why not."""
        scene, q, fact = context.scene, context.q, self.fact("located", block)
        cameras = scene.frames_of_class("camera")
        if not cameras:
            yield DeadEnd(
                f"{self.explain_false_fact(fact, scene, q)}; the scene has no camera",
                is_proved=True,
            )
            return
        unseen = {camera: self._unseen(scene, block, camera, q) for camera in cameras}
        if all(unseen.values()):
            yield DeadEnd(
                f"{self.explain_false_fact(fact, scene, q)}; {'; '.join(map(str, unseen.values()))}"
            )
            return
        cameras = tuple(camera for camera in cameras if unseen[camera] is None)
        after = {
            camera: PlannedObservation(block, camera).expected(scene, q=q) for camera in cameras
        }
        reached = {camera: self.probability(fact, after[camera], q) for camera in cameras}
        enough = [camera for camera in cameras if reached[camera].is_at_least(ASKED)]
        if not enough:
            best = max(cameras, key=lambda camera: reached[camera].value)
            before = self.probability(fact, scene, q)
            looked = (
                f"P({_in_words(fact)}) is {before}, and after a look from '{best}' {reached[best]}"
            )
            # a camera tells as much of any place
            yield DeadEnd(f"{looked}; {ASKED} is asked", is_proved=True)
        for camera in enough:
            yield Look(block, camera)

    def _tolerances(self, scene: SceneGraph, block: str) -> NDArray[np.float64]:
        """Return how far a block may be off along its x and y, in metres, and turned, in radians."""
        lower, upper = shape_bounds(scene, block)
        size = (upper - lower)[:2]
        room = (self.manipulator.width_open - size) / 2 - _FINGERS
        return np.append(np.where(room > 0.0, room, size / 2 - _EDGE), _TURN)


def _blocks(scene: SceneGraph) -> dict[str, str]:
    return pddl_names(movable_frames(scene))


def _in_words(fact: Fact) -> str:
    """Return an uncertain fact in words."""
    first, *others = fact.arguments
    if fact.predicate == "located":
        return f"the hand finds {first}"
    if fact.predicate == "matched":
        return f"{first} would be on {others[0]}"
    return f"{first} is {'on' if fact.predicate == 'surely-on' else 'at'} {others[0]}"


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
