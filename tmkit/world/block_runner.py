"""Chains of function blocks, checked before execution, and execution of blocks by triggers."""

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
from tmkit.graph.patterns import Pattern
from tmkit.graph.patterns.implication import satisfies
from tmkit.spatial.plain import convert_fields
from tmkit.world.blocks import (
    FunctionBlock,
    execute_block,
    find_changes,
    find_node,
    frames_below,
    has_changed,
    wrap_errors,
)
from tmkit.world.live_scene import LiveScene

_logger = logging.getLogger(__name__)
_MAX_ERRORS = 100
"""Number of errors that a runner stores."""

_MAX_EXECUTIONS_PER_POLL = 20
"""Number of executions of one block in one poll, beyond which its triggers count as endless."""


def _format_pattern(pattern: Pattern) -> str:
    """Return a short description of the parts of a pattern."""
    parts = [
        (f"{part.count} x {part.name}", [*part.classes, part.shape or ""]) for part in pattern.parts
    ]
    return "; ".join(f"{part}: {', '.join(filter(None, kinds))}" for part, kinds in parts)


def check_chain(blocks: Sequence[FunctionBlock], scene: SceneGraph) -> None:
    """Check that each block's inputs are in the scene or are outputs of blocks before it.

    Args:
        blocks: blocks in the order of execution.
        scene: version before the first block.

    Raises:
        BlockError: if an input is missing. The error names the block, the input, the hook, and the
            blocks before with their outputs.
    """
    earlier: list[FunctionBlock] = []
    for block in blocks:
        names = [predecessor.name for predecessor in earlier]
        if block.name in names:
            raise BlockError.of(block.name, "is in the chain twice")
        with wrap_errors(block):
            is_later = block.input_hook in names and block.input_hook not in scene.group_names
            matches = {} if is_later else block.find(scene)
            if block.output_hook not in names:
                find_node(scene, block.output_hook)
        sources = [source for source in earlier if _is_below(scene, source, block.input_hook)]
        outputs = [output for source in sources for output in source.outputs.values()]
        for name, pattern in block.inputs.items():
            if matches.get(name) or any(satisfies(output, pattern) for output in outputs):
                continue
            predecessors = ", ".join(
                f"'{predecessor.name}' ({', '.join(predecessor.outputs) or 'nothing'})"
                for predecessor in earlier
            )
            need = f"needs '{name}' below '{block.input_hook}' ({_format_pattern(pattern)})"
            reason = "which is neither in the scene nor an output of the blocks before it"
            raise BlockError.of(block.name, f"{need}, {reason}: {predecessors or 'none'}")
        earlier.append(block)


def _is_below(scene: SceneGraph, block: FunctionBlock, hook: str) -> bool:
    """Return whether the output of a block is, or may become, a descendant of a hook."""
    names, output_hook = (*scene.frame_names, *scene.group_names), block.output_hook
    if hook in (block.name, output_hook):
        return True
    if hook not in names:
        return False
    return output_hook not in names or find_node(scene, output_hook) in walk_nodes(
        scene, find_node(scene, hook)
    )


@dataclass(frozen=True)
class OnChange:
    """Trigger that executes a block when a subtree changes.

    Args:
        below: frame or group of the subtree. Defaults to the inputs of the block and their
            ancestors.
    """

    below: str | None = None


@dataclass(frozen=True)
class After:
    """Trigger that executes a block after each execution of another block.

    Args:
        block: name of the other block.
    """

    block: str


@dataclass(frozen=True)
class Every:
    """Trigger that executes a block periodically.

    Args:
        period: period of the executions [s].
    """

    period: float

    def __post_init__(self) -> None:
        convert_fields(self, {"period": "s"})


