"""Joins reach every satisfying combination of values once, as a join in plain Python does."""

from __future__ import annotations

import inspect
import itertools
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from hypothesis import given, settings, strategies as st

import tmkit as tk
from tmkit.manipulation import ActionContext, Candidate, Samplers, SeededSamplers
from tmkit.pddl import make_domain, make_predicate
from tmkit.tamp.streams import SceneView, stream, stream_action
from tmkit.tamp.streams.declaration import Stream
from tmkit.tamp.streams.join import Binding, Join
from tmkit.tamp.streams.join_plan import JoinPlan, JoinPlanner
from tmkit.tamp.streams.samples import SampleTable

ROBOT = tk.load_manipulator("panda")
SCENE = tk.load_scene("panda_table", "blocks3")
CONTEXT = ActionContext(
    SCENE,
    ROBOT.ready_configuration(SCENE),
    np.random.default_rng(0),
    SeededSamplers(Samplers(), ROBOT, 0),
    {},
)
held = make_predicate("held", "?o - item")
TYPES = {"value": str}
INFINITE = -1
DEPTH = 3
"""Number of values of each infinite generator in the join in plain Python."""

MAX_STEPS = 20_000
"""Number of results within which a join reaches these values."""


@dataclass(frozen=True)
class Generator:
    """Generator of a random problem.

    Attributes:
        name: name of its stream.
        inputs: variables that it takes.
        outputs: variables to which it gives values.
        count: number of values, between 0 and 3, for some inputs fewer; ``INFINITE`` for no end.
        also_certifies: index of a test whose fact the values satisfy; None for none.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    count: int
    also_certifies: int | None = None

    def size(self, values: tuple[str, ...]) -> int:
        """Return the number of values for some inputs."""
        if self.count == INFINITE:
            # Some inputs have no value, others infinitely many.
            return 0 if values and mark(self.name, *values) % 3 == 0 else INFINITE
        return self.count and mark(self.name, *values) % (self.count + 1)

    def rows(self, values: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Yield the values of the outputs."""
        size = self.size(values)
        for rank in itertools.count() if size == INFINITE else range(size):
            yield tuple(f"{self.name}{name}{rank}<{','.join(values)}>" for name in self.outputs)


@dataclass(frozen=True)
class Check:
    """Test of a random problem.

    Attributes:
        inputs: variables that it takes.
        divisors: for each of its streams, the divisor of the accepted marks.
    """

    inputs: tuple[str, ...]
    divisors: tuple[int, ...]


Step = tuple[Generator, ...] | Check


def mark(*texts: str) -> int:
    """Return a number that depends on texts alone."""
    return zlib.crc32(" ".join(texts).encode())


def accepts(step: int, number: int, divisor: int, values: tuple[str, ...]) -> bool:
    """Return whether a stream of a test accepts values."""
    return mark(f"{step}.{number}", *values) % divisor == 0


@st.composite
def problems(draw: st.DrawFn) -> tuple[Step, ...]:
    """Draw generators and tests in the order of an action's facts."""
    steps: list[Step] = []
    bound = ["?o"]
    names = iter("xyzuvw")
    for index in range(draw(st.integers(1, 5))):
        if draw(st.booleans()) or index == 0:
            if len(bound) > 3:
                continue
            outputs = tuple(f"?{next(names)}" for _ in range(draw(st.integers(1, 2))))
            inputs = tuple(draw(st.lists(st.sampled_from(bound), max_size=2, unique=True)))
            alternatives = []
            for number in range(draw(st.integers(1, 2))):
                count = draw(st.sampled_from([0, 1, 2, 3, INFINITE]))
                certifies = index + 1 if draw(st.booleans()) else None
                name = f"g{index}{number}"
                alternatives.append(Generator(name, inputs, outputs, count, certifies))
            steps.append(tuple(alternatives))
            bound += outputs
        else:
            inputs = tuple(draw(st.lists(st.sampled_from(bound), min_size=1, unique=True)))
            divisors = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)))
            steps.append(Check(inputs, divisors))
    return tuple(steps)


