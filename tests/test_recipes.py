"""Recipes of CONTRIBUTING.md, each executed literally in a separate distribution."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.commands import tmkit
from support.gantry import stacking_plan
from support.plug_ins import install_folder, write_distribution

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.tamp import PlanningOptions
from tmkit.world import WorldServer, connect
from tmkit.world.service.transport_registry import load_transport

CONTRIBUTING = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
FORMAT, TASK_PLANNER, MOTION_PLANNER, ENGINE, TRANSPORT, SAMPLER = (
    "Add a file format",
    "Add a task planner",
    "Add a motion planner",
    "Add a physics engine",
    "Add a transport",
    "Add a sampler or a kind of gripper",
)
RECIPES = (FORMAT, TASK_PLANNER, MOTION_PLANNER, ENGINE, TRANSPORT, SAMPLER)


def recipe(title: str) -> tuple[str, str, str]:
    """Return the name of the module of a recipe, its text, and the text of its entry points."""
    page = CONTRIBUTING.read_text(encoding="utf-8")
    section = page.split(f"### {title}\n", 1)[1].split("\n##", 1)[0]
    (code,) = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", section, re.DOTALL)
    tables = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", section, re.DOTALL)]
    groups = {
        group: points
        for table in tables
        for group, points in table["project"]["entry-points"].items()
    }
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()))
    ]
    return code[0], code[1], "\n".join(lines) + "\n"


@pytest.fixture
def _installed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Install the distribution of a recipe."""
    module, text, entry_points = recipe(request.param)
    folder = tmp_path / "site"
    write_distribution(folder, "recipe", modules={module: text}, entry_points=entry_points)
    with install_folder(folder):
        yield


def with_recipe(title: str) -> pytest.MarkDecorator:
    """Return the mark of a test with the distribution of a recipe."""
    return pytest.mark.parametrize("_installed", [title], indirect=True)


def test_the_recipes_are_those_of_the_page() -> None:
    """No recipe of the page goes untested."""
    page = CONTRIBUTING.read_text(encoding="utf-8")
    section = page.split("## Plug-ins\n", 1)[1].split("\n## ", 1)[0]
    assert tuple(re.findall(r"^### (.*)$", section, re.MULTILINE)) == RECIPES


@with_recipe(FORMAT)
@pytest.mark.usefixtures("_installed")
def test_a_file_format_is_read_and_written(tmp_path: Path) -> None:
    """A file of the format is validated, converted both ways and listed; errors have lines."""
    (tmp_path / "cell.abc").write_text("table world 1 0 0.5\ncup table 0 0.25 0.125\n")
    checked = tmkit(tmp_path, "scene", "check", "cell.abc")
    assert (checked.code, "3 frames" in checked.out) == (0, True), checked
    assert tmkit(tmp_path, "scene", "convert", "cell.abc", "-o", "cell.json").code == 0
    assert tmkit(tmp_path, "scene", "convert", "cell.json", "-o", "again.abc").code == 0
    scene = tk.load_scene(tmp_path / "again.abc")
    assert scene == tk.load_scene(tmp_path / "cell.abc") == tk.load_scene(tmp_path / "cell.json")
    np.testing.assert_array_equal(scene.pose("cup").translation, [1, 0.25, 0.625])
    (tmp_path / "bad.ABC").write_text("table world 1 0 0.5\ncup table 0 0\n")
    refused = tmkit(tmp_path, "scene", "check", "bad.ABC")
    assert (refused.code, "bad.ABC:2: expected NAME PARENT X Y Z" in refused.err) == (2, True), (
        refused
    )
    lost = tmkit(tmp_path, "scene", "convert", "cell.abc", "blocks1", "-o", "blocks.abc")
    assert (lost.code, "a .abc file cannot hold this scene" in lost.err) == (2, True), lost
    assert not (tmp_path / "blocks.abc").exists()
    assert ".abc" in tmkit(tmp_path, "list", "formats").out


