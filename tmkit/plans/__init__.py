"""Plans: what the planner returns, as values, and their files and execution.

``values`` defines a plan: its steps, and the segments of motion of each step. A step may change the
classes of frames (``class_changes``) or measure poses (``observations``). ``continuous_goals`` are
goals that facts cannot express. ``failures`` describes why a motion was not found. ``plan_file``
writes and reads plans as JSON, and writes the format of the original TMKit. ``schedule`` has steps
of several arms at once, ``execution`` executes a plan on a robot or simulator, and ``export``
writes it in time for other programs.

:func:`tmkit.tamp.validate_plan` validates a plan.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
