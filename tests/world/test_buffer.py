"""Buffer against the laws of tf2: the ideas of its test cases, with results computed by hand.

Ideas and expected numbers follow ROS 2's ``geometry2``: ``buffer_core_test.cpp``,
``simple_tf2_core.cpp``, ``cache_unittest.cpp``, ``static_cache_test.cpp``, ``velocity_test.cpp``
and tf2_py's ``test_buffer_core.py``.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from tmkit.errors import ArgumentError, SceneError
from tmkit.graph import Continuous, Fixed, Mimic, Prismatic, Revolute, SceneGraph, twist
from tmkit.spatial import Pose
from tmkit.world import (
    Buffer,
    ConnectivityException,
    ExtrapolationException,
    Header,
    JointState,
    LookupException,
    Quaternion,
    Time,
    Transform,
    TransformException,
    TransformStamped,
    Vector3,
)
from tmkit.world.messages import InvalidArgumentException, TimeoutException


def message(
    parent: str,
    child: str,
    stamp: object,
    xyz: tuple[float, float, float] = (0, 0, 0),
    yaw: float = 0.0,
) -> TransformStamped:
    """Return a transform that turns about z."""
    rotation = Quaternion(0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2))
    return TransformStamped(Header(stamp, parent), child, Transform(Vector3(*xyz), rotation))  # type: ignore[arg-type]


def numbers(found: TransformStamped) -> list[float]:
    """Return x, y, z and the quaternion of a transform."""
    t, r = found.transform.translation, found.transform.rotation
    return [t.x, t.y, t.z, r.x, r.y, r.z, r.w]


I_SHAPE = {("a", "b"): (1, 0, 0), ("b", "c"): (1, 0, 0)}
V_SHAPE = I_SHAPE | {("a", "f"): (0, 1, 0), ("f", "g"): (0, 1, 0)}
Y_SHAPE = I_SHAPE | {("b", "d"): (0, 1, 0), ("d", "e"): (0, 1, 0)}
TWO_TREES = V_SHAPE | {("1", "2"): (1, 0, 0)}


def places(
    edges: dict[tuple[str, str], tuple[float, float, float]],
) -> dict[str, tuple[str, np.ndarray]]:
    """Return the root and the place of each frame of a tree without rotations."""
    found: dict[str, tuple[str, np.ndarray]] = {}
    for (parent, child), way in edges.items():
        root, place = found.setdefault(parent, (parent, np.zeros(3)))
        found[child] = (root, place + way)
    return found


@pytest.mark.parametrize("edges", [I_SHAPE, V_SHAPE, Y_SHAPE, TWO_TREES], ids="ivy2")
@pytest.mark.parametrize("stamp", [1.0, 10.0, 0.0])
@pytest.mark.parametrize("spacing", [0.0, 0.001, 1.0])
def test_lookups_between_all_pairs_of_a_tree(
    edges: dict[tuple[str, str], tuple[float, float, float]], stamp: float, spacing: float
) -> None:
    """Straight, forked and branching trees (tf2's i, v, y) at, between and after stamps."""
    buffer = Buffer()
    for (parent, child), way in edges.items():
        for when in {max(stamp - spacing / 2, 0.0), stamp + spacing / 2}:
            assert buffer.set_transform(message(parent, child, when, way), "authority")
    expected = places(edges)
    for target, source in itertools.product(expected, expected):
        if expected[target][0] != expected[source][0]:
            assert not buffer.can_transform(target, source, stamp)
            with pytest.raises(ConnectivityException, match="in different trees"):
                buffer.lookup_transform(target, source, stamp)
            continue
        found = buffer.lookup_transform(target, source, stamp)
        assert (found.header.frame_id, found.child_frame_id) == (target, source)
        assert numbers(found) == pytest.approx(
            [*(expected[source][1] - expected[target][1]), 0, 0, 0, 1], abs=1e-12
        )
        if stamp:
            assert found.header.stamp == Time(int(stamp), 0)


def test_a_ring_of_eighths() -> None:
    """Frames on the unit circle, each rotated by 45 degrees: tf2's ``ring_45``, with inverses."""
    buffer, frames = Buffer(), "abcdefghi"
    step = Pose.from_rpy([math.sqrt(0.5) - 1, math.sqrt(0.5), 0], [0, 0, math.pi / 4])
    for one, other in itertools.pairwise(frames):
        x, y, _ = step.translation
        assert buffer.set_transform(message(one, other, 1.0, (float(x), float(y), 0), math.pi / 4))
    for (i, target), (j, source) in itertools.product(enumerate(frames), enumerate(frames)):
        angle = (j - i) * math.pi / 4
        found = Pose.from_array(np.array(numbers(buffer.lookup_transform(target, source, 1.0))))
        expected = Pose.from_rpy([math.cos(angle) - 1, math.sin(angle), 0], [0, 0, angle])
        metres, radians = found.distance(expected)
        assert metres < 1e-12
        assert radians < 1e-7


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (message("same", "same", 1), "needs two frames"),
        (message("a", "", 1), "needs two frames"),
        (message("a", "/", 1), "needs two frames"),
        (message("", "b", 1), "needs two frames"),
        (message("/", "b", 1), "needs two frames"),
        (message("a", "b", 1, (math.nan, 0, 0)), "expected finite numbers"),
        (message("a", "b", 1, (0, 0, math.inf)), "expected finite numbers"),
        (
            TransformStamped(Header(Time(1), "a"), "b", Transform(Vector3(), Quaternion(w=0.0))),
            "norm 1",
        ),
        (
            TransformStamped(Header(Time(1), "a"), "b", Transform(Vector3(), Quaternion(x=1.0))),
            "norm 1",
        ),
        (message("a", "b", math.nan), "finite number of seconds"),
        (message("a", "b", "now"), "finite number of seconds"),
        (SimpleNamespace(header=None), "no attribute"),
        ("text", "no attribute"),
    ],
)
def test_what_tf2_ignores_is_ignored_and_noted(broken: object, why: str) -> None:
    """Self transforms, missing names, NaN and quaternions of another norm change nothing."""
    buffer = Buffer()
    before = buffer.scene
    assert not buffer.set_transform(broken, "someone")
    assert not buffer.set_transform_static(broken, "someone")
    assert buffer.scene is before
    assert len(buffer.rejections) == 2
    assert buffer.rejections[0].startswith("someone: ")
    assert why in buffer.rejections[0]


