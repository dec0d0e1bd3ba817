"""Arrays that enter the core: equal numbers for any dtype and layout, or an error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tmkit as tk
from tmkit.errors import TmkitError
from tmkit.motion import CollisionWorld


class _Subclass(np.ndarray):
    """An array of another class."""


_CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
_SCENE = tk.SceneGraph()
for _index in range(3):
    _parent = "world" if _index == 0 else f"f{_index - 1}"
    _SCENE = _SCENE.add_frame(
        f"f{_index}",
        _parent,
        joint=tk.Prismatic([0, 0, 1]),
        shapes=[tk.AttachedShape(tk.Sphere(0.01))],
    )


def _rows(array: Any) -> Any:
    return array[None] if isinstance(array, np.ndarray) else [array]


# Functions that take three numbers, as a vector or a row, and return them as the core has them.
_READERS: dict[str, Callable[[Any], Any]] = {
    "size": lambda three: tk.Box(three).dimensions,
    "points": lambda three: tk.PointCloud(_rows(three), radius=1).points[0],
    "vertices": lambda three: tk.Mesh([three] * 3, [[0, 1, 2]]).vertices[0],
    "translation": lambda three: tk.Pose(three).translation,
    "center": lambda three: tk.Inertia(1.0, three).center,
    "q": lambda three: np.diff(
        [0.0, *(_SCENE.pose(f"f{k}", q=three).translation[2] for k in range(3))]
    ),
    "batch": lambda three: np.diff([0.0, *_SCENE.poses_batch(_rows(three))[0, 1:, 2]]),
}
_TYPES = [
    "f2",
    "f4",
    "f8",
    ">f8",
    "longdouble",
    "i1",
    "i2",
    "i4",
    "i8",
    ">i8",
    "u1",
    "u2",
    "u4",
    "u8",
    "O",
]


def _layouts(array: np.ndarray) -> dict[str, Any]:
    """Return the same array (3,) in other layouts of memory."""
    wide = np.zeros(6, dtype=array.dtype)
    wide[::2] = array
    backwards = array[::-1].copy()[::-1]
    fixed = array.copy()
    fixed.flags.writeable = False
    unaligned = (
        np.frombuffer(b"x" + array.tobytes(), dtype=array.dtype, offset=1)
        if array.dtype != object
        else array
    )
    return {
        "plain": array,
        "strided": wide[::2],
        "backwards": backwards,
        "read-only": fixed,
        "unaligned": unaligned,
    }


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("reader", _READERS)
def test_numbers_of_any_type_and_layout_are_the_same(reader: str, dtype: str) -> None:
    """Small integers, which all types hold."""
    for name, array in _layouts(np.array([1, 2, 3]).astype(dtype)).items():
        np.testing.assert_array_equal(_READERS[reader](array), [1.0, 2.0, 3.0], err_msg=name)


_BAD: dict[str, Any] = {
    "complex": np.array([1, 2, 3], dtype=complex),
    "complex64": np.array([1, 2, 3], dtype=np.complex64),
    "complex in objects": np.array([1 + 0j, 2, 3], dtype=object),
    "numpy's complex in objects": np.array([np.complex128(1), 2, 3], dtype=object),
    "text": np.array(["1", "2", "3"]),
    "bytes": np.array([b"1", b"2", b"3"]),
    "text in objects": np.array(["1", 2, 3], dtype=object),
    "dates": np.array([1, 2, 3], dtype="M8[D]"),
    "durations": np.array([1, 2, 3], dtype="m8[s]"),
    "dates in objects": np.array([np.datetime64(1, "D"), 2, 3], dtype=object),
    "None": np.array([None, 2, 3], dtype=object),
    "masked": np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]),
    "masked of other type": np.ma.array([1, 2, 3], mask=[False, True, False]),
    "large int64": np.array([2**53 + 1, 2, 3]),
    "large uint64": np.array([2**64 - 1, 2, 3], dtype=np.uint64),
    "large in objects": np.array([2**53 + 1, 2, 3], dtype=object),
    "larger than float64": np.array([10**400, 2, 3], dtype=object),
    "fine longdouble": np.array([np.longdouble(1) + np.finfo(np.longdouble).eps, 2, 3]),
    "large longdouble": np.array([np.longdouble("1e4000"), 2, 3]),
    "small longdouble": np.array([np.longdouble("1e-4000"), 2, 3]),
    "structured": np.zeros(3, dtype=[("a", "f8")]),
    "nan": np.array([np.nan, 2, 3]),
    "inf in float16": np.array([np.inf, 2, 3], dtype="f2"),
    "a list with a large integer": [2**53 + 1, 1.5, 2],
}


@pytest.mark.parametrize("name", _BAD)
@pytest.mark.parametrize("reader", ["size", "points", "translation", "center", "q", "batch"])
def test_numbers_beyond_float64_are_rejected(reader: str, name: str) -> None:
    """By an error of tmkit, without warnings of numpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TmkitError):
            _READERS[reader](_BAD[name])


