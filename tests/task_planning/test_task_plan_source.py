"""Task plans from any state of random tasks under constraints, against a Python model."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from support.effort import scaled_examples
from support.finite_domain_tasks import Model, Pair, compile_task, random_tasks
from support.tamp_problems import cook_problem
from support.task_problems import load

import tmkit as tk
from tmkit._core import TaskSearch
from tmkit.errors import ConfigurationError
from tmkit.pddl.model import Problem
from tmkit.pddl.validation import validate_task_plan
from tmkit.tamp import load_planning_domain
from tmkit.task_planning import FastDownward
from tmkit.task_planning.guide import OperatorConstraint, TaskPlanSource
from tmkit.task_planning.sas import SasAxiom, SasEffect, SasOperator, SasTask, SasVariable
from tmkit.task_planning.translated_task import TranslatedTask

Constraint = tuple[list[Pair], int, list[int]]
PLENTY = 10**7
NO_WORK = 0
PROBLEM = load("places")


@st.composite
def constrained_tasks(draw: st.DrawFn) -> tuple[dict[str, Any], list[Constraint]]:
    """Draw a task and up to three constraints; some share their facts."""
    task = draw(random_tasks())
    basic = [variable for variable, layer in enumerate(task["layers"]) if layer < 0]
    facts = [(variable, value) for variable in basic for value in range(task["domains"][variable])]
    operators = range(len(task["operators"]))
    sets = draw(
        st.lists(st.lists(st.sampled_from(facts), max_size=5, unique=True), min_size=1, max_size=2)
    )
    constraints = draw(
        st.lists(
            st.tuples(
                st.sampled_from(sets),
                st.integers(-1, 3),
                st.lists(st.sampled_from(operators), max_size=5, unique=True),
            ),
            max_size=3,
        )
    )
    return task, constraints


class ConstrainedModel(Model):
    """A task under constraints, by their definition."""

    def __init__(self, task: dict[str, Any], constraints: Sequence[Constraint]) -> None:
        super().__init__(task)
        self.constraints = constraints

    def is_applicable(self, number: int, state: tuple[int, ...]) -> bool:
        """Tell whether the needs hold, and at most ``limit`` of each constraint's facts."""
        return self.holds(self.task["operators"][number][0], state) and all(
            sum(state[variable] == value for variable, value in facts) <= limit
            for facts, limit, operators in self.constraints
            if number in operators
        )

    def reaches_goal(self, plan: Sequence[int], start: tuple[int, ...] | None = None) -> bool:
        """Tell whether operators can be applied one after the other and lead to the goal."""
        state = self.start if start is None else start
        for number in plan:
            if not self.is_applicable(number, state):
                return False
            state = self.after(state, number)
        return self.holds(self.task["goal"], state)

    def reachable(self) -> list[tuple[int, ...]]:
        """Return all states, by breadth-first search."""
        seen = {self.start: None}
        queue = deque(seen)
        while queue:
            state = queue.popleft()
            for number in range(len(self.task["operators"])):
                if (
                    self.is_applicable(number, state)
                    and (after := self.after(state, number)) not in seen
                ):
                    seen[after] = None
                    queue.append(after)
        return list(seen)

    def is_solvable(self) -> bool:
        """Tell whether some reachable state has the goal."""
        return any(self.holds(self.task["goal"], state) for state in self.reachable())

    def search(self) -> TaskSearch:
        """Return the core's search under the constraints."""
        return compile_task(self.task).with_constraints(self.constraints)


def sas_task(task: dict[str, Any], problem: Problem) -> SasTask:
    """Return a random task as the translator would write it; each value stands for one fact."""
    return SasTask(
        problem=problem,
        metric=0,
        mutexes=(),
        goal=tuple(task["goal"]),
        init=tuple(value for _, value in task["init"]),
        variables=tuple(
            SasVariable(f"var{v}", layer, tuple(f"Atom f{v}-{x}()" for x in range(size)))
            for v, (size, layer) in enumerate(zip(task["domains"], task["layers"], strict=True))
        ),
        operators=tuple(
            SasOperator(
                f"a{k % 2} x{k % 3} y{k}",
                tuple(needs),
                tuple(SasEffect(tuple(conditions), v, -1, x) for conditions, (v, x) in effects),
                1,
            )
            for k, (needs, effects, _) in enumerate(task["operators"])
        ),
        axioms=tuple(SasAxiom(tuple(c), v, 1, x) for c, (v, x) in task["axioms"]),
    )


