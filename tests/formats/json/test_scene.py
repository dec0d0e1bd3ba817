"""Scenes as JSON, there and back."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.scene_edits import scenes

from tmkit.errors import FileFormatError, OutputError
from tmkit.formats import load_scene, scene_from_dict, scene_to_dict, write_json_scene
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.spec.parts import MeshSpec
from tmkit.graph import AttachedShape, Box, Cone, Inertia, Mesh, Prismatic, Revolute, SceneGraph
from tmkit.spatial import Pose

CORNER = Mesh(
    [[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0], [0, 0, 1 / 3]],
    [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]],
)
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def there_and_back(scene: SceneGraph) -> SceneGraph:
    """Return the scene after being text."""
    return scene_from_dict(json.loads(json.dumps(scene_to_dict(scene), allow_nan=False)))


@given(scenes())
@settings(max_examples=scaled_examples(0.5))
def test_every_scene_comes_back_equal(scene: SceneGraph) -> None:
    """After any edits, writing and reading gives an equal scene and equal text."""
    back = there_and_back(scene)
    assert back == scene
    assert back.frame_names == scene.frame_names
    assert scene_to_dict(back) == scene_to_dict(scene)


@given(
    st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3),
    st.lists(st.floats(-3, 3), min_size=3, max_size=3),
)
def test_numbers_come_back_to_the_last_bit(translation: list[float], rpy: list[float]) -> None:
    """Poses survive exactly."""
    pose = Pose.from_rpy(translation, rpy)
    scene = SceneGraph().add_frame("a", "world", pose=pose)
    np.testing.assert_array_equal(there_and_back(scene).local_pose("a").as_array(), pose.as_array())


def test_infinite_limits_are_null() -> None:
    """JSON has no infinity."""
    scene = SceneGraph().add_frame("a", "world", joint=Revolute([0, 0, 1], lower=-1))
    joint = scene_to_dict(scene)["frames"][1]["joint"]
    assert (joint["lower"], joint["upper"], joint["velocity"]) == (-1, None, None)
    assert there_and_back(scene) == scene


def test_keys_are_sorted_and_versions_told() -> None:
    """The document is in sorted order throughout, so that equal scenes have equal bytes."""
    document = scene_to_dict(load_scene("panda_table", "blocks3"))
    assert json.dumps(document) == json.dumps(document, sort_keys=True)
    assert (document["format"], document["version"]) == ("tmkit-scene", 2)


def test_a_whole_robot_is_small_and_names_no_folder(tmp_path: Path) -> None:
    """Meshes of an installed package are stored by URI, without absolute paths."""
    scene = load_scene("panda_table", "blocks3")
    path = tmp_path / "scene.json"
    write_json_scene(scene, path)
    text = path.read_text()
    assert len(text) < 40_000
    assert str(Path(__file__).parents[3]) not in text
    assert "site-packages" not in text
    assert load_scene(path) == scene
    second = tmp_path / "second.json"
    write_json_scene(load_scene(path), second)
    assert second.read_text() == text


def test_meshes_without_a_home_are_embedded(tmp_path: Path) -> None:
    """A mesh outside packages is stored with its arrays, and its source without folders."""
    (tmp_path / "m.obj").write_text(OBJ)
    mesh = MeshLoader().load(MeshSpec(tmp_path / "m.obj", (0.1, 0.1, 0.1)))
    scene = SceneGraph().add_frame(
        "a", "world", shapes=[AttachedShape(mesh), AttachedShape(CORNER)]
    )
    (tmp_path / "m.obj").unlink()
    back = there_and_back(scene)
    assert back == scene
    assert back.shapes("a")[0].shape.source == "m.obj#scale=0.1,0.1,0.1"
    named = Mesh(CORNER.vertices, CORNER.faces, source=str(tmp_path / "x.obj"))
    assert str(tmp_path) not in json.dumps(
        scene_to_dict(SceneGraph().set_shapes("world", [AttachedShape(named)]))
    )


def test_a_shape_is_written_once() -> None:
    """However many frames show a mesh, its arrays are written once."""
    scene = SceneGraph()
    for name in "abc":
        scene = scene.add_frame(
            name, "world", shapes=[AttachedShape(CORNER), AttachedShape(Cone(1, 2))]
        )
    assert len(scene_to_dict(scene)["shapes"]) == 2
    assert there_and_back(scene) == scene


def package_scene(tmp_path: Path) -> tuple[SceneGraph, MeshLoader]:
    """Return a scene with a mesh of a package in a folder, and a loader that finds the package."""
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / "m.obj").write_text(OBJ)
    packages = PackageResolver((tmp_path,), ())
    mesh = MeshLoader(packages).load(MeshSpec(tmp_path / "arm" / "m.obj", (2.0, -1.0, 1.0)))
    return SceneGraph().set_shapes("world", [AttachedShape(mesh)]), MeshLoader(packages)


def test_sources_carry_their_scale(tmp_path: Path) -> None:
    """A scaled mesh of a package is stored by URI and scale, and loaded by the package's path."""
    scene, loader = package_scene(tmp_path)
    document = scene_to_dict(scene, loader=loader)
    (entry,) = document["shapes"].values()
    checksum = hashlib.sha256(OBJ.encode()).hexdigest()
    source = "package://arm/m.obj#scale=2.0,-1.0,1.0"
    assert entry == {"kind": "mesh", "sha256": {"m.obj": checksum}, "source": source}
    assert scene_from_dict(document, loader=loader) == scene
    with pytest.raises(
        FileFormatError,
        match=r"scene: shapes\..*: the mesh 'package://arm/m.obj.*' is not installed here",
    ):
        scene_from_dict(document)


