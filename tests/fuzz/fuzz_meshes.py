"""Fuzz the readers of mesh files: ``python tests/fuzz/fuzz_meshes.py --seconds 600 --seed 1``."""

from __future__ import annotations

import io

import trimesh
from engine import Target, main
from fuzz_robray import STL
from fuzz_urdf import OBJ

from tmkit.formats import load_scene
from tmkit.formats.gltf.scene import gltf_from_scene
from tmkit.formats.mesh.meshes import MESH_SUFFIXES, read_mesh
from tmkit.graph import AttachedShape, Box, Revolute, SceneGraph

DAE = b"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="centimeter" meter="0.01"/><up_axis>Z_UP</up_axis></asset>
<library_images><image id="i"><init_from>../../outside.png</init_from></image></library_images>
<library_geometries><geometry id="g"><mesh>
<source id="s"><float_array id="f" count="12">0 0 0 1 0 0 0 1 0 0 0 1</float_array>
<technique_common><accessor source="#f" count="4" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
<triangles count="2"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2 0 2 3</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="w"><node id="n">
<matrix>1 0 0 1 0 1 0 2 0 0 1 3 0 0 0 1</matrix>
<rotate>0 0 1 90</rotate><scale>2 2 2</scale><instance_geometry url="#g"/></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#w"/></scene></COLLADA>"""
WORDS = b"""
v vn vt f o g s l mtllib usemtl 1/1/1 1//1 -1 0 9 ../../outside.mtl /etc/passwd facet normal vertex
endloop endsolid solid ply format ascii binary_little_endian binary_big_endian element property list
uchar int float double vertex face 1.0 3 end_header comment TextureFile <node> </node> <polylist>
<polygons> <vcount> <p> </p> <input <source count="99999999" count="-1" stride="0" offset="7"
source="#x" url="#n" url="http://localhost/x" url="file:///etc/passwd" <matrix> meter="0" <!DOCTYPE
&amp; &x; glTF JSON BIN "buffers" "uri" "../../outside.bin" "byteLength" "bufferView" "accessors"
"count" 5126 "componentType" "type" "VEC3" "meshes" "nodes" "children" "matrix"
"KHR_draco_mesh_compression" "extensionsRequired"
"""


def targets() -> list[Target]:
    """Return the readers of all kinds of meshes."""
    box, ball = trimesh.creation.box(), trimesh.creation.icosphere(subdivisions=0)
    pools = {
        ".stl": [STL, _export(box, "stl")],
        ".obj": [OBJ, b"mtllib ../../outside.mtl\nusemtl m\n" + OBJ],
        ".dae": [DAE],
        ".ply": [_export(box, "ply"), _export(box, "ply", encoding="ascii")],
        ".glb": [_export(trimesh.Scene([box, ball]), "glb")],
    }
    part = AttachedShape(Box([1, 2, 3]), color=(1, 0, 0, 1))
    scene = (
        SceneGraph()
        .add_frame("a", "world", joint=Revolute([0, 0, 1]), shapes=[part])
        .set_group("g", frames=["a"])
    )
    scenes = [gltf_from_scene(scene, is_binary=False).encode(), pools[".glb"][0]]
    outside = {
        "outside.mtl": b"newmtl m\nmap_Kd x.png\n",
        "outside.png": b"",
        "outside.bin": bytes(99),
    }
    return [
        Target(
            suffix.removeprefix("."),
            f"m{suffix}",
            read_mesh,
            pool,
            tokens=WORDS.split(),
            nestings=[(b"<node>", b"</node>"), (b"[", b"]"), (b'{"a":', b"}")],
            outside=outside,
        )
        for suffix, pool in pools.items()
        if suffix in MESH_SUFFIXES
    ] + [
        Target(
            "gltf_scene",
            "x.gltf",
            load_scene,
            scenes,
            tokens=WORDS.split(),
            outside=outside,
            weight=2,
        )
    ]


def _export(mesh: object, kind: str, **options: str) -> bytes:
    file = io.BytesIO()
    mesh.export(file, file_type=kind, **options)  # type: ignore[attr-defined]
    return file.getvalue()


if __name__ == "__main__":
    main(targets(), description=__doc__ or "")
