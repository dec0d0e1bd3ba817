"""Several candidates one after the other, as one action: regrasping, for one.

An action of a domain may need more than one pick or place: to turn an object over, an arm puts it on a support and
takes it by another side. :class:`Sequence` refines its candidates in order, each in the scene version that the one
before it left, depth first: when a later one fails, the earlier ones go on to their next motion.

Invariants: the motion of a sequence is the motions of its candidates, end to end; equal arguments give equal results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tmkit.errors import ConfigurationError
from tmkit.manipulation.actions.candidates import ActionContext, Candidate
from tmkit.manipulation.actions.pick_place import ArmMotion, Refinement
from tmkit.plans.failures import MotionFailure


@dataclass(frozen=True)
class Sequence:
    """Carry out several candidates one after the other.

    ``Sequence((Place(object, table, pose), Pick(object, other_grasp)))`` regrasps an object that is in the hand.

    Attributes:
        candidates: what to do, in order; at least one.
        object: frame of the object that it is about, if it is about one; failures are taken to depend on it.
    """

    candidates: tuple[Candidate, ...]
    object: str | None = None

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield motions of all parts, and failures of parts in between.

        Args:
            arm: computes motions of the first arm.
            context: scene and configuration before the action, samplers, and the other arms.
            seed: seed of the motion planner.
        """
        return self._after(Refinement((), context.scene, context.q, ""), 0, arm, context, seed)

    def _after(
        self, done: Refinement, index: int, arm: ArmMotion, context: ActionContext, seed: int
    ) -> Iterator[Refinement | MotionFailure]:
        """Yield motions for the candidates from ``index`` on, behind what is done."""
        if index == len(self.candidates):
            yield done
            return
        here = replace(context, scene=done.scene, q=done.q)
        own_seed = int(np.random.SeedSequence((seed, index)).generate_state(1)[0])
        for attempt in self.candidates[index].refine(arm, here, seed=own_seed):
            if isinstance(attempt, MotionFailure):
                yield attempt
            else:
                yield from self._after(_joined(done, attempt), index + 1, arm, context, seed)


def _joined(first: Refinement, second: Refinement) -> Refinement:
    if first.observations and second.segments:
        looked = first.observations[0].frame
        raise ConfigurationError(f"a look at '{looked}' must end its sequence: what comes after it is another action")
    return Refinement(
        (*first.segments, *second.segments),
        second.scene,
        second.q,
        ", then ".join(choice for choice in (first.choice, second.choice) if choice),
        (*first.changes, *second.changes),
        (*first.observations, *second.observations),
    )
