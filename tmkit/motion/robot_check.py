"""Whether a robot is fit for planning: its joints, its meshes, its collisions with itself, and what its arm reaches.

Descriptions of robots are written for pictures and simulators; planning finds out what is wrong with them only when it
fails. :func:`check_robot` looks first: at what is written (limits, meshes), and at what random configurations show.
Pairs of links that collide in all of them make every plan impossible; pairs that never do cost time; and an arm that
does not get back to a pose which it certainly reaches, because it was there, has a tool or joints that are wrong.

Everything but the time of inverse kinematics is a function of scene, arm and seed. O(samples * pairs).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._core import CollisionWorld, InverseKinematicsStatus, inverse_kinematics
from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.motion.manipulator import Manipulator

__all__ = ["JointChain", "Reach", "RobotReport", "check_robot"]

POSES = 200
"""Poses that inverse kinematics is asked for, at most."""

FAR = 5.0
"""Metres from its frame or in size from which on a mesh is taken to be in another unit."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class JointChain:
    """Joints that may be an arm: from the frame that carries the first to the frame that the last one moves."""

    base: str
    tip: str
    joints: tuple[str, ...]


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
class RobotReport:
    """What a robot is like.

    Attributes:
        problems: what keeps it from planning.
        remarks: what is odd.
        samples: random configurations looked at.
        colliding: how many of them were in collision.
        always: pairs of frames that collided in all of them, or that loading has allowed for this reason.
        never: pairs of frames that are checked and collided in none.
        chains: chains that may be arms, the longest first.
        reach: what inverse kinematics found, ``None`` when no configuration was free or there is no arm.
    """

    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    samples: int
    colliding: int
    always: tuple[Pair, ...]
    never: tuple[Pair, ...]
    chains: tuple[JointChain, ...]
    reach: Reach | None

    @property
    def ok(self) -> bool:
        """Whether nothing keeps the robot from planning."""
        return not self.problems

    def __repr__(self) -> str:
        verdict = "ok" if self.ok else f"{len(self.problems)} problems"
        reached = f", {self.reach.solved} of {self.reach.poses} poses reached" if self.reach else ""
        return f"RobotReport({verdict}, {self.colliding} of {self.samples} configurations collide{reached})"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {"ok": self.ok, **asdict(self)}


def check_robot(
    scene: SceneGraph, manipulator: Manipulator | None = None, *, samples: int = 2000, seed: int = 0
) -> RobotReport:
    """Look at a robot before planning with it.

    Args:
        scene: the robot, alone or in its cell.
        manipulator: its arm; left out, the longest chain of moving joints is taken, without collisions of a hand.
        samples: random configurations, uniform within the limits.
        seed: makes the answer repeatable.

    Raises:
        RobotError: the arm does not fit the scene.
        ConfigurationError: fewer than one sample.
        ShapeError: a collision mesh is flat, so that it has no hull.
    """
    if samples < 1:
        raise ConfigurationError(f"expected at least one sample, received {samples}", received=samples)
    if manipulator is not None:
        manipulator.check(scene)
    chains = _chains(scene)
    problems = [] if scene.joint_names else ["no joint moves"]
    world = CollisionWorld(scene)
    configurations = _configurations(scene, samples, seed)
    counts: Counter[Pair] = Counter()
    free = []
    for q in configurations:
        contacts = world.contacts(q)
        counts.update({(contact.frame_a, contact.frame_b) for contact in contacts})
        if not contacts:
            free.append(q)
    pairs = [(a, b) for a, b, _ in world.pairs]
    allowed = [(a, b) for a, b, reason in scene.allowed_pairs if reason == "always"]
    stuck = [pair for pair in pairs if counts[pair] == samples]
    problems += [f"'{a}' and '{b}' collide in every configuration; allow the pair, or mend a shape" for a, b in stuck]
    if not free and not stuck:
        problems.append("every configuration collides with itself or the scene")
    if manipulator is not None and world.in_collision(manipulator.ready_configuration(scene)):
        contact = world.find_collision(manipulator.ready_configuration(scene))
        if contact is not None:
            problems.append(f"the arm collides when it is ready: '{contact.frame_a}' and '{contact.frame_b}'")
    reach = _reach(scene, manipulator, chains, free[:POSES], seed)
    if reach is not None and 2 * reach.solved < reach.poses:
        problems.append(f"'{reach.tip}' got back to {reach.solved} of {reach.poses} poses that it reaches")
    return RobotReport(
        tuple(problems),
        (*_joint_remarks(scene), *_mesh_remarks(scene)),
        samples,
        samples - len(free),
        (*allowed, *stuck),
        tuple(pair for pair in pairs if counts[pair] == 0),
        chains,
        reach,
    )


