"""The scene graph against a plain model, after random edits, branches and pickling.

Every version ever made is kept with its model, and looked at again: at each step one of them, at
the end all.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.effort import scaled_examples
from support.scene_edits import Edit, configurations, edits
from support.scene_model import RejectedError, SceneModel

from tmkit.errors import DisconnectedError, TmkitError
from tmkit.graph import SceneEdit, SceneGraph, diff
from tmkit.graph.traversal import stamped_attributes

Version = tuple[SceneGraph, SceneModel]


def check_names(scene: SceneGraph, model: SceneModel) -> None:
    """Compare frames, trees, bodies, joints, classes, shapes and allowed pairs."""
    assert scene._defects() == ""
    assert scene.frame_names == tuple(model.frames)
    assert len(scene) == len(model.frames)
    assert scene.root_names == tuple(
        name for name, frame in model.frames.items() if frame.parent is None
    )
    assert sorted(scene.body_names) == sorted(model.bodies())
    assert scene.joint_names == tuple(model.joint_names())
    assert scene.joint_frames == tuple(model.joints()[joint] for joint in model.joint_names())
    assert {frozenset((a, b)): reason for a, b, reason in scene.allowed_pairs} == model.allowed
    for name, frame in model.frames.items():
        assert name in scene
        assert scene.parent(name) == frame.parent
        assert scene.children(name) == tuple(model.children(name))
        subtree = scene.subtree(name)
        assert subtree[0] == name
        assert set(subtree) == model.subtree(name)
        assert all(
            subtree.index(scene.parent(child)) < at for at, child in enumerate(subtree) if at > 0
        )
        assert (name, *scene.ancestors(name)) == tuple(model.chain(name))
        assert scene.root(name) == model.root(name)
        assert scene.body(name) == frame.body
        assert scene.joint(name) == frame.joint.make()
        assert scene.local_pose(name) == frame.pose
        assert scene.classes(name) == frame.classes
        assert scene.shapes(name) == frame.shapes
        assert scene.attributes(name) == dict(frame.attributes)
        assert scene.frame_of_id(scene.frame_id(name)) == name
        assert scene.attribute_stamps(name) == dict(frame.attribute_stamps)
        assert scene.groups_of(name) == tuple(
            sorted(g for g, group in model.groups.items() if name in group.frames)
        )
        around = {
            g
            for g in model.groups
            if any(name in model.groups[inner].frames for inner in model.nested(g))
        }
        assert scene.groups_of(name, nested=True) == tuple(sorted(around))
    assert list(scene.group_names) == sorted(model.groups)
    for group, said in model.groups.items():
        found = scene.group(group)
        assert (found.name, found.frames, found.groups, found.parents) == (
            group,
            said.frames,
            said.groups,
            said.parents,
        )
        assert found.attributes == dict(said.attributes)
        assert found.attribute_stamps == dict(said.attribute_stamps)
        members = {member for inner in model.nested(group) for member in model.groups[inner].frames}
        assert scene.frames_of_group(group) == tuple(
            name for name in model.frames if name in members
        )
    for joint, frame_name in model.joints().items():
        assert scene.joint_frame(joint) == frame_name
    for body in model.bodies():
        assert scene.frames_of_body(body) == tuple(
            n for n, f in model.frames.items() if f.body == body
        )
    for class_name in ("movable", "surface"):
        assert scene.frames_of_class(class_name) == tuple(
            n for n, f in model.frames.items() if class_name in f.classes
        )


def check_numbers(scene: SceneGraph, model: SceneModel, q: dict[str, float]) -> None:
    """Compare all poses at a configuration, joint limits, and all inertias."""
    array = scene.configuration(q)
    assert array.tolist() == [q[name] for name in model.joint_names()]
    limits = [model.leader_limits(joint) for joint in model.joint_names()]
    assert scene.joint_limits.tolist() == [pytest.approx([low, high]) for low, high, _ in limits]
    assert scene.velocity_limits.tolist() == pytest.approx([speed for *_, speed in limits])
    at = scene.at(array)
    for row, name in zip(at.poses, scene.frame_names, strict=True):
        expected = model.root_pose(name, q)
        pose = at.pose(name)
        assert np.allclose(pose.as_matrix(), expected, atol=1e-9)
        assert row.tolist() == pose.as_array().tolist()
        assert scene.pose(name, relative_to=model.root(name), q=array) == pose
    for target in model.frames:
        for reference in list(model.frames)[::3]:
            check_pair(scene, model, target, reference, q)
        check_inertia(scene, model, target)


def check_pair(
    scene: SceneGraph, model: SceneModel, target: str, reference: str, q: dict[str, float]
) -> None:
    """Compare one relative pose, and the two ways to ask for it."""
    array = scene.configuration(q)
    try:
        expected = model.pose(target, relative_to=reference, q=q)
    except RejectedError:
        with pytest.raises(DisconnectedError):
            scene.pose(target, relative_to=reference, q=array)
        return
    pose = scene.pose(target, relative_to=reference, q=array)
    assert np.allclose(pose.as_matrix(), expected, atol=1e-9)
    assert scene.at(array).pose(target, relative_to=reference) == pose


def check_inertia(scene: SceneGraph, model: SceneModel, name: str) -> None:
    """Compare the inertia of a frame's body in the axes of that frame."""
    try:
        expected = model.inertia(name)
    except RejectedError:
        with pytest.raises(DisconnectedError):
            scene.inertia(name)
        return
    found = scene.inertia(name)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.mass == expected.mass
        assert np.allclose(found.center, expected.center, atol=1e-9)
        assert np.allclose(found.matrix, expected.matrix, atol=1e-9)


