"""Consistency of scene covariances (NEES) after looks, picks, carries and places.

Simulates runs whose errors are drawn from the scene's own sources (``tests/support/nees_runs.py``)
and compares the mean squared Mahalanobis distance of the cup's true pose (NEES) with its chi-square
band, after every stage: with noise sources, and with every edge's covariance made independent after
each change. Prints a table and draws a figure:

    python tests/benchmarks/nees.py --runs 2000 --picture docs/images/nees.png

About 20 s on one core. The exit code is 1 when a mean that should lie in its band does not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.nees_runs import STAGES, as_independent, compute_squared_distances, keep_all

from tmkit.spatial import chi_square_quantile

Array = NDArray[np.float64]
REFERENCES = ("world", "camera")


def main() -> int:
    """Run, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument(
        "--probability", type=float, default=0.99, help="of each mean to lie in its band"
    )
    parser.add_argument("--picture", type=Path, help="PNG file to write")
    arguments = parser.parse_args()
    runs, tail = arguments.runs, 0.5 * (1.0 - arguments.probability)
    low, high = (chi_square_quantile(p, 6 * runs) / runs for p in (tail, 1.0 - tail))
    means = {
        (label, reference): compute_squared_distances(
            runs, forget=forget, reference=reference
        ).mean(axis=0)
        for label, forget in (("sources", keep_all), ("independent", as_independent))
        for reference in REFERENCES
    }
    print(
        f"NEES of the cup's pose, {runs} runs; band of {arguments.probability:.0%}: {low:.3f} to"
        f" {high:.3f}\n"
    )
    print(f"{'relative to':<14}{'errors':<14}" + "".join(f"{stage:>13}" for stage in STAGES))
    for (label, reference), row in means.items():
        print(f"{reference:<14}{label:<14}" + "".join(f"{value:13.3f}" for value in row))
    if arguments.picture is not None:
        draw(means, low, high, runs, arguments.picture)
    values = np.concatenate([row for (label, _), row in means.items() if label == "sources"])
    return 0 if ((values >= low) & (values <= high)).all() else 1


def draw(
    means: dict[tuple[str, str], Array], low: float, high: float, runs: int, path: Path
) -> None:
    """Draw the means beside their band."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 3.6), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, reference in zip(figure.subplots(1, 2), REFERENCES, strict=True):
        places = np.arange(len(STAGES))
        axes.axhspan(low, high, color="#9ccc9c", label="chi-square band")
        for variant, color, marker in (
            ("sources", "#1f5fa8", "o"),
            ("independent", "#d9621e", "s"),
        ):
            label = "noise sources" if variant == "sources" else "made independent"
            axes.plot(
                places,
                means[variant, reference],
                color=color,
                marker=marker,
                markersize=4,
                label=label,
            )
        axes.set_yscale("log")
        axes.set_ylim(0.7, 10.0)
        axes.set_yticks([1, 2, 3, 4, 6, 8], ["1", "2", "3", "4", "6", "8"])
        axes.minorticks_off()
        axes.set_xticks(places, STAGES, rotation=30, ha="right", fontsize=8)
        axes.set_title(f"cup relative to the {reference}", fontsize=10)
        axes.grid(visible=True, linewidth=0.3)
    figure.axes[0].set_ylabel(f"NEES, mean of {runs} runs")
    figure.axes[0].legend(fontsize=8)
    figure.savefig(path, format="png", metadata={"Software": None})


if __name__ == "__main__":
    sys.exit(main())
