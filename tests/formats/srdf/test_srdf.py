"""Content, omitted elements and errors of SRDF files."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.panda_srdf import PANDA_SRDF

from tmkit.errors import FileFormatError, MissingFileError, RobotError, SceneError, UnknownNameError
from tmkit.formats import ReadingOptions, load_scene
from tmkit.formats.srdf import read_srdf, write_srdf
from tmkit.formats.srdf.values import (
    Chain,
    EndEffector,
    GroupState,
    LinkPair,
    RobotSemantics,
    SrdfGroup,
    VirtualJoint,
    group_members,
)


def write_robot(folder: Path, *elements: str) -> Path:
    """Write a robot of elements, one a line from the second on."""
    path = folder / "robot.srdf"
    path.write_text("\n".join(['<robot name="r">', *elements, "</robot>"]), encoding="utf-8")
    return path


def robots() -> Path:
    """Return the folder of the robots of example-robot-data."""
    cmeel = pytest.importorskip("pinocchio")
    for folder in Path(cmeel.__file__).parents:
        result = folder / "share" / "example-robot-data" / "robots"
        if result.is_dir():
            return result
    pytest.skip("example-robot-data is not installed")


def test_every_part_is_read(tmp_path: Path) -> None:
    """Groups, states, end effectors, joints and pairs of a file are those of the value."""
    path = tmp_path / "panda.srdf"
    path.write_text(PANDA_SRDF)
    value = read_srdf(path)
    assert value.group_names == ("arm", "hand", "all")
    assert value.group("arm").chains == (Chain("panda_link0", "panda_link8"),)
    assert value.group("all").subgroups == ("arm", "hand")
    assert [state.name for state in value.states_of("arm")] == ["ready"]
    assert value.states[1].joint_values == {"panda_finger_joint1": 0.04}
    assert value.end_effector("gripper") == EndEffector("gripper", "panda_link8", "hand", "arm")
    assert value.virtual_joints == (VirtualJoint("stand", "fixed", "world", "panda_link0"),)
    assert value.passive_joints == ("panda_finger_joint2",)
    assert value.unchecked_links == ("panda_link5",)
    assert value.disabled[0] == LinkPair("panda_link0", "panda_link4", "Never")
    assert value.notes == ()
    assert (
        repr(value)
        == "RobotSemantics('panda', 3 groups, 3 states, 1 end effectors, 3 disabled pairs)"
    )


names = st.text(
    st.characters(codec="ascii", categories=("L", "N"), include_characters="_/"),
    min_size=1,
    max_size=6,
)
numbers = st.floats(allow_nan=False, allow_infinity=False)
groups = st.builds(
    SrdfGroup,
    names,
    joints=st.lists(names, max_size=2).map(tuple),
    links=st.lists(names, max_size=2).map(tuple),
    chains=st.lists(st.builds(Chain, names, names), max_size=2).map(tuple),
    subgroups=st.lists(names, max_size=2).map(tuple),
)
values = st.dictionaries(names, st.lists(numbers, min_size=1, max_size=3).map(tuple), max_size=3)
states = st.builds(
    GroupState, names, st.just("") | names, values.map(lambda result: tuple(result.items()))
)
pairs = (
    st.tuples(names, names, st.just("") | names)
    .filter(lambda p: p[0] != p[1])
    .map(lambda p: LinkPair(*p))
)
semantics = st.builds(
    RobotSemantics,
    names,
    groups=st.lists(groups, max_size=3, unique_by=lambda group: group.name).map(tuple),
    states=st.lists(states, max_size=3, unique_by=lambda state: (state.group, state.name)).map(
        tuple
    ),
    end_effectors=st.lists(
        st.builds(EndEffector, names, names, names, st.just("") | names),
        max_size=2,
        unique_by=lambda item: item.name,
    ).map(tuple),
    virtual_joints=st.lists(
        st.builds(
            VirtualJoint, names, st.sampled_from(["fixed", "planar", "floating"]), names, names
        ),
        max_size=2,
    ).map(tuple),
    passive_joints=st.lists(names, max_size=2).map(tuple),
    disabled=st.lists(pairs, max_size=3).map(tuple),
    unchecked_links=st.lists(names, max_size=2).map(tuple),
    enabled=st.lists(pairs, max_size=2).map(tuple),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=semantics)
def test_a_written_value_reads_back_equal(value: RobotSemantics, tmp_path: Path) -> None:
    """A value reads back equal from a file and from a pickle."""
    assert read_srdf(write_srdf(value, tmp_path / "out.srdf")) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_the_files_of_public_robots_are_read() -> None:
    """Every SRDF of example-robot-data is read, and reads back equal when written."""
    files = sorted(robots().glob("*/srdf/*.srdf"))
    assert len(files) >= 30
    for file in files:
        assert isinstance(read_srdf(file), RobotSemantics)


@pytest.mark.parametrize(
    ("urdf", "srdf"),
    [
        ("ur_description/urdf/ur5_gripper.urdf", "ur_description/srdf/ur5_gripper.srdf"),
        ("xarm_description/urdf/xarm7.urdf", "xarm_description/srdf/xarm7.srdf"),
        ("panda_description/urdf/panda.urdf", "panda_description/srdf/panda.srdf"),
    ],
)
def test_the_disabled_pairs_are_those_that_pinocchio_removes(urdf: str, srdf: str) -> None:
    """The disabled pairs of a file are the pairs that pinocchio's reader removes."""
    pin = pytest.importorskip("pinocchio")
    folder = robots()
    packages = str(folder.parent.parent)
    model = pin.buildModelFromUrdf(str(folder / urdf))
    geometry = pin.buildGeomFromUrdf(
        model, str(folder / urdf), pin.GeometryType.COLLISION, package_dirs=[packages]
    )
    geometry.addAllCollisionPairs()

    def links() -> set[frozenset[str]]:
        result = set()
        for pair in geometry.collisionPairs:
            ends = (geometry.geometryObjects[index] for index in (pair.first, pair.second))
            result.add(frozenset(model.frames[end.parentFrame].name for end in ends))
        return result

    before = links()
    pin.removeCollisionPairs(model, geometry, str(folder / srdf))
    theirs = before - links()
    disabled = {frozenset((pair.link1, pair.link2)) for pair in read_srdf(folder / srdf).disabled}
    assert disabled & before == theirs
    scene = load_scene(
        folder / urdf, folder / srdf, reading=ReadingOptions(package_path=[packages])
    )
    assert all(scene.is_allowed(*pair) for pair in theirs)


