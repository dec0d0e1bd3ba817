"""Geometric causes of failure, each of which explains many failed motions of a run.

* *No room for the hand*: the open hand alone collides at every grasp of an object, so no
  configuration of the arm grasps it there. The cause is proved, since the arm only adds obstacles,
  unless it holds only for the convex hulls of meshes.
* *Enclosed start*: path searches reach few of the configurations sampled from the arm's range. The
  searches have a budget, so the cause is not proved.
* *Hand in the support*: at every pose at which an object would be placed, the hand that holds it
  collides with bodies that never move. An example is a cup held by its rim and turned over above a
  tray. The cause holds for the sampled poses.
* *Narrow gaps*: at each grasp, the gap between the object and a neighbour is narrower than a
  finger. None of these objects has a free grasp before another is moved. The cause is measured at
  the sampled grasps of the hand alone (:mod:`tmkit.tamp.search.hand_tables`): it is not proved.

A cause is a sentence without a full stop. It depends on the scene, the seed and the log, and not on
a clock.
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
    extract_hand,
    static_bodies,
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
from tmkit.tamp.diagnosis.diagnosis import join_words
from tmkit.tamp.domains.separation import NAMED_BODIES
from tmkit.tamp.search.hand_tables import HandTables
from tmkit.tamp.version_tree import FailureLog, FailureRecord, SceneVersion

_MAX_TARGETS = 16
"""Collision-free configurations to which paths are searched."""

_N_SAMPLES = 400
"""Configurations that are sampled to find the targets."""

_MIN_REACHED_FRACTION = 0.5
"""Fraction of reached targets below which the arm counts as enclosed."""

_N_APPROACH_POSES = 9
"""Poses of the hand along the straight approach, including both ends."""

_MAX_OBJECTS = 3
"""Objects whose grasps are examined."""

_FINGER_CLEARANCE = 0.002
"""Smallest clearance of a finger in a gap, both sides together [m]."""

_GAP_TOLERANCE = 1e-4
"""Difference up to which two gaps count as equal [m]."""

_FINGER_END_OFFSET = 0.001
"""Distance from the end of a finger to the section whose thickness is reported [m]."""

_UNREACHED_KINDS = (FailureKind.OUT_OF_REACH, FailureKind.NO_CONFIGURATION, FailureKind.NO_CHOICE)
"""Failures without a configuration of the arm at the target."""

_SIDE_FROM_TOOL = Pose([0.0, 0.0, 0.0], [-0.5, -0.5, -0.5, 0.5])
"""Rotation that maps the axes y, z, x of a tool to x, y, z."""


def find_causes(
    roots: Sequence[SceneVersion],
    *,
    log: FailureLog,
    arms: Mapping[str, ArmMotionPlanner],
    sampling: SeededSamplers,
    seed: int,
    is_over: Callable[[], bool],
    goal_objects: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the geometric causes of the failures of a run.

    Args:
        roots: first versions of the version trees, all of the start scene and configuration.
        log: failures of the run.
        arms: motion planners by name of the arm.
        sampling: samplers of grasps.
        seed: seed of the path searches.
        is_over: predicate of the time limit. After it, no paths are searched and no gaps are
            measured.
        goal_objects: objects of the goal, whose causes come first.
    """
    if not roots:
        return ()
    scene, q, first_arm = roots[0].scene, roots[0].q, next(iter(arms))
    objects = [
        (object, arms[arm or first_arm])
        for object, arm in _failing_objects(log, scene, goal_objects)
    ]
    robots = {name: arm.robot for name, arm in arms.items()}
    causes = [
        explain_blocked_grasps(
            scene,
            q,
            object,
            grasps=sampling.grasps(scene, object, robot=arm.robot),
            robot=arm.robot,
            approach=arm.primitives.budget.approach_distance,
        )
        for object, arm in objects
    ]
    for arm_name in _immobile_arms(roots, first_arm):
        primitives = arms[arm_name].primitives
        if not is_over():
            cause = explain_enclosed_arm(
                scene,
                q,
                rules=primitives.rules,
                motion_planner=primitives.motion_planner,
                max_iterations=primitives.budget.path_iterations,
                seed=seed,
            )
            causes.append(cause)
    gaps = (
        explain_narrow_gap(scene, q, object, robot=arm.robot, sampling=sampling)
        for object, arm in objects
        if not is_over()
    )
    # the gap of an object is that of its neighbours, so the first one suffices
    causes.append(next((cause for cause in gaps if cause is not None), None))
    causes.append(explain_hand_in_support(log, robots, first_arm))
    return tuple(cause for cause in causes if cause is not None)


