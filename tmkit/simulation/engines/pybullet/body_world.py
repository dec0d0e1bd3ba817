"""The bodies of a simulation by frames: where they are, what touches, and what is fixed to what.

Contacts are told by frames, and sorted. The engine keeps points of contact for as long as two
shapes stay where they are relative to each other, so what is turned while it is held needs its
contacts found anew. Setting the filter of a pair, even to what it was, forgets them.

A constraint on a link that weighs next to nothing drifts away, and a cup or a hand often is such a
link. An object is tied to the heaviest of the links that are rigidly joined to the wanted one. What
the engine says of a constraint's load is in two systems at once: the force along the axes of the
root, the moment about the object's origin and along its axes.

Invariants: an object is attached to a frame once at most, and to two frames only while it goes from
hand to hand; where it is attached it stays as it was at that moment.
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

TOUCHING = 1e-4  # metres of distance up to which two shapes count as touching
OVERLAP = 1e-4  # metres of penetration at the start that mean that two parts are meant to overlap
_HOLDING_FORCE = 2000.0  # newtons that a rigid grasp can bear
_EVERY_LINK = -2  # what pybullet calls all links of a body
_PROBE_RADIUS = 1e-4  # metres of the ball by which distances are measured


class BodyWorld:
    """The bodies of a scene in one connection to the engine; what :class:`tmkit.simulation.Simulation` is made of.

    Args:
        engine: the connection.
        start: the scene at the configuration in which the bodies stand at first.
        settings: densities and friction.
    """

    def __init__(self, engine: Engine, start: Kinematics, *, settings: PhysicsSettings) -> None:
        self._engine, self._start, self._settings = engine, start, settings
        self._scene: SceneGraph = start.scene
        with temporary_folder("meshes") as folder:
            self._bodies = build_bodies(engine, start, settings=settings, folder=folder)
        self._place = {frame: body for body in self._bodies for frame in body.links}
        self._frames = {  # by the engine's numbers of body and link; of a rigid piece, its base
            (body.index, link): frame
            for body in self._bodies
            for frame, link in reversed(list(body.links.items()))
        }
        self._constraints: dict[tuple[str, str], int] = {}  # by object and the frame that holds it
        self._probe: int | None = None

    @property
    def scene(self) -> SceneGraph:
        """The scene that the simulation was built from."""
        return self._scene

    @property
    def settings(self) -> PhysicsSettings:
        """The numbers of the physics."""
        return self._settings

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies of the physics engine, with the frames they carry."""
        return tuple(self._bodies)

    @property
    def objects(self) -> tuple[str, ...]:
        """The movable objects, in the order of the scene."""
        return tuple(body.base for body in self._bodies if body.kind == "object")

    def pose(self, frame: str, *, relative_to: str | None = None) -> Pose:
        """Return relative_to_from_frame, where a frame is now.

        Args:
            frame: any frame of the scene.
            relative_to: the frame that the pose is relative to; the root of its tree if omitted.

        Raises:
            UnknownNameError: no such frame.
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
        if frame not in self._place:
            if frame not in self._scene:
                raise UnknownNameError.of("frame", frame, self._scene.frame_names)
            raise SimulationError(
                f"frame '{frame}' has no body in the simulation: it has no shape and does not move"
            )
        return self._place[frame]

    # --- touching
    # -------------------------------------------------------------------------------------------------

    def touching(self, frame: str) -> tuple[str, ...]:
        """Return the frames whose shapes touch those of the rigid part that ``frame`` belongs to, sorted."""
        body = self._body(frame)
        found = self._engine.getContactPoints(bodyA=body.index)
        link = body.links[frame]
        return tuple(
            sorted({self._frames[c[2], c[4]] for c in found if c[3] == link and c[8] <= TOUCHING})
        )

    def contacts_of(self, frames: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of touching frames of which the first is on a body of one of ``frames``, sorted."""
        found = set()
        for index in sorted({self._body(frame).index for frame in frames}):
            for c in self._engine.getContactPoints(bodyA=index):
                if c[8] <= TOUCHING:
                    found.add((self._frames[index, c[3]], self._frames[c[2], c[4]]))
        return tuple(sorted(found))

    def set_contact(self, name: str, frames: Sequence[str], *, enabled: bool) -> None:
        """Enable or disable collisions of a movable object, or a handle, with frames; they are enabled at first.

        Args:
            name: the object or handle.
            frames: the frames.
            enabled: whether they collide.

        Raises:
            UnknownNameError: no such object or frame.
        """
        body = self._body(name)
        links = sorted(set(body.links.values()) if body.kind == "object" else {body.links[name]})
        others = [(self._body(frame), frame) for frame in frames]
        for other, link in sorted({(there.index, there.links[frame]) for there, frame in others}):
            for own in links:
                self._engine.setCollisionFilterPair(body.index, other, own, link, int(enabled))

    def renew_contacts(self, name: str, frames: Sequence[str]) -> None:
        """Recompute the contacts of an object, or a handle, with frames.

        The engine keeps points of contact for as long as two shapes stay where they are relative to
        each other, with the normals that they had in the world when they were found. So what is
        turned while it is held would be pushed along directions of long ago, and stick to the
        fingers when these open.

        Args:
            name: the object or handle.
            frames: the frames.

        Raises:
            UnknownNameError: no such object or frame.
        """
        self.set_contact(name, frames, enabled=True)

    def distance_to(self, name: str, point: ArrayLike, *, reach: float) -> float:
        """Return how far a point of the root is from the surface of an object or handle, metres; negative inside it.

        Args:
            name: the object, or the frame of a mechanism.
            point: (3,) metres.
            reach: metres beyond which the answer is ``inf``.

        Raises:
            UnknownNameError: no such object or frame.
        """
        body, engine = self._body(name), self._engine
        if self._probe is None:
            self._probe = engine.createCollisionShape(engine.GEOM_SPHERE, radius=_PROBE_RADIUS)
        found = engine.getClosestPoints(
            bodyA=-1,
            bodyB=body.index,
            linkIndexB=_EVERY_LINK if body.kind == "object" else body.links[name],
            distance=reach,
            collisionShapeA=self._probe,
            collisionShapePositionA=[float(value) for value in plain_numbers(point, "point")],
            collisionShapeOrientationA=[0.0, 0.0, 0.0, 1.0],
        )
        return min((float(contact[8]) + _PROBE_RADIUS for contact in found), default=math.inf)

    def _set_friction(self, fingers: Collection[str]) -> None:
        """Give every link the friction of its shapes, else of its kind; ``fingers`` theirs; and no other resistance.

        Fingers bear a moment about the normal of a contact, too. What is soft touches by a patch,
        and of the patch the engine keeps a point or two, about which what is held would swing.
        Their friction is anchored: it takes back what the iterations of the solver leave, by which
        an object of many pieces creeps some millimetres a second.
        """
        settings, change = self._settings, self._engine.changeDynamics
        of_kind = {
            "fixed": settings.fixed_friction,
            "object": settings.object_friction,
            "mechanism": settings.robot_friction,
        }
        for body in self._bodies:
            own = self._given_friction(body)
            for frame, link in body.links.items():
                usual = settings.finger_friction if frame in fingers else of_kind[body.kind]
                spinning = torsion_arm(settings.pad_radius) if frame in fingers else 0.0
                change(
                    body.index,
                    link,
                    lateralFriction=own.get(link, usual),
                    spinningFriction=spinning,
                    frictionAnchor=int(frame in fingers),
                )
            # in a call of its own: with a damping, all the rest would be the base's, too
            change(body.index, BASE, linearDamping=0.0, angularDamping=0.0)

    def _given_friction(self, body: Body) -> dict[int, float]:
        """Return the friction that the scene gives each link: the largest of its shapes, as pybullet keeps one."""
        given: dict[int, float] = {}
        for frame, link in body.links.items():
            for attached in self._scene.shapes(frame):
                if attached.friction is not None:
                    given[link] = max(attached.friction, given.get(link, 0.0))
        return given

    def _ignore_meant_overlaps(self, allowed: Iterable[tuple[str, str]]) -> None:
        """Disable collisions of pairs of static bodies that are allowed, or that overlap now."""
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

    # --- attaching
    # ------------------------------------------------------------------------------------------------

    @property
    def attached(self) -> tuple[str, ...]:
        """The objects that are fixed by :meth:`attach`, in the order in which they were."""
        return tuple(dict.fromkeys(name for name, _ in self._constraints))

    def attach(self, name: str, frame: str) -> None:
        """Fix a movable object, or a handle, to a frame by a constraint, instead of holding it by friction.

        Args:
            name: the object or handle.
            frame: the frame.

        Raises:
            UnknownNameError: no such object or frame.
            SimulationError: the object is attached to the frame already.
        """
        child, parent, engine = self._body(name), self._body(frame), self._engine
        if (name, frame) in self._constraints:
            raise SimulationError(f"object '{name}' is attached already", object=name)
        link, own = self._bearing_link(parent, frame), self._own_link(child, name)
        at_link = (self._link_pose(parent, link) @ self._inertial_of(parent, link)).inverse()
        at_link = at_link @ self._link_pose(child, own)
        at_object = self._inertial_of(child, own).inverse()
        constraint = engine.createConstraint(
            parent.index,
            link,
            child.index,
            own,
            engine.JOINT_FIXED,
            [0.0, 0.0, 0.0],
            list(at_link.translation),
            list(at_object.translation),
            list(at_link.quat_xyzw),
            list(at_object.quat_xyzw),
        )
        engine.changeConstraint(constraint, maxForce=_HOLDING_FORCE)
        self._constraints[name, frame] = constraint

    def detach(self, name: str, frame: str | None = None) -> None:
        """Remove the constraints of an object; nothing happens if there are none.

        Args:
            name: the object or handle.
            frame: frame that it is attached to; any by default.
        """
        remove = self._engine.removeConstraint
        for key in [key for key in self._constraints if key[0] == name and frame in (None, key[1])]:
            remove(self._constraints.pop(key))

    def load(self, name: str, *, on: str, at: str) -> NDArray[np.float64]:
        """Return the force in newtons and moment in newton metres, (6,), of an attached object on what holds it.

        Args:
            name: the object.
            on: the frame that it is attached to.
            at: the frame about whose origin the moment is taken.

        Returns:
            The load of the last step, expressed in the root.

        Raises:
            UnknownNameError: no such object or frame.
            SimulationError: the object is not attached.
        """
        child, about = self._body(name), self.pose(at).translation
        if (name, on) not in self._constraints:
            raise SimulationError(f"object '{name}' is not attached to '{on}'", object=name)
        state = self._engine.getConstraintState(self._constraints[name, on])
        force, moment = np.array(state[:3]), np.array(state[3:])
        root_from_object = self._link_pose(child, self._own_link(child, name))
        lever = root_from_object.translation - about
        return np.concatenate([force, root_from_object.rotate(moment) + np.cross(lever, force)])

    def _inertial_of(self, body: Body, link: int) -> Pose:
        """Return link_from_inertial."""
        if link == BASE:
            return body.base_from_inertial
        info = self._engine.getDynamicsInfo(body.index, link)
        return Pose(info[3], info[4])

    def _own_link(self, body: Body, name: str) -> int:
        """Return the link by which an object, or the frame of a mechanism, is tied."""
        return BASE if body.kind == "object" else self._bearing_link(body, name)

    def _bearing_link(self, body: Body, frame: str) -> int:
        """Return the heaviest link on the fixed edges from a frame up to the next joint."""
        fixed = [frame]
        while self._scene.joint(fixed[-1]).type in ("fixed", "free"):
            above = self._scene.parent(fixed[-1])
            if above is None or above not in body.links:
                break
            fixed.append(above)
        links = dict.fromkeys(body.links[name] for name in fixed)
        return max(links, key=lambda link: float(self._engine.getDynamicsInfo(body.index, link)[0]))
