"""Fingerprints of versions: a function of the content, updated along edits."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.scene_edits import edits
from support.scene_model import RejectedError, SceneModel

from tmkit._core import FrameDifference, SceneDifference
from tmkit.errors import SceneError, TmkitError
from tmkit.graph import SceneGraph, diff
from tmkit.spatial import GaussianPose, Pose


@given(st.data())
@settings(max_examples=scaled_examples(1.0))
def test_fingerprints_are_of_content(data: st.DataObject) -> None:
    """Fingerprints updated along edits equal those of copies made from scratch, in any order."""
    versions = [(SceneGraph(), SceneModel().add_root("world"))]
    for _ in range(data.draw(st.integers(1, 14))):
        scene, model = data.draw(st.sampled_from(versions))
        edit = data.draw(edits(model))
        try:
            versions.append((edit.apply_to(scene), edit.apply_to_model(model)))
        except (RejectedError, TmkitError):
            continue
        if data.draw(st.booleans()):
            assert data.draw(st.sampled_from(versions))[0].fingerprint
    for scene, _ in versions:
        copy = pickle.loads(pickle.dumps(scene))
        assert scene.fingerprint == copy.fingerprint
        assert hash(scene) == hash(copy)
    for a, _ in versions:
        for b, _ in versions:
            assert (a.fingerprint == b.fingerprint) == (a == b)


def test_errors_are_numbered_by_their_first_use() -> None:
    """Shared noise sources are content, their labels are not; frames with errors may change."""
    small = 1e-4 * np.eye(6)
    scene = (
        SceneGraph()
        .add_frame("a", "world", pose=GaussianPose(covariance=small))
        .add_frame("b", "world", pose=GaussianPose(covariance=small))
    )
    shared = scene.add_frame("c", "a", pose=GaussianPose(covariance=small)).reparent("b", "c")
    versions = [
        scene,
        shared,
        shared.set_pose("a", Pose([1, 0, 0])),
        shared.remove_frame("c", subtree=True),
        scene,
    ]
    versions.append(scene.add_frame("0", "world", pose=GaussianPose(covariance=2 * small)))
    for version in [*versions, *versions[::-1]]:
        assert version.fingerprint == pickle.loads(pickle.dumps(version)).fingerprint
    assert len({version.fingerprint for version in versions}) == len(versions) - 1


def test_order_is_content() -> None:
    """The order of frames is content; a frame in between does not change the others."""
    ab = SceneGraph().add_frame("a", "world").add_frame("b", "world")
    ba = SceneGraph().add_frame("b", "world").add_frame("a", "world")
    assert ab.fingerprint != ba.fingerprint
    assert ab.remove_frame("a").add_frame("a", "world").fingerprint == ba.fingerprint
    without = ab.remove_frame("a")
    # back between the others
    assert without.apply(diff(ab, without).reversed()).fingerprint == ab.fingerprint


def test_equality_of_summed_versions() -> None:
    """Versions with different fingerprints are unequal; those with equal ones are compared."""
    a = SceneGraph().add_frame("a", "world")
    b = pickle.loads(pickle.dumps(a))
    assert hash(a) == hash(b)
    assert a == b
    assert hash(a) != hash(b.set_pose("a", Pose([1, 0, 0])))
    assert a != b.set_pose("a", Pose([1, 0, 0]))


def test_differences_are_made_of_frames() -> None:
    """A difference that is put together changes what the one of two scenes does."""
    before = (
        SceneGraph().add_frame("a", "world").set_group("g", frames=["a"]).add_frame("b", "world")
    )
    after = (
        before.set_pose("a", Pose([1, 0, 0]))
        .allow_collision("a", "b", reason="touch")
        .set_group("g", frames=[])
    )
    found = diff(before, after)
    made = SceneDifference(
        [FrameDifference(f.frame_id, f.before, f.after) for f in found.frames],
        pairs=found.pairs,
        groups=[("g", ([], [], [], None))],
        bodies_before=found.bodies_before,
        bodies_after=found.bodies_after,
    )
    assert before.apply(made) == after
    assert repr(made) == repr(found)
    assert before.apply(SceneDifference([], groups=[("g", None)])).group_names == ()
    gone = FrameDifference(before.frame_id("b"), before.specification("b"), None)
    assert "b" not in before.apply(SceneDifference([gone]))


@pytest.mark.parametrize("number", [0, 2**31 + 1])
def test_nonsense_in_differences(number: int) -> None:
    """A frame in neither version, or with an id that no frame has, is rejected."""
    frame = SceneGraph().specification("world")
    with pytest.raises(SceneError, match="needs an id from 1 to 2\\^31"):
        FrameDifference(number, frame, None)
    with pytest.raises(SceneError, match="before, after or both"):
        FrameDifference(1, None, None)
