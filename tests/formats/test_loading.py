"""Several files become one scene."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from support.processes import run_process

from tmkit.errors import FileFormatError, MissingFileError, SceneError
from tmkit.formats import ReadingOptions, load_scene, write_json_scene
from tmkit.graph import AttachedShape, Box, Inertia, Mimic, Prismatic, Revolute, SceneGraph, Stamped
from tmkit.spatial import Pose

ROBOT = (
    '<robot name="r"><link name="base"/><link name="hand"/><joint name="j" type="continuous">'
    '<parent link="base"/><child link="hand"/></joint></robot>'
)


def write(folder: Path, **files: str) -> list[Path]:
    """Write files, ``name__suffix=text``, and return their paths."""
    paths = []
    for name, text in files.items():
        paths.append(folder / name.replace("__", "."))
        paths[-1].write_text(text)
    return paths


def test_files_are_merged_in_order_and_name_each_other(tmp_path: Path) -> None:
    """Files may refer to frames of other files; frames keep the order of the files."""
    files = write(
        tmp_path,
        cup__robray=(
            "frame cup { parent table; } frame tool { parent hand; } allow_collision cup lid;"
        ),
        robot__urdf=ROBOT,
        table__robray="frame table {} frame lid { parent cup; }",
    )
    scene = load_scene(*files)
    assert scene.frame_names == ("world", "table", "cup", "base", "hand", "tool", "lid")
    assert scene.is_allowed("cup", "lid")
    assert scene.root_names == ("world",)


def test_bare_names_are_ours_and_paths_are_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bare name is a scene of ours; a suffix or separator makes it a path."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, blocks1__robray="frame mine {}")
    assert "a" in load_scene("panda_table", "blocks1")
    assert load_scene("blocks1.robray").frame_names == ("world", "mine")


def test_constants_and_classes_stay_in_their_file(tmp_path: Path) -> None:
    """Two files may define the same names differently."""
    one = (
        "def size 1; class c { shape box; dimension [size, size, size]; } frame a { geometry { isa"
        " c; } }"
    )
    files = write(
        tmp_path, one__robray=one, two__robray=one.replace("1;", "2;").replace("frame a", "frame b")
    )
    scene = load_scene(*files)
    assert [scene.shapes(name)[0].shape.dimensions[0] for name in "ab"] == [1, 2]
    with pytest.raises(FileFormatError, match=r"three.robray:1:22: unknown constant 'size'"):
        load_scene(files[0], *write(tmp_path, three__robray="frame c { rpy [0, 0, size]; }"))


@pytest.mark.parametrize(
    ("one", "two", "reason"),
    [
        (
            ("robray", "frame a {}"),
            ("robray", "\nframe a {}"),
            r"two.robray:2:7: .*frame 'a' .* at .*one.robray:1:7",
        ),
        (
            ("urdf", ROBOT),
            ("robray", "frame hand {}"),
            r"two.robray:1:7: .*frame 'hand' .* at .*one.urdf:1",
        ),
        (
            ("urdf", ROBOT),
            ("robray", "frame x { type revolute; axis [1, 0, 0]; variable j; }"),
            r"two.robray:1:51: the joint 'j' is already declared at .*one.urdf:1",
        ),
    ],
)
def test_duplicates_name_both_files(
    one: tuple[str, str], two: tuple[str, str], reason: str, tmp_path: Path
) -> None:
    """A frame or joint of two files is rejected, with both locations."""
    files = write(tmp_path, **{f"one__{one[0]}": one[1], f"two__{two[0]}": two[1]})
    with pytest.raises(FileFormatError, match=reason):
        load_scene(*files)


def test_the_same_file_twice_is_a_duplicate(tmp_path: Path) -> None:
    """Loading a file twice declares its frames twice."""
    (path,) = write(tmp_path, a__robray="frame a {}")
    with pytest.raises(FileFormatError, match="already declared"):
        load_scene(path, path)


def test_shapes_on_the_world_are_united(tmp_path: Path) -> None:
    """Several files may put shapes on the root."""
    sphere = "frame world { isa %s; geometry { shape sphere; radius 1; } }"
    scene = load_scene(*write(tmp_path, a__robray=sphere % "surface", b__robray=sphere % "movable"))
    assert scene.frame_names == ("world",)
    assert scene.classes("world") == ("surface", "movable")
    assert len(scene.shapes("world")) == 2


def elaborate() -> SceneGraph:
    """Return a scene with joints, a mimic, a body of two frames, an inertia and allowed pairs."""
    scene = SceneGraph().add_frame("base", "world", pose=Pose((1, 2, 3)))
    scene = scene.add_frame(
        "lead", "base", joint=Prismatic([1, 0, 0], lower=0, upper=1, name="slide")
    )
    rule = Mimic("slide", multiplier=2.0, offset=0.5)
    scene = scene.add_frame(
        "follower", "base", joint=Revolute([0, 0, 1], lower=-9, upper=9, mimic=rule)
    )
    box = AttachedShape(Box([1, 2, 3]), Pose((0, 0, 1)), color=(1, 0, 0, 1), visual=False)
    scene = scene.add_frame("plate", "lead", body="lead", shapes=[box], classes=["movable"])
    return scene.set_inertia("plate", Inertia(2.0, (0, 0, 1), matrix=np.eye(3))).allow_collision(
        "base", "plate"
    )


def test_json_scenes_merge_with_others(tmp_path: Path) -> None:
    """A JSON file alone gives an equal scene; with other files it keeps all contents."""
    scene = elaborate()
    write_json_scene(scene, tmp_path / "s.json")
    (cup,) = write(tmp_path, cup__robray="frame cup { parent plate; }")
    assert load_scene(tmp_path / "s.json") == scene
    assert load_scene(tmp_path / "s.json", cup) == scene.add_frame("cup", "plate")
    (around,) = write(tmp_path, around__robray='include "s.json"')
    assert load_scene(around) == scene
    write_json_scene(scene.add_frame("cup", "base"), tmp_path / "s.json")
    with pytest.raises(
        FileFormatError, match=r"cup.robray:1:7: .*already declared at .*s.json \(frame 'cup'\)"
    ):
        load_scene(tmp_path / "s.json", cup)


def test_json_scenes_keep_their_other_roots(tmp_path: Path) -> None:
    """A separate tree stays separate."""
    scene = SceneGraph(root="island").add_frame("tree", "island")
    write_json_scene(scene, tmp_path / "s.json")
    assert load_scene(tmp_path / "s.json") == scene
    (other,) = write(tmp_path, other__robray="frame a {}")
    assert set(load_scene(tmp_path / "s.json", other).root_names) == {"island", "world"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "x.sdff",
            r"unknown scene format '.sdff'; did you mean '.sdf'\? "
            r"\(accepted: .robray, .rsg, .urdf, .sdf, .world, .xml, .usd, .usda, .usdc, .usdz,"
            r" .gltf, .glb, "
            r".json, .srdf\)",
        ),
        ("x.blend", r"unknown scene format '.blend' \(accepted"),
    ],
)
def test_unknown_formats_are_rejected(name: str, reason: str, tmp_path: Path) -> None:
    """An unknown suffix is answered with the accepted ones."""
    (tmp_path / name).write_text("")
    with pytest.raises(FileFormatError, match=reason):
        load_scene(tmp_path / name)


def test_missing_files_and_no_files(tmp_path: Path) -> None:
    """Missing files are answered with the nearest name; at least one file is needed."""
    write(tmp_path, kitchen__robray="")
    with pytest.raises(
        MissingFileError, match=r"no file '.*kichen.robray'; did you mean '.*kitchen.robray'"
    ):
        load_scene(tmp_path / "kichen.robray")
    with pytest.raises(
        MissingFileError, match=r"no 'panda_tabel' in scenes; did you mean 'panda_table'"
    ):
        load_scene("panda_tabel")
    with pytest.raises(SceneError, match="at least one file"):
        load_scene()


@pytest.mark.parametrize("suffix", ["robray", "urdf", "json"])
def test_a_folder_is_no_scene(suffix: str, tmp_path: Path) -> None:
    """A folder with the name of a scene file cannot be read."""
    (tmp_path / f"x.{suffix}").mkdir()
    with pytest.raises(FileFormatError, match=rf"x.{suffix}: cannot be read"):
        load_scene(tmp_path / f"x.{suffix}")


def test_errors_survive_pickling(tmp_path: Path) -> None:
    """An error of a file keeps its message and its attributes on the way between processes."""
    (path,) = write(tmp_path, a__robray="frame a { rpy [1]; }")
    with pytest.raises(FileFormatError) as caught:
        load_scene(path)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.data["line"], again.data["column"]) == (1, 15)


def test_the_same_files_give_the_same_scene_in_every_process() -> None:
    """The scene is independent of hash seed, working directory and earlier loads."""
    program = (
        "import tmkit.formats as f, json;"
        " print(json.dumps(f.scene_to_dict(f.load_scene('panda_table', 'blocks2'))))"
    )
    texts = []
    for seed, folder in (("1", "/"), ("2", str(Path(__file__).parent))):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        process = run_process(
            [sys.executable, "-c", program],
            cwd=folder,
            env=environment,
            capture_output=True,
            check=True,
        )
        texts.append(process.stdout)
    assert texts[0] == texts[1]


def test_nothing_of_a_json_scene_is_lost_in_a_merge(tmp_path: Path) -> None:
    """Groups, attributes, levels and friction are merged, with groups of one name united."""
    rough = AttachedShape(Box([0.1, 0.1, 0.1]), friction=0.7, visual=False)
    cup = (
        SceneGraph().add_frame("cup", "world", shapes=[rough]).set_attribute("cup", "colour", "red")
    )
    cup = (
        cup.set_group("inner", frames=["cup"])
        .set_group("all", groups=["inner"])
        .set_attribute("world", "floor", 1)
    )
    plate = SceneGraph().add_frame("plate", "world").set_group("all", frames=["plate"])
    write_json_scene(cup, tmp_path / "cup.json")
    write_json_scene(plate, tmp_path / "plate.json")
    merged = load_scene(tmp_path / "cup.json", tmp_path / "plate.json")
    assert merged.shapes("cup") == (rough,)
    assert merged.attributes("cup") == {"colour": "red"}
    assert merged.attributes("world") == {"floor": 1}
    assert merged.frames_of_group("all") == ("cup", "plate")
    assert merged.group("all").groups == ("inner",)
    assert merged == cup.merge(plate)


def test_groups_of_two_files_are_united_with_their_places_and_attributes(tmp_path: Path) -> None:
    """Parents and stamped attributes are merged; the first file has priority."""
    seen = AttachedShape(Box([0.1, 0.1, 0.1])).replace(stamp=2.0)
    cup = (
        SceneGraph()
        .add_frame("cup", "world", shapes=[seen])
        .set_attribute("cup", "full", Stamped(True, 1.5))
    )
    cup = cup.set_group("all", parents=["world"]).set_group_attribute("all", "x", Stamped(1, 3))
    cup = cup.set_attribute("world", "w", 1)
    plate = (
        SceneGraph()
        .add_frame("plate", "world")
        .set_group("all", parents=["plate"], attributes={"x": 2})
    )
    plate = plate.set_group_attribute("all", "x", Stamped(2, 4)).set_group_attribute(
        "all", "y", Stamped(5, 6)
    )
    plate = plate.set_attribute("world", "w", Stamped(2, 7)).set_attribute(
        "world", "v", Stamped(3, 8)
    )
    write_json_scene(cup, tmp_path / "cup.json")
    write_json_scene(plate, tmp_path / "plate.json")
    merged = load_scene(tmp_path / "cup.json", tmp_path / "plate.json")
    group = merged.group("all")
    assert group.parents == ("world", "plate")
    assert (group.attributes, group.attribute_stamps) == ({"x": 1, "y": 5}, {"x": 3, "y": 6})
    assert merged.attribute_stamps("cup") == {"full": 1.5}
    assert (merged.attributes("world"), merged.attribute_stamps("world")) == (
        {"w": 1, "v": 3},
        {"v": 8},
    )
    assert merged.shapes("cup") == (seen,)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_scene_may_be_named_by_a_package_uri(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URI finds a file in a package, also with a lost slash; a missing one is named in full."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm").mkdir()
    write(tmp_path / "arm", robot__urdf=ROBOT)
    scene_by_path = load_scene(
        kind("package://my_arm/robot.urdf"),
        reading=ReadingOptions(packages={"my_arm": tmp_path / "arm"}),
    )
    assert "hand" in scene_by_path
    assert "panda_link0" in load_scene(kind("package://tmkit/scenes/panda_table.robray"))
    with pytest.raises(
        MissingFileError,
        match=r"there is no file 'package://my_arm/robt.urdf'.*did you mean 'robot.urdf'",
    ):
        load_scene(
            kind("package://my_arm/robt.urdf"),
            reading=ReadingOptions(packages={"my_arm": tmp_path / "arm"}),
        )
    with pytest.raises(MissingFileError, match="package 'my_arm': there is no folder 'nowhere'"):
        load_scene(
            kind("package://my_arm/robot.urdf"),
            reading=ReadingOptions(packages={"my_arm": "nowhere"}),
        )
