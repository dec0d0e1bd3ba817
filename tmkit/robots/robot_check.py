"""Check of a robot for planning: its joints, meshes, self-collisions and reachable heights.

:func:`check_robot` looks at what is written (limits, meshes), and at what random configurations
show. Pairs of links that collide in all of them make every plan impossible. Pairs that never do
cost time. An arm that does not get back to a pose where it was has a tool or joints that are wrong.
Meshes that collide may have a hull without a volume, far more triangles than a collision needs,
another unit, or holes (a note only, since the convex hull counts).

All but times is a function of scene, arm and seed. O(samples * pairs + triangles * log triangles).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tmkit._core import CollisionWorld, IkSettings, InverseKinematicsStatus, inverse_kinematics
from tmkit._support.results import Report
from tmkit.errors import ConfigurationError
from tmkit.formats.mesh.solids import thicken_flat_mesh
from tmkit.formats.urdf.always_colliding import random_configurations
from tmkit.formats.visual_only import visual_only_frames, visual_only_warning
from tmkit.graph import Joint, SceneGraph
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.mechanisms import JointChain, joint_chains, moved_frames

POSES = 200
"""Poses that inverse kinematics is asked for, at most."""

OFTEN = 0.9
"""Share of configurations from which on a pair that collides is taken to overlap by its making."""

CROWDED = 0.9
"""Share of configurations in collision from which on planning is hopeless."""

FAR = 5.0
"""Metres from its frame or in size from which on a mesh is taken to be in another unit."""

MANY_TRIANGLES = 50_000
"""Triangles from which on a mesh that collides is worth a note."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class JointRow:
    """A joint as the planner takes it.

    Attributes:
        name: of the joint.
        type: ``revolute``, ``continuous``, ``prismatic``, ...
        lower: least value, radians or metres; infinite without a limit.
        upper: largest value.
        velocity: largest speed, rad/s or m/s; infinite without a limit.
        notes: what is odd about it, each a sentence about the joint.
    """

    name: str
    type: str
    lower: float
    upper: float
    velocity: float
    notes: tuple[str, ...]

    @property
    def is_odd(self) -> bool:
        """Whether there is anything to say about it."""
        return bool(self.notes)


