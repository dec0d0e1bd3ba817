"""``tmkit list``: the built-in robots, scenes and domains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from tmkit.cli.common import AsJson
from tmkit.cli.completion import Kind, built_in_files, word_argument
from tmkit.cli.reporting import print_json, say

_INCLUDE = re.compile(r'^\s*include\s+"([^"]+)"', re.MULTILINE)
_SENTENCE_END = re.compile(r"\.(\s|$)")


def list_built_in(kind: Annotated[Kind, word_argument(Kind, help="What to list.")], as_json: AsJson = False) -> None:
    """List the built-in robots, scenes or domains, with a description of each.

    The names are those that 'tmkit plan' and the other commands take.
    """
    entries = [
        {"name": name, "description": _description(path), "path": str(path), "missing_packages": _missing(path)}
        for name, path in sorted(built_in_files(kind).items())
    ]
    if as_json:
        print_json(entries)
        return
    width = max(len(str(entry["name"])) for entry in entries)
    for entry in entries:
        needs = "".join(f" (needs the package '{name}')" for name in entry["missing_packages"])
        say(f"{entry['name']:<{width}}  {entry['description']}{needs}")


def _description(path: Path) -> str:
    """Return the first sentence of the comment with which a file begins; of a JSON scene, its frames."""
    if path.suffix == ".json":
        from tmkit.cli.inputs import read_json_file

        frames = [frame["name"] for frame in read_json_file(path, what="scene")["frames"]]
        return f"A scene in JSON with {len(frames)} frames: {', '.join(frames[:4])}, ..."
    words: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith(("//", ";", "#")):
            break
        words.append(line.lstrip("/;#").strip())
    text = " ".join(words)
    end = _SENTENCE_END.search(text)
    return text[: end.start() + 1] if end else text


def _missing(path: Path) -> list[str]:
    """Return the packages that a scene includes files of, and that are not installed."""
    if path.suffix != ".robray":
        return []
    from tmkit.formats.mesh.package_uris import PackageResolver

    missing: set[str] = set()
    for uri in _INCLUDE.findall(path.read_text(encoding="utf-8")):
        if not uri.startswith("package://"):
            missing.update(_missing(path.parent / uri))
        elif PackageResolver().find(uri) is None:
            missing.add(uri.split("/")[2])
    return sorted(missing)
