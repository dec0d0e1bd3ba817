"""Loading scenes: files are read, unless their scene was kept (:mod:`tmkit.formats.scene_cache`).

The readers are imported when files are read, since that takes several times as long as a scene that
was kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tmkit._core import SceneGraph
from tmkit._support.argument_errors import check_argument
from tmkit._support.limits import Signature, files_seen
from tmkit._support.source_location import ImportLog, ImportNote, SourceLocation
from tmkit.errors import FileFormatError, SceneError
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.reading_options import ReadingOptions
from tmkit.formats.registry import FORMATS, located
from tmkit.formats.scene_cache import SceneCache, key_of
from tmkit.formats.urdf.format import XACRO


def load_scene(
    *files: str | os.PathLike[str],
    reading: ReadingOptions | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
    on_file: Callable[[Path], None] | None = None,
    complete: bool = True,
) -> SceneGraph:
    """Load scene files and merge them, in order, into one scene with the root ``world``.

    Args:
        *files: each a bare name of a built-in scene (``"panda_table"``), or a path or
            ``package://`` URI of a ``.robray``, ``.rsg``, ``.urdf``, ``.sdf``, ``.world``, ``.xml``
            (MJCF), ``.usd``, ``.gltf``, ``.glb``, ``.json`` or ``.srdf`` file. The last lets pairs
            of links touch that the others declare.
        reading: where packages and meshes are sought, limits, and whether xacro may run; the
            defaults if omitted.
        on_note: called with everything that a reader mended or omitted instead of refusing the
            file, such as a joint without limits; the same is logged as a warning. ``notes.append``
            collects them in a list.
        on_file: called with the path of each file before it is read: scene files, includes, meshes;
            and of each that is missing.
        complete: whether the files are to make a whole scene. When not, a parent that none of them
            declares becomes a root, with a note: for looking at a file by itself.

    Raises:
        MissingFileError: a file is not there; the message names the nearest that is.
        FileFormatError: a file is wrong, or two files declare the same frame or joint; the message
            names file, line and what was expected.
        MeshError: a mesh is missing or broken.
    """
    if not files:
        raise SceneError("load_scene needs at least one file")
    for file in files:
        check_argument(
            file,
            (str, os.PathLike),
            "files",
            function="load_scene",
            hint="give names and paths one by one",
        )
    check_argument(
        reading,
        (ReadingOptions, type(None)),
        "reading",
        function="load_scene",
        words="ReadingOptions",
    )
    reading = reading or ReadingOptions()
    paths, resolver = located(files, reading)
    xacro = {} if reading.allow_xacro is True else reading.allow_xacro
    runs = (
        {}
        if xacro is False
        else {path: xacro for path in paths if path.suffix.lower() in XACRO.suffixes}
    )
    if on_file is not None:
        for path in paths:
            on_file(path)
    resolver = replace(resolver, on_file=on_file, xacro=runs)
    # xacro reads files by itself
    cache = None if on_file is not None or runs else SceneCache.of_user()
    log = ImportLog(on_note)
    try:
        if cache is None:
            return _read(paths, resolver, log, complete=complete)[0]
        return _read_once(paths, resolver, log, cache, complete=complete)
    except MemoryError as error:
        raise FileFormatError.at(
            paths[0], "reading the scene needs more memory than is available"
        ) from error


def _read(
    paths: Sequence[Path], resolver: PackageResolver, log: ImportLog, *, complete: bool
) -> tuple[SceneGraph, bool]:
    """Return the scene of some files, and whether a mesh was read."""
    from tmkit.formats.mesh.meshes import MeshLoader
    from tmkit.formats.reading import read_scene

    loader = MeshLoader(resolver, log.note)
    return read_scene(paths, loader, log.note, complete=complete), loader.has_read


def _read_once(
    paths: Sequence[Path],
    resolver: PackageResolver,
    log: ImportLog,
    cache: SceneCache,
    *,
    complete: bool,
) -> SceneGraph:
    """Return the scene of some files, from the cache if it was loaded before; the notes are the same."""
    places = [os.path.abspath(path) for path in (*paths, *resolver.folders, *resolver.ros_folders)]
    named = {name: os.path.abspath(folder) for name, folder in resolver.package_folders.items()}
    key = key_of(places, named, resolver, os.environ.get("PYTHONPATH"), complete)
    if (kept := cache.get(key)) is not None:
        for note in kept[1]:
            log.note(SourceLocation(note.path, note.line), note.text)
        return kept[0]
    seen: dict[str, Signature] = {}
    token = files_seen.set(seen)
    try:
        scene, has_meshes = _read(paths, resolver, log, complete=complete)
    finally:
        files_seen.reset(token)
    are_built_in = all(
        FORMATS.find_built_in(path.suffix.lower().removeprefix(".")) for path in paths
    )
    # else reading takes little, or depends on code whose changes are not seen
    if has_meshes and are_built_in:
        cache.put(key, scene, seen, log.notes)
    return scene
