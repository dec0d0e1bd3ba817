"""Planning problem: scene, start configuration, domain, goal and robots in one value.

:class:`PlanningProblem` has no search options (:class:`tmkit.tamp.PlanningOptions`). One problem
may be planned with different options, and the same options may apply to many problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument, with_keyword_hints
from tmkit._support.content_equality import ContentEquality
from tmkit._support.initialization import initialize
from tmkit.errors import TaskError
from tmkit.formats.goal_scene import GoalScene
from tmkit.graph import SceneGraph
from tmkit.pddl.formulas import Formula
from tmkit.plans.continuous_goals import ArmAt, ObjectAt, ObjectIn
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import Robots
from tmkit.spatial.plain import configuration_numbers, read_only
from tmkit.tamp.domains.loading import DomainSource

Goal: TypeAlias = str | Formula | ObjectAt | ObjectIn | ArmAt | SceneGraph | GoalScene | Path
"""Goal of a problem.

PDDL text or a formula; a pose or region of an object; a configuration of an arm; a scene that shows
the goal; or the path of a PDDL problem file.
"""

_GOAL_TYPES = (str, *get_args(Formula), ObjectAt, ObjectIn, ArmAt, SceneGraph, GoalScene, Path)
"""Types of a single goal."""

_PROBLEM_FILE_SUFFIX = ".pddl"
"""Suffix of PDDL problem files."""


@with_keyword_hints
@dataclass(frozen=True, eq=False)
class PlanningProblem(ContentEquality):
    """Planning problem.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration at the start [rad, m]. Defaults to the ready configuration of
            the robots, with each hand open, or closed on the object that it holds.
        domain: name of a built-in domain, a folder with ``domain.pddl`` and ``semantics.py``, a
            PDDL file, a domain built in Python, or a loaded domain.
        goal: one goal, or several goals that must all hold at the end. A goal is one of:

            * PDDL text such as ``"(and (on a b) (on b c))"``, or a formula;
            * a :class:`tmkit.plans.ObjectAt`, :class:`~tmkit.plans.ObjectIn` or
              :class:`~tmkit.plans.ArmAt`;
            * a scene that shows the goal (:func:`tmkit.tamp.domains.problems.goal_of_scene`);
            * the path of a PDDL problem file (``Path``, or text that ends in ``.pddl``); at most
              one. Its objects and initial facts, if any, must be those of the scene.
        robots: built-in name, TOML file, SRDF group or description of an arm, or a sequence of
            them, for a domain with several arms.
        semantics: domain semantics that are not beside the PDDL file: a built-in domain, a folder
            or a Python file; see :func:`tmkit.tamp.load_planning_domain`.

    The attributes are the arguments, with ``q`` as a read-only array or None and ``goal`` as a
    tuple. Problems are equal if their contents are equal.

    Raises:
        ArgumentError: if an argument has another type.
        TaskError: if there is no goal, or there are two problem files.
    """

    scene: SceneGraph
    q: ArrayLike | None = None
    domain: DomainSource = "blocks"
    goal: Goal | Sequence[Goal] = ()
    robots: Robots = "panda"
    semantics: str | Path | None = None

    def __post_init__(self) -> None:
        hint = ""
        if isinstance(self.scene, str):
            hint = f"load it first: tk.load_scene({self.scene!r})"
        elif isinstance(self.scene, PlanningProblem):
            hint = "solve a problem with tk.solve(problem, options)"
        check_argument(self.scene, SceneGraph, "scene", function="plan", hint=hint)
        check_argument(self.domain, get_args(DomainSource), "domain", function="plan")
        robots = self.robots
        if isinstance(robots, str) or not isinstance(robots, Sequence):
            robots = (robots,)
        for robot in robots:
            check_argument(robot, (str, Path, Manipulator), "robots", function="plan")
        if self.q is not None:
            initialize(self, q=read_only(np.array(configuration_numbers(self.scene, self.q))))
        initialize(self, goal=_goal_tuple(self.goal))

    @property
    def goals(self) -> tuple[Goal, ...]:
        """Goals, all of which must hold at the end."""
        assert isinstance(self.goal, tuple), "set at construction"
        return self.goal

    @property
    def problem_file(self) -> Path | None:
        """Path of the PDDL problem file among the goals, or None."""
        return next(filter(None, map(problem_file_of, self.goals)), None)

    def __repr__(self) -> str:
        domain = self.domain if isinstance(self.domain, str | Path) else self.domain.domain.name
        goals = ", ".join(map(str, self.goals))
        if len(goals) > 80:
            goals = f"{goals[:77]}..."
        return f"PlanningProblem({len(self.scene)} frames, domain '{domain}', goal {goals})"


def _goal_tuple(goal: object) -> tuple[Goal, ...]:
    """Return one or several goals as a tuple.

    Raises:
        ArgumentError: if a goal has another type.
        TaskError: if there is no goal, or there are two problem files.
    """
    goals: tuple[Any, ...] = () if goal is None else (goal,)
    if isinstance(goal, Iterable) and not isinstance(goal, _GOAL_TYPES):
        goals = tuple(goal)
    if not goals:
        raise TaskError.at(
            "goal",
            "give a goal: PDDL, a pose or region, a scene, or the path of a PDDL problem file",
        )
    for entry in goals:
        expected = "PDDL text, a formula, ObjectAt, ObjectIn, ArmAt, a scene or a path"
        check_argument(entry, _GOAL_TYPES, "goal", function="plan", words=expected)
    files = [entry for entry in goals if problem_file_of(entry) is not None]
    if len(files) > 1:
        names = " and ".join(f"'{file}'" for file in files)
        raise TaskError.at("goal", f"one problem file at most, received {names}")
    return goals


def problem_file_of(goal: Goal) -> Path | None:
    """Return the path of a goal that is a PDDL problem file; None for other goals."""
    if isinstance(goal, Path):
        return goal
    if isinstance(goal, str) and goal.strip().endswith(_PROBLEM_FILE_SUFFIX):
        return Path(goal.strip())
    return None
