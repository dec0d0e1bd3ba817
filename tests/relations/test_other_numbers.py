"""The replay of cases with numbers accepts other operations, names and layouts.

What is expected comes from plain matrices in this file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm
from support.replay import replay_example, replay_graph_script, replay_operation

from tmkit.relations import (
    PoseCoord,
    PositionCoord,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    TwistCoord,
)

Array = NDArray[np.float64]


def _hat(v: Array) -> Array:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]], dtype=float)


def _rotation(seed: int) -> Array:
    return np.asarray(expm(_hat(np.random.default_rng(seed).normal(size=3))))


def _matrix(seed: int) -> Array:
    made = np.eye(4)
    made[:3, :3], made[:3, 3] = _rotation(seed), np.random.default_rng(seed + 100).normal(size=3)
    return made


R1, R2, T1, T2 = _rotation(1), _rotation(2), _matrix(3), _matrix(4)
V, W, F, M, D, P = np.random.default_rng(5).normal(size=(6, 3))
V2, W2, F2, M2 = np.random.default_rng(6).normal(size=(4, 3))
MOVED = np.asarray(expm(1.7 * np.vstack([np.column_stack([_hat(W), V]), np.zeros(4)])))
TWIST = {"linear": V, "angular": W}
WRENCH = {"force": F, "torque": M}

OPERATIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("position.compose", {"p1": V, "p2": W}, {"p": V + W}),
    ("position.compose", {"p_ga": V, "p_bg": W}, {"p_ba": V + W}),
    ("position.changePoint", {"p": V, "new_point_from_old": D}, {"p": V + D}),
    ("position.changeReferencePoint", {"p": V, "old_point_from_new": D}, {"p": V + D}),
    ("position.changeCoordinateFrame", {"p": V, "R": R1}, {"p": R1 @ V}),
    ("position.differentiate", {"p0": V, "p1": W, "dt": 0.5}, {"linear": 2 * (W - V)}),
    ("orientation.inverse2", {"R": R1}, {"R": R1.T}),
    ("orientation.compose", {"R1": R1, "R2": R2}, {"R": R2 @ R1}),
    ("orientation.compose", {"R_b1_g": R2, "R_g_a": R1}, {"R": R2 @ R1}),
    ("orientation.compose (in a common frame)", {"Q1": R1, "Q2": R2}, {"Q": R1 @ R2}),
    ("orientation.changeOrientationFrame", {"R_ba": R1, "R_aa2": R2}, {"R_ba2": R1 @ R2}),
    ("orientation.changeReferenceOrientationFrame", {"R_ba": R1, "R_cb": R2}, {"R_ca": R2 @ R1}),
    ("pose.compose", {"T_ga": T1, "T_bg": T2}, {"T_ba": T2 @ T1}),
    ("pose.compose", {"T_bg": T2, "T_ga": T1}, {"T_ba": T2 @ T1}),
    ("pose.inverse2", {"p": V, "R": R1}, {"p": -R1.T @ V, "R": R1.T}),
    ("pose.changePoint", {"p": V, "R": R1, "d": D}, {"p": V + D, "R": R1}),
    (
        "pose.changeReferencePoint",
        {"p": V, "R": R1, "old_ref_point_from_new": D},
        {"p": V + D, "R": R1},
    ),
    ("pose.differentiate", {"T0": T1, "T1": T1 @ MOVED, "dt": 1.7}, TWIST),
    ("pose.differentiate (screw)", {"T0": T1, "T1": MOVED @ T1, "dt": 1.7}, TWIST),
    ("linearVelocity.inverse", {"v": V}, {"v": -V}),
    (
        "linear_velocity.changePoint",
        {"linear": V, "angular": W, "d": D},
        {"linear": V + np.cross(W, D)},
    ),
    ("angularVelocity.compose", {"w1": V, "w2": W}, {"w": V + W}),
    ("angular_velocity.changeCoordinateFrame", {"w": W, "R": R1}, {"angular": R1 @ W}),
    ("twist.inverse", TWIST, {"linear": -V, "angular": -W}),
    (
        "twist.compose",
        {"linear1": V, "angular1": W, "linear2": V2, "angular2": W2},
        {"v": V + V2, "w": W + W2},
    ),
    (
        "twist.compose",
        {"twist1": TWIST, "twist2": {"linear": V2, "angular": W2}},
        {"linear": V + V2, "angular": W + W2},
    ),
    ("twist.changeCoordinateFrame", TWIST | {"R": R1}, {"linear": R1 @ V, "angular": R1 @ W}),
    ("twist.changePointBody", TWIST | {"d": D}, {"linear": V + np.cross(W, D), "angular": W}),
    ("twist.integrate", TWIST | {"t": 1.7}, {"T": MOVED, "p": MOVED[:3, 3]}),
    ("angularVelocity.integrate", {"w": W, "t": 1.7}, {"R": MOVED[:3, :3]}),
    ("force.compose", {"f1": F, "f2": F2}, {"f": F + F2}),
    ("torque.changePoint", {"torque": M, "force": F, "d": D}, {"torque": M - np.cross(D, F)}),
    ("wrench.inverse", WRENCH, {"force": -F, "torque": -M}),
    (
        "wrench.compose",
        {"force_1": F, "torque_1": M, "force_2": F2, "torque_2": M2},
        {"force": F + F2, "torque": M + M2},
    ),
    (
        "wrench.changePoint",
        WRENCH | {"new_point_from_old": D},
        {"force": F, "torque": M - np.cross(D, F)},
    ),
    (
        "wrench.changeFrame",
        WRENCH | {"R": R1, "p": P},
        {"force": R1 @ F, "torque": R1 @ M + np.cross(P, R1 @ F)},
    ),
    ("power in another frame", WRENCH | TWIST | {"R": R1, "p": P}, {"power": F @ V + M @ W}),
    ("wrench.dot", WRENCH | TWIST, {"power": F @ V + M @ W}),
]


@pytest.mark.parametrize(
    ("op", "inputs", "expected"), OPERATIONS, ids=[f"{op}-{'-'.join(i)}" for op, i, _ in OPERATIONS]
)
def test_operations_give_the_numbers_of_matrices(
    op: str, inputs: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Each operation on numbers, under the names that a case may use."""
    said = replay_operation({"op": op, "inputs": inputs, "expected": expected, "rule": ""})
    assert said["accept"], said["violated"]
    for name, value in expected.items():
        np.testing.assert_allclose(said["result"][name], value, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("case", "named"),
    [
        ({"op": "twist.twirl", "inputs": TWIST}, "twirl"),
        ({"op": "screw.inverse", "inputs": TWIST}, "screw.inverse"),
        ({"op": "twist.inverse", "inputs": TWIST | {"colour": [1, 2, 3]}}, "colour"),
        ({"op": "twist.inverse", "inputs": TWIST | {"R": R1}}, "does not use: R"),
        ({"op": "twist.inverse", "inputs": TWIST, "expected": {"volume": 1.0}}, "volume"),
        ({"op": "twist.inverse", "inputs": TWIST, "weights": [1.0]}, "weights"),
        (
            {"op": "twirl", "args": [{"rel": "Force", "body": "C", "ref_body": "D", "coord": "r"}]},
            "twirl",
        ),
        ({"op": "inverse", "args": [{"rel": "Spin", "body": "C"}]}, "Spin"),
        (
            {
                "op": "inverse",
                "args": [{"rel": "Force", "corpse": "C", "ref_body": "D", "coord": "r"}],
            },
            "corpse",
        ),
    ],
)
def test_what_is_not_known_is_named(case: dict[str, Any], named: str) -> None:
    """An operation, a relation or a field that cannot be read is no refusal: the error names it."""
    with pytest.raises(LookupError, match=named):
        replay_operation(case)


