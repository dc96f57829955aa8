"""Is a comparison of a strided position with its end a comparison of trip numbers?

A loop `for q in range(first, end, cores)` with a run-time stride is written as `trips = max(end - first + cores - 1, 0)
// cores`, `for k in range(trips)`, `q = first + k * cores`.  Then `q + cores >= end` (the last item) says exactly
`k + 1 >= trips`, which is linear where the first form multiplies two unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from fencepost import ir
from fencepost.passes.aliases import changes
from fencepost.passes.slices import reads
from fencepost.rewrite import rebuild

Polynomial: TypeAlias = dict[tuple[str, ...], int]
"""Monomial (sorted names) -> coefficient."""


@dataclass(frozen=True, slots=True)
class Strides:
    """The pass: comparisons between a strided position and the end of its range, as comparisons of trip numbers."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with equivalent comparisons; the object itself if there is none to change."""
        constants = {c.name: c.value for c in kernel.constants if not isinstance(c.value, tuple)}

        def change(node: ir.Node) -> ir.Node:
            if isinstance(node, ir.Section):
                return replace(node, body=_body(node.body, constants))
            if isinstance(node, ir.For):
                return replace(node, body=_body(node.body, constants))
            return node

        changed = rebuild(kernel, change)
        assert isinstance(changed, ir.Kernel)
        return changed


def _body(body: tuple[ir.Stmt, ...], constants: dict[str, ir.Expr]) -> tuple[ir.Stmt, ...]:
    defined: dict[str, ir.Expr] = {}  # as far as nothing in the definition has changed since
    found: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.For) and isinstance(stmt.stop, ir.Name) and stmt.start == ir.Int(0):
            trips = defined.get(stmt.stop.id)
            if trips is not None:
                stmt = _loop(stmt, trips, constants)
        changed = changes(stmt)
        defined = {n: value for n, value in defined.items() if n not in changed and not reads(value) & changed}
        if isinstance(stmt, ir.Assign) and stmt.name not in reads(stmt.value):
            defined[stmt.name] = stmt.value
        found.append(stmt)
    return tuple(found)


def _loop(loop: ir.For, trips: ir.Expr, constants: dict[str, ir.Expr]) -> ir.For:
    """Rewrite the comparisons in the body of a loop over `max(range + stride - 1, 0) // stride` trips."""
    if not (isinstance(trips, ir.Binary) and trips.op == "//" and isinstance(trips.left, ir.Call)):
        return loop
    if trips.left.function != "max" or len(trips.left.arguments) != 2 or trips.left.arguments[1] != ir.Int(0):
        return loop
    length = polynomial(trips.left.arguments[0], constants)
    stride = polynomial(trips.right, constants)
    first = loop.body[0] if loop.body else None
    if length is None or stride is None or not isinstance(first, ir.Assign):
        return loop
    position = polynomial(first.value, constants)
    changed = {name for stmt in loop.body[1:] for name in changes(stmt)}
    fixed = {loop.var} | reads(loop.stop, trips, first.value)
    if position is None or first.name in changed | fixed or changed & fixed:
        return loop
    start = add(position, times(stride, {(loop.var,): 1}), -1)
    if any(loop.var in names for names in start):
        return loop
    end = add(add(add(length, start), stride, -1), {(): 1})
    distance = add(position, end, -1)  # position - end
    rule = _Rule(loop.var, loop.stop, first.name, position, distance, stride, constants)
    body = tuple(rebuild(stmt, rule.change) for stmt in loop.body[1:])
    return replace(loop, body=(first, *body))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Rule:
    """`distance` is position - end in the trip `var`; one trip later it is larger by the stride."""

    var: str
    trips: ir.Expr
    name: str
    position: Polynomial
    distance: Polynomial
    stride: Polynomial
    constants: dict[str, ir.Expr]

    def change(self, node: ir.Node) -> ir.Node:
        if not isinstance(node, ir.Compare) or len(node.rest) != 1:
            return node
        op, right = node.rest[0]
        if not any(isinstance(n, ir.Name) and n.id == self.name for n in ir.walk(node)):
            return node
        left, other = polynomial(node.first, self.constants), polynomial(right, self.constants)
        if left is None or other is None:
            return node
        difference = self._inside(add(left, other, -1))
        later = self._trips_later(difference)
        if later is None:
            return node
        trips, inside = later
        if op not in inside:
            return node
        counter: ir.Expr = ir.Name(self.var, span=node.span)
        if trips:
            counter = ir.Binary("+" if trips > 0 else "-", counter, ir.Int(abs(trips)), span=node.span)
        return ir.Compare(counter, (("<" if inside[op] else ">=", self.trips),), span=node.span)

    def _inside(self, value: Polynomial) -> Polynomial:
        """The value with the position written out."""
        found: Polynomial = {}
        for names, c in value.items():
            found = add(found, self.position, c) if names == (self.name,) else add(found, {names: c})
        return found

    def _trips_later(self, difference: Polynomial) -> tuple[int, dict[str, bool]] | None:
        """Trips c with `difference` = ±(distance after c trips) or one more, and which operators say "still inside"."""
        for c in range(-4, 5):
            at = add(self.distance, self.stride, c)
            minus = {names: -k for names, k in at.items()}
            if difference == at:
                return c, {"<": True, ">=": False}
            if difference == minus:
                return c, {">": True, "<=": False}
            if difference == add(at, {(): 1}):
                return c, {"<=": True, ">": False}
            if difference == add(minus, {(): 1}, -1):
                return c, {">=": True, "<": False}
        return None


def add(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
    found = dict(a)
    for names, c in b.items():
        found[names] = found.get(names, 0) + factor * c
    return {names: c for names, c in found.items() if c}


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for one, c in a.items():
        for two, d in b.items():
            names = tuple(sorted((*one, *two)))
            found[names] = found.get(names, 0) + c * d
    return {names: c for names, c in found.items() if c}


def polynomial(expr: ir.Expr, constants: dict[str, ir.Expr]) -> Polynomial | None:
    """An expression over names, integers, sums, differences and products; None for anything else."""
    match expr:
        case ir.Int(value=value):
            return {(): value} if value else {}
        case ir.Name(id=name):
            value_ = constants.get(name)
            if isinstance(value_, ir.Int):
                return polynomial(value_, constants)
            return {(name,): 1}
        case ir.Unary(op="-", operand=operand):
            inner = polynomial(operand, constants)
            return None if inner is None else add({}, inner, -1)
        case ir.Binary(op="+" | "-" | "*" as op, left=left, right=right):
            a, b = polynomial(left, constants), polynomial(right, constants)
            if a is None or b is None:
                return None
            return times(a, b) if op == "*" else add(a, b, 1 if op == "+" else -1)
    return None
