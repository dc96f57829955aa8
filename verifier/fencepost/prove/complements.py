"""Which two branches are the two sides of one?

`if k == 0: a` followed by `if k > 0: b` is `if k == 0: a else: b` where k is never negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.model.program import compile_kernel
from fencepost.passes.aliases import changes
from fencepost.passes.slices import jumps, reads
from fencepost.prove.ranges import Ranges
from fencepost.prove.structure import analyse
from fencepost.prove.values import Interval


@dataclass(frozen=True, slots=True)
class Complements:
    """The pass: branches whose conditions exclude each other and leave nothing out become one."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with such branches joined."""
        compiled = compile_kernel(kernel)
        ranges = {p.agent: Ranges(analyse(compiled, p)) for p in compiled.programs}
        items: list[ir.Section | ir.Stmt] = []
        for item in kernel.body:
            if isinstance(item, ir.Section):
                known = [r for agent, r in ranges.items() if (agent == "aic") == (item.core == "cube")]
                item = replace(item, body=_Joining(known).block(item.body))
            items.append(item)
        return replace(kernel, body=tuple(items))


@dataclass(frozen=True, slots=True)
class _Joining:
    ranges: Sequence[Ranges]

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        found: list[ir.Stmt] = []
        for stmt in body:
            match stmt:
                case ir.For(body=inner):
                    found.append(replace(stmt, body=self.block(inner)))
                case ir.If():
                    self._add(found, self._inner(stmt))
                case _:
                    found.append(stmt)
        return tuple(found)

    def _inner(self, stmt: ir.If) -> ir.If:
        arms = tuple((condition, self.block(arm)) for condition, arm in stmt.branches)
        orelse = self.block(stmt.orelse)
        if len(arms) == 2 and not orelse and self._opposite(arms[0][0], arms[1][0]):
            return replace(stmt, branches=arms[:1], orelse=arms[1][1])
        return replace(stmt, branches=arms, orelse=orelse)

    def _add(self, found: list[ir.Stmt], stmt: ir.If) -> None:
        before = found[-1] if found else None
        if isinstance(before, ir.If) and _single(before) and _single(stmt) and not jumps(before):
            (one, first), (other, second) = before.branches[0], stmt.branches[0]
            if self._opposite(one, other) and not reads(other) & {n for s in first for n in changes(s)}:
                found[-1] = replace(before, orelse=second)
                return
        found.append(stmt)

    def _opposite(self, one: ir.Expr, other: ir.Expr) -> bool:
        a, b = _question(one), _question(other)
        if a is None or b is None or a[0] != b[0]:
            return False
        return all(_exclude(a[1:], b[1:], r.of(a[0])) for r in self.ranges)


def _single(stmt: ir.If) -> bool:
    return len(stmt.branches) == 1 and not stmt.orelse


def _question(condition: ir.Expr) -> tuple[ir.Expr, str, int] | None:
    match condition:
        case ir.Compare(first=value, rest=((op, ir.Int(value=number)),)):
            return value, op, number
    return None


def _exclude(one: tuple[str, int], other: tuple[str, int], interval: Interval) -> bool:
    """Whether exactly one of two comparisons with constants holds for every value of an interval."""
    low, high = interval
    points = {c + d for _, c in (one, other) for d in (-1, 0, 1)} | {x for x in interval if x is not None}
    inside = [x for x in points if (low is None or x >= low) and (high is None or x <= high)]
    return bool(inside) and all(_holds(x, *one) != _holds(x, *other) for x in inside)


def _holds(x: int, op: str, c: int) -> bool:
    return {"<": x < c, "<=": x <= c, ">": x > c, ">=": x >= c, "==": x == c, "!=": x != c}[op]
