"""PDDL parser: all structure is preserved, and nothing is guessed."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from support.task_problems import DATA, NAMES, load, samples

from tmkit.errors import MissingFileError, TaskError
from tmkit.pddl import (
    And,
    Fact,
    Not,
    Type,
    domain_to_pddl,
    load_domain,
    load_problem,
    parse_domain,
    parse_goal,
    parse_problem,
)
from tmkit.pddl.formulas import (
    Add,
    Atom,
    Comparison,
    Delete,
    EffectAnd,
    Equals,
    Exists,
    Forall,
    ForEach,
    FunctionTerm,
    Imply,
    IncreaseCost,
    Number,
    Or,
    Parameter,
    When,
)
from tmkit.pddl.model import Metric
from tmkit.pddl.parsing import grammar


def test_a_domain_is_read_as_written() -> None:
    """Types, predicates, conditions and effects of a domain with mixed typed lists are read."""
    domain = load_domain(DATA / "places" / "domain.pddl")
    assert (domain.name, domain.requirements) == ("places", (":typing",))
    assert domain.types == (Type("block", ("object",)), Type("place", ("object",)))
    clear = next(predicate for predicate in domain.predicates if predicate.name == "clear")
    assert clear.parameters == (Parameter("?x", ("object",)),)
    pile = domain.action("pile")
    assert pile.parameters == (Parameter("?x", ("block",)), Parameter("?y", ("block",)))
    assert pile.precondition == And((Atom("held", ("?x",)), Atom("clear", ("?y",))))
    assert pile.effect == EffectAnd(
        (
            Add(Atom("on", ("?x", "?y"))),
            Add(Atom("clear", ("?x",))),
            Add(Atom("empty")),
            Delete(Atom("held", ("?x",))),
            Delete(Atom("clear", ("?y",))),
        )
    )


def test_a_problem_is_read_as_written() -> None:
    """Objects keep their order and types, the initial state is a set, the goal is a tree."""
    problem = load("places")
    assert list(problem.objects) == ["a", "b", "c", "left", "middle", "right"]
    assert problem.objects["left"] == ("place",)
    assert Fact.of("on", "c", "a") in problem.init
    assert len(problem.init) == 7
    assert problem.goal == And((Atom("on", ("a", "b")), Atom("on", ("b", "c")), Atom("empty")))
    assert problem.metric is Metric.PLAN_LENGTH


def test_everything_is_lower_case() -> None:
    """PDDL does not distinguish case: names in mixed case are one name."""
    problem = load("gripper")
    assert problem.domain.name == "gripper"
    assert {action.name for action in problem.domain.actions} == {"move", "grab", "release"}
    assert "ball4" in problem.objects
    assert Fact.of("robot-in", "here") in problem.init


def test_axioms_and_costs_are_read() -> None:
    """Derived predicates become axioms with the declared types; costs are kept."""
    problem = load("rooms")
    domain = problem.domain
    assert [axiom.predicate for axiom in domain.axioms] == [
        "passage",
        "reachable",
        "reachable",
        "stranded",
    ]
    assert domain.axioms[0].parameters == (Parameter("?a", ("place",)), Parameter("?b", ("place",)))
    assert domain.axiom_strata == (("passage", "reachable"), ("stranded",))
    assert (
        IncreaseCost(FunctionTerm("distance", ("?a", "?b"))) in domain.action("drive").effect.parts
    )
    assert IncreaseCost(Number(1.5)) in domain.action("unlock").effect.parts
    assert problem.values[Fact.of("distance", "kitchen", "hall")] == 3.5
    assert problem.metric is Metric.TOTAL_COST
    assert problem.goal.parts[2] == Forall(
        (Parameter("?q", ("parcel",)),), Not(Atom("stranded", ("?q",)))
    )


def test_conditional_and_quantified_trees_are_kept() -> None:
    """Disjunctions, implications, quantifiers and conditional effects keep their structure."""
    press = load("lamps").domain.action("press")
    lamp = (Parameter("?l", ("lamp",)),)
    assert press.precondition.parts[1] == Or(
        (
            Not(Atom("pressed", ("?s",))),
            Exists(lamp, And((Atom("wired", ("?s", "?l")), Atom("lit", ("?l",))))),
        )
    )
    universal = press.effect.parts[1]
    assert isinstance(universal, ForEach)
    assert universal.effect.parts[1] == When(
        And((Atom("wired", ("?s", "?l")), Atom("lit", ("?l",)))), Delete(Atom("lit", ("?l",)))
    )
    assert press.effect.parts[2] == When(
        Forall(lamp, Imply(Atom("wired", ("?s", "?l")), Atom("broken", ("?l",)))),
        EffectAnd((Add(Atom("alarm")), Delete(Atom("power")))),
    )


def test_negative_goals_stay_negative() -> None:
    """``not``, ``or``, ``exists`` and numeric comparisons in a goal are not flattened to atoms."""
    problem = load("lamps")
    domain, objects = problem.domain, problem.objects
    assert parse_goal("(not (lit l1))", domain, objects=objects) == Not(Atom("lit", ("l1",)))
    either = parse_goal("(or (lit l1) (not (power)))", domain, objects=objects)
    assert either == Or((Atom("lit", ("l1",)), Not(Atom("power"))))
    rooms = load("rooms")
    numeric = parse_goal("(>= (distance hall study) 4)", rooms.domain, objects=rooms.objects)
    assert numeric == Comparison(">=", FunctionTerm("distance", ("hall", "study")), Number(4.0))


def test_negative_initial_facts_are_no_facts() -> None:
    """``(not (lit l1))`` in the initial state is the absence of the fact."""
    assert Fact.of("lit", "l1") not in load("lamps").init


def test_unusual_but_legal_text_is_read() -> None:
    """Reserved names, free order of sections, ``either`` and odd characters are read."""
    problem = load("oddities")
    domain = problem.domain
    assert domain.name == "odd-1.2"
    assert {predicate.name for predicate in domain.predicates} >= {
        "within",
        "all",
        "preference",
        "start",
        "over",
    }
    within = next(predicate for predicate in domain.predicates if predicate.name == "within")
    assert within.parameters == (Parameter("?x", ("cup", "box")), Parameter("?y", ("shelf",)))
    assert domain.constants == (Parameter("@sink", ("shelf",)), Parameter("total", ("number",)))
    assert Type("mug", ("cup", "aircraft")) in domain.types
    assert domain.action("at").parameters == (Parameter("?duration", ("shelf",)),)
    assert domain.action("end").effect == EffectAnd(
        (Add(Atom("end")), Add(Atom("start", ("@sink", "@sink"))), Add(Atom("all", ("@sink",))))
    )
    fly = domain.action("fly").precondition
    assert fly == Imply(
        Atom("over", ("?a",)), Exists((Parameter("?c", ("cup",)),), Equals("?c", "?m"))
    )
    assert problem.values[Fact.of("height", "high")] == -1.5
    assert problem.values[Fact.of("height", "@sink")] == 20.0
    assert problem.values[Fact.of("height", "low")] == 0.5
    assert problem.objects_of("cup") == ("all",)
    assert problem.objects_of("aircraft") == ("all", "jet", "minimize")


def test_numbers_may_be_names() -> None:
    """A number is a name, except where numbers are compared, calculated or assigned."""
    problem = load("features/numbers-as-names")
    assert (problem.name, problem.domain.name) == ("4", "2048")
    assert tuple(problem.all_objects) == ("0", "2", "1", "3")
    effect = problem.domain.action("4x").effect
    assert When(Equals("0", "?n"), Delete(Atom("7", ("0",)))) in effect.parts
    assert IncreaseCost(Number(3)) in effect.parts
    assert problem.values[Fact.of("price", "3")] == 3.0
    goal = parse_goal(
        "(and (< 1 (price 1)) (= 2 (price 2)) (= 2 2))", problem.domain, objects=problem.objects
    )
    assert goal == And(
        (
            Comparison("<", Number(1), FunctionTerm("price", ("1",))),
            Comparison("=", Number(2), FunctionTerm("price", ("2",))),
            Equals("2", "2"),
        )
    )


@pytest.mark.parametrize("number", ["1e999", "-1e400", "9" * 400])
def test_numbers_without_bound_are_refused(number: str) -> None:
    """A number that overflows is rejected at its place."""
    text = f"(define (problem p) (:domain rooms)\n(:init (= (total-cost) {number})) (:goal ()))"
    with pytest.raises(TaskError, match=r"^problem:2:24: this number is too large"):
        parse_problem(text, load("rooms").domain)


@pytest.mark.parametrize(
    "goal", ["(on a b) (on b c)", "(and (on a b) (on b c))", "  ( ON a B ) ; x\n(on b c)"]
)
def test_goals_from_the_command_line(goal: str) -> None:
    """Several formulas in a row are all meant, in any case and spacing."""
    problem = load("places")
    formula = parse_goal(goal, problem.domain, objects=problem.objects)
    assert formula == And((Atom("on", ("a", "b")), Atom("on", ("b", "c"))))


def test_goal_names_match_objects_in_any_case() -> None:
    """A goal may name objects that are not lower case; the formula has their spelling."""
    domain = load("places").domain
    goal = parse_goal(
        "(and (on CUP lid) (exists (?x - block) (on ?x cup)))",
        domain,
        objects={"Cup": "block", "lid": "block"},
    )
    assert goal.parts[0] == Atom("on", ("Cup", "lid"))
    assert goal.parts[1] == Exists((Parameter("?x", ("block",)),), Atom("on", ("?x", "Cup")))


def test_goal_names_that_differ_only_in_case_are_refused() -> None:
    """Two objects that PDDL does not distinguish are an error."""
    with pytest.raises(TaskError, match="'cup' and 'Cup' differ only in case"):
        parse_goal("(clear cup)", load("places").domain, objects={"cup": "block", "Cup": "block"})


@pytest.mark.parametrize("name", NAMES)
def test_values_are_hashable_and_survive_pickling(name: str) -> None:
    """A problem read twice is equal, has the same hash, and comes back from pickling."""
    first, second = load(name), load(name)
    assert first == second
    assert hash(first) == hash(second)
    assert pickle.loads(pickle.dumps(first)) == first


def test_missing_file_names_the_nearest() -> None:
    """A missing path is rejected with the nearest file name."""
    with pytest.raises(
        MissingFileError, match=r"no file .*domian\.pddl.*did you mean .*domain\.pddl"
    ):
        load_domain(DATA / "places" / "domian.pddl")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are rejected at their line and column."""
    path = tmp_path / "domain.pddl"
    path.write_bytes("; ä\n(define ö".encode() + b"\xff\xfe")
    with pytest.raises(
        TaskError,
        match=r"domain\.pddl:2:10: the file is not UTF-8 text: byte 15 is not valid\n.*\n {13}\^",
    ):
        load_domain(path)


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    """A byte order mark is dropped and does not shift columns."""
    path = tmp_path / "domain.pddl"
    path.write_text("(define (domain d))", encoding="utf-8-sig")
    assert load_domain(path).name == "d"
    path.write_text("(define (domaim d))", encoding="utf-8-sig")
    with pytest.raises(TaskError, match=r"domain\.pddl:1:10: "):
        load_domain(path)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    """Folders, pipes, devices, endless names and zero characters are rejected at once."""
    pipe = tmp_path / "pipe.pddl"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, Path("/dev/zero"), tmp_path / ("long" * 100)):
        with pytest.raises(TaskError, match="cannot be read"):
            load_domain(path)
    with pytest.raises(TaskError, match="is not a file name"):
        load_domain("zero\0.pddl")


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    """A file above the limit is rejected with its size and the limit."""
    path = tmp_path / "large.pddl"
    with path.open("wb") as file:
        file.truncate(10**9)
    with pytest.raises(
        TaskError, match=r"large\.pddl: the file is too large: 1000 MB, expected at most 32 MB"
    ):
        load_domain(path)


