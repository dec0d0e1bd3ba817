"""Numbers of the robray language."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tmkit.errors import FileFormatError
from tmkit.formats.robray.grammar import Definition, SourceText, parse_robray
from tmkit.formats.robray.values import CONSTANTS, evaluate_number


def value(expression: str, **constants: float) -> float:
    """Return the value of an expression."""
    text = f"def x {expression};"
    source = SourceText(Path("x.robray"), tuple(text.split("\n")))
    (statement,) = parse_robray(source, text)
    assert isinstance(statement, Definition)
    return evaluate_number(statement.value, source=source, constants={**CONSTANTS, **constants})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e-2", 0.01),
        ("1E2", 100.0),
        ("2d-1", 0.2),
        ("2s3", 2000.0),
        ("2.s0", 2.0),
        (".5D1", 5.0),
        ("1.25S-2", 0.0125),
        ("0.6", 0.6),
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("8 / 4 / 2", 1.0),
        ("1 - 2 - 3", -4.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("2 ** 3 ** 2", 512.0),
        ("2 * 3 ^ 2", 18.0),
        ("-2 ^ 2", 4.0),
        ("0 - 2 ^ 2", -4.0),
        ("2 ^ -1", 0.5),
        ("- - 2", 2.0),
        ("--2", 2.0),
        ("3 - -2", 5.0),
        ("3 -2", 1.0),
        ("3-2", 1.0),
        ("-(1 + 2)", -3.0),
        ("pi", math.pi),
        ("π/2", math.pi / 2),
        ("-45*deg", -math.pi / 4),
        ("180 * deg / pi", 1.0),
        ("2.54*cm", 0.0254),
        ("block_size + 1", 1.1),
        ("table-size", 0.3),
        ("size-2", 7.0),
        ("size - 2", 2.0),
    ],
)
def test_known_answers(expression: str, expected: float) -> None:
    """Precedence, associativity, exponents, constants and dashes follow the language."""
    constants = {"cm": 0.01, "block_size": 0.1, "table-size": 0.3, "size": 4.0, "size-2": 7.0}
    assert value(expression, **constants) == pytest.approx(expected, rel=1e-15)


def test_numbers_are_not_rounded_to_single_precision() -> None:
    """0.6 is the 64-bit 0.6, unlike in the original."""
    assert value("0.6") == 0.6


@pytest.mark.parametrize(
    ("expression", "column", "reason"),
    [
        ("1 / 0", 9, "division by zero"),
        ("1 / (2 - 2)", 9, "division by zero"),
        ("0 ^ -1", 9, "division by zero"),
        ("(0 - 8) ^ (1 / 3)", 15, r"-8 \^ 0.333333 is not a real number"),
        ("1e999", 7, "not finite"),
        ("10 ^ 400", 10, "not finite"),
        ("1e308 * 10", 13, "not finite"),
        ("sise + 1", 7, "unknown constant 'sise'; did you mean 'size'"),
        ("size-1", 7, "unknown constant 'size-1'; for a difference write 'size - 1'"),
        ('"size"', 7, "unexpected"),
        ("1e+3", 8, "the exponent of a number has no plus sign; write '1e3'"),
        ("2 * 1.5d+2", 14, "the exponent of a number has no plus sign; write '1.5d2'"),
    ],
)
def test_refused_with_place(expression: str, column: int, reason: str) -> None:
    """A result that is not a finite real number is rejected at its expression."""
    with pytest.raises(FileFormatError, match=rf"^x.robray:1:{column}: .*{reason}"):
        value(expression, size=4.0)


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    """An expression that is nested too deeply is rejected."""
    assert value("(" * 2000 + "1" + ")" * 2000) == 1.0
    with pytest.raises(FileFormatError, match="nested too deeply"):
        value("-" * 100_000 + "1")


numbers = st.floats(min_value=1e-3, max_value=1e3).map(lambda number: float(f"{number:.6g}"))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> tuple[str, str]:
    """Draw an expression in our language and, with all its parentheses, in Python's."""
    if depth == 0 or draw(st.booleans()):
        number = draw(numbers)
        return repr(number), repr(number)
    left, python_left = draw(expressions(depth=depth - 1))
    right, python_right = draw(expressions(depth=depth - 1))
    operator = draw(st.sampled_from("+-*/"))
    return f"({left} {operator} -{right})", f"({python_left} {operator} -{python_right})"


@given(expressions())
def test_same_as_python(pair: tuple[str, str]) -> None:
    """The four operations and parentheses give the same results as in Python."""
    ours, python = pair
    try:
        expected = eval(python)
    except ZeroDivisionError:
        with pytest.raises(FileFormatError, match="division by zero"):
            value(ours)
        return
    assert value(ours) == expected
