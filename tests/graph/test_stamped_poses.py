"""Stamped poses: what a history takes and answers, what it survives, and twists by differences.

The oracle of a history is a plain list of pairs, kept by the rules said in words.
"""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from tmkit._core import StampedPoses
from tmkit.errors import (
    DisconnectedError,
    FileFormatError,
    SceneError,
    StampError,
    UnknownNameError,
)
from tmkit.formats.json.scene import scene_from_dict, scene_to_dict
from tmkit.graph import (
    FrameSpecification,
    Free,
    Revolute,
    SceneArrays,
    SceneGraph,
    SceneHistory,
    collapse_fixed_frames,
    diff,
)
from tmkit.graph.traversal import latest_common_stamp
from tmkit.spatial import Pose

FACTS = json.loads((Path(__file__).resolve().parents[1] / "data" / "semantics.json").read_text())
POLICIES = ("closest", "preceding", "interpolated", "screw", "clamped")


def along_x(x: float) -> Pose:
    """Return a pose so far along x."""
    return Pose([x, 0, 0])


def tracked() -> SceneGraph:
    """Return a cup that was seen three times, and an arm that was not."""
    scene = SceneGraph().add_frame("table", "world", pose=Pose([1, 0, 0]))
    scene = scene.add_frame("arm", "world", joint=Revolute([0, 0, 1])).add_frame(
        "hand", "arm", pose=Pose([0, 0.5, 0])
    )
    scene = scene.add_frame("cup", "table", joint=Free(), classes=["movable"])
    for stamp, x in ((1.0, 0.1), (2.0, 0.3), (4.0, 0.4)):
        scene = scene.add_stamped_pose("cup", Pose.from_rpy([x, 0, 0], [0, 0, x]), stamp=stamp)
    return scene


def test_the_newest_is_the_present_pose() -> None:
    """A pose of a newer stamp is where the frame is; one of an older stamp moves nothing."""
    scene = tracked()
    assert scene.stamped_poses("cup").stamps.tolist() == [1.0, 2.0, 4.0]
    assert scene.local_pose("cup") == Pose.from_rpy([0.4, 0, 0], [0, 0, 0.4])
    later = scene.add_stamped_pose("cup", along_x(9), stamp=3.0)
    assert later.stamped_poses("cup").stamps.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert later.local_pose("cup") == scene.local_pose("cup")
    assert scene.stamped_poses("cup").stamps.size == 3  # the version before is as it was
    assert scene.stamped_poses("hand") is None
    assert scene.stamped_poses("hand") is None
    assert later._defects() == ""
    moved = scene.set_pose("cup", along_x(7))  # what is so now need not be stamped
    assert moved.pose("cup", relative_to="table").translation[0] == 7
    assert moved.pose("cup", relative_to="table", stamp=4.0) == scene.local_pose("cup")


@pytest.mark.parametrize("policy", POLICIES)
def test_at_a_stamp_the_answer_is_what_was_given(policy: str) -> None:
    """Whatever the policy, each stamp answers with the bits of its pose."""
    scene = tracked()
    known = scene.stamped_poses("cup")
    assert known is not None
    for stamp, pose in zip(known.stamps, known.poses, strict=True):
        assert scene.pose("cup", relative_to="table", stamp=stamp, policy=policy) == pose
        assert known.at(stamp, policy=policy) == pose


def test_policies_between_stamps() -> None:
    """Policy "closest" prefers the newer of two, "preceding" the older; a line has even speed."""
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    scene = scene.add_stamped_pose("cup", along_x(0), stamp=1.0).add_stamped_pose(
        "cup", along_x(1), stamp=2.0
    )

    def x(stamp: float, policy: str) -> float:
        return float(
            scene.pose("cup", relative_to="world", stamp=stamp, policy=policy).translation[0]
        )

    assert [x(t, "closest") for t in (1.25, 1.5, 1.75)] == [0, 1, 1]
    assert [x(t, "preceding") for t in (1.25, 1.5, 1.999)] == [0, 0, 0]
    assert [x(t, "interpolated") for t in (1.25, 1.5, 1.75)] == [0.25, 0.5, 0.75]
    assert [x(t, "screw") for t in (1.25, 1.5, 1.75)] == pytest.approx([0.25, 0.5, 0.75])
    with pytest.raises(
        UnknownNameError, match=r"unknown policy 'closet'; did you mean 'closest'\?"
    ):
        x(1.5, "closet")


