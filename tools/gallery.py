"""Draw the pictures and films of scenes in ``docs/images``, by the renderer ``filament``.

``python tools/gallery.py [NAME...]``, with the extras ``engines`` and ``pictures`` and the packages
of all robots; all of them take an hour of one core. Films show plans as planned, so nothing here
depends on physics.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from notebooks import TUTORIALS, blocks_of
from PIL import Image

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.manipulation import swept_volume
from tmkit.simulation import Camera, draw_failure, fit_camera, record_plan, render, write_picture
from tmkit.simulation.pictures.playback import fit_camera_to_plan
from tmkit.simulation.pictures.swept_volume import draw_swept_volume
from tmkit.simulation.rendering.studio import StillScene
from tmkit.visualization import Viewer

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs/images"
TOWER = "(and (on a b) (on b c))"
FILM = (400, 300)


def problem(domain: str, name: str) -> Path:
    """Return the path of a problem file."""
    return tk.data_path(f"domains/{domain}/problems/{name}.pddl")


def make_plan(*scenes: str, **problem: Any) -> tk.Plan:
    """Return the plan for a goal in scenes."""
    result = tk.plan(
        tk.load_scene(*scenes), **problem, options=tk.PlanningOptions(time_limit=600.0)
    )
    assert result.plan is not None, result.explanation
    return result.plan


# By name: the plan, and the planned seconds in a second of its film.
FILMS: dict[str, tuple[Callable[[], tk.Plan], float]] = {
    "blocks": (lambda: make_plan("panda_table", "blocks3", domain="blocks", goal=TOWER), 4.0),
    "ceiling": (
        lambda: make_plan(
            "panda_ceiling", "ceiling3", domain="blocks", goal=problem("blocks", "ceiling3")
        ),
        8.0,
    ),
    "blocks_uncertain": (
        lambda: make_plan(
            "panda_alone", "unsure_blocks", domain="blocks_uncertain", goal="(surely-on a b)"
        ),
        2.0,
    ),
    "kitchen": (
        lambda: make_plan(
            "iiwa_kitchen",
            "kitchen_blocks4",
            domain="kitchen",
            goal="(and (cooked b0) (cooked b1) (athome))",
            robot="iiwa_flange",
        ),
        9.0,
    ),
    "hanoi": (
        lambda: make_plan("panda_table", "hanoi3", domain="hanoi", goal=problem("hanoi", "hanoi3")),
        14.0,
    ),
    "sorting": (
        lambda: make_plan(
            "panda_table", "sort8", domain="sorting", goal=problem("sorting", "sort8")
        ),
        16.0,
    ),
    "rearrangement": (
        lambda: make_plan(
            "panda_table",
            "rearrange_swap",
            domain="rearrangement",
            goal=problem("rearrangement", "swap"),
        ),
        9.0,
    ),
    "pour": (
        lambda: make_plan(
            "panda_table", "tea", domain="pour", goal="(and (filled bowl) (on cup table))"
        ),
        5.0,
    ),
    "mobile_manipulation": (
        lambda: make_plan(
            "mobile_panda",
            "three_tables",
            domain="mobile_manipulation",
            goal="(on b south)",
            robot=("panda", "panda_base"),
        ),
        6.0,
    ),
    "push": (lambda: make_plan("panda_push", domain="push", goal="(on plate rack)", seed=0), 5.0),
    "handover": (
        lambda: make_plan(
            "baxter_trays",
            domain="handover",
            goal=problem("handover", "across"),
            robot=("baxter", "baxter_left"),
        ),
        3.0,
    ),
    "drawer": (
        lambda: make_plan(
            "panda_drawer", domain="drawer", goal=problem("drawer", "empty"), robot="panda"
        ),
        3.0,
    ),
}


def film(name: str) -> None:
    """Write the film of a domain."""
    plan, speed = FILMS[name]
    folder = IMAGES / "gallery"
    folder.mkdir(exist_ok=True)
    result = plan()
    camera = fit_camera_to_plan(result, width=FILM[0], height=FILM[1])
    record_plan(result, folder / f"{name}.webp", camera=camera, speed=speed, renderer="filament")


def at_step(
    plan: tk.Plan, number: int, camera: Camera | None = None, *, width: int, height: int
) -> np.ndarray:
    """Return a picture of the world after so many steps."""
    scene, q = (
        (plan.steps[number - 1].scene, plan.steps[number - 1].q) if number else (plan.scene, plan.q)
    )
    view = (
        fit_camera(StillScene(scene, q), width=width, height=height) if camera is None else camera
    )
    return render(scene, view, q=q, renderer="filament")


def draw_beside(pictures: list[np.ndarray], columns: int) -> np.ndarray:
    """Return pictures of one size as a grid."""
    rows = [
        np.concatenate(pictures[row : row + columns], axis=1)
        for row in range(0, len(pictures), columns)
    ]
    return np.concatenate(rows)


def drawer() -> None:
    """Draw the open drawer."""
    write_picture(IMAGES / "drawer.png", at_step(FILMS["drawer"][0](), 1, width=720, height=480))


def handover() -> None:
    """Draw the moment at which both hands hold the block."""
    plan = FILMS["handover"][0]()
    scene, q = plan.steps[0].scene, plan.steps[0].q
    for segment in plan.steps[1].segments:
        scene, q = segment.end(scene, q)
        if segment.kind == "grasp":
            break
    camera = fit_camera(StillScene(scene, q), focus=["a"], width=720, height=480)
    write_picture(IMAGES / "handover.png", render(scene, camera, q=q, renderer="filament"))


def kitchen() -> None:
    """Draw the start, a pick and the end in the kitchen."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "examples/kitchen.py", "--out", folder], check=True)
        shutil.copy(Path(folder) / "kitchen.png", IMAGES)


