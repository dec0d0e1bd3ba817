"""Offline pages in a real browser: drawn poses are those of the plan, in either time direction."""

from __future__ import annotations

import numpy as np
import pytest
from support.browser import distance, drawn_poses, open_page

import tmkit as tk
from tmkit.errors import ArgumentError, OutputError
from tmkit.visualization import save_html
from tmkit.visualization.page import plan_timeline
from tmkit.visualization.scene_model import bounds, scene_model, view_bounds

pytest.importorskip("viser")

_DEMO_BYTES = 3_000_000
# tolerance [m] and of quaternions: poses are written in units of 1e-6, and add up along the arm
_TOLERANCE = 3e-5
_FRAMES = ("a", "b", "c", "panda_link4", "panda_hand", "panda_leftfinger", "table")


@pytest.fixture(scope="module")
def plan() -> tk.Plan:
    """A tower of three blocks."""
    result = tk.plan(
        tk.load_scene("panda_table", "blocks3"), goal="(and (on a b) (on b c))", seed=0
    )
    assert result.plan is not None
    return result.plan


def test_the_samples_end_where_the_plan_has_each_step(plan):
    """Each action ends in the version and near the configuration of the plan, with its facts."""
    timeline = plan_timeline(plan)
    for sample, step in zip(timeline.steps, plan.steps, strict=True):
        assert timeline.scenes[sample] == step.scene
        # the next begins without a stop
        np.testing.assert_allclose(timeline.q[sample], step.q, atol=0.05)
    np.testing.assert_array_equal(timeline.q[-1], plan.steps[-1].q)
    assert np.max(np.abs(np.diff(timeline.q, axis=0))) < 0.2
    assert len(timeline.facts) == len(plan.steps) + 1
    assert {"(on a b)", "(on b c)"} <= set(timeline.facts[-1])
    assert np.all(np.diff(timeline.times) > 0.0)


def test_scrubbing_an_offline_page_moves_the_scene(plan, tmp_path, browser):
    """The nodes are where the plan has them, forwards and back, and the page makes no request."""
    path = save_html(plan, tmp_path / "plan.html", autoplay=False)
    assert path.stat().st_size < _DEMO_BYTES
    timeline = plan_timeline(plan)
    samples = np.random.default_rng(0).integers(0, len(timeline.times), 8).tolist()
    with open_page(browser, path.as_uri()) as (page, errors, requests):
        for sample in [*timeline.steps, 0, *samples]:  # forwards, to the start, and to and fro
            page.evaluate("t => tmkit.seek(t)", timeline.times[sample])
            kinematics = timeline.scenes[sample].at(timeline.q[sample])
            for frame, drawn in drawn_poses(page, _FRAMES).items():
                assert distance(drawn, kinematics.pose(frame)) < _TOLERANCE, (
                    f"{frame} at sample {sample}"
                )
        assert errors == []
        assert requests == [path.as_uri()]


def test_the_panel_has_actions_captions_and_facts(plan, tmp_path, browser):
    """Actions, segments, captions and facts follow buttons, keys and clicks."""
    path = save_html(plan, tmp_path / "plan.html", autoplay=False)
    with open_page(browser, path.as_uri()) as (page, errors, _):
        assert page.locator("#tmkit-track .action").all_text_contents() == [
            str(action) for action in plan.actions
        ]
        assert page.locator("#tmkit-track .segment").count() == sum(
            len(step.segments) for step in plan.steps
        )
        page.locator("#tmkit-next").click()
        assert "(holding b)" in page.locator("#tmkit-facts .added").all_text_contents()
        assert "(handempty)" in page.locator("#tmkit-facts .removed").all_text_contents()
        kinds = {segment.kind.value for step in plan.steps for segment in step.segments}
        legend = page.locator("#tmkit-legend span").all_text_contents()
        assert len(legend) == len(kinds)
        assert set(legend) == kinds
        page.locator("#tmkit-next").click()
        facts = page.locator("#tmkit-facts p").all_text_contents()
        assert "(on b c)" in facts
        assert len(set(facts)) == len(facts)  # each once
        assert "3/4 (pick-up a" in page.locator("#tmkit-caption").inner_text()
        page.locator("#tmkit-previous").click()
        page.locator("#tmkit-previous").click()
        assert page.evaluate("tmkit.time") == 0.0
        page.keyboard.press("End")
        page.keyboard.press("Space")  # plays
        page.wait_for_function("tmkit.time > 0.5")
        page.keyboard.press("Space")
        assert page.evaluate("tmkit.playing") is False
        box = page.locator("#tmkit-track").bounding_box()
        page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 10)
        assert page.evaluate("tmkit.time / tmkit.duration") == pytest.approx(0.5, abs=0.01)
        assert errors == []


