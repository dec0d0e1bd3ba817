"""Structures of function blocks as patterns, and a check of the blocks of a file.

A group is not a frame, so its cardinality multiplies those of its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tmkit._support.source_location import locate_errors
from tmkit.errors import FileFormatError
from tmkit.formats.spec.model import FunctionBlockSpec, StructureSpec
from tmkit.graph import SceneGraph
from tmkit.graph.patterns import Part, Structure
from tmkit.graph.patterns.implication import satisfies
from tmkit.graph.patterns.pattern import find_structure


def structure_from_spec(spec: StructureSpec) -> Structure | None:
    """Return the structure of a node, or None if it has groups only.

    Raises:
        FileFormatError: if :class:`~tmkit.graph.patterns.Structure` raises an error.
    """
    parts: list[Part] = []
    parents: dict[str, str] = {}
    counts: dict[str, int | None] = {}
    pending: list[tuple[StructureSpec, str | None, int | None]] = [(spec, None, 1)]
    while pending:
        node, parent, factor = pending.pop(0)
        count = None if factor is None or node.cardinality is None else factor * node.cardinality
        if node.kind == "Group":
            pending += [(child, parent, count) for child in node.children]
            continue
        shape = None if node.content == "shape" else node.content
        with locate_errors(node.place):
            parts.append(Part(node.name, shape=shape, attributes=node.attributes))
        if parent is not None:
            parents[node.name] = parent
        if count != 1:
            counts[node.name] = count
        pending += [(child, node.name, 1) for child in node.children]
    with locate_errors(spec.place):
        return Structure(parts, parents=parents, counts=counts) if parts else None


def check_blocks(blocks: Sequence[FunctionBlockSpec], scene: SceneGraph) -> Iterator[str]:
    """Yield a note for each block whose input neither a scene nor the blocks before it have.

    The blocks before it are those of its triggers ``after``, and those before them. A block without
    such a trigger may get its input at run time.
    """
    by_name = {block.name: block for block in blocks}
    for block in blocks:
        before = _blocks_before(block.name, by_name)
        if block.input_structure is None or not before:
            continue
        try:
            need = structure_from_spec(block.input_structure)
            outputs = [
                structure_from_spec(output)
                for output in (by_name[name].output_structure for name in before)
                if output is not None
            ]
        except FileFormatError as error:
            yield str(error)
            continue
        is_provided = need is None or any(
            output is not None and satisfies(output, need) for output in outputs
        )
        if not is_provided and need is not None and not find_structure(scene, need):
            names = ", ".join(f"'{name}'" for name in before)
            yield (
                f"function block '{block.name}' runs after {names}, whose outputs have no"
                f" '{block.input_structure.name}' as its input needs"
            )


def _blocks_before(name: str, by_name: dict[str, FunctionBlockSpec]) -> list[str]:
    """Return the blocks after which a block runs, also through others, the nearest first."""
    before: dict[str, None] = {}
    pending = [name]
    while pending:
        for kind, value in by_name[pending.pop(0)].triggers:
            if kind == "after" and value in by_name and value not in before and value != name:
                before[str(value)] = None
                pending.append(str(value))
    return [*before]
