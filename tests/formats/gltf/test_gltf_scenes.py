"""Round trips of scenes through glTF, files of trimesh, edited nodes and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.scene_edits import scenes

import tmkit as tk
from tmkit._support.limits import ReadingLimits
from tmkit.errors import FileFormatError, TmkitError
from tmkit.formats import ReadingOptions, convert_scene, load_scene
from tmkit.graph import AttachedShape, Box, Mesh, Revolute, SceneGraph
from tmkit.spatial import Pose

UP = Pose.from_rpy([0, 0, 0], [np.pi / 2, 0, 0])


@given(scenes(), st.sampled_from(["gltf", "glb"]))
@settings(max_examples=scaled_examples(0.3))
def test_every_scene_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, scene: SceneGraph, suffix: str
) -> None:
    """A scene reads back equal."""
    path = tmp_path_factory.mktemp("gltf") / f"scene.{suffix}"
    convert_scene(scene, path)
    back = load_scene(path)
    assert back == scene
    assert back.frame_names == scene.frame_names


def test_other_programs_read_the_scene(tmp_path: Path) -> None:
    """Other programs read the y axis up, and shapes with their poses and colours."""
    box = AttachedShape(Box([0.2, 0.4, 0.6]), Pose([0, 0, 1]), color=(1, 0, 0, 1))
    scene = SceneGraph().add_frame("a", "world", pose=Pose([1, 2, 3]), shapes=[box])
    convert_scene(scene, tmp_path / "x.glb")
    loaded: Any = trimesh.load_scene(tmp_path / "x.glb")
    assert loaded.bounds == pytest.approx(np.array([[0.9, 3.7, -2.2], [1.1, 4.3, -1.8]]), abs=1e-6)
    (mesh,) = loaded.geometry.values()
    assert mesh.visual.material.main_color.tolist() == [255, 0, 0, 255]


def test_scenes_of_trimesh(tmp_path: Path) -> None:
    """Nodes become frames with their poses; used names get a number."""
    trimesh_scene: Any = trimesh.Scene()
    first = trimesh.transformations.compose_matrix(angles=[0.1, 0.2, 0.3], translate=[1, 2, 3])
    second = trimesh.transformations.compose_matrix(angles=[0.3, -0.2, 0.1], translate=[0, 0.5, 0])
    trimesh_scene.add_geometry(trimesh.creation.box([1, 2, 3]), node_name="table", transform=first)
    trimesh_scene.add_geometry(
        trimesh.creation.icosphere(), node_name="cup", parent_node_name="table", transform=second
    )
    trimesh_scene.export(tmp_path / "x.glb")
    scene = load_scene(tmp_path / "x.glb")
    assert {"table", "cup"} <= {*scene.frame_names}
    for name, matrix in (("table", first), ("cup", first @ second)):
        np.testing.assert_allclose(scene.pose(name).as_matrix(), UP.as_matrix() @ matrix, atol=1e-9)
    (shape,) = scene.shapes("table")
    assert (shape.visual, shape.collision) == (True, True)
    assert shape.shape.volume == pytest.approx(6)


TRIANGLE = {
    "asset": {"version": "2.0"},
    "buffers": [
        {"byteLength": 36, "uri": "data:;base64,AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAIA/"}
    ],
    "bufferViews": [{"buffer": 0, "byteLength": 36}],
    "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
    "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
}  # (0, 0, 0), (1, 0, 0), (0, 1, 1)


def read(folder: Path, nodes: list[dict[str, Any]], **more: Any) -> SceneGraph:
    """Return the scene of nodes, where mesh 0 is a triangle."""
    (folder / "x.gltf").write_text(json.dumps({**TRIANGLE, "nodes": nodes, **more}))
    return load_scene(folder / "x.gltf")


@given(
    st.lists(st.floats(0.1, 2), min_size=6, max_size=6),
    st.lists(st.floats(-3, 3), min_size=12, max_size=12),
)
@settings(max_examples=scaled_examples(0.2))
def test_scales_are_applied_to_meshes(
    tmp_path_factory: pytest.TempPathFactory, scales: list[float], numbers: list[float]
) -> None:
    """Vertices are transformed by the product of the matrices of the nodes."""
    nodes, total = [], UP.as_matrix()
    for k in range(2):
        pose = Pose.from_rpy(numbers[6 * k : 6 * k + 3], numbers[6 * k + 3 : 6 * k + 6])
        scale = np.array(scales[3 * k : 3 * k + 3])
        parts = {
            "translation": pose.translation.tolist(),
            "rotation": pose.quat_xyzw.tolist(),
            "scale": scale.tolist(),
        }
        matrix = pose.as_matrix() @ np.diag([*scale, 1])
        nodes.append(
            {"name": f"n{k}", **(parts if k else {"matrix": matrix.T.reshape(-1).tolist()})}
        )
        total = total @ matrix
    nodes[0]["children"], nodes[1]["mesh"] = [1], 0
    scene = read(tmp_path_factory.mktemp("scale"), nodes)
    (part,) = scene.shapes("n1")
    corners = scene.pose("n1").apply(part.pose.apply(part.shape.vertices))
    wanted = np.array([[0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 1]]) @ total.T
    np.testing.assert_allclose(corners, wanted[:, :3], atol=1e-6)


def test_nodes_that_are_moved_keep_their_joints(tmp_path: Path) -> None:
    """A node that an editor moves keeps the other properties of its frame."""
    joint = Revolute([0, 0, 1], lower=-1, upper=1)
    scene = SceneGraph().add_frame(
        "arm", "world", pose=Pose([1, 0, 0]), joint=joint, classes=["movable"]
    )
    scene = scene.set_shapes(
        "arm", [AttachedShape(Mesh(np.eye(3), [[0, 1, 2]])), AttachedShape(Box([1, 1, 1]))]
    )
    convert_scene(scene, tmp_path / "x.gltf")
    document = json.loads((tmp_path / "x.gltf").read_text())
    (node,) = (node for node in document["nodes"] if node["name"] == "arm")
    node["translation"] = [4, 5, 6]
    document["nodes"][node["children"][1]]["scale"] = [2, 1, 1]
    (tmp_path / "x.gltf").write_text(json.dumps(document))
    back = load_scene(tmp_path / "x.gltf")
    assert back.local_pose("arm").translation.tolist() == [4, 5, 6]
    assert back.joint("arm") == scene.joint("arm")
    assert back.classes("arm") == ("movable",)
    mesh, box = back.shapes("arm")
    assert mesh.shape == scene.shapes("arm")[0].shape
    assert (box.shape.kind, (box.shape.bounds[1] - box.shape.bounds[0]).tolist()) == (
        "mesh",
        [2, 1, 1],
    )


def test_names_and_what_is_left_out(tmp_path: Path) -> None:
    """Nodes without a name, with a used name, or named like the root get new names."""
    notes: list[str] = []
    nodes = [{"children": [1, 2, 3]}, {"name": "a"}, {"name": "a", "mesh": 0}, {"name": "world"}]
    read(tmp_path, nodes, cameras=[{}, {}])
    scene = load_scene(tmp_path / "x.gltf", on_note=lambda note: notes.append(note.text))
    assert scene.frame_names == ("world", "node_0", "a", "a_2", "world_3")
    assert scene.parent("a_2") == "node_0"
    assert notes == ["2 cameras have no part in a scene, and are omitted"]


@pytest.mark.parametrize(
    ("nodes", "more", "message"),
    [
        (
            [{"children": [1]}, {"children": [0]}],
            {"scenes": [{"nodes": [0]}]},
            "has several parents",
        ),
        ([{"children": [7]}], {}, "the index 7 is invalid, of 1"),
        ([{"mesh": 3}], {}, "the index 3 is invalid, of 1"),
        (
            [{"mesh": 0}],
            {"buffers": [{"byteLength": 36, "uri": "../../secret.bin"}]},
            "outside its folder|no such file",
        ),
        (
            [{"mesh": 0}],
            {"accessors": [{"bufferView": 0, "componentType": 5126, "count": 9, "type": "VEC3"}]},
            "valid",
        ),
        ([{"name": "n", "scale": [0, 1, 1], "mesh": 0}], {}, "the node 'n' has a scale of 0"),
        ([{"translation": [1, 2]}], {}, "x.gltf"),
        (
            [{"name": "a", "extras": {"tmkit": {"joint": {"type": "bal"}}}}],
            {},
            "frames.1..joint.type: unknown word 'bal'",
        ),
        ([{"extras": {"tmkit": 3}}], {}, "is not valid glTF"),
    ],
)
def test_bad_files_are_rejected(
    tmp_path: Path, nodes: list[Any], more: dict[str, Any], message: str
) -> None:
    """Errors have the name of the file."""
    with pytest.raises(TmkitError, match=message):
        read(tmp_path, nodes, **more)


def test_too_large_scenes_are_rejected(tmp_path: Path) -> None:
    """Too many triangles or nodes are rejected."""
    read(tmp_path, [{"mesh": 0}] * 30)
    with pytest.raises(FileFormatError, match="more than 20 triangles"):
        load_scene(
            tmp_path / "x.gltf", reading=ReadingOptions(limits=ReadingLimits(mesh_triangles=20))
        )
    with pytest.raises(FileFormatError, match="more than 20 frames"):
        load_scene(tmp_path / "x.gltf", reading=ReadingOptions(limits=ReadingLimits(frames=20)))


def test_plans_of_a_scene_in_gltf(tmp_path: Path) -> None:
    """A scene that was converted to glTF and back is merged and plans as before."""
    convert_scene(load_scene("blocks1", "panda_table"), tmp_path / "scene.glb")
    result = tk.plan(
        load_scene(tmp_path / "scene.glb"),
        domain="blocks",
        goal="(holding a)",
        robot="panda",
        seed=0,
    )
    assert result.is_solved
