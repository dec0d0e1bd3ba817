"""Check of motions from outside the package: a solved plan is valid for any candidates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.blocks import blocks_scene, with_box
from support.built_domain import Meaning
from support.effort import scaled_examples
from support.gantry import GANTRY
from support.planning import solve_with

import tmkit as tk
from tmkit.errors import TaskError
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    ActionMotion,
    ArmMotionPlanner,
    Candidate,
    Pick,
    Sequence,
    grasps_of,
)
from tmkit.pddl import GroundAction, load_domain
from tmkit.plans import ClassEffect, FailureKind, MotionFailure, Segment, SegmentKind
from tmkit.plans.values import Attachment, Configuration
from tmkit.tamp import PlanResult, PythonDomain
from tmkit.tamp.validation.candidate_check import outside_names

GOAL = "(on a b)"
SCENE = with_box(
    blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4),
    "post",
    (-0.2, -0.2, 0.0),
    (-0.15, 0.2, 0.3),
)

Fault = Callable[[ActionMotion, SceneGraph, Configuration], ActionMotion]
"""Change of a valid motion from a scene and configuration."""


@dataclass(frozen=True)
class Borrowed:
    """Candidate from outside the package: motions of another candidate after a change."""

    inner: Candidate
    fault: Fault

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield the changed motions, and the failures."""
        for attempt in self.inner.refine(arm, context, seed=seed):
            if isinstance(attempt, ActionMotion):
                attempt = self.fault(attempt, context.scene, context.q)
            yield attempt


class Faulty(Meaning):
    """Blocks domain whose candidates are changed, the first ones of an action by faults."""

    faults: ClassVar[Mapping[str, tuple[Fault, ...]]] = {}
    is_in_sequence: ClassVar[bool] = False
    is_always_faulty: ClassVar[bool] = False

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield each candidate with the next fault of the action, then without one."""
        faults = self.faults.get(action.name, ())
        for number, inner in enumerate(super().candidates(action, context)):
            if number < len(faults):
                yield self._borrowed(inner, faults[number])
            if not (faults and self.is_always_faulty):
                yield self._borrowed(inner, keep)

    def _borrowed(self, inner: Candidate, fault: Fault) -> Candidate:
        candidate = Borrowed(inner, fault)
        return Sequence((candidate,)) if self.is_in_sequence else candidate


def domain_with(
    pick: tuple[Fault, ...] = (), place: tuple[Fault, ...] = (), **values: bool
) -> PythonDomain:
    """Return the blocks domain with faults of its picks and places."""
    faults = {"pick-up": pick, "unstack": pick, "put-down": place, "stack": place}
    semantics = type("Faulty", (Faulty,), {"faults": faults, **values})
    return PythonDomain(load_domain(tk.data_path("domains/blocks") / "domain.pddl"), semantics)


def solve(domain: PythonDomain, scene: SceneGraph = SCENE, **options: object) -> PlanResult:
    """Solve the problem in few iterations."""
    options = {"max_iterations": 1, **options}
    return solve_with(scene, GOAL, domain=domain, robot=GANTRY, **options)


# --- faults -----------------------------------------------------------------------------------


def keep(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
    """Return the motion as it is."""
    return motion


def recomputed(
    motion: ActionMotion, segments: tuple[Segment, ...], scene: SceneGraph, q: Configuration
) -> ActionMotion:
    """Return a motion with other segments, and the scene that they lead to."""
    for segment in segments:
        scene, q = segment.end(scene, q)
    return replace(motion, segments=segments, scene=scene, q=q)


def with_segment(
    motion: ActionMotion, index: int, scene: SceneGraph, q: Configuration, **values: object
) -> ActionMotion:
    """Return a motion with other values of a segment, and the scene that it leads to."""
    segments = list(motion.segments)
    index %= len(segments)
    segments[index] = replace(segments[index], **values)  # type: ignore[arg-type]
    return recomputed(motion, tuple(segments), scene, q)


def index_of_change(motion: ActionMotion) -> int:
    """Return the index of the segment that changes a parent."""
    return next(i for i, part in enumerate(motion.segments) if part.reparenting is not None)


def with_change(
    motion: ActionMotion, scene: SceneGraph, q: Configuration, **values: object
) -> ActionMotion:
    """Return a motion with other values of its change of parent."""
    index = index_of_change(motion)
    change = motion.segments[index].reparenting
    assert change is not None
    change = replace(change, **values)  # type: ignore[arg-type]
    return with_segment(motion, index, scene, q, reparenting=change)


def teleport(metres: float, axis: int) -> Fault:
    """Return the fault of an object that jumps when it changes hands."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        change = motion.segments[index_of_change(motion)].reparenting
        assert change is not None
        jump = tk.Pose(np.eye(3)[axis] * metres)
        return with_change(motion, scene, q, pose=change.pose @ jump)

    return fault


