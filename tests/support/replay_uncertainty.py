"""Replays the cases of ``tests/data/uncertainty.json`` through the public interface: uncertain poses, field by field.

A case has poses ``T...`` with covariances ``Sigma...`` and a ``kind``: a chain that is composed, an inverse, leaves
that share an edge, estimates that are fused, a chain that is conditioned on a measurement. The answer is a dictionary
in which every field of the case that can be computed stands under its own key, beside ``mean`` and ``covariance``.

How fields are read: *what* is given is told by name and shape. Two names in one (``T_root_common``, ``T_ab``) are the
frames of an edge; an edge between frames that earlier ones connect already is asked for, not given. Each computed value
is put on a shelf with the words that describe it; a field takes the value of its quantity and shape with which it has
most words in common. No case is known by its content.

Cases that say ``left`` (or ``barfoot``, whose convention it is) have errors on the left: T = exp(xi) mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.uncertain_inputs import Recorded, array_of, edges_of, gaussian_of, poses_of
from tmkit.spatial import (
    GaussianPose,
    JointGaussianPose,
    Pose,
    PoseMeasurement,
    compose,
    condition,
    fuse,
    sampling_floor,
)

__all__ = ["replay_uncertainty"]

Array = NDArray[np.float64]

_QUANTITIES = {
    "T": {"t", "mean", "pose", "tbar", "map"},
    "S": {"sigma", "s", "p", "cov", "covariance", "joint", "joint12", "cross"},
    "xi": {"xi", "delta", "dx", "correction", "shift", "mu", "x", "mean"},
    "cost": {"cost", "objective"},
    "count": {"iterations", "iters", "iteration", "steps"},
    "corr": {"corr", "correlation"},
    "z": {"innovation", "z", "residual"},
    "ratio": {"over"},
    "distance": {"vs", "eps", "fro", "err", "error"},
    "floor": {"floor"},
}
_SAME_WORD = {
    "1st": "first",
    "2nd": "first",  # second order in the errors is first order in the covariances
    "second": "first",
    "4th": "fourth",
    "iter": "iterated",
    "iekf": "iterated",
    "gn": "iterated",
    "map": "iterated",
    "converged": "iterated",
    "naive": "dropped",
    "independent": "dropped",
    "information": "infosum",
    "marginal": "marginals",
    "posteriors": "posterior",
    "post": "posterior",
}


@dataclass
class _Shelf:
    """What was computed, each value with its quantity and the words that describe it."""

    values: list[tuple[str, frozenset[str], Any]] = field(default_factory=list)

    def put(self, quantity: str, words: str, value: Any) -> None:
        self.values.append((quantity, frozenset(words.split()), value))

    def pose(self, words: str, pose: GaussianPose, *, left: bool = False) -> None:
        self.put("T", words, pose.mean.as_matrix())
        self.put("S", words, pose.left_covariance if left else pose.covariance)

    def find(self, key: str, shape: tuple[int, ...]) -> Any:
        """Return the value for a field, or None: same quantity, same shape, most words in common, put first."""
        words = _words(key)
        wanted = [name for name, known in _QUANTITIES.items() if known & {word.rstrip("0123456789") for word in words}]
        if shape == () and "S" in wanted and not re.search(r"\d\d", key):
            return None  # one number of a covariance is named by its place
        best: tuple[int, Any] = (-1, None)
        for quantity, labels, value in self.values:
            if quantity not in wanted or np.shape(value) != shape:
                continue
            common = len(labels & set(words))
            if common > best[0]:
                best = (common, value)
        return best[1]


def _words(key: str) -> list[str]:
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower().split("_")
    return [_SAME_WORD.get(word, word) for word in split if word] + split


def replay_uncertainty(case: Mapping[str, Any]) -> dict[str, Any]:
    """Work a case through.

    Args:
        case: as it stands in the file.

    Returns:
        Every field of the case that can be computed, under its key; and ``mean`` (4, 4), ``covariance`` (6, 6).
    """
    told = " ".join(str(value) for value in case.values() if isinstance(value, str)).lower()
    left = bool(re.search(r"\bleft\b|barfoot", told.replace("_", " ")))
    said: dict[str, Any] = {}
    varied = _varied(case)
    if varied is not None:
        return _each(case, varied)
    for key, value in case.items():  # cases within the case, which inherit what it says
        if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
            outer = {name: given for name, given in case.items() if name != key}
            said[key] = [replay_uncertainty({**_scaled(outer, part), **part}) for part in value]
    shelf = _Shelf()
    reading = Recorded(case)
    mean, covariance = _worked(reading, told, left, shelf)
    given = reading.read | edges_of(case)[1] | {"T_true"}
    for key, value in case.items():
        if key in said or isinstance(value, (str, dict, bool)):
            continue
        found = None if _is_sampled(key) or key in given else shelf.find(key, np.shape(value))
        if found is not None:
            said[key] = found
    _compare(case, said)
    if mean is not None:
        said["mean"], said["covariance"] = mean, covariance
    return said


def _is_sampled(key: str) -> bool:
    words = key.lower().split("_")
    return "mc" in words and "vs" not in words


# ----------------------------------------------------------------------------------------------------- what comes out


def _worked(case: Recorded, told: str, left: bool, shelf: _Shelf) -> tuple[Array | None, Array | None]:
    """Compute all that the case speaks of; return the mean and the covariance that it is about."""
    edges, _ = edges_of(dict(case))
    poses = poses_of(case, left)
    if edges and not poses and not _is_row(edges, told):
        return _tree(edges, left, shelf)
    poses = poses or [gaussian_of(*given, left) for given in edges.values()]
    if not poses:
        return None, None
    measured = array_of(case, "Z", "Z_meas", "T_meas", "T_measured", "T_z", "Z_measured", "measurement")
    if measured is not None:
        noise = array_of(
            case, "R", "Sigma_meas", "Sigma_measured", "Sigma_z", "R_meas", "Sigma_Z", "noise", "Sigma_noise"
        )
        assert noise is not None, "a measurement without its noise"
        return _conditioned(poses, gaussian_of(measured, noise, left), dict(case), shelf)
    if "fus" in told:
        return _fused(poses, left, shelf)
    if "inverse" in told and len(poses) == 1:
        result = poses[0].inverse()
        shelf.pose("inverse", result, left=left)
    else:
        result = _composed(_in_direction(poses, dict(case)), left, shelf)
    return result.mean.as_matrix(), result.left_covariance if left else result.covariance


def _is_row(edges: Mapping[tuple[str, str], object], told: str) -> bool:
    """Return whether edges named by one letter each are links of a chain: compositions have no leaves side by side."""
    parents = {parent for parent, _ in edges}
    return len(edges) > 1 and parents == {"common"} and bool(re.search("compos|compound|chain|step", told))


def _composed(poses: Sequence[GaussianPose], left: bool, shelf: _Shelf) -> GaussianPose:
    first, fourth = compose(poses), compose(poses, order=4)
    for words, pose in (("first order", first), ("fourth order", fourth)):
        shelf.pose(words, pose, left=left)
        entries = pose.left_covariance if left else pose.covariance
        for i, j in np.ndindex(6, 6):  # single entries by their place, counted from one: Sigma66
            shelf.put("S", f"{words} sigma{i + 1}{j + 1} {i + 1}{j + 1}", float(entries[i, j]))
    return first


def _in_direction(poses: list[GaussianPose], case: Mapping[str, Any]) -> list[GaussianPose]:
    """Return the poses along a path: those that it walks against their direction inverted.

    The fields ``up`` and the like say how many or which; else, when the poses as they stand do not end where the case
    says, the first half leads up to the common ancestor.
    """
    for name in ("inverted", "inverse", "reversed", "up"):
        which = case.get(name)
        if isinstance(which, int) and not isinstance(which, bool):
            return [pose.inverse() if i < which else pose for i, pose in enumerate(poses)]
        if isinstance(which, list) and len(which) == len(poses):
            return [
                pose.inverse() if flag in (True, -1, "up") else pose for pose, flag in zip(poses, which, strict=True)
            ]
    end, half = array_of(case, "T_expected"), len(poses) // 2
    if end is not None and np.abs(compose(poses).mean.as_matrix() - end).max() > 1e-6:
        for turned in (
            [pose.inverse() if i < half else pose for i, pose in enumerate(poses)],
            [*(pose.inverse() for pose in poses[:half][::-1]), *poses[half:]],
        ):
            if np.abs(compose(turned).mean.as_matrix() - end).max() < 1e-6:
                return turned
    return poses


def _tree(edges: Mapping[tuple[str, str], tuple[Array, Array]], left: bool, shelf: _Shelf) -> tuple[Array, Array]:
    """Compute the poses between all frames of a tree, and the joint covariance of its leaves."""
    links = {frames: gaussian_of(*given, left) for frames, given in edges.items()}
    names = list(dict.fromkeys(name for pair in links for name in pair))
    children = {child for _, child in links}
    root = next(name for name in names if name not in children)
    leaves = [name for name in names if name not in {parent for parent, _ in links}]
    order = list(links)
    joint = JointGaussianPose.independent([links[pair] for pair in order])
    paths = {name: _path(root, name, links) for name in names}
    maps, means = [], []
    for name in leaves:
        row, rest = np.zeros((6, 6 * len(order))), Pose()
        for pair in reversed(paths[name]):
            i = order.index(pair)
            row[:, 6 * i : 6 * i + 6] = _adjoint_of_inverse(rest)
            rest = links[pair].mean @ rest
        maps.append(row)
        means.append(rest)
    stacked = np.vstack(maps)
    whole = stacked @ joint.covariance @ stacked.T
    both = JointGaussianPose(means, 0.5 * (whole + whole.T))
    shelf.put("S", "joint joint12", both.covariance)
    for i, a in enumerate(leaves):
        shelf.pose(f"{root}{a} {root} {a}", both.marginal(i))
        for j, b in enumerate(leaves):
            if i != j:
                relative = both.relative(j, i)
                shelf.pose(f"{a}{b} {a} {b} relative", relative, left=left)
                alone = both.marginal(i).inverse() @ both.marginal(j)
                shelf.pose(f"{a}{b} {a} {b} dropped correlation", alone, left=left)
                shelf.put("S", f"cross {a}{b} {a} {b}", both.cross(i, j))
                if i < j:
                    for part, block in (("rho", slice(0, 3)), ("theta", slice(3, 6))):
                        traces = [float(np.trace(pose.covariance[block, block])) for pose in (alone, relative)]
                        shelf.put("ratio", f"naive true trace {part}", traces[0] / traces[1])
    if len(leaves) > 1:
        result = both.relative(1, 0)
    else:
        result = _composed([links[pair] for pair in paths[leaves[0]]], left, shelf)
    return result.mean.as_matrix(), result.left_covariance if left else result.covariance


def _adjoint_of_inverse(pose: Pose) -> Array:
    from tmkit.spatial import adjoint

    return adjoint(pose.inverse())


def _path(root: str, name: str, links: Mapping[tuple[str, str], object]) -> list[tuple[str, str]]:
    path: list[tuple[str, str]] = []
    while name != root:
        pair = next(pair for pair in links if pair[1] == name)
        path.insert(0, pair)
        name = pair[0]
    return path


def _fused(poses: Sequence[GaussianPose], left: bool, shelf: _Shelf) -> tuple[Array, Array]:
    fused = fuse(poses)
    shelf.pose("fused", fused.pose, left=left)
    shelf.put("count", "gn iterations", fused.iterations)
    shelf.put("cost", "cost", fused.cost)
    information = sum(np.linalg.inv(pose.left_covariance if left else pose.covariance) for pose in poses)
    shelf.put("S", "infosum sum", np.linalg.inv(information))
    return fused.pose.mean.as_matrix(), fused.pose.left_covariance if left else fused.pose.covariance


def _conditioned(
    poses: Sequence[GaussianPose], measured: GaussianPose, case: Mapping[str, Any], shelf: _Shelf
) -> tuple[Array, Array]:
    """Condition a chain, once with a single step (EKF) and once to the end; on the shelf with both words."""
    prior, measurement = compose(poses), PoseMeasurement(measured)
    vectors = {(6 * len(poses),), (len(poses), 6)}
    in_prior_tangent = any(np.shape(value) in vectors for key, value in case.items() if not _is_sampled(key))
    final = None
    for words, turns in (("iterated posterior", 50), ("ekf posterior", 1)):
        final = condition(poses, measurement, iterations=turns)
        links, n = final.links, len(poses)
        former, present = final.correction_covariance, links.covariance
        covariance = former if turns == 1 or in_prior_tangent else present
        shelf.pose(f"{words} path", final.pose)
        shelf.put("T", f"{words} edges", np.array([mean.as_matrix() for mean in links.means]))
        shelf.put("xi", f"{words} edges", final.correction)
        shelf.put("xi", f"{words} edges", final.correction.reshape(n, 6))
        shelf.put("S", f"{words} joint joint12", covariance)
        blocks = [covariance[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] for i in range(n)]
        shelf.put("S", f"{words} edges marginals", np.array(blocks))
        shelf.put("corr", words, _greatest_correlation(covariance))
        shelf.put("cost", words, final.cost)
        shelf.put("count", words, final.iterations)
    shelf.pose("prior path", prior)
    shelf.put("z", "innovation z", (prior.mean.inverse() @ measured.mean).log())
    shelf.put("z", "residual error", (measured.mean.inverse() @ prior.mean).log())
    result = condition(poses, measurement).pose
    return result.mean.as_matrix(), result.covariance


def _greatest_correlation(covariance: Array) -> float:
    """Return the greatest correlation between the errors of two different links."""
    scale = np.sqrt(np.diag(covariance))
    scale[scale == 0.0] = np.inf
    correlation = np.abs(covariance / np.outer(scale, scale))
    for i in range(0, len(covariance), 6):
        correlation[i : i + 6, i : i + 6] = 0.0
    return float(correlation.max())


# ------------------------------------------------------------------------------------------------- families of cases


def _varied(case: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the field that is varied over the case and how often: a list of factors of the covariances."""
    for name in ("alpha", "alphas"):
        value = case.get(name)
        if isinstance(value, list) and value and all(isinstance(number, (int, float)) for number in value):
            return name, len(value)
    return None


