"""Scene arrays: capacities, present configuration, threads, and pinocchio.

That edits and answers are those of the persistent scene is seen to by ``test_arrays_machine.py``.
"""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pinocchio
import pybullet_data
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import (
    CapacityError,
    ConcurrentWriteError,
    ConfigurationError,
    CycleError,
    DisconnectedError,
    DuplicateNameError,
    SceneError,
    UnknownNameError,
)
from tmkit.formats import load_scene
from tmkit.graph import (
    AttachedShape,
    Box,
    Free,
    Mimic,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneGraph,
    Sphere,
)
from tmkit.spatial import Pose


def table() -> SceneGraph:
    """Return a two-link arm with a hand before a table with a cup."""
    return (
        SceneGraph()
        .add_frame(
            "upper", "world", pose=Pose([0, 0, 0.5]), joint=Revolute([0, 1, 0], name="shoulder")
        )
        .add_frame(
            "lower", "upper", pose=Pose([0, 0, 0.5]), joint=Revolute([0, 1, 0], name="elbow")
        )
        .add_frame("hand", "lower", pose=Pose([0, 0, 0.5]))
        .add_frame("table", "world", pose=Pose([1, 0, 0]), shapes=[AttachedShape(Box([1, 1, 0.1]))])
        .add_frame("cup", "table", pose=Pose([0, 0, 0.1]), joint=Free(), classes=["movable"])
    )


Q = [0.3, 0.7]


def test_what_arrays_hold() -> None:
    """Arrays start at zero configuration with spare capacity, and have names and counts."""
    scene = table()
    arrays = tk.SceneArrays(scene, capacity=8)
    assert repr(arrays) == "SceneArrays(6 of 8 frames, 2 joints)"
    assert len(arrays) == 6
    assert "cup" in arrays
    assert "lid" not in arrays
    assert 3 not in arrays
    assert arrays.frame_names == scene.frame_names
    assert arrays.joint_names == ("shoulder", "elbow")
    assert arrays.q.tolist() == arrays.zero_configuration().tolist() == [0.0, 0.0]
    assert (arrays.parent("cup"), arrays.parent("world")) == ("table", None)
    assert arrays.children("world") == ("upper", "table")
    assert arrays.local_pose("cup") == Pose([0, 0, 0.1])
    expected = {"frames": 8, "bodies": 8, "shapes": 9, "allowed_pairs": 32, "name_bytes": 64}
    expected |= {"twists": 8, "stamps": 256, "groups": 16, "group_members": 16}
    assert arrays.capacities == expected
    assert SceneArrays(scene).capacities["frames"] == 64
    wanted = {"bodies": 7, "shapes": 2, "allowed_pairs": 0, "name_bytes": 8}
    wanted |= {"twists": 0, "stamps": 0, "groups": 0, "group_members": 0}
    assert SceneArrays(scene, {"frames": 6, **wanted}).capacities == {"frames": 6, **wanted}
    for array in (arrays.q, arrays.poses, arrays.jacobian("hand")):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_forward_goes_to_a_configuration() -> None:
    """After ``forward``, poses and Jacobians equal those of the scene at q."""
    scene = table()
    arrays = SceneArrays(scene)
    arrays.forward(Q)
    at = scene.at(Q)
    assert arrays.q.tolist() == Q
    assert arrays.poses.tobytes() == at.poses.tobytes()
    assert arrays.pose("hand") == at.pose("hand")
    assert arrays.pose("cup", relative_to="hand") == scene.pose("cup", relative_to="hand", q=Q)
    assert arrays.pose("cup", relative_to="hand", q=[0, 0]) == scene.pose(
        "cup", relative_to="hand", q=[0, 0]
    )
    assert arrays.jacobian("hand").tobytes() == at.jacobian("hand").tobytes()
    rows = np.full((9, 7), -1.0)
    assert arrays.write_poses(rows) == 6
    assert rows[:6].tobytes() == at.poses.tobytes()
    assert (rows[6:] == -1.0).all()


