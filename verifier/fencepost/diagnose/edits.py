"""Edits: the kernel with one statement moved, removed or replaced.

Everything that an edit does not touch stays the same object, so a fault elsewhere is recognised in the edited kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fencepost import ir
from fencepost.diagnose.texts import SYNC, Sync

Body = tuple[ir.Stmt, ...]


def bodies(kernel: ir.Kernel) -> Iterator[Body]:
    """Every statement list of the kernel, outermost first."""
    for node in ir.walk(kernel):
        match node:
            case ir.Section(body=body) | ir.For(body=body) | ir.Pipelined(body=body):
                yield body
            case ir.If():
                for _, body in node.branches:
                    yield body
                if node.orelse:
                    yield node.orelse


def replace_body(kernel: ir.Kernel, old: Body, new: Body) -> ir.Kernel:
    """The kernel with the statement list `old` (by identity) replaced by `new`."""
    return _rebuild(kernel, {id(old): new}, {})


def replace_statements(kernel: ir.Kernel, changes: dict[int, ir.Stmt]) -> ir.Kernel:
    """The kernel with statements replaced; `changes` maps id(statement) to its replacement."""
    return _rebuild(kernel, {}, changes)


def _rebuild(kernel: ir.Kernel, lists: dict[int, Body], statements: dict[int, ir.Stmt]) -> ir.Kernel:
    def body(old: Body) -> Body:
        new = tuple(statement(s) for s in lists.get(id(old), old))
        return old if len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True)) else new

    def statement(old: ir.Stmt) -> ir.Stmt:
        if id(old) in statements:
            return statements[id(old)]
        match old:
            case ir.For() | ir.Pipelined():
                inner = body(old.body)
                return old if inner is old.body else replace(old, body=inner)
            case ir.If():
                branches = tuple((c, body(b)) for c, b in old.branches)
                orelse = body(old.orelse)
                same = orelse is old.orelse and all(a[1] is b[1] for a, b in zip(branches, old.branches, strict=True))
                return old if same else replace(old, branches=branches, orelse=orelse)
        return old

    items: list[ir.Section | ir.Stmt] = []
    for item in kernel.body:
        items.append(replace(item, body=body(item.body)) if isinstance(item, ir.Section) else statement(item))
    return replace(kernel, body=tuple(items))


def contains(stmt: ir.Stmt, inner: ir.Node) -> bool:
    return any(node is inner for node in ir.walk(stmt))


def moved(kernel: ir.Kernel, sync: ir.Stmt, access: ir.Node, *, behind: bool) -> ir.Kernel | None:
    """`sync` moved behind the later (or before the earlier) statement of its list that holds `access`, if any."""
    found = _places(kernel, sync, access, behind=behind)
    if found is None:
        return None
    body, at, to = found
    rest = [*body[:at], *body[at + 1 :]]
    rest.insert(to, sync)
    return replace_body(kernel, body, tuple(rest))


def precedes(kernel: ir.Kernel, sync: ir.Stmt, access: ir.Node) -> bool:
    """Whether `access` stands in a later statement of the list that `sync` stands in."""
    return _places(kernel, sync, access, behind=True) is not None


def _places(kernel: ir.Kernel, sync: ir.Stmt, access: ir.Node, *, behind: bool) -> tuple[Body, int, int] | None:
    for body in bodies(kernel):
        at = next((i for i, s in enumerate(body) if s is sync), None)
        if at is None:
            continue
        places = range(at + 1, len(body)) if behind else range(at)
        to = next((i for i in places if contains(body[i], access)), None)
        return None if to is None else (body, at, to)
    return None


def removed(kernel: ir.Kernel, stmt: ir.Stmt) -> ir.Kernel:
    """The kernel without one statement."""
    return replace_statements(kernel, {id(stmt): ir.Pass(span=stmt.span)})


def nearness(kernel: ir.Kernel, sync: ir.Stmt, access: ir.Node) -> int:
    """How deep the innermost statement list is that holds `sync` itself and, at any depth, the access; -1 for none."""
    found = -1
    for depth, body in enumerate(bodies(kernel)):
        if any(s is sync for s in body) and any(contains(s, access) for s in body):
            found = depth
    return found


def syncs(kernel: ir.Kernel, core: ir.Core | None = None) -> list[Sync]:
    """The synchronisation statements of the kernel (of one core's sections), in text order."""
    roots: list[ir.Node] = [
        item for item in kernel.body if core is None or not isinstance(item, ir.Section) or item.core == core
    ]
    return [n for root in roots for n in ir.walk(root) if isinstance(n, SYNC)]


def core_of(agent: str) -> ir.Core:
    return "cube" if agent == "aic" else "vector"
