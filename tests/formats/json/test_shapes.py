"""Planes, point clouds, height fields and levels of detail in JSON scenes, inline and as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tmkit._support.limits import ReadingLimits
from tmkit.errors import FileFormatError
from tmkit.formats import load_scene, scene_from_dict, scene_to_dict, write_json_scene
from tmkit.formats.json.scene import scene_dump
from tmkit.formats.json.shapes import npy_bytes, read_heights, read_points
from tmkit.graph import AttachedShape, Box, HeightField, Mesh, Plane, PointCloud, SceneGraph, Shape
from tmkit.spatial import Pose

RANDOM = np.random.default_rng(0)
POINTS = RANDOM.normal(size=(50, 3))
HEIGHTS = RANDOM.uniform(0, 1, (4, 7))


def scene_of(*shapes: Shape) -> SceneGraph:
    """A scene with these shapes, each at another level."""
    levels = (None, "box", "hull", "exact")
    parts = [AttachedShape(s, Pose([i, 0, 0]), level=levels[i % 4]) for i, s in enumerate(shapes)]
    return SceneGraph().add_frame("things", "world", shapes=parts)


def all_shapes() -> SceneGraph:
    """Return one of each kind of shape without a primitive form."""
    cloud = PointCloud(POINTS, radius=0.1, source="/home/somebody/scan.ply")
    field = HeightField(HEIGHTS, size=[2, 3], floor=-0.25)
    return scene_of(Plane(), cloud, field, Mesh(POINTS[:4], [[0, 1, 2], [0, 2, 3]]), Box([1, 2, 3]))


def write_scene(folder: Path, shape: dict[str, Any]) -> Path:
    """A scene file by hand, in which a shape is called 'ground'."""
    document = scene_to_dict(scene_of(Plane()))
    document["shapes"] = {"ground": shape}
    document["frames"][1]["shapes"][0]["shape"] = "ground"
    path = folder / "scene.json"
    path.write_text(json.dumps(document))
    return path


def shape_in(path: Path) -> Shape:
    """The one shape of a scene file."""
    return load_scene(path).shapes("things")[0].shape


def test_shapes_come_back_equal() -> None:
    """Shapes, levels and notes come back; the text of a source holds no folder."""
    scene = all_shapes()
    text = json.dumps(scene_to_dict(scene), allow_nan=False)
    back = scene_from_dict(json.loads(text))
    assert back == scene
    assert [part.level for part in back.shapes("things")] == [None, "box", "hull", "exact", None]
    assert back.shapes("things")[1].shape.source == "scan.ply"
    assert "somebody" not in text
    assert json.dumps(scene_to_dict(back), allow_nan=False) == text


def test_levels_are_written_only_where_they_are() -> None:
    """A scene without levels is written as before there were any."""
    parts = scene_to_dict(scene_of(Box([1, 1, 1])))["frames"][1]["shapes"]
    assert sorted(parts[0]) == ["collision", "color", "friction", "pose", "shape", "visual"]


def test_arrays_may_stand_beside_the_scene(tmp_path: Path) -> None:
    """Files of points and heights are named by their digest, and changes are detected."""
    scene = all_shapes()
    write_json_scene(scene, tmp_path / "scene.json", arrays_beside=True)
    cloud, field = (scene.shapes("things")[i].shape for i in (1, 2))
    names = {f"points_{cloud.digest}.npy", f"heights_{field.digest}.npy"}
    assert {path.name for path in tmp_path.iterdir()} == {"scene.json"} | names
    assert load_scene(tmp_path / "scene.json") == scene
    (tmp_path / f"points_{cloud.digest}.npy").write_bytes(npy_bytes(POINTS + 1))
    with pytest.raises(
        FileFormatError, match=r"the point cloud 'points_\w+\.npy' has changed since the scene was"
    ):
        load_scene(tmp_path / "scene.json")


def test_files_are_merged_with_their_levels(tmp_path: Path) -> None:
    """Shapes and levels survive when files are merged."""
    write_json_scene(all_shapes(), tmp_path / "a.json")
    write_json_scene(SceneGraph().add_frame("other", "world"), tmp_path / "b.json")
    merged = load_scene(tmp_path / "a.json", tmp_path / "b.json")
    assert merged.shapes("things") == all_shapes().shapes("things")


def test_dumps_show_shapes_and_dimensions() -> None:
    """The dump lists kind, dimensions and pose of every shape, and is JSON without infinities."""
    dump = scene_dump(all_shapes())
    things = next(frame for frame in dump["frames"] if frame["name"] == "things")
    shown = [(part["shape"], part["dimensions"]) for part in things["geometry"]]
    assert shown[:3] == [("plane", []), ("point_cloud", [0.1]), ("height_field", [2.0, 3.0, -0.25])]
    json.dumps(dump, allow_nan=False)


@pytest.mark.parametrize("name", ["points.npy", "points.ply", "points.xyz"])
def test_points_from_files(tmp_path: Path, name: str) -> None:
    """A cloud may name a file of points; the name of a shape may be any that is not a digest."""
    points = POINTS.astype(np.float32)
    if name.endswith("npy"):
        np.save(tmp_path / name, points)
    elif name.endswith("xyz"):
        lines = [f"{float(x)!r} {float(y)!r}\t{float(z)!r} 255 0 0 # red" for x, y, z in points]
        (tmp_path / name).write_text("# a scan\n\n" + "\r\n".join(lines))
    else:
        head = (
            "ply\nformat ascii 1.0\nelement vertex 50\n"
            + "".join(f"property float {c}\n" for c in "xyz")
            + "end_header\n"
        )
        (tmp_path / name).write_text(
            head + "\n".join(f"{x!s} {y!s} {z!s}" for x, y, z in points.tolist()) + "\n"
        )
    cloud = shape_in(write_scene(tmp_path, {"kind": "point_cloud", "radius": 0.1, "file": name}))
    assert cloud == PointCloud(points, radius=0.1)
    assert cloud.source == name


@pytest.mark.parametrize("bits", [8, 16])
def test_heights_from_pictures(tmp_path: Path, bits: int) -> None:
    """The last line of an image has the least y; black is low and white is high."""
    from PIL import Image

    white = 2**bits - 1
    pixels = np.array(
        [[white, 0, 0], [0, white // 5, 0]], dtype=np.uint8 if bits == 8 else np.uint16
    )
    Image.fromarray(pixels).save(tmp_path / "map.png")
    shape = {"kind": "height_field", "size": [2, 1], "file": "map.png", "range": [-1, 4]}
    field = shape_in(write_scene(tmp_path, shape))
    np.testing.assert_allclose(field.heights, [[-1, 0, -1], [4, -1, -1]], atol=1e-12)
    assert field.dimensions == pytest.approx((2, 1, -1.2))


def test_heights_from_numbers(tmp_path: Path) -> None:
    """Rows of a NumPy file of any order and type, or of a list, are the rows of the field."""
    np.save(tmp_path / "map.npy", np.asfortranarray((10 * HEIGHTS).astype(np.int16)))
    expected = HeightField((10 * HEIGHTS).astype(int), size=[2, 1], floor=-3)
    shape: dict[str, Any] = {"kind": "height_field", "size": [2, 1], "floor": -3}
    assert shape_in(write_scene(tmp_path, shape | {"file": "map.npy"})) == expected
    assert (
        shape_in(write_scene(tmp_path, shape | {"heights": (10 * HEIGHTS).astype(int).tolist()}))
        == expected
    )


def test_points_as_a_list(tmp_path: Path) -> None:
    """Points may be written out."""
    shape = {"kind": "point_cloud", "radius": 0.1, "points": POINTS.tolist()}
    assert shape_in(write_scene(tmp_path, shape)) == PointCloud(POINTS, radius=0.1)


def test_a_document_without_a_folder_names_no_files(tmp_path: Path) -> None:
    """A scene in a plan or program cannot refer to files, nor any scene to other folders."""
    np.save(tmp_path / "secret.npy", POINTS)
    path = write_scene(tmp_path, {"kind": "point_cloud", "radius": 0.1, "file": "secret.npy"})
    with pytest.raises(
        FileFormatError, match=r"a scene that is not a file cannot refer to the file 'secret\.npy'"
    ):
        scene_from_dict(json.loads(path.read_text()))
    (tmp_path / "project").mkdir()
    path = write_scene(
        tmp_path / "project", {"kind": "point_cloud", "radius": 0.1, "file": "/etc/hostname"}
    )
    with pytest.raises(FileFormatError, match="outside the folders that this scene may read"):
        load_scene(path)


def npy_of(shape: tuple[int, ...], data: bytes) -> bytes:
    """A NumPy file that claims a shape."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