def test_edits_are_seen_at_once() -> None:
    """After an edit all poses are current; the source scene is unchanged."""
    scene = table()
    arrays = SceneArrays(scene)
    arrays.forward(Q)
    place = arrays.pose("cup")
    arrays.reparent("cup", "hand")
    held = scene.reparent("cup", "hand", q=Q)
    assert arrays.freeze() == held
    assert arrays.pose("cup").is_close(place)
    assert arrays.poses.tobytes() == held.at(Q).poses.tobytes()
    arrays.forward([0, 0])
    assert arrays.pose("cup") == held.pose("cup", relative_to="world", q=[0, 0])
    assert scene.parent("cup") == "table"


def test_joints_keep_their_values() -> None:
    """Values go with their joints when others come, go or change, and new joints begin at 0."""
    arrays = SceneArrays(table())
    arrays.forward(Q)
    arrays.add_frame("slide", "world", joint=Prismatic([1, 0, 0]))
    arrays.set_joint("hand", Revolute([0, 0, 1], name="wrist"))
    assert arrays.joint_names == ("shoulder", "elbow", "wrist", "slide")
    assert arrays.q.tolist() == [0.3, 0.7, 0.0, 0.0]
    arrays.set_joint("upper", Revolute([0, 1, 0], name="first"))
    assert arrays.q.tolist() == [0.3, 0.7, 0.0, 0.0]
    arrays.set_joint("upper", Revolute([0, 1, 0], mimic=Mimic("elbow", 2.0)))
    assert dict(zip(arrays.joint_names, arrays.q, strict=True)) == {
        "elbow": 0.7,
        "wrist": 0.0,
        "slide": 0.0,
    }
    assert arrays.pose("upper", relative_to="world") == arrays.freeze().pose(
        "upper", relative_to="world", q=arrays.q
    )
    arrays.remove_frame("hand")
    assert arrays.joint_names == ("elbow", "slide")
    assert arrays.q.tolist() == [0.7, 0.0]


def test_what_is_full_changes_nothing() -> None:
    """An edit beyond the capacity names capacity, size and argument, and changes nothing."""
    scene = table()
    arrays = SceneArrays(
        scene, capacity={"frames": 7, "bodies": 6, "shapes": 1, "allowed_pairs": 1, "name_bytes": 8}
    )
    box = AttachedShape(Sphere(0.1))
    arrays.allow_collision("hand", "cup")
    before = arrays.freeze()

    def check(kind: str, capacity: int) -> None:
        assert (full.value.kind, full.value.capacity) == (kind, capacity)
        assert isinstance(full.value, OverflowError)
        assert arrays.freeze() == before
        assert arrays._defects() == ""

    with pytest.raises(
        CapacityError,
        match=r"no room for another body: all 6 are taken; construct .* larger capacity 'bodies'",
    ) as full:
        arrays.add_root("lid")
    check("bodies", 6)
    with pytest.raises(
        CapacityError,
        match=r"no room for another attached shape: all 1 .* larger capacity 'shapes'",
    ) as full:
        arrays.add_shape("cup", box)
    check("shapes", 1)
    with pytest.raises(
        CapacityError, match=r"another allowed pair: all 1 .* larger capacity 'allowed_pairs'"
    ) as full:
        arrays.allow_collision("hand", "table")
    check("allowed_pairs", 1)
    with pytest.raises(
        CapacityError,
        match=r"'saucepans' has 9 bytes, but only 8 are kept .* larger capacity 'name_bytes'",
    ) as full:
        arrays.rename_frame("cup", "saucepans")
    check("name_bytes", 8)
    arrays.add_frame("rim", "cup", body="cup")
    before = arrays.freeze()
    with pytest.raises(
        CapacityError, match=r"no room for another frame: all 7 are taken; .* larger capacity"
    ) as full:
        arrays.add_frame("ear", "cup", body="cup")
    check("frames", 7)
    copied = pickle.loads(pickle.dumps(full.value))
    assert (copied.kind, copied.capacity, str(copied)) == ("frames", 7, str(full.value))
    arrays.remove_frame("rim")
    arrays.add_frame("ear", "cup", body="cup")


