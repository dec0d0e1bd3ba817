"""Costs of a scene from ten frames to a hundred thousand, as a table and a plot.

Run by hand: ``python tests/benchmarks/scene_costs.py [--out docs/results/tables/scene_costs.md]
[--picture docs/images/scene_costs.png] [--sizes 10 100 1000]``. The times depend on the machine and
its load; their growth does not. Each is the best of several, over objects spread through the whole
scene, so that no cache has the result. Memory is read from the allocator, in a separate process in
which Python's objects come from it too.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from benchmarks.tables import deliver, markdown_head, table_parser

from tmkit.graph import Free, Revolute, SceneGraph, diff
from tmkit.spatial import Pose

SIZES = [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000]
LINKS = 8
Q = np.linspace(-1.0, 1.0, LINKS)
GRASP = Pose([0.0, 0.0, 0.1])
VERSIONS = 1000
ROUNDS, LEAST_SECONDS = 15, 0.02
HOW = (
    "The scene is an arm of eight joints with free objects on the world. A reparent attaches one of"
    " them to the arm's last link. The pose is that of the last link relative to the world. The two"
    " versions differ by one reparent. Times are those of a call from Python, the best of several"
    " on two shared cores. The memory is the mean over a thousand versions, all kept, each with one"
    " more object moved, and includes Python's own object. The dict has a parent and a pose for"
    " each name. Written by `python tests/benchmarks/scene_costs.py --out"
    " docs/results/tables/scene_costs.md --picture docs/images/scene_costs.png`. The growth is"
    " explained in [Scene versions](../../concepts/versions.md#why-a-weight-balanced-tree)."
)


@dataclass(frozen=True)
class Costs:
    """Cost of a scene by number of frames [us], and of each further version [bytes]."""

    frames: int
    reparent: float
    pose: float
    difference: float
    copy: float
    bytes_a_version: float


def scene_of(frames: int) -> SceneGraph:
    """Return an arm of eight links, and free things on the world up to the number of frames."""
    with SceneGraph().edit() as edit:
        for i in range(LINKS):
            above = f"link{i - 1}" if i else "world"
            joint = Revolute([0, 1, 0], name=f"joint{i}")
            edit.add_frame(
                f"link{i}", above, pose=Pose.from_rpy([0, 0, 0.3], [0.1 * i, 0, 0]), joint=joint
            )
        for i in range(frames - LINKS - 1):
            edit.add_frame(f"thing{i}", "world", pose=Pose([i, 0, 0]), joint=Free())
    return edit.finish()


def things_of(scene: SceneGraph) -> list[str]:
    """Return things spread through the scene, in an order without a pattern."""
    things = [name for name in scene.frame_names if name.startswith("thing")]
    return [things[i] for i in np.random.default_rng(0).integers(len(things), size=256)]


class Subject:
    """A scene of one size, and the work that is timed on it."""

    def __init__(self, frames: int) -> None:
        scene = scene_of(frames)
        things = things_of(scene)
        versions = [scene.reparent(thing, "link7", pose=GRASP) for thing in things]
        plain = {name: (scene.parent(name), scene.local_pose(name)) for name in scene.frame_names}
        self.frames = frames
        self._best: dict[str, float] = {}
        self._work: dict[str, tuple[Callable[[Any], object], Sequence[object]]] = {
            "reparent": (lambda thing: scene.reparent(thing, "link7", pose=GRASP), things),
            "pose": (lambda _: scene.pose("link7", relative_to="world", q=Q), things),
            "difference": (lambda version: diff(scene, version), versions),
            "copy": (lambda thing: {**plain, thing: ("link7", GRASP)}, things),
        }

    def time(self) -> None:
        """Time all work once more."""
        for name, (work, arguments) in self._work.items():
            self._best[name] = min(self._best.get(name, np.inf), microseconds(work, arguments))

    def costs(self) -> Costs:
        """Return the best times, and the memory."""
        return Costs(self.frames, **self._best, bytes_a_version=measure_in_process(self.frames))


def microseconds(work: Callable[[Any], object], arguments: Sequence[object]) -> float:
    """Return the mean time of a call with one of the arguments, without its result."""
    count = 1
    while True:
        these = list(itertools.islice(itertools.cycle(arguments), count))
        began = time.perf_counter()
        for argument in these:
            work(argument)
        took = time.perf_counter() - began
        if took >= LEAST_SECONDS:
            return 1e6 * took / count
        count *= 2


def measure(sizes: Sequence[int]) -> list[Costs]:
    """Measure all sizes in turn, many times, so that other load slows all of them equally."""
    subjects = [Subject(frames) for frames in sizes]
    gc.disable()
    for turn in range(ROUNDS):
        for subject in subjects:
            subject.time()
        print(f"round {turn + 1} of {ROUNDS}", file=sys.stderr, flush=True)
    gc.enable()
    return [subject.costs() for subject in subjects]


def measure_in_process(frames: int) -> float:
    """Return the bytes of each further version, in a process with the C allocator alone."""
    command = [sys.executable, __file__, "--bytes", str(frames)]
    environment = {**os.environ, "PYTHONMALLOC": "malloc"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def bytes_a_version(frames: int) -> float:
    """Return the bytes for each of many versions, each of which moves one more thing."""
    scene = scene_of(frames)
    things = things_of(scene)
    is_root_child = [scene.parent(thing) == "world" for thing in things]
    versions: list[SceneGraph] = [scene] * VERSIONS
    poses = [Pose([0.0, 0.0, 0.001 * i]) for i in range(VERSIONS)]
    parents = ["link7", "world"]
    assert all(is_root_child)
    before = allocated_bytes()
    for i in range(VERSIONS):
        scene = scene.reparent(
            things[i % len(things)], parents[i // len(things) % 2], pose=poses[i]
        )
        versions[i] = scene
    return (allocated_bytes() - before) / VERSIONS


class _MallocStatistics(ctypes.Structure):
    """``struct mallinfo2`` of the GNU C library."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
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
        )
    )


