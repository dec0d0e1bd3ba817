"""Grasps as a file has them, before they are related to an object and a hand.

A :class:`PublishedGrasp` has one of two poses. GraspNet and ACRONYM publish the pose of a gripper
of their own, which readers convert to a *fingertip frame*. Its origin is midway between the
fingertips, its z axis along the approach, its y axis from one finger to the other. So the
fingertips of another hand come to the same place. MoveIt publishes the pose of a frame of the
user's robot.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot, norm
from tmkit.errors import FileFormatError
from tmkit.manipulation.grasps.values import tool_pose
from tmkit.spatial import Pose

MAX_GRASPS = 200_000
"""Largest number of grasps in a file."""

_MAX_NUMBER = 1e6
"""Largest number of a pose."""

_MAX_AXIS_ERROR = 1e-3
"""Largest error of a component of an axis in a file."""


@dataclass(frozen=True, eq=False)
class PublishedGrasp:
    """Grasp of a file.

    Attributes:
        pose: reference_from_gripper, the pose of the fingertip frame or of the frame of a robot.
        place: place in the file, for messages and the names of grasps.
        score: quality; a larger one is better.
        opening: distance between the open fingers before the grasp [m]. None if not published.
        reference: frame to which the pose is relative. Empty if the file does not name it.
        object_id: number of the object in the data set. None if not published.
        open_joints: finger joint values before the grasp, by joint [rad or m].
    """

    pose: Pose
    place: str
    score: float = 0.0
    opening: float | None = None
    reference: str = ""
    object_id: int | None = None
    open_joints: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, eq=False)
class PublishedGrasps:
    """Grasps of one file.

    Attributes:
        path: the file.
        publisher: name of the format.
        grasps: grasps in the order of the file.
        has_fingertip_frames: whether the poses are those of the fingertip frame.
        is_symmetric: whether the gripper may be turned by half a turn about the approach.
        notes: properties of the file for the user, such as the mesh of the object.
    """

    path: Path
    publisher: str
    grasps: tuple[PublishedGrasp, ...]
    has_fingertip_frames: bool
    is_symmetric: bool
    notes: tuple[str, ...] = ()


def fingertip_pose(
    path: Path,
    place: str,
    matrix: NDArray[np.float64],
    *,
    approach: int,
    closing: int,
    distance: float,
) -> Pose:
    """Return the pose of a fingertip frame, with orthonormal axes.

    Args:
        path: file of the grasp.
        place: place in the file, for messages.
        matrix: (3, 4) rotation, up to rounding, and origin [m] of the gripper frame.
        approach: axis of the gripper frame along the approach, 0 to 2.
        closing: axis of the gripper frame from one finger to the other.
        distance: distance from its origin to the fingertips along the approach [m].

    Raises:
        FileFormatError: if a number is not finite, or the matrix has no rotation.
    """
    if not np.all(np.abs(matrix) < _MAX_NUMBER):  # NaN is not below, either
        reason = f"{place}: its pose has numbers that are not finite or above {_MAX_NUMBER:g}"
        raise FileFormatError.at(path, reason)
    x, y, z = matrix[:, :3].T
    error = max(
        abs(value)
        for value in (
            norm(x) - 1.0,
            norm(y) - 1.0,
            dot(x, y),
            *(np.array([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2]]) - z[:2]).tolist(),
            float(x[0] * y[1] - x[1] * y[0] - z[2]),
        )
    )
    if error > _MAX_AXIS_ERROR:
        raise FileFormatError.at(
            path,
            f"{place}: its axes are not a rotation: they differ from right-handed, orthonormal axes"
            f" by {error:.2g}, at most {_MAX_AXIS_ERROR:g} is accepted",
        )
    forward = matrix[:, approach] / norm(matrix[:, approach])
    across = matrix[:, closing] - dot(matrix[:, closing], forward) * forward
    return tool_pose(matrix[:, 3] + distance * forward, forward, across / norm(across))


def require_count(path: Path, count: int) -> None:
    """Check the number of grasps of a file.

    Raises:
        FileFormatError: if there are none or too many.
    """
    if count == 0:
        raise FileFormatError.at(path, "it has no successful grasps")
    if count > MAX_GRASPS:
        raise FileFormatError.at(path, f"it has {count} grasps, expected at most {MAX_GRASPS}")
