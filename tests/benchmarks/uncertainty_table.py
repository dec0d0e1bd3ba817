"""Benchmark of uncertain poses against peers in the same run, and a published evaluation.

Run by hand: ``python tests/benchmarks/uncertainty_table.py [--out
docs/results/tables/uncertainty.md] [--picture docs/images/uncertainty_times.png] [--quick]``. Peers
are gtsam and pytransform3d where they are installed, and plain numpy. Times are the best of several
rounds, in which all work takes turns, so that other load on the machine slows none more than the
others: the results are the ratios.

The evaluation is that of Sewtz et al. 2025: a tree of four levels, 100,000 queries from leaf to
leaf, how long each takes; beside drawing samples, at several numbers of them, and how far their
covariances are off.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from benchmarks.tables import deliver, table_parser
from scene_table import Clock, Row
from support.gaussian_poses import random_chain

from tmkit import Measurement, NoiseSource, Pose, SceneGraph
from tmkit._core import EdgeNoise, sample_poses
from tmkit.spatial import (
    GaussianPose,
    PoseMeasurement,
    adjoint,
    compose,
    condition,
    fit_gaussian,
    fuse,
)
from tmkit.spatial.converters import to_gtsam, to_pytransform3d
from tmkit.spatial.joint_gaussian import sample_chain

Array = NDArray[np.float64]
Rows = Callable[[], list[Row]]

SAMPLE_COUNTS = (1, 10, 100, 1000)
NO_AIM = float("inf")
REPEAT = 200  # how often one call into the core does its work


# --- scenes


_CORE_SOURCES = (
    "linalg/elementary.cpp",
    "linalg/pose.cpp",
    "uncertainty/covariance.cpp",
    "error.cpp",
)


def tree(frames: int = 31) -> SceneGraph:
    """Return a binary tree with root n1, then n2, n3, ...: 31 frames are a root and four levels."""
    links = random_chain(frames, linear=0.002, angular=0.002, seed=0)
    with SceneGraph(root="n1").edit() as edit:
        for i in range(2, frames + 1):
            edit.add_frame(f"n{i}", f"n{i // 2}", pose=links[i - 1])
    return edit.finish()


def links_of(scene: SceneGraph, target: str, reference: str) -> list[GaussianPose]:
    """Return the edges from the reference up to the common ancestor and down to the target."""
    path = scene.path(reference, target)
    edges = []
    for frame, next_frame in itertools.pairwise(path):
        if scene.parent(next_frame) == frame:
            edges.append(GaussianPose(scene.local_pose(next_frame), _covariance(scene, next_frame)))
        else:
            edges.append(GaussianPose(scene.local_pose(frame), _covariance(scene, frame)).inverse())
    return edges


def _covariance(scene: SceneGraph, frame: str) -> Array:
    noise = scene.noise(frame)
    return np.zeros((6, 6)) if noise is None else noise.covariance


def correlate_edges(scene: SceneGraph, target: str, reference: str, sources: int = 4) -> SceneGraph:
    """Return the scene with edges on a path that share sources of their errors."""
    random = np.random.default_rng(1)
    shared = [NoiseSource(3, f"shared {i}") for i in range(sources)]
    frames = [name for name in scene.path(reference, target) if scene.parent(name) is not None]
    with scene.edit() as edit:
        for i, frame in enumerate(frames):
            two = (shared[i % sources], shared[(i + 1) % sources])
            edit.set_noise(
                frame, EdgeNoise({source: 0.001 * random.normal(size=(6, 3)) for source in two})
            )
    return edit.finish()


def long_path(frames: int = 128) -> SceneGraph:
    """Return a chain of four links on each side of the world, and many more frames beside it."""
    links = random_chain(frames, linear=0.002, angular=0.002, seed=3)
    with SceneGraph().edit() as edit:
        for side in ("a", "b"):
            for i in range(4):
                link = links[i + 4 * (side == "b")]
                parent = f"{side}{i - 1}" if i else "world"
                edit.add_frame(f"{side}{i}", parent, pose=link)
        for i in range(8, frames - 1):
            edit.add_frame(f"x{i}", "world", pose=links[i])
    return edit.finish()


# --- rows: poses by themselves


def algebra(clock: Clock) -> Rows:
    """Chains of eight, beside the libraries."""
    links = random_chain(8, linear=0.01, angular=0.02, seed=1)
    first, second = links[:2]
    clock.add("product", lambda: first @ second)
    clock.add("inverse", first.inverse)
    clock.add("chain", lambda: compose(links))
    clock.add("chain 4", lambda: compose(links, order=4))
    clock.add("core", core_chain(links), per_call=REPEAT)
    clock.add("numpy", numpy_chain(links))
    clock.add("samples", lambda: sample_chain(links, 1000, seed=0))
    peers(clock, links)

    def rows() -> list[Row]:
        best = clock.best
        peers = [
            f"numpy: {best['numpy']:.1f} us",
            describe_peer(best, "gtsam chain", "gtsam's products and numpy's covariances"),
        ]
        four = describe_peer(best, "pytransform3d chain", "pytransform3d")
        thousand = f"1,000 samples drawn: {best['samples']:.0f} us"
        return [
            Row(
                "8 edges composed inside the core",
                best["core"],
                0.35,
                "us",
                "no call from Python in it",
            ),
            Row("`a @ b`", best["product"], NO_AIM, "us"),
            Row("`a.inverse()`", best["inverse"], NO_AIM, "us"),
            Row("`compose` of 8, first order", best["chain"], NO_AIM, "us", join_parts(*peers)),
            Row(
                "`compose` of 8, fourth order",
                best["chain 4"],
                NO_AIM,
                "us",
                join_parts(four, thousand),
            ),
        ]

    return rows


def core_chain(links: list[GaussianPose]) -> Callable[[], object]:
    """Return a call that composes the links REPEAT times in C++, built with the core's options."""
    core = Path(__file__).resolve().parents[2] / "tmkit" / "core"
    sources = [Path(__file__).with_name("gaussian_chain.cpp")]
    sources += [core / "src" / name for name in _CORE_SOURCES]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "chain.so"
        flags = [
            "-std=c++20",
            "-O3",
            "-ffp-contract=off",
            "-shared",
            "-fPIC",
            f"-I{core / 'include'}",
        ]
        subprocess.run(["g++", *flags, *map(str, sources), "-o", str(library)], check=True)
        function = ctypes.CDLL(str(library)).compose_chain
    rows = np.array(
        [np.concatenate([link.mean.as_array(), link.covariance.ravel()]) for link in links]
    )
    result = np.zeros((6, 6))
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (rows, result)]

    def work() -> Array:
        function(REPEAT, len(rows), *pointers)
        return result

    assert np.array_equal(work(), compose(links).covariance)
    return work


