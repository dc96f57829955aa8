"""What does the text of an expression tell by itself?"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from fencepost import ir


def names_in(expr: ir.Expr) -> set[str]:
    """The names of an expression, those of its functions included."""
    nodes = list(ir.walk(expr))
    return {n.id for n in nodes if isinstance(n, ir.Name)} | {n.function for n in nodes if isinstance(n, ir.Call)}


def is_test(node: ast.expr) -> bool:
    """Whether an expression gives True or False and nothing else."""
    match node:
        case ast.Compare() | ast.UnaryOp(ast.Not()):
            return True
        case ast.Constant(value):
            return isinstance(value, bool)
        case ast.BoolOp(_, parts):
            return all(is_test(p) for p in parts)
        case _:
            return False


def returned(function: ast.FunctionDef) -> list[ast.expr | None]:
    """What a function may give."""
    return [n.value for s in function.body for n in ast.walk(s) if isinstance(n, ast.Return)]


def defaults(arguments: ast.arguments) -> list[ast.expr]:
    """The default values of a function."""
    return [*arguments.defaults, *filter(None, arguments.kw_defaults)]


def children(node: ast.AST) -> Iterable[ast.expr]:
    """The expressions right below an expression, those of its comprehensions included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.comprehension):
            yield from (child.iter, *child.ifs)
        elif isinstance(child, ast.keyword):
            yield child.value


def ends(entry: ast.Slice) -> list[ast.expr]:
    """What a slice names: start, end and step, as far as they are written."""
    return [e for e in (entry.lower, entry.upper, entry.step) if e is not None]


def compared(op: ast.cmpop, a: object, b: object) -> bool:
    """What a comparison of two constants gives.

    Raises:
        TypeError: Python refuses it, or it does not depend on the values alone.
        KeyError: it is no comparison of numbers.
    """
    match op:
        case ast.Eq():
            return a == b
        case ast.NotEq():
            return a != b
        case ast.Is() | ast.IsNot():
            if not any(one is None or isinstance(one, bool) for one in (a, b)):
                raise TypeError  # equal numbers may be one object or two
            return (a is b) is isinstance(op, ast.Is)
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        raise TypeError
    match op:
        case ast.Lt():
            return a < b
        case ast.LtE():
            return a <= b
        case ast.Gt():
            return a > b
        case ast.GtE():
            return a >= b
    raise KeyError