def test_rejections_are_bounded() -> None:
    """The last 100 are kept."""
    buffer = Buffer()
    for i in range(250):
        buffer.set_transform("text", str(i))
    assert [text.split(":")[0] for text in buffer.rejections] == [str(i) for i in range(150, 250)]


def test_slashes_in_front_are_stripped_from_messages_and_rejected_in_lookups() -> None:
    """As in tf2, of which the old ROS allowed ``/map``."""
    buffer = Buffer()
    assert buffer.set_transform(message("/map", "/base", 1.0))
    assert buffer.can_transform("map", "base", 1.0)
    for name in ("/map", ""):
        with pytest.raises(InvalidArgumentException, match="without a leading"):
            buffer.lookup_transform(name, "base", 1.0)
        with pytest.raises(InvalidArgumentException, match="without a leading"):
            buffer.lookup_transform("base", name, 1.0, 1000.0)  # not waited for
    with pytest.raises(InvalidArgumentException, match="finite number of seconds"):
        buffer.lookup_transform("map", "base", "now")


def test_kinds_of_errors() -> None:
    """Unknown frames, times out of range and unconnected frames raise transform exceptions."""
    buffer = Buffer()
    with pytest.raises(LookupException, match="'b'"):
        buffer.lookup_transform("a", "b", 1.0)
    buffer.set_transform(message("parent", "child", 10.0))
    with pytest.raises(LookupException, match="unknown frame 'paren'"):
        buffer.lookup_transform("paren", "child", 10.0)
    buffer.set_transform(message("parent", "child", 11.0))
    with pytest.raises(
        ExtrapolationException,
        match=r"extrapolation into the future.*\[child\] to frame \[parent\]",
    ):
        buffer.lookup_transform("parent", "child", 12.0)
    with pytest.raises(ExtrapolationException, match="extrapolation into the past"):
        buffer.lookup_transform("child", "parent", 9.0)
    buffer.set_transform(message("other", "leaf", 10.0))
    with pytest.raises(ConnectivityException, match="different trees"):
        buffer.lookup_transform("parent", "leaf", 10.0)
    for kind in (LookupException, ExtrapolationException, ConnectivityException, TimeoutException):
        assert issubclass(kind, TransformException)
    assert buffer.can_transform("parent", "child", 12.0, 0, True)[0] is False
    assert "into the future" in buffer.can_transform("parent", "child", 12.0, 0, True)[1]
    assert buffer.can_transform("parent", "child", 10.5, 0, True) == (True, "")


