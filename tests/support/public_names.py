"""Public names of the reference, the interface of the package."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = "\n".join(
    page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "reference").rglob("*.md"))
)
PACKAGES = re.findall(r"^\.\. package:: (tmkit[\w.]*)$", REFERENCE, re.MULTILINE)


def public() -> Iterator[tuple[str, str, object]]:
    """Yield the packages of the reference with their public names and values."""
    for package in ("tmkit", *PACKAGES):
        module = importlib.import_module(package)
        yield from ((package, name, getattr(module, name)) for name in module.__all__)


def classes() -> list[type]:
    """Return the public classes of the modules of exported names, each once, with results."""
    homes = {str(getattr(value, "__module__", "")) for _, _, value in public()}
    modules = [importlib.import_module(name) for name in sorted(homes) if name.startswith("tmkit")]
    members = [
        member
        for module in modules
        for name, member in sorted(vars(module).items())
        if not name.startswith("_")
    ]
    exported = dict.fromkeys(
        member for member in members if inspect.isclass(member) and member.__module__ in homes
    )
    return list(exported)
