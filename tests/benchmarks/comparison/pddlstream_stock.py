"""Texts and streams of PDDLStream for a problem of tmkit, with as few streams as possible.

An action that picks or places gets a grasp, a rest and a motion as further parameters. One test
stream checks a motion, from the start configuration on, against another object at a rest.

Invariants: an object with a goal at a pose or in a region gets places that meet the goal only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.comparison.pddlstream_sampling import Choice, PddlStreamSampling, handled_variable

from tmkit.errors import ConfigurationError
from tmkit.pddl import Action, And, Not
from tmkit.pddl.formulas import Atom, Formula, Or
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem


class StockDeclaration(PddlStreamSampling):
    """Problem of PDDLStream with the fewest streams: places of the domain, whole motions."""

    def __init__(self, problem: PlanningProblem, options: PlanningOptions, attempt: int) -> None:
        super().__init__(problem, options, attempt)
        self.declared: list[str] = []
        self.streams: list[str] = []
        self.functions: dict[str, Any] = {}

    def solve(
        self, library: Mapping[str, Any], algorithm: str, seconds: float
    ) -> Sequence[tuple[str, tuple[Any, ...]]] | None:
        """Return the actions of a plan with their values, or None.

        Args:
            library: functions of PDDLStream by name.
            algorithm: name of PDDLStream's algorithm.
            seconds: time limit [s].
        """
        self.library = library
        domain = self._domain()
        constants = {
            constant.name: constant.name for constant in self.facts.problem.domain.constants
        }
        streams = f"(define (stream s) {' '.join(self.streams)})"
        met = [("met", wanted.name) for wanted in self.goals.values()]
        goal = ("and", read_goal(self.facts.problem.goal), *met)
        task = library["problem"](domain, constants, streams, self.functions, self._init(), goal)
        library["reset"]()
        plan, _, _ = library["solve"](
            task,
            algorithm=algorithm,
            unit_costs=True,
            max_time=seconds,
            verbose=False,
            **self._settings(),
        )
        return (
            None if not isinstance(plan, list) else [(name, tuple(values)) for name, values in plan]
        )

    def _settings(self) -> dict[str, Any]:
        """Return further arguments of PDDLStream's ``solve``."""
        return {}

    def _init(self) -> list[tuple[Any, ...]]:
        """Return the facts at the start."""
        init: list[tuple[Any, ...]] = [
            (fact.predicate, *fact.arguments) for fact in self.facts.problem.init
        ]
        for name, types in self.facts.problem.objects.items():
            words = {"object", *types}
            words |= {
                t.name
                for t in self.facts.problem.domain.types
                if name in self.facts.problem.objects_of(t.name)
            }
            init += [(f"is-{word}", name) for word in sorted(words)]
            init += [("is-movable" if self.frames[name] in self.movable else "is-fixed", name)]
        for frame, rest in self.rests.items():
            name = self._name(frame)
            init += [("rest", name, rest), ("at-rest", name, rest)]
        for wanted in self.goals.values():
            init += [
                ("wants", wanted.name, *fact.arguments[:1], fact.arguments[-1])
                for fact in sorted(wanted.facts)
            ]
            predicates = {fact.predicate for fact in wanted.facts}
            arguments = [
                fact.arguments for fact in self.facts.problem.init if fact.predicate in predicates
            ]
            init += [
                ("rest-at", x, place, self.rests[self.frames[x]]) for x, *_, place in arguments
            ]
        if self.base is not None:
            stand = Choice(self._stand(self.q))
            init += [("at-stand", stand)]
            init += [
                ("stand", fact.arguments[0], stand)
                for fact in self.facts.problem.init
                if fact.predicate == "at"
            ]
        return init

    def _domain(self) -> str:
        """Return the domain in PDDL, and fill in the streams."""
        self._stream("grasp", self.grasps, "?x", "(is-movable ?x)", "?g0", "(grasp ?x ?g0)")
        self._stream(
            "clears",
            self.clears,
            "?m0 ?o0 ?r0",
            "(motion ?m0) (rest ?o0 ?r0)",
            "",
            "(clears ?m0 ?o0 ?r0)",
        )
        self._stream(
            "meets",
            self.meets,
            "?k0 ?x ?l0 ?r0",
            "(wants ?k0 ?x ?l0) (rest-at ?x ?l0 ?r0)",
            "",
            "(meets ?k0 ?x ?l0 ?r0)",
        )
        if self.base is not None:
            self._stream("stand", self.stands, "?l0", "(is-location ?l0)", "?b0", "(stand ?l0 ?b0)")
        texts = [text for action in self.actions.values() for text in self._action(action)]
        own = """(rest ?x ?r0) (at-rest ?x ?r0) (grasp ?x ?g0) (in-hand ?x ?g0) (motion ?m0)
            (moves ?x ?m0) (unsafe ?m0) (clears ?m0 ?o0 ?r0) (wants ?k0 ?x ?l0)
            (meets ?k0 ?x ?l0 ?r0) (met ?k0) (rest-at ?x ?l0 ?r0) (stand ?l0 ?b0) (at-stand ?b0)"""
        unsafe = (
            "(exists (?x ?o0 ?r0) (and (motion ?m0) (moves ?x ?m0) (rest ?o0 ?r0) (at-rest ?o0 ?r0)"
            " (not (= ?x ?o0)) "
        )
        unsafe += "(not (clears ?m0 ?o0 ?r0))))"
        condition = (
            "(exists (?x ?l0 ?r0) (and (wants ?k0 ?x ?l0) (rest-at ?x ?l0 ?r0) (at-rest ?x ?r0) "
        )
        condition += "(meets ?k0 ?x ?l0 ?r0)))"
        derived = [f"(:derived (unsafe ?m0) {unsafe})", f"(:derived (met ?k0) {condition})"]
        return self._domain_text(own, texts, derived)

    def _domain_text(self, predicates: str, actions: Sequence[str], derived: Sequence[str]) -> str:
        """Return the PDDL domain.

        Args:
            predicates: declarations beside those of the facts and the types.
            actions: text of each action.
            derived: text of each axiom.
        """
        domain = self.facts.problem.domain
        atoms = [
            f"({' '.join((p.name, *(q.name for q in p.parameters)))})" for p in domain.predicates
        ]
        types = [f"(is-{name} ?x)" for name in ("object", "movable", "fixed")]
        types += [f"(is-{kind.name} ?x)" for kind in domain.types]
        declared = dict.fromkeys([*atoms, *types, predicates, *self.declared])
        constants = " ".join(constant.name for constant in domain.constants)
        return (
            f"(define (domain d) (:requirements :strips :equality) (:constants {constants})"
            f" (:predicates {' '.join(declared)}) {' '.join(actions)} {' '.join(derived)})"
        )

    def _stream(
        self, name: str, function: Any, inputs: str, domain: str, outputs: str, certified: str
    ) -> None:
        outputs_clause = f":outputs ({outputs})" if outputs else ""
        self.streams.append(
            f"(:stream {name} :inputs ({inputs}) :domain (and {domain}) {outputs_clause}"
            f" :certified (and {certified}))"
        )
        self.functions[name] = (
            self.library["from_gen_fn"] if outputs else self.library["from_test"]
        )(function)

    def _action(self, action: Action) -> Iterator[str]:
        """Yield an action with its choices; a place once on fixed supports and once on objects."""
        names = [parameter.name for parameter in action.parameters]
        kinds = " ".join(
            write_types(parameter.name, parameter.types) for parameter in action.parameters
        )
        effect = re.sub(r"\(increase \(total-cost\) [^()]*\)", "", str(action.effect))
        before, after = f"{kinds} {action.precondition}", effect
        more: list[str] = []
        name, base = action.name, self.base is not None
        if name == "drive" and base:
            more = ["?b01", "?b02"]
            before += f" (at-stand ?b01) (stand {names[1]} ?b02)"
            after += " (at-stand ?b02) (not (at-stand ?b01))"
        if (role := handled_variable(action)) is None:
            yield write_action(name, [*names, *more], before, after)
            return
        item, is_placing = role
        place = next(n for n in names[names.index(item) + 1 :])
        stand, stands = (" ?b0", f" (stand {place} ?b0)") if base else ("", "")
        way_atom = f"(way-{name} {' '.join(names)} ?r0 ?g0{stand} ?m0)"
        certified = f"{way_atom} (motion ?m0) (moves {item} ?m0)"
        self.declared.append(way_atom)
        chosen = f"{way_atom} (not (unsafe ?m0)){' (at-stand ?b0)' if base else ''}"
        shared = f"{' '.join(names)} ?r0 ?g0{stand}"
        put = f"(put-{name} {' '.join(names)} ?r0)"
        domain_facts = put if is_placing else f"{kinds} (rest {item} ?r0)"
        self._stream(
            f"way-{name}",
            self.ways(action, place, is_placing),
            shared,
            f"{domain_facts} (grasp {item} ?g0){stands}",
            "?m0",
            certified,
        )
        if not is_placing:
            before += f" (at-rest {item} ?r0) {chosen}"
            after += f" (in-hand {item} ?g0) (not (at-rest {item} ?r0))"
            yield write_action(name, [*names, "?r0", "?g0", *stand.split(), "?m0"], before, after)
            return
        rests = f"(rest {item} ?r0) (rest-at {item} {place} ?r0)"
        self.declared.append(put)
        before += f" {put} (in-hand {item} ?g0) {chosen}"
        after += f" (at-rest {item} ?r0) (not (in-hand {item} ?g0))"
        parameters = [*names, "?r0", "?g0", *stand.split(), "?m0"]
        kinds_of_place = {
            self.frames[n] in self.movable
            for n in self.facts.problem.objects_of(self._types(action, place))
        }
        if False in kinds_of_place:
            self._stream(
                f"put-{name}",
                self.puts(action, item, place),
                " ".join(names),
                f"{kinds} (is-movable {item}) (is-fixed {place})",
                "?r0",
                f"{put} {rests}",
            )
            yield write_action(name, parameters, f"{before} (is-fixed {place})", after)
        if True in kinds_of_place:
            on = f"(on-{name} ?r0 ?s0)"
            self.declared.append(on)
            self._stream(
                f"put-on-{name}",
                self.puts(action, item, place),
                f"{' '.join(names)} ?s0",
                f"{kinds} (is-movable {item}) (is-movable {place}) (rest {place} ?s0)",
                "?r0",
                f"{put} {on} {rests}",
            )
            yield write_action(
                f"{name}--on", [*parameters, "?s0"], f"{before} {on} (at-rest {place} ?s0)", after
            )

    def _types(self, action: Action, variable: str) -> tuple[str, ...]:
        return next(
            parameter.types for parameter in action.parameters if parameter.name == variable
        )


def write_types(variable: str, types: Sequence[str]) -> str:
    """Return the condition that a variable has one of some types."""
    kinds = [f"(is-{name} {variable})" for name in types]
    return kinds[0] if len(kinds) == 1 else f"(or {' '.join(kinds)})"


def write_action(name: str, parameters: Sequence[str], before: str, after: str) -> str:
    """Return an action in PDDL with its precondition and effect."""
    return (
        f"(:action {name} :parameters ({' '.join(parameters)}) :precondition (and {before}) :effect"
        f" (and {after}))"
    )


def read_goal(goal: Formula) -> tuple[Any, ...]:
    """Return a goal as PDDLStream writes it.

    Raises:
        ConfigurationError: if the goal has quantifiers.
    """
    match goal:
        case And(parts) | Or(parts):
            return ("and" if isinstance(goal, And) else "or", *map(read_goal, parts))
        case Atom():
            return (goal.predicate, *goal.terms)
        case Not(Atom() as atom):
            return ("not", (atom.predicate, *atom.terms))
    raise ConfigurationError(
        f"a goal with '{goal}' is not read for PDDLStream: facts joined by 'and' and 'or' are"
    )
