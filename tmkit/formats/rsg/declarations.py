"""Declarations of an RSG-DSL file and its imports: names, instances and the node hierarchy.

Names are resolved after all files are read, so references may come in any order. An instance is
replaced by copies of its node and of the nodes below.

Invariants: reading ends within its limits. Every error has its location in a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tmkit._support.source_location import Note, SourceLocation, did_you_mean
from tmkit.errors import FileFormatError
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.mesh.package_uris import real_path
from tmkit.formats.robray.grammar import SourceText
from tmkit.formats.rsg.grammar import NODES, Declaration, Member, Name, Parser, RsgText

_MAX_ERRORS = 20
"""Largest number of errors in one message."""

_REJECTED_MEMBERS = {
    "GeometricNode": ("child", "member", "transforms"),
    "Node": ("child", "member", "transforms", "geometry"),
}
"""Members that a leaf node cannot have, by kind of node."""


def raise_errors(errors: Sequence[FileFormatError]) -> None:
    """Raise the only error, or one error that lists up to 20 of several."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        more = (
            [f"... and {len(errors) - _MAX_ERRORS} more errors"]
            if len(errors) > _MAX_ERRORS
            else []
        )
        text = "\n".join([*map(str, errors[:_MAX_ERRORS]), *more])
        raise FileFormatError(text, **{**errors[0].data, "errors": tuple(errors)})


