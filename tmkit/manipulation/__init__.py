"""Sampling: where a hand may hold a thing, and where the thing may stand.

Geometry decides before any arm moves: a hand of a certain opening fits on some sides of an object and not on others,
and an object stays only on some of its faces. So there are two families here, and both give candidates lazily, best
first:

* *grasps*: ``grasps`` asks by kind of shape, ``grasps_shapes`` answers with formulas and ``grasps_meshes`` with
  samples; ``grasps_hand`` checks that the hand alone fits; ``grasps_values`` says what a grasp is.
* *placements*: ``placements`` on surfaces and in regions. ``placements_surfaces`` finds flat areas in a scene,
  ``stable_faces`` how an object can lie, ``placements_solids`` and ``placements_polygons`` how far it reaches and where
  its outline fits, ``placements_postures`` puts these together, and ``placements_order`` says what to try first.

``samplers`` is the door: who is asked for which object, and how to put a sampler of one's own in.

This package knows scenes and hands; it imports nothing else of the planner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names
from tmkit.manipulation.swept_volume import SweptVolume, swept_volume

if TYPE_CHECKING:
    from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Change, Impossible, MoveTo, Pick, Place
    from tmkit.manipulation.actions.handover import Handover, handovers
    from tmkit.manipulation.actions.look import Look
    from tmkit.manipulation.actions.operate import Operate
    from tmkit.manipulation.actions.pick_place import ArmMotion, Refinement
    from tmkit.manipulation.actions.primitives import MotionBudget
    from tmkit.manipulation.actions.sequence import Sequence
    from tmkit.manipulation.grasps.sampling import Grasp, grasps_of
    from tmkit.manipulation.placements.sampling import (
        Placement,
        PlacementSettings,
        placements_in_region,
        placements_on_surface,
    )
    from tmkit.manipulation.placements.stable_faces import StableFace, stable_faces
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
    "sample_grasps",
    "sample_placements",
    "stable_faces",
    "swept_volume",
]
