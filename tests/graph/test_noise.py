"""Covariances in the scene graph: queries, and correlations through structural edits."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support import noise_model as model
from support.effort import scaled_examples

from tmkit import (
    Box,
    Fixed,
    Free,
    GaussianPose,
    Measurement,
    Mimic,
    NoiseSource,
    Pose,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneGraph,
)
from tmkit._core import EdgeNoise, sample_poses
from tmkit.errors import ConfigurationError, DisconnectedError, SceneError, UnknownNameError
from tmkit.estimation import pose_graph, solve_pose_graph, write_back
from tmkit.formats.json.scene import scene_from_dict, scene_to_dict
from tmkit.graph import (
    AttachedShape,
    Evidence,
    add_observation,
    collapse_fixed_frames,
    contributions,
    diff,
    joint_gaussian,
)

SEEDS = st.integers(0, 2**32 - 1)


def close(a: np.ndarray, b: np.ndarray, *, tolerance: float = 1e-11) -> bool:
    """Return whether two covariances agree, relative to the larger of both."""
    scale = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= tolerance * scale + 1e-24)


@settings(max_examples=scaled_examples(0.6))
@given(SEEDS)
def test_queries_say_what_dense_matrices_say(seed: int) -> None:
    """Poses, covariances and contributions equal those of a plain model, also when reparented."""
    random = np.random.default_rng(seed)
    scene = model.random_tree(random, 12)
    for _ in range(4):
        a, b, c, d = (f"f{number}" for number in random.choice(12, size=4, replace=False))
        answer = scene.gaussian_pose(a, relative_to=b)
        assert answer.mean == scene.pose(a, relative_to=b)
        assert close(answer.covariance, model.covariance(scene, a, b))
        assert close(scene.gaussian_pose(b, relative_to=a).covariance, answer.inverse().covariance)
        means, joint = joint_gaussian(scene, [(a, b), (c, d), (a, "world")])
        assert means == (
            scene.pose(a, relative_to=b),
            scene.pose(c, relative_to=d),
            scene.pose(a, relative_to="world"),
        )
        assert close(joint, model.joint_covariance(scene, [(a, b), (c, d), (a, "world")]))
        shares = contributions(scene, a, relative_to=b)
        assert close(sum((share for _, share in shares), start=np.zeros((6, 6))), answer.covariance)
        assert len({source for source, _ in shares}) == len(shares)
        if a not in scene.ancestors(b):
            scene = scene.reparent(a, b)


@settings(max_examples=scaled_examples(0.6))
@given(SEEDS)
def test_reparenting_keeps_every_distribution(seed: int) -> None:
    """Reparenting preserves the joint distribution of relative poses to first order."""
    random = np.random.default_rng(seed)
    scene = model.random_tree(random, 10)
    pairs = [(f"f{a}", f"f{b}") for a, b in random.integers(0, 10, size=(5, 2)) if a != b]
    before = joint_gaussian(scene, pairs)[1]
    moved = scene
    for _ in range(5):
        a, b = (f"f{number}" for number in random.choice(10, size=2, replace=False))
        if a not in moved.ancestors(b):
            moved = moved.reparent(a, b)
    assert close(joint_gaussian(moved, pairs)[1], before, tolerance=1e-9)
    assert np.array_equal(joint_gaussian(scene, pairs)[1], before)


@settings(max_examples=scaled_examples(0.4))
@given(SEEDS)
def test_a_scene_is_the_same_after_every_way_out_and_in(seed: int) -> None:
    """Pickle, JSON, specifications and differences preserve the correlations."""
    random = np.random.default_rng(seed)
    start = model.random_tree(random, 8)
    free = [
        frame for frame in start.frame_names[1:] if "f7" not in (frame, *start.ancestors(frame))
    ]
    scene = start.reparent("f7", free[int(random.integers(len(free)))]) if free else start
    twins = [
        pickle.loads(pickle.dumps(scene)),
        scene_from_dict(scene_to_dict(scene)),
        SceneGraph.from_frames([scene.specification(name) for name in scene.frame_names]),
        start.apply(diff(start, scene)),
    ]
    for twin in twins:
        assert twin == scene
        assert twin.digest() == scene.digest()
        assert np.array_equal(
            twin.gaussian_pose("f7", relative_to="world").covariance,
            scene.gaussian_pose("f7", relative_to="world").covariance,
        )
    assert scene.apply(diff(scene, start)) == start
    assert scene == scene.reparent("f7", str(scene.parent("f7")))


def test_correlations_are_content() -> None:
    """Scenes with equal covariances but different shared sources are different."""
    source = NoiseSource(1, "thermal")
    bend = np.array([[0, 0, 0, 0, 1e-3, 0]]).T
    base = SceneGraph().add_frame("a", "world").add_frame("b", "a")
    together = base.set_noise("a", {source: bend}).set_noise("b", {source: bend})
    apart = base.set_noise("a", {source: bend}).set_noise("b", {NoiseSource(1): bend})
    renamed = base.set_noise("a", {(twin := NoiseSource(1, "heat")): bend}).set_noise(
        "b", {twin: bend}
    )
    assert together != apart
    assert together.digest() != apart.digest()
    assert together == renamed
    assert together.digest() == renamed.digest()
    assert together.gaussian_pose("b", relative_to="world").covariance[4, 4] == pytest.approx(4e-6)
    assert apart.gaussian_pose("b", relative_to="world").covariance[4, 4] == pytest.approx(2e-6)


def test_what_cancels_cancels() -> None:
    """A picked cup has the error of the arm; relative to the hand its error is unchanged."""
    scene = (
        SceneGraph()
        .add_frame("table", "world")
        .add_frame("cup", "table", pose=GaussianPose(Pose([0.5, 0, 0.1]), np.diag([1e-6] * 6)))
        .add_frame("shoulder", "world", pose=Pose([0, 0, 0.5]))
        .add_frame(
            "elbow",
            "shoulder",
            pose=GaussianPose(Pose([0.2, 0, 0]), np.diag([1e-5] * 6)),
            joint=Revolute([0, 1, 0]),
        )
        .add_frame("hand", "elbow", pose=GaussianPose(Pose([0.3, 0, -0.3]), np.diag([1e-4] * 6)))
    )
    q = [0.3]
    before = scene.gaussian_pose("cup", relative_to="table").covariance
    held = scene.reparent("cup", "hand", q=q)
    assert held.noise("cup") is not None
    assert close(
        held.gaussian_pose("cup", relative_to="table", q=q).covariance, before, tolerance=1e-12
    )
    assert scene.gaussian_pose("cup", relative_to="hand", q=q).covariance.trace() == pytest.approx(
        held.edge_covariance("cup").trace()
    )
    naive = held.set_covariance("cup", held.edge_covariance("cup"))
    assert (
        naive.gaussian_pose("cup", relative_to="table", q=q).covariance.trace()
        > 100 * before.trace()
    )
    slipped = scene.reparent("cup", "hand", q=q, covariance=np.diag([1e-6, 0, 0, 0, 0, 0]))
    assert np.trace(
        slipped.gaussian_pose("cup", relative_to="table", q=q).covariance - before
    ) == pytest.approx(1e-6, rel=1e-6)


def test_a_pose_that_is_given_is_what_is_known() -> None:
    """Reparenting to a given pose replaces the error by the given covariance."""
    scene = (
        SceneGraph()
        .add_frame("hand", "world")
        .add_frame("cup", "world", pose=GaussianPose(covariance=np.eye(6)))
    )
    assert scene.reparent("cup", "hand", pose=Pose([0, 0, 1])).noise("cup") is None
    placed = scene.reparent("cup", "hand", pose=Pose([0, 0, 1]), covariance=1e-4 * np.eye(6))
    assert np.array_equal(placed.edge_covariance("cup"), 1e-4 * np.eye(6))
    assert np.array_equal(scene.set_pose("cup", Pose([1, 0, 0])).edge_covariance("cup"), np.eye(6))
    assert scene.set_covariance("cup", None).noisy_frames == ()
    assert scene.set_covariance("cup", np.zeros((6, 6))).noise("cup") is None
    assert scene.noisy_frames == ("cup",)


def test_joint_values_that_are_not_sure() -> None:
    """An encoder's error moves all frames behind the joint and its mimics by the Jacobian."""
    scene = (
        SceneGraph()
        .add_frame("upper", "world", pose=Pose([0, 0, 1]), joint=Revolute([0, 1, 0], name="a"))
        .add_frame(
            "lower",
            "upper",
            pose=Pose([0.4, 0, 0]),
            joint=Revolute([0, 0, 1], name="b", mimic=Mimic("a", multiplier=-2)),
        )
        .add_frame("slide", "lower", pose=Pose([0.3, 0, 0.1]), joint=Prismatic([1, 0, 0], name="c"))
        .add_frame("tip", "slide", pose=Pose.exp([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
        .add_joint_noise("a", 1e-4)
        .add_joint_noise("c", 4e-6)
    )
    q = np.array([0.7, 0.05])
    answer = scene.gaussian_pose("tip", relative_to="world", q=q)
    at = scene.at(q)
    jacobian = at.jacobian("tip", axes="tip")
    assert close(answer.covariance, jacobian @ np.diag([1e-4, 4e-6]) @ jacobian.T)
    with pytest.raises(
        SceneError, match="joint 'b' mimics joint 'a': set the variance of that joint"
    ):
        scene.add_joint_noise("b", 1.0)
    with pytest.raises(
        SceneError,
        match="the variance of joint 'a' must be a finite number and not negative, not -1",
    ):
        scene.add_joint_noise("a", -1.0)
    with pytest.raises(UnknownNameError, match="unknown joint 'aa'"):
        scene.add_joint_noise("aa", 1.0)


@pytest.mark.parametrize("reparented", [False, True])
def test_samples_have_the_covariance(reparented: bool) -> None:
    """Sampled poses have the covariance of first order (floor sqrt(42 / n), about 1.5 %)."""
    random = np.random.default_rng(5)
    scene = model.random_tree(random, 12, scale=0.3)
    scene = (
        scene.reparent("f2", "f11") if reparented and "f2" not in scene.ancestors("f11") else scene
    )
    target, reference = "f10", "f4"
    poses = sample_poses(scene, target, relative_to=reference, count=20_000, seed=3)
    assert np.array_equal(
        poses, sample_poses(scene, target, relative_to=reference, count=20_000, seed=3)
    )
    assert not np.array_equal(
        poses, sample_poses(scene, target, relative_to=reference, count=20_000, seed=4)
    )
    xi = model.errors(scene.pose(target, relative_to=reference), poses)
    expected = scene.gaussian_pose(target, relative_to=reference).covariance
    assert np.linalg.norm(xi.T @ xi / len(xi) - expected) < 0.04 * np.linalg.norm(expected)


def test_copies_of_a_scene_have_errors_of_their_own() -> None:
    """A template mounted twice has two independent sets of errors."""
    source = NoiseSource(1, "press")
    part = SceneGraph().add_frame("plate", "world").add_frame("hole", "plate")
    part = part.set_noise("plate", {source: np.eye(6)[:, :1]}).set_noise(
        "hole", {source: np.eye(6)[:, :1]}
    )
    both = SceneGraph().mount(part, "world", prefix="left/").mount(part, "world", prefix="right/")
    assert both.gaussian_pose("left/hole", relative_to="world").covariance[0, 0] == pytest.approx(
        4.0
    )
    assert both.gaussian_pose("left/hole", relative_to="right/hole").covariance[
        0, 0
    ] == pytest.approx(8.0)
    assert both.noise("left/hole").sources[0].label == "left/press"  # type: ignore[union-attr]
    assert both.extract("left/plate").noise("left/plate") is None


def test_folding_keeps_what_is_known() -> None:
    """A chain of fixed uncertain frames collapses to one edge with all errors."""
    random = np.random.default_rng(8)
    scene = SceneGraph().add_frame(
        "base",
        "world",
        classes=["robot"],
        pose=GaussianPose(covariance=model.random_covariance(random)),
    )
    for frame, parent in (
        ("mount", "base"),
        ("flange", "mount"),
        ("camera", "flange"),
        ("left", "flange"),
        ("arm", "flange"),
    ):
        joint = Revolute([0, 0, 1]) if frame == "arm" else Fixed()
        pose = Pose.exp(0.3 * random.normal(size=6))
        scene = scene.add_frame(
            frame, parent, pose=GaussianPose(pose, model.random_covariance(random)), joint=joint
        )
    scene = scene.reparent("left", "camera")
    folded = collapse_fixed_frames(scene, keep=["camera", "left"])
    assert folded.frame_names == ("world", "base", "flange", "camera", "left", "arm")
    still = collapse_fixed_frames(scene.remove_frame("arm"), keep=["camera", "left"])
    assert still.frame_names == ("world", "base", "camera", "left")
    pairs = [("camera", "world"), ("left", "base"), ("left", "camera")]
    assert close(joint_gaussian(still, pairs)[1], joint_gaussian(scene, pairs)[1])


def test_an_uncertain_chain_of_fixed_frames_below_an_arm_folds_into_one_frame() -> None:
    """The last frame of a chain keeps the errors in front of a joint."""
    random = np.random.default_rng(15)
    scene, parent = SceneGraph(), "world"
    for number in range(7):
        error = model.random_covariance(random)
        scene = scene.add_frame(
            f"f{number}", parent, pose=GaussianPose(Pose.exp(random.normal(size=6)), error)
        )
        parent = f"f{number}"
    error = model.random_covariance(random)
    scene = scene.add_frame(
        "arm",
        parent,
        pose=GaussianPose(Pose.exp(random.normal(size=6)), error),
        joint=Revolute([0, 0, 1]),
    )
    folded = collapse_fixed_frames(scene)
    assert folded.frame_names == ("world", "f6", "arm")
    assert folded.noise("f6").sources == tuple(scene.noise(f"f{k}").sources[0] for k in range(7))  # type: ignore[union-attr]
    for value in (-2.0, 0.0, 0.7):
        before, after = (
            each.gaussian_pose("arm", relative_to="world", q=[value]) for each in (scene, folded)
        )
        assert close(before.covariance, after.covariance)
    solid = scene.set_shapes("f3", [AttachedShape(Box([1, 1, 1]))])
    assert collapse_fixed_frames(solid).frame_names == ("world", "f3", "f6", "arm")
    assert collapse_fixed_frames(solid).shapes("f3") == solid.shapes("f3")


def test_shapes_behind_a_folded_error_stay_uncertain() -> None:
    """A shape below an uncertain frame is not moved to the frame above."""
    scene = (
        SceneGraph()
        .add_frame("mount", "world", pose=GaussianPose(covariance=np.eye(6)))
        .add_frame("part", "mount", shapes=[AttachedShape(Box([1, 1, 1]))])
    )
    folded = collapse_fixed_frames(scene)
    assert folded.frame_names == ("world", "part")
    assert close(folded.gaussian_pose("part", relative_to="world").covariance, np.eye(6))
    assert folded.shapes("world") == ()


def uncertain_robot(random: np.random.Generator, frames: int) -> SceneGraph:
    """Return a random tree with many fixed edges, shared errors and shapes."""
    scene = SceneGraph()
    for number in range(frames):
        names = scene.frame_names
        parent = names[int(random.integers(max(0, len(names) - 3), len(names)))]
        kind = random.random()
        joint = Revolute(random.normal(size=3)) if kind < 0.2 else Free() if kind < 0.3 else Fixed()
        error = (
            None
            if random.random() < 0.3
            else model.random_covariance(random, rank=int(random.integers(1, 7)))
        )
        shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))] if random.random() < 0.2 else []
        pose = Pose.exp(random.normal(size=6) * 0.5)
        scene = scene.add_frame(
            f"f{number}", parent, pose=GaussianPose(pose, error), joint=joint, shapes=shapes
        )
        if number > 3 and random.random() < 0.5:  # one source in several edges
            scene = scene.set_noise(f"f{number}", scene.noise(f"f{int(random.integers(number))}"))
    return scene


