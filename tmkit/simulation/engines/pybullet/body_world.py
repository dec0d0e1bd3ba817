"""Bodies of a simulation by frames: poses, contacts and attachments.

Contacts are sorted pairs of frames. The engine keeps a contact point while two shapes keep their
relative pose. The contacts of an object that rotates in the hand must therefore be renewed. A call
that sets the collision filter of a pair, even to its current value, removes them.

A constraint on a link of negligible mass drifts, and a cup or hand is often such a link. An object
is therefore attached to the heaviest of the links in the same rigid group. The engine reports the
load of a constraint in two systems at once. The force is in root axes, and the moment is about the
object's origin and in its axes.

Invariants: an object is attached to a frame once at most. It is attached to two frames only during
a handover. An attached object keeps its relative pose.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.signals import temporary_folder
from tmkit.errors import SimulationError, UnknownNameError
from tmkit.graph import Kinematics, SceneGraph
from tmkit.manipulation.grasps.holding import torsion_arm
from tmkit.simulation.engines.pybullet.bodies import BASE, Body, build_bodies
from tmkit.simulation.engines.pybullet.engine import Engine
from tmkit.simulation.settings import PhysicsSettings
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

TOUCHING = 1e-4
"""Largest distance of two shapes in contact [m]."""

OVERLAP = 1e-4
"""Penetration at the start from which on a pair counts as an intended overlap [m]."""

_MAX_CONSTRAINT_FORCE = 2000.0
"""Largest force of a constraint between an object and a frame [N]."""

_EVERY_LINK = -2
"""pybullet's link index for all links of a body."""

PROBE_RADIUS = 1e-4
"""Radius of the sphere that measures distances [m]."""


