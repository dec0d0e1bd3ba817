"""Fast Downward as a task planner: right, repeatable, and gone when it is done."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.processes import Process, run_process
from support.task_problems import DATA, FEATURES, blocks_world, load, samples, shortest_plan

from tmkit._support import subprocesses as processes
from tmkit.errors import MissingExtraError, TaskPlannerError
from tmkit.pddl import (
    And,
    Fact,
    GroundAction,
    Problem,
    State,
    load_domain,
    load_problem,
    parse_domain,
    parse_goal,
    parse_problem,
    validate_task_plan,
)
from tmkit.pddl.formulas import Atom
from tmkit.pddl.model import Metric
from tmkit.task_planning import (
    FastDownward,
    TaskPlanner,
    TaskPlanStatus,
    fast_downward,
    fast_downward_process as downward,
)

PLACES = load_domain(DATA / "places" / "domain.pddl")
PLANNER: TaskPlanner = FastDownward()


@pytest.fixture(autouse=True)
def _no_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Every test leaves the folder for temporary files as empty as it found it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert not [entry.name for entry in tmp_path.iterdir() if entry.name.startswith("tmkit-")]


def with_goal(problem: Problem, goal: str) -> Problem:
    """Return the problem with another goal."""
    formula = parse_goal(goal, problem.domain, objects=problem.objects)
    return Problem(
        problem.name, problem.domain, objects=problem.objects, init=problem.init, goal=formula
    )


@pytest.mark.parametrize(
    ("name", "cost"), [("places", 6), ("gripper", 11), ("rooms", 24), ("lamps", 5), ("oddities", 3)]
)
def test_own_problems_are_solved(name: str, cost: float) -> None:
    """Every example problem is solved at its known best cost with a valid plan."""
    problem = load(name)
    result = PLANNER.solve(problem, time_limit=600.0)
    validation = validate_task_plan(problem, result.steps)
    assert (result.status, validation.message) == (TaskPlanStatus.SOLVED, "")
    assert result.cost == validation.cost == cost
    assert result.statistics.expanded > 0


@pytest.mark.parametrize(("name", "cost"), FEATURES.items())
def test_every_feature_is_solved(name: str, cost: float) -> None:
    """Tasks with one feature of published domains are solved at their best cost."""
    problem = load(f"features/{name}")
    result = PLANNER.solve(problem, time_limit=600.0)
    validation = validate_task_plan(problem, result.steps)
    assert (result.status, validation.message) == (TaskPlanStatus.SOLVED, "")
    assert result.cost == validation.cost == cost


def test_costs_with_fractions_are_minimised() -> None:
    """Costs that are no whole numbers are read as they are: 3.5 for one way, 1.5 for a door."""
    problem = with_goal(load("rooms"), "(robot-at kitchen)")
    costly = Problem(
        problem.name,
        problem.domain,
        objects=problem.objects,
        init=problem.init,
        goal=problem.goal,
        metric=Metric.TOTAL_COST,
        values={fact: value + 0.25 for fact, value in load("rooms").values.items()},
    )
    assert PLANNER.solve(costly, time_limit=600.0).cost == 5.5


@settings(max_examples=scaled_examples(0.08))
@given(seed=st.integers(0, 10**6), blocks=st.integers(1, 5), spare=st.integers(0, 3))
def test_random_blocks_worlds_are_solved(seed: int, blocks: int, spare: int) -> None:
    """A random blocks world with a place for every block is solved, and the plan is valid."""
    problem = blocks_world(PLACES, blocks=blocks, places=blocks + spare, seed=seed)
    result = PLANNER.solve(problem, time_limit=600.0)
    assert result.is_solved
    assert validate_task_plan(problem, result.steps).message == ""


@pytest.mark.parametrize("seed", range(6))
def test_plans_of_small_blocks_worlds_are_short(seed: int) -> None:
    """With three blocks, the plan is at most one move (two actions) longer than the shortest."""
    problem = blocks_world(PLACES, blocks=3, places=4, seed=seed)
    best = shortest_plan(problem)
    assert best is not None
    assert best <= len(PLANNER.solve(problem, time_limit=600.0).steps) <= best + 2


@pytest.mark.parametrize("seed", range(2))
def test_eight_blocks_on_many_places(seed: int) -> None:
    """Eight blocks with 49 interchangeable places are solved with at most four actions a block."""
    problem = blocks_world(PLACES, blocks=8, places=49, seed=seed)
    result = PLANNER.solve(problem, time_limit=600.0)
    assert result.is_solved
    assert len(result.steps) <= 4 * 8


UNSOLVABLE = [
    "(and (on a b) (on b a))",  # found by search
    "(and (held a) (empty))",  # excluded by an invariant
    "(and (held a) (held b))",
    "(on a a)",  # not even relaxed reachable
    "(or)",
]


@pytest.mark.parametrize("goal", UNSOLVABLE)
def test_unsolvable_is_proved(goal: str) -> None:
    """Goals that cannot be reached are proved so, by the translator or by the search."""
    result = PLANNER.solve(with_goal(load("places"), goal), time_limit=600.0)
    assert (result.status, result.steps) == (TaskPlanStatus.UNSOLVABLE, ())


@pytest.mark.parametrize(
    "goal", ["(and)", "(clear c)", "(not (held a))", "(forall (?p - place) (not (clear ?p)))"]
)
def test_negative_and_quantified_goals_keep_their_meaning(goal: str) -> None:
    """Goals that hold already need no step, others the steps that bring them about."""
    problem = with_goal(load("places"), goal)
    result = PLANNER.solve(problem, time_limit=600.0)
    assert result.is_solved
    assert validate_task_plan(problem, result.steps).is_valid
    assert (result.steps == ()) == problem.holds(problem.init, problem.goal)


def test_time_is_limited() -> None:
    """A task that takes hours ends with the status LIMIT at every stage of planning."""
    hard = blocks_world(PLACES, blocks=40, places=45, seed=1)
    for limit in (0.0, 0.05, 1.0):
        planner = FastDownward(core_work=0, landmark_search="", first_search="astar(blind())")
        result = planner.solve(hard, time_limit=limit)
        assert result.status is TaskPlanStatus.LIMIT
    unfinished = FastDownward().translate(
        blocks_world(PLACES, blocks=40, places=45, seed=2), time_limit=0.0
    )
    assert not unfinished.is_complete
    assert (
        FastDownward().search(unfinished.forbid(GroundAction("lift", ("b0", "p0")), ())).status
        is TaskPlanStatus.LIMIT
    )


def test_a_problem_is_translated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same problem is translated once for all planners, each with its own encoding."""
    problem = blocks_world(PLACES, blocks=3, places=5, seed=77)
    first = FastDownward().translate(problem)
    monkeypatch.setattr(fast_downward, "translate_text", None)
    assert FastDownward().translate(problem) == first
    assert first.encoding == "auto"
    assert FastDownward.optimal().translate(problem) == replace(first, encoding="split")