@settings(max_examples=scaled_examples(0.6))
@given(SEEDS, st.booleans())
def test_folding_is_exact(seed: int, by_json: bool) -> None:
    """Collapsing preserves poses, covariances, correlations and conditioning of kept frames."""
    random = np.random.default_rng(seed)
    scene = uncertain_robot(random, 12)
    keep = [f"f{number}" for number in random.choice(12, size=3, replace=False)]
    folded = collapse_fixed_frames(scene, keep=keep)
    assert folded._defects() == ""
    assert set(keep) <= set(folded.frame_names) <= set(scene.frame_names)
    assert collapse_fixed_frames(folded, keep=keep) == folded
    assert pickle.loads(pickle.dumps(folded)) == folded
    if by_json:
        folded = scene_from_dict(scene_to_dict(folded))
    names, q = folded.frame_names, random.uniform(-3, 3, size=scene.zero_configuration().size)
    pairs = [(a, b) for a in names for b in names if a < b]
    for a, b in pairs:
        before, after = (
            scene.gaussian_pose(a, relative_to=b, q=q),
            folded.gaussian_pose(a, relative_to=b, q=q),
        )
        assert before.mean.is_close(after.mean)
        assert close(before.covariance, after.covariance, tolerance=1e-10)
        assert close(model.covariance(scene, a, b, q), after.covariance, tolerance=1e-10)
        if not by_json:  # where sources are made anew
            shares, shares_after = (
                dict(contributions(scene, a, relative_to=b, q=q)),
                dict(contributions(folded, a, relative_to=b, q=q)),
            )
            # one that cancels leaves rounding behind, or nothing
            for source in {*shares, *shares_after}:
                share, after_share = (
                    each.get(source, np.zeros((6, 6))) for each in (shares, shares_after)
                )
                assert np.allclose(share, after_share, rtol=1e-9, atol=1e-15)
    assert close(
        joint_gaussian(scene, pairs[:6], q=q)[1],
        joint_gaussian(folded, pairs[:6], q=q)[1],
        tolerance=1e-10,
    )
    a, b = pairs[int(random.integers(len(pairs)))]
    seen = Measurement.of_pose(
        a,
        scene.pose(a, relative_to=b, q=q) @ Pose.exp(random.normal(size=6) * 1e-5),
        relative_to=b,
        covariance=np.eye(6) * 1e-6,
    )
    told, told_folded = scene.condition(seen, q=q), folded.condition(seen, q=q)
    for a, b in pairs:
        before, after = (
            told.gaussian_pose(a, relative_to=b, q=q),
            told_folded.gaussian_pose(a, relative_to=b, q=q),
        )
        assert np.allclose(before.mean.as_array(), after.mean.as_array(), atol=1e-8)
        assert close(before.covariance, after.covariance, tolerance=1e-3)


