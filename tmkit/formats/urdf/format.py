"""Registration of URDF, and of xacro, which expands to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.errors import FileFormatError, SceneError
from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.spec.model import SceneSpecification
    from tmkit.graph import SceneGraph

_REFUSAL = (
    "a xacro file can run code and read any file; expand the file first, where you trust it: xacro"
    " FILE.xacro > FILE.urdf, or allow that: load_scene(...,"
    " reading=ReadingOptions(allow_xacro=True)), tmkit scene ... --allow-xacro"
)
"""Reason for which a xacro file is not read without a permission."""


def _read(path: Path, reading: Reading, *, data: bytes | None = None) -> SceneSpecification:
    from tmkit.formats.urdf.always_colliding import with_always_colliding
    from tmkit.formats.urdf.meshes import read_meshes
    from tmkit.formats.urdf.reader import read_urdf

    robot = read_meshes(
        read_urdf(path, packages=reading.loader.packages, note=reading.note, data=data), reading
    )
    return with_always_colliding(robot, loader=reading.loader, note=reading.note)


def _read_xacro(path: Path, reading: Reading) -> SceneSpecification:
    """Read a file that the user allows to run; messages have lines of its expansion."""
    from tmkit.formats.urdf.reader import expanded

    packages = reading.loader.packages
    if path not in packages.xacro:
        raise FileFormatError.at(path, _REFUSAL)
    data = expanded(path, packages.xacro[path], packages)
    return _read(path.with_name(f"{path.name} (expanded)"), reading, data=data)


def _write(scene: SceneGraph, name: str) -> Mapping[str, str | bytes]:
    from tmkit.formats.urdf.writer import urdf_from_scene

    if len(scene.root_names) != 1:
        raise SceneError(f"a robot has one root, and this scene has {len(scene.root_names)}")
    urdf = urdf_from_scene(scene, _root_link(scene), name=Path(name).stem)
    return {name: urdf.text, **urdf.meshes}


def _root_link(scene: SceneGraph) -> str:
    """Return the frame that is the root link of a URDF: the one child of a bare world, else the root."""
    from tmkit.spatial import Pose

    root = scene.root_names[0]
    bare = not scene.shapes(root) and not scene.classes(root) and scene.inertia(root) is None
    children = scene.children(root)
    if root == "world" and bare and len(children) == 1:
        child = children[0]
        if scene.joint(child).type == "fixed" and scene.local_pose(child) == Pose.identity():
            return child
    return root


URDF = Format(
    "URDF",
    (".urdf",),
    _read,
    _write,
    comparison="rounded",
    description="Robot descriptions of ROS; rotations are written as three angles.",
)
"""The format URDF."""

XACRO = Format(
    "xacro",
    (".xacro",),
    _read_xacro,
    description="URDF with macros; read with --allow-xacro only, since that runs code.",
    extra="formats",
    module="xacrodoc",
)
"""The format xacro, whose files need a permission."""
