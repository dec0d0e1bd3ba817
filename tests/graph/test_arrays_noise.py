"""Uncertainty in arrays: bitwise equal to that of scenes after the same random edits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support import noise_model as model
from support.effort import scaled_examples

from tmkit import Pose, Revolute, SceneArrays, SceneGraph
from tmkit.errors import CapacityError, SceneError
from tmkit.spatial import GaussianPose


@settings(max_examples=scaled_examples(0.4))
@given(st.integers(0, 2**32 - 1))
def test_arrays_and_scenes_know_the_same(seed: int) -> None:
    """After equal edits all queries return equal bits, and freezing returns an equal scene."""
    random = np.random.default_rng(seed)
    scene = model.random_tree(random, 9)
    scene = scene.add_frame(
        "turn",
        "f3",
        joint=Revolute([0, 0, 1]),
        pose=GaussianPose(covariance=model.random_covariance(random)),
    )
    scene = scene.add_frame(
        "tool", "turn", pose=GaussianPose(Pose([0.1, 0.2, 0.3]), model.random_covariance(random))
    )
    frames = scene.frame_names[1:]
    arrays = SceneArrays(scene)
    q = random.normal(size=1)
    arrays.forward(q)
    for _ in range(8):
        a, b = (str(name) for name in random.choice(frames, size=2, replace=False))
        if a not in scene.ancestors(b):
            if random.random() < 0.3:
                pose = Pose.exp(random.normal(size=6))
                scene, _ = scene.reparent(a, b, pose=pose), arrays.reparent(a, b, pose=pose)
            else:
                scene, _ = scene.reparent(a, b, q=q), arrays.reparent(a, b)
        c, d = (str(name) for name in random.choice(frames, size=2))
        assert arrays.gaussian_pose(c, relative_to=d) == scene.gaussian_pose(c, relative_to=d, q=q)
        assert arrays.gaussian_pose(c, relative_to=d, q=[0.5]) == scene.gaussian_pose(
            c, relative_to=d, q=[0.5]
        )
        deviation = scene.standard_deviation(c, relative_to=d, q=q)
        assert np.array_equal(arrays.standard_deviation(c, relative_to=d), deviation)
        variances = np.diag(scene.gaussian_pose(c, relative_to=d, q=q).covariance)
        assert np.array_equal(deviation, np.sqrt(np.maximum(variances, 0.0)))
        assert np.array_equal(arrays.edge_covariance(a), scene.edge_covariance(a))
    assert arrays.freeze() == scene


def test_room_for_errors() -> None:
    """Exact scenes take no room; what does not fit is rejected, and nothing has changed."""
    scene = SceneGraph().add_frame("a", "world").add_frame("b", "a")
    exact = SceneArrays(scene)
    with pytest.raises(
        CapacityError, match="no room for another dimension of noise sources: all 0 are taken"
    ):
        exact.set_covariance("a", np.eye(6))
    assert exact.gaussian_pose("b", relative_to="world").covariance.max() == 0.0
    arrays = SceneArrays(scene, capacity={"noise": 6})
    arrays.set_covariance("a", np.eye(6))
    arrays.set_covariance("b", np.diag([1.0, 0, 0, 0, 0, 0]))
    assert arrays.gaussian_pose("b", relative_to="world").covariance[0, 0] == pytest.approx(2.0)
    with pytest.raises(CapacityError, match="construct SceneArrays with a larger capacity 'noise'"):
        arrays.reparent("b", "world")
    assert arrays.parent("b") == "a"
    with pytest.raises(SceneError, match="frame 'world' is a root, which has no covariance"):
        arrays.set_covariance("world", np.eye(6))
    arrays.set_noise("b", None)
    assert arrays.noise("b") is None
    assert arrays.freeze() == scene.set_noise("a", arrays.noise("a"))
    with pytest.raises(CapacityError):
        SceneArrays(arrays.freeze(), capacity={"noise": 5})
