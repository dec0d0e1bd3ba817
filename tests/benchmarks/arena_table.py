"""Planners on suites of problems: solved, valid, time, length of plans and paths, in one table.

    python tests/benchmarks/arena_table.py hanoi ceiling -o results python
    tests/benchmarks/arena_table.py geometry -o results --planner tmkit --planner my_planner:plan
    --simulate

A suite has a name, or is a batch file; ``comparison/README.md`` has both, and how planners enter.
Planners are code that is run. A run that was stopped goes on in its folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison.arena import OWN, arena_table, load_suite, run_arena, suite_names

from tmkit.errors import TmkitError


def main(arguments: list[str] | None = None) -> int:
    """Run planners on suites, print the table and write it into the folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="+", help=f"{', '.join(suite_names())}, or BATCH.toml")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="folder of the results and the table"
    )
    parser.add_argument(
        "--planner", action="append", help="tmkit, pddlstream:FOLDER, MODULE:NAME or FILE.py:NAME"
    )
    parser.add_argument("--seeds", type=int, help="problems of each kind; all by default")
    parser.add_argument(
        "--simulate", action="store_true", help="execute the plans in the simulator"
    )
    parser.add_argument(
        "--workers", type=int, help="problems solved at a time; by default one a core"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="a scheduler of dask, in place of this machine"
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args(arguments)
    if options.seeds is not None and options.seeds < 1:
        parser.error(f"--seeds must be at least 1, not {options.seeds}")
    try:
        rows = run_arena(
            {Path(name).stem: load_suite(name) for name in options.suites},
            options.output,
            planners=options.planner or [OWN],
            seeds=options.seeds,
            simulate=options.simulate,
            scheduler=options.scheduler,
            workers=options.workers,
        )
    except TmkitError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps([row.to_dict() for row in rows], indent=2))
        return 0
    print(arena_table(rows).rstrip())
    for row in rows:
        if row.failure:
            print(f"{row.suite}: {row.problem}, {row.planner}: {row.failure}")
    print(f"Written to {options.output / 'arena.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