def test_the_message_says_what_to_do() -> None:
    """Masked and rounded numbers."""
    with pytest.raises(
        TmkitError,
        match=r"size is an array with masked values; fill them first, as in array.filled",
    ):
        tk.Box(_BAD["masked"])
    with pytest.raises(
        TmkitError,
        match=r"size holds numbers of type int64 that float64 cannot hold; round them first",
    ):
        tk.Box(_BAD["large int64"])
    with pytest.raises(TmkitError, match=r"size holds 9007199254740993, which float64 cannot hold"):
        tk.Box([2**53 + 1, 1, 1])
    with pytest.raises(TmkitError, match=r"not of objects such as '1'"):
        tk.Box(_BAD["text in objects"])


def test_fractions_and_masks_without_masked_values_are_accepted() -> None:
    """Fractions are rounded to the nearest number, as text is."""
    assert tk.Box(np.array([Fraction(1, 3), 1, 2], dtype=object)).dimensions == (1 / 3, 1.0, 2.0)
    assert tk.Box(np.ma.array([1.0, 2.0, 3.0])).dimensions == (1.0, 2.0, 3.0)
    own = np.array([1.0, 2.0, 3.0]).view(_Subclass)
    assert tk.Box(own).dimensions == (1.0, 2.0, 3.0)


@given(
    st.lists(
        st.one_of(
            st.integers(-(2**70), 2**70),
            st.integers(0, 3),
            st.floats(),
            st.sampled_from([1.5, 2**32 + 3, 2.0**31]),
        ),
        min_size=3,
        max_size=3,
    ),
    st.sampled_from([*_TYPES, "?", "complex128"]),
)
def test_faces_are_those_given_or_rejected(numbers: list[Any], dtype: str) -> None:
    """Of whatever type: no index becomes another."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            faces = np.array([numbers]).astype(dtype)
        except (OverflowError, ValueError, TypeError):
            return
    expected = faces.tolist()[0]
    is_valid = all(not isinstance(x, complex) and x == x and x in (0, 1, 2, 3) for x in expected)
    for array in (faces, np.asfortranarray(faces), faces[:, ::-1].copy()[:, ::-1]):
        try:
            found = tk.Mesh(_CORNERS, array).faces.tolist()[0]
        except TmkitError:
            assert not is_valid
        else:
            assert is_valid
            assert found == [int(x) for x in expected]


def test_collision_worlds_and_in_place_arrays_read_the_same() -> None:
    """A configuration of another type."""
    world = CollisionWorld(_SCENE)
    for dtype in _TYPES:
        q = np.array([1, 2, 3]).astype(dtype)
        assert world.is_in_collision(q) == world.is_in_collision([1.0, 2.0, 3.0])
        arrays = tk.SceneArrays(_SCENE)
        arrays.forward(q)
        assert arrays.pose("f2").translation[2] == 6.0
    with pytest.raises(TmkitError, match="masked"):
        world.is_in_collision(_BAD["masked"])
    with pytest.raises(TmkitError, match="masked"):
        tk.SceneArrays(_SCENE).forward(_BAD["masked"])
