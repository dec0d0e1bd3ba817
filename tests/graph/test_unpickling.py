"""States that pickles may hold: damaged ones are rejected by an error, whole ones come back."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tmkit.errors import PickledStateError, SceneError, TmkitError
from tmkit.graph import NoiseSource, SceneGraph
from tmkit.spatial import Pose

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
import fuzz_pickle

# nanobind warns of instances without a value, which are among what states are given.
pytestmark = pytest.mark.filterwarnings("ignore:nanobind:RuntimeWarning")

VALUES = fuzz_pickle.values()
STATEFUL = {name: value for name, value in VALUES.items() if hasattr(value, "__setstate__")}


def made_of(value: Any, state: object) -> Any:
    """Return a new value of the same class with this state."""
    made = type(value).__new__(type(value))
    made.__setstate__(state)
    return made


@pytest.mark.parametrize("name", VALUES)
def test_whole_states_come_back(name: str) -> None:
    """A pickled value is equal, except for noise sources, which are new."""
    value = VALUES[name]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        read = pickle.loads(pickle.dumps(value, protocol))
        assert type(read) is type(value)
        if not isinstance(value, SceneGraph) or not value.noisy_frames:
            assert read == value or name == "history"


@pytest.mark.parametrize("name", STATEFUL)
@pytest.mark.parametrize(
    "state", [(), (1,), (None,) * 3, (None,) * 10, None, 5, [], "state"], ids=repr
)
def test_states_of_other_shapes_are_rejected(name: str, state: object) -> None:
    """Too short, too long, of another type: an error, not the end of the process."""
    with pytest.raises(TmkitError):
        made_of(STATEFUL[name], state)


@pytest.mark.parametrize("name", STATEFUL)
def test_every_entry_is_checked(name: str) -> None:
    """Each entry of a state dropped, or replaced by what it cannot be, is rejected."""
    value = STATEFUL[name]
    state = value.__getstate__()
    for place in range(len(state)):
        with pytest.raises(TmkitError):
            made_of(value, (*state[:place], object(), *state[place + 1 :]))
    with pytest.raises(TmkitError):
        made_of(value, (*state, 1, 2, 3))


@pytest.mark.parametrize("name", STATEFUL)
def test_a_value_that_is_there_cannot_be_given_another_state(name: str) -> None:
    """Values are immutable: a second state is rejected, and the value stays as it was."""
    value = STATEFUL[name]
    before = repr(value)
    with pytest.raises(TypeError):
        value.__setstate__(value.__getstate__())
    assert repr(value) == before


def test_noise_is_checked() -> None:
    """Invalid maps, sources, dimensions and covariances in a state are rejected."""
    scene = SceneGraph().add_frame("a", "world").set_noise("a", {NoiseSource(2): np.ones((6, 2))})
    state = scene.__getstate__()
    covariance, terms, maps = state[2][1][11]

    def changed(noise: object, sources: object = state[6]) -> None:
        frame = state[2][1]
        frames = [state[2][0], (*frame[:11], noise, *frame[12:])]
        made_of(scene, (*state[:2], frames, *state[3:6], sources))

    changed((covariance, terms, maps))
    for damaged in (
        (covariance, terms, [[np.nan] * 6, maps[1]]),
        (covariance, [1], maps),
        (covariance, [0, 0], maps * 2),
        (covariance, terms, maps[:1]),
        (covariance, terms, maps * 2),
        (covariance, [], []),
    ):
        with pytest.raises(TmkitError):
            changed(damaged)
    with pytest.raises(SceneError, match="not the sum of the squares"):
        changed(([2 * number for number in covariance], terms, maps))
    for sources in ([(0, "x")], [(2**63, "x")], [(-1, "x")]):
        with pytest.raises(TmkitError):
            changed((covariance, terms, maps), sources)
    with pytest.raises(PickledStateError, match="fewer maps"):
        changed((covariance, [0, 1], maps), [(2**63, "x"), (2**63, "y")])


def test_each_bit_of_a_small_pickle_may_be_wrong() -> None:
    """Every bit of the pickle of a pose flipped: a value or an exception, in this very process."""
    whole = pickle.dumps(Pose([1, 2, 3]))
    for bit in range(8 * len(whole)):
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << bit % 8
        try:
            read = pickle.loads(bytes(broken))
        except Exception:
            continue
        if isinstance(read, Pose):
            assert np.isfinite(read.as_array()).all()


@pytest.mark.parametrize("seed", range(300))
def test_damaged_states_end_in_a_value_or_an_error(seed: int) -> None:
    """Corrupted nested states give a valid value or a TmkitError."""
    random = Random(seed)
    value = random.choice(list(STATEFUL.values()))
    state = value.__getstate__()
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        state = fuzz_pickle.damage(state, random)
    try:
        made = made_of(value, state)
    except TmkitError:
        return
    fuzz_pickle.use(made)
