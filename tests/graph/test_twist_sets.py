"""Sets of twist edges are accepted or rejected in any order, and survive copies.

The model is a plain reading of the rules of ``docs/reference/scene_edge_rules.md``, of all edges at
once. No accepted scene answers in two ways: angular velocities that it gives add up.
"""

from __future__ import annotations

import functools
import itertools
import pickle
import random
from collections.abc import Iterable
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from support.effort import scaled_examples
from support.twist_rules import unambiguous

from tmkit import Pose, Revolute, SceneArrays, SceneGraph
from tmkit.errors import SceneError, TmkitError
from tmkit.formats import scene_from_dict, scene_to_dict
from tmkit.graph import diff, relate
from tmkit.relations import AngularVelocityCoord, SemanticError

BODIES = {f"f{i}": "ABCD"[i % 4] for i in range(8)}
FRAMES = sorted(BODIES)

KINDS = ["twist", "attach", "reparent", "keep", "root", "add", "remove", "untwist"] * 2
KINDS += [
    "unsure",
    "move",
    "joint",
    "body",
    "rename",
    "mount",
    "covariance",
    "stamp",
    "group",
    "allow",
    "remove body",
]

Edge = tuple[str, str, str]  # kind, frame, and its parent or its reference body


def bare_scene() -> SceneGraph:
    """Return eight frames on four bodies, each a tree of its own."""
    scene = SceneGraph(root=None)
    for frame in FRAMES:
        body = BODIES[frame]
        scene = (scene if body in scene.body_names else scene.add_body(body)).add_frame(
            frame, body=body
        )
    return scene


def number(edge: Edge) -> np.ndarray:
    """Return numbers for an edge that depend on the edge alone and agree with no sum of others."""
    return np.array([random.Random(repr(edge) + str(i)).uniform(-1, 1) for i in range(6)])


def added(scene: SceneGraph, edge: Edge) -> SceneGraph:
    """Return the scene with an edge of poses or of twists."""
    kind, frame, to = edge
    if kind == "pose":
        return scene.attach(frame, to, pose=Pose(number(edge)[:3]))
    return scene.set_twist(frame, number(edge), relative_to_body=to)


# --- the rules, of all edges at once


def acceptable(edges: Iterable[Edge]) -> bool:
    """Whether a set of edges makes a scene."""
    parent: dict[str, str] = {}
    twists: dict[str, str] = {}
    for kind, frame, to in edges:
        known = parent if kind == "pose" else twists
        if known.setdefault(frame, to) != to:
            return False

    def root(frame: str) -> str:
        return root(parent[frame]) if frame in parent else frame

    try:
        trees = {frame: root(frame) for frame in FRAMES}
    except RecursionError:  # a cycle
        return False
    for tree, body in itertools.product(set(trees.values()), "ABCD"):
        on = [f for f in FRAMES if BODIES[f] == body and trees[f] == tree]
        if sum(1 for f in on if f not in parent or BODIES[parent[f]] != body) > 1:  # PE6
            return False
    return unambiguous(BODIES, trees, twists)


# --- what must hold of every scene


def answers(scene: SceneGraph, axes: str) -> dict[tuple[str, str], np.ndarray]:
    """Return all angular velocities between two bodies, in the axes of a frame."""
    known = {}
    for body, reference in itertools.permutations(scene.body_names, 2):
        try:
            known[body, reference] = relate(
                scene, AngularVelocityCoord(body, reference, f"[{axes}]")
            ).numbers[0]
        except (SemanticError, TmkitError):
            continue
    return known


def check_answers_add_up(scene: SceneGraph) -> None:
    """What a scene gives of three bodies chains."""
    for axes in {scene.root(frame) for frame in scene.frame_names}:
        known = answers(scene, axes)
        for (c, d), (e, a) in itertools.product(known, known):
            if d == e and (c, a) in known:
                np.testing.assert_allclose(known[c, d] + known[d, a], known[c, a], atol=1e-9)


def rebuilt(scene: SceneGraph) -> dict[str, SceneGraph]:
    """Return a scene made anew in every way there is."""
    empty = SceneGraph(root=None)
    return {
        "pickle": pickle.loads(pickle.dumps(scene)),
        "JSON": scene_from_dict(scene_to_dict(scene)),
        "from_frames": with_groups(scene, from_frames(scene, list(scene.frame_names))),
        "arrays": SceneArrays(scene).freeze(),
        "merge": empty.merge(scene),
        "difference": empty.apply(diff(empty, scene)),
    }