def test_elements_of_other_programs_are_omitted_with_a_note(tmp_path: Path) -> None:
    """Each unknown tag is noted once, with the nearest known name if it may be misspelt."""
    path = write_robot(
        tmp_path,
        '<gripper name="g"/>',
        '<gripper name="h"/>',
        '<disable_collision link1="a" link2="b"/>',
    )
    notes = [str(note) for note in read_srdf(path).notes]
    assert notes == [
        f"{path}:2: <gripper> (2 times) in <robot> is ignored",
        f"{path}:4: <disable_collision> in <robot> is ignored; did you mean 'disable_collisions'?",
    ]


def test_a_passive_joint_in_a_group_is_noted(tmp_path: Path) -> None:
    """As in the Panda's file, where MoveIt ignores it too; the note has its place."""
    path = tmp_path / "r.srdf"
    group = "<group name='hand'><joint name='a'/><passive_joint name='b'/></group>"
    path.write_text(f"<robot name='r'>{group}</robot>")
    (note,) = read_srdf(path).notes
    assert note.text == "<passive_joint> in <group> is ignored; its place is directly in <robot>"


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ("<group/>", "srdf:2: <group> needs the attribute 'name'"),
        ('<group name="g"/><group name="g"/>', "srdf:2: the group 'g' is declared twice, first at"),
        (
            '<group name="g"><chain base_link="a"/></group>',
            "<chain> needs the attribute 'tip_link'",
        ),
        (
            '<group_state name="s" group="g"><joint name="j" value="x"/></group_state>',
            "expected a finite number",
        ),
        (
            (
                '<group_state name="s"><joint name="j" value="1"/><joint name="j"'
                ' value="1"/></group_state>'
            ),
            "the state 's' has the joint 'j' twice",
        ),
        (
            '<virtual_joint name="v" type="fixd" parent_frame="w" child_link="b"/>',
            "did you mean 'fixed'",
        ),
        ('<disable_collisions link1="a" link2="a"/>', "expected two different links"),
        ('<xacro:macro xmlns:xacro="http://www.ros.org/wiki/xacro"/>', "expand it to SRDF first"),
    ],
)
def test_errors_are_rejected_at_their_line(tmp_path: Path, element: str, message: str) -> None:
    """Errors have the file, the line and the expected value."""
    with pytest.raises(FileFormatError, match=message):
        read_srdf(write_robot(tmp_path, element))


def test_names_that_are_not_there(tmp_path: Path) -> None:
    """Unknown names are rejected with the nearest name, and repeated groups too."""
    path = write_robot(tmp_path, '<group name="arm"/>')
    with pytest.raises(MissingFileError, match=r"did you mean '.*robot\.srdf'"):
        read_srdf(tmp_path / "robt.srdf")
    with pytest.raises(
        UnknownNameError, match=r"unknown group 'am'; did you mean 'arm'\? \(known: arm\)"
    ):
        read_srdf(path).group("am")
    with pytest.raises(SceneError, match="the group 'a' is declared twice"):
        RobotSemantics("r", groups=(SrdfGroup("a"), SrdfGroup("a")))


def test_members_of_groups(tmp_path: Path) -> None:
    """Chains, links, joints and subgroups give joints and frames in the order of the scene."""
    path = tmp_path / "panda.srdf"
    path.write_text(PANDA_SRDF)
    scene = load_scene("panda_table")
    result = group_members(read_srdf(path), scene, group="all")
    assert result.joints == (*(f"panda_joint{i}" for i in range(1, 8)), "panda_finger_joint1")
    assert "panda_link8" in result.frames
    assert "panda_grasptarget" not in result.frames
    assert result.unnamed == ()


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<group name="b"/>', "the group 'a' contains no group 'b'"),
        ('<group name="a"/>', "the group 'a' contains itself"),
        (
            '<link name="panda_link9"/>',
            "srdf:2: the group 'a' names the link 'panda_link9', .* did you mean",
        ),
        (
            '<chain base_link="panda_link0" tip_link="x"/>',
            "names the link 'x', which the scene does not have",
        ),
    ],
)
def test_groups_that_do_not_fit(tmp_path: Path, inside: str, message: str) -> None:
    """Unknown names in a group are rejected at its line when the group is used."""
    value = read_srdf(write_robot(tmp_path, f'<group name="a">{inside}</group>'))
    with pytest.raises(RobotError, match=message):
        group_members(value, load_scene("panda_table"), group="a")
