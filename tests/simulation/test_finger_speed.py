"""Speed at which the simulator moves fingers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from support.gantry import GANTRY, gantry_scene

from tmkit.graph import Mimic, Prismatic
from tmkit.simulation import PhysicsSettings
from tmkit.simulation.arm_controller import ArmController


class _Recorder:
    """Receiver of commands in place of a simulation."""

    settings = PhysicsSettings()

    def command_fingers(self, q: np.ndarray, **_: object) -> None:
        """Ignore the commanded positions."""
        del q


@pytest.mark.parametrize(("limit", "speed"), [(0.02, 0.01), (1.0, 0.1)])
def test_fingers_keep_the_velocity_limits_of_followers(limit: float, speed: float) -> None:
    """A follower at twice the speed of its leader halves the leader's limit."""
    follower = Prismatic(
        [0, -1, 0],
        lower=0.0,
        upper=0.08,
        velocity=limit,
        name="other",
        mimic=Mimic("finger", multiplier=2.0),
    )
    scene = gantry_scene().set_joint("right_finger", follower)
    q = np.array(GANTRY.ready_configuration(scene))
    controller = ArmController(cast(Any, _Recorder()), scene, GANTRY, q=q, by_constraint=False)
    entry = scene.joint_names.index("finger")
    before = q[entry]
    controller.set_finger_goals({"finger": 0.0})
    controller.command_fingers()
    assert before - q[entry] == pytest.approx(speed * PhysicsSettings().time_step)
