"""Inputs of a command from options and files: goals, joint values at the start, plans, planning options.

``--goal-at cup@table=0.1,0.2,0.03`` (three more numbers are roll, pitch and yaw), ``--goal-in
cup@tray`` and ``--goal-arm joint=value,...`` are goals that PDDL cannot express. ``--goal-file
FILE.json`` is a list of such goals, as in plan files but with optional tolerances, and of goals in
PDDL. All must hold together, and together with ``--goal``. A ``.tmp`` plan of the original TMKit
has actions and motions only, so scene, arm, domain and goal are options beside it; for a JSON plan,
which contains them, these options are refused. The fields of :class:`tmkit.tamp.PlanningOptions`,
which are listed there alone, become flags.

Invariants: an option is an argument of :func:`tmkit.plan`, and nothing else.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tmkit._support.data import is_bare
from tmkit._support.json_files import read_json
from tmkit._support.limits import ReadingLimits
from tmkit._support.options import OptionKind, option_kinds
from tmkit.cli.common import errors_about, load, reading_of
from tmkit.cli.completion import Kind, complete_names
from tmkit.errors import ConfigurationError, FileFormatError, UnknownNameError
from tmkit.tamp.options import PlanningOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tmkit.graph import SceneGraph
    from tmkit.plans import Plan
    from tmkit.plans.continuous_goals import ContinuousGoal

TmpScenes = Annotated[
    list[str] | None,
    typer.Option(
        "--scene",
        metavar="SCENE",
        help=(
            "For a .tmp plan: its initial scene; repeatable, merged. With a JSON plan: to compare"
            " with its own."
        ),
    ),
]
TmpRobot = Annotated[
    list[str] | None,
    typer.Option(
        "--robot",
        metavar="NAME|FILE",
        help="For a .tmp plan: the arm, if not its own; repeatable, for several.",
        autocompletion=complete_names(Kind.ROBOTS),
    ),
]
TmpGoal = Annotated[
    str | None,
    typer.Option("--goal", metavar="EXPR", help="For a .tmp plan: the goal, if not its own."),
]
TmpStart = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="FILE|k=v,...",
        help="For a .tmp plan: joint values that it does not contain.",
    ),
]


def load_plan_file(
    path: Path,
    *,
    scenes: list[str] | None,
    robot: list[str] | None,
    domain: str | None,
    semantics: str | None,
    goal: str | None,
    start: str | None,
    allow: list[Path] | None,
    packages: list[str] | None,
    meshes: str,
    compares: bool = False,
) -> Plan:
    """Load a JSON or ``.tmp`` plan, by the suffix of its file; ``scenes``, ``goal`` and ``start`` are of the latter.

    With ``compares``, ``scenes`` and ``robot`` are compared with those of a JSON plan, instead of
    being refused.
    """
    from tmkit.plans import load_plan
    from tmkit.tamp.domains.loading import check_plan_domain
    from tmkit.tamp.validation.tmp_plan import load_tmp_plan, read_tmp_header

    if path.suffix != ".tmp":
        given: dict[str, object] = {"--goal": goal, "--start": start}
        if not compares:
            given |= {"--scene": scenes, "--robot": robot}
        if not scenes:
            given |= {
                "--allow": allow,
                "--package": packages,
                "--meshes": meshes if meshes != "load" else None,
            }
        for option, value in given.items():
            if value:
                raise typer.BadParameter(
                    f"'{path}' contains this; only a .tmp plan needs it", param_hint=option
                )
        plan = load_plan(path)
        check_plan_domain(plan, path, domain, semantics)
        return plan
    if not scenes:
        raise typer.BadParameter(
            f"'{path}' is a .tmp plan, which has no scene in it; name the scene it starts in, e.g."
            " --scene panda_table",
            param_hint="--scene",
        )
    scene = load(scenes, reading=reading_of(allow, packages, meshes))
    arms = robot or list(read_tmp_header(path).robots)
    return load_tmp_plan(
        path,
        scene,
        q=start_configuration(scene, arms, start),
        domain=domain,
        semantics=semantics,
        robot=arms,
        goal=goal,
    )


def refuse_beside_problem(path: Path, option: str, value: object) -> None:
    """Refuse an option beside a problem file that states the same."""
    if value:
        raise typer.BadParameter(f"'{path}' states this itself", param_hint=option)


def read_json_file(path: Path, *, what: str) -> Any:
    """Return the document in a file; the message for a missing one says in a word ``what`` it is."""
    return read_json(path, limit=ReadingLimits().text_bytes, what=what)[0]


def start_configuration(
    scene: SceneGraph, robots: Sequence[str], start: str | None
) -> NDArray[np.float64] | None:
    """Return the configuration (n_joints,) of ``--start``; joints that it omits are at the arms' ready one."""
    if start is None:
        return None
    from tmkit.robots.robot_files import find_manipulators, home_configuration

    if "=" in start or (is_bare(start) and not Path(start).exists()):
        values = joint_values(start, option="--start")
    else:
        values = (
            _tmp_values(start, scene) if start.endswith(".tmp") else _read_start_file(Path(start))
        )
    for joint in values:
        if joint not in scene.joint_names:
            where = "--start" if "=" in start else f"--start {start}"
            raise UnknownNameError.of("joint", joint, scene.joint_names, where=where)
    return scene.configuration(
        values, base=home_configuration(find_manipulators(robots, scene), scene)
    )


