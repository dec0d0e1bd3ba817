"""Picture of the search tree of one run: a box that needs a regrasp, found by a transfer.

Run by hand: ``python tests/benchmarks/search_tree_picture.py [--out docs/images]``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.tamp_problems import regrasp_problem

import tmkit as tk
from tmkit.visualization import draw_search_tree


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    problem = regrasp_problem(seed=0)
    result = tk.plan(
        problem.scene,
        goal=problem.goal,
        domain=problem.domain,
        options=tk.PlanningOptions(max_iterations=4, record_tree=True),
    )
    path = draw_search_tree(
        result.search_trees,
        parser.parse_args().out / "search_tree.png",
        learned=result.diagnosis.constraints,
    )
    print(result, path, path.stat().st_size)


if __name__ == "__main__":
    main()
