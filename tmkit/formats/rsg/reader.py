"""Reader of scenes in RSG-DSL, the language of the robot scene graph (docs/reference/rsg.md).

Declarations are read and linked (:mod:`tmkit.formats.rsg.declarations`). Their nodes become frames
and groups (:mod:`tmkit.formats.rsg.nodes`). A node is a frame unless it is a group other than a
root. A frame below several others is a child of the first, and each of them has an *observation* of
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tmkit._support.source_location import Note, SourceLocation, did_you_mean, locate_errors
from tmkit.formats.json.frames import sources_from_dict
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.mesh.package_uris import real_path
from tmkit.formats.rsg.declarations import name_place, raise_errors
from tmkit.formats.rsg.grammar import SIZES, Declaration, Member, Name, RsgText
from tmkit.formats.rsg.nodes import NodeReader, read_at
from tmkit.formats.rsg.values import si_quantity
from tmkit.formats.spec.build import build_scene
from tmkit.formats.spec.model import (
    AllowedPairSpec,
    ContentTypeSpec,
    FactSpec,
    FrameSpec,
    FunctionBlockSpec,
    GroupSpec,
    SceneSpecification,
    StructureSpec,
)
from tmkit.formats.spec.values import specification_of_scene
from tmkit.graph import SceneGraph
from tmkit.graph.attributes import value_and_stamp

_MAX_STRUCTURE_DEPTH = 100
"""Largest depth of a node in the structure of a function block."""

ReadOther = Callable[[Path], SceneSpecification]


def read_rsg(
    path: Path, *, loader: MeshLoader, read_other: ReadOther, note: Note
) -> SceneSpecification:
    """Read a file in RSG-DSL with its imports.

    Args:
        path: path of the file.
        loader: loader of meshes, with the resolver of file names.
        read_other: reader of imported files in other formats.
        note: receives the notes about the file.

    Raises:
        FileFormatError: if the file is invalid. Its message lists up to 20 errors, and its data has
            all of them as ``errors``.
    """
    reader = _Reader(loader, note, read_other=read_other)
    reader.read(path, ())
    # After a syntax error, later errors about undeclared names would be misleading.
    raise_errors(reader.errors)
    specification = reader.specification()
    raise_errors(reader.errors)
    return specification


@dataclass(slots=True)
class _Reader(NodeReader):
    """Reader of the scene of all declarations."""

    read_other: ReadOther = field(kw_only=True)
    structure_count: int = 0

    def specification(self) -> SceneSpecification:
        imports: list[SceneSpecification] = []
        allowed, bodies, facts = [], [], []
        for statement, text in self.statements:
            if statement.keyword == "NoiseSources":
                with self.collect_error():
                    node = JsonNode(statement.values[0], str(text.source.path), "NoiseSources")
                    self.sources += read_at(
                        text.place(statement.offset), partial(sources_from_dict, node)
                    )
        for name in [name for name, node in self.nodes.items() if node.kind == "Instance"]:
            with self.collect_error():
                self.expand(name, ())
        self.link()
        raise_errors(self.errors)
        scene_nodes = self.scene_nodes()
        for statement, text in self.statements:
            place = text.place(statement.offset)
            with self.collect_error():
                if statement.keyword == "AllowCollision":
                    allowed.append(self._allowed_pair(statement, text))
                elif statement.keyword == "Body":
                    bodies.append(statement.values[0])
                elif statement.keyword == "Relation":
                    facts.append(_fact(statement, place))
                elif statement.keyword == "import":
                    imports.extend(self._import_specifications(statement, text))
        frames: list[FrameSpec] = []
        groups: list[GroupSpec] = []
        for name in scene_nodes:
            with self.collect_error():
                if self.is_frame(name):
                    frame = self.frame(name)
                    observations = self._observations(frame, self.frames_above[name])
                    frames += [frame, *observations]
                    groups += [
                        GroupSpec(item.name, (frame.name, item.name), (), item.place)
                        for item in observations
                    ]
                else:
                    groups.append(self.group(name))
        self._check_stamps(frames)
        blocks = [
            specification
            for block in self.blocks.values()
            for specification in self._block(block, scene_nodes)
        ]
        return SceneSpecification(
            frames=(
                *frames,
                *(frame for specification in imports for frame in specification.frames),
            ),
            allowed=(
                *allowed,
                *(pair for specification in imports for pair in specification.allowed),
            ),
            groups=(
                *groups,
                *(group for specification in imports for group in specification.groups),
            ),
            bodies_without_frames=(
                *bodies,
                *(
                    body
                    for specification in imports
                    for body in specification.bodies_without_frames
                ),
            ),
            facts=tuple(facts),
            function_blocks=(
                *blocks,
                *(block for specification in imports for block in specification.function_blocks),
            ),
            is_whole=bool(self.roots) or not any(map(self.is_frame, self.nodes)),
        )

    def _allowed_pair(self, statement: Member, text: RsgText) -> AllowedPairSpec:
        first, second, reason = statement.values
        return AllowedPairSpec(
            self.scene_name(first.text),
            self.scene_name(second.text),
            reason or "",
            text.place(first.offset),
            text.place(second.offset),
        )

    def _observations(self, frame: FrameSpec, frames_above: Sequence[str]) -> list[FrameSpec]:
        """Return the observations of a frame by the frames above it, if there are several."""
        if len(frames_above) < 2:
            return []
        return [_observation_of(frame, self.scene_name(observer)) for observer in frames_above]

    def _import_specifications(
        self, statement: Member, text: RsgText
    ) -> Iterator[SceneSpecification]:
        """Yield the scene of an import in another format, with a prefix or below a node."""
        file, prefix, parent_node = statement.values
        place = text.place(file.offset)
        if file.text.endswith(".rsg") and prefix is None and parent_node is None:
            return
        path = self.resolve_file(file, text)
        if real_path(path) in self.seen:
            raise place.error(f"'{file.text}' imports itself")
        packages = self.loader.packages
        packages.count_include(place, is_slow=True)
        with packages.includes.reading(real_path(path), place.error):
            specification = self.read_other(path)
        if parent_node is not None:
            self.lookup(self.nodes, parent_node, text, "the node")
        top = "world" if parent_node is None else self.scene_name(parent_node.text)
        if prefix is None and parent_node is None:
            yield specification
            return
        with locate_errors(place):
            scene = SceneGraph(top).mount(
                build_scene([specification], loader=self.loader),
                top,
                prefix=f"{prefix.text}/" if prefix is not None else "",
            )
        mounted = specification_of_scene(scene, path=str(place))
        yield replace(
            mounted, frames=mounted.frames[1:], function_blocks=specification.function_blocks
        )

    def _block(
        self, declaration: Declaration, scene_nodes: Sequence[str]
    ) -> Iterator[FunctionBlockSpec]:
        references: dict[str, Name] = {}
        hooks = {}
        with self.collect_error():
            for member in declaration.members:
                if member.keyword.endswith(("Hook", "Structure")):
                    if member.keyword in references:
                        raise declaration.text.place(member.offset).error(
                            f"a function block has one '{member.keyword}'; nodes in a Group are one"
                            " structure"
                        )
                    references[member.keyword] = member.values[0]
            for key in ("inputHook", "outputHook"):
                hook = references.get(key)
                hooks[key] = None if hook is None else self.scene_name(hook.text)
                if hook is not None and hook.text not in self.nodes:
                    hint = did_you_mean(hook.text, self.nodes)
                    self.note(
                        declaration.text.place(hook.offset),
                        f"the hook '{hook.text}' is declared nowhere{hint}; it may come at run"
                        " time",
                    )
                elif hook is not None and hook.text not in scene_nodes:
                    self.note(
                        declaration.text.place(hook.offset),
                        f"the hook '{hook.text}' is below no root",
                    )
            structures = {
                key: self._structure(
                    self.lookup(
                        self.nodes, references[key], declaration.text, "the structure"
                    ).name.text,
                    {},
                    0,
                )
                for key in ("inputStructure", "outputStructure")
                if key in references
            }
            triggers = tuple(
                self._trigger(declaration, member) for member in declaration.get("trigger")
            )
            yield FunctionBlockSpec(
                declaration.name.text,
                name_place(declaration),
                structures.get("inputStructure"),
                hooks["inputHook"],
                structures.get("outputStructure"),
                hooks["outputHook"],
                triggers,
                self.attributes(declaration),
            )

    def _trigger(self, declaration: Declaration, member: Member) -> tuple[str, str | float]:
        word, value = member.values
        place = declaration.text.place(member.offset)
        if word == "after":
            return word, self.lookup(
                self.blocks, value, declaration.text, "the function block"
            ).name.text
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

    def _structure(self, name: str, holders: dict[str, str], depth: int) -> StructureSpec:
        """Return the structure of a node.

        Args:
            name: name of the node.
            holders: parent of each node of the structure so far.
            depth: number of nodes above the node.
        """
        declaration = self.nodes[name]
        place = name_place(declaration)
        if depth > _MAX_STRUCTURE_DEPTH:
            raise place.error(
                f"the structure of a function block is deeper than {_MAX_STRUCTURE_DEPTH} nodes"
            )
        self.structure_count += 1
        self.loader.packages.limits.check_frame_count(self.structure_count, place.error)
        content = kind = None
        sizes: tuple[float, ...] = ()
        for member in declaration.get("geometry"):
            geometry = self.lookup(
                self.contents, member.values[0], declaration.text, "the geometry"
            )
            content = {"PointCloud": "point_cloud"}.get(geometry.kind, geometry.kind.lower())
            kind = next(map(partial(self._content_type, geometry), geometry.get("type")), None)
            sizes = self.primitive(geometry).dimensions if geometry.kind in SIZES else ()
        cardinality = declaration.get("cardinality")
        if len(cardinality) > 1:
            raise declaration.text.place(cardinality[1].offset).error("a node has one cardinality")
        children = []
        for member in declaration.get("child"):
            (child,) = member.values
            if child.text in holders:
                raise declaration.text.place(child.offset).error(
                    f"'{child.text}' is twice in the structure of a function block, below"
                    f" '{holders[child.text]}' and '{name}': set its cardinality, or declare an"
                    " Instance"
                )
            holders[child.text] = name
            children.append(self._structure(child.text, holders, depth + 1))
        with locate_errors(place):
            attributes = {
                key: value_and_stamp(key, value)[0]
                for key, value in self.attributes(declaration).items()
            }
        return StructureSpec(
            self.scene_name(name),
            declaration.kind,
            place,
            content,
            kind,
            cardinality[0].values[0] if cardinality else 1,
            attributes,
            tuple(children),
            sizes,
        )

    def _content_type(self, geometry: Declaration, member: Member) -> ContentTypeSpec:
        declaration = self.lookup(self.types, member.values[0], geometry.text, "the type")
        values = {member.keyword: member.values[0] for member in declaration.members}
        return ContentTypeSpec(
            declaration.name.text,
            name_place(declaration),
            values.get("type"),
            values.get("sharedPtr"),
            values.get("library"),
        )

    def _check_stamps(self, frames: Sequence[FrameSpec]) -> None:
        """Add a note if no time stamp is within the histories of all edges."""
        moving = [frame for frame in frames if frame.stamps is not None and len(frame.stamps)]
        if moving:
            latest = max(moving, key=lambda frame: frame.stamps.stamps[0])  # type: ignore[union-attr]
            earliest = min(moving, key=lambda frame: frame.stamps.stamps[-1])  # type: ignore[union-attr]
            begin, end = latest.stamps.stamps[0], earliest.stamps.stamps[-1]  # type: ignore[union-attr]
            if begin > end:
                text = (
                    f"no stamp is common to all edges: '{earliest.name}' is known until {end:g} s, "
                )
                self.note(latest.place, f"{text}'{latest.name}' from {begin:g} s")


def _fact(statement: Member, place: SourceLocation) -> FactSpec:
    kind, notation, values = statement.values
    count = {"Pose": 7, "Position": 3, "Orientation": 4, "Twist": 6}[kind]
    numbers = read_at(place, partial(JsonNode(values, place.path, kind).numbers, count))
    return FactSpec(kind, tuple(notation), tuple(numbers), place)


def _observation_of(frame: FrameSpec, observer: str) -> FrameSpec:
    """Return the observation of a frame by another frame above it."""
    times = [] if frame.stamps is None else frame.stamps.stamps.tolist()
    stamp = times[-1] if times else None
    record: dict[str, object] = {"kind": "pose", "stamp": stamp, "tags": []}
    return FrameSpec(
        f"{frame.name} seen from {observer}",
        observer,
        frame.place,
        frame.pose,
        classes=("observation",),
        attributes={"observation": record},
        noise=frame.noise,
    )
