"""Task planning in PDDL: domains, problems, states, plans and planners. Knows no geometry.

The idea: a :class:`Domain` says what actions mean, a :class:`Problem` what is to be achieved, a :class:`State` what
holds. All are values that are consistent from the moment they exist, read from files (:func:`load_domain`,
:func:`load_problem`) or built in Python (:func:`make_domain`). A :class:`TaskPlanner`, by default
:class:`FastDownward`, finds the steps; :class:`Z3Planner` is another. :func:`validate_plan` executes them by our own
semantics, which is what counts.

A planner of motions works on a :class:`TranslatedTask`: translated once, then patched with
:meth:`TranslatedTask.forbid` each time a step turns out to be impossible in the presence of certain facts.
"""

from __future__ import annotations

from tmkit.tasks.building import make_action, make_axiom, make_domain, make_parameters, make_predicate
from tmkit.tasks.evaluation import Interpretation, in_words
from tmkit.tasks.fast_downward import FastDownward
from tmkit.tasks.formulas import (
    Add,
    And,
    Arithmetic,
    Atom,
    Comparison,
    Delete,
    Effect,
    EffectAnd,
    Equals,
    Exists,
    Expression,
    Fact,
    Forall,
    ForEach,
    Formula,
    FunctionTerm,
    Imply,
    IncreaseCost,
    Not,
    Number,
    Or,
    Parameter,
    When,
)
from tmkit.tasks.model import Action, Axiom, Domain, GroundAction, Metric, Problem
from tmkit.tasks.pairs import find_conflict, goal_is_impossible
from tmkit.tasks.parser import load_domain, load_problem, parse_domain, parse_goal, parse_problem
from tmkit.tasks.planning import (
    PreparedTask,
    ProvingTask,
    TaskPlanner,
    TaskPlanResult,
    TaskPlanStatistics,
    TaskPlanStatus,
)
from tmkit.tasks.sas import TranslatedTask
from tmkit.tasks.smt import SmtTask, Z3Planner
from tmkit.tasks.state import State, StateDifference
from tmkit.tasks.substitution import free_variables, substitute
from tmkit.tasks.validation import PlanValidation, validate_plan
from tmkit.tasks.vocabulary import Function, Predicate, Type
from tmkit.tasks.writer import domain_to_pddl, problem_to_pddl

__all__ = [
    "Action",
    "Add",
    "And",
    "Arithmetic",
    "Atom",
    "Axiom",
    "Comparison",
    "Delete",
    "Domain",
    "Effect",
    "EffectAnd",
    "Equals",
    "Exists",
    "Expression",
    "Fact",
    "FastDownward",
    "ForEach",
    "Forall",
    "Formula",
    "Function",
    "FunctionTerm",
    "GroundAction",
    "Imply",
    "IncreaseCost",
    "Interpretation",
    "Metric",
    "Not",
    "Number",
    "Or",
    "Parameter",
    "PlanValidation",
    "Predicate",
    "PreparedTask",
    "Problem",
    "ProvingTask",
    "SmtTask",
    "State",
    "StateDifference",
    "TaskPlanResult",
    "TaskPlanStatistics",
    "TaskPlanStatus",
    "TaskPlanner",
    "TranslatedTask",
    "Type",
    "When",
    "Z3Planner",
    "domain_to_pddl",
    "find_conflict",
    "free_variables",
    "goal_is_impossible",
    "in_words",
    "load_domain",
    "load_problem",
    "make_action",
    "make_axiom",
    "make_domain",
    "make_parameters",
    "make_predicate",
    "parse_domain",
    "parse_goal",
    "parse_problem",
    "problem_to_pddl",
    "substitute",
    "validate_plan",
]
