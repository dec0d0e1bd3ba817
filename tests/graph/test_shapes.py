"""Shapes, inertias and joints as values: fields, equality, hash, pickle and errors."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.processes import run_process

from tmkit.errors import SceneError, ShapeError, TmkitError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Continuous,
    Cylinder,
    Fixed,
    Free,
    HeightField,
    Inertia,
    Joint,
    Mesh,
    Mimic,
    Plane,
    PointCloud,
    Prismatic,
    Revolute,
    Shape,
    Sphere,
    Unstated,
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
    shape: Shape,
    kind: str,
    dimensions: tuple[float, ...],
    half: tuple[float, ...],
    volume: float,
    text: str,
) -> None:
    """A primitive has its kind, sizes, bounds centred at the origin, and volume."""
    assert (shape.kind, shape.dimensions) == (kind, dimensions)
    lower, upper = shape.bounds
    assert (lower.tolist(), upper.tolist()) == ([-h for h in half], list(half))
    assert shape.volume == pytest.approx(volume)
    assert (shape.vertices.shape, shape.faces.shape, shape.source) == ((0, 3), (0, 3), "")
    assert repr(shape) == text


def test_a_mesh() -> None:
    """A mesh has its vertices, faces and source; its volume ignores the face orientation."""
    mesh = Mesh(CORNER, FACES, source="package://things/corner.stl")
    assert (mesh.kind, mesh.dimensions, mesh.source) == ("mesh", (), "package://things/corner.stl")
    assert mesh.vertices.tolist() == CORNER.tolist()
    assert mesh.faces.tolist() == FACES.tolist()
    assert (mesh.vertices.dtype, mesh.faces.dtype) == (np.float64, np.int32)
    assert [corner.tolist() for corner in mesh.bounds] == [[0, 0, 0], [1, 2, 3]]
    assert mesh.volume == pytest.approx(1.0)
    assert Mesh(CORNER, FACES[:, ::-1]).volume == pytest.approx(1.0)
    assert repr(mesh) == "Mesh(4 vertices, 4 faces, source='package://things/corner.stl')"
    assert repr(Mesh(CORNER, FACES)) == "Mesh(4 vertices, 4 faces)"
    for array in (mesh.vertices, mesh.faces, *mesh.bounds):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_a_plane() -> None:
    """A plane has no sizes and no end but one."""
    plane = Plane()
    assert (plane.kind, plane.dimensions, plane.volume, repr(plane)) == (
        "plane",
        (),
        np.inf,
        "Plane()",
    )
    lower, upper = plane.bounds
    assert (lower.tolist(), upper.tolist()) == ([-np.inf] * 3, [np.inf, np.inf, 0.0])
    assert plane == Plane()


def test_a_point_cloud() -> None:
    """A cloud gives back its points and radius, and its bounds hold the balls; it has no volume."""
    points = [[0, 0, 0], [1, 2, 3], [0.5, -1, 1]]
    cloud = PointCloud(points, radius=0.25, source="scan.ply")
    assert (cloud.kind, cloud.dimensions, cloud.source) == ("point_cloud", (0.25,), "scan.ply")
    assert cloud.points.tolist() == points
    assert [corner.tolist() for corner in cloud.bounds] == [
        [-0.25, -1.25, -0.25],
        [1.25, 2.25, 3.25],
    ]
    assert (cloud.vertices.shape, cloud.faces.shape, cloud.heights.shape) == (
        (0, 3),
        (0, 3),
        (0, 0),
    )
    assert repr(cloud) == "PointCloud(3 points, radius=0.25, source='scan.ply')"
    with pytest.raises(ShapeError, match="a point cloud has no volume: its balls may overlap"):
        _ = cloud.volume


def test_a_height_field() -> None:
    """A field gives back its heights row by row; its bounds reach from the floor to the top."""
    heights = [[0, 0.5, 0], [0.25, 1, 0]]
    field = HeightField(heights, size=[4, 2], floor=-1)
    assert (field.kind, field.dimensions, field.heights.tolist()) == (
        "height_field",
        (4, 2, -1),
        heights,
    )
    assert [corner.tolist() for corner in field.bounds] == [[-2, -1, -1], [2, 1, 1]]
    assert repr(field) == "HeightField(2 x 3 heights, size=(4, 2), floor=-1)"
    assert HeightField(np.ones((3, 3)), size=[2, 3], floor=0.5).volume == pytest.approx(3.0)
    assert field.volume == pytest.approx(
        8 + (2 * (0 + 1) + 0.5 + 0.25) / 6 * 4 + (2 * (0.5 + 0) + 0 + 1) / 6 * 4
    )
    assert HeightField(heights, size=[4, 2]).dimensions[2] == pytest.approx(-0.4)
    assert HeightField(np.reshape(heights, (3, 2)), size=[4, 2], floor=-1) != field


def test_shapes_keep_their_own_numbers() -> None:
    """The arrays that a shape was made of may change later."""
    vertices, faces = CORNER.copy(), FACES.copy()
    shapes = [
        Mesh(vertices, faces),
        PointCloud(vertices, radius=1),
        HeightField(vertices, size=[1, 1]),
    ]
    vertices[:], faces[:] = 7.0, 0
    assert shapes == [
        Mesh(CORNER, FACES),
        PointCloud(CORNER, radius=1),
        HeightField(CORNER, size=[1, 1]),
    ]


def test_arrays_of_shapes_are_views() -> None:
    """The arrays show the shape's own memory, read-only, and live on without it."""
    shapes = [Mesh(CORNER, FACES), PointCloud(CORNER, radius=1), HeightField(CORNER, size=[1, 1])]
    for name, shape in zip(("vertices", "points", "heights"), shapes, strict=True):
        array = getattr(shape, name)
        assert np.shares_memory(array, getattr(copy.copy(shape), name))
        assert np.shares_memory(array, getattr(AttachedShape(shape).shape, name))
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    array = Mesh(CORNER, FACES).vertices
    assert array.tolist() == CORNER.tolist()


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8, np.float64, np.float32, list])
def test_arrays_of_any_type_are_read(kind: Callable[[Any], Any]) -> None:
    """Faces may come as integers of any width or as whole floats, points as any real numbers."""
    convert = (lambda array: array.tolist()) if kind is list else (lambda array: array.astype(kind))
    assert Mesh(CORNER, convert(FACES)) == Mesh(CORNER, FACES)
    assert Mesh(CORNER, convert(np.asfortranarray(FACES))) == Mesh(CORNER, FACES)
    assert PointCloud(convert(CORNER), radius=1) == PointCloud(CORNER, radius=1)


