"""The planning problem: scene, start configuration, domain, goal and robots, as one value.

:class:`PlanningProblem` has no options of the search (:class:`tmkit.tamp.PlanningOptions`): the
same problem may be planned with different options, and the same options may be used for many
problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument
from tmkit._support.content_equality import ContentEquality
from tmkit._support.initialization import initialize
from tmkit.errors import TaskError
from tmkit.formats.goal_scene import GoalScene
from tmkit.graph import SceneGraph
from tmkit.pddl.formulas import Formula
from tmkit.plans.continuous_goals import ArmAt, ObjectAt, ObjectIn
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import Robots
from tmkit.spatial.plain import plain_numbers, read_only
from tmkit.tamp.domains.loading import PythonDomain

Goal: TypeAlias = str | Formula | ObjectAt | ObjectIn | ArmAt | SceneGraph | GoalScene | Path
"""A goal: PDDL text or a formula; an object at a pose or in a region, or an arm at a configuration; a scene that shows
the goal; or the path of a PDDL problem file."""

_GOALS = (str, *get_args(Formula), ObjectAt, ObjectIn, ArmAt, SceneGraph, GoalScene, Path)
_PDDL = ".pddl"


@dataclass(frozen=True, eq=False)
class PlanningProblem(ContentEquality):
    """What to plan.

    Args:
        scene: the scene at the start.
        q: (n_joints,) configuration at the start, in radians and metres; by default the ready
            configuration of the robots, with the hands open or closed on the objects that they
            hold.
        domain: name of a built-in domain, a folder with ``domain.pddl`` and ``semantics.py``, a
            PDDL file, or a domain built in Python.
        goal: PDDL text as ``"(and (on a b) (on b c))"``, a formula, a
            :class:`tmkit.plans.ObjectAt`, :class:`~tmkit.plans.ObjectIn` or
            :class:`~tmkit.plans.ArmAt`, or a scene that shows the goal (see
            :func:`tmkit.tamp.domains.problems.goal_of_scene`); or several of these, all of which
            must hold at the end. Or the path of a PDDL problem file (``Path``, or text that ends in
            ``.pddl``) alone, whose objects and initial facts, where it gives them, must be those of
            the scene.
        robots: built-in name, TOML file, SRDF group or description of an arm; or a sequence of
            them, for a domain that uses several arms.
        semantics: the domain semantics, if they are not in the file beside the PDDL: a built-in
            domain, a folder or a Python file; see :func:`tmkit.tamp.load_planning_domain`.

    Attributes are the arguments; ``q`` is a read-only array or None, ``goal`` is a tuple. Problems
    are equal if their contents are.

    Raises:
        ArgumentError: an argument of another type.
        TaskError: no goal, or a problem file beside other goals.
    """

    scene: SceneGraph
    q: ArrayLike | None = None
    domain: str | Path | PythonDomain = "blocks"
    goal: Goal | Sequence[Goal] = ()
    robots: Robots = "panda"
    semantics: str | Path | None = None

    def __post_init__(self) -> None:
        hint = (
            f"load it first: tk.load_scene({self.scene!r})" if isinstance(self.scene, str) else ""
        )
        hint = (
            "solve a problem with tk.solve(problem, options)"
            if isinstance(self.scene, PlanningProblem)
            else hint
        )
        check_argument(self.scene, SceneGraph, "scene", function="plan", hint=hint)
        check_argument(self.domain, (str, Path, PythonDomain), "domain", function="plan")
        several = isinstance(self.robots, Sequence) and not isinstance(self.robots, str)
        for robot in self.robots if several else (self.robots,):  # type: ignore[union-attr]  # a sequence here
            check_argument(robot, (str, Path, Manipulator), "robots", function="plan")
        if self.q is not None:
            initialize(self, q=read_only(np.array(plain_numbers(self.q, "q"))))
        initialize(self, goal=_checked_goals(self.goal))

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The goals, all of which must hold at the end."""
        assert isinstance(self.goal, tuple), "set at construction"
        return self.goal

    def __repr__(self) -> str:
        named = self.domain if isinstance(self.domain, str | Path) else self.domain.domain.name
        goals = ", ".join(map(str, self.goals))
        shown = goals if len(goals) <= 80 else f"{goals[:77]}..."
        return f"PlanningProblem({len(self.scene)} frames, domain '{named}', goal {shown})"


def _checked_goals(goal: object) -> tuple[Goal, ...]:
    several = isinstance(goal, Iterable) and not isinstance(goal, _GOALS)
    goals = (
        tuple(goal) if several and isinstance(goal, Iterable) else () if goal is None else (goal,)
    )
    if not goals:
        raise TaskError.at(
            "goal",
            "give a goal: PDDL, a pose or region, a scene, or the path of a PDDL problem file",
        )
    for entry in goals:
        expected = "PDDL text, a formula, ObjectAt, ObjectIn, ArmAt, a scene or a path"
        check_argument(entry, _GOALS, "goal", function="plan", words=expected)
    if len(goals) > 1 and (
        files := [entry for entry in goals if problem_file_of(entry) is not None]
    ):
        raise TaskError.at(
            "goal", f"the problem file '{files[0]}' states the whole goal; give it alone"
        )
    return goals


def problem_file_of(goal: Goal) -> Path | None:
    """Return the PDDL problem file that a goal names: a path, or text that ends in ``.pddl``; None for other goals."""
    if isinstance(goal, Path):
        return goal
    return Path(goal.strip()) if isinstance(goal, str) and goal.strip().endswith(_PDDL) else None
