"""Pygments lexers of the scene languages, registered as ``robray`` and ``rsg``."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from tmkit.formats.robray.format import ROBRAY
from tmkit.formats.rsg.format import RSG
from tmkit.formats.rsg.values import UNITS
from tmkit.lsp.text_index import LANGUAGES

_COMMENTS = [
    (r"\s+", Text),
    (r"//[^\n]*", Comment.Single),
    (r"/\*(?s:.*?)(\*/|\Z)", Comment.Multiline),
]


def _keywords(suffix: str) -> tuple[list[str], list[str]]:
    """Return the keywords at the top of a file, and those of blocks."""
    blocks = LANGUAGES[suffix].blocks
    inner = sorted({word for keywords in blocks.values() for word in keywords} - {*blocks[""]})
    return sorted(blocks[""]), inner


class RobrayLexer(RegexLexer):
    """Lexer of the robray scene language."""

    name = "robray"
    aliases: ClassVar = ["robray"]
    filenames: ClassVar = ["*.robray"]
    _top, _inner = _keywords(ROBRAY.suffixes[0])
    tokens: ClassVar = {
        "root": [
            *_COMMENTS,
            (r"#[^\n]*", Comment.Single),
            (r'"[^"\n]*"', String),
            (r"(\d+\.?\d*|\.\d+)([eEdDsS]-?\d+)?", Number),
            (words(_top, prefix=r"(?<![\w-])", suffix=r"(?![\w-])"), Keyword),
            (
                words(
                    [*_inner, "start-radius", "end-radius", "no_shadow"],
                    prefix=r"(?<![\w-])",
                    suffix=r"(?![\w-])",
                ),
                Name.Attribute,
            ),
            (r"(?<![\w-])(pi|π|deg|true|false)(?![\w-])", Keyword.Constant),
            (r"[^\W\d]\w*(-+\w+)*", Name),
            (r"\*\*|[-+*/^]", Operator),
            (r"[{}\[\](),;]", Punctuation),
        ]
    }


class RsgLexer(RegexLexer):
    """Lexer of the robot scene graph language (RSG-DSL)."""

    name = "RSG-DSL"
    aliases: ClassVar = ["rsg"]
    filenames: ClassVar = ["*.rsg"]
    _top, _inner = _keywords(RSG.suffixes[0])
    _inside = ("of", "as", "at", "file", "data", "after", "every", "onChange")
    tokens: ClassVar = {
        "root": [
            *_COMMENTS,
            (r'"([^"\\\n]|\\.)*"', String),
            (r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", Number),
            (words(_top, prefix=r"\b", suffix=r"\b"), Keyword),
            (words([*_inner, *_inside], prefix=r"\b", suffix=r"\b"), Name.Attribute),
            (
                r"\b(HomogeneousTransformationMatrix|Pose|Position|Orientation|Twist|TimeStamp)\b",
                Name.Builtin,
            ),
            (
                words(
                    sorted(unit for units in UNITS.values() for unit in units),
                    prefix=r"\b",
                    suffix=r"\b",
                ),
                Keyword.Type,
            ),
            (r"\b(true|false|null)\b", Keyword.Constant),
            (r"\^?[^\W\d]\w*", Name),
            (r"[{}\[\](),:*]", Punctuation),
        ]
    }