@with_recipe(TASK_PLANNER)
@pytest.mark.usefixtures("_installed")
def test_a_task_planner_is_found_by_name(tmp_path: Path) -> None:
    """The command plans with it, and so do the options of a whole plan."""
    (tmp_path / "d.pddl").write_text(
        "(define (domain d) (:predicates (p) (q)) (:action a :parameters () :precondition (p)"
        " :effect (q)))"
    )
    (tmp_path / "p.pddl").write_text("(define (problem p) (:domain d) (:init (p)) (:goal (q)))")
    planned = tmkit(tmp_path, "task", "d.pddl", "p.pddl", "--planner", "split")
    assert (planned.code, planned.out.splitlines()[0]) == (0, "(a)"), planned
    result = tk.plan(
        tk.load_scene("panda_table", "blocks1"),
        goal="(holding a)",
        options=tk.PlanningOptions(task_planner="split"),
    )
    assert result.plan is not None
    assert result.statistics.task_planner == "FastDownward"
    listed = tmkit(tmp_path, "list", "planners").out
    assert "task planner: Fast Downward with operators taken apart. (from recipe)" in listed


@with_recipe(MOTION_PLANNER)
@pytest.mark.usefixtures("_installed")
def test_a_motion_planner_is_found_by_name(tmp_path: Path) -> None:
    """The command plans with it; the options hold the planner itself."""
    assert (
        type(PlanningOptions(motion_planner="straight").motion_planner).__name__ == "StraightFirst"
    )
    command = (
        "plan",
        "panda_table",
        "blocks1",
        "--goal",
        "(holding a)",
        "--motion-planner",
        "straight",
        "-o",
        "p.json",
    )
    planned = tmkit(tmp_path, *command)
    assert planned.code == 0, planned
    plan = tk.load_plan(tmp_path / "p.json")
    assert tk.validate_plan(plan).is_valid
    assert any(len(segment.path) == 2 for step in plan.steps for segment in step.segments)


@with_recipe(ENGINE)
@pytest.mark.usefixtures("_installed")
def test_a_physics_engine_is_found_by_name(tmp_path: Path) -> None:
    """A plan succeeds on the Moon, too; the command takes the engine and lists it."""
    report = tk.simulate(stacking_plan(), options=tk.SimulationOptions(engine="moon"))
    assert report.is_successful, report
    assert report.errors != tk.simulate(stacking_plan()).errors
    tk.save_plan(stacking_plan(), tmp_path / "plan.json")
    assert tmkit(tmp_path, "simulate", "plan.json", "--engine", "moon").code == 0
    listed = json.loads(tmkit(tmp_path, "list", "engines", "--json").out)
    assert [entry["distribution"] for entry in listed if entry["name"] == "moon"] == ["recipe"]


@with_recipe(TRANSPORT)
@pytest.mark.usefixtures("_installed")
def test_a_transport_is_found_by_name() -> None:
    """A client edits the world of a server through it."""
    with WorldServer(
        load_transport("threads", "here", listen=True), SceneGraph().add_frame("table", "world")
    ) as server:
        with connect("here", transport="threads") as client, client.edit() as edit:
            edit.add_frame("cup", "table")
        assert "cup" in server.live.scene


def test_a_sampler_is_used_for_its_class(tmp_path: Path) -> None:
    """Every grasp of the plan is from above, and the sampler is that of the class."""
    module, text, entry_points = recipe(SAMPLER)
    assert not entry_points.strip()
    write_distribution(tmp_path, "recipe", modules={module: text}, entry_points="")
    with install_folder(tmp_path):
        import own_samplers

        scene = tk.load_scene("panda_table", "blocks1")
        assert "movable" in scene.classes("a")
        result = tk.plan(
            scene, goal="(holding a)", options=tk.PlanningOptions(samplers=own_samplers.SAMPLERS)
        )
        assert own_samplers.SAMPLERS.grasp_sampler(scene, "a") is own_samplers.sample_from_above
    assert result.plan is not None
    step = result.plan.steps[-1]
    assert (
        step.scene.pose("a", relative_to=result.plan.robots[0].tool, q=step.q).rotation[2, 2]
        < -0.99
    )
    assert tk.validate_plan(result.plan).is_valid
