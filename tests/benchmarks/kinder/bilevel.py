"""Episodes of KinDER's own bilevel planner, from the public repository ``kinder-baselines``.

Its settings are those of its files ``experiments/conf``: the limits of abstract plans and samples,
and the number of actions after which an episode fails. Its time limit may be longer. Its models of
the Vega and of ClutteredRetrieval2D have no such file and run with the defaults. It simulates the
environment itself while it plans.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.kinder.episodes import Outcome

_MODELS_WITHOUT_FILE = {
    "ClutteredRetrieval2D": ("clutteredretrieval2d", "num_obstructions"),
    "VegaMotion3D": ("vega_motion3d", ""),
    "VegaPickPlace3D": ("vega_pickplace3d", ""),
}
"""Models without a file of settings, with the argument for the number of a variant."""

_SETTINGS = (
    "max_abstract_plans",
    "samples_per_step",
    "max_skill_horizon",
    "heuristic_name",
    "planning_timeout",
)
"""Arguments of the planner in its files."""


@cache
def _folder() -> Path:
    """Return the folder of the planner's settings."""
    import kinder_bilevel_planning

    return Path(kinder_bilevel_planning.__path__[0]).parents[1] / "experiments" / "conf"


@cache
def settings_of(environment: str) -> dict[str, Any] | None:
    """Return the settings of an environment, or None if the planner has no model of it."""
    import yaml

    settings = yaml.safe_load((_folder() / "config.yaml").read_text())
    for file in sorted((_folder() / "env").glob("*.yaml")):
        values = yaml.safe_load(file.read_text())
        values = {**values, **values.pop("env", {})}
        if values["make_kwargs"]["id"] == f"kinder/{environment}-v0":
            return {**settings, **values}
    name, _, variant = environment.partition("-")
    if name not in _MODELS_WITHOUT_FILE:
        return None
    model, argument = _MODELS_WITHOUT_FILE[name]
    arguments = {argument: int(variant[1:])} if argument else {}
    return {**settings, "env_name": model, "env_model_kwargs": arguments}


def run_bilevel(environment: str, seed: int, *, time_limit: float) -> Outcome:
    """Return the result of an episode.

    Args:
        environment: name as ``Table3D-o2``, of which the planner has a model.
        seed: seed of the episode and of the planner.
        time_limit: time limit of the plan, if longer than in its settings [s].
    """
    import kinder
    from kinder_bilevel_planning.agent import AgentFailure, BilevelPlanningAgent
    from kinder_bilevel_planning.env_models import create_bilevel_planning_models

    settings = settings_of(environment)
    assert settings is not None, environment
    settings["planning_timeout"] = max(time_limit, settings["planning_timeout"])
    env = kinder.make(f"kinder/{environment}-v0")
    models = create_bilevel_planning_models(
        settings["env_name"],
        env.observation_space,
        env.action_space,
        **settings["env_model_kwargs"],
    )
    agent: Any = BilevelPlanningAgent(models, seed, **{name: settings[name] for name in _SETTINGS})
    observation, info = env.reset(seed=seed)
    start = time.process_time()
    cause, actions, is_solved = "", 0, False
    try:
        agent.reset(observation, info)
    except (AgentFailure, Exception) as error:  # AgentFailure is no Exception
        cause = str(error)
    seconds = time.process_time() - start
    while not cause and not is_solved:
        if actions == settings["max_eval_steps"]:
            cause = f"not finished after {actions} actions"
            break
        try:
            observation, reward, is_solved, _, info = env.step(agent.step())
            agent.update(observation, reward, is_solved, info)
        except (AgentFailure, Exception) as error:
            cause = str(error)
        actions += 1
    env.close()
    return Outcome(environment, seed, bool(is_solved), actions, seconds, 1, cause, "bilevel")
