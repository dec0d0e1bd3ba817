"""The database of a store: versions and branches in one SQLite file, safe for processes and for kills.

SQLite writes ahead to a log, with ``synchronous=NORMAL``: a process that is killed, at any moment,
leaves the state before or after a transaction. A power cut may take back the last commits, those
since the last checkpoint, each whole and in order, and damages no older ones. One process writes at
a time (others wait), any number reads.

A file may come from a stranger: its schema must be ours to the letter, so it holds neither triggers
nor views; rows are bounded; and what SQLite finds malformed is a :class:`StoreDamageError`.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

from tmkit.errors import StoreDamageError, StoreError

FILE = "versions.sqlite"
STORE_FORMAT = 1
_APPLICATION = 0x746D6B73  # "tmks"
_SCHEMA = {
    "versions": (
        "CREATE TABLE versions (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, header BLOB"
        " NOT NULL, body BLOB NOT NULL)"
    ),
    "branches": "CREATE TABLE branches (name TEXT PRIMARY KEY, id BLOB NOT NULL) WITHOUT ROWID",
}


class Database:
    """A connection to the database of a folder, opened anew in a forked process; as a context, a transaction.

    Rows have at most ``largest`` bytes; another process that writes is waited for ``patience``
    seconds.
    """

    def __init__(self, folder: Path, *, largest: int, patience: float) -> None:
        self._path, self._largest, self._patience = folder / FILE, largest, patience
        # of parent processes: closing one would drop their locks
        self._inherited: list[sqlite3.Connection] = []
        self._open()

    def _open(self) -> None:
        self._process, self.lock, self._depth = os.getpid(), threading.RLock(), 0
        self._rows: list[tuple[bytes, bytes, bytes]] = []
        self._tips: dict[str, bytes] = {}  # both of the transaction, not yet written
        if any(os.path.islink(f"{self._path}{end}") for end in ("", "-wal", "-shm")):
            raise StoreError(f"{self._path}: expected a regular file, received a link")
        handle = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # of several processes one makes the tables
            self._connection = sqlite3.connect(
                self._path, timeout=self._patience, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except sqlite3.Error as error:
            raise self._error(error) from None
        finally:
            os.close(handle)

    def _prepare(self) -> None:
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._largest + 1_000_000)
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "synchronous=NORMAL"):
            self.query(f"PRAGMA {setting}")
        found = dict(self.query("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))
        ((application,),), ((version,),) = (
            self.query("PRAGMA application_id"),
            self.query("PRAGMA user_version"),
        )
        if not found and not application:
            self.query("PRAGMA page_size=2048")  # a commit writes three pages
            self.query("PRAGMA journal_mode=WAL")
            settings = (
                f"PRAGMA application_id={_APPLICATION}",
                f"PRAGMA user_version={STORE_FORMAT}",
            )
            for statement in ("BEGIN IMMEDIATE", *_SCHEMA.values(), *settings, "COMMIT"):
                self.query(statement)
        elif application != _APPLICATION or found != _SCHEMA:
            raise StoreError(f"{self._path}: it is not the database of a store")
        elif version != STORE_FORMAT:
            raise StoreError(
                f"{self._path}: it has format {version}; this tmkit reads format {STORE_FORMAT}"
            )

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement of this package, with values for its question marks."""
        self._require_own()
        try:
            with self.lock:
                self._flush()
                return self._connection.execute(statement, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._error(error) from None

    def tip(self, branch: str) -> Any:
        """Return the id of a branch's tip, None if there is no such branch."""
        with self.lock:
            if branch in self._tips:
                return self._tips[branch]
            rows = self.query("SELECT id FROM branches WHERE name=?", branch)
            return rows[0][0] if rows else None

    def set_tip(self, branch: str, version: bytes) -> None:
        """Let a branch end at a version, within :meth:`writing`; written with the transaction's other rows."""
        self._tips[branch] = version

    def insert(self, version: bytes, header: bytes, body: bytes) -> None:
        """Insert a version unless it is there, within :meth:`writing`; written with the transaction's other rows."""
        self._rows.append((version, header, body))

    def _flush(self) -> None:
        """Write what the transaction has collected: many rows at once cost half of each alone."""
        if self._rows:
            self._connection.executemany(
                "INSERT OR IGNORE INTO versions (id, header, body) VALUES (?, ?, ?)", self._rows
            )
            self._rows.clear()
        if self._tips:
            self._connection.executemany("REPLACE INTO branches VALUES (?, ?)", self._tips.items())
            self._tips.clear()

    def __enter__(self) -> None:
        """Be the one writer; all is committed at the end, or nothing after an exception. May nest."""
        self._require_own()
        self.lock.acquire()
        try:
            if not self._depth:
                self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self.lock.release()
            raise self._error(error) from None
        self._depth += 1

    def __exit__(self, kind: object, *_: object) -> None:
        self._depth -= 1
        try:
            if not self._depth and kind is None:
                self._flush()
                self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._error(error) from None
        finally:
            if not self._depth:
                self._rows.clear()
                self._tips.clear()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            self.lock.release()

    def _require_own(self) -> None:
        """Open a connection of this process's own, after a fork."""
        if self._process != os.getpid():
            self._inherited.append(self._connection)
            self._open()

    def close(self) -> None:
        """Close the connection; it refuses everything then."""
        if self._process == os.getpid():
            self._connection.close()

    def _error(self, error: Exception) -> StoreError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_BUSY"):
            return StoreError(
                f"{self._path}: another process has been writing for {self._patience:g} seconds"
            )
        if (
            name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_TOOBIG", "SQLITE_ERROR"))
            or not name
        ):
            return StoreDamageError.of(f"file {FILE}", str(error))
        return StoreError(f"{self._path}: {error}")
