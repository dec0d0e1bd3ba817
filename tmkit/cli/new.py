"""``tmkit new``: write a commented scene, domain or robot description that plans as it is, to be changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from tmkit._support.data import data_path
from tmkit.cli.common import say
from tmkit.cli.new_robot import robot
from tmkit.errors import OutputError

app = typer.Typer(help="Write a scene, a domain or a robot description.", no_args_is_help=True)
app.command()(robot)

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


@app.command()
def domain(
    target: Annotated[Path, typer.Argument(metavar="NAME", help="The folder to write; its name is the domain's.")],
) -> None:
    """Write a folder with a PDDL domain, its semantics and a scene: objects in trays."""
    name = target.name
    if not _NAME.fullmatch(name):
        raise typer.BadParameter(
            f"'{name}' is no PDDL name: lower-case letters, digits, '_' and '-'", param_hint="NAME"
        )
    template = data_path("examples/trays")
    texts = {
        target / file: (template / source).read_text(encoding="utf-8").replace("(domain trays)", f"(domain {name})")
        for file, source in (
            ("domain.pddl", "domain.pddl"),
            ("semantics.py", "semantics.py"),
            ("scene.robray", "trays.robray"),
        )
    }
    _write(
        {file: text.replace("the trays domain", f"the {name} domain") for file, text in texts.items()}, folder=target
    )
    folder = target if len(target.parts) > 1 else f"./{target}"
    goal = "(forall (?i - item) (in ?i right))"
    say(f'Try it: tmkit plan panda_table {target}/scene.robray --domain {folder} --goal "{goal}" -o plan.json')


@app.command()
def scene(target: Annotated[Path, typer.Argument(metavar="NAME", help="The file to write, NAME.robray.")]) -> None:
    """Write a scene with a robot at a table, a wall and two blocks."""
    if target.suffix not in ("", ".robray"):
        raise typer.BadParameter(f"'{target}' does not end in .robray", param_hint="NAME")
    file = target.with_suffix(".robray")
    _write({file: data_path("examples/cell/cell.robray").read_text(encoding="utf-8")})
    say(f'Try it: tmkit plan {file} --robot panda --domain blocks --goal "(on a b)" -o plan.json')


def _write(texts: dict[Path, str], *, folder: Path | None = None) -> None:
    """Write new files, in a new folder if one is given, or raise an OutputError; what exists stays as it is."""
    path = folder
    try:
        if folder is not None:
            folder.mkdir()
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            say(f"Written to {path}")
    except OSError as error:
        hint = "; choose another name, or remove it" if isinstance(error, FileExistsError) else ""
        reason = error.strerror
        raise OutputError(f"{path}: cannot be written: {reason}{hint}", path=str(path), reason=reason) from None
