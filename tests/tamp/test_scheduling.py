"""Schedules: independent steps of two gantries overlap, dependent ones wait."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY, gantry_scene
from support.planning import solve_with
from support.unsure_blocks import ON_B, unsure_blocks

import tmkit as tk
from tmkit.errors import ConfigurationError, PlanFileError
from tmkit.graph import AttachedShape, Box
from tmkit.manipulation import ActionContext, Candidate
from tmkit.manipulation.actions.handover import handovers
from tmkit.manipulation.actions.pick_place import arm_motion_planners
from tmkit.manipulation.actions.primitives import MotionSettings
from tmkit.manipulation.actions.timing_breakdown import StageClock
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.motion import CollisionRules
from tmkit.pddl import GroundAction, Problem, State, parse_domain, parse_goal
from tmkit.pddl.validation import balance_loads, interference, interleave_agents
from tmkit.plans import Plan, Schedule
from tmkit.robots import Manipulator
from tmkit.robots.hands import pair_distance
from tmkit.spatial import Pose
from tmkit.tamp import ImprovementProgress, PlanningProgress, parts, plan_cost, schedule_plan
from tmkit.tamp.validation.schedule_check import delay_fault
from tmkit.visualization.page import plan_timeline, timeline_document

LEFT = GANTRY.with_prefix("l_")
ARMS = (
    replace(GANTRY, ready={**GANTRY.ready, "y": -0.35}),
    replace(LEFT, ready={**LEFT.ready, "l_y": 0.35}),
)
DOMAIN = parts.compose_domain("two", [parts.TwoArms])
HANDS = ("hand", "left_finger", "right_finger")


def two_gantries() -> tk.SceneGraph:
    """Return two gantries over one table, each with two blocks and a tray at its side."""
    places = {"a": (-2, -2), "b": (2, -2), "c": (-2, 2), "d": (2, 2)}
    scene = blocks_scene(places, table=1.0).mount(
        gantry_scene().remove_frame("table"), "world", prefix="l_"
    )
    for name, y in (("right", -0.4), ("left", 0.4)):
        tray = AttachedShape(Box([0.3, 0.15, 0.002]), collision=False)
        scene = scene.add_frame(
            name, "table", pose=Pose([0.0, y, 0.051]), classes=["region"], shapes=[tray]
        )
    return scene


def start(scene: tk.SceneGraph) -> np.ndarray:
    """Return the ready configuration of both."""
    joints = {
        name: value for arm in ARMS for name, value in {**arm.ready, **arm.gripper_open}.items()
    }
    return np.asarray(scene.configuration(joints))


def plan_both(goal: str, **options: bool) -> Plan:
    """Return a plan of both gantries."""
    scene = two_gantries()
    result = solve_with(scene, goal, q=start(scene), domain=DOMAIN, robot=ARMS, **options)
    assert result.plan is not None, result.explanation
    assert (result.statistics.makespan > 0.0) == bool(options.get("arms_at_once"))
    return result.plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Return a scheduled plan in which each gantry moves two blocks into its tray."""
    own = "(and (on a right) (on b right) (on c left) (on d left))"
    return plan_both(own, arms_at_once=True)


def hand_distance(plan: Plan, first: Manipulator, second: Manipulator) -> float:
    """Return the smallest distance of two hands in a schedule, on a separate time grid."""
    schedule = Schedule.of(plan)
    prefixes = ["l_" if arm.name.startswith("l_") else "" for arm in (first, second)]
    return min(
        pair_distance(plan.scene, q, frame_a=prefixes[0] + a, frame_b=prefixes[1] + b)
        for q in schedule.q(np.arange(0.0, schedule.makespan, 0.05))
        for a, b in itertools.product(HANDS, HANDS)
    )


def test_independent_steps_overlap(plan: Plan) -> None:
    """Both arms act most of the time; the plan is valid with and without its schedule."""
    in_turn = replace(plan, starts=(), joined=())
    assert Schedule.of(plan).makespan <= 0.65 * Schedule.of(in_turn).makespan
    for candidate in (plan, in_turn):
        report = tk.validate_plan(candidate, domain=DOMAIN)
        assert report.is_valid, report.problems
    assert hand_distance(plan, *ARMS) >= 0.02


