"""Manipulation: grasps and placements of objects, and the actions made of them.

* ``grasps`` computes poses of a hand at which it can hold an object, from formulas for primitive shapes and from
  samples for meshes.
* ``placements`` computes poses at which an object rests on a surface or in a region, on a stable face.
* ``actions`` turns one action of a task plan into motion of an arm.
* ``samplers`` selects the sampler of grasps and placements of each object; replace one by your own here.

Samplers yield candidates lazily, the best first. Sampling uses scenes and hands only, never PDDL.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.manipulation.actions.candidates import (
        ActionContext as ActionContext,
        Candidate as Candidate,
        Change as Change,
        Impossible as Impossible,
        MoveTo as MoveTo,
        Pick as Pick,
        Place as Place,
        Sequence as Sequence,
    )
    from tmkit.manipulation.actions.handover import Handover as Handover, handovers as handovers
    from tmkit.manipulation.actions.look import Look as Look
    from tmkit.manipulation.actions.operate import Operate as Operate
    from tmkit.manipulation.actions.pick_place import (
        ArmMotion as ArmMotion,
        HandMotion as HandMotion,
        Refinement as Refinement,
    )
    from tmkit.manipulation.actions.pour import Pour as Pour, pours as pours
    from tmkit.manipulation.actions.primitives import MotionBudget as MotionBudget
    from tmkit.manipulation.actions.push import Push as Push
    from tmkit.manipulation.concave_objects import with_convex_pieces as with_convex_pieces
    from tmkit.manipulation.grasps.sampling import Grasp as Grasp, grasps_of as grasps_of
    from tmkit.manipulation.racks import rests as rests
    from tmkit.manipulation.placements.sampling import (
        Placement as Placement,
        PlacementSettings as PlacementSettings,
        placements_in_region as placements_in_region,
        placements_on_surface as placements_on_surface,
    )
    from tmkit.manipulation.placements.stable_faces import (
        StableFace as StableFace,
        resting_height as resting_height,
        stable_faces as stable_faces,
    )
    from tmkit.manipulation.samplers import (
        GraspRequest as GraspRequest,
        GraspSampler as GraspSampler,
        PlacementRequest as PlacementRequest,
        PlacementSampler as PlacementSampler,
        Samplers as Samplers,
        Sampling as Sampling,
        sample_grasps as sample_grasps,
        sample_placements as sample_placements,
    )
    from tmkit.manipulation.swept_volume import SweptVolume as SweptVolume, swept_volume as swept_volume
else:
    __getattr__, __dir__ = lazy_names(__name__)
