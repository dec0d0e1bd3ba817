"""Quick convex pieces: need, error bound, determinism and cache."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings, strategies as st
from support.meshes import CONCAVE_MESHES, circle_outline, l_mesh, square_outline, tub_mesh

from tmkit.formats import quick_pieces as module
from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec
from tmkit.formats.quick_pieces import FINGER_ROOM, needs_pieces, quick_pieces
from tmkit.graph import AttachedShape, Mesh, Prismatic, SceneGraph, Shape, Sphere
from tmkit.motion import CollisionWorld


def _trimesh(mesh: Shape) -> trimesh.Trimesh:
    return trimesh.Trimesh(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def _outside(points: np.ndarray, piece: Shape) -> np.ndarray:
    """Return how far (n,) points lie beyond the planes of a convex mesh [m]."""
    corners = np.asarray(piece.vertices)[np.asarray(piece.faces)]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1)
    is_wide = lengths > 1e-12
    normals, corners = normals[is_wide] / lengths[is_wide, None], corners[is_wide]
    return np.max(points @ normals.T - np.einsum("ij,ij->i", normals, corners[:, 0]), axis=1)


def _is_inside(points: np.ndarray, whole: trimesh.Trimesh) -> np.ndarray:
    """Return a mask of points (n,) that see a mesh under over half the solid angle."""
    a, b, c = (whole.triangles[None, :, k] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(corner, axis=2) for corner in (a, b, c))
    ab, bc, ca = (np.sum(one * other, axis=2) for one, other in ((a, b), (b, c), (c, a)))
    volume = np.sum(a * np.cross(b, c), axis=2)
    angles = 2.0 * np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb)
    return np.asarray(np.abs(angles.sum(axis=1)) > 2.0 * np.pi)


def _require_right(
    mesh: Shape, pieces: tuple[Shape, ...], error: float, *, factor: float = 1.25
) -> None:
    """Require that the pieces contain the surface and lie within a multiple of the error."""
    whole = _trimesh(mesh)
    scene, above = (
        SceneGraph().add_frame("mesh", "world", shapes=[AttachedShape(mesh, level="exact")]),
        "world",
    )
    for number, axis in enumerate(np.eye(3)):
        frame = ("along x", "along y", "ball")[number]
        scene, above = scene.add_frame(frame, above, joint=Prismatic(axis)), frame
    world = CollisionWorld(scene.set_shapes("ball", [AttachedShape(Sphere(1e-6))]))
    surface = trimesh.sample.sample_surface(whole, 2000, seed=0)[0]
    assert np.max(np.min([_outside(surface, piece) for piece in pieces], axis=0)) < 1e-6
    for piece in pieces:
        points = trimesh.sample.sample_surface(_trimesh(piece), 100, seed=0)[0]
        for point in points[~_is_inside(points, whole)]:
            assert world.distance("mesh", "ball", point).distance < factor * error


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("suffix", ["obj", "stl"])
@pytest.mark.parametrize("name", CONCAVE_MESHES)
def test_concave_meshes_of_files_need_pieces_that_are_right(
    name: str, suffix: str, tmp_path: Path
) -> None:
    """Each kind, written by trimesh and read by the loader, becomes few pieces within the error."""
    _trimesh(CONCAVE_MESHES[name]()).export(tmp_path / f"mesh.{suffix}")
    mesh = MeshLoader().load(MeshSpec(tmp_path / f"mesh.{suffix}", (1.0, 1.0, 1.0)))
    assert needs_pieces(mesh)
    pieces, error = quick_pieces(mesh)
    assert 2 <= len(pieces) <= module.MAX_PIECES
    diagonal = float(np.linalg.norm(np.ptp(mesh.vertices, axis=0)))
    assert error == pytest.approx((0.02 if name == "bowl" else 0.01) * diagonal)
    _require_right(mesh, pieces, error)


@pytest.mark.parametrize(
    "mesh_of_boxes",
    [
        trimesh.creation.box([0.1, 0.05, 0.02]),
        trimesh.creation.icosphere(subdivisions=3, radius=0.04),
        trimesh.creation.cylinder(0.03, 0.1),
        trimesh.creation.capsule(0.1, 0.02),
        trimesh.creation.cone(0.04, 0.08),
        trimesh.Trimesh([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0]], [[0, 1, 2]]),
    ],
    ids=["box", "ball", "cylinder", "capsule", "cone", "triangle"],
)
def test_convex_and_flat_meshes_need_none(mesh_of_boxes: trimesh.Trimesh) -> None:
    """A convex mesh equals its hull; a triangle has no hull."""
    assert not needs_pieces(
        Mesh(np.asarray(mesh_of_boxes.vertices), np.asarray(mesh_of_boxes.faces))
    )


@pytest.mark.parametrize(
    ("radius", "is_needed"), [(0.5 * FINGER_ROOM, False), (3.0 * FINGER_ROOM, True)]
)
def test_a_hole_matters_if_a_finger_fits(radius: float, is_needed: bool) -> None:
    """A hole as deep as the brick is none of a hand's business while no finger enters it."""
    brick = tub_mesh(square_outline(0.1), circle_outline(radius), height=0.06, floor=0.002)
    assert needs_pieces(brick) == is_needed


