"""Domains: PDDL and its semantics in a scene, with helpers for writing your own.

A domain is PDDL text and a :class:`tmkit.tamp.DomainSemantics`: the objects of a scene, the facts that hold in it, and
the candidates that carry out an action. The names of this package help to write one:

* functions measure how objects stand, compute poses and turns for putting them down, and order grasps;
* :func:`crowded`, :func:`oversized`, :func:`too_high` and :func:`ungraspable` prove goals impossible whatever the
  motions.

:mod:`tmkit.tamp.uncertainty` is for domains that plan under uncertainty, and :mod:`tmkit.spatial.elementary` for plans
with the same bytes on every CPU.
"""

# Modules: ``semantics`` is the base class, ``loading`` reads a domain from a folder or takes it as Python objects,
# ``problems`` derives a PDDL problem from a scene, ``state_derivation`` the state of one scene version from another.

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.tamp.domains.infeasibility import (
        crowded as crowded,
        oversized as oversized,
        too_high as too_high,
        ungraspable as ungraspable,
    )
    from tmkit.tamp.domains.tabletop import (
        RELEASE_GAP as RELEASE_GAP,
        STANDING_TOLERANCE as STANDING_TOLERANCE,
        equivalence_classes as equivalence_classes,
        footprint as footprint,
        grasps_steepest_first as grasps_steepest_first,
        no_grasp as no_grasp,
        pddl_names as pddl_names,
        pick_candidates as pick_candidates,
        quat_xyzw_about_z as quat_xyzw_about_z,
        require_standing as require_standing,
        shape_bounds as shape_bounds,
        standing_pose as standing_pose,
        turns_nearest_first as turns_nearest_first,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
