"""Print how far the code is from its limits: long functions, branching ones, wide lines, and the lines in all.

Functions are measured by lizard (``pip install lizard``); the budget of lines leaves tests out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import lizard

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES = 60
MOST_BRANCHES = 15
MOST_COLUMNS = 120


def measure(title: str, files: list[Path]) -> None:
    """Print one table of some files; each function beyond a limit is named."""
    functions = [(path, f) for path in files for f in lizard.analyze_file(str(path)).function_list]
    long = [(path, f) for path, f in functions if f.length > MOST_LINES]
    branching = [(path, f) for path, f in functions if f.cyclomatic_complexity > MOST_BRANCHES]
    texts = [path.read_text(encoding="utf-8").splitlines() for path in files]
    wide = sum(len(line) > MOST_COLUMNS for text in texts for line in text)
    print(f"{title}: {sum(map(len, texts))} lines in {len(files)} files, {len(functions)} functions")
    print(f"  {wide} lines over {MOST_COLUMNS} columns")
    print(f"  {len(long)} functions over {MOST_LINES} lines, {len(branching)} over complexity {MOST_BRANCHES}")
    for path, f in sorted({id(f): (path, f) for path, f in [*long, *branching]}.values(), key=lambda x: -x[1].length):
        where = f"{path.relative_to(ROOT)}:{f.start_line}"
        print(f"    {where} {f.name}: {f.length} lines, complexity {f.cyclomatic_complexity}")


def main() -> None:
    """Measure the core without its tests, half by half."""
    core = ROOT / "tmkit" / "core"
    for part in (["src", "include"], ["bindings"]):
        files = sorted(path for folder in part for path in (core / folder).rglob("*.[ch]pp"))
        measure("C++ " + " and ".join(part), files)


if __name__ == "__main__":
    sys.exit(main())