def check_rejected(
    edit: Edit, target: SceneGraph | SceneEdit, classes: frozenset[type[Exception]]
) -> None:
    """The core rejects an edit with an error of exactly one of the classes."""
    with pytest.raises(TmkitError) as caught:
        edit.apply_to(target)
    assert type(caught.value) in classes, (type(caught.value), classes, str(caught.value))


def check_difference(a: SceneGraph, b: SceneGraph) -> None:
    """What differs, done to the one, gives the other, and the other way round."""
    difference = diff(a, b)
    result = a.apply(difference)
    assert result._defects() == ""
    assert result == b
    assert b.apply(difference.reversed()) == a
    assert not diff(result, b)
    of_ids = b if difference else a  # a copy with other ids is no other scene
    assert {name: result.frame_id(name) for name in result.frame_names} == {
        name: of_ids.frame_id(name) for name in b.frame_names
    }
    if not difference:
        assert a == b
        return
    assert set(difference.added) <= set(b.frame_names)
    assert set(difference.removed) <= set(a.frame_names)
    untouched = {frame.frame_id for frame in difference.frames}
    for name in a.frame_names:
        if a.frame_id(name) not in untouched:
            assert (
                a.specification(name).pose
                == b.specification(b.frame_of_id(a.frame_id(name)) or "").pose
            )


def edited(version: Version, edit: Edit) -> Version | None:
    """Apply an edit to scene and model; return None if both reject it."""
    scene, model = version
    try:
        expected = edit.apply_to_model(model)
    except RejectedError as rejected:
        check_rejected(edit, scene, rejected.classes)
        return None
    result = edit.apply_to(scene)
    assert isinstance(result, SceneGraph)
    if edit.q is not None and expected is not model:
        frame = edit.positional[0]
        expected = expected.with_exact_pose(frame, result.local_pose(frame))
    assert (result is scene) == expected.same_content(model), (
        "a no-op edit returns the same object, no other does"
    )
    return result, expected


