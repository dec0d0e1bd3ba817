"""Errors for arguments of a wrong type, with the argument, the expected type and a correction.

The compiled core passes each call that fits no signature to :func:`argument_error`. Public
functions written in Python check their arguments with :func:`check_argument`. Signatures are read
from the binding, so a new function of the core needs no entry here.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar, cast

from tmkit.errors import ArgumentError, nearest_name

_MAX_VALUE_LENGTH = 60
"""Largest length of a received value that a message shows [characters]."""

_SOURCES = {
    "SceneGraph": "tk.load_scene(...) returns one",
    "Manipulator": "tk.load_manipulator(name) returns one",
    "Pose": "write tk.Pose(translation, quat_xyzw)",
    "Plan": "load a plan file with tk.load_plan",
    "Grasp": "tmkit.manipulation.grasps_of(scene, object, robot=...) returns grasps",
    "Placement": "tmkit.manipulation.placements_on_surface(...) yields placements",
    "Attachment": "write tmkit.plans.Attachment(object, support, support_from_object)",
    "ActionContext": "write tmkit.manipulation.ActionContext(scene, q, rng, sampling, arms)",
    "ArmMotionPlanner": "write tmkit.manipulation.ArmMotionPlanner(robot)",
    "SeededSamplers": "write tmkit.manipulation.SeededSamplers(samplers, robot)",
    "GroundAction": "write tmkit.pddl.GroundAction(name, arguments)",
}
"""Origin of the values of a class, the default hint of messages."""


def check_argument(
    value: object,
    expected: type | tuple[type, ...],
    name: str,
    *,
    function: str,
    hint: str = "",
    words: str = "",
) -> None:
    """Raise an ``ArgumentError`` unless ``value`` is an instance of ``expected``.

    Args:
        value: argument.
        expected: accepted type, or several.
        name: name of the parameter.
        function: name of the function, for the message.
        hint: correction, appended to the message. Defaults to the origin of values of the class.
        words: description of the accepted types in the message. Defaults to their names.
    """
    if isinstance(value, expected):
        return
    types = expected if isinstance(expected, tuple) else (expected,)
    names = ["None" if t is NoneType else _with_article(t.__name__) for t in types]
    words = words or " or ".join(names)
    hint = hint or next((_SOURCES[t.__name__] for t in types if t.__name__ in _SOURCES), "")
    raise _mismatch(function, name, words, value, hint)


_F = TypeVar("_F", bound=Callable[..., Any])


def with_keyword_hints(function: _F) -> _F:
    """Decorate a function or class so that errors for unknown keywords have the nearest name.

    An option of a parameter ``options`` or ``settings`` is named with the class that takes it. Only
    calls that fail pay for the search.

    Args:
        function: function, or class with a constructor in Python.
    """
    if isinstance(function, type):
        function.__init__ = with_keyword_hints(function.__init__)  # type: ignore[misc]
        return function

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError:
            parameters = inspect.signature(function).parameters
            unknown = next((key for key in keywords if key not in parameters), None)
            if unknown is None:  # the error is one of the body
                raise
            name = function.__name__
            if name == "__init__":
                name = type(arguments[0]).__name__
            raise _unknown_keyword(function, name, unknown) from None

    return cast(_F, call)


def _unknown_keyword(function: Callable[..., Any], name: str, keyword: str) -> ArgumentError:
    """Return the error for a keyword that is not a parameter of a function."""
    signature = inspect.signature(function)
    nearest = nearest_name(keyword, signature.parameters)
    hint = f"; did you mean '{nearest}'?"
    if nearest is None:
        hint = f"; the signature is {_format_call(name, signature)}"
    for parameter in ("options", "settings"):
        if parameter not in signature.parameters:
            continue
        kind = str(signature.parameters[parameter].annotation).split(" | ")[0]
        fields = getattr(function.__globals__.get(kind), "__annotations__", {})
        option = keyword if keyword in fields else nearest_name(keyword, fields)
        if option == keyword or (nearest is None and option is not None):
            hint = f"; write {parameter}={kind}({option}=...)"
    message = f"{name}(): got an unexpected keyword argument '{keyword}'{hint}"
    return ArgumentError(message, function=name)


def callable_name(function: object) -> str:
    """Return the name of a function, or of the class of another callable or object."""
    definition = function if hasattr(function, "__qualname__") else type(function)
    return str(definition.__qualname__)


def plan_hint(value: object) -> str:
    """Return a correction for an argument that is not a plan."""
    if value is None:
        return "planning found none; see result.explanation"
    return (
        "give its plan: result.plan"
        if hasattr(value, "plan")
        else "load a plan file with tk.load_plan"
    )


def degrees_hint(value: float) -> str:
    """Return a hint on the unit of joint values for a value of more than a full turn [rad]."""
    return (
        f"; joint values are in radians: {value:g} degrees are {math.radians(value):.4g}"
        if abs(value) > 7.0
        else ""
    )


def argument_error(
    function: Any, positional: Sequence[Any], keywords: Mapping[str, Any]
) -> ArgumentError:
    """Return the error for a call of a bound function that fits no ``__nb_signature__``."""
    # A constructor has the name of its class.
    parts: list[str] = function.__qualname__.split(".")
    name = parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
    failures = [
        _failure(signature, name, positional, keywords) for signature in _signatures(function)
    ]
    # Of several overloads, the one that fits the most arguments is reported.
    return max(failures, key=lambda failure: failure[0])[1]


def _failure(
    signature: inspect.Signature, name: str, positional: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[int, ArgumentError]:
    """Return the number of arguments that fit a signature, and the error for the first mismatch."""
    try:
        bound = signature.bind(*positional, **keywords).arguments
    except TypeError as error:
        unknown = next((key for key in keywords if key not in signature.parameters), None)
        nearest = nearest_name(unknown, signature.parameters) if unknown is not None else None
        hint = f"; did you mean '{nearest}'?" if nearest else _correct_call(name, signature)
        # An unknown keyword is often a misspelt required one, so the message names it first.
        reason = error if unknown is None else f"got an unexpected keyword argument '{unknown}'"
        n_unknown = sum(key not in signature.parameters for key in keywords)
        return -1 - n_unknown, ArgumentError(f"{name}(): {reason}{hint}", function=name)
    n_matches = 0
    for parameter, value in bound.items():
        annotation = signature.parameters[parameter].annotation
        if parameter != "self" and not _is_match(value, annotation):
            hint = _hint(value, annotation, bound)
            return n_matches, _mismatch(name, parameter, _describe(annotation), value, hint)
        n_matches += 1
    message = f"{name}(): the arguments do not fit the signature {_format_call(name, signature)}"
    return n_matches, ArgumentError(message, function=name)


def _correct_call(name: str, signature: inspect.Signature) -> str:
    """Return a hint with the signature, or with a call that names the reference frame, if any.

    The order of a frame and its reference is a frequent mistake, so the call names the latter.
    """
    names = [key for key in signature.parameters if key != "self"]
    reference = next((key for key in names if key.startswith("relative_to")), None)
    if reference is None:
        return f"; the signature is {_format_call(name, signature)}"
    keyword_only = [
        key for key in names if signature.parameters[key].kind is inspect.Parameter.KEYWORD_ONLY
    ]
    required = [
        key for key in keyword_only if signature.parameters[key].default is inspect.Parameter.empty
    ]
    arguments = [key for key in names if key not in keyword_only]
    arguments += [f"{key}=..." for key in dict.fromkeys((*required, reference))]
    return f"; write {name}({', '.join(arguments)})"


def _mismatch(function: str, name: str, expected: str, value: object, hint: str) -> ArgumentError:
    received = "None"
    if value is not None:
        text = repr(value)
        is_short = len(text) <= _MAX_VALUE_LENGTH and "\n" not in text
        received = _with_article(type(value).__name__) + (f" ({text})" if is_short else "")
    correction = f"; {hint}" if hint else ""
    message = f"{function}(): '{name}' must be {expected}, not {received}{correction}"
    return ArgumentError(
        message, function=function, argument=name, expected=expected, received=type(value).__name__
    )


def _signatures(function: Any) -> Iterator[inspect.Signature]:
    """Yield the overloads of a bound function, with annotations as ``ast`` expressions."""
    for text, _, defaults in function.__nb_signature__:
        head = re.sub(r"\\\d+", "...", text).rsplit(" -> ", 1)[0]
        arguments = ast.parse(head + ": ...").body[0].args  # type: ignore[attr-defined]
        values = iter(defaults or ())
        positional = [*arguments.posonlyargs, *arguments.args]
        n_required = len(positional) - len(arguments.defaults)
        parameters = [
            _parameter(a, inspect.Parameter.POSITIONAL_OR_KEYWORD, i >= n_required, values)
            for i, a in enumerate(positional)
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


def _is_match(value: Any, annotation: ast.expr | None) -> bool:
    """Return whether a value matches an annotation; True if its type is not sufficient for that."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return _is_match(value, left) or _is_match(value, right)
        case ast.Constant(value=None):
            return value is None
        case ast.Attribute(attr="ArrayLike"):
            return value is not None
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
            return _is_container_match(value, ast.unparse(container).rsplit(".", 1)[-1], inner)
        case ast.Attribute(value=module, attr=name) if ast.unparse(module) == "tmkit._core":
            expected = getattr(sys.modules["tmkit._core"], name, object)
            return isinstance(value, expected) if isinstance(expected, type) else True
    return True


