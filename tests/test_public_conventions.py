"""What holds of all public names: names are unique, plain values are dictionaries, booleans begin with ``is_``."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

REFERENCE = (Path(__file__).resolve().parents[1] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
PACKAGES = re.findall(r"^\.\. room:: (tmkit[\w.]*)$", REFERENCE, re.MULTILINE)


def public() -> Iterator[tuple[str, str, object]]:
    """Yield the packages of the reference, with their public names and what these name."""
    for package in ("tmkit", *PACKAGES):
        module = importlib.import_module(package)
        yield from ((package, name, getattr(module, name)) for name in module.__all__)


def classes() -> list[type]:
    """Return the public classes of tmkit, each once."""
    found = {value: None for _, _, value in public() if inspect.isclass(value)}
    return [value for value in found if str(value.__module__).startswith("tmkit")]


def test_a_public_name_means_one_object() -> None:
    """No two packages have different classes, functions or values of one name."""
    found = defaultdict(list)
    for package, name, value in public():
        if not any(value is known for known, _ in found[name]):
            found[name].append((value, package))
    assert {name: [package for _, package in known] for name, known in found.items() if len(known) > 1} == {}
    assert len(found) > 500


def test_plain_values_are_dictionaries() -> None:
    """``to_dict`` returns a dictionary, ``from_dict`` takes one, and neither is called by another name."""
    members = [(value, name, member) for value in classes() for name, member in vars(value).items()]
    functions = [(None, name, value) for _, name, value in public() if inspect.isfunction(value)]
    written = 0
    for _, name, member in (*members, *functions):
        assert not re.search(r"(^|_)(to|from)_json$|^(as|to)_dictionary$|^as_dict$", name), name
        function = getattr(member, "__func__", member)
        if name.endswith("to_dict"):
            written += 1
            assert str(function.__annotations__["return"]) in ("dict[str, Any]", "dict[str, object]", "Json"), function
        elif name.endswith("from_dict"):
            document = list(inspect.signature(function).parameters.values())[int(isinstance(member, classmethod))]
            assert str(document.annotation) in ("Mapping[str, Any]", "Any", "Json"), function
    assert written >= 12