class SceneMachine(RuleBasedStateMachine):
    """Versions of a scene, each with its model; any of them may be edited."""

    @initialize()
    def begin(self) -> None:
        """Begin with a scene that has only its root."""
        scene = SceneGraph()
        self.versions: list[Version] = [(scene, SceneModel().add_root("world"))]
        self.steps = 0

    def choose(self, draw: Callable[..., int]) -> Version:
        """Return a version: mostly the last, sometimes an old one, from which history branches."""
        back = draw(st.sampled_from([1, 1, 1, 2, 5]))
        return self.versions[-min(back, len(self.versions))]

    def keep(self, version: Version | None) -> None:
        """Remember a version when there is one."""
        if version is not None:
            self.versions.append(version)

    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        """Do one edit."""
        version = self.choose(data.draw)
        self.keep(edited(version, data.draw(edits(version[1]))))

    @rule(data=st.data(), count=st.integers(1, 4))
    def edit_many(self, data: st.DataObject, count: int) -> None:
        """Several edits by a builder equal single edits; the first scene is unchanged."""
        start = version = self.choose(data.draw)
        with start[0].edit() as builder:
            for _ in range(count):
                edit = data.draw(edits(version[1]))
                after = edited(version, edit)
                if after is None:
                    with pytest.raises(TmkitError):
                        edit.apply_to(builder)
                    continue
                assert edit.apply_to(builder) is None
                version = after
                assert builder.scene == version[0]
        assert builder.finish() == version[0]
        self.keep((builder.finish(), version[1]))

    @rule(data=st.data())
    def read_back(self, data: st.DataObject) -> None:
        """Pickle and read back: equal content and equal hash, and edits go on from there."""
        scene, model = self.choose(data.draw)
        copy = pickle.loads(pickle.dumps(scene))
        assert copy == scene
        assert hash(copy) == hash(scene)
        assert copy.body_names == scene.body_names
        assert copy.allowed_pairs == scene.allowed_pairs
        self.keep((copy, model))

    @rule(data=st.data())
    def say_again(self, data: st.DataObject) -> None:
        """Rebuild the scene from its specifications, with equal content."""
        scene, model = self.choose(data.draw)
        copy = SceneGraph.from_frames(
            list(map(scene.specification, scene.frame_names)), allowed=scene.allowed_pairs
        )
        with copy.edit() as builder:
            for group in model.groups:
                builder.set_group(group)
            for name, group in model.groups.items():
                members = {"frames": group.frames, "groups": group.groups, "parents": group.parents}
                builder.set_group(name, **members, attributes=stamped_attributes(scene.group(name)))
        copy = builder.finish()
        assert copy == scene
        assert hash(copy) == hash(scene)
        assert copy.digest() == scene.digest()
        self.keep((copy, model))

    @precondition(lambda self: len(self.versions) > 1)
    @rule(data=st.data())
    def compare(self, data: st.DataObject) -> None:
        """Two versions are equal when and only when their models are."""
        (a, model_a), (b, model_b) = (
            self.choose(data.draw),
            data.draw(st.sampled_from(self.versions)),
        )
        assert (a == b) == model_a.same_content(model_b)
        assert a != b or hash(a) == hash(b)
        assert (a == b) == (a.digest() == b.digest())
        check_difference(a, b)

    @rule(data=st.data())
    def measure(self, data: st.DataObject) -> None:
        """Compare all numbers of the last version at a random configuration."""
        scene, model = self.versions[-1]
        check_numbers(scene, model, data.draw(configurations(model)))

    @invariant()
    def versions_stay(self) -> None:
        """Compare the last version and, in turn, one of the older ones."""
        if getattr(self, "versions", None):
            self.steps += 1
            check_names(*self.versions[-1])
            check_names(*self.versions[self.steps * 7 % len(self.versions)])

    def teardown(self) -> None:
        """Look at every version again."""
        for scene, model in getattr(self, "versions", []):
            check_names(scene, model)
            check_numbers(
                scene, model, {name: 0.1 * (i + 1) for i, name in enumerate(model.joint_names())}
            )


class TestSceneMachine(SceneMachine.TestCase):
    """Random sequences of edits keep scene and model equal."""

    settings = settings(max_examples=scaled_examples(0.8), stateful_step_count=30)
