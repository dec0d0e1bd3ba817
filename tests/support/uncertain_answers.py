"""Results of a case of uncertain poses, and the result that belongs to each field of the case.

Each value lies on the shelf with its quantity (a pose, a covariance, a vector of errors, a cost,
...) and the words that describe it; a field takes the value of its quantity and shape with which it
has most words in common, put first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tmkit.spatial import GaussianPose
from tmkit.spatial.joint_gaussian import sampling_floor

__all__ = ["Shelf", "add_distances", "is_description", "is_outcome", "is_sampled"]

_QUANTITIES = {
    "T": {"t", "mean", "pose", "tbar", "map"},
    "S": {"sigma", "s", "p", "cov", "covariance", "joint", "joint12", "cross", "c", "cumulative"},
    "xi": {"xi", "delta", "dx", "correction", "shift", "mu", "x", "mean", "log"},
    "cost": {"cost", "objective"},
    "count": {"iterations", "iters", "iteration", "steps"},
    "corr": {"corr", "correlation"},
    "z": {"innovation", "z", "residual"},
    "ratio": {"over"},
    "distance": {"vs", "eps", "fro", "err", "error"},
    "floor": {"floor"},
    "map": {"ad", "adj", "adjoint", "j", "jr", "jl", "jacobian", "h"},
    "squared": {"mahalanobis", "d", "distance", "nees"},
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
    "global": "left",
    "local": "right",
    "inv": "inverse",
}
# Words of results, or of samples: a field with one of them is no input.
_OF_OUTCOMES = {
    *(
        "expected",
        "first",
        "fourth",
        "2nd",
        "4th",
        "order",
        "fused",
        "post",
        "posterior",
        "prior",
        "ekf",
        "iterated",
    ),
    *(
        "mc",
        "vs",
        "ess",
        "nees",
        "err",
        "error",
        "max",
        "min",
        "seed",
        "rng",
        "floor",
        "corr",
        "over",
        "route",
        "tol",
    ),
    *(
        "identity",
        "dropped",
        "infosum",
        "cost",
        "iterations",
        "true",
        "tolerance",
        "samples",
        "dof",
        "rank",
        "trace",
    ),
    *(
        "eps",
        "joint",
        "joint12",
        "cross",
        "ratio",
        "relative",
        "rel",
        "inverse",
        "cumulative",
        "marginals",
        "norm",
    ),
    *(
        "innovation",
        "result",
        "fro",
        "mahalanobis",
        "correction",
        "n",
        "eigenvalues",
        "sampled",
        "accept",
        "iters",
    ),
    *("total", "final", "end", "composed", "sum", "path", "out", "answer", "k", "gain", "h"),
}
# Words of numbers that describe a case, when they are single numbers or counts and names in a list.
_OF_DESCRIPTIONS = {
    *(
        "depth",
        "edges",
        "nodes",
        "levels",
        "level",
        "scale",
        "size",
        "id",
        "index",
        "version",
        "units",
        "dim",
        "count",
    ),
    *(
        "number",
        "num",
        "length",
        "std",
        "draws",
        "runs",
        "repeats",
        "lca",
        "leaves",
        "frames",
        "sigma",
        "degrees",
    ),
    *("m", "samples", "tangent", "alpha"),
}


@dataclass
class Shelf:
    """Results of a case, each with its quantity and the words that describe it."""

    values: list[tuple[str, frozenset[str], Any]] = field(default_factory=list)

    def put(self, quantity: str, words: str, value: Any) -> None:
        """Put a value there."""
        self.values.append((quantity, frozenset(words.split()), value))

    def pose(self, words: str, pose: GaussianPose, *, left: bool = False) -> None:
        """Store a mean and a covariance; the words of the error on the other side include it."""
        self.put("T", words, pose.mean.as_matrix())
        self.put("S", words, pose.left_covariance if left else pose.covariance)
        self.put("S", f"{words} right", pose.covariance)
        self.put("S", f"{words} left cumulative", pose.left_covariance)

    def find(self, key: str, shape: tuple[int, ...]) -> Any:
        """Return the result for a field: same quantity and shape, most words in common; or None."""
        words = words_of(key)
        wanted = [
            name
            for name, quantity_words in _QUANTITIES.items()
            if quantity_words & {word.rstrip("0123456789") for word in words}
        ]
        if shape == () and "S" in wanted and not re.search(r"\d\d", key):
            wanted.remove("S")  # one number of a covariance is named by its place
        if not is_outcome(key) and self._strange(words):
            return None
        sides = {"left", "right"} & set(words)
        best: tuple[int, Any] = (-1, None)
        for quantity, labels, value in self.values:
            if quantity not in wanted or np.shape(value) != shape:
                continue
            if (
                quantity == "S"
                and {"left", "right"} & labels
                and not sides & labels
                and not {"cumulative", "c"} & set(words)
            ):
                continue  # the covariance of the other side is found by its name
            common = len(labels & set(words)) + (
                1 if "cumulative" in labels and "c" in words else 0
            )
            if common > best[0]:
                best = (common, value)
        return best[1]

    def _strange(self, words: list[str]) -> bool:
        """Return whether a name has a word of neither a quantity nor a result."""
        known_words = set().union(*_QUANTITIES.values(), *(labels for _, labels, _ in self.values))
        return any(
            not {word, word.rstrip("0123456789")} & known_words and not word.isdigit()
            for word in words
        )


def words_of(key: str) -> list[str]:
    """Return the words of a field's name, with abbreviations expanded."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub(r"^eps_?2(nd)?", "eps_2nd", key))
    split = re.sub(r"^eps_?4(th)?", "eps_4th", spaced).lower().split("_")
    return [_SAME_WORD.get(word, word) for word in split if word] + split


