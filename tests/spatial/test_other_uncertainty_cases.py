"""The replay of uncertain cases accepts other kinds, layouts and conventions.

What is expected comes from plain matrices in this file: exponentials of scipy, adjoints by blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm, logm
from support.replay import replay_uncertainty

Array = NDArray[np.float64]


def _hat(v: Array) -> Array:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def _exp(xi: Array) -> Array:
    return np.asarray(expm(np.vstack([np.column_stack([_hat(xi[3:]), xi[:3]]), np.zeros(4)])))


def _log(T: Array) -> Array:
    m = np.real(logm(T))
    return np.array([*m[:3, 3], m[2, 1], m[0, 2], m[1, 0]])


def _ad(T: Array) -> Array:
    R = T[:3, :3]
    return np.block([[R, _hat(T[:3, 3]) @ R], [np.zeros((3, 3)), R]])


def _small_ad(xi: Array) -> Array:
    return np.block([[_hat(xi[3:]), _hat(xi[:3])], [np.zeros((3, 3)), _hat(xi[3:])]])


def _right_jacobian(xi: Array) -> Array:
    """Return the integral of Ad(exp(-s xi)) over s from 0 to 1."""
    whole = expm(np.block([[-_small_ad(xi), np.eye(6)], [np.zeros((6, 12))]]))
    return np.asarray(whole[:6, 6:])


def _carried(maps: Array, S: Array) -> Array:
    return np.asarray(maps @ S @ maps.T)


def _random(count: int, size: float = 0.01, seed: int = 0) -> tuple[list[Array], list[Array]]:
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(count, 6, 6)) * size
    return [_exp(rng.normal(size=6)) for _ in range(count)], [root @ root.T for root in roots]


def _composed(T: list[Array], S: list[Array]) -> tuple[Array, Array]:
    mean, covariance = np.eye(4), np.zeros((6, 6))
    for matrix, part in zip(T, S, strict=True):
        mean, covariance = mean @ matrix, _carried(_ad(np.linalg.inv(matrix)), covariance) + part
    return mean, covariance


def _agree(said: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(
            said[name], value, rtol=0, atol=1e-11 * np.abs(value).max() + 1e-300, err_msg=name
        )


def _swapped(S: Array) -> Array:
    order = np.arange(S.shape[-1]).reshape(-1, 2, 3)[:, ::-1].ravel()
    return S[np.ix_(order, order)]


@pytest.mark.parametrize("size", [0.0, 1e-8, 1e-3, 1e3], ids=["exact", "tiny", "small", "huge"])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("order", ["[rho(3), theta(3)]", "[theta(3), rho(3)]"])
def test_chains_of_other_conventions(size: float, side: str, order: str) -> None:
    """Errors on either side, in either order, from exact to huge, with a singular link."""
    T, S = _random(3, 1.0, 1)
    S[1][:, 4] = S[1][4, :] = 0.0
    S = [size**2 * part for part in S]
    mean, covariance = _composed(T, S)
    left = side == "left"
    given = [
        _carried(_ad(matrix), part) if left else part for matrix, part in zip(T, S, strict=True)
    ]
    expected = _carried(_ad(mean), covariance) if left else covariance
    if order.startswith("[theta"):
        given, expected = [_swapped(part) for part in given], _swapped(expected)
    case = {
        "name": "chain",
        "kind": f"composition chain, {side}",
        "order": order,
        "T": [m.tolist() for m in T],
    }
    case |= {
        "Sigma": [part.tolist() for part in given],
        "Sigma_first_order": np.zeros((6, 6)).tolist(),
        "mc_n": 5,
    }
    said = replay_uncertainty(case)
    if size:
        _agree(said, {"mean": mean, "covariance": expected, "Sigma_first_order": expected})
    else:
        assert not said["covariance"].any()


@pytest.mark.parametrize(
    "layout", ["parents", "parents with the root", "edges", "named edges", "up and down"]
)
def test_a_path_through_a_tree(layout: str) -> None:
    """Fifteen frames of a binary tree: the path between two leaves, however the tree is given."""
    T, S = _random(14, 0.02, 2)
    edge = dict(zip(range(2, 16), zip(T, S, strict=True), strict=True))
    up, down = [8, 4, 2], [3, 7, 15]
    path = [(np.linalg.inv(edge[k][0]), _carried(_ad(edge[k][0]), edge[k][1])) for k in up] + [
        edge[k] for k in down
    ]
    mean, covariance = _composed([m for m, _ in path], [part for _, part in path])
    case: dict[str, Any] = {"kind": "path in a tree", "name": "tree15_n8_to_n15"}
    case |= {
        "T_expected": np.eye(4).tolist(),
        "Sigma_first_order": np.eye(6).tolist(),
        "first_vs_mc_fro": 0.1,
    }
    rows = [
        {"parent": f"n{k // 2}", "child": f"n{k}", "T": m.tolist(), "Sigma": s}
        for k, (m, s) in edge.items()
    ]
    if layout == "edges":
        case |= {"edges": rows, "from": "n8", "to": "n15"}
    elif layout == "named edges":
        case |= {"edges": {row.pop("child"): row for row in rows}}
    elif layout == "up and down":
        for name, part in (("up", up), ("down", down)):
            case |= {
                f"T_{name}": [edge[k][0] for k in part],
                f"Sigma_{name}": [edge[k][1] for k in part],
            }
    else:
        parents = [k // 2 for k in range(2, 16)]
        case |= {"T": T, "Sigma": S, "parents": [None, *parents] if "root" in layout else parents}
        case |= {"nodes": [*range(1 if "root" in layout else 2, 16)]}
    said = replay_uncertainty(case)
    _agree(
        said,
        {
            "mean": mean,
            "T_expected": mean,
            "covariance": covariance,
            "Sigma_first_order": covariance,
        },
    )


def test_three_leaves_and_what_they_share() -> None:
    """Joint and cross covariances, relative poses of all pairs, and frames that are no leaves."""
    (c, a, b, e), (s_c, s_a, s_b, s_e) = _random(4, 0.01, 3)
    case: dict[str, Any] = {
        "kind": "relative poses, correlated leaves",
        "T_root_common": c,
        "Sigma_root_common": s_c,
    }
    case |= {"T_common_a": a, "Sigma_common_a": s_a, "T_common_b": b, "Sigma_common_b": s_b}
    case |= {
        "T_common_e": e,
        "Sigma_common_e": s_e,
        "joint_expected": np.eye(18),
        "cross_ab_expected": np.eye(6),
    }
    case |= {
        "T_be_expected": np.eye(4),
        "Sigma_be_expected": np.eye(6),
        "Sigma_root_a_expected": np.eye(6),
    }
    maps = [_ad(np.linalg.inv(leaf)) for leaf in (a, b, e)]
    joint = _carried(np.vstack(maps), s_c)
    for i, own in enumerate((s_a, s_b, s_e)):
        joint[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] += own
    relative = np.linalg.inv(b) @ e
    of_be = _carried(_ad(np.linalg.inv(relative)), s_b) + s_e
    expected = {
        "joint_expected": joint,
        "cross_ab_expected": joint[:6, 6:12],
        "Sigma_root_a_expected": joint[:6, :6],
    }
    _agree(
        replay_uncertainty(case), expected | {"T_be_expected": relative, "Sigma_be_expected": of_be}
    )


@pytest.mark.parametrize("gap", [0.01, 1.0, 3.0], ids=["near", "far", "nearly half a turn"])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_fused_estimates_are_at_the_minimum(gap: float, scale: float) -> None:
    """The gradient of the cost is zero at the fused pose, for tiny and huge errors."""
    rng = np.random.default_rng(4)
    base = np.r_[rng.normal(size=3) * scale, 0.4, -0.3, 0.5]
    axis = np.array([0.6, 0.0, 0.8])
    T = [_exp(base), _exp(base) @ _exp(np.r_[0.01 * scale * axis, gap * axis]), _exp(base)]
    roots = rng.normal(size=(3, 6, 6)) * np.r_[[0.02 * scale] * 3, [0.03] * 3][:, None]
    S = [root @ root.T + np.diag([1e-4 * scale**2] * 3 + [1e-4] * 3) for root in roots]
    case = {
        "kind": "fusion",
        "T": T,
        "Sigma": S,
        "cost": 0.0,
        "T_fused_expected": np.eye(4),
        "gn_iterations": 5,
    }
    said = replay_uncertainty(case)
    gradient, size, cost = np.zeros(6), np.zeros(6), 0.0
    for matrix, part in zip(T, S, strict=True):
        error = _log(np.linalg.inv(matrix) @ said["mean"])
        pull = np.linalg.inv(_right_jacobian(error)).T @ np.linalg.solve(part, error)
        gradient, size, cost = (
            gradient + pull,
            size + np.abs(pull),
            cost + 0.5 * error @ np.linalg.solve(part, error),
        )
    assert (np.abs(gradient) <= 1e-7 * size).all()
    assert said["cost"] == pytest.approx(cost, rel=1e-7)


def test_what_is_known_exactly_is_kept_when_estimates_are_fused() -> None:
    """An exact position stays, and an unknown orientation is that of the other estimate."""
    T, _ = _random(2, seed=5)
    T[1][:3, 3] = T[0][:3, 3]
    S = [np.diag([0, 0, 0, 1e6, 1e6, 1e6]), np.diag([1.0, 1.0, 1.0, 1e-6, 1e-6, 1e-6])]
    said = replay_uncertainty({"kind": "fusion of degenerate estimates", "T": T, "Sigma": S})
    np.testing.assert_allclose(said["mean"][:3, 3], T[0][:3, 3], atol=1e-9)
    np.testing.assert_allclose(said["mean"][:3, :3], T[1][:3, :3], atol=1e-6)
    np.testing.assert_allclose(said["covariance"][:3, :3], 0.0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_conditioned_chain_of_any_size(scale: float) -> None:
    """A single step equals the extended Kalman filter at any length scale."""
    T, S = _random(3, 1.0, 6)
    lengths = np.diag([scale] * 3 + [1.0] * 3)
    S = [1e-8 * lengths @ part @ lengths for part in S]
    for matrix in T:
        matrix[:3, 3] *= scale
    whole, R = T[0] @ T[1] @ T[2], 1e-8 * lengths @ lengths
    Z = whole @ _exp(lengths @ np.array([1, -2, 1, 1, 2, -1]) * 1e-4)
    case = {
        "kind": "conditioning on a pose measurement",
        "T": T,
        "Sigma": S,
        "Z": Z,
        "R": R,
        "iterations_iterated": 0,
    }
    case |= {"mean_ekf": np.zeros(18), "P_ekf": np.zeros((18, 18))}
    said = replay_uncertainty(case)
    prior = np.zeros((18, 18))
    for i in range(3):
        prior[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = S[i]
    error = _log(np.linalg.inv(Z) @ whole)
    after = [np.linalg.inv(T[1] @ T[2]), np.linalg.inv(T[2]), np.eye(4)]
    H = np.linalg.inv(_right_jacobian(error)) @ np.hstack([_ad(matrix) for matrix in after])
    K = np.linalg.solve(H @ prior @ H.T + R, H @ prior).T
    each = np.tile(np.diag(lengths), 3)
    np.testing.assert_allclose(said["mean_ekf"] / each, -K @ error / each, atol=1e-11)
    expected = (prior - K @ H @ prior) / np.outer(each, each)
    np.testing.assert_allclose(said["P_ekf"] / np.outer(each, each), expected, atol=1e-15)
    assert said["iterations_iterated"] < 10


def test_a_position_a_direction_and_a_distance_are_measured_too() -> None:
    """Measurements of other sizes are told by their shape; what is measured exactly is met."""
    T, S = _random(2, 0.05, 7)
    at = (T[0] @ T[1])[:3, 3]
    for Z, R in (
        (at + 0.02, np.zeros((3, 3))),
        (at + np.array([0.01, 0.0, 0.0]), 0.0),
        (1.05 * np.linalg.norm(at), 0.0),
    ):
        said = replay_uncertainty(
            {
                "kind": "measurement",
                "T": T,
                "Sigma": S,
                "Z": np.asarray(Z).tolist(),
                "R": np.asarray(R).tolist(),
            }
        )
        moved = said["mean"][:3, 3]
        wanted, found = (Z, np.linalg.norm(moved)) if np.ndim(Z) == 0 else (Z, moved)
        if np.ndim(R) == 0 and np.ndim(Z):
            wanted, found = Z / np.linalg.norm(Z), moved / np.linalg.norm(moved)
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_covariances_of_the_other_side() -> None:
    """Covariances convert from right to left and back; the cumulative one is the left one."""
    (T,), (S,) = _random(1, 0.1, 8)
    left = _carried(_ad(T), S)
    case = {"T": T, "Sigma": S, "kind": "right to left tangent", "Sigma_left_expected": np.eye(6)}
    _agree(replay_uncertainty(case), {"Sigma_left_expected": left, "covariance": left})
    case = {"T": T, "Sigma": left, "kind": "left to right tangent", "Sigma_expected": np.eye(6)}
    _agree(replay_uncertainty(case), {"Sigma_expected": S, "covariance": S})
    many, parts = _random(4, 0.1, 9)
    mean, covariance = _composed(many, parts)
    case = {"kind": "cumulative chain", "T": many, "Sigma": parts, "C_expected": np.eye(6)}
    _agree(
        replay_uncertainty(case),
        {"C_expected": _carried(_ad(mean), covariance), "covariance": covariance},
    )


def test_exponentials_adjoints_and_jacobians() -> None:
    """Maps of a vector and of a pose, at half a turn but a little too."""
    for xi in (
        np.array([0.3, -0.2, 0.5, 0.4, -0.1, 0.2]),
        np.array([1.0, 2.0, 3.0, 0.0, np.pi - 1e-6, 0.0]),
    ):
        case: dict[str, Any] = {
            "kind": "exponential, adjoint, Jacobian",
            "xi": xi,
            "T_expected": np.eye(4),
        }
        case |= {
            f"{name}_expected": np.eye(6) for name in ("Ad", "Jr", "Jl", "Jr_inv", "Ad_inverse")
        }
        said, T, right = replay_uncertainty(case), _exp(xi), _right_jacobian(xi)
        _agree(
            said,
            {
                "T_expected": T,
                "Ad_expected": _ad(T),
                "Jr_expected": right,
                "Jl_expected": _right_jacobian(-xi),
            },
        )
        _agree(
            said,
            {"Jr_inv_expected": np.linalg.inv(right), "Ad_inverse_expected": _ad(np.linalg.inv(T))},
        )
        _agree(
            replay_uncertainty({"kind": "log", "T": T, "log_expected": xi}), {"log_expected": xi}
        )


def test_six_sizes_of_errors() -> None:
    """Six factors are not read as a tangent vector; diagonals denote covariances."""
    alphas = [0.1, 0.2, 0.3, 0.4, 0.5, 1.0]
    case: dict[str, Any] = {
        "kind": "compounding, left",
        "alphas": alphas,
        "xi1": [0, 2, 0, 0.5, 0, 0],
    }
    case |= {
        "xi2": [0, 0, 1, 0, 0.7, 0],
        "S1_base": [10, 5, 5, 0.5, 1, 0.5],
        "S2_base": [5, 10, 5, 0.5, 0.5, 1],
    }
    said = replay_uncertainty(
        case | {"Sigma_2nd": [np.eye(6).tolist()] * 6, "eps2": [0.0] * 6, "eps4": [0.0] * 6}
    )
    T1 = _exp(np.array(case["xi1"], dtype=float))
    base = np.diag(case["S1_base"]) + _carried(_ad(T1), np.diag(case["S2_base"]))
    np.testing.assert_allclose(said["Sigma_2nd"], [alpha * base for alpha in alphas], atol=1e-10)


def test_a_distance() -> None:
    """The squared Mahalanobis distance of an error."""
    _, (S,) = _random(1, 0.1, 10)
    e = np.arange(6) / 10
    said = replay_uncertainty(
        {"kind": "Mahalanobis distance", "e": e, "Sigma": S, "d2_expected": 0.0}
    )
    assert said["d2_expected"] == pytest.approx(e @ np.linalg.solve(S, e))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "interpretive dance"}, "interpretive dance"),
        ({"gripper": np.eye(6).tolist()}, "gripper"),
        ({"Sigma_extra": np.eye(6).tolist(), "T_extra_2": [1, 2]}, "Sigma_extra, T_extra_2"),
        ({"kind": "conditioning on a measurement"}, "a measurement Z with noise R"),
    ],
)
def test_what_is_not_known_is_named(change: dict[str, Any], named: str) -> None:
    """Kinds and fields that say nothing are errors, not silence."""
    T, S = _random(2, seed=11)
    with pytest.raises(LookupError, match=named):
        replay_uncertainty({"kind": "composition chain", "T": T, "Sigma": S} | change)


def test_expected_errors_are_answers() -> None:
    """An invalid covariance is rejected with its eigenvalues, or raised if unexpected."""
    T, S = _random(2, seed=12)
    S[1] = np.diag([1.0, 1.0, 1.0, 1.0, 1.0, -0.5])
    case = {"kind": "composition chain", "T": T, "Sigma": S}
    said = replay_uncertainty(case | {"expected_error": "not positive semi-definite"})
    assert not said["accept"]
    assert "not positive semi-definite: its eigenvalues are [-0.5" in said["error"]
    with pytest.raises(ValueError, match="not positive semi-definite"):
        replay_uncertainty(case)


def test_named_links_that_are_measured_are_a_chain() -> None:
    """Edges are the links in order; numbered nodes without parents form a complete tree."""
    T, S = _random(2, seed=13)
    Z, R = (T[0] @ T[1] @ _exp(np.full(6, 0.01))).tolist(), (1e-4 * np.eye(6)).tolist()
    plain = {"kind": "conditioning", "T": T, "Sigma": S, "Z": Z, "R": R}
    named = {
        "kind": "conditioning",
        "T_a": T[0],
        "Sigma_a": S[0],
        "T_b": T[1],
        "Sigma_b": S[1],
        "Z": Z,
        "R": R,
    }
    assert np.array_equal(
        replay_uncertainty(plain)["covariance"], replay_uncertainty(named)["covariance"]
    )
    T, S = _random(14, 0.02, 2)
    case: dict[str, Any] = {
        "name": "tree15_n8_to_n15",
        "kind": "path in a tree",
        "T": T,
        "Sigma": S,
    }
    given = case | {"parents": [k // 2 for k in range(2, 16)]}
    assert np.array_equal(
        replay_uncertainty(case)["covariance"], replay_uncertainty(given)["covariance"]
    )


def test_factors_in_the_names_of_covariances() -> None:
    """Covariances that say they are to be multiplied are, row by row."""
    rows = [{"alpha": alpha, "Sigma_2nd": np.eye(6).tolist()} for alpha in (0.1, 1.0)]
    case = {
        "kind": "compounding, left",
        "xi1": [0, 2, 0, 0.5, 0, 0],
        "xi2": [0, 0, 1, 0, 0.7, 0],
        "rows": rows,
    }
    case |= {
        "Sigma1_over_alpha": [10, 5, 5, 0.5, 1, 0.5],
        "Sigma2_over_alpha": [5, 10, 5, 0.5, 0.5, 1],
    }
    tenth, whole = (np.asarray(row["Sigma_2nd"]) for row in replay_uncertainty(case)["rows"])
    np.testing.assert_allclose(10 * tenth, whole, atol=1e-10)