def test_improvement_reduces_the_makespan() -> None:
    """Each reported plan has a smaller makespan; the result is the last, and valid."""
    scene = two_gantries()
    reports: list[PlanningProgress] = []
    result = tk.solve(
        tk.PlanningProblem(
            scene,
            start(scene),
            domain=DOMAIN,
            goal="(and (on c right) (on a left) (on b right))",
            robots=ARMS,
        ),
        tk.PlanningOptions(seed=1, arms_at_once=True, cost="makespan", improve=6),
        on_progress=reports.append,
    )
    assert result.plan is not None
    costs = [progress.cost for progress in reports if isinstance(progress, ImprovementProgress)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1] == pytest.approx(result.statistics.makespan)
    assert plan_cost(result.plan, "makespan") == result.statistics.makespan
    assert tk.validate_plan(result.plan, domain=DOMAIN).is_valid


def late_distance(plan: Plan, arm: Manipulator, delay: float) -> float:
    """Return the smallest distance of the hands with an arm that is late all the time."""
    schedule = Schedule.of(plan)
    columns = [plan.scene.joint_names.index(name) for name in (*arm.joints, *arm.gripper_joints)]
    times = np.arange(0.0, schedule.makespan + delay, 0.02)
    q = np.array(schedule.q(times))
    q[:, columns] = schedule.q(np.maximum(times - delay, 0.0))[:, columns]
    return min(
        pair_distance(plan.scene, row, frame_a=a, frame_b="l_" + b)
        for row in q
        for a, b in itertools.product(HANDS, HANDS)
    )


@pytest.mark.parametrize("is_crossing", [False, True])
def test_delays_with_a_collision_are_found(is_crossing: bool, plan: Plan) -> None:
    """The first delay of an arm with a collision is that of the distances of the hands."""
    apart = "(and (on a right) (on c left))"
    crossing = plan if is_crossing else plan_both(apart, arms_at_once=True)
    colliding = [
        (delay, arm.name)
        for delay in (0.05, 0.1, 0.15, 0.2, 0.25)
        for arm in crossing.robots
        if late_distance(crossing, arm, delay) < 0.0
    ]
    assert bool(colliding) == is_crossing
    for delay in (0.05, 0.1, 0.15, 0.25):
        fault = delay_fault(Schedule.of(crossing), delay)
        if not colliding or delay < colliding[0][0]:
            assert fault is None
            continue
        first, arm = colliding[0]
        pattern = f"arm '{arm}' collides at .* s if it is {first:.2f} s late"
        assert re.fullmatch(pattern, str(fault))


def test_a_schedule_is_a_function_of_the_plan(plan: Plan, tmp_path: Path) -> None:
    """Equal plans have equal schedules, which the plan file contains."""
    assert schedule_plan(replace(plan, starts=(), joined=())).starts == plan.starts
    tk.save_plan(plan, tmp_path / "plan.json")
    loaded = tk.load_plan(tmp_path / "plan.json")
    assert (loaded.starts, loaded.joined) == (plan.starts, plan.joined)
    times = np.linspace(0.0, Schedule.of(plan).makespan, 50)
    assert np.array_equal(Schedule.of(loaded).q(times), Schedule.of(plan).q(times))


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"starts": [0.0], "joined": []}, "expected 8 numbers"),
        ({"starts": [-1.0] * 8, "joined": []}, "expected 8 numbers of at least 0"),
        ({"starts": [0.0] * 8, "joined": [9] * 8}, "expected 8 numbers of earlier steps"),
        ({"starts": [0.0] * 8}, ": needs the key 'joined'"),
    ],
)
def test_a_broken_schedule_is_rejected(
    plan: Plan, tmp_path: Path, schedule: object, message: str
) -> None:
    """The error names a schedule that does not fit the steps of the file."""
    tk.save_plan(plan, tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**document, "schedule": schedule}))
    with pytest.raises(PlanFileError, match=f"schedule.*{message}"):
        tk.load_plan(tmp_path / "plan.json")


