"""How Sphinx builds these pages: ``sphinx-build -W -b html docs docs/_build`` in an environment with the extra ``docs``.

The pages are MyST Markdown; the reference is read from the docstrings of the installed package. Two things need care.
The compiled core writes the signature of a function into the first line of its docstring, and an overloaded one lists
several; :func:`_tidy` turns the latter into plain lines. And a name that a room re-exports from the core is shown under
the room, which is where users import it from.
"""

from __future__ import annotations

import importlib
import re
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
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["toc.empty_glob"]  # blocks_results.md is made by a script and may be absent

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
_SIGNATURE = re.compile(r"^\w+\(.*\)( -> .+)?$")


class Room(SphinxDirective):
    """``.. room:: tmkit.graph``: the docstring of a room, then each of its public names, classes first."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Return the nodes of the room's reference."""
        name = self.arguments[0]
        room = importlib.import_module(name)
        kinds: dict[str, list[str]] = {"class": [], "function": [], "data": []}
        for public in room.__all__:
            value = getattr(room, public)
            kind = "class" if isinstance(value, type) else "function" if callable(value) else "data"
            kinds[kind].append(public)
        lines = [f".. automodule:: {name}", "   :no-members:", ""]
        for public in kinds["class"]:
            lines += [f".. autoclass:: {name}.{public}", "   :members:", f"   :special-members: {_OPERATORS}", ""]
        for public in kinds["function"]:
            lines += [f".. autofunction:: {name}.{public}", ""]
        for public in kinds["data"]:
            lines += [f".. autodata:: {name}.{public}", "   :no-value:", ""]
        return self.parse_text_to_nodes("\n".join(lines))


def _tidy(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Drop the signature that the core writes first; autodoc shows it already where there is only one."""
    del app, what, name, options
    if getattr(type(value), "__module__", "") == "nanobind" and lines and _SIGNATURE.match(lines[0]):
        del lines[0]


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the directive."""
    app.add_directive("room", Room)
    app.connect("autodoc-process-docstring", _tidy, priority=100)
