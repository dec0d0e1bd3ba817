"""Poses whose frames are types, so that a type checker finds products of frames that do not meet.

A frame is a class that is never made; ``FramedPose[Hand, Table]`` is the pose of the hand relative to the table::

    class World(Frame, name="world", body="floor"): ...

    grasp = FramedPose(Hand, Table, tk.Pose([0, 0, 0.1]))  # FramedPose[Hand, Table]
    grasp @ FramedPose(Table, World, tk.Pose())            # FramedPose[Hand, World]; the other order is an error

The checks of relations hold besides, when the program runs.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from tmkit.relations.semantic import SemanticPose
from tmkit.relations.semantics import PoseCoord
from tmkit.relations.violations import SemanticError, Violation
from tmkit.spatial import Pose


class Frame:
    """Base of frames as types; the keywords ``name`` and ``body`` are the name of the class by default.

    Attributes:
        name: name of the frame.
        body: name of the body that it is fixed to.
    """

    name: ClassVar[str]
    body: ClassVar[str]

    def __init_subclass__(cls, *, name: str = "", body: str = "") -> None:
        cls.name = name or cls.__name__
        cls.body = body or cls.name


_Target = TypeVar("_Target", bound=Frame)
_Reference = TypeVar("_Reference", bound=Frame)
_Next = TypeVar("_Next", bound=Frame)


class FramedPose(Generic[_Target, _Reference]):
    """The pose of a frame relative to another, both known to the type checker.

    Args:
        target: the frame.
        reference: the frame relative to which it is, and in whose axes.
        values: a pose, a homogeneous matrix (4, 4), or a relation between just these frames.

    Raises:
        SemanticError: the numbers are no pose, or a relation of other frames.
    """

    __slots__ = ("reference", "relation", "target")

    def __init__(self, target: type[_Target], reference: type[_Reference], values: Any) -> None:
        coord = PoseCoord.named(
            point=target.name, ori=target.name, body=target.body, ref_point=reference.name, ref_ori=reference.name,
            ref_body=reference.body, coord=reference.name,
        )  # fmt: skip
        if isinstance(values, SemanticPose) and values.coord != coord:
            rule = f"it is the pose of {target.__name__} relative to {reference.__name__}"
            raise SemanticError.of("FramedPose", [Violation(rule, repr(values.coord), repr(coord))])
        self.relation = values if isinstance(values, SemanticPose) else SemanticPose(coord, values)
        self.target, self.reference = target, reference

    def __matmul__(self, other: FramedPose[_Reference, _Next]) -> FramedPose[_Target, _Next]:
        """Return the pose of this target relative to the other reference."""
        return FramedPose(self.target, other.reference, self.relation.compose(other.relation))

    def inverse(self) -> FramedPose[_Reference, _Target]:
        """Return the pose the other way round."""
        return FramedPose(self.reference, self.target, self.relation.inverse2())

    @property
    def pose(self) -> Pose:
        """The numbers, reference_from_target."""
        return self.relation.pose

    def __repr__(self) -> str:
        return f"FramedPose({self.target.__name__}, {self.reference.__name__}, {self.pose!r})"
