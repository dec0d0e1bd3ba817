"""Conventions of public names: unique names, dictionaries as plain values, ``is_`` booleans."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path

from support.public_names import classes, public

from tmkit._support.results import Result
from tmkit.batch.results import BatchRow

ROOT = Path(__file__).resolve().parents[1]


def test_a_public_name_means_one_object() -> None:
    """No two packages have different classes, functions or values of one name."""
    objects = defaultdict(list)
    for package, name, value in public():
        if not any(value is first for first, _ in objects[name]):
            objects[name].append((value, package))
    assert {
        name: [package for _, package in first] for name, first in objects.items() if len(first) > 1
    } == {}
    assert len(objects) > 500


def test_plain_values_are_dictionaries() -> None:
    """``to_dict`` returns a dictionary, ``from_dict`` takes one, and neither has an alias."""
    members = [(value, name, member) for value in classes() for name, member in vars(value).items()]
    functions = [(None, name, value) for _, name, value in public() if inspect.isfunction(value)]
    written = 0
    for _, name, member in (*members, *functions):
        assert not re.search(r"(^|_)(to|from)_json$|^(as|to)_dictionary$|^as_dict$", name), name
        function = getattr(member, "__func__", member)
        if not hasattr(function, "__annotations__"):  # of the core: the stub has them
            continue
        if name.endswith("to_dict"):
            written += 1
            assert str(function.__annotations__["return"]) in (
                "dict[str, Any]",
                "dict[str, object]",
                "Json",
            ), function
        elif name.endswith("from_dict"):
            document = list(inspect.signature(function).parameters.values())[
                int(isinstance(member, classmethod))
            ]
            assert str(document.annotation) in ("Mapping[str, Any]", "Any", "Json"), function
    assert written >= 12


VERBS = {
    "contains": "as of sets and of shapely: takes what may be inside",
    "touches": "as of shapely: takes what may be touched",
    "holds": "as of logic and PDDL: a formula or relation holds",
    "accepts": "a pattern's part accepts a frame",
    "shares_with": "takes the other world",
    "proved": "an option of path search, named as the argument that it was",
    "position_only": "an option of straight lines, named as the argument that it was",
    **dict.fromkeys(
        ("set_transform", "set_transform_static", "set_joint_states", "set_pose"),
        "as of tf2: code moves over by changing an import",
    ),
    "visual": "URDF's word: a shape is visual, for collision, or both",
    "collision": "URDF's word: a shape is visual, for collision, or both",
}
"""Booleans without ``is_``, with the reason."""


def booleans(value: type) -> Iterator[str]:
    """Yield the boolean public properties, methods and fields of a class and its bases.

    Fields with defaults are options of a value, and named as the arguments that they are.
    """
    for base in value.__mro__:
        if not str(base.__module__).startswith("tmkit"):
            continue
        for name, kind in inspect.get_annotations(base).items():
            if kind in ("bool", bool) and (
                name not in vars(base) or inspect.ismemberdescriptor(vars(base)[name])
            ):
                fields = getattr(base, "__dataclass_fields__", {})
                if name not in fields or fields[name].default is MISSING:
                    yield name
        for name, member in vars(base).items():
            function = getattr(member, "fget", None) or getattr(member, "func", None) or member
            function = getattr(function, "__func__", function)
            if getattr(function, "__annotations__", {}).get("return") in ("bool", bool):
                yield name


def booleans_of_the_core() -> Iterator[tuple[str, str]]:
    """Yield the classes of the core with boolean properties and methods, from the stub."""
    for node in ast.parse((ROOT / "tmkit" / "_core.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if (
                    isinstance(member, ast.FunctionDef)
                    and member.returns
                    and ast.unparse(member.returns) == "bool"
                ):
                    yield node.name, member.name


def test_booleans_begin_with_is() -> None:
    """But for verbs that take an argument, each with a reason, and fields that are options."""
    booleans_found = [
        (value.__name__, name) for value in classes() for name in booleans(value)
    ] + list(booleans_of_the_core())
    public_names = [(owner, name) for owner, name in booleans_found if not name.startswith("_")]
    assert [
        f"{owner}.{name}"
        for owner, name in public_names
        if not name.startswith("is_") and name not in VERBS
    ] == []
    assert len([name for _, name in public_names if name.startswith("is_")]) > 40
    assert {name for _, name in public_names} >= set(VERBS)


def test_what_succeeds_or_fails_is_a_result() -> None:
    """A class with success in its name or as a boolean has a status, a repr and result laws."""
    promises = re.compile(r"(Results?|Report|Validation|Solutions?|Resolution|Fusion)$")
    success = {
        "is_solved",
        "is_valid",
        "is_successful",
        "is_converged",
        "is_accepted",
        "is_consistent",
        "is_ok",
    }
    shared = ("__bool__", "to_dict", "_repr_html_")
    result_classes = [
        kind
        for kind in classes()
        if promises.search(kind.__name__) or success & set(booleans(kind))
    ]
    result_classes.remove(BatchRow)  # a row of a table with fields of a result
    for kind in {*result_classes, *(kind for kind in classes() if hasattr(kind, "status"))}:
        assert hasattr(kind, "status") or "status" in kind.__annotations__, kind
        assert all(hasattr(kind, name) for name in shared), kind
        if kind.__module__ != "tmkit._core":
            assert issubclass(kind, Result), kind
    assert len(result_classes) > 15


def test_the_most_iterations_are_max_iterations() -> None:
    """A limit of iterations is called by one name in all public functions and constructors."""
    callables = [value for _, _, value in public() if callable(value)]
    members = [
        member
        for value in classes()
        for name, member in vars(value).items()
        if inspect.isfunction(member)
    ]
    for value in {id(value): value for value in (*callables, *members)}.values():
        try:
            parameters = inspect.signature(value).parameters
        except (ValueError, TypeError):  # of the core
            continue
        wrong = {
            name
            for name in parameters
            if re.fullmatch(r"max_iters?|n_iter\w*|most_iterations|rounds|max_rounds", name)
        }
        assert wrong == set(), value
