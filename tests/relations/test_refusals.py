"""Rejected relations and their messages: notation, numbers, representations, units."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tmkit.errors import UnknownNameError
from tmkit.relations import (
    OrientationCoord,
    PoseCoord,
    PoseSemantics,
    PositionCoord,
    SemanticError,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    TwistCoord,
    apply,
    checks_off,
    declares,
    from_dict,
)
from tmkit.relations.representations import (
    DualQuaternion,
    EulerAngles,
    FiniteScrew,
    HomogeneousMatrix,
    PositionVector,
    RotationMatrix,
    RotationMatrixRate,
    UnitQuaternion,
    VectorAndQuaternion,
)
from tmkit.relations.semantics import TwistSemantics
from tmkit.relations.violations import checks_are_on
from tmkit.spatial import Pose


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PoseCoord("f1|O1", "{o2}|O2", "[o2]"), r"written as \{g\}\|C"),
        (lambda: PoseCoord("{f1}|O1", "{o2}|O2", "o2"), r"frame of expression is written as \[r\]"),
        (lambda: PositionCoord("{e}|C", "f|D", "[r]"), r"a point on a body is written as e\|C"),
        (
            lambda: OrientationCoord("a|C", "[b]|D", "[b]"),
            r"an orientation frame on a body is written as \[a\]\|C",
        ),
        (lambda: TwistCoord("e|C", "f|D", "[r]"), "a body is written as C"),
        (
            lambda: TwistSemantics.from_names(point="e", body="", ref_body="D"),
            "body is a name, without spaces",
        ),
    ],
)
def test_notation_that_is_none(make: Any, message: str) -> None:
    """The message shows the form."""
    with pytest.raises(SemanticError, match=message):
        make()


def test_fields_by_name() -> None:
    """Missing and surplus fields are named."""
    with pytest.raises(
        TypeError,
        match="TwistSemantics has the fields point, body, ref_body; given were point, body",
    ):
        TwistSemantics.from_names(point="e", body="C")
    assert PoseSemantics("{g}|C", "(f,[b])|D") == PoseSemantics.from_names(
        point="g", ori="g", body="C", ref_point="f", ref_ori="b", ref_body="D"
    )


SKEWED = [[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: RotationMatrix(SKEWED),
            r"orthonormal and right-handed \(R R\^T differs from the identity by 0.1",
        ),
        (lambda: RotationMatrix(np.diag([1.0, 1.0, -1.0])), "left-handed: its determinant is -1"),
        (lambda: UnitQuaternion([0, 0, 0, 2]), "its norm is 1 .norm 2"),
        (lambda: HomogeneousMatrix(np.zeros((4, 4))), "orthonormal"),
        (
            lambda: HomogeneousMatrix(np.vstack([np.eye(4)[:3], [0, 0, 0, 0.5]])),
            "its last row is 0 0 0 1",
        ),
        (lambda: PositionVector([1, 2]), r"it has shape \(3,\) \(shape \(2,\)"),
        (lambda: PositionVector([1, 2, float("nan")]), "its numbers are finite"),
        (lambda: PositionVector("abc"), "it has numbers of shape"),
        (lambda: EulerAngles([0, 0, 0], "XXY"), "no two neighbours alike"),
        (lambda: EulerAngles([0, 0, 0], "XyZ"), "all capital or all small"),
        (
            lambda: DualQuaternion([0, 0, 0, 1], [0, 0, 0, 1]),
            "real and dual part of a unit dual quaternion",
        ),
        (
            lambda: FiniteScrew([1, 0, 0], [1, 0, 0], 0.1, 0.0),
            "direction and moment of a line are orthogonal",
        ),
        (lambda: RotationMatrixRate(np.eye(3), np.eye(3)), "Rdot R.T is skew-symmetric"),
    ],
)
def test_numbers_that_are_no_representation(make: Any, message: str) -> None:
    """The message has the size of the defect."""
    with pytest.raises(SemanticError, match=message):
        make()


def test_angles_where_two_axes_coincide() -> None:
    """Euler angles that are not determined are rejected, not guessed."""
    turn = RotationMatrix([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    orientation = SemanticOrientation(OrientationCoord("[a]|C", "[b]|D", "[b]"), turn)
    with pytest.raises(SemanticError, match="first and the third axis coincide"):
        orientation.in_representation(EulerAngles)


def test_representations_constrain_coordinates() -> None:
    """A matrix has to be expressed in its reference frame; a homogeneous one relates frames."""
    with pytest.raises(SemanticError, match="coordinate frame r and reference orientation frame b"):
        SemanticOrientation(OrientationCoord("[a]|C", "[b]|D", "[r]"), np.eye(3))
    with pytest.raises(
        SemanticError,
        match=r"2 rules are broken.*origin of its orientation frame.*expressed in its",
    ):
        SemanticPose(PoseCoord("(e,[a])|C", "{b}|D", "[r]"), np.eye(4))
    with pytest.raises(SemanticError, match=r"a representation of a Pose .RotationMatrix"):
        SemanticPose(PoseCoord("{a}|C", "{b}|D", "[b]"), RotationMatrix(np.eye(3)))
    with pytest.raises(SemanticError, match=r"one of the shapes \(6,\)"):
        SemanticTwist(TwistCoord("e|C", "D", "[r]"), [1, 2, 3])
    with pytest.raises(SemanticError, match="has coordinates of class TwistCoord"):
        SemanticTwist(PositionCoord("e|C", "f|D", "[r]"), np.zeros(6))
    with pytest.raises(
        SemanticError, match=r"a representation of a Twist is given by its class .RotationMatrix"
    ):
        SemanticTwist(TwistCoord("e|C", "D", "[r]"), np.zeros(6)).in_representation(RotationMatrix)


def test_a_pose_value_is_taken_as_it_is() -> None:
    """A tmkit pose becomes vector and quaternion, and comes back with the same bits."""
    pose = Pose.from_rpy([1, 2, 3], [0.1, 0.2, 0.3])
    held = SemanticPose(PoseCoord("{a}|C", "{b}|D", "[b]"), pose)
    assert held.in_representation(VectorAndQuaternion).pose == pose


def test_operations_that_do_not_exist() -> None:
    """Unknown names get the nearest one; known ones say for what they are not."""
    with pytest.raises(
        UnknownNameError, match="unknown operation 'changePont'; did you mean 'change_point'"
    ):
        apply("changePont", TwistCoord("e|C", "D", "[r]"))
    with pytest.raises(SemanticError, match=r"there is no inverse2 for these relations .Twist"):
        apply("inverse2", TwistCoord("e|C", "D", "[r]"))
    with pytest.raises(SemanticError, match="there is no compose of these operands"):
        apply("compose", TwistCoord("e|C", "D", "[r]"))
    twist = SemanticTwist(TwistCoord("e|C", "D", "[e]"), np.zeros(6))
    with pytest.raises(SemanticError, match=r"there is no inverse2 of these operands .a Twist"):
        apply("inverse2", twist)
    assert apply("integrate", twist, 1.0).coord == PoseCoord("{e}|C", "{e}|D", "[e]")


def test_values_cannot_be_changed() -> None:
    """Coordinates and relations are immutable."""
    coord = TwistCoord("e|C", "D", "[r]")
    with pytest.raises(AttributeError, match="a TwistCoord is immutable; 'point' cannot be set"):
        coord.point = "f"
    with pytest.raises(AttributeError, match="is immutable"):
        SemanticTwist(coord, np.zeros(6)).coord = coord
    with pytest.raises(ValueError, match="read-only"):
        SemanticTwist(coord, np.zeros(6)).numbers[0][0] = 1.0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"rel": "Twist", "point": "e", "body": "C", "coord": "r"},
            "a Twist has the field ref_body",
        ),
        (
            {"rel": "Force", "point": "e", "body": "C", "ref_body": "D", "coord": "r"},
            "a Force has no field point",
        ),
        (
            {"rel": "Force", "body": "C", "ref_body": "D", "values": {}},
            "numbers are expressed in a frame",
        ),
        (
            {
                "rel": "Force",
                "body": "C",
                "ref_body": "D",
                "coord": "r",
                "values": {"representation": "ForceVector"},
            },
            "a ForceVector holds vector",
        ),
    ],
)
def test_json_that_is_no_relation(data: dict[str, Any], message: str) -> None:
    """The message names the field."""
    with pytest.raises(SemanticError, match=message):
        from_dict(data)


def test_json_of_unknown_things() -> None:
    """Relations and representations get the nearest name."""
    with pytest.raises(UnknownNameError, match="unknown relation 'Twst'; did you mean 'Twist'"):
        from_dict({"rel": "Twst"})
    values = {"representation": "ForceVectr", "vector": [0, 0, 0]}
    with pytest.raises(
        UnknownNameError, match="unknown representation 'ForceVectr'; did you mean 'ForceVector'"
    ):
        from_dict({"rel": "Force", "body": "C", "ref_body": "D", "coord": "r", "values": values})


def test_checks_can_be_switched_off_in_one_thread() -> None:
    """Within the block rules are not asked; elsewhere they are, and afterwards too."""
    first, second = TwistCoord("e|C", "E", "[r]"), TwistCoord("g|F", "D", "[s]")
    elsewhere: list[bool] = []
    with checks_off():
        assert apply("compose", first, second) == TwistCoord("e|C", "D", "[r]")
        thread = threading.Thread(target=lambda: elsewhere.append(checks_are_on()))
        thread.start()
        thread.join()
    assert elsewhere == [True]
    with pytest.raises(SemanticError, match="3 rules are broken"):
        apply("compose", first, second)


@declares(
    pose=PoseCoord("{?g}|?C", "{?h}|?D", "[?h]"), returns=PoseCoord("{?h}|?D", "{?g}|?C", "[?g]")
)
def turned_round(pose: SemanticPose, *, wrongly: bool = False) -> SemanticPose:
    """Return a pose the other way round, or as it was."""
    return pose if wrongly else pose.inverse2()


def test_functions_with_declared_semantics() -> None:
    """Names that begin with a question mark stand for one name throughout a call."""
    pose = SemanticPose(PoseCoord("{a}|A", "{b}|B", "[b]"), np.eye(4))
    assert turned_round(pose).coord == PoseCoord("{b}|B", "{a}|A", "[a]")
    with pytest.raises(
        SemanticError,
        match=r"turned_round: .*the result has the declared point .a and \?h, which is b",
    ):
        turned_round(pose, wrongly=True)
    with pytest.raises(SemanticError, match=r"argument pose is a Pose .SemanticTwist"):
        turned_round(SemanticTwist(TwistCoord("e|C", "D", "[r]"), np.zeros(6)))  # type: ignore[arg-type]
    with checks_off():
        assert turned_round(pose, wrongly=True) is pose
    with pytest.raises(TypeError, match="has no argument 'place' to declare"):
        declares(place=TwistCoord("e|C", "D", "[r]"))(turned_round)


def test_quantities_with_units_are_converted() -> None:
    """A quantity with a unit becomes SI; one of another dimension is rejected."""
    pint = pytest.importorskip("pint")
    unit = pint.UnitRegistry()
    coord = PositionCoord("e|C", "f|D", "[r]")
    assert SemanticPosition(coord, [10, 20, 30] * unit.cm).numbers[0].tolist() == pytest.approx(
        [0.1, 0.2, 0.3]
    )
    angles = EulerAngles([90, 0, 0] * unit.degree)
    assert angles.angles[0] == pytest.approx(np.pi / 2)
    with pytest.raises(
        SemanticError, match=r"position vector: it is a length in m .a quantity in s"
    ):
        SemanticPosition(coord, [1, 2, 3] * unit.second)


def test_quantities_of_any_library_are_converted() -> None:
    """An object with a magnitude and a conversion is a quantity."""
    quantity = SimpleNamespace(
        magnitude=[1, 2, 3], to=lambda _: SimpleNamespace(magnitude=[0.1, 0.2, 0.3])
    )
    assert PositionVector(quantity).vector.tolist() == [0.1, 0.2, 0.3]  # type: ignore[arg-type]
