"""Every representation: what it says, the constraint it imposes, and its numbers by two methods.

The table is that of the representations of De Laet et al., with those that tmkit adds. A row has
coordinates that the representation can say, each way in which one constraint alone is violated, and
two checks of its numbers that share nothing. A representation without a row fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pinocchio
import pytest
from scipy.linalg import expm
from support.rigid_world import RigidWorld, by_matrices, by_motion, relation

from tmkit import relations
from tmkit.relations import (
    AngularVelocityCoord,
    ForceCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
    representations,
)
from tmkit.relations.representations import (
    EulerAngleRates,
    EulerAngles,
    PoseMatrixRate,
    QuaternionRate,
    RotationMatrixRate,
)
from tmkit.relations.semantics import Coord


def world_with_axes() -> RigidWorld:
    """Return a world with a frame i on the screw axis of C and D, and j on their wrench axis."""
    world = RigidWorld(3)
    v, w = np.split(world.twists["C"] - world.twists["D"], 2)
    f, t = np.split(world.wrenches["C", "D"], 2)
    for name, bound, free in (("i", w, v), ("j", f, t)):
        world.frames[name] = world.frames["a"].copy()
        world.frames[name][:3, 3] = np.cross(bound, free) / (bound @ bound) + 0.7 * bound
    return world


WORLD = world_with_axes()
POSITION, FORCE, TORQUE = (
    PositionCoord("e|C", "f|D", "[r]"),
    ForceCoord("C", "D", "[r]"),
    TorqueCoord("e|C", "D", "[r]"),
)
OWN, FREE = OrientationCoord("[a]|C", "[b]|D", "[b]"), OrientationCoord("[a]|C", "[b]|D", "[r]")
POSE, LOOSE = PoseCoord("{a}|C", "{b}|D", "[b]"), PoseCoord("(e,[a])|C", "(f,[b])|D", "[b]")
LINEAR, ANGULAR = LinearVelocityCoord("e|C", "D", "[r]"), AngularVelocityCoord("C", "D", "[r]")
TWIST, WRENCH = TwistCoord("e|C", "D", "[r]"), WrenchCoord("e|C", "D", "[r]")
RATE, POSE_RATE = AngularVelocityCoord("C", "D", "[b]"), TwistCoord("i|C", "D", "[b]")
Check = Callable[[Any, Any], None]  # of a representation, for coordinates


@dataclass(frozen=True)
class Row:
    """One representation.

    Attributes:
        name: its class.
        coord: coordinates that it can say.
        violated: coordinates that violate one constraint each, and words of the rule.
        one: a check of its numbers.
        other: a check that shares nothing with it.
        like: settings of the representation.
    """

    name: str
    coord: Any
    violated: tuple[tuple[Any, str], ...]
    one: Check
    other: Check
    like: Any = None


def near(ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    """Assert that numbers agree."""
    np.testing.assert_allclose(ours, theirs, atol=tolerance)


def hat(w: Any) -> Any:
    """Return the matrix of a cross product."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def turned(coord: Any) -> Any:
    """Return the matrix of an orientation, or of the orientation in a pose, by pinocchio."""
    return by_motion(WORLD, coord)[-1]


def pin(xyzw: Any) -> Any:
    """Return a quaternion of pinocchio's."""
    return pinocchio.Quaternion(np.array(xyzw, dtype=float))


def elementary(axis: str, angle: float) -> Any:
    """Return the matrix of a turn about x, y or z, written out."""
    c, s = np.cos(angle), np.sin(angle)
    return {
        "x": np.array([[1, 0, 0], [0, c, -s], [0, s, c]]),
        "y": np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
        "z": np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
    }[axis]


def holds(
    *attributes: str, model: Callable[..., Any] = by_matrices, flipped: bool = False
) -> Check:
    """Return a check that a representation holds the numbers of a model in these attributes."""

    def check(held: Any, coord: Any) -> None:
        numbers = model(WORLD, coord)[::-1] if flipped else model(WORLD, coord)
        if len(attributes) == 1:
            return near(
                getattr(held, attributes[0]),
                np.concatenate(numbers) if len(numbers) > 1 else numbers[0],
                1e-8,
            )
        for name, number in zip(attributes, numbers, strict=True):
            near(getattr(held, name), number, 1e-8)
        return None

    return check


