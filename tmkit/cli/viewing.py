"""The command ``tmkit view``: scenes, problems, plans and stores in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit.cli.common import DomainOption, SceneFileOptions, load, require_writable
from tmkit.cli.completion import complete_robots, complete_scenes
from tmkit.cli.inputs import read_json_file, start_configuration
from tmkit.cli.reporting import progress, say

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import Plan
    from tmkit.tamp import PlanningProblem, PlanResult
    from tmkit.visualization import Viewer

_PLAN_SUFFIX = ".json"
"""Suffix of plan files, and of scene files in JSON."""

_PROBLEM_SUFFIX = ".toml"
"""Suffix of problem files."""

Port = Annotated[
    int, typer.Option(metavar="N", help="Port of the page; 0 for any free one.", min=0, max=65535)
]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
]


@dataclass(frozen=True)
class SceneStateOptions:
    """Arms of a scene, and their joint values."""

    robot: Annotated[
        list[str] | None,
        typer.Option(
            "--robot",
            metavar="NAME|FILE",
            help="Arm of a scene, for its ready configuration; repeatable.",
            autocompletion=complete_robots,
        ),
    ] = None
    start: Annotated[
        str | None, typer.Option("--start", metavar="FILE|k=v,...", help="Joint values of a scene.")
    ] = None


@dataclass(frozen=True)
class PageOptions:
    """Offline page, or port of the server and whether a browser opens."""

    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE.html", help="Write an offline page instead."),
    ] = None
    port: Port = 8080
    browser: Browser = True


def view(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENE...|PLAN.json|PROBLEM.toml|STORE[:BRANCH]",
            autocompletion=complete_scenes,
            help=(
                "Scene files or built-in names, merged in order; or a plan, a problem, or the"
                " folder of a store."
            ),
        ),
    ],
    *,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="SCENE",
            help="A scene to show beside it, with the difference coloured.",
        ),
    ] = None,
    domain: DomainOption = None,
    state: SceneStateOptions,
    page: PageOptions,
    files: SceneFileOptions,
) -> None:
    """Show a scene, a plan or a problem in the browser; Ctrl-C ends it.

    A store shows the versions of a branch (main by default) with a slider, and the changes of each
    version. With --domain, the page of a scene shows its facts, updates them when objects are
    moved, and plans from the current state. With --domain, it also shows the facts of a plan whose
    domain is not built in.
    """
    from tmkit.plans import Plan
    from tmkit.tamp import PlanningProblem
    from tmkit.visualization import Viewer, save_html

    html = page.html
    if html is not None:
        require_writable(html)
    store_version = _find_store_version(names[0]) if len(names) == 1 else None
    if store_version is not None:
        values = {
            "--compare": compare,
            "--domain": domain,
            "--robot": state.robot,
            "--start": state.start,
            "--html": html,
        }
        for option, value in values.items():
            if value:
                raise typer.BadParameter("it is not for a store", param_hint=option)
        from tmkit.store import Store

        folder, version = store_version
        with Store(folder, must_exist=True) as store, Viewer(port=page.port) as viewer:
            viewer.show_versions(store, version)
            wait_for_browser(viewer, opens=page.browser)
        return

    # Read the content, and place it in a problem if a domain is set.
    content: Plan | PlanningProblem | SceneGraph = _read_content(names, domain, files)
    if isinstance(content, Plan | PlanningProblem):
        scene = content.scene
        for option, value in {"--robot": state.robot, "--start": state.start}.items():
            if value:
                raise typer.BadParameter(f"'{names[0]}' contains this", param_hint=option)
    else:
        scene = content
    q = start_configuration(scene, state.robot or (), state.start)
    problem = None
    if domain is not None and content is scene:
        robots = state.robot or "panda"
        content = PlanningProblem(scene, q, domain=domain, goal="(and)", robots=robots)
    elif domain is not None and isinstance(content, Plan):
        problem = PlanningProblem(
            scene, content.q, domain=domain, goal=content.goal, robots=content.robots
        )
    other_scene = load(compare, reading=files.reading_options()) if compare else None

    # Write the page, or show the content until the user interrupts.
    if html is not None:
        page_content = scene if isinstance(content, PlanningProblem) else content
        page_domain = domain if problem is not None else None
        say(f"Written to {save_html(page_content, html, q=q, domain=page_domain)}")
        return
    with Viewer(port=page.port) as viewer:
        if other_scene is not None:
            viewer.compare(scene, other_scene, q=q)
        else:
            viewer.show(content, q=q, problem=problem)
        wait_for_browser(viewer, opens=page.browser)


def _find_store_version(name: str) -> tuple[Path, str] | None:
    """Return folder and version of a store by ``FOLDER[:VERSION]``, or None without a store."""
    folder, _, version = name.partition(":")
    for path, path_version in ((Path(name), "main"), (Path(folder), version)):
        if (path / "versions.sqlite").is_file():
            return path, path_version
    return None


def _read_content(
    names: list[str], domain: str | None, files: SceneFileOptions
) -> Plan | PlanningProblem | SceneGraph:
    """Read a plan or a problem from a single file, by its suffix and content, or else a scene."""
    import tmkit as tk
    from tmkit.tamp.domains.loading import check_plan_domain

    path = Path(names[0]) if len(names) == 1 else None
    if path is not None and path.suffix == _PROBLEM_SUFFIX:
        with progress("reading the problem"):
            return tk.load_planning_problem(path, domain=domain, reading=files.reading_options())[0]
    if path is not None and path.suffix == _PLAN_SUFFIX:
        document = read_json_file(path, what="plan or scene")
        if isinstance(document, dict) and "steps" in document:
            plan = tk.load_plan(path)
            check_plan_domain(plan, path, domain, None)
            return plan
    return load(names, reading=files.reading_options())


def show_tmp_plan(
    scenes: list[str], path: Path, start: str | None, files: SceneFileOptions
) -> None:
    """Show a ``.tmp`` plan in the browser, without its domain and robot.

    Args:
        scenes: files of the scene at the start.
        path: plan file.
        start: value of ``--start``, for joints without a value in the file.
        files: folders, packages and meshes of the scene.

    Raises:
        typer.BadParameter: if there is no scene.
    """
    from tmkit.tamp.validation.recorded_plan import load_recorded_plan

    if not scenes:
        raise typer.BadParameter(
            f"'{path}' has no scene in it; name the scene it starts in", param_hint="SCENE"
        )
    scene = load(scenes, reading=files.reading_options())
    plan = load_recorded_plan(path, scene, q=start_configuration(scene, (), start))
    with open_viewer(plan) as viewer:
        wait_for_browser(viewer, opens=True)


def open_viewer(content: Plan | PlanResult, *, problem: PlanningProblem | None = None) -> Viewer:
    """Return a viewer at the usual port, or at any free one if that is in use.

    Args:
        content: plan or planning result to show.
        problem: problem of a planning result.
    """
    from tmkit.errors import OutputError
    from tmkit.visualization import Viewer

    try:
        return Viewer(content, problem=problem)
    except OutputError:
        return Viewer(content, problem=problem, port=0)


def wait_for_browser(viewer: Viewer, *, opens: bool) -> None:
    """Print the address of a viewer, and wait for an interrupt.

    Args:
        viewer: viewer that serves the page.
        opens: whether to open the page in a browser.
    """
    import webbrowser

    say(f"Showing at {viewer.url} (Ctrl-C ends it)")
    if opens:
        webbrowser.open(viewer.url)
    try:
        viewer.wait()
    except KeyboardInterrupt:
        say("Closed.")
