"""Search settings: effort, order of the queue and comparison of candidates.

The defaults were chosen on random problems (``tests/benchmarks/families_table.py``, even numbers).
Settings change the planning time, never the validity of a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from tmkit._support.options import CheckedOptions
from tmkit.errors import ConfigurationError

_MAX_VALUE = 1_000_000
"""Largest value of a setting; no search makes as many attempts in a day."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchSettings(CheckedOptions):
    """Settings of the search for a plan (option ``search`` of :class:`PlanningOptions`).

    All values are positive and at most a million. Counts are whole numbers. Costs are numbers of
    actions. A *version* is a scene that the search reached. An *attempt* at a transfer is a pick
    and a place with their motions.

    Attributes:
        attempts_per_action_of_plan: motions tried for each action of a task plan from the start, if
            their total exceeds the option ``samples_per_skeleton``. Among packed objects, a plan of
            a hundred actions needs about four motions per action.
        attempts_of_repair: motions tried in the first refinement of a task plan from another
            version. The number is small, since transfers follow.
        attempts_per_action_of_repair: motions tried for one action in that refinement.
        patience: motions tried for task plans before transfers are tried, while no movable object
            blocks an action. A low ceiling, for example, requires other task plans, not other
            grasps.
        transfers_per_round: attempts at transfers in the first iteration.
        restart_after: attempts at transfers before the first restart with other random numbers. The
            distribution of planning times has a long tail, which restarts shorten.
        restart_growth: factor of ``restart_after`` from one restart to the next.
        all_objects_after: iterations with the relevant objects alone. Later ones alternate between
            the relevant objects and all objects.
        first_path_iterations: iterations of the first path searches of a transfer. A failed search
            then costs less than the rest of the attempt.
        tries_per_doubling: attempts at a version after which the iterations of its path searches
            double.
        path_doublings: largest number of these doublings.
        detour_actions: actions that are refined again to remove detours from a plan.
        heuristic_weight: weight of the expected remaining actions against the completed ones. Above
            1 the search prefers deep versions.
        cost_per_try: number of actions by which an attempt lowers the priority of a version.
        refinement_attempts_per_try: number of motions of a refinement that equals one attempt at a
            transfer, which takes longer.
        work_beside: attempts at other versions before the first task plan is refined again with
            twice the budget, as a multiple of the attempts of its latest refinement.
        cost_per_blocker: expected actions for a blocking movable object: pick and place.
        cost_per_regrasp: expected actions for a regrasp: pick, place, and some failures.
        cost_without_exit: expected actions if the arm finds no path out of a narrow place.
        transfers_compared: number of free transfers of a task plan that are compared at a version.
        actions_compared: number of actions at the beginning of a task plan that are searched for
            these transfers.
        places_compared: number of placements of an object that are compared together.
        place_spacing: distance below which two placements count as equivalent [m].
        alike_places: number of equivalent placements that are compared.
        grasps_per_place: numbers of grasps whose reachability is sampled at a placement: first, and
            if these do not suffice.
        samples_per_transfer: placements of a transfer at which the reachability is sampled.
        blocker_sets: sets of blockers that are considered for a transfer.
        early_draws: samples of a placement that must leave a contact to every other transfer, and
            must be at least ``place_spacing`` from earlier ones.
        checked_draws: samples of a placement at which inverse kinematics must also succeed among
            the objects of the version.
        checks_per_attempt: number of rejected placements and grasps that equals one attempt.
        attempts_per_transfer: attempts at a transfer before the next transfer is tried.
        corridors: number of latest paths out of narrow places, which are tried before path
            searches.
        crowding_limit: crowding of a placement that leaves no contact to another transfer.
        packings: number of packings that are computed for a region with several objects.
        finger_openings: openings of each finger beside the object, if it cannot open fully [m]. A
            smaller opening may drag the object.
        blocker_failures: collisions with a movable object after which it is moved aside.

    Raises:
        ConfigurationError: if a value is outside its range. The error has the attributes ``option``
            and ``value``.
        ArgumentError: if a setting is unknown. The message has the nearest valid name.
    """

    attempts_per_action_of_plan: int = 10
    attempts_of_repair: int = 12
    attempts_per_action_of_repair: int = 6
    patience: int = 384
    transfers_per_round: int = 64
    restart_after: int = 100
    restart_growth: float = 1.2
    all_objects_after: int = 4
    first_path_iterations: int = 600
    tries_per_doubling: int = 6
    path_doublings: int = 4
    detour_actions: int = 80
    heuristic_weight: float = 3.0
    cost_per_try: float = 1.2
    refinement_attempts_per_try: float = 3.0
    work_beside: float = 3.0
    cost_per_blocker: float = 2.0
    cost_per_regrasp: float = 2.5
    cost_without_exit: float = 4.0
    transfers_compared: int = 4
    actions_compared: int = 60
    places_compared: int = 16
    place_spacing: float = 0.03
    alike_places: int = 4
    grasps_per_place: tuple[int, int] = (4, 64)
    samples_per_transfer: int = 6
    blocker_sets: int = 3
    early_draws: int = 2
    checked_draws: int = 3
    checks_per_attempt: int = 48
    attempts_per_transfer: int = 3
    corridors: int = 3
    crowding_limit: float = 4.0
    packings: int = 24
    finger_openings: tuple[float, ...] = (0.006, 0.003, 0.002)
    blocker_failures: int = 2

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            numbers = value if isinstance(value, tuple) else (value,)
            is_whole = isinstance(entry.default, int) or entry.name == "grasps_per_place"
            if numbers and all(_is_in_range(number, is_whole=is_whole) for number in numbers):
                continue
            kind = "positive whole" if is_whole else "positive"
            expected = f"a {kind} number"
            if isinstance(entry.default, tuple):
                expected = f"{kind} numbers"
            limit = f"up to {_MAX_VALUE:,}"
            reason = (
                f"search setting {entry.name} must be {expected} {limit}, not {repr(value)[:60]}"
            )
            raise ConfigurationError(reason, option=entry.name, value=value)


def _is_in_range(value: object, *, is_whole: bool) -> bool:
    """Return whether a value is a positive number, or whole number, up to the largest value."""
    number_types = (int,) if is_whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, number_types):
        return False
    return 0 < value <= _MAX_VALUE
