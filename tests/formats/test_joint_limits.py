"""Limits of joints and of mimic joints, in every format."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tmkit._support.source_location import ImportNote
from tmkit.errors import SceneError, TmkitError
from tmkit.formats import convert_scene, load_scene, scene_to_dict
from tmkit.graph import Continuous, Mimic, Revolute, SceneGraph

FREE = (-math.inf, math.inf)


@dataclass(frozen=True)
class Limits:
    """Limits as a file may have them: ``None`` where it has none."""

    lower: float | None
    upper: float | None

    def words(self, pattern: str) -> str:
        """Return the limits that there are, each as ``pattern % (name, value)``."""
        bounds = (("lower", self.lower), ("upper", self.upper))
        return "".join(pattern % (name, value) for name, value in bounds if value is not None)


@dataclass(frozen=True)
class Follower:
    """The second joint: its limits, and how it follows the first."""

    limits: Limits
    multiplier: float
    offset: float = 0.0


Robot = Callable[[Path, Limits, Follower | None], Path]


def urdf(folder: Path, leader: Limits, follower: Follower | None) -> Path:
    """Write a robot of two revolute joints as URDF; the limits of the first are on line 3."""
    text = '<robot name="r"><link name="a"/><link name="b"/><link name="c"/>\n'
    joint = (
        '<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/><axis xyz="0 0'
        ' 1"/>\n<limit {}/>{}</joint>\n'
    )
    text += joint.format("lead", "a", "b", leader.words('%s="%r" '), "")
    if follower is not None:
        rule = (
            f'<mimic joint="lead" multiplier="{follower.multiplier}" offset="{follower.offset}"/>'
        )
        text += joint.format("follow", "b", "c", follower.limits.words('%s="%r" '), rule)
    else:
        text += '<joint name="still" type="fixed"><parent link="b"/><child link="c"/></joint>'
    return write_text(folder / "r.urdf", text + "</robot>")


def sdf(folder: Path, leader: Limits, follower: Follower | None) -> Path:
    """Write the same as SDF."""
    joint = (
        '<joint name="{}" type="revolute"><parent>{}</parent><child>{}</child><axis><xyz>0 0'
        " 1</xyz>\n<limit>{}</limit>{}</axis></joint>\n"
    )
    text = '<sdf version="1.11"><model name="r"><link name="a"/><link name="b"/><link name="c"/>\n'
    text += joint.format("lead", "a", "b", sdf_limits(leader), "")
    if follower is not None:
        rule = f"<multiplier>{follower.multiplier}</multiplier><offset>{follower.offset}</offset>"
        text += joint.format(
            "follow", "b", "c", sdf_limits(follower.limits), f'<mimic joint="lead">{rule}</mimic>'
        )
    return write_text(folder / "r.sdf", text + "</model></sdf>")


def sdf_limits(limits: Limits) -> str:
    """Return the elements of limits."""
    bounds = (("lower", limits.lower), ("upper", limits.upper))
    return "".join(f"<{name}>{value!r}</{name}>" for name, value in bounds if value is not None)


def mjcf(folder: Path, leader: Limits, follower: Follower | None) -> Path:
    """Write the same as MJCF, whose range has both limits or none."""
    pytest.importorskip("mujoco")
    body = (
        '<body name="{}"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>\n<joint name="{}"'
        ' axis="0 0 1" {}/>'
    )
    text = '<mujoco><compiler angle="radian"/><worldbody><body name="a">\n' + body.format(
        "b", "lead", mjcf_range(leader)
    )
    rule = ""
    if follower is not None:
        text += body.format("c", "follow", mjcf_range(follower.limits)) + "</body>"
        coefficients = f"{follower.offset} {follower.multiplier} 0 0 0"
        rule = (
            f'<equality><joint joint1="follow" joint2="lead" polycoef="{coefficients}"/></equality>'
        )
    return write_text(folder / "r.xml", text + f"</body></body></worldbody>{rule}</mujoco>")


def mjcf_range(limits: Limits) -> str:
    """Return the range of a joint."""
    return (
        ""
        if limits.lower is None or limits.upper is None
        else f'range="{limits.lower} {limits.upper}"'
    )


def robray(folder: Path, leader: Limits, follower: Follower | None) -> Path:
    """Write the scene in robray, with multipliers as lengths of axes and offsets in the poses."""
    frame = 'frame "{}" {{ parent "{}"; type revolute; axis [0, 0, {}]; variable "lead";\n{} }}\n'
    text = 'frame "a" { parent "world"; }\n' + frame.format("b", "a", 1, leader.words("%s %r; "))
    if follower is not None:
        assert follower.offset == 0.0
        text += frame.format("c", "b", follower.multiplier, follower.limits.words("%s %r; "))
    return write_text(folder / "r.robray", text)


def json_scene(folder: Path, leader: Limits, follower: Follower | None) -> Path:
    """Write the same as a scene in JSON, where null is no limit."""
    scene = (
        SceneGraph()
        .add_frame("a", "world")
        .add_frame("b", "a", joint=Revolute([0, 0, 1], name="lead"))
    )
    if follower is not None:
        rule = Mimic("lead", multiplier=follower.multiplier, offset=follower.offset)
        scene = scene.add_frame("c", "b", joint=Revolute([0, 0, 1], name="follow", mimic=rule))
    document = scene_to_dict(scene)
    joints = {
        frame["name"]: frame["joint"] for frame in document["frames"] if "axis" in frame["joint"]
    }
    joints["b"] |= {"lower": leader.lower, "upper": leader.upper}
    if follower is not None:
        joints["c"] |= {"lower": follower.limits.lower, "upper": follower.limits.upper}
    return write_text(folder / "r.json", json.dumps(document))


def usd(folder: Path, leader: Limits, follower: Follower | None) -> Path:
    """Write the same as USD, in degrees."""
    pytest.importorskip("pxr")
    from pxr import Sdf, Usd, UsdPhysics

    path = json_scene(
        folder, Limits(-1, 1), Follower(Limits(-1, 1), follower.multiplier) if follower else None
    )
    (stage_path,) = convert_scene(load_scene(path), folder / "r.usda")
    stage = Usd.Stage.Open(str(stage_path))
    for prim in [prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.RevoluteJoint)]:
        limits = (
            leader
            if not prim.GetAttribute("tmkit:mimic")
            else follower.limits
            if follower
            else None
        )
        if limits is None:
            continue
        if prim.GetAttribute("tmkit:mimic") and follower is not None:
            prim.GetAttribute("tmkit:offset").Set([follower.offset])
        for name, value in (("lower", limits.lower), ("upper", limits.upper)):
            prim.RemoveProperty(f"tmkit:physics:{name}Limit")
            prim.RemoveProperty(f"physics:{name}Limit")
            if value is not None:
                prim.CreateAttribute(f"physics:{name}Limit", Sdf.ValueTypeNames.Float).Set(
                    math.degrees(value)
                )
    stage.Save()
    return stage_path


def write_text(path: Path, text: str) -> Path:
    """Write a file."""
    path.write_text(text, encoding="utf-8")
    return path


ROBOTS = (urdf, sdf, mjcf, robray, json_scene, usd)


def load_with_notes(path: Path) -> tuple[SceneGraph, list[ImportNote]]:
    """Load a file with its notes."""
    notes: list[ImportNote] = []
    return load_scene(path, on_note=notes.append), notes


def limits_of_leader(scene: SceneGraph) -> tuple[float, float]:
    """Return the limits of the entry of the configuration."""
    names = scene.joint_names
    assert len(names) == 1
    lower, upper = scene.joint_limits[0]
    return float(lower), float(upper)


# The ranges that the file's words mean: by the specification of URDF an omitted limit is 0; SDF has
# an infinite one, MuJoCo a joint without a range unlimited, USD -inf and inf, and robray and JSON
# no limit.
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.__name__)
@pytest.mark.parametrize(
    "limits", [Limits(-1.0, 2.0), Limits(None, None), Limits(-1.0, None), Limits(None, 2.0)]
)
def test_a_limit_that_is_missing_is_what_the_format_says(
    robot: Robot, limits: Limits, tmp_path: Path
) -> None:
    """URDF: 0, with a note of the line. All others: unlimited."""
    if robot is mjcf and (limits.lower is None) != (limits.upper is None):
        pytest.skip("a range of MJCF has both limits")
    scene, notes = load_with_notes(robot(tmp_path, limits, None))
    lowest, highest = (0.0, 0.0) if robot is urdf else FREE
    expected = (
        lowest if limits.lower is None else limits.lower,
        highest if limits.upper is None else limits.upper,
    )
    assert limits_of_leader(scene) == pytest.approx(expected, abs=1e-6)
    if robot is urdf:
        missing = [name for name in ("lower", "upper") if getattr(limits, name) is None]
        words = {
            0: [],
            1: [f"no {missing[0]} limit; it is 0" if missing else ""],
            2: ["no limits; both are 0"],
        }
        assert len(notes) == len(words[len(missing)])
        for note, word in zip(notes, words[len(missing)], strict=True):
            assert word in note.text
            assert note.line == 3


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.__name__)
def test_limits_the_wrong_way_round_are_rejected(robot: Robot, tmp_path: Path) -> None:
    """With the file, the line where lines count, and the joint."""
    path = robot(tmp_path, Limits(0.2, -0.1), None)
    line = ":3:" if robot in (urdf, sdf, robray) else ""
    with pytest.raises(TmkitError, match=rf"r\.\w+{line}.*(lower|upper|range)"):
        load_scene(path)


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
@pytest.mark.parametrize("limit", ["", '<limit effort="1" velocity="2"/>'])
def test_urdf_without_limits_does_not_move(kind: str, limit: str, tmp_path: Path) -> None:
    """The element or its attributes may be missing."""
    joint = f'<joint name="j" type="{kind}"><parent link="a"/><child link="b"/>{limit}</joint>'
    path = write_text(
        tmp_path / "r.urdf", f'<robot name="r">\n<link name="a"/><link name="b"/>\n{joint}</robot>'
    )
    scene, (note,) = load_with_notes(path)
    assert limits_of_leader(scene) == (0.0, 0.0)
    assert (
        note.text
        == f"the {kind} joint 'j' has no limits; both are 0, the default of URDF, and it cannot"
        " move"
    )
    assert note.line == 3


WIDE = Limits(-3.0, 3.0)


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.__name__)
@pytest.mark.parametrize(
    ("leader", "follower", "expected"),
    [
        (WIDE, Follower(Limits(-1.0, 1.0), 2.0), (-0.5, 0.5)),
        (WIDE, Follower(Limits(-1.0, 1.0), 2.0, 0.2), (-0.6, 0.4)),
        (WIDE, Follower(Limits(-1.0, 0.5), -2.0, 0.2), (-0.15, 0.6)),
        (WIDE, Follower(Limits(-1.0, 1.0), 0.0, 0.5), (-3.0, 3.0)),
        (WIDE, Follower(Limits(-9.0, 9.0), 1.0), (-3.0, 3.0)),
        (Limits(None, None), Follower(Limits(-1.0, 1.0), 1.0), (-1.0, 1.0)),
    ],
)
def test_a_follower_limits_its_leader(
    robot: Robot, leader: Limits, follower: Follower, expected: tuple[float, float], tmp_path: Path
) -> None:
    """The leader is limited to values at which both joints keep their own limits."""
    if robot is robray and (follower.offset or follower.multiplier <= 0.0):
        pytest.skip("robray has positive multipliers and no offsets")
    if robot is urdf and leader.lower is None:
        leader = Limits(-math.inf, math.inf)
    path = robot(tmp_path, leader, follower)
    scene, _ = load_with_notes(path)
    assert limits_of_leader(scene) == pytest.approx(expected, abs=1e-6)
    (frame,) = scene.joint_frames
    own = scene.joint(frame)
    assert own.lower == pytest.approx(leader.lower if leader.lower is not None else -math.inf)
    assert own.upper == pytest.approx(leader.upper if leader.upper is not None else math.inf)


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.__name__)
def test_limits_that_no_value_keeps_are_rejected(robot: Robot, tmp_path: Path) -> None:
    """With the file and both joints."""
    follower = Follower(Limits(-1.0, 1.0), 2.0)
    path = robot(tmp_path, Limits(1.0, 2.0), follower)
    name = "" if robot is robray else "'follow'"
    with pytest.raises(
        TmkitError,
        match=rf"r\.\w+.*no value of joint 'lead' keeps.*'lead' needs at least 1.*{name}",
    ):
        load_scene(path)


def test_the_written_limits_are_each_joint_s_own(tmp_path: Path) -> None:
    """Written and read again in every format, the scene is the same: nothing is narrowed twice."""
    scene = load_scene(urdf(tmp_path, WIDE, Follower(Limits(-1.0, 1.0), 2.0, 0.2)))
    for suffix in ("urdf", "json", "usda"):
        back = load_scene(convert_scene(scene, tmp_path / f"again.{suffix}")[0])
        np.testing.assert_allclose(back.joint_limits, [[-0.6, 0.4]], atol=1e-15)
        assert (back.joint("b").lower, back.joint("b").upper) == (-3.0, 3.0)


def test_a_chain_of_mimics(tmp_path: Path) -> None:
    """Followers of followers may have any order in the file."""
    joints = {"a": 'lower="-5" upper="5"', "b": 'lower="-5" upper="5"', "c": 'lower="-1" upper="2"'}
    rules = {
        "a": "",
        "b": '<mimic joint="a" multiplier="-2"/>',
        "c": '<mimic joint="b" multiplier="0.5" offset="1"/>',
    }
    for order in ("abc", "cba", "bca"):
        text = '<robot name="r"><link name="base"/>' + "".join(
            f'<link name="{name}"/>' for name in joints
        )
        for name in order:
            text += (
                f'<joint name="{name}" type="prismatic"><parent link="base"/><child link="{name}"/>'
                f"<limit {joints[name]}/>{rules[name]}</joint>"
            )
        scene = load_scene(write_text(tmp_path / f"{order}.urdf", text + "</robot>"))
        # b = -2 a in [-5, 5]: a in [-2.5, 2.5]; c = 1 - a in [-1, 2]: a in [-1, 2]
        assert scene.joint_names == ("a",)
        np.testing.assert_allclose(scene.joint_limits, [[-1.0, 2.0]])


def test_a_continuous_leader_is_limited() -> None:
    """Followers limit the leader, which keeps its type."""
    scene = SceneGraph().add_frame("wheel", "world", joint=Continuous([0, 0, 1]))
    scene = scene.add_frame(
        "flap", "wheel", joint=Revolute([0, 0, 1], lower=0, upper=1, mimic=Mimic("wheel"))
    )
    np.testing.assert_array_equal(scene.joint_limits, [[0.0, 1.0]])
    assert scene.joint("wheel").type == "continuous"
    with pytest.raises(
        SceneError, match=r"no value of joint 'wheel' keeps.*'fin' needs at least 2"
    ):
        scene.add_frame(
            "fin", "wheel", joint=Revolute([0, 0, 1], lower=2, upper=3, mimic=Mimic("wheel"))
        )


def test_limits_of_a_follower_with_the_sign_of_its_leader(tmp_path: Path) -> None:
    """As in the gripper of the PR2, the leader keeps its range and other limits stay."""
    joint = (
        '<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name}"/>'
        '<limit lower="{lower}" upper="{upper}" effort="1" velocity="1"/>{mimic}</joint>'
    )

    def leader_range(
        lower: float, upper: float, multiplier: float
    ) -> tuple[list[float], list[str]]:
        mimic = f'<mimic joint="b" multiplier="{multiplier}"/>'
        path, notes = tmp_path / "r.urdf", list[str]()
        joints = joint.format(name="b", parent="a", lower=0, upper=0.5, mimic="")
        joints += joint.format(name="c", parent="b", lower=lower, upper=upper, mimic=mimic)
        path.write_text(
            f'<robot name="r"><link name="a"/><link name="b"/><link name="c"/>{joints}</robot>'
        )
        scene = load_scene(path, on_note=lambda note: notes.append(note.text))
        return scene.joint_limits[0].tolist(), notes

    limits, notes = leader_range(0.0, 0.5, -1.0)
    assert limits == [0.0, 0.5]
    reason = (
        "the joint 'c' mimics 'b' with multiplier -1, but its limits, 0 to 0.5, have the other sign"
    )
    assert notes == [f"{reason}; their sign is changed"]
    assert leader_range(-0.5, 0.0, -1.0) == ([0.0, 0.5], [])
    assert leader_range(-0.25, 0.5, -1.0) == ([0.0, 0.25], [])
    assert leader_range(0.0, 0.25, -1.0)[0] == [0.0, 0.0]
    assert leader_range(0.0, 0.25, 1.0) == ([0.0, 0.25], [])
