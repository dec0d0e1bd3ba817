"""Distributions with plug-ins, as pip would install them, in a folder of the test."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["install_folder", "write_distribution"]


def write_distribution(
    folder: Path,
    name: str,
    *,
    modules: Mapping[str, str],
    entry_points: str,
    has_metadata: bool = True,
) -> None:
    """Write the modules and the metadata of a distribution.

    Args:
        folder: the folder, as of ``site-packages``.
        name: the distribution.
        modules: source texts by module.
        entry_points: text of ``entry_points.txt``.
        has_metadata: whether it has a file ``METADATA``.
    """
    information = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    if has_metadata:
        (information / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
        )
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text, encoding="utf-8")


@contextmanager
def install_folder(folder: Path) -> Iterator[None]:
    """Search a folder for distributions and modules; afterwards none of its modules is loaded."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]
