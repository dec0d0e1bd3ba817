"""Links that are drawn but have no collision shape: noted, named, and collided with on request."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import tmkit as tk
from tmkit.cli.commands import app
from tmkit.errors import FileFormatError, SceneError
from tmkit.formats import ReadingOptions, load_scene
from tmkit.robots import check_robot

_CUBE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
_URDF = """<robot name="r">
<link name="base"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<link name="gripper"><visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual></link>
<link name="jaw"><visual><geometry><mesh filename="jaw.obj" scale="0.1 0.1 0.1"/></geometry>
</visual></link>
<link name="tool"/>
<joint name="j1" type="prismatic"><parent link="base"/><child link="gripper"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1" velocity="1" effort="1"/></joint>
<joint name="j2" type="prismatic"><parent link="gripper"/><child link="jaw"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1" velocity="1" effort="1"/></joint>
<joint name="j3" type="fixed"><parent link="jaw"/><child link="tool"/></joint>
</robot>"""
_SDF = """<sdf version="1.7"><model name="r">
<link name="base"><collision name="c"><geometry><box><size>0.1 0.1 0.1</size></box></geometry>
</collision></link>
<link name="gripper"><visual name="v"><geometry><box><size>0.1 0.1 0.1</size></box></geometry>
</visual></link>
<link name="jaw"><visual name="v"><geometry><mesh><uri>jaw.obj</uri></mesh></geometry></visual>
</link>
<joint name="j1" type="prismatic"><parent>base</parent><child>gripper</child><axis>
<xyz>0 0 1</xyz></axis></joint>
<joint name="j2" type="prismatic"><parent>gripper</parent><child>jaw</child><axis>
<xyz>0 0 1</xyz></axis></joint>
</model></sdf>"""
_MJCF = """<mujoco><worldbody><body name="base"><geom type="box" size="0.1 0.1 0.1" mass="1"/>
<body name="gripper"><joint name="j1" type="slide" axis="0 0 1"/>
<geom type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0" mass="1"/>
<body name="jaw"><joint name="j2" type="slide" axis="0 0 1"/>
<geom type="sphere" size="0.1" contype="0" conaffinity="0" mass="1"/></body></body></body>
</worldbody></mujoco>"""
_FILES = {"r.urdf": _URDF, "r.sdf": _SDF, "r.xml": _MJCF}


@pytest.fixture(params=list(_FILES))
def robot(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the file of a robot whose hand is only drawn."""
    if request.param == "r.xml":
        pytest.importorskip("mujoco")
    (tmp_path / "jaw.obj").write_text(_CUBE)
    path = tmp_path / request.param
    path.write_text(_FILES[request.param])
    return path


def _solid(scene: tk.SceneGraph) -> set[str]:
    return {
        frame for frame in scene.frame_names if any(part.collision for part in scene.shapes(frame))
    }


def test_loading_names_the_links(robot: Path) -> None:
    """In one note, with the option."""
    notes: list[object] = []
    scene = load_scene(robot, on_note=notes.append)
    (note,) = (str(note) for note in notes if "collide" in str(note))
    assert "no collision shape, which cannot collide: 'gripper', 'jaw'; " in note
    assert (
        "--meshes visual-as-collision (ReadingOptions(meshes='visual-as-collision') in Python)"
        in note
    )
    assert _solid(scene) == {"base"}


def test_visual_shapes_collide_on_request(robot: Path) -> None:
    """Those of links without any; neighbours may touch."""
    notes: list[object] = []
    scene = load_scene(
        robot, on_note=notes.append, reading=ReadingOptions(meshes="visual-as-collision")
    )
    assert _solid(scene) == {"base", "gripper", "jaw"}
    assert not [note for note in notes if "collide" in str(note)]
    assert {(a, b) for a, b, _ in scene.allowed_pairs} >= {("gripper", "jaw")}
    assert all(part.visual for frame in ("gripper", "jaw") for part in scene.shapes(frame))


def test_links_with_collision_shapes_keep_these(tmp_path: Path) -> None:
    """And only these collide."""
    both = _URDF.replace(
        "</visual></link>",
        "</visual><collision><geometry><sphere radius='1'/></geometry></collision></link>",
        1,
    )
    (tmp_path / "jaw.obj").write_text(_CUBE)
    (tmp_path / "r.urdf").write_text(both)
    scene = load_scene(tmp_path / "r.urdf", reading=ReadingOptions(meshes="visual-as-collision"))
    assert [part.shape.kind for part in scene.shapes("gripper") if part.collision] == ["sphere"]


def test_a_missing_visual_mesh_that_is_to_collide_is_rejected(tmp_path: Path) -> None:
    """With its line; else it is a look, and omitted."""
    (tmp_path / "r.urdf").write_text(_URDF)
    load_scene(tmp_path / "r.urdf")
    with pytest.raises(FileFormatError, match=r"r\.urdf:4: there is no file 'jaw.obj'"):
        load_scene(tmp_path / "r.urdf", reading=ReadingOptions(meshes="visual-as-collision"))


def test_the_check_of_a_robot_names_them(tmp_path: Path) -> None:
    """In Python and on the command line."""
    (tmp_path / "jaw.obj").write_text(_CUBE)
    (tmp_path / "r.urdf").write_text(_URDF)
    report = check_robot(load_scene(tmp_path / "r.urdf"), samples=10)
    assert any("cannot collide: 'gripper', 'jaw'" in note for note in report.notes)
    command = ["robot", "check", str(tmp_path / "r.urdf"), "--no-trial", "--samples", "10"]
    result = CliRunner().invoke(app, command)
    assert "cannot collide: 'gripper', 'jaw'" in result.output
    result = CliRunner().invoke(app, [*command, "--meshes", "visual-as-collision"])
    assert "cannot collide" not in result.output


def test_the_explanation_of_a_plan_names_them() -> None:
    """Of the links that the arm moves; a scene whose hand collides has no such line."""
    scene = tk.load_scene("panda_table")
    for finger in ("panda_leftfinger", "panda_rightfinger"):
        parts = [
            tk.AttachedShape(part.shape, part.pose, visual=True, collision=False)
            for part in scene.shapes(finger)
        ]
        scene = scene.set_shapes(finger, parts)
    block = [tk.AttachedShape(tk.Box([0.04, 0.04, 0.04]))]
    scene = scene.add_frame(
        "a",
        "table",
        pose=tk.Pose([0, 0, 0.0451]),
        joint=tk.Free(),
        classes=["movable"],
        shapes=block,
    )
    result = tk.plan(scene, goal="(clear a)", seed=0)
    assert "Not checked: links with visual shapes but no collision shape" in result.explanation
    assert "'panda_leftfinger', 'panda_rightfinger'" in result.explanation


def test_an_unknown_choice_lists_the_known(tmp_path: Path) -> None:
    """With the nearest."""
    with pytest.raises(
        SceneError, match=r"'visual-as-collision'.*did you mean 'visual-as-collision'"
    ):
        load_scene("panda_table", reading=ReadingOptions(meshes="visual_as_collision"))
