"""Packages that import their names on first use: ``import tmkit`` stays cheap, whatever the package contains.

A package lists its names once, in an ``if TYPE_CHECKING`` block, where type checkers, editors and ``lint-imports`` read
them as plain imports. :func:`lazy_names` reads the same block from the package's source when a name is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import InspectLoader
    from types import ModuleType

__all__ = ["lazy_names"]


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose names are imported on first use.

    A public submodule is imported on first use too: ``tmkit.relations`` needs no import statement of its own. A name
    that is also the name of a submodule cannot be lazy: the submodule would take its place once imported.

    Args:
        package: the ``__name__`` of the package.
    """
    modules: dict[str, str] = {}

    def load(name: str) -> Any:
        import importlib.util

        module = sys.modules[package]
        is_public = not name.startswith("_") or name == "__version__"
        if is_public and not modules:
            modules.update(_modules_of_names(module))
        if name in modules:
            value = getattr(importlib.import_module(modules[name]), name)
        elif is_public and importlib.util.find_spec(f"{package}.{name}") is not None:
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name, obj=module)
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return load, names


def _modules_of_names(package: ModuleType) -> dict[str, str]:
    """Return the modules that the ``if TYPE_CHECKING`` block of a package imports its names from."""
    import ast

    assert package.__spec__ is not None
    loader = cast("InspectLoader", package.__spec__.loader)
    blocks = [node for node in ast.parse(loader.get_source(package.__name__) or "").body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in imports for alias in node.names if node.module is not None}
