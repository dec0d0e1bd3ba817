"""Writer of function blocks in RSG-DSL, with the nodes of their structures.

The nodes are declared beside those of a scene. A node whose name the scene has gets another one,
and is ``called`` by its name.

Invariant: the text reads back to equal function blocks, except for their locations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tmkit._support.source_location import SourceLocation
from tmkit.formats.rsg.grammar import SIZES
from tmkit.formats.rsg.writer import attribute_lines, distinct_names, json_text, quote_if_needed
from tmkit.formats.spec.model import ContentTypeSpec, FunctionBlockSpec, StructureSpec
from tmkit.graph import SceneGraph
from tmkit.graph.attributes import value_and_stamp

_KINDS = {"point_cloud": "PointCloud", "mesh": "Mesh", "shape": "Shape"}
"""Kinds of content without sizes, by their name in a structure."""


def rsg_from_blocks(blocks: Sequence[FunctionBlockSpec], scene: SceneGraph) -> str:
    """Return function blocks as text in RSG-DSL, to be appended to that of a scene.

    Args:
        blocks: the function blocks.
        scene: scene of the file, whose names no other node gets.
    """
    writer = _BlockWriter(blocks, scene)
    lines = [line for block in blocks for line in writer.block(block)]
    return "".join(f"{line}\n" for line in [*writer.types.values(), *writer.lines, *lines])


class _BlockWriter:
    """Writer of function blocks.

    Attributes:
        types: declarations of data types by name.
        lines: declarations of nodes and of their contents.
    """

    def __init__(self, blocks: Sequence[FunctionBlockSpec], scene: SceneGraph) -> None:
        hooks = {hook for block in blocks for hook in (block.input_hook, block.output_hook) if hook}
        hooks |= {
            str(value) for block in blocks for kind, value in block.triggers if kind == "onChange"
        }
        # Nodes of groups, which have other names than frames.
        self._groups = distinct_names(scene, scene.group_names)
        self._frames = frozenset(scene.frame_names)
        self._names = {*scene.frame_names, *self._groups.values(), *hooks}
        self._nodes: dict[tuple[str, SourceLocation], str] = {}
        self._content_count = 0
        self.types: dict[str, str] = {}
        self.lines: list[str] = []

    def block(self, block: FunctionBlockSpec) -> Iterator[str]:
        """Yield the lines of a function block, after those of its structures are written."""
        members = []
        for keyword, structure, hook in (
            ("input", block.input_structure, block.input_hook),
            ("output", block.output_structure, block.output_hook),
        ):
            if structure is not None:
                members.append(f"{keyword}Structure {quote_if_needed(self._node(structure))}")
            if hook is not None:
                members.append(f"{keyword}Hook {self._scene_node(hook)}")
        for kind, value in block.triggers:
            trigger = f"{value!r} s"
            if kind == "after":
                trigger = quote_if_needed(str(value))
            elif kind == "onChange":
                trigger = self._scene_node(str(value))
            members.append(f"trigger {kind} {trigger}")
        yield f"FunctionBlock {quote_if_needed(block.name)} {{"
        yield from _attributes(block.attributes)
        yield from (f"  {member}" for member in members)
        yield "}"

    def _scene_node(self, name: str) -> str:
        """Return the text of the node of a frame or group, which may come at run time."""
        return quote_if_needed(name if name in self._frames else self._groups.get(name, name))

    def _node(self, spec: StructureSpec) -> str:
        """Return the name of the node of a structure, after it is written."""
        key = spec.name, spec.place
        if key in self._nodes:
            return self._nodes[key]
        name, number = spec.name, 1
        while name in self._names:
            number += 1
            name = f"{spec.name} ({number})"
        self._names.add(name)
        self._nodes[key] = name
        members = [] if name == spec.name else [f"  called {json_text(spec.name)}"]
        members += _attributes(spec.attributes)
        if spec.cardinality != 1:
            members.append(f"  cardinality {spec.cardinality or '*'}")
        if spec.content is not None:
            members.append(f"  geometry {self._content(spec)}")
        members += [f"  child {quote_if_needed(self._node(child))}" for child in spec.children]
        self.lines += [f"{spec.kind} {quote_if_needed(name)} {{", *members, "}"]
        return name

    def _content(self, spec: StructureSpec) -> str:
        """Return the name of the content of a node, after it is written."""
        self._content_count += 1
        name = f"structure_{self._content_count}"
        kind = _KINDS.get(spec.content or "")
        if kind is None:
            kind = str(spec.content).title()
            sizes = zip(SIZES[kind], spec.sizes, strict=True)
            text = " ".join(f"{word} {size!r} m" for word, size in sizes)
            self.lines.append(f"{kind} {name} {{ {text} }}")
        else:
            content_type = ""
            if spec.content_type is not None:
                self._type(spec.content_type, kind)
                content_type = f" type {quote_if_needed(spec.content_type.name)}"
            self.lines.append(f"{kind} {name}{content_type}")
        return name

    def _type(self, spec: ContentTypeSpec, kind: str) -> None:
        """Write a data type at its first use."""
        members = {"type": spec.type, "sharedPtr": spec.shared_ptr, "library": spec.library}
        texts = [f"{key} {json_text(text)}" for key, text in members.items() if text is not None]
        keyword = "MeshType" if kind == "Mesh" else "PointCloudType"
        name = quote_if_needed(spec.name)
        self.types[spec.name] = f"{keyword} {name} {{ {' '.join(texts)} }}"


def _attributes(attributes: Mapping[str, object]) -> list[str]:
    """Return the lines of attributes, which may have stamps."""
    pairs = {key: value_and_stamp(key, value) for key, value in attributes.items()}
    values = {key: value for key, (value, _) in sorted(pairs.items())}
    stamps = {key: stamp for key, (_, stamp) in pairs.items() if stamp is not None}
    return [*attribute_lines(values, stamps)]