def _each(case: Mapping[str, Any], varied: tuple[str, int]) -> dict[str, Any]:
    """Replay a case for each factor; fields with as many entries as factors are taken apart and put together again."""
    name, count = varied
    rows = []
    for i in range(count):
        row: dict[str, Any] = {"alpha": case[name][i]}
        split = {key for key, value in case.items() if key != name and isinstance(value, list) and len(value) == count}
        for key, value in case.items():
            if key in split:
                row[key] = value[i]
            elif key != name:
                row[key] = value
        fixed = {key: value for key, value in case.items() if key not in split and key != name}
        row.update({k: v for k, v in _scaled(fixed, {"alpha": case[name][i]}).items() if k in fixed})
        rows.append(replay_uncertainty(row))
    return {key: [row.get(key) for row in rows] for key in rows[0]}


def _scaled(outer: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a part inherits; its factor ``alpha`` is that of the covariances it does not give itself."""
    alpha = part.get("alpha")
    if not isinstance(alpha, (int, float)):
        return dict(outer)
    covariance = re.compile(r"(Sigma|S|cov|P)_?\d*$")
    return {
        key: (alpha * np.asarray(value, dtype=float)).tolist() if covariance.match(key) and key not in part else value
        for key, value in outer.items()
    }


def _compare(case: Mapping[str, Any], said: dict[str, Any]) -> None:
    """Add the distances from sampled covariances, where the case has samples and we have the closed form."""
    for key, value in case.items():
        words = _words(key)
        if not isinstance(value, (int, float)) or "identity" in words:
            continue
        if {"vs", "mc"} <= set(words) or "eps" in words:
            distance = _distance_from_samples(case, said, set(words))
            if distance is not None:
                said[key] = distance
        if "floor" in words and "mc_n" in case and "Sigma_first_order" in said:
            said[key] = sampling_floor(said["Sigma_first_order"], int(case["mc_n"]))


def _distance_from_samples(case: Mapping[str, Any], said: Mapping[str, Any], words: set[str]) -> float | None:
    """Return how far what the words name is from its samples: relative, or as it is when it is called eps."""
    computed = [name for name in said if name.lower().startswith(("sigma", "s_", "joint", "p_"))]
    computed.sort(key=lambda name: "dropped" in name)
    kinds = words & {"first", "fourth", "infosum", "fused", "ekf", "iterated"}
    if "joint" in words:
        fitting = [name for name in computed if name.startswith("joint")]
    else:
        fitting = [name for name in computed if kinds <= set(_words(name)) and not name.startswith("joint")]
    for name in fitting:
        shape = np.shape(said[name])
        sampled = [
            np.asarray(case[key])
            for key in case
            if _is_sampled(key) and np.shape(case[key]) == shape and len(shape) == 2
        ]
        if sampled:
            distance = float(np.linalg.norm(np.asarray(said[name]) - sampled[0]))
            return distance if "eps" in words else distance / float(np.linalg.norm(sampled[0]))
    return None
