"""The pieces of a scene as bodies of a physics engine.

A rigid piece becomes one body made of arrays of shapes; a mechanism goes through a URDF file, since that is how
pybullet takes joints. :class:`Body` keeps the correspondence of names: poses are read and contacts reported by frame.

pybullet speaks of bodies by their centre of mass: base positions, and the frames of constraints, are those of the
inertial frame. :class:`Body` holds ``base_from_inertial``, and everything outside this module and the simulation uses
frame poses only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SimulationError
from tmkit.graph import Inertia, Kinematics, SceneGraph
from tmkit.manipulation.grasps.holding import torsion_arm
from tmkit.manipulation.masses import lumped_inertia
from tmkit.simulation.pieces import MARKER_MASS, Piece, Pieces, with_masses
from tmkit.simulation.settings import PhysicsSettings
from tmkit.simulation.shapes import PlacedShape, ShapeBuilder, remove_margins
from tmkit.spatial import Pose

BASE = -1  # pybullet's link index of the base of a body
TOUCHING = 1e-4  # metres of distance up to which two shapes count as touching

_OVERLAP = 1e-4  # metres of penetration at the start that mean that two parts are meant to overlap


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
    bullet: Any, client: int, *, scene: SceneGraph, at: Kinematics, pieces: Pieces, settings: PhysicsSettings,
    folder: Path,
) -> list[Body]:  # fmt: skip
    """Make all bodies of a scene.

    Args:
        bullet: the pybullet module.
        client: the connection.
        scene: the scene.
        at: the scene at the configuration in which the bodies are to stand.
        pieces: the scene's partition.
        settings: densities and friction.
        folder: a private folder for files that pybullet reads; it may be removed afterwards.

    Returns:
        Fixed bodies, then mechanisms, then objects, each in the order of the scene.

    Raises:
        SimulationError: an object without a shape that collides, or a shape or mechanism that the engine refuses.
    """
    shapes = ShapeBuilder(bullet, client, folder=folder)
    bodies = []
    for frame in pieces.fixed:
        if scene.shapes(frame):
            alone = Piece(frame, (frame,), (), ())
            bodies.append(_rigid_body(bullet, client, "fixed", alone, scene, at, shapes, None))
    number = 0
    for piece in (*pieces.mechanisms, *pieces.objects):
        kind = "mechanism" if piece in pieces.mechanisms else "object"
        if kind == "object":
            _require_collision_shape(scene, piece)
        if piece.moving:
            place = folder / f"mechanism{number}"
            place.mkdir()
            number += 1
            bodies.append(_mechanism(bullet, client, kind, piece, scene, at, settings, place))
        else:
            inertia = lumped_inertia(scene, piece.frames, density=settings.density)
            bodies.append(_rigid_body(bullet, client, kind, piece, scene, at, shapes, inertia))
    return bodies


def _require_collision_shape(scene: SceneGraph, piece: Piece) -> None:
    if not any(attached.collision for frame in piece.frames for attached in scene.shapes(frame)):
        raise SimulationError(
            f"movable object '{piece.base}' has no collision shape: it would fall through everything; "
            "give it a shape, or take the class 'movable' away",
            frame=piece.base,
        )


def _rigid_body(
    bullet: Any, client: int, kind: str, piece: Piece, scene: SceneGraph, at: Kinematics, shapes: ShapeBuilder,
    inertia: Inertia | None,
) -> Body:  # fmt: skip
    """Make a body without joints; ``inertia`` is ``None`` for one that never moves."""
    offsets = {frame: scene.pose(frame, relative_to=piece.base) for frame in piece.frames}
    placed = [
        PlacedShape(attached, offsets[frame] @ attached.pose, frame)
        for frame in piece.frames
        for attached in scene.shapes(frame)
    ]
    base_from_inertial, moments = _principal(inertia)
    pose = at.pose(piece.base)
    collision = shapes.collision(placed, still=inertia is None)
    index = bullet.createMultiBody(
        baseMass=0.0 if inertia is None else inertia.mass, baseCollisionShapeIndex=collision,
        baseVisualShapeIndex=shapes.visual(placed), basePosition=list(pose.translation),
        baseOrientation=list(pose.quat_xyzw), baseInertialFramePosition=list(base_from_inertial.translation),
        baseInertialFrameOrientation=list(base_from_inertial.quat_xyzw), physicsClientId=client,
    )  # fmt: skip
    if index < 0:
        raise SimulationError(f"the physics engine could not make a body of frame '{piece.base}'", frame=piece.base)
    if collision >= 0:
        remove_margins(bullet, client, body=index)
    if inertia is not None:
        bullet.changeDynamics(index, BASE, localInertiaDiagonal=list(moments), physicsClientId=client)
    return Body(index, kind, piece.base, dict.fromkeys(piece.frames, BASE), offsets, {}, base_from_inertial)


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
    bullet: Any, client: int, kind: str, piece: Piece, scene: SceneGraph, at: Kinematics, settings: PhysicsSettings,
    folder: Path,
) -> Body:  # fmt: skip
    from tmkit.formats import write_urdf

    prepared = with_masses(scene, piece, density=settings.density)
    path = write_urdf(prepared, piece.base, folder, name="mechanism", exclude=piece.excluded)
    pose = at.pose(piece.base)
    try:
        index = bullet.loadURDF(
            str(path), basePosition=list(pose.translation), baseOrientation=list(pose.quat_xyzw),
            useFixedBase=kind == "mechanism", flags=bullet.URDF_USE_INERTIA_FROM_FILE, physicsClientId=client,
        )  # fmt: skip
    except bullet.error as error:
        raise SimulationError(f"the physics engine could not load the mechanism at frame '{piece.base}'") from error
    links, joints = {piece.base: BASE}, {}
    for number in range(bullet.getNumJoints(index, physicsClientId=client)):
        info = bullet.getJointInfo(index, number, physicsClientId=client)
        links[info[12].decode()] = number
        if info[2] != bullet.JOINT_FIXED:
            joints[info[1].decode()] = number
    missing = [frame for frame in piece.frames if frame not in links]
    if missing:
        raise SimulationError(f"the physics engine lost frame '{missing[0]}' of the mechanism at '{piece.base}'")
    _make_weightless(bullet, client, index, [links[frame] for frame in _without_mass(path)])
    inertial = bullet.getDynamicsInfo(index, BASE, physicsClientId=client)
    return Body(
        index, kind, piece.base, {frame: links[frame] for frame in piece.frames}, dict.fromkeys(piece.frames, Pose()),
        joints, Pose(inertial[3], inertial[4]),
    )  # fmt: skip


def _without_mass(path: Path) -> list[str]:
    """Return the links of a written URDF file that have no mass: another link carries that of their body."""
    links = ElementTree.parse(path).getroot().iter("link")
    return [str(link.get("name")) for link in links if link.find("inertial") is None]


def _make_weightless(bullet: Any, client: int, index: int, links: list[int]) -> None:
    """Take away the kilogram that pybullet gives to links without a mass."""
    for link in links:
        moments = [1e-4 * MARKER_MASS] * 3
        bullet.changeDynamics(index, link, mass=MARKER_MASS, localInertiaDiagonal=moments, physicsClientId=client)


def frames_of_links(bodies: Sequence[Body]) -> dict[tuple[int, int], str]:
    """Return the frame of each link by pybullet's numbers of body and link; of a rigid piece, its base."""
    return {(body.index, link): frame for body in bodies for frame, link in reversed(list(body.links.items()))}


