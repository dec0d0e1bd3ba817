"""Scene arrays against scenes: equal results after the same random edits.

Scenes, error messages and poses are equal to the last bit. A frozen value continues as its equal.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.effort import scaled_examples
from support.scene_edits import Edit, configurations, edits
from support.scene_model import SceneModel

from tmkit.errors import DisconnectedError, TmkitError, UnknownNameError
from tmkit.graph import SceneArrays, SceneGraph

_FRAMES, _NAME_BYTES = 16, 9


def check_poses(arrays: SceneArrays, scene: SceneGraph) -> None:
    """Compare all poses, relative poses and Jacobians at the present configuration."""
    q = arrays.q
    at = scene.at(q)
    assert arrays.poses.tobytes() == at.poses.tobytes()
    for target in scene.frame_names:
        assert arrays.pose(target) == at.pose(target)
        assert arrays.jacobian(target).tobytes() == at.jacobian(target).tobytes()
        for reference in scene.frame_names[::3]:
            check_pair(arrays, scene, target, reference)


def check_pair(arrays: SceneArrays, scene: SceneGraph, target: str, reference: str) -> None:
    """Compare one relative pose, at the present configuration, also when that is given."""
    q = arrays.q
    if scene.root(target) != scene.root(reference):
        with pytest.raises(DisconnectedError) as expected_error:
            scene.pose(target, relative_to=reference, q=q)
        for given in (None, q):
            with pytest.raises(DisconnectedError) as caught:
                arrays.pose(target, relative_to=reference, q=given)
            assert str(caught.value) == str(expected_error.value)
            assert caught.value.data == expected_error.value.data
        return
    expected = scene.pose(target, relative_to=reference, q=q)
    for given in (None, q):
        assert (
            arrays.pose(target, relative_to=reference, q=given).as_array().tobytes()
            == expected.as_array().tobytes()
        )


class ArraysMachine(RuleBasedStateMachine):
    """One scene in both variants, and the plain model that edits are drawn for."""

    @initialize()
    def begin(self) -> None:
        """Begin with a scene that has only its root."""
        self.scene = SceneGraph()
        self.arrays = SceneArrays(
            self.scene, capacity={"frames": _FRAMES, "name_bytes": _NAME_BYTES}
        )
        self.model = SceneModel().add_root("world")

    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        """Do one edit to both: both reject it, in the same words, or both do it."""
        edit = data.draw(edits(self.model))
        try:
            scene = edit.apply_to(self.scene)
        except TmkitError as rejected:
            self.reject(edit, rejected)
            return
        assert scene is not None
        before = dict(zip(self.arrays.joint_names, self.arrays.q, strict=True))
        assert edit.apply_to(self.arrays) is None
        self.scene = scene
        self.follow(edit)
        for joint, value in zip(self.arrays.joint_names, self.arrays.q, strict=True):
            assert value == before.get(joint, value)

    def reject(self, edit: Edit, rejected: TmkitError) -> None:
        """The arrays reject an edit as the scene did."""
        with pytest.raises(type(rejected)) as caught:
            edit.apply_to(self.arrays)
        assert type(caught.value) is type(rejected)
        assert caught.value.data == rejected.data
        if "two paths" not in str(rejected):  # of several such bodies, either may be named
            assert str(caught.value) == str(rejected)

    def follow(self, edit: Edit) -> None:
        """Let the model do the edit too, with the core's exact pose."""
        expected = edit.apply_to_model(self.model)
        if edit.q is not None and expected is not self.model:
            frame = edit.positional[0]
            expected = expected.with_exact_pose(frame, self.scene.local_pose(frame))
        self.model = expected

    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        """Go to another configuration."""
        q = self.scene.configuration(data.draw(configurations(self.model)))
        self.arrays.forward(q)
        assert self.arrays.q.tobytes() == q.tobytes()

    @rule(data=st.data())
    def keep_pose(self, data: st.DataObject) -> None:
        """Without pose and q, a frame keeps its place at the present configuration."""
        names = st.sampled_from((*self.scene.frame_names, "nobody"))
        frame, parent = data.draw(names), data.draw(names)
        try:
            scene = self.scene.reparent(frame, parent, q=self.arrays.q)
        except TmkitError as rejected:
            with pytest.raises(type(rejected)):
                self.arrays.reparent(frame, parent)
            return
        self.arrays.reparent(frame, parent)
        self.scene = scene
        self.follow(
            Edit(
                "reparent",
                (frame, parent),
                q=dict(zip(scene.joint_names, self.arrays.q, strict=True)),
            )
        )

    @rule()
    def begin_again(self) -> None:
        """Arrays made of the scene go on like those that it was frozen from."""
        q = self.arrays.q
        self.arrays = SceneArrays(
            self.scene, capacity={"frames": _FRAMES, "name_bytes": _NAME_BYTES}
        )
        assert not self.arrays.q.any()
        self.arrays.forward(q)

    @invariant()
    def variants_agree(self) -> None:
        """All that both can tell is equal, to the last bit."""
        if not hasattr(self, "arrays"):
            return
        arrays, scene = self.arrays, self.scene
        assert arrays._defects() == ""
        frozen = arrays.freeze()
        assert frozen._defects() == ""
        assert frozen == scene
        assert hash(frozen) == hash(scene)
        assert list(map(frozen.frame_id, frozen.frame_names)) == list(
            map(scene.frame_id, scene.frame_names)
        )
        assert frozen.body_names == scene.body_names
        assert frozen.allowed_pairs == scene.allowed_pairs
        assert arrays.group_names == scene.group_names
        assert [arrays.group(name) for name in scene.group_names] == [
            scene.group(name) for name in scene.group_names
        ]
        assert arrays.frame_names == scene.frame_names
        assert arrays.joint_names == scene.joint_names
        assert len(arrays) == len(scene)
        for name in scene.frame_names:
            assert name in arrays
            assert arrays.parent(name) == scene.parent(name)
            assert arrays.children(name) == scene.children(name)
            assert arrays.local_pose(name) == scene.local_pose(name)
            ours, theirs = arrays.specification(name), scene.specification(name)
            for field in (
                "name",
                "parent",
                "pose",
                "joint",
                "body",
                "classes",
                "shapes",
                "inertia",
                "attributes",
                "stamps",
            ):
                assert getattr(ours, field) == getattr(theirs, field)
            assert [arrays.is_allowed(name, b) for b in scene.frame_names] == [
                scene.is_allowed(name, b) for b in scene.frame_names
            ]
        assert "nobody" not in arrays
        with pytest.raises(UnknownNameError):
            arrays.pose("nobody")
        check_poses(arrays, scene)
        assert np.isfinite(arrays.poses).all()


class TestArraysMachine(ArraysMachine.TestCase):
    """Random sequences of edits keep both variants equal."""

    settings = settings(max_examples=scaled_examples(0.8), stateful_step_count=30)
