"""Print how far the code is from its limits: long functions, branching ones, wide lines, full folders.

Functions are measured by lizard (``pip install lizard``); the budget of lines leaves tests out. That arguments
are documented is a test, and that modules do not import each other in a circle a contract of import-linter.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

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


def measure_python(files: list[Path]) -> None:
    """Print the lines of Python, how long functions are and how full folders."""
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    functions = [f for tree in trees.values() for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    lengths = sorted(len(ast.unparse(ast.Module(f.body, [])).splitlines()) for f in functions)
    fullest, count = Counter(path.parent for path in files).most_common(1)[0]
    print(f"Python: {sum(text.count(chr(10)) for text in texts.values())} lines in {len(files)} files")
    print(f"  functions of {median(lengths):.0f} lines at the median, {quantiles(lengths, n=20)[-1]:.0f} at 95 %")
    print(f"  {count} files at most in a folder: {fullest.relative_to(ROOT)}")


def main() -> None:
    """Measure the package, and of its core, without tests, half by half."""
    measure_python(sorted((ROOT / "tmkit").rglob("*.py")))
    core = ROOT / "tmkit" / "core"
    for part in (["src", "include"], ["bindings"]):
        files = sorted(path for folder in part for path in (core / folder).rglob("*.[ch]pp"))
        measure("C++ " + " and ".join(part), files)


if __name__ == "__main__":
    main()
