"""Rows of the tables of ``python -m tests.papers``, and the examples that they use."""

from __future__ import annotations

import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["ROOT", "Row", "example", "largest_difference"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Row:
    """A number of a paper beside that of tmkit.

    Attributes:
        subject: quantity, and its place in the paper.
        paper: value in the paper, or the rule if there is no number.
        tmkit: value computed now.
        is_equal: whether both agree; None if they are not comparable.
        comment: deviation, oracle or reason for a difference.
    """

    subject: str
    paper: str
    tmkit: str
    is_equal: bool | None
    comment: str

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of a line of the table."""
        agrees = {True: "yes", False: "NO", None: "no comparison"}[self.is_equal]
        return (self.subject, self.paper, self.tmkit, agrees, self.comment)


def example(name: str) -> dict[str, Any]:
    """Return the names that a program of ``examples`` defines, without running its ``main``."""
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def largest_difference(a: ArrayLike, b: ArrayLike) -> float:
    """Return the largest absolute difference of two arrays of one shape."""
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())
