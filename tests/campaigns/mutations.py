"""What are the one-place faults of a kernel?  Mutation operators on the kernel IR.

Every operator yields (what it did, the mutant).  A mutant may be ill-formed, equal in effect to its origin, or wrong;
the callers find out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from fencepost import ir
from fencepost.printer import print_expr, print_statement

from .editing import bodies, expressions, substitute, with_body

Mutant = tuple[str, ir.Kernel]
SYNCS = (
    ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst, ir.MutexLock, ir.MutexUnlock, ir.Barrier, ir.SyncAll,
    ir.Push, ir.Pop, ir.Free, ir.Cursor,
)  # fmt: skip
PIPES: dict[ir.Core, tuple[ir.Pipe, ...]] = {"cube": ("FIX", "M", "MTE1", "S"), "vector": ("V", "MTE3", "MTE2", "S")}


def mutants(kernel: ir.Kernel) -> Iterator[Mutant]:
    """All mutants of a kernel, operator by operator."""
    for operator in OPERATORS:
        yield from operator(kernel)


def text(stmt: ir.Node) -> str:
    return f"line {stmt.span.line}: {print_statement(stmt)}"  # type: ignore[arg-type]


def drop(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Leave out one synchronisation."""
    for path, body in bodies(kernel):
        for i, stmt in enumerate(body):
            if isinstance(stmt, SYNCS):
                yield f"drop {text(stmt)}", with_body(kernel, path, (*body[:i], *body[i + 1 :]))


