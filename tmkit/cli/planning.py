"""Commands from a goal to an executed plan: demo, plan, check, export and simulate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

import tmkit as tk
from tmkit._support.extras import is_installed, require
from tmkit.cli.common import (
    AsJson,
    PlanFile,
    RobotOption,
    SceneFileOptions,
    Seed,
    SemanticsOption,
    built_in_names,
    errors_about,
    load,
    load_goal,
    make_folder,
    require_plug_in,
    require_writable,
    write_json,
)
from tmkit.cli.completion import complete_domains, complete_scenes
from tmkit.cli.inputs import (
    GoalOptions,
    PlanningFlags,
    StartToleranceFlags,
    TmpPlanOptions,
    check_goal_file,
    errors_about_goals,
    find_arms,
    load_grasp_files,
    load_plan_file,
    name_goal_frames,
    read_goals,
    reject_repeated_options,
)
from tmkit.cli.reporting import fail, print_json, progress, say, say_wrapped
from tmkit.cli.signals import ExitCode
from tmkit.cli.tmsmt_inputs import PlanInputs, TmsmtOptions, plan_task, sort_inputs
from tmkit.cli.viewing import open_viewer, show_tmp_plan, wait_for_browser
from tmkit.errors import MissingExtraError
from tmkit.simulation.engines.mujoco.registration import MUJOCO
from tmkit.simulation.engines.pybullet.registration import PYBULLET
from tmkit.simulation.engines.registry import ENGINES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tmkit.graph import SceneGraph
    from tmkit.motion import StartTolerances
    from tmkit.plans import Plan
    from tmkit.simulation import SimulationReport
    from tmkit.tamp import PlanningOptions, PlanningProblem, PlanResult, ValidationReport
    from tmkit.tamp.portfolio import PortfolioResult
    from tmkit.tamp.problem import Goal

_DEMO_GOAL = "(and (on a b) (on b c))"
"""Goal of the demo: a tower of three blocks."""

_DEMO_TIME_LIMIT = 60.0
"""Time limit of planning in the demo [s]."""


def demo(
    output: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Output folder for plan, report and pictures."),
    ] = Path("tmkit-demo"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Plan, validate, simulate and draw a tower of three blocks with a Panda."""
    from tmkit.simulation.rendering.studio import select_renderer

    folder = make_folder(output)
    print_line = _discard if as_json else say
    print_line(f"Goal: {_DEMO_GOAL}")
    problem = tk.PlanningProblem(load(["panda_table", "blocks3"]), goal=_DEMO_GOAL)
    result = _plan(problem, tk.PlanningOptions(seed=seed, time_limit=_DEMO_TIME_LIMIT))
    if result.plan is None:
        if as_json:
            print_json(
                {
                    "ok": False,
                    "goal": _DEMO_GOAL,
                    "plan": result.to_dict(),
                    "check": None,
                    "simulation": None,
                }
            )
            raise typer.Exit(ExitCode.NO)
        fail(result.explanation)
    tk.save_plan(result.plan, folder / "plan.json")
    omissions: list[str] = []
    with _collect_missing_extras(omissions):
        tk.save_html(result.plan, folder / "plan.html")
    has_page = not omissions
    for number, action in enumerate(result.plan.actions, start=1):
        print_line(f"  {number}. {action}")
    print_line(f"Planned in {result.statistics.total_seconds:.2f} s.")

    # Validate the plan, and simulate it with pictures if their extra is installed.
    validation = _check(result.plan)
    print_line(
        f"Checked: {validation.configurations} configurations at finer steps,"
        f" {_outcome(validation)}."
    )
    video, picture = folder / "demo.webp", folder / "demo.png"
    has_pictures = False
    with _collect_missing_extras(omissions):
        require("PIL", "pictures", "pictures need")
        select_renderer()
        has_pictures = True
    report = _simulate(
        result.plan,
        tk.SimulationOptions(engine=_select_engine()),
        record=video if has_pictures else None,
        picture=picture if has_pictures else None,
        recording=tk.Recording(captions=True),
    )
    write_json(folder / "report.json", report.to_dict())
    print_line(f"Simulated: {report!r}")

    # Report the files and the result.
    pictures = f"Pictures: {picture} and {video}; plan" if has_pictures else "Plan"
    print_line(f"{pictures}: {folder / 'plan.json'}")
    if has_page:
        print_line(f"To turn and scrub in a browser: {folder / 'plan.html'}")
    for reason in omissions:
        print_line(f"Left out: {reason}")
    is_ok = validation.is_valid and report.is_successful
    if as_json:
        print_json(
            {
                "ok": is_ok,
                "goal": _DEMO_GOAL,
                "plan": result.to_dict(),
                "check": validation.to_dict(),
                "simulation": report.to_dict(),
                "left_out": omissions,
            }
        )
        if not is_ok:
            raise typer.Exit(ExitCode.NO)
    elif not is_ok:
        fail("; ".join([*validation.problems, *map(str, report.notes)]))


