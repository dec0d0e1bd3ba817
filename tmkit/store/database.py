"""SQLite database of the versions and branches of a store, safe for processes and kills.

SQLite uses a write-ahead log with ``synchronous=NORMAL``. A process that is killed at any moment
leaves the state before or after a transaction. A power failure may undo the last commits, those
since the last checkpoint, each as a whole and in order, and damages no older commit. One process
writes at a time while others wait, and any number of processes read.

Files may be untrusted. The schema must equal that of this module literally, so a file has neither
triggers nor views, and the size of rows is limited. A file that SQLite finds malformed raises
:class:`StoreDamageError`.
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
"""Name of the database in the folder of a store."""

STORE_FORMAT = 1
"""Version of the format of a store."""

_APPLICATION_ID = 0x746D6B73
"""Application id in the header of the file: "tmks"."""

_SCHEMA = {
    "versions": (
        "CREATE TABLE versions (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, header BLOB"
        " NOT NULL, body BLOB NOT NULL)"
    ),
    "branches": "CREATE TABLE branches (name TEXT PRIMARY KEY, id BLOB NOT NULL) WITHOUT ROWID",
}


class Database:
    """Connection to the database of a folder; as a context manager, a transaction.

    After a fork, the child process opens another connection.

    Args:
        folder: folder of the store.
        max_bytes: limit of the size of a row.
        patience: time to wait for another process that writes [s].

    Raises:
        StoreError: if the file is not a database of a store of this format.
    """

    def __init__(self, folder: Path, *, max_bytes: int, patience: float) -> None:
        self._path = folder / FILE
        self._max_bytes = max_bytes
        self._patience = patience
        # Connections of parent processes stay open, since closing one drops their locks.
        self._inherited: list[sqlite3.Connection] = []
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        self.lock = threading.RLock()
        self._depth = 0
        # Rows of the transaction that are not yet written.
        self._rows: list[tuple[bytes, bytes, bytes]] = []
        self._tips: dict[str, bytes] = {}
        if any(os.path.islink(f"{self._path}{end}") for end in ("", "-wal", "-shm")):
            raise StoreError(f"{self._path}: expected a regular file, received a link")
        handle = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # one of several processes creates the tables
            self._connection = sqlite3.connect(
                self._path, timeout=self._patience, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except sqlite3.Error as error:
            raise self._error(error) from None
        finally:
            os.close(handle)

    def _prepare(self) -> None:
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._max_bytes + 1_000_000)
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "synchronous=NORMAL"):
            self.query(f"PRAGMA {setting}")
        schema = dict(self.query("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))
        ((application,),) = self.query("PRAGMA application_id")
        ((version,),) = self.query("PRAGMA user_version")
        if not schema and not application:
            self.query("PRAGMA page_size=2048")  # a commit writes three pages
            self.query("PRAGMA journal_mode=WAL")
            settings = (
                f"PRAGMA application_id={_APPLICATION_ID}",
                f"PRAGMA user_version={STORE_FORMAT}",
            )
            for statement in ("BEGIN IMMEDIATE", *_SCHEMA.values(), *settings, "COMMIT"):
                self.query(statement)
        elif application != _APPLICATION_ID or schema != _SCHEMA:
            raise StoreError(f"{self._path}: it is not the database of a store")
        elif version != STORE_FORMAT:
            raise StoreError(
                f"{self._path}: it has format {version}; this tmkit reads format {STORE_FORMAT}"
            )

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement of this package, with values for its parameters.

        Raises:
            StoreError: if the database is busy or damaged.
        """
        self._reopen_after_fork()
        try:
            with self.lock:
                self._flush()
                return self._connection.execute(statement, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._error(error) from None

    def tip(self, branch: str) -> Any:
        """Return the id of the tip of a branch, or None if there is no such branch."""
        with self.lock:
            if branch in self._tips:
                return self._tips[branch]
            rows = self.query("SELECT id FROM branches WHERE name=?", branch)
            return rows[0][0] if rows else None

    def set_tip(self, branch: str, version: bytes) -> None:
        """Set the tip of a branch, as a part of the transaction."""
        self._tips[branch] = version

    def insert(self, version: bytes, header: bytes, body: bytes) -> None:
        """Insert a version unless it exists, as a part of the transaction."""
        self._rows.append((version, header, body))

    def _flush(self) -> None:
        """Write the pending rows, at half the cost of writing each alone."""
        if self._rows:
            self._connection.executemany(
                "INSERT OR IGNORE INTO versions (id, header, body) VALUES (?, ?, ?)", self._rows
            )
            self._rows.clear()
        if self._tips:
            self._connection.executemany("REPLACE INTO branches VALUES (?, ?)", self._tips.items())
            self._tips.clear()

    def __enter__(self) -> None:
        """Begin a transaction, as the only writer; transactions may nest.

        The end of the outermost one commits all changes, or none after an exception.

        Raises:
            StoreError: if another process writes for longer than the patience.
        """
        self._reopen_after_fork()
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

    def _reopen_after_fork(self) -> None:
        """Open a connection of this process if it is a fork of the one that opened the last."""
        if self._process != os.getpid():
            self._inherited.append(self._connection)
            self._open()

    def close(self) -> None:
        """Close the connection; later calls raise StoreError."""
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