@settings(max_examples=scaled_examples(1.5), deadline=None)
@given(constrained_tasks())
def test_plans_satisfy_constraints_and_proofs_are_true(
    drawn: tuple[dict[str, Any], list[Constraint]],
) -> None:
    """A* finds a plan if and only if breadth-first search under the constraints does."""
    model = ConstrainedModel(*drawn)
    goal = model.task["goal"]
    plan, is_unsolvable, *_ = model.search().plan(model.start, goal, PLENTY, PLENTY)
    assert is_unsolvable == (not model.is_solvable())
    assert (plan is None) == is_unsolvable
    assert plan is None or model.reaches_goal(plan)


@settings(max_examples=scaled_examples(1), deadline=None)
@given(constrained_tasks())
def test_least_costs_satisfy_constraints(drawn: tuple[dict[str, Any], list[Constraint]]) -> None:
    """With enough work, the plan is optimal: no constraint removes plans of the relaxed task."""
    model = ConstrainedModel(*drawn)
    plan = model.search().plan(model.start, model.task["goal"], PLENTY, PLENTY)[0]
    costs, queue = {model.start: 0}, [model.start]
    while queue:  # label-correcting
        state = queue.pop()
        for number, (_, _, price) in enumerate(model.task["operators"]):
            if model.is_applicable(number, state):
                after, cost = model.after(state, number), costs[state] + price
                if cost < costs.get(after, cost + 1):
                    costs[after] = cost
                    queue.append(after)
    least = min(
        (c for state, c in costs.items() if model.holds(model.task["goal"], state)), default=None
    )
    assert (None if plan is None else sum(model.task["operators"][k][2] for k in plan)) == least


UNREACHABLE: dict[str, Any] = {
    "domains": [2, 2, 2],
    "layers": [-1, -1, -1],
    "init": [(0, 1), (1, 0), (2, 0)],
    "goal": [(0, 0)],
    "operators": [([], [([], (0, 1))], 1)],
    "axioms": [],
}
"""Task with a goal that no operator adds."""


@settings(max_examples=scaled_examples(1.5), deadline=None)
@given(constrained_tasks())
@example((UNREACHABLE, [([(1, 1), (0, 0)], 1, [])]))
def test_plans_of_the_agenda_are_valid(drawn: tuple[dict[str, Any], list[Constraint]]) -> None:
    """The agenda proves nothing; its plans, also after improvement, satisfy the constraints.

    Without a search, a goal is proved unreachable if it is beyond a limit of a constraint, or if
    no operator adds a fact of it that a constraint counts.
    """
    model = ConstrainedModel(*drawn)
    plan, is_unsolvable, *work = model.search().plan(
        model.start, model.task["goal"], NO_WORK, PLENTY, PLENTY
    )
    if model.holds(model.task["goal"], model.start):
        assert plan == []
        return
    assert (plan is not None) == model.is_solvable()
    if is_unsolvable:
        goal = set(model.task["goal"])
        assert work == [0, 0]
        added = {effect for _, effects, _ in model.task["operators"] for _, effect in effects}
        assert any(
            len(goal.intersection(facts)) > limit
            or goal.intersection(facts).difference(added, enumerate(model.start))
            for facts, limit, _ in model.constraints
        )
    if plan is None:
        return
    assert model.reaches_goal(plan)
    for index in range(len(plan)):  # no action with all that depends on it is redundant
        state, remaining = model.start, []
        for number in [*plan[:index], *plan[index + 1 :]]:
            if model.is_applicable(number, state):
                state = model.after(state, number)
                remaining.append(number)
        assert not model.holds(model.task["goal"], state), (plan, remaining)


@settings(max_examples=scaled_examples(1), deadline=None)
@given(constrained_tasks(), st.integers(0, 300), st.integers(0, 300))
def test_little_work_gives_no_wrong_result(
    drawn: tuple[dict[str, Any], list[Constraint]], work: int, agenda_work: int
) -> None:
    """A search at its limit proves nothing, and equal work gives equal results."""
    model = ConstrainedModel(*drawn)
    arguments = (model.start, model.task["goal"], work, work, agenda_work)
    result = model.search().plan(*arguments)
    assert result[0] is None or model.reaches_goal(result[0])
    assert not (result[1] and model.is_solvable())
    assert model.search().plan(*arguments) == result