def _select_engine() -> str:
    """Return the default engine, or MuJoCo if only MuJoCo is installed."""
    if is_installed("mujoco") and not is_installed("pybullet"):
        return MUJOCO.name
    return PYBULLET.name


@contextmanager
def _collect_missing_extras(reasons: list[str]) -> Iterator[None]:
    """Append the message about a missing extra to a list instead of raising it."""
    try:
        yield
    except MissingExtraError as error:
        reasons.append(str(error))


@dataclass(frozen=True)
class ProblemOptions:
    """Domain, arms and start of a planning problem."""

    domain: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|DIR|FILE.pddl",
            help="The PDDL domain with its semantics, blocks by default.",
            show_default=False,
            autocompletion=complete_domains,
        ),
    ] = None
    semantics: SemanticsOption = None
    robot: RobotOption = None
    start: Annotated[
        str | None,
        typer.Option(
            "-q",
            "--start",
            metavar="FILE|k=v,...",
            help="Joint values at the start: a JSON or .tmp file, or given here.",
        ),
    ] = None
    grasps: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OBJECT=FILE[,k=v,...]",
            help=(
                "A file of GraspNet, ACRONYM or MoveIt with grasps of an object, and its frame,"
                " gripper-frame and object-id; repeatable. See 'tmkit object grasps'."
            ),
        ),
    ] = None


@dataclass(frozen=True)
class PlanOutputs:
    """Files, browser view and JSON document of a planning result."""

    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PLAN.json",
            help="File of the plan; PLAN.tmp: in the format of the original TMKit.",
        ),
    ] = None
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Picture of the collision that prevents the plan, if there is none.",
        ),
    ] = None
    tree: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png|.svg|.json", help="Draw the search tree, or write it as data."
        ),
    ] = None
    view: Annotated[
        bool,
        typer.Option(
            "--view",
            "--gui",
            help="Show the plan in the browser, or why there is none; Ctrl-C ends it.",
        ),
    ] = False
    as_json: AsJson = False


@dataclass(frozen=True)
class SimulationOutputs:
    """Windows and files that show a simulation."""

    gui: Annotated[bool, typer.Option("--gui", help="Show the simulator's window.")] = False
    view: Annotated[
        bool, typer.Option("--view", help="Show the simulation in the browser; Ctrl-C ends it.")
    ] = False
    record: Annotated[
        Path | None, typer.Option(metavar="FILE.gif|.webp|.mp4", help="Record a video.")
    ] = None
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the final scene.")
    ] = None
    report: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the report.")] = (
        None
    )


