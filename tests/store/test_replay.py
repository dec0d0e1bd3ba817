"""Joint application of records equals their sequential application."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import TmkitError
from tmkit.graph import Box, NoiseSource, SceneGraph, Shape, diff
from tmkit.spatial import Pose
from tmkit.store.encoding import DifferenceWriter, Replay, decode_difference


def edited(scene: SceneGraph, rng: np.random.Generator) -> SceneGraph:
    """Return the scene after a random edit."""
    a, b = (str(name) for name in rng.choice(scene.frame_names, 2))
    match int(rng.integers(0, 10)):
        case 0:
            return scene.add_frame(
                f"n{int(rng.integers(0, 30))}", a, pose=Pose.exp(rng.normal(size=6))
            )
        case 1:
            return scene if scene.parent(a) is None else scene.remove_frame(a, subtree=True)
        case 2:
            return scene.rename_frame(a, f"n{int(rng.integers(0, 30))}")
        case 3:
            return scene.set_group("g", frames=[a, b])
        case 4:
            return scene.set_shapes(a, [Box(rng.uniform(1, 2, 3))])
        case 5:
            return scene.reparent(a, b)
        case 6:
            return scene.set_attribute(a, "k", int(rng.integers(0, 9)))
        case 7:
            return scene.set_covariance(a, 1e-4 * np.eye(6))
        case _:
            return scene.set_pose(a, Pose.exp(rng.normal(size=6)))


@settings(max_examples=scaled_examples(1.0), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_joint_application_equals_sequential_application(seed: int) -> None:
    """For random records that change, add and remove frames, pairs, groups and shapes."""
    rng = np.random.default_rng(seed)
    sources, keys = dict[bytes, NoiseSource](), dict[NoiseSource, bytes]()

    def key(source: NoiseSource, _place: int) -> bytes:
        return keys.setdefault(source, len(keys).to_bytes(16, "little"))

    def source(known: bytes, dimension: int, label: str) -> NoiseSource:
        return sources.setdefault(known, NoiseSource(dimension, label))

    def shape(*_: object) -> Shape:
        raise AssertionError("boxes have no blobs")

    scene = SceneGraph().add_frame("a", "world").add_frame("b", "a").add_frame("c", "b")
    one_by_one, together = (
        SceneGraph(root=None),
        Replay(SceneGraph(root=None), shape=shape, source=source),
    )
    before = SceneGraph(root=None)
    for _ in range(40):
        scene = scene if (change := diff(before, scene)) else before
        record = DifferenceWriter(key).encode(change, scene)
        if record is not None:
            one_by_one = one_by_one.apply(
                decode_difference(record, one_by_one, shape=shape, source=source)
            )
            together.add(record)
            before = scene
        try:
            scene = edited(scene, rng)
        except TmkitError:
            continue
    assert together.finish() == one_by_one == before
    assert together.finish().frame_names == before.frame_names
