"""The closed loop: in a physics simulation in which something goes wrong, and piece by piece."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tmkit as tk
from tmkit.errors import ArgumentError, SimulationError
from tmkit.simulation import (
    Camera,
    Detection,
    SensorNoise,
    SimulatedCamera,
    SimulatedExecutor,
    Simulation,
)
from tmkit.simulation.rendering.studio import StillScene
from tmkit.simulation.sensing import visible_fractions
from tmkit.spatial import Pose
from tmkit.world import execute_closed_loop
from tmkit.world.closed_loop import ClosedLoopResult, ClosedLoopStatus, LoopOptions
from tmkit.world.detections import (
    associate_detections,
    fuse_detections,
    largest_agreement,
    rest_on_support,
)

pytest.importorskip("pybullet")

COVARIANCE = np.diag([1e-6] * 3 + [1e-4] * 3)
VIEWS = (Camera((1.3, -0.5, 1.0), (0.45, 0.0, 0.1)), Camera((0.2, 1.2, 1.0), (0.45, 0.0, 0.1)))
TOWER = "(and (on a b) (on b c))"


class Disturbed(SimulatedExecutor):
    """Executes in a simulation in which something happens after a step."""

    def __init__(
        self, simulation: Simulation, step: int, happening: Callable[[Simulation], None]
    ) -> None:
        super().__init__(simulation)
        self._left, self._happening = step, happening

    def end_step(self, number: int, step: Any) -> None:
        """Let it happen."""
        super().end_step(number, step)
        self._left -= 1
        if self._left == 0:
            self._happening(self.simulation)


def run(
    step: int,
    happening: Callable[[Simulation], None],
    *,
    seed: int = 0,
    goal: str = TOWER,
    executes: Any = None,
    is_naming: bool = True,
    domain: str | Path = "blocks",
    **wrong: Any,
) -> tuple[ClosedLoopResult, Any]:
    """Build a tower while something happens; return the outcome, and where the blocks are."""
    scene, robot = tk.load_scene("panda_table", "blocks3"), tk.load_manipulator("panda")
    q = robot.ready_configuration(scene)
    problem = tk.PlanningProblem(
        scene, q, domain=domain, semantics="blocks", goal=goal, robots="panda"
    )
    options = tk.PlanningOptions(seed=seed, max_iterations=2)
    with Simulation.from_scene(scene, q, robot=robot) as simulation:
        cameras = [
            SimulatedCamera(
                simulation,
                view,
                noise=SensorNoise(COVARIANCE, **wrong),
                is_naming=is_naming,
                seed=seed + k,
            )
            for k, view in enumerate(VIEWS)
        ]
        executor = (
            Disturbed(simulation, step, happening) if executes is None else executes(simulation)
        )
        assert isinstance(executor, tk.plans.Executor)
        result = execute_closed_loop(problem, executor, cameras, options=options)
        return result, {name: simulation.pose(name) for name in simulation.objects}


def is_tower(places: dict[str, Pose], names: str = "abc") -> bool:
    """Return whether the blocks stand on one another."""
    at = [places[name].translation for name in names]
    return all(
        math.dist(x[:2], y[:2]) < 0.02 and 0.04 < x[2] - y[2] < 0.06
        for x, y in itertools.pairwise(at)
    )


def test_nothing_goes_wrong_but_what_cameras_see() -> None:
    """Objects that are missed and reported in wrong places, and not told apart, do not disturb."""
    result, places = run(0, lambda _: None, seed=1, misses=0.1, false_rate=0.05)
    assert result.status is ClosedLoopStatus.REACHED
    assert len(result.plans) == 1
    assert is_tower(places)
    result, places = run(0, lambda _: None, seed=2, goal="(on b c)", is_naming=False)
    assert result.status is ClosedLoopStatus.REACHED
    assert is_tower(places, "bc")


def test_a_block_that_was_moved_is_found() -> None:
    """It gets new motions; the actions that are left stay."""
    result, places = run(
        1, lambda sim: sim.set_object_pose("a", Pose([0.42, 0.23, 0.026])), misses=0.05
    )
    assert result.status is ClosedLoopStatus.REACHED
    assert is_tower(places)
    assert "'a' is 36 mm and" in str(result.events[0])
    assert "where it should be, on 'table'" in str(result.events[0])
    first, second = result.plans
    assert second.actions == first.actions[1:]
    assert second.steps[0].segments == first.steps[1].segments  # they were checked, and stay
    assert tk.validate_plan(second).is_valid


def test_a_block_that_slipped_is_taken_again() -> None:
    """The hand has lost it: it lets go, and the plan goes on from where the block lies."""
    result, places = run(1, lambda sim: sim.set_object_pose("b", Pose([0.45, -0.3, 0.026])))
    assert result.status is ClosedLoopStatus.REACHED
    assert is_tower(places)
    assert "the hand 'panda_hand' does not hold it" in result.events[0].text
    assert [action.name for action in result.plans[1].actions] == [
        action.name for action in result.plans[0].actions
    ]


def test_an_uncontrollable_action_of_the_domain_is_answered(tmp_path: Path) -> None:
    """A block slips out of the hand to another location, as the domain states."""
    slip = """(:action slip :uncontrollable t :parameters (?x - block ?l - location)
      :precondition (and (holding ?x) (clear ?l))
      :effect (and (not (holding ?x)) (not (clear ?l)) (clear ?x) (handempty) (ontable ?x ?l)))"""
    text = tk.data_path("domains/blocks/domain.pddl").read_text(encoding="utf-8")
    domain = tmp_path / "domain.pddl"
    domain.write_text(text.rstrip().removesuffix(")") + slip + ")", encoding="utf-8")
    result, places = run(
        1,
        lambda sim: sim.set_object_pose("b", Pose([0.45, -0.3, 0.026])),
        goal="(on b c)",
        domain=domain,
    )
    assert result.status is ClosedLoopStatus.REACHED
    assert [len(plan.steps) for plan in result.plans] == [2, 2]
    assert is_tower(places, "bc")


def test_what_cannot_be_repaired_is_said(tmp_path: Path) -> None:
    """A missing block of the goal, or one out of reach, ends the loop with a failure."""
    result, _ = run(2, lambda sim: sim.set_object_pose("a", Pose([5.0, 5.0, 0.1])))
    assert result.status is ClosedLoopStatus.PRECONDITION
    assert [event.objects for event in result.events] == [("a",), ("a",)]
    assert result.events[0].text == "'a' is gone"
    assert result.events[1].text == result.explanation
    assert "unknown object 'a'" in result.explanation
    result, _ = run(2, lambda sim: sim.set_object_pose("a", Pose([0.95, 0.5, 0.026])))
    assert result.status is ClosedLoopStatus.PLANNING
    assert "no plan from the world as seen" in result.explanation
    failure = result.events[-1]
    assert failure.time is not None
    drawn = np.asarray(
        Image.open(failure.draw(tmp_path / "lying.png", width=240, height=160)).convert("RGB"),
        dtype=int,
    )
    red, green, blue = drawn[:160].reshape(-1, 3).T
    assert np.sum((red > 90) & (red > 2 * green) & (red > 2 * blue)) > 20  # the block where it is
    assert np.sum((blue > 200) & (red < 60)) > 20  # its outline where it should be


def test_an_overturned_block_is_taken_as_it_lies() -> None:
    """It is picked up and placed upright on the others."""
    lying = Pose.from_rpy([0.5, 0.15, 0.03], [math.pi / 2, 0, 0])
    result, places = run(2, lambda sim: sim.set_object_pose("a", lying))
    assert result.status is ClosedLoopStatus.REACHED
    assert is_tower(places)


def test_a_slip_is_noticed_before_the_place() -> None:
    """It is looked within a step, too: the arm does not put down what it has lost."""

    class Slippery(SimulatedExecutor):
        has_slipped = False

        def follow(self, motion: Any) -> None:
            """Lose the block on its way."""
            super().follow(motion)
            if motion.segment.kind == "transfer" and not self.has_slipped:
                self.has_slipped = True
                self.simulation.set_object_pose("b", Pose([0.45, -0.3, 0.026]))

    result, places = run(0, lambda _: None, executes=Slippery)
    assert result.status is ClosedLoopStatus.REACHED
    assert is_tower(places)
    (event,) = result.events
    assert (event.plan, event.step, event.segment) == (1, 1, 1)
    assert "the hand 'panda_hand' does not hold it" in event.text
    assert str(event).startswith("plan 1, after step 1 and 1 motion of the next: 'b' is ")
    assert [action.name for action in result.plans[1].actions] == [
        "pick-up",
        "stack",
        "pick-up",
        "stack",
    ]


# --- pieces


def detection(frame: str | None, *at: float) -> Detection:
    """Return a detection."""
    return Detection(frame, Pose(list(at)), COVARIANCE)


def test_detections_without_names_go_to_the_nearest() -> None:
    """All of them together, so that one that is between two goes where the other does not."""
    scene = tk.load_scene("panda_table", "blocks3")
    q = scene.zero_configuration()
    at = {name: scene.pose(name, q=q).translation for name in "abc"}
    found = [
        detection(None, *(at["c"] + [0, 0.01, 0])),
        detection("a", *at["a"]),
        detection(None, *at["b"]),
    ]
    assert associate_detections(found, scene, q) == {"a": found[1], "b": found[2], "c": found[0]}
    elsewhere = [Detection(None, Pose([0, 0, 0]), COVARIANCE, classes=("bottle",))]
    assert associate_detections(elsewhere, scene, q) == {}


def test_two_looks_that_agree_count() -> None:
    """One detection against two is false; one alone or one against one is no evidence."""
    near, far = detection("a", 0.1, 0, 0), detection("a", 0.2, 0, 0)
    agreed = largest_agreement([near, far, detection("a", 0.101, 0, 0)])
    assert len(agreed) == 2
    assert fuse_detections(agreed).translation[0] == pytest.approx(0.1005, abs=1e-6)
    assert len(largest_agreement([near, far])) == 1


class Scripted:
    """Sensor with all in view that reports block 'a' at listed poses and others correctly."""

    def __init__(self, scene: tk.SceneGraph, places: list[list[float] | None]) -> None:
        self._at = {name: scene.pose(name, q=scene.zero_configuration()) for name in "abc"}
        self._places = places

    def look(self) -> list[Detection]:
        """Return what it detects now."""
        place = self._places.pop(0) if self._places else None
        poses = {**self._at, "a": self._at["a"] if place is None else Pose(place)}
        return [Detection(name, pose, COVARIANCE) for name, pose in poses.items()]

    def in_view(self, scene: tk.SceneGraph, q: Any) -> set[str]:
        """Return all."""
        del q
        return {"a", "b", "c"}.intersection(scene.frame_names)


class Nothing:
    """An executor that executes nothing."""

    def __getattr__(self, name: str) -> Any:
        if name in ("simulation", "q"):
            raise AttributeError(name)
        return lambda *_: None


@pytest.mark.parametrize(
    ("places", "is_moved"),
    [
        ([None, [0.42, 0.23, 0.025], None], False),  # a false detection
        ([[0.42, 0.23, 0.025], [0.3, 0.3, 0.025], None], False),  # two that contradict each other
        ([[0.42, 0.23, 0.025], [0.42, 0.23, 0.025], [0.42, 0.23, 0.025]], True),
        ([[0.42, 0.23, 0.025], [0.42, 0.23, 0.025], [0.3, 0.2, 0.025]], True),
    ],
)
def test_what_most_looks_agree_on_is_believed(places: list[Any], is_moved: bool) -> None:
    """A look that agrees with the plan weighs no more than one that does not."""
    scene = tk.load_scene("panda_table", "blocks3")
    problem = tk.PlanningProblem(scene, domain="blocks", goal="(on b c)", robots="panda")
    result = execute_closed_loop(
        problem,
        Nothing(),
        [Scripted(scene, places)],
        options=tk.PlanningOptions(seed=0),
        loop=LoopOptions(max_plans=1),
    )
    first = [
        event
        for event in result.events
        if event.step == 0 and event.plan == 1 and event.objects == ("a",)
    ]
    assert bool(first) == is_moved
    if is_moved:
        assert first[0].scene.pose("a", q=first[0].q).translation[:2] == pytest.approx(
            [0.42, 0.23], abs=1e-3
        )
        assert first[0].expected == scene


def test_what_was_seen_rests_on_what_is_below_it() -> None:
    """Noise is removed on a surface; without a surface, the pose stays as detected."""
    scene = tk.load_scene("panda_table", "blocks3")
    q = scene.zero_configuration()
    on_c = scene.pose("c", q=q) @ Pose.from_rpy([0.01, 0, 0.053], [0.05, -0.04, 0.3])
    made = rest_on_support(scene, "a", on_c, q)
    assert made.parent("a") == "c"
    assert made.local_pose("a").is_close(
        Pose.from_rpy([0.01, 0, 0.05], [0, 0, 0.3]),
        translation_tolerance=1e-3,
        rotation_tolerance=5e-3,
    )
    assert abs(made.local_pose("a").translation[2] - 0.05) < 1e-9
    falling = rest_on_support(scene, "a", Pose([0.5, 0, 0.7]), q)
    assert falling.parent("a") == falling.root("a")
    assert falling.pose("a", q=q).translation == pytest.approx([0.5, 0, 0.7])


def test_cameras_see_what_is_not_hidden() -> None:
    """Out of view, behind another block, and free."""
    scene = tk.load_scene("panda_table", "blocks3")
    q = scene.zero_configuration()
    shares = visible_fractions(StillScene(scene, q), VIEWS[0])
    assert set(shares) == {"a", "b", "c"}
    away = Camera((1.3, -0.5, 1.0), (3.0, -0.5, 1.0))
    assert set(visible_fractions(StillScene(scene, q), away).values()) == {0.0}
    b = scene.pose("b", q=q).translation
    behind = scene.reparent(
        "a", "table", pose=scene.pose("b", relative_to="table", q=q) @ Pose([0.06, 0, 0])
    )
    hidden = visible_fractions(StillScene(behind, q), Camera((-1.0, b[1], b[2]), (0.5, b[1], b[2])))
    assert hidden["a"] < 0.5


def test_what_is_gone_is_not_hidden_by_what_fell_to_its_place() -> None:
    """A block in a tower is taken away, and the one above it falls to where it was."""
    scene = tk.load_scene("panda_table", "blocks3")
    q = tk.load_manipulator("panda").ready_configuration(scene)
    upright = Pose([0, 0, 0.05])
    tower = scene.reparent("b", "c", pose=upright).reparent("a", "b", pose=upright)
    fallen = tower.pose("b", q=q)

    class View(Scripted):
        """Sees 'b' where nothing hides it."""

        def look(self) -> list[Detection]:
            """Return what is there: 'a' in the place of 'b'."""
            poses = {"a": fallen, "c": tower.pose("c", q=q)}
            return [Detection(name, pose, COVARIANCE) for name, pose in poses.items()]

        def in_view(self, scene: tk.SceneGraph, q: Any) -> set[str]:
            """Return all of the tower; else what a camera sees."""
            shares = visible_fractions(StillScene(scene, q), VIEWS[0])
            assert scene == tower or shares["b"] == 0.0
            return {name for name, share in shares.items() if scene == tower or share > 0.6}

    problem = tk.PlanningProblem(
        tower, q, domain="blocks", goal="(ontable a table__0__0)", robots="panda"
    )
    result = execute_closed_loop(
        problem,
        Nothing(),
        [View(scene, [])],
        options=tk.PlanningOptions(seed=0),
        loop=LoopOptions(max_plans=1),
    )
    assert {event.objects for event in result.events[:2]} == {("a",), ("b",)}
    assert result.events[0].scene.parent("a") == "c"
    assert "b" not in result.events[0].scene


def test_bad_input_is_rejected() -> None:
    """Numbers outside of their ranges, and steps before a plan."""
    scene, robot = tk.load_scene("panda_table", "blocks3"), tk.load_manipulator("panda")
    problem = tk.PlanningProblem(scene, domain="blocks", goal=TOWER, robots="panda")
    with Simulation.from_scene(scene, robot=robot) as simulation:
        executor = SimulatedExecutor(simulation)
        with pytest.raises(SimulationError, match=r"begin\(plan\) comes before the first step"):
            executor.finish()
        with pytest.raises(
            SimulationError, match=r"misses must be at least 0 and below 1, got 1\.5"
        ):
            SimulatedCamera(
                simulation, VIEWS[0], noise=SensorNoise(covariance=COVARIANCE, misses=1.5)
            )
        with pytest.raises(ArgumentError, match="looks of at least 2, not 8, 1"):
            execute_closed_loop(problem, executor, [], loop=LoopOptions(looks=1))
