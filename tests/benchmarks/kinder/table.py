"""Success of tmkit on KinDER's environments, judged by the environments.

Run by hand with the interpreter of :file:`README.md`::

    python tests/benchmarks/kinder/table.py --environments Table3D-o2 --seeds 0:10 --json o2.json

Without ``--environments`` all variants of all families run.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.kinder.episodes import Episode, Outcome
from benchmarks.kinder.robots import make_tidybot
from benchmarks.kinder.tasks import FAMILIES
from benchmarks.tables import deliver, markdown_table, table_parser


def all_environments() -> list[str]:
    """Return the names of all variants."""
    return [
        "-".join(filter(None, (name, variant)))
        for name, family in FAMILIES.items()
        for variant in family.variants
    ]


def rows_of(outcomes: Iterable[Outcome]) -> list[Sequence[object]]:
    """Return a row for each environment: episodes, solved ones, actions, seconds, plans."""
    by_environment: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_environment.setdefault(outcome.environment, []).append(outcome)
    rows: list[Sequence[object]] = []
    for name, episodes in by_environment.items():
        solved = [episode for episode in episodes if episode.is_solved]
        actions = sorted(episode.actions for episode in solved) or [0]
        seconds = sorted(episode.seconds for episode in episodes)
        rows.append(
            (
                name,
                f"{len(solved)} of {len(episodes)}",
                f"{actions[0]}-{actions[-1]}",
                f"{seconds[len(seconds) // 2]:.1f}",
                f"{seconds[-1]:.1f}",
                sum(episode.plans > 1 for episode in episodes),
            )
        )
    return rows


def page_of(outcomes: Sequence[Outcome]) -> str:
    """Return the table, and the cause of each failure."""
    titles = (
        "environment",
        "solved",
        "actions",
        "median plan [s]",
        "longest plan [s]",
        "replanned",
    )
    lines = markdown_table(titles, rows_of(outcomes))
    failures = [outcome for outcome in outcomes if not outcome.is_solved]
    solved = len(outcomes) - len(failures)
    lines += ["", f"{solved} of {len(outcomes)} episodes. Seconds are processor time.", ""]
    lines += [f"* {item.environment}, seed {item.seed}: {item.cause[:300]}" for item in failures]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the episodes, one after the other."""
    parser = table_parser(__doc__)
    parser.add_argument("--environments", nargs="+", default=all_environments())
    parser.add_argument("--seeds", default="0:10", help="first and last+1, as 0:10")
    parser.add_argument("--time-limit", type=float, default=120.0, help="of one plan, in seconds")
    parser.add_argument("--json", type=Path, help="file for the outcomes")
    arguments = parser.parse_args()
    import kinder

    kinder.register_all_environments()
    first, last = map(int, arguments.seeds.split(":"))
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        robot = make_tidybot(Path(folder))
        for environment in arguments.environments:
            for seed in range(first, last):
                outcome = Episode(environment, seed, robot, time_limit=arguments.time_limit).run()
                outcomes.append(outcome)
                print(json.dumps(asdict(outcome)), file=sys.stderr, flush=True)
                if arguments.json:
                    rows = [asdict(item) for item in outcomes]
                    arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    deliver(page_of(outcomes), arguments.out)
    return 0 if all(outcome.is_solved for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
