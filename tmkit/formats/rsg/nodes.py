"""Conversion of the nodes of RSG-DSL into frames, groups and shapes.

Extensions of the language use the values of JSON scenes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tmkit._core import EdgeNoise, StampedPoses
from tmkit._support.source_location import SourceLocation, locate_errors
from tmkit.errors import FileFormatError
from tmkit.formats.json.frames import (
    inertia_from_dict,
    joint_from_dict,
    noise_from_dict,
    pose_from_dict,
    twist_from_dict,
)
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.json.shapes import shape_from_dict
from tmkit.formats.mesh.meshes import MeshSpec
from tmkit.formats.rsg.declarations import Declarations, name_place
from tmkit.formats.rsg.grammar import SIZES, Declaration, Member, Rigid
from tmkit.formats.rsg.values import pose_from_value, si_quantity, stamp_in_seconds
from tmkit.formats.spec.model import FrameSpec, GroupSpec
from tmkit.formats.spec.parts import GeometrySpec, JointSpec, PrimitiveSpec
from tmkit.formats.spec.values import spec_of_inertia, spec_of_joint, spec_of_pose
from tmkit.graph import NoiseSource, SceneGraph
from tmkit.graph.traversal import Stamped
from tmkit.spatial import GaussianPose, Pose

HISTORY_WINDOW = 10.0
"""Time of history that a transform keeps by default, as in the robot scene graph [s]."""

HISTORY_CAPACITY = 32
"""Poses of history that a transform keeps by default, as in the robot scene graph."""

_GROUP_KEYWORDS = ("Attribute", "child", "member", "cardinality", "unplaced", "called")
"""Keywords of the members of a group."""

_POINT_RADIUS = 0.005
"""Default radius of a point of a point cloud [m]."""


@dataclass(slots=True)
class NodeReader(Declarations):
    """Reader of nodes, after they are linked by :meth:`Declarations.link`."""

    sources: list[NoiseSource] = field(default_factory=list)

    def group(self, name: str) -> GroupSpec:
        """Return the group of a node."""
        declaration = self.nodes[name]
        frames: list[str] = []
        groups: list[str] = []
        for member in declaration.members:
            if member.keyword not in _GROUP_KEYWORDS:
                raise declaration.text.place(member.offset).error(
                    f"a Group that is not a root has no '{member.keyword}'"
                )
            if member.keyword in ("child", "member"):
                (reference,) = member.values
                self.lookup(self.nodes, reference, declaration.text, "the member")
                (frames if self.is_frame(reference.text) else groups).append(
                    self.scene_name(reference.text)
                )
        parents = [
            self.scene_name(holder)
            for holder, _ in self.holders.get(name, ())
            if self.is_frame(holder)
        ]
        place, attributes = name_place(declaration), self.attributes(declaration)
        return GroupSpec(
            self.scene_name(name), tuple(frames), tuple(groups), place, tuple(parents), attributes
        )

    def frame(self, name: str) -> FrameSpec:
        """Return the frame of a node."""
        declaration, place = self.nodes[name], name_place(self.nodes[name])
        frames_above = self.frames_above[name]
        parent: str | None = "world"
        if name in self.roots:
            parent = None
        elif frames_above:
            parent = self.scene_name(frames_above[0])
        holders = self.holders.get(name, ())
        pose, stamps, noise = self._motion(declaration)
        joint, data = JointSpec(), {member.keyword: member for member in declaration.members}
        if "joint" in data:
            part_place = declaration.text.place(data["joint"].offset)
            joint = spec_of_joint(
                self.json(declaration, data["joint"], joint_from_dict), part_place
            )
        bodies = declaration.get("body")
        inertia = None
        if "inertia" in data:
            inertia = self.json(
                declaration,
                data["inertia"],
                lambda node: inertia_from_dict(node, self.scene_name(name), self.note),
            )
        twist = twist_noise = None
        if "twist" in data:
            reference, vector = self.json(declaration, data["twist"], twist_from_dict)
            twist = reference, tuple(vector)
            if "noise" in data["twist"].values[0]:
                twist_noise = self.json(
                    declaration,
                    data["twist"],
                    lambda node: noise_from_dict(node.get("noise"), self.sources),
                )
        if "noise" in data:
            noise = self.json(
                declaration, data["noise"], lambda node: noise_from_dict(node, self.sources)
            )
        return FrameSpec(
            name=self.scene_name(name),
            parent=parent,
            place=place,
            pose=spec_of_pose(pose),
            joint=joint,
            body=bodies[-1].values[0] if bodies else self.scene_name(name),
            classes=tuple(member.values[0] for member in declaration.get("isa")),
            geometry=tuple(self._geometry(declaration)),
            inertia=spec_of_inertia(inertia, place) if inertia else None,
            parent_place=holders[0][1] if holders else None,
            attributes=self.attributes(declaration),
            twist=twist,
            twist_noise=twist_noise,
            stamps=stamps,
            noise=noise,
        )

    def json(
        self, declaration: Declaration, member: Member, read: Callable[[JsonNode], Any]
    ) -> Any:
        """Return the result of a reader of JSON scenes for the value of a member."""
        place = declaration.text.place(member.offset)
        return read_at(
            place, lambda: read(JsonNode(member.values[0], str(place.path), member.keyword))
        )

    def attributes(self, declaration: Declaration) -> dict[str, object]:
        """Return the attributes by key, with a list of values for a repeated key."""
        values_by_key: dict[str, list[object]] = {}
        stamps: dict[str, float] = {}
        for member in declaration.get("Attribute"):
            key, value, stamp = member.values
            values_by_key.setdefault(key, []).append(value)
            if stamp is not None:
                stamps[key] = stamp_in_seconds(stamp, declaration.text.place(stamp.offset))
        values = {
            key: repeated[0] if len(repeated) == 1 else repeated
            for key, repeated in values_by_key.items()
        }
        return {
            key: Stamped(value, stamps[key]) if key in stamps else value
            for key, value in values.items()
        }

    def _motion(
        self, declaration: Declaration
    ) -> tuple[Pose, StampedPoses | None, EdgeNoise | None]:
        """Return the pose of a transform, its history and its noise."""
        unstamped: Pose | None = None
        covariance_now: np.ndarray | None = None
        poses_by_stamp: dict[float, tuple[Pose, np.ndarray | None]] = {}
        names: dict[str, int] = {}
        for rigid in (rigid for member in declaration.get("transforms") for rigid in member.values):
            place = declaration.text.place(rigid.name.offset)
            if rigid.name.text in names:
                raise place.error(
                    f"'{declaration.name.text}' has two rigid transforms '{rigid.name.text}'"
                )
            names[rigid.name.text] = rigid.name.offset
            stamp, pose, covariance = self._rigid(declaration, rigid, place)
            if stamp is None and unstamped is not None:
                raise place.error(
                    f"'{declaration.name.text}' has two rigid transforms without a stamp"
                )
            if stamp is None:
                unstamped, covariance_now = pose, covariance
            elif stamp in poses_by_stamp:
                raise place.error(
                    f"'{declaration.name.text}' has two rigid transforms at {stamp:g} s"
                )
            else:
                poses_by_stamp[stamp] = pose, covariance
        times = sorted(poses_by_stamp)
        poses = [poses_by_stamp[time][0] for time in times]
        covariances = [poses_by_stamp[time][1] for time in times]
        if covariance_now is None:
            covariance_now = next((c for c in reversed(covariances) if c is not None), None)
        noise = None if covariance_now is None else _noise(covariance_now)
        history_settings = [member.values[0] for member in declaration.get("history")]
        if not poses_by_stamp and not history_settings:
            return unstamped or Pose.identity(), None, noise
        limits = (
            self.json(declaration, declaration.get("history")[-1], _history)
            if history_settings
            else (max(HISTORY_CAPACITY, len(times)), HISTORY_WINDOW)
        )
        with locate_errors(name_place(declaration)):
            window = (
                max(limits[1], times[-1] - times[0])
                if times and not history_settings
                else limits[1]
            )
            stamps = StampedPoses(
                times, poses, covariances=covariances, capacity=limits[0], window=window
            )
        newest = poses[-1] if times else Pose.identity()
        return newest if unstamped is None else unstamped, stamps, noise

    def _rigid(
        self, declaration: Declaration, rigid: Rigid, place: SourceLocation
    ) -> tuple[float | None, Pose, np.ndarray | None]:
        """Return stamp, pose and covariance (6, 6) of a rigid transform."""
        stamp, pose, covariance = None, None, None
        for part in rigid.parts:
            part_place = declaration.text.place(part.offset)
            if part.keyword == "stamp":
                stamp = stamp_in_seconds(part.values[0], part_place)
            elif part.keyword == "value":
                pose = pose_from_value(part.values[0], part_place, note=self.note)
            else:
                with locate_errors(part_place):
                    matrix = _covariance(part.values[0], part_place)
                    covariance = GaussianPose(covariance=matrix).covariance
        if pose is None:
            raise place.error(f"the rigid transform '{rigid.name.text}' has no 'value'")
        return stamp, pose, covariance

    def _geometry(self, declaration: Declaration) -> Iterator[GeometrySpec]:
        """Yield the shapes of a node.

        Of several levels of detail, the finest is visual and the coarsest is for collision.
        """
        shapes: list[tuple[int | None, GeometrySpec]] = []
        for member in declaration.get("geometry"):
            name, options = member.values
            place = declaration.text.place(name.offset)
            content = self.lookup(self.contents, name, declaration.text, "the geometry")
            fields = {
                option.keyword: self.json(declaration, option, _OPTIONS[option.keyword])
                for option in options
            }
            lod = fields.pop("lod", None)
            shape = self._shape(content)
            if shape is None:
                self.note(
                    place,
                    f"'{name.text}' is a {content.kind} without content, so"
                    f" '{declaration.name.text}' has no shape",
                )
                continue
            pose = spec_of_pose(fields.pop("pose", Pose.identity()))
            color = fields.pop("color", None)
            color = None if color is None else tuple(color)
            shapes.append((lod, GeometrySpec(shape, place, pose, color=color, **fields)))
        levels = [lod for lod, _ in shapes if lod is not None]
        for lod, spec in shapes:
            if lod is None:
                yield spec
            elif lod in (min(levels), max(levels)):
                yield replace(spec, visual=lod == min(levels), collision=lod == max(levels))

    def primitive(self, content: Declaration) -> PrimitiveSpec:
        """Return a shape that has sizes, whose kind is in :data:`SIZES`."""
        sizes: dict[str, float] = {}
        for member in content.members:
            sizes[member.keyword] = si_quantity(
                member.values[0], "length", content.text.place(member.offset)
            )
        missing = [size for size in SIZES[content.kind] if size not in sizes]
        if missing:
            raise name_place(content).error(
                f"the {content.kind} '{content.name.text}' needs '{missing[0]}'"
            )
        return PrimitiveSpec(
            content.kind.lower(), tuple(sizes[size] for size in SIZES[content.kind])
        )

    def _shape(self, content: Declaration) -> Any:
        """Return a shape or its specification, or None for content that is set at run time."""
        if content.kind in SIZES:
            return self.primitive(content)
        place = name_place(content)
        fields = {member.keyword: member for member in content.members}
        if "type" in fields:
            self.lookup(self.types, fields["type"].values[0], content.text, "the type")
        data = fields["data"].values[0] if "data" in fields else {}
        if not isinstance(data, dict):
            raise place.error("'data' is an object, as the shapes of a JSON scene")
        if "file" in fields:
            file, part_place = fields["file"].values[0], content.text.place(fields["file"].offset)
            if content.kind == "PointCloud":
                data = {"kind": "point_cloud", "file": file, "radius": _POINT_RADIUS, **data}
            else:
                path = self.loader.packages.resolve_mesh(
                    file, folder=Path(place.path).parent, place=part_place
                )
                scale = data.get("scale", [1.0] * 3)
                x, y, z = read_at(
                    part_place, lambda: JsonNode(scale, place.path, "scale").numbers(3)
                )
                return MeshSpec(path, (x, y, z))
        if not data:
            return None
        node = JsonNode({content.name.text: data}, place.path)
        folder = Path(place.path).parent
        return read_at(
            place, lambda: shape_from_dict(content.name.text, node, self.loader, folder=folder)
        )


def read_at(place: SourceLocation, read: Callable[[], Any]) -> Any:
    """Return the result of ``read``, with the location of errors set to ``place``."""
    try:
        return read()
    except FileFormatError as error:
        raise place.error(error.data.get("reason", str(error))) from error


def _history(node: JsonNode) -> tuple[int, float]:
    node.require_keys_among("capacity", "window")
    capacity = node.get("capacity").integer()
    if not 0 < capacity < 2**31:
        raise node.get("capacity").error(f"expected a whole number above 0, received {capacity}")
    return capacity, node.get("window").limit(math.inf)


def _noise(covariance: np.ndarray) -> EdgeNoise | None:
    """Return the error of an edge with a covariance (6, 6), None if it is exact."""
    scene = SceneGraph().add_frame("a", "world", pose=GaussianPose(covariance=covariance))
    return scene.specification("a").noise


def _covariance(values: Any, place: SourceLocation) -> np.ndarray:
    """Return the (6, 6) covariance of six variances or 36 numbers."""
    numbers = read_at(
        place,
        lambda: [item.number() for item in JsonNode(values, place.path, "covariance").items()],
    )
    if len(numbers) == 6:
        return np.diag(numbers)
    if len(numbers) != 36:
        raise place.error(f"a covariance has 6 variances or 36 numbers, received {len(numbers)}")
    return np.reshape(numbers, (6, 6))


_OPTIONS: Mapping[str, Callable[[JsonNode], Any]] = {
    "pose": pose_from_dict,
    "color": lambda node: node.numbers(4),
    "visual": JsonNode.flag,
    "collision": JsonNode.flag,
    "level": JsonNode.text,
    "friction": JsonNode.number,
    "stamp": JsonNode.number,
    "lod": JsonNode.integer,
}
