"""Generator of C++17 headers with interfaces of function blocks.

A header has one abstract class for each block. Users implement its method ``execute`` in a derived
class, so the header can be generated again (the generation gap pattern: Fowler, "Domain-Specific
Languages", 2010). Structures become plain structs, which blocks of one header share::

    namespace kitchen
      shapes       Box, Mesh, ...: geometries without a type of their own
      types        data types of the user, such as PointCloudPCL
      structures   one struct for each node: matrix, stamp, geometry, children
      PlaneSegmentation, ...        one class for each block

A header needs the standard library and the user's types alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tmkit._support.source_location import did_you_mean
from tmkit.formats.cpp_header import cpp_literal
from tmkit.formats.cpp_names import class_name, is_python_type, member_name, type_fault
from tmkit.formats.cpp_types import CppType
from tmkit.formats.spec.model import ContentTypeSpec, FunctionBlockSpec, StructureSpec
from tmkit.graph.attributes import attribute_text

_SHAPES = {
    "box": (
        "/// Box, centred.",
        "struct Box {",
        "    std::array<double, 3> size{};  ///< lengths along x, y and z [m]",
        "};",
    ),
    "sphere": (
        "/// Sphere, centred.",
        "struct Sphere {",
        "    double radius = 0.0;  ///< [m]",
        "};",
    ),
    **{
        kind: (
            f"/// {kind.title()} along z, centred.",
            f"struct {kind.title()} {{",
            "    double radius = 0.0;  ///< [m]",
            "    double height = 0.0;  ///< [m]",
            "};",
        )
        for kind in ("cylinder", "cone", "capsule")
    },
    "mesh": (
        "/// Triangles, counterclockwise seen from outside.",
        "struct Mesh {",
        "    std::vector<std::array<double, 3>> vertices;  ///< x, y and z [m]",
        "    std::vector<std::array<std::size_t, 3>> triangles;  ///< indices of vertices",
        "};",
    ),
    "point_cloud": (
        "/// Points with x, y and z [m].",
        "using PointCloud = std::vector<std::array<double, 3>>;",
    ),
}
"""Definition of the struct of each kind of geometry, in the axes of its node."""

_RESERVED = (
    "attributes block_name check detail each geometry matrix shapes stamp structures types std"
)
"""Names that no data member of a child has."""

_INCLUDES = {
    "array": "std::array",
    "cstddef": "std::size_t",
    "memory": "std::shared_ptr",
    "stdexcept": "std::length_error",
    "string": "std::string(",
    "string_view": "std::string_view",
    "utility": "std::pair",
    "vector": "std::vector",
}
"""Name that needs each header of the standard library."""

_CHECK_COMMENT = "/// Throw std::length_error if a number of nodes differs from its cardinality."
"""Comment of functions that check numbers of nodes."""

_CHECK_COUNT = (
    "namespace detail {",
    "",
    "inline void check_count(std::string_view block, std::string_view node, std::size_t expected,",
    "                        std::size_t count) {",
    "    if (count != expected) {",
    '        throw std::length_error("function block \'" + std::string(block) + "\': expected " +',
    '                                std::to_string(expected) + " of \'" + std::string(node) +',
    '                                "\', got " + std::to_string(count));',
    "    }",
    "}",
    "",
    "}  // namespace detail",
)
"""Function that throws if the number of nodes differs from their cardinality."""


def cpp_of_blocks(
    blocks: Sequence[FunctionBlockSpec],
    *,
    name: str,
    types: Mapping[str, CppType] | None = None,
    source: str = "",
) -> str:
    """Return the text of a header with one abstract class for each function block.

    Args:
        blocks: the function blocks.
        name: namespace of the classes.
        types: C++ types by the name of the data type; they replace those of the file.
        source: description of the blocks, for the first line.

    Raises:
        FileFormatError: if two nodes or blocks have the same name in C++, a node has no type in
            C++, or a type of the table belongs to no block.
    """
    generator = _Generator(name, types or {})
    body = [line for block in blocks for line in generator.block(block)]
    generator.check_types()
    definitions = [
        *_namespace("shapes", generator.shapes.values()),
        *_namespace("types", generator.aliases.values()),
        *_namespace("structures", generator.structs.values()),
    ]
    checks = [*_CHECK_COUNT, ""] if generator.has_checks else []
    code = "\n".join([*checks, *definitions, *body])
    title = " ".join((source or name).split())
    lines = [
        f"// {title}: interfaces of function blocks, written by 'tmkit scene compile'.",
        "// Derive a class from each interface and write execute(). Compile as C++17 or later.",
        *generator.comments,
        "#pragma once",
        "",
        *(f"#include <{header}>" for header, word in _INCLUDES.items() if word in code),
        "",
        *generator.includes,
        *([""] if generator.includes else []),
        f"namespace {name} {{",
        "",
        *checks,
        *definitions,
        *body,
        f"}}  // namespace {name}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _namespace(name: str, definitions: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of an inner namespace, none if it is empty."""
    texts = [*definitions]
    if not texts:
        return
    yield from (f"namespace {name} {{", "")
    for lines in texts:
        yield from (*lines, "")
    yield from (f"}}  // namespace {name}", "")


