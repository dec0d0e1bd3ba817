"""Memory of dropped versions, configurations, collision worlds and shapes is freed."""

from __future__ import annotations

import os
import sys

import pytest
from support.processes import run_process

_MEASURE = """
import gc, numpy as np, tmkit as tk
from tmkit import _core
from tmkit.graph import AttachedShape, Box, Mesh, Revolute, diff
from tmkit.motion import CollisionWorld
_core._set_leak_warnings(True)

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

scene = tk.SceneGraph()
for number in range(20):
    parent = f"link{number - 1}" if number else "world"
    shape = AttachedShape(Box([0.1, 0.1, 0.1]))
    joint = Revolute([0, 0, 1], lower=-1, upper=1)
    pose = tk.Pose([0.3, 0, 0])
    scene = scene.add_frame(f"link{number}", parent, pose=pose, joint=joint, shapes=[shape])
q = scene.zero_configuration()
corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])

def version():
    scene.set_pose("link3", tk.Pose([0.3, 0.01, 0]))

def kinematics():
    scene.at(q).pose("link19")

def world():
    CollisionWorld(scene).contacts(q)

def mesh():
    vertices = np.random.default_rng(0).random((300, 3))
    triangles = np.arange(300).reshape(100, 3)
    scene.add_frame("thing", "world", shapes=[AttachedShape(Mesh(vertices, triangles))])

things = scene
for number in range(50):
    things = things.add_frame(f"thing{number}", "world", joint=tk.Free())
poses = [tk.Pose([0, 0, 0.1 * i]) for i in range(7)]
state = {"version": things, "count": 0}

def search():
    "Another version by every kind of edit, sometimes with a difference, an in-place edit or poses."
    version, i = state["version"], state["count"]
    version = version.reparent(f"thing{i % 49}", f"link{i % 20}", pose=poses[i % 7])
    if i % 10 == 0:
        version.at(q)
    if i % 50 == 0:
        with version.edit() as edit:
            edit.set_attribute("thing1", "number", i)
            edit.remove_frame("thing49")
            edit.add_frame("thing49", "world", joint=tk.Free())
            edit.set_group("group", frames=["thing49", "thing2"])
        version = edit.finish()
    if i % 100 == 0:
        version = version.apply(diff(version, things.reparent("thing3", "link5", q=q)))
    state["version"], state["count"] = version, i + 1
"""
# By hand, with HYPOTHESIS_PROFILE=long: a million.
_VERSIONS = 1_000_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 20_000


@pytest.mark.parametrize(
    ("what", "times"),
    [
        ("version", 10_000),
        ("kinematics", 10_000),
        ("world", 10_000),
        ("mesh", 10_000),
        ("search", _VERSIONS),
    ],
)
def test_what_is_dropped_is_freed(what: str, times: int) -> None:
    """After a warm-up, ten thousand more leave the process size unchanged."""
    program = (
        f"{_MEASURE}\nfor _ in range({times} // 5): {what}()\n"
        f"before = resident()\nfor _ in range({times}): {what}()\nprint(resident() - before)\n"
    )
    done = run_process([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert int(done.stdout) < 2_000_000  # bytes; a leak of one object each would be more
