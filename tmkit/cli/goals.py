"""Goals on the command line that PDDL cannot say: an object at a pose or in a region, an arm at a configuration.

``--goal-at cup@table=0.1,0.2,0.03`` (with three angles more: turned like that too), ``--goal-in cup@tray`` and
``--goal-arm joint=value,...`` are short forms; ``--goal-file FILE.json`` is a list of goals as plan files hold them, in
which tolerances may be said or omitted, and of texts in PDDL. All are wanted together, and together with ``--goal``.

Invariants: an option says what :func:`tmkit.plan` would be given, and nothing that it could not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit.cli.common import errors_about
from tmkit.cli.json_files import read_json_file
from tmkit.errors import ConfigurationError, FileFormatError

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import ContinuousGoal

GoalAt = Annotated[
    list[str] | None,
    typer.Option(
        "--goal-at", metavar="OBJECT@FRAME=X,Y,Z[,R,P,Y]",
        help="An object at a point of a frame, in metres, or at a pose, with roll, pitch, yaw; repeatable.",
    ),
]  # fmt: skip
GoalIn = Annotated[
    list[str] | None,
    typer.Option("--goal-in", metavar="OBJECT@REGION", help="An object at rest in a region; repeatable."),
]
GoalArm = Annotated[str | None, typer.Option("--goal-arm", metavar="k=v,...", help="Joint values at the end.")]
GoalFile = Annotated[
    Path | None,
    typer.Option(
        "--goal-file", metavar="FILE.json", help="A list of such goals with tolerances, and of goals in PDDL."
    ),
]


def wanted_goals(
    goal: str | None, *, at: Sequence[str] | None, inside: Sequence[str] | None, arm: str | None, file: Path | None
) -> str | list[str | ContinuousGoal] | None:
    """Return the goals of the options: a PDDL goal alone as text, several as a list, None if there is no option.

    Args:
        goal: ``--goal``.
        at: values of ``--goal-at``, ``OBJECT@FRAME=X,Y,Z[,R,P,Y]``.
        inside: values of ``--goal-in``, ``OBJECT@REGION``.
        arm: ``--goal-arm``, ``joint=number,...``.
        file: ``--goal-file``.

    Raises:
        ConfigurationError: an option that does not have its form, or a tolerance that is none.
        MissingFileError: no such file.
        FileFormatError: the file is wrong; the message says where.
    """
    found: list[str | ContinuousGoal] = [] if goal is None else [goal]
    found += [_at(text) for text in at or ()]
    found += [_inside(text) for text in inside or ()]
    found += [_arm(arm)] if arm is not None else []
    found += _read(file) if file is not None else []
    if not found:
        return None
    return goal if goal is not None and len(found) == 1 else found


def check_goals(goals: str | list[str | ContinuousGoal] | None, scene: SceneGraph, *, file: Path | None) -> None:
    """Check that the goals of a file name frames and joints of the scene; those of options are checked by the planner.

    Raises:
        UnknownNameError, ConfigurationError: the message says which goal of the file.
    """
    from tmkit.plans import ContinuousGoal

    if file is None or not isinstance(goals, list):
        return
    of_file = _read(file)
    for number, goal in enumerate(of_file):
        if isinstance(goal, ContinuousGoal):
            with errors_about(f"{file}: [{number}]"):
                goal.check(scene)


@contextmanager
def errors_about_goals(file: Path | None, *, other_goal: str | None) -> Iterator[None]:
    """Name the goal file in errors about a PDDL goal, unless the goal is that of another option."""
    try:
        yield
    except FileFormatError as error:
        shown = error.message.split("\n")[1:2]
        if error.data.get("path") == "goal" and not (other_goal and shown and shown[0].strip() in other_goal):
            with errors_about(file):
                raise
        raise


def _at(text: str) -> ContinuousGoal:
    from tmkit.plans import ObjectAt
    from tmkit.spatial import Pose

    names, _, written = text.rpartition("=")
    object, _, frame = (name.strip() for name in names.partition("@"))
    try:
        numbers = [float(number) for number in written.split(",")]
    except ValueError:
        numbers = []
    if not object or not frame or len(numbers) not in (3, 6):
        form = "OBJECT@FRAME=X,Y,Z or OBJECT@FRAME=X,Y,Z,ROLL,PITCH,YAW"
        raise ConfigurationError(f"--goal-at: '{text}' is not of the form {form}")
    if len(numbers) == 3:
        return ObjectAt(object, Pose(numbers), relative_to=frame, radians=None)
    return ObjectAt(object, Pose.from_rpy(numbers[:3], numbers[3:]), relative_to=frame)


def _inside(text: str) -> ContinuousGoal:
    from tmkit.plans import ObjectIn

    object, _, region = (name.strip() for name in text.partition("@"))
    if not object or not region:
        raise ConfigurationError(f"--goal-in: '{text}' is not of the form OBJECT@REGION")
    return ObjectIn(object, region)


def _arm(text: str) -> ContinuousGoal:
    from tmkit.cli.start import joint_values
    from tmkit.plans import ArmAt

    return ArmAt(joint_values(text, option="--goal-arm"))


def _read(path: Path) -> list[str | ContinuousGoal]:
    from tmkit.formats.json.reading import JsonNode
    from tmkit.tamp.problem_files import goal_of_table

    top = JsonNode(read_json_file(path, what="goal"), str(path))
    goals = [object.text() if isinstance(object.value, str) else goal_of_table(object) for object in top.items()]
    if not goals:
        raise top.error("expected at least one goal, received an empty list")
    return goals
