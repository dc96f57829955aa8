"""Is a loop over all pairs of two indices written as one loop?  It becomes two.

`for i in range(m * n)` with `k = i % n` and `t = i // n` does what `for t in range(m)` and `for k in range(n)` do, and
the second form is linear.  Where the position itself is used as well, it is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.passes.aliases import changes
from fencepost.passes.slices import reads
from fencepost.passes.strides import Polynomial, polynomial
from fencepost.rewrite import rebuild


@dataclass(frozen=True, slots=True)
class Nested:
    """The pass.  A loop stays as it is if its position is used in comparisons or by unknown functions."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return an equivalent kernel with such loops as nests; the object itself if it has none."""
        constants = {c.name: c.value for c in kernel.constants if not isinstance(c.value, tuple)}
        changed = {name for item in kernel.body for stmt in ir.walk(item) for name in _assigned(stmt)}
        sizes = {n for a in kernel.assumes for n in _not_negative(a)} & set(kernel.parameters) - changed

        def change(node: ir.Node) -> ir.Node:
            if isinstance(node, (ir.Section, ir.For)):
                body = _body(node.body, sizes, constants)
                return node if body is node.body else replace(node, body=body)
            if isinstance(node, ir.If):
                branches = tuple((test, _body(body, sizes, constants)) for test, body in node.branches)
                orelse = _body(node.orelse, sizes, constants)
                bodies = [(body, old) for (_, body), (_, old) in zip(branches, node.branches, strict=True)]
                if any(body is not old for body, old in (*bodies, (orelse, node.orelse))):
                    return replace(node, branches=branches, orelse=orelse)
            return node

        if not sizes:
            return kernel
        found = rebuild(kernel, change)
        assert isinstance(found, ir.Kernel)
        return found


def _assigned(node: ir.Node) -> Iterable[str]:
    match node:
        case ir.Assign(name=name) | ir.Cursor(name=name) | ir.For(var=name) | ir.Pipelined(var=name):
            return (name,)
    return ()


def _not_negative(assume: ir.Expr) -> set[str]:
    """The names that an assume says not to be negative."""
    match assume:
        case ir.Logic("and", operands):
            return {name for operand in operands for name in _not_negative(operand)}
        case ir.Compare(first, rest):
            found: set[str] = set()
            left = first
            for op, right in rest:
                for small, large, less in ((left, right, ("<", "<=")), (right, left, (">", ">="))):
                    equal = op == "==" and isinstance(small, ir.Int)
                    if (op in less or equal) and isinstance(small, ir.Int) and isinstance(large, ir.Name):
                        found |= {large.id} if small.value >= (-1 if op in "<>" else 0) else set()
                left = right
            return found
    return set()


def _body(body: tuple[ir.Stmt, ...], sizes: set[str], constants: dict[str, ir.Expr]) -> tuple[ir.Stmt, ...]:
    defined: dict[str, ir.Expr] = {}  # as far as nothing in the definition has changed since
    found: list[ir.Stmt] = []
    for stmt in body:
        found += _nest(stmt, defined, sizes, constants) if isinstance(stmt, ir.For) else (stmt,)
        changed = changes(stmt)
        defined = {n: value for n, value in defined.items() if n not in changed and not reads(value) & changed}
        if isinstance(stmt, ir.Assign) and stmt.name not in reads(stmt.value):
            defined[stmt.name] = stmt.value
    return body if len(found) == len(body) and all(a is b for a, b in zip(found, body, strict=True)) else tuple(found)


