"""Completion of command lines by the shell: built-in names, and the script that a shell loads.

The shell runs ``tmkit`` with ``_TMKIT_COMPLETE`` in its environment, and typer prints the
completions. Other runs import nothing of this part of typer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tmkit._support.data import data_roots
from tmkit._support.source_location import did_you_mean

_VARIABLE = "_TMKIT_COMPLETE"


class Kind(StrEnum):
    """Kinds of what is built in: of files, and of registrations."""

    ROBOTS = "robots"
    SCENES = "scenes"
    DOMAINS = "domains"
    FORMATS = "formats"
    PLANNERS = "planners"
    ENGINES = "engines"
    TRANSPORTS = "transports"


class Shell(StrEnum):
    """The shells that complete command lines of tmkit."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_PATTERNS = {
    Kind.ROBOTS: ("scenes/robots/*.toml",),
    Kind.SCENES: ("scenes/*.robray", "scenes/*.json"),
    Kind.DOMAINS: ("domains/*/domain.pddl",),
}


def built_in_files(kind: Kind) -> dict[str, Path]:
    """Return the files of the built-in robots, scenes or domains by name, in the order of the names."""
    found = [
        path
        for root in reversed(data_roots())
        for pattern in _PATTERNS[kind]
        for path in root.glob(pattern)
    ]
    by_name = {path.parent.name if kind is Kind.DOMAINS else path.stem: path for path in found}
    # of one name that of the root searched first
    return {name: by_name[name] for name in sorted(by_name)}


def word_argument(words: type[StrEnum], *, help: str) -> Any:
    """Return an argument of a command that accepts a few words; any other is refused with the nearest."""

    def parse(text: str) -> StrEnum:
        if text not in list(words):
            raise typer.BadParameter(
                f"'{text}' is not one of {', '.join(words)}{did_you_mean(text, words)}"
            )
        return words(text)

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return typer.Argument(
        metavar="|".join(words),
        help=help,
        show_default=False,
        parser=parse,
        autocompletion=complete,
    )


def complete_names(kind: Kind) -> Callable[[str], list[str]]:
    """Return the completion of an argument that takes a built-in name; without one, shells complete file names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in built_in_files(kind) if name.startswith(incomplete)]

    return complete


def completion(shell: Annotated[Shell, word_argument(Shell, help="The shell.")]) -> None:
    """Print the script that makes a shell complete commands, options and built-in names.

    Load it in the configuration of the shell, as in: echo 'source <(tmkit completion bash)' >>
    ~/.bashrc
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # imported there by all versions

    typer.echo(get_completion_script(prog_name="tmkit", complete_var=_VARIABLE, shell=shell.value))


def prepare_completion() -> None:
    """Prepare typer for a shell that requests completions, if this run is one."""
    if _VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
