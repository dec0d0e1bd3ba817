"""Task facts: part of a scene in every respect, and rejected where they are none."""

from __future__ import annotations

import pickle

import pytest

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.formats import scene_from_dict, scene_to_dict
from tmkit.graph import change_task_facts, diff, task_facts


def test_versions_keep_their_own_facts() -> None:
    """Each version has its facts; without any it equals the one that never had some."""
    plain = tk.SceneGraph().add_frame("dish", "world")
    dirty = change_task_facts(plain, ["(dirty dish)", ("lit", ())])
    clean = change_task_facts(dirty, remove=["(dirty dish)", "(broken dish)"])
    assert dict(task_facts(dirty)) == {("dirty", ("dish",)): True, ("lit", ()): True}
    assert dict(task_facts(clean)) == {("lit", ()): True}
    assert not task_facts(plain)
    assert change_task_facts(clean, remove=["(lit)"]) == plain
    assert change_task_facts(dirty, ["(lit)"]) is dirty
    assert len({plain.digest(), dirty.digest(), clean.digest()}) == 3
    assert diff(dirty, clean).groups
    assert not diff(dirty, clean).frames


def test_order_of_adding_does_not_count() -> None:
    """The same facts are the same scene."""
    plain = tk.SceneGraph()
    one = change_task_facts(plain, ["(b x)", "(a y)"])
    other = change_task_facts(change_task_facts(plain, ["(a y)"]), ["(b x)"])
    assert one == other
    assert one.digest() == other.digest()
    assert scene_to_dict(one) == scene_to_dict(other)


def test_files_and_pickles_keep_them() -> None:
    """Documents and pickles keep facts."""
    scene = change_task_facts(tk.SceneGraph().add_frame("dish", "world"), ["(dirty dish)"])
    assert pickle.loads(pickle.dumps(scene)) == scene
    assert task_facts(scene_from_dict(scene_to_dict(scene), source="")) == task_facts(scene)


def test_arrays_change_in_place() -> None:
    """Arrays have facts, too, and freeze with them."""
    arrays = tk.SceneArrays(change_task_facts(tk.SceneGraph(), ["(dirty dish)"]))
    assert change_task_facts(arrays, ["(lit)"], ["(dirty dish)"]) is arrays
    assert set(task_facts(arrays)) == {("lit", ())}
    assert arrays.freeze() == change_task_facts(tk.SceneGraph(), ["(lit)"])


@pytest.mark.parametrize(
    "fact", ["dirty", "()", "(Dirty dish)", "(dirty (dish))", ("dirty", ("a dish)",)), ""]
)
def test_malformed_facts_are_rejected(fact: str) -> None:
    """Neither formulas nor names that PDDL lacks are facts."""
    with pytest.raises(
        SceneError, match=r"must be a predicate and objects, in lower case as '\(lit lamp\)'"
    ):
        change_task_facts(tk.SceneGraph(), [fact])
