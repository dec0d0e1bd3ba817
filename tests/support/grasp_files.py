"""Writers of grasp files, as the programs of their publishers write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.spatial import Pose

__all__ = ["acronym_transform", "graspnet_row", "moveit_message", "write_acronym"]


def graspnet_row(
    tip: Pose, *, score: float = 0.5, width: float = 0.06, depth: float = 0.02, object_id: int = -1
) -> NDArray[np.float64]:
    """Return the row (17,) of graspnetAPI for a fingertip frame.

    ``Grasp`` of graspnetAPI has x along the approach, y along the closing direction; its origin is
    ``depth`` behind the fingertips.
    """
    rotation = np.column_stack([tip.rotation[:, 2], tip.rotation[:, 1], -tip.rotation[:, 0]])
    centre = tip.translation - depth * tip.rotation[:, 2]
    return np.array([score, width, 0.02, depth, *rotation.ravel(), *centre, object_id])


def acronym_transform(tip: Pose) -> NDArray[np.float64]:
    """Return the matrix (4, 4) of ACRONYM for a fingertip frame: z approaches, x closes."""
    matrix = np.eye(4)
    matrix[:3, :3] = np.column_stack([tip.rotation[:, 1], -tip.rotation[:, 0], tip.rotation[:, 2]])
    matrix[:3, 3] = tip.translation - 0.11225 * tip.rotation[:, 2]
    return matrix


def write_acronym(
    path: Path, transforms: NDArray[np.float64], qualities: Sequence[int] | None = None
) -> None:
    """Write an HDF5 file with the groups of the data set."""
    import h5py

    with h5py.File(path, "w") as file:
        file["grasps/transforms"] = transforms
        flex = file.create_group("grasps/qualities/flex")
        flex["object_in_gripper"] = np.array(
            [1] * len(transforms) if qualities is None else qualities, dtype=np.int64
        )
        file["gripper/type"] = b"panda"
        file["gripper/configuration"] = np.array([0.04])
        file["object/file"] = b"meshes/Mug/10f6.obj"
        file["object/scale"] = 0.00027


def moveit_message(
    pose: Pose, *, frame_id: str, quality: float = 0.5, opening: float | None = None
) -> dict[str, Any]:
    """Return a moveit_msgs/Grasp as a dictionary, with the fields of ROS 2."""
    x, y, z = pose.translation.tolist()
    qx, qy, qz, qw = pose.quat_xyzw.tolist()
    message: dict[str, Any] = {
        "id": "g",
        "grasp_pose": {
            "header": {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": frame_id},
            "pose": {
                "position": {"x": x, "y": y, "z": z},
                "orientation": {"x": qx, "y": qy, "z": qz, "w": qw},
            },
        },
        "grasp_quality": quality,
        "pre_grasp_approach": {
            "direction": {
                "header": {"frame_id": frame_id},
                "vector": {"x": 0.0, "y": 0.0, "z": -1.0},
            },
            "desired_distance": 0.1,
            "min_distance": 0.05,
        },
    }
    if opening is not None:
        names = ["panda_finger_joint1", "panda_finger_joint2"]
        point = {"positions": [opening / 2, opening / 2], "time_from_start": {"sec": 1}}
        message["pre_grasp_posture"] = {"joint_names": names, "points": [point]}
    return message
