"""Readers of published grasps: conventions of the gripper frames, and errors of files."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, strategies as st
from support.grasp_files import acronym_transform, graspnet_row, moveit_message, write_acronym

from tmkit.errors import FileFormatError, TmkitError
from tmkit.manipulation.grasp_files.loading import read_grasps
from tmkit.manipulation.grasp_files.values import MAX_GRASPS
from tmkit.spatial import Pose

h5py = pytest.importorskip("h5py")

angle = st.floats(-3.0, 3.0)
poses = st.builds(
    lambda position, angles: Pose.from_rpy(position, angles),
    st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3),
    st.lists(angle, min_size=3, max_size=3),
)

DOWN = Pose.from_rpy([0.0, 0.0, 0.0], [np.pi, 0.0, 0.0])


def save_rows(path: Path, *rows: object) -> Path:
    """Write rows of graspnetAPI."""
    np.save(path, np.array(rows, dtype=np.float64))
    return path


@given(pose=poses, width=st.floats(0.01, 0.1), depth=st.floats(0.01, 0.04))
def test_graspnet_fingers_end_at_the_fingertip_frame(
    tmp_path_factory: pytest.TempPathFactory, pose: Pose, width: float, depth: float
) -> None:
    """The ends of the fingers that graspnetAPI draws are at y = +-width/2 of the frame.

    ``plot_gripper_pro_max`` draws boxes from x = -0.024 to x = depth, inside of y = +-width/2.
    """
    row = graspnet_row(pose, width=width, depth=depth)
    (grasp,) = read_grasps(save_rows(tmp_path_factory.getbasetemp() / "law.npy", row)).grasps
    rotation, centre = row[4:13].reshape(3, 3), row[13:16]
    for side in (-1.0, 1.0):
        drawn = rotation @ [depth, side * width / 2, 0.0] + centre
        assert grasp.pose.apply([0.0, side * width / 2, 0.0]) == pytest.approx(drawn, abs=1e-9)
    assert grasp.opening == width
    assert grasp.pose.rotation[:, 2] == pytest.approx(rotation[:, 0])


@given(pose=poses)
def test_acronym_fingers_end_at_the_fingertip_frame(
    tmp_path_factory: pytest.TempPathFactory, pose: Pose
) -> None:
    """The fingers of acronym_tools' marker end at x = +-41 mm, z = 112.17 mm of its frame."""
    path = tmp_path_factory.getbasetemp() / "law.h5"
    matrix = acronym_transform(pose)
    write_acronym(path, matrix[None])
    (grasp,) = read_grasps(path).grasps
    for side in (-0.041, 0.041):
        end = matrix[:3, :3] @ [side, 0.0, 0.11217] + matrix[:3, 3]
        assert grasp.pose.apply([0.0, side, 0.0]) == pytest.approx(end, abs=1e-4)


def test_acronym_reads_json_and_omits_failed_grasps(tmp_path: Path) -> None:
    """JSON has the keys of acronym_tools; grasps that failed in simulation are counted."""
    path = tmp_path / "mug.json"
    document = {
        "transforms": [acronym_transform(DOWN).tolist()] * 3,
        "quality_flex_object_in_gripper": [0, 1, 1],
        "object": "meshes/Mug/1.obj",
        "object_scale": 0.001,
    }
    path.write_text(json.dumps(document))
    published = read_grasps(path)
    assert [grasp.place for grasp in published.grasps] == ["row 1", "row 2"]
    assert "mesh 'meshes/Mug/1.obj' at scale 0.001" in published.notes[0]
    assert published.notes[1] == "1 of 3 grasps failed in the publisher's simulation"
    document["quality_flex_object_in_gripper"] = [0, 0, 0]
    path.write_text(json.dumps(document))
    with pytest.raises(FileFormatError, match="no successful grasps"):
        read_grasps(path)