def plan(
    scenes: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENE|PROBLEM.toml",
            autocompletion=complete_scenes,
            help=(
                "Scene files or built-in names, merged in order, with a PDDL domain, PDDL problem"
                " and semantics by suffix (.pddl, .py); or a problem file."
            ),
        ),
    ],
    setup: ProblemOptions,
    goals: GoalOptions,
    outputs: PlanOutputs,
    original: TmsmtOptions,
    files: SceneFileOptions,
    flags: PlanningFlags,
) -> None:
    """Find actions and motions that reach a goal."""
    from tmkit.tamp.problem_files import locate_goal_errors
    from tmkit.task_planning.fast_downward_process import start_server

    # Check all options before any work is done.
    stated_goals = read_goals(goals)
    inputs = sort_inputs(
        scenes, PlanInputs([], setup.domain, setup.semantics, goals.problem, original.load_plan)
    )
    scenes = inputs.scenes
    if inputs.plan is not None:
        show_tmp_plan(scenes, inputs.plan, setup.start, files)
        return
    file = Path(scenes[0]) if len(scenes) == 1 and scenes[0].endswith(".toml") else None
    if file is not None:
        values = {
            "--problem": inputs.problem,
            "--goal": stated_goals,
            "--goal-scene": goals.goal_scene,
            "--robot": setup.robot,
            "--start": setup.start,
            "--grasps": setup.grasps,
        }
        reject_repeated_options(file, values)
    elif inputs.problem is None and stated_goals is None and goals.goal_scene is None:
        hint = "--goal, --goal-at ..., --goal-scene / --problem"
        raise typer.BadParameter(
            "give a goal, in one or several ways, or a problem: '(on a b)'", param_hint=hint
        )
    options = flags.apply(tk.PlanningOptions())
    for path in (outputs.output, outputs.picture, outputs.tree):
        if path is not None:
            require_writable(path)
    if inputs.is_task:
        for option, value in {
            "--goal": stated_goals,
            "--goal-scene": goals.goal_scene,
            "--robot": setup.robot,
            "--start": setup.start,
            "--write-facts": original.write_facts,
        }.items():
            if value:
                raise typer.BadParameter("it needs the files of a scene", param_hint=option)
        plan_task(inputs, output=outputs.output, as_json=outputs.as_json)
        return
    start_server()
    if outputs.tree is not None and outputs.tree.suffix != ".json":
        from tmkit.visualization.drawing import require_plots

        require_plots(outputs.tree, suffixes=(".json", ".png", ".svg"))

    # Read the problem, and plan.
    if file is not None:
        with progress("reading the problem"):
            problem, file_options = tk.load_planning_problem(
                file,
                domain=inputs.domain,
                semantics=inputs.semantics,
                reading=files.reading_options(),
            )
        options = flags.apply(file_options)
    else:
        scene = load(scenes, reading=files.reading_options())
        scene, robots, q = find_arms(scene, inputs.semantics, setup.robot, setup.start)
        check_goal_file(goals.goal_file, scene)
        all_goals: list[Goal] = []
        if goals.goal_scene:
            all_goals.append(load_goal(scene, goals.goal_scene, reading=files.reading_options()))
        if inputs.problem is not None:
            all_goals.append(inputs.problem)
        if isinstance(stated_goals, str):
            stated_goals = [stated_goals]
        all_goals += [name_goal_frames(goal, scene) for goal in stated_goals or ()]
        samplers = tk.Samplers()
        for grasps in load_grasp_files(setup.grasps, scene, robots, q):
            (_discard if outputs.as_json else say)(grasps.summary)
            samplers = samplers.with_grasps(grasps, of_frame=grasps.object)
        if setup.grasps:
            options = replace(options, samplers=samplers)
        problem = tk.PlanningProblem(
            scene, q, inputs.domain or "blocks", all_goals, robots, inputs.semantics
        )
    original.write_derived_facts(problem, options)
    if outputs.view or outputs.tree is not None:
        options = replace(options, record_tree=True)
    best_plans: dict[int, Plan] = {}
    try:
        with errors_about_goals(goals.goal_file, other_goal=goals.goal), locate_goal_errors(file):
            result = _plan(problem, options, best_plans=best_plans)
    except KeyboardInterrupt:
        if best_plans:
            # The plan of the first seed is also the result without an interrupt.
            _print_best_plan(best_plans[min(best_plans)], outputs.output, as_json=outputs.as_json)
        raise
    original.append_times(_single_result(result))
    _write_plan(result, problem, outputs)
    if not result.is_solved:
        raise typer.Exit(ExitCode.NO)


