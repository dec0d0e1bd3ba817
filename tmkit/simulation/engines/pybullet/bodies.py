"""The pieces of a scene as bodies of a physics engine.

A rigid piece becomes one body made of arrays of shapes; a mechanism goes through a URDF file, since
that is how pybullet takes joints. :class:`Body` keeps the correspondence of names: poses are read
and contacts reported by frame.

pybullet speaks of bodies by their centre of mass: base positions, and the frames of constraints,
are those of the inertial frame. :class:`Body` holds ``base_from_inertial``, and everything outside
this module and the simulation uses frame poses only. Masses are those of
:mod:`tmkit.motion.masses`; frames that only mark a place weigh next to nothing.
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

BASE = -1  # pybullet's link index of the base of a body
_MARKER_MASS = 1e-5  # kilograms of a frame that only marks a place


@dataclass(frozen=True, eq=False)
class Body:
    """A body of the physics engine and the frames it carries.

    Attributes:
        index: pybullet's number of the body.
        kind: ``fixed``, ``object`` or ``mechanism``.
        base: the frame that the body's pose is the pose of.
        links: pybullet's link index of each frame; all are ``BASE`` when the body is rigid.
        offsets: link_from_frame of each frame; identity in a mechanism.
        joints: pybullet's joint index of each moving joint, by name.
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
    engine: Engine, at: Kinematics, *, settings: PhysicsSettings, folder: Path
) -> list[Body]:
    """Make all bodies of a scene: fixed ones, then mechanisms, then objects, each in the order of the scene.

    Args:
        at: the scene at the configuration in which the bodies are to stand.
        folder: a private folder for files that pybullet reads; it may be removed afterwards.

    Raises:
        SimulationError: an object without a shape that collides, or a shape or mechanism that the
            engine refuses.
    """
    scene = at.scene
    pieces, shapes = partition(scene), ShapeBuilder(engine, folder)
    fixed = [Piece(frame, (frame,), (), ()) for frame in pieces.fixed if scene.shapes(frame)]
    bodies = [_rigid_body(engine, "fixed", piece, at, shapes, None) for piece in fixed]
    for number, piece in enumerate((*pieces.mechanisms, *pieces.objects)):
        kind = "mechanism" if piece in pieces.mechanisms else "object"
        if kind == "object":
            require_collision_shape(scene, piece)
        if piece.moving:
            bodies.append(
                _mechanism(engine, kind, piece, at, settings.density, folder / f"mechanism{number}")
            )
        else:
            inertia = lumped_inertia(scene, piece.frames, density=settings.density)
            bodies.append(_rigid_body(engine, kind, piece, at, shapes, inertia))
    return bodies


def require_collision_shape(scene: SceneGraph, piece: Piece) -> None:
    """Refuse a movable object that would fall through everything, by a :class:`SimulationError`."""
    if not any(attached.collision for frame in piece.frames for attached in scene.shapes(frame)):
        raise SimulationError(
            f"movable object '{piece.base}' has no collision shape: it would fall through"
            " everything; give it a shape, or take the class 'movable' away",
            frame=piece.base,
        )


def _rigid_body(
    engine: Engine,
    kind: str,
    piece: Piece,
    at: Kinematics,
    shapes: ShapeBuilder,
    inertia: Inertia | None,
) -> Body:
    """Make a body without joints; ``inertia`` is ``None`` for one that never moves."""
    scene, pose = at.scene, at.pose(piece.base)
    offsets = {frame: scene.pose(frame, relative_to=piece.base) for frame in piece.frames}
    placed = [
        PlacedShape(attached, offsets[frame] @ attached.pose, frame)
        for frame in piece.frames
        for attached in scene.shapes(frame)
    ]
    base_from_inertial, moments = _principal(inertia)
    collision = shapes.collision(placed, still=inertia is None)
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
    if collision >= 0:  # pybullet adds a margin of a millimetre to convex hulls
        engine.changeDynamics(index, BASE, collisionMargin=0.0)
    if inertia is not None:
        engine.changeDynamics(index, BASE, localInertiaDiagonal=list(moments))
    return Body(
        index, kind, piece.base, dict.fromkeys(piece.frames, BASE), offsets, {}, base_from_inertial
    )


def _principal(inertia: Inertia | None) -> tuple[Pose, NDArray[np.float64]]:
    """Return the pose of the principal axes at the centre of mass, and the three moments about them."""
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
    engine: Engine, kind: str, piece: Piece, at: Kinematics, density: float, folder: Path
) -> Body:
    from tmkit.formats import write_urdf

    folder.mkdir()
    prepared = _with_masses(at.scene, piece, density)
    path = write_urdf(prepared, piece.base, folder, name="mechanism", exclude=piece.excluded)
    pose = at.pose(piece.base)
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
    for frame in _without_mass(path):  # pybullet gives them a kilogram
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


def _without_mass(path: Path) -> list[str]:
    """Return the links of a written URDF file that have no mass: another link carries that of their body."""
    links = ElementTree.parse(path).getroot().iter("link")
    return [str(link.get("name")) for link in links if link.find("inertial") is None]


def _with_masses(scene: SceneGraph, piece: Piece, density: float) -> SceneGraph:
    """Return the scene with an inertia on every body of a mechanism and no free edge in it, ready to be simulated."""
    with scene.edit() as edit:
        for frame in piece.frames[1:]:
            if scene.joint(frame).type == "free":
                edit.set_joint(frame, Fixed())
        for frame in piece.frames:
            if any(attached.collision for attached in scene.shapes(frame)):
                edit.set_shapes(
                    frame,
                    [part for attached in scene.shapes(frame) for part in _within_margin(attached)],
                )
        for group in rigid_groups(scene, piece):
            heavy = {
                scene.body(name)
                for name in group
                if (own := scene.inertia(name)) is not None and own.mass > 0.0
            }
            done = set(heavy)
            for frame in group:
                if scene.body(frame) in done:
                    continue
                done.add(scene.body(frame))
                alone = not heavy and frame == group[0]
                edit.set_inertia(
                    frame,
                    (
                        lumped_inertia(scene, group, density=density)
                        if alone
                        else ball_inertia(_MARKER_MASS, 0.01)
                    ),
                )
    return edit.finish()


def _within_margin(attached: AttachedShape) -> Iterator[AttachedShape]:
    """Yield what is drawn of a shape, and what collides, which pybullet's margin fills up to what is drawn."""
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
    """Return the frames of a mechanism that no moving joint parts, the one above the others first."""
    groups: dict[str, list[str]] = {}
    head: dict[str, str] = {}
    for frame in piece.frames:
        parent = scene.parent(frame)
        head[frame] = frame if frame == piece.base or frame in piece.moving else head[str(parent)]
        groups.setdefault(head[frame], []).append(frame)
    return list(groups.values())
