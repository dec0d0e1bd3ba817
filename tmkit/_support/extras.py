"""Imports of optional libraries, whose errors name the extra to install."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from tmkit.errors import MissingExtraError


@contextmanager
def importing(library: str, extra: str, need: str) -> Iterator[None]:
    """Import a library of an extra inside the block.

    Args:
        library: import name of the library.
        extra: extra of ``pyproject.toml``.
        need: subject and verb of the message, as in ``the language server needs``.

    Raises:
        MissingExtraError: if the block raises an ImportError.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError.of(need, extra, library) from error


def require(library: str, extra: str, need: str, *, hint: str = "") -> None:
    """Require, without an import, that a library of an extra is installed.

    Args:
        library: import name of the library.
        extra: extra of ``pyproject.toml``.
        need: subject and verb of the message, as in ``the language server needs``.
        hint: alternative without the library, appended to the message.

    Raises:
        MissingExtraError: if it is not installed.
    """
    if not is_installed(library):
        raise MissingExtraError.of(need, extra, library, hint=hint)


def is_installed(library: str) -> bool:
    """Return whether a library is installed."""
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):  # an import hook, or an entry of sys.modules, hides it
        return False
