"""The numbers of the scene graph, each beside a peer, a floor or a limit measured in the same run.

Run by hand: ``python tests/benchmarks/scene_table.py [--out docs/results/tables/scene.md]
[--quick]``. The floor is a plain loop in C++ over arrays (``floors.cpp``), compiled here in two
ways, of which the faster counts; ``immutables`` and ``pytransform3d`` are peers where they are
installed. Times are the best of several rounds, in which all work takes turns, so that other load
on the machine slows none more than the others. The results are the ratios.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.util
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import table_parser
from support.floors import REPEAT, Floor, compile_floors, floor_of_same_bits

from tmkit.graph import Free, Revolute, SceneArrays, SceneGraph, diff
from tmkit.spatial import Pose

DEPTH = 8
LARGE = 100_000
MIXES = (0, 32, 128)  # revolute joints among 128 frames


@dataclass(frozen=True)
class Row:
    """Line of the table: the measured value and the aim, in the same unit."""

    work: str
    measured: float
    aim: float
    unit: str
    beside: str = ""

    def line(self) -> str:
        """Return the line in Markdown."""
        holds = "yes" if self.measured <= self.aim else "no"
        measured = f"{self.measured:.0f}" if self.unit == "bytes" else f"{self.measured:.2f}"
        return (
            f"| {self.work} | {measured} {self.unit} | {self.aim:g} {self.unit} | {holds} |"
            f" {self.beside} |"
        )


class Clock:
    """Best times of named pieces of work that take turns."""

    def __init__(self, rounds: int, *, least: float = 0.01) -> None:
        """Begin without work; a piece is timed for at least so many seconds a round."""
        self._rounds, self._least = rounds, least
        self._work: dict[str, tuple[Callable[[], object], int]] = {}
        self.best: dict[str, float] = {}

    def add(self, name: str, work: Callable[[], object], *, per_call: int = 1) -> None:
        """Remember a piece of work, which does its task ``per_call`` times."""
        self._work[name] = (work, per_call)

    def run(self) -> None:
        """Time all work in turns; microseconds for one task are then in ``best``."""
        gc.disable()
        for turn in range(self._rounds):
            for name, (work, per_call) in self._work.items():
                took = _seconds(work, self._least) / per_call * 1e6
                self.best[name] = min(self.best.get(name, np.inf), took)
            print(f"round {turn + 1} of {self._rounds}", file=sys.stderr, flush=True)
        gc.enable()


def _seconds(work: Callable[[], object], least: float = 0.01) -> float:
    count = 1
    while True:
        steps = itertools.repeat(None, count)
        began = time.perf_counter()
        for _ in steps:
            work()
        took = time.perf_counter() - began
        if took >= least:
            return took / count
        count *= 4


def scene_of(frames: int) -> SceneGraph:
    """Return a chain of eight fixed links with free objects, at depths up to nine."""
    random = np.random.default_rng(0)
    with SceneGraph().edit() as edit:
        for i in range(DEPTH):
            edit.add_frame(
                f"link{i}",
                f"link{i - 1}" if i else "world",
                pose=Pose.from_rpy([0, 0, 0.3], [0.1, 0, 0]),
            )
        for i in range(frames - DEPTH - 1):
            parent = int(random.integers(DEPTH - 1))
            edit.add_frame(
                f"thing{i}", f"link{parent}", pose=Pose([0.01 * (i % 100), 0, 0]), joint=Free()
            )
    return edit.finish()


def joints_scene(joints: int, frames: int = 128) -> SceneGraph:
    """Return a random tree of 128 frames, of which so many hang on revolute joints."""
    random = np.random.default_rng(joints)
    moving = set(random.permutation(np.arange(1, frames + 1))[:joints].tolist())
    with SceneGraph().edit() as edit:
        for i in range(1, frames + (joints == frames)):
            parent = f"f{random.integers(max(1, i - 12), i)}" if i > 1 else "world"
            pose = Pose.from_rpy(random.uniform(-1, 1, 3), random.uniform(-3, 3, 3))
            joint = (
                Revolute(random.normal(size=3), lower=-3, upper=3)
                if i in moving or joints == frames
                else None
            )
            if joint is None:
                edit.add_frame(f"f{i}", parent, pose=pose)
            else:
                edit.add_frame(f"f{i}", parent, pose=pose, joint=joint)
    return edit.finish()


# --- rows


def edits(clock: Clock) -> Callable[[], list[Row]]:
    """Reparenting, singly and many at once."""
    grasp, names = Pose([0, 0, 0.1]), itertools.cycle([f"thing{i}" for i in range(0, 100, 7)])
    scenes = {frames: scene_of(frames) for frames in (128, LARGE)}
    arrays = SceneArrays(scenes[128], capacity=160)
    parents = itertools.cycle(["link6", "link2"])
    for frames, scene in scenes.items():
        clock.add(f"given {frames}", lambda s=scene: s.reparent(next(names), "link7", pose=grasp))  # type: ignore[misc]
        clock.add(f"kept {frames}", lambda s=scene: s.reparent("thing3", "link7"))  # type: ignore[misc]
    clock.add("arrays", lambda: arrays.reparent("thing3", next(parents), pose=grasp))
    clock.add("nothing", lambda: next(names))
    scene = scenes[128]

    def many() -> SceneGraph:
        edit, reparent = scene.edit(), None
        reparent = edit.reparent
        for _ in range(500):
            reparent("thing3", "link6", pose=grasp)
            reparent("thing3", "link2", pose=grasp)
        return edit.finish()

    def singly() -> SceneGraph:
        version = scene
        for _ in range(500):
            version = version.reparent("thing3", "link6", pose=grasp).reparent(
                "thing3", "link2", pose=grasp
            )
        return version

    clock.add("many", many, per_call=1000)
    clock.add("singly", singly, per_call=1000)
    if importlib.util.find_spec("immutables"):
        import immutables

        table = immutables.Map(dict.fromkeys(scene.frame_names, ("world", grasp)))
        clock.add("immutables", lambda: table.set(next(names), ("link7", grasp)))

    def rows() -> list[Row]:
        best = clock.best
        idle = best["nothing"]  # drawing a name, which is not a part of the work
        given_time, large = best["given 128"] - idle, best[f"given {LARGE}"] - idle
        peer = (
            f"immutables.Map.set, unchecked: {best['immutables'] - idle:.2f} us"
            if "immutables" in best
            else ""
        )
        remark = f"100,000 frames: {best[f'kept {LARGE}']:.2f} us"
        single = f"1,000 single edits: {best['singly']:.2f} us each"
        counted = "allocates nothing: test_scene_arrays.cpp counts"
        return [
            Row("reparent, checks, 128 frames, given pose", given_time, 1.0, "us", peer),
            Row(
                "the same, 100,000 frames", large / given_time, 3.0, "times that", f"{large:.2f} us"
            ),
            Row(
                "reparent that keeps the world pose over 8 edges",
                best["kept 128"],
                1.6,
                "us",
                remark,
            ),
            Row("one of 1,000 edits through edit()", best["many"], 0.3, "us", single),
            Row("SceneArrays.reparent, 128 frames", best["arrays"] - idle, 0.5, "us", counted),
        ]

    return rows


def queries(clock: Clock) -> Callable[[], list[Row]]:
    """A pose over eight edges, and the difference of two large versions."""
    scene, large = scene_of(128), scene_of(LARGE)
    turning = scene
    for i in range(DEPTH):
        turning = turning.set_joint(f"link{i}", Revolute([0, 1, 0]))
    q = np.linspace(-1, 1, DEPTH)
    clock.add("pose", lambda: scene.pose("link7", relative_to="world"))
    clock.add("turning", lambda: turning.pose("link7", relative_to="world", q=q))
    changed = (
        large.reparent("thing7", "link7")
        .set_pose("thing50000", Pose([1, 2, 3]))
        .set_pose("thing99", Pose())
    )
    clock.add("diff", lambda: diff(large, changed))
    if importlib.util.find_spec("pytransform3d"):
        from pytransform3d.transform_manager import TransformManager

        manager = TransformManager()
        for name in scene.path("world", "link7")[1:]:
            manager.add_transform(name, scene.parent(name), scene.local_pose(name).as_matrix())
        clock.add("pytransform3d", lambda: manager.get_transform("link7", "world"))

    def rows() -> list[Row]:
        best = clock.best
        peer = f"pytransform3d: {best['pytransform3d']:.1f} us" if "pytransform3d" in best else ""
        turning = f"{best['turning']:.2f} us when all of them turn"
        return [
            Row(
                "pose over 8 edges",
                best["pose"],
                0.35,
                "us",
                "; ".join(filter(None, [turning, peer])),
            ),
            Row(
                "diff of two versions of 100,000 frames that differ in 3", best["diff"], 20.0, "us"
            ),
        ]

    return rows


def sweeps(clock: Clock) -> Callable[[], list[Row]]:
    """All poses of 128 frames, beside a plain loop in C++ and pinocchio."""
    with tempfile.TemporaryDirectory() as folder:
        floors, same_bits = compile_floors(Path(folder)), floor_of_same_bits(Path(folder))
    for joints in MIXES:
        scene = joints_scene(joints)
        q = np.random.default_rng(1).uniform(-1, 1, len(scene.joint_names))
        arrays = SceneArrays(scene, capacity=160)
        floor = Floor(scene)
        for number, library in enumerate(floors):
            loop = floor.runner(library, q)
            loop()
            assert np.allclose(floor.poses[floor.rows], scene.at(q).poses, rtol=0.0, atol=1e-14)
            clock.add(f"floor {joints}, {number}", loop, per_call=REPEAT)
        floor.runner(same_bits, q)()
        assert floor.poses[floor.rows].tolist() == scene.at(q).poses.tolist()
        clock.add(f"arrays {joints}", lambda a=arrays, q=q: a.forward(q))  # type: ignore[misc]
        clock.add(f"later {joints}", lambda s=scene, q=q: s.at(q))  # type: ignore[misc]
        poses = itertools.cycle([Pose([0, 0, 0.1]), Pose([0, 0, 0.2])])
        last = scene.frame_names[-1]
        scene.at(q)  # versions are made from one that was laid out, as a search makes them
        clock.add(f"edit {joints}", lambda s=scene, p=poses, n=last: s.set_pose(n, next(p)))  # type: ignore[misc]
        clock.add(
            f"first {joints}", lambda s=scene, p=poses, n=last, q=q: s.set_pose(n, next(p)).at(q)
        )  # type: ignore[misc]
        fresh = SceneGraph.from_frames(list(map(scene.specification, scene.frame_names)))
        # the one was laid out, the other was not
        for name, base in (("more", scene), ("scratch", fresh)):
            clock.add(f"{name} {joints}", lambda s=base, q=q: s.add_frame("x", "f60").at(q))  # type: ignore[misc]
            clock.add(f"{name} alone {joints}", lambda s=base: s.add_frame("x", "f60"))  # type: ignore[misc]

    def rows() -> list[Row]:
        best, rows = clock.best, []
        for joints in MIXES:
            base = min(best[f"floor {joints}, {number}"] for number in range(len(floors)))
            first = best[f"first {joints}"] - best[f"edit {joints}"]
            more, scratch = (
                best[f"{name} {joints}"] - best[f"{name} alone {joints}"]
                for name in ("more", "scratch")
            )
            other = f"where no version before was asked: {scratch / base:.2f} times"
            loop = f"the loop: {base:.2f} us"
            what = f"all poses of 128 frames, {joints} revolutes"
            rows += [
                Row(
                    f"{what}: SceneArrays",
                    best[f"arrays {joints}"] / base,
                    1.3,
                    "times the loop",
                    loop,
                ),
                Row(
                    f"{what}: at(q), version made by a move",
                    first / base,
                    2.0,
                    "times the loop",
                    loop,
                ),
                Row(
                    f"{what}: at(q), version with a frame more",
                    more / base,
                    2.0,
                    "times the loop",
                    other,
                ),
                Row(
                    f"{what}: at(q), later",
                    best[f"later {joints}"] / base,
                    1.5,
                    "times the loop",
                    loop,
                ),
            ]
        return rows

    return rows


# --- memory


def memory(count: int) -> list[Row]:
    """Bytes of one more version, and many versions held and dropped, in processes of their own."""
    small, large = (float(_apart("bytes", frames)) for frames in (128, LARGE))
    held, pause, at_once = (float(part) for part in _apart("many", count).split())
    also = "Python's object counts too"
    return [
        Row("memory of one more version, 128 frames", small, 1536, "bytes", also),
        Row("memory of one more version, 100,000 frames", large, 4096, "bytes", also),
        Row(f"{count:,} versions of 200 frames, held", held, 40.0, "MiB"),
        Row(
            "the longest pause while they are dropped one by one",
            pause,
            5.0,
            "ms",
            f"all at once: {at_once:.1f} ms",
        ),
    ]


def _apart(what: str, count: int) -> str:
    command = [sys.executable, __file__, "--apart", what, str(count)]
    environment = {**os.environ, "PYTHONMALLOC": "malloc"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


class _Arena(ctypes.Structure):
    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    ]


def allocated_bytes() -> int:
    """Return the bytes that are allocated, as the C library counts them."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Arena
    info = libc.mallinfo2()
    return int(info.uordblks) + int(info.hblkhd)