_MEMORY = """
import gc, os, pickle
import numpy as np
from tmkit.graph import AttachedShape, Free, Mesh, SceneArrays, SceneGraph, Sphere
from tmkit.motion import CollisionWorld

def megabytes():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

def make():
    i = np.arange(1_000_000, dtype=np.int32)
    vertices = np.random.default_rng(0).random((500_000, 3))
    faces = np.column_stack([i, i + 1, i + 2]) % 500_000
    return Mesh(vertices, faces.astype(np.int32))

Mesh(np.eye(3), [[0, 1, 2]]).vertices
CollisionWorld(SceneGraph().add_frame("a", "world", shapes=[AttachedShape(Sphere(1))]))
before = megabytes()
mesh = make()
print(megabytes() - before)  # 12 MB of vertices, 12 MB of faces
scene = SceneGraph().add_frame("mesh", "world", joint=Free(), shapes=[AttachedShape(mesh)])
versions = [scene]
for k in range(1000):
    versions.append(versions[-1].add_frame(f"f{k}", "mesh", shapes=[AttachedShape(mesh)]))
arrays = [version.shapes("mesh")[0].shape.vertices for version in versions]
worlds = [CollisionWorld(scene, level="box") for _ in range(10)]
mutable = [SceneArrays(scene, capacity=8) for _ in range(10)]
frozen = [each.freeze() for each in mutable]
again = pickle.loads(pickle.dumps(versions[100]))
del again
print(megabytes() - before)
del mesh, scene, versions, worlds, mutable, frozen
array = arrays[500]
del arrays
print(megabytes() - before)  # the view keeps the shape
total = float(array.sum())
del array
print(megabytes() - before)
"""


def test_a_large_mesh_exists_once_and_is_freed() -> None:
    """A million triangles take 24 MB once in scenes and arrays, until the last reference."""
    # what is freed goes back to the system at once
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    run = run_process(
        [sys.executable, "-c", _MEMORY], env=environment, capture_output=True, check=True, text=True
    )
    made, held, viewed, freed = (float(line) for line in run.stdout.split())
    assert 22 < made < 34
    assert held < made + 20  # a thousand versions of a scene take some themselves
    assert viewed > 22
    assert freed < 14


