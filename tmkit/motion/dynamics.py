"""Torques that the joints of an arm need for a motion or to stand still, against what their motors give.

An arm that is stretched out far, or with a load in its hand, may stand in a configuration that its
motors cannot hold: free of collision, and yet it sinks. The torque of gravity about a joint is that
of everything which the joint carries, as in "Rigid Body Dynamics Algorithms" (Featherstone 2008,
section 6.6). With the total mass ``m`` and the first moment ``s`` of what it carries, the axis
``a`` and a point ``p`` on it, a turning joint has ``-a . ((s - m p) x g)`` to give and a sliding
one ``-m a . g``. In motion, the recursive Newton-Euler algorithm (section 5.3) has the torques.

A limit that the empty arm exceeds already in its ready configuration says nothing of the arm, for
which it was made up or which has springs, and does not count. Friction and damping of joints are
not part of the torques.

Invariants: functions of the scene, the configurations and the arm alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms
from tmkit.graph import Inertia, SceneGraph
from tmkit.motion.masses import DENSITY, GRAVITY, lumped_inertia
from tmkit.robots import Manipulator, movable_frames

_Array = NDArray[np.float64]

PLANNING_STEP = 0.15
"""Radians or metres between the configurations of a path that planning looks at.

A torque of gravity is a sum of sines of sums of angles. Where three joints turn about parallel
axes, it exceeds both ends of a step by at most 1 - cos(0.225), or 2.5 %, of its amplitude, and
planning keeps 5 % below the limits.
"""

CHECK_STEP = 0.05
"""Radians or metres between those that validation looks at."""


def gravity_torques(
    scene: SceneGraph, path: _Array, manipulator: Manipulator, *, is_loaded: bool = True
) -> _Array:
    """Return what the motors of an arm give to hold it against gravity, which pulls along -z of the root.

    Frames without mass weigh nothing, but an object in the hand without mass weighs its volume
    times 500 kg/m^3. O(frames x configurations).

    Args:
        scene: the scene, with what the hand holds below the arm's tip.
        path: (k, n_joints) configurations.
        is_loaded: whether objects in the hand count.

    Returns:
        (k, n_arm) newton metres, or newtons of a sliding joint, in the order of
        ``manipulator.joints``.
    """
    arm = _carried(scene, manipulator.joints, is_loaded)
    poses = scene.poses_batch(path)[:, arm.rows]
    origins, vector, scalar = poses[..., :3], poses[..., 3:6], poses[..., 6:7]
    world, bodies = _turned(vector, scalar, arm.local), len(arm.masses)
    sums = np.zeros((len(path), bodies + 1, 3))
    np.cumsum(arm.masses[:, None] * (origins + world)[:, :bodies], axis=1, out=sums[:, 1:])
    axes, mass = world[:, bodies:], arm.carried_masses
    moments = sums[:, arm.counts] - mass[:, None] * origins[:, bodies:]
    # -a . (r x g), with g along -z
    turning = axes[..., 0] * moments[..., 1] - axes[..., 1] * moments[..., 0]
    return GRAVITY * np.where(arm.is_sliding, mass * axes[..., 2], turning)


def inverse_dynamics(
    scene: SceneGraph,
    path: _Array,
    velocities: _Array,
    accelerations: _Array,
    manipulator: Manipulator,
) -> _Array:
    """Return what the motors of an arm give along a motion, under gravity, in which no other joint moves.

    Masses are those of :func:`gravity_torques`, with the inertias of links and of the object in the
    hand. O(frames x configurations).

    Args:
        scene: the scene, with what the hand holds below the arm's tip.
        path: (k, n_joints) configurations.
        velocities: (k, n_arm) rad/s or m/s, in the order of ``manipulator.joints``.
        accelerations: (k, n_arm) rad/s^2 or m/s^2.
        manipulator: the arm.

    Returns:
        (k, n_arm) newton metres, or newtons of a sliding joint.
    """
    arm = _carried(scene, manipulator.joints, True)
    bodies, still = len(arm.masses), np.zeros((len(path), 3))
    poses = scene.poses_batch(path)[:, arm.rows]
    origins, vector, scalar = poses[..., :3], poses[..., 3:6], poses[..., 6:7]
    world = _turned(vector, scalar, arm.local)
    spins, turns, pushes, at = (
        [still],
        [still],
        [still + np.array([0.0, 0.0, GRAVITY])],
        origins[:, bodies],
    )
    for number, is_sliding in enumerate(arm.is_sliding):
        axis, origin, spin, turn = (
            world[:, bodies + number],
            origins[:, bodies + number],
            spins[-1],
            turns[-1],
        )
        rate, change, offset = (
            velocities[:, [number]] * axis,
            accelerations[:, [number]] * axis,
            origin - at,
        )
        push, along = (
            pushes[-1] + _cross(turn, offset) + _cross(spin, _cross(spin, offset)),
            _cross(spin, rate),
        )
        pushes.append(push + change + 2.0 * along if is_sliding else push)
        spins.append(spin if is_sliding else spin + rate)
        turns.append(turn if is_sliding else turn + change + along)
        at = origin
    spin, turn, push = (np.stack(parts, axis=1)[:, arm.levels] for parts in (spins, turns, pushes))
    centres = (origins + world)[:, :bodies]
    offset = centres - origins[:, bodies + arm.levels - 1]
    forces = arm.masses[:, None] * (
        push + _cross(turn, offset) + _cross(spin, _cross(spin, offset))
    )
    vector, scalar = vector[:, :bodies], scalar[:, :bodies]

    def momentum(of: _Array) -> _Array:
        own = np.sum(arm.inertias * _turned(-vector, scalar, of)[..., None, :], axis=-1)
        return _turned(vector, scalar, own)

    moments = momentum(turn) + _cross(spin, momentum(spin)) + _cross(centres, forces)
    sums = np.zeros((2, len(path), bodies + 1, 3))
    np.cumsum(forces, axis=1, out=sums[0, :, 1:])
    np.cumsum(moments, axis=1, out=sums[1, :, 1:])
    force, moment = sums[:, :, arm.counts]
    wanted = np.where(arm.is_sliding[:, None], force, moment - _cross(origins[:, bodies:], force))
    return np.asarray(np.sum(world[:, bodies:] * wanted, axis=-1))


def _turned(vector: _Array, scalar: _Array, of: _Array) -> _Array:
    crossed = _cross(vector, of)
    result: _Array = of + 2.0 * (scalar * crossed + _cross(vector, crossed))
    return result


def _cross(a: _Array, b: _Array) -> _Array:
    """Return what np.cross does, in a third of its time."""
    parts = a[..., [1, 2, 0, 2, 0, 1]] * b[..., [2, 0, 1, 1, 2, 0]]
    return parts[..., :3] - parts[..., 3:]


def torque_fault(
    scene: SceneGraph,
    path: _Array,
    manipulator: Manipulator,
    *,
    share: float = 1.0,
    step: float = CHECK_STEP,
) -> str | None:
    """Return why an arm cannot hold itself and its load on a path (k, n_joints) with a share of its limits, or None."""
    if _holds_anywhere(scene, manipulator, share):
        return None
    counts = np.maximum(
        1, np.ceil(np.max(np.abs(np.diff(path, axis=0)), axis=1, initial=0.0) / step)
    ).astype(np.intp)
    rows = np.repeat(np.arange(len(counts)), counts)
    parts = (np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[rows]
    dense = np.concatenate([path[rows] + parts[:, None] * (path[rows + 1] - path[rows]), path[-1:]])
    faults = effort_faults(scene, dense, manipulator, share=share)
    return next((fault for fault in faults if fault is not None), None)


def effort_faults(
    scene: SceneGraph, configurations: _Array, manipulator: Manipulator, *, share: float = 1.0
) -> list[str | None]:
    """Return for each configuration (k, n_joints) why an arm cannot hold itself and its load there, or None."""
    fine: list[str | None] = [None] * len(configurations)
    if _holds_anywhere(scene, manipulator, share):
        return fine
    torques = np.abs(gravity_torques(scene, configurations, manipulator))
    if np.all(torques <= share * manipulator.effort_limits(scene)):
        return fine
    limits, arm = (
        effort_limits(scene, configurations[0], manipulator),
        _carried(scene, manipulator.joints, True),
    )
    load = ", ".join(f"'{frame}' ({mass:.3g} kg)" for frame, mass in arm.load)
    faults: list[str | None] = []
    for needed in torques:
        worst = int(np.argmax(needed / limits))
        unit = "N" if arm.is_sliding[worst] else "N m"
        said = (
            f"gravity requires {needed[worst]:.3g} {unit} of joint '{manipulator.joints[worst]}', "
        )
        said += (
            f"whose effort limit is {limits[worst]:.3g}"
            f" {unit}{f', with {load} in the hand' if load else ''}"
        )
        faults.append(said if needed[worst] > share * limits[worst] else None)
    return faults


def effort_limits(scene: SceneGraph, q: _Array, manipulator: Manipulator) -> _Array:
    """Return the effort limits (n_arm,) that count, infinite where none does; the other joints are at q (n_joints,)."""
    limits = manipulator.effort_limits(scene)
    ready = manipulator.ready_configuration(scene, base=q)
    empty = np.abs(gravity_torques(scene, ready[None], manipulator, is_loaded=False)[0])
    return np.where(empty > limits, np.inf, limits)


@dataclass(frozen=True, eq=False)
class TorqueLimits:
    """What the motors of an arm give, for motions in which no other joint moves.

    Attributes:
        scene: the scene, with what the hand holds below the arm's tip.
        manipulator: the arm.
        q: (n_joints,) configuration, of which the joints of other arms and of hands count.
    """

    scene: SceneGraph
    manipulator: Manipulator
    q: _Array

    @cached_property
    def limits(self) -> _Array:
        """(n_arm,) newton metres, or newtons of sliding joints; infinite where no limit counts."""
        return effort_limits(self.scene, self.q, self.manipulator)

    def torques(self, positions: _Array, velocities: _Array, accelerations: _Array) -> _Array:
        """Return the torques (m, n_arm) of a motion, (m, n) each; columns after the arm's are omitted.

        Args:
            positions: radians or metres.
            velocities: rad/s or m/s.
            accelerations: rad/s^2 or m/s^2.
        """
        arm, own = self.manipulator, slice(len(self.manipulator.joints))
        return inverse_dynamics(
            self.scene, self._full(positions), velocities[:, own], accelerations[:, own], arm
        )

    def gravity_fault(self, path: _Array, *, share: float = 1.0) -> str | None:
        """Return why the arm cannot hold itself and its load on a path, or None.

        Args:
            path: (k, n) radians or metres; columns after the arm's are omitted.
            share: of its limits that it has.
        """
        return torque_fault(self.scene, self._full(path), self.manipulator, share=share)

    def _full(self, rows: _Array) -> _Array:
        q = np.repeat(self.q[None], len(rows), axis=0)
        q[:, self.manipulator.joint_indices(self.scene)] = rows[:, : len(self.manipulator.joints)]
        return q


def _holds_anywhere(scene: SceneGraph, manipulator: Manipulator, share: float) -> bool:
    """Return whether an arm can hold itself and its load in whatever configuration."""
    limits = manipulator.effort_limits(scene)
    if not np.isfinite(limits).any():
        return True
    return bool(np.all(_carried(scene, manipulator.joints, True).most <= share * limits))


@dataclass(frozen=True, eq=False)
class _Carried:
    """What the joints of an arm carry: bodies with mass, those first that the most joints carry."""

    rows: NDArray[np.intp]  # (m + n,) numbers of the frames of bodies, then of joints
    local: _Array  # (m + n, 3) centres of mass, then axes, in the axes of these frames
    masses: _Array  # (m,)
    inertias: _Array  # (m, 3, 3) about the centres of mass, in the axes of the frames
    levels: NDArray[np.intp]  # (m,) number of the last joint that carries a body, from 1
    load: tuple[tuple[str, float], ...]  # objects in the hand with their masses
    counts: NDArray[np.intp]  # (n,) bodies that each joint carries
    carried_masses: _Array  # (n,) their mass
    most: _Array  # (n,) bounds of the torques or forces in any configuration
    is_sliding: NDArray[np.bool_]  # (n,)


@lru_cache(maxsize=32)
def _carried(scene: SceneGraph, joint_names: tuple[str, ...], is_loaded: bool) -> _Carried:
    movers = [scene.joint_frame(joint) for joint in joint_names]
    joints, movable = [scene.joint(mover) for mover in movers], {*movable_frames(scene)}
    zero, levels = scene.zero_configuration(), dict[str, int]()
    along: dict[str, float] = {}  # distances along the arm, of which those in space are no longer
    held: set[str] = set()
    bodies: set[str] = set()
    found: list[tuple[int, str, Inertia]] = []
    for frame in scene.subtree(movers[0]):
        parent = str(scene.parent(frame))
        levels[frame] = levels.get(parent, 0) + (frame in movers)
        along[frame] = along.get(parent, 0.0) + _length(scene, frame, zero)
        if parent in held:
            held.add(frame)
        elif frame in movable:
            held.add(frame)
            if is_loaded:
                found.append(
                    (
                        levels[frame],
                        frame,
                        lumped_inertia(scene, scene.subtree(frame), density=DENSITY),
                    )
                )
        elif (body := scene.body(frame)) not in bodies and (
            own := scene.inertia(frame)
        ) is not None:
            bodies.add(body)
            found.append((levels[frame], frame, own))
    found.sort(key=lambda one: -one[0])
    rows = {frame: row for row, frame in enumerate(scene.frame_names)}
    counts = np.array(
        [sum(level > number for level, *_ in found) for number in range(len(joints))], dtype=np.intp
    )
    masses = np.array([inertia.mass for *_, inertia in found])
    local = [*(inertia.center for *_, inertia in found), *(joint.axis for joint in joints)]
    most = [
        sum(
            inertia.mass
            * (
                1.0
                if joint.type == "prismatic"
                else along[frame] - along[mover] + norms(inertia.center)
            )
            for _, frame, inertia in found[:count]
        )
        for joint, mover, count in zip(joints, movers, counts, strict=True)
    ]
    return _Carried(
        np.array(
            [rows[frame] for frame in (*(frame for _, frame, _ in found), *movers)], dtype=np.intp
        ),
        np.array(local, dtype=float).reshape(-1, 3),
        masses,
        np.array([inertia.matrix for *_, inertia in found], dtype=float).reshape(-1, 3, 3),
        np.array([level for level, *_ in found], dtype=np.intp),
        tuple((frame, inertia.mass) for _, frame, inertia in found if frame in held),
        counts,
        np.concatenate([[0.0], np.cumsum(masses)])[counts],
        GRAVITY * np.array(most, dtype=float),
        np.array([joint.type == "prismatic" for joint in joints]),
    )


def _length(scene: SceneGraph, frame: str, zero: _Array) -> float:
    """Return how far a frame is from its parent at most."""
    joint = scene.joint(frame)
    slide = 0.0 if joint.type in ("fixed", "revolute") else math.inf
    if joint.type == "prismatic":
        slide = max(abs(joint.lower), abs(joint.upper))
    return (
        float(norms(scene.pose(frame, relative_to=scene.parent(frame), q=zero).translation)) + slide
    )
