"""Is a comparison of a loop's end with a constant, made where the position is known, one about the way that is left?

In `for k in range(0, n, 128)`, under `if k == 0`, the test `n <= 128` says `n <= k + 128`: whether this block is the
last one.  Like the other tests of the loop it then compares the end with the position, and a proof has to remember
nothing but the distance between the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from fencepost import ir
from fencepost.passes.strides import Polynomial, add, polynomial
from fencepost.rewrite import offset, rebuild


@dataclass(frozen=True, slots=True)
class Anchors:
    """The pass: under `k == c`, comparisons of the loop's end with a constant, as comparisons with `k`.

    Each new comparison adds `k - c`, which is 0, to one side of the old one.
    """

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with equivalent comparisons; the object itself if there is none to change."""
        constants = {c.name: c.value for c in kernel.constants if not isinstance(c.value, tuple)}

        def change(node: ir.Node) -> ir.Node:
            if not isinstance(node, ir.For):
                return node
            end = polynomial(node.stop, constants)
            if end is None or not any(end):  # a constant end, whose comparisons are constants too
                return node
            anchored = _Anchored(node.var, node.stop, end, constants)
            body = tuple(rebuild(stmt, anchored.branches) for stmt in node.body)
            same = all(a is b for a, b in zip(body, node.body, strict=True))
            return node if same else replace(node, body=cast("tuple[ir.Stmt, ...]", body))

        return cast("ir.Kernel", rebuild(kernel, change))


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A loop over `var` up to `stop`, whose value is `end`."""

    var: str
    stop: ir.Expr
    end: Polynomial
    constants: dict[str, ir.Expr]

    def branches(self, node: ir.Node) -> ir.Node:
        """An `if` with the branches changed in which the position is known."""
        if not isinstance(node, ir.If):
            return node
        branches = tuple((condition, self._branch(condition, body)) for condition, body in node.branches)
        same = all(a[1] is b[1] for a, b in zip(branches, node.branches, strict=True))
        return node if same else replace(node, branches=branches)

    def _branch(self, condition: ir.Expr, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        place = self._place(condition)
        if place is None:
            return body
        new = tuple(rebuild(stmt, lambda node: self._compare(node, place)) for stmt in body)
        same = all(a is b for a, b in zip(new, body, strict=True))
        return body if same else cast("tuple[ir.Stmt, ...]", new)

    def _place(self, condition: ir.Expr) -> int | None:
        """The constant that the position equals where the condition holds."""
        parts = condition.operands if isinstance(condition, ir.Logic) and condition.op == "and" else (condition,)
        for part in parts:
            match part:
                case ir.Compare(first=first, rest=(("==", second),)):
                    left, right = (polynomial(e, self.constants) for e in (first, second))
                    distance = None if left is None or right is None else add(left, right, -1)
                    for sign in (1, -1):
                        rest = None if distance is None else add({(self.var,): 1}, distance, -sign)
                        if rest is not None and set(rest) <= {()}:
                            return rest.get((), 0)
                case _:
                    pass
        return None

    def _compare(self, node: ir.Node, place: int) -> ir.Node:
        """A comparison of the end with a constant, as one with the position, which is `place` here."""
        if not isinstance(node, ir.Compare) or len(node.rest) != 1:
            return node
        op, second = node.rest[0]
        left, right = polynomial(node.first, self.constants), polynomial(second, self.constants)
        if left is None or right is None:
            return node
        difference = add(left, right, -1)
        for sign in (1, -1):
            rest = add(difference, self.end, -sign)  # the comparison is `sign * end + rest op 0`
            if set(rest) <= {()}:
                position = offset(self.var, -sign * rest.get((), 0) - place, node.span)
                sides = (self.stop, position) if sign > 0 else (position, self.stop)
                return ir.Compare(sides[0], ((op, sides[1]),), span=node.span)
        return node
