"""Descriptions of arms: what a file must say, and that it fits the scene."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.gantry import GANTRY, SUCKER, gantry_scene

from tmkit.errors import MissingFileError, RobotError
from tmkit.graph import Prismatic, SceneGraph
from tmkit.robots import Manipulator, load_manipulator
from tmkit.robots.robot_files import find_manipulator

TOML = """\
name = "gantry"
base = "rail"
tip = "hand"
tool = "tool"
joints = ["x", "y", "z", "turn"]

[ready]
x = 0.0
y = -0.3
z = 0.3
turn = 0.0

[velocity]
x = 0.6

[gripper]
kind = "parallel"
joints = ["finger"]
open = { finger = 0.04 }
closed = { finger = 0.0 }
width_open = 0.08
width_closed = 0.0
contact_links = ["left_finger", "right_finger"]
"""


def load(folder: Path, text: str) -> Manipulator:
    """Load a description of the given text."""
    path = folder / "arm.toml"
    path.write_text(text, encoding="utf-8")
    return load_manipulator(path)


def test_a_file_says_what_the_attributes_are(tmp_path: Path) -> None:
    """Every key of a file arrives at its attribute; what is left out has its default."""
    arm = load(tmp_path, TOML)
    assert (arm.name, arm.base, arm.tip, arm.tool) == ("gantry", "rail", "hand", "tool")
    assert arm.joints == ("x", "y", "z", "turn")
    assert dict(arm.ready) == {"x": 0.0, "y": -0.3, "z": 0.3, "turn": 0.0}
    assert dict(arm.velocity) == {"x": 0.6}
    assert dict(arm.acceleration) == {}
    assert arm.gripper_kind == "parallel"
    assert arm.gripper_joints == ("finger",)
    assert arm.contact_links == ("left_finger", "right_finger")
    assert (arm.width_open, arm.width_closed, arm.finger_depth, arm.grip_force) == (
        0.08,
        0.0,
        0.03,
        40.0,
    )
    arm.check(gantry_scene())


def test_our_panda_fits_its_scene() -> None:
    """The arm that travels with tmkit can be found by name."""
    arm = load_manipulator("panda")
    assert len(arm.joints) == 7
    assert repr(arm) == "Manipulator('panda', 7 joints, parallel gripper, tool 'panda_grasptarget')"


def test_values_are_equal_by_content_and_survive_copies() -> None:
    """Equality, hash, pickle, copies and plain values depend on the content."""
    for arm in (GANTRY, SUCKER):
        for other in (
            pickle.loads(pickle.dumps(arm)),
            copy.deepcopy(arm),
            Manipulator.from_dict(arm.to_dict()),
        ):
            assert other == arm
            assert hash(other) == hash(arm)
            assert other.digest() == arm.digest()
    assert GANTRY != SUCKER
    assert GANTRY.digest() != SUCKER.digest()


def test_a_description_cannot_be_changed() -> None:
    """Neither an attribute nor a map can be written, also when they were given as plain ones."""
    given = {"x": 0.0, "y": 0.0, "z": 0.0, "turn": 0.0}
    arm = Manipulator.from_dict({**GANTRY.to_dict(), "ready": given})
    given["x"] = 1.0
    assert arm.ready["x"] == 0.0
    with pytest.raises(TypeError, match="does not support item assignment"):
        arm.ready["x"] = 1.0  # type: ignore[index]
    with pytest.raises(AttributeError, match="cannot assign"):
        arm.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "gantry"\n', "", "arm.toml: key 'name' is missing"),
        ("[ready]", "[redy]", "unknown key 'redy'; did you mean 'ready'"),
        ('base = "rail"', "base = 3", "base must be a name, not 3"),
        ('base = "rail"', 'base = ""', "base must be a name, not ''"),
        (
            'joints = ["x", "y", "z", "turn"]',
            'joints = "x"',
            "joints must be a list of names, not 'x'",
        ),
        ('joints = ["x", "y", "z", "turn"]', "joints = [1]", "joints must be a list of names"),
        (
            'joints = ["x", "y", "z", "turn"]\n\n[ready]',
            "joints = []\n\n[ready]",
            "at least one joint",
        ),
        (
            'joints = ["x", "y", "z", "turn"]',
            'joints = ["x", "y", "z", "turn", "x"]',
            "joint 'x' is named twice",
        ),
        ('joints = ["finger"]', 'joints = ["finger", "turn"]', "joint 'turn' is named twice"),
        ("turn = 0.0\n", "", "ready has no value for joint 'turn'"),
        ("turn = 0.0\n", "trun = 0.0\n", "ready names joint 'trun', .* did you mean 'turn'"),
        ("y = -0.3", 'y = "far"', "ready must give finite numbers by joint name"),
        ("y = -0.3", "y = nan", "ready must give finite numbers by joint name"),
        ("y = -0.3", "y = true", "ready must give finite numbers by joint name"),
        (
            "[velocity]\nx = 0.6",
            "[velocity]\nx = 0.0",
            "velocity of joint 'x' must be positive, not 0.0",
        ),
        (
            "[velocity]\nx = 0.6",
            "[acceleration]\nx = -1",
            "acceleration of joint 'x' must be positive, not -1.0",
        ),
        (
            "[velocity]\nx = 0.6",
            "[velocity]\nu = 0.6",
            "velocity names joint 'u', which is not one of its joints",
        ),
        (
            'kind = "parallel"',
            'kind = "magnetic"',
            "gripper kind 'magnetic' is none of parallel, jaw, suction",
        ),
        ('kind = "parallel"', "colour = 1", "unknown key 'colour' in table 'gripper'"),
        (
            'kind = "parallel"',
            "opened = 1",
            "unknown key 'opened' in table 'gripper'; did you mean 'open'",
        ),
        ('kind = "parallel"', 'name = "x"', "unknown key 'name' in table 'gripper'"),
        (
            "[velocity]",
            "[gripper_open]\nfinger = 0.04\n\n[velocity]",
            "'open' is given in table 'gripper' and outside",
        ),
        ("open = { finger = 0.04 }", "open = { }", "gripper_open has no value for joint 'finger'"),
        (
            "closed = { finger = 0.0 }",
            "closed = { thumb = 0.0 }",
            "gripper_closed names joint 'thumb'",
        ),
        (
            'joints = ["finger"]\nopen = { finger = 0.04 }\nclosed = { finger = 0.0 }\n',
            "",
            "a parallel gripper needs",
        ),
        ("width_open = 0.08", "width_open = 0.0", "width_open > width_closed >= 0"),
        ("width_closed = 0.0", "width_closed = -0.1", "width_open > width_closed >= 0"),
        ("width_open = 0.08", "width_open = inf", "width_open must be a finite number, not inf"),
        (
            "width_closed = 0.0",
            "width_closed = 0.0\ngrip_force = 0",
            "grip_force must be positive, not 0.0",
        ),
        (
            "width_closed = 0.0",
            "width_closed = 0.0\nfinger_depth = -0.1",
            "finger_depth must not be negative",
        ),
        (
            "width_closed = 0.0",
            "width_closed = 0.0\ncontact_tolerance = -1",
            "contact_tolerance must not be negative",
        ),
        (
            'contact_links = ["left_finger", "right_finger"]',
            "contact_links = 1",
            "contact_links must be a list",
        ),
        ('name = "gantry"', "gripper = 1", r"arm.toml:\d+:\d+: is not TOML: "),
        ('base = "rail"', "base = ", r"arm.toml:2:8: is not TOML: Invalid value"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Each mistake is named with the file, the key and what would be right."""
    assert TOML.count(old) == 1
    with pytest.raises(RobotError, match=message) as caught:
        load(tmp_path, TOML.replace(old, new))
    assert str(caught.value).startswith(str(tmp_path / "arm.toml"))


