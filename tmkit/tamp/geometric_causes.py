"""Geometric causes of many failures at once, where a list of what failed how often would leave the user to guess.

* *No room for the hand*: no configuration of the arm takes an object where it stands, since the
  open hand collides at every grasp. It is proved, since the arm only adds obstacles, unless it
  holds of the convex hulls of meshes alone.
* *No way from the start*: the arm reaches few of the configurations drawn from all that it can do,
  so it is enclosed by what stands on the straight ways there. It rests on searches with a budget:
  no proof.
* *Hand in the support*: at every pose at which an object would be put down, the hand that holds it
  is in what stands still. An example is the tray below a cup that is held by its rim and turned
  over. It rests on the poses that were tried.
* *Narrow gaps*: at each grasp a finger meets a neighbour that is nearer to the object than the
  finger is thick there, and none of these has a free grasp before another is moved. Measured of the
  hand alone (:mod:`tmkit.tamp.search.hand_tables`), at the grasps of the sampler: no proof.

Invariants: causes are sentences without a full stop; they depend on the scene, the seed and the
    log, and on no clock.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.grasps.floating import (
    FLOATING_JOINTS,
    bodies_at_rest,
    hand_alone,
    with_floating_joints,
    yaw_pitch_roll,
)
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.manipulation.samplers import SeededSamplers
from tmkit.motion import CollisionRules, CollisionWorld, MotionPlanner, PathQuery, PathStatus
from tmkit.motion.regions.polygons import ConvexPolygon
from tmkit.motion.regions.solids import outline, reach, solids_of
from tmkit.plans.failures import FailureKind
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.hands import pair_distance
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose
from tmkit.tamp.diagnosis.diagnosis import listed
from tmkit.tamp.domains.separation import NAMED_BODIES
from tmkit.tamp.search.hand_tables import HandTables
from tmkit.tamp.version_tree import FailureLog, SceneVersion

_TARGETS = 16  # configurations to which ways are searched
_DRAWN = 400  # configurations that are drawn for that at most, to find so many that are free
_FEW = 0.5  # share of them below which the arm counts as enclosed
_APPROACH_STEPS = 9  # poses of the hand on its straight way
_OBJECTS = 3  # objects of which it is asked whether the hand has room
_CLEARANCE = 0.002  # metres that a finger keeps on both sides together, and more
_ALIKE = 1e-4  # metres by which gaps may differ and count as equal
_END = 0.001  # metres from the end of a finger at which it is measured
_UNREACHED = (FailureKind.OUT_OF_REACH, FailureKind.NO_CONFIGURATION, FailureKind.NO_CHOICE)
# turns the axes y, z, x of a tool to x, y, z
_FROM_SIDE = Pose([0.0, 0.0, 0.0], [-0.5, -0.5, -0.5, 0.5])


def find_causes(
    roots: Sequence[SceneVersion],
    *,
    log: FailureLog,
    arms: Mapping[str, ArmMotionPlanner],
    sampling: SeededSamplers,
    seed: int,
    is_over: Callable[[], bool],
    wanted: Collection[str] = (),
) -> tuple[str, ...]:
    """Return what explains many failures of a run at once.

    Args:
        roots: the first versions of the trees of the run, all of the scene and configuration at the
            start.
        is_over: tells whether the time is up; then no paths are searched, and no gaps are measured.
        wanted: objects that the goal names, of which causes are found first.
    """
    if not roots:
        return ()
    scene, q, first = roots[0].scene, roots[0].q, next(iter(arms))
    found: list[str | None] = []
    objects = _failing_objects(log, scene, wanted)
    for object, robot in objects:
        arm = arms[robot or first]
        grasps = sampling.grasps(scene, object, manipulator=arm.manipulator)
        approach = arm.primitives.budget.approach_distance
        found.append(
            no_room_for_hand(
                scene, q, object, grasps=grasps, manipulator=arm.manipulator, approach=approach
            )
        )
    expansions = [expansion for root in roots for expansion in root.expansions.values()]
    records = [
        record
        for expansion in expansions
        for record in expansion.failures
        if record.failure.is_path_dependent
    ]
    if not any(expansion.children for expansion in expansions):
        for robot in dict.fromkeys(record.arm or first for record in records):
            primitives = arms[robot].primitives
            if not is_over():
                found.append(
                    enclosed_arm(
                        scene,
                        q,
                        rules=primitives.rules,
                        motion_planner=primitives.motion_planner,
                        max_iterations=primitives.budget.path_iterations,
                        seed=seed,
                    )
                )
    gaps = (
        narrow_gap(
            scene, q, object, manipulator=arms[robot or first].manipulator, sampling=sampling
        )
        for object, robot in objects
        if not is_over()
    )
    # of neighbours it is the same
    found.append(next((cause for cause in gaps if cause is not None), None))
    found.append(hand_in_support(log, {name: arm.manipulator for name, arm in arms.items()}, first))
    return tuple(cause for cause in found if cause is not None)


def _failing_objects(
    log: FailureLog, scene: SceneGraph, wanted: Collection[str]
) -> list[tuple[str, str | None]]:
    """Return objects whose handling failed where they stood, with the arm; a few, wanted and most often first."""
    counts = Counter[tuple[str, str | None]]()
    movable = movable_frames(scene)
    for key, (record, *_) in log.records.items():
        object = record.object
        if object in movable and record.scene.parent(object) == scene.parent(object):
            counts[object, record.arm] += log.counts[key]
    ordered = sorted(
        counts, key=lambda pair: (pair[0] not in wanted, -counts[pair], pair[0], pair[1] or "")
    )
    return ordered[:_OBJECTS]


def no_room_for_hand(
    scene: SceneGraph,
    q: Configuration,
    object: str,
    *,
    grasps: Sequence[Grasp],
    manipulator: Manipulator,
    approach: float,
) -> str | None:
    """Return why no grasp of an object at its current pose has room for the open hand; None if one has.

    It says "whatever the arm does" only where that holds of the meshes themselves, not of their
    convex hulls alone.

    Args:
        approach: metres of the straight way to a grasp.
    """
    hand, still = hand_alone(scene, manipulator), bodies_at_rest(scene, manipulator)
    if not grasps or hand is None or still is None or not _is_still(scene, object):
        return None
    root = hand.root(manipulator.tool)
    hand_from_tool = hand.pose(manipulator.tool, relative_to=root, q=hand.zero_configuration())
    free = with_floating_joints(still, root=scene.root(manipulator.tool)).mount(
        hand, FLOATING_JOINTS[-1]
    )
    root_from_object = scene.pose(object, relative_to=scene.root(object), q=q)
    bodies = Counter[str]()
    own = set(free.subtree(FLOATING_JOINTS[-1]))
    pairs = CollisionWorld(free).pairs
    fixed_frames = {
        frame for frame in free.frame_names if frame not in own and _is_still(free, frame)
    }
    margins = {
        (a, b): -math.inf for a, b, _ in pairs if not ({a, b} & own and {a, b} & fixed_frames)
    }
    hulls, meshes = (
        CollisionWorld(free, pair_margins=margins, level=level) for level in ("hull", "exact")
    )
    fixed = {
        joint: float(value)
        for joint, value in zip(scene.joint_names, q, strict=True)
        if joint in free.joint_names
    }
    with_room = 0
    for grasp in grasps:
        rows = []
        for back in np.linspace(0.0, approach, _APPROACH_STEPS):
            pose = (
                root_from_object
                @ grasp.object_from_tool
                @ Pose([0.0, 0.0, -back])
                @ hand_from_tool.inverse()
            )
            values = dict(
                zip(
                    FLOATING_JOINTS,
                    [*pose.translation, *yaw_pitch_roll(pose.rotation)],
                    strict=True,
                )
            )
            rows.append(
                free.configuration({**fixed, **values, **manipulator.opened(grasp.opening)})
            )
        met = hulls.contacts_batch(np.array(rows))
        first = next((contacts for contacts in met if contacts), None)
        if first is None:
            return None
        with_room += not np.any(meshes.in_collision_batch(np.array(rows)))
        bodies.update(
            {frame for contact in first for frame in (contact.frame_a, contact.frame_b)} - own
        )
    support = scene.parent(object)
    if len(bodies) > 1 and support in bodies:
        del bodies[support]
    tried = (
        f"all {len(grasps)} grasps of '{object}' collide"
        if len(grasps) > 1
        else f"the grasp of '{object}' collides"
    )
    moves = "moves" if len(bodies) == 1 else "move"
    always = "" if with_room else f", in every configuration of '{manipulator.name}'"
    hulls_only = (
        f"; {with_room} would have room if meshes were not checked as their convex hulls"
        if with_room
        else ""
    )
    return (
        f"{tried} with {_named(bodies)}, which never {moves}: the open hand alone collides, at the"
        f" grasp or on its straight approach{always}{hulls_only}"
    )


def hand_in_support(
    log: FailureLog, manipulators: Mapping[str, Manipulator], first: str
) -> str | None:
    """Return that a hand is in what never moves wherever it would put an object; None if at one place it is not.

    Args:
        first: name of the arm of actions that name none.
    """
    bodies, places, object = Counter[str](), 0, None
    for record in (record for records in log.records.values() for record in records):
        scene, arm, failure = record.scene, manipulators[record.arm or first], record.failure
        if (
            record.object is None
            or scene.parent(record.object) != arm.tip
            or failure.kind in _UNREACHED
        ):
            continue
        hand = {arm.tip, *scene.subtree(arm.tip)}.difference(
            scene.subtree(record.object), [record.object]
        )
        contacts = (
            ()
            if failure.q is None or failure.is_path_dependent
            else CollisionWorld(scene).contacts(failure.q)
        )
        pairs = [{contact.frame_a, contact.frame_b} for contact in contacts]
        met = {
            frame
            for pair in pairs
            if pair & hand
            for frame in pair - hand
            if _is_still(scene, frame)
        }
        if not met.difference(movable_frames(scene)):
            return None
        bodies.update(met.difference(movable_frames(scene)))
        places, object = places + 1, record.object
    if object is None:
        return None
    return (
        f"at each of {places} poses for '{object}', the hand that would put it down is in"
        f" {_named(bodies)}, however the arm gets there: hold it from elsewhere, or put it where"
        " there is room for the hand"
    )


def _is_still(scene: SceneGraph, frame: str) -> bool:
    """Return whether no joint moves a frame."""
    return all(
        scene.joint(above).type in ("fixed", "free") for above in (frame, *scene.ancestors(frame))
    )


def enclosed_arm(
    scene: SceneGraph,
    q: Configuration,
    *,
    rules: CollisionRules,
    motion_planner: MotionPlanner,
    max_iterations: int,
    seed: int,
) -> str | None:
    """Return that the start configuration of an arm, whose rules are given, is enclosed; None if it is not."""
    arm = rules.manipulator
    world = rules.check_world(
        scene, rules.allowed_contacts(scene, contact_object=rules.held(scene))
    )
    rng, entries = np.random.default_rng(seed), arm.joint_indices(scene)
    limits = np.clip(scene.joint_limits[entries], -math.pi, math.pi)
    # evenly from all over the range of the arm
    drawn = np.tile(np.asarray(q, dtype=float), (_DRAWN, 1))
    drawn[:, entries] = rng.uniform(limits[:, 0], limits[:, 1], size=(_DRAWN, len(entries)))
    targets = drawn[np.logical_not(world.in_collision_batch(drawn))][:_TARGETS]
    if not len(targets):
        return None
    reached, met = 0, Counter[str]()
    own = moved_frames(scene, arm) | (
        {*scene.subtree(str(held))} if (held := rules.held(scene)) else set()
    )
    for target in targets:
        query = PathQuery(
            world, arm.joints, q, target[None], seed=seed, max_iterations=max_iterations
        )
        if motion_planner.search(query).status is PathStatus.SOLVED:
            reached += 1
            if reached >= _FEW * len(targets):
                return None
        elif (collision := world.find_edge_collision(q, target)) is not None:
            met.update({collision.frame_a, collision.frame_b} - own)
    around = f"; {_named(met)} {'is' if len(met) == 1 else 'are'} around it" if met else ""
    return (
        f"the start configuration is enclosed: of {len(targets)} free configurations from all over"
        f" the arm's range, a path was found to {reached or 'none'}{around}"
    )


def narrow_gap(
    scene: SceneGraph,
    q: Configuration,
    object: str,
    *,
    manipulator: Manipulator,
    sampling: SeededSamplers,
) -> str | None:
    """Return that a finger is thicker than the gaps beside an object; None where that does not block all grasps.

    The neighbours count as in the way for good when none of them has a free grasp before another is
    moved.
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
        queue.extend(
            other for other in sorted(others) if other not in blocked and other not in queue
        )
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
        apart = {
            other: pair_distance(scene, q, frame_a=object, frame_b=other)
            for other in sorted(way & stuck)
        }
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
        f"all {len(free)} grasps of '{object}' need a gap of at least {_floored(needed)} mm beside"
        f" it, the thickness of a finger there ({deep}), and {1000.0 * _CLEARANCE:g} mm of"
        f" clearance; the gap{plural} to {_listed_bodies(sorted(gaps))} {are}"
        f" {low if low == high else f'{low} to {high}'} mm, and none of these {len(stuck)} objects"
        " has a free grasp before another of them is moved"
    )