def _is_container_match(value: Any, container: str, inner: ast.expr) -> bool:
    """Return whether a container and all its elements match ``container[inner]``."""
    if container == "Mapping" and isinstance(inner, ast.Tuple):
        key, item = inner.elts
        return isinstance(value, Mapping) and all(
            _is_match(k, key) and _is_match(v, item) for k, v in value.items()
        )
    if container in ("Sequence", "Iterable"):
        sequence = Sequence if container == "Sequence" else Iterable
        if isinstance(value, str) or not (
            isinstance(value, sequence) or hasattr(value, "__array__")
        ):
            return False
        return isinstance(value, Iterator) or all(_is_match(v, inner) for v in value)
    if container == "tuple" and isinstance(inner, ast.Tuple):
        has_length = isinstance(value, tuple | list) and len(value) == len(inner.elts)
        return has_length and all(map(_is_match, value, inner.elts))
    return True


_BUILTIN_DESCRIPTIONS = {
    "str": "a string",
    "float": "a number",
    "int": "an integer",
    "bool": "True or False",
    "None": "None",
}


def _describe(annotation: ast.expr | None) -> str:
    match annotation:
        case ast.BinOp(left=left, right=right):
            return f"{_describe(left)} or {_describe(right)}"
        case ast.Subscript(value=container, slice=ast.Tuple(elts=elements)):
            name = ast.unparse(container).rsplit(".", 1)[-1].lower()
            if name == "mapping":
                return f"a mapping of {' to '.join(map(_plural, elements))}"
            return f"{_with_article(name)} of " + ", ".join(map(_describe, elements))
        case ast.Subscript(value=container, slice=inner):
            name = ast.unparse(container).rsplit(".", 1)[-1].lower()
            return f"{_with_article(name)} of {_plural(inner)}"
        case None:
            return "anything"
    text = ast.unparse(annotation)
    noun = "array" if text.endswith("ArrayLike") else text.rsplit(".", 1)[-1]
    return _BUILTIN_DESCRIPTIONS.get(text) or _with_article(noun)


def _plural(annotation: ast.expr) -> str:
    """Return the description of elements, as ``strings`` or ``AttachedShape or Shape objects``."""
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
    """Return a correction if the intention is clear from the value, else an empty string."""
    text = ast.unparse(annotation) if annotation is not None else ""
    core = sys.modules["tmkit._core"]
    if not getattr(value, "dimensionless", True):
        return "convert it first, as in quantity.m_as('m')"
    if "Sequence[" in text and isinstance(value, str | core.Shape | core.AttachedShape):
        return f"write [{value!r}]" if isinstance(value, str) else "write it in brackets: [shape]"
    if text.endswith("Mapping[str, float]") and len(_shape_of(value)) == 1:
        names = bound["self"].joint_names
        if len(value) == len(names):
            return "it is a configuration already: give it as q"
        return f"write the joint's name for each number, as in {dict.fromkeys(names[:1], 0.1)}"
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


def _format_call(name: str, signature: inspect.Signature) -> str:
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
