"""Chains of function blocks, checked before they are executed, and blocks that are executed by triggers."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tmkit._core import SceneGraph
from tmkit.errors import BlockError, TmkitError, UnknownNameError
from tmkit.graph.nodes import walk_nodes
from tmkit.graph.patterns import Part, Pattern
from tmkit.spatial.plain import convert_fields
from tmkit.world.blocks import (
    FunctionBlock,
    blamed,
    executed,
    frames_below,
    has_changed,
    node_of,
    touched,
)
from tmkit.world.live_scene import LiveScene

_logger = logging.getLogger(__name__)
_REMEMBERED_ERRORS = 100  # errors
_ENDLESS = 20  # executions of one block in one poll


def provides(made: Pattern, wanted: Pattern) -> bool:
    """Return whether all that fits one pattern has in it what fits another: parts no narrower, the same relations."""
    said = {condition.key(range(len(made.roles))) for condition in made.conditions}

    def fits(chosen: tuple[int, ...]) -> bool:
        role = len(chosen)
        if role == len(wanted.roles):
            return all(c.key(chosen) in said for c in wanted.conditions)
        need = wanted.part_of(wanted.roles[role])
        parts = [
            at
            for at, name in enumerate(made.roles)
            if at not in chosen and _implies(made.part_of(name), need)
        ]
        return any(fits((*chosen, at)) for at in parts)

    return fits(())


def _implies(made: Part, need: Part) -> bool:
    ranges = zip(made.dimensions, need.dimensions, strict=False)
    return (
        set(need.classes) <= set(made.classes)
        and need.shape in (None, made.shape)
        and (not need.dimensions or bool(made.dimensions))
        and all(low <= least and most <= high for (least, most), (low, high) in ranges)
        and set(need.attributes) <= set(made.attributes)
        and need.test in (None, made.test)
    )


def _described(pattern: Pattern) -> str:
    """Return the parts of a pattern in short."""
    said = [
        (f"{part.count} x {part.name}", [*part.classes, part.shape or ""]) for part in pattern.parts
    ]
    return "; ".join(f"{what}: {', '.join(filter(None, words))}" for what, words in said)


def check_chain(blocks: Sequence[FunctionBlock], scene: SceneGraph) -> None:
    """Refuse a chain in which a block needs what is neither in the scene nor made by a block before it.

    Args:
        blocks: in the order of execution.
        scene: the version to begin with.

    Raises:
        BlockError: it names the block, the input and the hook, and the blocks before with their
            outputs.
    """
    before: list[FunctionBlock] = []
    for block in blocks:
        if block.name in [other.name for other in before]:
            raise BlockError.of(block.name, "is in the chain twice")
        names = [other.name for other in before]
        with blamed(block):
            is_later = block.input_hook in names and block.input_hook not in scene.group_names
            found = {} if is_later else block.find(scene)
            if block.output_hook not in names:
                node_of(scene, block.output_hook)
        for name, pattern in block.inputs.items():
            makers = [other for other in before if _is_below(scene, other, block.input_hook)]
            if found.get(name) or any(
                provides(p, pattern) for other in makers for p in other.outputs.values()
            ):
                continue
            others = ", ".join(
                f"'{other.name}' ({', '.join(other.outputs) or 'nothing'})" for other in before
            )
            need = f"needs '{name}' below '{block.input_hook}' ({_described(pattern)})"
            reason = "which is not in the scene, and not made by the blocks before it"
            raise BlockError.of(block.name, f"{need}, {reason}: {others or 'none'}")
        before.append(block)


def _is_below(scene: SceneGraph, maker: FunctionBlock, hook: str) -> bool:
    """Return whether what a block makes is, or may be, below a hook: one of the two may not be there yet."""
    known, place = (*scene.frame_names, *scene.group_names), maker.output_hook
    if hook in (maker.name, place):
        return True
    return hook in known and (
        place not in known or node_of(scene, place) in walk_nodes(scene, node_of(scene, hook))
    )


@dataclass(frozen=True)
class OnChange:
    """Execute a block when a subtree changes.

    Args:
        below: the frame or group of the subtree; the inputs of the block and the frames above them
            if omitted.
    """

    below: str | None = None


@dataclass(frozen=True)
class After:
    """Execute a block after each execution of another.

    Args:
        block: name of the other.
    """

    block: str


@dataclass(frozen=True)
class Every:
    """Execute a block at a rate.

    Args:
        period: seconds.
    """

    period: float

    def __post_init__(self) -> None:
        convert_fields(self)


class BlockRunner:
    """Executes the blocks of a world, in one thread: on demand, and by triggers.

    Args:
        world: the world.
        blocks: in the order of execution, where several are due.
        triggers: by name of a block; one without is executed on demand.
        clock: seconds, for :class:`Every`.
        attempts: as for :func:`run_block`.

    Raises:
        BlockError: two blocks of one name, or a period that is not positive.
        UnknownNameError: a trigger of a block that is not there.
    """

    def __init__(
        self,
        world: LiveScene,
        blocks: Sequence[FunctionBlock],
        *,
        triggers: Mapping[str, OnChange | After | Every] | None = None,
        clock: Callable[[], float] = time.monotonic,
        attempts: int = 3,
    ) -> None:
        self.world = world
        self.blocks = {block.name: block for block in blocks}
        self._triggers = dict(triggers or {})
        self._clock, self._attempts = clock, attempts
        if len(self.blocks) < len(blocks):
            raise BlockError(
                "function blocks have names of their own, unlike"
                f" {[block.name for block in blocks]}"
            )
        for name, trigger in self._triggers.items():
            for other in [name, *([trigger.block] if isinstance(trigger, After) else [])]:
                if other not in self.blocks:
                    raise UnknownNameError.of(
                        "function block", other, self.blocks, where="triggers"
                    )
            if isinstance(trigger, Every) and not trigger.period > 0.0:
                raise BlockError.of(name, f"needs a period above 0, not {trigger.period}")
        self._start = clock()
        self._next = dict.fromkeys(self._triggers, self._start)
        self._seen: dict[str, SceneGraph] = {}  # the version that a block has seen last
        self._waiting: set[str] = set()  # whose turn has come after another
        self._errors: deque[BlockError] = deque(maxlen=_REMEMBERED_ERRORS)

    @property
    def errors(self) -> tuple[BlockError, ...]:
        """The errors of blocks that :meth:`poll` executed, of the last 100; each that is new among these is logged."""
        return tuple(self._errors)

    def run(self, *names: str) -> SceneGraph:
        """Execute blocks (all by default) as a chain, each on what those before it made; return the last version.

        Raises:
            UnknownNameError: no such block.
            BlockError: they do not fit each other (:func:`check_chain`), or one fails
                (:func:`run_block`).
        """
        for name in names:
            if name not in self.blocks:
                raise UnknownNameError.of("function block", name, self.blocks)
        chain, scene = [self.blocks[name] for name in names or self.blocks], self.world.scene
        check_chain(chain, scene)
        for block in chain:
            scene = self._run(block)
        return scene

    def poll(self) -> SceneGraph:
        """Execute all blocks that are due until none is, and return the version in which none was.

        One that fails is due again by its trigger, and its error is kept in :attr:`errors`.
        """
        # a slow block at a rate has one turn
        counts, now = dict.fromkeys(self.blocks, _ENDLESS), self._clock()
        while True:
            scene = self.world.scene
            name = next((name for name in self.blocks if self._is_due(name, scene, now)), None)
            if name is None:
                return scene
            counts[name] -= 1
            if counts[name] < 0:
                self._seen[name] = scene
                self._waiting.discard(name)
                self._remember(BlockError.of(name, "is triggered without end"))
                return scene
            try:
                self._run(self.blocks[name])
            except BlockError as error:
                self._remember(error)

    def follow(self, stop: threading.Event, *, interval: float = 0.05) -> None:
        """Poll whenever the world changes, a block is due, or ``interval`` seconds are over, until an event is set.

        Args:
            stop: the event that ends it.
            interval: seconds.
        """
        while not stop.is_set():
            self.step(interval)

    def step(self, interval: float) -> None:
        """Poll, and wait until the world changes or a block is due by :class:`Every`, ``interval`` seconds at most."""
        scene, now = self.poll(), self._clock()
        due = [
            self._next[name] - now
            for name, trigger in self._triggers.items()
            if isinstance(trigger, Every)
        ]
        self.world.wait(scene, max(0.0, min([interval, *due])))

    def _remember(self, error: BlockError) -> None:
        if str(error) not in map(str, self._errors):
            _logger.warning("%s", error)
        self._errors.append(error)

    def _run(self, block: FunctionBlock) -> SceneGraph:
        trigger = self._triggers.get(block.name)
        if isinstance(trigger, Every):
            now = self._clock()
            self._next[block.name] = now + trigger.period - (now - self._start) % trigger.period
        self._seen[block.name] = self.world.scene
        self._waiting.discard(block.name)
        self._seen[block.name], made = executed(self.world, block, self._attempts)
        self._waiting |= {
            name for name, other in self._triggers.items() if other == After(block.name)
        }
        return made

    def _is_due(self, name: str, scene: SceneGraph, now: float) -> bool:
        trigger, block, seen = self._triggers.get(name), self.blocks[name], self._seen.get(name)
        if isinstance(trigger, Every):
            return now >= self._next[name]
        if not isinstance(trigger, OnChange):
            return name in self._waiting
        if seen is scene:
            return False
        try:
            if trigger.below is not None:
                node = node_of(scene, trigger.below)
                below = {name for one in (seen or scene, scene) for name in frames_below(one, node)}
                is_due = seen is None or not below.isdisjoint(touched(block, seen, scene)[0])
            elif seen is None:  # executed first when all of its inputs are there
                is_due = all(block.find(scene).values())
            else:
                is_due = has_changed(block, seen, scene, block.find(seen), with_own=False)
            if seen is not None and not is_due:
                self._seen[name] = scene
            return is_due
        except UnknownNameError:  # no such hook yet
            return False
        except TmkitError:  # which its execution reports
            return True
