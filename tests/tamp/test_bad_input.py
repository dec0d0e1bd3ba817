"""Invalid values from user code raise errors that name the source."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable, Iterable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY
from support.planning import solve_with

import tmkit as tk
from tmkit import cli
from tmkit.cli import ExitCode
from tmkit.errors import (
    ArgumentError,
    ConfigurationError,
    SamplerError,
    SceneError,
    TaskError,
    TaskPlannerError,
)
from tmkit.manipulation import (
    Grasp,
    GraspRequest,
    PlacementRequest,
    Samplers,
    grasps_of,
    placements_on_surface,
    sample_placements,
)
from tmkit.manipulation.placements.sampling import Placement
from tmkit.motion import PathQuery, PathResult
from tmkit.pddl import Fact, GroundAction, Problem
from tmkit.spatial import Pose
from tmkit.tamp import PlanningOptions
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanResult, TaskPlanStatus

PICK = GroundAction("pick-up", ("a", "table__0__0"))
STACK = GroundAction("stack", ("a", "b"))


def plan(**options: Any) -> tk.PlanResult:
    """Plan to stack one block on another with the gantry, limited by iterations."""
    scene = options.pop("scene", None) or blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    return solve_with(scene, "(on a b)", robot=GANTRY, max_iterations=1, suggest=False, **options)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("task_planner", 3, "task_planner must have the methods prepare, search, not 3"),
        ("task_planner", FastDownward, r"not <class '.*FastDownward'>; call it: FastDownward\(\)"),
        ("motion_planner", 3, "motion_planner must have the methods search, not 3"),
        ("motion_planner", "rrt", "unknown motion planner 'rrt'"),
        ("samplers", Samplers, r"samplers must have .* call it: Samplers\(\)"),
        (
            "samplers",
            len,
            "samplers must have the methods grasp_sampler, placement_sampler, not <built-in",
        ),
    ],
)
def test_objects_that_are_no_planner_are_rejected_as_options(
    option: str, value: Any, message: str
) -> None:
    """The message lists the required methods, and has a hint for classes."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        PlanningOptions(**{option: value})
    assert caught.value.data["option"] == option


def test_progress_requires_a_function() -> None:
    """Other values are rejected before planning starts."""
    with pytest.raises(ArgumentError, match=r"solve\(\): on_progress must be a function, not 3"):
        plan(on_progress=3)


# --- task planners ---


class Task:
    """Prepared task of a scripted planner."""

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> Task:
        """Ignore the forbidden action."""
        del action, context
        return self


class Planner(TaskPlanner[Any]):
    """Task planner with scripted results."""

    def __init__(self, answer: Callable[[], Any], prepare: Callable[[], Any] = Task) -> None:
        self.answer, self.prepared = answer, prepare

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> Any:
        """Return the scripted task."""
        del problem, time_limit
        return self.prepared()

    def search(self, task: Any, *, time_limit: float = 60.0) -> Any:
        """Return the scripted result."""
        del task, time_limit
        return self.answer()


def steps(
    *actions: Any, status: Any = TaskPlanStatus.SOLVED, cost: float = 2.0
) -> Callable[[], Any]:
    """Return a function that returns a result of the task planner."""
    return lambda: TaskPlanResult(status, actions, cost)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: None, "gives None, which is not a TaskPlanResult"),
        (lambda: 1 / 0, "fails in 'search': ZeroDivisionError: division by zero"),
        (
            steps("(pick-up a)"),
            r"gives the steps \('\(pick-up a\)',\), which are not a tuple of GroundAction",
        ),
        (lambda: TaskPlanResult(TaskPlanStatus.SOLVED, None), "gives the steps None"),  # type: ignore[arg-type]
        (steps(PICK, status="solved"), "gives the status 'solved', which is not a TaskPlanStatus"),
        (
            steps(GroundAction("fly", ())),
            r"gives a plan that is none: step 1 of 1, \(fly\): unknown action 'fly'",
        ),
        (steps(GroundAction("stack", ("a", "zebra"))), "none: .*unknown object 'zebra'"),
        (steps(STACK), r"none: step 1 of 1, \(stack a b\): \(holding a\) does not hold"),
        (steps(PICK), r"none: the goal is not reached: \(on a b\) does not hold"),
        (steps(), r"none: the goal is not reached: \(on a b\) does not hold"),
    ],
)
def test_an_invalid_result_of_a_task_planner_names_it(
    answer: Callable[[], Any], message: str
) -> None:
    """A result that is not a plan of the task raises an error."""
    with pytest.raises(TaskPlannerError, match=f"task planner 'Planner' .*{message}"):
        plan(task_planner=Planner(answer))


