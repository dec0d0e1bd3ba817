"""The papers' notation for points, orientation frames and bodies: how it is read and written.

``e|C`` is the point e fixed to body C, ``[a]|C`` the orientation frame a fixed to it, ``{g}|C`` the frame g: a point
and an orientation frame of one name. ``(e,[a])|C`` is a point and an orientation frame that need not belong together.
``[r]`` alone is the frame in which coordinates are expressed (De Laet et al., "Geometric relations between rigid
bodies", part 1, IEEE RAM 2013).

Invariants: what is written is read back as the same; names are not empty and hold none of the characters of the
notation.
"""

from __future__ import annotations

import re
from typing import NoReturn

from tmkit.relations.violations import SemanticError, Violation

_NAME = r"[^\s|{}\[\](),]+"
_POINT = re.compile(rf"({_NAME})\|({_NAME})")
_ORIENTATION = re.compile(rf"\[({_NAME})\]\|({_NAME})")
_FRAME = re.compile(rf"\{{({_NAME})\}}\|({_NAME})")
_POSE = re.compile(rf"\(({_NAME}),\s*\[({_NAME})\]\)\|({_NAME})")
_BODY = re.compile(_NAME)
_COORD = re.compile(rf"\[({_NAME})\]")


def read_point(text: str) -> tuple[str, str]:
    """Return point and body of ``e|C``.

    Raises:
        SemanticError: the text is not in this form.
    """
    match = _POINT.fullmatch(text) if isinstance(text, str) else None
    return (match[1], match[2]) if match else _refuse(text, "a point on a body", "e|C", "{0}|{1}")


def read_orientation(text: str) -> tuple[str, str]:
    """Return orientation frame and body of ``[a]|C``.

    Raises:
        SemanticError: the text is not in this form.
    """
    match = _ORIENTATION.fullmatch(text) if isinstance(text, str) else None
    return (match[1], match[2]) if match else _refuse(text, "an orientation frame on a body", "[a]|C", "[{0}]|{1}")


def read_pose(text: str) -> tuple[str, str, str]:
    """Return point, orientation frame and body of ``{g}|C`` or ``(e,[a])|C``.

    Raises:
        SemanticError: the text is not in one of these forms.
    """
    if isinstance(text, str):
        if match := _FRAME.fullmatch(text):
            return match[1], match[1], match[2]
        if match := _POSE.fullmatch(text):
            return match[1], match[2], match[3]
    what = "a frame, or a point and an orientation frame, on a body"
    return _refuse(text, what, "{g}|C or (e,[a])|C", "{{{0}}}|{1}")


def read_body(text: str) -> str:
    """Return the name of a body.

    Raises:
        SemanticError: the text is no name.
    """
    return text if isinstance(text, str) and _BODY.fullmatch(text) else _refuse(text, "a body", "C", "{1}")


def read_frame(text: str) -> str:
    """Return the frame of expression of ``[r]``.

    Raises:
        SemanticError: the text is not in this form.
    """
    match = _COORD.fullmatch(text) if isinstance(text, str) else None
    return match[1] if match else _refuse(text, "the frame of expression", "[r]", "[{0}]")


def read_name(text: str, what: str) -> str:
    """Return a name that is a field of its own.

    Args:
        text: the name.
        what: the field's name, for the error message.

    Raises:
        SemanticError: the text is no name.
    """
    if isinstance(text, str) and _BODY.fullmatch(text):
        return text
    rule = f"{what} is a name, without spaces and without any of | {{ }} [ ] ( ) ,"
    raise SemanticError.of("notation", [Violation(rule, repr(text))])


def show_pose(point: str, ori: str, body: str) -> str:
    """Return the notation of a point and an orientation frame on a body.

    Args:
        point: names of the origin and the orientation frame.
        ori: names of the origin and the orientation frame.
        body: the body to which they are fixed.
    """
    return f"{{{point}}}|{body}" if point == ori else f"({point},[{ori}])|{body}"


_ANY = re.compile(rf"[{{\[(]*({_NAME})[}}\])]*(?:\|({_NAME}))?")


def _refuse(text: object, what: str, form: str, wanted: str) -> NoReturn:
    """Refuse a text, and say how it would be written."""
    repair = ""
    if not isinstance(text, str):
        repair = "give it as text"
    elif re.search(r"\s", text.strip()) and not _POSE.fullmatch(text):
        repair = "names have no spaces"
    elif match := _ANY.fullmatch(text.strip()):
        name, body = match[1], match[2]
        if body or "{1}" not in wanted:
            repair = f"write '{wanted.format(name, body)}'"
        elif "{0}" in wanted:
            repair = f"say which body it is fixed to: '{wanted.format(name, 'Body')}'"
    raise SemanticError.of("notation", [Violation(f"{what} is written as {form}", repr(text), repair=repair)])
