"""Plans of operations on relations: checks and arithmetic that depend on coordinates alone.

A bounded cache stores the plans. The same operation on other numbers costs one look-up and one call
of the arithmetic (:mod:`tmkit.relations.semantic.values`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from tmkit.relations import rules
from tmkit.relations.semantic.values import Jacobians, Value
from tmkit.relations.violations import SemanticError, Violation, are_checked, rule_error

Operation = tuple[Callable[..., Value], Callable[..., Jacobians] | None]
"""Arithmetic of an operation, and its Jacobians if covariances are propagated."""

_CACHE_SIZE = 4096
"""Number of plans in each cache."""


class Form:
    """Properties of a relation without its numbers; equal forms are mostly one cached object.

    Attributes:
        coord: coordinates of the relation.
        kind: class of the representation, if the class alone determines the allowed coordinates;
            else None.
        size: number of relations in a batch; None for one relation.
        is_uncertain: True if the relation has a covariance.
        is_plain: True if a result consists of its value only.
    """

    __slots__ = ("coord", "is_plain", "is_uncertain", "kind", "size")

    def __init__(self, coord: Any, kind: Any, size: int | None, is_uncertain: bool) -> None:
        self.coord, self.kind, self.size = coord, kind, size
        self.is_uncertain = is_uncertain
        self.is_plain = kind is not None and not is_uncertain


form_of: Callable[[Any, Any, int | None, bool], Form] = functools.lru_cache(maxsize=_CACHE_SIZE)(
    Form
)


class Plan(NamedTuple):
    """Form of a result, arithmetic of an operation, and its Jacobians."""

    form: Form
    work: Callable[..., Value]
    jacobians: Callable[..., Jacobians] | None


def _make_plan(
    relation: type[Any],
    operation: str,
    is_checked: bool,
    x: Form,
    y: Form | None = None,
    z: Form | None = None,
) -> Plan:
    """Return the plan of an operation on relations of the given forms.

    Raises:
        SemanticError: if the operands violate a rule.
    """
    forms = [form for form in (x, y, z) if form is not None]
    coords = [form.coord for form in forms]
    work, jacobians = relation.operations[operation]
    coord, is_swapped = _RULES[operation](*coords)
    is_own = coord.relation != "Orientation" or all(c.coord == c.ref_ori for c in coords)
    # Rotation operators in common axes multiply in the opposite order.
    if operation in ("compose", "@") and not is_own:
        is_swapped, jacobians = not is_swapped, None
    size = batch_size(operation, *forms)
    is_uncertain = any(form.is_uncertain for form in forms)
    if is_uncertain and jacobians is None:
        rule = f"{operation} propagates a covariance"
        repair = "use inverse2" if operation == "inverse" else "drop it: with_covariance(None)"
        violation = Violation(rule, f"for a {coord.relation} it is not defined", repair=repair)
        raise SemanticError.of(f"{operation}({', '.join(map(repr, coords))})", [violation])
    if x.kind is not None and is_checked:
        require_representable(x.kind, coord)
    form = form_of(coord, x.kind, size, is_uncertain)
    if is_swapped:
        work = functools.partial(_call_swapped, work)
        jacobians = functools.partial(_call_reversed, jacobians) if jacobians else None
    return Plan(form, work, jacobians)


def batch_size(operation: str, *forms: Form) -> int | None:
    """Return the common length of the batches among operands; None without a batch.

    Raises:
        SemanticError: if two batches have different lengths.
    """
    sizes = [form.size for form in forms if form.size is not None]
    if len(set(sizes)) > 1:
        rule = "batches have the same length, or one operand is not a batch"
        call = f"{operation}({', '.join(repr(form.coord) for form in forms)})"
        raise rule_error(call, rule, f"lengths {' and '.join(map(str, sizes))}")
    return sizes[0] if sizes else None


def _call_swapped(work: Callable[..., Value], a: Value, b: Value) -> Value:
    """Return the value of an operation with swapped operands."""
    return work(b, a)


def _call_reversed(jacobians: Callable[..., Jacobians], a: Value, b: Value) -> Jacobians:
    """Return the Jacobians of an operation with swapped operands, in the order of the operands."""
    second, first = jacobians(b, a)
    return first, second


plan_operation: Callable[..., Plan] = functools.lru_cache(maxsize=_CACHE_SIZE)(_make_plan)


@functools.lru_cache(maxsize=_CACHE_SIZE)
def _apply_rule(rule: Callable[..., Any], is_checked: bool, *coords: Any) -> Any:
    del is_checked  # part of the cache key only; the rule reads the setting itself
    return rule(*coords)


def apply_rule(rule: Callable[..., Any], *coords: Any) -> Any:
    """Return the result of a rule of :mod:`tmkit.relations.rules`, from the cache if possible."""
    return _apply_rule(rule, are_checked(), *coords)


def require_representable(representation: Any, coord: Any) -> None:
    """Raise SemanticError if coordinates do not allow a representation, or a class of one."""
    violations = representation.find_violations(coord)
    if violations:
        kind = representation if isinstance(representation, type) else type(representation)
        raise SemanticError.of(f"{kind.__name__} for {coord!r}", violations)


def _compose(x: Any, y: Any, *, is_settled: bool = False) -> tuple[Any, bool]:
    if x.relation != y.relation:
        raise rule_error(
            "compose", f"a {x.relation} is composed with another", f"Semantic{y.relation}"
        )
    return rules.compose(x, y, is_settled=is_settled)


def _keep_order(rule: Callable[..., Any], *coords: Any) -> tuple[Any, bool]:
    """Return the coordinates of a rule that does not swap its operands."""
    return rule(*coords), False


_partial = functools.partial
_RULES: dict[str, Callable[..., tuple[Any, bool]]] = {
    "compose": _compose,
    "@": functools.partial(_compose, is_settled=True),
    "inverse": _partial(_keep_order, _partial(rules.inverse, is_matrix=False)),
    "inverse2": _partial(_keep_order, rules.inverse2),
    "change_point": _partial(_keep_order, rules.change_point),
    "change_point_body": _partial(_keep_order, _partial(rules.change_point, keeps_body=False)),
    "change_reference_point": _partial(_keep_order, rules.change_ref_point),
    "change_reference_point_body": _partial(
        _keep_order, _partial(rules.change_ref_point, keeps_body=False)
    ),
    "change_orientation_frame": _partial(_keep_order, rules.change_ori),
    "change_reference_orientation_frame": _partial(_keep_order, rules.change_ref_ori),
    "change_coordinate_frame": _partial(_keep_order, _partial(rules.change_coord, is_matrix=False)),
    "change_reference_body": _partial(_keep_order, rules.change_ref_body),
}
"""Functions that return the coordinates of a result, and whether the operands are swapped."""

OPERANDS = {
    name: "Orientation" if name.endswith("frame") else "Position"
    for name in _RULES
    if name.startswith("change_")
}
