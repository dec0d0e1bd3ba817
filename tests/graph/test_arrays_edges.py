"""Twists, bodies without frames, stamped poses and groups in arrays, against scenes.

The same random scripts are done to both: what one rejects the other rejects, with the same words
and facts, and after each edit both say the same, to the last bit. Poses, joints and shapes are
compared by ``test_arrays_machine.py``.
"""

from __future__ import annotations

import functools
import math
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.effort import scaled_examples

from tmkit._core import StampedPoses
from tmkit.errors import (
    CapacityError,
    DisconnectedError,
    SceneError,
    StampError,
    TmkitError,
    UnknownNameError,
)
from tmkit.formats.json.scene import scene_from_dict, scene_to_dict
from tmkit.graph import (
    AttachedShape,
    Box,
    Expression,
    Free,
    Inertia,
    NoiseSource,
    Revolute,
    SceneArrays,
    SceneGraph,
    Stamped,
    Unstated,
    diff,
    twist,
)
from tmkit.graph.traversal import twist_path
from tmkit.relations import SemanticError
from tmkit.spatial import Pose

_FRAMES = ("world", "moon", *"abcdefgh")
_BODIES = (*_FRAMES, "X", "Y", "Z")
_GROUPS = ("tools", "cups", "all")
_frames, _bodies, _groups = (
    st.sampled_from(_FRAMES),
    st.sampled_from(_BODIES),
    st.sampled_from(_GROUPS),
)
_poses = st.sampled_from([Pose(), Pose([1, 0, 0]), Pose.from_rpy([0, 2, 1], [0.1, 0.2, 0.3])])
_vectors = st.sampled_from([[1.0, 0, 0, 0, 0, 0], [0.5, -1, 2, 0.1, 0.2, 0.3], [0.0] * 6])
_stamps = st.one_of(st.integers(-4, 12).map(float), st.sampled_from([math.nan, 2.5]))
_policies = st.sampled_from(["closest", "preceding", "interpolated", "screw", "clamped"])
_whole = st.integers(0, 6)


def _along_x(stamps: set[int], capacity: int) -> StampedPoses:
    ordered = sorted(stamps)
    return StampedPoses(ordered, [Pose([stamp, 0, 0]) for stamp in ordered], capacity=capacity)


_histories = st.one_of(
    st.none(), st.builds(_along_x, st.sets(_whole, max_size=3), st.integers(3, 5))
)

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


# Two sources that errors share, and what frames carry besides edges.
_SOURCES = (NoiseSource(1, "wheel"), NoiseSource(2, "mount"))
_maps = st.sets(st.integers(0, 1)).map(
    lambda chosen: {
        _SOURCES[i]: np.arange(6.0 * (i + 1)).reshape(6, i + 1) - i for i in sorted(chosen)
    }
)
_carried = st.one_of(
    st.tuples(st.just("set_noise"), st.tuples(_frames, _maps), st.just({})),
    st.tuples(st.just("set_twist_noise"), st.tuples(_frames, _maps), st.just({})),
    st.tuples(
        st.just("set_classes"),
        st.tuples(_frames, st.sampled_from([(), ("cup",), ("cup", "blue")])),
        st.just({}),
    ),
    st.tuples(
        st.just("set_attribute"),
        st.tuples(_frames, st.just("colour"), st.sampled_from([1, "red"])),
        st.just({}),
    ),
    st.tuples(
        st.just("add_shape"),
        st.tuples(_frames, st.just(AttachedShape(Box([1, 2, 3])))),
        st.just({}),
    ),
    st.tuples(
        st.just("set_inertia"),
        st.tuples(_frames, st.sampled_from([None, Inertia(2.0, [1, 0, 0])])),
        st.just({}),
    ),
    st.tuples(
        st.just("allow_collision"), st.tuples(_frames, _frames), st.just({"reason": "they touch"})
    ),
    st.tuples(st.just("forbid_collision"), st.tuples(_frames, _frames), st.just({})),
)