def _failing_objects(
    log: FailureLog, scene: SceneGraph, goal_objects: Collection[str]
) -> list[tuple[str, str | None]]:
    """Return at most three objects that failed to move from their start pose, with the arm.

    Objects of the goal come first, then those with the most failures.
    """
    counts = Counter[tuple[str, str | None]]()
    movable = movable_frames(scene)
    for key, (record, *_) in log.records.items():
        object = record.object
        if object in movable and record.scene.parent(object) == scene.parent(object):
            counts[object, record.arm] += log.counts[key]

    def rank(pair: tuple[str, str | None]) -> tuple[bool, int, str, str]:
        object, arm = pair
        return object not in goal_objects, -counts[pair], object, arm or ""

    return sorted(counts, key=rank)[:_MAX_OBJECTS]


def _immobile_arms(roots: Sequence[SceneVersion], first_arm: str) -> list[str]:
    """Return the arms with a failed path, if no action of the run succeeded.

    Args:
        roots: first versions of the version trees.
        first_arm: arm of actions that name none.
    """
    expansions = [expansion for root in roots for expansion in root.expansions.values()]
    if any(expansion.children for expansion in expansions):
        return []
    records = (record for expansion in expansions for record in expansion.failures)
    arms = (record.arm or first_arm for record in records if record.failure.is_path_dependent)
    return list(dict.fromkeys(arms))


class _FloatingHand:
    """Open hand on six joints among the bodies that the arm does not move.

    Args:
        hand: scene of the hand without the arm.
        bodies: scene of the other bodies.
        scene: scene with arm and hand.
        q: (n_joints,) configuration of the scene.
        robot: arm and gripper.

    Attributes:
        frames: frames of the hand and of its joints.
    """

    def __init__(
        self,
        hand: SceneGraph,
        bodies: SceneGraph,
        scene: SceneGraph,
        q: Configuration,
        robot: Manipulator,
    ) -> None:
        self._robot, tool = robot, robot.tool
        self._hand_from_tool = hand.pose(
            tool, relative_to=hand.root(tool), q=hand.zero_configuration()
        )
        joints = with_floating_joints(bodies, root=scene.root(tool))
        self._scene = joints.mount(hand, FLOATING_JOINTS[-1])
        self.frames = {*self._scene.subtree(FLOATING_JOINTS[-1])}
        self._joint_values = {
            joint: float(value)
            for joint, value in zip(scene.joint_names, q, strict=True)
            if joint in self._scene.joint_names
        }

    def collision_worlds(self) -> tuple[CollisionWorld, CollisionWorld]:
        """Return the worlds of convex hulls and of meshes, with pairs of hand and fixed bodies."""
        fixed_frames = {
            frame
            for frame in self._scene.frame_names
            if frame not in self.frames and _is_stationary(self._scene, frame)
        }
        margins = {
            (a, b): -math.inf
            for a, b, _ in CollisionWorld(self._scene).pairs
            if not ({a, b} & self.frames and {a, b} & fixed_frames)
        }
        hulls = CollisionWorld(self._scene, pair_margins=margins, level="hull")
        return hulls, CollisionWorld(self._scene, pair_margins=margins, level="exact")

    def approach(
        self, root_from_tool: Pose, *, length: float, opening: float | None
    ) -> Configuration:
        """Return the configurations (9, n_joints) of a straight approach, from the grasp outwards.

        Args:
            root_from_tool: pose of the tool at the grasp.
            length: length of the approach [m].
            opening: gripper width before the grasp [m]; None for fully open.
        """
        rows = []
        fingers = self._robot.open_finger_values(opening)
        for distance in np.linspace(0.0, length, _N_APPROACH_POSES):
            back = Pose([0.0, 0.0, -distance])
            pose = root_from_tool @ back @ self._hand_from_tool.inverse()
            coordinates = [*pose.translation, *yaw_pitch_roll(pose.rotation)]
            floating = dict(zip(FLOATING_JOINTS, coordinates, strict=True))
            rows.append(self._scene.configuration({**self._joint_values, **floating, **fingers}))
        return np.array(rows)


