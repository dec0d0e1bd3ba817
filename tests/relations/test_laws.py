"""Laws of geometric relations over random numbers, against matrices."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from tmkit.relations import (
    AngularVelocityCoord as AngularCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticAngularVelocity,
    SemanticError,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    WrenchCoord,
    apply,
    differentiate,
    from_dict,
    to_dict,
)
from tmkit.relations.representations import (
    AngularFirstTwist,
    AxisAngle,
    DualQuaternion,
    EulerAngleRates,
    EulerAngles,
    FiniteScrew,
    HomogeneousMatrix,
    MomentFirstWrench,
    PoseMatrixRate,
    QuaternionRate,
    RotationMatrix,
    RotationMatrixRate,
    RotationVector,
    UnitQuaternion,
    VectorAndMatrix,
    VectorAndQuaternion,
)
from tmkit.relations.semantics import Coord

Matrix = NDArray[np.float64]
NUMBER = st.integers(-3_000_000, 3_000_000).map(lambda number: number / 1e6)
VECTORS = st.lists(NUMBER, min_size=3, max_size=3).map(np.array)
SIX = st.lists(NUMBER, min_size=6, max_size=6).map(np.array)
FRAMES = ["a", "b", "c", "d", "e"]


@st.composite
def rotations(draw: st.DrawFn) -> Matrix:
    """Draw a rotation matrix."""
    return Rotation.from_rotvec(draw(VECTORS)).as_matrix()


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    """Draw a homogeneous matrix."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = draw(rotations()), draw(VECTORS)
    return matrix


def pose(target: str, reference: str, matrix: Matrix) -> SemanticPose:
    """Return the pose of one body's frame relative to that of another."""
    return SemanticPose(
        PoseCoord(
            f"{{{target}}}|{target.upper()}",
            f"{{{reference}}}|{reference.upper()}",
            f"[{reference}]",
        ),
        matrix,
    )


def close(a: Any, b: Any) -> None:
    """Assert that numbers agree to rounding."""
    np.testing.assert_allclose(a, b, atol=1e-9)


@given(st.lists(matrices(), min_size=4, max_size=4), st.permutations(range(3)), st.booleans())
def test_chains_are_products_of_matrices(
    chain: list[Matrix], order: list[int], turned: bool
) -> None:
    """A chain of poses gives their product in any order of composition."""
    links = [pose(FRAMES[i], FRAMES[i + 1], matrix) for i, matrix in enumerate(chain)]
    expected = chain[3] @ chain[2] @ chain[1] @ chain[0]
    for joint in sorted(range(3), key=lambda i: order[i]):
        left = next(k for k, link in enumerate(links) if link.coord.ref_point == FRAMES[joint + 1])
        first, second = links[left], links[left + 1]
        links[left : left + 2] = [second.compose(first) if turned else first.compose(second)]
    close(links[0].representation.matrix, expected)
    close(links[0].inverse2().representation.matrix, np.linalg.inv(expected))
    assert repr(links[0].coord) == "PoseCoord('{a}|A', '{e}|E', '[e]')"


@given(matrices(), VECTORS, VECTORS, rotations(), rotations())
def test_changes_of_a_pose_are_products_of_matrices(
    matrix: Matrix, way: Matrix, back: Matrix, turn: Matrix, reference: Matrix
) -> None:
    """Points and frames on both sides change as the matrices of the offsets say, piece by piece."""
    start = pose("a", "b", matrix).with_representation(VectorAndMatrix)
    moved = start.change_point(SemanticPosition(PositionCoord("p|A", "a|A", "[b]"), way))
    moved = moved.change_reference_point(SemanticPosition(PositionCoord("b|B", "r|B", "[b]"), back))
    moved = moved.change_orientation_frame(
        SemanticOrientation(OrientationCoord("[q]|A", "[a]|A", "[a]"), turn)
    )
    moved = moved.change_reference_orientation_frame(
        SemanticOrientation(OrientationCoord("[b]|B", "[s]|B", "[s]"), reference)
    )
    assert repr(moved.coord) == "PoseCoord('(p,[q])|A', '(r,[s])|B', '[s]')"
    close(moved.numbers[0], reference @ (matrix[:3, 3] + way + back))
    close(moved.numbers[1], reference @ matrix[:3, :3] @ turn)
    with pytest.raises(SemanticError, match="origin of its orientation frame"):
        moved.in_representation(HomogeneousMatrix)


