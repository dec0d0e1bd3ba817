"""ROS 2 bags: equal worlds after a replay, numbers as read by rosbags, and invalid bags."""

from __future__ import annotations

import contextlib
import itertools
import runpy
import shutil
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import FileFormatError, MissingFileError, OutputError, UnknownNameError
from tmkit.graph import Revolute, SceneGraph, configuration
from tmkit.graph.moments import joint_history
from tmkit.spatial import GaussianPose, Pose
from tmkit.spatial.converters import from_ros_pose, from_tf2
from tmkit.world import BagRecorder, Buffer, Header, JointState, Time, play_bag
from tmkit.world.bags import read_bag_info
from tmkit.world.messages import transform_message

rosbag2 = pytest.importorskip("rosbags.rosbag2")
from rosbags.highlevel import AnyReader  # noqa: E402
from rosbags.typesys import Stores, get_typestore  # noqa: E402

_STORE = get_typestore(Stores.ROS2_JAZZY)
_T0 = 1_700_000_000
STORAGES = ("mcap", "sqlite3")


def arm() -> SceneGraph:
    """Return a robot with one joint."""
    return SceneGraph().add_frame(
        "arm", "world", joint=Revolute([0, 0, 1], lower=-3.0, upper=3.0, name="elbow")
    )


def world(seed: int = 0, *, steps: int = 12) -> Buffer:
    """Return a buffer with stamped, static and uncertain poses, and values of a joint."""
    rng = np.random.default_rng(seed)
    buffer = Buffer(100.0, scene=arm().add_frame("tray 1", "arm", pose=Pose([0.1, 0.0, 0.3])))
    buffer.set_transform_static(
        transform_message(Pose.exp(rng.normal(size=6)), "world", "base", (0, 0))
    )
    buffer.update(lambda scene: scene.set_covariance("base", 1e-4 * np.eye(6)))
    for step in range(steps):
        stamp = (_T0 + step // 3, step % 3 * 333_333_333)
        for frame, parent in (("cup", "base"), ("spoon", "cup"), ("tray 2", "arm")):
            buffer.set_transform(
                transform_message(Pose.exp(rng.normal(size=6)), parent, frame, stamp)
            )
        position = [float(rng.uniform(-3.0, 3.0))]
        buffer.set_joint_states(JointState(Header(Time(*stamp)), ["elbow"], position))
    buffer.update(lambda scene: scene.set_covariance("tray 2", np.diag([1e-4] * 3 + [1e-3] * 3)))
    assert buffer.rejections == ()
    return buffer


@pytest.mark.parametrize("storage", STORAGES)
def test_a_world_comes_back_from_its_bag(storage: Any, tmp_path: Path) -> None:
    """All lookups at all stamps and between, joints and covariances; nothing is rejected."""
    there = world()
    with BagRecorder(tmp_path / "bag", storage=storage) as recorder:
        recorder.record(there.scene)
        recorder.record(there.scene)  # nothing is new
    here = Buffer(100.0, scene=arm())
    report = play_bag(tmp_path / "bag", here)
    assert (here.rejections, report.rejected, report.skipped) == ((), {}, ())
    assert report.counts == {
        "/tf": 36,
        "/tf_static": 2,
        "/joint_states": 12,
        "/poses/tray_2": 12,
        "/poses/base": 1,
    }
    a, b = there.scene, here.scene
    stamps = joint_history(a, "elbow")[0]
    assert np.array_equal(joint_history(b, "elbow"), joint_history(a, "elbow"))
    for stamp in [*stamps, *(stamps[:-1] + 0.1)]:
        q = configuration(a, stamp)
        assert np.array_equal(configuration(b, stamp), q)
        for frame, other in itertools.permutations(
            ["world", "base", "cup", "spoon", "tray 1", "tray 2"], 2
        ):
            poses = [scene.pose(frame, relative_to=other, stamp=stamp, q=q) for scene in (a, b)]
            assert poses[0].is_close(
                poses[1], translation_tolerance=1e-13, rotation_tolerance=1e-13
            )
    for frame in ("base", "tray 2", "cup"):
        assert b.edge_covariance(frame) == pytest.approx(a.edge_covariance(frame), abs=1e-15)
    assert b.stamped_poses("base") is None


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 99), st.sampled_from(STORAGES), st.integers(1, 9))
def test_what_is_recorded_as_it_comes_is_what_is_there(
    tmp_path: Path, seed: int, storage: Any, steps: int
) -> None:
    """A recorder called for each version writes the same as one for the last version."""
    shutil.rmtree(tmp_path / "bag", ignore_errors=True)
    steady, rng = Buffer(100.0, scene=arm()), np.random.default_rng(seed)
    with BagRecorder(tmp_path / "bag", storage=storage) as recorder:
        steady.on_change(recorder.record)
        for step in rng.permutation(steps):
            frame, parent = ("cup", "table") if rng.random() < 0.7 else ("table", "world")
            steady.set_transform(
                transform_message(Pose.exp(rng.normal(size=6)), parent, frame, (_T0 + int(step), 5))
            )
    here = Buffer(100.0, scene=arm())
    assert play_bag(tmp_path / "bag", here).rejected == {}
    for frame in steady.scene.frame_names:
        poses = steady.scene.stamped_poses(frame)
        if poses is not None:
            again = here.scene.stamped_poses(frame)
            assert again is not None
            assert np.array_equal(again.stamps, poses.stamps)
            assert all(a.is_close(b) for a, b in zip(again.poses, poses.poses, strict=True))
    assert "cup" in here.scene or "table" in here.scene


