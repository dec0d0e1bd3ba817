"""Declarations of streams reject wrong variables, types and facts, and name them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tmkit.errors import TaskError
from tmkit.manipulation import Candidate
from tmkit.pddl import make_domain, make_predicate
from tmkit.tamp.streams import SceneView, StreamSemantics, grasps, placements, stream, stream_action
from tmkit.tamp.streams.declaration import Stream, StreamAction

held = make_predicate("held", "?o - item")


def function_of(*names: str) -> object:
    """Return a function with these parameters after its scene view."""
    scope: dict[str, object] = {}
    exec(f"def sample({', '.join(('view', *names))}): yield 1", scope)
    return scope["sample"]


@pytest.mark.parametrize(
    ("inputs", "options", "names", "message"),
    [
        ("?o - item", {"certifies": "(fine ?p)"}, ("o",), r"\(fine \?p\): unknown variable '\?p'"),
        ("?o ?o - item", {"certifies": "(fine ?o)"}, ("o",), r"variable '\?o' is declared twice"),
        ("o - item", {"certifies": "(fine ?o)"}, (), r"variable 'o' has no '\?'"),
        ("?object - item", {"certifies": "(fine ?object)"}, ("objct",), r"did you mean '\?object'"),
        (
            "?o - item",
            {"gives": "?g ?h - grasp", "certifies": "(grasp ?o ?g)"},
            ("o",),
            r"output '\?h' is in no certified fact",
        ),
        ("?o - item", {}, ("o",), "it certifies no fact"),
        ("?o - item", {"certifies": "fine ?o"}, ("o",), r"expected facts .*, got 'fine \?o'"),
        (
            "?o - item",
            {"cost": "(price ?o)", "certifies": "(fine ?o)"},
            ("o",),
            "a cost neither gives values nor certifies facts",
        ),
    ],
)
def test_a_wrong_declaration_of_a_stream_names_the_variable(
    inputs: str, options: dict[str, str], names: tuple[str, ...], message: str
) -> None:
    """The error names the stream and the variable, and the nearest one."""
    with pytest.raises(TaskError, match=f"stream 'sample': .*{message}"):
        stream(inputs, **options)(function_of(*names))


def accept() -> bool:
    """Return True."""
    return True


def test_a_stream_without_a_view_is_rejected() -> None:
    """A function without parameters has no scene view."""
    with pytest.raises(TaskError, match="is a scene view, such as 'view'; got no parameter"):
        stream("", certifies="(fine)")(accept)


def define(
    *streams: Stream, action: StreamAction, types: str = "item region"
) -> type[StreamSemantics]:
    """Return a semantics with streams and one action."""
    scope = {
        "domain": make_domain("things", types=types, predicates=[held], actions=[action.action]),
        "streams": streams,
        "stream_actions": (action,),
    }
    return type("Things", (StreamSemantics,), scope)


@stream("?o - item ?g - grasp", certifies="(firm ?o ?g)")
def firm(view: SceneView, o: str, g: object) -> bool:
    """Accept every grasp."""
    return True


def take(given: str, parameters: str = "?o - item ?r - region", costs: str = "") -> StreamAction:
    """Return an action whose values satisfy facts."""

    @stream_action(parameters, adds=[held("?o")], given=given, costs=costs)
    def pick(view: SceneView, o: str) -> Candidate:
        raise NotImplementedError

    return pick


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("(firm ?o ?g)", r"\(firm \?o \?g\): input '\?g' of stream 'firm' has no value"),
        ("(grasp ?o ?g) (grasp ?o ?g) (firm ?o ?h)", r"input '\?h' of stream 'firm' has no value"),
        ("(grip ?o ?g)", r"unknown certified fact 'grip'; did you mean 'grasp'"),
        ("(grasp ?o)", r"stream 'grasps' certifies \(grasp \?o \?g\) with 2 terms"),
        ("(grasp ?o ?r)", r"stream 'grasps' gives '\?r', which has a value before this fact"),
        (
            "(grasp ?r ?g) (firm ?r ?g)",
            r"'\?r' is of type region, but input '\?o' of stream 'firm' of type item",
        ),
        ("(grasp ?o ?g) (firm ?o ?o)", r"'\?o' is of type item, but input '\?g'"),
    ],
)
def test_a_fact_that_no_stream_certifies_is_rejected(given: str, message: str) -> None:
    """The error names the action, the fact, the variable and the stream."""
    with pytest.raises(TaskError, match=f"action 'pick': .*{message}"):
        define(grasps, placements, firm, action=take(given))


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("?o - itm", r"stream 'odd': '\?o': unknown type 'itm'; did you mean 'item'"),
        ("?o - item ?g - grap", r"unknown type 'grap'; did you mean 'grasp'"),
    ],
)
def test_an_unknown_type_of_an_input_is_rejected(declared: str, message: str) -> None:
    """The error names the nearest type of the domain or of values."""

    @stream(declared, certifies="(odd ?o)")
    def odd(view: SceneView) -> bool:
        return True

    with pytest.raises(TaskError, match=message):
        define(odd, grasps, action=take("(grasp ?o ?g)"))


def test_an_unknown_type_of_values_is_rejected() -> None:
    """Types of values are declared, with their classes."""

    @stream("?o - item", gives="?p - push", certifies="(pushable ?o ?p)")
    def pushes(view: SceneView, o: str) -> object:
        yield o

    with pytest.raises(TaskError, match=r"stream 'pushes': '\?p': unknown type of values 'push'"):
        define(pushes, action=take("(pushable ?o ?p)"))


def test_two_streams_of_one_name_are_rejected() -> None:
    """A name identifies a stream in messages and counts."""
    with pytest.raises(TaskError, match="stream 'grasps': another stream of the domain"):
        define(grasps, grasps, action=take("(grasp ?o ?g)"))


def test_a_cost_is_declared() -> None:
    """A cost term without a stream is an error."""
    with pytest.raises(TaskError, match=r"action 'pick': .*unknown cost 'price'"):
        define(grasps, action=take("(grasp ?o ?g)", costs="(price ?g)"))


def test_a_subtype_is_accepted() -> None:
    """An input takes objects of all subtypes."""
    semantics = define(
        grasps,
        firm,
        action=take("(grasp ?o ?g) (firm ?o ?g)", "?o - cup"),
        types="item region - object cup - item",
    )
    assert semantics.streams[0] is grasps


def test_an_action_without_streams_needs_candidates() -> None:
    """The class is rejected when it is defined."""
    action = take("(grasp ?o ?g)")
    scope = {
        "domain": make_domain(
            "things", types="item region", predicates=[held], actions=[action.action]
        )
    }
    with pytest.raises(TaskError, match="action 'pick' has neither a stream action nor candidates"):
        type("Things", (StreamSemantics,), scope)


def test_functions_of_other_kinds_are_declared_by_a_call() -> None:
    """Methods, objects that are called and parameters with defaults serve as streams."""

    @dataclass
    class Model:
        limit: float

        def score(self, view: SceneView, o: str, scale: float = 1.0) -> bool:
            return o in view and len(o) * scale < self.limit

        def __call__(self, view: SceneView, *, g: object, o: str) -> bool:
            return o in view and g is not None

    method = stream("?o - item", certifies="(good ?o)")(Model(1.0).score)
    called = stream("?o - item ?g - grasp", certifies="(firm ?o ?g)")(Model(2.0))
    assert (method.name, dict(method.arguments)) == ("score", {"o": "?o"})
    assert (called.name, dict(called.arguments)) == ("Model", {"g": "?g", "o": "?o"})
    semantics = define(grasps, method, called, action=take("(good ?o) (grasp ?o ?g) (firm ?o ?g)"))
    assert semantics.streams == (grasps, method, called)


def without_view(o: str) -> bool:
    """Take no scene view."""
    return bool(o)


def with_rest(view: SceneView, *rest: object) -> bool:
    """Take parameters without a name."""
    return bool(rest)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (without_view, r"the first parameter .* is a scene view, such as 'view'; got 'o'"),
        (with_rest, r"parameter '\*rest' of its function is not passed by name"),
    ],
)
def test_a_function_takes_a_scene_view_and_named_inputs(
    function: Callable[..., bool], message: str
) -> None:
    """Another signature is an error when the stream is declared."""
    with pytest.raises(TaskError, match=message):
        stream("?o - item", certifies="(fine ?o)")(function)


def test_a_value_of_some_alternatives_is_unknown_to_later_facts() -> None:
    """Two streams certify a fact; only one of them gives a further value."""

    @stream("?o - item", gives="?g - grasp ?w - grasp", certifies="(grasp ?o ?g) (wide ?w)")
    def pairs(view: SceneView, o: str) -> object:
        yield o

    with pytest.raises(TaskError, match=r"input '\?w' of stream 'firm' has no value"):
        define(grasps, pairs, firm, action=take("(grasp ?o ?g) (firm ?o ?w)"))


def test_alternatives_give_values_of_one_type() -> None:
    """A later stream could not tell their values apart."""

    @stream("?o - item", gives="?p - pose", certifies="(grasp ?o ?p)")
    def poses(view: SceneView, o: str) -> object:
        yield o

    message = r"'\?g' is of type grasp from stream 'grasps', but of type pose from stream 'poses'"
    with pytest.raises(TaskError, match=message):
        define(grasps, poses, action=take("(grasp ?o ?g)"))
