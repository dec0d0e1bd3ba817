"""Cache of loaded scenes on the disk.

An entry is one file, named by a digest of the request and of the reading code. It contains:

* a digest of the rest of the file;
* the key of the entry, the signatures of the files that were read or searched, and the notes;
* the pickled scene, which is unpickled with classes of the core only.

An entry is written to a temporary file and renamed, so processes may share a folder. An entry that
is damaged, is not a regular file, or belongs to another user counts as missing. If the folder is
full, the least recently used entries are removed.

Invariant: a cached scene equals the scene of its files. A signature contains the change time of the
inode, which changes with the content even if the modification time is reset. Files that changed
within the last seconds, or during reading, are not cached, since a second change within a tick of
the file system's clock would not be detected.
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
"""Suffix of an entry."""

_READER_PACKAGES = ("_support", "formats", "graph", "spatial")
"""Packages of tmkit whose code a load runs."""

_DIGEST_SIZE = 32
"""Size of the digest of an entry [bytes]."""

_SETTLING_TIME = 2_000_000_000
"""Time after a change during which another change may not be detected [ns]."""

_UNPICKLED_CLASSES = {("numpy._core.numeric", "_frombuffer"), ("numpy", "dtype")}
"""Modules and names that are unpickled, in addition to the classes of the core."""


@dataclass(frozen=True)
class SceneCache:
    """A folder of loaded scenes, created for the first entry.

    Attributes:
        folder: path of the folder.
        limit: largest size of all entries together [bytes].
    """

    folder: Path
    limit: int = 512_000_000

    @classmethod
    def of_user(cls) -> SceneCache | None:
        """Return the cache of the user, or None if it is off.

        The folder is ``TMKIT_CACHE``, by default ``~/.cache/tmkit``.
        """
        setting = os.environ.get("TMKIT_CACHE", "")
        if setting == "off":
            return None
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        return cls(Path(setting) if setting else Path(base) / "tmkit")

    def get(self, key: str) -> tuple[SceneGraph, list[ImportNote]] | None:
        """Return the scene of an entry and the notes of its load.

        Returns None if there is no entry, or a file has changed.
        """
        path = self.folder / (key + _SUFFIX)
        try:
            with _open_own_file(path, self.limit) as file:
                data = file.read()
                digest, content = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:]
                if hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest() != digest:
                    return None
                stream = io.BytesIO(content)
                stored_key, files, note_fields = _Unpickler(stream).load()
                if stored_key != key or _have_changed(files):
                    return None
                notes = [
                    ImportNote(str(source), line, str(text)) for source, line, text in note_fields
                ]
                scene = _Unpickler(stream).load()
                if not isinstance(scene, SceneGraph):
                    return None
                os.utime(file.fileno())  # store the time of the last use
        except Exception:  # an invalid entry can raise any exception, and the files can be read
            return None
        logger.debug("loaded a scene of %d frames from %s", len(scene), path)
        return scene, notes

    def put(
        self,
        key: str,
        scene: SceneGraph,
        files: Mapping[str, Signature],
        notes: Iterable[ImportNote],
    ) -> None:
        """Store a scene, if its files have not changed recently and the folder is writable.

        Args:
            key: key of the entry.
            scene: scene.
            files: signatures of the files that were read or missing, from before they were read.
            notes: notes of the load.
        """
        change_times = [max(signature[1:3]) for signature in files.values() if signature]
        if max(change_times, default=0) > time.time_ns() - _SETTLING_TIME:
            return
        if _have_changed(files):
            return
        note_fields = [(note.path, note.line, note.text) for note in notes]
        header = pickle.dumps((key, dict(files), note_fields), protocol=5)
        content = header + pickle.dumps(scene, protocol=5)
        path = self.folder / (key + _SUFFIX)
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # mkstemp creates a new file, so it does not follow links.
            descriptor, temporary_path = tempfile.mkstemp(suffix=".part", dir=self.folder)
            try:
                with open(descriptor, "wb") as file:
                    digest = hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest()
                    file.write(digest + content)
                os.replace(temporary_path, path)
            except BaseException:
                os.unlink(temporary_path)
                raise
            self._shrink()

    def entries(self) -> list[tuple[float, int, Path]]:
        """Return the time of the last use, the size [bytes] and the path of each entry.

        The least recently used entry is first.
        """
        entries = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                if file.name.endswith((_SUFFIX, ".part")) and file.is_file(follow_symlinks=False):
                    status = file.stat(follow_symlinks=False)
                    entries.append((status.st_mtime, status.st_size, Path(file.path)))
        return sorted(entries)

    def clear(self) -> None:
        """Remove all entries."""
        for _, _, path in self.entries():
            with contextlib.suppress(OSError):
                path.unlink()

    def _shrink(self) -> None:
        """Remove the least recently used entries beyond the limit."""
        entries = self.entries()
        excess = sum(size for _, size, _ in entries) - self.limit
        for _, size, path in entries:
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def entry_key(*request: object) -> str:
    """Return the key of an entry.

    The key is a digest of the request, of the reading code and of the installed packages.
    """
    sites = [(str(site), file_signature(str(site))) for site in site_folders()]
    content = repr((request, _code_signatures(), sites)).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@functools.cache
def _code_signatures() -> list[tuple[str, Signature]]:
    """Return the signatures of the reading code, which is constant in a process."""
    package = Path(__file__).parents[1]
    sources = [
        path for folder in _READER_PACKAGES for path in sorted((package / folder).rglob("*.py"))
    ]
    core = str(sys.modules[SceneGraph.__module__].__file__)
    return [(path, file_signature(path)) for path in (*map(str, sources), core)]


def _have_changed(files: Mapping[str, Signature]) -> bool:
    """Return whether the signature of any file has changed."""
    return any(file_signature(name) != signature for name, signature in files.items())


def _open_own_file(path: Path, limit: int) -> BinaryIO:
    """Open a regular file that belongs to the user and that no other user may write.

    The function neither blocks nor follows a link.

    Raises:
        OSError: if there is no such file, or it has more than ``limit`` bytes.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a device may have side effects
        raise OSError("it is not a regular file")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        is_own = status.st_uid == os.geteuid()
        is_writable_by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        is_regular = stat.S_ISREG(status.st_mode)
        if not is_regular or not is_own or is_writable_by_others or status.st_size > limit:
            raise OSError("the file belongs to another user, or is too large")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


class _Unpickler(pickle.Unpickler):
    """Unpickler that creates only objects of the core and arrays."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "tmkit._core" or (module, name) in _UNPICKLED_CLASSES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not a part of a scene")
