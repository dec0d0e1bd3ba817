"""The motors of all joints of a simulation.

Each joint has a motor with the target velocity, for one step of the physics, ``gain * (position
wanted now - position) / time step + velocity wanted``, with a force up to the joint's effort limit
(the robot's, else the scene's). Told the wanted position of *this* instant and the velocity that
leads to the next, it follows a path without lag; told the next position too, it would run ahead by
a step.

Joints that mimic others are told the values that follow from them. The fingers of a hand are also
geared to each other (a constraint of the engine), and press with a given force: told to close on
something thick they stop at it and squeeze. The force is shared out to the joints of the hand by
what each moves the fingers: linkages with turning joints press as hard as sliding fingers. Several
robots have hands of their own, each driven by itself.

A joint that is *passive*, such as that of a drawer that a plan pulls open, has no motor but
friction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SimulationError
from tmkit.graph import SceneGraph
from tmkit.robots import Manipulator
from tmkit.simulation.engines.pybullet.bodies import Body
from tmkit.simulation.engines.pybullet.engine import Engine

_UNLIMITED_EFFORT = 1000.0  # newtons or newton metres of a joint whose scene names no limit
_GEAR_FORCE = 1000.0  # newtons that the gear between fingers can bear
_GEAR_ERROR_REDUCTION = 0.5  # part of the fingers' disagreement removed in one step


@dataclass(frozen=True)
class _Follower:
    """A moving joint as a function of the configuration: ``multiplier * q[entry] + offset``."""

    joint: str
    entry: int
    multiplier: float
    offset: float


def _followers(scene: SceneGraph) -> dict[str, _Follower]:
    """Express every moving joint, mimics of mimics too, by an entry of the configuration."""
    entries = {name: index for index, name in enumerate(scene.joint_names)}
    result: dict[str, _Follower] = {}
    for frame in scene.frame_names:
        joint = scene.joint(frame)
        if joint.type not in ("revolute", "continuous", "prismatic"):
            continue
        name, multiplier, offset = joint.name, 1.0, 0.0
        seen = {name}
        while name not in entries:
            mimic = scene.joint(scene.joint_frame(name)).mimic
            if mimic is None or mimic.joint in seen:
                raise SimulationError(
                    f"joint '{joint.name}' follows no joint of the configuration", joint=joint.name
                )
            offset += multiplier * mimic.offset
            multiplier *= mimic.multiplier
            name = mimic.joint
            seen.add(name)
        result[joint.name] = _Follower(joint.name, entries[name], multiplier, offset)
    return result


@dataclass(frozen=True, eq=False)
class Gear:
    """Two joints of a body that move together: ``value of joint = ratio * value of first + shift``."""

    body: Body
    first: str
    joint: str
    ratio: float
    shift: float


@dataclass(frozen=True, eq=False)
class Drive:
    """The motors of one body that are told together."""

    body: int
    indices: list[int]
    entries: NDArray[np.intp]
    multipliers: NDArray[np.float64]
    offsets: NDArray[np.float64]
    forces: list[float]

    def positions(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of the joints at a configuration."""
        return self.multipliers * q[self.entries] + self.offsets

    def velocities(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the velocities of the joints at those of a configuration."""
        return self.multipliers * v[self.entries]


class Drives:
    """Which joints of which bodies have motors, whatever the engine.

    Args:
        bodies: the bodies; those with joints get motors.
        robots: the arms whose hands are to be driven by force.
        passive: the joints that are not driven.
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
        efforts = self._efforts(scene) | {
            joint: limit for robot in robots for joint, limit in robot.effort.items()
        }
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
        if not robot.gripper_joints:
            return frozenset()
        entries = {scene.joint_names.index(name) for name in robot.gripper_joints}
        return frozenset(
            name for name, follower in self._followers.items() if follower.entry in entries
        )

    def _levers(
        self, scene: SceneGraph, robot: Manipulator, fingers: frozenset[str]
    ) -> dict[str, float]:
        """Return the effort of each joint of the hand when each of two fingers presses with one newton.

        By virtual work: all joints together do what the two fingers do, each its share.
        """
        entries = {
            scene.joint_names.index(name): robot.finger_lever(name) for name in robot.gripper_joints
        }
        shares = {}
        for name in sorted(fingers):
            follower = self._followers[name]
            turns = abs(follower.multiplier) or 1.0
            shares[name] = 2.0 * entries[follower.entry] / (turns * len(fingers))
        return shares

    def _efforts(self, scene: SceneGraph) -> dict[str, float]:
        result = {}
        for name in self._followers:
            effort = scene.joint(scene.joint_frame(name)).effort
            result[name] = float(effort) if 0.0 < effort < np.inf else _UNLIMITED_EFFORT
        return result

    def _drives_of(
        self, bodies: Sequence[Body], joints: Collection[str], efforts: Mapping[str, float]
    ) -> list[Drive]:
        """Return the motors of some joints, body by body."""
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
        names = [name for name in body.joints if name in fingers[robot.name]]
        if len(names) < 2 or robot.gripper_kind != "parallel":
            return
        opened = {name: self._value_at(name, robot, robot.gripper_open) for name in names}
        closed = {name: self._value_at(name, robot, robot.gripper_closed) for name in names}
        first = names[0]
        stroke = closed[first] - opened[first]
        for name in names[1:]:
            if stroke != 0.0 and closed[name] != opened[name]:
                ratio = (closed[name] - opened[name]) / stroke
                yield Gear(body, first, name, ratio, opened[name] - ratio * opened[first])

    def _value_at(self, name: str, robot: Manipulator, values: Mapping[str, float]) -> float:
        follower = self._followers[name]
        for joint in robot.gripper_joints:
            if self._followers[joint].entry == follower.entry:
                return follower.multiplier * values[joint] + follower.offset
        raise SimulationError(f"joint '{name}' is no finger of robot '{robot.name}'", joint=name)


class Motors:
    """The motors of one connection.

    Args:
        bodies: the bodies; those with joints get motors.
        robots: the arms whose hands are to be driven by force.
        gain: part of a position error that is removed in a step.
        passive: newtons or newton metres of friction of joints that are not driven, by name.
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
                maxForce=_GEAR_FORCE,
            )

    def place(self, q: NDArray[np.float64]) -> None:
        """Put every joint at its value in configuration ``q`` (n,), at rest, without physics."""
        for drive in self._drives.all:
            for index, position in zip(drive.indices, drive.positions(q), strict=True):
                self._engine.resetJointState(drive.body, index, float(position), 0.0)

    def tell(
        self,
        q: NDArray[np.float64],
        velocity: NDArray[np.float64],
        *,
        arm: str | None = None,
        force: float = 0.0,
    ) -> None:
        """Set the targets of all joints but the fingers, or of the fingers of an arm.

        Args:
            q: (n_joints,) radians or metres.
            velocity: (n_joints,) per second.
            arm: name of the arm whose fingers are told.
            force: of each of its fingers in N.
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
        """Return the configuration (n,) that the joints have; entries without a simulated joint stay as in ``q``."""
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
