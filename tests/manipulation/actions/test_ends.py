"""Path search to any configuration at a contact: infeasible ones are ignored."""

from __future__ import annotations

from support.tamp_problems import add_block, table_scene

import tmkit as tk
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner, PickPlaceOptions
from tmkit.manipulation.actions.primitives import MotionSettings
from tmkit.manipulation.grasps.sampling import grasps_of
from tmkit.plans.failures import MotionFailure, PrimitiveFailedError


def test_one_configuration_that_can_be_approached_is_enough() -> None:
    """Some configurations near the base meet a joint limit; the first result is a motion."""
    arm, scene = tk.load_manipulator("panda"), add_block(table_scene(), "b", 0.25, 0.0)
    q, grasp = arm.ready_configuration(scene), grasps_of(scene, "b", robot=arm)[1]
    motion = ArmMotionPlanner(
        arm, budget=MotionSettings(8, path_iterations=300, is_multi_goal=True)
    )
    primitives, options = motion.primitives, PickPlaceOptions(min_fraction=0.2)
    phase = primitives.phase(scene, (), contact_object="b", support="table")
    target = scene.pose("b", q=q) @ grasp.object_from_tool
    failures = 0
    for contact in primitives.contacts(phase, target, q=q, seed=0, label="reaching"):
        assert not isinstance(contact, MotionFailure)
        try:
            primitives.tool_line(
                phase,
                contact,
                label="approach",
                length=options.approach_distance,
                min_fraction=options.min_fraction,
            )
        except PrimitiveFailedError:
            failures += 1
    assert failures
    result = next(motion.pick(scene, q, object="b", grasp=grasp, seed=0, motion=options))
    assert isinstance(result, ActionMotion)
    assert result.scene.parent("b") == arm.tip
