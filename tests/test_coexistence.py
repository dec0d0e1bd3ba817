"""tmkit in one process with packages that contain coal, Boost or Eigen: pinocchio, coal, ompl.

The compiled core has its own libraries, under separate names. So whichever package is imported
first, each must use the libraries of its build. Each test runs in a new interpreter, since an
import cannot be undone.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from pathlib import Path

import pytest
from support.processes import run_process

TMKIT = """
import numpy as np
from tmkit.graph import AttachedShape, Box, Mesh, Prismatic, SceneGraph
from tmkit.motion import CollisionWorld
def tmkit_answers():
    corners = [[x, y, z] for x in (-.5, .5) for y in (-.5, .5) for z in (-.5, .5)]
    mesh = Mesh(corners, [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
                          [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]])
    scene = SceneGraph().add_frame("a", "world", shapes=[AttachedShape(mesh)])
    box = AttachedShape(Box([1, 1, 1]))
    scene = scene.add_frame("b", "world", joint=Prismatic([1, 0, 0]), shapes=[box])
    for level in ("hull", "exact"):
        world = CollisionWorld(scene, level=level)
        assert [world.is_in_collision([x]) for x in (0.9, 1.1)] == [True, False], level
        assert abs(world.distance([1.5]) - 0.5) < 1e-6
"""

PINOCCHIO = """
import pinocchio
def pinocchio_answers():
    model, data = pinocchio.buildSampleModelManipulator(), None
    data = model.createData()
    pinocchio.forwardKinematics(model, data, pinocchio.neutral(model))
    assert data.oMi[1].homogeneous.shape == (4, 4)
"""

COAL = """
import numpy, coal
def coal_answers():
    def collide(x):
        request, result = coal.CollisionRequest(), coal.CollisionResult()
        box, origin = coal.Box(1, 1, 1), coal.Transform3s()
        pose = coal.Transform3s(numpy.eye(3), numpy.array([x, 0.0, 0.0]))
        return bool(coal.collide(box, origin, box, pose, request, result))
    assert [collide(0.9), collide(1.1)] == [True, False]
"""

OMPL = """
from ompl import base
def ompl_answers():
    space = base.RealVectorStateSpace(2)
    assert space.getDimension() == 2
"""

PARTS = {"tmkit": TMKIT, "pinocchio": PINOCCHIO, "coal": COAL, "ompl": OMPL}


@pytest.mark.parametrize(
    "order",
    [
        pair
        for other in ("pinocchio", "coal", "ompl")
        for pair in itertools.permutations(("tmkit", other))
    ]
    + [("pinocchio", "coal", "tmkit"), ("tmkit", "coal", "pinocchio")],
    ids="-".join,
)
def test_imports_in_any_order(order: tuple[str, ...], tmp_path: Path) -> None:
    """Each package computes correctly after all are imported, in both orders."""
    for name in order:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    calls = [f"{name}_answers()" for name in (*order, *reversed(order))]
    code = "\n".join([*(PARTS[name] for name in order), *calls, "print('done')"])
    command = [sys.executable, "-c", code]
    run = run_process(
        command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr


def test_the_core_needs_no_library_of_another_package(tmp_path: Path) -> None:
    """With tmkit alone imported, each library is the system's, Python's, numpy's or tmkit's."""
    code = f"{TMKIT}\ntmkit_answers()\nprint(open('/proc/self/maps').read())"
    command = [sys.executable, "-c", code]
    run = run_process(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = {line.split()[-1] for line in run.stdout.splitlines() if ".so" in line}
    assert any("libtmkit-coal" in path for path in loaded)
    assert not [
        path for path in loaded if "cmeel" in path or ("boost" in path and "libtmkit-" not in path)
    ]