@pytest.mark.parametrize("form", ["documents", "list", "grasps", "possible_grasps", "json"])
def test_moveit_reads_each_form_of_a_list(tmp_path: Path, form: str) -> None:
    """Echoed documents, a list, and the fields of other messages have the same grasps."""
    messages = [moveit_message(DOWN, frame_id="cup", quality=q, opening=0.06) for q in (0.1, 0.9)]
    texts = {
        "documents": "---\n".join(yaml.safe_dump(message) for message in messages) + "---\n",
        "list": yaml.safe_dump(messages),
        "grasps": yaml.safe_dump({"grasps": messages}),
        "possible_grasps": yaml.safe_dump({"possible_grasps": messages}),
        "json": json.dumps(messages),
    }
    path = tmp_path / ("list.json" if form == "json" else "list.yaml")
    path.write_text(texts[form])
    published = read_grasps(path)
    assert [grasp.score for grasp in published.grasps] == [0.1, 0.9]
    assert published.grasps[0].reference == "cup"
    assert published.grasps[0].open_joints[0] == ("panda_finger_joint1", 0.03)
    assert published.grasps[1].pose.distance(DOWN)[1] == pytest.approx(0.0, abs=1e-6)


def test_a_number_of_rostopic_without_a_point_is_read(tmp_path: Path) -> None:
    """YAML 1.1 reads 1e-05 as a text, and rostopic prints numbers so."""
    message = moveit_message(DOWN, frame_id="cup")
    message["grasp_pose"]["pose"]["position"]["x"] = "1e-05"
    path = tmp_path / "list.yaml"
    path.write_text(json.dumps(message).replace('"1e-05"', "1e-05"))
    assert read_grasps(path).grasps[0].pose.translation[0] == 1e-05


def broken_row(index: int, value: float) -> object:
    """Return a row with another value at an index."""
    row = graspnet_row(DOWN)
    row[index] = value
    return row


@pytest.mark.parametrize(
    ("row", "match"),
    [
        (broken_row(0, np.nan), "g.npy: row 1: it has numbers that are not finite"),
        (broken_row(1, 0.0), "g.npy: row 1: its width is 0, expected above 0"),
        (broken_row(5, 0.5), "g.npy: row 1: its axes are not a rotation: they differ .* by 0.5"),
        (broken_row(12, -1.0), "g.npy: row 1: its axes are not a rotation"),
        (
            broken_row(13, np.inf),
            "g.npy: row 1: its pose has numbers that are not finite or above 1e",
        ),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, row: object, match: str) -> None:
    """The error of a row has the file and the number of the row."""
    path = save_rows(tmp_path / "g.npy", graspnet_row(DOWN), row)
    with pytest.raises(FileFormatError, match=match):
        read_grasps(path)


def npz(**arrays: object) -> bytes:
    """Return the bytes of a .npz file."""
    stream = io.BytesIO()
    np.savez(stream, **{name: np.asarray(array) for name, array in arrays.items()})
    return stream.getvalue()


def npy(array: object, *, allow_pickle: bool = False) -> bytes:
    """Return the bytes of a .npy file."""
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=allow_pickle)
    return stream.getvalue()


