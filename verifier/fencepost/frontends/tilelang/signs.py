"""Between which bounds does an index of a TileLang program lie?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from fencepost import ir

Bounds: TypeAlias = tuple[int | None, int | None]
"""The least and the largest value; None where there is none, or it is not known."""

ANY: Bounds = (None, None)


def bounds_of(expr: ir.Expr, known: Mapping[str, Bounds]) -> Bounds:
    """The bounds of an expression.

    Args:
        expr: the expression.
        known: the bounds of names; others may be any integer.
    """
    match expr:
        case ir.Int(value):
            return value, value
        case ir.Name(name):
            return known.get(name, ANY)
        case ir.Unary("-", operand):
            return _negated(bounds_of(operand, known))
        case ir.Unary() | ir.Compare() | ir.Logic():
            return 0, 1
        case ir.Binary(op, left, right):
            return _binary(op, bounds_of(left, known), bounds_of(right, known))
        case ir.Choose(_, one, other):
            (a, b), (c, d) = bounds_of(one, known), bounds_of(other, known)
            return _both(min, a, c), _both(max, b, d)
        case ir.Call("min", arguments):
            lows, highs = zip(*(bounds_of(a, known) for a in arguments), strict=True)
            return _all(min, lows), _some(min, highs)
        case ir.Call("max", arguments):
            lows, highs = zip(*(bounds_of(a, known) for a in arguments), strict=True)
            return _some(max, lows), _all(max, highs)
        case ir.Call("ceildiv" | "floordiv" | "floormod", (left, right)):  # by something that is not zero
            divided, by = _is_natural(bounds_of(left, known)), _is_natural(bounds_of(right, known))
            return (0, None) if by and (divided or expr.function == "floormod") else ANY
        case ir.Call(name):
            return known.get(name, ANY)
        case _:
            return ANY


def _binary(op: str, a: Bounds, b: Bounds) -> Bounds:
    match op:
        case "+":
            return _both(_sum, a[0], b[0]), _both(_sum, a[1], b[1])
        case "-":
            return _binary("+", a, _negated(b))
        case "*":
            for one, other in ((a, b), (b, a)):
                if one[0] is not None and one[0] == one[1]:
                    ends = _both(_product, one[0], other[0]), _both(_product, one[0], other[1])
                    return ends if one[0] >= 0 else ends[::-1]
            both = _both(_product, a[0], b[0]), _both(_product, a[1], b[1])
            return both if _is_natural(a) and _is_natural(b) else ANY
        case "//" | "%" if b[0] is not None and b[0] == b[1] and b[0] > 0:
            if op == "//":
                return _both(_quotient, a[0], b[0]), _both(_quotient, a[1], b[0])
            return a if _is_natural(a) and a[1] is not None and a[1] < b[0] else (0, b[0] - 1)
        case _:
            return ANY


def _is_natural(bounds: Bounds) -> bool:
    return bounds[0] is not None and bounds[0] >= 0


def _negated(bounds: Bounds) -> Bounds:
    low, high = bounds
    return None if high is None else -high, None if low is None else -low


def _sum(a: int, b: int) -> int:
    return a + b


def _product(a: int, b: int) -> int:
    return a * b


def _quotient(a: int, b: int) -> int:
    return a // b


def _both(function: Callable[[int, int], int], a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else function(a, b)


def _all(function: Callable[[list[int]], int], ends: tuple[int | None, ...]) -> int | None:
    found = [e for e in ends if e is not None]
    return function(found) if found and len(found) == len(ends) else None


def _some(function: Callable[[list[int]], int], ends: tuple[int | None, ...]) -> int | None:
    found = [e for e in ends if e is not None]
    return function(found) if found else None
