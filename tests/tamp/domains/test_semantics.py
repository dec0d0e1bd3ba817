"""Base class of domain semantics: required methods, and results of the defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY

import tmkit as tk
from tmkit._support.data import data_path
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate
from tmkit.pddl import Fact, GroundAction, State
from tmkit.plans import ObjectAt
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp import DomainSemantics, load_planning_domain
from tmkit.tamp.domains.semantics import pddl_name

BUILT_IN = sorted(
    path.name for path in Path(data_path("domains")).iterdir() if (path / "semantics.py").exists()
)


class Least(DomainSemantics):
    """A semantics with the required methods only: objects, with their parents."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the movable frames, and a camera that has no frame."""
        return {
            **{pddl_name(frame): "object" for frame in movable_frames(scene)},
            "camera": "sensor",
        }

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: np.ndarray) -> State:
        """Return the parent of each object, and that there is a camera."""
        del objects, q
        parents = (
            Fact.of("on", pddl_name(frame), str(scene.parent(frame)))
            for frame in movable_frames(scene)
        )
        return State([*parents, Fact.of("calibrated", "camera")])

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield none."""
        del action, context
        return iter(())


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_domains_derive_from_the_base_class(name: str) -> None:
    """A built-in domain is loaded for its arm; also one for a mobile base."""
    arm = tk.load_manipulator("panda")
    extra_robots = (tk.load_manipulator("panda_base"),) if name == "mobile_manipulation" else ()
    semantics = load_planning_domain(name, robot=(arm, *extra_robots)).semantics
    assert isinstance(semantics, DomainSemantics)
    assert semantics.robot is arm


def test_three_methods_are_required() -> None:
    """The base class alone, or with some of them, cannot be constructed."""
    assert DomainSemantics.__abstractmethods__ == {"objects", "state", "candidates"}
    with pytest.raises(TypeError, match="abstract"):
        DomainSemantics(GANTRY)  # type: ignore[abstract]


def test_defaults() -> None:
    """All objects are useful; nothing is probabilistic or proven; states are derived in full."""
    scene, semantics = blocks_scene({"a": (0, 0), "b": (0.2, 0)}, table=0.4), Least(GANTRY)
    q = scene.zero_configuration()
    assert semantics.relevant_objects(scene, q) == {"a", "b", "camera"}
    assert list(semantics.infeasibilities([Fact.of("on", "a", "b")], scene)) == []
    assert (
        semantics.continuous_goal_facts(ObjectAt("a", Pose(), relative_to="table"), scene, q)
        is None
    )
    assert (semantics.probabilistic_predicates, semantics.is_incremental) == (frozenset(), False)
    assert (
        semantics.explain_false_fact(Fact.of("on", "a", "b"), scene, q)
        == "(on a b) is not probable enough"
    )


def test_by_default_a_goal_scene_shows_the_facts_of_stated_objects() -> None:
    """Facts that hold without the stated object as well, as that of the camera, are no goal."""
    scene, semantics = blocks_scene({"a": (0, 0), "b": (0.2, 0)}, table=0.4), Least(GANTRY)
    stacked = scene.reparent("a", "b", pose=Pose([0.0, 0.0, 0.05]))
    objects = semantics.objects(scene)
    assert [str(fact) for fact in semantics.goal_facts(stacked, objects, ["a"])] == ["(on a b)"]
    assert list(semantics.goal_facts(stacked, objects, [])) == []


def test_by_default_conflict_facts_are_those_about_the_frames_and_what_they_are_on() -> None:
    """Frames are compared by their PDDL names, and so are the supports of objects."""
    scene = blocks_scene({"a": (0, 0), "b": (0.2, 0)}, table=0.4)
    stacked = scene.reparent("a", "b", pose=Pose([0.0, 0.0, 0.05]))
    semantics = Least(GANTRY)
    state = semantics.state(stacked, {}, stacked.zero_configuration())
    facts = semantics.conflict_facts(frozenset({"A", "hand"}), state, stacked)
    assert list(map(str, facts)) == ["(on a b)", "(on b table)"]
    assert list(map(str, semantics.conflict_facts(frozenset({"b"}), state, stacked))) == [
        "(on b table)"
    ]
