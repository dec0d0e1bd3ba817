"""Domains: PDDL and its semantics in a scene, with helpers for custom domains.

A domain is PDDL text and a :class:`tmkit.tamp.DomainSemantics`, which derives the objects of a
scene, the facts that hold in it, and the candidates of actions. The names of this package help to
write one:

* functions measure standing objects, compute poses and turns for placing, and order grasps;
* :func:`prove_crowded`, :func:`prove_oversized`, :func:`prove_too_high` and
  :func:`prove_ungraspable` prove that goals are infeasible for all motions.

:mod:`tmkit.tamp.uncertainty` is for domains that plan under uncertainty, and
:mod:`tmkit.spatial.elementary` for plans with the same bytes on every CPU.
"""

# Modules: ``semantics`` contains the base class, ``loading`` loads a domain from a folder or from
# Python objects, ``problems`` derives a PDDL problem from a scene, and ``state_derivation`` derives
# the state of one scene version from another.

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