def _floored(metres: float) -> str:
    """Return millimetres with one digit, rounded down."""
    return f"{math.floor(1e4 * metres) / 10:.1f}"


class _Fingers:
    """The contact links of a hand, to measure how thick they are beside an object."""

    def __init__(self, scene: SceneGraph, manipulator: Manipulator) -> None:
        self._scene, self._manipulator = scene, manipulator
        self._outlines: dict[float, list[ConvexPolygon]] = {}

    def thickness(
        self, grasp: Grasp, object: str, others: Sequence[str], q: Configuration
    ) -> float:
        """Return how thick the thinnest finger is, along the closing direction, beside all of some objects."""
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
        return self._below(
            outlines, min(float(outline.vertices[:, 1].max()) for outline in outlines) - _END
        )

    def _below(self, outlines: Sequence[ConvexPolygon], top: float) -> float:
        """Return the least extent along y of what outlines have beyond a coordinate along z; 0 if they have nothing."""
        beside = ConvexPolygon.rectangle([-1.0, top], [1.0, top + 1.0])
        parts = [outline.clipped(beside) for outline in outlines]
        return min(
            (float(np.ptp(part.vertices[:, 0])) for part in parts if part is not None), default=0.0
        )

    def _at(self, width: float, q: Configuration) -> list[ConvexPolygon]:
        """Return the outlines of the fingers at a width, seen along the tool's x axis: y and z of the tool."""
        if width not in self._outlines:
            arm, scene = self._manipulator, self._scene
            closed = scene.configuration(arm.finger_values(width), base=q)
            self._outlines[width] = [
                outline(
                    solids_of(scene, link),
                    _FROM_SIDE @ scene.pose(link, relative_to=arm.tool, q=closed),
                )
                for link in arm.contact_links
            ]
        return self._outlines[width]


def _named(bodies: Counter[str]) -> str:
    """Return the bodies met most often, in words."""
    return _listed_bodies(sorted(bodies, key=lambda name: (-bodies[name], name)))


def _listed_bodies(names: Sequence[str]) -> str:
    """Return the first few of some frames in words."""
    return listed(
        [
            *(f"'{name}'" for name in names[:NAMED_BODIES]),
            *(["others"] if len(names) > NAMED_BODIES else []),
        ]
    )