def homogeneous(held: Any, coord: Any) -> None:
    """The matrix maps coordinates in the frame to the reference frame, through the world."""
    near(held.matrix, np.linalg.inv(WORLD.frames[coord.ref_ori]) @ WORLD.frames[coord.ori])


def homogeneous_pin(held: Any, coord: Any) -> None:
    """The same by pinocchio's transforms."""
    frame, reference = (pinocchio.SE3(WORLD.frames[name]) for name in (coord.ori, coord.ref_ori))
    near(held.matrix, reference.actInv(frame).homogeneous)


def sandwich(held: Any, coord: Any) -> None:
    """A vector between a quaternion and its conjugate is the turned vector."""
    q = np.array(getattr(held, "quat_xyzw", getattr(held, "real", None)))
    v, (x, w) = np.array([0.3, -0.2, 0.9]), (q[:3], q[3])
    near(v + 2 * np.cross(x, np.cross(x, v) + w * v), by_matrices(WORLD, coord)[-1] @ v)


def quaternion_pin(held: Any, coord: Any) -> None:
    """The quaternion is pinocchio's, but for the sign."""
    theirs = pinocchio.Quaternion(turned(coord)).coeffs()
    ours = np.array(getattr(held, "quat_xyzw", getattr(held, "real", None)))
    near(ours * np.sign(ours @ theirs), theirs, 1e-8)


def euler(held: Any, coord: Any) -> None:
    """Turns about the axes that move along, one after the other, written out."""
    product = np.eye(3)
    for axis, angle in zip(held.sequence.lower(), held.angles, strict=True):
        product = product @ elementary(axis, angle)
    near(product, by_matrices(WORLD, coord)[-1])


def euler_pin(held: Any, coord: Any) -> None:
    """Yaw, pitch and roll by pinocchio."""
    near(held.angles[::-1], pinocchio.rpy.matrixToRpy(turned(coord)), 1e-8)


def exponential(held: Any, coord: Any) -> None:
    """The matrix exponential of the vector."""
    vector = (
        held.axis * held.angle
        if hasattr(held, "axis")
        else getattr(held, "rotation", getattr(held, "vector", None))
    )
    near(expm(hat(vector)), by_matrices(WORLD, coord)[-1])


def logarithm_pin(held: Any, coord: Any) -> None:
    """Pinocchio's logarithm of the matrix."""
    vector = (
        held.axis * held.angle
        if hasattr(held, "axis")
        else getattr(held, "rotation", getattr(held, "vector", None))
    )
    near(vector, pinocchio.log3(turned(coord)), 1e-7)


def both(*checks: Check) -> Check:
    """Return all checks as one."""

    def check(held: Any, coord: Any) -> None:
        for each in checks:
            each(held, coord)

    return check


def vector_of_pose(held: Any, coord: Any) -> None:
    """The vector by matrices."""
    near(held.vector, by_matrices(WORLD, coord)[0])


def vector_of_pose_pin(held: Any, coord: Any) -> None:
    """The vector by pinocchio."""
    near(held.vector, by_motion(WORLD, coord)[0])


def dual_point(held: Any, coord: Any) -> None:
    """Half the translation times the real part is the dual part, written out."""
    p, q = by_matrices(WORLD, coord)[0], np.array(held.real)
    near(held.dual, 0.5 * np.array([*(q[3] * p + np.cross(p, q[:3])), -p @ q[:3]]))


def dual_pin(held: Any, coord: Any) -> None:
    """The same product by pinocchio's quaternions."""
    p = by_motion(WORLD, coord)[0]
    near(held.dual, 0.5 * (pin([*p, 0.0]) * pin(held.real)).coeffs(), 1e-8)


def screw_exponential(held: Any, coord: Any) -> None:
    """The displacement is the exponential of the screw."""
    generator = np.zeros((4, 4))
    generator[:3, :3] = hat(held.direction * held.angle)
    generator[:3, 3] = held.moment * held.angle + held.displacement * held.direction
    p, q = by_matrices(WORLD, coord)
    near(expm(generator), np.vstack([np.column_stack([q, p]), [0, 0, 0, 1]]))


