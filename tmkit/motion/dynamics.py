"""Torques of the joints of an arm, at rest and in motion, and their effort limits.

An arm that is stretched out far, or that holds a load, may exceed its effort limits although it is
free of collisions. The torque of gravity about a joint follows from everything that the joint
carries ("Rigid Body Dynamics Algorithms", Featherstone 2008, section 6.6).

Let ``m`` be the carried mass, ``s`` its first moment, ``a`` the joint axis and ``p`` a point on it.
A revolute joint exerts ``-a . ((s - m p) x g)`` and a prismatic joint ``-m a . g``. Torques of a
motion follow from the recursive Newton-Euler algorithm (section 5.3).

A limit that the empty arm exceeds in its ready configuration is ignored. Such a limit is a
placeholder, or the joint has springs. Joint friction and damping are ignored.

Invariants: all results depend only on the scene, the configurations and the arm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import norms
from tmkit._support.initialization import initialize
from tmkit.graph import Inertia, SceneGraph
from tmkit.motion.masses import DENSITY, GRAVITY, lumped_inertia
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.robot_files import resolve_robot

_Array = NDArray[np.float64]

PLANNING_STEP = 0.15
"""Largest joint step between two configurations of a path that planning checks [rad or m].

A gravity torque is a sum of sines of sums of angles. Where three joints turn about parallel axes,
it exceeds its values at both ends of a step by at most 1 - cos(0.225), or 2.5 %, of its amplitude.
Planning keeps 5 % below the limits.
"""

CHECK_STEP = 0.05
"""Largest joint step between two configurations of a path that validation checks [rad or m]."""


def gravity_torques(
    scene: SceneGraph, path: _Array, robot: Manipulator, *, is_loaded: bool = True
) -> _Array:
    """Return the joint torques that hold an arm against gravity, which acts along the root's -z.

    Frames without mass weigh nothing, except for an object in the hand, which weighs its volume
    times 500 kg/m^3. O(frames x configurations).

    Args:
        scene: the scene, with held objects below the arm's tip.
        path: (k, n_joints) configurations.
        robot: the arm.
        is_loaded: whether objects in the hand are included.

    Returns:
        (k, n_arm) torques [N m], or forces of prismatic joints [N], in the order of
        ``robot.joints``.
    """
    arm = _carried_bodies(scene, robot.joints, is_loaded)
    origins, offsets = arm.place(scene, path)[:2]
    bodies = len(arm.masses)
    sums = np.zeros((len(path), bodies + 1, 3))
    np.cumsum(arm.masses[:, None] * (origins + offsets)[:, :bodies], axis=1, out=sums[:, 1:])
    axes, mass = offsets[:, bodies:], arm.carried_masses
    moments = sums[:, arm.counts] - mass[:, None] * origins[:, bodies:]
    # -a . (r x g), with g along -z
    torques = axes[..., 0] * moments[..., 1] - axes[..., 1] * moments[..., 0]
    return GRAVITY * np.where(arm.is_sliding, mass * axes[..., 2], torques)


def inverse_dynamics(
    scene: SceneGraph, path: _Array, velocities: _Array, accelerations: _Array, robot: Manipulator
) -> _Array:
    """Return the joint torques of an arm along a motion under gravity; other joints are at rest.

    Masses are those of :func:`gravity_torques`, with the inertias of links and of the object in the
    hand. O(frames x configurations).

    Args:
        scene: the scene, with held objects below the arm's tip.
        path: (k, n_joints) configurations.
        velocities: (k, n_arm) velocities, in the order of ``robot.joints`` [rad/s or m/s].
        accelerations: (k, n_arm) accelerations [rad/s^2 or m/s^2].
        robot: the arm.

    Returns:
        (k, n_arm) torques [N m], or forces of prismatic joints [N].
    """
    arm = _carried_bodies(scene, robot.joints, True)
    bodies = len(arm.masses)
    origins, offsets, vectors, scalars = arm.place(scene, path)
    axes, joint_origins = offsets[:, bodies:], origins[:, bodies:]

    # Propagate the motion from the base to the tip.
    motion = _propagate(arm, axes, joint_origins, velocities, accelerations)
    spin, spin_rate, acceleration = (np.stack(part, axis=1)[:, arm.levels] for part in motion)

    # Compute the force and moment that each body needs.
    centres = (origins + offsets)[:, :bodies]
    arms = centres - origins[:, bodies + arm.levels - 1]
    forces = arm.masses[:, None] * (
        acceleration + _cross(spin_rate, arms) + _cross(spin, _cross(spin, arms))
    )
    vectors, scalars = vectors[:, :bodies], scalars[:, :bodies]

    def momentum(rate: _Array) -> _Array:
        local = _rotate(-vectors, scalars, rate)[..., None, :]
        return _rotate(vectors, scalars, np.sum(arm.inertias * local, axis=-1))

    moments = momentum(spin_rate) + _cross(spin, momentum(spin)) + _cross(centres, forces)

    # Sum over the bodies that each joint carries.
    sums = np.zeros((2, len(path), bodies + 1, 3))
    np.cumsum(forces, axis=1, out=sums[0, :, 1:])
    np.cumsum(moments, axis=1, out=sums[1, :, 1:])
    force, moment = sums[:, :, arm.counts]
    required = np.where(arm.is_sliding[:, None], force, moment - _cross(joint_origins, force))
    return np.asarray(np.sum(axes * required, axis=-1))


def _propagate(
    arm: _CarriedBodies, axes: _Array, origins: _Array, velocities: _Array, accelerations: _Array
) -> tuple[list[_Array], list[_Array], list[_Array]]:
    """Return the motion of the base and of the links, from the base on.

    Args:
        arm: the arm.
        axes: (k, n, 3) joint axes in the root frame.
        origins: (k, n, 3) points on them [m].
        velocities: (k, n) joint velocities.
        accelerations: (k, n) joint accelerations.

    Returns:
        (k, 3) angular velocities, angular accelerations and linear accelerations at the joint
        origins, of the base and of each link. The linear acceleration includes gravity.
    """
    zero = np.zeros((len(axes), 3))
    spins, spin_rates = [zero], [zero]
    linear = [zero + np.array([0.0, 0.0, GRAVITY])]
    last_origin = origins[:, 0]
    for number, is_sliding in enumerate(arm.is_sliding):
        axis, origin = axes[:, number], origins[:, number]
        spin, spin_rate = spins[-1], spin_rates[-1]
        velocity = velocities[:, [number]] * axis
        acceleration = accelerations[:, [number]] * axis
        offset = origin - last_origin
        centripetal = _cross(spin, _cross(spin, offset))
        carried = linear[-1] + _cross(spin_rate, offset) + centripetal
        coupling = _cross(spin, velocity)
        linear.append(carried + acceleration + 2.0 * coupling if is_sliding else carried)
        spins.append(spin if is_sliding else spin + velocity)
        spin_rates.append(spin_rate if is_sliding else spin_rate + acceleration + coupling)
        last_origin = origin
    return spins, spin_rates, linear


def _rotate(vector: _Array, scalar: _Array, points: _Array) -> _Array:
    """Return points rotated by quaternions with the given vector (..., 3) and scalar (..., 1)."""
    cross = _cross(vector, points)
    result: _Array = points + 2.0 * (scalar * cross + _cross(vector, cross))
    return result


def _cross(a: _Array, b: _Array) -> _Array:
    """Return cross products of vectors (..., 3), in a third of the time of ``np.cross``."""
    parts = a[..., [1, 2, 0, 2, 0, 1]] * b[..., [2, 0, 1, 1, 2, 0]]
    return parts[..., :3] - parts[..., 3:]


def torque_fault(
    scene: SceneGraph,
    path: _Array,
    robot: Manipulator,
    *,
    fraction: float = 1.0,
    step: float = CHECK_STEP,
) -> str | None:
    """Return the first effort limit that gravity exceeds along a path, or None.

    Args:
        scene: the scene, with held objects below the arm's tip.
        path: (k, n_joints) configurations, connected by straight joint motions.
        robot: the arm.
        fraction: fraction of the effort limits that is available.
        step: largest joint step between two checked configurations [rad or m].
    """
    if _is_always_within_limits(scene, robot, fraction):
        return None
    largest_steps = np.max(np.abs(np.diff(path, axis=0)), axis=1, initial=0.0)
    counts = np.maximum(1, np.ceil(largest_steps / step)).astype(np.intp)
    rows = np.repeat(np.arange(len(counts)), counts)
    parts = (np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[rows]
    dense = np.concatenate([path[rows] + parts[:, None] * (path[rows + 1] - path[rows]), path[-1:]])
    faults = effort_faults(scene, dense, robot, fraction=fraction)
    return next((fault for fault in faults if fault is not None), None)


def effort_faults(
    scene: SceneGraph, configurations: _Array, robot: Manipulator, *, fraction: float = 1.0
) -> list[str | None]:
    """Return the effort limit that gravity exceeds most, or None, for each configuration.

    Args:
        scene: the scene, with held objects below the arm's tip.
        configurations: (k, n_joints) configurations.
        robot: the arm.
        fraction: fraction of the effort limits that is available.
    """
    no_faults: list[str | None] = [None] * len(configurations)
    if _is_always_within_limits(scene, robot, fraction):
        return no_faults
    torques = np.abs(gravity_torques(scene, configurations, robot))
    if np.all(torques <= fraction * robot.effort_limits(scene)):
        return no_faults
    limits = effort_limits(scene, configurations[0], robot)
    arm = _carried_bodies(scene, robot.joints, True)
    load = ", ".join(f"'{frame}' ({mass:.3g} kg)" for frame, mass in arm.load)
    load_note = f", with {load} in the hand" if load else ""
    faults: list[str | None] = []
    for required in torques:
        worst = int(np.argmax(required / limits))
        unit = "N" if arm.is_sliding[worst] else "N m"
        fault = (
            f"gravity requires {required[worst]:.3g} {unit} of joint '{robot.joints[worst]}',"
            f" whose effort limit is {limits[worst]:.3g} {unit}{load_note}"
        )
        faults.append(fault if required[worst] > fraction * limits[worst] else None)
    return faults


def effort_limits(scene: SceneGraph, q: _Array, robot: Manipulator) -> _Array:
    """Return the effort limits (n_arm,) [N m or N], infinite for ignored limits.

    Args:
        scene: the scene.
        q: (n_joints,) configuration, whose values of joints outside the arm are used.
        robot: the arm.
    """
    limits = robot.effort_limits(scene)
    ready = robot.ready_configuration(scene, base=q)
    empty = np.abs(gravity_torques(scene, ready[None], robot, is_loaded=False)[0])
    return np.where(empty > limits, np.inf, limits)


@dataclass(frozen=True, eq=False)
class TorqueLimits:
    """Effort limits of an arm, for motions in which no other joint moves.

    Attributes:
        scene: the scene, with held objects below the arm's tip.
        robot: the arm. The constructor also accepts its name.
        q: (n_joints,) configuration, whose values of joints outside the arm are used.
    """

    scene: SceneGraph
    robot: Manipulator
    q: _Array

    def __post_init__(self) -> None:
        initialize(self, robot=resolve_robot(self.robot, self.scene, function="TorqueLimits"))

    @cached_property
    def limits(self) -> _Array:
        """(n_arm,) effort limits [N m or N], infinite for ignored limits."""
        return effort_limits(self.scene, self.q, self.robot)

    def torques(self, positions: _Array, velocities: _Array, accelerations: _Array) -> _Array:
        """Return the torques (m, n_arm) of a motion.

        All arguments are (m, n), with the arm's joints in the first columns. Other columns are
        ignored.

        Args:
            positions: joint positions [rad or m].
            velocities: joint velocities [rad/s or m/s].
            accelerations: joint accelerations [rad/s^2 or m/s^2].
        """
        arm, columns = self.robot, slice(len(self.robot.joints))
        path = self._full_path(positions)
        return inverse_dynamics(
            self.scene, path, velocities[:, columns], accelerations[:, columns], arm
        )

    def gravity_fault(self, path: _Array, *, fraction: float = 1.0) -> str | None:
        """Return the first effort limit that gravity exceeds along a path, or None.

        Args:
            path: (k, n) positions, with the arm's joints in the first columns [rad or m].
            fraction: fraction of the effort limits that is available.
        """
        return torque_fault(self.scene, self._full_path(path), self.robot, fraction=fraction)

    def _full_path(self, rows: _Array) -> _Array:
        q = np.repeat(self.q[None], len(rows), axis=0)
        q[:, self.robot.joint_indices(self.scene)] = rows[:, : len(self.robot.joints)]
        return q


def _is_always_within_limits(scene: SceneGraph, robot: Manipulator, fraction: float) -> bool:
    """Return whether gravity exceeds no effort limit in any configuration."""
    limits = robot.effort_limits(scene)
    if not np.isfinite(limits).any():
        return True
    bounds = _carried_bodies(scene, robot.joints, True).torque_bounds
    return bool(np.all(bounds <= fraction * limits))


@dataclass(frozen=True, eq=False)
class _CarriedBodies:
    """Bodies with mass that the joints of an arm carry, those that most joints carry first.

    Attributes:
        rows: (m + n,) indices of the frames of bodies, then of joints.
        local: (m + n, 3) centres of mass [m], then joint axes, in the axes of these frames.
        masses: (m,) masses [kg].
        inertias: (m, 3, 3) moments about the centres of mass, in the axes of the frames [kg m^2].
        levels: (m,) number of the last joint that carries a body, from 1.
        load: objects in the hand with their masses [kg].
        counts: (n,) number of bodies that each joint carries.
        carried_masses: (n,) total mass of these bodies [kg].
        torque_bounds: (n,) bounds of the torques or forces in any configuration [N m or N].
        is_sliding: (n,) whether a joint is prismatic.
    """

    rows: NDArray[np.intp]
    local: _Array
    masses: _Array
    inertias: _Array
    levels: NDArray[np.intp]
    load: tuple[tuple[str, float], ...]
    counts: NDArray[np.intp]
    carried_masses: _Array
    torque_bounds: _Array
    is_sliding: NDArray[np.bool_]

    def place(self, scene: SceneGraph, path: _Array) -> tuple[_Array, _Array, _Array, _Array]:
        """Return the placement of the frames of bodies and joints along a path.

        Args:
            scene: the scene.
            path: (k, n_joints) configurations.

        Returns:
            (k, m + n, 3) origins, and ``local`` in the root's axes. Also the vector (k, m + n, 3)
            and scalar (k, m + n, 1) of each frame's quaternion.
        """
        poses = scene.poses_batch(path)[:, self.rows]
        vectors, scalars = poses[..., 3:6], poses[..., 6:7]
        return poses[..., :3], _rotate(vectors, scalars, self.local), vectors, scalars


@dataclass(frozen=True)
class _Body:
    """A body with mass.

    Attributes:
        level: number of the last joint that carries it, from 1.
        frame: its frame.
        inertia: its inertia in the axes of the frame.
    """

    level: int
    frame: str
    inertia: Inertia


@lru_cache(maxsize=32)
def _carried_bodies(
    scene: SceneGraph, joint_names: tuple[str, ...], is_loaded: bool
) -> _CarriedBodies:
    movers = [scene.joint_frame(joint) for joint in joint_names]
    joints, movable = [scene.joint(mover) for mover in movers], {*movable_frames(scene)}
    zero, levels = scene.zero_configuration(), dict[str, int]()
    # Lengths along the arm bound the distances in space.
    lengths: dict[str, float] = {}
    held_frames: set[str] = set()
    body_names: set[str] = set()
    bodies: list[_Body] = []
    for frame in scene.subtree(movers[0]):
        parent = str(scene.parent(frame))
        levels[frame] = levels.get(parent, 0) + (frame in movers)
        lengths[frame] = lengths.get(parent, 0.0) + _max_edge_length(scene, frame, zero)
        if parent in held_frames:
            held_frames.add(frame)
        elif frame in movable:
            held_frames.add(frame)
            if is_loaded:
                inertia = lumped_inertia(scene, scene.subtree(frame), density=DENSITY)
                bodies.append(_Body(levels[frame], frame, inertia))
        elif scene.body(frame) not in body_names:
            link_inertia = scene.inertia(frame)
            if link_inertia is not None:
                body_names.add(scene.body(frame))
                bodies.append(_Body(levels[frame], frame, link_inertia))
    bodies.sort(key=lambda body: -body.level)
    indices = {frame: index for index, frame in enumerate(scene.frame_names)}
    rows = [indices[frame] for frame in (*(body.frame for body in bodies), *movers)]
    local = [*(body.inertia.center for body in bodies), *(joint.axis for joint in joints)]
    levels_of_bodies = [body.level for body in bodies]
    counts = [sum(level > number for level in levels_of_bodies) for number in range(len(joints))]
    masses = np.array([body.inertia.mass for body in bodies])
    is_sliding = np.array([joint.type == "prismatic" for joint in joints])
    bounds = []
    for is_prismatic, mover, count in zip(is_sliding, movers, counts, strict=True):
        bound = 0.0
        for body in bodies[:count]:
            reach = lengths[body.frame] - lengths[mover] + float(norms(body.inertia.center))
            bound += body.inertia.mass * (1.0 if is_prismatic else reach)
        bounds.append(bound)
    return _CarriedBodies(
        rows=np.array(rows, dtype=np.intp),
        local=np.array(local, dtype=float).reshape(-1, 3),
        masses=masses,
        inertias=np.array([body.inertia.matrix for body in bodies], dtype=float).reshape(-1, 3, 3),
        levels=np.array(levels_of_bodies, dtype=np.intp),
        load=tuple((body.frame, body.inertia.mass) for body in bodies if body.frame in held_frames),
        counts=np.array(counts, dtype=np.intp),
        carried_masses=np.concatenate([[0.0], np.cumsum(masses)])[counts],
        torque_bounds=GRAVITY * np.array(bounds, dtype=float),
        is_sliding=is_sliding,
    )


def _max_edge_length(scene: SceneGraph, frame: str, zero: _Array) -> float:
    """Return the largest distance of a frame from its parent [m]."""
    joint = scene.joint(frame)
    slide = 0.0 if joint.type in ("fixed", "revolute") else math.inf
    if joint.type == "prismatic":
        slide = max(abs(joint.lower), abs(joint.upper))
    offset = scene.pose(frame, relative_to=scene.parent(frame), q=zero).translation
    return float(norms(offset)) + slide
