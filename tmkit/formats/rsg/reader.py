"""Scenes in RSG-DSL, the language of the robot scene graph (docs/reference/rsg.md).

Declarations are read and linked (:mod:`tmkit.formats.rsg.declarations`), and their nodes become
frames and groups (:mod:`tmkit.formats.rsg.nodes`). A node is a frame unless it is a group that is
no root. A frame below several others is a child of the first, and each of them has an *observation*
of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tmkit._support.source_location import Note, did_you_mean, reported
from tmkit.formats.json.frames import sources_from_dict
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.mesh.package_uris import real_path
from tmkit.formats.rsg.declarations import place_of, refuse_all
from tmkit.formats.rsg.grammar import Declaration, Member, RsgText
from tmkit.formats.rsg.nodes import NodeReader, placed
from tmkit.formats.rsg.values import si_quantity
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
from tmkit.formats.spec.values import specification_of_scene
from tmkit.graph import SceneGraph

ReadOther = Callable[[Path], SceneSpecification]


def read_rsg(
    path: Path, *, loader: MeshLoader, read_other: ReadOther, note: Note
) -> SceneSpecification:
    """Read a file in RSG-DSL with all that it imports; an error has up to 20 of declarations as ``errors``."""
    reader = _Reader(loader, note, read_other=read_other)
    reader.read(path, ())
    refuse_all(reader.errors)  # what is missing after an error of syntax would be named wrongly
    specification = reader.specification()
    refuse_all(reader.errors)
    return specification


@dataclass(slots=True)
class _Reader(NodeReader):
    """The scene that declarations make."""

    read_other: ReadOther = field(kw_only=True)

    def specification(self) -> SceneSpecification:
        others: list[SceneSpecification] = []
        allowed, bodies, facts = [], [], []
        for statement, text in self.statements:
            if statement.keyword == "NoiseSources":
                with self.collected():
                    node = JsonNode(statement.values[0], str(text.source.path), "NoiseSources")
                    self.sources += placed(
                        text.place(statement.at), partial(sources_from_dict, node)
                    )
        for name in [name for name, made in self.nodes.items() if made.kind == "Instance"]:
            with self.collected():
                self.expand(name, ())
        self.link()
        refuse_all(self.errors)
        reached = self.reached()
        for statement, text in self.statements:
            place = text.place(statement.at)
            with self.collected():
                if statement.keyword == "AllowCollision":
                    first, second, reason = statement.values
                    one, other = self.scene_name(first.text), self.scene_name(second.text)
                    at = text.place(second.at)
                    allowed.append(
                        AllowedPairSpec(one, other, reason or "", text.place(first.at), at)
                    )
                elif statement.keyword == "Body":
                    bodies.append(statement.values[0])
                elif statement.keyword == "Relation":
                    kind, notation, values = statement.values
                    count = {"Pose": 7, "Position": 3, "Orientation": 4, "Twist": 6}[kind]
                    numbers = placed(
                        place, partial(JsonNode(values, place.path, kind).numbers, count)
                    )
                    facts.append(FactSpec(kind, tuple(notation), tuple(numbers), place))
                elif statement.keyword == "import":
                    others.extend(self._imported(statement, text))
        frames: list[FrameSpec] = []
        groups: list[GroupSpec] = []
        for name in reached:
            with self.collected():
                if self.is_frame(name):
                    made = self.frame(name)
                    above = self.above[name] if len(self.above[name]) > 1 else ()
                    seen = [_observed(made, self.scene_name(other)) for other in above]
                    frames += [made, *seen]
                    groups += [
                        GroupSpec(one.name, (made.name, one.name), (), one.place) for one in seen
                    ]
                else:
                    groups.append(self.group(name))
        self._check_stamps(frames)
        blocks = [made for block in self.blocks.values() for made in self._block(block, reached)]
        return SceneSpecification(
            frames=(*frames, *(frame for other in others for frame in other.frames)),
            allowed=(*allowed, *(pair for other in others for pair in other.allowed)),
            groups=(*groups, *(group for other in others for group in other.groups)),
            bodies_without_frames=(
                *bodies,
                *(body for other in others for body in other.bodies_without_frames),
            ),
            facts=tuple(facts),
            function_blocks=(
                *blocks,
                *(block for other in others for block in other.function_blocks),
            ),
            is_whole=bool(self.roots) or not any(map(self.is_frame, self.nodes)),
        )

    def _imported(self, statement: Member, text: RsgText) -> Iterator[SceneSpecification]:
        """Yield what an import of another language, with a prefix or below a node, adds."""
        file, prefix, under = statement.values
        place = text.place(file.at)
        if file.text.endswith(".rsg") and prefix is None and under is None:
            return
        path = self.found(file, text)
        if real_path(path) in self.seen:
            raise place.error(f"'{file.text}' imports itself")
        packages = self.loader.packages
        packages.count_include(place, is_slow=True)
        with packages.includes.reading(real_path(path), place.error):
            other = self.read_other(path)
        if under is not None:
            self.known(self.nodes, under, text, "the node")
        top = "world" if under is None else self.scene_name(under.text)
        if prefix is None and under is None:
            yield other
            return
        with reported(place):
            scene = SceneGraph(top).mount(
                build_scene([other], loader=self.loader),
                top,
                prefix=f"{prefix.text}/" if prefix is not None else "",
            )
        made = specification_of_scene(scene, path=str(place))
        yield replace(made, frames=made.frames[1:], function_blocks=other.function_blocks)

    def _block(self, made: Declaration, reached: Sequence[str]) -> Iterator[FunctionBlockSpec]:
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
                        f"the hook '{hook.text}' is declared nowhere{hint}; it may come at run"
                        " time",
                    )
                elif hook is not None and hook.text not in reached:
                    self.note(made.text.place(hook.at), f"the hook '{hook.text}' is below no root")
            structures = {
                key: self._structure(
                    self.known(self.nodes, given[key], made.text, "the structure").name.text, ()
                )
                for key in ("inputStructure", "outputStructure")
                if key in given
            }
            triggers = tuple(self._trigger(made, member) for member in made.get("trigger"))
            yield FunctionBlockSpec(
                made.name.text,
                place_of(made),
                structures.get("inputStructure"),
                hooks["inputHook"],
                structures.get("outputStructure"),
                hooks["outputHook"],
                triggers,
                self.attributes(made),
            )

    def _trigger(self, made: Declaration, member: Member) -> tuple[str, str | float]:
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

    def _structure(self, name: str, above: tuple[str, ...]) -> StructureSpec:
        made = self.nodes[name]
        if len(above) > 100:
            raise place_of(made).error("the structure of a function block is deeper than 100 nodes")
        content = kind = None
        for member in made.get("geometry"):
            found = self.known(self.contents, member.values[0], made.text, "the geometry")
            content = {"PointCloud": "point_cloud"}.get(found.kind, found.kind.lower())
            kind = next((one.values[0].text for one in found.get("type")), None)
        cardinality = made.get("cardinality")
        children = [
            child.text
            for member in made.get("child")
            for child in member.values
            if child.text in self.nodes
        ]
        return StructureSpec(
            self.scene_name(name),
            made.kind,
            place_of(made),
            content,
            kind,
            cardinality[-1].values[0] if cardinality else "1",
            self.attributes(made),
            tuple(self._structure(child, (*above, name)) for child in children),
        )

    def _check_stamps(self, frames: Sequence[FrameSpec]) -> None:
        """Note that no time is known of all edges."""
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


def _observed(frame: FrameSpec, observer: str) -> FrameSpec:
    """Return the observation of a frame by another that is above it too."""
    times = [] if frame.stamps is None else frame.stamps.stamps.tolist()
    stamp = times[-1] if times else None
    given: dict[str, object] = {"kind": "pose", "stamp": stamp, "tags": []}
    return FrameSpec(
        f"{frame.name} seen from {observer}",
        observer,
        frame.place,
        frame.pose,
        classes=("observation",),
        attributes={"observation": given},
        noise=frame.noise,
    )