def screw_points(held: Any, coord: Any) -> None:
    """Points of the axis move along it, and one beside it turns about it by the angle."""
    p, q = by_motion(WORLD, coord)
    for along in (0.0, 1.3):
        on_axis = held.point + along * held.direction
        near(q @ on_axis + p, on_axis + held.displacement * held.direction, 1e-7)
    across = np.cross(held.direction, [0.3, 0.5, -0.9])
    image = q @ across
    near(across @ image, across @ across * np.cos(held.angle), 1e-7)


def axis_formula(held: Any, coord: Any) -> None:
    """The numbers of a line: free part along it, bound part with its moment."""
    first, second = by_matrices(WORLD, coord)
    free, bound = (first, second) if coord.relation == "Twist" else (second, first)
    size, along = (
        (held.about, held.along) if coord.relation == "Twist" else (held.along, held.about)
    )
    near(bound, size * held.direction)
    near(free, along * held.direction + size * held.moment)


def axis_points(held: Any, coord: Any) -> None:
    """At a point of the axis the free part is along it."""
    first, second = by_motion(WORLD, coord)
    there = (
        first + np.cross(second, held.point)
        if coord.relation == "Twist"
        else second - np.cross(held.point, first)
    )
    near(np.cross(there, held.direction), np.zeros(3), 1e-7)


def finite_difference(held: Any, coord: Any) -> None:
    """The rate is the difference of what is represented, a moment apart."""
    step, w = 1e-7, by_matrices(WORLD, coord)[-1]
    ahead = expm(hat(w) * step)
    if isinstance(held, RotationMatrixRate):
        return near((ahead @ held.matrix - held.matrix) / step, held.rate, 1e-5)
    if isinstance(held, QuaternionRate):
        after = pinocchio.Quaternion(ahead @ pin(held.quat_xyzw).matrix()).coeffs()
        return near(
            (after * np.sign(after @ held.quat_xyzw) - held.quat_xyzw) / step, held.rate_xyzw, 1e-5
        )
    if isinstance(held, EulerAngleRates):

        def matrix(angles: Any) -> Any:
            return np.linalg.multi_dot(
                [elementary(a, b) for a, b in zip("zyx", angles, strict=True)]
            )

        now = matrix(held.angles.angles)
        return near(
            (matrix(held.angles.angles + held.rates * step) - now) / step, hat(w) @ now, 1e-5
        )
    v = by_matrices(WORLD, coord)[0]
    after = np.eye(4)
    after[:3, :3], after[:3, 3] = ahead @ held.matrix[:3, :3], held.matrix[:3, 3] + v * step
    return near((after - held.matrix) / step, held.rate, 1e-5)


def rate_formula(held: Any, coord: Any) -> None:
    """The rate from the velocity, written out or by pinocchio."""
    w = by_motion(WORLD, coord)[-1]
    if isinstance(held, RotationMatrixRate):
        return near(held.rate, hat(w) @ held.matrix, 1e-8)
    if isinstance(held, QuaternionRate):
        return near(held.rate_xyzw, 0.5 * (pin([*w, 0.0]) * pin(held.quat_xyzw)).coeffs(), 1e-8)
    if isinstance(held, EulerAngleRates):
        rpy, local = held.angles.angles[::-1], pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
        return near(
            held.rates[::-1],
            pinocchio.rpy.computeRpyJacobianInverse(np.array(rpy), local) @ w,
            1e-7,
        )
    near(held.rate[:3, :3], hat(w) @ held.matrix[:3, :3], 1e-8)
    return near(held.rate[:3, 3], by_motion(WORLD, coord)[0], 1e-8)


