"""Task-and-motion planning: from a scene and a PDDL goal to a validated plan.

:func:`plan` searches over versions of the scene, guided by a task plan from each. It refines the actions of task plans
into motions, attempts transfers with grasps that are free at both ends, and learns constraints from failures. It
returns a :class:`PlanResult`: a :class:`~tmkit.plans.Plan`, or a :class:`Diagnosis` of why there is none.
:func:`validate_plan` recomputes a plan at finer resolution.

A domain is a folder with ``domain.pddl`` and ``semantics.py``; see :class:`DomainSemantics`. A goal is PDDL, or a scene
that shows the goal; see :func:`goal_of_scene`.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ValidationStatus as ValidationStatus
    from tmkit.tamp.costs import plan_cost as plan_cost
    from tmkit.tamp.diagnosis.diagnosis import (
        ActionDiagnosis as ActionDiagnosis,
        BlockingBody as BlockingBody,
        Diagnosis as Diagnosis,
        FailureCause as FailureCause,
        FailureExample as FailureExample,
        GoalConflict as GoalConflict,
        LearnedConstraint as LearnedConstraint,
        PlanStatus as PlanStatus,
        SearchEnd as SearchEnd,
        Suggestion as Suggestion,
        SuggestionKind as SuggestionKind,
    )
    from tmkit.tamp.domains.infeasibility import Infeasibility as Infeasibility
    from tmkit.tamp.domains.loading import PythonDomain as PythonDomain, load_planning_domain as load_planning_domain
    from tmkit.tamp.domains.planning_domain import PlanningDomain as PlanningDomain
    from tmkit.tamp.domains.problems import goal_of_scene as goal_of_scene
    from tmkit.tamp.domains.semantics import (
        DomainSemantics as DomainSemantics,
        Handled as Handled,
        pddl_name as pddl_name,
    )
    from tmkit.tamp.domains.state_derivation import DerivedState as DerivedState, StateDeriver as StateDeriver
    from tmkit.tamp.domains.traced_scene import incremental as incremental
    from tmkit.tamp.options import (
        Cost as Cost,
        PlanningKeywords as PlanningKeywords,
        PlanningOptions as PlanningOptions,
    )
    from tmkit.tamp.planning import plan as plan
    from tmkit.tamp.portfolio import PortfolioResult as PortfolioResult, plan_portfolio as plan_portfolio
    from tmkit.tamp.problem import Goal as Goal, PlanningProblem as PlanningProblem
    from tmkit.tamp.problem_files import load_planning_problem as load_planning_problem
    from tmkit.tamp.progress import (
        ImprovementProgress as ImprovementProgress,
        PlanningProgress as PlanningProgress,
        PortfolioImprovement as PortfolioImprovement,
        PortfolioProgress as PortfolioProgress,
        ValidationProgress as ValidationProgress,
    )
    from tmkit.tamp.repair import repair_plan as repair_plan
    from tmkit.tamp.result import PlanResult as PlanResult, PlanStatistics as PlanStatistics
    from tmkit.tamp.search_settings import SearchSettings as SearchSettings
    from tmkit.tamp.search_tree import (
        BranchFailure as BranchFailure,
        FrameChange as FrameChange,
        SearchTree as SearchTree,
        SearchTreeNode as SearchTreeNode,
    )
    from tmkit.tamp.scheduling import schedule_plan as schedule_plan
    from tmkit.tamp.uncertainty.probability import (
        Probability as Probability,
        ProbabilityMethod as ProbabilityMethod,
        angle_within as angle_within,
        clearance_at_least as clearance_at_least,
        inside_box as inside_box,
        inside_ellipsoid as inside_ellipsoid,
        inside_half_spaces as inside_half_spaces,
        inside_slabs as inside_slabs,
        sampled_probability as sampled_probability,
    )
    from tmkit.tamp.uncertainty.scene_probability import (
        clears_along as clears_along,
        clears_at as clears_at,
        footprint_inside as footprint_inside,
        near_expected as near_expected,
        point_distribution as point_distribution,
        point_inside as point_inside,
        sample_scene as sample_scene,
        stands_on as stands_on,
        turned_within as turned_within,
    )
    from tmkit.tamp.validation.check import ValidationReport as ValidationReport, validate_plan as validate_plan
    from tmkit.tamp.validation.tmp_plan import load_tmp_plan as load_tmp_plan
else:
    __getattr__, __dir__ = lazy_names(__name__)
