"""Properties of a mesh do not depend on which of its triangles are turned over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from hypothesis import given, strategies as st

import tmkit as tk
from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec
from tmkit.formats.mesh.solids import solid_inertia
from tmkit.manipulation.grasps.meshes import antipodal_pairs, suction_points
from tmkit.motion import CollisionWorld
from tmkit.motion.masses import volume_and_centre
from tmkit.motion.regions.patches import outward_triangles
from tmkit.simulation.engines.pybullet.shapes import triangles_of


def _shell() -> trimesh.Trimesh:
    """Return a ball with a cavity, whose triangles look inwards to be outwards of the matter."""
    inner = trimesh.creation.icosphere(subdivisions=1, radius=0.02)
    inner.invert()
    return trimesh.util.concatenate(
        [trimesh.creation.icosphere(subdivisions=1, radius=0.03), inner]
    )


def _open_box() -> trimesh.Trimesh:
    box = trimesh.creation.box((0.05, 0.06, 0.07))
    box.update_faces(box.face_normals[:, 2] < 0.9)
    return box


def _duplicate_vertices() -> trimesh.Trimesh:
    """Return a box each of whose triangles has its own corners."""
    box = trimesh.creation.box((0.05, 0.06, 0.07))
    return trimesh.Trimesh(
        box.triangles.reshape(-1, 3), np.arange(36).reshape(-1, 3), process=False
    )


_MESHES = {
    "box": trimesh.creation.box((0.05, 0.06, 0.07)),
    "away": trimesh.creation.box((0.05, 0.06, 0.07)).apply_translation([1, 2, -3]),
    "cylinder": trimesh.creation.cylinder(0.03, 0.08),
    "torus": trimesh.creation.torus(0.04, 0.015),
    "two boxes": trimesh.util.concatenate(
        [
            trimesh.creation.box((0.05,) * 3),
            trimesh.creation.box((0.02,) * 3).apply_translation([0.1, 0, 0]),
        ]
    ),
    "touching boxes": trimesh.util.concatenate(
        [
            trimesh.creation.box((0.02,) * 3),
            trimesh.creation.box((0.02,) * 3).apply_translation([0.02, 0.02, 0]),
        ]
    ),
    "unmerged": _duplicate_vertices(),
    "open box": _open_box(),
    "shell": _shell(),
}


def _reverse_faces(mesh: Any, which: np.ndarray) -> tk.Shape:
    faces = np.array(mesh.faces)
    faces[which] = faces[which, ::-1]
    return tk.Mesh(np.array(mesh.vertices), faces)


@given(
    st.sampled_from(sorted(_MESHES)),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.1, 0.3, 0.45, 1.0]),
)
def test_turned_triangles_are_turned_back(name: str, seed: int, share: float) -> None:
    """Closed parts are always corrected, other parts if fewer than half of a part is inverted."""
    mesh = _MESHES[name]
    which = np.random.default_rng(seed).random(len(mesh.faces)) < share
    if share < 1.0 and name in ("open box", "shell"):
        parts = trimesh.graph.connected_component_labels(
            mesh.face_adjacency, node_count=len(mesh.faces)
        )
        if any(np.mean(which[parts == part]) >= 0.5 for part in set(parts.tolist())):
            return
    if share == 1.0 and name == "shell":
        return  # an inner part with outward faces may be a separate solid
    shape = _reverse_faces(mesh, which)
    np.testing.assert_array_equal(shape.outward_faces, mesh.faces)
    assert shape.faces[which].tolist() == mesh.faces[which, ::-1].tolist()
    if mesh.is_watertight:
        assert shape.volume == pytest.approx(mesh.volume, rel=1e-9)
        center, matrix = solid_inertia(shape, mesh.volume)
        np.testing.assert_allclose(center, mesh.center_mass, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(matrix, mesh.moment_inertia, rtol=1e-6, atol=1e-12)
    reference = tk.Mesh(np.array(mesh.vertices), np.array(mesh.faces))
    np.testing.assert_array_equal(outward_triangles(shape), outward_triangles(reference))
    actual, expected = (volume_and_centre(tk.AttachedShape(first)) for first in (shape, reference))
    assert actual[0] == expected[0]
    np.testing.assert_array_equal(actual[1], expected[1])


@pytest.mark.parametrize("name", ["box", "cylinder", "open box", "torus"])
def test_grasps_are_the_same(name: str) -> None:
    """Antipodal pairs and places for suction cups."""
    mesh = _MESHES[name]
    reference = tk.Mesh(np.array(mesh.vertices), np.array(mesh.faces))
    third, all_of_them = np.arange(len(mesh.faces)) % 3 == 0, np.ones(len(mesh.faces), dtype=bool)
    for which in (third, all_of_them):
        shape = _reverse_faces(mesh, which)
        pairs = [
            antipodal_pairs(
                first, centre=np.zeros(3), widths=(1e-4, 0.08), rng=np.random.default_rng(0)
            )
            for first in (reference, shape)
        ]
        assert len(pairs[0]) == len(pairs[1]) > 0
        for first, other in zip(*pairs, strict=True):
            np.testing.assert_array_equal(first.middle, other.middle)
        places = [
            suction_points(first, centre=np.zeros(3), rim=0.005) for first in (reference, shape)
        ]
        assert len(places[0]) == len(places[1])


@pytest.mark.parametrize("suffix", ["obj", "stl", "ply", "glb"])
def test_files_have_faces_that_look_outwards(suffix: str, tmp_path: Path) -> None:
    """The arrays of the file stay, in every format."""
    mesh = _MESHES["torus"]
    faces = np.array(mesh.faces)
    faces[::3] = faces[::3, ::-1]
    trimesh.Trimesh(mesh.vertices, faces, process=False).export(tmp_path / f"m.{suffix}")
    shape = MeshLoader().load(MeshSpec(tmp_path / f"m.{suffix}"))
    assert not trimesh.Trimesh(shape.vertices, shape.faces, process=False).is_winding_consistent
    assert trimesh.Trimesh(shape.vertices, shape.outward_faces, process=False).is_winding_consistent
    assert shape.volume == pytest.approx(mesh.volume, rel=1e-5)
    drawn = triangles_of(shape)[1]
    np.testing.assert_array_equal(drawn, shape.outward_faces)


def test_contacts_do_not_depend_on_the_direction() -> None:
    """At the level of triangles."""
    mesh = _MESHES["box"]
    worlds = []
    for which in (np.zeros(12, dtype=bool), np.arange(12) % 2 == 0, np.ones(12, dtype=bool)):
        solid = tk.AttachedShape(_reverse_faces(mesh, which), level="exact")
        scene = tk.SceneGraph().add_frame("a", "world", shapes=[solid])
        ball = [tk.AttachedShape(tk.Sphere(0.01))]
        scene = scene.add_frame("b", "world", joint=tk.Prismatic([0, 0, 1]), shapes=ball)
        worlds.append(CollisionWorld(scene))
    for q in (0.04, 0.044, 0.05):
        actual = [world.contacts([q]) for world in worlds]
        assert [len(contacts) for contacts in actual] == [len(actual[0])] * 3
        for contacts in actual[1:]:
            for first, other in zip(actual[0], contacts, strict=True):
                np.testing.assert_allclose(first.normal, other.normal, atol=1e-9)
        assert len({round(world.distance([q]), 12) for world in worlds}) == 1


def test_a_strip_with_one_side_stays_as_it_is() -> None:
    """A Moebius strip has no outside."""
    turns = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    half = np.column_stack(
        [np.cos(turns) * np.cos(turns / 2), np.sin(turns) * np.cos(turns / 2), np.sin(turns / 2)]
    )
    rim = np.column_stack([np.cos(turns), np.sin(turns), np.zeros(12)])
    vertices = np.concatenate([rim - 0.2 * half, rim + 0.2 * half])
    faces = []
    for k in range(12):
        a, b = k, k + 12
        c, d = (k + 1, k + 13) if k < 11 else (12, 0)
        faces += [[a, c, b], [b, c, d]]
    shape = tk.Mesh(vertices, faces)
    np.testing.assert_array_equal(shape.outward_faces, faces)


def test_many_shells_in_each_other_end() -> None:
    """A hostile mesh: thousands of nested shells, all inside out."""
    ball = trimesh.creation.icosphere(subdivisions=0)
    scales = np.linspace(1, 2, 3000)
    vertices = (scales[:, None, None] * ball.vertices[None]).reshape(-1, 3)
    faces = (
        np.arange(3000)[:, None, None] * len(ball.vertices) + ball.faces[None, :, ::-1]
    ).reshape(-1, 3)
    assert tk.Mesh(vertices, faces).outward_faces.shape == faces.shape
