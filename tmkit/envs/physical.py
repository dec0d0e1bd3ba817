"""A domain under physics: actions are velocities of joints and commands of hands."""

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
from tmkit.world.detections import resting

_OBJECT_WIDTH = 7
_FAR = 1000.0  # radians or metres, beyond which nothing is


class PhysicalEnv(gymnasium.Env[Any, Any]):
    """Arms move joint by joint in pybullet; the goal is judged by where the objects come to be.

    An action has for each arm the velocities of its joints, as shares of their limits, and one
    number of its hand: above 0 it opens, below it closes with its force. The reward is 1 when the
    goal holds, which ends an episode.

    Args:
        source: as for :class:`tmkit.envs.SymbolicEnv`.
        parameters: of the generator.
        observation: ``array``: joint values and, for each movable object, its pose relative to the
            root (x, y, z and the quaternion x, y, z, w). ``graph``: the facts that hold, as in
            :class:`tmkit.envs.SymbolicEnv`. ``picture``: ``size`` pixels.
        rate: actions a second.
        max_steps: steps after which an episode is truncated.
        size: width and height of pictures, in pixels.
        render_mode: ``rgb_array`` for :meth:`render`.

    Attributes:
        objects: the movable objects, in the order of the observation.

    Raises:
        ConfigurationError: an observation that there is not, or a rate that is not positive.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  # as Gymnasium wants it

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
        self.source, self.max_steps, self.render_mode = (
            source_of(source, parameters),
            max_steps,
            render_mode,
        )
        self._observation, self._size, self._substeps = (
            observation,
            size,
            round(1.0 / (rate * settings.time_step)),
        )
        self._seconds, self._settings = settings.time_step, settings
        self._context, _ = context_of(self.source, 0, None)
        self._table = FactTable(self._context.problem)
        scene, arms = self._context.scene, self._context.manipulators
        self._joints = [[scene.joint_names.index(joint) for joint in arm.joints] for arm in arms]
        self._speeds = [arm.velocity_limits(scene) for arm in arms]
        self.action_space = spaces.Box(
            -1.0, 1.0, (sum(map(len, self._joints)) + len(arms),), np.float32
        )
        self._simulation: Simulation | None = None
        self._camera: Camera | None = None
        self.objects: tuple[str, ...] = ()
        self._begin(0, {})
        spaces_of: dict[str, spaces.Space[Any]] = {
            "array": spaces.Box(
                -_FAR,
                _FAR,
                (len(scene.joint_names) + _OBJECT_WIDTH * len(self.objects),),
                np.float64,
            ),
            "graph": self._table.graph_space(),
            "picture": spaces.Box(0, 255, (size[1], size[0], 3), np.uint8),
        }
        self.observation_space = spaces_of[observation]

    def _begin(self, seed: int, options: Mapping[str, Any] | None) -> int:
        self._context, number = context_of(self.source, seed, options)
        self._table.require_same(self._context.problem, number)
        self.close()
        context = self._context
        self._simulation = Simulation.from_scene(
            context.scene, context.q, robot=context.manipulators, settings=self._settings
        )
        self.objects = tuple(self._simulation.objects)
        self._target, self._steps, self._camera = np.array(context.q), 0, None
        self._goal = goal_facts(context.problem.goal)
        self._types = {name: types[0] for name, types in context.problem.objects.items()}
        return number

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with the next problem, or with that of the seed ``options["problem"]``.

        Args:
            seed: of the sequence of problems.
            options: may have ``problem``.
        """
        super().reset(seed=seed)
        number = self._begin(int(self.np_random.integers(SEEDS)), options)
        return self._observed(), {"problem": number}

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move for one period."""
        simulation, context = self._running(), self._context
        given = np.clip(np.asarray(action, dtype=np.float64), -1.0, 1.0)
        velocity, at = np.zeros(len(self._target)), 0
        lower, upper = context.scene.joint_limits.T
        for arm, joints, speeds in zip(
            context.manipulators, self._joints, self._speeds, strict=True
        ):
            velocity[joints] = given[at : at + len(joints)] * speeds
            hand = given[at + len(joints)]
            at += len(joints) + 1
            fingers = arm.gripper_open if hand > 0 else arm.gripper_closed
            if fingers and hand != 0.0:
                wanted = context.scene.configuration(fingers, base=self._target)
                simulation.command_fingers(wanted, force=arm.grip_force, arm=arm.name)
        for _ in range(self._substeps):
            target = np.clip(self._target + velocity * self._seconds, lower, upper)
            moving = np.where(target == self._target, 0.0, velocity)
            self._target = target
            simulation.command(self._target, moving)
            simulation.step()
        self._steps += 1
        facts = self._facts()
        is_done = context.problem.holds(facts, context.problem.goal)
        info = {"facts": [str(fact) for fact in facts]}
        return self._observed(), float(is_done), is_done, self._steps >= self.max_steps, info

    def _facts(self) -> Any:
        """Return the PDDL state of what is: each object stands on what it rests on."""
        simulation, context = self._running(), self._context
        scene, q = context.scene, simulation.q
        for name in self.objects:
            scene = resting(scene, name, simulation.pose(name), q)
        return context.domain.state(scene, self._types, q)

    def render(self) -> NDArray[np.uint8] | None:
        """Return a picture (height, width, 3) in the mode ``rgb_array``."""
        return self._picture() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """End the simulation."""
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None

    def _running(self) -> Simulation:
        if self._simulation is None:
            raise ConfigurationError("the environment is closed; call reset() first")
        return self._simulation

    def _picture(self) -> NDArray[np.uint8]:
        simulation = self._running()
        if self._camera is None:
            self._camera = fit_camera(simulation, width=self._size[0], height=self._size[1])
        return render(simulation, self._camera, supersampling=1.0, renderer="tiny")

    def _observed(self) -> Any:
        if self._observation == "picture":
            return self._picture()
        if self._observation == "graph":
            return self._table.graph(self._facts(), self._goal)
        simulation = self._running()
        poses = [simulation.pose(name).as_array() for name in self.objects]
        return np.concatenate([simulation.q, *poses])
