"""Registration of URDF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.errors import SceneError
from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.spec.model import SceneSpecification
    from tmkit.graph import SceneGraph


def read_urdf_file(
    path: Path, reading: Reading, *, data: bytes | None = None
) -> SceneSpecification:
    """Read a robot description and check its meshes.

    Args:
        path: the file.
        reading: context of the load.
        data: content of the file. Defaults to the content on disk.
    """
    from tmkit.formats.urdf.always_colliding import allow_always_colliding
    from tmkit.formats.urdf.meshes import check_meshes
    from tmkit.formats.urdf.reader import read_urdf

    robot = read_urdf(path, packages=reading.loader.packages, note=reading.note, data=data)
    robot = check_meshes(robot, reading)
    return allow_always_colliding(robot, loader=reading.loader, note=reading.note)


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
    read_urdf_file,
    _write,
    comparison="rounded",
    description="Robot descriptions of ROS; rotations are written as three angles.",
)
"""The format URDF."""