def test_edits_that_go_on_count_too() -> None:
    """One edit sets many errors; an exception changes nothing; removal removes errors."""
    scene = (
        SceneGraph()
        .add_frame("a", "world", pose=GaussianPose(covariance=np.eye(6)))
        .add_frame("b", "a", pose=GaussianPose(covariance=np.eye(6)))
    )
    with scene.edit() as edit:
        edit.reparent("b", "world")
        edit.set_covariance("a", None)
    changed = edit.finish()
    assert changed.noisy_frames == ("b",)
    assert close(changed.gaussian_pose("b", relative_to="world").covariance, 2 * np.eye(6))
    assert scene.remove_frame("b").noisy_frames == ("a",)
    assert diff(scene, scene.set_covariance("b", None)).frames[0].fields == ("covariance",)
    assert scene.set_covariance("b", scene.edge_covariance("b")) != scene.set_covariance("b", None)


def test_bad_input_is_rejected_with_its_defect() -> None:
    """Each rejection names the edge and what is wrong with the numbers."""
    scene = SceneGraph().add_frame("cup", "world")
    negative = (
        r"'cup' in 'world' is not positive semi-definite: its eigenvalues are \[-2, 1, 1, 1, 1, 1\]"
    )
    with pytest.raises(SceneError, match=negative):
        scene.set_covariance("cup", np.diag([1, 1, 1, 1, 1, -2]))
    with pytest.raises(
        SceneError, match="is not symmetric: two entries that should be equal differ by 1"
    ):
        scene.set_covariance("cup", np.eye(6) + np.eye(6, k=1))
    with pytest.raises(SceneError, match=r"must have shape \(6, 6\), not \(5, 5\)"):
        scene.add_frame("x", "cup", pose=GaussianPose(covariance=np.eye(5)))
    with pytest.raises(SceneError, match="frame 'world' is a root, which has no covariance"):
        scene.set_covariance("world", np.eye(6))
    with pytest.raises(
        SceneError, match=r"the map of noise source 'heat' must have shape \(6, 2\)"
    ):
        scene.set_noise("cup", {NoiseSource(2, "heat"): np.ones((3, 2))})
    with pytest.raises(SceneError, match="a noise source needs a dimension of at least 1"):
        NoiseSource(0)
    with pytest.raises(
        SceneError, match="the covariance is not the sum of the squares of the maps"
    ):
        EdgeNoise({NoiseSource(1): np.ones((6, 1))}, covariance=np.eye(6))
    with pytest.raises(DisconnectedError):
        scene.add_root("moon").gaussian_pose("cup", relative_to="moon")
    with pytest.raises(ConfigurationError, match="joint 'lid' is on the path"):
        scene.add_frame("lid", "cup", joint=Revolute([0, 1, 0])).gaussian_pose(
            "lid", relative_to="world"
        )


