"""Poses whose frames are types, names with spaces, and representations of one's own in JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tmkit as tk
from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph import SceneGraph, relate, twist
from tmkit.relations import (
    Frame,
    FramedPose,
    PoseCoord,
    PositionCoord,
    SemanticError,
    SemanticTwist,
    TwistCoord,
    from_dict,
    to_dict,
)
from tmkit.relations.representations import TwistVector
from tmkit.spatial.converters import nearest_rotation


class Hand(Frame):
    """A frame named as its class."""


class Table(Frame):
    """Another."""


class World(Frame, name="world", body="floor"):
    """A frame with an explicit name and body."""


GRASP = FramedPose(Hand, Table, tk.Pose([0.1, 0.2, 0.3], [0.0, 0.6, 0.0, 0.8]))
PLACE = FramedPose(Table, World, tk.Pose([1.0, 0.0, 0.0], [0.6, 0.0, 0.0, 0.8]))


def test_framed_poses_are_products_of_poses() -> None:
    """The pose of the hand in the world, and the way back."""
    assert (GRASP @ PLACE).pose.is_close(PLACE.pose @ GRASP.pose)
    assert GRASP.inverse().pose.is_close(GRASP.pose.inverse())
    assert (
        repr((GRASP @ PLACE).relation.coord)
        == "PoseCoord('{Hand}|Hand', '{world}|floor', '[world]')"
    )
    assert repr(GRASP).startswith("FramedPose(Hand, Table, Pose([0.1")
    assert FramedPose(Hand, Table, GRASP.relation).relation is GRASP.relation


def test_frames_that_do_not_meet_are_rejected_when_the_program_runs_too() -> None:
    """Also without a type checker."""
    with pytest.raises(SemanticError, match=r"it is the pose of Hand relative to Hand"):
        _ = GRASP @ GRASP.inverse() @ GRASP.inverse()  # type: ignore[operator]
    with pytest.raises(SemanticError, match=r"relative to World .PoseCoord.*Table"):
        FramedPose(Hand, World, GRASP.relation)


WORDS = st.lists(st.from_regex(r"[^\s|{}\[\](),\"]+", fullmatch=True), min_size=1, max_size=3).map(
    " ".join
)
QUOTED = st.text(min_size=1, max_size=8).map(lambda name: '"' + name.replace('"', '""') + '"')
NAMES = WORDS | QUOTED


@given(NAMES, NAMES, NAMES, NAMES)
def test_names_are_read_as_they_are_written(frame: str, body: str, point: str, ref: str) -> None:
    """Every form of the notation; in quotes any text is a name."""
    for coord in (
        PoseCoord(f"{{{frame}}}|{body}", f"({point},[{frame}])|{ref}", f"[{frame}]"),
        PositionCoord(f"{point}|{body}", f"{frame}|{ref}", f"[{frame}]"),
        TwistCoord(f"{point}|{body}", ref, f"[{frame}]"),
    ):
        assert eval(repr(coord)) == coord
        names = [
            name[1:-1].replace('""', '"') if name[0] == '"' else name for name in (body, ref, frame)
        ]
        assert [coord.body, coord.ref_body, coord.coord] == names
        assert from_dict(json.loads(json.dumps(to_dict(coord)))) == coord


def test_names_with_characters_of_the_notation_are_those_of_a_scene() -> None:
    """They are written in quotes, in which alone they are read."""
    scene = SceneGraph().add_frame("a|b", "world").add_frame(' [x] "', "a|b")
    moving = scene.set_twist("a|b", np.arange(6.0), relative_to_body="world")
    found = twist(moving, ' [x] "')
    assert found.coord.notation() == ('" [x] """|" [x] """', "world", "[world]")
    assert relate(moving, eval(repr(found.coord))) == found
    with pytest.raises(SemanticError, match=r"write '\"a\|b\"' if that is its name"):
        found.coord.replace(coord="a|b")
    assert found.coord.replace(coord='"a|b"').coord == "a|b"
    for text in ('{"a|b}|C', '{a"|"b}|C', '{""}|C', '{"a"b"}|C'):
        with pytest.raises(SemanticError, match="is written as"):
            PoseCoord(text, "{h}|D", "[h]")


