"""How Sphinx builds these pages: ``sphinx-build -W -b html docs docs/_build`` with the extra ``docs`` installed.

The pages are MyST Markdown; the reference is read from the docstrings of the installed package by the directive
:class:`Room`. A name that a room re-exports from the compiled core is shown under the room, which is where users import
it from. The core writes signatures into the first line of docstrings, which Sphinx understands for functions and
methods but not for constructors and static methods; the rest of this file is about those.
"""

from __future__ import annotations

import importlib
import re
from enum import Enum
from importlib.metadata import version as version_of

from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

project = "tmkit"
author = "The tmkit developers"
project_copyright = "The tmkit developers, BSD 3-Clause licence"
release = version_of("tmkit")
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"tmkit {release}"
html_show_sourcelink = False

napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "groupwise"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
python_use_unqualified_type_names = True

_OPERATORS = "__matmul__, __len__, __contains__"
_SIGNATURE = re.compile(r"^\w+(\(.*\)) -> (.+)$")
_LONG_NAMES = re.compile(r"\b(collections\.abc|numpy\.typing|numpy|tmkit\._core)\.")
_ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+\]\]")


class Room(SphinxDirective):
    """``.. room:: tmkit.graph``: the docstring of a room, then each of its public names, classes first."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Return the nodes of the room's reference."""
        name = self.arguments[0]
        room = importlib.import_module(name)
        public = {item: getattr(room, item) for item in sorted(room.__all__)}
        lines = [f".. automodule:: {name}", "   :no-members:", ""]
        for item, value in public.items():
            if isinstance(value, type):
                lines += _class_lines(f"{name}.{item}", value)
        for item, value in public.items():
            if not isinstance(value, type):
                options = [] if callable(value) else ["   :no-value:"]
                lines += [f".. auto{'function' if callable(value) else 'data'}:: {name}.{item}", *options, ""]
        return self.parse_text_to_nodes("\n".join(lines))


def _class_lines(path: str, value: type) -> list[str]:
    """Return the directives for a class; constructors and static methods of the core have to be spelt out."""
    members = vars(value)
    constructor = _SIGNATURE.match((getattr(members.get("__init__"), "__doc__", None) or "").split("\n", 1)[0])
    arguments = _shortened(constructor[1]) if constructor is not None else ""
    lines = [f".. autoclass:: {path}{arguments}", "   :members:", f"   :special-members: {_OPERATORS}"]
    if issubclass(value, Enum):
        lines.append("   :undoc-members:")
    static = sorted(item for item in members if item[0] != "_" and type(members[item]).__name__ == "nb_func")
    if static:
        lines.append(f"   :exclude-members: {', '.join(static)}")
    lines.append("")
    for item in static:
        lines += [f"   .. automethod:: {path}.{item}", ""]
    return lines


def _shortened(arguments: str) -> str:
    """Return the arguments that the core writes, without self and without the modules of types."""
    return re.sub(r"^\(self(, )?", "(", _LONG_NAMES.sub("", arguments)).replace(", /)", ")")


def _on_signature(
    app: Sphinx, what: str, name: str, value: object, options: object, arguments: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """Shorten the signatures of the core."""
    del app, what, name, options
    if not type(value).__name__.startswith("nb_") or arguments is None:
        return None
    return _shortened(arguments), _LONG_NAMES.sub("", returns) if returns else returns


def _on_docstring(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Shorten the types of attributes."""
    del app, what, name, value, options
    lines[:] = [_ARRAY.sub("NDArray", _LONG_NAMES.sub("", line)) for line in lines]


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the directive and the abbreviations."""
    app.add_directive("room", Room)
    app.connect("autodoc-process-signature", _on_signature)
    app.connect("autodoc-process-docstring", _on_docstring, priority=900)


# Attributes of one name in several classes are no mistake.
suppress_warnings = ["ref.python"]
