"""The commands that go from a goal to a plan executed in physics: demo, plan, check and simulate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

import tmkit as tk
from tmkit._support.extras import require
from tmkit.cli.common import (
    AllowFolders,
    AsJson,
    DomainOption,
    Meshes,
    Packages,
    PlanFile,
    RobotOption,
    Seed,
    SemanticsOption,
    built_in_names,
    errors_about,
    load,
    load_goal,
    make_folder,
    reading_of,
    require_plug_in,
    require_writable,
    write_json,
)
from tmkit.cli.completion import Kind, complete_names
from tmkit.cli.inputs import (
    GoalArm,
    GoalAt,
    GoalFile,
    GoalIn,
    PlanningFlags,
    TmpGoal,
    TmpRobot,
    TmpScenes,
    TmpStart,
    check_goals,
    errors_about_goals,
    load_plan_file,
    refuse_beside_problem,
    start_configuration,
    wanted_goals,
    with_options,
    with_planning_flags,
)
from tmkit.cli.reporting import fail, print_json, progress, say, say_wrapped
from tmkit.cli.signals import ExitCode
from tmkit.cli.viewing import wait_for_browser
from tmkit.errors import MissingExtraError
from tmkit.simulation.engines.pybullet.registration import PYBULLET
from tmkit.simulation.engines.registry import ENGINES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tmkit.graph import SceneGraph
    from tmkit.plans import Plan
    from tmkit.simulation import SimulationReport
    from tmkit.tamp import PlanningOptions, PlanningProblem, PlanResult, ValidationReport
    from tmkit.tamp.portfolio import PortfolioResult

_DEMO_GOAL = "(and (on a b) (on b c))"


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Output folder for plan, report and pictures.")
    ] = Path("tmkit-demo"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Plan a tower of three blocks with a Panda, validate the plan, simulate it, and draw pictures of it."""
    folder = make_folder(out)
    tell = _say_nothing if as_json else say
    tell(f"Goal: {_DEMO_GOAL}")
    problem = tk.PlanningProblem(load(["panda_table", "blocks3"]), goal=_DEMO_GOAL)
    result = _plan(problem, tk.PlanningOptions(seed=seed, time_limit=60.0))
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
    left_out: list[str] = []
    with _leaving_out(left_out):
        tk.save_html(result.plan, folder / "plan.html")
    has_page = not left_out
    for number, action in enumerate(result.plan.actions, start=1):
        tell(f"  {number}. {action}")
    tell(f"Planned in {result.statistics.total_seconds:.2f} s.")
    checked = _check(result.plan)
    tell(f"Checked: {checked.configurations} configurations at finer steps, {_outcome(checked)}.")
    film, picture = folder / "demo.gif", folder / "demo.png"
    has_pictures = False
    with _leaving_out(left_out):
        require("PIL", "pictures", "pictures need")
        has_pictures = True
    report = _simulate(
        result.plan,
        tk.SimulationOptions(),
        record=film if has_pictures else None,
        picture=picture if has_pictures else None,
        recording=tk.Recording(renderer="tiny"),
    )
    write_json(folder / "report.json", report.to_dict())
    tell(f"Simulated: {report!r}")
    pictures = f"Pictures: {picture} and {film}; plan" if has_pictures else "Plan"
    tell(f"{pictures}: {folder / 'plan.json'}")
    if has_page:
        tell(f"To turn and scrub in a browser: {folder / 'plan.html'}")
    for reason in left_out:
        tell(f"Left out: {reason}")
    ok = checked.is_valid and report.is_successful
    if as_json:
        print_json(
            {
                "ok": ok,
                "goal": _DEMO_GOAL,
                "plan": result.to_dict(),
                "check": checked.to_dict(),
                "simulation": report.to_dict(),
                "left_out": left_out,
            }
        )
        if not ok:
            raise typer.Exit(ExitCode.NO)
    elif not ok:
        fail("; ".join([*checked.problems, *map(str, report.notes)]))


