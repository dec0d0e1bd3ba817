"""The public names of the reference: what the package promises to its users."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "reference").rglob("*.md")))
PACKAGES = re.findall(r"^\.\. package:: (tmkit[\w.]*)$", REFERENCE, re.MULTILINE)


def public() -> Iterator[tuple[str, str, object]]:
    """Yield the packages of the reference, with their public names and what these name."""
    for package in ("tmkit", *PACKAGES):
        module = importlib.import_module(package)
        yield from ((package, name, getattr(module, name)) for name in module.__all__)


def classes() -> list[type]:
    """Return the public classes of tmkit, each once."""
    found = {value: None for _, _, value in public() if inspect.isclass(value)}
    return [value for value in found if str(value.__module__).startswith("tmkit")]
