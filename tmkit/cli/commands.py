"""The commands of ``tmkit``, in the order of the help, with their examples.

:func:`command_line` adds ``--verbose``, ``--quiet`` and ``--log-file`` to every command. These
options may precede or follow the name of the command.
"""

from __future__ import annotations

import logging
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from tmkit.cli import (
    bags,
    batches,
    built_in,
    executing,
    new,
    objects,
    planning,
    robots,
    scenes,
    serving,
    stores,
    tasks,
    viewing,
)
from tmkit.cli.common import require_writable
from tmkit.cli.completion import completion, prepare_completion
from tmkit.cli.events import error_fields, write_event
from tmkit.cli.option_groups import add_command
from tmkit.cli.reporting import Reporter, current_reporter
from tmkit.cli.signals import ExitCode
from tmkit.errors import TmkitError

EXAMPLES = {
    "": ["tmkit demo", "tmkit list scenes", "tmkit new robot my_robot.urdf"],
    "demo": ["tmkit demo --out tower"],
    "plan": [
        "tmkit plan panda_table blocks3 --goal '(on a b)' -o plan.json",
        "tmkit plan panda_table blocks3 --goal-at 'a@table=0.1,0.2,0.03' --improve 20 --view",
        "tmkit plan my_cell.robray blocks3 --robot my_robot.toml --goal '(on a b)'",
    ],
    "task": ["tmkit task domain.pddl problem.pddl --planner optimal"],
    "check": [
        "tmkit check plan.json",
        "tmkit check plan.tmp --scene panda_table --scene blocks3 --robot panda",
    ],
    "simulate": [
        "tmkit simulate plan.json --view",
        "tmkit simulate plan.json --record film.mp4 --picture end.png",
    ],
    "execute": [
        "tmkit execute plan.json --controllers moveit_controllers.yaml --dry-run",
        "tmkit execute plan.json --controllers moveit_controllers.yaml --speed 0.2 --confirm",
    ],
    "export": [
        "tmkit export plan.json --format csv -o plan.csv",
        "tmkit export plan.json --format ros2 -o plan_bag",
        "tmkit export plan.json --format lerobot -o dataset",
    ],
    "batch": [
        "tmkit batch problems.toml -o results",
        "tmkit batch problems.toml -o results --scheduler tcp://10.0.0.1:8786",
    ],
    "dataset": [
        "tmkit dataset results -o data",
        "tmkit dataset results -o episodes --layout lerobot --pictures 160x120",
    ],
    "view": [
        "tmkit view plan.json",
        "tmkit view panda_table blocks3 --domain blocks --robot panda",
        "tmkit view plan.json --html plan.html",
    ],
    "serve": [
        "tmkit serve panda_table blocks3 --log world.log",
        "tmkit serve --listen tcp/0.0.0.0:7447 --tokens tokens.txt --log world.log",
        (
            "tmkit serve panda_table blocks3 --block \"tmkit.world:Predictor={name = 'soon',"
            " input_hook = 'table'}\""
        ),
    ],
    "bag info": ["tmkit bag info run"],
    "bag record": ["tmkit bag record run --from tcp/127.0.0.1:7447"],
    "bag replay": [
        "tmkit bag replay run --into tcp/127.0.0.1:7447",
        "tmkit bag replay run panda_table -o scene.json",
    ],
    "scene dump": ["tmkit scene dump panda_table blocks3"],
    "scene check": ["tmkit scene check my_cell.robray --watch"],
    "scene cache": ["tmkit scene cache --clear"],
    "scene compile": [
        "tmkit scene compile my_scene.rsg -o my_scene.py",
        "tmkit scene compile my_blocks.rsg -o my_blocks.hpp --types my_types.toml",
    ],
    "scene convert": ["tmkit scene convert my_robot.urdf -o my_robot.json"],
    "store ls": ["tmkit store ls worlds"],
    "store log": ["tmkit store log worlds main"],
    "store show": ["tmkit store show worlds main"],
    "store put": ["tmkit store put worlds panda_table blocks3 -m 'three blocks'"],
    "store get": ["tmkit store get worlds main -o scene.json"],
    "store diff": ["tmkit store diff worlds main try"],
    "store merge": ["tmkit store merge worlds try --branch main"],
    "store gc": ["tmkit store gc worlds"],
    "object add": [
        "tmkit object add mug.obj --picture mug.png",
        "tmkit object add cup.stl --scale 0.001 --mass 0.3",
    ],
    "object grasps": [
        "tmkit object grasps grasps.npy panda_table ./mug.robray --object mug --robot panda"
    ],
    "robot check": [
        "tmkit robot check my_robot.urdf --picture reach.png",
        "tmkit robot check my_cell.robray --robot my_robot.toml --write-srdf my_robot.srdf",
    ],
    "list": ["tmkit list robots"],
    "new domain": ["tmkit new domain trays"],
    "new scene": ["tmkit new scene my_cell"],
    "new robot": [
        "tmkit new robot my_robot.urdf --view",
        "tmkit new robot ur10.urdf --hand parallel_gripper --out ur10.toml --yes",
        "tmkit new robot two_arms.urdf --tip left_wrist --ready 'shoulder=0.3,elbow=-1.2'",
    ],
    "lsp": ["tmkit lsp"],
    "completion": ["source <(tmkit completion bash)"],
}
"""Examples by the path of the command below ``tmkit``."""

_logger = logging.getLogger(__name__)

_UsageError: Any = typer.BadParameter.__bases__[0]
"""Error of invalid usage: click's, or the copy that some versions of typer contain."""


