"""Durative actions: parsing, schedules and rejected inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from typer.testing import CliRunner

from tmkit.cli.commands import app
from tmkit.errors import TaskError
from tmkit.pddl import Fact, GroundAction, Problem, parse_domain, parse_problem, schedule_fault
from tmkit.pddl.validation import SEPARATION, TimedAction
from tmkit.task_planning import FastDownward, TaskPlanStatus, UnifiedPlanner, makespan, schedule
from tmkit.task_planning.unified.conversion import problem_from_unified, problem_to_unified

TRUCKS = """(define (domain trucks) (:requirements :durative-actions :typing)
  (:types place truck pack)
  (:predicates (at ?t - truck ?p - place) (in ?k - pack ?t - truck) (on ?k - pack ?p - place)
    (road ?a ?b - place) (free ?t - truck))
  (:functions (time ?a ?b - place))
  (:durative-action drive :parameters (?t - truck ?a ?b - place)
    :duration (= ?duration (time ?a ?b))
    :condition (and (at start (at ?t ?a)) (at start (free ?t)) (over all (road ?a ?b)))
    :effect (and (at start (not (at ?t ?a))) (at start (not (free ?t)))
      (at end (free ?t)) (at end (at ?t ?b))))
  (:durative-action load :parameters (?k - pack ?t - truck ?p - place) :duration (= ?duration 2)
    :condition (and (at start (on ?k ?p)) (over all (at ?t ?p)))
    :effect (and (at start (not (on ?k ?p))) (at end (in ?k ?t))))
  (:durative-action unload :parameters (?k - pack ?t - truck ?p - place)
    :duration (and (>= ?duration 1) (<= ?duration 3))
    :condition (and (at start (in ?k ?t)) (over all (at ?t ?p)))
    :effect (and (at start (not (in ?k ?t))) (at end (on ?k ?p)))))"""

MATCH = """(define (domain cellar) (:requirements :durative-actions)
  (:predicates (light) (unused) (mended))
  (:durative-action burn :parameters () :duration (= ?duration 8) :condition (at start (unused))
    :effect (and (at start (not (unused))) (at start (light)) (at end (not (light)))))
  (:durative-action mend :parameters () :duration (= ?duration 5) :condition (over all (light))
    :effect (at end (mended))))"""


def trucks(
    packs: list[tuple[str, str]],
    *,
    time: float = 5.0,
    metric: str = "(:metric minimize (total-time))",
) -> Problem:
    """Return a task that moves packs between places, with a truck at ``a`` and one at ``b``."""
    facts = " ".join(f"(on k{n} {start})" for n, (start, _) in enumerate(packs))
    goal = " ".join(f"(on k{n} {end})" for n, (_, end) in enumerate(packs))
    names = " ".join(f"k{n}" for n in range(len(packs)))
    text = f"""(define (problem p) (:domain trucks)
      (:objects a b c - place s t - truck {names} - pack)
      (:init (at s a) (at t b) (free s) (free t) {facts} (road a b) (road b a) (road b c) (road c b)
        (= (time a b) {time}) (= (time b a) 6) (= (time b c) 3) (= (time c b) 3))
      (:goal (and {goal})) {metric})"""
    return parse_problem(text, parse_domain(TRUCKS))


def test_two_trucks_drive_at_once() -> None:
    """The known optimum: load, the longer road, unload, with each truck independent."""
    problem = trucks([("a", "b"), ("b", "a")])
    result = FastDownward().solve(problem)
    assert result.cost == 2 + 2 + 5 + 6 + 1 + 1
    timed_actions = schedule(problem, result.steps)
    assert makespan(timed_actions) == pytest.approx(2 + 6 + 1 + 2 * SEPARATION)
    assert schedule_fault(problem, timed_actions) == ""
    assert (
        str(timed_actions[0]) == "0.000: (load k0 s a) [2.000]"
        or str(timed_actions[0]) == "0.000: (load k1 t b) [2.000]"
    )


@settings(max_examples=scaled_examples(0.05), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=3),
    st.data(),
)
def test_schedules_are_valid_and_no_longer_than_one_after_the_other(
    packs: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Schedules obey PDDL 2.1; a moved action is valid, or the checker reports the violation."""
    problem = trucks(packs)
    result = FastDownward().solve(problem)
    timed_actions = schedule(problem, result.steps)
    assert schedule_fault(problem, timed_actions) == ""
    total = sum(action.duration for action in timed_actions)
    assert makespan(timed_actions) <= total + SEPARATION * len(timed_actions)
    assert result.cost == pytest.approx(total)
    if timed_actions:
        index = data.draw(st.integers(0, len(timed_actions) - 1))
        moved = replace(
            timed_actions[index], start=data.draw(st.sampled_from([0.0, 1.0, 2.5, 40.0]))
        )
        fault = schedule_fault(
            problem, [*timed_actions[:index], moved, *timed_actions[index + 1 :]]
        )
        if (
            moved.start > max(action.end for action in timed_actions)
            and moved.action.name == "load"
        ):
            assert "does not hold" in fault  # too late for later actions
        if moved.start == 0.0 and moved.action.name == "unload":
            assert fault.startswith("0.000: (unload")


