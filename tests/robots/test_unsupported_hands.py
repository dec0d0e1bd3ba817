"""Hands of three fingers, arrays of suction cups, and parts in front of a hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box, Cylinder, Mesh, Mimic, Prismatic, Revolute, SceneGraph
from tmkit.robots import infer_arm
from tmkit.robots.hands import mount_hand
from tmkit.robots.infer_arm import InferredArm
from tmkit.spatial import Pose

FINGER = [AttachedShape(Box((0.02, 0.01, 0.06)))]
CUP = AttachedShape(Cylinder(0.01, 0.02))


def arm() -> SceneGraph:
    """Return an arm of four joints that ends at ``wrist`` with a palm."""
    scene, above = SceneGraph().add_frame("base", "world"), "base"
    for number, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0))):
        name = f"link{number}" if number < 3 else "wrist"
        joint = Revolute(axis, lower=-2, upper=2, velocity=1, name=f"j{number}")
        scene = scene.add_frame(name, above, pose=Pose((0, 0, 0.2)), joint=joint)
        above = name
    return scene.set_shapes("wrist", [AttachedShape(Box((0.1, 0.1, 0.04)))])


def with_finger(
    scene: SceneGraph, name: str, axis: tuple[int, int, int], *, depth: float = 0.0
) -> SceneGraph:
    """Return an arm with a finger that opens by 3 cm along an axis, ``depth`` behind the others."""
    mimic = None if name == "a" else Mimic("a")
    joint = Prismatic(axis, lower=0.0, upper=0.03, velocity=1, name=name, mimic=mimic)
    pose = Pose((0.005 * axis[0], 0.005 * axis[1], 0.06 - depth))
    return scene.add_frame(f"{name}_finger", "wrist", pose=pose, joint=joint, shapes=FINGER)


def two_fingers() -> SceneGraph:
    """Return an arm with two fingers that close along y."""
    return with_finger(with_finger(arm(), "a", (0, 1, 0)), "b", (0, -1, 0))


def test_a_hand_of_three_fingers_is_missing_with_its_fingers() -> None:
    """A third moving part at the fingertips is named with what works instead."""
    inferred = infer_arm(with_finger(two_fingers(), "c", (-1, 0, 0)))
    assert inferred.missing.startswith(
        "the hand at 'wrist' has 3 fingers, 'a_finger', 'b_finger', 'c_finger', and hands that"
    )
    assert "describe two fingers that close on each other" in inferred.missing


def test_levers_behind_the_fingertips_are_no_fingers() -> None:
    """Moving parts that end behind the fingertips, such as knuckles, belong to a hand of two."""
    inferred = infer_arm(with_finger(two_fingers(), "c", (-1, 0, 0), depth=0.03))
    assert not inferred.missing


def with_cups(*middles: float) -> InferredArm:
    """Return an arm with suction cups side by side, each a link."""
    scene = arm()
    for number, y in enumerate(middles):
        pose = Pose((0.0, y, 0.05))
        scene = scene.add_frame(f"cup{number}", "wrist", pose=pose, shapes=[CUP])
    return infer_arm(scene)


def test_several_cups_are_missing_with_what_works() -> None:
    """An array of cups is rejected; one cup is not."""
    assert not with_cups(0.0).missing
    assert with_cups(-0.02, 0.02).missing.startswith(
        "the suction gripper at 'wrist' has several cups, and grippers of one cup are supported:"
        " load the robot without it and mount one by --hand suction_cup"
    )


def box_mesh(*middles: float) -> AttachedShape:
    """Return a mesh of boxes side by side, 2 cm wide and high."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.01
    faces = ConvexHull(corners).simplices
    vertices = np.concatenate([corners + np.array([0.0, y, 0.0]) for y in middles])
    indices = np.concatenate([faces + 8 * number for number in range(len(middles))])
    return AttachedShape(Mesh(vertices, indices))


@pytest.mark.parametrize(("middles", "several"), [((0.0,), False), ((-0.02, 0.02), True)])
def test_cups_of_one_mesh_are_counted(middles: tuple[float, ...], several: bool) -> None:
    """Parts of a mesh that reach the foot apart from each other are cups."""
    pose = Pose((0.0, 0.0, 0.05))
    scene = arm().add_frame("vacuum", "wrist", pose=pose, shapes=[box_mesh(*middles)])
    assert ("several cups" in infer_arm(scene).missing) is several


@pytest.mark.parametrize(("front", "words"), [(0.03, "30 mm in front of"), (-0.02, "20 mm behind")])
def test_parts_beside_a_mounted_cup_are_named(front: float, words: str) -> None:
    """Fixed fingers beside a mounted cup are in a line with their distances."""
    scene, chain = arm(), ("j0", "j1", "j2", "j3")
    mounted = mount_hand(scene, load_scene("suction_cup"), tip="wrist", joints=chain)
    height = float(mounted.pose("suction_tool", relative_to="wrist").translation[2])
    assert not any("beside" in line for line in infer_arm(mounted).inferred)
    finger = [AttachedShape(Box((0.01, 0.01, 0.2)))]
    for y in (-0.04, 0.04):
        pose = Pose((0.0, y, height - 0.1 + front))
        mounted = mounted.add_frame(f"finger{y:+}", "wrist", pose=pose, shapes=finger)
    (line,) = (line for line in infer_arm(mounted).inferred if "beside" in line)
    expected = ", ".join(f"'finger{y:+}' (ends {words} the tool)" for y in (-0.04, 0.04))
    assert line.startswith(f"warning: beside the hand is {expected}, which may touch")


def test_parts_behind_the_fingertips_are_not_beside() -> None:
    """Palm and levers of a hand of two fingers are no parts beside it; a post in front is."""
    scene = two_fingers()
    assert not any("beside" in line for line in infer_arm(scene).inferred)
    post = [AttachedShape(Box((0.01, 0.01, 0.2)))]
    scene = scene.add_frame("post", "wrist", pose=Pose((0.05, 0.0, 0.05)), shapes=post)
    (line,) = (line for line in infer_arm(scene).inferred if "beside" in line)
    assert "'post' (ends " in line