def test_shapes_are_equal_by_content() -> None:
    """Equality, hash and digest depend on kind and numbers, not on a mesh's source."""
    shapes = [entry[0] for entry in _SHAPES] + [
        Mesh(CORNER, FACES),
        Mesh(CORNER, FACES[::-1]),
        Box([1, 2, 4]),
    ]
    shapes += [
        Plane(),
        PointCloud(CORNER, radius=0.5),
        PointCloud(CORNER, radius=0.25),
        PointCloud(CORNER[:3], radius=0.5),
    ]
    shapes += [
        HeightField(CORNER, size=[1, 2]),
        HeightField(CORNER, size=[2, 1]),
        HeightField(CORNER, size=[1, 2], floor=-9),
    ]
    assert len(set(shapes)) == len({shape.digest for shape in shapes}) == len(shapes)
    for shape in shapes:
        for twin in (pickle.loads(pickle.dumps(shape)), copy.copy(shape), copy.deepcopy(shape)):
            assert twin == shape
            assert (hash(twin), twin.digest, repr(twin)) == (hash(shape), shape.digest, repr(shape))
    for named in (
        PointCloud(CORNER, radius=1, source="a"),
        HeightField(CORNER, size=[1, 1], source="a"),
    ):
        assert pickle.loads(pickle.dumps(named)).source == "a"
    assert PointCloud(CORNER, radius=1, source="a") == PointCloud(CORNER, radius=1)
    assert Mesh(CORNER, FACES, source="a") == Mesh(CORNER, FACES, source="b")
    assert pickle.loads(pickle.dumps(Mesh(CORNER, FACES, source="a"))).source == "a"
    assert Cylinder(1, 2) != Cone(1, 2)
    assert Box([1, 1, 1]) != "a box"


