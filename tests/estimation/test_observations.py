"""Several estimates about one pose: policies, gates, and that resolving is an edit like others."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support import noise_model as model
from support.effort import scaled_examples

from tmkit import GaussianPose, Measurement, Pose, Revolute, SceneArrays, SceneGraph
from tmkit.errors import DisconnectedError, SceneError, UnknownNameError
from tmkit.estimation import ByTag, Fused, Latest, MinCovariance, resolve_observations
from tmkit.estimation.policies import Estimate
from tmkit.estimation.resolution import Resolution
from tmkit.formats import scene_from_dict, scene_to_dict
from tmkit.graph import Evidence, add_observation, diff, innovation, joint_gaussian, observations
from tmkit.graph.observation_frames import Observation, remove_observations

SEEDS = st.integers(0, 2**32 - 1)
SMALL = 1e-6 * np.eye(6)


@dataclass(frozen=True)
class Look:
    """An observation of a frame from another."""

    frame: str
    pose: GaussianPose
    relative_to: str
    stamp: float | None = None
    tags: frozenset[str] = frozenset()

    def measurement(self) -> Measurement:
        """Return it as a measurement."""
        return Measurement.of_pose(
            self.frame,
            self.pose.mean,
            relative_to=self.relative_to,
            covariance=self.pose.covariance,
        )


def observe(scene: SceneGraph, looks: Iterable[Look]) -> SceneGraph:
    """Return the version with observations."""
    for look in looks:
        scene = add_observation(
            scene,
            look.frame,
            look.pose.mean,
            relative_to=look.relative_to,
            evidence=Evidence(covariance=look.pose.covariance, stamp=look.stamp, tags=look.tags),
        )
    return scene


def as_looks(items: Iterable[Observation]) -> list[Look]:
    """Return observations without the frames that they are."""
    return [Look(item.frame, item.pose, item.relative_to, item.stamp, item.tags) for item in items]


def resolve(
    scene: SceneGraph, looks: Iterable[Look], frame: str, *, policy: object, **options: object
) -> Resolution:
    """Return the resolution of a version with observations."""
    return resolve_observations(observe(scene, looks), frame, policy=policy, **options)  # type: ignore[arg-type]


def room() -> SceneGraph:
    """Return two uncertain cameras and a cup that stands somewhere on an exact table."""
    return (
        SceneGraph()
        .add_frame("table", "world", pose=Pose([0.5, 0.0, 0.7]))
        .add_frame("left", "world", pose=GaussianPose(Pose([0.0, 0.5, 1.5]), 4e-6 * np.eye(6)))
        .add_frame("right", "world", pose=GaussianPose(Pose([0.0, -0.5, 1.5]), 9e-6 * np.eye(6)))
        .add_frame("cup", "table", pose=GaussianPose(Pose([0.0, 0.1, 0.05]), 1e-4 * np.eye(6)))
    )


def sight(
    scene: SceneGraph,
    reference: str,
    error: object = (0, 0, 0, 0, 0, 0),
    *,
    target: str = "cup",
    covariance: object = SMALL,
    stamp: float | None = None,
    tags: tuple[str, ...] = (),
) -> Look:
    """Return a look that is off from the pose in the scene by a tangent vector."""
    pose = scene.pose(target, relative_to=reference) @ Pose.exp(np.asarray(error, dtype=float))
    return Look(
        target, GaussianPose(pose, np.asarray(covariance)), reference, stamp, frozenset(tags)
    )


def alike(a: Pose, b: Pose, tolerance: float = 1e-10) -> bool:
    """Return whether two poses agree."""
    return a.is_close(b, translation_tolerance=tolerance, rotation_tolerance=tolerance)


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-9) -> bool:
    """Return whether two arrays agree relative to the largest entry."""
    return bool(np.abs(a - b).max() <= tolerance * max(np.abs(a).max(), np.abs(b).max(), 1e-12))


def same(a: GaussianPose, b: GaussianPose, tolerance: float = 1e-9) -> bool:
    """Return whether two uncertain poses agree."""
    return alike(a.mean, b.mean) and close(a.covariance, b.covariance, tolerance)


@settings(max_examples=scaled_examples(0.25))
@given(SEEDS)
def test_fusing_is_conditioning(seed: int) -> None:
    """A fused observation equals conditioning on it; several equal a sequence."""
    random = np.random.default_rng(seed)
    scene = room()
    draws = [
        sight(scene, camera, 2e-3 * random.normal(size=6)) for camera in ("left", "right", "left")
    ]
    resolution = resolve(scene, draws[:1], "cup", policy=Fused(), probability=None)
    for frame, other in (("cup", "world"), ("left", "world"), ("cup", "right")):
        expected = scene.condition(draws[0].measurement()).gaussian_pose(frame, relative_to=other)
        assert same(resolution.scene.gaussian_pose(frame, relative_to=other), expected)
    several = resolve(scene, draws, "cup", policy=Fused(), probability=None)
    by_hand = scene
    for draw in several.used:
        by_hand = by_hand.condition(draw.measurement())
    fused = several.scene.gaussian_pose("cup", relative_to="world")
    assert alike(fused.mean, by_hand.pose("cup", relative_to="world"))
    assert close(fused.covariance, by_hand.gaussian_pose("cup", relative_to="world").covariance)
    assert several.scene.frame_names == scene.frame_names
    assert set(as_looks(several.used)) == set(draws)


@settings(max_examples=scaled_examples(0.25))
@given(SEEDS, st.permutations(range(5)))
def test_the_order_of_addition_means_nothing(seed: int, order: list[int]) -> None:
    """Every policy gives the same bytes for any order of the observations."""
    random = np.random.default_rng(seed)
    scene = room()
    every = [
        sight(
            scene,
            ("left", "right")[k % 2],
            3e-3 * random.normal(size=6),
            stamp=float(random.integers(3)),
            tags=("a",),
        )
        for k in range(5)
    ]
    for policy in (Latest(), ByTag("a"), MinCovariance(), Fused()):
        first = resolve(scene, every, "cup", policy=policy)
        second = resolve(scene, [every[k] for k in order], "cup", policy=policy)
        edges = [remove_observations(answer.scene) for answer in (first, second)]
        assert edges[0] == edges[1]
        assert edges[0].digest() == edges[1].digest()
        assert [str(result) for result in first.gate_results] == [
            str(result) for result in second.gate_results
        ]


@settings(max_examples=scaled_examples(0.25))
@given(SEEDS)
def test_choosing_a_path_is_hanging_the_frame_there_and_back(seed: int) -> None:
    """The chosen estimate equals two reparents, with its correlation to the camera."""
    random = np.random.default_rng(seed)
    scene = room()
    draw = sight(scene, "left", 3e-3 * random.normal(size=6), stamp=1.0)
    answer = resolve(scene, [draw], "cup", policy=Latest(), probability=None)
    hung = scene.reparent("cup", "left", pose=draw.pose.mean, covariance=draw.pose.covariance)
    back = hung.reparent("cup", "table")
    pairs = [("cup", "world"), ("cup", "left"), ("left", "world"), ("cup", "table")]
    assert answer.scene.parent("cup") == "table"
    assert close(joint_gaussian(answer.scene, pairs)[1], joint_gaussian(back, pairs)[1])
    assert alike(answer.scene.pose("cup", relative_to="left"), draw.pose.mean)
    assert close(
        answer.scene.gaussian_pose("cup", relative_to="left").covariance, draw.pose.covariance, 1e-8
    )


def test_policies_look_at_whole_paths() -> None:
    """A path is as old as its oldest look; the covariance includes the camera's error."""
    scene = room().add_frame("tripod", "world").add_frame("third", "tripod", pose=Pose([0, 0, 1]))
    camera = sight(
        scene, "world", target="tripod", covariance=1e-8 * np.eye(6), stamp=2.0, tags=("survey",)
    )
    by_third = sight(scene, "third", (2e-3, 0, 0, 0, 0, 0), stamp=9.0, tags=("survey",))
    by_left = sight(
        scene,
        "left",
        (1e-3, 0, 0, 0, 0, 0),
        covariance=1e-10 * np.eye(6),
        stamp=5.0,
        tags=("marker",),
    )
    everything = [camera, by_third, by_left]
    estimates = {
        str(result.estimate): result.estimate
        for result in resolve(
            scene, everything, "cup", policy=Latest(), probability=None
        ).gate_results
    }
    assert {estimate.stamp for estimate in estimates.values()} == {None, 2.0, 9.0, 5.0}
    chain = next(estimate for estimate in estimates.values() if len(estimate.observations) == 2)
    assert as_looks(chain.observations) == [camera, by_third]
    assert chain.stamp == 2.0

    def chosen(policy: object, collection: list[Look] = everything) -> Estimate:
        answer = resolve(scene, collection, "cup", policy=policy, probability=None)  # type: ignore[arg-type]
        (estimate,) = (result.estimate for result in answer.gate_results if result.is_used)
        assert alike(answer.scene.pose("cup", relative_to="table"), estimate.pose.mean)
        return estimate

    assert chosen(Latest()).stamp == 9.0  # the tripod where the scene has it, exactly
    assert as_looks(chosen(ByTag("nothing", "marker")).observations) == [by_left]
    assert as_looks(chosen(MinCovariance()).observations) == [by_third]
    moved = scene.add_stamped_pose("tripod", scene.local_pose("tripod"), stamp=1.0)
    newest = resolve(moved, everything, "cup", policy=Latest(), probability=None)
    assert [
        as_looks(result.estimate.observations) for result in newest.gate_results if result.is_used
    ] == [[by_left]]