def give_to(parent: str) -> Fault:
    """Return the fault of an object that gets another parent at the same pose."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        change = motion.segments[index_of_change(motion)].reparenting
        assert change is not None
        if parent == change.frame:
            return motion
        pose = motion.scene.pose(change.frame, relative_to=parent, q=motion.q)
        return with_change(motion, scene, q, parent=parent, pose=pose)

    return fault


def take_other(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
    """Return a motion that reparents a block that the hand does not handle."""
    index = index_of_change(motion)
    change = motion.segments[index].reparenting
    assert change is not None
    other = "b" if change.frame == "a" else "a"
    pose = scene.pose(other, relative_to="table", q=q)
    return with_segment(motion, index, scene, q, reparenting=Attachment(other, "table", pose))


def reparent_along(index: int) -> Fault:
    """Return the fault of a change of parent in another segment."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        change = motion.segments[index_of_change(motion)].reparenting
        return with_segment(motion, index, scene, q, reparenting=change)

    return fault


def jump(index: int, joint: int, value: float) -> Fault:
    """Return the fault of a path that begins elsewhere."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        path = np.array(motion.segments[index % len(motion.segments)].path)
        path[0, joint] += value
        return with_segment(motion, index, scene, q, path=path)

    return fault


def detour(index: int, waypoint: tuple[float, float, float, float]) -> Fault:
    """Return the fault of a path through a configuration that may collide or exceed limits."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        path = motion.segments[index % len(motion.segments)].path
        path = np.vstack([path[:1], [waypoint], path])
        return with_segment(motion, index, scene, q, path=path)

    return fault


def set_path(index: int, path: object) -> Fault:
    """Return the fault of a path of another shape or with other numbers."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        segments = list(motion.segments)
        segments[index % len(segments)] = replace(segments[index % len(segments)], path=path)  # type: ignore[arg-type]
        return replace(motion, segments=tuple(segments))

    return fault


def declare(index: int, **values: object) -> Fault:
    """Return the fault of other values of a segment, whose effects stay."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        segments = list(motion.segments)
        segments[index % len(segments)] = replace(segments[index % len(segments)], **values)  # type: ignore[arg-type]
        return replace(motion, segments=tuple(segments))

    return fault


def drop(index: int) -> Fault:
    """Return the fault of a missing segment."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        segments = list(motion.segments)
        segments.pop(index % len(segments))
        return recomputed(motion, tuple(segments), scene, q)

    return fault


def skip_motion(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
    """Return a motion without segments that leads to the same scene."""
    return replace(motion, segments=())


def keep_scene(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
    """Return a motion that leads to the scene before it."""
    return replace(motion, scene=scene)


def add_class(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
    """Return a motion with a class in its scene that no change adds."""
    return replace(motion, scene=motion.scene.set_classes("b", ["movable", "clean"]))


def declare_class(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
    """Return a motion with a change that its scene lacks."""
    return replace(motion, changes=(ClassEffect("b", added=("clean",)),))


def end_at(value: object) -> Fault:
    """Return the fault of another final configuration."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        return replace(motion, q=np.array(value(motion.q) if callable(value) else value))

    return fault


