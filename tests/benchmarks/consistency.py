"""NEES and NIS of repeated measurements, by kind, prior, number of updates and iterations; by hand.

``python tests/benchmarks/consistency.py --runs 1000`` prints one line a cell. All numbers are 1 for
covariances that are right, and 1 +- 0.05 for so many runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import consistency_runs as runs

NUMBERS = {
    "bearing": 2,
    "range": 1,
    "position": 3,
    "position of a point": 3,
    "unknown orientation": 3,
    "unknown yaw": 5,
    "unknown position": 3,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--updates", type=int, nargs="+", default=[1, 10, 200])
    parser.add_argument("--iterations", type=int, nargs="+", default=[1, 50])
    parser.add_argument("--kinds", nargs="+", default=list(runs.KINDS))
    parser.add_argument("--priors", nargs="+", default=list(runs.PRIORS))
    options = parser.parse_args()
    for kind in options.kinds:
        for prior in options.priors:
            for updates in options.updates:
                for iterations in options.iterations:
                    outcomes = [
                        runs.run(kind, prior, updates=updates, max_iterations=iterations, seed=seed)
                        for seed in range(options.runs)
                    ]
                    turn = runs.normalise_errors(outcomes, lambda outcome: outcome.orientation)
                    whole = runs.normalise_errors(outcomes, lambda outcome: outcome.pose)
                    innovations = np.mean(
                        [outcome.distances for outcome in outcomes]
                    ) / NUMBERS.get(kind, 6)
                    deviation = np.sqrt(
                        np.mean(
                            [np.trace(outcome.estimate.covariance[3:, 3:]) for outcome in outcomes]
                        )
                        / 3.0
                    )
                    cell = f"{kind:20} {prior:10} {updates:4} updates, {iterations:2} iterations"
                    print(
                        f"{cell}: NEES orientation {turn:.3f} pose {whole:.3f}, NIS"
                        f" {innovations:.3f}, orientation {deviation:.4f} rad",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
