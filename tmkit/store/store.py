"""Store of scene versions in a folder, with branches, history, merges and garbage collection.

A branch is the name of a version, its tip. :mod:`tmkit.store.versions` describes versions on disk.

Invariants: a version is complete on disk when a method returns its id; damage is detected by
digests, and an error names it.
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
    """Entry of the history.

    Attributes:
        id: 64 hexadecimal digits.
        parents: ids of the parents; the first was the tip of the branch.
        message: message of the user.
        fingerprint: fingerprint of the content, as ``scene.fingerprint``.
    """

    id: str
    parents: tuple[str, ...]
    message: str
    fingerprint: str


class GarbageCollection(NamedTuple):
    """Result of a garbage collection.

    Attributes:
        versions: count of the removed versions.
        blobs: count of the removed files of blobs.
        blob_bytes: size of these files [bytes].
    """

    versions: int
    blobs: int
    blob_bytes: int


class Store(Closing):
    """Versions of scenes in a folder.

    Threads and processes may share a store, and a fork may use the store of its parent.

    Args:
        path: the folder, created if it is missing; an empty folder becomes a store.
        limits: limits of its content. Defaults to ``StoreLimits()``.
        must_exist: whether to reject a folder without a store.

    Raises:
        StoreError: if the folder cannot be used, or has other content.
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
        self._blobs = BlobFolder(self.path / "blobs", max_bytes=self.limits.blob_bytes)
        self._database = Database(
            self.path, max_bytes=self.limits.version_bytes, patience=self.limits.patience
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
        """Add a version to a branch and return its id; a scene equal to the tip adds none.

        O(changes) for a scene derived from the tip, or from a version in memory.

        Args:
            scene: the version.
            branch: name of the branch, created if it is new.
            message: description of the change.
            merges: ids of further parents, whose changes the scene contains.

        Raises:
            StoreError: if the name is invalid, the scene or message exceeds the limits, or the
                database is busy.
            UnknownNameError: if a parent is not in the store.
        """
        _check_branch(branch)
        with self._transaction():
            tip = self._tip(branch)
            parents = [] if tip is None else [tip]
            parents += [parent for name in merges if (parent := self._resolve(name)) not in parents]
            version = self._versions.insert(scene, parents, message)
            if version != tip:
                self._database.set_tip(branch, version)
        return version.hex()

    def get(self, version: str) -> SceneGraph:
        """Return a scene.

        O(changes) if its parent is in memory, else at most the cost of reading two scenes.

        Args:
            version: a branch, an id, or at least the first six digits of an id.

        Raises:
            StoreError: if several ids begin with these digits.
            UnknownNameError: if there is no such version.
            StoreDamageError: if the version, an ancestor that it needs, or a blob is damaged.
        """
        if len(version) != 64:
            return self._versions.scene(self._resolve(version))
        try:
            return self._versions.scene(bytes.fromhex(version))
        except (StoreDamageError, ValueError):
            # Distinguish an unknown version from a damaged one.
            return self._versions.scene(self._resolve(version))

    def log(self, version: str = "main") -> Iterator[Version]:
        """Yield a version and all its ancestors, the latest first.

        Args:
            version: as in :meth:`get`.
        """
        start = self._resolve(version)
        queue = [(-self._versions.number(start), start)]
        visited = {start}
        while queue:
            key = heapq.heappop(queue)[1]
            header = self._versions.header(key)
            parents = tuple(parent.hex() for parent in header.parents)
            yield Version(key.hex(), parents, header.message, header.fingerprint.hex())
            for parent in header.parents:
                if parent not in visited:
                    visited.add(parent)
                    heapq.heappush(queue, (-self._versions.number(parent), parent))

    def diff(self, before: str, after: str) -> SceneDifference:
        """Return the difference between two versions.

        Args:
            before: the first version, as in :meth:`get`.
            after: the second version, as in :meth:`get`.
        """
        return diff(self.get(before), self.get(after))

    @contextlib.contextmanager
    def batch(self) -> Iterator[Self]:
        """Return a context that commits all its changes at its end, or none after an exception.

        Other processes wait to write until then.
        """
        with self._transaction():
            yield self

    @property
    def branches(self) -> Mapping[str, str]:
        """Ids of the tips by name."""
        rows = self._database.query("SELECT name, id FROM branches ORDER BY name")
        return MappingProxyType({str(name): id_bytes(tip).hex() for name, tip in rows})

    def set_branch(self, name: str, version: str) -> None:
        """Set the tip of a branch.

        Args:
            name: name of the branch, created if it is new.
            version: the tip, as in :meth:`get`.

        Raises:
            StoreError: if the name is invalid.
            UnknownNameError: if there is no such version.
        """
        _check_branch(name)
        with self._transaction():
            self._database.set_tip(name, self._resolve(version))

    def delete_branch(self, name: str) -> None:
        """Delete a branch; its versions stay until :meth:`gc`.

        Args:
            name: name of the branch.

        Raises:
            UnknownNameError: if there is no such branch.
        """
        with self._transaction():
            if self._tip(name) is None:
                raise UnknownNameError.of("branch", name, self.branches)
            self._database.query("DELETE FROM branches WHERE name=?", name)

    def merge(self, version: str, *, into: str = "main", message: str = "") -> str:
        """Merge a version into a branch and return the new tip.

        If the tip is a descendant of the version, the branch stays as it is. If it is an ancestor,
        the version becomes the tip. Otherwise the scenes are merged frame by frame, with the latest
        common ancestor as base (:func:`~tmkit.store.merge_scenes`).

        Args:
            version: their version, as in :meth:`get`.
            into: our branch.
            message: description of the change.

        Raises:
            MergeConflictError: if both sides change the same frame, pair or group differently;
                nothing is stored.
            StoreError: if the two have no common ancestor.
            UnknownNameError: if there is no such branch or version.
        """
        with self._transaction():
            tip = self._tip(into)
            if tip is None:
                raise UnknownNameError.of("branch", into, self.branches)
            theirs = self._resolve(version)
            base = self._versions.merge_base(tip, theirs)
            if base == theirs:
                return tip.hex()
            if base == tip:
                new_tip = theirs
            else:
                scene = merge_scenes(
                    self._versions.scene(base),
                    self._versions.scene(tip),
                    self._versions.scene(theirs),
                )
                new_tip = self._versions.insert(scene, [tip, theirs], message)
            self._database.set_tip(into, new_tip)
        return new_tip.hex()

    def gc(self) -> GarbageCollection:
        """Remove versions outside of all branches, unused blobs and half-written files."""
        with self._transaction():
            queue = [id_bytes(tip) for (tip,) in self._database.query("SELECT id FROM branches")]
            reachable = set(queue)
            while queue:
                parents = self._versions.header(queue.pop()).parents
                new = [parent for parent in parents if parent not in reachable]
                reachable.update(new)
                queue += new
            garbage = {
                key for (key,) in self._database.query("SELECT id FROM versions")
            } - reachable
            for key in garbage:
                self._database.query("DELETE FROM versions WHERE id=?", key)
        # The second transaction includes the rows that other processes wrote in between.
        with self._transaction():
            used = set()
            for (key,) in self._database.query("SELECT id FROM versions"):
                used.update(self._versions.blobs_of(key))
            count, size = self._blobs.remove_all_but(used)
        self._database.query("VACUUM")
        return GarbageCollection(len(garbage), count, size)

    def find_damage(self) -> tuple[str, ...]:
        """Return a line for each damaged or missing version, branch or blob. O(versions).

        This reads the whole store.
        """
        damage: dict[str, None] = {}
        for (key,) in self._database.query("SELECT id FROM versions ORDER BY number"):
            try:
                self._versions.scene(id_bytes(key), is_reread=True)
            except StoreDamageError as error:
                damage[str(error)] = None
        for name, tip in self.branches.items():
            try:
                self._versions.number(bytes.fromhex(tip))
            except (StoreDamageError, UnknownNameError) as error:
                damage[f"branch '{name}': {error}"] = None
        return tuple(damage)

    def close(self) -> None:
        """Close the files; later operations raise StoreError."""
        self._database.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Return the context of a transaction; a rollback also clears the cache."""
        try:
            with self._database:
                yield
        except BaseException:
            self._versions.clear_cache()
            raise

    def _tip(self, branch: str) -> bytes | None:
        tip = self._database.tip(branch)
        return None if tip is None else id_bytes(tip)

    def _resolve(self, name: str) -> bytes:
        """Return the id of an existing version by branch, id or prefix of an id."""
        if len(name) != 64 and (tip := self._tip(name)) is not None:
            return tip
        matches: list[bytes] = []
        if _PREFIX.fullmatch(name):
            first = bytes.fromhex(name.ljust(64, "0"))
            last = bytes.fromhex(name.ljust(64, "f"))
            rows = self._database.query(
                "SELECT id FROM versions WHERE id BETWEEN ? AND ? LIMIT 2", first, last
            )
            matches = [id_bytes(key) for (key,) in rows]
        if len(matches) > 1:
            raise StoreError(f"the ids of several versions begin with '{name}'")
        if not matches:
            raise UnknownNameError.of("version", name, self.branches)
        return matches[0]


def _is_free(path: Path) -> bool:
    """Return whether a path is free for a store.

    A killed process may have left a folder with only the folder of the blobs.
    """
    return not path.exists() or (
        path.is_dir() and {entry.name for entry in path.iterdir()} <= {"blobs"}
    )


def _check_branch(name: str) -> None:
    if not _BRANCH.fullmatch(name):
        raise StoreError(
            f"{name[:80]!r} is not a branch name: expected 1 to 200 letters, digits and _ . / + -"
        )
