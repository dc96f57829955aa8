"""Which value has an expression that the loop leaves open, in one concrete run?"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost import ir
from fencepost.model.functions import FunctionTable

ITERATION = "#iteration"
"""The name under which an expression refers to the iteration, counted from 0."""


@dataclass(slots=True)
class Setting:
    """Concrete values of the kernel's parameters and of its uninterpreted functions."""

    names: Mapping[str, int] = field(default_factory=dict)
    functions: FunctionTable = field(default_factory=FunctionTable)

    def value(self, expr: ir.Expr, iteration: int) -> int:
        """The value of `expr` in one iteration; a name without a value counts as a function of no arguments."""
        return compiled(expr)(self, iteration)


Evaluation: TypeAlias = Callable[[Setting, int], int]
"""Computes a value in a run and an iteration."""


def compiled(expr: ir.Expr) -> Evaluation:
    """What computes the value of an expression in a run and an iteration, as often as it is asked."""
    match expr:
        case ir.Int(value):
            return lambda setting, iteration: value
        case ir.Name(name) if name == ITERATION:
            return lambda setting, iteration: iteration
        case ir.Name(name):
            return lambda setting, iteration: _named(setting, name)
        case ir.Item(name, index):
            return _call(name, (index,))
        case ir.Field(ring, index, field_):
            return _call(f"{ring}.{field_}", (index,))
        case ir.Unary(op, operand):
            inner = compiled(operand)
            if op == "-":
                return lambda setting, iteration: -inner(setting, iteration)
            return lambda setting, iteration: int(not inner(setting, iteration))
        case ir.Binary(op, left, right):
            return _binary(_ARITHMETIC[op], compiled(left), compiled(right))
        case ir.Compare(first, rest):
            return _compare(compiled(first), [(_COMPARE[op], compiled(operand)) for op, operand in rest])
        case ir.Logic(op, operands):
            parts, combine = [compiled(o) for o in operands], all if op == "and" else any
            return lambda setting, iteration: int(combine(part(setting, iteration) for part in parts))
        case ir.Choose(condition, then, other):
            test, yes, no = compiled(condition), compiled(then), compiled(other)
            return lambda setting, iteration: (yes if test(setting, iteration) else no)(setting, iteration)
        case ir.Call(("min" | "max") as name, arguments):
            values, extreme = [compiled(a) for a in arguments], min if name == "min" else max
            return lambda setting, iteration: extreme(value(setting, iteration) for value in values)
        case ir.Call(function, arguments):
            return _call(function, arguments)


def _named(setting: Setting, name: str) -> int:
    found = setting.names.get(name)
    return setting.functions(name, ()) if found is None else found


def _call(function: str, arguments: tuple[ir.Expr, ...]) -> Evaluation:
    values = [compiled(a) for a in arguments]
    return lambda setting, iteration: setting.functions(function, tuple(value(setting, iteration) for value in values))


def _binary(function: Callable[[int, int], int], left: Evaluation, right: Evaluation) -> Evaluation:
    return lambda setting, iteration: function(left(setting, iteration), right(setting, iteration))


def _compare(first: Evaluation, rest: list[tuple[Callable[[int, int], bool], Evaluation]]) -> Evaluation:
    def holds(setting: Setting, iteration: int) -> int:
        left, result = first(setting, iteration), 1
        for compare, operand in rest:
            right = operand(setting, iteration)
            result &= compare(left, right)
            left = right
        return result

    return holds


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
}

_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
