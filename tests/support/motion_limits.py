"""Fractions of the limits that a motion uses, from its positions alone.

The computation shares nothing with the code that times motions.
"""

from __future__ import annotations

import numpy as np
import pinocchio
from numpy.typing import ArrayLike, NDArray

from tmkit.formats import scene_to_dict
from tmkit.graph import Inertia, SceneGraph
from tmkit.motion.masses import lumped_inertia
from tmkit.plans import Plan, PlanStep, Segment, execute
from tmkit.plans.execution import TimedMotion
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict
from tmkit.robots import Manipulator

Array = NDArray[np.float64]

JERK_TIME = 0.1  # seconds in which an arm may come to full acceleration


def limit_shares(
    positions: Array, rate: float, *, speeds: ArrayLike, accelerations: ArrayLike, jerks: ArrayLike
) -> tuple[float, float, float]:
    """Return the largest fractions of speed, acceleration and jerk limits (n,) that a path uses.

    The positions have the shape (m, n).

    A difference of order k, over the k-th power of the period, is a mean of the k-th derivative: it
    exceeds a limit only if the derivative does. The motion is at rest before the first and after
    the last sample.
    """
    padded = np.concatenate([positions[:1]] * 3 + [positions] + [positions[-1:]] * 3)
    shares = [
        float(np.max(np.abs(np.diff(padded, n=order, axis=0)) * rate**order / np.asarray(limits)))
        for order, limits in enumerate((speeds, accelerations, jerks), start=1)
    ]
    return shares[0], shares[1], shares[2]


def torque_shares(
    scene: SceneGraph,
    q: ArrayLike,
    arm: Manipulator,
    positions: Array,
    rate: float,
    *,
    limits: ArrayLike,
) -> Array:
    """Return the largest fractions (n_arm,) of torque limits that positions (m, n_arm) use.

    The torques are pinocchio's.

    Velocities and accelerations are differences of the positions; other joints stay at q
    (n_joints,).
    """
    model = pinocchio_arm(scene, q, arm)
    data = model.createData()
    padded = np.concatenate([positions[:1]] * 2 + [positions] + [positions[-1:]] * 2)
    speeds = (padded[2:] - padded[:-2]) * (0.5 * rate)
    accelerations = (padded[2:] - 2.0 * padded[1:-1] + padded[:-2]) * (rate * rate)
    rows = zip(padded[1:-1], speeds, accelerations, strict=True)
    torques = np.array([pinocchio.rnea(model, data, *row) for row in rows])
    return np.asarray(np.max(np.abs(torques), axis=0) / limits)


def pinocchio_arm(scene: SceneGraph, q: ArrayLike, arm: Manipulator) -> pinocchio.Model:
    """Return an arm of a scene in pinocchio with its load; other joints stay at q (n_joints,)."""
    zero = scene.configuration(dict.fromkeys(arm.joints, 0.0), base=q)
    model, carriers, joint = pinocchio.Model(), {str(scene.root(arm.tip)): 0}, 0

    def placed(frame: str) -> tuple[int, pinocchio.SE3]:
        carrier = next(above for above in (frame, *scene.ancestors(frame)) if above in carriers)
        pose = scene.pose(frame, relative_to=carrier, q=zero)
        return carriers[carrier], pinocchio.SE3(np.array(pose.rotation), np.array(pose.translation))

    for name in arm.joints:
        frame = scene.joint_frame(name)
        kind, axis = scene.joint(frame).type, np.array(scene.joint(frame).axis)
        own = (
            pinocchio.JointModelPrismaticUnaligned
            if kind == "prismatic"
            else pinocchio.JointModelRevoluteUnaligned
        )
        _, place = placed(frame)
        joint = model.addJoint(joint, own(axis), place, name)
        carriers[frame] = joint
    bodies, objects = set[str](), {*scene.frames_of_class("movable")}
    for frame in scene.subtree(scene.joint_frame(arm.joints[0])):
        inertia = scene.inertia(frame)
        if frame in objects and inertia is None:
            inertia = lumped_inertia(scene, [frame], density=500.0)
        if inertia is not None and scene.body(frame) not in bodies:
            bodies.add(scene.body(frame))
            number, place = placed(frame)
            own = pinocchio.Inertia(
                inertia.mass, np.array(inertia.center), np.array(inertia.matrix)
            )
            model.appendBodyToJoint(number, own, place)
    return model


