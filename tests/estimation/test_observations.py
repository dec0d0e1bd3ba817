"""Several estimates about one pose: policies, gates, and that resolving is an edit like others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support import noise_model as model

from tmkit import GaussianPose, Measurement, Pose, Revolute, SceneGraph
from tmkit.errors import DisconnectedError, SceneError, UnknownNameError
from tmkit.estimation import (
    ByTag,
    Estimate,
    Fused,
    Latest,
    MinCovariance,
    Observation,
    Observations,
    Resolution,
    resolve_observations,
)
from tmkit.graph import innovation, joint_gaussian

SEEDS = st.integers(0, 2**32 - 1)
SMALL = 1e-6 * np.eye(6)


def room() -> SceneGraph:
    """Return two uncertain cameras and a cup that stands somewhere on an exact table."""
    return (
        SceneGraph()
        .add_frame("table", "world", pose=Pose([0.5, 0.0, 0.7]))
        .add_frame("left", "world", pose=Pose([0.0, 0.5, 1.5]), covariance=4e-6 * np.eye(6))
        .add_frame("right", "world", pose=Pose([0.0, -0.5, 1.5]), covariance=9e-6 * np.eye(6))
        .add_frame("cup", "table", pose=Pose([0.0, 0.1, 0.05]), covariance=1e-4 * np.eye(6))
    )


def seen(
    scene: SceneGraph,
    reference: str,
    off: object = (0, 0, 0, 0, 0, 0),
    *,
    target: str = "cup",
    covariance: object = SMALL,
    stamp: float | None = None,
    tags: tuple[str, ...] = (),
) -> Observation:
    """Return an observation that is off from the pose in the scene by a tangent vector."""
    pose = scene.pose(target, relative_to=reference) @ Pose.exp(np.asarray(off, dtype=float))
    return Observation(
        target, GaussianPose(pose, np.asarray(covariance)), relative_to=reference, stamp=stamp, tags=frozenset(tags)
    )


def alike(a: Pose, b: Pose, tolerance: float = 1e-10) -> bool:
    """Tell whether two poses agree."""
    return a.is_close(b, translation_tolerance=tolerance, rotation_tolerance=tolerance)


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-9) -> bool:
    """Tell whether two arrays agree relative to the greatest entry."""
    return bool(np.abs(a - b).max() <= tolerance * max(np.abs(a).max(), np.abs(b).max(), 1e-12))


def same(a: GaussianPose, b: GaussianPose, tolerance: float = 1e-9) -> bool:
    """Tell whether two uncertain poses agree."""
    return alike(a.mean, b.mean) and close(a.covariance, b.covariance, tolerance)


@settings(max_examples=25)
@given(SEEDS)
def test_fusing_is_conditioning(seed: int) -> None:
    """One observation fused says of every frame what conditioning on it says; several, what one after another says."""
    random = np.random.default_rng(seed)
    scene = room()
    draws = [seen(scene, camera, 2e-3 * random.normal(size=6)) for camera in ("left", "right", "left")]
    one = resolve_observations(scene, Observations(draws[:1]), "cup", policy=Fused(), probability=None)
    for frame, other in (("cup", "world"), ("left", "world"), ("cup", "right")):
        expected = scene.condition(draws[0].measurement()).gaussian_pose(frame, relative_to=other)
        assert same(one.scene.gaussian_pose(frame, relative_to=other), expected)
    several = resolve_observations(scene, Observations(draws), "cup", policy=Fused(), probability=None)
    by_hand = scene
    for draw in several.used:
        by_hand = by_hand.condition(draw.measurement())
    fused = several.scene.gaussian_pose("cup", relative_to="world")
    assert alike(fused.mean, by_hand.pose("cup", relative_to="world"))
    assert close(fused.covariance, by_hand.gaussian_pose("cup", relative_to="world").covariance)
    assert several.scene.frame_names == scene.frame_names
    assert set(several.used) == set(draws)


@settings(max_examples=25)
@given(SEEDS, st.permutations(range(5)))
def test_the_order_of_addition_means_nothing(seed: int, order: list[int]) -> None:
    """Every policy gives the same bytes whatever the order in which observations came."""
    random = np.random.default_rng(seed)
    scene = room()
    every = [
        seen(
            scene, ("left", "right")[k % 2], 3e-3 * random.normal(size=6), stamp=float(random.integers(3)), tags=("a",)
        )
        for k in range(5)
    ]
    for policy in (Latest(), ByTag("a"), MinCovariance(), Fused()):
        first = resolve_observations(scene, Observations(every), "cup", policy=policy)
        second = resolve_observations(scene, Observations(every[k] for k in order), "cup", policy=policy)
        assert first.scene == second.scene
        assert first.scene.digest == second.scene.digest
        assert [str(result) for result in first.gate_results] == [str(result) for result in second.gate_results]


@settings(max_examples=25)
@given(SEEDS)
def test_choosing_a_path_is_hanging_the_frame_there_and_back(seed: int) -> None:
    """The chosen estimate gives the edge what two reparents give it, with its correlation to the camera."""
    random = np.random.default_rng(seed)
    scene = room()
    draw = seen(scene, "left", 3e-3 * random.normal(size=6), stamp=1.0)
    answer = resolve_observations(scene, Observations([draw]), "cup", policy=Latest(), probability=None)
    hung = scene.reparent("cup", "left", pose=draw.pose.mean, covariance=draw.pose.covariance)
    back = hung.reparent("cup", "table")
    pairs = [("cup", "world"), ("cup", "left"), ("left", "world"), ("cup", "table")]
    assert answer.scene.parent("cup") == "table"
    assert close(joint_gaussian(answer.scene, pairs)[1], joint_gaussian(back, pairs)[1])
    assert alike(answer.scene.pose("cup", relative_to="left"), draw.pose.mean)
    assert close(answer.scene.gaussian_pose("cup", relative_to="left").covariance, draw.pose.covariance, 1e-8)


def test_policies_look_at_whole_paths() -> None:
    """A new look by a camera that was seen long ago is as old; the minimal covariance includes the camera's error."""
    scene = room().add_frame("tripod", "world").add_frame("third", "tripod", pose=Pose([0, 0, 1]))
    camera = seen(scene, "world", target="tripod", covariance=1e-8 * np.eye(6), stamp=2.0, tags=("survey",))
    by_third = seen(scene, "third", (2e-3, 0, 0, 0, 0, 0), stamp=9.0, tags=("survey",))
    by_left = seen(scene, "left", (1e-3, 0, 0, 0, 0, 0), covariance=1e-10 * np.eye(6), stamp=5.0, tags=("marker",))
    everything = Observations([camera, by_third, by_left])
    estimates = {
        str(result.estimate): result.estimate
        for result in resolve_observations(scene, everything, "cup", policy=Latest(), probability=None).gate_results
    }
    assert {estimate.stamp for estimate in estimates.values()} == {None, 2.0, 9.0, 5.0}
    chain = next(estimate for estimate in estimates.values() if len(estimate.observations) == 2)
    assert chain.observations == (camera, by_third)
    assert chain.stamp == 2.0

    def chosen(policy: object, collection: Observations = everything) -> Estimate:
        answer = resolve_observations(scene, collection, "cup", policy=policy, probability=None)  # type: ignore[arg-type]
        (estimate,) = (result.estimate for result in answer.gate_results if result.is_used)
        assert alike(answer.scene.pose("cup", relative_to="table"), estimate.pose.mean)
        return estimate

    assert chosen(Latest()).stamp == 9.0  # the tripod where the scene has it, exactly
    assert chosen(ByTag("nothing", "marker")).observations == (by_left,)
    assert chosen(MinCovariance()).observations == (by_third,)
    moved = scene.add_stamped_pose("tripod", scene.local_pose("tripod"), stamp=1.0)
    newest = resolve_observations(moved, everything, "cup", policy=Latest(), probability=None)
    assert [result.estimate.observations for result in newest.gate_results if result.is_used] == [(by_left,)]


