"""Fuzz the readers of points and heights: ``fuzz_arrays.py --seconds 600 --seed 1``."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import trimesh
from engine import Target, main
from PIL import Image

from tmkit.formats.json.shapes import npy_bytes, read_heights, read_points

HEADER = b"""
{ } ( ) , : 'descr' 'fortran_order' 'shape' '<f8' '>f4' '|O' '<U9' '<m8[s]' '<i8' '<c16' True False
None (3,) (3L,) (-3,) (0,3) (9999999999,3) (1e9,3) [('x','<f8')] '|V8' ('<f8',(2,))
__import__('os').abort() # \\x93NUMPY \\x01\\x00v\\x00
"""
POINTS = [[0.0, 0.5, 1.0], [1.0, 0.0, 0.25], [-1.0, 2.0, 3.0]]


def targets() -> list[Target]:
    """Return the readers of all kinds of arrays."""
    arrays = [
        npy_bytes(POINTS),
        _save(np.asfortranarray(POINTS, dtype=">f4")),
        _save(np.arange(6, dtype="i2").reshape(2, 3), version=(2, 0)),
    ]
    pictures = [_picture("L", np.uint8), _picture("I;16", np.uint16)]
    lines = b"# points\n0 0 1\n1 2 3 255 0 0\n\n-1e-3 .5 7 # near\n"
    nestings = [(b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"-", b"")]
    return [
        Target(
            "points",
            "p.npy",
            read_points,
            arrays,
            tokens=HEADER.split(),
            nestings=nestings,
            weight=2,
        ),
        Target("heights", "h.npy", _heights, arrays, tokens=HEADER.split(), nestings=nestings),
        Target(
            "picture",
            "h.png",
            _read_mapped,
            pictures,
            tokens=b"IHDR IDAT IEND PLTE tRNS iCCP zTXt gAMA".split(),
        ),
        Target("xyz", "p.xyz", read_points, [lines], tokens=b"# nan inf 1e999 ; , 1_0".split()),
        Target(
            "cloud",
            "p.ply",
            read_points,
            [_cloud()],
            tokens=b"vertex face list property uchar element".split(),
        ),
    ]


def _heights(path: Path) -> object:
    return read_heights(path, span=None)


def _read_mapped(path: Path) -> object:
    return read_heights(path, span=(0.0, 1.0))


def _save(array: object, version: tuple[int, int] = (1, 0)) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version=version, allow_pickle=False)
    return file.getvalue()


def _picture(mode: str, kind: type) -> bytes:
    file = io.BytesIO()
    image = Image.fromarray(np.arange(12, dtype=kind).reshape(3, 4))
    assert image.mode == mode
    image.save(file, format="PNG")
    return file.getvalue()


def _cloud() -> bytes:
    exported = trimesh.PointCloud(POINTS).export(file_type="ply")
    assert isinstance(exported, bytes)
    return exported


if __name__ == "__main__":
    main(targets(), description=__doc__ or "")