def is_sampled(key: str) -> bool:
    """Return whether a field contains a result of samples, which no closed form has."""
    words = key.lower().split("_")
    return "mc" in words and "vs" not in words


def is_outcome(key: str) -> bool:
    """Return whether a field name denotes a computed or sampled value, and not an input."""
    words = words_of(key.removesuffix("_over_alpha"))
    return bool(_OF_OUTCOMES & {*words, *(word.rstrip("0123456789") for word in words)})


def is_description(key: str, value: Any) -> bool:
    """Return whether a field describes a case by a number, or by counts or names."""
    is_plain = np.ndim(value) == 0 or all(isinstance(part, (str, int)) for part in value)
    return is_plain and bool(
        _OF_DESCRIPTIONS & {word.rstrip("0123456789") for word in words_of(key)}
    )


def add_distances(case: Mapping[str, Any], results: dict[str, Any]) -> None:
    """Add the distances from sampled covariances, if the case has samples and a closed form."""
    for key, value in case.items():
        words = words_of(key)
        if not isinstance(value, (int, float)) or "identity" in words:
            continue
        if {"vs", "mc"} <= set(words) or "eps" in words:
            distance = _distance_from_samples(case, results, set(words))
            if distance is not None:
                results[key] = distance
        if "floor" in words and "mc_n" in case and "Sigma_first_order" in results:
            results[key] = sampling_floor(results["Sigma_first_order"], int(case["mc_n"]))


def _distance_from_samples(
    case: Mapping[str, Any], results: Mapping[str, Any], words: set[str]
) -> float | None:
    """Return the distance of a result from its samples, relative, or absolute for eps."""
    computed = [name for name in results if name.lower().startswith(("sigma", "s_", "joint", "p_"))]
    computed.sort(key=lambda name: "dropped" in name)
    kinds = words & {"first", "fourth", "infosum", "fused", "ekf", "iterated"}
    if "joint" in words:
        fitting = [name for name in computed if name.startswith("joint")]
    else:
        fitting = [
            name
            for name in computed
            if kinds <= set(words_of(name)) and not name.startswith("joint")
        ]
    for name in fitting:
        shape = np.shape(results[name])
        sampled = [
            np.asarray(case[key])
            for key in case
            if is_sampled(key) and np.shape(case[key]) == shape and len(shape) == 2
        ]
        if sampled:
            distance = float(np.linalg.norm(np.asarray(results[name]) - sampled[0]))
            return distance if "eps" in words else distance / float(np.linalg.norm(sampled[0]))
    return None
