"""The live viewer in a real browser: input in the page reaches Python, and output the page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.browser import distance, drawn_poses, open_page
from support.commands import Outcome, tmkit
from support.processes import Process
from support.unsure_blocks import unsure_blocks

import tmkit as tk
from tmkit.errors import ArgumentError, ConfigurationError, MissingExtraError, OutputError
from tmkit.graph.moments import add_joint_values
from tmkit.store import Store
from tmkit.tamp import PlanningProblem, PlanResult
from tmkit.visualization import LatestScene, Viewer, enable_notebook
from tmkit.world import LiveScene

pytest.importorskip("viser")

_TOLERANCE = 3e-5  # poses [m] and quaternions
_TOWER = "(and (on a b) (on b c))"


def _until(holds: Callable[[], bool], page: Any) -> None:
    """Wait for the effect of a page message in another thread, while the browser runs on."""
    for _ in range(600):
        if holds():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it did not happen")


def _cover() -> PlanningProblem:
    """Return a problem without a plan: walls and a lid are around block a."""
    scene = tk.load_scene("panda_table", "blocks3")
    pose = scene.pose("a", relative_to="table")
    walls = {
        "lid": ([0.0, 0.0, 0.06], [0.25, 0.25, 0.02]),
        "front": ([0.06, 0.0, 0.01], [0.02, 0.14, 0.08]),
        "back": ([-0.06, 0.0, 0.01], [0.02, 0.14, 0.08]),
        "left": ([0.0, 0.06, 0.01], [0.14, 0.02, 0.08]),
        "right": ([0.0, -0.06, 0.01], [0.14, 0.02, 0.08]),
    }
    for name, (place, size) in walls.items():
        shape = tk.AttachedShape(tk.Box(size))
        scene = scene.add_frame(name, "table", pose=pose @ tk.Pose(place), shapes=[shape])
    return PlanningProblem(scene, goal="(holding a)")


@pytest.fixture(scope="module")
def plan() -> tk.Plan:
    """A tower of three blocks."""
    result = tk.plan(tk.load_scene("panda_table", "blocks3"), goal=_TOWER, seed=0)
    assert result.plan is not None
    return result.plan


@pytest.fixture(scope="module")
def failed_result() -> tuple[PlanningProblem, PlanResult]:
    """A problem that cannot be solved, and its result."""
    problem = _cover()
    result = tk.solve(problem, tk.PlanningOptions(max_iterations=1))
    assert result.plan is None
    return problem, result


def test_scrubbing_and_joints_meet_in_the_state(plan, browser):
    """Scrubbing in the page sets the state in Python; a state from Python moves the page."""
    with Viewer(plan, port=0) as viewer, open_page(browser, viewer.url) as (page, errors, _):
        timeline = viewer.timeline
        sample = timeline.steps[1]
        page.evaluate("t => tmkit.seek(t)", timeline.times[sample])
        _until(lambda: viewer.scene is timeline.scenes[sample], page)
        np.testing.assert_array_equal(viewer.q, timeline.q[sample])
        assert viewer.scene.parent("b") == "c"

        q = np.array(viewer.q)
        q[0] += 0.4
        before = page.evaluate("tmkit.updates")
        viewer.set_state(viewer.scene, q)
        page.wait_for_function("before => tmkit.updates > before", arg=before)
        kinematics = viewer.scene.at(q)
        for frame, drawn in drawn_poses(page, ("panda_hand", "b", "a")).items():
            assert distance(drawn, kinematics.pose(frame)) < _TOLERANCE, frame
        assert errors == []


def test_clicks_pick_and_the_gizmo_moves_and_rederives_facts(browser):
    """A click on a row or a body picks the frame; the gizmo moves it, and the facts follow."""
    problem = PlanningProblem(tk.load_scene("panda_table", "blocks3"), goal="(on a b)")
    with (
        Viewer(problem, port=0) as viewer,
        open_page(browser, viewer.url, width=1100) as (page, errors, _),
    ):
        page.locator("[data-tmkit-frame=panda_link3]").click()
        _until(lambda: viewer.picked == "panda_link3", page)
        page.mouse.click(*page.evaluate("tmkit.pixel('a')"))
        _until(lambda: viewer.picked == "a", page)
        assert page.evaluate("tmkit.picked") == "a"
        page.get_by_role("checkbox").first.check(force=True)
        page.wait_for_function("'/gizmo' in window.__viserSceneTree.getState()")
        goal = viewer.scene.pose("b", q=viewer.q) @ tk.Pose([0.0, 0.0, 0.05])
        page.evaluate(
            """([position, wxyz]) => window.__viserMutable.sendMessage({
                type: 'TransformControlsUpdateMessage', name: '/gizmo', owner: '', position, wxyz
            })""",
            [list(goal.translation), [float(goal.quat_xyzw[i]) for i in (3, 0, 1, 2)]],
        )
        _until(
            lambda: viewer.scene.pose("a", q=viewer.q).is_close(
                goal, translation_tolerance=1e-6, rotation_tolerance=1e-6
            ),
            page,
        )
        _until(lambda: distance(drawn_poses(page, ["a"])["a"], goal) < _TOLERANCE, page)
        viewer.set_state(viewer.scene.reparent("a", "b", q=viewer.q), viewer.q)
        page.get_by_role("tab", name="Facts").click()
        page.get_by_text("(on a b)").first.wait_for()
        assert errors == []


def test_a_failed_plan_opens_on_its_cause(failed_result, browser):
    """The obstacles are red; a click selects each cause."""
    problem, result = failed_result
    with (
        Viewer(result, problem=problem, port=0) as viewer,
        open_page(browser, viewer.url, width=1100) as (page, errors, _),
    ):
        cause = result.diagnosis.actions[0].causes[0]
        assert cause.example is not None
        assert str(cause) in page.locator("#tmkit-caption").inner_text()
        np.testing.assert_array_equal(viewer.q, cause.example.q)
        red = {
            piece.frame
            for piece in viewer.model.pieces
            if piece.role == "visual" and piece.color[:2] == (0.86, 0.12)
        }
        assert red == set(cause.example.in_the_way) - {"a"}
        page.get_by_text(result.explanation).wait_for()
        rows = page.locator("[data-tmkit-tell]")
        causes = [cause for action in result.diagnosis.actions for cause in action.causes]
        assert len(cause.examples) > 1
        # the rejected grasps of the first cause
        assert rows.count() == len(causes) + len(cause.examples)

        def wait_for(text: str) -> None:
            page.wait_for_function(
                "text => document.getElementById('tmkit-caption')?.textContent.includes(text)",
                arg=text,
            )

        for example in cause.examples[1:4]:
            page.get_by_text(example.choice).last.click()
            wait_for(f"{example.choice}: {cause}")
            np.testing.assert_array_equal(viewer.q, example.q)
        page.get_by_text(str(causes[1])).last.click()
        wait_for(str(causes[1]))
        page.get_by_role("button", name="Previous").click()
        wait_for(f"{cause.examples[-1].choice}: {cause}")
        assert errors == []


def test_the_search_tree_node_by_node(browser):
    """A click on a node shows the version that the search reached there."""
    problem = PlanningProblem(tk.load_scene("panda_table", "blocks3"), goal="(on a b)")
    result = tk.solve(problem, tk.PlanningOptions(record_tree=True))
    with (
        Viewer(result, problem=problem, port=0) as viewer,
        open_page(browser, viewer.url, width=1100) as (page, errors, _),
    ):
        page.get_by_role("tab", name="Search").click()
        tree = result.search_trees[0]
        index = max(i for i, node in enumerate(tree.nodes) if node.is_in_plan)
        page.locator(f'[data-tmkit-tell="node 0 {index}"]').click()
        scene, q = tree.version(index, problem.scene)
        _until(lambda: viewer.scene == scene, page)
        np.testing.assert_array_equal(viewer.q, q)
        assert distance(drawn_poses(page, ["a"])["a"], scene.pose("a", q=q)) < _TOLERANCE
        assert errors == []


def test_planning_from_the_state_shown(plan, browser):
    """The button plans from where the objects are, and the new plan is shown."""
    problem = PlanningProblem(tk.load_scene("panda_table", "blocks3"), goal="(holding b)")
    with (
        Viewer(problem, port=0) as viewer,
        open_page(browser, viewer.url, width=1100) as (page, errors, _),
    ):
        page.get_by_role("tab", name="Plan").click()
        page.get_by_role("button", name="Plan from here").click()
        _until(lambda: viewer.timeline is not None, page)
        page.wait_for_function("tmkit.ready && tmkit.duration > 0")
        assert page.locator("#tmkit-track .action").count() == 1
        assert errors == []


def test_two_versions_side_by_side(plan, browser):
    """Both are drawn, the difference is coloured, and the caption names it."""
    with Viewer(port=0) as viewer:
        viewer.compare(plan.scene, plan.steps[0].scene, q=plan.q)
        colored = {piece.frame for piece in viewer.model.pieces if piece.color[:2] == (0.95, 0.55)}
        assert colored == {"before/b", "after/b"}
        shift = (
            viewer.scene.pose("after/a", q=viewer.q).translation
            - viewer.scene.pose("before/a", q=viewer.q).translation
        )
        assert np.linalg.norm(shift) > 1.0
        with open_page(browser, viewer.url) as (page, errors, _):
            caption = "Left: before. Right: after. Orange (changed): b (parent, pose)"
            assert page.locator("#tmkit-caption").inner_text() == caption
            assert errors == []


def test_a_source_is_followed_to_its_last_scene(browser):
    """Whatever rate the page draws at, it ends at the last state; a frame that appears is drawn."""
    scene = tk.SceneGraph().add_frame(
        "arm", "world", joint=tk.Revolute([0, 0, 1], lower=-2.0, upper=2.0)
    )
    box = tk.AttachedShape(tk.Box([0.1, 0.1, 0.1]))
    for number in range(500):
        scene = scene.add_frame(f"f{number}", "arm", pose=tk.Pose([0.1 * number, 0.0, 0.0]))
    scene = scene.set_shapes("f7", [box])
    source = LatestScene(scene, scene.configuration({"arm": 0.0}))
    with (
        Viewer(*source.current()[:1], port=0) as viewer,
        open_page(browser, viewer.url) as (page, errors, _),
    ):
        viewer.follow(source)
        for angle in np.linspace(0.0, 1.5, 30):
            source.put(scene, scene.configuration({"arm": angle}))
            page.wait_for_timeout(10)
        last = scene.pose("f7", q=scene.configuration({"arm": 1.5}))
        _until(lambda: distance(drawn_poses(page, ["f7"])["f7"], last) < _TOLERANCE, page)
        more = scene.add_frame("new", "world", pose=tk.Pose([1.0, 2.0, 3.0]), shapes=[box])
        source.put(more, more.configuration({"arm": 0.5}))
        page.wait_for_function(
            "'/bodies/new' in window.__viserMutable.nodeRefFromName && tmkit.ready"
        )
        source.end()
        assert distance(drawn_poses(page, ["new"])["new"], more.pose("new")) < _TOLERANCE
        assert errors == []


def test_a_live_scene_is_followed(browser):
    """Each version is shown with its newest joint values, without moving the camera."""
    box = tk.AttachedShape(tk.Box([0.1, 0.1, 0.1]))
    scene = tk.SceneGraph().add_frame(
        "arm", "world", joint=tk.Revolute([0, 0, 1], lower=-2.0, upper=2.0)
    )
    world = LiveScene(scene.add_frame("hand", "arm", pose=tk.Pose([1.0, 0.0, 0.0]), shapes=[box]))
    with Viewer(port=0) as viewer:
        viewer.follow(world)
        with open_page(browser, viewer.url) as (page, errors, _):
            version = world.update(lambda scene: add_joint_values(scene, {"arm": 1.2}, stamp=5.0))
            turned = version.pose("hand", q=[1.2])
            _until(lambda: distance(drawn_poses(page, ["hand"])["hand"], turned) < _TOLERANCE, page)
            camera = viewer.server.initial_camera.position
            cup = tk.Pose([9.0, 2.0, 3.0])
            world.update(lambda scene: scene.add_frame("cup", "world", pose=cup, shapes=[box]))
            page.wait_for_function(
                "'/bodies/cup' in window.__viserMutable.nodeRefFromName && tmkit.ready"
            )
            assert distance(drawn_poses(page, ["cup"])["cup"], cup) < _TOLERANCE
            assert viewer.server.initial_camera.position == pytest.approx(camera)
            ball = tk.AttachedShape(tk.Sphere(0.2))
            # the same frames look different
            world.update(lambda scene: scene.set_shapes("cup", [ball]))
            _until(lambda: len(viewer.model.meshes) == 2, page)
            moved = world.update(lambda scene: scene.reparent("cup", "hand", q=[1.2]))
            _until(lambda: viewer.scene is moved and viewer.scene.parent("cup") == "hand", page)
            assert errors == []
    with (
        Viewer(port=0) as viewer,
        pytest.raises(ArgumentError, match="a LiveScene or a source with current"),
    ):
        viewer.follow(scene)


def test_versions_of_a_store_have_a_slider(tmp_path, browser):
    """The slider shows each version with its changes coloured and named, and escapes markup."""
    scene = tk.load_scene("panda_table", "blocks3")
    moved = scene.set_pose("a", tk.Pose([0.05, 0.1, 0.0]) @ scene.local_pose("a"))
    box = tk.AttachedShape(tk.Box([0.1, 0.1, 0.1]))
    more = moved.add_frame("cup", "table", pose=tk.Pose([0.1, -0.2, 0.1]), shapes=[box])
    with Store(tmp_path) as store, Viewer(port=0) as viewer:
        for version, message in ((scene, "first"), (moved, "moved"), (more, "a <b>cup</b>")):
            store.put(version, message=message)
        viewer.show_versions(store)
        with open_page(browser, viewer.url) as (page, errors, _):
            page.get_by_text("a <b>cup</b>", exact=False).wait_for()
            page.get_by_text("Green (added): cup").wait_for()
            assert viewer.scene == more
            colors = {
                viewer.model.pieces[k].frame: tuple(handle.color)
                for k, handle in viewer.handles.items()
            }
            assert colors["cup"] == (41, 166, 76)
            assert colors["a"] == colors["panda_hand"]
            page.locator("input.mantine-NumberInput-input:visible").first.fill("2")
            page.keyboard.press("Enter")
            page.get_by_text("Orange (changed): a (pose)").wait_for()
            assert viewer.scene == moved
            assert distance(drawn_poses(page, ["a"])["a"], moved.pose("a")) < _TOLERANCE
            page.locator("input[type=checkbox]:visible").first.click()
            _until(lambda: not page.get_by_text("Orange (changed)").count(), page)
            viewer.show(scene)
            page.get_by_text("Mark changes").wait_for(state="detached")
            assert errors == []


def test_ellipsoids_of_uncertain_frames(browser):
    """Each uncertain frame has an ellipsoid of two standard deviations."""
    scene = unsure_blocks(0.02)
    with Viewer(scene, port=0) as viewer, open_page(browser, viewer.url) as (page, errors, _):
        page.wait_for_function("'/covariance' in window.__viserSceneTree.getState()")
        scales = page.evaluate(
            "Array.from(new Float32Array((b => b.buffer.slice(b.byteOffset, b.byteOffset +"
            " b.byteLength))"
            "(window.__viserSceneTree.getState()['/covariance'].message.props.batched_scales)))"
        )
        assert np.sort(np.reshape(scales, (-1, 3)), axis=1)[0, 1:] == pytest.approx(
            [0.04, 0.04], abs=1e-6
        )
        assert len(scales) == 3 * len(scene.noisy_frames)
        assert viewer.picked is None
        assert errors == []


def test_texts_of_a_scene_are_escaped(browser):
    """Names and classes of a stranger's scene are text in all panels."""
    name = "<img src=x onerror=alert(1)>"
    scene = tk.SceneGraph().add_frame(
        name, "world", shapes=[tk.AttachedShape(tk.Box([0.1, 0.1, 0.1]))], classes=[name]
    )
    with Viewer(scene, port=0) as viewer, open_page(browser, viewer.url) as (page, errors, _):
        viewer.pick(name)
        page.get_by_text("frame <img").first.wait_for(state="attached")
        assert page.locator("img[src=x]").count() == 0
        assert errors == []


