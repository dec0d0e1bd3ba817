"""The ``tmkit`` command: thin, since every command calls one function of the library.

What the user sees: progress on the standard error, answers on the standard output, and an exit code that means
something: 0 done; 1 the answer is no (no plan, a check that failed, a simulation that missed); 2 bad input or usage,
with a message and no traceback; 3 an internal error, with where to report it; 130 interrupted.
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.status import Status

from tmkit.errors import (
    ConfigurationError,
    FileFormatError,
    MissingFileError,
    OutputError,
    TmkitError,
    UnknownNameError,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tmkit.graph import SceneGraph
    from tmkit.planner import CheckReport, Plan, PlanResult
    from tmkit.simulation import SimulationReport

__all__ = ["ExitCode", "main"]

_DEMO_GOAL = "(and (on a b) (on b c))"


class ExitCode(IntEnum):
    """What the exit codes mean."""

    DONE = 0
    NO = 1
    BAD_INPUT = 2
    INTERNAL = 3
    INTERRUPTED = 130


app = typer.Typer(
    help="Task-and-motion planning: from a PDDL goal to a checked plan played in a simulator.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
scene_app = typer.Typer(help="Look at scene files.", no_args_is_help=True)
app.add_typer(scene_app, name="scene")

_errors = Console(stderr=True, highlight=False, soft_wrap=True)

# Wrong usage: click's UsageError, of which typer carries a copy in some versions, without exporting it.
_UsageError: Any = typer.BadParameter.__bases__[0]

Scenes = Annotated[list[str], typer.Argument(metavar="SCENE", help="Scene files, or names of ours; merged in order.")]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN.json", help="A plan written by 'tmkit plan'.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON on the standard output.")]
Seed = Annotated[int, typer.Option(help="Makes the run repeatable.", min=0)]
DomainOption = Annotated[
    str | None, typer.Option("--domain", metavar="NAME|DIR", help="The domain's folder, when it is not ours.")
]


def _print_version(value: bool) -> None:
    if value:
        from tmkit import __version__

        typer.echo(f"tmkit {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version)] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where plan, report and pictures go.")] = Path("tmkit-demo"),
    seed: Seed = 0,
) -> None:
    """Plan a tower of three blocks with a Panda, check it, play it in physics, and draw pictures of it."""
    folder = _make_folder(out)
    typer.echo(f"Goal: {_DEMO_GOAL}")
    scene = _load(["panda_table", "blocks3"])
    result = _plan(scene, None, domain="blocks", goal=_DEMO_GOAL, problem=None, robot="panda", seed=seed, limit=60.0)
    if result.plan is None:
        _fail(result.explanation)
    result.plan.save(folder / "plan.json")
    for number, action in enumerate(result.plan.actions, start=1):
        typer.echo(f"  {number}. {action}")
    typer.echo(f"Planned in {result.statistics.total_seconds:.2f} s.")
    checked = _check(result.plan, None)
    typer.echo(f"Checked: {checked.configurations} configurations at finer steps, {_verdict(checked)}.")
    report = _simulate(result.plan, gui=False, record=folder / "demo.gif", picture=folder / "demo.png", grasp="contact")
    _write_json(folder / "report.json", report.to_json())
    typer.echo(f"Simulated: {report!r}")
    typer.echo(f"Pictures: {folder / 'demo.png'} and {folder / 'demo.gif'}; plan: {folder / 'plan.json'}")
    if not (checked.ok and report.ok):
        _fail("; ".join([*checked.problems, *map(str, report.remarks)]))


@app.command("plan")
def plan_command(
    scenes: Scenes,
    domain: Annotated[str, typer.Option(metavar="NAME|DIR", help="The PDDL domain with its semantics.")] = "blocks",
    problem: Annotated[Path | None, typer.Option(metavar="FILE", help="A PDDL problem with the goal.")] = None,
    goal: Annotated[str | None, typer.Option(metavar="EXPR", help="The goal in PDDL, e.g. '(on a b)'.")] = None,
    robot: Annotated[str, typer.Option(metavar="NAME|FILE", help="The arm.")] = "panda",
    start: Annotated[
        str | None, typer.Option(metavar="FILE|k=v,...", help="Joint values at the start: a JSON file, or given here.")
    ] = None,
    seed: Seed = 0,
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds after which to stop.", min=0.001)] = 30.0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="PLAN.json", help="Where to write it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find actions and motions that bring about a goal."""
    if (goal is None) == (problem is None):
        raise typer.BadParameter("give one of the two, and not both", param_hint="--goal / --problem")
    if output is not None:
        _require_writable(output)
    scene = _load(scenes)
    q = _start_configuration(scene, robot, start)
    result = _plan(scene, q, domain=domain, goal=goal, problem=problem, robot=robot, seed=seed, limit=time_limit)
    if result.plan is not None and output is not None:
        result.plan.save(output)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=1))
    else:
        typer.echo(result.explanation)
        for number, action in enumerate(result.plan.actions if result.plan else (), start=1):
            typer.echo(f"  {number}. {action}")
        if result.plan is not None and output is not None:
            typer.echo(f"Written to {output}")
    if not result.solved:
        raise typer.Exit(ExitCode.NO)


