"""Tutorials as Jupyter notebooks.

Usage: ``python tools/notebooks.py [--execute] [--out FOLDER] [NAME...]``.

A page of ``docs/tutorials`` is the source of its notebook: a page diffs, a notebook does not. The
marks of the pages (``tests/test_docs.py`` lists them) become cells: ``run`` Python, ``file`` a file
to write, ``shell`` a command, ``output`` the recorded output of the cell before, and the directive
``result`` a display of the file that it names. Pictures are put into the notebook, links to other
pages become their titles.

With ``--execute`` each notebook is run by a kernel in a separate folder, and an output that is
not the page's is an error. This needs the extra ``docs``; ``docs/conf.py`` and the tests use the
same functions.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import logging
import os
import re
import resource
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
WIDTH = 120
_BLOCK = re.compile(
    r"^(?:<!-- (run|output|shell|file: \S+) -->\n)?```(?:\{(\w+)\} ?([^\n]*)|(\w*))\n(.*?)^```$\n?",
    re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"^\([\w-]+\)=\n", re.MULTILINE)
_ROLE = re.compile(r"\{\w+\}`(?:~[\w.]*\.)?([^`<]+?)(?: <[^`>]*>)?`")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        mark: the mark before it, without the brackets; empty for a block without one.
        language: the word after the fence; empty for a directive.
        directive: name of the directive; empty for code.
        argument: text behind the name of the directive.
        text: the lines between the fences.
        line: the line on which the text begins, from 1.
        start, end: where the block with its mark begins and ends in the page.
    """

    mark: str
    language: str
    directive: str
    argument: str
    text: str
    line: int
    start: int
    end: int


def blocks_of(page: Path) -> list[Block]:
    """Return all fenced blocks of a page; every Python block of the README is run."""
    text = page.read_text(encoding="utf-8")
    blocks = []
    for match in _BLOCK.finditer(text):
        mark, language = match[1] or "", match[4] or ""
        if page == ROOT / "README.md" and language == "python":
            mark = "run"
        line = text.count("\n", 0, match.start(5)) + 1
        block = Block(
            mark,
            language,
            match[2] or "",
            match[3] or "",
            match[5],
            line,
            match.start(),
            match.end(),
        )
        blocks.append(block)
    return blocks


def wrap(text: str) -> str:
    """Return a text whose lines are wrapped at blanks to the width of a page."""
    lines = [
        textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
        for line in text.split("\n")
    ]
    return "\n".join(part for line in lines for part in line)


