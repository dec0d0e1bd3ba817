"""Repositioning of a human limb by joint torques of an arm that is welded to it.

The limb's path avoids its furniture. The arm follows by inverse kinematics, since the weld keeps
the pose of the hand at the limb: a closed chain. Feedback sends the motion as torques.

From the configuration of an environment come the poses and sizes that observations omit:
``robot_base_z``, ``goal_atol``, and of its ``scene`` ``scene_type``, ``limb_name``,
``limb_base_pose`` and ``limb_body_mass``. Limb and furniture have model files.

The environments lack gravity, and only limb and furniture collide, so the arm is not checked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.kinder.episodes import Outcome
from benchmarks.kinder.robots import ARM_JOINTS, CHASSIS_FROM_ARM, HAND, TidyBot
from benchmarks.kinder.worlds import Observation, planar_pose, pose_of
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

import tmkit as tk
from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    InverseKinematicsStatus,
    PathQuery,
    PathStatus,
    RrtConnect,
    inverse_kinematics,
    inverse_kinematics_solutions,
    twist_jacobian,
)
from tmkit.motion.dynamics import inverse_dynamics

_Array = NDArray[np.float64]

LIMB_ENVIRONMENTS = tuple(
    f"LimbRepositioning3D-{scene}-{side}-{part}"
    for scene in ("isolated", "human", "wheelchair", "bed")
    for part in ("arm", "leg")
    for side in ("left", "right")
)
"""Names of the environments."""

_GRASPED = "limb_ee_link"
"""Frame of the limb at the weld."""

_FURNITURE = {"wheelchair": "wheelchair/wheelchair.urdf", "bed": "hospital_bed/hospital_bed.urdf"}
"""Model files of furniture, by type of scene."""

_POINTS = 60
"""Number of steps of the path of the closed chain."""

_MAX_STEP = 0.4
"""Largest change of a joint of the arm in a step of the path [rad]."""

_REACH = 0.8
"""Fraction of the goal's tolerance for a goal in reach of the arm."""

_FRACTION = 0.6
"""Fraction of the torque limits for the planned motion; the rest is for feedback."""

_BANDWIDTH = 8.0
"""Natural frequency of the feedback, which is critically damped [rad/s]."""

_PERIOD = 1.0 / 240.0
"""Time of an action, ``dt`` of the configuration [s]."""

_HOLD = 2.0
"""Time at the end of the motion after which the episode fails [s]."""


class LimbError(Exception):
    """No motion of the closed chain was found."""


