"""Plans as bounded changes of joint values, for controllers and environments that take them.

Environments of reinforcement learning, and jogging interfaces such as MoveIt Servo, change joint
values by at most a limit at a time. The hand opens or closes in between::

    path:     q0 ----------- q1 --- q2 ------------------- q3   grasp
    actions:  q0 ----- x --- q1 ------ x ------ x -------- q3   event
                 within the limits   q2 is on the line from q1 to q3

Each action has its target, so it can be commanded from the observed joint values. Then errors do
not add up. The actions of a plan are those of its segments in order, without times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.argument_errors import check_argument
from tmkit._support.elementary import norm
from tmkit.errors import ArgumentError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.plans.values import Configuration, Plan, Segment, SegmentKind
from tmkit.spatial.plain import read_only

_LIMIT_MARGIN = 1e-9
"""Fraction by which actions remain below their limits, since targets are rounded."""

_GAP_PRECISION = 1e-6
"""Largest difference from the gap at which a lowering ends [m]."""


@dataclass(frozen=True, eq=False)
class _JointGroup:
    """Joints that are commanded together.

    Attributes:
        joint_names: n joints in the order of the command.
        limits: (n,) largest change per action [rad or m].
        is_periodic: (n,) whether values that differ by whole turns are the same position.
    """

    joint_names: tuple[str, ...]
    limits: NDArray[np.float64]
    is_periodic: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BoundedAction:
    """A bounded change of joint values, or an event of a hand.

    Attributes:
        step: number of the step in the plan, from 1.
        index: number of the segment in the step, from 1.
        segment: segment of the plan. Its kind is ``grasp`` or ``release`` for an event. Its
            ``gripper`` has the finger joint values after it, also where an empty hand opens before
            a grasp.
        targets: (n,) joint values after the action, for each group that moves. Empty for an event
            [rad or m].
        deltas: (n,) change from the target of the previous action, by group [rad or m].
    """

    step: int
    index: int
    segment: Segment
    targets: Mapping[str, NDArray[np.float64]]
    deltas: Mapping[str, NDArray[np.float64]]
    _groups: Mapping[str, _JointGroup]

    @property
    def is_event(self) -> bool:
        """True if the hand of :attr:`segment` closes or opens, and no joint of a group moves."""
        return not self.targets

    def delta_from(self, observed: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
        """Return the change from the observed joint values to the target, within the limits.

        If the target is further away than the limits, all joints are scaled by the same factor.
        Continuous joints, and revolute ones with a range of a full turn, take the short way.

        Args:
            observed: (n,) joint values of each group that moves [rad or m].

        Returns:
            (n,) change for each group that moves. It is zero at the target.

        Raises:
            UnknownNameError: if the values of a group that moves are missing.
            ArgumentError: if they are not n finite numbers.
        """
        deltas, factor = {}, 1.0
        for name, target in self.targets.items():
            if name not in observed:
                raise UnknownNameError.of("observed group", name, [*observed])
            group = self._groups[name]
            delta = target - _joint_values(observed[name], group.joint_names, f"observed[{name!r}]")
            turns = np.where(group.is_periodic, np.round(delta / math.tau), 0.0)
            deltas[name] = delta - math.tau * turns
            factor = max(factor, float(np.max(np.abs(deltas[name]) / group.limits)))
        return {name: delta / factor for name, delta in deltas.items()}

    def __repr__(self) -> str:
        moves = ", ".join(self.targets) or "hand"
        return f"BoundedAction(step {self.step}, {self.segment.kind.value}, {moves})"


def bounded_actions(
    plan: Plan,
    *,
    groups: Mapping[str, Sequence[str]],
    limits: Mapping[str, ArrayLike],
    tolerance: float = 1e-4,
    place_gap: float = 0.0,
) -> tuple[BoundedAction, ...]:
    """Return a plan as bounded changes of joint values, with the events of its hands.

    Rows of a path that are near a line are merged, so an action is as large as the limits and the
    tolerance permit. Arms move one after the other, and operated handles are not commanded.

    Args:
        plan: plan, which is not validated; see :func:`tmkit.tamp.validate_plan`.
        groups: joints of each part of an action, such as ``{"arm": [...], "base": [...]}``. Each
            joint of an arm that moves is in one group.
        limits: largest change per action for each group, one number or (n,) [rad or m].
        tolerance: largest deviation of a joint from its path [rad or m]. The tool deviates by about
            the tolerance times the reach of the arm; planned paths keep 1 mm from obstacles.
        place_gap: height above its support at which an object is released, for receivers to which
            contact is a collision [m]. A lowering ends at this distance of the tool from its end,
            or at its start if it is shorter. The retreat continues from there, without going back.

    Raises:
        UnknownNameError: if a joint of a group is not in the scene, or a limit is of no group.
        ArgumentError: if a joint that moves is in no group or a joint is in two groups. Also if a
            group has no limit, or a limit or the tolerance is not positive and finite, or the gap
            is negative.
    """
    check_argument(plan, Plan, "plan", function="bounded_actions")
    if not (tolerance > 0.0 and math.isfinite(tolerance)):
        raise ArgumentError(f"tolerance is positive and finite, not {tolerance}")
    if not (place_gap >= 0.0 and math.isfinite(place_gap)):
        raise ArgumentError(f"place_gap is a length of at least 0 m, not {place_gap}")
    joint_groups = _joint_groups(plan.scene, groups, limits)
    return tuple(_actions(plan, joint_groups, tolerance, place_gap))


def _actions(
    plan: Plan, groups: Mapping[str, _JointGroup], tolerance: float, place_gap: float
) -> Iterator[BoundedAction]:
    """Yield the actions of a plan; see :func:`bounded_actions`."""
    index_of = {name: index for index, name in enumerate(plan.scene.joint_names)}
    all_limits = np.full(len(index_of), math.inf)
    for group in groups.values():
        all_limits[[index_of[name] for name in group.joint_names]] = group.limits
    scene, q = plan.scene, np.asarray(plan.q)
    commanded = q
    is_above_contact = False  # the last motion ended at the gap
    for number, step in enumerate(plan.steps, start=1):
        for index, segment in enumerate(step.segments, start=1):
            joints = _joints_to_command(plan, segment, groups, number)
            rows = _rows(segment, joints, commanded, index_of)
            following = step.segments[index] if index < len(step.segments) else None
            tool = plan.arm(segment.arm).tool
            if place_gap > 0.0 and _is_lowering(segment, following):
                rows = _shorten(rows, scene, tool, place_gap)
                is_above_contact = True
            elif is_above_contact and len(segment.path) > 1:
                rows = _skip_start(rows, q, scene, tool, place_gap)
                is_above_contact = False
            moving = {
                name: [index_of[joint] for joint in group.joint_names]
                for name, group in groups.items()
                if not set(group.joint_names).isdisjoint(joints)
            }
            columns = [index_of[name] for name in joints]
            for target in _split(rows, columns, all_limits[columns], tolerance):
                change = target - commanded
                targets = {name: read_only(target[places]) for name, places in moving.items()}
                deltas = {name: read_only(change[places]) for name, places in moving.items()}
                yield BoundedAction(number, index, segment, targets, deltas, groups)
                commanded = target
            if segment.kind in (SegmentKind.GRASP, SegmentKind.RELEASE):
                yield BoundedAction(number, index, segment, {}, {}, groups)
            scene, q = segment.end(scene, q)
            # Joints of no group, such as fingers and handles, follow the plan.
            commanded = np.where(np.isfinite(all_limits), commanded, q)
        scene = step.scene


def _joint_groups(
    scene: SceneGraph, groups: Mapping[str, Sequence[str]], limits: Mapping[str, ArrayLike]
) -> dict[str, _JointGroup]:
    """Return the groups with their limits; see :func:`bounded_actions`."""
    for name in limits:
        if name not in groups:
            raise UnknownNameError.of("group", name, [*groups])
    group_of: dict[str, str] = {}
    result = {}
    for name, joint_names in groups.items():
        if isinstance(joint_names, str):
            raise ArgumentError(f"groups[{name!r}] is a list of joints, not {joint_names!r}")
        for joint in joint_names:
            if joint not in scene.joint_names:
                raise UnknownNameError.of("joint", joint, scene.joint_names)
            if joint in group_of:
                raise ArgumentError(f"joint '{joint}' is in {group_of[joint]!r} and in {name!r}")
            group_of[joint] = name
        if name not in limits:
            raise ArgumentError(f"limits: group {name!r} has no largest change per action")
        periodic = np.array([_is_periodic(scene, joint) for joint in joint_names], dtype=np.bool_)
        result[name] = _JointGroup(
            tuple(joint_names), _limit_values(limits[name], tuple(joint_names), name), periodic
        )
    return result


def _limit_values(
    values: ArrayLike, joint_names: tuple[str, ...], group: str
) -> NDArray[np.float64]:
    """Return the (n,) limits of a group."""
    if isinstance(values, (int, float)):
        values = np.full(len(joint_names), float(values))
    limits = _joint_values(values, joint_names, f"limits[{group!r}]")
    for joint, limit in zip(joint_names, limits, strict=True):
        if limit <= 0.0:
            raise ArgumentError(f"limits: the largest change of '{joint}' is positive, not {limit}")
    return limits


def _joint_values(
    values: ArrayLike, joint_names: tuple[str, ...], argument: str
) -> NDArray[np.float64]:
    """Return (n,) finite values of joints.

    Raises:
        ArgumentError: if there are more or fewer, or one is not a finite number.
    """
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{argument} has numbers for {[*joint_names]}, not {values!r}"
        ) from None
    if numbers.shape != (len(joint_names),):
        raise ArgumentError(
            f"{argument} has {len(joint_names)} numbers, for {[*joint_names]}, not an array of"
            f" shape {numbers.shape}"
        )
    for joint, number in zip(joint_names, numbers, strict=True):
        if not math.isfinite(number):
            raise ArgumentError(f"{argument}: the value of '{joint}' is finite, not {number}")
    return numbers


def _is_periodic(scene: SceneGraph, joint: str) -> bool:
    """Return whether a joint turns by at least a full turn."""
    if scene.joint(scene.joint_frame(joint)).type == "prismatic":
        return False
    lower, upper = scene.joint_limits[scene.joint_names.index(joint)]
    return bool(upper - lower >= math.tau)


def _joints_to_command(
    plan: Plan, segment: Segment, groups: Mapping[str, _JointGroup], step: int
) -> list[str]:
    """Return the joints of a segment that are commanded, all but an operated handle.

    Raises:
        ArgumentError: if a joint that moves is in no group.
    """
    in_groups = {joint for group in groups.values() for joint in group.joint_names}
    is_moving = np.ptp(segment.path, axis=0) > 0.0
    arm_joints = set(plan.arm(segment.arm).joints)
    commanded = []
    for joint, moves in zip(segment.joint_names, is_moving, strict=True):
        if joint in in_groups:
            commanded.append(joint)
        elif moves and joint in arm_joints:
            raise ArgumentError(
                f"groups: joint '{joint}' of arm '{segment.arm}' moves in step {step} and is in no"
                f" group of {[*groups]}"
            )
    return commanded


def _rows(
    segment: Segment, joints: Sequence[str], commanded: Configuration, index_of: Mapping[str, int]
) -> NDArray[np.float64]:
    """Return configurations (k, n_joints) of a path that begins at the commanded one."""
    rows = np.repeat(commanded[None], len(segment.path), axis=0)
    for joint in joints:
        column = segment.joint_names.index(joint)
        rows[1:, index_of[joint]] = segment.path[1:, column]
    return rows


def _is_lowering(segment: Segment, following: Segment | None) -> bool:
    """Return whether a straight line ends where an object is released on its support."""
    return (
        segment.kind in (SegmentKind.LOWER, SegmentKind.LINE)
        and following is not None
        and following.kind is SegmentKind.RELEASE
        and following.reparenting is not None
    )


def _shorten(
    rows: NDArray[np.float64], scene: SceneGraph, tool: str, gap: float
) -> NDArray[np.float64]:
    """Return the rows of a path without the part within a distance of its end.

    Args:
        rows: (k, n_joints) configurations.
        scene: scene during the path.
        tool: frame whose distance counts.
        gap: distance from the end [m].
    """
    end = scene.pose(tool, q=rows[-1]).translation

    def distance(q: NDArray[np.float64]) -> float:
        return norm(scene.pose(tool, q=q).translation - end)

    last = len(rows) - 1
    while last > 0 and distance(rows[last]) < gap:
        last -= 1
    if distance(rows[last]) <= gap or last == len(rows) - 1:
        return rows[: last + 1]
    outer, inner = rows[last], rows[last + 1]
    while True:
        middle = 0.5 * (outer + inner)
        error = distance(middle) - gap
        if abs(error) <= _GAP_PRECISION:
            return np.vstack([rows[: last + 1], middle])
        outer, inner = (middle, inner) if error > 0.0 else (outer, middle)


def _skip_start(
    rows: NDArray[np.float64], contact: Configuration, scene: SceneGraph, tool: str, gap: float
) -> NDArray[np.float64]:
    """Return the rows of a path that begins above a contact, without those nearer to the contact.

    Args:
        rows: (k, n_joints) configurations, of which the first is at the gap.
        contact: (n_joints,) configuration at the contact.
        scene: scene during the path.
        tool: frame whose distance counts.
        gap: distance from the contact [m].
    """
    origin = scene.pose(tool, q=contact).translation
    for number in range(1, len(rows) - 1):
        if norm(scene.pose(tool, q=rows[number]).translation - origin) >= gap:
            return np.vstack([rows[:1], rows[number:]])
    return rows[[0, -1]]


def _split(
    rows: NDArray[np.float64], columns: Sequence[int], limits: NDArray[np.float64], tolerance: float
) -> Iterator[NDArray[np.float64]]:
    """Yield targets (n_joints,) of actions along a path, after its first row.

    Args:
        rows: (k, n_joints) configurations.
        columns: m joints that move.
        limits: (m,) largest change of each [rad or m].
        tolerance: largest deviation of a joint from the path [rad or m].
    """
    corners = _corners(rows[:, columns], tolerance)
    for first, last in pairwise(corners):
        change = rows[last] - rows[first]
        largest = np.max(np.abs(change[columns]) / (limits * (1.0 - _LIMIT_MARGIN)), initial=0.0)
        count = math.ceil(largest)
        for number in range(1, count):
            yield rows[first] + change * (number / count)
        if count > 0:
            yield rows[last]


def _corners(rows: NDArray[np.float64], tolerance: float) -> list[int]:
    """Return the rows that remain of a path by the algorithm of Douglas and Peucker (1973).

    Each other row has a point on the line between its neighbours from which no joint differs by
    more than the tolerance. The cost is O(k log k) for typical paths and O(k^2) at worst.
    """
    corners = {0, len(rows) - 1}
    spans = [(0, len(rows) - 1)]
    while spans:
        first, last = spans.pop()
        if last - first < 2:
            continue
        inner, change = rows[first + 1 : last] - rows[first], rows[last] - rows[first]
        squared = float(np.sum(change * change))
        along = np.sum(inner * change, axis=1) / squared if squared > 0.0 else np.zeros(len(inner))
        nearest = np.clip(along, 0.0, 1.0)[:, None] * change
        deviations = np.max(np.abs(inner - nearest), axis=1, initial=0.0)
        furthest = int(np.argmax(deviations))
        if deviations[furthest] > tolerance:
            middle = first + 1 + furthest
            corners.add(middle)
            spans += [(first, middle), (middle, last)]
    return sorted(corners)
