"""The server: it takes texts and questions from an editor, and sends what :mod:`tmkit.lsp.project` finds.

Errors of syntax are sent at once. What takes longer, the reading of the whole scene, is done in a
thread when no key was pressed for a moment; meanwhile the findings of before stay.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from tmkit._support.extras import importing
from tmkit._support.version import __version__
from tmkit.formats.mesh.package_uris import real_path
from tmkit.lsp.framing import MessageInput
from tmkit.lsp.project import Finding, Project, all_findings, meaning_of, syntax_findings
from tmkit.lsp.text_index import LANGUAGES, TextIndex

if TYPE_CHECKING:
    from io import BufferedIOBase

with importing("pygls", "editor", "the language server needs"):
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

_FIRST = 0.01  # seconds
_logger = logging.getLogger(__name__)
_WORD = re.compile(r'"[^"\n]*"?|[\w:?^-]+|.')


def language_server(*, pause: float = 0.2) -> LanguageServer:
    """Return a language server for ``.robray``, ``.rsg`` and ``.pddl`` files; its ``start_io()`` runs it.

    Args:
        pause: seconds without a change after which a scene is read as a whole.
    """
    server = LanguageServer(
        "tmkit", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full
    )
    editor = _Editor(server, pause)
    for method, handle in (
        (types.TEXT_DOCUMENT_DID_OPEN, editor.changed),
        (types.TEXT_DOCUMENT_DID_CHANGE, editor.changed),
        (types.TEXT_DOCUMENT_DID_SAVE, editor.saved),
        (types.TEXT_DOCUMENT_DID_CLOSE, editor.closed),
        (types.TEXT_DOCUMENT_HOVER, editor.hover),
        (types.TEXT_DOCUMENT_DEFINITION, editor.definition),
    ):
        server.feature(method)(partial(handle))  # pygls sets attributes, which methods do not take
    options = types.CompletionOptions(trigger_characters=["(", ":", "?"])
    server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(partial(editor.completion))
    return server


def serve() -> None:
    """Run a server on the standard streams until the editor ends it."""
    gc.freeze()  # what is imported is never garbage
    handler = logging.StreamHandler()
    handler.setFormatter(_PlainFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    language_server().start_io(
        cast("BinaryIO", MessageInput(cast("BufferedIOBase", sys.stdin.buffer)))
    )


class _PlainFormatter(logging.Formatter):
    """Log lines with the message of an exception in place of its traceback."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the base class has this name
        return f"{type(ei[1]).__name__}: {ei[1]}"


