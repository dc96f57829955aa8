"""Which scalars of a kernel decide anything?  The others are taken out before a proof.

Addresses in GM are computed on the scalar unit (`row = t * 16`) and used as operands only.  They decide no branch,
bound, id, slot or round, but a prover that follows every scalar cannot fold a counter that is multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.passes.constants import bad_constants, can_be_bad


@dataclass(frozen=True, slots=True)
class Decisive:
    """The pass: the same kernel without scalar operands (`at`) and without scalars that nothing else reads.

    A scalar whose value can be bad (a remainder, a quotient, an element of a tuple or ring) stays.
    """

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel; the object itself if there is nothing to take out."""
        read: dict[str, set[str]] = {}
        needed: set[str] = set()
        bad = bad_constants(kernel)
        for item in kernel.body:
            for stmt in _statements((item,)):
                _collect(stmt, read, needed, bad)
        work = list(needed)
        while work:
            for name in read.get(work.pop(), ()):
                if name not in needed:
                    needed.add(name)
                    work.append(name)
        items = tuple(part for item in kernel.body for part in _item(item, needed, bad))
        return replace(kernel, body=items) if items != kernel.body else kernel


def _statements(items: tuple[ir.Section | ir.Stmt, ...]) -> Iterator[ir.Stmt]:
    stack: list[ir.Section | ir.Stmt] = list(reversed(items))
    while stack:
        item = stack.pop()
        match item:
            case ir.Section(body=body):
                stack += reversed(body)
                continue
            case ir.For(body=body) | ir.Pipelined(body=body):
                stack += reversed(body)
            case ir.If(branches=branches, orelse=orelse):
                stack += reversed([s for _, arm in branches for s in arm] + list(orelse))
            case _:
                pass
        yield item


def _collect(stmt: ir.Stmt, read: dict[str, set[str]], needed: set[str], bad: frozenset[str]) -> None:
    """Add what a statement itself needs; for a harmless assignment, only what its name would need."""
    match stmt:
        case ir.Assign(name=name, value=value) if not can_be_bad(value, bad):
            read.setdefault(name, set()).update(_names(value))
        case ir.If(branches=branches):
            for condition, _ in branches:
                needed |= _names(condition)
        case ir.For(start=start, stop=stop, step=step):
            needed |= _names(start) | _names(stop) | _names(step)
        case ir.Pipelined(start=start, stop=stop):
            needed |= _names(start) | _names(stop)
        case ir.DataOp():
            needed |= _names(replace(stmt, at=()))
            needed |= {name for e in stmt.at if can_be_bad(e, bad) for name in _names(e)}
        case _:
            needed |= _names(stmt)


def _names(node: ir.Node) -> set[str]:
    return {n.id for n in ir.walk(node) if isinstance(n, ir.Name)}


def _item(item: ir.Section | ir.Stmt, needed: set[str], bad: frozenset[str]) -> tuple[ir.Section | ir.Stmt, ...]:
    if isinstance(item, ir.Section):
        return (replace(item, body=_block(item.body, needed, bad)),)
    return _block((item,), needed, bad)


def _block(stmts: tuple[ir.Stmt, ...], needed: set[str], bad: frozenset[str]) -> tuple[ir.Stmt, ...]:
    out: list[ir.Stmt] = []
    for stmt in stmts:
        match stmt:
            case ir.Assign(name=name, value=value) if name not in needed and not can_be_bad(value, bad):
                continue
            case ir.DataOp(at=at) if at and not any(can_be_bad(e, bad) for e in at):
                out.append(replace(stmt, at=()))
            case ir.For(body=body) | ir.Pipelined(body=body):
                out.append(replace(stmt, body=_block(body, needed, bad)))
            case ir.If(branches=branches, orelse=orelse):
                arms = tuple((condition, _block(arm, needed, bad)) for condition, arm in branches)
                out.append(replace(stmt, branches=arms, orelse=_block(orelse, needed, bad)))
            case _:
                out.append(stmt)
    return tuple(out)
