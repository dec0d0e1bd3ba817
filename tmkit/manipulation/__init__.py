"""Manipulation: grasps and placements of objects, and the actions made of them.

* ``grasps`` computes poses of a hand at which it can hold an object, from formulas for primitive
  shapes and from samples for meshes.
* ``placements`` computes poses at which an object rests on a surface or in a region, on a stable
  face.
* ``actions`` turns one action of a task plan into motion of an arm.
* ``samplers`` selects the sampler of grasps and placements of each object; replace one by your own
  here.

Samplers yield candidates lazily, the best first. Sampling uses scenes and hands only, never PDDL.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