OUT_OF_AXES = "is expressed in its reference orientation frame"
FREE_POINT, FREE_REFERENCE = (
    "the point of .* is the origin of its",
    "the reference point of .* is the origin of its",
)
NOT_OWN = ((FREE, OUT_OF_AXES),)
POSE_NOT_OWN = ((LOOSE.replace(coord="r"), OUT_OF_AXES),)
POINTS = (
    (PoseCoord("(e,[a])|C", "{b}|D", "[b]"), FREE_POINT),
    (PoseCoord("{a}|C", "(f,[b])|D", "[b]"), FREE_REFERENCE),
)
FRAMES = (*POINTS, (PoseCoord("{a}|C", "{b}|D", "[r]"), OUT_OF_AXES))
RATES = (
    (RATE.replace(coord="r"), "is expressed in the reference orientation frame of its orientation"),
    (RATE.replace(body="E"), "body E and body C of the pose"),
    (RATE.replace(ref_body="E"), "reference body E and reference body D of the pose"),
)
POSE_RATES = (
    (
        POSE_RATE.replace(coord="r"),
        "is expressed in the reference orientation frame of its orientation",
    ),
    (POSE_RATE.replace(point="e"), "point e and point i of the pose"),
    (POSE_RATE.replace(body="E"), "body E and body C of the pose"),
    (POSE_RATE.replace(ref_body="E"), "reference body E and reference body D of the pose"),
)
MATRIX, HERE = by_matrices(WORLD, OWN)[0], np.linalg.inv(WORLD.frames["b"]) @ WORLD.frames["i"]
VECTOR, VECTOR_MOVING = holds("vector"), holds("vector", model=by_motion)
AS_MATRIX, AS_QUATERNION = (
    RotationMatrixRate(MATRIX, np.zeros((3, 3)), coord_of=OWN),
    pinocchio.Quaternion(MATRIX),
)
YAW_PITCH_ROLL = EulerAngles(pinocchio.rpy.matrixToRpy(MATRIX)[::-1], "ZYX")
ROWS = [
    Row("PositionVector", POSITION, (), VECTOR, VECTOR_MOVING),
    Row("RotationMatrix", OWN, NOT_OWN, holds("matrix"), holds("matrix", model=by_motion)),
    Row("UnitQuaternion", OWN, NOT_OWN, sandwich, quaternion_pin),
    Row("EulerAngles", OWN, NOT_OWN, euler, euler_pin),
    Row("RotationVector", FREE, (), exponential, logarithm_pin),
    Row("AxisAngle", FREE, (), exponential, logarithm_pin),
    Row("HomogeneousMatrix", POSE, FRAMES, homogeneous, homogeneous_pin),
    Row(
        "VectorAndMatrix",
        LOOSE,
        POSE_NOT_OWN,
        holds("vector", "matrix"),
        holds("vector", "matrix", model=by_motion),
    ),
    Row(
        "VectorAndQuaternion",
        LOOSE,
        POSE_NOT_OWN,
        both(vector_of_pose, sandwich),
        both(vector_of_pose_pin, quaternion_pin),
    ),
    Row(
        "VectorAndRotationVector",
        LOOSE.replace(coord="r"),
        (),
        both(vector_of_pose, exponential),
        both(vector_of_pose_pin, logarithm_pin),
    ),
    Row("DualQuaternion", POSE, FRAMES, both(sandwich, dual_point), both(quaternion_pin, dual_pin)),
    Row("FiniteScrew", POSE.replace(coord="r"), POINTS, screw_exponential, screw_points),
    Row("LinearVelocityVector", LINEAR, (), VECTOR, VECTOR_MOVING),
    Row("AngularVelocityVector", ANGULAR, (), VECTOR, VECTOR_MOVING),
    Row("RotationMatrixRate", RATE, RATES, finite_difference, rate_formula, AS_MATRIX),
    Row(
        "QuaternionRate",
        RATE,
        RATES,
        finite_difference,
        rate_formula,
        QuaternionRate(AS_QUATERNION.coeffs(), np.zeros(4), coord_of=OWN),
    ),
    Row(
        "EulerAngleRates",
        RATE,
        RATES,
        finite_difference,
        rate_formula,
        EulerAngleRates(YAW_PITCH_ROLL, np.zeros(3), coord_of=OWN),
    ),
    Row("TwistVector", TWIST, (), VECTOR, VECTOR_MOVING),
    Row(
        "AngularFirstTwist",
        TWIST,
        (),
        holds("vector", flipped=True),
        holds("vector", model=by_motion, flipped=True),
    ),
    Row(
        "InstantaneousScrewAxis",
        POSE_RATE,
        ((POSE_RATE.replace(point="e"), "passes through the point of the twist .point e and the"),),
        axis_formula,
        axis_points,
    ),
    Row(
        "PoseMatrixRate",
        POSE_RATE,
        POSE_RATES,
        finite_difference,
        rate_formula,
        PoseMatrixRate(HERE, np.zeros((4, 4)), coord_of=PoseCoord("{i}|C", "{b}|D", "[b]")),
    ),
    Row("ForceVector", FORCE, (), VECTOR, VECTOR_MOVING),
    Row("TorqueVector", TORQUE, (), VECTOR, VECTOR_MOVING),
    Row("WrenchVector", WRENCH, (), VECTOR, VECTOR_MOVING),
    Row(
        "MomentFirstWrench",
        WRENCH,
        (),
        holds("vector", flipped=True),
        holds("vector", model=by_motion, flipped=True),
    ),
    Row(
        "WrenchAxis",
        WRENCH.replace(point="j"),
        ((WRENCH, "passes through the point of the wrench .point e and the axis"),),
        axis_formula,
        axis_points,
    ),
]
BY_ROW = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def test_every_representation_has_a_row() -> None:
    """The table and the representations are the same, and speak of all nine relations."""
    assert sorted(row.name for row in ROWS) == sorted(representations.__all__)
    assert {row.coord.relation for row in ROWS} == {cls.relation for cls in Coord.__args__}


