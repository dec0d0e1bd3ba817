"""Lexers and TextMate grammars colour every shipped file and every keyword of the parsers."""

from __future__ import annotations

import json
import plistlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pygls")

import make_grammars
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, Error, Keyword, Name, String

from tmkit.formats import load_scene
from tmkit.formats.robray.values import CLASS_RULES, FRAME_RULES, GEOMETRY_RULES
from tmkit.formats.rsg.grammar import BLOCKS, KEYWORDS, LINES, OPTIONS, RIGID
from tmkit.formats.rsg.writer import rsg_from_scene
from tmkit.lsp.lexers import RobrayLexer, RsgLexer
from tmkit.pddl.parsing.parser import DOMAIN_SECTIONS, PROBLEM_SECTIONS, REQUIREMENTS

ROOT = Path(__file__).parents[2]
EDITORS = ROOT / "editors"
FOLDERS = ("scenes", "domains", "examples")
WORDS = {
    "robray": {
        *CLASS_RULES,
        *FRAME_RULES,
        *GEOMETRY_RULES,
        "frame",
        "class",
        "def",
        "include",
        "geometry",
        "isa",
    },
    "rsg": {
        *KEYWORDS,
        *OPTIONS,
        *RIGID,
        *(word for known in (*BLOCKS.values(), *LINES.values()) for word in known),
    },
    "pddl": {
        *DOMAIN_SECTIONS,
        *PROBLEM_SECTIONS,
        *REQUIREMENTS,
        ":parameters",
        ":precondition",
        ":effect",
    },
}


def _texts(language: str) -> Iterator[str]:
    """Yield the shipped texts of a language, and for RSG-DSL three more scenes."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob(f"*.{language}"))]
    yield from (path.read_text(encoding="utf-8") for path in found)
    if language == "rsg":
        yield (ROOT / "tests/data/kitchen_table.rsg").read_text(encoding="utf-8")
        yield from (
            rsg_from_scene(load_scene("panda_table", scene)) for scene in ("blocks3", "sort8")
        )


def _scopes(language: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield words and scopes as an editor finds them: line by line, by the first match."""
    rules = plistlib.loads((EDITORS / f"syntaxes/{language}.tmLanguage").read_bytes())["patterns"]
    patterns = [
        (rule["name"], re.compile(rule.get("match") or rule["begin"]), rule.get("end"))
        for rule in rules
    ]
    inside: tuple[str, str] | None = None
    for line in text.split("\n"):
        at = 0
        while at < len(line):
            if inside is not None:
                end = re.compile(inside[1]).search(line, at)
                yield line[at : end.end() if end else None], inside[0]
                at, inside = (end.end(), None) if end else (len(line), inside)
                continue
            found = [
                (match, name, end)
                for name, rule, end in patterns
                if (match := rule.search(line, at))
            ]
            if not found:
                break
            match, name, end = min(found, key=lambda one: one[0].start())
            yield match[0], name
            at, inside = match.end(), (name, end) if end else None


@pytest.mark.parametrize("language", make_grammars.RULES)
def test_the_grammars_are_those_of_the_lexers(language: str) -> None:
    """The folder contains the output of the script, and the extension names it."""
    assert (EDITORS / f"syntaxes/{language}.tmLanguage").read_bytes() == make_grammars.grammar(
        language
    )
    shipped = json.loads((EDITORS / "package.json").read_text())["contributes"]
    (named,) = [one["path"] for one in shipped["grammars"] if one["language"] == language]
    (settings,) = [one["configuration"] for one in shipped["languages"] if one["id"] == language]
    assert (EDITORS / named).is_file()
    json.loads((EDITORS / settings).read_text())


@pytest.mark.parametrize("language", make_grammars.RULES)
def test_every_keyword_of_the_parsers_is_coloured(language: str) -> None:
    """The grammar and our lexers colour keywords alone and between signs."""
    assert len(WORDS[language]) > 20
    before, after = ("(", ")") if language == "pddl" else ("{", "}")
    for word in sorted(WORDS[language]):
        for text in (word, f"{before}{word}{after}"):
            scopes = [scope for found, scope in _scopes(language, text) if found == word]
            assert scopes
            assert scopes[0].startswith("keyword."), word
    for lexer in {"robray": [RobrayLexer()], "rsg": [RsgLexer()], "pddl": []}[language]:
        kinds = {
            word: kind
            for word in WORDS[language]
            for kind, text in lexer.get_tokens(word)
            if text == word
        }
        assert {
            word for word, kind in kinds.items() if kind not in (Keyword, Name.Attribute)
        } == set()


@pytest.mark.parametrize("language", make_grammars.RULES)
def test_every_shipped_file_is_coloured(language: str) -> None:
    """The lexer has no error token, and the grammar finds the same texts and keywords."""
    texts = list(_texts(language))
    assert len(texts) > 2
    lexer: Lexer = get_lexer_for_filename(f"a.{language}", stripnl=False, ensurenl=False)
    for text in texts:
        tokens = list(lexer.get_tokens(text))
        assert "".join(found for _, found in tokens) == text
        assert [found for kind, found in tokens if kind is Error] == []
        if language == "pddl":
            continue
        kinds = {Keyword: "keyword.control", Name.Attribute: "keyword.other", String: "string"}
        wanted = [(found, kinds[kind]) for kind, found in tokens if kind in kinds]
        scoped = [
            (found, ".".join(scope.split(".")[:2])) for found, scope in _scopes(language, text)
        ]
        found = [
            (word, "string" if scope.startswith("string") else scope) for word, scope in scoped
        ]
        assert [one for one in found if one[1] in kinds.values()] == wanted


def test_comments_of_several_lines() -> None:
    """Keywords are found after comments, and none within them."""
    text = "frame /* frame\n class */ a // frame\n"
    for language in ("robray", "rsg"):
        found = [
            (word, scope)
            for word, scope in _scopes(language, text)
            if "frame" in word or "class" in word
        ]
        assert [scope.split(".")[0] for _, scope in found][1:] == ["comment"] * 3
    kinds = [kind for kind, word in RobrayLexer().get_tokens(text) if "class" in word]
    assert kinds == [Comment.Multiline]
