"""Loader of scene files, with a cache on the disk (:mod:`tmkit.formats.scene_cache`).

Importing the readers takes several times as long as loading a cached scene, so they are imported
only if files are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tmkit._core import SceneGraph
from tmkit._support.argument_errors import check_argument, with_keyword_hints
from tmkit._support.limits import Signature, files_seen
from tmkit._support.source_location import ImportLog, ImportNote, SourceLocation, did_you_mean
from tmkit.errors import FileFormatError, SceneError
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.reading_options import ReadingOptions
from tmkit.formats.registry import FORMATS, locate_files
from tmkit.formats.scene_cache import SceneCache, entry_key


@with_keyword_hints
def load_scene(
    *files: str | os.PathLike[str],
    reading: ReadingOptions | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
    on_file: Callable[[Path], None] | None = None,
    complete: bool = True,
) -> SceneGraph:
    """Load scene files and merge them, in order, into one scene with the root ``world``.

    Args:
        *files: names of built-in scenes (``"panda_table"``), paths or ``package://`` URIs. The
            suffix selects the format: ``.robray``, ``.rsg``, ``.urdf``, ``.sdf``, ``.world``,
            ``.xml`` (MJCF), ``.usd``, ``.gltf``, ``.glb``, ``.json`` or ``.srdf``. A ``.srdf`` file
            allows collisions between links of the other files. A folder is a MoveIt configuration
            package: the robot with its limits and allowed collisions.
        reading: search folders, limits and permission for xacro; the defaults if omitted.
        on_note: called with each fault that a reader corrects or ignores, such as a joint without
            limits. The same notes are logged as warnings. ``notes.append`` collects them in a list.
        on_file: called with the path of each scene file, include and mesh before it is read, and
            with the path of each missing one.
        complete: whether the files form a complete scene. If False, a parent that no file declares
            becomes a root, with a note. This is meant for the inspection of a single file.

    Raises:
        MissingFileError: if a file is missing; the message contains the nearest existing name.
        FileFormatError: if a file is invalid, or two files declare the same frame or joint; the
            message contains the file, the line and the expected content.
        MeshError: if a mesh is missing or invalid.
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
    paths, resolver = locate_files(files, reading)
    if on_file is not None:
        for path in paths:
            on_file(path)
    resolver = replace(resolver, on_file=on_file)
    # The cache cannot track the files that xacro reads.
    cache = None if on_file is not None or resolver.xacro else SceneCache.of_user()
    log = ImportLog(on_note)
    try:
        if cache is None:
            scene = _read(paths, resolver, log, complete=complete)[0]
            _note_unknown_arguments(resolver, log)
            return scene
        return _read_cached(paths, resolver, log, cache, complete=complete)
    except MemoryError as error:
        raise FileFormatError.at(
            paths[0], "reading the scene needs more memory than is available"
        ) from error


def _read(
    paths: Sequence[Path], resolver: PackageResolver, log: ImportLog, *, complete: bool
) -> tuple[SceneGraph, bool]:
    """Return the scene of files, and whether a mesh was read."""
    from tmkit.formats.mesh.meshes import MeshLoader
    from tmkit.formats.reading import read_scene

    loader = MeshLoader(resolver, log.note)
    return read_scene(paths, loader, log.note, complete=complete), loader.has_read


def _note_unknown_arguments(resolver: PackageResolver, log: ImportLog) -> None:
    """Note the arguments of xacro that no file of the load declares or uses."""
    for path, arguments in list(resolver.xacro.items())[:1]:
        for name in arguments.values:
            if name not in arguments.declared:
                hint = did_you_mean(name, sorted(arguments.declared))
                names = ", ".join(sorted(arguments.declared)) or "none"
                text = f"xacro has no argument '{name}'{hint} (known: {names})"
                log.note(SourceLocation(str(path)), text)


def _read_cached(
    paths: Sequence[Path],
    resolver: PackageResolver,
    log: ImportLog,
    cache: SceneCache,
    *,
    complete: bool,
) -> SceneGraph:
    """Return the scene of files, from the cache if possible, and log the same notes.

    Only scenes with meshes are cached, since others load fast. Scenes of plug-ins are not cached,
    since the cache does not detect changes of their code.
    """
    absolute_paths = [
        os.path.abspath(path) for path in (*paths, *resolver.folders, *resolver.ros_folders)
    ]
    packages = {name: os.path.abspath(folder) for name, folder in resolver.package_folders.items()}
    key = entry_key(absolute_paths, packages, resolver, os.environ.get("PYTHONPATH"), complete)
    if (entry := cache.get(key)) is not None:
        scene, notes = entry
        for note in notes:
            log.note(SourceLocation(note.path, note.line), note.text)
        return scene
    signatures: dict[str, Signature] = {}
    token = files_seen.set(signatures)
    try:
        scene, has_meshes = _read(paths, resolver, log, complete=complete)
    finally:
        files_seen.reset(token)
    are_built_in = all(
        FORMATS.find_built_in(path.suffix.lower().removeprefix(".")) for path in paths
    )
    if has_meshes and are_built_in:
        cache.put(key, scene, signatures, log.notes)
    return scene
