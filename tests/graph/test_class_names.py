"""Queries for the frames of a class that no frame has."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, strategies as st

import tmkit as tk
from tmkit.errors import UnknownClassWarning
from tmkit.robots import movable_frames

CLASSES = ("movable", "surface", "cup", "rack")


def scene() -> tk.SceneGraph:
    """Return a scene with one frame of each class."""
    built = tk.SceneGraph()
    for number, name in enumerate(CLASSES):
        built = built.add_frame(f"frame {number}", "world", classes=[name])
    return built


def messages(name: str) -> list[str]:
    """Return the warnings of a query, which finds no frame."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert scene().frames_of_class(name) == ()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("movble", "movable"),
        ("Movable", "movable"),
        ("surfaces", "surface"),
        ("suface", "surface"),
        ("rakc", "rack"),
    ],
)
def test_a_similar_class_is_named(name: str, nearest: str) -> None:
    """The warning has the name and the nearest class of the scene."""
    assert messages(name) == [f"no frame has the class '{name}'; did you mean '{nearest}'?"]


@pytest.mark.parametrize("name", ["door", "cap", "moveable", "", "m" * 100_000, "region"])
def test_another_class_is_no_mistake(name: str) -> None:
    """An empty class is legitimate; short names differ by a letter, and `moveable` is `movable`."""
    assert messages(name) == []


@given(st.sampled_from(CLASSES), st.text(max_size=6))
def test_no_warning_for_a_class_with_frames(name: str, other: str) -> None:
    """A class that a frame has is found without a warning, in each version."""
    version = scene().add_frame("other", "world", classes=[other] if other else [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "frame" in version.frames_of_class(name)[0]
        assert movable_frames(version)


def test_the_warning_has_the_line_of_the_query() -> None:
    """The warning is that of the caller's line, and a filter makes it an error."""
    with pytest.warns(UnknownClassWarning) as caught:
        scene().frames_of_class("movble")
    assert caught[0].filename == __file__
    with pytest.raises(UnknownClassWarning, match="did you mean 'movable'"):
        scene().frames_of_class("movble")  # pytest's filter is "error"


def test_it_is_shown_once_a_line() -> None:
    """By Python's default filter, a loop shows the warning once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            scene().frames_of_class("movabel")
    assert len(caught) == 1
