"""Shell completion of commands, options and built-in names.

The shell runs ``tmkit`` with ``_TMKIT_COMPLETE`` in its environment, and typer prints the
completions. Other runs do not import this part of typer.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tmkit._support.data import data_roots
from tmkit._support.source_location import did_you_mean

_COMPLETION_VARIABLE = "_TMKIT_COMPLETE"
"""Environment variable of a run that prints completions."""


class Kind(StrEnum):
    """Kinds of built-in names: of files and of plug-ins."""

    ROBOTS = "robots"
    SCENES = "scenes"
    DOMAINS = "domains"
    FORMATS = "formats"
    PLANNERS = "planners"
    ENGINES = "engines"
    TRANSPORTS = "transports"


class Shell(StrEnum):
    """Shells with completion of ``tmkit`` commands."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_PATTERNS = {
    Kind.ROBOTS: ("scenes/robots/*.toml",),
    Kind.SCENES: ("scenes/*.robray", "scenes/*.json"),
    Kind.DOMAINS: ("domains/*/domain.pddl",),
}
"""File patterns by kind, relative to a data folder."""


def built_in_files(kind: Kind) -> dict[str, Path]:
    """Return the files of the built-in robots, scenes or domains, by name and sorted."""
    files: dict[str, Path] = {}
    for root in reversed(data_roots()):  # an earlier root replaces names of a later one
        for pattern in _PATTERNS[kind]:
            for path in root.glob(pattern):
                files[path.parent.name if kind is Kind.DOMAINS else path.stem] = path
    return {name: files[name] for name in sorted(files)}


def word_argument(words: type[StrEnum], *, help: str) -> Any:
    """Return an argument that accepts some words; the message about another has the nearest."""

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


def complete_robots(incomplete: str) -> list[str]:
    """Return the built-in robots that start with a text; without one, shells complete files."""
    return _complete(Kind.ROBOTS, incomplete)


def complete_scenes(incomplete: str) -> list[str]:
    """Return the built-in scenes that start with a text; without one, shells complete files."""
    return _complete(Kind.SCENES, incomplete)


def complete_domains(incomplete: str) -> list[str]:
    """Return the built-in domains that start with a text; without one, shells complete files."""
    return _complete(Kind.DOMAINS, incomplete)


def _complete(kind: Kind, incomplete: str) -> list[str]:
    """Return the built-in names of a kind that start with a text."""
    return [name for name in built_in_files(kind) if name.startswith(incomplete)]


def completion(shell: Annotated[Shell, word_argument(Shell, help="The shell.")]) -> None:
    """Print the script with which a shell completes commands, options and built-in names.

    Load it in the configuration of the shell, as in: echo 'source <(tmkit completion bash)' >>
    ~/.bashrc
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # imported there by all versions

    typer.echo(
        get_completion_script(
            prog_name="tmkit", complete_var=_COMPLETION_VARIABLE, shell=shell.value
        )
    )


def prepare_completion() -> None:
    """Prepare typer for a shell that requests completions, if this run is one."""
    if _COMPLETION_VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
