"""Libraries of the extras, and a finder that hides some of them in a new interpreter.

A library is hidden from every finder of modules, so that looking for it, as trimesh does, finds
nothing either.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement

from support.processes import run_process

__all__ = ["COMMAND", "EXTRAS", "optional_modules", "run_without"]

_PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
_PROJECT = tomllib.loads(_PYPROJECT.read_text(encoding="utf-8"))["project"]

COMMAND = "sys.argv[0] = 'tmkit'\nfrom tmkit.cli import main\nmain()"
"""Code of the command ``tmkit``, whose arguments are those of the interpreter."""

_HIDE = """
import json, sys

_HIDDEN = set(json.loads(sys.argv.pop(1)))

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in _HIDDEN:
            return None
        return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Hiding, sys.meta_path)
"""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


EXTRAS = {
    extra: {_normal(Requirement(text).name) for text in texts}
    for extra, texts in _PROJECT["optional-dependencies"].items()
    if extra not in ("test", "docs", "dev", "all")
}
"""Distributions of each extra for users."""


@cache
def optional_modules() -> tuple[str, ...]:
    """Return the installed modules that neither belong to tmkit nor to its requirements."""
    required: set[str] = set()
    pending = [Requirement(text) for text in _PROJECT["dependencies"]]
    while pending:
        requirement = pending.pop()
        name = _normal(requirement.name)
        if name not in required and (
            requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ):
            required.add(name)
            try:
                pending += map(Requirement, requires(requirement.name) or ())
            except PackageNotFoundError:
                continue
    ours = {*required, _normal(_PROJECT["name"])}
    distributions = packages_distributions()
    return tuple(
        sorted(
            name for name, owners in distributions.items() if ours.isdisjoint(map(_normal, owners))
        )
    )


def run_without(
    modules: Iterable[str], code: str, *arguments: str | Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter in a folder in which some modules are not found."""
    command = [
        sys.executable,
        "-c",
        _HIDE + code,
        json.dumps(sorted(modules)),
        *map(str, arguments),
    ]
    return run_process(command, cwd=folder, capture_output=True, text=True, check=False)