def test_one_observation_used_twice_is_one_error() -> None:
    """The error of a shared camera cancels in the relative pose of two cups."""
    scene = (
        SceneGraph().add_frame("camera", "world").add_frame("a", "world").add_frame("b", "world")
    )
    looks = [
        sight(scene, "world", target="camera", covariance=1e-2 * np.eye(6)),
        sight(scene, "camera", target="a"),
        sight(scene, "camera", target="b"),
    ]
    for target in ("a", "b"):
        answer = resolve(scene, looks, target, policy=_Chains())
        scene = answer.scene
    assert scene.gaussian_pose("a", relative_to="world").covariance[0, 0] == pytest.approx(
        1e-2 + 1e-6
    )
    assert scene.gaussian_pose("a", relative_to="b").covariance[0, 0] == pytest.approx(2e-6)


class _Chains:
    """A user-defined policy selects the longest path."""

    def choose(self, estimates: list[Estimate]) -> list[Estimate]:
        return [max(estimates, key=lambda estimate: len(estimate.observations))]


def test_an_outlier_is_rejected_and_named() -> None:
    """An outlier is rejected with its distance; the result equals that without it."""
    scene = room()
    good = [
        sight(scene, camera, (k * 1e-3, 0, 0, 0, 0, 0))
        for k, camera in enumerate(("left", "right"))
    ]
    bad = sight(scene, "right", (0.2, 0, 0, 0, 0, 0), stamp=7.5, tags=("reflection",))
    answer = resolve(scene, [bad, *good], "cup", policy=Fused())
    (result,) = answer.rejected
    assert as_looks(result.estimate.observations) == [bad]
    assert result.squared_distance > 100 * result.threshold > 0
    assert "'cup' seen from 'right' at 7.5 s (reflection): rejected, squared distance" in str(
        answer
    )
    assert bad not in as_looks(answer.used)
    assert as_looks(observations(answer.scene)) == [bad]
    assert remove_observations(answer.scene) == resolve(scene, good, "cup", policy=Fused()).scene
    distance = innovation(scene, bad.measurement()).squared_mahalanobis
    alone = resolve(scene, [bad], "cup", policy=Latest())
    assert remove_observations(alone.scene) == scene
    assert alone.rejected[0].squared_distance == pytest.approx(distance, rel=1e-3)


