"""Permission, expansion and errors of xacro files, which run code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tmkit._support.source_location import ImportNote
from tmkit.cli import ExitCode, main
from tmkit.errors import FileFormatError
from tmkit.formats import ReadingOptions, load_scene
from tmkit.tamp import load_planning_problem

pytest.importorskip("xacro")

ARM = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="prefix" default="left"/>
<xacro:include filename="$(find my_arm)/parts.xacro"/>
<xacro:property name="half" value="${pi / 2}"/>
<link name="base"/>
<xacro:part name="$(arg prefix)_tip" upper="${half}"/>
</robot>"""
PARTS = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:macro name="part" params="name upper">
<link name="${name}"><visual><geometry><mesh filename="package://my_arm/tip.obj"/></geometry></visual></link>
<joint name="j" type="revolute"><parent link="base"/><child link="${name}"/>
<limit lower="0" upper="${upper}" velocity="1" effort="1"/></joint></xacro:macro></robot>"""
TIP = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
RUNS = "<robot name='r' xmlns:xacro='http://www.ros.org/wiki/xacro'><link name='{}'/></robot>"


def arm(folder: Path) -> Path:
    """Write an arm of two files."""
    (folder / "arm.urdf.xacro").write_text(ARM)
    (folder / "parts.xacro").write_text(PARTS)
    (folder / "tip.obj").write_text(TIP)
    return folder / "arm.urdf.xacro"


def test_expanded_files_are_robots(tmp_path: Path) -> None:
    """Expansion uses the packages and arguments of the user."""
    scene = load_scene(
        arm(tmp_path), reading=ReadingOptions(packages={"my_arm": tmp_path}, allow_xacro=True)
    )
    assert scene.frame_names == ("world", "base", "left_tip")
    assert scene.joint("left_tip").upper == pytest.approx(1.5707963)
    assert scene.shapes("left_tip")[0].shape.kind == "mesh"
    other = load_scene(
        arm(tmp_path),
        reading=ReadingOptions(packages={"my_arm": tmp_path}, allow_xacro={"prefix": "right"}),
    )
    assert "right_tip" in other


def test_nothing_is_run_without_permission(tmp_path: Path) -> None:
    """Files are not expanded without permission, and included files never."""
    path = tmp_path / "x.xacro"
    path.write_text(RUNS.format("${[].append(1)}"))
    with pytest.raises(
        FileFormatError, match="can run code and read any file; expand the file first"
    ):
        load_scene(path)
    files = (
        ("robray", 'include "x.xacro"', "unknown scene format"),
        ("rsg", 'import "x.xacro"', "can run code"),
    )
    for suffix, text, message in files:
        (tmp_path / f"x.{suffix}").write_text(text)
        with pytest.raises(FileFormatError, match=message):
            load_scene(tmp_path / f"x.{suffix}", reading=ReadingOptions(allow_xacro=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RUNS.format("${1 / 0}"), r"x.xacro:1: xacro: division by zero in '\$\{1 / 0\}'\n"),
        (RUNS.format("${a.b}"), r"x.xacro:1: xacro: name 'a' is not defined in '\$\{a.b\}'\n"),
        (
            RUNS.format("${dict(a=1)[len]}"),
            "x.xacro:1: xacro: there is no <built-in function len> in ",
        ),
        (
            RUNS.format("$(find nowhere)"),
            r"x.xacro:1: \$\(find nowhere\): the package 'nowhere' was not found in .*--package",
        ),
        ("<robot", "x.xacro:1: is not XML: unclosed token"),
        (RUNS.format("'/><xacro:some n='1"), "x.xacro:1: xacro: unknown macro name: xacro:some\n"),
        (
            "<robot name='r'>\n<link/></robot>",
            r"x.xacro \(expanded\):3: <link> needs the attribute 'name'",
        ),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    """Errors name the file, with lines of the expanded text."""
    (tmp_path / "x.xacro").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        load_scene(tmp_path / "x.xacro", reading=ReadingOptions(allow_xacro=True))


def write(path: Path, *content: str, attributes: str = "") -> Path:
    """Write a xacro file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    namespace = "xmlns:xacro='http://www.ros.org/wiki/xacro'"
    path.write_text("\n".join([f"<robot name='r' {namespace} {attributes}>", *content, "</robot>"]))
    return path


