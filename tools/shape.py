"""The shape of the project: figures that a reader meets, each with the places behind it and a limit.

    python tools/shape.py                        # the figures of this checkout
    python tools/shape.py --list parameters      # the places behind one
    python tools/shape.py --check                # exit code 1 if a figure is over its limit in tools/shape_limits.toml

Like a linter, it reads source text and imports nothing of tmkit. A figure is the number of its
places. A measure that is over its limit is named with the places that are new since the commit that
changed the limits last.

Invariants: equal checkouts have equal figures; only the standard library is needed.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIMITS = Path("tools/shape_limits.toml")
"""The file of the limits, in a checkout."""

MANY_PARAMETERS = 8
"""Parameters from which a function has many; ``self`` and ``cls`` do not count."""

LONG_SENTENCE = 35
"""Words above which a sentence is long."""

_FOLDERS = ("tmkit", "tests", "examples", "domains", "tools", "docs", "scenes")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PLAIN_NUMBERS = frozenset((0, 1, 2, 3, 4, 0.5))
_NUMBER_FUNCTIONS = frozenset(("radians", "deg2rad", "sqrt", "log"))
_ADDING_METHODS = frozenset(
    ("add", "append", "appendleft", "extend", "insert", "setdefault", "update")
)
_REMOVING_METHODS = frozenset(("clear", "discard", "pop", "popitem", "remove"))
_FOREIGN_ATTRIBUTES = frozenset(
    ("writeable", "content", "value", "position", "color", "disabled", "quiet", "wxyz")
)
"""Attributes that classes of numpy and viser have too, so that a set of one proves nothing."""

_HEADLINE_QUESTION = re.compile(r"(What|Whether|How|Where|Which|Why|When|Who)\b")
_FORMATTER_OFF = re.compile(r"#\s*fmt:\s*(?:skip|off)\b")
_ITEM = re.compile(r"[*-] |\d+\. |\|")
_FIELD = re.compile(r"\w[\w., ]{0,40}: ")
_SECTION = re.compile(r"[A-Z]\w+:")
_NO_PROSE = (">>>", "..", "==", "--")
_MARKUP = re.compile(r":\w+:`[^`]*`|``[^`]*``")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|et al|Sec|Eq|eq|vs|cf|Fig|no|Vol)\.")
_SENTENCE_END = re.compile(r"""(?<=[.!?])[)"']*\s+(?=[A-Z("'`:])""")
_WORD = re.compile(r"[A-Za-z0-9][\w'./^-]*")


