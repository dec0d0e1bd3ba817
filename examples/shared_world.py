"""A world shared by two processes: a camera writes poses of a cup, and a robot grasps it.

Run: ``python examples/shared_world.py``. A third process, ``tmkit serve``, holds the world. Any
number of others could join, on this machine or on others: ``tmkit.world.connect(address)``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import subprocess
import sys

import numpy as np

from tmkit.graph import Cylinder
from tmkit.spatial import Pose
from tmkit.world import connect


def camera(address: str) -> None:
    """Detect the cup ten times, each time nearer and with a smaller error."""
    with connect(address) as world:
        for k in range(10):
            covariance = np.diag([1e-4] * 3 + [1e-3] * 3) / (k + 1)
            world.set_pose("cup", Pose([0.6 - 0.02 * k, 0.1, 0.05]), covariance=covariance)
        world.set_attribute("cup", "seen", 10)


def robot(address: str) -> None:
    """Follow the cup until it is seen well enough, and take it."""
    with connect(address) as world:
        for change in world.follow(classes=["movable"], timeout=60.0):
            if any(frame.attributes.get("seen") == 10 for frame in change.frames):
                break
        cup = world.gaussian_pose("cup", relative_to="hand")
        where, deviation = np.round(cup.mean.translation, 3), 1e3 * np.sqrt(cup.covariance[0, 0])
        print(f"robot:  the cup is at {where} of the hand, to {deviation:.1f} mm", flush=True)
        world.reparent("cup", "hand")


def main() -> None:
    """Serve a world, and let the two processes work on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", help="not used: nothing is written")
    parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp/127.0.0.1:{probe.getsockname()[1]}"
    serve = "import sys; from tmkit.cli import main; sys.argv[0] = 'tmkit'; main()"
    server = subprocess.Popen(
        [sys.executable, "-c", serve, "serve", "--listen", address], stdout=subprocess.PIPE
    )
    try:
        with connect(address) as world:
            with world.edit() as edit:
                edit.add_frame("table", "world", pose=Pose([0.5, 0, 0.4]))
                edit.add_frame("hand", "world", pose=Pose([0.4, 0, 0.8]))
                edit.add_frame("cup", "table", classes=["movable"], shapes=[Cylinder(0.03, 0.1)])
            context = multiprocessing.get_context("spawn")
            jobs = [context.Process(target=job, args=(address,)) for job in (robot, camera)]
            for job in jobs:
                job.start()
            for job in jobs:
                job.join()
            scene = world.scene()
            where = np.round(scene.pose("cup").translation, 3)
            print(
                f"world:  the cup is under {scene.parent('cup')}, at {where}; {len(scene)} frames"
            )
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
