"""Domains: PDDL and its semantics in a scene, with helpers for writing your own.

A domain is PDDL text and a :class:`tmkit.tamp.DomainSemantics`: the objects of a scene, the facts
that hold in it, and the candidates that carry out an action. The names of this package help to
write one:

* functions measure how objects stand, compute poses and turns for putting them down, and order
  grasps;
* :func:`prove_crowded`, :func:`prove_oversized`, :func:`prove_too_high` and
  :func:`prove_ungraspable` prove goals impossible whatever the motions.

:mod:`tmkit.tamp.uncertainty` is for domains that plan under uncertainty, and
:mod:`tmkit.spatial.elementary` for plans with the same bytes on every CPU.
"""

# Modules: ``semantics`` is the base class, ``loading`` reads a domain from a folder or takes it as
# Python objects, ``problems`` derives a PDDL problem from a scene, ``state_derivation`` the state
# of one scene version from another.

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
