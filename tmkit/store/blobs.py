"""Shapes with arrays as files that are read through a memory map: meshes, point clouds, height fields.

A file is named by the digest of its shape. It holds a header of 64 bytes (magic, kind, the numbers
of rows, columns and faces, up to three dimensions), then the arrays as they are in memory,
little-endian: nothing is parsed. The shape that is made of them must have the digest that the file
is called. Digests of shapes have 128 bits and are not cryptographic, so a file that is there is
compared byte by byte before a version refers to it.

Invariants: a blob is there whole or not at all; nothing outside of the folder is read or written,
whatever links a stranger's folder holds.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
import struct
from pathlib import Path

import numpy as np

from tmkit._support.output import write_files
from tmkit.errors import OutputError, StoreDamageError, StoreError, TmkitError
from tmkit.graph import HeightField, Mesh, PointCloud, Shape

# magic, kind, number of dimensions, rows, columns, faces, dimensions
_HEADER = struct.Struct("<8s2I3Q3d")
_MAGIC = b"tmkblob1"
_KINDS = {"mesh": 0, "point_cloud": 1, "height_field": 3}  # and their numbers of dimensions
_NAME = re.compile(r"[0-9a-f]{32}")


class BlobFolder:
    """The blobs of a store in a folder, which is made; StoreError where it cannot be, or is a link."""

    def __init__(self, path: Path, *, largest: int) -> None:
        self._path, self._largest = path, largest
        self._compared: set[str] = set()  # digests whose files hold what the shape says
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: the folder cannot be made: {error.strerror}") from None
        if path.is_symlink():
            raise StoreError(f"{path}: expected a folder, received a link")

    def put(self, shape: Shape) -> None:
        """Write the blob of a shape, unless it is there; synchronised with the disk."""
        digest, path = shape.digest, self._path / shape.digest
        if digest in self._compared and path.exists():
            return
        data = blob_of_shape(shape)
        if len(data) > self._largest:
            raise StoreError(
                f"shape {digest} has {len(data)} bytes; a blob has at most {self._largest}"
            )
        try:
            if not os.path.lexists(path):
                write_files({path: data})
            elif self._map(digest)[:] != data:
                raise ValueError("it is damaged, or another shape has its digest")
        except OutputError:
            raise
        except (OSError, ValueError) as error:
            raise StoreDamageError.of(f"blob {digest}", str(error)) from None
        self._compared.add(digest)

    def get(self, digest: str, source: str) -> Shape:
        """Return the shape of a blob; ``source`` is its label. StoreDamageError where it is missing or damaged."""
        try:
            shape = shape_of_blob(self._map(digest), source)
            if shape.digest != digest:
                raise ValueError(f"what it holds has the digest {shape.digest}")
        except OSError as error:
            raise StoreDamageError.of(
                f"blob {digest}", f"it cannot be read: {error.strerror}"
            ) from None
        except (TmkitError, ValueError) as error:
            raise StoreDamageError.of(f"blob {digest[:80]}", f"it is damaged: {error}") from None
        return shape

    def remove_all_but(self, digests: set[str]) -> tuple[int, int]:
        """Remove all other files, half-written ones too; return how many and their bytes."""
        entries = [
            entry
            for entry in os.scandir(self._path)
            if entry.name not in digests and not entry.is_dir()
        ]
        size = sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
        for entry in entries:
            os.unlink(entry.path)
        return len(entries), size

    def _map(self, digest: str) -> mmap.mmap:
        if not _NAME.fullmatch(digest):
            raise ValueError("it has no digest for a name")
        handle = os.open(
            self._path / digest, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
        try:
            status = os.fstat(handle)
            if (
                not stat.S_ISREG(status.st_mode)
                or not _HEADER.size <= status.st_size <= self._largest
            ):
                raise ValueError(
                    f"expected a regular file of {_HEADER.size} to {self._largest} bytes"
                )
            return mmap.mmap(handle, status.st_size, access=mmap.ACCESS_READ)
        finally:
            os.close(handle)


def blob_of_shape(shape: Shape) -> bytes:
    """Return the bytes of the blob of a mesh, point cloud or height field."""
    numbers = {"mesh": shape.vertices, "point_cloud": shape.points, "height_field": shape.heights}[
        shape.kind
    ]
    dimensions = (*shape.dimensions, 0.0, 0.0, 0.0)[:3]
    kind = [*_KINDS].index(shape.kind)
    header = _HEADER.pack(
        _MAGIC, kind, len(shape.dimensions), *numbers.shape, len(shape.faces), *dimensions
    )
    return header + numbers.tobytes() + shape.faces.tobytes()


def shape_of_blob(data: bytes | mmap.mmap, source: str) -> Shape:
    """Return the shape that the bytes of a blob say, with a label; ValueError where they are no blob."""
    if len(data) < _HEADER.size:
        raise ValueError(f"expected {_HEADER.size} bytes or more")
    magic, kind, count, rows, columns, faces, *dimensions = _HEADER.unpack_from(data)
    expected = _HEADER.size + 8 * rows * columns + 12 * faces
    if (
        magic != _MAGIC
        or kind >= len(_KINDS)
        or count != [*_KINDS.values()][kind]
        or expected != len(data)
    ):
        raise ValueError("its header does not fit its length, or is none")
    numbers = np.frombuffer(data, "<f8", rows * columns, _HEADER.size).reshape(rows, columns)
    if kind == 0:
        corners = np.frombuffer(data, "<i4", 3 * faces, _HEADER.size + numbers.nbytes).reshape(
            -1, 3
        )
        return Mesh(numbers, corners, source=source)
    if kind == 1:
        return PointCloud(numbers, radius=dimensions[0], source=source)
    return HeightField(numbers, size=dimensions[:2], floor=dimensions[2], source=source)
