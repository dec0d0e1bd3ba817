"""Version of a build from git's tags: a scikit-build-core metadata provider that needs only git.

A commit with the tag ``v1.2.3`` is version 1.2.3; the fourth commit after it is 1.2.4.dev4. Where
git has no tag (an archive without history, a clone without tags, no git), it is the version of
the archive's PKG-INFO, else the fallback.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def dynamic_metadata(field: str, settings: Mapping[str, str], *_: object) -> str:
    """Return the version.

    Args:
        field: ``version``.
        settings: the table of ``pyproject.toml``, with the entry ``fallback``.

    Raises:
        RuntimeError: if there is another field, or a table without fallback.
    """
    if field != "version" or "fallback" not in settings:
        raise RuntimeError(
            "the provider cmake/tmkit_version.py gives the version only, and needs a 'fallback'"
        )
    return version_of(ROOT, settings["fallback"])


def version_of(root: Path, fallback: str) -> str:
    """Return the version of the sources in a folder."""
    described = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)-(\d+)-g[0-9a-f]+", _describe(root))
    if described is not None:
        major, minor, patch, distance = map(int, described.groups())
        return (
            f"{major}.{minor}.{patch + 1}.dev{distance}" if distance else f"{major}.{minor}.{patch}"
        )
    package_info = root / "PKG-INFO"
    text = package_info.read_text(encoding="utf-8") if package_info.is_file() else ""
    recorded = re.search(r"^Version: (\S+)$", text, re.MULTILINE)
    return recorded[1] if recorded else fallback


def _describe(root: Path) -> str:
    """Return what ``git describe`` prints, if the folder is the top of a clone."""
    if not (root / ".git").exists():  # else git would describe a clone around an unpacked archive
        return ""
    command = [
        "git",
        "-C",
        str(root),
        "describe",
        "--tags",
        "--long",
        "--match",
        "v[0-9]*.[0-9]*.[0-9]*",
    ]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
