"""Comparing a loaded robot description with pinocchio, at random configurations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from support.urdf_oracle import UrdfOracle
from tmkit.graph import SceneGraph
from tmkit.spatial import Pose

__all__ = ["Difference", "example_robot_data", "pybullet_data", "worst_difference"]


@dataclass(frozen=True)
class Difference:
    """Largest differences between two robots.

    Attributes:
        entry: the largest difference of two entries of the 4 x 4 transforms of a link, [m] in
            the last column.
        links: how many links were compared.
        mended: whether pinocchio got a mended copy of the file.
    """

    entry: float
    links: int
    mended: bool


def pybullet_data() -> Path:
    """Return the folder of the package."""
    import pybullet_data as package

    return Path(package.getDataPath())


def example_robot_data() -> Path:
    """Return the folder of the package's robots, which lies beside pinocchio."""
    import pinocchio

    return Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots"


def worst_difference(
    path: Path, scene: SceneGraph, *, configurations: int, seed: int = 0
) -> Difference:
    """Compare every link at random configurations within the limits; free edges stand anywhere too.

    Args:
        path: the description.
        scene: scene of the robot alone.
        configurations: how many.
        seed: of the random numbers.

    Raises:
        ValueError: if pinocchio cannot read the file, or has other links.
    """
    oracle = UrdfOracle(path)
    links = (
        set(scene.frame_names)
        - {"world"}
        - {name for name in scene.frame_names if _is_between(name, scene)}
    )
    if links != set(oracle.links) - {"world"}:
        raise ValueError(f"{path}: other links: {sorted(links ^ set(oracle.links))}")
    rows = [scene.frame_names.index(link) for link in oracle.links]
    rng = np.random.default_rng(seed)
    lower, upper = _ranges(scene)
    children = _children_of_free_joints(scene, oracle)
    worst = 0.0
    for _ in range(configurations):
        q = rng.uniform(lower, upper)
        free = {joint: _random_pose(rng) for joint in children}
        moved = scene
        for joint, child in children.items():
            moved = moved.set_pose(child, scene.local_pose(child) @ free[joint])
        expected = oracle.placements(
            dict(zip(scene.joint_names, q.tolist(), strict=True)),
            free={joint: pose.as_array() for joint, pose in free.items()},
        )
        transforms = _matrices(np.asarray(moved.at(q).poses)[rows])
        worst = max(worst, float(np.abs(transforms - expected).max()))
    return Difference(worst, len(rows), oracle.mended)


def _is_between(name: str, scene: SceneGraph) -> bool:
    """Return whether a frame is inside a joint of several degrees of freedom."""
    return scene.joint(name).name == name and name.rpartition("/")[2] in ("x", "y")


def _ranges(scene: SceneGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the range of every joint, limited to half a turn or 0.5 m where it is unlimited."""
    limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
    return np.maximum(limits[:, 0], np.minimum(-math.pi, limits[:, 1])), np.minimum(
        limits[:, 1], np.maximum(math.pi, limits[:, 0])
    )


def _children_of_free_joints(scene: SceneGraph, oracle: UrdfOracle) -> dict[str, str]:
    """Return the link below every free joint."""
    model = oracle.model
    free = {}
    for joint in oracle.free_joints:
        index = model.getJointId(joint)
        (child,) = (
            frame.name
            for frame in model.frames
            if frame.parentJoint == index
            and frame.name in oracle.links
            and scene.joint(frame.name).type == "free"
        )
        free[joint] = child
    return free


def _random_pose(rng: np.random.Generator) -> Pose:
    """Return a pose anywhere within a metre, turned any way."""
    return Pose(rng.uniform(-1.0, 1.0, 3), rng.normal(size=4))


def _matrices(poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, 4, 4) transforms of (n, 7) poses, xyz and quaternion xyzw."""
    x, y, z, w = poses[:, 3:].T
    matrices = np.zeros((len(poses), 4, 4))
    matrices[:, :3, 3], matrices[:, 3, 3] = poses[:, :3], 1.0
    matrices[:, 0, 0], matrices[:, 1, 1] = 1 - 2 * (y * y + z * z), 1 - 2 * (x * x + z * z)
    matrices[:, 2, 2] = 1 - 2 * (x * x + y * y)
    matrices[:, 0, 1], matrices[:, 1, 0] = 2 * (x * y - z * w), 2 * (x * y + z * w)
    matrices[:, 0, 2], matrices[:, 2, 0] = 2 * (x * z + y * w), 2 * (x * z - y * w)
    matrices[:, 1, 2], matrices[:, 2, 1] = 2 * (y * z - x * w), 2 * (y * z + x * w)
    return matrices