def is_certified(steps: tuple[Step, ...], index: int, alternative: Generator) -> bool:
    """Return whether the values of a generator satisfy the fact of the test after it."""
    if index >= len(steps) or alternative.also_certifies != index:
        return False
    check = steps[index]
    known = {*alternative.inputs, *alternative.outputs}
    return isinstance(check, Check) and known >= set(check.inputs)


def typed(names: tuple[str, ...]) -> str:
    """Return a typed list of variables."""
    return " ".join(f"{name} - {'item' if name == '?o' else 'value'}" for name in names)


def make_join(steps: tuple[Step, ...]) -> tuple[Join, Binding]:
    """Return the join of a problem and the values of its objects."""
    streams: list[Stream] = []
    facts: list[str] = []
    for index, step in enumerate(steps):
        if isinstance(step, Check):
            fact = f"(fact{index} {' '.join(step.inputs)})"
            for number, divisor in enumerate(step.divisors):
                streams.append(make_test(index, number, divisor, step.inputs, fact))
        else:
            fact = f"(fact{index} {' '.join((*step[0].inputs, *step[0].outputs))})"
            for alternative in step:
                certifies = fact
                if is_certified(steps, index + 1, alternative):
                    check = steps[index + 1]
                    assert isinstance(check, Check)
                    certifies += f" (fact{index + 1} {' '.join(check.inputs)})"
                streams.append(make_generator(alternative, certifies))
        facts.append(fact)

    @stream_action("?o - item", adds=[held("?o")], given=" ".join(facts))
    def act(view: SceneView, o: str) -> Candidate:
        raise NotImplementedError

    domain = make_domain("joins", types="item", predicates=[held], actions=[act.action])
    plan: JoinPlan = JoinPlanner(domain, streams, TYPES).plan(act)
    table = SampleTable(0)
    return Join(plan, table, CONTEXT, dict(TYPES)), {"?o": table.object_value("a")}


def make_generator(generator: Generator, certifies: str) -> Stream:
    """Return the stream of a generator."""

    class Sampler:
        __name__ = generator.name
        __signature__: inspect.Signature

        def __call__(self, view: SceneView, **inputs: str) -> Iterator[object]:
            del view
            values = tuple(inputs[name[1:]] for name in generator.inputs)
            for row in generator.rows(values):
                yield row if len(row) > 1 else row[0]

    return declare(Sampler(), generator.inputs, gives=typed(generator.outputs), certifies=certifies)


def make_test(
    step: int, number: int, divisor: int, inputs: tuple[str, ...], certifies: str
) -> Stream:
    """Return a stream of a test."""

    class Tester:
        __name__ = f"t{step}{number}"
        __signature__: inspect.Signature

        def __call__(self, view: SceneView, **by_name: str) -> bool:
            del view
            return accepts(step, number, divisor, tuple(by_name[name[1:]] for name in inputs))

    return declare(Tester(), inputs, certifies=certifies)


