"""Covariances of stamped poses in files: round trips of random histories, and invalid ones."""

from __future__ import annotations

import json
import math
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.commands import tmkit
from support.effort import scaled_examples
from support.gaussian_poses import covariances
from support.stamped_model import Array, histories, model_of, times_in

from tmkit.errors import FileFormatError
from tmkit.formats import compile_scene, load_scene, write_json_scene
from tmkit.formats.json.scene import scene_from_dict, scene_to_dict
from tmkit.formats.rsg.writer import rsg_from_scene
from tmkit.graph import Free, SceneGraph, StampedPoses, When, gaussian_pose
from tmkit.spatial import Pose


def by_json(scene: SceneGraph, folder: Path) -> SceneGraph:
    """Return the scene that a JSON file contains."""
    write_json_scene(scene, folder / "scene.json")
    return load_scene(folder / "scene.json")


def by_rsg(scene: SceneGraph, folder: Path) -> SceneGraph:
    """Return the scene that a file in RSG-DSL contains."""
    (folder / "scene.rsg").write_text(rsg_from_scene(scene), encoding="utf-8")
    return load_scene(folder / "scene.rsg")


def by_module(scene: SceneGraph, folder: Path) -> SceneGraph:
    """Return the scene that a generated Python module builds."""
    [module] = compile_scene(scene, folder / "made.py")
    scene: SceneGraph = runpy.run_path(str(module))["scene"]()
    return scene


@pytest.mark.parametrize("carry", [by_json, by_rsg, by_module])
@settings(max_examples=scaled_examples(0.3))
@given(data=st.data(), history=histories(), of_edge=covariances, is_added=st.booleans())
def test_random_histories_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    carry: Callable[[SceneGraph, Path], SceneGraph],
    data: st.DataObject,
    history: StampedPoses,
    of_edge: Array,
    is_added: bool,
) -> None:
    """The scene is equal, and answers at random times as a plain model of the history."""
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    if is_added:
        for stamp, pose, own in zip(
            history.stamps, history.poses, history.covariances, strict=True
        ):
            scene = scene.add_stamped_pose("cup", pose, stamp=stamp, covariance=own)
        of_edge = scene.edge_covariance("cup")
    else:
        scene = scene.set_stamped_poses("cup", history).set_covariance("cup", of_edge)
    again = carry(scene, tmp_path_factory.mktemp("files"))
    assert again == scene
    assert again.digest() == scene.digest()
    stamp = data.draw(times_in(history))
    found = gaussian_pose(again, "cup", stamp=When(stamp, "screw"))
    model_of(history, of_edge).check(found, stamp, "screw")


# ------------------------------------------------------------------------------------------ RSG

RSG = """root room
Group room {{ child cup_pose }}
Transform cup_pose {{
  child cup
  transforms {{
    RigidTransform a {{ stamp TimeStamp ( 1 s ) value Pose ([0, 0, 0 m], [0, 0, 0, 1]) {first} }}
    RigidTransform b {{ stamp TimeStamp ( 3 s ) value Pose ([1, 0, 0 m], [0, 0, 0, 1]) {second} }}
    {now}
  }}
}}
Node cup {{ }}
"""


def rsg_scene(folder: Path, first: str = "", second: str = "", now: str = "") -> SceneGraph:
    """Return the scene of a file with two stamped transforms, and one without a stamp."""
    path = folder / "scene.rsg"
    path.write_text(RSG.format(first=first, second=second, now=now))
    return load_scene(path)


