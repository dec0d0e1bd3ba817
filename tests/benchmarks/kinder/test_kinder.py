"""Episodes of KinDER, solved by tmkit and judged by the environment; skipped without KinDER."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("kinder", reason="KinDER is not installed: tests/benchmarks/kinder/install.sh")

from benchmarks.kinder.bilevel import run_bilevel, settings_of
from benchmarks.kinder.episodes import Episode, Outcome
from benchmarks.kinder.limb import make_chain
from benchmarks.kinder.table import (
    Robots,
    page_of,
    read_outcomes,
    run_episodes,
    run_tmkit,
    task_environments,
)
from benchmarks.kinder.worlds import Observation

from tmkit.motion import CollisionWorld


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Robots]:
    """Yield the robots from their files."""
    import kinder

    kinder.register_all_environments()
    yield Robots(tmp_path_factory.mktemp("robots"))
    shutil.rmtree(Path(tempfile.gettempdir()) / "prpl_kinematics_mesh_cache", ignore_errors=True)


@pytest.mark.parametrize(
    "environment",
    [
        "BaseMotion3D",
        "ClutteredRetrieval2D-o1",
        "KinematicShelf3D-o1",
        "LimbRepositioning3D-bed-right-leg",
        "LimbRepositioning3D-wheelchair-left-arm",
        "Motion2D-p3",
        "Obstruction2D-o1",
        "Obstruction3D-o1",
        "PickPlace3D-o1",
        "Transport3D-o1",
        "VegaMotion3D",
        "VegaPickPlace3D",
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_environment_terminates(robots: Robots, environment: str, seed: int) -> None:
    """The plan's actions reach the goal of the environment."""
    skip_unless_registered(environment)
    outcome = run_tmkit(environment, seed, robots, time_limit=120.0)
    assert outcome.is_solved, outcome.cause


def skip_unless_registered(environment: str) -> None:
    """Skip a test if KinDER lacks the library of an environment's simulator."""
    import kinder

    if f"kinder/{environment}-v0" not in kinder.get_all_env_ids():
        pytest.skip(f"{environment} is not registered: see the README on MuJoCo")


def center_of(episode: Episode) -> np.ndarray:
    """Return the position of the disc in its plane [m]."""
    x, y = episode.observation.values("robot", "x", "y")
    return np.array([x, 0.0, y] if episode.environment.startswith("Obstruction") else [x, y, 0.0])


def hand_of(episode: Episode) -> tuple[str, np.ndarray]:
    """Return the frame of a hand, and its position in the environment's simulation [m]."""
    simulation = episode.env.unwrapped._object_centric_env
    if episode.environment.split("-")[0].endswith("2D"):
        return "theta", center_of(episode)
    if episode.environment == "VegaMotion3D":
        return "R_ee", simulation.end_effector_pose.t
    if episode.environment == "VegaPickPlace3D":
        return "L_ee", simulation.end_effector_pose("left").t
    if episode.environment.startswith("PickPlace3D"):
        simulation = simulation._robot_env.sim
        return "bracelet_link", simulation.data.mj_data.body("robot_bracelet_link").xpos
    return "tool_frame", np.array(simulation.robot.arm.get_end_effector_pose().position)


@pytest.mark.parametrize("environment", task_environments())
def test_scenes_are_those_of_the_environment(robots: Robots, environment: str) -> None:
    """Objects of the scene are where the observation has them, and the hand where pybullet has it.

    The environment's simulation is read here alone, to check the scenes.
    """
    skip_unless_registered(environment)
    episode = Episode(environment, 0, robots.of(environment))
    task, observation = episode.task(), episode.observation
    for name in observation.names(""):
        if name in task.scene and "half_extent_x" in observation.features(name):
            expected = observation.pose(name)
            pose = task.scene.pose(name, relative_to="world", q=task.q)
            assert pose.is_close(expected, translation_tolerance=1e-6, rotation_tolerance=1e-5)
    hand, position = hand_of(episode)
    pose = task.scene.pose(hand, relative_to="world", q=task.q)
    assert np.allclose(pose.translation, position, atol=1e-4)
    # In the laboratory, the hulls of doors overlap with those of their cabinets.
    if not environment.startswith("PrplLab3D"):
        world = CollisionWorld(task.scene, margin=-0.005)
        assert not world.in_collision_batch(task.q[None])[0]
    episode.env.close()


