"""Fuzz the readers of grasp files: ``fuzz_grasps.py --seconds 600 --seed 1``."""

from __future__ import annotations

import io
import json

import numpy as np
from engine import Target, main

from tmkit.formats.json.shapes import npy_bytes
from tmkit.manipulation.grasp_files.loading import read_grasps

ROWS = np.array(
    [[score, 0.06, 0.02, 0.02, *np.eye(3).ravel(), 0.1, 0.0, 0.2, 3] for score in (0.2, 0.9)]
)
MESSAGE = {
    "id": "g",
    "grasp_pose": {
        "header": {"frame_id": "cup"},
        "pose": {
            "position": {"x": 0.0, "y": 0.1, "z": 1e-05},
            "orientation": {"x": 0.0, "y": 1.0, "z": 0.0, "w": 0.0},
        },
    },
    "grasp_quality": 0.5,
    "pre_grasp_posture": {"joint_names": ["finger"], "points": [{"positions": [0.03]}]},
}


def targets() -> list[Target]:
    """Return the readers of all formats."""
    message = json.dumps(MESSAGE).encode()
    yaml_tokens = b"--- ... - : ? | > & * ! !! !!python/name:os.system {} [] null ~ 1e-05 .nan .inf"
    document = {
        "transforms": [np.eye(4).tolist()],
        "quality_flex_object_in_gripper": [1],
        "object": "cup.obj",
        "object_scale": 1.0,
    }
    nestings = [(b"[", b"]"), (b"{", b"}")]
    return [
        Target("npy", "g.npy", read_grasps, [npy_bytes(ROWS)], tokens=b"'<f8' '|O' (2,17)".split()),
        Target("npz", "g.npz", read_grasps, [_archive()], tokens=b"PK arr_0.npy".split()),
        *_hdf5_targets(),
        Target(
            "yaml",
            "g.yaml",
            read_grasps,
            [message, b"---\n" + message],
            tokens=yaml_tokens.split(),
            nestings=nestings,
        ),
        Target(
            "json",
            "g.json",
            read_grasps,
            [message, json.dumps(document).encode()],
            tokens=b"null true -1 1e999 NaN".split(),
            nestings=nestings,
        ),
    ]


def _archive() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, ROWS)
    return file.getvalue()


def _hdf5_targets() -> list[Target]:
    """Return the reader of HDF5 files, if its library is installed."""
    try:
        import h5py
    except ImportError:
        return []
    file = io.BytesIO()
    with h5py.File(file, "w") as group:
        group["grasps/transforms"] = np.eye(4)[None]
        group["grasps/qualities/flex/object_in_gripper"] = np.array([1])
        group["object/file"] = b"cup.obj"
        group["object/scale"] = 1.0
    tokens = b"HDF OHDR TREE SNOD HEAP".split()
    return [Target("hdf5", "g.h5", read_grasps, [file.getvalue()], tokens=tokens)]


if __name__ == "__main__":
    main(targets(), description=__doc__ or "")
