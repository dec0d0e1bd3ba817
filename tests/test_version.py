"""The version of a build, from git's tags."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.processes import run_process

import tmkit as tk

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def provider() -> Any:
    """Return the provider of the version, as scikit-build-core loads it."""
    spec = importlib.util.spec_from_file_location(
        "tmkit_version", ROOT / "cmake" / "tmkit_version.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def git(tmp_path: Path) -> Callable[..., None]:
    """Return a function that runs git in an empty clone."""
    if shutil.which("git") is None:
        pytest.skip("no program 'git' here")
    names = {
        f"GIT_{who}_{what}": "a@b.c"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    environment = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull}

    def run(*arguments: str) -> None:
        run_process(
            ["git", "-C", str(tmp_path), *arguments],
            env=environment,
            check=True,
            capture_output=True,
        )

    run("init")
    run("commit", "--allow-empty", "-m", "first")
    return run


def test_tags_give_the_version(provider: Any, git: Callable[..., None], tmp_path: Path) -> None:
    """A tag is its version, later commits are development versions; other tags are ignored."""
    git("tag", "nightly")
    assert provider.version_of(tmp_path, "0.1.0") == "0.1.0"
    git("tag", "v1.2.9")
    assert provider.version_of(tmp_path, "0.1.0") == "1.2.9"
    git("commit", "--allow-empty", "-m", "second")
    git("tag", "newest")
    assert provider.version_of(tmp_path, "0.1.0") == "1.2.10.dev1"


def test_archives_have_the_version_of_their_metadata(
    provider: Any, git: Callable[..., None], tmp_path: Path
) -> None:
    """An archive has its recorded version, or the fallback, even within another clone."""
    git("tag", "v7.0.0")
    archive = tmp_path / "archive"
    archive.mkdir()
    assert provider.version_of(archive, "0.1.0") == "0.1.0"
    (archive / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: tmkit-robotics\nVersion: 2.3.4\n"
    )
    assert provider.version_of(archive, "0.1.0") == "2.3.4"


def test_only_the_version_is_provided(provider: Any) -> None:
    """Another field, or no fallback, is an error of the project's configuration."""
    with pytest.raises(RuntimeError, match="gives the version only, and needs a 'fallback'"):
        provider.dynamic_metadata("description", {"fallback": "0.1.0"})
    with pytest.raises(RuntimeError, match="needs a 'fallback'"):
        provider.dynamic_metadata("version", {})


def test_the_package_has_the_version_of_its_distribution() -> None:
    """``tmkit.__version__`` is that of the installed distribution."""
    assert tk.__version__ == importlib.metadata.version("tmkit-robotics")