def test_one_observation_used_twice_is_one_error() -> None:
    """Two cups seen through one look at a camera share its error: relative to each other it cancels."""
    scene = SceneGraph().add_frame("camera", "world").add_frame("a", "world").add_frame("b", "world")
    looks = Observations(
        [
            seen(scene, "world", target="camera", covariance=1e-2 * np.eye(6)),
            seen(scene, "camera", target="a"),
            seen(scene, "camera", target="b"),
        ]
    )
    for target in ("a", "b"):
        answer = resolve_observations(scene, looks, target, policy=_Chains())
        scene = answer.scene
    assert scene.gaussian_pose("a", relative_to="world").covariance[0, 0] == pytest.approx(1e-2 + 1e-6)
    assert scene.gaussian_pose("a", relative_to="b").covariance[0, 0] == pytest.approx(2e-6)


class _Chains:
    """A policy of one's own: the longest path."""

    def choose(self, estimates: list[Estimate]) -> list[Estimate]:
        return [max(estimates, key=lambda estimate: len(estimate.observations))]


def test_an_outlier_is_rejected_and_named() -> None:
    """What contradicts the others is taken out with its distance; the answer is that without it."""
    scene = room()
    good = [seen(scene, camera, (k * 1e-3, 0, 0, 0, 0, 0)) for k, camera in enumerate(("left", "right"))]
    bad = seen(scene, "right", (0.2, 0, 0, 0, 0, 0), stamp=7.5, tags=("reflection",))
    answer = resolve_observations(scene, Observations([bad, *good]), "cup", policy=Fused())
    (result,) = answer.rejected
    assert result.estimate.observations == (bad,)
    assert result.squared_distance > 100 * result.threshold > 0
    assert "'cup' seen from 'right' at 7.5 s (reflection): rejected, squared distance" in str(answer)
    assert bad not in answer.used
    assert answer.scene == resolve_observations(scene, Observations(good), "cup", policy=Fused()).scene
    distance = innovation(scene, bad.measurement()).squared_mahalanobis
    alone = resolve_observations(scene, Observations([bad]), "cup", policy=Latest())
    assert alone.scene is scene or alone.scene == scene
    assert alone.rejected[0].squared_distance == pytest.approx(distance, rel=1e-3)