def _tmp_values(start: str, scene: SceneGraph) -> dict[str, float]:
    """Return where the first motion of a plan file of the original begins."""
    from tmkit._support.source_location import did_you_mean
    from tmkit.formats.tmp_file import first_configuration, read_tmp

    motion, values = first_configuration(read_tmp(start))
    for joint, place in zip(motion.joints, motion.joint_places, strict=True):
        if joint not in scene.joint_names:
            raise place.error(
                f"the scene has no joint '{joint}'{did_you_mean(joint, scene.joint_names)}"
            )
    return values


def joint_values(text: str, *, option: str) -> dict[str, float]:
    """Parse ``joint=number,...``, radians or metres by joint, each once; messages begin with the option."""
    values: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (text.strip() for text in part.partition("="))
        if name in values:
            raise ConfigurationError(f"{option}: joint '{name}' is given twice", joint=name)
        try:
            values[name] = float(number)
        except ValueError:
            raise ConfigurationError(
                f"{option}: '{part}' is not of the form joint=number", joint=name
            ) from None
    return values


def _read_start_file(path: Path) -> dict[str, float]:
    from tmkit.robots.manipulator import is_number

    document = read_json_file(path, what="start")
    if not isinstance(document, dict) or not all(is_number(value) for value in document.values()):
        raise FileFormatError.at(
            path, 'must be an object of finite numbers by joint name, as {"joint": 0.1}'
        )
    return {name: float(value) for name, value in document.items()}


GoalAt = Annotated[
    list[str] | None,
    typer.Option(
        "--goal-at",
        metavar="OBJECT@FRAME=X,Y,Z[,R,P,Y]",
        help=(
            "An object at a point of a frame, in metres, or at a pose, with roll, pitch, yaw;"
            " repeatable."
        ),
    ),
]
GoalIn = Annotated[
    list[str] | None,
    typer.Option(
        "--goal-in", metavar="OBJECT@REGION", help="An object at rest in a region; repeatable."
    ),
]
GoalArm = Annotated[
    str | None, typer.Option("--goal-arm", metavar="k=v,...", help="Joint values at the end.")
]
GoalFile = Annotated[
    Path | None,
    typer.Option(
        "--goal-file",
        metavar="FILE.json",
        help="A list of such goals with tolerances, and of goals in PDDL.",
    ),
]


