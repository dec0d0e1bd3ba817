"""Request handlers of the language server, over :mod:`tmkit.lsp.project`.

The server publishes syntax errors at once. It reads the whole scene in a thread, after a pause
without changes, and keeps the previous findings until then.
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
from tmkit.lsp.project import (
    Definition,
    Finding,
    Project,
    all_findings,
    meaning_of,
    syntax_findings,
)
from tmkit.lsp.text_index import LANGUAGES, TextIndex, Token

if TYPE_CHECKING:
    from io import BufferedIOBase

with importing("pygls", "editor", "the language server needs"):
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

_SYNTAX_CHECK_DELAY = 0.01
"""Time between a change and the check of the syntax [s]; pending requests come first."""

_logger = logging.getLogger(__name__)
_WORD = re.compile(r'"[^"\n]*"?|[\w:?^-]+|.')


def language_server(*, pause: float = 0.2) -> LanguageServer:
    """Return a language server for ``.robray``, ``.rsg`` and ``.pddl`` files.

    Its method ``start_io()`` runs it.

    Args:
        pause: time without a change after which the whole scene is read [s].
    """
    server = LanguageServer(
        "tmkit", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full
    )
    editor = _Editor(server, pause)
    for method, handler in (
        (types.TEXT_DOCUMENT_DID_OPEN, editor.update_text),
        (types.TEXT_DOCUMENT_DID_CHANGE, editor.update_text),
        (types.TEXT_DOCUMENT_DID_SAVE, editor.check_open_files),
        (types.TEXT_DOCUMENT_DID_CLOSE, editor.close_text),
        (types.TEXT_DOCUMENT_HOVER, editor.hover),
        (types.TEXT_DOCUMENT_DEFINITION, editor.definition),
    ):
        # pygls sets attributes of a handler, which a partial has and a method has not.
        server.feature(method)(partial(handler))
    options = types.CompletionOptions(trigger_characters=["(", ":", "?"])
    server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(partial(editor.completion))
    return server


def serve() -> None:
    """Run a server on the standard streams until the editor ends it."""
    gc.freeze()  # imported modules stay until the end
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
    """Handlers of the notifications and requests of an editor."""

    def __init__(self, server: LanguageServer, pause: float) -> None:
        self._server = server
        self._pause = pause
        self._project = Project()
        self._uris: dict[Path, str] = {}
        self._tasks: dict[Path, asyncio.Task[None]] = {}
        self._scene_findings: dict[Path, list[Finding]] = {}  # of the last reading of a whole scene
        self._worker = ThreadPoolExecutor(1)

    def update_text(
        self, event: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams
    ) -> None:
        """Take the text of an opened or changed file, and check it."""
        uri = event.text_document.uri
        document = self._server.workspace.get_text_document(uri)
        path = Path(document.path)
        if not uri.startswith("file:") or path.suffix.lower() not in LANGUAGES:
            return
        text = document.source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self._uris[real_path(path)] = uri
        self._project.update(real_path(path), TextIndex(path, text))
        self._check(real_path(path))

    def check_open_files(self, _: types.DidSaveTextDocumentParams) -> None:
        """Check all open files after one is saved, since others may include it."""
        for real in self._project.open:
            self._check(real)

    def close_text(self, event: types.DidCloseTextDocumentParams) -> None:
        """Remove a closed file and its diagnostics."""
        index = self._index(event.text_document.uri)
        if index is not None:
            real = real_path(index.path)
            self._project.close(real)
            self._scene_findings.pop(real, None)
            self._tasks.pop(real).cancel()
            self._publish(index, [])

    def _index(self, uri: str) -> TextIndex | None:
        path = real_path(Path(self._server.workspace.get_text_document(uri).path))
        return self._project.open.get(path) if uri.startswith("file:") else None

    def _check(self, real: Path) -> None:
        if real in self._tasks:
            self._tasks[real].cancel()
        self._tasks[real] = asyncio.get_running_loop().create_task(self._publish_findings(real))

    async def _publish_findings(self, real: Path) -> None:
        await asyncio.sleep(_SYNTAX_CHECK_DELAY)
        index = self._project.open[real]
        syntax_errors = syntax_findings(index)
        if syntax_errors is not None:
            self._publish(index, syntax_errors or self._scene_findings.get(real, []))
        if not syntax_errors:
            await asyncio.sleep(self._pause)
            texts = {path: text.text for path, text in self._project.open.items()}
            is_pddl = index.path.suffix.lower() == ".pddl"
            domain = self._project.domain_of(index) if is_pddl else None
            loop = asyncio.get_running_loop()
            try:
                findings, frames = await loop.run_in_executor(
                    self._worker, all_findings, index, texts, domain
                )
            except Exception:
                _logger.exception("%s cannot be checked", index.path)
                return
            self._scene_findings[real] = findings
            if frames is not None:
                self._project.set_frames(real, frames)
            self._publish(index, findings)

    def _publish(self, index: TextIndex, findings: list[Finding]) -> None:
        uri = self._uris[real_path(index.path)]
        diagnostics = [self._diagnostic(index, finding) for finding in findings]
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, diagnostics)
        )

    def _diagnostic(self, index: TextIndex, finding: Finding) -> types.Diagnostic:
        """Return the diagnostic of a finding; that of an included file stands on the first line."""
        line = (finding.line or 1) - 1
        column = (finding.column or 1) - 1
        if real_path(finding.path) != real_path(index.path):
            message = f"{finding.path.name}:{line + 1}: {finding.text}"
            place = types.Location(
                finding.path.absolute().as_uri(), types.Range(*[types.Position(line, column)] * 2)
            )
            related = [types.DiagnosticRelatedInformation(place, finding.text)]
            span = self._range(index, 0, 0, len(index.lines[0]))
        else:
            message = finding.text
            related = None
            line = min(line, len(index.lines) - 1)
            length = len(index.lines[line])
            if finding.column is not None:
                word = _WORD.match(index.lines[line], column)
                length = len(word[0]) if word else 1
            span = self._range(index, line, column, length)
        severity = types.DiagnosticSeverity.Warning
        if finding.is_error:
            severity = types.DiagnosticSeverity.Error
        return types.Diagnostic(
            span, message, severity=severity, source="tmkit", related_information=related
        )

    def _range(self, index: TextIndex, line: int, column: int, length: int) -> types.Range:
        return types.Range(
            self._position(index, line, column), self._position(index, line, column + length)
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

    def completion(self, params: types.CompletionParams) -> list[types.CompletionItem]:
        """Return the completions at a position."""
        index = self._index(params.text_document.uri)
        if index is None:
            return []
        kinds = {
            "keyword": types.CompletionItemKind.Keyword,
            "variable": types.CompletionItemKind.Variable,
        }
        completions = self._project.completions(index, self._offset(index, params.position))
        return [
            types.CompletionItem(
                name,
                kind=kinds.get(kind, types.CompletionItemKind.Reference),
                detail=kind,
                documentation=self._markdown(explanation) if explanation else None,
            )
            for name, (kind, explanation) in completions.items()
        ]

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        """Return the description of the word at a position."""
        index = self._index(params.text_document.uri)
        token = self._token(index, params.position)
        if index is None or token is None:
            return None
        definitions = self._project.definitions_of(index, token) if token.kinds else []
        text = definitions[0].describe() if definitions else meaning_of(index, token.text)
        return types.Hover(self._markdown(text)) if text else None

    def definition(self, params: types.DefinitionParams) -> list[types.Location]:
        """Return the places where the name at a position is declared."""
        index = self._index(params.text_document.uri)
        token = self._token(index, params.position)
        if index is None or token is None or not token.kinds:
            return []
        return [
            self._location(definition) for definition in self._project.definitions_of(index, token)
        ]

    def _token(self, index: TextIndex | None, position: types.Position) -> Token | None:
        return None if index is None else index.token_at(self._offset(index, position))

    def _location(self, definition: Definition) -> types.Location:
        path = definition.path
        text = self._project.index_of(path) if path.suffix.lower() in LANGUAGES else None
        position = types.Position(definition.line, definition.column)
        if text is not None:
            position = self._position(text, definition.line, definition.column)
        uri = self._uris.get(real_path(path), path.absolute().as_uri())
        return types.Location(uri, types.Range(position, position))

    def _markdown(self, text: str) -> types.MarkupContent:
        return types.MarkupContent(types.MarkupKind.Markdown, text)
