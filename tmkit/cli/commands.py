"""All commands of ``tmkit``, put together; here a new command is entered, in the order in which the help lists it.

:func:`command_line` adds ``--verbose``, ``--quiet`` and ``--log-file`` to every command; they may stand before the
command's name or after it.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tmkit._support.terminal import printable
from tmkit.cli import bags, batches, built_in, new, objects, planning, robots, scenes, serving, stores, tasks, viewing
from tmkit.cli.common import require_writable
from tmkit.cli.completion import completion, prepare_completion
from tmkit.cli.events import error_fields, write_event
from tmkit.cli.examples import EXAMPLES
from tmkit.cli.exit_codes import ExitCode
from tmkit.cli.reporting import Reporter, current_reporter
from tmkit.cli.watching import lsp
from tmkit.errors import TmkitError

_logger = logging.getLogger(__name__)

# Wrong usage: click's UsageError, of which typer carries a copy in some versions, without exporting it.
_UsageError: Any = typer.BadParameter.__bases__[0]


def _print_version(value: bool) -> None:
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
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version)] = False,
) -> None:
    pass


app.command("demo")(planning.demo)
app.command("plan")(planning.plan)
app.command("task")(tasks.task)
app.command("check")(planning.check)
app.command("simulate")(planning.simulate)
app.command("export")(planning.export)
app.command("batch")(batches.batch)
app.command("dataset")(batches.dataset)
app.command("arena")(batches.arena)
app.command("view")(viewing.view)
app.command("serve")(serving.serve)
app.add_typer(bags.app, name="bag")
app.add_typer(scenes.app, name="scene")
app.add_typer(stores.app, name="store")
app.add_typer(robots.app, name="robot")
app.add_typer(objects.app, name="object")
app.command("list")(built_in.list_built_in)
app.add_typer(new.app, name="new")
app.command("lsp")(lsp)
app.command("completion")(completion)


# --- what every command has -------------------------------------------------------------------------------------------


def _be_more_verbose(times: int) -> None:
    current_reporter().be_more_verbose(times)


def _be_quiet(value: bool) -> None:
    if value:
        current_reporter().be_quiet()


def _log_to(path: Path | None) -> None:
    if path is not None:
        require_writable(path)
        current_reporter().log_to(path)


def _options_of_all(
    verbose: Annotated[
        int,
        typer.Option(
            "-v", "--verbose", count=True, callback=_be_more_verbose, help="Increase verbosity; -vv: further."
        ),
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", callback=_be_quiet, help="Show no progress.")] = False,
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", callback=_log_to, help="Write the whole log to a file.")
    ] = None,
) -> None:
    """Only the options of this function are used."""


def command_line() -> Callable[..., Any]:
    """Return the whole command with its examples, ready to be called."""
    prepare_completion()
    template = typer.Typer(add_completion=False)
    template.command()(_options_of_all)
    options = [option for option in typer.main.get_command(template).params if option.name != "help"]
    for option in options:
        option.expose_value = False  # the callbacks are all that is wanted
    whole: Any = typer.main.get_command(app)
    waiting: list[tuple[str, Any]] = [("", whole)]
    while waiting:
        path, command = waiting.pop()
        command.params.extend(options)
        if path in EXAMPLES:
            command.epilog = "\n\n".join(["Examples:", *EXAMPLES[path]])
        waiting.extend((f"{path} {name}".strip(), one) for name, one in getattr(command, "commands", {}).items())
    return whole  # type: ignore[no-any-return]  # what typer makes has no name that all its versions export


# --- running ----------------------------------------------------------------------------------------------------------


def run(*, wants_events: bool) -> int:
    """Run the command of ``sys.argv`` and return its exit code; what went wrong has been explained."""
    with Reporter(as_events=wants_events).open() as reporter:
        try:
            code = command_line()(prog_name="tmkit", standalone_mode=False)
        except (KeyboardInterrupt, SystemExit):
            raise
        except typer.Abort:
            return ExitCode.INTERRUPTED
        except Exception as error:
            return _explain(_as_refusal(error) or error, reporter)
        if (failed := reporter.log_failure) is not None:
            return _explain(failed, reporter)
    return code if isinstance(code, int) else ExitCode.DONE


def _as_refusal(error: Exception) -> TmkitError | None:
    """Return what the system refused, if that is behind an error: memory, a file, a library; else ``None``."""
    if isinstance(error, TmkitError | _UsageError):
        return None
    _logger.debug("not an error of tmkit's own", exc_info=error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return TmkitError(f"there is not enough memory{f': {cause}' if str(cause) else ''}")
        if isinstance(cause, OSError):
            where = f"{cause.filename}: " if cause.filename is not None else ""
            return TmkitError(f"{where}{cause.strerror or cause}", path=cause.filename, reason=cause.strerror)
        cause = cause.__cause__
    return TmkitError(f"a part of tmkit cannot be loaded: {error}") if isinstance(error, ImportError) else None


def _explain(error: Exception, reporter: Reporter) -> int:
    """Say what was wrong with the command line or its input, or else with tmkit; return the exit code."""
    is_usage = isinstance(error, _UsageError)
    lines = "" if is_usage or isinstance(error, TmkitError) else "".join(traceback.format_exception(error))
    if reporter.as_events:
        _write_error(error, lines)
    elif is_usage:
        error.show()  # type: ignore[attr-defined]  # see _UsageError
    elif isinstance(error, TmkitError):
        reporter.console.print(printable(f"error: {error}"), markup=False)
    else:
        reporter.console.print(printable(lines), markup=False)
        reporter.console.print(
            "internal error of tmkit: please report it, with the lines above and the input, to its issue tracker"
        )
    return ExitCode.INTERNAL if lines else ExitCode.BAD_INPUT


def _write_error(error: Exception, lines: str) -> None:
    if isinstance(error, TmkitError):
        write_event("error", **error_fields(error))
    elif lines:
        write_event("error", type=type(error).__name__, message=str(error), file=None, line=None, traceback=lines)
    else:
        message = error.format_message() if isinstance(error, _UsageError) else str(error)
        write_event("error", type="UsageError", message=message, file=None, line=None)
