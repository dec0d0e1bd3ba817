"""Problems of PDDLStream's author: a block between two tables, poses, and unsupported input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.comparison.arena import load_suite
from benchmarks.comparison.tamp_problems import read_tamp_problem

import tmkit as tk
from tmkit.errors import FileFormatError
from tmkit.plans import ObjectAt, ObjectIn


def _place(x: float, y: float, z: float, **more: Any) -> dict[str, Any]:
    return {
        "point": {"x": x, "y": y, "z": z},
        "quat": {"w": 1.0, "x": 0.0, "y": 0.0, "z": 0.0},
        **more,
    }


def _box(*half: float, z: float = 0.0) -> dict[str, Any]:
    return _place(0.0, 0.0, z, type="box", extents=half)


def _write_problem(path: Path, **goals: Any) -> Path:
    slab, legs = [0.3, 0.3, 0.02], _place(0.0, 0.0, -0.2, type="cylinder", radius=0.05, height=0.3)
    bodies = [
        _place(0, 0, 0, name="floor", links=[[_box(3.0, 3.0, 0.005, z=-0.005)]]),
        _place(1.5, 0, 0.4, name="east", links=[[_box(*slab), legs]]),
        _place(-1.5, 0, 0.4, name="west", links=[[_box(*slab), legs]]),
        _place(1.4, 0.1, 0.421, name="can", links=[[_box(0.025, 0.025, 0.08, z=0.08)]]),
    ]
    area = _place(0, 0, 0.421, name="area", hull=[[-1.7, -0.2], [-1.3, -0.2], [-1.3, 0.2]])
    task = {
        "table_names": ["east", "west"],
        "object_names": ["can"],
        "regions": [area],
        "goal_regions": {},
        "goal_poses": {},
        **goals,
    }
    path.write_text(
        json.dumps({"bodies": bodies, "robots": [_place(0, 0.2, 0.1)], "task": task}),
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("region", ["west", "area"])
def test_an_object_is_carried_to_another_table(tmp_path: Path, region: str) -> None:
    """On to the table, or into a region of it."""
    file = _write_problem(tmp_path / "carry.json", goal_regions={"can": region})
    source = 'source = "benchmarks.comparison.tamp_problems:carrying_source"'
    parameters = f'parameters = {{ file = "{tmp_path / "carry.json"}" }}'
    batch = tmp_path / "batch.toml"
    batch.write_text(
        f"[[problems]]\n{source}\n{parameters}\noptions = {{ max_iterations = 4 }}\n",
        encoding="utf-8",
    )
    problem, options = load_suite(batch).entries[0].source.problem(0)
    assert (
        problem.goals
        == read_tamp_problem(file).goals
        == (("(on can west)",) if region == "west" else (ObjectIn("can", "area"),))
    )
    assert problem.scene.parent("can") == "east"
    np.testing.assert_allclose(
        problem.scene.pose("can", relative_to="world").translation, [1.4, 0.1, 0.501]
    )
    plan = tk.solve(problem, options).plan
    assert plan is not None
    assert tk.validate_plan(plan).is_valid


def test_goals_are_poses_too(tmp_path: Path) -> None:
    """The configuration is that of the start, or one with its turn first."""
    stays = read_tamp_problem(
        _write_problem(tmp_path / "stays.json", goal_poses={"can": "initial"})
    )
    (goal,) = stays.goals
    assert isinstance(goal, ObjectAt)
    assert goal.pose == stays.scene.pose("can", relative_to="world")
    turned = [0.5**0.5, 0.0, 0.0, 0.5**0.5, 1.5, -0.1, 0.421]
    (goal,) = read_tamp_problem(
        _write_problem(tmp_path / "turned.json", goal_poses={"can": turned})
    ).goals
    assert isinstance(goal, ObjectAt)
    np.testing.assert_allclose(goal.pose.translation, [1.5, -0.1, 0.501])


def test_an_object_of_a_group_is_held_where_the_base_began(tmp_path: Path) -> None:
    """A name is that of an object, or the beginning of several."""
    file = _write_problem(tmp_path / "hold.json", goal_holding="can", goal_config="initial")
    assert read_tamp_problem(file).goals == ("(holding can)", "(at dock)")
    file = _write_problem(tmp_path / "group.json", goal_holding=["c"])
    problem = read_tamp_problem(file)
    assert problem.goals == ("(holding can)",)
    plan = tk.solve(problem, tk.PlanningOptions(max_iterations=4)).plan
    assert plan is not None
    assert tk.validate_plan(plan).is_valid
    text = file.read_text(encoding="utf-8")
    two = json.loads(text)
    can = next(body for body in two["bodies"] if body["name"] == "can")
    other = {**can, "name": "cap", "point": {**can["point"], "y": can["point"]["y"] - 0.2}}
    two["bodies"].append(other)
    two["task"]["object_names"].append("cap")
    file.write_text(json.dumps(two), encoding="utf-8")
    assert read_tamp_problem(file).goals == ("(or (holding can) (holding cap))",)


@pytest.mark.parametrize(
    ("goals", "message"),
    [
        ({"goal_cleaned": ["can"]}, "task.goal_cleaned: is not read"),
        ({"goal_holding": ["cup"]}, "'cup' is not an object and not the beginning of one: can"),
        ({"goal_config": [1.0, 0.0, 0.0]}, "task.goal_config: is not read: the base can return"),
        (
            {"goal_regions": {"c": "area"}},
            "'c' is not an object; for a region, a group is not read",
        ),
        (
            {"regions": [_place(0, 0, 0, name="area", hull=[])]},
            r"task.regions\[0\].hull: expected at least 3 points",
        ),
        ({}, "task: has no goal that is read"),
        ({"goal_regions": {"can": 3}}, "task.goal_regions.can: expected"),
        (
            {"table_names": ["west"], "goal_regions": {"can": "west"}},
            "'can' is on none of the tables",
        ),
    ],
)
def test_what_is_not_read_is_refused(tmp_path: Path, goals: dict[str, Any], message: str) -> None:
    """With its place."""
    with pytest.raises(FileFormatError, match=message):
        read_tamp_problem(_write_problem(tmp_path / "bad.json", **goals))
