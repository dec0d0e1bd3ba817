"""Planning problems: goals as a tuple, a read-only configuration, types checked by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tmkit.errors import ArgumentError, TaskError
from tmkit.graph import SceneGraph
from tmkit.robots import load_manipulator
from tmkit.tamp.problem import PlanningProblem, problem_file_of

SCENE = SceneGraph().add_frame("a", "world")


def test_arguments_are_stored_as_values() -> None:
    """Goals are a tuple; the configuration is a read-only copy, or None."""
    q = np.zeros(2)
    problem = PlanningProblem(
        SCENE, q=q, goal=["(on a b)", "(on b c)"], robots=["panda", load_manipulator("panda")]
    )
    q[0] = 1.0
    assert isinstance(problem.q, np.ndarray)
    assert problem.q.tolist() == [0.0, 0.0]
    assert not problem.q.flags.writeable
    assert problem.goals == ("(on a b)", "(on b c)")
    single = PlanningProblem(SCENE, goal=Path("p.pddl"), domain=Path("blocks"))
    assert (single.q, single.goals) == (None, (Path("p.pddl"),))
    assert PlanningProblem(SCENE, goal=iter(["(on a b)"])).goals == ("(on a b)",)  # type: ignore[arg-type]
    assert repr(problem) == "PlanningProblem(2 frames, domain 'blocks', goal (on a b), (on b c))"


def test_a_long_goal_is_shortened() -> None:
    """A goal of more than 80 characters is cut to 77."""
    for length, shown in ((80, "x" * 80), (81, "x" * 77 + "...")):
        assert repr(PlanningProblem(SCENE, goal="x" * length)).endswith(f"goal {shown})")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"scene": "blocks1"}, r"load it first: tk.load_scene\('blocks1'\)"),
        ({"domain": 1}, r"plan.*domain"),
        ({"robots": 1}, r"plan.*robots"),
        ({"robots": ["panda", 1]}, r"plan.*robots"),
        ({"goal": 1}, r"plan.*PDDL text, a formula, ObjectAt, ObjectIn, ArmAt, a scene or a path"),
        ({"goal": ["(on a b)", 1]}, r"plan.*PDDL text, a formula, ObjectAt"),
    ],
)
def test_arguments_of_other_types_are_rejected(arguments: dict[str, Any], words: str) -> None:
    """The error names the function, the argument and the valid types."""
    with pytest.raises(ArgumentError, match=words):
        PlanningProblem(**{"scene": SCENE, "goal": "(on a b)", **arguments})


def test_goals_and_problem_files() -> None:
    """A goal is required, with one problem file at most."""
    empty: list[Any] = [None, (), []]
    for goal in empty:
        with pytest.raises(TaskError, match="give a goal"):
            PlanningProblem(SCENE, goal=goal)
    for file in (" p.pddl\n", Path("p.pddl")):
        assert problem_file_of(file) == Path("p.pddl")
        with pytest.raises(TaskError, match=r"one problem file at most, .*p.pddl\s*' and 'q.pddl'"):
            PlanningProblem(SCENE, goal=["(on a b)", file, "q.pddl"])
        assert PlanningProblem(SCENE, goal=file).goals == (file,)
        assert PlanningProblem(SCENE, goal=["(on a b)", file]).problem_file == Path("p.pddl")
    assert problem_file_of(Path("other")) == Path("other")
    assert PlanningProblem(SCENE, goal="(on a b)").problem_file is None
    assert problem_file_of("(on a b)") is problem_file_of(SCENE) is None
