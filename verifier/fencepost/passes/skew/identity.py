"""Which operation of the kernel as written is an operation of the transformed kernel?

A push, a pop or a data operation is identified by its statement and the values of the loop variables around it.
`mark` writes that into its `task` as one integer; a pass copies and substitutes tasks like everything else, so that the
integers of the transformed kernel still name operations of the kernel as written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencepost import ir

_BASE = 1 << 40
_MIDDLE = _BASE // 2


Marking = ir.Push | ir.Pop | ir.DataOp


@dataclass(frozen=True, slots=True)
class Message:
    """An operation of the text, and the loop variables around it with their values."""

    stmt: Marking
    iteration: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.iteration)
        return f"line {self.stmt.span.line}" + (f" ({values})" if values else "")


@dataclass(frozen=True, slots=True)
class Marked:
    """A kernel whose messages and data operations carry their identity in `task`."""

    kernel: ir.Kernel
    sites: tuple[tuple[Marking, tuple[str, ...]], ...]

    def message(self, task: int) -> Message:
        """The operation that a task of this kernel, or of a transformed one, stands for."""
        values: list[int] = []
        while task >= _BASE:
            task, digit = divmod(task, _BASE)
            values.append(digit - _MIDDLE)
        stmt, names = self.sites[task - 1]
        return Message(stmt, tuple(zip(names, reversed(values), strict=True)))


def mark(kernel: ir.Kernel) -> Marked:
    """Return the kernel with the identity of every operation in its task; nothing else changes.

    The names that a task mentions keep being mentioned, so that a pass treats both kernels alike.
    """
    sites: list[tuple[Marking, tuple[str, ...]]] = []

    def block(body: tuple[ir.Stmt, ...], loops: tuple[str, ...]) -> tuple[ir.Stmt, ...]:
        return tuple(statement(s, loops) for s in body)

    def statement(stmt: ir.Stmt, loops: tuple[str, ...]) -> ir.Stmt:
        match stmt:
            case ir.Push() | ir.Pop() | ir.DataOp():
                sites.append((stmt, loops))
                code: ir.Expr = ir.Int(len(sites))
                for name in loops:
                    digit = ir.Binary("+", ir.Name(name), ir.Int(_MIDDLE))
                    code = ir.Binary("+", ir.Binary("*", code, ir.Int(_BASE)), digit)
                return replace(stmt, task=ir.Choose(ir.Int(1), code, stmt.task or ir.Int(0)))
            case ir.For(var=var, body=body):
                return replace(stmt, body=block(body, (*loops, var)))
            case ir.Pipelined(var=var, body=body):
                return replace(stmt, body=block(body, (*loops, var)))
            case ir.If(branches=branches, orelse=orelse):
                arms = tuple((condition, block(arm, loops)) for condition, arm in branches)
                return replace(stmt, branches=arms, orelse=block(orelse, loops))
            case _:
                return stmt

    items = tuple(
        replace(item, body=block(item.body, ())) if isinstance(item, ir.Section) else statement(item, ())
        for item in kernel.body
    )
    return Marked(replace(kernel, body=items), tuple(sites))