@given(SIX, SIX, VECTORS, rotations())
def test_twists_and_wrenches_change_so_that_power_stays(
    twist: Matrix, wrench: Matrix, way: Matrix, turn: Matrix
) -> None:
    """Point and frame of both may change; their product does not."""
    t = SemanticTwist(TwistCoord("e|C", "D", "[r]"), twist)
    w = SemanticWrench(WrenchCoord("e|C", "D", "[r]"), wrench)
    step = SemanticPosition(PositionCoord("f|C", "e|C", "[r]"), way)
    axes = SemanticOrientation(OrientationCoord("[r]|D", "[s]|E", "[s]"), turn)
    expected = float(twist @ wrench)
    moved, pushed = (
        t.change_point(step).change_coordinate_frame(axes),
        w.change_point(step).change_coordinate_frame(axes),
    )
    assert pushed.dot(moved) == pytest.approx(expected, abs=1e-9)
    assert moved.power(pushed) == pytest.approx(expected, abs=1e-9)
    close(moved.linear.numbers[0], turn @ (twist[:3] + np.cross(twist[3:], way)))
    linear = t.linear.change_point(step, t.angular)
    close(linear.numbers[0], t.change_point(step).numbers[0])
    torque = w.torque.change_point(step, w.force)
    close(torque.numbers[0], w.change_point(step).numbers[1])


@given(SIX, st.floats(0.01, 2.0), matrices())
def test_integration_is_the_exponential_and_differentiation_its_inverse(
    twist: Matrix, dt: float, start: Matrix
) -> None:
    """The pose after a constant twist is the matrix exponential; the way back gives the twist."""
    assume(np.linalg.norm(twist[3:]) * dt < 3.0)
    v, w = twist[:3], twist[3:]
    generator = np.zeros((4, 4))
    generator[:3, :3], generator[:3, 3] = np.cross(np.eye(3), w), v
    body = SemanticTwist(TwistCoord("g|C", "D", "[g]"), twist)
    moved = body.integrate(dt)
    close(moved.representation.matrix, expm(generator * dt))
    first = SemanticPose(PoseCoord("{g}|C", "{h}|D", "[h]"), start)
    then = SemanticPose(first.coord, start @ moved.representation.matrix)
    again = differentiate(first, then, dt)
    assert again.coord == body.coord
    close(again.representation.vector, twist)
    screw = differentiate(
        first, SemanticPose(first.coord, moved.representation.matrix @ start), dt, screw=True
    )
    assert repr(screw.coord) == "TwistCoord('h|C', 'D', '[h]')"
    close(screw.representation.vector, twist)
    turned = SemanticAngularVelocity(AngularCoord("C", "D", "[r]"), w).integrate(dt)
    close(turned.numbers[0], Rotation.from_rotvec(w * dt).as_matrix())
    way = body.linear.integrate(dt)
    close(way.numbers[0], v * dt)


ORIENTATIONS = [RotationMatrix, UnitQuaternion, RotationVector, AxisAngle, EulerAngles]
POSES = [HomogeneousMatrix, VectorAndMatrix, VectorAndQuaternion, DualQuaternion, FiniteScrew]


@given(rotations(), st.sampled_from(ORIENTATIONS), st.sampled_from(ORIENTATIONS))
def test_orientations_are_converted_both_ways(turn: Matrix, first: Any, second: Any) -> None:
    """Any representation to any other and back is the same orientation."""
    assume(abs(turn[2, 0]) < 0.999)
    orientation = SemanticOrientation(OrientationCoord("[a]|C", "[b]|D", "[b]"), turn)
    there = (
        orientation.with_representation(first)
        .with_representation(second)
        .with_representation(RotationMatrix)
    )
    close(there.numbers[0], turn)