@pytest.mark.parametrize(
    "text",
    [" {g}|C", "{ g}|C", "{g }|C", "{g} |C", "{g}| C", "{g}|C ", "{g\tx}|C", "{}|C", "{ }|C"],
)
def test_spaces_around_names_are_rejected(text: str) -> None:
    """They are seldom meant, and cannot be seen."""
    with pytest.raises(SemanticError, match="is written as"):
        PoseCoord(text, "{h}|D", "[h]")


@dataclass(frozen=True, eq=False)
class Scaled:
    """A twist in other units: a representation of one's own, with the members of the protocol."""

    centimetres: Any
    relation = "Twist"

    @property
    def numbers(self) -> Any:
        """Linear and angular part."""
        six = np.asarray(self.centimetres, dtype=float) / 100
        return six[:3], six[3:]

    @classmethod
    def of(cls, numbers: Any, *, like: Self | None = None) -> Self:
        """Make one."""
        del like
        return cls(np.concatenate(numbers) * 100)

    def find_violations(self, coord: Any) -> Any:
        """Nothing is rejected."""
        del coord
        return ()


class Handmade(Scaled):
    """A representation with custom JSON methods."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"text": " ".join(map(str, np.asarray(self.centimetres)))}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read plain values."""
        return cls(np.array(data["text"].split(), dtype=float))


@pytest.mark.parametrize("cls", [Scaled, Handmade])
def test_representations_of_ones_own_in_json(cls: Any) -> None:
    """They go out and come in under the names that are given, and take part in operations."""
    own = SemanticTwist(TwistCoord("e|C", "D", "[r]"), cls(np.arange(6.0)))
    known = {"mine": cls}
    data = json.loads(json.dumps(to_dict(own, representations=known)))
    assert data["values"]["representation"] == "mine"
    again = from_dict(data, representations=known)
    assert type(again.representation) is cls
    doubled = again.compose(SemanticTwist(TwistCoord("e|D", "E", "[r]"), np.arange(6.0) / 100))
    np.testing.assert_allclose(doubled.representation.centimetres, 2 * np.arange(6.0))
    with pytest.raises(UnknownNameError, match="'mine'"):
        from_dict(data)
    with pytest.raises(
        SemanticError, match=r"the name of a custom representation is not built-in .TwistVector"
    ):
        from_dict(data, representations={"TwistVector": TwistVector})


def test_the_nearest_rotation_and_how_far_it_is() -> None:
    """A rotation that is rounded, one that is scaled, and what is none."""
    turned = tk.Pose.exp([0.0, 0.0, 0.0, 0.3, -0.5, 0.7]).rotation
    made = nearest_rotation(np.round(turned, 3))
    np.testing.assert_allclose(made.rotation @ made.rotation.T, np.eye(3), atol=1e-14)
    assert 0.0 < made.distance < 1e-3
    np.testing.assert_allclose(nearest_rotation(1.01 * turned).rotation, turned, atol=1e-12)
    assert nearest_rotation(1.01 * turned).distance == pytest.approx(0.01 * np.sqrt(3))
    assert nearest_rotation(turned).distance < 1e-15
    for mirror in (np.diag([1.0, 1.0, -1.0]), -turned):
        with pytest.raises(
            SceneError, match=r"a reflection: the nearest rotation is (2|2\.83) away, beyond 0\.1"
        ):
            nearest_rotation(mirror)
    with pytest.raises(SceneError, match=r"no rotation: the nearest rotation is 1\.73 away"):
        nearest_rotation(2 * turned)
    with pytest.raises(SceneError, match=r"shape \(3, 3\) and finite numbers"):
        nearest_rotation(np.full((3, 3), np.nan))
