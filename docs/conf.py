"""Sphinx configuration: ``sphinx-build -W -b html docs docs/_build`` with the extra ``docs``.

The pages are MyST Markdown; the reference is read from the docstrings of the installed package by
the directive :class:`Package`. A name that a package re-exports from the compiled core is shown
under the package, from which users import it. The core writes signatures into the first line of
docstrings, which Sphinx understands for functions and methods but not for constructors and static
methods; a part of this file is about those.

Every tutorial is a notebook too (``tools/notebooks.py``), which its page offers for download. With
``-D execute_tutorials=1`` a kernel runs the notebooks, and pages show their output in 3D. For a
host, the environment variable ``TMKIT_DOCS_URL`` has the address, such as
``https://example.org/tmkit/{version}/``: links in notebooks, social cards and canonical addresses
use it. ``llms.txt`` lists all pages for programs that read.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from enum import Enum
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.nodes import Node
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tmkit import __version__

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from notebooks import TUTORIALS, execute, notebook_of, portable

project = "tmkit"
author = "The tmkit developers"
project_copyright = "The tmkit developers, BSD 3-Clause licence"
release = __version__
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "notfound.extension",
    "sphinxext.opengraph",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "results/tables"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"tmkit {release}"
html_show_sourcelink = False
html_baseurl = os.environ.get("TMKIT_DOCS_URL", "").replace("{version}", release).rstrip("/")
html_baseurl += "/" if html_baseurl else ""
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_search_scorer = str(Path(__file__).parent / "static" / "search_scorer.js")
html_logo = "static/logo.svg"
html_favicon = "static/logo.svg"
ogp_site_url = html_baseurl
ogp_site_name = "tmkit: task-and-motion planning over a scene graph"
ogp_image = "_static/social_card.jpg"
ogp_image_alt = "A Panda opens a drawer: task-and-motion planning with tmkit"
ogp_social_cards = {"enable": False}  # one picture for all pages
notfound_urls_prefix = (
    "/" + html_baseurl.split("://", 1)[-1].partition("/")[2] if html_baseurl else "/"
)
notfound_context = {
    "title": "Page not found",
    "body": (
        "<h1>Page not found</h1><p>It may have another name now. Try the search, or begin at the "
        f'<a href="{notfound_urls_prefix}index.html">first page</a>.</p>'
    ),
}
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "groupwise"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
python_use_unqualified_type_names = True

_PACKAGES = tuple(
    re.findall(
        r"^\.\. package:: (tmkit\.\S+)$",
        "\n".join(
            page.read_text(encoding="utf-8")
            for page in sorted(Path(__file__).parent.glob("reference/api/*.md"))
        ),
        re.MULTILINE,
    )
)
_OPERATORS = "__matmul__, __len__, __contains__"
_SIGNATURE = re.compile(r"^\w+(\(.*\)) -> (.+)$")
_LONG_NAMES = re.compile(r"\b(collections\.abc|numpy\.typing|numpy|tmkit\._core)\.")
_ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+\]\]")


class Package(SphinxDirective):
    """``.. package:: tmkit.graph``: docstring of a package, then its public names."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Return the nodes of the package's reference."""
        name = self.arguments[0]
        package = importlib.import_module(name)
        public = {exported: getattr(package, exported) for exported in sorted(package.__all__)}
        lines = [f".. automodule:: {name}", "   :no-members:", ""]
        for exported, value in public.items():
            if isinstance(value, type):
                home = next(home for home in (*_PACKAGES, name) if _is_in(home, exported, value))
                lines += _class_lines(f"{name}.{exported}", value, is_indexed=home == name)
        for exported, value in public.items():
            if not isinstance(value, type):
                options = [] if callable(value) else ["   :no-value:"]
                lines += [
                    f".. auto{'function' if callable(value) else 'data'}:: {name}.{exported}",
                    *options,
                    "",
                ]
        return self.parse_text_to_nodes("\n".join(lines))


class Names(SphinxDirective):
    """``.. names:: tmkit``: index entry, summary and link for each name from a package."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Return the nodes of the names."""
        module = importlib.import_module(self.arguments[0])
        lines = []
        for name in sorted(module.__all__, key=str.lower):
            value = getattr(module, name)
            homes = [home for home in _PACKAGES if _is_in(home, name, value)]
            if name[0] != "_" and homes:
                kind, role = ("class", "class") if isinstance(value, type) else ("function", "func")
                paragraphs = [
                    " ".join(part.split()) for part in (value.__doc__ or "").strip().split("\n\n")
                ]
                summary = next((part for part in paragraphs if not _SIGNATURE.match(part)), "")
                lines += [f".. py:{kind}:: {module.__name__}.{name}", ""]
                lines += [f"   {summary} Reference: :{role}:`{homes[0]}.{name}`.", ""]
        return self.parse_text_to_nodes("\n".join(lines))


