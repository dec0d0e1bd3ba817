"""Texts that are safe to print on a terminal.

Names of frames, joints and objects come from files. A terminal executes the escape sequences in a
text, which move the cursor, change colours and titles, and reverse the direction of writing.
Programs therefore print texts with :func:`printable`.
"""

from __future__ import annotations


def printable(text: str, *, keep: str = "\n\t") -> str:
    r"""Return a text with unprintable characters (:meth:`str.isprintable`) escaped as ``\x1b``.

    Unprintable are control characters, marks of writing direction, separators other than the
    blank, and lone surrogates.

    Args:
        text: text to print.
        keep: characters that stay. For a name on one line, it is empty.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii")
        for c in text
    )