def test_a_mesh_that_changed_is_noticed(tmp_path: Path) -> None:
    """Reading rejects a file with changed content; writing embeds it."""
    scene, loader = package_scene(tmp_path)
    document = scene_to_dict(scene, loader=loader)
    (tmp_path / "arm" / "m.obj").write_text(OBJ.replace("v 0 0 1", "v 0 0 2"))
    fresh = MeshLoader(loader.packages)
    with pytest.raises(
        FileFormatError,
        match=r"the mesh 'package://arm/m.obj.*' has changed since the scene was written",
    ):
        scene_from_dict(document, loader=fresh)
    embedded = scene_to_dict(scene, loader=fresh)
    assert "vertices" in next(iter(embedded["shapes"].values()))
    assert scene_from_dict(embedded) == scene


# --- what is rejected


def small() -> SceneGraph:
    """Return a scene with a bit of everything."""
    shapes = [AttachedShape(Box([1, 2, 3]), color=(1, 0, 0, 1)), AttachedShape(CORNER)]
    scene = SceneGraph().add_frame(
        "a", "world", joint=Prismatic([0, 0, 1], lower=0, upper=1), shapes=shapes
    )
    scene = scene.add_frame("b", "a", classes=["movable"]).set_inertia(
        "b", Inertia(1.0, matrix=np.eye(3))
    )
    return scene.allow_collision("a", "b")


Change = Callable[[dict[str, Any]], object]


