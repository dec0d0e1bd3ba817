"""The frames, groups and shapes that the nodes of RSG-DSL stand for.

What the language cannot say, extensions do, with the values of JSON scenes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tmkit._core import EdgeNoise, StampedPoses
from tmkit._support.source_location import SourceLocation, reported
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
from tmkit.formats.rsg.declarations import Declarations, place_of
from tmkit.formats.rsg.grammar import SIZES, Declaration, Member, Rigid
from tmkit.formats.rsg.values import pose_of_value, si_quantity, stamp_of
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

_OF_GROUPS = ("Attribute", "child", "member", "cardinality", "unplaced", "called")


@dataclass(slots=True)
class NodeReader(Declarations):
    """What declared nodes are in a scene; linked first (:meth:`Declarations.link`)."""

    sources: list[NoiseSource] = field(default_factory=list)

    def group(self, name: str) -> GroupSpec:
        """Return the group of a node."""
        made = self.nodes[name]
        frames: list[str] = []
        groups: list[str] = []
        for member in made.members:
            if member.keyword not in _OF_GROUPS:
                raise made.text.place(member.at).error(
                    f"a Group that is no root has no '{member.keyword}'"
                )
            if member.keyword in ("child", "member"):
                (one,) = member.values
                self.known(self.nodes, one, made.text, "the member")
                (frames if self.is_frame(one.text) else groups).append(self.scene_name(one.text))
        parents = [
            self.scene_name(holder)
            for holder, _ in self.holders.get(name, ())
            if self.is_frame(holder)
        ]
        place, attributes = place_of(made), self.attributes(made)
        return GroupSpec(
            self.scene_name(name), tuple(frames), tuple(groups), place, tuple(parents), attributes
        )

    def frame(self, name: str) -> FrameSpec:
        """Return the frame of a node."""
        made, place = self.nodes[name], place_of(self.nodes[name])
        above = self.above[name]
        parent = None if name in self.roots else self.scene_name(above[0]) if above else "world"
        holders = self.holders.get(name, ())
        pose, stamps, noise = self._motion(made)
        joint, data = JointSpec(), {member.keyword: member for member in made.members}
        if "joint" in data:
            at = made.text.place(data["joint"].at)
            joint = spec_of_joint(self.json(made, data["joint"], joint_from_dict), at)
        inertia = None
        if "inertia" in data:
            inertia = self.json(
                made,
                data["inertia"],
                lambda node: inertia_from_dict(node, self.scene_name(name), self.note),
            )
        twist = twist_noise = None
        if "twist" in data:
            reference, vector = self.json(made, data["twist"], twist_from_dict)
            twist = reference, tuple(vector)
            if "noise" in data["twist"].values[0]:
                twist_noise = self.json(
                    made,
                    data["twist"],
                    lambda node: noise_from_dict(node.get("noise"), self.sources),
                )
        if "noise" in data:
            noise = self.json(made, data["noise"], lambda node: noise_from_dict(node, self.sources))
        return FrameSpec(
            name=self.scene_name(name),
            parent=parent,
            place=place,
            pose=spec_of_pose(pose),
            joint=joint,
            body=made.get("body")[-1].values[0] if made.get("body") else self.scene_name(name),
            classes=tuple(member.values[0] for member in made.get("isa")),
            geometry=tuple(self._geometry(made)),
            inertia=spec_of_inertia(inertia, place) if inertia else None,
            parent_place=holders[0][1] if holders else None,
            attributes=self.attributes(made),
            twist=twist,
            twist_noise=twist_noise,
            stamps=stamps,
            noise=noise,
        )

    def json(self, made: Declaration, member: Member, read: Callable[[JsonNode], Any]) -> Any:
        """Return what a value of a JSON scene says."""
        place = made.text.place(member.at)
        return placed(
            place, lambda: read(JsonNode(member.values[0], str(place.path), member.keyword))
        )

    def attributes(self, made: Declaration) -> dict[str, object]:
        """Return attributes by key; one that is repeated is a list of its values."""
        found: dict[str, list[object]] = {}
        stamps: dict[str, float] = {}
        for member in made.get("Attribute"):
            key, value, stamp = member.values
            found.setdefault(key, []).append(value)
            if stamp is not None:
                stamps[key] = stamp_of(stamp, made.text.place(stamp.at))
        values = {key: one[0] if len(one) == 1 else one for key, one in found.items()}
        return {
            key: Stamped(value, stamps[key]) if key in stamps else value
            for key, value in values.items()
        }

    def _motion(self, made: Declaration) -> tuple[Pose, StampedPoses | None, EdgeNoise | None]:
        """Return the pose of a transform, where it was, and its error."""
        fixed: Pose | None = None
        stamped: dict[float, Pose] = {}
        noise = None
        names: dict[str, int] = {}
        for rigid in (rigid for member in made.get("transforms") for rigid in member.values):
            place = made.text.place(rigid.name.at)
            if rigid.name.text in names:
                raise place.error(
                    f"'{made.name.text}' has two rigid transforms '{rigid.name.text}'"
                )
            names[rigid.name.text] = rigid.name.at
            stamp, pose, covariance = self._rigid(made, rigid, place)
            noise = noise if covariance is None else covariance
            if stamp is None and fixed is not None:
                raise place.error(f"'{made.name.text}' has two rigid transforms without a stamp")
            if stamp is None:
                fixed = pose
            elif stamp in stamped:
                raise place.error(f"'{made.name.text}' has two rigid transforms at {stamp:g} s")
            else:
                stamped[stamp] = pose
        kept = [member.values[0] for member in made.get("history")]
        if not stamped and not kept:
            return fixed or Pose.identity(), None, noise
        times = sorted(stamped)
        limits = (
            self.json(made, made.get("history")[-1], _history)
            if kept
            else (max(HISTORY_CAPACITY, len(times)), HISTORY_WINDOW)
        )
        with reported(place_of(made)):
            window = max(limits[1], times[-1] - times[0]) if times and not kept else limits[1]
            stamps = StampedPoses(
                times, [stamped[time] for time in times], capacity=limits[0], window=window
            )
        newest = stamped[times[-1]] if times else Pose.identity()
        return newest if fixed is None else fixed, stamps, noise

    def _rigid(
        self, made: Declaration, rigid: Rigid, place: SourceLocation
    ) -> tuple[float | None, Pose, EdgeNoise | None]:
        stamp, pose, noise = None, None, None
        for part in rigid.parts:
            at = made.text.place(part.at)
            if part.keyword == "stamp":
                stamp = stamp_of(part.values[0], at)
            elif part.keyword == "value":
                pose = pose_of_value(part.values[0], at, note=self.note)
            else:
                with reported(at):
                    uncertain = SceneGraph().add_frame(
                        "a", "world", pose=GaussianPose(covariance=_covariance(part.values[0], at))
                    )
                noise = uncertain.specification("a").noise
        if pose is None:
            raise place.error(f"the rigid transform '{rigid.name.text}' has no 'value'")
        return stamp, pose, noise

    def _geometry(self, made: Declaration) -> Iterator[GeometrySpec]:
        """Yield the shapes of a node. Of several levels of detail the finest is drawn, the coarsest collides."""
        found: list[tuple[int | None, GeometrySpec]] = []
        for member in made.get("geometry"):
            name, options = member.values
            place = made.text.place(name.at)
            content = self.known(self.contents, name, made.text, "the geometry")
            given = {
                option.keyword: self.json(made, option, _OPTIONS[option.keyword])
                for option in options
            }
            lod = given.pop("lod", None)
            shape = self._shape(content)
            if shape is None:
                self.note(
                    place,
                    f"'{name.text}' is a {content.kind} without content, so '{made.name.text}' has"
                    " no shape",
                )
                continue
            pose = spec_of_pose(given.pop("pose", Pose.identity()))
            color = given.pop("color", None)
            color = None if color is None else tuple(color)
            found.append((lod, GeometrySpec(shape, place, pose, color=color, **given)))
        levels = [lod for lod, _ in found if lod is not None]
        for lod, spec in found:
            if lod is None:
                yield spec
            elif lod in (min(levels), max(levels)):
                yield replace(spec, visual=lod == min(levels), collision=lod == max(levels))

    def _shape(self, content: Declaration) -> Any:
        """Return a shape: its specification, or the core's; ``None`` for content that comes at run time."""
        place = place_of(content)
        if content.kind in SIZES:
            sizes: dict[str, float] = {}
            for member in content.members:
                sizes[member.keyword] = si_quantity(
                    member.values[0], "length", content.text.place(member.at)
                )
            wanted = (
                ("sizeX", "sizeY", "sizeZ")
                if content.kind == "Box"
                else ("radius", "height")[: 1 + (content.kind != "Sphere")]
            )
            missing = [size for size in wanted if size not in sizes]
            if missing:
                raise place.error(f"the {content.kind} '{content.name.text}' needs '{missing[0]}'")
            return PrimitiveSpec(content.kind.lower(), tuple(sizes[size] for size in wanted))
        given = {member.keyword: member for member in content.members}
        if "type" in given:
            self.known(self.types, given["type"].values[0], content.text, "the type")
        data = given["data"].values[0] if "data" in given else {}
        if not isinstance(data, dict):
            raise place.error("'data' is an object, as the shapes of a JSON scene")
        if "file" in given:
            file, at = given["file"].values[0], content.text.place(given["file"].at)
            if content.kind == "PointCloud":
                data = {"kind": "point_cloud", "file": file, "radius": 0.005, **data}
            else:
                path = self.loader.packages.resolve_mesh(
                    file, folder=Path(place.path).parent, place=at
                )
                scale = data.get("scale", [1.0] * 3)
                x, y, z = placed(at, lambda: JsonNode(scale, place.path, "scale").numbers(3))
                return MeshSpec(path, (x, y, z))
        if not data:
            return None
        listed = JsonNode({content.name.text: data}, place.path)
        folder = Path(place.path).parent
        return placed(
            place, lambda: shape_from_dict(content.name.text, listed, self.loader, folder=folder)
        )


def placed(place: SourceLocation, read: Callable[[], Any]) -> Any:
    """Return what is read, with errors at a place of the file."""
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


def _covariance(values: Any, place: SourceLocation) -> np.ndarray:
    """Return the covariance of six variances or 36 numbers."""
    numbers = placed(
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
