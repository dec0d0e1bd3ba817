"""A live scene: versions that follow each other, threads that edit, wait and are told."""

from __future__ import annotations

import threading

import pytest

from tmkit.errors import ListenerError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.world import LiveScene


def test_edits_of_several_threads_follow_each_other() -> None:
    """No version is lost, and all listeners are called."""
    world = LiveScene(SceneGraph())
    seen: list[SceneGraph] = []
    subscription = world.on_change(seen.append)

    def add(letter: str) -> None:
        for number in range(100):
            world.update(lambda scene, number=number: scene.add_frame(f"{letter}{number}", "world"))  # type: ignore[misc]

    threads = [threading.Thread(target=add, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(scene.frame_names) for scene in seen] == list(range(2, 402))
    assert world.scene is seen[-1]
    subscription.close()
    world.update(lambda scene: scene.add_frame("last", "world"))
    assert len(seen) == 400


def test_who_waits_gets_a_version_that_he_has_not_seen() -> None:
    """At once, or when it is made."""
    world = LiveScene()
    first = world.scene
    assert world.wait(first, timeout=0.0) is None
    world.update(lambda scene: scene)  # no other version
    assert world.wait(first, timeout=0.0) is None
    got: list[SceneGraph | None] = []
    waiting = threading.Thread(target=lambda: got.append(world.wait(first)), daemon=True)
    waiting.start()
    made = world.update(lambda scene: scene.add_frame("cup", "world"))
    waiting.join()
    assert got == [made]
    assert world.wait(first) is made  # without waiting


def test_an_edit_that_fails_leaves_the_version() -> None:
    """The error reaches the caller."""
    world = LiveScene()
    before = world.scene
    with pytest.raises(UnknownNameError, match="table"):
        world.update(lambda scene: scene.add_frame("cup", "table"))
    assert world.scene is before


def test_a_listener_that_raises_stops_no_other() -> None:
    """The version is made, all listeners are called, and the error names the failing ones."""
    world = LiveScene()
    seen: list[SceneGraph] = []

    def breaks(scene: SceneGraph) -> None:
        raise ValueError(f"{len(scene.frame_names)} are too many")

    world.on_change(breaks)
    subscription = world.on_change(seen.append)
    world.on_change(breaks)
    with pytest.raises(
        ListenerError, match=r"breaks raised ValueError: 2 are too many; listener .*breaks"
    ) as caught:
        world.update(lambda scene: scene.add_frame("cup", "world"))
    assert isinstance(caught.value.__cause__, ValueError)
    assert len(caught.value.data["listeners"]) == 2
    assert seen == [world.scene]
    assert "cup" in world.scene
    subscription.close()
    with pytest.raises(ListenerError, match="breaks"):
        world.update(lambda scene: scene.remove_frame("cup"))
    assert "cup" not in world.scene
