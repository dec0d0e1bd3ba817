"""Jobs of other processes on a store: run as ``python store_jobs.py JOB FOLDER ARGUMENTS``.

``write`` puts versions until it is killed, and prints each id when it is on disk. ``add`` adds
frames to a branch that several processes share.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tmkit.graph import AttachedShape, Mesh, SceneGraph
from tmkit.spatial import Pose
from tmkit.store import Store

__all__ = ["scene_version"]


def scene_version(number: int) -> SceneGraph:
    """Return the scene that ``write`` stores as a version: 40 frames, a mesh in every third."""
    with SceneGraph().edit() as edit:
        for k in range(40):
            edit.add_frame(f"f{k}", "world", pose=Pose([k, 0, 0]))
    scene = edit.finish()
    for k in range(number + 1):
        scene = scene.set_pose(f"f{k % 40}", Pose([k, 1 + k, 0]))
    if number % 3 == 0:
        # a file of 2 MB takes a moment
        corners = [[0, 0, 0], [1 + number, 0, 0], [0, 1, 0], [0, 0, 1]] * 20_000
        scene = scene.set_shapes(
            "f0", [AttachedShape(Mesh(corners, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]))]
        )
    return scene


def write(folder: Path, first: int) -> None:
    """Put versions from a number on."""
    store = Store(folder)
    for number in range(first, first + 10_000):
        print(number, store.put(scene_version(number), message=str(number)), flush=True)  # noqa: T201
        if number % 5 == 4:
            store.gc()


def add(folder: Path, name: str, count: int) -> None:
    """Add frames to the shared branch, each in a separate transaction."""
    store = Store(folder)
    for k in range(count):
        with store.batch():
            store.put(store.get("main").add_frame(f"{name}{k}", "world"))
        store.put(store.get("main"), f"mine/{name}", message=str(k))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        add(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