def test_a_majority_outvotes_what_the_scene_said() -> None:
    """If three looks agree that a cup was moved, the pose in the scene is rejected."""
    scene = room()
    looks = [
        sight(scene, camera, (0.2 + k * 1e-3, 0, 0, 0, 0, 0))
        for k, camera in enumerate(("left", "right", "left"))
    ]
    answer = resolve(scene, looks, "cup", policy=Fused())
    assert [str(result.estimate) for result in answer.rejected] == ["the pose in the scene"]
    assert answer.scene.pose("cup", relative_to="table").translation[0] == pytest.approx(
        0.201, abs=2e-3
    )


def test_an_exact_edge_is_a_placeholder() -> None:
    """An edge without an error yields to any observation, and does not gate it."""
    scene = room().set_covariance("cup", None)
    looks = [
        sight(scene, "left", (0.3, 0, 0, 0, 0, 0)),
        sight(scene, "right", (0.3, 0, 0, 0, 0, 0)),
    ]
    answer = resolve(scene, looks, "cup", policy=Fused())
    assert not answer.rejected
    assert answer.scene.pose("cup", relative_to="table").translation[0] == pytest.approx(
        0.3, abs=1e-6
    )
    both = [
        scene.gaussian_pose(look.relative_to, relative_to="table") @ look.pose for look in looks
    ]
    expected = np.linalg.inv(
        sum((np.linalg.inv(pose.covariance) for pose in both), start=np.zeros((6, 6)))
    )
    assert close(answer.scene.gaussian_pose("cup", relative_to="table").covariance, expected, 1e-6)
    assert resolve(scene, [], "cup", policy=Fused()).scene == scene