def duplicate(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Do one synchronisation twice."""
    for path, body in bodies(kernel):
        for i, stmt in enumerate(body):
            if isinstance(stmt, SYNCS):
                yield f"duplicate {text(stmt)}", with_body(kernel, path, (*body[: i + 1], *body[i:]))


def swap(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Exchange a synchronisation with its neighbour."""
    for path, body in bodies(kernel):
        for i in range(len(body) - 1):
            one, two = body[i], body[i + 1]
            if isinstance(one, SYNCS) or isinstance(two, SYNCS):
                new = (*body[:i], two, one, *body[i + 2 :])
                yield f"swap {text(one)} with {text(two)}", with_body(kernel, path, new)


def move(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Move a synchronisation out of its loop or branch, before and behind it."""
    for path, body in bodies(kernel):
        if len(path) < 2:
            continue
        at, _ = path[-1]
        for i, stmt in enumerate(body):
            if not isinstance(stmt, SYNCS):
                continue
            without = with_body(kernel, path, (*body[:i], *body[i + 1 :]) or (ir.Pass(),))
            outer = next(b for p, b in bodies(without) if p == path[:-1])
            for word, place in (("before", at), ("behind", at + 1)):
                new = (*outer[:place], stmt, *outer[place:])
                yield f"move {text(stmt)} {word} its block", with_body(without, path[:-1], new)


def repipe(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Issue one operation to another pipe."""
    for path, body in bodies(kernel):
        if not path:
            continue
        section = kernel.body[path[0][0]]
        core: ir.Core = section.core if isinstance(section, ir.Section) else "cube"
        for i, stmt in enumerate(body):
            if isinstance(stmt, (ir.SetCross, ir.WaitCross, ir.DataOp, ir.MutexLock, ir.MutexUnlock)):
                for pipe in PIPES[core]:
                    if pipe != stmt.pipe:
                        new = (*body[:i], replace(stmt, pipe=pipe), *body[i + 1 :])
                        yield f"pipe {pipe} for {text(stmt)}", with_body(kernel, path, new)


def remode(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Change the mode, lane or phase of one operation."""
    for path, body in bodies(kernel):
        for i, stmt in enumerate(body):
            changed: list[ir.Stmt] = []
            if isinstance(stmt, (ir.SetCross, ir.WaitCross)):
                if stmt.mode == "INTRA_BLOCK":
                    changed.append(replace(stmt, mode="UNICAST_BLOCK"))
                else:
                    changed.append(replace(stmt, mode="INTRA_BLOCK", lane=None))
            if isinstance(stmt, ir.DataOp):
                if stmt.phase is not None:
                    changed.append(replace(stmt, phase="Partial" if stmt.phase == "Final" else "Final"))
                    changed.append(replace(stmt, phase=None))
                if stmt.lanes != "both":
                    changed.append(replace(stmt, lanes="1" if stmt.lanes == "0" else "0"))
            for new in changed:
                made = with_body(kernel, path, (*body[:i], new, *body[i + 1 :]))
                yield f"{print_statement(new)} for {text(stmt)}", made


def guard(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Change a condition: its comparison, or leave the guard out."""
    for path, body in bodies(kernel):
        for i, stmt in enumerate(body):
            if not isinstance(stmt, ir.If):
                continue
            if len(stmt.branches) == 1 and not stmt.orelse:
                new = (*body[:i], *stmt.branches[0][1], *body[i + 1 :])
                yield f"no guard for {text(stmt)}", with_body(kernel, path, new)
            for condition, _ in stmt.branches:
                for node in ir.walk(condition):
                    if isinstance(node, ir.Compare):
                        for k, (op, right) in enumerate(node.rest):
                            for other in COMPARISONS[op]:
                                rest = (*node.rest[:k], (other, right), *node.rest[k + 1 :])
                                made = substitute(stmt, node, replace(node, rest=rest))  # type: ignore[arg-type]
                                where = with_body(kernel, path, (*body[:i], made, *body[i + 1 :]))
                                yield f"{other} for {op} in {text(stmt)}", where


COMPARISONS = {"<": ("<=", "!="), "<=": ("<",), ">": (">=",), ">=": (">",), "==": ("!=", ">="), "!=": ("==",)}


def arithmetic(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Change an index, id, guard or bound by one, a modulus by one, or a sign."""
    for path, body in bodies(kernel):
        for i, stmt in enumerate(body):
            if isinstance(stmt, ir.Section):
                continue
            for node in expressions(stmt):
                for new in _near(node):
                    made = substitute(stmt, node, new)
                    where = with_body(kernel, path, (*body[:i], made, *body[i + 1 :]))
                    yield f"{print_expr(new)} for {print_expr(node)} in {text(stmt)}", where  # type: ignore[arg-type]


def _near(node: ir.Node) -> list[ir.Expr]:
    match node:
        case ir.Int(value=value):
            return [ir.Int(value + 1), *([ir.Int(value - 1)] if value > 0 else [])]
        case ir.Binary(op="+", left=left, right=right):
            return [ir.Binary("-", left, right)]
        case ir.Binary(op="-", left=left, right=right):
            return [ir.Binary("+", left, right)]
        case ir.Name(id=name) if name not in ("sub", "block"):
            return [ir.Binary("+", node, ir.Int(1)), ir.Binary("-", node, ir.Int(1))]
    return []


def declarations(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Change a depth, a ring, an id of a tuple, a mutex, or the number of slots of a FIFO by one."""
    for k, constant in enumerate(kernel.constants):
        if isinstance(constant.value, tuple):
            for i, item in enumerate(constant.value):
                for new in _near(item)[:2]:
                    values = (*constant.value[:i], new, *constant.value[i + 1 :])
                    made = (*kernel.constants[:k], replace(constant, value=values), *kernel.constants[k + 1 :])
                    yield f"{constant.name}[{i}] = {print_expr(new)}", replace(kernel, constants=made)
        elif isinstance(constant.value, ir.Int):
            for new in _near(constant.value):
                made = (*kernel.constants[:k], replace(constant, value=new), *kernel.constants[k + 1 :])
                yield f"{constant.name} = {print_expr(new)}", replace(kernel, constants=made)
    for k, buffer in enumerate(kernel.buffers):
        changed = []
        if isinstance(buffer.depth, ir.Int) and buffer.mutex is None and buffer.addresses is None:
            changed += [replace(buffer, depth=d) for d in _near(buffer.depth) if d != ir.Int(0)]
        if buffer.mutex is not None:
            changed.append(replace(buffer, mutex=None))
        for other in changed:
            made_buffers = (*kernel.buffers[:k], other, *kernel.buffers[k + 1 :])
            yield f"buffer {buffer.name} changed", replace(kernel, buffers=made_buffers)
    for k, fifo in enumerate(kernel.fifos):
        for d in _near(fifo.slots):
            if d != ir.Int(0):
                made_fifos = (*kernel.fifos[:k], replace(fifo, slots=d), *kernel.fifos[k + 1 :])
                yield f"fifo {fifo.name} with {print_expr(d)} slots", replace(kernel, fifos=made_fifos)
    for k, ring in enumerate(kernel.rings):
        for d in _near(ring.size):
            if d != ir.Int(0):
                made_rings = (*kernel.rings[:k], replace(ring, size=d), *kernel.rings[k + 1 :])
                yield f"ring {ring.name} with {print_expr(d)} records", replace(kernel, rings=made_rings)


Operators: TypeAlias = tuple[Callable[[ir.Kernel], Iterator[Mutant]], ...]

OPERATORS: Operators = (
    drop, duplicate, swap, move, repipe, remode, guard, arithmetic, declarations,
)  # fmt: skip
