"""Bodies of the physics engine for the pieces of a scene.

A rigid piece becomes one body with arrays of shapes. A mechanism becomes a URDF file, because
pybullet reads joints only from files. :class:`Body` maps frames to links, so that poses and
contacts are reported by frame.

pybullet describes bodies by their inertial frames: base positions and the frames of constraints
are relative to the centre of mass. :class:`Body` stores ``base_from_inertial``. All code outside
this module and the simulation uses frame poses only. :mod:`tmkit.motion.masses` computes the
masses. Frames without a body have a negligible mass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SimulationError
from tmkit.graph import AttachedShape, Fixed, Inertia, Kinematics, SceneGraph
from tmkit.motion.masses import ball_inertia, lumped_inertia
from tmkit.simulation.engines.pybullet.engine import Engine
from tmkit.simulation.engines.pybullet.shapes import PlacedShape, ShapeBuilder, inset_hull
from tmkit.simulation.pieces import Piece, partition
from tmkit.simulation.settings import PhysicsSettings
from tmkit.spatial import Pose

BASE = -1
"""pybullet's link index of the base of a body."""

_MARKER_MASS = 1e-5
"""Mass of a frame without a body [kg]."""


@dataclass(frozen=True, eq=False)
class Body:
    """Body of the physics engine and its frames.

    Attributes:
        index: pybullet's index of the body.
        kind: ``fixed``, ``object`` or ``mechanism``.
        base: frame of which the pose is the body's pose.
        links: pybullet's link index by frame. All are ``BASE`` in a rigid body.
        offsets: link_from_frame by frame. All are the identity in a mechanism.
        joints: pybullet's joint index by moving joint.
        base_from_inertial: pose of the base's centre of mass.
    """

    index: int
    kind: str
    base: str
    links: Mapping[str, int]
    offsets: Mapping[str, Pose]
    joints: Mapping[str, int]
    base_from_inertial: Pose


def build_bodies(
    engine: Engine, start: Kinematics, *, settings: PhysicsSettings, folder: Path
) -> list[Body]:
    """Make all bodies of a scene, ordered as fixed ones, mechanisms and objects.

    Args:
        engine: connection to pybullet.
        start: scene at the start configuration.
        settings: physical parameters.
        folder: private folder for files that pybullet reads. It may be removed afterwards.

    Raises:
        SimulationError: if an object has no collision shape, or the engine rejects a shape or
            mechanism.
    """
    scene = start.scene
    pieces, shapes = partition(scene), ShapeBuilder(engine, folder)
    fixed = [Piece(frame, (frame,), (), ()) for frame in pieces.fixed if scene.shapes(frame)]
    bodies = [_rigid_body(engine, "fixed", piece, start, shapes, None) for piece in fixed]
    for number, piece in enumerate((*pieces.mechanisms, *pieces.objects)):
        kind = "mechanism" if piece in pieces.mechanisms else "object"
        if kind == "object":
            require_collision_shape(scene, piece)
        if piece.moving:
            file_folder = folder / f"mechanism{number}"
            bodies.append(_mechanism(engine, kind, piece, start, settings.density, file_folder))
        else:
            inertia = lumped_inertia(scene, piece.frames, density=settings.density)
            bodies.append(_rigid_body(engine, kind, piece, start, shapes, inertia))
    return bodies


def require_collision_shape(scene: SceneGraph, piece: Piece) -> None:
    """Raise :class:`SimulationError` if a movable object has no collision shape."""
    if not any(attached.collision for frame in piece.frames for attached in scene.shapes(frame)):
        raise SimulationError(
            f"movable object '{piece.base}' has no collision shape: it would fall through"
            " everything; give it a shape, or remove the class 'movable'",
            frame=piece.base,
        )


def _rigid_body(
    engine: Engine,
    kind: str,
    piece: Piece,
    start: Kinematics,
    shapes: ShapeBuilder,
    inertia: Inertia | None,
) -> Body:
    """Make a body without joints. ``inertia`` is ``None`` for a fixed one."""
    scene, pose = start.scene, start.pose(piece.base)
    offsets = {frame: scene.pose(frame, relative_to=piece.base) for frame in piece.frames}
    placed = [
        PlacedShape(attached, offsets[frame] @ attached.pose, frame)
        for frame in piece.frames
        for attached in scene.shapes(frame)
    ]
    base_from_inertial, moments = _principal_axes(inertia)
    collision = shapes.collision(placed, is_fixed=inertia is None)
    index = engine.createMultiBody(
        baseMass=0.0 if inertia is None else inertia.mass,
        baseCollisionShapeIndex=collision,
        baseVisualShapeIndex=shapes.visual(placed),
        basePosition=list(pose.translation),
        baseOrientation=list(pose.quat_xyzw),
        baseInertialFramePosition=list(base_from_inertial.translation),
        baseInertialFrameOrientation=list(base_from_inertial.quat_xyzw),
    )
    if index < 0:
        raise SimulationError(
            f"the physics engine could not make a body of frame '{piece.base}'", frame=piece.base
        )
    if collision >= 0:  # pybullet adds a margin of 1 mm to convex hulls.
        engine.changeDynamics(index, BASE, collisionMargin=0.0)
    if inertia is not None:
        engine.changeDynamics(index, BASE, localInertiaDiagonal=list(moments))
    return Body(
        index, kind, piece.base, dict.fromkeys(piece.frames, BASE), offsets, {}, base_from_inertial
    )


