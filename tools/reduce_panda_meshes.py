"""Make the visual meshes of the Panda in ``scenes/packages`` from those of ``example-robot-data``.

``pip install fast_simplification && python tools/reduce_panda_meshes.py``. Each colour of each file
is welded, reduced to the share of its triangles below, and written as binary glTF with its colour;
parts too small to be seen are left out. The originals are those of franka_description, Apache 2.0,
by way of example-robot-data.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import fast_simplification
import numpy as np

from tmkit.formats.mesh.materials import UNSPECIFIED, unpack_color
from tmkit.formats.mesh.meshes import MeshArrays, read_mesh
from tmkit.formats.mesh.package_uris import PackageResolver

OUT = (
    Path(__file__).resolve().parents[1] / "scenes/packages/pybullet_data/franka_panda/meshes/visual"
)
SOURCE = "package://example-robot-data/robots/panda_description/meshes/visual/{}.dae"
NAMES = (*(f"link{number}" for number in range(8)), "hand", "finger")
SHARE = 0.12
LEAST = 60  # triangles that a colour keeps
WELD = 1e-5  # distance [m]


def smaller(mesh: MeshArrays) -> tuple[np.ndarray, np.ndarray]:
    """Return the welded and reduced vertices (n, 3) and faces (m, 3)."""
    _, first, inverse = np.unique(
        np.round(mesh.vertices / WELD), axis=0, return_index=True, return_inverse=True
    )
    vertices, faces = mesh.vertices[first], inverse.reshape(-1)[mesh.faces]
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    target = max(LEAST, round(SHARE * len(faces)))
    if len(faces) > target:
        vertices, faces = fast_simplification.simplify(
            vertices.astype(np.float32),
            faces.astype(np.int32),
            target_reduction=1.0 - target / len(faces),
        )
    used, inverse = np.unique(faces, return_inverse=True)
    return vertices[used], inverse.reshape(-1, 3)


def glb(parts: list[tuple[np.ndarray, np.ndarray, int]]) -> bytes:
    """Return binary glTF of meshes with their colours."""
    binary, views, accessors, primitives, materials = b"", [], [], [], []
    for vertices, faces, color in parts:
        for array, kind, component, target in (
            (vertices, "VEC3", 5126, 34962),
            (faces, "SCALAR", 5123, 34963),
        ):
            data = np.ascontiguousarray(array, dtype="<f4" if component == 5126 else "<u2")
            views.append(
                {
                    "buffer": 0,
                    "byteOffset": len(binary),
                    "byteLength": data.nbytes,
                    "target": target,
                }
            )
            accessor = {
                "bufferView": len(views) - 1,
                "componentType": component,
                "count": len(array),
                "type": kind,
            }
            if kind == "VEC3":
                accessor |= {"min": data.min(axis=0).tolist(), "max": data.max(axis=0).tolist()}
            else:
                accessor["count"] = data.size
            accessors.append(accessor)
            binary += data.tobytes() + b"\0" * (-data.nbytes % 4)
        light = [
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
            for v in unpack_color(color)[:3]
        ]
        looks = {
            "baseColorFactor": [*(round(v, 5) for v in light), 1.0],
            "metallicFactor": 0,
            "roughnessFactor": 0.5,
        }
        materials.append({"pbrMetallicRoughness": looks})
        primitives.append(
            {
                "attributes": {"POSITION": len(accessors) - 2},
                "indices": len(accessors) - 1,
                "material": len(materials) - 1,
            }
        )
    document = {
        "asset": {
            "version": "2.0",
            "generator": "tools/reduce_panda_meshes.py, from franka_description (Apache 2.0)",
        },
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": primitives}],
        "materials": materials,
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": len(binary)}],
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    chunks = (
        struct.pack("<I4s", len(text), b"JSON")
        + text
        + struct.pack("<I4s", len(binary), b"BIN\0")
        + binary
    )
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def main() -> None:
    """Write the meshes and print their sizes."""
    OUT.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        path = PackageResolver().find(SOURCE.format(name))
        if path is None:
            sys.exit("the package example-robot-data is not installed")
        mesh = read_mesh(path)
        parts = [
            (*smaller(mesh.of_color(color)), color)
            for color in mesh.palette()
            if color != UNSPECIFIED
        ]
        file = OUT / f"{name}.glb"
        file.write_bytes(glb(parts))
        sizes = [len(faces) for _, faces, _ in parts]
        sys.stdout.write(
            f"{file.name}: {len(mesh.faces)} -> {sum(sizes)} triangles,"
            f" {file.stat().st_size} bytes\n"
        )


if __name__ == "__main__":
    main()
