"""Which names does a piece of a kernel read, and which does it define?

Names are scalars, SSA values and loop variables.  The state of a cursor and of a record ring is a name of its own
(`qk.next`, `ring[]`), so that code which moves it is never taken apart.  Declared buffers are memory, not names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from fencepost import ir


@dataclass(frozen=True, slots=True)
class Flow:
    """What a piece of code does with names.

    `exposed`: read before the code itself has surely defined them.  `must`: defined on every path.  `may`: defined on
    some path.  `jumps`: a `break` or `continue` may leave the code early.
    """

    exposed: frozenset[str] = frozenset()
    must: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    jumps: bool = False

    def then(self, other: Flow) -> Flow:
        """The flow of this code followed by `other`."""
        return Flow(
            self.exposed | (other.exposed - self.must),
            self.must if self.jumps else self.must | other.must,
            self.may | other.may,
            self.jumps or other.jumps,
        )


class Flows:
    """Flows of statements, each computed once; `buffers` are the declared buffers of the kernel."""

    def __init__(self, buffers: Iterable[str]) -> None:
        self._buffers = frozenset(buffers)
        self._known: dict[int, tuple[ir.Stmt, Flow]] = {}

    def of(self, stmt: ir.Stmt) -> Flow:
        """Return the flow of one statement."""
        known = self._known.get(id(stmt))
        if known is None:
            known = (stmt, self._compute(stmt))
            self._known[id(stmt)] = known
        return known[1]

    def of_all(self, body: Iterable[ir.Stmt]) -> Flow:
        """Return the flow of a statement list."""
        flow = Flow()
        for stmt in body:
            flow = flow.then(self.of(stmt))
        return flow

    def values(self, accesses: Sequence[ir.Access]) -> frozenset[str]:
        """The operands among `accesses` that are SSA values."""
        return frozenset(a.name for a in accesses if a.name not in self._buffers)

    def _compute(self, stmt: ir.Stmt) -> Flow:
        match stmt:
            case ir.Assign(name=name, value=value) | ir.Bind(name=name, value=value):
                return _plain(names(value), {name})
            case ir.StoreField(ring=ring, index=index, value=value):
                state = _ring(ring)
                return _plain(names(index, value) | {state}, {state})
            case ir.Cursor(name=name, buffer=buffer, move=move):
                state = f"{buffer}.next"
                return _plain({state}, {name, state} if move == "next" else {name})
            case ir.For(var=var, start=start, stop=stop, step=step, body=body):
                inner = self.of_all(body)
                return Flow(names(start, stop, step) | (inner.exposed - {var}), frozenset(), inner.may | {var})
            case ir.Pipelined(var=var, start=start, stop=stop, body=body):
                inner = self.of_all(body)
                return Flow(names(start, stop) | (inner.exposed - {var}), frozenset(), inner.may | {var})
            case ir.If(branches=branches, orelse=orelse):
                return self._branches(branches, orelse)
            case ir.Break() | ir.Continue():
                return Flow(jumps=True)
            case ir.Pass() | ir.Barrier() | ir.SyncAll() | ir.Unsupported():
                return Flow()
            case ir.Assert(condition=condition):
                return _plain(names(condition), ())
            case ir.SetCross(id=event, lane=lane) | ir.WaitCross(id=event, lane=lane):
                return _plain(names(event, lane), ())
            case ir.SyncSrc(id=event) | ir.SyncDst(id=event) | ir.MutexLock(id=event) | ir.MutexUnlock(id=event):
                return _plain(names(event), ())
            case ir.DataOp(writes=writes, reads=reads, task=task, at=at):
                slots = (e for a in (*writes, *reads) for e in (a.index, a.part, a.parts))
                return _plain(names(*slots, task, *at) | self.values(reads), self.values(writes))
            case ir.Push(value=value, id=event, task=task):
                return _plain(names(event, task) | self._value(value), ())
            case ir.Pop(value=value, id=event, task=task):
                return _plain(names(event, task), self._value(value))
            case ir.Free(value=value, id=event):
                return _plain(names(event) | self._value(value), ())
            case _:
                assert_never(stmt)

    def _value(self, name: str) -> frozenset[str]:
        return frozenset() if name in self._buffers else frozenset({name})

    def _branches(self, branches: tuple[tuple[ir.Expr, tuple[ir.Stmt, ...]], ...], orelse: tuple[ir.Stmt, ...]) -> Flow:
        arms = [*(self.of_all(body) for _, body in branches), self.of_all(orelse)]
        return Flow(
            names(*(condition for condition, _ in branches)).union(*(arm.exposed for arm in arms)),
            frozenset.intersection(*(arm.must for arm in arms)),
            frozenset[str]().union(*(arm.may for arm in arms)),
            any(arm.jumps for arm in arms),
        )


def names(*expressions: ir.Expr | None) -> frozenset[str]:
    """Return every name that the expressions read, the state of rings included."""
    found: set[str] = set()
    for expression in expressions:
        if expression is None:
            continue
        for node in ir.walk(expression):
            if isinstance(node, ir.Name):
                found.add(node.id)
            elif isinstance(node, ir.Field):
                found.add(_ring(node.ring))
    return frozenset(found)


def _ring(ring: str) -> str:
    return f"{ring}[]"


def _plain(exposed: Iterable[str], defined: Iterable[str]) -> Flow:
    written = frozenset(defined)
    return Flow(frozenset(exposed), written, written)


_STORES = ("store", "assemble", "atomic", "mscatter")


def stored(stmt: ir.DataOp) -> ir.Access | None:
    """The operand that stands for the memory that a store writes; None if the operation is no store, or has none.

    Either the tensor is the last operand that is read and what is written is a name for its next state (`store g_1 <-
    tile, g`), or it is only written (`store g <- tile`).
    """
    if not stmt.op.startswith(_STORES):
        return None
    if len(stmt.reads) > 1 and stmt.op != "store_fp":  # the second operand of that one is a table of scales
        return stmt.reads[-1]
    return stmt.writes[0] if stmt.writes else None


def all_names(kernel: ir.Kernel) -> set[str]:
    """Return every identifier that occurs in the kernel in any role."""
    found = {kernel.name, *kernel.parameters, *ir.BUILTINS, *ir.INTERPRETED}
    for node in ir.walk(kernel):
        for role in ("id", "name", "var", "value", "ring", "buffer", "function", "field"):
            text = getattr(node, role, None)
            if isinstance(text, str):
                found.add(text)
    return found
