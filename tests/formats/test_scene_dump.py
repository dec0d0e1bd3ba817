"""The table of frames that other programs read."""

from __future__ import annotations

import json
import math

from tmkit.formats.json.scene import scene_dump
from tmkit.graph import AttachedShape, Continuous, Cylinder, Free, Revolute, SceneGraph
from tmkit.spatial import Pose


def test_every_field() -> None:
    """Each frame has name, parent, body, type, pose, joint, classes and geometry, in order."""
    arm = Revolute([0, 0, 2], lower=-1, name="shoulder")
    shape = AttachedShape(Cylinder(0.5, 2), Pose((0, 0, 1)))
    scene = SceneGraph().add_frame(
        "arm", "world", pose=Pose((1, 2, 3)), joint=arm, shapes=[shape], classes=["movable"]
    )
    scene = scene.add_frame("tip", "arm", body="arm")
    assert scene_dump(scene) == {
        "frames": [
            {
                "name": "world",
                "parent": None,
                "body": "world",
                "type": "fixed",
                "translation": [0, 0, 0],
                "quat_xyzw": [0, 0, 0, 1],
                "joint": None,
                "classes": [],
                "geometry": [],
            },
            {
                "name": "arm",
                "parent": "world",
                "body": "arm",
                "type": "revolute",
                "translation": [1, 2, 3],
                "quat_xyzw": [0, 0, 0, 1],
                "joint": {"axis": [0, 0, 1], "lower": -1, "upper": None, "name": "shoulder"},
                "classes": ["movable"],
                "geometry": [
                    {
                        "shape": "cylinder",
                        "dimensions": [0.5, 2],
                        "pose": {"translation": [0, 0, 1], "quat_xyzw": [0, 0, 0, 1]},
                    }
                ],
            },
            {
                "name": "tip",
                "parent": "arm",
                "body": "arm",
                "type": "fixed",
                "translation": [0, 0, 0],
                "quat_xyzw": [0, 0, 0, 1],
                "joint": None,
                "classes": [],
                "geometry": [],
            },
        ]
    }


def test_all_types_are_strict_json() -> None:
    """The list contains free edges and unlimited joints, and no infinity."""
    scene = (
        SceneGraph()
        .add_frame("a", "world", joint=Free())
        .add_frame("b", "a", joint=Continuous([1, 0, 0]))
    )
    dump = scene_dump(scene)
    assert [frame["type"] for frame in dump["frames"]] == ["fixed", "free", "continuous"]
    assert dump["frames"][1]["joint"] is None
    assert json.loads(json.dumps(dump, allow_nan=False)) == dump
    assert math.inf not in dump["frames"][2]["joint"].values()
