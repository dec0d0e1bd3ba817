"""Inputs of cases of uncertain poses: lists of poses, edges between frames, measurements.

Fields are read by name and shape, not by the name of the case. Invariant: results are values
of the case, as :class:`~tmkit.spatial.GaussianPose` or arrays; only exponentials are computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.uncertain_answers import is_outcome
from tmkit.spatial import GaussianPose, Pose

__all__ = ["Recorded", "array_of", "edges_of", "gaussian_of", "path_of", "poses_of"]

Array = NDArray[np.float64]
Edges = dict[tuple[str, str], tuple[Any, Any]]

_POSES = (
    "T",
    "T_edges",
    "edges_T",
    "poses",
    "T_list",
    "xi",
    "T_step",
    "T_k",
    "T_chain",
    "means",
    "Tbar",
    "mean",
    "pose",
)
_COVARIANCES = (
    *(
        "Sigma",
        "Sigma_edges",
        "edges_Sigma",
        "covariances",
        "S",
        "Sigma_step",
        "Sigma_k",
        "cov",
        "Sigma_list",
        "Q",
    ),
    *("Sigma_chain", "covariance", "P", "Sigma_diag", "variances"),
)
_ENDS = (
    ("source", "target"),
    ("from", "to"),
    ("start", "end"),
    ("reference", "target"),
    ("a", "b"),
    ("src", "dst"),
)


class Recorded(dict[str, Any]):
    """A case that records which of its fields were read as inputs."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        """Begin with no field read."""
        super().__init__(case)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


def array_of(case: Mapping[str, Any], *names: str) -> Array | None:
    """Return the first field of these names that is there and holds numbers."""
    lower = {key.lower(): key for key in case}
    for name in names:
        value = case.get(lower.get(name.lower(), ""))
        if isinstance(value, bool) or not isinstance(value, (list, int, float, np.ndarray)):
            continue
        if isinstance(value, list) and value and isinstance(value[0], dict):
            continue
        return np.asarray(case[lower[name.lower()]], dtype=float)
    return None


def _pose(matrix: Array) -> Pose:
    if matrix.shape == (4, 4):
        return Pose.from_matrix(matrix)
    return Pose.exp(matrix) if matrix.shape == (6,) else Pose.from_array(matrix)


def gaussian_of(matrix: Any, covariance: Any, left: bool) -> GaussianPose:
    """Return the uncertain pose of a matrix, a logarithm or seven numbers, and a covariance.

    The covariance is on the right or left.

    Six numbers in place of a covariance are its diagonal.
    """
    pose, matrix_or_diagonal = (
        _pose(np.asarray(matrix, dtype=float)),
        np.asarray(covariance, dtype=float),
    )
    spread = np.diag(matrix_or_diagonal) if matrix_or_diagonal.shape == (6,) else matrix_or_diagonal
    return GaussianPose.from_left(pose, spread) if left else GaussianPose(pose, spread)


def poses_of(case: Mapping[str, Any], left: bool) -> list[GaussianPose]:
    """Return the poses of a chain, or the estimates: lists T and Sigma, or T1, Sigma1, T2, ..."""
    matrices, covariances = array_of(case, *_POSES), array_of(case, *_COVARIANCES)
    if matrices is not None and covariances is not None:
        if matrices.ndim == 3 or (matrices.ndim == 2 and matrices.shape != (4, 4)):
            if covariances.ndim == 1 or covariances.shape == (6, 6):
                covariances = np.repeat(covariances[None], len(matrices), axis=0)
            return [gaussian_of(T, S, left) for T, S in zip(matrices, covariances, strict=True)]
        count = array_of(case, "K", "steps", "n_steps", "repeat", "count")
        single = gaussian_of(matrices, covariances, left)
        return [single] * (int(count) if count is not None else 1)
    up = [array_of(case, f"{name}_up") for name in ("T", "Sigma")]
    down = [array_of(case, f"{name}_down") for name in ("T", "Sigma")]
    if up[0] is not None and down[0] is not None:
        rows = [
            [gaussian_of(T, S, left) for T, S in zip(*part, strict=True)] for part in (up, down)
        ]
        return [*(pose.inverse() for pose in rows[0]), *rows[1]]
    numbered = []
    for i in range(1, 1000):
        T, S = (
            _numbered_values(case, r"T|xi|mean|Tbar|T_bar|pose|X", i),
            _numbered_values(case, r"Sigma|S|cov|P|covariance", i),
        )
        if T is None or S is None:
            break
        numbered.append(gaussian_of(T, S, left))
    return numbered or _steps_of_banana(case, left)


def _numbered_values(case: Mapping[str, Any], names: str, number: int) -> Array | None:
    """Return the input of a number: ``S1``, ``Sigma_1`` or ``S1_base``."""
    pattern = re.compile(rf"(?:{names})_?{number}(?:_[a-z]\w*)?", re.IGNORECASE)
    for key in case:
        if pattern.fullmatch(key) and not is_outcome(key):
            return array_of(case, key)
    return None


def _steps_of_banana(case: Mapping[str, Any], left: bool) -> list[GaussianPose]:
    """Return K equal steps of length r along x, each with a deviation sigma of the turn about z."""
    K, r, sigma = (
        array_of(case, *names)
        for names in (
            ("K", "steps"),
            ("r", "step", "length"),
            ("sigma", "sigma_theta", "std", "sigma_phi"),
        )
    )
    if K is None or r is None or sigma is None:
        return []
    covariance = np.zeros((6, 6))
    covariance[5, 5] = float(sigma) ** 2
    return [gaussian_of(np.array([float(r), 0.0, 0.0, 0.0, 0.0, 0.0]), covariance, left)] * int(K)


# ---------------------------------------------------------------------------------- edges and trees


def edges_of(case: Mapping[str, Any]) -> tuple[Edges, set[str]]:
    """Return the edges whose fields are named by two frames, and the names of these fields."""
    listed = _read_listed_edges(case)
    if listed:
        return listed
    edges: Edges = {}
    used: set[str] = set()
    group: dict[str, str] = {}

    def root(name: str) -> str:
        while name in group:
            name = group[name]
        return name

    for key in case:
        if not re.match(r"T_|xi_", key) or np.shape(case[key]) not in ((4, 4), (6,), (7,)):
            continue
        suffix = key.partition("_")[2]
        frames = _frames(suffix)
        covariance = next(
            (name for name in (f"Sigma_{suffix}", f"S_{suffix}", f"cov_{suffix}") if name in case),
            None,
        )
        if frames is None or covariance is None or root(frames[0]) == root(frames[1]):
            continue
        group[root(frames[1])] = root(frames[0])
        edges[frames] = (case[key], case[covariance])
        used |= {key, covariance}
    return edges, used


def _frames(suffix: str) -> tuple[str, str] | None:
    words = suffix.split("_")
    if is_outcome(suffix.lower()) or {"meas", "measured", "path", "edges", "step", "z"} & set(
        suffix.lower().split("_")
    ):
        return None
    if len(words) == 2:
        return words[0], words[1]
    if len(words) == 1 and len(suffix) == 2:
        return suffix[0], suffix[1]
    if len(words) == 1 and suffix.lower() in ("c", "common", "shared", "trunk"):
        return "root", "common"
    if len(words) == 1 and suffix.isalpha():
        return "common", suffix.lower()
    return None


def _read_listed_edges(case: Mapping[str, Any]) -> tuple[Edges, set[str]] | None:
    """Return the edges of a tree: records with parent and child, or lists beside parents."""
    for key, value in case.items():
        rows = (
            [{"child": name, **row} for name, row in value.items() if isinstance(row, Mapping)]
            if (isinstance(value, Mapping))
            else value
        )
        if (
            key.lower() not in ("edges", "tree", "frames", "nodes")
            or not isinstance(rows, list)
            or not rows
        ):
            continue
        if not isinstance(rows[0], Mapping):
            continue
        edges = {}
        for row in rows:
            ends = [
                _first(row, *names)
                for names in (("parent", "from", "tail"), ("child", "to", "head", "name", "frame"))
            ]
            matrix, spread = _first(row, *_POSES), _first(row, *_COVARIANCES)
            if ends[0] is None or matrix is None:
                continue  # the root
            edges[(str(ends[0]), str(ends[1]))] = (
                matrix,
                np.zeros((6, 6)) if spread is None else spread,
            )
        return edges, {key}
    matrices, spreads = array_of(case, *_POSES), array_of(case, *_COVARIANCES)
    if matrices is None or spreads is None or matrices.ndim != 3:
        return None
    parents = next(
        (name for name in ("parents", "parent") if isinstance(case.get(name), list)), None
    )
    above = case[parents] if parents is not None else _heap(case, len(matrices))
    if above is None:
        return None
    skipped = len(above) - len(matrices)  # the root has a parent of none, and no pose
    names = next((case[name] for name in _CHILDREN if name in case), None)
    if names is None:  # numbered from the least number that is a parent, the root
        first = min(above[skipped:])
        names = range(first + 1, first + 1 + len(matrices))
    pairs = zip(
        above[skipped:], names[len(names) - len(matrices) :], matrices, spreads, strict=True
    )
    entries = {
        name for name in ("parents", "parent", *_CHILDREN, *_POSES, *_COVARIANCES) if name in case
    }
    return {(str(a), str(b)): (T, S) for a, b, T, S in pairs}, entries


_CHILDREN = ("names", "nodes", "frames", "children", "child")


def _heap(case: Mapping[str, Any], count: int) -> list[int] | None:
    """Return the parents of a complete binary tree of numbered nodes, for a case with two nodes."""
    match = re.search(r"n(\d+)_to_n(\d+)", str(case.get("name", "")))
    if match is None or (count + 2) & (count + 1) or max(map(int, match.groups())) > count + 1:
        return None
    return [node // 2 for node in range(2, count + 2)]


def _first(row: Mapping[str, Any], *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def path_of(case: Mapping[str, Any], names: list[str]) -> tuple[str, str] | None:
    """Return the target and reference of a case: from fields, or from its name."""
    for reference, target in _ENDS:
        ends = [
            str(case[name])
            for name in (reference, target)
            if isinstance(case.get(name), (str, int))
        ]
        if len(ends) == 2 and set(ends) <= set(names):
            return ends[0], ends[1]
    query = case.get("query", case.get("path"))
    if isinstance(query, list) and len(query) >= 2:
        ends = [str(query[0]), str(query[-1])]
        return (ends[0], ends[1]) if set(ends) <= set(names) else None
    match = re.search(r"(\w+?)_to_(\w+)", str(case.get("name", "")))
    if match is None:
        return None
    for strip in ("", "n"):  # n16 is the node 16
        ends = [
            part.rsplit("_", 1)[-1].lstrip(strip) if strip else part.rsplit("_", 1)[-1]
            for part in match.groups()
        ]
        if set(ends) <= set(names):
            return ends[0], ends[1]
    return None