@app.command()
def check(path: PlanFile, domain: DomainOption = None, as_json: AsJson = False) -> None:
    """Work a plan out again, at finer steps than the planner's, and say whether it holds."""
    from tmkit.planner import Plan

    report = _check(Plan.load(path), domain)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=1))
    else:
        for problem in report.problems:
            typer.echo(f"  {problem}")
        typer.echo(f"{path}: {report.actions} actions, {report.configurations} configurations: {_verdict(report)}")
    if not report.ok:
        raise typer.Exit(ExitCode.NO)


@app.command()
def simulate(
    path: PlanFile,
    gui: Annotated[bool, typer.Option("--gui", help="Show the simulator's window.")] = False,
    record: Annotated[Path | None, typer.Option(metavar="FILE.gif|.mp4", help="Write a film.")] = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Write a picture of the end.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the report.")] = None,
    grasp: Annotated[
        str, typer.Option(metavar="contact|constraint", help="Hold by friction, or by a constraint.")
    ] = "contact",
) -> None:
    """Play a plan in physics and report where every object ended."""
    from tmkit.planner import Plan

    if grasp not in ("contact", "constraint"):
        raise typer.BadParameter(f"'{grasp}' is none of contact, constraint", param_hint="--grasp")
    for output in (record, picture, report):
        if output is not None:
            _require_writable(output)
    result = _simulate(Plan.load(path), gui=gui, record=record, picture=picture, grasp=grasp)
    if report is not None:
        _write_json(report, result.to_json())
    for name, error in result.errors.items():
        typer.echo(f"  {name}: {error}")
    for remark in result.remarks:
        typer.echo(f"  {remark}")
    typer.echo(repr(result))
    if not result.ok:
        raise typer.Exit(ExitCode.NO)


@scene_app.command()
def dump(scenes: Scenes, as_json: AsJson = False) -> None:
    """Print the frames of a scene, merged from all files."""
    from tmkit.formats import scene_dump

    scene = _load(scenes)
    if as_json:
        typer.echo(json.dumps(scene_dump(scene), indent=1))
        return
    depth = {name: len(scene.ancestors(name)) for name in scene.frame_names}
    for root in scene.root_names:
        for name in _in_tree_order(scene, root):
            joint, shapes = scene.joint(name), scene.shapes(name)
            kind = f" [{joint.type}{f' {joint.name}' if joint.is_actuated else ''}]" if joint.type != "fixed" else ""
            classes = f" ({', '.join(scene.classes(name))})" if scene.classes(name) else ""
            look = f": {', '.join(a.shape.kind for a in shapes)}" if shapes else ""
            typer.echo(f"{'  ' * depth[name]}{name}{kind}{classes}{look}")


def _in_tree_order(scene: SceneGraph, root: str) -> Iterator[str]:
    waiting = [root]
    while waiting:
        name = waiting.pop()
        yield name
        waiting.extend(reversed(scene.children(name)))


# --- helpers: each shows progress and calls one function of the library -----------------------------------------------


@contextmanager
def _progress(text: str) -> Iterator[Status]:
    with _errors.status(text) as status:
        yield status


def _load(scenes: list[str]) -> SceneGraph:
    from tmkit.formats import load_scene

    with _progress("reading the scene"):
        return load_scene(*scenes)


def _plan(
    scene: SceneGraph,
    q: NDArray[np.float64] | None,
    *,
    domain: str,
    goal: str | None,
    problem: Path | None,
    robot: str,
    seed: int,
    limit: float,
) -> PlanResult:
    from tmkit.planner import PlanningProgress, plan

    with _progress("planning") as status:

        def show(progress: PlanningProgress) -> None:
            doing = "looking for actions" if progress.phase == "task" else f"motion {progress.step}/{progress.steps}"
            status.update(f"planning, {progress.seconds:.1f} s: task plan {progress.skeleton}, {doing}")

        return plan(
            scene, q, domain=domain, goal=goal, problem=problem, robot=robot, seed=seed, time_limit=limit,
            on_progress=show,
        )  # fmt: skip


