"""PDDL: domains, problems, states and task plans, without geometry.

A :class:`Domain` defines predicates and actions; a :class:`Problem` defines objects, initial facts and a goal; a
:class:`State` is the set of facts that hold. All are immutable values, consistent from construction, read from files
(:func:`load_domain`, :func:`load_problem`) or built in Python (:func:`make_domain`). :func:`validate_task_plan`
executes a task plan action by action. Planners are in :mod:`tmkit.task_planning`.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ValidationStatus as ValidationStatus
    from tmkit.pddl.building import (
        make_action as make_action,
        make_axiom as make_axiom,
        make_domain as make_domain,
        make_parameters as make_parameters,
        make_predicate as make_predicate,
    )
    from tmkit.pddl.evaluation import Interpretation as Interpretation, in_words as in_words
    from tmkit.pddl.formulas import (
        Action as Action,
        Add as Add,
        And as And,
        Arithmetic as Arithmetic,
        Atom as Atom,
        Axiom as Axiom,
        ChangeNumber as ChangeNumber,
        Comparison as Comparison,
        Delete as Delete,
        Effect as Effect,
        EffectAnd as EffectAnd,
        Equals as Equals,
        Exists as Exists,
        Expression as Expression,
        Fact as Fact,
        ForEach as ForEach,
        Forall as Forall,
        Formula as Formula,
        FunctionTerm as FunctionTerm,
        GroundAction as GroundAction,
        Imply as Imply,
        IncreaseCost as IncreaseCost,
        Not as Not,
        Number as Number,
        Or as Or,
        Parameter as Parameter,
        Timing as Timing,
        When as When,
    )
    from tmkit.pddl.model import Domain as Domain, Metric as Metric, Problem as Problem
    from tmkit.pddl.parsing.parser import (
        load_domain as load_domain,
        load_problem as load_problem,
        parse_domain as parse_domain,
        parse_goal as parse_goal,
        parse_problem as parse_problem,
    )
    from tmkit.pddl.validation import TimedAction as TimedAction, schedule_fault as schedule_fault
    from tmkit.pddl.state import State as State, StateDifference as StateDifference
    from tmkit.pddl.substitution import free_variables as free_variables, substitute as substitute
    from tmkit.pddl.unified import (
        problem_from_unified as problem_from_unified,
        problem_to_unified as problem_to_unified,
    )
    from tmkit.pddl.validation import TaskPlanValidation as TaskPlanValidation, validate_task_plan as validate_task_plan
    from tmkit.pddl.vocabulary import Function as Function, Predicate as Predicate, Type as Type
    from tmkit.pddl.writer import domain_to_pddl as domain_to_pddl, problem_to_pddl as problem_to_pddl
else:
    __getattr__, __dir__ = lazy_names(__name__)
