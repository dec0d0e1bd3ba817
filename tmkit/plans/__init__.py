"""Plans as values, with their files, timing and execution.

``values`` defines a plan, its steps, and the motion segments of each step. A step may change the
classes of frames (``class_changes``) or measure poses (``observations``). ``continuous_goals`` are
goals that facts cannot express, and ``failures`` describes failed motions. ``plan_file`` writes and
reads plans as JSON, and writes the format of the original TMKit. ``schedule`` contains steps of
several arms at the same time, ``execution`` executes a plan on a robot or simulator, and ``export``
writes it for other programs.

:func:`tmkit.tamp.validate_plan` validates a plan.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
