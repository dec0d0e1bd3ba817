"""Robot runs of looks, picks and places with errors sampled from their sources.

The *true* scene is one without errors: every edge of the known scene at ``T exp(J w)`` for sources
w that are drawn once a run. Joint noise is along the joints' axes, errors of links are on frames of
their own behind them, so that a draw is the same error at every configuration. Looks are simulated
from the true scene, moves are made in both; slip and the unevenness of a placement are drawn in the
true one.

In the second way of bookkeeping, every edge gets its own marginal covariance anew after each
change, as in a tree of independent covariances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tmkit import GaussianPose, Measurement, NoiseSource, Pose, Revolute, SceneGraph

Array = NDArray[np.float64]

STAGES = ("look", "pick", "carry", "place", "look again", "grasp again")
MILLI = 1e-3
LOOK = np.diag([1.5, 1.5, 3.0, 4.0, 4.0, 3.0]) * MILLI  # standard deviations of a camera pose
SLIP = np.diag([1.0, 0.2, 0.8, 0.5, 3.0, 0.5]) * MILLI  # of a grasp
UNEVEN = np.diag([0.8, 0.8, 0.1, 0.3, 0.3, 2.0]) * MILLI  # of putting down
Q_PICK, Q_CARRY, Q_PLACE, Q_AGAIN = (
    np.array(q) for q in ([0.5, 0.7, -0.9], [-0.2, 0.2, -0.4], [-0.8, 0.6, -1.0], [-0.7, 0.8, -1.1])
)


def known_scene() -> SceneGraph:
    """Return the scene before any look: calibrations, tables, encoders, a rough pose of the cup."""

    def square(linear: float, angular: float) -> Array:
        return np.diag([linear**2] * 3 + [angular**2] * 3) * MILLI**2

    scene = (
        SceneGraph()
        .add_frame(
            "camera",
            "world",
            pose=GaussianPose(Pose.from_rpy([0.4, 0.0, 1.4], [np.pi, 0.1, 0.0]), square(3, 3)),
        )
        .add_frame("table", "world", pose=GaussianPose(Pose([0.5, 0.2, 0.3]), square(4, 2)))
        .add_frame("shelf", "world", pose=GaussianPose(Pose([0.4, -0.5, 0.4]), square(5, 3)))
        .add_frame("base", "world", pose=GaussianPose(covariance=square(2, 2)))
        .add_frame("cup", "table", pose=GaussianPose(Pose([0.05, 0.03, 0.05]), square(10, 15)))
    )
    above = "base"
    for number, (axis, reach) in enumerate(([[0, 0, 1], 0.3], [[0, 1, 0], 0.4], [[0, 1, 0], 0.3])):
        joint = Revolute(axis, name=f"q{number}")
        scene = scene.add_frame(f"joint{number}", above, joint=joint)
        above = f"link{number}"
        pose = Pose([0, 0, reach] if number == 0 else [reach, 0, 0])
        scene = scene.add_frame(above, f"joint{number}", pose=GaussianPose(pose, square(1, 1)))
        scene = scene.add_joint_noise(f"q{number}", (3 * MILLI) ** 2)
    return scene.add_frame("hand", above, pose=Pose([0.1, 0, 0]))


def sample_true_scene(scene: SceneGraph, random: np.random.Generator) -> SceneGraph:
    """Return a true scene without errors: every edge is perturbed by its sources, sampled once."""
    values: dict[NoiseSource, Array] = {}
    true = scene
    for frame in scene.noisy_frames:
        noise = scene.noise(frame)
        assert noise is not None
        xi = np.zeros(6)
        for source in noise.sources:
            if source not in values:
                values[source] = random.normal(size=source.dimension)
            xi += noise.map(source) @ values[source]
        true = true.set_pose(frame, scene.local_pose(frame) @ Pose.exp(xi)).set_covariance(
            frame, None
        )
    return true


def as_independent(scene: SceneGraph) -> SceneGraph:
    """Return the scene with the covariance of every edge from an independent source."""
    covariances = {frame: scene.edge_covariance(frame) for frame in scene.noisy_frames}
    with scene.edit() as edit:
        for frame, covariance in covariances.items():
            edit.set_covariance(frame, covariance)
    return edit.finish()


@dataclass
class Run:
    """One run in the true scene and in its estimate; ``forget`` edits the latter after changes."""

    true: SceneGraph
    known: SceneGraph
    random: np.random.Generator
    forget: Callable[[SceneGraph], SceneGraph]
    estimates: list[tuple[GaussianPose, Pose]] = field(default_factory=list)

    def look(self, q: Array) -> None:
        """See the cup from the camera."""
        seen = self.true.pose("cup", relative_to="camera", q=q) @ Pose.exp(
            LOOK @ self.random.normal(size=6)
        )
        self.known = self.forget(
            self.known.condition(
                Measurement.of_pose("cup", seen, relative_to="camera", covariance=LOOK @ LOOK), q=q
            )
        )

    def hang(self, parent: str, q: Array, root: Array) -> None:
        """Pick or place the cup: it gets another parent and moves by a random slip."""
        self.known = self.forget(self.known.reparent("cup", parent, q=q, covariance=root @ root))
        moved = self.true.reparent("cup", parent, q=q)
        self.true = moved.set_pose(
            "cup", moved.local_pose("cup") @ Pose.exp(root @ self.random.normal(size=6))
        )

    def note(self, reference: str, q: Array) -> None:
        """Record the estimated and the true pose of the cup."""
        estimate = self.known.gaussian_pose("cup", relative_to=reference, q=q)
        self.estimates.append((estimate, self.true.pose("cup", relative_to=reference, q=q)))


def run(
    seed: int, *, forget: Callable[[SceneGraph], SceneGraph], reference: str = "world"
) -> list[tuple[GaussianPose, Pose]]:
    """Return the estimated and the true pose of the cup after each stage of one run.

    Args:
        seed: seed of all samples, which do not depend on ``forget``.
        forget: function applied to the estimate after each change; the identity keeps all.
        reference: frame relative to which the pose of the cup is computed.
    """
    random = np.random.default_rng(seed)
    scene = known_scene()
    trial = Run(sample_true_scene(scene, random), scene, random, forget)
    trial.look(Q_PICK)
    trial.note(reference, Q_PICK)
    trial.hang("hand", Q_PICK, SLIP)
    trial.note(reference, Q_PICK)
    trial.note(reference, Q_CARRY)
    trial.hang("shelf", Q_PLACE, UNEVEN)
    trial.note(reference, Q_PLACE)
    trial.look(Q_PLACE)
    trial.note(reference, Q_PLACE)
    trial.hang("hand", Q_AGAIN, SLIP)
    trial.note(reference, Q_CARRY)
    return trial.estimates


def keep_all(scene: SceneGraph) -> SceneGraph:
    """Return the scene as it is."""
    return scene


def compute_squared_distances(
    runs: int, *, forget: Callable[[SceneGraph], SceneGraph], reference: str
) -> Array:
    """Return (runs, stages) squared Mahalanobis distances of the truth from the estimate."""
    rows = []
    for seed in range(runs):
        row = []
        for estimate, truth in run(seed, forget=forget, reference=reference):
            xi = (estimate.mean.inverse() @ truth).log()
            row.append(float(xi @ np.linalg.solve(estimate.covariance, xi)))
        rows.append(row)
    return np.array(rows)