def explain_blocked_grasps(
    scene: SceneGraph,
    q: Configuration,
    object: str,
    *,
    grasps: Sequence[Grasp],
    robot: Manipulator,
    approach: float,
) -> str | None:
    """Return the reason why the open hand collides at all grasps; None if one grasp is free.

    The reason includes "in every configuration" only if it holds for the meshes themselves, not
    only for their convex hulls.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration at the start.
        object: frame of the object.
        grasps: candidate grasps of the object.
        robot: arm and gripper.
        approach: length of the straight approach [m].
    """
    hand_scene, bodies = extract_hand(scene, robot), static_bodies(scene, robot)
    if not grasps or hand_scene is None or bodies is None or not _is_stationary(scene, object):
        return None
    hand = _FloatingHand(hand_scene, bodies, scene, q, robot)
    hulls, meshes = hand.collision_worlds()
    root_from_object = scene.pose(object, relative_to=scene.root(object), q=q)
    obstacles = Counter[str]()
    n_free_with_meshes = 0
    for grasp in grasps:
        root_from_tool = root_from_object @ grasp.object_from_tool
        rows = hand.approach(root_from_tool, length=approach, opening=grasp.opening)
        contacts = next((contacts for contacts in hulls.contacts_batch(rows) if contacts), None)
        if contacts is None:
            return None
        n_free_with_meshes += not np.any(meshes.in_collision_batch(rows))
        frames = {frame for contact in contacts for frame in (contact.frame_a, contact.frame_b)}
        obstacles.update(frames - hand.frames)
    support = scene.parent(object)
    if len(obstacles) > 1 and support in obstacles:
        del obstacles[support]

    subject = f"the grasp of '{object}' collides"
    if len(grasps) > 1:
        subject = f"all {len(grasps)} grasps of '{object}' collide"
    verb = "moves" if len(obstacles) == 1 else "move"
    scope = f", in every configuration of '{robot.name}'"
    if n_free_with_meshes:
        scope = (
            f"; {n_free_with_meshes} would have room if meshes were not checked as their convex"
            " hulls"
        )
    return (
        f"{subject} with {_list_most_common(obstacles)}, which never {verb}: the open hand alone"
        f" collides, at the grasp or on its straight approach{scope}"
    )


def explain_hand_in_support(
    log: FailureLog, robots: Mapping[str, Manipulator], first_arm: str
) -> str | None:
    """Return that the hand collides with fixed bodies at all placement poses; None if it does not.

    Args:
        log: failures of the run.
        robots: arms by name.
        first_arm: arm of actions that name none.
    """
    obstacles, n_poses, object = Counter[str](), 0, None
    for record in (record for records in log.records.values() for record in records):
        arm = robots[record.arm or first_arm]
        is_held = record.object is not None and record.scene.parent(record.object) == arm.tip
        if not is_held or record.failure.kind in _UNREACHED_KINDS:
            continue
        frames = _fixed_frames_in_hand(record, arm)
        if not frames:
            return None
        obstacles.update(frames)
        n_poses, object = n_poses + 1, record.object
    if object is None:
        return None
    return (
        f"at each of {n_poses} poses for '{object}', the hand that places it collides with"
        f" {_list_most_common(obstacles)}, in every configuration of the arm: use another grasp, or"
        " a place with room for the hand"
    )


def _fixed_frames_in_hand(record: FailureRecord, arm: Manipulator) -> set[str]:
    """Return the fixed frames with which the hand collides at a failed placement of an object."""
    scene, failure = record.scene, record.failure
    if failure.q is None or failure.is_path_dependent:
        return set()
    object = str(record.object)
    hand = {arm.tip, *scene.subtree(arm.tip)}.difference(scene.subtree(object), [object])
    pairs = [
        {contact.frame_a, contact.frame_b} for contact in CollisionWorld(scene).contacts(failure.q)
    ]
    frames = {frame for pair in pairs if pair & hand for frame in pair - hand}
    stationary = {frame for frame in frames if _is_stationary(scene, frame)}
    return stationary.difference(movable_frames(scene))


def _is_stationary(scene: SceneGraph, frame: str) -> bool:
    """Return whether no joint moves a frame."""
    frames = (frame, *scene.ancestors(frame))
    return all(scene.joint(ancestor).type in ("fixed", "free") for ancestor in frames)


