"""Fields of immutable values are set by constructors of their classes alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tmkit
from tmkit._support.initialization import initialize
from tmkit.graph import SceneGraph, SceneHistory
from tmkit.graph.patterns import Parallel, Part, Pattern
from tmkit.motion import PathConstraint
from tmkit.pddl import State
from tmkit.relations.representations import RotationMatrix, VectorAndQuaternion
from tmkit.spatial import GaussianPose, JointGaussianPose, Pose, RangeMeasurement

PACKAGE = Path(tmkit.__file__).parent
CONSTRUCTORS = {"__init__", "__post_init__"}
OTHER_CONSTRUCTORS = {
    "graph/history.py": "_from_entries",
    "pddl/model.py": "with_source",
    "relations/representation.py": "from_arrays",
    "spatial/joint_gaussian.py": "_from_valid",
    "spatial/plain.py": "convert_fields",
}
"""The functions that make a value in another way, by file."""


@dataclass(frozen=True)
class Celsius:
    """A value that converts its argument."""

    degrees: float

    def __post_init__(self) -> None:
        initialize(self, degrees=float(self.degrees))


def calls(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of :func:`initialize`, each with the function that it is in."""
    for node in ast.iter_child_nodes(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "initialize"
        ):
            yield function, node
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from calls(node, node.name if is_function else function)


def test_only_constructors_set_fields_of_immutable_values() -> None:
    """A constructor sets fields of ``self``; other callers of the helper are listed above."""
    names = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        for function, call in calls(ast.parse(path.read_text(encoding="utf-8"))):
            if OTHER_CONSTRUCTORS.get(file) == function:
                names.add(file)
                continue
            assert function in CONSTRUCTORS, f"{file}:{call.lineno} sets fields in {function}"
            assert ast.unparse(call.args[0]) == "self", (
                f"{file}:{call.lineno} sets fields of another value"
            )
    assert names == set(OTHER_CONSTRUCTORS)


@given(st.integers(-1000, 1000))
def test_a_converted_field_stays_frozen(degrees: int) -> None:
    """A value with a converted field equals one of the converted argument, and is immutable."""
    value = Celsius(degrees)
    assert type(value.degrees) is float
    assert value == Celsius(float(degrees))
    with pytest.raises(FrozenInstanceError, match="degrees"):
        value.degrees = 0.0  # type: ignore[misc]  # rejected


VALUES = [
    RotationMatrix(np.eye(3)),
    VectorAndQuaternion([1, 2, 3], [0, 0, 0, 1]),
    JointGaussianPose([Pose()], np.eye(6)),
    JointGaussianPose.independent([GaussianPose(Pose(), np.eye(6))]),
    RangeMeasurement(1, 0.5),
    PathConstraint("orientation", "tip", tolerance=1),
    Part("cup", ["vessel"], count=2),
    Pattern([Part("cup")]),
    Parallel("a", "b", axis_a=[0, 0, 2]),  # type: ignore[arg-type]  # a list is converted
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_fields_that_are_converted_cannot_be_set(value: object) -> None:
    """Every field of a value with converted arguments is read-only."""
    for item in fields(value):  # type: ignore[arg-type]  # all are dataclasses
        with pytest.raises(FrozenInstanceError, match=item.name):
            setattr(value, item.name, None)


def test_states_and_histories_keep_their_contents() -> None:
    """A state rejects changes; an undone history keeps the previous state."""
    with pytest.raises(AttributeError, match="a State is immutable"):
        State().facts_of = ()  # type: ignore[attr-defined]  # rejected
    history = SceneHistory(SceneGraph()).add_frame("a", "world")
    undone = history.undo()
    assert (history.number, undone.number) == (1, 0)
    assert undone.redo() == history