def write_package(folder: Path, name: str) -> Path:
    """Make a folder a ROS package."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.xml").write_text(f"<package format='3'><name>{name}</name></package>")
    return folder


def test_packages_are_found_around_the_file(tmp_path: Path) -> None:
    """Packages of the same clone, and of clones beside it, need no option."""
    config = write_package(tmp_path / "src/driver/my_config", "my_config")
    parts = write_package(tmp_path / "src/driver/parts", "my_parts")
    other = write_package(tmp_path / "src/Other_Clone", "other")
    write(parts / "urdf/links.xacro", "<link name='from_parts'/>")
    write(other / "urdf/links.xacro", "<link name='tip'/>")
    (other / "tip.obj").write_text(TIP)
    joint = "<joint name='j' type='fixed'><parent link='from_parts'/><child link='tip'/></joint>"
    mesh = "<geometry><mesh filename='package://other/tip.obj'/></geometry>"
    collision = f"<link name='tip2'><collision>{mesh}</collision></link>"
    path = write(
        config / "urdf/robot.urdf.xacro",
        "<xacro:include filename='$(find my_parts)/urdf/links.xacro'/>",
        "<xacro:include filename='$(find other)/urdf/links.xacro'/>",
        "<xacro:include filename='own.xacro'/>",
        joint,
        collision,
    )
    write(config / "urdf/own.xacro", joint.replace("'j'", "'k'").replace("'tip'", "'tip2'"))
    scene = load_scene(path, reading=ReadingOptions(allow_xacro=True))
    assert {"from_parts", "tip", "tip2"} <= set(scene.frame_names)
    assert scene.shapes("tip2")[0].shape.kind == "mesh"


def test_packages_are_found_below_the_folders_of_the_user(tmp_path: Path) -> None:
    """A folder of ``package_path`` may contain clones whose folders have other names."""
    package = write_package(tmp_path / "elsewhere/clone/folder", "parts")
    write(package / "links.xacro", "<link name='a'/>")
    path = write(
        tmp_path / "robots/here/r.xacro", "<xacro:include filename='$(find parts)/links.xacro'/>"
    )
    with pytest.raises(FileFormatError, match=r"\$\(find parts\): the package 'parts' was not"):
        load_scene(path, reading=ReadingOptions(allow_xacro=True))
    reading = ReadingOptions(allow_xacro=True, package_path=[tmp_path / "elsewhere"])
    assert "a" in load_scene(path, reading=reading)


def test_packages_of_a_sourced_workspace_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of ROS 2 lie in the folders ``share`` of ``AMENT_PREFIX_PATH``."""
    write(tmp_path / "install/parts/share/parts/links.xacro", "<link name='a'/>")
    path = write(
        tmp_path / "robots/here/r.xacro", "<xacro:include filename='$(find parts)/links.xacro'/>"
    )
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path}/nowhere:{tmp_path}/install/parts")
    assert "a" in load_scene(path, reading=ReadingOptions(allow_xacro=True))


def test_folders_of_every_user_are_not_searched(tmp_path: Path) -> None:
    """A package that another user puts into a shared folder is not found."""
    shared = tmp_path / "shared"
    write(write_package(shared / "parts", "parts") / "links.xacro", "<link name='a'/>")
    path = write(shared / "mine/r.xacro", "<xacro:include filename='$(find trap)/links.xacro'/>")
    write_package(shared / "parts", "trap")
    shared.chmod(0o777)
    with pytest.raises(FileFormatError, match="the package 'trap' was not found"):
        load_scene(path, reading=ReadingOptions(allow_xacro=True))


def test_arguments_without_values_are_named_with_their_defaults(tmp_path: Path) -> None:
    """The message has the line, all missing arguments, and their defaults in other files."""
    package = write_package(tmp_path / "arm", "arm")
    write(package / "urdf/other.xacro", "", "<xacro:arg default='7' name='dof'/>")
    (package / "launch").mkdir()
    (package / "launch/a.launch.py").write_text(
        "DeclareLaunchArgument(\n    'model',\n    default_value='lite',\n)"
    )
    path = write(
        package / "urdf/arm.urdf.xacro",
        "<xacro:arg name='hand' default='no'/>",
        "<link name='a$(arg dof)'/><link name='$(arg model)$(arg hand)'/>",
    )
    with pytest.raises(FileFormatError) as caught:
        load_scene(path, reading=ReadingOptions(allow_xacro=True))
    first, line = caught.value.message.split("\n")
    assert first.startswith(
        f"{path}:3: the arguments 'dof' and 'model' have no value: give --xacro dof:=VALUE --xacro"
        " model:=VALUE"
    )
    assert f"dof:=7 in {package}/urdf/other.xacro:3" in first
    assert f"model:=lite in {package}/launch/a.launch.py:1" in first
    assert line.strip() == "<link name='a$(arg dof)'/><link name='$(arg model)$(arg hand)'/>"


def test_the_root_may_use_arguments_that_are_declared_below(tmp_path: Path) -> None:
    """As in the files of Universal Robots and UFACTORY, whose launch files give the name."""
    path = write(
        tmp_path / "r.xacro",
        "<xacro:arg name='dof' default='7'/>",
        "<link name='link$(arg dof)'/>",
        attributes="version='$(arg dof)'",
    )
    assert "link7" in load_scene(path, reading=ReadingOptions(allow_xacro=True))
    assert "link6" in load_scene(path, reading=ReadingOptions(allow_xacro={"dof": "6"}))


def test_unknown_arguments_are_noted(tmp_path: Path) -> None:
    """An argument that no file has is a note with the nearest name, since xacro ignores it."""
    path = write(
        tmp_path / "r.xacro", "<xacro:arg name='add_gripper' default='no'/>", "<link name='a'/>"
    )
    notes: list[ImportNote] = []
    reading = ReadingOptions(allow_xacro={"add_griper": "yes"})
    load_scene(path, reading=reading, on_note=notes.append)
    assert [note.text for note in notes] == [
        "xacro has no argument 'add_griper'; did you mean 'add_gripper'? (known: add_gripper)"
    ]


