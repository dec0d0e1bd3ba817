"""Motors of all joints of a simulation.

Each joint has a motor. Its target velocity for one time step is ``gain * (target position -
position) / time step + target velocity``. Its force is limited by the effort limit of the robot,
or of the scene. With the target position of the *current* time and the velocity to the next one,
it follows a path without lag. With the next target position, it would lead by one step.

Joints that mimic others have targets that follow from them. The fingers of a hand are also coupled
by a gear, which is a constraint of the engine. They press with a given force, so that fingers
commanded to close stop at an object and squeeze it. The force is distributed over the joints of
the hand by virtual work, so that linkages with revolute joints press as hard as sliding fingers.
Each robot has a separate hand.

A *passive* joint, such as that of a drawer that a plan opens, has friction instead of a motor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SimulationError
from tmkit.graph import SceneGraph
from tmkit.motion.dynamics import effort_limits
from tmkit.robots import Manipulator
from tmkit.simulation.engines.pybullet.bodies import Body
from tmkit.simulation.engines.pybullet.engine import Engine

_UNLIMITED_EFFORT = 1000.0
"""Effort limit of a joint without limit in the scene [N or N m]."""

_MAX_GEAR_FORCE = 1000.0
"""Largest force of the gear between fingers [N]."""

_GEAR_ERROR_REDUCTION = 0.5
"""Fraction of the fingers' disagreement that is removed in one step."""


@dataclass(frozen=True)
class _Follower:
    """A moving joint as a function of the configuration: ``multiplier * q[entry] + offset``."""

    joint: str
    entry: int
    multiplier: float
    offset: float


def _followers(scene: SceneGraph) -> dict[str, _Follower]:
    """Return every moving joint as a function of the configuration, with nested mimics."""
    entries = {name: index for index, name in enumerate(scene.joint_names)}
    result: dict[str, _Follower] = {}
    for frame in scene.frame_names:
        joint = scene.joint(frame)
        if joint.type not in ("revolute", "continuous", "prismatic"):
            continue
        name, multiplier, offset = joint.name, 1.0, 0.0
        visited = {name}
        while name not in entries:
            mimic = scene.joint(scene.joint_frame(name)).mimic
            if mimic is None or mimic.joint in visited:
                raise SimulationError(
                    f"joint '{joint.name}' follows no joint of the configuration", joint=joint.name
                )
            offset += multiplier * mimic.offset
            multiplier *= mimic.multiplier
            name = mimic.joint
            visited.add(name)
        result[joint.name] = _Follower(joint.name, entries[name], multiplier, offset)
    return result


@dataclass(frozen=True, eq=False)
class Gear:
    """Coupling of two joints of a body: ``value of joint = ratio * value of first + shift``."""

    body: Body
    first: str
    joint: str
    ratio: float
    shift: float


