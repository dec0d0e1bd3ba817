"""The names that `tmkit.estimation` exports."""

from tmkit.estimation.compliance import (
    Deflection as Deflection,
    LinearCompliance as LinearCompliance,
    apply_compliance as apply_compliance,
    beam_compliance as beam_compliance,
    joint_compliance as joint_compliance,
)
from tmkit.estimation.policies import (
    ByTag as ByTag,
    Fused as Fused,
    Latest as Latest,
    MinCovariance as MinCovariance,
)
from tmkit.estimation.pose_graph import (
    pose_graph as pose_graph,
    solve_pose_graph as solve_pose_graph,
    solve_with_gtsam as solve_with_gtsam,
    write_back as write_back,
)
from tmkit.estimation.resolution import resolve_observations as resolve_observations
