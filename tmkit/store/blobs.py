"""Files of meshes, point clouds and height fields, read through a memory map.

The name of a file is the digest of its shape. A file begins with a header of 64 bytes: magic, kind,
counts of rows, columns and faces, up to three dimensions. The arrays follow as in memory,
little-endian, so reading needs no parser. The shape of these arrays must have the digest of the
file name. Digests of shapes have 128 bits and are not cryptographic. For this reason an existing
file is compared byte by byte before a version refers to it.

Invariants: a blob is complete or absent; nothing outside of the folder is read or written, even if
an untrusted folder contains links.
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

_HEADER = struct.Struct("<8s2I3Q3d")
"""Header: magic, kind, count of dimensions, rows, columns, faces, dimensions."""

_MAGIC = b"tmkblob1"
"""First bytes of a blob."""

_DIMENSION_COUNTS = {"mesh": 0, "point_cloud": 1, "height_field": 3}
"""Count of the dimensions by kind of shape; the index of a kind is its number in the header."""

_NAME = re.compile(r"[0-9a-f]{32}")


class BlobFolder:
    """Folder of the blobs of a store.

    Args:
        path: the folder, created if it is missing.
        max_bytes: limit of the size of a blob.

    Raises:
        StoreError: if the folder cannot be created or is a link.
    """

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._verified: set[str] = set()  # digests of files with the bytes of their shape
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: the folder cannot be made: {error.strerror}") from None
        if path.is_symlink():
            raise StoreError(f"{path}: expected a folder, received a link")

    def put(self, shape: Shape) -> None:
        """Write the blob of a shape, unless it exists, and synchronise it with the disk.

        Raises:
            StoreError: if the shape is too large.
            StoreDamageError: if an existing file differs.
            OutputError: if the file cannot be written.
        """
        digest = shape.digest
        path = self._path / digest
        if digest in self._verified and path.exists():
            return
        data = blob_of_shape(shape)
        if len(data) > self._max_bytes:
            raise StoreError(
                f"shape {digest} has {len(data)} bytes; a blob has at most {self._max_bytes}"
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
        self._verified.add(digest)

    def get(self, digest: str, source: str) -> Shape:
        """Return the shape of a blob, with a source label.

        Raises:
            StoreDamageError: if the blob is missing or damaged.
        """
        try:
            shape = shape_of_blob(self._map(digest), source)
            if shape.digest != digest:
                raise ValueError(f"its content has the digest {shape.digest}")
        except OSError as error:
            raise StoreDamageError.of(
                f"blob {digest}", f"it cannot be read: {error.strerror}"
            ) from None
        except (TmkitError, ValueError) as error:
            raise StoreDamageError.of(f"blob {digest[:80]}", f"it is damaged: {error}") from None
        return shape

    def remove_all_but(self, digests: set[str]) -> tuple[int, int]:
        """Remove all other files, also half-written ones; return their count and bytes."""
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
            raise ValueError("its name is not a digest")
        handle = os.open(
            self._path / digest, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
        try:
            status = os.fstat(handle)
            if (
                not stat.S_ISREG(status.st_mode)
                or not _HEADER.size <= status.st_size <= self._max_bytes
            ):
                raise ValueError(
                    f"expected a regular file of {_HEADER.size} to {self._max_bytes} bytes"
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
    kind = [*_DIMENSION_COUNTS].index(shape.kind)
    header = _HEADER.pack(
        _MAGIC, kind, len(shape.dimensions), *numbers.shape, len(shape.faces), *dimensions
    )
    return header + numbers.tobytes() + shape.faces.tobytes()


def shape_of_blob(data: bytes | mmap.mmap, source: str) -> Shape:
    """Return the shape of the bytes of a blob, with a source label.

    Raises:
        ValueError: if the bytes are not a blob.
    """
    if len(data) < _HEADER.size:
        raise ValueError(f"expected {_HEADER.size} bytes or more")
    magic, kind, count, rows, columns, faces, *dimensions = _HEADER.unpack_from(data)
    expected = _HEADER.size + 8 * rows * columns + 12 * faces
    if (
        magic != _MAGIC
        or kind >= len(_DIMENSION_COUNTS)
        or count != [*_DIMENSION_COUNTS.values()][kind]
        or expected != len(data)
    ):
        raise ValueError("its header is invalid or does not fit its length")
    numbers = np.frombuffer(data, "<f8", rows * columns, _HEADER.size).reshape(rows, columns)
    if kind == 0:
        corners = np.frombuffer(data, "<i4", 3 * faces, _HEADER.size + numbers.nbytes).reshape(
            -1, 3
        )
        return Mesh(numbers, corners, source=source)
    if kind == 1:
        return PointCloud(numbers, radius=dimensions[0], source=source)
    return HeightField(numbers, size=dimensions[:2], floor=dimensions[2], source=source)
