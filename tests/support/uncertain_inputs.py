"""Reads what cases of uncertain poses give: lists of poses, numbered ones, edges between named frames, measurements.

Fields are told by name and shape, not by the name of the case. Invariant: what is returned is what stands in the case,
as :class:`~tmkit.spatial.GaussianPose` or arrays; nothing is computed here but exponentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.spatial import GaussianPose, Pose

__all__ = ["Recorded", "array_of", "edges_of", "gaussian_of", "poses_of"]

Array = NDArray[np.float64]

# Words in the names of results and measurements, which are no frames.
_OUTCOMES = {
    *("expected", "fused", "true", "mc", "first", "fourth", "order", "prior", "post", "posterior", "ekf", "iterated"),
    *("meas", "measured", "path", "edges", "step"),
}


class Recorded(dict[str, Any]):
    """A case that remembers which of its fields were read as inputs."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        """Begin with no field read."""
        super().__init__(case)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


def array_of(case: Mapping[str, Any], *names: str) -> Array | None:
    """Return the first field of these names that is there."""
    lower = {key.lower(): key for key in case}
    for name in names:
        value = case.get(lower.get(name.lower(), ""))
        if isinstance(value, (list, int, float)):
            return np.asarray(case[lower[name.lower()]], dtype=float)
    return None


def _pose(matrix: Array) -> Pose:
    if matrix.shape == (4, 4):
        return Pose.from_matrix(matrix)
    return Pose.exp(matrix) if matrix.shape == (6,) else Pose.fromarray_of(matrix)


def gaussian_of(matrix: Array, covariance: Array, left: bool) -> GaussianPose:
    """Return the uncertain pose of a matrix, a logarithm or seven numbers, and a covariance on the right or left."""
    pose = _pose(matrix)
    return GaussianPose.from_left(pose, covariance) if left else GaussianPose(pose, covariance)


def poses_of(case: Mapping[str, Any], left: bool) -> list[GaussianPose]:
    """Return the poses of a chain, or the estimates: lists T and Sigma, or numbered T1, Sigma1, T2, Sigma2, ..."""
    matrices = array_of(case, "T", "T_edges", "edges_T", "poses", "T_list", "xi", "T_step", "T_k")
    covariances = array_of(
        case, "Sigma", "Sigma_edges", "edges_Sigma", "covariances", "S", "Sigma_step", "Sigma_k", "cov"
    )
    if matrices is not None and covariances is not None:
        if matrices.ndim == 3 or (matrices.ndim == 2 and matrices.shape != (4, 4)):
            if covariances.ndim == 2:
                covariances = np.repeat(covariances[None], len(matrices), axis=0)
            return [gaussian_of(T, S, left) for T, S in zip(matrices, covariances, strict=True)]
        count = array_of(case, "K", "steps", "n_steps", "repeat")
        one = gaussian_of(matrices, covariances, left)
        return [one] * (int(count) if count is not None else 1)
    numbered = []
    for i in range(1, 100):
        T = array_of(case, *(f"{name}{gap}{i}" for name in ("T", "xi", "mean", "Tbar", "T_bar") for gap in ("", "_")))
        S = array_of(case, *(f"{name}{gap}{i}" for name in ("Sigma", "S", "cov", "P") for gap in ("", "_")))
        if T is None or S is None:
            break
        numbered.append(gaussian_of(T, np.diag(S) if S.ndim == 1 else S, left))
    return numbered or _steps_of_banana(case, left)


def _steps_of_banana(case: Mapping[str, Any], left: bool) -> list[GaussianPose]:
    """Return K equal steps of length r along x, each with a deviation sigma of the turn about z."""
    K, r, sigma = (
        array_of(case, *names) for names in (("K",), ("r", "step", "length"), ("sigma", "sigma_theta", "std"))
    )
    if K is None or r is None or sigma is None:
        return []
    covariance = np.zeros((6, 6))
    covariance[5, 5] = float(sigma) ** 2
    return [gaussian_of(np.array([float(r), 0.0, 0.0, 0.0, 0.0, 0.0]), covariance, left)] * int(K)


def edges_of(case: Mapping[str, Any]) -> tuple[dict[tuple[str, str], tuple[Array, Array]], set[str]]:
    """Return the edges that are given by the names of two frames, and the fields that they come from."""
    found: dict[tuple[str, str], tuple[Array, Array]] = {}
    used: set[str] = set()
    group: dict[str, str] = {}

    def root(name: str) -> str:
        while name in group:
            name = group[name]
        return name

    for key in case:
        if not key.startswith("T_") or np.shape(case[key]) != (4, 4):
            continue
        suffix = key[2:]
        frames = _frames(suffix)
        covariance = next((name for name in (f"Sigma_{suffix}", f"S_{suffix}", f"cov_{suffix}") if name in case), None)
        if frames is None or covariance is None or root(frames[0]) == root(frames[1]):
            continue
        group[root(frames[1])] = root(frames[0])
        found[frames] = (np.asarray(case[key], dtype=float), np.asarray(case[covariance], dtype=float))
        used |= {key, covariance}
    return found, used


def _frames(suffix: str) -> tuple[str, str] | None:
    words = suffix.split("_")
    if _OUTCOMES & set(words):
        return None
    if len(words) == 2:
        return words[0], words[1]
    if len(words) == 1 and len(suffix) == 2:
        return suffix[0], suffix[1]
    if len(words) == 1 and suffix.lower() in ("c", "common", "shared", "trunk"):
        return "root", "common"
    if len(words) == 1 and suffix.lower() in ("a", "b", "d", "e"):
        return "common", suffix.lower()
    return None
