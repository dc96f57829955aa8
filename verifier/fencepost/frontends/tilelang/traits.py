"""What does a value of a TileLang program tell by itself?"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TypeGuard

from fencepost import ir
from fencepost.frontends.tilelang.values import (
    UNTOLD,
    Dim,
    Either,
    Full,
    Number,
    Opaque,
    Part,
    Place,
    Plain,
    Region,
    Several,
    Tensor,
    Vague,
    Value,
)


def is_changeable(value: Value, depth: float) -> bool:
    """Whether a value is or holds a list, that deep inside it."""
    match value:
        case Several(items, changeable):
            return (changeable and depth <= 0) or any(is_changeable(i, depth - 1) for i in items)
        case Either(items):
            return any(is_changeable(i, depth) for i in items)
        case _:
            return False


def exactly(value: Value) -> Hashable:
    """What tells a scalar from any other that may have another value; None for what is no scalar."""
    match value:
        case Number(expr, loads=()):
            return expr
        case Plain(known):
            return type(known).__name__, repr(known)
        case _:
            return None


def truth_of(value: Value) -> bool | None:
    """Whether a value counts as true, None if that is not known."""
    match value:
        case Plain(known):
            return bool(known)
        case Several(items):
            return bool(items)
        case Number(ir.Int(number)):
            return bool(number)
        case _:
            return None


def is_list(value: Value) -> TypeGuard[Several]:
    """Whether a value is a tuple or a list with known items."""
    return isinstance(value, Several)


def holds(value: Value) -> bool:
    """Whether a value is a tensor or may hold one."""
    match value:
        case Tensor():
            return True
        case Region(element=element):
            return not element
        case Several(items) | Either(items):
            return any(map(holds, items))
        case Number(loads=loads):
            return UNTOLD in loads
        case _:
            return False


def touched(value: Value) -> list[Region]:
    """Some elements of every tensor that a value may be."""
    match value:
        case Tensor():
            return [Region(value, (Vague(),))]
        case Region(_, dims):
            return [replace(value, dims=tuple(Vague() for _ in dims) if dims else (Vague(),))]
        case Number(loads=loads):
            return list(loads)
        case Either(items, loads):
            found = [touched(item) for item in items]
            return [replace(r, at=(*r.at, *loads)) for f in found for r in f] + ([] if all(found) else list(loads))
        case Several(items):
            return [region for item in items for region in touched(item)]
        case _:
            return []


def is_static(value: Value) -> bool:
    """Whether a value is known when the kernel is compiled."""
    match value:
        case Number(static=static):
            return static
        case Several(items) | Either(items):
            return all(map(is_static, items))
        case Tensor() | Region():
            return False
        case Opaque(_, made):
            return made is None or made.static
        case _:
            return True


def only_index(dim: Dim | None) -> ir.Expr | None:
    """The index that names one element of a dimension."""
    match dim:
        case Place(start, None):
            return start
        case Part(low, high) if high == low + 1:
            return ir.Int(low)
        case Full():  # of a dimension with one element, or else this is no element
            return ir.Int(0)
        case _:
            return None