def numpy_chain(links: list[GaussianPose]) -> Callable[[], object]:
    """Return a loop in numpy over matrices that are there."""
    matrices = [link.mean.as_matrix() for link in links]
    covariances = [link.covariance for link in links]

    def work() -> Array:
        mean, covariance = np.eye(4), np.zeros((6, 6))
        for matrix, own in zip(matrices, covariances, strict=True):
            R, t = matrix[:3, :3].T, matrix[:3, 3]
            x, y, z = -R @ t
            maps = np.zeros((6, 6))
            maps[:3, :3] = maps[3:, 3:] = R
            maps[:3, 3:] = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ R
            covariance = maps @ covariance @ maps.T + own
            mean = mean @ matrix
        return covariance

    return work


def peers(clock: Clock, links: list[GaussianPose]) -> None:
    """Add the work of gtsam and pytransform3d, if they are installed."""
    if importlib.util.find_spec("gtsam"):
        import gtsam

        poses = [(gtsam.Pose3(matrix), covariance) for matrix, covariance in map(to_gtsam, links)]

        def chain() -> Array:
            mean, covariance = poses[0]
            for pose, own in poses[1:]:
                maps = pose.inverse().AdjointMap()
                covariance = maps @ covariance @ maps.T + own
                mean = mean.compose(pose)
            return covariance

        clock.add("gtsam chain", chain)
    if importlib.util.find_spec("pytransform3d"):
        from pytransform3d.uncertainty import concat_globally_uncertain_transforms as concatenated

        theirs = [to_pytransform3d(link) for link in links]

        def composed() -> Any:
            mean, covariance = theirs[0]
            for pose in theirs[1:]:
                mean, covariance = concatenated(*pose, mean, covariance)
            return covariance

        clock.add("pytransform3d chain", composed)


