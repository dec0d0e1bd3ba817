"""Import cycles: tmkit has none, ``__init__`` files and imports in functions included.

``lint-imports`` compares packages; it counts imports in ``__init__`` as the package's own,
and so finds no circle between it and the modules of the package.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tmkit


def imports_of(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the modules that each module imports, of those whose sources are given by name."""
    return {
        name: _imported(ast.parse(source), sources) - {name} for name, source in sources.items()
    }


def _imported(tree: ast.AST, modules: Mapping[str, str]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            names.update(name if name in modules else str(node.module) for name in submodules)
    return names & set(modules)


def sources_of(package: Path) -> dict[str, str]:
    """Return the sources of a package's modules by their names."""
    names = {
        path: ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
    }
    return {
        name.removesuffix(".__init__"): path.read_text(encoding="utf-8")
        for path, name in names.items()
        if "data_files" not in path.parts
    }


def test_no_circle() -> None:
    """The modules can be sorted such that each imports only earlier ones."""
    sources = sources_of(Path(tmkit.__file__).parent)
    order = list(TopologicalSorter(imports_of(sources)).static_order())
    assert len(order) > 250
    assert order.index("tmkit.errors") < order.index("tmkit.cli.common") < order.index("tmkit.cli")


def test_a_circle_through_a_function_is_found() -> None:
    """A package whose ``main`` imports a module that imports the package is a circle."""
    sources = {
        "p": "def main():\n    from p.commands import run",
        "p.commands": "from p.common import a",
        "p.common": "from p import b",
    }
    with pytest.raises(CycleError):
        list(TopologicalSorter(imports_of(sources)).static_order())
