"""Arguments of a wrong type: which one, what was expected, what to write instead.

The compiled core passes each call that fits no signature to :func:`argument_error`; public
functions written in Python check what they are given with :func:`check_argument`. Signatures are
read from the binding itself, so a new function of the core needs nothing here.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tmkit.errors import ArgumentError, nearest_name

_LONGEST_VALUE = 60  # characters of a received value that are shown


def check_argument(
    value: object,
    expected: type | tuple[type, ...],
    name: str,
    *,
    function: str,
    hint: str = "",
    words: str = "",
) -> None:
    """Raise an ``ArgumentError`` unless ``value`` is an instance of ``expected``, or of what ``words`` say."""
    if isinstance(value, expected):
        return
    types = expected if isinstance(expected, tuple) else (expected,)
    words = words or " or ".join(_with_article(t.__name__) for t in types)
    raise _mismatch(function, name, words, value, hint)


def callable_name(function: object) -> str:
    """Return the name of a function, or of the class of another callable or object."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return str(named.__qualname__)


def plan_hint(value: object) -> str:
    """Return what to give in place of something that is not a plan."""
    if value is None:
        return "planning found none; see result.explanation"
    return (
        "give its plan: result.plan"
        if hasattr(value, "plan")
        else "load a plan file with tk.load_plan"
    )


def degrees_hint(value: float) -> str:
    """Return a hint that joint values are radians, for one that is more than a full turn."""
    return (
        f"; joint values are in radians: {value:g} degrees are {math.radians(value):.4g}"
        if abs(value) > 7.0
        else ""
    )


def argument_error(
    function: Any, positional: Sequence[Any], keywords: Mapping[str, Any]
) -> ArgumentError:
    """Return the error for a call of a bound function that fits none of its ``__nb_signature__``."""
    # as users write it: the class for a constructor
    parts: list[str] = function.__qualname__.split(".")
    name = parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
    failures = [
        _failure(signature, name, positional, keywords) for signature in _signatures(function)
    ]
    # Of several overloads, the one that most of the arguments fit is the one that was meant.
    return max(failures, key=lambda failure: failure[0])[1]


