"""Fuzz the reader of SRDF files: ``python tests/fuzz/fuzz_srdf.py --seconds 600 --seed 1``."""

from __future__ import annotations

from pathlib import Path

from engine import Target, main

from tmkit.formats import load_scene
from tmkit.formats.srdf import read_srdf
from tmkit.formats.srdf.files import srdf_text
from tmkit.formats.srdf.values import group_members
from tmkit.robots import manipulator_from_srdf
from tmkit.robots.srdf_arms import HandChoice

ARM = b"""\
<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/><link name="upper"/><link name="lower"/>
  <link name="finger"><collision><geometry><box size="0.1 0.02 0.02"/></geometry></collision></link>
  <link name="thumb"><collision><geometry><box size="0.1 0.02 0.02"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
    <origin xyz="0.5 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="grip" type="prismatic"><parent link="lower"/><child link="finger"/>
    <axis xyz="0 1 0"/><origin xyz="0 0.01 0"/>
    <limit lower="0" upper="0.04" effort="1" velocity="1"/></joint>
  <joint name="thumb" type="prismatic"><parent link="lower"/><child link="thumb"/>
    <axis xyz="0 -1 0"/><origin xyz="0 -0.01 0"/><mimic joint="grip"/>
    <limit lower="0" upper="0.04" effort="1" velocity="1"/></joint>
</robot>
"""
SEMANTICS = b"""\
<?xml version="1.0" encoding="utf-8"?>
<robot name="arm">
  <!-- an arm and its hand -->
  <virtual_joint name="stand" type="fixed" parent_frame="world" child_link="base"/>
  <group name="arm"><chain base_link="base" tip_link="lower"/></group>
  <group name="hand"><link name="finger"/><link name="thumb"/></group>
  <group name="all"><group name="arm"/><group name="hand"/></group>
  <group_state name="home" group="arm">
    <joint name="shoulder" value="0.5"/><joint name="elbow" value="-1e-1"/>
  </group_state>
  <group_state name="open" group="hand"><joint name="grip" value="0.04"/></group_state>
  <group_state name="closed" group="hand"><joint name="grip" value="0"/></group_state>
  <end_effector name="hand" parent_link="lower" group="hand" parent_group="arm"/>
  <passive_joint name="thumb"/>
  <disable_collisions link1="base" link2="upper" reason="Adjacent"/>
  <disable_default_collisions link="lower"/>
  <enable_collisions link1="lower" link2="base"/>
  <gripper name="other"/>
</robot>
"""
WORDS = b"""
group group_state end_effector virtual_joint passive_joint disable_collisions
disable_default_collisions robot enable_collisions joint link chain gripper name= link1= link2=
reason= value= base_link= tip_link= parent_link= group= parent_group= type= fixed planar floating
parent_frame= child_link= world "base" "upper" "lower" "finger" "arm" "hand" "all" <group/> <group
<joint </group> <!DOCTYPE &amp; &x; &#0; &#1; <!-- --> <![CDATA[ ]]> <?x ?> $(optenv $(arg
xmlns="urn:a" xmlns:xacro="x" <xacro:a/> nan inf 1,2
"""


def target() -> Target:
    """Return the reader of SRDF with a file about a small arm to begin with."""
    return Target(
        "srdf",
        "main.srdf",
        read,
        [SEMANTICS],
        tokens=WORDS.split(),
        companions={"arm.urdf": ARM},
        nestings=[
            (b"<group>", b"</group>"),
            (b'<group name="a">', b"</group>"),
            (b"<a ", b"/>"),
            (b"a", b""),
            (b"9", b""),
            (b"<group_state>", b"</group_state>"),
            (b'<disable_collisions link1="base" link2="upper"/>', b""),
            (b'<group name="all"/>', b""),
            (b"\n", b""),
        ],
    )


def read(path: Path) -> object:
    """Read, write and reread the file; load it with its robot, and make an arm of a group."""
    semantics = read_srdf(path)
    written = path.with_name("written.srdf")
    written.write_text(srdf_text(semantics), encoding="utf-8")
    assert read_srdf(written) == semantics
    scene = load_scene(path.with_name("arm.urdf"), path)
    for group in semantics.groups:
        group_members(semantics, scene, group=group.name)
        if group.name == "arm":
            manipulator_from_srdf(path, scene, group="arm", hand=HandChoice(tool="lower"))
    return semantics


if __name__ == "__main__":
    main([target()], description=__doc__ or "")
