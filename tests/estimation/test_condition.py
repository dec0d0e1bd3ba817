"""Conditioning against Gaussian algebra and a least-squares solver, and rejected inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import least_squares
from support import noise_model as model
from support.effort import scaled_examples

from tmkit import Measurement, NoiseSource, Pose, Revolute, SceneGraph
from tmkit._core import sample_poses
from tmkit.errors import ConfigurationError, DisconnectedError, SceneError, UnknownNameError
from tmkit.graph import contributions, innovation, joint_gaussian
from tmkit.spatial import GaussianPose

SEEDS = st.integers(0, 2**32 - 1)
KINDS = ("pose", "position", "bearing", "range")


def jumble(random: np.random.Generator, frames: int = 9) -> SceneGraph:
    """Return a random scene with correlations: some frames were picked up and put elsewhere."""
    scene = model.random_tree(random, frames)
    for _ in range(3):
        a, b = (f"f{number}" for number in random.choice(frames, size=2, replace=False))
        if a not in scene.ancestors(b):
            scene = scene.reparent(a, b)
    return scene


@settings(max_examples=scaled_examples(0.4))
@given(SEEDS)
def test_what_was_expected_only_makes_surer(seed: int) -> None:
    """A pose measured at its mean moves no mean; covariances follow Gaussian algebra."""
    random = np.random.default_rng(seed)
    scene = jumble(random)
    target, reference = "f8", "f0"
    if (
        target == reference
        or scene.gaussian_pose(target, relative_to=reference).covariance.max() < 1e-20
    ):
        return
    noise = model.random_covariance(random) + 1e-9 * np.eye(6)
    after = scene.condition(
        Measurement.of_pose(
            target,
            scene.pose(target, relative_to=reference),
            relative_to=reference,
            covariance=noise,
        )
    )
    pairs = [(target, reference), *((f"f{n}", "world") for n in range(9)), ("f3", "f6")]
    means, prior = joint_gaussian(scene, pairs)
    gain = prior[:, :6] @ np.linalg.inv(prior[:6, :6] + noise)
    expected = prior - gain @ prior[:6, :]
    new_means, posterior = joint_gaussian(after, pairs)
    assert all(a.is_close(b) for a, b in zip(means, new_means, strict=True))
    assert np.abs(posterior - expected).max() <= 1e-9 * np.abs(prior).max()


def most_likely(scene: SceneGraph, seen: Measurement, residual_of: object) -> dict[str, Pose]:
    """Return the most likely local poses by a general least-squares solver over the sources."""
    frames = scene.noisy_frames
    noises = {frame: scene.noise(frame) for frame in frames}
    sources = list(dict.fromkeys(source for noise in noises.values() for source in noise.sources))  # type: ignore[union-attr]
    starts = np.cumsum([0, *(source.dimension for source in sources)])
    slices = {
        source: slice(a, b) for source, a, b in zip(sources, starts, starts[1:], strict=False)
    }

    def move_poses(w: np.ndarray) -> SceneGraph:
        with scene.edit() as edit:
            for frame, noise in noises.items():
                xi = sum(noise.map(source) @ w[slices[source]] for source in noise.sources)  # type: ignore[union-attr]
                edit.set_pose(frame, scene.local_pose(frame) @ Pose.exp(xi))
        return edit.finish()

    def cost(w: np.ndarray) -> np.ndarray:
        return np.concatenate([w, residual_of(move_poses(w))])  # type: ignore[operator]

    solution = least_squares(cost, np.zeros(starts[-1]), xtol=1e-15, ftol=1e-15, gtol=1e-12)
    best = move_poses(solution.x)
    return {frame: best.local_pose(frame) for frame in frames}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_means_are_the_most_likely_ones(kind: str, seed: int) -> None:
    """For every kind of edge, the poses are those of a general least-squares solver."""
    random = np.random.default_rng([seed, KINDS.index(kind)])
    scene = jumble(random, 6)
    seen_pose = scene.pose("f5", relative_to="f0") @ Pose.exp(5e-3 * random.normal(size=6))
    point = random.normal(size=3)
    place = seen_pose.apply(point)
    root = np.linalg.cholesky(model.random_covariance(random) + 1e-8 * np.eye(6))
    if kind == "pose":
        seen = Measurement.of_pose("f5", seen_pose, relative_to="f0", covariance=root @ root.T)

        def residual(s: SceneGraph) -> np.ndarray:
            return np.linalg.solve(
                root, (seen_pose.inverse() @ s.pose("f5", relative_to="f0")).log()
            )

    elif kind == "position":
        corner = np.linalg.cholesky((root @ root.T)[:3, :3])
        seen = Measurement.of_position(
            "f5", place, relative_to="f0", covariance=corner @ corner.T, point=point
        )

        def residual(s: SceneGraph) -> np.ndarray:
            return np.linalg.solve(corner, s.pose("f5", relative_to="f0").apply(point) - place)

    elif kind == "bearing":
        seen = Measurement.of_bearing("f5", place, relative_to="f0", deviation=1e-3, point=point)

        def residual(s: SceneGraph) -> np.ndarray:
            a, b = place / np.linalg.norm(place), s.pose("f5", relative_to="f0").apply(point)
            axis = np.cross(a, b / np.linalg.norm(b))  # of length sin(angle); small angles here
            return axis * (np.arcsin(np.linalg.norm(axis)) / np.linalg.norm(axis)) / 1e-3

    else:
        seen = Measurement.of_range(
            "f5", float(np.linalg.norm(place)), relative_to="f0", deviation=1e-3, point=point
        )

        def residual(s: SceneGraph) -> np.ndarray:
            return (
                np.array(
                    [
                        np.linalg.norm(s.pose("f5", relative_to="f0").apply(point))
                        - np.linalg.norm(place)
                    ]
                )
                / 1e-3
            )

    after = scene.condition(seen)
    for frame, pose in most_likely(scene, seen, residual).items():
        assert after.local_pose(frame).is_close(
            pose, translation_tolerance=1e-7, rotation_tolerance=1e-7
        ), frame


@pytest.mark.parametrize("kind", KINDS)
def test_innovations_say_how_far_off_a_measurement_is(kind: str) -> None:
    """Over random truths the squared distance has its chi-square mean, within four deviations."""
    random = np.random.default_rng(KINDS.index(kind))
    scene = model.random_tree(random, 5, scale=0.3)
    distances = []
    size = {"pose": 6, "position": 3, "bearing": 2, "range": 1}[kind]
    for truth in sample_poses(scene, "f4", relative_to="world", count=400, seed=7):
        pose = Pose.from_array(truth)
        point = np.array([0.3, 0.1, -0.2])
        place = pose.apply(point)
        if kind == "pose":
            seen = Measurement.of_pose(
                "f4",
                pose @ Pose.exp(1e-3 * random.normal(size=6)),
                relative_to="world",
                covariance=1e-6 * np.eye(6),
            )
        elif kind == "position":
            measured = place + 1e-3 * random.normal(size=3)
            seen = Measurement.of_position(
                "f4", measured, relative_to="world", covariance=1e-6 * np.eye(3), point=point
            )
        elif kind == "bearing":
            across = np.cross(place, random.normal(size=3))
            turn = Pose.exp(
                [
                    0,
                    0,
                    0,
                    *(1e-3 * across / np.linalg.norm(across) * np.hypot(*random.normal(size=2))),
                ]
            )
            seen = Measurement.of_bearing(
                "f4", turn.rotate(place), relative_to="world", deviation=1e-3, point=point
            )
        else:
            measured = float(np.linalg.norm(place) + 1e-3 * random.normal())
            seen = Measurement.of_range(
                "f4", measured, relative_to="world", deviation=1e-3, point=point
            )
        expected = innovation(scene, seen)
        assert expected.residual.shape == (size,)
        assert expected.covariance.shape == (size, size)
        distances.append(expected.squared_mahalanobis)
    assert abs(np.mean(distances) - size) < 4 * np.sqrt(2 * size / 400)


def test_what_hangs_on_what_was_measured_moves_along() -> None:
    """An observation of the hand corrects the held cup, and one of the cup the hand."""
    scene = (
        SceneGraph()
        .add_frame("camera", "world", pose=Pose([0, 0, 2]))
        .add_frame("arm", "world", pose=Pose([1, 0, 0]), joint=Revolute([0, 0, 1], name="turn"))
        .add_frame("elbow", "arm", pose=Pose([0.1, 0, 0.1]), joint=Revolute([0, 1, 0], name="lift"))
        .add_frame("hand", "elbow", pose=GaussianPose(Pose([0.4, 0, 0.1]), 1e-4 * np.eye(6)))
        .add_frame("cup", "world", pose=GaussianPose(Pose([1.5, 0, 0.3]), 1e-6 * np.eye(6)))
        .add_joint_noise("turn", 1e-2)
    )
    q = [0.3, 0.0]
    held = scene.reparent("cup", "hand", q=q)
    expected = Measurement.of_pose(
        "hand",
        held.pose("hand", relative_to="camera", q=q),
        relative_to="camera",
        covariance=1e-8 * np.eye(6),
    )
    seen = held.condition(expected, q=q)
    assert np.trace(seen.gaussian_pose("cup", relative_to="world", q=q).covariance) < np.trace(
        held.gaussian_pose("hand", relative_to="world", q=q).covariance
    )
    shifted = held.pose("cup", relative_to="camera", q=q) @ Pose([0.005, 0, 0])
    here = held.condition(
        Measurement.of_pose("cup", shifted, relative_to="camera", covariance=1e-10 * np.eye(6)), q=q
    )
    assert here.pose("cup", relative_to="camera", q=q).is_close(
        shifted, translation_tolerance=1e-5, rotation_tolerance=1e-5
    )
    assert here.pose("hand", relative_to="camera", q=q).is_close(
        held.pose("hand", relative_to="camera", q=q)
    )  # it was picked where it stood
    q_away = [0.3, -1.2]  # there the arm's errors are the cup's
    shifted = held.pose("cup", relative_to="camera", q=q_away) @ Pose([0, 0.005, 0])
    conditioned = held.condition(
        Measurement.of_pose("cup", shifted, relative_to="camera", covariance=1e-10 * np.eye(6)),
        q=q_away,
    )
    assert (
        held.pose("hand", relative_to="camera", q=q_away).distance(
            conditioned.pose("hand", relative_to="camera", q=q_away)
        )[0]
        > 1e-4
    )
    seen_turned = Measurement.of_pose(
        "hand",
        held.pose("hand", relative_to="world", q=[0.35, 0.0]),
        relative_to="world",
        covariance=1e-10 * np.eye(6),
    )
    turned = held.condition(seen_turned, q=q)
    # an error along the joint's own axis is right at every configuration
    for other in ([0.0, 0.0], [1.0, 0.5]):
        distance = turned.pose("hand", relative_to="world", q=other).distance(
            held.pose("hand", relative_to="world", q=[other[0] + 0.05, other[1]])
        )
        assert max(distance) < 2e-3


def test_many_looks_stay_small() -> None:
    """After any number of looks, the joint source has at most the dimensions of its edges."""
    random = np.random.default_rng(2)
    scene = model.random_tree(random, 8)
    looked = scene
    for number in range(30):
        target = f"f{number % 8}"
        measured = looked.pose(target, relative_to="world") @ Pose.exp(1e-4 * random.normal(size=6))
        looked = looked.condition(
            Measurement.of_pose(target, measured, relative_to="world", covariance=1e-6 * np.eye(6))
        )
    noises = [looked.noise(frame) for frame in looked.noisy_frames]
    sources = {source for noise in noises for source in noise.sources}  # type: ignore[union-attr]
    assert sum(source.dimension for source in sources) <= 6 * len(looked.noisy_frames)
    before, after = (
        np.trace(each.gaussian_pose("f7", relative_to="world").covariance)
        for each in (scene, looked)
    )
    assert after < before
    assert (
        np.linalg.eigvalsh(joint_gaussian(looked, [("f7", "world"), ("f3", "world")])[1])[0]
        > -1e-15
    )


def test_exact_measurements_and_exact_paths() -> None:
    """An exact measurement holds; a measurement of an exact pose has no effect or contradicts."""
    scene = (
        SceneGraph()
        .add_frame("a", "world", pose=GaussianPose(covariance=np.diag([1e-4, 1e-4, 0, 0, 0, 0])))
        .add_frame("b", "a")
    )
    exact = scene.condition(
        Measurement.of_pose(
            "b", Pose([0.01, -0.02, 0]), relative_to="world", covariance=np.zeros((6, 6))
        )
    )
    assert exact.pose("b", relative_to="world").is_close(Pose([0.01, -0.02, 0]))
    assert np.abs(exact.gaussian_pose("b", relative_to="world").covariance).max() < 1e-18
    same = Measurement.of_pose("b", Pose(), relative_to="a", covariance=np.zeros((6, 6)))
    assert scene.condition(same) is scene
    assert (
        scene.condition(
            Measurement.of_pose("b", Pose([1, 0, 0]), relative_to="a", covariance=np.eye(6))
        )
        is scene
    )
    with pytest.raises(
        SceneError, match="measurement of frame 'b' in frame 'world' contradicts exact data"
    ):
        scene.condition(
            Measurement.of_pose(
                "b", Pose([0, 0, 0.01]), relative_to="world", covariance=np.zeros((6, 6))
            )
        )


def test_bad_measurements_are_refused() -> None:
    """Each error has its reason; a failed conditioning changes neither scene nor edit."""
    scene = (
        SceneGraph()
        .add_frame("a", "world", joint=Revolute([0, 0, 1]), pose=GaussianPose(covariance=np.eye(6)))
        .add_root("moon")
    )
    good = Measurement.of_pose("a", Pose(), relative_to="world", covariance=np.eye(6))
    with pytest.raises(ConfigurationError, match="joint 'a' is on the path"):
        scene.condition(good)
    with pytest.raises(UnknownNameError, match="unknown frame 'b'"):
        scene.condition(
            Measurement.of_pose("b", Pose(), relative_to="world", covariance=np.eye(6)), q=[0.0]
        )
    with pytest.raises(DisconnectedError):
        scene.condition(
            Measurement.of_pose("a", Pose(), relative_to="moon", covariance=np.eye(6)), q=[0.0]
        )
    with pytest.raises(SceneError, match=r"covariance must have shape \(3, 3\)"):
        Measurement.of_position("a", [0, 0, 0], relative_to="world", covariance=np.eye(3)[:2])
    with pytest.raises(
        SceneError, match=r"covariance is not positive semi-definite: its eigenvalues are \[-1"
    ):
        Measurement.of_pose("a", Pose(), relative_to="world", covariance=-np.eye(6))
    with pytest.raises(SceneError, match="direction must not be zero"):
        Measurement.of_bearing("a", [0, 0, 0], relative_to="world", deviation=0.1)
    with pytest.raises(
        SceneError, match="standard deviation of a range must be a finite number and not negative"
    ):
        Measurement.of_range("a", 1.0, relative_to="world", deviation=-1.0)
    with pytest.raises(
        SceneError, match="frame 'a' is at the position of frame 'world': direction"
    ):
        scene.condition(Measurement.of_range("a", 1.0, relative_to="world", deviation=1.0), q=[0.0])
    with pytest.raises(SceneError, match="iterations must be at least 1, not 0"):
        scene.condition(good, q=[0.0], max_iterations=0)
    with scene.edit() as edit:
        edit.condition(good, q=[0.2])
    assert edit.finish() == scene.condition(good, q=[0.2])


def test_one_source_may_move_many_frames() -> None:
    """A shared source seen at one frame corrects all, on the path or not."""
    warm = NoiseSource(1, "temperature")
    longer = np.array([[1e-3, 0, 0, 0, 0, 0]]).T
    scene = SceneGraph()
    for name in ("a", "b", "c"):
        scene = scene.add_frame(name, "world").set_noise(name, {warm: longer})
    seen = scene.condition(
        Measurement.of_position(
            "a", [2e-3, 0, 0], relative_to="world", covariance=1e-12 * np.eye(3)
        )
    )
    for name in ("a", "b", "c"):
        assert seen.pose(name, relative_to="world").translation[0] == pytest.approx(2e-3, rel=1e-5)
    assert np.abs(seen.gaussian_pose("a", relative_to="c").covariance).max() < 1e-20


@pytest.mark.parametrize("reach", [1.0, 1e3])
@pytest.mark.parametrize("deviation", [1e-4, 1e-7, 1e-9])
def test_tiny_errors_far_away_come_to_rest(reach: float, deviation: float) -> None:
    """The step that is as short as rounding of the poses is the last one."""
    random = np.random.default_rng(3)
    scene, parent = SceneGraph(), "world"
    for name in ("a", "b", "c"):
        pose = Pose.exp(np.r_[random.normal(size=3) * reach, random.normal(size=3)])
        scene = scene.add_frame(name, parent, pose=GaussianPose(pose, deviation**2 * np.eye(6)))
        parent = name
    seen = scene.pose("c", relative_to="world") @ Pose.exp(random.normal(size=6) * deviation)
    after = scene.condition(
        Measurement.of_pose("c", seen, relative_to="world", covariance=deviation**2 * np.eye(6))
    )
    assert np.trace(after.gaussian_pose("c", relative_to="world").covariance) < 6.0 * deviation**2


@pytest.mark.parametrize("unknown", [1e3, 1e6, 1e9, 1e12])
def test_what_nobody_knows_does_not_hide_what_is_known(unknown: float) -> None:
    """A large variance, as in messages for unknown parts, is kept in all queries."""
    variances = np.array([1e-4, 1e-4, unknown, unknown, 1e-6, 1e-6])
    scene = SceneGraph().add_frame("a", "world", pose=GaussianPose(covariance=np.diag(variances)))
    _, joint = joint_gaussian(scene, [("a", "world")])
    np.testing.assert_allclose(
        joint, scene.gaussian_pose("a", relative_to="world").covariance, rtol=1e-12
    )
    [(_, share)] = contributions(scene, "a", relative_to="world")
    np.testing.assert_allclose(np.diag(share), variances, rtol=1e-12)
    after = scene.condition(
        Measurement.of_pose(
            "a", Pose([0.0, 0.0, 0.002]), relative_to="world", covariance=1e-6 * np.eye(6)
        )
    )
    expected = 1.0 / (1.0 / variances + 1e6)
    np.testing.assert_allclose(
        np.diag(after.gaussian_pose("a", relative_to="world").covariance), expected, rtol=1e-4
    )
    assert after.pose("a", relative_to="world").translation[2] == pytest.approx(0.002, rel=2e-3)
    assert (
        innovation(
            scene,
            Measurement.of_pose("a", Pose(), relative_to="world", covariance=1e-6 * np.eye(6)),
        ).squared_mahalanobis
        < 1e-12
    )


def template(kind: str, random: np.random.Generator) -> Measurement:
    """Return a measurement of f5 relative to f0 with an arbitrary value."""
    covariance = model.random_covariance(random) + 1e-8 * np.eye(6)
    between, point = {"relative_to": "f0"}, random.normal(size=3)
    if kind == "pose":
        return Measurement.of_pose("f5", Pose(), covariance=covariance, **between)
    if kind == "position":
        noise = covariance[:3, :3]
        return Measurement.of_position("f5", [0, 0, 0], covariance=noise, point=point, **between)
    if kind == "bearing":
        return Measurement.of_bearing("f5", [0, 0, 1], deviation=0.01, point=point, **between)
    return Measurement.of_range("f5", 0.0, deviation=0.01, point=point, **between)


@settings(max_examples=scaled_examples(0.4))
@given(SEEDS, st.sampled_from(KINDS))
def test_expected_measurements_move_no_mean(seed: int, kind: str) -> None:
    """Not by a bit. Residuals are zero, and no variance of the measured pose grows."""
    random = np.random.default_rng(seed)
    scene = jumble(random, 6)
    expected = template(kind, random).expected(scene)
    assert (expected.kind, expected.frame, expected.relative_to) == (kind, "f5", "f0")
    assert np.array_equal(innovation(scene, expected).residual, np.zeros(len(expected.covariance)))
    believed = scene.condition(expected)
    for frame in scene.frame_names[1:]:
        assert believed.local_pose(frame) == scene.local_pose(frame)
    before = scene.standard_deviation("f5", relative_to="f0")
    after = believed.standard_deviation("f5", relative_to="f0")
    assert (after <= before * (1.0 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("kind", KINDS)
def test_expected_measurements_depend_on_the_noise_alone(kind: str) -> None:
    """Covariances are those after a measurement near the mean, to first order."""
    random = np.random.default_rng(7)
    scene = jumble(random, 6)
    sensor = template(kind, np.random.default_rng(3))
    nearby = scene.set_pose("f5", scene.local_pose("f5") @ Pose.exp(1e-6 * random.normal(size=6)))
    believed, observed = (
        scene.condition(sensor.expected(world)).gaussian_pose("f5", relative_to="f0").covariance
        for world in (scene, nearby)
    )
    assert np.abs(believed - observed).max() < 1e-4 * np.abs(believed).max()


def test_expected_measurements_of_a_scene_with_joints() -> None:
    """The value is that at the configuration; points without a direction are rejected."""
    scene = SceneGraph().add_frame("turn", "world", joint=Revolute([0, 0, 1]))
    scene = scene.add_frame("tip", "turn", pose=Pose([2.0, 0.0, 0.0]))
    sensor = Measurement.of_range("tip", 0.0, deviation=0.1, point=[1.0, 0.0, 0.0])
    assert sensor.relative_to is sensor.expected(scene, q=[0.3]).relative_to is None
    assert np.array_equal(innovation(scene, sensor, q=[0.3]).residual, [-3.0])
    assert np.array_equal(innovation(scene, sensor.expected(scene, q=[0.3]), q=[1.0]).residual, [0])
    with pytest.raises(ConfigurationError, match="joint 'turn' is on the path"):
        sensor.expected(scene)
    with pytest.raises(UnknownNameError, match="unknown frame 'tip'"):
        sensor.expected(SceneGraph())
    blind = Measurement.of_bearing("turn", [0, 0, 1], deviation=0.1)
    with pytest.raises(SceneError, match="frame 'turn' is at the position of its root"):
        blind.expected(scene, q=[0.0])
