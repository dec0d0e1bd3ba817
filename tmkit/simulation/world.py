"""A physics simulation built from a scene graph.

Holding a :class:`Simulation` means holding one private pybullet connection in which the scene stands, at a
configuration, under gravity. Nothing is shared between two simulations and there is no default one: every call names
its connection.

How the scene becomes a world (:mod:`tmkit.simulation.pieces` says what belongs together):

* what never moves becomes one fixed body a frame;
* movable objects become free bodies with mass and friction;
* robots and other mechanisms are written as URDF into a private folder, which is gone once they are loaded. So what is
  simulated is the scene, edits included, and not the robot's original file;
* joints that mimic others follow them, and the fingers of a parallel gripper are geared to each other, as in a real
  hand: without that, two equal forces let a held object wander sideways.

Links of one mechanism do not collide with each other, nor do pairs that the scene allows or that already overlap at the
start, unless one of the two is a movable object. Several roots all stand at the origin, as they do for the collision
checker.

Invariant: the same calls give the same numbers, bit for bit, whatever other simulations do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.signals import temporary_folder
from tmkit.errors import SimulationError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules
from tmkit.robots import Manipulator
from tmkit.simulation.attachments import Attachments, link_pose
from tmkit.simulation.bodies import Body, build_bodies, ignore_meant_overlaps, set_friction
from tmkit.simulation.contacts import Contacts
from tmkit.simulation.engine import connect, set_up
from tmkit.simulation.motors import Motors
from tmkit.simulation.pieces import partition
from tmkit.simulation.quiet import load_pybullet, quiet_output
from tmkit.simulation.settings import PhysicsSettings
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers


class Simulation:
    """A scene under physics, in a pybullet connection of its own.

    Make one with :meth:`from_scene`, best in a ``with`` statement; otherwise call :meth:`close`. One simulation must
    not be used from two threads at once; two simulations are independent of each other.

    Args:
        bullet: the module ``pybullet``.
        client: index of the connection.
        scene: the scene.
        q: (n_joints,) start configuration.
        robots: the arms.
        passive: joints without a motor.
        settings: physics settings.
    """

    def __init__(
        self, bullet: Any, client: int, *, scene: SceneGraph, q: NDArray[np.float64], robots: tuple[Manipulator, ...],
        passive: Sequence[str], settings: PhysicsSettings,
    ) -> None:  # fmt: skip
        self._bullet = bullet
        self._client: int | None = client
        self._scene = scene
        self._settings = settings
        self._start = scene.at(q)
        self._q = q
        self._steps = 0
        self._attachments = Attachments(bullet, client, scene=scene)

        self._bodies = self._build()
        self._place = {frame: body for body in self._bodies for frame in body.links}
        self._contacts = Contacts(bullet, client, bodies=self._bodies)
        self._motors = Motors(
            bullet,
            client,
            scene=scene,
            bodies=self._bodies,
            robots=robots,
            gain=settings.position_gain,
            passive={name: settings.joint_friction(scene.joint(scene.joint_frame(name)).type) for name in passive},
        )
        self._robots = robots
        self._motors.place(q)
        still = np.zeros_like(q)
        self._motors.tell(q, still)
        for robot in robots:
            self._motors.tell_fingers(q, still, force=robot.grip_force, arm=robot.name)
        fingers = [link for robot in robots for link in robot.contact_links]
        set_friction(bullet, client, scene=scene, bodies=self._bodies, fingers=fingers, settings=settings)
        parked = CollisionRules.from_start(robots[0], scene, q=q, others=robots[1:]).parked if robots else ()
        overlaps = [*scene.allowed_pairs, *((e.frame_a, e.frame_b, e.reason) for e in parked)]
        ignore_meant_overlaps(bullet, client, bodies=self._bodies, allowed=overlaps)

    @classmethod
    def from_scene(
        cls, scene: SceneGraph, q: ArrayLike | None = None, *, robot: Manipulator | Sequence[Manipulator] | None = None,
        passive: Sequence[str] = (), gui: bool = False, settings: PhysicsSettings | None = None,
    ) -> Simulation:  # fmt: skip
        """Build a simulation in which a scene stands at rest.

        Args:
            scene: the scene.
            q: (n_joints,) configuration; all zeros by default.
            robot: the arm, or the arms, whose hands press with a force; without one every joint is held at its
                position.
            passive: joints that no motor holds, such as that of a drawer; they have friction.
            gui: open pybullet's window.
            settings: the numbers of the physics.

        Raises:
            SimulationError: the scene cannot be simulated, or a window is wanted where there is no screen.
            ConfigurationError: a configuration that does not fit the scene.
            UnknownNameError: no such joint.
        """
        configuration = scene.at(scene.zero_configuration() if q is None else q).q
        for joint in passive:
            if joint not in scene.joint_names:
                raise UnknownNameError.of("joint", joint, scene.joint_names)
        bullet = load_pybullet()
        with quiet_output():
            client = connect(bullet, gui=gui)
            try:
                return cls(
                    bullet,
                    client,
                    scene=scene,
                    q=np.array(plain_numbers(configuration, "configuration")),
                    robots=() if robot is None else (robot,) if isinstance(robot, Manipulator) else tuple(robot),
                    passive=passive,
                    settings=settings or PhysicsSettings(),
                )
            except BaseException:
                bullet.disconnect(physicsClientId=client)
                raise

    def _build(self) -> list[Body]:
        settings = self._settings
        set_up(self._bullet, self.client, settings=settings)
        with temporary_folder("meshes") as folder:
            return build_bodies(
                self._bullet, self.client, scene=self._scene, at=self._start, pieces=partition(self._scene),
                settings=settings, folder=folder,
            )  # fmt: skip

    # --- life -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the simulation and its connection; once is enough, twice does no harm."""
        if self._client is not None:
            with quiet_output():
                self._bullet.disconnect(physicsClientId=self._client)
            self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._client is None else f"{self.time:.3f} s"
        return f"Simulation({len(self._bodies)} bodies, {len(self.objects)} objects, {state})"

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def bullet(self) -> Any:
        """The pybullet module, for what this class does not offer."""
        return self._bullet

    @property
    def client(self) -> int:
        """The number of the connection, to be given to pybullet as ``physicsClientId``.

        Raises:
            SimulationError: the simulation is closed.
        """
        if self._client is None:
            raise SimulationError("this simulation is closed")
        return self._client

    @property
    def scene(self) -> SceneGraph:
        """The scene that the simulation was built from."""
        return self._scene

    @property
    def settings(self) -> PhysicsSettings:
        """The numbers of the physics."""
        return self._settings

    @property
    def time(self) -> float:
        """Simulated seconds since the start."""
        return self._steps * self._settings.time_step

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies of the physics engine, with the frames they carry."""
        return tuple(self._bodies)

    @property
    def objects(self) -> tuple[str, ...]:
        """The movable objects, in the order of the scene."""
        return tuple(body.base for body in self._bodies if body.kind == "object")

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) simulated joint values in the scene's order, radians or metres."""
        self.client  # noqa: B018  raises when closed
        return self._motors.read(self._q)

    def pose(self, frame: str, *, relative_to: str | None = None) -> Pose:
        """Return where a frame is now.

        Args:
            frame: any frame of the scene.
            relative_to: the frame that the pose is relative to; the root of its tree if omitted.

        Returns:
            relative_to_from_frame.

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
        return link_pose(self._bullet, self.client, body=body, link=body.links[frame]) @ body.offsets[frame]

    def current_scene(self) -> SceneGraph:
        """Return the scene with all objects where they are now; each keeps its parent."""
        with self._scene.edit() as edit:
            for name in self.objects:
                edit.set_pose(name, self.pose(name, relative_to=self._scene.parent(name)))
        return edit.finish()

    def speed(self, name: str) -> float:
        """Return the speed of an object's base, m/s, plus a tenth of a metre times its angular speed."""
        body = self._object(name)
        linear, angular = self._bullet.getBaseVelocity(body.index, physicsClientId=self.client)
        return math.hypot(*linear) + 0.1 * math.hypot(*angular)

    def touching(self, frame: str) -> tuple[str, ...]:
        """Return the frames whose shapes touch those of the rigid part that ``frame`` belongs to, sorted."""
        body = self._body(frame)
        self.client  # noqa: B018  raises when closed
        return self._contacts.of_link(body, body.links[frame])

    def contacts_of(self, frames: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of touching frames of which the first is on a body of one of ``frames``, sorted."""
        bodies = [self._body(frame) for frame in frames]
        self.client  # noqa: B018  raises when closed
        return self._contacts.of_bodies(bodies)

    def _body(self, frame: str) -> Body:
        if frame not in self._place:
            if frame not in self._scene:
                raise UnknownNameError.of("frame", frame, self._scene.frame_names)
            raise SimulationError(f"frame '{frame}' has no body in the simulation: it has no shape and does not move")
        return self._place[frame]

    def _object(self, name: str) -> Body:
        body = self._place.get(name)
        if body is None or body.kind != "object" or body.base != name:
            raise UnknownNameError.of("movable object", name, self.objects)
        return body

    # --- acting ---------------------------------------------------------------------------------------------------

    def set_configuration(self, q: ArrayLike) -> None:
        """Put all joints at a configuration (n_joints,), at rest, without physics, and hold them there."""
        values = np.array(self._scene.at(q).q, dtype=float)
        self.client  # noqa: B018  raises when closed
        self._motors.place(values)
        self.command(values)

    def set_object_pose(self, name: str, root_from_object: Pose) -> None:
        """Set the pose of a movable object, with zero velocity.

        Args:
            name: the object.
            root_from_object: pose relative to the root.

        Raises:
            UnknownNameError: no such movable object.
        """
        body = self._object(name)
        pose = root_from_object @ body.base_from_inertial
        self._bullet.resetBasePositionAndOrientation(
            body.index, list(pose.translation), list(pose.quat_xyzw), physicsClientId=self.client
        )
        self._bullet.resetBaseVelocity(body.index, [0.0] * 3, [0.0] * 3, physicsClientId=self.client)

    def command(self, q: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Tell all motors but those of the fingers where to be now, and how fast to go on from there.

        Args:
            q: (n_joints,) wanted positions at this instant, radians or metres.
            velocity: (n_joints,) wanted velocities until the next command; zeros by default.
        """
        self.client  # noqa: B018  raises when closed
        values = plain_numbers(q, "q")
        self._motors.tell(values, np.zeros_like(values) if velocity is None else np.asarray(velocity, dtype=float))

    def command_fingers(self, q: ArrayLike, *, force: float, arm: str | None = None) -> None:
        """Set the targets and forces of the fingers of an arm.

        Args:
            q: (n_joints,) a whole configuration.
            force: newtons.
            arm: name of the arm; all arms by default.
        """
        self.client  # noqa: B018  raises when closed
        values = plain_numbers(q, "q")
        for name in [robot.name for robot in self._robots] if arm is None else [arm]:
            self._motors.tell_fingers(values, np.zeros_like(values), force=force, arm=name)

    def step(self, count: int = 1) -> None:
        """Let ``count`` time steps pass."""
        for _ in range(count):
            self._bullet.stepSimulation(physicsClientId=self.client)
        self._steps += count

    def attach(self, name: str, frame: str) -> None:
        """Fix a movable object, or a handle, to a frame by a constraint, instead of holding it by friction.

        Args:
            name: the object or handle.
            frame: the frame.

        Raises:
            UnknownNameError: no such object or frame.
            SimulationError: the object is attached to the frame already.
        """
        self._attachments.attach(self._body(name), name, parent=self._body(frame), frame=frame)

    def detach(self, name: str, frame: str | None = None) -> None:
        """Remove the constraints of an object; nothing happens if there are none.

        Args:
            name: the object or handle.
            frame: frame that it is attached to; any by default.
        """
        self.client  # noqa: B018  raises when closed
        self._attachments.detach(name, frame)

    @property
    def attached(self) -> tuple[str, ...]:
        """The objects that are fixed by :meth:`attach`."""
        return self._attachments.names

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
        return self._attachments.load(self._body(name), name, frame=on, about=self.pose(at).translation)

    # --- touching -------------------------------------------------------------------------------------------------

    def set_contact(self, name: str, frames: Sequence[str], *, enabled: bool) -> None:
        """Enable or disable collisions of a movable object, or a handle, with frames; they are enabled at first.

        Args:
            name: the object or handle.
            frames: the frames.
            enabled: whether they collide.

        Raises:
            UnknownNameError: no such object or frame.
        """
        child, others = self._body(name), [(self._body(frame), frame) for frame in frames]
        self.client  # noqa: B018  raises when closed
        self._contacts.allow(child, name, others=others, enabled=enabled)

    def renew_contacts(self, name: str, frames: Sequence[str]) -> None:
        """Recompute the contacts of an object, or a handle, with frames.

        The engine keeps points of contact for as long as two shapes stay where they are relative to each other, with
        the normals that they had in the world when they were found. So what is turned while it is held would be pushed
        along directions of long ago, and stick to the fingers when these open.

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
        body, place = self._body(name), [float(value) for value in np.asarray(point, dtype=float)]
        self.client  # noqa: B018  raises when closed
        return self._contacts.distance(body, name, point=place, reach=reach)
