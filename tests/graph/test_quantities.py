"""Quantities with units: converted where the unit is known, and rejected elsewhere.

Of each entry that takes numbers of a unit, quantities in another unit give the same result as the
numbers in SI units, and a quantity of another dimension is an error that names the argument, the
expected and the received dimension.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tmkit as tk
from tmkit import _core
from tmkit._core import compose_each
from tmkit._support.units import _KINDS
from tmkit.errors import TmkitError
from tmkit.estimation import LinearCompliance, MinCovariance
from tmkit.graph import (
    Evidence,
    Inertia,
    StampedPoses,
    add_observation,
    integrate,
    moved_frames,
    observations,
    payload_wrench,
    set_wrench_bias,
    twist,
    wrench,
)
from tmkit.motion import PathConstraint
from tmkit.motion.regions.polygons import ConvexPolygon
from tmkit.motion.start_tolerances import clamp_to_limits
from tmkit.motion.timing import time_path
from tmkit.motion.velocity_ik import TwistJacobian
from tmkit.relations import SemanticTwist, TwistCoord
from tmkit.relations.representations import (
    AngularFirstTwist,
    ForceVector,
    HomogeneousMatrix,
    PositionVector,
    RotationVector,
    WrenchVector,
)
from tmkit.simulation import Camera
from tmkit.spatial import (
    GaussianPose,
    GaussianTwist,
    PositionMeasurement,
    RangeMeasurement,
    covariance_root,
)
from tmkit.spatial.converters import nearest_rotation
from tmkit.spatial.covariances import check_covariance
from tmkit.world import ObjectTracker, OutdatedRemover, ServiceLimits
from tmkit.world.block_runner import Every


class Quantity:
    """Numbers whose unit numpy strips with a warning, like those of pint."""

    def __init__(self, magnitude: Any, units: str, factor: float = 1.0) -> None:
        self.magnitude, self.units, self.factor = magnitude, units, factor

    @property
    def dimensionless(self) -> bool:
        """Whether it is a plain number in SI units once converted."""
        return self.units in ("", "degree")

    def to(self, unit: str) -> Quantity:
        """Return it in another unit."""
        if not self.dimensionless or unit not in ("dimensionless", "rad"):
            raise ValueError(f"no conversion from {self.units} to {unit}")
        return Quantity(np.multiply(self.magnitude, self.factor), "")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        warnings.warn(
            "The unit of the quantity is stripped when downcasting to ndarray.", stacklevel=2
        )
        return np.asarray(self.magnitude, dtype=dtype)

    def __len__(self) -> int:
        return len(self.magnitude)

    def __iter__(self) -> Any:
        return iter([Quantity(value, self.units, self.factor) for value in self.magnitude])

    def __getitem__(self, index: int) -> Quantity:
        return Quantity(self.magnitude[index], self.units, self.factor)

    def __float__(self) -> float:
        if not self.dimensionless:
            raise TypeError(f"cannot convert from {self.units} to dimensionless")
        return float(self.magnitude * self.factor)

    def __getattr__(self, name: str) -> Any:  # as pint does, down to the protocols of arrays
        if name.startswith("__array_"):
            raise AttributeError(name)
        return getattr(np.asarray(self.magnitude, dtype=float), name)


def cm(*values: Any) -> Any:
    """Return numbers in centimetres: one, or an array."""
    return Quantity(values[0] if len(values) == 1 else np.array(values, dtype=float), "centimeter")


SCENE = (
    tk.SceneGraph()
    .add_frame("cup", "world")
    .add_frame("arm", "world", joint=tk.Revolute([0, 0, 1]))
)
CUBE = tk.Box([1, 1, 1])

REJECTED: dict[str, Callable[[], Any]] = {
    "Pose.exp": lambda: tk.Pose.exp(cm(1, 2, 3, 0, 0, 0)),
    "Revolute": lambda: tk.Revolute(cm(0, 0, 1)),
    "set_twist": lambda: SCENE.set_twist("cup", cm(1, 2, 3, 0, 0, 0), relative_to_body="world"),
    "set_twist in arrays": (
        lambda: tk.SceneArrays(SCENE).set_twist(
            "cup", cm(1, 2, 3, 0, 0, 0), relative_to_body="world"
        )
    ),
    "specification": (
        lambda: _core.FrameSpecification("a", "world").replace(twist=("cup", cm(1, 2, 3, 0, 0, 0)))
    ),
    "covariance": lambda: SCENE.set_covariance("cup", cm(*np.eye(6).tolist())),
    "configuration": lambda: SCENE.configuration({"arm": cm(1)}),
    "q": lambda: SCENE.at([cm(1)]),
    "q as an array": lambda: SCENE.at(Quantity(np.array([1.0]), "meter")),
    "stamp": lambda: SCENE.add_stamped_pose("cup", tk.Pose(), stamp=cm(1.0)),
    "integrated": lambda: integrate(
        SCENE.set_twist("cup", np.ones(6), relative_to_body="world"), cm(1)
    ),
    "GaussianPose": lambda: tk.GaussianPose(tk.Pose(), cm(*np.eye(6).tolist())),
    "Pose.from_array": lambda: tk.Pose.from_array(cm(1, 2, 3, 0, 0, 0, 1)),
    "Pose.from_matrix": lambda: tk.Pose.from_matrix(cm(*np.eye(4).tolist())),
    "Pose.interpolate": lambda: tk.Pose().interpolate(tk.Pose(), cm(1)),
    "compose_each": lambda: compose_each(
        cm([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1]), [[0, 0, 0, 0, 0, 0, 1.0]]
    ),
    "edge covariance": lambda: SCENE.add_frame(
        "x", "world", pose=GaussianPose(covariance=cm(*np.eye(6).tolist()))
    ),
    "qd": lambda: SCENE.at([0.0], [cm(1)]),
    "stamp of a query": lambda: SCENE.pose("cup", relative_to="world", stamp=cm(1.0)),
    "velocity of a joint": lambda: tk.Revolute([0, 0, 1], velocity=cm(1)),
    "Inertia": lambda: Inertia(cm(1)),
    "Inertia.matrix": lambda: Inertia(1.0, matrix=cm(*np.eye(3).tolist())),
    "Measurement of a pose": lambda: tk.Measurement.of_pose(
        "cup", tk.Pose(), covariance=cm(*np.eye(6).tolist())
    ),
    "variance of a range": lambda: RangeMeasurement(1.0, cm(1)),
    "GaussianTwist.integrate": lambda: GaussianTwist(np.ones(6), np.eye(6)).integrate(cm(1)),
    "covariance_root": lambda: covariance_root(cm(*np.eye(6).tolist())),
    "nearest_rotation": lambda: nearest_rotation(cm(*np.eye(3).tolist())),
    "observation": lambda: add_observation(
        SCENE, "cup", tk.Pose(), relative_to="world", evidence=Evidence(stamp=cm(1))
    ),
    "LinearCompliance": lambda: LinearCompliance({"cup": np.eye(6)}, fraction=cm(1)),
    "compliance": lambda: LinearCompliance({"cup": cm(*np.eye(6).tolist())}),
    "PathConstraint": lambda: PathConstraint("orientation", "arm", tolerance=cm(1)),
    "twist of a relation": lambda: SemanticTwist(
        TwistCoord("e|C", "D", "[r]"), cm(1, 2, 3, 0, 0, 0)
    ),
    "force of a relation": lambda: ForceVector(cm(1, 2, 3)),
    "force as a list": lambda: ForceVector([cm(1), 0.0, 0.0]),
    "batch of a relation": lambda: SemanticTwist(
        TwistCoord("e|C", "D", "[r]"), cm([0.0] * 6, [0.0] * 6)
    ),
    "covariance of a relation": lambda: SemanticTwist(
        TwistCoord("e|C", "D", "[r]"), np.zeros(6), covariance=cm(*np.eye(6).tolist())
    ),
    "arrays.forward": lambda: tk.SceneArrays(SCENE).forward([cm(1)]),
    "TwistJacobian": (
        lambda: TwistJacobian(TwistCoord("e|C", "D", "[r]"), ("arm",), np.ones((6, 1))).twist(
            [cm(1)]
        )
    ),
    "GaussianTwist": lambda: GaussianTwist(cm(1, 2, 3, 0, 0, 0), np.eye(6)),
    "check_covariance": lambda: check_covariance(cm(*np.eye(3).tolist()), 3),
    "age of a block": lambda: OutdatedRemover("o", "world", max_age=cm(1)),
    "drift of a block": lambda: ObjectTracker("t", "world", drift=(cm(1), 1.0)),
    "period": lambda: Every(cm(1)),
    "limits of a server": lambda: ServiceLimits(bytes_per_second=cm(1)),
    "wrench bias": lambda: set_wrench_bias(SCENE, "cup", cm(1, 2, 3, 4, 5, 6)),
    "gravity": lambda: payload_wrench(SCENE, "cup", gravity=cm(0, 0, -1), q=[0.0]),
    "time_path": lambda: time_path(
        Quantity(np.zeros((2, 1)), "meter"),
        velocity_limits=[1.0],
        acceleration_limits=[1.0],
        rate=100.0,
    ),
}


@dataclass(frozen=True)
class Entry:
    """Entry for numbers.

    Attributes:
        make: the call, which returns an object that is compared.
        numbers: numbers in SI units.
        units: unit of all numbers, or of each along the last axis.
        argument: name of the argument in errors.
    """

    make: Callable[[Any], Any]
    numbers: Any
    units: str
    argument: str


SIX, SIX_RATES = "m m m rad rad rad", "m/s m/s m/s rad/s rad/s rad/s"
ROW = [0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0]
BODIES = SCENE.add_frame("slide", "arm", joint=tk.Prismatic([0, 0, 1]))
COORD = TwistCoord("e|C", "D", "[r]")
AT = {"relative_to": "world", "q": [0.0, 0.0]}


def moving(dt: Any) -> Any:
    """Return a scene that has moved for a time."""
    return integrate(SCENE.set_twist("cup", np.ones(6), relative_to_body="world"), dt).pose("cup")


def seen(measurement: tk.Measurement) -> tk.Pose:
    """Return the pose of a cup after a measurement."""
    scene = SCENE.set_pose("cup", tk.Pose([1, 0, 0])).set_covariance("cup", np.eye(6))
    return scene.condition(measurement).pose("cup")


ENTRIES: dict[str, Entry] = {
    # --- poses
    "Pose": Entry(tk.Pose, [0.1, 0.2, 0.3], "m", "translation"),
    "Pose.from_rpy": Entry(
        lambda x: tk.Pose.from_rpy(x, [0, 0, 0]), [0.1, 0.2, 0.3], "m", "translation"
    ),
    "angles of Pose.from_rpy": Entry(
        lambda x: tk.Pose.from_rpy([0, 0, 0], x), [0.1, 0.2, 0.3], "rad", "rpy"
    ),
    "Pose.exp": Entry(tk.Pose.exp, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], SIX, "xi"),
    "Pose.from_array": Entry(tk.Pose.from_array, ROW, "m m m 1 1 1 1", "pose"),
    "Pose.from_matrix": Entry(
        tk.Pose.from_matrix, tk.Pose([1.0, 2.0, 3.0]).as_matrix().tolist(), "1 1 1 m", "matrix"
    ),
    "Pose.from_rotation_matrix": Entry(
        lambda x: tk.Pose.from_rotation_matrix(x, np.eye(3)), [0.1, 0.2, 0.3], "m", "translation"
    ),
    "Pose.apply": Entry(tk.Pose([1, 0, 0]).apply, [0.1, 0.2, 0.3], "m", "point"),
    "Pose.apply of rows": Entry(tk.Pose([1, 0, 0]).apply, [[0.1, 0.2, 0.3]] * 2, "m", "points"),
    "tolerance of is_close": Entry(
        lambda x: tk.Pose().is_close(tk.Pose([0.03, 0, 0]), translation_tolerance=x),
        0.05,
        "m",
        "translation_tolerance",
    ),
    "compose_each": Entry(lambda x: compose_each(x, [ROW]), [ROW, ROW], "m m m 1 1 1 1", "left"),
    "GaussianTwist": Entry(
        lambda x: GaussianTwist(x).mean, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], SIX_RATES, "mean"
    ),
    "GaussianTwist.integrate": Entry(
        lambda x: GaussianTwist(np.ones(6)).integrate(x).mean, 0.3, "s", "duration"
    ),
    "GaussianTwist.shift": Entry(
        lambda x: GaussianTwist(np.ones(6)).shift(x).mean, [0.1, 0.2, 0.3], "m", "offset"
    ),
    # --- scenes
    "add_frame": Entry(
        lambda x: SCENE.add_frame("x", "world", pose=tk.Pose(x)).pose("x"),
        [0.1, 0.2, 0.3],
        "m",
        "translation",
    ),
    "set_twist": Entry(
        lambda x: SCENE.set_twist("cup", x, relative_to_body="world").twist_edge("cup")[1],  # type: ignore[index]
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        SIX_RATES,
        "vector",
    ),
    "configuration": Entry(
        lambda x: BODIES.configuration({"arm": x[0], "slide": x[1]}), [0.1, 0.2], "rad m", "joint"
    ),
    "q": Entry(lambda x: BODIES.pose("slide", relative_to="world", q=x), [0.1, 0.2], "rad m", "q"),
    "q of a problem": Entry(
        lambda x: tk.PlanningProblem(BODIES, x, domain="blocks", goal="(handempty)").q,
        [0.1, 0.2],
        "rad m",
        "q",
    ),
    "q of clamp_to_limits": Entry(lambda x: clamp_to_limits(BODIES, x), [0.1, 0.2], "rad m", "q"),
    "rows of q": Entry(
        lambda x: BODIES.pose_batch("slide", q=x), [[0.1, 0.2], [0.3, 0.4]], "rad m", "q"
    ),
    "qd": Entry(lambda x: BODIES.at([0.0, 0.0], x).twist("slide"), [0.1, 0.2], "rad/s m/s", "qd"),
    "q of arrays": Entry(
        lambda x: tk.SceneArrays(BODIES).pose("slide", q=x), [0.1, 0.2], "rad m", "q"
    ),
    "qd of arrays": Entry(
        lambda x: tk.SceneArrays(BODIES).twist("slide", q=[0, 0], qd=x),
        [0.1, 0.2],
        "rad/s m/s",
        "qd",
    ),
    "qd of a relation": Entry(
        lambda x: twist(BODIES, "slide", q=[0, 0], qd=x).numbers, [0.1, 0.2], "rad/s m/s", "qd"
    ),
    "point of a Jacobian": Entry(
        lambda x: BODIES.at([0.0, 0.0]).jacobian("cup", point=x), [0.1, 0.2, 0.3], "m", "point"
    ),
    "transform_points": Entry(
        lambda x: BODIES.transform_points(x, source="cup", target="world"),
        [[0.1, 0.2, 0.3]],
        "m",
        "points",
    ),
    "stamp": Entry(
        lambda x: SCENE.add_stamped_pose("cup", tk.Pose(), stamp=x).stamped_poses("cup").stamps,  # type: ignore[union-attr]
        3.0,
        "s",
        "stamp",
    ),
    "stamp of a history": Entry(
        lambda x: StampedPoses([0.0, 60.0], [tk.Pose(), tk.Pose([1, 0, 0])]).gaussian_at(x).mean,
        12.0,
        "s",
        "stamp",
    ),
    "stamp of a query": Entry(
        lambda x: (
            SCENE.add_stamped_pose("cup", tk.Pose(), stamp=0.0)
            .add_stamped_pose("cup", tk.Pose([1, 0, 0]), stamp=60.0)
            .pose("cup", stamp=x)
        ),
        12.0,
        "s",
        "stamp",
    ),
    "integrate": Entry(moving, 0.3, "s", "time"),
    "stamp of an observation": Entry(
        lambda x: (
            observations(
                add_observation(
                    SCENE, "cup", tk.Pose(), relative_to="world", evidence=Evidence(stamp=x)
                )
            )[0].stamp
        ),
        3.0,
        "s",
        "stamp",
    ),
    "gravity": Entry(
        lambda x: (
            payload_wrench(
                SCENE.set_inertia("cup", Inertia(2.0)), "cup", gravity=x, q=[0.0]
            ).numbers
        ),
        [0.0, 0.0, -9.81],
        "m/s^2",
        "gravity",
    ),
    "wrench bias": Entry(
        lambda x: wrench(set_wrench_bias(SCENE, "cup", x), "cup", np.zeros(6)).numbers,
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "N N N N*m N*m N*m",
        "Wrench",
    ),
    # --- joints, masses and shapes
    "lower": Entry(lambda x: tk.Revolute([0, 0, 1], lower=x).lower, -0.3, "rad", "lower"),
    "upper of a slide": Entry(lambda x: tk.Prismatic([0, 0, 1], upper=x).upper, 0.3, "m", "upper"),
    "velocity": Entry(
        lambda x: tk.Revolute([0, 0, 1], velocity=x).velocity, 0.3, "rad/s", "velocity"
    ),
    "velocity of a slide": Entry(
        lambda x: tk.Prismatic([0, 0, 1]).replace(velocity=x).velocity, 0.3, "m/s", "velocity"
    ),
    "effort": Entry(lambda x: tk.Revolute([0, 0, 1], effort=x).effort, 3.0, "N*m", "effort"),
    "effort of a slide": Entry(
        lambda x: tk.Prismatic([0, 0, 1], effort=x).effort, 3.0, "N", "effort"
    ),
    "mass": Entry(lambda x: Inertia(x).mass, 0.3, "kg", "mass"),
    "centre of mass": Entry(lambda x: Inertia(1.0, x).center, [0.1, 0.2, 0.3], "m", "center"),
    "moments of inertia": Entry(
        lambda x: Inertia(1.0, matrix=x).matrix, np.eye(3).tolist(), "kg*m^2", "matrix"
    ),
    "Box": Entry(lambda x: tk.Box(x).dimensions, [0.1, 0.2, 0.3], "m", "size"),
    "Sphere": Entry(lambda x: tk.Sphere(x).dimensions, 0.3, "m", "radius"),
    "Cylinder": Entry(lambda x: tk.Cylinder(0.1, x).dimensions, 0.3, "m", "length"),
    "Mesh": Entry(lambda x: tk.Mesh(x, [[0, 1, 2]]).vertices, np.eye(3).tolist(), "m", "vertices"),
    "PointCloud": Entry(
        lambda x: tk.PointCloud(x, radius=0.1).points, [[0.1, 0.2, 0.3]], "m", "points"
    ),
    # --- measurements
    "Measurement of a position": Entry(
        lambda x: seen(tk.Measurement.of_position("cup", x, covariance=np.eye(3))),
        [0.1, 0.2, 0.3],
        "m",
        "position",
    ),
    "Measurement of a range": Entry(
        lambda x: seen(tk.Measurement.of_range("cup", x, deviation=0.1)), 0.3, "m", "distance"
    ),
    "deviation of a bearing": Entry(
        lambda x: tk.Measurement.of_bearing("cup", [0, 0, 1], deviation=x).covariance,
        0.3,
        "rad",
        "deviation",
    ),
    "PositionMeasurement": Entry(
        lambda x: PositionMeasurement(x, np.eye(3)).position, [0.1, 0.2, 0.3], "m", "position"
    ),
    "RangeMeasurement": Entry(lambda x: RangeMeasurement(x, 1.0).distance, 0.3, "m", "distance"),
    "variance of a range": Entry(
        lambda x: RangeMeasurement(1.0, x).variance, 0.3, "m^2", "variance"
    ),
    # --- relations
    "position": Entry(lambda x: PositionVector(x).vector, [0.1, 0.2, 0.3], "m", "position vector"),
    "twist": Entry(
        lambda x: SemanticTwist(COORD, x).numbers,
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        SIX_RATES,
        "Twist",
    ),
    "batch of twists": Entry(
        lambda x: SemanticTwist(COORD, x).numbers,
        [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]] * 2,
        SIX_RATES,
        "Twist",
    ),
    "angular first": Entry(
        lambda x: AngularFirstTwist(x).numbers,
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "rad/s rad/s rad/s m/s m/s m/s",
        "Twist",
    ),
    "wrench": Entry(
        lambda x: WrenchVector(x).numbers,
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "N N N N*m N*m N*m",
        "Wrench",
    ),
    "force": Entry(lambda x: ForceVector(x).vector, [0.1, 0.2, 0.3], "N", "Force"),
    "rotation vector": Entry(
        lambda x: RotationVector(x).vector, [0.1, 0.2, 0.3], "rad", "rotation vector"
    ),
    "homogeneous matrix": Entry(
        lambda x: HomogeneousMatrix(x).matrix,
        tk.Pose([1.0, 2.0, 3.0]).as_matrix().tolist(),
        "1 1 1 m",
        "homogeneous matrix",
    ),
    "duration": Entry(
        lambda x: SemanticTwist(TwistCoord("e|C", "D", "[e]"), np.ones(6)).integrate(x).numbers,
        0.3,
        "s",
        "time",
    ),
    # --- other values
    "ConvexPolygon": Entry(
        lambda x: ConvexPolygon.around(x).vertices,
        [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
        "m",
        "points",
    ),
    "lever": Entry(lambda x: MinCovariance(lever=x).lever, 0.3, "m", "lever"),
    "period": Entry(lambda x: Every(x).period, 0.3, "s", "period"),
    "angle of PathConstraint": Entry(
        lambda x: PathConstraint("orientation", "arm", tolerance=x).tolerance,
        0.3,
        "rad",
        "tolerance",
    ),
    "metres that moved": Entry(
        lambda x: moved_frames(
            SCENE, SCENE.set_pose("cup", tk.Pose([1, 0, 0])), q=[0], translation_tolerance=x
        ),
        0.3,
        "m",
        "translation_tolerance",
    ),
    "Camera": Entry(lambda x: Camera(x, (0.0, 0.0, 0.0)).axes(), [1.0, 2.0, 3.0], "m", "position"),
    "view angle": Entry(
        lambda x: Camera((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), field_of_view=x).field_of_view,
        0.3,
        "rad",
        "field_of_view",
    ),
}
OTHER = {
    "1": "dimensionless",
    "m": "inch",
    "rad": "degree",
    "s": "minute",
    "m/s": "km/hour",
    "rad/s": "rpm",
    "m/s^2": "foot/s^2",
    "kg": "pound",
    "kg*m^2": "gram*cm^2",
    "N": "kilonewton",
    "N*m": "kilonewton*cm",
    "m^2": "cm^2",
}
BY_ENTRY = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())


@pytest.fixture(scope="module")
def pint() -> Any:
    """Return a registry of pint."""
    return pytest.importorskip("pint").UnitRegistry()


def quantities(pint: Any, values: Any, units: list[str]) -> Any:
    """Return numbers in SI units as nested lists of quantities in other units."""
    if not isinstance(values, list):
        return pint.Quantity(values, units[0].replace("1", "")).to(OTHER[units[0]])
    if isinstance(values[0], list):
        return [quantities(pint, value, units) for value in values]
    return [quantities(pint, v, [units[i % len(units)]]) for i, v in enumerate(values)]


def with_entry(values: Any, i: int, value: Any) -> Any:
    """Return numbers with another value for the i-th along the last axis."""
    if not isinstance(values, list):
        return value
    if isinstance(values[0], list):
        return [with_entry(each, i, value) for each in values]
    return [value if k == i else each for k, each in enumerate(values)]


def numbers_in(result: Any) -> Any:
    """Return the numbers in a result."""
    if isinstance(result, tk.Pose):
        return result.as_array()
    if isinstance(result, tuple) and not all(isinstance(each, (float, str)) for each in result):
        return np.concatenate([np.ravel(each) for each in result])
    return result


@BY_ENTRY
def test_quantities_are_converted(entry: Entry, pint: Any) -> None:
    """They give the result of the numbers in SI units, in a list, a tuple and an array."""
    units = entry.units.split()
    expected = numbers_in(entry.make(entry.numbers))
    given = [quantities(pint, entry.numbers, units)]
    if isinstance(given[0], list):
        given.append(tuple(given[0]))
        if len(units) == 1:
            given.append(pint.Quantity(np.array(entry.numbers), units[0]).to(OTHER[units[0]]))
    with warnings.catch_warnings(action="error"):
        for each in given:
            result = numbers_in(entry.make(each))
            if isinstance(expected, tuple) and expected and isinstance(expected[0], str):
                assert result == expected
            else:
                np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-15)


@BY_ENTRY
def test_another_dimension_is_rejected(entry: Entry, pint: Any) -> None:
    """The error names the argument, the expected and the received dimension."""
    units = entry.units.split()
    for i, unit in enumerate(units):
        wrong = pint.Quantity(1.0, "second" if unit == "kg" else "kilogram")
        given = with_entry(entry.numbers, i, wrong)
        with warnings.catch_warnings(action="error"), pytest.raises(TmkitError) as caught:
            entry.make(given)
        text = str(caught.value)
        assert entry.argument in text
        assert _KINDS[unit] in text
        received = "second of dimension [time]" if unit == "kg" else "kilogram of dimension [mass]"
        assert f"a quantity in {received}" in text


def test_an_angle_is_no_length(pint: Any) -> None:
    """A quantity without dimension is an angle or a number, and nothing else."""
    for make in (
        lambda: tk.Pose([90 * pint.degree, 0, 0]),
        lambda: tk.Sphere(90 * pint.degree),
        lambda: tk.Pose(pint.Quantity([1.0, 2.0, 3.0], "")),
        lambda: SCENE.set_twist("cup", np.ones(6) * pint.degree, relative_to_body="world"),
    ):
        with pytest.raises(TmkitError, match=r"must be a (length|velocity) in m.* not a quantity"):
            make()
    with pytest.raises(TmkitError, match="rpy must be an angle in rad, not a quantity in meter of"):
        tk.Pose.from_rpy([0, 0, 0], [1 * pint.m, 0, 0])
    assert tk.Pose.from_rpy([0, 0, 0], pint.Quantity([0, 0, 1.5], "")).is_close(
        tk.Pose.from_rpy([0, 0, 0], [0, 0, 1.5])
    )


def test_the_entry_of_several_units_is_named(pint: Any) -> None:
    """Its index is in the message."""
    with pytest.raises(TmkitError, match=r"xi\[4\] must be an angle in rad, not a quantity in met"):
        tk.Pose.exp([0, 0, 0, 0, 1 * pint.m, 0])
    with pytest.raises(TmkitError, match=r"q\[1\] must be a length in m, not a quantity in second"):
        BODIES.pose("slide", q=[0, 1 * pint.s])
    with pytest.raises(TmkitError, match=r"joint 'slide' must be a length in m, not .* in degree"):
        BODIES.configuration({"slide": 1 * pint.degree})
    with pytest.raises(TmkitError, match=r"Twist\[3\]: it is an angular velocity in rad/s"):
        SemanticTwist(COORD, [0, 0, 0, 1 * pint.m, 0, 0])


def test_one_number_is_no_array(pint: Any) -> None:
    """An array of quantities where one is expected is an error."""
    with pytest.raises(TmkitError, match="radius must be one number, not"):
        tk.Sphere(np.ones(3) * pint.m)
    with pytest.raises(TmkitError, match="duration must be one number"):
        GaussianTwist(np.ones(6)).integrate(np.ones(3) * pint.s)


@pytest.mark.parametrize("entry", REJECTED.values(), ids=REJECTED.keys())
def test_a_quantity_with_a_dimension_is_rejected(entry: Callable[[], Any]) -> None:
    """It would be taken for metres, whatever it is."""
    with warnings.catch_warnings(action="error"), pytest.raises((TmkitError, TypeError)) as caught:
        entry()
    assert "stripped" not in str(caught.value)


def test_the_error_names_the_repair() -> None:
    """Where no unit is known: the argument, the unit, and how to convert."""
    with pytest.raises(
        TmkitError,
        match=r"covariance must be plain numbers in SI units, not a quantity in centimeter; .*m_as",
    ):
        tk.GaussianPose(tk.Pose(), cm(*np.eye(6).tolist()))
    with pytest.raises(TmkitError, match=r"'fraction' must be a number, not a Quantity.*m_as"):
        tk.Pose().interpolate(tk.Pose(), cm(1))


def test_relations_convert_what_they_know_the_unit_of() -> None:
    """A position vector is in metres, whatever the unit of its quantity, also within a list."""
    unit = pytest.importorskip("pint").UnitRegistry()
    for values in (
        np.array([1.0, 2.0, 3.0]) * unit.cm,
        [1.0 * unit.cm, 20.0 * unit.mm, 0.03 * unit.m],
    ):
        np.testing.assert_allclose(PositionVector(values).vector, [0.01, 0.02, 0.03])


def test_angles_without_dimension_are_converted() -> None:
    """Degrees and radians are one dimension: a quantity of them gives radians."""
    degrees = Quantity(np.array([0.0, 0.0, 180.0]), "degree", math.pi / 180)
    turned = tk.Pose.from_rpy([0, 0, 0], degrees)
    assert turned.is_close(tk.Pose.from_rpy([0, 0, 0], [0, 0, math.pi]))
    assert SCENE.pose("arm", relative_to="world", q=[degrees[2]]).is_close(turned)


@pytest.mark.parametrize("entry", REJECTED.values(), ids=REJECTED.keys())
def test_rejected_quantities_of_pint(
    entry: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, pint: Any
) -> None:
    """The same with the library itself."""
    monkeypatch.setattr(
        f"{__name__}.cm",
        lambda *v: pint.Quantity(v[0] if len(v) == 1 else np.array(v, float), "cm"),
    )
    monkeypatch.setattr(f"{__name__}.Quantity", lambda values, units: pint.Quantity(values, units))
    with warnings.catch_warnings(action="error"), pytest.raises((TmkitError, TypeError)):
        entry()
