"""Names and types in generated C++ code.

Names of a file become identifiers of C++. Types of a file are written as they are, so they are
limited to names, template arguments and pointers: no type of a file can contain code.
"""

from __future__ import annotations

import re

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires return short signed
sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
"""Keywords of C++ up to C++20, and alternative names of operators."""

_MACROS = "BUFSIZ EOF NULL assert errno i386 linux stderr stdin stdout unix"
"""Macros of compilers and of headers of the standard library."""

_RESERVED_WORDS = frozenset([*_KEYWORDS.split(), *_MACROS.split()])
"""Words that are not names in C++."""

_MAX_TYPE_LENGTH = 500
"""Largest length of the expression of a type."""

_PYTHON_TYPE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
"""Type of a Python package, such as ``numpy.ndarray``."""

_TYPE = re.compile(r"[A-Za-z_:][\w:<>,* ]*", re.ASCII)
"""Characters of the expression of a type."""


def namespace_fault(name: str) -> str | None:
    """Return why a name cannot be the namespace of a header, or None if it can."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is None or "__" in name:
        return "is not a name in C++"
    if name in _RESERVED_WORDS:
        return "is a reserved word of C++"
    return "is a library's namespace" if name in ("std", "tmkit") else None


def class_name(name: str) -> str:
    """Return the class of a node or block, such as ``PlanePose`` of ``plane_pose``."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    return _legal_name("".join(word[:1].upper() + word[1:] for word in words), "Node", "")


def member_name(name: str, reserved: frozenset[str]) -> str:
    """Return the data member of a node, which is its name if that is valid in C++.

    Args:
        name: name of the node.
        reserved: other names of the class, and names that its types use.
    """
    words = re.findall(r"[A-Za-z0-9]+", name)
    return _legal_name("_".join(words), "node", "_", reserved)


def _legal_name(
    name: str, prefix: str, separator: str, reserved: frozenset[str] = frozenset()
) -> str:
    """Return a name that begins with a letter and is not reserved."""
    if not name:
        name = prefix
    elif name[0].isdigit():
        name = f"{prefix}{separator}{name}"
    return f"{name}_" if name in _RESERVED_WORDS | reserved else name


def is_python_type(expression: str) -> bool:
    """Return whether an expression is a type of a Python package, such as ``numpy.ndarray``."""
    return _PYTHON_TYPE.fullmatch(expression) is not None


def type_fault(expression: str) -> str | None:
    """Return why an expression is not a type, or None if it is one.

    A type consists of names, ``::``, template arguments in ``<>``, numbers and ``*``.
    """
    if len(expression) > _MAX_TYPE_LENGTH:
        return f"has more than {_MAX_TYPE_LENGTH} characters"
    if _TYPE.fullmatch(expression) is None:
        return "is not a type of C++, which has names, '::', '<', '>', ',' and '*' only"
    depth = 0
    for character in expression:
        depth += (character == "<") - (character == ">")
        if depth < 0:
            break
    return "is not a type of C++: '<' and '>' are not balanced" if depth else None
