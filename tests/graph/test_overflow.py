"""Results beyond the range of numbers: an error, where they would be infinite or no numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tmkit import _core as core
from tmkit._core import StampedPoses
from tmkit.errors import NumberOverflowError, TmkitError
from tmkit.formats import scene_from_dict, scene_to_dict
from tmkit.graph import (
    AttachedShape,
    Box,
    Inertia,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneGraph,
    Sphere,
    integrate,
)
from tmkit.spatial import GaussianPose, Pose

FAR = Pose([1e308, 1e308, 1e308], [0.1, 0.2, 0.3, 0.9])
HUGE = 1e300 * np.eye(6)


def far_scene() -> SceneGraph:
    """Return two frames so far out that what lies between them is beyond all numbers."""
    scene = SceneGraph().add_frame("a", "world", pose=GaussianPose(Pose([1.7e308, 0, 0]), HUGE))
    return scene.add_frame("b", "world", pose=GaussianPose(Pose([-1.7e308, 0, 0]), HUGE)).add_frame(
        "c", "a", pose=FAR
    )


OVERFLOWS: dict[str, Callable[[], Any]] = {
    "matmul": lambda: FAR @ FAR,
    "inverse": lambda: Pose([1.7e308, 1.7e308, 1.7e308], [0.1, 0.2, 0.3, 0.9]).inverse(),
    "apply": lambda: FAR.apply([1.7e308, 1.7e308, 1.7e308]),
    "rotate": lambda: FAR.rotate([[1.7e308, 1.7e308, 1.7e308]]),
    "distance": lambda: Pose([1e200, 0, 0]).distance(Pose()),
    "gaussian": lambda: GaussianPose(FAR, HUGE) @ GaussianPose(FAR, HUGE),
    "left": lambda: GaussianPose(FAR, HUGE).left_covariance,
    "from_left": lambda: GaussianPose.from_left(FAR, HUGE),
    "compose": lambda: core.compose([FAR, FAR]),
    "compose_each": lambda: core.compose_each([FAR.as_array()], [FAR.as_array()]),
    "stamps": lambda: StampedPoses([0.0], [FAR]).moved(FAR),
    "scene.pose": lambda: far_scene().pose("a", relative_to="b"),
    "scene.at": lambda: far_scene().at([]).pose("c", relative_to="b"),
    "scene.poses": lambda: far_scene().at([]).poses,
    "scene.gaussian_pose": lambda: far_scene().gaussian_pose("c", relative_to="b"),
    "scene.poses of frames": lambda: far_scene().poses(["a", "c"], relative_to="b"),
    "scene.standard_deviation": lambda: far_scene().standard_deviation("c", relative_to="b"),
    "scene.reparent": lambda: far_scene().reparent("a", "b"),
    "edit.reparent": lambda: far_scene().edit().reparent("a", "b"),
    "arrays.pose": lambda: SceneArrays(far_scene()).pose("a", relative_to="b"),
    "arrays.poses": lambda: SceneArrays(far_scene()).poses,
    "arrays.write_poses": lambda: SceneArrays(far_scene()).write_poses(np.zeros((9, 7))),
    "arrays.reparent": lambda: SceneArrays(far_scene()).reparent("a", "b"),
    "integrated": lambda: integrate(
        SceneGraph()
        .add_frame("a", "world")
        .set_twist("a", [1e308, *[0] * 5], relative_to_body="world"),
        1e10,
    ),
    "volume": lambda: Box([1e200, 1e200, 1e200]).volume,
    "sphere": lambda: Sphere(1e200).volume,
    "slide": lambda: (
        SceneGraph()
        .add_frame("s", "world", pose=Pose([1.7e308, 0, 0]), joint=Prismatic([1, 0, 0], name="s"))
        .pose("s", relative_to="world", q=[1.7e308])
    ),
    "mimic": lambda: (
        SceneGraph()
        .add_frame("s", "world", joint=Prismatic([1, 0, 0], name="s"))
        .add_frame("t", "world", joint=Prismatic([1, 0, 0], name="t", mimic=core.Mimic("s", 1e308)))
        .pose("t", relative_to="world", q=[1e308])
    ),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_result_beyond_all_numbers_is_an_error(name: str) -> None:
    """Overflows raise NumberOverflowError, a ValueError and an OverflowError."""
    with pytest.raises(
        NumberOverflowError, match="beyond the range of floating-point numbers"
    ) as raised:
        OVERFLOWS[name]()
    assert isinstance(raised.value, OverflowError)
    assert isinstance(raised.value, ValueError)


def test_what_overflows_in_an_edit_changes_nothing() -> None:
    """An edit that is rejected leaves the builder and the arrays as they were."""
    edit, arrays = far_scene().edit(), SceneArrays(far_scene())
    for target in (edit, arrays):
        with pytest.raises(NumberOverflowError):
            target.reparent("a", "b")
    assert edit.finish() == far_scene()
    assert arrays.freeze() == far_scene()


def test_infinite_properties_of_joints_and_shapes_are_rejected_or_meant() -> None:
    """Limits may be infinite, planes are; friction, damping, masses and sizes are not."""
    joint = Revolute([0, 0, 1])
    assert math.isinf(joint.upper)
    assert np.isinf(SceneGraph().add_frame("a", "world", joint=joint).joint_limits).all()
    assert np.isinf(core.Plane().bounds[0]).any()
    assert math.isinf(core.Plane().volume)
    for make in (
        lambda: Revolute([0, 0, 1]).replace(friction=math.inf),
        lambda: Revolute([0, 0, 1]).replace(damping=math.inf),
        lambda: Inertia(math.inf),
        lambda: Inertia(1.0, [math.inf, 0, 0]),
        lambda: Box([math.inf, 1, 1]),
        lambda: AttachedShape(Box([1, 1, 1]), friction=math.inf),
        lambda: SceneGraph().add_root("a").set_twist("a", [math.inf] * 6, relative_to_body="world"),
        lambda: SceneGraph().set_attribute("world", "x", math.inf),
        lambda: Pose().interpolate(FAR, 1e10),
    ):
        with pytest.raises(TmkitError):
            make()


def test_json_numbers_beyond_all_numbers_are_rejected() -> None:
    """1e999 in a JSON scene is read as infinite by Python, and rejected wherever it stands."""
    scene = SceneGraph().add_frame(
        "a",
        "world",
        pose=GaussianPose(Pose([7, 8, 9]), 7 * np.eye(6)),
        shapes=[AttachedShape(Box([7, 8, 9]))],
    )
    text = json.dumps(scene_to_dict(scene.set_attribute("a", "x", 7.0)))
    places = [place for place in range(len(text)) if text.startswith("7.0", place)]
    assert len(places) >= 4
    for place in places:
        with pytest.raises(TmkitError):
            scene_from_dict(json.loads(text[:place] + "1e999" + text[place + 3 :]))


_large = st.floats(-1.7e308, 1.7e308)


@given(st.lists(_large, min_size=3, max_size=3), st.lists(_large, min_size=3, max_size=3))
def test_products_are_finite_or_rejected(first: list[float], second: list[float]) -> None:
    """Whatever finite translations are composed, no pose has a number that is not finite."""
    turned = [0.1, 0.2, 0.3, 0.9]
    try:
        product = Pose(first, turned) @ Pose(second, turned)
    except NumberOverflowError:
        return
    assert np.isfinite(product.as_array()).all()
