"""Meshes of robot descriptions, looked at before the robot is built.

What cannot be read is reported where it is named: a visual mesh is omitted, with a note; a collision mesh is
refused, or omitted as well when the user wants only those that are available. A collision mesh without any thickness
has no hull, so it gets one (:func:`tmkit.formats.mesh.frustum.thickened`), with a note; its picture stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tmkit._support.import_notes import Note
from tmkit._support.limits import is_refused_by_system
from tmkit.errors import MeshError
from tmkit.formats.mesh.frustum import THICKNESS, thickened
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.spec.model import GeometrySpec, MeshSpec, SceneSpecification
from tmkit.formats.urdf.shapes import with_advice


def with_readable_meshes(robot: SceneSpecification, *, loader: MeshLoader, note: Note) -> SceneSpecification:
    """Return the specification of a robot whose meshes can all be read, and whose collision meshes all have a hull.

    Args:
        robot: the robot.
        loader: loads its meshes, and remembers them.
        note: takes the notes.

    Raises:
        MeshError: a collision mesh cannot be read.
    """
    frames = [
        replace(frame, geometry=tuple(kept for part in frame.geometry for kept in _readable(part, loader, note)))
        for frame in robot.frames
    ]
    return replace(robot, frames=tuple(frames))


def _readable(part: GeometrySpec, loader: MeshLoader, note: Note) -> Iterator[GeometrySpec]:
    """Yield what becomes of a shape."""
    if not isinstance(part.shape, MeshSpec):
        yield part
        return
    try:
        mesh = loader.load(part.shape, place=part.place)
    except MeshError as error:
        if is_refused_by_system(error):  # a robot without its shapes would be another one
            raise
        if part.collision and loader.packages.meshes == "load":
            raise with_advice(error, part.place) from error
        kind = " and ".join(word for word, there in (("visual", part.visual), ("collision", part.collision)) if there)
        note(part.place, f"{error.data['reason']}; this {kind} shape is ignored")
        return
    solid = thickened(mesh) if part.collision else None
    if solid is None:
        yield part
        return
    note(
        part.place,
        f"the mesh {part.shape.path.name} is flat; in collisions it has a thickness of {1000.0 * THICKNESS:g} mm",
    )
    if part.visual:
        yield replace(part, collision=False)
    yield replace(part, shape=solid, visual=False)
