"""What is odd about the joints and meshes of a robot, from what is written alone.

Joints are listed with their limits as :class:`JointRow`. Meshes that collide are looked at for what their authors
could not see in a picture: a hull without a volume, far more triangles than a collision needs, another unit, and holes.
Holes are worth a note only, since collisions are checked with the convex hull. O(triangles * log triangles).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit.formats.mesh.frustum import thickened
from tmkit.graph import Joint, SceneGraph

FAR = 5.0
"""Metres from its frame or in size from which on a mesh is taken to be in another unit."""

MANY_TRIANGLES = 50_000
"""Triangles from which on a mesh that collides is worth a note."""


@dataclass(frozen=True, slots=True)
class JointRow:
    """A joint as the planner takes it.

    Attributes:
        name: of the joint.
        type: ``revolute``, ``continuous``, ``prismatic``, ...
        lower: least value, radians or metres; infinite without a limit.
        upper: largest value.
        velocity: largest speed, rad/s or m/s; infinite without a limit.
        notes: what is odd about it, each a sentence about the joint.
    """

    name: str
    type: str
    lower: float
    upper: float
    velocity: float
    notes: tuple[str, ...]

    @property
    def is_odd(self) -> bool:
        """Whether there is anything to say about it."""
        return bool(self.notes)


def joint_rows(scene: SceneGraph) -> tuple[JointRow, ...]:
    """Return the joints of a configuration, in its order."""
    rows = zip(scene.joint_names, scene.joint_limits, scene.velocity_limits, strict=True)
    return tuple(
        _row(scene.joint(scene.joint_frame(name)), name, float(lower), float(upper), float(speed))
        for name, (lower, upper), speed in rows
    )


def _row(joint: Joint, name: str, lower: float, upper: float, speed: float) -> JointRow:
    notes = []
    if joint.type != "continuous" and not (np.isfinite(lower) and np.isfinite(upper)):
        notes.append(f"the {joint.type} joint '{name}' has no limits")
    elif lower == upper:
        notes.append(f"the {joint.type} joint '{name}' cannot move: both its limits are {lower:g}")
    if joint.type == "revolute" and 6 * np.pi < upper - lower < np.inf:
        notes.append(f"the revolute joint '{name}' turns more than three times: are its limits in degrees?")
    if joint.type == "prismatic" and FAR < upper - lower < np.inf:
        notes.append(f"the prismatic joint '{name}' moves by {upper - lower:.3g} m: is it in another unit?")
    if not np.isfinite(speed) or speed <= 0.0:
        notes.append(f"the {joint.type} joint '{name}' has no speed limit; 1 is taken")
    return JointRow(name, joint.type, lower, upper, speed, tuple(notes))


def flat_meshes(scene: SceneGraph) -> tuple[tuple[str, int, str], ...]:
    """Return the meshes that collide and have no hull: frame, place among its shapes, and what to call the mesh."""
    found = []
    for frame in scene.frame_names:
        for place, part in enumerate(scene.shapes(frame)):
            if part.collision and part.shape.kind == "mesh" and thickened(part.shape) is not None:
                found.append((frame, place, _called(part.shape.source, frame)))
    return tuple(found)


def without_flat_meshes(scene: SceneGraph) -> SceneGraph:
    """Return the scene without the meshes that have no hull, to check the rest."""
    flat = {(frame, place) for frame, place, _ in flat_meshes(scene)}
    for frame in dict.fromkeys(frame for frame, _ in sorted(flat)):
        kept = [part for place, part in enumerate(scene.shapes(frame)) if (frame, place) not in flat]
        scene = scene.set_shapes(frame, kept)
    return scene


def mesh_notes(scene: SceneGraph) -> Iterator[str]:
    """Yield what is odd about shapes that collide."""
    solid, open_meshes = False, []
    for frame in scene.frame_names:
        for part in scene.shapes(frame):
            solid = solid or part.collision
            if not part.collision or part.shape.kind != "mesh":
                continue
            lower, upper = (np.asarray(corner) for corner in part.shape.bounds)
            what = f"the mesh {_called(part.shape.source, frame)}"
            length, away = float(np.max(upper - lower)), float(np.max(np.abs([lower, upper])))
            if length > FAR:
                yield f"{what} is {length:.3g} m long: is it in another unit?"
            elif away > FAR:
                yield f"{what} is {away:.3g} m away from its frame"
            if len(part.shape.faces) > MANY_TRIANGLES:
                yield f"{what} has {len(part.shape.faces)} triangles; a simpler one for collisions loads faster"
            if not _is_closed(np.asarray(part.shape.vertices), np.asarray(part.shape.faces)):
                open_meshes.append(frame)
    if open_meshes:
        named = ", ".join(dict.fromkeys(open_meshes))
        yield f"meshes with holes, which their hulls close: those of {named}"
    if not solid:
        yield "no link has a collision shape, so nothing is checked"


def _called(source: str, frame: str) -> str:
    return f"{source or 'without a file'} of '{frame}'"


def _is_closed(vertices: NDArray[np.float64], faces: NDArray[np.int32]) -> bool:
    """Whether every edge belongs to an even number of triangles, once vertices at the same place are one."""
    same = np.unique(vertices, axis=0, return_inverse=True)[1].reshape(-1)
    corners = same[faces]
    edges = np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]), axis=1)
    edges = edges[edges[:, 0] != edges[:, 1]]
    return bool(np.all(np.unique(edges, axis=0, return_counts=True)[1] % 2 == 0))
