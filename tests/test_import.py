"""What importing tmkit costs, and what it says when it cannot be imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tmkit


def run_python(code: str, *, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter in a folder."""
    command = [sys.executable, "-W", "error", "-c", code]
    variables = {**os.environ, **environment}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture
def bare_source(tmp_path: Path) -> Path:
    """Copy the Python sources as a clone holds them, without the compiled core."""
    package = Path(tmkit.__file__).parent
    ignored = shutil.ignore_patterns("*.so", "_libraries", "__pycache__", "core", "data_files")
    shutil.copytree(package, tmp_path / "tmkit", ignore=ignored)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'tmkit'\n")
    return tmp_path


def test_the_bare_source_folder_says_what_to_do(bare_source: Path) -> None:
    """Without the compiled core, importing tmkit is one ImportError of one line that names the command."""
    # -S and an empty path: an installed tmkit must not answer in its place.
    code = f"import sys; sys.path.insert(0, {str(bare_source)!r}); import tmkit"
    command = [sys.executable, "-I", "-S", "-c", code]
    run = subprocess.run(command, cwd=bare_source, capture_output=True, text=True, check=False)
    last = run.stderr.strip().splitlines()[-1]
    assert run.returncode == 1
    assert last.startswith("ImportError: this is tmkit's source folder, whose compiled core is not installed")
    assert "pip install -e ." in last
    assert "During handling" not in run.stderr


def test_importing_is_light(tmp_path: Path) -> None:
    """``import tmkit`` brings numpy at most: what is heavy is imported where it is used."""
    heavy = ["scipy", "trimesh", "pybullet", "pddlpy", "ruckig", "lark", "typer", "rich", "lxml", "PIL", "collada"]
    code = f"import sys, tmkit; print([name for name in {heavy} if name in sys.modules])"
    run = run_python(code, folder=tmp_path)
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_importing_prints_nothing_and_leaves_logging_alone(tmp_path: Path) -> None:
    """A library is silent: no output, no handler, no warning."""
    code = "import logging, tmkit; assert not logging.root.handlers; tmkit.SceneGraph().add_frame('a', 'world')"
    run = run_python(code, folder=tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_public_names_are_there(tmp_path: Path) -> None:
    """Every name in ``tmkit.__all__`` can be had, and ``dir`` lists them; any other is an AttributeError."""
    code = "import tmkit; [getattr(tmkit, n) for n in tmkit.__all__]; assert set(tmkit.__all__) <= set(dir(tmkit))"
    run = run_python(code, folder=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    with pytest.raises(AttributeError, match="module 'tmkit' has no attribute 'SceneGraf'"):
        tmkit.SceneGraf  # noqa: B018  # that it fails is the test
