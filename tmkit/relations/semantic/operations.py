"""Operations on relations as plans: what one has to know of coordinates before it computes.

A plan depends on coordinates alone and is remembered, as a bounded cache of a pure function: the
same operation on other numbers is one look-up and one call of the arithmetic
(:mod:`tmkit.relations.semantic.values`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tmkit.relations import rules
from tmkit.relations.semantic.values import Jacobians, Value
from tmkit.relations.violations import SemanticError, Violation, are_checked, rule_error

Operation = tuple[Callable[..., Value], Callable[..., Jacobians] | None]
"""The arithmetic of an operation, and its Jacobians where errors are carried along."""
_CACHE_SIZE = 4096  # operations on different coordinates


class Form:
    """All that is known of a relation before its numbers. Equal ones are mostly the same object.

    Attributes:
        kind: class of the representation where that alone settles whether it can say a relation, or
            None.
        size: number of relations in a batch; None for one relation.
        is_plain: whether the value of a result is all that has to be computed.
    """

    __slots__ = ("coord", "is_plain", "is_uncertain", "kind", "size")

    def __init__(self, coord: Any, kind: Any, size: int | None, is_uncertain: bool) -> None:
        self.coord, self.kind, self.size, self.is_uncertain = coord, kind, size, is_uncertain
        self.is_plain = kind is not None and not is_uncertain


form_of: Callable[[Any, Any, int | None, bool], Form] = functools.lru_cache(maxsize=_CACHE_SIZE)(
    Form
)


def _plan(
    made: type[Any],
    operation: str,
    is_checked: bool,
    x: Form,
    y: Form | None = None,
    z: Form | None = None,
) -> tuple[Form, Callable[..., Value], Callable[..., Jacobians] | None]:
    """Return the form of a result, the arithmetic of an operation, and its Jacobians, or raise SemanticError."""
    forms = [form for form in (x, y, z) if form is not None]
    coords = [form.coord for form in forms]
    work, jacobians = made.operations[operation]
    coord, is_turned = _RULES[operation](*coords)
    is_own = coord.relation != "Orientation" or all(c.coord == c.ref_ori for c in coords)
    # operators in common axes: the other order of their product
    if operation in ("compose", "@") and not is_own:
        is_turned, jacobians = not is_turned, None
    sizes = [form.size for form in forms if form.size is not None]
    if len(set(sizes)) > 1:
        rule, shapes = (
            "batches have the same length, or one operand is no batch",
            " and ".join(map(str, sizes)),
        )
        raise rule_error(f"{operation}({', '.join(map(repr, coords))})", rule, f"lengths {shapes}")
    is_uncertain = any(form.is_uncertain for form in forms)
    if is_uncertain and jacobians is None:
        rule = f"{operation} carries a covariance along"
        repair = "use inverse2" if operation == "inverse" else "drop it: with_covariance(None)"
        violation = Violation(rule, f"for a {coord.relation} it is not defined", repair=repair)
        raise SemanticError.of(f"{operation}({', '.join(map(repr, coords))})", [violation])
    if x.kind is not None and is_checked:
        require_representable(x.kind, coord)
    form = form_of(coord, x.kind, sizes[0] if sizes else None, is_uncertain)
    if is_turned:
        straight, along = work, jacobians
        return form, lambda a, b: straight(b, a), along and (lambda a, b: along(b, a)[::-1])
    return form, work, jacobians


plan_operation: Callable[..., tuple[Form, Callable[..., Value], Callable[..., Jacobians] | None]]
plan_operation = functools.lru_cache(maxsize=_CACHE_SIZE)(_plan)


@functools.lru_cache(maxsize=_CACHE_SIZE)
def _apply_rule(rule: Callable[..., Any], is_checked: bool, *coords: Any) -> Any:
    del is_checked  # the rule looks it up itself; here it tells the two apart
    return rule(*coords)


def apply_rule(rule: Callable[..., Any], *coords: Any) -> Any:
    """Return what a rule of :mod:`tmkit.relations.rules` makes of coordinates, which is remembered."""
    return _apply_rule(rule, are_checked(), *coords)


def require_representable(representation: Any, coord: Any) -> None:
    """Refuse a representation, or a class of one, that coordinates do not allow."""
    broken = representation.find_violations(coord)
    if broken:
        kind = representation if isinstance(representation, type) else type(representation)
        raise SemanticError.of(f"{kind.__name__} for {coord!r}", broken)


def _compose(x: Any, y: Any, *, is_settled: bool = False) -> tuple[Any, bool]:
    if x.relation != y.relation:
        raise rule_error(
            "compose", f"a {x.relation} is composed with another", f"Semantic{y.relation}"
        )
    return rules.compose(x, y, is_settled=is_settled)


def _rule(rule: Callable[..., Any], **settings: bool) -> Callable[..., tuple[Any, bool]]:
    return lambda *coords: (rule(*coords, **settings), False)


# coordinates, and whether the operands change places
_RULES: dict[str, Callable[..., tuple[Any, bool]]] = {
    "compose": _compose,
    "@": functools.partial(_compose, is_settled=True),
    "inverse": _rule(rules.inverse, is_matrix=False),
    "inverse2": _rule(rules.inverse2),
    "change_point": _rule(rules.change_point),
    "change_point_body": _rule(rules.change_point, keeps_body=False),
    "change_reference_point": _rule(rules.change_ref_point),
    "change_reference_point_body": _rule(rules.change_ref_point, keeps_body=False),
    "change_orientation_frame": _rule(rules.change_ori),
    "change_reference_orientation_frame": _rule(rules.change_ref_ori),
    "change_coordinate_frame": _rule(rules.change_coord, is_matrix=False),
    "change_reference_body": _rule(rules.change_ref_body),
}
OPERANDS = {
    name: "Orientation" if name.endswith("frame") else "Position"
    for name in _RULES
    if name.startswith("change_")
}
