"""Permission, expansion and errors of xacro files, which run code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tmkit.cli import ExitCode, main
from tmkit.errors import FileFormatError
from tmkit.formats import ReadingOptions, load_scene

pytest.importorskip("xacrodoc")

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
        (RUNS.format("${1 / 0}"), "x.xacro: xacro rejects the file: .*division by zero"),
        (RUNS.format("$(find nowhere)"), "x.xacro: xacro rejects the file: .*nowhere"),
        ("<robot", "x.xacro: xacro rejects the file"),
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
