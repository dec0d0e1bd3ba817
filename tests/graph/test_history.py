"""Histories against plain lists of scenes, long ones, and what they say."""

from __future__ import annotations

import copy
import gc
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.scene_edits import edits
from support.scene_model import RejectedError, SceneModel

from tmkit.errors import SceneError, TmkitError
from tmkit.graph import Revolute, SceneEdit, SceneGraph, SceneHistory
from tmkit.graph.history import HistoryEntry
from tmkit.spatial import Pose


@dataclass(frozen=True)
class ListHistory:
    """The plain model: all scenes of a line in a tuple, and which of them is the present one."""

    scenes: tuple[SceneGraph, ...]
    names: tuple[str, ...]
    at: int

    def edited(self, name: str, scene: SceneGraph) -> ListHistory:
        """Cut off what was undone, and append."""
        if scene is self.scenes[self.at]:
            return self
        line, names = self.scenes[: self.at + 1], self.names[: self.at + 1]
        return ListHistory((*line, scene), (*names, name), self.at + 1)


def check(log: SceneHistory, model: ListHistory) -> None:
    """Compare all that a history says with the lists; versions must be the very same objects."""
    assert log.scene is model.scenes[model.at]
    assert log.number == model.at
    both = (*log.entries, *log.undone)
    assert all(a.scene is b for a, b in zip(both, model.scenes, strict=True))
    assert [entry.edit for entry in both] == list(model.names)
    assert [entry.number for entry in both] == list(range(len(model.scenes)))
    assert [entry.parent for entry in both] == [None, *range(len(model.scenes) - 1)]
    for number, scene in enumerate(model.scenes):
        assert log.back_to(number).scene is scene
    assert (
        repr(log) == f"SceneHistory(version {model.at} of {len(model.scenes) - 1}, {log.scene!r})"
    )


@given(st.data())
@settings(max_examples=scaled_examples(0.5))
def test_histories_are_lists_that_can_branch(data: st.DataObject) -> None:
    """Edits, undo, redo and branches equal those of lists; no history changes."""
    scene = SceneGraph()
    made = [(SceneHistory(scene), ListHistory((scene,), ("start",), 0))]
    plain = {id(scene): SceneModel().add_root("world")}
    for _ in range(data.draw(st.integers(1, 12))):
        log, model = data.draw(st.sampled_from(made))
        match data.draw(st.sampled_from(["edit", "edit", "edit", "undo", "redo", "branch"])):
            case "undo":
                if model.at == 0:
                    with pytest.raises(SceneError, match="nothing to undo"):
                        log.undo()
                    continue
                made.append((log.undo(), ListHistory(model.scenes, model.names, model.at - 1)))
            case "redo":
                if model.at == len(model.scenes) - 1:
                    with pytest.raises(SceneError, match="nothing to redo"):
                        log.redo()
                    continue
                made.append((log.redo(), ListHistory(model.scenes, model.names, model.at + 1)))
            case "branch":
                shorter = ListHistory(
                    model.scenes[: model.at + 1], model.names[: model.at + 1], model.at
                )
                made.append((log.branch(), shorter))
            case _:
                edit = data.draw(edits(plain[id(log.scene)]))
                try:
                    expected = edit.apply_to_model(plain[id(log.scene)])
                except RejectedError:
                    with pytest.raises(TmkitError):
                        edit.apply_to(log)  # type: ignore[arg-type]  # it has the edits of a scene
                    continue
                after = edit.apply_to(log)  # type: ignore[arg-type]
                assert isinstance(after, SceneHistory)
                assert after.scene == edit.apply_to(log.scene)
                assert (after is log) == (after.scene is log.scene), (
                    "what changes nothing is not recorded"
                )
                plain.setdefault(id(after.scene), expected)
                made.append((after, model.edited(edit.method, after.scene)))
    for log, model in made:
        check(log, model)


def cup_scene() -> SceneGraph:
    """Return a cup on a table beside a hand that turns."""
    scene = (
        SceneGraph().add_frame("table", "world").add_frame("cup", "table", pose=Pose([0.1, 0, 0]))
    )
    return scene.add_frame("hand", "world", joint=Revolute([0, 0, 1], name="wrist"))


