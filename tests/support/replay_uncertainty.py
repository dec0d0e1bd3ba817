"""Replay of ``tests/data/uncertainty.json`` through the public interface, field by field.

A case has poses ``T...`` with covariances ``Sigma...`` and a ``kind``: a chain that is composed, an
inverse, leaves that share an edge, a path in a tree, estimates that are fused, a chain that is
conditioned on a measurement, a covariance on the other side. The result is a dictionary of every
computable field of the case by its key, beside ``mean`` and ``covariance``.

Fields are read by name and shape. Two names in one (``T_root_common``, ``T_ab``) are the frames of
an edge; an edge between frames that earlier ones connect already is a result, not an input. Results
are found by the words of a field (:mod:`support.uncertain_answers`). No case is recognized by its
content. An unknown kind, or a field that is neither read nor an outcome, is a LookupError with its
name.

Conventions of a case: one with ``left`` (or ``barfoot``, whose convention it is) has errors on
the left, T = exp(xi) mean; one whose ``order`` begins with theta has the angular part first, in all
it gives and is given.

A case that expects an error (``expected_error``, or ``accept`` that is false) results in ``error``,
a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.uncertain_answers import Shelf, add_distances, is_description, is_outcome, is_sampled
from support.uncertain_inputs import Recorded, array_of, edges_of, gaussian_of, path_of, poses_of
from support.uncertain_trees import compose_chain, replay_tree
from tmkit._core import inverse_left_jacobian, inverse_right_jacobian, left_jacobian, right_jacobian
from tmkit.errors import TmkitError
from tmkit.spatial import (
    BearingMeasurement,
    GaussianPose,
    Pose,
    PoseMeasurement,
    PositionMeasurement,
    RangeMeasurement,
    adjoint,
    compose,
    condition,
    fuse,
)
from tmkit.spatial.conditioning import MeasurementModel
from tmkit.spatial.consistency import mahalanobis_distance

__all__ = ["replay_uncertainty"]

Array = NDArray[np.float64]

# subject of a case, by words of its kind, or of its name where it has no kind; the first that
# fits
_KINDS = {
    "conditioned": r"condition|measur|kalman|ekf|update|observ",
    "fused": r"fus|combin|merge|average",
    "maps": r"adjoint|jacobian|\bexp\b|\blog\b|exponential|logarithm",
    "distance": r"mahalanobis|distance",
    "sided": r"(left|right|local|global)\W+(to|from)\W+(left|right|local|global)|other side",
    "inverse": r"inver",
    "tree": r"relative|correlat|shared|common|joint|leaf|leaves|branch",
    "composed": (
        r"compos|compound|chain|step|path|tree|cumulative|product|banana|barfoot|concat|propagat|query|forward"
    ),
}
_ANGULAR_FIRST = re.compile(r"\W*(theta|omega|rot|phi|angular|angle|w\b|r\b)", re.IGNORECASE)
_EXPECTS = ("expected_error", "error")


def replay_uncertainty(case: Mapping[str, Any]) -> dict[str, Any]:
    """Work a case through.

    Args:
        case: as it stands in the file.

    Returns:
        Every field of the case that can be computed, under its key; and ``mean`` (4, 4),
        ``covariance`` (6, 6) where the case is about a pose. ``error`` alone where the case expects
        an error and there is one.

    Raises:
        LookupError: if a kind, or an input field, is unknown.
    """
    expects_error = any(name in case for name in _EXPECTS) or case.get("accept") is False
    plain = {name: value for name, value in case.items() if name not in _EXPECTS}
    try:
        if _ANGULAR_FIRST.match(str(case.get("order", ""))):
            linear_first = {
                name: _swap_parts(name, value) for name, value in plain.items() if name != "order"
            }
            return {
                name: _swap_parts(name, value) for name, value in _replay_case(linear_first).items()
            }
        return _replay_case(plain)
    except TmkitError as error:
        if not expects_error:
            raise
        return {"accept": False, "error": str(error)}


def _swap_parts(name: str, value: Any) -> Any:
    """Return an input or output of a case with the angular part first, in the other order."""
    if isinstance(value, Mapping):
        return {inner: _swap_parts(inner, part) for inner, part in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [_swap_parts(name, part) for part in value]
    if isinstance(value, (str, bool)) or value is None or name.startswith("alpha"):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "fi" or array.ndim == 0 or array.shape[-1] % 6:
        return value
    places = np.arange(array.shape[-1]).reshape(-1, 2, 3)[:, ::-1].ravel()
    array = array[..., places]
    if array.ndim > 1 and array.shape[-2] == array.shape[-1]:
        array = array[..., places, :]
    return array.tolist() if isinstance(value, list) else array


def _replay_case(case: Mapping[str, Any]) -> dict[str, Any]:
    kind = _kind_of(case)
    kind_word = (
        " ".join(str(value) for value in case.values() if isinstance(value, str))
        .lower()
        .replace("_", " ")
    )
    left = kind != "sided" and bool(re.search(r"\bleft\b|barfoot", kind_word))
    if kind == "sided":
        left = bool(re.search(r"(left|global)\W+to|from\W+(left|global)", kind_word))
    results: dict[str, Any] = {}
    varied = _find_variation(case)
    if varied is not None:
        return _each(case, varied)
    for key, value in case.items():  # cases within the case, which inherit its fields
        if (
            isinstance(value, list)
            and value
            and all(isinstance(part, dict) and not _is_edge(part) for part in value)
        ):
            outer = {name: entry for name, entry in case.items() if name != key}
            results[key] = [_replay_case({**_scale(outer, part), **part}) for part in value]
    shelf, reading = Shelf(), Recorded(case)
    mean, covariance = _compute(reading, kind, left, shelf)
    entry = reading.read | edges_of(case)[1] | {"T_true", "alpha", *_PATHS} | results.keys()
    _answer(case, results, shelf, entry)
    add_distances(case, results)
    if mean is not None:
        results["mean"], results["covariance"] = mean, covariance
    return results


_PATHS = (
    "query",
    "path",
    "source",
    "target",
    "from",
    "to",
    "start",
    "end",
    "reference",
    "inverted",
    "up",
    "reversed",
)


def _answer(
    case: Mapping[str, Any], results: dict[str, Any], shelf: Shelf, inputs: set[str]
) -> None:
    """Store the results for the fields of a case under their names.

    Raises:
        LookupError: if a field is neither given, nor computed, nor a description or the name of
            an outcome.
    """
    unknown = []
    for key, value in case.items():
        if key in inputs or isinstance(value, (str, bool)) or value is None:
            continue
        outcome = (
            None if is_sampled(key) or isinstance(value, dict) else shelf.find(key, np.shape(value))
        )
        if outcome is not None:
            results[key] = outcome
        elif not is_outcome(key) and not is_description(key, value):
            unknown.append(key)
    if unknown:
        raise LookupError(
            f"the case '{case.get('name', '')}' has fields that say nothing here:"
            f" {', '.join(unknown)}"
        )


def _kind_of(case: Mapping[str, Any]) -> str:
    """Return the subject of a case.

    Raises:
        LookupError: if its kind has no known word.
    """
    for label in (case.get("kind"), case.get("name")):
        words = re.sub(r"[_\d]", " ", str(label or "")).lower()
        for kind, pattern in _KINDS.items():
            if re.search(pattern, words):
                return kind
        if label and "kind" in case and label == case["kind"]:
            raise LookupError(f"the kind of a case is not known: '{label}'")
    raise LookupError(f"a case without a kind: it has {', '.join(case)}")


def _is_edge(part: Mapping[str, Any]) -> bool:
    return bool({"parent", "child", "from", "tail"} & part.keys())


# --------------------------------------------------------------------------------------- results


def _compute(
    case: Recorded, kind: str, left: bool, shelf: Shelf
) -> tuple[Array | None, Array | None]:
    """Compute all that the case speaks of; return the mean and the covariance that it is about."""
    if kind == "maps":
        return _maps(case, shelf)
    if kind == "distance":
        return _distance(case, shelf)
    edges, used = edges_of(dict(case))
    poses = poses_of(case, left)
    is_listed = bool(used) and not any(name.startswith(("T_", "xi_")) for name in used)
    is_row = len(edges) > 1 and {parent for parent, _ in edges} == {"common"} and kind == "composed"
    case.read |= used
    if edges and (is_listed or not poses) and not is_row and kind not in ("conditioned", "fused"):
        return replay_tree(
            edges, path_of(case, [*{name: None for pair in edges for name in pair}]), left, shelf
        )
    poses = poses or [gaussian_of(*fields, left) for fields in edges.values()]
    if not poses:
        return None, None
    if kind == "conditioned":
        measurement, measured = _measure(case, left)
        return _condition(poses, measurement, measured, dict(case), shelf)
    if kind == "fused":
        return _fuse(poses, left, shelf)
    if kind == "sided":
        shelf.pose("other", poses[0], left=not left)
        return poses[0].mean.as_matrix(), poses[0].covariance if left else poses[0].left_covariance
    if kind == "inverse" and len(poses) == 1:
        result = poses[0].inverse()
        shelf.pose("inverse", result, left=left)
    else:
        result = compose_chain(_in_direction(poses, dict(case)), left, shelf)
    return result.mean.as_matrix(), result.left_covariance if left else result.covariance


def _maps(case: Recorded, shelf: Shelf) -> tuple[None, None]:
    """Put the exponential or the logarithm there, the adjoint and the Jacobians."""
    xi, matrix = array_of(case, "xi", "tau", "vector"), array_of(case, "T", "pose")
    if xi is None and matrix is None:
        raise LookupError(
            f"an exponential or an adjoint is that of xi or T; the case has {', '.join(case)}"
        )
    pose = Pose.from_matrix(matrix) if matrix is not None else Pose.exp(xi)
    vector = pose.log() if xi is None else xi
    shelf.put("T", "exp", pose.as_matrix())
    shelf.put("T", "inverse", pose.inverse().as_matrix())
    shelf.put("xi", "log", pose.log())
    shelf.put("map", "adjoint ad adj", adjoint(pose))
    shelf.put("map", "adjoint ad adj inverse", adjoint(pose.inverse()))
    for words, jacobian in (
        ("jr right", right_jacobian),
        ("jl left j", left_jacobian),
        ("jr right inverse", inverse_right_jacobian),
        ("jl left j inverse", inverse_left_jacobian),
    ):
        shelf.put("map", f"jacobian {words}", jacobian(vector))
    return None, None


def _distance(case: Recorded, shelf: Shelf) -> tuple[None, None]:
    """Put the squared Mahalanobis distance of an error there."""
    error, covariance = (
        array_of(case, "e", "xi", "error", "delta"),
        array_of(case, "Sigma", "S", "P", "covariance"),
    )
    if error is None or covariance is None:
        raise LookupError(
            "a distance is that of an error e with a covariance Sigma; the case has"
            f" {', '.join(case)}"
        )
    squared, degrees = mahalanobis_distance(error, covariance)
    shelf.put("squared", "mahalanobis squared", squared)
    shelf.put("count", "dof rank degrees", degrees)
    return None, None


def _in_direction(poses: list[GaussianPose], case: Mapping[str, Any]) -> list[GaussianPose]:
    """Return the poses along a path: those that it walks against their direction inverted.

    The fields ``up`` and the like have their number or names; else, when the poses in order do not
    end at the frame of the case, the first half leads up to the common ancestor.
    """
    for name in ("inverted", "inverse", "reversed", "up"):
        which = case.get(name)
        if isinstance(which, int) and not isinstance(which, bool):
            return [pose.inverse() if i < which else pose for i, pose in enumerate(poses)]
        if isinstance(which, list) and len(which) == len(poses):
            return [
                pose.inverse() if flag in (True, -1, "up") else pose
                for pose, flag in zip(poses, which, strict=True)
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


def _fuse(poses: Sequence[GaussianPose], left: bool, shelf: Shelf) -> tuple[Array, Array]:
    fused = fuse(poses)
    shelf.pose("fused", fused.pose, left=left)
    shelf.put("count", "gn iterations", fused.iterations)
    shelf.put("cost", "cost", fused.cost)
    covariances = [pose.left_covariance if left else pose.covariance for pose in poses]
    if all(np.linalg.matrix_rank(covariance) == 6 for covariance in covariances):
        information = sum(np.linalg.inv(covariance) for covariance in covariances)
        shelf.put("S", "infosum sum", np.linalg.inv(information))
    return (
        fused.pose.mean.as_matrix(),
        fused.pose.left_covariance if left else fused.pose.covariance,
    )


def _measure(case: Recorded, left: bool) -> tuple[MeasurementModel, GaussianPose | None]:
    """Return a measurement, as a pose if its shape is one; a direction is named by the field.

    Raises:
        LookupError: if there is no measurement, or no noise of it.
    """
    Z = array_of(
        case,
        "Z",
        "Z_meas",
        "T_meas",
        "T_measured",
        "T_z",
        "Z_measured",
        "measurement",
        "measured",
        "T_Z",
    )
    names = (
        "R",
        "Sigma_meas",
        "Sigma_measured",
        "Sigma_z",
        "R_meas",
        "Sigma_Z",
        "noise",
        "Sigma_noise",
        "R_noise",
    )
    noise = array_of(case, *names, "variance")
    if Z is None or noise is None:
        raise LookupError(
            f"conditioning takes a measurement Z with noise R; the case has {', '.join(case)}"
        )
    if Z.ndim == 0:
        return RangeMeasurement(float(Z), float(noise)), None
    if Z.shape == (3,):
        return (BearingMeasurement if noise.shape in ((), (2, 2)) else PositionMeasurement)(
            Z, noise
        ), None
    measured = gaussian_of(Z, noise, left)
    return PoseMeasurement(measured), measured


def _condition(
    poses: Sequence[GaussianPose],
    measurement: MeasurementModel,
    measured: GaussianPose | None,
    case: Mapping[str, Any],
    shelf: Shelf,
) -> tuple[Array, Array]:
    """Condition a chain with a single step (EKF) and to the end, stored under both names."""
    prior = compose(poses)
    vectors = {(6 * len(poses),), (len(poses), 6)}
    in_prior_tangent = any(
        np.shape(value) in vectors for key, value in case.items() if not is_sampled(key)
    )
    final = None
    for words, turns in (("iterated posterior", 50), ("ekf posterior", 1)):
        final = condition(poses, measurement, max_iterations=turns)
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
    if measured is not None:
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


# -------------------------------------------------------------------------------- families of cases


def _find_variation(case: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the field with the factors of the covariances, and the factors."""
    for name in ("alpha", "alphas"):
        value = case.get(name)
        if (
            isinstance(value, list)
            and value
            and all(isinstance(number, (int, float)) for number in value)
        ):
            return name, len(value)
    return None


