"""Comparison of the PDDL reader with Fast Downward's translator on folders of problems.

Run by hand: ``python tests/benchmarks/pddl_table.py FOLDER... [--states 3] [--seconds 60] [--each
5] [--all]``. A problem goes with the nearest domain file whose name it gives. Each pair is compared
in a separate process, which is ended after the time limit. The table has a line for each domain,
and below it each pair that is not in agreement.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.translator_oracle import DisagreementError, OracleRefusalError, compare

from tmkit.errors import TmkitError
from tmkit.pddl import load_domain, load_problem

COLUMNS = ("agree", "differ", "we refuse", "both refuse", "only FD refuses", "time", "broke")
_HEAD = re.compile(r"\(\s*define\s*\(\s*(domain|problem)\s+([^\s()]+)\s*\)", re.IGNORECASE)
_DOMAIN = re.compile(r"\(\s*:domain\s+([^\s()]+)\s*\)", re.IGNORECASE)


@dataclass(frozen=True)
class Pair:
    """A problem and its domain."""

    domain: Path
    problem: Path


def pairs_under(folder: Path) -> Iterator[Pair]:
    """Yield each problem with its domain: that of the name in the problem, nearest by folder."""
    domains: dict[str, list[Path]] = {}
    problems: list[tuple[str, Path]] = []
    for path in sorted(folder.rglob("*.pddl")):
        text = re.sub(r";[^\n]*", "", path.read_text(encoding="utf-8", errors="replace")[:200_000])
        head, named = _HEAD.search(text), _DOMAIN.search(text)
        if head and head[1].lower() == "domain":
            domains.setdefault(head[2].lower(), []).append(path)
        elif head and named:
            problems.append((named[1].lower(), path))
    for name, path in problems:
        if candidates := domains.get(name):
            yield Pair(max(candidates, key=lambda domain: _nearness(domain, path)), path)


def _nearness(domain: Path, problem: Path) -> tuple[int, int, int]:
    """Return the rank of a domain for a problem: shared folders, then shared letters of names."""
    shared = sum(a == b for a, b in zip(domain.parts, problem.parts, strict=False))
    twin = re.sub(r"_test$", "", problem.parent.name)
    stem = re.sub(r"(problem|prob|pfile|_|-)", "", problem.stem)
    likeness = sum(
        a == b for a, b in zip(re.sub(r"(domain|_|-)", "", domain.stem), stem, strict=False)
    )
    return shared, int(domain.stem == twin), likeness


def judged(pair: Pair, states: int) -> tuple[str, str]:
    """Return the column of a pair in the table, and a remark."""
    try:
        compare(pair.domain, pair.problem, states=states)
    except OracleRefusalError as refusal:
        try:
            load_problem(pair.problem, load_domain(pair.domain))
        except TmkitError as error:
            return "both refuse", f"FD: {_line(refusal)}; we: {error}"
        return "only FD refuses", _line(refusal)
    except DisagreementError as difference:
        return "differ", str(difference)[:600]
    except TmkitError as error:
        return "we refuse", str(error)
    except Exception as error:
        return "broke", f"{type(error).__name__}: {error}"[:600]
    return "agree", ""


def _line(error: Exception) -> str:
    lines = [
        line
        for line in str(error).splitlines()
        if line.strip() and not line.lstrip().startswith("->")
    ]
    return " / ".join(lines[-3:])


def _work(pairs: Any, results: Any, states: int) -> None:
    for pair in iter(pairs.get, None):
        results.put(judged(pair, states))


class Worker:
    """A process that judges pairs, and is replaced when it takes too long."""

    def __init__(self, states: int, seconds: float) -> None:
        self._states, self._seconds = states, seconds
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self._pairs, self._results = context.Queue(), context.Queue()
        self._process = context.Process(
            target=_work, args=(self._pairs, self._results, self._states), daemon=True
        )
        self._process.start()

    def judge(self, pair: Pair) -> tuple[str, str]:
        """Judge one pair within the time limit."""
        self._pairs.put(pair)
        try:
            result: tuple[str, str] = self._results.get(timeout=self._seconds)
        except Empty:
            self.close()
            self._start()
            return "time", f"more than {self._seconds:g} s"
        return result

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def choose(pairs: list[Pair], each: int) -> dict[Path, list[Pair]]:
    """Return at most ``each`` problems of every domain, evenly spread over their sizes."""
    by_domain: dict[Path, list[Pair]] = {}
    for pair in pairs:
        by_domain.setdefault(pair.domain, []).append(pair)
    for domain, mine in by_domain.items():
        mine.sort(key=lambda pair: (pair.problem.stat().st_size, str(pair.problem)))
        if len(mine) > each:
            by_domain[domain] = [
                mine[round(i * (len(mine) - 1) / max(1, each - 1))] for i in range(each)
            ]
    return by_domain


def main() -> int:
    """Print the table; exit with 1 if a pair differs from the translator or is rejected."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument(
        "--states", type=int, default=3, help="random states in which a pair is judged"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of a pair")
    parser.add_argument("--each", type=int, default=5, help="most problems of one domain")
    parser.add_argument("--all", action="store_true", help="also list what the translator refuses")
    options = parser.parse_args()
    worker = Worker(options.states, options.seconds)
    total: Counter[str] = Counter()
    for folder in options.folders:
        for domain, pairs in choose(list(pairs_under(folder)), options.each).items():
            counts: Counter[str] = Counter()
            notes = []
            for pair in pairs:
                column, note = worker.judge(pair)
                counts[column] += 1
                if column != "agree" and (
                    options.all or column not in ("both refuse", "only FD refuses")
                ):
                    notes.append(f"    {column}: {pair.problem.relative_to(folder)}: {note}")
            total += counts
            summary = ", ".join(
                f"{counts[column]} {column}" for column in COLUMNS if counts[column]
            )
            print(f"{domain.relative_to(folder)}: {summary}", *notes, sep="\n", flush=True)
    worker.close()
    print(
        "total:",
        ", ".join(f"{total[column]} {column}" for column in COLUMNS if total[column]) or "no pairs",
    )
    return int(any(total[column] for column in ("differ", "we refuse", "broke")))


if __name__ == "__main__":
    sys.exit(main())
