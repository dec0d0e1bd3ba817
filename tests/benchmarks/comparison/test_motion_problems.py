"""MotionBenchMaker's files: contents of the scenes, comparison of planners, located errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.comparison.arena import load_suite, run_arena
from benchmarks.comparison.motion_problems import MotionSource, read_motion_problem

import tmkit as tk
from tmkit.batch import open_results, run_batch
from tmkit.errors import ConfigurationError, FileFormatError, MissingFileError
from tmkit.robots.robot_files import find_manipulators

pytest.importorskip("distributed")

SCENE = """
robot_model_name: panda
world:
  collision_objects:
    - id: shelf
      pose: {position: [0.5, 0.0, 0.4], orientation: [0, 0, 0.7071067811865476, 0.7071067811865476]}
      primitives:
        - {type: box, dimensions: [0.2, 0.4, 0.02]}
        - {type: cylinder, dimensions: [0.1, 0.03]}
      primitive_poses:
        - {position: [0, 0, 0], orientation: [0, 0, 0, 1]}
        - {position: [0.05, 0, 0.06], orientation: [0, 0, 0, 1]}
    - id: ball
      primitives: [{type: sphere, dimensions: [0.08]}]
      primitive_poses: [{position: [0.08, 0.3, 0.5], orientation: [0, 0, 0, 1]}]
"""
JOINTS = [f"panda_joint{number}" for number in range(1, 8)]
READY = [0, -0.785, 0, -2.356, 0, 1.571, 0.785]
ASIDE, BEHIND = [-1.2, *READY[1:]], [2.6, *READY[1:]]


def _request(
    goal: list[float],
    names: str = f"[{', '.join(JOINTS)}, panda_finger_joint1, panda_finger_joint2]",
) -> str:
    constraints = "".join(
        f"      - {{joint_name: {n}, position: {v}}}\n" for n, v in zip(JOINTS, goal, strict=True)
    )
    return (
        f"start_state:\n  joint_state:\n    name: {names}\n    position: {[*READY, 0.065, 0.065]}\n"
        f"goal_constraints:\n  - joint_constraints:\n{constraints}"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two problems: a way that is free, and one around a ball."""
    path = tmp_path / "around"
    path.mkdir()
    for number, goal in ((1, ASIDE), (2, BEHIND)):
        (path / f"scene000{number}.yaml").write_text(SCENE)
        (path / f"request000{number}.yaml").write_text(_request(goal))
    return path


def _source(folder: Path, **options: object) -> MotionSource:
    return MotionSource(str(folder), tk.load_scene("panda_alone"), "panda", **options)  # type: ignore[arg-type]


def _batch(folder: Path, motions: Path) -> Path:
    """Write a batch file with two problems of motion."""
    file = folder / "motions.toml"
    source = '"benchmarks.comparison.motion_problems:motion_source"'
    parameters = f'folder = "{motions}", scene = "panda_alone"'
    text = (
        f'[[problems]]\nname = "around"\nsource = {source}\nseeds = 2\nparameters = {{ {parameters}'
        " }\n"
    )
    file.write_text(text, encoding="utf-8")
    return file


def test_a_scene_has_what_the_file_says(folder: Path) -> None:
    """Shapes where MoveIt has them; hands that are wider open than ours are open."""
    motion = _source(folder).motion(0)
    scene = motion.scene
    np.testing.assert_allclose(
        scene.pose("shelf/1", q=motion.start).translation, [0.5, 0.05, 0.46], atol=1e-12
    )
    (box,), (cylinder,), (ball,) = (scene.shapes(name) for name in ("shelf/0", "shelf/1", "ball/0"))
    assert box.shape.dimensions == (0.2, 0.4, 0.02)
    assert cylinder.shape.dimensions == (0.03, 0.1)  # radius and length
    assert ball.shape.dimensions == (0.08,)
    values = dict(zip(scene.joint_names, motion.start, strict=True))
    assert [values[joint] for joint in JOINTS] == READY
    assert values["panda_finger_joint1"] == 0.04
    assert motion.goals.shape == (1, len(motion.start))
    assert _source(folder).problem(0)[0].scene == scene


