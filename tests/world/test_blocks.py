"""Function blocks: what they own, chains, triggers, concurrent execution."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import BlockError, TmkitError, UnknownNameError
from tmkit.graph import Box, Revolute, SceneGraph, find_structure
from tmkit.graph.patterns import Above, ChildOf, Part, Pattern, Structure
from tmkit.graph.patterns.implication import satisfies
from tmkit.spatial import Pose
from tmkit.world import (
    After,
    BlockRunner,
    Every,
    FunctionBlock,
    LiveScene,
    OnChange,
    OutputFrame,
    run_block,
)
from tmkit.world.block_runner import check_chain
from tmkit.world.blocks import Edit, Matches


@dataclass(frozen=True)
class Mirror(FunctionBlock):
    """Makes for each frame of one class one of another, a metre to its side and 1 mm uncertain."""

    source: str = field(default="thing", kw_only=True)
    made_class: str = field(default="image", kw_only=True)
    # called in each execution
    then: Callable[[], object] = field(default=lambda: None, kw_only=True)

    @property
    def inputs(self) -> Mapping[str, Pattern]:
        """Frames of the class."""
        return {"things": Pattern([Part("thing", [self.source])])}

    @property
    def outputs(self) -> Mapping[str, Pattern]:
        """Frames of the other class."""
        return {"images": Pattern([Part("image", [self.made_class])])}

    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return the images."""
        self.then()
        return self.output(
            OutputFrame(
                f"{self.name} of {frame}",
                None,
                scene.pose(frame) @ Pose([1.0, 0.0, 0.0]),
                1e-6 * np.eye(6),
                [self.made_class],
                [Box([0.1, 0.1, 0.1])],
                {"of": frame},
            )
            for match in matches["things"]
            for frame in match.values()
        )


def things(**places: float) -> SceneGraph:
    """Return a scene with things below the frame 'room'."""
    scene = SceneGraph().add_frame("room", "world")
    for name, x in places.items():
        scene = scene.add_frame(name, "room", pose=Pose([x, 0.0, 0.0]), classes=["thing"])
    return scene


# ------------------------------------------------------------------------------------------- output


def test_the_output_is_a_group_below_the_hook() -> None:
    """Frames, poses, covariances, attributes; the input is untouched."""
    world = LiveScene(things(cup=0.5))
    scene = run_block(world, Mirror("mirror", "room"))
    assert world.scene is scene
    assert scene.group("mirror").frames == ("mirror of cup",)
    assert scene.group("mirror").parents == ("room",)
    assert scene.parent("mirror of cup") == "room"
    assert scene.pose("mirror of cup").translation.tolist() == [1.5, 0.0, 0.0]
    assert np.array_equal(scene.edge_covariance("mirror of cup"), 1e-6 * np.eye(6))
    assert scene.attributes("mirror of cup")["of"] == "cup"


_edits = st.lists(
    st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.floats(-1.0, 1.0))),
    min_size=1,
    max_size=12,
)


@settings(max_examples=scaled_examples(0.6), deadline=None)
@given(_edits)
def test_a_second_execution_changes_nothing(edits: list[tuple[str, float | None]]) -> None:
    """After any edits, two executions give the same version and the output of a new block."""
    world, block = LiveScene(things()), Mirror("mirror", "room")
    for name, x in edits:

        def edit(scene: SceneGraph, name: str = name, x: float | None = x) -> SceneGraph:
            if x is None:
                return scene.remove_frame(name) if name in scene else scene
            if name in scene:
                return scene.set_pose(name, Pose([x, 0.0, 0.0]))
            return scene.add_frame(name, "room", pose=Pose([x, 0.0, 0.0]), classes=["thing"])

        world.update(edit)
        made = run_block(world, block)
        assert run_block(world, block) is made
    last = {name: world.scene.local_pose(name) for name in world.scene.frames_of_class("thing")}
    fresh = LiveScene(things(**{name: pose.translation[0] for name, pose in last.items()}))
    run_block(fresh, block)
    outputs = [
        {
            frame: (scene.local_pose(frame), scene.edge_covariance(frame).tolist())
            for frame in block.output_frames(scene)
        }
        for scene in (world.scene, fresh.scene)
    ]
    assert outputs[0] == outputs[1]


