"""Transfers use the grasps and options of the domain's candidates alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import tmkit as tk
from tmkit.batch.generated_problems import add_box, blocked_problem, table_scene
from tmkit.manipulation import ActionContext, Candidate, Pick, PickPlaceOptions, Place
from tmkit.pddl import GroundAction
from tmkit.plans.observations import covariance_rows
from tmkit.spatial import Pose
from tmkit.tamp import (
    PlanningOptions,
    PlanningProblem,
    PlanResult,
    PythonDomain,
    load_planning_domain,
)
from tmkit.tamp.search.transfers import TransferAttempts

KITCHEN = load_planning_domain("kitchen", robot="panda")
Kitchen = type(KITCHEN.semantics)
OPTIONS = PlanningOptions(seed=0, max_iterations=6, suggest=False)
HEIGHT = 0.16
"""Height of the cans [m]."""


def is_sideways(context: ActionContext, pick: Pick) -> bool:
    """Return whether the approach of a pick is nearly horizontal."""
    tool = context.scene.pose(pick.object, q=context.q) @ pick.grasp.object_from_tool
    return bool(abs(tool.rotation[2, 2]) < 0.5)


class SideGrasps(Kitchen):  # type: ignore[misc, valid-type]
    """Kitchen whose author allows only grasps from the side."""

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Leave out all picks from above or below."""
        for candidate in super().candidates(action, context):
            if not isinstance(candidate, Pick) or is_sideways(context, candidate):
                yield candidate


def can_scene() -> tk.SceneGraph:
    """Return tall cans on the table: the target is enclosed by four others, beside a mat."""
    scene = add_box(table_scene(), "mat", (0.1, 0.1, 0.002), (0.5, 0.4, 0.001), ("region",))
    can = tk.AttachedShape(tk.Box([0.04, 0.04, HEIGHT]))
    for name, x, y in (
        ("target", 0.5, 0.0),
        ("front", 0.42, 0.0),
        ("back", 0.58, 0.0),
        ("left", 0.5, 0.08),
        ("right", 0.5, -0.08),
    ):
        table_from_can = scene.pose("table").inverse() @ Pose([x, y, HEIGHT / 2])
        scene = scene.add_frame(
            name, "table", pose=table_from_can, joint=tk.Free(), classes=["movable"], shapes=[can]
        )
    return scene


def solve(semantics: type, scene: tk.SceneGraph, goal: str) -> PlanResult:
    """Return the result of planning with variants of the kitchen."""
    domain = PythonDomain(KITCHEN.domain, semantics)
    return tk.solve(PlanningProblem(scene, domain=domain, goal=goal, robots="panda"), OPTIONS)


def check_picks(semantics: type, plan: tk.Plan) -> None:
    """Check that each pick of a plan has a grasp that the domain allows in its version."""
    domain = load_planning_domain(PythonDomain(KITCHEN.domain, semantics), robot="panda")
    scene, q = plan.scene, plan.q
    for step in plan.steps:
        if step.action.name == "pick":
            candidates = domain.candidates(step.action, domain.context(scene, q))
            names = {f"grasp {pick.grasp.name}" for pick in candidates if isinstance(pick, Pick)}
            assert step.choice in names
        scene, q = step.scene, step.q


@pytest.fixture
def n_transfers(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that receives whether each attempted transfer has succeeded."""
    outcomes: list[bool] = []
    carry_out = TransferAttempts._carry_out

    def record(attempts: TransferAttempts, *arguments: object) -> object:
        attempt = carry_out(attempts, *arguments)  # type: ignore[arg-type]
        outcomes.append(attempt is not None)
        return attempt

    monkeypatch.setattr(TransferAttempts, "_carry_out", record)
    return outcomes


def test_transfers_use_only_the_grasps_of_the_domain(n_transfers: list[bool]) -> None:
    """A plan with transfers has grasps from the side alone, as its author intends."""
    result = solve(SideGrasps, can_scene(), "(on target mat)")
    assert result.plan is not None, result.explanation
    assert any(n_transfers)
    check_picks(SideGrasps, result.plan)
    for step in result.plan.steps:
        assert "+z" not in step.choice


COVARIANCE = covariance_rows(np.diag([1e-6] * 6))


class OwnOptions(Kitchen):  # type: ignore[misc, valid-type]
    """Kitchen with a lift and a covariance of its own."""

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Set the options of picks and places."""
        for candidate in super().candidates(action, context):
            if isinstance(candidate, Pick | Place):
                motion = PickPlaceOptions(lift_distance=0.031)
                yield replace(candidate, motion=motion, grasp_covariance=COVARIANCE)
            else:
                yield candidate


def test_transfers_keep_the_options_of_the_domain(n_transfers: list[bool]) -> None:
    """The lift and the covariance of the candidates are those of the plan's motions."""
    result = solve(OwnOptions, blocked_problem(seed=0).scene, "(on target mat)")
    assert result.plan is not None, result.explanation
    assert any(n_transfers)
    changes = [s.reparenting for step in result.plan.steps for s in step.segments if s.reparenting]
    assert len(changes) == len(result.plan.steps)
    assert all(change.grasp_covariance == COVARIANCE for change in changes)
    scene, q = result.plan.scene, result.plan.q
    for step in result.plan.steps:
        for segment in step.segments:
            end_scene, end_q = segment.end(scene, q)
            if segment.kind in ("lift", "lower"):
                heights = [
                    s.pose("panda_hand", q=c).translation[2]
                    for s, c in ((scene, q), (end_scene, end_q))
                ]
                assert abs(heights[1] - heights[0]) == pytest.approx(0.031, abs=1e-4)
            scene, q = end_scene, end_q
        scene = step.scene


class OwnGrasps(Kitchen):  # type: ignore[misc, valid-type]
    """Kitchen whose grasps come from no sampler."""

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Rename the grasps."""
        for candidate in super().candidates(action, context):
            if isinstance(candidate, Pick):
                grasp = replace(candidate.grasp, name=f"own {candidate.grasp.name}")
                yield replace(candidate, grasp=grasp)
            else:
                yield candidate


def test_grasps_of_no_sampler_are_kept(n_transfers: list[bool]) -> None:
    """A domain with grasps of its own plans without transfers, by its candidates."""
    problem = blocked_problem(gap=0.08, seed=0)
    result = solve(OwnGrasps, problem.scene, "(on target mat)")
    assert result.plan is not None, result.explanation
    assert not n_transfers
    check_picks(OwnGrasps, result.plan)
