"""Costs of pages and of the live viewer.

Usage: ``python tests/benchmarks/viewer_table.py [--frames N] [--actions N]``.

Sizes of pages; main-thread time of the browser for one step of scrubbing, forward and back, by
chromium's own count of the seconds in tasks; processor time of Python for one update of a followed
scene, and the updates a page receives.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import markdown_head
from support.browser import open_browser, open_page

import tmkit as tk
from tmkit.visualization import LatestScene, Viewer, save_html

_FRAME = (
    "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>"
    " done(true))))"
)


def crowded_scene(scene: tk.SceneGraph, count: int) -> tk.SceneGraph:
    """Return a scene with as many more frames: half of them on the hand, half on the table."""
    for number in range(count):
        parent = "panda_hand" if number % 2 else "table"
        pose = tk.Pose([0.001 * number, 0.01, 0.02])
        scene = scene.add_frame(f"extra{number}", parent, pose=pose)
    return scene


def long_plan(plan: tk.Plan, *, actions: int, frames: int) -> tk.Plan:
    """Return a plan repeated to a number of actions, in a scene with more frames."""
    steps = [plan.steps[i % len(plan.steps)] for i in range(actions)]
    steps = [dataclasses.replace(step, scene=crowded_scene(step.scene, frames)) for step in steps]
    return dataclasses.replace(plan, scene=crowded_scene(plan.scene, frames), steps=tuple(steps))


def scrubbing(page: Any, *, steps: int) -> tuple[float, float, float]:
    """Return milliseconds of the main thread for a step forward, a step back, and drawing alone."""
    session = page.context.new_cdp_session(page)
    # processor time, not the clock
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(entry["value"] for entry in metrics if entry["name"] == "TaskDuration"))

    def cost(action: str) -> float:
        before = spent()
        for _ in range(steps):
            page.evaluate(action)
            page.evaluate(_FRAME)
        return 1000.0 * (spent() - before) / steps

    page.evaluate("tmkit.seek(0)")
    page.wait_for_timeout(3000)  # the page is still being built
    drawing = cost("window.__viserMutable.requestRender()")
    return cost("tmkit.jump(1)"), cost("tmkit.jump(-1)"), drawing


def following(frames: int, *, rate: float = 30.0, seconds: float = 8.0) -> tuple[float, float]:
    """Return the time of a scene update in Python [ms], and the updates a second in a page."""
    scene = tk.SceneGraph().add_frame(
        "arm", "world", joint=tk.Revolute([0, 0, 1], lower=-2.0, upper=2.0)
    )
    scene = scene.set_shapes("arm", [tk.AttachedShape(tk.Box([0.3, 0.1, 0.1]))])
    for number in range(frames - 2):
        scene = scene.add_frame(f"f{number}", "arm", pose=tk.Pose([0.001 * number, 0.0, 0.0]))
    with Viewer(scene, port=0) as viewer:
        began = time.thread_time()
        for angle in np.linspace(0.0, 1.0, 200):
            viewer._update(scene, scene.configuration({"arm": angle}))
        python = 1000.0 * (time.thread_time() - began) / 200.0
        source = LatestScene(scene, scene.zero_configuration())
        with open_browser() as browser, open_page(browser, viewer.url) as (page, _, _):
            viewer.follow(source, rate=rate)
            done = threading.Event()

            def move() -> None:
                number = 0
                while not done.wait(1.0 / rate):
                    number += 1
                    source.put(scene, scene.configuration({"arm": np.sin(0.05 * number)}))

            thread = threading.Thread(target=move)
            thread.start()
            page.wait_for_timeout(1000)
            first = page.evaluate("[tmkit.updates, performance.now()]")
            page.wait_for_timeout(1000 * seconds)
            last = page.evaluate("[tmkit.updates, performance.now()]")
            done.set()
            thread.join()
    return python, 1000.0 * (last[0] - first[0]) / (last[1] - first[1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--actions", type=int, default=40)
    options = parser.parse_args()
    plan = tk.plan(
        tk.load_scene("panda_table", "blocks3"), goal="(and (on a b) (on b c))", seed=0
    ).plan
    assert plan is not None
    print("\n".join(markdown_head("page | MB | forward, ms | back, ms | drawing alone, ms")))
    long = long_plan(plan, actions=options.actions, frames=options.frames)
    with tempfile.TemporaryDirectory() as folder:
        for name, shown in (
            ("demo", plan),
            (f"{options.actions} actions, {options.frames} more frames", long),
        ):
            path = save_html(shown, Path(folder) / "plan.html", autoplay=False)
            size = path.stat().st_size / 1e6
            with open_browser() as browser, open_page(browser, path.as_uri()) as (page, _, _):
                forward, back, drawing = scrubbing(page, steps=min(len(shown.steps), 40))
            print(f"| {name} | {size:.2f} | {forward:.1f} | {back:.1f} | {drawing:.1f} |")
    python, rate = following(500)
    print(
        f"\nfollowing 500 frames: {python:.2f} ms of Python an update, {rate:.1f} of 30 updates a"
        " second seen"
    )


if __name__ == "__main__":
    main()