def test_one_value_is_known_at_its_stamp_alone() -> None:
    """tf2's ``ExtrapolationFromOneValue``."""
    buffer = Buffer()
    buffer.set_transform(message("parent", "child", Time(0, 1000)))
    assert not buffer.can_transform("parent", "child", Time(0, 1))
    assert not buffer.can_transform("parent", "child", Time(0, 10000))
    assert buffer.can_transform("parent", "child", Time(0, 1000))
    assert buffer.can_transform("parent", "child")


def test_a_frame_is_itself_at_any_time() -> None:
    """The transform of a frame to itself is the identity, also for unknown frames, as in tf2."""
    buffer = Buffer()
    found = buffer.lookup_transform("nowhere", "nowhere", 5.0)
    assert numbers(found) == [0, 0, 0, 0, 0, 0, 1]
    assert found.header.stamp == Time(5)


def test_no_error_from_above_the_common_parent() -> None:
    """tf2's ``NoExtrapolationExceptionFromParent``: a history above the way does not matter."""
    buffer = Buffer()
    for stamp, child in itertools.product((0.0, 1.0), ("a", "b")):
        buffer.set_transform(message("parent", child, stamp + 10, (1, 0, 0)))
    buffer.set_transform(message("grandparent", "parent", 1.0))
    assert buffer.can_transform("a", "b", 10.5)
    assert not buffer.can_transform("grandparent", "b", 10.5)


def test_latest_common_time() -> None:
    """The latest common time is the minimum of the newest stamps; zero if all is static."""
    buffer = Buffer()
    for stamp in (1.0, 3.0, 2.0):
        buffer.set_transform(message("a", "b", stamp))
    assert buffer.get_latest_common_time("a", "b") == Time(3)
    buffer.set_transform(message("b", "c", 2.5))
    assert buffer.get_latest_common_time("a", "c") == Time(2, 500_000_000)
    assert buffer.lookup_transform("a", "c").header.stamp == Time(2, 500_000_000)
    buffer.set_transform_static(message("c", "d", 99.0, (0, 0, 2)))
    assert buffer.lookup_transform("a", "d").header.stamp == Time(2, 500_000_000)
    assert buffer.get_latest_common_time("c", "d") == Time(0)
    assert numbers(buffer.lookup_transform("c", "d"))[:3] == [0, 0, 2]
    buffer.set_transform(message("b", "late", 4.0))  # after all that is known of b in a
    with pytest.raises(ExtrapolationException, match="into the past"):
        buffer.lookup_transform("a", "late")
    with pytest.raises(LookupException, match="nothing"):
        buffer.get_latest_common_time("a", "nothing")


