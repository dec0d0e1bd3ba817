"""Episodes of KinDER, solved by tmkit and judged by the environment; skipped without KinDER."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("kinder", reason="KinDER is not installed: tests/benchmarks/kinder/install.sh")

from benchmarks.kinder.episodes import Episode, Outcome
from benchmarks.kinder.robots import TidyBot, make_tidybot
from benchmarks.kinder.table import all_environments, page_of

from tmkit.motion import CollisionWorld


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> TidyBot:
    """Return the robot from its files."""
    import kinder

    kinder.register_all_environments()
    return make_tidybot(tmp_path_factory.mktemp("robot"))


@pytest.mark.parametrize(
    "environment", ["BaseMotion3D", "KinematicShelf3D-o1", "Obstruction3D-o1", "Transport3D-o1"]
)
@pytest.mark.parametrize("seed", range(3))
def test_the_environment_terminates(robot: TidyBot, environment: str, seed: int) -> None:
    """The plan's actions reach the goal of the environment."""
    outcome = Episode(environment, seed, robot).run()
    assert outcome.is_solved, outcome.cause


@pytest.mark.parametrize("environment", all_environments())
def test_scenes_are_those_of_the_environment(robot: TidyBot, environment: str) -> None:
    """Objects of the scene are where the observation has them, and the hand where pybullet has it.

    The environment's simulation is read here alone, to check the scenes.
    """
    episode = Episode(environment, 0, robot)
    task, observation = episode.task(), episode.observation
    for name in observation.names(""):
        if name in task.scene and "half_extent_x" in observation.features(name):
            expected = observation.pose(name)
            pose = task.scene.pose(name, relative_to="world", q=task.q)
            assert pose.is_close(expected, translation_tolerance=1e-6, rotation_tolerance=1e-5)
    arm = episode.env.unwrapped._object_centric_env.robot.arm
    position = arm.get_end_effector_pose().position
    hand = task.scene.pose("tool_frame", relative_to="world", q=task.q)
    assert np.allclose(hand.translation, position, atol=1e-4)
    # In the laboratory, the hulls of doors overlap with those of their cabinets.
    if not environment.startswith("PrplLab3D"):
        world = CollisionWorld(task.scene, margin=-0.005)
        assert not world.in_collision_batch(task.q[None])[0]
    episode.env.close()


def test_a_refused_motion_is_planned_again(robot: TidyBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """An arm that sticks once makes one refusal; the next plan begins at the observation."""
    episode = Episode("Obstruction3D-o0", 0, robot)
    step, calls = episode.env.step, []

    def stuck_step(values: np.ndarray) -> tuple:
        calls.append(values)
        return step(np.zeros_like(values) if len(calls) == 20 else values)

    monkeypatch.setattr(episode.env, "step", stuck_step)
    outcome = episode.run()
    assert outcome.is_solved, outcome.cause
    assert outcome.plans == 2
    assert "refused" in outcome.cause


def test_the_page_counts_episodes_and_has_causes() -> None:
    """Solved ones are counted, and failures listed."""
    outcomes = [
        Outcome("A-o1", 0, True, 10, 0.5, 1, ""),
        Outcome("A-o1", 1, False, 3, 2.0, 2, "step 1: lift refused"),
    ]
    page = page_of(outcomes)
    assert "| A-o1 | 1 of 2 | 10-10 | 2.0 | 2.0 | 1 |" in page
    assert "1 of 2 episodes" in page
    assert "* A-o1, seed 1: step 1: lift refused" in page
