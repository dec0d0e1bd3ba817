"""Compliance of an arm under its own weight: tool pose, covariance, and compensation.

The scene describes a rigid arm of 1.4 m. The real one gives way in its joints and tubes; how much
is known to 15 %, and the joints have some play. The model predicts the pose of the tool and its
region; two hundred simulated arms, each with random stiffness and play and bent to rest, test
the prediction. Then the arm is commanded such that the bent arm reaches the target. Run it:
``python examples/bending_arm.py``; it draws the picture of the documentation into ``--out`` (with
the extra ``pictures``).
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

import tmkit as tk
from tmkit.estimation import (
    Deflection,
    LinearCompliance,
    apply_compliance,
    beam_compliance,
    joint_compliance,
)
from tmkit.spatial import (
    chi_square_quantile,
    covariance_root,
    position_covariance,
    position_ellipsoid,
)

Array = NDArray[np.float64]

ARMS, SPREAD = 200, 0.15
PLAY = np.diag([0.0, 0.0, 0.0, 4e-4, 4e-4, 4e-4]) ** 2
LINKS = (("shoulder", "z", 0.25), ("upper", "y", 0.5), ("elbow", "y", 0.45), ("wrist", "y", 0.2))
POSTURES = {
    "stretched": [0.0, 1.35, 0.25, 0.1],
    "reaching": [0.4, 0.6, 1.2, 0.5],
    "upright": [0.2, 0.1, 0.15, 0.2],
}


def arm() -> tuple[tk.SceneGraph, dict[str, Array]]:
    """Return the rigid arm with its masses, and how its joints and tubes give way, by frame."""
    scene, above = tk.SceneGraph(), "world"
    compliances: dict[str, Array] = {}
    for number, (name, axis, length) in enumerate(LINKS):
        direction = np.eye(3)["xyz".index(axis)]
        scene = scene.add_frame(f"{name} joint", above, joint=tk.Revolute(direction, name=name))
        compliances[f"{name} joint"] = joint_compliance(direction, stiffness=6e3)
        above = f"{name} tube"
        scene = scene.add_frame(above, f"{name} joint", pose=tk.Pose([0.0, 0.0, length]))
        scene = scene.set_inertia(above, tk.Inertia(4.0 - 0.8 * number, [0.0, 0.0, -0.4 * length]))
        compliances[above] = beam_compliance(length, bending=4e3, torsion=2e3, axis="z")
    scene = scene.add_frame("tool", above, pose=tk.Pose([0.0, 0.0, 0.1])).set_inertia(
        "tool", tk.Inertia(1.0)
    )
    return scene, compliances


@dataclass(frozen=True)
class SimulatedArm:
    """The true arm: a compliance model with a randomly drawn stiffness and backlash."""

    model: LinearCompliance
    play: dict[str, Array]

    def deflections(self, scene: tk.SceneGraph, q: ArrayLike | None) -> Mapping[str, Deflection]:
        """Return the deflection under the load, and the play."""
        deflections = self.model.deflections(scene, q)
        return {
            frame: Deflection((tk.Pose.exp(deflections[frame].offset) @ tk.Pose.exp(play)).log())
            for frame, play in self.play.items()
        }


def simulate_arms(compliances: Mapping[str, Array], *, seed: int) -> list[SimulatedArm]:
    """Return arms that differ as arms do."""
    random, root = np.random.default_rng(seed), covariance_root(PLAY)
    arms = []
    for _ in range(ARMS):
        softer = 1.0 + SPREAD * random.normal(size=len(compliances))
        play = {frame: root @ random.normal(size=root.shape[1]) for frame in compliances}
        real = {
            frame: factor * matrix
            for factor, (frame, matrix) in zip(softer, compliances.items(), strict=True)
        }
        arms.append(SimulatedArm(LinearCompliance(real), play))
    return arms


def tools(scene: tk.SceneGraph, arms: list[SimulatedArm], q: Array) -> Array:
    """Return where the tools (n, 3) of simulated arms are, each bent until it rests."""
    return np.array(
        [
            apply_compliance(scene, arm, q=q, iterations=3)
            .pose("tool", relative_to="world", q=q)
            .translation
            for arm in arms
        ]
    )


def compensate(scene: tk.SceneGraph, model: LinearCompliance, q: Array) -> Array:
    """Return the configuration at which the compliant arm has the tool pose of the rigid one."""
    target, command = scene.pose("tool", relative_to="world", q=q).translation, q.copy()
    for _ in range(4):
        version = apply_compliance(scene, model, q=command, iterations=3)
        missing = target - version.pose("tool", relative_to="world", q=command).translation
        command = command + np.linalg.pinv(version.at(command).jacobian("tool")[:3]) @ missing
    return command


def main() -> None:
    """Predict, simulate, compensate; print millimetres."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene, compliances = arm()
    model = LinearCompliance(compliances, fraction=SPREAD, floor=PLAY)
    arms = simulate_arms(compliances, seed=1)
    print(f"{ARMS} simulated arms; distances of their tools in mm, mean and 95 %\n")
    print(
        f"{'':<11}{'from the rigid':>16}{'from the':>16}{'in its region':>16}"
        f"{'from the target,':>18}"
    )
    print(f"{'':<11}{'tool':>16}{'predicted':>16}{'of 95 %':>16}{'compensated':>18}")
    panels = {}
    for name, values in POSTURES.items():
        q = np.array(values)
        rigid = scene.pose("tool", relative_to="world", q=q)
        version = apply_compliance(scene, model, q=q, iterations=3)
        predicted = version.gaussian_pose("tool", relative_to="world", q=q)
        real = tools(scene, arms, q)
        region = position_ellipsoid(predicted, probability=0.95)
        inside = np.mean([region.contains(point) for point in real])
        command = compensate(scene, model, q)
        reached = tools(scene, arms, command)
        print(
            f"{name:<11}{distances(real, rigid):>16}{distances(real, predicted.mean):>16}"
            f"{inside:>16.1%}{distances(reached, rigid):>18}"
        )
        assert abs(inside - 0.95) < 0.05, "the region is not that of the simulated arms"
        panels[name] = (q, predicted, real, reached, command)
    if importlib.util.find_spec("matplotlib") is not None:
        draw(scene, model, panels["stretched"], folder / "bending_arm.png")
        print("see", folder / "bending_arm.png")


