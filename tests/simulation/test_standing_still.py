"""Objects on the floor without contact to a robot keep their poses."""

from __future__ import annotations

import numpy as np
from support.kitchen import ROBOT, block_names, kitchen

from tmkit.robots import load_manipulator
from tmkit.simulation import Simulation


def test_blocks_that_stand_on_the_floor_do_not_creep() -> None:
    """In ten seconds a tall block moves by less than 0.05 mm and turns by less than 0.2 mrad."""
    scene, arm = kitchen(2), load_manipulator(ROBOT)
    q = np.array(arm.ready_configuration(scene))
    with Simulation.from_scene(scene, q, robot=arm) as simulation:
        for _ in range(round(10.0 / simulation.settings.time_step)):
            simulation.command(q, np.zeros_like(q))
            simulation.step()
        for name in block_names(2):
            metres, radians = scene.pose(name, relative_to="world").distance(simulation.pose(name))
            assert metres < 5e-5
            assert radians < 2e-4
