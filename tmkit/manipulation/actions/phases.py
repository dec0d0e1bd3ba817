"""Phases of an action: a version of the scene, what may touch meanwhile, and how paths in it are checked.

Invariants: planner and checker use the same resolutions.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmkit.graph import SceneGraph
from tmkit.motion import CollisionWorld, Exemption, PathCheck, PathConstraint, path_fault
from tmkit.plans.values import Configuration

NearPairs = tuple[tuple[str, str], ...]
"""Pairs of frames that need not keep the planning margin during an action."""

PLANNING_RESOLUTION = 0.01
"""Radians or metres between checked configurations while planning."""

CHECK_RESOLUTION = 0.003
"""Radians or metres between checked configurations in the final check."""

CHECK_TRAVEL = 0.001
"""Metres of tool travel between checked configurations in the final check."""


@dataclass(frozen=True, eq=False)
class Phase:
    """A version of the scene with what may touch meanwhile.

    Attributes:
        scene: the version.
        exemptions: pairs that may be nearer than the margin.
        world: collision world with the planning margin.
        check_world: the same without margin.
        near: pairs that need not keep the margin.
        constraints: what frames keep along paths.
    """

    scene: SceneGraph
    exemptions: tuple[Exemption, ...]
    world: CollisionWorld
    check_world: CollisionWorld
    near: NearPairs = ()
    constraints: tuple[PathConstraint, ...] = ()

    def check(self, tool: str) -> PathCheck:
        """Return the fine check of a path along which the frame ``tool`` moves."""
        return PathCheck(self.check_world, CHECK_RESOLUTION, tool, CHECK_TRAVEL)

    def constraint_fault(self, path: Configuration) -> str | None:
        """Return in words how far a path (k, n_joints) leaves the constraints; None if it keeps them."""
        return path_fault(self.scene, path, self.constraints, resolution=CHECK_RESOLUTION)
