"""The files that an editor has open, with what they include: what is wrong in them, and what their names are.

The text in the editor counts, not the one on the disk. Of the disk only that is read which a scene
may read (:mod:`tmkit.formats.mesh.package_uris`); of a PDDL problem, the domain beside it or in the
folder above.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from tmkit._support.source_location import SourceLocation
from tmkit.errors import FileFormatError, TmkitError
from tmkit.formats import ReadingOptions
from tmkit.formats.mesh.package_uris import PackageResolver, project_folders, real_path
from tmkit.formats.reading import read_draft
from tmkit.formats.robray.format import ROBRAY
from tmkit.formats.robray.grammar import SourceText
from tmkit.formats.rsg.format import RSG
from tmkit.formats.rsg.grammar import Parser, RsgText
from tmkit.formats.spec.model import FrameSpec
from tmkit.formats.spec.parts import MeshSpec
from tmkit.lsp.text_index import LANGUAGES, Symbol, TextIndex, Token
from tmkit.pddl import parse_domain, parse_problem

_MOST_FILES = 1000
_MOST_SHOWN = 12  # lines of a declaration


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong or odd in a text, with the file; line and column are from 1, if they are known."""

    text: str
    path: Path
    line: int | None = None
    column: int | None = None
    is_error: bool = True


@dataclass(frozen=True, slots=True)
class Named:
    """What a name is, and where it is declared; ``about`` returns what is shown of it."""

    name: str
    kind: str
    path: Path
    line: int  # from 0, as the column
    column: int
    about: Callable[[], str]


def syntax_findings(index: TextIndex) -> list[Finding] | None:
    """Return the errors of syntax of a text in RSG-DSL, quickly; ``None`` for other languages."""
    if index.path.suffix.lower() not in RSG.suffixes:
        return None
    errors: list[FileFormatError] = []
    Parser(
        RsgText(SourceText(index.path, tuple(index.lines)), index.text), on_error=errors.append
    ).read()
    return [_finding(error, index.path) for error in errors]


def all_findings(
    index: TextIndex, unsaved: Mapping[Path, str], domain: TextIndex | None
) -> tuple[list[Finding], tuple[FrameSpec, ...] | None]:
    """Return all that is wrong or odd in a text, and the frames of the scene, ``None`` if it has errors.

    ``unsaved`` has the texts of all open files by real path, ``domain`` is that of a PDDL problem.
    """
    found: list[Finding] = []

    def note(place: SourceLocation, text: str) -> None:
        found.append(Finding(text, Path(place.path), place.line, place.column, is_error=False))

    try:
        if index.path.suffix.lower() != ".pddl":
            return found, read_draft(index.path, unsaved, note=note).frames
        if index.scan.defines == "domain":
            parse_domain(index.text, source=str(index.path))
        elif domain is not None:
            parse_problem(
                index.text,
                parse_domain(domain.text, source=str(domain.path)),
                source=str(index.path),
            )
        else:
            note(
                SourceLocation(str(index.path)),
                f"no domain '{index.scan.domain}' in this folder or the one above",
            )
    except TmkitError as error:
        found += [_finding(one, index.path) for one in error.data.get("errors", (error,))]
    return found, None


def _finding(error: TmkitError, path: Path) -> Finding:
    data = error.data
    return Finding(
        data.get("reason", str(error)),
        Path(data.get("path") or path),
        data.get("line"),
        data.get("column"),
    )