def _write_plan(
    result: PlanResult | PortfolioResult, problem: PlanningProblem, outputs: PlanOutputs
) -> None:
    """Write and print a planning result, and show it in the browser."""
    output = outputs.output
    if result.plan is not None and output is not None:
        tk.save_plan(result.plan, output)
    if outputs.as_json:
        print_json(result.to_dict())
    else:
        say_wrapped(result.explanation)
        for number, action in enumerate(result.plan.actions if result.plan else (), start=1):
            say(f"  {number}. {action}")
        if result.plan is not None and output is not None:
            say(f"Written to {output}")
    if outputs.tree is not None:
        _write_trees(result, outputs.tree, print_line=_discard if outputs.as_json else say_wrapped)
    if outputs.picture is not None and not result.is_solved:
        _draw_failure(result, outputs.picture, print_line=_discard if outputs.as_json else say)
    if outputs.view:
        with open_viewer(_single_result(result), problem=problem) as viewer:
            wait_for_browser(viewer, opens=True)


def check(
    path: PlanFile,
    plan_options: TmpPlanOptions,
    *,
    as_json: AsJson = False,
    files: SceneFileOptions,
    start: StartToleranceFlags,
) -> None:
    """Validate a plan at finer resolution than the planner's, and report whether it is valid.

    A JSON plan is complete; --scene and --robot compare it with your own scene and arm. A .tmp
    plan, in the format of the original TMKit, needs --scene.
    """
    from tmkit.tamp.domains.tmsmt_scripts.start import allow_start_collisions, read_script

    scenes, is_tmp = plan_options.scenes, path.suffix == ".tmp"
    # The report on a JSON plan compares its domain with that of the options, as it does the scene.
    load_options = plan_options if is_tmp else replace(plan_options, domain=None, semantics=None)
    plan = load_plan_file(path, load_options, files, is_comparison=True)
    scene = None
    if is_tmp:
        scene = plan.scene  # read for the scene and the arms of the options
    elif scenes:
        scene = load(scenes, reading=files.reading_options())
        if read_script(plan_options.semantics) is not None:
            scene = allow_start_collisions(scene, plan.robots, plan.q)
    with errors_about(path):
        report = _check(
            plan,
            plan_options.domain,
            plan_options.semantics,
            scene=scene,
            robot=None if is_tmp else plan_options.robot,
            start_tolerances=start.tolerances(),
        )
    if as_json:
        print_json(report.to_dict())
    else:
        for problem in report.problems:
            say_wrapped(f"  {problem}")
        say(
            f"{path}: {report.actions} actions, {report.configurations} configurations:"
            f" {_outcome(report)}"
        )
        for assumption in report.assumptions:
            say_wrapped(f"  note: {assumption}")
    if not report.is_valid:
        raise typer.Exit(ExitCode.NO)


def export(
    path: PlanFile,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="PATH", help="A file (.csv, .json), or a folder that is made."
        ),
    ],
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="csv|ros2|lerobot",
            help="A table; messages for ROS 2 as JSON or in a bag; a dataset in LeRobot's layout.",
        ),
    ],
    *,
    rate: Annotated[float, typer.Option(metavar="HZ", help="Samples a second.")] = 50.0,
    controller: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARM=NAME",
            help="For ros2: the controller of an arm, or HAND=NAME of the hand with that tip frame;"
            " repeatable. By default ARM_controller.",
        ),
    ] = None,
    plan_options: TmpPlanOptions,
    files: SceneFileOptions,
) -> None:
    """Write a plan as motions in time, for other programs; 'tmkit check' validates it."""
    from tmkit.plans import export_plan

    controllers = _parse_controllers(controller or [])
    plan = load_plan_file(path, plan_options, files)
    with progress("writing the motions"):
        export_plan(plan, output, format=format, rate=rate, controllers=controllers)
    say(f"Written to {output}")


