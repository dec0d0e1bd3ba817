"""Mapping with an uncertain neck: a robot observes markers of an instrument from its head.

The base is localised by wheel odometry and, now and then, a global fix. The camera sits on a torso
and neck moved by ropes, whose pose differs from the encoder values. Every view is an
observation of a marker from where the camera is believed to be. All of it is one scene: each stop
of the base is a child of the one before, each camera on its base, the instrument on the map. As a
pose graph it is solved at once, by tmkit and by gtsam (the extra ``world``; without it that part is
skipped), and the solution is written back as a new version of the scene. ``scene.condition``, one
observation after the other, gives nearly the same: the difference is of second order in the errors.

Run it: ``python examples/uncertain_neck_map.py``; it draws the picture of the documentation into
``--out`` (with the extra ``pictures``).
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.errors import install_command
from tmkit.estimation import pose_graph, solve_pose_graph, solve_with_gtsam, write_back
from tmkit.graph import Evidence, add_observation, joint_gaussian, observations
from tmkit.spatial import GaussianPose, chi_square_quantile, covariance_root, position_covariance

Array = NDArray[np.float64]

STOPS, RADIUS = 9, 2.0
ODOMETRY = np.diag([0.02, 0.015, 0.002, 0.002, 0.002, 0.012]) ** 2
NECK = np.diag([0.006, 0.006, 0.003, 0.010, 0.014, 0.008]) ** 2
CAMERA = np.diag([0.004, 0.004, 0.010, 0.010, 0.010, 0.004]) ** 2
FIX = np.diag([0.03, 0.03, 0.01, 0.01, 0.01, 0.02]) ** 2
GUESS = np.diag([0.5, 0.5, 0.2, 0.2, 0.2, 0.4]) ** 2
MARKERS = {
    "front": [-0.3, 0.0, 0.4],
    "left": [0.0, 0.3, 0.4],
    "back": [0.3, 0.0, 0.4],
    "right": [0.0, -0.3, 0.4],
}


def initial_estimate(*, size: float = 1.0) -> tk.SceneGraph:
    """Return the scene before any look: stops by odometry, cameras by encoders, a rough guess.

    Args:
        size: of all errors, as a factor.
    """
    scene, above, pose = tk.SceneGraph("map"), "map", tk.Pose()
    for stop in range(STOPS):
        angle = 2.0 * np.pi * stop / STOPS
        here = tk.Pose.from_rpy(
            [-RADIUS * np.cos(angle), -RADIUS * np.sin(angle), 0.0], [0.0, 0.0, angle]
        )
        scene = scene.add_frame(
            f"base {stop}", above, pose=GaussianPose(pose.inverse() @ here, size**2 * ODOMETRY)
        )
        neck = tk.Pose.from_rpy([0.1, 0.0, 1.3], [0.0, 0.45, 0.1 * (stop % 3 - 1)])
        scene = scene.add_frame(
            f"head {stop}", f"base {stop}", pose=GaussianPose(neck, size**2 * NECK)
        )
        optical = tk.Pose.from_rpy([0.06, 0.0, 0.05], [-np.pi / 2, 0.0, -np.pi / 2])
        scene = scene.add_frame(f"camera {stop}", f"head {stop}", pose=optical)
        above, pose = f"base {stop}", here
    scene = scene.add_frame(
        "instrument", "map", pose=GaussianPose(tk.Pose([0.2, -0.1, 0.0]), size**2 * GUESS)
    )
    for name, place in MARKERS.items():
        scene = scene.add_frame(f"marker {name}", "instrument", pose=tk.Pose(place))
    return scene


def drawn(covariance: Array, random: np.random.Generator) -> tk.Pose:
    """Return a small error of a covariance."""
    root = covariance_root(covariance)
    return tk.Pose.exp(root @ random.normal(size=root.shape[1]))


def simulate_drive(
    scene: tk.SceneGraph, *, seed: int, size: float = 1.0
) -> tuple[tk.SceneGraph, tk.SceneGraph]:
    """Return the true scene, and the looks: two markers at each stop, a fix at every third."""
    true, random = scene, np.random.default_rng(seed)
    for frame in scene.noisy_frames:
        error = drawn(np.asarray(scene.edge_covariance(frame)), random)
        true = true.set_pose(frame, scene.local_pose(frame) @ error).set_covariance(frame, None)
    seen = scene
    for stop in range(STOPS):
        nearest = sorted(
            MARKERS, key=lambda name: distance(true, f"marker {name}", f"camera {stop}")
        )[:2]
        for marker in nearest:
            seen = look(
                seen, true, f"marker {marker}", f"camera {stop}", size**2 * CAMERA, stop, random
            )
        if stop % 3 == 0:
            seen = look(seen, true, f"base {stop}", "map", size**2 * FIX, stop, random)
    return true, seen


def look(
    scene: tk.SceneGraph,
    true: tk.SceneGraph,
    target: str,
    reference: str,
    noise: Array,
    stop: int,
    random: np.random.Generator,
) -> tk.SceneGraph:
    """Return the scene with one observation of the true one."""
    pose = true.pose(target, relative_to=reference) @ drawn(noise, random)
    return add_observation(
        scene,
        target,
        pose,
        relative_to=reference,
        evidence=Evidence(covariance=noise, stamp=float(stop)),
    )


def distance(scene: tk.SceneGraph, a: str, b: str) -> float:
    """Return the distance between two frames [m]."""
    return float(np.linalg.norm(scene.pose(a, relative_to=b).translation))


def main() -> None:
    """Drive, solve in three ways, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    true, scene = simulate_drive(initial_estimate(), seed=4)
    graph = pose_graph(scene)
    solution = solve_pose_graph(graph)
    version = write_back(scene, solution)
    seen, steps = len(observations(scene)), solution.iterations
    print(f"{seen} observations of {len(graph.frames)} uncertain frames, solved in {steps} steps")
    for name, estimate in (("before", scene), ("after", version)):
        print(f"    {name:<8}{report(estimate, true)}")
    by_gtsam(scene, version)

    print("\nscene.condition, one observation after the other, is off from that by")
    for size in (1.0, 0.1, 0.001):
        print(f"    {gap(size):.1e} m where errors are {size:g} times as large")
    assert gap(0.001) < 1e-6, "conditioning and solving at once should differ by second order"
    if importlib.util.find_spec("matplotlib") is not None:
        draw(scene, version, true, folder / "uncertain_neck_map.png")
        print("see", folder / "uncertain_neck_map.png")


