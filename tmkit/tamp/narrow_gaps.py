"""A likely cause of failures: the gaps beside an object are narrower than the fingers that would hold it.

At each grasp of the object a finger meets a neighbour that is nearer to the object than the finger is thick there, and
none of these neighbours has a free grasp before another of them is moved. Both are measured of the hand alone, without
an arm (:mod:`tmkit.tamp.transfers.masks`), at the grasps of the sampler, whole or by the fingertips: no proof.

Invariants: functions of the scene, the grasps and the log; no clock but to stop.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import ArmMotion
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.manipulation.samplers import Sampling
from tmkit.motion.regions.polygons import ConvexPolygon
from tmkit.motion.regions.solids import outline, reach, solids_of
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, pair_distance
from tmkit.spatial import Pose
from tmkit.tamp.diagnosis.geometric_causes import failing_objects, listed_bodies
from tmkit.tamp.refinement_tree import FailureLog
from tmkit.tamp.transfers.masks import HandTables

_CLEARANCE = 0.002  # metres that a finger keeps on both sides together, and more
_ALIKE = 1e-4  # metres by which gaps may differ and count as equal
_END = 0.001  # metres from the end of a finger at which it is measured
_FROM_SIDE = Pose([0.0, 0.0, 0.0], [-0.5, -0.5, -0.5, 0.5])  # turns the axes y, z, x of a tool to x, y, z


def find_narrow_gap(
    scene: SceneGraph, q: Configuration, *, log: FailureLog, arms: Mapping[str, ArmMotion], sampling: Sampling,
    wanted: Collection[str], is_over: Callable[[], bool],
) -> tuple[str, ...]:  # fmt: skip
    """Return the cause for the first object of which it holds, of those that failed; of neighbours it is the same.

    Args:
        scene: the scene at the start.
        q: (n_joints,) configuration at the start.
        log: what failed.
        arms: the arms by name, the first first.
        sampling: the grasp sampler.
        wanted: objects that the goal names, which come first.
        is_over: tells whether the time is up.
    """
    first = next(iter(arms))
    for object, robot in failing_objects(log, scene, wanted):
        arm = arms[robot or first].manipulator
        cause = None if is_over() else narrow_gap(scene, q, object, manipulator=arm, sampling=sampling)
        if cause is not None:
            return (cause,)
    return ()


def narrow_gap(
    scene: SceneGraph, q: Configuration, object: str, *, manipulator: Manipulator, sampling: Sampling
) -> str | None:
    """Return that a finger is thicker than the gaps beside an object; None where that does not block all grasps.

    The neighbours count as in the way for good when none of them has a free grasp before another is moved.

    Args:
        scene: the scene.
        q: (n_joints,) configuration.
        object: frame of the object.
        manipulator: the arm.
        sampling: the grasp sampler.
    """
    tables = HandTables(scene, q, manipulator=manipulator, sampling=sampling)
    if not tables.is_usable or manipulator.gripper_kind == "suction":
        return None
    poses = {name: scene.pose(name, relative_to=scene.root(name), q=q) for name in tables.objects}
    blocked: dict[str, list[set[str]]] = {}  # by object, the objects in the way of each grasp
    queue = deque([object])
    while queue:
        name = queue.popleft()
        free = np.flatnonzero(tables.at_rest(name, poses[name]).is_free).tolist()
        bits = tables.blockers(name, poses[name], poses)
        blocked[name] = [set(tables.names(bits[option])) for option in free]
        if name == object and not all(blocked[name]):
            return None
        others = {other for way in blocked[name] for other in way} if all(blocked[name]) else set()
        queue.extend(other for other in sorted(others) if other not in blocked and other not in queue)
    stuck = set(blocked)
    while left := {name for name in stuck if not all(way & stuck for way in blocked[name])}:
        stuck -= left
    if object not in stuck or not blocked[object]:
        return None
    gaps: dict[str, float] = {}
    needed, hand = math.inf, _Fingers(scene, manipulator)
    options = tables.options(object)
    free = np.flatnonzero(tables.at_rest(object, poses[object]).is_free).tolist()
    for option, way in zip(free, blocked[object], strict=True):
        apart = {other: pair_distance(scene, q, frame_a=object, frame_b=other) for other in sorted(way & stuck)}
        nearest = [other for other, gap in apart.items() if gap < min(apart.values()) + _ALIKE]
        thickness = hand.thickness(options[option].grasp, object, nearest, q)
        if thickness + _CLEARANCE <= apart[nearest[0]]:
            return None
        gaps.update({other: apart[other] for other in nearest})
        needed = min(needed, thickness)
    if max(gaps.values()) >= needed + _CLEARANCE:
        return None
    low, high = (f"{1000.0 * bound:.1f}" for bound in (min(gaps.values()), max(gaps.values())))
    are, plural = ("are", "s") if len(gaps) > 1 else ("is", "")
    deep = f"{_floored(hand.thickness_at_end)} mm at {1000.0 * _END:g} mm from its end"
    return (
        f"all {len(free)} grasps of '{object}' need a gap of at least {_floored(needed)} mm beside it, the thickness "
        f"of a finger there ({deep}), and {1000.0 * _CLEARANCE:g} mm of clearance; the gap{plural} to "
        f"{listed_bodies(sorted(gaps))} {are} {low if low == high else f'{low} to {high}'} mm, and none of "
        f"these {len(stuck)} objects has a free grasp before another of them is moved"
    )


def _floored(metres: float) -> str:
    """Return millimetres with one digit, rounded down."""
    return f"{math.floor(1e4 * metres) / 10:.1f}"


class _Fingers:
    """The contact links of a hand, to measure how thick they are beside an object.

    Args:
        scene: the scene.
        manipulator: the arm.
    """

    def __init__(self, scene: SceneGraph, manipulator: Manipulator) -> None:
        self._scene, self._manipulator = scene, manipulator
        self._outlines: dict[float, list[ConvexPolygon]] = {}

    def thickness(self, grasp: Grasp, object: str, others: Sequence[str], q: Configuration) -> float:
        """Return how thick the thinnest finger is, along the closing direction, where it is beside all of some objects.

        Args:
            grasp: the grasp of the object.
            object: the object.
            others: other objects.
            q: (n_joints,) configuration.
        """
        tool_from_object = grasp.object_from_tool.inverse()
        top = -math.inf  # along the tool's z axis, which points into the object
        for name in (object, *others):
            at = tool_from_object @ self._scene.pose(name, relative_to=object, q=q)
            down = at.inverse().rotate([0.0, 0.0, -1.0])
            top = max(top, float(at.translation[2]) - reach(solids_of(self._scene, name), down))
        return self._below(self._at(grasp.width, q), top)

    @property
    def thickness_at_end(self) -> float:
        """Metres: how thick the thinnest finger is, a millimetre from its end, as it was measured last."""
        outlines = next(reversed(self._outlines.values()))
        return self._below(outlines, min(float(outline.vertices[:, 1].max()) for outline in outlines) - _END)

    def _below(self, outlines: Sequence[ConvexPolygon], top: float) -> float:
        """Return the least extent along y of what outlines have beyond a coordinate along z; 0 if they have nothing."""
        beside = ConvexPolygon.rectangle([-1.0, top], [1.0, top + 1.0])
        parts = [outline.clipped(beside) for outline in outlines]
        return min((float(np.ptp(part.vertices[:, 0])) for part in parts if part is not None), default=0.0)

    def _at(self, width: float, q: Configuration) -> list[ConvexPolygon]:
        """Return the outlines of the fingers at a width, seen along the tool's x axis: y and z of the tool."""
        if width not in self._outlines:
            arm, scene = self._manipulator, self._scene
            closed = scene.configuration(arm.gripper_values(width), base=q)
            self._outlines[width] = [
                outline(solids_of(scene, link), _FROM_SIDE @ scene.pose(link, relative_to=arm.tool, q=closed))
                for link in arm.contact_links
            ]
        return self._outlines[width]
