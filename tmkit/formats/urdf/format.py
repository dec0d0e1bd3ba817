"""Registration of URDF and xacro."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.errors import FileFormatError, SceneError
from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.spec.model import SceneSpecification
    from tmkit.graph import SceneGraph

_PERMISSION_MESSAGE = (
    "a xacro file can run code and read any file; expand the file first, where you trust it: xacro"
    " FILE.xacro > FILE.urdf, or allow the expansion: load_scene(...,"
    " reading=ReadingOptions(allow_xacro=True)), tmkit scene ... --allow-xacro"
)
"""Reason for the rejection of a xacro file without permission."""


def _read(path: Path, reading: Reading, *, data: bytes | None = None) -> SceneSpecification:
    from tmkit.formats.urdf.always_colliding import allow_always_colliding
    from tmkit.formats.urdf.meshes import check_meshes
    from tmkit.formats.urdf.reader import read_urdf

    robot = read_urdf(path, packages=reading.loader.packages, note=reading.note, data=data)
    robot = check_meshes(robot, reading)
    return allow_always_colliding(robot, loader=reading.loader, note=reading.note)


def _read_xacro(path: Path, reading: Reading) -> SceneSpecification:
    """Read a xacro file whose expansion the user allows.

    Line numbers in messages are those of the expanded text.

    Raises:
        FileFormatError: if the expansion is not allowed, or the file is invalid.
    """
    from tmkit.formats.urdf.reader import expand_xacro

    packages = reading.loader.packages
    if path not in packages.xacro:
        raise FileFormatError.at(path, _PERMISSION_MESSAGE)
    data = expand_xacro(path, packages.xacro[path], packages)
    return _read(path.with_name(f"{path.name} (expanded)"), reading, data=data)


def _write(scene: SceneGraph, name: str) -> Mapping[str, str | bytes]:
    from tmkit.formats.urdf.writer import urdf_from_scene

    if len(scene.root_names) != 1:
        raise SceneError(f"expected a scene with one root, got {len(scene.root_names)}")
    urdf = urdf_from_scene(scene, _root_link(scene), name=Path(name).stem)
    return {name: urdf.text, **urdf.meshes}


def _root_link(scene: SceneGraph) -> str:
    """Return the frame that becomes the root link.

    This is the only child of ``world`` if that child is fixed at the origin and ``world`` has no
    shapes, classes or inertia. Otherwise it is the root of the scene.
    """
    from tmkit.spatial import Pose

    root = scene.root_names[0]
    is_bare = not scene.shapes(root) and not scene.classes(root) and scene.inertia(root) is None
    children = scene.children(root)
    if root == "world" and is_bare and len(children) == 1:
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
    description="URDF with macros; read only with --allow-xacro, because expansion runs code.",
    extra="formats",
    module="xacrodoc",
)
"""The format xacro, whose files are read only with permission."""
