"""Corrections of robot descriptions with a note, and joints with several degrees of freedom."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np
import pytest

from tmkit._support.source_location import ImportNote
from tmkit.formats import load_scene, write_urdf
from tmkit.graph import Plane, SceneGraph
from tmkit.spatial import Pose

SPHERE = '<collision><geometry><sphere radius="{}"/></geometry></collision>'


def read(
    tmp_path: Path, *, link: str = "", joint: str = "", kind: str = "revolute"
) -> tuple[SceneGraph, list[ImportNote]]:
    """Load a robot with the link ``b`` on line 3 of the file and the joint on line 4."""
    path = tmp_path / "r.urdf"
    path.write_text(
        f'<robot name="r">\n<link name="a"/>\n<link name="b">{link}</link>\n<joint name="j"'
        f' type="{kind}"><parent link="a"/><child link="b"/>{joint}</joint>\n</robot>'
    )
    notes: list[ImportNote] = []
    return load_scene(path, on_note=notes.append), notes


@pytest.mark.parametrize(
    ("link", "joint", "reason"),
    [
        (
            SPHERE.replace("collision", "visual").format(0),
            "",
            "<sphere> has a size of 0; this visual shape is ignored",
        ),
        (
            "",
            '<mimic joint="k"/>',
            "the joint to mimic, 'k', is not a joint that moves; 'j' moves independently",
        ),
        ("", '<mimic joint="j"/>', "the joint 'j' mimics itself; it moves independently"),
        (
            "",
            '<axis xyz="1 0 0"/><axis xyz="0 1 0"/>',
            "<joint> has several <axis>; only the first counts",
        ),
        (
            "",
            '<origin xyz="1, 2, 3"/>',
            "has commas between its numbers: '1, 2, 3'; they count as blanks",
        ),
        ("", '<origin xyz="1 2 3 4"/>', "'xyz' of <origin> has 4 numbers; only the first 3 count"),
        (
            "",
            '<origin xyz="$(optenv X 1 2 3)"/>',
            "is not a plain value but '$(optenv X 1 2 3)'; taken as '1 2 3'",
        ),
    ],
)
def test_minor_errors_are_corrected(
    link: str, joint: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each error is corrected with exactly one note, which is also logged as a warning."""
    with caplog.at_level(logging.WARNING, "tmkit"):
        scene, (note,) = read(tmp_path, link=link, joint=joint + '<limit lower="-1" upper="1"/>')
    assert reason in note.text
    assert [str(note)] == [record.getMessage() for record in caplog.records]
    assert scene.joint_names == ("j",)
    assert scene.shapes("b") == ()
    if "origin" in joint:
        assert scene.local_pose("b") == Pose((1, 2, 3))


def test_invalid_colours_do_not_prevent_loading(tmp_path: Path) -> None:
    """An invalid colour is ignored, with a note."""
    look = '<material name="m"><color rgba="1 1 2 1"/></material>'
    visual = f'<visual><geometry><sphere radius="1"/></geometry>{look}</visual>'
    scene, (note, _) = read(tmp_path, link=visual, kind="fixed")
    assert scene.shapes("b")[0].color is None
    assert "expected numbers from 0 to 1" in note.text


def test_a_plane_is_the_half_space_below_it(tmp_path: Path) -> None:
    """The plane goes through the origin for every normal."""
    plane = '<collision><origin xyz="0 0 2"/><geometry><plane normal="{}"/></geometry></collision>'
    for normal, direction in (
        ("0 0 1", [0, 0, 1]),
        ("0 0 -1", [0, 0, -1]),
        ("3 0 4", [0.6, 0, 0.8]),
    ):
        scene, _ = read(tmp_path, link=plane.format(normal), kind="fixed")
        (part,) = scene.shapes("b")
        assert part.shape == Plane()
        np.testing.assert_allclose(part.pose.translation, [0, 0, 2], atol=1e-12)
        np.testing.assert_allclose(part.pose.rotate([0, 0, 1]), direction, atol=1e-12)