def test_a_gripper_that_is_no_table_is_refused(tmp_path: Path) -> None:
    """The gripper is a table."""
    with pytest.raises(RobotError, match="'gripper' must be a table"):
        load(tmp_path, 'name = "x"\ngripper = 3\n')


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are named by position."""
    path = tmp_path / "arm.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(RobotError, match=r"arm\.toml:1: is not UTF-8 text: invalid start byte"):
        load_manipulator(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "panda.urdf",
            "is a scene, where a robot description in TOML is expected; .*tmkit new robot",
        ),
        ("pandas", "tmkit has no 'pandas' in scenes/robots; did you mean 'panda'"),
        ("./nowhere/arm.toml", "there is no file 'nowhere/arm.toml'"),
        (".", "cannot be read: Is a directory"),
    ],
)
def test_a_missing_file_is_named(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown name is an error with the nearest name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "panda.urdf").touch()
    with pytest.raises((MissingFileError, RobotError), match=message):
        load_manipulator(Path(name) if name == "." else name)


def test_a_description_made_directly_is_checked_too() -> None:
    """The constructor makes no description that a file could not."""
    values = GANTRY.to_dict()
    with pytest.raises(RobotError, match="robot 'gantry': ready has no value for joint 'x'"):
        Manipulator(**{**values, "ready": {}})
    with pytest.raises(
        RobotError, match="robot 'gantry': width_open must be a finite number, not 'wide'"
    ):
        Manipulator(**{**values, "width_open": "wide"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"base": "rial"},
            "base names frame 'rial', which the scene does not have; did you mean 'rail'",
        ),
        ({"tip": "fist"}, "tip names frame 'fist', which the scene does not have"),
        ({"tool": "tol"}, "tool names frame 'tol', .* did you mean 'tool'"),
        ({"contact_links": ["thumb"]}, "contact_links names frame 'thumb'"),
        ({"joints": ["x", "y", "z", "turm"]}, "joints names joint 'turm', .* did you mean 'turn'"),
        (
            {"joints": ["x", "y", "z", "other"]},
            "joints names joint 'other', which the scene does not have",
        ),
        (
            {"tip": "beam", "tool": "tool"},
            "joint 'y' is not on the path from the root to the tip 'beam'",
        ),
        ({"base": "tool"}, "base 'tool' is not above the tip 'hand'"),
        ({"tool": "rail"}, "tool 'rail' is not a descendant of the tip 'hand'"),
        (
            {"ready": [9.0, 0.0, 0.0, 0.0]},
            "ready puts joint 'x' at 9, .* outside its limits from -0.5 to 0.5",
        ),
        (
            {"gripper_open": {"finger": 0.05}},
            "gripper_open puts joint 'finger' at 0.05, .* from 0 to 0.04",
        ),
        ({"gripper_closed": {"finger": -0.1}}, "gripper_closed puts joint 'finger' at -0.1"),
    ],
)
def test_a_description_that_does_not_fit_the_scene(changes: dict[str, Any], message: str) -> None:
    """Frames, joints and values are proved to be the scene's."""
    values = {**GANTRY.to_dict(), **changes}
    ready = changes.get("ready", list(GANTRY.ready.values()))
    values["ready"] = dict(zip(values["joints"], ready, strict=True))
    if "joints" in changes:
        values["velocity"] = values["acceleration"] = {}
    with pytest.raises(RobotError, match=message):
        find_manipulator(Manipulator.from_dict(values), gantry_scene())