def _nest(
    loop: ir.For, defined: dict[str, ir.Expr], sizes: set[str], constants: dict[str, ir.Expr]
) -> tuple[ir.Stmt, ...]:
    stop = defined.get(loop.stop.id, loop.stop) if isinstance(loop.stop, ir.Name) else loop.stop
    trips = polynomial(stop, constants)
    if trips is None or loop.start != ir.Int(0) or loop.step != ir.Int(1) or loop.stage is not None:
        return (loop,)
    if any(isinstance(n, (ir.Break, ir.Continue)) for stmt in loop.body for n in ir.walk(stmt)):
        return (loop,)
    changed = {name for stmt in loop.body for name in changes(stmt)} | {loop.var}
    inner = next((name for name in sorted(sizes) if _divides(loop, name)), None)
    if inner is None or reads(stop) & changed:
        return (loop,)
    outer = _quotient(trips, inner)
    if outer is None:
        return (loop,)
    rule = _Rule(loop.var, inner, f"{loop.var}//{inner}", f"{loop.var}%{inner}")
    body = tuple(rebuild(stmt, rule.change) for stmt in loop.body)
    if any(_compares(stmt, loop.var) for stmt in body):
        return (loop,)
    position = ir.Name(loop.var, span=loop.span)
    counted = any(loop.var in reads(stmt) for stmt in body)
    if counted:
        body = (*body, ir.Assign(loop.var, ir.Binary("+", position, ir.Int(1)), span=loop.span))
    trip = replace(loop, var=rule.remainder, stop=ir.Name(inner, span=loop.span), body=body)  # type: ignore[arg-type]
    nest = replace(loop, var=rule.quotient, stop=outer, body=(trip,))
    return (ir.Assign(loop.var, ir.Int(0), span=loop.span), nest) if counted else (nest,)


def _divides(loop: ir.For, name: str) -> bool:
    """Whether the position of a loop is divided by a name."""
    for stmt in loop.body:
        for node in ir.walk(stmt):
            match node:
                case ir.Binary("%" | "//", left, ir.Name(id=divisor)) if divisor == name and loop.var in reads(left):
                    return True
    return False


def _quotient(trips: Polynomial, name: str) -> ir.Expr | None:
    """The polynomial divided by a name, if it is a multiple of that."""
    if not trips or not all(name in names for names in trips):
        return None
    total: ir.Expr | None = None
    for names, factor in sorted(trips.items()):
        rest = list(names)
        rest.remove(name)
        term: ir.Expr = ir.Int(factor)
        for other in rest:
            term = ir.Name(other) if term == ir.Int(1) else ir.Binary("*", term, ir.Name(other))
        total = term if total is None else ir.Binary("+", total, term)
    return total


def _compares(stmt: ir.Node, name: str) -> bool:
    """Whether the position is looked at in ways that its quotient and remainder would have to tell."""
    for node in ir.walk(stmt):
        match node:
            case ir.Compare(first, rest) if any(_bare(e, name) for e in (first, *(e for _, e in rest))):
                return True
            case ir.For(start=start, stop=stop) | ir.Pipelined(start=start, stop=stop) if name in reads(start, stop):
                return True
            case ir.Call(function) if function not in ir.INTERPRETED and name in reads(node):
                return True
            case ir.Binary("%" | "//", left, right) if name in reads(left) and not isinstance(right, ir.Int):
                return True
            case ir.Assign(value=value) if _bare(value, name):
                return True
    return False


def _bare(expr: ir.Node, name: str) -> bool:
    """Whether an expression reads a name elsewhere than in remainders of constants."""
    match expr:
        case ir.Binary("%", _, ir.Int()):
            return False
        case ir.Name(id=read):
            return read == name
    return any(_bare(child, name) for child in ir.children(expr))


@dataclass(frozen=True, slots=True)
class _Rule:
    """`var` = `quotient` * `size` + `remainder`, with a remainder from 0 to before the size."""

    var: str
    size: str
    quotient: str
    remainder: str

    def change(self, node: ir.Node) -> ir.Node:
        match node:
            case ir.Binary("//", ir.Name(id=self.var), ir.Name(id=self.size)):
                return ir.Name(self.quotient, span=node.span)
            case ir.Binary("%", ir.Name(id=self.var), ir.Name(id=self.size)):
                return ir.Name(self.remainder, span=node.span)
            case ir.Compare(ir.Binary("%", left, ir.Name(id=self.size)), (("==" | "!=" as op, ir.Int(0)),)) if (
                left == ir.Binary("+", ir.Name(self.var), ir.Int(1))
            ):
                last = ir.Binary("-", ir.Name(self.size, span=node.span), ir.Int(1))
                return ir.Compare(ir.Name(self.remainder, span=node.span), ((op, last),), span=node.span)
        return node
