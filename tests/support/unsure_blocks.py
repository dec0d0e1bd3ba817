"""The scene of the uncertain blocks, and looks that are taken in a drawn world."""

from __future__ import annotations

import numpy as np

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.plans import Plan

__all__ = ["ON_B", "execute_looks", "succeeds", "unsure_blocks"]

ON_B = "(surely-on a b)"
_FALLEN = 0.04  # error of a fallen block [m], which is at least 0.05 m lower


def unsure_blocks(deviation: float = 0.02, *, turn: float = 0.1) -> SceneGraph:
    """Return three blocks before the Panda with standard deviations in x, y [m] and yaw [rad]."""
    scene = tk.load_scene("panda_alone", "unsure_blocks")
    covariance = np.diag(
        np.square([deviation, deviation, 0.0, 0.0, 0.0, min(turn, 10 * deviation)])
    )
    for block in ("a", "b", "c"):
        scene = scene.set_covariance(block, covariance)
    return scene


def execute_looks(plan: Plan, world: SceneGraph, *, seed: int) -> SceneGraph:
    """Return the scene after a plan's looks in a world; they must precede all motions."""
    scene = plan.scene
    for number, step in enumerate(plan.steps):
        for look in step.observations:
            assert not any(earlier.segments for earlier in plan.steps[:number])
            measured = look.simulate(world, q=step.q, seed=1000 * seed + number)
            scene = scene.condition(
                look.measurement(scene, q=step.q, measured_pose=measured), q=step.q
            )
    return scene


def succeeds(plan: Plan, world: SceneGraph) -> bool:
    """Execute a plan in a world; return whether block ``a`` ends upright at its planned place."""
    return (
        tk.simulate(plan, options=tk.SimulationOptions(world=world)).errors["a"].position < _FALLEN
    )
