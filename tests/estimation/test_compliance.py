"""Compliant arms: closed forms of beams, energies, and scenes."""

from __future__ import annotations

import numpy as np
import pytest

from tmkit import Inertia, Pose, Revolute, SceneGraph
from tmkit.errors import ConfigurationError, SceneError, UnknownNameError
from tmkit.estimation import (
    Deflection,
    LinearCompliance,
    apply_compliance,
    beam_compliance,
    joint_compliance,
)
from tmkit.estimation.compliance import ComplianceModel

G = 9.80665
LENGTH, BENDING = 1.2, 8.0e3


def cantilever(
    segments: int, *, load: float = 0.0, weight: float = 0.0
) -> tuple[SceneGraph, LinearCompliance]:
    """Return a segmented beam along x with an end load and distributed weight, and its model."""
    step = LENGTH / segments
    scene = SceneGraph()
    parent = "world"
    for number in range(segments):
        name = f"s{number}"
        scene = scene.add_frame(name, parent, pose=Pose([step, 0, 0]))
        if weight:
            scene = scene.set_inertia(name, Inertia(weight / segments, [-step / 2, 0, 0]))
        parent = name
    scene = scene.add_frame("end", parent)
    if load:
        scene = scene.set_inertia("end", Inertia(load))
    beam = beam_compliance(step, bending=BENDING)
    return scene, LinearCompliance({f"s{number}": beam for number in range(segments)}, fraction=0.1)


def arm() -> tuple[SceneGraph, LinearCompliance]:
    """Return a spatial arm of three elastic joints and links with masses, and its model."""
    scene = SceneGraph()
    parent = "world"
    for number, (axis, position) in enumerate(
        (([0, 0, 1], [0, 0, 0.3]), ([0, 1, 0], [0, 0, 0.2]), ([0, 1, 0], [0.1, 0, 0]))
    ):
        scene = scene.add_frame(
            f"joint{number}", parent, pose=Pose(position), joint=Revolute(axis, name=f"q{number}")
        )
        scene = scene.add_frame(
            f"link{number}", f"joint{number}", pose=Pose.from_rpy([0.5, 0, 0], [0.2 * number, 0, 0])
        )
        scene = scene.set_inertia(f"link{number}", Inertia(3.0 - number, [-0.2, 0.01, 0.02]))
        parent = f"link{number}"
    scene = scene.add_frame("tool", parent, pose=Pose([0.1, 0, 0.05])).set_inertia(
        "tool", Inertia(1.5)
    )
    compliances = {
        f"link{n}": beam_compliance(0.5, bending=(2e3, 3e3), torsion=1e3, axial=1e6)
        for n in range(3)
    }
    compliances |= {
        f"joint{n}": joint_compliance([0, 0, 1] if n == 0 else [0, 1, 0], stiffness=4e3)
        for n in range(3)
    }
    return scene, LinearCompliance(
        compliances, fraction=0.15, floor=np.diag([0, 0, 0, 1e-8, 1e-8, 1e-8])
    )


Q = np.array([0.4, 0.3, -0.7])


def test_a_cantilever_bends_as_the_textbook_says() -> None:
    """A load at the end: P L^3 / 3 E I down, slope P L^2 / 2 E I, for any number of segments."""
    load = 5.0
    for segments in (1, 4, 16):
        scene, model = cantilever(segments, load=load)
        at_end = apply_compliance(scene, model).pose("end", relative_to="world").translation
        slope = apply_compliance(scene, model).pose("end", relative_to="world").log()[4]
        assert -at_end[2] == pytest.approx(load * G * LENGTH**3 / (3 * BENDING), rel=1e-4)
        assert slope == pytest.approx(load * G * LENGTH**2 / (2 * BENDING), rel=1e-4)


def test_a_beam_bends_under_its_own_weight() -> None:
    """A distributed weight: w L^4 / 8 E I, with an error that falls with the square of segments."""
    weight = 6.0
    expected = weight * G * LENGTH**3 / (8 * BENDING)
    defects = []
    for segments in (4, 8, 16):
        scene, model = cantilever(segments, weight=weight)
        defects.append(
            abs(
                -apply_compliance(scene, model).pose("end", relative_to="world").translation[2]
                / expected
                - 1
            )
        )
    assert defects[-1] < 3e-3
    assert defects[1] / defects[0] == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_beams_along_all_axes_are_one_beam_turned(axis: str) -> None:
    """The matrix of a beam along y or z is that along x in turned axes, symmetric and positive."""
    along = beam_compliance(0.7, bending=(2e3, 5e3), torsion=7e2, axial=1e5, axis="x")
    turn = np.roll(np.eye(3), "xyz".index(axis), axis=0)
    both = np.kron(np.eye(2), turn)
    matrix = beam_compliance(0.7, bending=(2e3, 5e3), torsion=7e2, axial=1e5, axis=axis)
    np.testing.assert_allclose(matrix, both @ along @ both.T, atol=1e-18)
    assert (np.linalg.eigvalsh(matrix) > 0).all()


