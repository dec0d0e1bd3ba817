"""All commands of ``tmkit``, put together; here a new command is entered, in the order in which the help lists it."""

from __future__ import annotations

import traceback
from typing import Annotated, Any

import typer

from tmkit.cli import ExitCode, planning, robots, scenes
from tmkit.cli.common import errors
from tmkit.errors import TmkitError

__all__ = ["app", "explain"]

# Wrong usage: click's UsageError, of which typer carries a copy in some versions, without exporting it.
_UsageError: Any = typer.BadParameter.__bases__[0]


def _print_version(value: bool) -> None:
    if value:
        from tmkit import __version__

        typer.echo(f"tmkit {__version__}")
        raise typer.Exit


app = typer.Typer(
    help="Task-and-motion planning: from a PDDL goal to a checked plan played in a simulator.",
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
app.command("check")(planning.check)
app.command("simulate")(planning.simulate)
app.add_typer(scenes.app, name="scene")
if robots.app.registered_commands:
    app.add_typer(robots.app, name="robot")


def explain(error: BaseException) -> int:
    """Say what was wrong with the command line or its input, or else with tmkit; return the exit code."""
    if isinstance(error, typer.Abort):
        return ExitCode.INTERRUPTED
    if isinstance(error, TmkitError):
        errors.print(f"error: {error}", markup=False)
        return ExitCode.BAD_INPUT
    if isinstance(error, _UsageError):
        error.show()
        return ExitCode.BAD_INPUT
    errors.print("".join(traceback.format_exception(error)), markup=False)
    errors.print("internal error of tmkit: please report it, with the lines above and the input, to its issue tracker")
    return ExitCode.INTERNAL
