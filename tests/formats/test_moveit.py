"""MoveIt configuration packages as scene files: search of files, limits, controllers, errors."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.moveit_packages import (
    JOINTS,
    NAMESPACE,
    arm_srdf,
    arm_urdf,
    write,
    write_moveit_1,
    write_moveit_2,
)

from tmkit._support.source_location import ImportNote, SourceLocation, ignore_note
from tmkit.errors import FileFormatError
from tmkit.formats import ReadingOptions, load_scene
from tmkit.formats.moveit.configuration import JointLimits, _with_limits, read_moveit_configuration
from tmkit.formats.spec.model import FrameSpec
from tmkit.formats.spec.parts import JointSpec

pytest.importorskip("yaml")
XACRO = ReadingOptions(allow_xacro=True)


@pytest.mark.parametrize("version", [1, 2])
def test_a_package_is_the_robot_with_its_pairs_and_limits(version: int, tmp_path: Path) -> None:
    """Of two limits the tighter one holds; what is switched off or looser does not."""
    pytest.importorskip("xacro")
    folder = (write_moveit_1 if version == 1 else write_moveit_2)(tmp_path)
    notes: list[ImportNote] = []
    reading = None if version == 1 else XACRO
    scene = load_scene(folder, reading=reading, on_note=notes.append)
    assert scene.is_allowed("base", "link3")
    limits = dict(zip(scene.joint_names, scene.joint_limits.tolist(), strict=True))
    speeds = dict(zip(scene.joint_names, scene.velocity_limits.tolist(), strict=True))
    assert [limits[name] for name in ("j1", "j2", "j3")] == [[-2.5, 2.5], [-1.0, 1.25], [-2.5, 2.5]]
    assert [speeds[name] for name in ("j1", "j2", "j3", "j4")] == [1.5, 2.0, 2.0, 2.0]
    assert [note.text for note in notes] == [
        "joint 'j3': max_velocity 9 exceeds 2 of the robot, which holds"
    ]
    configuration = read_moveit_configuration(folder, reading=reading)
    assert configuration.kinematics == ("arm",)
    controllers = {"arm_controller": JOINTS, "gripper_controller": ("left_finger_joint",)}
    assert configuration.controllers == controllers
    accelerations = {name: limit.acceleration for name, limit in configuration.limits.items()}
    assert accelerations == {"j1": 3.0, "j2": None, "j3": None, "j4": None, "elsewhere": None}


def test_a_package_of_xacro_needs_the_permission(tmp_path: Path) -> None:
    """The folder alone does not run code; the arguments of the setup assistant are defaults."""
    pytest.importorskip("xacro")
    for folder in (write_moveit_1(tmp_path / "1", robot="xacro"), write_moveit_2(tmp_path / "2")):
        with pytest.raises(FileFormatError, match=r"six\.(urdf\.)?xacro: a xacro file can run"):
            load_scene(folder)
        assert "link6" in load_scene(folder, reading=XACRO)


def test_arguments_replace_those_of_the_setup_assistant(tmp_path: Path) -> None:
    """The package gives ``gripper:=true``, and the user may give another value."""
    pytest.importorskip("xacro")
    folder = write_moveit_1(tmp_path, robot="xacro")
    robot = tmp_path / "six_ros/description/robots/six.xacro"
    robot.write_text(robot.read_text().replace('name="flange"', 'name="flange" x="$(arg gripper)"'))
    assert "link6" in load_scene(folder, reading=XACRO)
    assert "link6" in load_scene(folder, reading=ReadingOptions(allow_xacro={"gripper": "false"}))


def test_the_robot_of_a_launch_file_and_of_a_dependency(tmp_path: Path) -> None:
    """As in the packages of Fetch and of Universal Robots."""
    folder = write_moveit_1(tmp_path)
    (folder / ".setup_assistant").unlink()
    text = '<param name="robot_description" textfile="$(find six_description)/robots/six.urdf"/>'
    launch = write(folder / "launch/planning_context.launch", f"<launch>{text}</launch>")
    assert "link6" in load_scene(folder)
    launch.unlink()
    with pytest.raises(FileFormatError, match=r"six_moveit_config: names no robot file that"):
        load_scene(folder)
    depend = "<exec_depend>six_description</exec_depend>"
    write(folder / "package.xml", f"<package><name>six_moveit_config</name>{depend}</package>")
    assert "link6" in load_scene(folder)
    shutil.rmtree(tmp_path / "six_ros/description")
    with pytest.raises(
        FileFormatError,
        match=r"its packages were not found: six_description; .* --package NAME=DIR",
    ):
        load_scene(folder)


def test_several_robots_are_told_apart_by_an_argument(tmp_path: Path) -> None:
    """As in the packages of Interbotix, with one SRDF file for each robot."""
    pytest.importorskip("xacro")
    folder = tmp_path / "family_moveit"
    for name in ("small", "large"):
        write(folder / f"config/srdf/{name}.srdf.xacro", arm_srdf(attributes=NAMESPACE))
        write(folder / f"urdf/{name}.urdf.xacro", arm_urdf(gripper=name == "large"))
    write(folder / ".setup_assistant", "moveit_setup_assistant_config: {}")
    with pytest.raises(
        FileFormatError,
        match=r"several files are possible: config/srdf/large.srdf.xacro, config/srdf/small.*;"
        r" choose one by an argument with its name, as --xacro robot_model:=small",
    ):
        load_scene(folder, reading=XACRO)
    notes: list[ImportNote] = []
    reading = ReadingOptions(allow_xacro={"model": "large"})
    assert "left_finger" in load_scene(folder, reading=reading, on_note=notes.append)
    assert notes == []


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "joint_limits.yaml",
            "joint_limits: {j1: {max_velocity: -1}}",
            "expected a positive number",
        ),
        ("joint_limits.yaml", "joint_limits: {j1: {max_velocity: x}}", "j1.max_velocity: expected"),
        (
            "joint_limits.yaml",
            "joint_limits: {j1: {min_position: 3, max_position: 4}}",
            "joint_limits.yaml: joint 'j1' has no value within these limits and -2.5 to 2.5",
        ),
        ("joint_limits.yaml", "a: &a [1]\nb: *a", "joint_limits.yaml:2: aliases .* not accepted"),
        ("joint_limits.yaml", "a: b: c", "joint_limits.yaml:1: is not YAML: mapping values"),
        ("kinematics.yaml", "[" * 100, "kinematics.yaml:1: collections are nested more than 32"),
        ("kinematics.yaml", "a: !!python/name:os.system", "kinematics.yaml:1: is not YAML: could"),
        ("kinematics.yaml", "a: \udc80", "kinematics.yaml: is not YAML: 'utf-8' codec"),
        ("controllers.yaml", "controller_list: [{joints: []}]", "needs the key 'name'"),
    ],
)
def test_invalid_files_are_rejected(file: str, text: str, message: str, tmp_path: Path) -> None:
    """YAML is data with limits; errors have the file and the line or the key."""
    folder = write_moveit_1(tmp_path)
    (folder / "config" / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FileFormatError, match=message):
        load_scene(folder)


def test_empty_files_and_missing_ones_have_no_limits(tmp_path: Path) -> None:
    """All YAML files are optional."""
    folder = write_moveit_1(tmp_path)
    for name in ("joint_limits.yaml", "controllers.yaml"):
        (folder / "config" / name).write_text("# nothing\n")
    (folder / "config/kinematics.yaml").unlink()
    configuration = read_moveit_configuration(folder)
    assert (configuration.limits, configuration.kinematics, configuration.controllers) == (
        {},
        (),
        {},
    )
    assert np.allclose(load_scene(folder).velocity_limits[:6], 2.0)


def test_other_folders_are_no_scene(tmp_path: Path) -> None:
    """A folder without an SRDF file or a setup assistant is rejected."""
    (tmp_path / "plain").mkdir()
    with pytest.raises(FileFormatError, match=r"plain: is a folder, but no configuration package"):
        load_scene(tmp_path / "plain")
    write(tmp_path / "half/.setup_assistant", "a: 1")
    with pytest.raises(
        FileFormatError, match=r"half: is not a configuration package.*no SRDF file"
    ):
        load_scene(tmp_path / "half")


def test_files_of_the_setup_assistant_stay_in_their_package(tmp_path: Path) -> None:
    """A path out of the package is not read."""
    folder = write_moveit_1(tmp_path)
    secret = write(tmp_path / "secret.urdf", arm_urdf())
    path = f"../../../{secret.name}"
    setup = (folder / ".setup_assistant").read_text().replace("robots/six.urdf", path)
    (folder / ".setup_assistant").write_text(setup)
    with pytest.raises(FileFormatError, match="names no robot file that exists"):
        load_scene(folder)


@pytest.mark.parametrize("file", ["six.srdf", "joint_limits.yaml"])
def test_links_out_of_the_package_are_not_read(file: str, tmp_path: Path) -> None:
    """A file of the package may not be a link to a file elsewhere."""
    folder = write_moveit_1(tmp_path / "src" / "deep")
    link = folder / "config" / file
    secret = write(tmp_path / f"secret{link.suffix}", link.read_text())
    link.unlink()
    link.symlink_to(secret)
    with pytest.raises(FileFormatError, match="outside the folders that this scene may read"):
        load_scene(folder)


BOUND = st.floats(-3.0, 3.0)
POSITIVE = st.floats(0.1, 5.0)


@given(st.tuples(BOUND, BOUND).map(sorted), st.tuples(BOUND, BOUND).map(sorted), POSITIVE, POSITIVE)
def test_the_tighter_limit_holds(
    own: list[float], other: list[float], speed: float, other_speed: float
) -> None:
    """The interval is the intersection, and the speed the smaller one; a note names looser ones."""
    joint = JointSpec("revolute", "j", lower=own[0], upper=own[1], velocity=speed)
    frame = FrameSpec("a", "world", SourceLocation("a.urdf"), joint=joint)
    limits = {"j": JointLimits(other[0], other[1], other_speed, None, SourceLocation("l.yaml"))}
    notes: list[str] = []
    lower, upper = max(own[0], other[0]), min(own[1], other[1])
    if lower > upper:
        with pytest.raises(FileFormatError, match=r"l.yaml: joint 'j' has no value within"):
            _with_limits(frame, limits, ignore_note)
        return
    result = _with_limits(frame, limits, lambda _place, text: notes.append(text)).joint
    assert (result.lower, result.upper, result.velocity) == (lower, upper, min(speed, other_speed))
    assert any("max_velocity" in text for text in notes) == (other_speed > speed * 1.000001)
    assert _with_limits(replace(frame, joint=result), limits, ignore_note).joint == result
