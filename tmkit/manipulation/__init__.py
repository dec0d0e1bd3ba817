"""Manipulation: grasps and placements of objects, and the actions made of them.

* ``grasps`` computes poses of a hand at which it can hold an object, from formulas for primitive shapes and from
  samples for meshes.
* ``placements`` computes poses at which an object rests on a surface or in a region, on a stable face.
* ``actions`` turns one action of a task plan into motion of an arm.
* ``samplers`` selects the sampler of grasps and placements of each object; replace one by your own here.

Samplers yield candidates lazily, the best first. Sampling uses scenes and hands only, never PDDL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Change, Impossible, MoveTo, Pick, Place
    from tmkit.manipulation.actions.handover import Handover, handovers
    from tmkit.manipulation.actions.look import Look
    from tmkit.manipulation.actions.motion_budget import MotionBudget
    from tmkit.manipulation.actions.operate import Operate
    from tmkit.manipulation.actions.pick_place import ArmMotion, HandMotion, Refinement
    from tmkit.manipulation.actions.sequence import Sequence
    from tmkit.manipulation.grasps.sampling import Grasp, grasps_of
    from tmkit.manipulation.placements.sampling import (
        Placement,
        PlacementSettings,
        placements_in_region,
        placements_on_surface,
    )
    from tmkit.manipulation.placements.stable_faces import StableFace, resting_height, stable_faces
    from tmkit.manipulation.samplers import (
        GraspRequest,
        GraspSampler,
        PlacementRequest,
        PlacementSampler,
        Samplers,
        Sampling,
        sample_grasps,
        sample_placements,
    )
    from tmkit.manipulation.swept_volume import SweptVolume, swept_volume
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ActionContext",
    "ArmMotion",
    "Candidate",
    "Change",
    "Grasp",
    "GraspRequest",
    "GraspSampler",
    "HandMotion",
    "Handover",
    "Impossible",
    "Look",
    "MotionBudget",
    "MoveTo",
    "Operate",
    "Pick",
    "Place",
    "Placement",
    "PlacementRequest",
    "PlacementSampler",
    "PlacementSettings",
    "Refinement",
    "Samplers",
    "Sampling",
    "Sequence",
    "StableFace",
    "SweptVolume",
    "grasps_of",
    "handovers",
    "placements_in_region",
    "placements_on_surface",
    "resting_height",
    "sample_grasps",
    "sample_placements",
    "stable_faces",
    "swept_volume",
]
