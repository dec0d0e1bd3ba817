"""Environments: Gymnasium's checker, the domain as oracle, equal episodes for equal seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tmkit as tk
from tmkit.batch.generators import GeneratorSource
from tmkit.errors import ConfigurationError
from tmkit.pddl import State
from tmkit.tamp.seed_run import planning_context

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402  # after the skip

from tmkit.envs import PhysicalEnv, SymbolicEnv  # noqa: E402

BLOCKS: dict[str, Any] = {"source": "swaps", "parameters": {"blocks": 2}}


@pytest.fixture
def physical() -> Iterator[PhysicalEnv]:
    """Two blocks before a Panda."""
    env = PhysicalEnv(**BLOCKS, rate=20.0)
    yield env
    env.close()


@pytest.mark.parametrize("observation", ["array", "graph"])
def test_symbolic_environments_pass_the_checker(observation: str) -> None:
    """With each kind of observation."""
    made = gymnasium.make(
        "tmkit/Symbolic-v0",
        source="towers",
        parameters={"blocks": 3},
        observation=observation,
        render_mode="ansi",
    )
    check_env(made.unwrapped)


@pytest.mark.parametrize("observation", ["array", "graph", "picture"])
def test_physical_environments_pass_the_checker(observation: str) -> None:
    """With each kind of observation; pictures are not blank."""
    made = gymnasium.make(
        "tmkit/Physical-v0", **BLOCKS, observation=observation, render_mode="rgb_array"
    ).unwrapped
    check_env(made)
    made.reset(seed=0)
    assert np.ptp(made.render()) > 50
    made.close()


def test_a_task_plan_reaches_the_goal_and_the_domain_agrees_at_each_step() -> None:
    """States, masks and rewards are those of the PDDL problem."""
    env = SymbolicEnv("towers", parameters={"blocks": 4})
    observation, info = env.reset(seed=0, options={"problem": 3})
    context = planning_context(*GeneratorSource("towers", {"blocks": 4}).problem(3))
    problem, state = context.problem, context.problem.init
    result = tk.plan(
        context.scene,
        goal="(and (on b0 b1) (on b1 b2) (on b2 b3))",
        options=tk.PlanningOptions(max_iterations=4),
    )
    assert result.plan is not None
    rewards = []
    for action in result.plan.actions:
        mask = info["action_mask"]
        expected = [not problem.why_not(state, each) for each in env.actions]
        assert mask.tolist() == expected
        wrong = int(np.flatnonzero(~mask)[0])
        same, *_, said = env.step(wrong)
        assert not said["is_applicable"]
        assert (same["state"] == observation["state"]).all()
        state = problem.apply(state, action)
        observation, reward, terminated, _, info = env.step(env.actions.index(action))
        assert (
            State(
                fact for fact, holds in zip(env.facts, observation["state"], strict=True) if holds
            )
            == state
        )
        assert terminated is problem.holds(state, problem.goal)
        rewards.append(reward)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]


def test_seeds_give_the_same_problems() -> None:
    """An episode ends after its steps."""
    env = SymbolicEnv("towers", parameters={"blocks": 3}, max_steps=2)
    first = [env.reset(seed=4)[1]["problem"], env.reset()[1]["problem"]]
    assert [env.reset(seed=4)[1]["problem"], env.reset()[1]["problem"]] == first
    assert first[0] != first[1]
    assert [env.step(0)[3] for _ in range(2)] == [False, True]


def test_joints_follow_their_velocities_and_hands_close(physical: PhysicalEnv) -> None:
    """A joint moves as far as its commanded velocity gives, and a hand closes on command."""
    before, _ = physical.reset(seed=1)
    action = np.zeros(physical.action_space.shape[0])
    action[0], action[-1] = 0.5, -1.0
    for _ in range(20):
        after, *_ = physical.step(action)
    arm = tk.load_manipulator("panda")
    scene = tk.load_scene("panda_table")
    joint, finger = (
        scene.joint_names.index(arm.joints[0]),
        scene.joint_names.index(arm.gripper_joints[0]),
    )
    limit, speed = scene.joint_limits[joint][1], arm.velocity_limits(scene)[0]
    assert after[joint] == pytest.approx(min(limit, before[joint] + 0.5 * speed), abs=0.02)
    assert before[finger] == pytest.approx(0.04, abs=1e-3)
    assert after[finger] < 0.005


def test_an_episode_ends_when_objects_rest_at_the_goal(physical: PhysicalEnv) -> None:
    """Objects at their goal poses end the episode."""
    physical.reset(seed=2, options={"problem": 5})
    task, _ = GeneratorSource("swaps", {"blocks": 2}).problem(5)
    assert physical.step(np.zeros(physical.action_space.shape[0]))[1:3] == (0.0, False)
    for goal in task.goals:
        physical._require_simulation().set_object_pose(goal.frame, goal.pose)  # type: ignore[union-attr]
    _, reward, terminated, _, _ = physical.step(np.zeros(physical.action_space.shape[0]))
    assert (reward, terminated) == (1.0, True)


def test_wrong_arguments_are_rejected() -> None:
    """The message names the wrong argument."""
    with pytest.raises(
        ConfigurationError, match="observation must be 'array' or 'graph', not 'picture'"
    ):
        SymbolicEnv("towers", observation="picture")
    with pytest.raises(ConfigurationError, match="rate must be positive"):
        PhysicalEnv(**BLOCKS, rate=0.0)
    with pytest.raises(ConfigurationError, match="parameters need the name of a generator"):
        SymbolicEnv(GeneratorSource("towers"), parameters={"blocks": 2})
    with pytest.raises(
        ConfigurationError, match="the problem of seed 1 has other objects than the first"
    ):
        SymbolicEnv(_Growing()).reset(options={"problem": 1})
    env = PhysicalEnv(**BLOCKS)
    env.close()
    with pytest.raises(ConfigurationError, match=r"call reset\(\) first"):
        env.step(np.zeros(env.action_space.shape[0]))


class _Growing:
    digest = "growing"

    def problem(self, seed: int) -> Any:
        return GeneratorSource("towers", {"blocks": 2 + seed}).problem(seed)
