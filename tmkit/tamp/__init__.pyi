"""Exports of `tmkit.tamp`."""

from tmkit.tamp.costs import plan_cost as plan_cost
from tmkit.tamp.diagnosis.diagnosis import Diagnosis as Diagnosis, PlanStatus as PlanStatus
from tmkit.tamp.domains.infeasibility import Infeasibility as Infeasibility
from tmkit.tamp.domains.loading import (
    PythonDomain as PythonDomain,
    load_planning_domain as load_planning_domain,
)
from tmkit.tamp.domains.planning_domain import PlanningDomain as PlanningDomain
from tmkit.tamp.domains.semantics import (
    DomainSemantics as DomainSemantics,
    ObjectToMove as ObjectToMove,
)
from tmkit.tamp.domains.traced_scene import incremental as incremental
from tmkit.tamp.options import Cost as Cost, PlanningOptions as PlanningOptions
from tmkit.tamp.planning import plan as plan, solve as solve
from tmkit.tamp.portfolio import plan_portfolio as plan_portfolio
from tmkit.tamp.problem import Goal as Goal, PlanningProblem as PlanningProblem
from tmkit.tamp.problem_files import load_planning_problem as load_planning_problem
from tmkit.tamp.progress import (
    ImprovementProgress as ImprovementProgress,
    PlanningProgress as PlanningProgress,
)
from tmkit.tamp.refining import Successor as Successor, refine as refine, successors as successors
from tmkit.tamp.repair import repair_plan as repair_plan
from tmkit.tamp.result import PlanResult as PlanResult
from tmkit.tamp.resumption import resume_plan as resume_plan
from tmkit.tamp.scheduling import schedule_plan as schedule_plan
from tmkit.tamp.search_settings import SearchSettings as SearchSettings
from tmkit.tamp.search_tree import SearchTree as SearchTree
from tmkit.tamp.uncertainty.probability import Probability as Probability, inside_box as inside_box
from tmkit.tamp.uncertainty.scene_probability import (
    point_inside as point_inside,
    pose_probability as pose_probability,
    sample_scene as sample_scene,
    stands_on as stands_on,
)
from tmkit.tamp.validation.check import (
    ValidationReport as ValidationReport,
    validate_plan as validate_plan,
)
from tmkit.tamp.validation.tmp_plan import load_tmp_plan as load_tmp_plan
