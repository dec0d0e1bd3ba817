"""Meshes in saved scenes: checksums of their files, or arrays."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from hypothesis import HealthCheck, given, settings, strategies as st

from tmkit._support.limits import ReadingLimits
from tmkit.errors import FileFormatError
from tmkit.formats import load_scene, scene_from_dict, scene_to_dict
from tmkit.formats.conversion import convert_scene
from tmkit.formats.mesh import meshes
from tmkit.formats.mesh.meshes import MESH_SUFFIXES, MeshArrays, MeshLoader, MeshSpec
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.graph import AttachedShape, Mesh, SceneGraph, Shape

VERTICES = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
FACES = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
OBJ = "".join(f"v {x} {y} {z}\n" for x, y, z in VERTICES) + "".join(
    f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in FACES
)
COLORED = "mtllib m.mtl\n" + OBJ.replace("f 1 3 2", "usemtl red\nf 1 3 2").replace(
    "f 2 3 4", "usemtl blue\nf 2 3 4"
)
MTL = "newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n"


def by_trimesh(suffix: str) -> dict[str, bytes]:
    """Return a mesh file in a format."""
    made = trimesh.Trimesh(VERTICES, FACES, process=False).export(
        file_type=suffix.removeprefix(".")
    )
    return {f"m{suffix}": made.encode() if isinstance(made, str) else made}


def gltf() -> dict[str, bytes]:
    """Return a mesh whose vertices are in a file in a folder beside it."""
    points = np.array([VERTICES[corner] for face in FACES for corner in face], dtype="<f4")
    document = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 12, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": 144}],
        "buffers": [{"uri": "data/m.bin", "byteLength": 144}],
    }
    return {"m.gltf": json.dumps(document).encode(), "data/m.bin": points.tobytes()}


FILES: dict[str, tuple[dict[str, bytes], MeshSpec]] = {
    **{
        suffix: (by_trimesh(suffix), MeshSpec(Path(f"m{suffix}")))
        for suffix in MESH_SUFFIXES
        if suffix != ".gltf"
    },
    ".gltf with a buffer": (gltf(), MeshSpec(Path("m.gltf"))),
    "a part by its colour": (
        {"m.obj": COLORED.encode(), "m.mtl": MTL.encode()},
        MeshSpec(Path("m.obj"), part=1),
    ),
    "mirrored": ({"m.obj": OBJ.encode()}, MeshSpec(Path("m.obj"), (2.0, -1.0, 0.1))),
}
"""The files of a mesh, and the mesh that is loaded of them."""


def package_scene(tmp_path: Path, kind: str) -> tuple[SceneGraph, MeshLoader, Path]:
    """Return a scene with a mesh of a package, an unused loader, and the package's folder."""
    files, mesh = FILES[kind]
    folder = tmp_path / "pack"
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    loader = MeshLoader(PackageResolver(package_folders={"pack": folder}))
    shape = loader.load(replace(mesh, path=folder / mesh.path))
    return scene_of(shape), MeshLoader(loader.packages), folder


def scene_of(*shapes: Shape) -> SceneGraph:
    """Return a scene with some shapes."""
    return SceneGraph().set_shapes("world", [AttachedShape(shape) for shape in shapes])


def save_scene(scene: SceneGraph, loader: MeshLoader) -> Any:
    """Return a document as it is read from a file."""
    return json.loads(json.dumps(scene_to_dict(scene, loader=loader)))


def entries(document: Any) -> list[dict[str, Any]]:
    """Return the entries of shapes."""
    return [*document["shapes"].values()]


def unread(*_: object, **__: object) -> MeshArrays:
    """Fail, since a mesh is read."""
    pytest.fail("a mesh was read")


