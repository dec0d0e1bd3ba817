"""PDDL: domains, problems, states and task plans, without geometry.

A :class:`Domain` defines predicates and actions; a :class:`Problem` defines objects, initial facts
and a goal; a :class:`State` is the set of facts that hold. All are immutable values, consistent
from construction, read from files (:func:`load_domain`, :func:`load_problem`) or built in Python
(:func:`make_domain`). :func:`validate_task_plan` executes a task plan action by action. Planners
are in :mod:`tmkit.task_planning`.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