@pytest.mark.parametrize("variant", ["isolated-left-arm", "human-right-leg", "bed-left-leg"])
def test_limbs_are_those_of_the_environment(robots: Robots, variant: str) -> None:
    """Arm and limb are where pybullet has them; their path is closed and ends at the goal."""
    import kinder
    from kinder.envs.dynamic3d.limbrepositioning3d import create_variant_config

    env = kinder.make(f"kinder/LimbRepositioning3D-{variant}-v0")
    vector, _ = env.reset(seed=0)
    observation = Observation(env.observation_space.devectorize(vector))
    config = create_variant_config(variant)
    chain = make_chain(observation, robots.of("LimbRepositioning3D"), config)
    simulation = env.unwrapped._object_centric_env
    for frame, body in (("tool_frame", simulation.robot.arm), ("limb_ee_link", simulation.limb)):
        pose = chain.scene.pose(frame, relative_to="world", q=chain.q)
        assert np.allclose(pose.translation, body.get_end_effector_pose().position, atol=1e-5)
    path = chain.path()
    assert np.allclose(path[0], chain.q)
    error = np.abs(path[-1][chain.columns(chain.limb)] - chain.goal).sum()
    assert error < config.goal_atol
    expected = chain.scene.pose("tool_frame", relative_to="limb_ee_link", q=chain.q)
    for q in path:
        pose = chain.scene.pose("tool_frame", relative_to="limb_ee_link", q=q)
        assert pose.is_close(expected, translation_tolerance=1e-5, rotation_tolerance=1e-5)
    env.close()


def test_a_refused_motion_is_planned_again(robots: Robots, monkeypatch: pytest.MonkeyPatch) -> None:
    """An arm that sticks once makes one refusal; the next plan begins at the observation."""
    episode = Episode("Obstruction3D-o0", 0, robots.of("Obstruction3D-o0"))
    step, calls = episode.env.step, []

    def stuck_step(values: np.ndarray) -> tuple:
        calls.append(values)
        return step(np.zeros_like(values) if len(calls) == 20 else values)

    monkeypatch.setattr(episode.env, "step", stuck_step)
    outcome = episode.run()
    assert outcome.is_solved, outcome.cause
    assert outcome.plans == 2
    assert "refused" in outcome.cause


def test_a_missed_grasp_is_planned_again(robots: Robots, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hand that does not close once makes one refusal; the next plan picks the object again."""
    skip_unless_registered("PickPlace3D-o1")
    episode = Episode("PickPlace3D-o1", 0, robots.of("PickPlace3D-o1"))
    step, closings = episode.env.step, []

    def step_without_first_closing(values: np.ndarray) -> tuple:
        closings.extend([values] if values[10] > 0.5 else [])
        return step(values * (np.arange(11) != 10) if len(closings) <= 20 else values)

    monkeypatch.setattr(episode.env, "step", step_without_first_closing)
    outcome = episode.run()
    assert outcome.is_solved, outcome.cause
    assert outcome.plans == 2
    assert "grasp of cube1 refused" in outcome.cause


def test_the_bilevel_planner_runs_on_its_environments(robots: Robots) -> None:
    """Its model and settings are found by the name of the environment."""
    del robots
    pytest.importorskip("kinder_bilevel_planning", reason="kinder-baselines is not installed")
    assert settings_of("Table3D-o1") is None
    settings = settings_of("ClutteredRetrieval2D-o10")
    assert settings is not None
    assert settings["env_model_kwargs"] == {"num_obstructions": 10}
    outcome = run_bilevel("BaseMotion3D", 0, time_limit=60.0)
    assert outcome.is_solved, outcome.cause
    assert outcome.actions > 0


def test_episodes_in_the_file_are_not_run_again(tmp_path: Path) -> None:
    """New ones are added to those that the file has."""
    file = tmp_path / "outcomes.json"
    first = Outcome("BaseMotion3D", 0, False, 99, 0.5, 1, "step 1: drive refused")
    file.write_text(json.dumps([asdict(first)]))
    run_episodes("BaseMotion3D", "tmkit", range(2), time_limit=60.0, file=file)
    known, new = read_outcomes(file)
    assert known == first
    assert (new.seed, new.is_solved) == (1, True)
    assert read_outcomes(tmp_path / "other.json") == []


def test_the_page_counts_episodes_and_has_causes() -> None:
    """Solved ones are counted, and failures listed."""
    name = "Table3D-o1"
    outcomes = [
        Outcome(name, 0, True, 10, 0.5, 1, ""),
        Outcome(name, 1, False, 3, 2.0, 2, "step 1: lift refused"),
        Outcome(name, 1, True, 30, 1.0, 1, "", "bilevel"),
    ]
    page = page_of(outcomes)
    row = f"| {name} | 0-1 | 1 of 2 | 10-10 | 2.0 | 2.0 | 1 of 1 | 30-30 | 1.0 | 1.0 | 1 |"
    assert row in page
    assert "tmkit: 1 of 2 episodes" in page
    assert f"* {name}, seed 1, tmkit: step 1: lift refused" in page