def test_a_scene_that_does_not_fit_is_rejected() -> None:
    """Arrays too small for the scene itself are not made, and huge ones neither."""
    with pytest.raises(CapacityError, match="capacity is 5, but the scene alone needs 6") as full:
        SceneArrays(table(), 5)
    assert (full.value.kind, full.value.capacity) == ("frames", 5)
    with pytest.raises(CapacityError, match="name_bytes is 4, but the scene alone needs 8"):
        SceneArrays(table(), capacity={"name_bytes": 4})
    with pytest.raises(CapacityError, match="at most 1073741824 can be kept"):
        SceneArrays(table(), 2**40)


def test_invalid_arguments_raise_errors() -> None:
    """Rules, unknown names and bad arguments are rejected in the words of the persistent scene."""
    arrays = SceneArrays(table().add_root("elsewhere"))
    with pytest.raises(
        UnknownNameError, match="unknown frame 'cub'; did you mean 'cup'"
    ) as unknown:
        arrays.set_pose("cub", Pose())
    assert unknown.value.nearest == "cup"
    with pytest.raises(
        CycleError, match="'upper' cannot have parent 'hand', which is itself or its descendant"
    ):
        arrays.reparent("upper", "hand")
    with pytest.raises(DuplicateNameError, match="a joint named 'elbow' is already in the scene"):
        arrays.add_frame("x", "world", joint=Revolute([0, 0, 1], name="elbow"))
    with pytest.raises(DisconnectedError, match=r"different trees \('world' and 'elsewhere'\)"):
        arrays.pose("cup", relative_to="elsewhere")
    with pytest.raises(SceneError, match="give either pose or q to reparent, not both"):
        arrays.reparent("cup", "hand", pose=Pose(), q=Q)
    with pytest.raises(SceneError, match="a body needs a name that is not empty"):
        arrays.add_frame("x", "world", body="")
    with pytest.raises(ConfigurationError, match=r"q must hold 2 numbers, but has shape \(3,\)"):
        arrays.forward([0, 0, 0])
    with pytest.raises(ConfigurationError, match="q holds nan"):
        arrays.forward([0, np.nan])
    with pytest.raises(ConfigurationError, match="there are 7 frames, but room for the poses of 3"):
        arrays.write_poses(np.zeros((3, 7)))
    frozen = np.zeros((9, 7))
    frozen.flags.writeable = False
    for out in (
        frozen,
        np.zeros((9, 6)),
        np.zeros((9, 7), np.float32),
        np.zeros((7, 9)).T,
        [[0.0] * 7] * 9,
    ):
        with pytest.raises(ConfigurationError, match="out must be a writable, C-contiguous array"):
            arrays.write_poses(out)  # type: ignore[arg-type]  # that it fails is the test
    with pytest.raises(TypeError):
        copy.copy(arrays)
    assert arrays.freeze() == table().add_root("elsewhere")


# --- pinocchio


@pytest.fixture(scope="module")
def panda() -> tuple[SceneGraph, pinocchio.Model]:
    """Load the Panda twice, each with its own reader."""
    path = Path(pybullet_data.getDataPath()) / "franka_panda/panda.urdf"
    return load_scene(path), pinocchio.buildModelFromUrdf(str(path))