def declare(function: object, inputs: tuple[str, ...], **facts: str) -> Stream:
    """Return the stream of a function that takes variables by name."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = ("view", *(name[1:] for name in inputs))
    function.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return stream(typed(inputs), **facts)(function)  # type: ignore[arg-type]


Row = tuple[tuple[str, str], ...]


def join_plainly(
    steps: tuple[Step, ...], index: int, row: dict[str, str], last: Generator | None
) -> Iterator[tuple[Row | None, int]]:
    """Yield (combination, number of steps); None for a combination that is rejected there.

    Args:
        steps: the problem; each infinite generator has ``DEPTH`` values.
        index: index of the next step.
        row: values so far.
        last: generator that gave the values of the step before.
    """
    if index == len(steps):
        yield tuple(sorted(row.items())), index
        return
    step = steps[index]
    if isinstance(step, Check):
        values = tuple(row[name] for name in step.inputs)
        passes = last is not None and is_certified(steps, index, last)
        for number, divisor in enumerate(step.divisors):
            passes = passes or accepts(index, number, divisor, values)
        if passes:
            yield from join_plainly(steps, index + 1, row, None)
        else:
            yield None, index
        return
    has_values = False
    for generator in step:
        values = tuple(row[name] for name in generator.inputs)
        for outputs in islice(generator.rows(values), DEPTH):
            has_values = True
            longer = {**row, **dict(zip(generator.outputs, outputs, strict=True))}
            yield from join_plainly(steps, index + 1, longer, generator)
    if not has_values:
        yield None, index


def row_of(binding: Binding) -> Row:
    """Return the values of a binding by variable."""
    return tuple(sorted((name, value.content) for name, value in binding.items()))


def is_finite(steps: tuple[Step, ...]) -> bool:
    """Return whether no generator is infinite."""
    generators = [g for step in steps if not isinstance(step, Check) for g in step]
    return all(generator.count != INFINITE for generator in generators)


@settings(deadline=None, max_examples=150)
@given(problems())
def test_a_join_is_that_of_plain_python(steps: tuple[Step, ...]) -> None:
    """Every satisfying combination is reached, none twice, and none other."""
    join, objects = make_join(steps)
    expected = list(join_plainly(steps, 0, {"?o": "a"}, None))
    rows = {row for row, _ in expected if row is not None}
    reached: Counter[Row] = Counter()
    n_rejected = 0
    for binding in islice(join.bindings(objects), MAX_STEPS):
        if binding is None:
            n_rejected += 1
        else:
            reached[row_of(binding)] += 1
        if not is_finite(steps) and rows <= reached.keys():
            break
    assert rows <= reached.keys()
    assert set(reached.values()) <= {1}
    if is_finite(steps):
        assert reached.keys() == rows
        assert n_rejected == sum(row is None for row, _ in expected)
    for row in reached.keys() - rows:
        assert is_satisfying(steps, dict(row)), row


def is_satisfying(steps: tuple[Step, ...], row: dict[str, str]) -> bool:
    """Return whether values satisfy all facts, wherever they are in infinite sequences."""
    last: Generator | None = None
    for index, step in enumerate(steps):
        if isinstance(step, Check):
            values = tuple(row[name] for name in step.inputs)
            is_passed = last is not None and is_certified(steps, index, last)
            passes = (accepts(index, n, d, values) for n, d in enumerate(step.divisors))
            if not is_passed and not any(passes):
                return False
            last = None
        else:
            (last,) = (g for g in step if row[g.outputs[0]].startswith(f"{g.name}{g.outputs[0]}"))
            inputs = tuple(row[name] for name in last.inputs)
            outputs = tuple(row[name] for name in last.outputs)
            if outputs not in islice(last.rows(inputs), 2 * MAX_STEPS):
                return False
    return True


@settings(deadline=None, max_examples=60)
@given(problems().filter(is_finite))
def test_the_counts_of_a_failure_are_those_of_plain_python(steps: tuple[Step, ...]) -> None:
    """A failure counts the values that reach its test, and those that the test rejects."""
    join, objects = make_join(steps)
    if any(binding is not None for binding in join.bindings(objects)):
        return
    expected = Counter(index for _, index in join_plainly(steps, 0, {"?o": "a"}, None))
    deepest = max(expected)
    failure = join.failure()
    if isinstance(steps[deepest], Check):
        count = expected[deepest]
        assert failure.cause.startswith(f"refused {count} of {count} ")
    else:
        assert failure.cause.startswith("no value of ?")


def test_a_generator_without_values_after_an_infinite_one_ends_no_turn() -> None:
    """Each value of the infinite generator counts as rejected, so a caller can stop."""
    endless = Generator("g00", (), ("?x",), INFINITE)
    empty = Generator("g10", ("?x",), ("?y",), 0)
    join, objects = make_join(((endless,), (empty,)))
    assert list(islice(join.bindings(objects), 500)) == [None] * 500
    assert join.failure().cause == "no value of ?y"
