"""Commands for stores of scene versions: ``tmkit store put``, ``log``, ``diff`` and others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit._support.terminal import printable
from tmkit.cli.common import AsJson, FileOptions, Scenes, load, require_writable
from tmkit.cli.option_groups import add_command
from tmkit.cli.reporting import print_json, say
from tmkit.cli.signals import ExitCode

if TYPE_CHECKING:
    from tmkit.store import Store

app = typer.Typer(
    help="Keep versions of scenes in a folder: branches, history, merges.", no_args_is_help=True
)

_ID_LENGTH = 12
"""Number of characters of a version's id that are printed."""

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the store.")]
VersionName = Annotated[
    str, typer.Argument(metavar="VERSION", help="A branch, an id, or the start of an id.")
]
Branch = Annotated[str, typer.Option("--branch", metavar="NAME", help="The branch.")]
Message = Annotated[
    str, typer.Option("-m", "--message", metavar="TEXT", help="Description of the change.")
]


def branches(folder: Folder, as_json: AsJson = False) -> None:
    """List the branches and their latest versions."""
    with _open_store(folder) as store:
        if as_json:
            print_json(dict(store.branches))
            return
        for name, version in store.branches.items():
            say(f"{version[:_ID_LENGTH]} {name}: {len(store.get(version))} frames")


def log(folder: Folder, version: VersionName = "main", as_json: AsJson = False) -> None:
    """List a version and its ancestors, the latest first."""
    with _open_store(folder) as store:
        entries = [*store.log(version)]
    if as_json:
        print_json([entry._asdict() for entry in entries])
        return
    for entry in entries:
        merges = ", ".join(parent[:_ID_LENGTH] for parent in entry.parents[1:])
        suffix = f" (merges {merges})" if merges else ""
        say(printable(f"{entry.id[:_ID_LENGTH]}{suffix} {entry.message}".rstrip(), keep=""))


def show(folder: Folder, version: VersionName = "main") -> None:
    """Print the frames of a version as a tree."""
    from tmkit.graph import tree_text

    with _open_store(folder) as store:
        say(printable(tree_text(store.get(version))))


def put(
    folder: Folder,
    scenes: Scenes,
    *,
    branch: Branch = "main",
    message: Message = "",
    files: FileOptions,
) -> None:
    """Store a scene, merged from all files, as the next version of a branch of a store."""
    from tmkit.store import Store

    scene = load(scenes, reading=files.reading_options())
    with Store(folder) as store:
        say(store.put(scene, branch, message=message))


def get(
    folder: Folder,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="A .json, .robray or .urdf file.")
    ],
    version: VersionName = "main",
) -> None:
    """Write a version as a scene file."""
    from tmkit.formats import convert_scene

    require_writable(output)
    with _open_store(folder) as store:
        for file in convert_scene(store.get(version), output):
            say(f"Written to {file}")


def diff(folder: Folder, before: VersionName, after: VersionName) -> None:
    """Print the differences between two versions; exit code 1 if there are any."""
    with _open_store(folder) as store:
        difference = store.diff(before, after)
    for frame in difference.frames:
        say(printable(repr(frame)[len("FrameDifference(") : -1], keep=""))
    for a, b, old, new in difference.pairs:
        say(printable(f"pair '{a}' and '{b}': {old or 'checked'} -> {new or 'checked'}", keep=""))
    for name in difference.groups:
        say(printable(f"group '{name}'", keep=""))
    if difference:
        raise typer.Exit(ExitCode.NO)


def merge(
    folder: Folder, version: VersionName, branch: Branch = "main", message: Message = ""
) -> None:
    """Merge a version into a branch, frame by frame.

    Different changes of the same frame are a conflict: exit code 1.
    """
    from tmkit.errors import MergeConflictError

    with _open_store(folder) as store:
        try:
            say(store.merge(version, into=branch, message=message))
        except MergeConflictError as error:
            say(printable(str(error)))
            raise typer.Exit(ExitCode.NO) from None


def gc(folder: Folder) -> None:
    """Remove versions that no branch contains, with their data; print damaged entries."""
    with _open_store(folder) as store:
        damaged = store.find_damage()
        for line in damaged:
            say(printable(line))
        if damaged:
            raise typer.Exit(ExitCode.NO)
        removal = store.gc()
    say(
        f"Removed {removal.versions} versions and {removal.blobs} blobs of"
        f" {removal.blob_bytes} bytes"
    )


def _open_store(folder: Path) -> Store:
    """Open an existing store."""
    from tmkit.store import Store

    return Store(folder, must_exist=True)


add_command(app, branches, "ls")
add_command(app, log)
add_command(app, show)
add_command(app, put)
add_command(app, get)
add_command(app, diff)
add_command(app, merge)
add_command(app, gc)