@st.composite
def _calls(draw: st.DrawFn) -> Call:
    """Return the name of an edit and its arguments."""
    match draw(st.sampled_from(_KINDS)):
        case "add_frame":
            body = draw(st.one_of(st.none(), _bodies))
            joint = (
                draw(st.sampled_from([Free(), Unstated(), Revolute([0, 0, 1])]))
                if body is None
                else Free()
            )
            keywords = {"body": body, "pose": draw(_poses)}
            return (
                "add_frame",
                (draw(_frames), draw(_frames)),
                keywords | ({"joint": joint} if draw(st.booleans()) else {}),
            )
        case "add_root":
            return "add_root", (draw(_frames),), {"body": draw(st.one_of(st.none(), _bodies))}
        case "remove_frame":
            return "remove_frame", (draw(_frames),), {"subtree": draw(st.booleans())}
        case "reparent":
            return "reparent", (draw(_frames), draw(_frames)), {"pose": draw(_poses)}
        case "attach":
            joint = draw(st.sampled_from([None, Unstated(), Free(), Revolute([0, 1, 0], name="j")]))
            keywords = {"pose": draw(_poses)} | ({} if joint is None else {"joint": joint})
            return "attach", (draw(_frames), draw(_frames)), keywords
        case "set_twist":
            return "set_twist", (draw(_frames), draw(_bodies), draw(_vectors)), {}
        case "add_stamped_pose":
            capacity, window = (
                draw(st.sampled_from([None, None, 3])),
                draw(st.sampled_from([None, None, 5.0])),
            )
            keywords = {"stamp": draw(_stamps), "capacity": capacity, "window": window}
            return "add_stamped_pose", (draw(_frames), draw(_poses)), keywords
        case "set_stamped_poses":
            return "set_stamped_poses", (draw(_frames), draw(_histories)), {}
        case "set_group":
            members = {
                "frames": draw(st.lists(_frames, max_size=3)),
                "groups": draw(st.lists(_groups, max_size=2)),
            }
            if draw(st.booleans()):
                members |= {"parents": draw(st.lists(_frames, max_size=2))}
            return "set_group", (draw(_groups),), members
        case "set_group_attribute":
            value, stamp = (
                draw(st.sampled_from(["red", 2, ["a"]])),
                draw(st.sampled_from([None, 2.5, math.nan])),
            )
            stamped = value if stamp is None else Stamped(value, stamp)
            return (
                "set_group_attribute",
                (draw(_groups), draw(st.sampled_from(["x", "y"])), stamped),
                {},
            )
        case "remove_group":
            return "remove_group", (draw(_groups),), {}
        case "rename_frame":
            return "rename_frame", (draw(_frames), draw(_frames)), {}
        case kind if kind in ("add_body", "remove_body"):
            return kind, (draw(_bodies),), {}
        case "carry":
            return draw(_carried)
        case kind:
            return kind, (draw(_frames),), {}


_KINDS = (
    *["add_frame", "set_twist", "add_stamped_pose"] * 4,
    *["add_root", "attach", "remove_frame", "reparent", "add_body", "set_group"] * 2,
    *["carry"] * 3,
    *[
        "remove_body",
        "remove_twist",
        "set_stamped_poses",
        "remove_group",
        "rename_frame",
        "set_group_attribute",
    ],
)


def _do(target: SceneGraph | SceneArrays, call: Call) -> Any:
    name, positional, keywords = call
    edit: Callable[..., Any] = getattr(target, name)
    return edit(*positional, **keywords)


def check_same(arrays: SceneArrays, scene: SceneGraph) -> None:
    """Compare all that both can tell of bodies, twists, stamps and groups."""
    assert arrays._defects() == ""
    frozen = arrays.freeze()
    assert frozen._defects() == ""
    assert frozen == scene
    assert frozen.digest() == scene.digest()
    assert list(map(frozen.frame_id, frozen.frame_names)) == list(
        map(scene.frame_id, scene.frame_names)
    )
    assert arrays.body_names == scene.body_names
    assert arrays.bodies_without_frames == scene.bodies_without_frames
    assert arrays.twist_frames == scene.twist_frames
    assert arrays.group_names == scene.group_names
    for name in scene.group_names:
        assert arrays.group(name) == scene.group(name)
    for name in scene.frame_names:
        assert arrays.body(name) == scene.body(name)
        assert arrays.root(name) == scene.root(name)
        assert arrays.ancestors(name) == scene.ancestors(name)
        assert arrays.stamped_poses(name) == scene.stamped_poses(name)
        ours, theirs = arrays.twist_edge(name), scene.twist_edge(name)
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert ours[0] == theirs[0]
            assert ours[1].tobytes() == theirs[1].tobytes()
    for a in scene.body_names[::2]:
        for b in scene.body_names:
            assert twist_path(arrays, b, relative_to_body=a) == twist_path(
                scene, b, relative_to_body=a
            )


