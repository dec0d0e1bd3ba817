"""An SRDF for the Panda of ``panda_table``, in the style of MoveIt."""

from __future__ import annotations

READY = (0.0, -0.5, 0.0, -2.2, 0.0, 1.7, 0.785)

PANDA_SRDF = "\n".join(
    [
        '<robot name="panda">',
        '  <group name="arm"><chain base_link="panda_link0" tip_link="panda_link8"/></group>',
        '  <group name="hand"><link name="panda_hand"/><joint name="panda_finger_joint1"/></group>',
        '  <group name="all"><group name="arm"/><group name="hand"/></group>',
        '  <group_state name="ready" group="arm">',
        *(
            f'    <joint name="panda_joint{i}" value="{value}"/>'
            for i, value in enumerate(READY, start=1)
        ),
        "  </group_state>",
        (
            '  <group_state name="open" group="hand"><joint name="panda_finger_joint1"'
            ' value="0.04"/></group_state>'
        ),
        (
            '  <group_state name="close" group="hand"><joint name="panda_finger_joint1"'
            ' value="0"/></group_state>'
        ),
        (
            '  <end_effector name="gripper" parent_link="panda_link8" group="hand"'
            ' parent_group="arm"/>'
        ),
        (
            '  <virtual_joint name="stand" type="fixed" parent_frame="world"'
            ' child_link="panda_link0"/>'
        ),
        '  <passive_joint name="panda_finger_joint2"/>',
        '  <disable_default_collisions link="panda_link5"/>',
        '  <enable_collisions link1="panda_link5" link2="panda_link1"/>',
        '  <disable_collisions link1="panda_link0" link2="panda_link4" reason="Never"/>',
        '  <disable_collisions link1="panda_link1" link2="panda_link7"/>',
        '  <disable_collisions link1="panda_link0" link2="camera" reason="Never"/>',
        "</robot>",
    ]
)
