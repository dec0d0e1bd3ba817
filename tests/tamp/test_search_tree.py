"""Recorded search trees: results, counts and scenes equal those of the run."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.blocks import SUSSMAN, blocks_scene, with_box
from support.gantry import GANTRY
from support.tamp_problems import PROBLEMS, TampProblem

import tmkit as tk
from tmkit import cli
from tmkit.cli import ExitCode
from tmkit.cli.planning import _write_trees
from tmkit.plans import ArmAt
from tmkit.plans.plan_file import plan_to_dict
from tmkit.tamp import PlanningOptions, PlanningProblem, PlanResult, SearchTree


def plan_problem(problem: TampProblem, **options: Any) -> PlanResult:
    """Return the result of planning, limited by iterations."""
    task = PlanningProblem(problem.scene, goal=problem.goal, domain=problem.domain)
    return tk.solve(task, PlanningOptions(max_iterations=2, suggest=False, **options))


def check_tree(tree: SearchTree) -> None:
    """Check that parents come first, plan branches begin at the start, and values are plain."""
    assert tree.nodes[0].parent is None
    for index, node in enumerate(tree.nodes[1:], start=1):
        assert node.parent is not None
        assert node.parent < index
        assert len(node.actions) == len(node.choices) == 1
        assert not node.is_in_plan or tree.nodes[node.parent].is_in_plan
        assert [f.count for f in node.failures] == sorted(
            (f.count for f in node.failures), reverse=True
        )
    document = tree.to_dict()
    assert json.loads(json.dumps(document)) == document
    assert [entry["is_in_plan"] for entry in document["nodes"]] == [
        node.is_in_plan for node in tree.nodes
    ]


@pytest.mark.parametrize("name", ["regrasp", "blocked"])
def test_transfers_are_recorded(name: str) -> None:
    """Recording changes no result, and the branch of the plan ends in its last scene."""
    problem = PROBLEMS[name](0)
    plain, recorded = plan_problem(problem), plan_problem(problem, record_tree=True)
    assert plain.plan is not None
    assert recorded.plan is not None
    assert plain.search_trees == ()
    assert plan_to_dict(recorded.plan) == plan_to_dict(plain.plan)
    assert recorded.statistics == plain.statistics
    assert "search_trees" not in plain.to_dict()
    assert [tree["search"] for tree in recorded.to_dict()["search_trees"]] == [
        tree.search for tree in recorded.search_trees
    ]
    for tree in recorded.search_trees:
        check_tree(tree)
        assert re.fullmatch(r"\d+ objects", tree.search)
    (tree,) = [tree for tree in recorded.search_trees if tree.is_in_plan]
    branch = [index for index, node in enumerate(tree.nodes) if node.is_in_plan]
    assert tree.nodes[branch[0]].estimate is not None
    assert any(node.is_transfer for node in tree.nodes)

    # Each action of the plan is on the way, in order; detours may have been taken out.
    actions = iter([action for index in branch for action in tree.nodes[index].actions])
    assert all(str(action) in actions for action in recorded.plan.actions)
    scene, _ = tree.version(branch[-1], problem.scene)
    goal = recorded.plan.final_scene
    target = "box" if name == "regrasp" else "target"
    assert scene.parent(target) == goal.parent(target)
    if name == "regrasp":
        assert scene.local_pose(target).is_close(goal.local_pose(target))


def test_task_plans_are_recorded_with_their_versions_and_failures() -> None:
    """Versions are the scenes of the steps; attempts and failures add up to those of the run."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"})
    result = tk.plan(
        scene,
        goal=[SUSSMAN, ArmAt({"x": 0.1})],
        robot=GANTRY,
        options=tk.PlanningOptions(record_tree=True, improve=3),
    )
    assert result.plan is not None, result.explanation
    (tree,) = result.search_trees
    check_tree(tree)
    branch = [index for index, node in enumerate(tree.nodes) if node.is_in_plan]
    assert len(branch) == len(result.plan.steps) + 1
    for index, step in zip(branch[1:], result.plan.steps, strict=True):
        assert tree.nodes[index].actions == (str(step.action),)
    first = tk.plan(
        scene,
        goal=[SUSSMAN, ArmAt({"x": 0.1})],
        robot=GANTRY,
        options=tk.PlanningOptions(record_tree=True),
    )
    assert first.plan is not None
    assert first.search_trees == result.search_trees  # those of the search, not of improvement
    assert sum(node.tries for node in tree.nodes) == first.statistics.attempts
    for index, step in zip(branch[1:-1], first.plan.steps, strict=False):
        version, q = tree.version(index, scene)
        assert version == step.scene
        assert q.tobytes() == step.q.tobytes()


def test_a_search_without_a_plan_is_recorded_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No node is marked; failures add up to the statistics, each with an attempt."""
    scene = with_box(
        blocks_scene({"a": (0, 0), "b": (2, 2)}), "lid", (-0.1, -0.1, 0.08), (0.1, 0.1, 0.1)
    )
    result = tk.plan(
        scene,
        goal="(on a b)",
        robot=GANTRY,
        options=tk.PlanningOptions(record_tree=True, max_iterations=1, suggest=False),
    )
    assert result.plan is None
    assert result.search_trees
    failed: Counter[tuple[str, str]] = Counter()
    for tree in result.search_trees:
        check_tree(tree)
        assert not tree.is_in_plan
        for node in tree.nodes:
            failed.update(
                {(failure.action, failure.cause): failure.count for failure in node.failures}
            )
    assert failed == {(action, cause): count for action, cause, count in result.statistics.failures}
    nodes = [node for tree in result.search_trees for node in tree.nodes]
    assert all(node.tries >= sum(failure.count for failure in node.failures) for node in nodes)
    _write_trees(result, tmp_path / "tree.png", print_line=print)
    assert (tmp_path / "tree.png").stat().st_size > 10_000
    assert capsys.readouterr().out == ""


def test_trees_are_returned_by_workers() -> None:
    """With several workers the tree is that of the conclusive seed."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    problem = PlanningProblem(scene, goal="(on a b)", robots=GANTRY)
    alone = tk.solve(problem, PlanningOptions(record_tree=True))
    both = tk.solve(problem, PlanningOptions(record_tree=True, workers=2))
    assert both.search_trees == alone.search_trees != ()
    assert (
        repr(both.search_trees[0])
        == f"SearchTree(27 objects, {len(both.search_trees[0].nodes)} nodes, with the plan)"
    )


@pytest.mark.parametrize(
    ("file", "code"), [("t.json", 0), ("t.png", 0), ("t.svg", 0), ("t.gif", 2), ("no/t.png", 2)]
)
def test_trees_on_the_command_line(
    file: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Trees are written as data; a plan without backtracking has a sentence, not a picture."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys,
        "argv",
        ["tmkit", "plan", "panda_table", "blocks1", "--goal", "(holding a)", "--tree", file],
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == ExitCode(code)
    if code:
        assert "Traceback" not in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []
    elif file == "t.json":
        (tree,) = json.loads((tmp_path / file).read_text())
        assert [node["actions"] for node in tree["nodes"] if node["is_in_plan"]][1][0].startswith(
            "(pick-up a "
        )
    else:
        assert f"{file} is not written: the search did not backtrack" in capsys.readouterr().out
        assert list(tmp_path.iterdir()) == []
