"""The names that `tmkit.tamp.domains` exports."""

from tmkit.tamp.domains.infeasibility import (
    prove_crowded as prove_crowded,
    prove_oversized as prove_oversized,
    prove_too_high as prove_too_high,
    prove_ungraspable as prove_ungraspable,
)
from tmkit.tamp.domains.tabletop import (
    object_symmetries as object_symmetries,
    no_grasp as no_grasp,
    pddl_names as pddl_names,
    pick_candidates as pick_candidates,
    require_standing as require_standing,
    shape_bounds as shape_bounds,
    standing_pose as standing_pose,
    turns_nearest_first as turns_nearest_first,
)