def test_a_quarter_turn_by_both_ways_between() -> None:
    """The origin moves on a line when interpolated, and around the axis by the screw."""
    a, b = Pose([1, 0, 0]), Pose.from_rpy([0, 1, 0], [0, 0, math.pi / 2])
    history = StampedPoses([0, 1], [a, b])
    straight, round_ = history.at(0.5), history.at(0.5, policy="screw")
    np.testing.assert_allclose(straight.translation, [0.5, 0.5, 0], atol=1e-12)
    np.testing.assert_allclose(round_.translation, [math.sqrt(0.5), math.sqrt(0.5), 0], atol=1e-12)
    assert straight.distance(round_)[1] < 1e-9


@pytest.mark.parametrize("policy", POLICIES[:-1])
@pytest.mark.parametrize("stamp", [0.999, 4.001, math.nan, math.inf, -math.inf])
def test_outside_nothing_is_known(stamp: float, policy: str) -> None:
    """Outside of the history no pose is returned, unless clamping is requested."""
    with pytest.raises(
        StampError, match=r"frame 'cup' has poses from 1 s to 4 s, so none at .* s is known"
    ) as caught:
        tracked().pose("hand", relative_to="cup", q=[0.0], stamp=stamp, policy=policy)
    assert (
        caught.value.data["frame"],
        caught.value.data["oldest"],
        caught.value.data["newest"],
    ) == ("cup", 1.0, 4.0)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), StampError)


def test_an_empty_history_knows_nothing() -> None:
    """An edge that keeps stamps, but has none yet, is not taken for one that stands still."""
    scene = tracked().set_stamped_poses("cup", StampedPoses(capacity=4))
    with pytest.raises(
        StampError, match="frame 'cup' has no stamped pose yet, so none at 0 s is known"
    ):
        scene.pose("cup", relative_to="world", stamp=0.0)
    # as the latest of none
    with pytest.raises(StampError, match=r"^frame 'cup' has no stamped pose yet$"):
        scene.pose("cup", relative_to="world", stamp=-math.inf)
    assert scene.set_stamped_poses("cup", None).pose(
        "cup", relative_to="table", stamp=0.0
    ) == scene.local_pose("cup")


def test_paths_join_what_moves_and_what_does_not() -> None:
    """Each stamped edge on a path has its pose at the time; joints are at q."""
    scene = tracked()
    q = [0.7]
    expected = scene.pose("table", relative_to="hand", q=q) @ scene.pose(
        "cup", relative_to="table", stamp=1.5
    )
    assert scene.pose("cup", relative_to="hand", q=q, stamp=1.5).is_close(expected)
    assert scene.pose("hand", relative_to="world", q=q, stamp=99.0) == scene.pose(
        "hand", relative_to="world", q=q
    )
    with_joint = scene.add_stamped_pose("arm", Pose([0, 0, 1]), stamp=1).add_stamped_pose(
        "arm", Pose([0, 0, 2]), stamp=2
    )
    height = with_joint.pose("hand", relative_to="world", q=q, stamp=1.5).translation[2]
    assert height == pytest.approx(1.5)
    with pytest.raises(DisconnectedError):
        scene.add_root("moon").pose("cup", relative_to="moon", stamp=1.5)