def test_exact_scenes_answer_exactly() -> None:
    """Without errors the covariance is zero and a singular one stays singular."""
    scene = (
        SceneGraph()
        .add_frame("a", "world", pose=Pose([1, 2, 3]))
        .add_frame("b", "a", pose=GaussianPose(covariance=np.diag([0, 0, 1e-4, 0, 0, 0])))
    )
    assert scene.gaussian_pose("a", relative_to="world") == GaussianPose(Pose([1, 2, 3]))
    assert np.linalg.matrix_rank(scene.gaussian_pose("b", relative_to="world").covariance) == 1
    assert scene.noise("b").sources[0].dimension == 1  # type: ignore[union-attr]
    assert scene.gaussian_pose("b", relative_to="b") == GaussianPose()


def body_with_mount(covariance: np.ndarray | None) -> SceneGraph:
    """Return a robot with a camera on one of its bodies, and a lens below it, exactly mounted."""
    return (
        SceneGraph()
        .add_body("Robot")
        .add_frame("robot", "world", pose=Pose([1, 0, 0]), body="Robot")
        .add_frame("mount", "robot", pose=GaussianPose(Pose([0, 0, 0.5]), covariance), body="Robot")
        .add_frame("lens", "mount", pose=Pose([0.1, 0, 0]), body="Robot")
    )


