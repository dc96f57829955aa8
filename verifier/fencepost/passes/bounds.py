"""Which branches only say where a loop begins or ends?  They become its bounds.

`for k in range(n): if k <= q: ...` with nothing else in the loop is `for k in range(min(n, q + 1)): ...`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.passes.aliases import changes
from fencepost.passes.slices import reads
from fencepost.rewrite import rebuild

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The pass: the same operations in the same order; loop variables are taken to be unknown after their loop."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with bounds in the place of such branches."""
        body = tuple(rebuild(item, _bounded) for item in kernel.body)
        return replace(kernel, body=body)  # type: ignore[arg-type]


def _bounded(node: ir.Node) -> ir.Node:
    while isinstance(node, ir.For) and (loop := _once(node)) is not None:
        node = loop
    return node


def _once(loop: ir.For) -> ir.For | None:
    """The loop without the branch that is all of its body, if that bounds it."""
    match loop:
        case ir.For(
            step=ir.Int(value=1),
            body=(ir.If(branches=((ir.Compare(first=first, rest=((op, other),)), body),), orelse=()),),
        ) if op in _FLIPPED:
            pass
        case _:
            return None
    if other == ir.Name(loop.var):
        first, op, other = other, _FLIPPED[op], first  # type: ignore[assignment]
    changed = {name for stmt in body for name in changes(stmt)} | {loop.var}
    if first != ir.Name(loop.var) or reads(other) & changed:
        return None
    at = other if op in ("<", ">=") else ir.Binary("+", other, ir.Int(1), span=other.span)
    if op in ("<", "<="):
        return replace(loop, stop=ir.Call("min", (loop.stop, at), span=loop.span), body=body)
    return replace(loop, start=ir.Call("max", (loop.start, at), span=loop.span), body=body)
