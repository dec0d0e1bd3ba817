"""PDDL: domains, problems, states and task plans, without geometry.

A :class:`Domain` defines predicates and actions; a :class:`Problem` defines objects, initial facts and a goal; a
:class:`State` is the set of facts that hold. All are immutable values, consistent from construction, read from files
(:func:`load_domain`, :func:`load_problem`) or built in Python (:func:`make_domain`). :func:`validate_task_plan`
executes a task plan action by action. Planners are in :mod:`tmkit.task_planning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ValidationStatus
    from tmkit.pddl.building import make_action, make_axiom, make_domain, make_parameters, make_predicate
    from tmkit.pddl.evaluation import Interpretation, in_words
    from tmkit.pddl.formulas import (
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
    from tmkit.pddl.model import Domain, Metric, Problem
    from tmkit.pddl.parsing.parser import load_domain, load_problem, parse_domain, parse_goal, parse_problem
    from tmkit.pddl.schemas import Action, Axiom, GroundAction
    from tmkit.pddl.state import State, StateDifference
    from tmkit.pddl.substitution import free_variables, substitute
    from tmkit.pddl.validation import TaskPlanValidation, validate_task_plan
    from tmkit.pddl.vocabulary import Function, Predicate, Type
    from tmkit.pddl.writer import domain_to_pddl, problem_to_pddl
else:
    __getattr__, __dir__ = lazy_names(__name__)

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
    "Predicate",
    "Problem",
    "State",
    "StateDifference",
    "TaskPlanValidation",
    "Type",
    "ValidationStatus",
    "When",
    "domain_to_pddl",
    "free_variables",
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
    "validate_task_plan",
]
