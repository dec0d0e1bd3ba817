"""Examples of PDDLStream with declared streams: solved, valid, and explained."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tmkit as tk
from tmkit.tamp import PlanResult, PythonDomain
from tmkit.tamp.streams import StreamSemantics, stream

EXAMPLES = Path(__file__).parents[3] / "examples" / "streams"
SEEDS = range(4)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a function that imports an example, and forget the examples afterwards."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    names = [path.stem for path in EXAMPLES.glob("*.py")]
    saved = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(saved)


def require_valid(result: PlanResult, semantics: type[StreamSemantics]) -> None:
    """Check that a result has a valid plan."""
    assert result.plan is not None, result.explanation
    domain = PythonDomain(semantics.domain, semantics)
    assert tk.validate_plan(result.plan, domain=domain).is_valid


def refusing(semantics: type[StreamSemantics], certifies: str, inputs: str) -> Any:
    """Return a semantics in which a test is replaced by one that rejects everything."""

    @stream(inputs, certifies=certifies)
    def never(view: Any) -> bool:
        return False

    fact = certifies.split()[0].strip("(")
    others = tuple(s for s in semantics.streams if s.certifies[0].predicate != fact)
    return type("Refusing", (semantics,), {"streams": (*others, never)})


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_makes_room_on_a_line_of_finite_poses(load: Any, seed: int) -> None:
    """The block at the goal moves to the nearest free pose of the list, which costs least."""
    example: ModuleType = load("discrete_tamp")
    result = example.solve(seed)
    require_valid(result, example.DiscreteTamp)
    actions = [str(step.action) for step in result.plan.steps]
    assert actions == ["(pick b goal)", "(place b line)", "(pick a line)", "(place a goal)"]
    position = result.plan.steps[1].scene.local_pose("b").translation[0]
    assert min(abs(position - x) for x in example.POSES) < 1e-9
    assert result.plan.steps[1].value_cost == pytest.approx(abs(position - example.GOAL))


@pytest.mark.parametrize("problem", ["tight", "blocked", "dual", "cook"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sampled_poses_solve_the_problems_of_the_line(load: Any, problem: str, seed: int) -> None:
    """All problems have valid plans at the end of which the arm is in its first configuration."""
    example: ModuleType = load("continuous_tamp")
    result = example.solve(problem, seed)
    require_valid(result, example.ContinuousTamp)
    scene, q = result.plan.steps[-1].scene, result.plan.steps[-1].q
    assert scene.pose("cup", q=q).translation == pytest.approx([0.0, 0.0, 0.2])


@pytest.mark.parametrize("seed", SEEDS)
def test_improvement_makes_the_path_on_the_roadmap_cheaper(load: Any, seed: int) -> None:
    """Edges are short, and the cost never grows with more iterations of improvement."""
    example: ModuleType = load("motion")
    first, better = example.solve(seed), example.solve(seed, improve=12)
    for result in (first, better):
        require_valid(result, example.Roadmap)
        assert all(0 < step.value_cost <= example.MAX_DISTANCE for step in result.plan.steps)
    assert better.plan.cost <= first.plan.cost


@pytest.mark.parametrize("seed", SEEDS)
def test_each_action_of_the_kitchen_has_its_sampler(load: Any, seed: int) -> None:
    """The plan pushes, pours, scoops, dumps and stirs, with values of each stream."""
    example: ModuleType = load("kitchen")
    result = example.solve(seed)
    require_valid(result, example.Kitchen)
    names = {step.action.name for step in result.plan.steps}
    assert names >= {"push", "pour", "scoop", "dump", "stir"}
    uses = {use.stream: use for use in result.diagnosis.streams}
    assert all(uses[f"sample_{name}"].used for name in ("push", "pour", "scoop", "dump", "stir"))


@pytest.mark.parametrize(
    ("module", "semantics", "certifies", "inputs"),
    [
        ("discrete_tamp", "DiscreteTamp", "(free ?b ?p)", "?b - block ?p - placement"),
        ("continuous_tamp", "ContinuousTamp", "(free ?b ?p)", "?b - block ?p - placement"),
        ("motion", "Roadmap", "(connected ?q)", "?q - configuration"),
        ("kitchen", "Kitchen", "(holdable ?o ?g)", "?o - portable ?g - grasp"),
    ],
)
def test_the_explanation_names_the_test_that_rejects_everything(
    load: Any, module: str, semantics: str, certifies: str, inputs: str
) -> None:
    """A test that accepts nothing is named, with the number of values that it rejects."""
    example: ModuleType = load(module)
    domain = refusing(getattr(example, semantics), certifies, inputs)
    arguments = ("tight", 0) if module == "continuous_tamp" else (0,)
    result = example.solve(*arguments, semantics=domain)
    assert result.plan is None
    assert "stream 'never': refused" in result.explanation