def test_estimates_that_know_directions_exactly_agree_in_them() -> None:
    """Exact directions agree up to rounding; for a real difference the distance is infinite."""
    scene = (
        room()
        .set_covariance("cup", None)
        .set_covariance("left", None)
        .set_covariance("right", None)
    )
    scene = scene.set_pose("left", Pose.from_rpy([1, 0.2, 0.3], [2, 0.2, 0.3]))
    along = np.diag([1e-4, 0, 0, 0, 0, 0])
    ends = [
        sight(scene, "table", (0.01, 0, 0, 0, 0, 0), covariance=along),
        sight(scene, "left", covariance=along),
    ]
    answer = resolve(scene, ends, "cup", policy=Fused())
    assert not answer.rejected
    assert answer.gate_results[0].squared_distance == pytest.approx(0.5)
    assert answer.scene.pose("cup", relative_to="table").translation[0] == pytest.approx(0.005)
    exact = [sight(scene, camera, covariance=np.zeros((6, 6))) for camera in ("left", "right")]
    assert not resolve(scene, exact, "cup", policy=Fused()).rejected
    moved = sight(scene, "right", (0.01, 0, 0, 0, 0, 0), covariance=np.zeros((6, 6)))
    answer = resolve(scene, [exact[0], moved], "cup", policy=Fused())
    assert [result.squared_distance for result in answer.rejected] == [np.inf]
    with pytest.raises(SceneError, match="contradicts exact data"):
        resolve(scene, [exact[0], moved], "cup", policy=Fused(), probability=None)


def test_frames_on_joints_can_only_be_fused() -> None:
    """An observation of a frame on a joint corrects an uncertain edge, and cannot replace it."""
    scene = room().add_frame(
        "lid", "table", joint=Revolute([0, 0, 1], name="hinge"), pose=GaussianPose(covariance=SMALL)
    )
    q = [0.4]
    pose = GaussianPose(scene.pose("lid", relative_to="left", q=q), SMALL)
    looks = [Look("lid", pose, "left", stamp=1.0, tags=frozenset("x"))]
    fused = resolve(scene, looks, "lid", policy=Fused(), q=q).scene
    expected = scene.condition(
        Measurement.of_pose("lid", pose.mean, relative_to="left", covariance=pose.covariance), q=q
    )
    assert same(
        fused.gaussian_pose("lid", relative_to="world", q=q),
        expected.gaussian_pose("lid", relative_to="world", q=q),
    )
    with pytest.raises(SceneError, match="frame 'lid' is on a revolute joint"):
        resolve(scene, looks, "lid", policy=Latest(), q=q)


@settings(max_examples=scaled_examples(0.25))
@given(SEEDS)
def test_resolving_random_trees_gives_what_the_path_says(seed: int) -> None:
    """In random trees a path of one observation is the product of tree and observation."""
    random = np.random.default_rng(seed)
    scene = model.random_tree(random, 9)
    target, observer = (f"f{number}" for number in random.choice(9, size=2, replace=False))
    if target in scene.ancestors(observer):
        return
    covariance = model.random_covariance(random, rank=int(random.integers(1, 7)))
    pose = GaussianPose(Pose.exp(random.normal(size=6)), covariance)
    looks = [Look(target, pose, observer)]
    answer = resolve(scene, looks, target, policy=_Chains(), probability=None).scene
    by_path = scene.gaussian_pose(observer, relative_to="world") @ pose
    if scene.parent(target) == "world" or target not in scene.ancestors(observer):
        assert same(answer.gaussian_pose(target, relative_to="world"), by_path, 1e-8)


