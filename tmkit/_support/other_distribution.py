"""The other project named ``tmkit`` on PyPI, which installs its files into the folder of this package."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_REINSTALL = "run 'pip uninstall tmkit', then install tmkit-robotics again"


def explain_other_distribution(path: Sequence[str] | None = None) -> str:
    """Return why tmkit may be damaged, if the other distribution ``tmkit`` is in a path, else an empty text.

    Both write into ``site-packages/tmkit``, and the last one that is installed replaces files of
    the first. This is for errors of loading only: reading the metadata of distributions takes some
    20 ms.
    """
    from importlib.metadata import distributions

    for found in distributions(name="tmkit", path=list(sys.path if path is None else path)):
        # without a list of files, it may have any
        files = [str(file) for file in found.files or ("tmkit/",)]
        # by its former name
        is_ours = any(file.startswith(("tmkit/_core.", "_editable_skbc_tmkit")) for file in files)
        if any(file.startswith("tmkit/") for file in files) and not is_ours:
            return (
                f"; 'tmkit' {found.version} from PyPI is installed, which is another project and"
                f" shares the folder of this one (tmkit-robotics): {_REINSTALL}"
            )
    return ""


def explain_damage() -> str:
    """Return what is wrong where the file ``__init__.py`` of tmkit is missing or another project's.

    The other distribution replaces it when it is installed after this one, and removes it when it
    is uninstalled.
    """
    package = sys.modules[__name__.partition(".")[0]]
    file = getattr(package, "__file__", None)
    what = (
        f"{file} is another project's"
        if file
        else f"{next(iter(package.__path__), 'tmkit')}/__init__.py is missing"
    )
    other = explain_other_distribution()
    reason = (
        other
        or f"; 'tmkit' on PyPI is another project and shares the folder of tmkit-robotics: {_REINSTALL}"
    )
    return f"the installation of tmkit is damaged: {what}{reason}"
