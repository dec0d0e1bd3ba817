"""Public functions of a module with undocumented arguments, from its source or its stub.

Run as a script, it lists them for files or folders: ``python tests/support/documented.py
tmkit/graph``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

_HOOKS = ("facts_", "do_")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_functions(source: str) -> Iterator[tuple[str, list[Function], str]]:
    """Yield name, overloads and documentation of each public function, method and constructor.

    The documentation of a constructor is that of its class as well.
    """
    yield from _functions(ast.parse(source).body, "", "")


def find_undocumented_names(source: str) -> list[str]:
    """Return the public classes, functions, methods and properties without a docstring."""
    tree = ast.parse(source)
    classes = [c for c in tree.body if isinstance(c, ast.ClassDef) and not c.name.startswith("_")]
    missing = [c.name for c in classes if not ast.get_docstring(c)]
    return missing + [name for name, _, text in public_functions(source) if not text.strip()]


def option_types(source: str) -> set[str]:
    """Return the names of the types of command-line options in a module.

    These are ``Seed = Annotated[int, Option(help=...)]``, and groups of options: decorated classes
    of a module that imports typer.
    """
    body = ast.parse(source).body
    names = {
        target.id
        for node in body
        if isinstance(node, ast.Assign) and _has_help(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if any(isinstance(node, ast.Import) and node.names[0].name == "typer" for node in body):
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        names |= {node.name for node in classes if node.decorator_list}
    return names


def find_undocumented_arguments(source: str, options: Collection[str] = ()) -> list[str]:
    """Return ``function: argument, ...`` for each public function with undocumented arguments.

    An argument is documented by a line ``name: ...`` under ``Args:``, also of several: ``lower,
    upper: ...``; an option or argument of a command by its help. Hooks of parts of domains have
    those that ``DomainPart`` states.

    Args:
        source: text of the module or stub.
        options: names of types of command-line options, see :func:`option_types`.
    """
    faults = []
    for name, overloads, text in public_functions(source):
        if name.rpartition(".")[2].startswith(_HOOKS):
            continue
        for function in overloads:
            arguments = _arguments(function)
            names = document_names(text) | _with_help(function, options)
            missing = [a for a in arguments if a not in names]
            if len(arguments) > 1 and missing:
                faults.append(f"{name}: {', '.join(missing)}")
                break
    return faults


def commands(source: str, options: Collection[str]) -> set[str]:
    """Return the functions of a module that are commands: some argument has the help of an option.

    Args:
        source: text of the module.
        options: names of types of command-line options, see :func:`option_types`.
    """
    return {
        name
        for name, overloads, _ in public_functions(source)
        if any(_with_help(f, options) for f in overloads)
    }


def _functions(
    body: list[ast.stmt], prefix: str, class_text: str
) -> Iterator[tuple[str, list[Function], str]]:
    overloads: dict[str, list[Function]] = {}
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _functions(node.body, f"{prefix}{node.name}.", ast.get_docstring(node) or "")
        elif isinstance(node, Function) and (
            node.name == "__init__" or not node.name.startswith("_")
        ):
            overloads.setdefault(node.name, []).append(node)
    for name, functions in overloads.items():
        texts = [ast.get_docstring(function) or "" for function in functions]
        yield (
            prefix + name,
            functions,
            "\n".join([class_text, *texts] if name == "__init__" else texts),
        )


def _arguments(function: Function) -> list[str]:
    signature = function.args
    every = [
        *signature.posonlyargs,
        *signature.args,
        *([signature.vararg] if signature.vararg else []),
        *signature.kwonlyargs,
    ]
    # arguments of the implementation
    unpacked = signature.kwarg is not None and "Unpack[" in ast.unparse(signature.kwarg)
    every += [signature.kwarg] if signature.kwarg and not unpacked else []
    return [a.arg for a in every if a.arg not in ("self", "cls") and not a.arg.startswith("_")]


def _has_help(annotation: ast.expr | None) -> bool:
    """Return whether a type is ``Annotated`` with the help of an option."""
    if annotation is None:
        return False
    return any(
        isinstance(node, ast.keyword) and node.arg == "help" for node in ast.walk(annotation)
    )


def _with_help(function: Function, options: Collection[str]) -> set[str]:
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {
        a.arg
        for a in every
        if _has_help(a.annotation)
        or (isinstance(a.annotation, ast.Name) and a.annotation.id in options)
    }


def document_names(text: str) -> set[str]:
    """Return the names of the lines of all sections ``Args:`` of a docstring."""
    names: set[str] = set()
    for section in re.finditer(
        r"^( *)(?:Args|Attributes):\n((?:\1 +\S.*\n?|\s*\n)*)", text, re.MULTILINE
    ):
        for heads in re.findall(
            r"^ *((?:\*{0,2}\w+(?:, | and )?)+)(?: \([^)]*\))?:", section[2], re.MULTILINE
        ):
            names.update(re.findall(r"\w+", heads))
    return names


def main(paths: list[str]) -> int:
    """Print the functions that do not document each of their arguments."""
    files = [
        f
        for path in map(Path, paths)
        for f in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
    ]
    sources = {file: file.read_text(encoding="utf-8") for file in files}
    options = {name for source in sources.values() for name in option_types(source)}
    lines = [
        f"{file}: {line}"
        for file in files
        for line in find_undocumented_arguments(sources[file], options)
    ]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{len(lines)} functions do not document each of their arguments\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