@dataclass(slots=True)
class Project:
    """The open files, and what was read of others."""

    # the texts in the editor by real path
    open: dict[Path, TextIndex] = field(default_factory=dict)
    # by real path of an open file, the frames of its scene when it had no errors the last time
    frames: dict[Path, tuple[FrameSpec, ...]] = field(default_factory=dict)
    _closed: dict[Path, tuple[tuple[int, int], TextIndex]] = field(default_factory=dict)

    def update(self, real: Path, index: TextIndex) -> None:
        """Take the text of a file from the editor."""
        self.open[real] = index

    def close(self, real: Path) -> None:
        """Forget the text and the frames of a file that was open."""
        self.open.pop(real)
        self.frames.pop(real, None)

    def keep_frames(self, real: Path, frames: tuple[FrameSpec, ...]) -> None:
        """Keep the frames of the scene of an open file that has no errors."""
        self.frames[real] = frames

    def index_of(self, path: Path) -> TextIndex | None:
        """Return the text of a file: that in the editor, else that on the disk; ``None`` if it cannot be read."""
        real = real_path(path)
        if real in self.open:
            return self.open[real]
        try:
            status = real.stat()
            mark = status.st_mtime_ns, status.st_size
            if real not in self._closed or self._closed[real][0] != mark:
                self._closed[real] = mark, TextIndex(path, SourceText.read(path)[1])
        except (OSError, TmkitError):
            return None
        return self._closed[real][1]

    def around(self, index: TextIndex) -> list[TextIndex]:
        """Return a text and all that it includes; of a PDDL problem, the problem and its domain."""
        if index.path.suffix.lower() == ".pddl":
            domain = self.domain_of(index)
            return [index] if domain is None else [index, domain]
        resolver = PackageResolver.of(ReadingOptions())
        resolver = PackageResolver(
            allowed_folders=project_folders([index.path]), ros_folders=resolver.ros_folders
        )
        found: dict[Path, TextIndex] = {real_path(index.path): index}
        waiting = [index]
        while waiting and len(found) < _MOST_FILES:
            one = waiting.pop(0)
            for file in one.scan.files:
                try:
                    path = resolver.resolve(
                        file, folder=one.path.parent, place=SourceLocation(str(one.path))
                    )
                except TmkitError:
                    continue
                other = (
                    self.index_of(path)
                    if path.suffix.lower() in (*ROBRAY.suffixes, *RSG.suffixes)
                    else None
                )
                if other is not None and real_path(path) not in found:
                    found[real_path(path)] = other
                    waiting.append(other)
        return list(found.values())

    def domain_of(self, index: TextIndex) -> TextIndex | None:
        """Return the domain of a PDDL problem: beside it, or in the folder above."""
        if index.scan.defines == "domain":
            return None
        folder = index.path.parent
        opened = [
            path
            for path in self.open
            if path.parent in (real_path(folder), real_path(folder.parent))
        ]
        beside = sorted(itertools.islice(folder.glob("*.pddl"), 100)) if folder.is_dir() else []
        for path in dict.fromkeys(
            [folder / "domain.pddl", folder.parent / "domain.pddl", *opened, *beside]
        ):
            other = self.index_of(path) if path.suffix.lower() == ".pddl" else None
            if other is not None and (other.scan.defines, other.scan.domain) == (
                "domain",
                index.scan.domain,
            ):
                return other
        return None

    def names(self, index: TextIndex) -> Iterator[Named]:
        """Yield all names that a text and what it includes declare; those of other formats, once the scene was read."""
        frames = {frame.name: frame for frame in self.frames.get(real_path(index.path), ())}
        for one in self.around(index):
            for symbol in one.scan.symbols:
                line, column = one.place(symbol.at)
                frame = frames.get(symbol.name) if symbol.kind in ("frame", "node") else None
                about = partial(_about, one, symbol, frame)
                yield Named(symbol.name, symbol.kind, one.path, line, column, about)
        for frame in frames.values():
            place = frame.place
            path = Path(place.path)
            if path.suffix.lower() not in LANGUAGES:
                kind = "node" if index.path.suffix.lower() in RSG.suffixes else "frame"
                line, column = (place.line or 1) - 1, (place.column or 1) - 1
                yield Named(frame.name, kind, path, line, column, partial(_sentence, kind, frame))

    def named(self, index: TextIndex, token: Token) -> list[Named]:
        """Return what a word of a text is: of the fitting kind if there is one of its name."""
        name = token.text.strip('"').lstrip("^")
        name = name.lower() if index.path.suffix.lower() == ".pddl" else name
        found = [one for one in self.names(index) if one.name == name]
        return [one for one in found if one.kind in token.kinds] or found

    def completions(self, index: TextIndex, at: int) -> dict[str, tuple[str, str]]:
        """Return what may stand at an offset, with the kind and the explanation of each."""
        language, token = index.language, index.before(at)
        if token is None:
            words: tuple[str, ...] = language.blocks[""]
            kinds: tuple[str, ...] = ()
        elif index.path.suffix.lower() == ".pddl":
            words, kinds = _next_in_list(index, token)
        elif not token.keyword:
            words, kinds = language.blocks.get(token.block.keyword, ()), ()
        elif token.keyword in language.declares and not token.values:
            words, kinds = (), ()  # a new name
        else:
            words = language.words.get(token.keyword, ())
            kinds = language.names.get(token.keyword, language.names[""])
            if token.values and index.path.suffix.lower() in RSG.suffixes:
                words += language.blocks.get(token.block.keyword, ())
                kinds = kinds if token.keyword == "AllowCollision" else ()
            elif "\n" in index.text[token.at + len(token.text) : at]:
                # a line before is not complete
                words += language.blocks.get(token.block.keyword, ())
        found = {word: ("keyword", meaning_of(index, word)) for word in words}
        if "object" in kinds and index.path.suffix.lower() == ".pddl":
            begin = max(
                index.text.rfind("(:action", 0, at), index.text.rfind("(:derived", 0, at), 0
            )
            variables = {
                one.text for one in index.scan.tokens if begin < one.at < at and one.text[0] == "?"
            }
            found |= dict.fromkeys(sorted(variables - {"?"}), ("variable", ""))
        named = self.names(index) if kinds else iter(())
        return found | {one.name: (one.kind, "") for one in named if one.kind in kinds}


