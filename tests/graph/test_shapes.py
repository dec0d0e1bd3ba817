"""Shapes, attached shapes, inertias and joints as values: set, then get; equality, hash, pickle; what is refused."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkit.errors import SceneError, ShapeError, TmkitError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Continuous,
    Cylinder,
    Fixed,
    Free,
    Inertia,
    Joint,
    Mesh,
    Mimic,
    Prismatic,
    Revolute,
    Shape,
    Sphere,
)
from tmkit.spatial import Pose

CORNER = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], dtype=float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])

_SHAPES: list[tuple[Shape, str, tuple[float, ...], tuple[float, ...], float, str]] = [
    (Box([1, 2, 3]), "box", (1, 2, 3), (0.5, 1, 1.5), 6.0, "Box([1, 2, 3])"),
    (Sphere(0.5), "sphere", (0.5,), (0.5, 0.5, 0.5), np.pi / 6, "Sphere(radius=0.5)"),
    (Cylinder(1, 4), "cylinder", (1, 4), (1, 1, 2), 4 * np.pi, "Cylinder(radius=1, length=4)"),
    (Cone(1, 3), "cone", (1, 3), (1, 1, 1.5), np.pi, "Cone(radius=1, length=3)"),
    (Capsule(1, 2), "capsule", (1, 2), (1, 1, 2), 10 / 3 * np.pi, "Capsule(radius=1, length=2)"),
]


@pytest.mark.parametrize(("shape", "kind", "dimensions", "half", "volume", "text"), _SHAPES)
def test_primitives(
    shape: Shape, kind: str, dimensions: tuple[float, ...], half: tuple[float, ...], volume: float, text: str
) -> None:
    """A primitive knows its kind, sizes, the box around it, centred at the origin, and its volume."""
    assert (shape.kind, shape.dimensions) == (kind, dimensions)
    lower, upper = shape.bounds
    assert (lower.tolist(), upper.tolist()) == ([-h for h in half], list(half))
    assert shape.volume == pytest.approx(volume)
    assert (shape.vertices.shape, shape.faces.shape, shape.source) == ((0, 3), (0, 3), "")
    assert repr(shape) == text


def test_a_mesh() -> None:
    """A mesh gives back its vertices, faces and source; its volume is signed by the direction of the faces."""
    mesh = Mesh(CORNER, FACES, source="package://things/corner.stl")
    assert (mesh.kind, mesh.dimensions, mesh.source) == ("mesh", (), "package://things/corner.stl")
    assert mesh.vertices.tolist() == CORNER.tolist()
    assert mesh.faces.tolist() == FACES.tolist()
    assert (mesh.vertices.dtype, mesh.faces.dtype) == (np.float64, np.int32)
    assert [corner.tolist() for corner in mesh.bounds] == [[0, 0, 0], [1, 2, 3]]
    assert mesh.volume == pytest.approx(1.0)
    assert Mesh(CORNER, FACES[:, ::-1]).volume == pytest.approx(-1.0)
    assert repr(mesh) == "Mesh(4 vertices, 4 faces, source='package://things/corner.stl')"
    assert repr(Mesh(CORNER, FACES)) == "Mesh(4 vertices, 4 faces)"
    for array in (mesh.vertices, mesh.faces, *mesh.bounds):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_a_mesh_keeps_its_own_numbers() -> None:
    """The arrays that a mesh was made of may change later."""
    vertices, faces = CORNER.copy(), FACES.copy()
    mesh = Mesh(vertices, faces)
    vertices[:], faces[:] = 7.0, 0
    assert mesh == Mesh(CORNER, FACES)


def test_shapes_are_equal_by_content() -> None:
    """Kind and numbers count, the source of a mesh does not; equal shapes have equal hashes and digests."""
    shapes = [entry[0] for entry in _SHAPES] + [Mesh(CORNER, FACES), Mesh(CORNER, FACES[::-1]), Box([1, 2, 4])]
    assert len(set(shapes)) == len({shape.digest for shape in shapes}) == len(shapes)
    for shape in shapes:
        for twin in (pickle.loads(pickle.dumps(shape)), copy.copy(shape), copy.deepcopy(shape)):
            assert twin == shape
            assert (hash(twin), twin.digest, repr(twin)) == (hash(shape), shape.digest, repr(shape))
    assert Mesh(CORNER, FACES, source="a") == Mesh(CORNER, FACES, source="b")
    assert pickle.loads(pickle.dumps(Mesh(CORNER, FACES, source="a"))).source == "a"
    assert Cylinder(1, 2) != Cone(1, 2)
    assert Box([1, 1, 1]) != "a box"


def test_digests_are_the_same_in_every_process() -> None:
    """A digest is 32 hexadecimal digits of the content alone, whatever the hash seed."""
    code = "from tmkit.graph import Box; b = Box([1, 2, 3]); print(b.digest, hash(b))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{Box([1, 2, 3]).digest} {hash(Box([1, 2, 3]))}\n".encode()}
    assert len(Box([1, 2, 3]).digest) == 32


_REFUSALS: list[tuple[Callable[[], object], type[TmkitError], str]] = [
    (lambda: Box([1, 0, 1]), ShapeError, "a box needs positive finite dimensions in metres, not 0.0"),
    (lambda: Box([1, 1]), ShapeError, r"size must hold 3 numbers, but has shape \(2,\)"),
    (lambda: Sphere(-1.0), ShapeError, "a sphere needs positive finite dimensions in metres, not -1.0"),
    (lambda: Sphere(float("nan")), ShapeError, "a sphere needs positive finite dimensions in metres, not nan"),
    (lambda: Cylinder(1, float("inf")), ShapeError, "a cylinder needs positive finite dimensions in metres, not inf"),
    (
        lambda: Mesh(CORNER, np.zeros((0, 3))),
        ShapeError,
        r"a mesh needs vertices \(n, 3\) and faces \(m, 3\), both with",
    ),
    (lambda: Mesh(CORNER[:, :2], FACES), ShapeError, r"vertices must have shape \(m, 3\), not \(4, 2\)"),
    (lambda: Mesh(CORNER, [[0, 1, 4]], source="x.stl"), ShapeError, r"names vertex 4, but there are 4 \(x.stl\)"),
    (lambda: Mesh(CORNER, [[0, 1, -1]]), ShapeError, "names vertex -1, but there are 4"),
    (lambda: Mesh(CORNER, [[0, 1, 2.5]]), ShapeError, "faces must hold integers of 32 bits, not 2.5"),
    (lambda: Mesh(CORNER, [[0, 1, 1e12]]), ShapeError, "faces must hold integers of 32 bits, not 1e"),
    (lambda: Mesh(CORNER * np.nan, FACES), ShapeError, "vertices holds nan; only finite numbers"),
    (lambda: AttachedShape(Sphere(1), color=[1, 0, 0]), ShapeError, "color must hold 4 numbers"),
    (lambda: AttachedShape(Sphere(1), color=[1, 0, 0, 2]), ShapeError, "red, green, blue, alpha between 0 and 1"),
    (
        lambda: AttachedShape(Sphere(1), friction=-0.1),
        ShapeError,
        "friction must be a finite number at least 0, not -0.1",
    ),
    (lambda: Inertia(0.0), SceneError, "mass must be positive and finite, not 0.0.*; leave the inertia out"),
    (lambda: Inertia(float("inf")), SceneError, "mass must be positive and finite, not inf"),
    (lambda: Inertia(1.0, [0, 0]), SceneError, "center must hold 3 numbers"),
    (lambda: Inertia(1.0, matrix=np.eye(2)), SceneError, r"matrix must have shape \(m, 3\), not \(2, 2\)"),
    (lambda: Inertia(1.0, matrix=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]), SceneError, "inertia matrix must be symmetric"),
    (lambda: Inertia(1.0, matrix=np.diag([1, 1, -0.1])), SceneError, "must be positive semi-definite"),
    (lambda: Inertia(1.0, matrix=[[1, 2, 0], [2, 1, 0], [0, 0, 9]]), SceneError, "must be positive semi-definite"),
    (lambda: Revolute([0, 0, 0]), SceneError, "joint has an axis that is zero or not finite; give a direction"),
    (lambda: Revolute([0, 0]), SceneError, "axis must hold 3 numbers"),
    (
        lambda: Revolute([0, 0, 1], lower=2, upper=1, name="j"),
        SceneError,
        r"joint 'j' has limits \[2.0+, 1.0+\]; lower",
    ),
    (lambda: Revolute([0, 0, 1], lower=float("nan")), SceneError, "lower must not exceed upper"),
    (lambda: Prismatic([0, 0, 1], lower=float("inf")), SceneError, "has limits that no value meets"),
    (lambda: Prismatic([0, 0, 1], velocity=-1), SceneError, "has a negative velocity or effort limit"),
    (lambda: Continuous([0, 0, 1], effort=-1), SceneError, "has a negative velocity or effort limit"),
    (lambda: Continuous([0, 0, 1], damping=-1), SceneError, "has a negative damping or friction"),
    (lambda: Mimic(""), SceneError, "a mimic rule needs the name of the leading joint"),
    (lambda: Mimic("a", float("nan")), SceneError, "the mimic rule of joint 'a' is not finite"),
]


@pytest.mark.parametrize(("call", "error", "message"), _REFUSALS)
def test_refusals(call: Callable[[], object], error: type[TmkitError], message: str) -> None:
    """What cannot exist is refused with what was received."""
    with pytest.raises(error, match=message):
        call()


# --- attached shapes ---------------------------------------------------------------------------------------------


def test_attached_shapes() -> None:
    """All fields come back; without a color the viewer chooses."""
    pose = Pose([1, 2, 3])
    full = AttachedShape(Sphere(1), pose, color=(1, 0.5, 0, 0.25), visual=False, collision=False, friction=0.6)
    assert (full.shape, full.pose, full.color) == (Sphere(1), pose, (1, 0.5, 0, 0.25))
    assert (full.visual, full.collision, full.friction) == (False, False, 0.6)
    plain = AttachedShape(Sphere(1))
    assert (plain.pose, plain.color, plain.visual, plain.collision) == (Pose(), None, True, True)
    assert plain.friction is None
    assert repr(plain) == "AttachedShape(Sphere(radius=1), Pose([0, 0, 0], quat_xyzw=[0, 0, 0, 1]))"
    with pytest.raises(AttributeError):
        plain.visual = False  # type: ignore[misc]  # that it fails is the test


def test_attached_shapes_are_equal_by_content() -> None:
    """Every field counts."""
    variants = [
        AttachedShape(Sphere(1)),
        AttachedShape(Sphere(2)),
        AttachedShape(Sphere(1), Pose([1, 0, 0])),
        AttachedShape(Sphere(1), color=(0.7, 0.7, 0.7, 1.0)),
        AttachedShape(Sphere(1), visual=False),
        AttachedShape(Sphere(1), collision=False),
        AttachedShape(Sphere(1), friction=0.5),
        AttachedShape(Sphere(1), friction=0.0),
    ]
    assert len(set(variants)) == len(variants)
    for attached in variants:
        back = pickle.loads(pickle.dumps(attached))
        assert back == attached
        assert hash(back) == hash(attached)


# --- inertia -----------------------------------------------------------------------------------------------------


def test_inertia() -> None:
    """All fields come back, read-only; zeros when left out; equal by content."""
    matrix = [[2, 0.1, 0], [0.1, 2, 0], [0, 0, 3]]
    inertia = Inertia(1.5, [1, 2, 3], matrix=matrix)
    assert (inertia.mass, inertia.center.tolist(), inertia.matrix.tolist()) == (1.5, [1, 2, 3], matrix)
    assert Inertia(1.5).matrix.tolist() == np.zeros((3, 3)).tolist()
    assert repr(inertia) == "Inertia(1.5, [1, 2, 3])"
    back = pickle.loads(pickle.dumps(inertia))
    assert back == inertia
    assert hash(back) == hash(inertia)
    assert inertia != Inertia(1.5, [1, 2, 3])
    assert inertia != 1.5
    with pytest.raises(ValueError, match="read-only"):
        inertia.matrix[0, 0] = 1.0


# --- joints ------------------------------------------------------------------------------------------------------

_FIELDS: dict[str, Any] = {
    "lower": -1.0,
    "upper": 2.0,
    "velocity": 3.0,
    "effort": 4.0,
    "damping": 0.5,
    "friction": 0.25,
    "name": "elbow",
    "mimic": Mimic("shoulder", 2.0, 0.1),
}
_LIMITS = {"lower", "upper"}


@pytest.mark.parametrize(
    ("make", "kind"), [(Revolute, "revolute"), (Prismatic, "prismatic"), (Continuous, "continuous")]
)
def test_moving_joints(make: Callable[..., Joint], kind: str) -> None:
    """All fields come back, the axis normalised; without them there are no limits, no friction, no name, no leader."""
    fields = {name: value for name, value in _FIELDS.items() if kind != "continuous" or name not in _LIMITS}
    joint = make([0, 3, 4], **fields)
    assert {name: getattr(joint, name) for name in fields} == fields
    assert (joint.type, joint.is_actuated, joint.axis.tolist()) == (kind, True, [0, 0.6, 0.8])
    plain = make([0, 0, 1])
    assert (plain.lower, plain.upper, plain.velocity, plain.effort) == (-np.inf, np.inf, np.inf, np.inf)
    assert (plain.damping, plain.friction, plain.name, plain.mimic) == (0.0, 0.0, "", None)
    for name in fields:
        assert make([0, 3, 4], **{**fields, name: getattr(plain, name)}) != joint
    back = pickle.loads(pickle.dumps(joint))
    assert back == joint
    assert hash(back) == hash(joint)
    with pytest.raises(ValueError, match="read-only"):
        joint.axis[0] = 1.0
    with pytest.raises(AttributeError):
        joint.lower = 0.0  # type: ignore[misc]  # that it fails is the test


def test_still_joints() -> None:
    """Fixed and free edges have a type and nothing else."""
    assert (Fixed().type, Fixed().is_actuated, Free().type, Free().is_actuated) == ("fixed", False, "free", False)
    assert Fixed() == Fixed()
    assert Fixed() != Free()
    assert pickle.loads(pickle.dumps(Free())) == Free()
    assert len({Fixed(), Free(), Fixed()}) == 2
    assert Fixed() != "fixed"


def test_texts_of_joints() -> None:
    """A joint's repr says what it is in one line."""
    assert repr(Fixed()) == "Fixed()"
    assert repr(Free()) == "Free()"
    assert (
        repr(Revolute([0, 0, 2], lower=-1, upper=0.5, name="j")) == "Revolute([0, 0, 1], lower=-1, upper=0.5, name='j')"
    )
    assert repr(Continuous([1, 0, 0], mimic=Mimic("j"))) == "Continuous([1, 0, 0], mimic='j')"
    assert repr(Prismatic([1, 0, 0])) == "Prismatic([1, 0, 0], lower=-inf, upper=inf)"


def test_mimic_rules() -> None:
    """A rule gives back its fields, is equal by them, and reads back from pickle."""
    rule = Mimic("leader", 2.0, -0.5)
    assert (rule.joint, rule.multiplier, rule.offset) == ("leader", 2.0, -0.5)
    assert (Mimic("leader").multiplier, Mimic("leader").offset) == (1.0, 0.0)
    assert repr(rule) == "Mimic('leader', multiplier=2, offset=-0.5)"
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert len({rule, Mimic("leader"), Mimic("leader", 2.0, -0.5)}) == 2
    assert rule != "leader"


@given(st.tuples(*[st.floats(-1e3, 1e3)] * 3).filter(lambda a: max(map(abs, a)) > 1e-6))
def test_axes_are_normalised_once(axis: tuple[float, float, float]) -> None:
    """An axis becomes a unit vector, and a unit vector keeps its bits, so that joints written and read are equal."""
    joint = Revolute(axis)
    assert np.linalg.norm(joint.axis) == pytest.approx(1.0, abs=1e-15)
    assert Revolute(joint.axis) == joint