def test_digests_are_the_same_in_every_process() -> None:
    """A digest is 32 hexadecimal digits of the content alone, whatever the hash seed."""
    code = "from tmkit.graph import Box; b = Box([1, 2, 3]); print(b.digest, hash(b))"
    runs = {
        run_process(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{Box([1, 2, 3]).digest} {hash(Box([1, 2, 3]))}\n".encode()}
    assert len(Box([1, 2, 3]).digest) == 32


_REFUSALS: list[tuple[Callable[[], object], type[TmkitError], str]] = [
    (lambda: Box([1, 0, 1]), ShapeError, "a box needs positive finite dimensions in metres, not 0"),
    (lambda: Box([1, 1]), ShapeError, r"size must hold 3 numbers, but has shape \(2,\)"),
    (
        lambda: Sphere(-1.0),
        ShapeError,
        "a sphere needs positive finite dimensions in metres, not -1",
    ),
    (
        lambda: Sphere(float("nan")),
        ShapeError,
        "a sphere needs positive finite dimensions in metres, not nan",
    ),
    (
        lambda: Cylinder(1, float("inf")),
        ShapeError,
        "a cylinder needs positive finite dimensions in metres, not inf",
    ),
    (
        lambda: Mesh(CORNER, np.zeros((0, 3))),
        ShapeError,
        r"a mesh needs vertices \(n, 3\) and faces \(m, 3\), both with",
    ),
    (
        lambda: Mesh(CORNER[:, :2], FACES),
        ShapeError,
        r"vertices must have shape \(m, 3\), not \(4, 2\)",
    ),
    (
        lambda: Mesh(CORNER, [[0, 1, 4]], source="x.stl"),
        ShapeError,
        r"names vertex 4, but there are 4 \(x.stl\)",
    ),
    (lambda: Mesh(CORNER, [[0, 1, -1]]), ShapeError, "names vertex -1, but there are 4"),
    (
        lambda: Mesh(CORNER, [[0, 1, 2.5]]),
        ShapeError,
        "faces must hold integers of 32 bits, not 2.5",
    ),
    (
        lambda: Mesh(CORNER, [[0, 1, 1e12]]),
        ShapeError,
        "faces must hold integers of 32 bits, not 1e",
    ),
    (lambda: Mesh(CORNER * np.nan, FACES), ShapeError, "vertices holds nan; only finite numbers"),
    (
        lambda: PointCloud(np.zeros((0, 3)), radius=1),
        ShapeError,
        r"a point cloud needs points \(n, 3\), at least one",
    ),
    (
        lambda: PointCloud([1, 2, 3], radius=1),
        ShapeError,
        r"points must have shape \(m, 3\), not \(3,\)",
    ),
    (
        lambda: PointCloud([["a", "b", "c"]], radius=1),
        ShapeError,
        "points must be an array of real numbers",
    ),
    (
        lambda: PointCloud([[1, 2, np.nan]], radius=1),
        ShapeError,
        "points holds nan; only finite numbers",
    ),
    (
        lambda: PointCloud(CORNER, radius=-1, source="x.ply"),
        ShapeError,
        r"needs a positive finite radius in metres, not -1 \(x.ply\)",
    ),
    (
        lambda: PointCloud(CORNER, radius=np.inf),
        ShapeError,
        "a positive finite radius in metres, not inf",
    ),
    (
        lambda: HeightField([1, 2], size=[1, 1]),
        ShapeError,
        r"heights must have shape \(rows, columns\), not \(2,\)",
    ),
    (lambda: HeightField([[1, 2]], size=[1, 1]), ShapeError, r"at least 2 of each, not \(1, 2\)"),
    (
        lambda: HeightField(np.zeros((0, 0)), size=[1, 1]),
        ShapeError,
        r"at least 2 of each, not \(0, 0\)",
    ),
    (
        lambda: HeightField([[1, 2], [3, np.inf]], size=[1, 1]),
        ShapeError,
        "heights holds inf; only finite numbers",
    ),
    (
        lambda: HeightField(CORNER, size=[1, 0]),
        ShapeError,
        "a positive finite size in metres, not 0",
    ),
    (lambda: HeightField(CORNER, size=[1, 2, 3]), ShapeError, "size must hold 2 numbers"),
    (
        lambda: HeightField(CORNER, size=[1, 1], floor=0),
        ShapeError,
        "a floor below its lowest height 0, not 0",
    ),
    (
        lambda: HeightField(CORNER, size=[1, 1], floor=-np.inf),
        ShapeError,
        "a floor below its lowest .*, not -inf",
    ),
    (lambda: AttachedShape(Sphere(1), level="hul"), UnknownNameError, "did you mean 'hull'"),
    (lambda: AttachedShape(Sphere(1), color=[1, 0, 0]), ShapeError, "color must hold 4 numbers"),
    (
        lambda: AttachedShape(Sphere(1), color=[1, 0, 0, 2]),
        ShapeError,
        "red, green, blue, alpha between 0 and 1",
    ),
    (
        lambda: AttachedShape(Sphere(1), friction=-0.1),
        ShapeError,
        "friction must be a finite number at least 0, not -0.1",
    ),
    (lambda: Inertia(0.0), SceneError, "mass must be positive and finite, not 0; omit the inertia"),
    (lambda: Inertia(float("inf")), SceneError, "mass must be positive and finite, not inf"),
    (lambda: Inertia(1.0, [0, 0]), SceneError, "center must hold 3 numbers"),
    (
        lambda: Inertia(1.0, matrix=np.eye(2)),
        SceneError,
        r"matrix must have shape \(3, 3\), not \(2, 2\)",
    ),
    (
        lambda: Inertia(1.0, matrix=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]),
        SceneError,
        "inertia matrix must be symmetric",
    ),
    (
        lambda: Inertia(1.0, matrix=np.diag([1, 1, -0.1])),
        SceneError,
        "must be positive semi-definite",
    ),
    (
        lambda: Inertia(1.0, matrix=[[1, 2, 0], [2, 1, 0], [0, 0, 9]]),
        SceneError,
        "must be positive semi-definite",
    ),
    (
        lambda: Revolute([0, 0, 0]),
        SceneError,
        "joint has an axis that is zero or not finite; give a direction",
    ),
    (lambda: Revolute([0, 0]), SceneError, "axis must hold 3 numbers"),
    (
        lambda: Revolute([0, 0, 1], lower=2, upper=1, name="j"),
        SceneError,
        r"joint 'j' has limits \[2.0+, 1.0+\]; lower",
    ),
    (lambda: Revolute([0, 0, 1], lower=float("nan")), SceneError, "lower must not exceed upper"),
    (
        lambda: Prismatic([0, 0, 1], lower=float("inf")),
        SceneError,
        "has limits that no value satisfies",
    ),
    (
        lambda: Prismatic([0, 0, 1], velocity=-1),
        SceneError,
        "has a negative velocity or effort limit",
    ),
    (
        lambda: Continuous([0, 0, 1], effort=-1),
        SceneError,
        "has a negative velocity or effort limit",
    ),
    (
        lambda: Continuous([0, 0, 1]).replace(damping=-1),
        SceneError,
        "has a negative damping or friction",
    ),
    (lambda: Mimic(""), SceneError, "a mimic rule needs the name of the leading joint"),
    (lambda: Mimic("a", float("nan")), SceneError, "the mimic rule of joint 'a' is not finite"),
]


@pytest.mark.parametrize(("call", "error", "message"), _REFUSALS)
def test_rejections(call: Callable[[], object], error: type[TmkitError], message: str) -> None:
    """What cannot exist is rejected with what was received."""
    with pytest.raises(error, match=message):
        call()


# --- attached shapes


def test_attached_shapes() -> None:
    """All fields come back; without a color the viewer chooses."""
    pose = Pose([1, 2, 3])
    full = AttachedShape(
        Sphere(1), pose, color=(1, 0.5, 0, 0.25), visual=False, collision=False, friction=0.6
    )
    assert (full.shape, full.pose, full.color) == (Sphere(1), pose, (1, 0.5, 0, 0.25))
    assert (full.visual, full.collision, full.friction) == (False, False, 0.6)
    plain = AttachedShape(Sphere(1))
    assert (plain.pose, plain.color, plain.visual, plain.collision) == (Pose(), None, True, True)
    assert (plain.friction, plain.level) == (None, None)
    assert AttachedShape(Sphere(1), level="box").level == "box"
    assert repr(AttachedShape(Sphere(1), level="box")).endswith(", level='box')")
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
        AttachedShape(Sphere(1), level="exact"),
        AttachedShape(Sphere(1), level="hull"),
        AttachedShape(Sphere(1), level="box"),
    ]
    assert len(set(variants)) == len(variants)
    for attached in variants:
        back = pickle.loads(pickle.dumps(attached))
        assert back == attached
        assert hash(back) == hash(attached)