def test_facts_that_pass_are_known_to_the_checker_alone() -> None:
    """A match burns once and mending needs its light: no sequence exists, but a schedule does."""
    text = "(define (problem p) (:domain cellar) (:init (unused)) (:goal (mended)))"
    problem = parse_problem(text, parse_domain(MATCH))
    assert FastDownward().solve(problem).status is TaskPlanStatus.UNSOLVABLE
    burn, mend = (
        schedule(problem, [step])[0] for step in (problem_step("burn"), problem_step("mend"))
    )
    assert schedule_fault(problem, [burn, replace(mend, start=1.0)]) == ""
    assert (
        schedule_fault(problem, [burn, replace(mend, start=4.0)])
        == "8.000: (burn) during (mend): (light) does not hold"
    )
    assert schedule_fault(problem, [burn]) == "the goal is not reached: (mended) does not hold"
    assert "does not take 5" in schedule_fault(problem, [burn, replace(mend, duration=4.0)])


def problem_step(name: str) -> GroundAction:
    """Return an action without arguments."""
    return GroundAction(name)


def test_the_command_writes_a_schedule(tmp_path: Path) -> None:
    """Lines have the format of competitions; a problem that needs overlap is reported as such."""
    for name, domain in (("trucks", TRUCKS), ("cellar", MATCH)):
        (tmp_path / f"{name}.pddl").write_text(domain)
    (tmp_path / "p.pddl").write_text(
        "(define (problem p) (:domain trucks) (:objects a - place t - truck k - pack)"
        " (:init (at t a) (on k a)) (:goal (in k t)))"
    )
    (tmp_path / "q.pddl").write_text(
        "(define (problem q) (:domain cellar) (:init (unused)) (:goal (mended)))"
    )
    solved = CliRunner().invoke(
        app, ["task", str(tmp_path / "trucks.pddl"), str(tmp_path / "p.pddl")]
    )
    assert solved.output == "0.000: (load k t a) [2.000]\n; makespan = 2.000\n"
    failed = CliRunner().invoke(
        app, ["task", str(tmp_path / "cellar.pddl"), str(tmp_path / "q.pddl")]
    )
    assert failed.exit_code == 1
    assert (
        "no plan whose actions follow one another: that is proved. Some may have to overlap"
        in failed.output
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (":duration (= ?duration 2)", "", r"d:11:\d+: action 'load' has no duration"),
        (
            "(= ?duration 2)",
            "(= ?duration -2)",
            r"d:11:\d+: the duration of 'load' is below zero: -2",
        ),
        ("(= ?duration 2)", "(<= ?duration 2)", r"d:11:\d+: expected \(= \?duration EXPRESSION\)"),
        ("(= ?duration 2)", "(= ?duration (tim ?a))", r"d:11:\d+: unknown function 'tim'"),
        (
            "(at end (in ?k ?t))",
            "(at end (increase (work) ?duration))",
            r"d:13:\d+: '\?duration' in a condition or",
        ),
        (
            "(at end (in ?k ?t))",
            "(increase (work) (* #t 1))",
            r"d:13:\d+: continuous effects \(#t\) are not supported",
        ),
        (
            "(at end (in ?k ?t))",
            "(when (at start (on ?k ?p)) (at end (in ?k ?t)))",
            r"d:13:\d+: .*one time for both",
        ),
        (
            "(at start (on ?k ?p))",
            "(on ?k ?p)",
            r"d:12:\d+: expected \(at start ...\), \(over all ...\) or",
        ),
        (
            "(at end (in ?k ?t))",
            "(over all (in ?k ?t))",
            r"d:13:\d+: an effect is \(at start ...\) or \(at end",
        ),
        (
            "(over all (at ?t ?p))",
            "(over all (on ?k ?p))",
            r"d:11:\d+: action 'load': the condition after the start",
        ),
        (
            "(at end (in ?k ?t))",
            "(at end (when (on ?k ?p) (in ?k ?t)))",
            "the condition of an effect, .* may depend",
        ),
        (
            ":condition (and (at start (on ?k ?p))",
            ":precondition (and (on ?k ?p)",
            "unexpected ':precondition'",
        ),
    ],
)
def test_faults_are_named_with_their_place(old: str, new: str, message: str) -> None:
    """An unsupported input is rejected with the place and the reason."""
    assert old in TRUCKS
    with pytest.raises(TaskError, match=message):
        parse_domain(TRUCKS.replace(old, new, 1), source="d")


