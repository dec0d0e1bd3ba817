"""Rigid transforms: the laws of the group, the exponential, conversions, and what is rejected."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from support.effort import scaled_examples

from tmkit.errors import SceneError
from tmkit.spatial import Pose

Array = NDArray[np.float64]

_coordinate = st.floats(-10.0, 10.0)
_triples = st.tuples(_coordinate, _coordinate, _coordinate)
_directions = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: math.hypot(*v) > 0.1)
# Angles near 0 and near pi as often as in between: there the closed forms change.
_angles = st.one_of(
    st.floats(0.0, 3.1),
    st.floats(0.0, 2e-4),
    st.sampled_from([0.0, 1e-12, 1e-8, 0.99e-4, 1e-4, 1.01e-4, 2e-4]),
    st.floats(1e-9, 1e-3).map(lambda d: math.pi - d),
)


def rotation_vector(direction: tuple[float, float, float], angle: float) -> Array:
    """Return angle times the unit vector."""
    return np.asarray(direction) / math.hypot(*direction) * angle


_twists = st.builds(
    lambda rho, d, a: np.concatenate([rho, rotation_vector(d, a)]), _triples, _directions, _angles
)
_poses = st.builds(Pose.exp, _twists)


def hat(xi: Array) -> Array:
    """Return the 4x4 matrix of a twist [rho, theta]."""
    x, y, z = xi[3:]
    return np.array([[0, -z, y, xi[0]], [z, 0, -x, xi[1]], [-y, x, 0, xi[2]], [0, 0, 0, 0]])


def unit_defect(pose: Pose) -> float:
    """Return how far the quaternion is from norm 1."""
    return abs(float(pose.quat_xyzw @ pose.quat_xyzw) - 1.0)


# --- the group


@given(_poses, _poses, _poses)
def test_composition_is_associative(a: Pose, b: Pose, c: Pose) -> None:
    """(a b) c and a (b c) are one transform."""
    assert ((a @ b) @ c).is_close(
        a @ (b @ c), translation_tolerance=1e-12, rotation_tolerance=1e-12
    )


@given(_poses)
def test_the_identity_is_neutral(a: Pose) -> None:
    """Composing with the identity on either side changes nothing."""
    assert Pose.identity() == Pose()
    assert (a @ Pose()).is_close(a, translation_tolerance=0.0, rotation_tolerance=1e-15)
    assert (Pose() @ a).is_close(a, translation_tolerance=0.0, rotation_tolerance=1e-15)


@given(_poses)
def test_a_pose_and_its_inverse_cancel(a: Pose) -> None:
    """A pose times its inverse is the identity; the inverse of the inverse is the pose."""
    for product in (a @ a.inverse(), a.inverse() @ a):
        assert product.is_close(Pose(), translation_tolerance=1e-13, rotation_tolerance=1e-14)
    assert a.inverse().inverse().is_close(a, translation_tolerance=1e-13, rotation_tolerance=1e-15)


@given(_poses, _poses)
def test_composition_is_the_product_of_matrices(a: Pose, b: Pose) -> None:
    """The matrix of a product is the product of the matrices."""
    assert np.allclose((a @ b).as_matrix(), a.as_matrix() @ b.as_matrix(), atol=1e-13)


@given(_poses, _triples)
def test_application_agrees_with_matrices_and_composition(
    a: Pose, point: tuple[float, float, float]
) -> None:
    """Points are turned and moved, vectors only turned, one or many at once with the same bits."""
    expected = a.as_matrix() @ [*point, 1.0]
    assert np.allclose(a.apply(point), expected[:3], atol=1e-13)
    assert np.allclose(a.rotate(point), a.rotation @ point, atol=1e-13)
    assert np.allclose(a.apply(point), (a @ Pose(point)).translation, atol=1e-13)
    assert np.array_equal(a.apply([point, point]), [a.apply(point)] * 2)
    assert np.array_equal(a.rotate(np.array([point, point])), [a.rotate(point)] * 2)


@settings(max_examples=scaled_examples(0.1))
@given(st.integers(0, 2**32 - 1))
def test_long_products_do_not_drift(seed: int) -> None:
    """After a thousand products the quaternion is still of norm 1, and undoing them leads back."""
    rng = np.random.default_rng(seed)
    factors = [Pose(rng.normal(size=3), rng.normal(size=4)) for _ in range(1000)]
    product = Pose()
    for factor in factors:
        product = product @ factor
        assert unit_defect(product) < 4e-15
    for factor in reversed(factors):
        product = product @ factor.inverse()
    assert product.is_close(Pose(), translation_tolerance=1e-10, rotation_tolerance=1e-12)


# --- exponential and logarithm


@given(_twists)
def test_log_undoes_exp(xi: Array) -> None:
    """Pose.exp(xi).log() is xi for angles below pi, near 0 and near pi too."""
    angle = float(np.linalg.norm(xi[3:]))
    slack = 1e-12 if angle < 3.1 else 1e-14 / max(math.pi - angle, 1e-9) + 1e-12
    assert np.allclose(Pose.exp(xi).log(), xi, atol=slack * 20)


@given(_twists)
def test_exp_is_the_matrix_exponential(xi: Array) -> None:
    """Pose.exp is the exponential of the 4x4 matrix of the twist, computed by another library."""
    assert np.allclose(Pose.exp(xi).as_matrix(), expm(hat(xi)), atol=1e-12)


@given(_triples, _directions, st.floats(1e-6, 1e-2))
def test_exp_keeps_its_digits_at_small_angles(
    rho: tuple[float, float, float], direction: tuple[float, float, float], angle: float
) -> None:
    """The translation of exp equals its power series where closed forms would cancel."""
    theta = rotation_vector(direction, angle)
    series, term = np.array(rho), np.array(rho)
    for order in range(2, 12):
        term = np.cross(theta, term) / order
        series = series + term
    assert np.allclose(
        Pose.exp([*rho, *theta]).translation,
        series,
        rtol=0,
        atol=1e-15 * (1 + np.abs(rho).max()) * 8,
    )


@given(_poses)
def test_exp_undoes_log(a: Pose) -> None:
    """Pose.exp(p.log()) is p, and the angle of the logarithm is at most pi."""
    xi = a.log()
    assert np.linalg.norm(xi[3:]) <= math.pi + 1e-15
    assert Pose.exp(xi).is_close(a, translation_tolerance=1e-12, rotation_tolerance=1e-12)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, -1, 0), (0.6, 0, 0.8)])
def test_log_of_half_a_turn(axis: tuple[float, float, float]) -> None:
    """At exactly half a turn the logarithm is the axis times pi, up to sign, and leads back."""
    half_turn = Pose([1, 2, 3], [*axis, 0.0])
    xi = half_turn.log()
    assert np.allclose(np.abs(xi[3:]), np.abs(axis) * np.float64(math.pi), atol=1e-15)
    assert Pose.exp(xi).is_close(half_turn, translation_tolerance=1e-14, rotation_tolerance=1e-14)


# --- conversions


@given(_poses)
def test_matrix_round_trip(a: Pose) -> None:
    """A pose read back from its matrix is the pose, from the 4x4 and from translation and 3x3."""
    matrix = a.as_matrix()
    assert np.array_equal(matrix[3], [0, 0, 0, 1])
    assert np.array_equal(matrix[:3, :3], a.rotation)
    for back in (Pose.from_matrix(matrix), Pose.from_rotation_matrix(a.translation, a.rotation)):
        assert back.is_close(a, translation_tolerance=0.0, rotation_tolerance=1e-14)
    assert np.allclose(matrix[:3, :3], Rotation.from_quat(a.quat_xyzw).as_matrix(), atol=1e-15)


@given(_triples, st.tuples(*[st.floats(-7.0, 7.0)] * 3))
def test_rpy_agrees_with_scipy(translation: tuple[float, ...], rpy: tuple[float, ...]) -> None:
    """Roll, pitch and yaw are fixed-axis angles about x, y and z."""
    pose = Pose.from_rpy(translation, rpy)
    assert np.allclose(pose.rotation, Rotation.from_euler("xyz", rpy).as_matrix(), atol=1e-14)
    assert pose.translation.tolist() == list(translation)


@given(_poses, st.integers(0, 2**32 - 1))
def test_a_unit_quaternion_keeps_its_bits(a: Pose, seed: int) -> None:
    """A unit quaternion is preserved bitwise, so written poses are read back equal."""
    b = a @ Pose.exp(np.random.default_rng(seed).normal(size=6))
    for pose in (a, b, b.inverse(), a.interpolate(b, 0.3)):
        assert Pose(pose.translation, pose.quat_xyzw) == pose
        assert Pose.from_array(pose.as_array()) == pose
        assert Pose(*eval(repr(pose), {"Pose": lambda t, quat_xyzw: (t, quat_xyzw)})) == pose


@given(st.tuples(*[st.floats(-1e150, 1e150)] * 4).filter(lambda q: math.hypot(*q) > 1e-8))
def test_quaternions_are_normalised(quaternion: tuple[float, ...]) -> None:
    """A quaternion of any norm is divided by it."""
    pose = Pose(quat_xyzw=quaternion)
    assert unit_defect(pose) < 4e-15
    assert np.allclose(pose.quat_xyzw, np.divide(quaternion, math.hypot(*quaternion)), atol=1e-15)


def test_huge_quaternions_are_normalised() -> None:
    """A quaternion whose square is beyond the largest number is still normalised."""
    assert Pose(quat_xyzw=[3e200, 0, 0, 4e200]).quat_xyzw == pytest.approx([0.6, 0, 0, 0.8])


def test_orders_of_the_quaternion() -> None:
    """Attributes name the order of the components."""
    pose = Pose([1, 2, 3], quat_xyzw=[0.5, -0.5, 0.5, 0.5])
    assert pose.translation.tolist() == [1, 2, 3]
    assert pose.quat_xyzw.tolist() == [0.5, -0.5, 0.5, 0.5]
    assert pose.quat_wxyz.tolist() == [0.5, 0.5, -0.5, 0.5]
    assert pose.as_array().tolist() == [1, 2, 3, 0.5, -0.5, 0.5, 0.5]


# --- distance and interpolation


@given(_poses, _poses)
def test_distance(a: Pose, b: Pose) -> None:
    """Distance is that of the origins [m] and the relative angle [rad], and symmetric."""
    metres, radians = a.distance(b)
    assert metres == pytest.approx(np.linalg.norm(a.translation - b.translation))
    relative = Rotation.from_matrix(a.rotation.T @ b.rotation)
    assert radians == pytest.approx(relative.magnitude(), abs=1e-7)
    assert b.distance(a) == pytest.approx((metres, radians), abs=1e-14)
    assert a.distance(a) == pytest.approx((0.0, 0.0), abs=1e-15)


@given(_poses)
def test_closeness_does_not_see_the_sign_of_the_quaternion(a: Pose) -> None:
    """Q and -q are one rotation for is_close, two values for ==."""
    twin = Pose(a.translation, -a.quat_xyzw)
    assert twin != a
    assert twin.is_close(a)


def test_closeness_has_named_tolerances() -> None:
    """is_close accepts what is within the tolerances and nothing else."""
    moved, turned = Pose([1e-3, 0, 0]), Pose.from_rpy([0, 0, 0], [0, 0, 1e-3])
    assert not moved.is_close(Pose())
    assert moved.is_close(Pose(), translation_tolerance=1.1e-3)
    assert not turned.is_close(Pose(), translation_tolerance=1.0)
    assert turned.is_close(Pose(), rotation_tolerance=1.1e-3)


@given(_poses, _poses, st.floats(0.0, 1.0))
def test_interpolation_goes_straight_and_evenly(a: Pose, b: Pose, fraction: float) -> None:
    """At a fraction of the way, that fraction of both distances lies behind and the rest ahead."""
    metres, radians = a.distance(b)
    between = a.interpolate(b, fraction)
    behind, ahead = a.distance(between), between.distance(b)
    assert behind == pytest.approx((fraction * metres, fraction * radians), abs=1e-7)
    assert ahead == pytest.approx(((1 - fraction) * metres, (1 - fraction) * radians), abs=1e-7)
    assert a.interpolate(b, 0.0) == a
    assert a.interpolate(b, 1.0).is_close(b, translation_tolerance=1e-13, rotation_tolerance=1e-12)


def test_interpolation_takes_the_shorter_arc() -> None:
    """Between quaternions of opposite sign the rotation still goes the short way."""
    a = Pose.from_rpy([0, 0, 0], [0, 0, 0.1])
    b = Pose.from_rpy([0, 0, 0], [0, 0, -0.1])
    twin = Pose([0, 0, 0], -b.quat_xyzw)
    assert a.interpolate(twin, 0.5).distance(Pose())[1] == pytest.approx(0.0, abs=1e-15)
    assert a.interpolate(b, 2.0).distance(Pose.from_rpy([0, 0, 0], [0, 0, -0.3]))[
        1
    ] == pytest.approx(0.0, abs=1e-15)


# --- a value


@given(_poses, _poses)
def test_equality_is_exact_and_hash_agrees(a: Pose, b: Pose) -> None:
    """Poses are equal if their seven numbers are; equal poses have equal hashes."""
    twins = [
        pickle.loads(pickle.dumps(a)),
        copy.copy(a),
        copy.deepcopy(a),
        Pose.from_array(a.as_array()),
    ]
    assert all(twin == a and hash(twin) == hash(a) for twin in twins)
    assert (a == b) == (a.as_array().tolist() == b.as_array().tolist())
    assert len({a, *twins}) == 1
    assert a != "a pose"


def test_a_negative_zero_is_zero() -> None:
    """Poses that differ in the sign of a zero are equal, so their hashes are too."""
    assert Pose([-0.0, 0, 0]) == Pose([0.0, 0, 0])
    assert hash(Pose([-0.0, 0, 0])) == hash(Pose([0.0, 0, 0]))


@pytest.mark.parametrize(
    "read",
    [
        lambda p: p.translation,
        lambda p: p.quat_xyzw,
        lambda p: p.quat_wxyz,
        lambda p: p.rotation,
        lambda p: p.as_matrix(),
        lambda p: p.as_array(),
        lambda p: p.log(),
        lambda p: p.apply([1, 2, 3]),
        lambda p: p.rotate([[1, 2, 3]]),
    ],
)
def test_arrays_are_read_only(read: Callable[[Pose], Array]) -> None:
    """No array that a pose hands out can be written to."""
    array = read(Pose([1, 2, 3]))
    assert array.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def test_a_pose_cannot_be_changed() -> None:
    """Attributes are read-only, and the array argument is copied."""
    numbers = np.array([1.0, 2.0, 3.0])
    pose = Pose(numbers)
    numbers[0] = 9.0
    assert pose.translation.tolist() == [1, 2, 3]
    with pytest.raises(AttributeError):
        pose.translation = numbers  # type: ignore[misc]  # that it fails is the test
    with pytest.raises(AttributeError):
        pose.name = "p"  # type: ignore[attr-defined]  # that it fails is the test


@pytest.mark.parametrize("points", [np.zeros((0, 3)), np.zeros((5, 3))])
def test_shapes_of_points(points: Array) -> None:
    """(n, 3) points give (n, 3), also for n = 0; (3,) gives (3,)."""
    assert Pose([1, 2, 3]).apply(points).shape == points.shape
    assert Pose().apply((1, 2, 3)).shape == (3,)
    assert Pose().apply(((1, 2, 3), (4, 5, 6))).shape == (2, 3)


@pytest.mark.parametrize(
    "numbers", [(1, 2, 3), np.array([1, 2, 3], dtype=np.int8), range(1, 4), np.arange(7)[1:4]]
)
def test_any_array_of_real_numbers_is_taken(numbers: Any) -> None:
    """Tuples, ranges, integers and strided arrays are arrays of numbers."""
    assert Pose(numbers).translation.tolist() == [1, 2, 3]
    assert Pose(np.arange(6.0)[::2]).translation.tolist() == [0, 2, 4]


# --- refusals

_REFUSALS: list[tuple[Callable[[], object], str]] = [
    (lambda: Pose([1, 2]), r"translation must hold 3 numbers, but has shape \(2,\)"),
    (lambda: Pose([[1, 2, 3]]), r"translation must hold 3 numbers, but has shape \(1, 3\)"),
    (lambda: Pose(5.0), r"translation must hold 3 numbers, but has shape \(\)"),
    (lambda: Pose([1, 2, math.nan]), "translation holds nan; only finite numbers are accepted"),
    (lambda: Pose([1, 2, math.inf]), "translation holds inf"),
    (
        lambda: Pose(["1", "2", "3"]),
        "translation must be an array of real numbers, not of type <U1",
    ),
    (lambda: Pose([1, 2, 3j]), "array of real numbers, not of type complex128"),
    (lambda: Pose([1, [2], 3]), r"array of real numbers, not \[1, \[2\], 3\]"),
    (lambda: Pose(quat_xyzw=[0, 0, 0, 0]), "quat_xyzw is zero, which is no rotation"),
    (lambda: Pose(quat_xyzw=[0, 0, 1e-10, 0]), "quat_xyzw is zero"),
    (lambda: Pose(quat_xyzw=[0, 0, 1]), "quat_xyzw must hold 4 numbers"),
    (lambda: Pose.from_array([0] * 6), "pose must hold 7 numbers"),
    (lambda: Pose.exp([0] * 7), "xi must hold 6 numbers"),
    (lambda: Pose.from_rpy([0, 0, 0], [0, 0, math.inf]), "rpy holds inf"),
    (lambda: Pose.from_matrix(np.eye(3)), r"matrix must have shape \(4, 4\), not \(3, 3\)"),
    (lambda: Pose.from_matrix(np.eye(4)[:3]), r"matrix must have shape \(4, 4\), not \(3, 4\)"),
    (
        lambda: Pose.from_matrix(2 * np.eye(4)),
        r"the last row of a rigid transform is \[0, 0, 0, 1\]",
    ),
    (
        lambda: Pose.from_matrix(np.diag([2.0, 2, 2, 1])),
        "not orthonormal: .* differs from the identity by 3",
    ),
    (lambda: Pose.from_matrix(np.diag([1.0, 1, -1, 1])), "rotation is left-handed"),
    (
        lambda: Pose.from_rotation_matrix([0, 0, 0], np.eye(4)),
        r"rotation must have shape \(3, 3\), not \(4, 4\)",
    ),
    (
        lambda: Pose.from_rotation_matrix([0, 0, 0], np.eye(3)[:2]),
        r"rotation must have shape \(3, 3\), not \(2, 3\)",
    ),
    (lambda: Pose().apply([1, 2]), "point must hold 3 numbers"),
    (lambda: Pose().apply(np.zeros((2, 4))), r"points must have shape \(m, 3\), not \(2, 4\)"),
    (lambda: Pose().rotate([]), r"point must hold 3 numbers, but has shape \(0,\)"),
    (lambda: Pose().interpolate(Pose(), math.nan), "fraction must be finite"),
]


@pytest.mark.parametrize(("call", "message"), _REFUSALS)
def test_what_is_no_transform_is_rejected(call: Callable[[], object], message: str) -> None:
    """Bad numbers are rejected with what was received and what is expected."""
    with pytest.raises(SceneError, match=message):
        call()


def test_only_poses_compose() -> None:
    """``@`` with another type raises TypeError; numpy does not convert a pose to a number."""
    with pytest.raises(TypeError, match="operand"):
        Pose() @ np.eye(4)  # type: ignore[operator]  # that it fails is the test
    with pytest.raises(TypeError, match="operand"):
        np.eye(4) @ Pose()  # type: ignore[operator]  # that it fails is the test


@pytest.mark.parametrize("kind", [list, tuple])
def test_sequences_are_read_as_numpy_reads_them(kind: type) -> None:
    """Lists and tuples of any numeric type are equal to arrays; other values are rejected."""
    for numbers in (
        [1, -1, 2**60],
        [1.0, -1.0, 0.5],
        [True, np.float32(0.1), np.float64(0.2)],
        [np.int8(3), 1, 2.5],
    ):
        assert Pose(kind(numbers)) == Pose(np.array(numbers, dtype=float))
    for numbers, reason in [
        ([1, 2, 10**400], "translation must be an array of real numbers"),
        ([1, 2, "3"], "not of type <U"),
        ([1, 2], "translation must hold 3 numbers, but has shape"),
        ([1, 2, math.nan], "translation holds nan"),
        ([[1, 2, 3]], "translation must hold 3 numbers, but has shape"),
    ]:
        with pytest.raises(SceneError, match=reason):
            Pose(kind(numbers))
