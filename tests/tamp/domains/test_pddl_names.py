"""Names of frames in PDDL: accents, blanks and capitals, collisions, the note and the hint."""

from __future__ import annotations

import logging
import re

import pytest
from hypothesis import given, strategies as st
from support.blocks import blocks_scene
from support.gantry import GANTRY
from support.planning import solve_with

from tmkit.errors import SceneError, TaskError
from tmkit.tamp.domains.semantics import pddl_name


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("Tasse é", "tasse_e"),
        ("Größe 2", "grosse_2"),
        ("link/1.a", "link_1_a"),
        ("2cup", "o2cup"),
        ("杯", "u676f"),
        ("碗", "u7897"),
        ("table__-1__0", "table__-1__0"),
    ],
)
def test_names_are_spelled_in_pddl(frame: str, name: str) -> None:
    """Accents are dropped, and letters of other scripts stay distinct."""
    assert pddl_name(frame) == name


@given(st.text(min_size=1))
def test_every_name_is_valid_and_stays_so(frame: str) -> None:
    """The name of any text is a PDDL name, and is its own name."""
    name = pddl_name(frame)
    assert re.fullmatch(r"[a-z][a-z0-9_-]*", name)
    assert pddl_name(name) == name


@given(st.from_regex(r"[ -~]+", fullmatch=True))
def test_ascii_names_keep_their_length(frame: str) -> None:
    """Each sign of ASCII is one of the name, after an o before what is no letter."""
    assert len(pddl_name(frame).removeprefix("o")) in (len(frame), len(frame) - 1)


def test_renamed_objects_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A plan notes the objects with other names, and no other frames."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    scene = scene.rename_frame("a", "Tasse é").rename_frame("b", "Cup")
    with caplog.at_level(logging.WARNING, logger="tmkit"):
        result = solve_with(scene, "(holding tasse_e)", robot=GANTRY)
    assert result.plan is not None
    assert [record.message for record in caplog.records] == [
        "in PDDL, 'Tasse é' is 'tasse_e', 'Cup' is 'cup'"
    ]


@pytest.mark.parametrize("goal", ["(holding Tasse é)", '(holding "Tasse é")', "(holding TASSE É)"])
def test_a_goal_with_the_name_of_the_frame_gets_a_hint(goal: str) -> None:
    """The error of the goal has the name in PDDL, also in its data."""
    scene = blocks_scene({"a": (0, 0)}, table=0.4).rename_frame("a", "Tasse é")
    with pytest.raises(TaskError, match="; in PDDL, 'Tasse é' is 'tasse_e'") as caught:
        solve_with(scene, goal, robot=GANTRY)
    assert caught.value.data["reason"].endswith("'Tasse é' is 'tasse_e'")
    with pytest.raises(TaskError, match="did you mean 'tasse_e'") as caught:
        solve_with(scene, "(holding tasse)", robot=GANTRY)
    assert "in PDDL" not in str(caught.value)


def test_two_frames_of_one_name_are_rejected() -> None:
    """Both frames are named."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    scene = scene.rename_frame("a", "Tasse é").rename_frame("b", "tasse_e")
    with pytest.raises(
        SceneError,
        match="block 'Tasse é' and block 'tasse_e' have the same name in PDDL: 'tasse_e'; rename",
    ):
        solve_with(scene, "(handempty)", robot=GANTRY)
