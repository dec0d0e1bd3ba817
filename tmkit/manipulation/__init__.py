"""Grasps, placements, and the motions of manipulation actions.

* ``grasps`` computes grasp poses of a hand, from formulas for primitive shapes and from samples for
  meshes.
* ``placements`` computes poses at which an object rests on a surface or in a region, on a stable
  face.
* ``actions`` computes the motion of an arm for one action of a task plan.
* ``samplers`` selects the sampler of grasps and placements of each object. Custom samplers are
  registered there.

Samplers yield candidates lazily, the best first. Sampling depends on scenes and hands only, not on
PDDL.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
