"""Processes forked beside threads that work in the core."""

from __future__ import annotations

import os
import sys

import pytest
from support.processes import run_process

_PROGRAM = """
import os, threading
import numpy as np
from tmkit._core import Box, AttachedShape, CollisionWorld, Mesh
from tmkit.graph import Fixed, Revolute, SceneArrays, SceneGraph
from tmkit.spatial import Pose

edit = SceneGraph().edit()
parent = "world"
for number in range(600):
    turns = number < 40
    edit.add_frame(f"f{number}", parent, joint=Revolute([0, 0, 1]) if turns else Fixed())
    parent = f"f{number}" if turns else parent
scene = edit.finish()
arrays = SceneArrays(scene)
one, two = np.zeros(40), np.full(40, 0.01)
stop = False

def write():
    while not stop:
        arrays.forward(one)
        arrays.forward(two)

points = np.random.default_rng(0).normal(size=(3000, 3))
def hulls():
    while not stop:
        mesh = Mesh(points * np.random.random(), [[0, 1, 2]])
        s = SceneGraph().add_frame("m", "world", shapes=[AttachedShape(mesh)])
        s = s.add_frame("b", "world", shapes=[AttachedShape(Box([1, 1, 1]))])
        shared.append(s)
        CollisionWorld(s)

shared = []
threads = [threading.Thread(target=write), threading.Thread(target=hulls)]
for thread in threads:
    thread.start()
poses = [SceneArrays(scene).freeze().at(q).poses for q in (one, two)]
for number in range(150):
    child = os.fork()
    if child == 0:
        seen = arrays.poses
        good = any(np.array_equal(seen, each) for each in poses)  # one whole state, not a mixture
        arrays.forward(one)
        good &= np.array_equal(arrays.poses, poses[0])
        arrays.set_pose("f599", Pose([1, 2, 3]))
        if shared:
            CollisionWorld(shared[-1]).is_in_collision([])
        os._exit(0 if good else 1)
    _, status = os.waitpid(child, 0)
    if status != 0:
        stop = True
        raise SystemExit(f"child {number} ended with {status}")
stop = True
for thread in threads:
    thread.join()
print("lived")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes fork on POSIX only")
def test_children_of_a_process_whose_threads_work_can_go_on() -> None:
    """A child forked during ``forward`` or the computation of a hull reads a whole state."""
    done = run_process(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout) == (0, "lived\n"), done.stderr[-2000:]
