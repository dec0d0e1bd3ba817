"""Incremental states are equal to states derived in full, in every built-in domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

import tmkit as tk
from tmkit._support.data import data_path
from tmkit.errors import SceneError, TmkitError
from tmkit.graph import AttachedShape, Box, Fixed, SceneGraph, diff
from tmkit.manipulation import ActionContext, Candidate
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp import DomainSemantics, incremental, load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.state_derivation import DerivedState, StateDeriver
from tmkit.tamp.domains.traced_scene import TracedScene

T = TypeVar("T")

WORLDS = {
    "blocks": ("panda_table", "blocks5"),
    "blocks_uncertain": ("panda_table", "blocks2"),
    "drawer": ("panda_drawer",),
    "handover": ("panda_table", "blocks3"),
    "hanoi": ("panda_table", "hanoi3"),
    "kitchen": ("iiwa_kitchen", "kitchen_blocks4"),
    "mobile_manipulation": ("mobile_panda", "three_tables"),
    "pour": ("panda_table", "tea"),
    "push": ("panda_push",),
    "rearrangement": ("panda_table", "rearrange_row"),
    "sorting": ("panda_table", "sort8"),
}


def outcome(derive: Callable[[], T]) -> T | str:
    """Return the derived state, or the error."""
    try:
        return derive()
    except TmkitError as error:
        return str(error)


def plain(
    domain: PlanningDomain, scene: SceneGraph, objects: Mapping[str, str], q: np.ndarray
) -> State:
    """Return the state that the semantics derives from the untraced scene."""
    return domain.semantics.state(scene, objects, q)


def apply_random_edit(scene: SceneGraph, random: np.random.Generator) -> SceneGraph:
    """Return a scene after a random edit, mostly of a pose."""
    if len(scene) < 3:
        return scene
    things = movable_frames(scene) or scene.frame_names
    object, other = (str(random.choice(things)), str(random.choice(scene.frame_names)))
    kind = random.random()
    if kind < 0.35:
        return scene.reparent(
            object, str(random.choice(scene.frame_names)), pose=scene.local_pose(object)
        )
    if kind < 0.45:
        lower = scene.local_pose(object).translation
        return scene.set_pose(
            object, Pose([*(lower[:2] + random.choice([0.0, 0.1, -0.1], size=2)), lower[2]])
        )
    if kind < 0.6:  # stand on a support, if both have boxes
        shapes, below = scene.shapes(object), scene.shapes(other)
        if not shapes or not below:
            return scene
        height = below[0].shape.bounds[1][2] - shapes[0].shape.bounds[0][2]
        return scene.reparent(object, other, pose=Pose([0, 0, float(height)]))
    if kind < 0.7:
        return scene.set_classes(
            other,
            list(random.choice([*scene.classes(object), "movable", "surface", "red"], size=1)),
        )
    if kind < 0.8:
        return scene.set_shapes(
            object, [AttachedShape(Box([0.04, 0.04, float(random.choice([0.04, 0.06]))]))]
        )
    if kind < 0.85:
        return scene.add_frame(
            f"new{len(scene)}", other, classes=["movable"], shapes=scene.shapes(object)
        )
    if kind < 0.9:
        return scene.remove_frame(object, subtree=True)
    if kind < 0.95:
        return scene.rename_frame(object, f"{object}_")
    return scene.set_joint(other, Fixed())


@pytest.mark.parametrize("name", WORLDS)
@settings(max_examples=scaled_examples(0.05))
@given(seed=st.integers(0, 2**32 - 1))
def test_derived_from_any_version_is_derived_in_full(name: str, seed: int) -> None:
    """The facts or the error are equal, whichever version the state is derived from."""
    random = np.random.default_rng(seed)
    robot = tk.load_manipulator("iiwa" if name == "kitchen" else "panda")
    extra_robots = (tk.load_manipulator("panda_base"),) if name == "mobile_manipulation" else ()
    domain = load_planning_domain(name, robot=(robot, *extra_robots))
    scene = tk.load_scene(*WORLDS[name])
    objects = domain.semantics.objects(scene)
    deriver = StateDeriver(domain, objects)
    states: list[DerivedState] = [deriver.derive(scene, scene.zero_configuration())]
    for _ in range(6):
        previous = states[int(random.integers(len(states)))]
        scene = previous.scene
        for _ in range(int(random.integers(1, 3))):
            try:
                scene = apply_random_edit(scene, random)
            except TmkitError:
                continue
        q = scene.zero_configuration() + random.choice(
            [0.0, 0.1], size=scene.zero_configuration().size
        )
        wanted = outcome(partial(domain.state, scene, q, objects=objects))
        assert outcome(partial(plain, domain, scene, objects, q)) == wanted
        for start in (previous, states[-1], None):
            derived = outcome(partial(deriver.derive, scene, q, start))
            if isinstance(derived, DerivedState):
                assert derived.state == wanted
                states.append(derived)
            else:
                assert derived == wanted


def test_every_built_in_domain_is_tried() -> None:
    """The law above speaks of all domains that there are."""
    folders = {
        path.name
        for path in Path(data_path("domains")).iterdir()
        if (path / "semantics.py").exists()
    }
    assert folders == set(WORLDS)


class Silent(DomainSemantics):
    """A semantics without objects and candidates, for tests of its state."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return none."""
        del scene
        return {}

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield none."""
        del action, context
        return iter(())


class Counting(Silent):
    """Blocks on things: a semantics that notes which of its functions run."""

    is_incremental = True
    calls: tuple[str, ...] = ()

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: np.ndarray) -> State:
        """Return the support of each movable frame."""
        del objects, q
        return State(
            fact for object in scene.frames_of_class("movable") for fact in _on(scene, object, self)
        )


@incremental
def _on(scene: SceneGraph, object: str, semantics: Counting) -> tuple[Fact, ...]:
    semantics.calls += (object,)
    height = scene.pose(object, relative_to="world").translation[2]
    return Fact.of("on", object, str(scene.parent(object))), *(
        [Fact.of("high", object)] if height > 1.0 else []
    )


def counting(scene: SceneGraph) -> tuple[Counting, StateDeriver]:
    """Return semantics that count calls, and a deriver with another domain."""
    semantics = Counting(tk.load_manipulator("panda"))
    blocks = load_planning_domain("blocks", robot=tk.load_manipulator("panda"))
    domain = replace(blocks, semantics=semantics)
    return semantics, StateDeriver(domain, {})


def tower() -> SceneGraph:
    """Return three things on each other, and one beside."""
    scene = SceneGraph().add_frame("table", "world")
    for object, below in (("a", "table"), ("b", "a"), ("c", "b"), ("d", "table")):
        scene = scene.add_frame(object, below, pose=Pose([0, 0, 0.4]), classes=["movable"])
    return scene


def test_only_what_read_a_change_is_called_again() -> None:
    """A pose is read along its path; other frames are not read again."""
    scene = tower()
    semantics, deriver = counting(scene)
    start = deriver.derive(scene, np.zeros(0))
    assert semantics.calls == ("a", "b", "c", "d")

    def called_for(version: SceneGraph, previous: DerivedState = start) -> tuple[str, ...]:
        semantics.calls = ()
        state = deriver.derive(version, np.zeros(0), previous).state
        calls, semantics.calls = semantics.calls, ()
        assert state == semantics.state(version, {}, np.zeros(0))
        return calls

    assert called_for(scene) == ()
    assert called_for(scene.reparent("d", "c", pose=Pose([0, 0, 0.4]))) == ("d",)
    assert called_for(scene.set_pose("b", Pose([0, 0, 1.0]))) == ("b", "c")
    assert called_for(scene.set_attributes("a", {"weight": 2}).allow_collision("a", "b")) == ()
    assert called_for(scene.add_frame("e", "a", classes=["movable"])) == ("e",)
    assert called_for(scene.remove_frame("d")) == ()
    assert called_for(scene.rename_frame("d", "e")) == ("a", "b", "c", "e")
    assert (
        called_for(
            SceneGraph.from_frames([scene.specification(name) for name in scene.frame_names])
        )
        == ()
    )


@incremental
def _outer(scene: SceneGraph, object: str) -> str:
    try:
        return _inner(scene, object)
    except SceneError:
        return "nothing"


@incremental
def _inner(scene: SceneGraph, object: str) -> str:
    if not scene.classes(object):
        raise SceneError("no class")
    return scene.classes(object)[0]


def test_what_is_read_inside_counts_for_what_is_around() -> None:
    """Also when the inner function was kept, and when it raised."""
    scene = SceneGraph().add_frame("a", "world")
    traced: Any = TracedScene(scene, {})
    assert _outer(traced, "a") == "nothing"
    [(_, value)] = traced._memo.items()
    assert value.reads == {("a", "classes")}
    traced = TracedScene(scene.set_classes("a", ["x"]), {})
    assert _inner(traced, "a") == _outer(traced, "a") == "x"
    [inner, outer] = traced._memo.values()
    assert (inner.reads, {name for name, _ in outer.reads}) == (
        frozenset({("a", "classes")}),
        {_inner.__wrapped__},
    )


QUERIES: list[tuple[Any, tuple[str, ...]]] = [
    (lambda s: s.parent("c"), ("parent",)),
    (lambda s: s.children("a"), ("children",)),
    (lambda s: s.ancestors("c"), ("parent",)),
    (lambda s: s.root("c"), ("parent",)),
    (lambda s: s.classes("c"), ("classes",)),
    (lambda s: s.shapes("c"), ("shapes",)),
    (lambda s: s.attributes("c"), ("attributes",)),
    (lambda s: s.joint("c"), ("joint",)),
    (lambda s: s.local_pose("c"), ("pose",)),
    (lambda s: s.frame_id("c"), ("there",)),
    (lambda s: s.frames_of_class("movable"), ("class",)),
    (lambda s: s.pose("c", relative_to="d"), ("pose",)),
    (lambda s: "e" in s, ("there",)),
    (lambda s: len(s), ("whole",)),
    (lambda s: s.groups_of("c"), ("whole",)),
    (lambda s: s.inertia("c"), ("whole",)),
    (lambda s: s.is_allowed("a", "c"), ("whole",)),
]


@settings(max_examples=scaled_examples(0.2))
@given(seed=st.integers(0, 2**32 - 1))
def test_a_kept_query_is_right_or_called_again(seed: int) -> None:
    """Each cached query, over random edits, returns or raises as the scene itself does."""
    random = np.random.default_rng(seed)
    functions = [
        incremental(lambda scene, _query=query: answer(_query, scene)) for query, _ in QUERIES
    ]
    semantics: Any = type("S", (), {"is_incremental": True, "state": None})()
    semantics.state = lambda scene, *_: State(
        Fact.of("says", str(number), repr(function(scene)))
        for number, function in enumerate(functions)
    )
    blocks = load_planning_domain("blocks", robot=tk.load_manipulator("panda"))
    deriver = StateDeriver(replace(blocks, semantics=semantics), {})
    scene, previous = tower(), None
    for _ in range(12):
        try:
            scene = apply_random_edit(scene, random)
        except TmkitError:
            continue
        previous = deriver.derive(scene, np.zeros(0), previous)
        assert previous.state == semantics.state(scene, {}, np.zeros(0))


def answer(query: Any, scene: SceneGraph) -> object:
    """Return the result of a query, or the message of its error."""
    try:
        value = query(scene)
    except TmkitError as error:
        return str(error)
    return value.as_array().tolist() if isinstance(value, Pose) else value


def test_a_semantics_that_is_not_incremental_gets_the_scene_itself() -> None:
    """The state of a custom domain is derived in full from a scene."""
    seen: list[tuple[object, object]] = []

    class Plain(Silent):
        def state(self, scene: SceneGraph, objects: Mapping[str, str], q: np.ndarray) -> State:
            del q
            seen.append((scene, objects))
            return State([Fact.of("size", str(len(diff(scene, scene).frames)))])

    blocks = load_planning_domain("blocks", robot=tk.load_manipulator("panda"))
    domain = replace(blocks, semantics=Plain(tk.load_manipulator("panda")))
    scene = tower()
    first = StateDeriver(domain, {}).derive(scene, np.zeros(0))
    assert StateDeriver(domain, {}).derive(scene, np.zeros(0), first).state == first.state
    assert [version for version, _ in seen] == [scene, scene]
    assert all(isinstance(version, SceneGraph) for version, _ in seen)


def test_the_core_does_not_read_a_traced_scene_unnoticed() -> None:
    """A traced scene is no scene: functions that would read it untraced reject it."""
    with pytest.raises(TypeError):
        diff(TracedScene(tower(), {}), tower())  # type: ignore[arg-type]


def versions() -> Iterator[SceneGraph]:
    """Yield scenes that a planner would see."""
    scene = tk.load_scene("panda_table", "blocks3")
    yield scene
    yield scene.reparent("a", "panda_hand", pose=Pose([0, 0, 0.1]))


def test_the_checker_derives_in_full() -> None:
    """``PlanningDomain.state`` stores nothing: it calls the derivation for every version."""
    robot = tk.load_manipulator("panda")
    domain = load_planning_domain("blocks", robot=robot)
    first, second = versions()
    objects = domain.semantics.objects(first)
    q = robot.ready_configuration(first)
    assert domain.state(first, q) != domain.state(second, q)
    assert domain.state(second, q) == plain(domain, second, objects, q)


def test_what_is_noted_of_reads_does_not_grow_with_versions() -> None:
    """Objects that get classes, as those that are washed, stay in the groups in which they were."""
    scene = tk.load_scene("panda_table", "blocks3")
    robot = tk.load_manipulator("panda")
    domain = load_planning_domain("kitchen", robot=robot)
    q = robot.ready_configuration(scene)
    deriver = StateDeriver(domain, domain.semantics.objects(scene))
    versions = [scene.set_classes("a", ["movable", *more]) for more in ([], ["clean"], ["cooked"])]
    derived = deriver.derive(scene, q)
    sizes = []
    for _ in range(4):
        for version in versions:
            derived = deriver.derive(version, q, derived)
            assert derived.state == deriver.derive(version, q).state
        sizes.append(len(deriver._dependents.reads))
    assert len(set(sizes)) == 1