def _principal_axes(inertia: Inertia | None) -> tuple[Pose, NDArray[np.float64]]:
    """Return the pose of the principal axes at the centre of mass, and the three moments."""
    if inertia is None:
        return Pose(), np.zeros(3)
    matrix = np.asarray(inertia.matrix, dtype=float)
    if np.allclose(matrix, np.diag(np.diagonal(matrix)), rtol=0.0, atol=1e-9 * np.trace(matrix)):
        return Pose(inertia.center), np.diagonal(matrix).copy()
    moments, axes = np.linalg.eigh(matrix)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return Pose.from_rotation_matrix(inertia.center, axes), moments


def _mechanism(
    engine: Engine, kind: str, piece: Piece, start: Kinematics, density: float, folder: Path
) -> Body:
    """Make a body with joints from a URDF file."""
    from tmkit.formats import write_urdf

    folder.mkdir()
    scene = _add_masses(start.scene, piece, density)
    path = write_urdf(scene, piece.base, folder, name="mechanism", exclude=piece.excluded)
    pose = start.pose(piece.base)
    try:
        index = engine.loadURDF(
            str(path),
            basePosition=list(pose.translation),
            baseOrientation=list(pose.quat_xyzw),
            useFixedBase=kind == "mechanism",
            flags=engine.URDF_USE_INERTIA_FROM_FILE,
        )
    except engine.error as error:
        raise SimulationError(
            f"the physics engine could not load the mechanism at frame '{piece.base}'"
        ) from error
    links, joints = {piece.base: BASE}, {}
    for number in range(engine.getNumJoints(index)):
        info = engine.getJointInfo(index, number)
        links[info[12].decode()] = number
        if info[2] != engine.JOINT_FIXED:
            joints[info[1].decode()] = number
    missing = [frame for frame in piece.frames if frame not in links]
    if missing:
        raise SimulationError(
            f"the physics engine lost frame '{missing[0]}' of the mechanism at '{piece.base}'"
        )
    for frame in _massless_links(path):  # pybullet gives them 1 kg.
        engine.changeDynamics(
            index, links[frame], mass=_MARKER_MASS, localInertiaDiagonal=[1e-4 * _MARKER_MASS] * 3
        )
    inertial = engine.getDynamicsInfo(index, BASE)
    return Body(
        index,
        kind,
        piece.base,
        {frame: links[frame] for frame in piece.frames},
        dict.fromkeys(piece.frames, Pose()),
        joints,
        Pose(inertial[3], inertial[4]),
    )


def _massless_links(path: Path) -> list[str]:
    """Return the links of a URDF file without mass. Another link has the mass of their body."""
    links = ElementTree.parse(path).getroot().iter("link")
    return [str(link.get("name")) for link in links if link.find("inertial") is None]


def _add_masses(scene: SceneGraph, piece: Piece, density: float) -> SceneGraph:
    """Return the scene with an inertia on every body of a mechanism, and without free joints."""
    with scene.edit() as edit:
        for frame in piece.frames[1:]:
            if scene.joint(frame).type == "free":
                edit.set_joint(frame, Fixed())
        for frame in piece.frames:
            shapes = scene.shapes(frame)
            if any(attached.collision for attached in shapes):
                edit.set_shapes(
                    frame, [part for attached in shapes for part in _remove_margin(attached)]
                )
        for group in rigid_groups(scene, piece):
            with_mass = {scene.body(name) for name in group if _has_mass(scene, name)}
            bodies = set(with_mass)
            for frame in group:
                if scene.body(frame) in bodies:
                    continue
                bodies.add(scene.body(frame))
                if not with_mass and frame == group[0]:
                    inertia = lumped_inertia(scene, group, density=density)
                else:
                    inertia = ball_inertia(_MARKER_MASS, 0.01)
                edit.set_inertia(frame, inertia)
    return edit.finish()


def _has_mass(scene: SceneGraph, frame: str) -> bool:
    """Return whether the scene gives the body of a frame a positive mass."""
    inertia = scene.inertia(frame)
    return inertia is not None and inertia.mass > 0.0


def _remove_margin(attached: AttachedShape) -> Iterator[AttachedShape]:
    """Yield the visual part of a shape, and a collision part reduced by pybullet's margin."""
    if (
        not attached.collision
        or attached.shape.kind not in ("mesh", "cylinder")
        or attached.level == "box"
    ):
        yield attached
        return
    if attached.visual:
        yield AttachedShape(attached.shape, attached.pose, color=attached.color, collision=False)
    yield AttachedShape(
        inset_hull(attached.shape), attached.pose, visual=False, friction=attached.friction
    )


def rigid_groups(scene: SceneGraph, piece: Piece) -> list[list[str]]:
    """Return the frames between the moving joints of a mechanism, the topmost frame first."""
    groups: dict[str, list[str]] = {}
    head: dict[str, str] = {}
    for frame in piece.frames:
        parent = scene.parent(frame)
        head[frame] = frame if frame == piece.base or frame in piece.moving else head[str(parent)]
        groups.setdefault(head[frame], []).append(frame)
    return list(groups.values())
