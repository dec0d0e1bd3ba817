"""Open files of an editor with the files that they include: their findings and their names.

The text in the editor overrides the text on the disk. From the disk, the project reads only files
that a scene may read (:mod:`tmkit.formats.mesh.package_uris`), and for a PDDL problem the domain in
its folder or in the parent folder.
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
from tmkit.formats.reading import read_unsaved_file
from tmkit.formats.robray.format import ROBRAY
from tmkit.formats.robray.grammar import SourceText
from tmkit.formats.rsg.format import RSG
from tmkit.formats.rsg.grammar import Parser, RsgText
from tmkit.formats.spec.model import FrameSpec
from tmkit.formats.spec.parts import MeshSpec
from tmkit.lsp.text_index import LANGUAGES, Symbol, TextIndex, Token
from tmkit.pddl import parse_domain, parse_problem

_MAX_FILES = 1000
"""Limit of the included files."""

_MAX_SIBLINGS = 100
"""Limit of the files in the folder of a problem that are searched for its domain."""

_MAX_DECLARATION_LINES = 12
"""Limit of the lines that a hover shows of a declaration."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Error or warning in a file; line and column count from 1, and are None if unknown."""

    text: str
    path: Path
    line: int | None = None
    column: int | None = None
    is_error: bool = True


@dataclass(frozen=True, slots=True)
class Definition:
    """Kind and place of a declared name; ``describe`` returns its description in Markdown."""

    name: str
    kind: str
    path: Path
    line: int  # from 0, like the column
    column: int
    describe: Callable[[], str]


def syntax_findings(index: TextIndex) -> list[Finding] | None:
    """Return the syntax errors of a text in RSG-DSL, or None for other languages.

    Much faster than :func:`all_findings`, which reads the whole scene.
    """
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
    """Return the errors and warnings of a text, and the frames of its scene.

    Args:
        index: the text.
        unsaved: the texts of all open files by real path.
        domain: domain of a PDDL problem, or None.

    Returns:
        the findings; the frames, or None if the text has errors or is PDDL.
    """
    findings: list[Finding] = []

    def note(place: SourceLocation, text: str) -> None:
        findings.append(Finding(text, Path(place.path), place.line, place.column, is_error=False))

    try:
        if index.path.suffix.lower() != ".pddl":
            return findings, read_unsaved_file(index.path, unsaved, note=note).frames
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
        errors = error.data.get("errors", (error,))
        findings += [_finding(error, index.path) for error in errors]
    return findings, None


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
    """Texts of the open files, and a cache of other texts.

    Attributes:
        open: texts in the editor, by real path.
        frames: frames of the last scene without errors, by real path of an open file.
    """

    open: dict[Path, TextIndex] = field(default_factory=dict)
    frames: dict[Path, tuple[FrameSpec, ...]] = field(default_factory=dict)
    _closed: dict[Path, tuple[tuple[int, int], TextIndex]] = field(default_factory=dict)

    def update(self, real: Path, index: TextIndex) -> None:
        """Set the text of an open file."""
        self.open[real] = index

    def close(self, real: Path) -> None:
        """Remove the text and the frames of an open file."""
        self.open.pop(real)
        self.frames.pop(real, None)

    def set_frames(self, real: Path, frames: tuple[FrameSpec, ...]) -> None:
        """Set the frames of the scene of an open file without errors."""
        self.frames[real] = frames

    def index_of(self, path: Path) -> TextIndex | None:
        """Return the text in the editor, else on the disk, or None if the file is unreadable."""
        real = real_path(path)
        if real in self.open:
            return self.open[real]
        try:
            status = real.stat()
            version = status.st_mtime_ns, status.st_size
            if real not in self._closed or self._closed[real][0] != version:
                self._closed[real] = version, TextIndex(path, SourceText.read(path)[1])
        except (OSError, TmkitError):
            return None
        return self._closed[real][1]

    def included_texts(self, index: TextIndex) -> list[TextIndex]:
        """Return a text and all included texts, or a PDDL problem and its domain."""
        if index.path.suffix.lower() == ".pddl":
            domain = self.domain_of(index)
            return [index] if domain is None else [index, domain]
        resolver = PackageResolver.of(ReadingOptions())
        resolver = PackageResolver(
            allowed_folders=project_folders([index.path]), ros_folders=resolver.ros_folders
        )
        texts: dict[Path, TextIndex] = {real_path(index.path): index}
        queue = [index]
        while queue and len(texts) < _MAX_FILES:
            text = queue.pop(0)
            for file in text.scan.files:
                try:
                    path = resolver.resolve(
                        file, folder=text.path.parent, place=SourceLocation(str(text.path))
                    )
                except TmkitError:
                    continue
                if path.suffix.lower() not in (*ROBRAY.suffixes, *RSG.suffixes):
                    continue
                included = self.index_of(path)
                if included is not None and real_path(path) not in texts:
                    texts[real_path(path)] = included
                    queue.append(included)
        return list(texts.values())

    def domain_of(self, index: TextIndex) -> TextIndex | None:
        """Return the domain of a PDDL problem, in its folder or in the parent folder, or None."""
        if index.scan.defines == "domain":
            return None
        folder = index.path.parent
        folders = real_path(folder), real_path(folder.parent)
        usual_paths = [folder / "domain.pddl", folder.parent / "domain.pddl"]
        open_paths = [path for path in self.open if path.parent in folders]
        siblings = []
        if folder.is_dir():
            siblings = sorted(itertools.islice(folder.glob("*.pddl"), _MAX_SIBLINGS))
        for path in dict.fromkeys([*usual_paths, *open_paths, *siblings]):
            if path.suffix.lower() != ".pddl":
                continue
            domain = self.index_of(path)
            if domain is None or domain.scan.defines != "domain":
                continue
            if domain.scan.domain == index.scan.domain:
                return domain
        return None

    def definitions(self, index: TextIndex) -> Iterator[Definition]:
        """Yield the definitions in a text and in all included texts.

        Names in included files of other formats follow once the scene has been read.
        """
        frames = {frame.name: frame for frame in self.frames.get(real_path(index.path), ())}
        for text in self.included_texts(index):
            for symbol in text.scan.symbols:
                line, column = text.place(symbol.offset)
                frame = frames.get(symbol.name) if symbol.kind in ("frame", "node") else None
                describe = partial(_description, text, symbol, frame)
                yield Definition(symbol.name, symbol.kind, text.path, line, column, describe)
        for frame in frames.values():
            place = frame.place
            path = Path(place.path)
            if path.suffix.lower() not in LANGUAGES:
                kind = "node" if index.path.suffix.lower() in RSG.suffixes else "frame"
                line, column = (place.line or 1) - 1, (place.column or 1) - 1
                describe = partial(_summary, kind, frame)
                yield Definition(frame.name, kind, path, line, column, describe)

    def definitions_of(self, index: TextIndex, token: Token) -> list[Definition]:
        """Return the definitions of a word, only those of a fitting kind if there are any."""
        name = token.text.strip('"').lstrip("^")
        name = name.lower() if index.path.suffix.lower() == ".pddl" else name
        definitions = [
            definition for definition in self.definitions(index) if definition.name == name
        ]
        return [
            definition for definition in definitions if definition.kind in token.kinds
        ] or definitions

    def completions(self, index: TextIndex, offset: int) -> dict[str, tuple[str, str]]:
        """Return the words that may stand at an offset, each with its kind and explanation."""
        language, token = index.language, index.token_before(offset)
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
            elif "\n" in index.text[token.offset + len(token.text) : offset]:
                # The statement on an earlier line is incomplete.
                words += language.blocks.get(token.block.keyword, ())
        completions = {word: ("keyword", meaning_of(index, word)) for word in words}
        if "object" in kinds and index.path.suffix.lower() == ".pddl":
            begin = max(
                index.text.rfind("(:action", 0, offset), index.text.rfind("(:derived", 0, offset), 0
            )
            variables = {
                token.text
                for token in index.scan.tokens
                if begin < token.offset < offset and token.text[0] == "?"
            }
            completions |= dict.fromkeys(sorted(variables - {"?"}), ("variable", ""))
        definitions = self.definitions(index) if kinds else iter(())
        return completions | {
            definition.name: (definition.kind, "")
            for definition in definitions
            if definition.kind in kinds
        }


