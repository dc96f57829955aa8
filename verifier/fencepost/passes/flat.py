"""Which products count the trips of a nest?  They become counters.

In `for q in range(rows): for k in range(columns)`, with `row` counting the trips of the outer loop, `row * columns + k`
is the number of inner trips so far.  A counter says the same without a product of two unknowns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.passes.aliases import changes
from fencepost.passes.slices import jumps, reads
from fencepost.rewrite import rebuild


@dataclass(frozen=True, slots=True)
class Flat:
    """The pass."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with counters in the place of such products."""
        return replace(
            kernel,
            body=tuple(
                replace(item, body=_Program().run(item.body)) if isinstance(item, ir.Section) else item
                for item in kernel.body
            ),
        )


@dataclass(slots=True)
class _Program:
    """One program; `made` counts the new counters."""

    made: int = 0

    def run(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return self._block(body)

    def _block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        found: list[ir.Stmt] = []
        zero: set[str] = set()
        for stmt in body:
            match stmt:
                case ir.Assign(name=name, value=ir.Int(value=0)):
                    found.append(stmt)
                    zero.add(name)
                    continue
                case ir.For():
                    outer = replace(stmt, body=self._block(stmt.body))
                    found += self._nest(outer, zero)
                case ir.If(branches=branches, orelse=orelse):
                    arms = tuple((condition, self._block(arm)) for condition, arm in branches)
                    found.append(replace(stmt, branches=arms, orelse=self._block(orelse)))
                case _:
                    found.append(stmt)
            zero -= changes(stmt)
        return tuple(found)

    def _nest(self, outer: ir.For, zero: set[str]) -> Iterable[ir.Stmt]:
        """An outer loop before which the scalars `zero` are 0, with the counter that it needs."""
        if any(jumps(s) for s in outer.body):
            return [outer]
        changed = {name for s in outer.body for name in changes(s)} | {outer.var}
        for position, inner in enumerate(outer.body):
            if not isinstance(inner, ir.For) or not _simple(inner) or reads(inner.stop) & changed:
                continue
            if any(jumps(s) for s in inner.body) or inner.var in {n for s in inner.body for n in changes(s)}:
                continue
            rows = self._rows(outer, position, zero)
            counter = f"flat~{self.made}"
            rule = _Rule(rows, inner.stop, inner.var, counter)
            body = tuple(rebuild(s, rule.change) for s in inner.body)
            if not rule.used:
                continue
            self.made += 1
            count = ir.Assign(counter, ir.Binary("+", ir.Name(counter), ir.Int(1)), span=inner.span)
            new = replace(inner, body=(*body, count))  # type: ignore[arg-type]
            around = (*outer.body[:position], new, *outer.body[position + 1 :])
            return [ir.Assign(counter, ir.Int(0), span=outer.span), replace(outer, body=around)]
        return [outer]

    def _rows(self, outer: ir.For, position: int, zero: set[str]) -> frozenset[str]:
        """The names that count the finished trips of the outer loop, seen from the statement at `position`."""
        found = (
            {outer.var} if _simple(outer) and outer.var not in {n for s in outer.body for n in changes(s)} else set()
        )
        for name in zero:
            steps = [k for k, s in enumerate(outer.body) if name in changes(s)]
            if len(steps) != 1 or steps[0] <= position:
                continue
            step = outer.body[steps[0]]
            if isinstance(step, ir.Assign) and step.value in (
                ir.Binary("+", ir.Name(name), ir.Int(1)),
                ir.Binary("+", ir.Int(1), ir.Name(name)),
            ):
                found.add(name)
        return frozenset(found)


def _simple(loop: ir.For) -> bool:
    return loop.start == ir.Int(0) and loop.step == ir.Int(1)


@dataclass(slots=True)
class _Rule:
    """`row * columns + column` for a name out of `rows` becomes `counter`; so does its maximum with 0."""

    rows: frozenset[str]
    columns: ir.Expr
    column: str
    counter: str
    used: bool = False

    def change(self, node: ir.Node) -> ir.Node:
        match node:
            case ir.Binary(op="+", left=ir.Binary(op="*") as product, right=ir.Name(id=name)) if name == self.column:
                return self._counted(node, product)
            case ir.Binary(op="+", left=ir.Name(id=name), right=ir.Binary(op="*") as product) if name == self.column:
                return self._counted(node, product)
            case ir.Call(function="max", arguments=(ir.Name(id=self.counter) as name_, ir.Int(value=0))):
                return name_
        return node

    def _counted(self, node: ir.Node, product: ir.Binary) -> ir.Node:
        for row, columns in ((product.left, product.right), (product.right, product.left)):
            if isinstance(row, ir.Name) and row.id in self.rows and columns == self.columns:
                self.used = True
                return ir.Name(self.counter, span=node.span)
        return node
