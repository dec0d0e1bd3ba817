"""Task planners: the :class:`TaskPlanner` protocol, Fast Downward and Z3 behind it.

:class:`FastDownward` runs Fast Downward as a separate program; :class:`Z3Planner` encodes a problem
for an SMT solver; :class:`UnifiedPlanner` runs engines of unified-planning.
:func:`execute_with_replanning` acts where actions have several outcomes; :func:`schedule` lays a
plan out in time. A :class:`TranslatedTask` is grounded once, then extended with
:meth:`TranslatedTask.forbid` each time an action turns out to be impossible in the presence of
certain facts.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