def test_two_half_beams_are_a_beam() -> None:
    """The end compliance is that of the second half plus the first, moved: springs in series."""
    half, whole = (
        beam_compliance(length, bending=(2e3, 5e3), torsion=7e2, axial=1e5) for length in (0.3, 0.6)
    )
    carry = Pose([-0.3, 0, 0])  # end_from_middle
    skew = np.array([[0, 0, 0], [0, 0, 0.3], [0, -0.3, 0]])
    adjoint = np.block([[np.eye(3), skew], [np.zeros((3, 3)), np.eye(3)]])
    assert carry.translation[0] == -0.3
    np.testing.assert_allclose(adjoint @ half @ adjoint.T + half, whole, rtol=1e-12, atol=1e-18)


def test_deflection_is_the_derivative_of_the_strain_energy() -> None:
    """A load at the tool moves it by the derivative of the stored energy (Castigliano)."""
    scene, model = arm()
    tool = scene.at(Q).pose("tool")

    def energy(mass: float) -> float:
        loaded = scene.set_inertia("tool", Inertia(1.5 + mass))
        wrenches = {frame: model.wrench(loaded, frame, q=Q) for frame in model.compliances}
        return sum(0.5 * float(w @ model.compliances[frame] @ w) for frame, w in wrenches.items())

    step = 1e-3
    # Displacement along the pull, downwards [m].
    by_energy = (energy(step) - energy(-step)) / (2 * step) / G
    stiffer = 1e-3  # the deflection is linear only in the limit
    soft = LinearCompliance(
        {frame: stiffer * matrix for frame, matrix in model.compliances.items()}
    )
    moved = apply_compliance(scene, soft, q=Q).at(Q).pose("tool")
    assert (tool.translation - moved.translation)[2] / stiffer == pytest.approx(by_energy, rel=1e-4)


def test_covariances_are_the_finite_difference_by_stiffness() -> None:
    """The tool covariance is that of each stiffness moved by its deviation, and the floor."""
    scene, model = arm()
    version = apply_compliance(scene, model, q=Q)
    claimed = version.gaussian_pose("tool", relative_to="world", q=Q).covariance
    mean = version.pose("tool", relative_to="world", q=Q)
    expected = np.zeros((6, 6))
    step = 1e-4
    for frame, matrix in model.compliances.items():
        ends = []
        for sign in (1, -1):
            changed = LinearCompliance({**model.compliances, frame: (1 + sign * step) * matrix})
            ends.append(
                (
                    mean.inverse()
                    @ apply_compliance(scene, changed, q=Q).pose("tool", relative_to="world", q=Q)
                ).log()
            )
        column = 0.15 * (ends[0] - ends[1]) / (2 * step)
        expected += np.outer(column, column)
    play = LinearCompliance(model.compliances, floor=np.diag([0, 0, 0, 1e-8, 1e-8, 1e-8]))
    expected += (
        apply_compliance(scene, play, q=Q)
        .gaussian_pose("tool", relative_to="world", q=Q)
        .covariance
    )
    np.testing.assert_allclose(claimed, expected, rtol=2e-2, atol=2e-3 * np.abs(expected).max())


def test_the_offset_is_behind_the_joint() -> None:
    """At q each edge is the nominal one times its offset, on a joint too, with errors behind it."""
    scene, model = arm()
    version = apply_compliance(scene, model, q=Q)
    for frame, deflection in model.deflections(scene, Q).items():
        parent = str(scene.parent(frame))
        expected = scene.pose(frame, relative_to=parent, q=Q) @ Pose.exp(deflection.offset)
        assert version.pose(frame, relative_to=parent, q=Q).is_close(expected)
        assert deflection.noise is not None
        np.testing.assert_allclose(
            version.edge_covariance(frame), deflection.noise.covariance, atol=1e-24
        )


