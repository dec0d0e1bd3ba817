"""Task-and-motion planning: from a scene and a PDDL goal to a validated plan.

:func:`plan` searches over versions of the scene, guided by a task plan from each. It refines the
actions of task plans into motions, attempts transfers with grasps that are free at both ends, and
learns constraints from failures. It returns a :class:`PlanResult`: a :class:`~tmkit.plans.Plan`, or
a :class:`Diagnosis` of why there is none. :func:`validate_plan` recomputes a plan at finer
resolution.

A domain is a folder with ``domain.pddl`` and ``semantics.py``; see :class:`DomainSemantics`. A goal
is PDDL, or a scene that shows the goal; see :func:`goal_of_scene`.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
