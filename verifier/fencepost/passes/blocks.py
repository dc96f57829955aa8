"""Do two loops over multiples of one length take their trips in step?

A loop of `4 * n + 4` trips beside one of `n` trips, each of which does the work of four: the counters of both differ by
more and more.  Written as `n + 1` blocks of four trips each, their blocks stay side by side, and a proof need remember
no more than how far one is ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd
from typing import cast

from fencepost import ir
from fencepost.passes.strides import Polynomial, add, polynomial
from fencepost.rewrite import rebuild

_LARGEST = 64  # trips of one block

Names = frozenset[tuple[tuple[str, ...], int]]
"""What is not constant in a length, divided by the greatest number that divides it."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The pass: the same kernel, where a loop that takes r times the trips of another runs in blocks of r trips.

    Only loops whose body does not read the loop variable and does not leave the loop early, with a step of 1.
    """

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel; the object itself if no two loops are in such a relation."""
        constants = {c.name: c.value for c in kernel.constants if not isinstance(c.value, tuple)}
        smallest: dict[Names, int] = {}
        for loop in _loops(kernel):
            length = _length(loop, constants)
            if length is not None:
                content, names = _parts(length)
                smallest[names] = min(content, smallest.get(names, content))

        def change(node: ir.Node) -> ir.Node:
            length = _length(node, constants) if isinstance(node, ir.For) else None
            if length is None:
                return node
            assert isinstance(node, ir.For)
            content, names = _parts(length)
            size = content // smallest[names]
            fits = content % smallest[names] == 0 and length.get((), 0) % size == 0 and 1 < size <= _LARGEST
            return _in_blocks(node, length, size) if fits and _uniform(node) else node

        return cast("ir.Kernel", rebuild(kernel, change))


def _loops(kernel: ir.Kernel) -> Iterator[ir.For]:
    return (node for node in ir.walk(kernel) if isinstance(node, ir.For))


def _length(loop: ir.For, constants: dict[str, ir.Expr]) -> Polynomial | None:
    """The number of trips, if it is not negative and not constant; None if it is constant or the step is not 1."""
    start, stop = polynomial(loop.start, constants), polynomial(loop.stop, constants)
    if start is None or stop is None or polynomial(loop.step, constants) != {(): 1}:
        return None
    length = add(stop, start, -1)
    return length if any(length) else None


def _parts(length: Polynomial) -> tuple[int, Names]:
    """The greatest number that divides every coefficient but the constant, and the rest without it."""
    content = gcd(*(c for names, c in length.items() if names))
    return content, frozenset((names, c // content) for names, c in length.items() if names)


def _uniform(loop: ir.For) -> bool:
    """Whether every trip does the same, and the next one always follows."""
    nodes = [n for stmt in loop.body for n in ir.walk(stmt)]
    return not any(
        isinstance(n, ir.Break | ir.Unsupported) or (isinstance(n, ir.Name) and n.id == loop.var) for n in nodes
    )


def _in_blocks(loop: ir.For, length: Polynomial, size: int) -> ir.For:
    zero, one = ir.Int(0), ir.Int(1)
    block = ir.For(loop.var, zero, ir.Int(size), one, loop.body, span=loop.span)
    stop = _expression({names: c // size for names, c in length.items()})
    return replace(loop, var=f"{loop.var}~block", start=zero, stop=stop, step=one, stage=None, body=(block,))


def _expression(value: Polynomial) -> ir.Expr:
    total: ir.Expr | None = None
    for names, c in sorted(value.items(), reverse=True):
        term: ir.Expr = ir.Int(c)
        for name in names:
            term = ir.Binary("*", term, ir.Name(name)) if term != ir.Int(1) else ir.Name(name)
        total = term if total is None else ir.Binary("+", total, term)
    return ir.Int(0) if total is None else total
