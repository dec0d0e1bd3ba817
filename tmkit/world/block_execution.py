"""The execution of a function block: its edit is applied to the version of now, or it is executed again.

The edit is applied if the inputs are still the same, and may change what the block owns alone. So a block sees one
version, whole, and a second execution with the same inputs changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tmkit._core import SceneGraph, diff
from tmkit.errors import ArgumentError, BlockError, TmkitError
from tmkit.world.blocks import Edit, Found, FunctionBlock, matches_of
from tmkit.world.live_scene import LiveScene


def run_block(world: LiveScene, block: FunctionBlock, *, attempts: int = 3) -> SceneGraph:
    """Execute a block once, and return the version that its edit made; the present one where it changes nothing.

    Any number of threads may execute blocks of one world. The world's lock is held while the edit is applied, and while
    the inputs are found again where others have edited meanwhile.

    Args:
        world: the world.
        block: the block.
        attempts: executions at most, where others change the inputs meanwhile.

    Raises:
        BlockError: an exception of the block; an edit of what it does not own, or not as declared; inputs that changed
            in each attempt. The world stays as it was.
    """
    return executed(world, block, attempts)[1]


def executed(world: LiveScene, block: FunctionBlock, attempts: int) -> tuple[SceneGraph, SceneGraph]:
    """Execute a block; return the version that it has seen, and that which its edit made."""
    with blamed(block):
        for _ in range(attempts):
            base = world.scene
            found = block.find(base)
            block.before_execute(base, found)
            edit = block.execute(base, found)
            if not callable(edit):
                raise ArgumentError(f"execute returns an edit, a function of a scene, not {type(edit).__name__}")
            commit = _Commit(block, base, found, edit)
            made = world.update(commit)
            if not commit.is_stale:
                return base, made
    raise BlockError.of(block.name, f"is refused: its inputs changed during each of {attempts} executions")


class _Commit:
    """The edit of a block as one of the version of now, which stays if the inputs are not the same any more."""

    def __init__(self, block: FunctionBlock, base: SceneGraph, found: Found, edit: Edit) -> None:
        self._block, self._base, self._found, self._edit = block, base, found, edit
        self.is_stale = False

    def __call__(self, now: SceneGraph) -> SceneGraph:
        block = self._block
        self.is_stale = has_changed(block, self._base, now, self._found, with_own=True)
        made = now if self.is_stale else self._edit(now)
        if not isinstance(made, SceneGraph):
            raise ArgumentError(f"its edit returns a SceneGraph, not {type(made).__name__}")
        if made == now:
            return now
        _check_owned(block, now, made)
        _check_output(block, made)
        block.after_execute(now, made)
        return made


@contextmanager
def blamed(block: FunctionBlock) -> Iterator[None]:
    """Make errors of a block BlockErrors."""
    try:
        yield
    except BlockError:
        raise
    except Exception as error:
        what = str(error) if isinstance(error, TmkitError) else f"{type(error).__name__}: {error}"
        raise BlockError.of(block.name, f"failed: {what}") from error


def has_changed(block: FunctionBlock, a: SceneGraph, b: SceneGraph, found: Found, *, with_own: bool) -> bool:
    """Return whether what a block depends on differs between two versions; ``found`` is that of the first."""
    if a is b:
        return False
    others, own = touched(block, a, b)
    if with_own and own:
        return True
    if not block.inputs:
        return bool(others)
    if block.find(b) != found:
        return True
    frames = {frame for matches in found.values() for match in matches for frame in match.values()}
    return not others.isdisjoint(frames.union(*(b.ancestors(frame) for frame in frames)))


def touched(block: FunctionBlock, a: SceneGraph, b: SceneGraph) -> tuple[set[str], set[str]]:
    """Return the frames and groups that differ between two versions: those of others, and those of a block."""
    difference = diff(a, b)
    names = {side.name for frame in difference.frames for side in (frame.before, frame.after) if side is not None}
    names |= set(difference.groups)
    own = {block.name, *block.made(a), *block.made(b)}
    return names - own, names & own


def _check_owned(block: FunctionBlock, now: SceneGraph, made: SceneGraph) -> None:
    """Refuse an edit of what a block does not own."""
    before, difference = set(block.made(now)), diff(now, made)
    after = set(block.made(made))
    taken = [name for name in after - before if name in now]
    for frame in difference.frames:
        name = (frame.before or frame.after).name  # type: ignore[union-attr]
        is_below = frame.after is None and not before.isdisjoint(now.ancestors(name))
        if name not in before | after and not is_below and not block.is_editable(now, name):
            taken.append(name)
    removed, hooks = set(difference.removed), (block.name, block.output_hook)
    taken += [name for name in difference.groups if name not in hooks and not _loses(now, made, name, removed)]
    taken += [a for a, b, *_ in difference.pairs if (before | after | removed).isdisjoint((a, b))]
    if taken:
        raise BlockError.of(block.name, f"changes '{min(taken)}', which it has not made")


def _loses(now: SceneGraph, made: SceneGraph, name: str, removed: set[str]) -> bool:
    """Return whether a group has lost removed frames, or has gone with one, and nothing else."""
    if name not in now.group_names:
        return False
    old = now.group(name)
    if name not in made.group_names:
        return not removed.isdisjoint(old.frames)
    new = made.group(name)
    return (new.groups, new.attributes, {*new.frames}, {*new.parents}) == (
        old.groups, old.attributes, {*old.frames} - removed, {*old.parents} - removed
    )  # fmt: skip


def _check_output(block: FunctionBlock, made: SceneGraph) -> None:
    """Refuse an output that is not as declared."""
    own = set(block.made(made))
    fitting = {
        frame
        for pattern in block.outputs.values()
        for match in matches_of(made, pattern, own)
        for frame in match.values()
    }
    if odd := sorted(own - fitting):
        declared = ", ".join(f"'{name}'" for name in block.outputs) or "none"
        raise BlockError.of(block.name, f"makes frame '{odd[0]}', which fits none of its outputs ({declared})")
