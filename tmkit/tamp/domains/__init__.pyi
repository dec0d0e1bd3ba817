"""The names that `tmkit.tamp.domains` exports."""

from tmkit.tamp.domains.infeasibility import (
    crowded as crowded,
    oversized as oversized,
    too_high as too_high,
    ungraspable as ungraspable,
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
