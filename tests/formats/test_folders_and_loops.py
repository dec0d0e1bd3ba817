"""Folders in the place of files, and frames or links that are above themselves, in every format."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tmkit.errors import FileFormatError, nearest_name
from tmkit.formats import load_scene
from tmkit.formats.json.scene import scene_to_dict
from tmkit.graph import SceneGraph

NAMING = {
    "robray mesh": ("x.robray", 'frame a {{ geometry {{ mesh "{uri}"; }} }}'),
    "robray include": ("x.robray", 'include "{uri}"'),
    "rsg import": (
        "x.rsg",
        'import "{uri}" as p at w\nroot w\nGroup w {{ child b }}\nNode b {{ }}\n',
    ),
    "sdf include": (
        "x.sdf",
        '<sdf version="1.9"><model name="m"><include><uri>{uri}</uri></include></model></sdf>',
    ),
    "mjcf include": ("x.xml", '<mujoco><include file="{uri}"/></mujoco>'),
}


@pytest.mark.parametrize("kind", NAMING)
@pytest.mark.parametrize("thing", ["folder", "pipe"])
def test_what_is_named_is_no_file(tmp_path: Path, kind: str, thing: str) -> None:
    """The message describes the kind of file, without a suggestion."""
    pytest.importorskip("mujoco" if "mjcf" in kind else "numpy")
    file, text = NAMING[kind]
    uri = f"dir.{'stl' if 'mesh' in kind else 'sdf' if 'sdf' in kind else 'robray'}"
    if thing == "folder":
        (tmp_path / uri).mkdir()
    else:
        os.mkfifo(tmp_path / uri)
    (tmp_path / file).write_text(text.format(uri=uri), encoding="ascii")
    with pytest.raises(FileFormatError, match=rf"'{uri}' is a {thing}, expected a file") as caught:
        load_scene(tmp_path / file)
    assert "did you mean" not in str(caught.value)


@given(st.text("abAB", max_size=4), st.lists(st.text("abAB", max_size=4), max_size=6))
def test_the_received_name_is_never_suggested(name: str, candidates: list[str]) -> None:
    """The suggestion is another candidate."""
    nearest = nearest_name(name, [*candidates, name])
    assert nearest != name
    assert nearest is None or nearest in candidates


def joint(name: str, parent: str, child: str) -> str:
    """Return a fixed URDF joint on a separate line."""
    return (
        f'<joint name="{name}" type="fixed"><parent link="{parent}"/><child'
        f' link="{child}"/></joint>\n'
    )


def urdf(*joints: str) -> str:
    """Return a robot with the links a to e on the first line."""
    links = "".join(f'<link name="{name}"/>' for name in "abcde")
    return f'<robot name="r">{links}\n{"".join(joints)}</robot>'


def sdf_joint(parent: str, child: str) -> str:
    """Return a model with a joint on the second line."""
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    links = '<link name="a"/><link name="b"/>'
    return (
        f'<sdf version="1.9"><model name="m">{links}\n<joint name="j"'
        f' type="fixed">{ends}</joint></model></sdf>'
    )


def json_scene(parents: dict[str, str]) -> str:
    """Return a scene in JSON whose frames have other parents than they may have."""
    import json

    scene = SceneGraph()
    for name in parents:
        scene = scene.add_frame(name, "world")
    document = scene_to_dict(scene)
    for frame in document["frames"]:
        frame["parent"] = parents.get(frame["name"], frame["parent"])
    return json.dumps(document)


LOOPS = {
    "urdf, one": (
        "urdf",
        urdf(joint("j", "a", "a")),
        r":2: the links form a cycle.*: a -> a; the joint 'j' has 'a' as its parent and its child",
    ),
    "urdf, one below another": (
        "urdf",
        urdf(joint("i", "b", "c"), joint("j", "a", "a")),
        r":3: the links form a cycle.*: a -> a; the joint 'j' has 'a' as its parent and its child",
    ),
    "urdf, two beside other roots": (
        "urdf",
        urdf(joint("j", "a", "b"), joint("k", "b", "a")),
        r":[23]: the links form a cycle, each the child of the next: a -> b -> a",
    ),
    "urdf, three": (
        "urdf",
        urdf(joint("i", "a", "b"), joint("j", "b", "c"), joint("k", "c", "a")),
        r":[234]: the links form a cycle, each the child of the next: a -> c -> b -> a",
    ),
    "sdf": ("sdf", sdf_joint("a", "a"), r":2: the joint 'j' has 'a' as its parent and its child"),
    "robray, one": (
        "robray",
        "\nframe a { parent a; }",
        r":2:\d+: the parents form a cycle: a -> a",
    ),
    "robray, three": (
        "robray",
        "frame a { parent b; }\nframe b { parent c; }\nframe c { parent a; }",
        "form a cycle: a -> b -> c -> a",
    ),
    "rsg": (
        "rsg",
        "root w\nGroup w { child a }\nGroup a { child b }\nGroup b { child a }\n",
        "a -> b -> a",
    ),
    "json, one": ("json", json_scene({"a": "a"}), "frame 'a' is its own ancestor"),
    "json, two": ("json", json_scene({"a": "b", "b": "a"}), "is its own ancestor"),
    "gltf, one": (
        "gltf",
        '{"asset": {"version": "2.0"}, "nodes": [{"children": [0]}], "scenes": [{"nodes": [0]}]}',
        "nodes are below themselves: 0 -> 0",
    ),
    "gltf, two": (
        "gltf",
        (
            '{"asset": {"version": "2.0"}, "nodes": [{"children": [1]}, {"children": [0]}],'
            ' "scenes": [{"nodes": [0]}]}'
        ),
        "nodes are below themselves: 0 -> 1 -> 0",
    ),
    "gltf, several parents": (
        "gltf",
        (
            '{"asset": {"version": "2.0"}, "nodes": [{"children": [1]}, {}], "scenes": [{"nodes":'
            " [0, 1]}]}"
        ),
        "node 1 has several parents",
    ),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_what_is_above_itself(tmp_path: Path, kind: str) -> None:
    """The message names the cycle, with the line if the format has lines."""
    suffix, text, expected = LOOPS[kind]
    (tmp_path / f"x.{suffix}").write_text(text, encoding="ascii")
    with pytest.raises(FileFormatError, match=expected) as caught:
        load_scene(tmp_path / f"x.{suffix}")
    assert "root link" not in str(caught.value)


def test_a_usd_joint_of_one_body(tmp_path: Path) -> None:
    """The note reports a joint from a body to itself."""
    pytest.importorskip("pxr")
    body = 'def Xform "a" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {\n}\n'
    ends = "rel physics:body0 = </a>\n rel physics:body1 = </a>"
    (tmp_path / "x.usda").write_text(
        f'#usda 1.0\n{body}def PhysicsFixedJoint "j" {{\n {ends}\n}}\n', encoding="ascii"
    )
    notes: list[str] = []
    load_scene(tmp_path / "x.usda", on_note=lambda note: notes.append(note.text))
    assert notes == ["the joint joins 'a' to itself, and is omitted"]
