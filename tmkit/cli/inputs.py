"""Inputs of a command from options and files: goals, start configuration, plans, planning flags.

``--goal-at cup@table=0.1,0.2,0.03`` (three more numbers are roll, pitch and yaw), ``--goal-at
cup@tray=center``, ``--goal-in cup@tray`` and ``--goal-arm joint=value,...`` are goals that PDDL
cannot express. ``--goal-file FILE.json`` is a list of such goals, as in plan files but with
optional tolerances, and of goals in PDDL. All goals must hold together, including ``--goal``.

A ``.tmp`` plan of the original TMKit contains only actions and motions, so options add its scene,
arm, domain and goal. A JSON plan contains them, and these options are rejected. Each field of
:class:`tmkit.tamp.PlanningOptions` becomes a flag.

Invariant: each option is an argument of :func:`tmkit.plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import typer

from tmkit._support.data import is_bare
from tmkit._support.json_files import read_json
from tmkit._support.limits import ReadingLimits
from tmkit._support.options import OptionKind, option_kinds
from tmkit.cli.common import DomainOption, SceneFileOptions, SemanticsOption, errors_about, load
from tmkit.cli.completion import complete_robots
from tmkit.errors import ConfigurationError, FileFormatError, UnknownNameError
from tmkit.tamp.options import PlanningOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tmkit.graph import SceneGraph
    from tmkit.manipulation.grasp_files.loading import GraspFile
    from tmkit.motion import StartTolerances
    from tmkit.plans import Plan
    from tmkit.plans.continuous_goals import ContinuousGoal
    from tmkit.robots import Manipulator

_T = TypeVar("_T")


@dataclass(frozen=True)
class TmpPlanOptions:
    """Scene, arm, domain, goal and start configuration of a ``.tmp`` plan."""

    scenes: Annotated[
        list[str] | None,
        typer.Option(
            "--scene",
            metavar="SCENE",
            help=(
                "For a .tmp plan: its initial scene; repeatable, merged. With a JSON plan: to"
                " compare with its own."
            ),
        ),
    ] = None
    robot: Annotated[
        list[str] | None,
        typer.Option(
            "--robot",
            metavar="NAME|FILE",
            help="For a .tmp plan: the arm, if not its own; repeatable, for several.",
            autocompletion=complete_robots,
        ),
    ] = None
    domain: DomainOption = None
    semantics: SemanticsOption = None
    goal: Annotated[
        str | None,
        typer.Option("--goal", metavar="EXPR", help="For a .tmp plan: the goal, if not its own."),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            metavar="FILE|k=v,...",
            help="For a .tmp plan: joint values that it does not contain.",
        ),
    ] = None


def load_plan_file(
    path: Path, options: TmpPlanOptions, files: SceneFileOptions, *, is_comparison: bool = False
) -> Plan:
    """Load a JSON or ``.tmp`` plan, by the suffix of its file.

    Args:
        path: file of the plan.
        options: scene, arm, domain, goal and start configuration of a ``.tmp`` plan.
        files: folders, packages and meshes of the scene of a ``.tmp`` plan.
        is_comparison: whether the caller compares the scene and the arm of a JSON plan with those
            of the options, which are otherwise rejected.

    Raises:
        typer.BadParameter: if an option repeats the content of a JSON plan, or a ``.tmp`` plan has
            no scene.
    """
    from tmkit.plans import load_plan
    from tmkit.tamp.domains.loading import check_plan_domain
    from tmkit.tamp.domains.tmsmt_scripts.start import read_script
    from tmkit.tamp.validation.tmp_plan import load_tmp_plan, read_tmp_header

    if path.suffix != ".tmp":
        _reject_tmp_options(path, options, files, is_comparison=is_comparison)
        plan = load_plan(path)
        check_plan_domain(plan, path, options.domain, options.semantics)
        return plan
    if not options.scenes:
        raise typer.BadParameter(
            f"'{path}' is a .tmp plan, which has no scene in it; name the scene it starts in, e.g."
            " --scene panda_table",
            param_hint="--scene",
        )
    scene = load(options.scenes, reading=files.reading_options())
    default = read_tmp_header(path).robots
    start = options.start
    if start is None and read_script(options.semantics) is not None:
        start = str(path)  # bodies that collide there may do so
    scene, arms, q = find_arms(scene, options.semantics, options.robot, start, default=default)
    return load_tmp_plan(
        path,
        scene,
        q=q,
        domain=options.domain,
        semantics=options.semantics,
        robot=arms,
        goal=options.goal,
    )


def _reject_tmp_options(
    path: Path, options: TmpPlanOptions, files: SceneFileOptions, *, is_comparison: bool
) -> None:
    """Reject the options whose values a JSON plan contains.

    Raises:
        typer.BadParameter: if such an option has a value.
    """
    values: dict[str, object] = {"--goal": options.goal, "--start": options.start}
    if not is_comparison:
        values |= {"--scene": options.scenes, "--robot": options.robot}
    if not options.scenes:
        meshes = files.meshes if files.meshes != "load" else None
        values |= {"--allow": files.allow, "--package": files.package, "--meshes": meshes}
        values |= {"--allow-xacro": files.allow_xacro, "--xacro": files.xacro}
    for option, value in values.items():
        if value:
            raise typer.BadParameter(
                f"'{path}' contains this; only a .tmp plan needs it", param_hint=option
            )


def reject_repeated_options(path: Path, values: Mapping[str, object]) -> None:
    """Reject the options, by name, whose values a problem file contains.

    Raises:
        typer.BadParameter: if an option has a value.
    """
    for option, value in values.items():
        if value:
            raise typer.BadParameter(f"'{path}' states this itself", param_hint=option)


def read_json_file(path: Path, *, what: str) -> Any:
    """Read a JSON file.

    Args:
        path: file to read.
        what: kind of the file, for the message about a missing file.
    """
    return read_json(path, limit=ReadingLimits().text_bytes, what=what)[0]


def start_configuration(
    scene: SceneGraph, robots: Sequence[str], start: str | None
) -> NDArray[np.float64] | None:
    """Return the configuration (n_joints,) of ``--start``, or None if it is omitted.

    Joints without a value are in the ready configurations of the arms, or at zero.

    Raises:
        UnknownNameError: if the scene has no joint of a name.
    """
    if start is None:
        return None
    from tmkit.robots.robot_files import find_manipulators, home_configuration

    if "=" in start or (is_bare(start) and not Path(start).exists()):
        values = parse_joint_values(start, option="--start")
    elif start.endswith(".tmp"):
        values = _read_tmp_start(start, scene)
    else:
        values = _read_start_file(Path(start))
    for joint in values:
        if joint not in scene.joint_names:
            where = "--start" if "=" in start else f"--start {start}"
            raise UnknownNameError.of("joint", joint, scene.joint_names, where=where)
    home = home_configuration(find_manipulators(robots, scene), scene) if robots else None
    return scene.configuration(values, base=home)


def find_arms(
    scene: SceneGraph,
    semantics: str | None,
    names: Sequence[str] | None,
    start: str | None,
    *,
    default: Sequence[str] = ("panda",),
) -> tuple[SceneGraph, Sequence[str | Manipulator], NDArray[np.float64] | None]:
    """Return the scene, the arms and the start configuration (n_joints,) of a plan, or None.

    A script of the original TMKit names its arms. With it as semantics, pairs that collide at the
    start may collide in the returned scene.

    Args:
        scene: scene at the start.
        semantics: domain semantics, if not those of the domain.
        names: arms of ``--robot``.
        start: value of ``--start``.
        default: arms without ``--robot``.
    """
    from tmkit.tamp.domains.tmsmt_scripts.start import (
        allow_start_collisions,
        read_script,
        script_arms,
    )

    source = read_script(semantics)
    if source is None:
        robots = names or default
        return scene, robots, start_configuration(scene, robots, start)
    from tmkit.robots.robot_files import find_manipulators, home_configuration

    q = start_configuration(scene, names or (), start)
    path = Path(str(semantics))
    arms = find_manipulators(names, scene) if names else script_arms(path, source, scene, q=q)
    if q is None:
        q = home_configuration(arms, scene)
    return allow_start_collisions(scene, arms, q), arms, q


def _read_tmp_start(path: str, scene: SceneGraph) -> dict[str, float]:
    """Return the first configuration of a plan file of the original TMKit, by joint.

    Raises:
        FileFormatError: if the scene has no joint of a name.
    """
    from tmkit._support.source_location import did_you_mean
    from tmkit.formats.tmp_file import first_configuration, read_tmp

    motion, values = first_configuration(read_tmp(path))
    for joint, place in zip(motion.joints, motion.joint_places, strict=True):
        if joint not in scene.joint_names:
            raise place.error(
                f"the scene has no joint '{joint}'{did_you_mean(joint, scene.joint_names)}"
            )
    return values


def parse_joint_values(text: str, *, option: str) -> dict[str, float]:
    """Parse ``joint=number,...`` to joint values [rad or m] by joint.

    Args:
        text: value of the option.
        option: name of the option, with which messages begin.

    Raises:
        ConfigurationError: if a joint occurs twice or has no number.
    """
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
    """Return the joint values [rad or m] of a JSON file, by joint.

    Raises:
        FileFormatError: if the file is not an object of finite numbers.
    """
    from tmkit.robots.manipulator import is_number

    document = read_json_file(path, what="start")
    if not isinstance(document, dict) or not all(is_number(value) for value in document.values()):
        raise FileFormatError.at(
            path, 'must be an object of finite numbers by joint name, as {"joint": 0.1}'
        )
    return {name: float(value) for name, value in document.items()}


def load_grasp_files(
    texts: Sequence[str] | None,
    scene: SceneGraph,
    robots: Sequence[str | Manipulator],
    q: NDArray[np.float64] | None,
) -> list[GraspFile]:
    """Return the grasp files of ``--grasps``.

    Args:
        texts: values of ``--grasps``.
        scene: scene with the objects.
        robots: arms, whose ready configurations are the start by default.
        q: (n_joints,) configuration at the start.
    """
    if not texts:
        return []
    from tmkit.robots.robot_files import find_manipulators, home_configuration

    start = home_configuration(find_manipulators(robots, scene), scene) if q is None else q
    return [_parse_grasp_file(text, scene, start) for text in texts]


def _parse_grasp_file(text: str, scene: SceneGraph, q: NDArray[np.float64]) -> GraspFile:
    """Load the file of ``OBJECT=FILE[,frame=FRAME][,gripper-frame=FRAME][,object-id=N]``.

    Args:
        text: value of ``--grasps``.
        scene: scene with the object.
        q: (n_joints,) configuration.

    Raises:
        ConfigurationError: if the text has another form.
    """
    from tmkit.manipulation import load_grasps

    object, _, rest = text.partition("=")
    file, *pairs = rest.split(",")
    values = {pair.partition("=")[0]: pair.partition("=")[2] for pair in pairs}
    keys = {"frame", "gripper-frame", "object-id"}
    number = values.get("object-id")
    is_number = number is None or number.lstrip("-").isdecimal()
    if not object or not file or not keys >= set(values) or "" in values.values() or not is_number:
        form = "OBJECT=FILE[,frame=FRAME][,gripper-frame=FRAME][,object-id=N]"
        raise ConfigurationError(f"--grasps: '{text}' is not of the form {form}")
    return load_grasps(
        file,
        scene,
        object.strip(),
        frame=values.get("frame"),
        gripper_frame=values.get("gripper-frame"),
        object_id=None if number is None else int(number),
        q=q,
    )


@dataclass(frozen=True)
class GoalOptions:
    """Goals in PDDL, as scenes and as poses or joint values."""

    problem: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A PDDL problem with the goal.")
    ] = None
    goal: Annotated[
        str | None, typer.Option(metavar="EXPR", help="The goal in PDDL, e.g. '(on a b)'.")
    ] = None
    goal_scene: Annotated[
        list[str] | None,
        typer.Option(
            "-g",
            "--goal-scene",
            metavar="FILE",
            help="A scene that shows the goal; give it again for another file.",
        ),
    ] = None
    goal_at: Annotated[
        list[str] | None,
        typer.Option(
            "--goal-at",
            metavar="OBJECT@FRAME=X,Y,Z[,R,P,Y]|center",
            help=(
                "An object at a point of a frame, in metres, at a pose, with roll, pitch, yaw, or"
                " at the centre of a surface or region; repeatable."
            ),
        ),
    ] = None
    goal_in: Annotated[
        list[str] | None,
        typer.Option(
            "--goal-in", metavar="OBJECT@REGION", help="An object at rest in a region; repeatable."
        ),
    ] = None
    goal_arm: Annotated[
        str | None, typer.Option("--goal-arm", metavar="k=v,...", help="Joint values at the end.")
    ] = None
    goal_file: Annotated[
        Path | None,
        typer.Option(
            "--goal-file",
            metavar="FILE.json",
            help="A list of such goals with tolerances, and of goals in PDDL.",
        ),
    ] = None


def read_goals(options: GoalOptions) -> str | list[str | ContinuousGoal] | None:
    """Return the goals of the options, except those of a problem or scene file.

    Returns:
        A PDDL goal alone as text, several goals as a list, or None without a goal.

    Raises:
        ConfigurationError: if the value of an option is malformed.
        FileFormatError: if the goal file is malformed.
    """
    from tmkit.plans import ArmAt

    goals: list[str | ContinuousGoal] = [] if options.goal is None else [options.goal]
    goals += [_parse_goal_at(text) for text in options.goal_at or ()]
    goals += [_parse_goal_in(text) for text in options.goal_in or ()]
    if options.goal_arm is not None:
        goals.append(ArmAt(parse_joint_values(options.goal_arm, option="--goal-arm")))
    if options.goal_file is not None:
        goals += _read_goal_file(options.goal_file)
    if not goals:
        return None
    return options.goal if options.goal is not None and len(goals) == 1 else goals


def check_goal_file(path: Path | None, scene: SceneGraph) -> None:
    """Check that the frames and joints of a goal file exist; the planner checks those of options.

    Raises:
        UnknownNameError: if a frame or joint is unknown.
    """
    from tmkit.plans.continuous_goals import ContinuousGoal

    if path is None:
        return
    for index, goal in enumerate(_read_goal_file(path)):
        if isinstance(goal, ContinuousGoal):
            with errors_about(f"{path}: [{index}]"):
                goal.check(scene)


def name_goal_frames(goal: str | ContinuousGoal, scene: SceneGraph) -> str | ContinuousGoal:
    """Return a goal with the frames of the scene for names of joints and of parts of links."""
    from tmkit.formats.spec.build import find_frame
    from tmkit.plans import ObjectAt, ObjectIn

    if isinstance(goal, ObjectAt):
        frame = find_frame(scene, goal.relative_to)
        return goal if frame is None else replace(goal, relative_to=frame)
    if isinstance(goal, ObjectIn):
        frame = find_frame(scene, goal.region)
        return goal if frame is None else replace(goal, region=frame)
    return goal


@contextmanager
def errors_about_goals(file: Path | None, *, other_goal: str | None) -> Iterator[None]:
    """Add the goal file to errors about a PDDL goal that no other option contains."""
    try:
        yield
    except FileFormatError as error:
        excerpt = error.message.split("\n")[1:2]
        is_of_option = bool(other_goal and excerpt and excerpt[0].strip() in other_goal)
        if error.data.get("path") == "goal" and not is_of_option:
            with errors_about(file):
                raise
        raise


def _parse_goal_at(text: str) -> ContinuousGoal:
    """Parse a value of ``--goal-at``, in [m] and [rad].

    Raises:
        ConfigurationError: if the text has another form.
    """
    from tmkit.plans import ObjectAt
    from tmkit.plans.continuous_goals import CENTER
    from tmkit.spatial import Pose

    names, _, values = text.rpartition("=")
    object, _, frame = (name.strip() for name in names.partition("@"))
    if object and frame and values.strip() == CENTER:
        return ObjectAt(object, CENTER, relative_to=frame)
    try:
        numbers = [float(number) for number in values.split(",")]
    except ValueError:
        numbers = []
    if not object or not frame or len(numbers) not in (3, 6):
        form = "OBJECT@FRAME=X,Y,Z[,ROLL,PITCH,YAW] or OBJECT@FRAME=center"
        raise ConfigurationError(f"--goal-at: '{text}' is not of the form {form}")
    if len(numbers) == 3:
        return ObjectAt(object, Pose(numbers), relative_to=frame, radians=None)
    return ObjectAt(object, Pose.from_rpy(numbers[:3], numbers[3:]), relative_to=frame)


def _parse_goal_in(text: str) -> ContinuousGoal:
    """Parse a value of ``--goal-in``.

    Raises:
        ConfigurationError: if the text has another form.
    """
    from tmkit.plans import ObjectIn

    object, _, region = (name.strip() for name in text.partition("@"))
    if not object or not region:
        raise ConfigurationError(f"--goal-in: '{text}' is not of the form OBJECT@REGION")
    return ObjectIn(object, region)


def _read_goal_file(path: Path) -> list[str | ContinuousGoal]:
    """Return the goals of a JSON file.

    Raises:
        FileFormatError: if the file is not a list of at least one goal.
    """
    from tmkit.formats.json.reading import JsonNode
    from tmkit.tamp.problem_files import goal_of_table

    top = JsonNode(read_json_file(path, what="goal"), str(path))
    goals = [
        node.text() if isinstance(node.value, str) else goal_of_table(node) for node in top.items()
    ]
    if not goals:
        raise top.error("expected at least one goal, received an empty list")
    return goals


_METAVARS = {int: "N", float: "X", bool: None, str: "NAME"}
"""Placeholders of values in help texts, by type."""


def _flag(name: str) -> str:
    """Return the flag of a planning option."""
    return f"--{name.replace('_', '-')}"


def _flag_annotation(name: str, kind: OptionKind) -> Any:
    """Return the annotation from which typer makes a flag, without the default of the option."""
    flag = _flag(name)
    if kind.type is bool:
        flag = f"{flag}/--no-{name.replace('_', '-')}"
    metavar = "|".join(kind.choices) or _METAVARS[kind.type]
    if kind.unlimited:
        metavar = f"N|{kind.unlimited}"
    option = typer.Option(flag, metavar=metavar, help=kind.help, show_default=False)
    value_type = str if kind.unlimited else kind.type
    return Annotated[value_type | None, option]


def _parse_flag(name: str, value: Any, kind: OptionKind) -> Any:
    """Return the value of a flag; None for the word for no limit."""
    if not kind.unlimited:
        return value
    if value != kind.unlimited and not value.isdecimal():
        raise typer.BadParameter(
            f"'{value}' is neither a number nor '{kind.unlimited}'", param_hint=_flag(name)
        )
    return None if value == kind.unlimited else int(value)


def _add_planning_flags(group: type[_T]) -> type[_T]:
    """Return a dataclass with a flag for each of its planning options; None is not a value."""
    kinds = option_kinds(PlanningOptions)
    names = getattr(group, "names", tuple(kinds))
    flags = [(name, _flag_annotation(name, kinds[name]), None) for name in names]
    return make_dataclass(group.__name__, flags, bases=(group,), frozen=True)


@_add_planning_flags
class PlanningFlags:
    """Values of the planning flags, by field of :class:`tmkit.tamp.PlanningOptions`."""

    def __post_init__(self) -> None:
        self._values()

    def apply(self, options: PlanningOptions) -> PlanningOptions:
        """Return options with the values of the flags.

        Raises:
            typer.BadParameter: if a value is out of range.
        """
        try:
            return replace(options, **self._values())
        except ConfigurationError as error:
            raise typer.BadParameter(
                error.message, param_hint=_flag(error.data["option"])
            ) from None

    def _values(self) -> dict[str, Any]:
        """Return the values of the flags on the command line, by field.

        Raises:
            typer.BadParameter: if a value is neither a number nor the word for no limit.
        """
        kinds, values = option_kinds(PlanningOptions), vars(self)
        return {
            name: _parse_flag(name, text, kinds[name])
            for name, text in values.items()
            if text is not None
        }


@_add_planning_flags
class StartToleranceFlags:
    """Values of the planning flags of :class:`tmkit.motion.StartTolerances`."""

    names: ClassVar[tuple[str, ...]] = ("start_penetration", "start_floating", "start_sinking")

    def tolerances(self) -> StartTolerances:
        """Return the tolerances with the values of the flags.

        Raises:
            typer.BadParameter: if a value is out of range.
        """
        values = {name: value for name, value in vars(self).items() if value is not None}
        try:
            return PlanningOptions(**values).start_tolerances
        except ConfigurationError as error:
            raise typer.BadParameter(
                error.message, param_hint=_flag(error.data["option"])
            ) from None