def _print_version(value: bool) -> None:
    """Print the version and exit."""
    if value:
        from tmkit import __version__

        typer.echo(f"tmkit {__version__}")
        raise typer.Exit


app = typer.Typer(
    help="Task-and-motion planning: from a PDDL goal to a validated plan, executed in a simulator.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version)
    ] = False,
) -> None:
    pass


add_command(app, planning.demo)
add_command(app, planning.plan)
add_command(app, tasks.task)
add_command(app, planning.check)
add_command(app, planning.simulate)
add_command(app, executing.execute)
add_command(app, planning.export)
add_command(app, batches.batch)
add_command(app, batches.dataset)
add_command(app, viewing.view)
add_command(app, serving.serve)
app.add_typer(bags.app, name="bag")
app.add_typer(scenes.app, name="scene")
app.add_typer(stores.app, name="store")
app.add_typer(robots.app, name="robot")
app.add_typer(objects.app, name="object")
add_command(app, built_in.list_built_in, "list")
app.add_typer(new.app, name="new")


def lsp() -> None:
    """Run the language server for scene files and PDDL on the standard streams (extra 'editor')."""
    from tmkit.lsp.server import serve

    serve()


add_command(app, lsp)
add_command(app, completion)


def _increase_verbosity(times: int) -> None:
    """Show more log records."""
    current_reporter().increase_verbosity(times)


def _hide_progress(value: bool) -> None:
    """Show no progress, if the flag is set."""
    if value:
        current_reporter().hide_progress()


def _open_log(path: Path | None) -> None:
    """Write the log to a file, if one is set."""
    if path is not None:
        require_writable(path)
        current_reporter().open_log(path)


def _common_options(
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            callback=_increase_verbosity,
            help="Increase verbosity; -vv: further.",
        ),
    ] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", callback=_hide_progress, help="Show no progress.")
    ] = False,
    log_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=_open_log, help="Write the whole log to a file."),
    ] = None,
) -> None:
    """Define the options of all commands; the body is unused."""


def command_line() -> Any:
    """Return the click command of ``tmkit`` with the common options and the examples."""
    prepare_completion()
    template = typer.Typer(add_completion=False)
    template.command()(_common_options)
    options = [
        option for option in typer.main.get_command(template).params if option.name != "help"
    ]
    for option in options:
        option.expose_value = False  # the callbacks use the values
    root: Any = typer.main.get_command(app)
    pending: list[tuple[str, Any]] = [("", root)]
    while pending:
        path, command = pending.pop()
        command.params.extend(options)
        if path in EXAMPLES:
            command.epilog = "\n\n".join(["Examples:", *EXAMPLES[path]])
        subcommands = getattr(command, "commands", {})
        pending.extend((f"{path} {name}".strip(), entry) for name, entry in subcommands.items())
    return root


def run(*, as_events: bool) -> int:
    """Run the command of ``sys.argv``, print its errors and return its exit code.

    Args:
        as_events: whether progress, logs and errors are JSON lines on the standard error.
    """
    with Reporter(as_events=as_events).open() as reporter, warnings.catch_warnings():
        # NumPy warns about overflow; the results are checked.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            code = command_line()(prog_name="tmkit", standalone_mode=False)
        except (KeyboardInterrupt, SystemExit):
            raise
        except typer.Abort:
            return ExitCode.INTERRUPTED
        except Exception as error:
            return _print_error(_system_error(error) or error, reporter)
        if (failure := reporter.log_failure) is not None:
            return _print_error(failure, reporter)
    return code if isinstance(code, int) else ExitCode.DONE


def _system_error(error: Exception) -> TmkitError | None:
    """Return the error of the system behind an exception, or None.

    Such errors are a lack of memory, a file that cannot be used, and a library that cannot be
    loaded.
    """
    if isinstance(error, TmkitError | _UsageError):
        return None
    _logger.debug("not an error of tmkit's own", exc_info=error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return TmkitError(f"there is not enough memory{f': {cause}' if str(cause) else ''}")
        if isinstance(cause, OSError):
            where = f"{cause.filename}: " if cause.filename is not None else ""
            return TmkitError(
                f"{where}{cause.strerror or cause}", path=cause.filename, reason=cause.strerror
            )
        cause = cause.__cause__
    if isinstance(error, ImportError):
        return TmkitError(f"a part of tmkit cannot be loaded: {error}")
    return None


def _print_error(error: Exception, reporter: Reporter) -> int:
    """Print an error of the usage, the input or tmkit, and return the exit code."""
    is_usage = isinstance(error, _UsageError)
    is_internal = not is_usage and not isinstance(error, TmkitError)
    lines = "".join(traceback.format_exception(error)) if is_internal else ""
    if reporter.as_events:
        _write_error(error, lines)
    elif is_usage:
        error.show()  # type: ignore[attr-defined]  # see _UsageError
    elif isinstance(error, TmkitError):
        reporter.print(f"error: {error}")
    else:
        reporter.print(lines)
        reporter.print(
            "internal error of tmkit: please report it, with the lines above and the input, to its"
            " issue tracker"
        )
    return ExitCode.INTERNAL if lines else ExitCode.BAD_INPUT


def _write_error(error: Exception, lines: str) -> None:
    """Write an error as an event, with the lines of the traceback of an internal error."""
    if isinstance(error, TmkitError):
        write_event("error", error_fields(error))
    elif lines:
        write_event(
            "error",
            {
                "type": type(error).__name__,
                "message": str(error),
                "file": None,
                "line": None,
                "traceback": lines,
            },
        )
    else:
        message = error.format_message() if isinstance(error, _UsageError) else str(error)
        write_event("error", {"type": "UsageError", "message": message, "file": None, "line": None})