@dataclass(frozen=True)
class ClosedChain:
    """Arm and limb, joined by a weld.

    Attributes:
        scene: scene of arm, limb and furniture.
        q: (n_joints,) observed configuration, with the arm within its limits.
        weld: pose of the hand at the limb.
        arm: the TidyBot's arm.
        limb: the limb.
        goal: (6,) goal of the limb's joints [rad].
        tolerance: largest sum of the errors of the limb's joints at the goal [rad].
    """

    scene: tk.SceneGraph
    q: _Array
    weld: tk.Pose
    arm: tk.Manipulator
    limb: tk.Manipulator
    goal: _Array
    tolerance: float

    def columns(self, robot: tk.Manipulator) -> list[int]:
        """Return the columns of the joints of arm or limb in a configuration."""
        return [self.scene.joint_names.index(joint) for joint in robot.joints]

    def path(self) -> _Array:
        """Return a path (k, n_joints) of the closed chain.

        Raises:
            LimbError: if no path of the limb or of the arm is found.
        """
        points = _resampled(self._limb_path(), np.linspace(0.0, 1.0, _POINTS + 1))
        path = self._follow(points, None)
        if len(path) == len(points):
            return path
        for goal in [points[-1], *self._goals_in_reach(points[-1], path[-1])]:
            ramp = np.linspace(0.0, 1.0, len(points))[:, None]
            moved_points = points + ramp * (goal - points[-1])
            for arm_goal in self._arm_goals(goal):
                path = self._follow(moved_points, arm_goal)
                if len(path) == len(points):
                    return path
        raise LimbError("the arm does not follow the limb to its goal")

    def _goals_in_reach(self, goal: _Array, reached: _Array) -> list[_Array]:
        """Return configurations in the goal's tolerance that the arm reaches, the nearest first.

        Args:
            goal: (n_joints,) goal of the limb, which the arm does not reach.
            reached: (n_joints,) last configuration of the limb's path that the arm reaches.
        """
        start, columns = goal.copy(), self.columns(self.arm)
        start[columns] = reached[columns]
        goals = []
        # A sum of errors is smallest if one joint has all of it.
        for joint in self.limb.joints:
            weld = {**self._weld(), "joints": (*self.arm.joints, joint)}
            settings = IkSettings(restarts=0)
            result = inverse_kinematics(self.scene, HAND, **weld, q=start, settings=settings)
            error = np.abs(np.asarray(result.q) - goal)[self.columns(self.limb)].sum()
            if result.status is InverseKinematicsStatus.SOLVED and error < _REACH * self.tolerance:
                goals.append((float(error), np.asarray(result.q)))
        return [q for _, q in sorted(goals, key=lambda item: item[0])]

    def _limb_path(self) -> _Array:
        """Return a path of the limb with the arm at rest."""
        goal = self.q.copy()
        goal[self.columns(self.limb)] = self.goal
        world = CollisionWorld(self.scene)
        query = PathQuery(world, self.limb.joints, self.q, goal[None])
        result = RrtConnect().search(query)
        if result.status is not PathStatus.SOLVED:
            raise LimbError(f"no path of the limb: {result.status}")
        return np.asarray(result.path)

    def _arm_goals(self, q: _Array) -> list[_Array]:
        """Return last configurations (7,) of the arm at a goal of the limb, the nearest first."""
        settings, columns = IkSettings(max_solutions=16), self.columns(self.arm)
        solutions = inverse_kinematics_solutions(
            self.scene, HAND, **self._weld(), q=q, settings=settings
        )
        goals = [solution[columns] for solution in solutions]
        return sorted(goals, key=lambda goal: float(np.abs(goal - self.q[columns]).max()))

    def _follow(self, points: _Array, arm_goal: _Array | None) -> _Array:
        """Return the path with the arm at the limb, as far as it follows.

        Args:
            points: (k, n_joints) path of the limb.
            arm_goal: (7,) last configuration of the arm, or None for any.
        """
        columns, path = self.columns(self.arm), [points[0]]
        settings = IkSettings(restarts=0, position_tolerance=1e-7, rotation_tolerance=1e-7)
        for index, point in enumerate(points[1:], start=1):
            previous = path[-1][columns]
            q = point.copy()
            q[columns] = previous
            if arm_goal is not None:
                q[columns] += (arm_goal - previous) / (len(points) - index)
            result = inverse_kinematics(self.scene, HAND, **self._weld(), q=q, settings=settings)
            if result.status is not InverseKinematicsStatus.SOLVED:
                break
            if np.abs(np.asarray(result.q)[columns] - previous).max() > _MAX_STEP:
                break
            path.append(np.asarray(result.q))
        return np.array(path)

    def _weld(self) -> dict[str, Any]:
        """Return the arguments of inverse kinematics of the arm."""
        return {"target_pose": self.weld, "relative_to": _GRASPED, "joints": self.arm.joints}

    def limb_velocities(self, q: _Array) -> _Array:
        """Return the velocities (6, 7) of the limb's joints per velocity of the arm's."""
        arm = twist_jacobian(self.scene, HAND, q=q, joints=self.arm.joints)
        limb = twist_jacobian(self.scene, _GRASPED, q=q, at=HAND, joints=self.limb.joints)
        return np.asarray(np.linalg.lstsq(limb.matrix, arm.matrix, rcond=1e-3)[0])

    def torques(self, path: _Array, velocities: _Array, accelerations: _Array) -> _Array:
        """Return the torques (k, 7) of the arm along a motion without gravity.

        Args:
            path: (k, n_joints) positions [rad].
            velocities: (k, n_joints) velocities [rad/s].
            accelerations: (k, n_joints) accelerations [rad/s^2].
        """
        parts = []
        for robot in (self.arm, self.limb):
            columns = self.columns(robot)
            rates = velocities[:, columns], accelerations[:, columns]
            rest = np.zeros_like(rates[0])
            weight = inverse_dynamics(self.scene, path, rest, rest, robot)
            parts.append(inverse_dynamics(self.scene, path, *rates, robot) - weight)
        ratios = np.array([self.limb_velocities(q) for q in path])
        return np.asarray(parts[0] + np.einsum("kli,kl->ki", ratios, parts[1]))

    def inertia(self, q: _Array) -> _Array:
        """Return the inertia (7, 7) of the closed chain in the joints of the arm [kg m^2]."""
        count, rest = len(self.arm.joints), np.zeros((len(self.arm.joints), len(q)))
        accelerations = rest.copy()
        accelerations[:, self.columns(self.arm)] = np.eye(count)
        accelerations[:, self.columns(self.limb)] = self.limb_velocities(q).T
        return self.torques(np.tile(q, (count, 1)), rest, accelerations)