def _each(case: Mapping[str, Any], varied: tuple[str, int]) -> dict[str, Any]:
    """Replay a case for each factor; fields with one entry a factor are split and joined again."""
    name, count = varied
    rows = []
    for i in range(count):
        row: dict[str, Any] = {"alpha": case[name][i]}
        split = {
            key for key, value in case.items() if key != name and _is_row_of(key, value, count)
        }
        for key, value in case.items():
            if key in split:
                row[key] = value[i]
            elif key != name:
                row[key] = value
        fixed = {key: value for key, value in case.items() if key not in split and key != name}
        row.update({k: v for k, v in _scale(fixed, {"alpha": case[name][i]}).items() if k in fixed})
        rows.append(_replay_case(row))
    return {key: [row.get(key) for row in rows] for key in rows[0]}


def _is_row_of(key: str, value: Any, count: int) -> bool:
    """Return whether a field has an entry for each factor, ambiguous for six: the tangent size."""
    is_input = (
        np.shape(value) in ((6,), (6, 6)) and not is_outcome(key)
        if isinstance(value, list)
        else True
    )
    return isinstance(value, list) and len(value) == count and not is_input


def _scale(outer: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inherited fields of a part; ``alpha`` scales only inherited covariances."""
    alpha = part.get("alpha")
    if not isinstance(alpha, (int, float)):
        return dict(outer)
    covariance = re.compile(r"(Sigma|S|cov|P)_?\d*(_[a-z]\w*)?$")
    return {
        key: (
            (alpha * np.asarray(value, dtype=float)).tolist()
            if covariance.match(key) and key not in part and not is_outcome(key)
            else value
        )
        for key, value in outer.items()
    }
