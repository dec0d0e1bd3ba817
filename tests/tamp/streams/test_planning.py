"""Plans of domains with streams: valid, explained, shared between versions, and learned from."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import tmkit as tk
from tmkit.batch.attempts import plan_row
from tmkit.batch.problems import BatchOptions
from tmkit.errors import SamplerError
from tmkit.manipulation import Candidate, Grasp, Pick, Place, Placement
from tmkit.motion import lies_in_region
from tmkit.pddl import GroundAction, State, make_domain, make_predicate
from tmkit.plans.values import Configuration
from tmkit.spatial import Pose
from tmkit.tamp import (
    PlanningOptions,
    PlanningProblem,
    PlanResult,
    PythonDomain,
    load_planning_domain,
)
from tmkit.tamp.streams import SceneView, StreamSemantics, grasps, placements, stream, stream_action
from tmkit.tamp.streams.semantics import sample_table

EXAMPLES = Path(__file__).parents[3] / "examples"
on = make_predicate("on", "?o - item ?r - region")
holding = make_predicate("holding", "?o - item")
empty = make_predicate("handempty")
OPTIONS = PlanningOptions(seed=0, max_iterations=2, suggest=False)


@stream("?o - item ?g - grasp", certifies="(from-above ?o ?g)")
def from_above(view: SceneView, o: str, g: Grasp) -> bool:
    """Accept grasps whose approach points down."""
    tool = view.pose(o) @ g.object_from_tool
    return bool(tool.rotation[2, 2] < -0.9)


@stream("?o - item ?g - grasp", certifies="(never ?o ?g)")
def never(view: SceneView, o: str, g: Grasp) -> bool:
    """Reject every grasp; reads the pose of the object alone."""
    view.pose(o)
    return False


@stream("?p - placement", cost="(height ?p)")
def height(view: SceneView, p: Placement) -> float:
    """Return the distance of a placement from the root along x [m]."""
    return abs(float(p.support_from_object.translation[0]))


def make_pick(given: str) -> object:
    """Return the action that picks with grasps that satisfy facts."""

    @stream_action(
        "?o - item ?r - region",
        needs=[on("?o", "?r"), empty()],
        adds=[holding("?o")],
        deletes=[on("?o", "?r"), empty()],
        given=given,
    )
    def pick(view: SceneView, o: str, g: Grasp) -> Candidate:
        return Pick(o, g)

    return pick


def make_place(costs: str = "") -> object:
    """Return the action that places an object on a region."""

    @stream_action(
        "?o - item ?r - region",
        needs=[holding("?o")],
        adds=[on("?o", "?r"), empty()],
        deletes=[holding("?o")],
        given="(placement ?o ?r ?p)",
        costs=costs,
    )
    def place(view: SceneView, o: str, p: Placement) -> Candidate:
        return Place.at(o, p)

    return place


class Regions(StreamSemantics):
    """Objects on a mat and a table."""

    domain = make_domain(
        "regions",
        types="item region",
        predicates=[on, holding, empty],
        actions=[make_pick("(grasp ?o ?g)").action, make_place().action],
    )
    streams = (grasps, from_above, never, placements, height)
    stream_actions = (make_pick("(grasp ?o ?g) (from-above ?o ?g)"), make_place())

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the items and both regions."""
        items = dict.fromkeys(scene.frames_of_class("movable"), "item")
        return {**items, "mat": "region", "table": "region"}

    def state(self, scene: tk.SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return where each item is."""
        del objects
        facts = []
        for item in scene.frames_of_class("movable"):
            if scene.parent(item) == self.robot.tip:
                facts.append(holding.fact(item))
            else:
                is_on_mat = lies_in_region(scene, item, "mat", q=q)
                facts.append(on.fact(item, "mat" if is_on_mat else "table"))
        if all(fact.predicate != "holding" for fact in facts):
            facts.append(empty.fact())
        return State(facts)


class RejectingRegions(Regions):
    """The same domain with a test that no grasp passes."""

    stream_actions = (make_pick("(grasp ?o ?g) (never ?o ?g)"), make_place())


class CostlyRegions(Regions):
    """The same domain with a cost of placements."""

    stream_actions = (make_pick("(grasp ?o ?g)"), make_place("(height ?p)"))


def mat_scene(n_blocks: int) -> tk.SceneGraph:
    """Return the Panda at its table with blocks and a mat."""
    scene = tk.load_scene("panda_table")
    mat = tk.AttachedShape(tk.Box([0.3, 0.3, 0.002]), collision=False)
    pose = Pose([-0.1, 0.3, 0.026])
    scene = scene.add_frame("mat", "table", pose=pose, classes=["region"], shapes=[mat])
    for number in range(n_blocks):
        cube = tk.AttachedShape(tk.Box([0.04, 0.04, 0.05]))
        pose = Pose([-0.1 + 0.1 * number, -0.2, 0.05])
        scene = scene.add_frame(
            f"Block{number}",
            "table",
            pose=pose,
            joint=tk.Free(),
            classes=["movable"],
            shapes=[cube],
        )
    return scene


class Named(Regions):
    """The same domain with PDDL names that differ from the frames in case."""

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the items in lower case, and both regions."""
        return {name.lower(): kind for name, kind in super().objects(scene).items()}

    def state(self, scene: tk.SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return where each item is, in lower case."""
        facts = super().state(scene, objects, q)
        return State(type(f)(f.predicate, tuple(a.lower() for a in f.arguments)) for f in facts)


def solve(
    semantics: type[Regions], scene: tk.SceneGraph, goal: str, options: PlanningOptions = OPTIONS
) -> PlanResult:
    """Return the result of planning in a domain."""
    domain = PythonDomain(semantics.domain, semantics)
    return tk.plan(scene, domain=domain, goal=goal, robot="panda", options=options)


def test_values_satisfy_the_facts_of_their_action() -> None:
    """Every grasp of the plan passed the test, and the plan is valid."""
    result = solve(Named, mat_scene(2), "(and (on block0 mat) (on block1 mat))")
    assert result.plan is not None, result.explanation
    picks = [step for step in result.plan.steps if step.action.name == "pick"]
    assert len(picks) == 2
    for step in picks:
        assert "from +z" in step.choice
    domain = PythonDomain(Named.domain, Named)
    assert tk.validate_plan(result.plan, domain=domain).is_valid


def test_a_test_is_called_once_for_each_distinct_input() -> None:
    """Two iterations over many versions call the test once for each grasp and pose."""
    result = solve(RejectingRegions, mat_scene(3), "(on Block0 mat)")
    assert result.plan is None
    uses = {use.stream: use for use in result.diagnosis.streams}
    count = uses["grasps"].values
    assert uses["never"].calls == uses["never"].refused == count > 0
    assert uses["never"].values == uses["grasps"].used == 0
    trials = [trial for trial in result.trials if trial.stream == "grasps"]
    assert len(trials) == count
    assert all(t.outcome == "refused" and t.reason == "stream 'never'" for t in trials)


def test_the_explanation_names_the_stream_and_its_counts() -> None:
    """The failure says which stream rejected how many values."""
    result = solve(RejectingRegions, mat_scene(1), "(on Block0 mat)")
    (cause,) = result.diagnosis.actions[0].causes
    count = next(u.values for u in result.diagnosis.streams if u.stream == "grasps")
    assert str(cause) == f"stream 'never': refused {count} of {count} grasps"
    assert str(cause) in result.explanation
    assert result.to_dict()["diagnosis"]["streams"][1]["stream"] == "never"


def test_equal_seeds_give_equal_plans() -> None:
    """Sharing does not make a plan depend on earlier runs."""
    first, second = (solve(Regions, mat_scene(2), "(on Block1 mat)") for _ in range(2))
    assert first.plan == second.plan
    assert first.diagnosis.streams == second.diagnosis.streams


def test_costs_of_values_enter_the_plan_and_its_improvement() -> None:
    """Improvement selects placements of lower cost, and the plan stays valid."""

    @stream("?o - item ?r - region", gives="?p - placement", certifies="(placement ?o ?r ?p)")
    def anywhere(view: SceneView, o: str, r: str) -> Iterator[Placement]:
        while True:
            x, y = view.rng.uniform(-0.1, 0.1, 2).tolist()
            yield Placement("table", Pose([x - 0.1, y + 0.3, 0.05]), "anywhere")

    class Scattered(CostlyRegions):
        streams = (grasps, from_above, anywhere, height)

    scene, goal = mat_scene(1), "(on Block0 mat)"
    first = solve(Scattered, scene, goal)
    options = PlanningOptions(seed=0, max_iterations=2, suggest=False, improve=8)
    better = solve(Scattered, scene, goal, options)
    assert first.plan is not None
    assert better.plan is not None
    assert first.plan.cost == pytest.approx(2.0 + first.plan.steps[-1].value_cost)
    assert better.plan.steps[-1].value_cost < 0.8 * first.plan.steps[-1].value_cost
    domain = PythonDomain(Scattered.domain, Scattered)
    assert tk.validate_plan(better.plan, domain=domain).is_valid


def test_a_plan_file_keeps_the_cost_of_values(tmp_path: Path) -> None:
    """A plan is equal after saving and loading."""
    result = solve(CostlyRegions, mat_scene(1), "(on Block0 mat)")
    assert result.plan is not None
    tk.save_plan(result.plan, tmp_path / "plan.json")
    loaded = tk.load_plan(tmp_path / "plan.json")
    assert loaded.steps[-1].value_cost == result.plan.steps[-1].value_cost
    assert loaded == result.plan


def test_an_error_of_a_stream_ends_planning_with_its_name() -> None:
    """The error names the stream rather than the planner."""

    @stream("?o - item ?g - grasp", certifies="(from-above ?o ?g)")
    def failing(view: SceneView, o: str, g: Grasp) -> bool:
        raise RuntimeError("no camera")

    class Failing(Regions):
        streams = (grasps, failing, placements)

    with pytest.raises(SamplerError, match=r"stream 'failing' of \(Block0, Grasp\) .*no camera"):
        solve(Failing, mat_scene(1), "(on Block0 mat)")


def test_a_stream_with_infinitely_many_values_delays_others_by_few() -> None:
    """The values of two generators take turns, so the second one is reached."""

    @stream("?o - item ?r - region", gives="?p - placement", certifies="(placement ?o ?r ?p)")
    def outside(view: SceneView, o: str, r: str) -> Iterator[Placement]:
        while True:  # no arm reaches these
            yield Placement("table", Pose([3.0 + float(view.rng.uniform()), 0.0, 0.05]), "far")

    class Endless(Regions):
        streams = (grasps, from_above, outside, placements)

    result = solve(Endless, mat_scene(1), "(on Block0 mat)")
    assert result.is_solved, result.explanation


def test_a_test_that_rejects_endless_values_ends_within_the_iterations() -> None:
    """Rejected values count as attempts in blocks, so a search with a limit ends."""

    @stream("?o - item ?r - region", gives="?p - placement", certifies="(placement ?o ?r ?p)")
    def endless(view: SceneView, o: str, r: str) -> Iterator[Placement]:
        while True:
            yield Placement("table", Pose([float(view.rng.uniform()), 0.0, 0.05]), "any")

    @stream("?p - placement", certifies="(wanted ?p)")
    def wanted(view: SceneView, p: Placement) -> bool:
        return False

    @stream_action(
        "?o - item ?r - region",
        needs=[holding("?o")],
        adds=[on("?o", "?r"), empty()],
        deletes=[holding("?o")],
        given="(placement ?o ?r ?p) (wanted ?p)",
    )
    def place(view: SceneView, o: str, p: Placement) -> Candidate:
        return Place.at(o, p)

    class Picky(Regions):
        streams = (grasps, endless, wanted)
        stream_actions = (make_pick("(grasp ?o ?g)"), place)

    options = PlanningOptions(seed=0, max_iterations=1, suggest=False, samples_per_skeleton=20)
    result = solve(Picky, mat_scene(1), "(on Block0 mat)", options)
    assert not result.is_solved
    assert "stream 'wanted': refused" in result.explanation


def test_a_sampler_that_learns_from_trials_needs_half_of_the_attempts() -> None:
    """The example's learned sampler makes at most half of the attempts in new scenes."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        import learned_placements as example
    finally:
        sys.path.pop(0)
    _, results = example.solve(example.UniformTray, range(6))
    example.train(results)
    uniform_count, _ = example.solve(example.UniformTray, range(50, 56))
    learned_count, learned = example.solve(example.LearnedTray, range(50, 56))
    assert all(result.is_solved for result in learned)
    assert learned_count * 2 <= uniform_count
    example.WEIGHTS[:] = np.zeros(6)


class MatProblems:
    """Problem source of a batch: one block onto the mat."""

    def problem(self, seed: int) -> tuple[PlanningProblem, PlanningOptions]:
        """Return the problem of a seed."""
        domain = PythonDomain(Regions.domain, Regions)
        problem = PlanningProblem(mat_scene(1), domain=domain, goal="(on Block0 mat)")
        return problem, PlanningOptions(seed=seed, max_iterations=2, suggest=False)


def test_a_batch_stores_the_trials() -> None:
    """A row has the trials as JSON, with plain values and the digest of the scene."""
    row = plan_row(MatProblems(), 0, BatchOptions(check=True))
    assert row.get("is_valid"), row
    trials = json.loads(row["trials"])
    assert {trial["stream"] for trial in trials} == {"grasps", "placements"}
    assert trials[0]["scene"] == mat_scene(1).digest()
    assert trials[0]["value"]["width"] == pytest.approx(0.04)


def test_successors_of_many_versions_share_samples() -> None:
    """A test runs once for each grasp and pose, whatever else differs between the versions."""
    domain = load_planning_domain(
        PythonDomain(RejectingRegions.domain, RejectingRegions), robot="panda"
    )
    scene = mat_scene(2)
    q = tk.load_manipulator("panda").ready_configuration(scene)
    action = GroundAction("pick", ("Block0", "table"))
    for step in range(4):
        pose = scene.local_pose("Block1")
        version = scene.set_pose("Block1", pose @ Pose([0.01 * step, 0.0, 0.0]))
        (successor,) = tk.successors(version, q, domain, actions=[action], seed=0)
        assert not successor.steps
        assert "refused" in str(successor.failures[0])
    table = sample_table(domain.context(scene, q))
    (use,) = [use for use in table.uses() if use.stream == "never"]
    assert use.calls == use.refused == 48