def test_rosbags_reads_the_same_numbers(tmp_path: Path) -> None:
    """With the definitions that the bag has in it, by rosbags' own reader: an independent check."""
    there = world()
    with BagRecorder(tmp_path / "bag") as recorder:
        recorder.record(there.scene)
    kinds, found = {}, {}
    with AnyReader([tmp_path / "bag"]) as reader:
        for connection, nanoseconds, raw in reader.messages():
            kinds[connection.topic] = connection.msgtype
            message: Any = reader.deserialize(raw, connection.msgtype)
            found.setdefault(connection.topic, []).append((nanoseconds, message))
    assert kinds["/tf"] == kinds["/tf_static"] == "tf2_msgs/msg/TFMessage"
    assert kinds["/joint_states"] == "sensor_msgs/msg/JointState"
    assert kinds["/poses/tray_2"] == "geometry_msgs/msg/PoseWithCovarianceStamped"
    for nanoseconds, message in found["/tf"]:
        (transform,) = message.transforms
        stamp = transform.header.stamp
        assert nanoseconds == stamp.sec * 1_000_000_000 + stamp.nanosec
        known = there.scene.stamped_poses(transform.child_frame_id)
        assert known is not None
        expected = known.at(stamp.sec + stamp.nanosec / 1e9)
        assert from_tf2(transform.transform).is_close(
            expected, translation_tolerance=1e-15, rotation_tolerance=1e-15
        )
    stamps, values = joint_history(there.scene, "elbow")
    assert [message.position.tolist() for _, message in found["/joint_states"]] == [
        [value] for value in values
    ]
    assert [nanoseconds / 1e9 for nanoseconds, _ in found["/joint_states"]] == stamps.tolist()
    pose = from_ros_pose(found["/poses/tray_2"][3][1].pose)
    assert pose.covariance == pytest.approx(there.scene.edge_covariance("tray 2"), abs=1e-18)
    static = [message.transforms[0].child_frame_id for _, message in found["/tf_static"]]
    assert sorted(static) == ["base", "tray 1"]
    assert max(n for n, _ in found["/tf_static"]) < min(n for n, _ in found["/tf"])


# --------------------------------------------------------------------------- bags of other programs


