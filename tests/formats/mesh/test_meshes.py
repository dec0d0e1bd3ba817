"""Mesh files are read as robot descriptions mean them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tmkit._support.source_location import SourceLocation
from tmkit.errors import MeshError
from tmkit.formats.mesh.meshes import MeshLoader, read_mesh
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.spec.parts import MeshSpec

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
PACKAGES = PackageResolver((), ())

STL = """solid t
facet normal 0 0 0
 outer loop
  vertex 0 0 0
  vertex 1 0 0
  vertex 0 1 0
 endloop
endfacet
facet normal 0 0 0
 outer loop
  vertex 1 0 0
  vertex 1 1 0
  vertex 0 1 0
 endloop
endfacet
endsolid
"""

PLY = """ply
format ascii 1.0
element vertex 3
property float x
property float y
property float z
element face 1
property list uchar int vertex_indices
end_header
0 0 0
2 0 0
0 2 0
3 0 1 2
"""

COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><created>2020-01-01</created><modified>2020-01-01</modified>
<unit name="u" meter="{unit}"/><up_axis>Y_UP</up_axis></asset>
<library_effects>{effects}</library_effects>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 2 0</float_array>
<technique_common><accessor source="#pa" count="3" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
</accessor></technique_common>
</source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="1" material="m"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p>
</triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s">
<node id="a"><instance_geometry url="#g"/></node>
<node id="b"><translate>10 0 0</translate><rotate>0 0 1 90</rotate><instance_geometry url="#g"/>
</node>
</visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>
"""

BROKEN_EFFECT = """<effect id="e"><profile_COMMON>
<newparam sid="x"><sampler2D><source>missing</source></sampler2D></newparam>
<technique sid="t"><lambert/></technique></profile_COMMON></effect>"""


def write(path: Path, text: str) -> Path:
    """Write a file."""
    path.write_text(text)
    return path


def test_obj(tmp_path: Path) -> None:
    """Vertices keep their order; faces name them from 0; the closed mesh has its volume."""
    path = write(tmp_path / "t.obj", TETRAHEDRON)
    arrays = read_mesh(path)
    assert arrays.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert arrays.faces.shape == (4, 3)
    assert MeshLoader(PACKAGES).load(MeshSpec(path)).volume == pytest.approx(1 / 6)


def test_obj_with_several_objects_and_missing_materials(tmp_path: Path) -> None:
    """All objects of a file form one mesh, independent of their materials."""
    text = "mtllib none.mtl\no a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl x\nf 1 2 3\n"
    text += "o b\nv 5 0 0\nv 6 0 0\nv 5 1 0\nusemtl y\nf 4 5 6\n"
    arrays = read_mesh(write(tmp_path / "t.obj", text))
    assert arrays.faces.shape == (2, 3)
    assert arrays.vertices[:, 0].max() == 6.0


def test_polygons_become_triangles_and_equal_vertices_one(tmp_path: Path) -> None:
    """Quadrilaterals become two triangles; repeated, unused or collapsed parts disappear."""
    text = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 0\nv 9 9 9\nf 5 2 3 4\nf 1 5 2\n"
    arrays = read_mesh(write(tmp_path / "t.obj", text))
    assert arrays.vertices.shape == (4, 3)
    assert arrays.faces.shape == (2, 3)


def test_stl_is_welded(tmp_path: Path) -> None:
    """Shared corners of STL triangles become one vertex, in the order of first mention."""
    arrays = read_mesh(write(tmp_path / "t.STL", STL))
    assert arrays.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    assert arrays.faces.tolist() == [[0, 1, 2], [1, 3, 2]]


def test_ply(tmp_path: Path) -> None:
    """PLY is read."""
    assert read_mesh(write(tmp_path / "t.ply", PLY)).vertices.max() == 2.0


@pytest.mark.parametrize("effects", ["", BROKEN_EFFECT])
def test_collada_scene_unit_and_axis(effects: str, tmp_path: Path) -> None:
    """Nodes transform their geometry, the unit scales all of it, and the up-axis has no effect."""
    arrays = read_mesh(write(tmp_path / "t.dae", COLLADA.format(unit="0.1", effects=effects)))
    first = [[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0]]
    second = [[1, 0, 0], [1, 0.1, 0], [0.8, 0, 0]]
    # collada matrices are 32-bit
    np.testing.assert_allclose(arrays.vertices, first + second, atol=1e-7)


def test_collada_unit_must_be_a_length(tmp_path: Path) -> None:
    """A unit that is not a length is rejected with its line."""
    with pytest.raises(MeshError, match=r"t.dae:4: the unit '0' is not a length"):
        read_mesh(write(tmp_path / "t.dae", COLLADA.format(unit="0", effects="")))


