"""Pictures of uncertain poses for the documentation.

Run by hand: ``python tests/benchmarks/uncertainty_pictures.py [--out docs/images]``. Draws
``banana.png``: where a thing is after a hundred steps of a metre, each with a small error of the
turn; samples, and the closed forms. Same numbers every time: all samples are seeded.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._core import exp_each
from tmkit.spatial import GaussianPose, Pose, compose
from tmkit.spatial.joint_gaussian import sample_chain

Array = NDArray[np.float64]

STEPS, SIGMA, SAMPLES = 100, 0.03, 4000
BLUE, ORANGE, GREY, GREEN = "#1f6fd0", "#d0661f", "#9aa0a8", "#13875a"


def steps() -> list[GaussianPose]:
    """Return the steps: a metre forward each, with an error of the turn about z."""
    return [GaussianPose(Pose([1.0, 0, 0]), np.diag([0, 0, 0, 0, 0, SIGMA**2]))] * STEPS


def contour(pose: GaussianPose, count: int = 241) -> Array:
    """Return points (count, 2), x and y, of the 95 % ellipse of [rho_x, rho_y], with their turns.

    The turn is the one to be expected of such a rho; exp then bends the ellipse. To first order
    rho_x has no variance here, so that the ellipse is a line and the region an arc.
    """
    rim = flat_ellipse(np.zeros(2), pose.covariance[:2, :2], count)
    turn = rim @ np.linalg.pinv(pose.covariance[:2, :2], hermitian=True) @ pose.covariance[:2, 5]
    xi = np.zeros((count, 6))
    xi[:, :2], xi[:, 5] = rim, turn
    return np.array([pose.mean.apply(row[:3])[:2] for row in exp_each(xi)])


def flat_ellipse(centre: Array, covariance: Array, count: int = 181) -> Array:
    """Return the 95 % ellipse (count, 2) of a covariance (2, 2) of x and y."""
    values, vectors = np.linalg.eigh(covariance)
    angles = np.linspace(0.0, 2.0 * np.pi, count)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return centre + ((vectors * np.sqrt(5.991 * np.maximum(values, 0.0))) @ circle).T


def banana(file: Path) -> None:
    """Draw the samples, the bent region in closed form, and the ellipse of x and y alone."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    first, fourth = compose(steps()), compose(steps(), order=4)
    drawn = sample_chain(steps(), SAMPLES, seed=1)[:, :2]
    figure, axes = pyplot.subplots(figsize=(7.6, 5.6), layout="constrained")
    axes.plot(
        *drawn.T, ".", ms=2.2, color=GREY, alpha=0.6, label=f"{SAMPLES} samples", rasterized=True
    )
    axes.plot(*contour(first).T, "-", lw=1.6, color=BLUE, label="95 % of exp(ξ), first order")
    axes.plot(*contour(fourth).T, "-", lw=1.6, color=GREEN, label="95 % of exp(ξ), fourth order")
    fitted = flat_ellipse(drawn.mean(axis=0), np.cov(drawn.T))
    axes.plot(*fitted.T, "--", lw=1.6, color=ORANGE, label="95 %, ellipse fitted to x and y")
    axes.plot(0, 0, "o", color="black", ms=6)
    axes.annotate("start", (0, 0), textcoords="offset points", xytext=(7, 7))
    axes.plot(*first.mean.translation[:2], "P", color="black", ms=7)
    axes.annotate("mean", first.mean.translation[:2], textcoords="offset points", xytext=(9, -4))
    axes.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", xlim=(-6, 116), ylim=(-64, 64))
    axes.set_title(f"{STEPS} steps of 1 m, each with a rotation error of {SIGMA} rad")
    axes.legend(frameon=False, loc="lower left", fontsize=9)
    finish(figure, axes, file)


def finish(figure: Any, axes: Any, file: Path) -> None:
    """Give the axes the look of the other pictures, and write the file."""
    axes.grid(visible=True, color="#e3e6ea")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=90, metadata={"Software": None})


def main() -> int:
    """Draw the selected pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--out", type=Path, default=Path("docs/images"), help="folder of the pictures"
    )
    arguments = parser.parse_args()
    banana(arguments.out / "banana.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
