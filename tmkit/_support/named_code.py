"""Imports of objects by ``MODULE:NAME`` or ``FILE.py:NAME``, as on a command line."""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tmkit.errors import ConfigurationError, MissingExtraError, UnknownNameError


def import_named_module(target: str) -> tuple[ModuleType, str]:
    """Import the module of ``MODULE:NAME`` or ``FILE.py:NAME``; return it and the name.

    Raises:
        ConfigurationError: if the text is of another form, or the module cannot be imported.
    """
    source, _, name = target.rpartition(":")
    if not source:
        raise ConfigurationError(f"expected MODULE:NAME or FILE.py:NAME, not '{target}'")
    try:
        is_path = source.endswith(".py")
        module = _import_file(Path(source)) if is_path else importlib.import_module(source)
    except MissingExtraError:
        raise
    except (Exception, SystemExit) as error:  # includes errors of the module's code
        raise ConfigurationError(
            f"the module cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module, name


def import_named_object(target: str, *, kind: str) -> Any:
    """Import the object of ``MODULE:NAME`` or ``FILE.py:NAME``.

    Args:
        target: name of the module or file, and of the object.
        kind: noun for the object in messages.

    Raises:
        ConfigurationError: if the text is of another form, or the module cannot be imported.
        UnknownNameError: if the module has no such name; the message has the nearest name.
    """
    module, name = import_named_module(target)
    if not hasattr(module, name):
        public_names = [entry for entry in dir(module) if not entry.startswith("_")]
        raise UnknownNameError.of(kind, name, public_names)
    return getattr(module, name)


def _import_file(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None, "the suffix .py has a loader"
    assert spec.loader is not None, "the spec of a file has a loader"
    # Dataclasses resolve their annotations in sys.modules.
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