class Result(SphinxDirective):
    """``{result} FILE``: output of a tutorial cell, live if the build ran it, or a picture.

    The content is the alternative text; the option ``picture`` is the still.
    """

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"picture": directives.unchanged_required}

    def run(self) -> list[Node]:
        """Return the nodes of the page's display."""
        name, words = self.arguments[0], " ".join(self.content)
        page = Path(self.env.docname).name
        if not self.config.execute_tutorials or name.endswith(".png"):
            return [nodes.image(uri=self.options["picture"], alt=words)]
        address = f"../notebooks/{page}/{name}"
        frame = f'<iframe class="result" src="{address}" title="{words}" loading="lazy"></iframe>'
        link = (
            f'<p class="result"><a href="{address}">{words}: open it in a page of its own</a></p>'
        )
        return [nodes.raw("", frame + link, format="html")]


def _is_in(package: str, name: str, value: object) -> bool:
    """Return whether a package exports a value; of several packages, the first indexes it."""
    return getattr(importlib.import_module(package), name, None) is value


def _class_lines(path: str, value: type, *, is_indexed: bool = True) -> list[str]:
    """Return the directives for a class, with constructors and static methods of the core."""
    members = vars(value)
    constructor = _SIGNATURE.match(
        (getattr(members.get("__init__"), "__doc__", None) or "").split("\n", 1)[0]
    )
    arguments = _shortened(constructor[1]) if constructor is not None else ""
    lines = [
        f".. autoclass:: {path}{arguments}",
        "   :members:",
        f"   :special-members: {_OPERATORS}",
    ]
    if issubclass(value, Enum):
        lines.append("   :undoc-members:")
    if not is_indexed:
        lines.append("   :no-index:")
    static = sorted(
        item for item in members if item[0] != "_" and type(members[item]).__name__ == "nb_func"
    )
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
    app: Sphinx,
    what: str,
    name: str,
    value: object,
    options: object,
    arguments: str | None,
    returns: str | None,
) -> tuple[str | None, str | None] | None:
    """Shorten the signatures of the core."""
    del app, what, name, options
    if not type(value).__name__.startswith("nb_") or arguments is None:
        return None
    return _shortened(arguments), _LONG_NAMES.sub("", returns) if returns else returns


def _on_docstring(
    app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Shorten the types of attributes."""
    del app, what, name, value, options
    lines[:] = [_ARRAY.sub("NDArray", _LONG_NAMES.sub("", line)) for line in lines]


def _on_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Offer the notebook below the title of a tutorial, and the tables of results as files."""
    del app
    # The scheme makes a download of a Markdown file that is no page.
    source[0] = re.sub(r"\]\(((?:\.\./results/)?tables/)", r"](path:\1", source[0])
    if docname.startswith("tutorials/"):
        title, rest = source[0].split("\n", 1)
        address = f"../notebooks/{Path(docname).name}.ipynb"
        link = f'<p class="notebook"><a href="{address}" download>Download as a notebook</a></p>'
        source[0] = f"{title}\n\n{link}\n{rest}"


def _on_start(app: Sphinx) -> None:
    """Write the notebooks, and run them if required."""
    folder = Path(app.outdir) / "notebooks"
    for page in sorted(TUTORIALS.glob("*.md")):
        notebook, own = notebook_of(page, url=html_baseurl), folder / page.stem
        own.mkdir(parents=True, exist_ok=True)
        if app.config.execute_tutorials:
            notebook, _ = execute(notebook, own)
        (folder / f"{page.stem}.ipynb").write_text(
            json.dumps(notebook, indent=1) + "\n", encoding="utf-8"
        )


def _on_finished(app: Sphinx, failure: Exception | None) -> None:
    """Write ``llms.txt``: title, address and first paragraph of every page, in course order."""
    if failure is not None or app.builder.name != "html":
        return
    root, lines = app.env.get_doctree(app.config.root_doc), []
    for tree in root.findall(addnodes.toctree):
        lines += ["", f"## {tree['caption']}", ""]
        for _, docname in tree["entries"]:
            page = Path(app.srcdir, f"{docname}.md")
            parts = page.read_text(encoding="utf-8").split("\n\n")
            first = next((part for part in parts[1:] if re.match(r"[\w`*\[{]", part)), "")
            words = " ".join(portable(first, page, html_baseurl)[0].split())
            place = f"{html_baseurl}_sources/{docname}.md.txt"
            lines.append(f"- [{app.env.titles[docname].astext()}]({place}): {words}")
    summary = " ".join(next(root.findall(nodes.paragraph)).astext().split())
    text = "\n".join([f"# {project} {release}", "", f"> {summary}", *lines, ""])
    (Path(app.outdir) / "llms.txt").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the directives and the abbreviations."""
    app.add_config_value("execute_tutorials", default=False, rebuild="env", types=[bool])
    app.add_directive("package", Package)
    app.add_directive("names", Names)
    app.add_directive("result", Result)
    app.connect("source-read", _on_source)
    app.connect("builder-inited", _on_start)
    app.connect("build-finished", _on_finished)
    app.connect("autodoc-process-signature", _on_signature)
    app.connect("autodoc-process-docstring", _on_docstring, priority=900)


# Attributes of one name in several classes are no mistake.
suppress_warnings = ["ref.python"]
