"""Semantics of the uncertain blocks domain, in a scene with covariances.

Where blocks stand, as far as is known, is said as in the domain ``blocks``, by the scene's means. Three words more are
a matter of probability, which the scene's covariances decide:

* a block is *located* when the hand finds it where it reaches for it: its error relative to the arm's base is within
  what the open fingers leave on either side, along both axes of the block, and within a turn;
* a block is *surely on* another when its middle is above it, and *surely at* a location when its middle is in the cell;
* a block is *matched* with another when it would be surely on it, should it be put there: with the errors of both, what
  they share taken out, and the slips that are still to come.

A *look* measures a block through a camera of the scene (:class:`tmkit.plans.CameraModel`); then it is *sharp*: known
at least as well as the camera tells. Picking and placing add slips, independent of all else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import SceneGraph, joint_gaussian
from tmkit.manipulation import ActionContext, Candidate, Change, Impossible, Look, Pick, Place
from tmkit.pddl import Fact, GroundAction, State
from tmkit.plans import CameraModel, PlannedObservation, covariance_rows
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial.elementary import atan2, cos, product, sin
from tmkit.tamp import (
    DomainSemantics,
    Infeasibility,
    Probability,
    inside_box,
    load_planning_domain,
    near_expected,
    point_inside,
    stands_on,
)
from tmkit.tamp.domains import pddl_names, shape_bounds

ASKED = 0.95
"""The probability from which on an uncertain fact holds."""

GRASP_SLIP = np.diag([1e-6, 1e-6, 0.0, 0.0, 0.0, 1e-4])
PLACE_SLIP = np.diag([1e-6, 1e-6, 0.0, 0.0, 0.0, 1e-4])
"""Covariances that handling adds, [rho, theta] in the axes of the block: level, since a block stands."""

_RESOLUTION = 0.1  # metres between neighbouring locations, as in the domain blocks
_FINGERS = 0.002  # metres on either side that the open fingers keep from a block
_EDGE = 0.01  # metres of a block that the fingers must have between them, along the axis across which they close
_TURN = 0.25  # radians that a block may be turned between the fingers
_LEVEL = np.eye(6)[[0, 1, 5]]  # x, y and the turn about z


class Semantics(DomainSemantics):
    """The meaning of the uncertain blocks domain for one arm.

    Args:
        manipulator: the arm that moves the blocks.
    """

    probabilistic_predicates = frozenset({"sharp", "located", "matched", "surely-on", "surely-at"})

    def __init__(self, manipulator: Manipulator) -> None:
        super().__init__(manipulator)
        self.blocks = load_planning_domain("blocks", manipulator=manipulator).semantics

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return blocks and locations by PDDL name, as in the domain ``blocks``."""
        return self.blocks.objects(scene)

    def useful_objects(self, scene: SceneGraph, q: NDArray[np.float64]) -> frozenset[str]:
        """Return the objects that are of use in the domain ``blocks``."""
        return self.blocks.useful_objects(scene, q)

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return the facts that hold in a scene: those of the domain ``blocks``, and those that are probable enough."""
        known = self.blocks.state(scene, objects, q)
        names = list(self._frames(scene))
        sharp = (Fact.of("sharp", name) for name in names if self._is_sharp(scene, name, q))
        located = (Fact.of("located", name) for name in names)
        matched = (Fact.of("matched", name, other) for name in names for other in names if name != other)
        standing = (fact for fact in known if fact.predicate in ("on", "ontable"))
        sure = (Fact("surely-on" if f.predicate == "on" else "surely-at", f.arguments) for f in standing)
        asked = (*located, *matched, *sure)
        return known.change(add=[*sharp, *(f for f in asked if self.probability(f, scene, q).is_at_least(ASKED))])

    def probability(self, fact: Fact, scene: SceneGraph, q: NDArray[np.float64]) -> Probability:
        """Return the probability of an uncertain fact, given that its block is there by the mean pose."""
        block = self._frames(scene)[fact.arguments[0]]
        if fact.predicate == "located":
            tolerances = self._tolerances(scene, block)
            return near_expected(
                scene, block, relative_to=self.manipulator.base, directions=_LEVEL, tolerances=tolerances, q=q, seed=0
            )
        if fact.predicate == "matched":
            return self._matched(scene, block, self._frames(scene)[fact.arguments[1]], q)
        support = str(scene.parent(block))
        if fact.predicate == "surely-on":
            return stands_on(scene, block, support, q=q)
        i, j = (int(part) for part in fact.arguments[1].rsplit("__", 2)[1:])
        middle = _RESOLUTION * np.array([i, j, 0.0])
        half = np.array([_RESOLUTION / 2, _RESOLUTION / 2, np.inf])
        return point_inside(scene, block, relative_to=support, lower=middle - half, upper=middle + half, q=q)

    def explain_unmet(self, fact: Fact, scene: SceneGraph, q: NDArray[np.float64]) -> str:
        """Return the probability that is reached, and the one asked."""
        if fact.predicate == "sharp":
            return f"{fact.arguments[0]} is not known as well as a look tells"
        return f"P({_in_words(fact)}) is {self.probability(fact, scene, q)}, and {ASKED} is asked"

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterable[Fact]:
        """Return what a goal scene means in the domain ``blocks``."""
        return self.blocks.goal_facts(scene, objects, stated)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield looks, or the picks and places of the domain ``blocks`` with their slips."""
        if action.name == "look":
            yield from self._looks(action.arguments[0], context)
            return
        if action.name == "judge":
            fact = Fact("matched", action.arguments)
            enough = self.probability(fact, context.scene, context.q).is_at_least(ASKED)
            reached = f"after looks {self.explain_unmet(fact, context.scene, context.q)}"
            yield Change(()) if enough else Impossible(reached)
            return
        for candidate in self.blocks.candidates(action, context):
            if isinstance(candidate, Pick):
                yield replace(candidate, slip=covariance_rows(GRASP_SLIP))
            elif isinstance(candidate, Place):
                yield replace(candidate, slip=covariance_rows(PLACE_SLIP))
            else:
                yield candidate

    def infeasibilities(self, goal_facts: Iterable[Fact], scene: SceneGraph) -> Iterator[Infeasibility]:
        """Yield why blocks cannot be put surely on others: the slips of the hand alone are too much."""
        frames = self._frames(scene)
        for fact in goal_facts:
            if fact.predicate not in ("on", "surely-on"):
                continue
            block, below = (frames[name] for name in fact.arguments)
            slipped = self._slipped(scene, below)
            if scene.parent(block) != below and not slipped.is_at_least(ASKED):
                said = _in_words(Fact("surely-on", fact.arguments))
                cause = f"with no errors but the slips of the hand P({said}) is {slipped}, and {ASKED} is asked"
                yield Infeasibility(cause, (fact,), (block, below))

    def _unseen(self, scene: SceneGraph, block: str, camera: str, q: NDArray[np.float64]) -> str | None:
        """Return why a camera that no arm carries does not see a block."""
        if self.manipulator.tip in scene.ancestors(camera):
            return None
        return CameraModel.of(scene, camera).fault(scene, block, q=q)

    def _is_sharp(self, scene: SceneGraph, name: str, q: NDArray[np.float64]) -> bool:
        """Whether a block is known, in the level and in its turn about z, at least as well as any camera tells."""
        block = self._frames(scene)[name]
        for camera in scene.frames_of_class("camera"):
            variances = np.diag(scene.gaussian_pose(block, relative_to=camera, q=q).covariance)
            told = np.diag(CameraModel.of(scene, camera).covariance)
            if np.all(variances[[0, 1, 5]] <= told[[0, 1, 5]] * (1.0 + 1e-9)):
                return True
        return False

    def _matched(self, scene: SceneGraph, block: str, below: str, q: NDArray[np.float64]) -> Probability:
        """Return how probably a block would stand on another, put there with the least quarter turn."""
        base = self.manipulator.base
        _, joint = joint_gaussian(scene, [(block, base), (below, base)], q=q)
        x, y, _ = scene.pose(block, relative_to=below, q=q).rotate([1.0, 0.0, 0.0])
        turn = math.pi / 2 * round(atan2(y, x) / (math.pi / 2))
        turned = np.array([[cos(turn), -sin(turn)], [sin(turn), cos(turn)]])
        relative = np.zeros((2, 12))
        relative[:, :2], relative[:, 6:8] = turned, -np.eye(2)
        slips = PLACE_SLIP if scene.parent(block) == self.manipulator.tip else PLACE_SLIP + GRASP_SLIP
        spread = product(relative, joint, relative.T) + product(turned, slips[:2, :2], turned.T)
        lower, upper = (bound[:2] for bound in shape_bounds(scene, below))
        return inside_box(np.zeros(2), spread, lower=lower, upper=upper)

    def _slipped(self, scene: SceneGraph, below: str) -> Probability:
        """Return the probability of standing on a block when all is known but the slips of the hand."""
        lower, upper = (bound[:2] for bound in shape_bounds(scene, below))
        spread = (GRASP_SLIP + PLACE_SLIP)[:2, :2]
        return inside_box(np.zeros(2), spread, lower=lower, upper=upper)

    def _looks(self, name: str, context: ActionContext) -> Iterator[Candidate]:
        """Yield looks through all cameras; when none tells enough, why not."""
        scene, q, block = context.scene, context.q, self._frames(context.scene)[name]
        fact = Fact.of("located", name)
        cameras = scene.frames_of_class("camera")
        if not cameras:
            yield Impossible(f"{self.explain_unmet(fact, scene, q)}; the scene has no camera", is_proved=True)
            return
        unseen = {camera: self._unseen(scene, block, camera, q) for camera in cameras}
        if all(unseen.values()):
            yield Impossible(f"{self.explain_unmet(fact, scene, q)}; {'; '.join(map(str, unseen.values()))}")
            return
        cameras = tuple(camera for camera in cameras if unseen[camera] is None)
        after = {camera: PlannedObservation(block, camera).expected(scene, q=q) for camera in cameras}
        reached = {camera: self.probability(fact, after[camera], q) for camera in cameras}
        enough = [camera for camera in cameras if reached[camera].is_at_least(ASKED)]
        if not enough:
            best = max(cameras, key=lambda camera: reached[camera].value)
            before = self.probability(fact, scene, q)
            looked = f"P({_in_words(fact)}) is {before}, and after a look from '{best}' {reached[best]}"
            yield Impossible(f"{looked}; {ASKED} is asked", is_proved=True)  # a camera tells as much of any place
        for camera in enough:
            yield Look(block, camera)

    def _tolerances(self, scene: SceneGraph, block: str) -> NDArray[np.float64]:
        """Return how far a block may be off along its x and y, in metres, and turned, in radians."""
        lower, upper = shape_bounds(scene, block)
        size = (upper - lower)[:2]
        room = (self.manipulator.width_open - size) / 2 - _FINGERS
        return np.append(np.where(room > 0.0, room, size / 2 - _EDGE), _TURN)

    def _frames(self, scene: SceneGraph) -> dict[str, str]:
        return pddl_names(movable_frames(scene))


def _in_words(fact: Fact) -> str:
    """Return an uncertain fact in words."""
    first, *others = fact.arguments
    if fact.predicate == "located":
        return f"the hand finds {first}"
    if fact.predicate == "matched":
        return f"{first} would be on {others[0]}"
    return f"{first} is {'on' if fact.predicate == 'surely-on' else 'at'} {others[0]}"
