"""Task-and-motion planning: from a scene and a PDDL goal to a checked plan.

``plan`` asks the task planner for a skeleton of actions, refines each action into motion in the scene version that the
previous one left, learns from failures, and gives a :class:`PlanResult`: a :class:`Plan`, or why there is none. A plan
can be saved, loaded, and checked by :func:`check_plan`, which works everything out again at finer steps.

Your own domain is a folder with ``domain.pddl`` and ``semantics.py``; see :class:`DomainSemantics`. A goal is PDDL, or
another scene that shows what is wanted; see :func:`goal_of_scene`.
"""

from tmkit.planner.actions.arm_motion import ArmMotion, Refinement
from tmkit.planner.actions.candidates import ActionContext, Candidate, Change, Impossible, MoveTo, Pick, Place
from tmkit.planner.actions.handover import Handover, handovers
from tmkit.planner.actions.looking import Look
from tmkit.planner.actions.motion_pieces import MotionBudget
from tmkit.planner.actions.operating import Operate
from tmkit.planner.actions.sequence import Sequence
from tmkit.planner.checks.checking import CheckReport, check_plan
from tmkit.planner.domains.derivation import DerivedState, StateDeriver, kept
from tmkit.planner.domains.ellipsoid_probability import inside_ellipsoid
from tmkit.planner.domains.loading import PlanningDomain, PythonDomain, load_planning_domain
from tmkit.planner.domains.probability import (
    Probability,
    ProbabilityMethod,
    angle_within,
    clearance_at_least,
    inside_box,
    inside_half_spaces,
    inside_slabs,
    sampled_probability,
)
from tmkit.planner.domains.refutations import Refutation
from tmkit.planner.domains.scene_probability import (
    clears_along,
    clears_at,
    drawn_world,
    footprint_inside,
    near_expected,
    point_distribution,
    point_inside,
    stands_on,
    turned_within,
)
from tmkit.planner.domains.semantics import (
    AlikeSemantics,
    BelievingSemantics,
    ConfiguredSemantics,
    DomainSemantics,
    GoalSemantics,
    PlacementSemantics,
    ProvingSemantics,
    pddl_name,
)
from tmkit.planner.goals.attaining import ContinuousGoals
from tmkit.planner.goals.continuous_goals import ArmAt, ContinuousGoal, ObjectAt, ObjectIn
from tmkit.planner.goals.goal_scenes import goal_of_scene
from tmkit.planner.plans.class_changes import ClassChange, with_class_changes
from tmkit.planner.plans.diagnosis import (
    ActionDiagnosis,
    BlockingBody,
    Diagnosis,
    FailureCause,
    FailureExample,
    GoalConflict,
    LearnedConstraint,
    Remedy,
    RemedyKind,
    SearchEnd,
)
from tmkit.planner.plans.executors import Executor, TimedMotion, execute
from tmkit.planner.plans.failures import FailureKind, MotionFailure
from tmkit.planner.plans.observations import CameraModel, Observation, covariance_rows
from tmkit.planner.plans.results import PlanResult, PlanStatistics, PlanStatus
from tmkit.planner.plans.swept_volume import SweptVolume, swept_volume
from tmkit.planner.plans.values import Plan, PlanStep, Reparenting, Segment, SegmentKind
from tmkit.planner.progress import CheckProgress, ImprovementProgress, PlanningProgress, PortfolioProgress
from tmkit.planner.sampling.grasps import Grasp, grasps_of
from tmkit.planner.sampling.placements import (
    Placement,
    PlacementSettings,
    lies_in_region,
    placements_in_region,
    placements_on_surface,
)
from tmkit.planner.sampling.placements_surfaces import SupportSurface, region_surface, support_surfaces
from tmkit.planner.sampling.samplers import (
    GraspRequest,
    GraspSampler,
    PlacementRequest,
    PlacementSampler,
    Samplers,
    Sampling,
    sample_grasps,
    sample_placements,
)
from tmkit.planner.sampling.stable_faces import StableFace, stable_faces
from tmkit.planner.search import plan
from tmkit.planner.workers.portfolio import PlanningSettings, PortfolioResult, plan_portfolio

__all__ = [
    "ActionContext",
    "ActionDiagnosis",
    "AlikeSemantics",
    "ArmAt",
    "ArmMotion",
    "BelievingSemantics",
    "BlockingBody",
    "CameraModel",
    "Candidate",
    "Change",
    "CheckProgress",
    "CheckReport",
    "ClassChange",
    "ConfiguredSemantics",
    "ContinuousGoal",
    "ContinuousGoals",
    "DerivedState",
    "Diagnosis",
    "DomainSemantics",
    "Executor",
    "FailureCause",
    "FailureExample",
    "FailureKind",
    "GoalConflict",
    "GoalSemantics",
    "Grasp",
    "GraspRequest",
    "GraspSampler",
    "Handover",
    "Impossible",
    "ImprovementProgress",
    "LearnedConstraint",
    "Look",
    "MotionBudget",
    "MotionFailure",
    "MoveTo",
    "ObjectAt",
    "ObjectIn",
    "Observation",
    "Operate",
    "Pick",
    "Place",
    "Placement",
    "PlacementRequest",
    "PlacementSampler",
    "PlacementSemantics",
    "PlacementSettings",
    "Plan",
    "PlanResult",
    "PlanStatistics",
    "PlanStatus",
    "PlanStep",
    "PlanningDomain",
    "PlanningProgress",
    "PlanningSettings",
    "PortfolioProgress",
    "PortfolioResult",
    "Probability",
    "ProbabilityMethod",
    "ProvingSemantics",
    "PythonDomain",
    "Refinement",
    "Refutation",
    "Remedy",
    "RemedyKind",
    "Reparenting",
    "Samplers",
    "Sampling",
    "SearchEnd",
    "Segment",
    "SegmentKind",
    "Sequence",
    "StableFace",
    "StateDeriver",
    "SupportSurface",
    "SweptVolume",
    "TimedMotion",
    "angle_within",
    "check_plan",
    "clearance_at_least",
    "clears_along",
    "clears_at",
    "covariance_rows",
    "drawn_world",
    "execute",
    "footprint_inside",
    "goal_of_scene",
    "grasps_of",
    "handovers",
    "inside_box",
    "inside_ellipsoid",
    "inside_half_spaces",
    "inside_slabs",
    "kept",
    "lies_in_region",
    "load_planning_domain",
    "near_expected",
    "pddl_name",
    "placements_in_region",
    "placements_on_surface",
    "plan",
    "plan_portfolio",
    "point_distribution",
    "point_inside",
    "region_surface",
    "sample_grasps",
    "sample_placements",
    "sampled_probability",
    "stable_faces",
    "stands_on",
    "support_surfaces",
    "swept_volume",
    "turned_within",
    "with_class_changes",
]