def _configurations(scene: SceneGraph, samples: int, seed: int) -> NDArray[np.float64]:
    """Return random configurations (samples, n_joints) within the limits; unlimited joints within +-pi."""
    limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
    lower = np.where(np.isfinite(limits[:, 0]), limits[:, 0], np.minimum(-np.pi, limits[:, 1] - np.pi))
    upper = np.where(np.isfinite(limits[:, 1]), limits[:, 1], np.maximum(np.pi, lower + np.pi))
    return np.random.default_rng(seed).uniform(lower, upper, (samples, len(limits)))


def _chains(scene: SceneGraph) -> tuple[JointChain, ...]:
    """Return the chains of moving joints that no longer one contains, the longest first."""
    names = set(scene.joint_names)
    moved = {joint: scene.joint_frame(joint) for joint in scene.joint_names}
    inner = {above for frame in moved.values() for above in scene.ancestors(frame)}
    found = []
    for last in moved.values():
        if last not in inner:
            path = [frame for frame in (*reversed(scene.ancestors(last)), last) if scene.joint(frame).name in names]
            found.append(JointChain(str(scene.parent(path[0])), last, tuple(scene.joint(frame).name for frame in path)))
    return tuple(sorted(found, key=lambda chain: -len(chain.joints)))


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
        target = scene.pose(tip, scene.root(tip), q=q)
        begun = time.perf_counter()
        found = inverse_kinematics(scene, tip, target=target, joints=joints, q=start, seed=seed)
        spent += time.perf_counter() - begun
        solved += found.status == InverseKinematicsStatus.SOLVED
    return Reach(tip, len(free), solved, spent / len(free))


def _joint_remarks(scene: SceneGraph) -> Iterator[str]:
    """Yield what is odd about joints."""
    rows = zip(scene.joint_names, scene.joint_limits, scene.velocity_limits, strict=True)
    for name, (lower, upper), speed in rows:
        joint = scene.joint(scene.joint_frame(name))
        if joint.type != "continuous" and not (np.isfinite(lower) and np.isfinite(upper)):
            yield f"the {joint.type} joint '{name}' has no limits"
        elif lower == upper:
            yield f"the {joint.type} joint '{name}' cannot move: both its limits are {lower:g}"
        if joint.type == "revolute" and upper - lower > 6 * np.pi and np.isfinite(upper - lower):
            yield f"the revolute joint '{name}' turns more than three times: are its limits in degrees?"
        if not np.isfinite(speed) or speed <= 0.0:
            yield f"the {joint.type} joint '{name}' has no speed limit; 1 is taken"


def _mesh_remarks(scene: SceneGraph) -> Iterator[str]:
    """Yield what is odd about shapes that collide."""
    solid = False
    for frame in scene.frame_names:
        for part in scene.shapes(frame):
            solid = solid or part.collision
            if not part.collision or part.shape.kind != "mesh":
                continue
            lower, upper = (np.asarray(corner) for corner in part.shape.bounds)
            what = f"the mesh {part.shape.source or 'without a file'} of '{frame}'"
            if np.max(upper - lower) > FAR:
                yield f"{what} is {np.max(upper - lower):.3g} m long: is it in another unit?"
            elif np.max(np.abs([lower, upper])) > FAR:
                yield f"{what} is {np.max(np.abs([lower, upper])):.3g} m away from its frame"
    if not solid:
        yield "no link has a collision shape, so nothing is checked"