def test_durations_of_a_problem_are_at_least_zero() -> None:
    """A negative duration is reported at its place, and a metric of time needs durations."""
    with pytest.raises(TaskError, match=r"4:\d+: the duration \(time a b\) is below zero: -1"):
        trucks([("a", "b")], time=-1.0)
    computed = parse_domain(
        TRUCKS.replace("(= ?duration (time ?a ?b))", "(= ?duration (- (time ?a ?b) 5))")
    )
    problem = replace(trucks([("a", "b")], time=4.0, metric=""), domain=computed)
    with pytest.raises(TaskError, match=r"the duration of \(drive s a b\) is below zero: -1"):
        schedule(problem, [GroundAction("drive", ("s", "a", "b"))])
    text = "(define (problem p) (:domain d) (:init) (:goal (p)) (:metric minimize (total-time)))"
    with pytest.raises(TaskError, match="no action has a duration"):
        parse_problem(text, parse_domain("(define (domain d) (:predicates (p)))"))


def test_at_one_instant_all_see_the_state_before_it() -> None:
    """An action may begin with the start that achieves its invariant, but not its condition."""
    problem = parse_problem(
        "(define (problem p) (:domain cellar) (:init (unused)) (:goal (mended)))",
        parse_domain(MATCH),
    )
    burn, mend = (
        TimedAction(0.0, problem_step(name), length)
        for name, length in (("burn", 8.0), ("mend", 5.0))
    )
    assert schedule_fault(problem, [burn, mend]) == schedule_fault(problem, [mend, burn]) == ""
    early = parse_domain(
        MATCH.replace(":condition (over all (light))", ":condition (at start (light))")
    )
    for actions in ([burn, mend], [mend, burn]):
        assert (
            schedule_fault(replace(problem, domain=early), actions)
            == "0.000: (mend): (light) does not hold"
        )


@pytest.mark.parametrize("engine", ["tamer", "aries"])
def test_engines_plan_in_time(engine: str, tmp_path: Path) -> None:
    """Temporal planners find overlapping actions, and their schedules are valid and repeatable."""
    pytest.importorskip(f"up_{engine}")
    problem = parse_problem(
        "(define (problem p) (:domain cellar) (:init (unused)) (:goal (mended)))",
        parse_domain(MATCH),
    )
    planner = UnifiedPlanner(engine)
    result = planner.solve(problem)
    assert schedule_fault(problem, result.schedule) == ""
    assert (
        [timed.action.name for timed in result.schedule]
        == [step.name for step in result.steps]
        == ["burn", "mend"]
    )
    assert result.cost == makespan(result.schedule) == pytest.approx(8.0)
    assert planner.solve(problem) == result
    never = planner.prepare(problem).forbid(problem_step("mend"), [])
    assert not planner.search(never, time_limit=2.0).is_solved
    (tmp_path / "d.pddl").write_text(MATCH)
    (tmp_path / "p.pddl").write_text(
        "(define (problem p) (:domain cellar) (:init (unused)) (:goal (mended)))"
    )
    command = [
        "task",
        str(tmp_path / "d.pddl"),
        str(tmp_path / "p.pddl"),
        "--planner",
        f"unified:{engine}",
    ]
    assert (
        CliRunner().invoke(app, command).output
        == "".join(f"{timed}\n" for timed in result.schedule) + "; makespan = 8.000\n"
    )


def test_durations_go_to_unified_planning_and_back() -> None:
    """Timed conditions and effects are kept, time becomes makespan, a range its lower bound."""
    pytest.importorskip("unified_planning")
    problem = trucks([("a", "c"), ("b", "a")])
    unknown = {Fact.of("time", a, b): 99.0 for a in "abc" for b in "abc"}
    problem = replace(problem, values={**unknown, **problem.values})
    converted = problem_to_unified(problem)
    assert {"MAKESPAN", "CONTINUOUS_TIME", "STATIC_FLUENTS_IN_DURATIONS"} <= set(
        converted.kind.features
    )
    back = problem_from_unified(converted)
    assert problem_from_unified(problem_to_unified(back)) == back
    result = FastDownward().solve(back)
    assert result.cost == FastDownward().solve(problem).cost
    for task in (problem, back):
        assert schedule_fault(task, schedule(task, result.steps)) == ""
