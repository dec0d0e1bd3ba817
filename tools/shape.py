"""Measures of the project's structure, each with its places and a limit.

    python tools/shape.py                        # the figures of this checkout
    python tools/shape.py --list parameters      # the places behind one
    python tools/shape.py --check         # exit code 1 if a figure exceeds tools/shape_limits.toml

Like a linter, it reads source text and imports nothing of tmkit. A figure is the number of its
places. A measure that is over its limit is named with the places that are new since the commit that
changed the limits last.

Invariants: equal checkouts have equal figures; only the standard library is needed.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

import structure_measures
import style_measures
from source_text import Checkout, Place

ROOT = Path(__file__).resolve().parents[1]
LIMITS = Path("tools/shape_limits.toml")
"""The file of the limits, in a checkout."""

MEASURES = structure_measures.MEASURES | style_measures.MEASURES
"""All measures by name."""


def read_limits(checkout: Checkout) -> dict[str, int]:
    """Return the limits of a checkout by measure.

    Raises:
        ValueError: if the file names another measure, lacks one, or a limit is no whole number.
    """
    limits = tomllib.loads((checkout.root / LIMITS).read_text(encoding="utf-8"))
    if wrong := limits.keys() ^ MEASURES.keys():
        raise ValueError(
            f"{LIMITS}: one limit for each measure expected, wrong: {', '.join(sorted(wrong))}"
        )
    for name, limit in limits.items():
        if type(limit) is not int or limit < 0:
            raise ValueError(
                f"{LIMITS}: {name}: expected a whole number of at least 0, received {limit!r}"
            )
    return limits


def new_places(places: list[Place], earlier: list[Place]) -> list[Place]:
    """Return the new places; one that only moved within its file is not new."""
    left = Counter((place.path, place.text) for place in earlier)
    added = []
    for place in places:
        key = place.path, place.text
        if left[key]:
            left[key] -= 1
        else:
            added.append(place)
    return added


def check_limits(checkout: Checkout) -> list[str]:
    """Return a message for each measure over its limit, with the new places, or all without Git."""
    limits = read_limits(checkout)
    over = {
        name: current
        for name, limit in limits.items()
        if len(current := _places(checkout, name)) > limit
    }
    if not over:
        return []
    messages = []
    with tempfile.TemporaryDirectory() as folder:
        earlier = _checkout_of_limits(checkout.root, Path(folder))
        for name, current in over.items():
            shown = (
                current
                if earlier is None
                else new_places(current, _places(earlier, name)) or current
            )
            places = "\n".join(f"  {place}" for place in shown)
            messages.append(
                f"{name}: {len(current)} of at most {limits[name]},"
                f" {MEASURES[name].description}:\n{places}"
            )
    return messages


def _places(checkout: Checkout, name: str) -> list[Place]:
    return list(MEASURES[name].find(checkout))


def _checkout_of_limits(root: Path, folder: Path) -> Checkout | None:
    """Unpack the last commit that changed the limits into a folder; None if Git lacks it."""
    git = ["git", "-C", str(root)]
    try:
        log = subprocess.run(
            [*git, "log", "-1", "--format=%H", "--", str(LIMITS)], capture_output=True, check=True
        )
        commit = log.stdout.decode().strip()
        archive = subprocess.run(
            [*git, "archive", commit or "none"], capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        # Python has filters from 3.11.4 on.
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(folder)
    return Checkout(folder)


def main(arguments: list[str] | None = None) -> int:
    """Print the figures, the places of one, or those over their limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "checkout", nargs="?", type=Path, default=ROOT, help="by default the one of this file"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--list", choices=MEASURES, metavar="MEASURE", help=f"one of {', '.join(MEASURES)}"
    )
    action.add_argument(
        "--check", action="store_true", help="end with exit code 1 if a figure is over its limit"
    )
    options = parser.parse_args(arguments)
    checkout = Checkout(options.checkout.resolve())
    if not (checkout.root / "tmkit/__init__.py").is_file():
        parser.error(f"there is no file '{checkout.root / 'tmkit/__init__.py'}'")
    if options.list:
        print("\n".join(map(str, _places(checkout, options.list))))
        return 0
    if options.check:
        messages = check_limits(checkout)
        print(
            "\n".join(messages) if messages else f"{len(MEASURES)} figures are within their limits"
        )
        return 1 if messages else 0
    limits = read_limits(checkout) if (checkout.root / LIMITS).is_file() else {}
    for name, measure in MEASURES.items():
        limit = f"<= {limits[name]}" if name in limits else ""
        print(f"{name:16} {len(_places(checkout, name)):5} {limit:8} {measure.description}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
