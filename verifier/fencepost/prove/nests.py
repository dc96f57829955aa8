"""Nests: how do the loops of a program hang together, and how are their positions and trips told apart?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from fencepost import ir
from fencepost.passes.slices import jumps, reads
from fencepost.passes.strides import add, polynomial

Path: TypeAlias = tuple[int, ...]
"""Where a statement stands: its number in the block, then the number of the branch, its number there, and so on.

-1 is the place before the first statement.
"""

_TRIP = "@trip"


def nest_of(loop: ir.For) -> tuple[list[ir.For], ir.If, Path] | None:
    """Loops that hold nothing but scalars and each other, the branch inside, and where it stands from the first one."""
    nest, path = [loop], list[int]()
    while True:
        acting = [(k, s) for k, s in enumerate(nest[-1].body) if not isinstance(s, ir.Assign)]
        if len(acting) != 1:
            return None
        ((k, inner),) = acting
        path += [0, k]
        match inner:
            case ir.For():
                nest.append(inner)
            case ir.If(branches=((_, body),), orelse=()) if not any(jumps(s) for s in body):
                return nest, inner, tuple(path)
            case _:
                return None


def read_outside(program: tuple[ir.Stmt, ...], nest: ir.For, guarded: ir.If) -> set[str]:
    """What is read outside of the branch of a nest, the assignments of the nest itself aside."""
    found: set[str] = set()
    stack: list[ir.Stmt] = list(program)
    while stack:
        stmt = stack.pop()
        match stmt:
            case ir.For(body=body):
                found |= reads(stmt.start, stmt.stop, stmt.step)
                stack += [s for s in body if not (stmt is nest and isinstance(s, ir.Assign))]
            case ir.If(branches=branches, orelse=orelse):
                if stmt is guarded:
                    continue
                found |= reads(*(condition for condition, _ in branches))
                stack += [s for arm in (*(b for _, b in branches), orelse) for s in arm]
            case ir.Assign(name=name, value=value):
                found |= reads(value) - {name}
            case _:
                found |= reads(stmt)
    return found


def sources(program: tuple[ir.Stmt, ...], names: set[str]) -> set[str]:
    """The names that the values of other names are worked out from, conditions aside."""
    assigned: dict[str, set[str]] = {}
    for stmt in program:
        for node in ir.walk(stmt):
            match node:
                case ir.Assign(name=name, value=value):
                    assigned.setdefault(name, set()).update(reads(value))
                case ir.StoreField(ring=ring, field=name, value=value):
                    assigned.setdefault(f"{ring}.{name}", set()).update(reads(value))
    found, work = set(names), list(names)
    while work:
        for name in assigned.get(work.pop(), ()):
            if name not in found:
                found.add(name)
                work.append(name)
    return found


@dataclass(frozen=True, slots=True)
class Trips:
    """Positions `start + var` of a loop over trip numbers; inside it, `stop` is `start + trips`."""

    var: str
    start: ir.Expr
    stop: ir.Expr
    trips: str

    def compared(self, node: ir.Node) -> ir.Node:
        """Comparisons of a position with the end, as comparisons of trip numbers (still called positions)."""
        if not isinstance(node, ir.Compare) or len(node.rest) != 1:
            return node
        ((op, other),) = node.rest
        left, right, stop = (polynomial(e, {}) for e in (node.first, other, self.stop))
        if left is None or right is None or stop is None:
            return node
        difference = add(left, right, -1)
        for sign in (1, -1):
            distance = add(difference, add({(self.var,): 1}, stop, -1), -sign)
            if not set(distance) - {()}:
                ahead = distance.get((), 0)
                here: ir.Expr = ir.Binary("-", ir.Name(_TRIP), ir.Name(self.trips))
                if sign < 0:
                    here = ir.Binary("-", ir.Name(self.trips), ir.Name(_TRIP))
                return ir.Compare(here, ((op, ir.Int(-ahead)),), span=node.span)
        return node

    def position(self, node: ir.Node) -> ir.Node:
        """Positions as sums; trip numbers by the name of the loop variable."""
        if isinstance(node, ir.Name) and node.id == self.var:
            return ir.Binary("+", node, self.start, span=node.span)
        return node

    def trip(self, node: ir.Node) -> ir.Node:
        """Trip numbers are what the loop counts now."""
        return replace(node, id=self.var) if isinstance(node, ir.Name) and node.id == _TRIP else node
