"""Code that a command line names: ``MODULE:NAME`` or ``FILE.py:NAME``."""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tmkit.errors import ConfigurationError


def named_module(target: str) -> tuple[ModuleType, str]:
    """Return the module of ``MODULE:NAME`` or ``FILE.py:NAME``, which is run, and the name."""
    where, _, name = target.rpartition(":")
    if not where:
        raise ConfigurationError(f"expected MODULE:NAME or FILE.py:NAME, not '{target}'")
    try:
        module = _file_module(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except Exception as error:  # of the module's own code, too
        raise ConfigurationError(f"the module cannot be imported: {type(error).__name__}: {error}") from error
    return module, name


def _file_module(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None, "it is called .py"
    assert spec.loader is not None, "as a file has"
    module = sys.modules[path.stem] = module_from_spec(spec)  # where dataclasses look for their names
    spec.loader.exec_module(module)
    return module
