"""Estimation: several observations of one pose, factor graphs of poses, deflection under load.

A scene keeps every observation of an edge; :func:`resolve_observations` resolves them by a :class:`ResolutionPolicy`.
:func:`pose_graph` builds a factor graph from a scene, :func:`solve_pose_graph` solves it, :func:`write_back` writes the
solution into a new version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names
from tmkit.estimation.pose_graph import (
    PoseFactor,
    PoseGraph,
    PoseGraphSolution,
    pose_graph,
    solve_pose_graph,
    write_back,
)

if TYPE_CHECKING:
    from tmkit._support.results import ConvergenceStatus, GateStatus
    from tmkit.estimation.compliance import (
        ComplianceModel,
        Deflection,
        LinearCompliance,
        apply_compliance,
        beam_compliance,
        joint_compliance,
    )
    from tmkit.estimation.gtsam import solution_from_gtsam, solve_with_gtsam, to_gtsam_graph
    from tmkit.estimation.observations import Observation, Observations
    from tmkit.estimation.resolution import GateResult, Resolution, ResolutionStatus, resolve_observations
    from tmkit.estimation.resolution_policies import ByTag, Estimate, Fused, Latest, MinCovariance, ResolutionPolicy
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ByTag",
    "ComplianceModel",
    "ConvergenceStatus",
    "Deflection",
    "Estimate",
    "Fused",
    "GateResult",
    "GateStatus",
    "Latest",
    "LinearCompliance",
    "MinCovariance",
    "Observation",
    "Observations",
    "PoseFactor",
    "PoseGraph",
    "PoseGraphSolution",
    "Resolution",
    "ResolutionPolicy",
    "ResolutionStatus",
    "apply_compliance",
    "beam_compliance",
    "joint_compliance",
    "pose_graph",
    "resolve_observations",
    "solution_from_gtsam",
    "solve_pose_graph",
    "solve_with_gtsam",
    "to_gtsam_graph",
    "write_back",
]