class BodyWorld:
    """Bodies of a scene in one connection to the engine, the base of :class:`Simulation`.

    Args:
        engine: connection to pybullet.
        start: scene at the start configuration.
        settings: densities and friction.
    """

    def __init__(self, engine: Engine, start: Kinematics, *, settings: PhysicsSettings) -> None:
        self._engine, self._start, self._settings = engine, start, settings
        self._scene: SceneGraph = start.scene
        with temporary_folder("meshes") as folder:
            self._bodies = build_bodies(engine, start, settings=settings, folder=folder)
        self._place = {frame: body for body in self._bodies for frame in body.links}
        # Frames by the engine's indices of body and link. The base represents a rigid piece.
        self._frames = {
            (body.index, link): frame
            for body in self._bodies
            for frame, link in reversed(list(body.links.items()))
        }
        self._constraints: dict[tuple[str, str], int] = {}  # by object and the frame that holds it
        self._probe: int | None = None

    @property
    def scene(self) -> SceneGraph:
        """Scene from which the simulation was built."""
        return self._scene

    @property
    def settings(self) -> PhysicsSettings:
        """Physical parameters."""
        return self._settings

    @property
    def bodies(self) -> tuple[Body, ...]:
        """Bodies of the physics engine, with their frames."""
        return tuple(self._bodies)

    @property
    def objects(self) -> tuple[str, ...]:
        """Movable objects in the order of the scene."""
        return tuple(body.base for body in self._bodies if body.kind == "object")

    def pose(self, frame: str, *, relative_to: str | None = None) -> Pose:
        """Return the current relative_to_from_frame.

        Args:
            frame: any frame of the scene.
            relative_to: reference frame. Defaults to the root of the frame's tree.

        Raises:
            UnknownNameError: if a frame is unknown.
        """
        if relative_to is not None:
            return self.pose(relative_to).inverse() @ self.pose(frame)
        body = self._place.get(frame)
        if body is None or body.kind == "fixed":
            if frame not in self._scene:
                raise UnknownNameError.of("frame", frame, self._scene.frame_names)
            return self._start.pose(frame)
        return self._link_pose(body, body.links[frame]) @ body.offsets[frame]

    def _link_pose(self, body: Body, link: int) -> Pose:
        """Return the pose of a link, or of the base, relative to the root."""
        if link == BASE:
            return (
                Pose(*self._engine.getBasePositionAndOrientation(body.index))
                @ body.base_from_inertial.inverse()
            )
        state = self._engine.getLinkState(body.index, link, computeForwardKinematics=1)
        return Pose(state[4], state[5])

    def _body(self, frame: str) -> Body:
        """Return the body of a frame.

        Raises:
            UnknownNameError: if the frame is unknown.
            SimulationError: if the frame has no body.
        """
        if frame not in self._place:
            if frame not in self._scene:
                raise UnknownNameError.of("frame", frame, self._scene.frame_names)
            raise SimulationError(
                f"frame '{frame}' has no body in the simulation: it has no shape and does not move"
            )
        return self._place[frame]

    # --- contacts

    def touching(self, frame: str) -> tuple[str, ...]:
        """Return the frames in contact with the rigid link that contains ``frame``, sorted."""
        body = self._body(frame)
        contacts = self._engine.getContactPoints(bodyA=body.index)
        link = body.links[frame]
        return tuple(
            sorted(
                {self._frames[c[2], c[4]] for c in contacts if c[3] == link and c[8] <= TOUCHING}
            )
        )

    def contacts_of(self, frames: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of frames in contact, first those on bodies of ``frames``, sorted."""
        pairs = set()
        for index in sorted({self._body(frame).index for frame in frames}):
            for c in self._engine.getContactPoints(bodyA=index):
                if c[8] <= TOUCHING:
                    pairs.add((self._frames[index, c[3]], self._frames[c[2], c[4]]))
        return tuple(sorted(pairs))

    def set_contact(self, name: str, frames: Sequence[str], *, enabled: bool) -> None:
        """Enable or disable collisions of an object or handle with frames. Initially enabled.

        Args:
            name: the object or handle.
            frames: the frames.
            enabled: whether they collide.

        Raises:
            UnknownNameError: if the object or a frame is unknown.
        """
        body = self._body(name)
        object_links = sorted(
            set(body.links.values()) if body.kind == "object" else {body.links[name]}
        )
        partners = {(self._body(frame).index, self._body(frame).links[frame]) for frame in frames}
        for partner, partner_link in sorted(partners):
            for link in object_links:
                self._engine.setCollisionFilterPair(
                    body.index, partner, link, partner_link, int(enabled)
                )

    def renew_contacts(self, name: str, frames: Sequence[str]) -> None:
        """Renew the contacts of an object or handle with frames.

        The engine keeps contact points while two shapes keep their relative pose, with the initial
        normals in root axes. An object that rotates in the hand would otherwise be pushed along
        outdated directions, and stick to the opening fingers.

        Args:
            name: the object or handle.
            frames: the frames.

        Raises:
            UnknownNameError: if the object or a frame is unknown.
        """
        self.set_contact(name, frames, enabled=True)

    def distance_to(self, name: str, point: ArrayLike, *, reach: float) -> float:
        """Return the signed distance of a point from the surface of an object or handle [m].

        The distance is negative inside the object.

        Args:
            name: the object, or the frame of a mechanism.
            point: (3,) point in the root frame [m].
            reach: distance from which on the result is ``inf`` [m].

        Raises:
            UnknownNameError: if the object is unknown.
        """
        body, engine = self._body(name), self._engine
        if self._probe is None:
            self._probe = engine.createCollisionShape(engine.GEOM_SPHERE, radius=PROBE_RADIUS)
        contacts = engine.getClosestPoints(
            bodyA=-1,
            bodyB=body.index,
            linkIndexB=_EVERY_LINK if body.kind == "object" else body.links[name],
            distance=reach,
            collisionShapeA=self._probe,
            collisionShapePositionA=[float(value) for value in plain_numbers(point, "point", "m")],
            collisionShapeOrientationA=[0.0, 0.0, 0.0, 1.0],
        )
        return min((float(contact[8]) + PROBE_RADIUS for contact in contacts), default=math.inf)

    def _set_friction(self, fingers: Collection[str]) -> None:
        """Set the friction of every link, by its shapes or its kind, and disable damping.

        Fingers also have torsional friction about the normal of a contact. A soft finger touches by
        a patch, of which the engine keeps one or two points, so that a held object would swing. The
        friction of fingers is anchored. The anchor removes the residual errors of the solver, by
        which an object of many pieces creeps some millimetres a second.

        Args:
            fingers: frames with the friction of fingers.
        """
        settings, change = self._settings, self._engine.changeDynamics
        default_friction = {
            "fixed": settings.fixed_friction,
            "object": settings.object_friction,
            "mechanism": settings.robot_friction,
        }
        for body in self._bodies:
            friction = self._shape_friction(body)
            for frame, link in body.links.items():
                is_finger = frame in fingers
                default = settings.finger_friction if is_finger else default_friction[body.kind]
                change(
                    body.index,
                    link,
                    lateralFriction=friction.get(link, default),
                    spinningFriction=torsion_arm(settings.pad_radius) if is_finger else 0.0,
                    frictionAnchor=int(is_finger),
                )
            # In the same call as a damping, friction would be set on the base instead.
            change(body.index, BASE, linearDamping=0.0, angularDamping=0.0)

    def _shape_friction(self, body: Body) -> dict[int, float]:
        """Return the largest friction of the shapes of each link, because pybullet stores one."""
        friction: dict[int, float] = {}
        for frame, link in body.links.items():
            for attached in self._scene.shapes(frame):
                if attached.friction is not None:
                    friction[link] = max(attached.friction, friction.get(link, 0.0))
        return friction

    def _ignore_overlaps(self, allowed: Iterable[tuple[str, str]]) -> None:
        """Disable collisions of pairs without objects that are allowed, or that overlap now."""
        place, engine = self._place, self._engine
        pairs = {(a, b) for a, b in allowed if a in place and b in place}
        engine.performCollisionDetection()
        for contact in engine.getContactPoints():
            if contact[8] < -OVERLAP:
                pairs.add(
                    (self._frames[contact[1], contact[3]], self._frames[contact[2], contact[4]])
                )
        for a, b in sorted(pairs):
            body_a, body_b = place[a], place[b]
            if "object" not in (body_a.kind, body_b.kind) and body_a is not body_b:
                engine.setCollisionFilterPair(
                    body_a.index, body_b.index, body_a.links[a], body_b.links[b], 0
                )

    # --- attachments

    @property
    def attached(self) -> tuple[str, ...]:
        """Objects fixed by :meth:`attach`, in order of their attachment."""
        return tuple(dict.fromkeys(name for name, _ in self._constraints))

    def attach(self, name: str, frame: str) -> None:
        """Fix an object or handle to a frame by a constraint, instead of by friction.

        Args:
            name: the object or handle.
            frame: the frame.

        Raises:
            UnknownNameError: if the object or frame is unknown.
            SimulationError: if the object is already attached to the frame.
        """
        child, parent, engine = self._body(name), self._body(frame), self._engine
        if (name, frame) in self._constraints:
            raise SimulationError(f"object '{name}' is attached already", object=name)
        link, child_link = self._bearing_link(parent, frame), self._attached_link(child, name)
        root_from_inertial = self._link_pose(parent, link) @ self._inertial_of(parent, link)
        parent_pose = root_from_inertial.inverse() @ self._link_pose(child, child_link)
        child_pose = self._inertial_of(child, child_link).inverse()
        constraint = engine.createConstraint(
            parent.index,
            link,
            child.index,
            child_link,
            engine.JOINT_FIXED,
            [0.0, 0.0, 0.0],
            list(parent_pose.translation),
            list(child_pose.translation),
            list(parent_pose.quat_xyzw),
            list(child_pose.quat_xyzw),
        )
        engine.changeConstraint(constraint, maxForce=_MAX_CONSTRAINT_FORCE)
        self._constraints[name, frame] = constraint

    def detach(self, name: str, frame: str | None = None) -> None:
        """Remove the constraints of an object, if any.

        Args:
            name: the object or handle.
            frame: frame to which the object is attached. Defaults to all.
        """
        remove = self._engine.removeConstraint
        for key in [key for key in self._constraints if key[0] == name and frame in (None, key[1])]:
            remove(self._constraints.pop(key))

    def load(self, name: str, *, on: str, at: str) -> NDArray[np.float64]:
        """Return force and moment (6,) of an attached object on its parent [N, N m].

        Args:
            name: the object.
            on: frame to which the object is attached.
            at: frame of which the origin is the reference point of the moment.

        Returns:
            (6,) load of the last step, in root axes.

        Raises:
            UnknownNameError: if the object or a frame is unknown.
            SimulationError: if the object is not attached.
        """
        child, reference = self._body(name), self.pose(at).translation
        if (name, on) not in self._constraints:
            raise SimulationError(f"object '{name}' is not attached to '{on}'", object=name)
        state = self._engine.getConstraintState(self._constraints[name, on])
        force, moment = np.array(state[:3]), np.array(state[3:])
        root_from_object = self._link_pose(child, self._attached_link(child, name))
        lever = root_from_object.translation - reference
        return np.concatenate([force, root_from_object.rotate(moment) + np.cross(lever, force)])

    def _inertial_of(self, body: Body, link: int) -> Pose:
        """Return link_from_inertial."""
        if link == BASE:
            return body.base_from_inertial
        info = self._engine.getDynamicsInfo(body.index, link)
        return Pose(info[3], info[4])

    def _attached_link(self, body: Body, name: str) -> int:
        """Return the link at which an object, or the frame of a mechanism, is attached."""
        return BASE if body.kind == "object" else self._bearing_link(body, name)

    def _bearing_link(self, body: Body, frame: str) -> int:
        """Return the heaviest link on the fixed joints from a frame up to the next moving joint."""
        frames = [frame]
        while self._scene.joint(frames[-1]).type in ("fixed", "free"):
            parent = self._scene.parent(frames[-1])
            if parent is None or parent not in body.links:
                break
            frames.append(parent)
        links = dict.fromkeys(body.links[name] for name in frames)
        return max(links, key=lambda link: float(self._engine.getDynamicsInfo(body.index, link)[0]))
