"""Grasp value type.

The tool's z axis points at the object and a parallel hand closes along the tool's y axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument
from tmkit.spatial import Pose

FINGER_CLEARANCE = 0.0015
"""Smallest free distance on either side between an object and the open fingers [m]."""


@dataclass(frozen=True)
class Grasp:
    """Pose of the tool at an object, with the gripper widths.

    Attributes:
        object_from_tool: pose of the tool frame relative to the object.
        width: distance between the fingers of the closed grasp [m]. 0 for suction.
        name: description of the grasp.
        opening: distance between the open fingers before the grasp [m]. Defaults to fully open.
    """

    object_from_tool: Pose
    width: float
    name: str
    opening: float | None = None

    def __post_init__(self) -> None:
        check_argument(self.object_from_tool, Pose, "object_from_tool", function="Grasp")


def tool_pose(
    position: NDArray[np.float64], approach: NDArray[np.float64], closing: NDArray[np.float64]
) -> Pose:
    """Return the pose of a tool frame.

    Args:
        position: (3,) position of the tool [m].
        approach: (3,) unit vector along the tool's z axis.
        closing: (3,) unit vector along the tool's y axis.
    """
    (a, b, c), (x, y, z) = closing.tolist(), approach.tolist()
    x_axis = (b * z - c * y, c * x - a * z, a * y - b * x)
    return Pose.from_rotation_matrix(position, np.column_stack([x_axis, closing, approach]))
