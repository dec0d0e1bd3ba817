"""Domains and examples import only documented names."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*(ROOT / "domains").glob("*/*.py"), *(ROOT / "examples").rglob("*.py")])
REFERENCE = "\n".join(
    page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "reference").rglob("*.md"))
)
DOCUMENTED = re.findall(r"^\.\. package:: (tmkit[\w.]*)$", REFERENCE, re.MULTILINE)


def undocumented_imports(source: str) -> list[str]:
    """Return the imports of a file from tmkit that are not public names."""
    public = {"tmkit", *DOCUMENTED}
    imports = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imports += [
                name.name
                for name in node.names
                if name.name.startswith("tmkit.") and name.name not in public
            ]
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "tmkit":
            module = str(node.module)
            names = importlib.import_module(module).__all__ if module in public else []
            private = "._" in module
            submodules = {
                name.rpartition(".")[2] for name in public if name.rpartition(".")[0] == module
            }
            wrong = (
                name.name
                for name in node.names
                if private or name.name not in {*names, *submodules}
            )
            imports += [f"{module}.{name}" for name in wrong]
    return imports


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_documented_names_only(path: Path) -> None:
    """Neither private packages nor modules inside of a package, and only names of ``__all__``."""
    assert undocumented_imports(path.read_text(encoding="utf-8")) == []


def test_domains_are_found() -> None:
    """The law above is about eight domains and more than ten examples."""
    assert sum(path.name == "semantics.py" for path in FILES) >= 9
    assert len(FILES) > 20


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from tmkit._support.elementary import cos", ["tmkit._support.elementary.cos"]),
        ("from tmkit._support import Note", ["tmkit._support.Note"]),
        (
            "from tmkit.tamp.domains.tabletop import footprint",
            ["tmkit.tamp.domains.tabletop.footprint"],
        ),
        ("from tmkit.tamp import loading", ["tmkit.tamp.loading"]),
        ("import tmkit.tamp.run", ["tmkit.tamp.run"]),
        ("import tmkit as tk\nfrom tmkit.tamp import domains, plan\nimport numpy", []),
    ],
)
def test_other_imports_are_found(source: str, expected: list[str]) -> None:
    """Each way to import something that the reference does not have is named."""
    assert undocumented_imports(source) == expected