@given(matrices(), st.sampled_from(POSES), st.sampled_from(POSES))
def test_poses_are_converted_both_ways(matrix: Matrix, first: Any, second: Any) -> None:
    """Any representation to any other and back is the same pose."""
    assume(np.linalg.norm(Rotation.from_matrix(matrix[:3, :3]).as_rotvec()) > 1e-3)
    there = (
        pose("a", "b", matrix)
        .with_representation(first)
        .with_representation(second)
        .with_representation(HomogeneousMatrix)
    )
    np.testing.assert_allclose(there.representation.matrix, matrix, atol=1e-7)


@given(rotations(), VECTORS, st.sampled_from(["ZYX", "xyz", "ZYZ", "XYZ", "zxz"]))
def test_rates_are_velocities(turn: Matrix, w: Matrix, sequence: str) -> None:
    """Rates of matrix, quaternion and Euler angles represent the angular velocity."""
    angles = EulerAngles([0.3, 0.7, -0.4], sequence)
    velocity = SemanticAngularVelocity(AngularCoord("C", "D", "[b]"), w)
    orientation = OrientationCoord("[a]|C", "[b]|D", "[b]")
    matrix_rate = velocity.in_representation(
        RotationMatrixRate, like=RotationMatrixRate(turn, np.zeros((3, 3)), coord_of=orientation)
    )
    step = 1e-6
    ahead = Rotation.from_rotvec(w * step).as_matrix() @ turn
    np.testing.assert_allclose((ahead - turn) / step, matrix_rate.rate, atol=1e-4)
    close(matrix_rate.numbers[0], w)
    quat = Rotation.from_matrix(turn).as_quat()
    quaternion_rate = velocity.in_representation(
        QuaternionRate, like=QuaternionRate(quat, np.zeros(4))
    )
    close(quaternion_rate.numbers[0], w)
    turned = (Rotation.from_rotvec(w * step) * Rotation.from_quat(quat)).as_quat()
    np.testing.assert_allclose(
        (turned * np.sign(turned @ quat) - quat) / step, quaternion_rate.rate_xyzw, atol=1e-4
    )
    rates = velocity.in_representation(EulerAngleRates, like=EulerAngleRates(angles, np.zeros(3)))
    close(rates.numbers[0], w)
    before = angles.numbers[0]
    after = EulerAngles(angles.angles + rates.rates * step, sequence).numbers[0]
    np.testing.assert_allclose((after - before) / step, np.cross(np.eye(3), w) @ before, atol=1e-4)


@given(matrices(), SIX)
def test_the_rate_of_a_homogeneous_matrix_is_a_twist(matrix: Matrix, twist: Matrix) -> None:
    """A pose matrix rate is the twist at the origin, in the reference frame."""
    coord = PoseCoord("{g}|C", "{h}|D", "[h]")
    like = PoseMatrixRate(matrix, np.zeros((4, 4)), coord_of=coord)
    rate = SemanticTwist(TwistCoord("g|C", "D", "[h]"), twist).in_representation(
        PoseMatrixRate, like=like
    )
    close(np.concatenate(rate.numbers), twist)
    with pytest.raises(SemanticError, match="point e and point g of the pose"):
        SemanticTwist(TwistCoord("e|C", "D", "[h]"), rate)


@given(SIX)
def test_orders_of_six_vectors(six: Matrix) -> None:
    """The other order of the halves has the same numbers."""
    twist = SemanticTwist(TwistCoord("e|C", "D", "[r]"), six)
    close(twist.in_representation(AngularFirstTwist).vector, [*six[3:], *six[:3]])
    wrench = SemanticWrench(WrenchCoord("e|C", "D", "[r]"), six)
    close(wrench.in_representation(MomentFirstWrench).vector, [*six[3:], *six[:3]])


# --- one wrong name