@pytest.mark.parametrize("kind", FILES)
def test_a_mesh_is_saved_by_its_files_without_reading_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksums equal those of hashlib; pickled or loaded scenes are saved to equal bytes."""
    scene, loader, _ = package_scene(tmp_path, kind)
    with monkeypatch.context() as patched:
        patched.setattr(meshes, "read_mesh", unread)
        document = save_scene(scene, loader)
        assert (
            save_scene(pickle.loads(pickle.dumps(scene)), MeshLoader(loader.packages)) == document
        )
    (entry,) = entries(document)
    assert entry["sha256"] == {
        name: hashlib.sha256(data).hexdigest() for name, data in FILES[kind][0].items()
    }
    assert set(entry) == {"kind", "sha256", "source"}
    assert str(tmp_path) not in json.dumps(document)
    again = scene_from_dict(document, loader=MeshLoader(loader.packages))
    assert again == scene
    assert save_scene(again, loader) == document


@pytest.mark.parametrize(
    ("kind", "file"), [(kind, file) for kind in FILES for file in FILES[kind][0]]
)
def test_an_edited_file_is_named_with_both_checksums(kind: str, file: str, tmp_path: Path) -> None:
    """An edited file is rejected even if it is valid; saving again stores the arrays."""
    scene, loader, folder = package_scene(tmp_path, kind)
    document = save_scene(scene, loader)
    whole = (folder / file).read_bytes()
    for data in (whole + b"\n", whole[:-1]):
        (folder / file).write_bytes(data)
        received, expected = (hashlib.sha256(part).hexdigest() for part in (data, whole))
        reason = f"{re.escape(str(folder / file))} has the SHA-256 {received}, expected {expected}"
        with pytest.raises(FileFormatError, match=reason):
            scene_from_dict(document, loader=MeshLoader(loader.packages))
        now = save_scene(scene, MeshLoader(loader.packages))
        assert "vertices" in entries(now)[0]
        assert scene_from_dict(now) == scene
    (folder / file).write_bytes(whole)
    assert scene_from_dict(document, loader=MeshLoader(loader.packages)) == scene
    (folder / file).unlink()
    with pytest.raises(FileFormatError, match=r"is not installed here|No such file"):
        scene_from_dict(document, loader=MeshLoader(loader.packages))


@pytest.mark.parametrize("kind", FILES)
def test_another_reader_of_meshes_reads_what_was_saved(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next version may order vertices otherwise."""
    scene, loader, _ = package_scene(tmp_path, kind)
    document, merged = save_scene(scene, loader), meshes._merge_vertices

    def reverse_vertices(arrays: MeshArrays) -> MeshArrays:
        made = merged(arrays)
        faces = (len(made.vertices) - 1 - made.faces).astype(np.int32)
        return MeshArrays(made.vertices[::-1].copy(), faces, made.colors)

    monkeypatch.setattr(meshes, "_merge_vertices", reverse_vertices)
    again = scene_from_dict(document, loader=MeshLoader(loader.packages))
    shape, before = again.shapes("world")[0].shape, scene.shapes("world")[0].shape
    assert shape.digest != before.digest
    assert sorted(shape.vertices.tolist()) == sorted(before.vertices.tolist())
    assert save_scene(again, MeshLoader(loader.packages)) == document


def test_colours_count_for_parts_only(tmp_path: Path) -> None:
    """An edited material changes the checksums of parts, not of the whole mesh."""
    _, loader, folder = package_scene(tmp_path, "a part by its colour")
    scene = scene_of(loader.load(MeshSpec(folder / "m.obj")))
    document = save_scene(scene, MeshLoader(loader.packages))
    assert [*entries(document)[0]["sha256"]] == ["m.obj"]
    (folder / "m.mtl").write_text(MTL.replace("1 0 0", "0 1 0"))
    assert scene_from_dict(document, loader=MeshLoader(loader.packages)) == scene


def test_equal_meshes_keep_each_its_file(tmp_path: Path) -> None:
    """The next version may read them to different arrays."""
    scene, loader, folder = package_scene(tmp_path, ".obj")
    (folder / "copy.obj").write_bytes((folder / "m.obj").read_bytes() + b"\n")
    one, other = scene.shapes("world")[0].shape, loader.load(MeshSpec(folder / "copy.obj"))
    assert one == other
    document = save_scene(scene_of(one, other, one), MeshLoader(loader.packages))
    assert sorted(name for entry in entries(document) for name in entry["sha256"]) == [
        "copy.obj",
        "m.obj",
    ]
    again = scene_from_dict(document, loader=MeshLoader(loader.packages))
    sources = [part.shape.source for part in again.shapes("world")]
    assert sources == [f"package://pack/{name}.obj" for name in ("m", "copy", "m")]


