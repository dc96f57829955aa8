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
    """The pass.  `rows`: products of rows that are no counts of trips become sums that grow with each row."""

    rows: bool = False

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with counters in the place of such products."""
        return replace(
            kernel,
            body=tuple(
                replace(item, body=_Program(self.rows).run(item.body)) if isinstance(item, ir.Section) else item
                for item in kernel.body
            ),
        )


@dataclass(slots=True)
class _Program:
    """One program; `sums` as `rows` of `Flat`, `made` counts the new counters."""

    sums: bool
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
        return self._sum(outer, zero, changed) if self.sums else [outer]

    def _sum(self, outer: ir.For, zero: set[str], changed: set[str]) -> Iterable[ir.Stmt]:
        """An outer loop with a sum in the place of a product of its trips so far and a number that stays."""
        for position, inner in enumerate(outer.body):
            if not isinstance(inner, ir.For) or not _simple(inner):
                continue
            rows = self._rows(outer, position, zero)
            for node in (n for s in inner.body for n in ir.walk(s)):
                match node:
                    case ir.Binary(op="*", left=ir.Name(id=row), right=ir.Name(id=columns)) if row in rows:
                        pass
                    case ir.Binary(op="*", left=ir.Name(id=columns), right=ir.Name(id=row)) if row in rows:
                        pass
                    case _:
                        continue
                if columns in changed or not _at_most(inner.stop, columns):
                    continue
                counter = f"flat~{self.made}"
                self.made += 1
                rule = _Sum(rows, columns, inner.var, counter)
                body = tuple(rebuild(s, rule.change) for s in inner.body)
                more = ir.Assign(counter, ir.Binary("+", ir.Name(counter), ir.Name(columns)), span=inner.span)
                new = replace(inner, body=body)  # type: ignore[arg-type]
                around = (*outer.body[:position], new, *outer.body[position + 1 :], more)
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


def _at_most(stop: ir.Expr, name: str) -> bool:
    """Whether a loop that ends at `stop` makes trips only where a scalar is positive."""
    match stop:
        case ir.Name(id=other):
            return other == name
        case ir.Call(function="min", arguments=arguments):
            return any(_at_most(argument, name) for argument in arguments)
    return False


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


@dataclass(frozen=True, slots=True)
class _Sum:
    """`row * columns` for a name out of `rows` becomes `counter`; where it is compared with 0 it is not less."""

    rows: frozenset[str]
    columns: str
    column: str
    counter: str

    def change(self, node: ir.Node) -> ir.Node:
        natural = ir.Binary("+", ir.Name(self.counter), ir.Name(self.column))
        match node:
            case ir.Binary(op="*", left=ir.Name(id=a), right=ir.Name(id=b)):
                if (a in self.rows and b == self.columns) or (b in self.rows and a == self.columns):
                    return ir.Name(self.counter, span=node.span)
            case ir.Call(function="max", arguments=(value, ir.Int(value=0))) if value in (
                natural,
                ir.Name(self.counter),
            ):
                return value
        return node