class _Generator:
    """Generator of the classes of function blocks and of the structs that they need.

    Attributes:
        shapes: definitions of geometries by kind.
        aliases: definitions of data types by name.
        structs: definitions of nodes by name, each after those of its children.
        includes: lines that include headers of data types.
        comments: comments about headers that the user includes.
        has_checks: whether a node has a cardinality to check.
    """

    def __init__(self, namespace: str, types: Mapping[str, CppType]) -> None:
        self._namespace = namespace
        self._types = types
        self._classes: dict[str, FunctionBlockSpec] = {}
        self._nodes: dict[str, StructureSpec] = {}
        self._content_types: dict[str, ContentTypeSpec] = {}
        self.shapes: dict[str, Sequence[str]] = {}
        self.aliases: dict[str, Sequence[str]] = {}
        self.structs: dict[str, Sequence[str]] = {}
        self.includes: dict[str, None] = {}
        self.comments: dict[str, None] = {}
        self.has_checks = False

    def check_types(self) -> None:
        """Raise an error if a type of the table belongs to no block."""
        for name, entry in self._types.items():
            if name not in self._content_types:
                hint = did_you_mean(name, self._content_types)
                raise entry.place.error(f"no function block uses a data type '{name}'{hint}")

    def block(self, block: FunctionBlockSpec) -> Iterator[str]:
        """Yield the lines of the class of a function block."""
        name = class_name(block.name)
        if name in self._classes:
            other = self._classes[name]
            raise block.place.error(
                f"the function blocks '{block.name}' and '{other.name}' would both be '{name}' in"
                " C++"
            )
        self._classes[name] = block
        input_type = self._root_type(block.input_structure)
        output_type = self._root_type(block.output_structure) or "void"
        parameter = f"const {input_type}& input" if input_type else ""
        yield f"/// Function block {cpp_literal(block.name)}."
        for kind, value in block.triggers:
            shown = cpp_literal(value) if isinstance(value, str) else f"{value!r} s"
            yield f"/// Trigger: {kind} {shown}."
        yield from (f"class {name} {{", "public:")
        for key, text in (
            ("name", block.name),
            ("input_hook", block.input_hook),
            ("output_hook", block.output_hook),
        ):
            yield f"    static constexpr std::string_view {key}{{{_view(text or '')}}};"
        yield from ("", f"    virtual ~{name}() = default;", "")
        input_checks = [*self._root_checks(block.input_structure, "input", "name")]
        output_checks = [*self._root_checks(block.output_structure, "output", "name")]
        yield "    /// Execute the block."
        if input_checks or output_checks:
            yield f"    {_CHECK_COMMENT}"
        call = f"execute({'input' if input_type else ''})"
        yield f"    {output_type} run({parameter}) {{"
        yield from (f"        {line}" for line in input_checks)
        if output_checks:
            yield f"        {output_type} output = {call};"
            yield from (f"        {line}" for line in output_checks)
            yield "        return output;"
        else:
            yield f"        return {call};"
        yield from ("    }", "", "protected:")
        for key, structure in (
            ("input", block.input_structure),
            ("output", block.output_structure),
        ):
            if structure is not None:
                yield f"    /// {key.capitalize()}: {_quantity(structure)}."
        yield f"    virtual {output_type} execute({parameter}) = 0;"
        yield from ("};", "")

    def _root_type(self, structure: StructureSpec | None) -> str | None:
        """Return the type of the input or output of a block."""
        return None if structure is None else _type_of_all(structure, self._struct(structure))

    def _root_checks(
        self, structure: StructureSpec | None, variable: str, block: str
    ) -> Iterator[str]:
        """Yield the statements that check the numbers of nodes of an input or output."""
        if structure is not None:
            for line in _checks(structure, variable, block):
                self.has_checks = True
                yield line

    def _struct(self, node: StructureSpec) -> str:
        """Return the struct of a node, and define it at its first use."""
        name = class_name(node.name)
        if name in self._nodes:
            other = self._nodes[name]
            if other != node:
                raise node.place.error(
                    f"the nodes '{node.name}' and '{other.name}' at {other.place} would both be"
                    f" '{name}' in C++"
                )
            return f"structures::{name}"
        self._nodes[name] = node
        members: list[str] = []
        if node.kind == "Transform":
            members += [
                "/// Row-major 4x4 transform parent_from_child, with the translation in metres.",
                "std::array<double, 16> matrix{1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0,",
                "                              0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0};",
                "double stamp = 0.0;  ///< time of the transform [s]",
            ]
        if node.content is not None:
            members.append(f"{self._geometry(node)} geometry{{}};")
        fields: dict[str, str] = {}
        for child in node.children:
            child_type = _type_of_all(child, self._struct(child))
            field = member_name(child.name, frozenset([*_RESERVED.split(), self._namespace, name]))
            if field in fields:
                raise child.place.error(
                    f"the nodes '{fields[field]}' and '{child.name}' below '{node.name}' would both"
                    f" be '{field}' in C++"
                )
            fields[field] = child.name
            members.append(f"{child_type} {field}{{}};  ///< {_quantity(child)}")
        if node.attributes:
            pairs = [
                f"{{{_view(key)}, {_view(attribute_text(key, node.attributes[key]))}}}"
                for key in sorted(node.attributes)
            ]
            members += [
                "/// Attributes by key, with values in JSON.",
                "static constexpr std::array<std::pair<std::string_view, std::string_view>,"
                f" {len(pairs)}>",
                f"    attributes{{{{{', '.join(pairs)}}}}};",
            ]
        checks = [
            line
            for field, child in zip(fields, node.children, strict=True)
            for line in _checks(child, field, "block_name")
        ]
        if checks:
            self.has_checks = True
            members += [
                "",
                _CHECK_COMMENT,
                "void check(std::string_view block_name) const {",
                *(f"    {line}" for line in checks),
                "}",
            ]
        self.structs[name] = [
            f"/// {node.kind} {cpp_literal(node.name)}.",
            f"struct {name} {{",
            *(f"    {member}" if member else "" for member in members),
            "};",
        ]
        return f"structures::{name}"

    def _geometry(self, node: StructureSpec) -> str:
        """Return the type of the geometry of a node, and define it at its first use."""
        if node.content_type is not None:
            alias = self._content_type(node.content_type)
            if alias is not None:
                return f"types::{alias}"
        kind = node.content or ""
        if kind not in _SHAPES:
            raise node.place.error(
                f"the geometry of '{node.name}' needs a declared type to be in C++"
            )
        self.shapes[kind] = _SHAPES[kind]
        return f"shapes::{kind.title().replace('_', '')}"

    def _content_type(self, spec: ContentTypeSpec) -> str | None:
        """Return the alias that nodes use for a data type, or None if it names no type of C++.

        A type of a Python package has no effect. The aliases are defined at the first use.
        """
        name, entry = class_name(spec.name), self._types.get(spec.name)
        texts = spec.type, spec.shared_ptr
        if entry is not None and (entry.type or entry.shared_ptr):
            texts = entry.type, entry.shared_ptr
        expressions = {
            alias: text
            for alias, text in zip((name, f"{name}Ptr"), texts, strict=True)
            if text is not None and not is_python_type(text)
        }
        if spec.name not in self._content_types:
            self._content_types[spec.name] = spec
            self._define_aliases(spec, expressions)
            includes = entry.includes if entry is not None else ()
            self.includes |= dict.fromkeys(f"#include {header}" for header in includes)
            foreign = [a for a, text in expressions.items() if not text.startswith("std::")]
            if foreign and not includes:
                library = f" of library {cpp_literal(spec.library)}" if spec.library else ""
                comment = f"// Include the header{library} for {' and '.join(foreign)} first."
                self.comments[comment] = None
        elif self._content_types[spec.name] != spec:
            other = self._content_types[spec.name]
            raise spec.place.error(f"'{spec.name}' is another type than at {other.place}")
        return [*expressions][-1] if expressions else None

    def _define_aliases(self, spec: ContentTypeSpec, expressions: Mapping[str, str]) -> None:
        """Define aliases of type expressions, after a check that they are types."""
        for alias, expression in expressions.items():
            if (fault := type_fault(expression)) is not None:
                raise spec.place.error(
                    f"{expression!r:.80} {fault}: map '{spec.name}' to a type of C++ in a file"
                    " for --types"
                )
            if alias in self.aliases:
                raise spec.place.error(
                    f"the type '{spec.name}' and another would both be '{alias}' in C++"
                )
            self.aliases[alias] = [f"using {alias} = {expression};"]


