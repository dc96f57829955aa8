"""Which scalars, loops and branches of a kernel does any operation depend on?  The others are taken out.

The result issues the same operations in the same order, pipe by pipe.  Scalar expressions that nobody needs are gone,
and with them the faults that they could be (a negative remainder, an index out of range): check those elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.rewrite import rebuild

_SCALAR = (ir.Assign, ir.StoreField, ir.Cursor, ir.Pass, ir.Break, ir.Continue, ir.For, ir.If)


@dataclass(frozen=True, slots=True)
class Slices:
    """The pass."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel; an equal one if there is nothing to take out."""
        while True:
            smaller = self._once(kernel)
            if smaller == kernel:
                return kernel
            kernel = smaller  # branches that came to do the same have lost their conditions

    def _once(self, kernel: ir.Kernel) -> ir.Kernel:
        outside = tuple(item for item in kernel.body if not isinstance(item, ir.Section))
        everything: set[str] = set()
        body: dict[int, ir.Section | None] = {}
        for number, item in enumerate(kernel.body):
            if isinstance(item, ir.Section):
                needed = needs((*outside, *item.body))
                everything |= needed
                body[number] = replace(item, body=_block(item.body, needed) or (ir.Pass(span=item.span),))
        if not any(isinstance(item, ir.Section) for item in kernel.body):
            everything = needs(outside)
        items: list[ir.Section | ir.Stmt] = []
        for number, item in enumerate(kernel.body):
            if isinstance(item, ir.Section):
                kept = body[number]
                assert kept is not None
                items.append(kept)
            else:
                items += _block((item,), everything)
        return replace(kernel, body=tuple(items))


def needs(body: Iterable[ir.Stmt], wanted: Iterable[str] = (), *, operations: bool = True) -> set[str]:
    """The scalars, fields (`ring.field`) and cursors (`buffer.next`) on which operations, or the `wanted` ones, depend.

    Args:
        operations: whether operations count; else only what `wanted` depends on is found.
    """
    body = tuple(body)
    found = set(wanted)
    marking = _Marking(found, operations)
    while True:
        before = len(found)
        marking.block(body)
        if len(found) == before:
            return found