def load_centred_mesh(folder: Path, packages: PackageResolver) -> Shape:
    """Return a mesh that is moved to its middle."""
    return MeshLoader(packages).load(MeshSpec(folder / "m.obj", is_centred=True))


def submesh(folder: Path, packages: PackageResolver) -> Shape:
    """Return a named part of a mesh file."""
    (folder / "m.glb").write_bytes(by_trimesh(".glb")["m.glb"])
    return MeshLoader(packages).load(MeshSpec(folder / "m.glb", submesh="geometry_0"))


def beyond_the_limits(folder: Path, packages: PackageResolver) -> Shape:
    """Return a mesh of a loader that reads more than a plan's reader would."""
    limits = replace(ReadingLimits(), mesh_triangles=2 * ReadingLimits().mesh_triangles)
    return MeshLoader(replace(packages, limits=limits)).load(
        MeshSpec(folder / "m.obj", (2.0, 1.0, 1.0))
    )


def elsewhere(folder: Path, packages: PackageResolver) -> Shape:
    """Return a mesh of a package that other loaders do not find."""
    (folder.parent / "far").mkdir()
    (folder.parent / "far" / "m.obj").write_text(OBJ)
    return MeshLoader(replace(packages, package_folders={"far": folder.parent / "far"})).load(
        MeshSpec(folder.parent / "far" / "m.obj")
    )


def load_labelled_mesh(folder: Path, packages: PackageResolver) -> Shape:
    """Return arrays that bear the name of a file of other content."""
    return Mesh([[0, 0, 0], [5, 0, 0], [0, 5, 0]], FACES[:1], source="package://pack/m.obj")


def load_mislabelled_mesh(folder: Path, packages: PackageResolver) -> Shape:
    """Return arrays with labels that are none."""
    return Mesh(
        [[0, 0, 0], [6, 0, 0], [0, 6, 0]],
        FACES[:1],
        source="package://pack/m.obj",
        checksums="x\n\n  y",
    )


UNNAMED = [
    load_centred_mesh,
    submesh,
    beyond_the_limits,
    elsewhere,
    load_labelled_mesh,
    load_mislabelled_mesh,
]


@pytest.mark.parametrize("make", UNNAMED)
def test_what_a_source_does_not_determine_is_saved_with_its_arrays(
    make: Callable[[Path, PackageResolver], Shape], tmp_path: Path
) -> None:
    """The key is the digest of the content; a scaled mesh of a trusted file keeps its checksums."""
    _, loader, folder = package_scene(tmp_path, ".obj")
    scene = scene_of(make(folder, loader.packages))
    document = save_scene(scene, loader)
    if make is beyond_the_limits:  # the usual reader reads it to the same arrays
        assert "sha256" in entries(document)[0]
        (folder / "m.obj").write_text(OBJ + "\n")
        document = save_scene(
            scene, MeshLoader(replace(loader.packages, limits=ReadingLimits(mesh_triangles=2)))
        )
    assert [*document["shapes"]] == [scene.shapes("world")[0].shape.digest]
    assert "vertices" in entries(document)[0]
    assert scene_from_dict(document) == scene


def test_arrays_that_are_those_of_a_file_are_saved_by_its_name(tmp_path: Path) -> None:
    """Meshes of a store or service have arrays and a source, but no checksums."""
    scene, loader, _ = package_scene(tmp_path, ".obj")
    shape = scene.shapes("world")[0].shape
    bare = scene_of(Mesh(shape.vertices, shape.faces, source=shape.source))
    assert save_scene(bare, MeshLoader(loader.packages)) == save_scene(
        scene, MeshLoader(loader.packages)
    )


