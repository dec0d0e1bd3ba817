"""Cases of uncertain poses with sample moments, and computed variants.

The siblings have other shapes and names of fields, and what they expect comes from plain matrices
in this file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.replay import replay_uncertainty

from tmkit._core import inverse_right_jacobian
from tmkit.spatial import Pose, adjoint

Array = NDArray[np.float64]

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[1] / "data" / "uncertainty.json").read_text(encoding="utf-8")
)["cases"]

# What only a sampler can say, and what is given.
_NOT_COMPUTED = {
    "name",
    "kind",
    "mc_n",
    "mean_mc",
    "exact_identity_max_err",
    "joint_route_vs_path_route",
    "nees_expect6",
}


def test_what_is_given_is_no_answer() -> None:
    """Fields that are read are not among what is said, whatever they are called."""
    T, S = _random(2, 0.01, 8)
    case: dict[str, Any] = {
        "kind": "composition",
        "T1": T[0],
        "T2": T[1],
        "Sigma1": S[0],
        "Sigma2": S[1],
        "Sigma66": 1.0,
    }
    said = replay_uncertainty(
        {**case, "Sigma_expected": np.eye(6).tolist(), "Sigma_mc": np.eye(6).tolist(), "n": 3}
    )
    assert set(said) == {"Sigma_expected", "Sigma66", "mean", "covariance"}
    assert said["Sigma66"] == said["Sigma_expected"][5, 5]
    letters = {
        "kind": "composition step",
        "T_a": T[0],
        "Sigma_a": S[0],
        "T_b": T[1],
        "Sigma_b": S[1],
    }
    assert np.array_equal(replay_uncertainty(letters)["covariance"], said["Sigma_expected"])
    measured = {
        "kind": "conditioning",
        "T": T,
        "Sigma": S,
        "T_meas": T[0],
        "Sigma_meas": S[1],
        "P_post": np.eye(12).tolist(),
    }
    assert set(replay_uncertainty(measured)) == {"P_post", "mean", "covariance"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_case_gives_what_it_expects(case: dict[str, Any]) -> None:
    """Every field that can be computed is, and agrees to 1e-9 of its greatest number."""
    said = replay_uncertainty(case)
    left_out = {key for key in case if key not in said and "_mc" not in key} - _NOT_COMPUTED
    assert left_out <= {"T", "Sigma", "T_true"} | {
        key for key in case if key.startswith(("T_root", "T_common", "Sigma_"))
    }
    for key, value in case.items():
        if key in said:
            scale = np.abs(np.asarray(value)).max()
            np.testing.assert_allclose(said[key], value, rtol=0, atol=1e-9 * scale, err_msg=key)
    assert any("expected" in key or "order" in key for key in said)
    assert np.shape(said["mean"]) == (4, 4)
    assert np.shape(said["covariance"]) == (6, 6)


def _random(count: int, size: float, seed: int) -> tuple[list[Any], list[Any]]:
    """Return poses and covariances of that size."""
    rng = np.random.default_rng(seed)
    matrices = [Pose.exp(rng.normal(size=6)).as_matrix().tolist() for _ in range(count)]
    roots = rng.normal(size=(count, 6, 6)) * size
    return matrices, (roots @ roots.transpose(0, 2, 1)).tolist()


def _adjoint(matrix: Array) -> Array:
    return adjoint(Pose.from_matrix(matrix))


def test_a_single_step_between_named_frames() -> None:
    """An edge between frames that others connect already is what is asked for."""
    (ab, bc), (s_ab, s_bc) = (np.array(part) for part in _random(2, 0.01, 1))
    carried = _adjoint(np.linalg.inv(bc))
    case = {
        "kind": "composition",
        "T_ab": ab.tolist(),
        "Sigma_ab": s_ab.tolist(),
        "T_bc": bc.tolist(),
        "Sigma_bc": s_bc.tolist(),
    }
    said = replay_uncertainty(
        {**case, "T_ac_expected": np.eye(4).tolist(), "Sigma_ac_first_order": np.eye(6).tolist()}
    )
    np.testing.assert_allclose(said["T_ac_expected"], ab @ bc, atol=1e-12)
    np.testing.assert_allclose(
        said["Sigma_ac_first_order"], carried @ s_ab @ carried.T + s_bc, atol=1e-12
    )


def test_leaves_of_an_edge_that_they_share() -> None:
    """Edges with one letter hang below the shared one; the joint covariance has both leaves."""
    (c, a, b), (s_c, s_a, s_b) = (np.array(part) for part in _random(3, 0.01, 2))
    case = {"kind": "joint of two leaves", "T_C": c.tolist(), "T_A": a.tolist(), "T_B": b.tolist()}
    case |= {"Sigma_C": s_c.tolist(), "Sigma_A": s_a.tolist(), "Sigma_B": s_b.tolist()}
    said = replay_uncertainty({**case, "joint12_expected": np.eye(12).tolist()})
    maps = np.vstack([_adjoint(np.linalg.inv(a)), _adjoint(np.linalg.inv(b))])
    expected = maps @ s_c @ maps.T
    expected[:6, :6] += s_a
    expected[6:, 6:] += s_b
    np.testing.assert_allclose(said["joint12_expected"], expected, atol=1e-12)


def test_a_path_that_leads_up_and_down() -> None:
    """Edges that a path walks against their direction are inverted, with their covariances."""
    T, S = _random(4, 0.01, 3)
    m = [np.linalg.inv(T[0]), np.linalg.inv(T[1]), np.array(T[2]), np.array(T[3])]
    s = [_adjoint(np.array(T[i])) @ S[i] @ _adjoint(np.array(T[i])).T for i in (0, 1)] + [
        np.array(part) for part in S[2:]
    ]
    mean, covariance = np.eye(4), np.zeros((6, 6))
    for matrix, part in zip(m, s, strict=True):
        carried = _adjoint(np.linalg.inv(matrix))
        mean, covariance = mean @ matrix, carried @ covariance @ carried.T + part
    case = {"kind": "composition, tree query", "T": T, "Sigma": S, "T_expected": mean.tolist()}
    said = replay_uncertainty({**case, "Sigma_first_order": np.eye(6).tolist()})
    np.testing.assert_allclose(said["Sigma_first_order"], covariance, atol=1e-12)


@pytest.mark.parametrize("joint", [True, False], ids=["poses", "vectors"])
def test_a_chain_conditioned_on_a_pose(joint: bool) -> None:
    """One step is the extended Kalman filter; many end where the gradient is zero."""
    T, S = _random(3, 0.05, 4)
    whole = np.array(T[0]) @ T[1] @ T[2]
    Z, R = (
        (whole @ Pose.exp([0.05, -0.1, 0.02, 0.03, 0.1, -0.05]).as_matrix()).tolist(),
        (0.001 * np.eye(6)).tolist(),
    )
    case: dict[str, Any] = {
        "kind": "conditioning on a pose measurement",
        "T": T,
        "Sigma": S,
        "Z": Z,
        "R": R,
    }
    shape: Any = np.zeros((3, 4, 4)).tolist() if joint else np.zeros(18).tolist()
    case |= {
        "mean_ekf": shape,
        "mean_iterated": shape,
        "P_ekf": np.zeros((18, 18)).tolist(),
        "P_iterated": np.zeros((18, 18)).tolist(),
    }
    case |= {"T_path_iterated": np.eye(4).tolist(), "max_abs_corr_iterated": 0.0}
    said = replay_uncertainty(case)
    prior = np.zeros((18, 18))
    for i in range(3):
        prior[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = S[i]
    error = (Pose.from_matrix(Z).inverse() @ Pose.from_matrix(whole)).log()
    after = [np.linalg.inv(np.array(T[1]) @ T[2]), np.linalg.inv(T[2]), np.eye(4)]
    H = inverse_right_jacobian(error) @ np.hstack([_adjoint(matrix) for matrix in after])
    K = prior @ H.T @ np.linalg.inv(H @ prior @ H.T + R)
    np.testing.assert_allclose(said["P_ekf"], prior - K @ H @ prior, atol=1e-12)
    step = -K @ error
    if joint:
        moved = [np.array(T[i]) @ Pose.exp(step[6 * i : 6 * i + 6]).as_matrix() for i in range(3)]
        np.testing.assert_allclose(said["mean_ekf"], moved, atol=1e-12)
        links = [np.array(matrix) for matrix in said["mean_iterated"]]
        np.testing.assert_allclose(
            said["T_path_iterated"], links[0] @ links[1] @ links[2], atol=1e-12
        )
        final = (Pose.from_matrix(Z).inverse() @ Pose.from_matrix(said["T_path_iterated"])).log()
        after = [np.linalg.inv(links[1] @ links[2]), np.linalg.inv(links[2]), np.eye(4)]
        pull = np.linalg.solve(R, final) @ inverse_right_jacobian(final)
        for i in range(3):  # the gradient of the cost by each link
            own = Pose.from_matrix(np.linalg.inv(T[i]) @ links[i]).log()
            gradient = np.linalg.solve(S[i], own) @ inverse_right_jacobian(own) + pull @ _adjoint(
                after[i]
            )
            np.testing.assert_allclose(gradient, 0.0, atol=1e-8)
    else:
        np.testing.assert_allclose(said["mean_ekf"], step, atol=1e-12)
    assert 0.0 < said["max_abs_corr_iterated"] < 1.0


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_compounding_for_many_sizes_of_errors_on_the_left(layout: str) -> None:
    """Two scaled poses with left errors, as rows of a table or columns of arrays."""
    base1, base2 = np.diag([10, 5, 5, 0.5, 1, 0.5]), np.diag([5, 10, 5, 0.5, 0.5, 1])
    xi1, xi2, alphas = [0, 2, 0, np.pi / 6, 0, 0], [0, 0, 1, 0, np.pi / 4, 0], [0.1, 0.5, 1.0]
    case: dict[str, Any] = {
        "kind": "compounding, left",
        "xi1": xi1,
        "xi2": xi2,
        "S1": base1.tolist(),
        "S2": base2.tolist(),
    }
    if layout == "rows":
        case["rows"] = [
            {"alpha": alpha, "Sigma_2nd": np.eye(6).tolist(), "Sigma_4th": np.eye(6).tolist()}
            for alpha in alphas
        ]
        rows = replay_uncertainty(case)["rows"]
    else:
        case |= {
            "alpha": alphas,
            "Sigma_2nd": [np.eye(6).tolist()] * 3,
            "Sigma_4th": [np.eye(6).tolist()] * 3,
        }
        said = replay_uncertainty(case)
        rows = [{key: said[key][i] for key in ("Sigma_2nd", "Sigma_4th")} for i in range(3)]
    carried = adjoint(Pose.exp(xi1))
    for alpha, row in zip(alphas, rows, strict=True):
        S1, S2 = alpha * base1, carried @ (alpha * base2) @ carried.T
        np.testing.assert_allclose(row["Sigma_2nd"], S1 + S2, atol=1e-10)
        np.testing.assert_allclose(row["Sigma_4th"], S1 + S2 + _fourth(S1, S2), atol=1e-10)


def test_a_banana() -> None:
    """A hundred equal steps with errors of the turn on the left: the turn's variances add up."""
    step = np.zeros((6, 6))
    step[5, 5] = 0.03**2
    case = {
        "kind": "composition of equal steps, left",
        "K": 100,
        "T_step": Pose([1.0, 0, 0]).as_matrix().tolist(),
    }
    said = replay_uncertainty(
        {**case, "Sigma_step": step.tolist(), "Sigma_first_order": np.eye(6).tolist()}
    )
    assert said["Sigma_first_order"][5][5] == pytest.approx(0.09, rel=1e-12)
    other = replay_uncertainty(
        {"name": "barfoot", "kind": "banana", "K": 100, "r": 1.0, "sigma": 0.03}
    )
    np.testing.assert_allclose(other["covariance"], said["covariance"], atol=1e-12)


def _fourth(S1: Array, S2: Array) -> Array:
    """Return the fourth-order terms, from expectations of brackets of Gaussian vectors.

    log(exp(x) exp(y)) = x + y + [x, y]/2 + [x, [x, y]]/12 + [y, [y, x]]/12 + ...; for independent x
    and y of mean zero the second moment has E[x,y][x,y]^T / 4 and twice the symmetric part of
    E[x,[x,y]] y^T / 12 and of the same with x and y exchanged.
    """
    basis = np.eye(6)
    brackets = np.array([_bracket(one) for one in basis])  # [x, y]_c = sum x_a (brackets[a] @ y)_c
    quarter = np.einsum("aci,bdj,ab,ij->cd", brackets, brackets, S1, S2) / 4.0
    twice1 = np.einsum("acd,bde,ab->ce", brackets, brackets, S1) @ S2 / 12.0
    twice2 = np.einsum("acd,bde,ab->ce", brackets, brackets, S2) @ S1 / 12.0
    return quarter + twice1 + twice1.T + twice2 + twice2.T


def _bracket(x: Array) -> Array:
    def hat(v: Array) -> Array:
        return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])

    return np.block([[hat(x[3:]), hat(x[:3])], [np.zeros((3, 3)), hat(x[3:])]])
