"""Plans on the command line: a JSON file stands alone, a ``.tmp`` file of the original needs what it was made for.

A ``.tmp`` file holds actions and motions only. So the commands that take a plan take the scene, arm, domain and goal
beside it, as ``tmkit plan`` does; for a JSON plan, which says all this itself, they are refused and not ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit.cli.common import load
from tmkit.cli.completion import Kind, complete_names
from tmkit.cli.start import start_configuration

if TYPE_CHECKING:
    from tmkit.plans import Plan

TmpScenes = Annotated[
    list[str] | None,
    typer.Option(
        "--scene", metavar="SCENE",
        help="For a .tmp plan: its initial scene; repeatable, merged. With a JSON plan: to compare with its own.",
    ),
]  # fmt: skip
TmpRobot = Annotated[
    list[str] | None,
    typer.Option(
        "--robot", metavar="NAME|FILE", help="For a .tmp plan: the arm, if not its own; repeatable, for several.",
        autocompletion=complete_names(Kind.ROBOTS),
    ),
]  # fmt: skip
TmpGoal = Annotated[
    str | None, typer.Option("--goal", metavar="EXPR", help="For a .tmp plan: the goal, if not its own.")
]
TmpStart = Annotated[
    str | None,
    typer.Option("--start", metavar="FILE|k=v,...", help="For a .tmp plan: joint values that it does not contain."),
]


def load_plan_file(
    path: Path, *, scenes: list[str] | None, robot: list[str] | None, domain: str | None, semantics: str | None,
    goal: str | None, start: str | None, allow: list[Path] | None, packages: list[str] | None, meshes: str,
    compares: bool = False,
) -> Plan:  # fmt: skip
    """Load a JSON or ``.tmp`` plan, by the suffix of its file.

    Args:
        scenes, goal, start: of a ``.tmp`` plan.
        packages: entries ``NAME=DIR``.
        compares: compare ``scenes`` and ``robot`` with those of a JSON plan, instead of refusing them.

    Raises:
        PlanFileError: the plan is broken, or was made with another domain.
        typer.BadParameter: a ``.tmp`` plan has no scene, or a JSON plan has what it says itself.
    """
    from tmkit.plans import load_plan
    from tmkit.tamp.domains.loading import check_plan_domain
    from tmkit.tamp.validation.tmp_plan import load_tmp_plan, read_tmp_header

    if path.suffix != ".tmp":
        given: dict[str, object] = {"--goal": goal, "--start": start}
        if not compares:
            given |= {"--scene": scenes, "--robot": robot}
        if not scenes:
            given |= {"--allow": allow, "--package": packages, "--meshes": meshes if meshes != "load" else None}
        for option, value in given.items():
            _refuse_beside_json(path, option, value)
        plan = load_plan(path)
        check_plan_domain(plan, path, domain, semantics)
        return plan
    if not scenes:
        raise typer.BadParameter(
            f"'{path}' is a .tmp plan, which has no scene in it; name the scene it starts in, e.g. --scene panda_table",
            param_hint="--scene",
        )
    scene = load(scenes, allow=allow, packages=packages, meshes=meshes)
    arms = robot or list(read_tmp_header(path).robots)
    return load_tmp_plan(
        path, scene, q=start_configuration(scene, arms, start), domain=domain, semantics=semantics, robot=arms,
        goal=goal,
    )  # fmt: skip


def _refuse_beside_json(path: Path, option: str, value: object) -> None:
    """Refuse an option that is given although the plan says itself what it would say."""
    if path.suffix != ".tmp" and value:
        raise typer.BadParameter(f"'{path}' contains this; only a .tmp plan needs it", param_hint=option)


def refuse_beside_problem(path: Path, option: str, value: object) -> None:
    """Refuse an option beside a problem file that states the same."""
    if value:
        raise typer.BadParameter(f"'{path}' states this itself", param_hint=option)
