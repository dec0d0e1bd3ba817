"""Rest of objects: at the start within tolerances, after a placement without.

A start is accepted as it is measured: an object may lean, overhang the edge of its region, or be
slightly above or in its support. It is an obstacle that may be taken. An object that an action
places must rest (:meth:`DomainSemantics.rest_fault`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.motion import StartTolerances
from tmkit.plans.values import Segment, SegmentKind
from tmkit.robots import movable_frames
from tmkit.tamp.domains.semantics import DomainSemantics


def accept_start(
    semantics: DomainSemantics, scene: SceneGraph, tolerances: StartTolerances
) -> Iterator[str]:
    """Yield a note for each object that does not rest at the start.

    Args:
        semantics: semantics of the domain.
        scene: scene at the start.
        tolerances: accepted distances of objects from their supports.

    Raises:
        SceneError: if an object is above its support by more than ``floating``, or in it by more
            than ``sinking``.
    """
    for object in movable_frames(scene):
        fault = semantics.rest_fault(scene, object)
        if fault is None:
            continue
        for name, distance in (("floating", fault.gap), ("sinking", -fault.gap)):
            limit = getattr(tolerances, name)
            if distance > limit:
                reason = f"a start may differ by up to start_{name} = {limit:g} m"
                raise SceneError(f"{fault.text}; {reason}", frame=object)
        yield f"{fault.text}; it is accepted as it stands"


def placement_fault(
    semantics: DomainSemantics, segments: Sequence[Segment], scene: SceneGraph
) -> str | None:
    """Return the reason why an object that segments place does not rest, or None.

    Args:
        semantics: semantics of the domain.
        segments: segments of one action.
        scene: scene after the action.
    """
    for segment in segments:
        change = segment.reparenting
        if segment.kind is SegmentKind.RELEASE and change is not None:
            fault = semantics.rest_fault(scene, change.frame)
            if fault is not None:
                return fault.text
    return None
