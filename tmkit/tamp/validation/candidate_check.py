"""Check of the motions that candidates from outside the package yield.

A built-in candidate checks its motions while it computes them. A candidate of a user's domain may
yield any motion, so each one is validated as a step of a plan (:class:`StepCheck`) before the
search continues from its scene. An invalid motion is a failure, and the search tries the next one.
Therefore every step of a plan has passed the rules that :func:`~tmkit.tamp.validate_plan` applies.

Invariants: motions of built-in candidates are checked only while bodies overlap as at the start of
the plan, since the candidates do not check that they do not overlap again. Arrays of an accepted
motion are copies, so a candidate may reuse its buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tmkit._support.argument_errors import callable_name
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.candidates import Candidate, Sequence as CandidateSequence
from tmkit.motion import CollisionRules
from tmkit.pddl import GroundAction
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.plans.values import Configuration
from tmkit.spatial.plain import read_only
from tmkit.tamp.validation.step_check import StepCheck

_PACKAGE = "tmkit."
"""Start of the module names of built-in candidates."""


class CandidateCheck:
    """Check of motions in plans from one start.

    Args:
        rules: allowed contacts that follow from the start of the plan, while the first arm acts.
    """

    def __init__(self, rules: CollisionRules) -> None:
        self._steps = StepCheck(rules)

    def overlaps_since_start(self, scene: SceneGraph, q: Configuration) -> bool:
        """Return whether bodies overlap as at the start of the plan.

        Args:
            scene: scene before an action.
            q: (n_joints,) configuration before the action.
        """
        return bool(self._steps.rules.remaining_contacts(scene, q))

    def verify(
        self,
        motion: ActionMotion,
        action: GroundAction,
        candidate: Candidate,
        *,
        scene: SceneGraph,
        q: Configuration,
    ) -> ActionMotion | MotionFailure:
        """Return a motion with copied arrays, or the failure that names its first fault.

        The time is that of the plan validator for one step: linear in the length of the path.

        Args:
            motion: motion of the action.
            action: the action.
            candidate: candidate that yields the motion.
            scene: scene before the action.
            q: (n_joints,) configuration before the action.
        """
        motion = _with_own_arrays(motion)
        fault = self._steps.first_fault(motion.step(action), scene, q)
        if fault is None:
            return motion
        names = " and ".join(f"'{name}'" for name in outside_names(candidate))
        subject = f"candidate {names} yields" if names else f"{candidate!r} has"
        cause = f"{subject} an invalid motion: {fault}"
        return MotionFailure("validation", cause, kind=FailureKind.INVALID_MOTION)


def outside_names(candidate: Candidate | None) -> tuple[str, ...]:
    """Return the classes from outside the package of a candidate and the parts of a sequence.

    Args:
        candidate: candidate of an action; None for a motion of an earlier plan.

    Returns:
        Names of classes without repetitions; empty if the motion is that of built-in candidates.
    """
    return tuple(dict.fromkeys(_outside_names(candidate)))


def _outside_names(candidate: Candidate | None) -> Iterator[str]:
    if isinstance(candidate, CandidateSequence):
        for part in candidate.candidates:
            yield from _outside_names(part)
    if candidate is not None and not type(candidate).__module__.startswith(_PACKAGE):
        yield callable_name(candidate)


def _with_own_arrays(motion: ActionMotion) -> ActionMotion:
    """Return a motion whose configurations and paths are read-only copies."""
    segments = tuple(
        replace(segment, path=read_only(np.array(segment.path, dtype=float)))
        for segment in motion.segments
    )
    return replace(motion, segments=segments, q=read_only(np.array(motion.q, dtype=float)))