def set_in_scene(scene: SceneGraph, frame: str, pose: Pose) -> SceneGraph:
    """Set the pose of an edge in a scene."""
    return scene.set_pose(frame, pose)


def reparent_in_scene(scene: SceneGraph, frame: str, pose: Pose) -> SceneGraph:
    """Set the pose of an edge by a move to the same parent."""
    return scene.reparent(
        frame, str(scene.parent(frame)), pose=pose, covariance=scene.edge_covariance(frame)
    )


def set_in_arrays(scene: SceneGraph, frame: str, pose: Pose) -> SceneGraph:
    """Set the pose of an edge in arrays."""
    arrays = SceneArrays(scene)
    arrays.set_pose(frame, pose)
    return arrays.freeze()


@pytest.mark.parametrize(
    "change", [set_in_scene, reparent_in_scene, set_in_arrays], ids=lambda one: one.__name__
)
def test_estimates_inside_a_body_may_change_and_exact_poses_may_not(
    change: Callable[..., SceneGraph],
) -> None:
    """Rule PE4 for edges with and without an error, in scenes and in arrays."""
    small, other = 1e-4 * np.eye(6), Pose([0, 0.05, 0.5])
    uncertain = body_with_mount(small)
    changed = change(uncertain, "mount", other)
    assert changed.local_pose("mount") == other
    assert changed.pose("lens", relative_to="robot").is_close(other @ Pose([0.1, 0, 0]))
    assert changed.body("lens") == "Robot"
    for scene, frame in (
        (body_with_mount(None), "mount"),
        (uncertain, "lens"),
        (uncertain.set_covariance("mount", None), "mount"),
    ):
        with pytest.raises(
            SceneError,
            match=(
                f"frames '{frame}' and '.*' are on one body, so the pose between them cannot change"
            ),
        ):
            change(scene, frame, Pose([0, 0.05, 0.5]))
    seen = Measurement.of_pose(
        "lens", Pose([1.1, 0.03, 0.5]), relative_to="world", covariance=small
    )
    exact = body_with_mount(None)
    assert exact.condition(seen) is exact
    measured = uncertain.condition(seen)
    assert measured.local_pose("mount").translation[1] == pytest.approx(0.015, rel=1e-2)
    assert measured.local_pose("lens") == uncertain.local_pose("lens")
    for before, after in (
        (uncertain, measured),
        (measured, uncertain),
        (uncertain, changed),
        (changed, uncertain),
    ):
        assert before.apply(diff(before, after)) == after
    assert scene_from_dict(scene_to_dict(measured)).pose(
        "lens", relative_to="world"
    ) == measured.pose("lens", relative_to="world")


