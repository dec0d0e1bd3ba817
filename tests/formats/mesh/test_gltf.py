"""glTF meshes: triangles are read, other references are ignored."""

from __future__ import annotations

import base64
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from tmkit._support.limits import ReadingLimits
from tmkit.errors import MeshError
from tmkit.formats.mesh.meshes import read_mesh

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], dtype="<f4")
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], dtype="<u2")
DATA = CORNERS.tobytes() + FACES.tobytes()


def document(**changes: Any) -> dict[str, Any]:
    """Return a glTF document of one tetrahedron, with keys replaced."""
    whole: dict[str, Any] = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteLength": CORNERS.nbytes},
            {"buffer": 0, "byteOffset": CORNERS.nbytes, "byteLength": FACES.nbytes},
        ],
        "buffers": [{"byteLength": len(DATA)}],
    }
    return {**whole, **changes}


def glb(path: Path, content: dict[str, Any], data: bytes = DATA) -> Path:
    """Write a binary file."""
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    chunks = (
        struct.pack("<I4s", len(text), b"JSON")
        + text
        + struct.pack("<I4s", len(data), b"BIN\0")
        + data
    )
    path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)
    return path


def test_a_tetrahedron_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Vertices and faces come back, from a binary file and from JSON with a buffer in it."""
    uri = f"data:application/octet-stream;base64,{base64.b64encode(DATA).decode()}"
    (tmp_path / "a.gltf").write_text(
        json.dumps(document(buffers=[{"byteLength": len(DATA), "uri": uri}]))
    )
    for path in (glb(tmp_path / "a.glb", document()), tmp_path / "a.gltf"):
        mesh = read_mesh(path)
        np.testing.assert_array_equal(mesh.vertices[mesh.faces], CORNERS[FACES])


def test_what_trimesh_writes_is_read_as_trimesh_reads_it(tmp_path: Path) -> None:
    """Meshes under rotated, scaled and mirrored nodes lie where trimesh places them."""
    scene = trimesh.Scene()
    turn = trimesh.transformations.euler_matrix(0.3, -0.7, 1.1)
    turn[:3, 3] = (1.0, 2.0, 3.0)
    mirrored = turn @ np.diag([-1.0, 2.0, 0.5, 1.0])
    ball = trimesh.creation.icosphere(subdivisions=1)
    scene.add_geometry(trimesh.creation.box((1.0, 2.0, 3.0)), node_name="box", transform=turn)
    scene.add_geometry(ball, node_name="ball", parent_node_name="box", transform=mirrored)
    (tmp_path / "a.glb").write_bytes(scene.export(file_type="glb"))
    mesh, expected = read_mesh(tmp_path / "a.glb"), trimesh.load_scene(tmp_path / "a.glb").to_mesh()
    assert len(mesh.faces) == len(expected.faces)
    np.testing.assert_allclose(
        [mesh.vertices.min(0), mesh.vertices.max(0)], expected.bounds, atol=1e-6
    )
    assert trimesh.Trimesh(mesh.vertices, mesh.faces).volume == pytest.approx(
        abs(expected.volume), rel=1e-5
    )


def test_strips_fans_and_lines(tmp_path: Path) -> None:
    """A strip alternates its sense, a fan shares its first corner, lines have no triangles."""
    square = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], dtype="<f4")
    round_about = square[[0, 1, 3, 2]]
    for mode, points in ((5, square), (6, round_about)):
        primitives = [
            {"attributes": {"POSITION": 0}, "mode": mode},
            {"attributes": {"POSITION": 0}, "mode": 1},
        ]
        content = document(
            meshes=[{"primitives": primitives}],
            accessors=document()["accessors"][:1],
            bufferViews=[{"buffer": 0, "byteLength": points.nbytes}],
        )
        mesh = read_mesh(glb(tmp_path / "a.glb", content, points.tobytes()))
        normals = np.cross(
            *(mesh.vertices[mesh.faces[:, k]] - mesh.vertices[mesh.faces[:, 0]] for k in (1, 2))
        )
        np.testing.assert_array_equal(normals, [[0, 0, 1], [0, 0, 1]])


def test_a_buffer_beside_the_file_is_read_and_no_other(tmp_path: Path) -> None:
    """A buffer lies in the file's folder or below; not above, behind a link or on the net."""
    folder = tmp_path / "robot"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "a b.bin").write_bytes(DATA)
    (tmp_path / "secret.bin").write_bytes(DATA)
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    os.mkfifo(folder / "pipe.bin")
    path = folder / "a.gltf"
    path.write_text(json.dumps(document(buffers=[{"uri": "data/a%20b.bin"}])))
    assert len(read_mesh(path).faces) == 4
    outside = (
        "../secret.bin",
        f"{tmp_path}/secret.bin",
        "link.bin",
        "%2e%2e/secret.bin",
        "http://127.0.0.1:9/a.bin",
    )
    for uri in (*outside, "file:///etc/passwd"):
        path.write_text(json.dumps(document(buffers=[{"uri": uri}])))
        with pytest.raises(
            MeshError, match=r"a.gltf: the mesh names the buffer .* outside its folder"
        ):
            read_mesh(path)
    for uri, reason in (("none.bin", "No such file"), ("pipe.bin", "pipe"), ("data", "directory")):
        path.write_text(json.dumps(document(buffers=[{"uri": uri}])))
        with pytest.raises(MeshError, match=f"{uri}: cannot be read: .*{reason}"):
            read_mesh(path)