def test_empty_sections_and_conditions_are_read() -> None:
    """Empty sections, ``()`` in place of a formula, and actions without parameters are valid."""
    domain = parse_domain(
        "(define (domain d) (:requirements) (:types) (:constants) (:predicates) (:functions)"
        " (:action a :precondition () :effect ()) (:action b))"
    )
    assert [action.precondition for action in domain.actions] == [And(), And()]
    problem = parse_problem("(define (problem p) (:domain d) (:init) (:goal ()))", domain)
    assert problem.goal == And()
    assert problem.holds(problem.init, problem.goal)


def test_ten_thousand_facts_and_values_are_read_as_a_few() -> None:
    """Many plain facts and values are read like those that need the grammar."""
    domain = parse_domain(
        "(define (domain d) (:types t) (:predicates (near ?a ?b - t)) (:functions (way ?a ?b - t)"
        " (total-cost)) (:action a))"
    )
    names = [f"n{i}" for i in range(100)]
    pairs = [(a, b) for a in names for b in names]
    facts = " ".join(f"(near {a} {b})" for a, b in pairs if a != b)
    values = " ".join(f"(= (way {a} {b}) {i})" for i, (a, b) in enumerate(pairs))
    start = f"(define (problem p) (:domain d) (:objects {' '.join(names)} - t)\n(:init"
    text = f"{start} {facts}\n{values}\n(not (near n1 n1))"
    problem = parse_problem(f"{text} (= total-cost 0)) (:goal ()))", domain)
    assert problem.init.facts == {Fact.of("near", a, b) for a, b in pairs if a != b}
    assert [problem.values[Fact.of("way", a, b)] for a, b in pairs] == list(range(10_000))
    assert problem.values[Fact.of("total-cost")] == 0.0
    for wrong, reason in (
        ("(near n1 n100)", "unknown object 'n100'"),
        ("(not (near n1 n2))", r"\(near n1 n2\) is both stated and denied"),
        ("(= (way n1 n2) 7)", r"\(way n1 n2\) is given a second value"),
        ("(= (way n1 n2) x)", "unexpected 'x'"),
        ("(= (way n1) 1)", "takes 2 arguments, but 1 was given"),
        ("(near n1 ?x)", "unexpected"),
    ):
        with pytest.raises(TaskError, match=f"^problem:3:.*{reason}"):
            parse_problem(f"{start} (near n1 n2) (= (way n1 n2) 1)\n{wrong}) (:goal ()))", domain)


