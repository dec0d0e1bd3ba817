"""The data that travels with tmkit is found by name, wherever it lies."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import tmkit._support.data
from tmkit._support.data import data_path, data_roots, resolve_name
from tmkit.errors import MissingFileError


def test_folder_and_file_are_found() -> None:
    """A name with forward slashes gives an existing absolute path, a folder or a file."""
    assert data_path("scenes").is_dir()
    path = data_path("scenes/panda_table.robray")
    assert path.is_file()
    assert path.is_absolute()


def test_data_does_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same name gives the same path from anywhere."""
    before = data_path("scenes/classes.robray")
    monkeypatch.chdir(tmp_path)
    assert data_path("scenes/classes.robray") == before


def test_unknown_data_names_the_nearest() -> None:
    """A misspelt name is answered with the nearest that exists."""
    with pytest.raises(
        MissingFileError,
        match=r"no data named 'scenes/blokcs3.robray'; did you mean 'scenes/blocks3",
    ) as e:
        data_path("scenes/blokcs3.robray")
    assert e.value.data["nearest"] == "scenes/blocks3.robray"


@pytest.mark.parametrize("name", ["", "../pyproject.toml", "/etc/passwd", "scenes/../../x"])
def test_names_cannot_leave_the_data(name: str) -> None:
    """Only data in the package has a data name: no absolute path, no parent folder."""
    with pytest.raises(MissingFileError, match="no data named"):
        data_path(name)


def test_bare_name_means_ours() -> None:
    """A name without separator and suffix is a built-in name; suffixes are tried in order."""
    assert resolve_name("blocks1", "scenes", suffixes=(".urdf", ".robray")) == data_path(
        "scenes/blocks1.robray"
    )


def test_anything_with_separator_or_suffix_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A separator, a suffix or a Path object makes it a path of the user's own."""
    monkeypatch.chdir(tmp_path)
    Path("mine.robray").write_text("")
    Path("blocks1").write_text("")
    assert resolve_name("mine.robray", "scenes") == Path("mine.robray")
    assert resolve_name("./blocks1", "scenes") == Path("blocks1")
    assert resolve_name(Path("blocks1"), "scenes") == Path("blocks1")


def test_missing_names_are_answered_with_the_nearest(tmp_path: Path) -> None:
    """Both kinds of name list close matches; a bare one has advice on paths."""
    with pytest.raises(
        MissingFileError,
        match=r"no 'blocks_1' in scenes; did you mean 'blocks1'\?.*separator or suffix",
    ):
        resolve_name("blocks_1", "scenes", suffixes=(".robray",))
    (tmp_path / "kitchen.robray").write_text("")
    with pytest.raises(
        MissingFileError, match=r"no file '.*kichen.robray'; did you mean '.*kitchen.robray'"
    ):
        resolve_name(tmp_path / "kichen.robray", "scenes")
    (tmp_path / "kichen.md").write_text("")
    # the other is no scene
    with pytest.raises(MissingFileError, match=r"did you mean '.*kitchen.robray'"):
        resolve_name(tmp_path / "kichen.urdf", "scenes", suffixes=(".urdf", ".robray"))


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_odd_names_are_paths(name: str) -> None:
    """A dot is a path, not a bare name of ours."""
    assert resolve_name(name, "scenes") == Path(name)


def test_installed_without_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a checkout around it, the package finds its data in its own folder ``data_files``."""
    package = tmp_path / "site-packages" / "tmkit"
    scenes = package / "data_files" / "scenes"
    scenes.mkdir(parents=True)
    (scenes / "one.robray").write_text("")
    monkeypatch.setattr(tmkit._support.data, "__file__", str(package / "_support" / "data.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert data_roots() == (package / "data_files",)
    assert data_path("scenes/one.robray") == scenes / "one.robray"


def test_redirected_sources_find_the_installed_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the sources are redirected, the other places of the package are searched as well."""
    sources, installed = tmp_path / "src" / "tmkit", tmp_path / "lib" / "tmkit"
    (installed / "data_files" / "scenes").mkdir(parents=True)
    (installed / "data_files" / "scenes" / "one.robray").write_text("")
    spec = importlib.util.spec_from_loader("tmkit", loader=None, is_package=True)
    assert spec is not None
    spec.submodule_search_locations = [str(sources), str(installed)]
    monkeypatch.setattr(tmkit._support.data, "__file__", str(sources / "_support" / "data.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    assert data_path("scenes/one.robray").is_relative_to(installed)


def test_a_checkout_has_its_own_data() -> None:
    """From a checkout the domains and scenes of the checkout are used, not copies of them."""
    root = Path(__file__).resolve().parents[2]
    if Path(tmkit.__file__).resolve().parents[1] == root:
        assert data_path("domains/blocks") == root / "domains" / "blocks"
