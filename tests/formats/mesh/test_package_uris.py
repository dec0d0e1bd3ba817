"""``package://`` URIs lead to files, and files to URIs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmkit._support.source_location import SourceLocation
from tmkit.errors import FileFormatError
from tmkit.formats import ReadingOptions
from tmkit.formats.mesh.package_uris import PackageResolver

PLACE = SourceLocation("robot.urdf", 7, None, '  <mesh filename="..."/>')
PANDA = "package://pybullet_data/franka_panda/meshes/collision/link0.obj"
EXAMPLE = "package://example-robot-data/robots/panda_description/meshes/collision/link0.stl"


def make(path: Path) -> Path:
    """Make an empty file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def resolver(*folders: Path, ros: tuple[Path, ...] = ()) -> PackageResolver:
    """Return a resolver that does not look at the environment."""
    return PackageResolver(tuple(folders), ros)


def test_given_folders_come_first(tmp_path: Path) -> None:
    """A package is found below a given folder, or is the given folder; the first folder wins."""
    below = make(tmp_path / "one" / "arm" / "m.obj")
    itself = make(tmp_path / "two" / "arm" / "m.obj")
    for folders, expected in [
        ((tmp_path / "one",), below),
        ((tmp_path / "two" / "arm",), itself),
        ((tmp_path / "two" / "arm", tmp_path / "one"), itself),
    ]:
        assert (
            resolver(*folders).resolve("package://arm/m.obj", folder=tmp_path, place=PLACE)
            == expected
        )


