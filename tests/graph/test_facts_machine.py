"""Facts, twists, joints and regrasps in random order against a dense model of plain matrices.

The model is the truth: where every frame is and how every body moves, at one configuration and its
velocities. What is said to the scene is true, so it must be accepted; what the scene answers must
be the truth. A pose that joins two trees between which nothing says how they move makes them one
rigid body, in the truth as well.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import pickle
import re
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.effort import scaled_examples

from tmkit.errors import SceneError
from tmkit.formats import scene_from_dict, scene_to_dict
from tmkit.graph import (
    Expression,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneGraph,
    add_fact,
    diff,
    is_rigid,
    observations,
    twist,
)
from tmkit.relations import (
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    TwistCoord,
)
from tmkit.relations.representations import RotationMatrix
from tmkit.spatial import Pose, adjoint

SEEDS = st.integers(0, 2**32 - 1)
Fact = SemanticPose | SemanticPosition | SemanticOrientation | SemanticTwist


@dataclass
class Truth:
    """Model: poses of frames, velocities (6,) of bodies at their origins, and connectivity."""

    body: dict[str, str] = field(default_factory=dict)
    place: dict[str, Pose] = field(default_factory=dict)
    velocity: dict[str, np.ndarray] = field(default_factory=dict)
    # of bodies, one of which is known to move by the other
    links: list[tuple[str, str]] = field(default_factory=list)

    def together(self, body: str) -> set[str]:
        """Return the bodies whose motion relative to a body is known, or follows."""
        reached = {body}
        while more := {
            b
            for pair in self.links
            for a, b in (pair, pair[::-1])
            if a in reached and b not in reached
        }:
            reached |= more
        return reached

    def join(self, frame: str, reference: str) -> None:
        """Make two bodies one rigid body, unless something says how they move."""
        a, b = self.body[frame], self.body[reference]
        group = self.together(a)
        if b not in group:
            change = self.velocity[b] - self.velocity[a]
            for body in group:
                self.velocity[body] = self.velocity[body] + change
        self.links.append((a, b))

    def relative(self, frame: str, reference: str) -> Pose:
        """Return reference_from_frame."""
        return self.place[reference].inverse() @ self.place[frame]

    def twist(self, frame: str, reference: str) -> np.ndarray:
        """Return the twist of a frame relative to another at its own origin, in its own axes."""
        return adjoint(self.place[frame].inverse()) @ (
            self.velocity[self.body[frame]] - self.velocity[self.body[reference]]
        )

    def fact(self, kind: str, frame: str, reference: str) -> Fact:
        """Return what is true of two frames."""
        names = self.body[frame], self.body[reference]
        pose = self.relative(frame, reference)
        if kind == "twist":
            coord = TwistCoord.from_names(
                point=frame, body=names[0], ref_body=names[1], coord=frame
            )
            return SemanticTwist(coord, self.twist(frame, reference))
        if kind == "position":
            at = PositionCoord.from_names(
                point=frame, body=names[0], ref_point=reference, ref_body=names[1], coord=reference
            )
            return SemanticPosition(at, pose.translation)
        if kind == "orientation":
            of = OrientationCoord.from_names(
                ori=frame, body=names[0], ref_ori=reference, ref_body=names[1], coord=reference
            )
            return SemanticOrientation(of, RotationMatrix(pose.rotation))
        return SemanticPose(
            PoseCoord(f"{{{frame}}}|{names[0]}", f"{{{reference}}}|{names[1]}", f"[{reference}]"),
            pose,
        )


def check(scene: SceneGraph, truth: Truth, q: np.ndarray, qd: np.ndarray) -> None:
    """Compare all answers with the truth."""
    assert scene._defects() == ""
    for frame in truth.place:
        for reference in truth.place:
            if scene.root(frame) != scene.root(reference):
                continue
            found, expected = (
                scene.pose(frame, relative_to=reference, q=q),
                truth.relative(frame, reference),
            )
            assert found.is_close(expected, translation_tolerance=1e-9, rotation_tolerance=1e-9), (
                frame,
                reference,
            )
            try:
                moving = twist(
                    scene,
                    frame,
                    relative_to=reference,
                    q=q,
                    qd=qd,
                    expression=Expression(at=frame, axes=frame),
                )
            except SemanticError:
                continue
            np.testing.assert_allclose(
                moving.representation.vector,
                truth.twist(frame, reference),
                atol=1e-9,
                err_msg=f"{frame}, {reference}",
            )


class Facts(RuleBasedStateMachine):
    """A world of a few bodies that are told of, moved by joints, and regrasped."""

    def __init__(self) -> None:
        super().__init__()
        self.scene, self.truth = SceneGraph(root=None), Truth()
        self.q, self.qd = np.zeros(0), np.zeros(0)

    def _new(self, frame: str, body: str, place: Pose) -> None:
        self.truth.body[frame], self.truth.place[frame] = body, place
        if body not in self.truth.velocity:
            still = self.rng.random() < 0.3
            self.truth.velocity[body] = np.zeros(6) if still else self.rng.normal(size=6)

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        """Make bodies with a frame or two, none of which is joined to another."""
        self.rng = np.random.default_rng(seed)
        for k in range(4):
            self.scene = self.scene.add_body(f"B{k}").add_root(f"f{k}", body=f"B{k}")
            self._new(f"f{k}", f"B{k}", Pose.exp(self.rng.normal(size=6)))
            kind = self.rng.random()
            if kind < 0.7:
                inside = Pose.exp(self.rng.normal(size=6))
                if kind < 0.5:
                    self.scene = self.scene.add_frame(f"g{k}", f"f{k}", pose=inside, body=f"B{k}")
                else:  # in a tree of its own, until a pose joins them
                    self.scene = self.scene.add_root(f"g{k}", body=f"B{k}")
                self._new(f"g{k}", f"B{k}", self.truth.place[f"f{k}"] @ inside)

    def _pick(self) -> str:
        return str(self.rng.choice(list(self.truth.place)))

    @rule(kind=st.sampled_from(["pose", "pose", "position", "orientation", "twist", "twist"]))
    def tell(self, kind: str) -> None:
        """Say something true."""
        frame, reference = self._pick(), self._pick()
        bodies = self.truth.body[frame], self.truth.body[reference]
        if bodies[0] == bodies[1] and (kind != "pose" or frame == reference):
            return
        if (
            kind == "twist"
            and bodies[1] not in self.truth.together(bodies[0])
            and self.rng.random() < 0.2
        ):
            change = self.truth.velocity[bodies[1]] - self.truth.velocity[bodies[0]]
            # it happens to stand still relative to the other
            for body in self.truth.together(bodies[0]):
                self.truth.velocity[body] = self.truth.velocity[body] + change
        fact = self.truth.fact(kind, frame, reference)
        try:
            made = add_fact(self.scene, fact, q=self.q)
        except SceneError as rejection:  # joints are above both ends
            assert self.q.size, rejection  # noqa: PT017 - one of two outcomes
            assert "cannot be joined there" in str(rejection), rejection  # noqa: PT017
            return
        if kind == "twist":
            self.truth.links.append(bodies)
        # edges that joined trees; what waited may have made more than one
        for name in self.truth.place:
            parent = made.parent(name)
            if parent is not None and self.scene.root(parent) != self.scene.root(name):
                self.truth.join(name, parent)
        self.scene = made

    def _in_two_trees(self) -> set[str]:
        """Return the bodies with frames in several trees."""
        roots = {(body, self.scene.root(name)) for name, body in self.truth.body.items()}
        bodies = [body for body, _ in roots]
        return {body for body in bodies if bodies.count(body) > 1}

    @precondition(lambda self: len(self.truth.place) < 10)
    @rule()
    def mount(self) -> None:
        """Attach a scene whose bodies have twists under a frame, also twice."""
        under, prefix = self._pick(), f"m{len(self.truth.place)}/"
        pose, part, other = Pose.exp(self.rng.normal(size=6)), Truth(), SceneGraph(root=None)
        at = self.truth.place[under] @ pose
        for k in range(int(self.rng.integers(1, 4))):
            other = other.add_body(f"B{k}").add_root(f"f{k}", body=f"B{k}")
            part.body[f"f{k}"], part.place[f"f{k}"], part.velocity[f"B{k}"] = (
                f"B{k}",
                at,
                self.rng.normal(size=6),
            )
        for a, b in self.rng.choice(list(part.place), (5, 2)):
            if a != b:
                other = add_fact(other, part.fact("twist", a, b))
                part.links.append((part.body[a], part.body[b]))
        self.scene = self.scene.mount(other, under, prefix=prefix, pose=pose)
        for frame, body in part.body.items():
            self.truth.body[prefix + frame], self.truth.place[prefix + frame] = prefix + body, at
            self.truth.velocity[prefix + body] = part.velocity[body]
        self.truth.links += [(prefix + a, prefix + b) for a, b in part.links]
        for frame in part.body:
            self.truth.join(prefix + frame, under)

    @precondition(lambda self: len(self.truth.place) < 10)
    @rule(is_told=st.booleans())
    def merge(self, *, is_told: bool) -> None:
        """Merge a scene with two frames of this one as roots and one more body."""
        root, other_root = self._pick(), self._pick()
        name, body, pose = (
            f"n{len(self.truth.place)}",
            self.truth.body[root],
            Pose.exp(self.rng.normal(size=6)),
        )
        other = SceneGraph(root=None)
        for frame in {root: 0, other_root: 0}:
            on = self.truth.body[frame]
            other = (other if on in other.body_names else other.add_body(on)).add_root(
                frame, body=on
            )
        other = other.add_frame(name, root, pose=pose)
        truth = copy.deepcopy(self.truth)
        truth.body[name], truth.place[name], truth.velocity[name] = (
            name,
            truth.place[root] @ pose,
            truth.velocity[body],
        )
        truth.links.append((name, body))
        if is_told:
            truth.velocity[name] = self.rng.normal(size=6)
            other = add_fact(other, truth.fact("twist", name, root))
        if truth.body[other_root] != body:
            other = add_fact(other, truth.fact("twist", name, other_root))
            truth.links.append((name, truth.body[other_root]))
            if self.rng.random() < 0.5:  # of a frame that is here
                other = add_fact(other, truth.fact("twist", root, other_root))
        self.scene, self.truth = self.scene.merge(other), truth

    @precondition(lambda self: len(self.truth.place) < 11)
    @rule(is_prismatic=st.booleans())
    def add_joint(self, *, is_prismatic: bool) -> None:
        """Hang a body on a joint."""
        parent, name, axis = self._pick(), f"j{len(self.truth.place)}", self.rng.normal(size=3)
        joint = Prismatic(axis) if is_prismatic else Revolute(axis)
        pose, value, speed = Pose.exp(self.rng.normal(size=6)), *self.rng.normal(size=2)
        self.scene = self.scene.add_frame(name, parent, pose=pose, joint=joint)
        self.q, self.qd = np.append(self.q, value), np.append(self.qd, speed)
        unit = axis / np.linalg.norm(axis)
        along = np.concatenate([unit, np.zeros(3)] if is_prismatic else [np.zeros(3), unit])
        place = self.truth.place[parent] @ pose @ Pose.exp(value * along)
        self._new(name, name, place)
        self.truth.velocity[name] = self.truth.velocity[self.truth.body[parent]] + adjoint(
            place
        ) @ (speed * along)
        self.truth.links.append((name, self.truth.body[parent]))

    @rule()
    def regrasp(self) -> None:
        """Reparent a frame to a holder; its descendants keep their relative motion."""
        frame, holder = self._pick(), self._pick()
        is_top = (
            self.scene.parent(frame) is not None
            and self.scene.body(str(self.scene.parent(frame))) != (self.truth.body[frame])
        )
        if (
            not is_top
            or self.scene.joint(frame).type != "fixed"
            or holder in self.scene.subtree(frame)
        ):
            return
        if self.scene.root(frame) != self.scene.root(holder) or self.scene.parent(frame) == holder:
            return
        arrays = SceneArrays(self.scene)
        try:
            made = self.scene.reparent(frame, holder, q=self.q)
        except SceneError as rejection:  # a body would have two paths
            with pytest.raises(SceneError, match=re.escape(str(rejection))):
                arrays.reparent(frame, holder, q=self.q)
            return
        arrays.reparent(frame, holder, q=self.q)
        assert arrays.freeze() == made
        carried = {self.truth.body[name] for name in made.subtree(frame) if name in self.truth.body}
        body, by = self.truth.body[frame], self.truth.body[holder]
        change = self.truth.velocity[by] - self.truth.velocity[body]
        if carried & self._in_two_trees():
            return  # what moves with their frames in other trees, nothing tells
        for head in made.twist_frames:  # no twist is left between what is carried and the rest
            edge = made.twist_edge(head)
            assert edge is not None
            assert (made.body(head) in carried) == (edge[0] in carried)
        if self._told(self.scene) - self._told(made) - {frame}:
            return  # edges that twists said the motion of would be rigid again
        links = [pair for pair in self.truth.links if (pair[0] in carried) == (pair[1] in carried)]
        for name in carried:
            self.truth.velocity[name] = self.truth.velocity[name] + change
        self.truth.links = [*links, (body, by)]
        self.scene = made

    def _told(self, scene: SceneGraph) -> set[str]:
        """Return the frames that do not move as one with their parents."""
        below = [f for f in scene.frame_names if scene.parent(f) is not None]
        return {
            f
            for f in below
            if not is_rigid(scene, f, str(scene.parent(f))) and scene.joint(f).type == "fixed"
        }

    @rule()
    def turn(self) -> None:
        """Another frame becomes the root."""
        try:
            self.scene = self.scene.make_root(self._pick())
        except SceneError as rejection:
            assert "joint" in str(rejection)  # noqa: PT017 - one of two outcomes

    @invariant()
    def answers_are_true(self) -> None:
        """Poses and twists are those of the model."""
        check(self.scene, self.truth, self.q, self.qd)

    @invariant()
    def versions_travel(self) -> None:
        """Pickles, files, arrays, differences and merges hold all of it."""
        scene = self.scene
        assert pickle.loads(pickle.dumps(scene)) == scene
        assert scene_from_dict(scene_to_dict(scene)) == scene
        assert SceneArrays(scene).freeze() == scene
        assert SceneGraph(root=None).merge(scene) == scene
        assert SceneGraph(root=None).apply(diff(SceneGraph(root=None), scene)) == scene
        joined = SceneGraph("top").merge(scene)
        arrays = SceneArrays(joined)
        for root in scene.root_names:
            pose = self.truth.place[root]
            try:
                joined = joined.attach(root, "top", pose=pose)
            except SceneError as rejection:
                # joints are between twists that are said twice, or a body has two paths
                is_double = rejection.data.get("rule") == "PE6" and self._in_two_trees()
                is_second = self.q.size and "would be the second between bodies" in str(rejection)
                assert is_double or is_second
                with pytest.raises(
                    SceneError, match="relative to body" if not is_double else "two paths"
                ):
                    arrays.attach(root, "top", pose=pose)
            else:
                arrays.attach(root, "top", pose=pose)
        assert arrays.freeze() == joined
        # all trees at one place, where their twists may contradict each other
        with contextlib.suppress(SceneError):
            mounted = SceneGraph("top").mount(scene, "top", prefix="p/")
            for a, b in itertools.product(self.truth.place, repeat=2):
                if scene.root(a) == scene.root(b):
                    there = mounted.pose(f"p/{a}", relative_to=f"p/{b}", q=self.q)
                    assert there.is_close(self.truth.relative(a, b))
            kept, seen = (
                [one.frame for one in observations(s) if one.kind != "twist"]
                for s in (mounted, scene)
            )
            assert kept == [f"p/{frame}" for frame in seen]


TestFacts = Facts.TestCase
TestFacts.settings = settings(
    max_examples=scaled_examples(0.5), stateful_step_count=25, deadline=None
)


@settings(max_examples=scaled_examples(1.0), deadline=None)
@given(SEEDS)
def test_the_order_of_true_facts_changes_no_answer(seed: int) -> None:
    """Poses, half poses and twists of one world: the same is answered in any order, and it is true.

    No two poses join the same trees: of these, the one that comes first makes the edge.
    """
    rng = np.random.default_rng(seed)
    scene, truth = SceneGraph(root=None), Truth()
    for k in range(int(rng.integers(3, 7))):
        body, place = f"B{k}", Pose.exp(rng.normal(size=6))
        scene = scene.add_body(body).add_root(f"f{k}", body=body)
        truth.body[f"f{k}"], truth.place[f"f{k}"] = body, place
        truth.velocity[body] = rng.normal(size=6) if rng.random() < 0.6 else np.zeros(6)
        if rng.random() < 0.3:
            scene = scene.add_frame(f"g{k}", f"f{k}", pose=Pose([0.1, 0.2, 0.3]), body=body)
            truth.body[f"g{k}"], truth.place[f"g{k}"] = body, place @ Pose([0.1, 0.2, 0.3])
    pairs = [
        [str(name) for name in rng.choice(list(truth.place), 2, replace=False)] for _ in range(16)
    ]
    pairs = [(a, b) for a, b in pairs if truth.body[a] != truth.body[b]]
    twists, poses = pairs[:7], list[tuple[str, str]]()
    truth.links = [(truth.body[a], truth.body[b]) for a, b in twists]
    joined = Truth()
    for a, b in pairs[7:]:
        if truth.body[b] not in joined.together(truth.body[a]):
            joined.links.append((truth.body[a], truth.body[b]))
            poses.append((a, b))
            truth.join(a, b)
    halves = rng.random(len(poses)) < 0.3
    facts = [truth.fact("twist", a, b) for a, b in twists]
    for (a, b), is_half in zip(poses, halves, strict=True):
        facts += [
            truth.fact(kind, a, b)
            for kind in (("position", "orientation") if is_half else ("pose",))
        ]
    found = []
    for order in (range(len(facts)), range(len(facts))[::-1], rng.permutation(len(facts))):
        made = scene
        for k in order:
            made = add_fact(made, facts[int(k)])
        check(made, truth, np.zeros(0), np.zeros(0))
        found.append(answered(made, list(truth.place)))
    assert found[0] == found[1] == found[2]


@settings(max_examples=scaled_examples(1.0), deadline=None)
@given(SEEDS)
def test_poses_that_others_imply_change_no_answer(seed: int) -> None:
    """Consistent poses are accepted in any order, also between joined trees and shared bodies.

    Bodies of which no twist tells how they move relative to each other are one rigid body where a
    pose joins them.
    """
    rng = np.random.default_rng(seed)
    scene, truth, told, facts = SceneGraph(root=None), Truth(), Truth(), list[Fact]()
    for k in range(int(rng.integers(3, 6))):
        body, place, inside = f"B{k}", Pose.exp(rng.normal(size=6)), Pose.exp(rng.normal(size=6))
        scene = scene.add_body(body).add_root(f"f{k}", body=body)
        truth.velocity[body] = rng.normal(size=6)
        truth.body |= {f"f{k}": body, f"g{k}": body}
        truth.place |= {f"f{k}": place, f"g{k}": place @ inside}
        if rng.random() < 0.4:  # in a tree of its own, until it is told where it is on its body
            scene = scene.add_root(f"g{k}", body=body)
            facts.append(truth.fact("pose", f"g{k}", f"f{k}"))
        else:
            scene = scene.add_frame(f"g{k}", f"f{k}", pose=inside, body=body)
    pairs = [
        [str(name) for name in rng.choice(list(truth.place), 2, replace=False)] for _ in range(16)
    ]
    pairs = [(a, b) for a, b in pairs if truth.body[a] != truth.body[b]]
    facts += [truth.fact("twist", a, b) for a, b in pairs[:4]]
    truth.links = [(truth.body[a], truth.body[b]) for a, b in pairs[:4]]
    told.links = list(truth.links)
    for a, b in pairs[4:]:
        bodies = truth.body[a], truth.body[b]
        if bodies[1] not in truth.together(bodies[0]):
            truth.join(a, b)
        elif bodies[1] not in told.together(bodies[0]) and np.any(
            truth.velocity[bodies[0]] != truth.velocity[bodies[1]]
        ):
            continue  # of one body it would be the second that it moves with
        facts.append(truth.fact("pose", a, b))
    found = []
    for _ in range(3):
        made = scene
        for k in rng.permutation(len(facts)):
            made = add_fact(made, facts[int(k)])
        check(made, truth, np.zeros(0), np.zeros(0))
        found.append(
            {
                pair
                for pair in itertools.product(truth.place, repeat=2)
                if len({*map(made.root, pair)}) == 1
            }
        )
    assert found[0] == found[1] == found[2]


def answered(scene: SceneGraph, frames: list[str]) -> set[tuple[str, ...]]:
    """Return the poses and twists that a scene determines."""
    known = set[tuple[str, ...]]()
    for a, b in itertools.product(frames, repeat=2):
        if scene.root(a) == scene.root(b):
            known.add(("pose", a, b))
        for at in frames:
            with contextlib.suppress(SemanticError):
                twist(scene, a, relative_to=b, expression=Expression(at=at, axes=at))
                known.add(("twist", a, b, at))
    return known
