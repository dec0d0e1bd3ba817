"""Files of points and of heights: what a point cloud and a height field may name instead of holding their numbers.

Points come from ``.npy`` (n, 3), ``.ply`` (its vertices) or ``.xyz`` (a line for each point, its first three numbers;
``#`` begins a comment). Heights come from ``.npy`` (rows, columns), the first row at the least y as in
:func:`~tmkit.graph.HeightField`, or from ``.png`` in grey of 8 or 16 bits: a map with y upwards, so its *last* line is
the one of least y, black is the lower end of a range that the naming file gives and white the upper.

Sizes are checked before anything is unpacked: a small file cannot request a large memory.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tmkit._support.limits import ReadingLimits, read_bytes
from tmkit._support.signals import interrupts_kept
from tmkit.errors import FileFormatError

Array = npt.NDArray[np.float64]
_Reader = Callable[[Path, bytes], Array]


def read_points(path: Path, *, limits: ReadingLimits | None = None) -> Array:
    """Return the points (n, 3) of a file, metres.

    Args:
        path: a ``.npy``, ``.ply`` or ``.xyz`` file.

    Raises:
        FileFormatError: it cannot be read, or holds anything but finite points; the message names the line where the
            format has lines.
    """
    limits = limits or ReadingLimits()
    readers: dict[str, _Reader] = {".npy": _npy, ".ply": _ply, ".xyz": partial(_xyz, limits=limits)}
    points = _reader_of(path, "points", readers)(path, read_bytes(path, limit=limits.mesh_bytes))
    if points.ndim != 2 or points.shape[1] != 3 or not len(points):
        raise FileFormatError.at(path, f"expected points of shape (n, 3), at least one, received shape {points.shape}")
    return _checked(points, path, "points", limits)


def read_heights(path: Path, *, span: tuple[float, float] | None, limits: ReadingLimits | None = None) -> Array:
    """Return the heights (rows, columns) of a file, metres, the first row at the least y.

    Args:
        path: a ``.npy`` or ``.png`` file.
        span: the heights of black and of white in a picture; ``None`` for numbers, which are metres.

    Raises:
        FileFormatError: it cannot be read, holds anything but a grid of finite heights, or has a span without need.
    """
    limits = limits or ReadingLimits()
    read = _reader_of(path, "heights", {".npy": _npy, ".png": partial(_png, span=span, limits=limits)})
    if (span is not None) != (path.suffix.lower() == ".png"):
        wanted = "needs a range of heights, from black to white" if span is None else "holds metres and takes no range"
        raise FileFormatError.at(path, f"this kind of file {wanted}")
    heights = read(path, read_bytes(path, limit=limits.mesh_bytes))
    if heights.ndim != 2 or min(heights.shape) < 2:
        reason = f"expected heights of shape (rows, columns), at least 2 of each, received shape {heights.shape}"
        raise FileFormatError.at(path, reason)
    return _checked(heights, path, "heights", limits)


def npy_bytes(values: npt.ArrayLike) -> bytes:
    """Return the ``.npy`` file of an array of floats; the same bytes for the same array."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(values, dtype="<f8"), version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _reader_of(path: Path, what: str, readers: Mapping[str, _Reader]) -> _Reader:
    """Return the reader of a file by its suffix."""
    if path.suffix.lower() not in readers:
        raise FileFormatError.at(path, f"{what} in a file of kind '{path.suffix}'; expected {', '.join(readers)}")
    return readers[path.suffix.lower()]


def _checked(values: Array, path: Path, what: str, limits: ReadingLimits) -> Array:
    """Return numbers that are finite and not too many."""
    count = len(values) if what == "points" else values.size
    if count > limits.points:
        raise FileFormatError.at(path, f"it holds {count} {what}, expected at most {limits.points}")
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise FileFormatError.at(path, f"row {bad[0] + 1} of its {what} has a number that is not finite")
    return np.ascontiguousarray(values)


def _npy(path: Path, data: bytes) -> Array:
    """Return the array of a NumPy file, whose header must fit the size of the file."""
    file = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            version = np.lib.format.read_magic(file)
            readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            if version not in readers:
                raise ValueError(f"version {version[0]}.{version[1]} is not known")
            shape, by_columns, dtype = readers[version](file)
    except Exception as error:  # a header is parsed as Python: whatever that raises means that the file is broken
        raise FileFormatError.at(path, f"no NumPy file: {_first_line(error)}") from None
    if dtype.kind not in "fiu":
        raise FileFormatError.at(path, f"expected an array of real numbers, received one of type {dtype}")
    found, expected = len(data) - file.tell(), math.prod(shape) * dtype.itemsize
    if found != expected:
        raise FileFormatError.at(path, f"expected {expected} bytes of numbers, received {found}")
    values = np.frombuffer(data, dtype=dtype, offset=file.tell()).reshape(shape, order="F" if by_columns else "C")
    return values.astype(np.float64)


def _xyz(path: Path, data: bytes, limits: ReadingLimits) -> Array:
    rows = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.partition(b"#")[0].split()
        if not words:
            continue
        try:
            x, y, z = (float(word) for word in words[:3])
        except ValueError:
            shown = line[:80].decode("utf-8", errors="replace").strip()
            raise FileFormatError.at(path, f"expected three numbers, received '{shown}'", line=number) from None
        rows.append((x, y, z))
        if len(rows) > limits.points:
            raise FileFormatError.at(path, f"it holds more than {limits.points} points, expected at most so many")
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _ply(path: Path, data: bytes) -> Array:
    """Return the vertices of a PLY file."""
    with interrupts_kept():  # trimesh catches everything, interrupts included
        import trimesh

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loaded = trimesh.load_scene(io.BytesIO(data), file_type="ply", process=False, skip_materials=True)
            parts = [np.asarray(part.vertices, dtype=np.float64) for part in loaded.geometry.values()]
        except MemoryError:
            raise
        except Exception as error:  # whatever the reader raises means that the file is broken
            raise FileFormatError.at(path, f"the points cannot be read: {_first_line(error)}") from error
    return np.concatenate(parts) if parts else np.zeros((0, 3))


def _png(path: Path, data: bytes, span: tuple[float, float] | None, limits: ReadingLimits) -> Array:
    """Return the heights of a grey picture, from the bottom upwards."""
    from PIL import Image

    assert span is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the size is looked at here
            image = Image.open(io.BytesIO(data), formats=["PNG"])
            if image.width * image.height > limits.points:
                size = f"{image.width} x {image.height} heights"
                raise FileFormatError.at(path, f"it holds {size}, expected at most {limits.points}")
            if image.mode not in ("L", "I", "I;16", "I;16B"):
                raise FileFormatError.at(path, f"expected a picture in grey, received one of mode {image.mode}")
            white = 255.0 if image.mode == "L" else 65535.0
            pixels = np.asarray(image, dtype=np.float64)
    except (FileFormatError, MemoryError):
        raise
    except Exception as error:  # whatever the many readers behind Pillow raise means that the file is broken
        raise FileFormatError.at(path, f"the picture cannot be read: {_first_line(error)}") from error
    low, high = span
    return low + (high - low) * (pixels[::-1] / white)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
