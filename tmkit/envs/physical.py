"""Gymnasium environment with joint velocities and gripper commands in a physics engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.batch import ProblemSource
from tmkit.envs.symbolic import (
    SEEDS,
    FactTable,
    ObservationKind,
    context_of,
    goal_facts,
    gymnasium,
    source_of,
    spaces,
)
from tmkit.errors import ConfigurationError
from tmkit.simulation import Camera, PhysicsSettings, Simulation, fit_camera, render
from tmkit.tamp.problem import PlanningProblem
from tmkit.world.detections import rest_on_support

_POSE_WIDTH = 7
"""Numbers of a pose: position and quaternion."""

_OBSERVATION_BOUND = 1000.0
"""Bound of joint values and positions in the observation space [rad or m]."""


class PhysicalEnv(gymnasium.Env[Any, Any]):
    """Environment with joint velocities as actions, simulated in pybullet.

    An action concatenates, for each arm, its joint velocities and one gripper command. Velocities
    are fractions of their limits in [-1, 1]. A positive command opens the gripper, a negative one
    closes it with the grip force. The goal is evaluated at the simulated poses of the objects. The
    reward is 1 when the goal holds, which ends an episode, and 0 otherwise.

    Args:
        source: the problems, as for :class:`tmkit.envs.SymbolicEnv`.
        parameters: parameters of the generator.
        observation: ``array``: joint values and the pose of each movable object relative to the
            root (x, y, z and the quaternion x, y, z, w). ``graph``: the true facts, as in
            :class:`tmkit.envs.SymbolicEnv`. ``picture``: an image of ``size``.
        rate: action frequency [1/s].
        max_steps: steps after which an episode is truncated.
        size: width and height of images [pixels].
        render_mode: ``rgb_array`` for :meth:`render`.

    Attributes:
        objects: the movable objects, in the order of the observation.

    Raises:
        ConfigurationError: if the kind of observation is unknown, or the rate is not positive or
            exceeds that of the physics engine.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        source: ProblemSource | PlanningProblem | str = "swaps",
        *,
        parameters: Mapping[str, Any] | None = None,
        observation: ObservationKind = "array",
        rate: float = 10.0,
        max_steps: int = 500,
        size: tuple[int, int] = (160, 120),
        render_mode: str | None = None,
    ) -> None:
        if observation not in ("array", "graph", "picture"):
            raise ConfigurationError(
                f"observation must be 'array', 'graph' or 'picture', not {observation!r}"
            )
        settings = PhysicsSettings()
        if not 0.0 < rate <= 1.0 / settings.time_step:
            raise ConfigurationError(
                f"rate must be positive and at most {1.0 / settings.time_step:g}, not {rate!r}"
            )
        self.source = source_of(source, parameters)
        self.max_steps = max_steps
        self.render_mode = render_mode
        self._observation = observation
        self._size = size
        self._settings = settings
        self._substeps = round(1.0 / (rate * settings.time_step))
        self._context, _ = context_of(self.source, 0, None)
        self._table = FactTable(self._context.problem)
        scene, arms = self._context.scene, self._context.robots
        self._joints = [[scene.joint_names.index(joint) for joint in arm.joints] for arm in arms]
        self._speeds = [arm.velocity_limits(scene) for arm in arms]
        self.action_space = spaces.Box(
            -1.0, 1.0, (sum(map(len, self._joints)) + len(arms),), np.float32
        )
        self._simulation: Simulation | None = None
        self._camera: Camera | None = None
        self.objects: tuple[str, ...] = ()
        self._begin(0, {})
        observation_spaces: dict[str, spaces.Space[Any]] = {
            "array": spaces.Box(
                -_OBSERVATION_BOUND,
                _OBSERVATION_BOUND,
                (len(scene.joint_names) + _POSE_WIDTH * len(self.objects),),
                np.float64,
            ),
            "graph": self._table.graph_space(),
            "picture": spaces.Box(0, 255, (size[1], size[0], 3), np.uint8),
        }
        self.observation_space = observation_spaces[observation]

    def _begin(self, seed: int, options: Mapping[str, Any] | None) -> int:
        self._context, number = context_of(self.source, seed, options)
        self._table.require_same(self._context.problem, number)
        self.close()
        context = self._context
        self._simulation = Simulation.from_scene(
            context.scene, context.q, robot=context.robots, settings=self._settings
        )
        self.objects = tuple(self._simulation.objects)
        self._target = np.array(context.q)
        self._steps = 0
        self._camera = None
        self._goal = goal_facts(context.problem.goal)
        self._types = {name: types[0] for name, types in context.problem.objects.items()}
        return number

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the next problem, or with that of the seed ``options["problem"]``.

        Args:
            seed: seed of the sequence of problems.
            options: ``problem``, if given, is the seed of the problem.
        """
        super().reset(seed=seed)
        number = self._begin(int(self.np_random.integers(SEEDS)), options)
        return self._observe(), {"problem": number}

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Simulate one period of an action."""
        simulation = self._require_simulation()
        context = self._context
        command = np.clip(np.asarray(action, dtype=np.float64), -1.0, 1.0)
        velocity = np.zeros(len(self._target))
        offset = 0
        lower, upper = context.scene.joint_limits.T
        for arm, joints, speeds in zip(context.robots, self._joints, self._speeds, strict=True):
            velocity[joints] = command[offset : offset + len(joints)] * speeds
            hand = command[offset + len(joints)]
            offset += len(joints) + 1
            fingers = arm.gripper_open if hand > 0 else arm.gripper_closed
            if fingers and hand != 0.0:
                finger_target = context.scene.configuration(fingers, base=self._target)
                simulation.command_fingers(finger_target, force=arm.grip_force, arm=arm.name)
        for _ in range(self._substeps):
            target = np.clip(self._target + velocity * self._settings.time_step, lower, upper)
            target_velocity = np.where(target == self._target, 0.0, velocity)
            self._target = target
            simulation.command(self._target, target_velocity)
            simulation.step()
        self._steps += 1
        facts = self._facts()
        is_done = context.problem.holds(facts, context.problem.goal)
        info = {"facts": [str(fact) for fact in facts]}
        return self._observe(), float(is_done), is_done, self._steps >= self.max_steps, info

    def _facts(self) -> Any:
        """Return the PDDL state of the simulated world, with each object on its support."""
        simulation = self._require_simulation()
        context = self._context
        scene, q = context.scene, simulation.q
        for name in self.objects:
            scene = rest_on_support(scene, name, simulation.pose(name), q)
        return context.domain.state(scene, q, objects=self._types)

    def render(self) -> NDArray[np.uint8] | None:
        """Return an image (height, width, 3) in the mode ``rgb_array``, else None."""
        return self._picture() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """End the simulation."""
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None

    def _require_simulation(self) -> Simulation:
        if self._simulation is None:
            raise ConfigurationError("the environment is closed; call reset() first")
        return self._simulation

    def _picture(self) -> NDArray[np.uint8]:
        simulation = self._require_simulation()
        if self._camera is None:
            self._camera = fit_camera(simulation, width=self._size[0], height=self._size[1])
        return render(simulation, self._camera, supersampling=1.0, renderer="tiny")

    def _observe(self) -> Any:
        if self._observation == "picture":
            return self._picture()
        if self._observation == "graph":
            return self._table.graph(self._facts(), self._goal)
        simulation = self._require_simulation()
        poses = [simulation.pose(name).as_array() for name in self.objects]
        return np.concatenate([simulation.q, *poses])