def estimation(clock: Clock) -> Rows:
    """Fusion and conditioning of chains, beside pytransform3d and a factor graph."""
    random = np.random.default_rng(2)
    link = random_chain(1, linear=0.01, angular=0.02, seed=4)[0]
    other = GaussianPose(link.mean @ Pose.exp(0.01 * random.normal(size=6)), 1e-4 * np.eye(6))
    clock.add("fusion", lambda: fuse([link, other]))
    links = random_chain(8, linear=0.01, angular=0.01, seed=5)
    seen = GaussianPose(
        compose(links).mean @ Pose.exp(0.01 * random.normal(size=6)), 1e-4 * np.eye(6)
    )
    measurement = PoseMeasurement(seen)
    clock.add("conditioned", lambda: condition(links, measurement))
    clock.add("filtered", lambda: condition(links, measurement, max_iterations=1))
    if importlib.util.find_spec("pytransform3d"):
        from pytransform3d.uncertainty import pose_fusion

        means, covariances = zip(*map(to_pytransform3d, (link, other)), strict=True)
        clock.add("pytransform3d fusion", lambda: pose_fusion(means, covariances))
    if importlib.util.find_spec("gtsam"):
        graph, values = factor_graph(links, seen)
        clock.add("gtsam solved", lambda: solve_graph(graph, values))

    def rows() -> list[Row]:
        best = clock.best
        batch = describe_peer(best, "gtsam solved", "gtsam, the batch solved, one marginal")
        return [
            Row(
                "`fuse` of 2",
                best["fusion"],
                NO_AIM,
                "us",
                describe_peer(best, "pytransform3d fusion", "pytransform3d"),
            ),
            Row(
                "`condition` of 8 links on a pose, until it converges",
                best["conditioned"],
                NO_AIM,
                "us",
                batch,
            ),
            Row("the same, one turn", best["filtered"], NO_AIM, "us", ""),
        ]

    return rows


def factor_graph(links: list[GaussianPose], seen: GaussianPose) -> tuple[Any, Any]:
    """Return the graph of a chain whose end was seen, and where to begin."""
    import gtsam

    def model(covariance: Array) -> Any:
        return gtsam.noiseModel.Gaussian.Covariance(covariance)

    graph, values, total = gtsam.NonlinearFactorGraph(), gtsam.Values(), Pose()
    for i, link in enumerate(links):
        matrix, covariance = to_gtsam(link)
        total = total @ link.mean
        values.insert(i, gtsam.Pose3(total.as_matrix()))
        pose = gtsam.Pose3(matrix)
        graph.add(
            gtsam.BetweenFactorPose3(i - 1, i, pose, model(covariance))
            if i
            else gtsam.PriorFactorPose3(0, pose, model(covariance))
        )
    matrix, covariance = to_gtsam(seen)
    graph.add(gtsam.PriorFactorPose3(len(links) - 1, gtsam.Pose3(matrix), model(covariance)))
    return graph, values


def solve_graph(graph: Any, values: Any) -> Any:
    """Solve a graph, and return the marginal of its last pose."""
    import gtsam

    result = gtsam.GaussNewtonOptimizer(graph, values).optimize()
    return gtsam.Marginals(graph, result).marginalCovariance(result.size() - 1)


# --- rows: in the scene graph


