"""Fuzz the readers of URDF and of meshes: ``python tests/fuzz/fuzz_urdf.py --seconds 600 --seed 1``."""

from __future__ import annotations

from pathlib import Path

from engine import Target, main
from fuzz_robray import STL

from tmkit.formats import load_scene

ROBOT = b"""<?xml version="1.0"?>
<robot name="r">
<material name="red"><color rgba="1 0 0 1"/></material>
<link name="base"><visual><geometry><box size="1 1 0.1"/></geometry><material name="red"/></visual></link>
<link name="arm">
<inertial><origin xyz="0 0 1"/><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
<collision><origin rpy="0 0 1"/><geometry><mesh filename="tri.stl" scale="1 2 3"/></geometry></collision></link>
<link name="tip"><collision><geometry><cylinder radius="0.1" length="1"/></geometry></collision></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="2" effort="3"/><dynamics damping="1" friction="0.1"/></joint>
<joint name="k" type="prismatic"><origin xyz="0 0 1"/><parent link="arm"/><child link="tip"/>
<limit lower="0" upper="1" velocity="1" effort="1"/><mimic joint="j" multiplier="2"/></joint>
</robot>
"""

USER = b'<robot name="r"><link name="a"><visual><geometry><mesh filename="%s"/></geometry></visual></link></robot>'
OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
WORDS = b"""
<link name="x"/> <joint> </joint> <mesh <sphere radius="0"/> <capsule radius="1" length="2"/> floating planar fixed
continuous <!DOCTYPE &amp; &x; <!-- --> <![CDATA[ ]]> filename="../../outside.stl" filename="outside.stl" filename="file:///etc/passwd"
filename="package://x/../outside.stl" scale="0" <origin/> <axis/> <mimic rpy= xyz= v f vt usemtl 1/1/1 -1 facet vertex
"""


def targets() -> list[Target]:
    """Return the reader of URDF, and those of meshes that a URDF names."""
    words = WORDS.split()
    robot = Target(
        "urdf", "main.urdf", load_scene, [ROBOT], tokens=words, nestings=[(b"<link>", b"</link>"), (b"<a ", b"/>")],
        companions={"tri.stl": STL}, outside={"outside.stl": STL}, weight=2,
    )  # fmt: skip
    meshes = [
        Target(
            kind, f"m.{kind}", _read_user, [data], tokens=words, companions={"main.urdf": USER % f"m.{kind}".encode()}
        )
        for kind, data in (("stl", STL), ("obj", OBJ))
    ]
    return [robot, *meshes]


def _read_user(path: Path) -> object:
    return load_scene(path.with_name("main.urdf"))


if __name__ == "__main__":
    main(targets(), description=__doc__ or "")