# --- inertia


def test_inertia() -> None:
    """All fields come back, read-only; zeros when left out; equal by content."""
    matrix = [[2, 0.1, 0], [0.1, 2, 0], [0, 0, 3]]
    inertia = Inertia(1.5, [1, 2, 3], matrix=matrix)
    assert (inertia.mass, inertia.center.tolist(), inertia.matrix.tolist()) == (
        1.5,
        [1, 2, 3],
        matrix,
    )
    assert Inertia(1.5).matrix.tolist() == np.zeros((3, 3)).tolist()
    assert repr(inertia) == "Inertia(1.5, [1, 2, 3])"
    back = pickle.loads(pickle.dumps(inertia))
    assert back == inertia
    assert hash(back) == hash(inertia)
    assert inertia != Inertia(1.5, [1, 2, 3])
    assert inertia != 1.5
    with pytest.raises(ValueError, match="read-only"):
        inertia.matrix[0, 0] = 1.0


# --- joints

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
    """All fields are returned, the axis normalised; defaults have no limits and no mimic rule."""
    fields = {
        name: value
        for name, value in _FIELDS.items()
        if kind != "continuous" or name not in _LIMITS
    }
    joint = make([0, 0, 1]).replace(axis=[0, 3, 4], **fields)
    assert {name: getattr(joint, name) for name in fields} == fields
    assert (joint.type, joint.is_actuated, joint.axis.tolist()) == (kind, True, [0, 0.6, 0.8])
    plain = make([0, 0, 1])
    assert (plain.lower, plain.upper, plain.velocity, plain.effort) == (
        -np.inf,
        np.inf,
        np.inf,
        np.inf,
    )
    assert (plain.damping, plain.friction, plain.name, plain.mimic) == (0.0, 0.0, "", None)
    for name in fields:
        assert joint.replace(**{name: getattr(plain, name)}) != joint
        assert (
            joint.replace(**{name: getattr(plain, name)}).replace(**{name: fields[name]}) == joint
        )
    back = pickle.loads(pickle.dumps(joint))
    assert back == joint
    assert hash(back) == hash(joint)
    with pytest.raises(ValueError, match="read-only"):
        joint.axis[0] = 1.0
    with pytest.raises(AttributeError):
        joint.lower = 0.0  # type: ignore[misc]  # that it fails is the test


def test_still_joints() -> None:
    """Fixed and free edges have a type and nothing else."""
    assert (Fixed().type, Fixed().is_actuated, Free().type, Free().is_actuated) == (
        "fixed",
        False,
        "free",
        False,
    )
    assert Fixed() == Fixed()
    assert Fixed() != Free()
    assert pickle.loads(pickle.dumps(Free())) == Free()
    assert pickle.loads(pickle.dumps(Unstated())) == Unstated() != Fixed()
    assert len({Fixed(), Free(), Fixed(), Unstated()}) == 3
    assert Fixed() != "fixed"


def test_texts_of_joints() -> None:
    """A joint's repr says what it is in one line."""
    assert repr(Fixed()) == "Fixed()"
    assert repr(Free()) == "Free()"
    assert repr(Unstated()) == "Unstated()"
    assert (
        repr(Revolute([0, 0, 2], lower=-1, upper=0.5, name="j"))
        == "Revolute([0, 0, 1], lower=-1, upper=0.5, name='j')"
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
    """An axis becomes a unit vector, and a unit vector keeps its bits."""
    joint = Revolute(axis)
    assert np.linalg.norm(joint.axis) == pytest.approx(1.0, abs=1e-15)
    assert Revolute(joint.axis) == joint
