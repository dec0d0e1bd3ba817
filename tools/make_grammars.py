"""TextMate grammars in editors/syntaxes, from the lexers of the scene languages and of PDDL.

``python tools/make_grammars.py`` writes them; a test compares the stored with the generated files.
"""

from __future__ import annotations

import plistlib
from pathlib import Path
from typing import Any

from pygments.lexer import words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    _TokenType,
)

from tmkit.lsp.lexers import RobrayLexer, RsgLexer
from tmkit.lsp.text_index import LANGUAGES

FOLDER = Path(__file__).parents[1] / "editors" / "syntaxes"
SCOPES = {
    Comment.Single: "comment.line",
    Comment.Multiline: "comment.block",
    String: "string.quoted.double",
    Number: "constant.numeric",
    Keyword: "keyword.control",
    Keyword.Constant: "constant.language",
    Keyword.Type: "storage.type.unit",
    Name: "entity.name",
    Name.Attribute: "keyword.other",
    Name.Builtin: "support.class",
    Name.Variable: "variable.parameter",
    Operator: "keyword.operator",
    Punctuation: "punctuation",
}


def _pddl_rules() -> list[tuple[Any, _TokenType]]:
    blocks = LANGUAGES[".pddl"].blocks
    sections = {
        *LANGUAGES[".pddl"].words[":requirements"],
        *blocks,
        *(word for group in blocks.values() for word in group),
    }
    colons = sorted(word for word in sections if word.startswith(":"))
    plain = sorted(word for word in sections - {*colons, "", "="})
    inside = {"prefix": r"(?<![^\s()])", "suffix": r"(?![^\s();])"}
    return [
        (r";[^\n]*", Comment.Single),
        (words(colons, **inside), Keyword),
        (words([*plain, "either", "number"], **inside), Name.Attribute),
        (r"\?[^\s();]+", Name.Variable),
        (r"(?<![^\s()])[-+]?\d+(\.\d+)?(?![^\s();])", Number),
        (r"(?<![^\s()])[-=](?![^\s();])", Operator),
        (r"[^\s();]+", Name),
        (r"[()]", Punctuation),
    ]


RULES = {
    "robray": ("robray", RobrayLexer.tokens["root"]),
    "rsg": ("RSG-DSL", RsgLexer.tokens["root"]),
    "pddl": ("PDDL", _pddl_rules()),
}


def grammar(language: str) -> bytes:
    """Return the grammar of a language as a property list for VS Code, Sublime Text, TextMate."""
    name, rules = RULES[language]
    patterns: list[dict[str, str]] = []
    for rule, token in rules:
        scope = f"{SCOPES.get(token, '')}.{language}"
        if token is Text:
            continue
        if token is Comment.Multiline:  # a grammar matches one line at a time
            patterns.append({"name": scope, "begin": r"/\*", "end": r"\*/"})
            continue
        text = rule.get() if isinstance(rule, words) else rule
        patterns.append({"name": scope, "match": f"(?i){text}" if language == "pddl" else text})
    content = {
        "name": name,
        "scopeName": f"source.{language}",
        "fileTypes": [language],
        "patterns": patterns,
    }
    return plistlib.dumps(content, sort_keys=False)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for group in RULES:
        (FOLDER / f"{group}.tmLanguage").write_bytes(grammar(group))
