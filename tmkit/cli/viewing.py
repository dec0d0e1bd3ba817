"""``tmkit view``: scenes, problems, plans and stores in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit.cli.common import (
    AllowFolders,
    DomainOption,
    Meshes,
    Packages,
    load,
    reading_of,
    require_writable,
)
from tmkit.cli.completion import Kind, complete_names
from tmkit.cli.inputs import read_json_file, start_configuration
from tmkit.cli.reporting import progress, say

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import Plan
    from tmkit.tamp import PlanningProblem
    from tmkit.visualization import Viewer

_PLAN, _PROBLEM = ".json", ".toml"

Port = Annotated[
    int, typer.Option(metavar="N", help="Port of the page; 0 for any free one.", min=0, max=65535)
]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
]


def view(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENE...|PLAN.json|PROBLEM.toml|STORE[:BRANCH]",
            autocompletion=complete_names(Kind.SCENES),
            help=(
                "Scene files or built-in names, merged in order; or a plan, a problem, or the"
                " folder of a store."
            ),
        ),
    ],
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="SCENE",
            help="A scene to show beside it, with the difference coloured.",
        ),
    ] = None,
    domain: DomainOption = None,
    robot: Annotated[
        list[str] | None,
        typer.Option(
            "--robot",
            metavar="NAME|FILE",
            help="Arm of a scene, for its ready configuration; repeatable.",
            autocompletion=complete_names(Kind.ROBOTS),
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="FILE|k=v,...", help="Joint values of a scene.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE.html", help="Write an offline page instead."),
    ] = None,
    port: Port = 8080,
    browser: Browser = True,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Show a scene, a plan or a problem in the browser; Ctrl-C ends it.

    A store shows the versions of a branch (main by default) with a slider over them, and what each
    of them changed. With --domain a scene shows its facts, which follow what is moved, and can be
    planned from where it is. A plan in a domain that is not built in shows its facts with --domain,
    too.
    """
    from tmkit.plans import Plan
    from tmkit.tamp import PlanningProblem
    from tmkit.visualization import Viewer, save_html

    if html is not None:
        require_writable(html)
    if len(files) == 1 and (found := _store_of(files[0])) is not None:
        given = {
            "--compare": compare,
            "--domain": domain,
            "--robot": robot,
            "--start": start,
            "--html": html,
        }
        for option, value in given.items():
            if value:
                raise typer.BadParameter("it is not for a store", param_hint=option)
        from tmkit.store import Store

        with Store(found[0], must_exist=True) as store, Viewer(port=port) as viewer:
            viewer.show_versions(store, found[1])
            wait_for_browser(viewer, opens=browser)
        return
    shown: Plan | PlanningProblem | SceneGraph = _read(files, domain, allow, package, meshes)
    scene = shown if not isinstance(shown, Plan | PlanningProblem) else shown.scene
    if isinstance(shown, Plan | PlanningProblem):
        for option, value in {"--robot": robot, "--start": start}.items():
            if value:
                raise typer.BadParameter(f"'{files[0]}' contains this", param_hint=option)
    q = start_configuration(scene, robot or (), start)
    problem = None
    if domain is not None and shown is scene:
        shown = PlanningProblem(scene, q, domain=domain, goal="(and)", robots=robot or "panda")
    elif domain is not None and isinstance(shown, Plan):
        problem = PlanningProblem(
            scene, shown.q, domain=domain, goal=shown.goal, robots=shown.robots
        )
    other = load(compare, reading=reading_of(allow, package, meshes)) if compare else None
    if html is not None:
        page = scene if isinstance(shown, PlanningProblem) else shown
        say(
            "Written to"
            f" {save_html(page, html, q=q, domain=domain if problem is not None else None)}"
        )
        return
    with Viewer(port=port) as viewer:
        if other is not None:
            viewer.compare(scene, other, q=q)
        else:
            viewer.show(shown, q=q, problem=problem)
        wait_for_browser(viewer, opens=browser)


def _store_of(name: str) -> tuple[Path, str] | None:
    """Return the folder of a store and the version that are named, or None if it is no store."""
    folder, _, version = name.partition(":")
    for path, of in ((Path(name), "main"), (Path(folder), version)):
        if (path / "versions.sqlite").is_file():
            return path, of
    return None


def _read(
    files: list[str],
    domain: str | None,
    allow: list[Path] | None,
    package: list[str] | None,
    meshes: str,
) -> Plan | PlanningProblem | SceneGraph:
    """Read a plan, a problem or a scene, by the suffix and the content of a file that stands alone."""
    import tmkit as tk
    from tmkit.tamp.domains.loading import check_plan_domain

    alone = Path(files[0]) if len(files) == 1 else None
    if alone is not None and alone.suffix == _PROBLEM:
        with progress("reading the problem"):
            return tk.load_planning_problem(
                alone, domain=domain, reading=reading_of(allow, package, meshes)
            )[0]
    if alone is not None and alone.suffix == _PLAN:
        document = read_json_file(alone, what="plan or scene")
        if isinstance(document, dict) and "steps" in document:
            plan = tk.load_plan(alone)
            check_plan_domain(plan, alone, domain, None)
            return plan
    return load(files, reading=reading_of(allow, package, meshes))


def wait_for_browser(viewer: Viewer, *, opens: bool) -> None:
    """Print the address of a viewer, open it if asked for, and wait for an interrupt."""
    import webbrowser

    say(f"Showing at {viewer.url} (Ctrl-C ends it)")
    if opens:
        webbrowser.open(viewer.url)
    try:
        viewer.wait()
    except KeyboardInterrupt:
        say("Closed.")