def test_limits_are_the_smaller_of_scene_and_description() -> None:
    """Speed limits are the smaller of both; accelerations reach full speed in 0.5 s."""
    scene = SceneGraph()
    for name, speed in (("a", 0.4), ("b", 2.0), ("c", math.inf), ("d", math.inf)):
        scene = scene.add_frame(
            name,
            scene.frame_names[-1],
            joint=Prismatic([1, 0, 0], lower=-1, upper=1, velocity=speed),
        )
    names = ("a", "b", "c", "d")
    arm = Manipulator(
        "line",
        "world",
        "d",
        "d",
        names,
        dict.fromkeys(names, 0.0),
        velocity={"a": 0.6, "b": 0.5, "c": 3.0},
        acceleration={"b": 7.0},
        gripper_kind="suction",
    )
    np.testing.assert_array_equal(arm.velocity_limits(scene), [0.4, 0.5, 3.0, 1.0])
    np.testing.assert_array_equal(arm.acceleration_limits(scene), [0.8, 7.0, 6.0, 2.0])
    np.testing.assert_array_equal(arm.joint_indices(scene), [0, 1, 2, 3])


@pytest.mark.parametrize(("width", "finger"), [(0.0, 0.0), (0.08, 0.04), (0.05, 0.025)])
def test_finger_values_are_proportional_to_the_width(width: float, finger: float) -> None:
    """Between closed and open the fingers move in proportion."""
    assert GANTRY.finger_values(width) == {"finger": pytest.approx(finger)}
    assert SUCKER.finger_values(width) == {}


@pytest.mark.parametrize("width", [-0.001, 0.081])
def test_a_width_beyond_the_opening_is_refused(width: float) -> None:
    """The hand opens no wider and closes no tighter than it says."""
    with pytest.raises(
        RobotError, match=r"the fingers cannot be -?0.0\d+ m apart; they open from 0.0 to 0.08 m"
    ):
        GANTRY.finger_values(width)


def test_the_ready_configuration_has_an_open_hand() -> None:
    """The arm is ready, the hand open; joints of others keep their values."""
    scene = gantry_scene().add_frame(
        "door", "world", joint=Prismatic([1, 0, 0], lower=0.0, upper=1.0)
    )
    q = GANTRY.ready_configuration(scene)
    assert dict(zip(scene.joint_names, q, strict=True)) == {
        **GANTRY.ready,
        "finger": 0.04,
        "door": 0.0,
    }
    base = scene.configuration({"door": 0.7})
    assert GANTRY.ready_configuration(scene, base=base)[-1] == 0.7
