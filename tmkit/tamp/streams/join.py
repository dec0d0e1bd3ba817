"""Join of the values of an action in one scene version, lazily and fairly.

Values are combined in the order of the join plan. Each further value of a stream starts a new
branch, and the branches take turns. A stream with infinitely many values therefore delays the
others by a bounded number of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tmkit.manipulation.actions.candidates import ActionContext
from tmkit.plans.failures import FailureKind, MotionFailure
from tmkit.robots import movable_frames
from tmkit.tamp.streams.join_plan import JoinPlan, JoinStep, StreamCall
from tmkit.tamp.streams.samples import Sample, SampleTable, Value

Binding = Mapping[str, Value]
"""Values and objects by variable."""


@dataclass(eq=False)
class _StepCount:
    """Counts of one step: bindings that reached it, and bindings that it let pass."""

    reached: int = 0
    passed: int = 0

    def count_binding(self) -> None:
        """Count a binding that reaches the step."""
        self.reached += 1

    def count_pass(self) -> None:
        """Count a binding that the step passes on."""
        self.passed += 1


@dataclass(eq=False)
class Join:
    """Join of an action's values in one scene version.

    Attributes:
        plan: join plan of the action.
        table: samples of the run.
        context: scene version.
        value_types: classes by type of value.
    """

    plan: JoinPlan
    table: SampleTable
    context: ActionContext
    value_types: dict[str, type]
    _counts: list[_StepCount] = field(init=False)
    _calls: dict[tuple[StreamCall, tuple[Value, ...]], None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._counts = [_StepCount() for _ in self.plan.steps]

    def bindings(self, objects: Binding) -> Iterator[Binding | None]:
        """Yield the bindings that satisfy all facts, and None for each one without an extension.

        Args:
            objects: values of the action's parameters and of constants.
        """
        return self._extend(0, objects)

    def _extend(self, index: int, binding: Binding) -> Iterator[Binding | None]:
        """Yield the extensions of a binding by the steps from ``index`` on."""
        if index == len(self.plan.steps):
            yield binding
            return
        step = self.plan.steps[index]
        self._counts[index].count_binding()
        if step.is_test:
            if self._passes(step, binding):
                self._counts[index].count_pass()
                yield from self._extend(index + 1, binding)
            else:
                yield None
            return

        def extend(longer: Binding) -> Iterator[Binding | None]:
            return self._extend(index + 1, longer)

        has_values = False
        for extension in take_turns(self._generate(step, index, binding), extend):
            has_values = True
            yield extension
        if not has_values:
            yield None

    def _passes(self, step: JoinStep, binding: Binding) -> bool:
        """Return whether the streams that gave the values certify a fact, or a test passes."""
        if any(self._gave(call, binding) for call in step.certified_by):
            return True
        for call in step.calls:
            if next(self._samples(call, binding), None) is not None:
                return True
        # A value that one of several tests accepts is not rejected.
        for call in step.calls:
            self.table.refuse(call.stream, self._inputs(call, binding), self.context)
        return False

    def _gave(self, call: StreamCall, binding: Binding) -> bool:
        """Return whether the values of a binding come from a call."""
        sample = binding[call.outputs[0]].sample
        values = tuple(binding[name] for name in call.outputs)
        return (
            sample.stream is call.stream
            and sample.inputs == tuple(binding[name] for name in call.inputs)
            and values == tuple(Value(sample, index) for index in range(len(values)))
        )

    def _generate(self, step: JoinStep, index: int, binding: Binding) -> Iterator[Binding]:
        """Yield the bindings extended by the values of a step, its generators in turn."""
        active = [(call, self._samples(call, binding)) for call in step.calls]
        while active:
            remaining: list[tuple[StreamCall, Iterator[Sample]]] = []
            for call, samples in active:
                sample = next(samples, None)
                if sample is None:
                    continue
                remaining.append((call, samples))
                values = {name: Value(sample, i) for i, name in enumerate(call.outputs)}
                self._counts[index].count_pass()
                yield {**binding, **values}
            active = remaining

    def _samples(self, call: StreamCall, binding: Binding) -> Iterator[Sample]:
        inputs = self._inputs(call, binding)
        return self.table.samples(call.stream, inputs, self.context, self.value_types)

    def _inputs(self, call: StreamCall, binding: Binding) -> tuple[Value, ...]:
        inputs = tuple(binding[name] for name in call.inputs)
        self._calls[call, inputs] = None
        return inputs

    def cost(self, binding: Binding) -> float:
        """Return the sum of the costs of a binding."""
        total = 0.0
        for call in self.plan.costs:
            total += float(next(self._samples(call, binding)).values[0])
        return total

    def frames(self) -> frozenset[str] | None:
        """Return the frames that the streams have read; None if they may be any frames."""
        frames: set[str] = set()
        for call, inputs in self._calls:
            read_frames = self.table.frames(call.stream, inputs, self.context)
            if read_frames is None:
                return None
            frames |= read_frames
        return frozenset(frames)

    def failure(self) -> MotionFailure:
        """Return the failure of an action without a binding: the step at which the values end."""
        index = max((i for i, count in enumerate(self._counts) if count.reached), default=0)
        step, count = self.plan.steps[index], self._counts[index]
        names = " or ".join(f"'{call.stream.name}'" for call in step.calls)
        phase = f"stream {names}" if len(step.calls) == 1 else f"streams {names}"
        frames = self.frames()
        is_path_dependent = self.reads_configuration()
        if step.is_test:
            refused = count.reached - count.passed
            cause = f"refused {refused} of {count.reached} {self._describe_inputs(step)}"
        else:
            cause = f"no value of {' or '.join(sorted({c.outputs[0] for c in step.calls}))}"
            pairs = self._find_neighbours(step)
            if pairs is not None:
                return MotionFailure(
                    phase,
                    cause,
                    pairs,
                    kind=FailureKind.NO_ROOM,
                    is_path_dependent=is_path_dependent,
                    frames=frames,
                )
        return MotionFailure(
            phase,
            cause,
            kind=FailureKind.NO_CHOICE,
            is_path_dependent=is_path_dependent,
            frames=frames,
        )

    def reads_configuration(self) -> bool:
        """Return whether a stream has read the configuration of the arm."""
        return any(
            self.table.reads_configuration(call.stream, inputs, self.context)
            for call, inputs in self._calls
        )

    def _describe_inputs(self, step: JoinStep) -> str:
        """Return the types of values that a test takes, in the plural."""
        call, types = step.calls[0], self.plan.types
        names = [types[variable] for variable in call.inputs if variable in types]
        if not names:
            return "choices of objects"
        return f"{names[0]}s" if len(names) == 1 else f"combinations of {' and '.join(names)}"

    def _find_neighbours(self, step: JoinStep) -> tuple[tuple[str, str], ...] | None:
        """Return pairs of the object and its neighbours on a support without room.

        Returns:
            None if the step requested no placements.
        """
        requests = [
            pair
            for call, inputs in self._calls
            if call in step.calls
            for pair in self.table.placement_requests(call.stream, inputs, self.context)
        ]
        if not requests:
            return None
        object, support = requests[-1]
        scene = self.context.scene
        return tuple(
            (object, name)
            for name in movable_frames(scene)
            if name != object and scene.parent(name) in (support, scene.parent(support))
        )


def take_turns(
    bindings: Iterator[Binding], extend: Callable[[Binding], Iterator[Binding | None]]
) -> Iterator[Binding | None]:
    """Yield the extensions of all bindings, one of each binding in turn.

    Args:
        bindings: bindings, of which there may be infinitely many. One more is taken each turn.
        extend: function that yields the extensions of a binding.
    """
    active: list[Iterator[Binding | None]] = []
    has_more = True
    while has_more or active:
        binding = next(bindings, None) if has_more else None
        if binding is None:
            has_more = False
        else:
            active.append(extend(binding))
        remaining = []
        for extensions in active:
            try:
                extension = next(extensions)
            except StopIteration:
                continue
            remaining.append(extensions)
            yield extension
        active = remaining
