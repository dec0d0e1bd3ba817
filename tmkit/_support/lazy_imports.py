"""Packages that import their names on first use, which keeps ``import tmkit`` fast.

A package lists its names once, in the stub ``__init__.pyi`` beside its ``__init__.py``, which type
checkers and editors read; ``A as A`` marks a name as exported (PEP 484). :func:`lazy_names` reads
the same stub when a name is first used; its names are the package's ``__all__``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import ResourceLoader

_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
"""Import in the format of ``ruff format``; parsing the stub as Python takes ten times as long."""


class _LazyPackage(ModuleType):
    """Package whose names are not replaced by submodules of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in self.__dict__["_lazy_modules"]()):
            super().__setattr__(name, value)


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports its names on first use.

    Submodules are imported on first use too, unless a name of the package hides them.
    """
    modules: dict[str, str] = {}

    def names_and_modules() -> dict[str, str]:
        if not modules:
            modules.update(_modules_of_names(sys.modules[package]))
        return modules

    def load(name: str) -> Any:
        import importlib.util

        module = sys.modules[package]
        is_public = not name.startswith("_") or name == "__version__"
        if name == "__all__":
            value: Any = names()
        elif is_public and name in names_and_modules():
            value = getattr(importlib.import_module(modules[name]), name)
        elif is_public and importlib.util.find_spec(f"{package}.{name}") is not None:
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(
                f"module '{package}' has no attribute '{name}'", name=name, obj=module
            )
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted(names_and_modules())

    sys.modules[package].__dict__["_lazy_modules"] = names_and_modules
    sys.modules[package].__class__ = _LazyPackage
    return load, names


def _modules_of_names(package: ModuleType) -> dict[str, str]:
    """Return the modules from which the stub of a package imports its names, by name."""
    assert package.__spec__ is not None
    assert package.__spec__.origin is not None
    loader = cast("ResourceLoader", package.__spec__.loader)
    stub = loader.get_data(f"{package.__spec__.origin}i").decode()
    return {
        name: module
        for module, parenthesized, single_line in _IMPORT.findall(stub)
        for name in re.findall(r"\w+ as (\w+)", parenthesized or single_line)
    }