def test_refusals_stay_refusals() -> None:
    """An unknown field and a matrix with another point are rejected by the rules."""
    pointed = {"rel": "AngularVelocity", "point": "e", "body": "C", "ref_body": "D", "coord": "r"}
    assert not replay_operation({"op": "inverse", "args": [pointed]})["accept"]
    assert not replay_operation({"op": "pose.changePoint", "inputs": {"T": T1, "d": D}})["accept"]
    assert not replay_operation(
        {"op": "orientation.changeCoordinateFrame", "inputs": {"R": R1, "R_sr": R2}}
    )["accept"]


def test_a_wrench_and_a_twist_in_another_frame() -> None:
    """Both at once, the old frame turned by fixed angles, and their power."""
    rpy = np.array([0.3, -0.5, 0.7])
    turn = np.linalg.multi_dot(
        [expm(_hat(axis * angle)) for axis, angle in zip(np.eye(3)[::-1], rpy[::-1], strict=True)]
    )
    [said] = replay_example(
        {"source": "", "rpy": rpy, "p": P, **WRENCH, **TWIST, "expected_power": 0.0}
    )
    np.testing.assert_allclose(said["expected_force"], turn @ F, atol=1e-12)
    np.testing.assert_allclose(
        said["expected_torque"], turn @ M + np.cross(P, turn @ F), atol=1e-12
    )
    np.testing.assert_allclose(
        said["expected_linear"], turn @ V + np.cross(P, turn @ W), atol=1e-12
    )
    assert said["expected_power"] == pytest.approx(F @ V + M @ W)


