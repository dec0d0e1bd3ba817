"""What an editor shows: the stub of the core documents every public name and every argument."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.documented import undocumented_arguments, undocumented_names

_CORE = Path(__file__).parent.parent / "tmkit" / "_core.pyi"


def test_every_public_name_of_the_core_is_documented_in_the_stub() -> None:
    """Classes, functions, methods and properties have a docstring where editors read it."""
    assert undocumented_names(_CORE.read_text(encoding="utf-8")) == []


def test_every_argument_of_the_core_is_documented() -> None:
    """Functions, methods and constructors of two or more arguments have a line for each under ``Args:``."""
    assert undocumented_arguments(_CORE.read_text(encoding="utf-8")) == []


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
    """Nothing is left where a section names each argument; one argument may be told in the sentence."""
    assert undocumented_arguments(_DOCUMENTED) == []
    assert undocumented_names(_DOCUMENTED) == []


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
    assert undocumented_arguments(without) == [left]


def test_a_name_without_docstring_is_named() -> None:
    """A method and a class whose docstrings were taken away are reported."""
    assert undocumented_names("class A:\n    def go(self) -> None: ...\n\ndef f() -> None: ...\n") == ["A", "A.go", "f"]