@settings(max_examples=scaled_examples(1), deadline=None)
@given(constrained_tasks())
def test_states_are_as_in_the_model(drawn: tuple[dict[str, Any], list[Constraint]]) -> None:
    """Applicable operators, successors and derived values are right in all reachable states."""
    model = ConstrainedModel(*drawn)
    search = model.search()
    numbers = range(len(model.task["operators"]))
    for state in model.reachable():
        assert search.derive(state) == state
        assert search.applicable(state) == [k for k in numbers if model.is_applicable(k, state)]
        for number in numbers:
            assert search.is_applicable(number, state) == model.is_applicable(number, state)
            assert search.apply(number, state) == model.after(state, number)
        assert (search.follow(state, model.task["goal"], []) is not None) == model.holds(
            model.task["goal"], state
        )


@settings(max_examples=scaled_examples(1), deadline=None)
@given(constrained_tasks(), st.data())
def test_hints_and_caches_change_no_validity(
    drawn: tuple[dict[str, Any], list[Constraint]], data: st.DataObject
) -> None:
    """Plans are valid and proofs right for any order of states, hints and constraints."""
    task, constraints = drawn
    source = TaskPlanSource(sas_task(task, PROBLEM), work=PLENTY)
    states = ConstrainedModel(task, []).reachable()
    numbers = st.integers(0, len(task["operators"]) - 1)
    waiting = list(constraints)
    for _ in range(data.draw(st.integers(1, 8))):
        step = data.draw(st.sampled_from(["plan", "plan", "forbid", "lift"]))
        version = source.version
        if step == "forbid" and waiting:
            facts, limit, operators = waiting.pop()
            learned = OperatorConstraint(
                tuple(facts), limit, tuple(operators), is_proved=data.draw(st.booleans())
            )
            is_new = learned not in source.constraints
            source.forbid(learned)
            assert source.version == version + is_new
        elif step == "lift":
            has_assumptions = any(not constraint.is_proved for constraint in source.constraints)
            assert source.lift() == has_assumptions
            assert source.version == version + has_assumptions
            assert all(constraint.is_proved for constraint in source.constraints)
        state = data.draw(st.sampled_from(states))
        hint = data.draw(st.lists(numbers, max_size=4))
        plan = source.plan(state, hint=hint)
        model = ConstrainedModel(
            task, [(list(c.facts), c.limit, list(c.operators)) for c in source.constraints]
        )
        model.start = state
        assert (plan is not None) == model.is_solvable()
        assert plan is None or model.reaches_goal(plan)
        model.constraints = [
            (list(c.facts), c.limit, list(c.operators)) for c in source.constraints if c.is_proved
        ]
        assert source.is_unsolvable(state) == (not model.is_solvable())


@settings(max_examples=scaled_examples(0.2), deadline=None)
@given(constrained_tasks())
def test_threads_get_equal_results(drawn: tuple[dict[str, Any], list[Constraint]]) -> None:
    """One object serves several threads at once, each with other constraints."""
    task, constraints = drawn
    free = compile_task(task)
    start = ConstrainedModel(task, []).start

    def find(number: int) -> Any:
        search = free if number % 2 else free.with_constraints(constraints)
        return search.plan(
            start, task["goal"], NO_WORK if number % 4 < 2 else PLENTY, PLENTY, PLENTY
        )

    expected = [find(number) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(find, range(16))) == expected * 4


def kitchen_task(count: int) -> TranslatedTask:
    """Return the translated task of washing and cooking so many things."""
    generated = cook_problem(count)
    domain = load_planning_domain("kitchen", robot=tk.load_manipulator(str(generated.robot)))
    scene = generated.scene
    problem = domain.problem(scene, scene.zero_configuration(), str(generated.goal))
    return FastDownward().prepare(problem)


def on_stove(task: SasTask) -> tuple[tuple[Pair, ...], tuple[int, ...]]:
    """Return the facts of things on the stove, and the operators that add one."""
    facts = tuple(
        (number, value)
        for number, variable in enumerate(task.variables)
        for value, meaning in enumerate(variable.values)
        if meaning.startswith("Atom on(") and "stove" in meaning
    )
    operators = tuple(
        number
        for number, operator in enumerate(task.operators)
        if any((effect.variable, effect.after) in facts for effect in operator.effects)
    )
    return facts, operators


@pytest.mark.parametrize(("capacity", "steps"), [(None, 121), (14, 133), (1, 159)])
def test_large_tasks_are_solved_with_few_steps(capacity: int | None, steps: int) -> None:
    """Each object costs six actions, the arm's return one, each removal from the stove two."""
    task = kitchen_task(20)
    source = TaskPlanSource(task)
    facts, operators = on_stove(task)
    if capacity is not None:
        source.forbid(OperatorConstraint.capacity(facts, capacity, operators))
    plan = source.plan(task.init)
    assert plan is not None
    assert len(plan) == steps
    assert validate_task_plan(task.problem, [source.actions[number] for number in plan]).is_valid
    values = task.init
    for index, number in enumerate(plan):  # all suffixes are known
        assert source.plan(values) == plan[index:]
        values = source.apply(number, values)
        assert (
            capacity is None
            or sum(values[variable] == value for variable, value in facts) <= capacity
        )
    assert source.is_goal(values)
    assert source.counts["searched"] == 1