def test_a_missing_file_is_named_with_those_beside_it(tmp_path: Path) -> None:
    """The first missing folder is named, which is often the value of an argument."""
    write(tmp_path / "config/ur5/a.xacro", "")
    path = write(tmp_path / "r.xacro", "<xacro:include filename='config/ur5x/a.xacro'/>")
    with pytest.raises(
        FileFormatError,
        match=r"r.xacro:2: there is no file .*config/ur5x/a.xacro': .*/config has no 'ur5x'; did"
        r" you mean 'ur5'\? \(it has: ur5\)",
    ):
        load_scene(path, reading=ReadingOptions(allow_xacro=True))


def test_an_srdf_may_be_xacro(tmp_path: Path) -> None:
    """A file whose name ends in .srdf.xacro disables pairs of links."""
    urdf = write(
        tmp_path / "r.urdf.xacro",
        *(f"<link name='{name}'/>" for name in "abc"),
        *(
            f"<joint name='{child}' type='fixed'><parent link='a'/><child link='{child}'/></joint>"
            for child in "bc"
        ),
    )
    pair = "<disable_collisions link1='$(arg p)b' link2='c' reason='Never'/>"
    srdf = write(tmp_path / "r.srdf.xacro", "<xacro:arg name='p' default=''/>", pair)
    scene = load_scene(urdf, srdf, reading=ReadingOptions(allow_xacro=True))
    assert scene.is_allowed("b", "c")
    assert not load_scene(urdf, reading=ReadingOptions(allow_xacro=True)).is_allowed("b", "c")


def test_xacro_stays_usable_after_an_error(tmp_path: Path) -> None:
    """State of a failed expansion does not reach the next one, nor the program's own search."""
    from xacro import substitution_args

    find = substitution_args._eval_find
    bad = write(tmp_path / "deep/bad.xacro", "<link name='$(arg x)'/>")
    good = write(tmp_path / "good.xacro", "<xacro:include filename='part.xacro'/>")
    write(tmp_path / "part.xacro", "<link name='a'/>")
    with pytest.raises(FileFormatError, match="'x' has no value"):
        load_scene(bad, reading=ReadingOptions(allow_xacro=True))
    assert "a" in load_scene(good, reading=ReadingOptions(allow_xacro=True))
    assert substitution_args._eval_find is find


def test_warnings_of_xacro_are_notes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed."""
    path = write(
        tmp_path / "r.xacro", "<xacro:property name='pi' value='3'/>", "<link name='${pi}'/>"
    )
    notes: list[ImportNote] = []
    load_scene(path, reading=ReadingOptions(allow_xacro=True), on_note=notes.append)
    assert [note.text for note in notes] == ["redefining global symbol: pi"]
    assert capfd.readouterr() == ("", "")


PROBLEM = """scene = ["panda_table", "block.urdf.xacro"]
goal = "(arm-empty)"
[xacro]
size = 0.04
name = "cube"
"""


def test_problem_files_have_arguments_but_no_permission(tmp_path: Path) -> None:
    """Arguments of the file hold where the caller allows xacro, below those of the caller."""
    write(
        tmp_path / "block.urdf.xacro",
        "<xacro:property name='s' value='$(arg size)'/>",
        "<link name='$(arg name)'><collision><geometry><box size='${s} ${s} ${s}'/></geometry>",
        "</collision></link>",
    )
    file = tmp_path / "problem.toml"
    file.write_text(PROBLEM.replace("(arm-empty)", "(handempty)"))
    with pytest.raises(FileFormatError, match="a xacro file can run code"):
        load_planning_problem(file)
    problem, _ = load_planning_problem(file, reading=ReadingOptions(allow_xacro=True))
    assert "cube" in problem.scene
    reading = ReadingOptions(allow_xacro={"name": "die"})
    problem, _ = load_planning_problem(file, reading=reading)
    assert "die" in problem.scene
    file.write_text(PROBLEM.replace('"cube"', "[1]"))
    with pytest.raises(FileFormatError, match=r"problem.toml:5: xacro.name: expected a text"):
        load_planning_problem(file, reading=reading)


def test_the_command_needs_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command rejects xacro files without the option, and converts them with it."""
    command = [
        "tmkit",
        "scene",
        "convert",
        str(arm(tmp_path)),
        "--package",
        f"my_arm={tmp_path}",
        "-o",
    ]
    command.append(str(tmp_path / "out.urdf"))
    for options, code in (([], ExitCode.BAD_INPUT), (["--allow-xacro"], ExitCode.DONE)):
        monkeypatch.setattr(sys, "argv", [*command, *options])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == code
        assert ("--allow-xacro" in capsys.readouterr().err) == (not options)
    assert "left_tip" in (tmp_path / "out.urdf").read_text()
