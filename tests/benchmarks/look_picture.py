"""Picture of uncertain blocks before and after looks, and of simulated plans.

Run by hand: ``python tests/benchmarks/look_picture.py docs/images/uncertain_blocks.png``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse, Polygon
from support.unsure_blocks import ON_B, execute_looks, unsure_blocks

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.simulation import Camera
from tmkit.tamp import sample_scene
from tmkit.tamp.uncertainty.scene_probability import point_distribution

WORLD = 1
COLORS = {"a": "#d6403d", "b": "#3878bf", "c": "#54a35c"}
HALF = 0.025 * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])


def draw(axes: Axes, scene: SceneGraph, world: SceneGraph, title: str) -> None:
    """Draw blocks from above at their true poses, and estimated poses with 95 % ellipses."""
    for block, color in COLORS.items():
        axes.add_patch(
            Polygon(
                world.pose(block, relative_to="world").apply(HALF)[:, :2],
                color=color,
                alpha=0.45,
                lw=0,
            )
        )
        axes.add_patch(
            Polygon(
                scene.pose(block, relative_to="world").apply(HALF)[:, :2],
                fill=False,
                ec=color,
                lw=1.2,
                ls="--",
            )
        )
        mean, covariance = point_distribution(scene, block, relative_to="world")
        values, vectors = np.linalg.eigh(covariance[:2, :2])
        width, height = 2.0 * np.sqrt(5.991 * values)
        angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
        axes.add_patch(
            Ellipse(mean[:2].tolist(), width, height, angle=angle, fill=False, ec="black", lw=0.9)
        )
        axes.annotate(
            block, (float(mean[0]) + 0.06, float(mean[1])), ha="center", va="center", fontsize=10
        )
    axes.set(xlim=(0.28, 0.62), ylim=(-0.3, 0.3), aspect="equal", title=title, xlabel="x [m]")


def simulate_plan(axes: Axes, plan: Plan, world: SceneGraph, title: str) -> None:
    """Draw how a plan ends in a world."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "end.png"
        view = Camera(position=(1.15, -0.75, 0.6), target=(0.4, 0.0, 0.15), width=400, height=480)
        tk.simulate(
            plan,
            picture=path,
            options=tk.SimulationOptions(world=world),
            recording=tk.Recording(camera=view),
        )
        axes.imshow(plt.imread(path))
    axes.set_title(title)
    axes.axis("off")


def main() -> None:
    """Write the picture."""
    scene = unsure_blocks()
    plan = tk.plan(scene, domain="blocks_uncertain", goal=ON_B).plan
    blind = tk.plan(scene, domain="blocks", goal="(on a b)").plan
    assert plan is not None
    assert blind is not None
    world = sample_scene(scene, seed=WORLD)
    seen = execute_looks(plan, world, seed=WORLD)
    rest = tk.plan(seen, domain="blocks_uncertain", goal=ON_B).plan
    assert rest is not None
    figure, axes = plt.subplots(
        1, 4, figsize=(11, 4.4), width_ratios=[1, 1, 1.5, 1.5], layout="constrained"
    )
    draw(axes[0], scene, world, "estimates at the start")
    draw(axes[1], seen, world, "after looks at a and b")
    axes[0].set_ylabel("y [m]")
    simulate_plan(axes[2], blind, world, "without looks")
    simulate_plan(axes[3], rest, world, "with looks")
    figure.savefig(sys.argv[1], dpi=80, bbox_inches="tight", pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
