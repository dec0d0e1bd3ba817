"""Collected cases of geometric relations: accepted and rejected operations, and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.replay import replay_example, replay_operation

from tmkit.relations import (
    OrientationCoord,
    OrientationCoord as Ori,
    PoseCoord,
    PositionCoord,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.representations import (
    AxisAngle,
    EulerAngles,
    FiniteScrew,
    HomogeneousMatrix,
    RotationVector,
    UnitQuaternion,
)

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "semantics.json").read_text(encoding="utf-8")
)
TOLERANCE = 1e-9


@pytest.mark.parametrize(
    "case", CASES["accept_reject_semantic_operations"], ids=lambda c: f"{c['op']}, {c['source']}"
)
def test_operations_are_accepted_or_rejected(case: dict[str, Any]) -> None:
    """The answer, its result, and that every broken rule is named."""
    happened = replay_operation(case)
    assert happened["accept"] == case["accept"]
    assert happened["result"] == case["result"]
    if not case["accept"]:
        assert len(happened["violated"]) >= len(case["violated"])


def test_two_robots() -> None:
    """Part 1 of the paper: the pose of the second tool by six steps."""
    for said, step in zip(
        replay_example(CASES["two_robots"]), CASES["two_robots"]["steps"], strict=True
    ):
        assert said["semantics"] == step["semantics"]
        np.testing.assert_allclose(said["homogeneous"], step["homogeneous"], atol=TOLERANCE)


def test_integration_of_three_twists() -> None:
    """Body-fixed and screw twists give different poses; a pose twist is rejected."""
    cases = CASES["integration"]["cases"]
    for said, case in zip(replay_example(CASES["integration"]), cases, strict=True):
        if "expected_error" in case:
            assert "of one frame" in said["error"]
        else:
            assert said["semantics"] == case["integrate_result"]["semantics"]
            np.testing.assert_allclose(
                said["homogeneous"], case["integrate_result"]["homogeneous"], atol=TOLERANCE
            )
            np.testing.assert_allclose(said["composed"], case["composed"], atol=TOLERANCE)


def test_representations_of_one_orientation() -> None:
    """Each representation of the collected orientation is converted into each."""
    case = CASES["representations"]["orientation"]
    coord = OrientationCoord("[a]|C", "[b]|D", "[b]")
    w, x, y, z = case["quaternion_wxyz"]
    given = [
        SemanticOrientation(coord, case["rotation"]),
        SemanticOrientation(coord, EulerAngles(case["euler_zyx"], "ZYX")),
        SemanticOrientation(coord, EulerAngles(case["rpy_fixed_xyz"], "xyz")),
        SemanticOrientation(coord, AxisAngle(case["axis"], case["angle"])),
        SemanticOrientation(coord, case["rotation_vector"]),
        SemanticOrientation(coord, UnitQuaternion([x, y, z, w])),
    ]
    for orientation in given:
        np.testing.assert_allclose(orientation.numbers[0], case["rotation"], atol=TOLERANCE)
        np.testing.assert_allclose(
            orientation.in_representation(UnitQuaternion).quat_xyzw, [x, y, z, w], atol=1e-9
        )
        vector = orientation.in_representation(RotationVector).vector
        np.testing.assert_allclose(vector, case["rotation_vector"], atol=TOLERANCE)
        angles = orientation.in_representation(
            EulerAngles, like=EulerAngles([0.0, 0.0, 0.0], "ZYX")
        ).angles
        np.testing.assert_allclose(angles, case["euler_zyx"], atol=TOLERANCE)
    elsewhere = case["rotation_vector_in_other_coord_frame"]
    turned = SemanticOrientation(Ori("[b]|D", "[r]|D", "[r]"), elsewhere["R_r2_r"])
    moved = given[4].change_coordinate_frame(turned)
    assert repr(moved.coord) == "OrientationCoord('[a]|C', '[b]|D', '[r]')"
    np.testing.assert_allclose(
        moved.in_representation(RotationVector).vector, elsewhere["vector"], atol=TOLERANCE
    )


def test_the_screw_axis_of_a_pose() -> None:
    """Direction, moment, angle, displacement and a point of the axis; and back."""
    case = CASES["representations"]["screw_axis"]
    pose = SemanticPose(PoseCoord("{g}|C", "{h}|D", "[h]"), case["pose"])
    screw = pose.in_representation(FiniteScrew)
    np.testing.assert_allclose(screw.direction, case["direction"], atol=TOLERANCE)
    np.testing.assert_allclose(screw.moment, case["moment"], atol=TOLERANCE)
    np.testing.assert_allclose(screw.point, case["point_on_axis"], atol=TOLERANCE)
    assert screw.angle == pytest.approx(case["angle"], abs=TOLERANCE)
    assert screw.displacement == pytest.approx(case["displacement"], abs=TOLERANCE)
    back = SemanticPose(pose.coord, screw).in_representation(HomogeneousMatrix)
    np.testing.assert_allclose(back.matrix, case["pose"], atol=TOLERANCE)


def numeric(op: str) -> dict[str, Any]:
    """Return the inputs and what is expected of a case with numbers."""
    return next(case for case in CASES["numeric_operations"] if case["op"].startswith(op))


def test_numbers_of_single_operations() -> None:
    """Inverse, composition and change of a twist's point and frame equal the cases."""
    case = numeric("pose.inverse2")
    pose = SemanticPose(PoseCoord("{g}|C", "{h}|D", "[h]"), case["inputs"]["T"])
    np.testing.assert_allclose(
        pose.inverse2().representation.matrix, case["expected"]["T"], atol=TOLERANCE
    )
    case = numeric("orientation.compose")
    first = SemanticOrientation(OrientationCoord("[a]|C", "[g]|E", "[g]"), case["inputs"]["R_ga"])
    second = SemanticOrientation(OrientationCoord("[g]|E", "[b]|D", "[b]"), case["inputs"]["R_bg"])
    for composed in (first.compose(second), second.compose(first)):
        assert repr(composed.coord) == "OrientationCoord('[a]|C', '[b]|D', '[b]')"
        np.testing.assert_allclose(composed.numbers[0], case["expected"]["R_ba"], atol=TOLERANCE)
    case = numeric("twist.changePoint")
    twist = SemanticTwist(
        TwistCoord("e|C", "D", "[r]"),
        np.concatenate([case["inputs"]["linear"], case["inputs"]["angular"]]),
    )
    moved = twist.change_point(
        SemanticPosition(PositionCoord("e2|C", "e|C", "[r]"), case["inputs"]["new_point_from_old"])
    )
    expected = np.concatenate([case["expected"]["linear"], case["expected"]["angular"]])
    np.testing.assert_allclose(moved.representation.vector, expected, atol=TOLERANCE)
    case = numeric("power invariance")
    inputs = case["inputs"]
    wrench = SemanticWrench(
        WrenchCoord("e|C", "D", "[r]"), np.concatenate([inputs["force"], inputs["torque"]])
    )
    twist = SemanticTwist(
        TwistCoord("e|C", "D", "[r]"), np.concatenate([inputs["linear"], inputs["angular"]])
    )
    way = SemanticPosition(PositionCoord("e2|C", "e|C", "[r]"), inputs["d"])
    assert wrench.dot(twist) == pytest.approx(case["expected"]["power"], abs=TOLERANCE)
    assert wrench.change_point(way).dot(twist.change_point(way)) == pytest.approx(
        case["expected"]["power"], abs=1e-9
    )


def test_a_wrench_and_a_twist_in_another_frame() -> None:
    """A published unit test of wrenches and twists: the same power, the same numbers."""
    case = CASES["cases_from_repositories"][0]
    wrench = SemanticWrench(WrenchCoord("o|C", "D", "[r]"), [*case["force"], *case["torque"]])
    twist = SemanticTwist(TwistCoord("o|C", "D", "[r]"), [*case["linear"], *case["angular"]])
    # the old origin lies at p in the new frame, so the new point lies at -p from the old one
    way = SemanticPosition(PositionCoord("n|C", "o|C", "[r]"), -np.array(case["p"], dtype=float))
    assert wrench.dot(twist) == pytest.approx(case["expected_power"])
    moved, turned = wrench.change_point(way), twist.change_point(way)
    np.testing.assert_allclose(moved.numbers[1], case["expected_torque"], atol=TOLERANCE)
    np.testing.assert_allclose(turned.numbers[0], case["expected_linear"], atol=TOLERANCE)
    assert moved.dot(turned) == pytest.approx(case["expected_power"])
