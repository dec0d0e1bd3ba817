"""Specifications of scene files, before a scene is built from them.

Each reader returns a :class:`SceneSpecification`. The builder (:mod:`tmkit.formats.spec.build`)
makes one scene of any number of specifications, of any formats and in any order. Each part keeps
its :class:`~tmkit._support.source_location.SourceLocation`, at which the builder reports errors,
including those of the core.

Invariants: specifications are immutable and only contain finite numbers. Names are not resolved: a
parent, a mimic leader or an allowed pair may be unknown until the scene is built.
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
    """A frame as declared in a file.

    Attributes:
        name: name of the frame.
        parent: name of the parent, or None for a root.
        place: location of the declaration.
        pose: parent_from_frame with the joint at 0.
        joint: joint between the frame and its parent.
        body: body of the frame, or None for a body of the frame's name.
        classes: classes of the frame, in the order of the file.
        geometry: shapes of the frame.
        inertia: mass properties of the frame's body.
        friction: coefficient of friction of collision shapes without their own, or None.
        parent_place: location of the parent's name, or None for ``place``.
        aliases: alternative names, each valid where no frame has this name. The original TMKit
            names the frame of a link by the joint above the link.
        attributes: free attributes by key. A value is a Stamped if the file has its time.
        twist: name of a reference body, and the (6,) twist of the frame relative to it, at the
            frame's origin and in the frame's axes.
        twist_noise: covariance of the twist, or None if it is exact.
        stamps: stamped poses relative to the parent.
        noise: covariance of the pose relative to the parent, or None if it is exact.
    """

    name: str
    parent: str | None
    place: SourceLocation
    pose: PoseSpec = PoseSpec()  # noqa: RUF009  it is immutable
    joint: JointSpec = JointSpec()  # noqa: RUF009  it is immutable
    body: str | None = None
    classes: tuple[str, ...] = ()
    geometry: tuple[GeometrySpec, ...] = ()
    inertia: InertiaSpec | None = None
    friction: float | None = None
    parent_place: SourceLocation | None = None
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)
    twist: tuple[str, tuple[float, ...]] | None = None
    twist_noise: EdgeNoise | None = None
    stamps: StampedPoses | None = None
    noise: EdgeNoise | None = None


@dataclass(frozen=True, slots=True)
class AllowedPairSpec:
    """Two frames that may touch.

    Attributes:
        first: name of the first frame.
        second: name of the second frame.
        reason: reason of the allowed contact.
        place: location of the pair.
        second_place: location of the second name, or None for ``place``.
    """

    first: str
    second: str
    reason: str
    place: SourceLocation
    second_place: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group of frames and groups.

    Groups of one name in several files are merged. The first value of an attribute has precedence.

    Attributes:
        name: name of the group.
        frames: frames of the group.
        groups: groups in the group.
        place: location of the declaration.
        parents: frames above the group.
        attributes: free attributes by key.
    """

    name: str
    frames: tuple[str, ...]
    groups: tuple[str, ...]
    place: SourceLocation
    parents: tuple[str, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FactSpec:
    """A geometric relation that holds in the scene.

    Attributes:
        kind: kind of the relation, such as "Pose".
        notation: names of target, reference and axes.
        numbers: value of the relation.
        place: location of the relation.
    """

    kind: str
    notation: tuple[str, ...]
    numbers: tuple[float, ...]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class ContentTypeSpec:
    """Data type of the point clouds or meshes of function blocks.

    Attributes:
        name: name of the type in the file.
        place: location of the declaration.
        type: expression of the type in a programming language, or None.
        shared_ptr: expression of its shared pointer, or None.
        library: name of the library that has the type, or None.
    """

    name: str
    place: SourceLocation = field(compare=False)
    type: str | None = None
    shared_ptr: str | None = None
    library: str | None = None


@dataclass(frozen=True, slots=True)
class StructureSpec:
    """A node of the input or output structure of a function block.

    Attributes:
        name: name of the node.
        kind: kind of the node: Group, Transform, GeometricNode or Node.
        place: location of the node.
        content: kind of the node's shape in lower case, such as point_cloud, or None without a
            shape.
        content_type: data type of the content, or None without a type.
        cardinality: number of such nodes below each parent, at least 1, or None for any number.
        attributes: attributes that each such node has.
        children: nodes below the node.
        sizes: sizes of the shape in the order of the language [m]; empty for a mesh or cloud.
    """

    name: str
    kind: str
    place: SourceLocation = field(compare=False)
    content: str | None = None
    content_type: ContentTypeSpec | None = None
    cardinality: int | None = 1
    attributes: Mapping[str, object] = field(default_factory=dict)
    children: tuple[StructureSpec, ...] = ()
    sizes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionBlockSpec:
    """A computation as declared in a file.

    Attributes:
        name: name of the function block.
        place: location of the declaration.
        input_structure: nodes that the computation reads, or None.
        input_hook: node below which the input is at run time, or None.
        output_structure: nodes that the computation makes, or None.
        output_hook: node below which the output is at run time, or None.
        triggers: when the block is executed, as pairs: onChange NODE, after BLOCK, or every
            SECONDS.
        attributes: free attributes by key.
    """

    name: str
    place: SourceLocation
    input_structure: StructureSpec | None
    input_hook: str | None
    output_structure: StructureSpec | None
    output_hook: str | None
    triggers: tuple[tuple[str, str | float], ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SceneSpecification:
    """The content of one file and the files that it includes, in the order of declaration.

    Attributes:
        frames: frames.
        allowed: pairs of frames that may touch.
        groups: groups.
        bodies_without_frames: names of bodies that have no frame.
        facts: relations in addition to those of the frames.
        function_blocks: computations, which are not part of a scene.
        is_whole: whether the file determines the whole scene. Then ``world`` only exists if it is
            declared, and the frames keep their order, in which a child may precede its parent.
    """

    frames: tuple[FrameSpec, ...] = ()
    allowed: tuple[AllowedPairSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    bodies_without_frames: tuple[str, ...] = ()
    facts: tuple[FactSpec, ...] = ()
    function_blocks: tuple[FunctionBlockSpec, ...] = ()
    is_whole: bool = False
