"""Import times of tmkit and numpy [CPU s]: ``python tests/benchmarks/import_table.py [--runs N]``.

Each program runs in a new interpreter, all of them in turn, with compiled bytecode; the table shows
medians. "More" is the cost over that of the interpreter. tmkit imports numpy itself when it plans.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = {
    "interpreter": "pass",
    "`import numpy`": "import numpy",
    "`import tmkit`": "import tmkit",
    "`import tmkit, numpy`": "import tmkit, numpy",
    "`tmkit.plan`, ready to be called": "import tmkit; tmkit.plan",
    "`tmkit --help`": (
        "import sys; sys.argv = ['tmkit', '--help']; from tmkit.cli import main; main()"
    ),
    "first plan": (
        "import tmkit as tk; tk.plan(tk.load_scene('panda_table', 'blocks1'), goal='(holding a)')"
    ),
}


def cpu_seconds(code: str, environment: dict[str, str]) -> float:
    """Return the processor time of a new interpreter that runs some code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        environment["PYTHONPYCACHEPREFIX"] = bytecode
        for code in PROGRAMS.values():
            cpu_seconds(code, environment)
        rounds = [
            [cpu_seconds(code, environment) for code in PROGRAMS.values()] for _ in range(runs)
        ]
    medians = dict(zip(PROGRAMS, map(statistics.median, zip(*rounds, strict=True)), strict=True))
    start = medians["interpreter"]
    numpy = medians["`import numpy`"] - start
    print("| Program | CPU s | more | of numpy's |")
    print("|---|--:|--:|--:|")
    for name, seconds in medians.items():
        print(
            f"| {name} | {seconds:.3f} | {seconds - start:.3f} | {(seconds - start) / numpy:.2f} |"
        )


if __name__ == "__main__":
    main()