def test_an_exact_measurement_makes_an_estimate_inside_a_body_final() -> None:
    """An exactly measured pose has no covariance and cannot change."""
    uncertain = body_with_mount(np.diag([1e-4, 1e-4, 0, 0, 0, 0]))
    seen = Measurement.of_position(
        "mount", [1.01, 0.02, 0.5], relative_to="world", covariance=np.zeros((3, 3))
    )
    final = uncertain.condition(seen)
    np.testing.assert_allclose(final.local_pose("mount").translation, [0.01, 0.02, 0.5], atol=1e-12)
    for before, after in ((uncertain, final), (final, uncertain)):
        assert before.apply(diff(before, after)) == after
    final = final.set_covariance("mount", None)
    with pytest.raises(SceneError, match="are on one body"):
        final.set_pose("mount", Pose())


def test_a_pose_graph_corrects_estimates_inside_a_body() -> None:
    """The solution is written back to an uncertain edge of a body."""
    scene = body_with_mount(1e-4 * np.eye(6))
    scene = add_observation(
        scene,
        "lens",
        Pose([1.1, 0.02, 0.5]),
        relative_to="world",
        evidence=Evidence(covariance=1e-4 * np.eye(6)),
    )
    solved = write_back(scene, solve_pose_graph(pose_graph(scene)))
    assert solved.local_pose("mount").translation[1] == pytest.approx(0.01, rel=1e-2)


def test_standard_deviations_of_a_known_scene() -> None:
    """Six numbers in the frame's own axes: a turn by 90 degrees exchanges x and y."""
    deviations = np.array([0.001, 0.002, 0.003, 0.01, 0.02, 0.03])
    pose = GaussianPose(Pose.from_rpy([1, 0, 0], [0, 0, np.pi / 2]), np.diag(deviations**2))
    scene = SceneGraph().add_frame("table", "world", pose=pose).add_frame("exact", "world")
    assert scene.standard_deviation("table") == pytest.approx(deviations)
    assert scene.standard_deviation("table", relative_to="exact") == pytest.approx(deviations)
    in_axes_of_world = scene.standard_deviation("world", relative_to="table")[[3, 4, 5]]
    assert in_axes_of_world == pytest.approx([0.02, 0.01, 0.03])
    assert np.array_equal(scene.standard_deviation("exact"), np.zeros(6))
    assert not scene.standard_deviation("table").flags.writeable
    with pytest.raises(UnknownNameError, match=r"unknown frame 'tabel'.*did you mean 'table'"):
        scene.standard_deviation("tabel")
