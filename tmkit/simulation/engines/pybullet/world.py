"""A physics simulation built from a scene graph.

Holding a :class:`Simulation` means holding one private pybullet connection in which the scene
stands, at a configuration, under gravity. Nothing is shared between two simulations and there is no
default one: every call names its connection.

How the scene becomes a world (:mod:`tmkit.simulation.pieces` says what belongs together):

* what never moves becomes one fixed body a frame;
* movable objects become free bodies with mass and friction;
* robots and other mechanisms are written as URDF into a private folder, which is gone once they are
  loaded. So what is simulated is the scene, edits included, and not the robot's original file;
* joints that mimic others follow them, and the fingers of a parallel gripper are geared to each
  other, as in a real hand: without that, two equal forces let a held object wander sideways.

Links of one mechanism do not collide with each other, nor do pairs that the scene allows or that
already overlap at the start, unless one of the two is a movable object. Several roots all stand at
the origin, as they do for the collision checker.

Invariant: the same calls give the same numbers, bit for bit, whatever other simulations do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.closing import Closing
from tmkit.errors import UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules
from tmkit.robots import Manipulator
from tmkit.simulation.engines.pybullet.bodies import Body
from tmkit.simulation.engines.pybullet.body_world import BodyWorld
from tmkit.simulation.engines.pybullet.engine import Engine
from tmkit.simulation.engines.pybullet.motors import Motors
from tmkit.simulation.engines.pybullet.quiet import quiet_output
from tmkit.simulation.settings import PhysicsSettings
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers


class Simulation(BodyWorld, Closing):
    """A scene under physics, in a pybullet connection of its own, or in MuJoCo as :class:`MujocoSimulation`.

    Make one with :meth:`from_scene`, best in a ``with`` statement; otherwise call :meth:`close`.
    One simulation must not be used from two threads at once; two simulations are independent of
    each other.

    Args:
        engine: the connection.
        scene: the scene.
        q: (n_joints,) start configuration.
        robots: the arms.
        passive: joints without a motor.
        settings: physics settings.
    """

    engine_name: ClassVar[str] = "pybullet"

    def __init__(
        self,
        engine: Engine,
        *,
        scene: SceneGraph,
        q: NDArray[np.float64],
        robots: tuple[Manipulator, ...],
        passive: Sequence[str],
        settings: PhysicsSettings,
    ) -> None:
        super().__init__(engine, scene.at(q), settings=settings)
        self._q = q
        self._steps = 0
        self._robots = robots
        friction = {
            name: settings.joint_friction(scene.joint(scene.joint_frame(name)).type)
            for name in passive
        }
        self._motors = Motors(
            engine,
            scene=scene,
            bodies=self._bodies,
            robots=robots,
            gain=settings.position_gain,
            passive=friction,
        )
        self._motors.place(q)
        still = np.zeros_like(q)
        self._motors.tell(q, still)
        for robot in robots:
            self._motors.tell(q, still, arm=robot.name, force=robot.grip_force)
        self._set_friction([link for robot in robots for link in robot.contact_links])
        self._ignore_meant_overlaps(self._allowed_pairs())

    def _allowed_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs that the scene allows, and those by which parked arms touch."""
        first, *others = self._robots or (None,)
        allowed = [(a, b) for a, b, _ in self._scene.allowed_pairs]
        if first is None:
            return allowed
        rules = CollisionRules.from_start(first, self._scene, q=self._q, other_arms=tuple(others))
        return allowed + [(pair.frame_a, pair.frame_b) for pair in rules.start_overlaps]

    @classmethod
    def from_scene(
        cls,
        scene: SceneGraph,
        q: ArrayLike | None = None,
        *,
        robot: Manipulator | Sequence[Manipulator] | None = None,
        passive: Sequence[str] = (),
        gui: bool = False,
        settings: PhysicsSettings | None = None,
    ) -> Self:
        """Build a simulation in which a scene stands at rest.

        Args:
            scene: the scene.
            q: (n_joints,) configuration; all zeros by default.
            robot: the arm, or the arms, whose hands press with a force; without one every joint is
                held at its position.
            passive: joints that no motor holds, such as that of a drawer; they have friction.
            gui: open pybullet's window.
            settings: the numbers of the physics.

        Raises:
            SimulationError: the scene cannot be simulated, or a window is wanted where there is no
                screen.
            MissingExtraError: the engine is not installed.
            ConfigurationError: a configuration that does not fit the scene.
            UnknownNameError: no such joint.
        """
        configuration = scene.at(scene.zero_configuration() if q is None else q).q
        for joint in passive:
            if joint not in scene.joint_names:
                raise UnknownNameError.of("joint", joint, scene.joint_names)
        settings = settings or PhysicsSettings()
        values = np.array(plain_numbers(configuration, "configuration"))
        robots = (
            () if robot is None else (robot,) if isinstance(robot, Manipulator) else tuple(robot)
        )
        return cls._opened(scene, values, robots, passive, gui=gui, settings=settings)

    @classmethod
    def _opened(
        cls,
        scene: SceneGraph,
        q: NDArray[np.float64],
        robots: tuple[Manipulator, ...],
        passive: Sequence[str],
        *,
        gui: bool,
        settings: PhysicsSettings,
    ) -> Self:
        with quiet_output():
            engine = Engine(settings, gui=gui)
            try:
                return cls(
                    engine, scene=scene, q=q, robots=robots, passive=passive, settings=settings
                )
            except BaseException:
                engine.close()
                raise

    # --- life
    # -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the simulation and its connection; once is enough, twice does no harm."""
        self._engine.close()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"{self.time:.3f} s"
        return f"Simulation({len(self._bodies)} bodies, {len(self.objects)} objects, {state})"

    # --- reading
    # --------------------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether the simulation was closed."""
        return self._engine.is_closed

    @property
    def bullet(self) -> Any:
        """The pybullet module, for what this class does not offer."""
        return self._engine.bullet

    @property
    def client(self) -> int:
        """The number of the connection, to be given to pybullet as ``physicsClientId``.

        Raises:
            SimulationError: the simulation is closed.
        """
        return self._engine.client

    @property
    def time(self) -> float:
        """Simulated seconds since the start."""
        return self._steps * self._settings.time_step

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) simulated joint values in the scene's order, radians or metres."""
        self.client  # noqa: B018  raises when closed
        return self._motors.read(self._q)

    def current_scene(self) -> SceneGraph:
        """Return the scene with all objects where they are now; each keeps its parent."""
        with self._scene.edit() as edit:
            for name in self.objects:
                edit.set_pose(name, self.pose(name, relative_to=self._scene.parent(name)))
        return edit.finish()

    def speed(self, name: str) -> float:
        """Return the speed of an object's base, m/s, plus a tenth of a metre times its angular speed."""
        body = self._object(name)
        linear, angular = self._engine.getBaseVelocity(body.index)
        return math.hypot(*linear) + 0.1 * math.hypot(*angular)

    def _object(self, name: str) -> Body:
        body = self._place.get(name)
        if body is None or body.kind != "object" or body.base != name:
            raise UnknownNameError.of("movable object", name, self.objects)
        return body

    # --- acting
    # ---------------------------------------------------------------------------------------------------

    def set_configuration(self, q: ArrayLike) -> None:
        """Put all joints at a configuration (n_joints,), at rest, without physics, and hold them there."""
        values = np.array(self._scene.at(q).q, dtype=float)
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
        self._engine.resetBasePositionAndOrientation(
            body.index, list(pose.translation), list(pose.quat_xyzw)
        )
        self._engine.resetBaseVelocity(body.index, [0.0] * 3, [0.0] * 3)

    def command(self, q: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Tell all motors but those of the fingers where to be now, and how fast to go on from there.

        Args:
            q: (n_joints,) wanted positions at this instant, radians or metres.
            velocity: (n_joints,) wanted velocities until the next command; zeros by default.
        """
        self.client  # noqa: B018  raises when closed
        values = plain_numbers(q, "q")
        self._motors.tell(
            values,
            np.zeros_like(values) if velocity is None else plain_numbers(velocity, "velocity"),
        )

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
            self._motors.tell(values, np.zeros_like(values), arm=name, force=force)

    def step(self, count: int = 1) -> None:
        """Let ``count`` time steps pass."""
        for _ in range(count):
            self._engine.stepSimulation()
        self._steps += count