def scenes(clock: Clock) -> Rows:
    """Queries over eight edges, reparenting and conditioning."""
    small, large = tree(31), tree(1023)
    shared = correlate_edges(small, "n31", "n16")
    pairs = {"small": ("n31", "n16"), "large": ("n527", "n512")}
    assert len(links_of(small, *pairs["small"])) == len(links_of(large, *pairs["large"])) == 8
    expected = compose(links_of(small, *pairs["small"]))
    assert np.allclose(
        small.gaussian_pose("n31", relative_to="n16").covariance,
        expected.covariance,
        rtol=1e-9,
        atol=1e-18,
    )
    clock.add("pose", lambda: small.pose("n31", relative_to="n16"))
    clock.add("gaussian", lambda: small.gaussian_pose("n31", relative_to="n16"))
    clock.add("gaussian large", lambda: large.gaussian_pose("n527", relative_to="n512"))
    clock.add("correlated", lambda: shared.gaussian_pose("n31", relative_to="n16"))
    wide = long_path()
    other = wide.reparent("a3", "b3")
    assert len(wide.path("a3", "b3")) == 9
    assert other.noise("a3") is not None
    clock.add("reparent", lambda: wide.reparent("a3", "b3"))
    seen = small.pose("n31", relative_to="n16") @ Pose.exp(
        0.002 * np.random.default_rng(6).normal(size=6)
    )
    measurement = Measurement.of_pose("n31", seen, relative_to="n16", covariance=1e-6 * np.eye(6))
    clock.add("measured", lambda: small.condition(measurement))
    marginals(clock, small)

    def rows() -> list[Row]:
        best = clock.best
        peer = join_parts(
            f"numpy: {best['numpy']:.0f} us",
            describe_peer(best, "gtsam chain", "gtsam and numpy, path given"),
        )
        batch = describe_peer(best, "gtsam marginals", "gtsam, marginals of 31 poses")
        ratio = best["gaussian large"] / best["gaussian"]
        alone = f"pose alone: {best['pose']:.2f} us"
        return [
            Row(
                "`scene.gaussian_pose`, 8 edges of 31 frames",
                best["gaussian"],
                0.8,
                "us",
                join_parts(alone, peer),
            ),
            Row(
                "the same, 1,023 frames",
                ratio,
                1.3,
                "times that",
                f"{best['gaussian large']:.2f} us",
            ),
            Row(
                "the same, correlated through 4 shared sources",
                best["correlated"],
                2.5,
                "us",
                batch,
            ),
            Row(
                "`scene.reparent` keeping correlations, 128 frames, 8 edges",
                best["reparent"],
                4.0,
                "us",
            ),
            Row("`scene.condition` on a pose, 8 edges", best["measured"], 40.0, "us", batch),
        ]

    return rows