def report(scene: tk.SceneGraph, true: tk.SceneGraph) -> str:
    """Return how far off the instrument is, and how far off it is claimed to be."""
    estimate = scene.pose("instrument", relative_to="map")
    metres, radians = true.pose("instrument", relative_to="map").distance(estimate)
    deviations = scene.standard_deviation("instrument", relative_to="map")
    position, rotation = np.linalg.norm(deviations.reshape(2, 3), axis=1)
    claim = f"known to {1e3 * position:.1f} mm and {1e3 * rotation:.1f} mrad"
    return f"the instrument is {1e3 * metres:.1f} mm and {1e3 * radians:.1f} mrad off, {claim}"


def by_gtsam(scene: tk.SceneGraph, version: tk.SceneGraph) -> None:
    """Let gtsam solve the same graph, write its solution into the scene, and compare."""
    if importlib.util.find_spec("gtsam") is None:
        print(f"gtsam is not installed; to compare with it, run {install_command('world')}")
        return
    theirs = write_back(scene, solve_with_gtsam(pose_graph(scene)))
    pairs = [("instrument", "map"), ("camera 3", "map"), ("instrument", "base 5")]
    poses = max(
        max(theirs.pose(a, relative_to=b).distance(version.pose(a, relative_to=b)))
        for a, b in pairs
    )
    ours, joint = joint_gaussian(version, pairs)[1], joint_gaussian(theirs, pairs)[1]
    apart = np.linalg.norm(ours - joint) / np.linalg.norm(joint)
    agree = poses < 1e-6 and apart < 1e-6
    print(
        f"gtsam's solution, written back, {'agrees within' if agree else 'IS NOT WITHIN'} 1e-6 in"
        " poses and covariances"
    )
    assert agree, f"{poses:.1e}, {apart:.1e}"


def gap(size: float) -> float:
    """Return the distance of the instrument by conditioning from that by one joint solve [m]."""
    _, scene = simulate_drive(initial_estimate(size=size), seed=4, size=size)
    solved = write_back(scene, solve_pose_graph(pose_graph(scene)))
    for observation in observations(scene):
        scene = scene.condition(observation.measurement())
    return solved.pose("instrument", relative_to="map").distance(
        scene.pose("instrument", relative_to="map")
    )[0]


# ------------------------------------------------------------------------------------------ picture


def draw(scene: tk.SceneGraph, version: tk.SceneGraph, true: tk.SceneGraph, path: Path) -> None:
    """Draw the map before and after: stops, heads and the instrument, with 95 % regions."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 4.6), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    stops = [f"base {stop}" for stop in range(STOPS)]
    for axes, estimate, title in zip(
        figure.subplots(1, 2, sharex=True, sharey=True),
        (scene, version),
        ("odometry and prior", "after all observations"),
        strict=True,
    ):
        for frames, color, label in (
            (stops, "#1f5fa8", "base"),
            (["instrument"], "#d9621e", "instrument"),
        ):
            means = np.array(
                [estimate.pose(frame, relative_to="map").translation for frame in frames]
            )
            axes.plot(
                means[:, 0],
                means[:, 1],
                color=color,
                marker="o",
                markersize=4,
                label=f"{label}, and 95 %",
            )
            for frame in frames:
                outline = ellipse(estimate.gaussian_pose(frame, relative_to="map"))
                axes.plot(outline[:, 0], outline[:, 1], color=color, linewidth=0.8)
        places = np.array(
            [true.pose(frame, relative_to="map").translation for frame in (*stops, "instrument")]
        )
        axes.plot(places[:, 0], places[:, 1], "k+", markersize=7, label="true positions")
        axes.set(title=title, xlabel="x (m)", aspect="equal", xlim=(-2.7, 2.7), ylim=(-2.6, 3.4))
        axes.grid(visible=True, linewidth=0.3)
    figure.axes[0].set_ylabel("y (m)")
    figure.axes[0].legend(fontsize=8, loc="upper left")
    figure.savefig(path, format="png", metadata={"Software": None})


def ellipse(pose: tk.GaussianPose) -> Array:
    """Return the outline (n, 2) of the region of 95 % of the position, in x and y."""
    flat = position_covariance(pose)[:2, :2]
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.sqrt(chi_square_quantile(0.95, 2)) * np.column_stack([np.cos(turn), np.sin(turn)])
    return np.asarray(pose.mean.translation[:2] + circle @ np.linalg.cholesky(flat).T)


if __name__ == "__main__":
    main()
