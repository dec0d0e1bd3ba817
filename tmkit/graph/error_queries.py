"""The errors of relative poses and twists, source by source."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import NoiseSource, SceneArrays, SceneGraph, path_noise, twist_noise

Matrix = NDArray[np.float64]


def contributions(
    scene: SceneGraph, frame: str, *, relative_to: str | None = None, q: ArrayLike | None = None
) -> tuple[tuple[NoiseSource, Matrix], ...]:
    """Return the share of each source in the covariance of a relative pose. O(depth log n).

    Args:
        scene: the scene.
        frame: the frame.
        relative_to: the frame relative to which its pose is; the root of its tree if omitted.
        q: (n_joints,) configuration, radians or metres; needed where a joint is on the path.

    Returns:
        For each source on the path, in the order of the path down and then up, its (6, 6) share, in the axes of the
        frame: the shares sum to the covariance. A source whose effects cancel has none.

    Raises:
        UnknownNameError: no such frame.
        DisconnectedError: the frames are in different trees.
        ConfigurationError: a joint is on the path and q is missing, or q has the wrong length.
    """
    noise = path_noise(scene, frame, relative_to=relative_to, q=q)
    maps = [] if noise is None else [(source, noise.map(source)) for source in noise.sources]
    return tuple((source, matrix @ matrix.T) for source, matrix in maps)


def twist_covariance(scene: SceneGraph | SceneArrays, frame: str) -> Matrix:
    """Return the covariance (6, 6) of a frame's twist edge, at its origin and in its axes. O(log n).

    Zeros when exact or absent.

    Args:
        scene: the scene; or its arrays, for the writer.
        frame: the frame.

    Raises:
        UnknownNameError: no such frame.
    """
    noise = twist_noise(scene, frame)
    return np.zeros((6, 6)) if noise is None else noise.covariance