def notebook_of(page: Path, *, url: str = "") -> dict[str, Any]:
    """Return the notebook of a page, as the JSON of format 4.5.

    Args:
        page: the page.
        url: where the pages are, with a slash at the end; without it links to pages are their
            titles only.
    """
    text, cells, position = page.read_text(encoding="utf-8"), [], 0

    def add(kind: str, source: str, **more: Any) -> None:
        name = hashlib.sha256(f"{len(cells)}\0{source}".encode()).hexdigest()[:12]
        cells.append({"cell_type": kind, "id": name, "metadata": {}, "source": source, **more})

    def add_prose(prose: str) -> None:
        if prose.strip():
            source, attachments = portable(prose.strip(), page, url)
            add("markdown", source, **({"attachments": attachments} if attachments else {}))

    for block in blocks_of(page):
        if not block.mark and not block.directive:
            continue  # code to read: it stays in the prose
        add_prose(text[position : block.start])
        position = block.end
        if block.mark == "output":
            cells[-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": block.text}]
        elif source := _cell_source(block):
            add("code", source, execution_count=None, outputs=[])
    add_prose(text[position:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cell_source(block: Block) -> str:
    """Return the code of a block's cell; empty where the block is for the page alone."""
    code = block.text.rstrip("\n")
    if block.mark == "run":
        return code
    if block.mark == "shell":
        return f"%%bash\n{code.removeprefix('$ ')}"
    if block.mark:
        return f"%%writefile {block.mark.removeprefix('file: ')}\n{code}"
    if block.directive == "result":
        shown = (
            "Image({!r})" if Path(block.argument).suffix == ".png" else 'IFrame({!r}, "100%", 500)'
        )
        return f"from IPython.display import IFrame, Image\n\n{shown.format(block.argument)}"
    return ""


def portable(prose: str, page: Path, url: str) -> tuple[str, dict[str, Any]]:
    """Return Markdown that needs no other file, and the pictures attached to it.

    Args:
        prose: a part of the page.
        page: the page.
        url: where the pages are; without it links to pages are their titles only.
    """
    attachments: dict[str, Any] = {}

    def link(match: re.Match[str]) -> str:
        picture, words, target = match[1], match[2], match[3]
        if "://" in target:
            return match[0]
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if picture:
            kind = {".jpg": "image/jpeg"}.get(path.suffix, f"image/{path.suffix[1:]}")
            attachments[path.name] = {kind: base64.b64encode(path.read_bytes()).decode()}
            return f"![{words}](attachment:{path.name})"
        words = words or path.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
        place = path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        return f"[{words}]({url}{place}{f'#{anchor}' if anchor else ''})" if url else f"*{words}*"

    return _LINK.sub(link, _ROLE.sub(r"`\1`", _LABEL.sub("", prose))), attachments


def execute(notebook: dict[str, Any], folder: Path) -> tuple[dict[str, Any], float]:
    """Run a notebook by a kernel, and compare its output with the recorded output.

    Args:
        notebook: as :func:`notebook_of` returns it; it stays as it is.
        folder: the working folder of the kernel, which its cells write to.

    Returns:
        The notebook with its outputs, and the seconds of processor time of the kernel with all its
        children.

    Raises:
        AssertionError: if a cell's output differs or is a warning; the message has both texts.
        nbclient.exceptions.CellExecutionError: a cell raises an error.
    """
    import nbformat
    from nbclient import NotebookClient

    logging.getLogger("traitlets").setLevel(logging.WARNING)
    begin, path = _child_seconds(), os.environ.get("PATH", "")
    expected = [
        "".join(output["text"] for output in cell.get("outputs", [])) for cell in notebook["cells"]
    ]
    ran = nbformat.from_dict(json.loads(json.dumps(notebook)))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}",
        "NO_COLOR": "1",
    }
    quiet, place = ["--log-level=ERROR"], {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        ran, timeout=600, kernel_name="python3", extra_arguments=quiet, resources=place
    )
    client.execute(env=environment)
    for number, (cell, recorded) in enumerate(zip(ran.cells, expected, strict=True)):
        streams = [output for output in cell.get("outputs", []) if output.output_type == "stream"]
        printed = "".join(output.text for output in streams if output.name == "stdout")
        warned = "".join(output.text for output in streams if output.name == "stderr")
        assert not warned, f"cell {number} warns:\n{warned}"
        if not cell.source.startswith("%%writefile"):
            assert wrap(printed) == recorded, (
                f"cell {number} prints otherwise:\n{printed}\nrecorded:\n{recorded}"
            )
    return dict(ran), _child_seconds() - begin


def _child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Write the notebooks of all tutorials, or of those named."""
    parser = argparse.ArgumentParser(description="Write the tutorials as Jupyter notebooks.")
    parser.add_argument("names", nargs="*", help="tutorials, all by default")
    parser.add_argument("--out", type=Path, default=Path("notebooks"), help="folder to write to")
    parser.add_argument(
        "--execute", action="store_true", help="run them, and compare with what the pages say"
    )
    options = parser.parse_args()
    pages = [TUTORIALS / f"{name}.md" for name in options.names] or sorted(TUTORIALS.glob("*.md"))
    total = 0.0
    options.out.mkdir(parents=True, exist_ok=True)
    for page in pages:
        notebook, seconds = notebook_of(page), 0.0
        if options.execute:
            notebook, seconds = execute(notebook, options.out)
        total += seconds
        (options.out / f"{page.stem}.ipynb").write_text(
            json.dumps(notebook, indent=1) + "\n", encoding="utf-8"
        )
        sys.stdout.write(
            f"{page.stem}.ipynb{f'  {seconds:.1f} s of processor' if options.execute else ''}\n"
        )
    if options.execute:
        sys.stdout.write(f"{total:.1f} s of processor time in all\n")


if __name__ == "__main__":
    main()