def classic() -> None:
    """Draw four classic problems."""
    hanoi = make_plan("panda_table", "hanoi6", domain="hanoi", goal=problem("hanoi", "hanoi6"))
    cells = [(hanoi.steps[6].scene, hanoi.steps[6].q)]
    for table, scene in (
        ("panda_table", "sort14"),
        ("panda_table", "rearrange_row"),
        ("panda_ceiling", "ceiling6"),
    ):
        loaded = tk.load_scene(table, scene)
        cells.append((loaded, tk.load_manipulator("panda").ready_configuration(loaded)))
    pictures = []
    for scene, q in cells:
        camera = fit_camera(StillScene(scene, q), width=480, height=360)
        pictures.append(render(scene, camera, q=q, renderer="filament"))
    write_picture(IMAGES / "classic_problems.jpg", draw_beside(pictures, 2))


def robots() -> None:
    """Draw the five robots at the end of the demo, and the Panda on its base."""
    pictures = []
    for name in ("panda", "iiwa", "ur5", "xarm", "baxter"):
        plan = make_plan(f"{name}_table", "blocks3", domain="blocks", goal=TOWER, robot=name)
        pictures.append(at_step(plan, len(plan.steps), width=480, height=360))
    plan = FILMS["mobile_manipulation"][0]()
    pictures.append(at_step(plan, 1, width=480, height=360))
    write_picture(IMAGES / "robots.jpg", draw_beside(pictures, 3))


def samplers() -> None:
    """Draw grasps and stable faces."""
    subprocess.run(
        [sys.executable, ROOT / "tests/benchmarks/samplers_pictures.py", "--out", IMAGES],
        check=True,
    )


def failures() -> None:
    """Draw the obstacles of a lid, and a block out of reach."""
    lid = tk.AttachedShape(tk.Box([0.16, 0.16, 0.02]), color=(0.6, 0.6, 0.6, 1.0))
    scene = tk.load_scene("panda_table", "blocks3")
    x, y, z = scene.pose("a").translation
    covered = scene.add_frame("lid", "world", pose=tk.Pose([x, y, z + 0.09]), shapes=[lid])
    result = tk.plan(
        covered, goal="(on a b)", robot="panda", options=tk.PlanningOptions(max_iterations=1)
    )
    draw_failure(result, IMAGES / "failure_lid.png", width=720, height=480, renderer="filament")
    shelf = tk.AttachedShape(tk.Box([0.3, 0.3, 0.05]), color=(0.6, 0.6, 0.6, 1.0))
    block = tk.AttachedShape(tk.Box([0.05, 0.05, 0.05]), color=(0.2, 0.3, 0.8, 1.0))
    far_scene = scene.add_frame(
        "shelf", "world", pose=tk.Pose([1.4, -0.3, -0.025]), classes=["surface"], shapes=[shelf]
    )
    far_scene = far_scene.add_frame(
        "far", "shelf", pose=tk.Pose([0.0, 0.0, 0.05]), classes=["movable"], shapes=[block]
    )
    result = tk.plan(
        far_scene,
        goal="(on far b)",
        robot="panda",
        options=tk.PlanningOptions(suggest=False, max_iterations=1),
    )
    draw_failure(result, IMAGES / "failure_reach.png", width=720, height=480, renderer="filament")


