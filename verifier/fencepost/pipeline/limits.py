"""Which expressions are too large to be taken into account?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fencepost import ir

_MAX_NODES = 2000
_MAX_DEPTH = 120


class Unreadable(Exception):
    """An expression or statement that cannot be taken into account; the message says why."""

    def __init__(self, message: str, span: ir.Span = ir.NOWHERE) -> None:
        super().__init__(message)
        self.span = span


@contextmanager
def limited(expr: ir.Expr) -> Iterator[None]:
    """Turns overflow of any kind, while `expr` is worked out, into `Unreadable`."""
    limit(expr)
    try:
        yield
    except RecursionError:
        raise Unreadable("a constant or bind is defined through too many others", expr.span) from None


def limit(expr: ir.Expr) -> None:
    """Refuse expressions that are too large to be handled by recursion."""
    count, level = 0, [expr]
    depth = 0
    while level:
        depth += 1
        count += len(level)
        if depth > _MAX_DEPTH or count > _MAX_NODES:
            raise Unreadable("an expression is too large", expr.span)
        level = [child for e in level for child in _operands(e)]


def _operands(expr: ir.Expr) -> Iterable[ir.Expr]:
    match expr:
        case ir.Int() | ir.Name():
            return ()
        case ir.Item(_, index) | ir.Field(_, index, _):
            return (index,)
        case ir.Unary(_, operand):
            return (operand,)
        case ir.Binary(_, left, right):
            return left, right
        case ir.Compare(first, rest):
            return first, *(operand for _, operand in rest)
        case ir.Logic(_, operands) | ir.Call(_, operands):
            return operands
        case ir.Choose(condition, then, other):
            return condition, then, other
