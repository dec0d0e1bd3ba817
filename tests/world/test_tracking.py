"""Predictions, tracks, outdated data and the PDDL state, with known answers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.gaussian_poses import gaussian_poses
from support.stamped_model import jacobians as numeric_jacobians

import tmkit as tk
from tmkit.errors import BlockError, SceneError
from tmkit.graph import Evidence, Free, SceneGraph, Sphere, Stamped, add_observation, observations
from tmkit.spatial import GaussianPose, Pose, fuse
from tmkit.tamp import load_planning_domain
from tmkit.world import (
    BlockRunner,
    LiveScene,
    ObjectTracker,
    OnChange,
    OutdatedRemover,
    Predictor,
    StatePublisher,
    run_block,
)

# --------------------------------------------------------------------------------------- prediction


def moving(*, covariance: float = 1e-4) -> SceneGraph:
    """Return a scene with 'cup' moving at 0.5 m/s along x and 0.2 rad/s about z, at 3 stamps."""
    scene = SceneGraph().add_frame("table", "world", pose=Pose([1.0, 0.0, 0.7]))
    scene = scene.add_frame("cup", "table", classes=["movable"], shapes=[Sphere(0.04)])
    for stamp in (0.0, 1.0, 2.0):
        pose = Pose.from_rpy([0.5 * stamp, 0.0, 0.0], [0.0, 0.0, 0.2 * stamp])
        scene = scene.add_stamped_pose("cup", pose, stamp=stamp)
    return scene.set_covariance("cup", covariance * np.eye(6)) if covariance else scene


def test_a_prediction_goes_on_as_the_frame_moved() -> None:
    """The screw through the last two poses; the class, the shape, the stamp."""
    scene = run_block(LiveScene(moving()), Predictor("next", "world", horizon=1.0))
    before, last = (scene.stamped_poses("cup").at(t) for t in (1.0, 2.0))  # type: ignore[union-attr]
    expected = last @ Pose.exp((before.inverse() @ last).log())
    assert scene.local_pose("next cup").is_close(expected)
    assert scene.parent("next cup") == "table"
    assert scene.attributes("next cup")["of"] == "cup"
    assert scene.attribute_stamps("next cup")["of"] == 3.0
    assert not scene.shapes("next cup")[0].collision
    assert scene.twist_edge("cup") is None


def test_the_covariance_of_a_prediction_is_the_known_one() -> None:
    """The covariance is the sum of pose, twist (dt^2) and acceleration (s dt^3 / 3) terms."""
    scene = SceneGraph().add_frame(
        "cup", "world", classes=["movable"], pose=GaussianPose(covariance=4e-4 * np.eye(6))
    )
    for stamp in (0.0, 2.0):
        scene = scene.add_stamped_pose("cup", Pose([0.5 * stamp, 0.0, 0.0]), stamp=stamp)
    made = run_block(
        LiveScene(scene), Predictor("next", "world", horizon=3.0, acceleration_noise=(0.03, 0.06))
    )
    covariance = made.edge_covariance("next cup")
    twist = 2.0 * 4e-4 / 2.0**2  # of the difference of two poses, 2 s apart
    assert covariance[0, 0] == pytest.approx(4e-4 + twist * 9.0 + 0.03 * 27.0 / 3.0)
    assert covariance[5, 5] == pytest.approx(4e-4 + twist * 9.0 + 0.06 * 27.0 / 3.0)


@given(gaussian_poses, gaussian_poses, st.floats(0.1, 2.0), st.booleans())
def test_a_prediction_has_the_errors_of_the_last_two_poses(
    first: GaussianPose, second: GaussianPose, horizon: float, has_older: bool
) -> None:
    """It is ``T1 exp(h log(T0^-1 T1))``, with the numeric derivatives by both errors."""
    scene = SceneGraph().add_frame("cup", "world", classes=["movable"], joint=Free())
    if has_older:
        scene = scene.add_stamped_pose("cup", Pose(), stamp=0.0, covariance=np.eye(6))
    for stamp, pose in ((1.0, first), (2.0, second)):
        scene = scene.add_stamped_pose("cup", pose.mean, stamp=stamp, covariance=pose.covariance)
    block = Predictor("next", "world", horizon=horizon, acceleration_noise=(0.0, 0.0))
    made = run_block(LiveScene(scene), block)
    ends = first.mean.as_matrix(), second.mean.as_matrix()
    jacobians = numeric_jacobians(*ends, 1.0 + horizon, "screw")
    parts = [m @ pose.covariance @ m.T for m, pose in zip(jacobians, (first, second), strict=True)]
    expected = parts[0] + parts[1]
    size = max(np.abs(expected).max(), 1e-12)
    np.testing.assert_allclose(made.edge_covariance("next cup"), expected, atol=1e-5 * size)


@settings(max_examples=scaled_examples(0.2), deadline=None)
@given(st.lists(st.floats(0.01, 20.0), min_size=2, max_size=4, unique=True), st.booleans())
def test_the_covariance_grows_with_the_horizon(horizons: list[float], has_twist: bool) -> None:
    """Its growth has no negative eigenvalue."""
    scene = moving()
    if has_twist:
        scene = scene.set_twist(
            "cup", [0.5, 0, 0, 0, 0, 0], relative_to_body="table", covariance=1e-3 * np.eye(6)
        )
    found = [
        run_block(LiveScene(scene), Predictor("next", "world", horizon=horizon)).edge_covariance(
            "next cup"
        )
        for horizon in sorted(horizons)
    ]
    assert all(np.trace(b) > np.trace(a) for a, b in itertools.pairwise(found))


def test_what_is_not_predicted() -> None:
    """A single pose gives no prediction, and the horizon must be a time."""
    scene = (
        SceneGraph()
        .add_frame("cup", "world", classes=["movable"])
        .add_stamped_pose("cup", Pose(), stamp=1.0)
    )
    assert (
        run_block(LiveScene(scene), Predictor("next", "world")).frames_of_class("prediction") == ()
    )
    with pytest.raises(
        SceneError, match="function block 'next': expected a positive horizon, got 0"
    ):
        Predictor("next", "world", horizon=0.0)


# ----------------------------------------------------------------------------------------- tracking

_R = np.diag([1e-4] * 3 + [1e-3] * 3)


def look(
    scene: SceneGraph, stamp: float, *places: tuple[float, float], kind: str = "cup"
) -> SceneGraph:
    """Return the version after a look of a camera, without earlier detections."""
    for old in scene.frames_of_class("detection"):
        scene = scene.remove_frame(old)
    for k, (x, y) in enumerate(places):
        scene = scene.add_frame(
            f"seen {k}",
            "camera",
            pose=GaussianPose(Pose([x, y, 0.0]), _R),
            classes=["detection", kind],
        )
        scene = scene.set_attribute(f"seen {k}", "score", Stamped(0.9, stamp))
    return scene


def tracked(
    looks: list[tuple[float, list[tuple[float, float]]]], block: ObjectTracker
) -> SceneGraph:
    """Return the version after looks of a camera."""
    world = LiveScene(SceneGraph().add_frame("camera", "world", pose=Pose([0.0, 0.0, 2.0])))
    for stamp, places in looks:
        world.update(lambda scene, stamp=stamp, places=places: look(scene, stamp, *places))  # type: ignore[misc]
        made = run_block(world, block)
        assert run_block(world, block) is made  # a look counts once
    return world.scene


def test_a_standing_object_is_known_better_with_each_look() -> None:
    """Without drift, n looks have the mean pose and the covariance divided by n."""
    rng = np.random.default_rng(0)
    places = [tuple(0.01 * rng.normal(size=2)) for _ in range(6)]
    looks = [(float(k), [place]) for k, place in enumerate(places)]
    scene = tracked(looks, ObjectTracker("tracks", "camera", drift=(0.0, 0.0)))  # type: ignore[arg-type]
    assert scene.frames_of_class("track") == ("tracks 1",)
    assert scene.edge_covariance("tracks 1") == pytest.approx(_R / 6.0, abs=1e-7)
    assert scene.local_pose("tracks 1").translation[:2] == pytest.approx(np.mean(places, axis=0))
    assert scene.classes("tracks 1") == ("track", "cup")
    assert scene.attributes("tracks 1")["hits"] == 6


def test_one_step_is_that_of_a_filter() -> None:
    """The covariance grows by drift times dt, then the detection is fused with it."""
    scene = tracked(
        [(0.0, [(0.0, 0.0)]), (2.0, [(0.03, 0.0)])],
        ObjectTracker("t", "camera", drift=(1e-3, 1e-2)),
    )
    prior = GaussianPose(Pose(), _R + np.diag([2e-3] * 3 + [2e-2] * 3))
    expected = fuse([prior, GaussianPose(Pose([0.03, 0.0, 0.0]), _R)]).pose
    assert scene.local_pose("t 1").is_close(expected.mean)
    assert scene.edge_covariance("t 1") == pytest.approx(expected.covariance)


@pytest.mark.parametrize("seed", range(4))
def test_names_stay_with_objects(seed: int) -> None:
    """Three objects that move slowly, seen in any order, with false detections and misses."""
    rng = np.random.default_rng(seed)
    looks = []
    for k in range(20):
        truth = [(0.5 * n + 0.01 * k, 0.02 * k) for n in range(3)]
        here = [
            tuple(np.add(place, 0.01 * rng.normal(size=2)))
            for place in truth
            if k < 3 or rng.random() > 0.2
        ]
        here += [(3.0 + k, 0.0)] if k >= 3 and rng.random() < 0.3 else []
        looks.append((0.1 * k, here if k == 0 else [here[i] for i in rng.permutation(len(here))]))
    scene = tracked(looks, ObjectTracker("t", "camera", max_misses=6, drift=(1e-2, 1e-2)))  # type: ignore[arg-type]
    assert set(scene.frames_of_class("track")) == {"t 1", "t 2", "t 3"}
    places = [scene.local_pose(f"t {n}").translation[0] for n in (1, 2, 3)]
    assert places == pytest.approx([0.19, 0.69, 1.19], abs=0.06)


def test_tracks_begin_and_end() -> None:
    """Tentative first; missed too often, gone; another comes with a new name."""
    block, one = ObjectTracker("t", "camera", confirm=3, max_misses=1), [(0.0, 0.0)]
    assert tracked([(0.0, one)], block).frames_of_class("tentative") == ("t 1",)
    far = [(5.0, 0.0)]
    scene = tracked([(0.0, one), (1.0, one), (2.0, one), (3.0, far)], block)
    assert (scene.frames_of_class("track"), scene.frames_of_class("tentative")) == (
        ("t 1",),
        ("t 2",),
    )
    assert scene.attributes("t 1")["misses"] == 1
    scene = tracked([(0.0, one), (1.0, one), (2.0, one), (3.0, far), (4.0, far), (5.0, one)], block)
    assert (scene.frames_of_class("track"), scene.frames_of_class("tentative")) == (
        (),
        ("t 2", "t 3"),
    )


def test_detections_beyond_the_gate_or_of_another_kind_are_others() -> None:
    """And a late look is none."""
    looks = [(0.0, [(0.0, 0.0)]), (1e-6, [(0.1, 0.0)])]
    assert len(tracked(looks, ObjectTracker("t", "camera")).frames_of_class("tentative")) == 2
    world = LiveScene(look(SceneGraph().add_frame("camera", "world"), 1.0, (0.0, 0.0)))
    run_block(world, ObjectTracker("t", "camera"))
    world.update(lambda scene: look(scene, 2.0, (0.0, 0.0), kind="jug"))
    scene = run_block(world, ObjectTracker("t", "camera"))
    assert [scene.classes(name)[1] for name in scene.frames_of_class("tentative")] == ["cup", "jug"]
    world.update(lambda scene: look(scene, 1.5, (0.0, 0.0)))
    assert run_block(world, ObjectTracker("t", "camera")) is world.scene


def test_detections_need_a_stamp() -> None:
    """And a tracker sensible numbers."""
    scene = (
        SceneGraph()
        .add_frame("camera", "world")
        .add_frame("d", "camera", classes=["detection"], pose=GaussianPose(covariance=_R))
    )
    with pytest.raises(BlockError, match="function block 't' failed: detection 'd' has no stamp"):
        run_block(LiveScene(scene), ObjectTracker("t", "camera"))
    with pytest.raises(SceneError, match="0 < probability < 1"):
        ObjectTracker("t", "camera", gate=1.0)
    with pytest.raises(SceneError, match="function block 't': expected a drift of at least 0, got"):
        ObjectTracker("t", "camera", drift=(-1.0, 0.0))


# ------------------------------------------------------------------------------------ outdated data


def test_outdated_data_goes() -> None:
    """Frames, observations, stamped poses and attributes are removed; unstamped data stays."""
    scene = (
        SceneGraph().add_frame("map", "world").add_frame("wall", "map").add_frame("robot", "map")
    )
    for stamp in (80.0, 95.0, 100.0):
        scene = scene.add_stamped_pose("robot", Pose([stamp, 0.0, 0.0]), stamp=stamp)
    scene = scene.set_attribute("robot", "battery", Stamped(0.9, 80.0)).set_attribute(
        "robot", "name", "r2"
    )
    scene = (
        scene.add_frame("old", "map")
        .set_attribute("old", "seen", Stamped(1, 50.0))
        .add_frame("dent", "old")
    )
    scene = scene.add_frame("tray", "map").set_attribute("tray", "seen", Stamped(1, 50.0))
    scene = scene.add_frame("cup", "tray").set_attribute("cup", "seen", Stamped(1, 99.0))
    for stamp in (60.0, 99.5):
        scene = add_observation(
            scene, "cup", Pose(), relative_to="wall", evidence=Evidence(stamp=stamp)
        )
    scene = scene.add_frame("elsewhere", "world").set_attribute(
        "elsewhere", "seen", Stamped(1, 0.0)
    )
    world, block = LiveScene(scene), OutdatedRemover("tidy", "map", max_age=10.0)
    made = run_block(world, block)
    assert set(scene.frame_names) - set(made.frame_names) == {"old", "dent", "cup seen from wall"}
    assert [one.stamp for one in observations(made)] == [99.5]
    assert made.group_names == ("cup seen from wall (2)",)
    known = made.stamped_poses("robot")
    assert known is not None
    assert known.stamps.tolist() == [95.0, 100.0]
    assert dict(made.attributes("robot")) == {"name": "r2"}
    assert dict(made.attributes("tray")) == {}  # it stays for what is on it
    assert run_block(world, block) is made


def test_outdated_by_a_clock() -> None:
    """Without new data, the clock determines which data is outdated."""
    scene = (
        SceneGraph()
        .add_frame("map", "world")
        .add_frame("cup", "map")
        .set_attribute("cup", "seen", Stamped(1, 99.0))
    )
    assert "cup" in run_block(LiveScene(scene), OutdatedRemover("tidy", "map", max_age=10.0))
    assert "cup" in run_block(
        LiveScene(scene), OutdatedRemover("tidy", "map", max_age=10.0, clock=lambda: 109.0)
    )
    assert "cup" not in run_block(
        LiveScene(scene), OutdatedRemover("tidy", "map", max_age=10.0, clock=lambda: 109.1)
    )
    with pytest.raises(
        SceneError, match="function block 'tidy': expected a max_age of at least 0, got nan"
    ):
        OutdatedRemover("tidy", "map", max_age=math.nan)


# --------------------------------------------------------------------------------------- PDDL state


def test_the_state_is_published_when_it_changes() -> None:
    """Block 'a' is put on block 'b', then the table is painted, then somebody takes 'a' away."""
    scene = tk.load_scene("panda_table", "blocks3")
    domain = load_planning_domain("blocks", robot=tk.load_manipulator("panda"))
    told: list[tuple[str, ...]] = []
    q = tuple(tk.load_manipulator("panda").ready_configuration(scene))
    world = LiveScene(scene)
    block = StatePublisher("state", "world", domain=domain, on_state=told.append, q=q)
    runner = BlockRunner(world, [block], triggers={"state": OnChange()})
    runner.poll()
    assert not runner.errors
    assert tuple(world.scene.group("state").attributes["facts"]) == told[0]
    height = 2.0 * scene.shapes("a")[0].shape.bounds[1][2]
    world.update(lambda scene: scene.reparent("a", "b", pose=Pose([0.0, 0.0, height])))
    runner.poll()
    assert {"(on a b)"} < set(told[1]) - set(told[0])
    world.update(lambda scene: scene.set_attribute("table", "color", "green"))
    runner.poll()
    assert len(told) == 2
    world.update(lambda scene: scene.set_pose("a", Pose([0.0, 0.0, 3.0])))
    runner.poll()
    assert len(runner.errors) <= 1  # the domain may refuse to describe it
    assert world.scene.pose("a", q=q).translation[2] > 3.0