def _view(text: str) -> str:
    """Return the arguments of a ``std::string_view`` of a text."""
    size = len(text.encode("utf-8"))
    return f"{cpp_literal(text)}, {size}" if "\0" in text else cpp_literal(text)


def _type_of_all(node: StructureSpec, type_name: str) -> str:
    """Return the type of a node in its cardinality."""
    return type_name if node.cardinality == 1 else f"std::vector<{type_name}>"


def _quantity(node: StructureSpec) -> str:
    """Return the cardinality and the name of a node as text."""
    count = "any number" if node.cardinality is None else node.cardinality
    return f"{count} of {cpp_literal(node.name)}"


def _has_counts(node: StructureSpec) -> bool:
    """Return whether a node below a node has a cardinality to check."""
    return any(child.cardinality not in (None, 1) or _has_counts(child) for child in node.children)


def _checks(node: StructureSpec, variable: str, block: str) -> Iterator[str]:
    """Yield the statements that check the numbers of nodes of a variable.

    Args:
        node: structure of the variable.
        variable: name of the variable.
        block: variable with the name of the block.
    """
    if node.cardinality not in (None, 1):
        name = f"std::string_view{{{_view(node.name)}}}"
        arguments = f"{block}, {name}, {node.cardinality}, {variable}.size()"
        yield f"detail::check_count({arguments});"
    if _has_counts(node):
        loop = "" if node.cardinality == 1 else f"for (const auto& each : {variable}) "
        yield f"{loop}{variable if node.cardinality == 1 else 'each'}.check({block});"
