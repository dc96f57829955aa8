"""Which ordinary loops do the annotated pipelines of a kernel have to equal?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.rewrite import rebuild


@dataclass(frozen=True, slots=True)
class Serial:
    """The pass: every `pipelined` loop becomes an ordinary loop, every bind in it an assignment.

    A bind that reads an element of a buffer becomes a read of that slot on pipe S, and an unknown value of its own for
    each round of the loops around it; and for each bind, if the kernel writes any buffer.
    """

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel; the object itself if no loop is annotated."""
        if not any(isinstance(node, ir.Pipelined) for node in ir.walk(kernel)):
            return kernel
        buffers = {buffer.name: buffer for buffer in kernel.buffers}
        operations = [node for node in ir.walk(kernel) if isinstance(node, ir.DataOp)]
        work = _Work(buffers, any(a.name in buffers for operation in operations for a in operation.writes))
        items: list[ir.Section | ir.Stmt] = []
        for item in kernel.body:
            if isinstance(item, ir.Section):
                items.append(replace(item, body=work.block(item.body, ())))
            else:
                items += work.statement(item, ())
        return replace(kernel, body=tuple(items))


@dataclass(frozen=True, slots=True)
class _Work:
    buffers: dict[str, ir.Buffer]
    writes: bool  # whether the kernel writes buffers, so that two binds may find different values
    binds: list[ir.Bind] = field(default_factory=list)

    def block(self, body: tuple[ir.Stmt, ...], rounds: tuple[str, ...]) -> tuple[ir.Stmt, ...]:
        """The statements of a block; `rounds` are the variables of the loops around it."""
        return tuple(new for stmt in body for new in self.statement(stmt, rounds))

    def statement(self, stmt: ir.Stmt, rounds: tuple[str, ...]) -> tuple[ir.Stmt, ...]:
        match stmt:
            case ir.Pipelined(var=var, start=start, stop=stop, body=body):
                return (ir.For(var, start, stop, ir.Int(1), self.block(body, (*rounds, var)), span=stmt.span),)
            case ir.For(var=var, body=body):
                return (replace(stmt, body=self.block(body, (*rounds, var))),)
            case ir.If(branches=branches, orelse=orelse):
                arms = tuple((condition, self.block(arm, rounds)) for condition, arm in branches)
                return (replace(stmt, branches=arms, orelse=self.block(orelse, rounds)),)
            case ir.Bind():
                return self._bind(stmt, rounds)
            case _:
                return (stmt,)

    def _bind(self, bind: ir.Bind, rounds: tuple[str, ...]) -> tuple[ir.Stmt, ...]:
        reads: list[ir.Access] = []
        self.binds.append(bind)
        site = (ir.Int(len(self.binds)),) if self.writes else ()

        def value(node: ir.Node) -> ir.Node:
            if not isinstance(node, ir.Item) or node.name not in self.buffers:
                return node
            index = None if self.buffers[node.name].depth is None else node.index
            reads.append(ir.Access(node.name, index, span=node.span))
            return ir.Call(node.name, (node.index, *map(ir.Name, rounds), *site), span=node.span)

        assigned = ir.Assign(bind.name, rebuild(bind.value, value), span=bind.span)  # type: ignore[arg-type]
        if not reads:
            return (assigned,)
        return ir.DataOp("read", (), tuple(reads), "S", span=bind.span), assigned