def test_a_frame_that_stays_keeps_its_id_and_its_noise() -> None:
    """Its children stay below it, and errors that were correlated are so still."""
    world, block = LiveScene(things(cup=0.5, jug=0.1)), Mirror("mirror", "room")
    before = run_block(world, block)
    world.update(lambda scene: scene.set_pose("cup", Pose([0.2, 0.0, 0.0])).remove_frame("jug"))
    after = run_block(world, block)
    assert after.frame_id("mirror of cup") == before.frame_id("mirror of cup")
    assert after.noise("mirror of cup") == before.noise("mirror of cup")
    assert "mirror of jug" not in after


def test_a_group_is_a_hook_too() -> None:
    """The paper's sensor is a group; its output is under the frame above it, and in the group."""
    scene = things(cup=0.5).set_group("sensor", frames=["cup"], parents=["room"])
    scene = run_block(LiveScene(scene), Mirror("mirror", "sensor"))
    assert scene.parent("mirror of cup") == "room"
    assert scene.group("sensor").groups == ("mirror",)
    assert run_block(LiveScene(scene), Mirror("mirror", "sensor")) is scene
    with pytest.raises(
        BlockError, match="'mirror' has no parent for its output: the group 'sensor'"
    ):
        run_block(
            LiveScene(things(cup=0.5).set_group("sensor", frames=["cup"])),
            Mirror("mirror", "sensor"),
        )


# ------------------------------------------------------------------------------------------- errors


