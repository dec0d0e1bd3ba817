"""Histories of joints: what they answer, and that versions, files and arrays hold them."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tmkit.errors import ConfigurationError, StampError, UnknownNameError
from tmkit.formats.json.scene import scene_from_dict, scene_to_dict
from tmkit.graph import (
    Continuous,
    Mimic,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneGraph,
    configuration,
    diff,
    gaussian_pose,
    joint_velocities,
    relate,
    twist,
)
from tmkit.graph.moments import add_joint_values, joint_history
from tmkit.relations import PoseCoord
from tmkit.spatial import Pose


def arm() -> SceneGraph:
    """Return a turning, a sliding and an endlessly turning joint, and one that mimics the first."""
    scene = SceneGraph().add_frame("a", "world", joint=Revolute([0, 0, 1], name="turn"))
    scene = scene.add_frame(
        "b", "a", pose=Pose([1, 0, 0]), joint=Prismatic([1, 0, 0], name="slide")
    )
    scene = scene.add_frame("c", "b", joint=Continuous([0, 0, 1], name="wheel"))
    return scene.add_frame(
        "d", "a", joint=Revolute([1, 0, 0], name="other", mimic=Mimic("turn", multiplier=2.0))
    )


def moving() -> SceneGraph:
    """Return the arm with values of three times."""
    scene = arm()
    rows = {1.0: (0.0, 0.1, 3.0), 3.0: (4.0, 0.5, 3.2), 2.0: (1.0, 0.3, -3.0)}
    for stamp, values in rows.items():
        scene = add_joint_values(
            scene, dict(zip(scene.joint_names, values, strict=True)), stamp=stamp
        )
    return scene


def test_values_between_stamps() -> None:
    """Values are interpolated linearly; a continuous joint takes the shorter arc."""
    scene = moving()
    assert configuration(scene, 1.25) == pytest.approx(
        [0.25, 0.15, 3.0 + 0.25 * (2 * math.pi - 6.0)], abs=1e-12
    )
    assert configuration(scene, 2.5) == pytest.approx(
        [2.5, 0.4, (0.2 - 2 * math.pi) / 2], abs=1e-12
    )  # -3 to 3.2 - 2 pi
    for stamp, values in (
        (1.0, [0, 0.1, 3.0]),
        (2.0, [1, 0.3, -3.0]),
        (3.0, [4, 0.5, 3.2 - 2 * math.pi]),
    ):
        assert configuration(scene, stamp) == pytest.approx(values, abs=1e-14)
    assert joint_velocities(scene, 1.5) == pytest.approx([1.0, 0.2, 2 * math.pi - 6.0])
    assert joint_velocities(scene, 3.0) == pytest.approx([3.0, 0.2, 6.2 - 2 * math.pi])
    stamps, values = joint_history(scene, "slide")
    assert (stamps.tolist(), values.tolist()) == ([1.0, 2.0, 3.0], [0.1, 0.3, 0.5])
    assert [part.size for part in joint_history(arm(), "slide")] == [0, 0]


@given(st.floats(-50, 50), st.floats(-3.1, 3.1), st.floats(0, 1))
def test_a_wheel_takes_the_short_way(first: float, turn: float, fraction: float) -> None:
    """Modulo whole turns: from a value to one less than half a turn on, wherever that is."""
    scene = SceneGraph().add_frame("wheel", "world", joint=Continuous([0, 1, 0], name="j"))
    scene = add_joint_values(scene, {"j": first}, stamp=0.0)
    scene = add_joint_values(scene, {"j": first + turn + 4 * math.pi}, stamp=1.0)
    off = configuration(scene, fraction)[0] - first - fraction * turn
    assert abs(math.remainder(off, 2 * math.pi)) < 1e-9
    assert joint_velocities(scene, 0.5)[0] == pytest.approx(turn, abs=1e-9)


def test_outside_of_the_history() -> None:
    """Errors name the joint; clamping and extrapolation are optional and bounded."""
    scene = moving()
    with pytest.raises(
        StampError, match=r"joint 'turn' has values from 1 s to 3 s, so none at 3.5 s is known"
    ):
        configuration(scene, 3.5)
    assert configuration(scene, 3.5, extrapolate=0.5)[:2] == pytest.approx([5.5, 0.6])
    with pytest.raises(StampError, match="joint 'turn'"):
        configuration(scene, 3.5, extrapolate=0.4)
    with pytest.raises(StampError, match="joint 'turn'"):
        configuration(scene, 0.9, extrapolate=5.0)
    one = add_joint_values(arm(), {"turn": 1.0}, stamp=0.0)
    with pytest.raises(StampError, match="joint 'slide' has no history"):
        configuration(one, 0.0)
    assert configuration(one, 0.0, q=[7, 8, 9]).tolist() == [1, 8, 9]
    assert configuration(one, 0.0, joints=["turn"]).tolist() == [1, 0, 0]
    with pytest.raises(
        StampError, match="joint 'turn' has 1 stamped values: its velocity needs two"
    ):
        joint_velocities(one, 0.0)


def test_rejected_values_change_nothing() -> None:
    """Names, mimic joints, numbers and stamps are checked before anything is added."""
    scene = moving()
    with pytest.raises(UnknownNameError, match="turm"):
        add_joint_values(scene, {"turm": 0.0}, stamp=4.0)
    with pytest.raises(ConfigurationError, match="other"):
        add_joint_values(scene, {"other": 0.0}, stamp=4.0)
    with pytest.raises(ConfigurationError, match="wheel"):
        add_joint_values(scene, {"wheel": math.inf}, stamp=4.0)
    with pytest.raises(StampError, match="at 2 s already"):
        add_joint_values(scene, {"slide": 0.0}, stamp=2.0)
    with pytest.raises(UnknownNameError, match="turm"):
        joint_history(scene, "turm")
    kept = add_joint_values(scene, {"slide": 0.0}, stamp=9.0, window=6.5, capacity=2)
    assert joint_history(kept, "slide")[0].tolist() == [3.0, 9.0]
    with pytest.raises(StampError, match="too old"):
        add_joint_values(kept, {"slide": 0.0}, stamp=2.0)


def test_versions_files_and_arrays_hold_histories() -> None:
    """Histories survive copies, follow a rename, and are removed with their joint."""
    scene = moving()
    assert scene == moving()
    assert scene.digest() == moving().digest()
    other = add_joint_values(scene, {"turn": 9.0}, stamp=2.5)
    assert other != scene
    assert [frame.after.name for frame in diff(scene, other).frames] == ["a values"]
    for copy in (
        pickle.loads(pickle.dumps(scene)),
        scene_from_dict(scene_to_dict(scene)),
        SceneArrays(scene).freeze(),
    ):
        assert copy == scene
        assert configuration(copy, 1.7).tolist() == configuration(scene, 1.7).tolist()
    renamed = scene.rename_frame("b", "boom")
    assert configuration(renamed, 1.5).tolist() == configuration(scene, 1.5).tolist()
    assert joint_history(renamed, "slide")[1].tolist() == [0.1, 0.3, 0.5]
    again = add_joint_values(renamed, {"slide": 0.9}, stamp=4.0)
    assert len(again) == len(scene)
    rest = scene.remove_frame("b", subtree=True)
    assert rest.joint_names == ("turn",)
    assert configuration(rest, 1.5).tolist() == [0.5]


def test_queries_at_a_stamp_use_the_histories() -> None:
    """Poses and twists at a stamp need no q and qd where the joints on the way have histories."""
    scene = moving()
    q, qd = configuration(scene, 1.7), joint_velocities(scene, 1.7)
    coord = PoseCoord("{c}|c", "{d}|d", "[d]")
    there, expected = relate(scene, coord, stamp=1.7).numbers, relate(scene, coord, q=q).numbers
    assert all(np.array_equal(one, other) for one, other in zip(there, expected, strict=True))
    assert gaussian_pose(scene, "c", stamp=1.7).mean == scene.pose("c", q=q)
    found, expected = twist(scene, "c", stamp=1.7).numbers, twist(scene, "c", q=q, qd=qd).numbers
    assert np.concatenate(found) == pytest.approx(np.concatenate(expected), abs=1e-12)
    assert found[1][2] == pytest.approx(1.0 + 2 * math.pi - 6.0)
    given = relate(scene, coord, stamp=1.7, q=[0, 0, 0]).numbers  # q goes first
    assert np.array_equal(given[0], relate(scene, coord, q=[0, 0, 0]).numbers[0])