def test_loads_at_the_bent_arm() -> None:
    """Iterations come to rest, near the first step, by the square of the deflection."""
    scene, model = arm()
    steps = [
        apply_compliance(scene, model, q=Q, iterations=count).pose("tool", relative_to="world", q=Q)
        for count in (1, 2, 8, 9)
    ]
    nominal = scene.pose("tool", relative_to="world", q=Q)
    deflection = np.linalg.norm(nominal.translation - steps[0].translation)
    assert 5e-3 < deflection < 0.1
    assert steps[0].distance(steps[2])[0] < 0.2 * deflection
    assert steps[1].distance(steps[2])[0] < 0.1 * steps[0].distance(steps[2])[0]
    assert steps[2].distance(steps[3])[0] < 1e-9


def test_one_model_has_one_error() -> None:
    """Two calls give one scene, existing errors are kept, and without gravity nothing moves."""
    scene, model = arm()
    assert apply_compliance(scene, model, q=Q) == apply_compliance(scene, model, q=Q)
    base_scene = scene.set_covariance("tool", 1e-6 * np.eye(6)).set_covariance(
        "link1", 1e-6 * np.eye(6)
    )
    version = apply_compliance(base_scene, model, q=Q)
    assert np.array_equal(version.edge_covariance("tool"), 1e-6 * np.eye(6))
    assert version.edge_covariance("link1").trace() > 6e-6
    weightless = LinearCompliance(model.compliances, gravity=[0, 0, 0], fraction=0.1)
    assert (
        apply_compliance(scene, weightless, q=Q)
        .pose("tool", relative_to="world", q=Q)
        .is_close(scene.pose("tool", relative_to="world", q=Q))
    )
    assert apply_compliance(scene, weightless, q=Q).noisy_frames == ()
    assert isinstance(model, ComplianceModel)
    assert repr(model) == "LinearCompliance(6 frames, fraction=0.15)"


def test_a_model_of_ones_own() -> None:
    """Any object with a method deflections is a model."""

    class Sagging:
        def deflections(self, scene: SceneGraph, q: object) -> dict[str, Deflection]:
            assert "tool" in scene
            assert q is Q
            return {"tool": Deflection(np.array([0, 0, -0.01, 0, 0, 0]))}

    scene, _ = arm()
    assert apply_compliance(scene, Sagging(), q=Q).local_pose("tool").translation[
        2
    ] == pytest.approx(0.04)


def test_bad_input_says_what_is_wrong() -> None:
    """Each error names the frame and the number."""
    scene, model = arm()
    with pytest.raises(
        UnknownNameError, match="compliance model: unknown frame 'lnk1'; did you mean 'link1'"
    ):
        apply_compliance(scene, LinearCompliance({"lnk1": np.eye(6)}), q=Q)
    with pytest.raises(UnknownNameError, match="floor: unknown frame 'b'"):
        LinearCompliance({"a": np.eye(6)}, floor={"b": np.eye(6)})
    with pytest.raises(SceneError, match="frame 'world' is a root"):
        apply_compliance(scene, LinearCompliance({"world": np.eye(6)}), q=Q)
    with pytest.raises(
        SceneError, match="the compliance of 'a' is not positive semi-definite: its eigenvalues are"
    ):
        LinearCompliance({"a": -np.eye(6)})
    with pytest.raises(
        SceneError, match="fraction must be a finite number and not negative, not -1"
    ):
        LinearCompliance({}, fraction=-1)
    with pytest.raises(SceneError, match="gravity must be three finite numbers"):
        LinearCompliance({}, gravity=[0, 0])
    with pytest.raises(SceneError, match="iterations must be at least 1, not 0"):
        apply_compliance(scene, model, q=Q, iterations=0)
    with pytest.raises(SceneError, match="length must be a finite number above zero, not 0"):
        beam_compliance(0.0, bending=1.0)
    with pytest.raises(SceneError, match="axis must be 'x', 'y' or 'z', not 'w'"):
        beam_compliance(1.0, bending=1.0, axis="w")
    with pytest.raises(SceneError, match="axis must be three numbers, not all zero"):
        joint_compliance([0, 0, 0], stiffness=1.0)
    with pytest.raises(SceneError, match="stiffness must be a finite number above zero, not -2"):
        joint_compliance([0, 0, 1], stiffness=-2.0)
    with pytest.raises(ConfigurationError):
        apply_compliance(scene, model)
