"""Stores of versions against a dict of scenes, and their errors."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.scene_edits import edits
from support.scene_model import RejectedError, SceneModel

import tmkit as tk
from tmkit.errors import ArgumentError, StoreError, TmkitError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    HeightField,
    Mesh,
    PointCloud,
    Revolute,
    SceneGraph,
    Stamped,
    diff,
)
from tmkit.spatial import GaussianPose, Pose
from tmkit.store import Store
from tmkit.store.versions import StoreLimits


@given(st.data())
@settings(max_examples=scaled_examples(0.6))
def test_a_store_is_a_dict_of_scenes(data: st.DataObject) -> None:
    """Random versions on random branches, read by this store and by one with an empty cache."""
    with TemporaryDirectory() as folder:
        store = Store(
            Path(folder) / "store", limits=StoreLimits(cached_versions=data.draw(st.integers(1, 4)))
        )
        start = (SceneGraph(), SceneModel().add_root("world"))
        stored, tips, made = {}, {}, [start]
        for _ in range(data.draw(st.integers(1, 16))):
            scene, model = data.draw(st.sampled_from(made))
            edit = data.draw(edits(model))
            try:
                made.append((edit.apply_to(scene), edit.apply_to_model(model)))
            except (RejectedError, TmkitError):
                continue
            branch = data.draw(st.sampled_from(["main", "other", "third"]))
            known = store.put(made[-1][0], branch, message=str(len(stored)))
            stored[known], tips[branch] = made[-1][0], known
            if data.draw(st.booleans()):  # go on from what was read
                made.append((Store(store.path).get(known), made[-1][1]))
            if data.draw(st.booleans()):
                store.close()
                store = Store(store.path)
        fresh = Store(store.path)
        assert dict(fresh.branches) == tips
        for known, scene in stored.items():
            assert fresh.get(known) == scene == store.get(known)
            assert fresh.get(known).fingerprint == scene.fingerprint
            assert pickle.dumps(Store(store.path).get(known)) == pickle.dumps(fresh.get(known))
        for tip in tips.values():
            history = [*fresh.log(tip)]
            assert history[0].id == tip
            assert all({*version.parents} <= {later.id for later in history} for version in history)
            assert all(stored[version.id].fingerprint == version.fingerprint for version in history)
        assert fresh.find_damage() == ()


def everything() -> SceneGraph:
    """A scene of all that a frame can carry."""
    small = 1e-4 * np.eye(6)
    mesh = Mesh(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 2, 1], [0, 1, 3], [1, 2, 3]],
        source="corner.obj",
    )
    cloud = PointCloud([[0, 0, 0], [1, 1, 1]], radius=0.01)
    field = HeightField([[0, 0.1], [0.2, 0.3], [0, 0]], size=[1, 2])
    scene = tk.load_scene("panda_table", "blocks3")
    scene = scene.add_frame(
        "x",
        "world",
        pose=GaussianPose(Pose([1, 2, 3]), small),
        shapes=[mesh, AttachedShape(cloud).replace(stamp=3.0)],
    )
    scene = scene.add_frame(
        "y", "x", joint=Revolute([0, 0, 1], lower=-1, upper=2, velocity=3), shapes=[mesh, field]
    )
    scene = scene.set_attributes(
        "x", {"colour": "red", "big": 2**80, "tags": Stamped([1, {"a": None}], 2.5)}
    )
    scene = scene.add_frame("z", "world", pose=Pose([0, 0, 9])).set_twist(
        "z", [1, 2, 3, 0, 0, 1], relative_to_body="world"
    )
    scene = scene.add_stamped_pose("z", Pose([0, 0, 9]), stamp=1.0).add_stamped_pose(
        "z", Pose([0, 0, 8]), stamp=2.0
    )
    scene = scene.set_group("f", parents=["y"], attributes={"b": Stamped(1, 2.0), "a": "text"})
    return (
        scene.set_group("g", frames=["x", "z"])
        .set_group("h", groups=["g"])
        .add_body("bare")
        .reparent("z", "x")
    )


def test_all_properties_of_a_scene_are_stored(tmp_path: Path) -> None:
    """Joints, shapes, masses, attributes, twists, stamps, noise, groups, pairs and bodies."""
    scene = everything()
    with Store(tmp_path / "s") as store:
        known = store.put(scene)
        changed = (
            scene.remove_body("bare").remove_group("h").set_attributes("x", {}).remove_frame("y")
        )
        later = store.put(changed.allow_collision("x", "z", reason="why"))
    fresh = Store(tmp_path / "s")
    assert fresh.get(known) == scene
    assert fresh.get(later) == changed.allow_collision("x", "z", reason="why")
    assert fresh.get(known).digest() == scene.digest()
    assert {shape.shape.source for shape in fresh.get(known).shapes("x")} == {"corner.obj", ""}
    assert repr(fresh.diff(known, later)) == repr(
        diff(scene, changed.allow_collision("x", "z", reason="why"))
    )
    assert len(os.listdir(tmp_path / "s" / "blobs")) >= 3


def test_versions_share_noise_sources(tmp_path: Path) -> None:
    """A source is the same in all versions, so correlations and small differences are kept."""
    scene = (
        SceneGraph()
        .add_frame("a", "world", pose=GaussianPose(covariance=1e-4 * np.eye(6)))
        .add_frame("cup", "a")
    )
    held = scene.add_frame(
        "hand", "world", pose=GaussianPose(covariance=1e-4 * np.eye(6))
    ).reparent("cup", "hand")
    with Store(tmp_path) as store:
        store.put(scene)
        store.put(held)
    fresh = Store(tmp_path)
    after, before = [fresh.get(version.id) for version in fresh.log()]
    assert (before, after) == (scene, held)
    assert [f.after.name for f in diff(before, after).frames if f.after] == ["cup", "hand"]
    assert np.array_equal(
        after.gaussian_pose("cup", relative_to="a").covariance,
        held.gaussian_pose("cup", relative_to="a").covariance,
    )


def test_ids_depend_on_content_and_history(tmp_path: Path) -> None:
    """The same edits have the same ids in every store; an equal scene adds no version."""
    a, b = Store(tmp_path / "a"), Store(tmp_path / "b")
    scene = everything()
    for store in (a, b):
        store.put(scene)
        store.put(scene.set_pose("x", Pose([9, 9, 9])), message="moved")
    assert dict(a.branches) == dict(b.branches)
    assert a.put(scene.set_pose("x", Pose([9, 9, 9])), message="again") == a.branches["main"]
    assert len([*a.log()]) == 2
    assert [version.message for version in a.log()] == ["moved", ""]


def test_versions_share_disk_space(tmp_path: Path) -> None:
    """Fifty versions take less than twice the space of one, another less than 2 KiB."""
    with SceneGraph().edit() as edit:
        for k in range(1000):
            edit.add_frame(f"f{k}", "world", pose=Pose([k, 0, 0]))
    scene = edit.finish()

    def size(path: Path) -> int:
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())

    store = Store(tmp_path)
    store.put(scene)
    store.gc()
    store.close()
    one = size(tmp_path)
    store = Store(tmp_path)
    with store.batch():
        for k in range(49):
            scene = scene.set_pose(f"f{k}", Pose([k, 1, 0]))
            store.put(scene)
    store.gc()
    store.close()
    assert (size(tmp_path) - one) / 49 < 2048
    assert size(tmp_path) < 2 * one
    small = Store(tmp_path / "small")
    scene = SceneGraph().add_frame("a", "world")
    for k in range(200):
        small.put(scene.set_pose("a", Pose([k, 0, 0])))
    assert Store(tmp_path / "small").get("main") == scene.set_pose("a", Pose([199, 0, 0]))


def test_branches(tmp_path: Path) -> None:
    """Branches are created, moved and deleted; versions are found by name, id and prefix."""
    store, scene = Store(tmp_path), SceneGraph()
    first = store.put(scene)
    second = store.put(scene.add_frame("a", "world"), "try/1")
    assert (
        store.get(second)
        == scene.add_frame("a", "world")
        == store.get("try/1")
        == store.get(second[:8])
    )
    assert [v.parents for v in store.log("try/1")] == [()]
    store.set_branch("main", second)
    assert dict(store.branches) == {"main": second, "try/1": second}
    store.delete_branch("main")
    with pytest.raises(UnknownNameError, match="unknown branch 'man'"):
        store.delete_branch("man")
    with pytest.raises(UnknownNameError, match=r"unknown version 'try/2'; did you mean 'try/1'"):
        store.get("try/2")
    assert store.get(first) == scene
    with pytest.raises(ArgumentError, match="expected a SceneGraph, not str"):
        store.put("scene")
    for name in ("", "a b", "../x", "-x", "a" * 201):
        with pytest.raises(StoreError, match="is not a branch name"):
            store.put(scene, name)
    with pytest.raises(UnknownNameError, match="unknown version 'abcdef'"):
        store.put(scene, merges=["abcdef"])


def test_garbage_is_collected(tmp_path: Path) -> None:
    """Unreachable versions, their blobs and half-written files are removed, and no others."""
    store = Store(tmp_path)
    shape = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3]]
    kept = store.put(SceneGraph().add_frame("a", "world", shapes=[Mesh(*shape)]))
    lost = store.put(
        SceneGraph().add_frame("a", "world", shapes=[Mesh(shape[0], shape[1][:1])]), "other"
    )
    (tmp_path / "blobs" / "half-0123").write_bytes(b"half")
    store.delete_branch("other")
    found = store.gc()
    assert (found.versions, found.blobs) == (1, 2)
    with pytest.raises(UnknownNameError, match="unknown version"):
        Store(tmp_path).get(lost)
    assert Store(tmp_path).get(kept) == store.get("main")
    assert Store(tmp_path).find_damage() == ()
    assert store.gc() == (0, 0, 0)


def test_batches_are_all_or_nothing(tmp_path: Path) -> None:
    """An exception in a batch undoes all its changes, on disk and in the store."""
    store, scene = Store(tmp_path), SceneGraph()
    first = store.put(scene)
    lost = []

    def failing() -> None:
        with store.batch():
            lost.append(store.put(scene.add_frame("a", "world")))
            store.put(scene.add_frame("b", "world"), "other")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert dict(store.branches) == {"main": first} == dict(Store(tmp_path).branches)
    assert store.put(scene.add_frame("a", "world")) == lost[0]
    assert Store(tmp_path).get(lost[0]) == scene.add_frame("a", "world")


def test_limits(tmp_path: Path) -> None:
    """Scenes, messages and blobs beyond the limits are rejected, and nothing is stored."""
    limits = StoreLimits(blob_bytes=1000, version_bytes=2000, frames=20)
    store, scene = Store(tmp_path, limits=limits), SceneGraph()
    with scene.edit() as edit:
        for k in range(20):
            edit.add_frame(f"f{k}", "world")
    with pytest.raises(StoreError, match="has 21 frames; a store takes at most 20"):
        store.put(edit.finish())
    long = scene.add_frame("a", "world").set_attribute("a", "text", "x" * 3000)
    with pytest.raises(StoreError, match=r"takes \d+ bytes; a store takes at most 2000"):
        store.put(long)
    cloud = PointCloud(np.ones((100, 3)), radius=0.1)
    with pytest.raises(StoreError, match="has 2464 bytes; a blob has at most 1000"):
        store.put(scene.add_frame("a", "world", shapes=[cloud]))
    with pytest.raises(StoreError, match="message has 10001 characters"):
        store.put(scene, message="x" * 10_001)
    assert dict(store.branches) == {}
    assert os.listdir(tmp_path / "blobs") == []


def test_paths_without_a_store_are_rejected(tmp_path: Path) -> None:
    """A folder of other files, a file, a missing and a closed store; nothing is written."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="there is no store in it"):
        Store(tmp_path / "full")
    assert os.listdir(tmp_path / "full") == ["notes.txt"]
    with pytest.raises(StoreError, match="there is no store in it"):
        Store(tmp_path / "full" / "notes.txt")
    with pytest.raises(StoreError, match="there is no store in it"):
        Store(tmp_path / "missing", must_exist=True)
    assert not (tmp_path / "missing").exists()
    store = Store(tmp_path / "closed")
    store.put(SceneGraph())
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed database"):
        store.put(SceneGraph().add_frame("a", "world"))


