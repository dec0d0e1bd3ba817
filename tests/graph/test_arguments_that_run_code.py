"""Arguments whose conversion runs code that edits the very scene that they are for."""

from __future__ import annotations

import contextlib
import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tmkit import _core as core
from tmkit.errors import ConfigurationError, TmkitError
from tmkit.graph import (
    Measurement,
    NoiseSource,
    Revolute,
    SceneArrays,
    SceneEdit,
    SceneGraph,
    innovation,
)
from tmkit.spatial import GaussianPose, Pose


class Sly:
    """Numbers that run something when they are converted."""

    def __init__(self, numbers: object, run: Callable[[], object]) -> None:
        self.numbers, self.run = np.asarray(numbers, float), run

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        self.run()
        return self.numbers


class SlyDict(dict[str, int]):
    """A dictionary that runs something when its items are asked for."""

    def __init__(self, run: Callable[[], object]) -> None:
        super().__init__(a=1)
        self.run = run

    def items(self) -> Any:
        """Run it, and return the items."""
        self.run()
        return super().items()


def arm(joints: int) -> SceneGraph:
    """Return a chain of joints, a cup at its end and a table beside it."""
    scene = SceneGraph().add_frame("table", "world", pose=GaussianPose(Pose([1, 0, 0]), np.eye(6)))
    parent = "world"
    for number in range(joints):
        scene = scene.add_frame(
            f"link{number}", parent, joint=Revolute([0, 0, 1], name=f"joint{number}")
        )
        parent = f"link{number}"
    return scene.add_frame("cup", parent, pose=GaussianPose(Pose([0.5, 0, 0]), np.eye(6)))


def grow(target: SceneEdit | SceneArrays) -> None:
    """Add joints, so that a configuration which fitted does not."""
    for number in range(40):
        target.add_frame(f"more{number}", "cup", joint=Revolute([0, 0, 1], name=f"more{number}"))


def shrink(target: SceneEdit | SceneArrays) -> None:
    """Take away what the edit is about."""
    target.remove_frame("cup", subtree=True)
    target.rename_frame("table", "desk")


COVARIANCE = 0.01 * np.eye(6)
EDITS: dict[str, Callable[[Any, Callable[[], object]], object]] = {
    "reparent": lambda t, run: t.reparent("cup", "table", q=Sly([0.1, 0.2], run)),
    "set_covariance": lambda t, run: t.set_covariance("cup", Sly(COVARIANCE, run)),
    "set_twist": lambda t, run: t.set_twist(
        "cup", Sly([0] * 6, run), relative_to_body="table", covariance=Sly(COVARIANCE, run)
    ),
    "set_attribute": lambda t, run: t.set_attribute("cup", "x", SlyDict(run)),
    "set_attributes": lambda t, run: t.set_attributes("cup", {"x": SlyDict(run)}),
}
EDITS_OF_SCENES = {
    "reparent_slip": lambda t, run: t.reparent(
        "cup", "table", q=[0.1, 0.2], covariance=Sly(COVARIANCE, run)
    ),
    "condition": lambda t, run: t.condition(
        Measurement.of_pose("cup", Pose([0, 0, 1]), relative_to="table", covariance=COVARIANCE),
        q=Sly([0.1, 0.2], run),
    ),
    "set_noise": lambda t, run: t.set_noise("cup", {NoiseSource(2): Sly(np.ones((6, 2)), run)}),
    "add_noise": lambda t, run: t.add_noise("cup", {NoiseSource(2): Sly(np.ones((6, 2)), run)}),
    "add_frame": lambda t, run: t.add_frame(
        "new", "cup", pose=GaussianPose(covariance=Sly(COVARIANCE, run))
    ),
}
QUERIES = {
    "forward": lambda t, run: t.forward(Sly([0.1, 0.2], run)),
    "pose": lambda t, run: t.pose("cup", relative_to="table", q=Sly([0.1, 0.2], run)),
    "gaussian_pose": lambda t, run: t.gaussian_pose(
        "cup", relative_to="table", q=Sly([0.1, 0.2], run)
    ),
    "standard_deviation": lambda t, run: t.standard_deviation(
        "cup", relative_to="table", q=Sly([0.1, 0.2], run)
    ),
    "twist_from_stamps": lambda t, run: t.twist_from_stamps(
        "cup", relative_to="table", first=0, second=1, q=Sly([0.1, 0.2], run)
    ),
}


