"""Settings of the search: its effort, the order of its queue, and how candidates are compared.

The defaults were chosen on random problems (``tests/benchmarks/families_table.py``, even numbers).
Settings change how long a plan takes to find, never whether it is valid.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from tmkit._support.options import CheckedOptions
from tmkit.errors import ConfigurationError

_MOST = 1_000_000
"""Greatest value of a setting; more attempts than a search makes in a day."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchSettings(CheckedOptions):
    """Settings of the search for a plan (option ``search`` of :class:`PlanningOptions`).

    All are positive and at most a million. Counts are whole numbers, costs are in actions. A
    *version* is a scene that the search reached, an *attempt* at a transfer a pick and a place with
    their motions.

    Attributes:
        attempts_per_action_of_plan: motions tried for each action of a task plan from the start, if
            this is more than the option ``samples_per_skeleton``. A plan of a hundred actions needs
            about four for each where objects are packed.
        attempts_of_repair: motions tried for the task plan from another version, in its first
            refinement; few, since transfers follow.
        attempts_per_action_of_repair: the same for one action.
        patience: motions tried for task plans while no movable object is in the way, before
            transfers are tried; a low ceiling needs other task plans, not other grasps.
        transfers_per_round: attempts at transfers after which the first iteration ends.
        restart_after: attempts at transfers before the first restart with other random numbers,
            since planning times have a long tail.
        restart_growth: growth of this number from turn to turn.
        all_objects_after: iterations with the useful objects alone, before they take turns with all
            objects.
        first_path_iterations: iterations of a path search of a transfer at first; a failure then
            costs less than the rest of the attempt.
        tries_per_doubling: attempts at a version after which its path searches get twice the
            iterations.
        path_doublings: greatest number of these doublings.
        detour_actions: actions that are refined again to take detours out of a plan.
        heuristic_weight: weight of the expected actions against those done; above 1 the search goes
            deep first.
        cost_per_try: actions by which an attempt lowers the priority of a version, which others
            then precede.
        refinement_attempts_per_try: motions of a refinement that count as one attempt at a
            transfer, which is slower.
        work_beside: attempts at other versions before the first task plan is refined again with
            twice the budget, in multiples of the attempts of its last refinement.
        cost_per_blocker: expected actions for a movable object in the way: pick and place.
        cost_per_regrasp: expected actions for a regrasp: pick and place, and some failures.
        cost_without_exit: expected actions where the arm finds no path out of a narrow place.
        transfers_compared: free transfers of a task plan that are compared at a version.
        actions_compared: actions at the beginning of a task plan among which these are searched.
        places_compared: places of an object that are compared at once.
        place_spacing: distance below which places count as alike [m].
        alike_places: places that are compared of those that are alike.
        grasps_per_place: grasps for which the reach is sampled at a place: first, and where these
            do not suffice.
        samples_per_transfer: places of a transfer at which the reach is sampled.
        blocker_sets: sets of blockers that are considered for a transfer.
        early_draws: draws in which a place leaves every other transfer a contact and is at least
            ``place_spacing`` from those tried.
        checked_draws: draws in which inverse kinematics succeeds among the objects of the version,
            too.
        checks_per_attempt: rejected places and grasps that count as one attempt.
        attempts_per_transfer: attempts at a transfer before the next one has its turn.
        corridors: latest paths out of narrow places, which are tried before path searches.
        crowding_limit: crowding of a place that leaves another transfer no contact.
        packings: packings of a region that are made where it has to hold several objects.
        finger_openings: openings of each finger beside the object where it cannot open fully [m];
            with less it may carry the object along.
        blocker_failures: collisions with a movable object, after which it is moved aside.

    Raises:
        ConfigurationError: if a value is outside its range; it has the attributes ``option`` and
            ``value``.
        ArgumentError: if a setting is unknown; the message has the nearest valid name.
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
            if not numbers or not all(
                _is_positive(number, is_whole=is_whole) for number in numbers
            ):
                wanted = "positive whole" if is_whole else "positive"
                listed = (
                    f"{wanted} numbers"
                    if isinstance(entry.default, tuple)
                    else f"a {wanted} number"
                )
                reason = (
                    f"search setting {entry.name} must be {listed} up to {_MOST:,}, not"
                    f" {repr(value)[:60]}"
                )
                raise ConfigurationError(reason, option=entry.name, value=value)


def _is_positive(value: object, *, is_whole: bool) -> bool:
    """Return whether a value is a number above 0 and within the range of settings."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or (is_whole and not isinstance(value, int))
    ):
        return False
    return 0 < value <= _MOST