@pytest.mark.parametrize("suffix", [".xml", ".usda", ".glb", ".gltf", ".json"])
def test_meshes_inside_a_scene_file_are_saved_with_their_arrays(
    suffix: str, tmp_path: Path
) -> None:
    """Meshes of MJCF, USD, glTF and arrays have no separate mesh file."""
    path = tmp_path / f"scene{suffix}"
    if suffix == ".xml":
        pytest.importorskip("mujoco")
        (tmp_path / "m.obj").write_text(OBJ)
        body = '<body name="b"><geom type="mesh" mesh="m"/></body>'
        path.write_text(
            '<mujoco><asset><mesh name="m"'
            f' file="m.obj"/></asset><worldbody>{body}</worldbody></mujoco>'
        )
    else:
        if suffix == ".usda":
            pytest.importorskip("pxr")
        convert_scene(
            SceneGraph().add_frame("b", "world", shapes=[AttachedShape(Mesh(VERTICES, FACES))]),
            path,
        )
    scene = load_scene(path)
    document = save_scene(scene, MeshLoader())
    digests = {part.shape.digest for name in scene.frame_names for part in scene.shapes(name)}
    assert {*document["shapes"]} == digests
    assert ["vertices" in entry for entry in entries(document)] == [True]
    path.unlink()
    assert scene_from_dict(document) == scene


def _without_name(entry: dict[str, Any]) -> None:
    entry["sha256"] = {}


def _with_another(entry: dict[str, Any]) -> None:
    entry["sha256"]["../other.obj"] = "0" * 64


def _with_number(entry: dict[str, Any]) -> None:
    entry["sha256"]["m.obj"] = 3


def _with_list(entry: dict[str, Any]) -> None:
    entry["sha256"] = ["m.obj"]


def _scale_entry(entry: dict[str, Any]) -> None:
    entry["source"] += "#scale=2.0,2.0,2.0"


def _with_vertices(entry: dict[str, Any]) -> None:
    entry["vertices"] = ""


WRONG = [
    (_without_name, r"m\.obj has the SHA-256 [0-9a-f]{64}, expected none"),
    (_with_another, r"other\.obj has the SHA-256 none, expected 0{64}"),
    (_with_number, r"sha256\.m\.obj: expected a text, received 3"),
    (_with_list, r"sha256: expected an object, received a list"),
    (_scale_entry, "changed by hand: the entry has the digest [0-9a-f]{32}, expected [0-9a-f]{32}"),
    (_with_vertices, "unknown key 'sha256'"),
]


@pytest.mark.parametrize(("change", "reason"), WRONG)
def test_an_entry_that_is_wrong_is_rejected(
    change: Callable[[dict[str, Any]], None], reason: str, tmp_path: Path
) -> None:
    """Each with its place in the document."""
    scene, loader, _ = package_scene(tmp_path, ".obj")
    document = save_scene(scene, loader)
    change(entries(document)[0])
    with pytest.raises(FileFormatError, match=rf"^scene: shapes\.[0-9a-f]{{32}}.*{reason}"):
        scene_from_dict(document, loader=MeshLoader(loader.packages))


def test_a_scene_of_the_first_version_is_checked_by_content(tmp_path: Path) -> None:
    """It has no checksums: the digest is that of the arrays."""
    scene, loader, folder = package_scene(tmp_path, ".obj")
    digest = scene.shapes("world")[0].shape.digest
    document = save_scene(scene, loader)
    entry = {"kind": "mesh", "source": entries(document)[0]["source"]}
    document |= {"version": 1, "shapes": {digest: entry}}
    document["frames"][0]["shapes"][0]["shape"] = digest
    assert scene_from_dict(document, loader=MeshLoader(loader.packages)) == scene
    (folder / "m.obj").write_text(OBJ.replace("v 1 0 0", "v 2 0 0"))
    with pytest.raises(
        FileFormatError, match=rf"has changed since the scene was written: .*expected {digest}"
    ):
        scene_from_dict(document, loader=MeshLoader(loader.packages))


@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1).map(
            lambda name: f"{name}.x"
        ),
        st.binary(max_size=3).map(lambda data: hashlib.sha256(data).hexdigest()),
        min_size=1,
    )
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_checksums_come_back_from_their_text(files: dict[str, str]) -> None:
    """The text of checksums supports all file names."""
    assert meshes.checksums_of_text(meshes.text_of_checksums(files)) == files
    assert meshes.text_of_checksums({**files, "a\nb": "0"}) == ""