@pytest.mark.parametrize(
    ("name", "data", "match"),
    [
        (
            "huge.npy",
            npy_of((10**12, 3), b"12345678"),
            r"huge\.npy: expected 24000000000000 bytes of numbers, received 8",
        ),
        (
            "deep.npy",
            npy_of((2, 2, 3), bytes(96)),
            r"shape \(n, 3\), at least one, received shape \(2, 2, 3\)",
        ),
        ("empty.npy", b"", r"empty\.npy: no NumPy file: "),
        ("text.npy", b"hello", r"text\.npy: no NumPy file: "),
        (
            "many.npy",
            npy_of((11, 3), bytes(264)),
            r"many\.npy: it holds 11 points, expected at most 10",
        ),
        ("many.xyz", b"0 0 0\n" * 11, r"many\.xyz: it holds more than 10 points"),
        (
            "nothing.xyz",
            b"# nothing\n",
            r"expected points of shape \(n, 3\), at least one, received shape \(0, 3\)",
        ),
        ("short.xyz", b"0 0\n", r"short\.xyz:1: expected three numbers, received '0 0'"),
        ("bytes.xyz", b"0 0 0\n\xff\x00", r"bytes\.xyz:2: expected three numbers"),
        (
            "points.obj",
            b"v 0 0 0",
            r"points in a file of kind '\.obj'; expected \.npy, \.ply, \.xyz",
        ),
        ("large.xyz", b"0" * 2001, "is too large"),
    ],
)
def test_hostile_files_of_points(tmp_path: Path, name: str, data: bytes, match: str) -> None:
    """Claims of a file are checked before its data are read."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FileFormatError, match=match):
        read_points(tmp_path / name, limits=ReadingLimits(mesh_bytes=2000, points=10))


def test_a_large_picture_is_not_unpacked(tmp_path: Path) -> None:
    """An image with too many heights is rejected by its size."""
    from PIL import Image

    Image.new("L", (2000, 2000)).save(tmp_path / "map.png")
    with pytest.raises(FileFormatError, match="it holds 2000 x 2000 heights, expected at most 10"):
        read_heights(tmp_path / "map.png", span=(0, 1), limits=ReadingLimits(points=10))


def test_npy_bytes_are_what_numpy_reads(tmp_path: Path) -> None:
    """The files written beside scenes are NumPy's own, the same bytes for the same array."""
    array: NDArray[np.float64] = HEIGHTS.T
    (tmp_path / "a.npy").write_bytes(npy_bytes(array))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), array)
    assert npy_bytes(array) == npy_bytes(array.copy())