def place_in_air(height: float) -> Fault:
    """Return the fault of an object that is released above its support."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        index = index_of_change(motion)
        segments = []
        for number, part in enumerate(motion.segments):
            path = np.array(part.path)
            path[0 if number else 1 :, 2] -= height  # the rail z points down
            segments.append(replace(part, path=path))
        at_release = scene
        for part in segments[:index]:
            at_release, q = part.end(at_release, q)
        change = segments[index].reparenting
        assert change is not None
        q_release = replace(segments[index], reparenting=None).end(at_release, q)[1]
        pose = at_release.pose(change.frame, relative_to=change.parent, q=q_release)
        segments[index] = replace(segments[index], reparenting=replace(change, pose=pose))
        return recomputed(motion, tuple(segments), scene, q)

    return fault


INDICES = st.integers(0, 3)
SMALL = st.floats(1e-3, 0.3) | st.floats(-0.3, -1e-3)
ODD_PATHS = (
    np.zeros((0, 4)),
    np.zeros((2, 3)),
    np.zeros(4),
    np.full((1, 4), math.nan),
    np.full((2, 4), math.inf),
    np.full((2, 4), 1e300),
)
FAULTS = st.one_of(
    st.sampled_from((keep, take_other, skip_motion, keep_scene, add_class, declare_class)),
    st.builds(teleport, SMALL, st.integers(0, 2)),
    st.builds(give_to, st.sampled_from(("world", "hand", "b", "tool", "left_finger", "post"))),
    st.builds(reparent_along, INDICES),
    st.builds(jump, INDICES, st.integers(0, 3), SMALL),
    st.builds(detour, INDICES, st.tuples(*[st.floats(-0.6, 0.6)] * 4)),
    st.builds(set_path, INDICES, st.sampled_from(ODD_PATHS)),
    st.builds(lambda index, kind: declare(index, kind=kind), INDICES, st.sampled_from(SegmentKind)),
    st.builds(
        lambda index, held: declare(index, held=held),
        INDICES,
        st.sampled_from((None, "a", "b", "table", "nothing")),
    ),
    st.builds(lambda index: declare(index, allowed_contacts=()), INDICES),
    st.builds(lambda index: declare(index, arm="other"), INDICES),
    st.builds(lambda index: declare(index, into="b"), INDICES),
    st.builds(lambda index: declare(index, joint_names=("x", "y", "z", "finger")), INDICES),
    st.builds(
        lambda index, value: declare(index, gripper={"finger": value}),
        INDICES,
        st.sampled_from((0.0, 0.02, 0.04, 0.5, math.nan)),
    ),
    st.builds(lambda index: declare(index, gripper={"wrist": 0.0}), INDICES),
    st.builds(lambda index: declare(index, reparenting=None), INDICES),
    st.builds(drop, INDICES),
    st.builds(
        end_at,
        st.sampled_from(
            (lambda q: q + 1e-3, lambda q: q[:-1], lambda q: q[None], lambda q: q * math.nan)
        ),
    ),
    st.builds(place_in_air, st.floats(0.003, 0.2)),
)


# --- laws -------------------------------------------------------------------------------------


@settings(max_examples=scaled_examples(1.5))
@given(
    pick=st.lists(FAULTS, max_size=3).map(tuple),
    place=st.lists(FAULTS, max_size=3).map(tuple),
    is_in_sequence=st.booleans(),
    is_always_faulty=st.booleans(),
)
def test_a_solved_plan_is_valid_for_any_candidates(
    pick: tuple[Fault, ...], place: tuple[Fault, ...], is_in_sequence: bool, is_always_faulty: bool
) -> None:
    """The search never returns a plan that the validator rejects, and finds right motions."""
    domain = domain_with(
        pick, place, is_in_sequence=is_in_sequence, is_always_faulty=is_always_faulty
    )
    result = solve(domain)
    if result.plan is not None:
        report = tk.validate_plan(result.plan, domain=domain)
        assert report.is_valid, report.summary
    if not is_always_faulty:
        assert result.plan is not None, result.explanation


@pytest.mark.parametrize("is_in_sequence", [False, True])
def test_right_motions_are_accepted_unchanged(is_in_sequence: bool) -> None:
    """Right motions of an own candidate give the plan of the built-in ones."""
    domain = domain_with(is_in_sequence=is_in_sequence)
    plan = solve(domain).plan
    built_in = solve_with(SCENE, GOAL, robot=GANTRY).plan
    assert plan is not None
    assert built_in is not None
    assert [step.segments for step in plan.steps] == [step.segments for step in built_in.steps]
    assert tk.validate_plan(plan, domain=domain).is_valid


# --- messages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pick", "place", "message"),
    [
        (teleport(0.05, 0), keep, r"pick-up a .*grasp: 'a' moves by 50\.00 mm"),
        (give_to("b"), keep, r"pick-up a .*grasp: it gives 'a' to 'b'"),
        (take_other, keep, r"pick-up a .*grasp: it handles 'a' but reparents 'b'"),
        (reparent_along(0), keep, "transit: it reparents 'a', which only a grasp, release or push"),
        (jump(0, 1, 0.1), keep, "transit: it does not start at the configuration of the arm"),
        (detour(0, (-0.18, 0.0, 0.6, 0.0)), keep, "transit: '.*' and '.*' collide"),
        (detour(0, (9.0, 0.0, 0.3, 0.0)), keep, "transit: joint 'x' is outside its limits"),
        (set_path(0, np.zeros((0, 4))), keep, r"path of shape \(0, 4\) has no configuration"),
        (set_path(0, np.full((1, 4), math.nan)), keep, "transit: its path is not finite"),
        (declare(0, arm="left"), keep, "unknown arm 'left'"),
        (keep_scene, keep, "its scene differs from the result of its motion"),
        (end_at(lambda q: q[:-1]), keep, "its scene differs from the result of its motion"),
        (skip_motion, keep, "its scene differs from the result of its motion"),
        (keep, place_in_air(0.05), r"stack a b\), release: 'a' is released 50\.1 mm off 'b'"),
        (keep, give_to("world"), "lower: it allows a contact that the rules do not allow: a and b"),
        (keep, declare(0, held="b"), "transfer: it carries 'b', but the hand holds 'a'"),
    ],
)
def test_the_explanation_names_class_action_and_first_fault(
    pick: Fault, place: Fault, message: str
) -> None:
    """An invalid motion is a failure, and the search continues."""
    domain = domain_with((pick,), (place,), is_always_faulty=True)
    options = {"attempts_per_action": 1, "skeletons_per_iteration": 1}
    result = solve(domain, **options)
    assert result.plan is None
    assert result.diagnosis is not None
    causes = [cause for action in result.diagnosis.actions for cause in action.causes]
    causes = [cause for cause in causes if cause.kind is FailureKind.INVALID_MOTION]
    assert causes
    for cause in causes:
        assert cause.phase == "validation"
        assert cause.cause.startswith("candidate 'Borrowed' yields an invalid motion: (")
    assert any(re.search(message, cause.cause) for cause in causes), causes


@pytest.mark.parametrize("values", [{"segments": None}, {"q": "ready"}, {"segments": ("pick",)}])
def test_a_part_of_another_type_is_an_error_that_names_the_candidate(values: dict) -> None:
    """A motion of wrong types is a mistake in the program, not a failure of the search."""

    def fault(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        return replace(motion, **values)

    with pytest.raises(TaskError, match=r"Borrowed of \(pick-up a "):
        solve(domain_with((fault,)))


def test_a_candidate_may_reuse_its_buffers() -> None:
    """The planner copies the arrays of a motion from outside the package."""
    buffers = []

    def overwrite(motion: ActionMotion, scene: SceneGraph, q: Configuration) -> ActionMotion:
        for buffer in buffers:
            buffer[...] = 0.0
        own = [np.array(motion.q), *(np.array(part.path) for part in motion.segments)]
        buffers.extend(own)
        segments = [
            replace(part, path=path) for part, path in zip(motion.segments, own[1:], strict=True)
        ]
        return replace(motion, q=own[0], segments=tuple(segments))

    domain = domain_with((overwrite,), (overwrite,))
    plan = solve(domain).plan
    assert plan is not None
    assert tk.validate_plan(plan, domain=domain).is_valid


def test_built_in_candidates_are_not_checked() -> None:
    """Only classes from outside the package, also within sequences, are named."""
    pick = Pick("a", grasps_of(SCENE, "a", robot=GANTRY)[0])
    assert outside_names(None) == ()
    assert outside_names(pick) == ()
    assert outside_names(Sequence((pick, Sequence((pick,))))) == ()
    borrowed = Borrowed(pick, keep)
    assert outside_names(Sequence((pick, Sequence((borrowed, borrowed))))) == ("Borrowed",)