class Place(NamedTuple):
    """A place that counts: a path within the checkout, a line from 1 (0 for a whole file), and what is there."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.text}" if self.line else f"{self.path} {self.text}"


@dataclass(frozen=True)
class Module:
    """A file of Python that has been parsed; its path is within the checkout, with forward slashes."""

    path: str
    text: str
    tree: ast.Module

    def at(self, node: ast.AST, text: str) -> Place:
        """Return the place of a node."""
        return Place(self.path, node.lineno, text)  # type: ignore[attr-defined]  # statements and expressions have it

    @property
    def is_private(self) -> bool:
        """Whether the module or a package of it begins with an underscore."""
        return any(part.startswith("_") and part != "__init__.py" for part in self.path.split("/"))

    @property
    def package(self) -> str:
        """The folder below tmkit, such as ``tamp``; of a file directly there, its name."""
        return self.path.split("/")[1]


@dataclass(frozen=True)
class Checkout:
    """The files of a checkout.

    Args:
        root: its folder.
    """

    root: Path

    @cached_property
    def modules(self) -> list[Module]:
        """The modules of tmkit, in the order of their paths."""
        return [self.parse(path) for path in sorted((self.root / "tmkit").rglob("*.py"))]

    def parse(self, path: Path) -> Module:
        """Return a file, parsed."""
        text = path.read_text(encoding="utf-8")
        return Module(path.relative_to(self.root).as_posix(), text, ast.parse(text, str(path)))

    @cached_property
    def project(self) -> dict[str, object]:
        """The table ``project`` of pyproject.toml."""
        table: dict[str, object] = tomllib.loads(
            (self.root / "pyproject.toml").read_text(encoding="utf-8")
        )["project"]
        return table


# Names and libraries
# --------------------------------------------------------------------------------------------------


def find_exports(checkout: Checkout) -> Iterator[Place]:
    """Yield the names that tmkit and its packages export; the command line exports none to readers."""
    return (
        place for package, place in _exports(checkout) if len(package) < 2 and package != ["cli"]
    )


def find_nested_exports(checkout: Checkout) -> Iterator[Place]:
    """Yield the names that packages within packages, and the command line, export."""
    return (
        place for package, place in _exports(checkout) if len(package) > 1 or package == ["cli"]
    )


def _exports(checkout: Checkout) -> Iterator[tuple[list[str], Place]]:
    for path in sorted((checkout.root / "tmkit").rglob("__init__.py")):
        stub = path.with_suffix(".pyi")
        module = checkout.parse(stub if stub.exists() else path)
        names = dict(_exported_names(module, is_stub=stub.exists()))
        package = list(path.parent.relative_to(checkout.root / "tmkit").parts)
        yield from ((package, Place(module.path, line, name)) for name, line in names.items())


def _exported_names(module: Module, *, is_stub: bool) -> Iterator[tuple[str, int]]:
    """Yield names with lines: imports as the same name, in a stub all public imports, and the items of ``__all__``."""
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and (node.level or node.module.split(".")[0] == "tmkit")
        ):
            for alias in node.names:
                if alias.asname == alias.name or (is_stub and not alias.name.startswith("_")):
                    yield alias.asname or alias.name, node.lineno
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [
            "__all__"
        ]:
            yield from ((str(name), node.lineno) for name in ast.literal_eval(node.value))


def find_libraries(checkout: Checkout) -> Iterator[Place]:
    """Yield the mandatory libraries."""
    required = checkout.project.get("dependencies", [])
    names = {match[0].lower() for text in required if (match := re.match(r"[\w.-]+", text))}  # type: ignore[attr-defined]
    return (Place("pyproject.toml", 0, name) for name in sorted(names))


def find_extras(checkout: Checkout) -> Iterator[Place]:
    """Yield the extras."""
    extras: dict[str, list[str]] = checkout.project.get("optional-dependencies", {})  # type: ignore[assignment]
    return (Place("pyproject.toml", 0, name) for name in extras)


# Functions
# ------------------------------------------------------------------------------------------------------------


class Function(NamedTuple):
    """A function, with the name of the class that it is a method of, if any."""

    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str | None

    @property
    def place(self) -> Place:
        """Its place, with its class, its name and its parameters."""
        name = f"{self.owner}.{self.node.name}" if self.owner else self.node.name
        return self.module.at(self.node, f"{name}({', '.join(self.parameters)})")

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, without that of the instance or class."""
        arguments = self.node.args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        names = names[1:] if self.owner and not _is_static(self.node) else names
        names += [argument.arg for argument in arguments.kwonlyargs]
        names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
        return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])

    @property
    def is_public(self) -> bool:
        """Whether neither its name nor its class nor its module begins with an underscore."""
        return not (
            self.module.is_private
            or self.node.name.startswith("_")
            or (self.owner or "").startswith("_")
        )


def _is_static(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)


def functions_of(module: Module) -> Iterator[Function]:
    """Yield all functions of a module, also those in others."""

    def visit(node: ast.AST, owner: str | None) -> Iterator[Function]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from visit(child, child.name)
            elif isinstance(child, _FUNCTIONS):
                yield Function(module, child, owner)
                yield from visit(child, None)
            else:
                yield from visit(child, owner)

    return visit(module.tree, None)


def _functions(checkout: Checkout) -> Iterator[Function]:
    return (function for module in checkout.modules for function in functions_of(module))


def find_parameters(checkout: Checkout) -> Iterator[Place]:
    """Yield functions with many parameters."""
    return (
        function.place
        for function in _functions(checkout)
        if len(function.parameters) >= MANY_PARAMETERS
    )


def find_command_parameters(checkout: Checkout) -> Iterator[Place]:
    """Yield functions of the command line with many parameters."""
    return (place for place in find_parameters(checkout) if place.path.startswith("tmkit/cli/"))


def find_core_parameters(checkout: Checkout) -> Iterator[Place]:
    """Yield functions of the compiled core with many parameters, by its stub."""
    stub = checkout.root / "tmkit/_core.pyi"
    functions = functions_of(checkout.parse(stub)) if stub.exists() else ()
    return (
        function.place
        for function in functions
        if len(_named_parameters(function.node)) >= MANY_PARAMETERS
    )


def _named_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """Return the parameters with a name, but ``self``; a constructor of the core may take keywords besides."""
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return [argument for argument in arguments if argument.arg != "self"]


def find_keywords(checkout: Checkout) -> Iterator[Place]:
    """Yield public functions with ``**keywords``."""
    return (
        function.place
        for function in _functions(checkout)
        if function.is_public and function.node.args.kwarg
    )


