"""Copies of immutable values with other fields, and frames with an uncertain pose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tmkit.errors import ConfigurationError, SceneError, ShapeError, TmkitError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    Box,
    Fixed,
    FrameSpecification,
    Inertia,
    Joint,
    Mimic,
    NoiseSource,
    Prismatic,
    Revolute,
    SceneGraph,
    Sphere,
    Stamped,
    StampedPoses,
)
from tmkit.spatial import GaussianPose, Pose

_COVARIANCE = np.diag([1e-4, 2e-4, 3e-4, 1e-5, 2e-5, 3e-5])
_NOISY = (
    SceneGraph().add_body("Cart").add_frame("a", "world", pose=GaussianPose(covariance=_COVARIANCE))
)
_NOISY = _NOISY.set_twist("a", [1, 2, 3, 4, 5, 6], relative_to_body="Cart", covariance=_COVARIANCE)
_NOISE, _TWIST_NOISE = _NOISY.specification("a").noise, _NOISY.specification("a").twist_noise

# The class, a value, and another value of each field.
VALUES: list[tuple[Any, dict[str, Any]]] = [
    (
        AttachedShape(Box([1, 2, 3])),
        {
            "shape": Sphere(0.5),
            "pose": Pose([1, 2, 3]),
            "color": (0.1, 0.2, 0.3, 0.4),
            "visual": False,
            "collision": False,
            "friction": 0.5,
            "level": "box",
            "stamp": 2.5,
        },
    ),
    (
        Revolute([0, 0, 1], lower=-1.0, upper=1.0, name="turn"),
        {
            "axis": [0.0, 1.0, 0.0],
            "lower": -2.0,
            "upper": 2.0,
            "velocity": 3.0,
            "effort": 4.0,
            "damping": 0.5,
            "friction": 0.25,
            "name": "lift",
            "mimic": Mimic("other", 2.0, 0.1),
        },
    ),
    (
        FrameSpecification("a", "world").replace(twist=("Cart", [0] * 6)),
        {
            "name": "b",
            "parent": "table",
            "pose": Pose([1, 2, 3]),
            "joint": Prismatic([1, 0, 0], name="slide"),
            "body": "Cart",
            "classes": ("movable",),
            "shapes": (AttachedShape(Box([1, 1, 1])),),
            "inertia": Inertia(2.0),
            "attributes": {"key": [1, 2]},
            "twist": ("Floor", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            "twist_noise": _TWIST_NOISE,
            "stamps": StampedPoses([1.0], [Pose([1, 0, 0])]),
            "noise": _NOISE,
        },
    ),
]
FIELDS = [(value, others, name) for value, others in VALUES for name in others]
WRONG = {
    "shape": 3,
    "joint": "x",
    "shapes": [3],
    "inertia": 3,
    "stamps": 3,
    "noise": 3,
    "twist_noise": 3,
    "mimic": "x",
}


def plain(value: Any) -> Any:
    """Return a value that can be compared: arrays and lists as tuples."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return tuple(map(plain, value)) if isinstance(value, tuple | list) else value


def fields(value: Any, names: Any) -> dict[str, Any]:
    """Return the fields of a value."""
    found = {name: plain(getattr(value, name)) for name in names}
    return {key: dict(given) if key == "attributes" else given for key, given in found.items()}


@pytest.mark.parametrize(("value", "others", "name"), FIELDS)
def test_one_field_is_replaced_alone(value: Any, others: dict[str, Any], name: str) -> None:
    """A copy has the new field and all other fields; the old field restores the value."""
    before = fields(value, others)
    changed = value.replace(**{name: others[name]})
    expected = before | {name: plain(others[name])}
    if name == "name" and isinstance(value, FrameSpecification):
        expected["body"] = "b"  # by default a body of the frame's own name
    assert fields(changed, others) == expected
    assert fields(value, others) == before
    assert fields(changed.replace(**{name: getattr(value, name)}), others) == before
    assert fields(value.replace(), others) == before


@pytest.mark.parametrize(("value", "others"), VALUES)
def test_all_fields_are_replaced_at_once(value: Any, others: dict[str, Any]) -> None:
    """The order of the arguments does not matter: a twist and its noise come together."""
    for names in (list(others), list(reversed(others))):
        changed = value.replace(**{name: others[name] for name in names})
        for name in others:
            assert plain(getattr(changed, name)) == plain(others[name]), name


@pytest.mark.parametrize(("value", "others", "name"), FIELDS)
def test_a_wrong_field_is_an_error(value: Any, others: dict[str, Any], name: str) -> None:
    """A misspelt name is named with the nearest; a value of another type with the field."""
    with pytest.raises(
        UnknownNameError, match=f"field of {type(value).__name__} '{name}x'.*did you mean '{name}'"
    ):
        value.replace(**{f"{name}x": others[name]})
    with pytest.raises(TmkitError, match=name):
        value.replace(**{name: WRONG.get(name, object())})
    assert fields(value, others) == fields(value.replace(), others)


def test_rules_hold_for_copies() -> None:
    """Constructor rules hold: twist noise needs a twist and is removed with it."""
    shape, joint, frame = (value for value, _ in VALUES)
    for change, message in (
        ({"friction": -1.0}, "friction"),
        ({"stamp": math.inf}, "stamp"),
        ({"color": [2] * 4}, "color"),
    ):
        with pytest.raises(ShapeError, match=message):
            shape.replace(**change)
    with pytest.raises(UnknownNameError, match="level"):
        shape.replace(level="boxes")
    with pytest.raises((SceneError, ConfigurationError), match="lower"):
        joint.replace(lower=3.0)
    with pytest.raises(SceneError, match="axis"):
        joint.replace(axis=[0, 0, 0])
    assert Fixed().replace(name="x").type == "fixed"
    with pytest.raises(SceneError, match="not empty"):
        frame.replace(parent="")
    with pytest.raises(SceneError, match="twist"):
        FrameSpecification("a", "world").replace(twist_noise=_TWIST_NOISE)
    noisy = frame.replace(twist_noise=_TWIST_NOISE)
    assert noisy.replace(twist=("Floor", [1] * 6)).twist_noise == _TWIST_NOISE
    assert noisy.replace(twist=None).twist_noise is None
    stamped = frame.replace(attributes={"key": Stamped(1, 2.0)})
    assert stamped.replace(pose=Pose([1, 0, 0])).attribute_stamps == {"key": 2.0}


def test_an_uncertain_pose_is_a_source_of_its_own() -> None:
    """A frame added with a GaussianPose equals ``set_covariance`` after an exact frame."""
    pose = GaussianPose(Pose([1, 2, 3]), _COVARIANCE)
    scene = SceneGraph().add_frame("a", "world", pose=pose).add_frame("b", "world", pose=pose)
    later = SceneGraph().add_frame("a", "world", pose=pose.mean).set_covariance("a", _COVARIANCE)
    assert (
        scene.gaussian_pose("a", relative_to="world")
        == later.gaussian_pose("a", relative_to="world")
        == pose
    )
    sources: list[NoiseSource] = [*scene.noise("a").sources, *scene.noise("b").sources]
    assert len(set(sources)) == 2
    exact = SceneGraph().add_frame("a", "world", pose=GaussianPose(Pose([1, 2, 3])))
    assert exact.noise("a") is None
    assert isinstance(exact.joint("a"), Joint)