def wanted_goals(
    goal: str | None,
    *,
    at: Sequence[str] | None,
    inside: Sequence[str] | None,
    arm: str | None,
    file: Path | None,
) -> str | list[str | ContinuousGoal] | None:
    """Return the goals of the options: a PDDL goal alone as text, several as a list, None if there is no option."""
    from tmkit.plans import ArmAt

    found: list[str | ContinuousGoal] = [] if goal is None else [goal]
    found += [_at(text) for text in at or ()]
    found += [_inside(text) for text in inside or ()]
    found += [ArmAt(joint_values(arm, option="--goal-arm"))] if arm is not None else []
    found += _read(file) if file is not None else []
    if not found:
        return None
    return goal if goal is not None and len(found) == 1 else found


def check_goals(
    goals: str | list[str | ContinuousGoal] | None, scene: SceneGraph, *, file: Path | None
) -> None:
    """Check that the goals of a file name frames and joints; the planner checks those of options."""
    from tmkit.plans.continuous_goals import ContinuousGoal

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
        if error.data.get("path") == "goal" and not (
            other_goal and shown and shown[0].strip() in other_goal
        ):
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


def _read(path: Path) -> list[str | ContinuousGoal]:
    from tmkit.formats.json.reading import JsonNode
    from tmkit.tamp.problem_files import goal_of_table

    top = JsonNode(read_json_file(path, what="goal"), str(path))
    goals = [
        object.text() if isinstance(object.value, str) else goal_of_table(object)
        for object in top.items()
    ]
    if not goals:
        raise top.error("expected at least one goal, received an empty list")
    return goals


PlanningFlags = Annotated[
    dict[str, Any],
    typer.Option(help="Values of the flags that are given, by field of the options."),
]

_METAVARS = {int: "N", float: "X", bool: None, str: "NAME"}


def with_planning_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with a flag for each planning option; its ``options`` are the given values, by field."""
    kinds = option_kinds(PlanningOptions)

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in kinds}
        options = {
            name: _value(name, text, kinds[name])
            for name, text in given.items()
            if text is not None
        }
        command(**arguments, options=options)

    hints = get_type_hints(command, include_extras=True)
    hints |= {name: _annotation(name, kind) for name, kind in kinds.items()}
    del hints["options"]
    plain = inspect.signature(command).parameters
    defaults = {
        name: plain[name].default if name in plain else None for name in hints if name != "return"
    }
    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [
        inspect.Parameter(name, keyword, default=defaults[name], annotation=hints[name])
        for name in defaults
    ]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = hints
    del run.__wrapped__  # set by wraps; typer would look for hints there
    return run


def with_options(options: PlanningOptions, given: dict[str, Any]) -> PlanningOptions:
    """Return options with the values that flags give, by field; an error names the flag."""
    try:
        return replace(options, **given)
    except ConfigurationError as error:
        raise typer.BadParameter(error.message, param_hint=_flag(error.data["option"])) from None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _annotation(name: str, kind: OptionKind) -> Any:
    """Return the annotation from which typer makes a flag; it has no default, which only the dataclass has."""
    flag = f"{_flag(name)}/--no-{name.replace('_', '-')}" if kind.type is bool else _flag(name)
    metavar = (
        f"N|{kind.unlimited}" if kind.unlimited else "|".join(kind.choices) or _METAVARS[kind.type]
    )
    shown = typer.Option(flag, metavar=metavar, help=kind.help, show_default=False)
    value_type = str if kind.unlimited else kind.type
    return Annotated[value_type | None, shown]


def _value(name: str, text: Any, kind: OptionKind) -> Any:
    """Return the value of a flag that also takes the word for no limit."""
    if not kind.unlimited:
        return text
    if text != kind.unlimited and not text.isdecimal():
        raise typer.BadParameter(
            f"'{text}' is neither a number nor '{kind.unlimited}'", param_hint=_flag(name)
        )
    return None if text == kind.unlimited else int(text)
