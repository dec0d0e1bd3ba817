"""Simulation: a scene under physics, the execution of a plan in it, and pictures.

:func:`simulate` executes a plan with simulated finger contacts, and reports the deviation of each
object from the plan. :class:`Simulation` is the simulated world, also for other experiments.
pybullet computes the physics. It is imported when the first simulation is made.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
