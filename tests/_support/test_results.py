"""Laws of all results: enum status, no truth value, numbers in the repr, plain values."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, fields
from enum import Enum
from html.parser import HTMLParser
from inspect import get_annotations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.public_names import classes

import tmkit as tk
from tmkit._core import RecheckResult
from tmkit._support.results import Result, ValidationStatus, plain_values, to_html
from tmkit.estimation import Latest, pose_graph, resolve_observations, solve_pose_graph
from tmkit.formats.scene_check import check_scene
from tmkit.graph import Evidence, add_observation
from tmkit.manipulation.swept_volume import SweptVolume
from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    PathResult,
    PathStatus,
    inverse_kinematics,
    inverse_kinematics_solutions,
    recheck_path,
    search_path,
    straight_line,
    velocity_ik,
)
from tmkit.motion.reachable_region import ReachableRegion
from tmkit.pddl import And, Problem, State, make_domain, validate_task_plan
from tmkit.plans.execution_report import ExecutionReport, ExecutionStatus
from tmkit.relations import PoseCoord, SemanticPose, SemanticTwist, TwistCoord
from tmkit.robots import check_robot, infer_arm
from tmkit.simulation import SimulationReport
from tmkit.spatial import GaussianPose, PositionMeasurement, condition, fuse
from tmkit.spatial.consistency import gate, nees
from tmkit.tamp import Diagnosis, PlanningOptions, PlanResult, PlanStatus, ValidationReport
from tmkit.tamp.portfolio import PortfolioResult
from tmkit.tamp.refining import RefinementResult
from tmkit.tamp.result import PlanStatistics
from tmkit.tamp.resumption import Resumption, ResumptionStatus
from tmkit.tamp.trial_pick import TrialPick, TrialPickStatus
from tmkit.task_planning import TaskPlanResult, TaskPlanStatus
from tmkit.task_planning.fast_downward import TaskExecution
from tmkit.world.closed_loop import ClosedLoopEvent, ClosedLoopResult, ClosedLoopStatus

EVIL = "<script>alert('x')</script>&\"\n\x1b[31m"
UNSURE = GaussianPose(tk.Pose([0.1, 0.2, 0.3]), np.eye(6) * 1e-4)


SLIDE = tk.SceneGraph().add_frame(
    "a", "world", joint=tk.Prismatic([1, 0, 0], lower=0.0, upper=1.0, name="j")
)
SLIDE = SLIDE.add_frame("b", "a", shapes=[tk.Box((0.1, 0.1, 0.1))])
SEEN = add_observation(
    SLIDE, "b", UNSURE.mean, relative_to="a", evidence=Evidence(covariance=UNSURE.covariance)
)


def no_plan() -> PlanResult:
    """Return a result whose texts have names that somebody else chose."""
    return PlanResult(
        PlanStatus.NO_PLAN_WITHIN_LIMITS, None, EVIL, PlanStatistics(failures=((EVIL, EVIL, 3),))
    )


def empty_task() -> Problem:
    """Return a problem whose goal holds."""
    return Problem(
        "p", make_domain("d", predicates=[], actions=[]), objects={}, init=State(), goal=And()
    )


RESULTS: list[Any] = [
    no_plan(),
    PortfolioResult((PlanningOptions(),), (no_plan(),)),
    TaskPlanResult(TaskPlanStatus.LIMIT, message=EVIL),
    TaskExecution(TaskPlanStatus.LIMIT, (), (State(),), 1, EVIL),
    check_scene(tk.SceneGraph().add_frame("cup", "world")),
    SimulationReport({}, {}, {}, (), (), 3, math.inf, 0.01, 0.1),
    fuse([UNSURE, UNSURE]),
    condition([UNSURE], PositionMeasurement([0.1, 0.2, 0.3], np.eye(3) * 1e-4)),
    gate(UNSURE, PositionMeasurement([0.1, 0.2, 0.3], np.eye(3) * 1e-4)),
    nees([(UNSURE, UNSURE.mean)]),
    PathResult(PathStatus.NO_PATH, np.empty((0, 2)), blocking_pairs=((EVIL, "b", 2),)),
    inverse_kinematics(SLIDE, "b", target_pose=tk.Pose([0.5, 0, 0]), joints=["j"], q=[0.0]),
    inverse_kinematics_solutions(
        SLIDE,
        "b",
        target_pose=tk.Pose([2, 0, 0]),
        joints=["j"],
        q=[0.0],
        settings=IkSettings(max_solutions=2),
    ),
    search_path(CollisionWorld(SLIDE), ["j"], start=[0.0], goals=[0.5]),
    straight_line(SLIDE, "b", start=[0.0], target_pose=tk.Pose([2.0, 0, 0]), joints=["j"]),
    recheck_path(CollisionWorld(SLIDE), [[0.0], [2.0]]),
    velocity_ik(
        SLIDE, SemanticTwist(TwistCoord("b|b", "world", "[world]"), [1, 0, 0, 0, 0, 0]), q=[0.0]
    ),
    check_robot(SLIDE, samples=10),
    infer_arm(SLIDE),
    ClosedLoopResult(
        ClosedLoopStatus.EXECUTION,
        EVIL,
        (ClosedLoopEvent(1, 2, 0, 1.5, "'cup' is gone", SLIDE, np.zeros(1), SLIDE),),
        (),
        SLIDE,
        np.zeros(1),
    ),
    resolve_observations(SEEN, "b", policy=Latest(), q=[0.0]),
    *resolve_observations(SEEN, "b", policy=Latest(), q=[0.0]).gate_results,
    solve_pose_graph(pose_graph(SEEN.set_covariance("b", np.eye(6) * 1e-4), q=[0.0])),
    TrialPick(TrialPickStatus.NO_PLACE, EVIL),
    RefinementResult(PlanStatus.NO_PLAN_WITHIN_LIMITS, (), None, 3),
    ValidationReport((EVIL,), 2, 8, 100),
    validate_task_plan(empty_task(), []),
    Resumption(ResumptionStatus.NO_PLAN, EVIL),
    ExecutionReport(2, 4, ExecutionStatus.ABORTED, EVIL, 3, 1, "lift", 0.5, {EVIL: math.nan}),
]


class Tags(HTMLParser):
    """Collects the names of tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag; none has attributes."""
        assert not attrs
        self.tags.add(tag)


def by_class(result: object) -> str:
    """Return the name of a test case."""
    return type(result).__name__


def test_all_public_results_are_tested() -> None:
    """Every public class with a status obeys the laws below, those of the core included."""
    with_status = {
        kind for kind in classes() if hasattr(kind, "status") or "status" in get_annotations(kind)
    }
    assert with_status - {type(result) for result in RESULTS} == set()
    assert {kind for kind in with_status if kind.__module__ == "tmkit._core"} >= {
        PathResult,
        RecheckResult,
    }


@pytest.mark.parametrize("result", RESULTS, ids=by_class)
def test_a_result_has_no_truth_value(result: Any) -> None:
    """The suggestion of the error is correct."""
    name, status = type(result).__name__, type(result.status)
    with pytest.raises(
        TypeError, match=rf"^{name} has no truth value; write 'result\.status is "
    ) as error:
        bool(result)
    for written in str(error.value).split("write ", 1)[1].split(" or "):
        assert isinstance(
            eval(written.strip("'"), {status.__name__: status, "result": result}), bool
        )


@pytest.mark.parametrize("result", RESULTS, ids=by_class)
def test_displays_of_results(result: Any) -> None:
    """A repr of one line with a status; short HTML without tags of names; JSON values."""
    assert isinstance(result.status, Enum)
    line = repr(result)
    assert "\n" not in line.replace(EVIL, "")
    assert line.startswith(f"{type(result).__name__}(")
    assert re.search(r"\d", line)
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    value = result.status.value
    assert document["status"] == (value if isinstance(value, str) else result.status.name.lower())
    shown = result._repr_html_()
    tags = Tags()
    tags.feed(shown)
    assert tags.tags <= {"table", "caption", "tr", "th", "td"}
    assert len(shown) < 10_000


def test_values_without_an_outcome_are_displayed() -> None:
    """A volume or a region has plain values and a display, and no status."""
    for value in (
        SweptVolume("world", 0.1, np.zeros((1, 3), dtype=np.int64), ("b",), 4),
        ReachableRegion(EVIL, "b", "world", 10, np.zeros((1, 3)), np.ones((1, 3)), ()),
    ):
        document = json.loads(json.dumps(value.to_dict(), allow_nan=False))
        assert set(document) == {entry.name for entry in fields(value)}
        assert "status" not in document
        assert "<table>" in value._repr_html_()
        assert "<script" not in value._repr_html_()


def test_the_display_of_a_diagnosis() -> None:
    """A diagnosis is no outcome: it has numbers and a display."""
    diagnosis = Diagnosis(iterations=2, skeletons=3, attempts=40, causes=(EVIL,))
    assert (
        repr(diagnosis)
        == "Diagnosis(2 iterations, 3 task plans, 40 attempts, 0 actions failed, 0 proofs)"
    )
    assert "<script" not in diagnosis._repr_html_()
    assert "&lt;script" in diagnosis._repr_html_()


@given(st.text(), st.dictionaries(st.text(), st.text() | st.floats() | st.lists(st.text())))
def test_no_text_leaves_its_cell(title: str, values: dict[str, Any]) -> None:
    """The tags are those of the table, for any texts."""
    tags = Tags()
    tags.feed(to_html(title, plain_values(values)))
    assert tags.tags <= {"table", "caption", "tr", "th", "td"}


@given(
    st.recursive(
        st.none() | st.floats() | st.text() | st.integers(),
        lambda part: st.lists(part) | st.tuples(part),
    )
)
def test_plain_values_are_json(value: Any) -> None:
    """Numbers that are not finite are null, tuples are lists, and it is done once."""
    plain = plain_values(value)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain_values(plain) == plain


def test_relations_show_their_numbers() -> None:
    """Vectors to six digits, rotations as quaternions."""
    pose = SemanticPose(PoseCoord("{a}|A", "{b}|B", "[b]"), tk.Pose([1.0, -0.0, 1 / 3]))
    numbers = "[1, 0, 0.333333] quat_xyzw=[0, 0, 0, 1]"
    assert repr(pose) == f"SemanticPose('{{a}}|A', '{{b}}|B', '[b]'; VectorAndQuaternion {numbers})"
    twist = SemanticTwist(TwistCoord("g|C", "D", "[d]"), [-0.1, 0.9, 0.0, 0.0, 0.0, 1.0])
    assert repr(twist) == "SemanticTwist('g|C', 'D', '[d]'; TwistVector [-0.1, 0.9, 0] [0, 0, 1])"


def test_a_subclass_needs_a_status_only() -> None:
    """The base works for a custom dataclass."""

    @dataclass(frozen=True)
    class Own(Result):
        status: ValidationStatus
        numbers: Any

    own = Own(ValidationStatus.VALID, np.array([1.0, math.nan]))
    assert own.to_dict() == {"status": "valid", "numbers": [1.0, None]}
    with pytest.raises(
        TypeError,
        match=r"Own has no truth value; write 'result\.status is ValidationStatus\.VALID'$",
    ):
        assert own


@pytest.mark.parametrize(("count", "last"), [(10, "  problem 9"), (12, "  and 2 more")])
def test_the_text_of_a_report_has_the_first_ten_problems(count: int, last: str) -> None:
    """`repr` is one line; `print` and `summary` also list problems, and count the others."""
    report = ValidationReport(tuple(f"problem {number}" for number in range(count)), 2, 8, 100)
    assert "\n" not in repr(report)
    first, *lines = str(report).splitlines()
    assert first == repr(report)
    assert lines[:10] == [f"  problem {number}" for number in range(10)]
    assert lines[-1] == last
    assert report.summary.splitlines() == [f"{count} problems", *lines]


def test_the_text_of_a_valid_report_is_one_line() -> None:
    """A report without problems shows its counts only."""
    report = ValidationReport((), 2, 8, 100)
    assert str(report) == repr(report)
    assert report.summary == "valid"
