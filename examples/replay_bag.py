"""A ROS 2 bag without ROS: a simulated robot is recorded, and the bag replays into another world.

A Panda stacks a block. Its joint states and the poses of the blocks go into a buffer, 30 times a
simulated second, and from there into a bag (MCAP). The bag replays, as fast as possible or by a
clock (``--rate 1``), into a buffer with the robot alone; lookups at the same times give the
same there. ``--bag`` replays a bag of your own.
"""

import argparse
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tmkit as tk
from tmkit.world import (
    BagRecorder,
    Buffer,
    Header,
    JointState,
    Quaternion,
    Time,
    Transform,
    TransformStamped,
    Vector3,
    play_bag,
)


def message(pose: tk.Pose, frame: str, stamp: Time) -> TransformStamped:
    """Return the pose of a frame in the world as a message."""
    x, y, z, *quaternion = pose.as_array().tolist()
    return TransformStamped(
        Header(stamp, "world"), frame, Transform(Vector3(x, y, z), Quaternion(*quaternion))
    )


def record(path: Path, scene: tk.SceneGraph) -> Buffer:
    """Execute a plan in simulation, and record the motion to a bag."""
    plan = tk.plan(scene, domain="blocks", goal="(on a b)", robot="panda", seed=0).plan
    assert plan is not None
    buffer, ticks = Buffer(60.0, scene=scene, capacity=3000), 0

    def observe(state: tk.SceneGraph, q: np.ndarray) -> None:
        nonlocal ticks
        stamp = Time(*divmod(1_700_000_000_000_000_000 + ticks * 33_333_333, 1_000_000_000))
        ticks += 1
        buffer.set_joint_states(
            JointState(Header(stamp), list(state.joint_names), q.tolist()), "robot"
        )
        for frame in ("a", "b", "c"):
            buffer.set_transform(message(state.pose(frame, q=q), frame, stamp), "camera")

    with BagRecorder(path) as recorder:
        buffer.on_change(recorder.record)
        tk.simulate(plan, on_state=observe)
    assert not buffer.rejections, buffer.rejections
    return buffer


def clock(rate: float) -> Callable[[float], None]:
    """Return a function that waits for a time of the bag, replayed at a given rate."""
    begin: list[tuple[float, float]] = []

    def wait_until(stamp: float) -> None:
        begin.append((stamp, time.monotonic())) if not begin else None
        time.sleep(max(0.0, begin[0][1] + (stamp - begin[0][0]) / rate - time.monotonic()))

    return wait_until


def main() -> None:
    """Record a bag, replay it, and compare the two worlds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for the bag"
    )
    parser.add_argument(
        "--rate", type=float, default=0.0, help="of the replay; 0: as fast as possible"
    )
    parser.add_argument("--bag", type=Path, help="replay this bag into an empty world instead")
    options = parser.parse_args()
    wait_until = clock(options.rate) if options.rate > 0.0 else None
    if options.bag is not None:
        world = Buffer(1e9)
        print(play_bag(options.bag, world, wait_until=wait_until))
        print(world.all_frames_as_string())
        return
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "replay_bag"
    shutil.rmtree(path, ignore_errors=True)  # of an earlier run
    scene = tk.load_scene("panda_table", "blocks3")
    recording = record(path, scene)
    world = Buffer(60.0, scene=scene, capacity=3000)
    report = play_bag(path, world, wait_until=wait_until)
    print(
        *(f"{count} messages of {topic}" for topic, count in sorted(report.counts.items())),
        sep="\n",
    )

    history = recording.scene.stamped_poses("a")
    assert history is not None
    stamps = history.stamps
    for stamp in np.linspace(stamps[0], stamps[-1], 7):
        pose, hand = (
            world.lookup_transform("world", frame, float(stamp)).transform
            for frame in ("a", "panda_hand")
        )
        print(
            f"{stamp - stamps[0]:5.1f} s: 'a' at height {pose.translation.z:.3f}, the hand at"
            f" {hand.translation.z:.3f}"
        )
    largest = max(
        recording.scene.pose(
            "a", relative_to="panda_hand", stamp=t, q=tk.graph.configuration(recording.scene, t)
        ).distance(
            world.scene.pose(
                "a", relative_to="panda_hand", stamp=t, q=tk.graph.configuration(world.scene, t)
            )
        )[0]
        for t in stamps
    )
    print(f"{len(stamps)} stamps: the two worlds differ by {largest:.1e} m at most")
    assert largest < 1e-12
    print("see", path)


if __name__ == "__main__":
    main()
