"""Fuzz the readers of URDF, SDF and meshes: ``fuzz_urdf.py --seconds 600 --seed 1``."""

from __future__ import annotations

from pathlib import Path

from engine import Target, main
from fuzz_robray import STL

from tmkit.formats import load_scene

ROBOT = b"""<?xml version="1.0"?>
<robot name="r">
<material name="red"><color rgba="1 0 0 1"/></material>
<link name="base"><visual><geometry><box size="1 1 0.1"/></geometry>
<material name="red"/></visual></link>
<link name="arm">
<inertial><origin xyz="0 0 1"/><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
<collision><origin rpy="0 0 1"/>
<geometry><mesh filename="tri.stl" scale="1 2 3"/></geometry></collision></link>
<link name="tip">
<collision><geometry><cylinder radius="0.1" length="1"/></geometry></collision></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="2" effort="3"/><dynamics damping="1" friction="0.1"/></joint>
<joint name="k" type="prismatic"><origin xyz="0 0 1"/><parent link="arm"/><child link="tip"/>
<limit lower="0" upper="1" velocity="1" effort="1"/><mimic joint="j" multiplier="2"/></joint>
</robot>
"""

USER = (
    b'<robot name="r"><link name="a"><visual><geometry><mesh'
    b' filename="%s"/></geometry></visual></link></robot>'
)
OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
WORDS = b"""
<link name="x"/> <joint> </joint> <mesh <sphere radius="0"/> <capsule radius="1" length="2"/>
floating planar fixed continuous <!DOCTYPE &amp; &x; <!-- --> <![CDATA[ ]]>
filename="../../outside.stl" filename="outside.stl" filename="file:///etc/passwd"
filename="package://x/../outside.stl" scale="0" <origin/> <axis/> <mimic rpy= xyz= v f vt usemtl
1/1/1 -1 facet vertex
"""


MODEL = b"""<?xml version="1.0"?>
<sdf version="1.9"><world name="w"><frame name="f"><pose degrees="true">0 0 1 0 90 0</pose></frame>
<include><uri>wheel.sdf</uri><name>left</name><pose relative_to="f">0 0 1 0 0 0</pose></include>
<model name="m" placement_frame="a"><link name="a"><pose relative_to="b">0 0 1 0 0 0</pose>
<inertial><mass>2</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>
<link name="b"><collision name="c"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 1</pose>
<geometry><mesh><uri>tri.stl</uri></mesh></geometry></collision></link>
<joint name="j" type="screw"><parent>a</parent><child>b</child>
<axis><xyz expressed_in="a">0 0 1</xyz>
<limit><lower>-1</lower><upper>1</upper></limit></axis><screw_thread_pitch>1</screw_thread_pitch></joint>
<model name="n"><static>true</static><link name="l"/><frame name="g" attached_to="l"/></model>
<joint name="k" type="universal"><parent>b</parent><child>n::g</child>
<axis><mimic joint="j"/></axis></joint>
</model></world></sdf>
"""
WHEEL = b'<sdf version="1.9"><model name="wheel"><link name="rim"/></model></sdf>'
SDF_WORDS = b"""
<link <joint <frame <model <include merge="true"> </model> <pose> <pose/> relative_to="b"
relative_to="__model__" attached_to="n::l" world ball fixed gearbox <ellipsoid> 1e16
<static>1</static> <uri>main.sdf</uri> version="1.4" <uri>model://x</uri> <uri>../outside.sdf</uri>
<uri>outside.stl</uri> <uri>/etc/passwd</uri> canonical_link="a"
"""


def targets() -> list[Target]:
    """Return the readers of URDF and SDF, and those of meshes that a URDF names."""
    words = WORDS.split()
    robot = Target(
        "urdf",
        "main.urdf",
        load_scene,
        [ROBOT],
        tokens=words,
        nestings=[(b"<link>", b"</link>"), (b"<a ", b"/>")],
        companions={"tri.stl": STL},
        outside={"outside.stl": STL},
        weight=2,
    )
    meshes = [
        Target(
            kind,
            f"m.{kind}",
            _read_user,
            [data],
            tokens=words,
            companions={"main.urdf": USER % f"m.{kind}".encode()},
        )
        for kind, data in (("stl", STL), ("obj", OBJ))
    ]
    model = Target(
        "sdf",
        "main.sdf",
        load_scene,
        [MODEL],
        tokens=[*words, *SDF_WORDS.split()],
        nestings=[(b"<model>", b"</model>"), (b'<model name="x">', b"</model>")],
        companions={"tri.stl": STL, "wheel.sdf": WHEEL},
        outside={"outside.stl": STL, "outside.sdf": WHEEL},
        weight=2,
    )
    return [robot, model, *meshes]


def _read_user(path: Path) -> object:
    return load_scene(path.with_name("main.urdf"))


if __name__ == "__main__":
    main(targets(), description=__doc__ or "")
