"""Arrays behind ``scene.at(q)``, updated from the previous version, equal new ones.

Invariant: what a scene answers depends on its frames alone, not on the edits that led there nor on
which versions between were asked. So every answer is compared, as bytes, with that of the scene
rebuilt from what it says of its frames.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from support.effort import scaled_examples
from support.scene_edits import edits
from support.scene_model import RejectedError, SceneModel

from tmkit.graph import (
    AttachedShape,
    Box,
    Continuous,
    Fixed,
    Free,
    Mimic,
    Prismatic,
    Revolute,
    SceneGraph,
    diff,
)
from tmkit.spatial import Pose

PLACE = Pose.from_rpy([0.3, -0.2, 0.1], [0.4, 0.5, -0.6])
Answers = tuple[object, ...]


def rebuilt(scene: SceneGraph) -> SceneGraph:
    """Return the scene made at once of what it says of its frames."""
    return SceneGraph.from_frames(list(map(scene.specification, scene.frame_names)))


def configuration(scene: SceneGraph) -> NDArray[np.float64]:
    """Return values for all joints, none like another."""
    return np.linspace(-1.3, 2.1, len(scene.joint_names))


def answers(scene: SceneGraph) -> Answers:
    """Return all that forward kinematics and the tree answer, as names and bytes."""
    at = scene.at(configuration(scene))
    jacobians = [at.jacobian(name).tobytes() for name in scene.frame_names]
    trees = [
        (scene.subtree(root), [scene.children(name) for name in scene.subtree(root)])
        for root in scene.root_names
    ]
    return scene.frame_names, scene.joint_frames, at.poses.tobytes(), jacobians, trees


def check(scene: SceneGraph) -> Answers:
    """Compare a scene with the one made anew, and return what both answer."""
    found = answers(scene)
    assert found == answers(rebuilt(scene))
    assert scene._defects() == ""
    return found


@settings(max_examples=scaled_examples(0.8))
@given(data=st.data())
def test_answers_do_not_depend_on_the_way(data: st.DataObject) -> None:
    """After any edits, with or without queries between, results equal those of a new scene."""
    scene, model = SceneGraph(), SceneModel().add_root("world")
    asked: list[tuple[SceneGraph, Answers]] = []
    for _ in range(data.draw(st.integers(1, 25), label="edits")):
        edit = data.draw(edits(model))
        try:
            model = edit.apply_to_model(model)
        except RejectedError:
            continue
        edited = edit.apply_to(scene)
        assert edited is not None
        scene = edited
        if data.draw(st.booleans(), label="ask"):
            asked.append((scene, check(scene)))
    check(scene)
    for version, before in asked:
        assert answers(version) == before


def odd_scene() -> SceneGraph:
    """Return a tree with all joint types, a mimic rule and objects, after a query."""
    scene = (
        SceneGraph()
        .add_frame("turn", "world", pose=PLACE, joint=Revolute([1, 2, 3]))
        .add_frame("slide", "turn", pose=PLACE, joint=Prismatic([0, 1, 1]))
        .add_frame("still", "world", pose=PLACE)
        .add_frame("spin", "still", pose=PLACE, joint=Continuous([0, 0, -1]))
        .add_frame(
            "copy", "spin", pose=PLACE, joint=Revolute([1, 0, 0], mimic=Mimic("turn", -0.7, 0.2))
        )
        .add_frame("cup", "still", pose=PLACE, joint=Free())
        .add_frame("lid", "cup", pose=PLACE)
    )
    scene.at(configuration(scene))
    return scene


@pytest.mark.parametrize("joint", [Fixed(), Free(), Revolute([0, 1, 0]), Prismatic([1, 0, 0])])
@pytest.mark.parametrize("frame", ["slide", "still", "spin", "cup", "lid"])
def test_a_joint_changes(frame: str, joint: Fixed | Free | Revolute | Prismatic) -> None:
    """Adding or removing a joint shifts the later entries, also of mimicked joints."""
    check(odd_scene().set_joint(frame, joint))


@pytest.mark.parametrize(
    "joint", [Fixed(), Revolute([0, 1, 0]), Revolute([0, 1, 0], mimic=Mimic("spin", 2.0))]
)
def test_a_frame_comes(joint: Fixed | Revolute) -> None:
    """A frame may move below any other, with or without a joint or mimic rule."""
    scene = odd_scene()
    for parent in scene.frame_names:
        check(scene.add_frame("new", parent, pose=PLACE, joint=joint))
    check(scene.add_root("moon").add_frame("new", "moon", pose=PLACE, joint=joint))


@pytest.mark.parametrize("frame", ["slide", "copy", "spin", "cup", "lid", "still"])
def test_frames_go(frame: str) -> None:
    """A frame may go with all below it; what stays keeps its order."""
    check(odd_scene().remove_frame(frame, subtree=True))


def test_a_leader_and_its_follower_go_together() -> None:
    """Joints that follow others go in any order of frames."""
    scene = (
        SceneGraph().add_frame("arm", "world").add_frame("leader", "arm", joint=Revolute([0, 0, 1]))
    )
    scene = scene.add_frame("follower", "leader", joint=Revolute([0, 0, 1], mimic=Mimic("leader")))
    scene = scene.add_frame("last", "world", joint=Revolute([0, 1, 0])).set_joint(
        "arm", Revolute([1, 0, 0], mimic=Mimic("last"))
    )
    scene = scene.add_frame("next", "world", joint=Prismatic([0, 1, 0]))
    scene = scene.reparent("leader", "world", pose=PLACE).reparent("last", "arm", pose=PLACE)
    scene.at(configuration(scene))
    check(scene.remove_frame("leader", subtree=True))
    check(scene.remove_frame("arm", subtree=True).remove_frame("next"))


def test_a_frame_comes_back_between_others() -> None:
    """An inverted difference restores a frame before younger ones, with equal results."""
    scene = odd_scene()
    without = scene.remove_frame("copy").remove_frame("spin")
    check(without)
    back = without.apply(diff(without, scene))
    assert check(back) == check(scene)


def test_a_frame_that_came_and_went_leaves_nothing() -> None:
    """A frame added and removed again between two questions is as if it had never been."""
    scene = odd_scene()
    assert check(scene.add_frame("new", "cup").remove_frame("new")) == check(scene)


def test_a_frame_moves_under_a_younger_one() -> None:
    """A parent may be younger than its child, and a chain of such parents too."""
    scene = (
        odd_scene()
        .add_frame("young", "world", pose=PLACE)
        .add_frame("younger", "world", pose=PLACE)
    )
    scene.at(configuration(scene))
    scene = scene.reparent("young", "younger", pose=PLACE).reparent("turn", "young", pose=PLACE)
    check(scene)
    check(scene.add_frame("youngest", "turn", pose=PLACE).reparent("still", "youngest", pose=PLACE))


def test_many_changes_between_two_questions() -> None:
    """More changes than are remembered are right as well, one by one and through a builder."""
    scene = odd_scene()
    with scene.edit() as edit:
        for i in range(20):
            scene = scene.add_frame(
                f"new{i}", "turn" if i % 3 else "world", pose=PLACE, joint=Revolute([0, 0, 1])
            )
            edit.add_frame(
                f"new{i}", "turn" if i % 3 else "world", pose=PLACE, joint=Revolute([0, 0, 1])
            )
    assert check(scene) == check(edit.finish())


def test_what_moves_nothing_changes_no_answer() -> None:
    """Names, shapes, classes, limits and groups leave all poses as they were."""
    scene = odd_scene()
    before = answers(scene)[2:4]
    for changed in (
        scene.rename_frame("cup", "mug"),
        scene.add_shape("cup", AttachedShape(Box([1, 1, 1]))),
        scene.set_classes("cup", ["movable"]),
        scene.set_joint("turn", Revolute([1, 2, 3], lower=-1, upper=1)),
        scene.set_group("kitchen", frames=["cup"]),
    ):
        assert check(changed)[2:4] == before
