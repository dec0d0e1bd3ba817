"""The names that `tmkit.manipulation` exports."""

from tmkit.manipulation.actions.basic_motions import ActionMotion as ActionMotion
from tmkit.manipulation.actions.candidates import (
    ActionContext as ActionContext,
    Candidate as Candidate,
    ApplyEffects as ApplyEffects,
    CloseHand as CloseHand,
    DeadEnd as DeadEnd,
    Follow as Follow,
    MoveStraight as MoveStraight,
    MoveTo as MoveTo,
    OpenHand as OpenHand,
    Pick as Pick,
    Place as Place,
    Sequence as Sequence,
    Touch as Touch,
)
from tmkit.manipulation.actions.handover import Handover as Handover, handovers as handovers
from tmkit.manipulation.actions.look import Look as Look
from tmkit.manipulation.actions.operate import OperateJoint as OperateJoint
from tmkit.manipulation.actions.pick_place import (
    ArmMotionPlanner as ArmMotionPlanner,
    PickPlaceOptions as PickPlaceOptions,
)
from tmkit.manipulation.actions.pour import Pour as Pour, pours as pours
from tmkit.manipulation.actions.primitives import MotionSettings as MotionSettings
from tmkit.manipulation.actions.push import Push as Push
from tmkit.manipulation.concave_objects import with_convex_pieces as with_convex_pieces
from tmkit.manipulation.grasp_files.loading import load_grasps as load_grasps
from tmkit.manipulation.grasps.sampling import Grasp as Grasp, grasps_of as grasps_of
from tmkit.manipulation.placements.sampling import (
    Placement as Placement,
    PlacementSettings as PlacementSettings,
    placements_in_region as placements_in_region,
    placements_on_surface as placements_on_surface,
)
from tmkit.manipulation.placements.stable_faces import stable_faces as stable_faces
from tmkit.manipulation.racks import rests as rests
from tmkit.manipulation.samplers import (
    GraspRequest as GraspRequest,
    PlacementRequest as PlacementRequest,
    Samplers as Samplers,
    SeededSamplers as SeededSamplers,
    sample_grasps as sample_grasps,
    sample_placements as sample_placements,
)
from tmkit.manipulation.swept_volume import swept_volume as swept_volume
