"""Errors: builtin base classes, facts, messages, and pickling."""

from __future__ import annotations

import copy
import pickle

import pytest

import tmkit.errors
from tmkit.errors import FileFormatError, SceneError, TmkitError, UnknownNameError, nearest_name

_CLASSES = [
    value
    for name in tmkit.errors.__all__
    if isinstance(value := getattr(tmkit.errors, name), type) and issubclass(value, TmkitError)
]


class OwnError(SceneError):
    """An error that a user derives."""


@pytest.mark.parametrize("error_class", [*_CLASSES, OwnError])
def test_every_error_survives_pickling(error_class: type[TmkitError]) -> None:
    """Class, message and facts survive pickling and copying, and the facts are attributes."""
    error = error_class(
        "it went wrong",
        path="a.txt",
        line=3,
        kind="frame",
        name="x",
        nearest=None,
        pairs=[("a", "b")],
    )
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is error_class
        assert str(twin) == twin.message == "it went wrong"
        assert twin.data == error.data
        assert (twin.path, twin.line, twin.pairs) == ("a.txt", 3, [("a", "b")])


@pytest.mark.parametrize("error_class", _CLASSES)
def test_every_error_is_listed_once(error_class: type[TmkitError]) -> None:
    """Every class derives from TmkitError, and but for the base from a builtin too."""
    assert issubclass(error_class, TmkitError)
    if error_class is not TmkitError:
        builtins = (
            TypeError,
            ValueError,
            KeyError,
            OverflowError,
            RuntimeError,
            OSError,
            ImportError,
        )
        assert issubclass(error_class, builtins)


def test_all_names_every_public_class() -> None:
    """Nothing public is missing from ``__all__``."""
    defined = {
        name
        for name, value in vars(tmkit.errors).items()
        if isinstance(value, type)
        and value.__module__ == "tmkit.errors"
        and not name.startswith("_")
    }
    assert defined <= set(tmkit.errors.__all__)


def test_builtins_catch_them() -> None:
    """Callers may catch the fitting builtin instead."""
    for error_class, builtin in [
        (tmkit.errors.SceneError, ValueError),
        (tmkit.errors.ShapeError, SceneError),
        (tmkit.errors.CycleError, SceneError),
        (tmkit.errors.DuplicateNameError, SceneError),
        (tmkit.errors.DisconnectedError, SceneError),
        (tmkit.errors.CapacityError, OverflowError),
        (tmkit.errors.UnknownNameError, KeyError),
        (tmkit.errors.ConfigurationError, ValueError),
        (tmkit.errors.MissingFileError, FileNotFoundError),
        (tmkit.errors.OutputError, OSError),
        (tmkit.errors.MissingExtraError, ImportError),
        (tmkit.errors.SimulationError, RuntimeError),
        (tmkit.errors.ExecutionError, RuntimeError),
    ]:
        assert issubclass(error_class, builtin), error_class


@pytest.mark.parametrize(
    ("name", "candidates", "nearest"),
    [
        ("tabel", ["table", "cup"], "table"),
        ("Table", ["table", "cup"], "table"),
        ("panda_jont1", ["panda_joint1", "panda_joint7"], "panda_joint1"),
        ("zebra", ["table", "cup"], None),
        ("a", [], None),
    ],
)
def test_nearest_names(name: str, candidates: list[str], nearest: str | None) -> None:
    """A misspelt name is recognised in any case; a name unlike all has no nearest one."""
    assert nearest_name(name, candidates) == nearest


def test_unknown_names() -> None:
    """The message has the unknown name, its place, the nearest name and a short list."""
    error = UnknownNameError.of("frame", "tabel", ["table", "cup"], where="scene.robray:3")
    assert (
        str(error)
        == "scene.robray:3: unknown frame 'tabel'; did you mean 'table'? (known: cup, table)"
    )
    assert (error.kind, error.name, error.nearest) == ("frame", "tabel", "table")
    assert (
        str(UnknownNameError.of("frame", "x", [])) == "unknown frame 'x'; there is no frame at all"
    )
    many = str(UnknownNameError.of("frame", "x", [f"frame{i}" for i in range(50)]))
    assert (
        many
        == "unknown frame 'x' (known: frame0, frame1, frame2, frame3, frame4, frame5 and 44 more)"
    )


def test_places_in_files() -> None:
    """The message begins with path, line and column, and shows the line with a caret."""
    error = FileFormatError.at(
        "a/b.pddl", "expected )", line=3, column=5, source_line="\t(on a", data={"found": "a"}
    )
    assert str(error) == "a/b.pddl:3:5: expected )\n    \t(on a\n    \t   ^"
    assert (error.path, error.line, error.column, error.reason, error.found) == (
        "a/b.pddl",
        3,
        5,
        "expected )",
        "a",
    )
    assert str(FileFormatError.at("b", "empty")) == "b: empty"
    assert str(FileFormatError.at("b", "odd", line=2)) == "b:2: odd"