@pytest.mark.parametrize("normal", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0.2, -0.4, 0.7)])
def test_a_planar_joint_is_two_prismatic_joints_and_a_revolute_joint(
    normal: tuple[float, float, float], tmp_path: Path
) -> None:
    """Two values move along orthogonal directions in the plane, and the third rotates about it."""
    axis = (
        f'<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="{normal[0]} {normal[1]} {normal[2]}"/>'
    )
    scene, notes = read(tmp_path, joint=axis, kind="planar")
    assert not notes
    assert scene.joint_names == ("j/x", "j/y", "j/theta")
    assert scene.ancestors("b") == ("j/y", "j/x", "a", "world")
    origin = Pose.from_rpy((1, 2, 3), (0.1, 0.2, 0.3))
    unit = np.array(normal) / np.linalg.norm(normal)
    moves = [
        (origin.inverse() @ scene.pose("b", relative_to="a", q=q)).translation
        for q in np.eye(3)[:2]
    ]
    np.testing.assert_allclose(
        [moves[0] @ unit, moves[1] @ unit, moves[0] @ moves[1]], 0, atol=1e-12
    )
    np.testing.assert_allclose(np.cross(*moves), unit, atol=1e-12)
    turned = origin.inverse() @ scene.pose("b", relative_to="a", q=[0.5, 0.25, 0.3])
    np.testing.assert_allclose(turned.log()[3:], 0.3 * unit, atol=1e-12)
    np.testing.assert_allclose(turned.translation, 0.5 * moves[0] + 0.25 * moves[1], atol=1e-12)
    again = load_scene(write_urdf(scene, "a", tmp_path))
    assert again.pose("b", relative_to="a", q=[0.5, 0.25, 0.3]).is_close(
        scene.pose("b", relative_to="a", q=[0.5, 0.25, 0.3])
    )


def test_a_planar_joint_agrees_with_pinocchio(tmp_path: Path) -> None:
    """With the normal z, the three values have the meaning of pinocchio."""
    pinocchio = pytest.importorskip("pinocchio")
    scene, _ = read(
        tmp_path, joint='<origin xyz="1 2 3" rpy="1 2 3"/><axis xyz="0 0 1"/>', kind="planar"
    )
    model = pinocchio.buildModelFromUrdf(str(tmp_path / "r.urdf"))
    data = model.createData()
    pinocchio.framesForwardKinematics(
        model, data, np.array([0.3, -0.4, math.cos(0.5), math.sin(0.5)])
    )
    expected = data.oMf[model.getFrameId("b", pinocchio.FrameType.BODY)].homogeneous
    np.testing.assert_allclose(
        scene.pose("b", relative_to="a", q=[0.3, -0.4, 0.5]).as_matrix(), expected, atol=1e-12
    )


def test_zero_bytes_late_declarations_and_namespaces_are_accepted(tmp_path: Path) -> None:
    """Blanks before the declaration, zero bytes at the end and a namespace change nothing."""
    path = tmp_path / "r.urdf"
    path.write_bytes(
        b'\n <?xml version="1.0"?>\n<robot name="r" xmlns="http://x.org"><link'
        b' name="a"/></robot>\n\0'
    )
    notes: list[ImportNote] = []
    assert "a" in load_scene(path, on_note=notes.append)
    assert [note.text.split(",")[0] for note in notes] == [
        "zero bytes at the end are ignored",
        "the XML declaration follows blanks and is ignored",
    ]


def test_a_relative_mesh_is_found_in_a_parent_folder(tmp_path: Path) -> None:
    """A mesh that is relative to a parent folder is found there, with a note."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".git").mkdir()  # the folders of one project may be read
    (tmp_path / "m.OBJ").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    mesh = '<visual><geometry><mesh filename="m.OBJ"/></geometry></visual>'
    scene, (note, visual_only) = read(tmp_path / "deep" / "er", link=mesh, kind="fixed")
    assert "no collision shape, which cannot collide: 'b'" in visual_only.text
    assert len(scene.shapes("b")) == 1
    assert "'m.OBJ' is not beside the file" in note.text
