"""Simulation: a scene under physics, a plan executed in it, pictures of it.

:func:`simulate` executes a plan with real fingers on real contacts and says how far each object
ended from where the plan puts it. :class:`Simulation` is the world that this happens in, for
experiments of one's own. pybullet does the physics; it is imported when the first simulation is
made.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