class _Editor:
    """What the editor asks, answered."""

    def __init__(self, server: LanguageServer, pause: float) -> None:
        self._server, self._pause = server, pause
        self._project = Project()
        self._uris: dict[Path, str] = {}
        self._tasks: dict[Path, asyncio.Task[None]] = {}
        self._before: dict[Path, list[Finding]] = {}  # found when the whole was read
        self._worker = ThreadPoolExecutor(1)

    def changed(
        self, event: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams
    ) -> None:
        uri = event.text_document.uri
        document = self._server.workspace.get_text_document(uri)
        path = Path(document.path)
        if not uri.startswith("file:") or path.suffix.lower() not in LANGUAGES:
            return
        text = document.source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self._uris[real_path(path)] = uri
        self._project.update(real_path(path), TextIndex(path, text))
        self._check(real_path(path))

    def saved(self, _: types.DidSaveTextDocumentParams) -> None:
        for real in self._project.open:  # others may include it
            self._check(real)

    def closed(self, event: types.DidCloseTextDocumentParams) -> None:
        index = self._index(event.text_document.uri)
        if index is not None:
            real = real_path(index.path)
            self._project.close(real)
            self._before.pop(real, None)
            self._tasks.pop(real).cancel()
            self._send(index, [])

    def _index(self, uri: str) -> TextIndex | None:
        path = real_path(Path(self._server.workspace.get_text_document(uri).path))
        return self._project.open.get(path) if uri.startswith("file:") else None

    def _check(self, real: Path) -> None:
        if real in self._tasks:
            self._tasks[real].cancel()
        self._tasks[real] = asyncio.get_running_loop().create_task(self._find(real))

    async def _find(self, real: Path) -> None:
        await asyncio.sleep(_FIRST)  # a question that comes with the change is answered first
        index = self._project.open[real]
        wrong = syntax_findings(index)
        if wrong is not None:
            self._send(index, wrong or self._before.get(real, []))
        if not wrong:
            await asyncio.sleep(self._pause)
            texts = {path: one.text for path, one in self._project.open.items()}
            domain = (
                self._project.domain_of(index) if index.path.suffix.lower() == ".pddl" else None
            )
            loop = asyncio.get_running_loop()
            try:
                found, frames = await loop.run_in_executor(
                    self._worker, all_findings, index, texts, domain
                )
            except Exception:
                _logger.exception("%s cannot be checked", index.path)
                return
            self._before[real] = found
            if frames is not None:
                self._project.keep_frames(real, frames)
            self._send(index, found)

    def _send(self, index: TextIndex, found: list[Finding]) -> None:
        uri = self._uris[real_path(index.path)]
        listed = [self._diagnostic(index, one) for one in found]
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, listed))

    def _diagnostic(self, index: TextIndex, found: Finding) -> types.Diagnostic:
        text = found.text
        line, column = (found.line or 1) - 1, (found.column or 1) - 1
        if real_path(found.path) != real_path(index.path):  # in a file that it includes
            text = f"{found.path.name}:{line + 1}: {text}"
            place = types.Location(
                found.path.absolute().as_uri(), types.Range(*[types.Position(line, column)] * 2)
            )
            more = [types.DiagnosticRelatedInformation(place, found.text)]
            line, column, length = 0, 0, len(index.lines[0])
        else:
            more, line = None, min(line, len(index.lines) - 1)
            word = _WORD.match(index.lines[line], column)
            length = len(index.lines[line]) if found.column is None else len(word[0]) if word else 1
        level = (
            types.DiagnosticSeverity.Error if found.is_error else types.DiagnosticSeverity.Warning
        )
        span = types.Range(
            self._position(index, line, column), self._position(index, line, column + length)
        )
        return types.Diagnostic(
            span, text, severity=level, source="tmkit", related_information=more
        )

    def _position(self, index: TextIndex, line: int, column: int) -> types.Position:
        text = index.lines[line] if line < len(index.lines) else ""
        units = self._server.workspace.position_codec.client_num_units(text[:column])
        return types.Position(line, units)

    def _offset(self, index: TextIndex, position: types.Position) -> int:
        line = min(position.line, len(index.lines) - 1)
        text, column = index.lines[line], 0
        count = self._server.workspace.position_codec.client_num_units
        while column < len(text) and count(text[:column]) < position.character:
            column += 1
        return index.offset(line, column)

    def completion(self, asked: types.CompletionParams) -> list[types.CompletionItem]:
        index = self._index(asked.text_document.uri)
        if index is None:
            return []
        kinds = {
            "keyword": types.CompletionItemKind.Keyword,
            "variable": types.CompletionItemKind.Variable,
        }
        found = self._project.completions(index, self._offset(index, asked.position))
        return [
            types.CompletionItem(
                name,
                kind=kinds.get(kind, types.CompletionItemKind.Reference),
                detail=kind,
                documentation=self._markdown(about) if about else None,
            )
            for name, (kind, about) in found.items()
        ]

    def hover(self, asked: types.HoverParams) -> types.Hover | None:
        index = self._index(asked.text_document.uri)
        token = index.on(self._offset(index, asked.position)) if index is not None else None
        if index is None or token is None:
            return None
        found = self._project.named(index, token) if token.kinds else []
        about = found[0].about() if found else meaning_of(index, token.text)
        return types.Hover(self._markdown(about)) if about else None

    def definition(self, asked: types.DefinitionParams) -> list[types.Location]:
        index = self._index(asked.text_document.uri)
        token = index.on(self._offset(index, asked.position)) if index is not None else None
        places = []
        for one in (
            self._project.named(index, token)
            if index is not None and token is not None and token.kinds
            else ()
        ):
            other = (
                self._project.index_of(one.path) if one.path.suffix.lower() in LANGUAGES else None
            )
            at = (
                types.Position(one.line, one.column)
                if other is None
                else self._position(other, one.line, one.column)
            )
            places.append(
                types.Location(
                    self._uris.get(real_path(one.path), one.path.absolute().as_uri()),
                    types.Range(at, at),
                )
            )
        return places

    def _markdown(self, text: str) -> types.MarkupContent:
        return types.MarkupContent(types.MarkupKind.Markdown, text)
