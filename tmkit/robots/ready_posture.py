"""Ready posture of an arm: the tool points down at work in front of the robot.

              _____
    second   /     |     reach: largest distance of the tool from the second joint
    joint   o      v     distance, height: from the second joint to the tool
            |    tool    front: the x axis of the robot's first link (ROS REP 103)
    ________|__ base     (where the tool is elsewhere in the middle of the limits: that way)

Configurations are sampled in which each joint is at the middle of its limits with probability one
half, like the roll joints of a natural posture. Where the tool points almost down, the smallest
motion of the joints turns it straight down. The best of these configurations without collisions is
improved by samples around it. The score is a product of

* **dexterity**: smallest singular value of the tool's Jacobian, with angular rows times the reach
  (one of the measures in Yoshikawa, "Manipulability of robotic mechanisms", 1985);
* **place**: the tool in front, at half the reach, near the height of the second joint;
* **clearance**: no joint after the second below the tool, where a table would be;
* **limits**: distance to the nearest limit, as a fraction of half the range of the joint;
* **middle**: joints near the middle of their limits.

An arm whose tool cannot point down gets the free configuration nearest to the middle. A pair of
links that collides in every sample is not checked, such as the closed fingers of another hand.

The result depends on the scene, the arm and the seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._core import CollisionWorld, symmetric_eigen
from tmkit._support.elementary import atan2, dot, norm, norms, product
from tmkit.graph import SceneGraph

Array = NDArray[np.float64]

_N_SAMPLES = 20_000
"""Number of configurations that are sampled in the first round."""

_N_NEAR_SAMPLES = 200
"""Number of configurations that are sampled around the best one in each further round."""

_RADII = (0.2, 0.1, 0.05)
"""Largest deviations from the best configuration in further rounds, as fractions of a range."""

_N_CANDIDATES = 100
"""Number of configurations that are corrected in each round."""

_N_MIDDLE_SAMPLES = 500
"""Number of configurations of which the nearest to the middle is selected."""

_N_OVERLAP_SAMPLES = 20
"""Number of configurations in which a pair of links must collide to be ignored."""

_MIN_DOWNWARD = 0.8
"""Smallest downward component of the tool's z axis before the correction."""

_MIN_REACH = 1e-3
"""Reach below which the tool does not move [m]."""

_MIN_DEVIATION = 1e-5
"""Difference from the middle above which the correction may move a joint at first [rad or m]."""

_LIMIT_MARGIN = 0.1
"""Distance from a limit above which it has no effect, as a fraction of half the range."""

_MIN_FRONT_COSINE = 0.5
"""Cosine of the angle between the x axis and the tool in the middle of the limits, for a front."""

_MIN_FRONT_DISTANCE = 0.3
"""Horizontal distance of the tool in the middle of the limits above which it has a direction."""

_BEST_DISTANCE = 0.5
"""Best horizontal distance of the tool from the second joint, as a fraction of the reach."""

_BEST_HEIGHT = 0.05
"""Best height of the tool above the second joint, as a fraction of the reach."""

_PLACE_SCALE = 0.2
"""Deviation from the best distance or height that halves the score, as a fraction of the reach."""

_DEPTH_SCALE = 0.1
"""Deviation below the best height that halves the score, as a fraction of the reach."""

_CLEARANCE_SCALE = 0.1
"""Depth of a joint below the tool that halves the score, as a fraction of the reach."""

_MIDDLE_SCALE = math.sqrt(0.5)
"""Root mean square deviation from the middle that halves the score, as a fraction of a range."""

_MAX_ANGLE = 0.01
"""Largest angle between the tool and straight down after the correction [rad]."""

_CONVERGED_ANGLE = 1e-7
"""Angle between the tool and straight down at which the correction ends [rad]."""

_DAMPING_FACTOR = 1e-9
"""Damping of the correction, for arms whose joints turn the tool in one plane alone."""

_MAX_STEPS = 12
"""Number of steps after which the correction fails."""


def ready_posture(
    scene: SceneGraph,
    *,
    joints: Sequence[str],
    tool: str,
    other_values: Mapping[str, float],
    seed: int = 0,
) -> dict[str, float]:
    """Return joint values at which the tool points down in front of the robot [rad or m].

    The docstring of this module describes the posture. It takes about 0.3 s.

    Args:
        scene: scene with the robot, preferably without other bodies.
        joints: joints of the arm from base to tip.
        tool: frame of the tool, whose z axis points away from the hand.
        other_values: values of other joints, such as those of the open hand [rad or m].
        seed: seed of the sampled configurations.

    Returns:
        Values by joint, rounded to six digits.
    """
    samples = _ArmSamples(scene, joints, other_values, seed)
    row = _PostureSearch(samples, tool).best_row()
    return samples.values(samples.free_row_near_middle() if row is None else row)


