"""The papers' notation for points, orientation frames and bodies: how it is read and written.

``docs/concepts/relations.md`` lists its forms (De Laet et al., "Geometric relations between rigid bodies", part 1, IEEE
RAM 2013).

Invariants: what is written is read back as the same; names are not empty. Names with spaces between their words are
written as they are, ``{my frame}|my body``; those with characters of the notation, or spaces around them, in double
quotes, two of which stand for one in it: ``{"a|b"}|C``.
"""

from __future__ import annotations

import re
from typing import NoReturn

from tmkit.relations.violations import SemanticError, Violation

_WORDS = r"[^\s|{}\[\](),\"][^\s|{}\[\](),]*(?: +[^\s|{}\[\](),]+)*"  # with spaces between them
_NAME = rf'"(?:[^"]|"")+"|{_WORDS}'
_PLAIN = re.compile(_WORDS)
_POSE = re.compile(rf"\(({_NAME}),\s*\[({_NAME})\]\)\|({_NAME})")


class Form:
    """A form of the notation: a pattern, what it denotes, an example, how name ``{0}`` and body ``{1}`` are written."""

    def __init__(self, pattern: str, *, what: str, form: str, wanted: str) -> None:
        self._pattern, self._what, self._form, self._wanted = re.compile(pattern), what, form, wanted

    def read(self, text: str) -> tuple[str, ...]:
        """Return the names in a text, or raise SemanticError."""
        match = self._pattern.fullmatch(text) if isinstance(text, str) else None
        return tuple(map(_bare, match.groups())) if match else _refuse(text, self._what, self._form, self._wanted)


POINT = Form(rf"({_NAME})\|({_NAME})", what="a point on a body", form="e|C", wanted="{0}|{1}")
ORIENTATION = Form(
    rf"\[({_NAME})\]\|({_NAME})", what="an orientation frame on a body", form="[a]|C", wanted="[{0}]|{1}"
)
BODY = Form(rf"({_NAME})", what="a body", form="C", wanted="{1}")
COORD = Form(rf"\[({_NAME})\]", what="the frame of expression", form="[r]", wanted="[{0}]")
_FRAME = re.compile(rf"\{{({_NAME})\}}\|({_NAME})")


def read_pose(text: str) -> tuple[str, str, str]:
    """Return point, orientation frame and body of ``{g}|C`` or ``(e,[a])|C``, or raise SemanticError."""
    if isinstance(text, str):
        if match := _FRAME.fullmatch(text):
            return _bare(match[1]), _bare(match[1]), _bare(match[2])
        if match := _POSE.fullmatch(text):
            return _bare(match[1]), _bare(match[2]), _bare(match[3])
    what = "a frame, or a point and an orientation frame, on a body"
    return _refuse(text, what, "{g}|C or (e,[a])|C", "{{{0}}}|{1}")


def read_name(text: str, what: str) -> str:
    """Return a name that is a field of its own, or raise SemanticError; ``what`` is the field."""
    if isinstance(text, str) and re.fullmatch(_NAME, text):
        return _bare(text)
    rule = f"{what} is a name, without spaces around it and without any of | {{ }} [ ] ( ) , unless in double quotes"
    repair = f"write {written(text)!r} if that is its name" if isinstance(text, str) and text else ""
    raise SemanticError.of("notation", [Violation(rule, repr(text), repair=repair)])


def _bare(name: str) -> str:
    """Return a name that may be in quotes without them."""
    return name[1:-1].replace('""', '"') if name[0] == '"' else name


def written(name: str) -> str:
    """Return a name as it is written, in quotes where it needs them."""
    if _PLAIN.fullmatch(name):
        return name
    inside = name.replace('"', '""')
    return f'"{inside}"'


_ANY = re.compile(rf"[{{\[(]*\s*({_NAME})\s*[}}\])]*\s*(?:\|\s*({_NAME}))?")


def _refuse(text: object, what: str, form: str, wanted: str) -> NoReturn:
    """Refuse a text, and say how it would be written."""
    repair = ""
    if not isinstance(text, str):
        repair = "give it as text"
    elif match := _ANY.fullmatch(text.strip()):
        name, body = match[1], match[2]
        if body or "{1}" not in wanted:
            repair = f"write '{wanted.format(name, body)}'"
        elif "{0}" in wanted:
            repair = f"say which body it is fixed to: '{wanted.format(name, 'Body')}'"
    raise SemanticError.of("notation", [Violation(f"{what} is written as {form}", repr(text), repair=repair)])