def test_the_view_shows_the_moving_frames_and_the_floor_is_below_all(plan):
    """Legs of a table and a large floor neither widen the view nor are cut by the floor."""
    scene = plan.scene
    slab = tk.AttachedShape(tk.Box([3.9, 3.9, 0.1]), collision=False)
    large = scene.add_frame("slab", "world", pose=tk.Pose([0.5, 0.0, -0.9]), shapes=[slab])
    boxes = []
    for version in (scene, large):
        model, poses = scene_model(version), version.at(plan.q).poses
        boxes.append(view_bounds(model, poses))
        assert bounds(model, poses)[0, 2] == pytest.approx(-0.7 if version is scene else -0.95)
    low, high = boxes[0]
    for frame in ("a", "b", "c", "panda_hand", "panda_link0"):
        position = scene.pose(frame, q=plan.q).translation
        assert np.all(low <= position)
        assert np.all(position <= high)
    assert low[2] > -0.3
    # The slab fills the neighbourhood, and no more.
    assert np.all(np.abs(boxes[1] - boxes[0]) < 0.25)


def test_hovering_shows_the_name_of_a_body(plan, tmp_path, browser):
    """The body under the pointer is named, and picked by a click."""
    path = save_html(plan.scene, tmp_path / "scene.html", q=plan.q)
    with open_page(browser, path.as_uri()) as (page, errors, requests):
        hand = drawn_poses(page, ["panda_hand"])["panda_hand"]
        assert distance(hand, plan.scene.pose("panda_hand", q=plan.q)) < _TOLERANCE
        pixel = page.evaluate("tmkit.pixel('c')")
        page.mouse.move(*pixel)
        assert page.evaluate("tmkit.hovered") == "c"
        page.mouse.click(*pixel)
        assert page.evaluate("tmkit.picked") == "c"
        assert errors == []
        assert requests == [path.as_uri()]


def test_names_of_a_stranger_are_text(tmp_path, browser):
    """Names and texts of a file run no code in the page."""
    name = "</script><img src=x onerror=alert(1)>"
    scene = tk.SceneGraph().add_frame(
        name, "world", shapes=[tk.AttachedShape(tk.Box([0.1, 0.1, 0.1]))]
    )
    path = save_html(scene, tmp_path / "scene.html")
    with open_page(browser, path.as_uri()) as (page, errors, requests):
        assert page.evaluate("name => tmkit.pose(name).length", name) == 7
        assert page.locator("img[src=x]").count() == 0
        assert errors == []
        assert requests == [path.as_uri()]


def test_a_plan_without_actions_has_a_page(tmp_path, browser):
    """A goal that holds at the start has a page with one sentence."""
    result = tk.plan(tk.load_scene("panda_table", "blocks1"), goal="(handempty)")
    path = save_html(result.plan, tmp_path / "plan.html", autoplay=False)
    with open_page(browser, path.as_uri()) as (page, errors, _):
        assert "holds at the start" in page.locator("#tmkit-caption").inner_text()
        assert errors == []


def test_bad_input_is_refused_before_anything_is_drawn(plan, tmp_path):
    """An unwritable file or an undrawable scene is an error of one line."""
    with pytest.raises(OutputError, match=r"a page must end in \.html"):
        save_html(plan, tmp_path / "plan.json")
    with pytest.raises(OutputError, match="missing"):
        save_html(plan, tmp_path / "missing" / "plan.html")
    with pytest.raises(ArgumentError, match="save_html"):
        save_html("plan.json", tmp_path / "plan.html")
    assert list(tmp_path.iterdir()) == []


def test_pages_print_nothing(plan, tmp_path, capfd):
    """The standard output belongs to the caller."""
    save_html(plan.scene, tmp_path / "scene.html")
    assert capfd.readouterr() == ("", "")
