"""Estimation: several observations of one pose, factor graphs of poses, deflection under load.

A scene keeps every observation of an edge; :func:`resolve_observations` resolves them by a :class:`ResolutionPolicy`.
:func:`pose_graph` builds a factor graph, :func:`solve_pose_graph` solves it, :func:`write_back` makes a new version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ConvergenceStatus as ConvergenceStatus, GateStatus as GateStatus
    from tmkit.estimation.compliance import (
        ComplianceModel as ComplianceModel,
        Deflection as Deflection,
        LinearCompliance as LinearCompliance,
        apply_compliance as apply_compliance,
        beam_compliance as beam_compliance,
        joint_compliance as joint_compliance,
    )
    from tmkit.estimation.policies import (
        ByTag as ByTag,
        Estimate as Estimate,
        Fused as Fused,
        Latest as Latest,
        MinCovariance as MinCovariance,
        ResolutionPolicy as ResolutionPolicy,
        associate as associate,
    )
    from tmkit.estimation.pose_graph import (
        PoseFactor as PoseFactor,
        PoseGraph as PoseGraph,
        PoseGraphSolution as PoseGraphSolution,
        pose_graph as pose_graph,
        solution_from_gtsam as solution_from_gtsam,
        solve_pose_graph as solve_pose_graph,
        solve_with_gtsam as solve_with_gtsam,
        to_gtsam_graph as to_gtsam_graph,
        write_back as write_back,
    )
    from tmkit.estimation.resolution import (
        GateResult as GateResult,
        Resolution as Resolution,
        ResolutionStatus as ResolutionStatus,
        resolve_observations as resolve_observations,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