def _failure(
    signature: inspect.Signature, name: str, positional: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[int, ArgumentError]:
    """Return how many arguments fit a signature, and the error for the first that does not."""
    try:
        bound = signature.bind(*positional, **keywords).arguments
    except TypeError as error:
        unknown = next((key for key in keywords if key not in signature.parameters), None)
        near = nearest_name(unknown, signature.parameters) if unknown is not None else None
        hint = f"; did you mean '{near}'?" if near else _spelling(name, signature)
        # a wrong keyword is often the one that is missing, so it is named first
        reason = error if unknown is None else f"got an unexpected keyword argument '{unknown}'"
        unfit = sum(key not in signature.parameters for key in keywords)
        return -1 - unfit, ArgumentError(f"{name}(): {reason}{hint}", function=name)
    fitting = 0
    for parameter, value in bound.items():
        annotation = signature.parameters[parameter].annotation
        if parameter != "self" and not _fits(value, annotation):
            return fitting, _mismatch(
                name, parameter, _words(annotation), value, _hint(value, annotation, bound)
            )
        fitting += 1
    message = f"{name}(): the arguments do not fit the signature {_readable(name, signature)}"
    return fitting, ArgumentError(message, function=name)


def _spelling(name: str, signature: inspect.Signature) -> str:
    """Return how to call a function; of one with a reference, the call that states it, since its order is a trap."""
    names = [key for key in signature.parameters if key != "self"]
    reference = next((key for key in names if key.startswith("relative_to")), None)
    if reference is None:
        return f"; the signature is {_readable(name, signature)}"
    by_name = [
        key for key in names if signature.parameters[key].kind is inspect.Parameter.KEYWORD_ONLY
    ]
    needed = [
        key for key in by_name if signature.parameters[key].default is inspect.Parameter.empty
    ]
    words = [key for key in names if key not in by_name]
    words += [f"{key}=..." for key in dict.fromkeys((*needed, reference))]
    return f"; write {name}({', '.join(words)})"


def _mismatch(function: str, name: str, expected: str, value: object, hint: str) -> ArgumentError:
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST_VALUE and "\n" not in shown else ""
    received = (
        "None"
        if value is None
        else _with_article(type(value).__name__) + (f" ({shown})" if shown else "")
    )
    message = f"{function}(): '{name}' must be {expected}, not {received}" + (
        f"; {hint}" if hint else ""
    )
    return ArgumentError(
        message, function=function, argument=name, expected=expected, received=type(value).__name__
    )


def _signatures(function: Any) -> Iterator[inspect.Signature]:
    """Yield the overloads of a bound function, annotations as expressions of the ``ast`` module."""
    for text, _, defaults in function.__nb_signature__:
        head = re.sub(r"\\\d+", "...", text).rsplit(" -> ", 1)[0]
        arguments = ast.parse(head + ": ...").body[0].args  # type: ignore[attr-defined]
        values = iter(defaults or ())
        placed = [*arguments.posonlyargs, *arguments.args]
        required = len(placed) - len(arguments.defaults)
        parameters = [
            _parameter(a, inspect.Parameter.POSITIONAL_OR_KEYWORD, i >= required, values)
            for i, a in enumerate(placed)
        ]
        if arguments.vararg:
            parameters.append(
                _parameter(arguments.vararg, inspect.Parameter.VAR_POSITIONAL, False, values)
            )
        for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            parameters.append(
                _parameter(a, inspect.Parameter.KEYWORD_ONLY, default is not None, values)
            )
        yield inspect.Signature(parameters)


def _parameter(
    argument: ast.arg, kind: Any, optional: bool, defaults: Iterator[Any]
) -> inspect.Parameter:
    default = next(defaults, ...) if optional else inspect.Parameter.empty
    return inspect.Parameter(argument.arg, kind, default=default, annotation=argument.annotation)


def _fits(value: Any, annotation: ast.expr | None) -> bool:
    """Whether a value matches an annotation; True where that cannot be decided from its type."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return _fits(value, left) or _fits(value, right)
        case ast.Constant(value=None):
            return value is None
        case ast.Name(id="str"):
            return isinstance(value, str)
        case ast.Name(id="bool"):
            return isinstance(value, bool)
        case ast.Name(id="int"):
            return hasattr(value, "__index__")
        case ast.Name(id="float"):
            return getattr(value, "dimensionless", True) and (
                hasattr(value, "__float__") or hasattr(value, "__index__")
            )
        case ast.Subscript(value=container, slice=inner):
            return _contains(value, ast.unparse(container).rsplit(".", 1)[-1], inner)
        case ast.Attribute(value=module, attr=name) if ast.unparse(module) == "tmkit._core":
            expected = getattr(sys.modules["tmkit._core"], name, object)
            return isinstance(value, expected) if isinstance(expected, type) else True
    return True


def _contains(value: Any, container: str, inner: ast.expr) -> bool:
    """Whether a container and all that is in it fit ``container[inner]``."""
    if container == "Mapping" and isinstance(inner, ast.Tuple):
        key, item = inner.elts
        return isinstance(value, Mapping) and all(
            _fits(k, key) and _fits(v, item) for k, v in value.items()
        )
    if container in ("Sequence", "Iterable"):
        sequence = Sequence if container == "Sequence" else Iterable
        fits = isinstance(value, sequence) or hasattr(value, "__array__")
        return (
            fits
            and not isinstance(value, str)
            and (isinstance(value, Iterator) or all(_fits(v, inner) for v in value))
        )
    if container == "tuple" and isinstance(inner, ast.Tuple):
        fits = isinstance(value, tuple | list) and len(value) == len(inner.elts)
        return fits and all(_fits(v, each) for v, each in zip(value, inner.elts, strict=True))
    return True


_BUILTIN_WORDS = {
    "str": "a string",
    "float": "a number",
    "int": "an integer",
    "bool": "True or False",
    "None": "None",
}


def _words(annotation: ast.expr | None) -> str:
    match annotation:
        case ast.BinOp(left=left, right=right):
            return f"{_words(left)} or {_words(right)}"
        case ast.Subscript(value=container, slice=ast.Tuple(elts=elements)):
            name = ast.unparse(container).rsplit(".", 1)[-1].lower()
            if name == "mapping":
                return f"a mapping of {' to '.join(map(_plural, elements))}"
            return f"{_with_article(name)} of " + ", ".join(map(_words, elements))
        case ast.Subscript(value=container, slice=inner):
            return (
                f"{_with_article(ast.unparse(container).rsplit('.', 1)[-1].lower())} of"
                f" {_plural(inner)}"
            )
        case None:
            return "anything"
    text = ast.unparse(annotation)
    return _BUILTIN_WORDS.get(text) or _with_article(
        "array" if text.endswith("ArrayLike") else text.rsplit(".", 1)[-1]
    )


def _plural(annotation: ast.expr) -> str:
    """Return the elements of a container in words: ``strings``, ``AttachedShape or Shape objects``."""
    plurals = {
        "str": "strings",
        "float": "numbers",
        "int": "integers",
        "Any": "values",
        "ArrayLike": "arrays",
    }
    text = re.sub(r"[\w.]*\.(\w+)", r"\1", ast.unparse(annotation))
    return plurals.get(text) or text.replace(" | ", " or ") + " objects"


def _hint(value: Any, annotation: ast.expr | None, bound: Mapping[str, Any]) -> str:
    """Return what to write instead, where the value shows what was meant, or "" otherwise."""
    text = ast.unparse(annotation) if annotation is not None else ""
    core = sys.modules["tmkit._core"]
    if not getattr(value, "dimensionless", True):
        return "convert it first, as in quantity.m_as('m')"
    if "Sequence[" in text and isinstance(value, str | core.Shape | core.AttachedShape):
        return f"write [{value!r}]" if isinstance(value, str) else "write it in brackets: [shape]"
    if text.endswith("Mapping[str, float]") and len(_shape_of(value)) == 1:
        names = bound["self"].joint_names
        as_names = f"write the joint's name for each number, as in {dict.fromkeys(names[:1], 0.1)}"
        return (
            "it is a configuration already: give it as q" if len(value) == len(names) else as_names
        )
    if "_core.Pose" in text and not isinstance(value, str):
        shape = _shape_of(value)
        if shape == (3,):
            numbers = ", ".join(
                f"{number:g}" if isinstance(number, float) else str(number) for number in value
            )
            return f"write tk.Pose([{numbers}])"
        if shape == (4, 4):
            return "write tk.Pose.from_matrix(...)"
        if shape == (7,):
            return "write tk.Pose(translation, quat_xyzw)"
    return ""


def _shape_of(value: Any) -> tuple[int, ...]:
    if hasattr(value, "shape"):
        return tuple(value.shape)
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return (len(value), *_shape_of(value[0]))
    return ()


def _readable(name: str, signature: inspect.Signature) -> str:
    """Return a signature with parameter names and defaults only."""
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
        optional = parameter.default is not inspect.Parameter.empty
        parts.append(star + parameter.name + ("=..." if optional else ""))
    return f"{name}({', '.join(parts)})"


def _with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