def versions_of(scene: SceneGraph, count: int) -> tuple[list[SceneGraph], int]:
    """Return so many versions, each of which moves one thing more, and the bytes that they took."""
    things = [name for name in scene.frame_names if name.startswith("thing")]
    poses = [Pose([0.0, 0.0, 0.001 * i]) for i in range(count)]
    order = np.random.default_rng(0).integers(len(things), size=count).tolist()
    names = [(things[order[i]], f"link{i % DEPTH}") for i in range(count)]
    versions = [scene] * count
    before = allocated_bytes()
    for i, (thing, parent) in enumerate(names):
        scene = scene.reparent(thing, parent, pose=poses[i])
        versions[i] = scene
    return versions, allocated_bytes() - before


def bytes_a_version(frames: int) -> float:
    """Return the mean size of one of two thousand versions."""
    count = 2000
    return versions_of(scene_of(frames), count)[1] / count


def held_and_dropped(count: int) -> tuple[float, float, float]:
    """Return the memory of versions of a scene of 200 frames [MiB], and times of dropping [ms].

    These are the longest pause when they go one by one, and the time it takes when all go in one
    call.
    """
    versions, size = versions_of(scene_of(200), count)
    held = size / 2**20
    pauses = []
    while versions:
        began = time.perf_counter()
        versions.pop()
        pauses.append(time.perf_counter() - began)
    versions, _ = versions_of(scene_of(200), count)
    began = time.perf_counter()
    versions.clear()
    return held, 1e3 * max(pauses), 1e3 * (time.perf_counter() - began)