def find_any(checkout: Checkout) -> Iterator[Place]:
    """Yield public functions with a parameter of type Any."""
    for function in _functions(checkout):
        arguments = function.node.args
        annotations = [
            item.annotation
            for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        ]
        if function.is_public and any(
            note is not None and ast.unparse(note) == "Any" for note in annotations
        ):
            yield function.place


def find_patched(checkout: Checkout) -> Iterator[Place]:
    """Yield assignments to ``__signature__`` or ``__annotations__`` of an object."""
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Attribute) and target.attr in (
                    "__signature__",
                    "__annotations__",
                ):
                    yield module.at(node, ast.unparse(target))


# Numbers
# --------------------------------------------------------------------------------------------------------------


def constants_of(module: Module) -> Iterator[Place]:
    """Yield the numeric constants at the top of a module, as ``NAME = VALUE``."""
    for node in module.tree.body:
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = list(zip(target.elts, value.elts, strict=False)) if both else [(target, value)]  # type: ignore[attr-defined]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        for target, value in pairs:
            if isinstance(target, ast.Name) and target.id.isupper() and _is_number(value):
                yield module.at(node, f"{target.id} = {ast.unparse(value)}")


def _is_number(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.BinOp(left=left, right=right):
            sides = [_is_number(side) for side in (left, right)]
            named = [isinstance(side, (ast.Name, ast.Attribute)) for side in (left, right)]
            return any(sides) and all(
                is_number or is_name for is_number, is_name in zip(sides, named, strict=True)
            )
        case ast.Tuple(elts=elements):
            return bool(elements) and all(map(_is_number, elements))
        case ast.Call(func=function):
            return ast.unparse(function).split(".")[-1] in _NUMBER_FUNCTIONS
    return False


def find_repeated_constants(checkout: Checkout) -> Iterator[Place]:
    """Yield constants that have the same name and value in several modules, each once."""
    places = defaultdict(list)
    for module in checkout.modules:
        for place in constants_of(module):
            if place.path not in (other.path for other in places[place.text]):
                places[place.text].append(place)
    for text, found in sorted(places.items()):
        if len(found) > 1:
            yield found[0]._replace(
                text=f"{text} also in {', '.join(place.path for place in found[1:])}"
            )


def find_literals(checkout: Checkout) -> Iterator[Place]:
    """Yield numbers within functions and classes of tamp and manipulation, but small whole ones and halves."""
    for module in checkout.modules:
        tops = [node for node in module.tree.body if isinstance(node, (ast.ClassDef, *_FUNCTIONS))]
        for node in (
            node
            for top in tops
            for node in ast.walk(top)
            if module.package in ("tamp", "manipulation")
        ):
            if (
                isinstance(node, ast.Constant)
                and _is_number(node)
                and node.value not in _PLAIN_NUMBERS
            ):
                yield module.at(node, repr(node.value))


def find_search_settings(checkout: Checkout) -> Iterator[Place]:
    """Yield the fields of ``SearchSettings``, with those of classes whose names end so."""
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and node.name.endswith("SearchSettings"):
                fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
                yield from (
                    module.at(item, f"{node.name}.{ast.unparse(item.target)}") for item in fields
                )


# Layout and state
# -----------------------------------------------------------------------------------------------------


def find_formatter_off(checkout: Checkout) -> Iterator[Place]:
    """Yield lines where the formatter is switched off."""
    for folder in _FOLDERS:
        for path in sorted((checkout.root / folder).rglob("*.py")):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            for number, line in enumerate(lines, start=1):
                if match := _FORMATTER_OFF.search(line):
                    yield Place(path.relative_to(checkout.root).as_posix(), number, match[0])


def own_attributes(modules: list[Module]) -> frozenset[str]:
    """Return the names of attributes that classes of tmkit declare, or set on themselves."""
    names: set[str] = set()
    for node in (
        node
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    ):
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                names.add(item.target.id)
        for inner in ast.walk(node):
            match inner:
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    names.add(name)
    return frozenset(name for name in names - _FOREIGN_ATTRIBUTES if not name.startswith("__"))


def find_outside_sets(checkout: Checkout) -> Iterator[Place]:
    """Yield attributes of tmkit's classes that are set on anything but the first argument of a method."""
    own = own_attributes(checkout.modules)
    for module in checkout.modules:
        places = dict.fromkeys(_outside_sets(module, own))  # a line may set one twice
        yield from places


def _outside_sets(module: Module, own: frozenset[str]) -> Iterator[Place]:
    def visit(node: ast.AST, owner: str | None, instance: str | None, name: str) -> Iterator[Place]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from visit(child, child.name, None, child.name)
            elif isinstance(child, _FUNCTIONS):
                inner = _instance(child) if owner and instance is None else instance
                yield from visit(
                    child, owner, inner, f"{owner}.{child.name}" if owner else child.name
                )
            else:
                for target in _targets(child):
                    if target.attr in own and ast.unparse(target.value) != instance:
                        yield module.at(child, f"{name}: {ast.unparse(target)}")
                yield from visit(child, owner, instance, name)

    return visit(module.tree, None, None, "module")


def _instance(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """Return the name of the first parameter of a method."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    return arguments[0].arg if arguments and not _is_static(node) else None


def _targets(node: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the attributes that a statement sets or deletes."""
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    for item in (item for target in targets for item in ast.walk(target)):
        if isinstance(item, ast.Attribute) and isinstance(item.ctx, (ast.Store, ast.Del)):
            yield item


def find_outside_changes(checkout: Checkout) -> Iterator[Place]:
    """Yield changes of a collection in an attribute of another object, such as ``log.trees.append``."""
    own = own_attributes(checkout.modules)
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Attribute(value=holder, attr=held), attr=method)
                ):
                    is_change = method in _ADDING_METHODS | _REMOVING_METHODS and held in own
                    if is_change and ast.unparse(holder) not in ("self", "cls"):
                        yield module.at(node, ast.unparse(node.func))