def test_a_majority_outvotes_what_the_scene_said() -> None:
    """A cup that was moved by somebody: three looks agree, so what the scene said is what is rejected."""
    scene = room()
    looks = Observations(
        seen(scene, camera, (0.2 + k * 1e-3, 0, 0, 0, 0, 0)) for k, camera in enumerate(("left", "right", "left"))
    )
    answer = resolve_observations(scene, looks, "cup", policy=Fused())
    assert [str(result.estimate) for result in answer.rejected] == ["the pose in the scene"]
    assert answer.scene.pose("cup", relative_to="table").translation[0] == pytest.approx(0.201, abs=2e-3)


def test_an_exact_edge_is_a_placeholder() -> None:
    """An edge without an error yields to any observation, and does not gate it."""
    scene = room().set_covariance("cup", None)
    looks = [seen(scene, "left", (0.3, 0, 0, 0, 0, 0)), seen(scene, "right", (0.3, 0, 0, 0, 0, 0))]
    answer = resolve_observations(scene, Observations(looks), "cup", policy=Fused())
    assert not answer.rejected
    assert answer.scene.pose("cup", relative_to="table").translation[0] == pytest.approx(0.3, abs=1e-6)
    both = [scene.gaussian_pose(look.relative_to, relative_to="table") @ look.pose for look in looks]
    expected = np.linalg.inv(sum((np.linalg.inv(pose.covariance) for pose in both), start=np.zeros((6, 6))))
    assert close(answer.scene.gaussian_pose("cup", relative_to="table").covariance, expected, 1e-6)
    assert resolve_observations(scene, Observations(), "cup", policy=Fused()).scene == scene


def test_estimates_that_know_directions_exactly_agree_in_them() -> None:
    """Exact directions that differ by rounding are the same; where they really differ, the distance is infinite."""
    scene = room().set_covariance("cup", None).set_covariance("left", None).set_covariance("right", None)
    scene = scene.set_pose("left", Pose.from_rpy([1, 0.2, 0.3], [2, 0.2, 0.3]))
    along = np.diag([1e-4, 0, 0, 0, 0, 0])
    ends = [seen(scene, "table", (0.01, 0, 0, 0, 0, 0), covariance=along), seen(scene, "left", covariance=along)]
    answer = resolve_observations(scene, Observations(ends), "cup", policy=Fused())
    assert not answer.rejected
    assert answer.gate_results[0].squared_distance == pytest.approx(0.5)
    assert answer.scene.pose("cup", relative_to="table").translation[0] == pytest.approx(0.005)
    exact = [seen(scene, camera, covariance=np.zeros((6, 6))) for camera in ("left", "right")]
    assert not resolve_observations(scene, Observations(exact), "cup", policy=Fused()).rejected
    moved = seen(scene, "right", (0.01, 0, 0, 0, 0, 0), covariance=np.zeros((6, 6)))
    answer = resolve_observations(scene, Observations([exact[0], moved]), "cup", policy=Fused())
    assert [result.squared_distance for result in answer.rejected] == [np.inf]
    with pytest.raises(SceneError, match="contradicts what is known exactly"):
        resolve_observations(scene, Observations([exact[0], moved]), "cup", policy=Fused(), probability=None)


def test_frames_on_joints_can_only_be_fused() -> None:
    """A joint says where its frame is: an observation corrects an uncertain edge, and cannot replace it."""
    scene = room().add_frame("lid", "table", joint=Revolute([0, 0, 1], name="hinge"), covariance=SMALL)
    q = [0.4]
    pose = GaussianPose(scene.pose("lid", relative_to="left", q=q), SMALL)
    looks = Observations().observe("lid", relative_to="left", pose=pose, stamp=1.0, tags=["x"])
    fused = resolve_observations(scene, looks, "lid", policy=Fused(), q=q).scene
    expected = scene.condition(
        Measurement.of_pose("lid", pose.mean, relative_to="left", covariance=pose.covariance), q=q
    )
    assert same(
        fused.gaussian_pose("lid", relative_to="world", q=q), expected.gaussian_pose("lid", relative_to="world", q=q)
    )
    with pytest.raises(SceneError, match="frame 'lid' is on a revolute joint"):
        resolve_observations(scene, looks, "lid", policy=Latest(), q=q)