def test_an_invalid_task_and_a_forbidden_action_name_the_planner() -> None:
    """A task without constraints is rejected; forbidden actions raise an error."""
    with pytest.raises(
        TaskPlannerError, match="'Planner' prepares 7, which has no method 'forbid'"
    ):
        plan(task_planner=Planner(steps(PICK, STACK), lambda: 7))
    with pytest.raises(TaskPlannerError, match="'Planner' fails in 'prepare': ZeroDivisionError"):
        plan(task_planner=Planner(steps(PICK, STACK), lambda: 1 / 0))
    nothing = Samplers().with_grasps(lambda _: [])
    with pytest.raises(
        TaskPlannerError, match=r"gives a plan with \(pick-up a table__0__0\), which was forbidden"
    ):
        plan(task_planner=Planner(steps(PICK, STACK)), samplers=nothing)
    good = plan(task_planner=Planner(steps(PICK, STACK, cost=math.nan)))
    assert good.plan is not None
    assert good.plan.cost == 2.0


# --- motion planners ---


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (lambda _: None, "motion planner 'Mover' must return a PathResult, got None"),
        (lambda query: query.goals, r"motion planner 'Mover' must return a PathResult, got array"),
        (lambda _: 1 / 0, "motion planner 'Mover' fails: ZeroDivisionError: division by zero"),
    ],
)
def test_an_invalid_path_names_the_motion_planner(
    search: Callable[[PathQuery], Any], message: str
) -> None:
    """Other invalid paths are in the tests of the motion planners."""

    class Mover:
        def search(self, query: PathQuery) -> PathResult:
            answer: PathResult = search(query)
            return answer

    with pytest.raises(ConfigurationError, match=f"(?s){message}"):
        plan(motion_planner=Mover())


# --- samplers ---


def grasp_with(**values: Any) -> Callable[[GraspRequest], list[Grasp]]:
    """Return a sampler of one valid grasp with some values replaced."""

    def sample(request: GraspRequest) -> list[Grasp]:
        first = grasps_of(request.scene, request.object, robot=request.robot, rng=request.rng)[0]
        fields = {
            "object_from_tool": first.object_from_tool,
            "width": first.width,
            "name": first.name,
        }
        return [Grasp(**{**fields, **values})]

    return sample


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (
            grasp_with(object_from_tool=Pose([100.0, 0.0, 0.0])),
            "of 'a' with the tool 100 m away from the object",
        ),
        (
            grasp_with(object_from_tool=Pose([1e300, 0.0, 0.0])),
            "of 'a' with the tool 1e.300 m away from the object",
        ),
        (grasp_with(object_from_tool=[0, 0, 0]), "'object_from_tool' must be a Pose, not a list"),
        (
            grasp_with(width="wide"),
            "returns a grasp of 'a' whose width is 'wide', which is not a number",
        ),
        (grasp_with(width=None), "whose width is None, which is not a number"),
        (
            lambda _: grasp_with(object_from_tool=Pose([math.nan, 0, 0]))(_),
            "fails for 'a': .*translation holds nan",
        ),
        (lambda request: repeat(grasp_with()(request)[0]), "returns more than 10000 grasps of 'a'"),
    ],
)
def test_invalid_grasps_end_planning(sampler: Any, message: str) -> None:
    """The error names the sampler and the object."""
    with pytest.raises(SamplerError, match=f"sampler '.*' .*{message}"):
        plan(samplers=Samplers().with_grasps(sampler))


def shelf_scene() -> tk.SceneGraph:
    """Return a kitchen scene with an object on a table, and a mat."""
    box, flat = (
        tk.AttachedShape(tk.Box([0.05, 0.05, 0.05])),
        tk.AttachedShape(tk.Box([0.2, 0.2, 0.002])),
    )
    scene = tk.load_scene("panda_table").set_classes("table", ("surface",))
    scene = scene.add_frame(
        "mat", "world", pose=Pose([0.5, 0.35, 0.001]), shapes=[flat], classes=["region"]
    )
    return scene.add_frame("a", "table", pose=Pose([0, 0, 0.05]), shapes=[box], classes=["movable"])


def placement_with(**values: Any) -> Callable[[PlacementRequest], list[Placement]]:
    """Return a sampler of one valid placement with some values replaced."""

    def sample(request: PlacementRequest) -> list[Placement]:
        first = next(iter(sample_placements(request)))
        fields = {
            "support": first.support,
            "support_from_object": first.support_from_object,
            "name": first.name,
        }
        return [Placement(**{**fields, **values})]

    return sample


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (
            placement_with(support_from_object=Pose([100.0, 0.0, 0.0])),
            "that is 100 m away from 'mat'",
        ),
        (
            placement_with(support_from_object=Pose([0.0, 1e300, 0.0])),
            "that is 1e.300 m away from 'mat'",
        ),
        (
            placement_with(support="a"),
            "returns a placement for 'a' on 'mat' on 'a', which moves with the object",
        ),
        (placement_with(support=None), "'support' must be a str, not None"),
        (placement_with(support_from_object=None), "must be a Pose, not None"),
        (lambda _: 1 / 0, "fails for 'a' on 'mat': ZeroDivisionError"),
    ],
)
def test_invalid_placements_end_planning(sampler: Any, message: str) -> None:
    """The error names the sampler, the object and the support."""
    samplers = Samplers().with_placements(sampler)
    with pytest.raises(SamplerError, match=f"sampler '.*' .*{message}"):
        tk.plan(
            shelf_scene(),
            goal="(on a mat)",
            domain="kitchen",
            options=tk.PlanningOptions(max_iterations=1, suggest=False, samplers=samplers),
        )


