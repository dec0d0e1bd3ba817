"""Detection of the other project named ``tmkit`` on PyPI, which has the same package folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_REINSTALL = "run 'pip uninstall tmkit', then install tmkit-robotics again"
"""Repair of a damaged installation."""


def explain_other_distribution(path: Sequence[str] | None = None) -> str:
    """Return the likely cause of a damaged tmkit, or an empty text without the other distribution.

    Both distributions write into ``site-packages/tmkit``, and the second installation replaces
    files of the first. Call it only after an error: reading the metadata of distributions takes
    about 20 ms.

    Args:
        path: folders to search. Defaults to ``sys.path``.
    """
    from importlib.metadata import distributions

    for candidate in distributions(name="tmkit", path=list(sys.path if path is None else path)):
        # A distribution without a list of files may have files in the folder.
        files = [str(file) for file in candidate.files or ("tmkit/",)]
        # Earlier versions of this project were named tmkit.
        is_ours = any(file.startswith(("tmkit/_core.", "_editable_skbc_tmkit")) for file in files)
        if any(file.startswith("tmkit/") for file in files) and not is_ours:
            return (
                f"; 'tmkit' {candidate.version} from PyPI is installed, which is another project"
                f" and shares the folder of this one (tmkit-robotics): {_REINSTALL}"
            )
    return ""


def explain_damage() -> str:
    """Return the error message for a missing or replaced ``__init__.py`` of tmkit.

    An installation of the other distribution replaces the file, and its removal deletes it.
    """
    package = sys.modules[__name__.partition(".")[0]]
    file = getattr(package, "__file__", None)
    if file:
        damage = f"{file} is another project's"
    else:
        damage = f"{next(iter(package.__path__), 'tmkit')}/__init__.py is missing"
    cause = explain_other_distribution() or (
        "; 'tmkit' on PyPI is another project and shares the folder of tmkit-robotics:"
        f" {_REINSTALL}"
    )
    return f"the installation of tmkit is damaged: {damage}{cause}"
