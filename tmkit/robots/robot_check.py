"""Check of a robot for planning: its joints, meshes, self-collisions and reachable heights.

:func:`check_robot` checks limits and meshes, and samples random configurations. Pairs of links that
collide in all configurations make every plan impossible. Pairs that never collide cost time. If
inverse kinematics does not find poses of sampled configurations again, the tool or the joints are
wrong. Collision meshes may have a hull without volume, far more triangles than necessary, the wrong
unit, or holes (a note only, since the convex hull is used).

Except for times, the report depends on scene, arm and seed alone.
O(samples * pairs + triangles * log triangles).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tmkit._core import CollisionWorld, IkSettings, InverseKinematicsStatus, inverse_kinematics
from tmkit._support.results import Report, problem_count
from tmkit.errors import ConfigurationError
from tmkit.formats.mesh.package_uris import VISUAL_AS_COLLISION
from tmkit.formats.mesh.solids import thicken_flat_mesh
from tmkit.formats.urdf.always_colliding import random_configurations
from tmkit.formats.visual_only import visual_only_frames, visual_only_warning
from tmkit.graph import Joint, SceneGraph
from tmkit.robots.hands import fingers_of
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.mechanisms import JointChain, joint_chains, moved_frames
from tmkit.robots.robot_files import Robot, resolve_robot

POSES = 200
"""Largest number of poses for inverse kinematics."""

OFTEN = 0.9
"""Fraction of colliding configurations above which a pair is assumed to overlap by design."""

CROWDED = 0.9
"""Fraction of colliding configurations above which the report has a problem."""

FAR = 5.0
"""Size of a mesh or distance from its frame above which it is assumed to have another unit [m]."""

MANY_TRIANGLES = 50_000
"""Number of triangles of a collision mesh above which the report has a note."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class JointRow:
    """Limits of a joint, with notes.

    Attributes:
        name: name of the joint.
        type: ``revolute``, ``continuous``, ``prismatic``, ...
        lower: smallest value [rad or m]. Infinite without a limit.
        upper: largest value [rad or m]. Infinite without a limit.
        velocity: largest speed [rad/s or m/s]. Infinite without a limit.
        notes: sentences about unusual properties of the joint.
    """

    name: str
    type: str
    lower: float
    upper: float
    velocity: float
    notes: tuple[str, ...]

    @property
    def is_odd(self) -> bool:
        """True if the joint has notes."""
        return bool(self.notes)


