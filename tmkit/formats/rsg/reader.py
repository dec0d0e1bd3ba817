"""Scenes in RSG-DSL: what its declarations mean (docs/reference/rsg.md).

A root, a transform, a geometric node and a node are frames; a group is a group, whose frames hang on what is above it.
A frame that is below several others hangs on the first, and each of them has an *observation* of it. Names are looked
up when all files are read, so references may come in any order. What the language cannot say, extensions do, with the
values of JSON scenes.

Invariants: reading ends within its limits; every error is at its place in a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tmkit._support.source_location import Note, SourceLocation, did_you_mean, reported
from tmkit.errors import FileFormatError
from tmkit.formats.json.frames import (
    inertia_from_dict,
    joint_from_dict,
    noise_from_dict,
    pose_from_dict,
    sources_from_dict,
    twist_from_dict,
)
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.json.shapes import shape_from_dict
from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec
from tmkit.formats.mesh.package_uris import real_path
from tmkit.formats.robray.grammar import SourceText
from tmkit.formats.rsg.grammar import NODES, SIZES, Declaration, Member, Name, Parser, Rigid, RsgText
from tmkit.formats.rsg.values import pose_of_value, si_quantity, stamp_of
from tmkit.formats.spec.build import build_scene
from tmkit.formats.spec.model import (
    AllowedPairSpec,
    FactSpec,
    FrameSpec,
    FunctionBlockSpec,
    GroupSpec,
    SceneSpecification,
    StructureSpec,
)
from tmkit.formats.spec.parts import GeometrySpec, JointSpec, PrimitiveSpec
from tmkit.formats.spec.values import spec_of_inertia, spec_of_joint, spec_of_pose, specification_of_scene
from tmkit.graph import EdgeNoise, NoiseSource, SceneGraph, StampedPoses
from tmkit.graph.traversal import Stamped
from tmkit.spatial import Pose

_MOST_FILES = 1000
_MOST_ERRORS = 20  # that are told at once
_WINDOW = 10.0  # seconds of history that a transform keeps, as in the robot scene graph
_OF_LEAVES = {"GeometricNode": ("child", "member", "transforms"), "Node": ("child", "member", "transforms", "geometry")}
_OF_GROUPS = ("Attribute", "child", "member", "cardinality", "unplaced", "called")

ReadOther = Callable[[Path], SceneSpecification]


def read_rsg(path: Path, *, loader: MeshLoader, read_other: ReadOther, note: Note) -> SceneSpecification:
    """Read a file in RSG-DSL with all that it imports; an error has up to 20 of declarations as ``errors``."""
    reader = _Reader(loader, read_other, note)
    reader.read(path, ())
    _refuse(reader.errors)  # what is missing after an error of syntax would be named wrongly
    specification = reader.specification()
    _refuse(reader.errors)
    return specification


def _refuse(errors: Sequence[FileFormatError]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        more = [f"... and {len(errors) - _MOST_ERRORS} more errors"] if len(errors) > _MOST_ERRORS else []
        text = "\n".join([*map(str, errors[:_MOST_ERRORS]), *more])
        raise FileFormatError(text, **errors[0].data, errors=tuple(errors))


@dataclass(slots=True)
class _Reader:
    """The declarations of a file with those that it imports."""

    loader: MeshLoader
    read_other: ReadOther
    note: Note
    errors: list[FileFormatError] = field(default_factory=list)
    nodes: dict[str, Declaration] = field(default_factory=dict)
    contents: dict[str, Declaration] = field(default_factory=dict)
    types: dict[str, Declaration] = field(default_factory=dict)
    blocks: dict[str, Declaration] = field(default_factory=dict)
    statements: list[tuple[Member, RsgText]] = field(default_factory=list)
    seen: dict[Path, None] = field(default_factory=dict)
    bytes: int = 0
    sources: list[NoiseSource] = field(default_factory=list)
    # of nodes: what holds them as a child, in the order of the files
    holders: dict[str, list[tuple[str, SourceLocation]]] = field(default_factory=dict)
    roots: dict[str, SourceLocation] = field(default_factory=dict)
    above: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, path: Path, including: tuple[Path, ...]) -> None:
        """Read a file that is reached through the files ``including``; one that was read before is read no more."""
        if real_path(path) in self.seen:
            return
        if len(self.seen) == _MOST_FILES:
            raise FileFormatError.at(path, f"with it, more than {_MOST_FILES} files are imported")
        self.seen[real_path(path)] = None
        packages = self.loader.packages
        source, text = SourceText.read(
            path, limit=packages.limits.text_bytes, before=self.bytes, unsaved=packages.unsaved
        )
        self.bytes += len(text)
        known = RsgText(source, text)
        declarations, statements = Parser(known, on_error=self.errors.append).read()
        for made in declarations:
            with self.collected():
                self.declare(made)
        self.statements += [(statement, known) for statement in statements]
        for statement in statements:
            file, prefix, under = statement.values if statement.keyword == "import" else (None, None, None)
            if file is not None and file.text.endswith(".rsg") and prefix is None and under is None:
                with self.collected():
                    self.read(self.found(file, known), (*including, path))

    def found(self, file: Name, text: RsgText) -> Path:
        return self.loader.packages.resolve(file.text, folder=Path(text.source.path).parent, place=text.place(file.at))

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep an error of a declaration, and go on with the next."""
        try:
            yield
        except FileFormatError as error:
            self.errors.append(error)

    def declare(self, made: Declaration) -> None:
        table = self.table(made.kind)
        if made.name.text in table:
            earlier = table[made.name.text]
            raise place_of(made).error(f"'{made.name.text}' is already declared at {place_of(earlier)}")
        table[made.name.text] = made

    def table(self, kind: str) -> dict[str, Declaration]:
        if kind in NODES or kind == "Instance":
            return self.nodes
        if kind == "FunctionBlock":
            return self.blocks
        return self.types if kind.endswith("Type") else self.contents

    def known(self, table: Mapping[str, Declaration], name: Name, text: RsgText, what: str) -> Declaration:
        """Return a declaration by its name, or raise an error at the reference."""
        if name.text not in table:
            hint = did_you_mean(name.text, table)
            raise text.place(name.at).error(f"{what} '{name.text}' is declared nowhere{hint}")
        return table[name.text]

    def specification(self) -> SceneSpecification:
        others: list[SceneSpecification] = []
        allowed, bodies, facts = [], [], []
        for statement, text in self.statements:
            if statement.keyword == "NoiseSources":
                with self.collected():
                    node = JsonNode(statement.values[0], str(text.source.path), "NoiseSources")
                    self.sources += _placed(text.place(statement.at), partial(sources_from_dict, node))
        for name in [name for name, made in self.nodes.items() if made.kind == "Instance"]:
            with self.collected():
                self.expand(name, ())
        self.link()
        _refuse(self.errors)
        reached = self.reached()
        for statement, text in self.statements:
            place = text.place(statement.at)
            with self.collected():
                if statement.keyword == "AllowCollision":
                    first, second, reason = statement.values
                    one, other = self.scene_name(first.text), self.scene_name(second.text)
                    at = text.place(second.at)
                    allowed.append(AllowedPairSpec(one, other, reason or "", text.place(first.at), at))
                elif statement.keyword == "Body":
                    bodies.append(statement.values[0])
                elif statement.keyword == "Relation":
                    kind, notation, values = statement.values
                    count = {"Pose": 7, "Position": 3, "Orientation": 4, "Twist": 6}[kind]
                    numbers = _placed(place, partial(JsonNode(values, place.path, kind).numbers, count))
                    facts.append(FactSpec(kind, tuple(notation), tuple(numbers), place))
                elif statement.keyword == "import":
                    others.extend(self.imported(statement, text))
        frames: list[FrameSpec] = []
        groups: list[GroupSpec] = []
        for name in reached:
            with self.collected():
                if self.is_frame(name):
                    made = self.frame(name)
                    above = self.above[name] if len(self.above[name]) > 1 else ()
                    seen = [_observed(made, self.scene_name(other)) for other in above]
                    frames += [made, *seen]
                    groups += [GroupSpec(one.name, (made.name, one.name), (), one.place) for one in seen]
                else:
                    groups.append(self.group(name))
        self.check_stamps(frames)
        blocks = [made for block in self.blocks.values() for made in self.block(block, reached)]
        return SceneSpecification(
            frames=(*frames, *(frame for other in others for frame in other.frames)),
            allowed=(*allowed, *(pair for other in others for pair in other.allowed)),
            groups=(*groups, *(group for other in others for group in other.groups)),
            bodies_without_frames=(*bodies, *(body for other in others for body in other.bodies_without_frames)),
            facts=tuple(facts),
            function_blocks=(*blocks, *(block for other in others for block in other.function_blocks)),
            is_whole=bool(self.roots) or not any(map(self.is_frame, self.nodes)),
        )

    def imported(self, statement: Member, text: RsgText) -> Iterator[SceneSpecification]:
        """Yield what an import of another language, with a prefix or below a node, adds."""
        file, prefix, under = statement.values
        place = text.place(file.at)
        if file.text.endswith(".rsg") and prefix is None and under is None:
            return
        path = self.found(file, text)
        if real_path(path) in self.seen:
            raise place.error(f"'{file.text}' imports itself")
        other = self.read_other(path)
        if under is not None:
            self.known(self.nodes, under, text, "the node")
        top = "world" if under is None else self.scene_name(under.text)
        if prefix is None and under is None:
            yield other
            return
        with reported(place):
            scene = SceneGraph(top).mount(
                build_scene([other], loader=self.loader), top, prefix=f"{prefix.text}/" if prefix is not None else ""
            )
        made = specification_of_scene(scene, path=str(place))
        yield replace(made, frames=made.frames[1:], function_blocks=other.function_blocks)

    def expand(self, name: str, expanding: tuple[str, ...]) -> None:
        made = self.nodes[name]
        if made.kind != "Instance":
            return
        place = place_of(made)
        if name in expanding:
            raise place.error(f"'{name}' is an instance of itself: {' -> '.join([*expanding, name])}")
        if not made.members:
            raise place.error(f"an instance is of a node, as in 'Instance {name} of table'")
        (target,) = made.members[0].values
        self.known(self.nodes, target, made.text, "the node")
        copied: dict[str, str] = {}
        waiting = [target.text]
        while waiting:
            one = waiting.pop()
            if one in copied:
                continue
            if one == name:
                raise place.error(f"'{name}' is below the node '{target.text}' of which it is an instance")
            self.expand(one, (*expanding, name))
            copied[one] = name if one == target.text else f"{name}/{one}"
            children = [child.text for member in self.nodes[one].get("child") for child in member.values]
            waiting += [child for child in reversed(children) if child in self.nodes]
            self.loader.packages.limits.refuse_frames(len(self.nodes) + len(copied), place.error)
        for old, new in copied.items():
            if new in self.nodes and new != name:
                raise place.error(f"the instance needs the name '{new}', which is taken")
            source = self.nodes[old]
            members = [_renamed(member, copied) for member in source.members if member.keyword != "called"]
            self.nodes[new] = Declaration(source.kind, Name(new, source.name.at), source.text, members)

    def link(self) -> None:
        """Find what holds each node, the roots, and the frames above each."""
        for name, made in self.nodes.items():
            for member in made.members:
                with self.collected():
                    self.check_member(made, member)
                    if member.keyword == "child":
                        (child,) = member.values
                        self.known(self.nodes, child, made.text, "the child")
                        place = made.text.place(child.at)
                        self.holders.setdefault(child.text, []).append((name, place))
        for statement, text in self.statements:
            if statement.keyword == "root":
                (root,) = statement.values
                with self.collected():
                    self.known(self.nodes, root, text, "the root")
                    if root.text in self.holders:
                        holder, place = self.holders[root.text][0]
                        raise place.error(f"the root '{root.text}' cannot be a child, here of '{holder}'")
                    self.roots[root.text] = text.place(root.at)
        _refuse(self.errors)
        self.check_cycles()
        for name in self.nodes:
            self.frames_above(name)

    def check_member(self, made: Declaration, member: Member) -> None:
        """Refuse what a node of its kind cannot have."""
        place = made.text.place(member.at)
        if member.keyword in _OF_LEAVES.get(made.kind, ()):
            raise place.error(f"a {made.kind} has no '{member.keyword}'; a Transform has")
        if made.kind == "Group" and member.keyword == "transforms":
            raise place.error("a Group has no 'transforms'; a Transform has")

    def check_cycles(self) -> None:
        state: dict[str, bool] = {}  # False: on the way; True: done
        for start in self.nodes:
            way = [(start, iter(self.holders.get(start, ())))] if start not in state else []
            state.setdefault(start, False)
            while way:
                name, holders = way[-1]
                holder, place = next(holders, (None, None))
                if holder is None or place is None:
                    state[name] = True
                    way.pop()
                elif state.get(holder) is False:
                    up = [one for one, _ in way]
                    around = [holder, *reversed(up[up.index(holder) :])]
                    raise place.error(f"nodes are below themselves: {' -> '.join(around)}")
                elif holder not in state:
                    state[holder] = False
                    way.append((holder, iter(self.holders.get(holder, ()))))

    def is_frame(self, name: str) -> bool:
        return self.nodes[name].kind != "Group" or name in self.roots

    def frames_above(self, name: str) -> tuple[str, ...]:
        """Return the frames that a node is below, through groups, each once, the first first."""
        waiting = [name]
        while waiting:
            one = waiting[-1]
            groups = [holder for holder, _ in self.holders.get(one, ()) if not self.is_frame(holder)]
            if missing := [group for group in groups if group not in self.above]:
                waiting += missing
                continue
            found: dict[str, None] = {}
            for holder, _ in self.holders.get(one, ()):
                found.update(dict.fromkeys([holder] if self.is_frame(holder) else self.above[holder]))
            self.above[one] = tuple(found)
            waiting.pop()
        return self.above[name]

    def reached(self) -> list[str]:
        """Return the nodes of the scene as declared; without a root, all but the structures of blocks."""
        structures = [
            structure.text
            for block in self.blocks.values()
            for member in (*block.get("inputStructure"), *block.get("outputStructure"))
            for structure in member.values
        ]
        templates = self.below([name for name in structures if name in self.nodes])
        tops = [name for name in self.nodes if name not in self.holders and name not in templates]
        begin = [*self.roots] or tops
        begin += [name for name, made in self.nodes.items() if made.get("unplaced")]
        found = self.below(begin)
        if self.roots:
            for name in tops:
                if name not in found:
                    self.note(place_of(self.nodes[name]), f"'{name}' is below no root, and is not part of the scene")
        elif any(map(self.is_frame, tops)):
            self.note(place_of(self.nodes[tops[0]]), "there is no 'root': what nothing holds is below 'world'")
        for name in self.nodes:
            for member in self.nodes[name].get("cardinality") if name in found else ():
                place = self.nodes[name].text.place(member.at)
                self.note(place, f"'cardinality' is of structures of function blocks; there is one '{name}'")
        return [name for name in self.nodes if name in found]

    def below(self, names: Iterable[str]) -> set[str]:
        found: set[str] = set()
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                children = (child.text for member in self.nodes[name].get("child") for child in member.values)
                waiting += [child for child in children if child in self.nodes]
        return found

    def scene_name(self, node: str) -> str:
        made = self.nodes.get(node)
        called = made.get("called") if made is not None else ()
        return str(called[-1].values[0]) if called else node

    def group(self, name: str) -> GroupSpec:
        made = self.nodes[name]
        frames: list[str] = []
        groups: list[str] = []
        for member in made.members:
            if member.keyword not in _OF_GROUPS:
                raise made.text.place(member.at).error(f"a Group that is no root has no '{member.keyword}'")
            if member.keyword in ("child", "member"):
                (one,) = member.values
                self.known(self.nodes, one, made.text, "the member")
                (frames if self.is_frame(one.text) else groups).append(self.scene_name(one.text))
        parents = [self.scene_name(holder) for holder, _ in self.holders.get(name, ()) if self.is_frame(holder)]
        place, attributes = place_of(made), self.attributes(made)
        return GroupSpec(self.scene_name(name), tuple(frames), tuple(groups), place, tuple(parents), attributes)

    def frame(self, name: str) -> FrameSpec:
        made, place = self.nodes[name], place_of(self.nodes[name])
        above = self.above[name]
        parent = None if name in self.roots else self.scene_name(above[0]) if above else "world"
        holders = self.holders.get(name, ())
        pose, stamps, noise = self.motion(made)
        joint, data = JointSpec(), {member.keyword: member for member in made.members}
        if "joint" in data:
            at = made.text.place(data["joint"].at)
            joint = spec_of_joint(self.json(made, data["joint"], joint_from_dict), at)
        inertia = self.json(made, data["inertia"], inertia_from_dict) if "inertia" in data else None
        twist = twist_noise = None
        if "twist" in data:
            reference, vector = self.json(made, data["twist"], twist_from_dict)
            twist = reference, tuple(vector)
            if "noise" in data["twist"].values[0]:
                twist_noise = self.json(
                    made, data["twist"], lambda node: noise_from_dict(node.get("noise"), self.sources)
                )
        if "noise" in data:
            noise = self.json(made, data["noise"], lambda node: noise_from_dict(node, self.sources))
        return FrameSpec(
            name=self.scene_name(name), parent=parent, place=place, pose=spec_of_pose(pose), joint=joint,
            body=made.get("body")[-1].values[0] if made.get("body") else self.scene_name(name),
            classes=tuple(member.values[0] for member in made.get("isa")),
            geometry=tuple(self.geometry(made)), inertia=spec_of_inertia(inertia, place) if inertia else None,
            parent_place=holders[0][1] if holders else None, attributes=self.attributes(made), twist=twist,
            twist_noise=twist_noise, stamps=stamps, noise=noise,
        )  # fmt: skip

    def json(self, made: Declaration, member: Member, read: Callable[[JsonNode], Any]) -> Any:
        """Return what a value of a JSON scene says."""
        place = made.text.place(member.at)
        return _placed(place, lambda: read(JsonNode(member.values[0], str(place.path), member.keyword)))

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
        return {key: Stamped(value, stamps[key]) if key in stamps else value for key, value in values.items()}

    def motion(self, made: Declaration) -> tuple[Pose, StampedPoses | None, EdgeNoise | None]:
        """Return the pose of a transform, where it was, and its error."""
        fixed: Pose | None = None
        stamped: dict[float, Pose] = {}
        noise = None
        names: dict[str, int] = {}
        for rigid in (rigid for member in made.get("transforms") for rigid in member.values):
            place = made.text.place(rigid.name.at)
            if rigid.name.text in names:
                raise place.error(f"'{made.name.text}' has two rigid transforms '{rigid.name.text}'")
            names[rigid.name.text] = rigid.name.at
            stamp, pose, covariance = self.rigid(made, rigid, place)
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
        limits = self.json(made, made.get("history")[-1], _history) if kept else (max(32, len(times)), _WINDOW)
        with reported(place_of(made)):
            window = max(limits[1], times[-1] - times[0]) if times and not kept else limits[1]
            stamps = StampedPoses(times, [stamped[time] for time in times], capacity=limits[0], window=window)
        newest = stamped[times[-1]] if times else Pose.identity()
        return newest if fixed is None else fixed, stamps, noise

    def rigid(
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
                    uncertain = SceneGraph().add_frame("a", "world", covariance=_covariance(part.values[0], at))
                noise = uncertain.specification("a").noise
        if pose is None:
            raise place.error(f"the rigid transform '{rigid.name.text}' has no 'value'")
        return stamp, pose, noise

    def geometry(self, made: Declaration) -> Iterator[GeometrySpec]:
        """Yield the shapes of a node. Of several levels of detail the finest is drawn, the coarsest collides."""
        found: list[tuple[int | None, GeometrySpec]] = []
        for member in made.get("geometry"):
            name, options = member.values
            place = made.text.place(name.at)
            content = self.known(self.contents, name, made.text, "the geometry")
            given = {option.keyword: self.json(made, option, _OPTIONS[option.keyword]) for option in options}
            lod = given.pop("lod", None)
            shape = self.shape(content)
            if shape is None:
                self.note(
                    place, f"'{name.text}' is a {content.kind} without content, so '{made.name.text}' has no shape"
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

    def shape(self, content: Declaration) -> Any:
        """Return a shape: its specification, or the core's; ``None`` for content that comes at run time."""
        place = place_of(content)
        if content.kind in SIZES:
            sizes: dict[str, float] = {}
            for member in content.members:
                sizes[member.keyword] = si_quantity(member.values[0], "length", content.text.place(member.at))
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
                path = self.loader.packages.resolve_mesh(file, folder=Path(place.path).parent, place=at)
                scale = data.get("scale", [1.0] * 3)
                x, y, z = _placed(at, lambda: JsonNode(scale, place.path, "scale").numbers(3))
                return MeshSpec(path, (x, y, z))
        if not data:
            return None
        listed = JsonNode({content.name.text: data}, place.path)
        folder = Path(place.path).parent
        return _placed(place, lambda: shape_from_dict(content.name.text, listed, self.loader, folder=folder))

    def block(self, made: Declaration, reached: Sequence[str]) -> Iterator[FunctionBlockSpec]:
        given = {
            member.keyword: member.values[0]
            for member in made.members
            if member.keyword.endswith(("Hook", "Structure"))
        }
        hooks = {}
        with self.collected():
            for key in ("inputHook", "outputHook"):
                hook = given.get(key)
                hooks[key] = None if hook is None else self.scene_name(hook.text)
                if hook is not None and hook.text not in self.nodes:
                    hint = did_you_mean(hook.text, self.nodes)
                    self.note(
                        made.text.place(hook.at),
                        f"the hook '{hook.text}' is declared nowhere{hint}; it may come at run time",
                    )
                elif hook is not None and hook.text not in reached:
                    self.note(made.text.place(hook.at), f"the hook '{hook.text}' is below no root")
            structures = {
                key: self.structure(self.known(self.nodes, given[key], made.text, "the structure").name.text, ())
                for key in ("inputStructure", "outputStructure") if key in given
            }  # fmt: skip
            triggers = tuple(self.trigger(made, member) for member in made.get("trigger"))
            yield FunctionBlockSpec(
                made.name.text, place_of(made), structures.get("inputStructure"), hooks["inputHook"],
                structures.get("outputStructure"), hooks["outputHook"], triggers, self.attributes(made),
            )  # fmt: skip

    def trigger(self, made: Declaration, member: Member) -> tuple[str, str | float]:
        word, value = member.values
        place = made.text.place(member.at)
        if word == "after":
            return word, self.known(self.blocks, value, made.text, "the function block").name.text
        if word == "onChange":
            return word, self.scene_name(value.text)
        if value.unit.text.endswith(("Hz", "Hertz")):
            frequency = si_quantity(value, "frequency", place)
            seconds = 1.0 / frequency if frequency else math.inf
        else:
            seconds = si_quantity(value, "time", place)
        if not 0.0 < seconds < math.inf:
            raise place.error("a rate is above 0")
        return word, seconds

    def structure(self, name: str, above: tuple[str, ...]) -> StructureSpec:
        made = self.nodes[name]
        if len(above) > 100:
            raise place_of(made).error("the structure of a function block is deeper than 100 nodes")
        content = kind = None
        for member in made.get("geometry"):
            found = self.known(self.contents, member.values[0], made.text, "the geometry")
            content = {"PointCloud": "point_cloud"}.get(found.kind, found.kind.lower())
            kind = next((one.values[0].text for one in found.get("type")), None)
        cardinality = made.get("cardinality")
        children = [child.text for member in made.get("child") for child in member.values if child.text in self.nodes]
        return StructureSpec(
            self.scene_name(name), made.kind, place_of(made), content, kind,
            cardinality[-1].values[0] if cardinality else "1", self.attributes(made),
            tuple(self.structure(child, (*above, name)) for child in children),
        )  # fmt: skip

    def check_stamps(self, frames: Sequence[FrameSpec]) -> None:
        """Note that no time is known of all edges."""
        moving = [frame for frame in frames if frame.stamps is not None and len(frame.stamps)]
        if moving:
            latest = max(moving, key=lambda frame: frame.stamps.stamps[0])  # type: ignore[union-attr]
            earliest = min(moving, key=lambda frame: frame.stamps.stamps[-1])  # type: ignore[union-attr]
            begin, end = latest.stamps.stamps[0], earliest.stamps.stamps[-1]  # type: ignore[union-attr]
            if begin > end:
                text = f"no stamp is common to all edges: '{earliest.name}' is known until {end:g} s, "
                self.note(latest.place, f"{text}'{latest.name}' from {begin:g} s")


def place_of(made: Declaration) -> SourceLocation:
    """Return where a declaration has its name."""
    return made.text.place(made.name.at)


def _placed(place: SourceLocation, read: Callable[[], Any]) -> Any:
    """Return what is read, with errors at a place of the file."""
    try:
        return read()
    except FileFormatError as error:
        raise place.error(error.data.get("reason", str(error))) from error


def _renamed(member: Member, names: Mapping[str, str]) -> Member:
    if member.keyword not in ("child", "member"):
        return member
    (name,) = member.values
    return member._replace(values=(Name(names.get(name.text, name.text), name.at),))


def _observed(frame: FrameSpec, observer: str) -> FrameSpec:
    """Return the observation of a frame by another that is above it too."""
    times = [] if frame.stamps is None else frame.stamps.stamps.tolist()
    stamp = times[-1] if times else None
    given: dict[str, object] = {"kind": "pose", "stamp": stamp, "tags": []}
    return FrameSpec(
        f"{frame.name} seen from {observer}", observer, frame.place, frame.pose, classes=("observation",),
        attributes={"observation": given}, noise=frame.noise,
    )  # fmt: skip


def _history(node: JsonNode) -> tuple[int, float]:
    node.only("capacity", "window")
    capacity = node.get("capacity").integer()
    if not 0 < capacity < 2**31:
        raise node.get("capacity").error(f"expected a whole number above 0, received {capacity}")
    return capacity, node.get("window").limit(math.inf)


def _covariance(values: Any, place: SourceLocation) -> np.ndarray:
    """Return the covariance of six variances or 36 numbers."""
    numbers = _placed(place, lambda: [item.number() for item in JsonNode(values, place.path, "covariance").items()])
    if len(numbers) == 6:
        return np.diag(numbers)
    if len(numbers) != 36:
        raise place.error(f"a covariance has 6 variances or 36 numbers, received {len(numbers)}")
    return np.reshape(numbers, (6, 6))


_OPTIONS: Mapping[str, Callable[[JsonNode], Any]] = {
    "pose": pose_from_dict, "color": lambda node: node.numbers(4), "visual": JsonNode.flag, "collision": JsonNode.flag,
    "level": JsonNode.text, "friction": JsonNode.number, "stamp": JsonNode.number, "lod": JsonNode.integer,
}  # fmt: skip