GOOD: list[tuple[str, list[Coord]]] = [
    ("compose", [PositionCoord("e|C", "g|E", "[r]"), PositionCoord("g|E", "f|D", "[r]")]),
    (
        "compose",
        [OrientationCoord("[a]|C", "[g]|E", "[g]"), OrientationCoord("[g]|E", "[b]|D", "[b]")],
    ),
    ("compose", [PoseCoord("{a}|C", "{g}|E", "[g]"), PoseCoord("{g}|E", "{b}|D", "[b]")]),
    ("compose", [TwistCoord("e|C", "E", "[r]"), TwistCoord("e|E", "D", "[r]")]),
    ("compose", [WrenchCoord("e|C", "E", "[r]"), WrenchCoord("e|C", "E", "[r]")]),
    ("change_point", [TwistCoord("e|C", "D", "[r]"), PositionCoord("f|C", "e|C", "[r]")]),
    ("change_point", [PoseCoord("{a}|C", "{b}|D", "[b]"), PositionCoord("f|C", "a|C", "[b]")]),
    (
        "change_reference_point",
        [PositionCoord("e|C", "f|D", "[r]"), PositionCoord("f|D", "f2|D", "[r]")],
    ),
    (
        "change_orientation_frame",
        [OrientationCoord("[a]|C", "[b]|D", "[b]"), OrientationCoord("[a2]|C", "[a]|C", "[a]")],
    ),
    (
        "change_reference_orientation_frame",
        [OrientationCoord("[a]|C", "[b]|D", "[b]"), OrientationCoord("[b]|D", "[b2]|D", "[b2]")],
    ),
    (
        "change_coordinate_frame",
        [TwistCoord("e|C", "D", "[r]"), OrientationCoord("[r]|X", "[s]|Y", "[s]")],
    ),
    ("dot", [WrenchCoord("e|C", "D", "[r]"), TwistCoord("e|C", "D", "[r]")]),
    ("integrate", [TwistCoord("g|C", "D", "[g]")]),
]
# names that may be any, since nothing else in the operation speaks of the same thing
FREE_FIELDS = {
    ("change_coordinate_frame", 0): {"point", "body", "ref_body"},
    ("change_coordinate_frame", 1): {"body", "ref_body"},
    ("integrate", 0): {"body", "ref_body"},
}


@pytest.mark.parametrize(
    ("op", "operands"), GOOD, ids=[f"{op} {operands[0].relation}" for op, operands in GOOD]
)
def test_a_single_wrong_name_is_rejected_or_makes_no_difference(
    op: str, operands: list[Coord]
) -> None:
    """Each name of each operand is replaced by another: refused, or carried into the result."""
    good = apply(op, *operands)
    for which, operand in enumerate(operands):
        for field in operand.fields:
            wrong = list(operands)
            wrong[which] = operand.replace(**{field: "zz"})
            try:
                result = apply(op, *wrong)
            except SemanticError:
                continue
            is_free = field in FREE_FIELDS.get((op, which), set())
            carried = good is not None and "zz" in to_dict(result).values()
            assert is_free or carried, (op, which, field, result)


def test_all_violations_are_told_at_once_with_their_repair() -> None:
    """Twists with different points, frames and bodies: three rules, each with what disagrees."""
    with pytest.raises(
        SemanticError, match="point of the first e and point of the second g"
    ) as caught:
        apply("compose", TwistCoord("e|C", "E", "[r]"), TwistCoord("g|F", "D", "[s]"))
    assert len(caught.value.violations) == 3
    assert caught.value.violations[0].repair == "change the point of one with change_point"
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.violations == caught.value.violations


@given(matrices())
def test_json_and_pickle_keep_relations_to_the_bit(matrix: Matrix) -> None:
    """A pose in any representation is the same after a round trip through text."""
    for representation in POSES:
        relation = pose("a", "b", matrix).with_representation(representation)
        again = from_dict(json.loads(json.dumps(to_dict(relation))))
        assert to_dict(again) == to_dict(relation)
        assert again.coord == relation.coord
    assert pickle.loads(pickle.dumps(relation)).coord == relation.coord


def test_a_representation_is_given_back_as_it_was() -> None:
    """A quaternion keeps its sign, angles their sequence."""
    coord = OrientationCoord("[a]|C", "[b]|D", "[b]")
    quaternion = UnitQuaternion([0.0, 0.0, 0.0, -1.0])
    assert SemanticOrientation(coord, quaternion).in_representation(UnitQuaternion) is quaternion