@contextmanager
def _leaving_out(reasons: list[str]) -> Iterator[None]:
    """Append the reason to a list, instead of raising it, where an extra is missing inside the block."""
    try:
        yield
    except MissingExtraError as error:
        reasons.append(str(error))


@with_planning_flags
def plan(
    scenes: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENE|PROBLEM.toml",
            autocompletion=complete_names(Kind.SCENES),
            help="Scene files or built-in names, merged in order; or a problem file.",
        ),
    ],
    options: PlanningFlags,
    domain: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|DIR|FILE.pddl",
            help="The PDDL domain with its semantics, blocks by default.",
            show_default=False,
            autocompletion=complete_names(Kind.DOMAINS),
        ),
    ] = None,
    semantics: SemanticsOption = None,
    problem: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A PDDL problem with the goal.")
    ] = None,
    goal: Annotated[
        str | None, typer.Option(metavar="EXPR", help="The goal in PDDL, e.g. '(on a b)'.")
    ] = None,
    goal_scene: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="A scene that shows the goal; give it again for another file."
        ),
    ] = None,
    goal_at: GoalAt = None,
    goal_in: GoalIn = None,
    goal_arm: GoalArm = None,
    goal_file: GoalFile = None,
    robot: RobotOption = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|k=v,...",
            help="Joint values at the start: a JSON or .tmp file, or given here.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PLAN.json",
            help="File of the plan; PLAN.tmp: in the format of the original TMKit.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Picture of the collision that prevents the plan, if there is none.",
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png|.svg|.json", help="Draw the search tree, or write it as data."
        ),
    ] = None,
    view: Annotated[
        bool,
        typer.Option(
            "--view", help="Show the plan in the browser, or why there is none; Ctrl-C ends it."
        ),
    ] = False,
    as_json: AsJson = False,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Find actions and motions that reach a goal."""
    from tmkit.tamp.problem_files import wrong_goal_in
    from tmkit.task_planning.fast_downward_process import start_server

    goals = wanted_goals(goal, at=goal_at, inside=goal_in, arm=goal_arm, file=goal_file)
    file = Path(scenes[0]) if len(scenes) == 1 and scenes[0].endswith(".toml") else None
    if file is not None:
        given = {
            "--problem": problem,
            "--goal": goals,
            "--goal-scene": goal_scene,
            "--robot": robot,
            "--start": start,
        }
        for option, value in given.items():
            refuse_beside_problem(file, option, value)
    elif (problem is None) is (goals is None and goal_scene is None):
        hint = "--goal, --goal-at ..., --goal-scene / --problem"
        raise typer.BadParameter(
            "give a goal, in one or several ways, or a problem: '(on a b)'", param_hint=hint
        )
    wanted = with_options(tk.PlanningOptions(), options)
    for path in (output, picture, tree):
        if path is not None:
            require_writable(path)
    start_server()
    if tree is not None and tree.suffix != ".json":
        from tmkit.visualization.drawing import require_plots

        require_plots(tree, suffixes=(".json", ".png", ".svg"))
    if file is not None:
        with progress("reading the problem"):
            task, in_file = tk.load_planning_problem(
                file, domain=domain, semantics=semantics, reading=reading_of(allow, package, meshes)
            )
        wanted = with_options(in_file, options)
    else:
        scene = load(scenes, reading=reading_of(allow, package, meshes))
        robots = robot or ["panda"]
        q = start_configuration(scene, robots, start)
        check_goals(goals, scene, file=goal_file)
        shown = (
            load_goal(scene, goal_scene, reading=reading_of(allow, package, meshes))
            if goal_scene
            else None
        )
        stated = [goals] if isinstance(goals, str) else goals or ()
        all_goals = [part for part in (shown, problem, *stated) if part is not None]
        task = tk.PlanningProblem(scene, q, domain or "blocks", all_goals, robots, semantics)
    wanted = replace(wanted, record_tree=True) if view or tree is not None else wanted
    best: dict[int, Plan] = {}
    try:
        with errors_about_goals(goal_file, other_goal=goal), wrong_goal_in(file):
            result = _plan(task, wanted, best=best)
    except KeyboardInterrupt:
        if best:
            # of the first seed, as planning does
            _give_best(best[min(best)], output, as_json=as_json)
        raise
    if result.plan is not None and output is not None:
        tk.save_plan(result.plan, output)
    if as_json:
        print_json(result.to_dict())
    else:
        say_wrapped(result.explanation)
        for number, action in enumerate(result.plan.actions if result.plan else (), start=1):
            say(f"  {number}. {action}")
        if result.plan is not None and output is not None:
            say(f"Written to {output}")
    if tree is not None:
        _write_trees(result, tree)
    if picture is not None and not result.is_solved:
        _draw(result, picture, say=_say_nothing if as_json else say)
    if view:
        from tmkit.tamp import PlanResult
        from tmkit.visualization import Viewer

        with Viewer(
            result if isinstance(result, PlanResult) else result.result, problem=task
        ) as viewer:
            wait_for_browser(viewer, opens=True)
    if not result.is_solved:
        raise typer.Exit(ExitCode.NO)


def check(
    path: PlanFile,
    scenes: TmpScenes = None,
    robot: TmpRobot = None,
    domain: DomainOption = None,
    semantics: SemanticsOption = None,
    goal: TmpGoal = None,
    start: TmpStart = None,
    as_json: AsJson = False,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Validate a plan at finer resolution than the planner's, and report whether it is valid.

    A JSON plan has all it needs, and is compared with your own scene and arm if you give --scene
    and --robot; a .tmp plan, in the format of the original TMKit, needs --scene.
    """
    # of a JSON plan the report says whether its domain is the one that is given
    is_tmp = path.suffix == ".tmp"
    plan = load_plan_file(
        path,
        scenes=scenes,
        robot=robot,
        domain=domain if is_tmp else None,
        semantics=semantics if is_tmp else None,
        goal=goal,
        start=start,
        allow=allow,
        packages=package,
        meshes=meshes,
        compares=True,
    )
    own = (
        load(scenes, reading=reading_of(allow, package, meshes)) if scenes and not is_tmp else None
    )
    own = plan.scene if is_tmp else own  # a .tmp plan is read for the caller's scene and arms
    with errors_about(path):
        report = _check(plan, domain, semantics, scene=own, robot=None if is_tmp else robot)
    if as_json:
        print_json(report.to_dict())
    else:
        for problem in report.problems:
            say_wrapped(f"  {problem}")
        for assumption in report.assumptions:
            say_wrapped(f"  not checked: {assumption}")
        say(
            f"{path}: {report.actions} actions, {report.configurations} configurations:"
            f" {_outcome(report)}"
        )
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
    rate: Annotated[float, typer.Option(metavar="HZ", help="Samples a second.")] = 50.0,
    scenes: TmpScenes = None,
    robot: TmpRobot = None,
    domain: DomainOption = None,
    semantics: SemanticsOption = None,
    goal: TmpGoal = None,
    start: TmpStart = None,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Write a plan as motions in time, for other programs; it is not validated, see 'tmkit check'."""
    from tmkit.plans import export_plan

    plan = load_plan_file(
        path,
        scenes=scenes,
        robot=robot,
        domain=domain,
        semantics=semantics,
        goal=goal,
        start=start,
        allow=allow,
        packages=package,
        meshes=meshes,
    )
    with progress("writing the motions"):
        export_plan(plan, output, format=format, rate=rate)
    say(f"Written to {output}")


def simulate(
    path: PlanFile,
    gui: Annotated[bool, typer.Option("--gui", help="Show the simulator's window.")] = False,
    view: Annotated[
        bool, typer.Option("--view", help="Show the simulation in the browser; Ctrl-C ends it.")
    ] = False,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE.gif|.webp|.mp4", help="Record a video.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the final scene.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the report.")
    ] = None,
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
    scenes: TmpScenes = None,
    robot: TmpRobot = None,
    domain: DomainOption = None,
    semantics: SemanticsOption = None,
    goal: TmpGoal = None,
    start: TmpStart = None,
    as_json: AsJson = False,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Execute a plan in the physics simulator and report the final pose of every object.

    A JSON plan has all it needs; a .tmp plan, in the format of the original TMKit, needs --scene.
    """
    if grasp not in ("contact", "constraint"):
        raise typer.BadParameter(f"'{grasp}' is none of contact, constraint", param_hint="--grasp")
    require_plug_in(ENGINES, engine, option="--engine")
    for output in (record, picture, report):
        if output is not None:
            require_writable(output)
    plan = load_plan_file(
        path,
        scenes=scenes,
        robot=robot,
        domain=domain,
        semantics=semantics,
        goal=goal,
        start=start,
        allow=allow,
        packages=package,
        meshes=meshes,
    )
    options = tk.SimulationOptions(
        gui=gui, grasp=cast("Literal['contact', 'constraint']", grasp), engine=engine
    )
    with errors_about(path):
        run = _simulate_in_view if view else _simulate
        result = run(plan, options, record=record, picture=picture)
    if report is not None:
        write_json(report, result.to_dict())
    if as_json:
        print_json(result.to_dict())
    else:
        for name, error in result.errors.items():
            say(f"  {name}: {error}")
        for note in result.notes:
            say_wrapped(f"  {note}")
        say(repr(result))
    if not result.is_successful:
        raise typer.Exit(ExitCode.NO)