def mesh_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of the mesh."""
    return next(entry for entry in document["shapes"].values() if entry["kind"] == "mesh")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(format="other"), "format: expected 'tmkit-scene', received 'other'"),
        (
            lambda d: d.update(version=3),
            "version: this tmkit reads versions 1 to 2 of the format, received 3",
        ),
        (lambda d: d.pop("frames"), "the document: needs the key 'frames'"),
        (lambda d: d.update(extra=1), "unknown key 'extra'"),
        (lambda d: d.update(frames={}), "frames: expected a list, received an object"),
        (lambda d: d["frames"].append(3), r"frames\[3\]: expected an object, received 3"),
        (lambda d: d["frames"][1].pop("pose"), r"frames\[1\]: needs the key 'pose'"),
        (
            lambda d: d["frames"][1].update(parnt=1),
            r"frames\[1\]: unknown key 'parnt'; did you mean 'parent'",
        ),
        (
            lambda d: d["frames"][1].update(name=""),
            r"frames\[1\].name: expected a name, received an empty text",
        ),
        (lambda d: d["frames"][1].update(name=3), r"frames\[1\].name: expected a text, received 3"),
        (lambda d: d["frames"][1].update(parent="wrold"), "unknown frame 'wrold'|'wrold'"),
        (lambda d: d["frames"][2].update(name="a"), "'a'"),
        (lambda d: d["frames"][1].update(parent="b"), "a.*b|b.*a"),
        (
            lambda d: d["frames"][1].update(pose=[0] * 6),
            r"frames\[1\].pose: expected 7 numbers, received 6",
        ),
        (lambda d: d["frames"][1].update(pose=[0] * 7), r"frames\[1\].pose: .*quat_xyzw is zero"),
        (
            lambda d: d["frames"][1]["pose"].__setitem__(0, math.nan),
            r"frames\[1\].pose\[0\]: expected a finite number",
        ),
        (
            lambda d: d["frames"][1]["pose"].__setitem__(0, True),
            r"frames\[1\].pose\[0\]: .* received true",
        ),
        (
            lambda d: d["frames"][1]["pose"].__setitem__(0, None),
            r"frames\[1\].pose\[0\]: .* received null",
        ),
        (
            lambda d: d["frames"][1]["joint"].update(type="prismatc"),
            "'prismatc'; did you mean 'prismatic'",
        ),
        (lambda d: d["frames"][1]["joint"].update(axis=[0, 0, 0]), r"frames\[1\].joint: .*axis"),
        (lambda d: d["frames"][1]["joint"].update(lower=2), r"frames\[1\].joint: .*lower"),
        (
            lambda d: d["frames"][1]["joint"].update(mimic={"joint": "x"}),
            r"joint.mimic: needs the key 'multiplier'",
        ),
        (
            lambda d: d["frames"][2]["joint"].update(axis=[0, 0, 1]),
            r"frames\[2\].joint: unknown key 'axis'",
        ),
        (lambda d: d["frames"][2]["inertia"].update(mass=-1), r"frames\[2\].inertia: .*mass"),
        (
            lambda d: d["frames"][2].update(classes=[1]),
            r"frames\[2\].classes\[0\]: expected a text",
        ),
        (lambda d: d["frames"][1]["shapes"][0].update(shape="00"), "no shape of digest '00'"),
        (
            lambda d: d["frames"][1]["shapes"][0].update(visual=1),
            "expected true or false, received 1",
        ),
        (lambda d: d["frames"][1]["shapes"][0].update(color=[2, 0, 0, 1]), r"shapes\[0\]: color"),
        (lambda d: mesh_of(d).update(kind="torus"), "unknown word 'torus'"),
        (lambda d: mesh_of(d).update(vertices="%%"), "vertices: expected base64"),
        (
            lambda d: mesh_of(d).update(vertices="AAAA"),
            "vertices: expected rows of 24 bytes, received 3 bytes",
        ),
        (
            lambda d: mesh_of(d).update(faces=base64.b64encode(b"\x09\0\0\0" * 3).decode()),
            "shapes.*: .*9|face|vert",
        ),
        (
            lambda d: mesh_of(d).update(vertices=base64.b64encode(b"\0" * 96).decode()),
            "it is damaged|has changed",
        ),
        (
            lambda d: d["allowed"].append(["a"]),
            r"allowed\[1\]: expected two frames and a reason, received 1",
        ),
        (lambda d: d["allowed"].append(["a", "x", "user"]), "unknown frame 'x'"),
        (
            lambda d: d["frames"][1].update(attribute_stamps={"x": 1}),
            r"frames\[1\]: needs the key 'attributes'",
        ),
        (
            lambda d: d["frames"][1].update(
                attributes={"colour": 1}, attribute_stamps={"color": 1}
            ),
            r"frames\[1\].attributes: needs the key 'color'",
        ),
        (
            lambda d: d["frames"][1].update(attributes={"x": 1}, attribute_stamps={"x": "now"}),
            r"frames\[1\].attribute_stamps.x: expected a finite number, received the text 'now'",
        ),
        (
            lambda d: d["frames"][1]["shapes"][0].update(stamp="x"),
            r"shapes\[0\].stamp: expected a finite number",
        ),
        (lambda d: d.update(groups={"g": {"frames": []}}), "groups.g: needs the key 'groups'"),
        (
            lambda d: d.update(groups={"g": {"frames": [], "groups": [], "parents": ["wrold"]}}),
            "groups.g: unknown frame 'wrold'; did you mean 'world'",
        ),
        (
            lambda d: d.update(groups={"g": {"frames": [], "groups": [], "attributes": {"": 1}}}),
            "groups.g: an attribute's key is text that is not empty",
        ),
        (
            lambda d: d.update(
                groups={
                    "g": {
                        "frames": [],
                        "groups": [],
                        "attributes": {},
                        "attribute_stamps": {"a": 1},
                    }
                }
            ),
            "groups.g.attributes: needs the key 'a'",
        ),
    ],
)
def test_wrong_documents_are_rejected(change: Change, reason: str) -> None:
    """Invalid documents are rejected, with the key path in the message."""
    document = json.loads(json.dumps(scene_to_dict(small())))
    assert scene_from_dict(document) == small()
    change(document)
    with pytest.raises(FileFormatError, match=rf"^here: .*({reason})"):
        scene_from_dict(document, source="here")


@pytest.mark.parametrize("document", [None, [], "text", 3])
def test_a_document_must_be_an_object(document: Any) -> None:
    """Other JSON values are no scene."""
    with pytest.raises(FileFormatError, match="the document: expected an object"):
        scene_from_dict(document)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", r"x.json:1:2: is not JSON: "),
        (b"\xff\xfe\xff", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "the document: expected an object"),
        (b"", "x.json:1:1: is not JSON"),
    ],
)
def test_files_that_are_no_json(data: bytes, reason: str, tmp_path: Path) -> None:
    """A file that is not JSON is rejected with its location."""
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(FileFormatError, match=reason):
        load_scene(tmp_path / "x.json")


def test_included_files_are_completed(tmp_path: Path) -> None:
    """Includes get a pose, classes, mass, friction and level; errors have their line."""
    link = (
        '<link name="cup"><collision><geometry><box size="0.1 0.1'
        ' 0.2"/></geometry></collision></link>'
    )
    (tmp_path / "cup.urdf").write_text(f'<robot name="cup">{link}</robot>')
    (tmp_path / "corner.obj").write_text(OBJ)
    changes = {
        "parent": "shelf",
        "pose": [0, 0, 1, 0, 0, 0, 1],
        "classes": ["movable"],
        "mass": 0.3,
        "friction": 0.4,
    }
    document = scene_to_dict(SceneGraph().add_frame("shelf", "world"))
    cup: dict[str, Any] = {"cup": changes | {"level": "box"}}
    document["include"] = [
        {"file": "cup.urdf", "frames": cup},
        {"file": "corner.obj", "frames": {}},
    ]
    file = tmp_path / "scene.json"
    file.write_text(json.dumps(document, indent=1))
    for scene in (load_scene(file), load_scene("panda_table", file)):
        assert (scene.parent("cup"), scene.classes("cup"), scene.parent("corner")) == (
            "shelf",
            ("movable",),
            "world",
        )
        (solid,) = scene.shapes("cup")
        assert (solid.friction, solid.level) == (0.4, "box")
        inertia = scene.inertia("cup")
        assert inertia is not None
        assert inertia.matrix[2, 2] == pytest.approx(0.3 * (0.1**2 + 0.1**2) / 12.0)
    for wrong, reason in (
        ({"mug": {}}, r"include\[0\].frames: unknown key 'mug'"),
        (
            {"cup": {"mass": "much"}},
            r"scene.json:\d+:\d+: include\[0\].frames.cup.mass: expected a finite number",
        ),
    ):
        document["include"][0]["frames"] = wrong
        file.write_text(json.dumps(document, indent=1))
        with pytest.raises(FileFormatError, match=reason):
            load_scene(file)
    document["include"] = [{"file": "scene.json", "frames": {}}]
    file.write_text(json.dumps(document, indent=1))
    with pytest.raises(FileFormatError, match="only URDF, SDF and meshes are included"):
        load_scene(file)


def test_unwritable_file_is_an_output_error(tmp_path: Path) -> None:
    """A file that cannot be written is reported by name."""
    with pytest.raises(OutputError, match=r"cannot write '.*x.json'"):
        write_json_scene(SceneGraph(), tmp_path / "missing" / "x.json")
