"""Measures of structure: exported names, libraries, parameters, constants and state.

Each measure counts things that a reader of the package meets.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from source_text import (
    FUNCTIONS,
    Checkout,
    Measure,
    Module,
    Place,
    functions_in,
    functions_of,
    is_static,
)

MANY_PARAMETERS = 8
"""Parameters from which a function has many; ``self`` and ``cls`` do not count."""

_FOLDERS = ("tmkit", "tests", "examples", "domains", "tools", "docs", "scenes")
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

_FORMATTER_OFF = re.compile(r"#\s*fmt:\s*(?:skip|off)\b")


# Names and libraries


def find_exports(checkout: Checkout) -> Iterator[Place]:
    """Yield the names that tmkit and its packages export, except those of the command line."""
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
        names = dict(_list_exports(module, is_stub=stub.exists()))
        package = list(path.parent.relative_to(checkout.root / "tmkit").parts)
        yield from ((package, Place(module.path, line, name)) for name, line in names.items())


def _list_exports(module: Module, *, is_stub: bool) -> Iterator[tuple[str, int]]:
    """Yield names with lines: imports as the same name, a stub's imports, items of ``__all__``."""
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


def find_parameters(checkout: Checkout) -> Iterator[Place]:
    """Yield functions with many parameters."""
    return (
        function.place
        for function in functions_in(checkout)
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
        if len(_list_parameters(function.node)) >= MANY_PARAMETERS
    )


def _list_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """Return the named parameters without ``self``; core constructors may take keywords too."""
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return [argument for argument in arguments if argument.arg != "self"]


def find_keywords(checkout: Checkout) -> Iterator[Place]:
    """Yield public functions with ``**keywords``."""
    return (
        function.place
        for function in functions_in(checkout)
        if function.is_public and function.node.args.kwarg
    )


def find_any(checkout: Checkout) -> Iterator[Place]:
    """Yield public functions with a parameter of type Any."""
    for function in functions_in(checkout):
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
                    yield module.place(node, ast.unparse(target))


# Numbers


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
                yield module.place(node, f"{target.id} = {ast.unparse(value)}")


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
    for text, repeats in sorted(places.items()):
        if len(repeats) > 1:
            yield repeats[0]._replace(
                text=f"{text} also in {', '.join(place.path for place in repeats[1:])}"
            )


def find_literals(checkout: Checkout) -> Iterator[Place]:
    """Yield numbers in functions of tamp and manipulation, except small integers and halves."""
    for module in checkout.modules:
        tops = [node for node in module.tree.body if isinstance(node, (ast.ClassDef, *FUNCTIONS))]
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
                yield module.place(node, repr(node.value))


def find_search_settings(checkout: Checkout) -> Iterator[Place]:
    """Yield the fields of ``SearchSettings``, with those of classes whose names end so."""
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and node.name.endswith("SearchSettings"):
                fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
                yield from (
                    module.place(item, f"{node.name}.{ast.unparse(item.target)}") for item in fields
                )


# Layout and state


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
    """Yield attributes of tmkit's classes set on anything but the first argument of a method."""
    own = own_attributes(checkout.modules)
    for module in checkout.modules:
        places = dict.fromkeys(_outside_sets(module, own))  # a line may set one twice
        yield from places


def _outside_sets(module: Module, own: frozenset[str]) -> Iterator[Place]:
    def visit(node: ast.AST, owner: str | None, instance: str | None, name: str) -> Iterator[Place]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from visit(child, child.name, None, child.name)
            elif isinstance(child, FUNCTIONS):
                inner = _instance(child) if owner and instance is None else instance
                yield from visit(
                    child, owner, inner, f"{owner}.{child.name}" if owner else child.name
                )
            else:
                for target in _targets(child):
                    if target.attr in own and ast.unparse(target.value) != instance:
                        yield module.place(child, f"{name}: {ast.unparse(target)}")
                yield from visit(child, owner, instance, name)

    return visit(module.tree, None, None, "module")


def _instance(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """Return the name of the first parameter of a method."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    return arguments[0].arg if arguments and not is_static(node) else None


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
    """Yield changes of a collection in another object's attribute, as ``log.trees.append``."""
    own = own_attributes(checkout.modules)
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Attribute(value=holder, attr=held), attr=method)
                ):
                    is_change = method in _ADDING_METHODS | _REMOVING_METHODS and held in own
                    if is_change and ast.unparse(holder) not in ("self", "cls"):
                        yield module.place(node, ast.unparse(node.func))


def find_object_setattr(checkout: Checkout) -> Iterator[Place]:
    """Yield calls of ``object.__setattr__``, which change values that are frozen."""
    for module in checkout.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "object.__setattr__":
                yield module.place(node, ast.unparse(node.args[1]) if len(node.args) > 1 else "")


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
}
"""The measures of structure by name."""
