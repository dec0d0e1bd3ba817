"""Covariances of stamped poses in a live world: buffer, served world, store and bags."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.commands import tmkit
from support.effort import scaled_examples
from support.stamped_model import Array, histories, model_of, times_in

from tmkit.errors import ServiceError, TmkitError
from tmkit.formats import load_scene
from tmkit.graph import Free, NoiseSource, Revolute, SceneGraph, StampedPoses, diff, gaussian_pose
from tmkit.spatial import GaussianPose, Pose, to_ros_pose
from tmkit.store import Store
from tmkit.store.encoding import DifferenceWriter, decode_difference
from tmkit.world import (
    BagRecorder,
    Buffer,
    Client,
    ExtrapolationException,
    Header,
    InProcessTransport,
    JointState,
    LiveScene,
    LookupException,
    OutdatedRemover,
    Quaternion,
    Time,
    Vector3,
    WorldServer,
    play_bag,
    run_block,
)
from tmkit.world.messages import seconds_and_nanoseconds, transform_message

rosbag2 = pytest.importorskip("rosbags.rosbag2")
from rosbags.typesys import Stores, get_typestore  # noqa: E402

_STORE = get_typestore(Stores.ROS2_JAZZY)
SPREAD = np.diag([1e-4, 4e-4, 1e-4, 1e-4, 1e-4, 9e-4])
FOLDERS = settings(
    max_examples=scaled_examples(0.2), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def pose_message(pose: GaussianPose, stamp: float, frame: str = "map", child: str = "") -> Any:
    """Return an ``Odometry``, or a ``PoseWithCovarianceStamped`` without a child."""
    x, y, z, *quaternion = pose.mean.as_array().tolist()
    mean = SimpleNamespace(position=Vector3(x, y, z), orientation=Quaternion(*quaternion))
    uncertain = SimpleNamespace(pose=mean, covariance=to_ros_pose(pose)["covariance"])
    header = Header(Time(*seconds_and_nanoseconds(stamp)), frame)
    fields = {"child_frame_id": child} if child else {}
    return SimpleNamespace(header=header, pose=uncertain, **fields)


def estimates(history: StampedPoses) -> list[tuple[float, GaussianPose]]:
    """Return the stamps of a history, all above 0 s, with its poses."""
    rows = zip(history.stamps, history.poses, history.covariances, strict=True)
    return [(stamp + 1.0, GaussianPose(pose, own)) for stamp, pose, own in rows]


def later(history: StampedPoses) -> StampedPoses:
    """Return a history with all stamps 1 s later: in ROS, 0 s is the newest."""
    return StampedPoses(
        (history.stamps + 1.0).tolist(), history.poses, covariances=history.covariances
    )


# --------------------------------------------------------------------------------------- buffer


@settings(max_examples=scaled_examples(0.3))
@given(st.data(), histories(mixed=False))
def test_lookups_have_the_covariance_of_their_time(
    data: st.DataObject, history: StampedPoses
) -> None:
    """Messages in any order; the answers at random times are those of a plain model."""
    buffer = Buffer(100.0)
    for stamp, pose in data.draw(st.permutations(estimates(history))):
        assert buffer.set_pose(pose_message(pose, stamp), "cup")
        assert buffer.set_pose(pose_message(pose, stamp), "cup")  # again: nothing new
    moved = later(history)
    model = model_of(moved)
    for stamp in [*moved.stamps.tolist(), data.draw(times_in(moved))]:
        if seconds_and_nanoseconds(stamp) == (0, 0):
            continue
        time = Time(*seconds_and_nanoseconds(stamp))
        found = buffer.lookup_gaussian_pose("map", "cup", time)
        stamp = min(time.sec + time.nanosec / 1e9, model.stamps[-1])
        model.check(found, max(stamp, model.stamps[0]))
    newest = buffer.lookup_gaussian_pose("map", "cup")
    model.check(newest, model.stamps[-1])
    mean = buffer.lookup_transform("map", "cup").transform.translation
    assert [mean.x, mean.y, mean.z] == newest.mean.translation.tolist()


def test_lookups_along_joints_static_and_exact_paths() -> None:
    """A static covariance, a joint with values over time, one frame, and unknown ones."""
    scene = SceneGraph(root="map").add_frame("arm", "map", joint=Revolute([0, 0, 1], name="turn"))
    buffer = Buffer(10.0, scene=scene)
    for stamp, value in ((1.0, 0.0), (2.0, 1.0)):
        header = Header(Time(*seconds_and_nanoseconds(stamp)))
        assert buffer.set_joint_states(JointState(header, ["turn"], [value]))
    static = GaussianPose(Pose([0, 0, 0.1]), SPREAD)
    assert buffer.set_pose(pose_message(static, 0.0, "arm"), "tool")
    assert buffer.set_pose(pose_message(GaussianPose(Pose(), SPREAD), 1.0, "tool"), "cup")
    assert buffer.set_pose(pose_message(GaussianPose(Pose(), SPREAD), 2.0, "tool"), "cup")
    found = buffer.lookup_gaussian_pose("map", "cup", 1.5)
    assert found.mean.is_close(Pose.from_rpy([0, 0, 0.1], [0, 0, 0.5]))
    np.testing.assert_allclose(found.covariance, 1.5 * SPREAD, rtol=1e-9)
    assert buffer.lookup_gaussian_pose("arm", "tool") == static
    assert buffer.lookup_gaussian_pose("cup", "cup") == GaussianPose(Pose())
    with pytest.raises(LookupException, match="cap"):
        buffer.lookup_gaussian_pose("map", "cap")
    with pytest.raises(ExtrapolationException, match="'turn' has values from 1 s to 2 s"):
        buffer.lookup_gaussian_pose("map", "cup", 2.5)


def test_transforms_and_poses_of_one_frame() -> None:
    """A pose gives its covariance to a transform that came before; the others have the newest."""
    buffer = Buffer(10.0)
    for stamp in (1, 2, 3):
        assert buffer.set_transform(
            transform_message(Pose([stamp, 0, 0]), "map", "cup", (stamp, 0))
        )
    assert not buffer.lookup_gaussian_pose("map", "cup").covariance.any()
    assert buffer.set_pose(pose_message(GaussianPose(Pose([2, 0, 0]), SPREAD), 2.0), "cup")
    for stamp, expected in ((1.0, 0.0), (2.0, 1.0), (3.0, 0.0), (2.5, 0.25)):
        found = buffer.lookup_gaussian_pose("map", "cup", stamp).covariance
        np.testing.assert_allclose(found, expected * SPREAD, rtol=1e-9)
    assert buffer.set_pose(pose_message(GaussianPose(Pose([3, 0, 0]), 4 * SPREAD), 3.0), "cup")
    for stamp, expected in ((1.0, 4.0), (2.0, 1.0), (3.0, 4.0)):
        found = buffer.lookup_gaussian_pose("map", "cup", stamp).covariance
        np.testing.assert_allclose(found, expected * SPREAD, rtol=1e-9)
    assert not buffer.set_pose(pose_message(GaussianPose(Pose([9, 0, 0]), SPREAD), 3.0), "cup")
    assert "has a pose at 3 s already" in buffer.rejections[-1]


def test_an_odometry_names_its_frame() -> None:
    """Other messages need the frame as an argument."""
    buffer, pose = Buffer(10.0), GaussianPose(Pose([1, 0, 0]), SPREAD)
    assert buffer.set_pose(pose_message(pose, 1.0, "odom", "base"))
    assert buffer.lookup_gaussian_pose("odom", "base") == pose
    assert buffer.set_pose(pose_message(pose, 2.0, "odom", "base"), "other")
    assert buffer.lookup_gaussian_pose("odom", "other") == pose
    assert not buffer.set_pose(pose_message(pose, 3.0), authority="amcl")
    assert buffer.rejections == (
        "amcl: a SimpleNamespace has no child_frame_id; pass child_frame_id=",
    )


INVALID = {
    "shape": (np.eye(5), "covariance must have 36 numbers, row by row, not 25"),
    "asymmetric": (np.triu(np.ones((6, 6))), "covariance is not symmetric"),
    "negative": (-np.eye(6), r"not positive semi-definite: its eigenvalues are \[-1, -1"),
    "nan": (np.full((6, 6), np.nan), "covariance must be finite numbers"),
}


@pytest.mark.parametrize("case", INVALID)
def test_messages_with_invalid_covariances_are_rejected(case: str) -> None:
    """The rejection names sender, frame, time and defect."""
    matrix, message = INVALID[case]
    buffer, odometry = Buffer(10.0), pose_message(GaussianPose(), 2.5, "odom", "base")
    odometry.pose.covariance = matrix.ravel().tolist()
    assert not buffer.set_pose(odometry, authority="/odom")
    [rejection] = buffer.rejections
    prefix = "/odom: the pose of 'base' at 2.5 s: PoseWithCovariance: "
    assert rejection.startswith(prefix)
    with pytest.raises(TmkitError, match=message):
        raise TmkitError(rejection)
    assert "base" not in buffer.scene


def test_outdated_poses_are_removed_with_their_covariances() -> None:
    """Each of the others keeps its own."""
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    for stamp, own in ((1.0, SPREAD), (2.0, None), (3.0, 2 * SPREAD), (4.0, 3 * SPREAD)):
        scene = scene.add_stamped_pose("cup", Pose([stamp, 0, 0]), stamp=stamp, covariance=own)
    scene = run_block(LiveScene(scene), OutdatedRemover("old", "world", "world", max_age=2.0))
    history = scene.stamped_poses("cup")
    assert history is not None
    assert history.stamps.tolist() == [2, 3, 4]
    assert history.covariances[0] is None
    assert np.array_equal(history.covariances[1:], [2 * SPREAD, 3 * SPREAD])


# ------------------------------------------------------------------------------- wire and store


@settings(max_examples=scaled_examples(0.3))
@given(data=st.data(), history=histories())
def test_random_histories_through_the_wire(data: st.DataObject, history: StampedPoses) -> None:
    """A client's edits, whole scenes and answers at random times are those of a plain model."""
    transport = InProcessTransport()
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    rows = list(zip(history.stamps.tolist(), history.poses, history.covariances, strict=True))
    with WorldServer(transport, scene), Client(transport) as client:
        for stamp, pose, own in rows:
            client.add_stamped_pose("cup", pose, stamp=stamp, covariance=own)
            scene = scene.add_stamped_pose("cup", pose, stamp=stamp, covariance=own)
        assert client.scene() == scene
        stamp = data.draw(times_in(history))
        found = client.gaussian_pose("cup", stamp=stamp)
    model_of(history, scene.edge_covariance("cup")).check(found, stamp)


