"""Grasps as a file has them, before they are related to an object and a hand.

A :class:`PublishedGrasp` has one of two poses. GraspNet and ACRONYM publish the pose of a gripper
of their own, which readers convert to a *fingertip frame*: origin midway between the fingertips, z
along the approach, y from one finger to the other. So the fingertips of another hand come to the
same place. MoveIt publishes the pose of a frame of the user's robot.
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

_MAX_AXIS_ERROR = 1e-3
"""Largest error of the lengths and the scalar product of two axes in a file."""


@dataclass(frozen=True, eq=False)
class PublishedGrasp:
    """One grasp of a file.

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
    position: NDArray[np.float64],
    *,
    approach: NDArray[np.float64],
    closing: NDArray[np.float64],
) -> Pose:
    """Return the pose of a fingertip frame, with orthonormal axes.

    Args:
        path: file of the grasp.
        place: place in the file, for messages.
        position: (3,) point midway between the fingertips [m].
        approach: (3,) direction of the approach, a unit vector up to rounding.
        closing: (3,) direction from one finger to the other, a unit vector up to rounding.

    Raises:
        FileFormatError: if a number is not finite, or the axes are not orthonormal.
    """
    if not np.all(np.isfinite(np.concatenate([position, approach, closing]))):
        raise FileFormatError.at(path, f"{place}: its pose has numbers that are not finite")
    lengths = norm(approach), norm(closing)
    errors = [abs(length - 1.0) for length in lengths] + [abs(dot(approach, closing))]
    if max(errors) > _MAX_AXIS_ERROR:
        raise FileFormatError.at(
            path,
            f"{place}: its axes are no rotation: they have the lengths {lengths[0]:.4g} and"
            f" {lengths[1]:.4g}, and their scalar product is {dot(approach, closing):.4g}",
        )
    approach = approach / lengths[0]
    closing = closing - dot(approach, closing) * approach
    return tool_pose(position, approach, closing / norm(closing))


def require_count(path: Path, count: int) -> None:
    """Check the number of grasps of a file.

    Raises:
        FileFormatError: if there are none or too many.
    """
    if count == 0:
        raise FileFormatError.at(path, "it has no successful grasps")
    if count > MAX_GRASPS:
        raise FileFormatError.at(path, f"it has {count} grasps, expected at most {MAX_GRASPS}")