def test_invalid_arguments_raise_errors() -> None:
    """Two poses of one moment, what is too old, bad numbers, and edges whose pose is constant."""
    scene = tracked()
    with pytest.raises(StampError, match="frame 'cup' has a pose at 2 s already"):
        scene.add_stamped_pose("cup", along_x(0), stamp=2.0)
    with pytest.raises(
        StampError, match="at -7 s is too old: the newest is of 4 s, and those of the last 10 s"
    ):
        scene.add_stamped_pose("cup", along_x(0), stamp=-7, window=10)
    with pytest.raises(
        StampError, match=r"at 0\.5 s is too old: 3 are kept, and the oldest of them is of 1 s"
    ):
        scene.add_stamped_pose("cup", along_x(0), stamp=0.5, capacity=3)
    with pytest.raises(StampError, match="needs a finite stamp"):
        scene.add_stamped_pose("cup", along_x(0), stamp=math.nan)
    with pytest.raises(StampError, match="room for one at least"):
        scene.add_stamped_pose("cup", along_x(0), stamp=5, capacity=0)
    with pytest.raises(StampError, match="a window longer than 0 s, not -1 s"):
        scene.add_stamped_pose("cup", along_x(0), stamp=5, window=-1)
    with pytest.raises(SceneError, match="'world' is a root, which has no pose"):
        scene.add_stamped_pose("world", along_x(0), stamp=0)
    inside = scene.add_frame("handle", "cup", body="cup")
    for edit in (
        lambda: inside.add_stamped_pose("handle", along_x(0), stamp=0),
        lambda: inside.set_stamped_poses("handle", StampedPoses()),
    ):
        with pytest.raises(
            SceneError, match="are on one body, so the pose between them cannot change"
        ):
            edit()
    with pytest.raises(UnknownNameError):
        scene.add_stamped_pose("nobody", along_x(0), stamp=0)
    with pytest.raises(StampError, match="must ascend, but 1 s follows 2 s"):
        StampedPoses([2, 1], [Pose(), Pose()])
    with pytest.raises(StampError, match="3 stamps were given for 1 poses"):
        StampedPoses([1, 2, 3], [Pose()])
    with pytest.raises(StampError, match=r"further apart than the window of 0\.5 s"):
        StampedPoses([1, 2], [Pose(), Pose()], window=0.5)
    with pytest.raises(StampError, match="2 stamped poses, but 1 are kept"):
        StampedPoses([1, 2], [Pose(), Pose()], capacity=1)


@given(
    st.lists(st.integers(-20, 20), max_size=25),
    st.integers(1, 6),
    st.sampled_from([3.0, 12.0, math.inf]),
    st.floats(-22, 22),
    st.sampled_from(POLICIES),
)
def test_a_history_is_a_short_sorted_list(
    stamps: list[int], capacity: int, window: float, asked: float, policy: str
) -> None:
    """In whatever order poses come, what is kept and answered is what a plain list says."""
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    known: list[float] = []
    for stamp in stamps:
        newest = max(known, default=-math.inf)
        full = len(known) == capacity
        rejected = stamp in known or stamp < newest - window or (full and stamp < min(known))
        try:
            scene = scene.add_stamped_pose(
                "cup", along_x(stamp), stamp=stamp, capacity=capacity, window=window
            )
        except StampError:
            assert rejected
            continue
        assert not rejected
        known = sorted([*known, stamp])
        known = [t for t in known if t >= known[-1] - window][-capacity:]
        assert scene.stamped_poses("cup").stamps.tolist() == known
        assert scene.pose("cup", relative_to="world").translation[0] == known[-1]
    time = min(max(asked, known[0]), known[-1]) if known and policy == "clamped" else asked
    if not known or not known[0] <= time <= known[-1]:
        if known:
            with pytest.raises(StampError):
                scene.pose("cup", relative_to="world", stamp=asked, policy=policy)
        return
    before = max(t for t in known if t <= time)
    after = min(t for t in known if t >= time)
    nearer = before if time - before < after - time else after
    expected = {"closest": nearer, "preceding": before}.get(policy, time)
    assert scene.pose("cup", relative_to="world", stamp=asked, policy=policy).translation[
        0
    ] == pytest.approx(expected, abs=1e-9)


def test_facts_of_a_peer() -> None:
    """Closest and preceding poses equal those of BRICS_3D, which clamps outside."""
    facts = FACTS["rsg"]["temporal_cache"]
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    for stamp, value in facts["inserts"]:
        scene = scene.add_stamped_pose(
            "cup", along_x(value), stamp=stamp, window=facts["max_history_s"]
        )
    stamps = scene.stamped_poses("cup").stamps.tolist()
    assert (len(stamps), stamps[0], stamps[-1]) == (
        facts["size_after"],
        facts["oldest"],
        facts["latest"],
    )
    for policy in ("closest", "preceding"):
        for stamp, value in facts[policy]:
            if stamps[0] <= stamp <= stamps[-1]:
                assert (
                    scene.pose("cup", relative_to="world", stamp=stamp, policy=policy).translation[
                        0
                    ]
                    == value
                )
            else:
                with pytest.raises(StampError):
                    scene.pose("cup", relative_to="world", stamp=stamp, policy=policy)