def _parse_controllers(texts: list[str]) -> dict[str, str]:
    """Parse ``ARM=NAME`` texts to names of controllers by arm or hand.

    Raises:
        typer.BadParameter: if a text has another form or an arm or hand occurs twice.
    """
    controllers: dict[str, str] = {}
    for text in texts:
        name, _, controller = text.partition("=")
        if not name or not controller:
            raise typer.BadParameter(
                f"'{text}' is not of the form ARM=NAME", param_hint="--controller"
            )
        if name in controllers:
            raise typer.BadParameter(f"'{name}' is given twice", param_hint="--controller")
        controllers[name] = controller
    return controllers


def simulate(
    path: PlanFile,
    *,
    outputs: SimulationOutputs,
    grasp: Annotated[
        str,
        typer.Option(
            metavar="contact|constraint", help="Hold objects by friction, or by a constraint."
        ),
    ] = "contact",
    engine: Annotated[
        str,
        typer.Option(
            metavar=built_in_names(ENGINES, separator="|"),
            help="The physics engine; all: tmkit list engines.",
        ),
    ] = PYBULLET.name,
    plan_options: TmpPlanOptions,
    as_json: AsJson = False,
    files: SceneFileOptions,
) -> None:
    """Execute a plan in the physics simulator and report the final pose of every object.

    A JSON plan is complete. A .tmp plan, in the format of the original TMKit, needs --scene.
    """
    if grasp not in ("contact", "constraint"):
        raise typer.BadParameter(f"'{grasp}' is none of contact, constraint", param_hint="--grasp")
    require_plug_in(ENGINES, engine, option="--engine")
    for file in (outputs.record, outputs.picture, outputs.report):
        if file is not None:
            require_writable(file)
    plan = load_plan_file(path, plan_options, files)
    options = tk.SimulationOptions(
        gui=outputs.gui, grasp=cast("Literal['contact', 'constraint']", grasp), engine=engine
    )
    with errors_about(path):
        run = _simulate_in_view if outputs.view else _simulate
        report = run(plan, options, record=outputs.record, picture=outputs.picture)
    if outputs.report is not None:
        write_json(outputs.report, report.to_dict())
    if as_json:
        print_json(report.to_dict())
    else:
        for name, error in report.errors.items():
            say(f"  {name}: {error}")
        for note in report.notes:
            say_wrapped(f"  {note}")
        say(repr(report))
    if not report.is_successful:
        raise typer.Exit(ExitCode.NO)


def _print_best_plan(plan: Plan, output: Path | None, *, as_json: bool) -> None:
    """Write and print the best plan so far, after an interrupt of its improvement."""
    if output is not None:
        tk.save_plan(plan, output)
    actions = [str(action) for action in plan.actions]
    if as_json:
        print_json(
            {
                "status": "interrupted",
                "actions": actions,
                "cost": plan.cost,
                "path_length": plan.path_length,
            }
        )
        return
    say(
        f"Interrupted; the best plan so far has {len(actions)} actions and {plan.path_length:.2f}"
        " rad of paths."
    )
    for number, action in enumerate(actions, start=1):
        say(f"  {number}. {action}")
    if output is not None:
        say(f"Written to {output}")


def _discard(_: object) -> None:
    """Discard a line."""


def _single_result(result: PlanResult | PortfolioResult) -> PlanResult:
    """Return the result of planning with one seed, that of the chosen seed of a portfolio."""
    from tmkit.tamp import PlanResult

    return result if isinstance(result, PlanResult) else result.result


