"""Wording: how are operations and statements called in messages?"""

from __future__ import annotations

from collections.abc import Iterable

from fencepost import ir
from fencepost.findings import Related
from fencepost.model.executor import Op
from fencepost.printer import print_expr

Sync = ir.SetCross | ir.WaitCross | ir.SyncSrc | ir.SyncDst
SYNC = (ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst)


def name(stmt: ir.Node) -> str:
    """The short name of an operation: its DSL name or its keyword."""
    match stmt:
        case ir.DataOp(op=op):
            return op
        case ir.SetCross():
            return "set_cross_core"
        case ir.WaitCross():
            return "wait_cross_core"
        case ir.SyncSrc():
            return "sync_src"
        case ir.SyncDst():
            return "sync_dst"
        case ir.MutexLock():
            return "mutex_lock"
        case ir.MutexUnlock():
            return "mutex_unlock"
        case ir.Barrier(pipe=pipe):
            return f"barrier {pipe}"
        case ir.SyncAll():
            return "sync_all"
        case ir.Push(receiver=receiver):
            return f"tpush_to_{'aiv' if receiver == 'vector' else 'aic'}"
        case ir.Pop(sender=sender):
            return f"tpop_from_{'aiv' if sender == 'vector' else 'aic'}"
        case ir.Free(sender=sender):
            return f"tfree_to_{'aiv' if sender == 'vector' else 'aic'}"
    return type(stmt).__name__.lower()


def statement(stmt: ir.Node) -> str:
    """A statement with its id as written: `set_cross_core READY[t % 2] on FIX`, `sync_src 0: V -> MTE3`."""
    match stmt:
        case ir.SetCross() | ir.WaitCross():
            return f"{name(stmt)} {print_expr(stmt.id)} on {stmt.pipe}"
        case ir.SyncSrc() | ir.SyncDst():
            return f"{name(stmt)} {print_expr(stmt.id)}: {stmt.source} -> {stmt.target}"
        case ir.MutexLock() | ir.MutexUnlock():
            return f"{name(stmt)} {print_expr(stmt.id)} on {stmt.pipe}"
    return name(stmt)


def describe(op: Op) -> str:
    """`move on FIX of aic`, with the id for synchronisation and the round where annotated."""
    return together([op])


def together(ops: list[Op]) -> str:
    """One textual operation as several agents run it: `wait_cross_core 0 on V of aiv0 and aiv1`."""
    stmt, pipe = ops[0].stmt, ops[0].effect.pipe[1]
    agents = " and ".join(dict.fromkeys(op.effect.agent for op in ops))
    text = statement(stmt)
    if not isinstance(stmt, (ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst, ir.MutexLock, ir.MutexUnlock)):
        text += f" on {pipe}"
    tasks = dict.fromkeys(op.task for op in ops)
    return (
        f"{text} of {agents}"
        if tasks.keys() != {ops[0].task} or ops[0].task is None
        else (f"{text} of {agents} (task {ops[0].task})")
    )


def twins(ops: Iterable[Op]) -> list[list[Op]]:
    """Operations grouped by their statement: what both vector sub-cores do is told once."""
    groups: dict[int, list[Op]] = {}
    for op in ops:
        groups.setdefault(id(op.stmt), []).append(op)
    return list(groups.values())


def at(op: Op) -> tuple[str, int]:
    """The operation as a fact keeps it: agent, number in its program."""
    return op.effect.agent, op.number


def related(op: Op, what: str) -> Related:
    """The place of an operation, introduced by `what` ("the write")."""
    return Related(op.stmt.span, f"{what}: {describe(op)}")