def test_observations_are_part_of_the_version() -> None:
    """Observations are part of equality, digests, files and pickles, and follow their frame."""
    scene = room()
    looks = [sight(scene, "left", stamp=1.0), sight(scene, "right", stamp=2.0, tags=("tag",))]
    version = observe(scene, looks)
    assert as_looks(observations(version)) == looks
    assert version != scene
    assert version == observe(scene, looks)
    assert version.digest() == observe(scene, looks).digest() != observe(scene, looks[:1]).digest()
    assert version.pose("cup") == scene.pose("cup")
    assert scene.apply(diff(scene, version)) == version
    assert scene_from_dict(scene_to_dict(version)) == version
    assert pickle.loads(pickle.dumps(version)) == version
    assert SceneArrays(version).freeze() == version
    renamed = version.rename_frame("cup", "mug").rename_frame("left", "third")
    assert [str(observation) for observation in observations(renamed)] == [
        "'mug' seen from 'third' at 1 s",
        "'mug' seen from 'right' at 2 s (tag)",
    ]
    assert [
        observation.frame
        for observation in observations(SceneGraph().mount(version, "world", prefix="b/"))
    ] == ["b/cup"] * 2
    assert observations(version, "table") == observations(version.remove_frame("cup")) == ()
    first, second = observations(version)
    assert observations(remove_observations(version, [first])) == (second,)
    assert remove_observations(version) == scene
    assert observations(observe(remove_observations(version, [second]), looks[1:]))[1] == second


def test_what_a_policy_chose_may_be_resolved_again() -> None:
    """Chosen observations are kept and counted once; fused ones are removed."""
    scene = room()
    version = observe(
        scene,
        [sight(scene, "left", (1e-3, 0, 0, 0, 0, 0), stamp=1.0), sight(scene, "right", stamp=2.0)],
    )
    once = resolve_observations(version, "cup", policy=Latest()).scene
    again = resolve_observations(once, "cup", policy=Latest()).scene
    assert len(observations(again)) == 2
    assert same(again.gaussian_pose("cup"), once.gaussian_pose("cup"))
    newer = observe(once, [sight(scene, "left", (2e-3, 0, 0, 0, 0, 0), stamp=3.0)])
    (result,) = [
        gate
        for gate in resolve_observations(newer, "cup", policy=Latest()).gate_results
        if gate.is_used
    ]
    assert result.estimate.stamp == 3.0
    assert observations(resolve_observations(newer, "cup", policy=Fused()).scene) == ()


def test_bad_input_says_what_is_wrong() -> None:
    """Each error names the frame and its kind."""
    scene = room()
    good = sight(scene, "left")
    with pytest.raises(SceneError, match="frame 'cup' cannot be observed from itself"):
        add_observation(scene, "cup", Pose(), relative_to="cup")
    with pytest.raises(
        SceneError, match="the stamp of an observation must be a finite number or None, not nan"
    ):
        add_observation(
            scene, "cup", Pose(), relative_to="left", evidence=Evidence(stamp=float("nan"))
        )
    with pytest.raises(SceneError, match="tags must be a set of texts"):
        add_observation(scene, "cup", Pose(), relative_to="left", evidence=Evidence(tags="marker"))
    with pytest.raises(UnknownNameError, match="unknown kind of observation 'range'"):
        add_observation(scene, "cup", Pose(), relative_to="left", kind="range")  # type: ignore[arg-type]
    with pytest.raises(
        SceneError, match="seen from 'left' is of its orientation alone, which is not a measurement"
    ):
        observations(add_observation(scene, "cup", Pose(), relative_to="left", kind="orientation"))[
            0
        ].measurement()
    with pytest.raises(UnknownNameError, match="unknown frame 'lefd'; did you mean 'left'"):
        add_observation(scene, "cup", Pose(), relative_to="lefd")
    with pytest.raises(UnknownNameError, match="unknown frame 'cupp'"):
        resolve(scene, [], "cupp", policy=Latest())
    with pytest.raises(
        SceneError, match="frame 'world' is a root, of which there are no estimates"
    ):
        resolve(scene, [], "world", policy=Latest())
    with pytest.raises(SceneError, match="frame 'table' is an ancestor of 'cup'"):
        resolve(scene, [], "table", policy=Latest(), base="cup")
    with pytest.raises(DisconnectedError):
        resolve(scene.add_root("moon"), [Look("cup", good.pose, "moon")], "cup", policy=Latest())
    many = [
        Look("cup", GaussianPose(good.pose.mean @ Pose([1e-6 * k, 0, 0]), SMALL), "left")
        for k in range(501)
    ]
    with pytest.raises(SceneError, match="frame 'cup' has more than 500 paths of observations"):
        resolve(scene, many, "cup", policy=Latest())


def test_observers_that_hang_on_the_target_say_nothing() -> None:
    """An observation of a cup by a camera on the cup has no effect on its pose."""
    scene = room().add_frame("eye", "cup")
    answer = resolve(
        scene, [Look("cup", GaussianPose(Pose(), SMALL), "eye")], "cup", policy=Fused()
    )
    assert remove_observations(answer.scene) == scene
    assert len(answer.gate_results) == 1