def test_what_a_history_says() -> None:
    """The text has edits with arguments, a mark at the present one, and undone edits."""
    log = SceneHistory(cup_scene()).reparent("cup", "hand", q=np.array([0.25]))
    log = log.set_classes("cup", ["movable"]).rename_frame("cup", "mug").undo()
    assert (
        log.text() == "  0 start\n"
        "  1 reparent('cup', 'hand', q=[0.25])\n"
        "> 2 set_classes('cup', ['movable'])\n"
        "  3 rename_frame('cup', 'mug')  (undone)"
    )
    assert (
        log.text(count=1)
        == "  ... 2 earlier\n> 2 set_classes('cup', ['movable'])\n  3 rename_frame('cup', 'mug') "
        " (undone)"
    )
    assert log.undo().undo().text(count=1).endswith("(undone)\n  ... 2 more undone")
    assert (log.entries[1].arguments, log.entries[1].keywords) == (
        ("cup", "hand"),
        (("q", (0.25,)),),
    )
    assert repr(log.entries[1]) == "<1: reparent('cup', 'hand', q=[0.25])>"
    long = SceneHistory(cup_scene()).rename_frame("cup", "x" * 1000)
    assert len(long.entries[1].text) == 100
    many = SceneHistory(cup_scene()).set_classes("cup", [str(number) for number in range(100)])
    assert many.entries[1].text.endswith("'7', ...])")


def test_histories_are_no_part_of_equality_of_scenes() -> None:
    """Scenes are equal however they were made; histories are equal when they tell the same."""
    scene = cup_scene()
    there_and_back = SceneHistory(scene).rename_frame("cup", "mug").rename_frame("mug", "cup")
    assert there_and_back.scene == scene
    assert there_and_back != SceneHistory(scene)
    again = SceneHistory(cup_scene()).rename_frame("cup", "mug").rename_frame("mug", "cup")
    assert again == there_and_back
    assert hash(again) == hash(there_and_back)
    assert again.undo() != there_and_back
    assert again.undo() == there_and_back.undo()
    assert again.undo().branch() != again.undo()
    assert again != "a history"
    for twin in (
        copy.copy(again),
        copy.deepcopy(again),
        pickle.loads(pickle.dumps(again.undo())).redo(),
    ):
        assert twin == again


def test_arguments_cannot_be_changed_afterwards() -> None:
    """What the caller does to a list or array later is not the history's business."""
    classes = ["movable"]
    log = SceneHistory(cup_scene()).set_classes("cup", classes)
    classes.append("red")
    assert log.entries[1].arguments == ("cup", ("movable",))


def test_versions_made_elsewhere_are_recorded_under_a_name() -> None:
    """Many edits at once are one entry; the same version again is none."""
    log = SceneHistory(cup_scene())
    with log.scene.edit() as edit:
        edit.add_frame("plate", "table")
        edit.remove_frame("cup")
    log = log.record("lay the table", edit.finish())
    assert log.text().endswith("> 1 lay the table()")
    assert log.record("nothing", log.scene) is log
    with pytest.raises(SceneError, match="no version 7; versions are 0 to 1"):
        log.back_to(7)
    with pytest.raises(SceneError, match="no version -1"):
        log.back_to(-1)


def test_every_edit_of_the_core_is_recorded() -> None:
    """SceneHistory has every edit of SceneGraph."""
    core = {name for name in dir(SceneEdit) if not name.startswith("_")} - {"finish", "scene"}
    assert core <= set(dir(SceneHistory))


def test_a_quarter_of_a_million_versions() -> None:
    """A long history is made, compared, pickled and freed without recursion."""
    count = 250_000
    poses = [Pose([0.1, 0, 0]), Pose([0.2, 0, 0])]
    scenes = [cup_scene().set_pose("cup", pose) for pose in poses]
    gc.collect()
    # kept by tests that ran before
    others = sum(isinstance(item, HistoryEntry) for item in gc.get_objects())
    log = twin = SceneHistory(scenes[1])
    for number in range(count):
        log = log.record("move", scenes[number % 2])
    assert log.number == count
    for number in range(1000):
        twin = twin.record("move", scenes[number % 2])
    short = log.back_to(1000)
    assert short.branch() == twin
    assert pickle.loads(pickle.dumps(twin)) == twin
    assert short.back_to(count) == log
    assert len(log.text().splitlines()) == 21
    del log, short
    gc.collect()
    assert sum(isinstance(item, HistoryEntry) for item in gc.get_objects()) - others <= 1001