def test_parts_that_are_convex_stay_whole() -> None:
    """The boxes of a bridge are its pieces, exactly."""
    boxes = [
        trimesh.creation.box(size).apply_translation(place)
        for size, place in (
            ([0.2, 0.05, 0.02], [0.0, 0.0, 0.071]),
            ([0.02, 0.05, 0.06], [-0.08, 0.0, 0.03]),
            ([0.02, 0.05, 0.06], [0.08, 0.0, 0.03]),
        )
    ]
    mesh_of_boxes = trimesh.util.concatenate(boxes)
    pieces, _ = quick_pieces(
        Mesh(np.asarray(mesh_of_boxes.vertices), np.asarray(mesh_of_boxes.faces))
    )
    assert sorted(piece.volume for piece in pieces) == pytest.approx(
        sorted(box.volume for box in boxes)
    )


def test_an_l_is_two_boxes() -> None:
    """The cut follows a face of the L, so nothing is added."""
    pieces, _ = quick_pieces(l_mesh())
    assert len(pieces) == 2
    assert sum(piece.volume for piece in pieces) == pytest.approx(
        _trimesh(l_mesh()).volume, rel=1e-6
    )


def test_a_mesh_is_cut_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call reads equal pieces from the disk; a damaged entry is replaced."""
    cuts = []
    cut = module._decompose
    monkeypatch.setattr(module, "_decompose", lambda triangles: (cuts.append(1), cut(triangles))[1])
    first = quick_pieces(l_mesh())
    assert quick_pieces(l_mesh()) == first
    assert len(cuts) == 1
    (entry,) = (tmp_path / "cache").iterdir()
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    assert quick_pieces(l_mesh()) == first
    assert len(cuts) == 2
    monkeypatch.setenv("TMKIT_CACHE", "off")
    assert quick_pieces(l_mesh()) == first
    assert len(cuts) == 3


def test_too_many_pieces_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mesh of which no number of pieces is right has none, and the work ends."""
    monkeypatch.setattr(module, "MAX_PIECES", 1)
    monkeypatch.setattr(module, "_MAX_BOUND_FACTOR", 2)
    assert quick_pieces(l_mesh(0.16, 0.05))[0] == ()


@settings(deadline=None, max_examples=5)
@given(
    inner=st.floats(0.3, 0.9),
    height=st.floats(0.02, 0.12),
    floor=st.floats(0.1, 0.9),
    is_round=st.booleans(),
    matrix=st.sampled_from(
        [np.eye(3), trimesh.transformations.euler_matrix(0.3, 0.7, 1.1)[:3, :3]]
    ),
)
def test_pieces_of_vessels_are_right(
    inner: float, height: float, floor: float, is_round: bool, matrix: np.ndarray
) -> None:
    """Vessels of any proportions, straight or turned, have pieces that trimesh finds right."""
    outline = circle_outline if is_round else square_outline
    mesh_of_boxes = tub_mesh(
        square_outline(0.1),
        outline(0.05 * inner * (1 if is_round else 2)),
        height=height,
        floor=floor * height,
    )
    mesh = Mesh(np.asarray(mesh_of_boxes.vertices) @ matrix.T, mesh_of_boxes.faces)
    pieces, error = quick_pieces(mesh)
    assert 1 <= len(pieces) <= module.MAX_PIECES
    # A point of a triangle is at most its longest side / sqrt(3) from the nearest sample.
    factor = 1.0 + module._SPACINGS[-1] / math.sqrt(3.0)
    _require_right(mesh, pieces, error, factor=factor)