class TorqueMotion:
    """Motion along a path of a closed chain, as slow as the torque limits require.

    Args:
        chain: the closed chain.
        path: (k, n_joints) path.
        limits: (7,) torque limits [N m].
    """

    def __init__(self, chain: ClosedChain, path: _Array, limits: _Array) -> None:
        fractions = np.linspace(0.0, 1.0, len(path))
        spline = CubicSpline(fractions, path)
        # From rest to rest with minimum jerk.
        s = 10 * fractions**3 - 15 * fractions**4 + 6 * fractions**5
        rate = (30 * fractions**2 - 60 * fractions**3 + 30 * fractions**4)[:, None]
        change = (60 * fractions - 180 * fractions**2 + 120 * fractions**3)[:, None]
        positions, velocities = spline(s), spline(s, 1) * rate
        accelerations = spline(s, 2) * rate**2 + spline(s, 1) * change
        torques = chain.torques(positions, velocities, accelerations)
        # Torques without gravity are inversely proportional to the square of the duration.
        self.duration = float(np.sqrt(np.max(np.abs(torques) / limits) / _FRACTION))
        columns = chain.columns(chain.arm)
        self._limits = limits
        self._positions = CubicSpline(fractions, positions[:, columns])
        self._torques = CubicSpline(fractions, torques / self.duration**2)
        self._inertias = CubicSpline(fractions, [chain.inertia(q) for q in positions])

    def torque(self, elapsed: float, positions: _Array, velocities: _Array) -> _Array:
        """Return the torques (7,) of the arm, within their limits.

        Args:
            elapsed: time since the start of the motion [s].
            positions: (7,) observed positions of the arm [rad].
            velocities: (7,) observed velocities of the arm [rad/s].
        """
        fraction = min(elapsed / self.duration, 1.0)
        is_moving = fraction < 1.0
        rate = self._positions(fraction, 1) / self.duration if is_moving else 0.0
        error = self._positions(fraction) - positions
        feedback = _BANDWIDTH**2 * error + 2.0 * _BANDWIDTH * (rate - velocities)
        torque = self._inertias(fraction) @ feedback
        if is_moving:
            torque = torque + self._torques(fraction)
        return np.asarray(np.clip(torque, -self._limits, self._limits))