class MotionLog:
    """Executor that records motions, the scene before each, and the steps of the hands."""

    def __init__(self) -> None:
        self.motions: list[TimedMotion] = []
        self.places: list[tuple[SceneGraph, Array]] = []  # scene and configuration before each
        self.hands: list[int] = []  # number of motions before each grasp and release

    def begin(self, plan: Plan) -> None:
        """Keep where it begins."""
        self.scene, self.q = plan.scene, np.asarray(plan.q)

    def follow(self, motion: TimedMotion) -> None:
        """Keep it."""
        self.motions.append(motion)
        self.places.append((self.scene, self.q))
        if motion.segment.kind not in ("grasp", "release"):
            self.scene, self.q = motion.segment.end(self.scene, self.q)

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Keep where."""
        del arm
        self.hands.append(len(self.motions))
        self.scene, self.q = segment.end(self.scene, self.q)

    release = grasp

    def _pass(self, *_: object) -> None:
        pass

    begin_step = finish = _pass

    def end_step(self, number: int, step: PlanStep) -> None:
        """Go on from where it leads."""
        del number
        self.scene, self.q = step.scene, np.asarray(step.q)

    def runs(self) -> list[list[TimedMotion]]:
        """Return motions from rest to rest."""
        runs: list[list[TimedMotion]] = [[]]
        for motion in self.motions:
            runs[-1].append(motion)
            if not motion.timed.velocities[-1].any():
                runs.append([])
        return runs[:-1]


def motions_of(plan: Plan, *, rate: float = 1000.0) -> MotionLog:
    """Return the motions of a plan."""
    log = MotionLog()
    execute(plan, log, rate=rate)
    return log


def run_shares(plan: Plan, run: list[TimedMotion]) -> tuple[float, float, float]:
    """Return the largest fractions of the limits of an arm, and of an operated joint, in a run."""
    arm, names = run[0].arm, run[0].joint_names
    moving = [motion.timed.positions for motion in run]
    positions = np.concatenate([moving[0], *(rows[1:] for rows in moving[1:])])
    count = len(arm.joints)
    accelerations = np.full(len(names), np.inf)
    accelerations[:count] = arm.acceleration_limits(plan.scene)
    speeds = np.full(len(names), 0.6)
    speeds[:count] = arm.velocity_limits(plan.scene)
    rate = 1.0 / run[0].timed.period
    return limit_shares(
        positions, rate, speeds=speeds, accelerations=accelerations, jerks=accelerations / JERK_TIME
    )


def plan_torque_shares(log: MotionLog) -> list[float]:
    """Return the largest fraction of the arm's effort limits of each motion from rest to rest."""
    shares, places = [], iter(log.places)
    for run in log.runs():
        (scene, q), *_ = [next(places) for _ in run]
        arm, period = run[0].arm, run[0].timed.period
        moving = [motion.timed.positions[:, : len(arm.joints)] for motion in run]
        positions = np.concatenate([moving[0], *(rows[1:] for rows in moving[1:])])
        q, limits = (
            scene.configuration(dict(run[0].segment.gripper), base=q),
            arm.effort_limits(scene),
        )
        shares.append(
            float(np.max(torque_shares(scene, q, arm, positions, 1.0 / period, limits=limits)))
        )
    return shares


def with_mass(plan: Plan, mass: float, *, effort: float) -> Plan:
    """Return a plan whose blocks have a mass, of a Panda whose second joint gives so much."""
    document, scene = plan_to_dict(plan, with_timing=False), plan.scene
    for block in scene.frames_of_class("block"):
        scene = scene.set_inertia(block, Inertia(mass, matrix=mass * 4e-4 * np.eye(3)))
    document["scene"] = scene_to_dict(scene)
    document["robots"][0]["effort"] = {"panda_joint2": effort}
    return plan_from_dict(document)
