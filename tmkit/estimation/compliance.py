"""Arms that bend: poses of frames at a configuration under gravity, and their covariances.

A *compliance model* says for each frame that gives way by how much it does so: a mean offset and a
covariance of the error that is left, both behind the frame's joint; see
``docs/concepts/uncertainty.md``:

    parent_from_frame = nominal(q) exp(offset) exp(xi),    xi ~ N(0, S)

In :class:`LinearCompliance` each of some frames has a compliance matrix C (6, 6), the twist that a
wrench on it causes, and the wrench is the weight of all bodies at the frame and below,

    offset = C w,    w = [m g, c x m g]     in the axes of the frame, at its origin, c the centre of what hangs there

Its error is a fraction of the deflection, as stiffness is known with a relative error and stays
what it is at every configuration; and a floor, such as the play of a joint. Its noise sources
belong to the model: two versions deflected by one model have the same errors, and a second call
gives an equal scene. Weights pull at the deflected arm: ``iterations`` repeats the step with the
loads at the arm as deflected so far; for small deflections the first step is right to the square of
the deflection.

Complexity O(n) poses and O(n) sums for n frames, an iteration. The compliance matrix of a beam is
the textbook's (Euler and Bernoulli); that of a joint is a spring about its axis. The bending of an
arm is part of a tree of uncertain transforms. The idea is that of Sewtz, Burkhard, Luo, Dorscht and
Triebel, "Representing Uncertain Spatial Transformations in Robotic Applications in a Structured
Framework Leveraging Lie Algebra". The model here is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import EdgeNoise, NoiseSource, SceneGraph
from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph.semantic_edges.wrenches import masses, weight
from tmkit.spatial import Pose, covariance_root
from tmkit.spatial.covariances import check_covariance
from tmkit.spatial.plain import plain_number, plain_numbers

Array = NDArray[np.float64]

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)  # m/s^2
_AXES = "xyz"


@dataclass(frozen=True, eq=False)
class Deflection:
    """By how much the edge of a frame gives way.

    Attributes:
        offset: (6,) [rho, theta], metres and radians, in the frame's own axes, behind its joint.
        noise: the error of that, in the same axes; None when it is exact.
    """

    offset: Array
    noise: EdgeNoise | None = None


@runtime_checkable
class ComplianceModel(Protocol):
    """Says how a scene gives way at a configuration."""

    def deflections(self, scene: SceneGraph, q: ArrayLike | None) -> Mapping[str, Deflection]:
        """Return the deflection of each frame whose edge gives way.

        Args:
            scene: as it stands when the loads are looked at.
            q: configuration (n_joints,).
        """
        ...


def apply_compliance(
    scene: SceneGraph, model: ComplianceModel, *, q: ArrayLike | None = None, iterations: int = 1
) -> SceneGraph:
    """Return the version of a scene as a compliance model says that it is at a configuration.

    At other configurations it is that of another load.

    Args:
        scene: the nominal scene; errors that its edges have already stay.
        model: how it gives way.
        q: configuration (n_joints,) at which the new version is right; may be omitted if there are
            no joints.
        iterations: how often loads are computed; from the second time on, at the arm as deflected
            before.

    Raises:
        UnknownNameError: the model names a frame that the scene does not have.
        SceneError: no iteration, or the model names a root.
        ConfigurationError: q is missing or does not fit.
    """
    if iterations < 1:
        raise SceneError(f"iterations must be at least 1, not {iterations}")
    version = scene
    for _ in range(iterations):
        version = _deflected(scene, model.deflections(version, q), q)
    return version


def _deflected(
    scene: SceneGraph, deflections: Mapping[str, Deflection], q: ArrayLike | None
) -> SceneGraph:
    with scene.edit() as edit:
        for frame, deflection in deflections.items():
            if frame not in scene:
                raise UnknownNameError.of(
                    "frame", frame, scene.frame_names, where="compliance model"
                )
            parent = scene.parent(frame)
            if parent is None:
                raise SceneError(f"frame '{frame}' is a root, which cannot give way")
            # The local pose stands before the joint: what is right behind the joint at q is carried
            # over there.
            moved = scene.pose(frame, relative_to=parent, q=q)
            before_joint = scene.local_pose(frame).inverse() @ moved
            offset = before_joint @ Pose.exp(deflection.offset) @ before_joint.inverse()
            edit.set_pose(frame, scene.local_pose(frame) @ offset)
            if deflection.noise is not None:
                noise = deflection.noise
                edit.add_noise(frame, {source: noise.map(source) for source in noise.sources})
    return edit.finish()


class LinearCompliance:
    """Frames that give way in proportion to the weight of what hangs on them.

    Args:
        compliances: by frame, (6, 6) symmetric positive semi-definite. It gives the twist [rho,
            theta] of the frame, in its own axes, for a wrench [force, torque] on it at its origin,
            in m/N, rad/N, m/(N m), rad/(N m).
        gravity: (3,) m/s^2, in the axes of the root.
        fraction: standard deviation of the deflection relative to its size.
        floor: (6, 6) covariance that each frame has also without a load, or by frame; zero by
            default.

    Raises:
        SceneError: a matrix that is no covariance, a fraction that is negative or not finite, or no
            three numbers.
    """

    def __init__(
        self,
        compliances: Mapping[str, ArrayLike],
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        fraction: float = 0.0,
        floor: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        self.fraction = plain_number(fraction, "fraction")
        if not (np.isfinite(self.fraction) and self.fraction >= 0.0):
            raise SceneError(
                f"fraction must be a finite number and not negative, not {self.fraction}"
            )
        self.gravity = np.array(plain_numbers(gravity, "gravity"))
        if self.gravity.shape != (3,) or not np.isfinite(self.gravity).all():
            raise SceneError(
                "gravity must be three finite numbers, not"
                f" {np.array2string(self.gravity, threshold=8)}"
            )
        self.gravity.flags.writeable = False
        self.compliances = {
            frame: check_covariance(matrix, 6, what=f"the compliance of '{frame}'")
            for frame, matrix in compliances.items()
        }
        self._stiffness = {
            frame: NoiseSource(1, f"stiffness of {frame}") for frame in self.compliances
        }
        self._floors = {
            frame: made
            for frame in self.compliances
            if (made := _floor_of(frame, floor)) is not None
        }
        if isinstance(floor, Mapping):
            for frame in floor:
                if frame not in self.compliances:
                    raise UnknownNameError.of("frame", frame, self.compliances, where="floor")

    def wrench(self, scene: SceneGraph, frame: str, *, q: ArrayLike | None = None) -> Array:
        """Return the wrench (6,) [force, torque], N and N m, of the weight at a frame and below it, in its own axes.

        Bodies without inertia weigh nothing.

        Args:
            scene: the scene.
            frame: the frame at which the wrench acts.
            q: (n_joints,) configuration; needed if the scene has joints.

        Raises:
            UnknownNameError: no such frame.
            ConfigurationError: q is missing or does not fit.
        """
        at = scene.at(q)
        return weight(at, frame, self.gravity, masses(at, scene.subtree(frame)))

    def deflections(self, scene: SceneGraph, q: ArrayLike | None) -> Mapping[str, Deflection]:
        """Return the deflection of each frame that has a compliance, under the weight of the bodies of the scene.

        Args:
            scene: the scene.
            q: (n_joints,) configuration; needed if the scene has joints.

        Raises:
            UnknownNameError: a frame of the model that the scene does not have.
            ConfigurationError: q is missing or does not fit.
        """
        at = scene.at(q)
        carried = masses(at, scene.frame_names)
        found = {}
        for frame, compliance in self.compliances.items():
            if frame not in scene:
                raise UnknownNameError.of(
                    "frame", frame, scene.frame_names, where="compliance model"
                )
            offset = compliance @ weight(at, frame, self.gravity, carried)
            found[frame] = Deflection(offset, self._noise(frame, offset))
        return found

    def _noise(self, frame: str, offset: Array) -> EdgeNoise | None:
        maps: dict[NoiseSource, ArrayLike] = {}
        if self.fraction > 0.0 and offset.any():
            maps[self._stiffness[frame]] = (self.fraction * offset)[:, None]
        if frame in self._floors:
            source, root = self._floors[frame]
            maps[source] = root
        return EdgeNoise(maps) if maps else None

    def __repr__(self) -> str:
        return f"LinearCompliance({len(self.compliances)} frames, fraction={self.fraction:g})"


def _floor_of(
    frame: str, floor: ArrayLike | Mapping[str, ArrayLike] | None
) -> tuple[NoiseSource, Array] | None:
    given = floor.get(frame) if isinstance(floor, Mapping) else floor
    if given is None:
        return None
    root = covariance_root(check_covariance(given, 6, what=f"the floor of '{frame}'"))
    return (NoiseSource(root.shape[1], f"play of {frame}"), root) if root.shape[1] else None


def joint_compliance(axis: ArrayLike, *, stiffness: float) -> Array:
    """Return the compliance (6, 6) of an elastic joint: a spring about its axis, in the axes of its frame.

    Args:
        axis: (3,) of any length, in the frame's axes.
        stiffness: N m/rad.

    Raises:
        SceneError: an axis of zero, or a stiffness that is not positive.
    """
    direction = plain_numbers(axis, "axis")
    length = float(np.linalg.norm(direction))
    if direction.shape != (3,) or not length > 0.0:
        raise SceneError(
            "axis must be three numbers, not all zero, not"
            f" {np.array2string(direction, threshold=8)}"
        )
    _check_positive(stiffness=stiffness)
    matrix = np.zeros((6, 6))
    matrix[3:, 3:] = np.outer(direction, direction) / (length**2 * stiffness)
    return matrix


def beam_compliance(
    length: float,
    *,
    bending: float | tuple[float, float],
    axial: float | None = None,
    torsion: float | None = None,
    axis: str = "x",
) -> Array:
    """Return the compliance (6, 6) of the end of a beam that is clamped at the other, in the axes of the frame there.

    Args:
        length: metres.
        bending: stiffness E I against bending, N m^2: one number, or one about each of the two axes
            across, in cyclic order (for a beam along x: about y, about z).
        axial: E A, N; rigid by default.
        torsion: G J, N m^2; rigid by default.
        axis: along which the beam comes to its end: ``x``, ``y`` or ``z``.

    Raises:
        SceneError: numbers that are not positive, or another axis.
    """
    if axis not in tuple(_AXES):
        raise SceneError(f"axis must be 'x', 'y' or 'z', not '{axis}'")
    about = (bending, bending) if isinstance(bending, int | float) else bending
    _check_positive(length=length, first_bending=about[0], second_bending=about[1])
    _check_positive(
        **{
            name: value
            for name, value in (("axial", axial), ("torsion", torsion))
            if value is not None
        }
    )
    x = _AXES.index(axis)
    y, z = (x + 1) % 3, (x + 2) % 3
    matrix = np.zeros((6, 6))
    matrix[x, x] = length / axial if axial is not None else 0.0
    matrix[3 + x, 3 + x] = length / torsion if torsion is not None else 0.0
    # A force along z turns the end about -y, one along y about +z.
    for force, turn, sign, stiffness in ((z, y, -1.0, about[0]), (y, z, 1.0, about[1])):
        matrix[force, force] = length**3 / (3.0 * stiffness)
        matrix[3 + turn, 3 + turn] = length / stiffness
        matrix[force, 3 + turn] = matrix[3 + turn, force] = sign * length**2 / (2.0 * stiffness)
    return matrix


def _check_positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (np.isfinite(value) and value > 0.0):
            raise SceneError(
                f"{name.replace('_', ' ')} must be a finite number above zero, not {value}"
            )