def find_object_setattr(checkout: Checkout) -> Iterator[Place]:
    """Yield calls of ``object.__setattr__``, which change values that are frozen."""
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "object.__setattr__":
                yield module.at(node, ast.unparse(node.args[1]) if len(node.args) > 1 else "")


# Words
# ----------------------------------------------------------------------------------------------------------------


def find_headlines(checkout: Checkout) -> Iterator[Place]:
    """Yield modules whose first line is a question: What, Whether, How, Where, Which, Why, When, Who."""
    for module in checkout.modules:
        headline = (ast.get_docstring(module.tree) or "").split("\n", 1)[0]
        if _HEADLINE_QUESTION.match(headline):
            yield Place(module.path, 1, headline)


def find_long_sentences(checkout: Checkout) -> Iterator[Place]:
    """Yield long sentences of docstrings."""
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.Module, ast.ClassDef, *_FUNCTIONS)) and (
                text := ast.get_docstring(node)
            ):
                line = 1 if isinstance(node, ast.Module) else node.body[0].lineno
                for sentence in sentences_of(text):
                    if (count := len(_WORD.findall(sentence))) > LONG_SENTENCE:
                        yield Place(module.path, line, f"{count} words: {sentence}")


def sentences_of(docstring: str) -> Iterator[str]:
    """Yield the sentences of a docstring, without examples, tables and directives; markup counts as one word."""
    for paragraph in _paragraphs(docstring):
        plain = _ABBREVIATION.sub(r"\1", _MARKUP.sub("X", paragraph))
        yield from filter(None, _SENTENCE_END.split(plain))


def _paragraphs(docstring: str) -> Iterator[str]:
    """Yield paragraphs, items of lists and arguments, each in one line."""
    words: list[str] = []
    example_indent: int | None = None
    for line in docstring.splitlines():
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if example_indent is not None and (not text or indent > example_indent):
            continue
        example_indent = indent if text.endswith("::") else None
        is_table = "   " in text or text.startswith("|")
        is_item = bool(
            _ITEM.match(text) or (indent and _FIELD.match(text)) or _SECTION.fullmatch(text)
        )
        if not text or is_table or is_item or text.startswith(_NO_PROSE):
            yield " ".join(words)
            words = []
        if text and not is_table and not text.startswith(_NO_PROSE):
            words.append(text)
    yield " ".join(words)


# The table
# ------------------------------------------------------------------------------------------------------------


class Measure(NamedTuple):
    """A figure: what it counts, and the function that yields the places."""

    description: str
    find: Callable[[Checkout], Iterator[Place]]


