"""Which value has an expression that the loop leaves open, in one concrete run?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
        return _value(expr, self, iteration)


def _value(expr: ir.Expr, setting: Setting, iteration: int) -> int:
    def of(e: ir.Expr) -> int:
        return _value(e, setting, iteration)

    match expr:
        case ir.Int(value):
            return value
        case ir.Name(name):
            if name == ITERATION:
                return iteration
            found = setting.names.get(name)
            return setting.functions(name, ()) if found is None else found
        case ir.Item(name, index):
            return setting.functions(name, (of(index),))
        case ir.Field(ring, index, field_):
            return setting.functions(f"{ring}.{field_}", (of(index),))
        case ir.Unary("-", operand):
            return -of(operand)
        case ir.Unary(_, operand):
            return int(not of(operand))
        case ir.Binary(op, left, right):
            return _arithmetic(op, of(left), of(right))
        case ir.Compare(first, rest):
            values = [of(first), *(of(operand) for _, operand in rest)]
            return int(all(_compare(op, a, b) for (op, _), a, b in zip(rest, values, values[1:], strict=False)))
        case ir.Logic("and", operands):
            return int(all(of(o) for o in operands))
        case ir.Logic(_, operands):
            return int(any(of(o) for o in operands))
        case ir.Choose(condition, then, other):
            return of(then) if of(condition) else of(other)
        case ir.Call("min", arguments):
            return min(of(a) for a in arguments)
        case ir.Call("max", arguments):
            return max(of(a) for a in arguments)
        case ir.Call(function, arguments):
            return setting.functions(function, tuple(of(a) for a in arguments))


def _arithmetic(op: str, a: int, b: int) -> int:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b if b else 0
        case _:
            return a % b if b else 0


def _compare(op: str, a: int, b: int) -> bool:
    match op:
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case "==":
            return a == b
        case _:
            return a != b
