"""Samples of streams, shared by all scene versions in which their reads are equal.

A *run* is one call of a stream's function in a scene version. It is lazy: the function advances
only when a sample is requested that no version has requested before. A run serves another version
as long as the queries that it has read so far have equal results there. At the first difference,
a new run serves the other version and repeats the samples before it.

Invariants: the samples of a version depend on the version, the inputs and the seed alone, not on
the order in which versions request them. The function is called once for equal inputs and reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from tmkit._support.time_limits import check_time
from tmkit.errors import MissingExtraError, SamplerError, TimeLimitError, TmkitError
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.candidates import ActionContext
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.manipulation.placements.sampling import Placement
from tmkit.spatial import Pose
from tmkit.spatial.plain import read_only
from tmkit.tamp.domains.planning_domain import innermost_location
from tmkit.tamp.streams.declaration import Stream, StreamKind
from tmkit.tamp.streams.records import StreamUse, Trial, TrialOutcome
from tmkit.tamp.streams.scene_view import Query, SceneView, query_frames, reads_arm, run_query

VALUE_TYPES: dict[str, type] = {
    "configuration": np.ndarray,
    "grasp": Grasp,
    "motion": ActionMotion,
    "path": np.ndarray,
    "placement": Placement,
    "pose": Pose,
}
"""Types of values that every domain has, with their classes."""

MAX_TRIALS = 100_000
"""Maximum number of recorded trials of a planning run."""

_MAX_TEXT = 60
"""Largest length of a value in a message [characters]."""

_DIGEST_BYTES = 16
"""Length of the hashes that seed streams [bytes]."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A value of a stream, or an object.

    Attributes:
        values: values of the outputs; empty for a passed test; the frame of an object.
        digest: hash of the stream, its inputs and the rank of the sample, which seeds the streams
            that take the sample as an input.
        stream: stream that gave the sample; None for an object.
        inputs: inputs of the stream.
    """

    values: tuple[Any, ...]
    digest: bytes
    stream: Stream | None = None
    inputs: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Value:
    """Output of a sample.

    Attributes:
        sample: the sample.
        index: index of the output.
    """

    sample: Sample
    index: int = 0

    @property
    def content(self) -> Any:
        """The value itself."""
        return self.sample.values[self.index]

    @property
    def digest(self) -> bytes:
        """Hash of the sample and the index."""
        return self.sample.digest + bytes([self.index])


@dataclass(eq=False)
class _Counts:
    """Counts of one stream."""

    calls: int = 0
    values: int = 0
    used: set[Sample] = field(default_factory=set)
    refused: set[object] = field(default_factory=set)

    def count_call(self) -> None:
        """Count a call of the function."""
        self.calls += 1

    def count_value(self) -> None:
        """Count a value."""
        self.values += 1

    def note_use(self, sample: Sample) -> None:
        """Record a value with which an action has a motion."""
        self.used.add(sample)

    def note_refusal(self, inputs: object) -> bool:
        """Record a rejected value, or the inputs of a test; return whether it is the first time."""
        count = len(self.refused)
        self.refused.add(inputs)
        return len(self.refused) > count


class _Run:
    """Call of a stream's function in a scene version.

    Attributes:
        view: scene version with the queries so far.
        samples: samples so far.
        counts: counts of the stream.
        read_counts: number of queries before each sample, and before the end.
        is_exhausted: whether the function has no further sample.
    """

    def __init__(
        self,
        stream: Stream,
        inputs: tuple[Value, ...],
        *,
        digest: bytes,
        context: ActionContext,
        value_types: dict[str, type],
        counts: _Counts,
    ) -> None:
        self.samples: list[Sample] = []
        self.read_counts: list[int] = []
        self.is_exhausted = False
        self.counts = counts
        self._stream, self._inputs, self._digest = stream, inputs, digest
        self._context, self._value_types = context, value_types
        self._is_interrupted = False
        self._start()

    def _start(self) -> None:
        """Call the function, and skip the samples so far."""
        self.counts.count_call()
        rng = np.random.default_rng(int.from_bytes(self._digest, "little"))
        self.view = SceneView(self._context, rng)
        results = _call(self._stream, self.view, self._inputs, self._value_types)
        self._results = islice(results, len(self.samples), None)

    def advance(self) -> None:
        """Compute the next sample, or note the end."""
        check_time()
        if self._is_interrupted:
            self._start()
        # A generator that a time limit has interrupted would seem exhausted.
        self._is_interrupted = True
        values = next(self._results, None)
        self._is_interrupted = False
        self.read_counts.append(len(self.view.reads))
        if values is None:
            self.is_exhausted = True
            return
        self.counts.count_value()
        digest = hash_text(f"rank {len(self.samples)}", self._digest)
        self.samples.append(Sample(values, digest, self._stream, self._inputs))

    def repeat(self, previous: _Run, count: int) -> None:
        """Repeat the first samples of a run with equal queries, and take over its samples."""
        while len(self.samples) < count and not self.is_exhausted:
            self.advance()
        self.samples[:count] = previous.samples[: len(self.samples[:count])]

    def frames(self) -> frozenset[str] | None:
        """Return the frames that the queries read; None if they may read any frame."""
        frames: set[str] = set()
        for query in self.view.reads:
            read_frames = query_frames(query)
            if read_frames is None:
                return None
            frames |= read_frames
        return frozenset(frames)


_Call = tuple[Stream, tuple[Value, ...]]
"""A stream with its inputs."""


class SampleTable:
    """All samples of one planning run.

    Args:
        seed: seed of the run.

    Attributes:
        trials: attempts with values, in the order of the search.
    """

    def __init__(self, seed: int) -> None:
        self.trials: list[Trial] = []
        self._seed = seed
        # Runs by stream and inputs, then by the queries before the first sample, then by results.
        self._runs: dict[_Call, dict[tuple[Query, ...], dict[object, list[_Run]]]] = {}
        self._counts: dict[str, _Counts] = {}
        self._objects: dict[str, Value] = {}

    def object_value(self, frame: str) -> Value:
        """Return an object as an input of streams."""
        if frame not in self._objects:
            self._objects[frame] = Value(Sample((frame,), hash_text(f"object {frame}")))
        return self._objects[frame]

    def samples(
        self,
        stream: Stream,
        inputs: tuple[Value, ...],
        context: ActionContext,
        value_types: dict[str, type],
    ) -> Iterator[Sample]:
        """Yield the samples of a stream in a scene version.

        Args:
            stream: the stream.
            inputs: its inputs.
            context: the scene version.
            value_types: classes by type of value, beside :data:`VALUE_TYPES`.

        Raises:
            SamplerError: if the function fails, or gives a value of a wrong type.
        """
        number, run = 0, self._obtain_run(stream, inputs, context, value_types)
        while True:
            if not _serves(run, number, context):
                run = self._obtain_run(
                    stream, inputs, context, value_types, previous=run, number=number
                )
            if number == len(run.samples):
                return
            yield run.samples[number]
            number += 1

    def frames(
        self, stream: Stream, inputs: tuple[Value, ...], context: ActionContext
    ) -> frozenset[str] | None:
        """Return the frames that a stream may have read in a version; None if it may be any.

        They include the frames of runs that differ from that of the version after the first sample.
        """
        frames: set[str] = set()
        for run in self._find_runs((stream, inputs), context):
            read_frames = run.frames()
            if read_frames is None:
                return None
            frames |= read_frames
        return frozenset(frames)

    def reads_configuration(
        self, stream: Stream, inputs: tuple[Value, ...], context: ActionContext
    ) -> bool:
        """Return whether a stream has read the configuration of the arm in a version."""
        runs = self._find_runs((stream, inputs), context)
        return any(reads_arm(query, context) for run in runs for query in run.view.reads)

    def placement_requests(
        self, stream: Stream, inputs: tuple[Value, ...], context: ActionContext
    ) -> list[tuple[str, str]]:
        """Return the object and support pairs whose placements a stream requested."""
        runs = self._find_runs((stream, inputs), context)
        return [pair for run in runs for pair in run.view.placement_requests]

    def uses(self) -> tuple[StreamUse, ...]:
        """Return the counts of all streams, in order of name."""
        return tuple(
            StreamUse(name, counts.calls, counts.values, len(counts.used), len(counts.refused))
            for name, counts in sorted(self._counts.items())
        )

    def refuse(self, test: Stream, inputs: tuple[Value, ...], context: ActionContext) -> None:
        """Record that a test rejects its inputs."""
        if not self._count(test).note_refusal(inputs):
            return
        for value in inputs:
            if value.sample.stream is not None:
                self._count(value.sample.stream).note_refusal(value.sample)
                self.record(value.sample, context, TrialOutcome.REFUSED, str(test))

    def use(self, sample: Sample, context: ActionContext) -> None:
        """Record that an action with a sample has a motion."""
        if sample.stream is not None:
            self._count(sample.stream).note_use(sample)
            self.record(sample, context, TrialOutcome.SUCCEEDED)

    def record(
        self, sample: Sample, context: ActionContext, outcome: TrialOutcome, reason: str = ""
    ) -> None:
        """Record the outcome of an attempt with a sample."""
        if sample.stream is None or len(self.trials) >= MAX_TRIALS:
            return
        values = sample.values
        value = values[0] if len(values) == 1 else values
        inputs = tuple(input.content for input in sample.inputs)
        trial = Trial(sample.stream.name, inputs, value, context.scene, outcome, reason)
        self.trials.append(trial)

    def _count(self, stream: Stream) -> _Counts:
        return self._counts.setdefault(stream.name, _Counts())

    def _obtain_run(
        self,
        stream: Stream,
        inputs: tuple[Value, ...],
        context: ActionContext,
        value_types: dict[str, type],
        *,
        previous: _Run | None = None,
        number: int = 0,
    ) -> _Run:
        """Return a run that serves a version up to a sample, stored or new.

        Args:
            stream: the stream.
            inputs: its inputs.
            context: the scene version.
            value_types: classes by type of value.
            previous: run that serves the version up to the sample before.
            number: number of the sample.
        """
        call = stream, inputs
        for run in self._find_runs(call, context):
            if _serves(run, number, context):
                return run
        digest = hash_text(f"{self._seed} {stream.name}", *(value.digest for value in inputs))
        counts = self._count(stream)
        run = _Run(
            stream, inputs, digest=digest, context=context, value_types=value_types, counts=counts
        )
        run.advance()
        first_reads = dict(run.view.reads)
        if previous is not None:
            run.repeat(previous, number)
        runs_by_result = self._runs.setdefault(call, {}).setdefault(tuple(first_reads), {})
        runs_by_result.setdefault(tuple(first_reads.values()), []).append(run)
        _serves(run, number, context)  # advances to the sample
        return run

    def _find_runs(self, call: _Call, context: ActionContext) -> Iterator[_Run]:
        """Yield the runs whose queries before the first sample have equal results in a version."""
        for queries, runs_by_result in self._runs.get(call, {}).items():
            try:
                results = tuple(run_query(query, context) for query in queries)
            except TmkitError:  # a frame of the run is missing in this version
                continue
            yield from runs_by_result.get(results, ())


def _serves(run: _Run, number: int, context: ActionContext) -> bool:
    """Return whether a run gives sample ``number`` of a version; it advances as far as needed."""
    while len(run.read_counts) <= number and not run.is_exhausted:
        run.advance()
    read_count = run.read_counts[min(number, len(run.read_counts) - 1)]
    # A new query may have been recorded since the first sample.
    queries = list(run.view.reads.items())[run.read_counts[0] : read_count]
    return all(_has_result(query, result, context) for query, result in queries)


def _has_result(query: Query, result: object, context: ActionContext) -> bool:
    """Return whether a query has a result in a version."""
    try:
        return run_query(query, context) == result
    except TmkitError:
        return False


def hash_text(text: str, *parts: bytes) -> bytes:
    """Return a 16-byte hash of a text and further hashes."""
    return hashlib.blake2b(b"\0".join((text.encode(), *parts)), digest_size=_DIGEST_BYTES).digest()


def _call(
    stream: Stream, view: SceneView, inputs: tuple[Value, ...], value_types: dict[str, type]
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of a stream: of a generator its outputs, of a passed test nothing.

    Raises:
        SamplerError: if the function fails, or gives a value of a wrong type.
    """
    by_name = {
        variable.name: value.content for variable, value in zip(stream.inputs, inputs, strict=True)
    }
    arguments = {name: by_name[variable] for name, variable in stream.arguments.items()}
    label = f"{stream} of ({', '.join(_describe(value) for value in by_name.values())})"
    try:
        result = stream.function(view, **arguments)
        if stream.kind is StreamKind.TEST:
            if not isinstance(result, bool | np.bool_):
                raise _wrong_value(stream, f"returns {shorten(result)}, no bool")
            if result:
                yield ()
            return
        if stream.kind is StreamKind.COST:
            yield (_require_cost(result, stream),)
            return
        if not isinstance(result, Iterable):
            raise _wrong_value(stream, f"returns {shorten(result)}; expected an iterable of values")
        for values in result:
            yield _require_values(values, stream, value_types, view)
    except (MissingExtraError, MemoryError, SamplerError):
        raise
    except Exception as error:
        if isinstance(error, TimeLimitError):
            check_time()  # raises unless the time limit is one of the function itself
        code = getattr(stream.function, "__code__", None)
        files = () if code is None else (code.co_filename,)
        path, line = innermost_location(error, files) or (None, None)
        place = "" if path is None else f" in {path}:{line}"
        reason = f"{label} fails{place}: {type(error).__name__}: {error}"
        raise SamplerError(reason, sampler=stream.name) from error


