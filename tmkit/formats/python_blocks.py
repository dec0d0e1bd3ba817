"""Generator of Python classes of function blocks.

Each block becomes an abstract class with hooks, structures and triggers. Users implement its method
``execute`` in a derived class, so the code can be generated again (the generation gap pattern:
Fowler, "Domain-Specific Languages", 2010).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator

import tmkit.graph
from tmkit.formats.spec.model import FunctionBlockSpec, StructureSpec
from tmkit.formats.spec.structures import structure_from_spec
from tmkit.graph.patterns import Part

BLOCK_CLASSES = ("After", "Every", "FunctionBlock", "OnChange")
"""Classes of :mod:`tmkit.world` that function blocks use."""

_TRIGGERS = {"onChange": "OnChange", "after": "After", "every": "Every"}
"""Classes of triggers by their keyword in RSG-DSL."""

_IMPORTED_NAMES = frozenset(
    {*BLOCK_CLASSES, *dir(tmkit.graph), "ClassVar", "Mapping", "Part", "Path", "Pose", "Structure"}
)
"""Names that a module may import, which no class of a block has."""


def block_classes(blocks: Iterable[FunctionBlockSpec]) -> Iterator[str]:
    """Yield the lines of the classes of function blocks.

    Raises:
        FileFormatError: if two function blocks have the same class name, or a structure is invalid.
    """
    block_names: dict[str, str] = {}
    for block in blocks:
        name = _class_name(block.name)
        if name in block_names:
            raise block.place.error(
                f"function blocks '{block_names[name]}' and '{block.name}' would both be the class"
                f" '{name}'"
            )
        block_names[name] = block.name
        yield from ("", "", "@dataclass(frozen=True)", f"class {name}(FunctionBlock):")
        description = docstring_text(
            f"Function block {block.name!r}: write ``execute`` in a class that derives from this"
            " one."
        )
        yield f'    """{description}"""'
        yield ""
        for key, value in (
            ("name", block.name),
            ("input_hook", block.input_hook),
            ("output_hook", block.output_hook),
        ):
            yield f"    {key}: str = {value or ''!r}"
        for key, structure in (
            ("inputs", block.input_structure),
            ("outputs", block.output_structure),
        ):
            yield f"    {key}: ClassVar[Mapping[str, Structure]] = {_structures(structure)}"
        if block.triggers:
            triggers = ", ".join(f"{_TRIGGERS[kind]}({value!r})" for kind, value in block.triggers)
            yield f"    TRIGGERS = ({triggers},)  # for a BlockRunner"


def docstring_text(text: str) -> str:
    """Return a text with the escapes that it needs between triple quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in escaped)


def _class_name(name: str) -> str:
    """Return the class name of a function block."""
    words = re.findall(r"[^\W_]+", name)
    identifier = "".join(word[:1].upper() + word[1:] for word in words)
    is_valid = identifier.isidentifier() and not keyword.iskeyword(identifier)
    return identifier if is_valid and identifier not in _IMPORTED_NAMES else f"Block{identifier}"


def _structures(spec: StructureSpec | None) -> str:
    """Return the expression of a block's structures by name."""
    structure = None if spec is None else structure_from_spec(spec)
    if spec is None or structure is None:
        return "{}"
    arguments = [f"[{', '.join(map(_part, structure.nodes))}]"]
    arguments += [f"parents={dict(structure.parents)!r}"] if structure.parents else []
    arguments += [f"counts={dict(structure.counts)!r}"] if structure.counts else []
    return f"{{{spec.name!r}: Structure({', '.join(arguments)})}}"


def _part(part: Part) -> str:
    """Return the expression of one part of a structure."""
    arguments = [repr(part.name)]
    if part.shape is not None:
        arguments.append(f"shape={part.shape!r}")
    if part.attributes:
        arguments.append(f"attributes={dict(part.attributes)!r}")
    return f"Part({', '.join(arguments)})"
