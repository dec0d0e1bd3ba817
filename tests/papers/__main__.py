"""Numbers of the papers beside those of tmkit: ``python -m tests.papers [--out FILE]``.

Run it from the root of a clone; it takes some ten seconds. All values are computed when it runs.
Only those of figure 4 of the paper on uncertain transformations are times, which are compared with
nothing. The exit code is 1 if another value disagrees.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import LiveTable, markdown_head, markdown_row, table_parser
from papers.tables import TABLES

HEAD = (
    "# Numbers of the papers",
    "",
    "Written by `python -m tests.papers --out docs/results/tables/papers.md`. Claims without a"
    " number are in [Claims of the papers](../../reference/papers.md).",
)
"""First lines of the page."""


def main() -> int:
    """Print the table of each paper."""
    arguments = table_parser(__doc__).parse_args()
    logger = logging.getLogger("tmkit")
    level = logger.level
    logger.setLevel(logging.ERROR)  # without notes about the listings
    try:
        return _print_tables(arguments.out)
    finally:
        logger.setLevel(level)


def _print_tables(out: Path | None) -> int:
    """Print the tables, and return 1 if a number disagrees, otherwise 0."""
    page = LiveTable(HEAD)
    has_difference = False
    for title, rows in TABLES.items():
        page.add("", f"## {title}", "")
        page.add(*markdown_head("number | paper | tmkit | agrees | remark"))
        for row in rows():
            page.add(markdown_row(row.cells))
            has_difference |= row.is_equal is False
    page.write(out)
    return int(has_difference)


if __name__ == "__main__":
    sys.exit(main())