def _next_in_list(index: TextIndex, token: Token) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words, and the kinds of names, that may follow a token of PDDL."""
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
    """Return the explanation of a keyword, empty for other words."""
    return _meanings()[index.path.suffix.lower().lstrip(".")].get(word, "")


def _description(index: TextIndex, symbol: Symbol, frame: FrameSpec | None) -> str:
    """Return the summary of a name and the text of its declaration, in Markdown."""
    parent = f", below `{symbol.parent}`" if symbol.parent else ""
    summary = f"{symbol.kind} `{symbol.name}`{parent}"
    if frame is not None:
        summary = _summary(symbol.kind, frame)
    lines = index.text[symbol.begin : symbol.end].split("\n")
    if len(lines) > _MAX_DECLARATION_LINES:
        lines = [*lines[:_MAX_DECLARATION_LINES], "..."]
    language = index.path.suffix.lower().lstrip(".")
    return "\n".join([summary, "", f"```{language}", *lines, "```"])


def _summary(kind: str, frame: FrameSpec) -> str:
    """Return a line with the parent, joint, shapes and classes of a frame."""
    parent = f", child of `{frame.parent}`" if frame.parent else ", a root"
    parts = [f"{kind} `{frame.name}`{parent}"]
    joint = frame.joint
    if joint.type != "fixed":
        parts.append(
            f"{joint.type} joint `{joint.name or frame.name}` from {joint.lower:g} to"
            f" {joint.upper:g}"
        )
    for part in frame.geometry:
        shape = part.shape
        if isinstance(shape, MeshSpec):
            parts.append(f"mesh {shape.path.name}")
        else:
            sizes = " x ".join(f"{size:g}" for size in shape.dimensions)
            parts.append(f"{shape.kind} {sizes}")
    if frame.classes:
        parts.append(f"is {', '.join(frame.classes)}")
    return "; ".join(parts)