def explain_enclosed_arm(
    scene: SceneGraph,
    q: Configuration,
    *,
    rules: CollisionRules,
    motion_planner: MotionPlanner,
    max_iterations: int,
    seed: int,
) -> str | None:
    """Return that the start configuration of an arm is enclosed; None if it is not.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration at the start.
        rules: allowed contacts of the arm.
        motion_planner: path planner.
        max_iterations: iterations of one path search.
        seed: seed of the sampled targets and of the path searches.
    """
    arm, held = rules.robot, rules.held_object(scene)
    world = rules.check_world(scene, rules.allowed_contacts(scene, contact_object=held))

    # Sample the targets uniformly from the arm's range.
    rng, columns = np.random.default_rng(seed), arm.joint_indices(scene)
    limits = np.clip(scene.joint_limits[columns], -math.pi, math.pi)
    samples = np.tile(np.asarray(q, dtype=float), (_N_SAMPLES, 1))
    samples[:, columns] = rng.uniform(limits[:, 0], limits[:, 1], size=(_N_SAMPLES, len(columns)))
    targets = samples[np.logical_not(world.in_collision_batch(samples))][:_MAX_TARGETS]
    if not len(targets):
        return None

    # Count the targets with a path, and the obstacles on the straight lines to the others.
    n_reached, obstacles = 0, Counter[str]()
    moving = moved_frames(scene, arm)
    if held is not None:
        moving = moving | {*scene.subtree(held)}
    for target in targets:
        query = PathQuery(
            world, arm.joints, q, target[None], seed=seed, max_iterations=max_iterations
        )
        if motion_planner.search(query).status is PathStatus.SOLVED:
            n_reached += 1
            if n_reached >= _MIN_REACHED_FRACTION * len(targets):
                return None
        elif (collision := world.find_edge_collision(q, target)) is not None:
            obstacles.update({collision.frame_a, collision.frame_b} - moving)
    names = _list_most_common(obstacles)
    blockers = f"; obstacles on the straight paths: {names}" if obstacles else ""
    return (
        f"the start configuration is enclosed: of {len(targets)} free configurations from all over"
        f" the arm's range, a path was found to {n_reached or 'none'}{blockers}"
    )


def explain_narrow_gap(
    scene: SceneGraph,
    q: Configuration,
    object: str,
    *,
    robot: Manipulator,
    sampling: SeededSamplers,
) -> str | None:
    """Return that a finger is thicker than the gaps beside an object; None if a grasp fits.

    Only neighbours count of which none has a free grasp before another of them is moved.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration at the start.
        object: frame of the object.
        robot: arm and gripper.
        sampling: samplers of grasps.
    """
    tables = HandTables(scene, q, robot=robot, sampling=sampling)
    if not tables.is_usable or not robot.is_two_fingered:
        return None
    poses = {name: scene.pose(name, relative_to=scene.root(name), q=q) for name in tables.objects}
    blockers = _blockers_of_grasps(tables, object, poses)
    stuck = _mutually_blocked(blockers)
    if object not in stuck or not blockers[object]:
        return None

    # Measure the smallest gap and the finger at each grasp that is free of fixed bodies.
    gaps: dict[str, float] = {}
    min_thickness, fingers = math.inf, _Fingers(scene, robot)
    options = tables.options(object)
    free = _free_options(tables, object, poses[object])
    for option, names in zip(free, blockers[object], strict=True):
        distances = {
            name: pair_distance(scene, q, frame_a=object, frame_b=name)
            for name in sorted(names & stuck)
        }
        limit = min(distances.values()) + _GAP_TOLERANCE
        nearest = [name for name, gap in distances.items() if gap < limit]
        thickness = fingers.thickness(options[option].grasp, object, nearest, q)
        if thickness + _FINGER_CLEARANCE <= distances[nearest[0]]:
            return None
        gaps.update({name: distances[name] for name in nearest})
        min_thickness = min(min_thickness, thickness)
    if max(gaps.values()) >= min_thickness + _FINGER_CLEARANCE:
        return None

    low, high = (f"{1000.0 * bound:.1f}" for bound in (min(gaps.values()), max(gaps.values())))
    verb, plural = ("are", "s") if len(gaps) > 1 else ("is", "")
    at_end = f"{1000.0 * _FINGER_END_OFFSET:g} mm from its end"
    end_thickness = f"{_floor_millimetres(fingers.end_thickness)} mm at {at_end}"
    return (
        f"all {len(free)} grasps of '{object}' need a gap of at least"
        f" {_floor_millimetres(min_thickness)} mm beside it, the thickness of a finger there"
        f" ({end_thickness}), and {1000.0 * _FINGER_CLEARANCE:g} mm of clearance; the gap{plural}"
        f" to {_list_bodies(sorted(gaps))} {verb} {low if low == high else f'{low} to {high}'} mm,"
        f" and none of these {len(stuck)} objects has a free grasp before another of them is moved"
    )


def _free_options(tables: HandTables, name: str, pose: Pose) -> list[int]:
    """Return the indices of the grasps of an object that are free of fixed bodies."""
    indices: list[int] = np.flatnonzero(tables.static_clearance(name, pose).is_free).tolist()
    return indices


