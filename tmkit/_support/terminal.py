"""Texts as a terminal may show them.

Names of frames, joints and objects come from files, and a terminal executes the escape sequences in
a text: they move the cursor, change colours and titles, reverse the direction of writing. So what
is printed goes through :func:`printable`.
"""

from __future__ import annotations


def printable(text: str, *, keep: str = "\n\t") -> str:
    r"""Return a text with every character that is not printable (:meth:`str.isprintable`) written as ``\x1b``.

    These are control characters, marks of writing direction, separators other than the blank, and
    lone surrogates. Those in ``keep`` stay; none for a name, which is to stay on its line.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii")
        for c in text
    )