def make_chain(observation: Observation, robot: TidyBot, config: Any) -> ClosedChain:
    """Return arm and limb of an observation."""
    from kinder.envs.dynamic3d.limb_utils import ASSETS_DIR, HUMAN_ASSETS_DIR

    base = planar_pose(*observation.base, z=config.robot_base_z)
    scene = robot.scene.reparent("base_link", "world", pose=base @ CHASSIS_FROM_ARM)
    arm_frames = scene.frame_names
    part = config.scene.limb_name.removeprefix("human-").replace("-", "_")
    model = _with_masses(HUMAN_ASSETS_DIR / f"{part}_6dof_continuous.urdf", config.scene)
    scene = scene.mount(model, "world", prefix="limb_", pose=pose_of(config.scene.limb_base_pose))
    if config.scene.scene_type in _FURNITURE:
        furniture = tk.load_scene(ASSETS_DIR / _FURNITURE[config.scene.scene_type])
        pose = observation.pose("fixture")
        scene = scene.mount(furniture, "world", prefix="furniture_", pose=pose)
        # The environment has a convex hull for each of the many parts of the furniture.
        exact = [part.replace(level="exact") for part in scene.shapes("furniture_base_link")]
        scene = scene.set_shapes("furniture_base_link", exact)
    for frame in arm_frames:
        scene = scene.set_shapes(frame, [])
    limb_joints = tuple(f"limb_{joint}" for joint in model.joint_names)
    numbers = range(1, len(limb_joints) + 1)
    values = dict(zip(ARM_JOINTS, observation.values("robot", *ARM_JOINTS), strict=True))
    limb_values = observation.values("limb", *(f"joint_{number}" for number in numbers))
    ready = dict(zip(limb_joints, limb_values, strict=True))
    limb = tk.Manipulator(
        "limb",
        base="limb_base_link",
        tip="limb_hand",
        tool=_GRASPED,
        joints=limb_joints,
        ready=ready,
        gripper_kind="none",
    )
    goal = np.array(observation.values("limb", *(f"goal_joint_{number}" for number in numbers)))
    q = scene.configuration(values | ready)
    weld = scene.pose(HAND, relative_to=_GRASPED, q=q)
    q = np.clip(q, *scene.joint_limits.T)
    return ClosedChain(scene, q, weld, robot.arm, limb, goal, config.goal_atol)


def run_limb(environment: str, seed: int, robot: TidyBot) -> Outcome:
    """Return the result of an episode.

    Args:
        environment: name as ``LimbRepositioning3D-bed-left-leg``.
        seed: seed of the episode.
        robot: the robot.
    """
    import kinder
    from kinder.envs.dynamic3d.limbrepositioning3d import create_variant_config

    env: Any = kinder.make(f"kinder/{environment}-v0")
    vector, _ = env.reset(seed=seed)
    config = create_variant_config(environment.partition("-")[2])
    start = time.process_time()
    actions, is_solved, cause = 0, False, ""
    try:
        chain = make_chain(_observation(env, vector), robot, config)
        limits = np.array(config.torque_upper_limits)
        motion = TorqueMotion(chain, chain.path(), limits)
    except LimbError as error:
        cause = str(error)
    seconds = time.process_time() - start
    features = (*ARM_JOINTS, *(f"joint_vel_{number}" for number in range(1, 8)))
    while not cause and not is_solved:
        values = np.array(_observation(env, vector).values("robot", *features))
        torque = motion.torque(actions * _PERIOD, values[:7], values[7:])
        vector, _, is_solved, _, info = env.step(torque.astype(np.float32))
        actions += 1
        if actions * _PERIOD > motion.duration + _HOLD:
            cause = f"{info['limb_distance_to_goal']:.3f} rad from the goal at the end"
    env.close()
    return Outcome(environment, seed, bool(is_solved), actions, seconds, 1, cause)


def _observation(env: Any, vector: NDArray[np.float32]) -> Observation:
    return Observation(env.observation_space.devectorize(vector))


def _with_masses(file: Path, config: Any) -> tk.SceneGraph:
    """Return a limb with its masses, whose inertias are in proportion to those of the file."""
    scene = tk.load_scene(file)
    for frame, mass in (
        config.get_limb_body_mass(config.limb_name).link_masses(config.limb_name).items()
    ):
        inertia = scene.inertia(frame)
        ratio = mass / inertia.mass
        scaled = tk.Inertia(mass, inertia.center, matrix=inertia.matrix * ratio)
        scene = scene.set_inertia(frame, scaled)
    return scene


def _resampled(path: _Array, fractions: _Array) -> _Array:
    """Return points of a polyline at fractions of its length."""
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    distances = np.concatenate([[0.0], np.cumsum(lengths)])
    values = [np.interp(fractions * distances[-1], distances, column) for column in path.T]
    return np.column_stack(values)