def header(shape: str) -> bytes:
    """Return a .npy file whose header claims a shape without its numbers."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def long_zip() -> bytes:
    """Return an archive whose member has more than the limit of zeros."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(201_000_000))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("g.npy", npy(np.zeros((0, 17))), "it has no successful grasps"),
        ("g.npy", npy(np.zeros((2, 7))), r"array \(n, 17\), received \(2, 7\); rectangles"),
        ("g.npy", npy(np.zeros(17)), r"received \(17,\); one grasp is an array \(1, 17\)"),
        (
            "g.npy",
            npy(np.array([{}], object), allow_pickle=True),
            "expected an array of real numbers, received one of type object",
        ),
        ("g.npy", npy(np.array(["a"])), "real numbers, received one of type <U1"),
        ("g.npy", header("(10**9, 17)"), "g.npy: no NumPy file"),
        ("g.npy", header("(1000000000, 17)"), "expected 136000000000 bytes of numbers, received 0"),
        ("g.npy", header("(2, 17)"), "expected 272 bytes of numbers, received 0"),
        ("g.npy", b"", "g.npy: no NumPy file"),
        ("g.npz", b"no archive", "is not a .npz file"),
        ("g.npz", npz(a=np.zeros((1, 3))), r"expected one array \(n, 17\), received 0 of: a"),
        ("g.npz", npz(a=np.zeros((1, 17)), b=np.zeros((1, 17))), "received 2 of: a, b"),
        (
            "g.npz",
            npz(points=[0], offsets=[0], collision=[0], scores=[0]),
            "labels of GraspNet, which are not grasps: load them by graspnetAPI's loadGrasp",
        ),
        ("g.npz", long_zip(), "its arrays have more than 200000000 bytes"),
        ("g.h5", b"no hdf5", "is not an HDF5 file of ACRONYM"),
        ("g.json", b"{}", "expected a moveit_msgs/Grasp with 'grasp_pose'"),
        ("g.json", b'{"transforms": [[1]]}', "needs the key 'quality_flex_object_in_gripper'"),
        ("g.yaml", b"", "it has no successful grasps"),
        ("g.yaml", b"a: [", r"g.yaml:\d+: is not YAML: "),
        ("g.yaml", b"a: &a 1\nb: *a", r"g.yaml:2: aliases \(\*NAME\) are not accepted"),
        ("g.yaml", b"[" * 40, "nested more than 32 deep"),
        ("g.yaml", b"!!python/name:os.system", "is not YAML: could not determine a constructor"),
        ("g.yaml", b"- grasp_pose: {2: 3}", "expected texts as keys, received 2"),
        ("g.yaml", b"grasp_pose: 3", r"grasp_pose: expected an object, received 3"),
        ("g.yaml", b"- grasp_pose: {pose: {}}", r"\[0\].grasp_pose.pose: needs the key 'position'"),
        (
            "g.yaml",
            b"hand: {end_effector_name: hand, grasp_resolution: 0.05}",
            "configures the generator moveit_grasps and has no grasps",
        ),
        ("g.txt", b"", r"unknown format of grasps '.txt' \(known: .npy, .npz, .h5"),
    ],
)
def test_a_file_of_another_content_is_rejected(
    tmp_path: Path, name: str, content: bytes, match: str
) -> None:
    """The message has the file, the fault and what is expected."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=match):
        read_grasps(path)


@pytest.mark.parametrize("name", ["g.npy", "g.npz", "g.h5", "g.json", "g.yaml"])
@given(content=st.binary(max_size=200))
def test_random_bytes_are_rejected(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes
) -> None:
    """No content ends in another error than that of a file."""
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    with pytest.raises(TmkitError):
        read_grasps(path)


@pytest.mark.parametrize("suffix", ["npy", "npz", "h5", "yaml"])
@given(data=st.data())
def test_a_damaged_file_is_read_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject
) -> None:
    """A file with a changed byte has grasps or is rejected."""
    path = tmp_path_factory.getbasetemp() / f"damaged.{suffix}"
    if suffix == "h5":
        write_acronym(path, acronym_transform(DOWN)[None])
    elif suffix == "yaml":
        path.write_text(json.dumps([moveit_message(DOWN, frame_id="cup")]))
    else:
        row = graspnet_row(DOWN)[None]
        path.write_bytes(npy(row) if suffix == "npy" else npz(arr_0=row))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(TmkitError):
        assert len(read_grasps(path).grasps) == 1


def test_links_of_hdf5_to_other_files_are_not_followed(tmp_path: Path) -> None:
    """A file of a stranger reads no other file by an external link or data set."""
    write_acronym(tmp_path / "secret.h5", acronym_transform(DOWN)[None])
    path = tmp_path / "g.h5"
    write_acronym(path, acronym_transform(DOWN)[None])
    with h5py.File(path, "a") as file:
        del file["grasps/transforms"]
        file["grasps/transforms"] = h5py.ExternalLink(tmp_path / "secret.h5", "grasps/transforms")
    with pytest.raises(FileFormatError, match="'transforms' is a link, which is not followed"):
        read_grasps(path)
    with h5py.File(path, "a") as file:
        del file["grasps/transforms"]
        raw = [(str(tmp_path / "secret.h5"), 0, 128)]
        file["grasps"].create_dataset("transforms", (1, 4, 4), dtype="f8", external=raw)
    with pytest.raises(FileFormatError, match="expected a data set in the file itself"):
        read_grasps(path)
    with h5py.File(path, "a") as file:
        del file["grasps/transforms"]
    with pytest.raises(FileFormatError, match="'transforms' is missing"):
        read_grasps(path)


def test_too_many_grasps_are_rejected(tmp_path: Path) -> None:
    """The number of grasps is limited before their poses are computed."""
    np.save(tmp_path / "g.npy", np.zeros((MAX_GRASPS + 1, 17), dtype=np.float32))
    with pytest.raises(FileFormatError, match=f"{MAX_GRASPS + 1} grasps, expected at most"):
        read_grasps(tmp_path / "g.npy")
