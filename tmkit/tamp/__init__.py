"""Task-and-motion planning: from a scene and a PDDL goal to a validated plan.

:func:`plan` obtains a skeleton of actions from the task planner, refines each action into motion in the scene version
that the previous action left, learns constraints from failures, and returns a :class:`PlanResult`: a
:class:`~tmkit.plans.Plan`, or a :class:`Diagnosis` of why there is none. :func:`validate_plan` recomputes a plan at
finer resolution.

A domain is a folder with ``domain.pddl`` and ``semantics.py``; see :class:`DomainSemantics`. A goal is PDDL, or a scene
that shows the goal; see :func:`goal_of_scene`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ValidationStatus
    from tmkit.tamp.diagnosis.diagnosis import (
        ActionDiagnosis,
        BlockingBody,
        Diagnosis,
        FailureCause,
        FailureExample,
        GoalConflict,
        LearnedConstraint,
        PlanStatus,
        SearchEnd,
        Suggestion,
        SuggestionKind,
    )
    from tmkit.tamp.domains.infeasibility import Infeasibility
    from tmkit.tamp.domains.loading import PlanningDomain, PythonDomain, load_planning_domain
    from tmkit.tamp.domains.semantics import DomainSemantics, pddl_name
    from tmkit.tamp.domains.state_derivation import DerivedState, StateDeriver
    from tmkit.tamp.domains.traced_scene import incremental
    from tmkit.tamp.goals.goal_scenes import goal_of_scene
    from tmkit.tamp.options import PlanningKeywords, PlanningOptions
    from tmkit.tamp.planning import plan
    from tmkit.tamp.portfolio import PortfolioResult, plan_portfolio
    from tmkit.tamp.problem import Goal, PlanningProblem
    from tmkit.tamp.problem_files import load_planning_problem
    from tmkit.tamp.progress import ImprovementProgress, PlanningProgress, PortfolioProgress, ValidationProgress
    from tmkit.tamp.result import PlanResult, PlanStatistics
    from tmkit.tamp.uncertainty.ellipsoids import inside_ellipsoid
    from tmkit.tamp.uncertainty.probability import (
        Probability,
        ProbabilityMethod,
        angle_within,
        clearance_at_least,
        inside_box,
        inside_half_spaces,
        inside_slabs,
        sampled_probability,
    )
    from tmkit.tamp.uncertainty.scene_probability import (
        clears_along,
        clears_at,
        footprint_inside,
        near_expected,
        point_distribution,
        point_inside,
        sample_scene,
        stands_on,
        turned_within,
    )
    from tmkit.tamp.validation.check import ValidationReport, validate_plan
    from tmkit.tamp.validation.tmp_plan import load_tmp_plan
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ActionDiagnosis",
    "BlockingBody",
    "DerivedState",
    "Diagnosis",
    "DomainSemantics",
    "FailureCause",
    "FailureExample",
    "Goal",
    "GoalConflict",
    "ImprovementProgress",
    "Infeasibility",
    "LearnedConstraint",
    "PlanResult",
    "PlanStatistics",
    "PlanStatus",
    "PlanningDomain",
    "PlanningKeywords",
    "PlanningOptions",
    "PlanningProblem",
    "PlanningProgress",
    "PortfolioProgress",
    "PortfolioResult",
    "Probability",
    "ProbabilityMethod",
    "PythonDomain",
    "SearchEnd",
    "StateDeriver",
    "Suggestion",
    "SuggestionKind",
    "ValidationProgress",
    "ValidationReport",
    "ValidationStatus",
    "angle_within",
    "clearance_at_least",
    "clears_along",
    "clears_at",
    "footprint_inside",
    "goal_of_scene",
    "incremental",
    "inside_box",
    "inside_ellipsoid",
    "inside_half_spaces",
    "inside_slabs",
    "load_planning_domain",
    "load_planning_problem",
    "load_tmp_plan",
    "near_expected",
    "pddl_name",
    "plan",
    "plan_portfolio",
    "point_distribution",
    "point_inside",
    "sample_scene",
    "sampled_probability",
    "stands_on",
    "turned_within",
    "validate_plan",
]
