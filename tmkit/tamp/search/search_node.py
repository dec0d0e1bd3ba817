"""Nodes of the search: a version of the scene and the remaining task plan.

Invariants: versions are immutable; attempts and failures stored in a node change no version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import Candidate, Pick, Place
from tmkit.manipulation.grasps.values import Grasp
from tmkit.motion import CollisionWorld
from tmkit.plans.failures import MotionFailure
from tmkit.tamp.version_tree import SceneVersion
from tmkit.task_planning.sas import Values


@dataclass(frozen=True)
class Transfer:
    """A pick and a place of one object by one arm.

    Its representation is part of seeds: a renamed attribute changes plans.

    Attributes:
        pick: operator of the pick.
        place: operator of the place.
        name: frame of the object.
        arm: name of the arm; None for the first.
        is_elsewhere: whether the place lies outside all goal poses and goal regions of the object.
        options: indices of the grasp options that the domain's candidates allow; None for all.
    """

    pick: int
    place: int
    name: str
    arm: str | None
    is_elsewhere: bool = False
    options: tuple[int, ...] | None = field(default=None, repr=False)

    def select(self, is_free: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return (n,) flags of grasp options, false for those that are not allowed."""
        if self.options is None:
            return is_free
        selection = np.zeros_like(is_free)
        indices = list(self.options)
        selection[indices] = is_free[indices]
        return selection


@dataclass(frozen=True, eq=False)
class PickCandidates:
    """Picks of one object by one arm that a domain allows in a version.

    Attributes:
        object: frame of the object.
        arm: name of the arm; None for the first.
        by_grasp: picks by grasp, at least one.
        is_complete: whether they have all grasps of the samplers, with equal options. Then the
            grasps may be varied, such as by the fingertips alone.
    """

    object: str
    arm: str | None
    by_grasp: Mapping[Grasp, Pick]
    is_complete: bool

    def find(self, grasp: Grasp) -> Pick | None:
        """Return the pick that allows a grasp, or None."""
        default = next(iter(self.by_grasp.values())) if self.is_complete else None
        return self.by_grasp.get(grasp, default)


@dataclass(frozen=True, eq=False)
class Analysis:
    """Feasibility of a transfer in a version for the hand without its arm.

    Attributes:
        places: compared placements.
        direct: collision-free pairs (grasp option, index of a placement), best first.
        blockers: smallest sets of blocking movable objects, as bits, if ``direct`` is empty.
    """

    places: tuple[Place, ...]
    direct: tuple[tuple[int, int], ...]
    blockers: tuple[int, ...]

    @property
    def needs_regrasp(self) -> bool:
        """True if no grasp is free at both ends, even without movable objects."""
        return not self.direct and not self.blockers


@dataclass(frozen=True, eq=False)
class Move:
    """A refined action.

    Attributes:
        operator: operator of the action.
        candidate: grasp, placement or other choice; None if unknown. A move without one cannot be
            repeated.
        version: version after the action.
    """

    operator: int
    candidate: Candidate | None
    version: SceneVersion


@dataclass(frozen=True, eq=False)
class Attempt:
    """Successful attempt at a node.

    Attributes:
        moves: moves in order of execution.
        arm: name of the arm that acts last; None for the first.
        is_confined: whether the hand ends under a roof or beside the object, where the arm may be
            enclosed.
    """

    moves: tuple[Move, ...]
    arm: str | None = None
    is_confined: bool = False