def _require_cost(result: Any, stream: Stream) -> float:
    """Return a cost.

    Raises:
        SamplerError: if it is not a finite number of at least 0.
    """
    is_number = isinstance(result, int | float | np.floating | np.integer)
    if isinstance(result, bool) or not is_number or not 0.0 <= result < np.inf:
        raise _wrong_value(stream, f"returns {shorten(result)}, no finite number of at least 0")
    return float(result)


def _require_values(
    values: Any, stream: Stream, value_types: dict[str, type], view: SceneView
) -> tuple[Any, ...]:
    """Return the values of the outputs.

    Raises:
        SamplerError: if their number or a type is wrong.
    """
    outputs = stream.outputs
    parts = (values,) if len(outputs) == 1 else values
    if not isinstance(parts, tuple) or len(parts) != len(outputs):
        names = ", ".join(output.name for output in outputs)
        raise _wrong_value(stream, f"gives {shorten(values)}, no tuple of ({names})")
    copies: list[Any] = []
    for part, output in zip(parts, outputs, strict=True):
        name = output.types[0]
        expected = {**VALUE_TYPES, **value_types}[name]
        if not isinstance(part, expected):
            article = "an" if expected.__name__[0] in "aeiouAEIOU" else "a"
            raise _wrong_value(
                stream,
                f"gives {shorten(part)} for '{output.name} - {name}'; expected"
                f" {article} {expected.__name__}",
            )
        if name == "configuration":
            _require_configuration(part, stream, output.name, view)
        # The function may reuse its array for the next value.
        copies.append(read_only(part.copy()) if isinstance(part, np.ndarray) else part)
    return tuple(copies)


def _require_configuration(part: Any, stream: Stream, variable: str, view: SceneView) -> None:
    """Raise an error unless a value is a finite configuration of the scene."""
    n_joints = len(view._context.q)
    if part.shape != (n_joints,) or not np.all(np.isfinite(part)):
        raise _wrong_value(
            stream,
            f"gives an array of shape {part.shape} for '{variable}'; expected {n_joints} finite"
            " joint values",
        )


def _wrong_value(stream: Stream, reason: str) -> SamplerError:
    return SamplerError(f"{stream} {reason}", sampler=stream.name)


def _describe(value: Any) -> str:
    """Return an object's name, or the type of another value."""
    return value if isinstance(value, str) else type(value).__name__


def shorten(value: object) -> str:
    """Return a value as text of bounded length."""
    return repr(value)[:_MAX_TEXT]
