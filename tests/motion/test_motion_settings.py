"""Settings of inverse kinematics, path search and straight lines, with checked fields."""

import copy
import math
import pickle
from typing import Any

import pytest

from tmkit.errors import ConfigurationError, TmkitError
from tmkit.motion import IkSettings, PathSettings, StraightLineSettings

VALUES: dict[type, dict[str, Any]] = {
    IkSettings: {
        "seed": 3,
        "restarts": 7,
        "max_iterations": 20,
        "position_tolerance": 1e-3,
        "rotation_tolerance": math.inf,
        "max_solutions": 2,
        "separation": 0.3,
    },
    PathSettings: {
        "seed": 3,
        "max_iterations": 10,
        "step": 0.2,
        "resolution": 0.1,
        "shortcut_iterations": 5,
        "time_limit": 2.5,
        "proved": False,
    },
    StraightLineSettings: {
        "position_step": 0.01,
        "rotation_step": 0.1,
        "max_joint_jump": 0.2,
        "deviation": 0.001,
        "resolution": 0.02,
        "position_only": True,
    },
}
FIELDS = [(kind, name) for kind, values in VALUES.items() for name in values]
WRONG = [
    (kind, name, value)
    for kind, name in FIELDS
    if not isinstance(VALUES[kind][name], bool)
    for value in (-1, math.nan, "x", [])
    if name != "seed" or value != -1
]


@pytest.mark.parametrize("kind", list(VALUES))
def test_a_value_equals_its_copies(kind: Any) -> None:
    """Equality, hash, repr, pickle and copy cover all fields, and fields are immutable."""
    for value in (kind(), kind(**VALUES[kind])):
        names = {name: getattr(value, name) for name in VALUES[kind]}
        same = [
            kind(**names),
            pickle.loads(pickle.dumps(value)),
            copy.copy(value),
            copy.deepcopy(value),
        ]
        same.append(eval(repr(value), {kind.__name__: kind, "inf": math.inf}))
        for other in same:
            assert other == value
            assert hash(other) == hash(value)
        for name in names:
            with pytest.raises(AttributeError):
                setattr(value, name, names[name])


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_fields_are_independent(kind: Any, name: str) -> None:
    """A field keeps its value, changes equality, and does not affect the other fields."""
    value, plain = kind(**{name: VALUES[kind][name]}), kind()
    assert value != plain
    assert [other for other in VALUES[kind] if getattr(value, other) != getattr(plain, other)] == [
        name
    ]
    assert getattr(value, name) == VALUES[kind][name]


@pytest.mark.parametrize(("kind", "name", "wrong"), WRONG)
def test_an_invalid_value_is_rejected(kind: Any, name: str, wrong: object) -> None:
    """Negative numbers, NaN and other types raise errors with the field."""
    with pytest.raises((TmkitError, TypeError), match=name):
        kind(**{name: wrong})


@pytest.mark.parametrize("name", ["seed", "max_iterations"])
def test_a_damaged_pickle_is_rejected(name: str) -> None:
    """A state with an entry of another type raises an error."""
    state = list(PathSettings().__getstate__())
    state[list(VALUES[PathSettings]).index(name)] = "x"
    empty = PathSettings.__new__(PathSettings)
    with pytest.raises(TmkitError, match="damaged"):
        empty.__setstate__(tuple(state))


def test_zero_is_rejected_where_it_has_no_effect() -> None:
    """Zero steps are rejected. Zero restarts and zero iterations of a search are valid."""
    for name in ("max_iterations", "max_solutions"):
        with pytest.raises(ConfigurationError, match=f"{name} must be at least 1, got 0"):
            IkSettings(**{name: 0})
    assert IkSettings(restarts=0).restarts == PathSettings(max_iterations=0).max_iterations == 0
