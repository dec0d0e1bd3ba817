"""Declarations of streams and of actions whose values come from streams.

Variables, types and facts are checked when a declaration is evaluated. The types of objects are
checked with the domain (:mod:`tmkit.tamp.streams.join_plan`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from tmkit.errors import TaskError, UnknownNameError
from tmkit.pddl.building import make_action, make_parameters
from tmkit.pddl.formulas import Action, Atom, Effect, Formula, Parameter

_UNNAMED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)
"""Kinds of parameters that take no variable."""

_NOT_FIRST = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
"""Kinds of parameters that take no scene view."""

StreamFunction = Callable[..., Any]
"""Function of a :class:`~tmkit.tamp.streams.SceneView` and of the inputs that it names."""


class StreamKind(StrEnum):
    """Kinds of streams, by the result of their function."""

    GENERATOR = "generator"
    """The function yields values, best first."""
    TEST = "test"
    """The function returns whether its inputs satisfy the certified facts."""
    COST = "cost"
    """The function returns a finite cost of at least 0."""


@dataclass(frozen=True)
class FactPattern:
    """A fact with variables.

    Attributes:
        predicate: name of the predicate.
        terms: variables, such as ``?o``, and constants.
    """

    predicate: str
    terms: tuple[str, ...]

    def __str__(self) -> str:
        return f"({' '.join((self.predicate, *self.terms))})"


@dataclass(frozen=True, eq=False)
class Stream:
    """Declared sampler, test or cost; :func:`stream` makes it of a function.

    Attributes:
        name: name of the function.
        inputs: input variables with their types: types of the domain or of values.
        outputs: output variables with the types of their values.
        certifies: facts that every result satisfies; for a cost, the term that it defines.
        kind: kind of the result.
        function: function of a scene view and inputs.
        arguments: input variables that the function takes, by parameter.
    """

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    certifies: tuple[FactPattern, ...]
    kind: StreamKind
    function: StreamFunction
    arguments: Mapping[str, str]

    def __str__(self) -> str:
        return f"stream '{self.name}'"


@dataclass(frozen=True, eq=False)
class StreamAction:
    """Action whose values come from streams; :func:`stream_action` makes it of a function.

    Attributes:
        action: action in PDDL.
        given: facts that the values satisfy, in the order in which the values are sampled.
        costs: terms of cost streams that are added to the cost of the action.
        function: function of a scene view, objects and values that returns a candidate.
        arguments: variables that the function takes, by parameter.
    """

    action: Action
    given: tuple[FactPattern, ...]
    costs: tuple[FactPattern, ...]
    function: StreamFunction
    arguments: Mapping[str, str]


def stream(
    inputs: str = "", *, gives: str = "", certifies: str = "", cost: str = ""
) -> Callable[[StreamFunction], Stream]:
    """Declare a function as a stream: a decorator.

    The function takes a :class:`~tmkit.tamp.streams.SceneView` and any of the inputs by the names
    of their variables. Other parameters need defaults. Objects arrive as names of frames, values as
    they were sampled, arrays read-only. A bound method or an object with ``__call__`` is declared
    by a call: ``learned = stream(...)(model.sample)``.

    * With ``gives`` it is a generator. It yields one value for each output, as a tuple if there are
      several. It may yield infinitely many.
    * With ``certifies`` alone it is a test and returns a bool.
    * With ``cost`` it is a cost and returns a number.

    The result must depend on the inputs, the queries of the scene view and its random generator
    alone. Then one call serves all scene versions in which these queries have equal results.

    Args:
        inputs: typed list of input variables: ``"?o - item ?g - grasp"``.
        gives: typed list of output variables: ``"?p - placement"``.
        certifies: facts in the variables: ``"(placement ?o ?p)"``. Each output must occur in one.
        cost: term in the inputs whose value the function returns: ``"(distance ?a ?b)"``.

    Raises:
        TaskError: if a variable is unknown or declared twice, an output is in no fact, or the
            function has a parameter of another name. The message has the name of the function.
    """

    def declare(function: StreamFunction) -> Stream:
        name = getattr(function, "__name__", type(function).__name__)
        label = f"stream '{name}'"
        input_variables, outputs = make_parameters(inputs), make_parameters(gives)
        variables = _require_distinct((*input_variables, *outputs), label)
        facts = parse_facts(cost or certifies, label)
        kind = _find_kind(gives, certifies, cost, label)
        known_names = [variable.name for variable in input_variables] if cost else variables
        for fact in facts:
            require_variables(fact, known_names, label)
        terms = {term for fact in facts for term in fact.terms}
        for output in outputs:
            if output.name not in terms:
                raise TaskError.at(label, f"output '{output.name}' is in no certified fact")
        arguments = _match_arguments(function, [v.name for v in input_variables], label)
        return Stream(name, input_variables, outputs, facts, kind, function, arguments)

    return declare


def stream_action(
    parameters: str = "",
    *,
    needs: Iterable[Formula] = (),
    adds: Iterable[Atom] = (),
    deletes: Iterable[Atom] = (),
    effects: Iterable[Effect] = (),
    given: str = "",
    costs: str = "",
) -> Callable[[StreamFunction], StreamAction]:
    """Declare a function as an action whose values come from streams: a decorator.

    The function has the name of the action. It takes a
    :class:`~tmkit.tamp.streams.SceneView` and any of the variables by name, and returns a
    :class:`~tmkit.manipulation.Candidate`, such as ``Pick(o, g)``.

    Args:
        parameters: typed list of the action's objects.
        needs: conditions before the action.
        adds: atoms that hold after the action.
        deletes: atoms that do not hold after the action, except those in ``adds``.
        effects: effects of other kinds.
        given: facts that the values satisfy: ``"(grasp ?o ?g) (elbow-up ?o ?g)"``. Values are
            sampled in this order. Each variable is a parameter or an output of a stream that
            certifies a fact.
        costs: terms of cost streams: ``"(distance ?a ?b)"``.

    Raises:
        TaskError: if a fact is malformed or the function has a parameter that is not a variable.
    """

    def declare(function: StreamFunction) -> StreamAction:
        name = getattr(function, "__name__", type(function).__name__).replace("_", "-")
        label = f"action '{name}'"
        schema = make_action(
            name, parameters, needs=needs, adds=adds, deletes=deletes, effects=effects
        )
        facts, cost_terms = parse_facts(given, label), parse_facts(costs, label)
        names = [parameter.name for parameter in schema.parameters]
        variables = [term for fact in facts for term in fact.terms if term.startswith("?")]
        names = list(dict.fromkeys((*names, *variables)))
        for term in cost_terms:
            require_variables(term, names, label)
        return StreamAction(
            schema, facts, cost_terms, function, _match_arguments(function, names, label)
        )

    return declare


def parse_facts(text: str, label: str) -> tuple[FactPattern, ...]:
    """Parse facts with variables: ``"(grasp ?o ?g) (free ?g)"``.

    Args:
        text: the facts.
        label: declaration that contains them, for messages.

    Raises:
        TaskError: if the text is not a sequence of facts.
    """
    pattern = re.compile(r"\s*\(\s*([^\s()?]+)((?:\s+[^\s()]+)*)\s*\)\s*")
    facts: list[FactPattern] = []
    position = 0
    while position < len(text.rstrip()):
        match = pattern.match(text, position)
        if match is None:
            raise TaskError.at(
                label, f"expected facts such as '(grasp ?o ?g)', got '{text[position:].strip()}'"
            )
        facts.append(FactPattern(match[1], tuple(match[2].split())))
        position = match.end()
    return tuple(facts)


def require_variables(fact: FactPattern, names: Iterable[str], label: str) -> None:
    """Raise an error if a fact has a variable that is not declared.

    Raises:
        TaskError: if it has one; the message has the nearest variable.
    """
    known_names = list(names)
    for term in fact.terms:
        if term.startswith("?") and term not in known_names:
            unknown = UnknownNameError.of("variable", term, known_names)
            raise TaskError.at(label, f"{fact}: {unknown.message}")


def _require_distinct(parameters: tuple[Parameter, ...], label: str) -> list[str]:
    """Return the names of variables, or raise an error for one that is declared twice."""
    names: list[str] = []
    for parameter in parameters:
        if not parameter.name.startswith("?"):
            reason = f"variable '{parameter.name}' has no '?'; write '?{parameter.name}'"
            raise TaskError.at(label, reason)
        if parameter.name in names:
            raise TaskError.at(label, f"variable '{parameter.name}' is declared twice")
        names.append(parameter.name)
    return names


def _find_kind(gives: str, certifies: str, cost: str, label: str) -> StreamKind:
    """Return the kind of a stream from its declaration."""
    if cost:
        if gives or certifies:
            raise TaskError.at(label, "a cost neither gives values nor certifies facts")
        return StreamKind.COST
    if not certifies:
        raise TaskError.at(label, "it certifies no fact; expected certifies= or cost=")
    return StreamKind.GENERATOR if gives else StreamKind.TEST


def _match_arguments(
    function: StreamFunction, variables: list[str], label: str
) -> Mapping[str, str]:
    """Return the variables that a function takes after its scene view, by parameter.

    Raises:
        TaskError: if the function has no parameter for the scene view, or one without a default
            that is not a variable.
    """
    names = {variable[1:].replace("-", "_"): variable for variable in variables}
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    if not parameters or parameters[0].name in names or parameters[0].kind in _NOT_FIRST:
        got = "no parameter" if not parameters else f"'{parameters[0]}'"
        reason = f"the first parameter of its function is a scene view, such as 'view'; got {got}"
        raise TaskError.at(label, reason)
    arguments: dict[str, str] = {}
    for parameter in parameters[1:]:
        if parameter.kind in _UNNAMED:
            reason = f"parameter '{parameter}' of its function is not passed by name"
            raise TaskError.at(label, reason)
        if parameter.name in names:
            arguments[parameter.name] = names[parameter.name]
        elif parameter.default is inspect.Parameter.empty:
            unknown = UnknownNameError.of("variable", f"?{parameter.name}", variables)
            raise TaskError.at(
                label, f"parameter '{parameter.name}' of its function: {unknown.message}"
            )
    return MappingProxyType(arguments)
