"""Three-way merges: changes of one side, equal changes of both sides, and conflicts."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.scene_edits import edits
from support.scene_model import RejectedError, SceneModel

from tmkit.errors import MergeConflictError, StoreError, TmkitError, UnknownNameError
from tmkit.graph import SceneGraph, diff
from tmkit.spatial import Pose
from tmkit.store import Store, merge_scenes
from tmkit.store.encoding import Conflict

BASE = (
    SceneGraph()
    .add_frame("table", "world", pose=Pose([1, 0, 0]))
    .add_frame("cup", "table")
    .add_frame("pan", "table")
    .set_group("things", frames=["cup"])
)


def test_changes_of_one_side_are_merged() -> None:
    """New frames get new ids, ours first; pairs, groups and attributes are merged."""
    ours = (
        BASE.add_frame("fork", "table")
        .set_pose("cup", Pose([0, 1, 0]))
        .allow_collision("cup", "pan", reason="ours")
    )
    theirs = (
        BASE.add_frame("knife", "table")
        .reparent("pan", "world")
        .set_group("things", frames=["cup", "pan"])
    )
    merged = merge_scenes(BASE, ours, theirs)
    assert merged.frame_names == ("world", "table", "cup", "pan", "fork", "knife")
    assert merged.local_pose("cup") == Pose([0, 1, 0])
    assert merged.parent("pan") == "world"
    assert merged.allowed_pairs == ours.allowed_pairs
    assert merged.frames_of_group("things") == ("cup", "pan")


def test_equal_changes_are_merged_once() -> None:
    """Added, removed and moved frames, groups and pairs."""

    def edited(scene: SceneGraph) -> SceneGraph:
        scene = (
            scene.add_frame("fork", "table").set_pose("cup", Pose([0, 1, 0])).remove_frame("pan")
        )
        return scene.set_group("things", frames=["fork"]).allow_collision(
            "cup", "fork", reason="both"
        )

    theirs = edited(BASE).add_frame("knife", "fork")
    assert merge_scenes(BASE, edited(BASE), theirs) == theirs
    assert merge_scenes(BASE, theirs, edited(BASE)) == theirs


def test_conflicts_name_the_frame_and_both_edits() -> None:
    """One error has all conflicts, also after pickling."""
    ours = (
        BASE.set_pose("cup", Pose([0, 1, 0]))
        .remove_frame("pan")
        .add_frame("fork", "table")
        .remove_group("things")
    )
    theirs = (
        BASE.set_pose("cup", Pose([0, 2, 0]))
        .set_pose("pan", Pose([1, 0, 0]))
        .add_frame("fork", "cup")
    )
    theirs = theirs.set_group("things", frames=["pan"])
    with pytest.raises(
        MergeConflictError, match="the merge has 4 conflicts:\nframe 'cup': ours 'cup': pose; "
    ) as caught:
        merge_scenes(BASE, ours, theirs)
    conflicts = pickle.loads(pickle.dumps(caught.value)).conflicts
    assert conflicts[0] == Conflict("frame", "cup", "'cup': pose", "'cup': pose")
    assert conflicts[1] == Conflict("frame", "pan", "removed 'pan'", "'pan': pose")
    assert conflicts[2] == Conflict("new frame", "fork", "added 'fork'", "added 'fork'")
    assert conflicts[3] == Conflict("group", "things", "None", "(['pan'], [], [], None)")
    with pytest.raises(
        MergeConflictError, match="pair 'cup and pan': ours reason 'a'; theirs reason 'b'"
    ):
        merge_scenes(
            BASE,
            BASE.allow_collision("pan", "cup", reason="a"),
            BASE.allow_collision("cup", "pan", reason="b"),
        )


def test_edits_that_do_not_fit_are_conflicts() -> None:
    """A removed parent, a used name, and a cycle that two moves would form together."""
    removed = BASE.remove_frame("table", subtree=True)
    with pytest.raises(MergeConflictError, match=r"rule .*added 'fork'.*unknown frame 'table'"):
        merge_scenes(BASE, removed, BASE.add_frame("fork", "table"))
    with pytest.raises(MergeConflictError, match="rule 'fork'"):
        merge_scenes(BASE, BASE.rename_frame("cup", "fork"), BASE.add_frame("fork", "table"))
    with pytest.raises(MergeConflictError, match="1 conflict:\nrule"):
        merge_scenes(BASE, BASE.reparent("cup", "pan"), BASE.reparent("pan", "cup"))


@given(st.data())
@settings(max_examples=scaled_examples(0.5))
def test_laws_of_merges(data: st.DataObject) -> None:
    """A side without changes gives the other side; changes of one side are kept."""
    model = SceneModel().add_root("world")
    scene = SceneGraph()

    def edited(scene: SceneGraph, model: SceneModel, count: int) -> tuple[SceneGraph, SceneModel]:
        for _ in range(count):
            edit = data.draw(edits(model))
            try:
                scene, model = edit.apply_to(scene), edit.apply_to_model(model)
            except (RejectedError, TmkitError):
                continue
        return scene, model

    base, base_model = edited(scene, model, 8)
    ours, _ = edited(base, base_model, data.draw(st.integers(0, 3)))
    theirs, _ = edited(base, base_model, data.draw(st.integers(0, 3)))
    assert merge_scenes(base, ours, base) == ours
    assert merge_scenes(base, base, theirs) == theirs
    assert merge_scenes(base, ours, ours) == ours
    try:
        merged = merge_scenes(base, ours, theirs)
    except MergeConflictError:
        return
    mine, other = diff(base, ours), diff(base, theirs)
    touched = {f.before.name for f in mine.frames if f.before}
    for frame in other.frames:
        if frame.after and (frame.before is None or frame.before.name not in touched):
            assert merged.specification(frame.after.name).pose == frame.after.pose
    if not any(
        f.before and f.after and f.before.name != f.after.name
        for f in (*mine.frames, *other.frames)
    ):
        assert {*merged.frame_names} == {*base.frame_names, *mine.added, *other.added} - {
            *mine.removed,
            *other.removed,
        }


def test_merges_of_branches(tmp_path: Path) -> None:
    """A branch behind is set to the version, one ahead stays, others get a merge version."""
    store = Store(tmp_path)
    base = store.put(BASE)
    store.set_branch("side", base)
    ours = store.put(BASE.set_pose("cup", Pose([0, 1, 0])))
    assert store.merge("main", into="side") == ours  # forward
    assert store.merge("side") == ours  # nothing to do
    theirs = store.put(
        BASE.set_pose("cup", Pose([0, 1, 0])).set_pose("pan", Pose([0, 0, 1])), "side"
    )
    mine = store.put(BASE.set_pose("cup", Pose([0, 1, 0])).add_frame("fork", "cup"))
    merged = store.merge("side", message="both")
    assert next(store.log()).parents == (mine, theirs)
    assert Store(tmp_path).get(merged) == store.get(mine).set_pose("pan", Pose([0, 0, 1]))
    assert store.merge("side") == merged
    assert store.merge("main", into="side") == merged
    store.put(store.get("main").set_pose("pan", Pose([0, 0, 2])), "side")
    tip = store.put(store.get("main").set_pose("pan", Pose([0, 0, 3])))
    with pytest.raises(
        MergeConflictError, match="frame 'pan': ours 'pan': pose; theirs 'pan': pose"
    ):
        store.merge("side")
    assert store.branches["main"] == tip
    resolved = store.put(
        store.get("main").set_pose("pan", Pose([0, 0, 4])), merges=["side"], message="resolved"
    )
    assert store.merge("side") == resolved
    with pytest.raises(UnknownNameError, match="unknown branch 'nowhere'"):
        store.merge("side", into="nowhere")
    store.put(BASE.add_frame("lid", "pan"), "apart")
    with pytest.raises(StoreError, match="have no version in common"):
        store.merge("apart")


def test_the_latest_common_ancestor_is_the_base(tmp_path: Path) -> None:
    """After a merge, edits that were merged earlier are no conflicts."""
    store = Store(tmp_path)
    store.set_branch("side", store.put(BASE))
    for k in range(1, 6):
        store.put(store.get("main").set_pose("cup", Pose([k, 0, 0])))
        store.put(store.get("side").set_pose("pan", Pose([0, k, 0])), "side")
        store.merge("side")
        store.merge("main", into="side")
    assert store.get("main") == store.get("side")
    assert store.get("main").local_pose("cup") == Pose([5, 0, 0])
    assert store.get("main").local_pose("pan") == Pose([0, 5, 0])
