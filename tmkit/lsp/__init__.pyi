"""The names that `tmkit.lsp` exports."""

from tmkit.lsp.server import language_server as language_server