def check_rejected(do: Callable[[], object], rejected: TmkitError) -> None:
    """Compare a rejection of the arrays with that of the scene."""
    with pytest.raises(type(rejected)) as caught:
        do()
    assert type(caught.value) is type(rejected)
    assert repr(caught.value.data) == repr(rejected.data)  # of which one may be nan
    if "two paths:" not in str(rejected):  # of several such bodies, either may be named
        assert str(caught.value) == str(rejected)


class EdgesMachine(RuleBasedStateMachine):
    """One scene in both variants."""

    @initialize()
    def begin(self) -> None:
        """Begin with two trees."""
        self.scene = (
            SceneGraph()
            .add_root("moon")
            .add_body("X")
            .add_frame("a", "world")
            .add_frame("b", "moon", body="a")
        )
        self.arrays = SceneArrays(self.scene, capacity={"noise": 3})

    @rule(frames=st.tuples(_frames, _frames, _frames, _frames), moves=st.booleans())
    def ask_motion(self, frames: tuple[str, str, str, str], moves: bool) -> None:
        """Both give the same bits for a twist between frames, or neither knows it."""
        frame, reference, at, axes = frames
        q = np.linspace(0.5, 1.0, len(self.arrays.q))
        qd = np.linspace(-1.0, 2.0, len(q)) if moves else None
        keywords: dict[str, Any] = {"relative_to": reference, "q": q, "qd": qd}
        expression = Expression(at=at, axes=axes)
        try:
            expected = twist(
                self.scene, frame, expression=expression, **keywords
            ).representation.vector
        except (UnknownNameError, SemanticError) as rejected:
            allowed = (
                (SceneError, DisconnectedError)
                if isinstance(rejected, SemanticError)
                else UnknownNameError
            )
            with pytest.raises(allowed):
                self.arrays.twist(frame, at=at, axes=axes, **keywords)
            return
        assert (
            self.arrays.twist(frame, at=at, axes=axes, **keywords).tobytes() == expected.tobytes()
        )

    @rule(call=_calls())
    def edit(self, call: Call) -> None:
        """Both do an edit, or both reject it in the same words."""
        try:
            scene = _do(self.scene, call)
        except TmkitError as rejected:
            check_rejected(lambda: _do(self.arrays, call), rejected)
            return
        assert _do(self.arrays, call) is None
        self.scene = scene

    @rule(target_frame=_frames, reference=_frames, stamp=_stamps, policy=_policies)
    def ask(self, target_frame: str, reference: str, stamp: float, policy: str) -> None:
        """Arrays and scenes return equal bits for poses and twists at a time, or equal errors."""
        q = self.arrays.q
        asked: list[Callable[[Any], np.ndarray]] = [
            lambda of: of.pose(
                target_frame, relative_to=reference, q=q, stamp=stamp, policy=policy
            ).as_array(),
            lambda of: of.twist_from_stamps(
                target_frame, relative_to=reference, first=1.5, second=stamp, q=q, policy=policy
            ),
        ]
        for ask in asked:
            try:
                expected = ask(self.scene)
            except TmkitError as rejected:
                check_rejected(functools.partial(ask, self.arrays), rejected)
                continue
            assert ask(self.arrays).tobytes() == expected.tobytes()

    @rule()
    def begin_again(self) -> None:
        """Arrays made of the scene go on like those that it was frozen from."""
        self.arrays = SceneArrays(self.scene, capacity={"noise": 3})

    @invariant()
    def variants_agree(self) -> None:
        """After each edit both say the same."""
        if hasattr(self, "arrays"):
            check_same(self.arrays, self.scene)


class TestEdgesMachine(EdgesMachine.TestCase):
    """Random scripts keep both variants equal."""

    settings = settings(max_examples=scaled_examples(1.0), stateful_step_count=40)


