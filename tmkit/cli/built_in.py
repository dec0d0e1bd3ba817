"""The command ``tmkit list``: built-in robots, scenes and domains, and plug-ins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from tmkit._support.terminal import printable
from tmkit.cli.common import AsJson, note
from tmkit.cli.completion import Kind, built_in_files, word_argument
from tmkit.cli.reporting import print_json, say
from tmkit.formats.format import Format
from tmkit.formats.robray.format import ROBRAY
from tmkit.plug_ins import InstalledRegistration, PlugInGroup

_INCLUDE_LINE = re.compile(r'^\s*include\s+"([^"]+)"', re.MULTILINE)
"""Include of a Robray file, with its path or URI."""

_PLUG_INS = (Kind.FORMATS, Kind.PLANNERS, Kind.ENGINES, Kind.TRANSPORTS)
"""Kinds of plug-ins; the others are kinds of files."""

_SENTENCE_END = re.compile(r"\.(\s|$)")
"""End of a sentence in a comment."""


def list_built_in(
    kind: Annotated[Kind, word_argument(Kind, help="What to list.")], as_json: AsJson = False
) -> None:
    """List built-in names and installed plug-ins, with their descriptions.

    The other commands accept these names. The lists of formats, planners, engines and transports
    also contain those of extras that are not installed, with the command that installs them.
    """
    if kind in _PLUG_INS:
        _list_plug_ins(kind, as_json=as_json)
        return
    entries = [
        {
            "name": name,
            "description": _description(path),
            "path": str(path),
            "missing_packages": _missing_packages(path),
        }
        for name, path in sorted(built_in_files(kind).items())
    ]
    if as_json:
        print_json(entries)
        return
    width = max(len(str(entry["name"])) for entry in entries)
    for entry in entries:
        needs = "".join(f" (needs the package '{name}')" for name in entry["missing_packages"])
        say(f"{entry['name']:<{width}}  {entry['description']}{needs}")


def _list_plug_ins(kind: Kind, *, as_json: bool) -> None:
    """Print the plug-ins of a kind, and a warning about each that cannot be loaded."""
    rows: list[tuple[str, InstalledRegistration[Any]]] = []
    for group in _groups(kind):
        entries, errors = group.load_all()
        rows += [(group.noun, entry) for entry in entries]
        for error in errors:
            note(str(error))
    if as_json:
        print_json([_plug_in_document(noun, entry) for noun, entry in rows])
        return
    width = max(len(entry.value.usage) for _, entry in rows)
    for noun, entry in rows:
        text = f"{noun}: " if kind is Kind.PLANNERS else ""
        text += entry.value.description
        if entry.distribution:
            text += f" (from {entry.distribution})"
        if isinstance(entry.value, Format) and not entry.value.written_suffixes:
            text += " (only read)"
        if entry.install_command:
            text += f" (not installed: {entry.install_command})"
        say(printable(f"{entry.value.usage:<{width}}  {text}", keep=""))


def _groups(kind: Kind) -> list[PlugInGroup[Any]]:
    """Return the groups of plug-ins of a kind."""
    from tmkit.formats.registry import FORMATS
    from tmkit.motion.registry import MOTION_PLANNERS
    from tmkit.simulation.engines.registry import ENGINES
    from tmkit.task_planning.registry import TASK_PLANNERS
    from tmkit.world.service.transport_registry import TRANSPORTS

    groups: dict[Kind, list[PlugInGroup[Any]]] = {
        Kind.FORMATS: [FORMATS],
        Kind.PLANNERS: [TASK_PLANNERS, MOTION_PLANNERS],
        Kind.ENGINES: [ENGINES],
        Kind.TRANSPORTS: [TRANSPORTS],
    }
    return groups[kind]


def _plug_in_document(noun: str, entry: InstalledRegistration[Any]) -> dict[str, Any]:
    """Return the JSON values of a plug-in."""
    document = {
        "name": entry.value.name,
        "kind": noun,
        "description": entry.value.description,
        "distribution": entry.distribution or None,
        "installed": entry.is_usable,
        "install_command": entry.install_command or None,
    }
    if isinstance(entry.value, Format):
        return {
            **document,
            "suffixes": [*entry.value.suffixes],
            "written": [*entry.value.written_suffixes],
        }
    return {**document, "usage": entry.value.usage}


def _description(path: Path) -> str:
    """Return the first sentence of the comment at the start of a file, or the frames of a scene."""
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


def _missing_packages(path: Path) -> list[str]:
    """Return the packages that the includes of a scene name and that are not installed."""
    if path.suffix not in ROBRAY.suffixes:
        return []
    from tmkit.formats.mesh.package_uris import PackageResolver

    missing: set[str] = set()
    for uri in _INCLUDE_LINE.findall(path.read_text(encoding="utf-8")):
        if not uri.startswith("package://"):
            missing.update(_missing_packages(path.parent / uri))
        elif PackageResolver().find(uri) is None:
            missing.add(uri.split("/")[2])
    return sorted(missing)