def written(path: Path, *messages: tuple[str, str, int, Any], storage: str = "MCAP") -> Path:
    """Write messages (topic, type, nanoseconds, fields or bytes) with rosbags."""
    writer = rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin[storage])
    with writer:
        connections: dict[str, Any] = {}
        for topic, kind, nanoseconds, message in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=_STORE)
            raw = message if isinstance(message, bytes) else _STORE.serialize_cdr(message, kind)
            writer.write(connections[topic], nanoseconds, raw)
    return path


def message_of(kind: str, **fields: Any) -> Any:
    """Return a message of rosbags."""
    return _STORE.types[kind](**fields)


def header(sec: int, frame: str) -> Any:
    """Return a header."""
    stamp = message_of("builtin_interfaces/msg/Time", sec=sec, nanosec=0)
    return message_of("std_msgs/msg/Header", stamp=stamp, frame_id=frame)


def pose_message(sec: int, x: float) -> Any:
    """Return a pose in the map with 10 cm along x of the map, rotated by 90 degrees about z."""
    position = message_of("geometry_msgs/msg/Point", x=x, y=0.0, z=0.0)
    half = float(np.sqrt(0.5))
    orientation = message_of("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=half, w=half)
    covariance = np.zeros(36)
    covariance[0] = 0.01
    pose = message_of("geometry_msgs/msg/Pose", position=position, orientation=orientation)
    pose = message_of("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=covariance)
    return message_of(
        "geometry_msgs/msg/PoseWithCovarianceStamped", header=header(sec, "map"), pose=pose
    )


_POSE, _TEXT, _TF = (
    "geometry_msgs/msg/PoseWithCovarianceStamped",
    "std_msgs/msg/String",
    "tf2_msgs/msg/TFMessage",
)


@pytest.mark.parametrize("storage", ["MCAP", "SQLITE3"])
def test_poses_with_covariance_of_a_localisation(storage: str, tmp_path: Path) -> None:
    """In order of time, by a clock; the covariance is turned into the axes of the frame."""
    text = message_of(_TEXT, data="hello")
    bag = written(
        tmp_path / "bag",
        ("/amcl_pose", _POSE, 3_000_000_000, pose_message(3, 0.3)),
        ("/chat", _TEXT, 5, text),
        ("/amcl_pose", _POSE, 1_000_000_000, pose_message(1, 0.1)),
        storage=storage,
    )
    times: list[float] = []
    buffer = Buffer(10.0)
    report = play_bag(bag, buffer, poses={"/amcl_pose": "base_link"}, wait_until=times.append)
    assert times == [1.0, 3.0]
    assert (report.counts, report.skipped) == ({"/amcl_pose": 2}, ("/chat",))
    assert buffer.lookup_transform(
        "map", "base_link", 2.0
    ).transform.translation.x == pytest.approx(0.2)
    # x of the map is -y of the frame
    assert buffer.scene.edge_covariance("base_link")[1, 1] == pytest.approx(0.01)
    assert buffer.scene.edge_covariance("base_link")[0, 0] == pytest.approx(0.0, abs=1e-12)
    file = next(iter(bag.glob("*.mcap" if storage == "MCAP" else "*.db3")))
    assert play_bag(file, Buffer(10.0), poses={"/amcl_pose": "base_link"}).counts == {
        "/amcl_pose": 2
    }


def test_what_a_buffer_refuses_is_counted(tmp_path: Path) -> None:
    """Joints that are not in the scene; the rest of the bag is replayed."""
    with BagRecorder(tmp_path / "bag") as recorder:
        recorder.record(world().scene)
    buffer = Buffer(100.0)
    report = play_bag(tmp_path / "bag", buffer, topics=("/joint_states", "/tf"))
    assert report.rejected == {"/joint_states": 12}
    assert report.counts == {"/joint_states": 12, "/tf": 36}
    assert "elbow" in buffer.rejections[0]
    assert set(report.skipped) == {"/tf_static", "/poses/tray_2", "/poses/base"}


# -------------------------------------------------------------------------------------- broken bags


def test_wrong_bags_are_rejected(tmp_path: Path) -> None:
    """The error names file and topic, and what was expected."""
    text = ("/chat", _TEXT, 5, message_of(_TEXT, data="hello"))
    bag = written(tmp_path / "chat", text)
    with pytest.raises(
        FileFormatError, match=r"chat: has no topic of tf2_msgs/msg/TFMessage, .*, but /chat"
    ):
        play_bag(bag, Buffer())
    with pytest.raises(
        FileFormatError,
        match=r"chat: topic '/chat' is of type std_msgs/msg/String: expected tf2_msgs",
    ):
        play_bag(bag, Buffer(), topics=("/chat",))
    with pytest.raises(UnknownNameError, match="chat: unknown topic '/chap'; did you mean '/chat'"):
        play_bag(bag, Buffer(), topics=("/chap",))
    with pytest.raises(UnknownNameError, match="unknown topic '/pose'"):
        play_bag(bag, Buffer(), poses={"/pose": "base"})
    pose = written(tmp_path / "pose", ("/p", _POSE, 5, pose_message(1, 0.0)))
    with pytest.raises(
        FileFormatError, match=r"topic '/p' is of type .*: its frame is unknown; pass poses="
    ):
        play_bag(pose, Buffer(), topics=("/p",))
    for raw, reason in (
        (b"", "CDR"),
        (b"\0\1\0\0\xff\xff\xff\xff" + bytes(80), "Invalid sequence length 4294967295"),
    ):
        broken = written(tmp_path / f"broken {len(raw)}", ("/tf", _TF, 2_500_000_000, raw))
        with pytest.raises(
            FileFormatError, match=rf"broken \d+: topic '/tf' at 2.5\d* s: .*{reason}"
        ) as caught:
            play_bag(broken, Buffer())
        assert caught.value.topic == "/tf"
    large = written(tmp_path / "large", ("/tf", _TF, 5, bytes(5000)))
    with pytest.raises(
        FileFormatError,
        match=r"large: topic '/tf' at .* s: a message of 5,000 bytes, expected at most 99",
    ):
        play_bag(large, Buffer(), max_message=99)
    with pytest.raises(
        FileFormatError, match=r"large: is too large: [\d,]+ bytes, expected at most 1,000"
    ):
        play_bag(large, Buffer(), max_bytes=1000)
    with pytest.raises(MissingFileError, match=r"no bag at .*nowhere"):
        play_bag(tmp_path / "nowhere", Buffer())


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _garbage(file: Path) -> None:
    file.write_bytes(np.random.default_rng(0).bytes(5000))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("damage", [_cut, _garbage, Path.unlink])
@pytest.mark.parametrize("what", ["data", "metadata"])
def test_broken_files_are_named(
    storage: Any, damage: Callable[[Path], None], what: str, tmp_path: Path
) -> None:
    """Half a file, noise, none."""
    bag = tmp_path / "bag"
    with BagRecorder(bag, storage=storage) as recorder:
        recorder.record(world().scene)
    metadata = bag / "metadata.yaml"
    damage(
        metadata if what == "metadata" else next(file for file in bag.iterdir() if file != metadata)
    )
    with pytest.raises(FileFormatError, match=r"bag\S*: is not a readable bag"):
        play_bag(bag, Buffer())


@settings(
    max_examples=scaled_examples(0.4),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from(STORAGES),
    st.lists(st.tuples(st.floats(0.0, 0.999), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_bytes_end_in_an_error_or_a_report(
    tmp_path: Path, storage: Any, damage: list[tuple[float, int]]
) -> None:
    """Whatever byte is wrong: no other exception."""
    bag = tmp_path / storage
    if not bag.exists():
        with BagRecorder(bag, storage=storage) as recorder:
            recorder.record(world(steps=3).scene)
    file = next(file for file in bag.iterdir() if file.suffix in (".mcap", ".db3"))
    copy = tmp_path / f"damaged{file.suffix}"
    data = bytearray(file.read_bytes())
    for place, value in damage:
        data[int(place * len(data))] = value
    copy.write_bytes(data)
    with contextlib.suppress(FileFormatError):
        assert (
            sum(play_bag(copy, Buffer(scene=arm()), poses={}).counts.values()) <= 3 * 3 + 3 + 3 + 3
        )


def _bits(data: bytes, count: int) -> list[int]:
    """Return numbers of bits, spread over some bytes, the last of them included."""
    return np.unique(np.linspace(0, 8 * len(data) - 1, count).astype(int)).tolist()


def _flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


@pytest.mark.parametrize("storage", STORAGES)
def test_any_changed_bit_of_a_bag_is_found(storage: Any, tmp_path: Path) -> None:
    """A bag with any changed bit is rejected, and nothing is replayed."""
    bag = tmp_path / "bag"
    with BagRecorder(bag, storage=storage) as recorder:
        recorder.record(world().scene)
    assert play_bag(bag, Buffer(scene=arm())).counts["/tf"] == 36
    for file in bag.iterdir():
        data = file.read_bytes()
        for bit in [*_bits(data, 500), *range(8 * len(data) - 8 * 20, 8 * len(data))]:
            file.write_bytes(_flipped(data, bit))
            buffer = Buffer(scene=arm())
            before = buffer.scene
            with pytest.raises(FileFormatError, match=r"bag\S*: is not a readable bag"):
                play_bag(bag, buffer)
            assert buffer.scene is before
        file.write_bytes(data)
    assert play_bag(bag, Buffer(scene=arm())).counts["/tf"] == 36


def test_any_changed_bit_of_a_file_alone_is_found(tmp_path: Path) -> None:
    """An MCAP file without its folder has checksums; the summary is always checked."""
    with BagRecorder(tmp_path / "bag") as recorder:
        recorder.record(world(steps=60).scene)
    file = tmp_path / "alone.mcap"
    data = (tmp_path / "bag" / "bag.mcap").read_bytes()
    summary = int.from_bytes(data[-28:-20], "little")
    for bit in [
        *_bits(data, 1_000),
        *range(8 * (summary - 13), 8 * summary),
        *range(8 * len(data) - 296, 8 * len(data)),
    ]:
        file.write_bytes(_flipped(data, bit))
        buffer = Buffer(scene=arm())
        before = buffer.scene
        with pytest.raises(FileFormatError, match=r"alone.mcap: is not a readable bag"):
            play_bag(file, buffer)
        assert buffer.scene is before
        if bit >= 8 * summary:
            with pytest.raises(FileFormatError, match=r"alone.mcap: is not a readable bag"):
                read_bag_info(file)


def test_checksums_are_those_of_the_format(tmp_path: Path) -> None:
    """Checksums of chunks, data section and summary equal those of the MCAP specification."""
    with SceneGraph().edit() as edit:
        for number in range(9_000):
            edit.add_frame(f"f{number}", "world", pose=Pose([number, 0, 0]))
    with BagRecorder(tmp_path / "bag") as recorder:
        recorder.record(edit.finish())
    data = (tmp_path / "bag" / "bag.mcap").read_bytes()
    at, chunks, end = 8, 0, 0
    while at < len(data) - 8:
        kind, length = struct.unpack_from("<BQ", data, at)
        content = data[at + 9 : at + 9 + length]
        if kind == 6:
            _, _, size, checksum, _, records = struct.unpack_from("<QQQIIQ", content)
            assert (size, records, checksum) == (
                records,
                len(content) - 40,
                zlib.crc32(content[40:]),
            )
            chunks += 1
        elif kind == 15:
            assert struct.unpack("<I", content) == (zlib.crc32(data[:at]),)
            end = at
        elif kind == 2:
            start, _, checksum = struct.unpack("<QQI", content)
            assert start == end + 13
            assert checksum == zlib.crc32(data[start : at + 9 + 16])
        at += 9 + length
    assert chunks > 1
    assert end > 0
    with AnyReader([tmp_path / "bag"]) as reader:
        assert sum(1 for _ in reader.messages()) == 9_000


def test_bags_without_checksums_are_read(tmp_path: Path) -> None:
    """Bags of other programs, and bags with metadata rewritten by another program, are read."""
    bag = written(tmp_path / "other", ("/amcl_pose", _POSE, 5, pose_message(1, 0.0)))
    assert play_bag(bag, Buffer(), poses={"/amcl_pose": "base"}).counts == {"/amcl_pose": 1}
    with BagRecorder(tmp_path / "bag") as recorder:
        recorder.record(world().scene)
    metadata = tmp_path / "bag" / "metadata.yaml"
    lines = metadata.read_text().splitlines(keepends=True)
    assert [line.split()[:2] for line in lines[-2:]] == [["#", "sha256"]] * 2
    metadata.write_text("".join(lines[:-2]))
    assert play_bag(tmp_path / "bag", Buffer(scene=arm())).counts["/tf"] == 36


def test_bags_that_lead_elsewhere_or_are_compressed(tmp_path: Path) -> None:
    """A link out of the folder, and files whose size is not known before."""
    secret = written(tmp_path / "secret", ("/tf", _TF, 5, b""))
    bag = written(tmp_path / "bag", ("/tf", _TF, 5, b""))
    file = next(iter(bag.glob("*.mcap")))
    file.unlink()
    file.symlink_to(next(iter(secret.glob("*.mcap"))))
    with pytest.raises(FileFormatError, match=r"bag.mcap: is a link out of the folder of the bag"):
        play_bag(bag, Buffer())
    writer = rosbag2.Writer(
        tmp_path / "zstd", version=9, storage_plugin=rosbag2.StoragePlugin.SQLITE3
    )
    writer.set_compression(rosbag2.CompressionMode.FILE, rosbag2.CompressionFormat.ZSTD)
    with writer:
        writer.write(writer.add_connection("/tf", _TF, typestore=_STORE), 5, b"")
    with pytest.raises(
        FileFormatError, match="zstd: is compressed: 'ros2 bag convert' makes one that is not"
    ):
        play_bag(tmp_path / "zstd", Buffer())


def test_a_recorder_overwrites_nothing(tmp_path: Path) -> None:
    """Nor does it make a bag of an unknown kind."""
    (tmp_path / "there").mkdir()
    with pytest.raises(OutputError, match=r"there: cannot be written: .*exists already"):
        BagRecorder(tmp_path / "there")
    with pytest.raises(UnknownNameError, match="unknown storage 'sqlite'; did you mean 'sqlite3'"):
        BagRecorder(tmp_path / "other", storage="sqlite")  # type: ignore[arg-type]
    assert not (tmp_path / "other").exists()


def test_a_recorder_of_a_world_without_time(tmp_path: Path) -> None:
    """Static poses alone make a bag; frames whose topics would be the same have two."""
    scene = SceneGraph()
    for name in ("a b", "a_b", "a-b"):
        scene = scene.add_frame(name, "world", pose=GaussianPose(covariance=np.eye(6)))
    with BagRecorder(tmp_path / "bag") as recorder:
        recorder.record(scene)
    buffer = Buffer()
    assert len(play_bag(tmp_path / "bag", buffer).counts) == 4
    assert all(buffer.scene.edge_covariance(name)[0, 0] == 1.0 for name in ("a b", "a_b", "a-b"))


def test_the_example_replays_what_it_records(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It compares the two worlds itself."""
    monkeypatch.setattr(sys, "argv", ["replay_bag", "--out", str(tmp_path)])
    runpy.run_path(
        str(Path(__file__).parents[2] / "examples" / "replay_bag.py"), run_name="__main__"
    )
    assert "the two worlds differ by 0.0e+00 m at most" in capsys.readouterr().out
