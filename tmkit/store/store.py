"""Versions of scenes in a folder, with branches, history, merges and garbage collection.

A branch is a name for a version, its tip. What versions are on disk, :mod:`tmkit.store.versions`
explains.

Invariants: an id that a method returned is on disk, whole; damage is found by digest and named,
    never read over.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self

from tmkit._core import SceneDifference
from tmkit._support.closing import Closing
from tmkit.errors import StoreDamageError, StoreError, UnknownNameError
from tmkit.graph import SceneGraph, diff
from tmkit.store.blobs import BlobFolder
from tmkit.store.database import FILE, Database
from tmkit.store.encoding import merge_scenes
from tmkit.store.versions import StoreLimits, VersionTable, id_bytes

_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}")
_PREFIX = re.compile(r"[0-9a-f]{6,64}")


class Version(NamedTuple):
    """An entry of the history.

    Attributes:
        id: 64 hexadecimal digits.
        parents: ids; the first is the version that was the tip of the branch.
        message: of the user.
        fingerprint: of the content, as ``scene.fingerprint``.
    """

    id: str
    parents: tuple[str, ...]
    message: str
    fingerprint: str


class Collected(NamedTuple):
    """What a garbage collection removed: numbers of versions and of files of blobs, and bytes of these files."""

    versions: int
    blobs: int
    blob_bytes: int


class Store(Closing):
    """Versions of scenes in a folder. Threads and processes may share one; a fork may use its parent's.

    Args:
        path: the folder; made if it is missing or empty.
        limits: how much it takes.
        must_exist: refuse a folder that is no store.

    Raises:
        StoreError: the folder cannot be used, or something else is in it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limits: StoreLimits | None = None,
        must_exist: bool = False,
    ) -> None:
        self.path = Path(path)
        self.limits = limits or StoreLimits()
        if not (self.path / FILE).exists() and (must_exist or not _is_free(self.path)):
            raise StoreError(f"{self.path}: there is no store in it")
        self._blobs = BlobFolder(self.path / "blobs", largest=self.limits.blob_bytes)
        self._database = Database(
            self.path, largest=self.limits.version_bytes, patience=self.limits.patience
        )
        self._versions = VersionTable(self._database, self._blobs, self.limits)

    def put(
        self,
        scene: SceneGraph,
        branch: str = "main",
        *,
        message: str = "",
        merges: Sequence[str] = (),
    ) -> str:
        """Add a version to a branch and return its id; a scene equal to the tip makes none.

        O(changes) for a scene made from the tip, or from one of the versions in memory.

        Args:
            scene: the version.
            branch: its name; made if it is new.
            message: what was done.
            merges: ids of further parents, whose changes the scene holds.

        Raises:
            StoreError: a bad name, a scene or a message beyond the limits, or a busy database.
            UnknownNameError: a parent that is not in the store.
        """
        _check_branch(branch)
        with self._writing():
            tip = self._tip(branch)
            parents = [] if tip is None else [tip]
            parents += [
                parent for name in merges if (parent := self._resolved(name)) not in parents
            ]
            version = self._versions.insert(scene, parents, message)
            if version != tip:
                self._database.set_tip(branch, version)
        return version.hex()

    def get(self, version: str) -> SceneGraph:
        """Return a scene. O(changes) where its parent is in memory, else the cost of reading two scenes at most.

        Args:
            version: a branch, an id, or at least the first six digits of one.

        Raises:
            UnknownNameError: there is none, or more than one.
            StoreDamageError: the version, one that it is made of, or a blob is damaged.
        """
        if len(version) != 64:
            return self._versions.scene(self._resolved(version))
        try:
            known = bytes.fromhex(version)
            return self._versions.scene(known)
        except (StoreDamageError, ValueError):
            return self._versions.scene(self._resolved(version))  # and is unknown, or damaged

    def log(self, version: str = "main") -> Iterator[Version]:
        """Yield a version and all it was made from, the latest stored first.

        Args:
            version: as in :meth:`get`.
        """
        start = self._resolved(version)
        waiting, seen = [(-self._versions.number(start), start)], {start}
        while waiting:
            known = heapq.heappop(waiting)[1]
            header = self._versions.header(known)
            parents = tuple(parent.hex() for parent in header.parents)
            yield Version(known.hex(), parents, header.message, header.fingerprint.hex())
            for parent in header.parents:
                if parent not in seen:
                    seen.add(parent)
                    heapq.heappush(waiting, (-self._versions.number(parent), parent))

    def diff(self, before: str, after: str) -> SceneDifference:
        """Return what differs between two versions.

        Args:
            before: the first, as in :meth:`get`.
            after: the second.
        """
        return diff(self.get(before), self.get(after))

    @contextlib.contextmanager
    def batch(self) -> Iterator[Self]:
        """Commit all that is put within it at once, or, after an exception, nothing; others wait to write meanwhile."""
        with self._writing():
            yield self

    @property
    def branches(self) -> Mapping[str, str]:
        """Ids of the tips by name."""
        rows = self._database.query("SELECT name, id FROM branches ORDER BY name")
        return MappingProxyType({str(name): id_bytes(known).hex() for name, known in rows})

    def set_branch(self, name: str, version: str) -> None:
        """Let a branch end at a version.

        Args:
            name: of the branch, new or not.
            version: as in :meth:`get`.
        """
        _check_branch(name)
        with self._writing():
            self._database.set_tip(name, self._resolved(version))

    def delete_branch(self, name: str) -> None:
        """Delete a branch; its versions stay until :meth:`gc`.

        Raises:
            UnknownNameError: there is none of that name.
        """
        with self._writing():
            if self._tip(name) is None:
                raise UnknownNameError.of("branch", name, self.branches)
            self._database.query("DELETE FROM branches WHERE name=?", name)

    def merge(self, version: str, *, into: str = "main", message: str = "") -> str:
        """Merge a version into a branch and return the new tip.

        A branch that has the version is left as it is; one that the version was made from is set to
        it. Else the scenes are merged frame by frame with the latest common version
        (:func:`~tmkit.store.merge_scenes`).

        Args:
            version: their version, as in :meth:`get`.
            into: our branch.
            message: what was done.

        Raises:
            MergeConflictError: both sides change the same thing differently; nothing is stored.
            StoreError: the two have no version in common.
        """
        with self._writing():
            tip = self._tip(into)
            if tip is None:
                raise UnknownNameError.of("branch", into, self.branches)
            theirs = self._resolved(version)
            base = self._versions.merge_base(tip, theirs)
            if base == theirs:
                return tip.hex()
            if base == tip:
                merged = theirs
            else:
                scene = merge_scenes(
                    self._versions.scene(base),
                    self._versions.scene(tip),
                    self._versions.scene(theirs),
                )
                merged = self._versions.insert(scene, [tip, theirs], message)
            self._database.set_tip(into, merged)
        return merged.hex()

    def gc(self) -> Collected:
        """Remove the versions that no branch leads to, the blobs that no version names, and half-written files."""
        with self._writing():
            waiting = [
                id_bytes(known) for (known,) in self._database.query("SELECT id FROM branches")
            ]
            reached = set(waiting)
            while waiting:
                new = [
                    parent
                    for parent in self._versions.header(waiting.pop()).parents
                    if parent not in reached
                ]
                reached.update(new)
                waiting += new
            garbage = {
                known for (known,) in self._database.query("SELECT id FROM versions")
            } - reached
            for known in garbage:
                self._database.query("DELETE FROM versions WHERE id=?", known)
        with self._writing():  # anew: whoever wrote in between, its blobs are named by its rows
            named = set()
            for (known,) in self._database.query("SELECT id FROM versions"):
                named.update(self._versions.blobs_of(known))
            removed, size = self._blobs.remove_all_but(named)
        self._database.query("VACUUM")
        return Collected(len(garbage), removed, size)

    def damaged(self) -> tuple[str, ...]:
        """Return what is damaged or missing, one line an entry, after reading everything. O(versions)."""
        found: dict[str, None] = {}
        for (known,) in self._database.query("SELECT id FROM versions ORDER BY number"):
            try:
                self._versions.scene(id_bytes(known), anew=True)
            except StoreDamageError as error:
                found[str(error)] = None
        for name, tip in self.branches.items():
            try:
                self._versions.number(bytes.fromhex(tip))
            except (StoreDamageError, UnknownNameError) as error:
                found[f"branch '{name}': {error}"] = None
        return tuple(found)

    def close(self) -> None:
        """Close the files; a closed store refuses all operations."""
        self._database.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Make a transaction; versions of one that is rolled back are forgotten."""
        try:
            with self._database:
                yield
        except BaseException:
            self._versions.forget()
            raise

    def _tip(self, branch: str) -> bytes | None:
        tip = self._database.tip(branch)
        return None if tip is None else id_bytes(tip)

    def _resolved(self, name: str) -> bytes:
        """Return the id of a version by branch, id or prefix of an id; it is in the store."""
        if len(name) != 64 and (tip := self._tip(name)) is not None:
            return tip
        found: list[bytes] = []
        if _PREFIX.fullmatch(name):
            least, most = bytes.fromhex(name.ljust(64, "0")), bytes.fromhex(name.ljust(64, "f"))
            rows = self._database.query(
                "SELECT id FROM versions WHERE id BETWEEN ? AND ? LIMIT 2", least, most
            )
            found = [id_bytes(known) for (known,) in rows]
        if len(found) > 1:
            raise StoreError(f"'{name}' begins the ids of several versions")
        if not found:
            raise UnknownNameError.of("version", name, self.branches)
        return found[0]


def _is_free(path: Path) -> bool:
    """Whether a store may be made there: nothing is there, or what a killed process had begun."""
    return not path.exists() or (
        path.is_dir() and {entry.name for entry in path.iterdir()} <= {"blobs"}
    )


def _check_branch(name: str) -> None:
    if not _BRANCH.fullmatch(name):
        raise StoreError(
            f"{name[:80]!r} is no name of a branch: 1 to 200 of letters, digits and _ . / + -"
        )
