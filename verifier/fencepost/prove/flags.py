"""Flags: which of them order nothing but what one agent keeps to itself?

An agent that blocks as a whole at a wait finds a flag set, or not, whatever the others do: that no flag is awaited in
vain, set twice or left set can be shown on each agent alone.  What several agents share needs only the order that flags
carry, and hardly ever that of flags which come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fencepost import ir

Flag = ir.SyncSrc | ir.SyncDst


def without_credits(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel without the flags that are awaited elsewhere than right after they are set.

    Left out are all flags of a direction for which that is so anywhere, and flags in branches that do nothing else.
    """
    body = tuple(
        replace(item, body=_without(item.body, frozenset(_coming_back(item.body))))
        if isinstance(item, ir.Section)
        else item
        for item in kernel.body
    )
    return replace(kernel, body=body)


def _coming_back(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[str, str]]:
    """The directions of flags that are set and not awaited next, or awaited where they were not set just before."""
    previous: ir.Stmt | None = None
    for stmt in (*body, None):
        if isinstance(previous, ir.SyncSrc) and not (isinstance(stmt, ir.SyncDst) and _matching(previous, stmt)):
            yield previous.source, previous.target
        if isinstance(stmt, ir.SyncDst) and not (isinstance(previous, ir.SyncSrc) and _matching(previous, stmt)):
            yield stmt.source, stmt.target
        for block in _inner(stmt):
            yield from _coming_back(block)
        previous = stmt


def _matching(one: Flag, other: Flag) -> bool:
    return (one.id, one.source, one.target) == (other.id, other.source, other.target)


def _inner(stmt: ir.Stmt | None) -> Iterator[tuple[ir.Stmt, ...]]:
    match stmt:
        case ir.For(body=body):
            yield body
        case ir.If(branches=branches, orelse=orelse):
            yield from (arm for _, arm in branches)
            yield orelse


def _without(body: tuple[ir.Stmt, ...], dropped: frozenset[tuple[str, str]]) -> tuple[ir.Stmt, ...]:
    kept: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.SyncSrc() | ir.SyncDst() if (stmt.source, stmt.target) in dropped:
                continue
            case ir.For(body=inner):
                kept.append(replace(stmt, body=_without(inner, dropped)))
            case ir.If(branches=branches, orelse=orelse):
                arms = tuple((condition, _arm(arm, dropped)) for condition, arm in branches)
                kept.append(replace(stmt, branches=arms, orelse=_arm(orelse, dropped)))
            case _:
                kept.append(stmt)
    return tuple(kept)


def _arm(body: tuple[ir.Stmt, ...], dropped: frozenset[tuple[str, str]]) -> tuple[ir.Stmt, ...]:
    if all(isinstance(stmt, Flag | ir.Pass) for stmt in body):
        return ()
    return _without(body, dropped)