@settings(max_examples=scaled_examples(0.3))
@given(seed=st.integers(0, 2**32 - 1))
def test_moved_tools_agree_with_pinocchio(
    panda: tuple[SceneGraph, pinocchio.Model], seed: int
) -> None:
    """Tools moved between links of a Panda have pinocchio's poses."""
    rng = np.random.default_rng(seed)
    arrays, model = SceneArrays(panda[0]), panda[1].copy()
    links = [name for name in arrays.frame_names if name.startswith("panda_link")]
    tools = [f"tool{i}" for i in range(5)]

    def place() -> Pose:
        return Pose.from_rpy(rng.uniform(-1, 1, 3), rng.uniform(-3, 3, 3))

    for tool in tools:
        arrays.add_frame(tool, str(rng.choice(links)), pose=place())
    for _ in range(30):
        tool, parent = str(rng.choice(tools)), str(rng.choice(links + tools))
        try:
            arrays.reparent(tool, parent, pose=place() if rng.random() < 0.7 else None)
        except CycleError:
            continue
        arrays.forward(rng.uniform(-2, 2, len(arrays.joint_names)))
    added: list[str] = []
    while len(added) < len(tools):
        for tool in tools:
            parent = arrays.parent(tool)
            assert parent is not None
            if tool in added or (parent in tools and parent not in added):
                continue
            above = model.frames[model.getFrameId(parent)]
            local = pinocchio.SE3(arrays.local_pose(tool).as_matrix())
            index = model.getFrameId(parent)
            model.addFrame(
                pinocchio.Frame(
                    tool,
                    above.parentJoint,
                    index,
                    above.placement * local,
                    pinocchio.FrameType.OP_FRAME,
                )
            )
            added.append(tool)
    full = np.zeros(model.nq)
    for joint in range(1, len(model.names)):
        leader = model.names[joint].replace("finger_joint2", "finger_joint1")
        full[model.joints[joint].idx_q] = arrays.q[arrays.joint_names.index(leader)]
    data = model.createData()
    pinocchio.framesForwardKinematics(model, data, full)
    for name in (*tools, *links):
        expected = data.oMf[model.getFrameId(name)].homogeneous
        assert np.allclose(arrays.pose(name).as_matrix(), expected, rtol=0, atol=1e-10), name


# --- threads


def large(things: int) -> SceneGraph:
    """Return an arm and so many things that forward kinematics lets other threads run meanwhile."""
    with table().edit() as edit:
        for i in range(things):
            edit.add_frame(f"thing{i}", "hand", pose=Pose([0, 0, i]))
    return edit.finish()


def test_readers_see_whole_worlds() -> None:
    """While one thread edits and moves, every answer of the others is that of one moment."""
    arrays = SceneArrays(large(1000))
    stop = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        rows = np.zeros((len(arrays), 7))
        hand = arrays.frame_names.index("hand")
        while not stop.is_set():
            arrays.write_poses(rows)
            if not np.allclose(
                rows[-1, :3] - rows[hand, :3],
                999 * (rows[-2, :3] - rows[hand, :3]) / 998,
                atol=1e-6,
            ):
                wrong.append(rows.copy())
            cup = arrays.pose("cup", relative_to="hand").translation
            if cup[0] != cup[1]:
                wrong.append(cup)
            if arrays.jacobian("hand").shape != (6, 2):
                wrong.append("jacobian")

    arrays.reparent("cup", "hand", pose=Pose())
    threads = [threading.Thread(target=read) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        rng = np.random.default_rng(0)
        for step in range(300):
            arrays.forward(rng.uniform(-3, 3, 2))
            arrays.reparent("cup", "hand" if step % 2 else "thing7", pose=Pose([step, step, 0]))
            arrays.reparent("cup", "hand", pose=Pose([step, step, 0]))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert wrong == []
    assert arrays._defects() == ""


def test_two_writers_are_told() -> None:
    """An edit while another thread runs forward kinematics is rejected, and changes nothing."""
    arrays = SceneArrays(large(20_000))
    stop = threading.Event()

    def move() -> None:
        while not stop.is_set():
            try:
                arrays.forward(Q)
            except ConcurrentWriteError:
                continue

    def edit_for_seconds(seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            arrays.set_pose("cup", Pose([1, 0, 0]))

    thread = threading.Thread(target=move)
    thread.start()
    try:
        with pytest.raises(ConcurrentWriteError, match="another thread is writing these arrays"):
            edit_for_seconds(300)
    finally:
        stop.set()
        thread.join()
    arrays.set_pose("cup", Pose([2, 0, 0]))
    assert arrays.local_pose("cup") == Pose([2, 0, 0])
