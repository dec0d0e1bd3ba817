"""Repeated measurements of one frame with errors and covariances: data for NEES and NIS.

The truth is drawn from the prior. A pose is measured as sensors and ROS messages have it: the
orientation is the true one turned by noise, the translation the true one moved by noise along the
measured axes. A component of which nothing is known is no noise of a great deviation, which would
turn a pose many times round: it is an arbitrary value of the sensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit import GaussianPose, Measurement, Pose, SceneGraph
from tmkit.graph import innovation
from tmkit.spatial import Retraction

Array = NDArray[np.float64]
Draw = np.random.Generator

START = Pose.from_rpy([0.9, 0.4, -0.3], [0.3, -0.2, 0.4])
"""Mean of the prior, world_from_cup."""
UNKNOWN = 1e6
"""Variance of a component of which nothing is known [m^2 or rad^2], as ROS drivers write it."""
WRITTEN = np.array([0.1, -0.1, 0.05, 0.4, -0.3, 0.5])
"""Error that a sensor writes for unknown components [m, rad]."""
POINT = np.array([0.1, 0.0, 0.05])
"""Point of the cup whose position is measured, in its axes [m]."""
ANCHORS = {"a": [1.5, -1.0, 0.5], "b": [-1.0, 1.0, 1.5], "c": [0.5, 1.5, -2.0]}
"""Frames from which directions and distances are measured, in the world [m]."""


def _with_lever(covariance: Array, lever: Array) -> Array:
    x, y, z = lever
    carry = np.block(
        [[np.eye(3), np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])], [np.zeros((3, 3)), np.eye(3)]]
    )
    return np.asarray(carry @ covariance @ carry.T)


_WIDE = np.diag([1e-2] * 3 + [0.25] * 3)
PRIORS = {
    "wide": _WIDE,
    "tight": np.diag([1e-4] * 3 + [1e-3] * 3),
    "at a lever": _with_lever(np.diag([1e-4] * 3 + [0.09] * 3), np.array([0.0, 0.0, 0.3])),
}
"""Covariance (6, 6) of the frame's edge before any measurement."""

VARIANCES = {
    "strong pose": [1e-4] * 3 + [1e-3] * 3,
    "weak orientation": [1e-4] * 3 + [0.1] * 3,
    "unknown orientation": [1e-4] * 3 + [UNKNOWN] * 3,
    "unknown yaw": [1e-4] * 3 + [1e-4, 1e-4, UNKNOWN],
    "unknown position": [UNKNOWN] * 3 + [1e-3] * 3,
}
"""Variances of the six components of measured poses."""
KINDS = (*VARIANCES, "position", "position of a point", "bearing", "range")


@dataclass(frozen=True)
class Outcome:
    """Result of one run.

    Attributes:
        truth: world_from_cup.
        estimate: the same with its covariance.
        distances: squared Mahalanobis distance of each innovation.
    """

    truth: Pose
    estimate: GaussianPose
    distances: tuple[float, ...]

    @property
    def pose(self) -> tuple[Array, Array]:
        """Error (6,) of the pose, as its covariance has it, and that."""
        covariance = self.estimate.covariance
        return (
            Retraction(covariance).residual(self.estimate.mean.inverse() @ self.truth)[0],
            covariance,
        )

    @property
    def orientation(self) -> tuple[Array, Array]:
        """Error (3,) of the orientation and its covariance, in the cup's axes."""
        return (self.estimate.mean.inverse() @ self.truth).log()[3:], self.estimate.covariance[
            3:, 3:
        ]


def measure_pose(random: Draw, truth: Pose, variances: Array) -> Pose:
    """Return the message of a sensor for a pose."""
    is_unknown = variances >= UNKNOWN
    noise = np.where(
        is_unknown, WRITTEN, random.normal(size=6) * np.sqrt(np.where(is_unknown, 0.0, variances))
    )
    turn, placeholder = np.where(is_unknown, 0.0, noise)[3:], np.where(is_unknown, noise, 0.0)[3:]
    if is_unknown[3:].all():
        turned = START @ Pose.exp([0, 0, 0, *placeholder])
    else:
        turned = truth @ Pose.exp([0, 0, 0, *placeholder]) @ Pose.exp([0, 0, 0, *turn])
    shift = START.translation if is_unknown[:3].all() else truth.translation
    return Pose.from_rotation_matrix(shift + turned.rotation @ noise[:3], turned.rotation)


def measure(kind: str, random: Draw, truth: Pose, number: int) -> Measurement:
    """Return a measurement of the cup."""
    if kind in VARIANCES:
        variances = np.array(VARIANCES[kind])
        pose = measure_pose(random, truth, variances)
        return Measurement.of_pose("cup", pose, relative_to="world", covariance=np.diag(variances))
    if kind.startswith("position"):
        point = POINT if kind.endswith("point") else np.zeros(3)
        place = truth.apply(point) + 0.01 * random.normal(size=3)
        return Measurement.of_position(
            "cup", place, relative_to="world", covariance=1e-4 * np.eye(3), point=point
        )
    anchor, place = list(ANCHORS.items())[number % len(ANCHORS)]
    sight = truth.translation - place
    if kind == "range":
        distance = float(np.linalg.norm(sight)) + 0.03 * random.normal()
        return Measurement.of_range("cup", distance, relative_to=anchor, deviation=0.03)
    across = np.cross(sight, random.normal(size=3))
    angle = 0.005 * np.hypot(*random.normal(size=2))
    turn = Pose.exp([0, 0, 0, *(angle * across / np.linalg.norm(across))])
    return Measurement.of_bearing("cup", turn.rotate(sight), relative_to=anchor, deviation=0.005)


def known_scene(prior: Array) -> SceneGraph:
    """Return the scene before any measurement."""
    scene = SceneGraph()
    for name, place in ANCHORS.items():
        scene = scene.add_frame(name, "world", pose=Pose(place))
    return scene.add_frame("cup", "world", pose=GaussianPose(START, prior))


def run(kind: str, prior: str, *, updates: int, max_iterations: int, seed: int) -> Outcome:
    """Return the result of one run after ``count`` measurements of a kind."""
    random = np.random.default_rng([seed, KINDS.index(kind), list(PRIORS).index(prior)])
    root = np.linalg.cholesky(PRIORS[prior])
    truth = START @ Pose.exp(root @ random.normal(size=6))
    scene, distances = known_scene(PRIORS[prior]), list[float]()
    for number in range(updates):
        seen = measure(kind, random, truth, number)
        distances.append(innovation(scene, seen).squared_mahalanobis)
        scene = scene.condition(seen, max_iterations=max_iterations)
    return Outcome(truth, scene.gaussian_pose("cup", relative_to="world"), tuple(distances))


def normalise_errors(
    outcomes: list[Outcome], part: Callable[[Outcome], tuple[Array, Array]]
) -> float:
    """Return NEES by degrees of freedom, which is 1 if the covariances are right."""
    squared = []
    for outcome in outcomes:
        error, covariance = part(outcome)
        squared.append(float(error @ np.linalg.solve(covariance, error)) / len(error))
    return float(np.mean(squared))