def test_the_same_task_gives_the_same_plan_beside_others() -> None:
    """Runs one after another and at the same time give the same plan."""
    problem = blocks_world(PLACES, blocks=5, places=12, seed=7)
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: PLANNER.solve(problem, time_limit=600.0), range(3)))
    alone = PLANNER.solve(problem, time_limit=600.0)
    assert alone.is_solved
    assert {result.steps for result in results} == {alone.steps}
    assert all(result.statistics.expanded == alone.statistics.expanded for result in results)


def test_the_plan_does_not_depend_on_the_hash_seed() -> None:
    """Under different hash seeds, the bytes given to the search and the plan are the same."""
    code = (
        "import hashlib; from support.task_problems import load; from tmkit.task_planning import"
        " FastDownward;p = load('rooms'); f = FastDownward(); t = f.translate(p);t ="
        " t.forbid(f.search(t).steps[1],"
        " p.init);print(hashlib.sha256(t.to_text().encode()).hexdigest(), *f.search(t).steps)"
    )
    outputs = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(DATA.parent.parent)}
        done = run_process(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_interrupting_ends_the_program_and_removes_its_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interrupt while the search runs kills it at once, and nothing is left behind."""
    started: list[Process] = []
    popen = Process

    def remember(*args: object, **kwargs: object) -> Process:
        process = popen(*args, **kwargs)
        started.append(process)
        timer.start()
        return process

    task = FastDownward().translate(blocks_world(PLACES, blocks=9, places=12, seed=1))
    monkeypatch.setattr(processes.subprocess, "Popen", remember)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        FastDownward(core_work=0, landmark_search="", first_search="astar(blind())").search(
            task, time_limit=600.0
        )
    timer.join()
    assert started
    assert all(process.poll() is not None for process in started)


def test_a_search_without_time_proves_nothing() -> None:
    """The exit code for unsolvable tasks is ignored if a search of a chain ran out of time."""
    hurried = "let(h, ff(), eager(single(h), max_time=0))"
    chained = FastDownward(core_work=0, landmark_search="", first_search=hurried).solve(
        load("places")
    )
    parallel = FastDownward(core_work=0, landmark_search=hurried).solve(load("places"))
    assert chained.is_solved
    assert parallel.is_solved


def test_a_program_that_breaks_is_an_error_with_its_output() -> None:
    """A search that does not exist is an error with the output of the program."""
    with pytest.raises(
        TaskPlannerError, match=r"(?s)ended with exit code 33; it wrote:.*no_such_search"
    ) as caught:
        FastDownward(core_work=0, landmark_search="", first_search="no_such_search()").solve(
            load("places")
        )
    assert "--search" in caught.value.data["command"]


def test_the_error_for_a_missing_program_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, the error names the package to install."""
    monkeypatch.setattr(downward.importlib.util, "find_spec", lambda _: None)
    downward.search_program.cache_clear()
    with pytest.raises(MissingExtraError, match="pip install up-fast-downward"):
        FastDownward(core_work=0).solve(load("places"))


def test_the_planner_is_never_imported() -> None:
    """Planning imports neither the planner's package nor the translator."""
    code = (
        "import sys; from support.task_problems import load; from tmkit.task_planning import"
        " FastDownward;assert FastDownward().solve(load('places')).is_solved;print([name for name"
        " in sys.modules if 'downward' in name and not name.startswith('tmkit')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(DATA.parent.parent)}
    done = run_process(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert eval(done.stdout) in ([], ["fast_downward"])


def test_names_that_pddl_cannot_say_are_planned_with() -> None:
    """Objects with spaces, parentheses, capitals or other letters keep their names in plans."""
    names = ("Big Cup", "größe", "a(1)", "o--1")
    objects = dict.fromkeys(names, "block") | dict.fromkeys(["Left?", "right", "3rd"], "place")
    facts = [
        Fact.of("empty"),
        Fact.of("at", names[0], "Left?"),
        Fact.of("clear", names[-1]),
        Fact.of("clear", "right"),
    ]
    facts += [Fact.of("clear", "3rd")]
    facts += [Fact.of("on", upper, lower) for lower, upper in itertools.pairwise(names)]
    goal = Atom("at", ("größe", "right"))
    problem = Problem("named", PLACES, objects=objects, init=State(facts), goal=goal)
    planner = FastDownward()
    result = planner.solve(problem)
    assert validate_task_plan(problem, result.steps).is_valid
    assert result.steps[-1] == GroundAction("lower", ("größe", "right"))
    task = planner.translate(problem)
    patched = task.forbid(result.steps[-1], [Fact.of("held", "größe")])
    assert planner.search(patched).status is TaskPlanStatus.UNSOLVABLE


@pytest.mark.parametrize(
    ("effect", "goal", "reason"),
    [
        ("(increase (total-cost) (* 2 (size)))", "(p)", r"the computed cost \(\* 2 \(size\)\)"),
        ("(when (p) (increase (total-cost) 1))", "(p)", "a cost that depends on a condition"),
        ("(increase (total-cost) -1)", "(p)", "the cost -1"),
        (
            "(increase (total-cost) 0.12345678)",
            "(p)",
            "the cost 0.12345678, which has more than six decimals",
        ),
        ("(p)", "(> (size) 3)", r"the numeric comparison \(> \(size\) 3\)"),
    ],
)
def test_unsupported_constructs_are_rejected(effect: str, goal: str, reason: str) -> None:
    """Unsupported costs and comparisons are rejected before the translator runs."""
    domain = parse_domain(
        "(define (domain d) (:predicates (p)) (:functions (total-cost) (size))"
        f" (:action a :parameters () :effect (and (p) {effect})))"
    )
    text = (
        f"(define (problem q) (:domain d) (:init (= (size) 2)) (:goal {goal}) (:metric minimize"
        " (total-cost)))"
    )
    with pytest.raises(
        TaskPlannerError, match=f":?1?: Fast Downward's translator cannot handle .*{reason}"
    ):
        PLANNER.solve(parse_problem(text, domain), time_limit=600.0)


def test_follow_up_searches_never_make_a_plan_worse() -> None:
    """Follow-up searches never increase the cost, and without work they change nothing."""
    for seed in range(3):
        task = FastDownward().translate(blocks_world(PLACES, blocks=6, places=10, seed=seed))
        first = FastDownward(follow_up_searches=()).search(task)
        assert FastDownward().search(task).cost <= first.cost
        assert replace(FastDownward(), improvement_work=0).search(task).steps == first.steps


def test_a_follow_up_search_without_a_plan_does_not_keep_others_from_running() -> None:
    """A search that gives up ends the chain in its process; those after it are run all the same."""
    task = FastDownward().translate(blocks_world(PLACES, blocks=8, places=3, seed=2))
    nothing, good = "lazy_wastar([ff()], w=3, max_time=0)", fast_downward.FOLLOW_UP_SEARCHES[0]
    expected = FastDownward(core_work=0, landmark_search="", follow_up_searches=(good,)).search(
        task
    )
    assert (
        FastDownward(core_work=0, landmark_search="", follow_up_searches=()).search(task).cost
        > expected.cost
    )
    for chain in (
        (nothing, good),
        (good, nothing),
        (nothing, nothing, good),
        (nothing, good, nothing),
    ):
        planner = FastDownward(core_work=0, landmark_search="", follow_up_searches=chain)
        assert planner.search(task).steps == expected.steps


@pytest.mark.parametrize("goal", ["(and (on a b) (on b c))", UNSOLVABLE[0]])
def test_a_slow_first_search_is_helped_by_a_proof_beside_it(
    goal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proving search beside the first search does not change the result."""
    task = FastDownward().translate(with_goal(load("places"), goal))
    expected = FastDownward().search(task)
    monkeypatch.setattr(fast_downward, "_FIRST_SECONDS", 0.0)
    for _ in range(5):
        result = FastDownward().search(task)
        assert (result.status, result.steps) == (expected.status, expected.steps)


def test_greedy_search_does_not_go_on_when_it_is_proved_that_there_is_no_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A first search that would take long is stopped by the proof."""
    monkeypatch.setattr(fast_downward, "_FIRST_SECONDS", 0.1)
    problem = blocks_world(PLACES, blocks=5, places=5, seed=2)
    task = FastDownward().translate(with_goal(problem, "(and (on b0 b1) (on b1 b2) (on b2 b0))"))
    slow = "lazy_wastar([hmax()], w=1)"
    assert (
        FastDownward(core_work=0, landmark_search="", first_search=slow)
        .search(task, time_limit=600.0)
        .status
        is TaskPlanStatus.UNSOLVABLE
    )


def test_programs_are_waited_for_where_the_system_does_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without news from the system, the end of a program is found by looking."""

    def missing(_: int) -> int:
        raise OSError("there is no such call")

    expected = PLANNER.solve(load("places"), time_limit=600.0)
    monkeypatch.setattr(processes.os, "pidfd_open", missing)
    assert PLANNER.solve(load("places"), time_limit=600.0).steps == expected.steps


def test_samples_are_solved() -> None:
    """The published samples are solved, and the plans are valid."""
    for domain_path, problem_path in samples():
        problem = load_problem(problem_path, load_domain(domain_path))
        result = PLANNER.solve(problem, time_limit=600.0)
        assert result.is_solved, problem_path
        assert validate_task_plan(problem, result.steps).is_valid, problem_path


def test_the_empty_goal_of_no_objects() -> None:
    """A problem without objects, facts and goals is solved by doing nothing."""
    problem = Problem("nothing", PLACES, objects={}, init=State(), goal=And())
    result = PLANNER.solve(problem, time_limit=600.0)
    assert (result.status, result.steps) == (TaskPlanStatus.SOLVED, ())


def towers_problem(blocks: int) -> Problem:
    """Return the problem of stacking blocks, each on a place of its own, to towers of five."""
    names, sites = [f"b{i}" for i in range(blocks)], [f"p{i}" for i in range(2 * blocks)]
    facts = [Fact.of("empty"), *(Fact.of("clear", name) for name in (*names, *sites[blocks:]))]
    facts += [Fact.of("at", name, site) for name, site in zip(names, sites, strict=False)]
    goal = [Atom("on", (names[k], names[k + 1])) for k in range(blocks - 1) if k % 5 != 4]
    objects = dict.fromkeys(names, "block") | dict.fromkeys(sites, "place")
    return Problem("towers", PLACES, objects=objects, init=State(facts), goal=And(tuple(goal)))


@pytest.mark.parametrize(("blocks", "fewest"), [(10, 16), (15, 24)])
def test_towers_are_built_with_the_fewest_steps(blocks: int, fewest: int) -> None:
    """Single blocks are stacked to towers of five with one pick each, except for the lowest."""
    problem = towers_problem(blocks)
    result = PLANNER.solve(problem, time_limit=600.0)
    assert validate_task_plan(problem, result.steps).is_valid
    assert len(result.steps) == fewest


def test_a_search_by_landmarks_that_did_too_much_does_not_count() -> None:
    """The plan of a landmark search over its limit is ignored, and the search is not repeated."""
    problem = towers_problem(10)
    planner = FastDownward(landmark_work=1.0)
    task = planner.translate(problem)
    without = FastDownward(core_work=0, landmark_search="").search(task)
    assert planner.search(task).steps == without.steps


def test_a_search_by_landmarks_is_stopped_when_it_did_too_much(tmp_path: Path) -> None:
    """A search that would take minutes ends after one expansion, at its output."""
    task = FastDownward().translate(blocks_world(PLACES, blocks=15, places=4, seed=1))
    searches = downward.Searches(task, tmp_path, time.monotonic() + 600.0)
    search = fast_downward.LANDMARK_SEARCH.format(seconds=600, expansions=1)
    with searches.start([search], stop_at=fast_downward._EXPANSION_LIMIT_TEXT) as running:
        assert running.outcome().process_result.code == -signal.SIGKILL


def test_a_search_that_is_stopped_has_no_plan(tmp_path: Path) -> None:
    """A plan that is written while its search is stopped is ignored, without statistics."""
    task = FastDownward().translate(towers_problem(10))
    searches = downward.Searches(task, tmp_path, time.monotonic() + 600.0)
    search = fast_downward.LANDMARK_SEARCH.format(seconds=600, expansions=1000000)
    for _ in range(10):
        with searches.start([search], stop_at="Solution found!") as running:
            outcome = running.outcome()
        assert (outcome.process_result.code == 0) is (outcome.phases[0].plan is not None)