@dataclass(slots=True)
class _Marking:
    """Passes over a program, each of which adds what kept statements read to `needed`.

    `read`: what the statements read that were met already, by identity.
    """

    needed: set[str]
    operations: bool
    read: dict[int, set[str]] = field(default_factory=dict)

    def block(self, body: Iterable[ir.Stmt]) -> bool:
        """Whether anything in a block is kept, jumps aside."""
        kept = False
        for stmt in body:
            kept |= self.statement(stmt)
        return kept

    def statement(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.For(start=start, stop=stop, step=step, body=body):
                kept = self.block(body)
                if kept:
                    self.needed |= self._reads(stmt, start, stop, step)
                    self._jumping(body)
                return kept
            case ir.If(branches=branches, orelse=orelse):
                arms = [self.block(arm) for _, arm in branches]
                kept = self.block(orelse) or any(arms)
                if kept:
                    self.needed |= self._reads(stmt, *(condition for condition, _ in branches))
                return kept
            case _:
                kept = _kept(stmt, self.needed, self.operations)
                if kept:
                    if id(stmt) not in self.read:
                        self.read[id(stmt)] = _own(stmt)
                    self.needed |= self.read[id(stmt)]
                return kept

    def _reads(self, stmt: ir.Stmt, *expressions: ir.Expr) -> set[str]:
        found = self.read.get(id(stmt))
        if found is None:
            found = self.read[id(stmt)] = reads(*expressions)
        return found

    def _jumping(self, body: Iterable[ir.Stmt]) -> None:
        """The conditions of the jumps in the body of a kept loop decide too."""
        for stmt in body:
            if isinstance(stmt, ir.If) and jumps(stmt):
                self.needed |= reads(*(condition for condition, _ in stmt.branches))
                for _, arm in stmt.branches:
                    self._jumping(arm)
                self._jumping(stmt.orelse)


def jumps(stmt: ir.Stmt) -> bool:
    """Whether a statement may leave the loop around it early, or the trip."""
    match stmt:
        case ir.Break() | ir.Continue():
            return True
        case ir.If(branches=branches, orelse=orelse):
            return any(jumps(s) for arm in (*(b for _, b in branches), orelse) for s in arm)
    return False


def reads(*nodes: ir.Node | None) -> set[str]:
    """The scalars and fields that expressions read."""
    found: set[str] = set()
    for node in nodes:
        if node is None:
            continue
        for n in ir.walk(node):
            if isinstance(n, ir.Name):
                found.add(n.id)
            elif isinstance(n, ir.Field):
                found.add(f"{n.ring}.{n.field}")
    return found


def _own(stmt: ir.Stmt) -> set[str]:
    return reads(stmt) | ({f"{stmt.buffer}.next"} if isinstance(stmt, ir.Cursor) else set())


def _kept(stmt: ir.Stmt, needed: set[str], operations: bool) -> bool:
    match stmt:
        case ir.Assign(name=name):
            return name in needed
        case ir.StoreField(ring=ring, field=name):
            return f"{ring}.{name}" in needed
        case ir.Cursor(name=name, buffer=buffer, move=move):
            return name in needed or (move == "next" and f"{buffer}.next" in needed)
        case ir.Pass() | ir.Break() | ir.Continue():
            return False
    return operations


def select(body: Iterable[ir.Stmt], needed: set[str]) -> tuple[ir.Stmt, ...]:
    """The scalar statements of a program that `needed` keeps, without any operation."""
    return _block(tuple(body), needed, operations=False)


def _block(body: tuple[ir.Stmt, ...], needed: set[str], *, operations: bool = True) -> tuple[ir.Stmt, ...]:
    found: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.For(body=inner):
                kept = _block(inner, needed, operations=operations)
                if any(_acts(s) for s in kept):
                    found.append(replace(stmt, body=kept))
            case ir.If(branches=branches, orelse=orelse):
                arms = [(condition, _block(arm, needed, operations=operations)) for condition, arm in branches]
                found += merged(arms, _block(orelse, needed, operations=operations), stmt.span)
            case ir.Break() | ir.Continue():
                found.append(stmt)
            case ir.DataOp() if operations and found and _repeats(stmt, found[-1]):
                continue
            case _ if _kept(stmt, needed, operations):
                found.append(stmt)
    return tuple(found)


def _repeats(stmt: ir.DataOp, before: ir.Stmt) -> bool:
    """Whether an operation accesses what the one just before it on the same pipe did: nothing comes in between."""
    return stmt.phase is None and isinstance(before, ir.DataOp) and replace(stmt, op="") == replace(before, op="")


def _acts(stmt: ir.Stmt) -> bool:
    """Whether a statement does more than leave a loop."""
    if isinstance(stmt, ir.If):
        return any(_acts(s) for arm in (*(b for _, b in stmt.branches), stmt.orelse) for s in arm)
    return not isinstance(stmt, ir.Break | ir.Continue | ir.Pass)


def merged(
    arms: list[tuple[ir.Expr, tuple[ir.Stmt, ...]]], rest: tuple[ir.Stmt, ...], span: ir.Span
) -> tuple[ir.Stmt, ...]:
    """A branch as branches inside each other, without conditions that make no difference."""
    for condition, body in reversed(arms):
        if not alike(body, rest):
            rest = (ir.If(((condition, body or (ir.Pass(span=span),)),), rest, span=span),)
    return rest


def alike(a: tuple[ir.Stmt, ...], b: tuple[ir.Stmt, ...]) -> bool:
    """Whether two bodies differ in the names of their operations alone."""

    def nameless(node: ir.Node) -> ir.Node:
        return replace(node, op="") if isinstance(node, ir.DataOp) else node

    return len(a) == len(b) and all(rebuild(x, nameless) == rebuild(y, nameless) for x, y in zip(a, b, strict=True))
