"""Join plans: the order in which streams give the values of an action, checked with the domain.

For each fact that an action lists, in order, a join plan has the streams that certify it. A stream
whose outputs are new variables gives values; a test rejects combinations of values. A fact that an
earlier stream of the plan certifies as well needs no step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tmkit.errors import TaskError, UnknownNameError
from tmkit.pddl import Domain
from tmkit.tamp.streams.declaration import FactPattern, Stream, StreamAction, StreamKind
from tmkit.tamp.streams.samples import VALUE_TYPES


@dataclass(frozen=True)
class StreamCall:
    """Stream with the variables of an action as its inputs and outputs.

    Attributes:
        stream: the stream.
        inputs: variables or constants of the action, one for each input of the stream.
        outputs: variables of the action, one for each output of the stream.
    """

    stream: Stream
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class JoinStep:
    """Streams that certify one fact.

    Attributes:
        fact: the fact.
        calls: tests, of which one must pass, or generators whose values alternate.
        certified_by: calls of earlier steps whose values satisfy the fact without a test.
    """

    fact: FactPattern
    calls: tuple[StreamCall, ...]
    certified_by: tuple[StreamCall, ...] = ()

    @property
    def is_test(self) -> bool:
        """True if the step only rejects values."""
        return self.calls[0].stream.kind is StreamKind.TEST


@dataclass(frozen=True)
class JoinPlan:
    """Steps that give all values of an action.

    Attributes:
        action: the action.
        steps: steps, in order.
        costs: calls of cost streams.
        types: type of the value of each variable that is not a parameter of the action.
    """

    action: StreamAction
    steps: tuple[JoinStep, ...]
    costs: tuple[StreamCall, ...]
    types: Mapping[str, str]


class JoinPlanner:
    """Planner of joins for the streams and the types of a domain.

    Args:
        domain: PDDL domain.
        streams: its streams.
        value_types: classes by type of value, beside the built-in ones.

    Raises:
        TaskError: if two streams have one name, or a type is unknown.
    """

    def __init__(
        self, domain: Domain, streams: Iterable[Stream], value_types: Mapping[str, type]
    ) -> None:
        self._domain = domain
        self._streams = tuple(streams)
        self._object_types = {"object", *(declared.name for declared in domain.types)}
        self._value_types = {**VALUE_TYPES, **value_types}
        names: set[str] = set()
        for stream in self._streams:
            if stream.name in names:
                raise TaskError.at(str(stream), "another stream of the domain has its name")
            names.add(stream.name)
            self._check_types(stream)

    def _check_types(self, stream: Stream) -> None:
        """Raise an error for a type that is unknown."""
        for variable in stream.outputs:
            if len(variable.types) > 1 or variable.types[0] not in self._value_types:
                unknown = UnknownNameError.of(
                    "type of values", variable.types[0], self._value_types
                )
                raise TaskError.at(str(stream), f"'{variable.name}': {unknown.message}")
        known_names = sorted({*self._object_types, *self._value_types})
        for variable in stream.inputs:
            for name in variable.types:
                if name not in known_names:
                    unknown = UnknownNameError.of("type", name, known_names)
                    raise TaskError.at(str(stream), f"'{variable.name}': {unknown.message}")

    def plan(self, action: StreamAction) -> JoinPlan:
        """Return the join plan of an action.

        Raises:
            TaskError: if no stream certifies a fact with the variables that are bound before it.
        """
        label = f"action '{action.action.name}'"
        types = {parameter.name: parameter.types for parameter in action.action.parameters}
        constants = {constant.name: constant.types for constant in self._domain.constants}
        certified: set[FactPattern] = set()
        steps: list[JoinStep] = []
        for fact in action.given:
            if fact in certified:
                continue
            step = self._find_step(fact, {**constants, **types}, label)
            generators = [call for earlier in steps for call in earlier.calls if call.outputs]
            certified_by = tuple(call for call in generators if fact in _list_facts(call))
            steps.append(replace(step, certified_by=certified_by))
            types.update(_find_output_types(step, label))
            certified |= set.intersection(*(_list_facts(call) for call in step.calls))
        costs = tuple(self._find_cost(term, {**constants, **types}, label) for term in action.costs)
        names = [parameter.name for parameter in action.action.parameters]
        bound_names = [*names, *(name for name in types if name not in names)]
        for argument in action.arguments.values():
            if argument not in bound_names:
                unknown = UnknownNameError.of("variable", argument, bound_names)
                raise TaskError.at(label, unknown.message)
        value_types = {name: types[name][0] for name in types if name not in names}
        return JoinPlan(action, tuple(steps), costs, value_types)

    def _find_step(
        self, fact: FactPattern, types: Mapping[str, tuple[str, ...]], label: str
    ) -> JoinStep:
        """Return the streams that certify a fact, given the types of the bound terms."""
        calls: list[StreamCall] = []
        faults: list[str] = []
        for stream in self._streams:
            if stream.kind is StreamKind.COST:
                continue
            for pattern in stream.certifies:
                if pattern.predicate != fact.predicate:
                    continue
                call = self._match(stream, pattern, fact, types)
                if isinstance(call, StreamCall):
                    calls.append(call)
                else:
                    faults.append(call)
        if not calls:
            predicates = {p.predicate for stream in self._streams for p in stream.certifies}
            if not faults:
                unknown = UnknownNameError.of("certified fact", fact.predicate, predicates)
                raise TaskError.at(label, f"{fact}: {unknown.message}")
            raise TaskError.at(label, f"{fact}: {'; '.join(faults)}")
        tests = [call for call in calls if call.stream.kind is StreamKind.TEST]
        return JoinStep(fact, tuple(tests or calls))

    def _find_cost(
        self, term: FactPattern, types: Mapping[str, tuple[str, ...]], label: str
    ) -> StreamCall:
        """Return the call of the cost stream that defines a term."""
        terms = []
        for stream in self._streams:
            if stream.kind is StreamKind.COST:
                terms.append(stream.certifies[0].predicate)
                if terms[-1] == term.predicate:
                    call = self._match(stream, stream.certifies[0], term, types)
                    if isinstance(call, StreamCall):
                        return call
                    raise TaskError.at(label, f"{term}: {call}")
        unknown = UnknownNameError.of("cost", term.predicate, terms)
        raise TaskError.at(label, f"{term}: {unknown.message}")

    def _match(
        self,
        stream: Stream,
        pattern: FactPattern,
        fact: FactPattern,
        types: Mapping[str, tuple[str, ...]],
    ) -> StreamCall | str:
        """Return the call of a stream that certifies a fact, or the reason why there is none."""
        if len(pattern.terms) != len(fact.terms):
            return f"{stream} certifies {pattern} with {len(pattern.terms)} terms"
        bindings: dict[str, str] = {}
        for variable, term in zip(pattern.terms, fact.terms, strict=True):
            if not variable.startswith("?"):
                if variable != term:
                    return f"{stream} certifies {pattern} for the constant '{variable}' alone"
            elif bindings.setdefault(variable, term) != term:
                return f"{stream} certifies {pattern} with equal terms for '{variable}' alone"
        for input in stream.inputs:
            term = bindings.get(input.name, input.name)
            if term not in types:
                return f"input '{term}' of {stream} has no value before this fact"
            if not self._is_allowed(types[term], input.types):
                return (
                    f"'{term}' is of type {' '.join(types[term])}, but input '{input.name}' of"
                    f" {stream} of type {' '.join(input.types)}"
                )
        outputs = tuple(bindings.get(output.name, output.name) for output in stream.outputs)
        for variable in outputs:
            if variable in types:
                return f"{stream} gives '{variable}', which has a value before this fact"
            if not variable.startswith("?"):
                return f"{stream} gives a value for '{variable}'; expected a variable"
        inputs = tuple(bindings.get(input.name, input.name) for input in stream.inputs)
        return StreamCall(stream, inputs, outputs)

    def _is_allowed(self, types: tuple[str, ...], required: tuple[str, ...]) -> bool:
        """Return whether every type is one of the required types or a subtype of one."""
        return all(
            any(name == other or self._is_subtype(name, other) for other in required)
            for name in types
        )

    def _is_subtype(self, name: str, ancestor: str) -> bool:
        """Return whether an object type is below another."""
        if name not in self._object_types:
            return False
        if ancestor == "object":
            return True
        parents = {declared.name: declared.parents for declared in self._domain.types}
        queue = list(parents.get(name, ()))
        while queue:
            parent = queue.pop()
            if parent == ancestor:
                return True
            queue += parents.get(parent, ())
        return False


def _find_output_types(step: JoinStep, label: str) -> dict[str, tuple[str, ...]]:
    """Return the types of the variables to which every stream of a step gives a value.

    Raises:
        TaskError: if two streams give values of different types.
    """
    first, *further_types = (
        {name: output.types for name, output in zip(c.outputs, c.stream.outputs, strict=True)}
        for c in step.calls
    )
    for call, other in zip(step.calls[1:], further_types, strict=True):
        for name in first.keys() & other.keys():
            if first[name] != other[name]:
                reason = (
                    f"{step.fact}: '{name}' is of type {first[name][0]} from"
                    f" {step.calls[0].stream}, but of type {other[name][0]} from {call.stream}"
                )
                raise TaskError.at(label, reason)
    return {
        name: types
        for name, types in first.items()
        if all(name in other for other in further_types)
    }


def _list_facts(call: StreamCall) -> set[FactPattern]:
    """Return the facts that a call certifies, in the variables of the action."""
    stream = call.stream
    bindings = dict(zip((v.name for v in stream.inputs), call.inputs, strict=True))
    bindings.update(zip((v.name for v in stream.outputs), call.outputs, strict=True))
    return {
        FactPattern(fact.predicate, tuple(bindings.get(term, term) for term in fact.terms))
        for fact in stream.certifies
    }