# --- the table


def table(rows: list[Row]) -> str:
    """Return the rows as Markdown."""
    head = [
        "| work, from Python | measured | aim | holds | beside it, in the same run |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(row.line() for row in rows)]) + "\n"


def main() -> None:
    """Measure and print, and write the page if selected."""
    parser = table_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--apart", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.apart:
        what, count = options.apart[0], int(options.apart[1])
        print(
            bytes_a_version(count)
            if what == "bytes"
            else "{} {} {}".format(*held_and_dropped(count))
        )
        return
    clock = Clock(3 if options.quick else 25)
    parts = [edits(clock), queries(clock), sweeps(clock)]
    clock.run()
    rows = [row for part in parts for row in part()] + memory(2000 if options.quick else 10_000)
    print(table(rows))
    if options.out:
        options.out.write_text(PAGE.format(table=table(rows)), encoding="utf-8")


PAGE = """# Speed and memory of the scene graph

Every number stands beside a peer, a floor or a limit of the same run, on two shared cores. The loop
is forward kinematics in plain C++ over arrays (`tests/benchmarks/floors.cpp`), compiled with and
without vectors of two numbers; the faster counts. [Costs by the number of frames](scene_costs.md)
are another table. Written by `python tests/benchmarks/scene_table.py --out
docs/results/tables/scene.md`.

{table}"""


if __name__ == "__main__":
    main()
