"""A dash that touches a name: "-room" is not a name, wherever a typed list or a name may stand."""

from __future__ import annotations

import pytest

from tmkit.errors import TaskError
from tmkit.pddl import parse_domain, parse_goal, parse_problem
from tmkit.pddl.building import make_parameters

DOMAIN = """(define (domain d) (:requirements :typing :adl :fluents)
  (:types room hall - place place)
  (:constants lobby - room)
  (:predicates (at ?r - room) (in ?a ?b - place))
  (:functions (size ?r - room) - number (host ?r - room) - room)
  (:derived (near ?r - room) (at ?r))
  (:action a :parameters (?r - room)
   :precondition (and (forall (?q - room) (at ?q)) (exists (?q - place) (in ?q ?r)))
   :effect (and (not (at ?r)) (forall (?q - room) (when (at ?q) (not (at ?q)))))))"""
PROBLEM = """(define (problem p) (:domain d) (:objects x y - room z - place)
  (:init (at x)) (:goal (forall (?q - room) (at ?q))))"""
TYPED = [place for place in range(len(DOMAIN)) if DOMAIN.startswith(" - ", place)]
TYPED_IN_PROBLEM = [place for place in range(len(PROBLEM)) if PROBLEM.startswith(" - ", place)]


def place_of(text: str, offset: int) -> str:
    """Return line and column of a character."""
    return f"{text.count(chr(10), 0, offset) + 1}:{offset - text.rfind(chr(10), 0, offset)}"


@pytest.mark.parametrize("offset", TYPED)
def test_a_type_behind_a_dash_without_a_blank(offset: int) -> None:
    """The error has the place and the correct spelling in every typed list."""
    assert parse_domain(DOMAIN).name == "d"
    text = DOMAIN[: offset + 2] + DOMAIN[offset + 3 :]
    word = text[offset + 1 :].split(")")[0].split()[0]
    place = place_of(text, offset + 1)
    expected = rf"^domain:{place}: '{word}' is not a name; a type is written '- {word[1:]}'"
    with pytest.raises(TaskError, match=expected):
        parse_domain(text)


@pytest.mark.parametrize("offset", TYPED_IN_PROBLEM)
def test_a_type_of_an_object_behind_a_dash_without_a_blank(offset: int) -> None:
    """In the objects and the goal of a problem."""
    domain = parse_domain(DOMAIN)
    assert parse_problem(PROBLEM, domain).name == "p"
    text = PROBLEM[: offset + 2] + PROBLEM[offset + 3 :]
    with pytest.raises(
        TaskError, match=rf"^problem:{place_of(text, offset + 1)}: '-\w+' is not a name"
    ):
        parse_problem(text, domain)


def test_a_public_case() -> None:
    """The place is that of the dash."""
    text = """(define (domain d) (:requirements :typing) (:types room)
  (:predicates (at ?r -room))
  (:action a :parameters (?r - room) :precondition (at ?r) :effect (not (at ?r))))"""
    with pytest.raises(
        TaskError, match=r"^domain:2:23: '-room' is not a name; a type is written '- room'"
    ):
        parse_domain(text)


@pytest.mark.parametrize("word", ["-x", "--x", "-1x", "-_", "-é", "--"])
@pytest.mark.parametrize(
    "place", ["(domain {})", "(:types {})", "(:constants {} - object)", "(:predicates ({}))"]
)
def test_a_name_that_begins_with_a_dash(place: str, word: str) -> None:
    """A dashed name is rejected as a name of a domain, type, constant and predicate."""
    text = (
        f"(define (domain d) {place.format(word)})"
        if "domain" not in place
        else f"(define {place.format(word)})"
    )
    with pytest.raises(TaskError, match=rf"'{word}' is not a name; a type is written"):
        parse_domain(text)


@pytest.mark.parametrize(
    "place", ["(:types {})", "(:constants {} - object)", "(:constants x - {})"]
)
def test_a_negative_number_is_no_name(place: str) -> None:
    """A number with a sign is one only where numbers stand."""
    with pytest.raises(TaskError, match="'-1'"):
        parse_domain(f"(define (domain d) {place.format('-1')})")


def test_dashes_within_names_and_negative_numbers_are_read() -> None:
    """Names may contain dashes, and a dash may be next to a parenthesis or the end of a line."""
    text = """(define (domain d-e) (:requirements :typing :fluents) (:types a-b)
  (:predicates (on-top ?x-y -
a-b)) (:functions (f))
  (:action pick-up :parameters (?x-y - a-b)
    :precondition (> (f) -1.5) :effect (increase (f) -2)))"""
    domain = parse_domain(text)
    assert [action.name for action in domain.actions] == ["pick-up"]
    assert parse_goal("(> (f) -.5)", domain, objects={})
    with pytest.raises(TaskError, match="'-a-b' is not a name"):
        parse_goal("(forall (?x -a-b) (on-top ?x))", domain, objects={})


def test_parameters_in_python() -> None:
    """They are read as in a file."""
    with pytest.raises(
        TaskError,
        match=r"^parameters '\?r -room': '-room' is not a name; a type is written '- room'",
    ):
        make_parameters("?r -room")
