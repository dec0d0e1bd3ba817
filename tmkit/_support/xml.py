"""Reader of untrusted XML, with line numbers.

The parser expands no entities, opens no network connection, and rejects a document type: a robot
description can neither read files nor grow without bound. An :class:`XmlElement` is an element with
its source location. Its methods check values, and errors have the line of the element.

Some faults that common parsers ignore are corrected, each with a note, if their meaning is clear:

- Blanks before the XML declaration and zero bytes at the end are removed.
- The first of repeated elements, and the first of too many numbers, are used.
- Commas between numbers are read as blanks.
- A prefix without a namespace (``<drake:joint>``) stays in the name.
- ``$(optenv NAME VALUE)`` of xacro is replaced by its value. All other xacro is rejected.

A default namespace on the root, which some tools write, is removed.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tmkit._support.limits import ReadingLimits, as_utf8, read_bytes
from tmkit._support.source_location import Note, SourceLocation, ignore_note
from tmkit.errors import FileFormatError, nearest_name

if TYPE_CHECKING:
    from lxml.etree import _Element

_LINE = re.compile(r", line \d+, column \d+$")
"""Location at the end of a message of the XML library."""

_INVALID_VERSION = re.compile(rb"""^((?:\xef\xbb\xbf)?<\?xml\s+version\s*=\s*["'])0\.0""")
"""XML version 0.0, which does not exist, but is frequent in robot descriptions."""

_LATE_DECLARATION = re.compile(rb"""^(?:\xef\xbb\xbf)?(\s+)<\?xml\s[^>]*\?>""")
"""Declaration after blanks, which the grammar of XML forbids."""

_FIRST_CHARACTERS = ((codecs.BOM_UTF16_LE, b"<\0"), (codecs.BOM_UTF16_BE, b"\0<"))
"""Mark of an encoding, and the first character of XML in it."""

_XACRO = re.compile(r"\$\([^()]*\)|\$\{[^{}]*\}")
"""Expression of xacro."""

_OPTENV = re.compile(r"\$\(\s*optenv\s+\w+\s*([^()]*)\)")
"""Expression of xacro for an environment variable, with its default value."""


@dataclass(frozen=True, slots=True)
class XmlFile:
    """Path, lines and notes of one file.

    Attributes:
        path: path of the file.
        lines: lines of the text.
        note: function that records notes.
    """

    path: Path
    lines: Sequence[str]
    note: Note = ignore_note


@dataclass(frozen=True, slots=True)
class XmlElement:
    """Element of a file.

    Attributes:
        element: element of the XML library.
        file: file that contains it.
    """

    element: _Element
    file: XmlFile

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.file.path

    @property
    def tag(self) -> str:
        """Name of the element."""
        return str(self.element.tag)

    @property
    def place(self) -> SourceLocation:
        """Location of the element."""
        line = cast("int | None", self.element.sourceline)
        lines = self.file.lines
        text = lines[line - 1] if line is not None and line <= len(lines) else None
        return SourceLocation(str(self.path), line, None, text)

    def note(self, text: str) -> None:
        """Record a note about this element."""
        self.file.note(self.place, text)

    def around(self, element: _Element) -> XmlElement:
        """Return another element of the same file."""
        return XmlElement(element, self.file)

    def children(self, tag: str) -> list[XmlElement]:
        """Return the child elements of a name in order."""
        return [self.around(child) for child in self.element.findall(tag)]

    def all(self, tag: str) -> list[XmlElement]:
        """Return the elements of a name at any depth, in order of the file."""
        return [self.around(child) for child in self.element.iter(tag)]

    def child(self, tag: str) -> XmlElement | None:
        """Return the first child element of a name, or None; a second one causes a note."""
        children = self.children(tag)
        if len(children) > 1:
            children[1].note(f"<{self.tag}> has several <{tag}>; only the first counts")
        return children[0] if children else None

    def required_child(self, tag: str) -> XmlElement:
        """Return the first child element of a name.

        Raises:
            FileFormatError: if there is none.
        """
        child = self.optional_child(tag)
        if child is None:
            raise self.place.error(f"<{self.tag}> needs <{tag}>")
        return child

    def optional_child(self, tag: str) -> XmlElement | None:
        """Return the first child element of a name, or None.

        Raises:
            FileFormatError: if there is none, but one with a similar name.
        """
        if (child := self.child(tag)) is not None:
            return child
        nearest = nearest_name(
            tag, [str(child.tag) for child in self.element if isinstance(child.tag, str)]
        )
        if nearest is not None:
            raise self.place.error(f"<{self.tag}> needs <{tag}>, it has <{nearest}>")
        return None

    def reject_xacro(self, format_name: str) -> None:
        """Reject a file with unexpanded macros.

        Args:
            format_name: format of the expanded file.

        Raises:
            FileFormatError: if a child element is a macro.
        """
        for child in self.element:
            if not isinstance(child.tag, str) or "xacro" not in child.tag:
                continue
            if child.tag.startswith(("{", "xacro:")):
                place = self.around(child).place
                raise place.error(f"this is a xacro file; expand it to {format_name} first")

    def get(self, name: str) -> str | None:
        """Return an attribute without surrounding blanks, or None.

        Raises:
            FileFormatError: if the value is an expression of xacro.
        """
        text = self.element.get(name)
        if text is None or "$" not in text:
            return text.strip() if text is not None else None
        plain = _OPTENV.sub(r"\1", text).strip()
        if (match := _XACRO.search(plain)) is not None:
            reason = (
                f"'{name}' of <{self.tag}> has the xacro expression '{match[0]}', so the file has"
                " not been expanded"
            )
            raise self.place.error(
                f"{reason}: run xacro on it first (xacro FILE.xacro > FILE.urdf)"
            )
        if plain != text.strip():
            self.note(
                f"'{name}' of <{self.tag}> is not a plain value but '{text.strip()}'; taken as"
                f" '{plain}'"
            )
        return plain

    def text(self, name: str) -> str:
        """Return an attribute.

        Raises:
            FileFormatError: if it is absent or empty.
        """
        text = self.get(name)
        if text is None:
            nearest = nearest_name(name, [str(key) for key in self.element.attrib])
            hint = f", it has '{nearest}'" if nearest is not None else ""
            raise self.place.error(f"<{self.tag}> needs the attribute '{name}'{hint}")
        if not text:
            raise self.place.error(f"the attribute '{name}' of <{self.tag}> is empty")
        return text

    def numbers(self, name: str, lengths: Iterable[int]) -> tuple[float, ...]:
        """Return an attribute that is a list of finite numbers, separated by blanks.

        Args:
            name: name of the attribute.
            lengths: accepted lengths of the list.
        """
        counts = tuple(lengths)
        text = self.text(name)
        words = text.split()
        if "," in text and len(text.replace(",", " ").split()) in counts:
            words = text.replace(",", " ").split()
            self.note(
                f"'{name}' of <{self.tag}> has commas between its numbers: '{text}'; they count as"
                " blanks"
            )
        if len(words) > max(counts):
            self.note(
                f"'{name}' of <{self.tag}> has {len(words)} numbers; only the first {max(counts)}"
                " count"
            )
            words = words[: max(counts)]
        if len(words) not in counts:
            number = " or ".join(str(length) for length in counts)
            plural = "" if counts == (1,) else "s"
            received = f"received '{self.text(name)}'"
            raise self.place.error(
                f"'{name}' of <{self.tag}>: expected {number} number{plural}, {received}"
            )
        return tuple(self._number(name, word) for word in words)

    def number(self, name: str, otherwise: float | None = None, *, infinite: bool = False) -> float:
        """Return an attribute that is one number.

        Args:
            name: name of the attribute.
            otherwise: value of an absent attribute. By default, the attribute is required.
            infinite: accept infinity.
        """
        if otherwise is not None and self.get(name) is None:
            return otherwise
        return self._number(name, self.text(name), infinite=infinite)

    def triple(
        self, name: str, otherwise: tuple[float, float, float] | None = None
    ) -> tuple[float, float, float]:
        """Return an attribute of three numbers.

        Args:
            name: name of the attribute.
            otherwise: value of an absent attribute. By default, the attribute is required.
        """
        if otherwise is not None and self.get(name) is None:
            return otherwise
        x, y, z = self.numbers(name, (3,))
        return x, y, z

    def positive(self, name: str) -> float:
        """Return an attribute that is one number above 0."""
        number = self.number(name)
        if number <= 0.0:
            raise self.place.error(
                f"'{name}' of <{self.tag}>: expected a number above 0, received {number:g}"
            )
        return number

    def not_negative(self, name: str, otherwise: float, *, infinite: bool = False) -> float:
        """Return an attribute that is a number of at least 0.

        Args:
            name: name of the attribute.
            otherwise: value of an absent attribute.
            infinite: accept infinity.
        """
        number = self.number(name, otherwise, infinite=infinite)
        if number < 0.0:
            raise self.place.error(
                f"'{name}' of <{self.tag}>: expected a number of at least 0, received {number:g}"
            )
        return number

    def _number(self, name: str, word: str, *, infinite: bool = False) -> float:
        try:
            number = float(word) if "_" not in word else math.nan
        except ValueError:
            number = math.nan
        if math.isnan(number) or (math.isinf(number) and not infinite):
            raise self.place.error(
                f"'{name}' of <{self.tag}>: expected a finite number, received '{word}'"
            )
        return number


def read_xml(
    path: Path,
    *,
    root: str | tuple[str, ...],
    note: Note = ignore_note,
    limits: ReadingLimits | None = None,
    data: bytes | None = None,
) -> XmlElement:
    """Read an XML file.

    Args:
        path: file.
        root: name of the outermost element, or several accepted names.
        note: function that records the notes about the file.
        limits: size limits.
        data: content of the file. By default, it is read from ``path``.

    Raises:
        FileFormatError: if the file cannot be read, is too large, is not well-formed XML, declares
            a document type, or has another root.
    """
    from lxml import etree

    data = read_bytes(path, limit=(limits or ReadingLimits()).text_bytes) if data is None else data
    received = data
    for mark, first in _FIRST_CHARACTERS:  # UTF-16 without a mark, given by the declaration
        received = mark + received if received.startswith(first) else received
    data = as_utf8(received, partial(FileFormatError.at, path))
    encoding = None if data in (received, received.removeprefix(codecs.BOM_UTF8)) else "utf-8"
    data = _INVALID_VERSION.sub(rb"\g<1>1.0", data, count=1)
    file = XmlFile(path, data.decode("utf-8", errors="replace").splitlines(), note)
    if data.endswith(b"\0"):
        note(SourceLocation(str(path), len(file.lines)), "zero bytes at the end are ignored")
        data = data.rstrip(b"\0")
    if match := _LATE_DECLARATION.match(data):
        place = SourceLocation(str(path), match[1].count(b"\n") + 1)
        note(place, "the XML declaration follows blanks and is ignored")
        data = match[1] + data[match.end() :]
    try:
        tree = _parse(data, file, encoding).getroottree()
    except etree.XMLSyntaxError as error:
        line, column = error.position
        text = file.lines[line - 1] if line is not None and 0 < line <= len(file.lines) else None
        place = SourceLocation(str(path), line or None, column or None, text)
        raise place.error(f"is not well-formed XML: {_LINE.sub('', error.msg or '')}") from None
    information: Any = tree.docinfo
    if information.doctype or information.internalDTD is not None:
        line = next(
            (number for number, text in enumerate(file.lines, start=1) if "<!DOCTYPE" in text), 1
        )
        raise FileFormatError.at(
            path, "declares a document type (<!DOCTYPE ...>), which is not accepted", line=line
        )
    element = XmlElement(_remove_namespace(tree.getroot()), file)
    names = (root,) if isinstance(root, str) else root
    if element.tag not in names:
        raise element.place.error(
            f"expected <{names[0]}> as the outermost element, received <{element.tag}>"
        )
    return element


def _parse(data: bytes, file: XmlFile, encoding: str | None) -> _Element:
    """Return the root of a text, with a note for each prefix without a namespace.

    Such a prefix stays in the names. If ``encoding`` is None, the declaration has the encoding.
    """
    from lxml import etree

    def create_parser(*, recover: bool) -> etree.XMLParser:
        return etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            dtd_validation=False,
            remove_comments=True,
            recover=recover,
            encoding=encoding,
        )

    try:
        return etree.fromstring(data, create_parser(recover=False))
    except etree.XMLSyntaxError:
        lenient = create_parser(recover=True)
        root = cast("_Element | None", etree.fromstring(data, lenient))
        problems = list(lenient.error_log)
        syntax_errors = [
            problem for problem in problems if problem.type_name != "NS_ERR_UNDEFINED_NAMESPACE"
        ]
        if root is None or syntax_errors:
            first = (syntax_errors or problems)[0]
            raise etree.XMLSyntaxError(
                first.message, first.type, first.line, first.column
            ) from None  # type: ignore[call-arg]
    first_by_prefix = {problem.message.split()[2]: problem for problem in reversed(problems)}
    for prefix, first in first_by_prefix.items():
        place = SourceLocation(str(file.path), first.line)
        text = f"the prefix '{prefix}' has no namespace; elements with it are ignored"
        file.note(place, text)
    return root


def _remove_namespace(root: _Element) -> _Element:
    """Remove the namespace of the root, if any, from all elements, and return the root."""
    tag = str(root.tag)
    if tag.startswith("{"):
        prefix = tag[: tag.index("}") + 1]
        for element in root.iter():
            if isinstance(element.tag, str) and element.tag.startswith(prefix):
                element.tag = element.tag.removeprefix(prefix)
    return root