# ------------------------------------------------------------------------------- what it survives


def test_histories_are_content() -> None:
    """Histories count in equality and digest, and survive all ways of copying."""
    scene = tracked()
    plain = scene.set_stamped_poses("cup", None)
    assert plain != scene
    assert plain.digest() != scene.digest()
    assert plain.set_stamped_poses("cup", scene.stamped_poses("cup")) == scene
    specifications = [scene.specification(name) for name in scene.frame_names]
    others = [
        pickle.loads(pickle.dumps(scene)),
        scene_from_dict(json.loads(json.dumps(scene_to_dict(scene)))),
        SceneGraph.from_frames(specifications),
        plain.apply(diff(plain, scene)),
        scene.rename_frame("cup", "mug").rename_frame("mug", "cup"),
    ]
    for other in others:
        assert other == scene
        assert hash(other) == hash(scene)
        assert other.digest() == scene.digest()
        assert other.stamped_poses("cup") == scene.stamped_poses("cup")
        assert other._defects() == ""
    assert scene.apply(diff(plain, scene).reversed()) == plain
    [changed] = diff(plain, scene).frames
    assert changed.fields == ("stamps",)
    longer = scene.set_stamped_poses("cup", StampedPoses(capacity=7, window=3.5))
    assert scene_from_dict(scene_to_dict(longer)) == longer
    assert pickle.loads(pickle.dumps(scene.stamped_poses("cup"))) == scene.stamped_poses("cup")
    assert hash(scene.stamped_poses("cup")) == hash(others[0].stamped_poses("cup"))
    assert repr(scene.stamped_poses("cup")) == "StampedPoses(3 poses from 1 s to 4 s)"


def test_a_history_belongs_to_an_edge() -> None:
    """Reparenting ends it, in every way; setting the pose or the joint does not."""
    scene = tracked()
    assert scene.reparent("cup", "world").stamped_poses("cup") is None
    assert scene.reparent("cup", "world", pose=Pose()).stamped_poses("cup") is None
    assert scene.classes("cup") == scene.reparent("cup", "world").classes("cup") == ("movable",)
    assert scene.reparent("cup", "table", pose=along_x(5)).stamped_poses("cup").stamps.size == 3
    assert scene.set_joint("cup", Revolute([0, 0, 1])).stamped_poses("cup").stamps.size == 3
    held = scene.reparent("cup", "hand", q=[0.2])
    assert scene.apply(diff(scene, held)) == held
    assert held.apply(diff(held, scene)) == scene
    assert diff(held, scene).frames[0].fields == ("parent", "pose", "stamps")


def test_whole_scenes_carry_histories() -> None:
    """Mounting and merging preserve histories; an extracted root loses its edge."""
    scene = tracked()
    known = scene.stamped_poses("cup")
    mounted = SceneGraph().mount(scene, "world", prefix="a/")
    assert mounted.stamped_poses("a/cup") == known
    assert SceneGraph().merge(scene).stamped_poses("cup") == known
    assert scene.extract("table").stamped_poses("cup") == known
    assert scene.extract("cup").stamped_poses("cup") is None
    history = SceneHistory(scene).add_stamped_pose("cup", along_x(2), stamp=5.0)
    assert history.scene.stamped_poses("cup").stamps.tolist() == [1, 2, 4, 5]
    assert history.undo().scene == scene
    with scene.edit() as edit:
        for stamp in range(10, 20):
            edit.add_stamped_pose("cup", along_x(stamp), stamp=stamp)
    assert edit.finish().stamped_poses("cup").stamps.size == 13


