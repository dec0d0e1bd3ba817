"""Start of the package, which loads the compiled core and registers its Python callbacks."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tmkit import errors
from tmkit._support.argument_errors import argument_error
from tmkit._support.other_distribution import explain_other_distribution
from tmkit._support.results import Result
from tmkit._support.units import si_numbers

_ROOT = Path(__file__).resolve().parents[2]
"""Folder of the package."""


def start() -> None:
    """Load the core and register the errors, results and functions that it uses.

    Raises:
        ImportError: if the core is not compiled or cannot be loaded; the message has the
            installation command.
    """
    core = _load_core()
    core._register(
        errors=vars(errors),
        argument_error=argument_error,
        si_numbers=si_numbers,
        result=Result,
        tree_html=_LazyFunction(core, "tmkit.graph.display.html", "tree_html"),
        attribute_map=_LazyFunction(core, "tmkit.graph.attributes", "attribute_map"),
        attribute_text=_LazyFunction(core, "tmkit.graph.attributes", "attribute_text"),
    )
    # Without a configuration of logging, the package writes no records.
    logging.getLogger("tmkit").addHandler(logging.NullHandler())


def _load_core() -> Any:
    try:
        return import_module("tmkit._core")
    except ImportError as error:
        if (_ROOT / "pyproject.toml").is_file() and "_core" in str(error):
            raise ImportError(
                "this is tmkit's source folder, whose compiled core is not installed: run 'pip"
                " install -e .' in it first, or import from another folder"
            ) from None
        if cause := explain_other_distribution():
            raise ImportError(f"{error}{cause}") from None
        raise


@dataclass(frozen=True)
class _LazyFunction:
    """Callback of the core whose module is imported by the first call.

    Attributes:
        core: compiled core.
        module: name of the module.
        name: name of the function, and of the callback.
    """

    core: Any
    module: str
    name: str

    def __call__(self, *arguments: object, **keywords: object) -> object:
        function = getattr(import_module(self.module), self.name)
        self.core._register(**{self.name: function})  # later calls of the core are direct
        return function(*arguments, **keywords)
