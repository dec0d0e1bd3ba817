"""Success of tmkit and of KinDER's bilevel planner on KinDER's environments, judged by these.

Run by hand with the interpreter of :file:`README.md`::

    python tests/benchmarks/kinder/table.py --environments Table3D-o2 --seeds 0:10 --json o2.json

Without ``--environments`` all variants of all families run, each in a process of its own. Episodes
that are in the JSON file are not run again, so a table can be made in several runs.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import itertools
import json
import multiprocessing
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.kinder.bilevel import run_bilevel, settings_of
from benchmarks.kinder.episodes import Episode, Outcome
from benchmarks.kinder.families import FAMILIES
from benchmarks.kinder.limb import LIMB_ENVIRONMENTS, run_limb
from benchmarks.kinder.robots import Robot, make_tidybot
from benchmarks.tables import deliver, markdown_table, table_parser

PLANNERS = ("tmkit", "bilevel")
"""Planners of the table."""

_TITLES = ("solved", "actions", "median plan [s]", "longest plan [s]")
"""Columns of each planner."""


def all_environments() -> list[str]:
    """Return the names of all variants."""
    return [*task_environments(), *LIMB_ENVIRONMENTS]


def task_environments() -> list[str]:
    """Return the names of the variants with a task."""
    return [
        "-".join(filter(None, (name, variant)))
        for name, family in FAMILIES.items()
        for variant in family.variants
    ]


def run_tmkit(environment: str, seed: int, robots: Robots, *, time_limit: float) -> Outcome:
    """Return the result of an episode.

    Args:
        environment: name as ``Table3D-o2``.
        seed: seed of the episode.
        robots: the robots.
        time_limit: time limit of one plan [s].
    """
    robot = robots.of(environment)
    if environment in LIMB_ENVIRONMENTS:
        return run_limb(environment, seed, robot)
    return Episode(environment, seed, robot, time_limit=time_limit).run()


def cells_of(episodes: Sequence[Outcome]) -> list[str]:
    """Return solved episodes, actions of these, and seconds of all, for a row of the table."""
    if not episodes:
        return [""] * len(_TITLES)
    solved = [episode for episode in episodes if episode.is_solved]
    actions = sorted(episode.actions for episode in solved)
    seconds = sorted(episode.seconds for episode in episodes)
    return [
        f"{len(solved)} of {len(episodes)}",
        f"{actions[0]}-{actions[-1]}" if actions else "",
        f"{seconds[len(seconds) // 2]:.1f}",
        f"{seconds[-1]:.1f}",
    ]


def rows_of(outcomes: Iterable[Outcome]) -> list[Sequence[object]]:
    """Return a row for each environment."""
    by_environment: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_environment.setdefault(outcome.environment, []).append(outcome)
    rows: list[Sequence[object]] = []
    for name, episodes in by_environment.items():
        row = [name, f"{min(e.seed for e in episodes)}-{max(e.seed for e in episodes)}"]
        for planner in PLANNERS:
            row += cells_of([episode for episode in episodes if episode.planner == planner])
        again = sum(episode.plans > 1 for episode in episodes)
        rows.append((*row, again))
    return rows


def page_of(outcomes: Sequence[Outcome]) -> str:
    """Return the table, and the cause of each failure."""
    outcomes = sorted(outcomes, key=lambda outcome: all_environments().index(outcome.environment))
    titles = [f"{planner}: {title}" for planner in PLANNERS for title in _TITLES]
    lines = ["# KinDER", "", *_INTRODUCTION, ""]
    for planner in PLANNERS:
        episodes = [outcome for outcome in outcomes if outcome.planner == planner]
        solved = sum(episode.is_solved for episode in episodes)
        versions = sorted({f"{episode.version}, {episode.date}" for episode in episodes})
        if episodes:
            lines += [f"* {planner}: {solved} of {len(episodes)} episodes ({'; '.join(versions)})"]
    table = markdown_table(["environment", "seeds", *titles, "tmkit: replanned"], rows_of(outcomes))
    failures = [item for item in outcomes if not item.is_solved]
    lines += ["", *table, *(["", "## Failures", ""] if failures else [])]
    for item in failures:
        episode = f"{item.environment}, seed {item.seed}, {item.planner}"
        lines.append(f"* {episode}: {item.cause[:300]}")
    return "\n".join(lines) + "\n"


_INTRODUCTION = (
    "Episodes of KinDER's environments, judged by their own `terminated`. *bilevel* is the planner",
    "of `kinder-baselines` with its own settings and models; without cells it has no model of the",
    "environment. Seconds are of the processor; actions are those of solved episodes.",
    "`tests/benchmarks/kinder/README.md` describes the installation, and how observations become",
    "scenes. Written by `build/kinder/bin/python tests/benchmarks/kinder/table.py --planners tmkit",
    "bilevel --seeds 0:10 --json kinder.json --out docs/results/tables/kinder.md`, and here with",
    "seeds 0 to 19 of `kinematic3d` by tmkit.",
)
"""First paragraph of the page."""


def version_of(planner: str) -> str:
    """Return the commit of a planner, and the version of KinDER."""
    folder = Path(__file__).parent
    if planner == "bilevel":
        import kinder_bilevel_planning

        folder = Path(kinder_bilevel_planning.__path__[0])
    command = ["git", "-C", str(folder), "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return f"{commit}, kindergarden {importlib.metadata.version('kindergarden')}"


class Robots:
    """The robots of the families, made when they are first used.

    Args:
        folder: folder for the files of their descriptions.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._robots: dict[object, Robot] = {}

    def of(self, environment: str) -> Any:
        """Return the robot of an environment."""
        family = FAMILIES.get(environment.split("-")[0])
        make = make_tidybot if family is None else family.robot
        if make not in self._robots:
            folder = self._folder / str(len(self._robots))
            folder.mkdir()
            self._robots[make] = make(folder)
        return self._robots[make]