def swept() -> None:
    """Draw the space that a plan sweeps."""
    plan = make_plan("panda_table", "blocks3", domain="blocks", goal="(on a b)")
    volume = swept_volume(plan, cell=0.04)
    draw_swept_volume(
        plan, volume, IMAGES / "swept.png", width=720, height=480, renderer="filament"
    )


def reach() -> None:
    """Draw the reachable workspace of the iiwa with a cup, as in the page on own robots."""
    page = (ROOT / "docs/tutorials/own_robot.md").read_text(encoding="utf-8")
    text = page.split("```robray\n", 1)[1].split("```", 1)[0]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "robot.robray").write_text(text, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "tmkit.cli",
            "robot",
            "check",
            "robot.robray",
            "--tip",
            "cup",
            "--picture",
        ]
        subprocess.run([*command, IMAGES / "reach.png"], cwd=folder, check=False)


def hero() -> None:
    """Write the film of the README: a drawer is opened, emptied and closed."""
    plan = FILMS["drawer"][0]()
    camera = fit_camera_to_plan(plan, width=600, height=420)
    record_plan(
        plan, IMAGES / "demo.webp", camera=camera, speed=3.0, supersampling=1.0, renderer="filament"
    )


def tutorials() -> None:
    """Draw the result of each tutorial."""
    here = Path.cwd()
    for page in sorted(TUTORIALS.glob("*.md")):
        blocks = blocks_of(page)
        if not any(block.directive == "result" for block in blocks):
            continue
        names: dict[str, object] = {"__name__": page.stem}
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            os.chdir(folder)
            for block in blocks:
                if block.mark.startswith("file"):
                    Path(block.mark[6:]).write_text(block.text, encoding="utf-8")
                elif block.mark == "shell":
                    subprocess.run(block.text.split(), check=True, capture_output=True)
                elif block.mark == "run":
                    exec(block.text, names)
            for drawn in Path(folder).glob("*.svg"):
                shutil.copy(drawn, IMAGES / "tutorials" / f"{page.stem}_{drawn.name}")
            os.chdir(here)
        if isinstance(names.get("now"), SceneGraph):
            picture = render(
                names["now"], Camera((2.6, -2.2, 2.4), (-0.1, 0.0, 0.3), width=720, height=480)
            )
            Image.fromarray(picture).save(IMAGES / "tutorials" / f"{page.stem}.webp", quality=85)
            continue
        plan = names.get("rest") or names.get("plan") or names["result"].plan  # type: ignore[attr-defined]
        picture = at_step(plan, len(plan.steps), width=720, height=480)
        Image.fromarray(picture).save(IMAGES / "tutorials" / f"{page.stem}.webp", quality=85)


def sheet() -> None:
    """Write the middle frames of all films beside each other, to look at; not part of the pages."""
    frames = []
    for name in FILMS:
        path = IMAGES / "gallery" / f"{name}.webp"
        if path.exists():
            with Image.open(path) as moving:
                moving.seek(moving.n_frames // 2)
                frames.append(np.asarray(moving.convert("RGB")))
    while len(frames) % 3:
        frames.append(np.full_like(frames[0], 255))
    Image.fromarray(draw_beside(frames, 3)).save(Path(tempfile.gettempdir()) / "gallery_sheet.png")


def viewer() -> None:
    """Take a picture of a plan in the live viewer, with Debian's chromium."""
    from playwright.sync_api import sync_playwright

    plan = FILMS["blocks"][0]()
    switches = ["--no-sandbox", "--use-gl=angle", "--use-angle=gl-egl", "--ignore-gpu-blocklist"]
    with Viewer(plan, port=0) as shown, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=switches)
        page = browser.new_page(viewport={"width": 1280, "height": 760})
        page.goto(shown.url)
        page.wait_for_function("window.tmkit && window.tmkit.ready")
        page.evaluate("tmkit.seek(7.9)")
        page.locator("[data-tmkit-frame=a]").click()
        page.mouse.move(5, 5)
        page.wait_for_timeout(10_000)  # viser fades in
        page.screenshot(path=IMAGES / "viewer.png")
        browser.close()


STILLS = {
    drawing.__name__: drawing
    for drawing in (
        drawer,
        handover,
        kitchen,
        classic,
        robots,
        samplers,
        failures,
        swept,
        reach,
        hero,
        tutorials,
        viewer,
        sheet,
    )
}


def main() -> None:
    """Draw the named pictures, or all."""
    for name in sys.argv[1:] or [*STILLS, *(f"film:{name}" for name in FILMS), "sheet"]:
        began = time.process_time()
        film(name.removeprefix("film:")) if name.startswith("film:") else STILLS[name]()
        sys.stdout.write(f"{name}: {time.process_time() - began:.0f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