def test_parents_that_are_not_declared_are_types() -> None:
    """A parent type that is named but not declared is a type like the others."""
    domain = load("features/undeclared-parent").domain
    assert domain.types[-1] == Type("vessel", ("object",))
    assert parse_domain(domain_to_pddl(domain)) == domain


def test_samples_are_read() -> None:
    """Every published sample is read, and its initial state does not satisfy its goal."""
    for domain_path, problem_path in samples():
        problem = load_problem(problem_path, load_domain(domain_path))
        assert not problem.holds(problem.init, problem.goal), problem_path


def _blocks_problem(count: int) -> str:
    """Return a problem whose every section grows with ``count``."""
    names = [f"b{i}" for i in range(count)]
    objects = " ".join(
        f"{name} - block" if i % 3 else name for i, name in enumerate([*names, "b - block"])
    )
    facts = "".join(f"(clear {name}) (not (held {name}))" for name in names)
    goals = "".join(
        f"(not (held {name})) (or (clear {name}) (on {name} b) (= {name} b))" for name in names
    )
    return (
        f"(define (problem p) (:domain places) (:objects {objects}) (:init {facts}) (:goal (and"
        f" {goals})))"
    )


def test_a_longer_file_asks_no_more_of_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grammar parses each shape once: a ten times longer file needs no more of it."""
    domain = load("places").domain
    run, handed_over = grammar._parse, [0]

    def count_parses(rule: Any, words: tuple[str, ...], mode: Any) -> None:
        handed_over[0] += len(words)
        run(rule, words, mode)

    monkeypatch.setattr(grammar, "_parse", count_parses)
    words = []
    for count in (30, 300):
        grammar._fault.cache_clear()
        handed_over[0] = 0
        assert len(parse_problem(_blocks_problem(count), domain).init) == count
        words.append(handed_over[0])
    assert words[0] == words[1] > 0


@pytest.mark.parametrize("most", [1, 3, 4, 7])
def test_what_stands_after_a_long_run_is_refused_in_its_place(most: int) -> None:
    """Shortened runs do not shift the place of a later error."""
    run = "(clear b) " * most
    text = (
        f"(define (problem p) (:domain places) (:objects b - block)\n(:init)\n(:goal (and {run}\n"
        " b)))"
    )
    with pytest.raises(TaskError, match=r"problem:4:2: unexpected 'b'; expected '\(' or '\)'"):
        parse_problem(text, load("places").domain)
    text = text.replace("\n b)", ")").replace("b - block", f"{'b1 b2 - block ' * most}\n- block")
    with pytest.raises(TaskError, match=r"problem:2:1: unexpected '-'; expected '\)'"):
        parse_problem(text, load("places").domain)
