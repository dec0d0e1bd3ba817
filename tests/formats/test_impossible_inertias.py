"""Inertias that no solid has: point masses with a note when a file is read, errors of the API."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

import tmkit as tk
from tmkit.errors import FileFormatError, SceneError, TmkitError
from tmkit.formats import load_scene, write_json_scene
from tmkit.formats.rsg.writer import rsg_from_scene as write_rsg
from tmkit.spatial import Pose
from tmkit.store import Store

_IMPOSSIBLE = {
    "triangle": np.diag([1.0, 1.0, 5.0]),
    "barely": np.diag([1.0, 1.0, 2.1]),
    "flat axes": np.diag([0.0, 0.0, 1.0]),
    "negative": np.diag([-1.0, 1.0, 1.0]),
    "negative turned": np.array([[1.0, 5.0, 0.0], [5.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    "tiny": 1e-200 * np.diag([1.0, 1.0, 5.0]),
    "huge": 1e200 * np.diag([1.0, 1.0, 5.0]),
}
_POSSIBLE = {
    "point": np.zeros((3, 3)),
    "rod": np.diag([0.0, 1.0, 1.0]),
    "plate": np.diag([1.0, 2.0, 3.0]),
    "rounded plate": np.diag([0.00331, 0.00332, 0.00665]),
    "ball": 1e-12 * np.eye(3),
}
_TURN = Rotation.from_euler("xyz", [0.4, -1.0, 2.0]).as_matrix()


def _six(matrix: np.ndarray) -> dict[str, float]:
    return {f"i{'xyz'[i]}{'xyz'[j]}": float(matrix[i, j]) for i in range(3) for j in range(i, 3)}


def _urdf(folder: Path, matrix: np.ndarray) -> Path:
    moments = " ".join(f'{key}="{value!r}"' for key, value in _six(matrix).items())
    inertial = f'<inertial><mass value="2"/><inertia {moments}/></inertial>'
    path = folder / "r.urdf"
    path.write_text(f'<robot name="r">\n<link name="a">{inertial}</link></robot>')
    return path


def _urdf_with_rotation(folder: Path, matrix: np.ndarray) -> Path:
    path = _urdf(folder, matrix)
    path.write_text(
        path.read_text().replace("<inertial>", '<inertial><origin rpy="0.4 -1 2" xyz="1 2 3"/>')
    )
    return path


def _sdf(folder: Path, matrix: np.ndarray) -> Path:
    moments = "".join(f"<{key}>{value!r}</{key}>" for key, value in _six(matrix).items())
    inertial = f"<inertial><mass>2</mass><inertia>{moments}</inertia></inertial>"
    path = folder / "m.sdf"
    path.write_text(
        f'<sdf version="1.7"><model name="m">\n<link name="a">{inertial}</link></model></sdf>'
    )
    return path


def _plain(folder: Path) -> tk.SceneGraph:
    return (
        tk.SceneGraph()
        .add_frame("a", "world")
        .set_inertia("a", tk.Inertia(2.0, matrix=0.25 * np.eye(3)))
    )


def _json(folder: Path, matrix: np.ndarray) -> Path:
    path = folder / "s.json"
    write_json_scene(_plain(folder), path)
    document = json.loads(path.read_text())
    next(frame for frame in document["frames"] if frame["name"] == "a")["inertia"]["matrix"] = (
        matrix.ravel().tolist()
    )
    path.write_text(json.dumps(document))
    return path


def _rsg(folder: Path, matrix: np.ndarray) -> Path:
    path = folder / "s.rsg"
    text = write_rsg(_plain(folder))
    numbers = json.dumps((0.25 * np.eye(3)).ravel().tolist()).replace(" ", "")
    assert numbers in text.replace(" ", "")
    compact = text.replace(
        json.dumps((0.25 * np.eye(3)).ravel().tolist()), json.dumps(matrix.ravel().tolist())
    )
    assert compact != text
    path.write_text(compact)
    return path


def _usd(folder: Path, matrix: np.ndarray) -> Path:
    pytest.importorskip("pxr")
    moments, axes = np.linalg.eigh(matrix)
    axes[:, 0] *= np.linalg.det(axes)
    x, y, z, w = Rotation.from_matrix(axes).as_quat()
    path = folder / "s.usda"
    path.write_text(
        '#usda 1.0\n(metersPerUnit = 1)\ndef Xform "a" (prepend apiSchemas ='
        ' ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])\n{\nfloat physics:mass = 2\nfloat3'
        f" physics:diagonalInertia = ({moments[0]}, {moments[1]}, {moments[2]})\nquatf"
        f" physics:principalAxes = ({w}, {x}, {y}, {z})\n}}\n"
    )
    return path


_FILES: dict[str, Callable[[Path, np.ndarray], Path]] = {
    "urdf": _urdf,
    "turned urdf": _urdf_with_rotation,
    "sdf": _sdf,
    "json": _json,
    "rsg": _rsg,
    "usd": _usd,
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", _IMPOSSIBLE)
@pytest.mark.parametrize("file", _FILES)
def test_what_no_solid_has_is_a_point_mass(
    file: str, name: str, turned: bool, tmp_path: Path
) -> None:
    """With a note that names the link; in any axes."""
    matrix = _TURN @ _IMPOSSIBLE[name] @ _TURN.T if turned else _IMPOSSIBLE[name]
    matrix = (matrix + matrix.T) / 2
    if file == "usd" and name in ("tiny", "huge"):
        pytest.skip("single precision holds no such number")
    notes: list[object] = []
    scene = load_scene(_FILES[file](tmp_path, matrix), on_note=notes.append)
    inertia = scene.inertia("a")
    assert inertia is not None
    assert inertia.mass == 2.0
    assert not inertia.matrix.any()
    (note,) = (str(note) for note in notes if "inertia" in str(note))
    assert "'a': invalid inertia" in note
    assert "it is taken as that of a point mass" in note
    if "urdf" in file:
        assert "r.urdf:2: " in note
        assert inertia.center.tolist() == ([1, 2, 3] if "turned" in file else [0, 0, 0])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", _POSSIBLE)
@pytest.mark.parametrize("file", _FILES)
def test_what_some_solid_has_is_kept(file: str, name: str, turned: bool, tmp_path: Path) -> None:
    """Also rods, plates, and numbers of three digits."""
    matrix = _TURN @ _POSSIBLE[name] @ _TURN.T if turned else _POSSIBLE[name]
    notes: list[object] = []
    scene = load_scene(_FILES[file](tmp_path, (matrix + matrix.T) / 2), on_note=notes.append)
    inertia = scene.inertia("a")
    assert inertia is not None
    assert not [note for note in notes if "inertia" in str(note)]
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvalsh(inertia.matrix)),
        np.diag(_POSSIBLE[name]),
        rtol=1e-6,
        atol=1e-7 * matrix.max(),
    )


@pytest.mark.parametrize("name", _IMPOSSIBLE)
def test_the_api_refuses_it(name: str) -> None:
    """In any axes, by the word for it."""
    for matrix in (_IMPOSSIBLE[name], _TURN @ _IMPOSSIBLE[name] @ _TURN.T):
        with pytest.raises(SceneError, match="invalid inertia"):
            tk.Inertia(1.0, matrix=(matrix + matrix.T) / 2)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_rejected(number: float, tmp_path: Path) -> None:
    """By the API, and with the file by readers."""
    matrix = np.diag([1.0, 1.0, number])
    with pytest.raises(TmkitError, match="finite"):
        tk.Inertia(1.0, matrix=matrix)
    for file in ("urdf", "sdf", "json"):
        with pytest.raises(FileFormatError, match=r"finite number"):
            load_scene(_FILES[file](tmp_path, matrix))


@given(
    st.lists(st.floats(-1, 1), min_size=12, max_size=12),
    st.lists(st.floats(0.01, 10), min_size=4, max_size=4),
)
def test_points_with_masses_have_possible_inertias(
    numbers: list[float], masses: list[float]
) -> None:
    """The definition is the oracle, for any points and for sums about another frame."""
    points, weights = np.array(numbers).reshape(4, 3), np.array(masses)
    points = points - (weights[:, None] * points).sum(axis=0) / weights.sum()
    matrix = sum(
        m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(weights, points, strict=True)
    )
    inertia = tk.Inertia(float(weights.sum()), matrix=matrix)
    scene = tk.SceneGraph().add_frame("a", "world", pose=Pose.from_rpy([1, 2, 3], [0.3, 0.4, 0.5]))
    moved = scene.set_inertia("a", inertia).inertia("a")
    assert moved is not None
    np.testing.assert_array_equal(moved.matrix, inertia.matrix)


@given(st.floats(1e-6, 1e6), st.floats(0.0, 1.0), st.floats(1.02, 100.0), st.integers(0, 2**32 - 1))
def test_a_moment_above_the_sum_of_the_others_is_impossible(
    size: float, share: float, above: float, seed: int
) -> None:
    """Beyond the tolerance of 1 %, in any axes."""
    moments = size * np.array([share, 1.0 - share, above])
    turn = Rotation.random(random_state=seed).as_matrix()
    matrix = turn @ np.diag(moments) @ turn.T
    with pytest.raises(SceneError, match="invalid inertia"):
        tk.Inertia(1.0, matrix=(matrix + matrix.T) / 2)
    moments[2] = size
    matrix = turn @ np.diag(moments) @ turn.T
    tk.Inertia(1.0, matrix=(matrix + matrix.T) / 2)


def test_what_earlier_versions_stored_is_read_as_it_is(tmp_path: Path) -> None:
    """A pickle and a store may contain rejected moments, except negative ones."""
    old = tk.Inertia.__new__(tk.Inertia)
    old.__setstate__((1.0, np.zeros(3), np.diag([1.0, 1.0, 5.0])))
    assert pickle.loads(pickle.dumps(old)) == old
    scene = tk.SceneGraph().add_frame("a", "world").set_inertia("a", old)
    with Store(tmp_path) as store:
        store.put(scene, "main")
    with Store(tmp_path) as store:
        assert store.get("main") == scene
    with pytest.raises(SceneError, match="positive semi-definite"):
        tk.Inertia.__new__(tk.Inertia).__setstate__((1.0, np.zeros(3), np.diag([1.0, -1.0, 5.0])))
