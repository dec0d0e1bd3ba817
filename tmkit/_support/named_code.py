"""Code that a command line names: ``MODULE:NAME`` or ``FILE.py:NAME``."""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tmkit.errors import ConfigurationError, MissingExtraError, UnknownNameError


def named_module(target: str) -> tuple[ModuleType, str]:
    """Return the module of ``MODULE:NAME`` or ``FILE.py:NAME``, which is run, and the name."""
    where, _, name = target.rpartition(":")
    if not where:
        raise ConfigurationError(f"expected MODULE:NAME or FILE.py:NAME, not '{target}'")
    try:
        module = (
            _file_module(Path(where)) if where.endswith(".py") else importlib.import_module(where)
        )
    except MissingExtraError:
        raise
    except (Exception, SystemExit) as error:  # of the module's own code, too
        raise ConfigurationError(
            f"the module cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module, name


def named_object(target: str, *, kind: str) -> Any:
    """Return the object of ``MODULE:NAME`` or ``FILE.py:NAME``, whose module is run.

    Args:
        target: the name.
        kind: what is expected, for messages.

    Raises:
        ConfigurationError: if the text is of another form, or the module cannot be imported.
        UnknownNameError: if the module has no such name; the message has the nearest.
    """
    module, name = named_module(target)
    if not hasattr(module, name):
        raise UnknownNameError.of(
            kind, name, [known for known in dir(module) if not known.startswith("_")]
        )
    return getattr(module, name)


def _file_module(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None, "it is called .py"
    assert spec.loader is not None, "as a file has"
    # where dataclasses look for their names
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