def test_invalid_covariances_over_the_wire() -> None:
    """The server rejects them in the words of the scene, and nothing changes."""
    transport = InProcessTransport()
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    with WorldServer(transport, scene) as server, Client(transport) as client:
        for matrix, message in (
            (-np.eye(6), r"the covariance of 'cup' at 2\.5 s is not positive semi-definite"),
            (np.triu(np.ones((6, 6))), r"the covariance of 'cup' at 2\.5 s is not symmetric"),
            (np.full((6, 6), np.nan), "nan"),
            (np.eye(5), r"covariance must have shape \(6, 6\), not \(5, 5\)"),
        ):
            with pytest.raises((ServiceError, TmkitError), match=message):
                client.add_stamped_pose("cup", Pose(), stamp=2.5, covariance=matrix)
        assert server.live.scene == scene


@FOLDERS
@given(data=st.data(), history=histories())
def test_random_histories_through_a_store(
    tmp_path: Path, data: st.DataObject, history: StampedPoses
) -> None:
    """Each version is equal, and answers at random times as a plain model."""
    shutil.rmtree(tmp_path / "store", ignore_errors=True)
    scene, store = SceneGraph().add_frame("cup", "world", joint=Free()), Store(tmp_path / "store")
    store.put(scene)
    scene = scene.set_stamped_poses("cup", history).set_covariance("cup", SPREAD)
    store.put(scene)
    again = Store(tmp_path / "store").get("main")
    assert again == scene
    stamp = data.draw(times_in(history))
    model_of(history, SPREAD).check(gaussian_pose(again, "cup", stamp=stamp), stamp)