def _give_best(plan: Plan, output: Path | None, *, as_json: bool) -> None:
    """Give back the best plan so far, when the command is interrupted while it improves one."""
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


def _say_nothing(_: object) -> None:
    pass


def _plan(
    problem: PlanningProblem, options: PlanningOptions, *, best: dict[int, Plan] | None = None
) -> PlanResult | PortfolioResult:
    from tmkit.tamp import ImprovementProgress, PlanningProgress, plan_portfolio
    from tmkit.tamp.progress import PortfolioImprovement

    def tell(told: PlanningProgress) -> None:
        if isinstance(told, ImprovementProgress) and best is not None:
            best[told.entry if isinstance(told, PortfolioImprovement) else 0] = told.plan
        show(told)

    with progress("planning") as show:
        entries = list(options.each_seed())
        if len(entries) > 1:
            return plan_portfolio(problem, entries, workers=options.workers, on_progress=tell)
        return tk.solve(problem, entries[0], on_progress=tell)


def _draw(
    result: PlanResult | PortfolioResult, picture: Path, *, say: Callable[[str], None]
) -> None:
    from tmkit.simulation import draw_failure
    from tmkit.tamp import PlanResult

    answer = result if isinstance(result, PlanResult) else result.result
    if any(
        cause.example is not None for action in answer.diagnosis.actions for cause in action.causes
    ):
        say(f"What was in the way: {draw_failure(answer, picture)}")
    else:
        say("No picture: no motion was in anything's way.")


def _write_trees(result: PlanResult | PortfolioResult, path: Path) -> None:
    """Draw the search trees of a run, or write them as data."""
    from tmkit.tamp import PlanResult
    from tmkit.visualization import draw_search_tree

    trees = (result if isinstance(result, PlanResult) else result.result).search_trees
    if path.suffix == ".json":
        write_json(path, [tree.to_dict() for tree in trees])
    else:
        draw_search_tree(trees, path)


def _check(
    plan: Plan,
    domain: str | None = None,
    semantics: str | None = None,
    *,
    scene: SceneGraph | None = None,
    robot: list[str] | None = None,
) -> ValidationReport:
    with progress("checking") as show:
        return tk.validate_plan(
            plan, domain=domain, semantics=semantics, scene=scene, robot=robot, on_progress=show
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
    """Simulate with the browser following; it stays open until the user interrupts."""
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
    return "the plan is valid" if report.is_valid else report.summary
