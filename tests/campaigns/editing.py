"""How is a kernel changed in one place?  Paths to statement lists, and substitution of expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from fencepost import ir

Body = tuple[ir.Stmt, ...]
Path = tuple[tuple[int, int], ...]
"""The way to a statement list: (statement, which of its lists) from the kernel down."""

N = TypeVar("N", bound=ir.Node)


def inner(node: ir.Node) -> list[Body]:
    """The statement lists directly inside a section or statement."""
    match node:
        case ir.Section(body=body) | ir.For(body=body) | ir.Pipelined(body=body):
            return [body]
        case ir.If(branches=branches, orelse=orelse):
            return [b for _, b in branches] + ([orelse] if orelse else [])
    return []


def bodies(kernel: ir.Kernel) -> Iterator[tuple[Path, Body]]:
    """Every statement list with the path to it, outer lists first; the kernel's own list has the empty path."""
    queue: list[tuple[Path, tuple[ir.Node, ...]]] = [((), kernel.body)]
    while queue:
        path, body = queue.pop(0)
        yield path, cast(Body, body)
        for i, stmt in enumerate(body):
            queue += [((*path, (i, j)), b) for j, b in enumerate(inner(stmt))]


def with_body(kernel: ir.Kernel, path: Path, new: tuple[Any, ...]) -> ir.Kernel:
    """The kernel with another statement list at `path`."""

    def rebuild(body: tuple[Any, ...], rest: Path) -> tuple[Any, ...]:
        if not rest:
            return new
        (at, which), *more = rest
        return (*body[:at], _with_list(body[at], which, rebuild(inner(body[at])[which], tuple(more))), *body[at + 1 :])

    return replace(kernel, body=rebuild(kernel.body, path))


def _with_list(node: Any, which: int, body: Body) -> Any:
    if isinstance(node, ir.If):
        if which < len(node.branches):
            branches = list(node.branches)
            branches[which] = (branches[which][0], body)
            return replace(node, branches=tuple(branches))
        return replace(node, orelse=body)
    return replace(node, body=body)


def substitute(node: N, old: ir.Node, new: ir.Node) -> N:
    """`node` with the node `old` (by identity) replaced by `new`."""

    def changed(value: Any) -> Any:
        if value is old:
            return new
        if isinstance(value, ir.Node):
            return substitute(value, old, new)
        if isinstance(value, tuple):
            items = tuple(changed(v) for v in value)
            return value if all(a is b for a, b in zip(items, value, strict=True)) else items
        return value

    edits = {}
    for f in fields(node):
        if f.name != "span":
            before = getattr(node, f.name)
            after = changed(before)
            if after is not before:
                edits[f.name] = after
    return replace(node, **edits) if edits else node


def expressions(stmt: ir.Node) -> list[ir.Node]:
    """The expression nodes of a statement itself, not of the statements inside it."""
    found: list[ir.Node] = []
    lists = inner(stmt)

    def visit(value: Any) -> None:
        if isinstance(value, tuple):
            if not any(value is b for b in lists):
                for v in value:
                    visit(v)
        elif isinstance(value, ir.Node):
            if isinstance(value, ir.Expr):
                found.append(value)
            for f in fields(value):
                visit(getattr(value, f.name))

    for f in fields(stmt):
        visit(getattr(stmt, f.name))
    return found
