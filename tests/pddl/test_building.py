"""Domains written in Python are the same values as those read from PDDL."""

from __future__ import annotations

import pytest
from support.task_problems import DATA

from tmkit.errors import TaskError
from tmkit.pddl import (
    Fact,
    Not,
    Problem,
    State,
    domain_to_pddl,
    load_domain,
    make_action,
    make_domain,
    make_predicate,
    parse_domain,
)
from tmkit.pddl.building import make_axiom, make_parameters
from tmkit.pddl.formulas import Add, Atom, Or, Parameter, When
from tmkit.task_planning import FastDownward

CLEAR = make_predicate("clear", "?x - (either block place)")
AT = make_predicate("at", "?b - block ?p - place")
HELD = make_predicate("held", "?b - block")
EMPTY = make_predicate("empty")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("?a ?b - block ?c", (("?a", ("block",)), ("?b", ("block",)), ("?c", ("object",)))),
        ("?a - (either block place) ?b - place", (("?a", ("block", "place")), ("?b", ("place",)))),
        (
            "cup plate - dish dish",
            (("cup", ("dish",)), ("plate", ("dish",)), ("dish", ("object",))),
        ),
    ],
)
def test_parameters_are_typed_lists(
    text: str, expected: tuple[tuple[str, tuple[str, ...]], ...]
) -> None:
    """Names get the types behind the next dash, and without one those of any object."""
    assert make_parameters(text) == tuple(Parameter(name, types) for name, types in expected)


@pytest.mark.parametrize(
    "text", ["- block", "?a -", "?a - block - place", "(?a - block)", "?a - (either block", "?a ("]
)
def test_wrong_parameters_are_refused(text: str) -> None:
    """A dash without names or type, and parentheses that mean nothing, are errors."""
    with pytest.raises(TaskError, match="parameters '"):
        make_parameters(text)


def places() -> tuple[object, ...]:
    """Return the actions ``lift`` and ``lower`` of the domain of places."""
    lift = make_action(
        "lift",
        "?b - block ?p - place",
        needs=[CLEAR("?b"), AT("?b", "?p"), EMPTY()],
        adds=[HELD("?b"), CLEAR("?p")],
        deletes=[AT("?b", "?p"), CLEAR("?b"), EMPTY()],
    )
    lower = make_action(
        "lower",
        "?b - block ?p - place",
        needs=[HELD("?b"), CLEAR("?p")],
        adds=[AT("?b", "?p"), CLEAR("?b"), EMPTY()],
        deletes=[HELD("?b"), CLEAR("?p")],
    )
    return lift, lower


def test_a_domain_in_python_plans_and_is_written_as_pddl() -> None:
    """A domain built in Python equals the one read from its text, and its problems are solved."""
    lift, lower = places()
    domain = make_domain(
        "places",
        types="block place",
        predicates=[CLEAR, AT, HELD, EMPTY],
        actions=[lift, lower],  # type: ignore[list-item]
    )
    assert parse_domain(domain_to_pddl(domain)) == domain
    init = State([EMPTY.fact(), AT.fact("a", "p"), CLEAR.fact("a"), CLEAR.fact("q")])
    assert Fact.of("at", "a", "p") in init
    problem = Problem(
        "p",
        domain,
        objects={"a": "block", "p": "place", "q": "place"},
        init=init,
        goal=AT("a", "q"),
    )
    assert [str(step) for step in FastDownward().solve(problem).steps] == [
        "(lift a p)",
        "(lower a q)",
    ]
    assert {"lift", "lower"} <= {
        action.name for action in load_domain(DATA / "places" / "domain.pddl").actions
    }


def test_axioms_constants_and_other_effects() -> None:
    """Derived predicates, constants and conditional effects are built too."""
    dark, lit, is_known = (
        make_predicate("dark"),
        make_predicate("lit", "?r"),
        make_predicate("known", "?r"),
    )
    look = make_action(
        "look", "?r", needs=[Not(dark())], effects=[When(lit("?r"), Add(is_known("?r")))]
    )
    domain = make_domain(
        "rooms",
        constants="hall",
        predicates=[dark, lit, is_known, make_predicate("seen", "?r")],
        actions=[look],
        axioms=[make_axiom(make_predicate("seen", "?r"), Or((is_known("?r"), lit("hall"))))],
    )
    assert domain.derived_predicates == {"seen"}
    assert parse_domain(domain_to_pddl(domain)) == domain


def test_what_is_built_is_checked() -> None:
    """An undeclared name and a wrong number of terms are errors of the constructor."""
    for needs, reason in (
        [[Atom("clera", ("?b",))], "unknown predicate 'clera'"],
        [[HELD("?b", "?b")], "'held' takes"],
    ):
        action = make_action("a", "?b - block", needs=needs)
        with pytest.raises(TaskError, match=reason):
            make_domain(
                "d", types="block place", predicates=[CLEAR, AT, HELD, EMPTY], actions=[action]
            )