def from_frames(scene: SceneGraph, order: list[str]) -> SceneGraph:
    """Return a scene made of its frames, without its groups."""
    frames = [scene.specification(name) for name in order]
    return SceneGraph.from_frames(
        frames, allowed=scene.allowed_pairs, bodies_without_frames=scene.bodies_without_frames
    )


def with_groups(scene: SceneGraph, copy: SceneGraph) -> SceneGraph:
    """Return a copy with the groups of the scene."""
    for name in scene.group_names:
        copy = copy.set_group(name, frames=scene.group(name).frames)
    return copy


def check_copies(scene: SceneGraph) -> None:
    """Every copy equals the scene, and frames in another order are accepted."""
    for way, copy in rebuilt(scene).items():
        assert copy._defects() == "", way  # type: ignore[attr-defined]
        assert copy == scene, way
        assert not diff(scene, copy), way
        assert not diff(copy, scene), way
    backwards = from_frames(scene, list(scene.frame_names)[::-1])
    assert {f: backwards.twist_edge(f) is None for f in scene.frame_names} == {
        f: scene.twist_edge(f) is None for f in scene.frame_names
    }


# --- orders

_frames = st.sampled_from(FRAMES)
EDGES = st.lists(
    st.one_of(
        st.tuples(st.just("pose"), _frames, _frames),
        st.tuples(st.just("twist"), _frames, st.sampled_from("ABCD")),
    ).filter(lambda edge: edge[1] != edge[2]),
    max_size=9,
    unique_by=lambda edge: edge[:2],
)


@settings(max_examples=scaled_examples(2))
@given(EDGES, st.randoms(use_true_random=False))
def test_the_order_of_edges_does_not_matter(edges: list[Edge], shuffled: random.Random) -> None:
    """A set of edges is accepted in every order or in none, as the model predicts."""
    expected = acceptable(edges)
    orders = [edges, edges[::-1], *(shuffled.sample(edges, len(edges)) for _ in range(4))]
    made = []
    for order in orders:
        scene, arrays = bare_scene(), SceneArrays(bare_scene())
        try:
            for edge in order:
                scene = added(scene, edge)
                check_rejected_alike(arrays, edge, None)
            made.append(scene)
            assert arrays.freeze() == scene
        except SceneError as rejection:
            check_rejected_alike(arrays, edge, rejection)
    assert len(made) == (len(orders) if expected else 0)
    for scene in made[:1]:
        check_answers_add_up(scene)
    for scene in made[1:]:
        assert scene == made[0]


def check_rejected_alike(arrays: SceneArrays, edge: Edge, rejection: SceneError | None) -> None:
    """Add an edge to arrays, which reject it as the scene does."""
    kind, frame, to = edge
    expected = nullcontext() if rejection is None else pytest.raises(SceneError)
    with expected as caught:
        if kind == "pose":
            arrays.attach(frame, to, pose=Pose(number(edge)[:3]))
        else:
            arrays.set_twist(frame, number(edge), relative_to_body=to)
    if caught is not None:
        rule = caught.value.data.get("rule")
        assert rule == rejection.data.get("rule")  # type: ignore[union-attr]
        # of several bodies, another may be named
        assert rule == "PE6" or str(caught.value) == str(rejection)


def test_two_ways_between_bodies_are_rejected_in_every_order() -> None:
    """C moves relative to A directly, and by D with another result."""
    edges: list[Edge] = [
        ("twist", "f2", "A"),
        ("twist", "f6", "D"),
        ("twist", "f3", "A"),
        ("pose", "f6", "f2"),
    ]
    for joined in ([], [("pose", "f3", "f0"), ("pose", "f2", "f3")]):
        for order in itertools.permutations([*edges, *joined]):
            with pytest.raises(SceneError, match=r"would be the second|, make \[") as caught:
                functools.reduce(added, order, bare_scene())
            assert caught.value.data["rule"] in ("TE4", "TE6")