@dataclass(eq=False)
class SearchNode:
    """A version in the queue.

    Attributes:
        version: the version.
        values: its state in finite-domain variables.
        moves: moves from the root.
        plan: operators of the remaining task plan.
        plan_number: version of the constraints under which the plan was computed.
        penalty: expected actions beyond the plan, for blockers and regrasps.
        refinements: number of failed refinements of the plan.
        refinement_cost: weighted number of attempts in these refinements, for the priority.
        tries: number of attempted transfers.
        transfers: possible first transfers of the plan, with their analyses; None until they are
            compared.
        other_operators: possible first operators of the plan that are not transfers.
        attempts: iterator that makes one attempt at each step.
        pick_results: results of picks, by operator, grasp option and length of the lines.
        picks: picks that the domain allows, by operator; None unless it is a transfer.
        blocker_counts: number of failures by blocking movable object.
        failures: number of failures by action and cause.
        worlds: version without one object and its collision world, by that object.
        reachability: whether the arm reaches a grasp option at a pose among the objects of the
            version.
        queued_kinds: kinds of its entries in the queue.
    """

    version: SceneVersion
    values: Values
    moves: tuple[Move, ...] = ()
    plan: tuple[int, ...] = ()
    plan_number: int = -1
    penalty: float = 0.0
    refinements: int = 0
    refinement_cost: float = 0.0
    tries: int = 0
    transfers: list[tuple[Transfer, Analysis]] | None = None
    other_operators: list[int] = field(default_factory=list)
    attempts: Iterator[Attempt | None] = field(default_factory=lambda: iter(()))
    pick_results: dict[tuple[int, int, bool], Move | MotionFailure | None] = field(
        default_factory=dict
    )
    picks: dict[int, PickCandidates | None] = field(default_factory=dict)
    blocker_counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    worlds: dict[str, tuple[SceneGraph, CollisionWorld]] = field(default_factory=dict)
    reachability: dict[object, bool] = field(default_factory=dict)
    queued_kinds: set[str] = field(default_factory=set)

    @property
    def estimate(self) -> float:
        """Expected number of remaining actions."""
        return len(self.plan) + self.penalty

    @property
    def first_transfers(self) -> list[tuple[Transfer, Analysis]]:
        """Possible first transfers of the plan; empty until they are compared."""
        return self.transfers or []

    def set_plan(self, plan: tuple[int, ...], number: int) -> bool:
        """Replace the remaining plan; return whether it differs.

        Args:
            plan: operators of the plan.
            number: version of the constraints under which it was computed.
        """
        self.plan_number = number
        if plan == self.plan:
            return False
        self.plan, self.transfers, self.penalty = plan, None, 0.0
        return True

    def set_first_actions(
        self, transfers: list[tuple[Transfer, Analysis]], other_operators: list[int], penalty: float
    ) -> None:
        """Store the possible first transfers and other operators of the plan."""
        self.transfers, self.other_operators, self.penalty = transfers, other_operators, penalty

    def set_penalty(self, penalty: float) -> None:
        """Set the expected actions beyond the plan until its transfers are compared."""
        self.penalty = penalty

    def set_attempts(self, attempts: Iterator[Attempt | None]) -> None:
        """Replace the iterator of attempts."""
        self.attempts = attempts

    def count_refinement(self, cost: float) -> None:
        """Count a failed refinement of the plan."""
        self.refinements += 1
        self.refinement_cost += cost

    def count_try(self) -> None:
        """Count an attempted transfer."""
        self.tries += 1

    def enter_queue(self, kind: str) -> None:
        """Record that an entry of a kind is in the queue."""
        self.queued_kinds.add(kind)

    def leave_queue(self, kind: str) -> None:
        """Record that the entry of a kind left the queue."""
        self.queued_kinds.discard(kind)

    def store_picks(self, operator: int, picks: PickCandidates | None) -> None:
        """Store the picks that the domain allows."""
        self.picks[operator] = picks

    def store_world(self, name: str, scene: SceneGraph, world: CollisionWorld) -> None:
        """Store the version without an object and its collision world."""
        self.worlds[name] = scene, world

    def store_reachability(self, reachability: Mapping[object, bool]) -> None:
        """Store whether the arm reaches grasps among the objects of the version."""
        self.reachability.update(reachability)

    def count_blockers(self, names: Iterable[str], count: int = 1) -> None:
        """Count failures for blocking objects."""
        self.blocker_counts.update(dict.fromkeys(names, count))
