"""Robot descriptions of two packages, compared with pinocchio as in ``urdf_table.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmkit.formats import load_scene

pytest.importorskip("pinocchio")
pytest.importorskip("pybullet_data")

from support.urdf_comparison import example_robot_data, pybullet_data, worst_difference

BULLET = (
    "bicycle/bike.urdf",
    "cube_rotate.urdf",
    "husky/husky.urdf",
    "laikago/laikago_toes.urdf",
    "plane_implicit.urdf",
    "quadruped/spirit40newer.urdf",
    "spherical_joint_limit.urdf",
    "xarm/xarm6_with_gripper.urdf",
)
EXAMPLES = (
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf",
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "quadruped_description/urdf/quadruped.urdf",
)


@pytest.mark.parametrize(
    "path", [*(pybullet_data() / n for n in BULLET), *(example_robot_data() / n for n in EXAMPLES)]
)
def test_link_poses_agree_with_pinocchio(path: Path) -> None:
    """At random configurations, every entry of the transforms of all links agrees to 1e-9."""
    if not path.is_file():
        pytest.skip(f"{path.name} is not installed")
    difference = worst_difference(path, load_scene(path), configurations=20)
    assert difference.links > 0
    assert difference.entry < 1e-9
