"""Records of streams: counts of their calls, and trials of their values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tmkit._support.results import Displayed, plain_values
from tmkit.graph import SceneGraph


class TrialOutcome(StrEnum):
    """Outcome of an attempt with a value."""

    SUCCEEDED = "succeeded"
    """The action with the value has a motion."""
    FAILED = "failed"
    """The first attempt at a motion with the value fails; a later one may succeed."""
    REFUSED = "refused"
    """A test rejects the value."""


@dataclass(frozen=True, eq=False)
class Trial:
    """An attempt with a value of a stream, from which a sampler can learn.

    Attributes:
        stream: name of the stream that gave the value.
        inputs: inputs of the stream: names of frames, and values.
        value: the value.
        scene: scene version in which the value was tried.
        outcome: outcome of the attempt.
        reason: cause of the failure, or the test that rejects the value; empty after a success.
    """

    stream: str
    inputs: tuple[Any, ...]
    value: Any
    scene: SceneGraph
    outcome: TrialOutcome
    reason: str = ""

    @property
    def succeeded(self) -> bool:
        """True if the action with the value has a motion."""
        return self.outcome is TrialOutcome.SUCCEEDED

    def to_dict(self) -> dict[str, Any]:
        """Return the trial as plain values, with the digest of the scene."""
        return {
            "stream": self.stream,
            "inputs": plain_values(self.inputs),
            "value": plain_values(self.value),
            "scene": self.scene.digest(),
            "outcome": self.outcome.value,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class StreamUse(Displayed):
    """Counts of one stream in a planning run.

    Attributes:
        stream: name of the stream.
        calls: number of calls of its function.
        values: number of values that it gave; for a test, the number of inputs that passed.
        used: number of values with which an action has a motion.
        refused: number of values that a test rejects; for a test, the number of its rejections.
    """

    stream: str
    calls: int = 0
    values: int = 0
    used: int = 0
    refused: int = 0


def sum_uses(uses: Iterable[StreamUse]) -> tuple[StreamUse, ...]:
    """Return one count for each stream, in order of name."""
    sums: dict[str, StreamUse] = {}
    for use in uses:
        previous = sums.get(use.stream, StreamUse(use.stream))
        sums[use.stream] = StreamUse(
            use.stream,
            previous.calls + use.calls,
            previous.values + use.values,
            previous.used + use.used,
            previous.refused + use.refused,
        )
    return tuple(use for _, use in sorted(sums.items()))