def allocated_bytes() -> int:
    """Return the bytes that are allocated in this process."""
    gc.collect()
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = _MallocStatistics
    statistics = library.mallinfo2()
    return int(statistics.uordblks + statistics.hblkhd)


def page_of(rows: list[Costs], picture: str) -> str:
    """Return the results as a Markdown page."""
    first, last = rows[0], rows[-1]
    grown = {
        entry.name: getattr(last, entry.name) / getattr(first, entry.name)
        for entry in fields(Costs)
    }
    growth = (
        f"From {first.frames} frames to {last.frames:,}, {grown['frames']:,.0f} times as many, a"
        f" reparent takes {grown['reparent']:.1f} times as long, a pose over eight edges"
        f" {grown['pose']:.1f} times and the difference of two versions {grown['difference']:.1f}"
        f" times, and a further version takes {grown['bytes_a_version']:.1f} times the memory."
        " A copy of a dict, the cost of an immutable scene without sharing, takes"
        f" {grown['copy']:,.0f} times as long."
    )
    table = [
        *markdown_head(
            "frames | reparent | pose over 8 edges | difference of two versions | a further version"
            " | copying a dict"
        ),
        *(
            f"| {row.frames:,} | {row.reparent:.2f} µs | {row.pose:.2f} µs | {row.difference:.2f}"
            f" µs | {row.bytes_a_version:,.0f} bytes | {row.copy:,.2f} µs |"
            for row in rows
        ),
    ]
    picture_line = f"![Costs over the number of frames]({picture})"
    paragraphs = [
        "# Costs of a scene by its number of frames",
        wrap(growth),
        picture_line,
        "\n".join(table),
        wrap(HOW),
    ]
    return "\n\n".join(paragraphs) + "\n"


def wrap(text: str) -> str:
    """Return a paragraph in lines."""
    return textwrap.fill(text, width=118, break_long_words=False, break_on_hyphens=False)


def plot(rows: list[Costs], file: Path) -> None:
    """Draw the times and the memory over the number of frames, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    frames = [row.frames for row in rows]
    figure, (times, memory) = pyplot.subplots(
        1, 2, figsize=(11, 4.4), width_ratios=[3, 2], layout="constrained"
    )
    curves = [
        ("copy", "copying a dict of frames", "#9aa0a8", "--"),
        ("difference", "difference of two versions", "#13875a", "-"),
        ("reparent", "reparent", "#1f6fd0", "-"),
        ("pose", "pose over 8 edges", "#d0661f", "-"),
    ]
    for name, label, colour, style in curves:
        times.loglog(
            frames,
            [getattr(row, name) for row in rows],
            style,
            marker="o",
            ms=4,
            color=colour,
            label=label,
        )
    times.set(xlabel="frames", ylabel="microseconds", title="Time of one call from Python")
    times.legend(frameon=False)
    memory.loglog(
        frames,
        [row.bytes_a_version for row in rows],
        marker="o",
        ms=4,
        color="#1f6fd0",
        label="scene",
    )
    copied = [sys.getsizeof(dict.fromkeys(range(row.frames))) for row in rows]
    memory.loglog(
        frames,
        copied,
        "--",
        marker="o",
        ms=4,
        color="#9aa0a8",
        label="a copied dict, its table alone",
    )
    memory.set(xlabel="frames", ylabel="bytes", title="Memory of one more version")
    memory.legend(frameon=False)
    for axes in (times, memory):
        axes.grid(visible=True, which="major", color="#e3e6ea")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=110, metadata={"Software": None})


def main() -> int:
    """Measure, and write the selected outputs."""
    parser = table_parser(__doc__)
    parser.add_argument("--picture", type=Path, default=None, help="PNG to write")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="numbers of frames, 10 or more"
    )
    parser.add_argument("--bytes", type=int, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.bytes is not None:
        print(bytes_a_version(arguments.bytes))
        return 0
    rows = measure(arguments.sizes)
    if arguments.picture is not None:
        plot(rows, arguments.picture)
    text = page_of(rows, "../../images/scene_costs.png")
    deliver(text, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