@settings(max_examples=scaled_examples(1.0))
@given(st.lists(_calls(), max_size=60))
def test_scripts_in_one_go(calls: list[Call]) -> None:
    """A whole script, compared at its end."""
    scene = SceneGraph().add_root("moon")
    arrays = SceneArrays(scene)
    for call in calls:
        try:
            scene = _do(scene, call)
        except TmkitError:
            with pytest.raises(TmkitError):
                _do(arrays, call)
        else:
            _do(arrays, call)
    check_same(arrays, scene)


@settings(max_examples=scaled_examples(1.0))
@given(st.lists(_calls(), max_size=40))
def test_scripts_as_differences_and_files(calls: list[Call]) -> None:
    """Each version of a script follows from the previous one by a difference, pickle and JSON."""
    scene = first = SceneGraph().add_root("moon")
    for call in calls:
        try:
            after = _do(scene, call)
        except TmkitError:
            continue
        made = scene.apply(diff(scene, after))
        assert made == after
        assert made._defects() == ""
        assert after.apply(diff(after, scene)) == scene
        scene = after
    assert first.apply(diff(first, scene)) == scene
    assert scene.apply(diff(scene, first)) == first
    assert pickle.loads(pickle.dumps(scene)) == scene
    assert scene_from_dict(scene_to_dict(scene)) == scene


# --- what is rejected at once


def moving_cups() -> SceneGraph:
    """Return two trees with a frame of body C each, both moving relative to the table."""
    scene = SceneGraph().add_root("lab").add_frame("table", "world").add_frame("arm", "table")
    scene = scene.add_body("C").add_frame("c1", "arm", body="C").add_root("c2", body="C")
    return scene.set_twist("c1", [1, 0, 0, 0, 0, 0], relative_to_body="table").set_twist(
        "c2", [0, 1, 0, 0, 0, 0], relative_to_body="table"
    )


def test_rules_hold_after_each_edit() -> None:
    """A second twist, a cycle and a lost reference are rejected, and nothing changes."""
    scene = moving_cups()
    arrays = SceneArrays(scene)
    rejected: list[tuple[str, Callable[[Any], Any]]] = [
        (
            r"'c2' relative to body 'table' is \[0, 1, .* of frames 'c1', .* make \[1, 0, ",
            lambda s: s.attach("c2", "c1"),
        ),
        (
            "'table' cannot be removed while the twist of frame 'c1' is relative to it",
            lambda s: s.remove_frame("table", subtree=True),
        ),
        ("would close a cycle", lambda s: s.set_twist("table", [1] * 6, relative_to_body="C")),
        (
            "has a twist relative to body 'table' already",
            lambda s: s.set_twist("c1", [1] * 6, relative_to_body="world"),
        ),
        (
            "is on body 'C', relative to which it does not move",
            lambda s: s.set_twist("c1", [1] * 6, relative_to_body="C"),
        ),
        ("body 'table' has frame 'table'", lambda s: s.remove_body("table")),
        ("a body named 'C' is already in the scene", lambda s: s.add_body("C")),
    ]
    for variant in (scene, arrays):
        assert twist_path(variant, "C", relative_to_body="table") == ("c1",)
    scene = (
        scene.reparent("c1", "world", pose=Pose())
        .set_twist("c1", [1, 0, 0, 0, 0, 0], relative_to_body="table")
        .remove_frame("arm")
    )
    arrays.reparent("c1", "world", pose=Pose())
    assert arrays.twist_edge("c1") is None
    arrays.set_twist("c1", [1, 0, 0, 0, 0, 0], relative_to_body="table")
    arrays.remove_frame("arm")
    for message, edit in rejected:
        for variant in (scene, arrays):
            with pytest.raises(SceneError, match=message):
                edit(variant)
        check_same(arrays, scene)
    assert twist_path(arrays, "C", relative_to_body="table") == ("c1",)
    arrays.remove_twist("c2")
    arrays.attach("c2", "c1")
    check_same(arrays, scene.remove_twist("c2").attach("c2", "c1"))