def test_pictures_are_never_opened(tmp_path: Path) -> None:
    """Textures may name anything: they are not looked at."""
    looks = {
        "images": [{"uri": "/etc/passwd"}, {"uri": "http://127.0.0.1:9/a.png"}],
        "textures": [{"source": 0}],
    }
    content = document(
        **looks, materials=[{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}]
    )
    assert len(read_mesh(glb(tmp_path / "a.glb", content)).faces) == 4


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"nodes": [{"mesh": 0, "children": [0]}]}, "node 0 has several parents"),
        ({"nodes": [{"children": [1, 1]}, {"mesh": 0}]}, "node 1 has several parents"),
        ({"nodes": [{"mesh": 7}]}, "the index 7 is invalid, of 1"),
        ({"nodes": [{"mesh": -1}]}, "the index -1 is invalid, of 1"),
        ({"scenes": [{"nodes": ["x"]}]}, "the index 'x' is invalid"),
        ({"meshes": [{"primitives": [{"attributes": {}}]}]}, "KeyError: 'POSITION'"),
        (
            {"bufferViews": [{"buffer": 0, "byteLength": 8}] * 2},
            "ValueError: strides is incompatible",
        ),
        (
            {"accessors": [{"componentType": 5126, "count": 10**12, "type": "VEC3"}] * 2},
            "333333333333 triangles",
        ),
        (
            {"accessors": [{"componentType": 5126, "count": 6, "type": "VEC3"}] * 2},
            "KeyError: 'bufferView'",
        ),
        (
            {"accessors": [{"componentType": 5126, "count": -6, "type": "VEC3"}] * 2},
            "not a natural number",
        ),
        ({"nodes": [{"mesh": 0, "rotation": [1]}]}, "ValueError"),
    ],
)
def test_broken_documents_are_rejected(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    """Cycles, invalid indices and arrays beyond their buffers are errors that name the file."""
    with pytest.raises(MeshError, match=f"a.glb: .*{reason}"):
        read_mesh(glb(tmp_path / "a.glb", document(**changes)))


def test_instances_count_against_the_limit(tmp_path: Path) -> None:
    """A mesh that a thousand nodes use has a thousand times its triangles."""
    nodes = [{"mesh": 0}] * 1000
    path = glb(tmp_path / "a.glb", document(nodes=nodes, scenes=[{"nodes": list(range(1000))}]))
    assert len(read_mesh(path, limits=ReadingLimits(mesh_triangles=4000)).faces) == 4000
    with pytest.raises(MeshError, match="the mesh has 4000 triangles, expected at most 3999"):
        read_mesh(path, limits=ReadingLimits(mesh_triangles=3999))


def test_compressed_and_cut_files_are_rejected(tmp_path: Path) -> None:
    """Draco compression, incomplete files, other versions and missing JSON are rejected."""
    extension = {"extensions": {"KHR_draco_mesh_compression": {}}}
    primitive = {**document()["meshes"][0]["primitives"][0], **extension}
    path = glb(tmp_path / "a.glb", document(meshes=[{"primitives": [primitive]}]))
    with pytest.raises(
        MeshError, match="compressed by KHR_draco_mesh_compression, which is not supported"
    ):
        read_mesh(path)
    whole = glb(path, document()).read_bytes()
    cut = (
        (whole[:-5], "ends before its last chunk"),
        (whole[:7], "no valid glTF"),
        (whole[:12], "JSONDecodeError"),
    )
    for data, reason in (*cut, (whole[:4] + b"\1" + whole[5:], "version 1, expected 2")):
        path.write_bytes(data)
        with pytest.raises(MeshError, match=reason):
            read_mesh(path)