def _check(plan: Plan, domain: str | None) -> CheckReport:
    with _progress("checking"):
        return plan.check(domain=domain)


def _simulate(plan: Plan, *, gui: bool, record: Path | None, picture: Path | None, grasp: Any) -> SimulationReport:
    from tmkit.simulation import simulate as play

    with _progress("simulating") as status:
        return play(
            plan, gui=gui, record=record, picture=picture, grasp=grasp,
            on_progress=lambda step, steps, what: status.update(f"simulating step {step} of {steps}: {what}"),
        )  # fmt: skip


def _verdict(report: CheckReport) -> str:
    if report.ok:
        return "the plan holds"
    return f"{len(report.problems)} problem{'s' if len(report.problems) > 1 else ''}"


def _start_configuration(scene: SceneGraph, robot: str, start: str | None) -> NDArray[np.float64] | None:
    """Return the configuration that ``--start`` gives on top of the arm's ready one."""
    if start is None:
        return None
    from tmkit.motion import find_manipulator

    values = _start_values(start)
    for joint in values:
        if joint not in scene.joint_names:
            raise UnknownNameError.of("joint", joint, scene.joint_names, where="--start")
    return scene.configuration(values, base=find_manipulator(robot, scene).ready_configuration(scene))


def _start_values(start: str) -> dict[str, float]:
    if "=" not in start:
        return _read_start_file(Path(start))
    values: dict[str, float] = {}
    for part in start.split(","):
        name, _, number = (text.strip() for text in part.partition("="))
        if name in values:
            raise ConfigurationError(f"--start: joint '{name}' is given twice", joint=name)
        try:
            values[name] = float(number)
        except ValueError:
            raise ConfigurationError(f"--start: '{part}' is not of the form joint=number", joint=name) from None
    return values


def _read_start_file(path: Path) -> dict[str, float]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingFileError(f"there is no start file '{path}'", path=str(path), nearest=None) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError.at(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except json.JSONDecodeError as error:
        raise FileFormatError.at(path, f"is not JSON: {error.msg}", line=error.lineno, column=error.colno) from None
    if not isinstance(document, dict) or not all(_is_number(value) for value in document.values()):
        raise FileFormatError.at(path, 'must be an object of finite numbers by joint name, as {"joint": 0.1}')
    return {name: float(value) for name, value in document.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
        raise OutputError(f"{folder}: cannot be made: {reason}", path=str(folder), reason=reason) from None
    _require_writable(folder / "plan.json")
    return folder


def _require_writable(path: Path) -> None:
    """Refuse an output before the work is done, not after."""
    folder = path.parent
    reason = None
    if not folder.is_dir():
        reason = f"there is no folder '{folder}'"
    elif path.is_dir():
        reason = "it is a folder"
    elif not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        reason = "permission denied"
    if reason is not None:
        raise OutputError(f"{path}: cannot be written: {reason}", path=str(path), reason=reason)


def _write_json(path: Path, document: Any) -> None:
    from tmkit.formats.output import write_text

    text = document if isinstance(document, str) else json.dumps(document, indent=1, sort_keys=True)
    write_text(path, text.rstrip("\n") + "\n")


def _fail(message: str) -> NoReturn:
    typer.echo(message)
    raise typer.Exit(ExitCode.NO)


def main() -> None:
    """Run the command and exit with a code that means something; no input shows a traceback."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = ExitCode.INTERRUPTED
    except TmkitError as error:
        _errors.print(f"error: {error}", markup=False)
        code = ExitCode.BAD_INPUT
    except SystemExit:  # how typer ends when nobody reads on: say nothing more
        code = ExitCode.DONE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ExitCode.DONE
    except Exception as error:
        code = _explain(error)
    if code == ExitCode.INTERRUPTED:
        _errors.print("interrupted")
    sys.exit(code if isinstance(code, int) else ExitCode.DONE)


def _explain(error: Exception) -> ExitCode:
    """Say what was wrong with the command line, or else with tmkit."""
    if isinstance(error, _UsageError):
        error.show()
        return ExitCode.BAD_INPUT
    _errors.print("".join(traceback.format_exception(error)), markup=False)
    _errors.print("internal error of tmkit: please report it, with the lines above and the input, to its issue tracker")
    return ExitCode.INTERNAL


if __name__ == "__main__":
    main()
