"""Physics simulation of a scene graph.

A :class:`Simulation` owns one private pybullet connection with a scene under gravity. Simulations
share no state, and there is no default simulation: every call names its connection.

The pieces of a scene (:mod:`tmkit.simulation.pieces`) become bodies as follows:

* each fixed frame becomes one fixed body;
* movable objects become free bodies with mass and friction;
* robots and other mechanisms are written as URDF files into a private folder, which is removed
  after loading. The simulation thus contains all edits of the scene, unlike the robot's original
  file;
* joints that mimic others follow them. The fingers of a parallel gripper are coupled by a gear.
  Without it, two equal forces would let a held object drift sideways.

Some pairs do not collide, unless one of the two is a movable object: links of one mechanism, pairs
that the scene allows, and pairs that overlap at the start. Several roots coincide at the origin, as
in the collision checker.

Invariant: the same calls give the same numbers, bit for bit, independently of other simulations.
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
from tmkit.robots.robot_files import Robots, resolve_robots
from tmkit.simulation.engines.pybullet.bodies import Body
from tmkit.simulation.engines.pybullet.body_world import BodyWorld
from tmkit.simulation.engines.pybullet.engine import Engine
from tmkit.simulation.engines.pybullet.motors import Motors
from tmkit.simulation.engines.pybullet.quiet import quiet_output
from tmkit.simulation.settings import PhysicsSettings
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers


class Simulation(BodyWorld, Closing):
    """Scene under physics in a private pybullet connection. MuJoCo: :class:`MujocoSimulation`.

    Construct it with :meth:`from_scene`, preferably in a ``with`` statement, or call :meth:`close`
    at the end. One simulation must not be used from two threads at once. Two simulations are
    independent of each other.

    Args:
        engine: connection to pybullet.
        scene: the scene.
        q: (n_joints,) start configuration.
        robots: arms with hands.
        passive: joints without a motor.
        settings: physical parameters.
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
        rest = np.zeros_like(q)
        self._motors.set_targets(q, rest)
        for robot in robots:
            self._motors.set_targets(q, rest, arm=robot.name, force=robot.grip_force)
        self._set_friction([link for robot in robots for link in robot.contact_links])
        self._ignore_overlaps(self._allowed_pairs())

    def _allowed_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs that the scene allows, and the contacts of parked arms."""
        first = self._robots[0] if self._robots else None
        allowed = [(a, b) for a, b, _ in self._scene.allowed_pairs]
        if first is None:
            return allowed
        rules = CollisionRules.from_start(
            first, self._scene, q=self._q, other_arms=tuple(self._robots[1:])
        )
        return allowed + [(pair.frame_a, pair.frame_b) for pair in rules.start_overlaps]

    @classmethod
    def from_scene(
        cls,
        scene: SceneGraph,
        q: ArrayLike | None = None,
        *,
        robot: Robots | None = None,
        passive: Sequence[str] = (),
        gui: bool = False,
        settings: PhysicsSettings | None = None,
    ) -> Self:
        """Build a simulation of a scene at rest.

        Args:
            scene: the scene.
            q: (n_joints,) start configuration. Defaults to zeros.
            robot: names or descriptions of the arm or arms whose hands press with a force. Without
                arms, every joint keeps its position.
            passive: joints without motor, such as that of a drawer. They have friction.
            gui: whether to open pybullet's window.
            settings: physical parameters.

        Raises:
            SimulationError: if the scene cannot be simulated, or ``gui`` is true without a screen.
            MissingExtraError: if the engine is not installed.
            ConfigurationError: if the configuration does not fit the scene.
            UnknownNameError: if a joint is unknown.
        """
        configuration = scene.at(scene.zero_configuration() if q is None else q).q
        for joint in passive:
            if joint not in scene.joint_names:
                raise UnknownNameError.of("joint", joint, scene.joint_names)
        settings = settings or PhysicsSettings()
        values = np.array(plain_numbers(configuration, "configuration"))
        robots = () if robot is None else resolve_robots(robot, scene, function="from_scene")
        return cls._open(scene, values, robots, passive, gui=gui, settings=settings)

    @classmethod
    def _open(
        cls,
        scene: SceneGraph,
        q: NDArray[np.float64],
        robots: tuple[Manipulator, ...],
        passive: Sequence[str],
        *,
        gui: bool,
        settings: PhysicsSettings,
    ) -> Self:
        """Open the engine, and close it again if the scene cannot be simulated."""
        with quiet_output():
            engine = Engine(settings, gui=gui)
            try:
                return cls(
                    engine, scene=scene, q=q, robots=robots, passive=passive, settings=settings
                )
            except BaseException:
                engine.close()
                raise

    # --- end

    def close(self) -> None:
        """End the simulation and its connection. A second call has no effect."""
        self._engine.close()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"{self.time:.3f} s"
        return f"Simulation({len(self._bodies)} bodies, {len(self.objects)} objects, {state})"

    # --- state

    @property
    def is_closed(self) -> bool:
        """Return whether the simulation is closed."""
        return self._engine.is_closed

    @property
    def bullet(self) -> Any:
        """The pybullet module, for functions that this class does not offer."""
        return self._engine.bullet

    @property
    def client(self) -> int:
        """Number of the connection, pybullet's ``physicsClientId``.

        Raises:
            SimulationError: if the simulation is closed.
        """
        return self._engine.client

    @property
    def time(self) -> float:
        """Simulated time since the start [s]."""
        return self._steps * self._settings.time_step

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) simulated joint positions in the scene's order [rad or m]."""
        self.client  # noqa: B018  raises if closed
        return self._motors.read(self._q)

    def current_scene(self) -> SceneGraph:
        """Return the scene with the current poses of all objects. Parents stay the same."""
        with self._scene.edit() as edit:
            for name in self.objects:
                edit.set_pose(name, self.pose(name, relative_to=self._scene.parent(name)))
        return edit.finish()

    def speed(self, name: str) -> float:
        """Return the speed of an object's base plus 0.1 m times its angular speed [m/s]."""
        body = self._object(name)
        linear, angular = self._engine.getBaseVelocity(body.index)
        return math.hypot(*linear) + 0.1 * math.hypot(*angular)

    def _object(self, name: str) -> Body:
        """Return the body of a movable object.

        Raises:
            UnknownNameError: if the name is not that of a movable object.
        """
        body = self._place.get(name)
        if body is None or body.kind != "object" or body.base != name:
            raise UnknownNameError.of("movable object", name, self.objects)
        return body

    # --- commands

    def set_configuration(self, q: ArrayLike) -> None:
        """Set all joints to a configuration (n_joints,), at rest, and command it."""
        values = np.array(self._scene.at(q).q, dtype=float)
        self._motors.place(values)
        self.command(values)

    def set_object_pose(self, name: str, root_from_object: Pose) -> None:
        """Set the pose of a movable object, with zero velocity.

        Args:
            name: the object.
            root_from_object: pose relative to the root.

        Raises:
            UnknownNameError: if the name is not that of a movable object.
        """
        body = self._object(name)
        pose = root_from_object @ body.base_from_inertial
        self._engine.resetBasePositionAndOrientation(
            body.index, list(pose.translation), list(pose.quat_xyzw)
        )
        self._engine.resetBaseVelocity(body.index, [0.0] * 3, [0.0] * 3)

    def command(self, q: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Set the targets of all motors except those of fingers.

        Args:
            q: (n_joints,) target positions at the current time [rad or m].
            velocity: (n_joints,) target velocities until the next command [rad/s or m/s]. Defaults
                to zeros.
        """
        self.client  # noqa: B018  raises if closed
        values = plain_numbers(q, "q")
        speeds = np.zeros_like(values) if velocity is None else plain_numbers(velocity, "velocity")
        self._motors.set_targets(values, speeds)

    def command_fingers(self, q: ArrayLike, *, force: float, arm: str | None = None) -> None:
        """Set the targets and forces of the fingers of an arm.

        Args:
            q: (n_joints,) configuration with the target positions [rad or m].
            force: force of each finger [N].
            arm: name of the arm. Defaults to all arms.
        """
        self.client  # noqa: B018  raises if closed
        values = plain_numbers(q, "q")
        for name in [robot.name for robot in self._robots] if arm is None else [arm]:
            self._motors.set_targets(values, np.zeros_like(values), arm=name, force=force)

    def step(self, count: int = 1) -> None:
        """Run ``count`` time steps."""
        for _ in range(count):
            self._engine.stepSimulation()
        self._steps += count