def _blockers_of_grasps(
    tables: HandTables, object: str, poses: Mapping[str, Pose]
) -> dict[str, list[set[str]]]:
    """Return the movable objects in the way of each grasp, by object.

    The search starts at ``object`` and proceeds to the blockers of each object without a free
    grasp. It ends at the first object if that has a free grasp.
    """
    blockers: dict[str, list[set[str]]] = {}
    queue = deque([object])
    while queue:
        name = queue.popleft()
        bits = tables.blockers(name, poses[name], poses)
        free = _free_options(tables, name, poses[name])
        blockers[name] = [set(tables.names(bits[option])) for option in free]
        if all(blockers[name]):
            names = set().union(*blockers[name])
            queue.extend(n for n in sorted(names) if n not in blockers and n not in queue)
        elif name == object:
            break
    return blockers


def _mutually_blocked(blockers: Mapping[str, Sequence[set[str]]]) -> set[str]:
    """Return the objects of which none has a free grasp before another of them is moved."""
    stuck = set(blockers)
    while movable := {name for name in stuck if not all(names & stuck for names in blockers[name])}:
        stuck -= movable
    return stuck


def _floor_millimetres(length: float) -> str:
    """Return a length [m] in millimetres with one decimal, rounded down."""
    return f"{math.floor(1e4 * length) / 10:.1f}"


class _Fingers:
    """Contact links of a hand, whose thickness is measured beside an object."""

    def __init__(self, scene: SceneGraph, robot: Manipulator) -> None:
        self._scene, self._robot = scene, robot
        self._outlines: dict[float, list[ConvexPolygon]] = {}

    def thickness(
        self, grasp: Grasp, object: str, neighbours: Sequence[str], q: Configuration
    ) -> float:
        """Return the thickness of the thinnest finger beside an object and its neighbours [m].

        The thickness is measured along the closing direction, over the part of the finger that is
        beside all of these bodies.
        """
        tool_from_object = grasp.object_from_tool.inverse()
        top = -math.inf  # along the tool's z axis, which points into the object
        for name in (object, *neighbours):
            tool_from_body = tool_from_object @ self._scene.pose(name, relative_to=object, q=q)
            down = tool_from_body.inverse().rotate([0.0, 0.0, -1.0])
            extent = reach(solids_of(self._scene, name), down)
            top = max(top, float(tool_from_body.translation[2]) - extent)
        return _min_extent(self._finger_outlines(grasp.width, q), top)

    @property
    def end_thickness(self) -> float:
        """Thickness of the thinnest finger near its end, at the latest gripper width [m]."""
        outlines = next(reversed(self._outlines.values()))
        end = min(float(outline.vertices[:, 1].max()) for outline in outlines)
        return _min_extent(outlines, end - _FINGER_END_OFFSET)

    def _finger_outlines(self, width: float, q: Configuration) -> list[ConvexPolygon]:
        """Return the outlines of the fingers at a width, in the y and z coordinates of the tool."""
        if width not in self._outlines:
            arm, scene = self._robot, self._scene
            q_closed = scene.configuration(arm.finger_values(width), base=q)
            outlines = []
            for link in arm.contact_links:
                tool_from_link = scene.pose(link, relative_to=arm.tool, q=q_closed)
                outlines.append(outline(solids_of(scene, link), _SIDE_FROM_TOOL @ tool_from_link))
            self._outlines[width] = outlines
        return self._outlines[width]


def _min_extent(outlines: Sequence[ConvexPolygon], bottom: float) -> float:
    """Return the least extent along y of the parts of outlines above a z coordinate.

    Outlines without such a part are ignored. If no outline has one, the result is 0.
    """
    half_plane = ConvexPolygon.rectangle([-1.0, bottom], [1.0, bottom + 1.0])
    parts = [outline.intersection(half_plane) for outline in outlines]
    extents = (float(np.ptp(part.vertices[:, 0])) for part in parts if part is not None)
    return min(extents, default=0.0)


def _list_most_common(bodies: Counter[str]) -> str:
    """Return the most frequent bodies as text."""
    return _list_bodies(sorted(bodies, key=lambda name: (-bodies[name], name)))


def _list_bodies(names: Sequence[str]) -> str:
    """Return the first few frame names as text."""
    quoted = [f"'{name}'" for name in names[:NAMED_BODIES]]
    return join_words([*quoted, "others"] if len(names) > NAMED_BODIES else quoted)
