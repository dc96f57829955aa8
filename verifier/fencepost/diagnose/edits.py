"""Edits: the kernel with one statement moved, removed or replaced.

Everything that an edit does not touch stays the same object, so a fault elsewhere is recognised in the edited kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fencepost import ir
from fencepost.diagnose.texts import SYNC, Sync
from fencepost.model.once import once

Body = tuple[ir.Stmt, ...]

_FLAGS = 8  # ids of sync_src and sync_dst that every target has


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


@once
def _holders(kernel: ir.Kernel) -> dict[int, tuple[tuple[int, Body, int], ...]]:
    """id(statement) -> the statement lists that it is in, at any depth, outermost first.

    Each with its number (in the order of `bodies`) and the place of the member that is, or holds, the statement.
    """
    found: dict[int, tuple[tuple[int, Body, int], ...]] = {}
    inside: dict[int, tuple[tuple[int, Body, int], ...]] = {}
    for number, body in enumerate(bodies(kernel)):
        around = inside.get(id(body), ())
        for at, stmt in enumerate(body):
            place = (*around, (number, body, at))
            found.setdefault(id(stmt), place)
            match stmt:
                case ir.For(body=inner) | ir.Pipelined(body=inner):
                    inside.setdefault(id(inner), place)
                case ir.If():
                    for _, inner in stmt.branches:
                        inside.setdefault(id(inner), place)
                    inside.setdefault(id(stmt.orelse), place)
    return found


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
    """The list that `sync` stands in, its place there, and that of the later (earlier) member that holds `access`."""
    holders = _holders(kernel)
    if id(sync) not in holders:
        return None
    number, body, at = holders[id(sync)][-1]
    to = next((place for other, _, place in holders.get(id(access), ()) if other == number), None)
    if to is None or (to <= at if behind else to >= at):
        return None
    return body, at, to


def removed(kernel: ir.Kernel, stmt: ir.Stmt) -> ir.Kernel:
    """The kernel without one statement."""
    return replace_statements(kernel, {id(stmt): ir.Pass(span=stmt.span)})


def ordered(kernel: ir.Kernel, source: ir.Pipe, target: ir.Pipe, access: ir.Node) -> ir.Kernel | None:
    """The kernel with a flag just before `access` that makes pipe `target` wait for pipe `source`.

    None if no flag is known to be free.
    """
    flags = [n for n in syncs(kernel) if isinstance(n, (ir.SyncSrc, ir.SyncDst))]
    if any(n.source == source and n.target == target and not isinstance(n.id, ir.Int) for n in flags):
        return None
    used = {n.id.value for n in flags if n.source == source and n.target == target and isinstance(n.id, ir.Int)}
    free = next((i for i in range(_FLAGS) if i not in used), None)
    if free is None or id(access) not in _holders(kernel):
        return None
    _, body, at = _holders(kernel)[id(access)][-1]
    pair = tuple(kind(ir.Int(free), source, target, span=access.span) for kind in (ir.SyncSrc, ir.SyncDst))
    return replace_body(kernel, body, (*body[:at], *pair, *body[at:]))


def nearness(kernel: ir.Kernel, sync: ir.Stmt, access: ir.Node) -> int:
    """How deep the innermost statement list is that holds `sync` itself and, at any depth, the access; -1 for none."""
    holders = _holders(kernel)
    if id(sync) not in holders:
        return -1
    number = holders[id(sync)][-1][0]
    return number if any(other == number for other, _, _ in holders.get(id(access), ())) else -1


def syncs(kernel: ir.Kernel, core: ir.Core | None = None) -> list[Sync]:
    """The synchronisation statements of the kernel (of one core's sections), in text order."""
    return [sync for sync, place in _syncs(kernel) if core is None or place in (None, core)]


@once
def _syncs(kernel: ir.Kernel) -> tuple[tuple[Sync, ir.Core | None], ...]:
    """All of them, each with the core of its section."""
    return tuple(
        (n, item.core if isinstance(item, ir.Section) else None)
        for item in kernel.body
        for n in ir.walk(item)
        if isinstance(n, SYNC)
    )


def core_of(agent: str) -> ir.Core:
    return "cube" if agent == "aic" else "vector"