def distances(points: Array, pose: tk.Pose) -> str:
    """Return mean and 95 % of the distances of points (n, 3) from a pose, in mm."""
    errors = 1e3 * np.linalg.norm(points - pose.translation, axis=1)
    return f"{errors.mean():.1f}, {np.quantile(errors, 0.95):.1f}"


# ------------------------------------------------------------------------------------------ picture


def draw(
    scene: tk.SceneGraph,
    model: LinearCompliance,
    panel: tuple[Array, tk.GaussianPose, Array, Array, Array],
    path: Path,
) -> None:
    """Draw the arm from the side, and the tools of all arms before and after compensation."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    q, predicted, real, reached, command = panel
    figure = Figure(figsize=(10.5, 3.8), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    side, before, after = figure.subplots(1, 3, width_ratios=[1.3, 1.0, 1.0])
    frames = [*reversed(scene.ancestors("tool")), "tool"]
    version = apply_compliance(scene, model, q=q, iterations=3)
    rigid = np.array([scene.pose(name, relative_to="world", q=q).translation for name in frames])
    bends = (
        np.array([version.pose(name, relative_to="world", q=q).translation for name in frames])
        - rigid
    )
    side.plot(rigid[:, 0], rigid[:, 2], color="#999999", marker="o", markersize=4, label="rigid")
    many = rigid + 5 * bends
    side.plot(
        many[:, 0],
        many[:, 2],
        color="#1f5fa8",
        marker="o",
        markersize=4,
        label="deflection times five",
    )
    side.set(
        title="arm from the side",
        xlabel="x (m)",
        ylabel="z (m)",
        aspect="equal",
        ylim=(-0.15, 0.75),
    )
    side.legend(fontsize=8, loc="upper right")
    target = rigid[-1]
    held = apply_compliance(scene, model, q=command, iterations=3).gaussian_pose(
        "tool", relative_to="world", q=command
    )
    for axes, points, claimed, title in (
        (before, real, predicted, "tool"),
        (after, reached, held, "tool, compensated"),
    ):
        offsets = 1e3 * (points - target)
        axes.scatter(
            offsets[:, 0],
            offsets[:, 2],
            s=9,
            color="#d9621e",
            alpha=0.5,
            linewidths=0,
            label="arms",
        )
        outline = 1e3 * (ellipse(claimed) + (claimed.mean.translation - target)[[0, 2]])
        axes.plot(outline[:, 0], outline[:, 1], color="#1f5fa8", label="predicted, 95 %")
        axes.plot(0.0, 0.0, "k+", markersize=12, label="commanded")
        axes.set(title=title, xlabel="x (mm)", ylabel="z (mm)", xlim=(-2.5, 3.5), ylim=(-34, 14))
        axes.grid(visible=True, linewidth=0.3)
    before.legend(fontsize=8, loc="center left")
    figure.savefig(path, format="png", metadata={"Software": None})


def ellipse(pose: tk.GaussianPose) -> Array:
    """Return the outline (n, 2) of the 95 % region of the position, in x and z, centred."""
    flat = position_covariance(pose)[np.ix_([0, 2], [0, 2])]
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.sqrt(chi_square_quantile(0.95, 2)) * np.column_stack([np.cos(turn), np.sin(turn)])
    return np.asarray(circle @ np.linalg.cholesky(flat).T)


if __name__ == "__main__":
    main()