def marginals(clock: Clock, scene: SceneGraph) -> None:
    """Add the marginals of two leaves of a tree and their relative covariance, by gtsam."""
    if not importlib.util.find_spec("gtsam"):
        return
    import gtsam

    graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    tight = gtsam.noiseModel.Isotropic.Sigma(6, 1e-6)
    graph.add(gtsam.PriorFactorPose3(1, gtsam.Pose3(), tight))
    for name in scene.frame_names:
        i = int(name[1:])
        values.insert(i, gtsam.Pose3(scene.pose(name, relative_to="n1").as_matrix()))
        if i > 1:
            matrix, covariance = to_gtsam(
                GaussianPose(scene.local_pose(name), _covariance(scene, name))
            )
            model = gtsam.noiseModel.Gaussian.Covariance(covariance)
            graph.add(gtsam.BetweenFactorPose3(i // 2, i, gtsam.Pose3(matrix), model))
    between = adjoint(scene.pose("n31", relative_to="n16").inverse())[
        np.ix_([3, 4, 5, 0, 1, 2], [3, 4, 5, 0, 1, 2])
    ]
    maps = np.hstack([-between, np.eye(6)])

    def work() -> Array:
        joint = gtsam.Marginals(graph, values).jointMarginalCovariance([16, 31]).fullMatrix()
        return maps @ joint @ maps.T

    clock.add("gtsam marginals", work)


def describe_peer(best: dict[str, float], name: str, label: str) -> str:
    """Return a peer's time, or nothing when it was not there."""
    return f"{label}: {best[name]:.4g} us" if name in best else ""


def join_parts(*parts: str) -> str:
    """Return the nonempty parts in a row."""
    return "; ".join(filter(None, parts))


# --- the evaluation


def evaluation(queries: int) -> tuple[dict[str, Array], dict[int, float]]:
    """Time queries of random leaves; return times [us] and errors of sampled covariances."""
    scene, random = tree(), np.random.default_rng(7)
    ends = [
        (f"n{16 + a}", f"n{16 + b}") for a, b in random.integers(0, 16, size=(queries, 2)) if a != b
    ]
    methods: dict[str, tuple[Callable[..., object], int]] = {
        "pose alone": (scene.pose, len(ends)),
        "pose and covariance": (scene.gaussian_pose, len(ends)),
    }
    for count in SAMPLE_COUNTS:
        few = max(200, len(ends) // count)
        methods[f"{count} sample{'s' * (count > 1)}"] = (_sampler(scene, count), few)
    times = {name: _each(work, ends[:many]) for name, (work, many) in methods.items()}
    sample_errors = {}
    for count in SAMPLE_COUNTS[1:]:
        errors = []
        for target, reference in ends[:100]:
            exact = scene.gaussian_pose(target, relative_to=reference)
            drawn = sample_poses(scene, target, relative_to=reference, count=count, seed=count)
            sampled = fit_gaussian(drawn, mean=exact.mean).covariance
            errors.append(
                float(np.linalg.norm(sampled - exact.covariance) / np.linalg.norm(exact.covariance))
            )
        sample_errors[count] = float(np.median(errors))
    return times, sample_errors


def _sampler(scene: SceneGraph, count: int) -> Callable[..., object]:
    return lambda target, relative_to: sample_poses(
        scene, target, relative_to=relative_to, count=count, seed=0
    )


def _each(work: Callable[..., object], ends: list[tuple[str, str]]) -> Array:
    """Return the time of each call without that of the clock [us]."""
    clock = time.perf_counter_ns
    for target, reference in ends[:100]:
        work(target, relative_to=reference)
    taken = np.empty(len(ends))
    for i, (target, reference) in enumerate(ends):
        began = clock()
        work(target, relative_to=reference)
        taken[i] = clock() - began
    idle = np.empty(10_000)
    for i in range(len(idle)):
        began = clock()
        idle[i] = clock() - began
    return np.maximum(taken - np.median(idle), 1.0) / 1e3


def picture(times: dict[str, Array], errors: dict[int, float], file: Path) -> None:
    """Draw the distribution of the times, and the accuracy of samples by time."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot, ticker

    colours = ["#9aa0a8", "#1f6fd0", "#f0b990", "#e89a5e", "#d0661f", "#8f4310"]
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(11, 4.4), width_ratios=[3, 2], layout="constrained"
    )
    bins = np.geomspace(0.05, 3000.0, 160)
    for (name, taken), colour in zip(times.items(), colours, strict=True):
        share = np.histogram(taken, bins)[0] / len(taken)
        left.stairs(
            share,
            bins,
            fill=True,
            alpha=0.75,
            color=colour,
            label=f"{name}: {np.median(taken):.2f} us",
        )
    left.set(
        xscale="log", xlabel="microseconds of one query, from Python", ylabel="share of queries"
    )
    left.set_title("Leaf to leaf, a tree of four levels")
    left.legend(frameon=False, fontsize=9, title="medians", loc="upper left", ncols=2)
    left.set_ylim(0.0, 1.35 * left.get_ylim()[1])
    left.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=0))
    counts = list(errors)
    spent = [float(np.median(times[f"{count} samples"])) for count in counts]
    right.loglog(spent, [errors[count] for count in counts], "o-", color="#d0661f")
    for count, x in zip(counts, spent, strict=True):
        right.annotate(
            f"{count} samples", (x, errors[count]), textcoords="offset points", xytext=(7, 5)
        )
    right.axvline(
        float(np.median(times["pose and covariance"])),
        color="#1f6fd0",
        label="closed form, first order",
    )
    right.set(xlabel="median microseconds of one query", ylabel="relative error of the covariance")
    right.set_ylim(0.03, 1.0)
    right.set_yticks([0.05, 0.1, 0.2, 0.5, 1.0])
    right.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=0))
    right.yaxis.set_minor_locator(ticker.NullLocator())
    right.set_title("What samples buy")
    right.legend(frameon=False, loc="lower left", fontsize=9)
    right.margins(x=0.25)
    for axes in (left, right):
        axes.grid(visible=True, which="major", color="#e3e6ea")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=90, metadata={"Software": None})


def format_evaluation(times: dict[str, Array], errors: dict[int, float]) -> str:
    """Return the evaluation as a table."""
    base = float(np.median(times["pose alone"]))
    lines = [
        "| query | median | 5 % to 95 % | times the pose alone | covariance off by |",
        "|---|---|---|---|---|",
    ]
    for name, taken in times.items():
        low, middle, high = np.percentile(taken, [5, 50, 95])
        count = int(name.split()[0]) if "sample" in name else 0
        error = (
            "first order"
            if name == "pose and covariance"
            else f"{errors[count]:.1%}"
            if count in errors
            else ""
        )
        error = "no covariance of one sample" if count == 1 else error
        lines.append(
            f"| {name} | {middle:.2f} us | {low:.2f} to {high:.2f} us | {middle / base:.1f} |"
            f" {error} |"
        )
    return "\n".join(lines)


# --- the page

PAGE = """# Speed of uncertain poses

Every number stands beside peers of the same run, on two shared cores: the best of {rounds} rounds
in which all work takes turns. Covariances have the conventions of
[Uncertainty](../../concepts/uncertainty.md), and agree with those of the peers to 1e-9 at the same
order (`tests/spatial/test_gaussian_oracles.py`). Written by `python
tests/benchmarks/uncertainty_table.py --out docs/results/tables/uncertainty.md --picture
docs/images/uncertainty_times.png`.

{table}

Conditioning in the scene makes a new version of it; `condition` of a list of links and `fuse` are
numpy.

## Leaf to leaf

The evaluation of Sewtz et al., "Representing uncertain spatial transformations in robotic
applications in a structured framework leveraging Lie algebra", 2025: a tree of four levels (31
frames), {queries:,} queries between random leaves, each timed by itself. There a pose with its
covariance took 24.5 times as long as a pose of ROS tf, and samples 60.9 times (for how many samples
is not said). Here the peer is `scene.pose`; samples are drawn in the core, source by source.

![Histograms of query times, and the error of a sampled covariance over its time]({picture})

{evaluation}
"""


def line_of(row: Row) -> str:
    """Return a row in Markdown; where nothing was aimed at, nothing holds."""
    return row.line().replace("| inf us | yes |", "| | |")


def main() -> int:
    """Measure, and write the selected outputs."""
    parser = table_parser(__doc__)
    parser.add_argument("--picture", type=Path, default=None, help="PNG to write")
    parser.add_argument(
        "--quick", action="store_true", help="few rounds and queries, to see that it runs"
    )
    arguments = parser.parse_args()
    rounds, queries = (2, 2000) if arguments.quick else (300, 100_000)
    clock = Clock(rounds, least=0.001)  # short, so that some are not interrupted
    parts = [scenes(clock), algebra(clock), estimation(clock)]
    clock.run()
    header = (
        "| work, from Python | measured | aim | holds | beside it, in the same run"
        " |\n|---|---|---|---|---|\n"
    )
    table = header + "\n".join(line_of(row) for part in parts for row in part())
    times, errors = evaluation(queries)
    if arguments.picture is not None:
        picture(times, errors, arguments.picture)
    text = PAGE.format(
        rounds=rounds,
        table=table,
        queries=queries,
        picture="../../images/uncertainty_times.png",
        evaluation=format_evaluation(times, errors),
    )
    deliver(text, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
