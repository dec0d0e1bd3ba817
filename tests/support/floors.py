"""Floors for benchmarks: forward kinematics as a plain C++ loop over arrays, compiled on demand.

``tests/benchmarks/floors.cpp`` is compiled twice, with and without vectors of two numbers, since
either may be the faster; who compares takes the faster. Floors take their sines from the C library.
A third one takes them from ours, and has no other purpose than that: it computes the same bits as
the library, which callers assert.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from support.processes import run_process
from tmkit.graph import SceneGraph

__all__ = ["REPEAT", "Floor", "compile_floors", "floor_of_same_bits"]

REPEAT = 20  # how often one call of a floor does its work, so that the call itself does not count
_SOURCE = Path(__file__).resolve().parents[1] / "benchmarks" / "floors.cpp"
_CORE = Path(__file__).resolve().parents[2] / "tmkit" / "core"


def compile_floors(folder: Path) -> list[ctypes.CDLL]:
    """Compile the floors into a folder, with and without vectors of two numbers."""
    return [
        _compile(folder, option) for option in ("-ftree-slp-vectorize", "-fno-tree-slp-vectorize")
    ]


def floor_of_same_bits(folder: Path) -> ctypes.CDLL:
    """Compile the floor with the sines of the library into a folder."""
    sines = _CORE / "src" / "linalg" / "elementary.cpp"
    return _compile(folder, "-DTMKIT_SINES", f"-I{_CORE / 'include'}", str(sines))


def _compile(folder: Path, *options: str) -> ctypes.CDLL:
    library = folder / f"floors{options[0]}.so"
    flags = ["-std=c++20", "-O3", "-ffp-contract=off", *options, "-shared", "-fPIC"]
    run_process(["g++", *flags, str(_SOURCE), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


class Floor:
    """Arrays of one scene for a plain loop, parents first.

    ``poses[rows]`` are in the order of ``frame_names``.
    """

    def __init__(self, scene: SceneGraph) -> None:
        """Lay the scene, of one tree, out level by level."""
        names = scene.subtree(scene.root_names[0])
        number = {name: i for i, name in enumerate(names)}
        entries = {frame: i for i, frame in enumerate(scene.joint_frames)}
        self.parent = np.array(
            [number.get(scene.parent(name) or "", -1) for name in names], np.int32
        )
        self.entry = np.array([entries.get(name, -1) for name in names], np.int32)
        self.pose = np.array([scene.local_pose(name).as_array() for name in names])
        self.axis = np.array([scene.joint(name).axis for name in names])
        self.poses = np.zeros((len(names), 7))
        self.rows = [number[name] for name in scene.frame_names]

    def runner(self, floors: ctypes.CDLL, q: NDArray[np.float64]) -> Callable[[], object]:
        """Return a call that does the work REPEAT times at a configuration."""
        arrays = (self.parent, self.entry, self.pose, self.axis, q, self.poses)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        arguments = (REPEAT, len(self.parent), *pointers)
        return lambda: floors.floor_forward(*arguments)
