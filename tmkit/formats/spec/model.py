"""The specification of a scene file, before it is a scene.

Every reader turns its text into a :class:`SceneSpecification`, and one builder
(:mod:`tmkit.formats.spec.build`) turns any number of them into one scene, whatever their formats
and order. Every specification keeps its :class:`~tmkit._support.source_location.SourceLocation`,
where errors of the builder and the core are reported.

Invariants: specifications are immutable and hold finite numbers only; names are not yet resolved: a
parent, a mimic leader or an allowed pair may be wrong until the scene is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tmkit._support.source_location import SourceLocation
from tmkit.formats.spec.parts import GeometrySpec, InertiaSpec, JointSpec, PoseSpec

if TYPE_CHECKING:
    from tmkit._core import EdgeNoise, StampedPoses


@dataclass(frozen=True, slots=True)
class FrameSpec:
    """A frame as declared."""

    name: str
    parent: str | None  # the name of the parent, None for a root of its own
    place: SourceLocation
    pose: PoseSpec = PoseSpec()  # noqa: RUF009  it is immutable
    joint: JointSpec = JointSpec()  # noqa: RUF009  it is immutable
    body: str | None = None  # the body it sits on, None for one of its own name
    classes: tuple[str, ...] = ()  # what the frame is, in the order of mention
    geometry: tuple[GeometrySpec, ...] = ()
    inertia: InertiaSpec | None = None
    # coefficient of friction of its surface, None when the file does not say
    friction: float | None = None
    parent_place: SourceLocation | None = None
    # other names by which a file may speak of this frame, where no frame is called so: the joint
    # above a link, after which the original TMKit names the link's frame
    aliases: tuple[str, ...] = ()
    # free tags, by key; a Stamped where the file says when it was set
    attributes: Mapping[str, object] = field(default_factory=dict)
    # name of a reference body, and the twist (6,) of the frame relative to it, at its origin and in
    # its axes
    twist: tuple[str, tuple[float, ...]] | None = None
    twist_noise: EdgeNoise | None = None  # the error of the twist, None when it is exact
    stamps: StampedPoses | None = None
    # the error of its pose relative to its parent, None when it is exact
    noise: EdgeNoise | None = None


@dataclass(frozen=True, slots=True)
class AllowedPairSpec:
    """Two frames that may touch, and why; ``second_place`` is where the second is named, if that is known."""

    first: str
    second: str
    reason: str
    place: SourceLocation
    second_place: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group, with its frames, the groups in it and the frames that it is below.

    Those of one name in several files are one, with all that each has; of two values of an
    attribute the first counts.
    """

    name: str
    frames: tuple[str, ...]
    groups: tuple[str, ...]
    place: SourceLocation
    parents: tuple[str, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FactSpec:
    """A geometric relation that holds: its kind (``Pose``, ...), notation (target, reference, axes) and numbers."""

    kind: str
    notation: tuple[str, ...]
    numbers: tuple[float, ...]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class StructureSpec:
    """A node of a structure that a function block reads or makes."""

    name: str
    kind: str  # of the node: Group, Transform, GeometricNode or Node
    place: SourceLocation
    # kind of its shape in lower case, such as point_cloud; None without one
    content: str | None = None
    content_type: str | None = None  # name of the type that the content has, None without one
    cardinality: str = "1"  # how many there are: a number, or * for any
    attributes: Mapping[str, object] = field(default_factory=dict)  # those that each has
    children: tuple[StructureSpec, ...] = ()  # the nodes below it


@dataclass(frozen=True, slots=True)
class FunctionBlockSpec:
    """A computation as declared: what it reads and makes, and the nodes where that is at run time."""

    name: str
    place: SourceLocation
    input_structure: StructureSpec | None
    input_hook: str | None
    output_structure: StructureSpec | None
    output_hook: str | None
    # when it runs: onChange NODE, after BLOCK, or every SECONDS, as pairs
    triggers: tuple[tuple[str, str | float], ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SceneSpecification:
    """Everything that one file and what it includes say, in the order in which it is said."""

    frames: tuple[FrameSpec, ...] = ()
    allowed: tuple[AllowedPairSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    bodies_without_frames: tuple[str, ...] = ()
    facts: tuple[FactSpec, ...] = ()  # relations that hold beside what the frames say
    # computations, which are no part of a scene
    function_blocks: tuple[FunctionBlockSpec, ...] = ()
    # whether it says all of a scene: its roots (there is no world that it does not declare), and
    # the order of its frames, in which a child may come before its parent
    is_whole: bool = False
