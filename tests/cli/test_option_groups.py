"""Groups of options: dataclasses as parameters of commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from tmkit.cli.option_groups import add_command

Name = Annotated[str, typer.Option(help="A name.")]


@dataclass(frozen=True)
class Size:
    """A required and an optional length; the height is at most the width."""

    width: Annotated[int, typer.Option("--width", "-w", metavar="N", help="The width.")]
    height: Annotated[int, typer.Option(help="The height.")] = 2

    def __post_init__(self) -> None:
        if self.height > self.width:
            raise typer.BadParameter("it is above the width", param_hint="--height")


@dataclass
class Mutable:
    """A group that is not frozen."""

    name: Name = ""


@dataclass(frozen=True)
class Plain:
    """A group with a field without an option."""

    count: int = 0


@dataclass(frozen=True)
class Factory:
    """A group with a field that has a default factory."""

    names: Annotated[list[str], typer.Option()] = field(default_factory=list)


@dataclass(frozen=True)
class Named:
    """A group with the option of another parameter."""

    name: Name = ""


def of_mutable(group: Mutable) -> None:
    """A command with a group that is not frozen."""


def of_plain(group: Plain) -> None:
    """A command with a field without an option."""


def of_factory(group: Factory) -> None:
    """A command with a default factory."""


def of_repeated(name: Name, group: Named) -> None:
    """A command with two options of one name."""


def make_app(received: list[Any]) -> typer.Typer:
    """Return a program with one command, which stores its arguments."""
    app = typer.Typer()

    def draw(title: Annotated[str, typer.Argument()], size: Size, *, color: Name = "red") -> None:
        """Draw a box."""
        received.append((title, size, color))

    add_command(app, draw)
    return app


def test_a_group_receives_the_values_of_its_fields() -> None:
    """Required values, defaults and short names are those of the annotations."""
    received: list[Any] = []
    result = CliRunner().invoke(make_app(received), ["box", "-w", "3", "--color", "blue"])
    assert result.exit_code == 0, result.output
    assert received == [("box", Size(3, 2), "blue")]


def test_options_appear_in_the_order_of_parameters_and_fields() -> None:
    """The help has the docstring of the function, and one option for each field."""
    result = CliRunner().invoke(make_app([]), ["--help"])
    assert "Draw a box." in result.output
    positions = [result.output.index(name) for name in ("--width", "--height", "--color")]
    assert positions == sorted(positions)


@pytest.mark.parametrize("arguments", [["box"], ["box", "-w", "1"]])
def test_invalid_values_are_usage_errors(arguments: list[str]) -> None:
    """A missing option and an error of ``__post_init__`` have the exit code of typer."""
    received: list[Any] = []
    result = CliRunner().invoke(make_app(received), arguments)
    assert (result.exit_code, received) == (2, [])


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (of_mutable, "Mutable: a group of options must be a frozen dataclass"),
        (of_plain, r"Plain.count: expected Annotated\[..., typer.Option\(...\)\], got int"),
        (of_factory, "Factory.names: an option has a default, not a default factory"),
        (of_repeated, "of_repeated: two options have the name 'name'"),
    ],
)
def test_an_invalid_group_is_rejected(command: Any, reason: str) -> None:
    """The message names the class and the field, or the command."""
    with pytest.raises(TypeError, match=reason):
        add_command(typer.Typer(), command)