@settings(max_examples=25)
@given(SEEDS)
def test_resolving_random_trees_gives_what_the_path_says(seed: int) -> None:
    """In random trees a chosen path of one observation is the product of tree and observation, by dense matrices."""
    random = np.random.default_rng(seed)
    scene = model.random_tree(random, 9)
    target, observer = (f"f{number}" for number in random.choice(9, size=2, replace=False))
    if target in scene.ancestors(observer):
        return
    covariance = model.random_covariance(random, rank=int(random.integers(1, 7)))
    pose = GaussianPose(Pose.exp(random.normal(size=6)), covariance)
    looks = Observations().observe(target, relative_to=observer, pose=pose)
    answer = resolve_observations(scene, looks, target, policy=_Chains(), probability=None).scene
    by_path = scene.gaussian_pose(observer, relative_to="world") @ pose
    if scene.parent(target) == "world" or target not in scene.ancestors(observer):
        assert same(answer.gaussian_pose(target, relative_to="world"), by_path, 1e-8)


def test_collections_are_values() -> None:
    """Observations are immutable, compared by content, keep order, and survive pickling."""
    scene = room()
    first, second = seen(scene, "left", stamp=1.0), seen(scene, "right", stamp=2.0)
    looks = Observations([first, second, first])
    assert len(looks) == 2
    assert list(looks) == [first, second]
    assert looks == Observations([second, first])
    assert hash(looks) == hash(Observations([second, first]))
    assert looks.without([first]) == Observations([second])
    assert looks.since(1.5) == looks.without([first])
    assert looks.since(0.0).add(seen(scene, "left")).since(3.0) == Observations([seen(scene, "left")])
    assert looks.frames == ("cup",)
    assert looks.of("nobody") == ()
    assert first in looks
    assert pickle.loads(pickle.dumps(list(looks))) == list(looks)
    assert repr(looks) == "Observations(2 of 1 frames)"


def test_bad_input_says_what_is_wrong() -> None:
    """Each refusal names the frame and what it is."""
    scene = room()
    good = seen(scene, "left")
    with pytest.raises(SceneError, match="frame 'cup' cannot be observed from itself"):
        Observation("cup", GaussianPose(), relative_to="cup")
    with pytest.raises(SceneError, match="the stamp of an observation must be a finite number or None, not nan"):
        Observation("cup", GaussianPose(), relative_to="left", stamp=float("nan"))
    with pytest.raises(SceneError, match="tags are a set of texts, not the text 'marker'"):
        Observation("cup", GaussianPose(), relative_to="left", stamp=None, tags="marker")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="'cup' seen from 'lefd': unknown frame 'lefd'; did you mean 'left'"):
        resolve_observations(
            scene, Observations([Observation("cup", good.pose, relative_to="lefd")]), "cup", policy=Latest()
        )
    with pytest.raises(UnknownNameError, match="unknown frame 'cupp'"):
        resolve_observations(scene, Observations(), "cupp", policy=Latest())
    with pytest.raises(SceneError, match="frame 'world' is a root, of which there are no estimates"):
        resolve_observations(scene, Observations(), "world", policy=Latest())
    with pytest.raises(SceneError, match="frame 'table' is an ancestor of 'cup'"):
        resolve_observations(scene, Observations(), "table", policy=Latest(), base="cup")
    with pytest.raises(DisconnectedError):
        resolve_observations(
            scene.add_root("moon"),
            Observations([Observation("cup", good.pose, relative_to="moon")]),
            "cup",
            policy=Latest(),
        )
    many = Observations(
        Observation("cup", GaussianPose(good.pose.mean @ Pose([1e-6 * k, 0, 0]), SMALL), relative_to="left")
        for k in range(501)
    )
    with pytest.raises(SceneError, match="frame 'cup' has more than 500 paths of observations"):
        resolve_observations(scene, many, "cup", policy=Latest())


def test_observers_that_hang_on_the_target_say_nothing() -> None:
    """What a camera on the cup sees of the cup says nothing of where the cup is."""
    scene = room().add_frame("eye", "cup")
    answer: Resolution = resolve_observations(
        scene, Observations([Observation("cup", GaussianPose(Pose(), SMALL), relative_to="eye")]), "cup", policy=Fused()
    )
    assert answer.scene == scene
    assert len(answer.gate_results) == 1
