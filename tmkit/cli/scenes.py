"""Commands about scene files (``tmkit scene ...``)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit._support.terminal import printable
from tmkit.cli.common import (
    AllowFolders,
    AllowXacro,
    AsJson,
    Meshes,
    Packages,
    Scenes,
    load,
    reading_of,
    require_writable,
)
from tmkit.cli.events import error_fields
from tmkit.cli.reporting import print_json, progress, say
from tmkit.cli.signals import ExitCode
from tmkit.errors import TmkitError

if TYPE_CHECKING:
    from tmkit._support.source_location import ImportNote
    from tmkit.formats import ReadingOptions
    from tmkit.graph import SceneGraph

_DEEPEST_SHOWN = 50  # levels

app = typer.Typer(help="Print, check, convert and compile scene files.", no_args_is_help=True)


@app.command()
def dump(
    scenes: Scenes,
    as_json: AsJson = False,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
    allow_xacro: AllowXacro = False,
) -> None:
    """Print the frames of a scene, merged from all files; missing parents are shown as roots."""
    from tmkit.formats import scene_dump

    scene = load(
        scenes, reading=reading_of(allow, package, meshes, xacro=allow_xacro), complete=False
    )
    if as_json:
        print_json(scene_dump(scene))
        return
    for root in scene.root_names:
        for name, depth in _in_tree_order(scene, root):
            joint, shapes = scene.joint(name), scene.shapes(name)
            kind = (
                f" [{joint.type}{f' {joint.name}' if joint.is_actuated else ''}]"
                if joint.type != "fixed"
                else ""
            )
            classes = f" ({', '.join(scene.classes(name))})" if scene.classes(name) else ""
            look = f": {', '.join(a.shape.kind for a in shapes)}" if shapes else ""
            say(f"{_indentation(depth)}{printable(f'{name}{kind}{classes}{look}', keep='')}")


@app.command()
def check(
    scenes: Scenes,
    as_json: AsJson = False,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
    allow_xacro: AllowXacro = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Check again when a file that was read changes, until Ctrl-C."
        ),
    ] = False,
) -> None:
    """Check a scene for overlapping objects, joints without limits, and frames without effect."""

    def check_once(on_file: Callable[[Path], None] | None = None) -> bool:
        return _check(
            scenes,
            on_file,
            as_json=as_json,
            reading=reading_of(allow, package, meshes, xacro=allow_xacro),
        )

    if watch:
        check_again(check_once, as_json=as_json)
    elif not check_once():
        raise typer.Exit(ExitCode.NO)


def _check(
    scenes: list[str],
    on_file: Callable[[Path], None] | None,
    *,
    as_json: bool,
    reading: ReadingOptions,
) -> bool:
    """Print the check of a scene; return whether it has no problem."""
    from tmkit.formats import check_scene

    notes: list[ImportNote] = []
    scene = load(scenes, reading=reading, on_note=notes.append, on_file=on_file)
    report = check_scene(scene)
    if as_json:
        print_json({**report.to_dict(), "files": [str(note) for note in notes]})
    else:
        for kind, texts in (("problem", report.problems), ("note", report.notes)):
            for text in texts:
                say(f"{kind}: {text}")
        counts = f"{report.frames} frames, {report.joints} joints, {report.shapes} shapes"
        say(f"{', '.join(scenes)}: {counts}: {'ok' if report.is_valid else report.summary}")
    return report.is_valid


@app.command()
def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove all scenes that are kept.")
    ] = False,
) -> None:
    """Say how many loaded scenes are kept on the disk, and where; TMKIT_CACHE=off keeps none."""
    from tmkit.formats.scene_cache import SceneCache

    kept = SceneCache.of_user()
    if kept is None:
        say("No scenes are kept: TMKIT_CACHE is off")
        return
    if clear:
        kept.clear()
    entries = kept.entries()
    size = sum(entry[1] for entry in entries) / 1e6
    say(
        f"{len(entries)} scenes, {size:.1f} MB of at most {kept.limit / 1e6:.0f} MB, in"
        f" {kept.folder}"
    )


@app.command()
def convert(
    scenes: Scenes,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write: .json, .robray, .rsg, .urdf, .usda, .glb.",
        ),
    ],
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
    allow_xacro: AllowXacro = False,
) -> None:
    """Write a scene, merged from all files, in another format; what the format cannot express is an error."""
    from tmkit.formats import convert_scene

    require_writable(output)
    scene = load(scenes, reading=reading_of(allow, package, meshes, xacro=allow_xacro))
    with progress("writing the scene"):
        files = convert_scene(scene, output)
    for file in files:
        say(f"Written to {file}")


@app.command("compile")
def compile_(
    scenes: Scenes,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="Where to write: .py or .hpp (C++)."),
    ],
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Write a scene, merged from all files, as code that builds it without reading them.

    In Python, function blocks of RSG-DSL files become abstract classes, and arrays of meshes are
    written beside it.
    """
    from tmkit.formats import compile_scene, read_function_blocks

    require_writable(output)
    scene = load(scenes, reading=reading_of(allow, package, meshes))
    with progress("writing the code"):
        blocks = read_function_blocks(*scenes, reading=reading_of(allow))
        files = compile_scene(
            scene, output, blocks=blocks, source=", ".join(Path(file).name for file in scenes)
        )
    for file in files:
        say(f"Written to {file}")


def _indentation(depth: int) -> str:
    """Return the blanks before a frame; from some depth on, the depth in words, or long chains would fill gigabytes."""
    return "  " * depth if depth <= _DEEPEST_SHOWN else f"{'  ' * _DEEPEST_SHOWN}({depth} deep) "


def _in_tree_order(scene: SceneGraph, root: str) -> Iterator[tuple[str, int]]:
    """Yield the frames below a root, children after their parent, and how deep each is."""
    waiting = [(root, 0)]
    while waiting:
        name, depth = waiting.pop()
        yield name, depth
        waiting.extend((child, depth + 1) for child in reversed(scene.children(name)))


def check_again(
    check: Callable[[Callable[[Path], None]], object],
    *,
    as_json: bool,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Check, and again whenever a file has changed, until Ctrl-C; ``check`` calls its argument with each file first."""
    while True:
        seen: dict[Path, tuple[int, ...]] = {}

        def note(path: Path, seen: dict[Path, tuple[int, ...]] = seen) -> None:
            seen.setdefault(path, _mark(path))

        try:
            check(note)
        except TmkitError as error:
            if not seen:
                raise  # nothing to watch
            if as_json:
                print_json(error_fields(error))
            else:
                say(f"error: {error}")
        sys.stdout.flush()
        while all(_mark(path) == mark for path, mark in seen.items()):
            pause(0.3)


def _mark(path: Path) -> tuple[int, ...]:
    """Return what changes with a file; empty if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino
