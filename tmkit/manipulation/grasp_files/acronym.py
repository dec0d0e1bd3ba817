"""Grasps of ACRONYM: HDF5 files of 2000 grasps of one mesh, or JSON with the same content.

An HDF5 file has ``grasps/transforms`` (n, 4, 4), ``grasps/qualities/flex/object_in_gripper`` (n,),
``object/file`` and ``object/scale``. A JSON file has ``transforms``,
``quality_flex_object_in_gripper``, ``object`` and ``object_scale`` (acronym_tools of
https://github.com/NVlabs/acronym). Poses are relative to the mesh, multiplied by the scale.

The gripper frame is that of the Panda's hand turned by a quarter: z along the approach, x from one
finger to the other. The fingertips are 112 mm beyond its origin, by the mesh of the gripper.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing
from tmkit._support.limits import ReadingLimits, read_bytes
from tmkit.errors import FileFormatError
from tmkit.formats.json.reading import JsonNode
from tmkit.manipulation.grasp_files.values import (
    PublishedGrasp,
    PublishedGrasps,
    fingertip_pose,
    require_count,
)

SUFFIXES = (".h5", ".hdf5")
"""Suffixes of the HDF5 files."""

_FINGERTIP_DISTANCE = 0.11225
"""Distance from the origin of the gripper frame to the fingertips [m]."""

_MAX_TEXT = 4096
"""Largest length of the name of a mesh."""


def read_acronym(path: Path) -> PublishedGrasps:
    """Read the successful grasps of an HDF5 file.

    Args:
        path: file of the data set.

    Raises:
        FileFormatError: if a data set is missing or has another shape.
        MissingExtraError: if h5py is not installed.
    """
    with importing("h5py", "formats", f"{path}: reading HDF5 files needs"):
        import h5py

    data = io.BytesIO(read_bytes(path, limit=ReadingLimits().mesh_bytes))
    try:
        with h5py.File(data, "r") as file:
            transforms = _numbers(path, file, "grasps/transforms")
            qualities = _numbers(path, file, "grasps/qualities/flex/object_in_gripper")
            mesh = _text(path, file, "object/file")
            scale = _numbers(path, file, "object/scale")
    except (FileFormatError, MemoryError):
        raise
    except Exception as error:  # a damaged file raises many kinds of errors in h5py
        raise FileFormatError.at(path, f"is not an HDF5 file of ACRONYM: {error}") from None
    if scale.shape != ():
        raise FileFormatError.at(path, f"object/scale: expected a number, received {scale.shape}")
    return _successful_grasps(path, transforms, qualities, mesh, float(scale))


def is_acronym_document(document: object) -> bool:
    """Return whether a JSON document has the key of ACRONYM's poses."""
    return isinstance(document, dict) and "transforms" in document


def acronym_of_document(path: Path, document: object) -> PublishedGrasps:
    """Return the successful grasps of a JSON document.

    Raises:
        FileFormatError: if a value is missing or has another type.
    """
    top = JsonNode(document, str(path))
    transforms = _json_array(top.get("transforms"))
    qualities = _json_array(top.get("quality_flex_object_in_gripper"))
    scale = top.get("object_scale").number()
    return _successful_grasps(path, transforms, qualities, top.get("object").text(), scale)


def _successful_grasps(
    path: Path,
    transforms: NDArray[np.float64],
    qualities: NDArray[np.float64],
    mesh: str,
    scale: float,
) -> PublishedGrasps:
    """Return the grasps that succeeded in the publisher's simulation.

    Args:
        path: the file.
        transforms: (n, 4, 4) mesh_from_gripper.
        qualities: (n,) 1 for a successful grasp.
        mesh: mesh of the object.
        scale: factor of the mesh [m].

    Raises:
        FileFormatError: if an array has another shape, or a pose is invalid.
    """
    if transforms.shape[1:] != (4, 4):
        raise FileFormatError.at(path, f"expected poses (n, 4, 4), received {transforms.shape}")
    count = len(transforms)
    if qualities.shape != (count,):
        raise FileFormatError.at(
            path, f"expected qualities ({count},), one a pose, received {qualities.shape}"
        )
    grasps = []
    for k in np.flatnonzero(qualities > 0.0).tolist():
        place = f"row {k}"
        pose = fingertip_pose(
            path, place, transforms[k][:3], approach=2, closing=0, distance=_FINGERTIP_DISTANCE
        )
        grasps.append(PublishedGrasp(pose, place, float(qualities[k])))
    require_count(path, len(grasps))
    notes = (
        f"mesh '{mesh}' at scale {scale:.6g}, whose frame is that of the poses",
        f"{count - len(grasps)} of {count} grasps failed in the publisher's simulation",
    )
    return PublishedGrasps(
        path, "ACRONYM", tuple(grasps), has_fingertip_frames=True, is_symmetric=True, notes=notes
    )


def _data_set(path: Path, file: Any, name: str) -> Any:
    """Return a data set that the file itself contains.

    Links to other files are rejected, since a file of a stranger could read any file by them.

    Raises:
        FileFormatError: if there is no such data set.
    """
    import h5py

    group = file
    for key in name.split("/"):
        link = group.get(key, getlink=True) if isinstance(group, h5py.Group) else None
        if not isinstance(link, h5py.HardLink):
            kind = "is missing" if link is None else "is a link, which is not followed"
            raise FileFormatError.at(path, f"{name}: '{key}' {kind}")
        group = group[key]
    if not isinstance(group, h5py.Dataset) or group.external or group.is_virtual:
        raise FileFormatError.at(path, f"{name}: expected a data set in the file itself")
    if group.size is None or group.size * group.dtype.itemsize > ReadingLimits().mesh_bytes:
        raise FileFormatError.at(path, f"{name}: it is too large: {group.shape}")
    return group


def _numbers(path: Path, file: Any, name: str) -> NDArray[np.float64]:
    """Return the numbers of a data set."""
    data = _data_set(path, file, name)
    if data.dtype.kind not in "fiub":
        raise FileFormatError.at(path, f"{name}: expected numbers, received {data.dtype}")
    return np.asarray(data[()], dtype=np.float64)


def _text(path: Path, file: Any, name: str) -> str:
    """Return the text of a data set."""
    value = _data_set(path, file, name)[()]
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if not isinstance(text, str):
        raise FileFormatError.at(path, f"{name}: expected a text")
    return text[:_MAX_TEXT]


def _json_array(node: JsonNode) -> NDArray[np.float64]:
    """Return the numbers of nested lists of equal lengths."""
    try:
        return np.array(node.value, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise node.error("expected numbers in lists of equal lengths") from None
