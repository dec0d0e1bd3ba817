"""Measures of style: names and docstrings that a reader of ROS, MoveIt or Drake would stumble over.

Each measure finds a pattern of words or names. Some patterns also match good text, such as *answer*
for a message of a service, so a limit above zero is the accepted count, not a debt.

Invariants: docstrings, comments and names count. Messages do not, since no pattern can tell a
sentence from a value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from source_text import (
    FUNCTIONS,
    Checkout,
    Function,
    Measure,
    Place,
    Prose,
    docstrings_in,
    functions_in,
    prose_in,
    sentences_of,
)

LONG_SENTENCE = 30
"""Words above which a sentence is long."""

MANY_TARGETS = 4
"""Variables from which an assignment of a tuple of values has many."""

MANY_LEVELS = 3
"""Functions in each other from which they are nested deep."""

_HEADLINE_QUESTION = re.compile(r"(How|What|Why|Where|Whether|When|Which|Who|That|One)\b")
_UNIT_WORD = re.compile(r"\b(?:metres|radians|newtons|kilograms)\b")
_IDIOM = re.compile(
    r"\b(?:will do|in words|a little|besides|no longer any|for the moment|of its own|of one's own"
    r"|as one|whatever|nothing but|by itself|meanwhile)\b"
)
_PERSONIFICATION = re.compile(
    r"\b(?:says?|said|knows?|knew|asks?|asked|asking|told|tells?|wants?|hears?|believes?|remembers?"
    r"|forgets?|answers?|promises?|sees)\b"
)
_WHAT_CLAUSE = re.compile(r"\b[Ww]hat (?!if\b)\w+")
_REFUSAL = re.compile(r"\brefus\w+")
_ERROR_WITHOUT_CONDITION = re.compile(r"^\s+\w+Error: (?!if )", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z0-9][\w'./^-]*")
_PARTICIPLE = re.compile(
    r"_?(?!open|shorten|need|feed|seed|embed|speed)[a-z]+(?:ed|en)(?:_[a-z]+)?"
)
_NO_NOUN = re.compile(
    r"_?(?:released|applied|finished|completed|made|told|stated|found|kept|known|given|met|away|out"
    r"|how|way|ways|beside|said|asked|one|ones|others|there|so|at|much|little|such|near|far|off)"
)
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
_ONE_WORD_CONSTANT = re.compile(r"_[A-Z]{3,9}")
_PROPERTY_DECORATORS = frozenset(("property", "cached_property", "setter"))


# Docstrings


def find_question_headlines(checkout: Checkout) -> Iterator[Place]:
    """Yield docstrings that begin with a question word or a pronoun."""
    return (
        docstring.place(docstring.text.split("\n", 1)[0])
        for docstring in docstrings_in(checkout)
        if _HEADLINE_QUESTION.match(docstring.text)
    )


def find_long_sentences(checkout: Checkout) -> Iterator[Place]:
    """Yield long sentences of docstrings."""
    for docstring in docstrings_in(checkout):
        for sentence in sentences_of(docstring.text):
            count = len(_WORD.findall(sentence))
            if count > LONG_SENTENCE:
                yield docstring.place(f"{count} words: {sentence}")


def find_pattern(pattern: re.Pattern[str], checkout: Checkout) -> Iterator[Place]:
    """Yield the matches of a pattern in docstrings and comments."""
    for prose in prose_in(checkout):
        for match in pattern.finditer(prose.text):
            yield prose.place(_excerpt(prose, match))


def _excerpt(prose: Prose, match: re.Match[str]) -> str:
    """Return the words around a match."""
    margin = 40
    excerpt = prose.text[max(0, match.start() - margin) : match.end() + margin]
    return " ".join(excerpt.split())


# Names


def find_participle_functions(checkout: Checkout) -> Iterator[Place]:
    """Yield functions whose name is a participle or an adverb; properties are data."""
    return (
        function.place
        for function in functions_in(checkout)
        if not _is_property(function) and _is_participle(function.node.name)
    )


def _is_participle(name: str) -> bool:
    return bool(_PARTICIPLE.fullmatch(name) or _NO_NOUN.fullmatch(name))


def _is_property(function: Function) -> bool:
    names = (ast.unparse(each).split(".")[-1] for each in function.node.decorator_list)
    return not _PROPERTY_DECORATORS.isdisjoint(names)


def find_adverb_variables(checkout: Checkout) -> Iterator[Place]:
    """Yield variables and parameters whose name is an adverb, a participle or a pronoun."""
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.arg):
                name = node.arg
            else:
                continue
            if _NO_NOUN.fullmatch(name):
                yield module.place(node, name)


def find_unnamed_constants(checkout: Checkout) -> Iterator[Place]:
    """Yield constants that share a line, and numbers named by one short word."""
    for module in checkout.modules:
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and _is_unnamed(node):
                yield module.place(node, ast.unparse(node.targets[0]))


def _is_unnamed(node: ast.Assign) -> bool:
    """Return whether an assignment at the top of a module defines constants without good names."""
    target = node.targets[0]
    if isinstance(target, ast.Tuple):
        return all(_CONSTANT.fullmatch(ast.unparse(each)) for each in target.elts)
    return bool(_ONE_WORD_CONSTANT.fullmatch(ast.unparse(target))) and _is_number(node.value)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


# Structure


def find_function_factories(checkout: Checkout) -> Iterator[Place]:
    """Yield functions with a function that returns a function as parameter, or one as result.

    Functions nested three deep count too.
    """
    for function in functions_in(checkout):
        returns = function.node.returns
        is_factory = returns is not None and _mentions_callable(returns)
        takes_factory = any(map(_is_factory_type, _parameter_types(function)))
        if is_factory or takes_factory or _depth(function.node) >= MANY_LEVELS:
            yield function.place


def _parameter_types(function: Function) -> Iterator[ast.expr]:
    arguments = function.node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.annotation is not None:
            yield argument.annotation


def _is_factory_type(annotation: ast.expr) -> bool:
    """Return whether a type is, or contains, that of functions that return functions."""
    return any(
        isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == "Callable"
        and isinstance(node.slice, ast.Tuple)
        and _mentions_callable(node.slice.elts[-1])
        for node in ast.walk(annotation)
    )


def _mentions_callable(annotation: ast.expr) -> bool:
    names = (node.id for node in ast.walk(annotation) if isinstance(node, ast.Name))
    return "Callable" in names


def _depth(node: ast.AST) -> int:
    """Return the number of functions nested in each other, this one included."""
    below = max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)
    return below + isinstance(node, FUNCTIONS)


def find_packed_values(checkout: Checkout) -> Iterator[Place]:
    """Yield assignments of a tuple of many values to as many variables."""
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                target = node.targets[0]
                if isinstance(target, ast.Tuple) and len(target.elts) >= MANY_TARGETS:
                    yield module.place(node, ast.unparse(target))


MEASURES = {
    "headlines": Measure("docstrings that begin with a question word", find_question_headlines),
    "sentences": Measure(
        f"sentences of docstrings with more than {LONG_SENTENCE} words", find_long_sentences
    ),
    "units": Measure("units as words", partial(find_pattern, _UNIT_WORD)),
    "idioms": Measure("idioms", partial(find_pattern, _IDIOM)),
    "personification": Measure(
        "programs that speak or know", partial(find_pattern, _PERSONIFICATION)
    ),
    "what_clauses": Measure("what clauses", partial(find_pattern, _WHAT_CLAUSE)),
    "refusals": Measure("refuse in place of reject or raise", partial(find_pattern, _REFUSAL)),
    "raises": Measure(
        "errors of docstrings without a condition", partial(find_pattern, _ERROR_WITHOUT_CONDITION)
    ),
    "participles": Measure(
        "functions named by a participle or an adverb", find_participle_functions
    ),
    "adverbs": Measure(
        "variables named by an adverb, a participle or a pronoun", find_adverb_variables
    ),
    "unnamed_constants": Measure(
        "constants that share a line or have one short word as name", find_unnamed_constants
    ),
    "function_factories": Measure(
        "functions that return or take factories of functions", find_function_factories
    ),
    "packed_values": Measure(
        f"assignments of {MANY_TARGETS} or more values in one line", find_packed_values
    ),
}
"""The measures of style by name."""