class BlockRunner:
    """Executor of the blocks of a world in one thread: on demand, and by triggers.

    Args:
        world: live scene.
        blocks: blocks in the order of execution, if several are due.
        triggers: trigger of each block by its name. Blocks without a trigger are executed on
            demand.
        clock: clock for :class:`Every` [s].
        attempts: as for :func:`run_block`.

    Raises:
        BlockError: if two blocks have the same name, or a period is not positive.
        UnknownNameError: if the block of a trigger is unknown.
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
            names = [block.name for block in blocks]
            raise BlockError(f"expected unique names of function blocks, got {names}")
        for name, trigger in self._triggers.items():
            for block_name in [name, *([trigger.block] if isinstance(trigger, After) else [])]:
                if block_name not in self.blocks:
                    raise UnknownNameError.of(
                        "function block", block_name, self.blocks, where="triggers"
                    )
            if isinstance(trigger, Every) and not trigger.period > 0.0:
                raise BlockError.of(name, f"expected a period above 0, got {trigger.period}")
        self._start = clock()
        self._next = dict.fromkeys(self._triggers, self._start)
        self._inputs: dict[str, SceneGraph] = {}  # version of each block's last execution
        self._pending: set[str] = set()  # blocks that are due by After
        self._errors: deque[BlockError] = deque(maxlen=_MAX_ERRORS)

    @property
    def errors(self) -> tuple[BlockError, ...]:
        """The last 100 errors of blocks that :meth:`poll` executed; each new one is logged."""
        return tuple(self._errors)

    def run(self, *names: str) -> SceneGraph:
        """Execute blocks (all by default) as a chain, and return the last version.

        Each block is executed on the output of those before it.

        Raises:
            UnknownNameError: if a block is unknown.
            BlockError: if the blocks do not fit each other (:func:`check_chain`), or one fails
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
        """Execute all blocks that are due until none is, and return the version of that moment.

        A block that fails is due again by its trigger, and its error is stored in :attr:`errors`.
        """
        counts = dict.fromkeys(self.blocks, _MAX_EXECUTIONS_PER_POLL)
        now = self._clock()  # read once: a slow periodic block is executed once in a poll
        while True:
            scene = self.world.scene
            name = next((name for name in self.blocks if self._is_due(name, scene, now)), None)
            if name is None:
                return scene
            counts[name] -= 1
            if counts[name] < 0:
                self._inputs[name] = scene
                self._pending.discard(name)
                self._store_error(BlockError.of(name, "is triggered without end"))
                return scene
            try:
                self._run(self.blocks[name])
            except BlockError as error:
                self._store_error(error)

    def follow(self, stop: threading.Event, *, interval: float = 0.05) -> None:
        """Poll after each change, when a block is due and in intervals, until an event is set.

        Args:
            stop: event that ends the method.
            interval: longest time between two polls [s].
        """
        while not stop.is_set():
            self.step(interval)

    def step(self, interval: float) -> None:
        """Poll, then wait until the world changes, a block is due or an interval ends.

        Args:
            interval: longest time to wait [s].
        """
        scene, now = self.poll(), self._clock()
        due = [
            self._next[name] - now
            for name, trigger in self._triggers.items()
            if isinstance(trigger, Every)
        ]
        self.world.wait(scene, max(0.0, min([interval, *due])))

    def _store_error(self, error: BlockError) -> None:
        if str(error) not in map(str, self._errors):
            _logger.warning("%s", error)
        self._errors.append(error)

    def _run(self, block: FunctionBlock) -> SceneGraph:
        trigger = self._triggers.get(block.name)
        if isinstance(trigger, Every):
            now = self._clock()
            self._next[block.name] = now + trigger.period - (now - self._start) % trigger.period
        self._inputs[block.name] = self.world.scene
        self._pending.discard(block.name)
        self._inputs[block.name], version = execute_block(self.world, block, self._attempts)
        self._pending |= {
            name for name, trigger in self._triggers.items() if trigger == After(block.name)
        }
        return version

    def _is_due(self, name: str, scene: SceneGraph, now: float) -> bool:
        trigger, block, last = self._triggers.get(name), self.blocks[name], self._inputs.get(name)
        if isinstance(trigger, Every):
            return now >= self._next[name]
        if not isinstance(trigger, OnChange):
            return name in self._pending
        if last is scene:
            return False
        try:
            if trigger.below is not None:
                node = find_node(scene, trigger.below)
                below = {*frames_below(last or scene, node), *frames_below(scene, node)}
                is_due = last is None or not below.isdisjoint(find_changes(block, last, scene)[0])
            elif last is None:  # the first execution needs all inputs
                is_due = all(block.find(scene).values())
            else:
                is_due = has_changed(block, last, scene, block.find(last), with_own=False)
            if last is not None and not is_due:
                self._inputs[name] = scene
            return is_due
        except UnknownNameError:  # the hook does not exist yet
            return False
        except TmkitError:  # the execution reports it
            return True
