"""Converted scenes read back equal, or are rejected."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tmkit as tk
from tmkit import cli
from tmkit.errors import SceneError
from tmkit.formats import check_scene, convert_scene, load_scene
from tmkit.graph import AttachedShape, Box, Mesh, Revolute, SceneGraph

CORNERS = [[0, 0, 0], [0.1, 0, 0], [0, 0.3, 0], [0, 0, 1 / 3]]
FACES = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]


def plain_scene() -> SceneGraph:
    """Return a scene that robray can store, with unusual names and numbers."""
    box = AttachedShape(Box([0.1, 1 / 3, 2e-7]), color=[0.1, 0.2, 0.3, 0.5])
    scene = SceneGraph().add_frame("a b", "world", pose=tk.Pose([0.1, -1e-9, 1 / 3]), shapes=[box])
    turned = tk.Pose.from_rpy([0, 0, 1], [0.1, 0.2, 0.3])
    joint = Revolute([0, 0.6, 0.8], lower=-1 / 3, upper=2.0, name="q 1")
    scene = scene.add_frame(
        "frame", "a b", pose=turned, joint=joint, classes=["movable", "odd one"]
    )
    mesh = AttachedShape(
        Mesh(CORNERS, FACES), tk.Pose([0, 1 / 3, 0], turned.quat_xyzw), collision=False
    )
    return scene.add_frame("c", "frame", shapes=[mesh, AttachedShape(tk.Sphere(0.05))])


def test_robray_gives_the_same_bits(tmp_path: Path) -> None:
    """Scenes that robray can store read back equal, including names with blanks and keywords."""
    scene = plain_scene()
    written = convert_scene(scene, tmp_path / "x.robray")
    assert [path.suffix for path in written] == [".robray", ".obj"]
    assert load_scene(written[0]) == scene


@pytest.mark.parametrize(
    "names",
    [("panda_table", "blocks3"), ("iiwa_table", "blocks2"), ("xarm_table",), ("so101_table",)],
)
def test_json_says_everything(tmp_path: Path, names: tuple[str, ...]) -> None:
    """JSON reads back to the same scene from any source."""
    scene = load_scene(*names)
    (written,) = convert_scene(scene, tmp_path / "x.json")
    assert load_scene(written) == scene


def test_a_robot_goes_through_json_and_back_to_urdf(tmp_path: Path) -> None:
    """Frames, joints and pairs are equal, poses up to the rounding of angles."""
    (tmp_path / "panda.robray").write_text(
        'include "package://pybullet_data/franka_panda/panda.urdf"\n'
    )
    scene = load_scene(tmp_path / "panda.robray")
    convert_scene(scene, tmp_path / "x.json")
    written = convert_scene(load_scene(tmp_path / "x.json"), tmp_path / "out.urdf")
    again = load_scene(written[0])
    assert again.frame_names == scene.frame_names
    assert again.joint_names == scene.joint_names
    assert again.allowed_pairs == scene.allowed_pairs
    q = scene.configuration({"panda_joint4": -1.0})
    assert again.pose("panda_hand", relative_to="world", q=q).is_close(
        scene.pose("panda_hand", relative_to="world", q=q)
    )


@pytest.mark.parametrize(
    ("suffix", "change", "message"),
    [
        (
            "robray",
            lambda s: s.add_frame("d", "c", joint=Revolute([0, 0, 1], velocity=2.0)),
            "the joint of frame 'd'",
        ),
        (
            "robray",
            lambda s: s.add_frame("d", "c", pose=tk.Pose([0, 0, 1]), body="c"),
            "the body of frame 'd'",
        ),
        (
            "robray",
            lambda s: s.set_inertia("c", tk.Inertia(1.0)),
            "the mass and inertia of frame 'c'",
        ),
        (
            "robray",
            lambda s: s.allow_collision("c", "a b", reason="why not"),
            r"'why not'\) would be lost",
        ),
        (
            "robray",
            lambda s: s.set_twist("c", [0.1] * 6, relative_to_body="world"),
            "the twist of frame 'c'",
        ),
        (
            "robray",
            lambda s: s.add_stamped_pose("c", tk.Pose(), stamp=1.0),
            "the stamped poses of frame 'c'",
        ),
        ("robray", lambda s: s.add_frame('"', "c"), "cannot be written in a robray file"),
        (
            "robray",
            lambda s: s.set_shapes("c", [AttachedShape(tk.Cylinder(1, 1))]),
            "shapes of frame",
        ),
        ("urdf", lambda s: s, "the classes of frame 'frame'"),
    ],
)
def test_what_cannot_be_said_is_rejected(
    tmp_path: Path, suffix: str, change: object, message: str
) -> None:
    """The first thing that would be lost is named, and nothing is written."""
    assert callable(change)
    with pytest.raises(SceneError, match=message):
        convert_scene(change(plain_scene()), tmp_path / f"x.{suffix}")
    assert not list(tmp_path.iterdir())


def test_other_formats_are_rejected(tmp_path: Path) -> None:
    """An unknown suffix is rejected with a list of the known ones."""
    with pytest.raises(SceneError, match=r"cannot write '\.jsn' files; did you mean '\.json'"):
        convert_scene(plain_scene(), tmp_path / "x.jsn")


def test_a_check_tells_problems_from_notes() -> None:
    """Permanent overlaps are problems; overlaps that joints resolve are notes."""
    box = AttachedShape(Box([1, 1, 1]))
    scene = SceneGraph().add_frame("a", "world", shapes=[box])
    scene = scene.add_frame(
        "b", "world", pose=tk.Pose([5, 0, 0]), shapes=[box], joint=Revolute([0, 0, 1])
    )
    assert check_scene(scene).is_valid
    assert check_scene(scene).notes == ("joint 'b' has no limits",)
    turning = Revolute([0, 0, 1], lower=1.0, upper=2.0)
    scene = scene.add_frame("c", "b", shapes=[box], joint=turning).add_frame(
        "d", "world", shapes=[box], classes=["movable"]
    )
    scene = scene.add_frame("e", "world", classes=["movable"]).add_frame("f", "world")
    report = check_scene(scene)
    assert report.problems == ("'a' and 'd' overlap by more than 1 mm in every configuration",)
    assert report.notes == (
        "'b' and 'c' overlap by more than 1 mm at the joint values nearest to zero",
        "joint 'b' has no limits",
        "joint 'c' cannot be at 0: its limits are 1 and 2",
        "frame 'e' is movable, and has no collision shape by which it could be held",
        "frame 'f' has no effect: no shape, class, mass, joint, child or group",
    )


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``scene check`` returns 0, 1 or 2, and ``scene convert`` 0 or 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.robray").write_text(
        "frame a { geometry { shape sphere; radius 1; } }", encoding="ascii"
    )
    (tmp_path / "bad.robray").write_text(
        "class ball { shape sphere; radius 1; } frame a { geometry { isa ball; } } frame b { isa"
        " movable; geometry { isa ball; } }",
        encoding="ascii",
    )

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tmkit", "scene", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output = capsys.readouterr()
        return int(ended.value.code or 0), output.out + output.err

    assert run("check", "./good.robray") == (0, "./good.robray: 2 frames, 0 joints, 1 shapes: ok\n")
    code, output = run("check", "./bad.robray")
    assert code == 1
    assert output.startswith("problem: 'a' and 'b' overlap")
    assert run("check", "./missing.robray")[0] == 2
    code, output = run("check", "./bad.robray", "--json")
    assert code == 1
    assert '"ok": false' in output
    assert run("convert", "./good.robray", "-o", "x.json") == (0, "Written to x.json\n")
    assert load_scene(tmp_path / "x.json") == load_scene(tmp_path / "good.robray")
    assert run("convert", "./good.robray", "-o", "x.txt")[0] == 2
