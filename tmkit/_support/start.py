"""The start of the package: it loads the compiled core and registers what the core calls in Python."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tmkit import errors
from tmkit._support.argument_errors import argument_error
from tmkit._support.other_distribution import explain_other_distribution
from tmkit._support.results import Result

_ROOT = Path(__file__).resolve().parents[2]
"""Folder that holds the package."""


def start() -> None:
    """Load the core and register the errors, results and functions that it uses.

    Raises:
        ImportError: if the core is not compiled or cannot be loaded; the message says how to
            install it.
    """
    core = _loaded_core()
    core._register(
        errors=vars(errors),
        argument_error=argument_error,
        result=Result,
        tree_html=_imported_when_called(core, "tmkit.graph.display.html", "tree_html"),
        attribute_map=_imported_when_called(core, "tmkit.graph.attributes", "attribute_map"),
        attribute_text=_imported_when_called(core, "tmkit.graph.attributes", "attribute_text"),
    )
    # silent unless the user configures logging
    logging.getLogger("tmkit").addHandler(logging.NullHandler())


def _loaded_core() -> Any:
    try:
        return import_module("tmkit._core")
    except ImportError as error:
        if (_ROOT / "pyproject.toml").is_file() and "_core" in str(error):
            raise ImportError(
                "this is tmkit's source folder, whose compiled core is not installed: run 'pip"
                " install -e .' in it first, or import from another folder"
            ) from None
        if other := explain_other_distribution():
            raise ImportError(f"{error}{other}") from None
        raise


def _imported_when_called(core: Any, module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        function = getattr(import_module(module), name)
        core._register(**{name: function})  # the next call goes there directly
        return function(*arguments, **keywords)

    return call
