"""Shared parts of commands: options, loading of scenes, and early checks of outputs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmkit.cli.completion import complete_domains, complete_robots, complete_scenes
from tmkit.cli.reporting import progress
from tmkit.errors import MissingExtraError, OutputError, TmkitError, UnknownNameError

if TYPE_CHECKING:
    from tmkit._support.source_location import ImportNote
    from tmkit.formats import ReadingOptions
    from tmkit.formats.goal_scene import GoalScene
    from tmkit.graph import SceneGraph
    from tmkit.plug_ins import MakerGroup

_logger = logging.getLogger(__name__)

Scenes = Annotated[
    list[str],
    typer.Argument(
        metavar="SCENE",
        help="Scene files, MoveIt configuration folders, or built-in names; merged in order.",
        autocompletion=complete_scenes,
    ),
]
AllowXacro = Annotated[
    bool, typer.Option("--allow-xacro", help="Expand .xacro files, which runs their code.")
]
XacroValues = Annotated[
    list[str] | None,
    typer.Option(
        "--xacro",
        metavar="NAME:=VALUE",
        help="An argument of the .xacro files; repeatable; implies --allow-xacro.",
    ),
]
AllowFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow",
        metavar="DIR",
        help="A folder from which the scene may read meshes and includes; repeatable.",
    ),
]
Packages = Annotated[
    list[str] | None,
    typer.Option(
        "--package",
        metavar="[NAME=]DIR",
        help="The folder of a package, or a folder that contains packages; repeatable.",
    ),
]
Meshes = Annotated[
    str,
    typer.Option(
        metavar="load|available|skip|visual-as-collision",
        help=(
            "Meshes of robot descriptions: all, those that can be read, none, or all, and links"
            " without collision shapes collide as they are drawn."
        ),
    ),
]
PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN.json|PLAN.tmp", help="A plan written by 'tmkit plan'.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON to the standard output.")
]
Seed = Annotated[
    int,
    typer.Option(help="Seed of the random generators; the same seed gives the same result.", min=0),
]
DomainOption = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="NAME|DIR",
        help="The folder of the domain, if it is not built in.",
        autocompletion=complete_domains,
    ),
]
SemanticsOption = Annotated[
    str | None,
    typer.Option(
        "--semantics",
        metavar="NAME|DIR|FILE.py",
        help="The domain semantics, if not the semantics.py beside the domain.",
    ),
]
RobotOption = Annotated[
    list[str] | None,
    typer.Option(
        "--robot",
        metavar="NAME|FILE",
        help="The arm, by default panda; repeatable, for several arms.",
        autocompletion=complete_robots,
    ),
]


@dataclass(frozen=True)
class FileOptions:
    """Folders and packages from which the files of a scene may be read, and arguments of xacro."""

    allow: AllowFolders = None
    package: Packages = None
    allow_xacro: AllowXacro = False
    xacro: XacroValues = None

    def reading_options(self) -> ReadingOptions:
        """Return the options of the scene reader.

        Raises:
            typer.BadParameter: if a package occurs twice or its folder does not exist, or an
                argument of xacro is not of the form ``NAME:=VALUE`` or occurs twice.
        """
        from tmkit.formats import ReadingOptions

        packages, package_path = package_folders(self.package)
        return ReadingOptions(
            package_path=package_path,
            packages=packages,
            allow_folders=tuple(self.allow or ()),
            allow_xacro=xacro_values(self.xacro) or self.allow_xacro,
        )


@dataclass(frozen=True)
class SceneFileOptions(FileOptions):
    """Folders, packages, arguments of xacro and meshes of the files of a scene."""

    meshes: Meshes = "load"

    def reading_options(self) -> ReadingOptions:
        """Return the options of the scene reader; see :class:`FileOptions`."""
        return replace(super().reading_options(), meshes=self.meshes)


@dataclass(frozen=True)
class DomainOptions:
    """PDDL domain and its semantics."""

    domain: DomainOption = None
    semantics: SemanticsOption = None


def built_in_names(group: MakerGroup[Any], *, separator: str) -> str:
    """Return the names of the built-in plug-ins of a group, joined for a help text."""
    return separator.join(value.usage for value in group.built_in())


def require_plug_in(group: MakerGroup[Any], name: str, *, option: str) -> None:
    """Check that a group has a plug-in of a name, before any work is done.

    Raises:
        typer.BadParameter: if the name is unknown.
    """
    try:
        group.find(name.partition(":")[0])
    except UnknownNameError:
        names = ", ".join([built_in_names(group, separator=", "), *group.plug_in_keys()])
        raise typer.BadParameter(f"'{name}' is none of {names}", param_hint=option) from None


def note(message: str) -> None:
    """Print a remark beside the result, on the standard error."""
    _logger.warning("%s", message)


def load(
    scenes: list[str],
    *,
    reading: ReadingOptions | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
    on_file: Callable[[Path], None] | None = None,
    complete: bool = True,
) -> SceneGraph:
    """Load scene files, merged in order; see :func:`tmkit.formats.load_scene`."""
    from tmkit.formats import load_scene

    with progress("reading the scene"):
        return load_scene(
            *scenes, reading=reading, on_note=on_note, on_file=on_file, complete=complete
        )


def load_goal(
    scene: SceneGraph, files: list[str], *, reading: ReadingOptions | None = None
) -> GoalScene:
    """Load the scene files that describe the goal, on top of the start scene; see :func:`load`."""
    from tmkit.formats import load_goal_scene

    with progress("reading the goal"):
        return load_goal_scene(scene, *files, reading=reading)


def package_folders(packages: Sequence[str] | None) -> tuple[dict[str, Path], tuple[Path, ...]]:
    """Return the folders of packages by name, and the folders that contain packages.

    Args:
        packages: texts ``NAME=DIR`` for a package, and ``DIR`` for a folder of packages.

    Raises:
        typer.BadParameter: if a text has another form, a name occurs twice, or a folder of packages
            does not exist.
    """
    folders: dict[str, Path] = {}
    containing: list[Path] = []
    for text in packages or ():
        name, _, folder = text.partition("=")
        if name and folder and "/" not in name:
            if name in folders:
                raise typer.BadParameter(f"package '{name}' is given twice", param_hint="--package")
            folders[name] = Path(folder)
        elif text and Path(text).is_dir():
            containing.append(Path(text))
        else:
            raise typer.BadParameter(
                f"'{text}' is not of the form NAME=DIR, nor a folder", param_hint="--package"
            )
    return folders, tuple(containing)


def xacro_values(arguments: Sequence[str] | None) -> dict[str, str]:
    """Parse ``NAME:=VALUE`` texts to the arguments of xacro files, by name.

    Raises:
        typer.BadParameter: if a text has another form or a name occurs twice.
    """
    values: dict[str, str] = {}
    for text in arguments or ():
        name, mark, value = text.partition(":=")
        if not name.strip() or not mark:
            raise typer.BadParameter(
                f"'{text}' is not of the form NAME:=VALUE", param_hint="--xacro"
            )
        if name.strip() in values:
            raise typer.BadParameter(f"'{name.strip()}' is given twice", param_hint="--xacro")
        values[name.strip()] = value
    return values


@contextmanager
def errors_about(path: object | None) -> Iterator[None]:
    """Add the input file to errors raised in the block that do not contain it.

    Errors about outputs and missing extras stay unchanged.
    """
    try:
        yield
    except (OutputError, MissingExtraError):
        raise
    except TmkitError as error:
        if path is not None:
            error.name_source(str(path))
        raise


def make_folder(folder: Path) -> Path:
    """Create a folder for outputs, if needed, and check that files can be written to it.

    Raises:
        OutputError: if the folder cannot be created or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
        raise OutputError(
            f"{folder}: cannot be made: {reason}", path=str(folder), reason=reason
        ) from None
    require_writable(folder / "plan.json")
    return folder


def require_writable(path: Path) -> None:
    """Check that a file can be written, before any work is done.

    Raises:
        OutputError: if it cannot be written.
    """
    from tmkit._support.output import check_writable

    check_writable(path)


def write_json(path: Path, document: object) -> None:
    """Write JSON values, or a JSON text, atomically."""
    from tmkit._support.output import write_text

    text = document if isinstance(document, str) else json.dumps(document, indent=1, sort_keys=True)
    write_text(path, text.rstrip("\n") + "\n")