def test_invalid_schedules_are_reported(plan: Plan) -> None:
    """Overlapping steps of one arm, and steps before their preconditions, are problems."""
    at_zero = replace(plan, starts=(0.0,) * len(plan.steps), joined=())
    report = tk.validate_plan(at_zero, domain=DOMAIN)
    assert not report.is_valid
    assert any("both move one arm" in problem for problem in report.problems)


class WaitForHome(parts.TwoArms):
    """Candidate filter: an arm acts only after the other one has moved aside."""

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield every second candidate."""
        yield from itertools.islice(super().candidates(action, context), 1, None, 2)


@pytest.mark.parametrize("words", [{}, {"athome": "parked"}])
def test_arms_go_home(words: dict[str, str]) -> None:
    """With a home, an arm moves aside for the other; a hand-over leads both away from home."""
    domain = parts.compose_domain("homes", [WaitForHome, parts.Home], words=words)
    home = words.get("athome", "athome")
    assert domain.semantics.probabilistic_predicates == {home}
    assert not DOMAIN.semantics.probabilistic_predicates
    effect = str(domain.domain.action("hand-over").effect)
    assert {f"(not ({home} ?giver))", f"(not ({home} ?taker))"} <= set(
        re.findall(r"\(not \([^)]*\)\)", effect)
    )
    scene = two_gantries()
    q = np.array(start(scene))
    q[scene.joint_names.index("y")] = 0.2
    plan = tk.plan(scene, q, domain=domain, goal="(holding l_gantry c)", robot=ARMS).plan
    assert plan is not None
    assert [segment.arm for segment in plan.steps[0].segments][:2] == ["gantry", "l_gantry"]
    assert tk.validate_plan(plan, domain=domain).is_valid
    goal = f"(and (on c left) ({home} gantry) ({home} l_gantry))"
    domain = parts.compose_domain("homes", [parts.TwoArms, parts.Home], words=words)
    back = tk.plan(plan.final_scene, plan.final_q, domain=domain, goal=goal, robot=ARMS).plan
    assert back is not None
    assert [action.name for action in back.actions] == ["place", "move-home"]
    assert tk.validate_plan(back, domain=domain).is_valid


def test_hands_meet_between_arms_on_one_base() -> None:
    """If both bases are at one place, hands meet along any direction."""
    scene = two_gantries().reparent("c", "hand", pose=Pose())
    clock, rules = (
        StageClock(),
        CollisionRules.from_start(ARMS[0], scene, q=start(scene), other_arms=ARMS[1:]),
    )
    arms = arm_motion_planners(
        ARMS, budget=MotionSettings(), rules=rules, clock=clock, motion_planner=None
    )
    context = ActionContext(
        scene, start(scene), np.random.default_rng(0), SeededSamplers(Samplers(), ARMS[0], 0), arms
    )
    candidates_of_c = handovers(
        context, "c", giver="gantry", taker="l_gantry", points=[[0.0, 0.0, 0.5]]
    )
    places = [handover.exchange.as_array() for handover in itertools.islice(candidates_of_c, 8)]
    assert places
    assert np.isfinite(places).all()


def test_arms_that_would_meet_wait() -> None:
    """An arm waits for the other; if both start at the same time, the hands collide."""
    plan = plan_both("(and (on c right) (on a left))", arms_at_once=True)
    assert tk.validate_plan(plan, domain=DOMAIN).is_valid
    assert hand_distance(plan, *ARMS) >= 0.02


def test_the_validator_reports_colliding_hands() -> None:
    """The collision of two simultaneous motions is reported with its time."""
    scene = (
        two_gantries()
        .set_pose("c", Pose([0.0, -0.2, 0.075]))
        .set_pose("a", Pose([0.0, 0.2, 0.075]))
    )
    result = tk.plan(
        scene,
        start(scene),
        domain=DOMAIN,
        goal="(and (holding gantry a) (holding l_gantry c))",
        robot=ARMS,
    )
    assert result.plan is not None, result.explanation
    together = replace(result.plan, starts=(0.0, 0.0))
    report = tk.validate_plan(together, domain=DOMAIN)
    assert any(
        "the schedule: at " in problem and "collide" in problem for problem in report.problems
    ), report.problems
    assert tk.validate_plan(schedule_plan(result.plan), domain=DOMAIN).is_valid


def test_both_arms_move_at_once_in_simulation(plan: Plan) -> None:
    """The simulated time is the makespan, and all blocks end at their planned poses."""
    report = tk.simulate(plan)
    assert report.is_successful, report.notes
    assert report.duration < Schedule.of(plan).makespan + 2.0


def test_the_time_line_shows_both(plan: Plan) -> None:
    """Segments of both arms overlap; actions are in the order of their ends."""
    timeline = plan_timeline(plan, domain=DOMAIN)
    assert sorted(timeline.order) == list(range(len(plan.steps)))
    assert timeline.steps == sorted(timeline.steps)
    ends = [step["end"] for step in timeline_document(timeline)["steps"]]
    assert ends == timeline.steps
    spans = [segment[3:] for segment in timeline.segments]
    assert any(
        a < d and c < b for (a, b), (c, d) in itertools.combinations(spans, 2) if (a, b) != (c, d)
    )
    assert timeline.scenes[-1] == plan.final_scene


def test_plans_without_a_schedule_are_rejected(plan: Plan) -> None:
    """Uncertain scenes and negative clearances are rejected."""
    uncertain = tk.plan(unsure_blocks(), domain="blocks_uncertain", goal=ON_B).plan
    assert uncertain is not None
    with pytest.raises(ConfigurationError, match="uncertain scene"):
        schedule_plan(uncertain)
    with pytest.raises(ConfigurationError, match="clearance"):
        schedule_plan(plan, clearance=-0.1)


SWITCHES = parse_domain("""(define (domain switches)
      (:types lamp robot)
      (:predicates (lit ?l - lamp) (dark) (at ?r - robot ?l - lamp) (free ?r - robot))
      (:functions (count))
      (:derived (dark) (not (exists (?l - lamp) (lit ?l))))
      (:action light :parameters (?r - robot ?l - lamp) :precondition (free ?r) :effect (lit ?l))
      (:action go :parameters (?r - robot ?l - lamp) :precondition (free ?r)
        :effect (and (at ?r ?l) (not (free ?r))))
      (:action back :parameters (?r - robot ?l - lamp) :precondition (at ?r ?l)
        :effect (and (free ?r) (not (at ?r ?l))))
      (:action sleep :parameters (?r - robot) :precondition (dark) :effect (free ?r))
      (:action clear :parameters () :precondition (and) :effect (forall (?l - lamp) (not (lit ?l))))
      (:action tick :parameters () :precondition (and) :effect (increase (count) 1))
      (:action read :parameters () :precondition (> (count) 0) :effect (and)))""")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("light r a", "light r b", False),  # both need (free r)
        ("light r a", "light s a", False),  # both add one fact
        ("go r a", "light r b", True),
        ("go r a", "go s b", False),
        ("go r a", "back r a", True),
        ("light r a", "sleep s", True),  # through the derived (dark)
        ("go r a", "sleep s", False),
        ("clear", "light r a", True),  # of all lamps
        ("clear", "go r a", False),
        ("tick", "read", True),
        ("tick", "tick", True),
    ],
)
def test_interfering_actions_keep_their_order(first: str, second: str, expected: bool) -> None:
    """Two actions interfere if one changes a precondition or an effect of the other."""
    actions = [
        GroundAction(words[0], tuple(words[1:])) for words in (first.split(), second.split())
    ]
    assert interference(SWITCHES, actions) == [frozenset(), frozenset({0} if expected else ())]
    assert interference(SWITCHES, actions[::-1]) == [
        frozenset(),
        frozenset({0} if expected else ()),
    ]


def test_agents_take_turns() -> None:
    """The plan of one robot after the other is interleaved and stays valid."""
    objects = {"r": "robot", "s": "robot", "a": "lamp", "b": "lamp"}
    init = State([tk.pddl.Fact("free", ("r",)), tk.pddl.Fact("free", ("s",))])
    goal = parse_goal("(free r)", SWITCHES, objects=objects)
    problem = Problem(
        "p",
        SWITCHES,
        objects=objects,
        init=init,
        goal=goal,
        values={tk.pddl.Fact("count", ()): 0.0},
    )
    texts = ("go r a", "back r a", "go r b", "back r b", "go s a", "back s a", "go s b", "back s b")
    actions = [GroundAction(words[0], tuple(words[1:])) for words in map(str.split, texts)]
    turned = interleave_agents(problem, actions, ["r", "s"], is_allowed=lambda *_: True)
    assert [action.arguments[0] for action in turned] == ["r", "r", "s", "s", "r", "r", "s", "s"]
    assert tk.pddl.validate_task_plan(problem, turned).is_valid
    assert interleave_agents(problem, actions, ["r", "s"], is_allowed=lambda *_: False) == tuple(
        actions
    )


def test_agents_share() -> None:
    """Actions pass to the other robot until the effort is equal, the most expensive first."""
    objects = {"r": "robot", "s": "robot", "a": "lamp", "b": "lamp", "c": "lamp"}
    init = State([tk.pddl.Fact("free", ("r",)), tk.pddl.Fact("free", ("s",))])
    goal = parse_goal("(free r)", SWITCHES, objects=objects)
    problem = Problem(
        "p",
        SWITCHES,
        objects=objects,
        init=init,
        goal=goal,
        values={tk.pddl.Fact("count", ()): 0.0},
    )
    words = [(name, "r", lamp) for lamp in "abc" for name in ("go", "back")]
    actions = [GroundAction(name, tuple(rest)) for name, *rest in words]
    efforts = {"ra": 0.0, "rb": 2.0, "rc": 1.0}

    def effort(actions: Sequence[GroundAction], agent: str) -> float:
        return efforts.get(agent + actions[0].arguments[1], 0.0)

    def agents(*forbidden: str) -> list[str]:
        plan = balance_loads(
            problem,
            actions,
            ["r", "s"],
            is_allowed=lambda action, _: str(action) not in forbidden,
            effort=effort,
        )
        assert tk.pddl.validate_task_plan(problem, plan).is_valid
        assert [action.arguments[1] for action in plan] == list("aabbcc")
        return [action.arguments[0] for action in plan[::2]]

    assert agents() == ["r", "s", "r"]
    assert agents("(go s b)") == ["r", "r", "s"]
    assert agents("(go s b)", "(back s c)", "(go s a)") == ["r", "r", "r"]


def test_opposite_arms_share_the_blocks() -> None:
    """Each of two opposite arms moves the two blocks that are nearer to it."""
    facing = Pose.from_rpy([1.15, 0.0, 0.0], [0.0, 0.0, np.pi])
    scene = tk.load_scene("panda_table").mount(
        tk.load_scene("panda_alone"), "world", prefix="l_", pose=facing
    )
    middle, cube = (
        scene.pose("table").inverse().apply([0.575, 0.0, 0.0])[0],
        AttachedShape(Box([0.04, 0.04, 0.05])),
    )
    tray = AttachedShape(Box([0.3, 0.16, 0.002]), collision=False)
    scene = scene.add_frame(
        "tray", "table", pose=Pose([middle, 0.32, 0.025]), classes=["region"], shapes=[tray]
    )
    block = {"joint": tk.Free(), "classes": ["movable"], "shapes": [cube]}
    for name, x, y in (("a", -0.2, -0.1), ("b", 0.2, -0.1), ("c", -0.2, 0.1), ("d", 0.2, 0.1)):
        scene = scene.add_frame(name, "table", pose=Pose([middle + x, y, 0.05]), **block)
    arms = [tk.load_manipulator("panda"), tk.load_manipulator("panda").with_prefix("l_")]
    joints = {
        name: value for arm in arms for name, value in {**arm.ready, **arm.gripper_open}.items()
    }
    goal, q = "(and (on a tray) (on b tray) (on c tray) (on d tray))", scene.configuration(joints)
    plan = tk.plan(
        scene,
        q,
        domain=DOMAIN,
        goal=goal,
        robot=arms,
        options=tk.PlanningOptions(arms_at_once=True),
    ).plan
    assert plan is not None
    picks = {step.action.arguments[:2] for step in plan.steps if step.action.name == "pick"}
    assert picks == {("panda", "a"), ("panda", "c"), ("l_panda", "b"), ("l_panda", "d")}
