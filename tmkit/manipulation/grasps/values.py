"""Grasp value type.

The tool's z axis points at the object and a parallel hand closes along the tool's y axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit.spatial import Pose

FINGER_CLEARANCE = 0.0015
"""Metres that must be free on either side between an object and the open fingers."""


@dataclass(frozen=True)
class Grasp:
    """A way of holding an object.

    Attributes:
        object_from_tool: pose of the tool frame relative to the object.
        width: metres between the fingers when they hold; 0 for suction.
        name: the grasp in words.
        opening: metres between the open fingers before the grasp; by default as far as they open.
    """

    object_from_tool: Pose
    width: float
    name: str
    opening: float | None = None


def tool_pose(
    position: NDArray[np.float64], approach: NDArray[np.float64], closing: NDArray[np.float64]
) -> Pose:
    """Return the pose of the tool frame at (3,); its z axis is ``approach``, its y axis ``closing``, unit vectors."""
    (a, b, c), (x, y, z) = closing.tolist(), approach.tolist()
    across = (b * z - c * y, c * x - a * z, a * y - b * x)
    return Pose.from_rotation_matrix(position, np.column_stack([across, closing, approach]))