def test_records_without_covariances_are_as_before() -> None:
    """Three values; a record with invalid covariances is rejected."""
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    writer = DifferenceWriter()
    exact = scene.add_stamped_pose("cup", Pose(), stamp=1.0)
    assert len(writer.frame(exact.specification("cup"))[10]) == 3
    uncertain = scene.add_stamped_pose("cup", Pose(), stamp=1.0, covariance=2.5 * np.eye(6))
    record = DifferenceWriter().encode(diff(scene, uncertain), uncertain)
    assert record is not None
    number = np.float64(2.5).tobytes()
    assert number in record
    for bad, message in (
        (record.replace(number, np.float64(np.nan).tobytes()), "nan"),
        (record.replace(number, np.float64(-1.0).tobytes()), r"eigenvalues are \[-1"),
    ):
        with pytest.raises((ValueError, TmkitError), match=message):
            decode_difference(
                bad, scene, shape=_no_shape, source=lambda _, size, label: NoiseSource(size, label)
            )


def _no_shape(digest: str, source: str) -> Any:
    raise AssertionError(f"there is no shape {digest} of {source}")


# ----------------------------------------------------------------------------------------- bags


@FOLDERS
@given(
    data=st.data(),
    history=histories(mixed=False),
    storage=st.sampled_from(["mcap", "sqlite3"]),
    at_once=st.booleans(),
)
def test_random_histories_through_a_bag(
    tmp_path: Path,
    data: st.DataObject,
    history: StampedPoses,
    storage: Literal["mcap", "sqlite3"],
    at_once: bool,
) -> None:
    """Recorded version by version or at once, the answers are those of a plain model."""
    shutil.rmtree(tmp_path / "bag", ignore_errors=True)
    there, here = Buffer(100.0), Buffer(100.0)
    with BagRecorder(tmp_path / "bag", storage=storage) as recorder:
        if not at_once:
            there.on_change(recorder.record)
        for stamp, pose in data.draw(st.permutations(estimates(history))):
            there.set_pose(pose_message(pose, stamp), "cup")
        recorder.record(there.scene)
    report = play_bag(tmp_path / "bag", here)
    assert (here.rejections, report.rejected) == ((), {})
    moved = later(history)
    stamp = data.draw(times_in(moved))
    model_of(moved).check(gaussian_pose(here.scene, "cup", relative_to="map", stamp=stamp), stamp)