def _plan(
    problem: PlanningProblem, options: PlanningOptions, *, best_plans: dict[int, Plan] | None = None
) -> PlanResult | PortfolioResult:
    """Plan with one seed or several, and show the progress.

    Args:
        problem: problem to solve.
        options: planning options, with the number of seeds.
        best_plans: receives each improved plan, by the index of its seed.
    """
    from tmkit.tamp import ImprovementProgress, PlanningProgress, plan_portfolio
    from tmkit.tamp.progress import PortfolioImprovement

    def report(state: PlanningProgress) -> None:
        if isinstance(state, ImprovementProgress) and best_plans is not None:
            best_plans[state.entry if isinstance(state, PortfolioImprovement) else 0] = state.plan
        show(state)

    with progress("planning") as show:
        entries = list(options.each_seed())
        if len(entries) > 1:
            return plan_portfolio(problem, entries, workers=options.workers, on_progress=report)
        return tk.solve(problem, entries[0], on_progress=report)


def _draw_failure(
    result: PlanResult | PortfolioResult, picture: Path, *, print_line: Callable[[str], None]
) -> None:
    """Draw the collision that prevents a plan, if the diagnosis has one."""
    from tmkit.simulation import draw_failure

    single = _single_result(result)
    causes = [cause for action in single.diagnosis.actions for cause in action.causes]
    if any(cause.example is not None for cause in causes):
        print_line(f"What was in the way: {draw_failure(single, picture)}")
    else:
        print_line("No picture: no motion was in anything's way.")


def _write_trees(
    result: PlanResult | PortfolioResult, path: Path, *, print_line: Callable[[str], None]
) -> None:
    """Draw the search trees of a run with a choice, or write them as data."""
    from tmkit.visualization import draw_search_tree
    from tmkit.visualization.search_tree_picture import has_backtracked

    single = _single_result(result)
    trees = single.search_trees
    if path.suffix == ".json":
        write_json(path, [tree.to_dict() for tree in trees])
    elif single.plan is not None and not has_backtracked(trees):
        print_line(
            f"{path} is not written: the search did not backtrack, so its tree is the list of"
            " actions above."
        )
    else:
        draw_search_tree(trees, path, learned=single.diagnosis.constraints)


def _check(
    plan: Plan,
    domain: str | None = None,
    semantics: str | None = None,
    *,
    scene: SceneGraph | None = None,
    robot: list[str] | None = None,
    start_tolerances: StartTolerances | None = None,
) -> ValidationReport:
    """Validate a plan, and show the progress."""
    with progress("checking") as show:
        return tk.validate_plan(
            plan,
            domain=domain,
            semantics=semantics,
            scene=scene,
            robot=robot,
            start_tolerances=start_tolerances,
            on_progress=show,
        )


def _simulate(
    plan: Plan,
    options: tk.SimulationOptions,
    *,
    record: Path | None,
    picture: Path | None,
    recording: tk.Recording | None = None,
    on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None = None,
) -> SimulationReport:
    """Simulate a plan, and show the progress."""
    with progress("simulating") as show:
        return tk.simulate(
            plan,
            record=record,
            picture=picture,
            recording=recording,
            options=options,
            on_progress=show,
            on_state=on_state,
        )


def _simulate_in_view(
    plan: Plan, options: tk.SimulationOptions, *, record: Path | None, picture: Path | None
) -> SimulationReport:
    """Simulate a plan and show it in the browser, until the user interrupts."""
    import webbrowser

    from tmkit.visualization import LatestScene, Viewer

    latest = LatestScene(plan.scene, plan.q)
    with Viewer(plan.scene, q=plan.q) as viewer:
        say(f"Showing at {viewer.url}")
        webbrowser.open(viewer.url)
        viewer.follow(latest)
        report = _simulate(plan, options, record=record, picture=picture, on_state=latest.put)
        latest.end()
        wait_for_browser(viewer, opens=False)
    return report


def _outcome(report: ValidationReport) -> str:
    """Return the result of a validation as text."""
    from tmkit._support.results import problem_count

    return "the plan is valid" if report.is_valid else problem_count(report)
