"""Whether a robot is fit for planning: its joints, its meshes, its collisions with itself, and what its arm reaches.

Descriptions of robots are written for pictures and simulators; planning shows their errors only when it fails.
:func:`check_robot` looks first: at what is written (limits, meshes), and at what random configurations show. Pairs of
links that collide in all of them make every plan impossible; pairs that never do cost time; and an arm that does not
get back to a pose which it certainly reaches, because it was there, has a tool or joints that are wrong.

Everything but the time of inverse kinematics is a function of scene, arm and seed. O(samples * pairs).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tmkit._core import CollisionWorld, InverseKinematicsStatus, inverse_kinematics
from tmkit._support.results import Report
from tmkit.errors import ConfigurationError
from tmkit.formats.urdf.self_collisions import random_configurations
from tmkit.graph import SceneGraph
from tmkit.robots.chains import JointChain, joint_chains
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.mechanisms import moved_frames
from tmkit.robots.robot_notes import JointRow, flat_meshes, joint_rows, mesh_notes, without_flat_meshes

POSES = 200
"""Poses that inverse kinematics is asked for, at most."""

OFTEN = 0.9
"""Share of configurations from which on a pair that collides is taken to overlap by its making."""

CROWDED = 0.9
"""Share of configurations in collision from which on planning is hopeless."""

Pair = tuple[str, str]


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
        always: pairs of frames that collided in all of them, or that loading has allowed for this reason.
        never: pairs of frames that are checked and collided in none.
        chains: chains that may be arms, the longest first.
        reach: what inverse kinematics found, ``None`` when no configuration was free or there is no arm.
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
        return f"RobotReport({self.summary}, {self.colliding} of {self.samples} configurations collide{reached})"


def check_robot(
    scene: SceneGraph, manipulator: Manipulator | None = None, *, samples: int = 2000, seed: int = 0,
    import_notes: Iterable[object] = (),
) -> RobotReport:  # fmt: skip
    """Look at a robot before planning with it.

    Args:
        scene: the robot, alone or in its cell.
        manipulator: its arm; by default the longest chain of moving joints is taken, without collisions of a hand.
        samples: random configurations, uniform within the limits.
        seed: makes the answer repeatable.
        import_notes: notes of loading, which come before the report's own.

    Raises:
        RobotError: the arm does not fit the scene.
        ConfigurationError: fewer than one sample.
    """
    if samples < 1:
        raise ConfigurationError(f"expected at least one sample, received {samples}", received=samples)
    if manipulator is not None:
        manipulator.check(scene)
    chains = joint_chains(scene)
    problems = [] if scene.joint_names else ["no joint moves"]
    flat = flat_meshes(scene)
    problems += [f"the mesh {called} is flat and has no hull; give it a thickness" for *_, called in flat]
    scene, rows = without_flat_meshes(scene), joint_rows(scene)
    world = CollisionWorld(scene)
    configurations = random_configurations(scene, samples, seed=seed)
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
    problems += [
        f"'{a}' and '{b}' collide in every configuration; allow the pair, or correct a shape" for a, b in stuck
    ]
    if len(free) < (1.0 - CROWDED) * samples and not stuck:
        named = ", ".join(f"'{a}' and '{b}' in {counts[a, b]}" for (a, b), _ in counts.most_common(3))
        problems.append(
            f"{samples - len(free)} of {samples} configurations collide, most often {named}; allow the pairs whose "
            "shapes overlap by their making (disable_collisions in an SRDF file)"
        )
    often = [pair for pair in pairs if OFTEN * samples <= counts[pair] < samples]
    if manipulator is not None:
        moved = moved_frames(scene, manipulator)
        for contact in world.contacts(manipulator.ready_configuration(scene)):
            if moved & {contact.frame_a, contact.frame_b}:
                problems.append(f"the arm collides when it is ready: '{contact.frame_a}' and '{contact.frame_b}'")
                break
    reach = _reach(scene, manipulator, chains, free[:POSES], seed)
    if reach is not None and 2 * reach.solved < reach.poses:
        problems.append(f"'{reach.tip}' got back to {reach.solved} of {reach.poses} poses that it reaches")
    return RobotReport(
        tuple(problems),
        (
            *map(str, import_notes),
            *(text for row in rows for text in row.notes),
            *mesh_notes(scene),
            *(
                f"'{a}' and '{b}' collide in {counts[a, b]} of {samples} configurations: if their shapes overlap by "
                "their making, allow the pair (disable_collisions in an SRDF file)"
                for a, b in often
            ),
        ),
        rows,
        samples,
        samples - len(free),
        (*allowed, *stuck),
        tuple(pair for pair in pairs if counts[pair] == 0),
        chains,
        reach,
    )


def _reach(
    scene: SceneGraph, manipulator: Manipulator | None, chains: tuple[JointChain, ...], free: list[NDArray[np.float64]],
    seed: int,
) -> Reach | None:  # fmt: skip
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
        found = inverse_kinematics(scene, tip, target_pose=target, joints=joints, q=start, seed=seed)
        spent += time.perf_counter() - begun
        solved += found.status == InverseKinematicsStatus.SOLVED
    return Reach(tip, len(free), solved, spent / len(free))