def test_the_error_of_a_second_path_names_the_repair() -> None:
    """Two bodies move relative to two others, which closes a loop."""
    scene = bare_scene()
    for edge in [("pose", "f4", "f0"), ("pose", "f1", "f4"), ("pose", "f5", "f1")]:
        scene = added(scene, edge)
    for frame, reference in (("f0", "C"), ("f4", "D"), ("f1", "C")):
        scene = scene.set_twist(frame, np.ones(6), relative_to_body=reference)
    message = (
        "twist of frame 'f5' relative to body 'D' would be the second between bodies 'B' and"
        " 'D'.*remove_twist"
    )
    for variant in (scene, SceneArrays(scene)):
        with pytest.raises(SceneError, match=message) as caught:
            variant.set_twist("f5", np.ones(6), relative_to_body="D")
        assert caught.value.data["rule"] == "TE6"


# --- every scene in every form


class TwistScenes(RuleBasedStateMachine):
    """After each random edit all copies of the scene are compared."""

    scenes = Bundle("scenes")

    @initialize(target=scenes)
    def start(self) -> SceneGraph:
        """Begin with frames that nothing joins; all versions are kept and may be gone on with."""
        self.last = bare_scene()
        self.seen = [self.last]
        return self.last

    @rule(target=scenes, scene=scenes, data=st.data())
    def edit(self, scene: SceneGraph, data: st.DataObject) -> SceneGraph:
        """One edit of any kind, on any version."""
        kind = data.draw(st.sampled_from(KINDS))
        frames = list(scene.frame_names)
        frame, other = (data.draw(st.sampled_from(frames)) for _ in range(2))
        bodies = [scene.body(name) for name in frames] + ["bare"]
        body, new = data.draw(st.sampled_from(bodies)), f"n{data.draw(st.integers(0, 30))}"
        numbers = number((kind, frame, str(data.draw(st.integers(0, 2)))))
        try:
            match kind:
                case "twist":
                    made = scene.set_twist(frame, numbers, relative_to_body=body)
                case "unsure":
                    made = scene.set_twist(
                        frame, numbers, relative_to_body=body, covariance=np.diag(numbers**2)
                    )
                case "untwist":
                    made = scene.remove_twist(frame)
                case "attach":
                    made = scene.attach(frame, other, pose=Pose(numbers[:3]))
                case "reparent":
                    made = scene.reparent(frame, other, pose=Pose(numbers[:3]))
                case "keep":
                    made = scene.reparent(frame, other)
                case "move":
                    made = scene.set_pose(frame, Pose(numbers[:3]))
                case "joint":
                    made = scene.set_joint(frame, Revolute([0, 0, 1], name=new))
                case "root":
                    made = scene.add_root(new)
                case "add":
                    on = data.draw(st.sampled_from([None, body]))
                    made = scene.add_frame(new, frame, pose=Pose(numbers[:3]), body=on)
                case "body":
                    made = scene.add_body(data.draw(st.sampled_from(["bare", new])))
                case "remove body":
                    made = scene.remove_body(body)
                case "remove":
                    made = scene.remove_frame(frame, subtree=data.draw(st.booleans()))
                case "rename":
                    made = scene.rename_frame(frame, new)
                case "mount":
                    made = scene.mount(self.seen[0], frame, prefix=f"{new}/")
                case "covariance":
                    made = scene.set_covariance(frame, np.diag(numbers**2))
                case "stamp":
                    made = scene.add_stamped_pose(
                        frame, Pose(numbers[:3]), stamp=float(data.draw(st.integers(0, 5)))
                    )
                case "group":
                    made = scene.set_group("g", frames=[frame, other])
                case _:
                    made = scene.allow_collision(frame, other, reason=new)
        except TmkitError:
            return scene
        self.last = made
        return made

    @rule(a=scenes, b=scenes)
    def compare(self, a: SceneGraph, b: SceneGraph) -> None:
        """A difference is empty exactly if two versions are equal, and reproduces the other."""
        assert bool(diff(a, b)) == (a != b)
        made = a.apply(diff(a, b))
        assert made == b
        assert not diff(made, b)

    @invariant()
    def copies_are_equal(self) -> None:
        """The newest version in every form."""
        if hasattr(self, "last") and self.last is not self.seen[-1]:
            self.seen = [self.seen[0], self.last]
            assert self.last._defects() == ""  # type: ignore[attr-defined]
            check_answers_add_up(self.last)
            check_copies(self.last)


TestTwistScenes = TwistScenes.TestCase
TestTwistScenes.settings = settings(
    max_examples=scaled_examples(0.6), stateful_step_count=25, deadline=None
)