def test_planners_are_compared_on_motions(folder: Path, tmp_path: Path) -> None:
    """Each path is checked; one that goes straight gives up where the ball is."""
    file = _batch(tmp_path, folder)
    planners = ["tmkit", "benchmarks.comparison.other_planner:StraightOnly"]
    rows = run_arena({"motions": load_suite(file)}, tmp_path / "out", planners=planners, workers=1)
    assert [(row.solved, row.invalid, row.runs) for row in rows] == [(2, 0, 2), (1, 0, 2)]
    assert rows[1].failure == "no plan: no path"
    assert rows[0].path_length is not None
    assert rows[0].path_length >= (1.2 + 2.6) / 2
    assert rows[0].slow_seconds is not None
    summary = run_batch(load_suite(file), tmp_path / "again", workers=1)
    assert summary.statuses == {"solved": 2}
    assert all(row["is_valid"] for row in open_results(tmp_path / "again"))


@pytest.mark.parametrize(
    ("scene", "request_text", "match"),
    [
        (
            SCENE.replace("id: ball", "id: shelf"),
            "",
            r"scene0001\.yaml: world\.collision_objects\[1\]\.id: .*'shelf'",
        ),
        (
            SCENE.replace("type: box", "type: cone"),
            "",
            r"primitives\[0\]\.type: .*box, cylinder, sphere",
        ),
        (SCENE.replace("[0.08]}]", "[-1.0]}]"), "", r"dimensions: expected positive sizes"),
        (
            SCENE.replace("[0.1, 0.03]", "[0.1]"),
            "",
            r"primitives\[1\]\.dimensions: expected 2 numbers",
        ),
        (
            SCENE.replace("[0, 0, 0, 1]}]", "[0, 0, 0, 2]}]"),
            "",
            r"orientation: expected a unit quaternion",
        ),
        (SCENE + "      meshes: [{}]\n", "", r"meshes: meshes are not read: 'ball' may have boxes"),
        (
            SCENE + "      extra: &a [1]\n      more: *a\n",
            "",
            r"line 1\d: aliases of YAML are not read",
        ),
        (SCENE + "  :  -", "", r"scene0001\.yaml: line 1\d: is not YAML"),
        (
            SCENE + "robot_state: {attached_collision_objects: [{}]}\n",
            "",
            r"attached objects are not read",
        ),
        (
            SCENE,
            _request(ASIDE, f"[{', '.join(JOINTS[:-1])}, x, y, z]"),
            r"lacks the joint 'panda_joint7' of the arm",
        ),
        (
            SCENE,
            _request(ASIDE, f"[{', '.join(JOINTS[:-1])}, panda_joint6, y, z]"),
            r"name: names the joint 'panda_joint6' twice",
        ),
        (
            SCENE,
            _request(ASIDE).replace("name: panda_joint7", "name: elbow"),
            r"lacks the joint 'panda_joint7'",
        ),
        (
            SCENE,
            _request(ASIDE) + "    position_constraints: [{}]\n",
            r"goals are values of joints",
        ),
        (
            SCENE,
            _request(ASIDE).split("goal_")[0] + "goal_constraints: []\n",
            r"expected at least one goal",
        ),
    ],
)
def test_what_cannot_be_read_is_named(
    folder: Path, scene: str, request_text: str, match: str
) -> None:
    """With its file and its place."""
    (folder / "scene0001.yaml").write_text(scene)
    if request_text:
        (folder / "request0001.yaml").write_text(request_text)
    robot = tk.load_scene("panda_alone")
    (arm,) = find_manipulators(("panda",), robot)
    with pytest.raises(FileFormatError, match=match):
        read_motion_problem(
            folder / "scene0001.yaml", folder / "request0001.yaml", scene=robot, arm=arm
        )


def test_folders_and_planners_that_are_none(folder: Path, tmp_path: Path) -> None:
    """Unsolvable problems are rejected before, or are rows."""
    with pytest.raises(MissingFileError, match=r"there is no file '.*scene0001\.yaml'"):
        _source(tmp_path).motion(0)
    with pytest.raises(ConfigurationError, match=r"has 2 problems, none with the number 2"):
        _source(folder).motion(2)
    with pytest.raises(
        ConfigurationError, match=r"is no motion planner: it has no method 'search'"
    ):
        _source(folder, planner="benchmarks.comparison.other_planner:first_goal_only").row(0)
    (folder / "request0002.yaml").unlink()
    with pytest.raises(MissingFileError, match=r"request0002\.yaml"):
        _source(folder).motion(0)
    file = _batch(tmp_path, tmp_path / "nowhere")
    with pytest.raises(
        FileFormatError, match=r"motions\.toml:5: .*there is no file '.*nowhere/scene0001\.yaml'"
    ):
        load_suite(file)
