"""The results of policies do not depend on the order of uncertain facts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.estimation import (
    ByTag,
    Fused,
    Latest,
    MinCovariance,
    pose_graph,
    resolve_observations,
    solve_pose_graph,
)
from tmkit.estimation.policies import ResolutionPolicy
from tmkit.graph import Evidence, FactPolicy, Fixed, SceneGraph, add_fact, observations, twist
from tmkit.relations import PoseCoord, SemanticError, SemanticPose
from tmkit.spatial import Pose

SEEDS = st.integers(0, 2**32 - 1)
POLICIES: list[ResolutionPolicy] = [
    Latest(),
    Latest("newest"),
    MinCovariance(),
    Fused(),
    ByTag("x"),
    ByTag("y", "x"),
]


def bodies_and_facts(
    rng: np.random.Generator,
) -> tuple[SceneGraph, dict[str, str], list[tuple[SemanticPose, dict[str, Any]]]]:
    """Return separate bodies of one or two frames, with sightings that connect all of them."""
    scene, body, place = SceneGraph(root=None), dict[str, str](), dict[str, Pose]()
    count = int(rng.integers(2, 5))
    for k in range(count):
        scene = scene.add_body(f"B{k}").add_root(f"f{k}", body=f"B{k}")
        body[f"f{k}"], place[f"f{k}"] = f"B{k}", Pose.exp(rng.normal(size=6))
        if rng.random() < 0.6:
            inside = Pose.exp(rng.normal(size=6))
            scene = scene.add_frame(f"g{k}", f"f{k}", pose=inside, body=f"B{k}")
            body[f"g{k}"], place[f"g{k}"] = f"B{k}", place[f"f{k}"] @ inside
    facts, together = list[tuple[SemanticPose, dict[str, Any]]](), [{f"B{k}"} for k in range(count)]
    while len(together) > 1 or len(facts) < count + 2:
        a, b = (str(name) for name in rng.choice(list(place), 2, replace=False))
        if body[a] == body[b]:
            continue
        parts = [part for part in together if part & {body[a], body[b]}]
        together = [*(part for part in together if part not in parts), set().union(*parts)]
        root = rng.normal(size=(6, 6)) * rng.uniform(0.5, 2) * 1e-3
        seen = place[b].inverse() @ place[a] @ Pose.exp(0.5 * root @ rng.normal(size=6))
        coord = PoseCoord(f"{{{a}}}|{body[a]}", f"{{{b}}}|{body[b]}", f"[{b}]")
        more = Evidence(
            covariance=root @ root.T + 1e-8 * np.eye(6),
            tags=[t for t in "xy" if rng.random() < 0.5],
            stamp=None if rng.random() < 0.2 else float(rng.integers(0, 50)),
        )
        facts.append((SemanticPose(coord, seen), more))
    return scene, body, facts


@settings(max_examples=scaled_examples(0.5), deadline=None)
@given(SEEDS)
def test_policies_do_not_see_the_order_of_facts(seed: int) -> None:
    """The first fact between two trees makes an edge, and is an observation like those after it."""
    rng = np.random.default_rng(seed)
    scene, body, facts = bodies_and_facts(rng)
    target, base = (str(name) for name in rng.choice(list(body), 2, replace=False))
    if body[target] == body[base]:
        return
    expected: dict[tuple[int, float | None], Any] = {}
    for order in (range(len(facts)), rng.permutation(len(facts)), rng.permutation(len(facts))):
        version = scene
        for k in order:
            fact, more = facts[int(k)]
            version = add_fact(version, fact, evidence=more, policy=FactPolicy(gate=1 - 1e-12))
        assert len(observations(version)) == len(facts)
        for index, policy in enumerate(POLICIES):
            for probability in (None, 0.997):
                answer = resolve_observations(
                    version, target, policy=policy, base=base, probability=probability
                )
                results = (
                    answer.scene.gaussian_pose(target, relative_to=base) if answer.used else None
                )
                before = expected.setdefault((index, probability), results)
                assert (results is None) == (before is None)
                if results is not None:
                    assert results.mean.is_close(
                        before.mean, translation_tolerance=1e-9, rotation_tolerance=1e-9
                    )
                    spread = np.abs(before.covariance).max()
                    np.testing.assert_allclose(
                        results.covariance, before.covariance, atol=1e-9 * spread, rtol=0
                    )


def tag_and_cup() -> tuple[SceneGraph, dict[str, str]]:
    """Return a camera, and a cup with a tag."""
    scene = SceneGraph("table").add_body("Camera").add_root("camera", body="Camera").add_body("Cup")
    scene = scene.add_root("cup", body="Cup").add_frame(
        "tag", "cup", pose=Pose([0.04, 0, 0.05]), body="Cup"
    )
    return scene, {"camera": "Camera", "cup": "Cup", "tag": "Cup", "table": "table"}


def sighting(frame: str, reference: str, pose: Pose, bodies: dict[str, str]) -> SemanticPose:
    """Return the pose of a frame relative to another."""
    return SemanticPose(
        PoseCoord(
            f"{{{frame}}}|{bodies[frame]}", f"{{{reference}}}|{bodies[reference]}", f"[{reference}]"
        ),
        pose,
    )


def test_a_tag_that_is_seen_twice_says_where_its_cup_is() -> None:
    """An observation applies to all frames of a rigid group; an edge is counted once."""
    scene, bodies = tag_and_cup()
    spread = 1e-6 * np.eye(6)
    for x, stamp in ((0.5, 2.0), (0.502, 1.0)):
        scene = add_fact(
            scene,
            sighting("tag", "camera", Pose([x, 0, 1]), bodies),
            evidence=Evidence(covariance=spread, stamp=stamp),
        )
    scene = add_fact(
        scene,
        sighting("camera", "cup", Pose([-0.464, 0, -0.95]), bodies),
        evidence=Evidence(covariance=spread, stamp=0.0),
    )
    for frame, offset in (("cup", 0.04), ("tag", 0.0)):
        latest, fused = (
            resolve_observations(scene, frame, policy=policy, base="camera")
            for policy in (Latest(), Fused())
        )
        assert len(fused.gate_results) == 3
        assert latest.scene.pose(frame, relative_to="camera").translation[0] == pytest.approx(
            0.5 - offset
        )
        fused_pose = fused.scene.gaussian_pose(frame, relative_to="camera")
        assert fused_pose.mean.translation[0] == pytest.approx(0.502 - offset, abs=3e-4)
        assert not observations(fused.scene)
    solved = solve_pose_graph(pose_graph(scene))
    assert len(solved.graph.factors) == 3
    assert solved.is_converged


def test_an_exact_fact_takes_the_place_of_an_uncertain_edge() -> None:
    """In either order, the exact pose is in the scene, and the observation is kept."""
    scene, bodies = tag_and_cup()
    exact = sighting("cup", "camera", Pose([0.5, 0, 1]), bodies)
    seen = sighting("tag", "camera", Pose([0.5405, 0, 1.05]), bodies)
    spread = 1e-6 * np.eye(6)
    first = add_fact(add_fact(scene, exact), seen, evidence=Evidence(covariance=spread))
    other = add_fact(add_fact(scene, seen, evidence=Evidence(covariance=spread)), exact)
    for version in (first, other):
        assert version.pose("cup", relative_to="camera").is_close(exact.pose)
        assert not version.gaussian_pose("tag", relative_to="camera").covariance.any()
        assert [str(look) for look in observations(version)] == ["'tag' seen from 'camera'"]


def test_what_was_seen_does_not_say_what_a_frame_moves_with() -> None:
    """A cup seen before it is fixed to a belt moves with the belt, and the look is kept."""
    scene, bodies = tag_and_cup()
    scene = scene.attach("camera", "table").add_frame("belt", "table", pose=Pose([0.3, 0, 1]))
    scene = scene.set_twist("belt", [0, 0.2, 0, 0, 0, 0], relative_to_body="table")
    bodies["belt"] = "belt"
    on_belt = sighting("cup", "belt", Pose([0.2, 0, 0]), bodies)
    look = sighting("tag", "camera", Pose([0.5405, 0, 1.05]), bodies)
    for facts in ((look, on_belt), (on_belt, look)):
        version = scene
        for fact in facts:
            version = add_fact(
                version,
                fact,
                evidence=Evidence(covariance=1e-6 * np.eye(6) if fact is look else None),
            )
        with pytest.raises(SemanticError, match="between 'cup' and its parent 'belt' is unknown"):
            twist(version, "cup", relative_to="camera")
        fixed = version.set_joint("cup", Fixed())
        assert twist(fixed, "cup", relative_to="camera").numbers[0].tolist() == [0, 0.2, 0]
        assert version.pose("cup", relative_to="table").translation.tolist() == pytest.approx(
            [0.5, 0, 1]
        )
        assert len(observations(version)) == 1