def middle_posture(
    scene: SceneGraph, *, joints: Sequence[str], other_values: Mapping[str, float], seed: int = 0
) -> dict[str, float]:
    """Return joint values of a free configuration near the middle of the limits [rad or m].

    Args:
        scene: scene with the robot.
        joints: joints of the arm.
        other_values: values of other joints, such as those of the open hand [rad or m].
        seed: seed of the sampled configurations.

    Returns:
        Values by joint, rounded to six digits: the middle itself if all configurations collide.
    """
    samples = _ArmSamples(scene, joints, other_values, seed)
    return samples.values(samples.free_row_near_middle())


def point_down(scene: SceneGraph, q: Array, *, joints: Sequence[str], tool: str) -> Array | None:
    """Return a configuration near another in which a tool points straight down, or None.

    Each step is the smallest motion that turns the z axis of the tool to the root's -z, to first
    order (Newton's method with damped least squares). The position of the tool and the rotation
    about its z axis are free, so that arms of four joints have solutions.

    Args:
        scene: scene with the robot.
        q: (n_joints,) configuration within the limits.
        joints: joints that may move.
        tool: frame of the tool.

    Returns:
        (n_joints,) configuration within the limits. None if the steps do not converge to 0.01 rad.
    """
    q, columns = np.array(q), [scene.joint_names.index(joint) for joint in joints]
    limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
    angle = math.inf
    for _ in range(_MAX_STEPS):
        kinematics = scene.at(q)
        x, y, z = np.asarray(kinematics.pose(tool).rotation)[:, 2].tolist()
        sine = math.hypot(x, y)
        angle = atan2(sine, -z)
        if angle < _CONVERGED_ANGLE:
            break
        # The axis of the rotation, z axis cross down, is horizontal.
        error = np.array([-y, x]) * (angle / max(sine, 1e-12))
        rows = np.asarray(kinematics.jacobian(tool))[3:5, columns]
        (a, b), (_, d) = product(rows, rows.T) + _DAMPING_FACTOR * np.eye(2)
        multipliers = np.array([d * error[0] - b * error[1], a * error[1] - b * error[0]])
        q[columns] += product(multipliers / (a * d - b * b), rows)
        q = np.clip(q, limits[:, 0], limits[:, 1])
    return q if angle < _MAX_ANGLE else None


class _ArmSamples:
    """Random configurations of an arm; arguments as of :func:`middle_posture`.

    Attributes:
        scene: scene with the robot.
        joints: joints of the arm.
        columns: indices of the joints in a configuration.
        middle: (n,) middle of the limits, 0 for joints without limits [rad or m].
        half_range: (n,) half the difference of the limits [rad or m].
        is_limited: (n,) whether a joint has limits.
        spread: (n,) largest deviation of a sample from the middle, at most half a turn [rad or m].
        seed: seed of the samples.
        world: collision world without the pairs that always collide.
    """

    def __init__(
        self, scene: SceneGraph, joints: Sequence[str], other_values: Mapping[str, float], seed: int
    ) -> None:
        self.scene, self.joints, self.seed = scene, tuple(joints), seed
        self.columns = [scene.joint_names.index(joint) for joint in joints]
        self._rest = scene.configuration(other_values)
        self._limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
        low, high = self._limits[self.columns].T
        self.is_limited = np.isfinite(low) & np.isfinite(high)
        finite_low = np.where(self.is_limited, low, 0.0)
        finite_high = np.where(self.is_limited, high, 0.0)
        self.middle = np.clip(0.5 * (finite_low + finite_high), low, high)
        self.half_range = np.where(self.is_limited, 0.5 * (finite_high - finite_low), np.pi)
        self.half_range = np.maximum(self.half_range, 1e-9)
        self.spread = np.minimum(self.half_range, np.pi)
        self.world = self._collision_world()

    def _collision_world(self) -> CollisionWorld:
        """Return a collision world without the pairs that collide in all of some samples."""
        world = CollisionWorld(self.scene)
        values = self.middle + self.deviations(_N_OVERLAP_SAMPLES, probability=1.0)
        pairs = [
            {(contact.frame_a, contact.frame_b) for contact in contacts}
            for contacts in world.contacts_batch(self.rows(values))
        ]
        ignored = dict.fromkeys(set.intersection(*pairs), -math.inf)
        return CollisionWorld(self.scene, pair_margins=ignored) if ignored else world

    def deviations(self, count: int, *, probability: float) -> Array:
        """Return (count, n) random differences of joint values from those of a configuration.

        Args:
            count: number of samples.
            probability: probability that a joint deviates at all.
        """
        generator = np.random.default_rng(self.seed)
        shape = (count, len(self.columns))
        values = generator.uniform(-self.spread, self.spread, shape)
        return np.where(generator.random(shape) < probability, values, 0.0)

    def rows(self, values: Array) -> Array:
        """Return configurations (m, n_joints) with rounded values (m, n) of the arm's joints."""
        rows = np.tile(self._rest, (len(values), 1))
        rows[:, self.columns] = np.round(values, 6) + 0.0  # -0.0 becomes 0.0
        return np.clip(rows, self._limits[:, 0], self._limits[:, 1])

    def values(self, row: Array) -> dict[str, float]:
        """Return the values of the arm's joints in a configuration (n_joints,)."""
        return {
            joint: float(row[column])
            for joint, column in zip(self.joints, self.columns, strict=True)
        }

    def free_row_near_middle(self) -> Array:
        """Return the free sample (n_joints,) nearest to the middle, or the middle without any."""
        deviations = self.deviations(_N_MIDDLE_SAMPLES, probability=1.0)
        deviations[0] = 0.0
        order = np.argsort(norms(deviations), kind="stable")
        rows = self.rows(self.middle + deviations[order])
        row: Array = rows[int(np.argmax(~self.world.in_collision_batch(rows)))]
        return row