@dataclass(frozen=True)
class Odd(Mirror):
    """A block that does something wrong at one place."""

    edit: Callable[[SceneGraph], object] | None = None
    fails_in: str = ""

    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return the wrong edit, or the right one."""
        self._fail("execute")
        return self.edit or super().execute(scene, matches)  # type: ignore[return-value]

    def before_execute(self, scene: SceneGraph, matches: Matches) -> None:
        """Fail."""
        assert self.find(scene) == matches
        self._fail("before")

    def after_execute(self, before: SceneGraph, after: SceneGraph) -> None:
        """Fail."""
        assert after != before
        self._fail("after")

    def _fail(self, where: str) -> None:
        if self.fails_in == where:
            raise ZeroDivisionError("by zero")


@pytest.mark.parametrize("where", ["before", "execute", "after"])
def test_an_exception_names_the_block_and_leaves_the_world(where: str) -> None:
    """In the hooks, too."""
    world = LiveScene(things(cup=0.5))
    before = world.scene
    with pytest.raises(
        BlockError, match="function block 'odd' failed: ZeroDivisionError: by zero"
    ) as caught:
        run_block(world, Odd("odd", "room", fails_in=where))
    assert world.scene is before
    assert caught.value.block == "odd"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda scene: scene.set_pose("cup", Pose([9.0, 0.0, 0.0])),
            "'odd' changes 'cup', which is not part of its output",
        ),
        (
            lambda scene: scene.add_frame("new", "room"),
            "'odd' changes 'new', which is not part of its output",
        ),
        (
            lambda scene: scene.remove_frame("cup"),
            "'odd' changes 'cup', which is not part of its output",
        ),
        (
            lambda scene: scene.set_group("others", frames=["cup"]),
            "'odd' changes 'others', which is not part of its output",
        ),
        (
            lambda scene: scene.allow_collision("cup", "room"),
            "'odd' changes 'room', which is not part of its output",
        ),
        (
            lambda scene: scene.set_attribute("cup", "a", 1),
            "'odd' changes 'cup', which is not part of its output",
        ),
        (
            lambda scene: scene.set_group(
                "odd", frames=["cup"], attributes={"function_block": "Odd"}
            ),
            "'odd' changes 'cup', which is not part of its output",
        ),
        (lambda _: None, "'odd' failed: expected a SceneGraph from its edit, got NoneType"),
        (lambda scene: scene.remove_frame("jug"), "'odd' failed: unknown frame 'jug'"),
        (7, "'odd' failed: expected an edit, a function of a scene, from execute, got int"),
        (
            Odd("odd", "room").output([OutputFrame("x")]),
            "creates frame 'x', which matches none of its outputs .'images'",
        ),
        (
            Odd("odd", "room").output([OutputFrame("cup")]),
            "'odd' failed: frame 'cup' exists and is not its own",
        ),
        (
            Odd("odd", "room").output([OutputFrame("x", "nowhere")]),
            "'odd' failed: unknown frame 'nowhere'",
        ),
    ],
)
def test_edits_of_what_a_block_does_not_own_are_rejected(edit: Edit, message: str) -> None:
    """And what is no edit, or not as declared."""
    world = LiveScene(things(cup=0.5))
    before = world.scene
    with pytest.raises(BlockError, match=message):
        run_block(world, Odd("odd", "room", edit=edit))
    assert world.scene is before


def test_groups_of_others_lose_what_a_block_removes_and_nothing_else() -> None:
    """An output may be in groups of others, too."""
    world, block = LiveScene(things(cup=0.5, jug=0.1)), Mirror("mirror", "room")
    run_block(world, block)
    world.update(
        lambda scene: scene.set_group("images", frames=["mirror of cup", "jug"]).remove_frame("cup")
    )
    assert run_block(world, block).group("images").frames == ("jug",)
    world.update(lambda scene: scene.set_group("mine", frames=["mirror of jug", "jug"]))
    before = world.scene
    for edit in (
        lambda scene: scene.set_group("mine", frames=["jug"]),
        lambda scene: scene.remove_frame("mirror of jug").set_group("mine", frames=[]),
        lambda scene: scene.set_group_attribute("mine", "color", "red"),
    ):
        with pytest.raises(
            BlockError, match="'mirror' changes 'mine', which is not part of its output"
        ):
            run_block(world, Odd("mirror", "room", edit=edit))
    assert world.scene is before


def test_names_that_are_taken_or_not_there() -> None:
    """A group of somebody else, and hooks."""
    scene = things(cup=0.5)
    with pytest.raises(BlockError, match="'mirror' has the name of a group that no block created"):
        run_block(LiveScene(scene.set_group("mirror", frames=["cup"])), Mirror("mirror", "room"))
    with pytest.raises(
        BlockError, match="'mirror' failed: hook: unknown frame or group 'rom'; did you mean 'room'"
    ):
        run_block(LiveScene(scene), Mirror("mirror", "rom"))


# -------------------------------------------------------------------------------------- concurrency


def test_two_blocks_in_threads_are_one_after_the_other() -> None:
    """Both execute on one version; the result is that of one of the two orders."""
    for _ in range(20):
        both = threading.Barrier(2)
        world = LiveScene(things(cup=0.5, jug=0.1))
        blocks = [
            Mirror("left", "room", then=both.wait),
            Mirror("right", "room", made_class="other", then=both.wait),
        ]
        threads = [
            threading.Thread(target=run_block, args=(world, block), daemon=True) for block in blocks
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        serial = []
        for order in itertools.permutations(
            [Mirror("left", "room"), Mirror("right", "room", made_class="other")]
        ):
            other = LiveScene(things(cup=0.5, jug=0.1))
            serial += [run_block(other, block) for block in order][-1:]
        assert world.scene.fingerprint in [scene.fingerprint for scene in serial]
        assert world.scene in serial


def test_many_threads_lose_nothing() -> None:
    """Each of 4 threads runs its block while its thing moves."""
    world = LiveScene(things(a=0.0, b=0.0, c=0.0, d=0.0))

    def work(name: str) -> None:
        block = Mirror(f"mirror {name}", "room", source=name, made_class=f"image {name}")
        world.update(lambda scene: scene.set_classes(name, ["thing", name]))
        for step in range(40):
            world.update(lambda scene, x=float(step): scene.set_pose(name, Pose([x, 0.0, 0.0])))  # type: ignore[misc]
            run_block(world, block)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in "abcd":
        assert world.scene.pose(f"mirror {name} of {name}").translation[0] == 40.0


def test_a_block_is_executed_again_when_its_inputs_changed_meanwhile() -> None:
    """Changes of other inputs do not matter; an edit with changing inputs is rejected."""
    world, moves = LiveScene(things(cup=0.5)), iter([1.0, None])

    def meanwhile() -> None:
        x = next(moves)
        if x is not None:
            world.update(lambda scene: scene.set_pose("cup", Pose([x, 0.0, 0.0])))

    scene = run_block(world, Mirror("mirror", "room", then=meanwhile))
    assert scene.pose("mirror of cup").translation[0] == 2.0
    assert next(moves, "end") == "end"

    counts = itertools.count()
    away = Mirror(
        "mirror",
        "room",
        then=lambda: world.update(lambda s: s.add_frame(f"other {next(counts)}", "world")),
    )
    scene = run_block(world, away, attempts=1)
    assert "other 0" in scene

    for move in ("cup", "room"):  # a frame above counts
        block = Mirror(
            "mirror",
            "room",
            then=lambda m=move: world.update(  # type: ignore[misc]
                lambda s: s.set_pose(m, Pose([0.0, next(counts), 0.0]))
            ),
        )
        with pytest.raises(
            BlockError, match="'mirror' is rejected: its inputs changed during each of 4 executions"
        ):
            run_block(world, block, attempts=4)
    assert world.scene.pose("mirror of cup").translation[0] == 2.0


# ------------------------------------------------------------------------------------------- chains


def chain() -> list[Mirror]:
    """Return four blocks of which each needs what the one before makes."""
    return [
        Mirror("first", "room"),
        Mirror("second", "room", source="image", made_class="other"),
        Mirror("third", "second", source="other", made_class="last"),
        Mirror("fourth", "room", source="last", made_class="end"),
    ]


def test_a_chain_runs_in_order() -> None:
    """Each block uses the output of those before it; a hook may be the group of such a block."""
    world = LiveScene(things(cup=0.0))
    runner = BlockRunner(world, chain())
    scene = runner.run()
    assert scene.pose("fourth of third of second of first of cup").translation[0] == 4.0
    assert scene.group("second").groups == ("third",)
    assert runner.run() is scene
    assert runner.run("second") is scene


def test_a_chain_that_does_not_fit_is_rejected_before_it_runs() -> None:
    """The error names the block, the pattern that is missing and the blocks before."""
    first, second, third, fourth = chain()
    scene = things(cup=0.0)
    check_chain([first, second, third, fourth], scene)
    message = (
        r"function block 'second' needs 'things' below 'room' \(1 x thing: image\), .*"
        r" the blocks before it: 'third' \(images\), 'first' \(images\)"
    )
    third = Mirror("third", "room", made_class="last")
    first = Mirror("first", "room", made_class="picture")
    world = LiveScene(scene)
    with pytest.raises(BlockError, match=message):
        BlockRunner(world, [third, first, second]).run()
    assert world.scene is scene
    with pytest.raises(BlockError, match=r"'second' needs .* of the blocks before it: none"):
        check_chain([second], scene)
    with pytest.raises(BlockError, match="'first' is in the chain twice"):
        check_chain([first, first], scene)
    elsewhere = scene.add_frame("cellar", "world")  # what is made elsewhere does not help
    with pytest.raises(BlockError, match="'second' needs"):
        check_chain([Mirror("first", "room", output_hook="cellar"), second], elsewhere)
    with pytest.raises(
        UnknownNameError, match="unknown function block 'fist'; did you mean 'first'"
    ):
        BlockRunner(world, [first]).run("fist")


def test_patterns_that_provide_others() -> None:
    """More classes, narrower sizes, the same relations."""
    box = Part("a", ["x", "y"], shape="box", dimensions=[(0.1, 0.2)] * 3, attributes={"k": 1})
    for part in (
        Part("p"),
        Part("p", ["x"]),
        Part("p", shape="box"),
        Part("p", ["x"], attributes={"k": 1}),
        Part("p", shape="box", dimensions=[(0.0, 0.5)] * 3),
    ):
        assert satisfies(Pattern([box]), Pattern([part]))
    for part in (
        Part("p", ["z"]),
        Part("p", shape="sphere"),
        Part("p", attributes={"k": 2}),
        Part("p", count=2),
        Part("p", shape="box", dimensions=[(0.15, 0.5)] * 3),
        Part("p", test=lambda *_: True),
    ):
        assert not satisfies(Pattern([box]), Pattern([part]))
    legs = [Part("leg", ["x"], count=3), Part("top", ["y"])]
    made = Pattern(legs, [Above("top", "leg")])
    assert satisfies(made, Pattern([Part("t", ["y"]), Part("l", ["x"])], [Above("t", "l")]))
    assert satisfies(
        made, Pattern([Part("t", ["y"]), Part("l", ["x"], count=3)], [Above("t", "l")])
    )
    assert not satisfies(made, Pattern([Part("t", ["y"]), Part("l", ["x"])], [Above("l", "t")]))
    assert not satisfies(
        made, Pattern([Part("t", ["y"]), Part("l", ["x"])], [Above("t", "l", tolerance=0.5)])
    )


_parts = st.builds(
    lambda classes, shape, count: (classes, shape, count),
    st.sets(st.sampled_from("xy")),
    st.sampled_from([None, "box"]),
    st.integers(1, 2),
)


def _pattern(parts: list[tuple[set[str], str | None, int]], is_related: bool) -> Pattern:
    made = [Part(f"p{k}", sorted(c), shape=s, count=n) for k, (c, s, n) in enumerate(parts)]
    return Pattern(
        made, [ChildOf("p0", "p1")] if is_related and len(parts) > 1 and parts[1][2] == 1 else []
    )


@settings(max_examples=scaled_examples(1.5), deadline=None)
@given(
    st.lists(_parts, min_size=1, max_size=3),
    st.booleans(),
    st.lists(_parts, min_size=1, max_size=2),
    st.booleans(),
)
def test_what_provides_a_pattern_is_a_match_of_it(a: list, a_is: bool, b: list, b_is: bool) -> None:  # type: ignore[type-arg]
    """A scene with exactly what one pattern describes has a match of each that it satisfies."""
    made, wanted = _pattern(a, a_is), _pattern(b, b_is)
    scene = SceneGraph()
    parents = {
        role: "p1" if made.conditions and role.startswith("p0") else "world" for role in made.roles
    }
    for role in sorted(made.roles, reverse=True):
        part = made.part_of(role)
        shapes = [Box([1, 1, 1])] if part.shape else []
        scene = scene.add_frame(role, parents[role], classes=part.classes, shapes=shapes)
    assert find_structure(scene, made)
    if satisfies(made, wanted):
        assert find_structure(scene, wanted)


def _planes(poses: int | None, clouds: int | None, parts: str = "pose cloud") -> Structure:
    """Return the structure of poses with clouds below each."""
    pose, cloud = parts.split()
    return Structure(
        [Part(pose, ["pose"]), Part(cloud, ["cloud"])],
        parents={cloud: pose},
        counts={pose: poses, cloud: clouds},
    )


@pytest.mark.parametrize(
    ("made", "wanted", "is_satisfied"),
    [
        (_planes(None, 2), _planes(None, 2, "a b"), True),
        (_planes(None, 2), _planes(None, None), True),
        (_planes(2, 2), _planes(None, None), True),
        (_planes(3, 2), _planes(2, 2, "a b"), True),
        (_planes(None, 2), _planes(2, 2), False),
        (_planes(None, 1), _planes(None, 2), False),
        (_planes(2, 1), _planes(1, 2), False),
        (_planes(None, None), _planes(None, 2), False),
        (_planes(2, 24), _planes(1, 25), False),
        (_planes(2, 2), Structure([Part("cloud", ["cloud"])], counts={"cloud": 4}), True),
        (_planes(2, 2), Structure([Part("cloud", ["cloud"])], counts={"cloud": 5}), False),
        (Structure([Part("pose", ["pose"]), Part("cloud", ["cloud"])]), _planes(1, 1), False),
    ],
)
def test_structures_that_provide_others(
    made: Structure, wanted: Structure, is_satisfied: bool
) -> None:
    """At least the number that is needed; any number is surely one of a kind, not more."""
    assert satisfies(made, wanted) is is_satisfied


@dataclass(frozen=True)
class Planes(FunctionBlock):
    """Makes poses with clouds, as many as it is told, whatever it declares."""

    poses: int | None = field(default=None, kw_only=True)
    clouds: int | None = field(default=1, kw_only=True)
    then: Callable[[], tuple[int, ...]] = field(default=lambda: (), kw_only=True)

    @property
    def inputs(self) -> Mapping[str, Pattern]:
        """Things."""
        return {"things": Pattern([Part("thing", ["thing"])])}

    @property
    def outputs(self) -> Mapping[str, Pattern]:
        """Poses with clouds."""
        return {"planes": _planes(self.poses, self.clouds)}

    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return a pose for each number of clouds."""
        del scene, matches
        frames = []
        for k, count in enumerate(self.then()):
            frames.append(OutputFrame(f"pose {k}", classes=["pose"]))
            frames += [
                OutputFrame(f"cloud {k} {n}", f"pose {k}", classes=["cloud"]) for n in range(count)
            ]
        return self.output(frames)


