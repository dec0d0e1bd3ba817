"""The declarations of a file in RSG-DSL and of all that it imports: names, instances, what is below what.

Names are looked up when all files are read, so references may come in any order. An instance is
replaced by copies of the nodes that it is of.

Invariants: reading ends within its limits; every error is at its place in a file.
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

_MOST_ERRORS = 20  # that are told at once
_OF_LEAVES = {
    "GeometricNode": ("child", "member", "transforms"),
    "Node": ("child", "member", "transforms", "geometry"),
}


def refuse_all(errors: Sequence[FileFormatError]) -> None:
    """Raise the only error, or one that lists up to 20 of them."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        more = (
            [f"... and {len(errors) - _MOST_ERRORS} more errors"]
            if len(errors) > _MOST_ERRORS
            else []
        )
        text = "\n".join([*map(str, errors[:_MOST_ERRORS]), *more])
        raise FileFormatError(text, **{**errors[0].data, "errors": tuple(errors)})


@dataclass(slots=True)
class Declarations:
    """The declarations of a file with those that it imports."""

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
    # of nodes: what holds them as a child, in the order of the files
    holders: dict[str, list[tuple[str, SourceLocation]]] = field(default_factory=dict)
    roots: dict[str, SourceLocation] = field(default_factory=dict)
    above: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, path: Path, including: tuple[Path, ...]) -> None:
        """Read a file that is reached through the files ``including``; one that was read before is read no more."""
        if real_path(path) in self.seen:
            return
        self.seen[real_path(path)] = None
        packages = self.loader.packages
        source, text = SourceText.read(
            path, limit=packages.limits.text_bytes, n_bytes_before=self.bytes, unsaved=packages.unsaved
        )
        self.bytes += len(text)
        known = RsgText(source, text)
        declarations, statements = Parser(known, on_error=self.errors.append).read()
        for made in declarations:
            with self.collected():
                self._declare(made)
        self.statements += [(statement, known) for statement in statements]
        for statement in statements:
            file, prefix, under = (
                statement.values if statement.keyword == "import" else (None, None, None)
            )
            if file is not None and file.text.endswith(".rsg") and prefix is None and under is None:
                with self.collected():
                    self.loader.packages.count_include(known.place(file.at), is_slow=True)
                    self.read(self.found(file, known), (*including, path))

    def found(self, file: Name, text: RsgText) -> Path:
        """Return the path of a file that is named in another."""
        return self.loader.packages.resolve(
            file.text, folder=Path(text.source.path).parent, place=text.place(file.at)
        )

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep an error of a declaration, and go on with the next."""
        try:
            yield
        except FileFormatError as error:
            self.errors.append(error)

    def _declare(self, made: Declaration) -> None:
        table = self._table(made.kind)
        if made.name.text in table:
            earlier = table[made.name.text]
            raise place_of(made).error(
                f"'{made.name.text}' is already declared at {place_of(earlier)}"
            )
        table[made.name.text] = made

    def _table(self, kind: str) -> dict[str, Declaration]:
        if kind in NODES or kind == "Instance":
            return self.nodes
        if kind == "FunctionBlock":
            return self.blocks
        return self.types if kind.endswith("Type") else self.contents

    def known(
        self, table: Mapping[str, Declaration], name: Name, text: RsgText, what: str
    ) -> Declaration:
        """Return a declaration by its name, or raise an error at the reference."""
        if name.text not in table:
            hint = did_you_mean(name.text, table)
            raise text.place(name.at).error(f"{what} '{name.text}' is declared nowhere{hint}")
        return table[name.text]

    def expand(self, name: str, expanding: tuple[str, ...]) -> None:
        """Replace an instance by copies of the nodes that it is of."""
        made = self.nodes[name]
        if made.kind != "Instance":
            return
        place = place_of(made)
        if name in expanding:
            raise place.error(
                f"'{name}' is an instance of itself: {' -> '.join([*expanding, name])}"
            )
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
                raise place.error(
                    f"'{name}' is below the node '{target.text}' of which it is an instance"
                )
            self.expand(one, (*expanding, name))
            copied[one] = name if one == target.text else f"{name}/{one}"
            children = [
                child.text for member in self.nodes[one].get("child") for child in member.values
            ]
            waiting += [child for child in reversed(children) if child in self.nodes]
            self.loader.packages.limits.refuse_frames(len(self.nodes) + len(copied), place.error)
        for old, new in copied.items():
            if new in self.nodes and new != name:
                raise place.error(f"the instance needs the name '{new}', which is taken")
            source = self.nodes[old]
            members = [
                _renamed(member, copied) for member in source.members if member.keyword != "called"
            ]
            self.nodes[new] = Declaration(
                source.kind, Name(new, source.name.at), source.text, members
            )

    def link(self) -> None:
        """Find what holds each node, the roots, and the frames above each."""
        for name, made in self.nodes.items():
            for member in made.members:
                with self.collected():
                    self._check_member(made, member)
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
                        raise place.error(
                            f"the root '{root.text}' cannot be a child, here of '{holder}'"
                        )
                    self.roots[root.text] = text.place(root.at)
        refuse_all(self.errors)
        self._check_cycles()
        for name in self.nodes:
            self._frames_above(name)

    def _check_member(self, made: Declaration, member: Member) -> None:
        """Refuse what a node of its kind cannot have."""
        place = made.text.place(member.at)
        if member.keyword in _OF_LEAVES.get(made.kind, ()):
            raise place.error(f"a {made.kind} has no '{member.keyword}'; a Transform has")
        if made.kind == "Group" and member.keyword == "transforms":
            raise place.error("a Group has no 'transforms'; a Transform has")

    def _check_cycles(self) -> None:
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
        """Whether a node is a frame, not a group."""
        return self.nodes[name].kind != "Group" or name in self.roots

    def _frames_above(self, name: str) -> tuple[str, ...]:
        """Return the frames that a node is below, through groups, each once, the first first."""
        waiting = [name]
        while waiting:
            one = waiting[-1]
            groups = [
                holder for holder, _ in self.holders.get(one, ()) if not self.is_frame(holder)
            ]
            if missing := [group for group in groups if group not in self.above]:
                waiting += missing
                continue
            found: dict[str, None] = {}
            for holder, _ in self.holders.get(one, ()):
                found.update(
                    dict.fromkeys([holder] if self.is_frame(holder) else self.above[holder])
                )
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
        templates = self._below([name for name in structures if name in self.nodes])
        tops = [name for name in self.nodes if name not in self.holders and name not in templates]
        begin = [*self.roots] or tops
        begin += [name for name, made in self.nodes.items() if made.get("unplaced")]
        found = self._below(begin)
        if self.roots:
            for name in tops:
                if name not in found:
                    self.note(
                        place_of(self.nodes[name]),
                        f"'{name}' is below no root, and is not part of the scene",
                    )
        elif any(map(self.is_frame, tops)):
            self.note(
                place_of(self.nodes[tops[0]]),
                "there is no 'root': what nothing holds is below 'world'",
            )
        for name in self.nodes:
            for member in self.nodes[name].get("cardinality") if name in found else ():
                place = self.nodes[name].text.place(member.at)
                self.note(
                    place,
                    f"'cardinality' is of structures of function blocks; there is one '{name}'",
                )
        return [name for name in self.nodes if name in found]

    def _below(self, names: Iterable[str]) -> set[str]:
        found: set[str] = set()
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                children = (
                    child.text
                    for member in self.nodes[name].get("child")
                    for child in member.values
                )
                waiting += [child for child in children if child in self.nodes]
        return found

    def scene_name(self, node: str) -> str:
        """Return the name that a node has in the scene."""
        made = self.nodes.get(node)
        called = made.get("called") if made is not None else ()
        return str(called[-1].values[0]) if called else node


def place_of(made: Declaration) -> SourceLocation:
    """Return where a declaration has its name."""
    return made.text.place(made.name.at)


def _renamed(member: Member, names: Mapping[str, str]) -> Member:
    if member.keyword not in ("child", "member"):
        return member
    (name,) = member.values
    return member._replace(values=(Name(names.get(name.text, name.text), name.at),))
