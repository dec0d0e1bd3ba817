"""Concurrent reads, edits and drops of scenes by many threads."""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.processes import run_process

from tmkit.graph import AttachedShape, Free, Mesh, Revolute, SceneGraph
from tmkit.spatial import Pose

THREADS = 8


def chain(links: int, things: int) -> SceneGraph:
    """Return an arm of some links and loose things on the world, each with the same mesh."""
    mesh = Mesh(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
    )
    with SceneGraph().edit() as edit:
        parent = "world"
        for i in range(links):
            edit.add_frame(
                f"link{i}", parent, pose=Pose([0, 0, 0.3]), joint=Revolute([0, i % 2, 1 - i % 2])
            )
            parent = f"link{i}"
        for i in range(things):
            place = Pose([i, 1, 0])
            edit.add_frame(
                f"thing{i}", "world", pose=place, joint=Free(), shapes=[AttachedShape(mesh)]
            )
    return edit.finish()


def at_once(work: Callable[[int], None]) -> None:
    """Run work(0) ... work(THREADS - 1) in concurrent threads, and raise their errors."""
    barrier = threading.Barrier(THREADS)

    def wait_and_work(number: int) -> None:
        barrier.wait()
        work(number)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            for future in [pool.submit(wait_and_work, number) for number in range(THREADS)]:
                future.result()
    finally:
        sys.setswitchinterval(interval)


def test_readers_and_editors_share_a_version() -> None:
    """Threads that read, edit and drop one version get the results of a single thread."""
    scene = chain(7, 20)
    q = np.linspace(-1, 1, 7)
    expected = {frame: scene.pose(frame, relative_to="world", q=q) for frame in scene.frame_names}

    def work(number: int) -> None:
        rng = random.Random(number)
        mine = scene
        for _ in range(150):
            thing, frame = f"thing{rng.randrange(20)}", rng.choice(scene.frame_names)
            mine = rng.choice([mine, scene]).reparent(thing, f"link{rng.randrange(7)}", q=q)
            assert mine.pose(thing, relative_to="world", q=q).is_close(expected[thing])
            assert scene.pose(frame, relative_to="world", q=q) == expected[frame]
            assert scene.at(q).pose(frame) == expected[frame]
            assert scene.parent(thing) == "world"
        assert mine._defects() == ""

    at_once(work)
    assert {
        frame: scene.pose(frame, relative_to="world", q=q) for frame in scene.frame_names
    } == expected


def test_versions_are_dropped_by_other_threads_than_made_them() -> None:
    """A version made in one thread may be read in a second and dropped in a third."""
    box: list[SceneGraph] = [chain(3, 10)] * 16

    def work(number: int) -> None:
        rng = random.Random(number)
        for _ in range(300):
            scene = box[rng.randrange(len(box))]
            thing = f"thing{rng.randrange(10)}"
            box[rng.randrange(len(box))] = scene.set_pose(thing, Pose([rng.random(), 0, 0]))
            assert len(scene.subtree("world")) == len(scene) == 14

    at_once(work)
    assert all(scene._defects() == "" for scene in box)


def test_all_threads_see_one_layout() -> None:
    """Many threads request the layout of a new version at the same time."""
    scene = chain(5, 30)
    q = np.full(5, 0.3)
    expected = scene.at(q).poses.tobytes()
    for i in range(30):
        fresh = scene.set_pose(f"thing{i}", Pose([0, i, 0])).set_pose(
            f"thing{i}", scene.local_pose(f"thing{i}")
        )
        answers: list[bytes] = [b""] * THREADS

        def work(number: int, fresh: SceneGraph = fresh, answers: list[bytes] = answers) -> None:
            answers[number] = fresh.at(q).poses.tobytes()

        at_once(work)
        assert answers == [expected] * THREADS


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_churning_versions_keeps_no_memory() -> None:
    """A long random walk over versions of which few are kept does not grow the process."""
    scene = chain(7, 50)
    q = np.zeros(7)

    def walk(steps: int) -> None:
        rng = random.Random(0)
        kept = [scene] * 20
        for _ in range(steps):
            start = kept[rng.randrange(20)]
            thing, link = f"thing{rng.randrange(50)}", f"link{rng.randrange(7)}"
            moved = (
                start.reparent(thing, link, q=q)
                .add_frame("mark", thing)
                .rename_frame("mark", "point")
            )
            moved.at(q)
            kept[rng.randrange(20)] = moved.remove_frame("point")

    def resident() -> int:
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    walk(300)
    before = resident()
    walk(1500)
    assert resident() - before < 4e6


def test_nothing_outlives_the_interpreter() -> None:
    """After use of scenes, builders and kinematics, all core objects are freed at exit."""
    code = """
import pickle, tmkit._core as core
core._set_leak_warnings(True)
from tmkit.graph import *
from tmkit.spatial import Pose
shape = AttachedShape(Sphere(1))
scene = SceneGraph().add_frame("a", "world", joint=Revolute([0, 0, 1]), shapes=[shape])
with scene.edit() as edit:
    edit.set_inertia("a", Inertia(1.0))
scene = pickle.loads(pickle.dumps(edit.finish()))
at = scene.at([0.1])
at.jacobian("a"), at.poses, at.pose("a")
scene.specification("a"), scene.joint("a"), scene.shapes("a")
try:
    scene.pose("b", relative_to="a")
except KeyError as error:
    kept = error
import typing
typing.clear_overloads()  # registered overloads would outlive the core
"""
    run = run_process([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