@pytest.mark.parametrize(
    ("poses", "clouds", "made", "message"),
    [
        (None, 2, (), None),
        (None, 2, (2, 2, 2), None),
        (None, 2, (2, 0), "creates 0 of 'cloud' below 'pose 1', expected 2"),
        (None, 2, (3, 2), "creates 3 of 'cloud' below 'pose 0', expected 2"),
        (2, None, (0, 5), None),
        (2, None, (), "creates 0 of 'pose', expected 2"),
        (2, None, (1, 1, 1), "creates 3 of 'pose', expected 2"),
        (1, 1, (1,), None),
        (1, 1, (), "creates 0 of 'pose', expected 1"),
    ],
)
def test_numbers_of_an_output_are_checked(
    poses: int | None, clouds: int | None, made: tuple[int, ...], message: str | None
) -> None:
    """By the structure that the block declares; nothing is published otherwise."""
    world = LiveScene(things(cup=0.5))
    before = world.scene
    block = Planes("planes", "room", poses=poses, clouds=clouds, then=lambda: made)
    if message is None:
        assert len(run_block(world, block).frames_of_class("cloud")) == sum(made)
        return
    with pytest.raises(BlockError, match=f"function block 'planes' {message}"):
        run_block(world, block)
    assert world.scene is before


def test_a_chain_of_structures_needs_enough_of_each() -> None:
    """The first block may make any number of clouds, the second needs two."""

    @dataclass(frozen=True)
    class Pairs(Mirror):
        """Needs a pose with two clouds."""

        @property
        def inputs(self) -> Mapping[str, Pattern]:
            """Poses with two clouds."""
            return {"pairs": _planes(None, 2)}

    chain = [Planes("planes", "room", clouds=2), Pairs("pairs", "room")]
    check_chain(chain, things(cup=0.5))
    chain[0] = Planes("planes", "room", clouds=None)
    with pytest.raises(BlockError, match=r"'pairs' needs 'pairs' .* neither .* 'planes' .planes."):
        check_chain(chain, things(cup=0.5))