MEASURES = {
    "exports": Measure("names exported by tmkit and its packages", find_exports),
    "exports_nested": Measure(
        "names exported by packages within packages and the command line", find_nested_exports
    ),
    "libraries": Measure("mandatory libraries", find_libraries),
    "extras": Measure("extras", find_extras),
    "parameters": Measure(
        f"functions with {MANY_PARAMETERS} or more parameters, self left out", find_parameters
    ),
    "parameters_core": Measure("of the compiled core, by its stub", find_core_parameters),
    "parameters_cli": Measure("of commands, which count above too", find_command_parameters),
    "keywords": Measure("public functions with **keywords", find_keywords),
    "any": Measure("public functions with a parameter of type Any", find_any),
    "patched": Measure("patched __signature__ or __annotations__", find_patched),
    "constants_twice": Measure(
        "constants of one name and value in several modules", find_repeated_constants
    ),
    "literals": Measure(
        "other numbers in functions and classes of tamp and manipulation", find_literals
    ),
    "search_settings": Measure("fields of SearchSettings", find_search_settings),
    "formatter_off": Measure("lines that switch the formatter off", find_formatter_off),
    "outside": Measure("attributes of own objects set from outside", find_outside_sets),
    "outside_calls": Measure(
        "collections in attributes of other objects changed", find_outside_changes
    ),
    "setattr": Measure("object.__setattr__", find_object_setattr),
    "headlines": Measure("modules whose headline is a question", find_headlines),
    "sentences": Measure(
        f"sentences of docstrings with more than {LONG_SENTENCE} words", find_long_sentences
    ),
}


def read_limits(checkout: Checkout) -> dict[str, int]:
    """Return the limits of a checkout by measure.

    Raises:
        ValueError: if the file names another measure, lacks one, or a limit is no whole number.
    """
    limits = tomllib.loads((checkout.root / LIMITS).read_text(encoding="utf-8"))
    if wrong := limits.keys() ^ MEASURES.keys():
        raise ValueError(
            f"{LIMITS}: one limit for each measure expected, wrong: {', '.join(sorted(wrong))}"
        )
    for name, limit in limits.items():
        if type(limit) is not int or limit < 0:
            raise ValueError(
                f"{LIMITS}: {name}: expected a whole number of at least 0, received {limit!r}"
            )
    return limits


def new_places(found: list[Place], earlier: list[Place]) -> list[Place]:
    """Return the places that were not there earlier; one that only moved within its file is none."""
    left = Counter((place.path, place.text) for place in earlier)
    added = []
    for place in found:
        key = place.path, place.text
        if left[key]:
            left[key] -= 1
        else:
            added.append(place)
    return added


def check_limits(checkout: Checkout) -> list[str]:
    """Return a message for each measure that is over its limit, with the new places; without Git, with all."""
    limits = read_limits(checkout)
    over = {
        name: found
        for name, limit in limits.items()
        if len(found := _places(checkout, name)) > limit
    }
    if not over:
        return []
    messages = []
    with tempfile.TemporaryDirectory() as folder:
        earlier = _checkout_of_limits(checkout.root, Path(folder))
        for name, found in over.items():
            shown = found if earlier is None else new_places(found, _places(earlier, name)) or found
            places = "\n".join(f"  {place}" for place in shown)
            messages.append(
                f"{name}: {len(found)} of at most {limits[name]},"
                f" {MEASURES[name].description}:\n{places}"
            )
    return messages


def _places(checkout: Checkout, name: str) -> list[Place]:
    return list(MEASURES[name].find(checkout))


def _checkout_of_limits(root: Path, folder: Path) -> Checkout | None:
    """Unpack the commit that changed the limits last into a folder; None if Git does not have it."""
    git = ["git", "-C", str(root)]
    try:
        log = subprocess.run(
            [*git, "log", "-1", "--format=%H", "--", str(LIMITS)], capture_output=True, check=True
        )
        commit = log.stdout.decode().strip()
        archive = subprocess.run(
            [*git, "archive", commit or "none"], capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return Checkout(folder)


def main(arguments: list[str] | None = None) -> int:
    """Print the figures, the places of one, or what is over its limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "checkout", nargs="?", type=Path, default=ROOT, help="by default the one of this file"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--list", choices=MEASURES, metavar="MEASURE", help=f"one of {', '.join(MEASURES)}"
    )
    action.add_argument(
        "--check", action="store_true", help="end with exit code 1 if a figure is over its limit"
    )
    given = parser.parse_args(arguments)
    checkout = Checkout(given.checkout.resolve())
    if not (checkout.root / "tmkit/__init__.py").is_file():
        parser.error(f"there is no file '{checkout.root / 'tmkit/__init__.py'}'")
    if given.list:
        print("\n".join(map(str, _places(checkout, given.list))))
        return 0
    if given.check:
        messages = check_limits(checkout)
        print(
            "\n".join(messages) if messages else f"{len(MEASURES)} figures are within their limits"
        )
        return 1 if messages else 0
    limits = read_limits(checkout) if (checkout.root / LIMITS).is_file() else {}
    for name, measure in MEASURES.items():
        limit = f"<= {limits[name]}" if name in limits else ""
        print(f"{name:16} {len(_places(checkout, name)):5} {limit:8} {measure.description}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
