"""No size makes a collision shape vanish: it is in the scene, or the file is rejected."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tmkit as tk
from tmkit.errors import FileFormatError
from tmkit.formats import load_scene, write_json_scene
from tmkit.formats.mesh.solids import THICKNESS
from tmkit.motion import CollisionWorld

_SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
}
_NUMBERS = ("0", "-1", "nan", "inf", "-inf", "1e999", "1e-9", "0.1")
_CUBE = "".join(f"v {x} {y} {z}\n" for x, y, z in itertools.product((0, 1), repeat=3))
_CUBE += "f 1 2 4 3\nf 5 7 8 6\nf 1 5 6 2\nf 3 4 8 7\nf 1 3 7 5\nf 2 6 8 4\n"


def _values(kind: str, number: str) -> Iterator[dict[str, str]]:
    """Yield the sizes of a shape, each in turn the number and the others 0.1."""
    if kind == "box":
        for axis in range(3):
            yield {"size": " ".join(number if k == axis else "0.1" for k in range(3))}
        return
    for name in _SIZES[kind]:
        yield {other: number if other == name else "0.1" for other in _SIZES[kind]}


def _urdf(kind: str, sizes: dict[str, str]) -> str:
    size_text = " ".join(f'{name}="{value}"' for name, value in sizes.items())
    shape = f"<collision><geometry>\n<{kind} {size_text}/>\n</geometry></collision>"
    return f'<robot name="r">\n<link name="a">{shape}</link></robot>'


def _sdf(kind: str, sizes: dict[str, str]) -> str:
    size_text = "".join(f"<{name}>{value}</{name}>" for name, value in sizes.items())
    shape = f'<collision name="c"><geometry>\n<{kind}>{size_text}</{kind}>\n</geometry></collision>'
    return f'<sdf version="1.7"><model name="m">\n<link name="a">{shape}</link></model></sdf>'


def _mjcf(kind: str, sizes: dict[str, str]) -> str:
    halves = " ".join(sizes.values())
    geom = f'<geom type="{kind}" size="{halves}" mass="1"/>'
    return f'<mujoco><worldbody>\n<body name="a">{geom}</body></worldbody></mujoco>'


def _robray(kind: str, sizes: dict[str, str]) -> str:
    words = {"box": "dimension", "radius": "radius", "length": "height"}
    size_text = "".join(
        f"{words.get(kind, words.get(name, name))} {_as_list(value)};"
        for name, value in sizes.items()
    )
    return f"frame a {{\ngeometry {{ shape {kind}; {size_text} }}\n}}"


def _as_list(value: str) -> str:
    return f"[{value.replace(' ', ', ')}]" if " " in value else value


def _json(kind: str, sizes: dict[str, str]) -> str:
    scene = tk.SceneGraph().add_frame("a", "world", shapes=[tk.AttachedShape(tk.Sphere(0.5))])
    path = Path(_json.folder) / "plain.json"  # type: ignore[attr-defined]
    write_json_scene(scene, path)
    document = json.loads(path.read_text())
    (shape,) = document["shapes"].values()
    shape |= {
        "kind": kind,
        "dimensions": [float(number) for value in sizes.values() for number in value.split()],
    }
    document["shapes"] = {"given": shape}
    next(frame for frame in document["frames"] if frame["name"] == "a")["shapes"][0]["shape"] = (
        "given"
    )
    return json.dumps(document)


def _usd(kind: str, sizes: dict[str, str]) -> str:
    if kind == "box":
        scales = ", ".join(sizes["size"].split())
        content = (
            f"double3 xformOp:scale = ({scales})\nuniform token[] xformOpOrder ="
            ' ["xformOp:scale"]\ndouble size = 1'
        )
        prim = "Cube"
    else:
        content = "\n".join(
            f"double {'height' if name == 'length' else name} = {value}"
            for name, value in sizes.items()
        )
        prim = kind.capitalize()
    return (
        f'#usda 1.0\ndef {prim} "a" (prepend apiSchemas ='
        f' ["PhysicsCollisionAPI"])\n{{\n{content}\n}}\n'
    )


_WRITERS = {
    "urdf": _urdf,
    "sdf": _sdf,
    "xml": _mjcf,
    "robray": _robray,
    "json": _json,
    "usda": _usd,
}
_TABLE = [
    (suffix, kind, number)
    for suffix, kind, number in itertools.product(_WRITERS, _SIZES, _NUMBERS)
    if not (suffix == "robray" and kind == "capsule")  # which robray does not have
]


def _load_or_none(path: Path) -> tk.SceneGraph | None:
    """Return the scene of a file, or None if the file is rejected by name."""
    try:
        return load_scene(path)
    except FileFormatError as error:
        if path.name not in str(error):
            raise
        return None


@pytest.mark.parametrize(("suffix", "kind", "number"), _TABLE)
def test_a_shape_is_there_or_rejected(suffix: str, kind: str, number: str, tmp_path: Path) -> None:
    """Every shape of every format and size; a capsule of length 0 is a sphere."""
    if suffix in ("xml", "usda"):
        pytest.importorskip({"xml": "mujoco", "usda": "pxr"}[suffix])
    _json.folder = str(tmp_path)  # type: ignore[attr-defined]
    for index, sizes in enumerate(_values(kind, number)):
        path = tmp_path / f"scene{index}.{suffix}"
        path.write_text(_WRITERS[suffix](kind, sizes))
        scene = _load_or_none(path)
        if scene is None:
            assert number != "0.1"
            continue
        shapes = [
            part for frame in scene.frame_names for part in scene.shapes(frame) if part.collision
        ]
        assert len(shapes) == 1, sizes
        assert all(np.isfinite(size) and size > 0.0 for size in shapes[0].shape.dimensions)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (
            '<cylinder radius="0" length="0.2"/>',
            "1: a cylinder of radius 0 is not a collision shape",
        ),
        (
            '<cylinder radius="0.1" length="0"/>',
            "1: a cylinder of length 0 is not a collision shape",
        ),
        ('<sphere radius="0"/>', "1: a sphere of radius 0 is not a collision shape"),
        ('<capsule radius="0" length="1"/>', "1: a capsule of radius 0 is not a collision shape"),
        ('<box size="1 0 1"/>', "1: a box of size '1 0 1' is not a collision shape"),
        (
            '<mesh filename="cube.obj" scale="0 0 0"/>',
            "1: a mesh of scale '0 0 0' is not a collision shape",
        ),
        (
            '<mesh filename="cube.obj" scale="0"/>',
            "1: a mesh of scale '0' is not a collision shape",
        ),
    ],
)
def test_the_message_names_the_size(shape: str, reason: str, tmp_path: Path) -> None:
    """In one line, with the number of the line."""
    (tmp_path / "cube.obj").write_text(_CUBE)
    path = tmp_path / "zero.urdf"
    path.write_text(
        '<robot name="r"><link'
        f' name="a"><collision><geometry>{shape}</geometry></collision></link></robot>'
    )
    with pytest.raises(FileFormatError, match=f"zero.urdf:{reason}"):
        load_scene(path)


@pytest.mark.parametrize("scale", ["0 1 1", "1 0 1", "1 1 0", "0 0 1", "-1 0 1"])
@pytest.mark.parametrize("tags", [("collision",), ("visual", "collision")])
def test_a_mesh_made_flat_has_the_documented_thickness(
    scale: str, tags: tuple[str, ...], tmp_path: Path
) -> None:
    """And collides."""
    (tmp_path / "cube.obj").write_text(_CUBE)
    shape = f'<geometry><mesh filename="cube.obj" scale="{scale}"/></geometry>'
    parts = "".join(f"<{tag}>{shape}</{tag}>" for tag in tags)
    (tmp_path / "flat.urdf").write_text(f'<robot name="r"><link name="a">{parts}</link></robot>')
    notes: list[object] = []
    scene = load_scene(tmp_path / "flat.urdf", on_note=notes.append)
    assert "is flat; in collisions it has a thickness of 0.1 mm" in str(notes[0])
    (solid,) = (part for part in scene.shapes("a") if part.collision)
    lower, upper = solid.shape.bounds
    for axis, factor in enumerate(scale.split()):
        assert upper[axis] - lower[axis] == pytest.approx(
            THICKNESS if factor == "0" else 1.0, abs=2 * THICKNESS
        )
    middle = tk.Pose((lower + upper) / 2)
    probe = scene.add_frame(
        "probe", "world", pose=middle, shapes=[tk.AttachedShape(tk.Sphere(0.01))]
    )
    probe = probe.add_frame(
        "joint", "probe", joint=tk.Prismatic([0, 0, 1]), shapes=[tk.AttachedShape(tk.Sphere(0.01))]
    )
    assert CollisionWorld(probe).is_in_collision([0.0])
