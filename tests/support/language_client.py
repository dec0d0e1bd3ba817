"""An editor for tests: the Language Server Protocol over the streams of a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from support.processes import Process


class LanguageClient:
    """Client that starts a server, opens texts, sends requests and awaits notifications.

    Args:
        command: how to start it.
        encodings: how positions may be counted.
    """

    def __init__(self, *command: str, encodings: tuple[str, ...] = ("utf-16",)) -> None:
        command = command or (sys.executable, "-m", "tmkit.lsp")
        self.process = Process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        # notifications of the server that were not consumed
        self.sent: list[dict[str, Any]] = []
        self._next = 0
        self._version = 0
        capabilities = {"general": {"positionEncodings": list(encodings)}}
        about = {"processId": None, "rootUri": None, "capabilities": capabilities}
        self.capabilities = self.ask("initialize", about)["capabilities"]
        self.tell("initialized", {})

    def __enter__(self) -> LanguageClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is None:
            self.ask("shutdown", None)
            self.tell("exit", None)
            assert self.process.wait(60) == 0
        else:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def _write(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        assert length, "the server has ended"
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return message

    def tell(self, method: str, parameters: Any) -> None:
        """Send a notification."""
        self._write({"method": method, "params": parameters})

    def ask(self, method: str, parameters: Any) -> Any:
        """Send a request and return the response."""
        self._next += 1
        self._write({"id": self._next, "method": method, "params": parameters})
        while (message := self._read()).get("id") != self._next or "method" in message:
            self.sent.append(message)
        assert "error" not in message, message
        return message["result"]

    def open(self, path: Path, text: str) -> None:
        """Open a file with a text, which need not be that on the disk."""
        document = {"uri": path.as_uri(), "languageId": path.suffix[1:], "version": 0, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})

    def change(self, path: Path, text: str) -> None:
        """Replace the whole text."""
        self._version += 1
        document = {"uri": path.as_uri(), "version": self._version}
        self.tell(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
        )

    def diagnostics(self, path: Path) -> list[dict[str, Any]]:
        """Return the next diagnostics of a file, and wait for them if there are none yet."""
        while True:
            waiting = self.sent
            for number, message in enumerate(waiting):
                is_answer = message.get("method") == "textDocument/publishDiagnostics"
                if is_answer and message["params"]["uri"] == path.as_uri():
                    del waiting[number]
                    diagnostics: list[dict[str, Any]] = message["params"]["diagnostics"]
                    return diagnostics
            self.sent.append(self._read())

    def at(self, what: str, path: Path, line: int, character: int) -> Any:
        """Send ``hover``, ``definition`` or ``completion`` for a position, counted from 0."""
        position = {"line": line, "character": character}
        return self.ask(
            f"textDocument/{what}", {"textDocument": {"uri": path.as_uri()}, "position": position}
        )