def test_placements_far_from_the_middle_of_a_support_are_valid() -> None:
    """The distance from the middle of the support is not limited."""
    wide = shelf_scene().add_frame(
        "floor",
        "world",
        pose=Pose([0, 0, -0.4]),
        shapes=[tk.AttachedShape(tk.Box([40.0, 40.0, 0.1]))],
        classes=["surface"],
    )

    def sample(request: PlacementRequest) -> Iterable[Placement]:
        if request.support == "floor":
            yield Placement("floor", Pose([15.0, 0.0, 0.075]), "far")
        yield from placements_on_surface(
            request.scene,
            request.object,
            request.support,
            q=request.q,
            rng=request.rng,
            robot=request.robot,
        )

    result = tk.plan(
        wide,
        goal="(on a floor)",
        domain="kitchen",
        options=tk.PlanningOptions(
            max_iterations=1, suggest=False, samplers=Samplers().with_placements(sample)
        ),
    )
    assert result.plan is None or tk.validate_plan(result.plan).is_valid


@pytest.mark.parametrize("domain", ["blocks", "kitchen"])
def test_an_object_without_shape_is_named(domain: str) -> None:
    """Visual shapes do not count, and objects outside the goal are checked too."""
    for shapes in ([], [tk.AttachedShape(tk.Box([0.05, 0.05, 0.05]), collision=False)]):
        scene = shelf_scene().add_frame(
            "ghost", "table", pose=Pose([0.1, 0.1, 0.05]), shapes=shapes
        )
        scene = scene.set_classes("ghost", ("movable",))
        goal = "(holding ghost)" if domain == "blocks" else "(on ghost mat)"
        with pytest.raises(
            SceneError,
            match="'ghost' has no collision shape, so nothing can rest on it or be grasped",
        ):
            tk.plan(scene, goal=goal, domain=domain, options=tk.PlanningOptions(max_iterations=1))


# --- semantics ---

SEMANTICS = {
    "candidates: return None": r"semantics.py:\d+: 'candidates' returns None, expected Iterable",
    "candidates: return ['x']": (r"semantics.py:\d+: 'candidates' returns 'x', expected Candidate"),
    "candidates: return [None]": (
        r"semantics.py:\d+: 'candidates' returns None, expected Candidate"
    ),
    "candidates: return 1 / 0": r"semantics.py:\d+: candidates of \(pick-up a .*ZeroDivisionError",
    "candidates: return [Pick('a', 'grasp')]": r"Pick\(\): .*'grasp' must be a Grasp, not a str",
    "candidates: return [Refining([3])]": (
        "candidate 'Refining' gives 3, which is neither an ActionMotion nor a Motion"
    ),
    "candidates: return [Refining(None)]": (
        r"semantics.py:\d+: Refining of \(pick-up a .*TypeError: .*NoneType"
    ),
    "state: return None": r"semantics.py:\d+: 'state' returns None, expected State",
    "objects: return None": r"semantics.py:\d+: 'objects' returns None, expected Mapping",
    "relevant_objects: return None": (
        r"semantics.py:\d+: 'relevant_objects' returns None, expected Collection"
    ),
    "relevant_objects: return 1 / 0": r"semantics.py:\d+: planning: ZeroDivisionError",
    "infeasibilities: return None": (
        r"semantics.py:\d+: 'infeasibilities' returns None, expected Iterable"
    ),
    "infeasibilities: return ['x']": (
        r"semantics.py:\d+: 'infeasibilities' returns 'x', expected Infeasibility"
    ),
}


@pytest.mark.parametrize("body", list(SEMANTICS))
def test_an_error_in_semantics_names_its_line(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line reports invalid input, not an internal error."""
    method, text = body.split(": ", 1)
    built_in = tk.data_path("domains/blocks")
    (tmp_path / "domain.pddl").write_bytes((built_in / "domain.pddl").read_bytes())
    added = f"""
        from tmkit.manipulation import Pick

        class Refining:
            def __init__(self, found):
                self.found = found
            def refine(self, arm, context, *, seed):
                yield from self.found

        Blocks = Semantics

        class Semantics(Blocks):
            def {method}(self, *_):
                {text}
        """
    text = (built_in / "semantics.py").read_text(encoding="utf-8") + textwrap.dedent(added)
    (tmp_path / "semantics.py").write_text(text)
    scene = tk.load_scene("panda_table", "blocks1")
    with pytest.raises((TaskError, ArgumentError), match=f"(?s){SEMANTICS[body]}"):
        tk.plan(
            scene, goal="(holding a)", domain=tmp_path, options=tk.PlanningOptions(max_iterations=1)
        )
    arguments = [
        "plan",
        "panda_table",
        "blocks1",
        "--goal",
        "(holding a)",
        "--domain",
        str(tmp_path),
    ]
    monkeypatch.setattr(sys, "argv", ["tmkit", *arguments, "--max-iterations", "1"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == ExitCode.BAD_INPUT
    assert "Traceback" not in capsys.readouterr().err
