"""Nodes of the search: a version of the scene with the task plan that is left from there.

Invariants: what a node keeps of attempts and failures changes no version; versions are immutable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import Candidate, Place
from tmkit.motion import CollisionWorld
from tmkit.plans.failures import MotionFailure
from tmkit.tamp.version_tree import SceneVersion
from tmkit.task_planning.guide import Values


@dataclass(frozen=True)
class Transfer:
    """A pick and a place of one object by one arm.

    Attributes:
        pick: operator of the pick.
        place: operator of the place.
        name: frame of the object.
        arm: name of the arm; None for the first.
        is_elsewhere: whether the object goes where no goal of a pose or region wants it.
    """

    pick: int
    place: int
    name: str
    arm: str | None
    is_elsewhere: bool = False


@dataclass(frozen=True, eq=False)
class Analysis:
    """How a transfer may be done where things are, by the hand alone.

    Attributes:
        places: the places that were compared.
        direct: pairs of an option and an index of a place that nothing is in the way of, in good
            order.
        blockers: smallest sets of movable objects in the way, as bits, where ``direct`` is empty.
    """

    places: tuple[Place, ...]
    direct: tuple[tuple[int, int], ...]
    blockers: tuple[int, ...]

    @property
    def needs_regrasp(self) -> bool:
        """Whether no grasp is free at both ends, even without movable objects."""
        return not self.direct and not self.blockers


@dataclass(frozen=True, eq=False)
class Move:
    """An action that was carried out.

    Attributes:
        operator: its operator.
        candidate: the grasp, placement or other choice; None where it is unknown, so that it cannot
            be repeated.
        version: the version after it.
    """

    operator: int
    candidate: Candidate | None
    version: SceneVersion


@dataclass(frozen=True, eq=False)
class Attempt:
    """Moves that an attempt at a node led to.

    Attributes:
        moves: the moves, in order.
        arm: name of the arm that acts last; None for the first.
        is_confined: whether the hand ends under a roof or beside the object, where the arm may find
            no way out.
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
        moves: the moves from the root.
        plan: operators of the task plan that is left.
        plan_number: version of the constraints under which the plan was found.
        penalty: actions beyond the plan that are expected: to move blockers aside, to regrasp.
        refinements: number of times that the plan was refined.
        refinement_cost: attempts of these refinements, as far as they count against the node.
        tries: number of attempts at transfers.
        transfers: transfers of the plan that may come first, with their analyses; None before they
            are compared.
        others: operators of the plan that may come first and are no transfers.
        attempts: makes an attempt at each advance.
        picked: results of picks, by operator, grasp option and kind of motion.
        in_the_way: number of failures for each movable object that was in the way.
        failures: number of failures for each action and cause.
        worlds: the version without one object, with its collision world, by the object.
        reached: whether the arm reaches a grasp option at a pose among the objects of the version.
        queued: the kinds of its entries in the queue.
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
    others: list[int] = field(default_factory=list)
    attempts: Iterator[Attempt | None] = field(default_factory=lambda: iter(()))
    picked: dict[tuple[int, int, bool], Move | MotionFailure | None] = field(default_factory=dict)
    in_the_way: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    worlds: dict[str, tuple[SceneGraph, CollisionWorld]] = field(default_factory=dict)
    reached: dict[object, bool] = field(default_factory=dict)
    queued: set[str] = field(default_factory=set)

    @property
    def estimate(self) -> float:
        """The number of actions that are expected from here."""
        return len(self.plan) + self.penalty

    @property
    def wanted(self) -> list[tuple[Transfer, Analysis]]:
        """The transfers of the plan that may come first; none before they are compared."""
        return self.transfers or []

    def follow(self, plan: tuple[int, ...], number: int) -> bool:
        """Take another plan, found under the constraints of a version; return whether it differs."""
        self.plan_number = number
        if plan == self.plan:
            return False
        self.plan, self.transfers, self.penalty = plan, None, 0.0
        return True

    def compare(
        self, transfers: list[tuple[Transfer, Analysis]], others: list[int], penalty: float
    ) -> None:
        """Keep the transfers and other actions of the plan that may come first."""
        self.transfers, self.others, self.penalty = transfers, others, penalty

    def expect(self, penalty: float) -> None:
        """Expect actions beyond the plan until its transfers are compared."""
        self.penalty = penalty

    def begin(self, attempts: Iterator[Attempt | None]) -> None:
        """Make attempts of this kind from now on."""
        self.attempts = attempts

    def count_refinement(self, cost: float) -> None:
        """Count a refinement of the plan that failed."""
        self.refinements += 1
        self.refinement_cost += cost

    def count_try(self) -> None:
        """Count an attempt at a transfer."""
        self.tries += 1

    def enter_queue(self, kind: str) -> None:
        """Record that an entry of a kind is in the queue."""
        self.queued.add(kind)

    def leave_queue(self, kind: str) -> None:
        """Record that the entry of a kind left the queue."""
        self.queued.discard(kind)

    def keep_world(self, name: str, scene: SceneGraph, world: CollisionWorld) -> None:
        """Keep the version without an object and its collision world."""
        self.worlds[name] = scene, world

    def note_reach(self, reached: Mapping[object, bool]) -> None:
        """Record whether the arm reaches grasps among the objects of the version."""
        self.reached.update(reached)

    def note_blockers(self, names: Iterable[str], count: int = 1) -> None:
        """Count objects that were in the way."""
        self.in_the_way.update(dict.fromkeys(names, count))