@dataclass(frozen=True, slots=True)
class Reach:
    """Result of inverse kinematics for reachable poses.

    Attributes:
        tip: frame that was moved to the poses.
        poses: number of poses, each from a collision-free random configuration.
        solved: number of poses that were solved.
        mean_seconds: mean time of a pose [s]. Not compared.
    """

    tip: str
    poses: int
    solved: int
    mean_seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class RobotReport(Report):
    """Report about a robot.

    Attributes:
        problems: problems that prevent planning.
        notes: unusual properties.
        joints: joints of a configuration, in its order.
        samples: number of random configurations.
        colliding: number of configurations in collision.
        always: pairs of frames that collided in all configurations, or were allowed by the loader
            for this reason.
        never: pairs of frames that are checked and collided in no configuration.
        chains: chains that may be arms, the longest first.
        reach: result of inverse kinematics. None if all configurations collide or there is no arm.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    joints: tuple[JointRow, ...]
    samples: int
    colliding: int
    always: tuple[Pair, ...]
    never: tuple[Pair, ...]
    chains: tuple[JointChain, ...]
    reach: Reach | None

    def __repr__(self) -> str:
        reached = f", {self.reach.solved} of {self.reach.poses} poses reached" if self.reach else ""
        return (
            f"RobotReport({problem_count(self)}, {self.colliding} of {self.samples} configurations"
            f" collide{reached})"
        )


def check_robot(
    scene: SceneGraph,
    robot: Robot | None = None,
    *,
    samples: int = 2000,
    seed: int = 0,
    import_notes: Iterable[object] = (),
) -> RobotReport:
    """Check a robot for planning.

    Args:
        scene: scene with the robot, alone or in its cell.
        robot: name or description of the arm. Defaults to the longest chain of actuated joints,
            without collisions of a hand.
        samples: number of random configurations, uniform within the limits.
        seed: seed of the random configurations.
        import_notes: notes of the loader, which precede those of the report.

    Raises:
        RobotError: if the arm does not fit the scene.
        ConfigurationError: if there is fewer than one sample.
    """
    if samples < 1:
        raise ConfigurationError(
            f"expected at least one sample, received {samples}", received=samples
        )
    if robot is not None:
        robot = resolve_robot(robot, scene, function="check_robot")
        robot.check(scene)
    chains = joint_chains(scene)
    problems = [] if scene.joint_names else ["no joint moves"]
    problems += [
        f"the mesh {name} is flat and has no hull; give it a thickness"
        for *_, name in _flat_meshes(scene)
    ]
    scene, rows = without_flat_meshes(scene), _joint_rows(scene)
    world = CollisionWorld(scene)
    counts, free = _collisions(world, random_configurations(scene, samples, seed=seed))
    pairs = [(a, b) for a, b, _ in world.pairs]
    allowed = [(a, b) for a, b, reason in scene.allowed_pairs if reason == "always"]
    stuck = [pair for pair in pairs if counts[pair] == samples]
    problems += [
        f"'{a}' and '{b}' collide in every configuration; allow the pair, or correct a shape"
        for a, b in stuck
    ]
    if len(free) < (1.0 - CROWDED) * samples and not stuck:
        most_common = ", ".join(
            f"'{a}' and '{b}' in {counts[a, b]}" for (a, b), _ in counts.most_common(3)
        )
        problems.append(
            f"{samples - len(free)} of {samples} configurations collide, most often {most_common};"
            " allow the pairs whose shapes overlap by design (disable_collisions in an SRDF file)"
        )
    frequent_pairs = [pair for pair in pairs if OFTEN * samples <= counts[pair] < samples]
    if robot is not None:
        problems += _untouchable_fingers(scene, robot)
        arm_frames = moved_frames(scene, robot)
        for contact in world.contacts(robot.ready_configuration(scene)):
            if arm_frames & {contact.frame_a, contact.frame_b}:
                problems.append(
                    f"the arm collides when it is ready: '{contact.frame_a}' and"
                    f" '{contact.frame_b}'"
                )
                break
    reach = _reach(scene, robot, chains, free[:POSES], seed)
    if reach is not None and 2 * reach.solved < reach.poses:
        problems.append(
            f"'{reach.tip}' got back to {reach.solved} of {reach.poses} poses that it reaches"
        )
    notes = [
        *map(str, import_notes),
        *(text for row in rows for text in row.notes),
        *_mesh_notes(scene),
    ]
    notes += [
        f"'{a}' and '{b}' collide in {counts[a, b]} of {samples} configurations: if their shapes"
        " overlap by design, allow the pair (disable_collisions in an SRDF file)"
        for a, b in frequent_pairs
    ]
    always, never = (*allowed, *stuck), tuple(pair for pair in pairs if counts[pair] == 0)
    colliding = samples - len(free)
    return RobotReport(
        tuple(problems), tuple(notes), rows, samples, colliding, always, never, chains, reach
    )


def _untouchable_fingers(scene: SceneGraph, robot: Manipulator) -> Iterator[str]:
    """Yield a problem for each finger that has no collision shape, so it cannot touch an object."""
    for finger in fingers_of(scene, robot.contact_links):
        shapes = [part for link in finger for part in scene.shapes(link)]
        if any(part.collision for part in shapes):
            continue
        links = " and ".join(map(repr, finger))
        verb = "has" if len(finger) == 1 else "have"
        if shapes:
            yield (
                f"the hand's {links} {verb} visual shapes only, and cannot touch an object: load"
                f" the robot with --meshes {VISUAL_AS_COLLISION}, or add <collision> to the link"
            )
        else:
            yield (
                f"the hand's {links} {verb} no shapes, and cannot touch an object: name other links"
                " in contact_links, or add <collision> to the link"
            )


def overlapping_pairs(scene: SceneGraph, *, samples: int = 500, seed: int = 0) -> tuple[Pair, ...]:
    """Return the pairs of frames that collide in most configurations, by design.

    Args:
        scene: scene with the robot.
        samples: number of random configurations.
        seed: seed of the random configurations.
    """
    world = CollisionWorld(without_flat_meshes(scene))
    counts, _ = _collisions(world, random_configurations(scene, samples, seed=seed))
    return tuple((a, b) for a, b, _ in world.pairs if 2 * counts[a, b] > samples)


def _collisions(
    world: CollisionWorld, configurations: NDArray[np.float64]
) -> tuple[Counter[Pair], list[NDArray[np.float64]]]:
    """Return the number of collisions of each pair of frames, and the free configurations."""
    counts: Counter[Pair] = Counter()
    free = []
    for q in configurations:
        contacts = world.contacts(q)
        counts.update({(contact.frame_a, contact.frame_b) for contact in contacts})
        if not contacts:
            free.append(q)
    return counts, free


def _reach(
    scene: SceneGraph,
    robot: Manipulator | None,
    chains: tuple[JointChain, ...],
    free: list[NDArray[np.float64]],
    seed: int,
) -> Reach | None:
    """Return the result of inverse kinematics for the poses of free configurations.

    Args:
        scene: scene with the robot.
        robot: arm of the robot, or None for the longest chain.
        chains: chains of joints, the longest first.
        free: collision-free configurations (n_joints,). Each is the start for the next one's pose.
        seed: seed of inverse kinematics.
    """
    if not free or (robot is None and not chains):
        return None
    tip = robot.tool if robot is not None else chains[0].tip
    joints = robot.joints if robot is not None else chains[0].joints
    columns = [scene.joint_names.index(joint) for joint in joints]
    solved_count, duration = 0, 0.0
    for number, q in enumerate(free):
        start = q.copy()
        start[columns] = free[number - 1][columns]
        target = scene.pose(tip, relative_to=scene.root(tip), q=q)
        start_time = time.perf_counter()
        result = inverse_kinematics(
            scene, tip, target_pose=target, joints=joints, q=start, settings=IkSettings(seed=seed)
        )
        duration += time.perf_counter() - start_time
        solved_count += result.status == InverseKinematicsStatus.SOLVED
    return Reach(tip, len(free), solved_count, duration / len(free))


def _joint_rows(scene: SceneGraph) -> tuple[JointRow, ...]:
    """Return the joints of a configuration, in its order."""
    rows = zip(
        scene.joint_frames, scene.joint_limits.tolist(), scene.velocity_limits.tolist(), strict=True
    )
    return tuple(
        _row(scene.joint(frame), lower, upper, speed) for frame, (lower, upper), speed in rows
    )


def _row(joint: Joint, lower: float, upper: float, speed: float) -> JointRow:
    """Return a joint with notes about its limits.

    Args:
        joint: joint of the scene.
        lower: smallest value [rad or m].
        upper: largest value [rad or m].
        speed: largest speed [rad/s or m/s].
    """
    notes, name = [], joint.name
    if joint.type != "continuous" and not (np.isfinite(lower) and np.isfinite(upper)):
        notes.append(f"the {joint.type} joint '{name}' has no limits")
    elif lower == upper:
        notes.append(f"the {joint.type} joint '{name}' cannot move: both its limits are {lower:g}")
    if joint.type == "revolute" and 6 * np.pi < upper - lower < np.inf:
        notes.append(
            f"the revolute joint '{name}' turns more than three times: are its limits in degrees?"
        )
    if joint.type == "prismatic" and FAR < upper - lower < np.inf:
        notes.append(
            f"the prismatic joint '{name}' moves by {upper - lower:.3g} m: is it in another unit?"
        )
    if not np.isfinite(speed) or speed <= 0.0:
        notes.append(f"the {joint.type} joint '{name}' has no speed limit; 1 is taken")
    return JointRow(name, joint.type, lower, upper, speed, tuple(notes))


def _flat_meshes(scene: SceneGraph) -> tuple[tuple[str, int, str], ...]:
    """Return the collision meshes without a hull.

    Returns:
        Frame, index among its shapes, and name of each mesh.
    """
    flat = []
    for frame in scene.frame_names:
        for index, part in enumerate(scene.shapes(frame)):
            is_mesh = part.collision and part.shape.kind == "mesh"
            if is_mesh and thicken_flat_mesh(part.shape) is not None:
                flat.append((frame, index, _mesh_name(part.shape.source, frame)))
    return tuple(flat)


def without_flat_meshes(scene: SceneGraph) -> SceneGraph:
    """Return the scene without the meshes that have no hull, to check the rest."""
    flat = {(frame, index) for frame, index, _ in _flat_meshes(scene)}
    for frame in dict.fromkeys(frame for frame, _ in sorted(flat)):
        shapes = enumerate(scene.shapes(frame))
        scene = scene.set_shapes(
            frame, [part for index, part in shapes if (frame, index) not in flat]
        )
    return scene


def _mesh_notes(scene: SceneGraph) -> Iterator[str]:
    """Yield notes about the collision shapes."""
    has_collision_shape, open_meshes = False, []
    for frame in scene.frame_names:
        for part in scene.shapes(frame):
            has_collision_shape = has_collision_shape or part.collision
            if not part.collision or part.shape.kind != "mesh":
                continue
            lower, upper = (np.asarray(corner) for corner in part.shape.bounds)
            name = f"the mesh {_mesh_name(part.shape.source, frame)}"
            length, distance = float(np.max(upper - lower)), float(np.max(np.abs([lower, upper])))
            if length > FAR:
                yield f"{name} is {length:.3g} m long: is it in another unit?"
            elif distance > FAR:
                yield f"{name} is {distance:.3g} m away from its frame"
            if len(part.shape.faces) > MANY_TRIANGLES:
                yield (
                    f"{name} has {len(part.shape.faces)} triangles; a simpler one for collisions"
                    " loads faster"
                )
            if not _is_closed(np.asarray(part.shape.vertices), np.asarray(part.shape.faces)):
                open_meshes.append(frame)
    if open_meshes:
        frames = ", ".join(dict.fromkeys(open_meshes))
        yield f"meshes with holes, which their hulls close: those of {frames}"
    if visual_only := visual_only_frames(scene):
        yield visual_only_warning(visual_only)
    if not has_collision_shape:
        yield "no link has a collision shape, so nothing is checked"


def _mesh_name(source: str, frame: str) -> str:
    """Return the name of a mesh for messages."""
    return f"{source or 'without a file'} of '{frame}'"


def _is_closed(vertices: NDArray[np.float64], faces: NDArray[np.int32]) -> bool:
    """Return whether every edge has an even number of triangles, after merging equal vertices."""
    merged = np.unique(vertices, axis=0, return_inverse=True)[1].reshape(-1)
    corners = merged[faces]
    edges = np.sort(
        np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]), axis=1
    )
    edges = edges[edges[:, 0] != edges[:, 1]]
    return bool(np.all(np.unique(edges, axis=0, return_counts=True)[1] % 2 == 0))
