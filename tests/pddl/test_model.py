"""Domains and problems built in Python obey the rules that files obey."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.task_problems import load

from tmkit.errors import TaskError, UnknownNameError
from tmkit.pddl import Action, And, Domain, Fact, GroundAction, Not, Predicate, Problem, State, Type
from tmkit.pddl.formulas import Add, Atom, Axiom, Delete, Equals, Exists, Parameter
from tmkit.pddl.substitution import substitute

BLOCK = (Parameter("?x", ("block",)),)
DOMAIN = Domain(
    "built",
    types=(Type("block"), Type("red", ("block",))),
    predicates=(Predicate("held", BLOCK), Predicate("known", BLOCK)),
    actions=(Action("take", BLOCK, Not(Atom("held", ("?x",))), Add(Atom("held", ("?x",)))),),
    axioms=(Axiom("known", BLOCK, Atom("held", ("?x",))),),
)


def build(**changes: object) -> Problem:
    """Return a small problem with changes."""
    parts: dict[str, object] = {
        "objects": {"a": "block", "b": ("red",)},
        "init": State([Fact.of("held", "a")]),
        "goal": Atom("held", ("b",)),
    }
    return Problem("p", DOMAIN, **(parts | changes))


def test_a_problem_can_be_built() -> None:
    """Objects may be given by one type or several; subtypes belong to their supertypes."""
    problem = build()
    assert problem.objects == {"a": ("block",), "b": ("red",)}
    assert problem.objects_of("block") == ("a", "b")
    assert problem.objects_of("red") == ("b",)
    assert problem.holds(problem.apply(problem.init, GroundAction("take", ("b",))), problem.goal)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"objects": {"a": "rock", "b": "red"}}, "problem 'p': object a: unknown type 'rock'"),
        ({"init": State([Fact.of("held", "c")])}, r"init \(held c\): unknown object 'c'"),
        ({"init": State([Fact.of("held")])}, "takes 1 argument, but 0"),
        ({"init": State([Fact.of("known", "a")])}, "predicate 'known' is derived"),
        ({"goal": Atom("hold", ("b",))}, "unknown predicate 'hold'; did you mean 'held'"),
        ({"goal": Atom("held", ("?x",))}, r"unknown variable '\?x'"),
        ({"goal": Exists((Parameter("x"),), And())}, r"a parameter must start with '\?'"),
        ({"values": {Fact.of("weight", "a"): 1.0}}, "unknown function 'weight'"),
    ],
)
def test_a_wrong_problem_cannot_be_built(changes: dict[str, object], reason: str) -> None:
    """An inconsistent problem is rejected on construction."""
    with pytest.raises(TaskError, match=reason):
        build(**changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"types": (Type("block"), Type("red", ("stone",)))}, "unknown type 'stone'"),
        ({"types": (Type("block"), Type("block"))}, "type 'block' is declared twice"),
        ({"actions": (*DOMAIN.actions, *DOMAIN.actions)}, "action 'take' is declared twice"),
        (
            {"actions": (Action("a", BLOCK, Equals("?x", "?y")),)},
            r"action a: unknown variable '\?y'",
        ),
        (
            {"actions": (Action("a", BLOCK, effect=Delete(Atom("known", ("?x",)))),)},
            "'known' is derived",
        ),
        (
            {"axioms": (Axiom("known", BLOCK, Not(Atom("known", ("?x",)))),)},
            "depends on its own negation",
        ),
        ({"actions": (Action("Take"),)}, "action 'Take' is not in lower case"),
        (
            {"axioms": (Axiom("known", (), And()),)},
            "axiom for known: predicate 'known' takes 1 argument",
        ),
    ],
)
def test_a_wrong_domain_cannot_be_built(changes: dict[str, object], reason: str) -> None:
    """An inconsistent domain is rejected on construction."""
    with pytest.raises(TaskError, match=reason):
        replace(DOMAIN, **changes)


def test_unknown_actions_are_refused_with_the_nearest() -> None:
    """Asking for an action that is not there names the nearest."""
    with pytest.raises(UnknownNameError, match="unknown action 'take-up'; did you mean 'take'"):
        DOMAIN.action("take-up")


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (GroundAction("tok", ("a",)), "unknown action 'tok'; did you mean 'take'"),
        (GroundAction("take", ()), "action 'take' takes 1 argument, but 0"),
        (GroundAction("take", ("z",)), "unknown object 'z'"),
    ],
)
def test_a_wrong_step_cannot_be_applied(step: GroundAction, reason: str) -> None:
    """A step that the domain does not have is misuse, not a step that fails."""
    problem = build()
    with pytest.raises(TaskError, match=reason):
        problem.apply(problem.init, step)


def test_an_inapplicable_step_says_why() -> None:
    """Applying an action whose precondition fails names the literal that fails."""
    problem = build()
    with pytest.raises(
        TaskError, match=r"\(take a\) is not applicable: \(held a\) holds, but must not"
    ):
        problem.apply(problem.init, GroundAction("take", ("a",)))


def test_substitution_leaves_bound_variables() -> None:
    """A quantifier hides the variables of the same name outside."""
    formula = And((Atom("held", ("?x",)), Exists(BLOCK, Atom("held", ("?x",)))))
    assert substitute(formula, {"?x": "a"}) == And(
        (Atom("held", ("a",)), Exists(BLOCK, Atom("held", ("?x",))))
    )


def test_facts_and_steps_are_written_as_pddl() -> None:
    """``str`` of a fact or a step is PDDL."""
    assert str(Fact.of("on", "a", "b")) == "(on a b)"
    assert str(Fact("empty")) == "(empty)"
    assert str(GroundAction("pile", ("a", "b"))) == "(pile a b)"


def test_own_files_are_consistent_problems() -> None:
    """The vocabulary of a problem contains constants and objects."""
    problem = load("rooms")
    assert next(iter(problem.all_objects)) == "dock"
    assert set(problem.objects_of("place")) == {"dock", "kitchen", "study", "hall"}