def test_odometry_of_a_bag_is_replayed_by_request(tmp_path: Path) -> None:
    """Named by topic, or with another frame; else it is skipped, since a world has one of each."""
    kinds = _STORE.types
    kind = "nav_msgs/msg/Odometry"
    bag = tmp_path / "bag"
    with rosbag2.Writer(bag, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/odom", kind, typestore=_STORE)
        tf = writer.add_connection("/tf", "tf2_msgs/msg/TFMessage", typestore=_STORE)
        empty = kinds["tf2_msgs/msg/TFMessage"](transforms=[])
        writer.write(tf, 0, _STORE.serialize_cdr(empty, "tf2_msgs/msg/TFMessage"))
        for sec in (1, 3):
            message = _odometry(kinds, sec, SPREAD)
            writer.write(connection, sec * 10**9, _STORE.serialize_cdr(message, kind))
        message = _odometry(kinds, 4, -SPREAD)
        writer.write(connection, 4 * 10**9, _STORE.serialize_cdr(message, kind))
    assert play_bag(bag, Buffer(10.0)).skipped == ("/odom",)
    for arguments, frame in (
        ({"topics": ("/odom",)}, "base_link"),
        ({"poses": {"/odom": "robot"}}, "robot"),
    ):
        buffer = Buffer(10.0)
        report = play_bag(bag, buffer, **arguments)  # type: ignore[arg-type]
        assert (report.counts["/odom"], report.rejected) == (3, {"/odom": 1})
        assert f"/odom: the pose of '{frame}' at 4 s" in buffer.rejections[0]
        found = buffer.lookup_gaussian_pose("odom", frame, 2)
        assert found.mean.is_close(Pose([2, 0, 0]))
        np.testing.assert_allclose(found.covariance, SPREAD / 2, rtol=1e-9)


def test_a_bag_of_odometry_alone_becomes_a_scene_file(tmp_path: Path) -> None:
    """The command names the topic to give; with it, the file has the covariances."""
    kind = "nav_msgs/msg/Odometry"
    plugin = rosbag2.StoragePlugin.SQLITE3
    with rosbag2.Writer(tmp_path / "run", version=9, storage_plugin=plugin) as writer:
        connection = writer.add_connection("/odom", kind, typestore=_STORE)
        for sec in (1, 2):
            raw = _STORE.serialize_cdr(_odometry(_STORE.types, sec, sec * SPREAD), kind)
            writer.write(connection, sec * 10**9, raw)
    outcome = tmkit(tmp_path, "bag", "replay", "run", "-o", "scene.json")
    assert (outcome.code, "Traceback" in outcome.err) == (2, False)
    message = " ".join(outcome.err.split())
    assert "odometry is replayed if it is named, as topics=['/odom']" in message
    outcome = tmkit(tmp_path, "bag", "replay", "run", "--topic", "/odom", "-o", "scene.json")
    assert outcome.code == 0
    history = load_scene(tmp_path / "scene.json").stamped_poses("base_link")
    assert history is not None
    np.testing.assert_allclose(np.array(history.covariances), [SPREAD, 2 * SPREAD], rtol=1e-12)


def _odometry(kinds: Any, sec: int, covariance: Array) -> Any:
    """Return a message of rosbags: a frame at ``sec`` metres along x."""
    vector = kinds["geometry_msgs/msg/Vector3"](x=0.0, y=0.0, z=0.0)
    pose = kinds["geometry_msgs/msg/Pose"](
        position=kinds["geometry_msgs/msg/Point"](x=float(sec), y=0.0, z=0.0),
        orientation=kinds["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
    )
    uncertain = kinds["geometry_msgs/msg/PoseWithCovariance"](
        pose=pose, covariance=covariance.ravel()
    )
    twist = kinds["geometry_msgs/msg/Twist"](linear=vector, angular=vector)
    stamp = kinds["builtin_interfaces/msg/Time"](sec=sec, nanosec=0)
    return kinds["nav_msgs/msg/Odometry"](
        header=kinds["std_msgs/msg/Header"](stamp=stamp, frame_id="odom"),
        child_frame_id="base_link",
        pose=uncertain,
        twist=kinds["geometry_msgs/msg/TwistWithCovariance"](twist=twist, covariance=np.zeros(36)),
    )
