"""Grasps of GraspNet-1Billion: arrays of 17 numbers a grasp, in .npy and .npz files.

``GraspGroup.save_npy`` of graspnetAPI writes rows of score, width, height, depth, rotation (9, row
by row), translation (3) and object id (https://graspnetapi.readthedocs.io, "Grasp Label Format").
Baselines such as graspnet-baseline write the same. The gripper frame has its x axis along the
approach and its y axis from one finger to the other. The fingertips are ``depth`` beyond its origin
(``plot_gripper_pro_max`` of graspnetAPI). ``width`` is the distance between the open fingers.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tmkit._support.limits import ReadingLimits, read_bytes
from tmkit.errors import FileFormatError
from tmkit.formats.json.shapes import read_npy
from tmkit.manipulation.grasp_files.values import (
    PublishedGrasp,
    PublishedGrasps,
    fingertip_pose,
    require_count,
)

SUFFIXES = (".npy", ".npz")
"""Suffixes of the files."""

_ROW_LENGTH = 17
"""Numbers of a grasp."""

_ROTATION = slice(4, 13)
"""Columns of the rotation, row by row."""

_TRANSLATION = slice(13, 16)
"""Columns of the origin [m]."""

_OBJECT_ID = 16
"""Column of the number of the object."""

_RECTANGLE_LENGTH = 7
"""Numbers of a grasp in an image, ``RectGraspGroup``."""

_LABEL_ARRAYS = {"points", "offsets", "collision", "scores"}
"""Arrays of the files of labels, which are not grasps yet."""


def read_graspnet(path: Path) -> PublishedGrasps:
    """Read the grasps of a .npy or .npz file.

    Args:
        path: file with one array (n, 17). A .npz file also has other arrays.

    Raises:
        FileFormatError: if the file has no such array, needs pickle, or a row is not a grasp.
    """
    rows = _read_rows(path)
    require_count(path, len(rows))
    grasps = tuple(_grasp_of_row(path, f"row {k}", row) for k, row in enumerate(rows))
    return PublishedGrasps(
        path, "GraspNet-1Billion", grasps, has_fingertip_frames=True, is_symmetric=True
    )


def _grasp_of_row(path: Path, place: str, row: NDArray[np.float64]) -> PublishedGrasp:
    """Return the grasp of a row (17,)."""
    score, width, _, depth = row[:4].tolist()
    object_id = float(row[_OBJECT_ID])
    if not all(map(math.isfinite, (score, width, depth, object_id))):
        raise FileFormatError.at(path, f"{place}: it has numbers that are not finite")
    if width <= 0.0:
        raise FileFormatError.at(path, f"{place}: its width is {width:g}, expected above 0")
    matrix = np.column_stack([row[_ROTATION].reshape(3, 3), row[_TRANSLATION]])
    pose = fingertip_pose(path, place, matrix, approach=0, closing=1, distance=depth)
    return PublishedGrasp(pose, place, score, width, object_id=int(object_id))


def _read_rows(path: Path) -> NDArray[np.float64]:
    """Return the rows (n, 17) of a file.

    Raises:
        FileFormatError: if the file has no such array.
    """
    limit = ReadingLimits().mesh_bytes
    data = read_bytes(path, limit=limit)
    if path.suffix.lower() == ".npy":
        array = read_npy(path, data)
        if array.shape[1:] != (_ROW_LENGTH,):
            raise FileFormatError.at(
                path, f"expected an array (n, {_ROW_LENGTH}), received {array.shape}{_hint(array)}"
            )
        return array
    members = dict(_read_archive(path, data, limit))
    if set(members) >= _LABEL_ARRAYS:
        reason = (
            "it has labels of GraspNet, which are not grasps: load them by graspnetAPI's"
            " loadGrasp(..., format='6d'), and write the result by save_npy"
        )
        raise FileFormatError.at(path, reason)
    arrays = {name: read_npy(path / name, content) for name, content in members.items()}
    rows = {name: array for name, array in arrays.items() if array.shape[1:] == (_ROW_LENGTH,)}
    if len(rows) != 1:
        listed = ", ".join(sorted(rows) or sorted(arrays)) or "none"
        raise FileFormatError.at(
            path, f"expected one array (n, {_ROW_LENGTH}), received {len(rows)} of: {listed}"
        )
    return next(iter(rows.values()))


def _read_archive(path: Path, data: bytes, limit: int) -> Iterator[tuple[str, bytes]]:
    """Yield the arrays of a .npz file by name, as the contents of .npy files.

    Args:
        path: path of the file, for messages.
        data: content of the file.
        limit: largest size of all arrays [B].

    Raises:
        FileFormatError: if the file is not an archive, or its arrays are too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > limit:
                raise FileFormatError.at(
                    path, f"its arrays have more than {limit} bytes, expected at most that"
                )
            for member in members:
                with archive.open(member) as file:
                    yield member.filename.removesuffix(".npy"), file.read(member.file_size)
    except (FileFormatError, MemoryError):
        raise
    except Exception as error:  # a damaged archive raises many kinds of errors in zipfile
        raise FileFormatError.at(path, f"is not a .npz file: {error}") from None


def _hint(array: NDArray[np.float64]) -> str:
    """Return the reason for an array of another shape, or an empty string."""
    if array.shape[1:] == (_RECTANGLE_LENGTH,):
        return "; rectangles in an image have no pose"
    if array.shape == (_ROW_LENGTH,):
        return "; one grasp is an array (1, 17)"
    return ""
