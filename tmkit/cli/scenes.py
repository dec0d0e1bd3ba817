"""Commands for scene files: ``tmkit scene ...``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit._support.terminal import printable
from tmkit.cli.common import AsJson, SceneFileOptions, Scenes, load, require_writable
from tmkit.cli.events import error_fields
from tmkit.cli.option_groups import add_command
from tmkit.cli.reporting import print_json, progress, say
from tmkit.cli.signals import ExitCode
from tmkit.errors import TmkitError

if TYPE_CHECKING:
    from tmkit._support.source_location import ImportNote
    from tmkit.formats import ReadingOptions
    from tmkit.graph import SceneGraph

_MAX_INDENTATION = 50
"""Largest depth of a frame that is printed as indentation."""

_WATCH_PERIOD = 0.3
"""Time between two checks for a changed file [s]."""

app = typer.Typer(help="Print, check, convert and compile scene files.", no_args_is_help=True)


def dump(scenes: Scenes, *, as_json: AsJson = False, files: SceneFileOptions) -> None:
    """Print the frames of a scene, merged from all files; missing parents are shown as roots."""
    from tmkit.formats.json.scene import scene_dump

    scene = load(scenes, reading=files.reading_options(), complete=False)
    if as_json:
        print_json(scene_dump(scene))
        return
    for root in scene.root_names:
        for name, depth in _in_tree_order(scene, root):
            text = _describe_frame(scene, name)
            say(f"{_indentation(depth)}{printable(text, keep='')}")


def _describe_frame(scene: SceneGraph, name: str) -> str:
    """Return the name, joint, classes and shapes of a frame as text."""
    joint, classes, shapes = scene.joint(name), scene.classes(name), scene.shapes(name)
    text = name
    if joint.type != "fixed":
        text += f" [{joint.type} {joint.name}]" if joint.is_actuated else f" [{joint.type}]"
    if classes:
        text += f" ({', '.join(classes)})"
    if shapes:
        text += f": {', '.join(part.shape.kind for part in shapes)}"
    return text


def check(
    scenes: Scenes,
    *,
    as_json: AsJson = False,
    files: SceneFileOptions,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Check again when a file that was read changes, until Ctrl-C."
        ),
    ] = False,
) -> None:
    """Check a scene for overlapping objects, joints without limits, and frames without effect."""

    def check_once(on_file: Callable[[Path], None] | None = None) -> bool:
        return _check(scenes, on_file, as_json=as_json, reading=files.reading_options())

    if watch:
        check_on_change(check_once, as_json=as_json)
    elif not check_once():
        raise typer.Exit(ExitCode.NO)


def _check(
    scenes: list[str],
    on_file: Callable[[Path], None] | None,
    *,
    as_json: bool,
    reading: ReadingOptions,
) -> bool:
    """Check a scene and print the report.

    Args:
        scenes: files and built-in names, merged in order.
        on_file: called with each file before it is read.
        as_json: whether to print JSON.
        reading: options of the scene reader.

    Returns:
        Whether the scene is valid.
    """
    from tmkit._support.results import problem_count
    from tmkit.formats import check_scene, read_function_blocks

    notes: list[ImportNote] = []
    scene = load(scenes, reading=reading, on_note=notes.append, on_file=on_file)
    report = check_scene(scene, blocks=read_function_blocks(*scenes, reading=reading))
    if as_json:
        print_json({**report.to_dict(), "files": [str(note) for note in notes]})
    else:
        for kind, texts in (("problem", report.problems), ("note", report.notes)):
            for text in texts:
                say(f"{kind}: {text}")
        counts = f"{report.frames} frames, {report.joints} joints, {report.shapes} shapes"
        say(f"{', '.join(scenes)}: {counts}: {'ok' if report.is_valid else problem_count(report)}")
    return report.is_valid


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all cached scenes.")] = False,
) -> None:
    """Print the number, size and folder of the cached scenes; TMKIT_CACHE=off caches none."""
    from tmkit.formats.scene_cache import SceneCache

    scene_cache = SceneCache.of_user()
    if scene_cache is None:
        say("No scenes are kept: TMKIT_CACHE is off")
        return
    if clear:
        scene_cache.clear()
    entries = scene_cache.entries()
    size = sum(entry[1] for entry in entries) / 1e6
    limit = scene_cache.limit / 1e6
    say(f"{len(entries)} scenes, {size:.1f} MB of at most {limit:.0f} MB, in {scene_cache.folder}")


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
    file_options: SceneFileOptions,
) -> None:
    """Write a scene, merged from all files, in another format that can express its content."""
    from tmkit.formats import convert_scene, read_function_blocks

    require_writable(output)
    scene = load(scenes, reading=file_options.reading_options())
    with progress("writing the scene"):
        blocks = read_function_blocks(*scenes, reading=file_options.reading_options())
        files = convert_scene(scene, output, blocks=blocks)
    for file in files:
        say(f"Written to {file}")


def compile_code(
    scenes: Scenes,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="Where to write: .py or .hpp (C++)."),
    ],
    file_options: SceneFileOptions,
    types: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="C++ types of point clouds and meshes of function blocks."
        ),
    ] = None,
) -> None:
    """Write a scene, merged from all files, as code that builds it without the files.

    Function blocks of RSG-DSL files become abstract classes. In Python, arrays of meshes are
    written beside it.
    """
    from tmkit.formats import compile_scene, read_function_blocks

    require_writable(output)
    scene = load(scenes, reading=file_options.reading_options())
    with progress("writing the code"):
        blocks = read_function_blocks(*scenes, reading=file_options.reading_options())
        source = ", ".join(Path(file).name for file in scenes)
        files = compile_scene(scene, output, blocks=blocks, source=source, types=types)
    for file in files:
        say(f"Written to {file}")


def _indentation(depth: int) -> str:
    """Return the indentation of a frame, bounded because long chains would print gigabytes."""
    if depth <= _MAX_INDENTATION:
        return "  " * depth
    return f"{'  ' * _MAX_INDENTATION}({depth} deep) "


def _in_tree_order(scene: SceneGraph, root: str) -> Iterator[tuple[str, int]]:
    """Yield the frames below a root with their depths, each parent before its children."""
    stack = [(root, 0)]
    while stack:
        name, depth = stack.pop()
        yield name, depth
        stack.extend((child, depth + 1) for child in reversed(scene.children(name)))


def check_on_change(
    check: Callable[[Callable[[Path], None]], object],
    *,
    as_json: bool,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Run a check once and after each change of a file, until Ctrl-C.

    Args:
        check: check to run, which calls its argument with each file before it reads the file.
        as_json: whether errors are printed as JSON.
        pause: function that waits for a number of seconds.

    Raises:
        TmkitError: if the check fails before it reads any file.
    """
    while True:
        stamps: dict[Path, tuple[int, ...]] = {}

        def record(path: Path, stamps: dict[Path, tuple[int, ...]] = stamps) -> None:
            stamps.setdefault(path, _file_stamp(path))

        try:
            check(record)
        except TmkitError as error:
            if not stamps:
                raise  # no file could change
            if as_json:
                print_json(error_fields(error))
            else:
                say(f"error: {error}")
        sys.stdout.flush()
        while all(_file_stamp(path) == stamp for path, stamp in stamps.items()):
            pause(_WATCH_PERIOD)


def _file_stamp(path: Path) -> tuple[int, ...]:
    """Return a value that changes with a file: time of change, size and inode; empty without it."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


add_command(app, dump)
add_command(app, check)
add_command(app, cache)
add_command(app, convert)
add_command(app, compile_code, "compile")