def read_outcomes(file: Path) -> list[Outcome]:
    """Return the outcomes in a file; none if it does not exist."""
    rows = json.loads(file.read_text()) if file.exists() else []
    return [Outcome(**row) for row in rows]


def run_episodes(
    environment: str, planner: str, seeds: range, *, time_limit: float, file: Path
) -> None:
    """Run the episodes that a file lacks, and add each to it.

    Args:
        environment: name as ``Table3D-o2``.
        planner: name of the planner.
        seeds: seeds of the episodes.
        time_limit: time limit of one plan [s].
        file: file of the outcomes.
    """
    import kinder

    kinder.register_all_environments()
    outcomes = read_outcomes(file)
    finished = {(item.environment, item.seed, item.planner) for item in outcomes}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    with tempfile.TemporaryDirectory() as folder:
        robots = Robots(Path(folder))
        for seed in seeds:
            if (environment, seed, planner) in finished:
                continue
            if planner == "tmkit":
                outcome = run_tmkit(environment, seed, robots, time_limit=time_limit)
            else:
                outcome = run_bilevel(environment, seed, time_limit=time_limit)
            outcomes.append(replace(outcome, version=version_of(planner), date=today))
            print(json.dumps(asdict(outcomes[-1])), file=sys.stderr, flush=True)
            rows = [asdict(item) for item in outcomes]
            file.write_text(json.dumps(rows, indent=1) + "\n")


def main() -> int:
    """Run the episodes, one after the other."""
    parser = table_parser(__doc__)
    names = all_environments()
    parser.add_argument("--environments", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--planners", nargs="+", default=["tmkit"], choices=PLANNERS)
    parser.add_argument("--seeds", default="0:10", help="first and last+1, as 0:10")
    parser.add_argument("--time-limit", type=float, default=120.0, help="of one plan, in seconds")
    parser.add_argument("--json", type=Path, help="file for the outcomes")
    arguments = parser.parse_args()
    seeds = range(*map(int, arguments.seeds.split(":")))
    is_complete = True
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.json or Path(folder) / "outcomes.json"
        for environment, planner in itertools.product(arguments.environments, arguments.planners):
            if planner == "bilevel" and settings_of(environment) is None:
                continue
            # An environment does not free its memory when it is closed.
            process = multiprocessing.get_context("spawn").Process(
                target=run_episodes,
                args=(environment, planner, seeds),
                kwargs={"time_limit": arguments.time_limit, "file": file},
            )
            process.start()
            process.join()
            if process.exitcode:
                is_complete = False
                message = f"{environment}, {planner}: exit code {process.exitcode}"
                print(message, file=sys.stderr, flush=True)
        outcomes = read_outcomes(file)
    deliver(page_of(outcomes), arguments.out)
    is_complete &= all(item.is_solved for item in outcomes if item.planner == "tmkit")
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