def _next_in_list(index: TextIndex, token: Token) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words and the kinds of names that may follow a token of PDDL."""
    language, block = index.language, token.block
    if token.text == "(":
        words = language.blocks.get(token.keyword, ()) if token.keyword else ("define",)
        return words, language.names["("] if words and token.keyword not in ("", "define") else ()
    if token.text == "-":
        return ("either",), ("type",)
    if block.keyword == ":action":
        return language.blocks[":action"], ()
    if block.keyword in (":requirements", ":metric"):
        return language.words.get(block.keyword, ()) or language.blocks.get(block.keyword, ()), ()
    return (), () if block.keyword in ("define", ":types", "") else ("object",)


@cache
def _meanings() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_name("keywords.toml").read_text(encoding="utf-8"))


def meaning_of(index: TextIndex, word: str) -> str:
    """Return the sentence about a keyword, empty if it is none."""
    return _meanings()[index.path.suffix.lower().lstrip(".")].get(word, "")


def _about(index: TextIndex, symbol: Symbol, frame: FrameSpec | None) -> str:
    """Return what is shown of a name: a sentence, and the text of its declaration."""
    below = f", below `{symbol.parent}`" if symbol.parent else ""
    first = (
        _sentence(symbol.kind, frame)
        if frame is not None
        else f"{symbol.kind} `{symbol.name}`{below}"
    )
    lines = index.text[symbol.begin : symbol.end].split("\n")
    shown = [*lines[:_MOST_SHOWN], *(["..."] if len(lines) > _MOST_SHOWN else [])]
    language = index.path.suffix.lower().lstrip(".")
    return "\n".join([first, "", f"```{language}", *shown, "```"])


def _sentence(kind: str, frame: FrameSpec) -> str:
    parts = [
        f"{kind} `{frame.name}`" + (f", child of `{frame.parent}`" if frame.parent else ", a root")
    ]
    joint = frame.joint
    if joint.type != "fixed":
        parts.append(
            f"{joint.type} joint `{joint.name or frame.name}` from {joint.lower:g} to"
            f" {joint.upper:g}"
        )
    for part in frame.geometry:
        shape = part.shape
        sizes = (
            ""
            if isinstance(shape, MeshSpec)
            else " x ".join(f"{size:g}" for size in shape.dimensions)
        )
        parts.append(
            f"mesh {shape.path.name}" if isinstance(shape, MeshSpec) else f"{shape.kind} {sizes}"
        )
    if frame.classes:
        parts.append(f"is {', '.join(frame.classes)}")
    return "; ".join(parts)
