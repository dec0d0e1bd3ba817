"""Loaded scenes on the disk, so that meshes and descriptions that have not changed are not read again.

An entry is one file, named by a digest of the request and of the code that reads. It has a digest
of the rest, its name, the files that were read or looked for with their signatures, the notes, and
the pickled scene, of which only classes of the core are made. It is written beside its place and
renamed, so processes may share a folder. An entry that is damaged, no regular file, or not the
user's own counts as missing. When the folder is full, the entries that were not used longest are
removed.

Invariant: a scene that is taken from here equals the one that reading gives. A signature has the
time of the inode, which changes with the content even if the time of the content is set back. Files
that changed within the last seconds, or while they were read, are not trusted, since a change
within one tick of the file system's clock would not show.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import logging
import os
import pickle
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tmkit._core import SceneGraph
from tmkit._support.limits import Signature, file_signature
from tmkit._support.source_location import ImportNote
from tmkit.formats.mesh.package_uris import site_folders

logger = logging.getLogger(__name__)

_SUFFIX = ".scene"
_READERS = ("_support", "formats", "graph", "spatial")  # packages that a load runs
_DIGEST = 32  # bytes
_SETTLED = 2_000_000_000
"""Time after a change before which another one may not show in the times of the file [ns]."""
# besides the core's classes
_ALLOWED = {("numpy._core.numeric", "_frombuffer"), ("numpy", "dtype")}


@dataclass(frozen=True)
class SceneCache:
    """A folder of loaded scenes, made when the first is kept; all entries together have at most ``limit`` bytes."""

    folder: Path
    limit: int = 512_000_000

    @classmethod
    def of_user(cls) -> SceneCache | None:
        """Return the cache of the user: the folder ``TMKIT_CACHE``, by default ``~/.cache/tmkit``; None if off."""
        chosen = os.environ.get("TMKIT_CACHE", "")
        if chosen == "off":
            return None
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        return cls(Path(chosen) if chosen else Path(base) / "tmkit")

    def get(self, key: str) -> tuple[SceneGraph, list[ImportNote]] | None:
        """Return the scene that was kept and the notes of its load; None if there is none or a file has changed."""
        path = self.folder / (key + _SUFFIX)
        try:
            with _own_file(path, self.limit) as file:
                data = file.read()
                if hashlib.blake2b(data[_DIGEST:], digest_size=_DIGEST).digest() != data[:_DIGEST]:
                    return None
                stream = io.BytesIO(data)
                stream.seek(_DIGEST)
                name, files, listed = _Reader(stream).load()
                if name != key or _have_changed(files):
                    return None
                notes = [ImportNote(str(source), line, str(text)) for source, line, text in listed]
                scene = _Reader(stream).load()
                if not isinstance(scene, SceneGraph):
                    return None
                os.utime(file.fileno())  # the last use
        except Exception:  # whatever is wrong with an entry, the files themselves are there
            return None
        logger.debug("a scene of %d frames was kept in %s", len(scene), path)
        return scene, notes

    def put(
        self,
        key: str,
        scene: SceneGraph,
        files: Mapping[str, Signature],
        notes: Iterable[ImportNote],
    ) -> None:
        """Keep a scene, if all its files are settled and the folder can be written.

        Args:
            key: the name of the entry.
            scene: the scene.
            files: signatures, from before the first reading, of the files that it was made of or
                that were missing.
            notes: those of its load.
        """
        changes = [max(signature[1:3]) for signature in files.values() if signature]
        if max(changes, default=0) > time.time_ns() - _SETTLED:
            return
        if _have_changed(files):  # while they were read
            return
        listed = [(note.path, note.line, note.text) for note in notes]
        rest = pickle.dumps((key, dict(files), listed), protocol=5) + pickle.dumps(
            scene, protocol=5
        )
        path = self.folder / (key + _SUFFIX)
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # a new file, whatever links are there
            number, beside = tempfile.mkstemp(suffix=".part", dir=self.folder)
            try:
                with open(number, "wb") as file:
                    file.write(hashlib.blake2b(rest, digest_size=_DIGEST).digest() + rest)
                os.replace(beside, path)
            except BaseException:
                os.unlink(beside)
                raise
            self._shrink()

    def entries(self) -> list[tuple[float, int, Path]]:
        """Return the time of the last use, the bytes and the file of each entry, those not used longest first."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as listed:
            for entry in listed:
                if entry.name.endswith((_SUFFIX, ".part")) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime, status.st_size, Path(entry.path)))
        return sorted(found)

    def clear(self) -> None:
        """Remove all entries."""
        for _, _, path in self.entries():
            with contextlib.suppress(OSError):
                path.unlink()

    def _shrink(self) -> None:
        entries = self.entries()
        excess = sum(size for _, size, _ in entries) - self.limit
        for _, size, path in entries:
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def key_of(*asked: object) -> str:
    """Return the name of an entry: a digest of what was asked for, of the code that reads it and what is installed."""
    installed = [(str(site), file_signature(str(site))) for site in site_folders()]
    return hashlib.blake2b(repr((asked, _code(), installed)).encode(), digest_size=16).hexdigest()


@functools.cache
def _code() -> list[tuple[str, Signature]]:
    """Return what tells that the code is the same; in one process it is."""
    package = Path(__file__).parents[1]
    sources = [path for folder in _READERS for path in sorted((package / folder).rglob("*.py"))]
    core = str(sys.modules[SceneGraph.__module__].__file__)
    return [(path, file_signature(path)) for path in (*map(str, sources), core)]


def _have_changed(files: Mapping[str, Signature]) -> bool:
    """Return whether any file has another signature now."""
    return any(file_signature(name) != signature for name, signature in files.items())


def _own_file(path: Path, limit: int) -> BinaryIO:
    """Open a regular file of the user's own that no other user may write to, without waiting or following a link.

    Raises:
        OSError: if there is no such file, or one of more than ``limit`` bytes.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):  # a device may act when it is opened
        raise OSError("it is no regular file")
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(number)
        is_own = status.st_uid == os.geteuid() and not status.st_mode & (
            stat.S_IWGRP | stat.S_IWOTH
        )
        if not (stat.S_ISREG(status.st_mode) and is_own and status.st_size <= limit):
            raise OSError("it is no file of the user's own, or too large")
        return open(number, "rb")
    except BaseException:
        os.close(number)
        raise


class _Reader(pickle.Unpickler):
    """Makes objects of the core, and arrays; nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "tmkit._core" or (module, name) in _ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a scene")