def test_covariances_of_stamped_transforms_in_rsg(tmp_path: Path) -> None:
    """Each is of its transform; the newest is that of the edge, or one without a stamp."""
    spread = [1.0, 1, 1, 2, 2, 2]
    text = f"covariance {spread}"
    scene = rsg_scene(tmp_path, first=text)
    history = scene.stamped_poses("cup_pose")
    assert history is not None
    assert np.array_equal(history.covariances[0], np.diag(spread))
    assert history.covariances[1] is None
    assert np.array_equal(scene.edge_covariance("cup_pose"), np.diag(spread))
    found = gaussian_pose(scene, "cup_pose", stamp=2.0).covariance
    assert np.array_equal(found, np.diag(spread))  # one error at both stamps
    scene = rsg_scene(tmp_path, text, "covariance [4, 4, 4, 4, 4, 4]")
    assert np.array_equal(scene.edge_covariance("cup_pose"), 4 * np.eye(6))
    found = gaussian_pose(scene, "cup_pose", stamp=2.0).covariance
    np.testing.assert_allclose(found, (np.diag(spread) + 4 * np.eye(6)) / 4)
    now = "RigidTransform now { value Pose ([2, 0, 0 m], [0, 0, 0, 1]) covariance [9,9,9,9,9,9] }"
    scene = rsg_scene(tmp_path, text, now=now)
    assert np.array_equal(scene.edge_covariance("cup_pose"), 9 * np.eye(6))
    assert scene.local_pose("cup_pose") == Pose([2, 0, 0])
    assert not rsg_scene(tmp_path).edge_covariance("cup_pose").any()


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ("[1, 1, 1]", r":7:\d+: a covariance has 6 variances or 36 numbers, received 3"),
        ("[1, 1, 1, 1, 1, -1]", r":7:\d+: covariance is not positive semi-definite.*\[-1, 1, 1"),
        (str([0.0, 1.0, *[0.0] * 34]), r":7:\d+: covariance is not symmetric"),
        ("[1, 1, 1, 1, 1, NaN]", r":7:\d+: .*number"),
        ('[1, 1, 1, 1, 1, "x"]', r":7:\d+: .*number"),
    ],
)
def test_invalid_covariances_in_rsg(tmp_path: Path, covariance: str, message: str) -> None:
    """The error has file, line and column; the command has no traceback."""
    with pytest.raises(FileFormatError, match=rf"scene\.rsg{message}"):
        rsg_scene(tmp_path, second=f"covariance {covariance}")
    outcome = tmkit(tmp_path, "scene", "check", "scene.rsg")
    assert (outcome.code, "Traceback" in outcome.err) == (2, False)


# ----------------------------------------------------------------------------------------- JSON


def document() -> dict[str, object]:
    """Return the document of a cup with two stamped poses, the second with a covariance."""
    scene = SceneGraph().add_frame("cup", "world", joint=Free())
    scene = scene.add_stamped_pose("cup", Pose(), stamp=1.0)
    scene = scene.add_stamped_pose("cup", Pose(), stamp=2.0, covariance=np.eye(6))
    return json.loads(json.dumps(scene_to_dict(scene)))


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([1.0] * 5, "expected 36 numbers"),
        ([1.0, *[0.0] * 34, -1.0], r"covariance is not positive semi-definite.*\[-1, 0"),
        ([0.0, 1.0, *[0.0] * 34], "covariance is not symmetric"),
        ([math.nan] * 36, "number"),
        ("none", "expected"),
        (None, "expected"),
    ],
)
def test_invalid_covariances_in_json(covariance: object, message: str) -> None:
    """The error has the place in the document."""
    changed = document()
    [cup] = [frame for frame in changed["frames"] if frame["name"] == "cup"]  # type: ignore[attr-defined]
    cup["stamps"]["poses"][1]["covariance"] = covariance
    place = r"frames\[1\]\.stamps\.poses\[1\]\.covariance"
    with pytest.raises(FileFormatError, match=f"{place}.*{message}"):
        scene_from_dict(changed)


def test_documents_without_covariances_are_as_before() -> None:
    """No key is added, and old documents are read."""
    old = document()
    [cup] = [frame for frame in old["frames"] if frame["name"] == "cup"]  # type: ignore[attr-defined]
    assert set(cup["stamps"]["poses"][0]) == {"pose", "stamp"}
    del cup["stamps"]["poses"][1]["covariance"]
    history = scene_from_dict(old).stamped_poses("cup")
    assert history is not None
    assert history.covariances == (None, None)