@pytest.mark.parametrize("meanwhile", [grow, shrink])
@pytest.mark.parametrize("name", EDITS | EDITS_OF_SCENES)
def test_an_edit_whose_argument_edits_the_scene(
    name: str, meanwhile: Callable[[Any], None]
) -> None:
    """The edit applies to the scene after the conversion, or raises an error."""
    edit = arm(2).edit()
    done: list[bool] = []

    def run() -> None:
        if not done:
            done.append(True)
            meanwhile(edit)

    with contextlib.suppress(TmkitError):
        (EDITS | EDITS_OF_SCENES)[name](edit, run)
    assert done
    assert edit.finish()._defects() == ""


@pytest.mark.parametrize("meanwhile", [grow, shrink])
@pytest.mark.parametrize("name", EDITS | QUERIES)
def test_arrays_whose_argument_edits_them(name: str, meanwhile: Callable[[Any], None]) -> None:
    """Edits and queries of arrays that change while an argument is read."""
    arrays = SceneArrays(arm(2), capacity={"frames": 600, "noise": 30})
    done: list[bool] = []

    def run() -> None:
        if not done:
            done.append(True)
            meanwhile(arrays)

    with contextlib.suppress(TmkitError):
        (EDITS | QUERIES)[name](arrays, run)
    assert done
    assert arrays._defects() == ""
    assert arrays.freeze()._defects() == ""


def test_a_configuration_that_no_longer_fits_is_rejected() -> None:
    """The number of joints is compared after the conversion."""
    edit = arm(2).edit()
    with pytest.raises(ConfigurationError, match="q was read while the number of joints changed"):
        edit.reparent("cup", "table", q=Sly([0.1, 0.2], lambda: grow(edit)))
    arrays = SceneArrays(arm(2), 600)
    with pytest.raises(ConfigurationError, match="q was read while the number of joints changed"):
        arrays.forward(Sly([0.1, 0.2], lambda: grow(arrays)))


def test_values_of_the_core_are_weakly_referenceable() -> None:
    """A weak reference to a value of every class that the core makes, dead when the value is."""
    scene = arm(2)
    measured = Measurement.of_range("cup", 1.0, relative_to="table", deviation=0.1)
    world = core.CollisionWorld(scene)
    values = [
        Pose(),
        core.GaussianPose(),
        core.Box([1, 1, 1]),
        core.AttachedShape(core.Box([1, 1, 1])),
        core.Mimic("a"),
        core.Fixed(),
        core.Inertia(1.0),
        core.StampedPoses(),
        scene,
        scene.edit(),
        SceneArrays(scene),
        scene.at([0, 0]),
        scene.specification("cup"),
        core.diff(scene, scene),
        NoiseSource(1),
        scene.noise("cup"),
        measured,
        world,
        scene.set_group("g").group("g"),
        innovation(scene, measured, q=[0.0, 0.0]),
        core.inverse_kinematics(
            scene,
            "cup",
            target_pose=Pose(),
            joints=["joint0"],
            q=[0, 0],
            settings=core.IkSettings(rotation_tolerance=math.inf),
        ),
        core.search_path(world, ["joint0"], start=[0, 0], goals=[1, 0]),
        core.recheck_path(world, [[0.0, 0.0]]),
    ]
    references = [weakref.ref(value) for value in values]
    assert [reference() for reference in references] == values
    del values, world, scene, measured
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)
