"""Attributes of frames: immutable maps whose order has no effect on files."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pyrsistent import PMap, pmap, pvector, thaw
from support.processes import run_process

from tmkit.errors import SceneError
from tmkit.graph import FrameSpecification, SceneGraph

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=5))
def test_attributes_come_out_as_they_went_in(values: dict[str, Any]) -> None:
    """Any JSON value is returned unchanged by a scene and a specification, and can be set again."""
    scene = SceneGraph().set_attributes("world", values)
    found = scene.attributes("world")
    assert isinstance(found, PMap)
    assert found == values
    assert json.dumps(thaw(found), sort_keys=True) == json.dumps(values, sort_keys=True)
    assert hash(found) == hash(scene.specification("world").attributes)
    assert SceneGraph().set_attributes("world", found) == scene
    assert FrameSpecification("world", None).replace(attributes=found).attributes == values


def test_maps_are_shared_by_what_has_the_same_attributes() -> None:
    """Versions, frames and scenes with equal attributes share one map."""
    scene = (
        SceneGraph()
        .add_frame("cup", "world")
        .set_attributes("cup", {"sizes": [1, 2], "owner": {"name": "ann"}})
    )
    before = scene.attributes("cup")
    moved = scene.rename_frame("cup", "mug")
    assert moved.attributes("mug") is before
    assert SceneGraph().set_attributes("world", before).attributes("world") is before
    after = moved.set_attributes("mug", before.set("sizes", before["sizes"].append(3))).attributes(
        "mug"
    )
    assert after == {"sizes": [1, 2, 3], "owner": {"name": "ann"}}
    assert before["sizes"] == [1, 2]
    assert after["owner"] == pmap({"name": "ann"})


def test_nothing_in_a_map_can_be_changed() -> None:
    """Neither the map nor a list or map in it takes another value."""
    found = SceneGraph().set_attributes("world", {"sizes": [1], "owner": {}}).attributes("world")
    for part in (found, found["sizes"], found["owner"]):
        with pytest.raises(TypeError, match="does not support item assignment"):
            part[0] = 2


def test_immutable_values_go_in_and_foreign_ones_do_not() -> None:
    """Vectors and maps become lists and dicts; an object of another type is rejected by its key."""
    plain = SceneGraph().set_attribute("world", "x", [1, {"y": [2]}])
    assert (
        SceneGraph().set_attribute("world", "x", pvector([1, pmap({"y": pvector([2])})])) == plain
    )
    for bad in (pvector([object()]), pmap({"y": {1, 2}}), pvector([float("inf")])):
        with pytest.raises(SceneError, match="attribute 'x' must be text, a finite number"):
            plain.set_attribute("world", "x", bad)


WRITE = """
import sys, tmkit as tk
from tmkit.formats import scene_to_dict
from tmkit.formats.conversion import convert_scene
from tmkit.world.service.server import LOOKS
attributes = {name: {name: 1, "b": 2, "a": [3]} for name in "qwertyuiop"}
scene = tk.SceneGraph().set_attributes("world", attributes)
print(*scene.attributes("world"))
print(scene_to_dict(scene), LOOKS["attributes"](scene, "world"), file=sys.stderr)
again = tk.SceneGraph().set_attributes("world", scene.attributes("world"))
convert_scene(again, sys.argv[1])
"""


def test_the_order_of_keys_reaches_no_file(tmp_path: Path) -> None:
    """Two processes with different hash seeds write equal bytes."""
    orders, texts, files = set(), set(), set()
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.json"
        command = [sys.executable, "-c", WRITE, str(path)]
        run = run_process(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        orders.add(run.stdout)
        texts.add(run.stderr)
        files.add(path.read_bytes())
    assert len(orders) == 2
    assert len(files) == len(texts) == 1
