"""Wording: how are operations, channels and slots called in messages?"""

from __future__ import annotations

from fencepost import ir
from fencepost.model.effects import Touch
from fencepost.model.executor import Op, Run


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


def describe(op: Op) -> str:
    """`move on FIX of aic`, with the id for synchronisation and the round where annotated."""
    effect = op.effect
    text = name(effect.stmt)
    if isinstance(effect.stmt, (ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst)):
        text += f" {effect.arguments[0]}"
    text += f" on {effect.pipe[1]} of {effect.agent}"
    return text if op.task is None else f"{text} (task {op.task})"


def slot(touch: Touch) -> str:
    return str(touch.slot)


def channel(run: Run, number: int) -> str:
    return str(run.channels[number])


def line(op: Op) -> str:
    return f"line {op.stmt.span.line}"


def family(op: Op) -> object:
    """What the channels of one textual protocol share: the name of the id tuple, or else the id."""
    stmt = op.stmt
    if isinstance(stmt, (ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst)):
        names = [n.name for n in ir.walk(stmt.id) if isinstance(n, ir.Item)]
        return names[0] if names else op.effect.arguments[0]
    return None


def plural(count: int, word: str) -> str:
    """`1 signal`, `2 signals`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
