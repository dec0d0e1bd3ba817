"""Proofs that no object of a clutter can be picked first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

import tmkit as tk
from tmkit.batch.generated_problems import clutter_problem
from tmkit.graph import SceneGraph
from tmkit.manipulation import Grasp, GraspRequest, Samplers, sample_grasps
from tmkit.tamp import PlanResult, PlanStatus, run
from tmkit.tamp.context import PlanningContext

PROOF = "'target' has to be picked, and no grasp of the list of 192 is free before another of"


def plan(
    scene: SceneGraph,
    *,
    domain: str = "kitchen",
    iterations: int = 1,
    samplers: Samplers | None = None,
    seconds: float = 60.0,
) -> PlanResult:
    """Return the result of planning to place the target on the mat."""
    return tk.plan(
        scene,
        domain=domain,
        goal="(on target mat)",
        robot="panda",
        options=tk.PlanningOptions(
            max_iterations=iterations, time_limit=seconds, suggest=False, samplers=samplers
        ),
    )


def remove_blocks(scene: SceneGraph, names: Iterable[str]) -> SceneGraph:
    """Return a scene without blocks."""
    for name in names:
        scene = scene.remove_frame(name)
    return scene


@pytest.mark.parametrize("side", [3, 4, 5])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_tight_clutter_is_proved_before_any_search(side: int, seed: int) -> None:
    """With gaps of 1 cm and fingers of 14.4 mm, each block is blocked by another."""
    result = plan(clutter_problem(side, gap=0.01, seed=seed).scene)
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert result.statistics.skeletons == 0
    assert PROOF in result.explanation


def test_removable_blocks_do_not_prevent_the_proof() -> None:
    """The proof removes blocks that can be picked, and the target is still blocked."""
    scene = clutter_problem(5, gap=0.01).scene
    scene = remove_blocks(scene, [f"c{i}4" for i in (0, 2, 4)])  # c14 and c34 can be picked then
    result = plan(scene)
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert PROOF in result.explanation


def test_no_proof_for_a_clutter_with_a_picking_order() -> None:
    """Without two sides of the square, the blocks can be picked one by one, and a plan exists."""
    scene = remove_blocks(clutter_problem(3, gap=0.01).scene, ["c00", "c10", "c20", "c02", "c22"])
    assert plan(scene, iterations=4).is_solved


@pytest.mark.parametrize("seed", range(4))
def test_proved_problems_are_not_solved_without_the_proof(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random clutters with gaps close to the finger thickness have no plan if they have a proof."""
    rng = np.random.default_rng(seed)
    scene = clutter_problem(3, gap=float(rng.uniform(0.01, 0.02)), seed=seed).scene
    blocks = [name for name in scene.frames_of_class("movable") if name != "target"]
    scene = remove_blocks(scene, rng.choice(blocks, 3, replace=False).tolist())
    if plan(scene, seconds=20.0).status is not PlanStatus.PROVED_UNSOLVABLE:
        return

    def prove_nothing(context: PlanningContext) -> None:
        del context

    monkeypatch.setattr(run, "prove_blocked_clutter", prove_nothing)
    assert not plan(scene, seconds=5.0).is_solved


def test_no_proof_in_a_domain_with_pushes() -> None:
    """A push moves a block without a grasp."""
    assert (
        PROOF
        not in plan(clutter_problem(3, gap=0.01).scene, domain="push", seconds=5.0).explanation
    )


def test_no_proof_with_another_grasp_sampler() -> None:
    """A sampler of the user may return other grasps than the checked ones."""

    def sample(request: GraspRequest) -> Iterable[Grasp]:
        return sample_grasps(request)

    result = plan(
        clutter_problem(3, gap=0.01).scene, samplers=Samplers().with_grasps(sample), seconds=5.0
    )
    assert result.status is not PlanStatus.PROVED_UNSOLVABLE
    assert PROOF not in result.explanation