@dataclass(frozen=True, slots=True)
class Reach:
    """Inverse kinematics on poses that are reachable.

    Attributes:
        tip: the frame that was brought to the poses.
        poses: how many, each that of a random configuration without a collision.
        solved: how many were reached again.
        mean_seconds: the time of one; no part of equality.
    """

    tip: str
    poses: int
    solved: int
    mean_seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class RobotReport(Report):
    """What a robot is like.

    Attributes:
        problems: what keeps it from planning.
        notes: what is odd.
        joints: the joints of a configuration, in its order.
        samples: random configurations looked at.
        colliding: how many of them were in collision.
        always: pairs of frames that collided in all of them, or that loading has allowed for this
            reason.
        never: pairs of frames that are checked and collided in none.
        chains: chains that may be arms, the longest first.
        reach: what inverse kinematics found, ``None`` when no configuration was free or there is no
            arm.
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
            f"RobotReport({self.summary}, {self.colliding} of {self.samples} configurations"
            f" collide{reached})"
        )


def check_robot(
    scene: SceneGraph,
    manipulator: Manipulator | None = None,
    *,
    samples: int = 2000,
    seed: int = 0,
    import_notes: Iterable[object] = (),
) -> RobotReport:
    """Look at a robot before planning with it.

    Args:
        scene: the robot, alone or in its cell.
        manipulator: its arm; by default the longest chain of moving joints is taken, without
            collisions of a hand.
        samples: random configurations, uniform within the limits.
        seed: makes the answer repeatable.
        import_notes: notes of loading, which come before the report's own.

    Raises:
        RobotError: the arm does not fit the scene.
        ConfigurationError: fewer than one sample.
    """
    if samples < 1:
        raise ConfigurationError(
            f"expected at least one sample, received {samples}", received=samples
        )
    if manipulator is not None:
        manipulator.check(scene)
    chains = joint_chains(scene)
    problems = [] if scene.joint_names else ["no joint moves"]
    flat = _flat_meshes(scene)
    problems += [
        f"the mesh {called} is flat and has no hull; give it a thickness" for *_, called in flat
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
        named = ", ".join(
            f"'{a}' and '{b}' in {counts[a, b]}" for (a, b), _ in counts.most_common(3)
        )
        problems.append(
            f"{samples - len(free)} of {samples} configurations collide, most often {named}; allow"
            " the pairs whose shapes overlap by their making (disable_collisions in an SRDF file)"
        )
    often = [pair for pair in pairs if OFTEN * samples <= counts[pair] < samples]
    if manipulator is not None:
        moved = moved_frames(scene, manipulator)
        for contact in world.contacts(manipulator.ready_configuration(scene)):
            if moved & {contact.frame_a, contact.frame_b}:
                problems.append(
                    f"the arm collides when it is ready: '{contact.frame_a}' and"
                    f" '{contact.frame_b}'"
                )
                break
    reach = _reach(scene, manipulator, chains, free[:POSES], seed)
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
        " overlap by their making, allow the pair (disable_collisions in an SRDF file)"
        for a, b in often
    ]
    always, never = (*allowed, *stuck), tuple(pair for pair in pairs if counts[pair] == 0)
    colliding = samples - len(free)
    return RobotReport(
        tuple(problems), tuple(notes), rows, samples, colliding, always, never, chains, reach
    )


def overlapping_pairs(scene: SceneGraph, *, samples: int = 500, seed: int = 0) -> tuple[Pair, ...]:
    """Return the pairs of frames whose shapes overlap by their making: they collide in most configurations."""
    world = CollisionWorld(without_flat_meshes(scene))
    counts, _ = _collisions(world, random_configurations(scene, samples, seed=seed))
    return tuple((a, b) for a, b, _ in world.pairs if 2 * counts[a, b] > samples)


def _collisions(
    world: CollisionWorld, configurations: NDArray[np.float64]
) -> tuple[Counter[Pair], list[NDArray[np.float64]]]:
    """Return how often each pair of frames collides, and the configurations without a collision."""
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
    manipulator: Manipulator | None,
    chains: tuple[JointChain, ...],
    free: list[NDArray[np.float64]],
    seed: int,
) -> Reach | None:
    """Return how many poses of free configurations inverse kinematics finds from another of them."""
    if not free or (manipulator is None and not chains):
        return None
    tip = manipulator.tool if manipulator is not None else chains[0].tip
    joints = manipulator.joints if manipulator is not None else chains[0].joints
    moving = [scene.joint_names.index(joint) for joint in joints]
    solved, spent = 0, 0.0
    for number, q in enumerate(free):
        start = q.copy()
        start[moving] = free[number - 1][moving]
        target = scene.pose(tip, relative_to=scene.root(tip), q=q)
        begun = time.perf_counter()
        found = inverse_kinematics(
            scene, tip, target_pose=target, joints=joints, q=start, settings=IkSettings(seed=seed)
        )
        spent += time.perf_counter() - begun
        solved += found.status == InverseKinematicsStatus.SOLVED
    return Reach(tip, len(free), solved, spent / len(free))


def _joint_rows(scene: SceneGraph) -> tuple[JointRow, ...]:
    """Return the joints of a configuration, in its order."""
    rows = zip(
        scene.joint_frames, scene.joint_limits.tolist(), scene.velocity_limits.tolist(), strict=True
    )
    return tuple(
        _row(scene.joint(frame), lower, upper, speed) for frame, (lower, upper), speed in rows
    )


def _row(joint: Joint, lower: float, upper: float, speed: float) -> JointRow:
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
    """Return the meshes that collide and have no hull: frame, place among its shapes, and what to call the mesh."""
    parts = (
        (frame, place, part)
        for frame in scene.frame_names
        for place, part in enumerate(scene.shapes(frame))
    )
    meshes = (
        (frame, place, part.shape)
        for frame, place, part in parts
        if part.collision and part.shape.kind == "mesh"
    )
    flat = (found for found in meshes if thicken_flat_mesh(found[2]) is not None)
    return tuple((frame, place, _called(mesh.source, frame)) for frame, place, mesh in flat)


def without_flat_meshes(scene: SceneGraph) -> SceneGraph:
    """Return the scene without the meshes that have no hull, to check the rest."""
    flat = {(frame, place) for frame, place, _ in _flat_meshes(scene)}
    for frame in dict.fromkeys(frame for frame, _ in sorted(flat)):
        kept = [
            part for place, part in enumerate(scene.shapes(frame)) if (frame, place) not in flat
        ]
        scene = scene.set_shapes(frame, kept)
    return scene


def _mesh_notes(scene: SceneGraph) -> Iterator[str]:
    """Yield what is odd about shapes that collide."""
    solid, open_meshes = False, []
    for frame in scene.frame_names:
        for part in scene.shapes(frame):
            solid = solid or part.collision
            if not part.collision or part.shape.kind != "mesh":
                continue
            lower, upper = (np.asarray(corner) for corner in part.shape.bounds)
            what = f"the mesh {_called(part.shape.source, frame)}"
            length, away = float(np.max(upper - lower)), float(np.max(np.abs([lower, upper])))
            if length > FAR:
                yield f"{what} is {length:.3g} m long: is it in another unit?"
            elif away > FAR:
                yield f"{what} is {away:.3g} m away from its frame"
            if len(part.shape.faces) > MANY_TRIANGLES:
                yield (
                    f"{what} has {len(part.shape.faces)} triangles; a simpler one for collisions"
                    " loads faster"
                )
            if not _is_closed(np.asarray(part.shape.vertices), np.asarray(part.shape.faces)):
                open_meshes.append(frame)
    if open_meshes:
        named = ", ".join(dict.fromkeys(open_meshes))
        yield f"meshes with holes, which their hulls close: those of {named}"
    if visual_only := visual_only_frames(scene):
        yield visual_only_warning(visual_only)
    if not solid:
        yield "no link has a collision shape, so nothing is checked"


def _called(source: str, frame: str) -> str:
    return f"{source or 'without a file'} of '{frame}'"


def _is_closed(vertices: NDArray[np.float64], faces: NDArray[np.int32]) -> bool:
    """Whether every edge belongs to an even number of triangles, once vertices at the same place are one."""
    same = np.unique(vertices, axis=0, return_inverse=True)[1].reshape(-1)
    corners = same[faces]
    edges = np.sort(
        np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]), axis=1
    )
    edges = edges[edges[:, 0] != edges[:, 1]]
    return bool(np.all(np.unique(edges, axis=0, return_counts=True)[1] % 2 == 0))