def test_the_simulation_tells_its_states(plan):
    """States arrive thirty times a simulated second and end at the poses of the same report."""
    states: list[tuple[tk.SceneGraph, Any]] = []
    report = tk.simulate(plan, on_state=lambda scene, q: states.append((scene, q)))
    assert report == tk.simulate(plan)
    assert len(states) == pytest.approx(30.0 * report.duration, rel=0.05)
    last, q = states[-1]
    assert last.frame_names == plan.scene.frame_names
    metres, _ = last.pose("a", q=q).distance(plan.steps[-1].scene.pose("a"))
    assert metres == pytest.approx(report.errors["a"].position, abs=1e-3)


def test_bad_input_is_one_line():
    """A port in use, another value and a missing library are errors with advice."""
    scene = tk.SceneGraph()
    with Viewer(scene, port=0) as viewer:
        port = int(viewer.url.rsplit(":", 1)[1])
        with pytest.raises(
            OutputError, match=f"the port {port} of 127.0.0.1 cannot be used .*; choose another"
        ):
            Viewer(scene, port=port)
        with pytest.raises(
            ArgumentError, match="expected a scene, problem, plan or result, got str"
        ):
            viewer.show("plan.json")  # type: ignore[arg-type]
        with pytest.raises(tk.TmkitError, match="unknown frame 'nothing'"):
            viewer.pick("nothing")
    viewer.close()
    with pytest.raises(ConfigurationError, match="this is not a notebook"):
        enable_notebook()