@BY_ROW
def test_the_accepted_case_and_its_numbers(row: Row) -> None:
    """The representation can say the relation, and its numbers agree with two methods."""
    held = relation(WORLD, row.coord).in_representation(
        getattr(representations, row.name), like=row.like
    )
    row.one(held, row.coord)
    row.other(held, row.coord)


@BY_ROW
def test_the_way_back(row: Row) -> None:
    """A conversion to the representation and back is the identity."""
    there = relation(WORLD, row.coord).with_representation(
        getattr(representations, row.name), like=row.like
    )
    for ours, theirs in zip(there.numbers, by_matrices(WORLD, row.coord), strict=True):
        near(ours, theirs)


@BY_ROW
def test_each_violated_constraint(row: Row) -> None:
    """Coordinates that violate one constraint are rejected with that alone; others are accepted."""
    cls = getattr(representations, row.name)
    made = getattr(relations, f"Semantic{row.coord.relation}")
    for coord, words in row.violated:
        held = cls.of(by_matrices(WORLD, coord), like=row.like)
        with pytest.raises(SemanticError, match=words) as caught:
            made(coord, held)
        assert len(caught.value.violations) == 1
    if not row.violated:  # whatever is said differs from what is held in no name that matters
        held = cls.of(by_matrices(WORLD, row.coord), like=row.like)
        for field in row.coord.fields:
            made(row.coord.replace(**{field: "zz"}), held)


PAIRS = [
    (one, other)
    for one, other in permutations(ROWS, 2)
    if one.coord.relation == other.coord.relation and not one.violated
]
PAIRS += [
    (one, other)
    for one, other in permutations(ROWS, 2)
    if one.coord.relation == other.coord.relation and one.violated and other.name != "FiniteScrew"
]


@pytest.mark.parametrize(
    ("one", "other"), PAIRS, ids=[f"{one.name} {other.name}" for one, other in PAIRS]
)
def test_conversions_both_ways(one: Row, other: Row) -> None:
    """Any representation to any other of the same relation and back, where both can say it."""
    coord = one.coord if one.violated else other.coord
    if coord.relation == "Pose":
        coord = POSE
    start = relation(WORLD, coord).with_representation(
        getattr(representations, one.name), like=one.like
    )
    there = start.with_representation(getattr(representations, other.name), like=other.like)
    back = there.with_representation(getattr(representations, one.name), like=one.like)
    for ours, theirs in zip(back.numbers, by_matrices(WORLD, coord), strict=True):
        near(ours, theirs, 1e-8)