def test_an_orientation_without_euler_angles_has_its_other_representations() -> None:
    """Euler angles with coincident axes raise an error; half a turn and zero are valid."""
    pitched = np.asarray(expm(_hat(np.array([0, np.pi / 2, 0]))))
    [said] = replay_example({"rotation": pitched, "rotation_vector": [0, np.pi / 2, 0]})
    np.testing.assert_allclose(said["rotation_vector"], [0, np.pi / 2, 0], atol=1e-12)
    assert "euler_zyx" not in said
    [asked] = replay_example({"rotation": pitched, "euler_zyx": "not determined"})
    assert "coincide" in asked["euler_zyx"]["error"]
    [half] = replay_example({"rotation": np.diag([-1.0, 1.0, -1.0])})
    assert half["angle"] == pytest.approx(np.pi)
    [none] = replay_example({"pose": np.eye(4)})
    assert none["angle"] == none["displacement"] == 0.0


def test_an_axis_of_a_twist_and_of_a_wrench() -> None:
    """The pitch is the ratio of the intensities along and about the axis."""
    [twist] = replay_example(TWIST)
    assert twist["pitch"] == pytest.approx(V @ W / (W @ W))
    np.testing.assert_allclose(twist["point_on_axis"], np.cross(W, V) / (W @ W), atol=1e-12)
    [wrench] = replay_example({"wrench": WRENCH})
    assert wrench["pitch"] == pytest.approx(F @ M / (F @ F))
    np.testing.assert_allclose(wrench["point_on_axis"], np.cross(F, M) / (F @ F), atol=1e-12)


def test_scripts_name_what_they_cannot_read() -> None:
    """An unknown operation or field of a script is an error, not a rejected case."""
    begin: list[dict[str, Any]] = [{"op": "add_body", "body": "C"}]
    begin += [{"op": "add_frame", "frame": name, "body": "C"} for name in ("c", "c2")]
    for op, named in (
        ({"op": "explode"}, "explode"),
        ({"op": "add_body", "body": "E", "mass": 1.0}, "mass"),
    ):
        with pytest.raises(LookupError, match=named):
            replay_graph_script({"ops": [*begin, op]})
    joined = {"op": "add_pose", "child": "c2", "parent": "c"}
    said = replay_graph_script(
        {"ops": [*begin, *({**joined, "value": v} for v in (T1.tolist(), T1.tolist(), "T2"))]}
    )
    assert [step["accept"] for step in said[3:]] == [True, True, False]
    for first, second in (("T1", "T2"), ("a", "x"), (1, 2)):
        said = replay_graph_script(
            {"ops": [*begin, *({**joined, "value": v} for v in (first, first, second))]}
        )
        assert [step["accept"] for step in said[3:]] == [True, True, False]
    ask = {"op": "get_pose", "child": "c2", "parent": "c"}
    said = replay_graph_script({"ops": [*begin, {**joined, "homogeneous": T1}, ask]})
    np.testing.assert_allclose(said[-1]["result"], T1, atol=1e-12)


def test_a_difference_of_poses_is_a_body_fixed_and_a_screw_twist() -> None:
    """Both twists of an example of differentiation lead there."""
    body_fixed, screw = replay_example({"T0": T1, "T1": T1 @ MOVED, "dt": 1.7})
    np.testing.assert_allclose(body_fixed["linear"], V, atol=1e-12)
    led = (
        expm(
            1.7
            * np.vstack([np.column_stack([_hat(screw["angular"]), screw["linear"]]), np.zeros(4)])
        )
        @ T1
    )
    np.testing.assert_allclose(led, T1 @ MOVED, atol=1e-12)


def test_the_chain_of_an_arm_in_the_plane() -> None:
    """Pose and twist of three joints about z, with links along x."""
    base = PoseCoord("{f0}|L0", "{f0}|L0", "[f0]")
    arm = SemanticPose(base, np.eye(4))
    for i, (angle, length) in enumerate(((np.pi / 2, 0.4), (np.pi / 2, 0.4), (np.pi / 4, 0.5))):
        link = np.eye(4)
        link[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        link[:2, 3] = length * link[:2, 0]
        step = PoseCoord(f"{{f{i + 1}}}|L{i + 1}", f"{{f{i}}}|L{i}", f"[f{i}]")
        arm = arm.compose(SemanticPose(step, link))
        if i == 0:
            first = arm
    np.testing.assert_allclose(
        arm.numbers[0], [-0.7535533905932737, 0.04644660940672624, 0], atol=1e-12
    )
    assert arm.coord == PoseCoord("{f3}|L3", "{f0}|L0", "[f0]")
    turning = SemanticTwist(TwistCoord("f0|L1", "L0", "[f0]"), [0, 0, 0, 0, 0, 0.15])
    way = SemanticPosition(PositionCoord("f1|L1", "f0|L1", "[f0]"), first.numbers[0])
    at_tip = turning.change_point(way)
    np.testing.assert_allclose(at_tip.linear.numbers[0], [-0.06, 0, 0], atol=1e-12)
    inside = at_tip.change_coordinate_frame(first.orientation.inverse2())
    np.testing.assert_allclose(inside.linear.numbers[0], [0, 0.06, 0], atol=1e-12)
