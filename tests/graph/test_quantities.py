"""Quantities with units are rejected at every entry that takes plain numbers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tmkit as tk
from tmkit import _core
from tmkit._core import compose_each
from tmkit.errors import TmkitError
from tmkit.estimation import LinearCompliance, MinCovariance
from tmkit.graph import (
    Evidence,
    Inertia,
    add_observation,
    integrate,
    moved_frames,
    payload_wrench,
    set_wrench_bias,
)
from tmkit.motion import PathConstraint
from tmkit.motion.regions.polygons import ConvexPolygon
from tmkit.motion.timing import time_path
from tmkit.motion.velocity_ik import TwistJacobian
from tmkit.relations import SemanticTwist, TwistCoord
from tmkit.relations.representations import ForceVector, PositionVector
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
        assert self.dimensionless
        assert unit == "dimensionless"
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

ENTRIES: dict[str, Callable[[], Any]] = {
    "Pose": lambda: tk.Pose(cm(1, 2, 3)),
    "Pose of a list": lambda: tk.Pose([cm(1), 0, cm(3)]),
    "Pose of a tuple": lambda: tk.Pose((0.0, 0.0, cm(3))),
    "Pose.from_rpy": lambda: tk.Pose.from_rpy(cm(1, 2, 3), [0, 0, 0]),
    "Pose.exp": lambda: tk.Pose.exp(cm(1, 2, 3, 0, 0, 0)),
    "Pose.apply": lambda: tk.Pose().apply(cm(1, 2, 3)),
    "Pose.apply of rows": lambda: tk.Pose().apply([cm(1, 2, 3), [0, 0, 0]]),
    "Box": lambda: tk.Box(cm(1, 2, 3)),
    "Sphere": lambda: tk.Sphere(cm(1)),
    "Cylinder": lambda: tk.Cylinder(cm(1), 0.2),
    "Mesh": lambda: tk.Mesh(cm(*np.eye(3).tolist()), [[0, 1, 2]]),
    "Revolute": lambda: tk.Revolute(cm(0, 0, 1)),
    "limits of a joint": lambda: tk.Prismatic([0, 0, 1], lower=cm(1), upper=cm(2)),
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
    "point of a Jacobian": lambda: SCENE.at([0.0]).jacobian("cup", point=cm(1, 2, 3)),
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
    "Inertia.center": lambda: Inertia(1.0, center=cm(0, 0, 1)),
    "Inertia.matrix": lambda: Inertia(1.0, matrix=cm(*np.eye(3).tolist())),
    "Measurement of a pose": lambda: tk.Measurement.of_pose(
        "cup", tk.Pose(), covariance=cm(*np.eye(6).tolist())
    ),
    "Measurement of a position": lambda: tk.Measurement.of_position(
        "cup", cm(1, 2, 3), covariance=np.eye(3)
    ),
    "PositionMeasurement": lambda: PositionMeasurement(cm(1, 2, 3), np.eye(3)),
    "RangeMeasurement": lambda: RangeMeasurement(cm(1), 1e-4),
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
    "ConvexPolygon": lambda: ConvexPolygon.around(cm([0, 0], [1, 0], [0, 1])),
    "age of a block": lambda: OutdatedRemover("o", "world", max_age=cm(1)),
    "drift of a block": lambda: ObjectTracker("t", "world", drift=(cm(1), 1.0)),
    "period": lambda: Every(cm(1)),
    "lever": lambda: MinCovariance(lever=cm(1)),
    "limits of a server": lambda: ServiceLimits(bytes_per_second=cm(1)),
    "wrench bias": lambda: set_wrench_bias(SCENE, "cup", cm(1, 2, 3, 4, 5, 6)),
    "gravity": lambda: payload_wrench(SCENE, "cup", gravity=cm(0, 0, -1), q=[0.0]),
    "metres that moved": lambda: moved_frames(
        SCENE, SCENE.set_pose("cup", tk.Pose([1, 0, 0])), q=[0], translation_tolerance=cm(1)
    ),
    "time_path": lambda: time_path(
        Quantity(np.zeros((2, 1)), "meter"),
        velocity_limits=[1.0],
        acceleration_limits=[1.0],
        rate=100.0,
    ),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_a_quantity_with_a_dimension_is_rejected(entry: Callable[[], Any]) -> None:
    """It would be taken for metres, whatever it is."""
    with warnings.catch_warnings(action="error"), pytest.raises((TmkitError, TypeError)) as caught:
        entry()
    assert "stripped" not in str(caught.value)


def test_the_error_names_the_repair() -> None:
    """The argument, the unit, and how to convert."""
    with pytest.raises(
        TmkitError, match=r"must be plain numbers in SI units, not a quantity in centimeter; .*m_as"
    ):
        tk.Pose(cm(1, 2, 3))
    with pytest.raises(
        TmkitError, match=r"Sphere\(\): 'radius' must be a number, not a Quantity.*m_as"
    ):
        tk.Sphere(cm(1))


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


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_quantities_of_pint(entry: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with the library itself."""
    unit = pytest.importorskip("pint").UnitRegistry()
    monkeypatch.setattr(
        f"{__name__}.cm",
        lambda *v: unit.Quantity(v[0] if len(v) == 1 else np.array(v, float), "cm"),
    )
    monkeypatch.setattr(f"{__name__}.Quantity", lambda values, units: unit.Quantity(values, units))
    with warnings.catch_warnings(action="error"), pytest.raises((TmkitError, TypeError)):
        entry()
    degrees = np.array([0.0, 0.0, 180.0]) * unit.degree
    assert tk.Pose.from_rpy([0, 0, 0], degrees).is_close(
        tk.Pose.from_rpy([0, 0, 0], [0, 0, math.pi])
    )