def test_without_viser(monkeypatch):
    """The message names the missing package."""
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(MissingExtraError, match="the viewer needs the extra 'viewer': pip install"):
        Viewer(tk.SceneGraph())


def test_a_notebook_shows_three_dimensions():
    """IPython displays scenes and results as pages of their own."""
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    shell = shell_module.InteractiveShell.instance()
    try:
        enable_notebook(height=300)
        scene = tk.SceneGraph().add_frame(
            "box", "world", shapes=[tk.AttachedShape(tk.Box([0.1, 0.1, 0.1]))]
        )
        shown, _ = shell.display_formatter.format(scene)
        assert shown["text/html"].startswith('<iframe srcdoc="')
        assert 'height="300"' in shown["text/html"][-200:]
    finally:
        shell_module.InteractiveShell.clear_instance()


def _view(*arguments: str, folder: Path) -> Process:
    return Process(
        [sys.executable, "-m", "tmkit.cli", "view", *arguments],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.mark.parametrize("shown", [("panda_table", "blocks3"), ("worlds:try",)])
def test_the_command_shows_until_interrupted(tmp_path, shown, browser):
    """It prints the address, serves scenes or a store's branch, and ends cleanly on interrupt."""
    with Store(tmp_path / "worlds") as store:
        store.put(tk.SceneGraph().add_frame("a", "world"), "try")
    with _view(*shown, "--no-browser", "--port", "0", folder=tmp_path) as process:
        line = process.stdout.readline()
        assert "Showing at http://127.0.0.1:" in line
        with open_page(browser, line.split()[2]) as (page, errors, _):
            assert page.locator("[data-tmkit-frame=a]").count() == 1
            assert errors == []
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert "Closed." in process.communicate()[0]
    assert process.returncode == 130


def test_the_command_refuses_what_it_cannot_show(tmp_path, plan):
    """Unknown files and bad options are one line and exit code 2; pages need no server."""
    tk.save_plan(plan, tmp_path / "plan.json")
    with Store(tmp_path / "worlds") as store:
        store.put(plan.scene, "try")
    for arguments, expected in (
        (["missing.json"], "missing.json"),
        (["blocks33"], "did you mean 'blocks3'?"),
        (["plan.json", "--robot", "panda"], "'plan.json' contains this"),
        (["plan.json", "--domain", "kitchen"], "is not the one that was given"),
        (["plan.json", "--html", "plan.txt"], "a page must end in .html"),
        (["worlds", "--domain", "blocks"], "it is not for a store"),
        (["worlds:tru"], "did you mean 'try'?"),
    ):
        ended = tmkit(tmp_path, "view", *arguments, "--no-browser", "--port", "0", COLUMNS="200")
        assert ended.code == 2, ended.out
        assert expected in " ".join(ended.err.split())
        assert "Traceback" not in ended.err
    assert "Written to plan.html" in tmkit(tmp_path, "view", "plan.json", "--html", "plan.html").out
    assert (tmp_path / "plan.html").stat().st_size > 1_000_000


def test_the_facts_of_a_domain_of_ones_own(tmp_path, browser):
    """A plan file runs no code: facts need --domain, and a page without them has a warning."""

    def run(*arguments: str) -> Outcome:
        ended = tmkit(tmp_path, *arguments)
        assert ended.code == 0, ended
        return ended

    run("new", "domain", "dishes")
    scenes = ("panda_table", "dishes/scene.robray")
    run("plan", *scenes, "--domain", "./dishes", "--goal", "(in milk right)", "-o", "plan.json")
    bare = run("view", "plan.json", "--html", "bare.html")
    assert bare.err.startswith(
        "warning: the facts of the plan are not shown: the plan's domain 'dishes' is not built-in"
    )
    assert run("view", "plan.json", "--domain", "./dishes", "--html", "own.html").err == ""
    for name, expected in (("bare", 0), ("own", 1)):
        with open_page(browser, (tmp_path / f"{name}.html").as_uri()) as (page, errors, _):
            page.locator("#tmkit-next").click()
            assert (
                page.locator("#tmkit-facts .added", has_text="(holding milk)").count() == expected
            )
            assert errors == []


def test_two_versions_lead_back_to_the_plan(plan, browser):
    """Side by side with a version of the plan, and back."""
    with (
        Viewer(plan, port=0) as viewer,
        open_page(browser, viewer.url, width=1100) as (page, errors, _),
    ):
        page.get_by_role("tab", name="Plan").click()
        page.get_by_role("button", name="Side by side").click()
        page.get_by_text("Left: before").wait_for()  # the page has the new tabs
        page.get_by_role("tab", name="Plan").click()
        page.get_by_role("button", name="Back to the plan").click()
        _until(
            lambda: viewer.timeline is not None and viewer.model.frames == plan.scene.frame_names,
            page,
        )
        assert errors == []
