"""How are expressions evaluated, and statements copied with new names and another loop variable?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar, cast

from fencepost import ir
from fencepost.scope import binary

_N = TypeVar("_N", bound=ir.Node)

Constants = Mapping[str, int]


def constant(expression: ir.Expr, constants: Constants) -> int | None:
    """Return the value of an expression over the integer constants of a kernel, or None if it is not constant.

    Only `+ - *`, unary minus, and `//` `%` with a non-zero right side are evaluated; anything else is not constant.
    """
    values: dict[int, int] = {}
    for node in _postorder(expression):
        value: int | None = None
        match node:
            case ir.Int(value=number):
                value = number
            case ir.Name(id=name):
                value = constants.get(name)
            case ir.Unary(op="-", operand=operand):
                value = -values[id(operand)]
            case ir.Binary(op=op, left=left, right=right):
                value = binary(op, values[id(left)], values[id(right)])
            case _:
                pass
        if value is None:
            return None
        values[id(node)] = value
    return values[id(expression)]


def offset(name: str, distance: int, span: ir.Span) -> ir.Expr:
    """The expression `name + distance`, written as people write it (`k`, `k + 2`, `k - 2`)."""
    base = ir.Name(name, span=span)
    if distance == 0:
        return base
    return ir.Binary("+" if distance > 0 else "-", base, ir.Int(abs(distance), span=span), span=span)


def substitute(node: _N, values: Mapping[str, ir.Expr]) -> _N:
    """Replace names of an expression by expressions; sums, differences and products of two integers are computed.

    `//`, `%` and comparisons stay as they are: they are where an operand can be wrong.
    """
    if not values:
        return node

    def leaf(current: ir.Node) -> ir.Node:
        if isinstance(current, ir.Name):
            return values.get(current.id, current)
        if isinstance(current, ir.Binary) and current.op in ("+", "-", "*"):
            left, right = current.left, current.right
            if isinstance(left, ir.Int) and isinstance(right, ir.Int):
                number = binary(current.op, left.value, right.value)
                if number is not None:
                    return ir.Int(number, span=current.span)
        return current

    return cast(_N, rebuild(node, leaf))


def rebuild(root: ir.Node, change: Callable[[ir.Node], ir.Node]) -> ir.Node:
    """Rebuild a tree from the leaves up, without recursion; `change` maps each node with its new children."""
    new: dict[int, ir.Node] = {}
    for node in _postorder(root):
        if id(node) in new:
            continue
        changes: dict[str, object] = {}
        for name in ir.parts(node):
            old = getattr(node, name)
            value = _renew(old, new)
            if value is not old:
                changes[name] = value
        new[id(node)] = change(replace(node, **changes) if changes else node)  # type: ignore[arg-type]
    return new[id(root)]


def _renew(value: object, new: Mapping[int, ir.Node]) -> object:
    if isinstance(value, ir.Node):
        return new[id(value)]
    if isinstance(value, tuple):
        items = tuple(_renew(item, new) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value


def _postorder(root: ir.Node) -> list[ir.Node]:
    stack, order = [root], []
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(ir.children(node))
    return order[::-1]


def copy(stmt: ir.Stmt, values: Mapping[str, ir.Expr], renamed: Mapping[str, str]) -> ir.Stmt:
    """Copy a statement: names in `renamed` get their new names, and names in `values` become expressions.

    `renamed` covers definitions and uses.  No name of `values` may be defined inside the statement.
    """
    return _copied(stmt, {**{old: ir.Name(name) for old, name in renamed.items()}, **values}, renamed)


def _copied(stmt: ir.Stmt, reads: Mapping[str, ir.Expr], renamed: Mapping[str, str]) -> ir.Stmt:
    def name(old: str) -> str:
        return renamed.get(old, old)

    def expr(old: ir.Expr) -> ir.Expr:
        return substitute(old, reads)

    def body(stmts: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return tuple(_copied(s, reads, renamed) for s in stmts)

    def access(old: ir.Access) -> ir.Access:
        return replace(substitute(old, reads), name=name(old.name))

    match stmt:
        case ir.Assign() | ir.Bind():
            return replace(stmt, name=name(stmt.name), value=expr(stmt.value))
        case ir.Cursor():
            return replace(stmt, name=name(stmt.name))
        case ir.For():
            return replace(
                stmt,
                var=name(stmt.var),
                start=expr(stmt.start),
                stop=expr(stmt.stop),
                step=expr(stmt.step),
                body=body(stmt.body),
            )
        case ir.Pipelined():
            return replace(
                stmt,
                var=name(stmt.var),
                start=expr(stmt.start),
                stop=expr(stmt.stop),
                body=body(stmt.body),
            )
        case ir.If():
            return replace(
                stmt,
                branches=tuple((expr(condition), body(arm)) for condition, arm in stmt.branches),
                orelse=body(stmt.orelse),
            )
        case ir.DataOp():
            return replace(
                stmt,
                writes=tuple(access(a) for a in stmt.writes),
                reads=tuple(access(a) for a in stmt.reads),
                task=None if stmt.task is None else expr(stmt.task),
                at=tuple(expr(e) for e in stmt.at),
            )
        case ir.Push() | ir.Pop():
            task = None if stmt.task is None else expr(stmt.task)
            return replace(stmt, value=name(stmt.value), id=expr(stmt.id), task=task)
        case ir.Free():
            return replace(stmt, value=name(stmt.value), id=expr(stmt.id))
        case _:
            return substitute(stmt, reads)
