"""Uncertain twists: queries, integration, conditioning and copies."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.noise_model import adjoint, errors, random_covariance
from support.twist_model import exact_with, maps_by_differences, random_movers, sources_of

import tmkit as tk
from tmkit import Measurement, NoiseSource, Pose, Revolute, SceneArrays, SceneGraph
from tmkit._core import right_jacobian, twist_noise
from tmkit.errors import CapacityError, ConfigurationError, SceneError, UnknownNameError
from tmkit.formats.json.scene import scene_from_dict, scene_to_dict
from tmkit.graph import (
    FrameSpecification,
    SceneHistory,
    add_twist,
    collapse_fixed_frames,
    diff,
    gaussian_twist,
    integrate,
    joint_gaussian,
    relate,
)
from tmkit.graph.semantic_edges.edges import update_twist
from tmkit.graph.semantic_edges.integration import finite_difference
from tmkit.graph.traversal import twist_covariance
from tmkit.relations import PoseCoord, SemanticError, SemanticTwist, TwistCoord
from tmkit.spatial import GaussianPose, GaussianTwist
from tmkit.spatial.joint_gaussian import sampling_floor

SEEDS = st.integers(0, 2**32 - 1)
COORDS = (
    TwistCoord("handle|Cup", "Tray", "[handle]"),
    TwistCoord("cup|Cup", "Base", "[base]"),
    TwistCoord("base|Cup", "Base", "[lamp]"),
    TwistCoord("tray|Tray", "Lamp", "[cup]"),
    TwistCoord("lamp|Lamp", "Cup", "[tray]"),
    TwistCoord("cup|Tray", "Cup", "[cup]"),
)


def close(found: Any, expected: Any, *, tolerance: float) -> bool:
    """Tell whether two matrices agree, relative to the greatest entry."""
    found, expected = np.asarray(found), np.asarray(expected)
    return bool(np.abs(found - expected).max() <= tolerance * np.abs(expected).max() + 1e-16)


# --- asked


@settings(max_examples=scaled_examples(0.3))
@given(SEEDS, st.sampled_from(COORDS))
def test_any_twist_has_the_error_that_its_scene_has(seed: int, coord: TwistCoord) -> None:
    """The covariance is that of the differences of all noise sources."""
    scene = random_movers(np.random.default_rng(seed))
    answer = gaussian_twist(scene, coord)
    assert np.array_equal(answer.mean, relate(scene, coord).representation.vector)
    maps = maps_by_differences(scene, lambda exact: relate(exact, coord).representation.vector)
    assert close(answer.covariance, maps @ maps.T, tolerance=1e-5)


@settings(max_examples=scaled_examples(0.3))
@given(SEEDS)
def test_independent_twists_add_up_where_they_are_asked(seed: int) -> None:
    """With exact poses, covariances are transformed by the adjoint and added."""
    scene = random_movers(np.random.default_rng(seed), uncertain_poses=False)
    body, twist = scene.twist_edge("lamp")  # type: ignore[misc]
    scene = scene.set_twist("lamp", twist, relative_to_body=body)
    coord = TwistCoord("cup|Cup", "Base", "[base]")
    expected, point = np.zeros((6, 6)), scene.pose("cup", relative_to="base").translation
    shift = adjoint(Pose(-point))
    for frame in ("tray", "handle"):
        carry = shift @ adjoint(scene.pose(frame, relative_to="base"))
        expected += carry @ twist_covariance(scene, frame) @ carry.T
    assert close(gaussian_twist(scene, coord).covariance, expected, tolerance=1e-12)


@settings(max_examples=scaled_examples(0.3))
@given(SEEDS)
def test_covariances_enter_as_they_are_asked(seed: int) -> None:
    """Any point, axes, frame or direction of a given twist gives the same edge."""
    random = np.random.default_rng(seed)
    exact = random_movers(random, uncertain_poses=False)
    for frame in exact.twist_frames:
        exact = exact.remove_twist(frame)
    known = exact.set_twist(
        "cup",
        random.normal(size=6),
        relative_to_body="Base",
        covariance=random_covariance(random, rank=4),
    )
    for coord in (
        TwistCoord("cup|Cup", "Base", "[cup]"),
        TwistCoord("handle|Cup", "Base", "[tray]"),
        TwistCoord("base|Cup", "Base", "[lamp]"),
    ):
        answer = gaussian_twist(known, coord)
        given_ = SemanticTwist(coord, answer.mean)
        again = add_twist(exact, given_, covariance=answer.covariance, frame="cup")
        assert close(
            twist_covariance(again, "cup"), twist_covariance(known, "cup"), tolerance=1e-11
        )
        changed = update_twist(again, given_, covariance=4.0 * answer.covariance, frame="cup")
        assert close(
            twist_covariance(changed, "cup"), 4.0 * twist_covariance(known, "cup"), tolerance=1e-11
        )
        assert twist_noise(update_twist(again, given_, frame="cup"), "cup") is None
    blocked = exact.set_twist("cup", np.zeros(6), relative_to_body="Tray")
    there = TwistCoord("cup|Cup", "Base", "[cup]")
    given_ = SemanticTwist(there, gaussian_twist(known, there).mean)
    turned = add_twist(
        blocked, given_, covariance=twist_covariance(known, "cup"), on_conflict="invert"
    )
    assert close(
        gaussian_twist(turned, there).covariance, twist_covariance(known, "cup"), tolerance=1e-11
    )


def test_a_covariance_is_kept_to_the_bit() -> None:
    """What is given at the frame, in its axes, is what is answered; zero and nothing are exact."""
    scene = SceneGraph().add_frame("cart", "world")
    covariance = random_covariance(np.random.default_rng(1))
    unsure = scene.set_twist(
        "cart", [1, 0, 0, 0, 0, 1], relative_to_body="world", covariance=covariance
    )
    coord = TwistCoord("cart|cart", "world", "[cart]")
    even = 0.5 * (covariance + covariance.T)
    assert np.array_equal(twist_covariance(unsure, "cart"), even)
    given_ = SemanticTwist(coord, [1, 0, 0, 0, 0, 1])
    assert np.array_equal(
        twist_covariance(add_twist(scene, given_, covariance=covariance), "cart"), even
    )
    assert close(gaussian_twist(unsure, coord).covariance, even, tolerance=1e-14)
    exact = scene.set_twist("cart", [1, 0, 0, 0, 0, 1], relative_to_body="world")
    assert twist_noise(exact, "cart") is None
    assert exact == scene.set_twist(
        "cart", [1, 0, 0, 0, 0, 1], relative_to_body="world", covariance=np.zeros((6, 6))
    )
    assert unsure.set_twist("cart", [1, 0, 0, 0, 0, 1], relative_to_body="world") == exact
    assert not gaussian_twist(exact, coord).covariance.any()
    assert not twist_covariance(scene, "cart").any()
    assert unsure.noisy_frames == ()
    assert exact.set_twist("cart", [1, 0, 0, 0, 0, 1], relative_to_body="world") is exact


# --- in time


def edge_errors(before: SceneGraph, dt: float) -> Any:
    """Return how far all edges of an exact scene are off those of ``before``, after a time."""
    frames = before.frame_names[1:]
    means = [integrate(before, dt).local_pose(frame).inverse() for frame in frames]

    def of(scene: SceneGraph) -> Any:
        after = integrate(scene, dt)
        return np.concatenate(
            [(mean @ after.local_pose(f)).log() for mean, f in zip(means, frames, strict=True)]
        )

    return of


@settings(max_examples=scaled_examples(0.2))
@given(SEEDS, st.floats(-1.5, 1.5))
def test_moved_scenes_have_the_errors_that_moving_makes(seed: int, dt: float) -> None:
    """Integration of an uncertain scene equals that of sampled scenes, to first order."""
    scene = random_movers(np.random.default_rng(seed))
    after = integrate(scene, dt)
    pairs = [(frame, str(scene.parent(frame))) for frame in scene.frame_names[1:]]
    maps = maps_by_differences(scene, edge_errors(scene, dt))
    assert close(joint_gaussian(after, pairs)[1], maps @ maps.T, tolerance=1e-5)
    assert all(
        twist_noise(after, frame) == twist_noise(scene, frame) for frame in scene.twist_frames
    )
    assert set(sources_of(after)) <= set(sources_of(scene))


@settings(max_examples=scaled_examples(0.3))
@given(SEEDS, st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_two_times_are_one(seed: int, first: float, second: float) -> None:
    """Two integration steps give the covariance of one step of the total time."""
    random = np.random.default_rng(seed)
    scene = SceneGraph().add_frame("cart", "world", pose=Pose.exp(random.normal(size=6)))
    scene = scene.set_covariance("cart", random_covariance(random))
    scene = scene.set_twist(
        "cart",
        random.normal(size=6),
        relative_to_body="world",
        covariance=random_covariance(random),
    )
    twice, once = (
        s.gaussian_pose("cart", relative_to="world")
        for s in (integrate(integrate(scene, first), second), integrate(scene, first + second))
    )
    assert twice.mean.is_close(once.mean, translation_tolerance=1e-12, rotation_tolerance=1e-7)
    assert close(twice.covariance, once.covariance, tolerance=1e-11)
    back = integrate(integrate(scene, first), -first)
    assert close(back.edge_covariance("cart"), scene.edge_covariance("cart"), tolerance=1e-11)


def test_a_moved_pose_is_that_of_an_uncertain_twist() -> None:
    """A body from an exact pose has the covariance of :meth:`GaussianTwist.integrate`."""
    random = np.random.default_rng(2)
    vector, covariance = random.normal(size=6), random_covariance(random)
    scene = (
        SceneGraph()
        .add_frame("cart", "world")
        .set_twist("cart", vector, relative_to_body="world", covariance=covariance)
    )
    known = GaussianTwist(vector, covariance).integrate(0.7)
    moved = integrate(scene, 0.7).gaussian_pose("cart", relative_to="world")
    assert moved.mean.is_close(known.mean)
    assert close(moved.covariance, known.covariance, tolerance=1e-12)
    assert integrate(scene, 0.0).noisy_frames == ()


def test_samples_of_moved_scenes_have_the_covariance() -> None:
    """Sampled motions have the predicted covariance, within the sampling error."""
    random = np.random.default_rng(3)
    scene, dt, count = random_movers(random), 0.8, 4000
    sources = sources_of(scene)
    assert len(sources) == 4
    after = integrate(scene, dt).gaussian_pose("lamp", relative_to="base")
    drawn = []
    for _ in range(count):
        exact = exact_with(
            scene, {source: random.normal(size=source.dimension) for source in sources}
        )
        drawn.append(integrate(exact, dt).pose("lamp", relative_to="base").as_array())
    xi = errors(after.mean, np.array(drawn))
    floor = sampling_floor(after.covariance, count)  # 0.03 here
    assert np.linalg.norm(xi.T @ xi / count - after.covariance) < 2.5 * floor * np.linalg.norm(
        after.covariance
    )
    naive = scene.gaussian_pose("lamp", relative_to="base").covariance
    assert np.linalg.norm(xi.T @ xi / count - naive) > 10.0 * floor * np.linalg.norm(
        after.covariance
    )


@settings(max_examples=scaled_examples(0.3))
@given(SEEDS, st.floats(0.05, 0.4))
def test_what_moved_tells_how_it_moved(seed: int, dt: float) -> None:
    """The finite difference of two versions has the twists and their errors."""
    scene = random_movers(np.random.default_rng(seed)).remove_twist("lamp").remove_twist("handle")
    again = finite_difference(scene, integrate(scene, dt), dt)
    assert again.twist_frames == ("tray",)
    assert np.allclose(again.twist_edge("tray")[1], scene.twist_edge("tray")[1], atol=1e-7)  # type: ignore[index]
    assert np.abs(twist_covariance(again, "tray") - twist_covariance(scene, "tray")).max() < 1e-11
    still = finite_difference(scene, scene, dt, frames=["cup"])
    assert twist_noise(still, "cup") is None


def test_differences_of_poses_are_as_sure_as_the_poses() -> None:
    """Errors of the two poses that have nothing in common both count, divided by the time."""
    small = np.diag([1e-6] * 6)
    earlier = SceneGraph().add_frame("cart", "world", pose=GaussianPose(covariance=small))
    later = earlier.set_pose("cart", Pose([0.1, 0, 0])).set_covariance("cart", small)
    twist = twist_covariance(finite_difference(earlier, later, 0.1), "cart")
    assert np.allclose(twist[:3, :3], np.diag([2e-4, 2e-4 + 5e-7, 2e-4 + 5e-7]), rtol=1e-9)
    exact = finite_difference(
        earlier.set_covariance("cart", None), later.set_covariance("cart", None), 0.1
    )
    assert twist_noise(exact, "cart") is None


# --- learned


@settings(max_examples=scaled_examples(0.3))
@given(SEEDS)
def test_where_it_came_to_says_how_fast_it_is(seed: int) -> None:
    """A later pose measurement changes the twist as the Kalman filter does."""
    random = np.random.default_rng(seed)
    vector, covariance = (
        0.5 * random.normal(size=6),
        random_covariance(random, linear=1e-2, angular=1e-2),
    )
    dt, noise = 0.6, random_covariance(random) + 1e-8 * np.eye(6)
    scene = SceneGraph().add_frame("cart", "world", pose=Pose.exp(random.normal(size=6)))
    scene = scene.set_twist("cart", vector, relative_to_body="world", covariance=covariance)
    moved = integrate(scene, dt)
    map_ = dt * right_jacobian(vector * dt)
    gain = covariance @ map_.T @ np.linalg.inv(map_ @ covariance @ map_.T + noise)
    expected = covariance - gain @ map_ @ covariance
    where = moved.pose("cart", relative_to="world")
    looked = moved.condition(
        Measurement.of_pose("cart", where, relative_to="world", covariance=noise)
    )
    assert close(twist_covariance(looked, "cart"), expected, tolerance=1e-8)
    assert np.allclose(looked.twist_edge("cart")[1], vector, atol=1e-12)  # type: ignore[index]
    seen = 1e-4 * random.normal(size=6)
    corrected = moved.condition(
        Measurement.of_pose("cart", where @ Pose.exp(seen), relative_to="world", covariance=noise)
    )
    shift = corrected.twist_edge("cart")[1] - vector  # type: ignore[index]
    assert np.allclose(shift, gain @ seen, atol=1e-6)
    assert corrected._defects() == ""  # type: ignore[attr-defined]
    pose = corrected.pose("cart", relative_to="world")
    later = integrate(integrate(corrected, dt), -dt)
    assert later.pose("cart", relative_to="world").is_close(
        pose, translation_tolerance=1e-9, rotation_tolerance=1e-7
    )
    assert np.trace(integrate(corrected, 1.0).edge_covariance("cart")) < np.trace(
        integrate(moved, 1.0).edge_covariance("cart")
    )


def test_what_was_not_moved_by_a_twist_says_nothing_of_it() -> None:
    """A measurement leaves twists alone that share no source with the path."""
    scene = random_movers(np.random.default_rng(4)).set_covariance("tray", 1e-6 * np.eye(6))
    looked = scene.condition(
        Measurement.of_pose(
            "tray",
            scene.pose("tray", relative_to="base"),
            relative_to="base",
            covariance=1e-6 * np.eye(6),
        )
    )
    assert all(
        twist_noise(looked, frame) == twist_noise(scene, frame) for frame in scene.twist_frames
    )
    assert looked.noise("tray") != scene.noise("tray")


# --- kept


@settings(max_examples=scaled_examples(0.3))
@given(SEEDS)
def test_a_scene_is_the_same_after_every_way_out_and_in(seed: int) -> None:
    """All ways of copying preserve the correlations of twists and poses."""
    start = random_movers(np.random.default_rng(seed))
    scene = integrate(start, 0.5)
    document = scene_to_dict(scene)
    twins = [
        pickle.loads(pickle.dumps(scene)),
        scene_from_dict(document),
        SceneGraph.from_frames([scene.specification(name) for name in scene.frame_names]),
        start.apply(diff(start, scene)),
        SceneArrays(scene).freeze(),
    ]
    for twin in twins:
        assert twin == scene
        assert twin.digest() == scene.digest()
        assert hash(twin) == hash(scene)
        assert scene_to_dict(twin) == document
        again, further = (
            integrate(twin, 0.5).gaussian_pose("lamp", relative_to="base"),
            integrate(scene, 0.5),
        )
        assert np.array_equal(
            again.covariance, further.gaussian_pose("lamp", relative_to="base").covariance
        )
    assert scene.apply(diff(scene, start)) == start
    assert scene._defects() == ""  # type: ignore[attr-defined]


def test_errors_of_twists_are_content() -> None:
    """Scenes with different errors or correlations are different; labels have no effect."""
    source, column = NoiseSource(1, "wheel"), np.array([[0.1, 0, 0, 0, 0, 0]]).T
    base = SceneGraph().add_frame("a", "world").add_frame("b", "world")
    base = base.set_twist("a", np.zeros(6), relative_to_body="world").set_twist(
        "b", np.zeros(6), relative_to_body="world"
    )
    together = base.set_twist_noise("a", {source: column}).set_twist_noise("b", {source: column})
    apart = base.set_twist_noise("a", {source: column}).set_twist_noise(
        "b", {NoiseSource(1): column}
    )
    twin = NoiseSource(1, "other label")
    renamed = base.set_twist_noise("a", {twin: column}).set_twist_noise("b", {twin: column})
    assert len({base, together, apart, renamed}) == 3
    assert len({scene.digest() for scene in (base, together, apart, renamed)}) == 3
    assert together == renamed
    assert diff(base, together).frames[0].fields == ("twist",)
    relative = TwistCoord("b|b", "a", "[b]")
    assert not gaussian_twist(together, relative).covariance.any()
    assert gaussian_twist(apart, relative).covariance[0, 0] == pytest.approx(0.02)
    assert together.set_twist_noise("a", twist_noise(together, "b")) is together
    assert together.set_twist_noise("a", {}).set_twist_noise("b", None) == base


def test_whole_scenes_take_errors_of_twists_along() -> None:
    """Mounting copies errors, other structural edits preserve them, reparenting ends them."""
    small = np.diag([1e-2, 0, 0, 0, 0, 0])
    part = (
        SceneGraph()
        .add_body("Rail")
        .add_frame("rail", "world", body="Rail")
        .add_frame("cart", "rail", pose=Pose([1, 0, 0]))
    )
    part = integrate(
        part.set_twist("cart", [1, 0, 0, 0, 0, 0], relative_to_body="Rail", covariance=small), 1.0
    )
    both = SceneGraph().mount(part, "world", prefix="l/").mount(part, "world", prefix="r/")
    assert both.gaussian_pose("l/cart", relative_to="r/cart").covariance[0, 0] == pytest.approx(
        2e-2
    )
    assert twist_noise(both, "l/cart").sources == both.noise("l/cart").sources  # type: ignore[union-attr]
    assert twist_noise(both, "l/cart").sources != twist_noise(both, "r/cart").sources  # type: ignore[union-attr]
    assert np.array_equal(twist_covariance(both, "r/cart"), small)
    merged = SceneGraph().add_frame("table", "world").merge(part)
    assert twist_noise(merged, "cart") == twist_noise(part, "cart")
    assert twist_noise(part.extract("rail"), "cart") == twist_noise(part, "cart")
    chain = part.add_frame("pin", "cart").add_frame("tip", "pin", classes=["tool"])
    folded = collapse_fixed_frames(chain)
    assert "pin" not in folded
    assert twist_noise(folded, "cart") == twist_noise(part, "cart")
    renamed = merged.rename_frame("cart", "truck")
    assert twist_noise(renamed, "truck") == twist_noise(part, "cart")
    assert twist_noise(renamed.remove_twist("truck"), "truck") is None
    for held in (
        renamed.reparent("truck", "table"),
        renamed.reparent("truck", "table", pose=Pose()),
    ):
        assert held.twist_edge("truck") is None  # what is held goes with the hand


def test_edits_and_histories_know_errors_of_twists() -> None:
    """Many edits at once, and edits that are remembered, have them as single edits do."""
    scene = SceneGraph().add_frame("cart", "world")
    with scene.edit() as edit:
        edit.set_twist("cart", np.ones(6), relative_to_body="world", covariance=np.eye(6))
    log = SceneHistory(scene).set_twist(
        "cart", np.ones(6), relative_to_body="world", covariance=np.eye(6)
    )
    assert edit.finish() == log.scene
    assert "covariance=" in log.entries[-1].text
    log = log.set_twist_noise("cart", None)
    assert twist_noise(log.scene, "cart") is None
    assert np.array_equal(twist_covariance(log.undo().scene, "cart"), np.eye(6))


def test_arrays_hold_errors_of_twists() -> None:
    """Edits of arrays and of scenes give equal bits."""
    scene = random_movers(np.random.default_rng(5))
    arrays = SceneArrays(scene)
    assert arrays.freeze() == scene
    arrays.set_twist("tray", np.zeros(6), relative_to_body="Base", covariance=np.eye(6))
    arrays.set_twist("handle", np.ones(6), relative_to_body="Tray")
    arrays.remove_twist("lamp")
    assert np.array_equal(twist_covariance(arrays, "tray"), np.eye(6))
    assert twist_noise(arrays, "handle") is None
    assert twist_noise(arrays, "lamp") is None
    noise = twist_noise(arrays, "tray")
    wanted = scene.set_twist("tray", np.zeros(6), relative_to_body="Base").set_twist_noise(
        "tray", noise
    )
    wanted = wanted.set_twist("handle", np.ones(6), relative_to_body="Tray").remove_twist("lamp")
    assert arrays.freeze() == wanted
    arrays.set_twist("lamp", np.ones(6), relative_to_body="Base")
    arrays.set_twist_noise("lamp", noise)
    arrays.remove_frame("lamp")
    arrays.add_body("Lamp")
    arrays.add_frame("lamp", "cup", body="Lamp")
    arrays.set_twist("lamp", np.ones(6), relative_to_body="Base")
    assert twist_noise(arrays.freeze(), "lamp") is None
    assert arrays.specification("tray").twist_noise == noise
    with pytest.raises(SceneError, match="frame 'base' has no twist"):
        arrays.set_twist_noise("base", noise)
    with pytest.raises(
        SceneError, match=r"covariance of the twist of 'lamp' relative to 'Base' is not positive"
    ):
        arrays.set_twist("lamp", np.ones(6), relative_to_body="Base", covariance=-np.eye(6))
    with pytest.raises(CapacityError, match="no room for another twist"):
        SceneArrays(scene.add_frame("pot", "base"), capacity={"twists": 3}).set_twist(
            "pot", np.ones(6), relative_to_body="Base", covariance=np.eye(6)
        )


# --- rejected


def test_bad_covariances_are_rejected_by_name() -> None:
    """The edge is named, and what is wrong with the numbers; the scene stays as it was."""
    scene = SceneGraph().add_frame("cart", "world")
    given_ = SemanticTwist(TwistCoord("cart|cart", "world", "[world]"), np.ones(6))
    negative = np.diag([1.0, 1, 1, 1, 1, -2])
    named = (
        r"the covariance of the twist of 'cart' relative to 'world' is not positive semi-definite:"
        r" its eigenvalues are"
    )
    with pytest.raises(SceneError, match=rf"{named} \[-2, 1, 1, 1, 1, 1\]") as caught:
        add_twist(scene, given_, covariance=negative)
    assert caught.value.eigenvalues == (-2, 1, 1, 1, 1, 1)  # type: ignore[attr-defined]
    with pytest.raises(SceneError, match=rf"{named} \[-2, 1, 1, 1, 1, 1\]"):
        scene.set_twist("cart", np.ones(6), relative_to_body="world", covariance=negative)
    for one in (
        partial(add_twist, scene),
        lambda _, covariance: scene.set_twist(
            "cart", np.ones(6), relative_to_body="world", covariance=covariance
        ),
    ):
        with pytest.raises(
            SceneError,
            match="relative to 'world' is not symmetric: two entries that should be equal",
        ):
            one(given_, covariance=np.eye(6) + np.eye(6, k=1))
        with pytest.raises(SceneError, match="relative to 'world' must have shape"):
            one(given_, covariance=np.eye(3))
        with pytest.raises(SceneError, match="finite"):
            one(given_, covariance=np.full((6, 6), np.nan))
    with pytest.raises(
        SceneError,
        match="frame 'cart' has no twist edge to set an error on; add one with set_twist",
    ):
        scene.set_twist_noise("cart", None)
    with pytest.raises(UnknownNameError, match="did you mean 'cart'"):
        scene.set_twist_noise("cort", None)
    noise = twist_noise(
        scene.set_twist("cart", np.ones(6), relative_to_body="world", covariance=np.eye(6)), "cart"
    )
    with pytest.raises(SceneError, match="frame 'cart' has no twist"):
        FrameSpecification("cart", "world").replace(twist_noise=noise)


def test_questions_that_have_no_answer() -> None:
    """A twist that is not known, coordinates of something else, a joint on the way."""
    scene = (
        SceneGraph().add_frame("link", "world", joint=Revolute([0, 0, 1])).add_frame("tool", "link")
    )
    scene = scene.set_twist("tool", np.ones(6), relative_to_body="world", covariance=np.eye(6))
    with pytest.raises(
        SemanticError, match="a path of twists leads from body 'world' to body 'link'"
    ):
        gaussian_twist(scene, TwistCoord("link|link", "world", "[world]"))
    with pytest.raises(SemanticError, match="it takes coordinates of a twist"):
        gaussian_twist(scene, PoseCoord("{tool}|tool", "{world}|world", "[world]"))
    with pytest.raises(UnknownNameError, match="did you mean 'tool'"):
        gaussian_twist(scene, TwistCoord("toool|tool", "world", "[world]"))
    coord = TwistCoord("tool|tool", "world", "[world]")
    with pytest.raises(ConfigurationError, match="a configuration q is needed"):
        gaussian_twist(scene, coord)
    assert close(gaussian_twist(scene, coord, q=[0.3]).covariance, np.eye(6), tolerance=1e-12)
    apart = scene.add_root("elsewhere")
    with pytest.raises(SemanticError, match="a path of poses leads there"):
        gaussian_twist(apart, TwistCoord("tool|tool", "world", "[elsewhere]"))


def test_documents_say_what_is_wrong_with_errors_of_twists() -> None:
    """An invalid covariance in a file is rejected with its place; older files have none."""
    scene = (
        SceneGraph()
        .add_frame("cart", "world")
        .set_twist("cart", np.ones(6), relative_to_body="world", covariance=np.eye(6))
    )
    document = scene_to_dict(scene)
    document["frames"][1]["twist"]["noise"]["covariance"][0] = 2.0
    with pytest.raises(
        tk.errors.FileFormatError, match=r"twist.*noise: the covariance is not the sum"
    ):
        scene_from_dict(document)
    del document["frames"][1]["twist"]["noise"]
    assert scene_from_dict(document) == scene.set_twist_noise("cart", None)
