"""The names that `tmkit.tamp.domains` exports."""

from tmkit.tamp.domains.infeasibility import prove_oversized as prove_oversized
from tmkit.tamp.domains.tabletop import (
    no_grasp as no_grasp,
    pddl_names as pddl_names,
    pick_candidates as pick_candidates,
    shape_bounds as shape_bounds,
    standing_pose as standing_pose,
    turns_nearest_first as turns_nearest_first,
)
