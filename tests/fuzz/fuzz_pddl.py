"""Fuzz the readers of PDDL: ``python tests/fuzz/fuzz_pddl.py --seconds 600 --seed 1``.

A result must also be the same after it was written and read once more; if it is not, that is an
exception.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from engine import Target, main

from tmkit._support.data import data_path
from tmkit.pddl import (
    Domain,
    domain_to_pddl,
    load_domain,
    load_problem,
    parse_domain,
    parse_goal,
    parse_problem,
    problem_to_pddl,
)

DATA = Path(__file__).parent.parent / "data" / "pddl"

GOALS = [
    b"(and (parcel-at letter dock) (not (open d1)) (forall (?q - parcel) (not (stranded ?q))))\n",
    (
        b"(or (exists (?p ?r - place) (and (reachable ?p ?r) (not (= ?p ?r)))) (imply (open d2)"
        b" (loaded box)))\n"
    ),
    b"(robot-at hall)\n(>= (distance dock hall) (+ 2 (- 1.5)))\n",
]
"""Goals over the domain and problem ``rooms``."""

WORDS = """
define domain problem :requirements :strips :typing :adl :action-costs :durative-actions :types
:constants :predicates :functions :derived :action :durative-action :process :event :constraints
:length :parameters :precondition :effect :condition :duration :domain :objects :init :goal :metric
and or not imply exists forall when either = < > <= >= + - * / increase decrease assign scale-up
scale-down minimize maximize total-cost total-time number object at over start end all within always
preference ?x ?y ?duration #t ( ) () ; ? ?? - -- -x ?- : :x a.b @a +1 -1 1.5 1e3 5x name room place
parcel thing dock hall letter robot-at parcel-at passage reachable distance |a| "a" é ä İ ſ ß ٣ ²
a:b
"""

NESTINGS = [
    (b"(", b")"),
    (b"(and ", b")"),
    (b"(not ", b")"),
    (b"(or (and) ", b")"),
    (b"(imply (and) ", b")"),
    (b"(forall (?z) ", b")"),
    (b"(exists (?z - object) ", b")"),
    (b"(when (and) ", b")"),
    (b"(+ 1 ", b")"),
    (b"(- ", b")"),
    (b"(either ", b")"),
    (b"(define (domain d) ", b")"),
    (b"(:action a ", b")"),
    (b"a", b""),
    (b"?", b""),
    (b"-", b""),
    (b"- ", b""),
    (b"9", b""),
    (b"0.", b""),
    (b"a ", b""),
    (b"?a ", b""),
    (b"(p) ", b""),
    (b"\n", b""),
    (b";", b""),
    (b"(:predicates (p))", b""),
    (b"t - ", b""),
    (b"a - t ", b""),
]


def _pool(part: str, *names: str) -> list[bytes]:
    return [(DATA / name / f"{part}.pddl").read_bytes() for name in names]


def _target(
    name: str, file: str, read: object, pool: list[bytes], *, domain: str = "", weight: int = 1
) -> Target:
    assert callable(read)
    companions = {"domain.pddl": (DATA / domain / "domain.pddl").read_bytes()} if domain else {}
    if name == "goal":
        companions["problem.pddl"] = (DATA / domain / "problem.pddl").read_bytes()
    return Target(
        name,
        file,
        read,
        pool,
        tokens=WORDS.encode().split(),
        nestings=NESTINGS,
        companions=companions,
        weight=weight,
    )


def targets() -> list[Target]:
    """Return the readers of domains, of problems of three domains, and of goals."""
    domains = _pool("domain", "places", "gripper", "rooms", "lamps", "oddities")
    domains.append(data_path("domains/blocks/domain.pddl").read_bytes())
    return [
        _target("domain", "input.pddl", read_domain, domains, weight=4),
        *(
            _target(
                f"problem-{name}", "input.pddl", read_problem, _pool("problem", name), domain=name
            )
            for name in ("rooms", "lamps", "oddities")
        ),
        _target("goal", "goal.pddl", read_goal, GOALS, domain="rooms"),
    ]


def read_domain(path: Path) -> object:
    """Load the domain, write it and read that."""
    domain = load_domain(path)
    again = parse_domain(domain_to_pddl(domain))
    assert domain_to_pddl(again) == domain_to_pddl(domain)
    return domain


@cache
def _domain(path: Path) -> Domain:
    return load_domain(path)


def read_problem(path: Path) -> object:
    """Load the problem of the domain beside it, write it and read that."""
    domain = _domain(path.with_name("domain.pddl"))
    problem = load_problem(path, domain)
    again = parse_problem(problem_to_pddl(problem), domain)
    assert problem_to_pddl(again) == problem_to_pddl(problem)
    return problem


def read_goal(path: Path) -> object:
    """Read the file as a goal over the problem beside it, write it and read that."""
    problem = load_problem(path.with_name("problem.pddl"), _domain(path.with_name("domain.pddl")))
    text = path.read_bytes().decode(errors="replace")
    goal = parse_goal(text, problem.domain, objects=problem.objects, source=str(path))
    assert parse_goal(str(goal), problem.domain, objects=problem.objects) == goal
    return goal


if __name__ == "__main__":
    # the grammar learns: once, before workers fork
    for example in ("places", "gripper", "rooms", "lamps", "oddities"):
        read_problem(DATA / example / "problem.pddl")
    main(targets(), description=(__doc__ or "").split("\n", maxsplit=1)[0])