def test_stamps_are_found_again() -> None:
    """A lookup at the time of the latest lookup succeeds, also at times of this century."""
    buffer = Buffer()
    for i in range(50):
        stamp = Time(1_790_000_000 + i // 30, (i % 30) * 33_333_333 + i)
        buffer.set_transform(message("a", "b", stamp, (i, 0, 0)))
        found = buffer.lookup_transform("a", "b").header.stamp
        # half a step of doubles
        assert abs((found.sec - stamp.sec) * 1e9 + found.nanosec - stamp.nanosec) <= 120
        assert buffer.lookup_transform("a", "b", found).transform.translation.x == i
        assert buffer.lookup_transform("a", "b", stamp).header.stamp == stamp
    # like rclpy.time.Time
    rclpy = SimpleNamespace(nanoseconds=1_790_000_000 * 10**9 + 5 * 33_333_333 + 5)
    assert buffer.lookup_transform("a", "b", rclpy).transform.translation.x == 5


def test_out_of_order_and_reverse_order_are_one() -> None:
    """tf2's repeatability in both orders: what was said of a stamp is the answer there."""
    forth, back = Buffer(), Buffer()
    stamps = [1.0 + i / 100 for i in range(100)]
    for stamp in stamps:
        assert forth.set_transform(message("a", "b", stamp, (stamp, 0, 0)))
    for stamp in reversed(stamps):
        assert back.set_transform(message("a", "b", stamp, (stamp, 0, 0)))
    for stamp in stamps:
        assert numbers(forth.lookup_transform("a", "b", stamp))[0] == stamp
        assert numbers(back.lookup_transform("a", "b", stamp))[0] == stamp
    assert forth.scene == back.scene


def test_duplicates() -> None:
    """A repeated pose changes nothing; another pose of the same stamp is rejected."""
    buffer = Buffer()
    for _ in range(100):
        assert buffer.set_transform(message("a", "b", 1.0, (1, 0, 0)))
    assert len(buffer.scene.stamped_poses("b")) == 1  # type: ignore[arg-type]
    assert not buffer.set_transform(message("a", "b", 1.0, (2, 0, 0)), "liar")
    assert buffer.rejections == ("liar: frame 'b' has a pose at 1 s already",)
    assert numbers(buffer.lookup_transform("a", "b", 1.0))[0] == 1


def test_too_old_is_rejected_and_old_is_forgotten() -> None:
    """Poses older than the cache time before the newest are removed or rejected."""
    # like rclpy.duration.Duration
    buffer = Buffer(cache_time=SimpleNamespace(nanoseconds=10_000_000_000))
    for stamp in range(25):
        buffer.set_transform(message("a", "b", float(stamp)))
    assert buffer.scene.stamped_poses("b").stamps.tolist() == list(range(14, 25))  # type: ignore[union-attr]
    assert not buffer.set_transform(message("a", "b", 13.9))
    assert "too old" in buffer.rejections[-1]
    assert buffer.set_transform(message("a", "b", 14.5))
    assert not buffer.can_transform("a", "b", 13.0)
    with pytest.raises(SceneError, match="window"):
        Buffer(cache_time=0)
    with pytest.raises(SceneError, match="room for one"):
        Buffer(capacity=0)


@pytest.mark.parametrize("turn", [0.5, math.pi / 2, 3.0, -2.0])
def test_interpolation(turn: float) -> None:
    """Straight lines and uniform rotations are interpolated exactly, as in tf2."""
    buffer = Buffer()
    buffer.set_transform(message("a", "b", 1.0, (0, -2, 4)))
    buffer.set_transform(message("a", "b", 2.0, (10, 2, 4), turn))
    for fraction in np.linspace(0, 1, 11):
        found = numbers(buffer.lookup_transform("a", "b", 1.0 + float(fraction)))
        half = fraction * turn / 2
        expected = [10 * fraction, -2 + 4 * fraction, 4, 0, 0, math.sin(half), math.cos(half)]
        assert found == pytest.approx(expected, abs=1e-9)


def test_static_transforms_hold_for_all_time_and_mix_with_moving_ones() -> None:
    """A static edge does not bound the time of a way; static and moving take each other's place."""
    buffer = Buffer()
    buffer.set_transform_static(message("base", "camera", 5.0, (0, 0, 1)))
    buffer.set_transform(message("map", "base", 1.0, (1, 0, 0)))
    buffer.set_transform(message("map", "base", 2.0, (3, 0, 0)))
    assert numbers(buffer.lookup_transform("map", "camera", 1.5))[:3] == [2, 0, 1]
    for stamp in (0, 1e-3, 1e9):
        assert numbers(buffer.lookup_transform("base", "camera", stamp))[:3] == [0, 0, 1]
    buffer.set_transform_static(message("map", "base", 0.0, (7, 0, 0)))
    assert numbers(buffer.lookup_transform("map", "camera", 1e6))[:3] == [7, 0, 1]
    buffer.set_transform(message("map", "base", 8.0, (8, 0, 0)))
    assert not buffer.can_transform("map", "base", 1e6)
    assert numbers(buffer.lookup_transform("map", "base", 8.0))[:3] == [8, 0, 0]


def test_clear_forgets_moving_transforms_and_keeps_static_ones() -> None:
    """As with tf2's ``clear``, the static transform stays and the moving one is removed."""
    buffer = Buffer()
    buffer.set_transform_static(message("foo", "bar", 0.0))
    buffer.set_transform(message("bar", "baz", 1.0))
    buffer.clear()
    assert buffer.can_transform("foo", "bar", 1.0)
    assert not buffer.can_transform("bar", "baz", 1.0)
    assert not buffer.can_transform("bar", "baz")
    with pytest.raises(ExtrapolationException, match="no stamped pose yet"):
        buffer.lookup_transform("foo", "baz")
    assert buffer.set_transform(message("bar", "baz", 0.5))  # also an older one
    assert buffer.can_transform("foo", "baz", 0.5)


def test_loops_are_rejected() -> None:
    """tf2 accepts a loop and fails at each lookup; here the closing transform is rejected."""
    buffer = Buffer()
    buffer.set_transform(message("a", "b", 1.0))
    buffer.set_transform(message("b", "c", 1.0))
    assert not buffer.set_transform(message("c", "a", 1.0))
    assert (
        "frame 'a' cannot have parent 'c', which is itself or its descendant"
        in buffer.rejections[-1]
    )
    assert buffer.can_transform("a", "c", 1.0)


def test_another_parent() -> None:
    """A new parent begins a new history of the frame; histories are not mixed."""
    buffer = Buffer()
    for frame in ("table", "hand"):
        buffer.set_transform_static(
            message("map", frame, 0, (0, 0, 1) if frame == "hand" else (1, 0, 0))
        )
    for stamp in (1.0, 2.0):
        buffer.set_transform(message("table", "cup", stamp, (stamp, 0, 0)))
    assert buffer.set_transform(message("hand", "cup", 3.0, (0, 1, 0)))
    assert numbers(buffer.lookup_transform("map", "cup", 3.0))[:3] == [0, 1, 1]
    assert not buffer.can_transform("map", "cup", 2.5)
    assert not buffer.set_transform(message("table", "cup", 2.5))
    assert "has parent 'hand'" in buffer.rejections[-1]
    assert buffer.set_transform(message("table", "cup", 4.0))
    assert buffer.scene.parent("cup") == "table"
    assert buffer.set_transform(message("odom", "map", 4.0, (5, 0, 0)))  # a root gets a parent
    assert numbers(buffer.lookup_transform("odom", "cup", 4.0))[:3] == [6, 0, 0]


def test_time_travel_through_a_fixed_frame() -> None:
    """The past position of a ball in the present robot frame, with a fixed world."""
    buffer = Buffer()
    for stamp in (0.0, 1.0, 2.0):
        buffer.set_transform(
            message("world", "robot", 10 + stamp, (stamp, 0, 0), stamp * math.pi / 2)
        )
        buffer.set_transform(message("robot", "ball", 10 + stamp, (1, 0, 0)))
    found = buffer.lookup_transform_full("robot", 11.0, "ball", 10.0, "world")
    assert numbers(found)[:3] == pytest.approx([0, 0, 0], abs=1e-12)  # the robot drove there
    assert (found.header.frame_id, found.child_frame_id, found.header.stamp) == (
        "robot",
        "ball",
        Time(11),
    )
    found = buffer.lookup_transform_full("robot", 10.0, "robot", 12.0, "world")
    assert numbers(found) == pytest.approx([2, 0, 0, 0, 0, 1, 0], abs=1e-9)
    assert buffer.can_transform_full("robot", 11.0, "ball", 10.0, "world")
    assert buffer.can_transform_full("robot", 13.0, "ball", 10.0, "world", 0, True)[0] is False
    assert buffer.lookup_transform_full("robot", 0, "ball", 10.0, "world").header.stamp == Time(12)
    with pytest.raises(ExtrapolationException, match="into the future"):
        buffer.lookup_transform_full("robot", 13.0, "ball", 10.0, "world")
    with pytest.raises(LookupException, match="elsewhere"):
        buffer.lookup_transform_full("robot", 11.0, "ball", 10.0, "elsewhere")


def test_helicopter() -> None:
    """The tip of a rotor on a helicopter that climbs and turns has its analytic position."""
    buffer = Buffer(capacity=4000)
    spin, turn, climb = 4 * math.pi, 0.3, 2.0
    for i in range(401):
        t = i / 100
        buffer.set_transform(message("world", "helicopter", t + 5, (0, 0, climb * t), turn * t))
        buffer.set_transform(message("helicopter", "rotor", t + 5, (0, 0, 1), spin * t))
    buffer.set_transform_static(message("rotor", "tip", 0, (3, 0, 0)))
    for t in (0.0, 0.123, 1.005, 3.9999):
        angle = (spin + turn) * t
        expected = [3 * math.cos(angle), 3 * math.sin(angle), climb * t + 1]
        assert numbers(buffer.lookup_transform("world", "tip", 5 + t))[:3] == pytest.approx(
            expected, abs=1e-6
        )
        around = twist(buffer.scene, "tip", relative_to="world", stamp=5 + max(t, 1e-4)).numbers
        speed = 3 * (spin + turn)
        at = (spin + turn) * max(t, 1e-4)
        assert around[1] == pytest.approx([0, 0, spin + turn], abs=1e-6)
        assert around[0] == pytest.approx(
            [-speed * math.sin(at), speed * math.cos(at), climb], abs=1e-6
        )


def test_velocity_along_a_square() -> None:
    """tf2's linear velocities: a frame that moves along a square, observed from fixed frames."""
    buffer = Buffer()
    place = np.array([-0.1, 0, 0])
    sides = [(1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
    for i in range(60):
        place = place + np.array(sides[i // 10]) * 0.1
        stamp = 100 + i / 10
        buffer.set_transform(message("foo", "bar", stamp, tuple(place.tolist())))
        buffer.set_transform(message("foo", "child", stamp, (1, 0, 0)))
        buffer.set_transform(message("parent", "foo", stamp, (0, 0, 1)))
    for i, side in enumerate(sides):
        for frame in ("foo", "child", "parent"):
            found = twist(buffer.scene, "bar", relative_to=frame, stamp=100.55 + i).numbers
            assert np.concatenate(found) == pytest.approx([*side, 0, 0, 0], abs=1e-9)


def test_messages_into_another_frame() -> None:
    """Points, vectors, poses and covariances are transformed; the message stays unchanged."""
    buffer = Buffer()
    buffer.set_transform(message("map", "base", 1.0, (1, 2, 3), math.pi / 2))
    header = Header(Time(1), "base")
    point = buffer.transform(SimpleNamespace(header=header, point=Vector3(1, 0, 0)), "map")
    assert (point.point.x, point.point.y, point.point.z) == pytest.approx((1, 3, 3))
    assert (point.header.frame_id, header.frame_id) == ("map", "base")
    vector = buffer.transform(SimpleNamespace(header=header, vector=Vector3(1, 0, 0)), "map")
    assert (vector.vector.x, vector.vector.y, vector.vector.z) == pytest.approx((0, 1, 0))
    pose = SimpleNamespace(position=Vector3(0, 1, 0), orientation=Quaternion())
    moved = buffer.transform(SimpleNamespace(header=header, pose=pose), "map").pose
    assert (moved.position.x, moved.orientation.z) == pytest.approx((0, math.sqrt(0.5)))
    covariance = np.diag([1.0, 2, 3, 4, 5, 6]).ravel()
    for kind in (list, np.array):
        uncertain = SimpleNamespace(
            header=header, pose=SimpleNamespace(pose=pose, covariance=kind(covariance))
        )
        found = buffer.transform(uncertain, "map").pose
        assert np.reshape(found.covariance, (6, 6)) == pytest.approx(
            np.diag([2, 1, 3, 5, 4, 6]), abs=1e-12
        )
        assert found.pose.position.x == pytest.approx(0)
    again = buffer.transform(message("base", "x", 1.0, (1, 0, 0)), "map")
    assert numbers(again)[:2] == pytest.approx([1, 3])
    with pytest.raises(InvalidArgumentException, match="has no point"):
        buffer.transform(SimpleNamespace(header=header, text=""), "map")


def robot() -> SceneGraph:
    """Return an arm of two joints with a finger pair, on a base."""
    scene = SceneGraph().add_frame("base", "world")
    scene = scene.add_frame("upper", "base", joint=Revolute([0, 0, 1], name="shoulder"))
    scene = scene.add_frame(
        "lower", "upper", pose=Pose([1, 0, 0]), joint=Continuous([0, 0, 1], name="elbow")
    )
    scene = scene.add_frame(
        "left", "lower", pose=Pose([1, 0, 0]), joint=Prismatic([0, 1, 0], name="finger")
    )
    return scene.add_frame(
        "right",
        "lower",
        pose=Pose([1, 0, 0]),
        joint=Prismatic([0, -1, 0], name="other", mimic=Mimic("finger")),
    ).add_frame("tip", "left", joint=Fixed())


def test_a_robot_with_joint_states() -> None:
    """A scene with joints needs no robot_state_publisher: joint states say where its links were."""
    buffer = Buffer(scene=robot())
    buffer.set_transform(message("map", "world", 1.0, (0, 0, 5)))
    buffer.set_transform(message("map", "world", 3.0, (0, 0, 9)))
    with pytest.raises(
        ExtrapolationException, match=r"joint '(shoulder|elbow|finger)' has no history"
    ):
        buffer.lookup_transform("map", "tip", 1.0)
    names = ["finger", "shoulder", "elbow", "other"]
    assert buffer.set_joint_states(JointState(Header(Time(1), ""), names, [0.0, 0.0, 3.0, 0.0]))
    assert buffer.set_joint_states(JointState(Header(Time(2), ""), names, [0.2, 1.0, -3.0, 0.2]))
    turn = math.pi  # the elbow goes on over half a turn: 3 and -3 are 0.28 apart
    found = numbers(buffer.lookup_transform("map", "tip", 1.5))
    at = [
        math.cos(0.5) + math.cos(0.5 + turn) - 0.1 * math.sin(0.5 + turn),
        math.sin(0.5) + math.sin(0.5 + turn) + 0.1 * math.cos(0.5 + turn),
        6,
    ]
    assert found[:3] == pytest.approx(at, abs=1e-9)
    assert numbers(buffer.lookup_transform("lower", "right", 1.5))[:3] == pytest.approx(
        [1, -0.1, 0]
    )
    assert buffer.get_latest_common_time("map", "tip") == Time(2)
    assert buffer.get_latest_common_time("map", "base") == Time(3)
    with pytest.raises(ExtrapolationException, match="into the future: joint"):
        buffer.lookup_transform("base", "tip", 2.5)
    for set_transform in (buffer.set_transform, buffer.set_transform_static):
        assert not set_transform(message("base", "upper", 3.0))
        assert (
            "frame 'upper' moves by joint 'shoulder': its values come with set_joint_states"
            in buffer.rejections[-1]
        )
    for wrong, why in (
        (JointState(Header(Time(3)), ["sholder"], [0.0]), "sholder"),
        (JointState(Header(Time(3)), ["shoulder"], []), "1 joints have 0 positions"),
        (JointState(Header(Time(3)), ["shoulder"], [math.nan]), "shoulder"),
        (JointState(Header(Time(2)), ["shoulder"], [0.0]), "already"),
    ):
        assert not buffer.set_joint_states(wrong, "driver")
        assert why in buffer.rejections[-1]


def test_the_scene_is_a_version_for_the_planner() -> None:
    """A held version stays unchanged; edits are inserted between two transforms."""
    buffer = Buffer()
    buffer.set_transform(message("map", "table", 1.0, (1, 0, 0)))
    held = buffer.scene
    made = buffer.update(lambda scene: scene.add_frame("cup", "table", pose=Pose([0, 0, 1])))
    buffer.set_transform(message("map", "table", 2.0, (2, 0, 0)))
    assert "cup" not in held
    assert held.pose("table").translation.tolist() == [1, 0, 0]
    assert made.pose("cup").translation.tolist() == [1, 0, 1]
    assert numbers(buffer.lookup_transform("map", "cup"))[:3] == [2, 0, 1]
    with pytest.raises(ArgumentError, match="expected a SceneGraph from an edit, got NoneType"):
        buffer.update(lambda _: None)  # type: ignore[arg-type,return-value]

    def meddle(scene: SceneGraph) -> SceneGraph:
        buffer.set_transform(message("map", "table", 3.0))
        return scene

    with pytest.raises(ArgumentError, match="must not change the live scene itself"):
        buffer.update(meddle)
    assert (
        buffer.all_frames_as_string()
        == "Frame table exists with parent map.\nFrame cup exists with parent table.\n"
    )


# --- clocks


def stamped(seconds: float, child: str = "b") -> TransformStamped:
    """Return a transform of a frame in ``a`` at a time."""
    header = Header(seconds, "a")  # type: ignore[arg-type]
    return TransformStamped(header, child, Transform(Vector3(seconds, 0.0, 0.0), Quaternion()))


def test_a_stamp_far_in_the_future_blocks_a_frame_until_it_is_cleared() -> None:
    """As in tf2, the present stamps are too old after it; after clear() they are taken."""
    buffer = Buffer(cache_time=10.0)
    assert buffer.set_transform(stamped(5000.0))
    assert not buffer.set_transform(stamped(100.0))
    buffer.clear()
    with pytest.raises(ExtrapolationException) as caught:
        buffer.lookup_transform("a", "b")
    assert "inf" not in str(caught.value)
    assert buffer.set_transform(stamped(100.0))


def test_a_clock_that_jumps_back_clears_the_buffer(caplog: pytest.LogCaptureFixture) -> None:
    """Frames and static transforms stay, stamped ones are gone, and the new ones are taken."""
    buffer = Buffer(cache_time=10.0)
    for now in (100.0, 100.0, 101.0):
        buffer.set_clock(now)
    assert buffer.set_transform_static(stamped(0.0, "fixed"))
    assert buffer.set_transform(stamped(101.0))
    assert buffer.can_transform("a", "b", 101.0)
    with caplog.at_level("WARNING"):
        buffer.set_clock(Time(2))
    assert caplog.messages == ["the clock jumped back from 101 s to 2 s; the buffer is cleared"]
    assert buffer.can_transform("a", "fixed")
    assert not buffer.can_transform("a", "b", 101.0)
    assert buffer.set_transform(stamped(2.0))
    assert buffer.lookup_transform("a", "b").header.stamp == Time(2)


def test_with_a_clock_no_stamp_far_in_the_future_is_taken() -> None:
    """Messages more than the cache time after the clock are rejected, except static ones."""
    robot = SceneGraph().add_frame("arm", "world", joint=Continuous([0, 0, 1], name="turn"))
    buffer = Buffer(cache_time=10.0, scene=robot)
    buffer.set_clock(100.0)
    assert buffer.set_transform(stamped(110.0))
    assert not buffer.set_transform(stamped(111.0))
    assert buffer.rejections[-1].endswith(
        "the stamp 111 s is more than 10 s after the clock, 100 s"
    )
    assert not buffer.set_joint_states(JointState(Header(Time(111)), ["turn"], [0.5]))
    assert "is more than 10 s after the clock" in buffer.rejections[-1]
    assert buffer.set_transform_static(stamped(5000.0, "fixed"))
    assert buffer.set_transform(stamped(101.0))


def test_a_joint_that_is_named_twice_is_rejected() -> None:
    """A rejected joint message changes nothing, and the reason names the joint."""
    robot = SceneGraph().add_frame("arm", "world", joint=Continuous([0, 0, 1], name="turn"))
    buffer = Buffer(scene=robot)
    before = buffer.scene
    assert not buffer.set_joint_states(
        JointState(Header(Time(1)), ["turn", "turn"], [0.5, 0.6]), "driver"
    )
    assert buffer.rejections[-1] == "driver: the joint 'turn' is named twice"
    assert not buffer.set_joint_states(JointState(Header(Time(1)), ["turn"], []), "driver")
    assert buffer.rejections[-1] == "driver: 1 joints have 0 positions"
    assert buffer.scene is before