def test_a_copy_with_other_ids_is_merged(tmp_path: Path) -> None:
    """Differences after a merge without changes are right, for a copy with other frame ids."""
    store = Store(tmp_path)
    scene = SceneGraph().add_frame("a", "world").add_frame("b", "world")
    store.put(scene)
    store.put(scene.add_frame("c", "world"), "side")
    copy = (
        SceneGraph()
        .add_frame("x", "world")
        .add_frame("a", "world")
        .remove_frame("x")
        .add_frame("b", "world")
    )
    assert copy == scene
    store.put(copy, merges=["side"])
    later = copy.add_frame("d", "a").set_pose("b", Pose([1, 0, 0])).remove_frame("a", subtree=True)
    store.put(later)
    back = later.apply(diff(copy, later).reversed())
    store.put(back)
    assert [Store(tmp_path).get(version.id) for version in store.log("main")][:2] == [back, later]
    assert Store(tmp_path).find_damage() == ()


def test_versions_of_a_failed_batch_are_not_in_memory(tmp_path: Path) -> None:
    """After an exception no version of the batch exists, on disk or in the store."""
    with Store(tmp_path / "store") as store:
        tip = store.put(SceneGraph())
        with pytest.raises(KeyError), store.batch():  # noqa: PT012
            version = store.put(SceneGraph().add_root("lost"))
            assert store.get(version) == SceneGraph().add_root("lost")
            raise KeyError
        with pytest.raises(UnknownNameError, match="unknown version"):
            store.get(version)
        assert (store.get("main"), store.branches["main"]) == (SceneGraph(), tip)
        assert store.put(SceneGraph().add_root("lost")) == version
    with Store(tmp_path / "store") as store:
        assert store.get(version) == SceneGraph().add_root("lost")
