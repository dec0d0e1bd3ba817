"""Documentation for editors: modules and the core's stub document every argument."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from support.documented import (
    commands,
    document_names,
    find_undocumented_arguments,
    find_undocumented_names,
    option_types,
)
from support.public_names import public

from tmkit.tamp import parts

_TMKIT = Path(__file__).parent.parent / "tmkit"
_CORE = _TMKIT / "_core.pyi"


def test_every_public_name_of_the_core_is_documented_in_the_stub() -> None:
    """Classes, functions, methods and properties have a docstring where editors read it."""
    assert find_undocumented_names(_CORE.read_text(encoding="utf-8")) == []


def test_every_argument_of_the_core_is_documented() -> None:
    """Functions of two or more arguments have a line for each under ``Args:``."""
    assert find_undocumented_arguments(_CORE.read_text(encoding="utf-8")) == []


def test_every_argument_of_a_public_name_is_documented() -> None:
    """Functions of two or more arguments have a line for each under ``Args:``.

    This holds for the names in the reference, their base classes, and all commands. A name that
    only modules of tmkit import documents the arguments that type and name do not explain. A method
    that overrides another one has the arguments that are documented there.
    """
    sources = {file: file.read_text(encoding="utf-8") for file in sorted(_TMKIT.rglob("*.py"))}
    options = {name for source in sources.values() for name in option_types(source)}
    objects = [base for _, _, value in public() for base in getattr(value, "__mro__", (value,))]
    names = {
        (getattr(value, "__module__", ""), getattr(value, "__name__", "")): value
        for value in objects
    }
    missing = []
    for file, text in sources.items():
        module = ".".join(("tmkit", *file.relative_to(_TMKIT).with_suffix("").parts))
        undocumented = [
            (line.partition(":")[0].partition(".")[0], line)
            for line in find_undocumented_arguments(text, options)
        ]
        own = commands(text, options)
        missing += [
            f"{module}: {line}"
            for name, line in undocumented
            if name in own
            or ((module, name) in names and not _is_inherited(names[module, name], line))
        ]
    assert missing == []
    assert len(names) > 500


def _is_inherited(value: object, line: str) -> bool:
    """Return whether ``Class.method: argument, ...`` is documented in the overridden method."""
    method, _, arguments = line.partition(": ")
    overridden = (
        vars(base).get(method.rpartition(".")[2]) for base in getattr(value, "__mro__", ())[1:]
    )
    return any(
        set(arguments.split(", ")) <= document_names(inspect.getdoc(entry) or "")
        for entry in overridden
        if entry
    )


def test_inherited_arguments_are_those_of_the_method_that_is_overridden() -> None:
    """A method has the documentation of the one that it overrides, and of no other."""
    assert _is_inherited(parts.Drawer, "Drawer.is_closed: scene, q, region")
    assert not _is_inherited(parts.Drawer, "Drawer.is_closed: scene, q, drawer")
    assert not _is_inherited(parts.Drawer, "Drawer.other: scene, q, region")
    assert not _is_inherited(parts.compose_domain, "compose_domain: name, parts")


_DOCUMENTED = '''
class Gripper:
    """Hold.

    Args:
        width, depth: metres.
    """
    def __init__(self, width: float, depth: float = 0.0) -> None: ...
    def close(self, to: float, *, force: float = 1.0) -> None:
        """Close it.

        Args:
            to: width in metres.
            force: newtons.

        Raises:
            ValueError: a force that is not positive.
        """
    def open(self, to: float) -> None:
        """Open it to a width."""
'''


def test_documented_arguments_are_found() -> None:
    """A complete section leaves nothing; a single argument may be in the sentence."""
    assert find_undocumented_arguments(_DOCUMENTED) == []
    assert find_undocumented_names(_DOCUMENTED) == []


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("width, depth: metres.", "Gripper.__init__: depth"),
        ("            force: newtons.\n", "Gripper.close: force"),
        ("            to: width in metres.\n", "Gripper.close: to"),
    ],
)
def test_an_argument_left_out_is_named(line: str, left: str) -> None:
    """The function and the argument whose line was taken away are reported."""
    without = _DOCUMENTED.replace(line, "width: metres." if "depth" in line else "")
    assert find_undocumented_arguments(without) == [left]


def test_the_help_of_an_option_documents_it() -> None:
    """An argument of a command is documented by the help in its annotation or a named type."""
    types = (
        'Seed = Annotated[int, typer.Option(help="Of the generator.")]\nScenes = Annotated[int,'
        " typer.Option()]\n"
    )
    command = (
        'def plan(seed: Seed, scenes: Scenes, out: Annotated[str, typer.Option(help="File.")]) ->'
        " None: ...\n"
    )
    assert option_types(types) == {"Seed"}
    assert find_undocumented_arguments(command, option_types(types)) == ["plan: scenes"]


def test_a_name_without_docstring_is_named() -> None:
    """A method and a class whose docstrings were taken away are reported."""
    assert find_undocumented_names(
        "class A:\n    def go(self) -> None: ...\n\ndef f() -> None: ...\n"
    ) == ["A", "A.go", "f"]