def test_what_is_full() -> None:
    """Twists, bodies, stamps, groups and members have capacities; excess changes nothing."""
    scene = moving_cups().set_stamped_poses("c1", StampedPoses([1, 2], [Pose(), Pose()]))
    with pytest.raises(CapacityError, match="twists is 1, but the scene alone needs 2"):
        SceneArrays(scene, capacity={"twists": 1})
    with pytest.raises(CapacityError, match="stamps is 1, but the scene alone needs 2"):
        SceneArrays(scene, capacity={"stamps": 1})
    arrays = SceneArrays(
        scene, capacity={"twists": 2, "bodies": 6, "stamps": 3, "groups": 1, "group_members": 2}
    )
    before = arrays.freeze()
    arrays.add_stamped_pose("c1", Pose(), stamp=3)
    full: list[tuple[str, str, Callable[[], Any]]] = [
        ("twist", "twists", lambda: arrays.set_twist("arm", [1] * 6, relative_to_body="world")),
        ("stamped pose", "stamps", lambda: arrays.add_stamped_pose("c1", Pose(), stamp=4)),
        (
            "stamped pose",
            "stamps",
            lambda: arrays.set_stamped_poses("arm", StampedPoses([1], [Pose()])),
        ),
        (
            "member of a group",
            "group_members",
            lambda: arrays.set_group("g", frames=["c1", "c2", "arm"]),
        ),
    ]
    for what, kind, edit in full:
        with pytest.raises(
            CapacityError, match=f"no room for another {what}: .*larger capacity '{kind}'"
        ) as caught:
            edit()
        assert caught.value.data["kind"] == kind
    arrays.add_stamped_pose("c1", Pose(), stamp=4, capacity=3)  # which drops its own oldest
    assert arrays.stamped_poses("c1").stamps.tolist() == [2, 3, 4]
    arrays.set_group("g", frames=["c1", "c1", "c2"])
    arrays.set_group("g", frames=["c2", "arm"])
    with pytest.raises(CapacityError, match="no room for another group"):
        arrays.set_group("h")
    arrays.add_body("spare")
    with pytest.raises(CapacityError, match="no room for another body"):
        arrays.add_body("more")
    arrays.remove_body("spare")
    arrays.remove_group("g")
    arrays.set_stamped_poses("c1", scene.stamped_poses("c1"))
    check_same(arrays, before)
    arrays.set_stamped_poses("arm", StampedPoses([1], [Pose()]))
    assert SceneArrays(scene).capacities["stamps"] == 256


def test_a_history_of_its_own_capacity_goes_on_for_ever() -> None:
    """A control loop with a stamp at each step needs the memory of one history."""
    arrays = SceneArrays(
        SceneGraph().add_frame("cup", "world", joint=Free()), capacity={"stamps": 4}
    )
    for step in range(1000):
        arrays.add_stamped_pose("cup", Pose([step, 0, 0]), stamp=float(step), capacity=4)
    assert arrays.stamped_poses("cup").stamps.tolist() == [996, 997, 998, 999]
    assert arrays.pose("cup").translation[0] == 999
    assert arrays.pose("cup", stamp=997.25).translation[0] == 997.25
    assert arrays.twist_from_stamps("cup", relative_to="world", first=996, second=999).tolist() == [
        1,
        0,
        0,
        0,
        0,
        0,
    ]
    with pytest.raises(
        StampError, match="has poses from 996 s to 999 s, so none at 995 s is known"
    ):
        arrays.pose("cup", relative_to="world", stamp=995.0)
    arrays.reparent("cup", "world", pose=Pose())
    assert arrays.stamped_poses("cup") is not None


def test_readers_see_whole_twists_and_histories() -> None:
    """A concurrent reader gets the twist of one edit, and a pose between two stamps of one line."""
    arrays = SceneArrays(
        SceneGraph().add_frame("cup", "world", joint=Free()), capacity={"stamps": 8}
    )
    arrays.add_stamped_pose("cup", Pose(), stamp=0.0, capacity=8)
    arrays.set_twist("cup", [0.0] * 6, relative_to_body="world")
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            edge = arrays.twist_edge("cup")
            if edge is None or len(set(edge[1])) != 1:
                wrong.append(edge)
            stamp = float(arrays.stamped_poses("cup").stamps[-1])
            try:
                pose = arrays.pose("cup", stamp=stamp - 0.5)
            except StampError:
                continue
            if (
                abs(pose.translation[0] - (stamp - 0.5)) > 1e-9
                or pose.translation[0] != pose.translation[1]
            ):
                wrong.append(pose)

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(1, 4000):
        arrays.add_stamped_pose("cup", Pose([step, step, 0]), stamp=float(step))
        arrays.set_twist("cup", [float(step)] * 6, relative_to_body="world")
    done.set()
    reader.join()
    assert wrong == []