@pytest.mark.parametrize("variable", ["ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH"])
def test_ros_package_path_comes_second(
    tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folders of the environment are searched after the given ones."""
    user_file = make(tmp_path / "given" / "arm" / "m.obj")
    ros = make(tmp_path / "ros" / "arm" / "m.obj")
    only_ros = make(tmp_path / "ros" / "arm" / "n.obj")
    monkeypatch.setenv(variable, f"/nowhere:{tmp_path / 'ros'}")
    packages = PackageResolver.of(ReadingOptions(package_path=[tmp_path / "given"]))
    assert packages.resolve("package://arm/m.obj", folder=tmp_path, place=PLACE) == user_file
    assert packages.resolve("package://arm/n.obj", folder=tmp_path, place=PLACE) == only_ros
    assert (
        PackageResolver.of(ReadingOptions(package_path=[])).resolve(
            "package://arm/m.obj", folder=tmp_path, place=PLACE
        )
        == ros
    )


def test_installed_python_package_is_found_without_import(tmp_path: Path) -> None:
    """A URI may name an installed Python package."""
    path = resolver().resolve(PANDA, folder=tmp_path, place=PLACE)
    assert path.is_file()
    assert path.parts[-4:] == ("franka_panda", "meshes", "collision", "link0.obj")


@pytest.mark.parametrize("uri", [EXAMPLE, EXAMPLE.replace("package://", "package:///")])
def test_distribution_with_share_folder_is_found(uri: str, tmp_path: Path) -> None:
    """A distribution that installs share/NAME is a package NAME; a slash too many is forgiven."""
    pytest.importorskip("pinocchio")
    assert resolver().resolve(uri, folder=tmp_path, place=PLACE).is_file()


def test_own_data_is_a_package(tmp_path: Path) -> None:
    """``package://tmkit`` holds the scenes and domains of tmkit."""
    assert (
        resolver()
        .resolve("package://tmkit/scenes/classes.robray", folder=tmp_path, place=PLACE)
        .is_file()
    )


def test_folders_upwards_of_the_naming_file_come_last(tmp_path: Path) -> None:
    """A moved description finds its meshes in its own folder or in a folder above."""
    mesh_file = make(tmp_path / "robot" / "meshes" / "collision" / "a.obj")
    above = make(tmp_path / "arm" / "meshes" / "a.obj")
    packages = resolver()
    uri = "package://meshes/collision/a.obj"
    assert packages.resolve(uri, folder=tmp_path / "robot", place=PLACE) == mesh_file
    assert (
        packages.resolve(
            "package://arm/meshes/a.obj", folder=tmp_path / "arm" / "urdf", place=PLACE
        )
        == above
    )


def test_relative_absolute_and_file_paths(tmp_path: Path) -> None:
    """Paths are relative to the naming file's folder; file:// is absolute."""
    file = make(tmp_path / "meshes" / "a b.obj")
    (tmp_path / "urdf").mkdir()
    packages = resolver()
    for uri in ("../meshes/a b.obj", str(file), f"file://{tmp_path}/meshes/a%20b.obj"):
        path = packages.resolve(uri, folder=tmp_path / "urdf", place=PLACE)
        assert path.read_text() == ""
        assert path.name == file.name


@pytest.mark.parametrize("rest", ["../secret", "a/../../secret", "%2e%2e/secret", "/../secret"])
def test_no_way_out_of_a_package(rest: str, tmp_path: Path) -> None:
    """A package URI cannot climb out of its package, escaped or not."""
    make(tmp_path / "secret")
    (tmp_path / "arm" / "a").mkdir(parents=True)
    with pytest.raises(FileFormatError, match="leads out of its package"):
        resolver(tmp_path).resolve(f"package://arm/{rest}", folder=tmp_path, place=PLACE)
    assert resolver(tmp_path).find(f"package://arm/{rest}") is None


def test_dots_inside_a_package_are_fine(tmp_path: Path) -> None:
    """``..`` that stays inside the package is followed."""
    file = make(tmp_path / "arm" / "m.obj")
    path = resolver(tmp_path).resolve("package://arm/x/../m.obj", folder=tmp_path, place=PLACE)
    assert path == file


def test_missing_package_lists_where_it_was_looked_for(tmp_path: Path) -> None:
    """The error for an unknown package lists the searched folders and the options, at its line."""
    message = (
        r"robot.urdf:7: there is no file 'package://arm/m.obj'; the package 'arm' was not found in"
        r" .*given.*ros.*"
    )
    with pytest.raises(FileFormatError, match=message + "--package arm=DIR .* or ROS_PACKAGE_PATH"):
        resolver(tmp_path / "given", ros=(tmp_path / "ros",)).resolve(
            "package://arm/m.obj", folder=tmp_path, place=PLACE
        )


def test_missing_file_in_a_package_names_the_nearest(tmp_path: Path) -> None:
    """A misspelt file of a known package is answered with the nearest file."""
    with pytest.raises(
        FileFormatError, match=r"'pybullet_data' was found at .*; did you mean 'link0.obj'\?"
    ):
        resolver().resolve(PANDA.replace("link0.obj", "lnk0.obj"), folder=tmp_path, place=PLACE)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("package://", "is not a package URI"),
        ("package://arm", "is not a package URI"),
        ("package://arm/", "is not a package URI"),
        (
            "http://example.org/a.obj",
            "cannot read 'http://example.org/a.obj'; expected package://, file:// or a path",
        ),
        ("nothing.obj", "there is no file 'nothing.obj'"),
        ("", "there is no file ''"),
    ],
)
def test_other_uris_are_rejected(uri: str, reason: str, tmp_path: Path) -> None:
    """A URI that is not a package, file or path is rejected."""
    with pytest.raises(FileFormatError, match=reason):
        resolver().resolve(uri, folder=tmp_path, place=PLACE)


@pytest.mark.parametrize("uri", [PANDA, EXAMPLE, "package://tmkit/scenes/classes.robray"])
def test_portable_uri_is_the_way_back(uri: str, tmp_path: Path) -> None:
    """A file of an installed package has a URI that leads to it again."""
    pytest.importorskip("pinocchio")
    packages = resolver()
    assert packages.portable_uri(packages.resolve(uri, folder=tmp_path, place=PLACE)) == uri


def test_portable_uri_of_a_given_folder(tmp_path: Path) -> None:
    """A file below a given folder is named by its package; any other file has no portable name."""
    file = make(tmp_path / "given" / "arm" / "m.obj")
    assert resolver(tmp_path / "given").portable_uri(file) == "package://arm/m.obj"
    assert resolver().portable_uri(file) is None
