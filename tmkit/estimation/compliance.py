"""Deflection of compliant arms under gravity, with covariances.

A *compliance model* gives for each compliant frame a mean offset and the covariance of the
remaining error, both behind the frame's joint (see ``docs/concepts/uncertainty.md``):

    parent_from_frame = nominal(q) exp(offset) exp(xi),    xi ~ N(0, S)

In :class:`LinearCompliance` a compliant frame has a compliance matrix C (6, 6). It maps a wrench on
the frame to a twist. The wrench is the weight of all bodies at the frame and below,

    offset = C w,    w = [m g, c x m g]

in the axes of the frame, at its origin, with the centre of mass c of these bodies.

The error has two parts. One is a fraction of the deflection, for the relative error of the
stiffness, which is the same at every configuration. The other is a floor, such as the play of a
joint. The noise sources belong to the model. Two versions deflected by one model therefore have the
same errors, and a second call returns an equal scene. With more ``iterations``, loads are computed
at the deflected arm. For small deflections, the error of the first iteration is of second order.

Complexity: O(n) poses and O(n) sums for n frames, in each iteration. The compliance matrix of a
beam is that of Euler and Bernoulli; that of a joint is a spring about its axis. The deflection is
part of a tree of uncertain transforms (M. Sewtz et al., "Representing Uncertain Spatial
Transformations in Robotic Applications in a Structured Framework Leveraging Lie Algebra"). The
linear model is tmkit's own.
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

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)
"""(3,) standard gravity, along the negative z axis of the root [m/s^2]."""

_AXIS_NAMES = "xyz"


@dataclass(frozen=True, eq=False)
class Deflection:
    """Deflection of the edge of a frame.

    Attributes:
        offset: (6,) [rho, theta], in the frame's own axes, behind its joint [m, rad].
        noise: error of the offset, in the same axes; None if it is exact.
    """

    offset: Array
    noise: EdgeNoise | None = None


@runtime_checkable
class ComplianceModel(Protocol):
    """Interface of models of the deflection of a scene."""

    def deflections(self, scene: SceneGraph, q: ArrayLike | None) -> Mapping[str, Deflection]:
        """Return the deflection of each compliant frame.

        Args:
            scene: scene whose loads act, with earlier deflections.
            q: (n_joints,) configuration.
        """
        ...


def apply_compliance(
    scene: SceneGraph, model: ComplianceModel, *, q: ArrayLike | None = None, iterations: int = 1
) -> SceneGraph:
    """Return the version of a scene with the deflections of a compliance model.

    The version is valid at one configuration. At others the load differs.

    Args:
        scene: nominal scene. Existing errors of its edges are kept.
        model: compliance model.
        q: (n_joints,) configuration at which the version is valid; optional without joints.
        iterations: number of computations of the loads, from the second on at the deflected arm.

    Raises:
        UnknownNameError: if the model has a frame that is not in the scene.
        SceneError: if ``iterations`` is less than 1, or the model has a root frame.
        ConfigurationError: if q is missing or has a wrong shape.
    """
    if iterations < 1:
        raise SceneError(f"iterations must be at least 1, not {iterations}")
    version = scene
    for _ in range(iterations):
        version = _apply_deflections(scene, model.deflections(version, q), q)
    return version


def _apply_deflections(
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
                raise SceneError(f"frame '{frame}' is a root, which has no edge to deflect")
            # The local pose is before the joint, and the offset behind it: transform it at q.
            parent_from_frame = scene.pose(frame, relative_to=parent, q=q)
            before_joint = scene.local_pose(frame).inverse() @ parent_from_frame
            offset = before_joint @ Pose.exp(deflection.offset) @ before_joint.inverse()
            edit.set_pose(frame, scene.local_pose(frame) @ offset)
            if deflection.noise is not None:
                noise = deflection.noise
                edit.add_noise(frame, {source: noise.map(source) for source in noise.sources})
    return edit.finish()


class LinearCompliance:
    """Compliance model with deflections proportional to the weight that a frame carries.

    Args:
        compliances: (6, 6) symmetric positive semi-definite matrix of each frame. It maps a wrench
            [force, torque] at the origin of the frame to a twist [rho, theta], both in its own axes
            [m/N, rad/N, m/(N m), rad/(N m)].
        gravity: (3,) gravity, in the axes of the root [m/s^2].
        fraction: standard deviation of the deflection relative to its size.
        floor: (6, 6) covariance without a load, of all frames or by frame. Defaults to zero.

    Raises:
        SceneError: if a matrix is not a covariance, ``fraction`` is negative or not finite, or
            ``gravity`` is not three finite numbers.
        UnknownNameError: if ``floor`` has a frame that is not in ``compliances``.
    """

    def __init__(
        self,
        compliances: Mapping[str, ArrayLike],
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        fraction: float = 0.0,
        floor: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        self.fraction = plain_number(fraction, "fraction", "1")
        if not (np.isfinite(self.fraction) and self.fraction >= 0.0):
            raise SceneError(
                f"fraction must be a finite number and not negative, not {self.fraction}"
            )
        self.gravity = np.array(plain_numbers(gravity, "gravity", "m/s^2"))
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
            frame: floor_noise
            for frame in self.compliances
            if (floor_noise := _floor_of(frame, floor)) is not None
        }
        if isinstance(floor, Mapping):
            for frame in floor:
                if frame not in self.compliances:
                    raise UnknownNameError.of("frame", frame, self.compliances, where="floor")

    def wrench(self, scene: SceneGraph, frame: str, *, q: ArrayLike | None = None) -> Array:
        """Return the wrench on a frame by the weight of the bodies at the frame and below it.

        Bodies without inertia have no weight.

        Args:
            scene: scene with the frame.
            frame: frame on which the wrench acts.
            q: (n_joints,) configuration; optional without joints.

        Returns:
            (6,) [force, torque] at the origin of the frame, in its own axes [N, N m].

        Raises:
            UnknownNameError: if the frame is unknown.
            ConfigurationError: if q is missing or has a wrong shape.
        """
        kinematics = scene.at(q)
        return weight(kinematics, frame, self.gravity, masses(kinematics, scene.subtree(frame)))

    def deflections(self, scene: SceneGraph, q: ArrayLike | None) -> Mapping[str, Deflection]:
        """Return the deflection of each compliant frame under the weight of the bodies.

        Args:
            scene: scene with the frames of the model.
            q: (n_joints,) configuration; optional without joints.

        Raises:
            UnknownNameError: if the model has a frame that is not in the scene.
            ConfigurationError: if q is missing or has a wrong shape.
        """
        kinematics = scene.at(q)
        frame_masses = masses(kinematics, scene.frame_names)
        deflections_by_frame = {}
        for frame, compliance in self.compliances.items():
            if frame not in scene:
                raise UnknownNameError.of(
                    "frame", frame, scene.frame_names, where="compliance model"
                )
            offset = compliance @ weight(kinematics, frame, self.gravity, frame_masses)
            deflections_by_frame[frame] = Deflection(offset, self._noise(frame, offset))
        return deflections_by_frame

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
    covariance = floor.get(frame) if isinstance(floor, Mapping) else floor
    if covariance is None:
        return None
    root = covariance_root(check_covariance(covariance, 6, what=f"the floor of '{frame}'"))
    return (NoiseSource(root.shape[1], f"play of {frame}"), root) if root.shape[1] else None


def joint_compliance(axis: ArrayLike, *, stiffness: float) -> Array:
    """Return the (6, 6) compliance of an elastic joint, a spring about its axis.

    Args:
        axis: (3,) axis of any length, in the axes of the frame, which are those of the result.
        stiffness: torsional stiffness [N m/rad].

    Raises:
        SceneError: if the axis is zero, or the stiffness is not positive.
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
    """Return the (6, 6) compliance of the free end of a clamped beam, in the axes of that end.

    Args:
        length: length of the beam [m].
        bending: bending stiffness E I, or a pair for the two transverse axes in cyclic order, as y
            and z for a beam along x [N m^2].
        axial: axial stiffness E A [N]. Defaults to rigid.
        torsion: torsional stiffness G J [N m^2]. Defaults to rigid.
        axis: axis along the beam, towards the free end: ``x``, ``y`` or ``z``.

    Raises:
        SceneError: if a number is not positive, or the axis is unknown.
    """
    if axis not in tuple(_AXIS_NAMES):
        raise SceneError(f"axis must be 'x', 'y' or 'z', not '{axis}'")
    bending_stiffnesses = (bending, bending) if isinstance(bending, int | float) else bending
    _check_positive(
        length=length, first_bending=bending_stiffnesses[0], second_bending=bending_stiffnesses[1]
    )
    _check_positive(
        **{
            name: value
            for name, value in (("axial", axial), ("torsion", torsion))
            if value is not None
        }
    )
    x = _AXIS_NAMES.index(axis)
    y, z = (x + 1) % 3, (x + 2) % 3
    matrix = np.zeros((6, 6))
    matrix[x, x] = length / axial if axial is not None else 0.0
    matrix[3 + x, 3 + x] = length / torsion if torsion is not None else 0.0
    # A force along z turns the end about -y, one along y about +z.
    for force, turn, sign, stiffness in (
        (z, y, -1.0, bending_stiffnesses[0]),
        (y, z, 1.0, bending_stiffnesses[1]),
    ):
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
