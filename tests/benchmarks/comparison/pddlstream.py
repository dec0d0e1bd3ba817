"""PDDLStream as a planner of the arena, with grasps, placements and motions of tmkit.

`PDDLStream <https://github.com/caelan/pddlstream>`_ (Garrett et al., ICAPS 2020) is not on PyPI and
under the GPL: it is loaded from a checkout that the user names. A domain of tmkit becomes a
PDDLStream problem: actions that pick or place get a grasp, a pose and a motion as further
parameters, sampled by streams from the domain's candidates. A test stream checks a motion
against another object at a pose. The plan that PDDLStream returns is carried out with its grasps,
poses, motions and places of the base, in the whole scene.

Invariants: nothing of PDDLStream is imported before a planner is called.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.comparison.pddlstream_sampling import Choice, PddlStreamSampling, handled_variable

from tmkit._support.signals import temporary_folder
from tmkit.errors import ConfigurationError
from tmkit.pddl import Action, And, Not
from tmkit.pddl.formulas import Atom, Formula
from tmkit.plans import Plan
from tmkit.plans.continuous_goals import ArmAt
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem

ALGORITHMS = ("adaptive", "binding", "focused", "incremental")
DOMAINS = ("blocks", "hanoi", "kitchen", "mobile_manipulation", "rearrangement")
"""Readable domains: one hand picks and places, and other actions change facts or drive a base."""

_PLANS = 3  # of PDDLStream, where those before cannot be carried out
# which heuristics of Fast Downward have no more
_TRANSFORM = re.compile(r"\(transform=\w+\((?:[^()]*)\)\)")
_SECONDS = 600.0  # of a search without a time limit


@dataclass(frozen=True)
class PddlStream:
    """PDDLStream from a checkout as a planner of the arena, with Fast Downward of up-fast-downward.

    Args:
        folder: the checkout, with the submodule ``downward``, whose translator is used.
        algorithm: one of ``adaptive``, ``binding``, ``focused``, ``incremental``.

    Raises:
        ConfigurationError: if the algorithm is unknown, or there is no checkout; on a call, if
            the domain is unsupported.
    """

    folder: str
    algorithm: str = "adaptive"

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ConfigurationError(
                f"PDDLStream has no algorithm '{self.algorithm}': {', '.join(ALGORITHMS)}"
            )
        for file in ("pddlstream/algorithms/meta.py", "downward/src/translate/translate.py"):
            if not (Path(self.folder) / file).is_file():
                raise ConfigurationError(
                    f"'{self.folder}' is no checkout of PDDLStream with submodules: it has no"
                    f" {file}"
                )

    def __call__(self, problem: PlanningProblem, options: PlanningOptions) -> Plan | None:
        """Return the plan of a problem, or None.

        Args:
            problem: the problem, of a domain in :data:`DOMAINS`.
            options: the seed, the time limit, and how motions are planned.
        """
        if problem.domain not in DOMAINS:
            raise ConfigurationError(
                f"domain '{problem.domain}' is not read for PDDLStream: {', '.join(DOMAINS)}"
            )
        if any(isinstance(goal, ArmAt) for goal in problem.goals):
            raise ConfigurationError("goals of the arm are not read for PDDLStream")
        ends = time.monotonic() + min(options.seconds, _SECONDS)
        checkout = Path(self.folder).resolve()
        for attempt in range(_PLANS):
            compiled = _Compiled(problem, options, attempt)
            with contextlib.ExitStack() as stack:
                folder = stack.enter_context(temporary_folder("pddlstream"))
                # it writes below the working directory
                stack.enter_context(contextlib.chdir(folder))
                nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                stack.enter_context(contextlib.redirect_stdout(nowhere))
                library = _library(checkout, folder)
                actions = compiled.solved(library, self.algorithm, ends - time.monotonic())
            if actions is None or (plan := compiled.carried_out(actions)) is not None:
                return None if actions is None else plan
        return None


def _library(checkout: Path, folder: Path) -> dict[str, Any]:
    """Import PDDLStream, with Fast Downward in its build layout, in a folder without blanks."""
    from tmkit.task_planning.fast_downward_process import search_program

    builds = folder / "checkout" / "downward" / "builds" / "release" / "bin"
    builds.mkdir(parents=True)
    (builds / "translate").symlink_to(checkout.resolve() / "downward" / "src" / "translate")
    (builds / "downward").symlink_to(search_program())
    # it looks for builds beside itself
    shutil.copytree(checkout / "pddlstream", folder / "checkout" / "pddlstream")
    own = [str(folder / "checkout"), str(builds / "translate")]
    sys.path[:0] = own
    # its modules are called tools, pddl, ...: others are in their way
    for path in (builds / "translate").iterdir():
        if "translate" not in str(getattr(sys.modules.get(path.stem), "__file__", "")):
            sys.modules.pop(path.stem, None)
    try:
        downward: Any = import_module("pddlstream.algorithms.downward")
        algorithm, meta = (
            import_module(f"pddlstream.algorithms.{name}") for name in ("algorithm", "meta")
        )
        constants, generator = (
            import_module(f"pddlstream.language.{name}") for name in ("constants", "generator")
        )
    finally:
        for entry in own:
            sys.path.remove(entry)
    downward.FD_BIN = str(builds)  # of this call, where the package was imported before
    # of the translator, whose folder PDDLStream has put on the path
    tasks = import_module("sas_tasks").SASTask
    # the class is PDDLStream's, which offers no other place for this
    if not hasattr(tasks, "plain_output"):
        tasks.plain_output, tasks.output = tasks.output, _output
    options = downward.SEARCH_OPTIONS
    options.update({name: _TRANSFORM.sub("()", text) for name, text in options.items()})
    return {
        "solve": meta.solve,
        "reset": algorithm.reset_globals,
        "problem": constants.PDDLProblem,
        "from_gen_fn": generator.from_gen_fn,
        "from_test": generator.from_test,
    }


def _output(task: Any, stream: Any) -> None:
    """Write a task for Fast Downward without the default-value rules of derived variables."""
    task.axioms = [
        axiom for axiom in task.axioms if task.init.values[axiom.effect[0]] != axiom.effect[1]
    ]
    task.plain_output(stream)


class _Compiled(PddlStreamSampling):
    """A problem as PDDLStream's: texts and streams."""

    def __init__(self, problem: PlanningProblem, options: PlanningOptions, attempt: int) -> None:
        super().__init__(problem, options, attempt)
        self.declared: list[str] = []
        self.streams: list[str] = []
        self.functions: dict[str, Any] = {}

    def solved(
        self, library: Mapping[str, Any], algorithm: str, seconds: float
    ) -> Sequence[tuple[str, tuple[Any, ...]]] | None:
        """Return the actions of a plan with their values, or None."""
        self.library = library
        domain = self._domain()
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
        goal: list[Any] = ["and", *_literals(self.facts.problem.goal)]
        for wanted in self.goals.values():
            goal.append(("met", wanted.name))
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
        constants = {
            constant.name: constant.name for constant in self.facts.problem.domain.constants
        }
        streams = f"(define (stream s) {' '.join(self.streams)})"
        task = library["problem"](domain, constants, streams, self.functions, init, tuple(goal))
        library["reset"]()
        plan, _, _ = library["solve"](
            task, algorithm=algorithm, unit_costs=True, max_time=seconds, verbose=False
        )
        return (
            None if not isinstance(plan, list) else [(name, tuple(values)) for name, values in plan]
        )

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
        atoms = [
            f"({' '.join((p.name, *(q.name for q in p.parameters)))})"
            for p in self.facts.problem.domain.predicates
        ]
        types = [f"(is-{name} ?x)" for name in ("object", "movable", "fixed")]
        types += [f"(is-{kind.name} ?x)" for kind in self.facts.problem.domain.types]
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
        constants = " ".join(constant.name for constant in self.facts.problem.domain.constants)
        return (
            f"(define (domain d) (:requirements :strips :equality) (:constants {constants})"
            f" (:predicates {' '.join(dict.fromkeys([*atoms, *types, own, *self.declared]))})"
            f" {' '.join(texts)} (:derived (unsafe ?m0) {unsafe}) (:derived (met ?k0) {condition}))"
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
        kinds = " ".join(_kind(parameter.name, parameter.types) for parameter in action.parameters)
        effect = re.sub(r"\(increase \(total-cost\) [^()]*\)", "", str(action.effect))
        before, after = f"{kinds} {action.precondition}", effect
        more: list[str] = []
        name, base = action.name, self.base is not None
        if name == "drive" and base:
            more = ["?b01", "?b02"]
            before += f" (at-stand ?b01) (stand {names[1]} ?b02)"
            after += " (at-stand ?b02) (not (at-stand ?b01))"
        if (role := handled_variable(action)) is None:
            yield _write_task(name, [*names, *more], before, after)
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
            yield _write_task(name, [*names, "?r0", "?g0", *stand.split(), "?m0"], before, after)
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
            yield _write_task(name, parameters, f"{before} (is-fixed {place})", after)
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
            yield _write_task(
                f"{name}--on", [*parameters, "?s0"], f"{before} {on} (at-rest {place} ?s0)", after
            )

    def _types(self, action: Action, variable: str) -> tuple[str, ...]:
        return next(
            parameter.types for parameter in action.parameters if parameter.name == variable
        )


def _kind(variable: str, types: Sequence[str]) -> str:
    kinds = [f"(is-{name} {variable})" for name in types]
    return kinds[0] if len(kinds) == 1 else f"(or {' '.join(kinds)})"


def _write_task(name: str, parameters: Sequence[str], before: str, after: str) -> str:
    return (
        f"(:action {name} :parameters ({' '.join(parameters)}) :precondition (and {before}) :effect"
        f" (and {after}))"
    )


def _literals(goal: Formula) -> Iterator[tuple[Any, ...]]:
    """Yield the conjuncts of a goal as PDDLStream writes them."""
    if isinstance(goal, And):
        for part in goal.parts:
            yield from _literals(part)
    elif isinstance(goal, Atom):
        yield (goal.predicate, *goal.terms)
    elif isinstance(goal, Not) and isinstance(goal.part, Atom):
        yield ("not", (goal.part.predicate, *goal.part.terms))
    else:
        raise ConfigurationError(
            f"a goal with '{goal}' is not read for PDDLStream: facts joined by 'and' are"
        )