@dataclass(frozen=True, eq=False)
class Drive:
    """Motors of one body that are commanded together."""

    body: int
    indices: list[int]
    entries: NDArray[np.intp]
    multipliers: NDArray[np.float64]
    offsets: NDArray[np.float64]
    forces: list[float]

    def positions(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positions of the joints at a configuration."""
        return self.multipliers * q[self.entries] + self.offsets

    def velocities(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the velocities of the joints at the rates of a configuration."""
        return self.multipliers * v[self.entries]


class Drives:
    """Motors of the joints of all bodies, independent of the engine.

    Args:
        scene: the scene.
        bodies: bodies of the engine. Joints of bodies get motors.
        robots: arms whose hands are driven by force.
        passive: joints without motor.
    """

    def __init__(
        self,
        *,
        scene: SceneGraph,
        bodies: Sequence[Body],
        robots: Sequence[Manipulator],
        passive: Collection[str],
    ) -> None:
        self._followers = _followers(scene)
        fingers = {robot.name: self._finger_joints(scene, robot) for robot in robots}
        efforts = self._efforts(scene)
        for robot in robots:
            efforts |= self._arm_efforts(scene, robot)
        driven = self._followers.keys() - set(passive) - frozenset().union(*fingers.values())
        self.all = self._drives_of(bodies, self._followers, efforts)
        self.arms = self._drives_of(bodies, driven, efforts)
        self.hands = {
            robot.name: self._drives_of(
                bodies, fingers[robot.name], self._levers(scene, robot, fingers[robot.name])
            )
            for robot in robots
        }
        self.gears = [
            gear
            for robot in robots
            for body in bodies
            for gear in self._gears(body, robot, fingers)
        ]

    def _finger_joints(self, scene: SceneGraph, robot: Manipulator) -> frozenset[str]:
        """Return the joints of a hand, including mimics."""
        if not robot.gripper_joints:
            return frozenset()
        entries = {scene.joint_names.index(name) for name in robot.gripper_joints}
        return frozenset(
            name for name, follower in self._followers.items() if follower.entry in entries
        )

    def _levers(
        self, scene: SceneGraph, robot: Manipulator, fingers: frozenset[str]
    ) -> dict[str, float]:
        """Return the effort of each joint of the hand at a force of 1 N for each of two fingers.

        By the principle of virtual work, all joints together do the work of the two fingers.
        """
        levers = {
            scene.joint_names.index(name): robot.finger_lever(name) for name in robot.gripper_joints
        }
        efforts = {}
        for name in sorted(fingers):
            follower = self._followers[name]
            multiplier = abs(follower.multiplier) or 1.0
            efforts[name] = 2.0 * levers[follower.entry] / (multiplier * len(fingers))
        return efforts

    def _efforts(self, scene: SceneGraph) -> dict[str, float]:
        """Return the effort limit of each moving joint [N or N m]."""
        result = {}
        for name in self._followers:
            effort = scene.joint(scene.joint_frame(name)).effort
            result[name] = float(effort) if 0.0 < effort < np.inf else _UNLIMITED_EFFORT
        return result

    def _arm_efforts(self, scene: SceneGraph, robot: Manipulator) -> dict[str, float]:
        """Return the effort limits of the robot, and of joints whose limit planning ignores.

        A limit that the empty arm exceeds in its ready configuration is a placeholder, or the
        joint has springs (:mod:`tmkit.motion.dynamics`).
        """
        limits = effort_limits(scene, scene.configuration({}), robot)
        ignored = (
            joint for joint, limit in zip(robot.joints, limits, strict=True) if limit == np.inf
        )
        return {**robot.effort, **dict.fromkeys(ignored, _UNLIMITED_EFFORT)}

    def _drives_of(
        self, bodies: Sequence[Body], joints: Collection[str], efforts: Mapping[str, float]
    ) -> list[Drive]:
        """Return the motors of some joints, one value for each body."""
        drives = []
        for body in bodies:
            followers = [self._followers[name] for name in body.joints if name in joints]
            if followers:
                drives.append(
                    Drive(
                        body.index,
                        [body.joints[follower.joint] for follower in followers],
                        np.array([follower.entry for follower in followers], dtype=np.intp),
                        np.array([follower.multiplier for follower in followers]),
                        np.array([follower.offset for follower in followers]),
                        [efforts[follower.joint] for follower in followers],
                    )
                )
        return drives

    def _gears(
        self, body: Body, robot: Manipulator, fingers: Mapping[str, Collection[str]]
    ) -> Iterator[Gear]:
        """Yield the gears between the fingers of a parallel gripper."""
        names = [name for name in body.joints if name in fingers[robot.name]]
        if len(names) < 2 or not robot.is_two_fingered:
            return
        open_values = {name: self._value_at(name, robot, robot.gripper_open) for name in names}
        closed_values = {name: self._value_at(name, robot, robot.gripper_closed) for name in names}
        first = names[0]
        stroke = closed_values[first] - open_values[first]
        for name in names[1:]:
            if stroke != 0.0 and closed_values[name] != open_values[name]:
                ratio = (closed_values[name] - open_values[name]) / stroke
                shift = open_values[name] - ratio * open_values[first]
                yield Gear(body, first, name, ratio, shift)

    def _value_at(self, name: str, robot: Manipulator, values: Mapping[str, float]) -> float:
        """Return the position of a joint of the hand at positions of the gripper joints."""
        follower = self._followers[name]
        for joint in robot.gripper_joints:
            if self._followers[joint].entry == follower.entry:
                return follower.multiplier * values[joint] + follower.offset
        raise SimulationError(f"joint '{name}' is not a finger of robot '{robot.name}'", joint=name)


class Motors:
    """Motors of one connection.

    Args:
        engine: connection to pybullet.
        scene: the scene.
        bodies: bodies of the engine. Joints of bodies get motors.
        robots: arms whose hands are driven by force.
        gain: fraction of a position error that is removed in a step.
        passive: friction by joint without motor [N or N m].
    """

    def __init__(
        self,
        engine: Engine,
        *,
        scene: SceneGraph,
        bodies: Sequence[Body],
        robots: Sequence[Manipulator],
        gain: float,
        passive: Mapping[str, float],
    ) -> None:
        self._engine, self._gain = engine, gain
        self._drives = Drives(scene=scene, bodies=bodies, robots=robots, passive=passive)
        for body in bodies:
            for name, index in body.joints.items():
                engine.changeDynamics(body.index, index, jointDamping=0.0)
                if name in passive:
                    mode, friction = engine.VELOCITY_CONTROL, passive[name]
                    engine.setJointMotorControl2(
                        body.index, index, mode, targetVelocity=0.0, force=friction
                    )
        for gear in self._drives.gears:
            index, joints = gear.body.index, gear.body.joints
            constraint = engine.createConstraint(
                index,
                joints[gear.first],
                index,
                joints[gear.joint],
                engine.JOINT_GEAR,
                [0.0, 0.0, 1.0],
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0],
            )
            engine.changeConstraint(
                constraint,
                gearRatio=-1.0 / gear.ratio,
                relativePositionTarget=-gear.shift / gear.ratio,
                erp=_GEAR_ERROR_REDUCTION,
                maxForce=_MAX_GEAR_FORCE,
            )

    def place(self, q: NDArray[np.float64]) -> None:
        """Set every joint to its position in a configuration (n_joints,), at rest."""
        for drive in self._drives.all:
            for index, position in zip(drive.indices, drive.positions(q), strict=True):
                self._engine.resetJointState(drive.body, index, float(position), 0.0)

    def set_targets(
        self,
        q: NDArray[np.float64],
        velocity: NDArray[np.float64],
        *,
        arm: str | None = None,
        force: float = 0.0,
    ) -> None:
        """Set the targets of all joints except the fingers, or of the fingers of an arm.

        Args:
            q: (n_joints,) target positions [rad or m].
            velocity: (n_joints,) target velocities [rad/s or m/s].
            arm: name of the arm of which to command the fingers. Defaults to all other joints.
            force: force of each of its fingers [N].
        """
        for drive in self._drives.arms if arm is None else self._drives.hands[arm]:
            self._engine.setJointMotorControlArray(
                drive.body,
                drive.indices,
                self._engine.POSITION_CONTROL,
                targetPositions=drive.positions(q).tolist(),
                targetVelocities=drive.velocities(velocity).tolist(),
                forces=drive.forces if arm is None else [force * lever for lever in drive.forces],
                positionGains=[self._gain] * len(drive.indices),
                velocityGains=[1.0] * len(drive.indices),
            )

    def read(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the simulated configuration (n_joints,), with entries of ``q`` where none is."""
        result = q.copy()
        for drive in reversed(self._drives.all):
            states = self._engine.getJointStates(drive.body, drive.indices)
            for state, entry, multiplier, offset in zip(
                reversed(states),
                drive.entries[::-1],
                drive.multipliers[::-1],
                drive.offsets[::-1],
                strict=True,
            ):
                if multiplier != 0.0:
                    result[entry] = (state[0] - offset) / multiplier
        return result
