"""Fuzz the unpickling of damaged pickles: ``fuzz_pickle.py --seconds 600 --seed 1``.

Foreign pickles are never safe, since their author chooses the called functions. But a file may be
damaged, and a state may be of another version, so reading one must end in a whole value or in an
exception, never in the end of the process. Two targets: ``pickle`` damages the bytes, and ``state``
the nested tuples given to ``__setstate__``, where only a TmkitError may be raised.
"""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from engine import Target, main

from tmkit._core import StampedPoses
from tmkit.errors import TmkitError
from tmkit.graph import (
    AttachedShape,
    Box,
    Free,
    HeightField,
    Inertia,
    Measurement,
    Mesh,
    Mimic,
    NoiseSource,
    Plane,
    PointCloud,
    Revolute,
    SceneGraph,
    SceneHistory,
)
from tmkit.spatial import GaussianPose, Pose

CORPUS = Path(__file__).parent / "corpus" / "pickle"

_ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    1,
    -1,
    3,
    2**31,
    2**63,
    2**64,
    -(2**63),
    0.5,
    1e308,
    float("inf"),
    float("nan"),
    "",
    "world",
    "a",
    "\ud800",
    "x" * 1000,
    b"a",
    (),
    [],
    {},
    (None,),
    [0.0] * 3,
    (0, 0, 0, 1),
    np.zeros((0, 6)),
    np.full((6, 6), np.nan),
    np.eye(6) * 1e308,
    Pose([1e308, 0, 0]),
    Pose.__new__(Pose),
    SceneGraph.__new__(SceneGraph),
    object(),
    Pose,
    print,
)


def values() -> dict[str, Any]:
    """Return a small value of every picklable bound class, and some containers, by name."""
    corners, faces = (
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
    )
    joint = Revolute([0, 0, 1], lower=-1, upper=1, mimic=Mimic("b", 0.5, 0.1))
    attached = AttachedShape(
        Mesh(corners, faces), Pose([1, 2, 3]), color=[1, 0, 0, 1], friction=0.5, level="hull"
    )
    covariances = [None, 1e-4 * np.eye(6)]
    stamps = StampedPoses(
        [0.0, 1.0], [Pose(), Pose([0.1, 0, 0])], covariances=covariances, window=5.0
    )
    scene = SceneGraph().add_frame(
        "b",
        "world",
        joint=Revolute([0, 1, 0]),
        shapes=[attached],
        pose=GaussianPose(covariance=np.eye(6)),
    )
    scene = (
        scene.add_frame("a", "b", joint=joint)
        .add_frame("c", "b", joint=Free())
        .set_stamped_poses("c", stamps)
    )
    scene = scene.set_noise("a", {NoiseSource(2): np.ones((6, 2))}).set_inertia(
        "b", Inertia(1.0, matrix=np.eye(3))
    )
    scene = scene.set_attribute("b", "x", [1, "y"])
    scene = (
        scene.set_group("g", frames=["a"])
        .set_group("h", groups=["g"])
        .allow_collision("a", "b")
        .add_body("bare")
    )
    scene = scene.set_twist("c", [1, 0, 0, 0, 0, 0], relative_to_body="world", covariance=np.eye(6))
    looked = scene.condition(
        Measurement.of_pose("b", Pose([0.1, 0, 0]), relative_to="world", covariance=np.eye(6)),
        q=[0.0],
    )
    shapes = (
        Box([1, 2, 3]),
        Plane(),
        PointCloud(corners, radius=0.1),
        HeightField(np.ones((2, 3)), size=[1, 1]),
    )
    uncertain = GaussianPose(Pose(), np.eye(6))
    parts = (
        Pose([1, 2, 3]),
        uncertain,
        joint,
        Mimic("b"),
        Free(),
        Inertia(2.0),
        attached,
        stamps,
        *shapes,
    )
    samples = {
        f"{type(value).__name__.lower()}_{number}": value for number, value in enumerate(parts)
    }
    return samples | {
        "scene": scene,
        "looked": looked,
        "history": SceneHistory(scene).add_frame("d", "a"),
    }


def use(value: Any) -> None:
    """Call methods that fail on an inconsistent value."""
    repr(value), hash(value), pickle.loads(pickle.dumps(value)) == value
    scene = value.scene if isinstance(value, SceneHistory) else value
    if isinstance(scene, SceneGraph):
        assert scene._defects() == "", scene._defects()
        scene.at(scene.zero_configuration())
        for frame in scene.frame_names:
            (
                scene.specification(frame),
                scene.gaussian_pose(
                    frame, relative_to=scene.root(frame), q=scene.zero_configuration()
                ),
            )


def damage(state: Any, random: Random) -> Any:
    """Return a state with something in it dropped, doubled, exchanged or replaced."""
    if isinstance(state, tuple | list) and state and random.random() < 0.9:
        items = list(state)
        place = random.randrange(len(items))
        choice = random.randrange(8)
        if choice == 0:
            del items[place:]
        elif choice == 1:
            del items[place]
        elif choice == 2:
            items.insert(place, items[random.randrange(len(items))])
        elif choice == 3:
            items[place] = items[random.randrange(len(items))]
        else:
            items[place] = damage(items[place], random)
        return type(state)(items)
    if isinstance(state, np.ndarray) and state.size and random.random() < 0.7:
        changed = state.copy()
        odd = [0, -1, 7, 1e308, np.inf, np.nan] if state.dtype == float else [-1, 99]
        changed.flat[random.randrange(state.size)] = random.choice(odd)
        return changed
    if isinstance(state, float) and random.random() < 0.7:
        return random.choice(
            [0.0, -state, 2 * state, 1e-320, 1e200, 1e308, float("inf"), float("nan")]
        )
    if isinstance(state, int) and random.random() < 0.7:
        return random.choice([0, -1, state + 1, state - 1, 2**31, 2**62, 2**64])
    return random.choice(_ODD)


def read_bytes(path: Path) -> None:
    """Unpickle a file, and use the result; any exception is acceptable."""
    with contextlib.suppress(Exception):
        use(pickle.loads(path.read_bytes()))


def read_state(path: Path) -> None:
    """Set a state damaged as the file's bytes describe; only a TmkitError is acceptable."""
    random = Random(path.read_bytes())
    value = random.choice([value for value in values().values() if hasattr(value, "__setstate__")])
    state = value.__getstate__()
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        state = damage(state, random)
    instance = type(value).__new__(type(value))
    with contextlib.suppress(TmkitError):
        instance.__setstate__(state)
        use(instance)


def targets() -> list[Target]:
    """Return both."""
    pool = [pickle.dumps(value, protocol) for value in values().values() for protocol in (2, 5)]
    corpus = [path.read_bytes() for path in sorted(CORPUS.glob("*.pickle"))]
    seeds = [bytes([number]) for number in range(20)]
    pickles = Target("pickle", "value.pickle", read_bytes, pool + corpus, weight=2)
    return [pickles, Target("state", "seed.bin", read_state, seeds)]


if __name__ == "__main__":
    main(targets(), description=__doc__ or "")