@dataclass(slots=True)
class Declarations:
    """Declarations of a file and its imports."""

    loader: MeshLoader
    note: Note
    errors: list[FileFormatError] = field(default_factory=list)
    nodes: dict[str, Declaration] = field(default_factory=dict)
    contents: dict[str, Declaration] = field(default_factory=dict)
    types: dict[str, Declaration] = field(default_factory=dict)
    blocks: dict[str, Declaration] = field(default_factory=dict)
    statements: list[tuple[Member, RsgText]] = field(default_factory=list)
    seen: dict[Path, None] = field(default_factory=dict)
    bytes: int = 0
    # Parents of each node with the location of the reference, in the order of the files.
    holders: dict[str, list[tuple[str, SourceLocation]]] = field(default_factory=dict)
    roots: dict[str, SourceLocation] = field(default_factory=dict)
    frames_above: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, path: Path, includers: tuple[Path, ...]) -> None:
        """Read a file unless it was read before.

        Args:
            path: path of the file.
            includers: files of the import chain to this one, outermost first.
        """
        if real_path(path) in self.seen:
            return
        self.seen[real_path(path)] = None
        packages = self.loader.packages
        source, text = SourceText.read(
            path,
            limit=packages.limits.text_bytes,
            n_bytes_before=self.bytes,
            unsaved=packages.unsaved,
        )
        self.bytes += len(text)
        rsg_text = RsgText(source, text)
        declarations, statements = Parser(rsg_text, on_error=self.errors.append).read()
        for declaration in declarations:
            with self.collect_error():
                self._declare(declaration)
        self.statements += [(statement, rsg_text) for statement in statements]
        for statement in statements:
            file, prefix, under = (
                statement.values if statement.keyword == "import" else (None, None, None)
            )
            if file is not None and file.text.endswith(".rsg") and prefix is None and under is None:
                with self.collect_error():
                    self.loader.packages.count_include(rsg_text.place(file.offset), is_slow=True)
                    self.read(self.resolve_file(file, rsg_text), (*includers, path))

    def resolve_file(self, file: Name, text: RsgText) -> Path:
        """Return the path of a file that another file names."""
        return self.loader.packages.resolve(
            file.text, folder=Path(text.source.path).parent, place=text.place(file.offset)
        )

    @contextmanager
    def collect_error(self) -> Iterator[None]:
        """Store the error of a declaration, so that reading continues with the next."""
        try:
            yield
        except FileFormatError as error:
            self.errors.append(error)

    def _declare(self, declaration: Declaration) -> None:
        table = self._table(declaration.kind)
        if declaration.name.text in table:
            earlier = table[declaration.name.text]
            raise name_place(declaration).error(
                f"'{declaration.name.text}' is already declared at {name_place(earlier)}"
            )
        table[declaration.name.text] = declaration

    def _table(self, kind: str) -> dict[str, Declaration]:
        if kind in NODES or kind == "Instance":
            return self.nodes
        if kind == "FunctionBlock":
            return self.blocks
        return self.types if kind.endswith("Type") else self.contents

    def lookup(
        self, table: Mapping[str, Declaration], name: Name, text: RsgText, noun: str
    ) -> Declaration:
        """Return a declaration by name.

        Raises:
            FileFormatError: if the name is not declared, at the location of the reference.
        """
        if name.text not in table:
            hint = did_you_mean(name.text, table)
            raise text.place(name.offset).error(f"{noun} '{name.text}' is declared nowhere{hint}")
        return table[name.text]

    def expand(self, name: str, expanding: tuple[str, ...]) -> None:
        """Replace an instance by copies of its node and of the nodes below."""
        declaration = self.nodes[name]
        if declaration.kind != "Instance":
            return
        place = name_place(declaration)
        if name in expanding:
            raise place.error(
                f"'{name}' is an instance of itself: {' -> '.join([*expanding, name])}"
            )
        if not declaration.members:
            raise place.error(f"an instance is of a node, as in 'Instance {name} of table'")
        (target,) = declaration.members[0].values
        self.lookup(self.nodes, target, declaration.text, "the node")
        copies: dict[str, str] = {}
        stack = [target.text]
        while stack:
            node = stack.pop()
            if node in copies:
                continue
            if node == name:
                raise place.error(
                    f"'{name}' is below the node '{target.text}' of which it is an instance"
                )
            self.expand(node, (*expanding, name))
            copies[node] = name if node == target.text else f"{name}/{node}"
            children = [
                child.text for member in self.nodes[node].get("child") for child in member.values
            ]
            stack += [child for child in reversed(children) if child in self.nodes]
            self.loader.packages.limits.check_frame_count(
                len(self.nodes) + len(copies), place.error
            )
        for old, new in copies.items():
            if new in self.nodes and new != name:
                raise place.error(f"the instance needs the name '{new}', which is taken")
            source = self.nodes[old]
            members = [
                _rename_members(member, copies)
                for member in source.members
                if member.keyword != "called"
            ]
            self.nodes[new] = Declaration(
                source.kind, Name(new, source.name.offset), source.text, members
            )

    def link(self) -> None:
        """Collect the parents of each node, the roots, and the frames above each node."""
        for name, declaration in self.nodes.items():
            for member in declaration.members:
                with self.collect_error():
                    self._check_member(declaration, member)
                    if member.keyword == "child":
                        (child,) = member.values
                        self.lookup(self.nodes, child, declaration.text, "the child")
                        place = declaration.text.place(child.offset)
                        self.holders.setdefault(child.text, []).append((name, place))
        for statement, text in self.statements:
            if statement.keyword == "root":
                (root,) = statement.values
                with self.collect_error():
                    self.lookup(self.nodes, root, text, "the root")
                    if root.text in self.holders:
                        holder, place = self.holders[root.text][0]
                        raise place.error(
                            f"the root '{root.text}' cannot be a child, here of '{holder}'"
                        )
                    self.roots[root.text] = text.place(root.offset)
        raise_errors(self.errors)
        self._check_cycles()
        for name in self.nodes:
            self._frames_above(name)

    def _check_member(self, declaration: Declaration, member: Member) -> None:
        """Raise an error if a node of this kind cannot have the member."""
        place = declaration.text.place(member.offset)
        if member.keyword in _REJECTED_MEMBERS.get(declaration.kind, ()):
            raise place.error(f"a {declaration.kind} has no '{member.keyword}'; a Transform has")
        if declaration.kind == "Group" and member.keyword == "transforms":
            raise place.error("a Group has no 'transforms'; a Transform has")

    def _check_cycles(self) -> None:
        is_done: dict[str, bool] = {}  # False on the current path
        for start in self.nodes:
            path = [(start, iter(self.holders.get(start, ())))] if start not in is_done else []
            is_done.setdefault(start, False)
            while path:
                name, holders = path[-1]
                holder, place = next(holders, (None, None))
                if holder is None or place is None:
                    is_done[name] = True
                    path.pop()
                elif is_done.get(holder) is False:
                    above = [node for node, _ in path]
                    loop = [holder, *reversed(above[above.index(holder) :])]
                    raise place.error(f"nodes are below themselves: {' -> '.join(loop)}")
                elif holder not in is_done:
                    is_done[holder] = False
                    path.append((holder, iter(self.holders.get(holder, ()))))

    def is_frame(self, name: str) -> bool:
        """Return whether a node is a frame rather than a group."""
        return self.nodes[name].kind != "Group" or name in self.roots

    def _frames_above(self, name: str) -> tuple[str, ...]:
        """Return the distinct frames above a node, also through groups, in order."""
        stack = [name]
        while stack:
            node = stack[-1]
            groups = [
                holder for holder, _ in self.holders.get(node, ()) if not self.is_frame(holder)
            ]
            if missing := [group for group in groups if group not in self.frames_above]:
                stack += missing
                continue
            frames: dict[str, None] = {}
            for holder, _ in self.holders.get(node, ()):
                frames.update(
                    dict.fromkeys([holder] if self.is_frame(holder) else self.frames_above[holder])
                )
            self.frames_above[node] = tuple(frames)
            stack.pop()
        return self.frames_above[name]

    def scene_nodes(self) -> list[str]:
        """Return the nodes of the scene in the order of their declarations.

        Without a root, these are all nodes except the structures of function blocks.
        """
        structures = [
            structure.text
            for block in self.blocks.values()
            for member in (*block.get("inputStructure"), *block.get("outputStructure"))
            for structure in member.values
        ]
        templates = self._below([name for name in structures if name in self.nodes])
        tops = [name for name in self.nodes if name not in self.holders and name not in templates]
        starts = [*self.roots] or tops
        starts += [name for name, declaration in self.nodes.items() if declaration.get("unplaced")]
        scene_nodes = self._below(starts)
        if self.roots:
            for name in tops:
                if name not in scene_nodes:
                    self.note(
                        name_place(self.nodes[name]),
                        f"'{name}' is below no root, and is not part of the scene",
                    )
        elif any(map(self.is_frame, tops)):
            self.note(
                name_place(self.nodes[tops[0]]),
                "there is no 'root': what nothing holds is below 'world'",
            )
        for name in self.nodes:
            for member in self.nodes[name].get("cardinality") if name in scene_nodes else ():
                place = self.nodes[name].text.place(member.offset)
                self.note(
                    place,
                    f"'cardinality' is of structures of function blocks; there is one '{name}'",
                )
        return [name for name in self.nodes if name in scene_nodes]

    def _below(self, names: Iterable[str]) -> set[str]:
        nodes_below: set[str] = set()
        stack = [*names]
        while stack:
            name = stack.pop()
            if name not in nodes_below:
                nodes_below.add(name)
                children = (
                    child.text
                    for member in self.nodes[name].get("child")
                    for child in member.values
                )
                stack += [child for child in children if child in self.nodes]
        return nodes_below

    def scene_name(self, node: str) -> str:
        """Return the name of a node in the scene."""
        declaration = self.nodes.get(node)
        names = declaration.get("called") if declaration is not None else ()
        return str(names[-1].values[0]) if names else node


def name_place(declaration: Declaration) -> SourceLocation:
    """Return the location of the name of a declaration."""
    return declaration.text.place(declaration.name.offset)


def _rename_members(member: Member, names: Mapping[str, str]) -> Member:
    if member.keyword not in ("child", "member"):
        return member
    (name,) = member.values
    return member._replace(values=(Name(names.get(name.text, name.text), name.offset),))