class _PostureSearch:
    """Search for the ready posture of an arm with a tool."""

    def __init__(self, samples: _ArmSamples, tool: str) -> None:
        self._samples, self._scene, self._tool = samples, samples.scene, tool
        self._values = samples.middle + samples.deviations(_N_SAMPLES, probability=0.5)
        positions, _ = self._tool_lines(samples.rows(self._values))
        middle_row = samples.rows(samples.middle[None])[0]
        self._second_joint = self._joint_positions(middle_row)[:2][-1]
        self._reach = float(norms(positions - self._second_joint).max())
        base = str(self._scene.parent(self._scene.joint_frame(samples.joints[0])))
        path = (base, *self._scene.ancestors(base))
        first_link = path[max(len(path) - 2, 0)]
        self._front = np.asarray(self._scene.pose(first_link, q=middle_row).rotation)[:, 0]
        (position,), _ = self._tool_lines(middle_row[None])
        direction = (position - self._second_joint) * (1.0, 1.0, 0.0)
        length = norm(direction)
        is_ahead = dot(direction, self._front) > _MIN_FRONT_COSINE * length
        if length > _MIN_FRONT_DISTANCE * self._reach and not is_ahead:
            self._front = direction / length

    def best_row(self) -> Array | None:
        """Return the best configuration (n_joints,) with the tool down, or None without any."""
        if self._reach < _MIN_REACH:
            return None
        rows = self._candidates(self._values)
        if not len(rows):
            return None
        best: Array = rows[int(np.argmax(self._scores(rows)))]
        for radius in _RADII:
            deviations = radius * self._samples.deviations(_N_NEAR_SAMPLES, probability=0.5)
            rows = self._candidates(best[self._samples.columns] + deviations)
            rows = np.vstack([best, rows])
            best = rows[int(np.argmax(self._scores(rows)))]
        return best

    def _candidates(self, values: Array) -> Array:
        """Return the most promising free configurations (k, n_joints) with the tool straight down.

        Args:
            values: (m, n) values of the arm's joints [rad or m].
        """
        rows = self._samples.rows(values)
        positions, directions = self._tool_lines(rows)
        is_down = -directions[:, 2] > _MIN_DOWNWARD
        rows, positions = rows[is_down], positions[is_down]
        scores = self._place_factors(positions) * self._joint_factors(rows)
        order = np.argsort(-scores, kind="stable")[:_N_CANDIDATES]
        corrected = [row for index in order if (row := self._correct(rows[index])) is not None]
        rows = np.reshape(corrected, (len(corrected), rows.shape[1]))
        return rows[~self._samples.world.in_collision_batch(rows)] if len(rows) else rows

    def _correct(self, row: Array) -> Array | None:
        """Return a configuration (n_joints,) near another with the tool straight down, or None.

        Joints at the middle of their limits stay there if possible.
        """
        samples = self._samples
        is_moved = np.abs(row[samples.columns] - samples.middle) > _MIN_DEVIATION
        moved = [joint for joint, moves in zip(samples.joints, is_moved, strict=True) if moves]
        for joints in (moved, samples.joints):
            q = point_down(self._scene, row, joints=joints, tool=self._tool)
            if q is not None:
                corrected: Array = samples.rows(q[None, samples.columns])[0]
                return corrected
        return None

    def _scores(self, rows: Array) -> Array:
        """Return the scores (m,) of configurations (m, n_joints) [m]."""
        positions, _ = self._tool_lines(rows)
        factors = [self._dexterity(row) * self._clearance_factor(row) for row in rows]
        return np.array(factors) * self._place_factors(positions) * self._joint_factors(rows)

    def _dexterity(self, row: Array) -> float:
        """Return the smallest singular value of the Jacobian at a configuration (n_joints,) [m]."""
        jacobian = np.array(self._scene.at(row).jacobian(self._tool))[:, self._samples.columns]
        jacobian[3:] *= self._reach
        if jacobian.shape[1] < jacobian.shape[0]:
            jacobian = jacobian.T
        eigenvalues, _ = symmetric_eigen(product(jacobian, jacobian.T))
        return math.sqrt(max(float(eigenvalues[0]), 0.0))

    def _place_factors(self, positions: Array) -> Array:
        """Return the factors (m,) of tool positions (m, 3): front, distance and height."""
        offsets = positions - self._second_joint
        horizontal = offsets * (1.0, 1.0, 0.0)
        distances = norms(horizontal)
        cosines = np.maximum(product(horizontal, self._front) / np.maximum(distances, 1e-9), 0.0)
        distance_errors = distances / self._reach - _BEST_DISTANCE
        height_errors = offsets[:, 2] / self._reach - _BEST_HEIGHT
        height_scales = np.where(height_errors < 0.0, _DEPTH_SCALE, _PLACE_SCALE)
        factors: Array = (
            (cosines * cosines)
            * _halving_factor(distance_errors / _PLACE_SCALE)
            * _halving_factor(height_errors / height_scales)
        )
        return factors

    def _clearance_factor(self, row: Array) -> float:
        """Return the factor of the joints after the second in a configuration (n_joints,)."""
        heights = self._joint_positions(row)[2:, 2]
        tool_height = float(self._scene.pose(self._tool, q=row).translation[2])
        depth = max(0.0, tool_height - float(heights.min())) if len(heights) else 0.0
        return float(_halving_factor(np.asarray(depth / (_CLEARANCE_SCALE * self._reach))))

    def _joint_factors(self, rows: Array) -> Array:
        """Return the factors (m,) of limits and middle of configurations (m, n_joints)."""
        samples = self._samples
        deviations = np.abs(rows[:, samples.columns] - samples.middle)
        margins = np.where(samples.is_limited, 1.0 - deviations / samples.half_range, 1.0)
        limit_factors = np.clip(margins.min(axis=1) / _LIMIT_MARGIN, 0.0, 1.0)
        shares = deviations / samples.spread
        root_mean_squares = np.sqrt(np.mean(shares * shares, axis=1))
        factors: Array = limit_factors * _halving_factor(root_mean_squares / _MIDDLE_SCALE)
        return factors

    def _tool_lines(self, rows: Array) -> tuple[Array, Array]:
        """Return positions (m, 3) [m] and z axes (m, 3) of the tool, in root axes.

        Args:
            rows: (m, n_joints) configurations.
        """
        poses = np.asarray(self._scene.pose_batch(self._tool, q=rows))
        positions, (x, y, z, w) = poses[:, :3], poses[:, 3:].T
        axes = (2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y))
        return positions, np.stack(axes, axis=1)

    def _joint_positions(self, row: Array) -> Array:
        """Return the positions (n, 3) of the arm's joints in a configuration (n_joints,) [m]."""
        kinematics = self._scene.at(row)
        frames = (self._scene.joint_frame(joint) for joint in self._samples.joints)
        return np.array([kinematics.pose(frame).translation for frame in frames])


def _halving_factor(deviations: Array) -> Array:
    """Return factors (m,) that are 1 at a deviation of 0, and one half at 1."""
    factors: Array = 1.0 / (1.0 + deviations * deviations)
    return factors