def test_collada_reads_no_other_file(tmp_path: Path) -> None:
    """An entity in a mesh file is not expanded."""
    secret = write(tmp_path / "secret", "0 0 0 1 0 0 0 2 0")
    text = COLLADA.format(unit="1", effects="").replace("0 0 0 1 0 0 0 2 0", "&x;")
    text = text.replace(
        "<COLLADA", f'<!DOCTYPE COLLADA [<!ENTITY x SYSTEM "file://{secret}">]><COLLADA', 1
    )
    with pytest.raises(MeshError):
        read_mesh(write(tmp_path / "t.dae", text))


@pytest.mark.parametrize(
    "scale", [(2.0, 3.0, 4.0), (-2.0, 3.0, 4.0), (-1.0, -1.0, 1.0), (-1.0, -1.0, -1.0)]
)
def test_scale_multiplies_and_mirrors_keep_facing_outwards(
    scale: tuple[float, float, float], tmp_path: Path
) -> None:
    """A scale multiplies coordinates; the volume keeps its sign even when the mesh is mirrored."""
    path = write(tmp_path / "t.obj", TETRAHEDRON)
    shape = MeshLoader(PACKAGES).load(MeshSpec(path, scale))
    np.testing.assert_array_equal(shape.vertices, read_mesh(path).vertices * scale)
    assert shape.volume == pytest.approx(abs(np.prod(scale)) / 6)


def test_the_same_mesh_is_one_shape(tmp_path: Path) -> None:
    """A loader returns the same object for the same file and scale, whichever the path."""
    path = write(tmp_path / "t.obj", TETRAHEDRON)
    loader = MeshLoader(PACKAGES)
    shape = loader.load(MeshSpec(path))
    assert loader.load(MeshSpec(tmp_path / "." / "x" / ".." / "t.obj")) is shape
    assert loader.load(MeshSpec(path, (1.0, 1.0, 2.0))) is not shape
    assert MeshLoader(PACKAGES).load(MeshSpec(path)) is not shape


def test_source_is_portable(tmp_path: Path) -> None:
    """A shape stores its file by package URI and scale, or by the file name, without a folder."""
    folder = tmp_path / "arm"
    folder.mkdir()
    path = write(folder / "t.obj", TETRAHEDRON)
    assert MeshLoader(PACKAGES).load(MeshSpec(path)).source == "t.obj"
    loader = MeshLoader(PackageResolver((tmp_path,), ()))
    assert (
        loader.load(MeshSpec(path, (0.001, 1.0, -1.0))).source
        == "package://arm/t.obj#scale=0.001,1.0,-1.0"
    )


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("t.obj", "", "the mesh is empty"),
        ("t.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\n", "the mesh is empty"),
        ("t.obj", "v 0 0 0\nv 1 0 nan\nv 0 1 0\nf 1 2 3\n", "not finite"),
        ("t.obj", "v 0 0 0\nv 1 0 inf\nv 0 1 0\nf 1 2 3\n", "not finite"),
        ("t.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "a face names vertex 9, and there are 3"),
        ("t.obj", "v 0 0 0\nv 0 0 0\nv 0 1 0\nf 1 2 3\n", "the mesh is empty"),
        ("t.stl", "nonsense", "at least 84 bytes, and this has 8"),
        ("t.ply", "nonsense", "cannot be read"),
        ("t.dae", "nonsense", "cannot be read"),
        ("t.dae", "<COLLADA", "cannot be read"),
        (
            "t.dae",
            COLLADA.format(unit="0.1", effects="").replace("10 0 0", "nan 0 0"),
            "not finite",
        ),
        ("t.xyz", "", "unknown kind '.xyz'; expected .obj, .stl, .dae, .ply"),
    ],
)
def test_broken_meshes_are_rejected(name: str, text: str, reason: str, tmp_path: Path) -> None:
    """Files without triangles or with invalid numbers are rejected with their name."""
    path = write(tmp_path / name, text)
    with pytest.raises(MeshError, match=rf"{name}(:\d+)?: .*({reason})"):
        MeshLoader(PACKAGES).load(MeshSpec(path))


def test_missing_mesh_names_the_line_that_asks_for_it(tmp_path: Path) -> None:
    """With a location, the error has the line that names the mesh, and the mesh as an attribute."""
    place = SourceLocation("robot.urdf", 12, None, "<mesh/>")
    with pytest.raises(MeshError, match=r"robot.urdf:12: .*t.obj: there is no such file") as caught:
        MeshLoader(PACKAGES).load(MeshSpec(tmp_path / "t.obj"), place=place)
    assert caught.value.data["line"] == 12
    assert caught.value.data["mesh"].endswith("t.obj")
