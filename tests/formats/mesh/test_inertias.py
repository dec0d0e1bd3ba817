"""Mass properties of uniform solids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tmkit.errors import ShapeError
from tmkit.formats.mesh.solids import combine_inertias, solid_inertia
from tmkit.graph import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightField,
    Mesh,
    Plane,
    PointCloud,
    Shape,
    Sphere,
)
from tmkit.spatial import Pose

trimesh = pytest.importorskip("trimesh")


def as_mesh(shape: Shape) -> Shape:
    """Return a solid as a fine mesh, made by another library."""
    if shape.kind == "box":
        solid = trimesh.creation.box(shape.dimensions)
    elif shape.kind == "sphere":
        solid = trimesh.creation.icosphere(subdivisions=5, radius=shape.dimensions[0])
    elif shape.kind == "cylinder":
        solid = trimesh.creation.cylinder(shape.dimensions[0], shape.dimensions[1], sections=400)
    elif shape.kind == "cone":
        solid = trimesh.creation.cone(*shape.dimensions, sections=400)
        solid.apply_translation([0, 0, -shape.dimensions[1] / 2])
    else:
        radius, length = shape.dimensions
        solid = trimesh.creation.capsule(length, radius, count=[200, 200])
        solid.apply_translation(-solid.bounds.mean(axis=0))
    return Mesh(solid.vertices, solid.faces)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (Box, ([1, 2, 3],)),
        (Sphere, (0.7,)),
        (Cylinder, (0.5, 2)),
        (Cone, (0.5, 2)),
        (Capsule, (0.5, 2)),
        (Capsule, (1.0, 0.1)),
    ],
)
def test_formulas_agree_with_the_mesh(make: Callable[..., Shape], sizes: tuple[Any, ...]) -> None:
    """Each formula agrees with the integral over a fine mesh of the solid."""
    shape = make(*sizes)
    center, matrix = solid_inertia(shape, 3.0)
    mesh_center, mesh_matrix = solid_inertia(as_mesh(shape), 3.0)
    np.testing.assert_allclose(center, mesh_center, atol=1e-3)
    np.testing.assert_allclose(matrix, mesh_matrix, rtol=2e-3, atol=2e-3)


def test_mesh_agrees_with_trimesh() -> None:
    """The integral over a mesh is that of trimesh, also far from the origin."""
    solid = trimesh.creation.icosphere(subdivisions=1)
    solid.apply_scale([1, 2, 3])
    solid.apply_translation([10, -20, 5])
    solid.density = 2.0 / solid.volume
    center, matrix = solid_inertia(Mesh(solid.vertices, solid.faces), 2.0)
    np.testing.assert_allclose(center, solid.center_mass, rtol=1e-9)
    np.testing.assert_allclose(matrix, solid.moment_inertia, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("faces", [[[0, 1, 2]], [[0, 2, 1]], [[0, 1, 2], [0, 2, 1]]])
def test_meshes_without_a_volume_are_rejected(faces: list[list[int]]) -> None:
    """A flat mesh has no inertia."""
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], faces)
    with pytest.raises(ShapeError, match="encloses no volume"):
        solid_inertia(mesh, 1.0)


@pytest.mark.parametrize(
    "shape",
    [Plane(), PointCloud([[0, 0, 0]], radius=1), HeightField([[0, 0], [0, 1]], size=[1, 1])],
)
def test_ground_has_no_mass(shape: Shape) -> None:
    """Planes, clouds and fields are not weighed."""
    with pytest.raises(
        ShapeError, match=f"a {shape.kind.replace('_', ' ')} has no volume for a mass"
    ):
        solid_inertia(shape, 1.0)


coordinates = st.tuples(*[st.floats(-2, 2)] * 3)


@given(coordinates, coordinates, st.floats(0.1, 5))
def test_union_of_halves_is_the_whole(
    translation: tuple[float, ...], rpy: tuple[float, ...], mass: float
) -> None:
    """A box cut in two and put together again has the inertia of the box, wherever it stands."""
    pose = Pose.from_rpy(translation, rpy)
    half = Box([1, 2, 1.5])
    parts = [(half, pose @ Pose((0, 0, z)), mass / 2) for z in (-0.75, 0.75)]
    whole, union = combine_inertias([(Box([1, 2, 3]), pose, mass)]), combine_inertias(parts)
    assert union.mass == pytest.approx(mass)
    np.testing.assert_allclose(union.center, translation, atol=1e-12)
    np.testing.assert_allclose(union.matrix, whole.matrix, atol=1e-12 * max(mass, 1))