def set_friction(
    bullet: Any, client: int, *, scene: SceneGraph, bodies: Sequence[Body], fingers: Collection[str],
    settings: PhysicsSettings,
) -> None:  # fmt: skip
    """Give every link the friction of its shapes, else of its kind; ``fingers`` theirs; and no other resistance.

    Fingers bear a moment about the normal of a contact, too: what is soft touches by a patch, and of the patch the
    engine keeps a point or two, about which what is held would swing.

    Args:
        bullet: the module ``pybullet``.
        client: index of the connection.
        scene: the scene.
        bodies: bodies of the simulation.
        fingers: frames of the fingers.
        settings: friction of fingers and objects.
    """
    of_kind = {
        "fixed": settings.fixed_friction,
        "object": settings.object_friction,
        "mechanism": settings.robot_friction,
    }
    for body in bodies:
        own = _given_friction(scene, body)
        for frame, link in body.links.items():
            bullet.changeDynamics(
                body.index,
                link,
                lateralFriction=own.get(link, settings.finger_friction if frame in fingers else of_kind[body.kind]),
                spinningFriction=torsion_arm(settings.pad_radius) if frame in fingers else 0.0,
                physicsClientId=client,
            )
        bullet.changeDynamics(  # in a call of its own: with a damping, all the rest would be the base's, too
            body.index, BASE, linearDamping=0.0, angularDamping=0.0, physicsClientId=client
        )


def _given_friction(scene: SceneGraph, body: Body) -> dict[int, float]:
    """Return the friction that the scene gives each link: the largest of its shapes, as pybullet keeps one a link."""
    given: dict[int, float] = {}
    for frame, link in body.links.items():
        for attached in scene.shapes(frame):
            if attached.friction is not None:
                given[link] = max(attached.friction, given.get(link, 0.0))
    return given


def ignore_meant_overlaps(
    bullet: Any, client: int, *, bodies: Sequence[Body], allowed: Iterable[tuple[str, str, str]]
) -> None:
    """Disable collisions of pairs of static bodies that the scene allows, or that overlap at the start.

    Args:
        bullet: the module ``pybullet``.
        client: index of the connection.
        bodies: bodies of the simulation.
        allowed: pairs of frames, with the reason.
    """
    place = {frame: body for body in bodies for frame in body.links}
    frames = frames_of_links(bodies)
    pairs = {(a, b) for a, b, _ in allowed if a in place and b in place}
    bullet.performCollisionDetection(physicsClientId=client)
    for contact in bullet.getContactPoints(physicsClientId=client):
        if contact[8] < -_OVERLAP:
            pairs.add((frames[contact[1], contact[3]], frames[contact[2], contact[4]]))
    for a, b in sorted(pairs):
        body_a, body_b = place[a], place[b]
        if "object" not in (body_a.kind, body_b.kind) and body_a is not body_b:
            bullet.setCollisionFilterPair(
                body_a.index, body_b.index, body_a.links[a], body_b.links[b], 0, physicsClientId=client
            )