def test_a_goal_beyond_a_capacity_is_proved_unsolvable() -> None:
    """A proof holds until the constraint is lifted, and only if the constraint itself is proved."""
    task = kitchen_task(3)
    source = TaskPlanSource(task)
    facts, operators = on_stove(task)
    none_on_stove = OperatorConstraint.capacity(facts, 0, operators)
    source.forbid(none_on_stove)
    assert source.plan(task.init) is None
    assert not source.is_unsolvable(task.init)
    assert source.lift()
    assert not source.lift()
    assert source.plan(task.init) is not None
    source.forbid(replace(none_on_stove, is_proved=True))
    assert source.plan(task.init) is None
    assert source.is_unsolvable(task.init)
    assert not source.lift()


def test_fast_downward_plans_where_the_core_gives_up() -> None:
    """From another state than the first, with a context and an action forbidden."""
    task = FastDownward().prepare(load("places"))
    free = TaskPlanSource(task)
    first = free.plan(task.init)
    assert first is not None
    start = free.apply(first[0], task.init)
    source = TaskPlanSource(task, work=0, agenda_work=0, fallback=FastDownward(core_work=0.0))
    assert source.plan(start) is not None
    assert source.counts["fallback"] == 1
    step = first[1]
    context = tuple((number, start[number]) for number, _ in task.operators[step].preconditions)
    source.forbid(OperatorConstraint.context(context, (step,)))
    plan = source.plan(start)
    assert plan is None or (plan[0] != step and source.counts["fallback"] == 2)
    expected = TaskPlanSource(task, work=PLENTY)
    expected.forbid(source.constraints[0])
    assert (plan is None) == (expected.plan(start) is None)


def test_states_and_values_agree() -> None:
    """The values of each state on a plan are those of PDDL's state after the same actions."""
    task = FastDownward().prepare(load("gripper"))
    source = TaskPlanSource(task)
    state, values = task.problem.init, task.init
    plan = source.plan(values)
    assert plan
    for number in plan:
        assert source.values(state) == values
        assert source.is_applicable(number, values)
        assert number in source.applicable(values)
        state = task.problem.apply(state, source.actions[number])
        values = source.apply(number, values)
    assert source.is_goal(values)


def test_the_hint_is_used_where_it_leads_to_the_goal() -> None:
    """A hint is used unchanged, shortened, or with other arguments, without a search."""
    task = FastDownward().prepare(load("gripper"))
    plan = TaskPlanSource(task).plan(task.init)
    assert plan is not None
    after = TaskPlanSource(task).apply(plan[0], task.init)
    for values, hint in ((task.init, plan), (after, plan), (after, plan[1:])):
        source = TaskPlanSource(task)
        assert source.plan(values, hint=hint) is not None
        assert source.counts == {"reused": 1}
    source = TaskPlanSource(task)
    source.forbid(OperatorConstraint((), -1, (plan[0],)))
    adapted = source.plan(task.init, hint=plan)
    assert adapted is not None
    assert plan[0] not in adapted


def test_the_compiled_task_is_shared_and_not_pickled() -> None:
    """A task at another state has the same search; a pickled task compiles its own."""
    task = FastDownward().prepare(load("gripper"))
    search = task.search
    moved = task.at_state(task.problem.init)
    assert moved is not None
    assert moved.search is search
    loaded = pickle.loads(pickle.dumps(task))
    assert loaded == task
    assert loaded.search is not search
    assert task.forbid(task.action_of(task.operators[0].name), ()).search is not search


def test_errors_name_the_number() -> None:
    """A constraint of a wrong operator or fact leaves the constraints as they are."""
    task = FastDownward().prepare(load("gripper"))
    source = TaskPlanSource(task)
    count = len(task.operators)
    with pytest.raises(ConfigurationError, match=f"there is no operator {count} of {count}"):
        source.forbid(OperatorConstraint((), -1, (count,)))
    with pytest.raises(ConfigurationError, match="variable 0 has no value 99"):
        source.forbid(OperatorConstraint(((0, 99),), 0, (0,)))
    assert source.constraints == ()
    assert source.version == 0
    with pytest.raises(ConfigurationError, match="the task is incomplete"):
        TaskPlanSource(TranslatedTask.incomplete(task.problem))