def test_folding_keeps_histories_and_moves_them_to_the_frame_above() -> None:
    """A stamped fixed frame is kept when frames are collapsed."""
    scene = SceneGraph().add_frame("stand", "world", pose=Pose.from_rpy([1, 2, 3], [0.1, 0.2, 0.3]))
    scene = scene.add_frame("camera", "stand", pose=along_x(1))
    scene = scene.add_stamped_pose("camera", along_x(1), stamp=1).add_stamped_pose(
        "camera", along_x(2), stamp=2
    )
    folded = collapse_fixed_frames(scene)
    assert folded.frame_names == ("world", "camera")
    for stamp in (1.0, 1.25, 2.0):
        assert folded.pose("camera", relative_to="world", stamp=stamp).is_close(
            scene.pose("camera", relative_to="world", stamp=stamp)
        )


def test_bad_documents() -> None:
    """A history that cannot be is rejected where it stands in the document."""
    document = scene_to_dict(tracked())
    [cup] = [frame for frame in document["frames"] if frame["name"] == "cup"]
    cup["stamps"]["poses"][0]["stamp"] = 9.0
    with pytest.raises(FileFormatError, match=r"stamps.*must ascend, but 2 s follows 9 s"):
        scene_from_dict(document)
    cup["stamps"]["poses"] = []
    cup["stamps"]["capacity"] = 2.5
    with pytest.raises(
        FileFormatError, match=r"capacity.*expected a whole number above 0, received 2.5"
    ):
        scene_from_dict(document)
    with pytest.raises(SceneError, match="is a root, which has no pose"):
        SceneGraph.from_frames([FrameSpecification("world", None).replace(stamps=StampedPoses())])


# ------------------------------------------------------------------------------------ differences

_numbers = st.floats(-1, 1)


@given(st.tuples(*[_numbers] * 6), st.tuples(*[_numbers] * 6), st.floats(0.01, 2.0))
def test_twists_are_differences_of_poses(
    start: tuple[float, ...], twist: tuple[float, ...], seconds: float
) -> None:
    """A constant twist follows from two poses, as the slope of the screw."""
    assume(np.linalg.norm(twist[3:]) * seconds < 3.1)  # two poses determine less than half a turn
    first = Pose.exp(start)
    second = first @ Pose.exp(np.multiply(twist, seconds))
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    scene = scene.add_stamped_pose("cup", first, stamp=5.0).add_stamped_pose(
        "cup", second, stamp=5.0 + seconds
    )
    found = scene.twist_from_stamps("cup", relative_to="world", first=5.0, second=5.0 + seconds)
    np.testing.assert_allclose(found, twist, atol=1e-9 + 1e-14 / seconds**2)
    h, middle = 1e-4 * seconds, 5.0 + 0.5 * seconds
    poses = [
        scene.pose("cup", relative_to="world", stamp=middle + step, policy="screw")
        for step in (-h, h)
    ]
    slope = (poses[0].inverse() @ poses[1]).log() / (2 * h)
    np.testing.assert_allclose(slope, found, atol=1e-6)
    inner = scene.twist_from_stamps(
        "cup", relative_to="world", first=middle - h, second=middle + h, policy="screw"
    )
    np.testing.assert_allclose(inner, found, atol=1e-6)
    turned = scene.set_twist("cup", found, relative_to_body="world")
    assert turned.twist_edge("cup")[0] == "world"  # type: ignore[index]


def test_twists_between_moving_frames() -> None:
    """Relative to a frame that moves alike there is no twist; the second stamp is later."""
    scene = SceneGraph().add_frame("a", "world", joint=Free()).add_frame("b", "world", joint=Free())
    for stamp in (1.0, 2.0):
        for name in ("a", "b"):
            scene = scene.add_stamped_pose(
                name, along_x(stamp if name == "a" else stamp + 1), stamp=stamp
            )
    np.testing.assert_allclose(
        scene.twist_from_stamps("a", relative_to="world", first=1, second=2),
        [1, 0, 0, 0, 0, 0],
        atol=1e-12,
    )
    np.testing.assert_allclose(
        scene.twist_from_stamps("a", relative_to="b", first=1, second=2), np.zeros(6), atol=1e-12
    )
    with pytest.raises(StampError, match="needs two stamps, the second later: not 2 s and 1 s"):
        scene.twist_from_stamps("a", relative_to="b", first=2, second=1)
    with pytest.raises(StampError, match="has poses from 1 s to 2 s, so none at 3 s is known"):
        scene.twist_from_stamps("a", relative_to="b", first=1, second=3)