# ----------------------------------------------------------------------------------------- triggers


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Count:
    """Counts calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        """Count."""
        self.calls += 1


def test_a_block_runs_on_change_of_its_inputs_alone() -> None:
    """First when they are there; not after its own output, nor after changes elsewhere."""
    count, world = Count(), LiveScene(SceneGraph())
    runner = BlockRunner(
        world, [Mirror("mirror", "room", then=count)], triggers={"mirror": OnChange()}
    )
    runner.poll()  # there is no room yet
    world.update(lambda _: things())
    runner.poll()  # nor any thing
    assert (count.calls, runner.errors) == (0, ())
    world.update(lambda scene: scene.add_frame("cup", "room", classes=["thing"]))
    assert runner.poll() is runner.poll() is world.scene
    assert count.calls == 1
    world.update(lambda scene: scene.add_frame("lamp", "room").set_attribute("world", "hour", 7))
    runner.poll()
    assert count.calls == 2  # the frame above counts
    world.update(lambda scene: scene.set_pose("lamp", Pose([1.0, 0.0, 0.0])))
    runner.poll()
    assert count.calls == 2
    world.update(lambda scene: scene.remove_frame("cup"))
    assert "mirror of cup" not in runner.poll()
    assert count.calls == 3


def test_triggers_of_a_subtree_after_another_and_at_a_rate() -> None:
    """All by a clock that is a parameter."""
    clock, counts = Clock(), {name: Count() for name in ("first", "second", "lamps", "slow")}
    world = LiveScene(things(cup=0.0).add_frame("lamps", "world"))
    blocks = [
        Mirror("slow", "room", made_class="s", then=counts["slow"]),
        Mirror("second", "room", source="image", made_class="other", then=counts["second"]),
        Mirror("first", "room", then=counts["first"]),
        Mirror("on lamps", "room", made_class="l", then=counts["lamps"]),
    ]
    triggers = {"second": After("first"), "on lamps": OnChange("lamps"), "slow": Every(2.0)}
    runner = BlockRunner(world, blocks, triggers=triggers, clock=clock)

    def polled() -> list[int]:
        runner.poll()
        return [counts[name].calls for name in ("first", "second", "lamps", "slow")]

    assert polled() == [0, 0, 1, 1]
    runner.run("first")
    assert polled() == [1, 1, 1, 1]
    clock.now += 1.9
    world.update(lambda scene: scene.add_frame("lamp", "lamps"))
    assert polled() == [1, 1, 2, 1]
    clock.now += 0.2  # it was due at 102
    assert polled() == [1, 1, 2, 2]
    clock.now += 1.8  # and is at 104
    assert polled() == [1, 1, 2, 2]
    clock.now += 10.0  # what was missed is not made up for
    assert polled() == [1, 1, 2, 3]
    assert polled() == [1, 1, 2, 3]
    assert runner.errors == ()


def test_errors_of_triggered_blocks_are_kept() -> None:
    """Others run all the same; one that failed runs again when its inputs change."""
    world = LiveScene(things(cup=0.0))
    blocks = [Odd("odd", "room", fails_in="execute"), Mirror("mirror", "room", made_class="other")]
    runner = BlockRunner(world, blocks, triggers=dict.fromkeys(("odd", "mirror"), OnChange()))
    assert "mirror of cup" in runner.poll()
    runner.poll()
    assert [str(error) for error in runner.errors] == [
        "function block 'odd' failed: ZeroDivisionError: by zero"
    ]
    world.update(lambda scene: scene.set_pose("cup", Pose([1.0, 0.0, 0.0])))
    runner.poll()
    assert len(runner.errors) == 2


def test_triggers_without_end_are_ended() -> None:
    """Two that trigger each other, and one whose input somebody changes in each execution."""
    world = LiveScene(things(cup=0.0))
    blocks = [Mirror("a", "room", made_class="x"), Mirror("b", "room", made_class="y")]
    runner = BlockRunner(world, blocks, triggers={"a": After("b"), "b": After("a")})
    runner.run("a")
    runner.poll()
    assert [str(error) for error in runner.errors] == [
        "function block 'b' is triggered without end"
    ]
    assert runner.poll() is world.scene


def test_following_ends() -> None:
    """The loop polls when the world changes, and ends by an event."""
    stop, world = threading.Event(), LiveScene(things())
    runner = BlockRunner(
        world, [Mirror("mirror", "room", then=stop.set)], triggers={"mirror": OnChange()}
    )
    thread = threading.Thread(target=runner.follow, args=(stop,), daemon=True)
    thread.start()
    world.update(lambda scene: scene.add_frame("cup", "room", classes=["thing"]))
    thread.join()
    assert "mirror of cup" in world.scene


def test_wrong_triggers_are_rejected() -> None:
    """Names, periods, two blocks of one name."""
    world, block = LiveScene(things()), Mirror("mirror", "room")
    with pytest.raises(
        UnknownNameError, match="triggers: unknown function block 'miror'; did you mean 'mirror'"
    ):
        BlockRunner(world, [block], triggers={"miror": OnChange()})
    with pytest.raises(UnknownNameError, match="triggers: unknown function block 'camera'"):
        BlockRunner(world, [block], triggers={"mirror": After("camera")})
    with pytest.raises(BlockError, match="'mirror' expected a period above 0, got 0"):
        BlockRunner(world, [block], triggers={"mirror": Every(0.0)})
    with pytest.raises(
        BlockError, match=r"expected unique names of function blocks, got \['mirror', 'mirror'\]"
    ):
        BlockRunner(world, [block, block])


def test_geometric_inputs_need_the_values_of_joints() -> None:
    """A scene with joints and no history has no poses to look at."""

    @dataclass(frozen=True)
    class Tower(Mirror):
        @property
        def inputs(self) -> Mapping[str, Pattern]:
            """A thing above the room."""
            return {
                "things": Pattern(
                    [Part("thing", ["thing"]), Part("room", ["r"])], [Above("thing", "room")]
                )
            }

    scene = (
        things(cup=0.0)
        .set_classes("room", ["r"])
        .add_frame("arm", "room", joint=Revolute([0, 0, 1]))
    )
    with pytest.raises(BlockError, match=r"'tower' failed: .*joint") as caught:
        run_block(LiveScene(scene), Tower("tower", "room"))
    assert isinstance(caught.value, TmkitError)
