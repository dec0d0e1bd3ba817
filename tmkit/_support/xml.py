"""Reading untrusted XML: safely, with line numbers.

The parser expands no entities, opens no network connection and refuses a document type altogether:
a robot description can neither read files nor grow without bound. An :class:`XmlElement` is an
element with its source location: what it hands out is checked, and what it refuses is reported at
its line.

A few slips are mended, each with a note, because the usual parsers overlook them and the meaning is
plain. They are: blanks before the XML declaration, zero bytes at the end, an element given twice
(the first counts), commas between numbers, more numbers than wanted (the first ones count). A
prefix without a namespace (``<drake:joint>``) is mended, and ``$(optenv NAME VALUE)``, a leftover
of xacro, stands for its value. Any other leftover is refused. A default namespace on the root, as
some tools write it, is taken off.
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
from tmkit._support.source_location import Note, SourceLocation, unheard
from tmkit.errors import FileFormatError, nearest_name

if TYPE_CHECKING:
    from lxml.etree import _Element

_LINE = re.compile(r", line \d+, column \d+$")  # the XML library repeats the place in its message
# Many descriptions open with the XML version 0.0, which there never was; it changes nothing in what
# follows.
_ODD_VERSION = re.compile(rb"""^((?:\xef\xbb\xbf)?<\?xml\s+version\s*=\s*["'])0\.0""")
# A declaration that is not at the very start, which the grammar of XML demands.
_LATE_DECLARATION = re.compile(rb"""^(?:\xef\xbb\xbf)?(\s+)<\?xml\s[^>]*\?>""")
_FIRST_CHARACTERS = ((codecs.BOM_UTF16_LE, b"<\0"), (codecs.BOM_UTF16_BE, b"\0<"))
"""Mark of an encoding, and the first character of XML in it."""
_XACRO = re.compile(r"\$\([^()]*\)|\$\{[^{}]*\}")
_OPTENV = re.compile(r"\$\(\s*optenv\s+\w+\s*([^()]*)\)")


@dataclass(frozen=True, slots=True)
class XmlFile:
    """What the elements of one file share."""

    path: Path
    lines: Sequence[str]
    note: Note = unheard


@dataclass(frozen=True, slots=True)
class XmlElement:
    """An element of a file.

    Attributes:
        element: the element of the XML library.
        file: the file that it is part of.
    """

    element: _Element
    file: XmlFile

    @property
    def path(self) -> Path:
        """The file's path."""
        return self.file.path

    @property
    def tag(self) -> str:
        """The name of the element."""
        return str(self.element.tag)

    @property
    def place(self) -> SourceLocation:
        """Where the element stands."""
        line = cast("int | None", self.element.sourceline)
        lines = self.file.lines
        text = lines[line - 1] if line is not None and line <= len(lines) else None
        return SourceLocation(str(self.path), line, None, text)

    def note(self, text: str) -> None:
        """Make a note about this element."""
        self.file.note(self.place, text)

    def around(self, element: _Element) -> XmlElement:
        """Return another element of the same file."""
        return XmlElement(element, self.file)

    def children(self, tag: str) -> list[XmlElement]:
        """Return the child elements of that name in order."""
        return [self.around(child) for child in self.element.findall(tag)]

    def all(self, tag: str) -> list[XmlElement]:
        """Return the elements of that name, however deep inside, in order."""
        return [self.around(child) for child in self.element.iter(tag)]

    def child(self, tag: str) -> XmlElement | None:
        """Return the first child element of that name, ``None`` when there is none; a second one is noted."""
        found = self.children(tag)
        if len(found) > 1:
            found[1].note(f"<{self.tag}> has several <{tag}>; only the first counts")
        return found[0] if found else None

    def needed(self, tag: str) -> XmlElement:
        """Return the first child element of that name, which must be there."""
        found = self.wanted(tag)
        if found is None:
            raise self.place.error(f"<{self.tag}> needs <{tag}>")
        return found

    def wanted(self, tag: str) -> XmlElement | None:
        """Return the first child element of that name, ``None`` when there is none, nor one that is misspelt."""
        if (found := self.child(tag)) is not None:
            return found
        near = nearest_name(
            tag, [str(child.tag) for child in self.element if isinstance(child.tag, str)]
        )
        if near is not None:
            raise self.place.error(f"<{self.tag}> needs <{tag}>, it has <{near}>")
        return None

    def refuse_xacro(self, format_name: str) -> None:
        """Refuse a file of macros that have not been expanded.

        Args:
            format_name: what the macros would expand to.

        Raises:
            FileFormatError: a child element is a macro.
        """
        for child in self.element:
            if (
                isinstance(child.tag, str)
                and child.tag.startswith(("{", "xacro:"))
                and "xacro" in child.tag
            ):
                place = self.around(child).place
                raise place.error(f"this is a xacro file; expand it to {format_name} first")

    def get(self, name: str) -> str | None:
        """Return an attribute without the blanks around it, ``None`` when it is not there.

        Raises:
            FileFormatError: the value is an expression of xacro.
        """
        text = self.element.get(name)
        if text is None or "$" not in text:
            return text.strip() if text is not None else None
        plain = _OPTENV.sub(r"\1", text).strip()
        if (left := _XACRO.search(plain)) is not None:
            reason = (
                f"'{name}' of <{self.tag}> has the xacro expression '{left[0]}', so the file has"
                " not been expanded"
            )
            raise self.place.error(
                f"{reason}: run xacro on it first (xacro FILE.xacro > FILE.urdf)"
            )
        if plain != text.strip():
            self.note(
                f"'{name}' of <{self.tag}> is no plain value but '{text.strip()}'; taken as"
                f" '{plain}'"
            )
        return plain

    def text(self, name: str) -> str:
        """Return an attribute that must be there and not be empty."""
        text = self.get(name)
        if text is None:
            near = nearest_name(name, [str(key) for key in self.element.attrib])
            hint = f", it has '{near}'" if near is not None else ""
            raise self.place.error(f"<{self.tag}> needs the attribute '{name}'{hint}")
        if not text:
            raise self.place.error(f"the attribute '{name}' of <{self.tag}> is empty")
        return text

    def numbers(self, name: str, lengths: Iterable[int]) -> tuple[float, ...]:
        """Return an attribute that is a list of finite numbers, separated by blanks.

        Args:
            name: the attribute.
            lengths: the accepted numbers of elements.
        """
        wanted = tuple(lengths)
        text = self.text(name)
        words = text.split()
        if "," in text and len(text.replace(",", " ").split()) in wanted:
            words = text.replace(",", " ").split()
            self.note(
                f"'{name}' of <{self.tag}> has commas between its numbers: '{text}'; they count as"
                " blanks"
            )
        if len(words) > max(wanted):
            self.note(
                f"'{name}' of <{self.tag}> has {len(words)} numbers; only the first {max(wanted)}"
                " count"
            )
            words = words[: max(wanted)]
        if len(words) not in wanted:
            number = " or ".join(str(length) for length in wanted)
            plural = "" if wanted == (1,) else "s"
            received = f"received '{self.text(name)}'"
            raise self.place.error(
                f"'{name}' of <{self.tag}>: expected {number} number{plural}, {received}"
            )
        return tuple(self._number(name, word) for word in words)

    def number(self, name: str, otherwise: float | None = None, *, infinite: bool = False) -> float:
        """Return an attribute that is one number, ``otherwise`` when it is not there.

        Args:
            name: of the attribute.
            otherwise: stands for an attribute that is omitted; ``None`` means that it may not be.
            infinite: whether infinity is accepted.
        """
        if otherwise is not None and self.get(name) is None:
            return otherwise
        return self._number(name, self.text(name), infinite=infinite)

    def triple(
        self, name: str, otherwise: tuple[float, float, float] | None = None
    ) -> tuple[float, float, float]:
        """Return an attribute of three numbers.

        Args:
            name: the attribute.
            otherwise: the value if the attribute is absent; by default it is required.
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
            name: the attribute.
            otherwise: the value if the attribute is absent.
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
    note: Note = unheard,
    limits: ReadingLimits | None = None,
    data: bytes | None = None,
) -> XmlElement:
    """Read an XML file.

    Args:
        path: the file.
        root: the name that the outermost element must have, or several such names.
        note: takes the notes about the file.
        limits: how large it may be.
        data: its content, if that is not on the disk.

    Raises:
        FileFormatError: the file cannot be read, is too large, is no well-formed XML, declares a
            document type, or has another root.
    """
    from lxml import etree

    data = read_bytes(path, limit=(limits or ReadingLimits()).text_bytes) if data is None else data
    received = data
    for mark, first in _FIRST_CHARACTERS:  # UTF-16 without its mark, which the declaration names
        received = mark + received if received.startswith(first) else received
    data = as_utf8(received, partial(FileFormatError.at, path))
    encoding = None if data in (received, received.removeprefix(codecs.BOM_UTF8)) else "utf-8"
    data = _ODD_VERSION.sub(rb"\g<1>1.0", data, count=1)
    file = XmlFile(path, data.decode("utf-8", errors="replace").splitlines(), note)
    if data.endswith(b"\0"):
        note(SourceLocation(str(path), len(file.lines)), "zero bytes at the end are ignored")
        data = data.rstrip(b"\0")
    if late := _LATE_DECLARATION.match(data):
        note(
            SourceLocation(str(path), late[1].count(b"\n") + 1),
            "the XML declaration follows blanks and is ignored",
        )
        data = late[1] + data[late.end() :]
    try:
        tree = _parsed(data, file, encoding).getroottree()
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
    element = XmlElement(_without_namespace(tree.getroot()), file)
    names = (root,) if isinstance(root, str) else root
    if element.tag not in names:
        raise element.place.error(
            f"expected <{names[0]}> as the outermost element, received <{element.tag}>"
        )
    return element


def _parsed(data: bytes, file: XmlFile, encoding: str | None) -> _Element:
    """Return the root of a text, with a note for each prefix that stands for no namespace; it stays in the names.

    The declaration tells the encoding if it is ``None``.
    """
    from lxml import etree

    def parser(*, recover: bool) -> etree.XMLParser:
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
        return etree.fromstring(data, parser(recover=False))
    except etree.XMLSyntaxError:
        lenient = parser(recover=True)
        root = cast("_Element | None", etree.fromstring(data, lenient))
        problems = list(lenient.error_log)
        others = [
            problem for problem in problems if problem.type_name != "NS_ERR_UNDEFINED_NAMESPACE"
        ]
        if root is None or others:
            first = (others or problems)[0]
            raise etree.XMLSyntaxError(
                first.message, first.type, first.line, first.column
            ) from None  # type: ignore[call-arg]
    for first in {problem.message.split()[2]: problem for problem in reversed(problems)}.values():
        place = SourceLocation(str(file.path), first.line)
        file.note(
            place,
            f"the prefix '{first.message.split()[2]}' has no namespace; elements with it are"
            " ignored",
        )
    return root


def _without_namespace(root: _Element) -> _Element:
    """Return the root after taking its own namespace, if it has one, off all elements."""
    tag = str(root.tag)
    if tag.startswith("{"):
        prefix = tag[: tag.index("}") + 1]
        for element in root.iter():
            if isinstance(element.tag, str) and element.tag.startswith(prefix):
                element.tag = element.tag.removeprefix(prefix)
    return root