@given(
    st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=4).map(sorted),
    st.integers(-3, 12),
)
def test_clamped_poses_are_those_of_the_nearest_stamp_inside(stamps: list[int], stamp: int) -> None:
    """Policy "clamped" interpolates at the nearest stamp of the history, for finite stamps."""
    history = StampedPoses(stamps, [Pose.from_rpy([s, 0, 0], [0, 0, s / 5]) for s in stamps])
    scene = SceneGraph().add_frame("cup", "world", joint=Free()).set_stamped_poses("cup", history)
    inside = float(min(max(stamp, stamps[0]), stamps[-1]))
    expected = history.at(inside)
    assert history.at(stamp, policy="clamped") == expected
    for where in (scene, SceneArrays(scene)):
        assert where.pose("cup", stamp=stamp, policy="clamped") == scene.pose("cup", stamp=inside)
        with pytest.raises(StampError, match="so none at nan s is known"):
            where.pose("cup", stamp=math.nan, policy="clamped")
    with pytest.raises(StampError, match="has no stamped pose yet"):
        StampedPoses().at(stamp, policy="clamped")


@given(
    st.lists(
        st.lists(st.integers(0, 12), unique=True, min_size=1, max_size=3).map(sorted),
        min_size=1,
        max_size=4,
    )
)
def test_the_latest_common_stamp_is_the_newest_that_all_edges_know(
    histories: list[list[int]],
) -> None:
    """The latest common stamp equals that of an exhaustive search, or an error is raised."""
    scene, parent = SceneGraph().add_frame("tip", "world"), "world"
    for number, stamps in enumerate(histories):
        scene = scene.add_frame(f"f{number}", parent, joint=Free())
        for stamp in stamps:
            scene = scene.add_stamped_pose(f"f{number}", along_x(stamp), stamp=stamp)
        parent = f"f{number}"
    known = [
        stamp
        for stamp in range(13)
        if all(stamps[0] <= stamp <= stamps[-1] for stamps in histories)
    ]
    if known:
        assert (
            latest_common_stamp(scene, parent, relative_to="tip")
            == latest_common_stamp(scene, parent)
            == known[-1]
        )
        scene.pose(parent, relative_to="tip", stamp=known[-1])
    else:
        with pytest.raises(
            StampError, match=r"the newest pose of 'f\d' is of \d+ s, the oldest of 'f\d' of \d+ s"
        ):
            latest_common_stamp(scene, parent)


def test_no_common_stamp_without_stamped_edges() -> None:
    """Neither where nothing is stamped, nor where a history is empty, nor between two trees."""
    scene = tracked()
    assert latest_common_stamp(scene, "cup", relative_to="hand") == 4.0
    with pytest.raises(StampError, match="no edge between 'hand' and 'world' has stamped poses"):
        latest_common_stamp(scene, "hand")
    with pytest.raises(StampError, match="frame 'cup' has no stamped pose yet"):
        latest_common_stamp(scene.set_stamped_poses("cup", StampedPoses()), "cup")
    with pytest.raises(DisconnectedError, match="moon"):
        latest_common_stamp(scene.add_root("moon"), "cup", relative_to="moon")


@given(
    st.floats(-math.pi, math.pi),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.floats(0, 1),
    st.booleans(),
)
def test_interpolation_is_that_of_poses(
    angle: float, axis: list[float], fraction: float, is_turned: bool
) -> None:
    """Small rotations use a series, large ones sines, as ``Pose.interpolate`` does."""
    length = math.sqrt(sum(x * x for x in axis))
    unit = np.array(axis) / length if length > 1e-3 else np.array([0.0, 0.0, 1.0])
    first = Pose.from_rpy([1, 2, 3], [0.3, -0.8, 2.0])
    numbers = (first @ Pose.exp(np.concatenate([[0.5, 0, -0.5], angle * unit]))).as_array()
    second = Pose.from_array(
        np.concatenate([numbers[:3], -numbers[3:] if is_turned else numbers[3:]])
    )
    found = StampedPoses([0.0, 1.0], [first, second]).at(fraction)
    expected = (
        first.interpolate(second, fraction) if 0 < fraction < 1 else (first, second)[int(fraction)]
    )
    assert np.abs(found.as_matrix() - expected.as_matrix()).max() < 4e-15
